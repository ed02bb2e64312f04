//! Settings of the proxy.

use std::{net::SocketAddr, path::PathBuf};

use blindfold_rpc::{Inbound, SequencerUrls, SequencerUrlsError, same_server};
use serde::{Deserialize, Serialize};

/// When a transaction whose envelope ended without it in a block is encrypted again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resend {
    /// Only while nobody can have read it. One that was opened ends with the reason, and waits for the wallet to send
    /// it once more.
    #[default]
    Never,
    /// Also after it was opened, where the reason may pass: others have read it by then and can run in front of it.
    Revealed,
}

/// Settings of the proxy; unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProxyConfig {
    /// The address at which wallets connect.
    pub rpc_addr: SocketAddr,
    /// Where `/healthz`, `/readyz` and `/metrics` are served; keep it on loopback.
    pub admin_addr: SocketAddr,
    /// The user's own node (HTTP): sees reads, estimates and simulations.
    pub node_url: String,
    /// The sequencers (HTTP), one of which leads: get envelopes and `blind_*` calls, nothing else.
    pub sequencer_urls: SequencerUrls,
    /// The journal of held transactions.
    pub state: PathBuf,
    /// How long a transaction waits for its sender's next one, so that both share an envelope, in milliseconds.
    pub bundle_window_ms: u64,
    /// How often envelopes under way are looked up, in milliseconds.
    pub poll_interval_ms: u64,
    /// How many transactions are held at most.
    pub max_held_transactions: usize,
    /// Transactions of one sender held at most.
    pub max_held_per_sender: usize,
    /// Envelopes that may carry one transaction, one after another, before it is given up.
    pub max_attempts: u32,
    /// Whether a transaction that was opened and is in no block is encrypted again by itself.
    pub resend: Resend,
    /// Wei per byte offered above the base fee.
    pub priority_fee_wei: u64,
    /// Batches from the head in which an envelope may be sealed.
    pub expiry_batches: u64,
    /// How long the committee's key from L1 is used before it is fetched again, in milliseconds.
    pub key_refresh_ms: u64,
    /// Reverse proxies before `rpc_addr`, its certificate, and what one address may take there.
    pub inbound: Inbound,
}

impl Default for ProxyConfig {
    fn default() -> Self {
        Self {
            rpc_addr: SocketAddr::from(([127, 0, 0, 1], 9590)),
            admin_addr: SocketAddr::from(([127, 0, 0, 1], 9591)),
            node_url: "http://127.0.0.1:9580".to_owned(),
            sequencer_urls: "http://127.0.0.1:9545".into(),
            state: PathBuf::from("proxy.sqlite"),
            bundle_window_ms: 50,
            poll_interval_ms: 250,
            max_held_transactions: 16_384,
            max_held_per_sender: 256,
            max_attempts: 5,
            resend: Resend::Never,
            priority_fee_wei: 0,
            expiry_batches: crate::envelopes::DEFAULT_EXPIRY_BATCHES,
            key_refresh_ms: 60_000,
            inbound: Inbound::default(),
        }
    }
}

/// A setting that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyConfigError {
    /// The sequencers.
    #[error(transparent)]
    Sequencers(#[from] SequencerUrlsError),
    /// A limit or interval is zero.
    #[error("{0} must not be zero")]
    Zero(&'static str),
    /// A sequencer would see what wallets estimate and simulate.
    #[error("node_url is one of sequencer_urls: the sequencer would see what wallets estimate and simulate")]
    NodeIsSequencer,
}

impl ProxyConfig {
    /// Checked before a port is bound.
    ///
    /// # Errors
    /// [`ProxyConfigError`].
    pub fn validate(&self) -> Result<(), ProxyConfigError> {
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
                return Err(ProxyConfigError::Zero(name));
            }
        }
        self.sequencer_urls.check()?;
        if self.sequencer_urls.iter().any(|url| same_server(url, &self.node_url)) {
            return Err(ProxyConfigError::NodeIsSequencer);
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
        for node_url in ["http://127.0.0.1:9545", "HTTP://127.0.0.1:9545/", "http://localhost:9545"] {
            let shared = ProxyConfig { node_url: node_url.to_owned(), ..ProxyConfig::default() };
            assert_eq!(shared.validate(), Err(ProxyConfigError::NodeIsSequencer), "{node_url}");
        }
        let by_port = ProxyConfig {
            node_url: "http://a.example:80".to_owned(),
            sequencer_urls: SequencerUrls::new(["http://b.example", "http://a.example"]),
            ..ProxyConfig::default()
        };
        assert_eq!(by_port.validate(), Err(ProxyConfigError::NodeIsSequencer));
        let zero = ProxyConfig { max_attempts: 0, ..ProxyConfig::default() };
        assert_eq!(zero.validate(), Err(ProxyConfigError::Zero("max_attempts")));
    }
}
