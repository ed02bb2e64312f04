//! Following one node. Its feed only says that there is something new; what is new is asked for number by number, and
//! every header, certificate and hint is verified here. What does not stand is refused and counted, and asked for again.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use async_trait::async_trait;
use blindfold_chain::{
    HeaderSource, HintIntake, L1Round, L1Rounds, NextStep, Tracker, TrackerError, accepted,
};
use blindfold_protocol::{Canonical, SealedBatch};
use blindfold_rpc::types::BatchInfo;
use blindfold_rpc::{
    BlindApiClient, Encoded, Feed, FeedConfig, FeedEvent, FeedItem, HttpClient, ReceivedError, Topic, Wire,
};
use blindfold_runtime::{now, until};
use blindfold_store::StoreError;
use tokio::sync::watch;

use crate::ExecutionStatus;
use crate::counters::Counters;
use crate::limits::{MAX_SYNC_BATCHES, SYNC_RETRY_MS};

/// The topics that say that there is something new.
const TOPICS: [Topic; 2] = [Topic::Certificates, Topic::Hints];

/// How a run of catching up ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Everything that the node has is here.
    Done,
    /// There is more to fetch at once.
    More,
    /// Something has to come first, or the node does not answer, or what it gives does not stand: again after a pause.
    Later,
}

pub(crate) struct Follower {
    pub(crate) tracker: Tracker,
    pub(crate) intake: HintIntake,
    pub(crate) node: HttpClient,
    pub(crate) counters: Counters,
    pub(crate) poll_interval: Duration,
    /// Whether everything that the node has is here.
    pub(crate) in_sync: watch::Sender<bool>,
    /// Where execution stands: what is executed needs no hints any more.
    pub(crate) status: watch::Receiver<ExecutionStatus>,
    pub(crate) l1_rounds: L1Rounds,
}

impl Follower {
    /// Follows until told to stop.
    pub(crate) async fn run(mut self, feed_url: String, mut stop: watch::Receiver<bool>) {
        let mut feed = Feed::start(feed_url, TOPICS.to_vec(), FeedConfig::default());
        let mut next = now();
        loop {
            let step = async {
                tokio::select! {
                    item = feed.next() => match item {
                        Some(FeedItem::Event(event)) if !self.is_news(&event).await => None,
                        Some(_) => Some(self.catch_up().await),
                        None => Some(End::Later),
                    },
                    () = tokio::time::sleep_until(next) => Some(self.catch_up().await),
                    round = self.l1_rounds.ended() => {
                        self.on_l1(round);
                        None
                    }
                }
            };
            // What a step has begun on disk ends by itself; nothing else of it is worth waiting for.
            let end = tokio::select! {
                () = until(&mut stop) => return,
                end = step => end,
            };
            let Some(end) = end else { continue };
            self.in_sync.send_replace(end == End::Done);
            next = now()
                + match end {
                    End::Done => self.poll_interval,
                    End::More => Duration::ZERO,
                    End::Later => Duration::from_millis(SYNC_RETRY_MS).min(self.poll_interval),
                };
        }
    }

    /// Whether the notification speaks of something that is not here yet.
    async fn is_news(&self, event: &FeedEvent) -> bool {
        match event {
            FeedEvent::Certificate(notification) => notification.number > self.tracker.certified().number,
            FeedEvent::Hints(notification) => {
                let batch = self.tracker.store().batch(notification.number).await;
                batch.is_ok_and(|batch| batch.is_none_or(|batch| batch.hints.is_none()))
            }
            FeedEvent::Header(_) | FeedEvent::Release(_) | FeedEvent::Block(_) => false,
        }
    }

    fn on_l1(&self, round: L1Round) {
        match round {
            Ok(taken) => self.counters.headers_verified.add(taken.len() as u64),
            Err(refusal) if refusal.next_step() == NextStep::Stop => {
                tracing::error!(%refusal, "cannot follow L1");
            }
            Err(refusal) => tracing::debug!(%refusal, "what L1 made cannot be taken yet"),
        }
    }

    async fn catch_up(&mut self) -> End {
        if let Some(round) = self.l1_rounds.round().await {
            self.on_l1(round);
        }
        let headers = self.fetch_batches().await;
        match self.fetch_hints().await {
            Ok(End::Done) => headers,
            Ok(end) => end,
            Err(error) => {
                tracing::error!(%error, "the disk does not give what hints are missing");
                End::Later
            }
        }
    }

    /// Asks for each batch above the certified head.
    async fn fetch_batches(&self) -> End {
        let first = self.tracker.certified().number + 1;
        for number in first..first + MAX_SYNC_BATCHES {
            let info = match self.node.get_batch(number).await {
                Ok(Some(info)) => info,
                Ok(None) => return End::Done,
                Err(error) => {
                    let error = ReceivedError::from(error);
                    tracing::debug!(number, %error, "the node gives no batch");
                    return End::Later;
                }
            };
            if let Err(end) = self.take_batch(number, info).await {
                return end;
            }
        }
        End::More
    }

    async fn take_batch(&self, number: u64, info: BatchInfo) -> Result<(), End> {
        let sealed = self.decoded(&info.sealed).filter(|sealed| sealed.header.number == number);
        let sealed = Arc::new(sealed.ok_or(End::Later)?);
        let taken = match &info.certificate {
            Some(encoded) => {
                let certificate = self.decoded(encoded).ok_or(End::Later)?;
                let source = self as &dyn HeaderSource;
                let run = self.tracker.accept_with_ancestors(source, vec![sealed], &certificate).await;
                run.map(|run| run.batches.iter().filter(|(_, applied)| applied.is_new()).count())
            }
            None => match self.tracker.apply_sealed(&sealed).await {
                Ok(applied) => Ok(usize::from(applied.is_new())),
                // Ours may be the one that gives way, which the certificate of a later number will say.
                Err(refusal @ TrackerError::Second { .. }) => {
                    tracing::warn!(number, %refusal, "header refused");
                    Ok(0)
                }
                Err(refusal) => Err(refusal),
            },
        };
        match taken {
            Ok(new) => {
                self.counters.headers_verified.add(new as u64);
                Ok(())
            }
            Err(refusal) => Err(self.refused(number, &refusal)),
        }
    }

    fn refused(&self, number: u64, refusal: &TrackerError) -> End {
        match refusal.next_step() {
            NextStep::Reject => {
                self.counters.rejected.increment();
                tracing::warn!(number, %refusal, "batch refused");
                End::Later
            }
            NextStep::Stop => {
                tracing::error!(number, %refusal, "batch cannot be taken");
                End::Later
            }
            NextStep::CatchUp => End::More,
            NextStep::Retry => {
                tracing::debug!(number, %refusal, "batch not taken yet");
                End::Later
            }
        }
    }

    /// Asks for the hints of each certified batch that needs some and has none, in order. Those of a batch that becomes
    /// void never come, so none is waited for here.
    async fn fetch_hints(&self) -> Result<End, StoreError> {
        let store = self.tracker.store();
        let first = self.status.borrow().head.number + 1;
        let last = self.tracker.certified().number.min(first + MAX_SYNC_BATCHES);
        let mut end = End::Done;
        for number in first..=last {
            let Some(record) = store.batch(number).await? else { return Ok(End::Later) };
            if record.hints.is_none() && accepted(&record) > 0 && !self.fetch_hints_of(number).await {
                end = End::Later;
            }
        }
        Ok(end)
    }

    /// Whether the hints of a batch are here now.
    async fn fetch_hints_of(&self, number: u64) -> bool {
        let hints = match self.node.get_hints(number).await {
            Ok(Some(encoded)) => self.decoded(&encoded).filter(|hints| hints.number == number),
            Ok(None) => None,
            Err(error) => {
                let error = ReceivedError::from(error);
                tracing::debug!(number, %error, "the node gives no hints");
                None
            }
        };
        let Some(hints) = hints else { return false };
        match self.intake.submit(None, hints).await {
            Ok(accepted) => {
                self.counters.hints_verified.add(accepted.verified as u64);
                true
            }
            Err(refusal) => {
                if !refusal.retry() {
                    self.counters.rejected.increment();
                    tracing::warn!(number, %refusal, "hints refused");
                }
                false
            }
        }
    }

    /// The structure, if the bytes are one.
    fn decoded<T: Wire + Canonical>(&self, encoded: &Encoded<T>) -> Option<T> {
        match encoded.decode() {
            Ok(structure) => Some(structure),
            Err(fault) => {
                self.counters.rejected.increment();
                tracing::warn!(structure = T::NAME, %fault, "what the node sent does not decode");
                None
            }
        }
    }
}

#[async_trait]
impl HeaderSource for Follower {
    async fn header(&self, number: u64, hash: B256) -> Option<Arc<SealedBatch>> {
        let info = self.node.get_batch(number).await.ok()??;
        let sealed = self.decoded(&info.sealed)?;
        (sealed.header.number == number && sealed.header.hash() == hash).then(|| Arc::new(sealed))
    }
}
