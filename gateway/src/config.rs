//! Settings of relays and gateways: checked before anything is bound or connected.

use std::{net::SocketAddr, time::Duration};

use blindfold_chain::VerifierLimits;
use blindfold_rpc::{Inbound, SequencerUrls, SequencerUrlsError};
use serde::{Deserialize, Serialize};

use crate::limits::{MAX_LEADER_WAIT_MS, MIN_WINDOW_BATCHES, MIN_WINDOW_BYTES};

/// Settings of a relay, and of the relay in a gateway. Unknown keys are refused; a missing key takes the default of
/// [`RelayConfig::default`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RelayConfig {
    /// Where JSON-RPC is served, HTTP and WebSocket on one port.
    pub rpc_addr: SocketAddr,
    /// Where `/healthz`, `/readyz` and `/metrics` are served; keep it on loopback.
    pub admin_addr: SocketAddr,
    /// The JSON-RPC of its sources, `http://` or `https://`; their WebSockets are on the same ports. For a gateway the
    /// sequencers, of which one leads; for a relay as well gateways, other relays or full nodes.
    pub sequencer_urls: SequencerUrls,
    /// The newest batches that are kept, at most.
    pub window_batches: usize,
    /// Bytes of the batches that are kept, at most.
    pub window_bytes: usize,
    /// Batches that are fetched after a start or an outage, at most; older ones are asked of the source when somebody asks.
    pub catch_up_batches: u64,
    /// How often the source is asked where it stands, besides after every connection, in milliseconds.
    pub sweep_ms: u64,
    /// How long an answer of the source is given again to the same question, in milliseconds; 0: only while it is under way.
    pub cache_ms: u64,
    /// Answers that are kept, at most.
    pub cache_entries: usize,
    /// How long the source may take for an answer, in milliseconds.
    pub source_timeout_ms: u64,
    /// What users ask of the source per second, all together: less than it lets one caller ask. 0: no limit.
    pub source_calls_per_second: u32,
    /// Reverse proxies before `rpc_addr`, its certificate, and what one address may take there.
    pub inbound: Inbound,
}

/// Settings of what a gateway does besides. Unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GatewayConfig {
    /// Envelopes whose signatures and proofs are verified together at most.
    pub proof_batch_items: usize,
    /// How long the first envelope of such a group waits for others, in microseconds.
    pub proof_wait_us: u64,
    /// Envelopes waiting for verification at most; beyond it they are refused as `overloaded`.
    pub proof_queue_items: usize,
    /// Groups verified at the same time at most (threads).
    pub proof_threads: usize,
    /// How long the first envelope of a call to the sequencer waits for others, in microseconds.
    pub forward_wait_us: u64,
    /// How long an envelope waits for a sequencer that leads, in milliseconds; then it is refused with `no_leader`.
    pub leader_wait_ms: u64,
    /// Envelopes per second one network address may send in the long run; over all gateways where they share Redis.
    pub source_rate_per_second: u32,
    /// Envelopes one network address may send at once.
    pub source_burst: u32,
    /// Network addresses remembered at most.
    pub max_sources: usize,
    /// Envelopes per second one fee payer may send in the long run; over all gateways where they share Redis.
    pub payer_rate_per_second: u32,
    /// Envelopes one fee payer may send at once.
    pub payer_burst: u32,
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self {
            rpc_addr: SocketAddr::from(([127, 0, 0, 1], 9620)),
            admin_addr: SocketAddr::from(([127, 0, 0, 1], 9621)),
            sequencer_urls: "http://127.0.0.1:9545".into(),
            window_batches: 1_024,
            window_bytes: 128 << 20,
            catch_up_batches: 256,
            sweep_ms: 1_000,
            cache_ms: 250,
            cache_entries: 4_096,
            source_timeout_ms: 10_000,
            source_calls_per_second: 1_800,
            inbound: Inbound::default(),
        }
    }
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            proof_batch_items: 64,
            proof_wait_us: 2_000,
            proof_queue_items: 4_096,
            proof_threads: 2,
            forward_wait_us: 1_000,
            leader_wait_ms: 8_000,
            source_rate_per_second: 2_000,
            source_burst: 4_000,
            max_sources: 16_384,
            payer_rate_per_second: 2_000,
            payer_burst: 4_000,
        }
    }
}

/// A setting that cannot be used. The operator's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The sources.
    #[error(transparent)]
    Sources(#[from] SequencerUrlsError),
    /// A value below what works.
    #[error("{setting} must be at least {least}")]
    TooSmall {
        /// Name of the setting.
        setting: &'static str,
        /// The least value that works.
        least: u64,
    },
    /// A value above what works.
    #[error("{setting} must be at most {most}")]
    TooLarge {
        /// Name of the setting.
        setting: &'static str,
        /// The largest value that works.
        most: u64,
    },
    /// Two servers would share one port.
    #[error("rpc_addr and admin_addr are the same address")]
    SameAddress,
}

/// Of each setting its value, and the least and the largest that work.
fn within<const N: usize>(values: [(&'static str, u64, u64, u64); N]) -> Result<(), ConfigError> {
    for (setting, value, least, most) in values {
        if value < least {
            return Err(ConfigError::TooSmall { setting, least });
        }
        if value > most {
            return Err(ConfigError::TooLarge { setting, most });
        }
    }
    Ok(())
}

impl RelayConfig {
    /// Checks everything that can be checked by itself.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.sequencer_urls.check()?;
        if self.rpc_addr == self.admin_addr && self.rpc_addr.port() != 0 {
            return Err(ConfigError::SameAddress);
        }
        within([
            // A batch stays until its certificate and its hints are there.
            ("window_batches", self.window_batches as u64, MIN_WINDOW_BATCHES, 1 << 20),
            ("window_bytes", self.window_bytes as u64, MIN_WINDOW_BYTES, 1 << 40),
            ("catch_up_batches", self.catch_up_batches, 1, self.window_batches as u64),
            ("sweep_ms", self.sweep_ms, 1, 3_600_000),
            ("cache_ms", self.cache_ms, 0, 60_000),
            ("cache_entries", self.cache_entries as u64, 1, 1 << 20),
            ("source_timeout_ms", self.source_timeout_ms, 1, 60_000),
            ("source_calls_per_second", self.source_calls_per_second.into(), 0, u32::MAX.into()),
        ])
    }
}

impl GatewayConfig {
    /// Checks everything that can be checked by itself.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn check(&self) -> Result<(), ConfigError> {
        let most = u32::MAX.into();
        within([
            ("proof_batch_items", self.proof_batch_items as u64, 1, 4_096),
            ("proof_wait_us", self.proof_wait_us, 0, 1_000_000),
            ("proof_queue_items", self.proof_queue_items as u64, 1, 1 << 20),
            ("proof_threads", self.proof_threads as u64, 1, 1_024),
            ("forward_wait_us", self.forward_wait_us, 0, 1_000_000),
            // The server ends a call by itself after a minute.
            ("leader_wait_ms", self.leader_wait_ms, 1, MAX_LEADER_WAIT_MS),
            ("source_rate_per_second", self.source_rate_per_second.into(), 1, most),
            ("source_burst", self.source_burst.into(), 1, most),
            ("max_sources", self.max_sources as u64, 1, 1 << 24),
            ("payer_rate_per_second", self.payer_rate_per_second.into(), 1, most),
            ("payer_burst", self.payer_burst.into(), 1, most),
        ])
    }

    pub(crate) const fn verifier(&self) -> VerifierLimits {
        VerifierLimits {
            group_items: self.proof_batch_items,
            group_wait: Duration::from_micros(self.proof_wait_us),
            queue_items: self.proof_queue_items,
            threads: self.proof_threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_work_and_what_cannot_is_named() {
        assert_eq!((RelayConfig::default().check(), GatewayConfig::default().check()), (Ok(()), Ok(())));
        let small = RelayConfig { window_batches: 1, ..RelayConfig::default() };
        let fault = ConfigError::TooSmall { setting: "window_batches", least: MIN_WINDOW_BATCHES };
        assert_eq!(small.check(), Err(fault));
        let jump = RelayConfig { catch_up_batches: 2_000, ..RelayConfig::default() };
        let fault = ConfigError::TooLarge { setting: "catch_up_batches", most: 1_024 };
        assert_eq!(jump.check(), Err(fault));
        let long = GatewayConfig { leader_wait_ms: 60_000, ..GatewayConfig::default() };
        let fault = ConfigError::TooLarge { setting: "leader_wait_ms", most: MAX_LEADER_WAIT_MS };
        assert_eq!(long.check(), Err(fault));
        let same = RelayConfig { admin_addr: RelayConfig::default().rpc_addr, ..RelayConfig::default() };
        assert_eq!(same.check(), Err(ConfigError::SameAddress));
        let nobody = RelayConfig { sequencer_urls: SequencerUrls::default(), ..RelayConfig::default() };
        assert_eq!(nobody.check(), Err(ConfigError::Sources(SequencerUrlsError::Empty)));
    }
}
