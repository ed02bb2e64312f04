//! What watching needs of L1, as a seam: the client of the contracts implements it, tests script it.

use alloy_primitives::{Address, B256};
use async_trait::async_trait;
use blindfold_chain::{PostFault, RunPoster};
use blindfold_protocol::{BatchHeader, SealedBatch, SignedHeader, Verdict};

/// The newest L1 blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchBlocks {
    /// The newest final block.
    pub finalized: u64,
    /// The newest block.
    pub newest: u64,
}

/// Hints that somebody posted, as the event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostingSeen {
    /// Its id.
    pub id: u64,
    /// First number of the run.
    pub first: u64,
    /// Last number of the run.
    pub run_last: u64,
    /// Whose bond is locked.
    pub publisher: Address,
    /// The L1 block.
    pub block: u64,
    /// Commitment to every entry.
    pub root: B256,
}

/// What `HintRegistry` tells of postings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// Hints were posted.
    Posted(PostingSeen),
    /// A posting was made final or released: nothing can be said against it any more.
    Closed {
        /// The posting.
        id: u64,
    },
    /// A posting was struck out. Its publisher's bond is gone, so nothing is to be said against any that was open of
    /// its own: they are never final.
    Struck {
        /// The publisher.
        publisher: Address,
    },
}

/// The hints of one batch as they stand in a posting. Only their structure was checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostedBatch {
    /// Kind and key of each entry.
    pub entries: Vec<(u8, [u8; 16])>,
    /// Singleton releases: an entry that says malformed names the place of its own instead of a key.
    pub singletons: Vec<[u8; 48]>,
}

impl PostedBatch {
    /// The release at the place that a malformed entry names; `None` behind the end.
    pub fn release(&self, place: &[u8; 16]) -> Option<&[u8; 48]> {
        self.singletons.get(usize::try_from(u128::from_be_bytes(*place)).ok()?)
    }
}

/// The data of a posting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostedHints {
    /// The L1 block in which the run was posted.
    pub run_posted_at: u64,
    /// Merkle root over the run's header hashes.
    pub header_root: B256,
    /// One for each batch of the run, in order.
    pub batches: Vec<PostedBatch>,
}

/// A claim of the sequencer's about a block, in `OutputRegistry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostedOutput {
    /// The L2 block.
    pub l2_block: u64,
    /// A batch in it.
    pub batch: u64,
    /// Its time, Unix seconds.
    pub timestamp: u64,
    /// Its hash.
    pub block_hash: B256,
    /// Its state root.
    pub state_root: B256,
}

/// The contract before which a case comes. Each has its own commitments and rewards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Court {
    /// `BlindedInbox`: two headers for one number.
    Inbox,
    /// `HintRegistry`: a wrong posting.
    Hints,
}

/// What is committed to before the evidence is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// A posting is wrong.
    Hint {
        /// The posting.
        id: u64,
        /// The batch.
        number: u64,
        /// The entry.
        index: u32,
    },
    /// The sequencer signed two headers for one number.
    Headers {
        /// The number.
        number: u64,
        /// Hash of one header.
        first: B256,
        /// Hash of the other one.
        second: B256,
    },
}

impl Claim {
    /// Before which contract it comes.
    pub fn court(&self) -> Court {
        match self {
            Self::Hint { .. } => Court::Hints,
            Self::Headers { .. } => Court::Inbox,
        }
    }
}

/// Everything a challenge of one entry is made from.
#[derive(Clone, Debug)]
pub struct HintEvidence {
    /// The posting.
    pub posting: PostingSeen,
    /// Its data.
    pub posted: PostedHints,
    /// The headers of its run, in order.
    pub headers: Vec<BatchHeader>,
    /// The entry's batch.
    pub batch: SealedBatch,
    /// One verdict for each item of it.
    pub verdicts: Vec<Verdict>,
    /// Place of the entry in the batch.
    pub index: u32,
    /// For an envelope that is wrongly called malformed, the key that opens it.
    pub key: Option<[u8; 16]>,
}

/// Why L1 did not do what it was asked for, or why that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchTrouble {
    /// No answer, or the transaction did not make it: look where L1 stands and try again.
    #[error("L1 did not answer: {0}")]
    Unavailable(String),
    /// The contract refuses. Trying again is right when L1 moved on, and harmless otherwise.
    #[error("L1 refuses: {0}")]
    Refused(String),
}

impl From<PostFault> for WatchTrouble {
    fn from(fault: PostFault) -> Self {
        match fault {
            PostFault::Unavailable(reason) => Self::Unavailable(reason),
            PostFault::Refused(reason) => Self::Refused(reason),
        }
    }
}

/// What a full node reads of the contracts, and what one account may do there.
///
/// Methods that send wait until their transaction is in a block.
#[async_trait]
pub trait WatchL1: RunPoster {
    /// The account that shows evidence; `None` when the node only looks.
    fn reporter(&self) -> Option<Address>;

    /// The newest blocks.
    async fn blocks(&self) -> Result<WatchBlocks, WatchTrouble>;

    /// How long a posting can be challenged at least, in L1 blocks.
    async fn challenge_window(&self) -> Result<u64, WatchTrouble>;

    /// `HintRegistry`'s events in blocks `after + 1 ..= through`, in order. `through` need not be final.
    async fn hint_events(&self, after: u64, through: u64) -> Result<Vec<WatchEvent>, WatchTrouble>;

    /// The data of a posting; `None` when L1 has no such posting (any more).
    async fn posting(&self, posting: &PostingSeen) -> Result<Option<PostedHints>, WatchTrouble>;

    /// Final claims about blocks from `from` on, in order and without a gap, at most `limit`.
    async fn outputs(&self, from: u64, limit: usize) -> Result<Vec<PostedOutput>, WatchTrouble>;

    /// Whether both headers were shown with their signer's signature, each beside another one, after this L1 block, or after
    /// the newest for `None`. Else the two are evidence of their own.
    async fn shown(&self, pair: &[SignedHeader; 2], block: Option<u64>) -> Result<bool, WatchTrouble>;

    /// The L1 block of our commitment to a claim; `None` for none, or when it is used up.
    async fn committed_at(&self, claim: &Claim, salt: B256) -> Result<Option<u64>, WatchTrouble>;

    /// Commits to a claim.
    async fn commit(&self, claim: &Claim, salt: B256) -> Result<(), WatchTrouble>;

    /// Challenges one entry of a posting, with the stake.
    async fn challenge(&self, evidence: &HintEvidence, salt: B256) -> Result<(), WatchTrouble>;

    /// Shows two headers of one number.
    async fn slash_equivocation(
        &self,
        first: &SignedHeader,
        second: &SignedHeader,
        salt: B256,
    ) -> Result<(), WatchTrouble>;

    /// What waits to be claimed by us, in wei.
    async fn reward(&self, court: Court) -> Result<u128, WatchTrouble>;

    /// Takes it.
    async fn claim_reward(&self, court: Court) -> Result<(), WatchTrouble>;
}
