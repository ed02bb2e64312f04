//! Posted runs that L1 may still have something to say about.

use std::collections::VecDeque;

use alloy_primitives::B256;
use blindfold_l1::{HintRoots, RegistryState, RunReference};

use crate::NextLook;

/// Roots of our own hints, as far as they were needed.
#[derive(Clone, Copy, Debug)]
pub(super) enum OwnRoots {
    InCalldata(HintRoots),
    All(HintRoots),
}

impl OwnRoots {
    pub(super) fn roots(&self) -> &HintRoots {
        match self {
            Self::InCalldata(roots) | Self::All(roots) => roots,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        matches!(self, Self::All(_))
    }
}

/// A posted run, as long as L1 may still say something about it.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) reference: RunReference,
    /// Hash of its last header.
    pub(super) head_hash: B256,
    /// Whether a batch of it needs hints, once our batches were looked at.
    pub(super) needs_hints: Option<bool>,
    /// Roots of our own hints, once all are here and somebody posted some.
    pub(super) roots: Option<OwnRoots>,
    /// Its data was found on L1.
    pub(super) data: bool,
    /// When its data is looked for again.
    pub(super) look: NextLook,
}

/// What L1 said of runs, up to a final block.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// In order, without a gap.
    pub(super) list: VecDeque<Run>,
    /// Hints of these runs, and which of them are settled: they have final hints, or are void.
    pub(super) hints: RegistryState,
    /// Of runs whose ledgers `FeeVault` does not pay out yet: the block of the posting, and the last batch.
    unpaid: VecDeque<(u64, u64)>,
    /// Last batch of the newest run whose ledger it does, 0 where none is known.
    payable: u64,
}

impl Runs {
    /// A run was posted, certified or made by L1.
    pub(super) fn add(&mut self, run: RunReference, head_hash: B256) {
        self.unpaid.push_back((run.posted_at, run.last));
        self.list.push_back(Run {
            reference: run,
            head_hash,
            needs_hints: None,
            roots: None,
            data: false,
            look: NextLook::default(),
        });
    }

    /// Last batch of the newest run; 0 before the first, and when nothing is left to be said about any.
    pub(super) fn newest(&self) -> u64 {
        self.list.back().map_or(0, |run| run.reference.last)
    }

    /// Whether these hints stand open for the run that ends at `last`, in calldata or in blobs.
    pub(super) fn stand(&self, last: u64, roots: &HintRoots) -> bool {
        self.hints.open_for(last).any(|hints| roots.contain(hints.root))
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
        self.hints.keep_runs(|last| last > through);
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
    use alloy_primitives::Address;
    use blindfold_l1::{HintEvent, PostedLog};

    use super::*;

    fn post(runs: &mut Runs, first: u64, last: u64, posted_at: u64) {
        let run = RunReference { first, last, posted_at, header_root: B256::ZERO };
        runs.add(run, B256::repeat_byte(last as u8));
    }

    fn hints(id: u64, last: u64, publisher: u8) -> HintEvent {
        HintEvent::Posted(PostedLog {
            id,
            first: last,
            last,
            publisher: Address::repeat_byte(publisher),
            l1_block: 13,
            transaction: B256::ZERO,
            root: B256::repeat_byte(id as u8),
        })
    }

    #[test]
    fn hints_stand_by_their_root_and_runs_are_forgotten_when_nothing_is_left_to_be_said() {
        let mut runs = Runs::default();
        post(&mut runs, 1, 4, 10);
        post(&mut runs, 5, 6, 12);
        [hints(1, 4, 1), hints(2, 6, 1), hints(3, 6, 2)].iter().for_each(|event| runs.hints.apply(event));
        let in_calldata = |byte| HintRoots { calldata: Some(B256::repeat_byte(byte)), blobs: None };
        let in_blobs = |byte| HintRoots { calldata: None, blobs: Some(B256::repeat_byte(byte)) };
        assert!(
            runs.stand(6, &in_calldata(2)) && runs.stand(6, &in_blobs(2)) && !runs.stand(4, &in_calldata(2))
        );
        // Of a run that is forgotten, and of one that is none.
        for last in [6, 3, 9] {
            runs.hints.apply(&HintEvent::Finalized { id: last, first: last, last });
        }
        assert_eq!([4, 6].map(|last| runs.hints.is_settled(last)), [false, true]);
        assert_eq!(runs.resume_after(20), 9);
        runs.forget(4);
        assert_eq!((runs.list.len(), runs.resume_after(20)), (1, 9), "its ledger is not paid out yet");
        assert_eq!((runs.payable(9), runs.payable(11)), (0, 4));
        assert_eq!(runs.resume_after(20), 11);
        runs.forget(6);
        assert_eq!((runs.resume_after(20), runs.hints.open_for(6).count()), (11, 0));
        assert_eq!((runs.payable(12), runs.payable(20)), (6, 6));
        assert_eq!(runs.resume_after(20), 20);
    }
}
