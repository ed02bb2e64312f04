//! `blindfold committee`.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result, bail};
use blindfold_client::KeySource;
use blindfold_committee::{Member, MemberConfig, MemberDeps, key_file, system_clock};
use serde::{Deserialize, Serialize};

use super::{L1Settings, asked_to_stop, load_chain, opened_store};

/// Settings of a committee member's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitteeSettings {
    /// The chain's settings, `rollup.json`.
    pub chain: PathBuf,
    /// L1, the member's own view.
    pub l1: L1Settings,
    /// The member's key file and its password.
    pub key: KeySource,
    /// Folder of the member's files.
    pub data_dir: PathBuf,
    /// The role's own settings.
    pub member: MemberConfig,
}

impl CommitteeSettings {
    /// Runs until asked to stop.
    ///
    /// # Errors
    /// When it cannot start.
    pub async fn run(self) -> Result<()> {
        let chain = load_chain(&self.chain)?;
        let l1 = Arc::new(self.l1.connect_in(&chain, &self.data_dir).await?);
        let public = key_file::read_public(&self.key.file).context("key.file")?;
        let key = {
            let password = self.key.password()?;
            key_file::open(&self.key.file, password.as_bytes(), public.parameters_hash).context("key.file")?
        };
        let deps = MemberDeps { store: opened_store(&self.data_dir)?, l1, key, clock: system_clock(), chain };
        let mut handle = Member::start(self.member, deps).await?;
        let failed = tokio::select! {
            stopped = asked_to_stop() => {
                stopped?;
                false
            }
            () = handle.failed() => true,
        };
        handle.stop().await;
        if failed {
            bail!("a part of the member ended by itself; its log says why");
        }
        Ok(())
    }
}
