//! The embedded store: one SQLite file, write-ahead log, an fsync for each group of writes.

mod confidential;
mod convert;
mod disk;
mod reads;
mod schema;
mod writer;
mod writes;

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use alloy_primitives::{Address, B256};
use async_trait::async_trait;
use blindfold_protocol::{
    BatchHints, Certificate, Deployment, Release,
    ledger::{Account, Held, LedgerEntry, LiveNonce},
};
use blindfold_runtime::blocking;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use disk::Inline;
pub use disk::{Condition, Disk, DiskFault};
pub use schema::{FIRST_SCHEMA, SCHEMA_VERSION};
use writer::Writer;
pub use writer::{MAX_GROUP_WRITES, MAX_LOG_BYTES, WRITE_QUEUE_LIMIT};
pub use writes::MAX_META_VALUE_BYTES;

use crate::{
    BatchRecord, BlockRecord, Heads, ItemLocation, LedgerHead, PendingEnvelope, PostedRecord, SealedRecord,
    Stopped, Store, StoreError,
};

/// Connections that read beside the writer.
pub const READERS: usize = 4;
/// Most records of one [`Store::batches`] or [`Store::blocks`] answer.
pub const MAX_PAGE_RECORDS: usize = 256;
/// How long a connection waits for a lock that another holds.
const BUSY_TIMEOUT_MS: u32 = 5_000;
/// Prepared statements kept per connection.
const STATEMENT_CACHE: usize = 64;

/// The embedded [`Store`]. Clones share the file; the last one that is dropped closes it.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    // Dropped first: SQLite clears the log away with its last connection, which has to be one that writes.
    readers: Option<Arc<Readers>>,
    writer: Writer,
}

#[derive(Debug)]
struct Readers {
    idle: Mutex<Vec<Connection>>,
    places: Arc<Semaphore>,
}

impl SqliteStore {
    /// Opens or creates the file, brings its schema up to date, and takes the lock beside it (`<path>.lock`), which
    /// the operating system gives back when the process ends in any way. Blocks on the disk: a call for start-up.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let failed = |reason: &dyn std::fmt::Display| StoreError::Open {
            path: path.to_owned(),
            reason: reason.to_string(),
        };
        let lock = take_lock(path)?;
        let mut connection = Connection::open(path).map_err(|error| failed(&error))?;
        prepare(&connection, Durability::File).map_err(|error| failed(&error))?;
        schema::migrate(&mut connection).map_err(|error| match error {
            StoreError::Failed(reason) => failed(&reason),
            other => other,
        })?;
        let mut idle = Vec::with_capacity(READERS);
        for _ in 0..READERS {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let reader = Connection::open_with_flags(path, flags).map_err(|error| failed(&error))?;
            prepare(&reader, Durability::Reader).map_err(|error| failed(&error))?;
            idle.push(reader);
        }
        let readers = Readers { idle: Mutex::new(idle), places: Arc::new(Semaphore::new(READERS)) };
        let writer = Writer::start(connection, lock).map_err(|error| failed(&error))?;
        Ok(Self { writer, readers: Some(Arc::new(readers)) })
    }

    /// Opens a file that another process may be writing, to read what it has stored: takes no lock, and refuses every
    /// write. Blocks on the disk.
    pub fn open_reader(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let failed = |reason: &dyn std::fmt::Display| StoreError::Open {
            path: path.to_owned(),
            reason: reason.to_string(),
        };
        let opened = || -> Result<Connection, rusqlite::Error> {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags)?;
            prepare(&connection, Durability::Reader)?;
            Ok(connection)
        };
        let writer = opened().map_err(|error| failed(&error))?;
        schema::check(&writer).map_err(|error| match error {
            StoreError::Failed(reason) => failed(&reason),
            other => other,
        })?;
        let idle = (0..READERS).map(|_| opened()).collect::<Result<Vec<_>, _>>();
        let idle = idle.map_err(|error| failed(&error))?;
        let readers = Readers { idle: Mutex::new(idle), places: Arc::new(Semaphore::new(READERS)) };
        let writer = Writer::start(writer, ()).map_err(|error| failed(&error))?;
        Ok(Self { writer, readers: Some(Arc::new(readers)) })
    }

    /// A store that lives as long as its clones, for tests and trials. Nothing is durable.
    pub fn in_memory() -> Result<Self, StoreError> {
        let failed = |error: &dyn std::fmt::Display| StoreError::Open {
            path: PathBuf::from(":memory:"),
            reason: error.to_string(),
        };
        let mut connection = Connection::open_in_memory().map_err(|error| failed(&error))?;
        prepare(&connection, Durability::Memory).map_err(|error| failed(&error))?;
        schema::migrate(&mut connection)?;
        let writer = Writer::start(connection, ()).map_err(|error| failed(&error))?;
        Ok(Self { writer, readers: None })
    }

    /// The store on a disk in memory. Whoever had that disk before reads and writes it no more. Its operations run where
    /// they are awaited: for simulations.
    pub fn on(disk: &Disk) -> Self {
        Self { writer: Writer::Inline(Inline::take(disk)), readers: None }
    }

    /// Gives this clone up and waits until the files are closed: until every other clone is gone, too, and everything
    /// queued is written. Then the database is one file again, with no log beside it, and its lock is free.
    pub async fn close(self) {
        let Self { readers, writer } = self;
        if let Some(readers) = readers {
            let places = Arc::clone(&readers.places);
            drop(readers);
            // Reads that nobody waits for any more hold their connections until they end.
            let _all = places.acquire_many_owned(READERS as u32).await;
        }
        writer.close().await;
    }

    async fn write<T, F>(&self, operation: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        self.writer.write(operation).await
    }

    /// Runs a query on a connection of its own, in one read transaction, off the async threads.
    async fn read<T, F>(&self, query: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        if let Writer::Inline(inline) = &self.writer {
            return inline.read(query).await;
        }
        let Some(readers) = self.readers.clone() else {
            // A database in memory has one connection.
            return self.writer.write(query).await;
        };
        let place = Arc::clone(&readers.places).acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let found = blocking(move || {
            let taken = readers.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            // There are as many places as connections.
            let mut connection = taken.ok_or(StoreError::Closed)?;
            let found = match connection.transaction() {
                Ok(snapshot) => query(&snapshot),
                Err(error) => Err(error.into()),
            };
            readers.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            drop(readers);
            drop(place);
            found
        });
        found.await.map_err(|_| StoreError::Closed)?
    }
}

enum Durability {
    File,
    Reader,
    Memory,
}

fn prepare(connection: &Connection, durability: Durability) -> Result<(), rusqlite::Error> {
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    connection.busy_timeout(std::time::Duration::from_millis(u64::from(BUSY_TIMEOUT_MS)))?;
    match durability {
        Durability::File => {
            connection.pragma_update(None, "journal_mode", "WAL")?;
            // An fsync before every commit returns; fullfsync matters where fsync does not reach the disk (macOS).
            connection.pragma_update(None, "synchronous", "FULL")?;
            connection.pragma_update(None, "fullfsync", true)
        }
        Durability::Reader => connection.pragma_update(None, "query_only", true),
        Durability::Memory => Ok(()),
    }
}

/// The lock is a file of its own, because SQLite closes and locks its file by its own rules.
fn take_lock(path: &Path) -> Result<File, StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock_path = PathBuf::from(name);
    let failed =
        |error: &std::io::Error| StoreError::Open { path: lock_path.clone(), reason: error.to_string() };
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock_path)
        .map_err(|error| failed(&error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(failed(&error)),
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn stopped(&self) -> Stopped {
        Box::pin(self.writer.stopped())
    }

    async fn bind(&self, deployment: &Deployment, role: &str) -> Result<(), StoreError> {
        let (deployment, role) = (*deployment, role.to_owned());
        self.write(move |connection| writes::bind(connection, &deployment, &role)).await
    }

    async fn put_envelope(&self, envelope: PendingEnvelope) -> Result<(), StoreError> {
        self.write(move |connection| writes::put_envelope(connection, &envelope)).await
    }

    async fn remove_envelopes(&self, ids: &[B256], outcome: &str, number: u64) -> Result<(), StoreError> {
        let (ids, outcome) = (ids.to_vec(), outcome.to_owned());
        self.write(move |connection| writes::remove_envelopes(connection, &ids, &outcome, number)).await
    }

    async fn pending_envelopes(&self) -> Result<Vec<PendingEnvelope>, StoreError> {
        self.read(reads::pending_envelopes).await
    }

    async fn envelope_outcome(&self, id: B256) -> Result<Option<String>, StoreError> {
        self.read(move |connection| reads::envelope_outcome(connection, &id)).await
    }

    async fn prune_outcomes(&self, below_number: u64) -> Result<(), StoreError> {
        self.write(move |connection| writes::prune_outcomes(connection, below_number)).await
    }

    async fn put_sealed(&self, record: SealedRecord) -> Result<(), StoreError> {
        self.write(move |connection| writes::put_sealed(connection, &record)).await
    }

    async fn revert_sealed(&self, number: u64) -> Result<(), StoreError> {
        self.write(move |connection| writes::revert_sealed(connection, number)).await
    }

    async fn rewind(&self, through_number: u64, outcome: Option<&str>) -> Result<(), StoreError> {
        let outcome = outcome.map(str::to_owned);
        self.write(move |connection| writes::rewind(connection, through_number, outcome.as_deref())).await
    }

    async fn put_acknowledged(&self, number: u64, hash: B256, origin: u64) -> Result<(), StoreError> {
        self.write(move |connection| writes::put_acknowledged(connection, number, hash, origin)).await
    }

    async fn acknowledged(&self, number: u64) -> Result<Option<B256>, StoreError> {
        self.read(move |connection| reads::acknowledged(connection, number)).await
    }

    async fn was_acknowledged(&self, number: u64, hash: B256) -> Result<bool, StoreError> {
        self.read(move |connection| reads::was_acknowledged(connection, number, hash)).await
    }

    async fn put_certificate(&self, certificate: &Certificate) -> Result<(), StoreError> {
        let certificate = *certificate;
        self.write(move |connection| writes::put_certificate(connection, &certificate)).await
    }

    async fn put_release(&self, release: &Release) -> Result<(), StoreError> {
        let release = release.clone();
        self.write(move |connection| writes::put_release(connection, &release)).await
    }

    async fn put_hints(&self, hints: &BatchHints) -> Result<(), StoreError> {
        let hints = hints.clone();
        self.write(move |connection| writes::put_hints(connection, &hints)).await
    }

    async fn put_block(&self, block: BlockRecord) -> Result<(), StoreError> {
        self.write(move |connection| writes::put_block(connection, &block)).await
    }

    async fn revert_blocks(&self, from_number: u64) -> Result<(), StoreError> {
        self.write(move |connection| writes::revert_blocks(connection, from_number)).await
    }

    async fn put_posted(&self, posted: PostedRecord) -> Result<(), StoreError> {
        self.write(move |connection| writes::put_posted(connection, &posted)).await
    }

    async fn posted(&self) -> Result<Option<PostedRecord>, StoreError> {
        self.read(reads::posted).await
    }

    async fn batch(&self, number: u64) -> Result<Option<BatchRecord>, StoreError> {
        self.read(move |connection| reads::batch(connection, number)).await
    }

    async fn header_hash(&self, number: u64) -> Result<Option<B256>, StoreError> {
        self.read(move |connection| reads::header_hash(connection, number)).await
    }

    async fn batches(&self, from: u64, limit: usize) -> Result<Vec<BatchRecord>, StoreError> {
        self.read(move |connection| reads::batches(connection, from, limit.min(MAX_PAGE_RECORDS))).await
    }

    async fn block(&self, number: u64) -> Result<Option<BlockRecord>, StoreError> {
        self.read(move |connection| reads::block(connection, number)).await
    }

    async fn block_by_second(&self, second: u64) -> Result<Option<BlockRecord>, StoreError> {
        self.read(move |connection| reads::block_by_second(connection, second)).await
    }

    async fn block_of_batch(&self, number: u64) -> Result<Option<BlockRecord>, StoreError> {
        self.read(move |connection| reads::block_of_batch(connection, number)).await
    }

    async fn block_through(&self, batch: u64) -> Result<Option<(u64, B256)>, StoreError> {
        self.read(move |connection| reads::block_through(connection, batch)).await
    }

    async fn blocks(&self, from: u64, limit: usize) -> Result<Vec<BlockRecord>, StoreError> {
        self.read(move |connection| reads::blocks(connection, from, limit.min(MAX_PAGE_RECORDS))).await
    }

    async fn heads(&self) -> Result<Heads, StoreError> {
        self.read(reads::heads).await
    }

    async fn envelope_location(&self, id: B256) -> Result<Option<ItemLocation>, StoreError> {
        self.read(move |connection| reads::envelope_location(connection, &id)).await
    }

    async fn account(&self, payer: Address) -> Result<Option<Account>, StoreError> {
        self.read(move |connection| reads::account_of(connection, &payer)).await
    }

    async fn accounts(&self) -> Result<Vec<(Address, Account)>, StoreError> {
        self.read(reads::accounts).await
    }

    async fn nonces(&self) -> Result<Vec<LiveNonce>, StoreError> {
        self.read(reads::nonces).await
    }

    async fn held(&self) -> Result<Vec<(u64, Vec<Held>)>, StoreError> {
        self.read(reads::held).await
    }

    async fn ledger_head(&self) -> Result<Option<LedgerHead>, StoreError> {
        self.read(reads::ledger_head).await
    }

    async fn keep_ledgers_from(&self, number: u64) -> Result<(), StoreError> {
        self.write(move |connection| writes::keep_ledgers_from(connection, number)).await
    }

    async fn ledger_floor(&self) -> Result<Option<u64>, StoreError> {
        self.read(reads::ledger_floor).await
    }

    async fn entries_changed_after(
        &self,
        number: u64,
        up_to: u64,
    ) -> Result<Option<Vec<LedgerEntry>>, StoreError> {
        self.read(move |connection| reads::entries_changed_after(connection, number, up_to)).await
    }

    async fn meta(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let key = key.to_owned();
        self.read(move |connection| reads::meta(connection, &key)).await
    }

    async fn put_meta(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        let (key, value) = (key.to_owned(), value.to_vec());
        self.write(move |connection| writes::put_meta(connection, &key, &value)).await
    }
}
