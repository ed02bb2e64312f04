//! Connecting to L1.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use blindfold_l1::{ArchiveToken, DEFAULT_MAX_TRANSACTION_FEE_WEI, L1Client, L1Config};
use blindfold_protocol::ChainConfig;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Name of the file, in a role's folder, with what happened to batches on L1.
const JOURNAL: &str = "l1.journal";
const WEI_PER_GWEI: u128 = 1_000_000_000;

/// Where L1 is, and how often it is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct L1Settings {
    /// Its JSON-RPC (HTTP). Believed in what L1 says, so run your own.
    pub url: String,
    /// How often the newest final block is looked up at most, in milliseconds.
    #[serde(default = "default_poll_interval_ms")]
    pub poll_interval_ms: u64,
    /// A beacon node (HTTP), for data that was posted in blobs. Not believed: blobs are checked against L1.
    #[serde(default)]
    pub beacon_url: Option<String>,
    /// Archives (HTTP), for data that L1 only names; none reads no such data. Not believed: their bytes are checked against L1.
    #[serde(default)]
    pub archive_urls: Vec<String>,
    /// The most that one transaction of this process may cost, its blobs included and the value that it carries not, in gwei.
    #[serde(default = "default_max_transaction_fee_gwei")]
    pub max_transaction_fee_gwei: u64,
}

fn default_poll_interval_ms() -> u64 {
    1_000
}

fn default_max_transaction_fee_gwei() -> u64 {
    (DEFAULT_MAX_TRANSACTION_FEE_WEI / WEI_PER_GWEI) as u64
}

/// The token in the first line of a file.
///
/// # Errors
/// A file that cannot be read, or has none there.
pub(crate) fn archive_token(file: &Path) -> Result<ArchiveToken> {
    let text = fs::read_to_string(file).map(Zeroizing::new).with_context(|| file.display().to_string())?;
    let line = text.lines().next().unwrap_or_default();
    ArchiveToken::new(line).with_context(|| format!("{}: its first line is no token", file.display()))
}

impl L1Settings {
    /// With the defaults.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            poll_interval_ms: default_poll_interval_ms(),
            beacon_url: None,
            archive_urls: Vec::new(),
            max_transaction_fee_gwei: default_max_transaction_fee_gwei(),
        }
    }

    /// Connects, and checks that chain id and contracts are the chain's.
    ///
    /// # Errors
    /// When L1 does not answer, or is another one.
    pub async fn connect(&self, chain: &ChainConfig) -> Result<L1Client> {
        L1Client::connect(self.config(chain)).await.context("l1.url")
    }

    /// [`connect`](Self::connect) for a role, which keeps what happened to batches in its folder.
    ///
    /// # Errors
    /// As `connect`; when the folder cannot be made.
    pub async fn connect_in(&self, chain: &ChainConfig, data_dir: &Path) -> Result<L1Client> {
        self.connect_to_write(chain, data_dir, Vec::new()).await
    }

    /// [`connect_in`](Self::connect_in) for a role that writes into archives, to each of which it shows the token in its
    /// place.
    ///
    /// # Errors
    /// As `connect_in`.
    pub async fn connect_to_write(
        &self,
        chain: &ChainConfig,
        data_dir: &Path,
        archive_tokens: Vec<ArchiveToken>,
    ) -> Result<L1Client> {
        fs::create_dir_all(data_dir).with_context(|| format!("data_dir = {}", data_dir.display()))?;
        let journal = Some(data_dir.join(JOURNAL));
        let config = L1Config { journal, archive_tokens, ..self.config(chain) };
        L1Client::connect(config).await.context("l1.url")
    }

    /// What a client is made with, without a journal.
    pub(crate) fn config(&self, chain: &ChainConfig) -> L1Config {
        L1Config {
            poll_interval_ms: self.poll_interval_ms,
            beacon_url: self.beacon_url.clone(),
            archive_urls: self.archive_urls.clone(),
            max_transaction_fee_wei: u128::from(self.max_transaction_fee_gwei) * WEI_PER_GWEI,
            ..L1Config::new(self.url.as_str(), chain)
        }
    }
}
