//! Envelopes without a break, and every header that any sequencer announces.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use anyhow::{Result, bail, ensure};
use blindfold::devnet::{Devnet, accounts::account_key, ports::http};
use blindfold_client::{CommitteeKey, Node, WalletEndpoints};
use blindfold_protocol::{B256, SignedHeader};
use blindfold_rpc::{ClientConfig, Feed, FeedConfig, FeedEvent, FeedItem, Topic};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::traffic::Sender;

/// Pause of one sender between two envelopes.
const PACE: Duration = Duration::from_millis(150);
/// Pause before an envelope is sent again.
const AGAIN: Duration = Duration::from_millis(40);
/// How long a sequencer that leads may take to say so.
const ANSWER: Duration = Duration::from_millis(500);
/// How often a state that has no notification is looked up.
const LOOK: Duration = Duration::from_millis(20);
/// Each other envelope asks for a promise.
const PROMISES: u64 = 2;

/// An envelope that a sequencer acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) id: B256,
    /// The number that it was promised for, if it was.
    pub(crate) seal_by: Option<u64>,
}

/// What is seen of headers.
#[derive(Default)]
struct Seen {
    /// Hashes of each number, whoever announced them.
    hashes: BTreeMap<u64, BTreeSet<B256>>,
    /// When each number was stamped, in Unix milliseconds.
    stamped_ms: BTreeMap<u64, u64>,
}

/// Senders and watchers.
pub(crate) struct Load {
    seen: Arc<Mutex<Seen>>,
    newest: watch::Receiver<u64>,
    stop: watch::Sender<bool>,
    senders: JoinSet<Vec<Sent>>,
    watchers: JoinSet<()>,
}

/// An account that sends through the network's gateways, for the epoch of this key.
///
/// # Errors
/// When the wallet cannot be made.
pub(crate) async fn sender(devnet: &Devnet, account: usize, committee: CommitteeKey) -> Result<Sender> {
    let endpoints = WalletEndpoints { node: http(devnet.ports.full_node.0), sequencers: devnet.front_urls() };
    let (chain, l1) = (Arc::clone(&devnet.chain), Arc::new(devnet.l1.clone()));
    Sender::new(account_key(account), chain, l1, committee, &endpoints).await
}

/// The name of whoever leads, once somebody does.
///
/// # Errors
/// When nobody does in time.
pub(crate) async fn leader(devnet: &Devnet, patience: Duration) -> Result<&'static str> {
    let deadline = Instant::now() + patience;
    loop {
        for (name, (rpc, _)) in devnet.sequencers() {
            let node = Node::new(&http(rpc))?;
            if matches!(timeout(ANSWER, node.call("blind_getStatus", &[])).await, Ok(Ok(_))) {
                return Ok(name);
            }
        }
        ensure!(Instant::now() < deadline, "nobody leads");
        sleep(LOOK).await;
    }
}

impl Load {
    /// Has the network's first accounts send through its gateways, for its first committee, and watches every sequencer.
    ///
    /// # Errors
    /// When the committee's key cannot be had from L1, or a wallet cannot be made.
    pub(crate) async fn through(devnet: &Devnet, accounts: usize) -> Result<Self> {
        let committee = CommitteeKey::fetch(&devnet.l1, 1, None).await?;
        let mut senders = Vec::new();
        for account in 0..accounts {
            senders.push(sender(devnet, account, committee.clone()).await?);
        }
        Ok(Self::start(senders, devnet.sequencers().into_iter().map(|(_, (rpc, _))| rpc)))
    }

    /// Begins to send, and to watch the feeds at these ports.
    fn start(senders: Vec<Sender>, feeds: impl Iterator<Item = u16>) -> Self {
        let (seen, stop) = (Arc::<Mutex<Seen>>::default(), watch::Sender::new(false));
        let (newest, watched) = watch::channel(0);
        let mut load =
            Self { seen, newest: watched, stop, senders: JoinSet::new(), watchers: JoinSet::new() };
        for port in feeds {
            load.watchers.spawn(watch_headers(port, Arc::clone(&load.seen), newest.clone()));
        }
        for sender in senders {
            load.senders.spawn(send(sender, load.stop.subscribe()));
        }
        load
    }

    /// Waits for a header that is stamped after this time, in Unix milliseconds; gives its number and stamp.
    pub(crate) async fn sealed_after(&self, after_ms: u64, patience: Duration) -> Result<(u64, u64)> {
        let mut newest = self.newest.clone();
        let look = async {
            loop {
                let found = {
                    let seen = self.seen.lock();
                    seen.stamped_ms.iter().find(|(_, stamp)| **stamp > after_ms).map(|(n, at)| (*n, *at))
                };
                if let Some(found) = found {
                    return Ok(found);
                }
                if newest.changed().await.is_err() {
                    bail!("nobody watches any more");
                }
            }
        };
        match timeout(patience, look).await {
            Ok(found) => found,
            Err(_) => bail!("no header for {} s", patience.as_secs()),
        }
    }

    /// The longest time between two headers of which the later one is stamped after this time, all in milliseconds.
    pub(crate) fn longest_gap(&self, after_ms: u64) -> u64 {
        let stamps: Vec<u64> = self.seen.lock().stamped_ms.values().copied().collect();
        let pairs = stamps.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?)));
        pairs.filter(|(_, to)| *to > after_ms).map(|(from, to)| to.saturating_sub(from)).max().unwrap_or(0)
    }

    /// The newest number that anybody announced.
    pub(crate) fn newest(&self) -> u64 {
        *self.newest.borrow()
    }

    /// Headers that were seen elsewhere.
    pub(crate) fn seen_also(&self, headers: &[(u64, B256)]) {
        let mut seen = self.seen.lock();
        for (number, hash) in headers {
            seen.hashes.entry(*number).or_default().insert(*hash);
        }
    }

    /// Numbers for which two headers were announced.
    pub(crate) fn second_headers(&self) -> u64 {
        self.seen.lock().hashes.values().filter(|hashes| hashes.len() > 1).count() as u64
    }

    /// Ends the senders; gives what was acknowledged. The feeds are watched on.
    pub(crate) async fn stop(&mut self) -> Vec<Sent> {
        self.stop.send_replace(true);
        let mut sent = Vec::new();
        while let Some(of_one) = self.senders.join_next().await {
            sent.extend(of_one.unwrap_or_default());
        }
        sent
    }
}

async fn watch_headers(port: u16, seen: Arc<Mutex<Seen>>, newest: watch::Sender<u64>) {
    // One that is stopped is still listened to when it goes on: what it says first is what matters.
    let client =
        ClientConfig { ping_interval_ms: 5_000, ping_inactive_ms: 60_000, ..ClientConfig::default() };
    let config = FeedConfig { client, backoff_initial_ms: 20, backoff_max_ms: 100, ..FeedConfig::default() };
    let mut feed = Feed::start(format!("ws://127.0.0.1:{port}"), [Topic::Headers], config);
    while let Some(item) = feed.next().await {
        let FeedItem::Event(FeedEvent::Header(header)) = item else { continue };
        let Ok(sealed) = header.sealed.decode() else { continue };
        let SignedHeader { header, .. } = sealed.signed_header();
        {
            let mut seen = seen.lock();
            seen.hashes.entry(header.number).or_default().insert(header.hash());
            seen.stamped_ms.insert(header.number, header.timestamp_ms);
        }
        newest.send_modify(|newest| *newest = (*newest).max(header.number));
    }
}

/// Sends one envelope after the other. One that got no answer is sent again, byte for byte: it may have arrived.
async fn send(mut sender: Sender, stop: watch::Receiver<bool>) -> Vec<Sent> {
    let mut acknowledged = Vec::new();
    let mut count = 0u64;
    while !*stop.borrow() {
        count += 1;
        let (raw, _) = sender.transfer(sender.nonce, alloy_primitives::U256::from(1));
        let Ok(envelope) = sender.envelope(raw.to_vec()).await else {
            sleep(AGAIN).await;
            continue;
        };
        let promise = count.is_multiple_of(PROMISES);
        loop {
            match sender.try_submit(&envelope, promise).await {
                Ok(Ok(promised)) => {
                    let seal_by = promised.map(|promise| promise.seal_by);
                    acknowledged.push(Sent { id: envelope.id(), seal_by });
                    sender.nonce += 1;
                    break;
                }
                // In a batch already: the answer to the first copy was lost.
                Ok(Err(reason)) if reason == "already_known" => {
                    acknowledged.push(Sent { id: envelope.id(), seal_by: None });
                    sender.nonce += 1;
                    break;
                }
                // Of no use any more: the next one has the same nonce.
                Ok(Err(reason))
                    if ["expired", "wrong_generation", "fee_too_low"].contains(&reason.as_str()) =>
                {
                    break;
                }
                Ok(Err(_)) | Err(_) if *stop.borrow() => break,
                Ok(Err(_)) | Err(_) => sleep(AGAIN).await,
            }
        }
        sleep(PACE).await;
    }
    acknowledged
}
