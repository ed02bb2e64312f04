//! Settings of a member: checked before a port is bound or a key is opened.

use std::net::SocketAddr;

use blindfold_protocol::{Address, limits::MAX_MEMBERS};
use blindfold_rpc::{Inbound, PeerListener, SequencerUrls, SequencerUrlsError};
use serde::{Deserialize, Serialize};

/// Settings of a member. Unknown keys are refused; a missing key takes the default of [`MemberConfig::default`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemberConfig {
    /// Where `committee_*` is served, HTTP and WebSocket on one port.
    pub rpc_addr: SocketAddr,
    /// Where `/healthz`, `/readyz` and `/metrics` are served; keep it on loopback.
    pub admin_addr: SocketAddr,
    /// The sequencers' JSON-RPC, `http://` or `https://`; their WebSockets are on the same ports. One leads.
    pub sequencer_urls: SequencerUrls,
    /// The other members, asked for certified batches that the sequencer withholds.
    pub peers: Vec<PeerUrl>,
    /// Accounts of hint publishers that prove who they are: places of their own are kept for them.
    pub hint_publishers: Vec<Address>,
    /// Limits of time, memory and work.
    pub limits: MemberLimits,
    /// Reverse proxies before `rpc_addr`, its certificate, and what one address may take there.
    pub inbound: Inbound,
    /// A port beside it for the sequencer, other members and hint publishers that show a certificate.
    pub peer_listener: Option<PeerListener>,
}

/// Another member, and where it serves JSON-RPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerUrl {
    /// Index of the member, from 1.
    pub member: u16,
    /// Its JSON-RPC, `http://` or `https://`.
    pub url: String,
}

/// Every limit of a member, with its unit last in the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemberLimits {
    /// Pause before a header that could not be judged yet (L1 origin not final, clock) is looked at again.
    pub header_retry_ms: u64,
    /// Pause before an acknowledgement is sent again while its number is not certified; it doubles up to half a minute
    /// while sending fails.
    pub acknowledgement_resend_ms: u64,
    /// How long the certificate of our newest header may be missing before sequencer and members are asked for it.
    pub certificate_wait_ms: u64,
    /// How often the other members are asked for certified batches that the sequencer may be hiding from us.
    pub peer_check_ms: u64,
    /// How often a member with an account looks whether the sequencer keeps certified headers from L1.
    pub posting_check_ms: u64,
    /// How long the other members may take, at the start, to tell what they hold; until then nothing is voted for.
    pub first_look_ms: u64,
    /// Batches fetched in one round of catching up.
    pub catch_up_batches: u64,
    /// How long one call for a missed batch may take.
    pub fetch_timeout_ms: u64,
    /// How many threads compute shares.
    pub share_threads: usize,
    /// Calls that may wait for a share thread; beyond it callers are told to come back.
    pub share_queue_calls: usize,
    /// Batches whose shares are kept in memory.
    pub share_cache_batches: usize,
    /// Singleton shares kept in memory.
    pub singleton_cache_entries: usize,
    /// Verified certificates remembered, so that a repeated call costs no pairing.
    pub certificate_cache_entries: usize,
    /// An L1 block that is at most so old confirms our clock; 0: L1 is not compared.
    pub max_l1_age_ms: u64,
    /// How long a fault of its own, of its disk or of its L1 may keep it from going on before it ends, so that it starts
    /// anew. No setting.
    #[serde(skip)]
    pub stuck_exit_ms: u64,
}

impl Default for MemberConfig {
    fn default() -> Self {
        Self {
            rpc_addr: SocketAddr::from(([127, 0, 0, 1], 9551)),
            admin_addr: SocketAddr::from(([127, 0, 0, 1], 9561)),
            sequencer_urls: "http://127.0.0.1:9545".into(),
            peers: Vec::new(),
            hint_publishers: Vec::new(),
            limits: MemberLimits::default(),
            inbound: Inbound::default(),
            peer_listener: None,
        }
    }
}

impl Default for MemberLimits {
    fn default() -> Self {
        Self {
            header_retry_ms: 250,
            acknowledgement_resend_ms: 1_000,
            certificate_wait_ms: 2_000,
            peer_check_ms: 10_000,
            posting_check_ms: 12_000,
            first_look_ms: 5_000,
            catch_up_batches: 64,
            fetch_timeout_ms: 5_000,
            share_threads: 2,
            share_queue_calls: 64,
            share_cache_batches: 64,
            singleton_cache_entries: 16_384,
            certificate_cache_entries: 256,
            max_l1_age_ms: 120_000,
            stuck_exit_ms: 300_000,
        }
    }
}

/// A setting that cannot be used. The operator's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The sequencers.
    #[error(transparent)]
    Sequencers(#[from] SequencerUrlsError),
    /// Not an `http://` or `https://` URL.
    #[error("{setting}: an http:// or https:// URL is needed")]
    Url {
        /// Name of the setting.
        setting: &'static str,
    },
    /// A limit that must not be zero.
    #[error("limits.{setting} must not be zero")]
    Zero {
        /// Name of the setting.
        setting: &'static str,
    },
    /// The port for peers would take nobody.
    #[error("peer_listener.max_connections must not be zero")]
    NoPeerConnections,
    /// A member index out of range, twice, or our own.
    #[error("peers: member {member} is {fault}")]
    Peer {
        /// The member's index in the settings.
        member: u16,
        /// What is wrong with it.
        fault: &'static str,
    },
}

impl MemberConfig {
    /// Checks everything that can be checked without opening anything. `own` is this member's index.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn check(&self, own: u16) -> Result<(), ConfigError> {
        self.sequencer_urls.check()?;
        for (position, peer) in self.peers.iter().enumerate() {
            let member = peer.member;
            let fault = |fault| ConfigError::Peer { member, fault };
            if member == 0 || usize::from(member) > MAX_MEMBERS {
                return Err(fault("out of range"));
            }
            if member == own {
                return Err(fault("this member itself"));
            }
            if self.peers.iter().take(position).any(|other| other.member == member) {
                return Err(fault("named twice"));
            }
            check_url("peers.url", &peer.url)?;
        }
        let limits = &self.limits;
        let counts = [
            ("header_retry_ms", limits.header_retry_ms),
            ("acknowledgement_resend_ms", limits.acknowledgement_resend_ms),
            ("certificate_wait_ms", limits.certificate_wait_ms),
            ("peer_check_ms", limits.peer_check_ms),
            ("posting_check_ms", limits.posting_check_ms),
            ("first_look_ms", limits.first_look_ms),
            ("catch_up_batches", limits.catch_up_batches),
            ("fetch_timeout_ms", limits.fetch_timeout_ms),
            ("share_threads", limits.share_threads as u64),
            ("share_queue_calls", limits.share_queue_calls as u64),
            ("share_cache_batches", limits.share_cache_batches as u64),
            ("singleton_cache_entries", limits.singleton_cache_entries as u64),
            ("certificate_cache_entries", limits.certificate_cache_entries as u64),
        ];
        match counts.into_iter().find(|(_, value)| *value == 0) {
            Some((setting, _)) => Err(ConfigError::Zero { setting }),
            None if self.peer_listener.as_ref().is_some_and(|peers| peers.max_connections == 0) => {
                Err(ConfigError::NoPeerConnections)
            }
            None => Ok(()),
        }
    }
}

fn check_url(setting: &'static str, url: &str) -> Result<(), ConfigError> {
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    if host.is_some_and(|host| !host.is_empty() && !host.contains(char::is_whitespace)) {
        Ok(())
    } else {
        Err(ConfigError::Url { setting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_usable_and_every_fault_is_named() {
        let good = MemberConfig {
            peers: vec![PeerUrl { member: 2, url: "http://127.0.0.1:9552".to_owned() }],
            ..MemberConfig::default()
        };
        assert_eq!(good.check(1), Ok(()));

        assert_eq!(good.check(2), Err(ConfigError::Peer { member: 2, fault: "this member itself" }));
        let mut twice = good.clone();
        twice.peers.push(twice.peers[0].clone());
        assert_eq!(twice.check(1), Err(ConfigError::Peer { member: 2, fault: "named twice" }));
        let mut out = good.clone();
        out.peers[0].member = 65;
        assert_eq!(out.check(1), Err(ConfigError::Peer { member: 65, fault: "out of range" }));
        for url in ["", "http://", "ws://a", "http://a b"] {
            let bad = MemberConfig { sequencer_urls: url.into(), ..good.clone() };
            let fault = SequencerUrlsError::Url { place: 0 };
            assert_eq!(bad.check(1), Err(ConfigError::Sequencers(fault)), "{url}");
        }
        let mut bad = good.clone();
        bad.peers[0].url = "nowhere".to_owned();
        assert_eq!(bad.check(1), Err(ConfigError::Url { setting: "peers.url" }));
    }

    #[test]
    fn zero_limits_and_unknown_keys_are_refused() {
        let json = serde_json::to_value(MemberLimits::default()).expect("serializes");
        let names: Vec<String> = json.as_object().expect("object").keys().cloned().collect();
        assert_eq!(names.len(), 14);
        // Zero switches that comparison off.
        for name in names.into_iter().filter(|name| name != "max_l1_age_ms") {
            let mut zeroed = json.clone();
            zeroed[&name] = 0.into();
            let limits = serde_json::from_value(zeroed).expect("parses");
            let config = MemberConfig { limits, ..MemberConfig::default() };
            assert!(matches!(config.check(1), Err(ConfigError::Zero { setting }) if setting == name));
        }
        let unknown = serde_json::from_str::<MemberConfig>(r#"{"sequencer":"http://a"}"#);
        assert!(unknown.is_err_and(|error| error.to_string().contains("unknown field")));
    }
}
