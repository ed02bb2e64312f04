//! Puts held transactions into envelopes, sends them, and follows each until its transactions are in a block or given up.

use std::{sync::Arc, time::Duration};

use alloy_primitives::{Address, B256};
use blindfold_protocol::{Canonical, Envelope};
use blindfold_rpc::{
    BlindApiClient, Encoded, ReceivedError, SequencerApiClient,
    types::{EnvelopeState, Receipt, TransactionOutcome},
};
use tokio::{sync::watch, time::sleep};

use super::{
    Inner,
    journal::{EnvelopeRow, JournalError},
    pool::Next,
};
use crate::{
    committee_key::CommitteeKeyError,
    envelopes::{EnvelopeMaker, Offer},
    node::NodeError,
    wallet::is_final,
};

/// Outcome of a transaction that is in a block.
pub const INCLUDED: &str = "included";

/// Skips that another envelope may mend: the state or the fee was not there yet, or the envelope as a whole failed.
const MENDABLE: &[&str] = &[
    "nonce_too_high",
    "insufficient_funds",
    "fee_cap_too_low",
    "fee_cap_below_base_fee",
    "gas_pool_exhausted",
    "gas_above_remaining",
    "expired",
    "expiry_too_far",
    "fee_nonce_used",
    "fee_too_low",
    "wrong_epoch",
    "wrong_encryption_key",
];

/// What stops one round of work; the next round tries again.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// The user's node.
    #[error("the node: {0}")]
    Node(#[from] NodeError),
    /// The user's node, asked for a receipt.
    #[error("the node: {0}")]
    NodeRpc(ReceivedError),
    /// The sequencer.
    #[error("the sequencer: {0}")]
    Sequencer(ReceivedError),
    /// The committee's key.
    #[error(transparent)]
    CommitteeKey(#[from] CommitteeKeyError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The envelope cannot be made.
    #[error(transparent)]
    Build(#[from] blindfold_protocol::envelope_builder::BuildError),
}

/// Works until `stop` changes.
pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let poll = Duration::from_millis(inner.config.poll_interval_ms);
    let window = Duration::from_millis(inner.config.bundle_window_ms);
    loop {
        tokio::select! {
            _ = stop.changed() => return,
            () = inner.wake.notified() => {
                // A wallet that sends several transactions gets them into one envelope.
                sleep(window).await;
            }
            () = sleep(poll) => {}
        }
        round(&inner).await;
    }
}

/// One round: look up what is under way, then make and send what can be sent.
pub(super) async fn round(inner: &Arc<Inner>) {
    let under_way = inner.pool.lock().envelopes();
    for (id, sealed) in under_way {
        let followed = if sealed { follow_sealed(inner, id).await } else { follow_sent(inner, id).await };
        note(inner, followed, "an envelope was not followed");
    }
    let senders = inner.pool.lock().ready_senders();
    for sender in senders {
        let sent = send_next(inner, sender).await;
        note(inner, sent, "an envelope was not sent");
    }
    inner.metrics.held.set(inner.pool.lock().len() as u64);
}

fn note(inner: &Inner, result: Result<(), RoundError>, what: &'static str) {
    if let Err(error) = result {
        inner.metrics.failures.increment();
        tracing::warn!(%error, "{what}; trying again");
    }
}

/// Makes and sends the sender's next envelope, if there is one to make.
async fn send_next(inner: &Arc<Inner>, sender: Address) -> Result<(), RoundError> {
    let node_nonce = inner.node.nonce(&sender).await?;
    for hash in inner.pool.lock().outdated(&sender, node_nonce) {
        // Its nonce is used: it is in a block already, or another transaction took its place.
        finish_outdated(inner, hash, "nonce_too_low");
    }
    let bundle = inner.pool.lock().next_bundle(&sender, node_nonce, inner.chain.second_gas_limit());
    if bundle.is_empty() {
        return Ok(());
    }
    let status = inner.sequencer.get_status().await.map_err(|error| RoundError::Sequencer(error.into()))?;
    let committee = inner.committee(status.head.number + 1).await?;
    let offer = Offer {
        base_fee: status.base_fee,
        priority_fee: u128::from(inner.config.priority_fee_wei),
        head: status.head.number,
        expiry_batches: inner.config.expiry_batches,
    };
    let making = (inner.clone(), bundle.clone());
    let envelope = tokio::task::spawn_blocking(move || {
        let (inner, bundle) = making;
        EnvelopeMaker { chain: &inner.chain, committee: &committee, payer: &inner.payer }
            .of_transactions(&bundle, &offer)
    })
    .await
    .map_err(|error| RoundError::NodeRpc(ReceivedError::NoAnswer(error.to_string())))??;
    let row = EnvelopeRow { id: envelope.id(), sender, bytes: envelope.encode().into() };
    let hashes: Vec<B256> = bundle.iter().map(|transaction| transaction.hash).collect();
    // Durable first: after a crash the very same envelope is sent again, never a second one.
    inner.journal.carry(&row, &hashes)?;
    let nonces = bundle.iter().map(|transaction| transaction.nonce).collect();
    inner.pool.lock().carried(row.id, sender, row.bytes.clone(), nonces);
    submit(inner, row.id, &envelope).await
}

fn finish_outdated(inner: &Inner, hash: B256, outcome: &str) {
    if let Err(error) = inner.journal.give_up(&hash, outcome) {
        tracing::warn!(%error, %hash, "an outdated transaction stays in the journal; trying again");
        return;
    }
    inner.pool.lock().remove(&hash);
}

/// Sends an envelope. A refusal for good ends it; no answer leaves it to the next round.
async fn submit(inner: &Arc<Inner>, id: B256, envelope: &Envelope) -> Result<(), RoundError> {
    match inner.sequencer.send_envelope(Encoded::from_bytes(envelope.encode()), None).await {
        Ok(_) => {
            inner.metrics.envelopes.increment();
            Ok(())
        }
        Err(error) => {
            let error = ReceivedError::from(error);
            if let ReceivedError::Refused(refusal) = &error
                && !refusal.retry
            {
                let reason = refusal.reason.to_string();
                end(inner, id, |_| reason.clone())?;
            }
            Err(RoundError::Sequencer(error))
        }
    }
}

/// An envelope that was sent and had no place in a batch when last looked up: asks the sequencer.
async fn follow_sent(inner: &Arc<Inner>, id: B256) -> Result<(), RoundError> {
    let receipt =
        inner.sequencer.get_receipt(id).await.map_err(|error| RoundError::Sequencer(error.into()))?;
    match receipt.map(|receipt| receipt.state) {
        None => {
            // It never arrived, or the sequencer lost it: the same bytes again.
            let bytes = inner.pool.lock().envelope(&id).map(|envelope| envelope.bytes.clone());
            match bytes.map(|bytes| Envelope::decode(&bytes)) {
                Some(Ok(envelope)) => submit(inner, id, &envelope).await,
                _ => Ok(()),
            }
        }
        Some(EnvelopeState::Pending) => Ok(()),
        // No node ever sees an envelope that expired before it was sealed.
        Some(EnvelopeState::Expired) => Ok(end(inner, id, |_| "expired".to_owned())?),
        Some(_) => {
            inner.pool.lock().sealed(&id);
            inner.wake.notify_one();
            Ok(())
        }
    }
}

/// A sealed envelope: only the user's own node says how it ended.
async fn follow_sealed(inner: &Arc<Inner>, id: B256) -> Result<(), RoundError> {
    let receipt = inner.node_rpc.get_receipt(id).await.map_err(|error| RoundError::NodeRpc(error.into()))?;
    let Some(receipt) = receipt.filter(|receipt| is_final(receipt.state)) else { return Ok(()) };
    Ok(end(inner, id, |hash| outcome_of(&receipt, hash))?)
}

/// What a final receipt says of one transaction.
fn outcome_of(receipt: &Receipt, hash: &B256) -> String {
    let listed: Option<&TransactionOutcome> =
        receipt.transactions.iter().flatten().find(|outcome| outcome.hash.as_ref() == Some(hash));
    match listed {
        Some(outcome) if outcome.included => INCLUDED.to_owned(),
        Some(outcome) => outcome.reason.clone().unwrap_or_else(|| "skipped".to_owned()),
        None => match receipt.state {
            EnvelopeState::Malformed => "malformed".to_owned(),
            EnvelopeState::Void => "void".to_owned(),
            EnvelopeState::Expired => "expired".to_owned(),
            _ => receipt.reason.clone().unwrap_or_else(|| "skipped".to_owned()),
        },
    }
}

/// Ends an envelope in journal and pool: each transaction is finished or goes into another one.
fn end(inner: &Arc<Inner>, id: B256, outcome: impl Fn(&B256) -> String) -> Result<(), JournalError> {
    let carried = inner.pool.lock().carried_by(&id);
    let next: Vec<(B256, Next)> = carried
        .into_iter()
        .map(|(hash, attempts)| (hash, decide(outcome(&hash), attempts, inner.config.max_attempts)))
        .collect();
    let rows: Vec<(B256, Option<&str>)> = next
        .iter()
        .map(|(hash, next)| match next {
            Next::Finish(outcome) => (*hash, Some(outcome.as_str())),
            Next::Again => (*hash, None),
        })
        .collect();
    inner.journal.settle(&id, &rows)?;
    for (hash, next) in &next {
        match next {
            Next::Finish(outcome) if outcome == INCLUDED => inner.metrics.included.increment(),
            Next::Finish(outcome) => {
                inner.metrics.given_up.increment();
                tracing::warn!(%hash, outcome, "transaction given up");
            }
            Next::Again => inner.metrics.again.increment(),
        }
    }
    inner.pool.lock().settle(&id, &next);
    inner.wake.notify_one();
    Ok(())
}

/// Whether a transaction goes into another envelope.
fn decide(outcome: String, attempts: u32, max_attempts: u32) -> Next {
    let mendable = MENDABLE.contains(&outcome.as_str()) || outcome == "void";
    if mendable && attempts < max_attempts { Next::Again } else { Next::Finish(outcome) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(state: EnvelopeState, transactions: Option<Vec<TransactionOutcome>>) -> Receipt {
        Receipt {
            id: B256::ZERO,
            state,
            reason: None,
            number: None,
            index: None,
            header_hash: None,
            block_number: None,
            block_hash: None,
            transactions,
        }
    }

    #[test]
    fn a_receipt_tells_each_transaction_apart() {
        let (included, skipped, unlisted) =
            (B256::repeat_byte(1), B256::repeat_byte(2), B256::repeat_byte(3));
        let outcomes = vec![
            TransactionOutcome { hash: Some(included), included: true, reason: None },
            TransactionOutcome {
                hash: Some(skipped),
                included: false,
                reason: Some("nonce_too_high".into()),
            },
        ];
        let executed = receipt(EnvelopeState::Executed, Some(outcomes));
        assert_eq!(outcome_of(&executed, &included), INCLUDED);
        assert_eq!(outcome_of(&executed, &skipped), "nonce_too_high");
        assert_eq!(outcome_of(&executed, &unlisted), "skipped");
        assert_eq!(outcome_of(&receipt(EnvelopeState::Malformed, None), &included), "malformed");
        assert_eq!(outcome_of(&receipt(EnvelopeState::Void, None), &included), "void");
        let reasoned =
            Receipt { reason: Some("fee_nonce_used".into()), ..receipt(EnvelopeState::Skipped, None) };
        assert_eq!(outcome_of(&reasoned, &included), "fee_nonce_used");
    }

    #[test]
    fn only_what_another_envelope_may_mend_goes_again_and_not_for_ever() {
        assert_eq!(decide("nonce_too_high".into(), 1, 5), Next::Again);
        assert_eq!(decide("nonce_too_high".into(), 5, 5), Next::Finish("nonce_too_high".into()));
        assert_eq!(decide("void".into(), 1, 5), Next::Again);
        for finished in [INCLUDED, "nonce_too_low", "malformed", "duplicate"] {
            assert_eq!(decide(finished.into(), 1, 5), Next::Finish(finished.into()));
        }
    }
}
