//! A recording relay in front of the sequencer.
//!
//! Every role of a smoke run reaches the sequencer through it, each under a path of its own (`/member-1`,
//! `/full-node`, …), so that a recording says who saw what and when. The checker reads the recording; it never
//! asks the sender. A *tamper rule* may alter or add frames on their way to one role: that is how forged hints,
//! forged certificates and second headers are injected.
//!
//! HTTP `POST` bodies and WebSocket text frames are relayed; anything else is refused.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    body::Bytes,
    extract::{
        FromRequestParts, Path, Request, State, WebSocketUpgrade,
        ws::{Message, WebSocket},
    },
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::any,
};
use futures::{SinkExt, StreamExt};
use parking_lot::Mutex;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_tungstenite::tungstenite::Message as Upstream;

/// Longest relayed body or frame, in bytes.
const MAX_RELAYED_BYTES: usize = 64 * 1024 * 1024;

/// Which way a recorded text went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From a role to the sequencer.
    ToSequencer,
    /// From the sequencer to a role.
    FromSequencer,
}

/// One recorded request, response or frame.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Unix time in milliseconds at which the relay had the whole text.
    pub at_ms: u64,
    /// The path segment under which the role connected.
    pub role: String,
    /// One HTTP exchange or one WebSocket connection: within it, JSON-RPC ids pair requests with responses.
    pub exchange: u64,
    /// Which way it went.
    pub direction: Direction,
    /// The text as relayed to the sequencer, or as the sequencer sent it (before tampering).
    pub text: String,
}

/// Alters what a role receives: returns the frames to deliver instead of `text`, or `None` to leave it alone.
pub type Tamper = Box<dyn FnMut(&str, &str) -> Option<Vec<String>> + Send>;

/// A running relay.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

struct Shared {
    upstream: SocketAddr,
    http: reqwest::Client,
    exchanges: AtomicU64,
    recording: Mutex<Vec<Recorded>>,
    tamper: Mutex<Vec<Tamper>>,
}

/// Unix time in milliseconds.
#[must_use]
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as u64)
}

impl Relay {
    /// Listens on `listen` (port 0 picks one) and relays to the sequencer's RPC at `upstream`.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn start(listen: SocketAddr, upstream: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            upstream,
            http: crate::http_client(),
            exchanges: AtomicU64::new(0),
            recording: Mutex::new(Vec::new()),
            tamper: Mutex::new(Vec::new()),
        });
        let router = Router::new().route("/{role}", any(relay_request)).with_state(shared.clone());
        let server = tokio::spawn(async move {
            // The relay lives as long as its listener; a failing accept loop ends the run's traffic, which the checker sees.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, shared, server })
    }

    /// The WebSocket URL for `role`.
    #[must_use]
    pub fn ws_url(&self, role: &str) -> String {
        format!("ws://{}/{role}", self.address)
    }

    /// The HTTP URL for `role`.
    #[must_use]
    pub fn http_url(&self, role: &str) -> String {
        format!("http://{}/{role}", self.address)
    }

    /// Everything relayed so far, in order of arrival.
    #[must_use]
    pub fn recording(&self) -> Vec<Recorded> {
        self.shared.recording.lock().clone()
    }

    /// Adds a rule that sees every text on its way from the sequencer to a role.
    pub fn tamper(&self, rule: Tamper) {
        self.shared.tamper.lock().push(rule);
    }

    /// Puts a text into the recording as if it had been relayed; the checker's self-test uses it.
    pub fn record(&self, role: &str, direction: Direction, text: &str) {
        self.shared.record(role, self.shared.exchange(), direction, text);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    fn exchange(&self) -> u64 {
        self.exchanges.fetch_add(1, Ordering::Relaxed)
    }

    fn record(&self, role: &str, exchange: u64, direction: Direction, text: &str) {
        self.recording.lock().push(Recorded {
            at_ms: now_ms(),
            role: role.to_owned(),
            exchange,
            direction,
            text: text.to_owned(),
        });
    }

    /// Applies the tamper rules in order; the first that answers decides.
    fn delivered(&self, role: &str, text: String) -> Vec<String> {
        for rule in self.tamper.lock().iter_mut() {
            if let Some(frames) = rule(role, &text) {
                return frames;
            }
        }
        vec![text]
    }
}

async fn relay_request(
    State(shared): State<Arc<Shared>>,
    Path(role): Path<String>,
    request: Request,
) -> Response {
    let (mut parts, body) = request.into_parts();
    if let Ok(upgrade) = WebSocketUpgrade::from_request_parts(&mut parts, &shared).await {
        return upgrade
            .max_message_size(MAX_RELAYED_BYTES)
            .max_frame_size(MAX_RELAYED_BYTES)
            .on_upgrade(move |socket| relay_socket(shared, role, socket));
    }
    let Ok(body) = axum::body::to_bytes(body, MAX_RELAYED_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    match relay_post(&shared, &role, body).await {
        Ok(response) => response,
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

async fn relay_post(shared: &Shared, role: &str, body: Bytes) -> Result<Response, reqwest::Error> {
    let exchange = shared.exchange();
    shared.record(role, exchange, Direction::ToSequencer, &String::from_utf8_lossy(&body));
    let response = shared
        .http
        .post(format!("http://{}/", shared.upstream))
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await?;
    let status = StatusCode::from_u16(response.status().as_u16()).unwrap_or(StatusCode::BAD_GATEWAY);
    let text = response.text().await?;
    shared.record(role, exchange, Direction::FromSequencer, &text);
    // A response is one text: only an altered one can be delivered, never an additional one.
    let text = shared.delivered(role, text).into_iter().next().unwrap_or_default();
    Ok((status, [("content-type", "application/json")], text).into_response())
}

async fn relay_socket(shared: Arc<Shared>, role: String, socket: WebSocket) {
    let url = format!("ws://{}/", shared.upstream);
    let config = tokio_tungstenite::tungstenite::protocol::WebSocketConfig::default()
        .max_message_size(Some(MAX_RELAYED_BYTES))
        .max_frame_size(Some(MAX_RELAYED_BYTES));
    // A role that finds no sequencer behind the relay sees its connection close, as it would without the relay.
    let Ok((upstream, _)) = tokio_tungstenite::connect_async_with_config(url, Some(config), true).await
    else {
        return;
    };
    let exchange = shared.exchange();
    let (mut to_upstream, mut from_upstream) = upstream.split();
    let (mut to_role, mut from_role) = socket.split();
    let inbound = async {
        while let Some(Ok(message)) = from_role.next().await {
            let forwarded = match message {
                Message::Text(text) => {
                    shared.record(&role, exchange, Direction::ToSequencer, &text);
                    Upstream::Text(text.as_str().into())
                }
                Message::Ping(bytes) => Upstream::Ping(bytes),
                Message::Close(_) => break,
                Message::Binary(_) | Message::Pong(_) => continue,
            };
            if to_upstream.send(forwarded).await.is_err() {
                break;
            }
        }
    };
    let outbound = async {
        'frames: while let Some(Ok(message)) = from_upstream.next().await {
            match message {
                Upstream::Text(text) => {
                    shared.record(&role, exchange, Direction::FromSequencer, &text);
                    for frame in shared.delivered(&role, text.as_str().to_owned()) {
                        if to_role.send(Message::Text(frame.into())).await.is_err() {
                            break 'frames;
                        }
                    }
                }
                Upstream::Ping(bytes) => {
                    if to_role.send(Message::Ping(bytes)).await.is_err() {
                        break;
                    }
                }
                Upstream::Close(_) => break,
                Upstream::Binary(_) | Upstream::Pong(_) | Upstream::Frame(_) => {}
            }
        }
    };
    tokio::select! { () = inbound => {}, () = outbound => {} }
}
