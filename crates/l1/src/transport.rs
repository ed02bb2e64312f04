//! JSON-RPC over HTTP with bounded answers and a time limit for each call, under alloy's provider.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use alloy_eips::BlockId;
use alloy_json_rpc::{
    ErrorPayload, RequestPacket, Response, ResponsePacket, ResponsePayload, RpcError, RpcRecv, RpcSend,
};
use alloy_primitives::{Address, B256, Bytes};
use alloy_provider::{
    Provider, RootProvider,
    transport::{TransportError, TransportErrorKind, TransportFut},
};
use alloy_rpc_client::{BatchRequest, RpcClient};
use alloy_rpc_types_eth::{Block, Transaction, TransactionRequest};
use alloy_sol_types::SolCall;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use tower::Service;

use crate::{contracts, error::L1Error};

/// How long to wait for a connection.
const CONNECT_TIMEOUT_MS: u64 = 5_000;
/// What data of an archive may take in all, beside the time for its bytes. That it goes on is a limit of its own.
const DATA_TIMEOUT_MS: u64 = 60_000;
/// How fast data comes from an archive at least, or goes there.
const MIN_DATA_BYTES_PER_SECOND: u64 = 64 << 10;
/// Longest answer that is read. A posting's transaction has at most 128 KiB, twice that in hex. The logs of one block, which
/// cannot be asked for in pieces, take up to 0.2 bytes of JSON for a unit of its gas: this is enough for 320 million.
const RESPONSE_LIMIT_BYTES: usize = 64 << 20;
/// Longest error text taken over from the other side, in characters.
const ERROR_TEXT_LIMIT_CHARS: usize = 512;
// JSON-RPC codes of a server that makes nothing of a list of requests.
const RPC_PARSE_ERROR: i64 = -32700;
const RPC_INVALID_REQUEST: i64 = -32600;
/// JSON-RPC code of Reth for answers to a batch that are too long together.
pub(crate) const RPC_BATCH_TOO_LARGE: i64 = -32011;

/// One server by HTTP: the JSON-RPC endpoint of an L1 node, or the API of a beacon node.
#[derive(Clone)]
pub(crate) struct Http {
    client: reqwest::Client,
    url: String,
    timeout_ms: u64,
    response_limit_bytes: usize,
}

impl Http {
    /// No connection is made before the first call.
    pub fn new(url: &str, timeout_ms: u64) -> Result<Self, L1Error> {
        if !url.starts_with("https://") && !url.starts_with("http://") {
            return Err(L1Error::Url { reason: "it must begin with http:// or https://" });
        }
        if reqwest::Url::parse(url).is_err() {
            return Err(L1Error::Url { reason: "it is no URL" });
        }
        let tls = if url.starts_with("https://") {
            // An L1 provider has no business knowing who asks.
            blindfold_tls::process().anonymous_config()
        } else {
            blindfold_tls::nothing_trusted()
        };
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls.map_err(|fault| L1Error::Tls(Box::new(fault)))?)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_millis(CONNECT_TIMEOUT_MS))
            .timeout(Duration::from_millis(timeout_ms))
            .build()
            .map_err(|_| L1Error::Url { reason: "no HTTP client can be made for it" })?;
        Ok(Self { client, url: url.to_owned(), timeout_ms, response_limit_bytes: RESPONSE_LIMIT_BYTES })
    }

    /// With another limit for answers.
    pub fn with_response_limit(mut self, limit_bytes: usize) -> Self {
        self.response_limit_bytes = limit_bytes;
        self
    }

    /// Asks for `path` below the endpoint by HTTP GET; `method` names the call in errors.
    pub async fn get<R: DeserializeOwned>(&self, method: &str, path: &str) -> Result<R, L1Error> {
        self.get_as(method, path, None).await
    }

    /// [`get`](Self::get), as whoever shows this.
    pub async fn get_as<R: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        authorization: Option<&HeaderValue>,
    ) -> Result<R, L1Error> {
        let url = format!("{}{path}", self.url.trim_end_matches('/'));
        let request = self.client.get(url).header("accept", "application/json");
        self.read(method, authorized(request, authorization)).await
    }

    /// Asks for the bytes at `path`, of which there are to be so many; `method` names the call in errors. They may take longer
    /// than a call, as long as they go on coming. Of an answer that says that it is of another length nothing is read. `begun` is
    /// called when an answer begins, whatever it is.
    pub async fn get_bytes(
        &self,
        method: &str,
        path: &str,
        length: usize,
        begun: impl FnOnce(),
    ) -> Result<Bytes, L1Error> {
        let request = self.client.get(format!("{}{path}", self.url.trim_end_matches('/')));
        let total_ms = self.timeout_ms.max(DATA_TIMEOUT_MS).saturating_add(data_ms(length));
        let (least_bytes, limit_bytes, answer_ms) = (length, length, self.timeout_ms);
        let limits = Limits { least_bytes, limit_bytes, answer_ms, total_ms };
        self.bytes(method, request, limits, begun).await.map(Bytes::from)
    }

    /// Puts bytes at `path`, as whoever shows this. They may take longer than a call.
    pub async fn put(
        &self,
        method: &str,
        path: &str,
        body: Bytes,
        authorization: Option<&HeaderValue>,
    ) -> Result<(), L1Error> {
        // Nothing tells how much of them is on its way.
        let total_ms = self.timeout_ms.saturating_add(data_ms(body.len()));
        let (least_bytes, limit_bytes, answer_ms) = (0, self.response_limit_bytes, total_ms);
        let limits = Limits { least_bytes, limit_bytes, answer_ms, total_ms };
        let request = self.client.put(format!("{}{path}", self.url.trim_end_matches('/')));
        let request = request.header("content-type", "application/octet-stream").body(body.0);
        self.bytes(method, authorized(request, authorization), limits, || ()).await.map(drop)
    }

    /// Sends one call, or several in one request. The last one's method names them in errors.
    async fn exchange(&self, calls: RequestPacket) -> Result<ResponsePacket, TransportError> {
        let method = calls.method_names().last().unwrap_or_default().to_owned();
        let is_batch = calls.as_batch().is_some();
        let body = calls.serialize().map_err(RpcError::ser_err)?;
        let request = self.client.post(&self.url).header("content-type", "application/json");
        match self.read(&method, request.body(String::from(Box::<str>::from(body)))).await {
            // One error for the whole batch.
            Ok(ResponsePacket::Single(Response { payload: ResponsePayload::Failure(payload), .. }))
                if is_batch =>
            {
                Err(RpcError::ErrorResp(payload))
            }
            Ok(answer) if answer.as_batch().is_some() == is_batch => Ok(answer),
            Ok(_) => Err(TransportErrorKind::custom(malformed(&method, &"not an answer for each call"))),
            Err(error) => Err(TransportErrorKind::custom(error)),
        }
    }

    async fn read<R: DeserializeOwned>(
        &self,
        method: &str,
        request: reqwest::RequestBuilder,
    ) -> Result<R, L1Error> {
        let (limit_bytes, timeout_ms) = (self.response_limit_bytes, self.timeout_ms);
        let limits = Limits { least_bytes: 0, limit_bytes, answer_ms: timeout_ms, total_ms: timeout_ms };
        let bytes = self.bytes(method, request, limits, || ()).await?;
        serde_json::from_slice(&bytes).map_err(|error| malformed(method, &error))
    }

    async fn bytes(
        &self,
        method: &str,
        request: reqwest::RequestBuilder,
        Limits { least_bytes, limit_bytes, answer_ms, total_ms }: Limits,
        begun: impl FnOnce(),
    ) -> Result<Vec<u8>, L1Error> {
        let failed = |error: reqwest::Error| broken(method, total_ms, error);
        let sent = request.timeout(Duration::from_millis(total_ms)).send();
        let mut response = in_time(method, answer_ms, sent).await?.map_err(failed)?;
        begun();
        let status = response.status().as_u16();
        if status != 200 {
            return Err(L1Error::HttpStatus { method: method.to_owned(), status });
        }
        let too_large = || L1Error::ResponseTooLarge { method: method.to_owned(), limit_bytes };
        match told_length(&response) {
            Some(told) if told > limit_bytes as u64 => return Err(too_large()),
            Some(told) if told < least_bytes as u64 => {
                return Err(L1Error::NotArchived {
                    reason: format!("{told} bytes instead of {least_bytes}"),
                });
            }
            _ => {}
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = in_time(method, self.timeout_ms, response.chunk()).await?.map_err(failed)? {
            if bytes.len() + chunk.len() > limit_bytes {
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}

/// A request with what it shows, if it shows anything.
fn authorized(
    request: reqwest::RequestBuilder,
    authorization: Option<&HeaderValue>,
) -> reqwest::RequestBuilder {
    match authorization {
        Some(shown) => request.header(AUTHORIZATION, shown),
        None => request,
    }
}

/// What an exchange may take.
struct Limits {
    /// Bytes of the answer at least, where it says how many there are.
    least_bytes: usize,
    /// Bytes of the answer at most.
    limit_bytes: usize,
    /// Until the answer begins, in milliseconds.
    answer_ms: u64,
    /// In all, in milliseconds.
    total_ms: u64,
}

/// How long an answer says that it is.
fn told_length(response: &reqwest::Response) -> Option<u64> {
    response.headers().get(reqwest::header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// How long so many bytes may take, in milliseconds.
fn data_ms(bytes: usize) -> u64 {
    (bytes as u64).saturating_mul(1_000) / MIN_DATA_BYTES_PER_SECOND
}

/// What comes of a part of an exchange that may take so long.
async fn in_time<T>(method: &str, timeout_ms: u64, part: impl Future<Output = T>) -> Result<T, L1Error> {
    let late = |_| L1Error::Timeout { method: method.to_owned(), timeout_ms };
    timeout(Duration::from_millis(timeout_ms), part).await.map_err(late)
}

fn broken(method: &str, timeout_ms: u64, error: reqwest::Error) -> L1Error {
    let method = method.to_owned();
    if error.is_timeout() {
        let timeout_ms = if error.is_connect() { timeout_ms.min(CONNECT_TIMEOUT_MS) } else { timeout_ms };
        return L1Error::Timeout { method, timeout_ms };
    }
    // The innermost cause is the telling one ("connection refused"); URLs may hold secrets.
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let reason = shorten(&cause.to_string());
    let reason = match blindfold_tls::advice(&reason) {
        Some(advice) => format!("{advice} ({reason})"),
        None => reason,
    };
    L1Error::Unreachable { method, reason }
}

impl Service<RequestPacket> for Http {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, calls: RequestPacket) -> Self::Future {
        let http = self.clone();
        Box::pin(async move { http.exchange(calls).await })
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("url", &"redacted").field("timeout_ms", &self.timeout_ms).finish()
    }
}

/// The JSON-RPC endpoint of one L1 node.
#[derive(Clone, Debug)]
pub(crate) struct Rpc {
    /// Its errors become ours by [`failed`] and [`refused`].
    pub provider: RootProvider,
    /// Whether it was said that the endpoint takes no batches.
    batches_refused: Arc<AtomicBool>,
}

impl Rpc {
    /// No connection is made before the first call.
    pub fn new(url: &str, timeout_ms: u64) -> Result<Self, L1Error> {
        Http::new(url, timeout_ms).map(Self::over)
    }

    pub fn over(http: Http) -> Self {
        let provider = RootProvider::new(RpcClient::new(http, false));
        Self { provider, batches_refused: Arc::default() }
    }

    /// Calls a method that the provider does not know.
    pub async fn call<R: RpcRecv>(&self, method: &'static str, params: impl RpcSend) -> Result<R, L1Error> {
        self.provider.client().request(method, params).await.map_err(failed(method))
    }

    /// Makes two calls, each a method with its parameters, in one request: one server answers both, however many stand behind
    /// the endpoint. The second one's error is kept apart.
    ///
    /// An endpoint that takes no such batch is asked one after the other: whoever has what the first one asks for still has
    /// it when the second one comes, but another server may answer that.
    pub async fn call_both<A: RpcRecv, B: RpcRecv>(
        &self,
        first: (&'static str, impl RpcSend),
        second: (&'static str, impl RpcSend),
    ) -> Result<(A, Result<B, L1Error>), L1Error> {
        let mut batch = BatchRequest::new(self.provider.client());
        let one = batch.add_call(first.0, &first.1).map_err(failed(first.0))?;
        let two = batch.add_call(second.0, &second.1).map_err(failed(second.0))?;
        let Err(error) = batch.send().await else {
            return Ok((one.await.map_err(failed(first.0))?, two.await.map_err(failed(second.0))));
        };
        let takes_none = error.as_error_resp().is_some_and(refuses_batches);
        let refusal = failed(second.0)(error);
        if !takes_none && !matches!(refusal, L1Error::HttpStatus { status: 400 | 422 | 501, .. }) {
            return Err(refusal);
        }
        if !self.batches_refused.swap(true, Ordering::Relaxed) {
            tracing::warn!(%refusal, "L1 takes no JSON-RPC batches: behind its URL should be one server, or whoever keeps to one");
        }
        let result = self.call(first.0, first.1).await?;
        Ok((result, self.call(second.0, second.1).await))
    }

    /// Chain id that the endpoint serves.
    pub async fn chain_id(&self) -> Result<u64, L1Error> {
        self.provider.get_chain_id().await.map_err(failed("eth_chainId"))
    }

    /// Number of the newest block.
    pub async fn newest(&self) -> Result<u64, L1Error> {
        self.provider.get_block_number().await.map_err(failed("eth_blockNumber"))
    }

    /// A block by number or tag, with the hashes of its transactions.
    pub async fn block(&self, which: impl Into<BlockId>) -> Result<Option<Block>, L1Error> {
        self.provider.get_block(which.into()).await.map_err(failed("eth_getBlockByNumber"))
    }

    /// The account's next nonce after block `block`.
    pub async fn nonce(&self, account: Address, block: impl Into<BlockId>) -> Result<u64, L1Error> {
        let nonce = self.provider.get_transaction_count(account).block_id(block.into());
        nonce.await.map_err(failed("eth_getTransactionCount"))
    }

    pub async fn transaction(&self, hash: B256) -> Result<Option<Transaction>, L1Error> {
        self.provider.get_transaction_by_hash(hash).await.map_err(failed("eth_getTransactionByHash"))
    }

    /// Calls a view of a contract on the state after the newest block.
    pub async fn view<C: SolCall>(
        &self,
        name: &'static str,
        to: Address,
        call: &C,
    ) -> Result<C::Return, L1Error> {
        self.view_at(name, to, call, BlockId::latest()).await
    }

    /// [`view`](Self::view) on the state after block `block`.
    pub async fn view_at<C: SolCall>(
        &self,
        name: &'static str,
        to: Address,
        call: &C,
        block: impl Into<BlockId>,
    ) -> Result<C::Return, L1Error> {
        let request = TransactionRequest::default().to(to).input(Bytes::from(call.abi_encode()).into());
        let answer = self.provider.call(request).block(block.into()).await;
        C::abi_decode_returns(&answer.map_err(refused(name, "eth_call"))?)
            .map_err(|error| L1Error::Undecodable { call: name, reason: error.to_string() })
    }
}

/// What it means that a call of `method` failed.
pub(crate) fn failed(method: &'static str) -> impl Fn(TransportError) -> L1Error {
    move |error| match error {
        RpcError::ErrorResp(payload) => rpc_error(method, &payload),
        RpcError::Transport(TransportErrorKind::Custom(cause)) => match cause.downcast::<L1Error>() {
            Ok(error) => *error,
            Err(other) => malformed(method, &other),
        },
        // Without the answer itself.
        RpcError::DeserError { err, .. } => malformed(method, &err),
        other => malformed(method, &other),
    }
}

/// What it means that the function `name` was refused, where `method` is `eth_call` or its like.
pub(crate) fn refused(name: &'static str, method: &'static str) -> impl Fn(TransportError) -> L1Error {
    move |error| {
        let Some(payload) = error.as_error_resp() else { return failed(method)(error) };
        match payload.as_revert_data() {
            Some(data) => L1Error::Reverted { call: name, reason: revert_reason(&data) },
            // Some clients give no data with a revert (or a contract that ran out of gas) but say so.
            None if payload.code == 3 || payload.message.contains("revert") => {
                L1Error::Reverted { call: name, reason: shorten(&payload.message) }
            }
            None => rpc_error(method, payload),
        }
    }
}

fn rpc_error(method: &str, payload: &ErrorPayload) -> L1Error {
    L1Error::Rpc { method: method.to_owned(), code: payload.code, message: shorten(&payload.message) }
}

fn malformed(method: &str, reason: &dyn std::fmt::Display) -> L1Error {
    L1Error::Malformed { method: method.to_owned(), reason: shorten(&reason.to_string()) }
}

/// Whether a server that gave one error for a whole batch takes none at all.
fn refuses_batches(payload: &ErrorPayload) -> bool {
    let unknown = matches!(payload.code, RPC_PARSE_ERROR | RPC_INVALID_REQUEST);
    // Too long is only what it would have answered.
    unknown || payload.message.to_lowercase().contains("batch") && payload.code != RPC_BATCH_TOO_LARGE
}

/// The contract's error in words: its name and fields where it is one of ours.
fn revert_reason(data: &[u8]) -> String {
    match contracts::describe_error(data) {
        Some(text) => text,
        None if data.is_empty() => "no reason given".to_owned(),
        None => shorten(&alloy_primitives::hex::encode_prefixed(data)),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(ERROR_TEXT_LIMIT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
