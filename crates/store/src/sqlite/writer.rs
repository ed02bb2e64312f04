//! The one thread that writes.
//!
//! Writes that are queued at the same time share a transaction and so an fsync; each runs in a savepoint of its own,
//! so that one that is refused leaves the others untouched. Nobody hears of success before the commit.

use std::{fs, path::PathBuf, thread};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};

use super::disk::Inline;
use crate::StoreError;

/// Most writes that wait for the writer; further callers wait for a place.
pub const WRITE_QUEUE_LIMIT: usize = 4_096;
/// Most writes that share one transaction: bounds how long the first of them waits.
pub const MAX_GROUP_WRITES: usize = 256;
/// Length of the write-ahead log from which on the writer waits for readers, to begin it anew. SQLite does so by itself
/// long before, but never while somebody reads without a pause.
pub const MAX_LOG_BYTES: u64 = 64 << 20;

/// Tells the caller its outcome once it is known whether the transaction stands.
pub(super) type Finish = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// A queued write. Given a connection it runs and says what is to become of what it wrote; without one it does nothing.
/// The finish then answers its caller.
pub(super) type Job = Box<dyn FnOnce(Option<&Connection>) -> (Written, Finish) + Send>;

/// What is to become of what a job wrote.
pub(super) enum Written {
    Keep,
    Undo,
    /// The disk failed under it: nothing is to be written any more.
    Stop(StoreError),
}

/// The callers' side of the writer.
#[derive(Clone, Debug)]
pub(super) enum Writer {
    Thread {
        jobs: mpsc::Sender<Job>,
        /// Why the disk takes no more writes. Its sender is gone when the thread has closed everything.
        stopped: watch::Receiver<Option<String>>,
    },
    Inline(Inline),
}

impl Writer {
    /// Starts the thread, which ends when the last clone is gone and everything queued is written. `keep` is dropped
    /// with it.
    pub(super) fn start(connection: Connection, keep: impl Send + 'static) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel(WRITE_QUEUE_LIMIT);
        let (stop, stopped) = watch::channel(None);
        let log = Log::of(&connection, MAX_LOG_BYTES);
        thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            write_all(&connection, queue, log, &stop);
            drop(connection);
            drop(keep);
            drop(stop);
        })?;
        Ok(Self::Thread { jobs, stopped })
    }

    /// Gives this clone up and waits for the end of the thread.
    pub(super) async fn close(self) {
        let Self::Thread { jobs, mut stopped } = self else { return };
        drop(jobs);
        // What is awaited is the loss of the sender.
        while stopped.changed().await.is_ok() {}
    }

    /// [`Store::stopped`](crate::Store::stopped).
    pub(super) fn stopped(&self) -> impl Future<Output = String> + Send + 'static {
        let mut stopped = match self {
            Self::Thread { stopped, .. } => stopped.clone(),
            Self::Inline(inline) => inline.stopped(),
        };
        async move {
            match stopped.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone()) {
                Some(reason) => StoreError::Stopped(reason).to_string(),
                // Closed in good order.
                None => std::future::pending().await,
            }
        }
    }

    /// Queues a write and waits until it is committed.
    pub(super) async fn write<T, F>(&self, operation: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let jobs = match self {
            Self::Thread { jobs, .. } => jobs,
            Self::Inline(inline) => return inline.write(operation).await,
        };
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let outcome = connection.map_or(Err(StoreError::Closed), operation);
            let written = match &outcome {
                Ok(_) => Written::Keep,
                Err(failure @ StoreError::Stopped(_)) => Written::Stop(failure.clone()),
                Err(_) => Written::Undo,
            };
            let finish: Finish = Box::new(move |committed| {
                // A caller that went away does not want to know.
                let _ = answer.send(match (outcome, committed) {
                    (Ok(_) | Err(StoreError::Closed), Err(failure)) => Err(failure),
                    (outcome, _) => outcome,
                });
            });
            (written, finish)
        });
        jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        answered.await.map_err(|_| StoreError::Closed)?
    }
}

fn write_all(
    connection: &Connection,
    mut queue: mpsc::Receiver<Job>,
    mut log: Log,
    stop: &watch::Sender<Option<String>>,
) {
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
        if let Err(error) = &outcome {
            if !connection.is_autocommit() {
                // If this fails, too, the next BEGIN says so.
                let _ = connection.execute_batch("ROLLBACK");
            }
            tracing::error!(%error, "nothing of this group of writes is stored");
            if let StoreError::Stopped(reason) = error {
                stopped = Some(reason.clone());
                stop.send_replace(stopped.clone());
            }
        }
        for finish in finishes {
            finish(outcome.clone());
        }
        if stopped.is_none() {
            log.bound(connection);
        }
    }
}

fn write_group(
    connection: &Connection,
    first: Job,
    queue: &mut mpsc::Receiver<Job>,
    finishes: &mut Vec<Finish>,
) -> Result<(), StoreError> {
    let mut next = Some(first);
    if let Err(error) = connection.execute_batch("BEGIN IMMEDIATE") {
        // Its caller is told with the group.
        finishes.extend(next.take().map(|job| job(None).1));
        return Err(error.into());
    }
    while let Some(job) = next.take() {
        let began = connection.execute_batch("SAVEPOINT one_write");
        let (written, finish) = job(began.is_ok().then_some(connection));
        finishes.push(finish);
        began?;
        if let Written::Stop(failure) = written {
            return Err(failure);
        }
        if connection.is_autocommit() {
            // SQLite itself rolled the whole transaction back (disk full, input/output error): the writes before
            // this one are gone as well.
            return Err(StoreError::Failed("the transaction was rolled back by the database".to_owned()));
        }
        connection.execute_batch(match written {
            Written::Keep => "RELEASE one_write",
            _ => "ROLLBACK TO one_write; RELEASE one_write",
        })?;
        if finishes.len() < MAX_GROUP_WRITES {
            next = queue.try_recv().ok();
        }
    }
    Ok(connection.execute_batch("COMMIT")?)
}

/// The write-ahead log beside a database file.
struct Log {
    /// None for a database in memory.
    path: Option<PathBuf>,
    limit_bytes: u64,
    /// The length at which it is begun anew: above the limit after an attempt for which a reader left no pause.
    next_bytes: u64,
}

impl Log {
    fn of(connection: &Connection, limit_bytes: u64) -> Self {
        let path = connection.path().filter(|path| !path.is_empty()).map(|path| format!("{path}-wal").into());
        Self { path, limit_bytes, next_bytes: limit_bytes }
    }

    /// Begins the log anew when it is too long. Waits for readers as long as the connection waits for locks.
    fn bound(&mut self, connection: &Connection) {
        let Some(path) = &self.path else { return };
        let bytes = fs::metadata(path).map_or(0, |found| found.len());
        if bytes < self.next_bytes {
            return;
        }
        let busy: Result<bool, _> =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        self.next_bytes = match busy {
            Ok(false) => self.limit_bytes,
            Ok(true) => {
                tracing::warn!(bytes, "a reader keeps the write-ahead log from being begun anew");
                bytes.saturating_add(self.limit_bytes)
            }
            Err(error) => {
                // What was written is in the log; the next write says whether the disk still takes any.
                tracing::error!(%error, bytes, "the write-ahead log could not be begun anew");
                bytes.saturating_add(self.limit_bytes)
            }
        };
    }
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

    /// The error of a disk, from inside one write of a group.
    fn disk_error() -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR), None)
    }

    #[tokio::test]
    async fn one_disk_error_in_the_middle_of_a_write_is_the_last_write() {
        let writer = writer();
        let failed = writer.write(|connection| {
            connection.execute_batch("INSERT INTO t VALUES (1)")?;
            Err::<(), StoreError>(disk_error().into())
        });
        let error = failed.await.expect_err("the disk failed");
        assert!(matches!(error, StoreError::Stopped(_)) && !error.retry(), "{error}");
        let next = writer.write(|connection| Ok(connection.execute_batch("INSERT INTO t VALUES (2)")?)).await;
        assert!(matches!(next, Err(StoreError::Stopped(_))), "{next:?}");
        assert_eq!(next.map_err(|error| error.to_string()), Err(writer.stopped().await), "and it is told");
    }

    #[test]
    fn a_log_that_readers_hold_is_begun_anew_after_them() {
        const LIMIT_BYTES: u64 = 200_000;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.db");
        let connection = Connection::open(&path).expect("new");
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x BLOB)").expect("new");
        connection.busy_timeout(std::time::Duration::ZERO).expect("set");
        let length = || fs::metadata(folder.path().join("log.db-wal")).map_or(0, |found| found.len());
        let mut log = Log::of(&connection, LIMIT_BYTES);
        let mut write = |times: usize| {
            for _ in 0..times {
                connection.execute("INSERT INTO t VALUES (zeroblob(4000))", []).expect("space");
                log.bound(&connection);
            }
        };
        let reader = Connection::open(&path).expect("open");
        reader.execute_batch("BEGIN; SELECT COUNT(*) FROM t").expect("reads");
        write(200);
        assert!(length() > 2 * LIMIT_BYTES, "it is what the reader needs");
        reader.execute_batch("COMMIT").expect("ends");
        write(100);
        assert!(length() <= LIMIT_BYTES + 20_000, "{}", length());
    }

    #[tokio::test]
    async fn a_writer_that_is_gone_is_named() {
        let writer = writer();
        let died = writer.write::<(), _>(|_| panic!("on purpose")).await;
        assert_eq!(died, Err(StoreError::Closed));
        assert_eq!(writer.write(|_| Ok(())).await, Err(StoreError::Closed));
    }
}
