//! The consumer's side of the binary feed (J-9).

use std::{collections::VecDeque, io, sync::Arc, time::Duration};

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use blindfold_runtime::now;
use blindfold_tls::rustls::pki_types::ServerName;
use futures::{SinkExt, Stream, StreamExt};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::mpsc,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        self, Bytes, Message,
        client::IntoClientRequest,
        error::{ProtocolError, SubProtocolError},
        handshake::client::Request,
        protocol::WebSocketConfig,
    },
};

use super::{FEED_SUBPROTOCOL, FeedFrame, FeedItem, FeedRequest, Lost};
use crate::{
    ClientConfig, HELLO_HEADER, ReceivedError, RpcError, Topic,
    client::{CONNECTION_STEPS, connect_error, is_secure, tls_of},
    turned_away,
};

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for S {}

/// A connection that carries the binary feed.
pub(super) struct Frames {
    socket: WebSocketStream<Box<dyn Io>>,
    config: ClientConfig,
}

/// Why there is no binary feed.
enum NoFrames {
    /// The server has none: an older one.
    Older,
    /// The server has no room, and says when to come back.
    Refused(RpcError),
    Failed(String),
}

impl From<io::Error> for NoFrames {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Frames {
    /// Connects; none at a server that has no binary feed.
    pub(super) async fn open(url: &str, config: &ClientConfig) -> Result<Option<Self>, Lost> {
        let secure = is_secure(url, "ws", "wss", "ws:// or wss://")?;
        let tls = if secure { Some(TlsConnector::from(Arc::new(tls_of(url, config)?))) } else { None };
        let mut headers = HeaderMap::new();
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(FEED_SUBPROTOCOL));
        if let Some(introduction) = &config.introduction
            && let Some(value) = introduction.header().await
        {
            headers.insert(HELLO_HEADER, value);
        }
        let limit = Duration::from_millis(config.connect_timeout_ms);
        let connecting = connect(url, config, tls, headers);
        match timeout(limit.saturating_mul(CONNECTION_STEPS), connecting).await {
            Ok(Ok(socket)) => Ok(Some(Self { socket, config: config.clone() })),
            Ok(Err(NoFrames::Older)) => Ok(None),
            Ok(Err(NoFrames::Refused(refusal))) => Err(Lost::Subscribe(ReceivedError::Refused(refusal))),
            Ok(Err(NoFrames::Failed(reason))) => Err(connect_error(url, &reason).into()),
            Err(_) => Err(connect_error(url, "the server did not finish the handshake in time").into()),
        }
    }

    /// Subscribes and hands notifications on until the connection is lost.
    pub(super) async fn follow(
        self,
        topics: &[Topic],
        items: &mpsc::Sender<FeedItem>,
        connected_before: &mut bool,
    ) -> Lost {
        match self.run(topics, items, connected_before).await {
            Ok(never) => match never {},
            Err(lost) => lost,
        }
    }

    async fn run(
        self,
        topics: &[Topic],
        items: &mpsc::Sender<FeedItem>,
        connected_before: &mut bool,
    ) -> Result<std::convert::Infallible, Lost> {
        let Self { socket, config } = self;
        let (mut sink, mut stream) = socket.split();
        let Some(request) = FeedRequest::new(topics) else { return Err(Lost::NoTopics) };
        sink.send(Message::binary(request.encode())).await?;
        let answer = timeout(Duration::from_millis(config.request_timeout_ms), binary(&mut stream)).await;
        match FeedFrame::decode(&answer.map_err(|_| Lost::Silent)??) {
            Ok(FeedFrame::Subscribed) => {}
            Ok(FeedFrame::Refused(refusal)) => return Err(Lost::Subscribe(ReceivedError::Refused(refusal))),
            Ok(FeedFrame::Event(_) | FeedFrame::Ended(_)) => return Err(Lost::Unexpected),
            Err(fault) => return Err(fault.into()),
        }
        let first = if *connected_before { FeedItem::Reconnected } else { FeedItem::Connected };
        *connected_before = true;

        let most = config.subscription_buffer_messages.max(1);
        let patience = Duration::from_millis(config.ping_inactive_ms);
        let mut pings = interval(Duration::from_millis(config.ping_interval_ms.max(1)));
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.reset();
        let mut heard = now();
        // What the consumer has not taken yet. The connection is read meanwhile, or it would look dead at its other end.
        let mut waiting = VecDeque::from([first]);
        loop {
            tokio::select! {
                biased;
                place = items.reserve(), if !waiting.is_empty() => {
                    let place = place.map_err(|_| Lost::ConsumerGone)?;
                    if let Some(item) = waiting.pop_front() {
                        place.send(item);
                    }
                }
                () = items.closed(), if waiting.is_empty() => return Err(Lost::ConsumerGone),
                message = stream.next() => {
                    heard = now();
                    let Some(bytes) = data(message)? else { continue };
                    if waiting.len() >= most {
                        return Err(Lost::Behind);
                    }
                    waiting.push_back(item(&bytes, topics)?);
                }
                _ = pings.tick() => {
                    if heard.elapsed() >= patience {
                        return Err(Lost::Silent);
                    }
                    sink.send(Message::Ping(Bytes::new())).await?;
                }
            }
        }
    }
}

async fn connect(
    url: &str,
    config: &ClientConfig,
    tls: Option<TlsConnector>,
    headers: HeaderMap,
) -> Result<WebSocketStream<Box<dyn Io>>, NoFrames> {
    let invalid = |what: &str| NoFrames::Failed(format!("the URL has {what}"));
    let uri: Uri = url.parse().map_err(|_| invalid("no valid form"))?;
    let host = uri.host().ok_or_else(|| invalid("no host"))?.trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
    let mut request: Request = uri.clone().into_client_request().map_err(|fault| refused(&fault))?;
    request.headers_mut().extend(headers);
    let user = uri.authority().and_then(|authority| authority.as_str().rsplit_once('@'));
    if let Some((user, _)) = user
        && let Ok(value) = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(user)))
    {
        request.headers_mut().insert(header::AUTHORIZATION, value);
    }
    let limit = Duration::from_millis(config.connect_timeout_ms);
    let connected = timeout(limit, TcpStream::connect((host.as_str(), port))).await;
    let stream = connected.map_err(|_| NoFrames::Failed("no connection in time".to_owned()))??;
    stream.set_nodelay(true)?;
    let stream: Box<dyn Io> = match tls {
        Some(tls) => {
            let name =
                ServerName::try_from(host).map_err(|_| invalid("a host that no certificate can name"))?;
            Box::new(tls.connect(name, stream).await?)
        }
        None => Box::new(stream),
    };
    let most = config.max_response_bytes as usize;
    let limits = WebSocketConfig::default().max_message_size(Some(most)).max_frame_size(Some(most));
    match client_async_with_config(request, stream, Some(limits)).await {
        Ok((socket, _)) => Ok(socket),
        Err(fault) => Err(refused(&fault)),
    }
}

/// What a failed handshake says of the server.
fn refused(fault: &tungstenite::Error) -> NoFrames {
    const NO_SUBPROTOCOL: ProtocolError =
        ProtocolError::SecWebSocketSubProtocolError(SubProtocolError::NoSubProtocol);
    match fault {
        tungstenite::Error::Protocol(fault) if *fault == NO_SUBPROTOCOL => NoFrames::Older,
        tungstenite::Error::Http(response) => match response.status() {
            // What stands between may know no subprotocols.
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::NOT_IMPLEMENTED => NoFrames::Older,
            status => match turned_away::of_handshake(response) {
                Some(refusal) => NoFrames::Refused(refusal),
                // In the words of the JSON-RPC library, by which advice is given.
                None => {
                    NoFrames::Failed(format!("Connection rejected with status code: {}", status.as_u16()))
                }
            },
        },
        fault => NoFrames::Failed(fault.to_string()),
    }
}

type Received = Option<Result<Message, tungstenite::Error>>;

/// The bytes of a message that has some.
fn data(message: Received) -> Result<Option<Bytes>, Lost> {
    match message.ok_or(Lost::Closed)?? {
        Message::Binary(bytes) => Ok(Some(bytes)),
        Message::Ping(_) | Message::Pong(_) => Ok(None),
        Message::Close(_) => Err(Lost::Closed),
        Message::Text(_) | Message::Frame(_) => Err(Lost::Unexpected),
    }
}

/// The next message that has bytes.
async fn binary(
    stream: &mut (impl Stream<Item = Result<Message, tungstenite::Error>> + Unpin),
) -> Result<Bytes, Lost> {
    loop {
        if let Some(bytes) = data(stream.next().await)? {
            return Ok(bytes);
        }
    }
}

/// What a message of a subscription means. One that is damaged is its topic's alone.
fn item(bytes: &Bytes, topics: &[Topic]) -> Result<FeedItem, Lost> {
    match FeedFrame::decode(bytes) {
        Ok(FeedFrame::Event(event)) if topics.contains(&event.topic()) => Ok(FeedItem::Event(event)),
        Ok(FeedFrame::Ended(reason)) => Err(Lost::Ended(reason)),
        Ok(_) => Err(Lost::Unexpected),
        Err(fault) => match FeedFrame::topic(bytes).filter(|topic| topics.contains(topic)) {
            Some(topic) => Ok(FeedItem::Invalid { topic, reason: fault.to_string() }),
            None => Err(fault.into()),
        },
    }
}
