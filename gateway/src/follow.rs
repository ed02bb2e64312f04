//! Following the source: live from its feed, and number by number what the feed did not bring.

use std::{sync::Arc, time::Duration};

use blindfold_protocol::Canonical;
use blindfold_rpc::{
    BlindApiClient, Encoded, Feed, FeedEvent, FeedItem, Readiness, ReceivedError, Wire,
    types::{BatchInfo, Status},
};
use blindfold_runtime::{Stop, until};
use futures::{StreamExt, stream};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    coalesce::Source,
    config::RelayConfig,
    limits::{MAX_AHEAD_BATCHES, PARALLEL_FETCHES},
    source::Followed,
    window::Taken,
};

/// Name of the readiness condition.
pub(crate) const SOURCE: &str = "source";

pub(crate) struct Follower {
    pub(crate) followed: Arc<Followed>,
    pub(crate) source: Source,
    pub(crate) config: RelayConfig,
    pub(crate) readiness: Readiness,
}

impl Follower {
    pub(crate) async fn run(self, mut feed: Feed, mut stop: Stop) {
        let mut sweep = interval(Duration::from_millis(self.config.sweep_ms));
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = until(&mut stop) => return,
                item = feed.next() => match item {
                    Some(FeedItem::Connected | FeedItem::Reconnected) => self.catch_up().await,
                    Some(FeedItem::Event(event)) => self.on_event(event).await,
                    Some(FeedItem::Invalid { topic, reason }) => {
                        tracing::warn!(topic = topic.as_str(), reason, "invalid notification from the feed");
                    }
                    None => return,
                },
                _ = sweep.tick() => self.catch_up().await,
            }
        }
    }

    async fn on_event(&self, event: FeedEvent) {
        let number = event.number();
        let taken = match event {
            FeedEvent::Header(header) => {
                let Some(sealed) = decoded(number, &header.sealed) else { return };
                let head = self.followed.window.lock().head();
                if head.is_some_and(|head| number > head + 1) {
                    // Something is missing between: it comes first, in order.
                    return self.catch_up().await;
                }
                self.followed.take_header(sealed, header.verdicts).await.map(|taken| {
                    if taken == Taken::Second {
                        tracing::warn!(number, "the sequencer signed a second header");
                    }
                })
            }
            FeedEvent::Certificate(certificate) => {
                let Some(certificate) = decoded(number, &certificate.certificate) else { return };
                match self.followed.take_certificate(certificate).await {
                    Ok(true) => Ok(()),
                    Ok(false) => return self.catch_up().await,
                    Err(error) => Err(error),
                }
            }
            FeedEvent::Release(release) => {
                let Some(release) = decoded(number, &release.release) else { return };
                self.followed.take_release(release)
            }
            FeedEvent::Hints(hints) => {
                if let Some(hints) = decoded(number, &hints.hints) {
                    self.followed.hints.offer(hints);
                }
                Ok(())
            }
            FeedEvent::Block(block) => {
                self.followed.take_block(block);
                Ok(())
            }
        };
        if let Err(error) = taken {
            self.followed.refuse(number, &error);
        }
    }

    /// Compares with the source, and fetches what it has and is not here.
    async fn catch_up(&self) {
        let status = match self.status().await {
            Ok(status) => status,
            Err(reason) => {
                self.followed.metrics.source_failures.increment();
                self.readiness.set_not_ready(SOURCE, reason);
                return;
            }
        };
        let (missing, incomplete) = {
            let window = self.followed.window.lock();
            let next = window.head().map_or(1, |head| head + 1);
            let oldest = status.head.number.saturating_sub(self.config.catch_up_batches) + 1;
            let mut incomplete = window.incomplete();
            // Its certificate did not come.
            let uncertified = status.certified > window.certified() && window.get(status.certified).is_some();
            incomplete.extend(uncertified.then_some(status.certified));
            (next.max(oldest)..=status.head.number, incomplete)
        };
        let limit = usize::try_from(self.config.catch_up_batches).unwrap_or(usize::MAX);
        let numbers = incomplete.into_iter().chain(missing).take(limit);
        let mut fetched = stream::iter(numbers)
            .map(|number| async move { (number, self.source.client().get_batch(number).await) })
            .buffered(PARALLEL_FETCHES);
        while let Some((number, answer)) = fetched.next().await {
            let info: Option<BatchInfo> = match answer {
                Ok(info) => info,
                Err(error) => {
                    self.followed.metrics.source_failures.increment();
                    self.readiness.set_not_ready(SOURCE, ReceivedError::from(error).to_string());
                    return;
                }
            };
            let Some(info) = info else { continue };
            if let Err(error) = self.followed.take_batch(number, info).await {
                self.followed.refuse(number, &error);
                if !error.may_pass() {
                    self.readiness.set_not_ready(SOURCE, format!("batch {number} of the source: {error}"));
                }
                return;
            }
        }
        self.readiness.set_ready(SOURCE);
    }

    async fn status(&self) -> Result<Status, String> {
        let status = self.source.client().get_status().await;
        let status = status.map_err(|error| ReceivedError::from(error).to_string())?;
        let chain = &self.followed.checks.chain;
        status
            .check_chain(chain.chain_id, &chain.deployment)
            .map_err(|other| format!("the source {other}"))?;
        let head = self.followed.window.lock().head();
        if head.is_some_and(|head| status.head.number.saturating_add(MAX_AHEAD_BATCHES) < head) {
            return Err(format!("the source is at {} only", status.head.number));
        }
        Ok(status)
    }
}

fn decoded<T: Wire + Canonical>(number: u64, encoded: &Encoded<T>) -> Option<T> {
    match encoded.decode() {
        Ok(decoded) => Some(decoded),
        Err(fault) => {
            tracing::warn!(number, structure = T::NAME, %fault, "undecodable, from the feed");
            None
        }
    }
}
