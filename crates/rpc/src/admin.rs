//! `/healthz`, `/readyz` and `/metrics`, on a port of their own.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
    routing::get,
};
use blindfold_runtime::Spawner;
use jsonrpsee::server::stop_channel;

use crate::{
    Inbound, ServeError, ServerHandle, carrier,
    limits::WRITE_PATIENCE_MS,
    peers::Peers,
    server::{Limits, Panicked, listen},
};

/// Most open connections of the admin server.
const ADMIN_MAX_CONNECTIONS: u32 = 64;
/// The content type of the Prometheus text format.
const METRICS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What must be true before a role is ready, with the reason while it is not. Clones share the state.
#[derive(Clone, Debug)]
pub struct Readiness {
    conditions: Arc<RwLock<BTreeMap<&'static str, Option<String>>>>,
    tasks: Option<Spawner>,
}

impl Readiness {
    /// All conditions begin as not ready, reason `starting`. With none, the role is ready.
    pub fn new(conditions: &[&'static str]) -> Self {
        let conditions = conditions.iter().map(|name| (*name, Some("starting".to_owned()))).collect();
        Self { conditions: Arc::new(RwLock::new(conditions)), tasks: None }
    }

    /// A failure of these tasks is one more reason, named after the part that failed, whatever is set beside it.
    #[must_use]
    pub fn of(self, tasks: Spawner) -> Self {
        Self { tasks: Some(tasks), ..self }
    }

    /// The condition holds from now on.
    pub fn set_ready(&self, condition: &'static str) {
        self.set(condition, None);
    }

    /// The condition does not hold, for this reason.
    pub fn set_not_ready(&self, condition: &'static str, reason: impl Into<String>) {
        self.set(condition, Some(reason.into()));
    }

    fn set(&self, condition: &'static str, reason: Option<String>) {
        self.conditions.write().unwrap_or_else(PoisonError::into_inner).insert(condition, reason);
    }

    /// Whether every condition holds, and no part of the role has failed.
    pub fn is_ready(&self) -> bool {
        self.reasons().is_empty()
    }

    /// The conditions that do not hold and why.
    pub fn reasons(&self) -> BTreeMap<&'static str, String> {
        let conditions = self.conditions.read().unwrap_or_else(PoisonError::into_inner);
        let failure = self.tasks.as_ref().and_then(Spawner::failure);
        let reasons = conditions.iter().filter_map(|(name, reason)| Some((*name, reason.clone()?)));
        reasons.chain(failure.map(|failure| (failure.part, failure.cause))).collect()
    }
}

/// Where the admin server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminConfig {
    /// The address. What is served here is not for the public.
    pub addr: SocketAddr,
}

impl AdminConfig {
    /// Loopback only: the default for every role.
    pub const fn loopback(port: u16) -> Self {
        Self { addr: SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port) }
    }
}

/// Starts the admin server. `metrics` renders the text exposition format; `extra` adds a role's own admin routes.
///
/// `/healthz` answers 200 while the process runs its event loop; `/readyz` answers 200 `{"ready":true}` or 503
/// `{"ready":false,"reasons":{condition: reason}}`.
pub async fn admin(
    config: AdminConfig,
    readiness: Readiness,
    metrics: impl Fn() -> String + Clone + Send + Sync + 'static,
    extra: Option<Router>,
) -> Result<ServerHandle, ServeError> {
    if !config.addr.ip().is_loopback() {
        tracing::warn!(addr = %config.addr, "the admin server listens beyond this machine; it has no authentication");
    }
    if carrier::carrier().is_some() {
        let (listening, stop) = carrier::nobody(config.addr);
        return Ok(ServerHandle::new(listening, stop));
    }
    let ready = move || {
        let readiness = readiness.clone();
        async move {
            let reasons = readiness.reasons();
            let code = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            let body = if reasons.is_empty() {
                serde_json::json!({ "ready": true })
            } else {
                serde_json::json!({ "ready": false, "reasons": reasons })
            };
            text(code, "application/json", body.to_string())
        }
    };
    let rendered = move || {
        let metrics = metrics.clone();
        async move { text(StatusCode::OK, METRICS_CONTENT_TYPE, metrics()) }
    };
    let router = extra
        .unwrap_or_default()
        .route("/healthz", get(|| async { text(StatusCode::OK, "text/plain", "ok\n".to_owned()) }))
        .route("/readyz", get(ready))
        .route("/metrics", get(rendered));
    let peers = Peers::new(ADMIN_MAX_CONNECTIONS, ADMIN_MAX_CONNECTIONS, 0, false);
    let patience = Duration::from_millis(WRITE_PATIENCE_MS);
    let (stop_handle, stop) = stop_channel();
    let listening = listen(
        config.addr,
        router,
        Limits {
            peers,
            inbound: Inbound::default().into(),
            patience,
            panicked: Panicked::default(),
            tls: None,
        },
        stop_handle,
    )
    .await?;
    tracing::info!(local_addr = %listening.local_addr, "admin server listens");
    Ok(ServerHandle::new(listening, stop))
}

fn text(code: StatusCode, content_type: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
