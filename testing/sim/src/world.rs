//! Everybody, with what outlives each: disks, execution clients, L1.

mod coprocessor;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use alloy_primitives::{Address, B256, U256};
use blindfold_bte::{Backend, MemberKey, Portable};
use blindfold_chain::{KeySigner, L1Reader, L1Submitter, ParameterSet};
use blindfold_client::proxy::{Proxy, ProxyConfig};
use blindfold_committee::{
    Member, MemberConfig, MemberDeps, MemberHandle, PeerUrl,
    key_file::{KeyFilePublic, OpenedKey},
};
use blindfold_coprocessor::{Coprocessor, ExecutionState, ExecutionStatus};
use blindfold_engine::ExecutionClient;
use blindfold_full_node::{
    FullNode, FullNodeConfig, FullNodeDeps, MemberEndpoint, Source, WatchDeps, watch::WatchConfig,
};
use blindfold_hint_publisher::{
    HintPublisher, HintPublisherConfig, HintPublisherDeps, HintPublisherHandle, L1PostingDeps, MemberUrl,
    l1::L1PostingConfig,
};
use blindfold_kit::{Committee, LAST_NUMBER, MAX_BATCH, chain_config};
use blindfold_protocol::{ChainConfig, Epochs, SigningKey};
use blindfold_rpc::RunningRole;
use blindfold_runtime::{Clock, Failure, Instant, SteadyClock, TimeSource, now, spawn};
use blindfold_sequencer::{
    CommitteeClient, Sequencer, SequencerConfig, SequencerDeps, SequencerHandle, introduction,
};
use blindfold_store::{Condition, Disk, DiskFault, SqlStore, Store};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::{sync::watch, time::sleep};

use crate::{
    Life, Lives, Role, START_MS, Trace,
    byzantine::Byzantine,
    checks::Checks,
    confidential::Confidential,
    coverage,
    execution::Chain,
    faults::{Fault, Faults, Scheduled},
    l1::{Beginning, Judge, L1, View},
    net::Net,
    plan::Plan,
    plants::{OtherBackend, OtherClient, OtherDisk, Plant, StandsStill, WrongClaims},
};

/// What payers and accounts have, in wei.
const RICH: u128 = 1_000_000_000_000_000_000;
/// A role that gave up is started again after so long, in milliseconds.
const RESTART_MS: u64 = 1_000;
/// The clock that stands still does so from then on, in milliseconds.
const CLOCK_STANDS_MS: u64 = 8_000;
/// A kill waits for a write so long, in milliseconds.
const KILL_PATIENCE_MS: u64 = 3_000;
/// The key by which the proxy pays, beside those of users.
const PROXY_PAYER: u16 = 1_000;
/// What a hint publisher bonds on L1, in wei.
const BOND: u128 = 10_000;
/// The second hint publisher leaves hints to the first for so long, in milliseconds.
const TAKEOVER_MS: u64 = 8_000;
/// The longest pause after trouble with L1, of who posts hints and who watches them, in milliseconds.
const MAX_RETRY_MS: u64 = 12_000;
/// What roles say that hold something certified in whose place L1 made another header.
const ASKS_TO_BE_TAKEN_BACK: &str = "resynchronise from L1";
/// What a coprocessor says that executed what L1 declared void.
const ASKS_FOR_AN_EMPTY_DISK: &str = "start again from an empty folder";
/// Longer than any run.
const FOR_EVER: Duration = Duration::from_secs(86_400);

/// The world of a run.
pub struct World {
    /// What was drawn.
    pub plan: Plan,
    /// The chain's settings.
    pub chain: Arc<ChainConfig>,
    /// Who lives.
    pub lives: Lives,
    /// What is wrong.
    pub faults: Faults,
    /// What happened.
    pub trace: Trace,
    /// What must hold.
    pub checks: Checks,
    /// The network.
    pub net: Net,
    /// L1.
    pub l1: L1,
    /// What users send to the coprocessor.
    pub confidential: Confidential,
    committee: Committee,
    parameters: Arc<ParameterSet>,
    backend: Arc<dyn Backend>,
    disks: BTreeMap<Role, Disk>,
    clients: BTreeMap<Role, Chain>,
    stores: Mutex<BTreeMap<Role, SqlStore>>,
    killed: Mutex<BTreeMap<Role, bool>>,
    /// Who starts by going back to what L1 holds.
    rebuilt: Mutex<BTreeSet<Role>>,
    /// Who ended and said that it has to be taken back to that.
    stranded: Mutex<BTreeSet<Role>>,
    /// What the coprocessor says of its execution, since it runs.
    execution: Mutex<Option<watch::Receiver<ExecutionStatus>>>,
    down: BTreeMap<Role, watch::Sender<bool>>,
    met: Mutex<BTreeSet<(&'static str, &'static str)>>,
    folder: TempDir,
    start: Instant,
}

/// A role that runs.
enum Running {
    Sequencer(Box<SequencerHandle>),
    Member(Box<MemberHandle>),
    Publisher(Box<HintPublisherHandle>),
    Node(Box<FullNode>),
    Proxy(Box<Proxy>),
    Coprocessor(Box<Coprocessor>),
}

impl Running {
    async fn failed(&self) -> Failure {
        match self {
            Self::Sequencer(handle) => handle.failed().await,
            Self::Member(handle) => handle.failed().await,
            Self::Publisher(handle) => handle.failed().await,
            Self::Node(node) => node.failed().await,
            Self::Proxy(proxy) => proxy.failed().await,
            Self::Coprocessor(coprocessor) => coprocessor.failed().await,
        }
    }
}

/// The clocks of a role's machine.
struct SimTime {
    start: Instant,
    role: Role,
    faults: Faults,
}

impl TimeSource for SimTime {
    fn wall_ms(&self) -> u64 {
        let mut wall_ms = START_MS + self.monotonic_ms();
        self.faults.each(|fault, _| match fault {
            Fault::WrongClock { role, ahead_ms } if *role == self.role => {
                wall_ms = wall_ms.saturating_add_signed(*ahead_ms);
            }
            _ => {}
        });
        wall_ms
    }

    fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

fn key(kind: u8, index: u16) -> SigningKey {
    let mut bytes = [kind; 32];
    bytes[30..].copy_from_slice(&index.to_be_bytes());
    SigningKey::from_bytes(&bytes).expect("a scalar")
}

/// The key of a user.
pub fn user_key(index: u16) -> SigningKey {
    key(7, index)
}

impl World {
    /// Everybody of this plan; nobody runs yet.
    ///
    /// # Errors
    /// When there is no place for the files of locks.
    pub fn new(plan: Plan, trace: Trace) -> anyhow::Result<Arc<Self>> {
        let (members, mut threshold) = (plan.members, plan.threshold);
        // No role takes less than a majority for enough.
        if plan.plant == Some(Plant::SmallQuorum) && 2 * (threshold - 1) > members {
            threshold -= 1;
        }
        let committee = Committee::deal(members, threshold, MAX_BATCH, plan.seed ^ 0xdea1);
        let epochs = vec![committee.epoch(1, 1, LAST_NUMBER)];
        let parameters = committee.parameter_set(&epochs);
        let epochs = Epochs::new(epochs)?;
        let encryption_key = committee.encryption_key.to_bytes().to_vec();
        let sequencer = key(9, 1).address();
        let chain =
            Arc::new(ChainConfig { sequencer, timing: plan.timing, ..ChainConfig::clone(&chain_config()) });
        let backend: Arc<dyn Backend> = Arc::new(Portable::new(1));

        let (lives, faults) = (Lives::default(), Faults::default());
        let checks = Checks::new(plan.threshold, plan.dishonest(), trace.clone());
        let mut payers: Vec<Address> = (0..=plan.users).map(|user| user_key(user).address()).collect();
        if plan.proxied > 0 {
            payers.push(user_key(PROXY_PAYER).address());
        }
        let beginning = Beginning {
            deployment: chain.deployment,
            timing: plan.timing,
            makes_headers: plan.makes_headers,
            declares_void: plan.declares_void,
            sequencer: chain.sequencer,
            publishers: (1..=plan.publishers).map(Role::Publisher).collect(),
            judge: Judge { parameters: Arc::clone(&parameters), backend: Arc::clone(&backend) },
            epochs,
            keys: BTreeMap::from([(1, encryption_key)]),
            payers,
            amount: RICH,
        };
        let l1 = L1::new(plan.pace, beginning, plan.plant, faults.clone(), trace.clone(), checks.clone());
        let byzantine = Byzantine::new(
            chain.deployment,
            key(9, 1),
            committee.bls.clone(),
            plan.plant,
            faults.clone(),
            trace.clone(),
        );
        let net =
            Net::new(plan.seed, lives.clone(), faults.clone(), trace.clone(), checks.clone(), byzantine);
        let cast = plan.cast();
        let disk = |role: Role| Ok((role, Disk::new()?));
        let disks = cast.with_disk().into_iter().map(disk).collect::<anyhow::Result<_>>()?;
        let rich: Vec<Address> = (0..=plan.users + 2).map(|user| user_key(user).address()).collect();
        let client = |role: Role| (role, Chain::new(chain.chain_id, &rich, U256::from(RICH)));
        let clients = cast.executing().into_iter().map(client).collect();
        let down = cast.all().into_iter().map(|role| (role, watch::Sender::new(false))).collect();
        Ok(Arc::new(Self {
            chain,
            lives,
            faults,
            trace,
            checks,
            net,
            l1,
            confidential: Confidential::default(),
            committee,
            parameters,
            backend,
            disks,
            clients,
            stores: Mutex::default(),
            killed: Mutex::default(),
            rebuilt: Mutex::default(),
            stranded: Mutex::default(),
            execution: Mutex::default(),
            down,
            met: Mutex::default(),
            folder: tempfile::tempdir()?,
            start: now(),
            plan,
        }))
    }

    /// Runs all roles, and starts each again that ends.
    ///
    /// # Panics
    /// Outside a set of tasks of this thread.
    pub fn run(self: &Arc<Self>) {
        spawn(self.l1.clone().run());
        for role in self.plan.cast().all() {
            // What starts a role stays on its thread.
            tokio::task::spawn_local(Arc::clone(self).supervise(role));
        }
    }

    /// The user that forces transactions in and sends no envelopes.
    pub fn forcer(&self) -> u16 {
        self.plan.users + 1
    }

    /// The user whose transactions go through the proxy.
    pub fn proxied_user(&self) -> u16 {
        self.plan.users + 2
    }

    /// Who has not executed so many of the transactions that were forced in.
    pub fn without_forced(&self, count: usize) -> Vec<Role> {
        let forcer = user_key(self.forcer()).address();
        let lacks = |(role, chain): (&Role, &Chain)| (chain.nonce(forcer) < count as u64).then_some(*role);
        self.clients.iter().filter_map(lacks).collect()
    }

    /// What was deposited for fees, in wei.
    pub fn deposited(&self) -> u128 {
        RICH * (u128::from(self.plan.users) + 1 + u128::from(self.plan.proxied > 0))
    }

    /// Pairs of what went wrong and what was under way then, so far.
    pub fn met(&self) -> BTreeSet<(&'static str, &'static str)> {
        self.met.lock().clone()
    }

    /// Adds to them what is so now.
    pub async fn look_what_is_met(&self) {
        let mut met = BTreeSet::new();
        coverage::look(self, &mut met).await;
        self.met.lock().append(&mut met);
    }

    /// The node of a user.
    pub fn node_of(&self, user: u16) -> Role {
        Role::Node(user % self.plan.nodes + 1)
    }

    /// The disk of a role as it is read from outside.
    pub fn store(&self, role: Role) -> Option<SqlStore> {
        self.stores.lock().get(&role).cloned()
    }

    async fn supervise(self: Arc<Self>, role: Role) {
        let mut down = self.down[&role].subscribe();
        loop {
            let life = self.lives.begin(role);
            // Whoever was killed gives its address back a moment later.
            while self.net.is_bound(role) {
                sleep(Duration::from_millis(1)).await;
            }
            self.trace.event(role, format_args!("starts"));
            let lived = async {
                let running = self.start(&life).await?;
                self.trace.event(role, format_args!("runs"));
                anyhow::Ok(running.failed().await)
            };
            tokio::select! {
                biased;
                _ = down.wait_for(|down| *down) => {}
                ended = lived => {
                    let why = match ended {
                        Ok(failure) => failure.to_string(),
                        Err(error) => format!("it does not start: {error:#}"),
                    };
                    if why.contains(ASKS_TO_BE_TAKEN_BACK) {
                        self.stranded.lock().insert(role);
                    }
                    self.checks.role_failed(role, &why);
                }
            }
            self.lives.end(role);
            self.take_disk(role);
            if *down.borrow() {
                self.killed.lock().remove(&role);
                self.set_condition(role);
                self.trace.event(role, format_args!("is killed"));
                // The sender lives in the world.
                let _ = down.wait_for(|down| !*down).await;
            } else {
                sleep(Duration::from_millis(RESTART_MS)).await;
            }
        }
    }

    /// Nothing of an ended life writes any more.
    fn take_disk(&self, role: Role) {
        if let Some(disk) = self.disks.get(&role) {
            drop(SqlStore::on(disk));
        }
        self.stores.lock().remove(&role);
        if role == Role::Coprocessor {
            *self.execution.lock() = None;
        }
    }

    /// Whether there is this bug.
    fn has(&self, plant: Plant) -> bool {
        self.plan.plant == Some(plant)
    }

    fn open_disk(&self, role: Role) -> Arc<dyn Store> {
        let store = SqlStore::on(&self.disks[&role]);
        self.stores.lock().insert(role, store.clone());
        let whose = |plant: &Plant| match plant {
            Plant::ForgetsPending | Plant::LosesPending => role == Role::Sequencer,
            Plant::ForgetsVotes => matches!(role, Role::Member(_)),
            Plant::Panics => role == Role::Member(1),
            Plant::ForgetsBlocks => role == Role::Node(1),
            _ => false,
        };
        match self.plan.plant.filter(whose) {
            Some(plant) => {
                Arc::new(OtherDisk { disk: Arc::new(store), plant, certificates: AtomicUsize::new(0) })
            }
            None => Arc::new(store),
        }
    }

    fn clock(&self, role: Role) -> Arc<dyn Clock> {
        let time = SimTime { start: self.start, role, faults: self.faults.clone() };
        if role == Role::Sequencer && self.has(Plant::ClockStands) {
            return Arc::new(SteadyClock::new(StandsStill(time, CLOCK_STANDS_MS)));
        }
        Arc::new(SteadyClock::new(time))
    }

    fn client(&self, life: &Life) -> Arc<dyn ExecutionClient> {
        let client = self.clients[&life.role].client(life);
        if life.role != Role::Node(1) {
            return Arc::new(client);
        }
        match self.plan.plant {
            Some(
                plant @ (Plant::ClientsDiffer
                | Plant::OtherOrder
                | Plant::HidesLostHead
                | Plant::LeavesOutTransaction),
            ) => Arc::new(OtherClient { client, plant, newest: Mutex::default() }),
            _ => Arc::new(client),
        }
    }

    fn backend(&self, role: Role) -> Arc<dyn Backend> {
        let backend = Arc::clone(&self.backend);
        match self.plan.plant {
            Some(plant @ Plant::Misreads) if role == Role::Node(1) => Arc::new(OtherBackend(backend, plant)),
            _ => backend,
        }
    }

    async fn start(&self, life: &Life) -> anyhow::Result<Running> {
        let role = life.role;
        let nowhere = ([127, 0, 0, 1], 0).into();
        let l1 = Arc::new(self.l1.view(life));
        let (chain, parameters) = (Arc::clone(&self.chain), Arc::clone(&self.parameters));
        let backend = self.backend(role);
        let sequencer_urls = life.url(Role::Sequencer).into();
        let members = 1..=self.plan.members;
        Ok(match role {
            Role::Sequencer => {
                let url =
                    |member| blindfold_sequencer::MemberUrl { member, url: life.url(Role::Member(member)) };
                let mut config = SequencerConfig {
                    rpc_addr: role.addr(),
                    admin_addr: nowhere,
                    data_dir: self.folder.path().to_path_buf(),
                    members: members.map(url).collect(),
                    ..SequencerConfig::default()
                };
                config.sealing.slot_ms = self.plan.slot_ms;
                // Data has no bytes here that members could read.
                config.posting.attestation_wait_ms = 0;
                // A run is too short for the defaults.
                (config.outputs.depth_blocks, config.outputs.interval_ms) = (1, 3_000);
                let (key, clock) = (Arc::new(key(9, 1)), self.clock(role));
                let introduce = |server| introduction(&key, chain.deployment, &clock, server);
                let committee = CommitteeClient::new(&config.members, config.recovery.timeout_ms, introduce)?;
                let outputs: Arc<dyn L1Submitter> = match self.has(Plant::ClaimsWrongBlock) {
                    true => Arc::new(WrongClaims(self.l1.view(life))),
                    false => l1.clone(),
                };
                let deps = SequencerDeps {
                    store: self.open_disk(role),
                    committee: Arc::new(committee),
                    settlement: Some(l1.clone()),
                    rebuild: self.rebuild(role, &l1),
                    poster: Some(l1.clone()),
                    accusations: Some(l1.clone()),
                    outputs: Some(outputs),
                    l1,
                    execution: self.client(life),
                    signer: Arc::new(KeySigner::new(key, chain.deployment)),
                    parameters,
                    backend,
                    clock,
                    chain,
                };
                Running::Sequencer(Box::new(Sequencer::start(config, deps).await?))
            }
            Role::Member(member) => {
                let peers = members.filter(|peer| *peer != member);
                let mut config = MemberConfig {
                    rpc_addr: role.addr(),
                    admin_addr: nowhere,
                    sequencer_urls,
                    peers: peers
                        .map(|member| PeerUrl { member, url: life.url(Role::Member(member)) })
                        .collect(),
                    ..MemberConfig::default()
                };
                if self.plan.members_post {
                    // The deadlines are short.
                    config.limits.posting_check_ms = self.plan.pace.block_ms;
                }
                let deps = MemberDeps {
                    chain,
                    store: self.open_disk(role),
                    poster: self.plan.members_post.then(|| l1.clone() as Arc<dyn L1Submitter>),
                    rebuild: self.rebuild(role, &l1),
                    l1,
                    key: self.opened_key(member)?,
                    clock: self.clock(role),
                };
                Running::Member(Box::new(Member::start(config, deps).await?))
            }
            Role::Publisher(publisher) => {
                let config = HintPublisherConfig {
                    admin_addr: nowhere,
                    sequencer_urls,
                    members: members
                        .map(|member| MemberUrl { member, url: life.url(Role::Member(member)) })
                        .collect(),
                    ..HintPublisherConfig::default()
                };
                let l1_posting = self.plan.hints_on_l1.then(|| L1PostingDeps {
                    config: L1PostingConfig {
                        bond_wei: BOND,
                        interval_ms: self.plan.pace.block_ms,
                        takeover_ms: u64::from(publisher - 1) * TAKEOVER_MS,
                        max_retry_ms: MAX_RETRY_MS,
                        ..L1PostingConfig::default()
                    },
                    l1,
                });
                let deps = HintPublisherDeps {
                    chain,
                    parameters,
                    backend,
                    hello_key: None,
                    redis: None,
                    l1_posting,
                };
                Running::Publisher(Box::new(HintPublisher::start(config, deps).await?))
            }
            Role::Node(_) => {
                let from_l1 = self.plan.from_l1() == Some(role);
                let endpoint = |member| MemberEndpoint { member, url: life.url(Role::Member(member)) };
                let config = FullNodeConfig {
                    rpc_addr: role.addr(),
                    admin_addr: nowhere,
                    source: if from_l1 { Source::L1 } else { Source::Feed },
                    sequencer_urls,
                    members: members.map(endpoint).collect(),
                    hint_deadline_ms: 5_000,
                    member_timeout_ms: 5_000,
                    member_poll_interval_ms: 5_000,
                    keep_batches: None,
                    inbound: Default::default(),
                };
                let deps = FullNodeDeps {
                    chain,
                    store: self.open_disk(role),
                    posted: from_l1.then(|| l1.clone() as Arc<dyn L1Reader>),
                    settlement: Some(l1.clone()),
                    watch: self.plan.hints_on_l1.then(|| WatchDeps {
                        config: WatchConfig {
                            interval_ms: self.plan.pace.block_ms,
                            max_retry_ms: MAX_RETRY_MS,
                        },
                        l1: l1.clone(),
                        reporter: Some(l1.clone()),
                    }),
                    l1,
                    client: self.client(life),
                    parameters,
                    backend,
                };
                Running::Node(Box::new(FullNode::start(config, deps).await?))
            }
            Role::Proxy => {
                let config = ProxyConfig {
                    rpc_addr: role.addr(),
                    admin_addr: nowhere,
                    node_url: life.url(self.node_of(self.proxied_user())),
                    sequencer_urls,
                    state: self.folder.path().join("proxy.sqlite"),
                    ..ProxyConfig::default()
                };
                let payer = user_key(PROXY_PAYER);
                let proxy = Proxy::start(config, chain.as_ref().clone(), payer, l1, None).await?;
                Running::Proxy(Box::new(proxy))
            }
            Role::Coprocessor => Running::Coprocessor(Box::new(self.start_coprocessor(life, l1).await?)),
            Role::World | Role::L1 | Role::User(_) => anyhow::bail!("{role} is no role to start"),
        })
    }

    /// Where it goes back to, if it does.
    fn rebuild(&self, role: Role, l1: &Arc<View>) -> Option<Arc<dyn L1Reader>> {
        self.rebuilt.lock().contains(&role).then(|| Arc::clone(l1) as Arc<dyn L1Reader>)
    }

    /// Whether it ended, and said that it has to be taken back to what L1 holds; whether a coprocessor says that it needs
    /// an empty disk.
    pub fn is_stranded(&self, role: Role) -> bool {
        self.stranded.lock().contains(&role) || role == Role::Coprocessor && self.is_halted()
    }

    /// Whether a coprocessor runs, and says that it needs an empty disk.
    pub fn is_halted(&self) -> bool {
        let execution = self.execution.lock();
        let state = execution.as_ref().map(|status| status.borrow().state.clone());
        matches!(state, Some(ExecutionState::Halted(why)) if why.contains(ASKS_FOR_AN_EMPTY_DISK))
    }

    /// Stops these, and starts them again so that they go back to what L1 holds.
    pub async fn take_back(&self, roles: &[Role]) {
        for role in roles {
            self.end_life(*role).await;
        }
        for role in roles {
            self.stranded.lock().remove(role);
            match role {
                Role::Node(_) | Role::Coprocessor => {
                    let emptied = Disk::new().and_then(|empty| self.disks[role].restore(&empty.image()?));
                    self.trace.event(*role, format_args!("has an empty disk: {}", emptied.is_ok()));
                    if *role == Role::Coprocessor {
                        self.confidential.begin_anew();
                        self.checks.emptied();
                    }
                }
                _ => drop(self.rebuilt.lock().insert(*role)),
            }
            self.down[role].send_replace(false);
        }
    }

    fn opened_key(&self, member: u16) -> anyhow::Result<OpenedKey> {
        let index = usize::from(member - 1);
        let other = if self.has(Plant::MixedUpKeys) { index ^ 1 } else { index };
        let other = other.min(self.committee.keys.len() - 1);
        let bls_key = self.committee.bls[index].clone();
        let epoch = self.parameters.all().into_iter().next().ok_or_else(|| anyhow::anyhow!("no epoch"))?;
        let public = KeyFilePublic {
            member,
            parameters_hash: epoch.epoch().parameters_hash,
            bls_public_key: bls_key.public_key().to_bytes(),
            proof_of_possession: bls_key.prove_possession().to_bytes(),
        };
        let member_key = MemberKey::decode(&self.committee.keys[other].encode())?;
        Ok(OpenedKey { public, member_key, bls_key: Box::new(bls_key) })
    }

    /// Something goes wrong from here to its end.
    pub async fn suffer(self: Arc<Self>, scheduled: Scheduled) {
        let at = |ms| self.start + Duration::from_millis(ms);
        tokio::time::sleep_until(at(scheduled.from_ms)).await;
        self.trace.event(Role::World, format_args!("begins {}: {:?}", scheduled.id, scheduled.fault));
        self.faults.begin(&scheduled);
        let mut image = None;
        match &scheduled.fault {
            Fault::Kill { role, after_commit } => {
                self.kill(*role, *after_commit, at(scheduled.to_ms)).await;
            }
            Fault::Reorganization { blocks, again } => self.l1.reorganize(*blocks, *again),
            Fault::OlderDisk { role } => image = self.disks[role].image().ok(),
            Fault::LostHead { role, .. } => self.clients[role].set_down(true),
            Fault::SlowDisk { role, .. } | Fault::FullDisk { role } => self.set_condition(*role),
            _ => {}
        }
        tokio::time::sleep_until(at(scheduled.to_ms)).await;
        self.faults.end(&scheduled);
        match &scheduled.fault {
            Fault::Kill { role, .. } => {
                self.down[role].send_replace(false);
            }
            Fault::OlderDisk { role } => {
                self.end_life(*role).await;
                let restored = image.is_some_and(|image| self.disks[role].restore(&image).is_ok());
                self.trace.event(*role, format_args!("has an older disk: {restored}"));
                if *role == Role::Sequencer {
                    self.checks.forgotten(&self.held_by_members().await);
                }
                self.down[role].send_replace(false);
            }
            Fault::LostHead { role, blocks } => {
                self.clients[role].lose(*blocks);
                self.clients[role].set_down(false);
            }
            Fault::SlowDisk { role, .. } | Fault::FullDisk { role } => self.set_condition(*role),
            _ => {}
        }
        self.trace.event(Role::World, format_args!("ends {}", scheduled.id));
    }

    /// Those of the announced headers that a member has on its disk.
    async fn held_by_members(&self) -> BTreeSet<B256> {
        let mut held = BTreeSet::new();
        for (number, hash) in self.checks.open_headers() {
            for store in (1..=self.plan.members).filter_map(|member| self.store(Role::Member(member))) {
                if store.header_hash(number).await == Ok(Some(hash)) {
                    held.insert(hash);
                }
            }
        }
        held
    }

    /// Ends a role as it stands.
    async fn end_life(&self, role: Role) {
        let Some(life) = self.lives.at(role.addr()) else { return };
        self.down[&role].send_replace(true);
        life.over().await;
    }

    /// Ends a role at its next write: before it is on disk, or before anybody hears that it is. Where it writes nothing for
    /// a while, and at `latest` in any case, it ends as it stands.
    async fn kill(&self, role: Role, after_commit: bool, latest: Instant) {
        if let Some(disk) = self.disks.get(&role) {
            self.killed.lock().insert(role, after_commit);
            self.set_condition(role);
            let deadline = latest.min(now() + Duration::from_millis(KILL_PATIENCE_MS));
            let commits = disk.commits();
            // What is held back before it is committed cannot be seen from here: some write is, by then.
            while disk.commits() == commits && now() < deadline {
                sleep(Duration::from_millis(1)).await;
            }
        }
        self.end_life(role).await;
    }

    fn set_condition(&self, role: Role) {
        let Some(disk) = self.disks.get(&role) else { return };
        let mut condition = Condition::default();
        self.faults.each(|fault, _| match fault {
            Fault::SlowDisk { role: slow, ms } if *slow == role => {
                condition.before_commit = condition.before_commit.max(Duration::from_millis(*ms));
            }
            Fault::FullDisk { role: full } if *full == role => condition.fault = Some(DiskFault::Full),
            _ => {}
        });
        match self.killed.lock().get(&role) {
            Some(true) => condition.after_commit = FOR_EVER,
            Some(false) => condition.before_commit = FOR_EVER,
            None => {}
        }
        disk.set_condition(condition);
    }
}
