//! A server with small limits, and a client that can misbehave.
#![allow(dead_code)]

use std::net::{Ipv4Addr, SocketAddr};

use blindfold_protocol::{Acknowledgement, Address, B256, BatchHints, Release};
use blindfold_rpc::{
    BlindApiServer, Encoded, FeedSource, Hub, Passthrough, PeerAddress, RawEnvelope, RpcError,
    SequencerApiServer, ServerConfig, ServerHandle,
    jsonrpsee::{
        Extensions, PendingSubscriptionSink, RpcModule,
        core::{SubscriptionResult, async_trait},
        types::ErrorObjectOwned,
    },
    serve,
    types::{
        BatchHead, BatchInfo, BlockHead, EncryptionKeyInfo, EnvelopeState, FeeAccount, FeeAccountProof,
        LedgerAt, Receipt, Refusal, SendOptions, SentEnvelope, Status,
    },
};
use serde_json::value::to_raw_value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub const MAX_REQUEST_BYTES: u32 = 100_000;
pub const MAX_CALLS: u32 = 3;

/// A role with fixed answers.
#[derive(Clone)]
pub struct Role {
    pub hub: Hub,
}

pub fn status() -> Status {
    Status {
        role: "sequencer".to_owned(),
        version: "0.1.0".to_owned(),
        chain_id: 1,
        l1_chain_id: 2,
        inbox: Address::repeat_byte(3),
        head: BatchHead { number: 4, hash: B256::repeat_byte(4), timestamp_ms: 5, generation: 0 },
        certified: 4,
        hinted: 3,
        posted: None,
        block: BlockHead { number: 1, hash: B256::repeat_byte(1), timestamp: 6 },
        pending_envelopes: Some(0),
        base_fee: u128::MAX,
        gas_base_fee: u128::MAX,
        counters: [("sealed".to_owned(), 4)].into(),
    }
}

#[async_trait]
impl BlindApiServer for Role {
    async fn get_encryption_key(&self) -> Result<Vec<EncryptionKeyInfo>, RpcError> {
        Ok(vec![])
    }

    async fn get_receipt(&self, id: B256) -> Result<Option<Receipt>, RpcError> {
        Ok((id == B256::ZERO).then(|| Receipt {
            id,
            state: EnvelopeState::Skipped,
            reason: Some("expired".to_owned()),
            number: Some(1),
            index: Some(0),
            header_hash: None,
            block_number: None,
            block_hash: None,
            transactions: None,
        }))
    }

    async fn get_batch(&self, number: u64) -> Result<Option<BatchInfo>, RpcError> {
        match number {
            0 => Err(RpcError::unavailable("not_certified", "later")),
            _ => Ok(None),
        }
    }

    async fn get_hints(&self, _number: u64) -> Result<Option<Encoded<BatchHints>>, RpcError> {
        Ok(None)
    }

    async fn get_fee_account(&self, address: Address) -> Result<FeeAccount, RpcError> {
        Ok(FeeAccount {
            address,
            balance: 10,
            held: 0,
            live_nonces: 2,
            base_fee: 1,
            gas_base_fee: 1,
            malformed_surcharge: u128::MAX,
        })
    }

    async fn get_fee_account_proof(
        &self,
        _: Address,
        _: Option<LedgerAt>,
    ) -> Result<Option<FeeAccountProof>, RpcError> {
        Ok(None)
    }

    async fn get_status(&self) -> Result<Status, RpcError> {
        Ok(status())
    }

    async fn subscribe_topic(
        &self,
        pending: PendingSubscriptionSink,
        extensions: &Extensions,
        topic: String,
    ) -> SubscriptionResult {
        self.hub.attach(pending, extensions, &topic).await
    }
}

#[async_trait]
impl SequencerApiServer for Role {
    async fn send_envelope(
        &self,
        extensions: &Extensions,
        envelope: Encoded<RawEnvelope>,
        options: Option<SendOptions>,
    ) -> Result<SentEnvelope, RpcError> {
        assert!(extensions.get::<PeerAddress>().is_some_and(|peer| peer.0.ip().is_loopback()));
        if options.unwrap_or_default().promise {
            return Err(RpcError::busy("mempool_full", "try later"));
        }
        Ok(SentEnvelope { id: alloy_primitives::keccak256(envelope.bytes()), promise: None })
    }

    async fn submit_acknowledgement(
        &self,
        _extensions: &Extensions,
        acknowledgement: Encoded<Acknowledgement>,
    ) -> Result<bool, RpcError> {
        acknowledgement.decode_param().map(|_| true)
    }

    async fn submit_refusal(&self, _extensions: &Extensions, _refusal: Refusal) -> Result<bool, RpcError> {
        Ok(true)
    }

    async fn submit_hints(
        &self,
        _extensions: &Extensions,
        release: Encoded<Release>,
        hints: Encoded<BatchHints>,
    ) -> Result<bool, RpcError> {
        Ok(release.decode_param()?.number == hints.decode_param()?.number)
    }
}

pub fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

pub fn methods(hub: Hub) -> RpcModule<()> {
    let role = Role { hub };
    let mut methods = RpcModule::new(());
    methods.merge(BlindApiServer::into_rpc(role.clone())).expect("no name twice");
    methods.merge(SequencerApiServer::into_rpc(role)).expect("no name twice");
    methods
}

pub fn config(port: u16) -> ServerConfig {
    let mut config = ServerConfig::new(loopback(port));
    config.max_request_bytes = MAX_REQUEST_BYTES;
    config.max_calls_per_request = MAX_CALLS;
    config.max_subscriptions_per_connection = 2;
    config
}

/// `eth_chainId` answers, `eth_getLogs` gives the execution client's own error, `eth_syncing` is away.
pub fn passthrough() -> Passthrough {
    Passthrough::new(["eth_chainId", "eth_getLogs", "eth_syncing"], |method, params| async move {
        match method.as_str() {
            "eth_chainId" => Ok(to_raw_value(&(method, params)).expect("serializes")),
            "eth_getLogs" => Err(ErrorObjectOwned::owned(3, "execution reverted", Some("0x01"))),
            _ => Err(RpcError::unavailable("execution_client_away", "no connection").into()),
        }
    })
}

pub async fn start(hub: Hub) -> ServerHandle {
    serve(config(0), methods(hub), Some(passthrough())).await.expect("a free port")
}

/// How a feed comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// From a server that has no binary feed.
    Json,
    Binary,
}

pub const FORMS: [Form; 2] = [Form::Json, Form::Binary];

/// A server whose feed comes in one form.
pub fn feeding(port: u16, hub: &Hub, form: Form) -> ServerConfig {
    let feed = (form == Form::Binary).then(|| FeedSource::Hub(hub.clone()));
    ServerConfig { feed, ..config(port) }
}

/// Sends bytes as they are and reads until the server closes.
pub async fn raw(addr: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).await.expect("connects");
    // A server that closes with unread input resets the connection; what came before counts.
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// One HTTP request with a JSON body; gives status line and headers, and the body.
pub async fn request(addr: SocketAddr, line: &str, headers: &str, body: &str) -> (String, String) {
    let text = format!(
        "{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = raw(addr, text.as_bytes()).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
    (head.to_ascii_lowercase(), body.to_owned())
}

/// Posts a JSON-RPC body and parses the answer.
pub async fn post(addr: SocketAddr, body: &str) -> serde_json::Value {
    let (head, body) = request(addr, "POST /", "", body).await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    serde_json::from_str(&body).expect("JSON")
}

/// Calls one method with JSON parameters.
pub async fn call(addr: SocketAddr, method: &str, params: &str) -> serde_json::Value {
    post(addr, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)).await
}

/// Code, reason and retry of an error answer.
pub fn error(answer: &serde_json::Value) -> (i64, String, bool) {
    let error = &answer["error"];
    (
        error["code"].as_i64().expect("a code"),
        error["data"]["reason"].as_str().unwrap_or("").to_owned(),
        error["data"]["retry"].as_bool().unwrap_or(false),
    )
}
