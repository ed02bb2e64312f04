//! The server's side of the binary feed (J-9): one WebSocket for each consumer, beside those of JSON-RPC on the same port and
//! under the same limits. A consumer that cannot keep up is dropped, and nobody waits for it.

use std::{future::pending, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use blindfold_runtime::spawn;
use futures::{SinkExt, Stream, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use jsonrpsee::server::StopHandle;
use tokio::{
    sync::{mpsc, mpsc::error::SendTimeoutError, watch},
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Bytes, Message,
        handshake::derive_accept_key,
        protocol::{
            Role, WebSocketConfig,
            frame::{
                Frame,
                coding::{Data, OpCode},
            },
        },
    },
};

use super::{FEED_SUBPROTOCOL, FeedFrame, FeedRequest, FrameError, frame::REQUEST_BYTES};
use crate::{
    Hub, RpcError,
    answers::Recipient,
    hub::{FrameSubscription, room, too_slow},
    limits::{
        FEED_FAREWELL_MS, FEED_FRAME_BYTES, FEED_READ_BUFFER_BYTES, HEADER_TIMEOUT_MS, PING_INACTIVE_MS,
        PING_INTERVAL_MS, SLOW_CONSUMER_MS,
    },
    peers::Peers,
    server::{Panicked, status},
    turned_away,
};

/// The longest ping, by RFC 6455.
const MAX_CONTROL_BYTES: usize = 125;

/// What a server's binary feed tells.
#[derive(Clone, Debug)]
pub enum FeedSource {
    /// What is published here.
    Hub(Hub),
    /// That another sequencer leads: its URL, as far as it is known.
    StandingBy(watch::Receiver<Option<String>>),
}

/// The binary feed of one server.
pub(crate) struct Feeds {
    pub(crate) source: FeedSource,
    pub(crate) peers: Arc<Peers>,
    /// Messages that wait for one connection.
    pub(crate) buffer_messages: usize,
    pub(crate) panicked: Panicked,
    pub(crate) stop: StopHandle,
}

/// Whether a WebSocket is to carry the binary feed.
pub(crate) fn is_asked_for(headers: &HeaderMap) -> bool {
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter();
    let offered = offered.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    offered.into_iter().any(|protocol| protocol.trim() == FEED_SUBPROTOCOL)
}

impl Feeds {
    /// Answers the request for a WebSocket that [`is_asked_for`], and serves it from then on.
    pub(crate) fn accept(self: &Arc<Self>, mut request: Request) -> Response<Body> {
        let headers = request.headers();
        let key = headers.get(header::SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
        let accept = key.and_then(|key| HeaderValue::try_from(key).ok());
        let version = headers.get(header::SEC_WEBSOCKET_VERSION).map(HeaderValue::as_bytes);
        let (Some(accept), Some(b"13")) = (accept, version) else {
            return status(StatusCode::BAD_REQUEST, "no WebSocket handshake of version 13\n");
        };
        let recipient = request.extensions().get::<Recipient>().cloned();
        if let Some(recipient) = &recipient
            && !self.peers.may_call(recipient.account)
        {
            let refusal = turned_away::rate_limited(self.peers.time_for_a_call());
            return turned_away::response(StatusCode::TOO_MANY_REQUESTS, refusal);
        }
        let upgrade = hyper::upgrade::on(&mut request);
        // The connection's place, and its address's, are taken for as long as the feed goes on.
        let places = request.extensions().clone();
        let feeds = Arc::clone(self);
        spawn(async move {
            let served = feeds.serve(upgrade, recipient);
            feeds.panicked.watch("a feed", served).await;
            drop(places);
        });
        let mut response = status(StatusCode::SWITCHING_PROTOCOLS, "");
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(FEED_SUBPROTOCOL));
        response
    }

    async fn serve(&self, upgrade: OnUpgrade, recipient: Option<Recipient>) {
        let served = async {
            let limits = WebSocketConfig::default()
                .read_buffer_size(FEED_READ_BUFFER_BYTES)
                .max_message_size(Some(REQUEST_BYTES))
                // Of pings, too, which may carry something.
                .max_frame_size(Some(MAX_CONTROL_BYTES));
            let io = TokioIo::new(upgrade.await?);
            let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(limits)).await;
            self.talk(socket, recipient).await
        };
        let ended = tokio::select! {
            ended = served => ended,
            () = self.stop.clone().shutdown() => return,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a feed ended");
        }
    }

    async fn talk(
        &self,
        socket: WebSocketStream<TokioIo<Upgraded>>,
        recipient: Option<Recipient>,
    ) -> Result<(), Ended> {
        let (mut sink, mut stream) = socket.split();
        let asked = timeout(Duration::from_millis(HEADER_TIMEOUT_MS), next(&mut stream)).await;
        let request = FeedRequest::decode(&asked.map_err(|_| Ended::Silent)??)?;
        let hub = match &self.source {
            FeedSource::Hub(hub) => hub,
            FeedSource::StandingBy(leader) => {
                let refusal = RpcError::standing_by(leader.borrow().as_deref());
                return farewell(&mut sink, FeedFrame::Refused(refusal)).await;
            }
        };
        let mut subscription = hub.subscribe(&request);
        sink.send(Message::binary(FeedFrame::Subscribed.encode())).await?;

        let (queue, mut queued) = mpsc::channel(self.buffer_messages.max(1));
        let reason = {
            let sending = async {
                let mut pings = interval(Duration::from_millis(PING_INTERVAL_MS));
                pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
                pings.reset();
                loop {
                    let sent = tokio::select! {
                        message = queued.recv() => match message {
                            Some(message) => send(&mut sink, &message).await,
                            // The queue's other end is there as long as this is polled.
                            None => pending().await,
                        },
                        _ = pings.tick() => sink.send(Message::Ping(Bytes::new())).await,
                    };
                    if let Err(fault) = sent {
                        return Err(Ended::from(fault));
                    }
                }
            };
            let queueing = queue_all(&mut subscription, &queue, recipient.as_ref());
            tokio::select! {
                reason = queueing => reason,
                ended = sending => return ended,
                ended = listen(&mut stream) => return ended,
            }
        };
        tracing::warn!(topics = ?request.topics(), reason, "a feed's subscription was ended");
        farewell(&mut sink, FeedFrame::Ended(reason)).await
    }
}

/// Why a feed's connection ends.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error(transparent)]
    Upgrade(#[from] hyper::Error),
    #[error(transparent)]
    Socket(#[from] tungstenite::Error),
    #[error(transparent)]
    Request(#[from] FrameError),
    #[error("the consumer hung up")]
    HungUp,
    #[error("the consumer gave no sign of life")]
    Silent,
    #[error("the consumer sent something after its request")]
    Unasked,
}

/// Moves notifications to the connection's queue, each with its part of the budget of answers, until that cannot be done any
/// more; says why.
async fn queue_all(
    subscription: &mut FrameSubscription,
    queue: &mpsc::Sender<Bytes>,
    recipient: Option<&Recipient>,
) -> String {
    let patience = Duration::from_millis(SLOW_CONSUMER_MS);
    loop {
        let frame = match subscription.next().await {
            Ok(frame) => frame,
            Err(reason) => return reason,
        };
        let bytes = frame.len();
        if !room(recipient, bytes, patience).await {
            return too_slow("too many answers wait unread");
        }
        match queue.send_timeout(frame, patience).await {
            Ok(()) => {}
            Err(SendTimeoutError::Timeout(_) | SendTimeoutError::Closed(_)) => {
                recipient.inspect(|recipient| recipient.outbox.written(bytes));
                return too_slow("its connection does not drain");
            }
        }
    }
}

/// Sends a message in frames of [`FEED_FRAME_BYTES`] at most: the library keeps room for the largest one that it wrote, for as
/// long as the connection lasts.
async fn send(
    sink: &mut (impl SinkExt<Message, Error = tungstenite::Error> + Unpin),
    message: &Bytes,
) -> Result<(), tungstenite::Error> {
    let frames = message.len().div_ceil(FEED_FRAME_BYTES).max(1);
    for number in 0..frames {
        let begin = number * FEED_FRAME_BYTES;
        let part = message.slice(begin..message.len().min(begin + FEED_FRAME_BYTES));
        let kind = if number == 0 { Data::Binary } else { Data::Continue };
        let frame = Frame::message(part, OpCode::Data(kind), number + 1 == frames);
        sink.send(Message::Frame(frame)).await?;
    }
    Ok(())
}

/// The consumer's next message.
async fn next(
    stream: &mut (impl Stream<Item = Result<Message, tungstenite::Error>> + Unpin),
) -> Result<Bytes, Ended> {
    loop {
        match stream.next().await.ok_or(Ended::HungUp)?? {
            Message::Binary(bytes) => return Ok(bytes),
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Close(_) => return Err(Ended::HungUp),
            Message::Text(_) | Message::Frame(_) => return Err(Ended::Unasked),
        }
    }
}

/// Answers pings, until the consumer is gone.
async fn listen(
    stream: &mut (impl Stream<Item = Result<Message, tungstenite::Error>> + Unpin),
) -> Result<(), Ended> {
    let patience = Duration::from_millis(PING_INACTIVE_MS);
    loop {
        let message = timeout(patience, stream.next()).await.map_err(|_| Ended::Silent)?;
        match message.ok_or(Ended::HungUp)?? {
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Close(_) => return Err(Ended::HungUp),
            Message::Binary(_) | Message::Text(_) | Message::Frame(_) => return Err(Ended::Unasked),
        }
    }
}

/// The last message, for a consumer that takes it soon.
async fn farewell(
    sink: &mut (impl SinkExt<Message, Error = tungstenite::Error> + Unpin),
    frame: FeedFrame,
) -> Result<(), Ended> {
    let told = async {
        sink.send(Message::binary(frame.encode())).await?;
        sink.close().await
    };
    match timeout(Duration::from_millis(FEED_FAREWELL_MS), told).await {
        Ok(told) => Ok(told?),
        Err(_) => Err(Ended::Silent),
    }
}
