//! Putting the sequencer together: opens the disk, takes up where it stopped, starts the tasks, binds the ports.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
};

use blindfold_bte::Backend;
use blindfold_chain::{
    Executor, ExecutorDeps, ExecutorStatus, HintIntake, L1View, Office, OpenError, ParameterSet, PostedChain,
    ReadApi, ReadContext, RebuildFault, Settlement, SettlementView, Tracker, passthrough,
};
use blindfold_engine::ExecutionClient;
use blindfold_protocol::{
    Address, Canonical, ChainConfig, ConfigFault, Envelope, EnvelopeFault, Epoch, SigningKey,
    limits::MAX_ENVELOPE_BYTES,
    validity::{CheckedEnvelope, Head, check_items},
};
use blindfold_rpc::{
    AdminConfig, Hub, READ_METHODS, Readiness, ServeError, ServerConfig, ServerHandle, admin, serve,
};
use blindfold_runtime::{Agreement, Clock, Failure, Tasks, now, rng};
use blindfold_store::{PendingEnvelope, Store, StoreError};
use blindfold_telemetry::MetricsError;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::{Notify, watch};

use crate::{
    accusations::L1Accusations,
    backlog::Backlog,
    certifier::Certifier,
    config::{ConfigError, SealingConfig, SequencerConfig},
    core::{Arrived, Core, PoolItem},
    gate::Gate,
    introduce::doorkeeper,
    keeper::{CONDITIONS, refusals_route},
    l1_cache::{L1Cache, follow_l1},
    lock::{DataLock, LockError},
    members::Committee,
    mempool::Mempool,
    metrics::SequencerMetrics,
    outputs::L1Outputs,
    poster::L1Poster,
    promises::LatePromises,
    rebuild::Rebuild,
    reservations::Demand,
    rpc::{SequencerRpc, SequencerView},
    sources::SourceLimits,
    verifier::Verifier,
};

/// Name under which the store is bound.
const ROLE: &str = "sequencer";
/// Hint lists that may wait for their verification.
const HINTS_QUEUE_ITEMS: usize = 32;
/// Envelopes of the mempool that are verified together at a restart.
const RESTORE_CHUNK_ITEMS: usize = 256;

/// What a sequencer works with.
pub struct SequencerDeps {
    /// The chain's settings.
    pub chain: Arc<ChainConfig>,
    /// The disk. This sequencer is its only user.
    pub store: Arc<dyn Store>,
    /// Final facts of L1.
    pub l1: Arc<dyn L1View>,
    /// Posts to L1; `None` only if `posting.enabled` is false.
    pub poster: Option<Arc<dyn L1Poster>>,
    /// Answers accusations on L1; with `None` nobody does, and the first costs the bond.
    pub accusations: Option<Arc<dyn L1Accusations>>,
    /// Claims L2 blocks on L1 from the sequencer's account; unused if `outputs.enabled` is false.
    pub outputs: Option<Arc<dyn L1Outputs>>,
    /// Asked before the first header what this sequencer has signed.
    pub committee: Arc<dyn Committee>,
    /// What becomes of posted runs; without it no block is ever safe or finalized.
    pub settlement: Option<Arc<dyn SettlementView>>,
    /// Executes. This sequencer is its only driver.
    pub execution: Arc<dyn ExecutionClient>,
    /// Signs headers and promises.
    pub key: Arc<SigningKey>,
    /// With it, before anything is served, the disk goes back to what L1 holds: the remedy where L1 made or posted another
    /// header in place of one that is certified here. Where there is none it changes nothing.
    pub rebuild: Option<Arc<dyn PostedChain>>,
    /// The committees' public parameters, checked.
    pub parameters: Arc<ParameterSet>,
    /// Opens hints.
    pub backend: Arc<dyn Backend>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
}

/// Why a sequencer does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A setting cannot work.
    #[error("settings: {0}")]
    Config(#[from] ConfigError),
    /// A setting of the chain cannot work.
    #[error("chain settings: {0}")]
    Chain(#[from] ConfigFault),
    /// L1 does not name the key.
    #[error(
        "the signing key is {key}'s, whom L1 does not name on its newest final block; the sequencer is {named} \
         (`blindfold l1 sequencer name` names the next one)"
    )]
    WrongKey {
        /// Address of the key given.
        key: Address,
        /// The sequencer in office.
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
    /// The disk.
    #[error("storage: {0}")]
    Store(#[from] StoreError),
    /// The disk does not go back to what L1 holds.
    #[error("rebuilding from L1: {0}")]
    Rebuild(#[from] RebuildFault),
    /// Something was signed with this key that contradicts the disk.
    #[error("{0}")]
    Recovery(String),
    /// A port.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Our own mistake in naming metrics.
    #[error("metrics: {0}")]
    Metrics(#[from] MetricsError),
}

/// The sequencer.
pub struct Sequencer;

/// A running sequencer. Dropping it ends everything at once, as a kill would.
pub struct SequencerHandle {
    core: Arc<Core>,
    executor: Executor,
    readiness: Readiness,
    tasks: Tasks,
    /// What calls wait for: it ends when they are answered.
    serving: Tasks,
    rpc: Option<ServerHandle>,
    admin: Option<ServerHandle>,
    rpc_addr: SocketAddr,
    admin_addr: SocketAddr,
    lock: Option<DataLock>,
}

impl Sequencer {
    /// Starts a sequencer where its disk says that it stopped. L1 is needed to start, not to go on.
    pub async fn start(config: SequencerConfig, deps: SequencerDeps) -> Result<SequencerHandle, StartError> {
        config.validate()?;
        deps.chain.validate()?;
        let poster =
            if config.posting.enabled { Some(deps.poster.ok_or(StartError::NoPoster)?) } else { None };
        let lock = DataLock::acquire(&config.data_dir)?;
        deps.store.bind(&deps.chain.deployment, ROLE).await?;

        let key = deps.key.address();
        let fork = match &deps.rebuild {
            Some(posted) => {
                let (l1, posted, execution) = (deps.l1.as_ref(), posted.as_ref(), deps.execution.as_ref());
                let (chain, store) = (deps.chain.as_ref(), deps.store.as_ref());
                Some(Rebuild { chain, store, l1, posted, execution, key }.go_back().await?)
            }
            None => None,
        };

        let metrics = Arc::new(SequencerMetrics::new()?);
        metrics.backend_threads.get(&[deps.backend.name()]).set(deps.backend.threads() as u64);
        let failures = metrics.device_failures.clone();
        deps.backend
            .on_device_failure(Box::new(move |operation| failures.get(&[operation.name()]).increment()));
        let overruled = metrics.overruled.clone();
        deps.backend.on_overruled(Box::new(move |check| overruled.get(&[check.name()]).increment()));
        let l1 = Arc::new(L1Cache::new(deps.l1));
        let view: Arc<dyn L1View> = l1.clone();
        let tracker =
            Tracker::open(Arc::clone(&deps.chain), Arc::clone(&deps.store), Arc::clone(&view)).await?;
        if tracker.office(key) == Office::Stranger || !tracker.is_sequencer(key) {
            return Err(StartError::WrongKey { key, named: tracker.sequencer_now() });
        }
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
        let tasks = Tasks::new();
        let serving = tasks.beside();
        let admission = &config.admission;
        let max_l1_age_ms = config.sealing.max_l1_age_ms;
        let core = Arc::new(Core {
            verifier: Verifier::start(
                Arc::clone(&deps.chain),
                admission,
                Arc::clone(&metrics),
                &serving.spawner(),
            ),
            sources: SourceLimits::new(
                admission.source_rate_per_second,
                admission.source_burst,
                admission.max_sources,
            ),
            pool: Mutex::new(Mempool::new(
                config.mempool.clone(),
                promised_room(&config.sealing, &deps.chain),
            )),
            backlog: Backlog::new(admission.max_backlog_bytes),
            late_promises: LatePromises::new(LatePromises::load(deps.store.as_ref()).await?),
            certifier: Certifier::new(&config.peers),
            intake: HintIntake::new(
                tracker.clone(),
                Arc::clone(&deps.parameters),
                Arc::clone(&deps.backend),
                executor.opened(),
            ),
            reopened: AtomicBool::new(false),
            displaced: AtomicBool::new(false),
            restoring: tokio::sync::Mutex::default(),
            executed: executor.watch_status(),
            hints_gate: Gate::new(1, HINTS_QUEUE_ITEMS),
            helpers_gate: Gate::new(1, HINTS_QUEUE_ITEMS),
            strangers_turn: tokio::sync::Mutex::default(),
            hints_turn: tokio::sync::Mutex::default(),
            hub: Hub::default(),
            full: Notify::new(),
            arrived: Arrived::default(),
            recovered: watch::Sender::new(false),
            hindrance: Mutex::default(),
            stop: tasks.stop(),
            spawner: tasks.spawner(),
            config,
            chain: deps.chain,
            tracker,
            store: deps.store,
            key: deps.key,
            l1,
            parameters: deps.parameters,
            agreement: Agreement::new(Arc::clone(&deps.clock), max_l1_age_ms),
            clock: deps.clock,
            metrics,
        });
        core.compare_clocks().await;
        core.restore_mempool().await?;
        // Once before anything is served; where too few answer, again and again until it may seal.
        match core.recover(&deps.committee, poster.as_deref(), now()).await {
            Err(hindrance) if hindrance.is_fatal() => {
                return Err(StartError::Recovery(hindrance.to_string()));
            }
            Err(hindrance) => tracing::warn!(%hindrance, "nothing is sealed yet"),
            Ok(()) => {}
        }
        core.resume_certifying().await?;
        let open = core.open_second().await?;
        let stages = core.stages(&executor.status()).await?;
        core.backlog.restore(core.store.as_ref(), stages, core.tracker.head().number).await?;
        core.show_chain();

        let reads = ReadApi::new(ReadContext {
            tracker: core.tracker.clone(),
            parameters: Arc::clone(&core.parameters),
            executor: executor.clone(),
            hub: core.hub.clone(),
            role: Arc::new(SequencerView(Arc::clone(&core))),
        });
        let methods = SequencerRpc { core: Arc::clone(&core), reads }.into_module();
        let through = passthrough(deps.execution, READ_METHODS.iter().copied());
        let mut server = ServerConfig::new(core.config.rpc_addr);
        server.inbound = core.config.inbound.clone();
        server.doorkeeper = Some(doorkeeper(&core));
        let rpc = serve(server, methods, Some(through)).await?;
        let readiness = Readiness::new(CONDITIONS).of(tasks.spawner());
        let rendered = core.metrics.registry.clone();
        let admin = admin(
            AdminConfig { addr: core.config.admin_addr },
            readiness.clone(),
            move || rendered.render(),
            Some(refusals_route(Arc::clone(&core))),
        )
        .await?;

        tasks.guard("rpc", rpc.ended());
        tasks.guard("admin", admin.ended());
        tasks.guard("chain", core.tracker.broken());
        tasks.guard("execution", executor.ended());
        tasks.spawn("l1", follow_l1(Arc::clone(&core)));
        tasks.spawn("blocks", Arc::clone(&core).relay_blocks(executor.subscribe()));
        let sealer = Arc::clone(&core).recover_and_seal(deps.committee, poster.clone(), open);
        tasks.spawn("sealer", sealer);
        tasks.spawn("keeper", Arc::clone(&core).keep(executor.clone(), readiness.clone()));
        if let Some(settlement) = settlement {
            tasks.spawn("settlement", settlement.run(core.stop.clone()));
        }
        if let Some(poster) = poster {
            tasks.spawn("posting", Arc::clone(&core).post_loop(Arc::clone(&poster)));
            tasks.spawn("data", Arc::clone(&core).supply_loop(poster));
        }
        match deps.accusations {
            Some(l1) => tasks.spawn("accusations", Arc::clone(&core).answer_loop(l1)),
            None => tracing::warn!("there is no posting key: accusations on L1 are not answered from here"),
        }
        if let Some(l1) = deps.outputs.filter(|_| core.config.outputs.enabled) {
            tasks.spawn("outputs", Arc::clone(&core).propose_loop(l1));
        }
        let (rpc_addr, admin_addr) = (rpc.local_addr(), admin.local_addr());
        tracing::info!(%rpc_addr, %admin_addr, head = core.tracker.head().number, "the sequencer runs");
        Ok(SequencerHandle {
            core,
            executor,
            readiness,
            tasks,
            serving,
            rpc: Some(rpc),
            admin: Some(admin),
            rpc_addr,
            admin_addr,
            lock: Some(lock),
        })
    }
}

impl SequencerHandle {
    /// Where JSON-RPC is served.
    pub fn rpc_addr(&self) -> SocketAddr {
        self.rpc_addr
    }

    /// Where health and metrics are served.
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin_addr
    }

    /// The chain of headers, for reading.
    pub fn tracker(&self) -> &Tracker {
        &self.core.tracker
    }

    /// Where execution stands.
    pub fn execution(&self) -> ExecutorStatus {
        self.executor.status()
    }

    /// What must hold before this sequencer is ready.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Waits until a part gives up; the process should end then.
    pub async fn failed(&self) -> Failure {
        self.core.spawner.failed().await
    }

    /// Ends in order: no new envelopes, calls under way are answered, a header under way is finished, then the disk.
    pub async fn shutdown(mut self) {
        self.tasks.begin_shutdown();
        if let Some(rpc) = self.rpc.take() {
            rpc.shutdown().await;
        }
        self.tasks.shutdown().await;
        self.serving.shutdown().await;
        self.executor.stop().await;
        if let Some(admin) = self.admin.take() {
            admin.shutdown().await;
        }
        self.lock.take();
        tracing::info!("the sequencer has stopped");
    }

    /// Ends everything where it stands, as a kill would, and returns when it is gone.
    pub async fn abort(mut self) {
        self.tasks.begin_shutdown();
        self.rpc.take();
        self.admin.take();
        self.tasks.abort().await;
        self.serving.abort().await;
        self.executor.stop().await;
    }
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

impl Core {
    /// Takes the acknowledged envelopes back from the disk, verified anew.
    pub(crate) async fn restore_mempool(self: &Arc<Self>) -> Result<(), StoreError> {
        let pending = self.store.pending_envelopes().await?;
        let late = LatePromises::load(self.store.as_ref()).await?;
        let (mut restored, mut dropped) = (0usize, 0usize);
        let Head { number, generation, .. } = self.tracker.head();
        let of_this = |envelope: &PendingEnvelope| {
            Envelope::decode(&envelope.bytes).is_ok_and(|it| it.header.expiry.generation() == generation)
        };
        let (pending, outdated): (Vec<_>, Vec<_>) = pending.into_iter().partition(of_this);
        let outdated: Vec<_> = outdated.into_iter().map(|envelope| envelope.id).collect();
        for ids in outdated.chunks(RESTORE_CHUNK_ITEMS) {
            self.store.remove_envelopes(ids, EnvelopeFault::WrongGeneration.as_str(), number).await?;
            dropped += ids.len();
        }
        // What is promised goes first: the disk may still hold another envelope of the same fee nonce, which a batch skipped
        // and which would take its place.
        let mut groups: BTreeMap<(bool, u64), Vec<PendingEnvelope>> = BTreeMap::new();
        for mut envelope in pending {
            let seal_by = envelope.seal_by.or_else(|| late.get(&envelope.id).copied());
            // Its header is there without it: nobody was told, or L1 displaced it and excuses that.
            envelope.seal_by = seal_by.filter(|seal_by| *seal_by > number);
            let key = (envelope.seal_by.is_none(), epoch_of(&envelope));
            groups.entry(key).or_default().push(envelope);
        }
        for ((_, epoch), group) in groups {
            let found = self.parameters.by_epoch(epoch);
            let epoch = found
                .or_else(|| self.parameters.all().into_iter().next())
                .map(|entry| Arc::new(entry.epoch().clone()));
            let Some(epoch) = epoch else { continue };
            for chunk in group.chunks(RESTORE_CHUNK_ITEMS) {
                let (core, epoch, of_thread) = (Arc::clone(self), Arc::clone(&epoch), chunk.to_vec());
                let checked = blindfold_runtime::blocking(move || core.check_again(&epoch, &of_thread)).await;
                let checked = checked.map_err(|_| StoreError::Closed)?;
                for (envelope, checked) in chunk.iter().zip(checked) {
                    match checked {
                        Ok(checked) => {
                            let bytes: Arc<[u8]> = envelope.bytes.as_slice().into();
                            let meta =
                                self.meta_of(&checked.envelope, envelope.id, bytes.len(), envelope.seal_by);
                            let item = PoolItem { bytes, checked: Arc::new(checked) };
                            if self.pool.lock().restore(meta, item) {
                                restored += 1;
                                continue;
                            }
                            if let Some(seal_by) = envelope.seal_by {
                                tracing::error!(id = %envelope.id, seal_by, "two promised envelopes have one fee nonce");
                                continue;
                            }
                            let reason = EnvelopeFault::FeeNonceUsed.as_str();
                            self.store.remove_envelopes(&[envelope.id], reason, number).await?;
                            dropped += 1;
                        }
                        Err(reason) => {
                            tracing::error!(id = %envelope.id, reason, "an acknowledged envelope is no longer valid");
                            let number = self.tracker.head().number;
                            self.store.remove_envelopes(&[envelope.id], reason, number).await?;
                            dropped += 1;
                        }
                    }
                }
            }
        }
        if restored + dropped > 0 {
            tracing::info!(restored, dropped, "took the mempool back from disk");
        }
        self.show_pool(&self.pool.lock());
        Ok(())
    }

    fn check_again(
        &self,
        epoch: &Epoch,
        group: &[PendingEnvelope],
    ) -> Vec<Result<CheckedEnvelope, &'static str>> {
        let items: Vec<&[u8]> = group.iter().map(|envelope| envelope.bytes.as_slice()).collect();
        let checked = check_items(&self.chain, epoch, &items, &mut rng());
        checked.into_iter().map(|item| item.map_err(|rejected| rejected.fault.as_str())).collect()
    }
}

fn epoch_of(envelope: &PendingEnvelope) -> u64 {
    Envelope::decode(&envelope.bytes).map(|envelope| envelope.header.epoch).unwrap_or_default()
}
