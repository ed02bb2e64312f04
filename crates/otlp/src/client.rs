//! The HTTP client under the exporter.

use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;

use crate::OtlpError;

/// How long opening a connection to the collector may take.
const CONNECT_TIMEOUT_MS: u64 = 2_000;
/// How long sending spans may take in all.
pub(crate) const SEND_TIMEOUT_MS: u64 = 5_000;
/// Longest answer that is read; the rest says nothing that matters.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Sends with the process's TLS, from the process's runtime: the exporter has a thread of its own without one.
#[derive(Debug)]
pub(crate) struct Client {
    client: reqwest::Client,
    runtime: Handle,
}

impl Client {
    pub(crate) fn new(url: &str, runtime: Handle) -> Result<Self, OtlpError> {
        let tls = match url.starts_with("https://") {
            true => blindfold_tls::process().config()?,
            false => blindfold_tls::nothing_trusted()?,
        };
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_millis(CONNECT_TIMEOUT_MS))
            .timeout(Duration::from_millis(SEND_TIMEOUT_MS))
            .build()
            .map_err(|error| OtlpError::Client(error.without_url().to_string()))?;
        Ok(Self { client, runtime })
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        self.runtime.spawn(async move { send(&client, request).await }).await?
    }
}

async fn send(client: &reqwest::Client, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    // The URL may hold a password.
    let mut answer = client.execute(request.try_into()?).await.map_err(reqwest::Error::without_url)?;
    let mut response = Response::builder().status(answer.status());
    if let Some(headers) = response.headers_mut() {
        headers.clone_from(answer.headers());
    }
    let mut body = BytesMut::new();
    while let Some(part) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
        if body.len() + part.len() > MAX_ANSWER_BYTES {
            return Err(format!("the collector's answer is longer than {MAX_ANSWER_BYTES} bytes").into());
        }
        body.extend_from_slice(&part);
    }
    Ok(response.body(body.freeze())?)
}
