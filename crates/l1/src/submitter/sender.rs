//! Sending transactions: one at a time, or some that do not need each other, fees from the newest block, replaced when they do
//! not get into a block.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use alloy_consensus::{SignableTransaction, TxEnvelope};
use alloy_eips::{
    BlockId, eip2718::Encodable2718, eip4844::Blob, eip7594::BlobTransactionSidecarEip7594,
    eip7594::BlobTransactionSidecarVariant,
};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};
use alloy_provider::Provider;
use alloy_rpc_types_eth::TransactionRequest;
use blindfold_protocol::SigningKey;
use blindfold_runtime::{blocking, now};
use tokio::sync::Mutex;

use crate::{
    error::{L1Error, RunError},
    posting::blobs::{BlobError, encode_blobs, sidecar},
    submitter::fees::Fees,
    transport::{Rpc, failed, refused},
};

/// Gas that one transaction may have (EIP-7825).
pub(crate) const GAS_LIMIT: u64 = 1 << 24;
/// Gas of a transaction that does nothing.
const PLAIN_GAS: u64 = 21_000;
/// Room above the estimate, in percent: the state may have changed a little when the transaction runs.
const GAS_MARGIN_PERCENT: u64 = 15;
/// Transactions on their way at the same time: nodes keep 16 of an account, and so many of the longest fit a block.
const MAX_IN_FLIGHT: usize = 6;
const SEND: &str = "eth_sendRawTransaction";
/// Pause between two looks for the receipt.
const RECEIPT_POLL_MS: u64 = 200;

/// A transaction that is in a block and did what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Hash of the transaction.
    pub transaction: B256,
    /// The block, which is not final yet.
    pub block: u64,
    /// Gas that it used, as its receipt says.
    pub gas_used: u64,
}

/// One account that sends transactions.
pub(crate) struct Sender {
    rpc: Rpc,
    chain_id: u64,
    key: SigningKey,
    confirmation_timeout_ms: u64,
    /// Held while a transaction is on its way, so that nonces do not collide.
    stuck: Mutex<Option<Fees>>,
    /// Whether L1 was given a transaction, whatever came of it.
    has_sent: AtomicBool,
}

/// A transaction to be sent.
pub(crate) struct Call {
    /// The function, for error messages.
    pub name: &'static str,
    pub to: TxKind,
    pub value: U256,
    pub input: Bytes,
    /// Blobs of the transaction, at most six.
    pub blobs: Vec<Blob>,
    /// How long the transaction may be, its blobs included.
    pub size_limit_bytes: Option<usize>,
    /// The only nonce that it may have; otherwise the account's next one.
    pub nonce: Option<u64>,
}

impl Sender {
    pub fn new(rpc: Rpc, chain_id: u64, key: SigningKey, confirmation_timeout_ms: u64) -> Self {
        Self {
            rpc,
            chain_id,
            key,
            confirmation_timeout_ms,
            stuck: Mutex::default(),
            has_sent: AtomicBool::new(false),
        }
    }

    pub fn address(&self) -> Address {
        self.key.address()
    }

    /// The account's next nonce, by the newest block.
    pub async fn nonce(&self) -> Result<u64, L1Error> {
        self.rpc.nonce(self.address(), BlockId::latest()).await
    }

    /// Whether L1 was given a transaction by this sender, taken or not.
    pub fn has_sent(&self) -> bool {
        self.has_sent.load(Ordering::Relaxed)
    }

    /// Tries the call, sends it and waits until it is in a block.
    pub async fn send(&self, call: Call) -> Result<Sent, L1Error> {
        let mut stuck = self.stuck.lock().await;
        self.send_alone(call, &mut stuck).await
    }

    /// The same for calls of which none needs what another one does: several are on their way at a time, so that they may
    /// come into one block. Gives the last. What is stuck gives way first, one by one; so go calls with blobs. Others may send
    /// between two rows.
    ///
    /// # Errors
    /// Of the first that is not taken, or does not come into a block in time. Those before it are there, and those after it
    /// may be.
    pub async fn send_in_a_row(&self, calls: Vec<Call>) -> Result<Option<Sent>, L1Error> {
        let mut calls = VecDeque::from(calls);
        let mut last = None;
        while let Some(first) = calls.pop_front() {
            let mut stuck = self.stuck.lock().await;
            let plain = |call: &Call| call.blobs.is_empty() && call.nonce.is_none();
            let mut row = vec![first];
            if stuck.is_none() && row.iter().all(plain) && !self.has_pending().await? {
                while row.len() < MAX_IN_FLIGHT
                    && let Some(next) = calls.pop_front_if(|next| plain(next))
                {
                    row.push(next);
                }
            }
            last = Some(match <[Call; 1]>::try_from(row) {
                Ok([alone]) => self.send_alone(alone, &mut stuck).await?,
                Err(row) => {
                    let (sent, rest) = self.send_row(row, &mut stuck).await?;
                    for call in rest.into_iter().rev() {
                        calls.push_front(call);
                    }
                    sent
                }
            });
        }
        Ok(last)
    }

    /// Whether transactions of the account wait to come into a block, of this process or of one before it.
    async fn has_pending(&self) -> Result<bool, L1Error> {
        let pending = self.rpc.nonce(self.address(), BlockId::pending()).await?;
        Ok(pending > self.nonce().await?)
    }

    /// Sends calls without blobs at once, with nonces that follow each other, and waits for those that L1 took. Gives the last,
    /// and the calls that it did not take: a node that takes one may have no room for the next, or find that the account cannot
    /// pay for all at their dearest.
    async fn send_row(&self, row: Vec<Call>, stuck: &mut Option<Fees>) -> Result<(Sent, Vec<Call>), L1Error> {
        let mut limits = Vec::with_capacity(row.len());
        for call in &row {
            limits.push(self.gas_limit(call, None).await?);
        }
        let fees = Fees::fresh(&self.rpc, self.nonce().await?, false).await?;
        let mut on_their_way: Vec<(&'static str, B256, Fees)> = Vec::with_capacity(row.len());
        // What is in the way of the next one where they are not all taken.
        let mut after = None;
        for ((call, gas_limit), nonce) in row.iter().zip(limits).zip(fees.nonce..) {
            let fees = Fees { nonce, ..fees };
            let mut offered = None;
            match self.offer(call, None, gas_limit, &fees, &mut offered).await {
                Ok(transaction) => on_their_way.push((call.name, transaction, fees)),
                Err(fault) if on_their_way.is_empty() => {
                    *stuck = offered;
                    return Err(fault);
                }
                Err(fault) => {
                    tracing::debug!(%fault, taken = on_their_way.len(), "the others follow when these are there");
                    after = offered;
                    break;
                }
            }
        }
        let rest: Vec<Call> = row.into_iter().skip(on_their_way.len()).collect();
        let mut last = None;
        let mut left = on_their_way.into_iter().peekable();
        while let Some((name, transaction, fees)) = left.next() {
            // Should it not come into a block, the next transaction takes its place.
            *stuck = Some(fees);
            let sent = self.confirmed(name, transaction).await;
            if matches!(sent, Ok(_) | Err(L1Error::Failed { .. })) {
                *stuck = left.peek().map(|(_, _, fees)| *fees).or(after);
            }
            last = Some(sent?);
        }
        // One was taken at least.
        Ok((last.ok_or(L1Error::Run(RunError::Empty))?, rest))
    }

    async fn send_alone(&self, mut call: Call, stuck: &mut Option<Fees>) -> Result<Sent, L1Error> {
        let sidecar = prepare(std::mem::take(&mut call.blobs)).await?;
        let gas_limit = self.gas_limit(&call, sidecar.as_ref()).await?;
        self.clear_other_kind(stuck, sidecar.is_some()).await?;
        let before = *stuck;
        match self.submit(&call, sidecar.clone(), gas_limit, stuck).await {
            // In the way is one of the other kind that this process did not send: one before it did, and was killed.
            Err(_) if call.nonce.is_none() && *stuck != before && of_kind(*stuck, sidecar.is_none()) => {
                self.clear_other_kind(stuck, sidecar.is_some()).await?;
                self.submit(&call, sidecar, gas_limit, stuck).await
            }
            outcome => outcome,
        }
    }

    /// A transaction with blobs and one without cannot take each other's place: nodes keep them apart, and an account
    /// has pending ones of one kind only. So one of the stuck one's kind that does nothing takes its place first.
    async fn clear_other_kind(&self, stuck: &mut Option<Fees>, with_blobs: bool) -> Result<(), L1Error> {
        let Some(before) = *stuck else { return Ok(()) };
        if of_kind(*stuck, with_blobs) || self.nonce().await? != before.nonce {
            return Ok(());
        }
        let blobs =
            if before.blob_fee.is_some() { encode_blobs(&[]).map_err(L1Error::Blobs)? } else { vec![] };
        let sidecar = prepare(blobs).await?;
        let (name, to) = ("replacement", TxKind::Call(self.address()));
        let (value, input, size_limit_bytes) = (U256::ZERO, Bytes::new(), None);
        let nothing = Call { name, to, value, input, blobs: Vec::new(), size_limit_bytes, nonce: None };
        self.submit(&nothing, sidecar, PLAIN_GAS, stuck).await.map(drop)
    }

    async fn submit(
        &self,
        call: &Call,
        sidecar: Option<BlobTransactionSidecarEip7594>,
        gas_limit: u64,
        stuck: &mut Option<Fees>,
    ) -> Result<Sent, L1Error> {
        let nonce = match call.nonce {
            Some(nonce) => nonce,
            None => self.nonce().await?,
        };
        let fees = Fees::fresh(&self.rpc, nonce, sidecar.is_some()).await?.over(*stuck);
        let transaction = self.offer(call, sidecar, gas_limit, &fees, stuck).await?;
        let sent = self.confirmed(call.name, transaction).await?;
        *stuck = None;
        Ok(sent)
    }

    /// Gives L1 the transaction. `stuck` is what may be in the way of the next one afterwards.
    async fn offer(
        &self,
        call: &Call,
        sidecar: Option<BlobTransactionSidecarEip7594>,
        gas_limit: u64,
        fees: &Fees,
        stuck: &mut Option<Fees>,
    ) -> Result<B256, L1Error> {
        let with_blobs = sidecar.is_some();
        let envelope = self.sign(call, sidecar, gas_limit, fees)?;
        let raw = envelope.encoded_2718();
        if let Some(limit) = call.size_limit_bytes
            && raw.len() > limit
        {
            return Err(L1Error::TransactionTooLarge { call: call.name, bytes: raw.len(), limit });
        }
        let transaction = *envelope.tx_hash();
        // From here on the transaction may be out there, whatever the answer.
        let before = stuck.replace(*fees);
        self.has_sent.store(true, Ordering::Relaxed);
        if let Err(error) = self.rpc.provider.send_raw_transaction(&raw).await {
            let Some(payload) = error.as_error_resp() else {
                return Err(unanswered(call.name, transaction, failed(SEND)(error)));
            };
            let message = &payload.message;
            if !message.contains("already known") {
                // Not taken. Only where an earlier one is in the way does the next try have to offer more.
                if other_kind_is_pending(message) {
                    // What it offers is not known: at least what one of its kind would now.
                    *stuck = Some(Fees::fresh(&self.rpc, fees.nonce, !with_blobs).await?);
                } else if !message.contains("underpriced") {
                    *stuck = before;
                }
                return Err(refused(call.name, SEND)(error));
            }
        }
        Ok(transaction)
    }

    /// The transaction without what it offers, and without its blobs: as much as gas is estimated for.
    fn request(&self, call: &Call, sidecar: Option<&BlobTransactionSidecarEip7594>) -> TransactionRequest {
        TransactionRequest {
            from: Some(self.address()),
            to: Some(call.to),
            value: Some(call.value),
            input: call.input.clone().into(),
            blob_versioned_hashes: sidecar.map(|sidecar| sidecar.versioned_hashes().collect()),
            ..Default::default()
        }
    }

    fn sign(
        &self,
        call: &Call,
        sidecar: Option<BlobTransactionSidecarEip7594>,
        gas_limit: u64,
        fees: &Fees,
    ) -> Result<TxEnvelope, L1Error> {
        let named = self.request(call, sidecar.as_ref());
        let request = TransactionRequest {
            chain_id: Some(self.chain_id),
            nonce: Some(fees.nonce),
            gas: Some(gas_limit),
            max_fee_per_gas: Some(fees.max_fee),
            max_priority_fee_per_gas: Some(fees.tip),
            max_fee_per_blob_gas: fees.blob_fee,
            sidecar: sidecar.map(BlobTransactionSidecarVariant::Eip7594),
            ..named
        };
        // Nothing else is left that could be missing.
        let transaction = request.build_typed_tx().map_err(|_| L1Error::Blobs(BlobError::Creation))?;
        let signature = self.signature(&transaction.signature_hash());
        Ok(transaction.into_envelope(signature))
    }

    fn signature(&self, hash: &B256) -> Signature {
        let signature = self.key.sign(hash);
        Signature::from_bytes_and_parity(&signature.0[..64], signature.0[64] == 28)
    }

    /// Waits until the transaction has a receipt, or the time is over.
    async fn confirmed(&self, call: &'static str, transaction: B256) -> Result<Sent, L1Error> {
        let started = now();
        let limit = Duration::from_millis(self.confirmation_timeout_ms);
        loop {
            let receipt = self.rpc.provider.get_transaction_receipt(transaction).await;
            match receipt.map_err(failed("eth_getTransactionReceipt")) {
                Ok(Some(receipt)) => {
                    let block = receipt.block_number.unwrap_or_default();
                    if !receipt.status() {
                        return Err(L1Error::Failed { call, transaction });
                    }
                    return Ok(Sent { transaction, block, gas_used: receipt.gas_used });
                }
                Err(cause) if !cause.is_transient() => return Err(unanswered(call, transaction, cause)),
                _ if started.elapsed() >= limit => {
                    let waited_ms = self.confirmation_timeout_ms;
                    return Err(L1Error::Unconfirmed { call, transaction, waited_ms });
                }
                _ => tokio::time::sleep(Duration::from_millis(RECEIPT_POLL_MS)).await,
            }
        }
    }

    async fn gas_limit(
        &self,
        call: &Call,
        sidecar: Option<&BlobTransactionSidecarEip7594>,
    ) -> Result<u64, L1Error> {
        // Not on the pending state: it may hold the very transaction that this one replaces.
        let gas = self.rpc.provider.estimate_gas(self.request(call, sidecar)).latest().await;
        let gas = gas.map_err(refused(call.name, "eth_estimateGas"))?;
        if gas > GAS_LIMIT {
            return Err(L1Error::GasAboveLimit { call: call.name, gas, limit: GAS_LIMIT });
        }
        Ok((gas + gas / 100 * GAS_MARGIN_PERCENT).min(GAS_LIMIT))
    }
}

/// Whether what is stuck has blobs, or has none.
fn of_kind(stuck: Option<Fees>, with_blobs: bool) -> bool {
    stuck.is_some_and(|fees| fees.blob_fee.is_some() == with_blobs)
}

/// Whether a node says that the account has a transaction of the other kind, with blobs or without, in its pool: the words of
/// Geth and Reth, and Nethermind's.
fn other_kind_is_pending(message: &str) -> bool {
    ["address already reserved", "PendingTxsOfConflictingType"].iter().any(|words| message.contains(words))
}

fn unanswered(call: &'static str, transaction: B256, cause: L1Error) -> L1Error {
    L1Error::Unanswered { call, transaction, cause: Box::new(cause) }
}

/// Commitments and proofs, computed where blocking is allowed; `None` without blobs.
async fn prepare(blobs: Vec<Blob>) -> Result<Option<BlobTransactionSidecarEip7594>, L1Error> {
    if blobs.is_empty() {
        return Ok(None);
    }
    let done = blocking(move || sidecar(blobs)).await;
    let done = done.unwrap_or_else(|error| Err(BlobError::Kzg(error.to_string())));
    done.map(Some).map_err(L1Error::Blobs)
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").field("address", &self.address()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
