//! What goes into the rule and what comes out of it.

use super::faults::HeaderError;
use super::head::Head;
use crate::eip712::Deployment;
use crate::fault::{CODE_ACCEPTED, CODE_FORCED_TRANSACTION, EnvelopeError};
use crate::forced::ForcedEntry;
use crate::header::SignedHeader;
use crate::ledger::{LedgerDelta, LedgerDeltaError};
use alloy_primitives::{Address, B256};

/// What a party knows of the final L1 block a header names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OriginFacts {
    /// Number of the L1 block.
    pub number: u64,
    /// Hash of the final block of that number.
    pub hash: B256,
    /// Its timestamp, in Unix seconds.
    pub timestamp: u64,
}

/// One deposit into a fee account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deposit {
    /// Whose account grows.
    pub payer: Address,
    /// What was deposited, in wei.
    pub amount: u128,
    /// The final L1 block of the deposit.
    pub l1_block: u64,
}

/// One request to withdraw from a fee account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Withdrawal {
    /// Whose account shrinks.
    pub payer: Address,
    /// Wei asked for; what the balance does not cover is not withdrawn.
    pub amount: u128,
    /// The final L1 block of the request.
    pub l1_block: u64,
}

/// A run whose hints became final on L1, or that L1 declared void: what is held for its batches is released.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settled {
    /// First batch of the run.
    pub first: u64,
    /// Last batch of the run.
    pub last: u64,
    /// Items whose ciphertext is malformed by the final hints: (batch number, item index).
    pub malformed: Vec<(u64, u32)>,
    /// The run is void: everything goes back to the payers.
    pub void: bool,
    /// The final L1 block of the event.
    pub l1_block: u64,
}

/// What L1 says to the fee ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LedgerEvent {
    /// `FeeVault` emitted `Deposited`.
    Deposit(Deposit),
    /// `FeeVault` emitted `WithdrawalRequested`.
    Withdrawal(Withdrawal),
    /// `HintRegistry` emitted `HintsFinalized` or `Voided`.
    Settled(Settled),
}

impl LedgerEvent {
    /// The final L1 block of the event.
    pub fn l1_block(&self) -> u64 {
        match self {
            Self::Deposit(deposit) => deposit.l1_block,
            Self::Withdrawal(withdrawal) => withdrawal.l1_block,
            Self::Settled(settled) => settled.l1_block,
        }
    }
}

/// Everything of L1 that one header depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct L1Facts {
    /// The final L1 block that the header names.
    pub origin: OriginFacts,
    /// The key that signs headers with this origin: its account gets the priority fees.
    pub sequencer: Address,
    /// Events of L1 blocks (parent's origin, this origin], in L1 order.
    pub ledger: Vec<LedgerEvent>,
    /// The forced queue from the parent's cursor on, in order: entries of L1 blocks up to this origin, as many as
    /// there are up to `MAX_FORCED_ITEMS + 1`.
    pub forced: Vec<ForcedEntry>,
}

impl L1Facts {
    /// An origin with nothing new.
    pub fn quiet(origin: OriginFacts, sequencer: Address) -> Self {
        Self { origin, sequencer, ledger: Vec::new(), forced: Vec::new() }
    }
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Paid for; its place among the accepted items, from 0.
    Accepted {
        /// Place among the accepted items, from 0.
        position: u32,
    },
    /// Left out by this fault; it pays nothing.
    Skipped(EnvelopeError),
    /// A transaction in the clear, forced in through L1: nothing is opened, and it is paid for on L1.
    ForcedTransaction,
}

/// What [`Verdict::reason`] says of a forced transaction.
pub const FORCED_TRANSACTION_REASON: &str = "forced_transaction";

impl Verdict {
    /// Null for an accepted envelope, the reason for a skipped one, `forced_transaction`: as in `blind_getBatch`.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Accepted { .. } => None,
            Self::Skipped(fault) => Some(fault.as_str()),
            Self::ForcedTransaction => Some(FORCED_TRANSACTION_REASON),
        }
    }

    /// The code in the item's leaf of the envelope tree.
    pub fn code(&self) -> u8 {
        match self {
            Self::Accepted { .. } => CODE_ACCEPTED,
            Self::Skipped(fault) => fault.code(),
            Self::ForcedTransaction => CODE_FORCED_TRANSACTION,
        }
    }

    /// The code of what [`Verdict::reason`] gives; `None` for a name it never gives.
    pub fn code_of_reason(reason: Option<&str>) -> Option<u8> {
        match reason {
            None => Some(CODE_ACCEPTED),
            Some(FORCED_TRANSACTION_REASON) => Some(CODE_FORCED_TRANSACTION),
            Some(name) => EnvelopeError::from_name(name).map(EnvelopeError::code),
        }
    }

    /// Whether the item makes its second have a block: an accepted envelope or a forced transaction.
    pub fn makes_block(&self) -> bool {
        matches!(self, Self::Accepted { .. } | Self::ForcedTransaction)
    }

    /// Whether the item was accepted.
    pub fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted { .. })
    }
}

/// Indices of the accepted items, cut into sub-batches (V-13).
pub fn sub_batches(verdicts: &[Verdict], max_batch: u32) -> Vec<Vec<u32>> {
    let accepted: Vec<u32> = verdicts
        .iter()
        .zip(0u32..)
        .filter(|(verdict, _)| verdict.is_accepted())
        .map(|(_, index)| index)
        .collect();
    cut(&accepted, max_batch).map(<[u32]>::to_vec).collect()
}

/// Cuts the accepted items of a batch into the sub-batches that are released together: at most `max_batch` each, in order.
pub fn cut<T>(accepted: &[T], max_batch: u32) -> std::slice::Chunks<'_, T> {
    // An epoch's B is not 0; `chunks` must not be asked for 0.
    accepted.chunks(max_batch.max(1) as usize)
}

/// What one header did, enough to undo it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedBatch {
    /// Number of the header that was applied.
    pub number: u64,
    /// Hash of the header that was applied.
    pub header_hash: B256,
    /// What became of each item.
    pub verdicts: Vec<Verdict>,
    /// What the fee ledger changed.
    pub ledger_delta: LedgerDelta,
    /// The head that [`ChainState::revert`](super::ChainState::revert) goes back to.
    pub previous_head: Head,
    /// The head that the header left.
    pub head: Head,
}

impl AppliedBatch {
    /// How many items were accepted, forced envelopes among them.
    pub fn accepted(&self) -> u32 {
        // A batch has at most `MAX_BATCH_ITEMS` verdicts.
        self.verdicts.iter().filter(|verdict| verdict.is_accepted()).count() as u32
    }
}

/// The signature on a header must be the sequencer's (V-1).
pub fn check_signature(
    signed: &SignedHeader,
    deployment: &Deployment,
    sequencer: &Address,
) -> Result<(), HeaderError> {
    match signed.signer(deployment).map_err(HeaderError::Signature)? {
        signer if signer == *sequencer => Ok(()),
        signer => Err(HeaderError::Signer(signer)),
    }
}

/// Why a batch cannot be undone. The caller's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LastBatchError {
    /// Another batch came after it.
    #[error("batch {number} is not the last one applied (the head is {head})")]
    NotLast {
        /// Number of the batch to undo.
        number: u64,
        /// Number of the head, another one.
        head: u64,
    },
    /// The ledger has moved on, for instance by a release of what was held.
    #[error("fee ledger: {0}")]
    Ledger(#[from] LedgerDeltaError),
}
