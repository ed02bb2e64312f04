//! The server scaffolding: HTTP and WebSocket on one port.
//!
//! An Axum router hands every request to the JSON-RPC library's service. The connection loop is our own, because it
//! is where the limits on connections, header times and shutdown belong.

use std::{fmt, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{Response, StatusCode},
};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use jsonrpsee::{
    Methods,
    core::middleware::RpcServiceBuilder,
    server::{BatchRequestConfig, PingConfig, Server, StopHandle, stop_channel, ws},
};
use tokio::net::{TcpListener, TcpStream};
use tower::{Service, ServiceExt};

use crate::{
    AllowedOrigins, CallObserver, Passthrough, PeerAddress,
    limits::{
        ACCEPT_RETRY_MS, CALL_TIMEOUT_MS, CONNECTION_BUFFER_MESSAGES, HEADER_TIMEOUT_MS,
        MAX_CALLS_PER_ADDRESS_PER_SECOND, MAX_CALLS_PER_REQUEST, MAX_CONNECTIONS,
        MAX_CONNECTIONS_PER_ADDRESS, MAX_MESSAGE_BYTES, MAX_REQUEST_BYTES, MAX_SUBSCRIPTIONS_PER_CONNECTION,
        PING_INACTIVE_MS, PING_INTERVAL_MS, SHUTDOWN_GRACE_MS,
    },
    middleware::{GuardLayer, Shared},
    peers::Peers,
};

/// How a server listens; [`ServerConfig::new`] fills in the limits of [`crate::limits`].
#[derive(Clone)]
pub struct ServerConfig {
    /// Where to listen; port 0 takes a free one.
    pub addr: SocketAddr,
    /// Most open connections.
    pub max_connections: u32,
    /// Most open connections from one address.
    pub max_connections_per_address: u32,
    /// Most calls per second from one address; zero for no limit.
    pub max_calls_per_address_per_second: u32,
    /// Largest request or WebSocket message.
    pub max_request_bytes: u32,
    /// Largest answer.
    pub max_response_bytes: u32,
    /// Most calls in one JSON-RPC batch request.
    pub max_calls_per_request: u32,
    /// Most subscriptions on one connection.
    pub max_subscriptions_per_connection: u32,
    /// Messages that wait for one connection.
    pub connection_buffer_messages: u32,
    /// Which web pages may call.
    pub allowed_origins: AllowedOrigins,
    /// Is told of every finished call.
    pub observer: Option<CallObserver>,
}

impl ServerConfig {
    /// The default limits on an address.
    pub fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            max_connections: MAX_CONNECTIONS,
            max_connections_per_address: MAX_CONNECTIONS_PER_ADDRESS,
            max_calls_per_address_per_second: MAX_CALLS_PER_ADDRESS_PER_SECOND,
            max_request_bytes: MAX_REQUEST_BYTES,
            max_response_bytes: MAX_MESSAGE_BYTES,
            max_calls_per_request: MAX_CALLS_PER_REQUEST,
            max_subscriptions_per_connection: MAX_SUBSCRIPTIONS_PER_CONNECTION,
            connection_buffer_messages: CONNECTION_BUFFER_MESSAGES,
            allowed_origins: AllowedOrigins::None,
            observer: None,
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
    #[error("cannot listen on {addr}: {source}")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
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
}

impl ServerHandle {
    pub(crate) const fn new(local_addr: SocketAddr, stop: jsonrpsee::server::ServerHandle) -> Self {
        Self { local_addr, stop }
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
    ] {
        if limit == 0 {
            return Err(ServeError::ZeroLimit(name));
        }
    }
    let methods = methods.into();
    let peers = Peers::new(
        config.max_connections,
        config.max_connections_per_address,
        config.max_calls_per_address_per_second,
    );
    let calls = match config.max_calls_per_request {
        0 => BatchRequestConfig::Disabled,
        limit => BatchRequestConfig::Limit(limit),
    };
    let ping = PingConfig::new()
        .ping_interval(Duration::from_millis(PING_INTERVAL_MS))
        .inactive_limit(Duration::from_millis(PING_INACTIVE_MS));
    let limits = jsonrpsee::server::ServerConfig::builder()
        .max_connections(config.max_connections)
        .max_request_body_size(config.max_request_bytes)
        .max_response_body_size(config.max_response_bytes)
        .max_subscriptions_per_connection(config.max_subscriptions_per_connection)
        .set_batch_request_config(calls)
        .set_message_buffer_capacity(config.connection_buffer_messages)
        .enable_ws_ping(ping)
        .build();
    let guard = GuardLayer(Arc::new(Shared {
        methods: methods.clone(),
        passthrough,
        peers: Arc::clone(&peers),
        observer: config.observer.clone(),
        max_response_bytes: config.max_response_bytes,
    }));
    let (stop_handle, stop) = stop_channel();
    let services = Server::builder()
        .set_config(limits)
        .set_rpc_middleware(RpcServiceBuilder::new().layer(guard))
        .to_service_builder();
    let origins = Arc::new(config.allowed_origins.clone());

    let of_calls = stop_handle.clone();
    let router = Router::new().fallback(move |request: Request| {
        let service = services.clone().build(methods.clone(), of_calls.clone());
        answer(service, request, Arc::clone(&origins))
    });
    let local_addr = listen(config.addr, router, peers, stop_handle).await?;
    tracing::info!(%local_addr, "JSON-RPC server listens");
    Ok(ServerHandle::new(local_addr, stop))
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
        return status(StatusCode::FORBIDDEN, "this origin may not open a WebSocket here\n");
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

fn status(code: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = code;
    response
}

/// Binds and serves a router until `stop` fires; used by the JSON-RPC and the admin server.
pub(crate) async fn listen(
    addr: SocketAddr,
    router: Router,
    peers: Arc<Peers>,
    stop: StopHandle,
) -> Result<SocketAddr, ServeError> {
    let listener = TcpListener::bind(addr).await.map_err(|source| ServeError::Bind { addr, source })?;
    let local_addr = listener.local_addr().map_err(|source| ServeError::Bind { addr, source })?;
    tokio::spawn(accept(listener, router, peers, stop));
    Ok(local_addr)
}

async fn accept(listener: TcpListener, router: Router, peers: Arc<Peers>, stop: StopHandle) {
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
        match peers.connect(peer) {
            Ok(permit) => {
                // In the extensions the permit lives as long as the WebSocket that the connection may become.
                let permit = Arc::new(permit);
                let router = router.clone();
                let stop = stop.clone();
                tokio::spawn(async move { connection(stream, peer, router, permit, stop).await });
            }
            // The stream is closed by dropping it: waiting would let the idle keep out the busy.
            Err(overload) => tracing::warn!(%peer, ?overload, "connection refused: limit reached"),
        }
    }
}

async fn connection<P: Clone + Send + Sync + 'static>(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    permit: P,
    stop: StopHandle,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "no TCP_NODELAY");
    }
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(PeerAddress(peer));
        request.extensions_mut().insert(permit.clone());
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
        () = stop.shutdown() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "connection ended with an error");
    }
}
