//! Claims executed L2 blocks in `OutputRegistry`, in order. A claim is never replaced, so blocks wait until they lie
//! deep enough. L1 is the record of what is claimed: nothing is kept.

use std::{sync::Arc, time::Duration};

use blindfold_chain::{ExecutorStatus, L1RoundError};
use blindfold_l1::{L1Submitter, Output, OutputStanding};
use blindfold_store::BlockRecord;
use tokio::{sync::watch, time::sleep};

use crate::context::Context;

/// Claims in one transaction at most.
const MAX_OUTPUTS: usize = 32;
/// `OutputRegistry.DELAY_SECONDS`, in milliseconds: how far the head on L1 must be after a claimed block.
const DELAY_MS: u64 = 10_000;

/// Claims executed blocks in `OutputRegistry`.
pub(crate) struct Proposer {
    pub(crate) cx: Arc<Context>,
    pub(crate) l1: Arc<dyn L1Submitter>,
    /// How far execution is.
    pub(crate) executed: watch::Receiver<ExecutorStatus>,
    /// Whether it says which blocks are safe: somebody follows what stands on L1.
    pub(crate) knows_safe: bool,
}

impl Proposer {
    /// Claims outputs until the sequencer stops.
    pub(crate) async fn run(self) {
        let mut stop = self.cx.stop.clone();
        let pause = Duration::from_millis(self.cx.config.outputs.interval_ms);
        loop {
            // What is under way when the sequencer stops is found out at the next start.
            let outcome = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                outcome = self.propose_once() => outcome,
            };
            let full = outcome.unwrap_or_else(|error| {
                self.cx.metrics.output_failures.increment();
                tracing::warn!(%error, "claiming outputs on L1 failed; it is tried again");
                false
            });
            if full {
                continue;
            }
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// One round. True when a full transaction went out and more may follow at once.
    async fn propose_once(&self) -> Result<bool, L1RoundError> {
        let standing = self.l1.reader().output_standing().await?;
        self.cx.metrics.output_block_number.set(standing.last_block);
        let (executed, safe) = {
            let status = self.executed.borrow();
            (status.block.map_or(0, |block| block.number), status.safe.map_or(0, |(number, _)| number))
        };
        let first = standing.last_block.saturating_add(1);
        let through = settled(executed, self.cx.config.outputs.depth_blocks, self.knows_safe.then_some(safe));
        if first > through {
            return Ok(false);
        }
        let blocks = self.cx.store.blocks(first, MAX_OUTPUTS).await?;
        let outputs = claimable(&blocks, through, &standing);
        let Some(last) = outputs.last().map(|output| output.l2_block) else { return Ok(false) };
        let transaction = self.l1.propose_outputs(&outputs).await?.transaction;
        self.cx.metrics.outputs_proposed.add(outputs.len() as u64);
        self.cx.metrics.output_block_number.set(last);
        tracing::info!(first, last, %transaction, "claimed outputs on L1");
        Ok(outputs.len() == MAX_OUTPUTS)
    }
}

/// The last block that may be claimed: deep enough, and safe where that is known. What has no hints on L1 may become void,
/// and is then executed otherwise.
fn settled(executed: u64, depth: u64, safe: Option<u64>) -> u64 {
    executed.saturating_sub(depth).min(safe.unwrap_or(u64::MAX))
}

/// The claims of the leading blocks that follow the last claim without a gap, are not above block `through`, and are far
/// enough behind the head on L1.
fn claimable(blocks: &[BlockRecord], through: u64, standing: &OutputStanding) -> Vec<Output> {
    let follows = |place: usize, block: &BlockRecord| {
        standing.last_block.checked_add(place as u64 + 1) == Some(block.number)
    };
    let settled = |block: &BlockRecord| {
        let needed_ms = block.second.saturating_mul(1_000).saturating_add(DELAY_MS);
        block.number <= through
            && block.last_batch <= standing.head
            && needed_ms <= standing.head_timestamp_ms
    };
    let leading =
        blocks.iter().enumerate().take_while(|(place, block)| follows(*place, block) && settled(block));
    let output = |block: &BlockRecord| Output {
        l2_block: block.number,
        batch: block.last_batch,
        timestamp: block.second,
        block_hash: block.hash,
        state_root: block.state_root,
    };
    leading.take(MAX_OUTPUTS).map(|(_, block)| output(block)).collect()
}

#[cfg(test)]
mod tests {
    use blindfold_protocol::B256;

    use super::*;

    fn block(number: u64) -> BlockRecord {
        BlockRecord {
            second: 100 + number,
            number,
            hash: B256::repeat_byte(number as u8),
            parent_hash: B256::ZERO,
            state_root: B256::repeat_byte(0xee),
            first_batch: 2 * number,
            last_batch: 2 * number + 1,
            transactions: String::new(),
            payload: Vec::new(),
        }
    }

    fn claimed(blocks: &[BlockRecord], through: u64, standing: OutputStanding) -> Vec<u64> {
        claimable(blocks, through, &standing).iter().map(|output| output.l2_block).collect()
    }

    #[test]
    fn only_settled_blocks_are_claimed_and_in_order() {
        let blocks = [block(4), block(5), block(6)];
        let standing = OutputStanding { last_block: 3, head: 100, head_timestamp_ms: 1_000_000 };
        assert_eq!(claimed(&blocks, 100, standing), [4, 5, 6]);
        assert_eq!(claimed(&blocks, 5, standing), [4, 5], "deep enough");
        assert_eq!(claimed(&blocks, 3, standing), [0; 0]);
        assert_eq!(claimed(&blocks, 100, OutputStanding { head: 12, ..standing }), [4, 5], "posted");
        let early = OutputStanding { head_timestamp_ms: 114_999, ..standing };
        assert_eq!(claimed(&blocks, 100, early), [4], "ten seconds behind the head on L1");
        assert_eq!(claimed(&blocks[1..], 100, standing), [0; 0], "no gap");
        let expected = Output {
            l2_block: 4,
            batch: 9,
            timestamp: 104,
            block_hash: B256::repeat_byte(4),
            state_root: B256::repeat_byte(0xee),
        };
        assert_eq!(claimable(&blocks[..1], 100, &standing), [expected]);
    }

    #[test]
    fn what_is_not_safe_is_not_claimed() {
        assert_eq!(settled(20, 10, Some(7)), 7);
        assert_eq!(settled(20, 10, Some(15)), 10);
        assert_eq!(settled(20, 10, Some(0)), 0);
        assert_eq!((settled(20, 10, None), settled(5, 10, None)), (10, 0));
    }

    #[test]
    fn a_transaction_has_32_claims_at_most() {
        let blocks: Vec<BlockRecord> = (1..=40).map(block).collect();
        let standing = OutputStanding { last_block: 0, head: 1_000, head_timestamp_ms: 1_000_000 };
        assert_eq!(claimed(&blocks, 1_000, standing).len(), MAX_OUTPUTS);
    }
}
