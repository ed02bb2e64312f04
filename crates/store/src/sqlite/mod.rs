//! The embedded engine: one SQLite file, write-ahead log, an fsync for each group of writes.

mod connection;
mod disk;
mod schema;

use std::path::{Path, PathBuf};

use blindfold_runtime::FileLock;
use rusqlite::{Connection, OpenFlags, config::DbConfig};

pub use connection::MAX_LOG_BYTES;
use connection::SqliteConnection;
pub(crate) use disk::Inline;
pub use disk::{Condition, Disk, DiskFault};
pub use schema::{FIRST_SCHEMA, SCHEMA_VERSION};

use crate::{
    StoreError,
    sql::{READERS, SqlStore, session, writer::Writer},
};

/// How long a connection waits for a lock that another holds.
const BUSY_TIMEOUT_MS: u32 = 5_000;
/// Prepared statements kept per connection.
const STATEMENT_CACHE: usize = 256;
/// How errors name a database in memory.
const MEMORY: &str = ":memory:";

impl SqlStore {
    /// Opens or creates the SQLite file, brings its schema up to date, and takes the lock beside it (`<path>.lock`), which
    /// the operating system gives back when the process ends in any way. Blocks on the disk: a call for start-up.
    ///
    /// # Errors
    /// [`StoreError::InUse`], [`StoreError::Open`], [`StoreError::OlderSchema`], [`StoreError::NewerSchema`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let lock = take_lock(path)?;
        let mut connection = Connection::open(path).map_err(|error| failed(&name, &error))?;
        prepare(&connection, Durability::File).map_err(|error| failed(&name, &error))?;
        schema::migrate(&mut connection).map_err(|error| to_open(&name, error))?;
        let readers = readers(path)?;
        let writer = SqliteConnection::new(connection).holding(lock);
        Self::on_connections(Box::new(writer), readers).map_err(|error| failed(&name, &error))
    }

    /// Opens a SQLite file that another process may be writing, to read what it has stored: takes no lock, and refuses
    /// every write. Blocks on the disk.
    ///
    /// # Errors
    /// [`StoreError::Open`], [`StoreError::NewerSchema`].
    pub fn open_reader(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let writer = opened_reader(path)?;
        schema::check(&writer).map_err(|error| to_open(&name, error))?;
        let writer = SqliteConnection::new(writer);
        Self::on_connections(Box::new(writer), readers(path)?).map_err(|error| failed(&name, &error))
    }

    /// Gives a SQLite file that nobody has open the form in which it can be read from a medium that takes no writes, and
    /// without leaving anything beside it. The next role that opens it changes that again.
    ///
    /// # Errors
    /// [`StoreError::InUse`], [`StoreError::Open`].
    pub fn make_plain(path: impl AsRef<Path>) -> Result<(), StoreError> {
        let path = path.as_ref();
        let _lock = take_lock(path)?;
        let made = Connection::open(path)
            .and_then(|connection| connection.pragma_update(None, "journal_mode", "DELETE"));
        made.map_err(|error| failed(&path.display().to_string(), &error))
    }

    /// A store that lives as long as its clones, for tests and trials. Nothing is durable.
    ///
    /// # Errors
    /// [`StoreError::Open`].
    pub fn in_memory() -> Result<Self, StoreError> {
        let mut connection = Connection::open_in_memory().map_err(|error| failed(MEMORY, &error))?;
        prepare(&connection, Durability::Memory).map_err(|error| failed(MEMORY, &error))?;
        schema::migrate(&mut connection)?;
        let writer = SqliteConnection::new(connection);
        Self::on_connections(Box::new(writer), Vec::new()).map_err(|error| failed(MEMORY, &error))
    }

    /// The store on a disk in memory. Whoever had that disk before reads and writes it no more. Its operations run where
    /// they are awaited: for simulations.
    pub fn on(disk: &Disk) -> Self {
        Self::on_writer(Writer::Inline(Inline::take(disk)))
    }
}

fn failed(store: &str, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Open { store: store.to_owned(), reason: error.to_string() }
}

/// A failure while the file is opened is one of opening it.
fn to_open(store: &str, error: StoreError) -> StoreError {
    match error {
        StoreError::Failed(reason) => failed(store, &reason),
        other => other,
    }
}

fn opened_reader(path: &Path) -> Result<Connection, StoreError> {
    let opened = || -> Result<Connection, rusqlite::Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        prepare(&connection, Durability::Reader)?;
        Ok(connection)
    };
    opened().map_err(|error| failed(&path.display().to_string(), &error))
}

fn readers(path: &Path) -> Result<Vec<Box<dyn session::Connection>>, StoreError> {
    let reader = |_| -> Result<Box<dyn session::Connection>, StoreError> {
        Ok(Box::new(SqliteConnection::new(opened_reader(path)?)))
    };
    (0..READERS).map(reader).collect()
}

enum Durability {
    File,
    Reader,
    Memory,
}

fn prepare(connection: &Connection, durability: Durability) -> Result<(), rusqlite::Error> {
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    // Else statements whose plan could depend on a value are planned anew for each one: the library is built to look at
    // statistics that no database of ours has.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(std::time::Duration::from_millis(u64::from(BUSY_TIMEOUT_MS)))?;
    match durability {
        Durability::File => {
            connection.pragma_update(None, "journal_mode", "WAL")?;
            // An fsync before every commit returns; fullfsync matters where fsync does not reach the disk (macOS).
            connection.pragma_update(None, "synchronous", "FULL")?;
            connection.pragma_update(None, "fullfsync", true)
        }
        Durability::Reader => {
            connection.pragma_update(None, "query_only", true)?;
            connection.pragma_update(None, "trusted_schema", false)?;
            connection.pragma_update(None, "cell_size_check", true)
        }
        Durability::Memory => Ok(()),
    }
}

/// The lock is a file of its own, because SQLite closes and locks its file by its own rules.
fn take_lock(path: &Path) -> Result<FileLock, StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock_path = PathBuf::from(name);
    let lock = FileLock::acquire(&lock_path, &FileLock::options())
        .map_err(|error| failed(&lock_path.display().to_string(), &error))?;
    lock.ok_or_else(|| StoreError::InUse(path.display().to_string()))
}
