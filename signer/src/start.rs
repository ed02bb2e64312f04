//! Starting and stopping the signer.

use std::{sync::Arc, time::Duration};

use blindfold_chain::L1Reader;
use blindfold_protocol::{Address, ChainConfig, ChainConfigError, SigningKey};
use blindfold_rpc::{Readiness, RoleBase, RunningRole, ServeError, SignerApiServer};
use blindfold_runtime::Clock;
use blindfold_store::{Store, StoreError};
use blindfold_telemetry::MetricsError;
use thiserror::Error;
use tokio::{sync::watch, time::sleep};

use crate::{
    begin::role_of,
    config::{ConfigError, SignerConfig},
    floor::Floor,
    metrics::SignerMetrics,
    refusal::SigningRefusal,
    service::Service,
};

/// What must hold before it is ready.
const BEGUN: &str = "begun";
/// See [`BEGUN`].
const RECORD: &str = "record";
/// How often L1 is looked at, in milliseconds.
const LOOK_MS: u64 = 5_000;

/// What a signer works with.
pub struct SignerDeps {
    /// The chain's settings, the same for every party.
    pub chain: Arc<ChainConfig>,
    /// What was signed. This signer is its only user.
    pub store: Arc<dyn Store>,
    /// What L1 says, where a header does not follow what was signed.
    pub l1: Arc<dyn L1Reader>,
    /// The sequencer's key.
    pub key: Arc<SigningKey>,
    /// The clock that hellos are stamped by.
    pub clock: Arc<dyn Clock>,
}

/// Why a signer does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A setting that cannot work.
    #[error("settings: {0}")]
    Config(#[from] ConfigError),
    /// A setting of the chain cannot work.
    #[error("chain settings: {0}")]
    Chain(#[from] ChainConfigError),
    /// The disk failed, or belongs to another key or deployment.
    #[error("storage: {0}")]
    Store(#[from] StoreError),
    /// A port cannot be listened on.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Our own mistake in naming metrics.
    #[error("metrics: {0}")]
    Metrics(#[from] MetricsError),
}

/// The role: [`start`](Self::start) gives a running one.
pub struct Signer;

/// A running signer. Dropping it ends everything at once, as a kill would.
pub struct SignerHandle {
    base: RoleBase,
    address: Address,
}

impl Signer {
    /// Starts a signer on the record of what was signed. L1 is not needed to start. On a fresh record it serves, and signs
    /// nothing.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(config: SignerConfig, deps: SignerDeps) -> Result<SignerHandle, StartError> {
        config.check()?;
        deps.chain.validate()?;
        let (deployment, address) = (deps.chain.deployment, deps.key.address());
        deps.store.bind(&deployment, &role_of(address)).await?;
        let metrics = SignerMetrics::new()?;
        let mut base = RoleBase::new(metrics.registry.clone(), &[BEGUN, RECORD]);
        let stopped = deps.store.stopped();
        let floor = Floor::open(deps.store, deps.l1, deps.key, deployment, config.l1_timeout_ms)
            .await
            .map(Arc::new)?;
        match floor.known().await.first {
            Some(_) => base.readiness().set_ready(BEGUN),
            None => {
                let fresh =
                    "the database is fresh: tell from which number on to sign (`blindfold signer begin`)";
                tracing::warn!(%address, "{fresh}");
                base.readiness().set_not_ready(BEGUN, fresh);
            }
        }
        // Where L1 is away the record is looked at later.
        base.readiness().set_ready(RECORD);
        if let Err(fault) = floor.look_soon().await {
            tracing::warn!(%fault, "L1 does not tell what it holds of what was signed; it is asked again");
        }
        let follower = follow(Arc::clone(&floor), base.readiness().clone(), base.tasks().stop());
        let service = Service { floor, metrics, clock: deps.clock };
        service.show().await;
        base.serve_peers(Some(&config.listener), None, service.into_rpc()).await?;
        base.serve_admin(config.admin_addr, None).await?;
        base.tasks().guard("store", stopped);
        base.tasks().spawn("l1", follower);
        let handle = SignerHandle { base, address };
        tracing::info!(%address, listens = ?handle.peers_addr(), "the signer runs");
        Ok(handle)
    }
}

/// Knows what L1 says before anybody has to ask, and whether the record is whole.
async fn follow(floor: Arc<Floor>, readiness: Readiness, mut stop: watch::Receiver<bool>) {
    let mut away = false;
    loop {
        let looked = async {
            let looked = look(&floor, &readiness).await;
            if let (Err(fault), false) = (&looked, away) {
                tracing::warn!(%fault, "L1 does not tell what it made and holds; it is asked again and again");
            }
            sleep(Duration::from_millis(LOOK_MS)).await;
            looked.is_err()
        };
        away = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            failed = looked => failed,
        };
    }
}

async fn look(floor: &Floor, readiness: &Readiness) -> Result<(), SigningRefusal> {
    let posted = floor.look().await.map_err(SigningRefusal::L1)?;
    floor.read_l1().await.map_err(SigningRefusal::L1)?;
    if floor.is_older_than(&posted).await? {
        let number = posted.number;
        let old = format!(
            "this record is older than L1, which holds number {number} of this key: it is a copy, or was restored, and does not \
             know what was signed (docs/operate.md, The signer)"
        );
        if !readiness.reasons().contains_key(RECORD) {
            tracing::error!("{old}");
        }
        readiness.set_not_ready(RECORD, old);
    } else {
        readiness.set_ready(RECORD);
    }
    Ok(())
}

impl SignerHandle {
    /// Whose signatures it gives.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    /// Ends everything, and returns when its ports are free. Calls under way are not waited for.
    pub async fn vacate(self) {
        self.base.vacate().await;
    }
}

impl RunningRole for SignerHandle {
    fn base(&self) -> &RoleBase {
        &self.base
    }

    async fn shutdown(self) {
        self.base.shutdown(async {}).await;
    }
}
