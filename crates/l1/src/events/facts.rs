//! What L1 says that headers and blocks of the rollup depend on.

use alloy_primitives::{Address, Bytes};
use blindfold_protocol::{
    B256, BatchHeader, ForcedEntry, HeaderId, SealedBatch,
    limits::MAX_FORCED_ITEMS,
    validity::{L1Facts, LedgerEvent, OriginFacts},
};

/// Entries of the forced queue that [`L1Reader::facts`](crate::reader::L1Reader::facts) gives at most: a header's, and the
/// first that it may leave out.
pub const MAX_FORCED_ENTRIES: usize = MAX_FORCED_ITEMS + 1;

/// What L1 said from one block to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct L1News {
    /// Events for the fee ledger, in L1 order.
    pub ledger: Vec<LedgerEvent>,
    /// Entries of the forced queue, in order.
    pub forced: Vec<ForcedEntry>,
}

impl L1News {
    /// What a header with this origin depends on.
    pub fn into_facts(self, origin: OriginFacts, sequencer: Address) -> L1Facts {
        L1Facts { origin, sequencer, ledger: self.ledger, forced: self.forced }
    }

    /// The part of blocks `after + 1 ..= through`, with the forced queue from `cursor` on as it stood at `through`.
    /// `None` where the queue's entries may go on beyond those at hand.
    pub fn part(&self, after: u64, through: u64, cursor: u64) -> Option<Self> {
        let within = |l1_block: u64| l1_block > after && l1_block <= through;
        let ends = self.forced.len() < MAX_FORCED_ENTRIES
            || self.forced.last().is_some_and(|entry| entry.enqueued_at > through);
        let begins = self.forced.first().is_none_or(|entry| entry.index <= cursor);
        let entries = self.forced.iter();
        let forced: Vec<ForcedEntry> = entries
            .filter(|entry| entry.index >= cursor && entry.enqueued_at <= through)
            .take(MAX_FORCED_ENTRIES)
            .cloned()
            .collect();
        let complete = begins && (ends || forced.len() == MAX_FORCED_ENTRIES);
        complete.then(|| Self {
            ledger: self.ledger.iter().filter(|event| within(event.l1_block())).cloned().collect(),
            forced,
        })
    }
}

/// A header that L1 made in a block that is not final yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingFallbackHeader {
    /// Number and hash of the header.
    pub header: HeaderId,
    /// The L1 block that made it.
    pub l1_block: u64,
    /// Hash of that L1 block, by which it is found again or not.
    pub l1_hash: B256,
}

/// A header that L1 made (`BlindedInbox.postL1Header`), with the entries of the forced queue that it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackHeader {
    /// The header that L1 made.
    pub header: BatchHeader,
    /// The items in order, as they stand in the batch.
    pub items: Vec<Bytes>,
    /// The final L1 block that made it.
    pub l1_block: u64,
}

impl FallbackHeader {
    /// The batch that stands for it: nobody signed it.
    pub fn batch(&self) -> SealedBatch {
        SealedBatch::by_l1(self.header, self.items.iter().map(|item| item.to_vec()).collect())
    }
}

/// Batches of which L1 knows no hints after the deadline: nothing of them executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoidRun {
    /// First batch of the run.
    pub first: u64,
    /// Last batch of the run.
    pub last: u64,
}

impl VoidRun {
    /// Whether the batch belongs to it.
    pub fn contains(&self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blindfold_protocol::{Address, Deposit};

    fn news(entries: u64) -> L1News {
        let deposit = |l1_block: u64| {
            LedgerEvent::Deposit(Deposit { payer: Address::ZERO, amount: l1_block.into(), l1_block })
        };
        L1News {
            ledger: (1..=9).map(deposit).collect(),
            // Entry 5 in block 5, and so on.
            forced: (5..5 + entries).map(|n| ForcedEntry::transaction(n, 21_000, vec![1], n)).collect(),
        }
    }

    #[test]
    fn a_part_is_what_asking_for_it_gives() {
        let part = news(4).part(2, 7, 6).unwrap();
        assert_eq!(part.ledger.iter().map(LedgerEvent::l1_block).collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
        assert_eq!(part.forced.iter().map(|entry| entry.index).collect::<Vec<_>>(), [6, 7]);
        assert!(news(4).part(7, 7, 5).unwrap().ledger.is_empty());
        assert_eq!(news(0).part(0, 9, 5).unwrap().forced.len(), 0);
        assert_eq!(news(4).part(2, 7, 4), None, "entries before those at hand");
    }

    #[test]
    fn a_part_that_may_lack_entries_is_none() {
        let full = news(MAX_FORCED_ENTRIES as u64);
        assert_eq!(full.part(2, 100, 5).unwrap().forced.len(), MAX_FORCED_ENTRIES);
        assert_eq!(full.part(2, 100, 6), None, "there may be one more");
        assert_eq!(full.part(2, 20, 6).unwrap().forced.len(), 15, "the last one lies after the block");
    }
}
