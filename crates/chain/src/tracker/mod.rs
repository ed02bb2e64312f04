//! Following the chain of headers: the one writer over the validity rule's state, its disk and its view of L1.

mod accounts;
mod advance;
mod certify;
mod items;
mod l1_made;
mod refusal;

use std::sync::Arc;

use alloy_primitives::{Address, B256};
use blindfold_protocol::ledger::Account;
use blindfold_protocol::validity::{ChainState, CheckedEnvelope, CheckedItem, Head, Verdict};
use blindfold_protocol::{Canonical, ChainConfig, EnvelopeFault, Epoch, Epochs};
use blindfold_store::{Store, StoreError, What};
use parking_lot::RwLock;
use tokio::sync::{Mutex, watch};

use crate::{L1Fault, L1View};

pub use accounts::{ProofRefusal, ProvedAccount};
pub use advance::{SealRefusal, Sealed};
pub use certify::CertificateOutcome;
pub use items::{CHECK_CHUNK_ITEMS, accepted_items, check_items};
pub use refusal::{NextStep, Refusal, certificate_fault_name};

/// How far a header's time may lie ahead of or behind a member's clock before the member waits, in milliseconds.
pub use blindfold_protocol::limits::CLOCK_SKEW_MS;

/// A header by number and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderId {
    /// Batch number; 0 is the genesis.
    pub number: u64,
    /// Header hash.
    pub hash: B256,
}

/// A header that the tracker holds.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Batch number.
    pub number: u64,
    /// Header hash.
    pub hash: B256,
    /// One verdict per item.
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
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// L1, asked for the epochs.
    #[error(transparent)]
    L1(#[from] L1Fault),
    /// The accounts on disk do not add up to the ledger root of the head on disk: the disk is damaged.
    #[error("the stored fee ledger does not have the root that header {number} commits to")]
    DamagedLedger {
        /// The stored head.
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
    l1: Arc<dyn L1View>,
    epochs: RwLock<Epochs>,
    state: RwLock<ChainState>,
    /// Held by whoever changes the chain, across its disk writes.
    writer: Arc<Mutex<()>>,
    sealed: watch::Sender<HeaderId>,
    certified: watch::Sender<HeaderId>,
    earlier: accounts::Cached,
}

impl Tracker {
    /// Opens the chain on `store`, or begins it at the genesis of `config`. Asks L1 for the epochs.
    ///
    /// Cost: reads every fee account and recomputes the ledger root.
    pub async fn open(
        config: Arc<ChainConfig>,
        store: Arc<dyn Store>,
        l1: Arc<dyn L1View>,
    ) -> Result<Self, OpenError> {
        let epochs = l1.epochs().await?;
        let state = load_state(&config, store.as_ref()).await?;
        let sealed = HeaderId { number: state.head().number, hash: state.head().hash };
        let certified = certified_head(&config, store.as_ref()).await?;
        let shared = Shared {
            config,
            store,
            l1,
            epochs: RwLock::new(epochs),
            state: RwLock::new(state),
            writer: Arc::default(),
            sealed: watch::Sender::new(sealed),
            certified: watch::Sender::new(certified),
            earlier: accounts::Cached::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The chain's configuration.
    pub fn config(&self) -> &Arc<ChainConfig> {
        &self.shared.config
    }

    /// The disk that the chain is on.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
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

    /// Base fee of the next header, in wei per byte.
    pub fn next_base_fee(&self) -> u128 {
        self.shared.state.read().next_base_fee()
    }

    /// The fee account of `payer` after the last header.
    pub fn account(&self, payer: &Address) -> Account {
        self.shared.state.read().ledger().account(payer).cloned().unwrap_or_default()
    }

    /// The malformed surcharges held for `payer`, in wei.
    pub fn held(&self, payer: &Address) -> u128 {
        self.shared.state.read().ledger().held_of(payer)
    }

    /// Whether the next header could take the envelope: expiry, fee nonce, fee and funds against the last header.
    pub fn admissible(&self, envelope: &CheckedEnvelope) -> Result<(), EnvelopeFault> {
        self.shared.state.read().admissible(envelope)
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
        let task = tokio::spawn(async move {
            let _writer = writer;
            change.await
        });
        task.await.ok()
    }

    /// The epoch that certifies `number`, as far as known; asks L1 again when none is.
    pub async fn epoch(&self, number: u64) -> Result<Epoch, Refusal> {
        if let Some(epoch) = self.shared.epochs.read().at(number) {
            return Ok(epoch.clone());
        }
        let epochs = self.shared.l1.epochs().await?;
        let found = epochs.at(number).cloned();
        *self.shared.epochs.write() = epochs;
        found.ok_or(Refusal::NoEpoch { number })
    }
}

/// The state after the last header on disk.
async fn load_state(config: &ChainConfig, store: &dyn Store) -> Result<ChainState, OpenError> {
    let Some(stored) = store.ledger_head().await? else {
        return Ok(ChainState::genesis(config.clone()));
    };
    let number = stored.number;
    let damaged = |fault: String| StoreError::Corrupt { what: What::Batch, fault };
    let head = Head::decode(&stored.head).map_err(|fault| damaged(fault.to_string()))?;
    if (head.number, head.hash) != (number, stored.hash) {
        return Err(damaged(format!("the head stored with batch {number} is another")).into());
    }
    let (accounts, held) = (store.accounts().await?, store.held().await?);
    let state = ChainState::from_parts(config.clone(), head, accounts, held);
    let record = store.batch(number).await?.ok_or(StoreError::Missing { what: What::Batch, number })?;
    if state.ledger().root() != record.sealed.header.fee_ledger_root {
        return Err(OpenError::DamagedLedger { number });
    }
    Ok(state)
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
