//! The Engine API's JSON, as op-geth speaks it from Isthmus on: its types are `alloy-rpc-types-engine`'s and op-alloy's,
//! with what only our node has, and what only a part is used of.

use alloy_primitives::{B256, Bytes, U64};
use alloy_rpc_types_engine::{ExecutionPayloadV1, ForkchoiceState, PayloadAttributes};
use op_alloy_rpc_types_engine::{OpExecutionPayloadV4, OpPayloadAttributes};
use serde::Deserialize;

use crate::{BlockInputs, EIP1559_PARAMS, MIN_BASE_FEE_WEI, SkippedTransaction};

/// Attributes for `inputs` with exactly `transactions`, the pool left out.
pub(crate) fn attributes(inputs: &BlockInputs, transactions: Vec<Bytes>) -> OpPayloadAttributes {
    OpPayloadAttributes {
        payload_attributes: PayloadAttributes {
            timestamp: inputs.timestamp,
            prev_randao: inputs.prev_randao,
            suggested_fee_recipient: inputs.fee_recipient,
            withdrawals: Some(Vec::new()),
            parent_beacon_block_root: Some(inputs.l1_origin.parent_beacon_block_root),
            ..PayloadAttributes::default()
        },
        transactions: Some(transactions),
        no_tx_pool: Some(true),
        gas_limit: Some(inputs.gas_limit),
        eip_1559_params: Some(EIP1559_PARAMS),
        min_base_fee: Some(MIN_BASE_FEE_WEI),
    }
}

/// Moves the head and leaves safe and finalised as they are.
pub(crate) fn head(hash: B256) -> ForkchoiceState {
    ForkchoiceState { head_block_hash: hash, ..ForkchoiceState::default() }
}

/// The fields that a payload has had from the first fork on. Those of forks after Isthmus come as nulls and are dropped;
/// were one of them to count, the block hash would not fit and the client would refuse the block.
pub(crate) fn block(payload: &OpExecutionPayloadV4) -> &ExecutionPayloadV1 {
    &payload.payload_inner.payload_inner.payload_inner
}

/// Answer of `engine_getPayloadV5`, as far as it is used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PayloadEnvelope {
    pub execution_payload: OpExecutionPayloadV4,
}

/// What the client answers to `engine_filterV1`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FilterResult {
    pub included: Vec<usize>,
    pub skipped: Vec<SkippedTransaction>,
    pub gas_used: u64,
}

/// What it answers to `engine_executeV1`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecuteResult {
    pub included: Vec<usize>,
    pub skipped: Vec<SkippedTransaction>,
    pub gas_used: u64,
    pub execution_payload: OpExecutionPayloadV4,
}

/// The part of a block that is used here.
#[derive(Debug, Deserialize)]
pub(crate) struct BlockSummary {
    pub number: U64,
    pub hash: B256,
    pub timestamp: U64,
}
