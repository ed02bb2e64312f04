//! Taking a store that others take, too.

use std::fmt;

use blindfold_runtime::{Instant, blocking, now};

use super::{
    PostgresUrl,
    connection::{PostgresConnection, Sign},
    readers, schema, to_open,
};
use crate::{Attempt, Leader, SqlStore, Standby, StoreError, lease::Candidate};

/// How long one attempt waits for the lock of the store. The server gives it at once when the connection of whoever has it
/// ends; a lease that ran out is seen between two attempts.
const ATTEMPT_MS: u64 = 300;
/// How long the lock may take after the session that had it was ended.
const HANDED_MS: u64 = 2_000;

/// The connection of a process that waits.
pub(crate) struct Watch {
    connection: PostgresConnection,
    /// The last sign of life of whoever has the store, and when it was new here.
    seen: Option<(Sign, Instant)>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Watch").field("seen", &self.seen).finish_non_exhaustive()
    }
}

enum Looked {
    Taken { writer: PostgresConnection, term: u64 },
    Led(Watch, Leader),
}

impl Standby {
    /// One attempt to take the store; takes about 0.3 s where another process has it. Dropping the future gives the attempt
    /// up, and what it took with it.
    ///
    /// # Errors
    /// As [`SqlStore::connect`]. Another attempt connects anew.
    pub async fn attempt(&mut self) -> Result<Attempt, StoreError> {
        let (server, candidate, watch) = (self.server.clone(), self.candidate.clone(), self.watch.take());
        let attempted = blocking(move || {
            let attempt = || match look(&server, &candidate, watch)? {
                Looked::Taken { writer, term } => {
                    let store = SqlStore::on_connections(Box::new(writer), readers(&server)?);
                    let store = store.map_err(|error| StoreError::Failed(error.to_string()))?;
                    Ok((None, Attempt::Taken(store.on_server().in_term(term))))
                }
                Looked::Led(watch, leader) => Ok((Some(watch), Attempt::Led(leader))),
            };
            attempt().map_err(|error| to_open(&server, error))
        });
        let (watch, attempt) = attempted.await.map_err(|_| StoreError::Closed)??;
        self.watch = watch;
        Ok(attempt)
    }
}

fn look(server: &PostgresUrl, candidate: &Candidate, watch: Option<Watch>) -> Result<Looked, StoreError> {
    let Watch { connection, seen } = match watch {
        Some(watch) => watch,
        None => {
            let connection = PostgresConnection::connect(server)?;
            connection.check_server()?;
            Watch { connection, seen: None }
        }
    };
    if connection.try_lock(ATTEMPT_MS)? {
        return take(connection, candidate);
    }
    if !schema::tells_leader(&connection)? {
        // A program without leases has it.
        return Ok(Looked::Led(Watch { connection, seen: None }, Leader::default()));
    }
    let (leader, sign) = connection.leader()?;
    let since = match seen {
        Some((known, since)) if known == sign => since,
        _ => now(),
    };
    if leader.lease.is_some_and(|lease| since.elapsed() >= lease) {
        // Stopped, or cut off, or a machine that is gone. It may hold rows, too.
        if let Some(holder) = connection.lock_holder()? {
            tracing::warn!(term = leader.term, "whoever has the store gives no sign of life: taking it");
            connection.end_session(holder)?;
        }
        if connection.try_lock(HANDED_MS)? {
            return take(connection, candidate);
        }
        // Another one was faster, which has as long as this one had.
        return Ok(Looked::Led(Watch { connection, seen: None }, leader));
    }
    Ok(Looked::Led(Watch { connection, seen: Some((sign, since)) }, leader))
}

fn take(mut writer: PostgresConnection, candidate: &Candidate) -> Result<Looked, StoreError> {
    schema::migrate(&writer)?;
    let term = writer.take(Some(candidate))?;
    Ok(Looked::Taken { writer, term })
}
