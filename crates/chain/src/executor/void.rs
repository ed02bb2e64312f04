//! What L1 can have declared void while it does not answer.

use blindfold_engine::L1Origin;
use blindfold_runtime::{Instant, now};

use crate::limits::LEAST_L1_BLOCK_MS;

/// What was read of L1's void runs, and when.
///
/// A run is posted after the origin of its headers, and void no earlier than the hint deadline after that. So a batch
/// whose origin is younger than the deadline is not void, and needs nobody's word for it: while L1 is away, execution
/// goes on for as long as its blocks say so. What counts is L1's newest block, final or not: finality that stood still
/// catches up at once.
pub(super) struct VoidRuns {
    hint_deadline: u64,
    /// Runs that were compared with what is executed.
    checked: usize,
    /// The first and the last final block with which all runs were known.
    first: Option<L1Origin>,
    last: Option<L1Origin>,
    /// L1's newest block, not below the last final one, and when it was read.
    newest: Option<(u64, Instant)>,
}

impl VoidRuns {
    pub(super) fn new(hint_deadline: u32) -> Self {
        Self { hint_deadline: hint_deadline.into(), checked: 0, first: None, last: None, newest: None }
    }

    pub(super) fn checked(&self) -> usize {
        self.checked
    }

    /// All runs are to be compared anew.
    pub(super) fn check_again(&mut self) {
        self.checked = 0;
    }

    /// So many runs were known at this final block, when L1's newest was `newest`, and all of them are compared now.
    pub(super) fn read(&mut self, seen: &L1Origin, newest: u64, runs: usize) {
        self.checked = runs;
        self.first.get_or_insert(*seen);
        self.last = Some(*seen);
        self.newest = Some((newest.max(seen.number), now()));
    }

    /// Whether a batch with this origin cannot be void in a block that is final now.
    pub(super) fn too_early_for(&self, origin: u64) -> bool {
        let Some((newest, at)) = &self.newest else { return false };
        let away_ms = u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let newest = newest.saturating_add(away_ms / self.block_ms() + 1);
        newest < origin.saturating_add(self.hint_deadline)
    }

    /// How long L1 takes for a block, as its final blocks showed: never less than the least.
    fn block_ms(&self) -> u64 {
        let (Some(first), Some(last)) = (&self.first, &self.last) else { return LEAST_L1_BLOCK_MS };
        let blocks = last.number.saturating_sub(first.number);
        let passed_ms = last.timestamp.saturating_sub(first.timestamp).saturating_mul(1_000);
        passed_ms.checked_div(blocks).unwrap_or(0).max(LEAST_L1_BLOCK_MS)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use alloy_primitives::B256;

    use super::*;

    fn block(number: u64, timestamp: u64) -> L1Origin {
        let (base_fee, blob_base_fee) = (0, 0);
        let (hash, parent_beacon_block_root) = (B256::ZERO, B256::ZERO);
        L1Origin { number, hash, timestamp, base_fee, blob_base_fee, parent_beacon_block_root }
    }

    #[test]
    fn nothing_is_too_early_before_l1_was_read() {
        assert!(!VoidRuns::new(3_600).too_early_for(u64::MAX));
    }

    #[test]
    fn a_batch_is_too_early_for_as_long_as_its_origin_is_younger_than_the_deadline() {
        let mut void = VoidRuns::new(100);
        void.read(&block(1_000, 50_000), 1_000, 0);
        assert!(void.too_early_for(1_000) && void.too_early_for(902));
        assert!(!void.too_early_for(901) && !void.too_early_for(0));
        // One block a second, until L1 shows that it is slower.
        let Some((_, at)) = &mut void.newest else { panic!("it was read") };
        *at -= Duration::from_secs(60);
        assert!(void.too_early_for(1_000) && !void.too_early_for(960));
        void.first = Some(block(0, 38_000));
        assert!(void.too_early_for(960), "twelve seconds a block");
    }

    #[test]
    fn finality_that_stands_still_may_catch_up_at_once() {
        let mut void = VoidRuns::new(100);
        void.read(&block(1_000, 50_000), 1_090, 0);
        assert!(void.too_early_for(992) && !void.too_early_for(991));
        // A server that lags behind.
        void.read(&block(1_000, 50_000), 900, 0);
        assert!(void.too_early_for(902) && !void.too_early_for(901));
    }
}
