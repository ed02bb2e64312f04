//! The server's side of subscriptions: each notification is serialized once, as JSON and as a message of the binary feed
//! where each has subscribers, and handed to every subscriber of its topic; a subscriber that cannot keep up is dropped,
//! and nobody waits for it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use jsonrpsee::{
    Extensions, PendingSubscriptionSink, SendTimeoutError, SubscriptionMessage,
    core::{SubscriptionError, SubscriptionResult},
};
use serde_json::value::RawValue;
use tokio::sync::{
    broadcast::{self, error::RecvError},
    watch,
};
use tokio_tungstenite::tungstenite::Bytes;

use crate::{
    FeedEvent, RpcError, Topic,
    answers::{Purpose, Recipient},
    feed::{FeedRequest, encode_event},
    limits::{SLOW_CONSUMER_MS, TOPIC_BUFFER_MESSAGES},
};

/// Fans notifications out by topic. Clones share the subscribers.
#[derive(Clone, Debug)]
pub struct Hub {
    topics: Arc<[broadcast::Sender<Arc<RawValue>>; Topic::ALL.len()]>,
    frames: Frames,
    /// Counts up when all subscriptions end.
    ended: watch::Sender<u64>,
}

impl Default for Hub {
    fn default() -> Self {
        Self::new(TOPIC_BUFFER_MESSAGES)
    }
}

impl Hub {
    /// `buffer_messages` may wait for the slowest subscriber of a topic.
    pub fn new(buffer_messages: usize) -> Self {
        let topics = std::array::from_fn(|_| broadcast::channel(buffer_messages.max(1)).0);
        Self { topics: Arc::new(topics), frames: Frames::new(buffer_messages), ended: watch::Sender::new(0) }
    }

    fn topic(&self, topic: Topic) -> &broadcast::Sender<Arc<RawValue>> {
        // `Topic::ALL` lists the variants in their order.
        &self.topics[topic as usize]
    }

    /// Sends a notification to the subscribers of its topic and says how many there are. Never waits.
    pub fn publish(&self, event: &FeedEvent) -> usize {
        self.publish_text(event) + self.frames.publish(event)
    }

    fn publish_text(&self, event: &FeedEvent) -> usize {
        let sender = self.topic(event.topic());
        if sender.receiver_count() == 0 {
            return 0;
        }
        match event.to_raw() {
            Ok(raw) => sender.send(raw.into()).unwrap_or(0),
            Err(error) => {
                tracing::error!(topic = event.topic().as_str(), %error, "notification could not be serialized");
                0
            }
        }
    }

    /// Ends every subscription with an error, so that subscribers know that they have to catch up: what was missed here is not
    /// published any more.
    pub fn end_all(&self) {
        self.ended.send_modify(|count| *count += 1);
    }

    /// How many subscribers a topic has.
    pub fn subscribers(&self, topic: Topic) -> usize {
        self.topic(topic).receiver_count() + self.frames.subscribers(topic)
    }

    /// Subscribes topics as messages of the binary feed: nothing that is published from here on is missed.
    pub(crate) fn subscribe(&self, request: &FeedRequest) -> FrameSubscription {
        let topics = Topic::ALL.map(|topic| request.topics().contains(&topic));
        // Counted first: what is published once the receiver is there must be encoded.
        let counted = Counted::new(topics, Arc::clone(&self.frames.subscribers));
        FrameSubscription { counted, frames: self.frames.sender.subscribe(), ended: self.ended.subscribe() }
    }

    /// Serves one subscription until it ends; what `BlindApiServer::subscribe_topic` calls. Its notifications count
    /// against the server's budget of answers until they are written.
    pub async fn attach(
        &self,
        pending: PendingSubscriptionSink,
        extensions: &Extensions,
        topic: &str,
    ) -> SubscriptionResult {
        let Some(topic) = Topic::ALL.into_iter().find(|known| known.as_str() == topic) else {
            let message =
                format!("topic {topic:.32?} is none of headers, certificates, releases, hints, blocks");
            pending.reject(RpcError::invalid_params("unknown_topic", message)).await;
            return Ok(());
        };
        // Before accepting: what is published from the acceptance on must arrive.
        let mut notifications = self.topic(topic).subscribe();
        let mut ended = self.ended.subscribe();
        let Ok(sink) = pending.accept().await else { return Ok(()) };
        let patience = Duration::from_millis(SLOW_CONSUMER_MS);
        let recipient = extensions.get::<Recipient>();
        loop {
            let notification = tokio::select! {
                () = sink.closed() => return Ok(()),
                Ok(()) = ended.changed() => {
                    return Err(SubscriptionError::from(MISSED));
                }
                notification = notifications.recv() => notification,
            };
            let dropped = match notification {
                Ok(raw) => {
                    if !room(recipient, raw.get().len(), patience).await {
                        "too many answers wait unread".to_owned()
                    } else {
                        let message = SubscriptionMessage::from(raw.as_ref().to_owned());
                        match sink.send_timeout(message, patience).await {
                            Ok(()) => continue,
                            Err(SendTimeoutError::Closed(_)) => return Ok(()),
                            Err(SendTimeoutError::Timeout(_)) => {
                                recipient.inspect(|recipient| recipient.outbox.written(raw.get().len()));
                                "its connection does not drain".to_owned()
                            }
                        }
                    }
                }
                Err(RecvError::Lagged(missed)) => format!("it fell {missed} notifications behind"),
                Err(RecvError::Closed) => return Ok(()),
            };
            tracing::warn!(topic = topic.as_str(), reason = dropped, "dropped a slow subscriber");
            // An error ends the subscription at the client, too, which then knows to catch up.
            return Err(SubscriptionError::from(too_slow(&dropped)));
        }
    }
}

/// Notifications as the binary feed has them, of all topics in one order: whoever wants a certificate wants its header
/// before.
#[derive(Clone, Debug)]
struct Frames {
    sender: broadcast::Sender<(Topic, Bytes)>,
    /// By topic.
    subscribers: Arc<[AtomicUsize; Topic::ALL.len()]>,
}

impl Frames {
    fn new(buffer_messages: usize) -> Self {
        let messages = buffer_messages.max(1).saturating_mul(Topic::ALL.len());
        Self { sender: broadcast::channel(messages).0, subscribers: Arc::default() }
    }

    fn subscribers(&self, topic: Topic) -> usize {
        self.subscribers.get(topic as usize).map_or(0, |count| count.load(Ordering::SeqCst))
    }

    fn publish(&self, event: &FeedEvent) -> usize {
        let topic = event.topic();
        let subscribers = self.subscribers(topic);
        // It fails where the last of them has just gone.
        let sent = subscribers > 0 && self.sender.send((topic, encode_event(event).into())).is_ok();
        if sent { subscribers } else { 0 }
    }
}

/// One subscriber, in the counts of its topics.
#[derive(Debug)]
struct Counted {
    topics: [bool; Topic::ALL.len()],
    subscribers: Arc<[AtomicUsize; Topic::ALL.len()]>,
}

impl Counted {
    fn new(topics: [bool; Topic::ALL.len()], subscribers: Arc<[AtomicUsize; Topic::ALL.len()]>) -> Self {
        let counted = Self { topics, subscribers };
        counted.each(|count| count.fetch_add(1, Ordering::SeqCst));
        counted
    }

    fn each(&self, change: impl Fn(&AtomicUsize) -> usize) {
        for (count, wanted) in self.subscribers.iter().zip(self.topics) {
            if wanted {
                change(count);
            }
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.each(|count| count.fetch_sub(1, Ordering::SeqCst));
    }
}

/// One subscription of the binary feed.
#[derive(Debug)]
pub(crate) struct FrameSubscription {
    counted: Counted,
    frames: broadcast::Receiver<(Topic, Bytes)>,
    ended: watch::Receiver<u64>,
}

impl FrameSubscription {
    /// The next message, or why there is none any more. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Bytes, String> {
        loop {
            let frame = tokio::select! {
                Ok(()) = self.ended.changed() => return Err(MISSED.to_owned()),
                frame = self.frames.recv() => frame,
            };
            match frame {
                Ok((topic, frame)) if self.counted.topics.get(topic as usize) == Some(&true) => {
                    return Ok(frame);
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    return Err(too_slow(&format!("it fell {missed} notifications behind")));
                }
                Err(RecvError::Closed) => return Err("the server ends".to_owned()),
            }
        }
    }
}

/// What is said to a subscriber when its subscription ends though it kept up.
const MISSED: &str = "notifications were missed here: catch up";

/// What is said to one that did not.
pub(crate) fn too_slow(how: &str) -> String {
    format!("too slow: {how}")
}

/// Waits for a notification's part of the budget, which its connection gives back when it is written.
pub(crate) async fn room(recipient: Option<&Recipient>, raw_bytes: usize, patience: Duration) -> bool {
    let Some(Recipient { budget, outbox, account, .. }) = recipient else { return true };
    let bytes = u64::try_from(raw_bytes).unwrap_or(u64::MAX);
    let lease = budget.take_within(*account, Purpose::Notification, bytes, patience).await;
    let room = lease.is_some();
    if room {
        outbox.push(raw_bytes, lease);
    }
    room
}
