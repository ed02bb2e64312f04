//! A whole sequencer on a temporary disk, with a committee of four (three certify) and batches of eight.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod doubles;

use blindfold_rpc::RunningRole;
use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use blindfold_bte::Backend;
use blindfold_chain::{FallbackHeader, KeySigner, L1Reader, L1Submitter};
use blindfold_kit::*;
use blindfold_protocol::{
    Acknowledgement, B256, BatchHints, Canonical, ChainConfig, Envelope, EnvelopeError, Epoch, Epochs,
    Release, SealedBatch, SigningKey,
    validity::{self, Verdict},
};
use blindfold_rpc::{
    BlindApiClient, Encoded, HttpClient, RpcError, SequencerApiClient,
    types::{BatchInfo, EnvelopeState, Receipt, SendOptions, SentEnvelope},
};
use blindfold_sequencer::{
    HeldBatch, Sequencer, SequencerConfig, SequencerDeps, SequencerHandle, StartError,
};
use blindfold_store::{SqlStore, Store};
use doubles::{ScriptedCommittee, ScriptedInbox};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// What the tests' envelopes pay for the gas that they reserve, at the gas base fee of 1 wei.
pub const GAS_FEE: u128 = 100_000;

/// The world around the sequencer: what survives its death.
pub struct World {
    pub folder: TempDir,
    pub chain: Arc<ChainConfig>,
    pub l1: Arc<ScriptedL1>,
    pub inbox: Arc<ScriptedInbox>,
    pub committee: Arc<ScriptedCommittee>,
    pub execution: Arc<ScriptedExecution>,
    pub clock: Arc<ManualClock>,
    /// The key that the sequencer has.
    pub key: Arc<SigningKey>,
    pub epochs: Vec<Epoch>,
    pub config: SequencerConfig,
    /// Who does the heavy cryptography.
    pub backend: Arc<dyn Backend>,
}

impl World {
    pub fn new() -> Self {
        Self::with(|_, _| {})
    }

    /// A world whose settings are changed before it begins.
    pub fn with(change: impl FnOnce(&mut SequencerConfig, &mut ChainConfig)) -> Self {
        Self::with_epochs(vec![epoch()], change)
    }

    pub fn with_epochs(
        epochs: Vec<Epoch>,
        change: impl FnOnce(&mut SequencerConfig, &mut ChainConfig),
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut chain = ChainConfig::clone(&chain_config());
        let mut config = SequencerConfig {
            rpc_addr: ([127, 0, 0, 1], 0).into(),
            admin_addr: ([127, 0, 0, 1], 0).into(),
            data_dir: folder.path().to_path_buf(),
            l1_poll_ms: 5,
            ..SequencerConfig::default()
        };
        config.sealing.slot_ms = 5;
        config.sealing.retry_ms = 5;
        // Those of `opened_data` choose it.
        config.posting.opened_wait_blocks = 0;
        config.posting.interval_ms = 5;
        config.posting.retry_ms = 5;
        config.posting.max_retry_ms = 5;
        config.accusations.interval_ms = 5;
        config.outputs.interval_ms = 5;
        config.recovery.patience_ms = 50;
        config.recovery.retry_ms = 5;
        change(&mut config, &mut chain);
        let l1 = ScriptedL1::new(Epochs::new(epochs.clone()).expect("valid epochs"));
        l1.advance(2);
        let inbox = ScriptedInbox::new(chain.deployment.genesis_hash());
        Self {
            folder,
            chain: Arc::new(chain),
            l1,
            inbox,
            committee: Arc::default(),
            execution: ScriptedExecution::new(),
            clock: ManualClock::new(),
            key: sequencer_key(),
            epochs,
            config,
            backend: backend(),
        }
    }

    pub fn deps(&self, store: Arc<dyn Store>) -> SequencerDeps {
        let l1: Arc<dyn L1Reader> = self.l1.clone();
        let poster: Arc<dyn L1Submitter> = self.inbox.clone();
        SequencerDeps {
            chain: Arc::clone(&self.chain),
            store,
            l1,
            poster: Some(poster),
            accusations: Some(self.inbox.clone()),
            outputs: Some(self.inbox.clone()),
            committee: self.committee.clone(),
            settlement: None,
            execution: self.execution.clone(),
            signer: Arc::new(KeySigner::new(Arc::clone(&self.key), self.chain.deployment)),
            rebuild: None,
            parameters: committee().parameter_set(&self.epochs),
            backend: Arc::clone(&self.backend),
            clock: self.clock.clone(),
        }
    }

    pub async fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.open_disk().await)
    }

    /// Waits until nobody has the disk open: SQLite then has everything in one file, and no log beside it.
    pub async fn close_disk(&self) {
        self.open_disk().await.close().await;
    }

    async fn open_disk(&self) -> SqlStore {
        file(&self.folder.path().join("sequencer.sqlite")).await
    }

    pub async fn try_start(&self, store: Arc<dyn Store>) -> Result<Running<'_>, StartError> {
        Ok(self.running(Sequencer::start(self.config.clone(), self.deps(store)).await?))
    }

    /// A sequencer of this world that was started.
    pub fn running(&self, handle: SequencerHandle) -> Running<'_> {
        Running { world: self, client: client(handle.rpc_addr()), handle }
    }

    pub async fn start(&self) -> Running<'_> {
        let store = self.store().await;
        self.try_start(store).await.expect("the sequencer starts")
    }

    /// Starts with deposits for these payers already credited: header 1.
    pub async fn start_funded(&self, payers: &[u8]) -> Running<'_> {
        for n in payers {
            self.l1.deposit(payer(*n).address(), RICH);
        }
        let running = self.start().await;
        running.sealed(1).await;
        running
    }
}

/// A sequencer that runs, and what tests ask of it.
pub struct Running<'w> {
    pub world: &'w World,
    pub handle: SequencerHandle,
    pub client: HttpClient,
}

/// A call over HTTP on a connection of its own, whose answer nobody has read yet.
pub async fn ask(addr: SocketAddr, method: &str, params: &serde_json::Value) -> TcpStream {
    let body = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(addr).await.expect("it listens");
    stream.write_all(format!("{head}{body}").as_bytes()).await.expect("it reads");
    stream
}

/// What a role's admin server says.
pub async fn text_at(addr: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(addr).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("it answers");
    text
}

/// Closes a connection, and returns when the server has given it up.
pub async fn hang_up(mut asked: TcpStream) {
    let _ = asked.shutdown().await;
    // However it ends.
    let _ = within("the end of a connection", asked.read_to_end(&mut Vec::new())).await;
}

impl Running<'_> {
    pub async fn send(&self, envelope: &Envelope) -> Result<SentEnvelope, RpcError> {
        self.send_bytes(envelope.encode(), false).await
    }

    /// The answer once the sequencer has found out what was signed before.
    pub async fn send_bytes(&self, bytes: Vec<u8>, promise: bool) -> Result<SentEnvelope, RpcError> {
        within("the end of the recovery", async {
            loop {
                match self.send_bytes_now(bytes.clone(), promise).await {
                    Err(refusal) if refusal.reason == "recovering" => {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                    answer => return answer,
                }
            }
        })
        .await
    }

    async fn send_bytes_now(&self, bytes: Vec<u8>, promise: bool) -> Result<SentEnvelope, RpcError> {
        let options = promise.then_some(SendOptions { promise });
        self.client.send_envelope(Encoded::from_bytes(bytes), options).await.map_err(refused)
    }

    pub async fn reason(&self, envelope: &Envelope) -> String {
        self.reason_of_bytes(envelope.encode()).await
    }

    pub async fn reason_of_bytes(&self, bytes: Vec<u8>) -> String {
        self.send_bytes_now(bytes, false).await.expect_err("it must be refused").reason.into_owned()
    }

    /// Waits for header `number`.
    pub async fn sealed(&self, number: u64) {
        let mut heads = self.handle.tracker().watch_sealed();
        within("a header", heads.wait_for(|head| head.number >= number)).await.expect("the tracker lives");
    }

    pub async fn certified(&self, number: u64) {
        let mut heads = self.handle.tracker().watch_certified();
        within("a certificate", heads.wait_for(|head| head.number >= number))
            .await
            .expect("the tracker lives");
    }

    /// Waits for block `number`.
    pub async fn executed(&self, number: u64) {
        within("a block", async {
            while self.handle.execution().block.is_none_or(|block| block.number < number) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }

    /// Waits until the sequencer knows of everything that is final on L1.
    pub async fn seen_l1(&self) {
        let newest = *self.world.l1.finalized.lock();
        within("a look at L1", async {
            loop {
                let metrics = self.admin("/metrics").await;
                let seen = metrics.lines().find_map(|line| {
                    line.strip_prefix(r#"blindfold_l1_final_number{role="sequencer"} "#)?.parse::<u64>().ok()
                });
                if seen.expect("the number is told") >= newest {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }

    /// What the admin port answers.
    pub async fn admin(&self, path: &str) -> String {
        text_at(self.handle.admin_addr(), path).await
    }

    /// Waits until a condition on the RPC's answers holds.
    pub async fn eventually<F: Future<Output = bool>>(&self, what: &str, mut check: impl FnMut() -> F) {
        within(what, async {
            while !check().await {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }

    pub async fn batch(&self, number: u64) -> BatchInfo {
        self.client.get_batch(number).await.expect("an answer").expect("the batch is there")
    }

    pub async fn receipt(&self, id: B256) -> Receipt {
        self.client.get_receipt(id).await.expect("an answer").expect("the envelope is known")
    }

    pub async fn state(&self, id: B256) -> EnvelopeState {
        self.receipt(id).await.state
    }

    pub async fn acknowledgement(&self, number: u64, member: u16) -> Acknowledgement {
        acknowledge(&self.batch(number).await.sealed.decode().expect("a batch"), member)
    }

    pub async fn acknowledge(&self, ack: &Acknowledgement) -> Result<bool, RpcError> {
        self.client.submit_acknowledgement(Encoded::new(ack)).await.map_err(refused)
    }

    /// Members 1 to 3 acknowledge header `number`.
    pub async fn certify(&self, number: u64) {
        for member in 1..=THRESHOLD {
            let ack = self.acknowledgement(number, member).await;
            // A header is at the head a moment before acknowledgements of it are taken.
            within("the acknowledgement to be taken", async {
                while let Err(error) = self.acknowledge(&ack).await {
                    assert!(error.retry, "{error}");
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            })
            .await;
        }
    }

    pub async fn certify_through(&self, number: u64) {
        for number in self.handle.tracker().certified().number + 1..=number {
            self.certify(number).await;
        }
    }

    /// What an honest hint publisher publishes for batch `number`.
    pub async fn open(&self, number: u64) -> (Release, BatchHints) {
        let info = self.batch(number).await;
        open_named(&info.sealed.decode().expect("a batch"), &info.verdicts)
    }

    /// Lets these members hold the headers up to `last`, with the certificates that are there.
    pub async fn held_by(&self, members: &[u16], last: u64) {
        for number in 1..=last {
            let info = self.batch(number).await;
            let sealed = info.sealed.decode().expect("a batch");
            let certificate =
                info.certificate.map(|certificate| certificate.decode().expect("a certificate"));
            let held = HeldBatch { sealed, certificate };
            for member in members {
                self.world.committee.held.lock().entry(*member).or_default().insert(number, held.clone());
            }
        }
    }

    pub async fn submit(&self, release: &Release, hints: &BatchHints) -> Result<bool, RpcError> {
        self.client.submit_hints(Encoded::new(release), Encoded::new(hints)).await.map_err(refused)
    }

    pub async fn hint(&self, number: u64) {
        let (release, hints) = self.open(number).await;
        self.submit(&release, &hints).await.expect("honest hints");
    }
}

/// What an honest hint publisher publishes of a batch, whose verdicts have these names.
fn open_named(batch: &SealedBatch, names: &[Option<String>]) -> (Release, BatchHints) {
    let mut position = 0;
    let verdict = |name: &Option<String>| match name.as_deref() {
        None => {
            position += 1;
            Verdict::Accepted { position: position - 1 }
        }
        Some("forced_transaction") => Verdict::ForcedTransaction,
        Some(name) => Verdict::Skipped(EnvelopeError::from_name(name).expect("a known reason")),
    };
    let verdicts: Vec<Verdict> = names.iter().map(verdict).collect();
    open_batch(batch, &verdicts)
}

/// L1 makes the header above this chain in its next block.
pub async fn made_by_l1(world: &World, parent: &validity::ChainState) {
    let header = parent.l1_header::<Vec<u8>>(parent.head().timestamp_ms + 10_000, &[], &epoch()).unwrap();
    let l1_block = world.l1.advance(1);
    world.l1.l1_headers.lock().push(FallbackHeader { header, items: vec![], l1_block });
}

/// Returns when readiness names a reason with these words.
pub async fn blocked_by(running: &Running<'_>, part: &str) {
    running
        .eventually("the reason in the readiness", async || {
            running.handle.readiness().reasons().values().any(|reason| reason.contains(part))
        })
        .await;
}
