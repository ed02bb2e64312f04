//! What a stored block tells beside its payload: the answer of every receipt.

use alloy_primitives::B256;
use serde::{Deserialize, Serialize};

/// Kept as JSON in the block's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlockDetails {
    /// Hashes of all transactions of the block, in order; the attributes deposit first.
    pub transactions: Vec<B256>,
    /// Number of the block's L1 origin.
    pub l1_origin_number: u64,
    /// Blocks since the origin changed.
    pub sequence_number: u64,
    /// Gas used by the block.
    pub gas_used: u64,
    /// The L1 deposits taken by this block and all before it.
    pub deposits: DepositCursor,
    /// Every item of the block's batches, in committed order.
    pub envelopes: Vec<ExecutedEnvelope>,
}

/// How far the chain of blocks has taken the L1 deposits: all of L1 blocks up to `through`, and `then` of those after
/// it. A function of the chain, so that a restart goes on with the same deposit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DepositCursor {
    /// The last L1 block whose deposits are all taken.
    pub through: u64,
    /// Deposits taken of the L1 blocks after it.
    pub then: u64,
    /// Whether a deposit of an L1 block up to the block's origin was left for the next block.
    pub more: bool,
}

impl BlockDetails {
    /// What became of item `index` of batch `number`.
    pub fn envelope(&self, number: u64, index: u32) -> Option<&ExecutedEnvelope> {
        // Committed order is the order of (number, index).
        let place =
            self.envelopes.binary_search_by_key(&(number, index), |entry| (entry.number, entry.index));
        place.ok().and_then(|place| self.envelopes.get(place))
    }
}

/// One item of a batch after execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecutedEnvelope {
    /// Envelope id; zero for an item that has none: it does not decode, is a forced transaction, or stands in a header
    /// that L1 made.
    pub id: B256,
    /// Number of the batch that holds it.
    pub number: u64,
    /// Its index in that batch, from 0.
    pub index: u32,
    /// Whether it was opened and executed.
    pub outcome: EnvelopeOutcome,
    /// Its inner transactions in order; none if the bundle was never opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transactions: Vec<InnerTransaction>,
}

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "reason")]
pub enum EnvelopeOutcome {
    /// Opened, or a forced transaction; each inner transaction says whether it is in the block.
    Executed,
    /// Skipped whole, for this reason: by the validity rule, or because the message is no bundle.
    Skipped(String),
    /// The ciphertext decrypts to nothing.
    Malformed,
    /// L1 declared the batch void, or made its header itself: nobody opens it.
    Void,
}

/// One item of an opened bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InnerTransaction {
    /// Transaction hash; absent for an item that is no transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<B256>,
    /// Why it is not in the block; absent if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}
