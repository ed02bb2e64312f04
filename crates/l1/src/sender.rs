//! Sending transactions: one at a time, fees from the newest block, replaced when they do not get into a block.

use std::time::{Duration, Instant};

use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U64, U128, U256};
use alloy_rpc_types_eth::{Block, TransactionReceipt};
use blindfold_protocol::SigningKey;
use serde_json::json;
use tokio::sync::Mutex;

use crate::{
    L1Error,
    transport::{CallError, Rpc, refusal},
};

/// Gas that one transaction may have (EIP-7825).
const GAS_LIMIT: u64 = 1 << 24;
/// Room above the estimate, in percent: the state may have changed a little when the transaction runs.
const GAS_MARGIN_PERCENT: u64 = 15;
/// How much more a replacement pays, in percent; nodes ask for at least 10.
const REPLACEMENT_PERCENT: u128 = 25;
/// A replacement never pays more than this many times what a fresh transaction would.
const REPLACEMENT_FACTOR_LIMIT: u128 = 16;
/// Pause between two looks for the receipt.
const RECEIPT_POLL_MS: u64 = 200;

/// A transaction that is in a block and did what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its hash.
    pub transaction: B256,
    /// The block, which is not final yet.
    pub block: u64,
    /// Gas that it used.
    pub gas_used: u64,
}

/// One account that sends.
pub(crate) struct Sender {
    rpc: Rpc,
    chain_id: u64,
    key: SigningKey,
    confirmation_timeout_ms: u64,
    /// Held while a transaction is on its way, so that nonces do not collide.
    stuck: Mutex<Option<Fees>>,
}

/// What a transaction offers.
#[derive(Clone, Copy, Debug)]
struct Fees {
    nonce: u64,
    max_fee: u128,
    tip: u128,
}

/// A transaction to be sent.
pub(crate) struct Call {
    /// The function, for error messages.
    pub name: &'static str,
    pub to: TxKind,
    pub value: U256,
    pub input: Bytes,
}

impl Sender {
    pub fn new(rpc: Rpc, chain_id: u64, key: SigningKey, confirmation_timeout_ms: u64) -> Self {
        Self { rpc, chain_id, key, confirmation_timeout_ms, stuck: Mutex::default() }
    }

    pub fn address(&self) -> Address {
        self.key.address()
    }

    /// The account's next nonce, by the newest block.
    pub async fn nonce(&self) -> Result<u64, L1Error> {
        let nonce: U64 = self.rpc.call("eth_getTransactionCount", json!([self.address(), "latest"])).await?;
        Ok(nonce.to())
    }

    /// Tries the call, sends it and waits until it is in a block.
    pub async fn send(&self, call: Call, size_limit_bytes: Option<usize>) -> Result<Sent, L1Error> {
        let mut stuck = self.stuck.lock().await;
        let gas_limit = self.gas_limit(&call).await?;
        let fees = self.fees(*stuck).await?;
        let transaction = TxEip1559 {
            chain_id: self.chain_id,
            nonce: fees.nonce,
            gas_limit,
            max_fee_per_gas: fees.max_fee,
            max_priority_fee_per_gas: fees.tip,
            to: call.to,
            value: call.value,
            access_list: Default::default(),
            input: call.input,
        };
        let signature = self.key.sign(&transaction.signature_hash());
        let signature = Signature::from_bytes_and_parity(&signature.0[..64], signature.0[64] == 28);
        let envelope = TxEnvelope::from(transaction.into_signed(signature));
        let raw = envelope.encoded_2718();
        if let Some(limit) = size_limit_bytes
            && raw.len() > limit
        {
            return Err(L1Error::TransactionTooLarge { call: call.name, bytes: raw.len(), limit });
        }
        let transaction = *envelope.tx_hash();
        // From here on the transaction may be out there, whatever the answer.
        let before = stuck.replace(fees);
        match self.rpc.try_call::<B256>("eth_sendRawTransaction", json!([Bytes::from(raw)])).await {
            Ok(_) => {}
            Err(CallError::Server(payload)) if payload.message.contains("already known") => {}
            Err(error @ CallError::Server(_)) => {
                // Not taken. Only where an earlier one is in the way does the next try have to offer more.
                if !matches!(&error, CallError::Server(payload) if payload.message.contains("underpriced")) {
                    *stuck = before;
                }
                return Err(refusal(call.name, "eth_sendRawTransaction", error));
            }
            Err(CallError::Transport(error)) => return Err(error),
        }
        let sent = self.confirmed(call.name, transaction).await?;
        *stuck = None;
        Ok(sent)
    }

    /// Waits for the receipt.
    async fn confirmed(&self, call: &'static str, transaction: B256) -> Result<Sent, L1Error> {
        let started = Instant::now();
        let limit = Duration::from_millis(self.confirmation_timeout_ms);
        loop {
            let receipt: Result<Option<TransactionReceipt>, _> =
                self.rpc.call("eth_getTransactionReceipt", json!([transaction])).await;
            match receipt {
                Ok(Some(receipt)) => {
                    let block = receipt.block_number.unwrap_or_default();
                    if !receipt.status() {
                        return Err(L1Error::Failed { call, transaction });
                    }
                    return Ok(Sent { transaction, block, gas_used: receipt.gas_used });
                }
                Err(error) if !error.is_transient() => return Err(error),
                _ if started.elapsed() >= limit => {
                    let waited_ms = self.confirmation_timeout_ms;
                    return Err(L1Error::Unconfirmed { call, transaction, waited_ms });
                }
                _ => tokio::time::sleep(Duration::from_millis(RECEIPT_POLL_MS)).await,
            }
        }
    }

    async fn gas_limit(&self, call: &Call) -> Result<u64, L1Error> {
        let mut request = json!({ "from": self.address(), "value": call.value, "input": call.input });
        if let TxKind::Call(to) = call.to {
            request["to"] = json!(to);
        }
        let gas: U64 = self
            .rpc
            // Not on the pending state: it may hold the very transaction that this one replaces.
            .try_call("eth_estimateGas", json!([request, "latest"]))
            .await
            .map_err(|error| refusal(call.name, "eth_estimateGas", error))?;
        let gas = gas.to::<u64>();
        if gas > GAS_LIMIT {
            return Err(L1Error::GasAboveLimit { call: call.name, gas, limit: GAS_LIMIT });
        }
        Ok((gas + gas / 100 * GAS_MARGIN_PERCENT).min(GAS_LIMIT))
    }

    /// Twice the newest base fee and the node's tip; more than a transaction of the same nonce that is stuck.
    async fn fees(&self, stuck: Option<Fees>) -> Result<Fees, L1Error> {
        let block: Option<Block> = self.rpc.call("eth_getBlockByNumber", json!(["latest", false])).await?;
        let base_fee = block.and_then(|block| block.header.base_fee_per_gas).ok_or_else(|| {
            let reason = "the newest block has no base fee".to_owned();
            L1Error::Malformed { method: "eth_getBlockByNumber".to_owned(), reason }
        })?;
        let tip: U128 = self.rpc.call("eth_maxPriorityFeePerGas", ()).await?;
        let nonce = self.nonce().await?;
        let tip = tip.to::<u128>();
        let max_fee = u128::from(base_fee).saturating_mul(2).saturating_add(tip);
        let fees = Fees { nonce, max_fee, tip };
        Ok(match stuck {
            Some(before) if before.nonce == nonce => Fees {
                nonce,
                max_fee: replacement(max_fee, before.max_fee),
                tip: replacement(tip, before.tip),
            },
            _ => fees,
        })
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").field("address", &self.address()).finish_non_exhaustive()
    }
}

/// The fresh fee, or more than the stuck one where that is higher, but never without bound.
fn replacement(fresh: u128, stuck: u128) -> u128 {
    let raised = stuck.saturating_add(stuck.saturating_mul(REPLACEMENT_PERCENT) / 100).saturating_add(1);
    fresh.max(raised.min(fresh.saturating_mul(REPLACEMENT_FACTOR_LIMIT)))
}

#[cfg(test)]
mod tests {
    use super::replacement;

    #[test]
    fn replacements_pay_more_up_to_a_bound() {
        assert_eq!(replacement(100, 10), 100);
        assert_eq!(replacement(100, 100), 126);
        assert_eq!(replacement(100, 1_000), 1_251);
        assert_eq!(replacement(100, 5_000), 1_600);
        assert_eq!(replacement(u128::MAX, u128::MAX), u128::MAX);
    }
}
