//! What posting hints needs of L1 and of the sequencer, as seams: the clients implement them, tests script them.

use async_trait::async_trait;
use blindfold_protocol::{Address, B256, BatchHints, SealedBatch};

/// A run of headers in `BlindedInbox`, as its event `Posted` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostedRun {
    /// Number of its first header.
    pub first: u64,
    /// Number of its last header; names the run.
    pub last: u64,
    /// The L1 block that it was posted in.
    pub posted_at: u64,
    /// Hash of the last header.
    pub head_hash: B256,
    /// Merkle root over the hashes of its headers.
    pub header_root: B256,
}

/// What `HintRegistry` tells of a run's hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintEvent {
    /// Hints were posted; their publisher's bond answers for them.
    Posted(HintPosting),
    /// A posting was shown to be wrong: its publisher's bond is gone, and all its open postings with it.
    Struck {
        /// The posting.
        id: u64,
        /// Its run's last number.
        run_last: u64,
        /// Whose it was.
        publisher: Address,
    },
    /// A posting stands for good.
    Finalized {
        /// The posting.
        id: u64,
        /// Its run's last number.
        run_last: u64,
    },
    /// A posting was closed because its run has other hints for good.
    Released {
        /// The posting.
        id: u64,
        /// Its run's last number.
        run_last: u64,
    },
    /// The run has no hints and never will.
    Voided {
        /// The run's last number.
        run_last: u64,
    },
}

/// Hints that somebody posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintPosting {
    /// Its id.
    pub id: u64,
    /// Last number of the run.
    pub run_last: u64,
    /// Whose bond answers for them.
    pub publisher: Address,
    /// The L1 block.
    pub block: u64,
    /// Commitment to every entry.
    pub root: B256,
}

/// The roots that `HintRegistry` computes from right hints, by where their data are. Both are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintRoots {
    /// In the place that this helper posts to; `None` when they do not fit there.
    pub own: Option<B256>,
    /// In the other one; `None` likewise.
    pub other: Option<B256>,
}

impl HintRoots {
    /// Whether a posting of this root has these hints.
    pub fn has(&self, root: B256) -> bool {
        self.own == Some(root) || self.other == Some(root)
    }
}

/// What `HintRegistry` asks and allows, fixed at its deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintTerms {
    /// The least bond of a publisher with open postings, in wei. It answers for all of them.
    pub publisher_bond: u128,
    /// How long a posting can be challenged, in L1 blocks.
    pub challenge_window: u64,
    /// How long after its posting a run without hints can be declared void, in L1 blocks.
    pub hint_deadline: u64,
}

/// The newest L1 blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct L1Blocks {
    /// The newest final block.
    pub finalized: u64,
    /// The newest block.
    pub newest: u64,
}

/// Why L1 did not do what it was asked for, or why that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum L1Trouble {
    /// No answer, or the transaction did not make it: look where L1 stands and try again.
    #[error("L1 did not answer: {0}")]
    Unavailable(String),
    /// The contract refuses. Trying again is right when L1 moved on, and harmless otherwise.
    #[error("L1 refuses: {0}")]
    Refused(String),
}

/// `HintRegistry` and the runs of `BlindedInbox`, read and written by one account.
#[async_trait]
pub trait HintsL1: Send + Sync {
    /// The account whose bond answers for its postings.
    fn publisher(&self) -> Address;

    /// Deposits and postings before this block there are none: the deployment's first.
    fn first_block(&self) -> u64;

    /// The newest blocks.
    async fn blocks(&self) -> Result<L1Blocks, L1Trouble>;

    /// What the registry asks and allows.
    async fn terms(&self) -> Result<HintTerms, L1Trouble>;

    /// Runs posted in blocks `after + 1 ..= through`, in order. `through` need not be final.
    async fn runs(&self, after: u64, through: u64) -> Result<Vec<PostedRun>, L1Trouble>;

    /// The registry's events in blocks `after + 1 ..= through`, in order. `through` need not be final.
    async fn hint_events(&self, after: u64, through: u64) -> Result<Vec<HintEvent>, L1Trouble>;

    /// The publisher's bond after the newest block, in wei.
    async fn bond(&self) -> Result<u128, L1Trouble>;

    /// Adds to the bond and waits until that is in a block.
    async fn deposit_bond(&self, amount: u128) -> Result<(), L1Trouble>;

    /// The roots that `HintRegistry` computes from these hints: those of consecutive batches, the first of number
    /// `first`.
    async fn roots(&self, first: u64, hints: &[BatchHints]) -> Result<HintRoots, L1Trouble>;

    /// Posts the hints of all batches of a run, in order, and waits until they are in a block.
    async fn post(&self, run: &PostedRun, hints: &[BatchHints]) -> Result<HintPosting, L1Trouble>;

    /// The entries of a posting as they stand in its transaction or its blobs, one list for each batch; `None` when L1
    /// has no such posting (any more), or its blobs cannot be read.
    async fn posted(&self, posting: &HintPosting) -> Result<Option<Vec<BatchHints>>, L1Trouble>;

    /// Makes a posting its run's hints for good and waits until that is in a block.
    async fn finalize(&self, id: u64) -> Result<(), L1Trouble>;

    /// Closes a posting whose run has other hints for good, and waits until that is in a block.
    async fn release(&self, id: u64) -> Result<(), L1Trouble>;
}

/// A batch as the sequencer gives it. Nothing of it is believed.
#[derive(Clone, Debug)]
pub struct SourcedBatch {
    /// Header and items.
    pub sealed: SealedBatch,
    /// One entry for each item: why it was skipped, `None` for accepted.
    pub verdicts: Vec<Option<String>>,
    /// Its hints, once there.
    pub hints: Option<BatchHints>,
}

/// Where batches come from.
#[async_trait]
pub trait BatchSource: Send + Sync {
    /// The batch of this number, `None` while it has none. An error says what did not work, and asking again may help.
    async fn batch(&self, number: u64) -> Result<Option<SourcedBatch>, String>;
}
