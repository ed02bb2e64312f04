//! A full node's settings.

use std::net::SocketAddr;

use blindfold_rpc::{Inbound, SequencerUrls, SequencerUrlsError};
use serde::{Deserialize, Serialize};

use crate::limits::{
    DEFAULT_HINT_DEADLINE_MS, DEFAULT_MEMBER_POLL_INTERVAL_MS, DEFAULT_MEMBER_TIMEOUT_MS,
    MAX_HINT_DEADLINE_MS, MAX_MEMBER_TIMEOUT_MS, MIN_KEPT_BATCHES, MIN_MEMBER_POLL_INTERVAL_MS,
};

/// Settings of a full node; a table of the configuration file. Unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FullNodeConfig {
    /// Where the JSON-RPC server listens.
    pub rpc_addr: SocketAddr,
    /// Where `/healthz`, `/readyz` and `/metrics` are served. Not for the public.
    pub admin_addr: SocketAddr,
    /// Where batches and hints come from.
    #[serde(default)]
    pub source: Source,
    /// The sequencers' JSON-RPC, `http://…`; their feeds are the same addresses with `ws://`. One leads, and nothing any of
    /// them says is believed. Not needed, and not asked, by a node that follows from L1 alone.
    #[serde(default, skip_serializing_if = "SequencerUrls::is_empty")]
    pub sequencer_urls: SequencerUrls,
    /// The committee members' JSON-RPC: asked when the sequencer withholds batches or hints.
    pub members: Vec<MemberEndpoint>,
    /// How long after the certificate hints may take before the node decrypts by itself, in milliseconds.
    #[serde(default = "default_hint_deadline_ms")]
    pub hint_deadline_ms: u64,
    /// How long one member may take for one answer, in milliseconds.
    #[serde(default = "default_member_timeout_ms")]
    pub member_timeout_ms: u64,
    /// How long without news from the sequencer before members are asked for certified batches, in milliseconds.
    #[serde(default = "default_member_poll_interval_ms")]
    pub member_poll_interval_ms: u64,
    /// How many of the newest batches are kept at least, once L1 can change nothing of those before them; all where none is
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_batches: Option<u64>,
    /// Reverse proxies before `rpc_addr`, its certificate, and what one address may take there.
    #[serde(default)]
    pub inbound: Inbound,
}

/// Where a full node has the chain from. What it takes it verifies itself in both cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The sequencer's feed, at once.
    #[default]
    Feed,
    /// What was posted to L1 and is final there: later, and from nobody but L1.
    L1,
}

/// A committee member, and where it serves JSON-RPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberEndpoint {
    /// The member's index, from 1.
    pub member: u16,
    /// Its JSON-RPC, an `http://` or `https://` URL.
    pub url: String,
}

/// A setting that no node can run with. The fault of whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The sequencers.
    #[error(transparent)]
    Sequencers(#[from] SequencerUrlsError),
    /// Not an `http://` or `https://` URL.
    #[error("{key}: expected http:// or https://")]
    Url {
        /// Name of the setting.
        key: String,
    },
    /// A member index of zero, or one that is there twice.
    #[error("members: index {0} is zero or there twice")]
    Member(u16),
    /// A time outside its bounds.
    #[error("{key} is {value}, allowed are {min} to {max}")]
    Range {
        /// Name of the setting.
        key: &'static str,
        /// The value that it has.
        value: u64,
        /// The least value that works.
        min: u64,
        /// The greatest value that works.
        max: u64,
    },
}

impl FullNodeConfig {
    /// Checks what can be checked without opening anything.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.source == Source::Feed {
            self.sequencer_urls.check()?;
        }
        let mut seen = std::collections::BTreeSet::new();
        for endpoint in &self.members {
            if endpoint.member == 0 || !seen.insert(endpoint.member) {
                return Err(ConfigError::Member(endpoint.member));
            }
            check_url(&format!("members[{}].url", endpoint.member), &endpoint.url)?;
        }
        check_range("hint_deadline_ms", self.hint_deadline_ms, 0, MAX_HINT_DEADLINE_MS)?;
        check_range("member_timeout_ms", self.member_timeout_ms, 1, MAX_MEMBER_TIMEOUT_MS)?;
        let interval = self.member_poll_interval_ms;
        check_range("member_poll_interval_ms", interval, MIN_MEMBER_POLL_INTERVAL_MS, MAX_HINT_DEADLINE_MS)?;
        match self.keep_batches {
            Some(keep) => check_range("keep_batches", keep, MIN_KEPT_BATCHES, u64::MAX),
            None => Ok(()),
        }
    }
}

fn check_url(key: &str, url: &str) -> Result<(), ConfigError> {
    if url.starts_with("http://") || url.starts_with("https://") {
        Ok(())
    } else {
        Err(ConfigError::Url { key: key.to_owned() })
    }
}

fn check_range(key: &'static str, value: u64, min: u64, max: u64) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(ConfigError::Range { key, value, min, max }) }
}

fn default_hint_deadline_ms() -> u64 {
    DEFAULT_HINT_DEADLINE_MS
}

fn default_member_timeout_ms() -> u64 {
    DEFAULT_MEMBER_TIMEOUT_MS
}

fn default_member_poll_interval_ms() -> u64 {
    DEFAULT_MEMBER_POLL_INTERVAL_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = r#"
        rpc_addr = "127.0.0.1:9580"
        admin_addr = "127.0.0.1:9581"
        sequencer_urls = ["http://127.0.0.1:9545"]
        members = [{ member = 1, url = "http://127.0.0.1:9551" }]
    "#;

    fn minimal() -> FullNodeConfig {
        toml::from_str(MINIMAL).expect("it parses")
    }

    #[test]
    fn defaults_fill_in_and_unknown_keys_are_refused() {
        let config = minimal();
        config.validate().unwrap();
        assert_eq!(config.hint_deadline_ms, DEFAULT_HINT_DEADLINE_MS);
        assert_eq!(config.sequencer_urls, "http://127.0.0.1:9545".into());
        assert!(toml::from_str::<FullNodeConfig>(&format!("{MINIMAL}\nhint_deadline = 3")).is_err());
        assert!(toml::from_str::<FullNodeConfig>("rpc_addr = 3").is_err());
    }

    #[test]
    fn a_node_that_follows_l1_needs_no_sequencer() {
        let without = MINIMAL.replace("sequencer_urls", "# sequencer_urls");
        let config = |source: &str| -> FullNodeConfig {
            toml::from_str(&format!("{source}\n{without}")).expect("it parses")
        };
        assert_eq!(config("source = \"l1\"").validate(), Ok(()));
        let missing = Err(ConfigError::Sequencers(SequencerUrlsError::Empty));
        assert_eq!(config("").validate(), missing);
        assert_eq!(config("source = \"feed\"").validate(), missing);
    }

    #[test]
    fn each_wrong_setting_is_named() {
        let url = |change: fn(&mut FullNodeConfig)| {
            let mut config = minimal();
            change(&mut config);
            config.validate()
        };
        assert_eq!(
            url(|config| config.sequencer_urls = "ws://x".into()),
            Err(ConfigError::Sequencers(SequencerUrlsError::Url { place: 0 }))
        );
        assert_eq!(
            url(|config| config.members[0].url = "x".into()),
            Err(ConfigError::Url { key: "members[1].url".into() })
        );
        assert_eq!(url(|config| config.members[0].member = 0), Err(ConfigError::Member(0)));
        assert_eq!(url(|config| config.members.push(config.members[0].clone())), Err(ConfigError::Member(1)));
        for (change, key) in [
            ((|config| config.hint_deadline_ms = u64::MAX) as fn(&mut FullNodeConfig), "hint_deadline_ms"),
            (|config| config.member_timeout_ms = 0, "member_timeout_ms"),
            (|config| config.member_poll_interval_ms = 1, "member_poll_interval_ms"),
            (|config| config.keep_batches = Some(1), "keep_batches"),
        ] {
            assert!(matches!(url(change), Err(ConfigError::Range { key: named, .. }) if named == key));
        }
    }
}
