//! Puts held transactions into envelopes, sends them, and follows each until its transactions are in a block or given up.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use alloy_primitives::{Address, B256, Bytes};
use blindfold_protocol::Canonical;
use blindfold_rpc::{
    BlindApiClient, Encoded, ReceivedError, RpcError, SequencerApiClient, code,
    types::{EnvelopeState, Receipt, TransactionOutcome},
};
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
    time::sleep,
};

use super::{
    Inner,
    journal::{EnvelopeRow, JournalError},
    pool::{Next, UnderWay},
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
    "insufficient_funds_for_transfer",
    "fee_cap_below_base_fee",
    "block_gas_exhausted",
    "block_size_exhausted",
    "gas_above_remaining",
    "expired",
    "expiry_too_far",
    "fee_nonce_used",
    "fee_too_low",
    "wrong_epoch",
    "wrong_encryption_key",
];

/// Envelopes and senders worked on at once.
const MAX_CONCURRENT_STEPS: usize = 16;

/// The pause between two attempts is doubled at most this often.
const MAX_RETRY_DOUBLINGS: u32 = 8;

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
    /// A step of ours panicked or was cut off: a fault of this program.
    #[error("a step did not end: {0}")]
    Step(#[from] JoinError),
}

/// Works until `stop` changes. A round may be cut off anywhere: the journal has all that the next process needs.
pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let poll = Duration::from_millis(inner.config.poll_interval_ms);
    let window = Duration::from_millis(inner.config.bundle_window_ms);
    let work = async {
        loop {
            tokio::select! {
                // A wallet that sends several transactions gets them into one envelope.
                () = inner.wake.notified() => sleep(window).await,
                () = sleep(poll) => {}
            }
            round(&inner).await;
        }
    };
    tokio::select! {
        _ = stop.changed() => {}
        () = work => {}
    }
}

/// One round: look up what is under way, then make and send what can be sent.
async fn round(inner: &Arc<Inner>) {
    let under_way = inner.pool.lock().envelopes();
    let mut certified = None;
    if !under_way.is_empty() {
        // Asked before any receipt: an envelope that the node does not know after this is in no batch up to here.
        match inner.node_rpc.get_status().await {
            Ok(status) => certified = Some(status.certified),
            Err(error) => {
                note(inner, Err(RoundError::NodeRpc(error.into())), "the node's status is not known")
            }
        }
    }
    let follow = move |inner, id| follow(inner, id, certified);
    each(inner, under_way, "an envelope was not followed", follow).await;
    let senders = inner.pool.lock().ready_senders(Instant::now());
    each(inner, senders, "an envelope was not sent", send_next).await;
    inner.metrics.held.set(inner.pool.lock().len() as u64);
}

/// Works on several things at once, so that one slow answer does not hold up everybody.
async fn each<T, F>(inner: &Arc<Inner>, items: Vec<T>, what: &'static str, work: impl Fn(Arc<Inner>, T) -> F)
where
    F: Future<Output = Result<(), RoundError>> + Send + 'static,
{
    let mut running = JoinSet::new();
    for item in items {
        if running.len() >= MAX_CONCURRENT_STEPS
            && let Some(done) = running.join_next().await
        {
            note(inner, done.unwrap_or_else(|error| Err(error.into())), what);
        }
        running.spawn(work(Arc::clone(inner), item));
    }
    while let Some(done) = running.join_next().await {
        note(inner, done.unwrap_or_else(|error| Err(error.into())), what);
    }
}

fn note(inner: &Inner, result: Result<(), RoundError>, what: &'static str) {
    if let Err(error) = result {
        inner.metrics.failures.increment();
        tracing::warn!(%error, "{what}; trying again");
    }
}

/// Makes and sends the sender's next envelope, if there is one to make.
async fn send_next(inner: Arc<Inner>, sender: Address) -> Result<(), RoundError> {
    let inner = &inner;
    let node_nonce = inner.node.nonce(&sender).await?;
    let outdated = inner.pool.lock().outdated(&sender, node_nonce);
    for hash in outdated {
        // Its nonce is used: it is in a block already, or another transaction took its place.
        finish_outdated(inner, hash).await?;
    }
    let bundle = {
        let mut pool = inner.pool.lock();
        let bundle = pool.next_bundle(&sender, node_nonce, inner.chain.second_gas_limit());
        if bundle.is_empty() {
            pool.nothing_to_send(&sender);
            return Ok(());
        }
        bundle
    };
    let status = inner.sequencer.get_status().await.map_err(|error| RoundError::Sequencer(error.into()))?;
    // Saturating: the number is the sequencer's word.
    let committee = inner.committee(status.head.number.saturating_add(1)).await?;
    let offer = Offer {
        base_fee: status.base_fee,
        priority_fee: u128::from(inner.config.priority_fee_wei),
        head: status.head.number,
        expiry_batches: inner.config.expiry_batches,
    };
    let nonces = bundle.iter().map(|transaction| transaction.nonce).collect();
    let hashes: Vec<B256> = bundle.iter().map(|transaction| transaction.hash).collect();
    let making = Arc::clone(inner);
    let envelope = tokio::task::spawn_blocking(move || {
        EnvelopeMaker { chain: &making.chain, committee: &committee, payer: &making.payer }
            .of_transactions(&bundle, &offer)
    })
    .await??;
    let row = EnvelopeRow { id: envelope.id(), sender, bytes: envelope.encode().into() };
    // Durable first: after a crash the very same envelope is sent again, never a second one.
    inner.journal.carry(&row, &hashes)?;
    inner.pool.lock().carried(row.id, sender, row.bytes.clone(), envelope.header.expiry, nonces);
    submit(inner, row.id, row.bytes).await
}

/// Ends a transaction in no envelope whose nonce is used.
async fn finish_outdated(inner: &Inner, hash: B256) -> Result<(), RoundError> {
    let outcome = match inner.node.transaction_receipt(&hash).await? {
        Some(_) => INCLUDED,
        None => "nonce_too_low",
    };
    inner.journal.give_up(&hash, outcome)?;
    inner.pool.lock().remove(&hash);
    count(inner, &hash, &Next::Finish(outcome.to_owned()));
    Ok(())
}

/// Sends an envelope. A refusal for good ends it; anything else leaves it to the next round.
async fn submit(inner: &Arc<Inner>, id: B256, bytes: Bytes) -> Result<(), RoundError> {
    match inner.sequencer.send_envelope(Encoded::from_bytes(bytes), None).await {
        Ok(_) => {
            inner.metrics.envelopes.increment();
            Ok(())
        }
        Err(error) => {
            let error = ReceivedError::from(error);
            if let ReceivedError::Refused(refusal) = &error
                && is_for_good(refusal)
            {
                if matches!(&*refusal.reason, "wrong_epoch" | "wrong_encryption_key") {
                    // Ask L1 again before the next attempt.
                    *inner.committee.lock().await = None;
                }
                let reason = refusal.reason.to_string();
                end(inner, id, |_| reason.clone()).await?;
            }
            Err(RoundError::Sequencer(error))
        }
    }
}

/// Whether a refusal says that this envelope will never be sealed. Errors of anything between us and the sequencer
/// (an unknown method, a gateway) say nothing about the envelope, and `already_known` means that it was taken before.
fn is_for_good(refusal: &RpcError) -> bool {
    let about_the_envelope = refusal.code == code::REFUSED
        || (refusal.code == code::INVALID_PARAMS && matches!(&*refusal.reason, "too_large" | "undecodable"));
    about_the_envelope && !refusal.retry && refusal.reason != "already_known"
}

/// Looks up an envelope under way. `certified` is how far the user's node knew the batches before this.
async fn follow(inner: Arc<Inner>, id: B256, certified: Option<u64>) -> Result<(), RoundError> {
    let Some(UnderWay { bytes, expiry, sealed, .. }) = inner.pool.lock().envelope(&id).cloned() else {
        return Ok(());
    };
    // When the user's own node has every batch that could hold it, nobody else's word is needed.
    let decided = certified.is_some_and(|certified| certified >= expiry);
    if sealed || decided {
        return follow_at_node(&inner, id, decided).await;
    }
    follow_at_sequencer(&inner, id, bytes).await
}

/// An envelope that had no place in a batch when last looked up: the sequencer says where it is, not how it ends.
async fn follow_at_sequencer(inner: &Arc<Inner>, id: B256, bytes: Bytes) -> Result<(), RoundError> {
    let receipt =
        inner.sequencer.get_receipt(id).await.map_err(|error| RoundError::Sequencer(error.into()))?;
    match receipt.map(|receipt| receipt.state) {
        // It never arrived, or the sequencer lost it: the same bytes again.
        None => submit(inner, id, bytes).await,
        // An expired one is over when the user's node has all batches up to its expiry.
        Some(EnvelopeState::Pending | EnvelopeState::Expired) => Ok(()),
        Some(_) => {
            inner.pool.lock().sealed(&id);
            inner.wake.notify_one();
            Ok(())
        }
    }
}

/// A sealed envelope: only the user's own node says how it ended. With `decided`, one that the node has in no batch
/// has expired.
async fn follow_at_node(inner: &Arc<Inner>, id: B256, decided: bool) -> Result<(), RoundError> {
    let receipt = inner.node_rpc.get_receipt(id).await.map_err(|error| RoundError::NodeRpc(error.into()))?;
    match receipt {
        Some(receipt) if is_final(receipt.state) => end(inner, id, |hash| outcome_of(&receipt, hash)).await,
        None | Some(Receipt { state: EnvelopeState::Pending, .. }) if decided => {
            end(inner, id, |_| "expired".to_owned()).await
        }
        Some(_) => {
            inner.pool.lock().sealed(&id);
            Ok(())
        }
        None => Ok(()),
    }
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
async fn end(inner: &Arc<Inner>, id: B256, outcome: impl Fn(&B256) -> String) -> Result<(), RoundError> {
    let carried = inner.pool.lock().carried_by(&id);
    let mut next = Vec::with_capacity(carried.len());
    let mut pause_ms = 0;
    for (hash, attempts) in carried {
        let mut decided = decide(outcome(&hash), attempts, inner.config.max_attempts);
        match &decided {
            Next::Finish(outcome) if outcome == INCLUDED => {}
            // An earlier envelope, or the user by another way, may have brought it into a block.
            Next::Finish(_) => {
                if inner.node.transaction_receipt(&hash).await?.is_some() {
                    decided = Next::Finish(INCLUDED.to_owned());
                }
            }
            Next::Again => pause_ms = pause_ms.max(retry_pause_ms(inner.config.poll_interval_ms, attempts)),
        }
        next.push((hash, decided));
    }
    let rows: Vec<(B256, Option<&str>)> = next
        .iter()
        .map(|(hash, next)| match next {
            Next::Finish(outcome) => (*hash, Some(outcome.as_str())),
            Next::Again => (*hash, None),
        })
        .collect();
    inner.journal.settle(&id, &rows)?;
    for (hash, next) in &next {
        count(inner, hash, next);
    }
    inner.pool.lock().settle(&id, &next, Instant::now() + Duration::from_millis(pause_ms));
    inner.wake.notify_one();
    Ok(())
}

fn count(inner: &Inner, hash: &B256, next: &Next) {
    match next {
        Next::Finish(outcome) if outcome == INCLUDED => inner.metrics.included.increment(),
        Next::Finish(outcome) => {
            inner.metrics.given_up.increment();
            tracing::warn!(%hash, outcome, "transaction given up");
        }
        Next::Again => inner.metrics.again.increment(),
    }
}

/// How long a transaction waits for its next envelope: what stood in its way has time to pass. Doubles each time.
fn retry_pause_ms(poll_interval_ms: u64, attempts: u32) -> u64 {
    poll_interval_ms.saturating_mul(1 << attempts.min(MAX_RETRY_DOUBLINGS))
}

/// Whether a transaction goes into another envelope.
fn decide(outcome: String, attempts: u32, max_attempts: u32) -> Next {
    let mendable = MENDABLE.contains(&outcome.as_str()) || outcome == "void";
    if mendable && attempts < max_attempts { Next::Again } else { Next::Finish(outcome) }
}

#[cfg(test)]
mod tests {
    use blindfold_engine::SkipReason;
    use blindfold_protocol::{EnvelopeFault, StaticSkip};

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

    #[test]
    fn only_the_sequencers_word_about_the_envelope_is_for_good() {
        assert!(is_for_good(&RpcError::refused("invalid_proof", "m")));
        assert!(is_for_good(&RpcError::invalid_params("too_large", "m")));
        for transient in [
            RpcError::conflict("already_known", "m"),
            RpcError::refused("already_known", "m"),
            RpcError::unknown_method("blind_sendEnvelope"),
            RpcError::invalid_params("invalid_params", "m"),
            RpcError::busy("pool_full", "m"),
            RpcError::unavailable("no_epoch", "m"),
            RpcError::new(-32000, "unspecified", false, "bad gateway"),
            RpcError::new(code::REFUSED, "fee_too_low", true, "m"),
        ] {
            assert!(!is_for_good(&transient), "{transient}");
        }
    }

    #[test]
    fn every_mendable_reason_is_one_that_somebody_gives() {
        for reason in MENDABLE {
            let known = EnvelopeFault::from_name(reason).is_some()
                || StaticSkip::ALL.iter().any(|skip| skip.as_str() == *reason)
                || SkipReason::ALL.iter().any(|skip| skip.as_str() == *reason);
            assert!(known, "{reason}");
        }
    }

    #[test]
    fn pauses_double_and_are_bounded() {
        assert_eq!([1, 2, 3].map(|attempts| retry_pause_ms(250, attempts)), [500, 1_000, 2_000]);
        assert_eq!(retry_pause_ms(250, u32::MAX), 64_000);
        assert_eq!(retry_pause_ms(u64::MAX, 1), u64::MAX);
    }
}
