//! Starting and stopping a member.

use std::{net::SocketAddr, sync::Arc};

use blindfold_chain::{Fork, L1Reader, L1Submitter, OpenError, RebuildError, Tracker, WayBack};
use blindfold_protocol::{ChainConfig, ChainConfigError, Epoch, Party};
use blindfold_rpc::{
    ClientBuildError, CommitteeApiServer, Feed, FeedConfig, Readiness, RoleBase, RunningRole, ServeError,
    ServerConfig, http_client_of, types::CommitteeStatus,
};
use blindfold_runtime::{Agreement, Clock, Spawner};
use blindfold_store::{Store, StoreError};
use blindfold_telemetry::MetricsError;

use crate::{
    ConfigError, Evidence, MemberConfig, MemberMetrics,
    acknowledge::Acknowledger,
    attest::Attester,
    catch_up::Sources,
    evidence::{EvidenceError, EvidenceStore},
    follow::{CLOCK, FOLLOWING, Follower, TOPICS, watch_clock},
    introduce::{Introductions, doorkeeper},
    key_file::{KeyFilePublic, OpenedKey},
    posting::post_what_is_overdue,
    refusals::Refusals,
    service::Service,
    share::ShareService,
    unreleased::Unreleased,
    voting::{VOTING, Voting},
};

/// What a member works with.
pub struct MemberDeps {
    /// The chain's settings, the same for every party.
    pub chain: Arc<ChainConfig>,
    /// Its own disk, bound to this deployment and role.
    pub store: Arc<dyn Store>,
    /// Its own view of L1.
    pub l1: Arc<dyn L1Reader>,
    /// Pays for posting what the sequencer keeps from L1; without one that is left to others.
    pub poster: Option<Arc<dyn L1Submitter>>,
    /// With it the disk goes back to what L1 holds before anything is served: the remedy where L1 made or posted another
    /// header in place of one that is certified here. Where there is none it changes nothing.
    pub rebuild: Option<Arc<dyn L1Reader>>,
    /// The opened key file: shares and BLS key.
    pub key: OpenedKey,
    /// Time, for the clock rule.
    pub clock: Arc<dyn Clock>,
}

/// Why a member did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting that cannot work.
    #[error("settings: {0}")]
    Config(#[from] ConfigError),
    /// The chain's settings cannot work.
    #[error("chain configuration: {0}")]
    Chain(#[from] ChainConfigError),
    /// The disk, or it belongs to another deployment or member.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The chain on disk, or L1.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The disk does not go back to what L1 holds.
    #[error("rebuilding from L1: {0}")]
    Rebuild(#[from] RebuildError),
    /// The evidence on disk cannot be read.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// A URL in the settings cannot be used.
    #[error(transparent)]
    Client(#[from] ClientBuildError),
    /// An address to listen on.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A mistake in the list of metrics.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
}

/// What all parts of a member share.
pub(crate) struct Context {
    pub(crate) config: MemberConfig,
    pub(crate) tracker: Tracker,
    pub(crate) way_back: Arc<WayBack>,
    pub(crate) key: Arc<OpenedKey>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether that clock, the wall's and L1's agree.
    pub(crate) agreement: Agreement,
    pub(crate) l1: Arc<dyn L1Reader>,
    pub(crate) metrics: MemberMetrics,
    pub(crate) readiness: Readiness,
    /// A way to more tasks, and to the end of the role.
    pub(crate) spawner: Spawner,
    pub(crate) refusals: Refusals,
    pub(crate) evidence: EvidenceStore,
    pub(crate) unreleased: Unreleased,
    pub(crate) voting: Voting,
}

impl Context {
    pub(crate) fn member(&self) -> u16 {
        self.key.public.member
    }

    /// Whether our keys are the ones registered for us in this epoch.
    pub(crate) fn is_member_of(&self, epoch: &Epoch) -> bool {
        is_member_of(&self.key.public, epoch)
    }

    pub(crate) async fn status(&self) -> CommitteeStatus {
        let next = self.tracker.head().number + 1;
        let epoch = self.tracker.epoch(next).await.map_or(0, |epoch| epoch.epoch);
        // Not the highest ever: what L1 ended binds no more, and cannot be shown. Where the disk does not tell, more is
        // claimed than there is.
        let ever = u64::try_from(self.metrics.acknowledged.get()).unwrap_or_default();
        let acknowledged =
            self.tracker.store().heads().await.map_or(ever, |heads| heads.acknowledged.unwrap_or_default());
        CommitteeStatus {
            member: self.member(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            epoch,
            acknowledged,
            certified: self.tracker.certified().number,
            refusals: self.refusals.list(),
            second_headers_refused: self.evidence.refused(),
            votes_from: self.votes_from(),
        }
    }
}

/// What a member's store is bound to, beside the deployment.
pub fn store_role(member: u16) -> String {
    format!("member-{member}")
}

/// Whether these keys are the ones registered for the member in this epoch.
pub fn is_member_of(public: &KeyFilePublic, epoch: &Epoch) -> bool {
    epoch.parameters_hash == public.parameters_hash
        && epoch.member(public.member).is_some_and(|key| key.to_bytes() == public.bls_public_key)
}

/// The role: [`start`](Self::start) gives a running one.
pub struct Member;

impl Member {
    /// Opens the chain on disk, listens, and follows the sequencer until stopped. The sequencer need not be there.
    ///
    /// # Errors
    /// Settings, disk, L1 or addresses that cannot be used; nothing runs then.
    pub async fn start(config: MemberConfig, deps: MemberDeps) -> Result<MemberHandle, StartError> {
        let MemberDeps { chain, store, l1, poster, rebuild, key, clock } = deps;
        config.check(key.public.member)?;
        chain.validate()?;
        let metrics = MemberMetrics::new()?;
        let key = Arc::new(key);
        let introductions = Introductions::new(&key, chain.deployment, &clock);
        let client = introductions.client(Party::Sequencer);
        let sequencer = http_client_of(&config.sequencer_urls, &client)?;
        store.bind(&chain.deployment, &store_role(key.public.member)).await?;
        store.count_in(&metrics.registry);
        let acknowledged = store.heads().await?.acknowledged;
        let evidence = EvidenceStore::open(Arc::clone(&store)).await?;
        let voting = Voting::open(Arc::clone(&store)).await?;
        let fork = match &rebuild {
            Some(posted) => {
                let fork = Fork::find(&chain, store.as_ref(), posted.as_ref()).await?;
                if let Some((first, second)) =
                    fork.signed_twice(&chain, store.as_ref(), posted.as_ref()).await?
                {
                    tracing::error!(
                        number = second.header.number,
                        "the sequencer signed two headers for one number: both are kept as evidence"
                    );
                    evidence.keep(Evidence { first, second }).await.map_err(RebuildError::Store)?;
                }
                fork.go_back(store.as_ref()).await?;
                Some(fork)
            }
            None => None,
        };
        let timing = chain.timing;
        let tracker = Tracker::open(chain, store, Arc::clone(&l1)).await?;
        let unreleased = Unreleased::new(Arc::clone(&l1), tracker.clone(), &timing);
        if let (Some(posted), Some(fork)) = (&rebuild, &fork) {
            // Rule C-2, before the certificate is on disk: a start after a crash does not look at it again.
            let seen =
                async |certificate: &_| voting.check_own_vote(&tracker, &key.public, certificate).await;
            fork.take_posted(&tracker, posted.as_ref(), None, seen).await?;
        }
        let way_back = Arc::new(WayBack::open(tracker.clone()).await?);
        let agreement = Agreement::new(Arc::clone(&clock), config.limits.max_l1_age_ms);
        let sources = Arc::new(Sources::new(&config, tracker.clone(), Arc::clone(&l1), &introductions)?);
        metrics.acknowledged.set(acknowledged.unwrap_or_default());
        metrics.certified.set(tracker.certified().number);
        let mut base = RoleBase::new(metrics.registry.clone(), &[FOLLOWING, VOTING, CLOCK]);
        let context = Arc::new(Context {
            config,
            tracker,
            way_back,
            key,
            clock,
            agreement,
            l1,
            metrics,
            readiness: base.readiness().clone(),
            spawner: base.tasks().spawner(),
            refusals: Refusals::default(),
            evidence,
            unreleased,
            voting,
        });
        let shares = ShareService::new(Arc::clone(&context));
        let attester = Attester::new(Arc::clone(&context));
        let service = Service { context: Arc::clone(&context), shares: Arc::clone(&shares), attester };
        let mut server = ServerConfig::new(context.config.rpc_addr);
        server.inbound = context.config.inbound.clone();
        let doorkeeper = doorkeeper(&context);
        server.doorkeeper = Some(doorkeeper.clone());
        let methods = service.into_rpc();
        base.serve_peers(context.config.peer_listener.as_ref(), Some(doorkeeper), methods.clone()).await?;
        let rpc_addr = base.serve_rpc(server, methods, None).await?;
        base.serve_admin(context.config.admin_addr, None).await?;

        let (acknowledger, refusals) = Acknowledger::new(Arc::clone(&context), sequencer);
        let feed = Feed::start_at_any(
            context.config.sequencer_urls.feeds(),
            TOPICS.to_vec(),
            FeedConfig { client, ..FeedConfig::default() },
        );
        let follower = Follower::new(Arc::clone(&context), Arc::clone(&acknowledger), shares, sources);
        let tasks = base.tasks();
        tasks.guard("chain", context.tracker.broken());
        tasks.spawn("ahead", context.tracker.clone().run_ahead(tasks.stop()));
        tasks.spawn("acknowledgements", Arc::clone(&acknowledger).run(tasks.stop()));
        tasks.spawn("clock", watch_clock(Arc::clone(&context)));
        tasks.spawn("refusals", acknowledger.run_refusals(refusals, tasks.stop()));
        tasks.spawn("follower", follower.run(feed, tasks.stop()));
        if let Some(poster) = poster {
            tasks.spawn("posting", post_what_is_overdue(Arc::clone(&context), poster));
        }
        tracing::info!(member = context.member(), rpc = %rpc_addr, "committee member runs");
        Ok(MemberHandle { context, base, rpc_addr })
    }
}

/// A running member. Dropping it ends it at once, as if killed; [`RunningRole::shutdown`] lets calls under way finish.
pub struct MemberHandle {
    context: Arc<Context>,
    base: RoleBase,
    rpc_addr: SocketAddr,
}

impl MemberHandle {
    /// The address that `committee_*` is served at.
    pub fn rpc_addr(&self) -> SocketAddr {
        self.rpc_addr
    }

    /// What `committee_getStatus` answers at this moment.
    pub async fn status(&self) -> CommitteeStatus {
        self.context.status().await
    }

    /// What this member counts.
    pub fn metrics(&self) -> &MemberMetrics {
        &self.context.metrics
    }

    /// The chain that this member holds.
    pub fn tracker(&self) -> &Tracker {
        &self.context.tracker
    }

    /// Pairs of headers that the sequencer signed for one number, oldest first; at most 64 are kept.
    pub fn evidence(&self) -> Vec<Evidence> {
        self.context.evidence.list()
    }
}

impl RunningRole for MemberHandle {
    fn base(&self) -> &RoleBase {
        &self.base
    }

    async fn shutdown(self) {
        self.base.shutdown(async {}).await;
    }
}
