//! The store: shared statements over one of two engines, an fsync or a commit for each group of writes.

pub(crate) mod confidential;
pub(crate) mod convert;
pub(crate) mod reads;
pub(crate) mod session;
pub(crate) mod writer;
pub(crate) mod writes;

use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::{Address, B256};
use async_trait::async_trait;
use blindfold_protocol::{
    BatchHints, Certificate, Deployment, Release, Signature65,
    ledger::{Account, FeeLedger, LedgerBefore, LedgerEntry},
};
use blindfold_runtime::{Instant, blocking};
use blindfold_telemetry::Metrics;
use tokio::sync::Semaphore;

pub use confidential::PRUNE_STEP_ROWS;
use session::{Connection, Session};
use writer::Writer;
pub use writer::{MAX_GROUP_WRITES, WRITE_QUEUE_LIMIT};
pub use writes::{FORGET_STEP_ROWS, MAX_META_VALUE_BYTES};

use crate::{
    Acknowledged, BatchRecord, BlockRecord, EnvelopePast, Heads, ItemLocation, LedgerHead, PendingEnvelope,
    PostedRecord, Pruned, SealedRecord, Stopped, Store, StoreError, postgres::replication, prune, transfer,
};

/// Connections that read beside the writer.
pub const READERS: usize = 4;
/// Most records of one [`Store::batches`] or [`Store::blocks`] answer.
pub const MAX_PAGE_RECORDS: usize = 256;

/// A [`Store`] in SQLite or PostgreSQL. Clones share it; the last one that is dropped closes it.
#[derive(Clone, Debug)]
pub struct SqlStore {
    // Dropped first: SQLite clears the log away with its last connection, which has to be one that writes.
    readers: Option<Arc<Readers>>,
    writer: Writer,
    /// How often the store was taken when this one took it; `None` where nobody counts.
    term: Option<u64>,
    on_server: bool,
}

pub(crate) struct Readers {
    idle: Mutex<Vec<Box<dyn Connection>>>,
    places: Arc<Semaphore>,
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Readers").field("places", &self.places).finish_non_exhaustive()
    }
}

impl Readers {
    /// Runs a query on one of the connections, in one read transaction, off the async threads.
    pub(crate) async fn read<T, F>(self: Arc<Self>, query: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Session) -> Result<T, StoreError> + Send + 'static,
    {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let found = blocking(move || {
            let taken = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            // There are as many places as connections.
            let mut connection = taken.ok_or(StoreError::Closed)?;
            let found = match connection.begin_read() {
                Ok(()) => query(connection.session()),
                Err(error) => Err(error),
            };
            connection.end_read();
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            drop(self);
            drop(place);
            found
        });
        found.await.map_err(|_| StoreError::Closed)?
    }
}

impl SqlStore {
    /// A store on connections of one engine: one that writes, and those that read beside it; without any, the first one
    /// reads, too.
    pub(crate) fn on_connections(
        writer: Box<dyn Connection>,
        readers: Vec<Box<dyn Connection>>,
    ) -> std::io::Result<Self> {
        let places = Arc::new(Semaphore::new(readers.len()));
        let readers = (!readers.is_empty()).then(|| Arc::new(Readers { idle: Mutex::new(readers), places }));
        Ok(Self { readers, writer: Writer::start(writer)?, term: None, on_server: false })
    }

    /// The same, on a server.
    pub(crate) const fn on_server(mut self) -> Self {
        self.on_server = true;
        self
    }

    /// The same, taken in this term.
    pub(crate) const fn in_term(mut self, term: u64) -> Self {
        self.term = Some(term);
        self
    }

    pub(crate) fn on_writer(writer: Writer) -> Self {
        Self { readers: None, writer, term: None, on_server: false }
    }

    /// Gives this clone up and waits until the store is closed: until every other clone is gone, too, and everything
    /// queued is written. Then a SQLite database is one file again, with no log beside it, and its lock is free.
    pub async fn close(self) {
        let Self { readers, writer, .. } = self;
        if let Some(readers) = readers {
            let places = Arc::clone(&readers.places);
            drop(readers);
            // Reads that nobody waits for any more hold their connections until they end.
            let _all = places.acquire_many_owned(READERS as u32).await;
        }
        writer.close().await;
    }

    /// Whether a role may run on it: it is no backup, whole, and was not moved. [`Store::bind`] refuses the same.
    ///
    /// # Errors
    /// [`StoreError::Retired`].
    pub async fn check_usable(&self) -> Result<(), StoreError> {
        self.read(transfer::check_usable).await
    }

    /// How often the store had been taken when this one took it, on a server, which counts; the higher one has it.
    pub const fn term(&self) -> Option<u64> {
        self.term
    }

    /// Sets the lease anew, as every write does, and durably. Costs a commit.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] where another process has taken the store; [`StoreError::Failed`] where the server cannot be
    /// asked: until this succeeds another process may take it.
    pub async fn renew(&self) -> Result<(), StoreError> {
        self.write(|_| Ok(())).await
    }

    /// When the last transaction that stands began: the lease runs from then on.
    pub fn renewed(&self) -> Instant {
        self.writer.renewed()
    }

    /// Whether another process has taken this store, as far as this one was told.
    pub fn is_fenced(&self) -> bool {
        self.writer.is_fenced()
    }

    /// Whether its operations run where they are awaited.
    pub(crate) fn is_inline(&self) -> bool {
        matches!(self.writer, Writer::Inline(_))
    }

    pub(crate) async fn write<T, F>(&self, operation: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Session) -> Result<T, StoreError> + Send + 'static,
    {
        self.writer.write(operation).await
    }

    /// Runs a query on a connection of its own, in one read transaction, off the async threads.
    pub(crate) async fn read<T, F>(&self, query: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Session) -> Result<T, StoreError> + Send + 'static,
    {
        if let Writer::Inline(inline) = &self.writer {
            return inline.read(query).await;
        }
        match self.readers.clone() {
            Some(readers) => readers.read(query).await,
            // A database in memory has one connection.
            None => self.writer.write(query).await,
        }
    }
}

#[async_trait]
impl Store for SqlStore {
    fn stopped(&self) -> Stopped {
        Box::pin(self.writer.stopped())
    }

    fn shows_early(&self) -> bool {
        self.on_server
    }

    fn count_in(&self, metrics: &Metrics) {
        let Some(metrics) = self.writer.count_in(metrics) else { return };
        if let Some(readers) = self.readers.as_ref().filter(|_| self.on_server) {
            replication::show(Arc::downgrade(readers), metrics);
        }
    }

    async fn bind(&self, deployment: &Deployment, role: &str) -> Result<(), StoreError> {
        let (deployment, role) = (*deployment, role.to_owned());
        self.write(move |session| writes::bind(session, &deployment, &role)).await
    }

    async fn put_envelope(&self, envelope: PendingEnvelope) -> Result<(), StoreError> {
        self.write(move |session| writes::put_envelope(session, &envelope)).await
    }

    async fn remove_envelopes(&self, ids: &[B256], outcome: &str, number: u64) -> Result<(), StoreError> {
        let (ids, outcome) = (ids.to_vec(), outcome.to_owned());
        self.write(move |session| writes::remove_envelopes(session, &ids, &outcome, number)).await
    }

    async fn pending_envelopes(&self) -> Result<Vec<PendingEnvelope>, StoreError> {
        self.read(reads::pending_envelopes).await
    }

    async fn envelope_outcome(&self, id: B256) -> Result<Option<String>, StoreError> {
        self.read(move |session| reads::envelope_outcome(session, &id)).await
    }

    async fn prune_outcomes(&self, below_number: u64) -> Result<(), StoreError> {
        self.write(move |session| writes::prune_outcomes(session, below_number)).await
    }

    async fn put_sealed(&self, record: SealedRecord) -> Result<(), StoreError> {
        self.write(move |session| writes::put_sealed(session, &record)).await
    }

    async fn put_signature(&self, number: u64, signature: Signature65) -> Result<(), StoreError> {
        self.write(move |session| writes::put_signature(session, number, signature)).await
    }

    async fn revert_sealed(&self, number: u64) -> Result<(), StoreError> {
        self.write(move |session| writes::revert_sealed(session, number)).await
    }

    async fn rewind(&self, through_number: u64, outcome: Option<&str>) -> Result<(), StoreError> {
        let outcome = outcome.map(str::to_owned);
        self.write(move |session| writes::rewind(session, through_number, outcome.as_deref())).await
    }

    async fn put_acknowledged(&self, number: u64, hash: B256, origin: u64) -> Result<(), StoreError> {
        self.write(move |session| writes::put_acknowledged(session, number, hash, origin)).await
    }

    async fn acknowledged(&self, number: u64) -> Result<Option<B256>, StoreError> {
        self.read(move |session| reads::acknowledged(session, number)).await
    }

    async fn acknowledgement(&self, number: u64) -> Result<Option<Acknowledged>, StoreError> {
        self.read(move |session| reads::acknowledgement(session, number)).await
    }

    async fn displace_acknowledged(&self, made: u64, made_at: u64) -> Result<(), StoreError> {
        self.write(move |session| writes::displace_acknowledged(session, made, made_at)).await
    }

    async fn was_acknowledged(&self, number: u64, hash: B256) -> Result<bool, StoreError> {
        self.read(move |session| reads::was_acknowledged(session, number, hash)).await
    }

    async fn put_certificate(&self, certificate: &Certificate) -> Result<(), StoreError> {
        let certificate = *certificate;
        self.write(move |session| writes::put_certificate(session, &certificate)).await
    }

    async fn put_release(&self, release: &Release) -> Result<(), StoreError> {
        let release = release.clone();
        self.write(move |session| writes::put_release(session, &release)).await
    }

    async fn put_hints(&self, hints: &BatchHints) -> Result<(), StoreError> {
        let hints = hints.clone();
        self.write(move |session| writes::put_hints(session, &hints)).await
    }

    async fn put_block(&self, block: BlockRecord) -> Result<(), StoreError> {
        self.write(move |session| writes::put_block(session, &block)).await
    }

    async fn revert_blocks(&self, from_number: u64) -> Result<(), StoreError> {
        self.write(move |session| writes::revert_blocks(session, from_number)).await
    }

    async fn put_posted(&self, posted: PostedRecord) -> Result<(), StoreError> {
        self.write(move |session| writes::put_posted(session, &posted)).await
    }

    async fn posted(&self) -> Result<Option<PostedRecord>, StoreError> {
        self.read(reads::posted).await
    }

    async fn batch(&self, number: u64) -> Result<Option<BatchRecord>, StoreError> {
        self.read(move |session| reads::batch(session, number)).await
    }

    async fn header_hash(&self, number: u64) -> Result<Option<B256>, StoreError> {
        self.read(move |session| reads::header_hash(session, number)).await
    }

    async fn batches(&self, from: u64, limit: usize) -> Result<Vec<BatchRecord>, StoreError> {
        self.read(move |session| reads::batches(session, from, limit.min(MAX_PAGE_RECORDS))).await
    }

    async fn block(&self, number: u64) -> Result<Option<BlockRecord>, StoreError> {
        self.read(move |session| reads::block(session, number)).await
    }

    async fn block_by_second(&self, second: u64) -> Result<Option<BlockRecord>, StoreError> {
        self.read(move |session| reads::block_by_second(session, second)).await
    }

    async fn block_of_batch(&self, number: u64) -> Result<Option<BlockRecord>, StoreError> {
        self.read(move |session| reads::block_of_batch(session, number)).await
    }

    async fn block_through(&self, batch: u64) -> Result<Option<(u64, B256)>, StoreError> {
        self.read(move |session| reads::block_through(session, batch)).await
    }

    async fn blocks(&self, from: u64, limit: usize) -> Result<Vec<BlockRecord>, StoreError> {
        self.read(move |session| reads::blocks(session, from, limit.min(MAX_PAGE_RECORDS))).await
    }

    async fn heads(&self) -> Result<Heads, StoreError> {
        self.read(reads::heads).await
    }

    async fn envelope_location(&self, id: B256) -> Result<Option<ItemLocation>, StoreError> {
        self.read(move |session| reads::envelope_location(session, &id)).await
    }

    async fn envelope_pasts(&self, ids: Vec<B256>) -> Result<Vec<EnvelopePast>, StoreError> {
        let read = move |session: &dyn Session| {
            let past = |id: &B256| {
                Ok((reads::envelope_location(session, id)?, reads::envelope_outcome(session, id)?))
            };
            ids.iter().map(past).collect()
        };
        self.read(read).await
    }

    async fn account(&self, payer: Address) -> Result<Option<Account>, StoreError> {
        self.read(move |session| reads::account_of(session, &payer)).await
    }

    async fn ledger(&self) -> Result<FeeLedger, StoreError> {
        self.read(reads::ledger).await
    }

    async fn ledger_before(&self, number: u64) -> Result<LedgerBefore, StoreError> {
        self.read(move |session| reads::ledger_before(session, number)).await
    }

    async fn ledger_head(&self) -> Result<Option<LedgerHead>, StoreError> {
        self.read(reads::ledger_head).await
    }

    async fn keep_ledgers_from(&self, number: u64) -> Result<(), StoreError> {
        self.write(move |session| writes::keep_ledgers_from(session, number)).await
    }

    async fn forget_ledgers(&self) -> Result<bool, StoreError> {
        self.write(writes::forget_ledgers).await
    }

    async fn ledger_floor(&self) -> Result<Option<u64>, StoreError> {
        self.read(reads::ledger_floor).await
    }

    async fn entries_changed_after(
        &self,
        number: u64,
        up_to: u64,
    ) -> Result<Option<Vec<LedgerEntry>>, StoreError> {
        self.read(move |session| reads::entries_changed_after(session, number, up_to)).await
    }

    async fn prune(&self, final_through: u64, keep: u64) -> Result<Pruned, StoreError> {
        self.write(move |session| prune::prune(session, final_through, keep)).await
    }

    async fn meta(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let key = key.to_owned();
        self.read(move |session| reads::meta(session, &key)).await
    }

    async fn put_meta(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        let (key, value) = (key.to_owned(), value.to_vec());
        self.write(move |session| writes::put_meta(session, &key, &value)).await
    }
}
