//! A chain in a test: keys dealt from a seed, a scripted L1, and a tracker that seals real headers.

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use blindfold_bte::{
    MemberKey, Parameters, Proof,
    bls::{PublicKey, SecretKey},
    dealer,
};
use blindfold_chain::{
    AnnouncedEnd, EpochParameters, FallbackHeader, L1Deposit, L1Error, L1News, L1Origin, L1Reader,
    ParameterSet, PendingFallbackHeader, Sealed, Tracker, VoidRun,
};
use blindfold_l1::{FoundData, PostedData, PostedHints, PostedRun, Posting};
use blindfold_protocol::{
    Acknowledgement, Address, B256, BatchHeader, Bundle, BundleItem, Canonical, Certificate, ChainConfig,
    Deployment, Envelope, Epoch, Epochs, L1Timing, LedgerEvent, SealedBatch, SigningKey, certificate,
    envelope_builder::{EnvelopeFields, build},
    validity::{Deposit, check_items},
};
use blindfold_store::SqliteStore;
use parking_lot::Mutex;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};

pub const MAX_BATCH: u32 = 8;
pub const MEMBERS: u16 = 4;
pub const THRESHOLD: u16 = 3;
pub const BASE_FEE: u128 = 1_000;
/// The last number of epoch 1; epoch 2 has the same committee.
pub const LAST_OF_FIRST_EPOCH: u64 = 1_000;
/// The time of the first header, in milliseconds.
pub const START_MS: u64 = 1_800_000_000_000;
/// Nothing in these tests takes this long; it only keeps a broken one from hanging.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The newest final L1 block at the start; deposits of the payers lie before it.
pub const FIRST_ORIGIN: u64 = 3;

pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited too long for {what}"),
    }
}

pub struct Committee {
    pub parameters: Arc<Parameters>,
    pub keys: Vec<MemberKey>,
    pub bls: Vec<SecretKey>,
    pub public: Vec<PublicKey>,
}

pub fn committee() -> &'static Committee {
    static COMMITTEE: OnceLock<Committee> = OnceLock::new();
    COMMITTEE.get_or_init(|| {
        let mut rng = ChaCha20Rng::seed_from_u64(11);
        let (parameters, keys) =
            dealer::deal(MAX_BATCH, MEMBERS, THRESHOLD, &mut rng).expect("sizes are right");
        let bls: Vec<SecretKey> =
            (1..=MEMBERS).map(|j| SecretKey::generate(&[j as u8; 32]).expect("32 bytes")).collect();
        let public = bls.iter().map(SecretKey::public_key).collect();
        Committee { parameters: Arc::new(parameters), keys, bls, public }
    })
}

pub fn epochs() -> Epochs {
    let committee = committee();
    let epoch = |epoch, first, last| Epoch {
        epoch,
        first,
        last,
        counts_from: 0,
        continues: 0,
        parameters_hash: B256::from(committee.parameters.hash()),
        encryption_key_hash: B256::from(committee.parameters.encryption_key().hash()),
        max_batch: MAX_BATCH,
        threshold: THRESHOLD,
        members: committee.public.clone(),
    };
    Epochs::new(vec![epoch(1, 1, LAST_OF_FIRST_EPOCH), epoch(2, LAST_OF_FIRST_EPOCH + 1, 9_999)])
        .expect("valid")
}

pub fn parameter_set() -> Arc<ParameterSet> {
    let entries = epochs()
        .as_slice()
        .iter()
        .map(|epoch| {
            EpochParameters::new(epoch.clone(), Arc::clone(&committee().parameters), "file".to_owned())
                .expect("match")
        })
        .collect();
    Arc::new(ParameterSet::new(entries).expect("in order"))
}

pub fn sequencer_key() -> Arc<SigningKey> {
    Arc::new(SigningKey::from_bytes(&[9; 32]).expect("a scalar"))
}

pub fn payer(n: u8) -> SigningKey {
    SigningKey::from_bytes(&[n; 32]).expect("a scalar")
}

pub fn chain_config() -> Arc<ChainConfig> {
    Arc::new(ChainConfig {
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
    })
}

pub fn message(n: u8, nonce: u64) -> Vec<u8> {
    format!("transaction {n}/{nonce}").into_bytes()
}

/// An envelope that is accepted: payers 1 to 8 have deposits.
pub fn envelope(n: u8, nonce: u64) -> Envelope {
    let chain = chain_config();
    let fields = EnvelopeFields {
        chain_id: chain.chain_id,
        deployment: chain.deployment,
        epoch: 1,
        fee_nonce: nonce,
        max_fee: 10 * BASE_FEE,
        priority_fee: 10,
        max_gas_fee: 1_000,
        gas_limit: 100_000,
        expiry: 900,
        generation: 0,
    };
    let bundle = Bundle { items: vec![BundleItem::transaction(message(n, nonce))] };
    let mut rng = ChaCha20Rng::seed_from_u64(u64::from(n) << 32 | nonce);
    static KEY: OnceLock<blindfold_bte::EncryptionKey> = OnceLock::new();
    let key = KEY.get_or_init(|| committee().parameters.encryption_key());
    build(key, &fields, &bundle, &payer(n), &mut rng).expect("it fits")
}

/// An envelope with a proof that holds, whose D opens to nothing.
pub fn malformed(n: u8, nonce: u64) -> Envelope {
    let mut envelope = envelope(n, nonce);
    envelope.ciphertext.c = GENERATOR;
    let proof = prove_generator(&envelope);
    Envelope::sign(envelope.header, envelope.ciphertext, proof, &payer(n))
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

/// L1 as a script: blocks are final up to a number, and payers 1 to 8 have their deposits in block 2.
pub struct ScriptedL1 {
    finalized: AtomicU64,
    /// How many blocks there are after the newest final one.
    pub unfinal: AtomicU64,
    pub l1_headers: Mutex<Vec<FallbackHeader>>,
    /// Headers that L1 made and that are not final.
    pub not_final: Mutex<Vec<PendingFallbackHeader>>,
    /// Hashes of blocks that are not final.
    pub shown: Mutex<BTreeMap<u64, B256>>,
    /// L1 block of each posted number.
    pub posted: Mutex<BTreeMap<u64, u64>>,
    /// Whether hints of everything stand on L1.
    pub hints: AtomicBool,
    /// Whether questions about blocks hang.
    pub hangs: AtomicBool,
    /// Nothing that it says of its headers can be used.
    pub unusable: AtomicBool,
    /// Whether its next answers about them can be used.
    pub next_usable: Mutex<VecDeque<bool>>,
    /// The end of an epoch that is announced.
    pub ending: Mutex<Option<AnnouncedEnd>>,
    /// Epochs in place of [`epochs`].
    pub other_epochs: Mutex<Option<Epochs>>,
}

impl ScriptedL1 {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            finalized: AtomicU64::new(FIRST_ORIGIN),
            unfinal: AtomicU64::new(0),
            l1_headers: Mutex::default(),
            not_final: Mutex::default(),
            shown: Mutex::default(),
            posted: Mutex::default(),
            hints: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            unusable: AtomicBool::new(false),
            next_usable: Mutex::default(),
            ending: Mutex::default(),
            other_epochs: Mutex::default(),
        })
    }

    async fn up(&self) {
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    pub fn set_finalized(&self, number: u64) {
        self.finalized.store(number, Ordering::SeqCst);
    }

    fn block(number: u64) -> L1Origin {
        L1Origin {
            number,
            hash: B256::with_last_byte(number as u8),
            timestamp: START_MS / 1_000 - 100 + number,
            base_fee: 7,
            blob_base_fee: 1,
            parent_beacon_block_root: B256::ZERO,
        }
    }
}

#[async_trait]
impl L1Reader for ScriptedL1 {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        self.up().await;
        Ok(Self::block(self.finalized.load(Ordering::SeqCst)))
    }

    async fn newest(&self) -> Result<u64, L1Error> {
        Ok(self.finalized.load(Ordering::SeqCst) + self.unfinal.load(Ordering::SeqCst))
    }

    async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Error> {
        self.up().await;
        Ok((number <= self.finalized.load(Ordering::SeqCst)).then(|| Self::block(number)))
    }

    async fn announced_end(&self) -> Result<Option<AnnouncedEnd>, L1Error> {
        Ok(*self.ending.lock())
    }

    async fn facts(&self, after: u64, through: u64, _cursor: u64) -> Result<L1News, L1Error> {
        if !(after + 1..=through).contains(&2) {
            return Ok(L1News::default());
        }
        let deposit = |n| Deposit { payer: payer(n).address(), amount: 1_000_000_000_000_000, l1_block: 2 };
        let ledger = (1..=8).map(deposit).map(LedgerEvent::Deposit).collect();
        Ok(L1News { ledger, ..L1News::default() })
    }

    async fn bridge_deposits(&self, _after: u64, _through: u64) -> Result<Vec<L1Deposit>, L1Error> {
        Ok(Vec::new())
    }

    async fn l1_header(&self, number: u64) -> Result<Option<FallbackHeader>, L1Error> {
        Ok(self.l1_headers.lock().iter().find(|made| made.header.number == number).cloned())
    }

    async fn last_l1_header(&self) -> Result<Option<u64>, L1Error> {
        self.up().await;
        let next_usable = self.next_usable.lock().pop_front().unwrap_or(true);
        if self.unusable.load(Ordering::SeqCst) || !next_usable {
            return Err(L1Error::nonsense("scripted nonsense"));
        }
        Ok(self.l1_headers.lock().last().map(|made| made.header.number))
    }

    async fn l1_headers_not_final(&self) -> Result<Vec<PendingFallbackHeader>, L1Error> {
        Ok(self.not_final.lock().clone())
    }

    async fn block_hash(&self, number: u64) -> Result<Option<B256>, L1Error> {
        Ok(self.shown.lock().get(&number).copied())
    }

    async fn void_runs(&self) -> Result<Vec<VoidRun>, L1Error> {
        Ok(Vec::new())
    }

    async fn posted_at(&self, number: u64) -> Result<Option<u64>, L1Error> {
        Ok(self.posted.lock().get(&number).copied())
    }

    async fn hints_on_l1(&self, _number: u64) -> Result<bool, L1Error> {
        Ok(self.hints.load(Ordering::SeqCst))
    }

    async fn epochs(&self) -> Result<Epochs, L1Error> {
        Ok(self.other_epochs.lock().clone().unwrap_or_else(epochs))
    }
}

/// What was posted to L1 as a script.
pub struct PostedRuns {
    l1: Arc<ScriptedL1>,
    runs: Vec<Posting>,
}

impl PostedRuns {
    /// This certified header, posted in the first block, and all that this L1 made.
    pub fn new(l1: Arc<ScriptedL1>, batch: &SealedBatch, certificate: Certificate) -> Arc<Self> {
        Self::of(l1, [(batch, certificate)])
    }

    /// These certified headers, posted in the first block.
    pub fn of<'a>(
        l1: Arc<ScriptedL1>,
        runs: impl IntoIterator<Item = (&'a SealedBatch, Certificate)>,
    ) -> Arc<Self> {
        let run =
            |(batch, certificate): (&SealedBatch, _)| posting(FIRST_ORIGIN, batch.clone(), Some(certificate));
        Arc::new(Self { l1, runs: runs.into_iter().map(run).collect() })
    }
}

fn posting(l1_block: u64, batch: SealedBatch, certificate: Option<Certificate>) -> Posting {
    let headers = vec![batch.header];
    let run = PostedRun::new(headers.clone(), l1_block).expect("a header").run;
    let data = PostedData::of(vec![batch]);
    Posting { l1_block, transaction: B256::ZERO, runs: vec![run], headers, certificate, data }
}

#[async_trait]
impl L1Reader for PostedRuns {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        Ok(ScriptedL1::block(self.l1.finalized.load(Ordering::SeqCst)))
    }

    async fn postings(&self, after: u64, through: u64) -> Result<Vec<Posting>, L1Error> {
        let made = self.l1.l1_headers.lock().clone();
        let made = made.iter().map(|made| posting(made.l1_block, made.batch(), None));
        let all = self.runs.iter().cloned().chain(made);
        Ok(all.filter(|posting| (after + 1..=through).contains(&posting.l1_block)).collect())
    }

    async fn reposted_data(&self, _: &[BatchHeader], _: u64, _: u64) -> Result<FoundData, L1Error> {
        Ok(FoundData { batches: Vec::new(), unread: None })
    }

    async fn posted_hints(&self, _after: u64, _through: u64) -> Result<Vec<PostedHints>, L1Error> {
        Ok(Vec::new())
    }
}

/// Seals headers as the sequencer does.
pub struct Sealer {
    pub tracker: Tracker,
    pub l1: Arc<ScriptedL1>,
    time_ms: AtomicU64,
}

impl Sealer {
    pub async fn new() -> Self {
        Self::on(ScriptedL1::new()).await
    }

    pub async fn on(l1: Arc<ScriptedL1>) -> Self {
        let store = Arc::new(SqliteStore::in_memory().expect("opens"));
        let tracker = Tracker::open(chain_config(), store, l1.clone()).await.expect("opens");
        Self { tracker, l1, time_ms: AtomicU64::new(START_MS) }
    }

    /// The next header over these items, a quarter of a second after the last one.
    pub async fn seal(&self, items: Vec<Vec<u8>>) -> Sealed {
        let time_ms = self.time_ms.fetch_add(250, Ordering::SeqCst);
        self.seal_at(time_ms, items).await
    }

    pub async fn seal_at(&self, time_ms: u64, items: Vec<Vec<u8>>) -> Sealed {
        let number = self.tracker.head().number + 1;
        let epoch = epochs().at(number).cloned().expect("registered");
        let slices: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
        let checked = check_items(&chain_config(), &epoch, &slices, &mut ChaCha20Rng::seed_from_u64(1));
        let origin = self.l1.finalized().await.expect("scripted");
        let items = items.into_iter().zip(checked).collect();
        self.tracker.seal(time_ms, 0, items, &origin, &sequencer_key()).await.expect("sealed")
    }

    pub async fn seal_envelopes(&self, envelopes: &[Envelope]) -> Sealed {
        self.seal(envelopes.iter().map(Canonical::encode).collect()).await
    }

    /// A certificate by these members, taken into the sealer's own chain.
    pub async fn certify(&self, batch: &SealedBatch, members: &[u16]) -> Certificate {
        let certificate = certify(batch, members);
        self.tracker.accept_certificate(&certificate).await.expect("it stands");
        certificate
    }
}

/// The same batch a millisecond later, signed as well: a second header for its number.
pub fn second(batch: &SealedBatch) -> SealedBatch {
    resigned(batch, |header| header.timestamp_ms += 1)
}

pub fn resigned(
    batch: &SealedBatch,
    change: impl FnOnce(&mut blindfold_protocol::BatchHeader),
) -> SealedBatch {
    let mut changed = batch.clone();
    change(&mut changed.header);
    changed.signature = changed.header.sign(&sequencer_key(), &chain_config().deployment).signature;
    changed
}

pub fn acknowledge(batch: &SealedBatch, member: u16) -> Acknowledgement {
    let header = &batch.header;
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

pub fn certify(batch: &SealedBatch, members: &[u16]) -> Certificate {
    let acknowledgements: Vec<Acknowledgement> =
        members.iter().map(|member| acknowledge(batch, *member)).collect();
    let epoch = epochs().at(batch.header.number).cloned().expect("registered");
    certificate::aggregate(&epoch, &acknowledgements).expect("enough")
}
