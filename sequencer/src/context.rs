//! What every part of the sequencer works with: handles, and no state of its own.

use std::sync::Arc;

use blindfold_chain::{HeaderSigner, Office, Tracker};
use blindfold_protocol::ChainConfig;
use blindfold_rpc::Hub;
use blindfold_runtime::{Clock, Spawner, Stop};
use blindfold_store::Store;

use crate::{config::SequencerConfig, metrics::SequencerMetrics};

/// Handles that every part of the sequencer shares.
pub(crate) struct Context {
    pub(crate) config: SequencerConfig,
    pub(crate) chain: Arc<ChainConfig>,
    pub(crate) tracker: Tracker,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) signer: Arc<dyn HeaderSigner>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hub: Hub,
    pub(crate) metrics: Arc<SequencerMetrics>,
    pub(crate) stop: Stop,
    /// A way to more tasks, and to the end of the role.
    pub(crate) spawner: Spawner,
}

impl Context {
    /// Whether the sequencer is shutting down or has given up.
    pub(crate) fn stopping(&self) -> bool {
        *self.stop.borrow() || self.spawner.failure().is_some()
    }

    /// Gives up: a part cannot go on. The first fault stands.
    pub(crate) fn fail(&self, part: &'static str, cause: String) {
        self.spawner.fail(part, cause);
    }

    /// Where this sequencer stands between the one before it and the one after it.
    pub(crate) fn office(&self) -> Office {
        self.tracker.office(self.signer.address())
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
