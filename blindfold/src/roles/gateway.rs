//! `blindfold relay` and `blindfold gateway`: the same follower and the same reads; a gateway takes envelopes besides.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use blindfold_client::KeySource;
use blindfold_gateway::{GatewayConfig, GatewayDeps, GatewayHandle, Relay, RelayConfig, RelayDeps};
use blindfold_otlp::TraceSettings;
use blindfold_protocol::ChainConfig;
use blindfold_redis::RedisSettings;
use blindfold_runtime::SteadyClock;
use blindfold_tls::TlsSettings;
use serde::{Deserialize, Serialize};

use super::{BackendSettings, L1Settings, Role, fault_in, load_chain, load_parameters, redis_options};

/// Settings of a relay's process. It keeps nothing on disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelaySettings {
    /// Path of the chain's settings, `rollup.json`.
    pub chain: PathBuf,
    /// Paths of the committees' parameter files, one for each epoch.
    pub parameters: Vec<PathBuf>,
    /// Where L1 is: keys and committees come from there.
    pub l1: L1Settings,
    /// Whom the connections that it opens trust over TLS, and what they show.
    #[serde(default)]
    pub tls: TlsSettings,
    /// Which backend encrypts hints again, and on how many threads.
    #[serde(default)]
    pub backend: BackendSettings,
    /// The settings of the relay itself.
    pub relay: RelayConfig,
}

/// Settings of a gateway's process: those of its relay, and its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewaySettings {
    /// Path of the chain's settings, `rollup.json`.
    pub chain: PathBuf,
    /// Paths of the committees' parameter files, one for each epoch.
    pub parameters: Vec<PathBuf>,
    /// Where L1 is: keys and committees come from there.
    pub l1: L1Settings,
    /// Whom the connections that it opens trust over TLS, and what they show.
    #[serde(default)]
    pub tls: TlsSettings,
    /// Where traces of envelopes go.
    #[serde(default)]
    pub traces: TraceSettings,
    /// Which backend encrypts hints again, and on how many threads.
    #[serde(default)]
    pub backend: BackendSettings,
    /// The account whose key proves to the sequencers that this is one of their gateways: they name it in `gateways`.
    pub hello_key: KeySource,
    /// The Redis server over which addresses and payers are counted together with other gateways; none without a URL.
    #[serde(default)]
    pub redis: RedisSettings,
    /// Following and reads, as in a relay.
    pub relay: RelayConfig,
    /// What it does besides.
    #[serde(default)]
    pub gateway: GatewayConfig,
}

impl RelaySettings {
    /// Puts a relay together, as a gateway where `gateway` makes one.
    async fn start_with(
        self,
        gateway: impl FnOnce(&ChainConfig) -> Result<Option<GatewayDeps>>,
    ) -> Result<GatewayHandle> {
        let chain = load_chain(&self.chain)?;
        let l1 = Arc::new(self.l1.connect(&chain).await?);
        let parameters = load_parameters(&self.parameters, &self.backend, l1.clone()).await?;
        let backend = self.backend.backend()?;
        let gateway = gateway(&chain)?;
        Ok(Relay::start(self.relay, RelayDeps { chain, parameters, backend, l1 }, gateway).await?)
    }
}

impl Role for RelaySettings {
    const NAME: &'static str = "relay";
    type Running = GatewayHandle;

    fn tls(&self) -> &TlsSettings {
        &self.tls
    }

    fn faults(&self) -> Vec<anyhow::Error> {
        fault_in("relay", self.relay.check()).into_iter().collect()
    }

    async fn start(self, _: bool) -> Result<GatewayHandle> {
        self.start_with(|_| Ok(None)).await
    }
}

impl Role for GatewaySettings {
    const NAME: &'static str = "gateway";
    type Running = GatewayHandle;

    fn tls(&self) -> &TlsSettings {
        &self.tls
    }

    fn traces(&self) -> Option<&TraceSettings> {
        Some(&self.traces)
    }

    fn faults(&self) -> Vec<anyhow::Error> {
        let of_relay = fault_in("relay", self.relay.check());
        let of_redis = self.redis.options("").err().map(anyhow::Error::from);
        of_relay.into_iter().chain(fault_in("gateway", self.gateway.check())).chain(of_redis).collect()
    }

    async fn start(self, _: bool) -> Result<GatewayHandle> {
        let Self { chain, parameters, l1, tls, traces: _, backend, hello_key, redis, relay, gateway } = self;
        let settings = RelaySettings { chain, parameters, l1, tls, backend, relay };
        let gateway = |chain: &ChainConfig| {
            let redis = redis_options(&redis, chain)?;
            let hello_key = Arc::new(hello_key.open().context("hello_key")?);
            let clock = Arc::new(SteadyClock::system());
            Ok(Some(GatewayDeps { config: gateway, hello_key, clock, redis, shared: None }))
        };
        settings.start_with(gateway).await
    }
}
