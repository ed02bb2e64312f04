//! Starting and stopping the signer.

use std::sync::Arc;

use blindfold_chain::L1Reader;
use blindfold_protocol::{Address, ChainConfig, ChainConfigError, SigningKey};
use blindfold_rpc::{RoleBase, RunningRole, ServeError, SignerApiServer};
use blindfold_runtime::Clock;
use blindfold_store::{Store, StoreError};
use blindfold_telemetry::MetricsError;
use thiserror::Error;

use crate::{
    begin::role_of,
    config::{ConfigError, SignerConfig},
    floor::Floor,
    metrics::SignerMetrics,
    service::Service,
};

/// What must hold before it is ready.
const BEGUN: &str = "begun";

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
        let mut base = RoleBase::new(metrics.registry.clone(), &[BEGUN]);
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
        let service = Service { floor, metrics, clock: deps.clock };
        service.show().await;
        base.serve_peers(Some(&config.listener), None, service.into_rpc()).await?;
        base.serve_admin(config.admin_addr, None).await?;
        base.tasks().guard("store", stopped);
        let handle = SignerHandle { base, address };
        tracing::info!(%address, listens = ?handle.peers_addr(), "the signer runs");
        Ok(handle)
    }
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
