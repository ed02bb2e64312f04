//! Following the chain of headers: the one writer over the validity rule's state, its disk and its view of L1.

mod accounts;
mod advance;
mod ahead;
mod certify;
mod items;
mod l1_made;
mod ledgers;
mod overruled;
mod refusal;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use alloy_primitives::{Address, B256};
use blindfold_protocol::ledger::Account;
use blindfold_protocol::validity::{BaseFees, ChainState, CheckedEnvelope, CheckedItem, Head, Verdict};
use blindfold_protocol::{Canonical, ChainConfig, EnvelopeError, Epoch, Epochs, limits::RULES};
use blindfold_runtime::{Instant, now, spawn};
use blindfold_store::{Store, StoreError, What};
use parking_lot::RwLock;
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::time::{Duration, timeout};

use crate::limits::{CALLERS_READS, EPOCHS_PATIENCE_MS, EPOCHS_PAUSE_MS};
use crate::{Closing, L1Error, L1Reader};

pub use accounts::{AccountProofError, ProvedAccount};
pub use advance::{Sealed, SealingError};
pub use certify::CertificateOutcome;
pub use items::{CHECK_CHUNK_ITEMS, accepted_items, check_items};
pub use refusal::{NextStep, TrackerError, certificate_fault_name};

/// How far a header's time may lie ahead of or behind a member's clock before the member waits, in milliseconds.
pub use blindfold_protocol::limits::CLOCK_SKEW_MS;

pub use blindfold_protocol::HeaderId;

/// A header that the tracker holds.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Number of the header.
    pub number: u64,
    /// Hash of the header.
    pub hash: B256,
    /// One verdict for each item, in order.
    pub verdicts: Vec<Verdict>,
    /// The checked items, with the decoded points of their ciphertexts; `None` when the header was known already
    /// ([`check_items`] makes them again).
    pub items: Option<Arc<Vec<CheckedItem>>>,
}

impl Applied {
    /// Whether this call added the header.
    pub fn is_new(&self) -> bool {
        self.items.is_some()
    }
}

/// Why a tracker cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The disk failed, or holds damaged records.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// L1, asked for the epochs.
    #[error(transparent)]
    L1(#[from] L1Error),
    /// The accounts on disk do not add up to the ledger root of the head on disk: the disk is damaged.
    #[error("the stored fee ledger does not have the root that header {number} commits to")]
    DamagedLedger {
        /// Number of the stored head.
        number: u64,
    },
}

/// Follows the chain of headers. Cheap to clone: all clones are one tracker.
///
/// Every change is durable when the call that makes it returns. Changes wait for each other; reads do not wait for
/// disk or L1. It may be killed at any instant: what is on disk is always a chain that it can go on from.
#[derive(Clone)]
pub struct Tracker {
    shared: Arc<Shared>,
}

struct Shared {
    config: Arc<ChainConfig>,
    store: Arc<dyn Store>,
    l1: Arc<dyn L1Reader>,
    epochs: RwLock<Epochs>,
    /// Until when L1 is not asked for epochs that are known: it did not answer in time.
    epochs_paused: RwLock<Option<Instant>>,
    state: RwLock<ChainState>,
    /// Held by whoever changes the chain, across its disk writes.
    writer: Arc<Mutex<()>>,
    sealed: watch::Sender<HeaderId>,
    certified: watch::Sender<HeaderId>,
    broken: watch::Sender<bool>,
    /// What L1 said to the last header.
    said: RwLock<Option<advance::Said>>,
    /// What L1 says up to its newest final block, read before a header names it.
    ahead: RwLock<ahead::Ahead>,
    overruled: RwLock<overruled::Overruled>,
    /// The epoch whose end is announced, as L1 told last.
    closing: RwLock<Option<Closing>>,
    certificates_paired: AtomicU64,
    ledgers: ledgers::Ledgers,
    /// Places for reads that callers ask for.
    callers: Semaphore,
}

impl Tracker {
    /// Opens the chain on `store`, or begins it at the genesis of `config`. Asks L1 for the epochs and for the
    /// headers that it made.
    ///
    /// Cost: reads every fee account and live nonce, and recomputes the ledger root.
    pub async fn open(
        config: Arc<ChainConfig>,
        store: Arc<dyn Store>,
        l1: Arc<dyn L1Reader>,
    ) -> Result<Self, OpenError> {
        let epochs = l1.epochs().await?;
        let state = load_state(&config, store.as_ref()).await?;
        let sealed = HeaderId { number: state.head().number, hash: state.head().hash };
        let certified = certified_head(&config, store.as_ref()).await?;
        let ledgers = ledgers::Ledgers::new(sealed, state.ledger().tree().clone());
        let shared = Shared {
            config,
            store,
            l1,
            epochs: RwLock::new(epochs),
            epochs_paused: RwLock::default(),
            state: RwLock::new(state),
            writer: Arc::default(),
            sealed: watch::Sender::new(sealed),
            certified: watch::Sender::new(certified),
            broken: watch::Sender::new(false),
            said: RwLock::default(),
            ahead: RwLock::default(),
            overruled: RwLock::default(),
            closing: RwLock::default(),
            certificates_paired: AtomicU64::default(),
            ledgers,
            callers: Semaphore::new(CALLERS_READS),
        };
        let tracker = Self { shared: Arc::new(shared) };
        // Without it a vote could be given for what L1 has gone past.
        tracker.look_for_l1_headers().await?;
        Ok(tracker)
    }

    /// The chain's settings, the same for every party.
    pub fn config(&self) -> &Arc<ChainConfig> {
        &self.shared.config
    }

    /// The disk that the chain is on.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Reads from the disk on behalf of somebody outside, when its turn comes: at most [`CALLERS_READS`] such reads are
    /// under way, so the role's own never stand behind more. `read` is one read of the disk: it waits for nothing else, and
    /// does not ask for a turn again. It goes on when this is dropped, and is counted no longer: calls of a server are not
    /// dropped when their callers hang up.
    pub async fn for_caller<T>(&self, read: impl Future<Output = T>) -> T {
        // Never closed.
        let _place = self.shared.callers.acquire().await.ok();
        read.await
    }

    /// How many certificates cost two pairings so far, forged ones included.
    pub fn certificates_paired(&self) -> u64 {
        self.shared.certificates_paired.load(Ordering::Relaxed)
    }

    /// The last header, with what the next one builds on.
    pub fn head(&self) -> Head {
        *self.shared.state.read().head()
    }

    /// The last header that is certified, by itself, through a descendant, or by L1.
    pub fn certified(&self) -> HeaderId {
        *self.shared.certified.borrow()
    }

    /// Follows [`head`](Self::head); it falls when an uncertified header gives way to a certified one.
    pub fn watch_sealed(&self) -> watch::Receiver<HeaderId> {
        self.shared.sealed.subscribe()
    }

    /// Follows [`certified`](Self::certified); it never falls.
    pub fn watch_certified(&self) -> watch::Receiver<HeaderId> {
        self.shared.certified.subscribe()
    }

    /// Base fees of a header in the second after the head's; they fall with each second that passes without load.
    pub fn next_base_fees(&self) -> BaseFees {
        self.shared.state.read().next_base_fees()
    }

    /// The fee account of `payer` after the last header.
    pub fn account(&self, payer: &Address) -> Account {
        self.shared.state.read().ledger().account(payer).copied().unwrap_or_default()
    }

    /// The malformed surcharges held for `payer`, in wei.
    pub fn held(&self, payer: &Address) -> u128 {
        self.shared.state.read().ledger().held_of(payer)
    }

    /// Whether the next header, of this second, could take the envelope: expiry, fee nonce, fee and funds against the
    /// last header.
    pub fn admissible(&self, envelope: &CheckedEnvelope, second: u64) -> Result<(), EnvelopeError> {
        self.shared.state.read().admissible(envelope, second)
    }

    /// Runs `read` on the state after the last header. Keep it short: it holds up the next header.
    pub fn with_state<T>(&self, read: impl FnOnce(&ChainState) -> T) -> T {
        read(&self.shared.state.read())
    }

    /// Runs `change` alone and to its end, even when the caller is dropped meanwhile: what memory holds and what disk
    /// holds must not come apart. `None` when the runtime shuts down.
    async fn exclusively<T: Send + 'static>(
        &self,
        change: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let writer = Arc::clone(&self.shared.writer).lock_owned().await;
        let task = spawn(async move {
            let _writer = writer;
            change.await
        });
        match task.await {
            Ok(done) => Some(done),
            Err(error) => {
                self.shared.broken.send_replace(error.is_panic());
                None
            }
        }
    }

    /// Resolves when the process should end: a change ended by a bug, so memory and disk may have come apart, or the
    /// disk takes no more writes.
    pub fn broken(&self) -> impl Future<Output = String> + Send + 'static {
        let mut broken = self.shared.broken.subscribe();
        let disk = self.shared.store.stopped();
        let bug = async move {
            if broken.wait_for(|broken| *broken).await.is_err() {
                // The tracker is gone, and what would resolve this with it.
                std::future::pending::<()>().await;
            }
            "a change ended by a bug: memory and disk may have come apart; the log has the panic".to_owned()
        };
        async move {
            tokio::select! {
                reason = bug => reason,
                reason = disk => reason,
            }
        }
    }

    /// The epoch that certifies `number`, as L1's newest final block has it; while L1 is away or slow, as it was last
    /// read: what is registered changes with long notice only, and headers do not wait for an L1 that hangs.
    ///
    /// # Errors
    /// [`TrackerError::NoEpoch`], [`TrackerError::UnknownRules`]; [`TrackerError::L1`] where nothing is known.
    pub async fn epoch(&self, number: u64) -> Result<Epoch, TrackerError> {
        let known = self.shared.epochs.read().at(number).is_some();
        let paused = self.shared.epochs_paused.read().is_some_and(|until| now() < until);
        let away = if known && paused { None } else { self.read_epochs(known).await.err() };
        let epochs = self.shared.epochs.read();
        let rules = epochs.rules_at(number);
        if rules != RULES {
            return Err(TrackerError::UnknownRules { number, rules });
        }
        match (epochs.at(number), away) {
            (Some(epoch), _) => Ok(epoch.clone()),
            (None, Some(fault)) => Err(fault.into()),
            (None, None) => Err(TrackerError::NoEpoch { number }),
        }
    }

    /// The epoch that certifies `number`, as L1's word on epochs was last read, under rules that are known here.
    pub fn epoch_as_read(&self, number: u64) -> Option<Epoch> {
        let epochs = self.shared.epochs.read();
        epochs.at(number).filter(|_| epochs.rules_at(number) == RULES).cloned()
    }

    /// The epoch of a header with this L1 origin, as L1 names it there or later: an epoch that ends at the head gives its
    /// numbers to the next one in one L1 block, and a header for the one that is over can never be taken back.
    ///
    /// # Errors
    /// As [`Tracker::epoch`]; [`TrackerError::L1`] too where L1 was last read before the origin and does not answer.
    pub async fn epoch_at(&self, number: u64, origin: u64) -> Result<Epoch, TrackerError> {
        self.sequencer_at(origin).await?;
        self.epoch(number).await
    }

    /// The announced end of the epoch of this number, as L1 told last, whether or not it is due (rule E-11).
    pub fn closing(&self, number: u64) -> Option<Closing> {
        let closing = (*self.shared.closing.read())?;
        let epochs = self.shared.epochs.read();
        epochs.at(number).is_some_and(|epoch| epoch.epoch == closing.epoch).then_some(closing)
    }

    /// [`closing`](Self::closing), once nothing more of the epoch is to be sealed.
    pub fn closed(&self, number: u64) -> Option<Closing> {
        self.closing(number).filter(|closing| self.newest_l1_block() >= closing.closed_from())
    }

    /// The epoch that is registered for this number, as L1's word on epochs was last read.
    pub fn registered_epoch(&self, number: u64) -> Option<u64> {
        self.shared.epochs.read().at(number).map(|epoch| epoch.epoch)
    }

    /// The first number after this epoch, as L1's word on epochs was last read: of the next one, if one is registered.
    pub fn first_number_after(&self, epoch: u64) -> u64 {
        let epochs = self.shared.epochs.read();
        let registered = epochs.as_slice().iter();
        let next = registered.clone().find(|next| next.epoch > epoch && next.first <= next.last);
        next.map_or_else(
            || registered.last().map_or(1, |last| last.last.saturating_add(1)),
            |next| next.first,
        )
    }

    /// Whether another rule set than that of the number before begins with this one, as L1's word on epochs was last read.
    pub fn rules_begin(&self, number: u64) -> bool {
        let epochs = self.shared.epochs.read();
        epochs.rules_at(number) != epochs.rules_at(number.saturating_sub(1))
    }

    /// Asks L1 for the epochs. Where an answer is known already it is not waited for long, nor asked for soon again.
    pub(super) async fn read_epochs(&self, known: bool) -> Result<(), L1Error> {
        let asked = self.shared.l1.epochs();
        let answer = if known {
            let (method, timeout_ms) = ("epochs".to_owned(), EPOCHS_PATIENCE_MS);
            let asked = timeout(Duration::from_millis(EPOCHS_PATIENCE_MS), asked).await;
            asked.unwrap_or(Err(L1Error::Timeout { method, timeout_ms }))
        } else {
            asked.await
        };
        let pause = Duration::from_millis(EPOCHS_PAUSE_MS);
        *self.shared.epochs_paused.write() = answer.is_err().then(|| now() + pause);
        *self.shared.epochs.write() = answer?;
        Ok(())
    }

    /// The epoch that a header made by L1 names. L1's word decides: where no epoch is registered for a number, the last
    /// one serves, and what is registered later begins behind it.
    async fn epoch_by_l1(&self, epoch: u64) -> Result<Epoch, TrackerError> {
        if let Some(known) = self.shared.epochs.read().by_epoch(epoch) {
            return Ok(known.clone());
        }
        let epochs = self.shared.l1.epochs().await?;
        let found = epochs.by_epoch(epoch).cloned();
        *self.shared.epochs.write() = epochs;
        found.ok_or(TrackerError::UnknownEpoch { epoch })
    }
}

/// The state after the last header on disk.
///
/// Cost: reads the whole ledger, and computes its tree.
async fn load_state(config: &ChainConfig, store: &dyn Store) -> Result<ChainState, OpenError> {
    let Some((head, root)) = stored_head(store).await? else {
        return Ok(ChainState::genesis(config.clone()));
    };
    let state = ChainState::from_parts(config.clone(), head, store.ledger().await?);
    if state.ledger().root() != root {
        return Err(OpenError::DamagedLedger { number: head.number });
    }
    Ok(state)
}

/// The last header on disk, and the `feeLedgerRoot` that it names.
async fn stored_head(store: &dyn Store) -> Result<Option<(Head, B256)>, StoreError> {
    let Some(stored) = store.ledger_head().await? else { return Ok(None) };
    let number = stored.number;
    let damaged = |fault: String| StoreError::Corrupt { what: What::Batch, fault };
    let head = Head::decode(&stored.head).map_err(|fault| damaged(fault.to_string()))?;
    if (head.number, head.hash) != (number, stored.hash) {
        return Err(damaged(format!("the head stored with batch {number} is another")));
    }
    let record = store.batch(number).await?.ok_or(StoreError::Missing { what: What::Batch, number })?;
    Ok(Some((head, record.sealed.header.fee_ledger_root)))
}

/// The certified head on disk.
async fn certified_head(config: &ChainConfig, store: &dyn Store) -> Result<HeaderId, OpenError> {
    match store.heads().await?.certified {
        None | Some(0) => Ok(HeaderId { number: 0, hash: config.deployment.genesis_hash() }),
        Some(number) => {
            let record =
                store.batch(number).await?.ok_or(StoreError::Missing { what: What::Batch, number })?;
            Ok(HeaderId { number, hash: record.hash })
        }
    }
}
