//! The Engine API's JSON, as op-geth speaks it from Isthmus on.

use alloy_primitives::{Address, B64, B256, Bytes, U64, U256};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BlockInputs, EIP1559_PARAMS, MIN_BASE_FEE_WEI, SkippedTransaction};

/// `PayloadAttributesV3` with the OP Stack's additions.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PayloadAttributes {
    pub timestamp: U64,
    pub prev_randao: B256,
    pub suggested_fee_recipient: Address,
    pub withdrawals: [(); 0],
    pub parent_beacon_block_root: B256,
    pub transactions: Vec<Bytes>,
    pub no_tx_pool: bool,
    pub gas_limit: U64,
    pub eip1559_params: B64,
    /// A JSON number, unlike its neighbours: op-geth decodes it so.
    pub min_base_fee: u64,
}

impl PayloadAttributes {
    /// Attributes for `inputs` with exactly `transactions`, the pool left out.
    pub fn new(inputs: &BlockInputs, transactions: Vec<Bytes>) -> Self {
        Self {
            timestamp: U64::from(inputs.timestamp),
            prev_randao: inputs.prev_randao,
            suggested_fee_recipient: inputs.fee_recipient,
            withdrawals: [],
            parent_beacon_block_root: inputs.l1_origin.parent_beacon_block_root,
            transactions,
            no_tx_pool: true,
            gas_limit: U64::from(inputs.gas_limit),
            eip1559_params: EIP1559_PARAMS,
            min_base_fee: MIN_BASE_FEE_WEI,
        }
    }
}

/// `ExecutionPayloadV3` with the withdrawals root of Isthmus. Fields of later forks come as nulls and are
/// dropped; were one of them to count, the block hash would not fit and the client would refuse the block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionPayload {
    pub parent_hash: B256,
    pub fee_recipient: Address,
    pub state_root: B256,
    pub receipts_root: B256,
    pub logs_bloom: Bytes,
    pub prev_randao: B256,
    pub block_number: U64,
    pub gas_limit: U64,
    pub gas_used: U64,
    pub timestamp: U64,
    pub extra_data: Bytes,
    pub base_fee_per_gas: U256,
    pub block_hash: B256,
    pub transactions: Vec<Bytes>,
    /// Always empty on this chain.
    pub withdrawals: Vec<Value>,
    pub blob_gas_used: U64,
    pub excess_blob_gas: U64,
    pub withdrawals_root: B256,
}

/// Answer of `engine_getPayloadV5`, as far as it is used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PayloadEnvelope {
    pub execution_payload: ExecutionPayload,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForkchoiceState {
    pub head_block_hash: B256,
    pub safe_block_hash: B256,
    pub finalized_block_hash: B256,
}

impl ForkchoiceState {
    /// Moves the head and leaves safe and finalised as they are.
    pub fn head(hash: B256) -> Self {
        Self { head_block_hash: hash, safe_block_hash: B256::ZERO, finalized_block_hash: B256::ZERO }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Status {
    Valid,
    Invalid,
    Syncing,
    Accepted,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PayloadStatus {
    pub status: Status,
    pub validation_error: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForkchoiceResponse {
    pub payload_status: PayloadStatus,
    pub payload_id: Option<B64>,
}

/// What the client answers to `engine_filterV1`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FilterResult {
    pub included: Vec<usize>,
    pub skipped: Vec<SkippedTransaction>,
    pub gas_used: u64,
}

/// The part of a block that is used here.
#[derive(Debug, Deserialize)]
pub(crate) struct BlockSummary {
    pub number: U64,
    pub hash: B256,
    pub timestamp: U64,
}
