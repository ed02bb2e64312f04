//! Following the source: live from its feed, and number by number what the feed did not bring.

use std::{collections::HashMap, sync::Arc, time::Duration};

use blindfold_protocol::{Canonical, SealedBatch};
use blindfold_rpc::{
    BlindApiClient, Encoded, Feed, FeedEvent, FeedItem, HttpClient, ReceivedError, Wire,
    types::{BatchInfo, Status},
};
use blindfold_runtime::{Instant, Stop, now, until};
use futures::{StreamExt, stream};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::{
    check::CheckError,
    config::RelayConfig,
    limits::{HINTS_PAUSE_MS, MAX_BRANCH_BATCHES, MAX_HINTS_ASKED, MAX_HINTS_PAUSE_MS, PARALLEL_FETCHES},
    source::Followed,
    window::{Certified, Taken},
};

/// Name of the readiness condition.
pub(crate) const SOURCE: &str = "source";

pub(crate) struct Follower {
    pub(crate) followed: Arc<Followed>,
    /// A client of its own: however many read through this relay, following waits for none of them.
    pub(crate) client: HttpClient,
    pub(crate) config: RelayConfig,
    /// When the hints of a number are asked for again, and how long the pause was.
    pub(crate) asked: HashMap<u64, (Instant, u64)>,
}

/// Why a round ended before everything was here.
enum Broken {
    /// The source did not answer, or lacks something: it is asked again.
    Source(String),
    /// It has no batch of this number.
    Absent(u64),
    /// What it says does not stand, or cannot be judged.
    Check(u64, CheckError),
}

impl Follower {
    pub(crate) async fn run(mut self, mut feed: Feed, mut stop: Stop) {
        let mut sweep = interval(Duration::from_millis(self.config.sweep_ms));
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let behind = tokio::select! {
                () = until(&mut stop) => return,
                item = feed.next() => match item {
                    Some(FeedItem::Connected | FeedItem::Reconnected) => {
                        self.followed.window.lock().forget_executed();
                        true
                    }
                    Some(FeedItem::Event(event)) => self.on_event(event).await,
                    Some(FeedItem::Invalid { topic, reason }) => {
                        tracing::warn!(topic = topic.as_str(), reason, "invalid notification from the feed");
                        false
                    }
                    None => return,
                },
                _ = sweep.tick() => true,
            };
            if behind {
                let round = self.catch_up();
                tokio::select! {
                    () = until(&mut stop) => return,
                    () = round => {}
                }
            }
        }
    }

    /// Takes a notification. True where something has to be fetched first.
    async fn on_event(&self, event: FeedEvent) -> bool {
        let number = event.number();
        let taken = match event {
            FeedEvent::Header(header) => {
                let Some(sealed) = decoded(number, &header.sealed) else { return false };
                self.followed.take_header(sealed, header.verdicts).await.map(|taken| {
                    if taken == (Taken::Second { new: true }) {
                        tracing::warn!(number, "the sequencer signed a second header");
                    }
                    matches!(taken, Taken::Gap | Taken::Detached)
                })
            }
            FeedEvent::Certificate(certificate) => {
                let Some(certificate) = decoded(number, &certificate.certificate) else { return false };
                let taken = self.followed.take_certificate(certificate).await;
                taken.map(|certified| match certified {
                    Certified::Missing => true,
                    Certified::Other => {
                        tracing::warn!(number, "another header than the one here was certified");
                        self.followed.window.lock().forget_from(number);
                        true
                    }
                    Certified::New | Certified::Known | Certified::Overruled => false,
                })
            }
            FeedEvent::Release(release) => {
                let Some(release) = decoded(number, &release.release) else { return false };
                self.followed.take_release(release).map(|()| false)
            }
            FeedEvent::Hints(hints) => {
                if let Some(hints) = decoded(number, &hints.hints) {
                    self.followed.hints.offer(hints);
                }
                Ok(false)
            }
            FeedEvent::Block(block) => {
                self.followed.take_block(block);
                Ok(false)
            }
        };
        taken.unwrap_or_else(|error| {
            self.followed.refuse(number, &error);
            false
        })
    }

    /// Compares with the source, and fetches what it has and is not here, in order.
    async fn catch_up(&mut self) {
        match self.round().await {
            Ok(()) => self.followed.readiness.set_ready(SOURCE),
            Err(Broken::Source(reason)) => {
                self.followed.metrics.source_failures.increment();
                self.followed.readiness.set_not_ready(SOURCE, reason);
            }
            Err(Broken::Absent(number)) => {
                self.followed.metrics.source_failures.increment();
                let reason = format!("the source does not give batch {number}");
                self.followed.readiness.set_not_ready(SOURCE, reason);
            }
            Err(Broken::Check(number, error)) => {
                self.followed.refuse(number, &error);
                self.followed
                    .readiness
                    .set_not_ready(SOURCE, format!("batch {number} of the source: {error}"));
            }
        }
    }

    async fn round(&mut self) -> Result<(), Broken> {
        let status = self.status().await?;
        self.compare(&status).await?;
        self.fetch_missing(&status).await?;
        self.fetch_certificate(&status).await?;
        self.fetch_hints().await;
        Ok(())
    }

    /// Finds out whether what is held is the source's chain still.
    async fn compare(&self, status: &Status) -> Result<(), Broken> {
        let (head, other) = {
            let window = self.followed.window.lock();
            let here = window.get(status.head.number).map(|held| held.hash);
            (window.head(), here.is_some_and(|hash| hash != status.head.hash))
        };
        if head.is_some_and(|head| status.head.number.saturating_add(MAX_BRANCH_BATCHES) < head) {
            return Err(Broken::Source(format!("the source is at {} only", status.head.number)));
        }
        if other { self.give_way(status.head.number).await } else { Ok(()) }
    }

    /// Another branch than the one here goes on: goes down to where the two part, and forgets what is here from there on. What
    /// is certified gives way to a header that L1 made alone.
    async fn give_way(&self, from: u64) -> Result<(), Broken> {
        let mut by_l1 = false;
        for number in (1..=from).rev().take(usize::try_from(MAX_BRANCH_BATCHES).unwrap_or(usize::MAX)) {
            let here = self.followed.window.lock().get(number).map(|held| held.hash);
            let (sealed, info) = match here {
                Some(_) => self.batch(number).await?,
                None => return self.part_at(number + 1, by_l1),
            };
            let theirs = self.checked(number, sealed, &info).await?;
            if here == Some(theirs.hash) {
                return self.part_at(number + 1, by_l1);
            }
            by_l1 = theirs.by_l1;
        }
        Err(Broken::Source("another branch goes back too far".to_owned()))
    }

    fn part_at(&self, number: u64, by_l1: bool) -> Result<(), Broken> {
        let mut window = self.followed.window.lock();
        if number <= window.certified() && !by_l1 {
            return Err(Broken::Check(number, CheckError::Contradiction));
        }
        if window.head().is_some_and(|head| number <= head) {
            tracing::warn!(number, "another branch than the one here goes on");
            window.forget_from(number);
            self.followed.show(&window);
        }
        Ok(())
    }

    async fn fetch_missing(&self, status: &Status) -> Result<(), Broken> {
        let (next, kept) = {
            let window = self.followed.window.lock();
            (window.head().map(|head| head + 1), self.config.catch_up_batches)
        };
        let oldest = status.head.number.saturating_add(1).saturating_sub(kept).max(1);
        let next = match next {
            None => oldest,
            Some(next) if next < oldest => {
                // So much was missed that nobody waits for all of it: subscribers have to know. First it has to be so: what the
                // source says of its head is nobody's word but its own.
                let (sealed, info) = self.batch(oldest).await?;
                self.checked(oldest, sealed, &info).await?;
                tracing::warn!(from = next, to = oldest, "batches that were missed are not handed on");
                self.followed.window.lock().clear();
                self.followed.hub.end_all();
                oldest
            }
            Some(next) => next,
        };
        let mut fetched = stream::iter(next..=status.head.number)
            .map(|number| async move { (number, self.batch(number).await) })
            .buffered(PARALLEL_FETCHES);
        while let Some((number, batch)) = fetched.next().await {
            let (sealed, info) = match batch {
                // Its header is stored and not signed yet: it comes in a moment.
                Err(Broken::Absent(absent)) if absent == status.head.number => return Ok(()),
                batch => batch?,
            };
            let verdicts = info.verdicts.clone();
            let taken = self.followed.take_header(sealed, verdicts).await;
            match taken.map_err(|error| Broken::Check(number, error))? {
                Taken::Detached => {
                    drop(fetched);
                    // What stands in the way goes, and the next round goes on from there.
                    self.give_way(number.saturating_sub(1)).await?;
                    return Err(Broken::Source("another branch is being fetched".to_owned()));
                }
                Taken::New | Taken::Known | Taken::Second { .. } | Taken::Old | Taken::Gap => {}
            }
            self.rest(number, &info).await?;
        }
        Ok(())
    }

    /// The newest certificate that the source has, where it did not come.
    async fn fetch_certificate(&self, status: &Status) -> Result<(), Broken> {
        let lacks = {
            let window = self.followed.window.lock();
            status.certified > window.certified() && window.get(status.certified).is_some()
        };
        if !lacks {
            return Ok(());
        }
        let (_, info) = self.batch(status.certified).await?;
        self.rest(status.certified, &info).await
    }

    /// Hints that did not come, of a few numbers; each is asked for again after a pause that grows. One that does not come,
    /// as of a void batch, keeps nothing else waiting.
    async fn fetch_hints(&mut self) {
        let wanted = self.followed.window.lock().without_hints();
        self.asked.retain(|number, _| wanted.contains(number));
        let due = now();
        let first = (due + Duration::from_millis(HINTS_PAUSE_MS), HINTS_PAUSE_MS);
        let mut asked = 0;
        for number in wanted {
            let (at, pause) = *self.asked.entry(number).or_insert(first);
            if at > due || asked >= MAX_HINTS_ASKED {
                continue;
            }
            asked += 1;
            let longer = (pause * 2).min(MAX_HINTS_PAUSE_MS);
            self.asked.insert(number, (due + Duration::from_millis(longer), longer));
            match self.in_time(self.client.get_hints(number)).await {
                Ok(Some(hints)) => {
                    if let Some(hints) = decoded(number, &hints) {
                        self.followed.hints.offer(hints);
                    }
                }
                Ok(None) => {}
                Err(reason) => tracing::debug!(number, reason, "no hints from the source"),
            }
        }
    }

    async fn rest(&self, number: u64, info: &BatchInfo) -> Result<(), Broken> {
        self.followed.take_rest(info).await.map_err(|error| Broken::Check(number, error))
    }

    async fn checked(
        &self,
        number: u64,
        sealed: SealedBatch,
        info: &BatchInfo,
    ) -> Result<crate::window::Held, Broken> {
        let checked = self.followed.checks.header(sealed, info.verdicts.clone()).await;
        checked.map_err(|error| Broken::Check(number, error))
    }

    /// A batch of the source. One that it does not give although its head is above it is asked for again: what comes after it
    /// waits.
    async fn batch(&self, number: u64) -> Result<(SealedBatch, BatchInfo), Broken> {
        let info = self.in_time(self.client.get_batch(number)).await.map_err(Broken::Source)?;
        let info = info.ok_or(Broken::Absent(number))?;
        let sealed = info.sealed.decode();
        let sealed = sealed.map_err(|_| Broken::Check(number, CheckError::Undecodable("batch")))?;
        if sealed.header.number != number {
            return Err(Broken::Check(number, CheckError::OtherNumber));
        }
        Ok((sealed, info))
    }

    async fn status(&self) -> Result<Status, Broken> {
        let status = self.in_time(self.client.get_status()).await.map_err(Broken::Source)?;
        let chain = &self.followed.checks.chain;
        match status.check_chain(chain.chain_id, &chain.deployment) {
            Ok(()) => Ok(status),
            Err(other) => Err(Broken::Source(format!("the source {other}"))),
        }
    }

    /// An answer, or why there is none. The library waits for a place among its calls without limit.
    async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<T, blindfold_rpc::jsonrpsee::core::ClientError>>,
    ) -> Result<T, String> {
        let limit = Duration::from_millis(self.config.source_timeout_ms);
        match timeout(limit, call).await {
            Ok(answer) => answer.map_err(|error| ReceivedError::from(error).to_string()),
            Err(_) => Err("the source does not answer in time".to_owned()),
        }
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
