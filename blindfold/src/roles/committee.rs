//! `blindfold committee`.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use blindfold_chain::{L1Reader, L1Submitter};
use blindfold_client::KeySource;
use blindfold_committee::{Member, MemberConfig, MemberDeps, MemberHandle, SteadyClock, key_file};
use blindfold_l1::L1Writer;
use blindfold_otlp::TraceSettings;
use blindfold_tls::TlsSettings;
use serde::{Deserialize, Serialize};

use super::files::read_parameters;
use super::{L1Settings, Role, StoreSettings, load_chain};

/// Settings of a committee member's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitteeSettings {
    /// Path of the chain's settings, `rollup.json`.
    pub chain: PathBuf,
    /// L1, the member's own view.
    pub l1: L1Settings,
    /// Whom the connections that it opens trust over TLS, and what they show.
    #[serde(default)]
    pub tls: TlsSettings,
    /// Where traces of envelopes go.
    #[serde(default)]
    pub traces: TraceSettings,
    /// The public parameters that the key belongs to.
    pub parameters: PathBuf,
    /// The member's key file and its password.
    pub key: KeySource,
    /// Pays for posting certified headers that the sequencer keeps from L1; without one the member leaves that to others.
    #[serde(default)]
    pub posting_key: Option<KeySource>,
    /// Folder of the member's files.
    pub data_dir: PathBuf,
    /// Where its records are.
    #[serde(default)]
    pub store: StoreSettings,
    /// The settings of the member itself.
    pub member: MemberConfig,
}

impl Role for CommitteeSettings {
    const NAME: &'static str = "committee";
    type Running = MemberHandle;

    fn tls(&self) -> &TlsSettings {
        &self.tls
    }

    fn traces(&self) -> Option<&TraceSettings> {
        Some(&self.traces)
    }

    fn faults(&self) -> Vec<anyhow::Error> {
        // Whether the peers are right depends on whose key it is: `Member::start` checks them.
        Vec::new()
    }

    async fn start(self, rebuild_from_l1: bool) -> Result<MemberHandle> {
        let chain = load_chain(&self.chain)?;
        let l1 = Arc::new(self.l1.connect_in(&chain, &self.data_dir).await?);
        let parameters = read_parameters(&self.parameters)?;
        let key = {
            let password = self.key.password()?;
            key_file::open(&self.key.file, password.as_bytes(), &parameters)
                .with_context(|| format!("key.file = {}", self.key.file.display()))?
        };
        let account = self.posting_key.as_ref().map(KeySource::open).transpose().context("posting_key")?;
        let writer = account.map(|key| L1Writer::new(l1.as_ref().clone(), key));
        let deps = MemberDeps {
            poster: writer.map(|writer| Arc::new(writer) as Arc<dyn L1Submitter>),
            store: self.store.open(&self.data_dir).await?,
            rebuild: rebuild_from_l1.then(|| l1.clone() as Arc<dyn L1Reader>),
            l1,
            key,
            clock: Arc::new(SteadyClock::system()),
            chain,
        };
        Ok(Member::start(self.member, deps).await?)
    }
}
