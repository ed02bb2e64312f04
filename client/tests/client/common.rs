//! A committee, a scripted node, a scripted sequencer and a scripted L1, and a proxy between them.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes, U256};
use async_trait::async_trait;
use blindfold_bte::{Opening, SessionKey, verify_proof};
use blindfold_client::{
    CommitteeKeyError, CommitteeSource, Node, NodeError, Proxy, ProxyConfig, ProxyError, SignedTransaction,
    TransactionFields, transaction::sign,
};
pub use blindfold_kit::{BASE_FEE, CHAIN_ID, LAST_NUMBER, payer as key};
use blindfold_kit::{Committee, chain_config};
use blindfold_protocol::{
    Acknowledgement, BatchHints, Bundle, Canonical, ChainConfig, Envelope, Epoch, Epochs, Promise, Release,
    SigningKey,
};
use blindfold_rpc::jsonrpsee::{Extensions, PendingSubscriptionSink, core::SubscriptionResult};
use blindfold_rpc::types::{
    BatchHead, BatchInfo, BlockHead, EncryptionKeyInfo, EnvelopeState, FeeAccount, FeeAccountProof, LedgerAt,
    Receipt, Refusal, SendOptions, SentEnvelope, Status, TransactionOutcome,
};
use blindfold_rpc::{
    BlindApiServer, Encoded, Inbound, NODE_ONLY_METHODS, Passthrough, READ_METHODS, RawEnvelope,
    ReceivedError, RpcError, SequencerApiServer, ServeError, ServerConfig, ServerHandle, serve,
};
use parking_lot::Mutex;
use serde_json::{Value, json, value::RawValue};
use tempfile::TempDir;
use tokio::sync::watch;

pub const HEAD: u64 = 100;
pub const GAS_BASE_FEE: u128 = 7;
pub const EXPIRY_BATCHES: u64 = 50;
pub const GAS: u64 = 21_000;
const MAX_BATCH: u32 = 4;
const MEMBERS: u16 = 3;
const THRESHOLD: u16 = 2;
/// Nothing here takes this long; it only keeps a broken test from hanging.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a state is looked at that no event tells of.
const LOOK: Duration = Duration::from_millis(5);

pub fn committee() -> &'static Committee {
    static COMMITTEE: OnceLock<Committee> = OnceLock::new();
    COMMITTEE.get_or_init(|| deal(7))
}

pub fn deal(seed: u64) -> Committee {
    Committee::deal(MEMBERS, THRESHOLD, MAX_BATCH, seed)
}

pub fn epoch() -> Epoch {
    committee().epoch(1, 1, LAST_NUMBER)
}

pub fn sequencer_key() -> SigningKey {
    key(9)
}

pub fn chain() -> ChainConfig {
    ChainConfig { malformed_surcharge: 0, ..ChainConfig::clone(&chain_config()) }
}

pub fn fields(nonce: u64) -> TransactionFields {
    TransactionFields {
        chain_id: CHAIN_ID,
        nonce,
        to: Address::repeat_byte(0x77),
        value: U256::from(1),
        input: Bytes::new(),
        gas_limit: GAS,
        max_fee_per_gas: 100,
        max_priority_fee_per_gas: 1,
    }
}

/// A transfer of the user `byte`.
pub fn transfer(byte: u8, nonce: u64) -> (Bytes, B256) {
    sign(&fields(nonce), &key(byte))
}

/// Session key and message of an envelope, opened as a committee and a hint publisher would.
pub fn opening(envelope: &Envelope) -> (SessionKey, Vec<u8>) {
    let (committee, backend) = (committee(), blindfold_bte::auto(1));
    let ad = envelope.header.hash().0;
    let point = verify_proof(&ad, &envelope.ciphertext, &envelope.proof).expect("a proof");
    let prepared = backend.predecrypt(&committee.parameters, &[point]).expect("one");
    let shares = [1u16, 3].map(|j| {
        let share = committee.keys[usize::from(j) - 1].release_share(&[point]);
        (j, share.expect("a share"))
    });
    let release = committee.parameters.combine(&shares).expect("two shares");
    let opened = backend.finalize(&committee.parameters, &prepared, &release, &[(&ad, &envelope.ciphertext)]);
    match opened.expect("it fits").pop() {
        Some(Opening::WellFormed { key, message }) => (key, message.to_vec()),
        _ => panic!("malformed"),
    }
}

/// The transactions that an envelope carries.
pub fn open(bytes: &[u8]) -> Vec<SignedTransaction> {
    let (_, message) = opening(&Envelope::decode(bytes).expect("an envelope"));
    let bundle = Bundle::decode(&message).expect("a bundle");
    let raws = bundle.items.iter().map(|item| Bytes::copy_from_slice(&item.bytes));
    raws.map(|raw| SignedTransaction::decode(raw, CHAIN_ID).expect("a transaction")).collect()
}

pub fn nonces(bytes: &[u8]) -> Vec<u64> {
    open(bytes).iter().map(|transaction| transaction.nonce).collect()
}

/// L1 as a script.
pub struct Registry {
    pub key_bytes: Mutex<Vec<u8>>,
    pub epochs: Mutex<Vec<Epoch>>,
    pub away: Mutex<bool>,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            key_bytes: Mutex::new(committee().encryption_key.to_bytes().to_vec()),
            epochs: Mutex::new(vec![epoch()]),
            away: Mutex::new(false),
        }
    }
}

#[async_trait]
impl CommitteeSource for Registry {
    async fn epochs(&self) -> Result<Epochs, CommitteeKeyError> {
        if *self.away.lock() {
            return Err(CommitteeKeyError::L1("away".to_owned()));
        }
        Ok(Epochs::new(self.epochs.lock().clone()).expect("valid"))
    }

    async fn encryption_key(&self, _: u64) -> Result<Vec<u8>, CommitteeKeyError> {
        Ok(self.key_bytes.lock().clone())
    }
}

/// What a scripted server knows and has seen.
pub struct State {
    pub role: &'static str,
    /// Every method that was called, whether it is served or not.
    pub calls: Vec<String>,
    pub head: u64,
    pub generation: u16,
    pub certified: u64,
    pub base_fee: u128,
    pub gas_base_fee: u128,
    pub receipts: HashMap<B256, Receipt>,
    pub batches: HashMap<u64, BatchInfo>,
    pub fee_proof: Option<FeeAccountProof>,
    pub keys: Vec<EncryptionKeyInfo>,
    /// Chain state, at the node.
    pub next_nonces: HashMap<Address, u64>,
    pub balance: U256,
    pub in_blocks: HashMap<B256, Value>,
    /// Envelopes as they arrived, at the sequencer; refused ones, too.
    pub arrived: Vec<(B256, Bytes)>,
    /// Answers to the next envelopes instead of taking them.
    pub refusals: VecDeque<RpcError>,
    /// An answer to every envelope instead of taking it.
    pub refuse_all: Option<RpcError>,
    /// Takes every so many-th envelope, and is busy at all others.
    pub takes_one_in: Option<usize>,
    /// The state of an envelope that was taken.
    pub taken_as: EnvelopeState,
    pub promise: Option<Promise>,
    pub answered_id: Option<B256>,
}

impl State {
    fn new(role: &'static str) -> Self {
        Self {
            role,
            calls: Vec::new(),
            head: HEAD,
            generation: 0,
            certified: HEAD,
            base_fee: BASE_FEE,
            gas_base_fee: GAS_BASE_FEE,
            receipts: HashMap::new(),
            fee_proof: None,
            batches: HashMap::new(),
            keys: vec![EncryptionKeyInfo {
                epoch: 1,
                first_number: 1,
                last_number: LAST_NUMBER,
                encryption_key: committee().encryption_key.to_bytes().to_vec().into(),
                encryption_key_hash: epoch().encryption_key_hash,
                parameters_hash: epoch().parameters_hash,
                parameters_location: "parameters.bin".to_owned(),
            }],
            next_nonces: HashMap::new(),
            balance: U256::from(10u64.pow(18)),
            in_blocks: HashMap::new(),
            arrived: Vec::new(),
            refusals: VecDeque::new(),
            refuse_all: None,
            takes_one_in: None,
            taken_as: EnvelopeState::Pending,
            promise: None,
            answered_id: None,
        }
    }

    /// As it stands when all batches up to this one are there.
    pub fn reach(&mut self, number: u64) {
        (self.head, self.certified) = (number, number);
    }

    /// Envelopes that arrived, each once.
    pub fn envelopes(&self) -> Vec<(B256, Bytes)> {
        let mut once: Vec<(B256, Bytes)> = Vec::new();
        for (id, bytes) in &self.arrived {
            if !once.iter().any(|(known, _)| known == id) {
                once.push((*id, bytes.clone()));
            }
        }
        once
    }

    pub fn set(&mut self, id: B256, state: EnvelopeState) {
        self.receipts.insert(id, receipt(id, state));
    }

    /// A block with these transactions of the envelope, the others skipped for their reasons.
    pub fn execute(&mut self, id: B256, outcomes: &[(B256, Option<&str>)]) {
        for (hash, skipped) in outcomes {
            if skipped.is_none() {
                self.in_blocks.insert(*hash, json!({"transactionHash": hash, "blockNumber": "0x1"}));
            }
        }
        let outcomes = outcomes.iter().map(|(hash, skipped)| TransactionOutcome {
            hash: Some(*hash),
            included: skipped.is_none(),
            reason: skipped.map(str::to_owned),
        });
        let executed = receipt(id, EnvelopeState::Executed);
        self.receipts.insert(id, Receipt { transactions: Some(outcomes.collect()), ..executed });
    }
}

pub fn receipt(id: B256, state: EnvelopeState) -> Receipt {
    Receipt::new(id, state)
}

/// A scripted server, as node or as sequencer; it can go away and come back on its port.
pub struct Double {
    pub state: Arc<Mutex<State>>,
    called: watch::Sender<u64>,
    addr: SocketAddr,
    server: Mutex<Option<ServerHandle>>,
}

impl Double {
    pub async fn start(role: &'static str) -> Arc<Self> {
        let double = Self {
            state: Arc::new(Mutex::new(State::new(role))),
            called: watch::channel(0).0,
            addr: ([127, 0, 0, 1], 0).into(),
            server: Mutex::new(None),
        };
        let server = double.listen().await.expect("a free port");
        let double = Self { addr: server.local_addr(), server: Mutex::new(Some(server)), ..double };
        Arc::new(double)
    }

    async fn listen(&self) -> Result<ServerHandle, ServeError> {
        let (state, called) = (Arc::clone(&self.state), self.called.clone());
        let observer = move |record: blindfold_rpc::CallRecord<'_>| {
            state.lock().calls.push(record.method.to_owned());
            called.send_modify(|calls| *calls += 1);
        };
        let config = ServerConfig {
            observer: Some(Arc::new(observer)),
            inbound: Inbound { max_calls_per_address_per_second: 0, ..Inbound::default() },
            ..ServerConfig::new(self.addr)
        };
        let api = Api(Arc::clone(&self.state));
        let mut module = BlindApiServer::into_rpc(api.clone());
        let reads = if self.state.lock().role == "sequencer" {
            module.merge(SequencerApiServer::into_rpc(api)).expect("different names");
            None
        } else {
            let state = Arc::clone(&self.state);
            let allowed = READ_METHODS.iter().chain(NODE_ONLY_METHODS).copied();
            Some(Passthrough::new(allowed, move |method, params| {
                let answer = read(&state.lock(), &method, params.as_deref());
                async move { Ok(serde_json::value::to_raw_value(&answer).expect("JSON")) }
            }))
        };
        serve(config, module, reads).await
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub async fn leave(&self) {
        let server = self.server.lock().take();
        if let Some(server) = server {
            server.shutdown().await;
        }
    }

    pub async fn come_back(&self) {
        // Somebody else may have been given the port for a moment.
        let server = async {
            loop {
                match self.listen().await {
                    Ok(server) => return server,
                    Err(_) => tokio::time::sleep(LOOK).await,
                }
            }
        };
        let server = tokio::time::timeout(PATIENCE, server).await.expect("its port is free");
        *self.server.lock() = Some(server);
    }

    pub fn called(&self, method: &str) -> usize {
        self.state.lock().calls.iter().filter(|called| *called == method).count()
    }

    /// Waits until the server has answered calls so that the condition holds.
    pub async fn until(&self, what: &str, condition: impl Fn(&State) -> bool) {
        let mut calls = self.called.subscribe();
        let wait = calls.wait_for(|_| condition(&self.state.lock()));
        tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what}")).expect("it lives");
    }

    /// Waits for some more rounds of the proxy: what it does not do in them it does not do.
    pub async fn called_again(&self, method: &str, times: usize) {
        let before = self.called(method);
        let after = |state: &State| state.calls.iter().filter(|called| *called == method).count();
        self.until(method, |state| after(state) >= before + times).await;
    }
}

fn read(state: &State, method: &str, params: Option<&RawValue>) -> Value {
    let params: Value =
        params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or(Value::Null);
    let hash = || params[0].as_str().and_then(|text| text.parse::<B256>().ok()).unwrap_or_default();
    match method {
        "eth_chainId" => json!(format!("{CHAIN_ID:#x}")),
        "eth_getTransactionCount" => {
            let address: Address = params[0].as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
            let next = state.next_nonces.get(&address).copied().unwrap_or(0);
            json!(format!("{next:#x}"))
        }
        "eth_getBalance" => json!(state.balance),
        "eth_getTransactionReceipt" | "eth_getTransactionByHash" => {
            state.in_blocks.get(&hash()).cloned().unwrap_or(Value::Null)
        }
        "eth_estimateGas" => json!("0x5208"),
        "eth_getBlockByNumber" => json!({"baseFeePerGas": "0x64"}),
        _ => json!("0x1"),
    }
}

#[derive(Clone)]
struct Api(Arc<Mutex<State>>);

#[async_trait]
impl BlindApiServer for Api {
    async fn get_encryption_key(&self) -> Result<Vec<EncryptionKeyInfo>, RpcError> {
        Ok(self.0.lock().keys.clone())
    }

    async fn get_receipt(&self, id: B256) -> Result<Option<Receipt>, RpcError> {
        Ok(self.0.lock().receipts.get(&id).cloned())
    }

    async fn get_batch(&self, number: u64) -> Result<Option<BatchInfo>, RpcError> {
        Ok(self.0.lock().batches.get(&number).cloned())
    }

    async fn get_hints(&self, _: u64) -> Result<Option<Encoded<BatchHints>>, RpcError> {
        Ok(None)
    }

    async fn get_fee_account(&self, address: Address) -> Result<FeeAccount, RpcError> {
        Ok(FeeAccount {
            address,
            balance: 0,
            held: 0,
            live_nonces: 0,
            base_fee: BASE_FEE,
            gas_base_fee: GAS_BASE_FEE,
            malformed_surcharge: 0,
        })
    }

    async fn get_fee_account_proof(
        &self,
        _: Address,
        at: Option<LedgerAt>,
    ) -> Result<Option<FeeAccountProof>, RpcError> {
        let proof = self.0.lock().fee_proof.clone();
        Ok(proof.filter(|proof| match at {
            Some(LedgerAt::Number(number)) => proof.number == number,
            _ => true,
        }))
    }

    async fn get_status(&self) -> Result<Status, RpcError> {
        let state = self.0.lock();
        Ok(Status {
            role: state.role.to_owned(),
            version: "test".to_owned(),
            chain_id: CHAIN_ID,
            l1_chain_id: chain().deployment.l1_chain_id,
            inbox: chain().deployment.inbox,
            head: BatchHead {
                number: state.head,
                hash: B256::ZERO,
                timestamp_ms: 0,
                generation: state.generation,
            },
            certified: state.certified,
            hinted: state.certified,
            posted: None,
            block: BlockHead { number: 1, hash: B256::ZERO, timestamp: 0 },
            pending_envelopes: None,
            base_fee: state.base_fee,
            gas_base_fee: state.gas_base_fee,
            counters: Default::default(),
        })
    }

    async fn subscribe_topic(
        &self,
        pending: PendingSubscriptionSink,
        _: &Extensions,
        _: String,
    ) -> SubscriptionResult {
        pending.reject(RpcError::unknown_method("blind_subscribe")).await;
        Ok(())
    }
}

#[async_trait]
impl SequencerApiServer for Api {
    async fn send_envelope(
        &self,
        _: &Extensions,
        envelope: Encoded<RawEnvelope>,
        _: Option<SendOptions>,
    ) -> Result<SentEnvelope, RpcError> {
        let mut state = self.0.lock();
        let id = Envelope::decode(envelope.bytes()).map_or(B256::ZERO, |envelope| envelope.id());
        state.arrived.push((id, envelope.into_bytes()));
        if let Some(refusal) = state.refusals.pop_front().or_else(|| state.refuse_all.clone()) {
            return Err(refusal);
        }
        if state.takes_one_in.is_some_and(|so_many| !state.arrived.len().is_multiple_of(so_many)) {
            return Err(RpcError::busy("pool_full", "later"));
        }
        let taken_as = state.taken_as;
        state.receipts.entry(id).or_insert_with(|| receipt(id, taken_as));
        let promise = state.promise.as_ref().map(Encoded::new);
        Ok(SentEnvelope { id: state.answered_id.unwrap_or(id), promise })
    }

    async fn submit_acknowledgement(
        &self,
        _: &Extensions,
        _: Encoded<Acknowledgement>,
    ) -> Result<bool, RpcError> {
        Ok(false)
    }

    async fn submit_refusal(&self, _: &Extensions, _: Refusal) -> Result<bool, RpcError> {
        Ok(false)
    }

    async fn submit_hints(
        &self,
        _: &Extensions,
        _: Encoded<Release>,
        _: Encoded<BatchHints>,
    ) -> Result<bool, RpcError> {
        Ok(false)
    }
}

/// The servers and the proxy's settings.
pub struct World {
    pub node: Arc<Double>,
    pub sequencer: Arc<Double>,
    pub registry: Arc<Registry>,
    pub config: ProxyConfig,
    _dir: TempDir,
}

impl World {
    pub async fn start() -> Self {
        let (node, sequencer) = (Double::start("full_node").await, Double::start("sequencer").await);
        let dir = tempfile::tempdir().expect("a folder");
        let config = ProxyConfig {
            rpc_addr: ([127, 0, 0, 1], 0).into(),
            admin_addr: ([127, 0, 0, 1], 0).into(),
            node_url: node.url(),
            sequencer_urls: sequencer.url().into(),
            state: dir.path().join("proxy.sqlite"),
            bundle_window_ms: 1,
            poll_interval_ms: 10,
            max_attempts: 3,
            expiry_batches: EXPIRY_BATCHES,
            ..ProxyConfig::default()
        };
        Self { node, sequencer, registry: Arc::default(), config, _dir: dir }
    }

    pub fn state(&self) -> PathBuf {
        self.config.state.clone()
    }

    /// Both servers have all batches up to this one.
    pub fn reach(&self, number: u64) {
        for server in [&self.sequencer, &self.node] {
            server.state.lock().reach(number);
        }
    }

    /// Waits until the sequencer has taken the envelope of a transaction, and gives its id.
    pub async fn taken(&self, wallets: &Wallets, hash: B256) -> B256 {
        let wait = async {
            loop {
                let id = wallets.trace(hash).await["envelope"].clone();
                if let Ok(id) = serde_json::from_value::<B256>(id)
                    && self.sequencer.state.lock().receipts.contains_key(&id)
                {
                    return id;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("it is taken")
    }

    /// A proxy over these servers; one that was dropped may hold the journal for a moment still.
    pub async fn proxy(&self) -> Wallets {
        loop {
            let started =
                Proxy::start(self.config.clone(), chain(), key(3), self.registry.clone(), None).await;
            match started {
                Ok(proxy) => return Wallets::of(proxy),
                Err(ProxyError::Journal(blindfold_client::proxy::JournalError::InUse(_))) => {
                    tokio::time::sleep(LOOK).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// A proxy and an ordinary client of it.
pub struct Wallets {
    pub proxy: Proxy,
    client: Node,
}

impl Wallets {
    fn of(proxy: Proxy) -> Self {
        let client = Node::new(&format!("http://{}", proxy.local_addr())).expect("a URL");
        Self { proxy, client }
    }

    pub async fn call(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let params: Vec<Value> = params.as_array().cloned().unwrap_or_default();
        self.client.call(method, &params).await.map_err(|error| match error {
            NodeError::Call { cause: ReceivedError::Refused(refusal), .. } => refusal,
            other => panic!("{method}: {other}"),
        })
    }

    pub async fn send(&self, raw: &Bytes) -> Result<B256, RpcError> {
        let hash = self.call("eth_sendRawTransaction", json!([raw])).await?;
        Ok(serde_json::from_value(hash).expect("a hash"))
    }

    pub async fn trace(&self, hash: B256) -> Value {
        self.call("proxy_getEnvelope", json!([hash])).await.expect("an answer")
    }

    /// Waits until a transaction is finished, and gives its outcome.
    pub async fn outcome(&self, hash: B256) -> String {
        let wait = async {
            loop {
                if let Some(outcome) = self.trace(hash).await["outcome"].as_str() {
                    return outcome.to_owned();
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("an outcome")
    }
}
