//! Settings of the signer: checked before a port is bound or a key is opened.

use std::{net::SocketAddr, path::PathBuf};

use blindfold_rpc::PeerListener;
use serde::{Deserialize, Serialize};

/// Settings of the signer. Unknown keys are refused; a missing key takes its default, and `listener` has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignerConfig {
    /// Folder of what it signed. A copy of it must never be signed with.
    #[serde(default = "default_data_dir")]
    pub data_dir: PathBuf,
    /// Where `/healthz`, `/readyz` and `/metrics` are served; keep it on loopback.
    #[serde(default = "default_admin_addr")]
    pub admin_addr: SocketAddr,
    /// Where sequencers ask, over TLS with certificates on both sides. Everybody with a certificate of its `client_ca_file`
    /// gets signatures: let that authority sign for nobody but the sequencers.
    pub listener: PeerListener,
    /// How long L1 may take to answer, in milliseconds, where a header does not follow what was signed here.
    #[serde(default = "default_l1_timeout_ms")]
    pub l1_timeout_ms: u64,
}

fn default_data_dir() -> PathBuf {
    PathBuf::from("signer-data")
}

fn default_admin_addr() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9611))
}

const fn default_l1_timeout_ms() -> u64 {
    3_000
}

/// A setting that cannot be used. The operator's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The port would take nobody.
    #[error("listener.max_connections must not be zero")]
    NoConnections,
    /// No answer of L1 would be waited for.
    #[error("l1_timeout_ms must not be zero")]
    NoTimeout,
}

impl SignerConfig {
    /// The defaults, with this port.
    #[must_use]
    pub fn new(listener: PeerListener) -> Self {
        let (data_dir, admin_addr) = (default_data_dir(), default_admin_addr());
        Self { data_dir, admin_addr, listener, l1_timeout_ms: default_l1_timeout_ms() }
    }

    /// Checks everything that can be checked without opening anything.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.listener.max_connections == 0 {
            return Err(ConfigError::NoConnections);
        }
        if self.l1_timeout_ms == 0 {
            return Err(ConfigError::NoTimeout);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_named_and_unknown_keys_are_refused() {
        let listener =
            "{\"addr\":\"127.0.0.1:0\",\"cert_file\":\"c\",\"key_file\":\"k\",\"client_ca_file\":\"a\"}";
        let good: SignerConfig = serde_json::from_str(&format!("{{\"listener\":{listener}}}")).unwrap();
        assert_eq!((good.check(), SignerConfig::new(good.listener.clone())), (Ok(()), good.clone()));
        let mut nobody = good.clone();
        nobody.listener.max_connections = 0;
        assert_eq!(nobody.check(), Err(ConfigError::NoConnections));
        assert_eq!(SignerConfig { l1_timeout_ms: 0, ..good }.check(), Err(ConfigError::NoTimeout));
        assert!(serde_json::from_str::<SignerConfig>("{}").unwrap_err().to_string().contains("listener"));
        let unknown = format!("{{\"listener\":{listener},\"rpc_addr\":\"127.0.0.1:1\"}}");
        assert!(serde_json::from_str::<SignerConfig>(&unknown).is_err());
    }
}
