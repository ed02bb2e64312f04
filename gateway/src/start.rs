//! Starting and stopping relays and gateways.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use blindfold_bte::Backend;
use blindfold_chain::{L1Reader, ParameterSet, Verifier};
use blindfold_protocol::{ChainConfig, ChainConfigError, Hello, Party, SigningKey};
use blindfold_redis::{Redis, RedisOptions};
use blindfold_rpc::{
    ClientBuildError, ClientConfig, Feed, FeedConfig, FeedSource, Hub, Introduction, ReceiptBoard, RoleBase,
    RunningRole, ServeError, ServerConfig, SourceLimits, TokenBuckets, Topic, http_client_of,
    limits::MAX_PEER_REQUEST_BYTES,
};
use blindfold_runtime::{Clock, random};
use blindfold_telemetry::MetricsError;
use lru::LruCache;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::{
    admission::{Admission, SharedLimits},
    check::Checks,
    coalesce::Source,
    config::{ConfigError, GatewayConfig, RelayConfig},
    follow::{Follower, SOURCE},
    forward::Forwarder,
    hints::{HintQueue, verify_all},
    limits::{MAX_TAKEN_IDS, PARALLEL_VERIFICATIONS},
    line::Lines,
    metrics::GatewayMetrics,
    reads::{OfSource, Reads},
    shared::RedisLimits,
    source::Followed,
    window::Window,
};

/// What a relay works with.
pub struct RelayDeps {
    /// The chain's settings, the same for every party.
    pub chain: Arc<ChainConfig>,
    /// The parameters of every epoch, matched with L1 and checked.
    pub parameters: Arc<ParameterSet>,
    /// Who encrypts hints again.
    pub backend: Arc<dyn Backend>,
    /// What L1 says.
    pub l1: Arc<dyn L1Reader>,
}

/// What a gateway works with besides.
pub struct GatewayDeps {
    /// Its settings.
    pub config: GatewayConfig,
    /// The account that proves to the sequencers that this is one of their gateways.
    pub hello_key: Arc<SigningKey>,
    /// By which its hellos are dated.
    pub clock: Arc<dyn Clock>,
    /// The Redis server over which it counts together with other gateways; `None` where each counts by itself.
    pub redis: Option<RedisOptions>,
    /// What counts in its place, for tests.
    pub shared: Option<Arc<dyn SharedLimits>>,
}

/// Why a relay or gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting that cannot work.
    #[error("settings: {0}")]
    Config(#[from] ConfigError),
    /// The chain's settings cannot work.
    #[error("chain configuration: {0}")]
    Chain(#[from] ChainConfigError),
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

/// The roles: [`start`](Self::start) gives a running one.
pub struct Relay;

impl Relay {
    /// Serves until stopped; a gateway where `gateway` is given. Neither source nor sequencers need to be there.
    ///
    /// # Errors
    /// Settings or an address that cannot be used; nothing runs then.
    pub async fn start(
        config: RelayConfig,
        deps: RelayDeps,
        gateway: Option<GatewayDeps>,
    ) -> Result<GatewayHandle, StartError> {
        let RelayDeps { chain, parameters, backend, l1 } = deps;
        config.check()?;
        if let Some(gateway) = &gateway {
            gateway.config.check()?;
        }
        chain.validate()?;
        let role = if gateway.is_some() { "gateway" } else { "relay" };
        let metrics = GatewayMetrics::new(role)?;
        metrics.backend_threads.get(&[backend.name()]).set(backend.threads() as u64);
        let failures = metrics.device_failures.clone();
        backend.on_device_failure(Box::new(move |operation| failures.get(&[operation.name()]).increment()));
        let overruled = metrics.overruled.clone();
        backend.on_overruled(Box::new(move |check| overruled.get(&[check.name()]).increment()));
        let client = ClientConfig {
            request_timeout_ms: config.source_timeout_ms,
            introduction: gateway.as_ref().map(|gateway| introduction(gateway, &chain)),
            ..ClientConfig::default()
        };
        let mut base = RoleBase::new(metrics.registry.clone(), &[SOURCE]);
        let (hints, waiting) = HintQueue::new();
        // What users read does not use up what the sequencers let a gateway do.
        let of_users = ClientConfig { introduction: None, ..client.clone() };
        let lines = Lines::new(config.source_calls_per_second);
        let source = Source::new(
            http_client_of(&config.sequencer_urls, &of_users)?,
            Duration::from_millis(config.cache_ms),
            config.cache_entries,
        )
        .in_turn(lines.clone());
        // Nor does it keep anybody from hearing of his receipt: those who wait have theirs read one call after the other.
        let of_receipts = Source::new(http_client_of(&config.sequencer_urls, &client)?, Duration::ZERO, 1);
        let board = ReceiptBoard::new(Arc::new(OfSource(of_receipts)));
        let followed = Arc::new(Followed {
            checks: Checks { chain: Arc::clone(&chain), parameters, backend, l1 },
            window: Mutex::new(Window::new(config.window_batches, config.window_bytes)),
            hub: Hub::default(),
            metrics: metrics.clone(),
            hints,
            readiness: base.readiness().clone(),
            board: board.clone(),
        });
        let admission = match gateway {
            None => None,
            Some(gateway) => {
                let client = ClientConfig { max_request_bytes: MAX_PEER_REQUEST_BYTES, ..client.clone() };
                let sequencers = http_client_of(&config.sequencer_urls, &client)?;
                let forwarder = Forwarder::start(
                    sequencers,
                    Duration::from_micros(gateway.config.forward_wait_us),
                    Duration::from_millis(gateway.config.leader_wait_ms),
                    metrics.clone(),
                    &base.serving().spawner(),
                );
                let limits = &gateway.config;
                let in_redis = gateway.redis.map(|options| {
                    let redis = Redis::start(options, metrics.redis.clone(), &base.serving().spawner());
                    Arc::new(RedisLimits::new(redis, limits)) as Arc<dyn SharedLimits>
                });
                Some(Arc::new(Admission {
                    followed: Arc::clone(&followed),
                    verifier: Verifier::start(chain, limits.verifier(), |_| {}, &base.serving().spawner()),
                    forwarder,
                    sources: SourceLimits::new(
                        limits.source_rate_per_second,
                        limits.source_burst,
                        limits.max_sources,
                    ),
                    payers: TokenBuckets::new(
                        limits.payer_rate_per_second,
                        limits.payer_burst,
                        limits.max_sources,
                    ),
                    shared: gateway.shared.or(in_redis),
                    taken: Mutex::new(LruCache::new(MAX_TAKEN_IDS)),
                }))
            }
        };
        base.serve_admin(config.admin_addr, None).await?;
        base.serve_feed(FeedSource::Hub(followed.hub.clone()));
        let status = Arc::default();
        let (of_reads, from) = (Arc::clone(&followed), source);
        let (fetching, verifying) = (Arc::default(), Arc::new(Semaphore::new(PARALLEL_VERIFICATIONS)));
        let reads = Reads { role, followed: of_reads, source: from, admission, status, fetching, verifying };
        let server = ServerConfig { inbound: config.inbound.clone(), ..ServerConfig::new(config.rpc_addr) };
        let through = reads.passthrough();
        let rpc_addr = base.serve_rpc(server, reads.into_module(), Some(through)).await?;
        let own = http_client_of(&config.sequencer_urls, &client)?;
        let feed_config = FeedConfig { client, ..FeedConfig::default() };
        let feed = Feed::start_at_any(config.sequencer_urls.feeds(), Topic::ALL.to_vec(), feed_config);
        let tasks = base.tasks();
        tasks.spawn("receipts", board.run(tasks.stop()));
        tasks.spawn("questions", lines.keep_pace(tasks.stop()));
        tasks.spawn("hints", verify_all(Arc::clone(&followed), waiting, tasks.stop()));
        let follower = Follower { followed, client: own, config, asked: HashMap::new() };
        tasks.spawn("follower", follower.run(feed, tasks.stop()));
        tracing::info!(%rpc_addr, role, "runs");
        Ok(GatewayHandle { base, metrics, rpc_addr })
    }
}

/// Shows the sequencers that this is one of their gateways.
fn introduction(gateway: &GatewayDeps, chain: &ChainConfig) -> Introduction {
    let (key, clock, deployment) =
        (Arc::clone(&gateway.hello_key), Arc::clone(&gateway.clock), chain.deployment);
    Introduction::new(move || {
        let nonce = random::<[u8; 16]>().into();
        Hello::of_gateway(&key, &deployment, Party::Sequencer, clock.now_ms(), nonce)
    })
}

/// A running relay or gateway. Dropping it ends it at once, as if killed.
pub struct GatewayHandle {
    base: RoleBase,
    metrics: GatewayMetrics,
    rpc_addr: SocketAddr,
}

impl GatewayHandle {
    /// The address that JSON-RPC is served at.
    pub const fn rpc_addr(&self) -> SocketAddr {
        self.rpc_addr
    }

    /// What it counts.
    pub const fn metrics(&self) -> &GatewayMetrics {
        &self.metrics
    }
}

impl RunningRole for GatewayHandle {
    fn base(&self) -> &RoleBase {
        &self.base
    }

    /// No new calls, those under way are answered; what waits for a sequencer is given up in time, and told so.
    async fn shutdown(self) {
        self.base.shutdown(async {}).await;
    }
}
