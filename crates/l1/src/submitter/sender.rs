//! Sending transactions: one at a time, or some that do not need each other, fees from the newest block, replaced when they do
//! not get into a block.
//!
//! Nodes keep transactions with blobs in a pool of their own, and an account has pending ones in one of the two pools only. So
//! those that are on their way together are all with blobs or all without, and what is in the way of the other kind is replaced
//! first, by its own kind: with all fees doubled where it has blobs, as nodes ask for.

use std::collections::VecDeque;

use alloy_eips::eip7594::BlobTransactionSidecarEip7594;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use blindfold_protocol::SigningKey;
use tokio::sync::Mutex;

use crate::{
    error::{L1Error, RunError},
    posting::blobs::encode_blobs,
    submitter::{
        account::{Account, Call, OnItsWay, prepare},
        costs::{DataCosts, DataEstimate, Plan},
        fees::{Fees, PLAIN_GAS, Prices},
        pending::{Pending, Sent, SentCall, State},
        refusals::refuses_such,
    },
    transport::Rpc,
};

/// Transactions on their way at the same time: nodes keep 16 of an account, and so many of the longest fit a block.
const MAX_IN_FLIGHT: usize = 6;
/// Blobs on their way at the same time, of more than one transaction: L1 aims at no fewer in two blocks (Osaka), so that a row
/// gets in before its fees are too low for what it made blobs cost itself.
const MAX_BLOBS_IN_FLIGHT: usize = 12;

/// One account that sends transactions.
pub(crate) struct Sender {
    account: Account,
    /// Held while a transaction is on its way, so that nonces do not collide.
    pending: Mutex<Pending>,
}

impl Sender {
    pub fn new(
        rpc: Rpc,
        chain_id: u64,
        key: SigningKey,
        confirmation_timeout_ms: u64,
        max_fee_wei: u128,
    ) -> Self {
        let account = Account::new(rpc, chain_id, key, confirmation_timeout_ms, max_fee_wei);
        Self { account, pending: Mutex::default() }
    }

    /// What data cost so far.
    pub fn costs(&self) -> DataCosts {
        *self.account.costs.lock()
    }

    /// Whether the node takes transactions with blobs, as far as is known.
    pub fn takes_blobs(&self) -> bool {
        self.account.takes_blobs()
    }

    /// What data would cost now in either place.
    pub async fn estimate(&self, calldata: &Plan, blobs: &Plan) -> Result<DataEstimate, L1Error> {
        let stuck = self.pending.lock().await.stuck;
        // What came into a block meanwhile is in nobody's way.
        let stuck = match stuck {
            Some(fees) if self.account.nonce().await? == fees.nonce => Some(fees),
            _ => None,
        };
        let prices = match Prices::now(&self.account.rpc, true).await {
            // A node that names no price for blobs takes none.
            Err(fault) if !fault.is_transient() => Prices::now(&self.account.rpc, false).await?,
            outcome => outcome?,
        };
        let estimate = DataEstimate::of(calldata, blobs, &prices, stuck.as_ref());
        self.account.costs.lock().estimate = Some(estimate);
        Ok(estimate)
    }

    pub fn address(&self) -> Address {
        self.account.address()
    }

    /// Whether L1 was given a transaction by this sender, taken or not.
    pub fn has_sent(&self) -> bool {
        self.account.has_sent()
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
                && !self.account.has_pending().await?
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
        let next = self.account.nonce().await?;
        // What was in a block before is counted.
        let data = call.data.filter(|_| state != State::Included);
        for transaction in transactions.iter().copied() {
            if let Some(receipt) = self.account.receipt(transaction).await? {
                let sent = self.account.included(OnItsWay { name: call.name, data, transaction }, &receipt);
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
        let sent = self.account.confirmed(OnItsWay { name: call.name, data, transaction }).await;
        pending.heard(row, &what, &sent);
        match &sent {
            Ok(_) => pending.pass(fees.nonce),
            Err(L1Error::Unconfirmed { .. }) if self.account.nonce().await? == fees.nonce => {
                pending.stuck = Some(fees);
            }
            Err(_) => {}
        }
        sent.map(Some)
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
            let gas_limit = self.account.gas_limit(call, sidecar.as_ref()).await?;
            ready.push((sidecar, gas_limit));
        }
        let with_blobs = ready.iter().any(|(sidecar, _)| sidecar.is_some());
        let fees = Fees::fresh(&self.account.rpc, self.account.nonce().await?, with_blobs).await?;
        let mut on_their_way: Vec<(B256, OnItsWay, Fees)> = Vec::with_capacity(row.len());
        // What is in the way of the next one where they are not all taken.
        let mut after = None;
        for ((call, (sidecar, gas_limit)), nonce) in row.iter().zip(ready).zip(fees.nonce..) {
            let (what, fees) = (call.hash(), Fees { nonce, ..fees });
            let mut offered = None;
            match self.account.offer(call, sidecar, gas_limit, &fees, &mut offered).await {
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
            let sent = self.account.confirmed(on_its_way).await;
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
        let gas_limit = self.account.gas_limit(&call, sidecar.as_ref()).await?;
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
        if of_kind(pending.stuck, with_blobs) || self.account.nonce().await? != before.nonce {
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
            None => self.account.nonce().await?,
        };
        let fresh = Fees::fresh(&self.account.rpc, nonce, sidecar.is_some()).await?;
        let mut fees = fresh.over(pending.stuck);
        // Nothing has to be outbid where the node has dropped what was stuck.
        if fees != fresh
            && self.account.check_cost(call.name, &fees, gas_limit, sidecar.as_ref()).is_err()
            && !self.account.has_pending().await?
        {
            fees = fresh;
        }
        let offered = self.account.offer(call, sidecar, gas_limit, &fees, &mut pending.stuck).await;
        if let Some((row, what)) = remembered
            && let Ok(OnItsWay { transaction, .. }) | Err(L1Error::Unanswered { transaction, .. }) = &offered
        {
            pending.note(row, what, *transaction, fees, State::Overdue);
        }
        let sent = self.account.confirmed(offered?).await;
        if let Some((row, what)) = remembered {
            pending.heard(row, &what, &sent);
        }
        let sent = sent?;
        pending.stuck = None;
        Ok(sent)
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

/// Whether what is stuck has blobs, or has none.
fn of_kind(stuck: Option<Fees>, with_blobs: bool) -> bool {
    stuck.is_some_and(|fees| fees.blob_fee.is_some() == with_blobs)
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").field("address", &self.address()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
