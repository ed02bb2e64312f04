//! The methods a wallet sees. Everything not listed here or in the allow-list is refused.

use std::{sync::Arc, time::Duration};

use alloy_primitives::{Address, B256, Bytes, keccak256};
use async_trait::async_trait;
use blindfold_rpc::{
    NODE_ONLY_METHODS, Passthrough, ProxyApiServer, READ_METHODS, ReceivedError, RpcError, code,
    jsonrpsee::{RpcModule, core::RegisterMethodError, types::ErrorObjectOwned},
    limits::{MAX_SYNC_TIMEOUT_MS, SYNC_TIMEOUT_MS},
    types::TracedTransaction,
};
use blindfold_runtime::now;
use serde_json::{Value, json};
use tokio::time::timeout_at;

use super::{
    Inner,
    journal::{JournalError, Traced},
    pool::PoolError,
    worker::INCLUDED,
};
use crate::{node::NodeError, transaction::SignedTransaction};

/// The code geth gives its pool's refusals.
const POOL_REFUSAL_CODE: i32 = -32000;

/// Reads that wallets make and nodes serve, beside those every role serves.
const WALLET_READS: &[&str] =
    &["eth_blobBaseFee", "eth_getUncleCountByBlockNumber", "eth_getUncleCountByBlockHash"];

/// What goes to the sequencer: envelopes are opaque, and everything else here is about envelopes.
const SEQUENCER_METHODS: &[&str] = &[
    "blind_getEncryptionKey",
    "blind_sendEnvelope",
    "blind_getReceipt",
    "blind_getReceipts",
    "blind_getBatch",
    "blind_getHints",
    "blind_getFeeAccount",
    "blind_getFeeAccountProof",
    "blind_getStatus",
];

struct OwnMethods(Arc<Inner>);

#[async_trait]
impl ProxyApiServer for OwnMethods {
    async fn get_envelope(&self, transaction: B256) -> Result<Option<TracedTransaction>, RpcError> {
        let traced = self.0.journal.trace(&transaction).map_err(RpcError::internal)?;
        Ok(traced.map(|Traced { envelope, outcome, revealed }| TracedTransaction {
            envelope,
            outcome,
            revealed,
        }))
    }
}

/// Calls that are handed on as they came: reads and simulations to the user's node, `blind_*` to the sequencer.
pub(super) fn passthrough(inner: Arc<Inner>) -> Passthrough {
    let own = ["eth_getTransactionByHash", "eth_getTransactionCount"];
    let allowed = READ_METHODS
        .iter()
        .chain(NODE_ONLY_METHODS)
        .chain(WALLET_READS)
        .chain(SEQUENCER_METHODS)
        .copied()
        .filter(move |method| !own.contains(method));
    Passthrough::new(allowed, move |method, params| {
        let inner = inner.clone();
        async move {
            let server =
                if SEQUENCER_METHODS.contains(&method.as_str()) { &inner.sequencer_raw } else { &inner.node };
            server.raw(&method, params).await.map_err(handed_on)
        }
    })
}

fn handed_on(error: ReceivedError) -> ErrorObjectOwned {
    match error {
        ReceivedError::Refused(refusal) => refusal.into(),
        ReceivedError::NoAnswer(cause) => unreachable_server(&cause).into(),
    }
}

fn unreachable_server(cause: &str) -> RpcError {
    RpcError::unavailable(
        "upstream_unavailable",
        format!("the server behind the proxy does not answer: {cause:.200}"),
    )
}

fn node_error(error: NodeError) -> RpcError {
    match error {
        NodeError::Call { cause: ReceivedError::Refused(refusal), .. } => refusal,
        other => unreachable_server(&other.to_string()),
    }
}

fn refusal(reason: &'static str, retry: bool, message: impl std::fmt::Display) -> RpcError {
    RpcError::new(POOL_REFUSAL_CODE, reason, retry, message)
}

fn pool_refusal(fault: PoolError) -> RpcError {
    refusal(fault.reason(), fault.retry(), fault)
}

/// Every method that the proxy serves.
pub(super) fn module(inner: Arc<Inner>) -> Result<RpcModule<Inner>, RegisterMethodError> {
    let mut module = RpcModule::from_arc(Arc::clone(&inner));
    module.merge(OwnMethods(inner).into_rpc())?;
    module.register_async_method("eth_sendRawTransaction", |params, inner, _| async move {
        let raw: Bytes = params.one()?;
        send_raw_transaction(&inner, raw).await.map_err(ErrorObjectOwned::from)
    })?;
    module.register_async_method("eth_sendRawTransactionSync", |params, inner, _| async move {
        let mut sequence = params.sequence();
        let raw: Bytes = sequence.next()?;
        let timeout_ms: Option<u64> = sequence.optional_next()?;
        send_raw_transaction_sync(&inner, raw, timeout_ms).await
    })?;
    module.register_async_method("eth_getTransactionByHash", |params, inner, _| async move {
        let hash: B256 = params.one()?;
        transaction_by_hash(&inner, hash).await.map_err(ErrorObjectOwned::from)
    })?;
    module.register_async_method("eth_getTransactionCount", |params, inner, _| async move {
        let mut sequence = params.sequence();
        let address: Address = sequence.next()?;
        let block: Option<Value> = sequence.optional_next()?;
        transaction_count(&inner, address, block).await.map_err(ErrorObjectOwned::from)
    })?;
    // The proxy holds no keys of users; wallets ask and understand an empty list.
    module.register_method("eth_accounts", |_, _, _| Vec::<Address>::new())?;
    Ok(module)
}

/// Takes a transaction for encryption. Durable before the hash is answered.
async fn send_raw_transaction(inner: &Arc<Inner>, raw: Bytes) -> Result<B256, RpcError> {
    if raw.len() > super::MAX_TRANSACTION_BYTES {
        return Err(refusal("oversized_data", false, "oversized data: transaction does not fit an envelope"));
    }
    let transaction = SignedTransaction::decode(raw, inner.chain.chain_id)
        .map_err(|error| refusal("invalid_transaction", false, error))?;
    let limits = (inner.config.max_held_transactions, inner.config.max_held_per_sender);
    inner.pool.lock().check(&transaction, limits.0, limits.1).map_err(pool_refusal)?;

    let next = inner.node.nonce(&transaction.sender).await.map_err(node_error)?;
    if transaction.nonce < next {
        let words = format!("nonce too low: next nonce {next}, tx nonce {}", transaction.nonce);
        return Err(refusal("nonce_too_low", false, words));
    }
    let balance = inner.node.balance(&transaction.sender).await.map_err(node_error)?;
    if balance < transaction.max_cost {
        let words = format!(
            "insufficient funds for gas * price + value: address {} have {balance} want {}",
            transaction.sender, transaction.max_cost
        );
        return Err(refusal("insufficient_funds", false, words));
    }

    let hash = transaction.hash;
    // What L1 takes back is in no block any more, and comes again.
    let gone = match inner.journal.trace(&hash).map_err(RpcError::internal)?.and_then(|traced| traced.outcome)
    {
        Some(outcome) if outcome == INCLUDED => {
            inner.node.transaction_receipt(&hash).await.map_err(node_error)?.is_none()
        }
        _ => false,
    };
    // From here on it has its place: what is checked must still hold when it is recorded.
    inner.pool.lock().reserve(&transaction, limits.0, limits.1).map_err(pool_refusal)?;
    let arriving = Arriving { inner, sender: transaction.sender, hash };
    inner.journal.hold(&hash, &transaction.raw, gone).await.map_err(|error| match error {
        JournalError::Known => refusal("already_known", false, "already known"),
        other => RpcError::internal(other),
    })?;
    inner.pool.lock().take(transaction, now() + Duration::from_millis(inner.config.bundle_window_ms));
    drop(arriving);
    inner.metrics.accepted.increment();
    inner.wake.notify_one();
    Ok(hash)
}

/// A transaction's place while it is on its way to the disk.
struct Arriving<'a> {
    inner: &'a Inner,
    sender: Address,
    hash: B256,
}

impl Drop for Arriving<'_> {
    fn drop(&mut self) {
        self.inner.pool.lock().arrived(&self.sender, &self.hash);
    }
}

/// Takes a transaction for encryption and answers with its receipt (EIP-7966), as the user's node gives it. One that was taken
/// already is waited for. Whatever the answer, the transaction goes on.
async fn send_raw_transaction_sync(
    inner: &Arc<Inner>,
    raw: Bytes,
    timeout_ms: Option<u64>,
) -> Result<Value, ErrorObjectOwned> {
    let timeout_ms = timeout_ms.unwrap_or(SYNC_TIMEOUT_MS);
    if timeout_ms == 0 || timeout_ms > MAX_SYNC_TIMEOUT_MS {
        let message = format!("a timeout of {timeout_ms} ms; from 1 to {MAX_SYNC_TIMEOUT_MS} ms are waited");
        return Err(RpcError::invalid_params("invalid_timeout", message).into());
    }
    let deadline = now() + Duration::from_millis(timeout_ms);
    let mut settled = inner.settled.subscribe();
    let hash = keccak256(&raw);
    if let Err(refusal) = send_raw_transaction(inner, raw).await {
        let traced = inner.journal.trace(&hash).map_err(RpcError::internal)?;
        let is_here = refusal.reason == "already_known"
            || traced.is_some_and(|traced| traced.outcome.as_deref() == Some(INCLUDED));
        if !is_here {
            return Err(refusal.into());
        }
    }
    loop {
        settled.mark_unchanged();
        let traced = inner.journal.trace(&hash).map_err(RpcError::internal)?;
        match traced.and_then(|traced| traced.outcome) {
            Some(outcome) if outcome == INCLUDED => {
                let receipt = inner.node.call("eth_getTransactionReceipt", &[json!(hash)]).await;
                let receipt = receipt.map_err(node_error)?;
                if !receipt.is_null() {
                    return Ok(receipt);
                }
            }
            Some(reason) => {
                let message = format!("the transaction {hash} ended outside a block: {reason}");
                return Err(refusal("not_included", false, message).into());
            }
            None => {}
        }
        // A node that shows no receipt yet of what it was seen to include is asked again.
        let next = deadline.min(now() + Duration::from_millis(inner.config.poll_interval_ms));
        if timeout_at(next, settled.changed()).await.is_err() && now() >= deadline {
            let message = format!("no receipt within {timeout_ms} ms; the transaction goes on");
            return Err(ErrorObjectOwned::owned(code::NO_RECEIPT_YET, message, Some(hash)));
        }
    }
}

/// The node's answer, else the pending form of a transaction held here.
async fn transaction_by_hash(inner: &Inner, hash: B256) -> Result<Value, RpcError> {
    let found = inner.node.call("eth_getTransactionByHash", &[json!(hash)]).await.map_err(node_error)?;
    if !found.is_null() {
        return Ok(found);
    }
    Ok(inner.pool.lock().by_hash(&hash).map_or(Value::Null, SignedTransaction::pending_json))
}

/// For `pending` counts what is held here, too; any other block is the node's matter.
async fn transaction_count(inner: &Inner, address: Address, block: Option<Value>) -> Result<Value, RpcError> {
    if block.as_ref().and_then(Value::as_str) == Some("pending") {
        let next = inner.node.nonce(&address).await.map_err(node_error)?;
        let pending = inner.pool.lock().pending_nonce(&address, next);
        return Ok(json!(format!("{pending:#x}")));
    }
    let block = block.unwrap_or_else(|| json!("latest"));
    inner.node.call("eth_getTransactionCount", &[json!(address), block]).await.map_err(node_error)
}
