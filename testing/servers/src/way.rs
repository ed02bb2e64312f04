//! A way to servers that can be cut, as a network is: what was sent waits, and nobody is told.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
};

use tempfile::TempDir;

use crate::{Postgres, ServerError, socket_url};

/// Name of a PostgreSQL server's socket in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// A way to the servers of a database, for one client. It goes with whoever made it.
#[derive(Debug)]
pub struct Way {
    cut: Arc<Cut>,
    /// A socket in place of each server's.
    folders: Vec<TempDir>,
}

#[derive(Debug, Default)]
struct Cut {
    is_cut: Mutex<bool>,
    healed: Condvar,
}

impl Cut {
    fn set(&self, cut: bool) {
        *self.is_cut.lock().unwrap_or_else(PoisonError::into_inner) = cut;
        self.healed.notify_all();
    }

    /// Returns when the way is whole.
    fn pass(&self) {
        let cut = self.is_cut.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.healed.wait_while(cut, |cut| *cut).unwrap_or_else(PoisonError::into_inner));
    }
}

impl Way {
    /// A way to each of these servers.
    pub(crate) fn to<'a>(servers: impl Iterator<Item = &'a Postgres>) -> Result<Self, ServerError> {
        let (cut, mut folders) = (Arc::<Cut>::default(), Vec::new());
        for server in servers {
            let folder = tempfile::Builder::new().prefix("way-").tempdir()?;
            let listener = UnixListener::bind(folder.path().join(SOCKET))?;
            let (cut, socket) = (Arc::clone(&cut), server.socket().join(SOCKET));
            thread::Builder::new().name("way".to_owned()).spawn(move || {
                for client in listener.incoming().flatten() {
                    let (cut, socket) = (Arc::clone(&cut), socket.clone());
                    // Without a thread, or a server, the client finds its connection closed.
                    let _ = thread::Builder::new().spawn(move || carry(&client, &socket, &cut));
                }
            })?;
            folders.push(folder);
        }
        Ok(Self { cut, folders })
    }

    /// The URL of a schema by this way.
    pub fn url(&self, schema: &str) -> String {
        socket_url(self.folders.iter().map(TempDir::path), schema)
    }

    /// Carries nothing any more, in either direction, until [`heal`](Self::heal).
    pub fn cut(&self) {
        self.cut.set(true);
    }

    /// Carries everything again, what was sent meanwhile first.
    pub fn heal(&self) {
        self.cut.set(false);
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.heal();
    }
}

fn carry(client: &UnixStream, socket: &Path, cut: &Arc<Cut>) {
    cut.pass();
    let Ok(server) = UnixStream::connect(socket) else {
        let _ = client.shutdown(Shutdown::Both);
        return;
    };
    let (Ok(answers), Ok(back)) = (server.try_clone(), client.try_clone()) else { return };
    let of_answers = Arc::clone(cut);
    let answering = thread::Builder::new().spawn(move || copy(answers, back, &of_answers));
    if let (Ok(to), Ok(from), Ok(_)) = (server.try_clone(), client.try_clone(), answering) {
        copy(from, to, cut);
    }
}

/// Copies until one of both ends, and ends the other.
fn copy(mut from: UnixStream, mut to: UnixStream, cut: &Cut) {
    let mut chunk = [0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        cut.pass();
        if chunk.get(..length).is_none_or(|bytes| to.write_all(bytes).is_err()) {
            break;
        }
    }
    // Nor does an end get through.
    cut.pass();
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
