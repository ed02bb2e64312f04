//! What following the chain needs from L1, as a seam: the client of the contracts implements it, tests script it.

use alloy_primitives::Address;
use async_trait::async_trait;
use blindfold_protocol::validity::{L1Facts, LedgerEvent, OriginFacts};
use blindfold_protocol::{
    B256, BatchHeader, Bytes, Epochs, ForcedEntry, SealedBatch, limits::MAX_FORCED_ITEMS,
};

use crate::HeaderId;

pub use blindfold_engine::L1Origin;
pub use blindfold_l1::{AnnouncedEnd, L1Deposit};

/// Entries of the forced queue that [`L1View::facts`] gives at most: a header's, and the first that it may leave out.
pub const MAX_FORCED_ENTRIES: usize = MAX_FORCED_ITEMS + 1;

/// Final facts of L1.
///
/// Everything here but [`newest`](Self::newest), [`newest_time`](Self::newest_time), [`block_hash`](Self::block_hash) and
/// [`l1_headers_not_final`](Self::l1_headers_not_final) is about blocks that L1 holds for final, so an answer never changes
/// but by what comes after it.
#[async_trait]
pub trait L1View: Send + Sync {
    /// The newest final block.
    async fn finalized(&self) -> Result<L1Origin, L1Fault>;

    /// The number of the newest block, final or not: by it L1 counts its deadlines.
    async fn newest(&self) -> Result<u64, L1Fault>;

    /// The block of this number, `None` while it is not final here.
    async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Fault>;

    /// The epochs registered in `CommitteeRegistry`, in order.
    async fn epochs(&self) -> Result<Epochs, L1Fault>;

    /// The end of an epoch at the head that is announced, and that nothing has taken back; whether or not it is due. Asked
    /// often, so answered from what is known already.
    async fn announced_end(&self) -> Result<Option<AnnouncedEnd>, L1Fault>;

    /// Everything that the validity rule asks of blocks `after + 1 ..= through`, and the forced queue from entry
    /// `cursor` on as far as it stood at block `through`, at most [`MAX_FORCED_ENTRIES`]. `through` is final and not
    /// below `after`.
    async fn facts(&self, after: u64, through: u64, cursor: u64) -> Result<L1News, L1Fault>;

    /// What was deposited for L2 in blocks `after + 1 ..= through`, in L1 order. `through` is final.
    async fn bridge_deposits(&self, after: u64, through: u64) -> Result<Vec<L1Deposit>, L1Fault>;

    /// The header that L1 made for this number, if it made one.
    async fn l1_header(&self, number: u64) -> Result<Option<L1MadeHeader>, L1Fault>;

    /// The newest number for which L1 made a header. Asked often, so answered from what is known already.
    async fn last_l1_header(&self) -> Result<Option<u64>, L1Fault>;

    /// The headers that L1 made for this number and later ones, oldest first. Answered from what is known already.
    async fn l1_headers_from(&self, number: u64) -> Result<Vec<HeaderId>, L1Fault> {
        let mut headers = Vec::new();
        for number in number..=self.last_l1_header().await?.unwrap_or_default() {
            let made = self.l1_header(number).await?;
            headers.extend(made.map(|made| HeaderId { number, hash: made.header.hash() }));
        }
        Ok(headers)
    }

    /// Number and L1 block of the oldest header that L1 made in a block after this one. Answered from what is known already.
    async fn first_l1_header_after(&self, l1_block: u64) -> Result<Option<(u64, u64)>, L1Fault> {
        for number in 1..=self.last_l1_header().await?.unwrap_or_default() {
            if let Some(made) = self.l1_header(number).await?.filter(|made| made.l1_block > l1_block) {
                return Ok(Some((number, made.l1_block)));
            }
        }
        Ok(None)
    }

    /// The headers that L1 made in blocks that are not final yet, oldest first.
    async fn l1_headers_not_final(&self) -> Result<Vec<PendingL1Header>, L1Fault> {
        Ok(Vec::new())
    }

    /// The hash of the block of this number on L1's newest chain, final or not; `None` where whoever answers has none yet.
    async fn block_hash(&self, number: u64) -> Result<Option<B256>, L1Fault> {
        Ok(self.origin(number).await?.map(|origin| origin.hash))
    }

    /// All runs that L1 declared void, in L1 order. Asked for every batch, so answered from what is known already.
    async fn void_runs(&self) -> Result<Vec<VoidRun>, L1Fault>;

    /// The block in which this number was posted.
    async fn posted_at(&self, number: u64) -> Result<Option<u64>, L1Fault>;

    /// Whether hints of this number stand on L1: an open posting, or a final one.
    async fn hints_on_l1(&self, number: u64) -> Result<bool, L1Fault>;

    /// When the newest block was made, final or not, in seconds; `None` where that is not known.
    async fn newest_time(&self) -> Result<Option<u64>, L1Fault> {
        Ok(None)
    }
}

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
pub struct PendingL1Header {
    /// The header.
    pub header: HeaderId,
    /// The L1 block that made it.
    pub l1_block: u64,
    /// That block's hash.
    pub l1_hash: B256,
}

/// A header that L1 made (`BlindedInbox.postL1Header`), with the entries of the forced queue that it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct L1MadeHeader {
    /// The header.
    pub header: BatchHeader,
    /// The items in order, as they stand in the batch.
    pub items: Vec<Bytes>,
    /// The final L1 block that made it.
    pub l1_block: u64,
}

impl L1MadeHeader {
    /// The batch that stands for it: nobody signed it.
    pub fn batch(&self) -> SealedBatch {
        SealedBatch::by_l1(self.header, self.items.iter().map(|item| item.to_vec()).collect())
    }
}

/// Batches of which L1 knows no hints after the deadline: nothing of them executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoidRun {
    /// First batch.
    pub first: u64,
    /// Last batch.
    pub last: u64,
}

impl VoidRun {
    /// Whether the batch belongs to it.
    pub fn contains(&self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

/// Why L1 gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum L1Fault {
    /// No connection, no answer in time, or the endpoint is overloaded: ask again after a pause.
    #[error("L1 did not answer: {reason}")]
    Unavailable {
        /// What the client reported, without secrets.
        reason: String,
    },
    /// The endpoint answered with something that its interface rules out, or is on another chain. Asking again will
    /// hardly help; the operator has to look.
    #[error("L1 endpoint gave an unusable answer: {reason}")]
    Unusable {
        /// What did not fit.
        reason: String,
    },
}

impl L1Fault {
    /// Whether asking again may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}

/// The part of an origin that the validity rule looks at.
pub fn origin_facts(origin: &L1Origin) -> OriginFacts {
    OriginFacts { number: origin.number, hash: origin.hash, timestamp: origin.timestamp }
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
