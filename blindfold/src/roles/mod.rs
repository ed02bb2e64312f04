//! One file for each role: its settings, and how it is put together from the libraries.

mod committee;
mod files;
mod full_node;
mod hint_publisher;
pub mod l1;
mod proxy;
mod sequencer;

pub use committee::CommitteeSettings;
pub use files::{load_chain, load_parameters, opened_store};
pub use full_node::FullNodeSettings;
pub use hint_publisher::HintPublisherSettings;
pub use l1::L1Settings;
pub use proxy::ProxySettings;
pub use sequencer::SequencerSettings;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use blindfold_engine::{JwtSecret, OpGeth, OpGethConfig};
use serde::{Deserialize, Serialize};

/// Where the execution client is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutionSettings {
    /// Its JSON-RPC (HTTP).
    pub http_url: String,
    /// Its Engine API (HTTP).
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
        let secret = JwtSecret::from_file(&self.jwt_secret)
            .with_context(|| format!("execution.jwt_secret {}", self.jwt_secret.display()))?;
        Ok(OpGeth::new(OpGethConfig::new(&self.engine_url, &self.http_url, secret)))
    }
}

/// Who does the heavy cryptography, and on how many threads.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackendSettings {
    /// `auto` or the name of an implementation.
    pub name: String,
    /// Threads; 0 for all but one of the machine's, at least one.
    pub threads: usize,
}

impl Default for BackendSettings {
    fn default() -> Self {
        Self { name: "auto".to_owned(), threads: 0 }
    }
}

impl BackendSettings {
    /// The backend, and a line in the log that says which it is.
    ///
    /// # Errors
    /// An unknown name.
    pub fn backend(&self) -> Result<std::sync::Arc<dyn blindfold_bte::Backend>> {
        let machine = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if self.threads == 0 { machine.saturating_sub(1).max(1) } else { self.threads };
        let backend = blindfold_bte::by_name(&self.name, threads)
            .with_context(|| format!("backend.name = \"{}\"; known are auto and portable", self.name))?;
        // Builds with the feature `bench` have it; it leaks a member's key through its timing.
        ensure!(backend.name() != "reference", "backend.name = \"reference\" is for tests and benchmarks");
        tracing::info!(backend = backend.name(), threads, "backend chosen");
        Ok(backend.into())
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
