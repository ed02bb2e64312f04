//! `blindfold hint-publisher`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use blindfold_hint_publisher::{HintPublisher, HintPublisherConfig, HintPublisherDeps};
use serde::{Deserialize, Serialize};

use super::{BackendSettings, L1Settings, asked_to_stop, load_chain, load_parameters};

/// Settings of the helper's process. It keeps nothing on disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HintPublisherSettings {
    /// The chain's settings, `rollup.json`.
    pub chain: PathBuf,
    /// The committees' parameter files.
    pub parameters: Vec<PathBuf>,
    /// L1.
    pub l1: L1Settings,
    /// Heavy cryptography.
    #[serde(default)]
    pub backend: BackendSettings,
    /// The role's own settings.
    pub hint_publisher: HintPublisherConfig,
}

impl HintPublisherSettings {
    /// Runs until asked to stop.
    ///
    /// # Errors
    /// When it cannot start.
    pub async fn run(self) -> Result<()> {
        let chain = load_chain(&self.chain)?;
        let l1 = self.l1.connect(&chain).await?;
        let parameters = load_parameters(&self.parameters, &l1).await?;
        let deps = HintPublisherDeps { chain, parameters, backend: self.backend.backend()? };
        let mut handle = HintPublisher::start(self.hint_publisher, deps).await?;
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
