//! Clients with limits and timeouts.

use std::{fmt, sync::Arc, time::Duration};

use blindfold_telemetry::redact_url;
use blindfold_tls::{ClientTls, TlsError, rustls};
use jsonrpsee::core::{
    ClientError,
    client::{BatchResponse, ClientT, Subscription, SubscriptionClientT, async_client::PingConfig},
    params::BatchRequestBuilder,
    traits::ToRpcParams,
};
use jsonrpsee_http_client::{HeaderMap, HttpBackend, HttpClientBuilder, RpcLogger, RpcService};
use jsonrpsee_ws_client::{WsClient, WsClientBuilder};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tower::ServiceBuilder;

use crate::SequencerUrls;
use crate::carrier::{Link, carrier};
use crate::doorkeeper::{HELLO_HEADER, Introduce, IntroduceLayer, Introduction};
use crate::limits::{
    CLIENT_CONNECT_TIMEOUT_MS, CLIENT_MAX_CONCURRENT_CALLS, CLIENT_REQUEST_TIMEOUT_MS,
    CLIENT_SUBSCRIPTION_BUFFER_MESSAGES, MAX_MESSAGE_BYTES, MAX_REQUEST_BYTES, PING_INACTIVE_MS,
    PING_INTERVAL_MS,
};
use crate::secure::{SPEAKS_TLS, UPGRADE_REQUIRED};
use crate::several::Several;
use crate::turned_away::{ReadTurnedAway, ReadTurnedAwayLayer};

/// A client for single calls, at one server or at whichever leads of several.
#[derive(Clone)]
pub struct HttpClient(Servers);

type OverHttp =
    jsonrpsee_http_client::HttpClient<RpcLogger<RpcService<ReadTurnedAway<Introduce<HttpBackend>>>>>;

#[derive(Clone)]
enum Servers {
    One(Way),
    Several(Arc<Several<Way>>),
}

#[derive(Clone)]
enum Way {
    Net(OverHttp),
    Carried(Link),
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpClient")
    }
}

/// Parameters as they are sent, for as many servers as it takes.
#[derive(Clone)]
struct Verbatim(Option<Box<RawValue>>);

impl Verbatim {
    fn of(params: impl ToRpcParams) -> Result<Self, ClientError> {
        params.to_rpc_params().map(Self).map_err(ClientError::ParseError)
    }
}

impl ToRpcParams for Verbatim {
    fn to_rpc_params(self) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        Ok(self.0)
    }
}

impl ClientT for Way {
    async fn notification<Params: ToRpcParams + Send>(
        &self,
        method: &str,
        params: Params,
    ) -> Result<(), ClientError> {
        match self {
            Self::Net(client) => client.notification(method, params).await,
            Self::Carried(link) => link.notification(method, params).await,
        }
    }

    async fn request<R: DeserializeOwned, Params: ToRpcParams + Send>(
        &self,
        method: &str,
        params: Params,
    ) -> Result<R, ClientError> {
        match self {
            Self::Net(client) => client.request(method, params).await,
            Self::Carried(link) => link.request(method, params).await,
        }
    }

    async fn batch_request<'a, R: DeserializeOwned + fmt::Debug + 'a>(
        &self,
        batch: BatchRequestBuilder<'a>,
    ) -> Result<BatchResponse<'a, R>, ClientError> {
        match self {
            Self::Net(client) => client.batch_request(batch).await,
            Self::Carried(link) => link.batch_request(batch).await,
        }
    }
}

impl ClientT for HttpClient {
    async fn notification<Params: ToRpcParams + Send>(
        &self,
        method: &str,
        params: Params,
    ) -> Result<(), ClientError> {
        match &self.0 {
            Servers::One(way) => way.notification(method, params).await,
            Servers::Several(servers) => {
                let params = Verbatim::of(params)?;
                servers.ask(|way| way.notification(method, params.clone())).await
            }
        }
    }

    async fn request<R: DeserializeOwned, Params: ToRpcParams + Send>(
        &self,
        method: &str,
        params: Params,
    ) -> Result<R, ClientError> {
        match &self.0 {
            Servers::One(way) => way.request(method, params).await,
            Servers::Several(servers) => {
                let params = Verbatim::of(params)?;
                servers.ask(|way| way.request(method, params.clone())).await
            }
        }
    }

    /// Of several servers one is asked that answers; refusals of single calls, `standing_by` among them, are the caller's
    /// to look at.
    async fn batch_request<'a, R: DeserializeOwned + fmt::Debug + 'a>(
        &self,
        batch: BatchRequestBuilder<'a>,
    ) -> Result<BatchResponse<'a, R>, ClientError> {
        match &self.0 {
            Servers::One(way) => way.batch_request(batch).await,
            Servers::Several(servers) => servers.ask(|way| way.batch_request(batch.clone())).await,
        }
    }
}

/// For what has a subscription among its methods; there are none over HTTP.
impl SubscriptionClientT for HttpClient {
    async fn subscribe<'a, N: DeserializeOwned, Params: ToRpcParams + Send>(
        &self,
        _subscribe_method: &'a str,
        _params: Params,
        _unsubscribe_method: &'a str,
    ) -> Result<Subscription<N>, ClientError> {
        Err(ClientError::HttpNotImplemented)
    }

    async fn subscribe_to_method<N: DeserializeOwned>(
        &self,
        _method: &str,
    ) -> Result<Subscription<N>, ClientError> {
        Err(ClientError::HttpNotImplemented)
    }
}

/// Limits of a client: times in milliseconds, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// How long to wait for a connection.
    pub connect_timeout_ms: u64,
    /// How long to wait for an answer.
    pub request_timeout_ms: u64,
    /// Largest call, in bytes.
    pub max_request_bytes: u32,
    /// Largest answer or notification, in bytes.
    pub max_response_bytes: u32,
    /// Most calls that await their answers.
    pub max_concurrent_calls: usize,
    /// Notifications held for one subscription before it is closed as lagging.
    pub subscription_buffer_messages: usize,
    /// How often a WebSocket's server is asked for a sign of life.
    pub ping_interval_ms: u64,
    /// After how long without any the connection counts as lost.
    pub ping_inactive_ms: u64,
    /// How it shows who it is, where the server keeps places for its peers.
    pub introduction: Option<Introduction>,
    /// Whom it trusts over TLS, and what certificate it shows; none: what the process does ([`blindfold_tls::process`]).
    pub tls: Option<ClientTls>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            connect_timeout_ms: CLIENT_CONNECT_TIMEOUT_MS,
            request_timeout_ms: CLIENT_REQUEST_TIMEOUT_MS,
            max_request_bytes: MAX_REQUEST_BYTES,
            max_response_bytes: MAX_MESSAGE_BYTES,
            max_concurrent_calls: CLIENT_MAX_CONCURRENT_CALLS,
            subscription_buffer_messages: CLIENT_SUBSCRIPTION_BUFFER_MESSAGES,
            ping_interval_ms: PING_INTERVAL_MS,
            ping_inactive_ms: PING_INACTIVE_MS,
            introduction: None,
            tls: None,
        }
    }
}

/// Why there is no client. URLs are shown without their secrets.
#[derive(Debug, thiserror::Error)]
pub enum ClientBuildError {
    /// The URL's scheme does not fit: `http(s)` for calls, `ws(s)` for subscriptions. The configuration's fault.
    #[error("{url}: expected {expected}")]
    Scheme {
        /// The URL that was given.
        url: String,
        /// The schemes that are accepted here.
        expected: &'static str,
    },
    /// The URL wants TLS, which cannot be set up. The configuration's fault.
    #[error("{url}: {fault}")]
    Tls {
        /// The URL that was given.
        url: String,
        /// What is wrong, and what to do.
        fault: Box<TlsError>,
    },
    /// The URL does not parse, or the server cannot be reached or refused the handshake; in the last two cases try
    /// again.
    #[error("{url}: {reason}")]
    Connect {
        /// The URL that was given.
        url: String,
        /// What happened, in words.
        reason: String,
    },
}

/// A client for single calls; connects at the first call and keeps the connection.
///
/// # Errors
/// A URL that cannot be used.
pub fn http_client(url: &str, config: &ClientConfig) -> Result<HttpClient, ClientBuildError> {
    way(url, config).map(|way| HttpClient(Servers::One(way)))
}

/// A client for single calls at whichever of these leads: see [`SequencerUrls`]. A call that one of them does not answer, or
/// refuses with `standing_by`, is made at the others; it fails when none of them answers as the leader, with the last error.
///
/// # Errors
/// A URL that cannot be used, or none at all.
pub fn http_client_of(urls: &SequencerUrls, config: &ClientConfig) -> Result<HttpClient, ClientBuildError> {
    let mut servers =
        urls.iter().map(|url| Ok((url.to_owned(), way(url, config)?))).collect::<Result<Vec<_>, _>>()?;
    match servers.len() {
        0 => Err(ClientBuildError::Scheme { url: "no URL".to_owned(), expected: HTTP }),
        1 => Ok(HttpClient(Servers::One(servers.swap_remove(0).1))),
        _ => Ok(HttpClient(Servers::Several(Arc::new(Several::new(servers))))),
    }
}

const HTTP: &str = "http:// or https://";

fn way(url: &str, config: &ClientConfig) -> Result<Way, ClientBuildError> {
    let secure = is_secure(url, "http", "https", HTTP)?;
    if let Some(carrier) = carrier() {
        return Ok(Way::Carried(Link::new(carrier, url, config)));
    }
    let mut builder = HttpClientBuilder::default();
    if secure {
        builder = builder.with_custom_cert_store(tls_of(url, config)?);
    }
    builder
        .connect_timeout(Duration::from_millis(config.connect_timeout_ms))
        .request_timeout(Duration::from_millis(config.request_timeout_ms))
        .max_request_size(config.max_request_bytes)
        .max_response_size(config.max_response_bytes)
        .max_concurrent_requests(config.max_concurrent_calls)
        .set_http_middleware(
            ServiceBuilder::new()
                .layer(ReadTurnedAwayLayer)
                .layer(IntroduceLayer(config.introduction.clone())),
        )
        .build(url)
        .map(Way::Net)
        .map_err(|error| connect_error(url, &error.to_string()))
}

/// A client for calls and subscriptions over one WebSocket; connected when this returns. It does not connect again
/// by itself: see [`crate::Feed`].
pub async fn ws_client(url: &str, config: &ClientConfig) -> Result<WsClient, ClientBuildError> {
    let secure = is_secure(url, "ws", "wss", "ws:// or wss://")?;
    let ping = PingConfig::new()
        .ping_interval(Duration::from_millis(config.ping_interval_ms))
        .inactive_limit(Duration::from_millis(config.ping_inactive_ms));
    let mut headers = HeaderMap::new();
    if let Some(introduction) = &config.introduction
        && let Some(value) = introduction.header().await
    {
        headers.insert(HELLO_HEADER, value);
    }
    let mut builder = WsClientBuilder::default();
    if secure {
        builder = builder.with_custom_cert_store(tls_of(url, config)?);
    }
    let connecting = builder
        .set_headers(headers)
        .connection_timeout(Duration::from_millis(config.connect_timeout_ms))
        .request_timeout(Duration::from_millis(config.request_timeout_ms))
        .max_request_size(config.max_request_bytes)
        .max_response_size(config.max_response_bytes)
        .max_concurrent_requests(config.max_concurrent_calls)
        .max_buffer_capacity_per_subscription(config.subscription_buffer_messages.max(1))
        .enable_ws_ping(ping)
        .build(url);
    // The library's own limit ends with the TCP connection; both handshakes are still to come.
    let limit = Duration::from_millis(config.connect_timeout_ms).saturating_mul(CONNECTION_STEPS);
    match tokio::time::timeout(limit, connecting).await {
        Ok(connected) => connected.map_err(|error| connect_error(url, &error.to_string())),
        Err(_) => Err(connect_error(url, "the server did not finish the handshake in time")),
    }
}

/// TCP, TLS and WebSocket: each may take as long as a connection.
pub(crate) const CONNECTION_STEPS: u32 = 3;

pub(crate) fn tls_of(url: &str, config: &ClientConfig) -> Result<rustls::ClientConfig, ClientBuildError> {
    let tls = config.tls.clone().unwrap_or_else(blindfold_tls::process);
    tls.config().map_err(|fault| ClientBuildError::Tls { url: redact_url(url), fault: Box::new(fault) })
}

/// Whether a URL wants TLS.
pub(crate) fn is_secure(
    url: &str,
    plain: &str,
    secure: &str,
    expected: &'static str,
) -> Result<bool, ClientBuildError> {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme {
        Some(scheme) if scheme == plain => Ok(false),
        Some(scheme) if scheme == secure => Ok(true),
        _ => Err(ClientBuildError::Scheme { url: redact_url(url), expected }),
    }
}

/// The text of a failure, with what to do about it if that is known.
pub(crate) fn with_advice(reason: &str) -> String {
    // How a server of ours answers plain HTTP where it speaks TLS.
    let plainly = reason.contains(&UPGRADE_REQUIRED.to_string()) && reason.contains("rejected");
    let advice = if plainly { Some(SPEAKS_TLS) } else { blindfold_tls::advice(reason) };
    advice.map_or_else(|| reason.to_owned(), |advice| format!("{advice} ({reason})"))
}

pub(crate) fn connect_error(url: &str, reason: &str) -> ClientBuildError {
    let shown = redact_url(url);
    // The library may repeat the URL in its message.
    ClientBuildError::Connect { reason: with_advice(&reason.replace(url, &shown)), url: shown }
}
