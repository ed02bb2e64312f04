//! A way to a server that does what a test plans to the next commit of a writer.
#![allow(dead_code, clippy::unwrap_used)]

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use blindfold_servers::Postgres;
use blindfold_store::PostgresUrl;

/// What happens to the next COMMIT.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    Nothing,
    /// It is passed on and stands; the client is told this (severity, SQLSTATE) in place of its answer, and the way ends.
    Told(&'static str, &'static str),
    /// It is passed on and stands; the way ends before the answer.
    LoseAnswer,
    /// The same with every commit, and no new connection is taken.
    LoseAll,
    /// It never arrives, and the way ends.
    Cut,
    /// It never arrives, and nothing else does on that connection, which stays: as with a client that was stopped.
    Hold,
}

pub struct Relay {
    port: u16,
    plan: Arc<Mutex<Plan>>,
}

fn told(severity: &str, code: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for (field, text) in [(b'S', severity), (b'V', severity), (b'C', code), (b'M', "told by the relay")] {
        body.push(field);
        body.extend_from_slice(text.as_bytes());
        body.push(0);
    }
    body.push(0);
    let mut message = vec![b'E'];
    message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(&body);
    message
}

impl Relay {
    pub fn to(server: &Postgres) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let plan = Arc::new(Mutex::new(Plan::Nothing));
        let (socket, shared) = (server.socket().join(".s.PGSQL.5432"), Arc::clone(&plan));
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, socket, plan) = (client.unwrap(), socket.clone(), Arc::clone(&shared));
                if *plan.lock().unwrap() != Plan::LoseAll {
                    thread::spawn(move || relayed(client, &socket, &plan));
                }
            }
        });
        Self { port, plan }
    }

    pub fn url(&self, schema: &str) -> PostgresUrl {
        let port = self.port;
        format!("postgres://blindfold@127.0.0.1:{port}/blindfold?options=-csearch_path%3D{schema}")
            .parse()
            .unwrap()
    }

    pub fn plan(&self, plan: Plan) {
        *self.plan.lock().unwrap() = plan;
    }
}

fn relayed(mut client: TcpStream, socket: &PathBuf, plan: &Mutex<Plan>) {
    let mut server = UnixStream::connect(socket).unwrap();
    let (mut answers, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let muted = Arc::new(Mutex::new(false));
    let mute = Arc::clone(&muted);
    thread::spawn(move || {
        let mut chunk = [0; 65_536];
        while let Ok(length @ 1..) = answers.read(&mut chunk) {
            let muted = mute.lock().unwrap();
            if !*muted && back.write_all(&chunk[..length]).is_err() {
                break;
            }
        }
        let _ = back.shutdown(Shutdown::Both);
    });
    let mut chunk = [0; 65_536];
    while let Ok(length @ 1..) = client.read(&mut chunk) {
        let request = &chunk[..length];
        let is_commit = request.windows(7).any(|bytes| bytes == b"COMMIT;");
        let mut next = plan.lock().unwrap();
        match (is_commit, *next) {
            (true, Plan::Told(severity, code)) => {
                *next = Plan::Nothing;
                *muted.lock().unwrap() = true;
                server.write_all(request).unwrap();
                thread::sleep(Duration::from_millis(300));
                client.write_all(&told(severity, code)).unwrap();
                break;
            }
            (true, Plan::LoseAnswer | Plan::LoseAll) => {
                let _ = client.shutdown(Shutdown::Both);
                server.write_all(request).unwrap();
                if *next == Plan::LoseAnswer {
                    *next = Plan::Nothing;
                }
            }
            (true, Plan::Hold) => {
                *next = Plan::Nothing;
                drop(next);
                while let Ok(1..) = client.read(&mut chunk) {}
                break;
            }
            (true, Plan::Cut) => {
                *next = Plan::Nothing;
                break;
            }
            _ if server.write_all(request).is_err() => break,
            _ => {}
        }
    }
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}
