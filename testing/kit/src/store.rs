//! Disks: in memory, in a file, and one that refuses what a test tells it to.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use blindfold_protocol::{
    Address, B256, BatchHints, Certificate, Deployment, Release, Signature65,
    ledger::{Account, FeeLedger, LedgerBefore, LedgerEntry},
};
use blindfold_store::{
    Acknowledged, BatchRecord, BlockRecord, Heads, ItemLocation, LedgerHead, PendingEnvelope, PostedRecord,
    SealedRecord, SqlStore, Stopped, Store, StoreError,
};
use parking_lot::Mutex;
use tokio::sync::watch;

/// A disk that nothing survives.
pub fn memory() -> Arc<dyn Store> {
    Arc::new(SqlStore::in_memory().expect("memory"))
}

/// A disk in a file.
pub async fn disk(path: &Path) -> Arc<dyn Store> {
    Arc::new(file(path).await)
}

/// The file of a [`disk`]. After a crash the last write may still be on its way: it is free when that is done.
pub async fn file(path: &Path) -> SqlStore {
    loop {
        match SqlStore::open(path) {
            Ok(store) => return store,
            Err(StoreError::InUse(_)) => tokio::time::sleep(Duration::from_millis(2)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Hands everything on to a store, except for the calls that are to fail.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    calls: Mutex<BTreeMap<&'static str, usize>>,
    /// By operation: how many calls go well before it fails, and how.
    faults: Mutex<BTreeMap<&'static str, (usize, StoreError)>>,
    failures: AtomicUsize,
    /// The operation that takes until it is released, and how many calls of it wait.
    held: watch::Sender<Option<&'static str>>,
    waiting: watch::Sender<usize>,
    /// Why nothing is written any more.
    stopped: watch::Sender<Option<String>>,
    early: AtomicBool,
}

impl FaultyStore {
    /// Nothing fails yet.
    pub fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        let (held, waiting) = (watch::Sender::new(None), watch::Sender::new(0));
        let (faults, failures, stopped) = (Mutex::default(), AtomicUsize::new(0), watch::Sender::new(None));
        let (calls, early) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Self { inner, calls, faults, failures, held, waiting, stopped, early })
    }

    /// From now on it is as on a replicated server.
    pub fn show_early(&self) {
        self.early.store(true, Ordering::SeqCst);
    }

    /// From now on `operation` takes until [`release`](Self::release); with ` done` behind its name it takes so long
    /// after its work.
    pub fn hold(&self, operation: &'static str) {
        self.held.send_replace(Some(operation));
    }

    /// Lets go of what is held.
    pub fn release(&self) {
        self.held.send_replace(None);
    }

    /// Until a call of the operation that is held waits.
    pub async fn somebody_waits(&self) {
        self.waits(1).await;
    }

    /// Until so many calls of the operation that is held wait, or have waited.
    pub async fn waits(&self, calls: usize) {
        self.waiting.subscribe().wait_for(|waiting| *waiting >= calls).await.expect("it lives");
    }

    /// How many calls have waited so far.
    pub fn waiting(&self) -> usize {
        *self.waiting.borrow()
    }

    async fn pass(&self, operation: &str) {
        if *self.held.borrow() == Some(operation) {
            self.waiting.send_modify(|waiting| *waiting += 1);
            self.held.subscribe().wait_for(|held| *held != Some(operation)).await.expect("it lives");
        }
    }

    /// How often `operation` was called so far.
    pub fn calls(&self, operation: &str) -> usize {
        self.calls.lock().get(operation).copied().unwrap_or_default()
    }

    /// How many calls have failed so far.
    pub fn failures(&self) -> usize {
        self.failures.load(Ordering::SeqCst)
    }

    /// From now on `operation` fails with `error`.
    pub fn fail(&self, operation: &'static str, error: StoreError) {
        self.fail_after(0, operation, error);
    }

    /// `operation` goes well so many times more, and fails with `error` from then on.
    pub fn fail_after(&self, calls: usize, operation: &'static str, error: StoreError) {
        self.faults.lock().insert(operation, (calls, error));
    }

    /// Nothing fails any more.
    pub fn heal(&self) {
        self.faults.lock().clear();
    }

    fn check(&self, operation: &str) -> Result<(), StoreError> {
        let fault = match self.faults.lock().get_mut(operation) {
            None => return Ok(()),
            Some((0, fault)) => fault.clone(),
            Some((calls, _)) => {
                *calls -= 1;
                return Ok(());
            }
        };
        self.failures.fetch_add(1, Ordering::SeqCst);
        if let StoreError::Stopped(reason) = &fault {
            self.stopped.send_replace(Some(reason.clone()));
        }
        Err(fault)
    }
}

macro_rules! hand_on {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        #[async_trait]
        impl Store for FaultyStore {
            fn shows_early(&self) -> bool {
                self.early.load(Ordering::SeqCst) || self.inner.shows_early()
            }

            fn stopped(&self) -> Stopped {
                let mut stopped = self.stopped.subscribe();
                Box::pin(async move {
                    match stopped.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone()) {
                        Some(reason) => reason,
                        None => std::future::pending().await,
                    }
                })
            }

            $(async fn $name(&self, $($argument: $type),*) -> Result<$output, StoreError> {
                *self.calls.lock().entry(stringify!($name)).or_default() += 1;
                self.pass(stringify!($name)).await;
                self.check(stringify!($name))?;
                let done = self.inner.$name($($argument),*).await;
                self.pass(concat!(stringify!($name), " done")).await;
                done
            })*
        }
    };
}

hand_on! {
    fn bind(deployment: &Deployment, role: &str) -> ();
    fn put_envelope(envelope: PendingEnvelope) -> ();
    fn remove_envelopes(ids: &[B256], outcome: &str, number: u64) -> ();
    fn pending_envelopes() -> Vec<PendingEnvelope>;
    fn envelope_outcome(id: B256) -> Option<String>;
    fn prune_outcomes(below_number: u64) -> ();
    fn put_sealed(record: SealedRecord) -> ();
    fn put_signature(number: u64, signature: Signature65) -> ();
    fn revert_sealed(number: u64) -> ();
    fn rewind(through_number: u64, outcome: Option<&str>) -> ();
    fn put_acknowledged(number: u64, hash: B256, origin: u64) -> ();
    fn acknowledged(number: u64) -> Option<B256>;
    fn acknowledgement(number: u64) -> Option<Acknowledged>;
    fn displace_acknowledged(made: u64, made_at: u64) -> ();
    fn was_acknowledged(number: u64, hash: B256) -> bool;
    fn put_certificate(certificate: &Certificate) -> ();
    fn put_release(release: &Release) -> ();
    fn put_hints(hints: &BatchHints) -> ();
    fn put_block(block: BlockRecord) -> ();
    fn revert_blocks(from_number: u64) -> ();
    fn put_posted(posted: PostedRecord) -> ();
    fn posted() -> Option<PostedRecord>;
    fn batch(number: u64) -> Option<BatchRecord>;
    fn header_hash(number: u64) -> Option<B256>;
    fn batches(from: u64, limit: usize) -> Vec<BatchRecord>;
    fn block(number: u64) -> Option<BlockRecord>;
    fn block_by_second(second: u64) -> Option<BlockRecord>;
    fn block_of_batch(number: u64) -> Option<BlockRecord>;
    fn block_through(batch: u64) -> Option<(u64, B256)>;
    fn blocks(from: u64, limit: usize) -> Vec<BlockRecord>;
    fn heads() -> Heads;
    fn envelope_location(id: B256) -> Option<ItemLocation>;
    fn account(payer: Address) -> Option<Account>;
    fn ledger() -> FeeLedger;
    fn ledger_before(number: u64) -> LedgerBefore;
    fn ledger_head() -> Option<LedgerHead>;
    fn keep_ledgers_from(number: u64) -> ();
    fn forget_ledgers() -> bool;
    fn ledger_floor() -> Option<u64>;
    fn entries_changed_after(number: u64, up_to: u64) -> Option<Vec<LedgerEntry>>;
    fn meta(key: &str) -> Option<Vec<u8>>;
    fn put_meta(key: &str, value: &[u8]) -> ();
}
