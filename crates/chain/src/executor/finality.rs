//! Telling the execution client which of its blocks are safe and which are finalized.
//!
//! A client may lose its newest blocks when it is killed, and with them these marks. So it is told after everything
//! that gives it blocks, and now and then while nothing happens; a client that does not know a block gets its blocks
//! back first. Nothing else waits for it: what fails is tried again with the next occasion.

use alloy_primitives::B256;
use blindfold_engine::{EngineError, Recovery};

use super::run::{End, Runner};

impl Runner {
    /// Tells the client which blocks are safe and finalized by now: when that has changed, or `again` in any case.
    pub(super) async fn mark(&mut self, again: bool) -> Result<(), End> {
        // A void batch is final as well, but not with a block that executed it.
        let settled = self.compared;
        let (safe, finalized) = settled.last_batches();
        if safe == 0 {
            self.status.send_if_modified(|status| status.settled.raise(settled));
            return Ok(());
        }
        let store = self.deps.tracker.store();
        let (safe, finalized) = (store.block_through(safe).await?, store.block_through(finalized).await?);
        let status = self.status.borrow().clone();
        // Blocks go up with their batches; a disk from which some were taken must not take the marks back.
        let later = |new: Option<(u64, B256)>, old: Option<(u64, B256)>| if new > old { new } else { old };
        let (safe, finalized) = (later(safe, status.safe), later(finalized, status.finalized));
        let changed = (safe, finalized) != (status.safe, status.finalized);
        if safe.is_none() || !(changed || again) {
            self.status.send_if_modified(|status| status.settled.raise(settled));
            return Ok(());
        }
        let hash = |block: Option<(u64, B256)>| block.map_or(B256::ZERO, |(_, hash)| hash);
        match self.tell(hash(safe), hash(finalized)).await? {
            Ok(()) => {
                self.status.send_modify(|status| {
                    status.settled.raise(settled);
                    (status.safe, status.finalized) = (safe, finalized);
                });
                if changed {
                    tracing::debug!(
                        ?safe,
                        ?finalized,
                        "told the execution client what is safe and finalized"
                    );
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the execution client was not told what is safe and finalized; trying again");
            }
        }
        Ok(())
    }

    /// Once more after the client has its blocks back, where it does not know them.
    async fn tell(&mut self, safe: B256, finalized: B256) -> Result<Result<(), EngineError>, End> {
        let client = std::sync::Arc::clone(&self.deps.client);
        match client.set_finality(safe, finalized).await {
            Err(error) if error.recovery() == Recovery::Replay => {
                self.restore_client().await?;
                Ok(client.set_finality(safe, finalized).await)
            }
            outcome => Ok(outcome),
        }
    }
}
