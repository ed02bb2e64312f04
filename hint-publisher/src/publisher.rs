//! Starting and stopping the hint publisher.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use blindfold_bte::Backend;
use blindfold_chain::limits::MAX_SHARE_ANSWER_BYTES;
use blindfold_chain::{Decryption, MemberLimits, ParameterSet, Pool, ShareMembers};
use blindfold_l1::L1Submitter;
use blindfold_protocol::{ChainConfig, ChainConfigError, Party, SigningKey};
use blindfold_redis::{Redis, RedisOptions};
use blindfold_rpc::{
    ClientBuildError, ClientConfig, Feed, FeedConfig, RoleBase, RunningRole, ServeError, http_client,
    http_client_of,
};
use blindfold_telemetry::MetricsError;
use tokio::sync::Semaphore;

use crate::{
    ConfigError, HintPublisherConfig, HintPublisherMetrics, HintPublisherStatus,
    follow::{COORDINATOR, Coordinator, SEQUENCER, TOPICS},
    introduce::Introductions,
    l1::{HintPoster, HintPosterDeps, L1_POSTING, L1PostingConfig, L1PostingConfigError},
    share::{Pace, Sharing},
    status::SharedStatus,
    watch::Watch,
    work::Workshop,
};

/// What the hint publisher works with.
pub struct HintPublisherDeps {
    /// The chain's settings, the same for every party.
    pub chain: Arc<ChainConfig>,
    /// The parameters of every epoch, matched with L1 and checked.
    pub parameters: Arc<ParameterSet>,
    /// Who does the heavy work.
    pub backend: Arc<dyn Backend>,
    /// The account that proves to sequencer and members who the hint publisher is; `None` for one without places of its own.
    pub hello_key: Option<Arc<SigningKey>>,
    /// Where batches are shared with other hint publishers; `None` for one that does all of every batch.
    pub redis: Option<RedisOptions>,
    /// Where hints are posted to L1; `None` for a hint publisher that leaves that to others.
    pub l1_posting: Option<L1PostingDeps>,
}

/// What posting hints to L1 needs.
pub struct L1PostingDeps {
    /// Settings of the posting.
    pub config: L1PostingConfig,
    /// The account whose bond answers for its postings.
    pub l1: Arc<dyn L1Submitter>,
}

/// Why the hint publisher did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting that cannot work.
    #[error("settings: {0}")]
    Config(#[from] ConfigError),
    /// A setting of posting to L1.
    #[error("settings: {0}")]
    L1Posting(#[from] L1PostingConfigError),
    /// The chain's settings cannot work.
    #[error("chain configuration: {0}")]
    Chain(#[from] ChainConfigError),
    /// A URL in the settings cannot be used.
    #[error(transparent)]
    Client(#[from] ClientBuildError),
    /// The address to listen on.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A mistake in the list of metrics.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
}

/// The role: [`start`](Self::start) gives a running one.
pub struct HintPublisher;

impl HintPublisher {
    /// Follows the sequencer until stopped. Neither sequencer nor members need to be there.
    ///
    /// # Errors
    /// Settings or an address that cannot be used; nothing runs then.
    pub async fn start(
        config: HintPublisherConfig,
        deps: HintPublisherDeps,
    ) -> Result<HintPublisherHandle, StartError> {
        let HintPublisherDeps { chain, parameters, backend, hello_key, redis, l1_posting } = deps;
        config.check()?;
        if let Some(posting) = &l1_posting {
            posting.config.check()?;
        }
        chain.validate()?;
        for entry in parameters.all() {
            let epoch = entry.epoch();
            let given = config.members.iter().filter(|entry| epoch.member(entry.member).is_some()).count();
            if given < usize::from(epoch.threshold) {
                let (epoch, needed) = (epoch.epoch, epoch.threshold);
                return Err(ConfigError::TooFewMembers { epoch, given, needed }.into());
            }
        }
        let metrics = HintPublisherMetrics::new()?;
        metrics.backend_threads.get(&[backend.name()]).set(backend.threads() as u64);
        let failures = metrics.device_failures.clone();
        backend.on_device_failure(Box::new(move |operation| failures.get(&[operation.name()]).increment()));
        let overruled = metrics.overruled.clone();
        backend.on_overruled(Box::new(move |check| overruled.get(&[check.name()]).increment()));
        let status = Arc::new(SharedStatus::default());
        let introductions = Introductions::new(hello_key, chain.deployment);
        let limits = &config.limits;
        let mut clients = BTreeMap::new();
        for entry in &config.members {
            let client = ClientConfig {
                request_timeout_ms: limits.member_timeout_ms,
                max_response_bytes: MAX_SHARE_ANSWER_BYTES,
                ..introductions.client(Party::Member(entry.member))
            };
            clients.insert(entry.member, http_client(&entry.url, &client)?);
        }
        let member_limits = MemberLimits {
            hedge: Duration::from_millis(limits.hedge_ms),
            wait: Duration::from_millis(limits.members_wait_ms),
            singleton_wait: Duration::from_millis(limits.members_wait_ms),
            retry: Duration::from_millis(limits.member_retry_ms),
        };
        let pace = Arc::new(Pace::default());
        let watch = Watch { metrics: metrics.clone(), status: Arc::clone(&status), pace: Arc::clone(&pace) };
        let watch = Arc::new(watch);
        let members = ShareMembers::new(clients, member_limits, watch.clone());
        let to_sequencer = introductions.client(Party::Sequencer);
        let sequencer = http_client_of(&config.sequencer_urls, &to_sequencer)?;
        let conditions = match &l1_posting {
            Some(_) => &[SEQUENCER, L1_POSTING][..],
            None => &[SEQUENCER],
        };
        let mut base = RoleBase::new(metrics.registry.clone(), conditions);
        base.serve_admin(config.admin_addr, None).await?;
        let (tasks, readiness) = (base.tasks(), base.readiness());
        let decryption = Decryption::new(
            Arc::clone(&backend),
            members,
            Pool::start(config.limits.predecrypt_workers, tasks),
            watch,
            config.limits.parallel_singletons,
        );
        let feed_config = FeedConfig { client: to_sequencer, ..FeedConfig::default() };
        let feed = Feed::start_at_any(config.sequencer_urls.feeds(), TOPICS.to_vec(), feed_config);
        let memory = Arc::new(Semaphore::new(config.limits.max_predecrypted_ciphertexts));
        let sharing = redis.map(|options| {
            let redis = Redis::start(options, metrics.redis.clone(), &tasks.spawner());
            Sharing::new(redis, &config.limits, pace, metrics.share.clone())
        });
        let shop = Arc::new(Workshop {
            config,
            parameters,
            backend,
            decryption,
            sequencer,
            sharing,
            memory,
            metrics,
        });
        if let Some(L1PostingDeps { config, l1 }) = l1_posting {
            let deps = HintPosterDeps {
                l1,
                first_block: chain.genesis_l1_origin.saturating_add(1),
                source: Arc::new(shop.sequencer.clone()),
                parameters: Arc::clone(&shop.parameters),
                backend: Arc::clone(&shop.backend),
                metrics: shop.metrics.clone(),
                readiness: readiness.clone(),
            };
            tasks.spawn("l1_posting", HintPoster::new(config, deps).run(tasks.stop()));
        }
        let coordinator = Coordinator::new(
            Arc::clone(&shop),
            chain,
            Arc::clone(&status),
            readiness.clone(),
            tasks.spawner(),
        );
        tasks.spawn(COORDINATOR, coordinator.run(feed, tasks.stop()));
        tracing::info!(backend = shop.backend.name(), "hint publisher runs");
        Ok(HintPublisherHandle { shop, status, base })
    }
}

/// A running hint publisher. Dropping it ends it at once, as if killed.
pub struct HintPublisherHandle {
    shop: Arc<Workshop>,
    status: Arc<SharedStatus>,
    base: RoleBase,
}

impl HintPublisherHandle {
    /// Where the hint publisher stands.
    pub fn status(&self) -> HintPublisherStatus {
        self.status.get()
    }

    /// What this hint publisher counts.
    pub fn metrics(&self) -> &HintPublisherMetrics {
        &self.shop.metrics
    }
}

impl RunningRole for HintPublisherHandle {
    fn base(&self) -> &RoleBase {
        &self.base
    }

    /// Batches in work are given up; they are caught up with after the next start.
    async fn shutdown(self) {
        self.base.tasks().abort().await;
        self.base.shutdown(async {}).await;
    }
}
