//! `blindfold sequencer`.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result, anyhow};
use blindfold_chain::{KeySigner, L1Reader, L1Submitter};
use blindfold_client::KeySource;
use blindfold_l1::{DataPlace, L1Writer};
use blindfold_sequencer::{
    Clock, CommitteeClient, Sequencer, SequencerConfig, SequencerDeps, SequencerHandle, SteadyClock,
    introduction,
};
use serde::{Deserialize, Serialize};

use super::{
    BackendSettings, ExecutionSettings, L1Settings, Role, StoreSettings, fault_in, load_chain,
    load_parameters,
};

/// Settings of the sequencer's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequencerSettings {
    /// Path of the chain's settings, `rollup.json`.
    pub chain: PathBuf,
    /// Paths of the committees' parameter files, one for each epoch.
    pub parameters: Vec<PathBuf>,
    /// Where L1 is, and how often it is asked.
    pub l1: L1Settings,
    /// Where the execution client is.
    pub execution: ExecutionSettings,
    /// The key that signs headers and promises.
    pub signing_key: KeySource,
    /// Pays for postings and answers on L1; needed unless `sequencer.posting.enabled` is false.
    pub posting_key: Option<KeySource>,
    /// Where its records are.
    #[serde(default)]
    pub store: StoreSettings,
    /// Which backend does the heavy cryptography, and on how many threads.
    #[serde(default)]
    pub backend: BackendSettings,
    /// The settings of the sequencer itself.
    #[serde(default)]
    pub sequencer: SequencerConfig,
}

impl Role for SequencerSettings {
    const NAME: &'static str = "sequencer";
    type Running = SequencerHandle;

    fn faults(&self) -> Vec<anyhow::Error> {
        let mut faults: Vec<anyhow::Error> =
            fault_in("sequencer", self.sequencer.validate()).into_iter().collect();
        faults.extend(posting_faults(&self.sequencer, self.posting_key.as_ref(), &self.l1));
        if self.sequencer.members.is_empty() {
            faults.push(anyhow!(
                "sequencer.members: the committee's members are asked what was signed before; name them"
            ));
        }
        faults
    }

    async fn start(self, rebuild_from_l1: bool) -> Result<SequencerHandle> {
        let chain = load_chain(&self.chain)?;
        let posting_key =
            self.posting_key.as_ref().map(KeySource::open).transpose().context("posting_key")?;
        let l1 = self.l1.connect_in(&chain, &self.sequencer.data_dir).await?;
        let parameters = load_parameters(&self.parameters, &self.backend, Arc::new(l1.clone())).await?;
        let store = self.store.open(&self.sequencer.data_dir).await?;
        let place = self.sequencer.posting.data;
        // One for all of the account's transactions, so that their nonces do not collide.
        let writer = posting_key.map(|key| Arc::new(L1Writer::new(l1.clone(), key).with_data_in(place)));
        // `OutputRegistry` takes claims from the sequencer's own account only.
        let key = Arc::new(self.signing_key.open().context("signing_key")?);
        let claimant = writer.clone().filter(|writer| writer.address() == key.address());
        if let (Some(writer), None, true) = (&writer, &claimant, self.sequencer.outputs.enabled) {
            tracing::warn!(
                posting = %writer.address(),
                sequencer = %key.address(),
                "the posting key is not the sequencer's: no outputs are claimed on L1"
            );
        }
        let clock: Arc<dyn Clock> = Arc::new(SteadyClock::system());
        let introduce = |server| introduction(&key, chain.deployment, &clock, server);
        let committee =
            CommitteeClient::new(&self.sequencer.members, self.sequencer.recovery.timeout_ms, introduce)
                .context("sequencer.members")?;
        let l1 = Arc::new(l1);
        let deps = SequencerDeps {
            store,
            committee: Arc::new(committee),
            settlement: Some(l1.clone()),
            rebuild: rebuild_from_l1.then(|| l1.clone() as Arc<dyn L1Reader>),
            l1,
            poster: writer.clone().map(|writer| writer as Arc<dyn L1Submitter>),
            accusations: writer.clone().map(|writer| writer as Arc<dyn L1Submitter>),
            outputs: claimant.map(|writer| writer as Arc<dyn L1Submitter>),
            execution: Arc::new(self.execution.client()?),
            signer: Arc::new(KeySigner::new(key, chain.deployment)),
            parameters,
            backend: self.backend.backend()?,
            clock,
            chain,
        };
        Ok(Sequencer::start(self.sequencer, deps).await?)
    }
}

/// What posting needs and is not there. Data that cannot be read back counts as lacking: who posts in blobs would post all
/// of it again.
fn posting_faults(
    sequencer: &SequencerConfig,
    key: Option<&KeySource>,
    l1: &L1Settings,
) -> Vec<anyhow::Error> {
    let SequencerConfig { posting, .. } = sequencer;
    let mut faults = Vec::new();
    if posting.enabled && key.is_none() {
        faults.push(anyhow!(
            "posting_key: an account that pays for postings to L1 is missing; name its key file, or set \
             sequencer.posting.enabled = false where others post"
        ));
    }
    if posting.enabled && posting.data == DataPlace::Blobs && l1.beacon_url.is_none() {
        faults.push(anyhow!(
            "l1.beacon_url: sequencer.posting.data = \"blobs\" needs a beacon node, to read back what was posted"
        ));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(sequencer: &SequencerConfig, key: Option<&KeySource>, l1: &L1Settings) -> Vec<String> {
        posting_faults(sequencer, key, l1).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn who_posts_in_blobs_needs_a_beacon_node() {
        let mut sequencer = SequencerConfig::default();
        let mut l1 = L1Settings::new("http://127.0.0.1:1");
        let key = KeySource { file: "posting.json".into(), password_file: None, password_env: None };
        assert_eq!(told(&sequencer, Some(&key), &l1), [""; 0]);
        sequencer.posting.data = DataPlace::Blobs;
        let refused = told(&sequencer, Some(&key), &l1);
        assert!(refused.len() == 1 && refused[0].contains("l1.beacon_url"), "{refused:?}");
        assert_eq!(told(&sequencer, None, &l1).len(), 2, "all at once");
        l1.beacon_url = Some("http://127.0.0.1:2".to_owned());
        assert_eq!(told(&sequencer, Some(&key), &l1), [""; 0]);
    }

    #[test]
    fn who_posts_needs_an_account_that_pays() {
        let (mut sequencer, l1) = (SequencerConfig::default(), L1Settings::new("http://127.0.0.1:1"));
        let refused = told(&sequencer, None, &l1).concat();
        assert!(
            refused.contains("posting_key") && refused.contains("sequencer.posting.enabled"),
            "{refused}"
        );
        sequencer.posting.enabled = false;
        assert_eq!(told(&sequencer, None, &l1), [""; 0]);
    }
}
