//! The one thread that writes.
//!
//! Writes that are queued at the same time share a transaction and so an fsync; each runs in a savepoint of its own,
//! so that one that is refused leaves the others untouched. Nobody hears of success before the commit.

use std::thread;

use rusqlite::{Connection, ErrorCode};
use tokio::sync::{mpsc, oneshot};

use crate::StoreError;

/// Most writes that wait for the writer; further callers wait for a place.
pub const WRITE_QUEUE_LIMIT: usize = 4_096;
/// Most writes that share one transaction: bounds how long the first of them waits.
pub const MAX_GROUP_WRITES: usize = 256;

/// Tells the caller its outcome once it is known whether the transaction stands.
type Finish = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// A queued write. Given a connection it runs and says whether to keep what it wrote; without one it does nothing. The
/// finish then answers its caller.
type Job = Box<dyn FnOnce(Option<&Connection>) -> (bool, Finish) + Send>;

/// The callers' side of the writer.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
}

impl Writer {
    /// Starts the thread, which ends when the last clone is gone and everything queued is written. `keep` is dropped
    /// with it.
    pub(super) fn start(connection: Connection, keep: impl Send + 'static) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel(WRITE_QUEUE_LIMIT);
        thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            write_all(&connection, queue);
            drop(connection);
            drop(keep);
        })?;
        Ok(Self { jobs })
    }

    /// Queues a write and waits until it is committed.
    pub(super) async fn write<T, F>(&self, operation: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let outcome = connection.map_or(Err(StoreError::Closed), operation);
            let keep = outcome.is_ok();
            let finish: Finish = Box::new(move |committed| {
                // A caller that went away does not want to know.
                let _ = answer.send(match (outcome, committed) {
                    (Ok(_) | Err(StoreError::Closed), Err(failure)) => Err(failure),
                    (outcome, _) => outcome,
                });
            });
            (keep, finish)
        });
        self.jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        answered.await.map_err(|_| StoreError::Closed)?
    }
}

fn write_all(connection: &Connection, mut queue: mpsc::Receiver<Job>) {
    // After an input/output error it is unknown what the disk holds, and a second attempt can seem to succeed
    // without having written anything. So the first such error is the last write.
    let mut stopped: Option<String> = None;
    while let Some(first) = queue.blocking_recv() {
        let mut finishes = Vec::new();
        let outcome = match &stopped {
            Some(reason) => {
                first(None).1(Err(StoreError::Stopped(reason.clone())));
                continue;
            }
            None => write_group(connection, first, &mut queue, &mut finishes),
        };
        let told = match outcome {
            Ok(()) => Ok(()),
            Err(error) => {
                if !connection.is_autocommit() {
                    // If this fails, too, the next BEGIN says so.
                    let _ = connection.execute_batch("ROLLBACK");
                }
                tracing::error!(%error, "storage failed; nothing of this group of writes is stored");
                if is_fatal(&error) {
                    stopped = Some(error.to_string());
                    Err(StoreError::Stopped(error.to_string()))
                } else {
                    Err(StoreError::Failed(error.to_string()))
                }
            }
        };
        for finish in finishes {
            finish(told.clone());
        }
    }
}

fn write_group(
    connection: &Connection,
    first: Job,
    queue: &mut mpsc::Receiver<Job>,
    finishes: &mut Vec<Finish>,
) -> Result<(), rusqlite::Error> {
    let mut next = Some(first);
    if let Err(error) = connection.execute_batch("BEGIN IMMEDIATE") {
        // Its caller is told with the group.
        finishes.extend(next.take().map(|job| job(None).1));
        return Err(error);
    }
    while let Some(job) = next.take() {
        let began = connection.execute_batch("SAVEPOINT one_write");
        let (keep, finish) = job(began.is_ok().then_some(connection));
        finishes.push(finish);
        began?;
        if connection.is_autocommit() {
            // SQLite itself rolled the whole transaction back (disk full, input/output error): the writes before
            // this one are gone as well.
            return Err(rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL),
                Some("the transaction was rolled back by the database".to_owned()),
            ));
        }
        connection.execute_batch(if keep {
            "RELEASE one_write"
        } else {
            "ROLLBACK TO one_write; RELEASE one_write"
        })?;
        if finishes.len() < MAX_GROUP_WRITES {
            next = queue.try_recv().ok();
        }
    }
    connection.execute_batch("COMMIT")
}

fn is_fatal(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer() -> Writer {
        let connection = Connection::open_in_memory().expect("memory");
        connection.execute_batch("CREATE TABLE t (x INTEGER)").expect("new");
        Writer::start(connection, ()).expect("a thread")
    }

    #[tokio::test]
    async fn a_transaction_rolled_back_by_the_database_fails_its_writes() {
        let writer = writer();
        let rolled_back =
            writer.write(|connection| Ok(connection.execute_batch("INSERT INTO t VALUES (1); ROLLBACK")?));
        let error = rolled_back.await.expect_err("gone");
        assert!(matches!(error, StoreError::Failed(_)) && error.retry());
        let rows = writer.write(|connection| {
            connection.execute_batch("INSERT INTO t VALUES (2)")?;
            Ok(connection.query_row("SELECT COUNT(*) FROM t", [], |row| row.get::<_, i64>(0))?)
        });
        assert_eq!(rows.await, Ok(1), "later writes go on");
    }

    #[tokio::test]
    async fn a_writer_that_is_gone_is_named() {
        let writer = writer();
        let died = writer.write::<(), _>(|_| panic!("on purpose")).await;
        assert_eq!(died, Err(StoreError::Closed));
        assert_eq!(writer.write(|_| Ok(())).await, Err(StoreError::Closed));
    }
}
