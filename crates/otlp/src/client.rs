//! The HTTP client under the exporter.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header::CONTENT_TYPE};
use opentelemetry_http::{HttpClient, HttpError};
use reqwest::Url;
use tokio::runtime::Handle;

use crate::{OtlpError, TraceSettings};

/// How long opening a connection to the collector may take.
const CONNECT_TIMEOUT_MS: u64 = 2_000;
/// How long sending spans may take in all.
pub(crate) const SEND_TIMEOUT_MS: u64 = 5_000;

/// Sends with the process's TLS, from the process's runtime: the exporter has a thread of its own without one.
///
/// Of the library's request it takes the spans alone. Where they go, and with which headers, the settings say: no variable of
/// the environment, which may be meant for another program. Of the answer it reads the status: what else a collector says
/// reaches neither memory nor log.
#[derive(Debug)]
pub(crate) struct Client {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    runtime: Handle,
    /// Whether the last request failed: an outage is told once.
    is_away: AtomicBool,
}

impl Client {
    pub(crate) fn new(url: Url, settings: &TraceSettings, runtime: Handle) -> Result<Self, OtlpError> {
        let tls = match url.scheme() {
            "https" => blindfold_tls::process().config()?,
            _ => blindfold_tls::nothing_trusted()?,
        };
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_millis(CONNECT_TIMEOUT_MS))
            .timeout(Duration::from_millis(SEND_TIMEOUT_MS))
            .build()
            .map_err(|_| OtlpError::Client)?;
        Ok(Self { client, url, headers: settings.headers()?, runtime, is_away: AtomicBool::new(false) })
    }

    fn tell(&self, answer: &Result<StatusCode, String>) {
        let failed = match answer {
            Ok(status) if status.is_success() => None,
            Ok(status) => Some(format!("the collector answers with the status {status}")),
            Err(error) => Some(error.clone()),
        };
        let was_away = self.is_away.swap(failed.is_some(), Ordering::Relaxed);
        match failed {
            Some(reason) if !was_away => tracing::warn!(reason, "traces are not taken, and lost meanwhile"),
            None if was_away => tracing::info!("traces are taken again"),
            _ => {}
        }
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let mut ours = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body);
        if let Some(kind) = parts.headers.get(CONTENT_TYPE) {
            ours = ours.header(CONTENT_TYPE, kind);
        }
        let sent = self.runtime.spawn(async move { ours.send().await.map(|answer| answer.status()) });
        let answer = match sent.await {
            Ok(answer) => answer.map_err(|error| error.without_url().to_string()),
            Err(_) => Err("the process ends".to_owned()),
        };
        self.tell(&answer);
        Ok(Response::builder().status(answer?).body(Bytes::new())?)
    }
}
