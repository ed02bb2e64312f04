//! One of several sequencers on one store: it stands by, and leads while it has the lease.
//!
//! ```text
//! stands by ──lease taken──▶ recovers ──▶ leads ──lease lost, or handed over──▶ stands by
//! ```
//! Who stands by gives its execution client what the leader executed, refuses every call with `standing_by`, and tries to
//! take the store. Who takes it starts as after a kill: from the records, L1 and the committee. That nothing is signed twice
//! does not rest on the lease, but on the store, which takes no more writes of whoever lost it, and on the signer.

use std::{fmt, io::ErrorKind, pin::Pin, sync::Arc, time::Duration};

use axum::{
    Router,
    http::{HeaderMap, StatusCode, header},
    routing::post,
};
use blindfold_chain::warm_up;
use blindfold_engine::ExecutionClient;
use blindfold_rpc::{FeedSource, RoleBase, RunningRole, ServeError, ServerConfig, standing_by};
use blindfold_runtime::{Backoff, Spawner, Stop, until};
use blindfold_store::{Attempt, Leader, SqlStore, Standby, Store, StoreError};
use blindfold_telemetry::Metrics;
use futures::future::OptionFuture;
use tokio::{
    sync::{Notify, watch},
    time::{MissedTickBehavior, interval, sleep},
};

use crate::{
    SequencerConfig,
    lock::DataLock,
    metrics::StandbyMetrics,
    start::{Sequencer, SequencerDeps, SequencerHandle, StartError},
};

/// How often an execution client is given what it lacks, in milliseconds.
const WARM_INTERVAL_MS: u64 = 500;
/// The first pause after the store could not be asked, and the longest one, in milliseconds.
const STORE_RETRY_MS: (u64, u64) = (100, 2_000);
/// How long whoever handed over leaves the store to others, in milliseconds.
const HANDED_OVER_MS: u64 = 2_000;
/// How often a port that is not free yet is tried, the first pause and the longest one, in milliseconds.
const PORT_ATTEMPTS: usize = 30;
const PORT_RETRY_MS: (u64, u64) = (10, 200);
/// Renewals in the time of a lease, where nothing else is written, and looks whether one is due.
const RENEWALS: u32 = 3;
const LOOKS: u32 = 12;
/// What must hold before one that stands by could lead.
const CONDITIONS: &[&str] = &["store", "execution"];

/// Why there is nothing to lead with.
pub type PrepareError = Box<dyn std::error::Error + Send + Sync>;

/// Makes what a sequencer works with on a store that was just taken.
pub type Prepare = Box<
    dyn Fn(Arc<SqlStore>) -> Pin<Box<dyn Future<Output = Result<SequencerDeps, PrepareError>> + Send>>
        + Send
        + Sync,
>;

/// What a candidate works with.
pub struct CandidateDeps {
    /// The store, to be taken.
    pub standby: Standby,
    /// The execution client, which only this process drives.
    pub execution: Arc<dyn ExecutionClient>,
    /// What the sequencer works with while it leads.
    pub prepare: Prepare,
}

/// Where a candidate stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CandidateState {
    /// Another one leads, or nobody does yet.
    StandsBy(Leader),
    /// It took the store, and finds out what was signed before.
    Recovers {
        /// How often the store was taken.
        term: u64,
    },
    /// It seals.
    Leads {
        /// How often the store was taken.
        term: u64,
    },
}

/// Asks a sequencer that leads to hand over.
#[derive(Clone, Default)]
pub(crate) struct HandOver(Arc<Notify>);

impl HandOver {
    /// `POST /hand-over` of the admin server.
    pub(crate) fn route(&self) -> Router {
        let asked = Arc::clone(&self.0);
        let ask = move |headers: HeaderMap| async move {
            // A page in a browser of this machine reaches the port, too, and cannot leave its origin out.
            if headers.contains_key(header::ORIGIN) {
                return (StatusCode::FORBIDDEN, "not from a page\n");
            }
            asked.notify_one();
            (StatusCode::ACCEPTED, "handing over\n")
        };
        Router::new().route("/hand-over", post(ask))
    }
}

/// What the server of one that stands by becomes part of: it goes on until its successor listens.
pub(crate) struct Predecessor {
    pub(crate) base: RoleBase,
    pub(crate) hand_over: HandOver,
    pub(crate) term: u64,
}

/// A running candidate. Dropping it ends everything at once, as a kill would.
pub struct CandidateHandle {
    base: RoleBase,
    state: watch::Receiver<CandidateState>,
    lock: DataLock,
}

impl fmt::Debug for CandidateHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CandidateHandle")
            .field("state", &*self.state.borrow())
            .finish_non_exhaustive()
    }
}

impl Sequencer {
    /// Stands by for a store, and leads while it has it. It goes on over every change of leader, until it is shut down or
    /// cannot lead.
    ///
    /// # Errors
    /// A setting that cannot work. What comes later ends the role ([`RunningRole::failed`]).
    pub fn stand_by(config: SequencerConfig, deps: CandidateDeps) -> Result<CandidateHandle, StartError> {
        config.validate()?;
        let lock = DataLock::acquire_to_stand_by(&config.data_dir)?;
        let metrics = StandbyMetrics::new()?;
        let base = RoleBase::new(metrics.registry, &[]);
        let (state, watched) = watch::channel(CandidateState::StandsBy(Leader::default()));
        let (stop, spawner) = (base.tasks().stop(), base.tasks().spawner());
        let candidate = Candidate { config, deps, state, stop, spawner };
        base.tasks().spawn("candidate", candidate.run());
        Ok(CandidateHandle { base, state: watched, lock })
    }
}

impl CandidateHandle {
    /// Where it stands.
    pub fn state(&self) -> watch::Receiver<CandidateState> {
        self.state.clone()
    }

    /// Ends everything where it stands, as a kill would, and returns when it is gone.
    pub async fn abort(self) {
        self.base.abort().await;
    }
}

impl RunningRole for CandidateHandle {
    fn base(&self) -> &RoleBase {
        &self.base
    }

    /// Who leads gives the store back, which another one takes at once.
    async fn shutdown(self) {
        let Self { base, lock, .. } = self;
        base.shutdown(async { drop(lock) }).await;
    }
}

struct Candidate {
    config: SequencerConfig,
    deps: CandidateDeps,
    state: watch::Sender<CandidateState>,
    stop: Stop,
    spawner: Spawner,
}

/// How leading ended.
enum Led {
    /// The process is to end.
    Stopped,
    /// Another one leads now, or may.
    Lost,
    /// It was asked to let another one lead.
    HandedOver,
}

/// Why the candidate cannot go on.
enum Ended {
    Stopped,
    Failed(String),
}

impl<E: std::error::Error> From<E> for Ended {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Candidate {
    async fn run(mut self) {
        loop {
            let led = match self.wait().await {
                Ok((served, store)) => self.lead(served, store).await,
                Err(ended) => Err(ended),
            };
            match led {
                Ok(Led::Lost) => {}
                Ok(Led::HandedOver) => {
                    // Others wait for the store, and got it with the connection's end.
                    tokio::select! {
                        biased;
                        () = until(&mut self.stop) => return,
                        () = sleep(Duration::from_millis(HANDED_OVER_MS)) => {}
                    }
                }
                Ok(Led::Stopped) | Err(Ended::Stopped) => return,
                Err(Ended::Failed(cause)) => {
                    self.spawner.fail("candidate", cause);
                    return until(&mut self.stop).await;
                }
            }
        }
    }

    /// Stands by until the store is this process's. Gives what is served meanwhile.
    async fn wait(&mut self) -> Result<(RoleBase, Arc<SqlStore>), Ended> {
        let metrics = StandbyMetrics::new()?;
        let (named, leader) = watch::channel(None);
        let served = serve(&self.config, &metrics.registry, &leader).await?;
        tracing::info!("stands by");
        let (readiness, standby) = (served.readiness().clone(), &mut self.deps.standby);
        let (state, execution) = (&self.state, Arc::clone(&self.deps.execution));
        let url = standby.server();
        let warm = async {
            let mut ticks = interval(Duration::from_millis(WARM_INTERVAL_MS));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut reader: Option<Arc<dyn Store>> = None;
            loop {
                ticks.tick().await;
                let fault = match &reader {
                    Some(store) => match warm_up(store, execution.as_ref()).await {
                        Ok(report) => {
                            metrics.block_number.set(report.common + report.imported);
                            metrics.blocks_given.add(report.imported);
                            readiness.set_ready("execution");
                            continue;
                        }
                        Err(fault) => fault.to_string(),
                    },
                    None => match SqlStore::connect_reader(&url).await {
                        Ok(store) => {
                            reader = Some(Arc::new(store));
                            ticks.reset_immediately();
                            continue;
                        }
                        Err(fault) => fault.to_string(),
                    },
                };
                tracing::debug!(fault, "the execution client does not follow");
                readiness.set_not_ready("execution", fault);
            }
        };
        let take = async {
            let mut pauses = Backoff::new(STORE_RETRY_MS.0, STORE_RETRY_MS.1);
            loop {
                match standby.attempt().await {
                    Ok(Attempt::Taken(store)) => return Ok(store),
                    Ok(Attempt::Led(leader)) => {
                        pauses.reset();
                        match (leader.term, leader.lease) {
                            (1.., None) => readiness.set_not_ready(
                                "store",
                                "another program has it without a lease: it is taken when that one ends only",
                            ),
                            _ => readiness.set_ready("store"),
                        }
                        metrics.term.set(leader.term);
                        named.send_replace(leader.url.clone());
                        state.send_if_modified(|state| {
                            let of = |leader: &Leader| (leader.term, leader.url.clone());
                            let same = matches!(&*state, CandidateState::StandsBy(known) if of(known) == of(&leader));
                            *state = CandidateState::StandsBy(leader);
                            !same
                        });
                    }
                    // Another program's store, a newer one's: nothing that waiting mends.
                    Err(fault @ (StoreError::NewerSchema { .. } | StoreError::OlderSchema { .. })) => {
                        return Err(Ended::from(fault));
                    }
                    Err(fault) => {
                        tracing::warn!(%fault, "the store cannot be asked who leads");
                        readiness.set_not_ready("store", fault.to_string());
                        sleep(pauses.pause()).await;
                    }
                }
            }
        };
        let taken = tokio::select! {
            biased;
            () = until(&mut self.stop) => Err(Ended::Stopped),
            failure = self.spawner.failed() => Err(Ended::Failed(failure.to_string())),
            taken = take => taken,
            () = warm => Err(Ended::Stopped),
        };
        match taken {
            Ok(store) => {
                // Nobody serves for a moment.
                named.send_replace(None);
                Ok((served, Arc::new(store)))
            }
            Err(ended) => {
                served.abort().await;
                Err(ended)
            }
        }
    }

    /// Leads as long as the store is this process's.
    async fn lead(&mut self, served: RoleBase, store: Arc<SqlStore>) -> Result<Led, Ended> {
        let term = store.term().unwrap_or_default();
        tracing::info!(term, "the store is this sequencer's: finding out what was signed before");
        self.state.send_replace(CandidateState::Recovers { term });
        let hand_over = HandOver::default();
        let asked = Arc::clone(&hand_over.0);
        let lease = self.deps.standby.lease();
        let mut lost = std::pin::pin!(keep(Arc::clone(&store), lease));
        let prepared = (self.deps.prepare)(Arc::clone(&store));
        let config = self.config.clone();
        let starting = async move {
            let deps = prepared.await.map_err(|error| Ended::Failed(error.to_string()))?;
            let predecessor = Some(Predecessor { base: served, hand_over, term });
            match Sequencer::start_after(config, deps, predecessor).await {
                // The store is given back: another one may have better luck, or this one later.
                Err(error) if error.may_pass() => {
                    tracing::warn!(%error, "cannot lead now");
                    Ok(None)
                }
                started => Ok::<_, Ended>(Some(started?)),
            }
        };
        let started = tokio::select! {
            biased;
            () = until(&mut self.stop) => return Ok(Led::Stopped),
            reason = &mut lost => {
                tracing::warn!(reason, "the store is not this sequencer's any more");
                return Ok(Led::Lost);
            }
            started = starting => started,
        };
        let handle: SequencerHandle = match started {
            Ok(Some(handle)) => handle,
            Ok(None) => return Ok(Led::HandedOver),
            Err(_) if is_lost(&store).await => return Ok(Led::Lost),
            Err(ended) => return Err(ended),
        };
        tracing::info!(term, "leads");
        self.state.send_replace(CandidateState::Leads { term });
        tokio::select! {
            biased;
            () = until(&mut self.stop) => {
                end(handle, &mut lost).await;
                Ok(Led::Stopped)
            }
            () = asked.notified() => {
                tracing::info!("asked to hand over");
                end(handle, &mut lost).await;
                Ok(Led::HandedOver)
            }
            reason = &mut lost => {
                tracing::warn!(reason, "leads no more");
                handle.vacate().await;
                Ok(Led::Lost)
            }
            failure = handle.failed() => {
                handle.vacate().await;
                if is_lost(&store).await { Ok(Led::Lost) } else { Err(Ended::Failed(failure.to_string())) }
            }
        }
    }
}

/// Whether another one has the store: a signer may have told so before the store did.
async fn is_lost(store: &SqlStore) -> bool {
    store.is_fenced() || matches!(store.renew().await, Err(StoreError::Fenced))
}

/// Serves what one that stands by serves.
async fn serve(
    config: &SequencerConfig,
    metrics: &Metrics,
    leader: &watch::Receiver<Option<String>>,
) -> Result<RoleBase, ServeError> {
    let mut pauses = Backoff::new(PORT_RETRY_MS.0, PORT_RETRY_MS.1);
    for _ in 1..PORT_ATTEMPTS {
        match try_serve(config, metrics, leader).await {
            // What was served before, in this process, may just be ending.
            Err(ServeError::Bind { cause, .. }) if cause.kind() == ErrorKind::AddrInUse => {
                sleep(pauses.pause()).await;
            }
            served => return served,
        }
    }
    try_serve(config, metrics, leader).await
}

async fn try_serve(
    config: &SequencerConfig,
    metrics: &Metrics,
    leader: &watch::Receiver<Option<String>>,
) -> Result<RoleBase, ServeError> {
    let mut served = RoleBase::new(metrics.clone(), CONDITIONS);
    let mut server = ServerConfig::new(config.rpc_addr);
    server.inbound = config.inbound.clone();
    served.serve_feed(FeedSource::StandingBy(leader.clone()));
    served.serve_rpc(server, standing_by(leader.clone()), None).await?;
    served.serve_peers(config.peer_listener.as_ref(), None, standing_by(leader.clone())).await?;
    served.serve_admin(config.admin_addr, None).await?;
    Ok(served)
}

/// Ends in order, for as long as nobody else has the store.
async fn end(handle: SequencerHandle, lost: &mut (impl Future<Output = String> + Unpin)) {
    tokio::select! {
        () = handle.shutdown() => {}
        reason = lost => tracing::warn!(reason, "did not end in order: the store is not this sequencer's any more"),
    }
}

/// Sets the lease anew where nothing else does; resolves, and says why, when the store may be another's.
async fn keep(store: Arc<SqlStore>, lease: Duration) -> String {
    let mut ticks = interval(lease / LOOKS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stopped = store.stopped();
    let mut renewal = None;
    loop {
        tokio::select! {
            biased;
            reason = &mut stopped => return reason,
            _ = ticks.tick() => {}
            renewed = OptionFuture::from(renewal.as_mut()), if renewal.is_some() => {
                let renewed: Result<(), StoreError> = renewed.unwrap_or(Ok(()));
                renewal = None;
                if let Err(fault) = renewed {
                    tracing::warn!(%fault, "the lease was not set anew");
                }
                continue;
            }
        }
        // Every write sets it anew; one that waits behind many others comes late, and does not matter.
        let idle = store.renewed().elapsed();
        if idle >= lease {
            return format!(
                "nothing was written for {} ms: another one may have the store",
                lease.as_millis()
            );
        }
        if idle >= lease / RENEWALS && renewal.is_none() {
            let store = Arc::clone(&store);
            renewal = Some(Box::pin(async move { store.renew().await }));
        }
    }
}
