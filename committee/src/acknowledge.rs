//! Acknowledging: the word on disk first, then the signature, then the sequencer until the number is certified.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use blindfold_chain::Refusal;
use blindfold_protocol::{Acknowledgement, B256, certificate};
use blindfold_rpc::{Encoded, HttpClient, ReceivedError, SequencerApiClient, types};
use blindfold_store::StoreError;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};

use crate::member::Context;

/// Acknowledgements sent at the same time.
const PARALLEL_SENDS: usize = 8;
/// Refusals that wait to be told to the sequencer; beyond it they are only counted.
const REFUSAL_QUEUE: usize = 64;

/// Why a valid header is not acknowledged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAcknowledged {
    #[error("this member acknowledged another header for number {number}")]
    AlreadyAcknowledged { number: u64 },
    #[error("this member's key is not in the committee of number {number}")]
    NotAMember { number: u64 },
    #[error(transparent)]
    Chain(#[from] Refusal),
    #[error(transparent)]
    Store(StoreError),
}

impl NotAcknowledged {
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::AlreadyAcknowledged { .. } => "already_acknowledged",
            Self::NotAMember { .. } => "not_a_member",
            Self::Chain(refusal) => refusal.as_str(),
            Self::Store(_) => "storage",
        }
    }
}

struct Pending {
    acknowledgement: Acknowledgement,
    next_send: Instant,
}

/// Signs and sends acknowledgements.
pub(crate) struct Acknowledger {
    context: Arc<Context>,
    sequencer: HttpClient,
    /// Signed and not certified yet; at most as many as headers may wait for a certificate.
    pending: Mutex<BTreeMap<u64, Pending>>,
    wake: Notify,
    refusals: mpsc::Sender<types::Refusal>,
}

impl Acknowledger {
    pub(crate) fn new(
        context: Arc<Context>,
        sequencer: HttpClient,
    ) -> (Arc<Self>, mpsc::Receiver<types::Refusal>) {
        let (refusals, queue) = mpsc::channel(REFUSAL_QUEUE);
        let pending = Mutex::default();
        (Arc::new(Self { context, sequencer, pending, wake: Notify::new(), refusals }), queue)
    }

    /// Acknowledges the header with this hash, which the tracker has applied. The pair is durable before the
    /// signature exists; for the pair that is on disk already, the same signature is made again.
    pub(crate) async fn acknowledge(&self, number: u64, header_hash: B256) -> Result<(), NotAcknowledged> {
        let context = &self.context;
        let epoch = context.tracker.epoch(number).await?;
        if !context.is_member_of(&epoch) {
            return Err(NotAcknowledged::NotAMember { number });
        }
        match context.tracker.store().put_acknowledged(number, header_hash).await {
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
        let pending = Pending { acknowledgement, next_send: Instant::now() };
        self.pending.lock().insert(number, pending);
        self.wake.notify_one();
        Ok(())
    }

    /// Forgets acknowledgements of headers that gave way to a certified one.
    pub(crate) fn forget_from(&self, number: u64) {
        self.pending.lock().split_off(&number);
    }

    /// Tells the sequencer once why a header is refused. Best effort: the refusal itself is in our status.
    pub(crate) fn report(&self, number: u64, header_hash: B256, reason: &str) {
        let refusal =
            types::Refusal { number, header_hash, member: self.context.member(), reason: reason.to_owned() };
        if self.refusals.try_send(refusal).is_err() {
            tracing::debug!(number, reason, "refusal not reported: the queue is full");
        }
    }

    /// Sends what is pending until its number is certified.
    pub(crate) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut certified = self.context.tracker.watch_certified();
        loop {
            let head = certified.borrow_and_update().number;
            let due = self.take_due(head);
            stream::iter(due)
                .for_each_concurrent(PARALLEL_SENDS, |acknowledgement| self.send(acknowledgement))
                .await;
            let next = self.pending.lock().values().map(|pending| pending.next_send).min();
            tokio::select! {
                () = stopped(&mut stop) => return,
                () = self.wake.notified() => {}
                changed = certified.changed() => if changed.is_err() { return },
                () = sleep_until(next) => {}
            }
        }
    }

    /// What has to be sent now, each with its next turn noted.
    fn take_due(&self, certified: u64) -> Vec<Acknowledgement> {
        let now = Instant::now();
        let again = now + Duration::from_millis(self.context.config.limits.acknowledgement_resend_ms);
        let mut pending = self.pending.lock();
        pending.retain(|number, _| *number > certified);
        let mut due = Vec::new();
        for entry in pending.values_mut().filter(|entry| entry.next_send <= now) {
            entry.next_send = again;
            due.push(entry.acknowledgement);
        }
        due
    }

    async fn send(&self, acknowledgement: Acknowledgement) {
        let number = acknowledgement.number;
        match self.sequencer.submit_acknowledgement(Encoded::new(&acknowledgement)).await {
            Ok(_) => tracing::debug!(number, "acknowledged"),
            Err(error) => {
                let error = ReceivedError::from(error);
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
                () = stopped(&mut stop) => return,
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
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// Resolves when the member is to stop, or its handle is gone.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
