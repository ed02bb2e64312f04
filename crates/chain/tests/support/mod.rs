//! A small world for tests: a committee of four (three certify) with batches of eight, a sequencer that seals, and
//! scripted doubles of L1 and of the execution client.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod doubles;
pub mod faulty;

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Signature, TxKind, U256};
use blindfold_bte::bls::{PublicKey, SecretKey};
use blindfold_bte::{Backend, CiphertextPoint, MemberKey, Opening, Parameters, Proof, dealer, verify_proof};
use blindfold_chain::{
    EpochParameters, Executor, ExecutorDeps, FallbackHeader, HaltLimits, HintIntake, L1Reader, ParameterSet,
    Sealed, Tracker,
};
use blindfold_engine::ExecutionClient;
use blindfold_protocol::envelope_builder::{EnvelopeFields, build};
use blindfold_protocol::validity::{Verdict, sub_batches};
use blindfold_protocol::{
    Acknowledgement, Address, B256, BatchHints, Bundle, Bytes, Canonical, Certificate, CertifiedBatch,
    ChainConfig, Deployment, Envelope, Epoch, Epochs, HintEntry, L1Timing, Release, SealedBatch, SigningKey,
    certificate,
};
use blindfold_store::{SqliteStore, Store, StoreError};
use doubles::{ScriptedExecution, ScriptedL1, l1_block};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use sha2::{Digest, Sha256};

pub const MAX_BATCH: u32 = 8;
pub const MEMBERS: u16 = 4;
pub const THRESHOLD: u16 = 3;
pub const EPOCH: u64 = 1;
pub const LAST_NUMBER: u64 = 1_000;
pub const CHAIN_ID: u64 = 901;
pub const BASE_FEE: u128 = 1_000;
pub const RICH: u128 = 1_000_000_000_000_000;
pub const START_SECOND: u64 = 1_800_000_000;
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

pub fn encryption_key() -> &'static blindfold_bte::EncryptionKey {
    static KEY: OnceLock<blindfold_bte::EncryptionKey> = OnceLock::new();
    KEY.get_or_init(|| committee().parameters.encryption_key())
}

pub fn epoch() -> Epoch {
    Epoch {
        epoch: EPOCH,
        first: 1,
        last: LAST_NUMBER,
        counts_from: 0,
        continues: 0,
        parameters_hash: B256::from(committee().parameters.hash()),
        encryption_key_hash: B256::from(encryption_key().hash()),
        max_batch: MAX_BATCH,
        threshold: THRESHOLD,
        members: committee().public.clone(),
    }
}

pub fn parameter_set() -> Arc<ParameterSet> {
    let parameters = Arc::clone(&committee().parameters);
    let entry = EpochParameters::new(epoch(), parameters, "parameters.bin".to_owned()).expect("they match");
    Arc::new(ParameterSet::new(vec![entry]).expect("one epoch"))
}

pub fn backend() -> Arc<dyn Backend> {
    static BACKEND: OnceLock<Arc<dyn Backend>> = OnceLock::new();
    Arc::clone(BACKEND.get_or_init(|| Arc::from(blindfold_bte::auto(1))))
}

pub fn sequencer_key() -> Arc<SigningKey> {
    Arc::new(SigningKey::from_bytes(&[9; 32]).expect("a scalar"))
}

pub fn payer() -> SigningKey {
    SigningKey::from_bytes(&[3; 32]).expect("a scalar")
}

pub fn chain_config() -> Arc<ChainConfig> {
    Arc::new(ChainConfig {
        chain_id: CHAIN_ID,
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
    })
}

pub fn memory() -> Arc<dyn Store> {
    Arc::new(SqliteStore::in_memory().expect("memory"))
}

/// A disk; after a crash the last write may still be on its way, and the file is free when it is done.
pub async fn disk(path: &std::path::Path) -> Arc<dyn Store> {
    loop {
        match SqliteStore::open(path) {
            Ok(store) => return Arc::new(store),
            Err(StoreError::InUse(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// L1 with a rich payer in block 2.
pub fn l1() -> Arc<ScriptedL1> {
    let l1 = ScriptedL1::new(Epochs::new(vec![epoch()]).expect("valid"));
    l1.deposit(payer().address(), RICH);
    Arc::new(l1)
}

pub async fn tracker_on(store: Arc<dyn Store>, l1: &Arc<ScriptedL1>) -> Tracker {
    let l1: Arc<dyn L1Reader> = Arc::clone(l1) as _;
    Tracker::open(chain_config(), store, l1).await.expect("it opens")
}

pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited too long for {what}"),
    }
}

/// A transaction that decodes; nobody here recovers its sender.
pub fn transaction(chain_id: u64, nonce: u64) -> Vec<u8> {
    let unsigned = TxEip1559 {
        chain_id,
        nonce,
        gas_limit: 21_000,
        max_fee_per_gas: 10,
        max_priority_fee_per_gas: 1,
        to: TxKind::Call(Address::repeat_byte(0x55)),
        value: U256::from(nonce + 1),
        ..TxEip1559::default()
    };
    let signature = Signature::new(U256::from(5), U256::from(6), false);
    TxEnvelope::from(unsigned.into_signed(signature)).encoded_2718()
}

pub fn envelope_of(nonce: u64, bundle: &Bundle) -> Envelope {
    envelope_with(nonce, bundle, |_| {})
}

pub fn envelope_with(nonce: u64, bundle: &Bundle, change: impl FnOnce(&mut EnvelopeFields)) -> Envelope {
    let mut fields = EnvelopeFields {
        chain_id: CHAIN_ID,
        deployment: chain_config().deployment,
        epoch: EPOCH,
        fee_nonce: nonce,
        max_fee: 10 * BASE_FEE,
        priority_fee: 10,
        max_gas_fee: 1_000,
        gas_limit: 100_000,
        expiry: 900,
        generation: 0,
    };
    change(&mut fields);
    let mut rng = ChaCha20Rng::seed_from_u64(nonce);
    build(encryption_key(), &fields, bundle, &payer(), &mut rng).expect("it fits")
}

/// An envelope with one transaction of that nonce.
pub fn envelope(nonce: u64) -> Envelope {
    envelope_of(nonce, &Bundle::of_transactions([transaction(CHAIN_ID, nonce)]))
}

/// [1]₁, compressed.
const GENERATOR: [u8; 48] = [
    0x97, 0xf1, 0xd3, 0xa7, 0x31, 0x97, 0xd7, 0x94, 0x26, 0x95, 0x63, 0x8c, 0x4f, 0xa9, 0xac, 0x0f, 0xc3,
    0x68, 0x8c, 0x4f, 0x97, 0x74, 0xb9, 0x05, 0xa1, 0x4e, 0x3a, 0x3f, 0x17, 0x1b, 0xac, 0x58, 0x6c, 0x55,
    0xe8, 0x3f, 0xf9, 0x7a, 0x1a, 0xef, 0xfb, 0x3a, 0xf0, 0x0a, 0xdb, 0x22, 0xc6, 0xbb,
];

/// An envelope whose proof holds and whose D opens to nothing: k = 1, ρ = 1, so R = C = [1]₁ and s = 1 + c.
pub fn malformed(nonce: u64) -> Envelope {
    let mut envelope = envelope(nonce);
    envelope.ciphertext.c = GENERATOR;
    let mut hasher = Sha256::new();
    hasher.update(b"BLINDFOLD-V1-POK");
    hasher.update(envelope.ciphertext.c);
    hasher.update(envelope.ciphertext.d);
    hasher.update(Sha256::digest(&envelope.ciphertext.e));
    hasher.update(envelope.header.hash());
    hasher.update(GENERATOR);
    let digest = hasher.finalize();
    let mut challenge = [0u8; 16];
    challenge.copy_from_slice(&digest[..16]);
    let mut s = [0u8; 32];
    s[16..].copy_from_slice(&(u128::from_be_bytes(challenge) + 1).to_be_bytes());
    let proof = Proof { r: GENERATOR, s };
    Envelope::sign(envelope.header, envelope.ciphertext, proof, &payer())
}

/// A sequencer: a tracker of its own that seals.
pub struct Sequencer {
    pub tracker: Tracker,
    pub l1: Arc<ScriptedL1>,
}

impl Sequencer {
    pub async fn new(l1: &Arc<ScriptedL1>) -> Self {
        Self { tracker: tracker_on(memory(), l1).await, l1: Arc::clone(l1) }
    }

    /// Seals `items` at `ms` milliseconds after the start, on the newest final origin.
    pub async fn seal(&self, ms: u64, items: Vec<Vec<u8>>) -> Sealed {
        self.seal_forced(ms, 0, items).await
    }

    /// Seals the next `forced` entries of the forced queue before `items`.
    pub async fn seal_forced(&self, ms: u64, forced: usize, items: Vec<Vec<u8>>) -> Sealed {
        let checked = check(&items).await;
        let origin = l1_block(*self.l1.finalized.lock());
        let items = items.into_iter().zip(checked).collect();
        self.tracker
            .seal(START_SECOND * 1_000 + ms, forced, items, &origin, &sequencer_key())
            .await
            .expect("it seals")
    }

    /// The header that L1 makes on top of this tracker's head, out of these items, in the newest final block.
    pub fn l1_header(&self, ms: u64, items: Vec<Bytes>) -> FallbackHeader {
        let made =
            self.tracker.with_state(|state| state.l1_header(START_SECOND * 1_000 + ms, &items, &epoch()));
        let l1_block = *self.l1.finalized.lock();
        FallbackHeader { header: made.expect("L1 may make it"), items, l1_block }
    }

    pub async fn seal_envelopes(&self, ms: u64, envelopes: &[Envelope]) -> Sealed {
        self.seal(ms, envelopes.iter().map(Canonical::encode).collect()).await
    }

    /// Certifies a batch here and gives the certificate.
    pub async fn certify(&self, sealed: &Sealed) -> Certificate {
        let certificate = certificate_of(&sealed.batch);
        self.tracker.accept_certificate(&certificate).await.expect("it stands");
        certificate
    }
}

/// Items as the validity rule sees them.
pub async fn check(items: &[Vec<u8>]) -> Vec<blindfold_protocol::CheckedItem> {
    let slices: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
    blindfold_protocol::check_items(&chain_config(), &epoch(), &slices, &mut ChaCha20Rng::seed_from_u64(1))
}

pub fn acknowledge(sealed: &SealedBatch, member: u16) -> Acknowledgement {
    let header = &sealed.header;
    let key = &committee().bls[usize::from(member) - 1];
    certificate::sign_acknowledgement(
        key,
        &chain_config().deployment,
        header.epoch,
        header.number,
        header.hash(),
        member,
    )
}

/// A certificate by members 1, 2 and 4.
pub fn certificate_of(sealed: &SealedBatch) -> Certificate {
    let acknowledgements: Vec<_> = [1, 2, 4].map(|member| acknowledge(sealed, member)).to_vec();
    certificate::aggregate(&epoch(), &acknowledgements).expect("three members")
}

pub fn certified(sealed: &SealedBatch) -> CertifiedBatch {
    CertifiedBatch { sealed: sealed.clone(), certificate: certificate_of(sealed) }
}

/// The points of each sub-batch, with item index and envelope.
pub fn points_of(sealed: &SealedBatch, verdicts: &[Verdict]) -> Vec<Vec<(u32, Envelope, CiphertextPoint)>> {
    let open = |index: u32| {
        let envelope = Envelope::decode(&sealed.items[index as usize]).expect("accepted");
        let ad = envelope.header.hash().0;
        let point = verify_proof(&ad, &envelope.ciphertext, &envelope.proof).expect("accepted");
        (index, envelope, point)
    };
    sub_batches(verdicts, MAX_BATCH)
        .into_iter()
        .map(|indices| indices.into_iter().map(open).collect())
        .collect()
}

/// What an honest hint publisher publishes: shares of members 1, 2 and 4.
pub fn open_batch(sealed: &SealedBatch, verdicts: &[Verdict]) -> (Release, BatchHints) {
    let committee = committee();
    let (number, header_hash) = (sealed.header.number, sealed.header.hash());
    let mut entries = vec![HintEntry::Skipped; sealed.items.len()];
    let mut pds = Vec::new();
    for batch in points_of(sealed, verdicts) {
        let points: Vec<CiphertextPoint> = batch.iter().map(|(_, _, point)| *point).collect();
        let shares =
            [1u16, 2, 4].map(|j| (j, committee.keys[usize::from(j) - 1].release_share(&points).expect("b")));
        let release = committee.parameters.combine(&shares).expect("three shares");
        let prepared = backend().predecrypt(&committee.parameters, &points).expect("a batch");
        let ads: Vec<[u8; 32]> = batch.iter().map(|(_, envelope, _)| envelope.header.hash().0).collect();
        let items: Vec<_> =
            ads.iter().zip(&batch).map(|(ad, (_, envelope, _))| (ad, &envelope.ciphertext)).collect();
        let openings =
            backend().finalize(&committee.parameters, &prepared, &release, &items).expect("it fits");
        for ((index, _, point), opening) in batch.iter().zip(openings) {
            entries[*index as usize] = match opening {
                Opening::WellFormed { key, .. } => HintEntry::Key(*key.as_bytes()),
                Opening::Malformed => HintEntry::Malformed(singleton(point)),
            };
        }
        pds.push(release.to_bytes());
    }
    (Release { number, header_hash, pds }, BatchHints { number, header_hash, entries, blindings: vec![] })
}

/// The singleton release of one ciphertext.
pub fn singleton(point: &CiphertextPoint) -> [u8; 48] {
    let committee = committee();
    let shares = [1u16, 2, 3].map(|j| (j, committee.keys[usize::from(j) - 1].singleton_share(point)));
    committee.parameters.combine_singletons(&shares).expect("three shares")
}

/// A node: a tracker, an executor on its own scripted client, and the door for hints.
pub struct Machine {
    pub tracker: Tracker,
    pub executor: Executor,
    pub intake: HintIntake,
    pub client: Arc<ScriptedExecution>,
}

impl Machine {
    pub async fn start(store: Arc<dyn Store>, l1: &Arc<ScriptedL1>, client: &Arc<ScriptedExecution>) -> Self {
        Self::start_with(store, l1, client, HaltLimits::default()).await
    }

    pub async fn start_with(
        store: Arc<dyn Store>,
        l1: &Arc<ScriptedL1>,
        client: &Arc<ScriptedExecution>,
        halt: HaltLimits,
    ) -> Self {
        let tracker = tracker_on(store, l1).await;
        let as_client: Arc<dyn ExecutionClient> = Arc::clone(client) as _;
        let deps = ExecutorDeps {
            tracker: tracker.clone(),
            parameters: parameter_set(),
            backend: backend(),
            client: as_client,
            l1: Arc::clone(l1) as _,
        };
        let executor = Executor::start_with(deps, halt).await.expect("it starts");
        let intake = HintIntake::new(tracker.clone(), parameter_set(), backend(), executor.opened());
        Self { tracker, executor, intake, client: Arc::clone(client) }
    }

    /// Takes a sealed batch with its certificate.
    pub async fn take(&self, sealed: &Sealed) {
        self.tracker.accept_certified(&certified(&sealed.batch)).await.expect("it stands");
    }

    /// Takes the honest hints of a batch.
    pub async fn hint(&self, sealed: &Sealed) {
        let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
        self.intake.submit(Some(release), hints).await.expect("honest hints");
    }

    pub async fn executed(&self, block: u64) {
        let mut status = self.executor.watch_status();
        let reached = status.wait_for(|status| status.block.is_some_and(|id| id.number >= block));
        within("a block", reached).await.expect("the executor lives");
    }
}
