//! `blindfold hint-publisher`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use blindfold_hint_publisher::{HintPublisher, HintPublisherConfig, HintPublisherDeps};
use serde::{Deserialize, Serialize};

use super::{BackendSettings, L1Settings, asked_to_stop, load_chain, load_parameters, tables};

/// Settings of the helper's process. What it keeps on disk can be lost.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HintPublisherSettings {
    /// The chain's settings, `rollup.json`.
    pub chain: PathBuf,
    /// The committees' parameter files.
    pub parameters: Vec<PathBuf>,
    /// L1.
    pub l1: L1Settings,
    /// Folder of the helper's files: tables, computed again if missing.
    #[serde(default = "default_data_dir")]
    pub data_dir: PathBuf,
    /// Heavy cryptography.
    #[serde(default)]
    pub backend: BackendSettings,
    /// The role's own settings.
    pub hint_publisher: HintPublisherConfig,
}

fn default_data_dir() -> PathBuf {
    PathBuf::from("hint-publisher-data")
}

impl HintPublisherSettings {
    /// Runs until asked to stop.
    ///
    /// # Errors
    /// When it cannot start.
    pub async fn run(self) -> Result<()> {
        let chain = load_chain(&self.chain)?;
        let l1 = self.l1.connect(&chain).await?;
        let parameters = load_parameters(&self.parameters, &self.backend, &l1).await?;
        let backend = self.backend.backend()?;
        let sets = tables::wanted(&parameters, |_| true);
        let deps = HintPublisherDeps { chain, parameters, backend: backend.clone() };
        let mut handle = HintPublisher::start(self.hint_publisher, deps).await?;
        // Beside the running helper: a batch that comes earlier computes what it needs, as ever.
        tables::provide_in_background(&self.data_dir, sets, backend.name(), tables::Lines::OfTheNewest);
        let failed = tokio::select! {
            stopped = asked_to_stop() => {
                stopped?;
                false
            }
            () = handle.failed() => true,
        };
        handle.stop().await;
        if failed {
            bail!("a part of the helper ended by itself; its log says why");
        }
        Ok(())
    }
}
