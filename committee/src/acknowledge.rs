//! Acknowledging: the word on disk first, then the signature, then the sequencer until the number is certified.

use std::{collections::BTreeMap, sync::Arc};

use blindfold_chain::{NextStep, TrackerError};
use blindfold_protocol::{Acknowledgement, B256, BatchHeader, certificate};
use blindfold_rpc::{Encoded, HttpClient, ReceivedError, SequencerApiClient, types};
use blindfold_runtime::{Backoff, Instant, now, until};
use blindfold_store::StoreError;
use blindfold_telemetry::traces;
use futures::{StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};

use crate::{member::Context, voting::Abstains};

/// Longest pause before an acknowledgement that failed is tried again, in milliseconds.
const MAX_RESEND_MS: u64 = 30_000;
/// Refusals that wait to be told to the sequencer; beyond it they are only counted.
const REFUSAL_QUEUE: usize = 64;

/// Why a valid header is not acknowledged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAcknowledged {
    #[error(transparent)]
    Abstains(#[from] Abstains),
    #[error("this member acknowledged another header for number {number}")]
    AlreadyAcknowledged { number: u64 },
    #[error("this member's key is not in the committee of number {number}")]
    NotAMember { number: u64 },
    #[error(transparent)]
    Chain(#[from] TrackerError),
    #[error(transparent)]
    Store(StoreError),
}

impl NotAcknowledged {
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Abstains(_) => "abstains",
            Self::AlreadyAcknowledged { .. } => "already_acknowledged",
            Self::NotAMember { .. } => "not_a_member",
            Self::Chain(refusal) => refusal.as_str(),
            Self::Store(_) => "storage",
        }
    }

    /// Whether the same header may be acknowledged later: the disk or L1 failed us.
    pub(crate) fn retry(&self) -> bool {
        match self {
            // Looked at again when that changes.
            Self::Abstains(_) | Self::AlreadyAcknowledged { .. } | Self::NotAMember { .. } => false,
            Self::Chain(refusal) => refusal.next_step() == NextStep::Retry,
            Self::Store(error) => error.retry(),
        }
    }
}

/// An acknowledgement on its way to the sequencer.
struct Pending {
    acknowledgement: Acknowledgement,
    next_send: Instant,
    pauses: Backoff,
    /// A call is under way; it alone says when the next one is due.
    sending: bool,
}

/// A header that could not be acknowledged, for a reason that passes.
struct Owed {
    header_hash: B256,
    again_at: Instant,
    pauses: Backoff,
}

/// Signs acknowledgements of headers that are on disk, and sends them.
pub(crate) struct Acknowledger {
    context: Arc<Context>,
    sequencer: HttpClient,
    /// Signed and not certified yet; at most as many as headers may wait for a certificate.
    pending: Mutex<BTreeMap<u64, Pending>>,
    /// Checked and not signed yet; at most as many.
    owed: Mutex<BTreeMap<u64, Owed>>,
    wake: Notify,
    refusals: mpsc::Sender<types::Refusal>,
}

impl Acknowledger {
    pub(crate) fn new(
        context: Arc<Context>,
        sequencer: HttpClient,
    ) -> (Arc<Self>, mpsc::Receiver<types::Refusal>) {
        let (refusals, queue) = mpsc::channel(REFUSAL_QUEUE);
        let (pending, owed) = (Mutex::default(), Mutex::default());
        (Arc::new(Self { context, sequencer, pending, owed, wake: Notify::new(), refusals }), queue)
    }

    /// Acknowledges a header that the tracker has applied. Number and hash are durable before the signature exists; for
    /// the pair that is on disk already, the same signature is made again.
    pub(crate) async fn acknowledge(&self, header: &BatchHeader) -> Result<(), NotAcknowledged> {
        let started = now();
        let (number, header_hash) = (header.number, header.hash());
        let context = &self.context;
        let epoch = context.tracker.epoch(number).await?;
        if !context.is_member_of(&epoch) {
            return Err(NotAcknowledged::NotAMember { number });
        }
        let store = context.tracker.store();
        // What is on disk was signed, and sent maybe: once more says nothing new, and others may need it to go on.
        if !store.was_acknowledged(number, header_hash).await.map_err(NotAcknowledged::Store)? {
            context.voting.allows(epoch.epoch, context.tracker.certified().number)?;
        }
        context.tracker.may_be_voted_for(header).await?;
        match store.put_acknowledged(number, header_hash, header.l1_origin_number).await {
            Ok(()) => {}
            Err(StoreError::Conflict { .. }) => return Err(NotAcknowledged::AlreadyAcknowledged { number }),
            Err(error) => return Err(NotAcknowledged::Store(error)),
        }
        let acknowledgement = certificate::sign_acknowledgement(
            &context.key.bls_key,
            &context.tracker.config().deployment,
            epoch.epoch,
            number,
            header_hash,
            context.member(),
        );
        context.metrics.acknowledgements.increment();
        let acknowledged = context.metrics.acknowledged.get();
        if i64::try_from(number).is_ok_and(|number| number > acknowledged) {
            context.metrics.acknowledged.set(number);
        }
        let (next_send, pauses) = (now(), self.pauses());
        let pending = Pending { acknowledgement, next_send, pauses, sending: false };
        self.pending.lock().insert(number, pending);
        traces::batch(number, "acknowledge", started);
        self.wake.notify_one();
        Ok(())
    }

    fn pauses(&self) -> Backoff {
        Backoff::new(self.context.config.limits.acknowledgement_resend_ms, MAX_RESEND_MS)
    }

    /// [`acknowledge`](Self::acknowledge) failed for a reason that passes: it is tried again later.
    pub(crate) fn owe(&self, number: u64, header_hash: B256) {
        let mut owed = self.owed.lock();
        let entry = owed.entry(number).or_insert_with(|| Owed {
            header_hash,
            again_at: now(),
            pauses: self.pauses(),
        });
        (entry.header_hash, entry.again_at) = (header_hash, now() + entry.pauses.pause());
    }

    /// What is to be acknowledged now that failed before, and when to look again.
    pub(crate) fn owed(&self, certified: u64) -> (Vec<(u64, B256)>, Option<Instant>) {
        let now = now();
        let mut owed = self.owed.lock();
        owed.retain(|number, _| *number > certified);
        let due = owed.iter().filter(|(_, entry)| entry.again_at <= now);
        let due = due.map(|(number, entry)| (*number, entry.header_hash)).collect();
        (due, owed.values().map(|entry| entry.again_at).filter(|at| *at > now).min())
    }

    /// Is acknowledged, or never will be.
    pub(crate) fn settle(&self, number: u64) {
        self.owed.lock().remove(&number);
    }

    /// Forgets acknowledgements of headers that gave way to a certified one.
    pub(crate) fn forget_from(&self, number: u64) {
        self.pending.lock().split_off(&number);
        self.owed.lock().split_off(&number);
    }

    /// Sends all that has no certificate yet at once: what a sequencer was told, it forgets when it ends.
    pub(crate) fn send_again(&self) {
        for entry in self.pending.lock().values_mut() {
            entry.pauses.reset();
            entry.next_send = now();
        }
        self.wake.notify_one();
    }

    /// Tells the sequencer once why a header is refused. Best effort: the refusal itself is in our status.
    pub(crate) fn report(&self, number: u64, header_hash: B256, reason: &str) {
        let refusal =
            types::Refusal { number, header_hash, member: self.context.member(), reason: reason.to_owned() };
        if self.refusals.try_send(refusal).is_err() {
            tracing::debug!(number, reason, "refusal not reported: the queue is full");
        }
    }

    /// Sends what is pending until its number is certified, each by itself: one call that hangs delays no other.
    pub(crate) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut certified = self.context.tracker.watch_certified();
        let mut sends = FuturesUnordered::new();
        loop {
            let head = certified.borrow_and_update().number;
            sends.extend(self.take_due(head).into_iter().map(|acknowledgement| self.send(acknowledgement)));
            let next = {
                let pending = self.pending.lock();
                let waiting = pending.values().filter(|entry| !entry.sending);
                waiting.map(|entry| entry.next_send).min()
            };
            tokio::select! {
                () = until(&mut stop) => return,
                () = self.wake.notified() => {}
                changed = certified.changed() => if changed.is_err() { return },
                Some(()) = sends.next() => {}
                () = sleep_until(next) => {}
            }
        }
    }

    /// What has to be sent now and is not on its way.
    fn take_due(&self, certified: u64) -> Vec<Acknowledgement> {
        let now = now();
        let mut pending = self.pending.lock();
        pending.retain(|number, _| *number > certified);
        let mut due = Vec::new();
        for entry in pending.values_mut().filter(|entry| !entry.sending && entry.next_send <= now) {
            entry.sending = true;
            due.push(entry.acknowledgement);
        }
        due
    }

    async fn send(&self, acknowledgement: Acknowledgement) {
        let number = acknowledgement.number;
        let result = self.sequencer.submit_acknowledgement(Encoded::new(&acknowledgement)).await;
        let result = match result.map_err(ReceivedError::from) {
            // The answer to an earlier one was lost on its way.
            Err(ReceivedError::Refused(refusal)) if refusal.reason == "duplicate_acknowledgement" => Ok(()),
            other => other.map(|_| ()),
        };
        if let Some(entry) = self.pending.lock().get_mut(&number) {
            if result.is_ok() {
                entry.pauses.reset();
            }
            entry.sending = false;
            entry.next_send = now() + entry.pauses.pause();
        }
        match result {
            Ok(()) => tracing::debug!(number, "acknowledged"),
            Err(error) => {
                self.context.metrics.acknowledgement_failures.increment();
                // Sent again in any case: a sequencer that restarts may have forgotten what it was sent before.
                tracing::warn!(number, %error, "acknowledgement not taken; sending it again later");
            }
        }
    }

    /// Tells refusals to the sequencer, one at a time, each once.
    pub(crate) async fn run_refusals(
        self: Arc<Self>,
        mut queue: mpsc::Receiver<types::Refusal>,
        mut stop: watch::Receiver<bool>,
    ) {
        loop {
            let refusal = tokio::select! {
                () = until(&mut stop) => return,
                refusal = queue.recv() => refusal,
            };
            let Some(refusal) = refusal else { return };
            let number = refusal.number;
            if let Err(error) = self.sequencer.submit_refusal(refusal).await {
                let error = ReceivedError::from(error);
                tracing::warn!(number, %error, "refusal not reported");
            }
        }
    }
}

/// Never, if there is nothing to wait for.
pub(crate) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
