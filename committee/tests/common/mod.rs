//! Members on temporary disks, around a stand-in for the sequencer.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{path::Path, sync::Arc, time::Duration};

use blindfold_chain::{L1Reader, L1Submitter};
use blindfold_committee::{
    Member, MemberConfig, MemberDeps, MemberHandle, StartError,
    key_file::{KeyFilePublic, OpenedKey},
};
use blindfold_kit::*;
use blindfold_protocol::{B256, Epochs, SealedBatch};
use blindfold_rpc::SequencerUrls;
use blindfold_store::{SqlStore, Store};

/// The last number of epoch 1; epoch 2 has the same committee.
pub const LAST_OF_FIRST_EPOCH: u64 = 1_000;
/// The newest final L1 block at the start; deposits of the payers lie before it.
pub const FIRST_ORIGIN: u64 = 3;

pub fn epochs() -> Epochs {
    let (first, second) = ((1, LAST_OF_FIRST_EPOCH), (LAST_OF_FIRST_EPOCH + 1, 9_999));
    Epochs::new(vec![committee().epoch(1, first.0, first.1), committee().epoch(2, second.0, second.1)])
        .expect("valid")
}

/// L1 with both epochs and payers 1 to 8.
pub fn l1() -> Arc<ScriptedL1> {
    let l1 = blindfold_kit::l1();
    *l1.epochs.lock() = epochs();
    *l1.finalized.lock() = FIRST_ORIGIN;
    l1
}

/// A sealer on an L1 of its own.
pub async fn sealer() -> Sealer {
    Sealer::new(&l1()).await
}

/// The same batch a millisecond later, signed as well.
pub fn second(batch: &SealedBatch) -> SealedBatch {
    resigned(batch, |header| header.timestamp_ms += 1)
}

/// What survives a member's death.
pub struct Machine {
    pub member: u16,
    pub folder: tempfile::TempDir,
    pub l1: Arc<ScriptedL1>,
    pub clock: Arc<ManualClock>,
    pub config: MemberConfig,
    /// The account that posts in the sequencer's place.
    pub poster: Option<Arc<dyn L1Submitter>>,
}

pub fn opened_key(member: u16) -> OpenedKey {
    let committee = committee();
    let index = usize::from(member) - 1;
    let bls_key = committee.bls[index].clone();
    let public = KeyFilePublic {
        member,
        parameters_hash: B256::from(committee.parameters.hash()),
        bls_public_key: bls_key.public_key().to_bytes(),
        proof_of_possession: bls_key.prove_possession().to_bytes(),
    };
    let member_key = blindfold_bte::MemberKey::decode(&committee.keys[index].encode()).expect("a key");
    OpenedKey { public, member_key, bls_key: Box::new(bls_key) }
}

pub async fn open_store(folder: &Path) -> SqlStore {
    file(&folder.join("member.sqlite")).await
}

impl Machine {
    pub fn new(member: u16, sequencer_urls: impl Into<SequencerUrls>) -> Self {
        let mut config = MemberConfig {
            rpc_addr: ([127, 0, 0, 1], 0).into(),
            admin_addr: ([127, 0, 0, 1], 0).into(),
            sequencer_urls: sequencer_urls.into(),
            ..MemberConfig::default()
        };
        config.limits.header_retry_ms = 5;
        config.limits.acknowledgement_resend_ms = 20;
        config.limits.certificate_wait_ms = 20;
        config.limits.first_look_ms = 500;
        let folder = tempfile::tempdir().expect("folder");
        let clock = ManualClock::new();
        clock.advance(60_000);
        Self { member, folder, l1: l1(), clock, config, poster: None }
    }

    pub async fn store(&self) -> Arc<dyn Store> {
        Arc::new(open_store(self.folder.path()).await)
    }

    /// Lets the disk know that the member voted for nothing before, so that it votes whoever answers.
    pub async fn knows_every_vote(&self) {
        let store = open_store(self.folder.path()).await;
        store.put_meta("committee.votes_after_epoch", &0u64.to_be_bytes()).await.expect("stored");
        store.close().await;
    }

    /// Waits until nobody has the disk open: SQLite then has everything in one file, and no log beside it.
    pub async fn close_disk(&self) {
        open_store(self.folder.path()).await.close().await;
    }

    pub async fn try_start(&self) -> Result<MemberHandle, StartError> {
        self.start_on(self.store().await).await
    }

    pub async fn start_on(&self, store: Arc<dyn Store>) -> Result<MemberHandle, StartError> {
        self.start_with(store, None).await
    }

    /// Starts on a disk that goes back to what L1 holds first.
    pub async fn rebuild(&self, posted: Arc<dyn L1Reader>) -> Result<MemberHandle, StartError> {
        self.start_with(self.store().await, Some(posted)).await
    }

    async fn start_with(
        &self,
        store: Arc<dyn Store>,
        rebuild: Option<Arc<dyn L1Reader>>,
    ) -> Result<MemberHandle, StartError> {
        let deps = MemberDeps {
            chain: chain_config(),
            store,
            poster: self.poster.clone(),
            rebuild,
            l1: self.l1.clone(),
            key: opened_key(self.member),
            clock: self.clock.clone(),
        };
        Member::start(self.config.clone(), deps).await
    }

    pub async fn start(&self) -> MemberHandle {
        self.try_start().await.expect("the member starts")
    }
}

/// Waits until a member's chain is certified up to `number`.
pub async fn certified(member: &MemberHandle, number: u64) {
    let mut heads = member.tracker().watch_certified();
    within("a certificate", heads.wait_for(|head| head.number >= number)).await.expect("the tracker lives");
}

/// Waits until a member's head is `number`.
pub async fn sealed(member: &MemberHandle, number: u64) {
    let mut heads = member.tracker().watch_sealed();
    within("a header", heads.wait_for(|head| head.number >= number)).await.expect("the tracker lives");
}

/// Waits until the member has decided from which number on it votes.
pub async fn votes_from(member: &MemberHandle) -> u64 {
    within("the decision", async {
        loop {
            if let Some(from) = member.status().await.votes_from {
                return from;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
}
