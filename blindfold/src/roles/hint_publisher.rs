//! `blindfold hint-publisher`.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result, anyhow};
use blindfold_client::KeySource;
use blindfold_hint_publisher::{
    HintPublisher, HintPublisherConfig, HintPublisherDeps, HintPublisherHandle, L1PostingDeps,
    l1::L1PostingConfig,
};
use blindfold_l1::{DataPlace, L1Client, L1Writer};
use blindfold_otlp::TraceSettings;
use blindfold_redis::RedisSettings;
use blindfold_tls::TlsSettings;
use serde::{Deserialize, Serialize};

use super::{
    BackendSettings, L1Settings, Role, Wei, fault_in, load_chain, load_parameters, redis_options, tables,
};

/// Settings of the hint publisher's process. What it keeps on disk can be lost.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HintPublisherSettings {
    /// Path of the chain's settings, `rollup.json`.
    pub chain: PathBuf,
    /// Paths of the committees' parameter files, one for each epoch.
    pub parameters: Vec<PathBuf>,
    /// Where L1 is.
    pub l1: L1Settings,
    /// Whom the connections that it opens trust over TLS, and what they show.
    #[serde(default)]
    pub tls: TlsSettings,
    /// Where traces of envelopes go.
    #[serde(default)]
    pub traces: TraceSettings,
    /// Folder of the hint publisher's files: tables, computed again if missing.
    #[serde(default = "default_data_dir")]
    pub data_dir: PathBuf,
    /// Which backend does the heavy cryptography, and on how many threads.
    #[serde(default)]
    pub backend: BackendSettings,
    /// The account whose key proves to sequencer and members who this hint publisher is; that of `l1_posting` where none is given.
    /// Their settings name it under `hint_publishers`, and then keep places for it.
    #[serde(default)]
    pub hello_key: Option<KeySource>,
    /// The Redis server over which batches are shared with other hint publishers; none without a URL.
    #[serde(default)]
    pub redis: RedisSettings,
    /// Whether and how hints are posted to L1.
    #[serde(default)]
    pub l1_posting: L1PostingSettings,
    /// The settings of the hint publisher itself.
    pub hint_publisher: HintPublisherConfig,
}

/// Posting hints to L1. One hint publisher of a chain has to; more may.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct L1PostingSettings {
    /// Whether this hint publisher posts.
    pub enabled: bool,
    /// Pays for postings, and its bond answers for them; needed when enabled.
    pub key: Option<KeySource>,
    /// Up to what the bond is filled at the start; one bond answers for all postings.
    pub bond_wei: Wei,
    /// Where the hints go. In blobs they are read back through a beacon node only, for some weeks: longer than they can
    /// be challenged.
    pub data: DataPlace,
    /// Pause between two looks at L1, in milliseconds.
    pub interval_ms: u64,
    /// How long a final run is left to other hint publishers first, in milliseconds.
    pub takeover_ms: u64,
    /// First pause after trouble, in milliseconds.
    pub retry_ms: u64,
    /// Longest pause after trouble, in milliseconds.
    pub max_retry_ms: u64,
}

impl Default for L1PostingSettings {
    fn default() -> Self {
        let L1PostingConfig { bond_wei, interval_ms, takeover_ms, retry_ms, max_retry_ms } =
            L1PostingConfig::default();
        let (enabled, key, bond_wei, data) = (false, None, Wei(bond_wei), DataPlace::default());
        Self { enabled, key, bond_wei, data, interval_ms, takeover_ms, retry_ms, max_retry_ms }
    }
}

impl L1PostingSettings {
    fn deps(&self, l1: &L1Client) -> Result<Option<L1PostingDeps>> {
        if !self.enabled {
            tracing::info!("l1_posting.enabled is false: another hint publisher has to post hints to L1");
            return Ok(None);
        }
        let key = self.key.as_ref().context("l1_posting.enabled needs l1_posting.key")?;
        let key = key.open().context("l1_posting.key")?;
        let writer = L1Writer::new(l1.clone(), key).with_data_in(self.data);
        Ok(Some(L1PostingDeps { config: self.config(), l1: Arc::new(writer) }))
    }

    fn config(&self) -> L1PostingConfig {
        L1PostingConfig {
            bond_wei: self.bond_wei.0,
            interval_ms: self.interval_ms,
            takeover_ms: self.takeover_ms,
            retry_ms: self.retry_ms,
            max_retry_ms: self.max_retry_ms,
        }
    }
}

fn default_data_dir() -> PathBuf {
    PathBuf::from("hint-publisher-data")
}

impl Role for HintPublisherSettings {
    const NAME: &'static str = "hint-publisher";
    type Running = HintPublisherHandle;

    fn tls(&self) -> &TlsSettings {
        &self.tls
    }

    fn traces(&self) -> Option<&TraceSettings> {
        Some(&self.traces)
    }

    fn faults(&self) -> Vec<anyhow::Error> {
        let mut faults: Vec<anyhow::Error> =
            fault_in("hint_publisher", self.hint_publisher.check()).into_iter().collect();
        faults.extend(self.redis.options("").err().map(anyhow::Error::from));
        if self.l1_posting.enabled {
            faults.extend(fault_in("l1_posting", self.l1_posting.config().check()));
            if self.l1_posting.key.is_none() {
                faults.push(anyhow!("l1_posting.key: l1_posting.enabled needs it; name its key file"));
            }
        }
        faults
    }

    async fn start(self, _: bool) -> Result<HintPublisherHandle> {
        let chain = load_chain(&self.chain)?;
        let l1 = self.l1.connect(&chain).await?;
        let parameters = load_parameters(&self.parameters, &self.backend, Arc::new(l1.clone())).await?;
        let backend = self.backend.backend()?;
        let sets = tables::wanted(&parameters, |_| true);
        let posting_key = self.l1_posting.key.as_ref().filter(|_| self.l1_posting.enabled);
        let hello_key = self.hello_key.as_ref().or(posting_key);
        let hello_key = hello_key.map(KeySource::open).transpose().context("hello_key")?.map(Arc::new);
        let l1_posting = self.l1_posting.deps(&l1)?;
        let backend_here = backend.clone();
        let redis = redis_options(&self.redis, &chain)?;
        let deps =
            HintPublisherDeps { chain, parameters, backend: backend_here, hello_key, redis, l1_posting };
        let handle = HintPublisher::start(self.hint_publisher, deps).await?;
        // Beside the running hint publisher: a batch that comes earlier computes what it needs, as ever.
        tables::provide_in_background(&self.data_dir, sets, backend, tables::Lines::OfTheNewest);
        Ok(handle)
    }
}
