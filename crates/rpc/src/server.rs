//! The server scaffolding: HTTP and WebSocket on one port.
//!
//! An Axum router hands every request to the JSON-RPC library's service. The connection loop is our own, because it
//! is where the limits on connections, header times and shutdown belong.

use std::{fmt, net::SocketAddr, panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{Response, StatusCode},
};
use blindfold_runtime::{panic_words, spawn};
use blindfold_tls::{ServerTls, ServerTlsFiles, TlsError};
use futures::FutureExt;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use jsonrpsee::{
    Extensions, Methods,
    core::middleware::RpcServiceBuilder,
    server::{BatchRequestConfig, PingConfig, Server, StopHandle, stop_channel, ws},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tower::{Service, ServiceExt};

use crate::{
    AllowedOrigins, CallObserver, Doorkeeper, Inbound, KnownPeer, Passthrough, PeerAddress,
    answers::{Budget, Outbox, Recipient},
    carrier,
    feed::{FeedSource, Feeds, is_asked_for},
    inbound::proxied_for,
    limits::{
        ACCEPT_RETRY_MS, CALL_TIMEOUT_MS, CONNECTION_BUFFER_MESSAGES, HEADER_TIMEOUT_MS, MAX_ANSWER_BYTES,
        MAX_ANSWER_BYTES_PER_ADDRESS, MAX_CALLS_PER_ADDRESS, MAX_CALLS_PER_REQUEST, MAX_CONNECTIONS,
        MAX_MESSAGE_BYTES, MAX_PEER_REQUEST_BYTES, MAX_READS_PER_ADDRESS, MAX_REQUEST_BYTES,
        MAX_SUBSCRIPTIONS_PER_CONNECTION, MAX_WAITERS_PER_ADDRESS, MAX_WEBSOCKET_ANSWER_BYTES,
        MAX_WEBSOCKET_REQUEST_BYTES, PING_INACTIVE_MS, PING_INTERVAL_MS, SHUTDOWN_GRACE_MS,
        WRITE_PATIENCE_MS,
    },
    middleware::{GuardLayer, Shared},
    peers::{Account, AddressPermit, Overload, Peers, Place},
    secure::{NoHandshake, handshake},
    turned_away,
    turns::Turns,
    wire::Wire,
};

/// How a server listens; [`ServerConfig::new`] fills in the limits of [`crate::limits`].
#[derive(Clone)]
pub struct ServerConfig {
    /// Where to listen; port 0 takes a free one.
    pub addr: SocketAddr,
    /// How many connections may be open at once.
    pub max_connections: u32,
    /// Whose address counts, and what one address may take.
    pub inbound: Inbound,
    /// Who tells peers from others; without it nobody is known.
    pub doorkeeper: Option<Doorkeeper>,
    /// Largest request of who is no peer; over WebSocket at most [`MAX_WEBSOCKET_REQUEST_BYTES`].
    pub max_request_bytes: u32,
    /// Largest answer; over WebSocket at most [`MAX_WEBSOCKET_ANSWER_BYTES`].
    pub max_response_bytes: u32,
    /// Most bytes of answers and notifications under way, or not written yet.
    pub max_answer_bytes: u64,
    /// Most of them for one address.
    pub max_answer_bytes_per_address: u64,
    /// How long a connection may refuse to take what is written to it.
    pub write_patience_ms: u64,
    /// Most calls in one JSON-RPC batch request.
    pub max_calls_per_request: u32,
    /// Most subscriptions on one connection.
    pub max_subscriptions_per_connection: u32,
    /// Messages that wait for one connection.
    pub connection_buffer_messages: u32,
    /// Which web pages may call.
    pub allowed_origins: AllowedOrigins,
    /// What its binary feed tells; without it there is none, and who asks for it gets JSON-RPC.
    pub feed: Option<FeedSource>,
    /// Is told of every finished call.
    pub observer: Option<CallObserver>,
    /// The files of its certificate, where it speaks TLS; none: those of `inbound`, if there are any.
    pub tls: Option<ServerTlsFiles>,
}

impl ServerConfig {
    /// The default limits on an address.
    pub fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            max_connections: MAX_CONNECTIONS,
            inbound: Inbound::default(),
            doorkeeper: None,
            max_request_bytes: MAX_REQUEST_BYTES,
            max_response_bytes: MAX_MESSAGE_BYTES,
            max_answer_bytes: MAX_ANSWER_BYTES,
            max_answer_bytes_per_address: MAX_ANSWER_BYTES_PER_ADDRESS,
            write_patience_ms: WRITE_PATIENCE_MS,
            max_calls_per_request: MAX_CALLS_PER_REQUEST,
            max_subscriptions_per_connection: MAX_SUBSCRIPTIONS_PER_CONNECTION,
            connection_buffer_messages: CONNECTION_BUFFER_MESSAGES,
            allowed_origins: AllowedOrigins::None,
            feed: None,
            observer: None,
            tls: None,
        }
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServerConfig")
            .field("addr", &self.addr)
            .field("max_connections", &self.max_connections)
            .field("max_request_bytes", &self.max_request_bytes)
            .field("allowed_origins", &self.allowed_origins)
            .finish_non_exhaustive()
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}: {cause}")]
    Bind {
        /// The address in the configuration.
        addr: SocketAddr,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// The PROXY protocol is switched on and no proxy is trusted.
    #[error("proxy_protocol needs trusted_proxies: nobody else's header is read")]
    NoTrustedProxy,
    /// It cannot speak TLS.
    #[error("{addr}: {fault}")]
    Tls {
        /// The address in the configuration.
        addr: SocketAddr,
        /// What is wrong with its files.
        fault: Box<TlsError>,
    },
    /// A limit is zero that must not be.
    #[error("the limit {0} must not be zero")]
    ZeroLimit(&'static str),
}

/// A running server. Dropping it stops the server, too, without waiting.
#[derive(Debug)]
pub struct ServerHandle {
    local_addr: SocketAddr,
    stop: jsonrpsee::server::ServerHandle,
    accepting: watch::Receiver<()>,
    panicked: Panicked,
    tls: Option<Arc<ServerTls>>,
}

impl ServerHandle {
    pub(crate) fn new(listening: Listening, stop: jsonrpsee::server::ServerHandle) -> Self {
        let Listening { local_addr, accepting, panicked } = listening;
        Self { local_addr, stop, accepting, panicked, tls: None }
    }

    /// What it shows, if it speaks TLS.
    pub const fn tls(&self) -> Option<&Arc<ServerTls>> {
        self.tls.as_ref()
    }

    /// Resolves when connections are taken no longer, or a call panicked: the server was stopped, or has a bug. Says so.
    pub fn ended(&self) -> impl Future<Output = String> + Send + 'static {
        let (mut accepting, panicked, addr) =
            (self.accepting.clone(), self.panicked.clone(), self.local_addr);
        async move {
            tokio::select! {
                biased;
                cause = panicked.cause() => cause,
                // The end of the accepting task drops the sender.
                Err(_) = accepting.changed() => format!("no connections are taken on {addr} any more"),
            }
        }
    }

    /// Where it listens, with the port it took.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Stops taking connections, lets calls under way finish for at most
    /// [`SHUTDOWN_GRACE_MS`](crate::limits::SHUTDOWN_GRACE_MS), and returns when the server is gone. False if some
    /// connection did not end in time.
    pub async fn shutdown(self) -> bool {
        // An error means that it is stopped already.
        let _ = self.stop.stop();
        tokio::time::timeout(Duration::from_millis(SHUTDOWN_GRACE_MS), self.stop.stopped()).await.is_ok()
    }

    /// Ends the server, and returns when its port is free. Its connections end by themselves.
    pub async fn close(self) {
        let ended = self.ended();
        // An error means that it is stopped already.
        let _ = self.stop.stop();
        ended.await;
    }
}

/// Starts a JSON-RPC server. A call goes to `methods` if they know it, else to `passthrough` if it allows it; calls
/// that would show a plaintext are refused with `plaintext_refused`, all others with `unknown_method`.
pub async fn serve(
    config: ServerConfig,
    methods: impl Into<Methods>,
    passthrough: Option<Passthrough>,
) -> Result<ServerHandle, ServeError> {
    for (limit, name) in [
        (config.max_connections, "max_connections"),
        (config.max_request_bytes, "max_request_bytes"),
        (config.max_response_bytes, "max_response_bytes"),
        (config.connection_buffer_messages, "connection_buffer_messages"),
        (config.inbound.max_connections_per_address, "max_connections_per_address"),
    ] {
        if limit == 0 {
            return Err(ServeError::ZeroLimit(name));
        }
    }
    for (limit, name) in [
        (config.max_answer_bytes, "max_answer_bytes"),
        (config.max_answer_bytes_per_address, "max_answer_bytes_per_address"),
        (config.write_patience_ms, "write_patience_ms"),
    ] {
        if limit == 0 {
            return Err(ServeError::ZeroLimit(name));
        }
    }
    if config.inbound.proxy_protocol && config.inbound.trusted_proxies.is_empty() {
        return Err(ServeError::NoTrustedProxy);
    }
    let methods = methods.into();
    if let Some(carrier) = carrier::carrier() {
        let knows_peers = config.doorkeeper.is_some();
        let (listening, stop) = carrier::listen(carrier, config.addr, methods, passthrough, knows_peers)?;
        return Ok(ServerHandle::new(listening, stop));
    }
    let files = config.tls.as_ref().or(config.inbound.tls.as_ref());
    let tls = files
        .map(ServerTls::open)
        .transpose()
        .map_err(|fault| ServeError::Tls { addr: config.addr, fault: Box::new(fault) })?;
    let inbound = Arc::new(config.inbound.clone());
    let peers = Peers::new(
        config.max_connections,
        inbound.max_connections_per_address,
        inbound.max_calls_per_address_per_second,
        config.doorkeeper.is_some(),
    );
    let calls = match config.max_calls_per_request {
        0 => BatchRequestConfig::Disabled,
        limit => BatchRequestConfig::Limit(limit),
    };
    let ping = PingConfig::new()
        .ping_interval(Duration::from_millis(PING_INTERVAL_MS))
        .inactive_limit(Duration::from_millis(PING_INACTIVE_MS));
    let limits = jsonrpsee::server::ServerConfig::builder()
        // Connections are counted where they are taken.
        .max_connections(u32::MAX)
        .max_response_body_size(config.max_response_bytes)
        .max_subscriptions_per_connection(config.max_subscriptions_per_connection)
        .set_batch_request_config(calls)
        .set_message_buffer_capacity(config.connection_buffer_messages)
        .enable_ws_ping(ping);
    let panicked = Panicked::default();
    let (stop_handle, stop) = stop_channel();
    let turns = Turns::new(MAX_CALLS_PER_ADDRESS);
    let guard = GuardLayer(Arc::new(Shared {
        methods: methods.clone(),
        passthrough,
        peers: Arc::clone(&peers),
        turns: Arc::clone(&turns),
        read_turns: Turns::new(MAX_READS_PER_ADDRESS),
        waiting_turns: Turns::new(MAX_WAITERS_PER_ADDRESS),
        observer: config.observer.clone(),
        panicked: panicked.clone(),
        max_response_bytes: config.max_response_bytes,
        max_websocket_answer_bytes: config.max_response_bytes.min(MAX_WEBSOCKET_ANSWER_BYTES),
        _alive: stop_handle.clone(),
    }));
    let services = |max_request_bytes| {
        Server::builder()
            .set_config(limits.clone().max_request_body_size(max_request_bytes).build())
            .set_rpc_middleware(RpcServiceBuilder::new().layer(guard.clone()))
            .to_service_builder()
    };
    let over_http = services(config.max_request_bytes);
    let of_peers = services(config.max_request_bytes.max(MAX_PEER_REQUEST_BYTES));
    let over_websocket = services(config.max_request_bytes.min(MAX_WEBSOCKET_REQUEST_BYTES));
    let origins = Arc::new(config.allowed_origins.clone());
    let budget = Budget::new(config.max_answer_bytes, config.max_answer_bytes_per_address);

    let feeds = config.feed.clone().map(|source| {
        Arc::new(Feeds {
            source,
            peers: Arc::clone(&peers),
            buffer_messages: config.connection_buffer_messages as usize,
            panicked: panicked.clone(),
            stop: stop_handle.clone(),
        })
    });
    let of_calls = stop_handle.clone();
    let front = Arc::new(Front {
        inbound: Arc::clone(&inbound),
        peers: Arc::clone(&peers),
        budget,
        turns,
        doorkeeper: config.doorkeeper.clone(),
    });
    let router = Router::new().fallback(move |mut request: Request| {
        let services = [&over_http, &of_peers, &over_websocket].map(Clone::clone);
        let (methods, of_calls) = (methods.clone(), of_calls.clone());
        let (front, origins, feeds) = (Arc::clone(&front), Arc::clone(&origins), feeds.clone());
        async move {
            if let Err(refusal) = front.receive(&mut request).await {
                return refusal;
            }
            if let Some(feeds) = feeds.filter(|_| is_feed(&request)) {
                let refused = origins.refuses_websocket(request.headers());
                return if refused { refused_origin() } else { feeds.accept(request) };
            }
            let [over_http, of_peers, over_websocket] = services;
            let services = match request.extensions().get::<KnownPeer>() {
                _ if ws::is_upgrade_request(&request) => over_websocket,
                Some(_) => of_peers,
                None => over_http,
            };
            answer(services.build(methods, of_calls), request, origins).await
        }
    });
    let patience = Duration::from_millis(config.write_patience_ms);
    let limits = Limits { peers, inbound, patience, panicked, tls: tls.clone() };
    let listening = listen(config.addr, router, limits, stop_handle.clone()).await?;
    if let Some(tls) = tls.clone() {
        spawn(async move {
            tokio::select! {
                () = blindfold_tls::watch(tls) => {}
                () = stop_handle.shutdown() => {}
            }
        });
    }
    tracing::info!(local_addr = %listening.local_addr, tls = tls.is_some(), "JSON-RPC server listens");
    Ok(ServerHandle { tls, ..ServerHandle::new(listening, stop) })
}

/// What a request passes before it is read: whose it is.
struct Front {
    inbound: Arc<Inbound>,
    peers: Arc<Peers>,
    budget: Arc<Budget>,
    turns: Arc<Turns>,
    doorkeeper: Option<Doorkeeper>,
}

impl Front {
    async fn receive(&self, request: &mut Request) -> Result<(), Response<Body>> {
        let peer = request.extensions().get::<PeerAddress>().copied();
        let connection = request.extensions().get::<Arc<Connection>>().cloned();
        let (Some(PeerAddress(peer)), Some(connection)) = (peer, connection) else { return Ok(()) };
        let websocket = ws::is_upgrade_request(request);
        let caller = self.inbound.caller(peer.ip(), request.headers());
        let party = match &self.doorkeeper {
            Some(doorkeeper) => doorkeeper.judge(request.headers(), caller, Arc::clone(&connection)).await,
            None => None,
        };
        let party = party.filter(|party| connection.place.belongs_to(*party));
        if let Some(overload) = connection.place.overload() {
            // Whoever shows no hello gets no place now (H-2).
            let refusal = self.peers.refusal(Some(peer.ip()), overload);
            turned_away::skip(std::mem::take(request.body_mut())).await;
            return Err(turned_away::answer(overload, refusal));
        }
        let extensions = request.extensions_mut();
        extensions.insert(PeerAddress(SocketAddr::new(caller, peer.port())));
        if websocket {
            connection.outbox.upgrade();
            // A proxy has one connection for every WebSocket.
            if party.is_none() && (caller != peer.ip() || self.inbound.trusts(peer.ip())) {
                let permit = self.peers.connect_from(caller).map_err(|overload| {
                    turned_away::answer(overload, self.peers.refusal(Some(caller), overload))
                })?;
                extensions.insert(Arc::new(permit));
            }
        }
        let account = party.map_or(Account::of(caller), Account::Peer);
        if let Some(party) = party {
            extensions.insert(KnownPeer(party));
        }
        let (budget, outbox) = (Arc::clone(&self.budget), Arc::clone(&connection.outbox));
        let turns = Arc::clone(&self.turns);
        extensions.insert(Recipient { budget, outbox, turns, account, websocket });
        Ok(())
    }
}

async fn answer<S>(mut service: S, request: Request, origins: Arc<AllowedOrigins>) -> Response<Body>
where
    S: Service<Request, Response = jsonrpsee::server::HttpResponse>,
    S::Error: fmt::Display,
{
    let asked = request.headers().clone();
    if let Some(preflight) = origins.preflight(request.method(), &asked) {
        return preflight;
    }
    if ws::is_upgrade_request(&request) && origins.refuses_websocket(&asked) {
        return refused_origin();
    }
    let answered = tokio::time::timeout(Duration::from_millis(CALL_TIMEOUT_MS), service.call(request)).await;
    let mut response = match answered {
        Ok(Ok(response)) => response.map(Body::new),
        Ok(Err(error)) => {
            tracing::error!(%error, "the JSON-RPC service failed");
            status(StatusCode::INTERNAL_SERVER_ERROR, "internal error\n")
        }
        Err(_) => status(StatusCode::REQUEST_TIMEOUT, "the call took too long\n"),
    };
    origins.mark(&asked, response.headers_mut());
    response
}

fn is_feed(request: &Request) -> bool {
    ws::is_upgrade_request(request) && is_asked_for(request.headers())
}

fn refused_origin() -> Response<Body> {
    status(StatusCode::FORBIDDEN, "this origin may not open a WebSocket here\n")
}

pub(crate) fn status(code: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = code;
    response
}

/// A bound address, and whether connections to it are still taken.
pub(crate) struct Listening {
    pub(crate) local_addr: SocketAddr,
    accepting: watch::Receiver<()>,
    panicked: Panicked,
}

impl Listening {
    /// At this address, as long as `accepting` has its sender.
    pub(crate) fn new(local_addr: SocketAddr, accepting: watch::Receiver<()>) -> Self {
        Self { local_addr, accepting, panicked: Panicked::default() }
    }
}

/// Binds and serves a router until `stop` fires; used by the JSON-RPC and the admin server.
pub(crate) async fn listen(
    addr: SocketAddr,
    router: Router,
    limits: Limits,
    stop: StopHandle,
) -> Result<Listening, ServeError> {
    let listener = TcpListener::bind(addr).await.map_err(|cause| ServeError::Bind { addr, cause })?;
    let local_addr = listener.local_addr().map_err(|cause| ServeError::Bind { addr, cause })?;
    let (alive, accepting) = watch::channel(());
    let panicked = limits.panicked.clone();
    spawn(async move {
        let _alive = alive;
        accept(listener, router, limits, stop).await;
    });
    Ok(Listening { local_addr, accepting, panicked })
}

/// What a listener allows its connections.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) peers: Arc<Peers>,
    pub(crate) inbound: Arc<Inbound>,
    /// For somebody who does not take what is written.
    pub(crate) patience: Duration,
    pub(crate) panicked: Panicked,
    /// With it, nothing is taken but TLS.
    pub(crate) tls: Option<Arc<ServerTls>>,
}

/// What the first panic said in what a server runs. It is the role's to end: see [`ServerHandle::ended`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Panicked(watch::Sender<Option<String>>);

impl Panicked {
    /// Runs something of the server; `None` when it panicked.
    pub(crate) async fn watch<T>(&self, what: &str, run: impl Future<Output = T>) -> Option<T> {
        match AssertUnwindSafe(run).catch_unwind().await {
            Ok(done) => Some(done),
            Err(panic) => {
                let cause = format!("{what} panicked: {}", panic_words(panic.as_ref()));
                self.0.send_if_modified(|first| first.is_none().then(|| *first = Some(cause)).is_some());
                None
            }
        }
    }

    /// Waits for the first one.
    async fn cause(&self) -> String {
        let mut panicked = self.0.subscribe();
        match panicked.wait_for(Option::is_some).await.ok().and_then(|cause| cause.clone()) {
            Some(cause) => cause,
            // The sender lives in `self`.
            None => std::future::pending().await,
        }
    }
}

async fn accept(listener: TcpListener, router: Router, limits: Limits, stop: StopHandle) {
    let mut stopped = pin!(stop.clone().shutdown());
    loop {
        let accepted = tokio::select! {
            () = &mut stopped => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "connection not accepted");
                tokio::time::sleep(Duration::from_millis(ACCEPT_RETRY_MS)).await;
                continue;
            }
        };
        // The connections of a proxy are those of its callers, who are counted by their calls and WebSockets.
        let trusted = limits.inbound.trusts(peer.ip());
        let address = (!trusted).then(|| peer.ip());
        match limits.peers.connect(address) {
            Ok(place) => {
                let (router, limits, stop) = (router.clone(), limits.clone(), stop.clone());
                let panicked = limits.panicked.clone();
                spawn(async move {
                    let served = connection(stream, peer, router, place, limits, stop);
                    if let Some(Err(refused)) = panicked.watch("a connection", served).await {
                        tracing::debug!(%peer, %refused, "connection refused");
                    }
                });
            }
            Err(overload) => {
                tracing::debug!(%peer, ?overload, "connection refused: limit reached");
                // A handshake would cost more than most calls, and a proxy's header stands before any request. What is told
                // nothing is closed by dropping it: waiting would let the idle keep out the busy.
                let plain = limits.tls.is_none() && !(trusted && limits.inbound.proxy_protocol);
                let away = plain.then(|| limits.peers.turn_away(address, overload)).flatten();
                if let Some(away) = away {
                    let panicked = limits.panicked.clone();
                    spawn(async move {
                        let told = turned_away::tell(stream, away);
                        panicked.watch("a connection", told).await;
                    });
                }
            }
        }
    }
}

/// A connection, in the extensions of its requests. There its place lives as long as the WebSocket that the connection
/// may become.
#[derive(Debug)]
struct Connection {
    place: Arc<Place>,
    /// Of the address that a PROXY header named.
    _of_address: Option<AddressPermit>,
    outbox: Arc<Outbox>,
}

/// The places that the connection of a request has, for as long as they are kept.
pub(crate) fn places_of(extensions: &Extensions) -> impl Send + 'static + use<> {
    (extensions.get::<Arc<Connection>>().cloned(), extensions.get::<Arc<AddressPermit>>().cloned())
}

/// Why a connection is not served.
#[derive(Debug, thiserror::Error)]
enum NotServed {
    #[error("the PROXY header: {0}")]
    ProxyHeader(#[from] std::io::Error),
    #[error("no PROXY header came in time")]
    NoProxyHeader(#[from] tokio::time::error::Elapsed),
    #[error("limit reached: {0:?}")]
    Overload(Overload),
    #[error("this address connects too often")]
    TooOften,
    #[error(transparent)]
    NoHandshake(#[from] NoHandshake),
}

async fn connection(
    mut stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    place: Arc<Place>,
    limits: Limits,
    stop: StopHandle,
) -> Result<(), NotServed> {
    let Limits { peers, inbound, tls, .. } = &limits;
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "no TCP_NODELAY");
    }
    let (mut peer, mut of_address) = (peer, None);
    if inbound.proxy_protocol && inbound.trusts(peer.ip()) {
        let header = proxied_for(&mut stream);
        let named = tokio::time::timeout(Duration::from_millis(HEADER_TIMEOUT_MS), header).await??;
        peer = named.unwrap_or(peer);
        if !inbound.trusts(peer.ip()) {
            of_address = Some(peers.connect_from(peer.ip()).map_err(NotServed::Overload)?);
        }
    }
    let Some(tls) = tls else {
        return requests(stream, peer, of_address, router, place, &limits, stop).await;
    };
    // A handshake costs more than most calls.
    if !inbound.trusts(peer.ip()) && !peers.may_call(Account::of(peer.ip())) {
        return Err(NotServed::TooOften);
    }
    let stream = tokio::select! {
        shaken = handshake(stream, tls) => shaken?,
        () = place.lost() => return Err(NotServed::Overload(Overload::Connections)),
        () = stop.clone().shutdown() => return Ok(()),
    };
    requests(stream, peer, of_address, router, place, &limits, stop).await
}

/// Serves the requests of a connection.
async fn requests(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: SocketAddr,
    of_address: Option<AddressPermit>,
    router: Router,
    place: Arc<Place>,
    limits: &Limits,
    stop: StopHandle,
) -> Result<(), NotServed> {
    let patience = limits.patience;
    let outbox = Arc::new(Outbox::default());
    let stream = Wire::new(stream, Arc::clone(&outbox), patience);
    let shared = Arc::new(Connection { place: Arc::clone(&place), _of_address: of_address, outbox });
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(PeerAddress(peer));
        request.extensions_mut().insert(Arc::clone(&shared));
        router.clone().oneshot(request)
    });
    let mut connection = pin!(
        hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_millis(HEADER_TIMEOUT_MS))
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades()
    );
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = place.lost() => {
            let address = (!limits.inbound.trusts(peer.ip())).then(|| peer.ip());
            let overload = place.overload().filter(|_| place.gave_way());
            let away = overload.and_then(|overload| limits.peers.turn_away(address, overload));
            if away.is_none() {
                return Err(NotServed::Overload(Overload::Connections));
            }
            // Another one waits in its place. What it asks in time is answered all the same: that there is none (J-8).
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = place.lost() => return Err(NotServed::Overload(Overload::Connections)),
                () = stop.shutdown() => return Ok(()),
            }
        }
        () = stop.clone().shutdown() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "connection ended with an error");
    }
    Ok(())
}
