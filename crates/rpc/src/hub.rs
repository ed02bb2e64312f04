//! The server's side of subscriptions: each notification is serialized once and handed to every subscriber of its
//! topic; a subscriber that cannot keep up is dropped, and nobody waits for it.

use std::{sync::Arc, time::Duration};

use jsonrpsee::{
    Extensions, PendingSubscriptionSink, SendTimeoutError, SubscriptionMessage,
    core::{SubscriptionError, SubscriptionResult},
};
use serde_json::value::RawValue;
use tokio::sync::{
    broadcast::{self, error::RecvError},
    watch,
};

use crate::{
    FeedEvent, RpcError, Topic,
    answers::{Purpose, Recipient},
    limits::{SLOW_CONSUMER_MS, TOPIC_BUFFER_MESSAGES},
};

/// Fans notifications out by topic. Clones share the subscribers.
#[derive(Clone, Debug)]
pub struct Hub {
    topics: Arc<[broadcast::Sender<Arc<RawValue>>; Topic::ALL.len()]>,
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
        Self { topics: Arc::new(topics), ended: watch::Sender::new(0) }
    }

    fn topic(&self, topic: Topic) -> &broadcast::Sender<Arc<RawValue>> {
        // `Topic::ALL` lists the variants in their order.
        &self.topics[topic as usize]
    }

    /// Sends a notification to the subscribers of its topic and says how many there are. Never waits.
    pub fn publish(&self, event: &FeedEvent) -> usize {
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
        self.topic(topic).receiver_count()
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
                    return Err(SubscriptionError::from("notifications were missed here: catch up"));
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
            return Err(SubscriptionError::from(format!("too slow: {dropped}")));
        }
    }
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
