//! An account on L1: what it signs and gives a node, and what it hears of that.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use alloy_consensus::{SignableTransaction, TxEnvelope};
use alloy_eips::{
    BlockId, eip2718::Encodable2718, eip4844::Blob, eip7594::BlobTransactionSidecarEip7594,
    eip7594::BlobTransactionSidecarVariant,
};
use alloy_primitives::{Address, B256, Bytes, Keccak256, Signature, TxKind, U256};
use alloy_provider::Provider;
use alloy_rpc_types_eth::{TransactionReceipt, TransactionRequest};
use blindfold_protocol::SigningKey;
use blindfold_runtime::{blocking, now};

use crate::{
    error::{L1Error, SEND},
    posting::{
        blobs::{BlobError, sidecar},
        place::LayerName,
    },
    submitter::{
        costs::DataCosts,
        fees::Fees,
        pending::Sent,
        refusals::{BlobRefusals, Refusal, refuses_request, refuses_such},
    },
    transport::{Rpc, failed, refused},
};

/// Gas that one transaction may have (EIP-7825).
pub(crate) const GAS_LIMIT: u64 = 1 << 24;
/// Room above the estimate, in percent: the state may have changed a little when the transaction runs.
const GAS_MARGIN_PERCENT: u64 = 15;
const RECEIPT: &str = "eth_getTransactionReceipt";
/// Pause between two looks for the receipt.
const RECEIPT_POLL_MS: u64 = 200;

/// The account, and the node that it is known to.
pub(crate) struct Account {
    pub rpc: Rpc,
    chain_id: u64,
    key: SigningKey,
    confirmation_timeout_ms: u64,
    /// The most that one transaction may cost, in wei.
    pub max_fee_wei: u128,
    /// Whether L1 was given a transaction, whatever came of it.
    has_sent: AtomicBool,
    /// What the transactions with data cost that came into blocks.
    pub costs: parking_lot::Mutex<DataCosts>,
    blob_refusals: parking_lot::Mutex<BlobRefusals>,
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
    /// Where it has data of posted runs, and how many bytes.
    pub data: Option<(LayerName, usize)>,
}

impl Call {
    /// Hash of what is called, whatever is offered for it.
    pub fn hash(&self) -> B256 {
        let mut hasher = Keccak256::new();
        hasher.update(self.to.to().copied().unwrap_or_default());
        hasher.update(self.value.to_be_bytes::<32>());
        hasher.update((self.input.len() as u64).to_be_bytes());
        hasher.update(&self.input);
        for blob in &self.blobs {
            hasher.update(blob);
        }
        hasher.finalize()
    }
}

/// What a receipt is looked for by, and what it is counted for.
#[derive(Clone, Copy)]
pub(crate) struct OnItsWay {
    pub name: &'static str,
    pub data: Option<(LayerName, usize)>,
    pub transaction: B256,
}

impl Account {
    pub fn new(
        rpc: Rpc,
        chain_id: u64,
        key: SigningKey,
        confirmation_timeout_ms: u64,
        max_fee_wei: u128,
    ) -> Self {
        Self {
            rpc,
            chain_id,
            key,
            confirmation_timeout_ms,
            max_fee_wei,
            has_sent: AtomicBool::new(false),
            costs: parking_lot::Mutex::default(),
            blob_refusals: parking_lot::Mutex::default(),
        }
    }

    /// Whether the node takes transactions with blobs, as far as is known.
    pub fn takes_blobs(&self) -> bool {
        !self.blob_refusals.lock().is_paused(now())
    }

    pub fn address(&self) -> Address {
        self.key.address()
    }

    /// The account's next nonce, by the newest block.
    pub async fn nonce(&self) -> Result<u64, L1Error> {
        self.rpc.nonce(self.address(), BlockId::latest()).await
    }

    /// Whether L1 was given a transaction, taken or not.
    pub fn has_sent(&self) -> bool {
        self.has_sent.load(Ordering::Relaxed)
    }

    /// Whether transactions of the account wait to come into a block, of this process or of one before it.
    pub async fn has_pending(&self) -> Result<bool, L1Error> {
        let pending = self.rpc.nonce(self.address(), BlockId::pending()).await?;
        Ok(pending > self.nonce().await?)
    }

    /// What went wrong. Where the node refuses a transaction for having blobs it is counted, and named after a few.
    fn judged(&self, call: &'static str, with_blobs: bool, fault: L1Error) -> L1Error {
        if !with_blobs || !refuses_such(&fault) {
            return fault;
        }
        let mut costs = self.costs.lock();
        costs.blob_refusals = costs.blob_refusals.saturating_add(1);
        drop(costs);
        if self.blob_refusals.lock().refused(now()) {
            L1Error::BlobsRefused { call, cause: Box::new(fault) }
        } else {
            fault
        }
    }

    /// Whether the operator lets a transaction cost so much.
    pub fn check_cost(
        &self,
        call: &'static str,
        fees: &Fees,
        gas_limit: u64,
        sidecar: Option<&BlobTransactionSidecarEip7594>,
    ) -> Result<(), L1Error> {
        let blobs = sidecar.map_or(0, |sidecar| sidecar.blobs.len());
        let (wei, limit_wei) = (fees.cost(gas_limit, blobs), self.max_fee_wei);
        if wei > limit_wei { Err(L1Error::FeeAboveLimit { call, wei, limit_wei }) } else { Ok(()) }
    }

    /// Gives L1 the transaction. `stuck` is what may be in the way of the next one afterwards.
    pub async fn offer(
        &self,
        call: &Call,
        sidecar: Option<BlobTransactionSidecarEip7594>,
        gas_limit: u64,
        fees: &Fees,
        stuck: &mut Option<Fees>,
    ) -> Result<OnItsWay, L1Error> {
        if let Err(fault) = self.check_cost(call.name, fees, gas_limit, sidecar.as_ref()) {
            tracing::error!(nonce = fees.nonce, %fault, "a transaction is too dear to be sent");
            return Err(fault);
        }
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
        let before = *stuck;
        *stuck = Some(fees.at_least(before));
        self.has_sent.store(true, Ordering::Relaxed);
        if let Err(error) = self.rpc.provider.send_raw_transaction(&raw).await {
            let Some(payload) = error.as_error_resp() else {
                let cause = failed(SEND)(error);
                if refuses_request(&cause) {
                    *stuck = before;
                }
                return Err(self.judged(call.name, with_blobs, unanswered(call.name, transaction, cause)));
            };
            let refusal = Refusal::of(&payload.message);
            match refusal {
                // The next try has to offer more.
                Refusal::Known | Refusal::TooCheap => {}
                // What it offers is not known: at least what one of its kind would now.
                Refusal::OtherKind => {
                    let fresh = Fees::fresh(&self.rpc, fees.nonce, !with_blobs).await?;
                    *stuck = Some(fresh.at_least(before));
                }
                Refusal::Passing | Refusal::Other => *stuck = before,
            }
            if refusal != Refusal::Known {
                return Err(self.judged(call.name, with_blobs, refused(call.name, SEND)(error)));
            }
        }
        *stuck = Some(*fees);
        if with_blobs {
            self.blob_refusals.lock().taken();
        }
        Ok(OnItsWay { name: call.name, data: call.data, transaction })
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

    /// The receipt of a transaction that is in a block.
    pub async fn receipt(&self, transaction: B256) -> Result<Option<TransactionReceipt>, L1Error> {
        self.rpc.provider.get_transaction_receipt(transaction).await.map_err(failed(RECEIPT))
    }

    /// Waits until the transaction has a receipt, or the time is over.
    pub async fn confirmed(&self, on_its_way: OnItsWay) -> Result<Sent, L1Error> {
        let OnItsWay { name: call, transaction, .. } = on_its_way;
        let started = now();
        let limit = Duration::from_millis(self.confirmation_timeout_ms);
        loop {
            match self.receipt(transaction).await {
                Ok(Some(receipt)) => return self.included(on_its_way, &receipt),
                Err(cause) if !cause.is_transient() => return Err(unanswered(call, transaction, cause)),
                _ if started.elapsed() >= limit => {
                    let waited_ms = self.confirmation_timeout_ms;
                    return Err(L1Error::Unconfirmed { call, transaction, waited_ms });
                }
                _ => tokio::time::sleep(Duration::from_millis(RECEIPT_POLL_MS)).await,
            }
        }
    }

    /// What came of a transaction that is in a block, and what it cost.
    pub fn included(&self, on_its_way: OnItsWay, receipt: &TransactionReceipt) -> Result<Sent, L1Error> {
        let OnItsWay { name: call, data, transaction } = on_its_way;
        if let Some((layer, bytes)) = data {
            self.costs.lock().add(layer, bytes, wei_of(receipt));
        }
        if !receipt.status() {
            return Err(L1Error::Failed { call, transaction });
        }
        let block = receipt.block_number.unwrap_or_default();
        Ok(Sent { transaction, block, gas_used: receipt.gas_used })
    }

    pub async fn gas_limit(
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

/// What a transaction cost, its blobs included.
fn wei_of(receipt: &TransactionReceipt) -> u128 {
    let gas = u128::from(receipt.gas_used).saturating_mul(receipt.effective_gas_price);
    let blob_gas = receipt.blob_gas_used.map_or(0, u128::from);
    gas.saturating_add(blob_gas.saturating_mul(receipt.blob_gas_price.unwrap_or_default()))
}

fn unanswered(call: &'static str, transaction: B256, cause: L1Error) -> L1Error {
    L1Error::Unanswered { call, transaction, cause: Box::new(cause) }
}

/// Commitments and proofs, computed where blocking is allowed; `None` without blobs.
pub(crate) async fn prepare(blobs: Vec<Blob>) -> Result<Option<BlobTransactionSidecarEip7594>, L1Error> {
    if blobs.is_empty() {
        return Ok(None);
    }
    let done = blocking(move || sidecar(blobs)).await;
    let done = done.unwrap_or_else(|error| Err(BlobError::Kzg(error.to_string())));
    done.map(Some).map_err(L1Error::Blobs)
}
