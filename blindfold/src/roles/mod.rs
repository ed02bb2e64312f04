//! One file for each role: its settings, and how it is put together from the libraries.

mod committee;
mod coprocessor;
mod files;
pub(crate) mod full_node;
mod gateway;
mod hint_publisher;
pub mod l1;
mod proxy;
mod sequencer;
pub(crate) mod signer;
mod store;
mod tables;
mod wei;

pub use committee::CommitteeSettings;
pub use coprocessor::{CoprocessorSettings, executed_here, load_deployment};
pub use files::{load_chain, load_parameters};
pub use full_node::{FullNodeSettings, WatchSettings};
pub use gateway::{GatewaySettings, RelaySettings};
pub use hint_publisher::{HintPublisherSettings, L1PostingSettings};
pub use l1::L1Settings;
pub use proxy::ProxySettings;
pub use sequencer::{DEFAULT_LEASE_MS, FailoverSettings, RemoteSignerSettings, SequencerSettings};
pub use signer::SignerSettings;
pub use store::{StoreSettings, store_named};
pub use wei::Wei;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use blindfold_bte::Parameters;
use blindfold_engine::{JwtSecret, OpGeth, OpGethConfig};
use blindfold_otlp::{Exporter, TraceSettings};
use blindfold_protocol::ChainConfig;
use blindfold_redis::{RedisOptions, RedisSettings};
use blindfold_rpc::RunningRole;
use blindfold_runtime::{Failure, spawn};
use blindfold_tls::{ClientTls, TlsSettings};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::settings::{SettingsArgs, load};

/// Reads one committee's parameter file; its equations are not checked.
///
/// # Errors
/// A file that cannot be read, or is none.
pub(crate) fn read_parameters(path: &Path) -> Result<Parameters> {
    files::read_parameters(path)
}

/// The Redis server of these settings, if there is one. Names there begin with the deployment, so that several share it.
fn redis_options(settings: &RedisSettings, chain: &ChainConfig) -> Result<Option<RedisOptions>> {
    let deployment = &chain.deployment;
    Ok(settings.options(&format!("{}:{:#x}", deployment.l1_chain_id, deployment.inbox))?)
}

/// What a check of a section of the settings came to.
fn fault_in<E>(section: &'static str, checked: Result<(), E>) -> Option<anyhow::Error>
where
    Result<(), E>: Context<(), E>,
{
    checked.with_context(|| format!("section [{section}] of the settings")).err()
}

/// Where the execution client is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutionSettings {
    /// URL of its JSON-RPC, over HTTP.
    pub http_url: String,
    /// URL of its Engine API, over HTTP.
    pub engine_url: String,
    /// The file with the Engine API's shared secret, 64 hexadecimal digits.
    pub jwt_secret: PathBuf,
}

impl ExecutionSettings {
    /// The client; nothing is called yet.
    ///
    /// # Errors
    /// When the secret cannot be read.
    pub fn client(&self) -> Result<OpGeth> {
        self.config().map(OpGeth::new)
    }

    /// What the client is made with.
    pub(crate) fn config(&self) -> Result<OpGethConfig> {
        let secret = JwtSecret::from_file(&self.jwt_secret)
            .with_context(|| format!("execution.jwt_secret {}", self.jwt_secret.display()))?;
        Ok(OpGethConfig {
            jwt_secret_file: Some(self.jwt_secret.clone()),
            ..OpGethConfig::new(&self.engine_url, &self.http_url, secret)
        })
    }
}

/// Who does the heavy cryptography, and on how many threads.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackendSettings {
    /// `auto` or the name of an implementation: `cuda`, `ifma`, `portable`.
    pub name: String,
    /// Threads; 0 for all but one of the machine's, at least one: what serves requests needs a core, too.
    pub threads: usize,
    /// Bytes of memory for Miller lines of each parameter file.
    pub max_lines_bytes: usize,
}

impl Default for BackendSettings {
    fn default() -> Self {
        Self { name: "auto".to_owned(), threads: 0, max_lines_bytes: blindfold_bte::DEFAULT_LINES_MAX_BYTES }
    }
}

impl BackendSettings {
    /// The backend, and a line in the log that says which it is and why.
    ///
    /// # Errors
    /// An unknown name, or that of a backend that this machine or build does not have.
    pub fn backend(&self) -> Result<std::sync::Arc<dyn blindfold_bte::Backend>> {
        let machine = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if self.threads == 0 { machine.saturating_sub(1).max(1) } else { self.threads };
        // Builds with the feature `bench` have it; it leaks a member's key through its timing.
        ensure!(self.name != "reference", "backend.name = \"reference\" is for tests and benchmarks");
        let crate::backend::Chosen { backend, why, .. } = crate::backend::by_name(&self.name, threads)
            .with_context(|| {
                format!("backend.name = \"{}\"; known are auto, cuda, ifma and portable", self.name)
            })?;
        tracing::info!(backend = backend.name(), threads, why, "backend chosen");
        Ok(backend)
    }
}

/// How long a role may take to end in order, in milliseconds; then its process ends all the same. A kill loses nothing.
const END_TIMEOUT_MS: u64 = 20_000;
/// How long a process may take to end in order after a panic, in milliseconds.
const PANIC_EXIT_MS: u64 = 30_000;
/// The exit status of a process that could not end in order after a panic: `EX_SOFTWARE`.
const PANIC_EXIT_STATUS: i32 = 70;

/// A role of the command line: its settings, of which a running one is made.
pub(crate) trait Role: DeserializeOwned {
    /// Its name: the subcommand's, and in capitals that of its environment variables.
    const NAME: &'static str;
    /// What runs.
    type Running: RunningRole;

    /// Whom the connections that it opens trust over TLS, and what they show.
    fn tls(&self) -> &TlsSettings;

    /// Where its traces of envelopes go, if it has to do with envelopes.
    fn traces(&self) -> Option<&TraceSettings> {
        None
    }

    /// What of these settings does not work or does not fit together, found without opening anything. Each names its
    /// setting.
    fn faults(&self) -> Vec<anyhow::Error>;

    /// Puts it together and starts it; with `rebuild_from_l1`, which not every subcommand has, on a disk that went back
    /// to what L1 holds first.
    async fn start(self, rebuild_from_l1: bool) -> Result<Self::Running>;
}

/// [`Role::faults`], and those of what all roles have.
pub(crate) fn faults_of<R: Role>(settings: &R) -> Vec<anyhow::Error> {
    let of_traces = settings.traces().and_then(|traces| traces.check().err());
    settings.faults().into_iter().chain(of_traces.map(anyhow::Error::from)).collect()
}

/// Runs a role until the process is asked to end or a part of it fails. A panic of any thread ends its process.
pub(crate) async fn run<R: Role>(settings: &SettingsArgs, rebuild_from_l1: bool) -> Result<()> {
    blindfold_runtime::watch_panics(PANIC_EXIT_MS, PANIC_EXIT_STATUS);
    let settings = load::<R>(R::NAME, settings)?;
    if let Some(first) = faults_of(&settings).into_iter().next() {
        return Err(first);
    }
    let tls = ClientTls::open(settings.tls()).context("section [tls] of the settings")?;
    ensure!(blindfold_tls::install(tls.clone()), "the TLS of this process is settled already: this is a bug");
    // For as long as the process: whatever it opens later is to count.
    drop(spawn(blindfold_tls::watch(tls.refreshing())));
    let exporter = settings.traces().map(|traces| send_traces(traces, R::NAME)).transpose()?.flatten();
    let running = settings.start(rebuild_from_l1).await?;
    let end = End::of(running.failed()).await?;
    end.after(async {
        running.shutdown().await;
        if let Some(exporter) = exporter {
            // It waits for what this runtime sends.
            _ = blindfold_runtime::blocking(move || exporter.end()).await;
        }
    })
    .await
}

/// Has the traces of this process sent, where its settings name a collector.
fn send_traces(settings: &TraceSettings, role: &'static str) -> Result<Option<Exporter>> {
    let exporter = Exporter::start(settings, role, env!("CARGO_PKG_VERSION"))?;
    if let Some(exporter) = &exporter {
        ensure!(exporter.install(settings), "this process has traces already: this is a bug");
    }
    Ok(exporter)
}

/// Why a role ends.
enum End {
    /// The process was asked to.
    Asked,
    /// A part of the role cannot go on.
    Failed(Failure),
}

impl End {
    /// Waits until the process is asked to end, a part of its role fails, or anything panics.
    async fn of(failed: impl Future<Output = Failure>) -> Result<Self> {
        tokio::select! {
            biased;
            failure = failed => Ok(Self::Failed(failure)),
            failure = blindfold_runtime::panicked() => Ok(Self::Failed(failure)),
            asked = asked_to_stop() => asked.map(|()| Self::Asked),
        }
    }

    /// Ends the role in order, for at most [`END_TIMEOUT_MS`]. After a failure it is an error, so that the process exits
    /// with a status other than zero and its supervisor starts it again.
    async fn after(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        self.within(END_TIMEOUT_MS, shutdown).await
    }

    async fn within(self, timeout_ms: u64, shutdown: impl Future<Output = ()>) -> Result<()> {
        if tokio::time::timeout(Duration::from_millis(timeout_ms), shutdown).await.is_err() {
            tracing::error!(timeout_ms, "the role did not end in time: ending the process");
        }
        match self {
            Self::Asked => Ok(()),
            Self::Failed(failure) => bail!("a part of this role cannot go on: {failure}"),
        }
    }
}

/// Resolves when the process is asked to end (Ctrl-C or SIGTERM).
///
/// # Errors
/// When no signal handler can be installed.
pub async fn asked_to_stop() -> Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    tracing::info!("asked to stop");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> BackendSettings {
        BackendSettings { name: name.to_owned(), threads: 1, ..BackendSettings::default() }
    }

    #[tokio::test]
    async fn a_role_that_failed_or_hangs_ends_its_process_with_an_error() {
        let failure = || Failure { part: "follower", cause: "panicked: a bug".to_owned() };
        let end = End::of(async { failure() }).await.unwrap();
        let error = end.within(1, std::future::pending()).await.unwrap_err();
        assert_eq!(error.to_string(), "a part of this role cannot go on: follower: panicked: a bug");
        End::Asked.within(1, std::future::pending()).await.unwrap();
    }

    #[test]
    fn every_backend_but_the_reference_can_be_chosen() {
        let auto = named("auto").backend().unwrap();
        assert!(blindfold_bte::BACKEND_NAMES.contains(&auto.name()));
        assert_eq!(named("portable").backend().unwrap().name(), "portable");
        match named("ifma").backend() {
            Ok(backend) => assert_eq!(backend.name(), "ifma"),
            Err(fault) => {
                assert_ne!(auto.name(), "ifma");
                assert!(format!("{fault:#}").contains("AVX-512 IFMA"), "{fault:#}");
            }
        }
        for name in ["reference", "fast", ""] {
            assert!(named(name).backend().is_err(), "{name}");
        }
    }
}
