//! `blindfold full-node`.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use blindfold_chain::{L1Reader, L1Submitter};
use blindfold_client::KeySource;
use blindfold_full_node::{
    FullNode, FullNodeConfig, FullNodeDeps, JoinDeps, Joined, WatchDeps, watch::WatchConfig,
};
use blindfold_l1::{L1Client, L1Writer};
use blindfold_otlp::TraceSettings;
use blindfold_store::{Store as _, StoreUrl};
use blindfold_tls::{ClientTls, TlsSettings};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    BackendSettings, ExecutionSettings, L1Settings, Role, StoreSettings, fault_in, load_chain,
    load_parameters, tables,
};
use crate::settings::{SettingsArgs, load};

/// Settings of a full node's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FullNodeSettings {
    /// Path of the chain's settings, `rollup.json`.
    pub chain: PathBuf,
    /// Paths of the committees' parameter files, one for each epoch.
    pub parameters: Vec<PathBuf>,
    /// L1, the node's own view.
    pub l1: L1Settings,
    /// Whom the connections that it opens trust over TLS, and what they show.
    #[serde(default)]
    pub tls: TlsSettings,
    /// Where traces of envelopes go.
    #[serde(default)]
    pub traces: TraceSettings,
    /// The node's own execution client.
    pub execution: ExecutionSettings,
    /// Folder of the node's files.
    pub data_dir: PathBuf,
    /// Where its records are.
    #[serde(default)]
    pub store: StoreSettings,
    /// Which backend does the heavy cryptography, and on how many threads.
    #[serde(default)]
    pub backend: BackendSettings,
    /// Whether and how this node watches L1.
    #[serde(default)]
    pub watch: WatchSettings,
    /// The settings of the full node itself.
    pub full_node: FullNodeConfig,
}

/// Watching L1 for wrong hints, wrong outputs and double headers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WatchSettings {
    /// Whether this node watches L1 at all.
    pub enabled: bool,
    /// Pays for showing what is wrong, and takes the rewards; without one the node only tells.
    pub key: Option<KeySource>,
    /// Pause between two looks at L1, in milliseconds.
    pub interval_ms: u64,
    /// Longest pause after trouble, in milliseconds.
    pub max_retry_ms: u64,
}

impl Default for WatchSettings {
    fn default() -> Self {
        let WatchConfig { interval_ms, max_retry_ms } = WatchConfig::default();
        Self { enabled: true, key: None, interval_ms, max_retry_ms }
    }
}

impl WatchSettings {
    fn deps(&self, l1: &L1Client) -> Result<Option<WatchDeps>> {
        if !self.enabled {
            return Ok(None);
        }
        let reporter: Option<Arc<dyn L1Submitter>> = match &self.key {
            Some(key) => Some(Arc::new(L1Writer::new(l1.clone(), key.open().context("watch.key")?))),
            None => None,
        };
        Ok(Some(WatchDeps { config: self.config(), l1: Arc::new(l1.clone()), reporter }))
    }

    fn config(&self) -> WatchConfig {
        WatchConfig { interval_ms: self.interval_ms, max_retry_ms: self.max_retry_ms }
    }
}

impl Role for FullNodeSettings {
    const NAME: &'static str = "full-node";
    type Running = FullNode;

    fn tls(&self) -> &TlsSettings {
        &self.tls
    }

    fn traces(&self) -> Option<&TraceSettings> {
        Some(&self.traces)
    }

    fn faults(&self) -> Vec<anyhow::Error> {
        let watch = self.watch.enabled.then(|| fault_in("watch", self.watch.config().validate()));
        fault_in("full_node", self.full_node.validate()).into_iter().chain(watch.flatten()).collect()
    }

    async fn start(self, _: bool) -> Result<FullNode> {
        let chain = load_chain(&self.chain)?;
        let l1 = Arc::new(self.l1.connect_in(&chain, &self.data_dir).await?);
        let parameters = load_parameters(&self.parameters, &self.backend, l1.clone()).await?;
        let backend = self.backend.backend()?;
        // With fewer members than the threshold the node decrypts nothing by itself.
        let sets = tables::wanted(&parameters, |epoch| {
            let named = self.full_node.members.iter().filter(|entry| epoch.member(entry.member).is_some());
            named.count() >= usize::from(epoch.threshold)
        });
        let watch = self.watch.deps(&l1)?;
        let posted: Arc<dyn L1Reader> = l1.clone();
        let deps = FullNodeDeps {
            posted: Some(posted),
            settlement: Some(l1.clone()),
            store: self.store.open(&self.data_dir).await?,
            l1,
            client: Arc::new(self.execution.client()?),
            parameters,
            backend: Arc::clone(&backend),
            chain,
            watch,
        };
        let handle = FullNode::start(self.full_node, deps).await?;
        tables::provide_in_background(&self.data_dir, sets, backend, tables::Lines::AtFirstUse);
        Ok(handle)
    }
}

/// How long a join waits for an L1 that is away or behind.
const JOIN_PATIENCE: Duration = Duration::from_secs(120);

/// Takes the batches of a snapshot into the records of a node that does not run.
///
/// # Errors
/// Settings that do not work; a snapshot that cannot be read, or the first batch of it that does not stand.
pub(crate) async fn join(snapshot: &Path, args: &SettingsArgs, json: bool) -> Result<()> {
    let settings = load::<FullNodeSettings>(FullNodeSettings::NAME, args)?;
    ensure!(
        snapshot.is_file(),
        "{} is no file: a snapshot is what `blindfold store backup --out FILE` writes",
        snapshot.display()
    );
    let tls = ClientTls::open(&settings.tls).context("section [tls] of the settings")?;
    ensure!(blindfold_tls::install(tls), "the TLS of this process is settled already: this is a bug");
    let given = StoreUrl::Sqlite(snapshot.to_owned()).open_reader().await;
    let given = given.with_context(|| format!("the snapshot {}", snapshot.display()))?;
    // A word to whoever took the wrong file; the signatures say whose chain it is.
    let role = given.meta("role").await?.unwrap_or_default();
    ensure!(
        role == blindfold_full_node::ROLE.as_bytes(),
        "{} has the records of {:?}, not those of a full node",
        snapshot.display(),
        String::from_utf8_lossy(&role)
    );
    let chain = load_chain(&settings.chain)?;
    // Before anything else of the node's folder is touched: it may be running.
    let store = settings.store.open(&settings.data_dir).await.context("this node's own records")?;
    let l1 = Arc::new(settings.l1.connect_in(&chain, &settings.data_dir).await?);
    let deps = JoinDeps {
        parameters: load_parameters(&settings.parameters, &settings.backend, l1.clone()).await?,
        backend: settings.backend.backend()?,
        patience: JOIN_PATIENCE,
        store,
        chain,
        l1,
    };
    let shows = std::io::stderr().is_terminal() && !json;
    let progress = |joined: &Joined| {
        if shows {
            eprint!("\rbatch {} of {}", joined.through, joined.last);
        }
    };
    let joined = blindfold_full_node::join(&given, deps, progress).await;
    if shows {
        eprintln!();
    }
    let Joined { through, batches, hints, .. } = joined?;
    if json {
        println!("{:#}", json!({ "through": through, "batches": batches, "hints": hints }));
    } else {
        println!(
            "{batches} batches verified, up to number {through}, and the hints of {hints}: start the node"
        );
    }
    Ok(())
}
