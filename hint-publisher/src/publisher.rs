//! Starting and stopping the helper.

use std::{net::SocketAddr, sync::Arc};

use blindfold_bte::Backend;
use blindfold_chain::ParameterSet;
use blindfold_protocol::{ChainConfig, ConfigFault};
use blindfold_rpc::{
    AdminConfig, ClientBuildError, ClientConfig, Feed, FeedConfig, Readiness, ServeError, ServerHandle,
    admin, http_client,
};
use blindfold_telemetry::MetricsError;
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
};

use crate::{
    ConfigError, HintPublisherConfig, HintPublisherMetrics, HintPublisherStatus,
    follow::{Coordinator, SEQUENCER, TOPICS},
    members::Members,
    pool::Pool,
    status::SharedStatus,
    work::Workshop,
};

/// What the helper works with.
pub struct HintPublisherDeps {
    /// The chain's configuration.
    pub chain: Arc<ChainConfig>,
    /// The parameters of every epoch, matched with L1 and checked.
    pub parameters: Arc<ParameterSet>,
    /// Who does the heavy work.
    pub backend: Arc<dyn Backend>,
}

/// Why the helper did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting.
    #[error("settings: {0}")]
    Config(#[from] ConfigError),
    /// The chain's configuration.
    #[error("chain configuration: {0}")]
    Chain(#[from] ConfigFault),
    /// A URL.
    #[error(transparent)]
    Client(#[from] ClientBuildError),
    /// The address to listen on.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A mistake in the list of metrics.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
}

/// The helper.
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
        let HintPublisherDeps { chain, parameters, backend } = deps;
        config.check()?;
        chain.validate()?;
        for epoch in parameters.iter().map(|parameters| parameters.epoch()) {
            let given = config.members.iter().filter(|entry| epoch.member(entry.member).is_some()).count();
            if given < usize::from(epoch.threshold) {
                let (epoch, needed) = (epoch.epoch, epoch.threshold);
                return Err(ConfigError::TooFewMembers { epoch, given, needed }.into());
            }
        }
        let metrics = HintPublisherMetrics::new()?;
        metrics.backend_threads.get(&[backend.name()]).set(backend.threads() as u64);
        let status = Arc::new(SharedStatus::default());
        let members = Members::new(&config, metrics.clone(), Arc::clone(&status))?;
        let sequencer = http_client(&config.sequencer_url, &ClientConfig::default())?;
        let readiness = Readiness::new(&[SEQUENCER]);
        let registry = metrics.registry.clone();
        let admin_config = AdminConfig { addr: config.admin_addr };
        let admin = admin(admin_config, readiness.clone(), move || registry.render(), None).await?;

        let mut tasks = JoinSet::new();
        let pool = Pool::start(config.limits.predecrypt_workers, &mut tasks);
        let feed = Feed::start(config.feed_url(), TOPICS.to_vec(), FeedConfig::default());
        let memory = Arc::new(Semaphore::new(config.limits.max_predecrypted_ciphertexts));
        let shop =
            Arc::new(Workshop { config, parameters, backend, members, sequencer, pool, memory, metrics });
        let coordinator = Coordinator::new(Arc::clone(&shop), chain, Arc::clone(&status), readiness);
        let (stop, stopped) = watch::channel(false);
        tasks.spawn(coordinator.run(feed, stopped));
        tracing::info!(backend = shop.backend.name(), admin = %admin.local_addr(), "hint publisher runs");
        Ok(HintPublisherHandle { shop, status, admin, stop, tasks })
    }
}

/// A running helper. Dropping it ends it at once, as if killed.
pub struct HintPublisherHandle {
    shop: Arc<Workshop>,
    status: Arc<SharedStatus>,
    admin: ServerHandle,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl HintPublisherHandle {
    /// Where `/healthz`, `/readyz` and `/metrics` are served.
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin.local_addr()
    }

    /// Where the helper stands.
    pub fn status(&self) -> HintPublisherStatus {
        self.status.get()
    }

    /// The metrics.
    pub fn metrics(&self) -> &HintPublisherMetrics {
        &self.shop.metrics
    }

    /// Ends when a part of the helper ended by itself, which only a bug does: the process should end, too.
    pub async fn failed(&mut self) {
        let _ = self.tasks.join_next().await;
    }

    /// Stops. Batches in work are given up; they are caught up with after the next start.
    pub async fn stop(mut self) {
        // Nobody listens when the follower has ended already.
        let _ = self.stop.send(true);
        self.tasks.shutdown().await;
        self.admin.shutdown().await;
    }
}
