//! The forced queue of L1: items that a header must take, whatever the sequencer likes.
//!
//! An entry is an envelope, or a transaction in the clear. The first items of a batch are the queue's next entries in
//! order, byte for byte; `forcedCursor` says how many entries the chain has taken in all.

use crate::codec::{Canonical, DecodeError, Reader, Writer, serde_as_hex};
use crate::limits::MAX_FORCED_TRANSACTION_BYTES;
use alloy_primitives::{B256, Bytes, keccak256};

/// First byte of a forced transaction as an item of a batch: its verdict code. An envelope begins with the version
/// byte, which never gets there (EN-5).
pub const FORCED_TRANSACTION: u8 = 0xff;
/// What a forced transaction adds to its transaction, in bytes.
pub const FORCED_TRANSACTION_OVERHEAD_BYTES: usize = 9;

/// A transaction in the clear, as it stands in a batch: `0xff ‖ gasLimit u64 ‖ raw signed EIP-2718 transaction`.
///
/// Allowed only as a forced item; anywhere else it is an item that does not decode.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForcedTransaction {
    /// Gas that was paid for on L1; the transaction's own limit may not be above it.
    pub gas_limit: u64,
    /// The raw signed transaction. Whether it is one shows at execution.
    pub transaction: Vec<u8>,
}

impl Canonical for ForcedTransaction {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::with_capacity(FORCED_TRANSACTION_OVERHEAD_BYTES + self.transaction.len());
        out.u8(FORCED_TRANSACTION).u64(self.gas_limit).bytes(&self.transaction);
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        match reader.u8("item type")? {
            FORCED_TRANSACTION => {}
            value => return Err(DecodeError::UnknownTag { field: "item type", value }),
        }
        let gas_limit = reader.u64("gas limit")?;
        let (field, left) = ("forced transaction", reader.left());
        if left == 0 {
            return Err(DecodeError::Short { field, needed: 1, left });
        }
        if left > MAX_FORCED_TRANSACTION_BYTES {
            let limit = MAX_FORCED_TRANSACTION_BYTES as u64;
            return Err(DecodeError::TooLarge { field, got: left as u64, limit });
        }
        let transaction = reader.take(field, left)?.to_vec();
        reader.finish()?;
        Ok(Self { gas_limit, transaction })
    }
}

serde_as_hex!(ForcedTransaction);

/// One entry of the forced queue, with its item's bytes as they must stand in the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForcedEntry {
    /// Place in the queue, from 0.
    pub index: u64,
    /// The item's bytes in a batch: an envelope, or an encoded [`ForcedTransaction`].
    pub item: Bytes,
    /// The final L1 block it was enqueued in.
    pub enqueued_at: u64,
}

impl ForcedEntry {
    /// A forced envelope (kind 0): the bytes as they were given.
    pub fn envelope(index: u64, item: impl Into<Bytes>, enqueued_at: u64) -> Self {
        Self { index, item: item.into(), enqueued_at }
    }

    /// A forced transaction (kind 1): the raw transaction and the gas limit that were given.
    pub fn transaction(index: u64, gas_limit: u64, raw: impl Into<Vec<u8>>, enqueued_at: u64) -> Self {
        let item = ForcedTransaction { gas_limit, transaction: raw.into() }.encode();
        Self { index, item: item.into(), enqueued_at }
    }

    /// `itemHash` of the queue: keccak256 of the item's bytes.
    pub fn item_hash(&self) -> B256 {
        keccak256(&self.item)
    }

    /// The gas limit of a forced transaction; `None` for an envelope. The queue lets no other first bytes in.
    pub fn transaction_gas(&self) -> Option<u64> {
        forced_transaction_gas(&self.item)
    }

    /// The first origin number whose header must have taken the entry (FI-2).
    pub fn due_at(&self, forced_delay: u32) -> u64 {
        // Saturating: L1 does not reach 2^64 blocks.
        self.enqueued_at.saturating_add(forced_delay.into())
    }
}

/// The gas limit of a forced item that is a transaction; `None` for any other.
pub(crate) fn forced_transaction_gas(item: &[u8]) -> Option<u64> {
    ForcedTransaction::decode(item).ok().map(|forced| forced.gas_limit)
}
