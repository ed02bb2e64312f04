//! What goes into a block and what comes out.

use alloy_primitives::{Address, B64, B256, Bytes, b64};
use serde::{Deserialize, Serialize};

use crate::{SkipReason, StoredPayload};

/// EIP-1559 parameters of every block: denominator 250 and elasticity 6, two big-endian `u32`.
/// Constant, so that the base fee is a function of the parent alone.
pub const EIP1559_PARAMS: B64 = b64!("000000fa00000006");

/// Smallest base fee of a block, in wei. Zero: the base fee follows EIP-1559 alone.
pub const MIN_BASE_FEE_WEI: u64 = 0;

/// A block, named by number and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlockId {
    /// Number of the block; genesis is 0.
    pub number: u64,
    /// Hash of the block.
    pub hash: B256,
    /// Time stamp, in whole seconds.
    pub timestamp: u64,
}

/// The finalised L1 block that a batch header names as its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct L1Origin {
    /// Number of the L1 block.
    pub number: u64,
    /// Hash of the L1 block.
    pub hash: B256,
    /// L1 time stamp, in whole seconds.
    pub timestamp: u64,
    /// L1 base fee, in wei per gas.
    pub base_fee: u128,
    /// L1 blob base fee, in wei per blob gas.
    pub blob_base_fee: u128,
    /// Root of the beacon block before the origin, as the L1 header states it (EIP-4788).
    pub parent_beacon_block_root: B256,
}

/// Everything about an L2 block that is not its transactions and not its parent.
/// Each field is a function of batch headers and of their L1 origin, so that all nodes build the same block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockInputs {
    /// Time stamp, in whole seconds; strictly above the parent's.
    pub timestamp: u64,
    /// The value of the `PREVRANDAO` opcode.
    pub prev_randao: B256,
    /// Receives the priority fees of the block's transactions.
    pub fee_recipient: Address,
    /// Gas limit of the block, the attributes deposit included.
    pub gas_limit: u64,
    /// The L1 block that the block names as its origin.
    pub l1_origin: L1Origin,
    /// Blocks since the first one with this origin: 0 for the first.
    pub sequence_number: u64,
    /// Raw deposit transactions (type 0x7e) from L1 blocks since the previous origin, in L1 order.
    pub l1_deposits: Vec<Bytes>,
}

/// A transaction of the committed list that the block does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedTransaction {
    /// Its index in the committed list.
    pub index: usize,
    /// Why the client cannot execute it where it stands.
    pub reason: SkipReason,
}

/// A block that was built, checked, imported and made the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutedBlock {
    /// Number of the block.
    pub number: u64,
    /// Hash of the block.
    pub hash: B256,
    /// Hash of the block before it.
    pub parent_hash: B256,
    /// State root after the block.
    pub state_root: B256,
    /// Time stamp, in whole seconds.
    pub timestamp: u64,
    /// Hashes of all transactions of the block in order: attributes deposit, L1 deposits, included ones.
    pub transactions: Vec<B256>,
    /// The committed transactions left out, by rising index.
    pub skipped: Vec<SkippedTransaction>,
    /// Gas used by the block.
    pub gas_used: u64,
    /// The payload, to be stored: what [`crate::replay`] imports after a crash of the client.
    pub payload: StoredPayload,
}

impl ExecutedBlock {
    /// Number, hash and time stamp.
    pub fn id(&self) -> BlockId {
        BlockId { number: self.number, hash: self.hash, timestamp: self.timestamp }
    }
}
