//! A sequencer and four members in this process, reached over real sockets, and a full node that follows them.

#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use alloy_primitives::{Address, B256};
use async_trait::async_trait;
use blindfold_bte::CiphertextPoint;
use blindfold_chain::{NewBlock, ReadApi, ReadContext, RoleView, Sealed, announce};
use blindfold_full_node::{FullNode, FullNodeConfig, FullNodeDeps, MemberEndpoint, Source, StartError};
use blindfold_kit::*;
use blindfold_protocol::{
    BatchHints, Certificate, CertifiedBatch, Envelope, Release, ReleaseShare, SealedBatch, SingletonShare,
    Verdict,
};
use blindfold_rpc::jsonrpsee::core::SubscriptionResult;
use blindfold_rpc::jsonrpsee::{Extensions, PendingSubscriptionSink};
use blindfold_rpc::types::{
    BatchInfo, CommitteeStatus, EncryptionKeyInfo, FeeAccount, FeeAccountProof, HeldBatch, LedgerAt, Receipt,
    Status,
};
use blindfold_rpc::{
    BlindApiServer, Encoded, FeedEvent, Hub, RpcError, ServerConfig, ServerHandle, Topic, serve,
};
use blindfold_store::Store;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

struct SequencerRole;

impl RoleView for SequencerRole {
    fn role(&self) -> &'static str {
        "sequencer"
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}

/// What the sequencer's answers leave out or change.
pub struct Mischief {
    /// Answers no batch at all.
    pub withhold_batches: AtomicBool,
    /// Answers when it is asked for batches as often as [`batch_answers`](Self::batch_answers) lets it.
    pub stall_batches: AtomicBool,
    pub batch_answers: Semaphore,
    /// Gives a batch every other time that it is asked for one, and has none in between.
    pub drip: AtomicBool,
    /// Lets whoever asks where it stands wait.
    pub stall_status: AtomicBool,
    pub statuses_asked: AtomicUsize,
    /// Answers batches without hints, and no hints.
    pub withhold_hints: AtomicBool,
    /// Answers when it is asked for hints as often as [`hint_answers`](Self::hint_answers) lets it.
    pub stall_hints: AtomicBool,
    pub hint_answers: Semaphore,
    pub hints_asked: AtomicUsize,
    /// Has no hints, and says so after as many milliseconds.
    pub no_hints_after_ms: AtomicU64,
    /// Gives this batch no more once the next one was asked for: whoever asks waits.
    pub stalled_batch: AtomicU64,
    pub last_batch_asked: AtomicU64,
    /// Hints given in place of the true ones.
    pub forged_hints: Mutex<Option<BatchHints>>,
    /// A certificate given in place of the true one.
    pub forged_certificate: Mutex<Option<Certificate>>,
    pub batches_asked: AtomicUsize,
}

impl Default for Mischief {
    fn default() -> Self {
        Self {
            withhold_batches: AtomicBool::default(),
            stall_batches: AtomicBool::default(),
            batch_answers: Semaphore::new(0),
            drip: AtomicBool::default(),
            stall_status: AtomicBool::default(),
            statuses_asked: AtomicUsize::default(),
            withhold_hints: AtomicBool::default(),
            stall_hints: AtomicBool::default(),
            hint_answers: Semaphore::new(0),
            hints_asked: AtomicUsize::default(),
            no_hints_after_ms: AtomicU64::default(),
            stalled_batch: AtomicU64::default(),
            last_batch_asked: AtomicU64::default(),
            forged_hints: Mutex::default(),
            forged_certificate: Mutex::default(),
            batches_asked: AtomicUsize::default(),
        }
    }
}

#[derive(Clone)]
struct Api {
    reads: ReadApi,
    mischief: Arc<Mischief>,
}

#[async_trait]
impl BlindApiServer for Api {
    async fn get_encryption_key(&self) -> Result<Vec<EncryptionKeyInfo>, RpcError> {
        self.reads.get_encryption_key().await
    }

    async fn get_receipt(&self, id: B256) -> Result<Option<Receipt>, RpcError> {
        self.reads.get_receipt(id).await
    }

    async fn get_batch(&self, number: u64) -> Result<Option<BatchInfo>, RpcError> {
        let asked = self.mischief.batches_asked.fetch_add(1, Ordering::SeqCst);
        if self.mischief.drip.load(Ordering::SeqCst) && asked % 2 == 1 {
            return Ok(None);
        }
        let last = self.mischief.last_batch_asked.fetch_max(number, Ordering::SeqCst);
        if number == self.mischief.stalled_batch.load(Ordering::SeqCst) && last > number {
            std::future::pending::<()>().await;
        }
        if self.mischief.stall_batches.load(Ordering::SeqCst) {
            self.mischief.batch_answers.acquire().await.expect("open").forget();
        }
        if self.mischief.withhold_batches.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let mut info = self.reads.get_batch(number).await?;
        if let Some(info) = &mut info {
            if self.mischief.withhold_hints.load(Ordering::SeqCst) {
                info.hints = None;
                info.release = None;
            }
            if let Some(forged) = &*self.mischief.forged_hints.lock() {
                info.hints = Some(Encoded::new(forged));
            }
            if let Some(forged) = &*self.mischief.forged_certificate.lock() {
                info.certificate = Some(Encoded::new(forged));
            }
        }
        Ok(info)
    }

    async fn get_hints(&self, number: u64) -> Result<Option<Encoded<BatchHints>>, RpcError> {
        self.mischief.hints_asked.fetch_add(1, Ordering::SeqCst);
        if self.mischief.stall_hints.load(Ordering::SeqCst) {
            self.mischief.hint_answers.acquire().await.expect("open").forget();
        }
        let none_after_ms = self.mischief.no_hints_after_ms.load(Ordering::SeqCst);
        if none_after_ms > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(none_after_ms)).await;
            return Ok(None);
        }
        if self.mischief.withhold_hints.load(Ordering::SeqCst) {
            return Ok(None);
        }
        if let Some(forged) = &*self.mischief.forged_hints.lock() {
            return Ok(Some(Encoded::new(forged)));
        }
        self.reads.get_hints(number).await
    }

    async fn get_fee_account(&self, address: Address) -> Result<FeeAccount, RpcError> {
        self.reads.get_fee_account(address).await
    }

    async fn get_fee_account_proof(
        &self,
        address: Address,
        at: Option<LedgerAt>,
    ) -> Result<Option<FeeAccountProof>, RpcError> {
        self.reads.get_fee_account_proof(address, at).await
    }

    async fn get_status(&self) -> Result<Status, RpcError> {
        self.mischief.statuses_asked.fetch_add(1, Ordering::SeqCst);
        if self.mischief.stall_status.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.reads.get_status().await
    }

    async fn subscribe_topic(
        &self,
        pending: PendingSubscriptionSink,
        extensions: &Extensions,
        topic: String,
    ) -> SubscriptionResult {
        self.reads.subscribe_topic(pending, extensions, topic).await
    }
}

/// The sequencer: seals on a tracker of its own, executes on a client of its own, serves and announces.
pub struct SequencerDouble {
    pub sealing: Sealer,
    pub machine: Machine,
    pub hub: Hub,
    pub mischief: Arc<Mischief>,
    api: Api,
    server: ServerHandle,
}

impl SequencerDouble {
    pub async fn start(l1: &Arc<ScriptedL1>) -> Self {
        let machine = Machine::start(memory(), l1, &ScriptedExecution::new()).await;
        let sealing = Sealer { tracker: machine.tracker.clone(), l1: Arc::clone(l1) };
        let (hub, mischief) = (Hub::default(), Arc::new(Mischief::default()));
        let reads = ReadApi::new(ReadContext {
            tracker: machine.tracker.clone(),
            parameters: parameter_set(),
            executor: machine.executor.clone(),
            hub: hub.clone(),
            role: Arc::new(SequencerRole),
        });
        let api = Api { reads, mischief: Arc::clone(&mischief) };
        let server = serve(ServerConfig::new(([127, 0, 0, 1], 0).into()), api.clone().into_rpc(), None)
            .await
            .expect("it serves");
        Self { sealing, machine, hub, mischief, api, server }
    }

    /// It dies, and the one that stood by goes on from the same records, at its own address.
    pub async fn replaced_by(self, standby: Standby) -> Self {
        assert!(self.server.shutdown().await, "it ends in time");
        let config = ServerConfig::new(([127, 0, 0, 1], 0).into());
        let server = standby.leads(config, self.api.clone().into_rpc()).await;
        Self { server, ..self }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.server.local_addr())
    }

    /// Seals and announces.
    pub async fn seal(&self, ms: u64, envelopes: &[Envelope]) -> Sealed {
        let sealed = self.sealing.seal_envelopes(ms, envelopes).await;
        self.hub.publish(&announce::header(&sealed.batch, sealed.hash, &sealed.verdicts));
        sealed
    }

    /// Takes the certificate and announces it.
    pub async fn certify(&self, sealed: &Sealed) -> Certificate {
        let certificate = self.sealing.certify(sealed).await;
        self.hub.publish(&announce::certificate(&certificate));
        certificate
    }

    /// Takes the hint publisher's hints and announces them.
    pub async fn hint(&self, sealed: &Sealed) -> (Release, BatchHints) {
        let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
        self.machine.intake.submit(Some(release.clone()), hints.clone()).await.expect("honest hints");
        self.hub.publish(&announce::release(&release));
        self.hub.publish(&announce::hints(&hints));
        (release, hints)
    }

    /// Waits for a block of its own and announces it.
    pub async fn announce_block(&self, number: u64) {
        self.machine.executed(number).await;
        let record = self.machine.tracker.store().block(number).await.expect("a disk").expect("a block");
        let details = serde_json::from_str(&record.transactions).expect("details");
        self.hub.publish(&announce::block(&NewBlock { record, details }));
    }

    /// Waits until the node under test has subscribed to everything.
    pub async fn followed(&self) {
        within("a subscriber", async {
            while Topic::ALL.iter().any(|topic| self.hub.subscribers(*topic) == 0) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    pub fn publish(&self, event: &FeedEvent) {
        self.hub.publish(event);
    }
}

/// What the members hold, together.
pub struct Archive {
    pub certified: Mutex<BTreeMap<u64, (CertifiedBatch, Vec<Verdict>)>>,
    /// Members that refuse to answer.
    pub silent: Mutex<BTreeSet<u16>>,
    /// Members that give other items than their headers', and other points than their shares.
    pub lying: Mutex<BTreeSet<u16>>,
    /// Numbers without a certificate of their own: certified through a descendant.
    pub through_descendant: Mutex<BTreeSet<u64>>,
    /// A member that makes up headers without end, and the batch that it makes them of.
    pub makes_up: Mutex<Option<(u16, SealedBatch)>>,
    /// A member that has what it claims, and takes its time to give it. The others say what they hold once it was asked.
    pub slow: Mutex<Option<u16>>,
    /// Whether these two give their answers: else they keep the caller waiting.
    pub answers: Semaphore,
    /// Every number that a batch was asked for, and of which member.
    pub batches_asked: Mutex<Vec<(u16, u64)>>,
    pub statuses_asked: AtomicUsize,
    pub shares_asked: AtomicUsize,
    /// Members keep whoever asks for a share waiting, for good.
    pub stall_shares: AtomicBool,
    /// So many more questions for singleton shares are turned away.
    pub busy_singletons: AtomicUsize,
    pub shares_given: AtomicUsize,
}

impl Archive {
    fn new() -> Self {
        Self {
            certified: Mutex::default(),
            silent: Mutex::default(),
            lying: Mutex::default(),
            through_descendant: Mutex::default(),
            makes_up: Mutex::default(),
            slow: Mutex::default(),
            answers: Semaphore::new(0),
            batches_asked: Mutex::default(),
            statuses_asked: AtomicUsize::new(0),
            shares_asked: AtomicUsize::new(0),
            stall_shares: AtomicBool::new(false),
            busy_singletons: AtomicUsize::new(0),
            shares_given: AtomicUsize::new(0),
        }
    }

    pub fn put(&self, sealed: &Sealed) {
        let entry = (certified(&sealed.batch), sealed.verdicts.clone());
        self.certified.lock().insert(sealed.batch.header.number, entry);
    }

    fn get(&self, number: u64) -> Result<(SealedBatch, Vec<Verdict>), RpcError> {
        match self.certified.lock().get(&number) {
            Some((batch, verdicts)) => Ok((batch.sealed.clone(), verdicts.clone())),
            None => Err(RpcError::unavailable("not_certified", "not here")),
        }
    }
}

#[derive(Clone)]
struct MemberDouble {
    member: u16,
    archive: Arc<Archive>,
}

impl MemberDouble {
    fn speaks(&self) -> Result<(), RpcError> {
        if self.archive.silent.lock().contains(&self.member) {
            return Err(RpcError::unavailable("scripted_silence", "no"));
        }
        Ok(())
    }

    fn lies(&self) -> bool {
        self.archive.lying.lock().contains(&self.member)
    }

    /// The batch that it makes up under a number, if it does: each follows the one before it.
    fn made_up(&self, number: u64) -> Option<SealedBatch> {
        let makes_up = self.archive.makes_up.lock();
        let (_, mut batch) = makes_up.clone().filter(|(member, _)| *member == self.member)?;
        batch.header.number = 0;
        for next in 1..=number {
            batch.header.parent_hash = batch.header.hash();
            batch.header.number = next;
        }
        Some(batch)
    }

    /// Its own key, or another member's when it lies.
    fn key(&self) -> &'static blindfold_bte::MemberKey {
        let index = if self.lies() { self.member % MEMBERS } else { self.member - 1 };
        &committee().keys[usize::from(index)]
    }
}

#[async_trait]
impl MemberAnswers for MemberDouble {
    async fn get_certified(&self, number: u64) -> Result<Option<Encoded<CertifiedBatch>>, RpcError> {
        self.speaks()?;
        // As `committee_getCertified` answers where a number has no certificate of its own.
        if self.archive.through_descendant.lock().contains(&number) {
            return Ok(None);
        }
        let Some((mut batch, _)) = self.archive.certified.lock().get(&number).cloned() else {
            return Ok(None);
        };
        if self.lies() {
            batch.sealed.items.push(vec![0]);
        }
        Ok(Some(Encoded::new(&batch)))
    }

    async fn get_sealed(&self, number: u64) -> Result<Option<HeldBatch>, RpcError> {
        self.speaks()?;
        self.archive.batches_asked.lock().push((self.member, number));
        if let Some(batch) = self.made_up(number) {
            self.archive.answers.acquire().await.expect("open").forget();
            return Ok(Some(HeldBatch { sealed: Encoded::new(&batch), certificate: None }));
        }
        if *self.archive.slow.lock() == Some(self.member) {
            self.archive.answers.acquire().await.expect("open").forget();
        }
        let alone = !self.archive.through_descendant.lock().contains(&number);
        let Some((mut batch, _)) = self.archive.certified.lock().get(&number).cloned() else {
            return Ok(None);
        };
        if self.lies() {
            batch.sealed.items.push(vec![0]);
        }
        Ok(Some(HeldBatch {
            sealed: Encoded::new(&batch.sealed),
            certificate: alone.then(|| Encoded::new(&batch.certificate)),
        }))
    }

    async fn get_share(
        &self,
        number: u64,
        certificate: Encoded<Certificate>,
    ) -> Result<Encoded<ReleaseShare>, RpcError> {
        self.archive.shares_asked.fetch_add(1, Ordering::SeqCst);
        if self.archive.stall_shares.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.speaks()?;
        let (sealed, verdicts) = self.archive.get(number)?;
        let certificate = certificate.decode_param()?;
        assert!(certificate.number >= number, "a certificate of the batch or of a descendant");
        let batches = points_of(&sealed, &verdicts);
        let pds = batches.iter().map(|batch| {
            let points: Vec<CiphertextPoint> = batch.iter().map(|(_, _, point)| *point).collect();
            self.key().release_share(&points).expect("a batch")
        });
        let share = ReleaseShare {
            number,
            header_hash: sealed.header.hash(),
            member: self.member,
            pds: pds.collect(),
        };
        self.archive.shares_given.fetch_add(1, Ordering::SeqCst);
        Ok(Encoded::new(&share))
    }

    async fn get_singleton(&self, number: u64, index: u32) -> Result<Encoded<SingletonShare>, RpcError> {
        self.speaks()?;
        let turned_away = &self.archive.busy_singletons;
        let less = |more: usize| more.checked_sub(1);
        if turned_away.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
            return Err(RpcError::busy("busy", "scripted"));
        }
        let (sealed, verdicts) = self.archive.get(number)?;
        let batches = points_of(&sealed, &verdicts);
        let (_, _, point) =
            batches.iter().flatten().find(|(at, _, _)| *at == index).expect("an accepted item");
        let share = self.key().singleton_share(point);
        let header_hash = sealed.header.hash();
        Ok(Encoded::new(&SingletonShare { number, header_hash, index, member: self.member, share }))
    }

    async fn get_status(&self) -> Result<CommitteeStatus, RpcError> {
        self.speaks()?;
        self.archive.statuses_asked.fetch_add(1, Ordering::SeqCst);
        let slow = *self.archive.slow.lock();
        if let Some(slow) = slow.filter(|slow| *slow != self.member) {
            let asked = || self.archive.batches_asked.lock().iter().any(|(member, _)| *member == slow);
            eventually("the slow member is asked", asked).await;
        }
        let held = self.archive.certified.lock().last_key_value().map_or(0, |(number, _)| *number);
        let certified = if self.made_up(1).is_some() { u64::MAX } else { held };
        Ok(CommitteeStatus {
            member: self.member,
            version: None,
            epoch: 1,
            acknowledged: certified,
            certified,
            refusals: vec![],
            second_headers_refused: 0,
            votes_from: Some(1),
        })
    }
}

/// Four members.
pub struct Members {
    pub archive: Arc<Archive>,
    pub endpoints: Vec<MemberEndpoint>,
    _servers: Vec<ServerHandle>,
}

impl Members {
    pub async fn start() -> Self {
        let archive = Arc::new(Archive::new());
        let (mut endpoints, mut servers) = (Vec::new(), Vec::new());
        for member in 1..=MEMBERS {
            let double = MemberDouble { member, archive: Arc::clone(&archive) };
            let config = ServerConfig::new(([127, 0, 0, 1], 0).into());
            let server = serve(config, member_that_answers(double), None).await.expect("it serves");
            endpoints.push(MemberEndpoint { member, url: format!("http://{}", server.local_addr()) });
            servers.push(server);
        }
        Self { archive, endpoints, _servers: servers }
    }
}

/// Everything around the node under test.
pub struct World {
    pub l1: Arc<ScriptedL1>,
    pub sequencer: SequencerDouble,
    pub members: Members,
    pub client: Arc<ScriptedExecution>,
    pub config: FullNodeConfig,
}

impl World {
    /// A world in which hints are waited for without end, and members are never asked by the clock.
    pub async fn new() -> Self {
        let l1 = l1();
        let sequencer = SequencerDouble::start(&l1).await;
        let members = Members::start().await;
        let config = FullNodeConfig {
            rpc_addr: ([127, 0, 0, 1], 0).into(),
            admin_addr: ([127, 0, 0, 1], 0).into(),
            source: Source::Feed,
            sequencer_urls: sequencer.url().into(),
            members: members.endpoints.clone(),
            hint_deadline_ms: NEVER_MS,
            member_timeout_ms: 5_000,
            member_poll_interval_ms: NEVER_MS,
            keep_batches: None,
            inbound: Default::default(),
        };
        Self { l1, sequencer, members, client: ScriptedExecution::new(), config }
    }

    pub fn deps(&self, store: Arc<dyn Store>) -> FullNodeDeps {
        FullNodeDeps {
            chain: chain_config(),
            store,
            l1: Arc::clone(&self.l1) as _,
            client: Arc::clone(&self.client) as _,
            parameters: parameter_set(),
            backend: backend(),
            watch: None,
            posted: None,
            settlement: None,
        }
    }

    pub async fn try_start(&self, store: Arc<dyn Store>) -> Result<FullNode, StartError> {
        FullNode::start(self.config.clone(), self.deps(store)).await
    }

    /// A node that follows already.
    pub async fn start(&self) -> FullNode {
        let node = self.try_start(memory()).await.expect("it starts");
        self.sequencer.followed().await;
        node
    }

    pub async fn start_on(&self, path: &Path) -> FullNode {
        let node = self.try_start(disk(path).await).await.expect("it starts");
        self.sequencer.followed().await;
        node
    }
}

pub async fn certified_through(node: &FullNode, number: u64) {
    let mut certified = node.tracker().watch_certified();
    within("a certificate", certified.wait_for(|head| head.number >= number))
        .await
        .expect("the tracker lives");
}

pub async fn executed(node: &FullNode, block: u64) {
    let mut status = node.executor().watch_status();
    let reached = status.wait_for(|status| status.block.is_some_and(|id| id.number >= block));
    let reached = tokio::time::timeout(std::time::Duration::from_secs(60), reached).await.is_ok();
    // What the node was doing says why.
    assert!(reached, "block {block}: {:?}, {:?}", node.executor().status(), node.counters().by_name());
}

/// Waits until a condition on the node holds.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    within(what, async {
        while !holds() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await;
}
