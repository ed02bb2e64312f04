//! Taking a store that others take, too.

use std::fmt;

use blindfold_runtime::blocking;

use super::{PostgresUrl, connection::PostgresConnection, readers, schema, to_open};
use crate::{Attempt, Leader, SqlStore, Standby, StoreError, lease::Candidate};

/// How long one attempt waits for the lock of the store. The server gives it at once when the connection of whoever has it
/// ends; a lease that ran out is seen between two attempts.
const ATTEMPT_MS: u64 = 300;
/// How long the lock may take after the session that had it was ended.
const HANDED_MS: u64 = 2_000;

/// The connection of a process that waits.
pub(crate) struct Watch {
    connection: PostgresConnection,
    /// The session that had the lock when the lease was seen to have run out.
    expired: Option<u64>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Watch").field("expired", &self.expired).finish_non_exhaustive()
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
                    Ok((None, Attempt::Taken(store.in_term(term))))
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
    let Watch { connection, expired } = match watch {
        Some(watch) => watch,
        None => {
            let connection = PostgresConnection::connect(server)?;
            connection.check_server()?;
            Watch { connection, expired: None }
        }
    };
    if connection.try_lock(ATTEMPT_MS)? {
        return take(connection, candidate);
    }
    if !schema::tells_leader(&connection)? {
        // A program without leases has it.
        return Ok(Looked::Led(Watch { connection, expired: None }, Leader::default()));
    }
    let leader = connection.leader()?;
    if leader.lease.is_none_or(|lease| !lease.is_zero()) {
        return Ok(Looked::Led(Watch { connection, expired: None }, leader));
    }
    let holder = connection.lock_holder()?;
    match holder {
        // It had as long as one attempt to set its lease anew: it is stopped, or cut off, or a machine that is gone. It may
        // hold rows, too.
        Some(holder) if expired == Some(holder) => {
            connection.end_session(holder)?;
            if connection.try_lock(HANDED_MS)? {
                return take(connection, candidate);
            }
        }
        _ => {}
    }
    Ok(Looked::Led(Watch { connection, expired: holder }, leader))
}

fn take(mut writer: PostgresConnection, candidate: &Candidate) -> Result<Looked, StoreError> {
    schema::migrate(&writer)?;
    let term = writer.take(Some(candidate))?;
    Ok(Looked::Taken { writer, term })
}
