//! Settings of the proxy.

use std::{net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

/// Settings of the proxy; unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProxyConfig {
    /// Where wallets connect.
    pub rpc_addr: SocketAddr,
    /// Where `/healthz`, `/readyz` and `/metrics` are served; keep it on loopback.
    pub admin_addr: SocketAddr,
    /// The user's own node (HTTP): sees reads, estimates and simulations.
    pub node_url: String,
    /// The sequencer (HTTP): gets envelopes and `blind_*` calls, nothing else.
    pub sequencer_url: String,
    /// The journal of held transactions.
    pub state: PathBuf,
    /// How long a transaction waits for its sender's next one, so that both share an envelope, in milliseconds.
    pub bundle_window_ms: u64,
    /// How often envelopes under way are looked up, in milliseconds.
    pub poll_interval_ms: u64,
    /// Transactions held at most.
    pub max_held_transactions: usize,
    /// Transactions of one sender held at most.
    pub max_held_per_sender: usize,
    /// Envelopes that may carry one transaction, one after another, before it is given up.
    pub max_attempts: u32,
    /// Wei per byte offered above the base fee.
    pub priority_fee_wei: u64,
    /// Batches from the head in which an envelope may be sealed.
    pub expiry_batches: u64,
    /// How long the committee's key from L1 is used before it is fetched again, in milliseconds.
    pub key_refresh_ms: u64,
}

impl Default for ProxyConfig {
    fn default() -> Self {
        Self {
            rpc_addr: SocketAddr::from(([127, 0, 0, 1], 9590)),
            admin_addr: SocketAddr::from(([127, 0, 0, 1], 9591)),
            node_url: "http://127.0.0.1:9580".to_owned(),
            sequencer_url: "http://127.0.0.1:9545".to_owned(),
            state: PathBuf::from("proxy.sqlite"),
            bundle_window_ms: 50,
            poll_interval_ms: 250,
            max_held_transactions: 16_384,
            max_held_per_sender: 256,
            max_attempts: 5,
            priority_fee_wei: 0,
            expiry_batches: crate::envelopes::DEFAULT_EXPIRY_BATCHES,
            key_refresh_ms: 60_000,
        }
    }
}

/// A setting that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyConfigFault {
    /// A limit or interval is zero.
    #[error("{0} must not be zero")]
    Zero(&'static str),
    /// The sequencer would see what wallets estimate and simulate.
    #[error(
        "node_url and sequencer_url are the same: the sequencer would see what wallets estimate and simulate"
    )]
    NodeIsSequencer,
}

impl ProxyConfig {
    /// Checked before a port is bound.
    ///
    /// # Errors
    /// [`ProxyConfigFault`].
    pub fn validate(&self) -> Result<(), ProxyConfigFault> {
        for (zero, name) in [
            (self.bundle_window_ms == 0, "bundle_window_ms"),
            (self.poll_interval_ms == 0, "poll_interval_ms"),
            (self.max_held_transactions == 0, "max_held_transactions"),
            (self.max_held_per_sender == 0, "max_held_per_sender"),
            (self.max_attempts == 0, "max_attempts"),
            (self.expiry_batches == 0, "expiry_batches"),
            (self.key_refresh_ms == 0, "key_refresh_ms"),
        ] {
            if zero {
                return Err(ProxyConfigFault::Zero(name));
            }
        }
        if self.node_url.trim_end_matches('/') == self.sequencer_url.trim_end_matches('/') {
            return Err(ProxyConfigFault::NodeIsSequencer);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked() {
        ProxyConfig::default().validate().unwrap();
        let shared = ProxyConfig { node_url: "http://127.0.0.1:9545/".to_owned(), ..ProxyConfig::default() };
        assert_eq!(shared.validate(), Err(ProxyConfigFault::NodeIsSequencer));
        let zero = ProxyConfig { max_attempts: 0, ..ProxyConfig::default() };
        assert_eq!(zero.validate(), Err(ProxyConfigFault::Zero("max_attempts")));
    }
}
