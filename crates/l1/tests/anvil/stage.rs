//! A deployment on anvil, with a committee of four.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Once,
};

use blindfold_bte::{EncryptionKey, bls::SecretKey, dealer};
use blindfold_l1::{
    Addresses, AnvilConfig, CodedBatch, CommitteeSettings, DeployConfig, ItemLeaf, L1Client, L1Config,
    L1Error, L1Writer, ManagedAnvil, NewEpoch, NewMember, PostedRun, Recovery, deploy, dev_key,
};
use blindfold_protocol::{
    B256, BatchHeader, Canonical, Certificate, Deployment, Envelope, Epochs, L1Timing, SealedBatch,
    SigningKey, U256, certificate, data::hash_items, merkle, validity::item_leaf,
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

pub const CHAIN_ID: u64 = 31_337;
pub const GOVERNOR: usize = 1;
pub const SEQUENCER: usize = 2;
pub const POSTER: usize = 3;
pub const USER: usize = 4;

/// The folder of the contracts. The client's tests use this file, too, from another depth.
pub fn contracts() -> PathBuf {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders
        .map(|folder| folder.join("contracts"))
        .find(|folder| folder.join("foundry.toml").exists())
        .unwrap()
}

/// Runs anvil; installs it first where it is missing. Fails, never skips, without it.
pub async fn anvil() -> ManagedAnvil {
    static SETUP: Once = Once::new();
    SETUP.call_once(|| {
        if AnvilConfig::installed(&contracts()).is_err() {
            let script = contracts().join("../scripts/contracts");
            let status = Command::new(script).arg("setup").status().expect("scripts/contracts runs");
            assert!(status.success(), "scripts/contracts setup failed");
        }
    });
    let config = AnvilConfig::installed(&contracts()).expect("scripts/contracts setup installs anvil");
    ManagedAnvil::spawn(&config).await.expect("anvil starts")
}

pub fn key(index: usize) -> SigningKey {
    dev_key(index).unwrap()
}

/// The batches as a reader gets them.
pub fn plain(batches: &[CodedBatch]) -> Vec<SealedBatch> {
    batches.iter().map(|batch| batch.sealed.clone()).collect()
}

pub struct Stage {
    pub anvil: ManagedAnvil,
    pub addresses: Addresses,
    pub members: Vec<SecretKey>,
}

impl Stage {
    pub async fn new() -> Self {
        let anvil = anvil().await;
        let config = deploy_config();
        let addresses = deploy(anvil.url(), &key(0), config).await.unwrap();
        anvil.mine(4).await.unwrap();
        let members = (0..4u8).map(|j| SecretKey::generate(&[j + 1; 32]).unwrap()).collect();
        Self { anvil, addresses, members }
    }

    pub fn config(&self) -> L1Config {
        let mut config = self.addresses.client_config(self.anvil.url());
        // Anvil serves blobs by the beacon node's API too.
        config.beacon_url = Some(self.anvil.url().to_owned());
        config.poll_interval_ms = 0;
        // Anvil computes a table for blobs when it meets the first one.
        (config.request_timeout_ms, config.confirmation_timeout_ms) = (300_000, 300_000);
        config
    }

    pub async fn client(&self) -> L1Client {
        L1Client::connect(self.config()).await.unwrap()
    }

    pub async fn writer(&self, account: usize) -> L1Writer {
        L1Writer::new(self.client().await, key(account))
    }

    pub fn epoch(&self, last: u64, encryption_key: EncryptionKey) -> NewEpoch {
        let member = |secret: &SecretKey| NewMember {
            key: secret.public_key(),
            possession: secret.prove_possession(),
        };
        NewEpoch {
            last,
            max_batch: 4,
            threshold: 3,
            parameters_hash: B256::repeat_byte(0x77),
            continues: 0,
            encryption_key,
            h1: self.members[0].public_key(),
            parameters_location: "file:parameters.bin".into(),
            members: self.members.iter().map(member).collect(),
        }
    }

    /// Registers one epoch and makes it final.
    pub async fn register(&self, last: u64) -> Epochs {
        let writer = self.writer(GOVERNOR).await;
        writer.register_epoch(&self.epoch(last, encryption_key())).await.unwrap();
        self.anvil.mine(4).await.unwrap();
        writer.client().epochs().await.unwrap()
    }

    pub fn deployment(&self) -> Deployment {
        self.addresses.deployment()
    }

    /// Batches that follow `parent`, with items of this length.
    pub fn batches(&self, parent: Option<&BatchHeader>, item_bytes: &[usize]) -> Vec<CodedBatch> {
        let mut previous = parent.map_or((0, self.deployment().genesis_hash(), 1_000), |parent| {
            (parent.number, parent.hash(), parent.timestamp_ms)
        });
        let seal = |length: &usize| {
            let number = previous.0 + 1;
            let items: Vec<Vec<u8>> = (1..=2u8).map(|fill| vec![fill ^ number as u8; *length]).collect();
            let leaf = |item: &Vec<u8>| {
                assert!(Envelope::decode(item).is_err());
                item_leaf(&B256::ZERO, &alloy_primitives::keccak256(item), 1)
            };
            let root = merkle::root(&items.iter().map(leaf).collect::<Vec<_>>());
            let codes = vec![1; items.len()];
            let header = BatchHeader {
                data_hash: hash_items(&codes, &items),
                ..header((number, previous.1, previous.2 + 250), &items, root)
            };
            previous = (number, header.hash(), header.timestamp_ms);
            let signature = header.sign(&key(SEQUENCER), &self.deployment()).signature;
            CodedBatch { sealed: SealedBatch { header, signature, items }, codes }
        };
        item_bytes.iter().map(seal).collect()
    }

    /// A batch that follows `parent`, with these items and their verdict codes, after `change` to its header.
    pub fn coded(
        &self,
        parent: Option<&BatchHeader>,
        items: Vec<Vec<u8>>,
        codes: &[u8],
        change: impl FnOnce(&mut BatchHeader),
    ) -> SealedBatch {
        let (number, hash, time) = parent.map_or((0, self.deployment().genesis_hash(), 1_000), |parent| {
            (parent.number, parent.hash(), parent.timestamp_ms)
        });
        let leaf = |(item, code): (&Vec<u8>, &u8)| {
            let ItemLeaf { id, item_hash, code } = ItemLeaf::new(item, *code);
            item_leaf(&id, &item_hash, code)
        };
        let root = merkle::root(&items.iter().zip(codes).map(leaf).collect::<Vec<_>>());
        let mut header = header((number + 1, hash, time + 250), &items, root);
        header.data_hash = hash_items(codes, &items);
        change(&mut header);
        let signature = header.sign(&key(SEQUENCER), &self.deployment()).signature;
        SealedBatch { header, signature, items }
    }

    /// Posts batches as one run, and makes them final; what L1 holds of them.
    pub async fn post(&self, epochs: &Epochs, batches: &[SealedBatch]) -> PostedRun {
        let headers: Vec<BatchHeader> = batches.iter().map(|batch| batch.header).collect();
        let certificate = self.certify(epochs, headers.last().unwrap());
        let writer = self.writer(POSTER).await;
        let sent = writer.post_headers(&headers, &[], &certificate).await.unwrap();
        let run = PostedRun::new(headers, sent.block).unwrap();
        self.finalize().await;
        run
    }

    /// What an account has on L1, in wei.
    pub async fn balance(&self, account: usize) -> U256 {
        let params = serde_json::json!([key(account).address(), "latest"]);
        let balance = self.anvil.call("eth_getBalance", params).await.unwrap();
        balance.as_str().unwrap().parse().unwrap()
    }

    /// Makes everything so far final; the newest final block.
    pub async fn finalize(&self) -> u64 {
        self.anvil.mine(4).await.unwrap();
        self.client().await.finalized().await.unwrap().number
    }

    /// A certificate by members 1, 2 and 4.
    pub fn certify(&self, epochs: &Epochs, header: &BatchHeader) -> Certificate {
        let sign = |member: u16| {
            let secret = &self.members[usize::from(member) - 1];
            let (number, hash) = (header.number, header.hash());
            certificate::sign_acknowledgement(secret, &self.deployment(), header.epoch, number, hash, member)
        };
        let acknowledgements: Vec<_> = [1, 2, 4].map(sign).into();
        certificate::aggregate(epochs.at(header.number).unwrap(), &acknowledgements).unwrap()
    }
}

/// Short deadlines, so that tests can mine past them.
pub const TIMING: L1Timing = L1Timing {
    posting_deadline: 400,
    forced_delay: 10,
    answer_window: 20,
    hint_deadline: 30,
    challenge_window: 24,
    withdrawal_delay: 500,
    max_origin_age_seconds: 14_400,
};

/// Longer than a withdrawal takes, as the vault wants it.
pub const EPOCH_NOTICE: u32 = 600;
/// How long after its posting a ledger pays out.
pub const CLAIM_DELAY: u32 = 2;

pub fn deploy_config() -> DeployConfig {
    let (governor, sequencer) = (key(GOVERNOR).address(), key(SEQUENCER).address());
    let committees = CommitteeSettings { epoch_notice: EPOCH_NOTICE, ..CommitteeSettings::default() };
    let base = DeployConfig::new(CHAIN_ID, governor, sequencer);
    DeployConfig {
        timing: TIMING,
        committees,
        claim_delay: CLAIM_DELAY,
        deposits_without_outlet: true,
        ..base
    }
}

/// A header with this number, parent and time.
pub fn header(place: (u64, B256, u64), items: &[Vec<u8>], envelope_root: B256) -> BatchHeader {
    BatchHeader {
        number: place.0,
        parent_hash: place.1,
        timestamp_ms: place.2,
        l1_origin_number: 3,
        l1_origin_hash: B256::repeat_byte(3),
        l1_origin_time: 0,
        envelope_root,
        data_hash: B256::ZERO,
        envelope_count: items.len() as u32,
        envelope_bytes: items.iter().map(Vec::len).sum::<usize>() as u32,
        gas: 0,
        base_fee: 1_000,
        gas_base_fee: 1,
        fee_ledger_root: B256::repeat_byte(4),
        forced_cursor: 0,
        epoch: 1,
        rules: 1,
    }
}

pub fn encryption_key() -> EncryptionKey {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    dealer::deal(2, 1, 1, &mut rng).unwrap().0.encryption_key()
}

pub fn reverted(outcome: Result<blindfold_l1::Sent, L1Error>, with: &str) {
    match outcome {
        Err(error @ L1Error::Reverted { .. }) => {
            assert!(error.to_string().contains(with), "{error}");
            assert_eq!(error.recovery(), Recovery::Refresh);
        }
        other => panic!("{with} expected, got {other:?}"),
    }
}
