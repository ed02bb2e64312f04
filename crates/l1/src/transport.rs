//! JSON-RPC over HTTP with bounded answers and a time limit for each call.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use alloy_json_rpc::{ErrorPayload, Id, Request, Response, ResponsePacket, ResponsePayload, RpcSend};
use alloy_primitives::{Address, Bytes, U64};
use alloy_sol_types::SolCall;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{contracts, error::L1Error};

/// How long to wait for a connection.
const CONNECT_TIMEOUT_MS: u64 = 5_000;
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

/// The JSON-RPC endpoint of one L1 node.
#[derive(Clone)]
pub(crate) struct Rpc {
    client: reqwest::Client,
    url: String,
    timeout_ms: u64,
    response_limit_bytes: usize,
    /// Whether it was said that the endpoint takes no batches.
    batches_refused: Arc<AtomicBool>,
}

/// A failed call: of the way there, or the server's own answer.
pub(crate) enum CallError {
    Transport(L1Error),
    Server(ErrorPayload),
}

impl Rpc {
    /// No connection is made before the first call.
    pub fn new(url: &str, timeout_ms: u64) -> Result<Self, L1Error> {
        if url.starts_with("https://") && !cfg!(feature = "tls") {
            return Err(L1Error::Url { reason: "https needs a build with the feature `tls`" });
        }
        if !url.starts_with("https://") && !url.starts_with("http://") {
            return Err(L1Error::Url { reason: "it must begin with http:// or https://" });
        }
        if reqwest::Url::parse(url).is_err() {
            return Err(L1Error::Url { reason: "it is no URL" });
        }
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_millis(CONNECT_TIMEOUT_MS))
            .timeout(Duration::from_millis(timeout_ms))
            .build()
            .map_err(|_| L1Error::Url { reason: "no HTTP client can be made for it" })?;
        let (response_limit_bytes, batches_refused) = (RESPONSE_LIMIT_BYTES, Arc::default());
        Ok(Self { client, url: url.to_owned(), timeout_ms, response_limit_bytes, batches_refused })
    }

    /// With another limit for answers.
    pub fn with_response_limit(mut self, limit_bytes: usize) -> Self {
        self.response_limit_bytes = limit_bytes;
        self
    }

    /// Calls `method`; a server's error becomes [`L1Error::Rpc`].
    pub async fn call<R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl RpcSend,
    ) -> Result<R, L1Error> {
        self.try_call(method, params).await.map_err(|error| match error {
            CallError::Transport(error) => error,
            CallError::Server(payload) => rpc_error(method, &payload),
        })
    }

    /// Calls `method` and keeps a server's error apart.
    pub async fn try_call<R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl RpcSend,
    ) -> Result<R, CallError> {
        let unlike = |error: serde_json::Error| CallError::Transport(malformed(method, &error));
        let request = Request::new(Cow::Borrowed(method), Id::Number(1), params);
        let body = serde_json::to_vec(&request).map_err(unlike)?;
        let bytes = self.exchange(method, body).await.map_err(CallError::Transport)?;
        let response: Response = serde_json::from_slice(&bytes).map_err(unlike)?;
        match response.payload {
            ResponsePayload::Success(result) => serde_json::from_str(result.get()).map_err(unlike),
            ResponsePayload::Failure(payload) => Err(CallError::Server(payload)),
        }
    }

    /// Makes two calls, each a method with its parameters, in one request: one server answers both, however many stand behind
    /// the endpoint. The second one's error is kept apart.
    ///
    /// An endpoint that takes no such batch is asked one after the other: whoever has what the first one asks for still has
    /// it when the second one comes, but another server may answer that.
    pub async fn call_both<A: DeserializeOwned, B: DeserializeOwned>(
        &self,
        first: (&'static str, Value),
        second: (&'static str, Value),
    ) -> Result<(A, Result<B, L1Error>), L1Error> {
        let method = second.0;
        let [one, two] = [(1, &first), (2, &second)]
            .map(|(id, (method, params))| Request::new(Cow::Borrowed(*method), Id::Number(id), params));
        let body = serde_json::to_vec(&[one, two]).map_err(|error| malformed(method, &error))?;
        let refusal = match self.exchange(method, body).await {
            Ok(bytes) => match serde_json::from_slice(&bytes).map_err(|error| malformed(method, &error))? {
                ResponsePacket::Batch(responses) => {
                    let result = take(first.0, 1, &responses)?;
                    return Ok((result, take(method, 2, &responses)));
                }
                ResponsePacket::Single(Response { payload: ResponsePayload::Failure(payload), .. }) => {
                    let error = rpc_error(method, &payload);
                    if !refuses_batches(&payload) {
                        return Err(error);
                    }
                    error
                }
                ResponsePacket::Single(_) => {
                    return Err(malformed(method, &"one answer to two calls"));
                }
            },
            Err(error @ L1Error::HttpStatus { status: 400 | 422 | 501, .. }) => error,
            Err(error) => return Err(error),
        };
        if !self.batches_refused.swap(true, Ordering::Relaxed) {
            tracing::warn!(%refusal, "L1 takes no JSON-RPC batches: behind its URL should be one server, or whoever keeps to one");
        }
        let result = self.call(first.0, first.1).await?;
        Ok((result, self.call(method, second.1).await))
    }

    async fn exchange(&self, method: &'static str, body: Vec<u8>) -> Result<Vec<u8>, L1Error> {
        let request = self.client.post(&self.url).header("content-type", "application/json").body(body);
        self.read(method, request).await
    }

    /// Asks for `path` below the endpoint by HTTP GET; `method` names the call in errors.
    pub async fn get<R: DeserializeOwned>(&self, method: &'static str, path: &str) -> Result<R, L1Error> {
        let url = format!("{}{path}", self.url.trim_end_matches('/'));
        let request = self.client.get(url).header("accept", "application/json");
        let bytes = self.read(method, request).await?;
        serde_json::from_slice(&bytes).map_err(|error| malformed(method, &error))
    }

    async fn read(&self, method: &'static str, request: reqwest::RequestBuilder) -> Result<Vec<u8>, L1Error> {
        let failed = |error: reqwest::Error| self.broken(method, error);
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(L1Error::HttpStatus { method: method.to_owned(), status });
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if bytes.len() + chunk.len() > self.response_limit_bytes {
                let limit_bytes = self.response_limit_bytes;
                return Err(L1Error::ResponseTooLarge { method: method.to_owned(), limit_bytes });
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn broken(&self, method: &'static str, error: reqwest::Error) -> L1Error {
        let method = method.to_owned();
        if error.is_timeout() {
            return L1Error::Timeout { method, timeout_ms: self.timeout_ms };
        }
        // The innermost cause is the telling one ("connection refused"); URLs may hold secrets.
        let error = error.without_url();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        L1Error::Unreachable { method, reason: shorten(&cause.to_string()) }
    }

    /// Chain id that the endpoint serves.
    pub async fn chain_id(&self) -> Result<u64, L1Error> {
        self.call::<U64>("eth_chainId", ()).await.map(|id| id.to())
    }

    /// Calls a view of a contract on the state after block `block` (a number or a tag).
    pub async fn view<C: SolCall>(
        &self,
        name: &'static str,
        to: Address,
        call: &C,
        block: &str,
    ) -> Result<C::Return, L1Error> {
        let data = Bytes::from(call.abi_encode());
        let answer: Bytes = self
            .try_call("eth_call", json!([{ "to": to, "data": data }, block]))
            .await
            .map_err(|error| refusal(name, "eth_call", error))?;
        C::abi_decode_returns(&answer)
            .map_err(|error| L1Error::Undecodable { call: name, reason: error.to_string() })
    }
}

impl std::fmt::Debug for Rpc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rpc").field("url", &"redacted").field("timeout_ms", &self.timeout_ms).finish()
    }
}

/// What a failed `eth_call` or `eth_estimateGas` of the function `name` means.
pub(crate) fn refusal(name: &'static str, method: &'static str, error: CallError) -> L1Error {
    match error {
        CallError::Transport(error) => error,
        CallError::Server(payload) => match payload.as_revert_data() {
            Some(data) => L1Error::Reverted { call: name, reason: revert_reason(&data) },
            // Some clients give no data with a revert (or a contract that ran out of gas) but say so.
            None if payload.code == 3 || payload.message.contains("revert") => {
                L1Error::Reverted { call: name, reason: shorten(&payload.message) }
            }
            None => rpc_error(method, &payload),
        },
    }
}

fn rpc_error(method: &'static str, payload: &ErrorPayload) -> L1Error {
    L1Error::Rpc { method: method.to_owned(), code: payload.code, message: shorten(&payload.message) }
}

fn malformed(method: &'static str, reason: &dyn std::fmt::Display) -> L1Error {
    L1Error::Malformed { method: method.to_owned(), reason: shorten(&reason.to_string()) }
}

/// The answer to the call of this id, of those to a batch: they come in any order.
fn take<R: DeserializeOwned>(method: &'static str, id: u64, responses: &[Response]) -> Result<R, L1Error> {
    let response = responses.iter().find(|response| response.id == Id::Number(id));
    match response.map(|response| &response.payload) {
        Some(ResponsePayload::Success(result)) => {
            serde_json::from_str(result.get()).map_err(|error| malformed(method, &error))
        }
        Some(ResponsePayload::Failure(payload)) => Err(rpc_error(method, payload)),
        None => Err(malformed(method, &"no answer to it in a batch")),
    }
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
