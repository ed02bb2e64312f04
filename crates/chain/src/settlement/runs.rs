//! Posted runs that L1 may still have something to say about.

use std::collections::{BTreeMap, VecDeque};

use alloy_primitives::{Address, B256};
use blindfold_l1::{HintRoots, RunReference, SettlementLog};

use crate::NextLook;

/// A posted run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) reference: RunReference,
    /// Hash of its last header.
    pub(super) head_hash: B256,
    /// Its hints are final, or it is void.
    pub(super) settled: bool,
    /// Whether a batch of it needs hints, once our batches were looked at.
    pub(super) needs_hints: Option<bool>,
    /// Roots of our own hints, once all are here.
    pub(super) roots: Option<HintRoots>,
    /// Its data was found on L1.
    pub(super) data: bool,
    /// When its data is looked for again.
    pub(super) look: NextLook,
}

/// Hints that stand open on L1.
#[derive(Clone, Copy, Debug)]
struct OpenHints {
    last: u64,
    publisher: Address,
    root: B256,
}

/// What L1 said of runs, up to a final block.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// In order, without a gap.
    pub(super) list: VecDeque<Run>,
    open: BTreeMap<u64, OpenHints>,
    /// Of runs whose ledgers `FeeVault` does not pay out yet: the block of the posting, and the last batch.
    unpaid: VecDeque<(u64, u64)>,
    /// Last batch of the newest run whose ledger it does, 0 where none is known.
    payable: u64,
}

impl Runs {
    pub(super) fn apply(&mut self, log: &SettlementLog) {
        match *log {
            SettlementLog::Posted { run, head_hash } => {
                self.unpaid.push_back((run.posted_at, run.last));
                self.list.push_back(Run {
                    reference: run,
                    head_hash,
                    settled: false,
                    needs_hints: None,
                    roots: None,
                    data: false,
                    look: NextLook::default(),
                });
            }
            SettlementLog::Hints { id, last, publisher, root } => {
                self.open.insert(id, OpenHints { last, publisher, root });
            }
            SettlementLog::Struck { publisher } => self.open.retain(|_, hints| hints.publisher != publisher),
            SettlementLog::Final { last } | SettlementLog::Void { last } => {
                let place = self.list.partition_point(|run| run.reference.last < last);
                if let Some(run) = self.list.get_mut(place).filter(|run| run.reference.last == last) {
                    run.settled = true;
                }
            }
        }
    }

    /// Last batch of the newest run; 0 before the first, and when nothing is left to be said about any.
    pub(super) fn newest(&self) -> u64 {
        self.list.back().map_or(0, |run| run.reference.last)
    }

    /// Whether any hints stand open for the run that ends at `last`.
    pub(super) fn has_hints(&self, last: u64) -> bool {
        self.open.values().any(|hints| hints.last == last)
    }

    /// Whether these hints stand open for it, in calldata or in blobs.
    pub(super) fn stand(&self, last: u64, roots: &HintRoots) -> bool {
        self.open.values().any(|hints| hints.last == last && roots.contain(hints.root))
    }

    /// `FeeVault` pays out ledgers of runs that were posted in this block or earlier. Last batch of the newest of them; 0
    /// where none is known.
    pub(super) fn payable(&mut self, posted_through: u64) -> u64 {
        while let Some((_, last)) = self.unpaid.pop_front_if(|(posted_at, _)| *posted_at <= posted_through) {
            self.payable = last;
        }
        self.payable
    }

    /// Forgets runs up to this batch.
    pub(super) fn forget(&mut self, through: u64) {
        while self.list.front().is_some_and(|run| run.reference.last <= through) {
            self.list.pop_front();
        }
        self.open.retain(|_, hints| hints.last > through);
    }

    /// The L1 block before everything that is still to be heard of.
    pub(super) fn resume_after(&self, through: u64) -> u64 {
        let unsettled = self.list.front().map(|run| run.reference.posted_at);
        let unpaid = self.unpaid.front().map(|(posted_at, _)| *posted_at);
        let first = unsettled.into_iter().chain(unpaid).min();
        first.map_or(through, |posted_at| posted_at.saturating_sub(1).min(through))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posted(first: u64, last: u64, posted_at: u64) -> SettlementLog {
        let run = RunReference { first, last, posted_at, header_root: B256::ZERO };
        SettlementLog::Posted { run, head_hash: B256::repeat_byte(last as u8) }
    }

    #[test]
    fn a_strike_ends_all_open_hints_of_a_publisher_and_nothing_else() {
        let mut runs = Runs::default();
        [posted(1, 4, 10), posted(5, 6, 12)].iter().for_each(|log| runs.apply(log));
        let hints = |id, last, publisher| SettlementLog::Hints {
            id,
            last,
            publisher: Address::repeat_byte(publisher),
            root: B256::repeat_byte(id as u8),
        };
        [hints(1, 4, 1), hints(2, 6, 1), hints(3, 6, 2)].iter().for_each(|log| runs.apply(log));
        let in_calldata = |byte| HintRoots { calldata: Some(B256::repeat_byte(byte)), blobs: None };
        let in_blobs = |byte| HintRoots { calldata: None, blobs: Some(B256::repeat_byte(byte)) };
        assert!(
            runs.stand(6, &in_calldata(2)) && runs.stand(6, &in_blobs(2)) && !runs.stand(4, &in_calldata(2))
        );
        runs.apply(&SettlementLog::Struck { publisher: Address::repeat_byte(1) });
        assert_eq!([4, 6].map(|last| runs.has_hints(last)), [false, true]);
        assert!(!runs.stand(6, &in_calldata(2)) && runs.stand(6, &in_calldata(3)));
        // Of a run that is forgotten, and of one that is none.
        for last in [6, 3, 9] {
            runs.apply(&SettlementLog::Final { last });
        }
        assert_eq!(runs.list.iter().map(|run| run.settled).collect::<Vec<_>>(), [false, true]);
        assert_eq!(runs.resume_after(20), 9);
        runs.forget(4);
        assert_eq!((runs.list.len(), runs.resume_after(20)), (1, 9), "its ledger is not paid out yet");
        assert_eq!((runs.payable(9), runs.payable(11)), (0, 4));
        assert_eq!(runs.resume_after(20), 11);
        runs.forget(6);
        assert_eq!((runs.resume_after(20), runs.has_hints(6)), (11, false));
        assert_eq!((runs.payable(12), runs.payable(20)), (6, 6));
        assert_eq!(runs.resume_after(20), 20);
    }
}
