//! What the tasks of the sequencer share.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use blindfold_chain::{ExecutorStatus, HintIntake, ParameterSet, Tracker};
use blindfold_protocol::{ChainConfig, SigningKey, validity::CheckedEnvelope};
use blindfold_rpc::Hub;
use blindfold_runtime::{Agreement, Clock, Spawner, Stop};
use blindfold_store::Store;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::{
    backlog::Backlog,
    certifier::Certifier,
    config::{SealingConfig, SequencerConfig},
    gate::Gate,
    l1_cache::L1Cache,
    mempool::Mempool,
    metrics::SequencerMetrics,
    promises::LatePromises,
    sources::SourceLimits,
    verifier::Verifier,
};

/// What a batch takes of an envelope: its bytes as they came, and the result of the expensive checks.
#[derive(Clone)]
pub(crate) struct PoolItem {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) checked: Arc<CheckedEnvelope>,
}

/// Envelopes and their bytes, counted up by admission and back to zero by the sealer.
#[derive(Default)]
pub(crate) struct Arrived {
    items: AtomicU64,
    bytes: AtomicU64,
}

impl Arrived {
    /// Adds an envelope; true when what arrived fills a batch.
    pub(crate) fn add(&self, bytes: usize, limits: &SealingConfig) -> bool {
        let items = self.items.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = bytes as u64;
        let total = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        items >= u64::from(limits.max_batch_items) || total >= u64::from(limits.max_batch_bytes)
    }

    /// Begins anew.
    pub(crate) fn clear(&self) {
        self.items.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }
}

/// Everything that the sequencer's tasks share.
pub(crate) struct Core {
    pub(crate) config: SequencerConfig,
    pub(crate) chain: Arc<ChainConfig>,
    pub(crate) tracker: Tracker,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) key: Arc<SigningKey>,
    pub(crate) l1: Arc<L1Cache>,
    pub(crate) parameters: Arc<ParameterSet>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether that clock, the wall's and L1's agree.
    pub(crate) agreement: Agreement,
    pub(crate) hub: Hub,
    pub(crate) metrics: Arc<SequencerMetrics>,
    pub(crate) pool: Mutex<Mempool<PoolItem>>,
    pub(crate) sources: SourceLimits,
    pub(crate) verifier: Verifier,
    pub(crate) late_promises: LatePromises,
    pub(crate) backlog: Backlog,
    pub(crate) certifier: Certifier,
    pub(crate) intake: HintIntake,
    /// L1 made a header: the sealer looks anew at what its second needs.
    pub(crate) reopened: AtomicBool,
    /// What headers that gave way to L1's had taken is not in the mempool again yet.
    pub(crate) displaced: AtomicBool,
    /// Held while what displaced headers had taken is taken back into the mempool.
    pub(crate) restoring: tokio::sync::Mutex<()>,
    /// Where execution stands.
    pub(crate) executed: watch::Receiver<ExecutorStatus>,
    /// Bounds the hint lists held at a time.
    pub(crate) hints_gate: Gate,
    /// Hints of helpers who proved who they are.
    pub(crate) helpers_gate: Gate,
    /// Of all others one at a time stands in line with them.
    pub(crate) strangers_turn: tokio::sync::Mutex<()>,
    /// Hints are verified one batch at a time, with all threads of the backend.
    pub(crate) hints_turn: tokio::sync::Mutex<()>,
    /// Wakes the sealer before its slot ends.
    pub(crate) full: Notify,
    /// What was admitted since the sealer looked last; envelopes that it left in the pool make no batch full.
    pub(crate) arrived: Arrived,
    /// Whether everything that was signed before is known here: nothing is sealed before that.
    pub(crate) recovered: watch::Sender<bool>,
    /// Why not.
    pub(crate) hindrance: Mutex<Option<String>>,
    pub(crate) stop: Stop,
    /// A way to more tasks, and to the end of the role.
    pub(crate) spawner: Spawner,
}

impl Core {
    /// Whether the sequencer is shutting down or has given up.
    pub(crate) fn stopping(&self) -> bool {
        *self.stop.borrow() || self.spawner.failure().is_some()
    }

    /// Gives up: a part cannot go on. The first fault stands.
    pub(crate) fn fail(&self, part: &'static str, cause: String) {
        self.spawner.fail(part, cause);
    }

    /// Shows the mempool's size.
    pub(crate) fn show_pool(&self, pool: &Mempool<PoolItem>) {
        self.metrics.envelopes_pending.set(pool.len() as u64);
        self.metrics.envelopes_pending_bytes.set(pool.bytes() as u64);
    }

    /// Shows head, certified head and base fee.
    pub(crate) fn show_chain(&self) {
        self.metrics.head_number.set(self.tracker.head().number);
        self.metrics.certified_number.set(self.tracker.certified().number);
        let fees = self.tracker.next_base_fees();
        let shown = |fee: u128| u64::try_from(fee).unwrap_or(u64::MAX);
        self.metrics.base_fee_wei.set(shown(fees.base_fee));
        self.metrics.gas_base_fee_wei.set(shown(fees.gas_base_fee));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_fills_a_batch_by_items_or_by_bytes() {
        let limits = SealingConfig { max_batch_items: 3, max_batch_bytes: 100, ..SealingConfig::default() };
        let arrived = Arrived::default();
        assert!(!arrived.add(10, &limits) && !arrived.add(10, &limits) && arrived.add(10, &limits));
        arrived.clear();
        assert!(!arrived.add(60, &limits) && arrived.add(40, &limits));
    }
}
