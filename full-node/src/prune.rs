//! Forgetting old batches, for a node that is set to.

use std::time::Duration;

use blindfold_chain::{Executor, Tracker};
use blindfold_runtime::until;
use blindfold_store::StoreError;
use tokio::{sync::watch, time::sleep};

use crate::limits::{PRUNE_INTERVAL_MS, PRUNE_PAUSE_MS};

/// Prunes what is final and old, a little at a time.
pub(crate) struct Pruning {
    pub(crate) tracker: Tracker,
    pub(crate) executor: Executor,
    /// So many of the newest batches stay whole.
    pub(crate) keep: u64,
}

impl Pruning {
    /// Goes on until told to stop. A disk that does not take it is tried again later: nothing else waits for it.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) {
        loop {
            let pause_ms = match self.step().await {
                Ok(true) => PRUNE_PAUSE_MS,
                Ok(false) => PRUNE_INTERVAL_MS,
                Err(error) => {
                    tracing::warn!(%error, "old batches are not pruned; trying again");
                    PRUNE_INTERVAL_MS
                }
            };
            tokio::select! {
                () = until(&mut stop) => return,
                () = sleep(Duration::from_millis(pause_ms)) => {}
            }
        }
    }

    /// Prunes a little, and says whether there is more at once.
    async fn step(&self) -> Result<bool, StoreError> {
        let final_through = self.executor.status().settled.finalized;
        let step = self.tracker.store().prune(final_through, self.keep).await?;
        if step.batches > 0 && !step.more {
            tracing::info!(through = step.through, "old batches are pruned");
        }
        Ok(step.more)
    }
}
