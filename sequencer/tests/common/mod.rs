//! A whole sequencer on a temporary disk, with a committee of four (three certify) and batches of eight.

#![allow(dead_code, reason = "each test file uses its part")]

#[path = "../../../hint-publisher/tests/common/backend.rs"]
pub mod backend;
pub mod doubles;
pub mod faulty;

use std::{
    future::Future,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use blindfold_bte::{
    Backend, CiphertextPoint, MemberKey, Opening, Parameters, Proof,
    bls::{PublicKey, SecretKey},
    dealer, verify_proof,
};
use blindfold_chain::{EpochParameters, L1Reader, L1Submitter, ParameterSet};
use blindfold_protocol::{
    Acknowledgement, Address, B256, BatchHints, Bundle, BundleItem, Canonical, ChainConfig, Deployment,
    Envelope, Epoch, Epochs, HintEntry, L1Timing, Release, SealedBatch, SigningKey, certificate,
    envelope_builder::{EnvelopeFields, build},
    validity::{Verdict, sub_batches},
};
use blindfold_rpc::{
    BlindApiClient, ClientConfig, Encoded, HttpClient, ReceivedError, RpcError, SequencerApiClient,
    http_client,
    types::{BatchInfo, EnvelopeState, Receipt, SendOptions, SentEnvelope},
};
use blindfold_sequencer::{
    HeldBatch, Sequencer, SequencerConfig, SequencerDeps, SequencerHandle, StartError,
};
use blindfold_store::{SqliteStore, Store, StoreError};
use doubles::{ManualClock, ScriptedCommittee, ScriptedExecution, ScriptedInbox, ScriptedL1};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub const MAX_BATCH: u32 = 8;
pub const MEMBERS: u16 = 4;
pub const THRESHOLD: u16 = 3;
pub const EPOCH: u64 = 1;
pub const LAST_NUMBER: u64 = 1_000_000;
pub const BASE_FEE: u128 = 1_000;
/// What the tests' envelopes pay for the gas that they reserve, at the gas base fee of 1 wei.
pub const GAS_FEE: u128 = 100_000;
pub const RICH: u128 = 1_000_000_000_000_000;
/// Nothing in these tests takes this long; it only keeps a broken one from hanging.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Committee {
    pub parameters: Arc<Parameters>,
    pub keys: Vec<MemberKey>,
    pub bls: Vec<SecretKey>,
    pub public: Vec<PublicKey>,
}

pub fn committee() -> &'static Committee {
    static COMMITTEE: OnceLock<Committee> = OnceLock::new();
    COMMITTEE.get_or_init(|| {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let (parameters, keys) =
            dealer::deal(MAX_BATCH, MEMBERS, THRESHOLD, &mut rng).expect("sizes are right");
        let bls: Vec<SecretKey> =
            (1..=MEMBERS).map(|j| SecretKey::generate(&[j as u8; 32]).expect("32 bytes")).collect();
        let public = bls.iter().map(SecretKey::public_key).collect();
        Committee { parameters: Arc::new(parameters), keys, bls, public }
    })
}

pub fn epoch(number: u64, first: u64, last: u64) -> Epoch {
    let committee = committee();
    Epoch {
        epoch: number,
        first,
        last,
        counts_from: 0,
        continues: 0,
        parameters_hash: B256::from(committee.parameters.hash()),
        encryption_key_hash: B256::from(committee.parameters.encryption_key().hash()),
        max_batch: MAX_BATCH,
        threshold: THRESHOLD,
        members: committee.public.clone(),
    }
}

pub fn backend() -> Arc<dyn Backend> {
    static BACKEND: OnceLock<Arc<dyn Backend>> = OnceLock::new();
    Arc::clone(BACKEND.get_or_init(|| Arc::from(blindfold_bte::auto(1))))
}

pub fn sequencer_key() -> SigningKey {
    SigningKey::from_bytes(&[9; 32]).expect("a scalar")
}

pub fn payer(n: u8) -> SigningKey {
    SigningKey::from_bytes(&[n; 32]).expect("a scalar")
}

pub fn chain_config() -> ChainConfig {
    ChainConfig {
        chain_id: 901,
        deployment: Deployment { l1_chain_id: 900, inbox: Address::repeat_byte(0x11) },
        registry: Address::repeat_byte(0x12),
        fee_vault: Address::repeat_byte(0x13),
        forced_queue: Address::repeat_byte(0x21),
        hint_registry: Address::repeat_byte(0x22),
        hint_verifier: Address::repeat_byte(0x23),
        deposit_portal: Address::repeat_byte(0x24),
        output_registry: Address::repeat_byte(0x25),
        timing: L1Timing::default(),
        sequencer: sequencer_key().address(),
        fee_recipient: Address::repeat_byte(0x14),
        base_fee_recipient: Address::ZERO,
        block_gas_limit: 200_000_000,
        initial_base_fee: BASE_FEE,
        min_base_fee: BASE_FEE,
        initial_gas_base_fee: 1,
        min_gas_base_fee: 1,
        malformed_surcharge: 500,
        genesis_l1_origin: 1,
    }
}

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
    pub key: SigningKey,
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
        Self::with_epochs(vec![epoch(EPOCH, 1, LAST_NUMBER)], change)
    }

    pub fn with_epochs(
        epochs: Vec<Epoch>,
        change: impl FnOnce(&mut SequencerConfig, &mut ChainConfig),
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut chain = chain_config();
        let mut config = SequencerConfig {
            rpc_addr: ([127, 0, 0, 1], 0).into(),
            admin_addr: ([127, 0, 0, 1], 0).into(),
            data_dir: folder.path().to_path_buf(),
            l1_poll_ms: 5,
            ..SequencerConfig::default()
        };
        config.sealing.slot_ms = 5;
        config.sealing.retry_ms = 5;
        config.posting.interval_ms = 5;
        config.posting.retry_ms = 5;
        config.posting.max_retry_ms = 5;
        config.accusations.interval_ms = 5;
        config.outputs.interval_ms = 5;
        config.recovery.patience_ms = 50;
        config.recovery.retry_ms = 5;
        change(&mut config, &mut chain);
        let inbox = ScriptedInbox::new(chain.deployment.genesis_hash());
        Self {
            folder,
            chain: Arc::new(chain),
            l1: ScriptedL1::new(Epochs::new(epochs.clone()).expect("valid epochs")),
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

    pub fn parameters(&self) -> Arc<ParameterSet> {
        let entries = self.epochs.iter().map(|epoch| {
            let parameters = Arc::clone(&committee().parameters);
            EpochParameters::new(epoch.clone(), parameters, "file".to_owned()).expect("they match")
        });
        Arc::new(ParameterSet::new(entries.collect()).expect("in order"))
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
            key: Arc::new(self.key.clone()),
            rebuild: None,
            parameters: self.parameters(),
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

    async fn open_disk(&self) -> SqliteStore {
        // After an abort the last write may still be on its way: the file is free when it is done.
        let path = self.folder.path().join("sequencer.sqlite");
        loop {
            match SqliteStore::open(&path) {
                Ok(store) => return store,
                Err(StoreError::InUse(_)) => tokio::time::sleep(Duration::from_millis(2)).await,
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub async fn try_start(&self, store: Arc<dyn Store>) -> Result<Running<'_>, StartError> {
        Ok(self.running(Sequencer::start(self.config.clone(), self.deps(store)).await?))
    }

    /// A sequencer of this world that was started.
    pub fn running(&self, handle: SequencerHandle) -> Running<'_> {
        let url = format!("http://{}", handle.rpc_addr());
        let client = http_client(&url, &ClientConfig::default()).expect("a URL");
        Running { world: self, handle, client }
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

    /// An envelope that the sequencer admits.
    pub fn envelope(&self, payer_number: u8, nonce: u64) -> Envelope {
        self.envelope_with(payer_number, nonce, |_| {})
    }

    /// Header fields that pass.
    pub fn fields(&self, fee_nonce: u64) -> EnvelopeFields {
        EnvelopeFields {
            chain_id: self.chain.chain_id,
            deployment: self.chain.deployment,
            epoch: EPOCH,
            fee_nonce,
            max_fee: 10 * BASE_FEE,
            priority_fee: 10,
            max_gas_fee: 1_000,
            gas_limit: 100_000,
            expiry: 1_000,
            generation: 0,
        }
    }

    pub fn envelope_with(&self, n: u8, nonce: u64, change: impl FnOnce(&mut EnvelopeFields)) -> Envelope {
        let mut fields = self.fields(nonce);
        change(&mut fields);
        let bundle =
            Bundle { items: vec![BundleItem::transaction(format!("transaction {n}/{nonce}").into_bytes())] };
        let mut rng = ChaCha20Rng::seed_from_u64(u64::from(n) << 32 | nonce);
        let key = encryption_key();
        build(key, &fields, &bundle, &payer(n), &mut rng).expect("it fits")
    }

    /// An envelope with a proof that holds, whose D opens to nothing.
    pub fn malformed(&self, n: u8, nonce: u64) -> Envelope {
        let mut envelope = self.envelope(n, nonce);
        envelope.ciphertext.c = GENERATOR;
        let proof = prove_generator(&envelope);
        Envelope::sign(envelope.header, envelope.ciphertext, proof, &payer(n))
    }
}

pub fn encryption_key() -> &'static blindfold_bte::EncryptionKey {
    static KEY: OnceLock<blindfold_bte::EncryptionKey> = OnceLock::new();
    KEY.get_or_init(|| committee().parameters.encryption_key())
}

/// [1]₁, compressed.
const GENERATOR: [u8; 48] = [
    0x97, 0xf1, 0xd3, 0xa7, 0x31, 0x97, 0xd7, 0x94, 0x26, 0x95, 0x63, 0x8c, 0x4f, 0xa9, 0xac, 0x0f, 0xc3,
    0x68, 0x8c, 0x4f, 0x97, 0x74, 0xb9, 0x05, 0xa1, 0x4e, 0x3a, 0x3f, 0x17, 0x1b, 0xac, 0x58, 0x6c, 0x55,
    0xe8, 0x3f, 0xf9, 0x7a, 0x1a, 0xef, 0xfb, 0x3a, 0xf0, 0x0a, 0xdb, 0x22, 0xc6, 0xbb,
];

/// The proof of knowledge of k = 1 with ρ = 1, so that R = C = [1]₁ and s = 1 + c, by the words of the scheme.
fn prove_generator(envelope: &Envelope) -> Proof {
    let ciphertext = &envelope.ciphertext;
    let mut hasher = Sha256::new();
    hasher.update(b"BLINDFOLD-V1-POK");
    hasher.update(ciphertext.c);
    hasher.update(ciphertext.d);
    hasher.update(Sha256::digest(&ciphertext.e));
    hasher.update(envelope.header.hash());
    hasher.update(GENERATOR);
    let digest = hasher.finalize();
    let mut challenge = [0u8; 16];
    challenge.copy_from_slice(&digest[..16]);
    let mut s = [0u8; 32];
    s[16..].copy_from_slice(&(u128::from_be_bytes(challenge) + 1).to_be_bytes());
    Proof { r: GENERATOR, s }
}

/// A sequencer that runs, and what tests ask of it.
pub struct Running<'w> {
    pub world: &'w World,
    pub handle: SequencerHandle,
    pub client: HttpClient,
}

pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited too long for {what}"),
    }
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

/// Closes a connection, and returns when the server has given it up.
pub async fn hang_up(mut asked: TcpStream) {
    let _ = asked.shutdown().await;
    // However it ends.
    let _ = within("the end of a connection", asked.read_to_end(&mut Vec::new())).await;
}

pub fn refused(error: blindfold_rpc::jsonrpsee::core::ClientError) -> RpcError {
    match ReceivedError::from(error) {
        ReceivedError::Refused(error) => error,
        ReceivedError::NoAnswer(why) => panic!("no answer: {why}"),
    }
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
        let newest = self.world.l1.finalized();
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
        let mut stream = TcpStream::connect(self.handle.admin_addr()).await.expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("it answers");
        text
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
        let hash = self.batch(number).await.hash;
        let epoch = self.world.epochs.iter().find(|epoch| epoch.contains(number)).expect("an epoch").epoch;
        let key = &committee().bls[usize::from(member) - 1];
        certificate::sign_acknowledgement(key, &self.world.chain.deployment, epoch, number, hash, member)
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
        open_batch(&info.sealed.decode().expect("a batch"), &info.verdicts)
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

/// Release and hints of a batch by the scheme itself: shares of members 1, 2 and 4.
pub fn open_batch(sealed: &SealedBatch, verdicts: &[Option<String>]) -> (Release, BatchHints) {
    let committee = committee();
    let backend = backend();
    let hash = sealed.header.hash();
    let envelopes: Vec<Option<Envelope>> =
        sealed.items.iter().map(|item| Envelope::decode(item).ok()).collect();
    let mut position = 0;
    let verdicts: Vec<Verdict> = verdicts
        .iter()
        .map(|reason| match reason.as_deref() {
            None => {
                position += 1;
                Verdict::Accepted { position: position - 1 }
            }
            Some("forced_transaction") => Verdict::ForcedTransaction,
            Some(name) => {
                Verdict::Skipped(blindfold_protocol::EnvelopeError::from_name(name).expect("a known reason"))
            }
        })
        .collect();
    let mut entries = vec![HintEntry::Skipped; sealed.items.len()];
    let mut pds = Vec::new();
    for indices in sub_batches(&verdicts, MAX_BATCH) {
        let accepted: Vec<&Envelope> =
            indices.iter().map(|i| envelopes[*i as usize].as_ref().expect("accepted")).collect();
        let ads: Vec<[u8; 32]> = accepted.iter().map(|envelope| envelope.header.hash().0).collect();
        let points: Vec<CiphertextPoint> = accepted
            .iter()
            .zip(&ads)
            .map(|(envelope, ad)| verify_proof(ad, &envelope.ciphertext, &envelope.proof).expect("accepted"))
            .collect();
        let shares: Vec<_> = [1u16, 2, 4]
            .iter()
            .map(|j| (*j, committee.keys[usize::from(*j) - 1].release_share(&points).expect("a batch")))
            .collect();
        let release = committee.parameters.combine(&shares).expect("three shares");
        let predecrypted = backend.predecrypt(&committee.parameters, &points).expect("a batch");
        let items: Vec<_> =
            accepted.iter().zip(&ads).map(|(envelope, ad)| (ad, &envelope.ciphertext)).collect();
        let openings =
            backend.finalize(&committee.parameters, &predecrypted, &release, &items).expect("it fits");
        for ((index, opening), point) in indices.iter().zip(openings).zip(&points) {
            entries[*index as usize] = match opening {
                Opening::WellFormed { key, .. } => HintEntry::Key(*key.as_bytes()),
                Opening::Malformed => HintEntry::Malformed(singleton(point)),
            };
        }
        pds.push(release.to_bytes());
    }
    let number = sealed.header.number;
    (
        Release { number, header_hash: hash, pds },
        BatchHints { number, header_hash: hash, entries, blindings: vec![] },
    )
}

/// The singleton release of an envelope, whether malformed or not.
pub fn singleton_of(envelope: &Envelope) -> [u8; 48] {
    singleton(&envelope.ciphertext.header().expect("a point"))
}

fn singleton(point: &CiphertextPoint) -> [u8; 48] {
    let committee = committee();
    let shares: Vec<_> = [1u16, 2, 3]
        .iter()
        .map(|j| (*j, committee.keys[usize::from(*j) - 1].singleton_share(point)))
        .collect();
    committee.parameters.combine_singletons(&shares).expect("three shares")
}
