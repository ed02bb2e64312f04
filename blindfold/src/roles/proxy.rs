//! `blindfold proxy`.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use blindfold_client::{KeySource, Proxy, ProxyConfig};
use blindfold_otlp::TraceSettings;
use blindfold_protocol::B256;
use blindfold_tls::TlsSettings;
use serde::{Deserialize, Serialize};

use super::{L1Settings, Role, fault_in, load_chain};

/// Settings of the encrypting proxy's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxySettings {
    /// Path of the chain's settings, `rollup.json`.
    pub chain: PathBuf,
    /// L1: the committee's key comes from there.
    pub l1: L1Settings,
    /// Whom the connections that it opens trust over TLS, and what they show.
    #[serde(default)]
    pub tls: TlsSettings,
    /// Where traces of envelopes go.
    #[serde(default)]
    pub traces: TraceSettings,
    /// Pays the ordering fees of every envelope the proxy makes.
    pub fee_key: KeySource,
    /// A hash of the committee's key that the user has from elsewhere; the key on L1 must have it, too.
    pub pinned_key_hash: Option<B256>,
    /// The settings of the proxy itself.
    #[serde(default)]
    pub proxy: ProxyConfig,
}

impl Role for ProxySettings {
    const NAME: &'static str = "proxy";
    type Running = Proxy;

    fn tls(&self) -> &TlsSettings {
        &self.tls
    }

    fn traces(&self) -> Option<&TraceSettings> {
        Some(&self.traces)
    }

    fn faults(&self) -> Vec<anyhow::Error> {
        fault_in("proxy", self.proxy.validate()).into_iter().collect()
    }

    async fn start(self, _: bool) -> Result<Proxy> {
        let chain = load_chain(&self.chain)?;
        let l1 = Arc::new(self.l1.connect(&chain).await?);
        let fee_key = self.fee_key.open().context("fee_key")?;
        Ok(Proxy::start(self.proxy, (*chain).clone(), fee_key, l1, self.pinned_key_hash).await?)
    }
}
