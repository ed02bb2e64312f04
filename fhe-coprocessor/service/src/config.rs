//! The coprocessor's settings.

use std::net::SocketAddr;

use blindfold_rpc::Inbound;
use serde::{Deserialize, Serialize};

use crate::limits::{
    DEFAULT_KEPT_VERSIONS, DEFAULT_POLL_INTERVAL_MS, MAX_POLL_INTERVAL_MS, MIN_POLL_INTERVAL_MS,
};

/// Settings of the coprocessor; a table of the configuration file. Unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoprocessorConfig {
    /// Where the JSON-RPC server listens.
    pub rpc_addr: SocketAddr,
    /// Where `/healthz`, `/readyz` and `/metrics` are served. Not for the public.
    pub admin_addr: SocketAddr,
    /// JSON-RPC of the full node, or of the sequencer, that is followed, `http://…`; its feed is the same address with
    /// `ws://`. Nothing it says is believed; a full node of one's own also has hints that nobody publishes.
    pub node_url: String,
    /// How long without news before the node is asked for batches, in milliseconds.
    #[serde(default = "default_poll_interval_ms")]
    pub poll_interval_ms: u64,
    /// For how many versions back accounts and their proofs can be read; 0 keeps all.
    #[serde(default = "default_kept_versions")]
    pub kept_versions: u64,
    /// Reverse proxies before `rpc_addr`, its certificate, and what one address may take there.
    #[serde(default)]
    pub inbound: Inbound,
}

/// A setting that no coprocessor can run with. The fault of whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Not an `http://` or `https://` URL.
    #[error("node_url: expected http:// or https://")]
    Url,
    /// A time outside its bounds.
    #[error("poll_interval_ms is {0}, allowed are {MIN_POLL_INTERVAL_MS} to {MAX_POLL_INTERVAL_MS}")]
    PollInterval(u64),
}

impl CoprocessorConfig {
    /// Checks what can be checked without opening anything.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !(self.node_url.starts_with("http://") || self.node_url.starts_with("https://")) {
            return Err(ConfigError::Url);
        }
        let interval = self.poll_interval_ms;
        if (MIN_POLL_INTERVAL_MS..=MAX_POLL_INTERVAL_MS).contains(&interval) {
            Ok(())
        } else {
            Err(ConfigError::PollInterval(interval))
        }
    }

    /// The node's WebSocket URL, for the feed.
    pub(crate) fn feed_url(&self) -> String {
        // `validate` saw to the scheme: http → ws, https → wss.
        format!("ws{}", self.node_url.strip_prefix("http").unwrap_or(&self.node_url))
    }
}

fn default_poll_interval_ms() -> u64 {
    DEFAULT_POLL_INTERVAL_MS
}

fn default_kept_versions() -> u64 {
    DEFAULT_KEPT_VERSIONS
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = r#"
        rpc_addr = "127.0.0.1:9600"
        admin_addr = "127.0.0.1:9601"
        node_url = "http://127.0.0.1:9580"
    "#;

    fn minimal() -> CoprocessorConfig {
        toml::from_str(MINIMAL).expect("it parses")
    }

    #[test]
    fn defaults_fill_in_and_unknown_keys_are_refused() {
        let config = minimal();
        assert_eq!(config.validate(), Ok(()));
        assert_eq!((config.poll_interval_ms, config.kept_versions), (2_000, 100_000));
        assert_eq!(config.feed_url(), "ws://127.0.0.1:9580");
        assert!(toml::from_str::<CoprocessorConfig>(&format!("{MINIMAL}\nnode = 3")).is_err());
    }

    #[test]
    fn each_wrong_setting_is_named() {
        let url = CoprocessorConfig { node_url: "ws://x".into(), ..minimal() };
        assert_eq!(url.validate(), Err(ConfigError::Url));
        for interval in [0, 49, u64::MAX] {
            let config = CoprocessorConfig { poll_interval_ms: interval, ..minimal() };
            assert_eq!(config.validate(), Err(ConfigError::PollInterval(interval)));
        }
    }
}
