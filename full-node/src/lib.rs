//! The full-node role: follows the sequencer's feed, verifies everything itself, executes on its own execution client.
//!
//! - headers, certificates and hints are verified completely ([`blindfold_chain`]); wrong ones are refused, counted by
//!   reason, and fetched again elsewhere, and none of them stops the node;
//! - batches that the sequencer withholds come from committee members, hints that nobody publishes are made here;
//! - blocks come from the node's own execution client and are compared with those that the sequencer announces;
//! - a node can do all this from what is posted to L1 alone ([`Source::L1`]);
//! - what stands on L1 (hints, outputs, two headers for one number) is compared and, with a key, challenged ([`watch`]);
//! - a new node can begin with somebody else's backup, verified like everything else ([`join`]);
//! - `eth_*` reads, calls and estimates pass through to that client, `blind_*` is served from the node's own store.

mod compare;
mod config;
mod counters;
mod decrypt;
mod follower;
mod from_l1;
mod hint_fetcher;
mod join;
pub mod limits;
mod member_rounds;
mod members;
mod node;
mod prune;
mod sequencer_round;
mod sync;
pub mod watch;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use blindfold_bte::Backend;
use blindfold_chain::{
    Decryption, ExecutionState, Executor, ExecutorDeps, HintIntake, L1Reader, L1Submitter, MemberLimits,
    OpenError, ParameterSet, Pool, ReadApi, ReadContext, RoleView, RunFetcher, Settlement, Tracker,
    passthrough,
};
use blindfold_engine::ExecutionClient;
use blindfold_protocol::ChainConfig;
use blindfold_rpc::{
    ClientBuildError, ClientConfig, FeedSource, Hub, NODE_ONLY_METHODS, READ_METHODS, Readiness, RoleBase,
    RunningRole, ServeError, ServerConfig, http_client_of,
};
use blindfold_runtime::{Patience, Pauses, until};
use blindfold_store::{Store, StoreError};
use blindfold_telemetry::{Metrics, MetricsError};
use tokio::sync::mpsc;
use tokio::sync::watch as channel;

pub use config::{ConfigError, FullNodeConfig, MemberEndpoint, Source};
pub use counters::{ByReason, Counters};
pub use decrypt::{LocalDecryption, LocalDecryptionError};
pub use join::{JoinDeps, JoinError, Joined, Snapshot, join};
pub use members::{Member, MemberError, Members};

use compare::Comparison;
use follower::Follower;
use from_l1::FromL1;
use hint_fetcher::HintFetcher;
use limits::{
    MAX_ANNOUNCED_BLOCKS, MAX_MEMBER_PAUSE_MS, MAX_PARALLEL_SINGLETONS, MAX_WATCHED_BATCHES,
    READINESS_INTERVAL_MS, SHARE_HEDGE_MS, SHARE_RETRY_MS, STUCK_EXIT_MS,
};
use node::Node;
use prune::Pruning;
use watch::{EvidenceError, EvidenceStore, Judge, WatchConfig, WatchConfigError, Watcher, WatcherDeps};

/// The name of the role: in metrics, in the status, and on its disk.
pub const ROLE: &str = "full_node";

/// What a full node works with; the binary opens it.
#[derive(Clone)]
pub struct FullNodeDeps {
    /// The chain's settings, checked.
    pub chain: Arc<ChainConfig>,
    /// The node's own disk, which nobody else writes.
    pub store: Arc<dyn Store>,
    /// The node's own view of L1.
    pub l1: Arc<dyn L1Reader>,
    /// The node's own execution client; nobody else drives it.
    pub client: Arc<dyn ExecutionClient>,
    /// The committees' public parameters, checked.
    pub parameters: Arc<ParameterSet>,
    /// Checks hints by encrypting again, and opens batches where no hints come.
    pub backend: Arc<dyn Backend>,
    /// Watching L1; `None` for a node that leaves that to others.
    pub watch: Option<WatchDeps>,
    /// What was posted to L1, for a node that follows from there.
    pub posted: Option<Arc<dyn L1Reader>>,
    /// What becomes of posted runs; without it no block is ever safe or finalized.
    pub settlement: Option<Arc<dyn L1Reader>>,
}

/// What a node needs that watches L1.
#[derive(Clone)]
pub struct WatchDeps {
    /// Settings of the watching.
    pub config: WatchConfig,
    /// What L1 says, read by this node.
    pub l1: Arc<dyn L1Reader>,
    /// The account that shows evidence and posts what the sequencer keeps from L1; `None` when the node only looks.
    pub reporter: Option<Arc<dyn L1Submitter>>,
}

/// Why a full node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting that cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The settings say to follow from L1, and its postings are not among the parts given.
    #[error("following from L1 needs what was posted there")]
    NoPostings,
    /// A setting of watching L1.
    #[error(transparent)]
    Watch(#[from] WatchConfigError),
    /// The cases on disk cannot be read.
    #[error(transparent)]
    Cases(#[from] EvidenceError),
    /// A URL in the settings cannot be used.
    #[error(transparent)]
    Client(#[from] ClientBuildError),
    /// The chain on disk, or L1.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The disk failed, or holds damaged records.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A metric; a mistake of this program.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// A port cannot be listened on.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// A running full node. Stop it with [`RunningRole::shutdown`]; dropping it stops it, too, without waiting.
pub struct FullNode {
    tracker: Tracker,
    executor: Executor,
    counters: Counters,
    base: RoleBase,
    rpc_addr: SocketAddr,
}

impl FullNode {
    /// Opens the chain on disk and starts all tasks. Neither sequencer nor members nor the execution client need to
    /// be there; L1 does, for the epochs.
    pub async fn start(config: FullNodeConfig, deps: FullNodeDeps) -> Result<Self, StartError> {
        config.validate()?;
        let FullNodeDeps {
            chain,
            store,
            l1,
            client,
            parameters,
            backend,
            watch: watching,
            posted,
            settlement,
        } = deps;
        if let Some(watching) = &watching {
            watching.config.validate()?;
        }
        let metrics = Metrics::new(ROLE, env!("CARGO_PKG_VERSION"))?;
        let counters = Counters::new(&metrics)?;
        counters.backend_threads.get(&[backend.name()]).set(backend.threads() as u64);
        let failures = counters.device_failures.clone();
        backend.on_device_failure(Box::new(move |operation| failures.get(&[operation.name()]).increment()));
        let overruled = counters.overruled.clone();
        backend.on_overruled(Box::new(move |check| overruled.get(&[check.name()]).increment()));
        let members = Members::new(&config.members, config.member_timeout_ms)?;
        let sequencer = match config.source {
            Source::Feed => Some(http_client_of(&config.sequencer_urls, &ClientConfig::default())?),
            Source::L1 => None,
        };
        store.bind(&chain.deployment, ROLE).await?;
        store.count_in(&metrics);

        let evidence = Arc::new(EvidenceStore::open(Arc::clone(&store)).await?);
        let tracker = Tracker::open(chain, store, Arc::clone(&l1)).await?;
        let executor = Executor::start(ExecutorDeps {
            tracker: tracker.clone(),
            parameters: Arc::clone(&parameters),
            backend: Arc::clone(&backend),
            client: Arc::clone(&client),
            l1,
        })
        .await?;
        let settlement = match settlement {
            Some(l1) => Some(Settlement::open(tracker.clone(), executor.clone(), l1).await?),
            None => None,
        };
        let judge = Judge { parameters: Arc::clone(&parameters), backend: Arc::clone(&backend) };
        let (wakes, of_fetcher) = mpsc::channel(MAX_WATCHED_BATCHES);
        let (announced, of_comparison) = mpsc::channel(MAX_ANNOUNCED_BLOCKS);
        let hub = Hub::default();
        let conditions = match config.source {
            Source::Feed => ["sequencer", "execution"],
            Source::L1 => ["l1", "execution"],
        };
        let mut base = RoleBase::new(metrics, &conditions);
        let watch = Arc::new(counters.clone());
        let to_open = MemberLimits {
            hedge: Duration::from_millis(SHARE_HEDGE_MS),
            // A batch that does not open is tried again after a pause, and holds up no other meanwhile.
            wait: Duration::ZERO,
            singleton_wait: Duration::from_millis(config.member_timeout_ms),
            retry: Duration::from_millis(SHARE_RETRY_MS),
        };
        let node = Arc::new(Node {
            tracker: tracker.clone(),
            intake: HintIntake::new(
                tracker.clone(),
                Arc::clone(&parameters),
                Arc::clone(&backend),
                executor.opened(),
            ),
            decryption: LocalDecryption {
                tracker: tracker.clone(),
                parameters: Arc::clone(&parameters),
                decryption: Decryption::new(
                    backend,
                    members.to_open(to_open, watch.clone()),
                    Pool::start(1, base.tasks()),
                    watch,
                    MAX_PARALLEL_SINGLETONS,
                ),
            },
            members,
            fetcher: RunFetcher::new(Duration::from_millis(config.member_timeout_ms)),
            ancestor_pauses: parking_lot::Mutex::new(Pauses::new(
                config.member_timeout_ms,
                MAX_MEMBER_PAUSE_MS,
            )),
            sequencer,
            hub: hub.clone(),
            counters: counters.clone(),
            wakes,
            announced,
            releases: parking_lot::Mutex::default(),
            evidence: Arc::clone(&evidence),
            spawner: base.tasks().spawner(),
            patience: parking_lot::Mutex::new(Patience::new(STUCK_EXIT_MS)),
        });

        let from_l1 = match (config.source, posted) {
            (Source::Feed, _) => None,
            (Source::L1, None) => return Err(StartError::NoPostings),
            (Source::L1, Some(l1)) => {
                Some(FromL1::open(Arc::clone(&node), l1, config.member_poll_interval_ms).await?)
            }
        };
        let behind = from_l1.as_ref().map(FromL1::standing);
        base.serve_admin(config.admin_addr, None).await?;
        base.serve_feed(FeedSource::Hub(hub.clone()));
        let reads = ReadApi::new(ReadContext {
            tracker: tracker.clone(),
            parameters,
            executor: executor.clone(),
            hub,
            role: Arc::new(View { counters: counters.clone() }),
        });
        let allowed = READ_METHODS.iter().chain(NODE_ONLY_METHODS).copied();
        let server = ServerConfig { inbound: config.inbound.clone(), ..ServerConfig::new(config.rpc_addr) };
        let rpc_addr =
            base.serve_rpc(server, reads.clone().into_module(), Some(passthrough(client, allowed))).await?;

        let in_sync = channel::Sender::new(false);
        let tasks = base.tasks();
        tasks.guard("chain", tracker.broken());
        tasks.spawn("receipts", reads.tell_receipts(tasks.stop()));
        tasks.spawn("ahead", tracker.clone().run_ahead(tasks.stop()));
        tasks.guard("execution", executor.ended());
        let shown = watch_readiness(
            base.readiness().clone(),
            Arc::clone(&node),
            executor.clone(),
            behind.clone().map_or_else(|| Progress::Feed(in_sync.subscribe()), Progress::L1),
            tasks.stop(),
        );
        tasks.spawn("readiness", shown);
        let comparison = Comparison::new(Arc::clone(&node));
        tasks.spawn("comparison", comparison.run(executor.subscribe(), of_comparison, tasks.stop()));
        // From L1 alone, with nobody to ask: what is not there is waited for.
        if from_l1.is_none() || !config.members.is_empty() {
            let hint_fetcher =
                HintFetcher::new(Arc::clone(&node), &executor, config.hint_deadline_ms, of_fetcher, behind);
            tasks.spawn("hint_fetcher", hint_fetcher.run(tasks.stop()));
        }
        if let Some(WatchDeps { config, l1, reporter }) = watching {
            let (tracker, counters) = (tracker.clone(), counters.clone());
            let deps = WatcherDeps { l1, reporter, tracker, evidence, judge, counters };
            tasks.spawn("watch", Watcher::new(config, deps).run(tasks.stop()));
        }
        if let Some(settlement) = settlement {
            tasks.spawn("settlement", settlement.run(tasks.stop()));
        }
        if let Some(keep) = config.keep_batches {
            let pruning = Pruning { tracker: tracker.clone(), executor: executor.clone(), keep };
            tasks.spawn("pruning", pruning.run(tasks.stop()));
        }
        match from_l1 {
            Some(from_l1) => tasks.spawn("l1", from_l1.run(tasks.stop())),
            None => {
                let follower = Follower::new(node, config.member_poll_interval_ms, in_sync);
                tasks.spawn("follower", follower.run(config.sequencer_urls.feeds(), tasks.stop()));
            }
        };
        Ok(Self { tracker, executor, counters, base, rpc_addr })
    }

    /// The address that JSON-RPC is served at.
    pub fn rpc_addr(&self) -> SocketAddr {
        self.rpc_addr
    }

    /// The chain of headers as this node verified it.
    pub fn tracker(&self) -> &Tracker {
        &self.tracker
    }

    /// The executor of the node's chain.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// What the node counts, for `/metrics` and `blind_getStatus`.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl RunningRole for FullNode {
    fn base(&self) -> &RoleBase {
        &self.base
    }

    /// Stops serving, finishes what is being written, and returns when all tasks have ended.
    async fn shutdown(self) {
        self.base.shutdown(self.executor.stop()).await;
    }
}

/// What the shared reads show of this role.
struct View {
    counters: Counters,
}

impl RoleView for View {
    fn role(&self) -> &'static str {
        ROLE
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        self.counters.by_name()
    }
}

/// Where the node stands with its source.
enum Progress {
    /// Whether it has caught up with the feed.
    Feed(channel::Receiver<bool>),
    /// What keeps it from being caught up with L1.
    L1(channel::Receiver<Option<String>>),
}

impl Progress {
    fn show(&self, readiness: &Readiness) {
        match self {
            Self::Feed(in_sync) if *in_sync.borrow() => readiness.set_ready("sequencer"),
            Self::Feed(_) => readiness.set_not_ready("sequencer", "not caught up with the sequencer"),
            Self::L1(behind) => match &*behind.borrow() {
                None => readiness.set_ready("l1"),
                Some(reason) => readiness.set_not_ready("l1", reason.as_str()),
            },
        }
    }
}

/// Keeps `/readyz` and the gauges up to date.
async fn watch_readiness(
    readiness: Readiness,
    node: Arc<Node>,
    executor: Executor,
    progress: Progress,
    mut stop: channel::Receiver<bool>,
) {
    loop {
        progress.show(&readiness);
        let status = executor.status();
        match status.state {
            ExecutionState::Retrying { reason } | ExecutionState::Halted { reason } => {
                readiness.set_not_ready("execution", reason);
            }
            ExecutionState::Stopped => readiness.set_not_ready("execution", "stopped"),
            _ => readiness.set_ready("execution"),
        }
        node.counters.head.set(node.tracker.head().number);
        node.counters.certified.set(node.tracker.certified().number);
        node.counters.block.set(status.block.map_or(0, |block| block.number));
        node.counters.blocks_taken_back.set(status.taken_back_blocks);
        node.counters.posted.set(status.settled.posted);
        node.counters.safe_block.set(status.safe.map_or(0, |(number, _)| number));
        node.counters.finalized_block.set(status.finalized.map_or(0, |(number, _)| number));
        tokio::select! {
            () = until(&mut stop) => return,
            () = tokio::time::sleep(Duration::from_millis(READINESS_INTERVAL_MS)) => {}
        }
    }
}
