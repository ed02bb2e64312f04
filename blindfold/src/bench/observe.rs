//! What becomes of envelopes, by the feeds and not by their sender's counters.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use alloy_primitives::B256;
use blindfold_protocol::{Canonical, Envelope, SealedBatch};
use blindfold_rpc::{Feed, FeedConfig, FeedEvent, FeedItem, ReceivedError, Topic};
use blindfold_runtime::{Instant, now};
use parking_lot::Mutex;
use serde::Serialize;

/// Percentiles, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Latency {
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
}

impl Latency {
    pub(super) fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let index = (samples.len().saturating_sub(1) * percent).div_ceil(100);
            samples.get(index).copied().unwrap_or_default()
        };
        Self { p50: at(50), p90: at(90), p99: at(99) }
    }
}

/// What the feeds and answers showed, by envelope.
#[derive(Default)]
pub(super) struct Observed {
    /// The first try.
    pub(super) sent: HashMap<B256, Instant>,
    /// The last one.
    pub(super) tried: HashMap<B256, Instant>,
    /// Tries of all envelopes.
    pub(super) offered: usize,
    pub(super) admitted: HashMap<B256, Instant>,
    pub(super) refused: BTreeMap<String, usize>,
    /// Of these the ones that said to come back, and not when.
    pub(super) refused_without_time: BTreeMap<String, usize>,
    /// Ids of each sealed batch, until it is executed.
    batches: BTreeMap<u64, Vec<B256>>,
    pub(super) certified: HashMap<B256, Instant>,
    pub(super) executed: HashMap<B256, Instant>,
}

impl Observed {
    /// An envelope is sent, maybe again.
    pub(super) fn offers(&mut self, id: B256) {
        let now = now();
        self.sent.entry(id).or_insert(now);
        self.tried.insert(id, now);
        self.offered += 1;
    }

    /// A try was refused.
    pub(super) fn refuses(&mut self, error: &ReceivedError) {
        let reason = error.reason().to_owned();
        if error.retry() && error.retry_after().is_none() {
            *self.refused_without_time.entry(reason.clone()).or_default() += 1;
        }
        *self.refused.entry(reason).or_default() += 1;
    }
}

/// Whatever a role's feed shows of these topics.
pub(super) fn feed(http_url: &str, topics: &[Topic]) -> Feed {
    let url = http_url.replacen("http", "ws", 1);
    Feed::start(url, topics, FeedConfig::default())
}

/// Notes what a feed shows.
pub(super) async fn watch(mut feed: Feed, observed: Arc<Mutex<Observed>>) {
    while let Some(item) = feed.next().await {
        let FeedItem::Event(event) = item else { continue };
        let now = now();
        let mut observed = observed.lock();
        match event {
            FeedEvent::Header(header) => {
                let ids = header.sealed.decode().map(|sealed| ids(&sealed)).unwrap_or_default();
                observed.batches.insert(header.number, ids);
            }
            FeedEvent::Certificate(certificate) => {
                // A certificate certifies all ancestors.
                let ids: Vec<B256> = observed
                    .batches
                    .range(..=certificate.number)
                    .flat_map(|(_, ids)| ids.iter().copied())
                    .collect();
                for id in ids {
                    observed.certified.entry(id).or_insert(now);
                }
            }
            FeedEvent::Block(block) => {
                let done = observed.batches.split_off(&(block.last_batch + 1));
                let executed = std::mem::replace(&mut observed.batches, done);
                for id in executed.into_values().flatten() {
                    // Only what is certified is executed; its certificate may come later on another feed.
                    observed.certified.entry(id).or_insert(now);
                    observed.executed.entry(id).or_insert(now);
                }
            }
            _ => {}
        }
    }
}

fn ids(sealed: &SealedBatch) -> Vec<B256> {
    sealed.items.iter().filter_map(|item| Envelope::decode(item).ok()).map(|envelope| envelope.id()).collect()
}
