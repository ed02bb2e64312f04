//! `blindfold full-node`.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use blindfold_full_node::{FullNode, FullNodeConfig, FullNodeDeps};
use serde::{Deserialize, Serialize};

use super::{
    BackendSettings, ExecutionSettings, L1Settings, asked_to_stop, load_chain, load_parameters, opened_store,
    tables,
};

/// Settings of a full node's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FullNodeSettings {
    /// The chain's settings, `rollup.json`.
    pub chain: PathBuf,
    /// The committees' parameter files.
    pub parameters: Vec<PathBuf>,
    /// L1, the node's own view.
    pub l1: L1Settings,
    /// The node's own execution client.
    pub execution: ExecutionSettings,
    /// Folder of the node's files.
    pub data_dir: PathBuf,
    /// Heavy cryptography.
    #[serde(default)]
    pub backend: BackendSettings,
    /// The role's own settings.
    pub full_node: FullNodeConfig,
}

impl FullNodeSettings {
    /// Runs until asked to stop.
    ///
    /// # Errors
    /// When it cannot start.
    pub async fn run(self) -> Result<()> {
        self.full_node.validate()?;
        let chain = load_chain(&self.chain)?;
        let l1 = Arc::new(self.l1.connect(&chain).await?);
        let parameters = load_parameters(&self.parameters, &self.backend, &*l1).await?;
        let backend = self.backend.backend()?;
        // With fewer members than the threshold the node decrypts nothing by itself.
        let sets = tables::wanted(&parameters, |epoch| {
            let named = self.full_node.members.iter().filter(|entry| epoch.member(entry.member).is_some());
            named.count() >= usize::from(epoch.threshold)
        });
        let deps = FullNodeDeps {
            store: opened_store(&self.data_dir)?,
            l1,
            client: Arc::new(self.execution.client()?),
            parameters,
            backend: Arc::clone(&backend),
            chain,
        };
        let handle = FullNode::start(self.full_node, deps).await?;
        tables::provide_in_background(&self.data_dir, sets, backend.name(), tables::Lines::AtFirstUse);
        asked_to_stop().await?;
        handle.shutdown().await;
        Ok(())
    }
}
