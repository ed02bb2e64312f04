//! A relay in front of L1 for one role: through it L1 can stand still, or be away, while everybody else sees it go on.
//!
//! JSON-RPC by HTTP `POST` and a beacon node's `GET` are relayed.

use std::{net::SocketAddr, sync::Arc};

use alloy_primitives::{hex, keccak256};
use anyhow::{Context, Result, ensure};
use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{Method, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use blindfold::devnet::ports::local;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

/// Longest relayed request, in bytes.
const MAX_REQUEST_BYTES: usize = 16 * 1024 * 1024;
/// The tags that name the head of the chain, one way or another.
const HEADS: [&str; 3] = ["finalized", "safe", "latest"];

/// What the role behind the relay sees of L1.
#[derive(Debug, Default)]
enum View {
    /// Everything.
    #[default]
    Whole,
    /// Everything, but for the heads: they are these, in the order of [`HEADS`].
    StandingStill([Value; HEADS.len()]),
    /// Nothing: every request fails.
    Away,
    /// Everything, but every block has another hash.
    TakenBack,
}

/// A final L1 block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinalBlock {
    /// Its number.
    pub number: u64,
    /// Its time, in seconds.
    pub timestamp: u64,
}

/// A running relay.
pub struct L1Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

struct Shared {
    upstream: String,
    http: reqwest::Client,
    view: Mutex<View>,
    /// The longest age of an origin, in seconds, as the role behind the relay is to see it.
    claimed_origin_age: Mutex<Option<u64>>,
}

impl L1Relay {
    /// Listens on a free port and relays to L1 at `upstream`.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn start(upstream: &str) -> Result<Self> {
        let listener = TcpListener::bind(local(0)).await?;
        let address = listener.local_addr()?;
        let upstream = upstream.trim_end_matches('/').to_owned();
        let shared = Arc::new(Shared {
            upstream,
            http: crate::http_client(),
            view: Mutex::default(),
            claimed_origin_age: Mutex::default(),
        });
        let router = Router::new().fallback(relay).with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            // The relay lives as long as its listener: a role whose L1 is gone says so.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, shared, server })
    }

    /// The URL for the role.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// L1's head stands still from now on. Gives the newest final block.
    ///
    /// # Errors
    /// When L1 does not answer.
    pub async fn stand_still(&self) -> Result<FinalBlock> {
        let mut heads = [Value::Null, Value::Null, Value::Null];
        for (head, tag) in heads.iter_mut().zip(HEADS) {
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber",
                "params": [tag, false] });
            let (_, answer) = self.shared.ask(Method::POST, "", request.to_string().into()).await?;
            *head = serde_json::from_slice::<Value>(&answer)?["result"].take();
            ensure!(head.is_object(), "L1 gives no block {tag}");
        }
        let quantity = |field: &str| {
            let text = heads[0][field].as_str().with_context(|| format!("a block without {field}"))?;
            anyhow::Ok(u64::from_str_radix(text.trim_start_matches("0x"), 16)?)
        };
        let newest = FinalBlock { number: quantity("number")?, timestamp: quantity("timestamp")? };
        *self.shared.view.lock() = View::StandingStill(heads);
        Ok(newest)
    }

    /// L1 answers nothing from now on.
    pub fn go_away(&self) {
        *self.shared.view.lock() = View::Away;
    }

    /// From now on every block has another hash than before, final ones too.
    pub fn take_back_final_blocks(&self) {
        *self.shared.view.lock() = View::TakenBack;
    }

    /// From now on the inbox seems to have been deployed with this longest age of an origin: a role compares its settings
    /// with the contracts'.
    pub fn claim_origin_age(&self, seconds: u64) {
        *self.shared.claimed_origin_age.lock() = Some(seconds);
    }

    /// L1 is as it is from now on.
    pub fn go_on(&self) {
        *self.shared.view.lock() = View::Whole;
    }
}

impl Drop for L1Relay {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), reqwest::Error> {
        let request = self.http.request(method, format!("{}{path}", self.upstream));
        let answer = request.header(CONTENT_TYPE, "application/json").body(body).send().await?;
        Ok((answer.status(), answer.bytes().await?))
    }

    /// The answer that L1 is not asked for, if this request is one for a head that stands still.
    fn kept(&self, body: &[u8]) -> Option<Value> {
        let View::StandingStill(heads) = &*self.view.lock() else { return None };
        let request: Value = serde_json::from_slice(body).ok()?;
        if request["method"] != "eth_getBlockByNumber" {
            return None;
        }
        let place = HEADS.iter().position(|tag| request["params"][0] == *tag)?;
        Some(json!({ "jsonrpc": "2.0", "id": request["id"], "result": heads[place] }))
    }
}

/// The answer to a question for a block, with another hash.
fn with_other_hash(answer: &[u8]) -> Option<Value> {
    let mut answer: Value = serde_json::from_slice(answer).ok()?;
    let block = answer.get_mut("result").filter(|block| block["parentHash"].is_string())?;
    let hash = block["hash"].as_str()?;
    block["hash"] = hex::encode_prefixed(keccak256(hash)).into();
    Some(answer)
}

/// The answer to a call of the inbox's `timing()`, whose last word is the longest age of an origin, with another one.
fn with_origin_age(request: &[u8], answer: &[u8], seconds: u64) -> Option<Value> {
    let request: Value = serde_json::from_slice(request).ok()?;
    let selector = hex::encode_prefixed(&keccak256("timing()")[..4]);
    let call = &request["params"][0];
    // Either name is the field's.
    let asked = ["input", "data"].into_iter().any(|name| call[name] == selector.as_str());
    if request["method"] != "eth_call" || !asked {
        return None;
    }
    let mut answer: Value = serde_json::from_slice(answer).ok()?;
    let words = answer["result"].as_str()?;
    let kept = words.get(..words.len().checked_sub(64)?)?;
    answer["result"] = format!("{kept}{seconds:064x}").into();
    Some(answer)
}

async fn relay(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    if matches!(*shared.view.lock(), View::Away) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, MAX_REQUEST_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let json = [(CONTENT_TYPE, "application/json")];
    if let Some(kept) = shared.kept(&body) {
        return (json, kept.to_string()).into_response();
    }
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let claimed = *shared.claimed_origin_age.lock();
    let taken_back = matches!(*shared.view.lock(), View::TakenBack);
    match shared.ask(parts.method, path, body.clone()).await {
        Ok((status, answer)) if taken_back => match with_other_hash(&answer) {
            Some(changed) => (status, json, changed.to_string()).into_response(),
            None => (status, json, answer).into_response(),
        },
        Ok((status, answer)) => match claimed.and_then(|seconds| with_origin_age(&body, &answer, seconds)) {
            Some(changed) => (status, json, changed.to_string()).into_response(),
            None => (status, json, answer).into_response(),
        },
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::{Json, routing::post};

    use super::*;

    /// An L1 whose head has this number, whoever asks.
    async fn l1(height: Arc<Mutex<u64>>) -> String {
        let answer = move |Json(request): Json<Value>| async move {
            let number = format!("{:#x}", *height.lock());
            Json(
                json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "number": number, "timestamp": "0x64" } }),
            )
        };
        let listener = TcpListener::bind(local(0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, Router::new().route("/", post(answer))).await });
        url
    }

    async fn head(relay: &L1Relay, tag: &str) -> Option<String> {
        let request =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "eth_getBlockByNumber", "params": [tag, false] });
        let answer = crate::http_client().post(relay.url()).body(request.to_string());
        let answer = answer.header(CONTENT_TYPE, "application/json").send().await.unwrap();
        let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).ok()?;
        assert_eq!(answer["id"], 7);
        answer["result"]["number"].as_str().map(str::to_owned)
    }

    #[tokio::test]
    async fn heads_stand_still_and_go_on() {
        let height = Arc::new(Mutex::new(5));
        let relay = L1Relay::start(&l1(Arc::clone(&height)).await).await.unwrap();
        assert_eq!(relay.stand_still().await.unwrap(), FinalBlock { number: 5, timestamp: 100 });
        *height.lock() = 6;
        for tag in HEADS {
            assert_eq!(head(&relay, tag).await.as_deref(), Some("0x5"), "{tag}");
        }
        assert_eq!(head(&relay, "0x6").await.as_deref(), Some("0x6"), "a block by its number");
        relay.go_away();
        assert_eq!(head(&relay, "latest").await, None);
        relay.go_on();
        assert_eq!(head(&relay, "finalized").await.as_deref(), Some("0x6"));
    }
}
