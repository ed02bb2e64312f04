//! op-geth (the node in `crates/engine/node`) over HTTP.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use alloy_primitives::{B256, Bytes, keccak256};
use alloy_rpc_types_engine::{
    ForkchoiceState, ForkchoiceUpdated, PayloadId, PayloadStatus, PayloadStatusEnum,
};
use async_trait::async_trait;
use op_alloy_consensus::DEPOSIT_TX_TYPE_ID;
use op_alloy_rpc_types_engine::{OpExecutionPayloadV4, OpPayloadAttributes};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::{Mutex, Semaphore};

use crate::{
    BlockId, BlockInputs, EngineError, ExecutedBlock, ExecutionClient, JwtSecret, ReadError, SkipReason,
    StoredPayload, attributes_deposit, reads,
    transport::{Endpoint, RpcError},
    wire::{self, BlockSummary, ExecuteResult, FilterResult, PayloadEnvelope},
};

/// Most transactions of one call to [`ExecutionClient::execute`]. A second of 8 MiB cannot hold more that
/// decode: the shortest transaction is 10 bytes.
pub const TRANSACTIONS_LIMIT: usize = 1 << 20;

/// Longest answer of the Engine API that is read: a block of 8 MiB in hex, with its frame, and the skipped.
const ENGINE_RESPONSE_LIMIT_BYTES: usize = 128 << 20;

/// Longest answer to a pass-through read.
const READ_RESPONSE_LIMIT_BYTES: usize = 16 << 20;

/// Pass-through reads under way at the same time; more are refused.
const READS_LIMIT: usize = 128;

// JSON-RPC codes with a meaning of their own, by the Engine API, `engine_filterV1` and `engine_executeV1`.
const INVALID_FORKCHOICE_STATE: i64 = -38002;
const INVALID_PAYLOAD_ATTRIBUTES: i64 = -38003;
const METHOD_NOT_FOUND: i64 = -32601;
const FILTER_UNKNOWN_PARENT: i64 = -39001;
const FILTER_INVALID_REQUEST: i64 = -39002;
const FILTER_INTERNAL: i64 = -39003;
const EXECUTE_REFUSED: i64 = -39005;

/// Where an op-geth is, and how to be let in.
#[derive(Clone, Debug)]
pub struct OpGethConfig {
    /// Engine API, `http://host:port`. Plain HTTP: the client stands beside us, on a private network.
    pub engine_url: String,
    /// Public reads of the client, `http://host:port`.
    pub http_url: String,
    /// Secret of the Engine API.
    pub jwt_secret: JwtSecret,
    /// The file that it is in, read again when the client refuses it.
    pub jwt_secret_file: Option<PathBuf>,
    /// How long one Engine API call may take, in milliseconds. Building a full block takes seconds.
    pub engine_timeout_ms: u64,
    /// How long one read may take, in milliseconds.
    pub read_timeout_ms: u64,
}

impl OpGethConfig {
    /// Default for [`engine_timeout_ms`](Self::engine_timeout_ms).
    pub const ENGINE_TIMEOUT_MS: u64 = 60_000;
    /// Default for [`read_timeout_ms`](Self::read_timeout_ms).
    pub const READ_TIMEOUT_MS: u64 = 10_000;

    /// With the default time limits.
    pub fn new(engine_url: impl Into<String>, http_url: impl Into<String>, jwt_secret: JwtSecret) -> Self {
        Self {
            engine_url: engine_url.into(),
            http_url: http_url.into(),
            jwt_secret,
            jwt_secret_file: None,
            engine_timeout_ms: Self::ENGINE_TIMEOUT_MS,
            read_timeout_ms: Self::READ_TIMEOUT_MS,
        }
    }
}

/// What a node says about itself (`engine_filterInfoV1`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilterInfo {
    /// Version of the skip rule's interface.
    pub version: u32,
    /// Chain id of the rollup.
    pub chain_id: u64,
    /// Hash of the genesis block.
    pub genesis_hash: B256,
    /// Most transactions of one filter call.
    pub max_transactions: usize,
    /// Names of the skip reasons, in order.
    pub reasons: Vec<String>,
    /// Whether it makes a block of a list in one call (`engine_executeV1`).
    #[serde(default)]
    pub executes: bool,
}

impl FilterInfo {
    /// The version this crate speaks.
    pub const VERSION: u32 = 1;
}

/// An execution client reached over HTTP. Cheap to create: nothing is sent before the first call.
pub struct OpGeth {
    engine: Endpoint,
    public: Endpoint,
    /// Held while the head moves, so that two drivers by mistake do not interleave their steps.
    driving: Mutex<()>,
    reads: Semaphore,
    /// Whether the node said, when it was asked what it is, that it has `engine_executeV1`.
    executes: AtomicBool,
}

impl OpGeth {
    /// A client of the node that `config` names; nothing is sent yet.
    pub fn new(config: OpGethConfig) -> Self {
        Self {
            engine: Endpoint::new(
                &config.engine_url,
                Some(config.jwt_secret),
                config.engine_timeout_ms,
                ENGINE_RESPONSE_LIMIT_BYTES,
            )
            .with_secret_file(config.jwt_secret_file),
            public: Endpoint::new(&config.http_url, None, config.read_timeout_ms, READ_RESPONSE_LIMIT_BYTES),
            driving: Mutex::new(()),
            reads: Semaphore::new(READS_LIMIT),
            executes: AtomicBool::new(false),
        }
    }

    /// Asks the node what it is and checks that its skip rule is ours.
    pub async fn check_compatible(&self, chain_id: u64) -> Result<FilterInfo, EngineError> {
        let info: FilterInfo = self.call("engine_filterInfoV1", json!([])).await?;
        let different = |reason: String| Err(EngineError::IncompatibleClient { reason });
        if info.version != FilterInfo::VERSION {
            return different(format!("interface version {}, ours is {}", info.version, FilterInfo::VERSION));
        }
        if info.chain_id != chain_id {
            return different(format!("its chain is {}, ours is {chain_id}", info.chain_id));
        }
        if !info.reasons.iter().map(String::as_str).eq(SkipReason::ALL.iter().map(|reason| reason.as_str())) {
            return different("its list of reasons is another".to_owned());
        }
        if info.max_transactions < TRANSACTIONS_LIMIT {
            return different(format!("it filters at most {} transactions", info.max_transactions));
        }
        self.executes.store(info.executes, Ordering::Relaxed);
        Ok(info)
    }

    /// Starts a block on `parent` that the client fills from its own pool, as a sequencer does that can read what it orders:
    /// what benchmarks compare with. The answer names it to [`take_from_pool`](Self::take_from_pool).
    ///
    /// # Errors
    /// As [`execute`](ExecutionClient::execute).
    pub async fn start_from_pool(
        &self,
        parent: B256,
        inputs: &BlockInputs,
    ) -> Result<PayloadId, EngineError> {
        let mut list = vec![attributes_deposit(inputs)];
        list.extend_from_slice(&inputs.l1_deposits);
        let attributes = OpPayloadAttributes { no_tx_pool: Some(false), ..wire::attributes(inputs, list) };
        self.build(parent, &attributes).await
    }

    /// That block as far as it was filled, not imported, and the hashes of its transactions.
    ///
    /// # Errors
    /// When the client has no such block.
    pub async fn take_from_pool(
        &self,
        id: PayloadId,
        inputs: &BlockInputs,
    ) -> Result<(StoredPayload, Vec<B256>), EngineError> {
        let envelope: PayloadEnvelope = self.call("engine_getPayloadV5", [id]).await?;
        let payload = envelope.execution_payload;
        let transactions = wire::block(&payload).transactions.iter().map(keccak256).collect();
        Ok((StoredPayload::new(payload, inputs.l1_origin.parent_beacon_block_root), transactions))
    }

    async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<R, EngineError> {
        self.engine.call(method, params).await?.map_err(|error| refused(method, error))
    }

    async fn filter(
        &self,
        parent: B256,
        attributes: &OpPayloadAttributes,
        transactions: &[Bytes],
    ) -> Result<FilterResult, EngineError> {
        let method = "engine_filterV1";
        let answer = self.engine.call::<FilterResult>(method, (parent, attributes, transactions)).await?;
        let result = answer.map_err(|error| of_list(method, parent, error))?;
        check_partition(&result, transactions.len())?;
        Ok(result)
    }

    /// Filter, block and new head in one call. `None` where the client cannot: then step by step, which is right whatever it did
    /// before it failed. What it made is looked at when it is the head already.
    async fn execute_at_once(
        &self,
        parent: B256,
        attributes: &OpPayloadAttributes,
        transactions: &[Bytes],
    ) -> Result<Option<(FilterResult, OpExecutionPayloadV4)>, EngineError> {
        if !self.executes.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let method = "engine_executeV1";
        let answer = self.engine.call::<ExecuteResult>(method, (parent, attributes, transactions)).await?;
        let ExecuteResult { included, skipped, gas_used, execution_payload } = match answer {
            Ok(result) => result,
            Err(error) if matches!(error.code, METHOD_NOT_FOUND | FILTER_INTERNAL | EXECUTE_REFUSED) => {
                tracing::warn!(code = error.code, message = %error.message, "the execution client makes the block in steps");
                return Ok(None);
            }
            Err(error) => return Err(of_list(method, parent, error)),
        };
        let filtered = FilterResult { included, skipped, gas_used };
        check_partition(&filtered, transactions.len())?;
        Ok(Some((filtered, execution_payload)))
    }

    /// The same with the methods of the Engine API: the client executes the list a third time, and decodes it twice more.
    async fn execute_in_steps(
        &self,
        parent: B256,
        attributes: &OpPayloadAttributes,
        transactions: &[Bytes],
    ) -> Result<(FilterResult, OpExecutionPayloadV4), EngineError> {
        let filtered = self.filter(parent, attributes, transactions).await?;
        let asked = with_included(attributes, transactions, &filtered);
        let id = self.build(parent, &asked).await?;
        let envelope: PayloadEnvelope = self.call("engine_getPayloadV5", [id]).await?;
        let payload = envelope.execution_payload;
        check_payload(parent, &asked, filtered.gas_used, &payload)?;
        let beacon_root = attributes.payload_attributes.parent_beacon_block_root.unwrap_or_default();
        self.adopt(&payload, beacon_root).await?;
        Ok((filtered, payload))
    }

    /// Starts building on `parent`; the answer names the payload.
    async fn build(&self, parent: B256, attributes: &OpPayloadAttributes) -> Result<PayloadId, EngineError> {
        let method = "engine_forkchoiceUpdatedV3";
        let answer = self.engine.call::<ForkchoiceUpdated>(method, (wire::head(parent), attributes)).await?;
        let response = answer.map_err(|error| match error.code {
            INVALID_PAYLOAD_ATTRIBUTES => EngineError::InvalidInputs { parent, reason: with_detail(error) },
            _ => refused(method, error),
        })?;
        valid(parent, response.payload_status)?;
        response.payload_id.ok_or_else(|| EngineError::InvalidInputs {
            parent,
            reason: "the client adopted the parent but built nothing".to_owned(),
        })
    }

    async fn move_head(&self, state: ForkchoiceState) -> Result<(), EngineError> {
        let method = "engine_forkchoiceUpdatedV3";
        let response: ForkchoiceUpdated =
            self.engine.call(method, (state, Value::Null)).await?.map_err(|error| match error.code {
                INVALID_FORKCHOICE_STATE => EngineError::UnknownFinality {
                    safe: state.safe_block_hash,
                    finalized: state.finalized_block_hash,
                    reason: with_detail(error),
                },
                _ => refused(method, error),
            })?;
        valid(state.head_block_hash, response.payload_status)
    }

    /// Hands the block over and makes it the head.
    async fn adopt(&self, payload: &OpExecutionPayloadV4, beacon_root: B256) -> Result<(), EngineError> {
        let hash = wire::block(payload).block_hash;
        let no_blobs: [B256; 0] = [];
        let no_requests: [Bytes; 0] = [];
        let status: PayloadStatus =
            self.call("engine_newPayloadV4", (payload, no_blobs, beacon_root, no_requests)).await?;
        valid(hash, status)?;
        self.move_head(wire::head(hash)).await
    }

    async fn summary(&self, tag: &str) -> Result<Option<BlockId>, EngineError> {
        let block: Option<BlockSummary> = self.call("eth_getBlockByNumber", (tag, false)).await?;
        Ok(block.map(|block| BlockId {
            number: block.number.to(),
            hash: block.hash,
            timestamp: block.timestamp.to(),
        }))
    }
}

/// What the client answers for a transaction it does not find before its first import.
const INDEXING_IN_PROGRESS: &str = "transaction indexing is in progress";

#[async_trait]
impl ExecutionClient for OpGeth {
    async fn ensure_compatible(&self, chain_id: u64) -> Result<(), EngineError> {
        self.check_compatible(chain_id).await.map(drop)
    }

    async fn head(&self) -> Result<BlockId, EngineError> {
        self.summary("latest").await?.ok_or_else(|| {
            crate::TransportError::Malformed {
                method: "eth_getBlockByNumber".to_owned(),
                reason: "a client without any block".to_owned(),
            }
            .into()
        })
    }

    async fn block(&self, number: u64) -> Result<Option<BlockId>, EngineError> {
        self.summary(&format!("{number:#x}")).await
    }

    async fn finalized(&self) -> Result<Option<u64>, EngineError> {
        match self.summary("finalized").await {
            Ok(block) => Ok(block.map(|block| block.number)),
            // So it answers while there is none.
            Err(EngineError::Rpc { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn execute(
        &self,
        parent: B256,
        inputs: &BlockInputs,
        transactions: &[Bytes],
    ) -> Result<ExecutedBlock, EngineError> {
        if transactions.len() > TRANSACTIONS_LIMIT {
            return Err(EngineError::TooManyTransactions {
                count: transactions.len(),
                limit: TRANSACTIONS_LIMIT,
            });
        }
        if let Some(index) =
            inputs.l1_deposits.iter().position(|deposit| deposit.first() != Some(&DEPOSIT_TX_TYPE_ID))
        {
            return Err(EngineError::NotADeposit { index });
        }
        let _driving = self.driving.lock().await;
        let mut list = Vec::with_capacity(1 + inputs.l1_deposits.len() + transactions.len());
        list.push(attributes_deposit(inputs));
        list.extend_from_slice(&inputs.l1_deposits);
        let attributes = wire::attributes(inputs, list);
        let (filtered, payload) = match self.execute_at_once(parent, &attributes, transactions).await? {
            Some((filtered, payload)) => {
                let asked = with_included(&attributes, transactions, &filtered);
                check_payload(parent, &asked, filtered.gas_used, &payload)?;
                (filtered, payload)
            }
            None => self.execute_in_steps(parent, &attributes, transactions).await?,
        };
        let beacon_root = inputs.l1_origin.parent_beacon_block_root;
        let block = wire::block(&payload);
        Ok(ExecutedBlock {
            number: block.block_number,
            hash: block.block_hash,
            parent_hash: block.parent_hash,
            state_root: block.state_root,
            timestamp: block.timestamp,
            transactions: block.transactions.iter().map(keccak256).collect(),
            skipped: filtered.skipped,
            gas_used: block.gas_used,
            payload: StoredPayload::new(payload, beacon_root),
        })
    }

    async fn import(&self, payload: &StoredPayload) -> Result<(), EngineError> {
        let _driving = self.driving.lock().await;
        self.adopt(payload.execution_payload(), payload.parent_beacon_block_root()).await
    }

    async fn rewind(&self, to: B256) -> Result<(), EngineError> {
        let _driving = self.driving.lock().await;
        let method = "engine_rewindV1";
        // It answers null.
        let answer = self.engine.call::<Value>(method, [to]).await?;
        answer.map(drop).map_err(|error| match error.code {
            FILTER_UNKNOWN_PARENT => EngineError::UnknownBlock { hash: to },
            _ => refused(method, error),
        })
    }

    async fn set_finality(&self, safe: B256, finalized: B256) -> Result<(), EngineError> {
        let _driving = self.driving.lock().await;
        let head = self.head().await?.hash;
        self.move_head(ForkchoiceState {
            head_block_hash: head,
            safe_block_hash: safe,
            finalized_block_hash: finalized,
        })
        .await
    }

    async fn read(&self, method: &str, params: Value) -> Result<Value, ReadError> {
        if !reads::passes_through(method) {
            return Err(ReadError::NotAllowed { method: method.chars().take(64).collect() });
        }
        let _slot = self.reads.try_acquire().map_err(|_| ReadError::Busy { limit: READS_LIMIT })?;
        self.public.call(method, params).await?.or_else(|error| {
            // A client that has not imported a block since its start says this instead of "not found". Blocks are
            // indexed as they are imported and none comes by synchronization, so the transaction is not there.
            if error.message == INDEXING_IN_PROGRESS {
                return Ok(Value::Null);
            }
            Err(ReadError::Rpc { code: error.code, message: error.message, data: error.data })
        })
    }
}

/// An error of a call that has the whole list.
fn of_list(method: &str, parent: B256, error: RpcError) -> EngineError {
    match error.code {
        FILTER_UNKNOWN_PARENT => EngineError::UnknownBlock { hash: parent },
        FILTER_INVALID_REQUEST => EngineError::InvalidInputs { parent, reason: error.message },
        _ => refused(method, error),
    }
}

/// The attributes of the block that holds what is included; its indices were checked.
fn with_included(
    attributes: &OpPayloadAttributes,
    transactions: &[Bytes],
    filtered: &FilterResult,
) -> OpPayloadAttributes {
    let mut asked = attributes.clone();
    let included = filtered.included.iter().filter_map(|&index| transactions.get(index)).cloned();
    asked.transactions.get_or_insert_default().extend(included);
    asked
}

fn refused(method: &str, error: RpcError) -> EngineError {
    EngineError::Rpc { method: method.to_owned(), code: error.code, message: with_detail(error) }
}

/// The Engine API puts the telling part into `data.err`.
fn with_detail(error: RpcError) -> String {
    match error.data.as_ref().and_then(|data| data.get("err")).and_then(Value::as_str) {
        Some(detail) => format!("{}: {detail}", error.message),
        None => error.message,
    }
}

fn valid(hash: B256, status: PayloadStatus) -> Result<(), EngineError> {
    match status.status {
        PayloadStatusEnum::Valid => Ok(()),
        // "I will fetch the ancestors from my peers": it has none, we bring them.
        PayloadStatusEnum::Syncing | PayloadStatusEnum::Accepted => Err(EngineError::UnknownBlock { hash }),
        PayloadStatusEnum::Invalid { validation_error: reason } => {
            Err(EngineError::InvalidBlock { hash, reason })
        }
    }
}

/// Included and skipped must be a partition of `0..count`, each by rising index.
fn check_partition(result: &FilterResult, count: usize) -> Result<(), EngineError> {
    let mut included = result.included.iter().copied().peekable();
    let mut skipped = result.skipped.iter().map(|skipped| skipped.index).peekable();
    for index in 0..count {
        if included.next_if_eq(&index).is_none() && skipped.next_if_eq(&index).is_none() {
            return Err(EngineError::InvalidFilterResult {
                reason: format!("transaction {index} is neither included nor skipped in its place"),
            });
        }
    }
    match included.next().or(skipped.next()) {
        Some(index) => Err(EngineError::InvalidFilterResult {
            reason: format!("index {index} is left over after {count} transactions"),
        }),
        None => Ok(()),
    }
}

/// The block must be the one asked for, in each field that we decide.
fn check_payload(
    parent: B256,
    asked: &OpPayloadAttributes,
    gas_used: u64,
    built: &OpExecutionPayloadV4,
) -> Result<(), EngineError> {
    let (block, basics) = (wire::block(built), &asked.payload_attributes);
    let checks = [
        ("parentHash", block.parent_hash == parent),
        ("timestamp", block.timestamp == basics.timestamp),
        ("prevRandao", block.prev_randao == basics.prev_randao),
        ("feeRecipient", block.fee_recipient == basics.suggested_fee_recipient),
        ("gasLimit", Some(block.gas_limit) == asked.gas_limit),
        ("withdrawals", built.payload_inner.payload_inner.withdrawals.is_empty()),
        ("transactions", Some(&block.transactions) == asked.transactions.as_ref()),
        ("gasUsed", block.gas_used == gas_used),
    ];
    match checks.iter().find(|(_, same)| !same) {
        Some((field, _)) => Err(EngineError::PayloadMismatch { field }),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "op_geth_tests.rs"]
mod tests;
