//! Starting, damaging and ending the development network.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use alloy_primitives::{Address, U256};
use anyhow::{Context, Result, ensure};
use blindfold_client::{keys, node::Node};
use blindfold_committee::key_file::{self, KeyFileCost};
use blindfold_engine::{Genesis, ManagedNode, ManagedNodeConfig};
use blindfold_l1::{
    AnvilConfig, CommitteeSettings, DeployConfig, L1Client, L1Config, L1Writer, ManagedAnvil, deploy,
};
use blindfold_protocol::{ChainConfig, Deployment, L1Timing, SigningKey, limits::DEFAULT_BLOCK_GAS};
use blindfold_rpc::{ClientConfig, CommitteeApiClient, SequencerUrls, http_client};
use blindfold_runtime::{Instant, blocking, now, random};
use blindfold_servers::{Postgres, PostgresCluster, Redis, Way};
use blindfold_store::StoreUrl;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    MEMBERS,
    accounts::{
        GATEWAY, HINT_PUBLISHER, PROXY, SECOND_HINT_PUBLISHER, SEQUENCER, WATCHER, account_key, named_key,
    },
    confidential::{self, COPROCESSOR},
    ports::{NodePorts, Ports, http},
    process::RoleProcess,
    settings::Layout,
    threshold_of,
};
use crate::{
    dealer::{Deal, Dealt, deal},
    deploy::{FEE_RECIPIENT, new_epoch},
    roles::StoreSettings,
};

/// Chain id of the development rollup.
const CHAIN_ID: u64 = 42_069;
/// Ordering fee at the start and at least, in wei per byte.
const BASE_FEE_WEI: u128 = 1_000_000;
/// How long posted hints can be challenged, in L1 blocks of a second: so short that a run shows them being final.
const CHALLENGE_WINDOW_BLOCKS: u32 = 60;
/// How long after its posting a ledger pays out, in L1 blocks of a second.
const CLAIM_DELAY_BLOCKS: u32 = 20;
/// What every member of a committee has at stake: one ether.
const MEMBER_STAKE_WEI: u128 = 1_000_000_000_000_000_000;
/// Held per envelope until its hint is final, in wei.
const MALFORMED_SURCHARGE_WEI: u128 = 1_000_000_000;
/// What every account owns on each layer: 10,000 ether.
const ACCOUNT_BALANCE_WEI: u128 = 10_000 * 1_000_000_000_000_000_000;
/// What every paying account has in `FeeVault`: one ether.
pub const FEE_DEPOSIT_WEI: u128 = 1_000_000_000_000_000_000;
/// What it costs to try the password of a development key file: next to nothing.
const KEY_FILE_COST: KeyFileCost = KeyFileCost { memory_kib: 64, iterations: 1, lanes: 1 };
/// Last batch number of the committee's epoch.
const LAST_NUMBER: u64 = u32::MAX as u64;
/// How long a member may take to start, and how often it is asked meanwhile.
const MEMBER_START_MS: u64 = 60_000;
const MEMBER_POLL_MS: u64 = 20;
/// How long the full node waits for hints before it decrypts by itself.
const HINT_DEADLINE_MS: u64 = 4_000;

/// The file by which a run's folder is known for one.
const MARKER: &str = ".blindfold-devnet";
const MARKER_TEXT: &str = "The next run of `blindfold devnet` with this folder removes all that is in it.\n";

/// Every role that is a process of its own, in order of start.
pub const PROCESSES: [&str; 8] =
    ["sequencer", "member-1", "member-2", "member-3", "member-4", "hint-publisher", "full-node", "proxy"];

/// The role of a full node that follows from L1 alone, where the ports name one.
pub const L1_NODE: &str = "full-node-l1";

/// Sequencers beside the first one, where the ports name them.
pub const FURTHER_SEQUENCERS: [&str; 2] = ["sequencer-2", "sequencer-3"];

/// The process with the sequencers' key, where the ports name one.
pub const SIGNER: &str = "signer";

/// Gateways before the sequencers, where the ports name them.
pub const GATEWAYS: [&str; 2] = ["gateway-1", "gateway-2"];

/// The role of a relay before the full node, where the ports name one.
pub const RELAY: &str = "relay";

/// Roles that go through the gateways, where there are any; the others talk to the sequencers themselves.
const BEHIND_GATEWAYS: [&str; 2] = ["full-node", "proxy"];

fn gateways(ports: &Ports) -> impl Iterator<Item = (&'static str, &(u16, u16))> {
    GATEWAYS.into_iter().zip(&ports.gateways)
}

fn further_sequencers(ports: &Ports) -> impl Iterator<Item = (&'static str, &NodePorts)> {
    FURTHER_SEQUENCERS.into_iter().zip(&ports.further_sequencers)
}

/// Whose execution client it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionSide {
    /// The sequencer's.
    Sequencer,
    /// The full node's.
    FullNode,
}

/// The URLs under which a role, by name, finds the sequencer.
pub type UrlsOfRole = Arc<dyn Fn(&str) -> SequencerUrls + Send + Sync>;

/// How the network is to be started.
pub struct DevnetOptions {
    /// Folder for everything the run writes.
    pub dir: PathBuf,
    /// Path of the `blindfold` binary that roles run from.
    pub binary: PathBuf,
    /// The ports that the parts of the network listen on.
    pub ports: Ports,
    /// B of the committee's dealing.
    pub max_batch: u32,
    /// User accounts funded on both layers; those below [`DevnetOptions::paying`] have a fee account, too.
    pub accounts: usize,
    /// How many of them have a fee account.
    pub paying: usize,
    /// Leave the folder where it is.
    pub keep: bool,
    /// Under which URLs each role finds the sequencer; directly where none are given.
    pub sequencer_urls: Option<UrlsOfRole>,
    /// All deadlines, in L1 blocks of a second.
    pub timing: L1Timing,
    /// What is fixed about committees.
    pub committees: CommitteeSettings,
    /// Last batch number of the committee's epoch.
    pub last_number: u64,
    /// Run a coprocessor, too.
    pub confidential: bool,
    /// Keep the records of all roles in a PostgreSQL server of the run.
    pub postgres: bool,
    /// How long a slot is, in milliseconds, if not as by default.
    pub slot_ms: Option<u64>,
    /// The collector that gets traces of all envelopes, if there is one.
    pub traces_url: Option<String>,
    /// Where roles find L1, if not at its own port.
    pub l1_url: Option<String>,
}

/// The servers of a run's records.
enum Servers {
    /// One, for all roles.
    One(Postgres),
    /// Three that are replicated, for the sequencers, and the way of each sequencer to them.
    Cluster(Box<PostgresCluster>, BTreeMap<&'static str, Way>),
}

impl DevnetOptions {
    /// The defaults: documented ports, B = 128, twenty accounts that pay for themselves.
    #[must_use]
    pub fn new(dir: PathBuf, binary: PathBuf) -> Self {
        Self {
            dir,
            binary,
            ports: Ports::documented(MEMBERS),
            max_batch: 128,
            accounts: 20,
            paying: 20,
            keep: false,
            sequencer_urls: None,
            timing: L1Timing { challenge_window: CHALLENGE_WINDOW_BLOCKS, ..L1Timing::default() },
            committees: CommitteeSettings::default(),
            last_number: LAST_NUMBER,
            confidential: false,
            postgres: false,
            slot_ms: None,
            traces_url: None,
            l1_url: None,
        }
    }
}

/// Tells a person what is happening.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    since: Instant,
}

impl Default for Progress {
    fn default() -> Self {
        Self { since: now() }
    }
}

impl Progress {
    /// One step, with the time since the start.
    pub fn step(&self, what: impl std::fmt::Display) {
        eprintln!("[{:6.1} s] {what}", self.since.elapsed().as_secs_f64());
    }
}

/// A running network. Dropping it kills everything.
pub struct Devnet {
    /// The chain's settings, as `rollup.json` has them.
    pub chain: Arc<ChainConfig>,
    /// The ports that the parts of the network listen on.
    pub ports: Ports,
    /// L1, to read.
    pub l1: L1Client,
    dir: PathBuf,
    keep: bool,
    processes: BTreeMap<String, RoleProcess>,
    sequencer_execution: ManagedNode,
    further_executions: Vec<ManagedNode>,
    full_node_execution: ManagedNode,
    l1_node_execution: Option<ManagedNode>,
    anvil: ManagedAnvil,
    stores: BTreeMap<String, StoreSettings>,
    redis: Option<Redis>,
    // Ended last: the roles write to it.
    servers: Option<Servers>,
}

impl Devnet {
    /// Starts everything and waits until every role is ready.
    ///
    /// # Errors
    /// When a part does not start; with the end of its log.
    pub async fn start(options: DevnetOptions, progress: &Progress) -> Result<Self> {
        let dir = prepared(&options.dir)?;
        let repository = std::env::current_dir()?;
        progress.step("L1: anvil (Osaka)");
        let anvil = ManagedAnvil::spawn(&AnvilConfig {
            port: options.ports.l1,
            block_time_s: Some(1),
            log: Some(dir.join("logs/l1.log")),
            ..AnvilConfig::installed(&repository.join("contracts"))?
        })
        .await?;
        let l1_url = anvil.url().to_owned();

        let members = u16::try_from(options.ports.members.len())?;
        progress.step(format!(
            "committee keys: {members} members, {} needed, B = {}",
            threshold_of(members),
            options.max_batch
        ));
        write_secret(&dir.join("password"), &format!("{:032x}\n", random::<u128>()))?;
        let dealt = dealt(&dir, options.max_batch, members).await?;

        progress.step("L1: contracts, committee, fee deposits");
        let (chain, writer) = deployed(&l1_url, &dealt, &options).await?;
        fs::write(dir.join("rollup.json"), serde_json::to_vec_pretty(&chain)?)?;
        write_keys(&dir)?;
        let funded = funded(&l1_url, &writer, &options).await?;

        progress.step("execution clients: op-geth, one for the sequencer, one for the full node");
        let alloc = funded.iter().map(|address| (*address, U256::from(ACCOUNT_BALANCE_WEI))).collect();
        let genesis = Genesis::new(chain.chain_id, chain.block_gas_limit, alloc);
        let binary = ManagedNodeConfig::default_binary(&repository);
        let execution = |folder: &str, (http_port, engine_port): (u16, u16)| ManagedNodeConfig {
            http_port,
            engine_port,
            ..ManagedNodeConfig::new(binary.clone(), dir.join(folder), genesis.clone())
        };
        let sequencer_execution =
            ManagedNode::start(execution("sequencer-execution", options.ports.sequencer_execution)).await?;
        let full_node_execution =
            ManagedNode::start(execution("full-node-execution", options.ports.full_node_execution)).await?;
        let l1_node_execution = match options.ports.l1_node {
            Some(ports) => {
                Some(ManagedNode::start(execution("full-node-l1-execution", ports.execution)).await?)
            }
            None => None,
        };

        let mut further_executions = Vec::new();
        for (name, ports) in further_sequencers(&options.ports) {
            let config = execution(&format!("{name}-execution"), ports.execution);
            further_executions.push(ManagedNode::start(config).await?);
        }

        if options.confidential {
            progress.step("confidential balances: the circuits' keys (kept for later runs), a deployment");
            let (dir, chain, accounts) = (dir.clone(), chain.clone(), options.accounts);
            blocking(move || confidential::prepare(&dir, &chain, accounts)).await??;
        }

        let replicated = !options.ports.further_sequencers.is_empty();
        let servers = match (replicated, options.postgres) {
            (true, _) => {
                progress
                    .step("PostgreSQL: three servers for the sequencers' records, one of which takes writes");
                let cluster = blocking(PostgresCluster::start).await??;
                let names = ["sequencer"].into_iter().chain(FURTHER_SEQUENCERS);
                let ways = names.map(|name| Ok((name, cluster.way()?))).collect::<Result<_>>()?;
                Some(Servers::Cluster(Box::new(cluster), ways))
            }
            (false, true) => {
                progress.step("PostgreSQL: a server for the records of all roles");
                Some(Servers::One(blocking(Postgres::start).await??))
            }
            (false, false) => None,
        };
        let redis = match options.ports.gateways.is_empty() {
            true => None,
            false => {
                progress.step("Redis: a server that gateways and hint publishers share");
                Some(blocking(Redis::start).await??)
            }
        };
        let stores = stores(servers.as_ref(), &options)?;
        progress.step("roles: sequencer, members, hint publisher, full node, proxy");
        let redis_url = redis.as_ref().map(Redis::url);
        let l1_of_roles = options.l1_url.as_deref().unwrap_or(&l1_url);
        let processes = role_processes(&dir, &options, l1_of_roles, &stores, redis_url.as_deref())?;
        if options.ports.signer.is_some() {
            progress.step("signer: a record of its own, from number 1 on");
            begin_signer(&options.binary, &dir).await?;
        }
        let l1 = L1Client::connect(L1Config::new(&l1_url, &chain)).await?;
        let mut devnet = Self {
            chain: Arc::new(chain),
            ports: options.ports,
            l1,
            dir,
            keep: options.keep,
            processes,
            sequencer_execution,
            further_executions,
            full_node_execution,
            l1_node_execution,
            anvil,
            stores,
            redis,
            servers,
        };
        let names = devnet.names();
        // Before the chain's first certified header every member votes at once; one that comes later waits for an epoch.
        let (members, others): (Vec<_>, Vec<_>) = names.iter().partition(|name| name.starts_with("member-"));
        for name in members {
            devnet.process(name)?.start()?;
        }
        devnet.members_decided().await?;
        for name in others {
            devnet.process(name)?.start()?;
        }
        for name in &names {
            devnet.process(name)?.ready().await?;
            progress.step(format!("  {name} is ready"));
        }
        Ok(devnet)
    }

    /// Waits until every member has decided from when on it votes.
    async fn members_decided(&self) -> Result<()> {
        for (member, (rpc, _)) in (1u16..).zip(&self.ports.members) {
            let client = http_client(&http(*rpc), &ClientConfig::default())?;
            let deadline = now() + Duration::from_millis(MEMBER_START_MS);
            while !CommitteeApiClient::get_status(&client)
                .await
                .is_ok_and(|status| status.votes_from.is_some())
            {
                ensure!(now() < deadline, "member {member} does not start");
                tokio::time::sleep(Duration::from_millis(MEMBER_POLL_MS)).await;
            }
        }
        Ok(())
    }

    /// The roles that are processes of their own, in order of start.
    fn names(&self) -> Vec<String> {
        in_order_of_start(self.processes.keys().cloned().collect())
    }

    /// A role's process.
    ///
    /// # Errors
    /// For a name that is none of [`PROCESSES`], nor [`L1_NODE`] or [`COPROCESSOR`] where there is one.
    pub fn process(&mut self, name: &str) -> Result<&mut RoleProcess> {
        self.processes.get_mut(name).with_context(|| format!("no role is called {name}"))
    }

    /// The processes of all roles.
    pub fn processes(&mut self) -> impl Iterator<Item = &mut RoleProcess> {
        self.processes.values_mut()
    }

    /// Where clients find whichever sequencer leads.
    #[must_use]
    pub fn sequencer_urls(&self) -> SequencerUrls {
        SequencerUrls::new(self.sequencers().iter().map(|(_, (rpc, _))| http(*rpc)))
    }

    /// Where users send and ask: the gateways, or whichever sequencer leads where there are none.
    #[must_use]
    pub fn front_urls(&self) -> SequencerUrls {
        match self.ports.gateways.as_slice() {
            [] => self.sequencer_urls(),
            gateways => SequencerUrls::new(gateways.iter().map(|(rpc, _)| http(*rpc))),
        }
    }

    /// The Redis server that the gateways share, where there are any.
    pub fn redis(&mut self) -> Option<&mut Redis> {
        self.redis.as_mut()
    }

    /// Kills a role (`SIGKILL`) and starts it again.
    ///
    /// # Errors
    /// When it does not come back.
    pub async fn kill_and_restart(&mut self, name: &str) -> Result<()> {
        let process = self.process(name)?;
        process.kill().await?;
        process.start()?;
        process.ready().await
    }

    /// Kills an execution client (`SIGKILL`) and starts it again; it has lost its newest blocks then.
    ///
    /// # Errors
    /// When it does not come back.
    pub async fn kill_and_restart_execution(&mut self, side: ExecutionSide) -> Result<()> {
        let node = match side {
            ExecutionSide::Sequencer => &mut self.sequencer_execution,
            ExecutionSide::FullNode => &mut self.full_node_execution,
        };
        node.kill().await?;
        node.restart().await?;
        Ok(())
    }

    /// The full node's execution client.
    pub const fn full_node_execution(&mut self) -> &mut ManagedNode {
        &mut self.full_node_execution
    }

    /// The execution client of a sequencer, by its name.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn execution_of(&mut self, sequencer: &str) -> Result<&mut ManagedNode> {
        let further = FURTHER_SEQUENCERS.iter().position(|name| *name == sequencer);
        let node = match further {
            Some(index) => self.further_executions.get_mut(index),
            None => (sequencer == "sequencer").then_some(&mut self.sequencer_execution),
        };
        node.with_context(|| format!("no sequencer {sequencer}"))
    }

    /// The same for the execution client of a sequencer, by its name.
    ///
    /// # Errors
    /// When there is none of that name, or it does not come back.
    pub async fn kill_and_restart_execution_of(&mut self, sequencer: &str) -> Result<()> {
        let node = self.execution_of(sequencer)?;
        node.kill().await?;
        node.restart().await?;
        Ok(())
    }

    /// Where a role keeps its records.
    ///
    /// # Errors
    /// None for a role of the network.
    pub fn store_of(&self, role: &str) -> Result<StoreUrl> {
        self.stores.get(role).cloned().unwrap_or_default().at(&self.dir.join(role))
    }

    /// The server of all records, where the run has one.
    pub fn postgres(&mut self) -> Option<&mut Postgres> {
        match &mut self.servers {
            Some(Servers::One(server)) => Some(server),
            _ => None,
        }
    }

    /// The servers of the sequencers' records, where these are replicated.
    pub fn cluster(&mut self) -> Option<&mut PostgresCluster> {
        match &mut self.servers {
            Some(Servers::Cluster(cluster, _)) => Some(cluster),
            _ => None,
        }
    }

    /// The way of a sequencer to these servers, which can be cut.
    pub fn way(&self, name: &str) -> Option<&Way> {
        match &self.servers {
            Some(Servers::Cluster(_, ways)) => ways.get(name),
            _ => None,
        }
    }

    /// Names of the sequencers, the first one first, and their addresses.
    pub fn sequencers(&self) -> Vec<(&'static str, (u16, u16))> {
        let further = further_sequencers(&self.ports).map(|(name, ports)| (name, ports.node));
        [("sequencer", self.ports.sequencer)].into_iter().chain(further).collect()
    }

    /// The folder of this run's files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The JSON-RPC endpoint of L1.
    #[must_use]
    pub fn l1_url(&self) -> &str {
        self.anvil.url()
    }

    /// Mines this many L1 blocks at once. L1's clock then runs ahead by as many seconds.
    ///
    /// # Errors
    /// When L1 does not answer.
    pub async fn mine(&self, blocks: u64) -> Result<()> {
        Ok(self.anvil.mine(blocks).await?)
    }

    /// The process that is L1.
    #[must_use]
    pub fn l1_pid(&self) -> u32 {
        self.anvil.process_id()
    }

    /// Stops L1's execution until [`Devnet::resume_l1`] (`SIGSTOP`): whoever asks it waits.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause_l1(&self) -> Result<()> {
        self.signal_l1(Signal::SIGSTOP)
    }

    /// Lets it go on (`SIGCONT`).
    ///
    /// # Errors
    /// When it does not run.
    pub fn resume_l1(&self) -> Result<()> {
        self.signal_l1(Signal::SIGCONT)
    }

    fn signal_l1(&self, signal: Signal) -> Result<()> {
        let id = i32::try_from(self.anvil.process_id())?;
        kill(Pid::from_raw(id), signal).with_context(|| format!("{signal} to L1"))
    }

    /// Prints where everything is.
    pub fn print_urls(&self) {
        let ports = &self.ports;
        println!();
        println!(
            "  proxy (point your wallet here)   {}   chain id {}",
            http(ports.proxy.0),
            self.chain.chain_id
        );
        println!("  full node                        {}", http(ports.full_node.0));
        for (name, (rpc, _)) in self.sequencers() {
            println!("  {name:<32} {}", http(rpc));
        }
        for (name, (rpc, _)) in gateways(ports) {
            println!("  {name:<32} {}", http(*rpc));
        }
        if let Some((rpc, _)) = ports.relay {
            println!("  relay                            {}", http(rpc));
        }
        for (member, (rpc, _)) in (1u16..).zip(&ports.members) {
            println!("  member {member}                         {}", http(*rpc));
        }
        if self.processes.contains_key(COPROCESSOR) {
            println!("  coprocessor                      {}", http(ports.coprocessor.0));
        }
        println!("  L1                               {}", http(ports.l1));
        println!("  logs and data                    {}", self.dir.display());
        let key = account_key(0);
        println!();
        println!("  account 0  {}  key 0x{}", key.address(), hex::encode(key.to_bytes()));
        println!(
            "  try: cast send --rpc-url {} --private-key 0x{} --value 1ether {}",
            http(ports.proxy.0),
            hex::encode(key.to_bytes()),
            account_key(1).address()
        );
        println!();
        let folder = if self.keep { "leaves the folder" } else { "removes the folder" };
        println!("  Ctrl-C ends everything and {folder}.");
    }

    /// Ends every part in order and removes the folder.
    ///
    /// # Errors
    /// When the folder cannot be removed.
    pub async fn stop(mut self) -> Result<()> {
        for name in self.names().iter().rev() {
            if let Ok(process) = self.process(name) {
                process.stop().await;
            }
        }
        let clients = [&mut self.sequencer_execution, &mut self.full_node_execution];
        let further = self.further_executions.iter_mut().chain(&mut self.l1_node_execution);
        for node in clients.into_iter().chain(further) {
            if let Err(error) = node.stop().await {
                tracing::warn!(%error, "an execution client did not end in order");
            }
        }
        drop(self.anvil);
        if !self.keep {
            remove_run(&self.dir)?;
        }
        Ok(())
    }
}

/// The names of processes, in order of start; members beyond the fourth, and whatever else has no place in it, last.
fn in_order_of_start(mut names: Vec<String>) -> Vec<String> {
    let beside = FURTHER_SEQUENCERS.into_iter().chain([SECOND_HINT_PUBLISHER]).chain(GATEWAYS).chain([RELAY]);
    let order: Vec<&str> =
        [SIGNER].into_iter().chain(PROCESSES).chain(beside).chain([L1_NODE, COPROCESSOR]).collect();
    names.sort_by_key(|name| order.iter().position(|known| known == name).unwrap_or(order.len()));
    names
}

/// Whether a run made this folder, so that the next one may remove it with all that is in it.
#[must_use]
pub fn is_run(dir: &Path) -> bool {
    dir.join(MARKER).is_file()
}

/// Writes a new file that its owner alone can read.
fn write_secret(path: &Path, text: &str) -> Result<()> {
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).with_context(|| path.display().to_string())
}

/// An empty folder with an absolute path. Of a folder with content only an earlier run's is emptied: an operator's holds
/// files of the same names (`rollup.json`, `password`, `keys`).
fn prepared(dir: &Path) -> Result<PathBuf> {
    let at = || dir.display().to_string();
    if dir.exists() {
        let is_empty = fs::read_dir(dir).with_context(at)?.next().is_none();
        ensure!(
            is_empty || is_run(dir),
            "{} is not empty, and no run of the devnet made it ({MARKER} is missing): nothing there was touched. Name another \
             folder with --dir, or empty this one yourself",
            dir.display()
        );
        remove_run(dir)?;
    }
    fs::create_dir_all(dir).with_context(at)?;
    // First, so that a run that ends at any moment from here on leaves a folder that the next one takes.
    fs::write(dir.join(MARKER), MARKER_TEXT).with_context(at)?;
    fs::create_dir_all(dir.join("logs")).with_context(at)?;
    Ok(dir.canonicalize()?)
}

/// Removes a run's folder; the marker last, so that what is interrupted can be done again.
///
/// # Errors
/// When something in it cannot be removed.
pub fn remove_run(dir: &Path) -> Result<()> {
    let at = || dir.display().to_string();
    for entry in fs::read_dir(dir).with_context(at)? {
        let entry = entry.with_context(at)?;
        let path = entry.path();
        if entry.file_name() == MARKER {
            continue;
        }
        // A link counts as a file, so that nothing outside the folder goes.
        let removed = if entry.file_type().with_context(at)?.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.with_context(|| path.display().to_string())?;
    }
    fs::remove_dir_all(dir).with_context(at)
}

async fn dealt(dir: &Path, max_batch: u32, members: u16) -> Result<Dealt> {
    let out = dir.join("committee");
    let password = fs::read_to_string(dir.join("password"))?.trim().to_owned();
    // Dealing is minutes of arithmetic for large B.
    blocking(move || {
        deal(&Deal {
            max_batch,
            members,
            threshold: threshold_of(members),
            out: &out,
            password: &password,
            cost: KEY_FILE_COST,
        })
    })
    .await?
}

/// Deploys the contracts and registers the committee.
async fn deployed(l1_url: &str, dealt: &Dealt, options: &DevnetOptions) -> Result<(ChainConfig, L1Writer)> {
    let governor = blindfold_l1::dev_key(0).context("anvil's first key")?;
    let sequencer = named_key(SEQUENCER).address();
    let l1_chain_id = Node::new(l1_url)?.chain_id().await?;
    let config = DeployConfig {
        timing: options.timing,
        committees: options.committees,
        claim_delay: CLAIM_DELAY_BLOCKS,
        member_stake_wei: MEMBER_STAKE_WEI,
        // Its ether is nobody's.
        deposits_without_outlet: true,
        ..DeployConfig::new(l1_chain_id, governor.address(), sequencer)
    };
    let addresses = deploy(l1_url, &governor, config).await?;
    let chain = ChainConfig {
        chain_id: CHAIN_ID,
        deployment: Deployment { l1_chain_id, inbox: addresses.inbox },
        registry: addresses.registry,
        fee_vault: addresses.fee_vault,
        forced_queue: addresses.forced_queue,
        hint_registry: addresses.hint_registry,
        hint_verifier: addresses.hint_verifier,
        deposit_portal: addresses.deposit_portal,
        output_registry: addresses.output_registry,
        timing: config.timing,
        sequencer,
        fee_recipient: FEE_RECIPIENT,
        base_fee_recipient: Address::ZERO,
        block_gas_limit: DEFAULT_BLOCK_GAS,
        initial_base_fee: BASE_FEE_WEI,
        min_base_fee: BASE_FEE_WEI,
        initial_gas_base_fee: 1,
        min_gas_base_fee: 1,
        malformed_surcharge: MALFORMED_SURCHARGE_WEI,
        genesis_l1_origin: 0,
    };
    let client = L1Client::connect(L1Config::new(l1_url, &chain)).await?;
    let writer = L1Writer::new(client, governor);
    let members: Vec<PathBuf> = dealt.members.iter().map(|(path, _)| path.clone()).collect();
    let password = fs::read_to_string(options.dir.join("password"))?;
    stake_members(&writer, &members, password.trim(), options.last_number).await?;
    let location = "file:committee/parameters.bin".to_owned();
    writer.register_epoch(&new_epoch(&dealt.parameters, &members, options.last_number, location)?).await?;
    Ok((chain, writer))
}

/// Puts at stake what every member must have before its committee is registered, for epochs with numbers up to
/// `last_number`.
///
/// # Errors
/// A key file that does not open; L1.
pub async fn stake_members(
    writer: &L1Writer,
    members: &[PathBuf],
    password: &str,
    last_number: u64,
) -> Result<()> {
    for path in members {
        let key = key_file::open_bls_key(path, password.as_bytes(), None)?;
        writer.deposit_stake(&key, writer.address(), U256::from(MEMBER_STAKE_WEI)).await?;
        writer.serve(&key.public_key(), last_number).await?;
    }
    Ok(())
}

fn write_keys(dir: &Path) -> Result<()> {
    let password = fs::read_to_string(dir.join("password"))?;
    for name in [SEQUENCER, PROXY, HINT_PUBLISHER, SECOND_HINT_PUBLISHER, WATCHER, GATEWAY] {
        keys::store(&named_key(name), &dir.join("keys").join(format!("{name}.json")), password.trim())?;
    }
    Ok(())
}

/// Funds the accounts on L1 and in `FeeVault`; gives those to be funded in the rollup's genesis.
async fn funded(l1_url: &str, writer: &L1Writer, options: &DevnetOptions) -> Result<Vec<Address>> {
    let l1 = Node::new(l1_url)?;
    let users: Vec<SigningKey> = (0..options.accounts).map(account_key).collect();
    let named = [SEQUENCER, PROXY, HINT_PUBLISHER, WATCHER].map(named_key);
    for key in users.iter().chain(&named) {
        let balance = format!("{ACCOUNT_BALANCE_WEI:#x}");
        l1.call("anvil_setBalance", &[json!(key.address()), json!(balance)]).await?;
    }
    // Each pays for itself, so that all deposits go into the same few blocks.
    let mut deposits = JoinSet::new();
    let proxy = named_key(PROXY);
    for payer in users.iter().take(options.paying).chain([&proxy]) {
        let writer = L1Writer::new(writer.client().clone(), payer.clone());
        deposits.spawn(async move { writer.deposit(writer.address(), FEE_DEPOSIT_WEI).await });
    }
    while let Some(deposited) = deposits.join_next().await {
        deposited??;
    }
    Ok(users.iter().map(SigningKey::address).collect())
}

/// A schema of the server for each role that keeps records; without a server, each keeps them in its folder.
fn stores(servers: Option<&Servers>, options: &DevnetOptions) -> Result<BTreeMap<String, StoreSettings>> {
    let postgres = match servers {
        Some(Servers::One(postgres)) => postgres,
        Some(Servers::Cluster(cluster, ways)) => {
            let fresh = cluster.fresh()?;
            let (_, schema) = fresh.rsplit_once("%3D").context("a schema")?;
            let store = |way: &Way| StoreSettings { url: Some(way.url(schema)), password_file: None };
            return Ok(ways.iter().map(|(name, way)| ((*name).to_owned(), store(way))).collect());
        }
        None => return Ok(BTreeMap::new()),
    };
    let members = (1..=options.ports.members.len()).map(|member| format!("member-{member}"));
    let roles =
        ["sequencer", "full-node", L1_NODE, COPROCESSOR].map(str::to_owned).into_iter().chain(members);
    roles
        .map(|role| {
            let store = StoreSettings { url: Some(postgres.fresh()?), password_file: None };
            Ok((role, store))
        })
        .collect()
}

/// Says to the signer that its key has signed nothing.
async fn begin_signer(binary: &Path, dir: &Path) -> Result<()> {
    let mut command = tokio::process::Command::new(binary);
    command.args(["signer", "begin", "1", "--config"]).arg(dir.join(format!("{SIGNER}.toml")));
    let output = command.output().await.with_context(|| format!("cannot start {}", binary.display()))?;
    ensure!(output.status.success(), "signer begin: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

fn role_processes(
    dir: &Path,
    options: &DevnetOptions,
    l1_url: &str,
    stores: &BTreeMap<String, StoreSettings>,
    redis_url: Option<&str>,
) -> Result<BTreeMap<String, RoleProcess>> {
    let further = further_sequencers(&options.ports);
    let direct = [http(options.ports.sequencer.0)];
    let direct = SequencerUrls::new(direct.into_iter().chain(further.map(|(_, ports)| http(ports.node.0))));
    let sequencer_urls = |role: &str| match &options.sequencer_urls {
        Some(urls) => urls(role),
        None if BEHIND_GATEWAYS.contains(&role) && !options.ports.gateways.is_empty() => {
            SequencerUrls::new(options.ports.gateways.iter().map(|(rpc, _)| http(*rpc)))
        }
        None => direct.clone(),
    };
    let sequencer_urls = &sequencer_urls;
    let traces_url = options.traces_url.as_deref();
    let slot_ms = options.slot_ms;
    let layout =
        Layout { dir, ports: &options.ports, l1_url, sequencer_urls, stores, redis_url, slot_ms, traces_url };
    let mut processes = BTreeMap::new();
    if options.ports.signer.is_some() {
        layout.write_certificates()?;
    }
    let mut add = |name: &str, subcommand: &str, settings: PathBuf, admin: u16| {
        let arguments = vec![subcommand.to_owned(), "--config".to_owned(), settings.display().to_string()];
        let log = dir.join("logs").join(format!("{name}.log"));
        let process = RoleProcess::new(name, &options.binary, arguments, super::ports::local(admin), log);
        processes.insert(name.to_owned(), process);
    };
    if let Some(ports) = options.ports.signer {
        add(SIGNER, "signer", layout.write(SIGNER, &layout.signer(ports))?, ports.1);
    }
    add("sequencer", "sequencer", layout.write("sequencer", &layout.sequencer())?, options.ports.sequencer.1);
    for (name, ports) in further_sequencers(&options.ports) {
        let settings = layout.write(name, &layout.further_sequencer(name, ports))?;
        add(name, "sequencer", settings, ports.node.1);
    }
    for (member, (_, admin)) in (1u16..).zip(&options.ports.members) {
        let name = format!("member-{member}");
        add(&name, "committee", layout.write(&name, &layout.member(member))?, *admin);
    }
    let publisher = layout.write("hint-publisher", &layout.hint_publisher())?;
    add("hint-publisher", "hint-publisher", publisher, options.ports.hint_publisher);
    if let Some(admin) = options.ports.second_hint_publisher {
        let name = SECOND_HINT_PUBLISHER;
        add(name, "hint-publisher", layout.write(name, &layout.second_hint_publisher(name, admin))?, admin);
    }
    let full_node = layout.write("full-node", &layout.full_node(HINT_DEADLINE_MS))?;
    add("full-node", "full-node", full_node, options.ports.full_node.1);
    if let Some(ports) = &options.ports.l1_node {
        add(L1_NODE, "full-node", layout.write(L1_NODE, &layout.l1_node(ports))?, ports.node.1);
    }
    if options.confidential {
        let settings = layout.write(COPROCESSOR, &layout.coprocessor())?;
        add(COPROCESSOR, "coprocessor", settings, options.ports.coprocessor.1);
    }
    for (name, ports) in gateways(&options.ports) {
        add(name, "gateway", layout.write(name, &layout.gateway(name, *ports))?, ports.1);
    }
    if let Some(ports) = options.ports.relay {
        add(RELAY, "relay", layout.write(RELAY, &layout.relay(ports))?, ports.1);
    }
    add("proxy", "proxy", layout.write("proxy", &layout.proxy())?, options.ports.proxy.1);
    Ok(processes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A committee may have more members than the network of a developer.
    #[test]
    fn no_process_is_left_out_of_the_order_of_start() {
        let members = (1..=16).map(|member| format!("member-{member}"));
        let names: Vec<String> = members.chain(["sequencer", SIGNER].map(str::to_owned)).collect();
        let ordered = in_order_of_start(names.clone());
        assert_eq!(ordered[..3], [SIGNER, "sequencer", "member-1"]);
        assert_eq!(ordered.len(), names.len());
        assert!(names.iter().all(|name| ordered.contains(name)));
    }

    /// What `docs/operate.md` sets up, and scripts/deploy.
    fn operators(dir: &Path) -> [PathBuf; 3] {
        let files = ["rollup.json", "password", "keys/governor.json"].map(|name| dir.join(name));
        fs::create_dir(dir.join("keys")).unwrap();
        for file in &files {
            fs::write(file, "x").unwrap();
        }
        files
    }

    #[test]
    fn an_operators_folder_is_no_runs() {
        let dir = tempfile::tempdir().unwrap();
        let files = operators(dir.path());
        let refused = prepared(dir.path()).map_err(|error| error.to_string());
        for file in &files {
            assert!(file.is_file(), "{}: {refused:?}", file.display());
        }
        let refused = refused.unwrap_err();
        assert!(refused.contains("--dir") && refused.contains("nothing there was touched"), "{refused}");
        assert!(!is_run(dir.path()));
    }

    #[test]
    fn a_run_that_ends_early_leaves_a_folder_for_the_next_one() {
        let parent = tempfile::tempdir().unwrap();
        for dir in [parent.path().to_owned(), parent.path().join("new/run")] {
            let made = prepared(&dir).unwrap();
            assert!(is_run(&made));
            fs::write(made.join("logs/l1.log"), "x").unwrap();
            assert!(!prepared(&dir).unwrap().join("logs/l1.log").exists());
            operators(&dir);
            remove_run(&dir).unwrap();
            assert!(!dir.exists());
        }
    }
}
