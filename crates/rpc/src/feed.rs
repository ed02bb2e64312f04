//! A subscription that outlives its connection: over the binary feed (J-9), or where a server has none, over JSON-RPC.

mod client;
mod frame;
mod round;
mod server;

use std::time::Duration;

use blindfold_runtime::{Backoff, now, spawn};
pub(crate) use frame::encode_event;
pub use frame::{FEED_SUBPROTOCOL, FeedFrame, FeedRequest, FrameError};
use futures::{
    StreamExt,
    stream::{BoxStream, SelectAll},
};
use jsonrpsee::core::{ClientError, client::Subscription};
use jsonrpsee_ws_client::WsClient;
use round::Round;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
pub use server::FeedSource;
pub(crate) use server::{Feeds, is_asked_for};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_tungstenite::tungstenite;

use crate::{
    BlindApiClient, ClientBuildError, ClientConfig, ReceivedError, Topic,
    carrier::{Link, carrier},
    limits::{
        FEED_BACKOFF_INITIAL_MS, FEED_BACKOFF_MAX_MS, FEED_BUFFER_EVENTS, FEED_STABLE_MS,
        SEVERAL_MAX_PAUSE_MS, SEVERAL_PING_INACTIVE_MS, SEVERAL_PING_INTERVAL_MS,
    },
    pace::told_ms,
    types::{
        BlockNotification, CertificateNotification, HeaderNotification, HintsNotification,
        ReleaseNotification,
    },
    urls::same_server,
    ws_client,
};

/// A notification of any topic. In JSON it is the topic's own object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FeedEvent {
    /// A header was sealed: topic `headers`.
    Header(HeaderNotification),
    /// A batch was certified: topic `certificates`.
    Certificate(CertificateNotification),
    /// A batch was released: topic `releases`.
    Release(ReleaseNotification),
    /// A batch has hints: topic `hints`.
    Hints(HintsNotification),
    /// A block was executed: topic `blocks`.
    Block(BlockNotification),
}

impl FeedEvent {
    /// The topic it belongs to.
    pub const fn topic(&self) -> Topic {
        match self {
            Self::Header(_) => Topic::Headers,
            Self::Certificate(_) => Topic::Certificates,
            Self::Release(_) => Topic::Releases,
            Self::Hints(_) => Topic::Hints,
            Self::Block(_) => Topic::Blocks,
        }
    }

    /// The number it speaks of: of a batch, for a block the block's.
    pub const fn number(&self) -> u64 {
        match self {
            Self::Header(notification) => notification.number,
            Self::Certificate(notification) => notification.number,
            Self::Release(notification) => notification.number,
            Self::Hints(notification) => notification.number,
            Self::Block(notification) => notification.number,
        }
    }

    /// Reads a notification of a known topic.
    pub fn parse(topic: Topic, json: &str) -> Result<Self, serde_json::Error> {
        Ok(match topic {
            Topic::Headers => Self::Header(serde_json::from_str(json)?),
            Topic::Certificates => Self::Certificate(serde_json::from_str(json)?),
            Topic::Releases => Self::Release(serde_json::from_str(json)?),
            Topic::Hints => Self::Hints(serde_json::from_str(json)?),
            Topic::Blocks => Self::Block(serde_json::from_str(json)?),
        })
    }

    /// The JSON that subscribers get as the notification's result.
    pub fn to_raw(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self)
    }
}

/// What a [`Feed`] yields, in the order in which it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedItem {
    /// The first connection stands and all topics are subscribed: from here on nothing is missed until
    /// [`FeedItem::Reconnected`]. Fetch what is older now.
    Connected,
    /// A connection stands again after one was lost, maybe to another server; notifications between the two are gone. Fetch
    /// them.
    Reconnected,
    /// A notification of a subscribed topic.
    Event(FeedEvent),
    /// The server sent something that is no notification of its topic: its fault. The feed goes on.
    Invalid {
        /// The topic that it came under.
        topic: Topic,
        /// What is wrong with it.
        reason: String,
    },
}

/// How a [`Feed`] connects and waits.
#[derive(Clone, Debug)]
pub struct FeedConfig {
    /// Limits of the connection.
    pub client: ClientConfig,
    /// How many events are held for the consumer at most.
    pub buffer_events: usize,
    /// First pause before connecting again.
    pub backoff_initial_ms: u64,
    /// Longest pause before connecting again.
    pub backoff_max_ms: u64,
}

impl Default for FeedConfig {
    fn default() -> Self {
        Self {
            client: ClientConfig::default(),
            buffer_events: FEED_BUFFER_EVENTS,
            backoff_initial_ms: FEED_BACKOFF_INITIAL_MS,
            backoff_max_ms: FEED_BACKOFF_MAX_MS,
        }
    }
}

/// Notifications of several topics from one server, or from whichever leads of several, over as many connections as it
/// takes. Notifications of one topic
/// arrive in the server's order; between topics there is no order. A consumer that is too slow loses its connection,
/// not memory, and sees [`FeedItem::Reconnected`]. Ends when dropped.
#[derive(Debug)]
pub struct Feed {
    items: mpsc::Receiver<FeedItem>,
    task: JoinHandle<()>,
}

impl Feed {
    /// Starts following; must be called inside a Tokio runtime. The URL (`ws://…`) is checked when it is first used;
    /// faults of it are logged at every attempt.
    pub fn start(url: impl Into<String>, topics: impl Into<Vec<Topic>>, config: FeedConfig) -> Self {
        Self::start_at_any(vec![url.into()], topics, config)
    }

    /// [`Feed::start`] at whichever of these servers leads: when a connection ends or does not begin, or the server stands
    /// by, the next one is tried at once, and there is a pause after as many failures as there are servers. Where there are
    /// several, one that gives no sign of life is left after seconds. One that says when to come back is left alone until then.
    pub fn start_at_any(urls: Vec<String>, topics: impl Into<Vec<Topic>>, mut config: FeedConfig) -> Self {
        let (sender, items) = mpsc::channel(config.buffer_events.max(1));
        if urls.len() > 1 {
            let client = &mut config.client;
            client.ping_interval_ms = client.ping_interval_ms.min(SEVERAL_PING_INTERVAL_MS);
            client.ping_inactive_ms = client.ping_inactive_ms.min(SEVERAL_PING_INACTIVE_MS);
            // Whoever leads next does so within seconds, and needs its members.
            config.backoff_max_ms = config.backoff_max_ms.min(SEVERAL_MAX_PAUSE_MS);
        }
        let task = spawn(follow(urls, topics.into(), config, sender));
        Self { items, task }
    }

    /// The next item; waits through any outage. `None` only if the runtime is going away. Cancel-safe.
    pub async fn next(&mut self) -> Option<FeedItem> {
        self.items.recv().await
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Why one connection ended or did not begin.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error(transparent)]
    Connect(#[from] ClientBuildError),
    #[error("subscription refused: {0}")]
    Subscribe(ReceivedError),
    #[error("the connection or a subscription was closed")]
    Closed,
    #[error(transparent)]
    Socket(#[from] tungstenite::Error),
    #[error("the server ended the subscription: {0}")]
    Ended(String),
    #[error("the server gives no sign of life")]
    Silent,
    #[error("the server sent something that was not asked for")]
    Unexpected,
    #[error("the server sent no message of the feed: {0}")]
    Frame(#[from] FrameError),
    #[error("what came was not taken in time")]
    Behind,
    #[error("no topic is asked for")]
    NoTopics,
    #[error("nobody listens any more")]
    ConsumerGone,
}

impl Lost {
    /// How long the server wants to be left alone.
    fn retry_after(&self) -> Option<Duration> {
        let Self::Subscribe(refused) = self else { return None };
        // Whatever stands there, nobody waits longer than we would tell.
        refused.retry_after().map(|told| Duration::from_millis(told_ms(told)))
    }
}

async fn follow(urls: Vec<String>, topics: Vec<Topic>, config: FeedConfig, items: mpsc::Sender<FeedItem>) {
    let mut connected_before = false;
    let mut pauses = Backoff::new(config.backoff_initial_ms, config.backoff_max_ms);
    let (mut server, mut round) = (0, Round::new(urls.len()));
    while let Some(url) = urls.get(server) {
        let shown = blindfold_telemetry::redact_url(url);
        let started = now();
        let lost = follow_once(url, &topics, &config, &items, &mut connected_before).await;
        if matches!(lost, Lost::ConsumerGone) || items.is_closed() {
            return;
        }
        if started.elapsed() >= Duration::from_millis(FEED_STABLE_MS) {
            pauses.reset();
            round.begin_again();
        }
        round.lost(server, lost.retry_after());
        let (next, is_over) = round.next(server, leader_of(&lost, &urls));
        server = next;
        if !is_over {
            tracing::warn!(url = shown, reason = %lost, "feed lost; trying another sequencer");
            continue;
        }
        let pause = pauses.pause().max(round.left(server));
        tracing::warn!(url = shown, reason = %lost, ?pause, "feed lost; connecting again");
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = items.closed() => return,
        }
    }
}

/// Which of these a server named that stands by.
fn leader_of(lost: &Lost, urls: &[String]) -> Option<usize> {
    let Lost::Subscribe(ReceivedError::Refused(refusal)) = lost else { return None };
    let leader = refusal.leader.as_ref()?;
    urls.iter().position(|url| same_server(&url.replacen("ws", "http", 1), leader))
}

/// What one topic's subscription gives; its end is the connection's.
type Notifications = BoxStream<'static, Result<Box<RawValue>, serde_json::Error>>;

enum Connection {
    Frames(Box<client::Frames>),
    Json(Calls),
}

enum Calls {
    Net(WsClient),
    Carried(Link),
}

impl Connection {
    async fn open(url: &str, config: &ClientConfig) -> Result<Self, Lost> {
        if let Some(carrier) = carrier() {
            return Ok(Self::Json(Calls::Carried(Link::new(carrier, url, config))));
        }
        match client::Frames::open(url, config).await? {
            Some(frames) => Ok(Self::Frames(Box::new(frames))),
            None => Ok(Self::Json(Calls::Net(ws_client(url, config).await?))),
        }
    }
}

impl Calls {
    async fn subscribe(&self, topic: Topic) -> Result<Notifications, ClientError> {
        match self {
            Self::Net(client) => {
                let subscription: Subscription<Box<RawValue>> =
                    client.subscribe_topic(topic.as_str().to_owned()).await?;
                Ok(subscription.boxed())
            }
            Self::Carried(link) => Ok(link.topic(topic).await?.boxed()),
        }
    }
}

async fn follow_once(
    url: &str,
    topics: &[Topic],
    config: &FeedConfig,
    items: &mpsc::Sender<FeedItem>,
    connected_before: &mut bool,
) -> Lost {
    let connection = match Connection::open(url, &config.client).await {
        Ok(Connection::Frames(frames)) => return frames.follow(topics, items, connected_before).await,
        Ok(Connection::Json(calls)) => calls,
        Err(lost) => return lost,
    };
    let mut notifications = SelectAll::new();
    for topic in topics.iter().copied() {
        let subscription = match connection.subscribe(topic).await {
            Ok(subscription) => subscription,
            Err(error) => return Lost::Subscribe(error.into()),
        };
        // The end of one subscription must end the connection, so it is made an item: a merged stream would go on
        // with the others in silence.
        let ended = futures::stream::once(async { None });
        notifications.push(subscription.map(move |raw| Some((topic, raw))).chain(ended).boxed());
    }
    let first = if *connected_before { FeedItem::Reconnected } else { FeedItem::Connected };
    if items.send(first).await.is_err() {
        return Lost::ConsumerGone;
    }
    *connected_before = true;
    loop {
        let notification = tokio::select! {
            notification = notifications.next() => notification,
            () = items.closed() => return Lost::ConsumerGone,
        };
        let Some(Some((topic, raw))) = notification else { return Lost::Closed };
        let parsed = raw.and_then(|raw| FeedEvent::parse(topic, raw.get()));
        let item = match parsed {
            Ok(event) => FeedItem::Event(event),
            Err(fault) => FeedItem::Invalid { topic, reason: fault.to_string() },
        };
        if items.send(item).await.is_err() {
            return Lost::ConsumerGone;
        }
    }
}
