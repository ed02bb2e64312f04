//! Sending transactions: one at a time, or some that do not need each other, fees from the newest block, replaced when they do
//! not get into a block.
//!
//! Nodes keep transactions with blobs in a pool of their own, and an account has pending ones in one of the two pools only. So
//! those that are on their way together are all with blobs or all without, and what is in the way of the other kind is replaced
//! first, by its own kind: with all fees doubled where it has blobs, as nodes ask for.

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
use alloy_primitives::{Address, B256, Bytes, Keccak256, Signature, TxKind, U256};
use alloy_provider::Provider;
use alloy_rpc_types_eth::{TransactionReceipt, TransactionRequest};
use blindfold_protocol::SigningKey;
use blindfold_runtime::{blocking, now};
use tokio::sync::Mutex;

use crate::{
    error::{L1Error, RunError, SEND},
    posting::{
        blobs::{BlobError, encode_blobs, sidecar},
        place::LayerName,
    },
    submitter::{
        costs::{DataCosts, DataEstimate, Plan},
        fees::{Fees, PLAIN_GAS, Prices},
        pending::{Pending, Sent, SentCall, State},
        refusals::{BlobRefusals, Refusal, refuses_request, refuses_such},
    },
    transport::{Rpc, failed, refused},
};

/// Gas that one transaction may have (EIP-7825).
pub(crate) const GAS_LIMIT: u64 = 1 << 24;
/// Room above the estimate, in percent: the state may have changed a little when the transaction runs.
const GAS_MARGIN_PERCENT: u64 = 15;
/// Transactions on their way at the same time: nodes keep 16 of an account, and so many of the longest fit a block.
const MAX_IN_FLIGHT: usize = 6;
/// Blobs on their way at the same time, of more than one transaction: L1 aims at no fewer in two blocks (Osaka), so that a row
/// gets in before its fees are too low for what it made blobs cost itself.
const MAX_BLOBS_IN_FLIGHT: usize = 12;
const RECEIPT: &str = "eth_getTransactionReceipt";
/// Pause between two looks for the receipt.
const RECEIPT_POLL_MS: u64 = 200;

/// One account that sends transactions.
pub(crate) struct Sender {
    rpc: Rpc,
    chain_id: u64,
    key: SigningKey,
    confirmation_timeout_ms: u64,
    /// The most that one transaction may cost, in wei.
    max_fee_wei: u128,
    /// Held while a transaction is on its way, so that nonces do not collide.
    pending: Mutex<Pending>,
    /// Whether L1 was given a transaction, whatever came of it.
    has_sent: AtomicBool,
    /// What the transactions with data cost that came into blocks.
    costs: parking_lot::Mutex<DataCosts>,
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
    fn hash(&self) -> B256 {
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
struct OnItsWay {
    name: &'static str,
    data: Option<(LayerName, usize)>,
    transaction: B256,
}

impl Sender {
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
            pending: Mutex::default(),
            has_sent: AtomicBool::new(false),
            costs: parking_lot::Mutex::default(),
            blob_refusals: parking_lot::Mutex::default(),
        }
    }

    /// What data cost so far.
    pub fn costs(&self) -> DataCosts {
        *self.costs.lock()
    }

    /// Whether the node takes transactions with blobs, as far as is known.
    pub fn takes_blobs(&self) -> bool {
        !self.blob_refusals.lock().is_paused(now())
    }

    /// What data would cost now in either place.
    pub async fn estimate(&self, calldata: &Plan, blobs: &Plan) -> Result<DataEstimate, L1Error> {
        let stuck = self.pending.lock().await.stuck;
        // What came into a block meanwhile is in nobody's way.
        let stuck = match stuck {
            Some(fees) if self.nonce().await? == fees.nonce => Some(fees),
            _ => None,
        };
        let prices = match Prices::now(&self.rpc, true).await {
            // A node that names no price for blobs takes none.
            Err(fault) if !fault.is_transient() => Prices::now(&self.rpc, false).await?,
            outcome => outcome?,
        };
        let estimate = DataEstimate::of(calldata, blobs, &prices, stuck.as_ref());
        self.costs.lock().estimate = Some(estimate);
        Ok(estimate)
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
        let mut pending = self.pending.lock().await;
        self.send_alone(call, &mut pending, None).await
    }

    /// The same for calls of which none needs what another one does: several are on their way at a time, so that they may
    /// come into one block. Gives the last. What is stuck gives way first, one by one. Others may send between two rows.
    ///
    /// # Errors
    /// Of the first that is not taken, or does not come into a block in time. Those before it are there, and those after it
    /// may be: where they are called again, what was sent already is awaited and not sent again.
    pub async fn send_in_a_row(&self, calls: Vec<Call>) -> Result<Option<Sent>, L1Error> {
        let whats: Vec<B256> = calls.iter().map(Call::hash).collect();
        let number = self.pending.lock().await.begin_row();
        let mut calls = VecDeque::from(calls);
        let mut last = None;
        while let Some(first) = calls.pop_front() {
            let mut pending = self.pending.lock().await;
            if let Some(sent) = self.sent_before(&first, number, &mut pending).await? {
                last = Some(sent);
                continue;
            }
            let mut row = vec![first];
            if pending.stuck.is_none()
                && row.iter().all(|call| call.nonce.is_none())
                && !self.has_pending().await?
            {
                // What may have been sent before is looked for, and ends the row.
                let is_known =
                    |call: &Call| !pending.is_empty() && pending.find(number, &call.hash()).is_some();
                let new = calls.iter().position(is_known).unwrap_or(calls.len());
                let later = calls.split_off(new);
                extend(&mut row, &mut calls);
                calls.extend(later);
            }
            last = Some(match <[Call; 1]>::try_from(row) {
                Ok([alone]) => {
                    let remembered = Some((number, alone.hash()));
                    self.send_alone(alone, &mut pending, remembered).await?
                }
                Err(row) => {
                    let (sent, rest) = self.send_row(row, number, &mut pending).await?;
                    for call in rest.into_iter().rev() {
                        calls.push_front(call);
                    }
                    sent
                }
            });
        }
        self.pending.lock().await.forget(&whats);
        Ok(last)
    }

    /// Finds a call that a row sent before of which its caller does not know that it is there. It is waited for where it only
    /// was behind others. `None` where it has to be sent.
    async fn sent_before(
        &self,
        call: &Call,
        row: u64,
        pending: &mut Pending,
    ) -> Result<Option<Sent>, L1Error> {
        if pending.is_empty() {
            return Ok(None);
        }
        let what = call.hash();
        let Some(SentCall { transactions, fees, state, .. }) = pending.find(row, &what).cloned() else {
            return Ok(None);
        };
        // Asked for first: what gets into a block meanwhile is found there.
        let next = self.nonce().await?;
        // What was in a block before is counted.
        let data = call.data.filter(|_| state != State::Included);
        for transaction in transactions.iter().copied() {
            let receipt = self.rpc.provider.get_transaction_receipt(transaction).await;
            if let Some(receipt) = receipt.map_err(failed(RECEIPT))? {
                let sent = self.included(OnItsWay { name: call.name, data, transaction }, &receipt);
                pending.heard(row, &what, &sent);
                if transactions.last() == Some(&transaction) {
                    pending.pass(fees.nonce);
                }
                // One that failed is sent anew, or refused by the contract's name for it.
                return Ok(sent.ok());
            }
        }
        // Outbid where it was waited for in vain, and sent anew where another transaction has its place.
        let may_come = state == State::Waits && fees.nonce >= next;
        let Some(transaction) = transactions.last().copied().filter(|_| may_come) else { return Ok(None) };
        let sent = self.confirmed(OnItsWay { name: call.name, data, transaction }).await;
        pending.heard(row, &what, &sent);
        match &sent {
            Ok(_) => pending.pass(fees.nonce),
            Err(L1Error::Unconfirmed { .. }) if self.nonce().await? == fees.nonce => {
                pending.stuck = Some(fees);
            }
            Err(_) => {}
        }
        sent.map(Some)
    }

    /// Whether transactions of the account wait to come into a block, of this process or of one before it.
    async fn has_pending(&self) -> Result<bool, L1Error> {
        let pending = self.rpc.nonce(self.address(), BlockId::pending()).await?;
        Ok(pending > self.nonce().await?)
    }

    /// Sends calls of one kind at once, with nonces that follow each other, and waits for those that L1 took. Gives the last,
    /// and the calls that it did not take: a node that takes one may have no room for the next, or find that the account cannot
    /// pay for all at their dearest.
    async fn send_row(
        &self,
        row: Vec<Call>,
        number: u64,
        pending: &mut Pending,
    ) -> Result<(Sent, Vec<Call>), L1Error> {
        let mut ready = Vec::with_capacity(row.len());
        for call in &row {
            let sidecar = prepare(call.blobs.clone()).await?;
            let gas_limit = self.gas_limit(call, sidecar.as_ref()).await?;
            ready.push((sidecar, gas_limit));
        }
        let with_blobs = ready.iter().any(|(sidecar, _)| sidecar.is_some());
        let fees = Fees::fresh(&self.rpc, self.nonce().await?, with_blobs).await?;
        let mut on_their_way: Vec<(B256, OnItsWay, Fees)> = Vec::with_capacity(row.len());
        // What is in the way of the next one where they are not all taken.
        let mut after = None;
        for ((call, (sidecar, gas_limit)), nonce) in row.iter().zip(ready).zip(fees.nonce..) {
            let (what, fees) = (call.hash(), Fees { nonce, ..fees });
            let mut offered = None;
            match self.offer(call, sidecar, gas_limit, &fees, &mut offered).await {
                Ok(on_its_way) => {
                    pending.note(number, what, on_its_way.transaction, fees, State::Waits);
                    on_their_way.push((what, on_its_way, fees));
                }
                Err(fault) => {
                    if let L1Error::Unanswered { transaction, .. } = &fault {
                        pending.note(number, what, *transaction, fees, State::Overdue);
                    }
                    if on_their_way.is_empty() {
                        pending.stuck = offered;
                        return Err(fault);
                    }
                    tracing::debug!(%fault, taken = on_their_way.len(), "the others follow when these are there");
                    after = offered;
                    break;
                }
            }
        }
        let rest: Vec<Call> = row.into_iter().skip(on_their_way.len()).collect();
        let mut last = None;
        let mut left = on_their_way.into_iter().peekable();
        while let Some((what, on_its_way, fees)) = left.next() {
            // Should it not come into a block, the next transaction takes its place.
            pending.stuck = Some(fees);
            let sent = self.confirmed(on_its_way).await;
            pending.heard(number, &what, &sent);
            if matches!(sent, Ok(_) | Err(L1Error::Failed { .. })) {
                pending.stuck = left.peek().map(|(_, _, fees)| *fees).or(after);
            }
            last = Some(sent?);
        }
        // One was taken at least.
        Ok((last.ok_or(L1Error::Run(RunError::Empty))?, rest))
    }

    /// Sends one call; `remembered` is the number of its row, and its hash.
    async fn send_alone(
        &self,
        mut call: Call,
        pending: &mut Pending,
        remembered: Option<(u64, B256)>,
    ) -> Result<Sent, L1Error> {
        let sidecar = prepare(std::mem::take(&mut call.blobs)).await?;
        let gas_limit = self.gas_limit(&call, sidecar.as_ref()).await?;
        let with_blobs = sidecar.is_some();
        let mut cleared = 0;
        loop {
            while cleared <= MAX_IN_FLIGHT && self.clear_other_kind(pending, with_blobs).await? {
                cleared += 1;
            }
            let before = pending.stuck;
            match self.submit(&call, sidecar.clone(), gas_limit, pending, remembered).await {
                // In the way is one of the other kind: behind the one that was known of in a row, or of a process before this
                // one, which was killed.
                Err(_)
                    if call.nonce.is_none()
                        && cleared < MAX_IN_FLIGHT
                        && pending.stuck != before
                        && of_kind(pending.stuck, !with_blobs) =>
                {
                    cleared += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// A transaction with blobs and one without cannot take each other's place: nodes keep them apart, and an account
    /// has pending ones of one kind only. So one of the stuck one's kind that does nothing takes its place first. True where
    /// one did: there may be another one behind it.
    async fn clear_other_kind(&self, pending: &mut Pending, with_blobs: bool) -> Result<bool, L1Error> {
        let Some(before) = pending.stuck else { return Ok(false) };
        if of_kind(pending.stuck, with_blobs) || self.nonce().await? != before.nonce {
            return Ok(false);
        }
        let blobs =
            if before.blob_fee.is_some() { encode_blobs(&[]).map_err(L1Error::Blobs)? } else { vec![] };
        let sidecar = prepare(blobs).await?;
        let (name, to) = ("replacement", TxKind::Call(self.address()));
        let (value, input, size_limit_bytes) = (U256::ZERO, Bytes::new(), None);
        let nothing =
            Call { name, to, value, input, blobs: Vec::new(), size_limit_bytes, nonce: None, data: None };
        match self.submit(&nothing, sidecar, PLAIN_GAS, pending, None).await {
            Ok(_) => {
                let behind = pending.offered_at(before.nonce.saturating_add(1));
                pending.stuck = behind.filter(|fees| fees.blob_fee.is_some() == before.blob_fee.is_some());
                Ok(true)
            }
            // A node that takes none with blobs has none that could be in the way.
            Err(fault) if before.blob_fee.is_some() && refuses_such(&fault) => {
                tracing::debug!(%fault, "a transaction with blobs is taken for gone");
                pending.stuck = None;
                Ok(false)
            }
            Err(fault) => Err(fault),
        }
    }

    async fn submit(
        &self,
        call: &Call,
        sidecar: Option<BlobTransactionSidecarEip7594>,
        gas_limit: u64,
        pending: &mut Pending,
        remembered: Option<(u64, B256)>,
    ) -> Result<Sent, L1Error> {
        let nonce = match call.nonce {
            Some(nonce) => nonce,
            None => self.nonce().await?,
        };
        let fresh = Fees::fresh(&self.rpc, nonce, sidecar.is_some()).await?;
        let mut fees = fresh.over(pending.stuck);
        // Nothing has to be outbid where the node has dropped what was stuck.
        if fees != fresh
            && self.check_cost(call.name, &fees, gas_limit, sidecar.as_ref()).is_err()
            && !self.has_pending().await?
        {
            fees = fresh;
        }
        let offered = self.offer(call, sidecar, gas_limit, &fees, &mut pending.stuck).await;
        if let Some((row, what)) = remembered
            && let Ok(OnItsWay { transaction, .. }) | Err(L1Error::Unanswered { transaction, .. }) = &offered
        {
            pending.note(row, what, *transaction, fees, State::Overdue);
        }
        let sent = self.confirmed(offered?).await;
        if let Some((row, what)) = remembered {
            pending.heard(row, &what, &sent);
        }
        let sent = sent?;
        pending.stuck = None;
        Ok(sent)
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
    fn check_cost(
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
    async fn offer(
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

    /// Waits until the transaction has a receipt, or the time is over.
    async fn confirmed(&self, on_its_way: OnItsWay) -> Result<Sent, L1Error> {
        let OnItsWay { name: call, transaction, .. } = on_its_way;
        let started = now();
        let limit = Duration::from_millis(self.confirmation_timeout_ms);
        loop {
            let receipt = self.rpc.provider.get_transaction_receipt(transaction).await;
            match receipt.map_err(failed(RECEIPT)) {
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
    fn included(&self, on_its_way: OnItsWay, receipt: &TransactionReceipt) -> Result<Sent, L1Error> {
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

/// Adds calls to a row of one, in order, that may be on their way with it (DC-4).
fn extend(row: &mut Vec<Call>, calls: &mut VecDeque<Call>) {
    let mut blobs: usize = row.iter().map(|call| call.blobs.len()).sum();
    let with_blobs = blobs > 0;
    while row.len() < MAX_IN_FLIGHT
        && let Some(next) = calls.pop_front_if(|next| {
            let is_of_kind = next.blobs.is_empty() != with_blobs;
            let fits = blobs.saturating_add(next.blobs.len()) <= MAX_BLOBS_IN_FLIGHT;
            next.nonce.is_none() && is_of_kind && (!with_blobs || fits)
        })
    {
        blobs = blobs.saturating_add(next.blobs.len());
        row.push(next);
    }
}

/// What a transaction cost, its blobs included.
fn wei_of(receipt: &TransactionReceipt) -> u128 {
    let gas = u128::from(receipt.gas_used).saturating_mul(receipt.effective_gas_price);
    let blob_gas = receipt.blob_gas_used.map_or(0, u128::from);
    gas.saturating_add(blob_gas.saturating_mul(receipt.blob_gas_price.unwrap_or_default()))
}

/// Whether what is stuck has blobs, or has none.
fn of_kind(stuck: Option<Fees>, with_blobs: bool) -> bool {
    stuck.is_some_and(|fees| fees.blob_fee.is_some() == with_blobs)
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
