//! `blindfold sequencer`.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result, anyhow, bail, ensure};
use blindfold_bte::Backend;
use blindfold_chain::{HeaderSigner, KeySigner, L1Reader, L1Submitter, ParameterSet, RemoteSigner};
use blindfold_client::KeySource;
use blindfold_l1::{DataPolicy, L1Client, L1Writer};
use blindfold_otlp::TraceSettings;
use blindfold_protocol::{Address, ChainConfig, Party};
use blindfold_rpc::{Introduction, RoleBase, RunningRole};
use blindfold_sequencer::{
    CandidateDeps, CandidateHandle, Clock, CommitteeClient, Prepare, Sequencer, SequencerConfig,
    SequencerDeps, SequencerHandle, SteadyClock, introduction,
};
use blindfold_store::{Candidate, SqlStore, Standby, StoreUrl};
use blindfold_tls::TlsSettings;
use serde::{Deserialize, Serialize};

use super::{
    BackendSettings, ExecutionSettings, L1Settings, Role, StoreSettings, fault_in, l1::archive_token,
    load_chain, load_parameters,
};

/// Settings of the sequencer's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequencerSettings {
    /// Path of the chain's settings, `rollup.json`.
    pub chain: PathBuf,
    /// Paths of the committees' parameter files, one for each epoch.
    pub parameters: Vec<PathBuf>,
    /// Files whose first lines are the tokens that the archives of `l1.archive_urls` want to see, one for each in their order;
    /// empty: none wants one.
    #[serde(default)]
    pub archive_token_files: Vec<PathBuf>,
    /// Where L1 is, and how often it is asked.
    pub l1: L1Settings,
    /// Whom the connections that it opens trust over TLS, and what they show.
    #[serde(default)]
    pub tls: TlsSettings,
    /// Where traces of envelopes go.
    #[serde(default)]
    pub traces: TraceSettings,
    /// Where the execution client is.
    pub execution: ExecutionSettings,
    /// The key that signs headers and promises, in this process; or `signer`.
    pub signing_key: Option<KeySource>,
    /// The process that signs headers and promises instead.
    pub signer: Option<RemoteSignerSettings>,
    /// Pays for postings and answers on L1; needed unless `sequencer.posting.enabled` is false.
    pub posting_key: Option<KeySource>,
    /// Where its records are.
    #[serde(default)]
    pub store: StoreSettings,
    /// Several sequencers on one PostgreSQL database, of which one leads.
    pub failover: Option<FailoverSettings>,
    /// Which backend does the heavy cryptography, and on how many threads.
    #[serde(default)]
    pub backend: BackendSettings,
    /// The settings of the sequencer itself.
    #[serde(default)]
    pub sequencer: SequencerConfig,
}

/// Where the signer is, a process of its own that has the sequencer's key (`blindfold signer`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteSignerSettings {
    /// Its `https://` URL. The certificate of `[tls]` is shown to it.
    pub url: String,
    /// Address of its key, which L1 names as the sequencer's. Signatures of another are refused.
    pub address: Address,
    /// How long it may take to answer, in milliseconds: 100 to 60,000.
    #[serde(default = "default_signer_timeout_ms")]
    pub timeout_ms: u64,
}

const fn default_signer_timeout_ms() -> u64 {
    2_000
}

impl RemoteSignerSettings {
    fn faults(&self, tls: &TlsSettings) -> Vec<anyhow::Error> {
        let mut faults = Vec::new();
        if !self.url.starts_with("https://") {
            faults.push(anyhow!("signer.url: the signer is asked over TLS, by an https:// URL"));
        }
        if tls.cert_file.is_none() {
            faults.push(anyhow!(
                "tls.cert_file: the signer wants a certificate; name that of this sequencer, and its key in tls.key_file"
            ));
        }
        if !(100..=60_000).contains(&self.timeout_ms) {
            faults.push(anyhow!("signer.timeout_ms = {}: it has to be 100 to 60000", self.timeout_ms));
        }
        faults
    }
}

/// Who one of several sequencers is to the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailoverSettings {
    /// Where clients reach this sequencer, as those that stand by tell them.
    pub url: String,
    /// How long this sequencer keeps the store without a sign of life, in milliseconds: 1,000 to 60,000.
    #[serde(default = "default_lease_ms")]
    pub lease_ms: u64,
}

/// How long a sequencer keeps the store without a sign of life where nothing is set, in milliseconds.
pub const DEFAULT_LEASE_MS: u64 = 3_000;

const fn default_lease_ms() -> u64 {
    DEFAULT_LEASE_MS
}

impl FailoverSettings {
    fn candidate(&self) -> Candidate {
        Candidate { url: self.url.clone(), lease: Duration::from_millis(self.lease_ms) }
    }

    fn faults(&self, store: &StoreSettings) -> Vec<anyhow::Error> {
        let mut faults = Vec::new();
        if !(1_000..=60_000).contains(&self.lease_ms) {
            faults.push(anyhow!("failover.lease_ms = {}: it has to be 1000 to 60000", self.lease_ms));
        }
        if !["http://", "https://"].iter().any(|scheme| self.url.starts_with(scheme)) {
            faults.push(anyhow!("failover.url: clients reach this sequencer by an http:// or https:// URL"));
        }
        let on_server =
            store.url.as_ref().is_some_and(|url| matches!(url.parse(), Ok(StoreUrl::Postgres(_))));
        if !on_server {
            faults.push(anyhow!(
                "failover: several sequencers share one PostgreSQL database: set store.url = \"postgres://…\""
            ));
        }
        faults
    }
}

impl Role for SequencerSettings {
    const NAME: &'static str = "sequencer";
    type Running = RunningSequencer;

    fn tls(&self) -> &TlsSettings {
        &self.tls
    }

    fn traces(&self) -> Option<&TraceSettings> {
        Some(&self.traces)
    }

    fn faults(&self) -> Vec<anyhow::Error> {
        let mut faults: Vec<anyhow::Error> =
            fault_in("sequencer", self.sequencer.validate()).into_iter().collect();
        faults.extend(posting_faults(&self.sequencer, self.posting_key.as_ref(), &self.l1));
        let (tokens, archives) = (self.archive_token_files.len(), self.l1.archive_urls.len());
        if tokens != 0 && tokens != archives {
            faults.push(anyhow!(
                "archive_token_files: {tokens} for the {archives} archives of l1.archive_urls: name one for each, in their \
                 order, or none"
            ));
        }
        match (&self.signing_key, &self.signer) {
            (Some(_), None) => {}
            (None, Some(signer)) => faults.extend(signer.faults(&self.tls)),
            (None, None) => faults.push(anyhow!(
                "signing_key: who signs is missing; name the key file, or the process that has the key in [signer]"
            )),
            (Some(_), Some(_)) => faults.push(anyhow!(
                "signer: the key is in this process (signing_key) or in another one (signer): leave one of them out"
            )),
        }
        faults.extend(self.failover.iter().flat_map(|failover| failover.faults(&self.store)));
        if self.sequencer.members.is_empty() {
            faults.push(anyhow!(
                "sequencer.members: the committee's members are asked what was signed before; name them"
            ));
        }
        faults
    }

    async fn start(self, rebuild_from_l1: bool) -> Result<RunningSequencer> {
        let chain = load_chain(&self.chain)?;
        let tokens = self.archive_token_files.iter().map(|file| archive_token(file));
        let tokens = tokens.collect::<Result<Vec<_>>>().context("archive_token_files")?;
        let l1 = self.l1.connect_to_write(&chain, &self.sequencer.data_dir, tokens).await?;
        let l1 = Arc::new(l1);
        let parameters = load_parameters(&self.parameters, &self.backend, l1.clone()).await?;
        let parts = Parts { chain, l1, parameters, backend: self.backend.backend()?, rebuild_from_l1 };
        let Some(failover) = &self.failover else {
            let store = self.store.open(&self.sequencer.data_dir).await?;
            let deps = parts.deps(&self, store)?;
            return Ok(RunningSequencer::Alone(Sequencer::start(self.sequencer, deps).await?));
        };
        ensure!(
            !rebuild_from_l1,
            "--rebuild-from-l1 goes back with one sequencer alone: stop the others and start one without [failover]"
        );
        let StoreUrl::Postgres(server) = self.store.at(&self.sequencer.data_dir)? else {
            bail!("failover: store.url names no PostgreSQL database");
        };
        let standby = Standby::new(server, failover.candidate());
        let (execution, config) = (Arc::new(self.execution.client()?), self.sequencer.clone());
        let prepare: Prepare = Box::new(move |store| {
            // Anew each time: what an account did meanwhile, another process did.
            let deps = parts.deps(&self, store).map_err(|error| format!("{error:#}").into());
            Box::pin(async { deps })
        });
        let deps = CandidateDeps { standby, execution, prepare };
        Ok(RunningSequencer::Candidate(Sequencer::stand_by(config, deps)?))
    }
}

/// Who signs, and how the sequencer introduces itself to a server.
struct Signing {
    signer: Arc<dyn HeaderSigner>,
    introduce: Box<dyn Fn(Party) -> Introduction>,
}

impl SequencerSettings {
    /// Signs in this process or in another one, in the term of this process's store.
    fn signing(&self, chain: &ChainConfig, clock: &Arc<dyn Clock>, term: Option<u64>) -> Result<Signing> {
        let deployment = chain.deployment;
        match (&self.signing_key, &self.signer) {
            (Some(key), None) => {
                let key = Arc::new(key.open().context("signing_key")?);
                let signer = Arc::new(KeySigner::new(Arc::clone(&key), deployment));
                let clock = Arc::clone(clock);
                let introduce = Box::new(move |server| introduction(&key, deployment, &clock, server));
                Ok(Signing { signer, introduce })
            }
            (None, Some(RemoteSignerSettings { url, address, timeout_ms })) => {
                let signer = RemoteSigner::new(url, *timeout_ms, *address, deployment, term);
                let signer = Arc::new(signer.context("signer.url")?);
                let introducing = Arc::clone(&signer);
                Ok(Signing { signer, introduce: Box::new(move |server| introducing.introduction(server)) })
            }
            _ => bail!("signing_key, signer: one of them says who signs"),
        }
    }
}

/// What does not change while a process runs.
struct Parts {
    chain: Arc<ChainConfig>,
    l1: Arc<L1Client>,
    parameters: Arc<ParameterSet>,
    backend: Arc<dyn Backend>,
    rebuild_from_l1: bool,
}

impl Parts {
    /// What a sequencer with these settings works with on this store.
    fn deps(&self, settings: &SequencerSettings, store: Arc<SqlStore>) -> Result<SequencerDeps> {
        let SequencerSettings { sequencer, .. } = settings;
        let (chain, l1) = (Arc::clone(&self.chain), Arc::clone(&self.l1));
        let posting_key =
            settings.posting_key.as_ref().map(KeySource::open).transpose().context("posting_key")?;
        // One for all of the account's transactions, so that their nonces do not collide.
        let writer = posting_key
            .map(|key| Arc::new(L1Writer::new((*l1).clone(), key).with_data_policy(sequencer.posting.data)));
        // `OutputRegistry` takes claims from the sequencer's own account only.
        let clock: Arc<dyn Clock> = Arc::new(SteadyClock::system());
        let Signing { signer, introduce } = settings.signing(&chain, &clock, store.term())?;
        let claimant = writer.clone().filter(|writer| writer.address() == signer.address());
        if let (Some(writer), None, true) = (&writer, &claimant, sequencer.outputs.enabled) {
            tracing::warn!(
                posting = %writer.address(),
                sequencer = %signer.address(),
                "the posting key is not the sequencer's: no outputs are claimed on L1"
            );
        }
        let committee = CommitteeClient::new(&sequencer.members, sequencer.recovery.timeout_ms, introduce)
            .context("sequencer.members")?;
        Ok(SequencerDeps {
            store,
            committee: Arc::new(committee),
            settlement: Some(l1.clone()),
            rebuild: self.rebuild_from_l1.then(|| l1.clone() as Arc<dyn L1Reader>),
            l1,
            poster: writer.clone().map(|writer| writer as Arc<dyn L1Submitter>),
            accusations: writer.clone().map(|writer| writer as Arc<dyn L1Submitter>),
            outputs: claimant.map(|writer| writer as Arc<dyn L1Submitter>),
            execution: Arc::new(settings.execution.client()?),
            signer,
            parameters: Arc::clone(&self.parameters),
            backend: Arc::clone(&self.backend),
            clock,
            chain,
        })
    }
}

/// A sequencer, or one of several.
pub enum RunningSequencer {
    /// The only one on its store.
    Alone(SequencerHandle),
    /// One of several, which leads or stands by.
    Candidate(CandidateHandle),
}

impl RunningRole for RunningSequencer {
    fn base(&self) -> &RoleBase {
        match self {
            Self::Alone(handle) => handle.base(),
            Self::Candidate(handle) => handle.base(),
        }
    }

    async fn shutdown(self) {
        match self {
            Self::Alone(handle) => handle.shutdown().await,
            Self::Candidate(handle) => handle.shutdown().await,
        }
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
    if posting.enabled && posting.data == DataPolicy::Blobs && l1.beacon_url.is_none() {
        faults.push(anyhow!(
            "l1.beacon_url: sequencer.posting.data = \"blobs\" needs a beacon node, to read back what was posted"
        ));
    }
    if posting.enabled && posting.data == DataPolicy::Archive && l1.archive_urls.is_empty() {
        faults.push(anyhow!(
            "l1.archive_urls: sequencer.posting.data = \"archive\" needs an archive that takes the data"
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
        sequencer.posting.data = DataPolicy::Blobs;
        let refused = told(&sequencer, Some(&key), &l1);
        assert!(refused.len() == 1 && refused[0].contains("l1.beacon_url"), "{refused:?}");
        assert_eq!(told(&sequencer, None, &l1).len(), 2, "all at once");
        l1.beacon_url = Some("http://127.0.0.1:2".to_owned());
        assert_eq!(told(&sequencer, Some(&key), &l1), [""; 0]);
    }

    fn settings(text: &str) -> Vec<String> {
        let text = format!(
            "chain = 'r'\nparameters = ['p']\n[l1]\nurl = 'http://a'\n[execution]\nhttp_url = 'http://b'\n\
             engine_url = 'http://b'\njwt_secret = 'j'\n[posting_key]\nfile = 'k'\n\
             [sequencer]\nmembers = [{{ member = 1, url = 'http://c' }}]\n{text}"
        );
        let settings: SequencerSettings = toml::from_str(&text).unwrap();
        settings.faults().iter().map(|fault| format!("{fault:#}")).collect()
    }

    #[test]
    fn the_key_is_here_or_in_another_process() {
        let key = "[signing_key]\nfile = 'k'\n";
        let address = "0x4200000000000000000000000000000000000011";
        let signer = format!("[signer]\nurl = 'https://s'\naddress = '{address}'\n");
        let tls = "[tls]\ncert_file = 'c'\nkey_file = 'k'\n";
        assert_eq!(settings(key), [""; 0]);
        assert_eq!(settings(&format!("{signer}{tls}")), [""; 0]);
        let told = |text: &str| settings(text).concat();
        assert!(told("").contains("signing_key: who signs is missing"), "{}", told(""));
        assert!(told(&format!("{signer}{tls}{key}")).contains("leave one of them out"));
        assert!(told(&signer).contains("tls.cert_file: the signer wants a certificate"));
        let plain = format!("{signer}{tls}").replace("https", "http");
        assert!(told(&plain).contains("signer.url: the signer is asked over TLS"));
        let impatient = format!("{signer}timeout_ms = 1\n{tls}");
        assert!(told(&impatient).contains("signer.timeout_ms = 1: it has to be 100 to 60000"));
    }

    #[test]
    fn each_archive_has_a_token_or_none_has() {
        let told = |tokens: &str| {
            let text = format!(
                "chain = 'r'\nparameters = ['p']\narchive_token_files = {tokens}\n[l1]\nurl = 'http://a'\n\
                 archive_urls = ['http://d', 'http://e']\n[execution]\nhttp_url = 'http://b'\n\
                 engine_url = 'http://b'\njwt_secret = 'j'\n[posting_key]\nfile = 'k'\n[signing_key]\nfile = 'k'\n\
                 [sequencer]\nmembers = [{{ member = 1, url = 'http://c' }}]\n"
            );
            let settings: SequencerSettings = toml::from_str(&text).unwrap();
            settings.faults().iter().map(|fault| format!("{fault:#}")).collect::<Vec<_>>()
        };
        assert_eq!(told("[]"), [""; 0]);
        assert_eq!(told("['one', 'two']"), [""; 0]);
        let short = told("['one']").concat();
        assert!(short.starts_with("archive_token_files: 1 for the 2 archives"), "{short}");
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
