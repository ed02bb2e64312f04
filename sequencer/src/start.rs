//! Putting the sequencer together: opens the disk, takes up where it stopped, starts the tasks, binds the ports.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
};

use blindfold_bte::Backend;
use blindfold_chain::{
    Executor, ExecutorDeps, ExecutorStatus, HeaderSigner, HintIntake, L1Reader, L1Submitter, Office,
    OpenError, ParameterSet, ReadApi, ReadContext, RebuildError, SealingError, Settlement, SignerError,
    Tracker, TrackerError, Verifier, passthrough,
};
use blindfold_engine::ExecutionClient;
use blindfold_protocol::{Address, ChainConfig, ChainConfigError, limits::MAX_ENVELOPE_BYTES};
use blindfold_rpc::{
    FeedSource, Hub, READ_METHODS, RoleBase, RunningRole, ServeError, ServerConfig, SourceLimits,
};
use blindfold_runtime::{Agreement, Clock, now};
use blindfold_store::{Store, StoreError};
use blindfold_telemetry::MetricsError;
use thiserror::Error;

use crate::{
    accusations::Answerer,
    admission::Admission,
    attestations::Readers,
    backlog::Backlog,
    candidate::Predecessor,
    certifier::Certifier,
    config::{ConfigError, SealingConfig, SequencerConfig},
    context::Context,
    displaced::Displaced,
    hints::HintReceiver,
    housekeeping::{CONDITIONS, Housekeeping, refusals_route, relay_blocks, stages},
    introduce::doorkeeper,
    l1_cache::L1Cache,
    l1_follower::L1Follower,
    lock::{DataLock, LockError},
    members::Committee,
    metrics::SequencerMetrics,
    outputs::Proposer,
    pool::Pool,
    poster::Poster,
    promises::LatePromises,
    queue::{MIN_QUEUE_GROUPS, Queue},
    rebuild::Rebuild,
    recover::{Recovered, Recovery},
    reservations::Demand,
    rpc::{Forwards, SequencerRpc, SequencerView},
    sealer::{Sealer, open_block},
    supplier::Supplier,
    watched_signer::watched,
};

/// Name under which the store is bound, beside the deployment.
pub const ROLE: &str = "sequencer";

/// What a sequencer works with.
pub struct SequencerDeps {
    /// The chain's settings, the same for every party.
    pub chain: Arc<ChainConfig>,
    /// The disk. This sequencer is its only user.
    pub store: Arc<dyn Store>,
    /// What L1 says: what is final, and its newest block.
    pub l1: Arc<dyn L1Reader>,
    /// Posts to L1; `None` only if `posting.enabled` is false.
    pub poster: Option<Arc<dyn L1Submitter>>,
    /// Answers accusations on L1; with `None` nobody does, and the first costs the bond.
    pub accusations: Option<Arc<dyn L1Submitter>>,
    /// Claims L2 blocks on L1 from the sequencer's account; unused if `outputs.enabled` is false.
    pub outputs: Option<Arc<dyn L1Submitter>>,
    /// Asked before the first header what this sequencer has signed.
    pub committee: Arc<dyn Committee>,
    /// What becomes of posted runs; without it no block is ever safe or finalized.
    pub settlement: Option<Arc<dyn L1Reader>>,
    /// Executes. This sequencer is its only driver.
    pub execution: Arc<dyn ExecutionClient>,
    /// Signs headers and promises.
    pub signer: Arc<dyn HeaderSigner>,
    /// With it, before anything is served, the disk goes back to what L1 holds: the remedy where L1 made or posted another
    /// header in place of one that is certified here. Where there is none it changes nothing.
    pub rebuild: Option<Arc<dyn L1Reader>>,
    /// The committees' public parameters, checked.
    pub parameters: Arc<ParameterSet>,
    /// Checks hints by encrypting again.
    pub backend: Arc<dyn Backend>,
    /// The clock that headers are stamped by.
    pub clock: Arc<dyn Clock>,
}

/// Why a sequencer does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A setting that cannot work.
    #[error("settings: {0}")]
    Config(#[from] ConfigError),
    /// A setting of the chain cannot work.
    #[error("chain settings: {0}")]
    Chain(#[from] ChainConfigError),
    /// L1 does not name the key.
    #[error(
        "the signing key is {key}'s, whom L1 does not name on its newest final block; the sequencer is {named} \
         (`blindfold l1 sequencer name` names the next one)"
    )]
    WrongKey {
        /// Address of the key given.
        key: Address,
        /// Address of the key that counts.
        named: Address,
    },
    /// Posting is switched on, but nothing posts.
    #[error("posting is enabled, but there is no way to post to L1")]
    NoPoster,
    /// Another process has the folder.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The chain on disk cannot be opened.
    #[error("cannot open the chain: {0}")]
    Open(#[from] OpenError),
    /// The disk failed, or holds damaged records.
    #[error("storage: {0}")]
    Store(#[from] StoreError),
    /// The disk does not go back to what L1 holds.
    #[error("rebuilding from L1: {0}")]
    Rebuild(Box<RebuildError>),
    /// Something was signed with this key that contradicts the disk.
    #[error("{0}")]
    Recovery(String),
    /// The newest header is stored and cannot be signed.
    #[error("the newest header: {0}")]
    Signer(#[from] SealingError),
    /// A port cannot be listened on.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Our own mistake in naming metrics.
    #[error("metrics: {0}")]
    Metrics(#[from] MetricsError),
}

impl StartError {
    /// Whether the same may work later, with the same settings.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Store(error) | Self::Open(OpenError::Store(error)) => error.retry(),
            Self::Signer(SealingError::Store(error)) => error.retry(),
            Self::Open(OpenError::L1(_)) | Self::Signer(SealingError::L1(_)) => true,
            Self::Signer(SealingError::Signer(SignerError::Unavailable(_))) => true,
            _ => false,
        }
    }
}

impl From<RebuildError> for StartError {
    fn from(error: RebuildError) -> Self {
        Self::Rebuild(Box::new(error))
    }
}

/// The role: [`start`](Self::start) gives a running one.
pub struct Sequencer;

/// A running sequencer. Dropping it ends everything at once, as a kill would.
pub struct SequencerHandle {
    cx: Arc<Context>,
    executor: Executor,
    base: RoleBase,
    rpc_addr: SocketAddr,
    lock: DataLock,
}

impl Sequencer {
    /// Starts a sequencer where its disk says that it stopped. L1 is needed to start, not to go on.
    pub async fn start(config: SequencerConfig, deps: SequencerDeps) -> Result<SequencerHandle, StartError> {
        Self::start_after(config, deps, None).await
    }

    /// The same in place of what was served while this process stood by.
    pub(crate) async fn start_after(
        config: SequencerConfig,
        deps: SequencerDeps,
        predecessor: Option<Predecessor>,
    ) -> Result<SequencerHandle, StartError> {
        config.validate()?;
        deps.chain.validate()?;
        let poster =
            if config.posting.enabled { Some(deps.poster.ok_or(StartError::NoPoster)?) } else { None };
        let lock = DataLock::acquire(&config.data_dir)?;
        deps.store.bind(&deps.chain.deployment, ROLE).await?;

        let key = deps.signer.address();
        let fork = match &deps.rebuild {
            Some(posted) => {
                let (l1, posted, execution) = (deps.l1.as_ref(), posted.as_ref(), deps.execution.as_ref());
                let (chain, store) = (deps.chain.as_ref(), deps.store.as_ref());
                Some(Rebuild { chain, store, l1, posted, execution, key }.go_back().await?)
            }
            None => None,
        };

        let metrics = Arc::new(SequencerMetrics::new()?);
        deps.store.count_in(&metrics.registry);
        metrics.backend_threads.get(&[deps.backend.name()]).set(deps.backend.threads() as u64);
        let failures = metrics.device_failures.clone();
        deps.backend
            .on_device_failure(Box::new(move |operation| failures.get(&[operation.name()]).increment()));
        let overruled = metrics.overruled.clone();
        deps.backend.on_overruled(Box::new(move |check| overruled.get(&[check.name()]).increment()));
        let signer = watched(deps.signer, &metrics);
        let l1 = Arc::new(L1Cache::new(deps.l1));
        let view: Arc<dyn L1Reader> = l1.clone();
        let tracker =
            Tracker::open(Arc::clone(&deps.chain), Arc::clone(&deps.store), Arc::clone(&view)).await?;
        if tracker.office(key) == Office::Stranger || !tracker.is_sequencer(key) {
            return Err(StartError::WrongKey { key, named: tracker.sequencer_now() });
        }
        if fork.is_none()
            && let Err(refusal) = tracker.follow_l1().await
        {
            // Asked again below. The newest header may be one that gave way to L1's.
            tracing::debug!(%refusal, "L1 does not tell what it made");
        }
        sign_or_give_up_newest(&tracker, signer.as_ref()).await?;
        if let (Some(posted), Some(fork)) = (&deps.rebuild, &fork) {
            fork.take_posted(&tracker, posted.as_ref(), Some(key), async |_| {}).await?;
            let (head, certified) = (tracker.head().number, tracker.certified().number);
            tracing::info!(head, certified, "the chain here is that of L1 as far as L1 has one");
        }
        // What L1 made first: an origin is offered to headers only with everything up to it.
        match tracker.follow_l1().await {
            Ok(_) => {
                let head = tracker.head();
                if let Err(fault) = l1.refresh(head.l1_origin, head.forced_cursor).await {
                    tracing::warn!(%fault, "L1 does not tell its final block; sealing begins when it does");
                }
            }
            Err(refusal) => {
                tracing::warn!(%refusal, "what L1 made is not here yet; sealing begins when it is")
            }
        }
        let executor = Executor::start(ExecutorDeps {
            tracker: tracker.clone(),
            parameters: Arc::clone(&deps.parameters),
            backend: Arc::clone(&deps.backend),
            client: Arc::clone(&deps.execution),
            l1: view,
        })
        .await?;
        let settlement = match deps.settlement {
            Some(l1) => Some(Settlement::open(tracker.clone(), executor.clone(), l1).await?),
            None => None,
        };
        let mut base = RoleBase::new(metrics.registry.clone(), CONDITIONS);
        let max_l1_age_ms = config.sealing.max_l1_age_ms;
        let agreement = Arc::new(Agreement::new(Arc::clone(&deps.clock), max_l1_age_ms));
        let cx = Arc::new(Context {
            config,
            chain: deps.chain,
            tracker,
            store: deps.store,
            signer,
            clock: deps.clock,
            hub: Hub::default(),
            metrics,
            stop: base.tasks().stop(),
            spawner: base.tasks().spawner(),
        });
        let pool = Arc::new(Pool::new(Arc::clone(&cx), promised_room(&cx.config.sealing, &cx.chain)));
        let group_items = cx.config.admission.proof_batch_items as u64;
        let queue = Queue::new(cx.config.admission.max_wait_ms, MIN_QUEUE_GROUPS * group_items);
        let certifier = Arc::new(Certifier::new(Arc::clone(&cx), Arc::clone(&queue)));
        let backlog = Arc::new(Backlog::new(cx.config.admission.max_backlog_bytes));
        let recovered = Arc::new(Recovered::default());
        let displaced = Arc::new(Displaced::new(
            Arc::clone(&cx),
            Arc::clone(&deps.parameters),
            Arc::clone(&pool),
            Arc::clone(&certifier),
            Arc::clone(&backlog),
        ));
        let follower = Arc::new(L1Follower {
            cx: Arc::clone(&cx),
            l1: Arc::clone(&l1),
            agreement: Arc::clone(&agreement),
            displaced: Arc::clone(&displaced),
        });
        let recovery = Recovery {
            cx: Arc::clone(&cx),
            pool: Arc::clone(&pool),
            certifier: Arc::clone(&certifier),
            backlog: Arc::clone(&backlog),
            displaced: Arc::clone(&displaced),
            l1: Arc::clone(&follower),
            recovered: Arc::clone(&recovered),
            committee: Arc::clone(&deps.committee),
            poster: poster.clone(),
            adopted: AtomicBool::new(false),
        };
        follower.compare_clocks().await;
        displaced.restore_mempool().await?;
        // Once before anything is served; where too few answer, again and again until it may seal.
        match recovery.recover(now()).await {
            Err(error) if error.is_fatal() => {
                return Err(StartError::Recovery(error.to_string()));
            }
            Err(error) => tracing::warn!(%error, "nothing is sealed yet"),
            Ok(()) => {}
        }
        certifier.resume_certifying().await?;
        let open = open_block(&cx).await?;
        let stages = stages(&cx, &executor.status()).await?;
        backlog.restore(cx.store.as_ref(), stages, cx.tracker.head().number).await?;
        cx.show_chain();

        let limits = &cx.config.admission;
        let group_items = cx.metrics.proof_group_items.clone();
        let admission = Admission {
            cx: Arc::clone(&cx),
            pool: Arc::clone(&pool),
            backlog: Arc::clone(&backlog),
            queue: Arc::clone(&queue),
            l1: Arc::clone(&l1),
            parameters: Arc::clone(&deps.parameters),
            recovered: Arc::clone(&recovered),
            sources: SourceLimits::new(
                limits.source_rate_per_second,
                limits.source_burst,
                limits.max_sources,
            ),
            verifier: Verifier::start(
                Arc::clone(&cx.chain),
                limits.verifier(),
                move |items| group_items.observe(items as f64),
                &base.serving().spawner(),
            ),
            late_promises: LatePromises::new(LatePromises::load(cx.store.as_ref()).await?),
        };
        let (parameters, backend) = (Arc::clone(&deps.parameters), Arc::clone(&deps.backend));
        let intake = HintIntake::new(cx.tracker.clone(), parameters, backend, executor.opened());
        let view =
            SequencerView { cx: Arc::clone(&cx), pool: Arc::clone(&pool), certifier: Arc::clone(&certifier) };
        let reads = ReadApi::new(ReadContext {
            tracker: cx.tracker.clone(),
            parameters: deps.parameters,
            executor: executor.clone(),
            hub: cx.hub.clone(),
            role: Arc::new(view),
        });
        // Ends before the calls that wait for it: they are told so.
        base.tasks().spawn("receipts", reads.clone().tell_receipts(base.tasks().stop()));
        let methods = SequencerRpc {
            cx: Arc::clone(&cx),
            admission: Arc::new(admission),
            certifier: Arc::clone(&certifier),
            hints: Arc::new(HintReceiver::new(Arc::clone(&cx), intake)),
            reads,
            forwards: Arc::new(Forwards::new(&cx.config.gateways, cx.config.admission.proof_queue_items)),
        };
        let through = passthrough(deps.execution, READ_METHODS.iter().copied());
        let mut server = ServerConfig::new(cx.config.rpc_addr);
        server.inbound = cx.config.inbound.clone();
        let (doorkeeper, methods) = (doorkeeper(&cx), methods.into_module());
        server.doorkeeper = Some(doorkeeper.clone());
        let mut routes = refusals_route(Arc::clone(&certifier));
        cx.metrics.leads.set(1);
        if let Some(Predecessor { base, hand_over, term }) = predecessor {
            cx.metrics.term.set(term);
            routes = routes.merge(hand_over.route());
            // Its ports are free when it is gone.
            base.vacate().await;
        }
        base.serve_feed(FeedSource::Hub(cx.hub.clone()));
        base.serve_peers(cx.config.peer_listener.as_ref(), Some(doorkeeper), methods.clone()).await?;
        let rpc_addr = base.serve_rpc(server, methods, Some(through)).await?;
        base.serve_admin(cx.config.admin_addr, Some(routes)).await?;

        let of_housekeeping = Arc::clone(&pool);
        let sealer = Sealer {
            cx: Arc::clone(&cx),
            pool,
            l1: Arc::clone(&l1),
            agreement: Arc::clone(&agreement),
            certifier: Arc::clone(&certifier),
            backlog: Arc::clone(&backlog),
            queue,
            displaced,
            recovered: Arc::clone(&recovered),
            executed: executor.watch_status(),
        };
        let housekeeping = Housekeeping {
            cx: Arc::clone(&cx),
            l1,
            agreement,
            certifier,
            pool: of_housekeeping,
            backlog,
            recovered,
            executor: executor.clone(),
            readiness: base.readiness().clone(),
        };
        let tasks = base.tasks();
        tasks.guard("chain", cx.tracker.broken());
        tasks.guard("execution", executor.ended());
        tasks.spawn("l1", follower.follow());
        tasks.spawn("blocks", relay_blocks(Arc::clone(&cx), executor.subscribe()));
        tasks.spawn("sealer", recovery.recover_and_seal(sealer, open));
        tasks.spawn("housekeeping", housekeeping.run());
        let knows_safe = settlement.is_some();
        if let Some(settlement) = settlement {
            tasks.spawn("settlement", settlement.run(cx.stop.clone()));
        }
        if let Some(l1) = poster {
            tasks.spawn("posting", Poster::new(Arc::clone(&cx), Arc::clone(&l1)).run());
            let readers = Readers::new(Arc::clone(&cx), deps.committee);
            tasks.spawn("data", Supplier::new(Arc::clone(&cx), l1, readers).run());
        }
        match deps.accusations {
            Some(l1) => tasks.spawn("accusations", Answerer { cx: Arc::clone(&cx), l1 }.run()),
            None => tracing::warn!("there is no posting key: accusations on L1 are not answered from here"),
        }
        if let Some(l1) = deps.outputs.filter(|_| cx.config.outputs.enabled) {
            let executed = executor.watch_status();
            tasks.spawn("outputs", Proposer { cx: Arc::clone(&cx), l1, executed, knows_safe }.run());
        }
        tracing::info!(%rpc_addr, head = cx.tracker.head().number, "the sequencer runs");
        Ok(SequencerHandle { cx, executor, base, rpc_addr, lock })
    }
}

impl SequencerHandle {
    /// The address that JSON-RPC is served at.
    pub fn rpc_addr(&self) -> SocketAddr {
        self.rpc_addr
    }

    /// The chain of headers, for reading.
    pub fn tracker(&self) -> &Tracker {
        &self.cx.tracker
    }

    /// How far execution is.
    pub fn execution(&self) -> ExecutorStatus {
        self.executor.status()
    }

    /// Ends everything where it stands, as a kill would, and returns when it is gone.
    pub async fn abort(self) {
        self.base.abort().await;
        self.executor.stop().await;
    }

    /// The same, and returns when its ports are free.
    pub(crate) async fn vacate(self) {
        self.base.vacate().await;
        self.executor.stop().await;
    }
}

impl RunningRole for SequencerHandle {
    fn base(&self) -> &RoleBase {
        &self.base
    }

    /// No new envelopes, calls under way are answered, a header under way is finished, then the disk.
    async fn shutdown(self) {
        let Self { base, executor, lock, .. } = self;
        base.shutdown(async {
            executor.stop().await;
            drop(lock);
        })
        .await;
    }
}

/// Has the newest header signed if it is not, or takes it back if it never will be: another one was signed for its number, or
/// its origin is another key's. Nobody has seen it. Its number stays taken: nothing is sealed before L1, or members, have a
/// header for it.
async fn sign_or_give_up_newest(tracker: &Tracker, signer: &dyn HeaderSigner) -> Result<(), StartError> {
    let never = match tracker.sign_newest(signer).await {
        Err(never @ (SealingError::Signer(SignerError::SecondHeader(_)) | SealingError::NotOurs { .. })) => {
            never
        }
        signed => return Ok(signed?),
    };
    let newest = tracker.head();
    let (number, hash) = (newest.number, newest.hash);
    tracing::error!(
        number, %hash, %never,
        "the newest header is stored and never signed: taking it back; nothing is sealed before L1, or members, have one of \
         that number"
    );
    tracker.give_up_from(number).await.map_err(|fault| match fault {
        TrackerError::Store(fault) => StartError::Store(fault),
        fault => StartError::Recovery(fault.to_string()),
    })
}

/// Half of what a header can hold may be promised: the other half is for what L1 forces and for who pays more.
fn promised_room(sealing: &SealingConfig, chain: &ChainConfig) -> Demand {
    let bytes = u64::from(sealing.max_batch_bytes) / 2;
    Demand {
        // At least any one envelope.
        bytes: bytes.max(MAX_ENVELOPE_BYTES as u64),
        gas: chain.second_gas_limit() / 2,
        items: (sealing.max_batch_items / 2).max(1),
    }
}
