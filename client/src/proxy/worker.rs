//! Puts held transactions into envelopes, sends them, and follows each until its transactions are in a block or given up.

use std::{sync::Arc, time::Duration};

use alloy_primitives::{Address, B256, Bytes};
use blindfold_protocol::{Canonical, Envelope, EnvelopeError};
use blindfold_rpc::{
    BlindApiClient, Encoded, ReceivedError, RpcError, SequencerApiClient, code,
    types::{EnvelopeState, OtherChain, Receipt, Status, TransactionOutcome},
};
use blindfold_runtime::{Cancelled, Instant, blocking, now, rng};
use rand::RngExt;
use tokio::{
    sync::watch,
    task::JoinError,
    time::{sleep, sleep_until},
};

use super::{
    Inner,
    config::{ProxyConfig, Resend},
    journal::{EnvelopeRow, JournalError, SettledRow},
    pool::{LeftOut, Next, UnderWay},
    steps::{Reached, Steps, Subject},
};
use crate::{
    committee_key::{CommitteeKey, CommitteeKeyError},
    envelopes::{EnvelopeMaker, InPlaceOf, Offer},
    node::NodeError,
    transaction::SignedTransaction,
    wallet::{FAULTS_OF_BYTES, is_final},
};

/// Outcome of a transaction that is in a block.
pub const INCLUDED: &str = "included";

/// Faults of an unopened envelope that another one may mend: it came too late, or its fee was not there yet.
const MENDABLE_UNOPENED: &[&str] = &[
    "expired",
    "expiry_too_far",
    "fee_nonce_used",
    "fee_too_low",
    "insufficient_funds",
    "wrong_epoch",
    "wrong_encryption_key",
    WRONG_GENERATION,
];

/// Those of them that another one with the same fee nonce and expiry mends.
const REPLACEABLE: &[&str] = &["fee_too_low", "insufficient_funds", "wrong_epoch", "wrong_encryption_key"];

/// The fault of an envelope that L1 has made a header since.
const WRONG_GENERATION: &str = EnvelopeError::WrongGeneration.as_str();

/// What keeps an opened envelope's transaction out of a block and may pass. It is public by then, so it goes into
/// another envelope only where [`Resend::Revealed`] says so.
const MENDABLE_REVEALED: &[&str] = &[
    "nonce_too_high",
    "insufficient_funds",
    "insufficient_funds_for_transfer",
    "fee_cap_below_base_fee",
    "block_gas_exhausted",
    "block_size_exhausted",
    "gas_above_remaining",
    "void",
    WRONG_GENERATION,
];

/// How an envelope ended for one of its transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// The transaction is in a block.
    Included,
    /// The envelope ended before anybody could open it.
    Unopened(String),
    /// The envelope was opened, or may have been: the transaction must count as public.
    Revealed(String),
}

impl Outcome {
    fn reason(self) -> String {
        match self {
            Self::Included => INCLUDED.to_owned(),
            Self::Unopened(reason) | Self::Revealed(reason) => reason,
        }
    }
}

/// The pause between two attempts is doubled at most this often.
const MAX_RETRY_DOUBLINGS: u32 = 8;

/// What stops one step of work; it is tried again after a pause.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// The user's node failed, or gave no answer.
    #[error("the node: {0}")]
    Node(#[from] NodeError),
    /// The proxy is to end.
    #[error(transparent)]
    Ends(#[from] Cancelled),
    /// The user's node, asked for a receipt.
    #[error("the node: {0}")]
    NodeRpc(ReceivedError),
    /// The sequencer failed, or gave no answer.
    #[error("the sequencer: {0}")]
    Sequencer(ReceivedError),
    /// The sequencer did not take an envelope.
    #[error("the envelope {envelope} is not sent: {cause}")]
    NotSent {
        /// Id of the envelope.
        envelope: B256,
        /// What the sequencer said.
        cause: ReceivedError,
    },
    /// The sequencer is busy, and is offered no more in this interval.
    #[error("the sequencer is busy: nothing more is sent to it for a moment")]
    Held {
        /// When the next interval begins.
        until: Instant,
    },
    /// One of them serves another chain.
    #[error("the {party} {other}")]
    OtherChain {
        /// The server that it is.
        party: &'static str,
        /// What differs from the settings.
        other: OtherChain,
    },
    /// The chain as the sequencer knows it is not the one that the user's node knows.
    #[error(
        "the sequencer names generation {sequencer} of the chain, the node {node}: nothing is sent meanwhile"
    )]
    OtherGeneration {
        /// Generation by the sequencer.
        sequencer: u16,
        /// Generation by the node.
        node: u16,
    },
    /// One of the two is too far behind the other for an envelope to be of use.
    #[error("the sequencer's head is {sequencer}, the node's {node}: nothing is sent meanwhile")]
    FarApart {
        /// Number by the sequencer.
        sequencer: u64,
        /// Number by the node.
        node: u64,
    },
    /// The committee's key cannot be had.
    #[error(transparent)]
    CommitteeKey(#[from] CommitteeKeyError),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The envelope cannot be made.
    #[error(transparent)]
    Build(#[from] blindfold_protocol::envelope_builder::BuildError),
    /// A step of ours panicked or was cut off: a fault of this program.
    #[error("a step did not end: {0}")]
    Step(#[from] JoinError),
}

impl RoundError {
    /// When the same may succeed, where a server said so.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotSent { cause, .. } | Self::Sequencer(cause) | Self::NodeRpc(cause) => {
                cause.retry_after()
            }
            _ => None,
        }
    }
}

/// Works until `stop` changes. A step may be cut off anywhere: the journal has all that the next process needs.
pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let poll = Duration::from_millis(inner.config.poll_interval_ms);
    let window = Duration::from_millis(inner.config.bundle_window_ms);
    let mut steps = Steps::new(inner.config.poll_interval_ms);
    let work = async {
        let mut next_round = now() + poll;
        loop {
            tokio::select! {
                // A wallet that sends several transactions gets them into one envelope.
                () = inner.wake.notified() => sleep(window).await,
                () = sleep_until(next_round) => {}
                Some(ended) = steps.join_next() => {
                    if let Err(error) = steps.ended(ended, now()) {
                        inner.metrics.failures.increment();
                        tracing::warn!(%error, "trying again later");
                    }
                    continue;
                }
            }
            next_round = now() + poll;
            round(&inner, &mut steps);
        }
    };
    tokio::select! {
        _ = stop.changed() => {}
        () = work => {}
    }
}

/// One round: begins what can be looked up, made and sent now. None of it waits for another.
fn round(inner: &Arc<Inner>, steps: &mut Steps) {
    let now = now();
    let under_way = inner.pool.lock().envelopes();
    if !under_way.is_empty() {
        let (node, reached) = (Arc::clone(inner), Arc::clone(&steps.reached));
        steps.begin(Subject::Node, now, async move {
            let status = node.node_rpc.get_status().await;
            let status = status.map_err(|error| RoundError::NodeRpc(error.into()))?;
            let Status { certified, head, .. } = status;
            *reached.lock() = Some(Reached { certified, generation: head.generation });
            Ok(())
        });
    }
    // Told before any receipt: an envelope that the node does not know after this is in no batch up to here.
    let reached = *steps.reached.lock();
    for id in &steps.in_turn(under_way.clone(), Subject::Envelope) {
        steps.begin(Subject::Envelope(*id), now, follow(Arc::clone(inner), *id, reached));
    }
    let senders = inner.pool.lock().ready_senders(now);
    for sender in &steps.in_turn(senders.clone(), Subject::Sender) {
        steps.begin(Subject::Sender(*sender), now, send_next(Arc::clone(inner), *sender));
    }
    steps.forget_all_but(&under_way, &senders);
    inner.metrics.held.set(inner.pool.lock().len() as u64);
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
    let (committee, offer) = offer(inner).await?;
    // Before it is made: one that waits to be sent loses time until it expires.
    may_send(inner)?;
    make(inner, sender, bundle, committee, offer, None).await
}

/// Whether the sequencer is offered one more envelope now.
fn may_send(inner: &Inner) -> Result<(), RoundError> {
    inner.rate.lock().offer(now()).map_err(|until| RoundError::Held { until })
}

/// Makes an envelope, in the place of those before it, or as the first one; notes it and sends it.
async fn make(
    inner: &Arc<Inner>,
    sender: Address,
    bundle: Vec<SignedTransaction>,
    committee: CommitteeKey,
    offer: Offer,
    replaced: Option<(InPlaceOf, Vec<B256>)>,
) -> Result<(), RoundError> {
    let nonces = bundle.iter().map(|transaction| transaction.nonce).collect();
    let hashes: Vec<B256> = bundle.iter().map(|transaction| transaction.hash).collect();
    let (in_place_of, earlier) = replaced.unzip();
    let making = Arc::clone(inner);
    let envelope = blocking(move || {
        EnvelopeMaker { chain: &making.chain, committee: &committee, payer: &making.payer }
            .of_transactions_in_place_of(&bundle, &offer, in_place_of)
    })
    .await??;
    let (id, bytes) = (envelope.id(), Bytes::from(envelope.encode()));
    let row = EnvelopeRow { id, sender, bytes: bytes.clone(), earlier: earlier.unwrap_or_default() };
    // Durable first: after a crash the very same envelope is sent again, never a second one.
    inner.journal.carry(&row, &hashes).await?;
    inner.pool.lock().carried(row, envelope.header.expiry, nonces);
    submit(inner, id, bytes, true).await
}

/// What the next envelope is offered for, and the committee that it is for, by the word of the user's node. The sequencer
/// would choose the committee, how long the envelope can wait, and its price; all it can do is to have nothing sent.
async fn offer(inner: &Inner) -> Result<(CommitteeKey, Offer), RoundError> {
    let sequencer = inner.sequencer.get_status().await;
    let sequencer = sequencer.map_err(|error| RoundError::Sequencer(error.into()))?;
    let node = inner.node_rpc.get_status().await.map_err(|error| RoundError::NodeRpc(error.into()))?;
    for (party, status) in [("sequencer", &sequencer), ("node", &node)] {
        status
            .check_chain(inner.chain.chain_id, &inner.chain.deployment)
            .map_err(|other| RoundError::OtherChain { party, other })?;
    }
    let (said, head) = (sequencer.head, node.head);
    if said.generation != head.generation {
        return Err(RoundError::OtherGeneration { sequencer: said.generation, node: head.generation });
    }
    let offer = Offer {
        base_fee: node.base_fee,
        gas_base_fee: node.gas_base_fee,
        priority_fee: u128::from(inner.config.priority_fee_wei),
        head: head.number,
        generation: head.generation,
        expiry_batches: inner.config.expiry_batches,
        promise: false,
    };
    if said.number.abs_diff(head.number) >= offer.window() {
        return Err(RoundError::FarApart { sequencer: said.number, node: head.number });
    }
    let committee = inner.committee(head.number.saturating_add(1)).await?;
    Ok((committee, offer))
}

/// Ends a transaction in no envelope whose nonce is used.
async fn finish_outdated(inner: &Inner, hash: B256) -> Result<(), RoundError> {
    let outcome = match inner.node.transaction_receipt(&hash).await? {
        Some(_) => INCLUDED,
        None => "nonce_too_low",
    };
    inner.journal.give_up(&hash, outcome).await?;
    inner.settled.send_replace(());
    inner.pool.lock().remove(&hash);
    count(inner, &hash, &Next::Finish(outcome.to_owned()));
    Ok(())
}

/// Sends an envelope, for the `first` time or once more. A refusal for good ends it; anything else leaves it to the next
/// round.
async fn submit(inner: &Arc<Inner>, id: B256, bytes: Bytes, first: bool) -> Result<(), RoundError> {
    match inner.sequencer.send_envelope(Encoded::from_bytes(bytes), None).await {
        Ok(_) => {
            inner.rate.lock().taken();
            inner.metrics.envelopes.increment();
            Ok(())
        }
        Err(error) => {
            let error = ReceivedError::from(error);
            if is_overload(&error) {
                inner.rate.lock().refused();
            }
            if let ReceivedError::Refused(refusal) = &error
                && is_for_good(refusal)
            {
                if matches!(&*refusal.reason, "wrong_epoch" | "wrong_encryption_key") {
                    // Ask L1 again before the next attempt.
                    inner.committee.forget().await;
                }
                let reason = refusal.reason.to_string();
                let sent_before = !first
                    || inner.pool.lock().envelope(&id).is_some_and(|envelope| !envelope.earlier.is_empty());
                let displaced = sent_before && reason == WRONG_GENERATION;
                if displaced || !MENDABLE_UNOPENED.contains(&reason.as_str()) {
                    // It may have been in a batch that L1 made a header in the place of, or be in one all the same.
                    end(inner, id, |_| Outcome::Revealed(reason.clone())).await?;
                } else {
                    leave_out(inner, id, reason);
                }
            }
            Err(RoundError::NotSent { envelope: id, cause: error })
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

/// Whether the sequencer could not take an envelope for its own reasons, so that the next one would fare no better.
fn is_overload(error: &ReceivedError) -> bool {
    match error {
        ReceivedError::Refused(refusal) => refusal.code == code::BUSY,
        ReceivedError::NoAnswer(_) => true,
    }
}

/// Looks up an envelope under way. `reached` is how far the user's node was before this.
async fn follow(inner: Arc<Inner>, id: B256, reached: Option<Reached>) -> Result<(), RoundError> {
    let Some(under_way) = inner.pool.lock().envelope(&id).cloned() else { return Ok(()) };
    let expiry = under_way.expiry;
    // When the user's own node has every batch that could hold it, nobody else's word is needed.
    let displaced = reached.is_some_and(|reached| expiry.is_before(reached.generation));
    let passed =
        |reached: Reached| reached.certified >= expiry.number() && reached.generation == expiry.generation();
    let decided = displaced || reached.is_some_and(passed);
    if under_way.sealed || decided || under_way.left_out.is_some() {
        let late = if displaced { LateEnd::Displaced } else { LateEnd::Expired };
        return follow_at_node(&inner, id, under_way, decided.then_some(late)).await;
    }
    follow_at_sequencer(&inner, id, under_way.bytes).await
}

/// An envelope that had no place in a batch when last looked up: the sequencer says where it is, not how it ends.
async fn follow_at_sequencer(inner: &Arc<Inner>, id: B256, bytes: Bytes) -> Result<(), RoundError> {
    let receipt =
        inner.sequencer.get_receipt(id).await.map_err(|error| RoundError::Sequencer(error.into()))?;
    match receipt.map(|receipt| receipt.state) {
        // It never arrived, or the sequencer lost it: the same bytes again.
        None => {
            may_send(inner)?;
            submit(inner, id, bytes, false).await
        }
        // An expired one is over when the user's node has all batches up to its expiry.
        Some(EnvelopeState::Pending | EnvelopeState::Expired) => Ok(()),
        // In a batch, it says: the user's node will tell.
        Some(_) => {
            inner.pool.lock().said_sealed(&id);
            inner.wake.notify_one();
            Ok(())
        }
    }
}

/// Why no batch that the user's node does not have can hold an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LateEnd {
    /// All batches up to its expiry are there.
    Expired,
    /// L1 has made a header since. Batches that gave way to it may have held the envelope, and have been opened.
    Displaced,
}

impl LateEnd {
    /// How an envelope ended that is in no batch.
    fn outcome(self) -> Outcome {
        match self {
            Self::Expired => Outcome::Unopened("expired".to_owned()),
            Self::Displaced => Outcome::Revealed(WRONG_GENERATION.to_owned()),
        }
    }

    /// How it ended by what a batch says: that this one left it unopened says nothing of those that gave way.
    fn correct(self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Unopened(_) if self == Self::Displaced => self.outcome(),
            outcome => outcome,
        }
    }
}

/// A sealed envelope, or one that was left out: only the user's own node says how it ended, it or one that it was made in
/// the place of, and whether it is decided that nothing else comes.
async fn follow_at_node(
    inner: &Arc<Inner>,
    id: B256,
    under_way: UnderWay,
    decided: Option<LateEnd>,
) -> Result<(), RoundError> {
    let mut unopened = None;
    for one in std::iter::once(&id).chain(under_way.earlier.iter().rev()) {
        let receipt = inner.node_rpc.get_receipt(*one).await;
        match receipt.map_err(|error| RoundError::NodeRpc(error.into()))? {
            Some(receipt) if is_final(receipt.state) => match outcome_of(&receipt, &B256::ZERO) {
                // Proof and signature do not change the id: it is a copy's, for the envelope's own are good.
                Outcome::Unopened(reason) if is_of_bytes(&reason) => {}
                Outcome::Unopened(reason) => unopened = unopened.or(Some(reason)),
                Outcome::Included | Outcome::Revealed(_) => {
                    return end(inner, id, |hash| outcome_of(&receipt, hash)).await;
                }
            },
            Some(receipt) if receipt.state != EnvelopeState::Pending => {
                inner.pool.lock().sealed(&id);
                inner.wake.notify_one();
                return Ok(());
            }
            Some(_) | None => {}
        }
    }
    let left_out = || under_way.left_out.as_ref().map(|left_out| left_out.reason.clone());
    match (decided, &under_way.left_out) {
        (Some(late), _) => {
            let outcome = unopened
                .or_else(left_out)
                .map_or_else(|| late.outcome(), |reason| late.correct(Outcome::Unopened(reason)));
            end(inner, id, |_| outcome.clone()).await
        }
        (None, Some(LeftOut { replace_from: Some(from), .. })) if *from <= now() => {
            replace(inner, id, under_way).await
        }
        (None, Some(_)) => Ok(()),
        (None, None) => match unopened {
            Some(reason) => {
                leave_out(inner, id, reason);
                Ok(())
            }
            None => Ok(()),
        },
    }
}

/// Whether an item was left out for what its bytes are.
fn is_of_bytes(reason: &str) -> bool {
    EnvelopeError::from_name(reason).is_some_and(|fault| FAULTS_OF_BYTES.contains(&fault))
}

/// An envelope that the sequencer refuses for good, or that a batch left unopened. Both may change: whoever has its bytes can
/// put them into a batch until they expire. So before that, what it carries goes only into an envelope that no batch
/// can hold beside it.
fn leave_out(inner: &Inner, id: B256, reason: String) {
    let carried = inner.pool.lock().carried_by(&id);
    let attempts = carried.iter().map(|(_, attempts)| *attempts).max().unwrap_or_default();
    let replaced = REPLACEABLE.contains(&reason.as_str()) && attempts < inner.config.max_attempts;
    let pause = Duration::from_millis(retry_pause_ms(inner.config.poll_interval_ms, attempts));
    let replace_from = replaced.then(|| now() + pause);
    inner.pool.lock().left_out(&id, LeftOut { reason, replace_from });
}

/// Makes another envelope in the place of one that was left out, of the same transactions, with its fee nonce and its
/// expiry: no batch can hold both. One that would not be valid any more is not made.
async fn replace(inner: &Arc<Inner>, id: B256, under_way: UnderWay) -> Result<(), RoundError> {
    let bundle = inner.pool.lock().transactions_of(&id);
    let Ok(envelope) = Envelope::decode(&under_way.bytes) else { return Ok(()) };
    let (committee, offer) = offer(inner).await?;
    let expiry = under_way.expiry.number();
    let epoch = &committee.epoch;
    let valid = offer.generation == under_way.expiry.generation()
        && offer.head < expiry
        && (epoch.first..=epoch.last).contains(&expiry);
    if bundle.is_empty() || !valid {
        return Ok(());
    }
    may_send(inner)?;
    let common = InPlaceOf { fee_nonce: envelope.header.fee_nonce, expiry };
    let mut earlier = under_way.earlier;
    earlier.push(id);
    inner.metrics.again.add(bundle.len() as u64);
    make(inner, under_way.sender, bundle, committee, offer, Some((common, earlier))).await
}

/// What a final receipt says of one transaction.
fn outcome_of(receipt: &Receipt, hash: &B256) -> Outcome {
    let listed: Option<&TransactionOutcome> =
        receipt.transactions.iter().flatten().find(|outcome| outcome.hash.as_ref() == Some(hash));
    let reason = |given: &Option<String>| given.clone().unwrap_or_else(|| "skipped".to_owned());
    match (listed, receipt.state) {
        (Some(outcome), _) if outcome.included => Outcome::Included,
        (Some(outcome), _) => Outcome::Revealed(reason(&outcome.reason)),
        (None, EnvelopeState::Expired | EnvelopeState::Skipped)
            if receipt.reason.as_deref() == Some(WRONG_GENERATION) =>
        {
            LateEnd::Displaced.outcome()
        }
        (None, EnvelopeState::Expired) => Outcome::Unopened("expired".to_owned()),
        (None, EnvelopeState::Malformed) => Outcome::Revealed("malformed".to_owned()),
        // The committee may have released the batch before L1 declared it void.
        (None, EnvelopeState::Void) => Outcome::Revealed("void".to_owned()),
        // What the validity rule leaves out has no place among the ciphertexts that are released.
        (None, EnvelopeState::Skipped)
            if receipt.reason.as_deref().is_some_and(|fault| EnvelopeError::from_name(fault).is_some()) =>
        {
            Outcome::Unopened(reason(&receipt.reason))
        }
        (None, _) => Outcome::Revealed(reason(&receipt.reason)),
    }
}

/// Ends an envelope in journal and pool: each transaction is finished or goes into another one.
async fn end(inner: &Arc<Inner>, id: B256, outcome: impl Fn(&B256) -> Outcome) -> Result<(), RoundError> {
    let carried = inner.pool.lock().carried_by(&id);
    let mut settled = Vec::with_capacity(carried.len());
    let mut pause_ms = 0;
    for (hash, attempts) in carried {
        let outcome = outcome(&hash);
        let mut revealed = !matches!(outcome, Outcome::Unopened(_));
        let mut next = decide(outcome, attempts, &inner.config);
        match &next {
            Next::Finish(outcome) if outcome == INCLUDED => {}
            // An earlier envelope, or the user by another way, may have brought it into a block.
            Next::Finish(_) => {
                if inner.node.transaction_receipt(&hash).await?.is_some() {
                    next = Next::Finish(INCLUDED.to_owned());
                    revealed = true;
                }
            }
            Next::Again => pause_ms = pause_ms.max(retry_pause_ms(inner.config.poll_interval_ms, attempts)),
        }
        settled.push((hash, next, revealed));
    }
    let rows: Vec<SettledRow<'_>> = settled
        .iter()
        .map(|(hash, next, revealed)| SettledRow {
            hash: *hash,
            outcome: match next {
                Next::Finish(outcome) => Some(outcome.as_str()),
                Next::Again => None,
            },
            revealed: *revealed,
        })
        .collect();
    inner.journal.settle(&id, &rows).await?;
    inner.settled.send_replace(());
    let next: Vec<_> = settled.into_iter().map(|(hash, next, _)| (hash, next)).collect();
    for (hash, next) in &next {
        count(inner, hash, next);
    }
    inner.pool.lock().settle(&id, &next, now() + Duration::from_millis(pause_ms));
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

/// How long a transaction waits for its next envelope: what stood in its way has time to pass, and as its attempts are
/// counted, none is given away by a pause of nothing. Doubles each time; up to as much again is drawn, so that what ended
/// together does not come again together.
fn retry_pause_ms(poll_interval_ms: u64, attempts: u32) -> u64 {
    let least_ms = poll_interval_ms.saturating_mul(1 << attempts.min(MAX_RETRY_DOUBLINGS));
    least_ms.saturating_add(rng().random_range(0..=least_ms))
}

/// Whether a transaction goes into another envelope. Sending one again that is public would invite others to run in
/// front of it, so that takes the user's word: the setting, or the wallet that sends it once more.
fn decide(outcome: Outcome, attempts: u32, config: &ProxyConfig) -> Next {
    let mendable = match &outcome {
        Outcome::Included => false,
        Outcome::Unopened(reason) => MENDABLE_UNOPENED.contains(&reason.as_str()),
        Outcome::Revealed(reason) => {
            config.resend == Resend::Revealed && MENDABLE_REVEALED.contains(&reason.as_str())
        }
    };
    if mendable && attempts < config.max_attempts { Next::Again } else { Next::Finish(outcome.reason()) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use blindfold_engine::SkipReason;
    use blindfold_protocol::StaticSkip;

    use super::*;

    fn receipt(state: EnvelopeState, transactions: Option<Vec<TransactionOutcome>>) -> Receipt {
        Receipt { transactions, ..Receipt::new(B256::ZERO, state) }
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
        let revealed = |reason: &str| Outcome::Revealed(reason.to_owned());
        assert_eq!(outcome_of(&executed, &included), Outcome::Included);
        assert_eq!(outcome_of(&executed, &skipped), revealed("nonce_too_high"));
        assert_eq!(outcome_of(&executed, &unlisted), revealed("skipped"));
        assert_eq!(outcome_of(&receipt(EnvelopeState::Malformed, None), &included), revealed("malformed"));
        assert_eq!(outcome_of(&receipt(EnvelopeState::Void, None), &included), revealed("void"));
        let reasoned =
            |reason: &str| Receipt { reason: Some(reason.into()), ..receipt(EnvelopeState::Skipped, None) };
        for fault in ["fee_nonce_used", "insufficient_funds", "fee_too_low"] {
            assert_eq!(outcome_of(&reasoned(fault), &included), Outcome::Unopened(fault.to_owned()));
        }
        assert_eq!(outcome_of(&reasoned("bad_bundle"), &included), revealed("bad_bundle"));
    }

    #[test]
    fn only_what_nobody_has_read_goes_again_and_not_for_ever() {
        let config = ProxyConfig { max_attempts: 5, ..ProxyConfig::default() };
        for reason in MENDABLE_UNOPENED {
            let unopened = Outcome::Unopened((*reason).to_owned());
            assert_eq!(decide(unopened.clone(), 1, &config), Next::Again);
            assert_eq!(decide(unopened, 5, &config), Next::Finish((*reason).to_owned()));
        }
        let willing = ProxyConfig { resend: Resend::Revealed, ..config.clone() };
        for reason in MENDABLE_REVEALED {
            let revealed = Outcome::Revealed((*reason).to_owned());
            assert_eq!(decide(revealed.clone(), 1, &config), Next::Finish((*reason).to_owned()));
            assert_eq!(decide(revealed.clone(), 1, &willing), Next::Again);
            assert_eq!(decide(revealed, 5, &willing), Next::Finish((*reason).to_owned()));
        }
        for config in [&config, &willing] {
            assert_eq!(decide(Outcome::Included, 1, config), Next::Finish(INCLUDED.to_owned()));
            for reason in ["nonce_too_low", "malformed", "bad_bundle"] {
                let finished = decide(Outcome::Revealed(reason.to_owned()), 1, config);
                assert_eq!(finished, Next::Finish(reason.to_owned()));
            }
            let duplicate = decide(Outcome::Unopened("duplicate".to_owned()), 1, config);
            assert_eq!(duplicate, Next::Finish("duplicate".to_owned()));
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
        for reason in MENDABLE_UNOPENED {
            assert!(EnvelopeError::from_name(reason).is_some(), "{reason}");
        }
        for reason in MENDABLE_REVEALED {
            let known = StaticSkip::ALL.iter().any(|skip| skip.as_str() == *reason)
                || SkipReason::ALL.iter().any(|skip| skip.as_str() == *reason)
                || matches!(*reason, "void" | WRONG_GENERATION);
            assert!(known, "{reason}");
        }
    }

    #[test]
    fn pauses_double_with_jitter_and_are_bounded() {
        for (attempts, least_ms) in [(1, 500), (2, 1_000), (3, 2_000), (u32::MAX, 64_000)] {
            let pauses: HashSet<u64> = (0..64).map(|_| retry_pause_ms(250, attempts)).collect();
            assert!(pauses.iter().all(|pause_ms| (least_ms..=2 * least_ms).contains(pause_ms)), "{pauses:?}");
            assert!(pauses.len() > 32, "jitter");
        }
        assert_eq!(retry_pause_ms(u64::MAX, 1), u64::MAX);
    }
}
