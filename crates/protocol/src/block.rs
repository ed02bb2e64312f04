//! How batches make blocks: one L2 block for each whole second that has an accepted item, a forced
//! transaction or an L1 deposit.

use crate::header::BatchHeader;
use crate::tags;
use alloy_primitives::{B256, keccak256};

/// The second a time in milliseconds belongs to.
pub fn block_second(timestamp_ms: u64) -> u64 {
    timestamp_ms / 1000
}

/// prevRandao of the block whose last batch has this header hash.
pub fn prev_randao(last_header_hash: &B256) -> B256 {
    keccak256([tags::RANDAO, last_header_hash.as_slice()].concat())
}

/// Sequence number of a block: blocks since the L1 origin changed. `previous` is the origin and sequence number of the
/// block before, if any.
pub fn sequence_number(previous: Option<(u64, u64)>, l1_origin_number: u64) -> u64 {
    match previous {
        // Saturating: 2^64 blocks on one origin are not reached by one block a second.
        Some((origin, sequence)) if origin == l1_origin_number => sequence.saturating_add(1),
        _ => 0,
    }
}

/// The batches of one whole second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Second {
    /// The second, and the block's timestamp.
    pub second: u64,
    /// Number of its first batch.
    pub first: u64,
    /// Number of its last batch so far.
    pub last: u64,
    /// Hash of the last header.
    pub last_hash: B256,
    /// L1 origin of the last header.
    pub l1_origin_number: u64,
    /// Hash of the L1 origin of the second's last header.
    pub l1_origin_hash: B256,
    /// Items of all its batches that make a block: accepted envelopes and forced transactions.
    pub accepted: u64,
}

impl Second {
    /// prevRandao of the block of this second.
    pub fn prev_randao(&self) -> B256 {
        prev_randao(&self.last_hash)
    }

    /// Whether the second makes a block: for an item, or for one of the L1 deposits since the previous block's origin.
    pub fn has_block(&self, l1_deposits: usize) -> bool {
        self.accepted > 0 || l1_deposits > 0
    }
}

/// Gathers certified headers, in order, into seconds.
#[derive(Clone, Debug, Default)]
pub struct Seconds {
    open: Option<Second>,
}

/// The headers given do not follow each other. The fault of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// A number was left out or came twice.
    #[error("batch {got} does not follow batch {last}")]
    Number {
        /// Number of the last batch that was taken.
        last: u64,
        /// Number of the batch that was given; not one above.
        got: u64,
    },
    /// Time went back by whole seconds.
    #[error("batch of second {got} after one of second {open}")]
    Time {
        /// The second that is being gathered, in Unix seconds.
        open: u64,
        /// The second of the batch that was given, below the open one.
        got: u64,
    },
}

impl Seconds {
    /// The second still open, if any.
    pub fn open(&self) -> Option<&Second> {
        self.open.as_ref()
    }

    /// Takes the next certified header with the number of its items that make a block
    /// ([`Verdict::makes_block`](crate::Verdict::makes_block)); gives the second it closes, if it belongs to a later one.
    pub fn push(
        &mut self,
        header: &BatchHeader,
        hash: B256,
        accepted: u32,
    ) -> Result<Option<Second>, OrderError> {
        let next = Second {
            second: header.second(),
            first: header.number,
            last: header.number,
            last_hash: hash,
            l1_origin_number: header.l1_origin_number,
            l1_origin_hash: header.l1_origin_hash,
            accepted: u64::from(accepted),
        };
        let Some(open) = self.open else {
            self.open = Some(next);
            return Ok(None);
        };
        if Some(header.number) != open.last.checked_add(1) {
            return Err(OrderError::Number { last: open.last, got: header.number });
        }
        if next.second < open.second {
            return Err(OrderError::Time { open: open.second, got: next.second });
        }
        if next.second > open.second {
            self.open = Some(next);
            return Ok(Some(open));
        }
        // Saturating: only whether it is zero matters, and a second holds no more than 2^32 batches of 2^32 items.
        self.open =
            Some(Second { first: open.first, accepted: open.accepted.saturating_add(next.accepted), ..next });
        Ok(None)
    }
}
