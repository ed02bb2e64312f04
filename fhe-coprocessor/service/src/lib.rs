//! The coprocessor role: executes confidential transactions in the order that the sequencer committed to blindly.
//!
//! - follows a full node (or the sequencer), verifies every header, certificate and hint itself, and opens messages by
//!   re-encryption: no trust in that node ([`blindfold_chain`]);
//! - takes the bundle items of kind 1 in committed order and executes them on a [`Machine`];
//! - what a batch changed is durable, in one step, before anybody can read it; after `kill -9` it goes on from there;
//! - serves `confidential_*`: accounts with their proofs, transactions, state roots; and, for whoever asks, totals of
//!   invoices from ciphertexts that he brings.
//!
//! What is executed is a function of certified batches alone, so every coprocessor of a deployment has the same state.

mod api;
mod config;
mod counters;
mod follow;
mod invoices;
mod items;
mod ledger;
pub mod limits;
mod machine;
mod runner;
mod stored;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use blindfold_bte::Backend;
use blindfold_chain::{
    HintIntake, L1Reader, L1Rounds, OpenError, OpenedBatches, Opener, ParameterSet, Settled, Settlement,
    TakesMarks, Tracker,
};
use blindfold_protocol::ChainConfig;
use blindfold_rlwe::schemes::invoice::InvoiceError;
use blindfold_rpc::confidential::{ConfidentialApiServer, ConfidentialParameters};
use blindfold_rpc::limits::MAX_CONFIDENTIAL_REQUEST_BYTES;
use blindfold_rpc::{
    ClientBuildError, ClientConfig, Readiness, RoleBase, RunningRole, ServeError, ServerConfig, http_client,
};
use blindfold_runtime::until;
use blindfold_store::{ConfidentialHead, ConfidentialStore, Store, StoreError};
use blindfold_telemetry::{Metrics, MetricsError};
use tokio::sync::watch;

pub use api::{AccountView, Receipt};
pub use config::{ConfigError, CoprocessorConfig};
pub use counters::Counters;
pub use ledger::{Ledger, LedgerError, LedgerView};
pub use machine::{CommittedItem, Execution, Machine, Outcome, Roots};
pub use runner::{ExecutionError, ExecutionState, ExecutionStatus};

use api::ReadApi;
use follow::Follower;
use invoices::InvoiceDesk;
use limits::READINESS_INTERVAL_MS;
pub use runner::batch_record;
use runner::{Pruning, Reported, Runner};

/// The name of the role: in metrics and on its disk.
pub const ROLE: &str = "coprocessor";

/// What a coprocessor works with; the binary opens it.
pub struct CoprocessorDeps {
    /// The chain's settings, checked.
    pub chain: Arc<ChainConfig>,
    /// The coprocessor's own disk: the chain of headers.
    pub store: Arc<dyn Store>,
    /// The coprocessor's own disk: its state.
    pub state: Arc<dyn ConfidentialStore>,
    /// Its own view of L1.
    pub l1: Arc<dyn L1Reader>,
    /// What becomes of batches on L1; without it nothing is told to be safe or final.
    pub settlement: Option<Arc<dyn L1Reader>>,
    /// The committees' public parameters, checked.
    pub parameters: Arc<ParameterSet>,
    /// Checks hints by encrypting again.
    pub backend: Arc<dyn Backend>,
    /// Executes. It stands where `state` ends.
    pub machine: Box<dyn Machine>,
    /// Shows its accounts to callers.
    pub view: Arc<dyn AccountView>,
    /// What is told of the deployment.
    pub deployment: ConfidentialParameters,
}

/// Why a coprocessor did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting that cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
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
    /// The numbers of invoices; a mistake of this program.
    #[error(transparent)]
    Invoices(#[from] InvoiceError),
}

/// A running coprocessor. Stop it with [`RunningRole::shutdown`]; dropping it stops it, too, without waiting.
pub struct Coprocessor {
    tracker: Tracker,
    counters: Counters,
    status: watch::Receiver<ExecutionStatus>,
    base: RoleBase,
    rpc_addr: SocketAddr,
}

impl Coprocessor {
    /// Opens the chain on disk, stores the genesis on an empty one, and starts all tasks. The node that is followed need
    /// not be there; L1 does, for the epochs.
    pub async fn start(config: CoprocessorConfig, deps: CoprocessorDeps) -> Result<Self, StartError> {
        config.validate()?;
        let metrics = Metrics::new(ROLE, env!("CARGO_PKG_VERSION"))?;
        let counters = Counters::new(&metrics)?;
        let overruled = counters.overruled.clone();
        deps.backend.on_overruled(Box::new(move |check| overruled.get(&[check.name()]).increment()));
        let node = http_client(&config.node_url, &ClientConfig::default())?;
        deps.store.bind(&deps.chain.deployment, ROLE).await?;
        deps.store.count_in(&metrics);
        let head = opened_state(deps.state.as_ref(), deps.machine.as_ref()).await?;
        let tracker = Tracker::open(deps.chain, Arc::clone(&deps.store), Arc::clone(&deps.l1)).await?;
        let (reports, reported) = watch::channel(Reported::default());
        let (marks, of_marks) = watch::channel(Settled::default());
        let settlement = match deps.settlement {
            Some(l1) => Some(Settlement::open(tracker.clone(), Marks(reports), l1).await?),
            None => None,
        };
        let mut base = RoleBase::new(metrics, &["node", "execution"]);
        let (in_sync, synced) = watch::channel(false);
        let (status, of_status) = watch::channel(ExecutionStatus { head, state: ExecutionState::Waiting });

        let opened = Arc::new(OpenedBatches::default());
        let (parameters, backend) = (deps.parameters, deps.backend);
        let opener = Opener::new(
            Arc::clone(&deps.store),
            Arc::clone(&parameters),
            Arc::clone(&backend),
            Arc::clone(&opened),
        );
        let runner = Runner {
            tracker: tracker.clone(),
            opener,
            l1: deps.l1,
            store: Arc::clone(&deps.state),
            machine: Some(deps.machine),
            counters: counters.clone(),
            kept_versions: config.kept_versions,
            status,
            stopped: base.tasks().stop(),
            reported,
            marks,
            void_runs: Vec::new(),
            pruning: Pruning::default(),
        };
        let follower = Follower {
            tracker: tracker.clone(),
            intake: HintIntake::new(tracker.clone(), parameters, backend, opened),
            node,
            counters: counters.clone(),
            poll_interval: Duration::from_millis(config.poll_interval_ms),
            in_sync,
            status: of_status.clone(),
            l1_rounds: L1Rounds::new(tracker.clone()),
        };

        base.serve_admin(config.admin_addr, None).await?;
        let reads = ReadApi {
            store: deps.state,
            tracker: tracker.clone(),
            status: of_status.clone(),
            marks: of_marks,
            counters: counters.clone(),
            invoices: InvoiceDesk::new(deps.deployment.seed, counters.clone())?,
            parameters: Arc::new(deps.deployment),
            view: deps.view,
        };
        let mut server = ServerConfig::new(config.rpc_addr);
        server.inbound = config.inbound.clone();
        server.max_request_bytes = MAX_CONFIDENTIAL_REQUEST_BYTES;
        let rpc_addr = base.serve_rpc(server, reads.into_rpc(), None).await?;

        let tasks = base.tasks();
        tasks.guard("chain", tracker.broken());
        tasks.spawn("ahead", tracker.clone().run_ahead(tasks.stop()));
        tasks.spawn("execution", runner.run());
        if let Some(settlement) = settlement {
            tasks.spawn("settlement", settlement.run(tasks.stop()));
        }
        tasks.spawn("follower", follower.run(config.feed_url(), tasks.stop()));
        let watched = Watched {
            readiness: base.readiness().clone(),
            synced,
            status: of_status.clone(),
            counters: counters.clone(),
        };
        tasks.spawn("readiness", watched.run(tracker.clone(), tasks.stop()));
        Ok(Self { tracker, counters, status: of_status, base, rpc_addr })
    }

    /// The address that JSON-RPC is served at.
    pub fn rpc_addr(&self) -> SocketAddr {
        self.rpc_addr
    }

    /// The chain of headers as it was verified here.
    pub fn tracker(&self) -> &Tracker {
        &self.tracker
    }

    /// What the coprocessor counts, for `/metrics` and its status.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How far execution is, and every change of it.
    pub fn watch_status(&self) -> watch::Receiver<ExecutionStatus> {
        self.status.clone()
    }
}

impl RunningRole for Coprocessor {
    fn base(&self) -> &RoleBase {
        &self.base
    }

    /// Stops serving, finishes what is being written, and returns when all tasks have ended.
    async fn shutdown(self) {
        self.base.shutdown(async {}).await;
    }
}

/// Hands how far the chain stands on L1 to whoever executes. Nobody else is told before what is executed was compared with
/// what is void: a run that L1 declared void is final, too.
struct Marks(watch::Sender<Reported>);

impl TakesMarks for Marks {
    fn settle(&self, marks: Settled, l1_block: u64) {
        self.0.send_if_modified(|before| {
            let changed = before.marks != marks;
            if changed {
                *before = Reported { marks, l1_block };
            }
            changed
        });
    }
}

/// Where the stored state ends; on an empty disk the genesis, which is stored.
async fn opened_state(
    store: &dyn ConfidentialStore,
    machine: &dyn Machine,
) -> Result<ConfidentialHead, StoreError> {
    if let Some(head) = store.confidential_head().await? {
        return Ok(head);
    }
    let genesis = batch_record((0, B256::ZERO), 0, Vec::new(), machine.genesis());
    let head = genesis.head;
    store.put_confidential_batch(genesis.into()).await?;
    Ok(head)
}

/// What `/readyz` and the gauges show.
struct Watched {
    readiness: Readiness,
    synced: watch::Receiver<bool>,
    status: watch::Receiver<ExecutionStatus>,
    counters: Counters,
}

impl Watched {
    /// Keeps them up to date.
    async fn run(self, tracker: Tracker, mut stop: watch::Receiver<bool>) {
        loop {
            self.show(&tracker);
            tokio::select! {
                () = until(&mut stop) => return,
                () = tokio::time::sleep(Duration::from_millis(READINESS_INTERVAL_MS)) => {}
            }
        }
    }

    fn show(&self, tracker: &Tracker) {
        if *self.synced.borrow() {
            self.readiness.set_ready("node");
        } else {
            self.readiness.set_not_ready("node", "not caught up with the node");
        }
        let status = self.status.borrow().clone();
        match status.state {
            ExecutionState::Retrying(reason) | ExecutionState::Halted(reason) => {
                self.readiness.set_not_ready("execution", reason);
            }
            ExecutionState::Stopped => self.readiness.set_not_ready("execution", "stopped"),
            ExecutionState::Waiting | ExecutionState::WaitingForHints(_) | ExecutionState::Executing => {
                self.readiness.set_ready("execution");
            }
        }
        self.counters.certified.set(tracker.certified().number);
        self.counters.batch.set(status.head.number);
        self.counters.version.set(status.head.version);
        self.counters.accounts.set(u64::from(status.head.accounts));
    }
}
