//! A connection to a SQLite file.

use std::{fs, path::PathBuf, time::Duration};

use blindfold_runtime::FileLock;
use rusqlite::{
    Connection, ToSql, params_from_iter,
    types::{ToSqlOutput, ValueRef},
};

use super::BUSY_TIMEOUT_MS;
use crate::{
    StoreError,
    sql::session::{self, ReadRow, Row, Session, Value},
};

/// Length of the write-ahead log from which on the writer begins it anew. SQLite does so by itself long before, but never
/// while somebody reads without a pause.
pub const MAX_LOG_BYTES: u64 = 64 << 20;
/// How long readers are waited for then, in milliseconds. Reads of some rows end meanwhile; a backup does not, and holds up
/// nothing that is to be written.
const LOG_PATIENCE_MS: u64 = 10;
/// After an attempt for which readers left no pause the next one comes when the log has grown by one part of the limit in
/// so many.
const LOG_RETRY_PART: u64 = 8;

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl Row for rusqlite::Row<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>, StoreError> {
        Ok(match self.get_ref(column)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(value) => Value::Integer(value),
            ValueRef::Text(_) => self.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?.into(),
            ValueRef::Blob(bytes) => bytes.into(),
            ValueRef::Real(_) => return Err(StoreError::Stopped("a fraction in the database".to_owned())),
        })
    }
}

impl Session for Connection {
    fn execute_all(&self, statements: &[(&str, &[Value<'_>])]) -> Result<Vec<u64>, StoreError> {
        let run = |(sql, values): &(&str, &[Value<'_>])| {
            let changed = self.prepare_cached(sql)?.execute(params_from_iter(values.iter()))?;
            Ok(changed as u64)
        };
        statements.iter().map(run).collect()
    }

    fn query(&self, sql: &str, values: &[Value<'_>], read: ReadRow<'_>) -> Result<(), StoreError> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(values.iter()))?;
        while let Some(row) = rows.next()? {
            if read(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// A connection with what goes with it.
pub(super) struct SqliteConnection {
    connection: Connection,
    log: Log,
    /// Given back with the connection.
    _lock: Option<FileLock>,
}

impl SqliteConnection {
    pub(super) fn new(connection: Connection) -> Self {
        let log = Log::of(&connection, MAX_LOG_BYTES);
        Self { connection, log, _lock: None }
    }

    /// Holds the lock of the file as long as the connection.
    pub(super) fn holding(self, lock: FileLock) -> Self {
        Self { _lock: Some(lock), ..self }
    }

    /// Runs a statement without values that comes again and again.
    fn run(&self, sql: &str) -> Result<(), StoreError> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

impl session::Connection for SqliteConnection {
    fn session(&self) -> &dyn Session {
        &self.connection
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        self.run("BEGIN IMMEDIATE")
    }

    fn begin_write(&mut self) -> Result<(), StoreError> {
        self.run("SAVEPOINT one_write")
    }

    fn end_write(&mut self, keep: bool) -> Result<(), StoreError> {
        self.stands()?;
        if !keep {
            self.run("ROLLBACK TO one_write")?;
        }
        self.run("RELEASE one_write")
    }

    fn stands(&mut self) -> Result<(), StoreError> {
        if self.connection.is_autocommit() {
            // SQLite itself rolled the whole transaction back (disk full, input/output error).
            return Err(StoreError::Failed("the transaction was rolled back by the database".to_owned()));
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.run("COMMIT")
    }

    fn roll_back(&mut self) {
        if !self.connection.is_autocommit() {
            // If this fails, too, the next BEGIN says so.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn begin_read(&mut self) -> Result<(), StoreError> {
        Ok(self.connection.execute_batch("BEGIN")?)
    }

    fn end_read(&mut self) {
        self.roll_back();
    }

    fn after_group(&mut self) {
        self.log.bound(&self.connection);
    }

    fn log_bytes(&self) -> u64 {
        self.log.bytes
    }
}

/// The write-ahead log beside a database file.
struct Log {
    /// `None` for a database in memory.
    path: Option<PathBuf>,
    limit_bytes: u64,
    /// The length at which it is begun anew: above the limit after an attempt for which a reader left no pause.
    next_bytes: u64,
    /// The length at which is told that it is not.
    told_bytes: u64,
    /// Its length when it was looked at last.
    bytes: u64,
}

impl Log {
    fn of(connection: &Connection, limit_bytes: u64) -> Self {
        let path = connection.path().filter(|path| !path.is_empty()).map(|path| format!("{path}-wal").into());
        Self { path, limit_bytes, next_bytes: limit_bytes, told_bytes: limit_bytes, bytes: 0 }
    }

    /// Begins the log anew when it is too long. Whoever reads for long is not waited for.
    fn bound(&mut self, connection: &Connection) {
        let Some(path) = &self.path else { return };
        let bytes = fs::metadata(path).map_or(0, |found| found.len());
        self.bytes = bytes;
        if bytes < self.next_bytes {
            return;
        }
        let begun = begin_anew(connection);
        if matches!(begun, Ok(true)) {
            (self.next_bytes, self.told_bytes) = (self.limit_bytes, self.limit_bytes);
            return;
        }
        self.next_bytes = bytes.saturating_add(self.limit_bytes / LOG_RETRY_PART);
        if bytes < self.told_bytes {
            return;
        }
        self.told_bytes = bytes.saturating_add(self.limit_bytes);
        match begun {
            // What was written is in the log; the next write says whether the disk still takes any.
            Err(error) => tracing::error!(%error, bytes, "the write-ahead log could not be begun anew"),
            Ok(_) => tracing::warn!(bytes, "a reader keeps the write-ahead log from being begun anew"),
        }
    }
}

/// Whether the log is begun anew now. What can be moved out of it is moved in any case.
fn begin_anew(connection: &Connection) -> Result<bool, rusqlite::Error> {
    connection.busy_timeout(Duration::from_millis(LOG_PATIENCE_MS))?;
    let held = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
    connection.busy_timeout(Duration::from_millis(u64::from(BUSY_TIMEOUT_MS)))?;
    held.map(|held| !held)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;
    use crate::sql::{
        session::{execute, first},
        writer::Writer,
    };

    fn writer() -> Writer {
        let connection = Connection::open_in_memory().expect("memory");
        connection.execute_batch("CREATE TABLE t (x INTEGER)").expect("new");
        Writer::start(Box::new(SqliteConnection::new(connection))).expect("a thread")
    }

    #[tokio::test]
    async fn a_transaction_rolled_back_by_the_database_fails_its_writes() {
        let writer = writer();
        let rolled_back = writer
            .write(|session| session.execute_all(&[("INSERT INTO t VALUES (1)", &[]), ("ROLLBACK", &[])]));
        let error = rolled_back.await.expect_err("gone");
        assert!(matches!(error, StoreError::Failed(_)) && error.retry());
        let rows = writer.write(|session| {
            execute(session, "INSERT INTO t VALUES (2)", &[])?;
            first(session, "SELECT COUNT(*) FROM t", &[], |row| Ok(row.value(0)? == Value::Integer(1)))
        });
        assert_eq!(rows.await, Ok(Some(true)), "later writes go on");
    }

    /// The error of a disk, from inside one write of a group.
    fn disk_error() -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR), None)
    }

    #[tokio::test]
    async fn one_disk_error_in_the_middle_of_a_write_is_the_last_write() {
        let writer = writer();
        let failed = writer.write(|session| {
            execute(session, "INSERT INTO t VALUES (1)", &[])?;
            Err::<(), StoreError>(disk_error().into())
        });
        let error = failed.await.expect_err("the disk failed");
        assert!(matches!(error, StoreError::Stopped(_)) && !error.retry(), "{error}");
        let next = writer.write(|session| execute(session, "INSERT INTO t VALUES (2)", &[])).await;
        assert!(matches!(next, Err(StoreError::Stopped(_))), "{next:?}");
        assert_eq!(
            next.map(drop).map_err(|error| error.to_string()),
            Err(writer.stopped().await),
            "and it is told"
        );
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

    /// A backup held every write up for five seconds, each time that the log was too long.
    #[test]
    fn a_long_reader_is_not_waited_for_as_for_a_lock() {
        const LIMIT_BYTES: u64 = 200_000;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.db");
        let mut connection = Connection::open(&path).expect("new");
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x BLOB)").expect("new");
        let waits = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&waits);
        let wait = move |_: i32| {
            counted.fetch_add(1, Ordering::SeqCst);
            false
        };
        connection.busy_handler(Some(wait)).expect("set");
        let mut log = Log::of(&connection, LIMIT_BYTES);
        let reader = Connection::open(&path).expect("open");
        reader.execute_batch("BEGIN; SELECT COUNT(*) FROM t").expect("reads");
        for _ in 0..100 {
            connection.execute("INSERT INTO t VALUES (zeroblob(4000))", []).expect("space");
        }
        log.bound(&connection);
        assert!(log.bytes > LIMIT_BYTES && log.next_bytes > log.bytes, "the reader needs it");
        assert_eq!(waits.load(Ordering::SeqCst), 0);
        reader.execute_batch("COMMIT").expect("ends");
        log.next_bytes = LIMIT_BYTES;
        log.bound(&connection);
        assert_eq!(log.next_bytes, LIMIT_BYTES, "it is begun anew");
    }

    #[tokio::test]
    async fn a_writer_that_is_gone_is_named() {
        let writer = writer();
        let died = writer.write::<(), _>(|_| panic!("on purpose")).await;
        assert_eq!(died, Err(StoreError::Closed));
        assert_eq!(writer.write(|_| Ok(())).await, Err(StoreError::Closed));
    }
}
