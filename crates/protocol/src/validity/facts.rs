//! What goes into the rule and what comes out of it.

use super::faults::HeaderFault;
use super::head::Head;
use crate::eip712::Deployment;
use crate::fault::EnvelopeFault;
use crate::header::SignedHeader;
use crate::ledger::{LedgerDelta, LedgerFault};
use alloy_primitives::{Address, B256};

/// What a party knows of the final L1 block a header names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OriginFacts {
    /// Block number.
    pub number: u64,
    /// Hash of the final block of that number.
    pub hash: B256,
    /// Its timestamp, Unix seconds.
    pub timestamp: u64,
}

/// One deposit into `FeeVault`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deposit {
    /// Whose account grows.
    pub payer: Address,
    /// Wei.
    pub amount: u128,
    /// The final L1 block of the deposit.
    pub l1_block: u64,
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Paid for; its place among the accepted items, from 0.
    Accepted {
        /// Place among the accepted items, from 0.
        position: u32,
    },
    /// Left out, unpaid.
    Skipped(EnvelopeFault),
}

impl Verdict {
    /// Null or the reason, as in `blind_getBatch`.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Accepted { .. } => None,
            Self::Skipped(fault) => Some(fault.as_str()),
        }
    }

    /// Whether the item was accepted.
    pub fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted { .. })
    }
}

/// Indices of the accepted items, cut into sub-batches of at most `max_batch` in order.
pub fn sub_batches(verdicts: &[Verdict], max_batch: u32) -> Vec<Vec<u32>> {
    let accepted: Vec<u32> = verdicts
        .iter()
        .zip(0u32..)
        .filter(|(verdict, _)| verdict.is_accepted())
        .map(|(_, index)| index)
        .collect();
    // An epoch's B is not 0; `chunks` must not be asked for 0.
    accepted.chunks(max_batch.max(1) as usize).map(<[u32]>::to_vec).collect()
}

/// What one header did, enough to undo it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedBatch {
    /// Number of the header.
    pub number: u64,
    /// Hash of the header.
    pub header_hash: B256,
    /// What became of each item.
    pub verdicts: Vec<Verdict>,
    /// What the fee ledger changed.
    pub ledger_delta: LedgerDelta,
    /// The head before.
    pub previous_head: Head,
    /// The head after.
    pub head: Head,
}

impl AppliedBatch {
    /// Number of accepted items.
    pub fn accepted(&self) -> u32 {
        // A batch has at most `MAX_BATCH_ITEMS` verdicts.
        self.verdicts.iter().filter(|verdict| verdict.is_accepted()).count() as u32
    }
}

/// The signature on a header must be the sequencer's.
pub fn check_signature(
    signed: &SignedHeader,
    deployment: &Deployment,
    sequencer: &Address,
) -> Result<(), HeaderFault> {
    match signed.signer(deployment).map_err(HeaderFault::Signature)? {
        signer if signer == *sequencer => Ok(()),
        signer => Err(HeaderFault::Signer(signer)),
    }
}

/// Why a batch cannot be undone. The caller's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LastBatchFault {
    /// Another batch came after it.
    #[error("batch {number} is not the last one applied (the head is {head})")]
    NotLast {
        /// The batch to undo.
        number: u64,
        /// The head.
        head: u64,
    },
    /// The ledger has moved on, for instance by a release of what was held.
    #[error("fee ledger: {0}")]
    Ledger(#[from] LedgerFault),
}
