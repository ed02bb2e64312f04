//! Settings of the hint publisher: checked before anything is bound or connected.

use std::net::SocketAddr;

use blindfold_protocol::limits::{MAX_BATCH_ITEMS, MAX_MEMBERS, MAX_UNCERTIFIED_HEADERS};
use blindfold_rpc::{SequencerUrls, SequencerUrlsError};
use serde::{Deserialize, Serialize};

/// Settings of the hint publisher. Unknown keys are refused; a missing key takes the default of
/// [`HintPublisherConfig::default`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HintPublisherConfig {
    /// Where `/healthz`, `/readyz` and `/metrics` are served; keep it on loopback.
    pub admin_addr: SocketAddr,
    /// The sequencers' JSON-RPC, `http://` or `https://`; their WebSockets are on the same ports. One leads.
    pub sequencer_urls: SequencerUrls,
    /// The members, each with its JSON-RPC. At least a threshold of them is needed to open anything.
    pub members: Vec<MemberUrl>,
    /// Limits of time, memory and work.
    pub limits: HintPublisherLimits,
}

/// A member, and where it serves JSON-RPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberUrl {
    /// Index of the member, from 1.
    pub member: u16,
    /// Its JSON-RPC, `http://` or `https://`.
    pub url: String,
}

/// Every limit of the hint publisher, with its unit last in the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HintPublisherLimits {
    /// Batches that are pre-decrypted, or caught up with, at the same time. The backend spreads each over its own threads.
    pub predecrypt_workers: usize,
    /// Ciphertexts of all batches that are pre-decrypted and not published; about 1 KiB each.
    pub max_predecrypted_ciphertexts: usize,
    /// Batches without hints that are worked on at the same time besides the live ones.
    pub catch_up_batches: usize,
    /// Batches from the feed that are worked on at the same time; further ones wait until they are caught up with.
    pub live_batches: usize,
    /// How long the first t members may take before the others are asked, too.
    pub hedge_ms: u64,
    /// How long one call to a member may take.
    pub member_timeout_ms: u64,
    /// Pause before a member that did not answer, or could not yet, is asked again.
    pub member_retry_ms: u64,
    /// Singleton shares asked for at the same time for one batch.
    pub parallel_singletons: usize,
    /// Pause before hints that the sequencer did not take are sent again.
    pub publish_retry_ms: u64,
    /// Pause before a batch that could not be opened is begun again.
    pub batch_retry_ms: u64,
    /// Sub-batches that a batch has at least to be shared one by one with other hint publishers, where there is a Redis; one
    /// with fewer is done by one of them. The same for all that share.
    pub share_min_sub_batches: usize,
    /// How long another hint publisher that shares batches may be silent before its part is taken over; whoever is at
    /// work says so four times a second. The same for all that share.
    pub share_lease_ms: u64,
    /// How often the sequencer is asked which batches have no hints, besides after every connection.
    pub sweep_ms: u64,
    /// How long batches may fail for another reason than silence, and none succeed, before the hint publisher ends so that it
    /// starts anew. No setting.
    #[serde(skip)]
    pub stuck_exit_ms: u64,
    /// How long members that cannot give a share yet are asked again for one batch, before it takes its turn again: what it
    /// is may be another by then. No setting.
    #[serde(skip)]
    pub members_wait_ms: u64,
}

/// Fewer pre-decrypted ciphertexts could make a certified batch wait for uncertified ones.
const MIN_PREDECRYPTED_CIPHERTEXTS: usize = (MAX_UNCERTIFIED_HEADERS + 1) * MAX_BATCH_ITEMS;

impl Default for HintPublisherConfig {
    fn default() -> Self {
        Self {
            admin_addr: SocketAddr::from(([127, 0, 0, 1], 9571)),
            sequencer_urls: "http://127.0.0.1:9545".into(),
            members: Vec::new(),
            limits: HintPublisherLimits::default(),
        }
    }
}

impl Default for HintPublisherLimits {
    fn default() -> Self {
        Self {
            predecrypt_workers: 1,
            max_predecrypted_ciphertexts: 128 * 1024,
            catch_up_batches: 4,
            live_batches: 2 * MAX_UNCERTIFIED_HEADERS,
            hedge_ms: 300,
            member_timeout_ms: 5_000,
            member_retry_ms: 200,
            parallel_singletons: 16,
            publish_retry_ms: 500,
            batch_retry_ms: 1_000,
            share_min_sub_batches: 2,
            share_lease_ms: 1_000,
            sweep_ms: 3_000,
            stuck_exit_ms: 300_000,
            members_wait_ms: 60_000,
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
    /// A limit below what works.
    #[error("limits.{setting} must be at least {least}")]
    TooSmall {
        /// Name of the setting.
        setting: &'static str,
        /// The least value that works.
        least: u64,
    },
    /// A member index out of range or named twice.
    #[error("members: member {member} is {fault}")]
    Member {
        /// The member's index in the settings.
        member: u16,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// Fewer members than an epoch needs.
    #[error("members: {given} are named, epoch {epoch} needs {needed} to open a batch")]
    TooFewMembers {
        /// Number of the epoch.
        epoch: u64,
        /// How many members are named.
        given: usize,
        /// The epoch's threshold t.
        needed: u16,
    },
}

impl HintPublisherConfig {
    /// Checks everything that can be checked by itself.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.sequencer_urls.check()?;
        for (position, entry) in self.members.iter().enumerate() {
            let member = entry.member;
            if member == 0 || usize::from(member) > MAX_MEMBERS {
                return Err(ConfigError::Member { member, fault: "out of range" });
            }
            if self.members.iter().take(position).any(|other| other.member == member) {
                return Err(ConfigError::Member { member, fault: "named twice" });
            }
            check_url("members.url", &entry.url)?;
        }
        let limits = &self.limits;
        let least = [
            ("predecrypt_workers", limits.predecrypt_workers as u64, 1),
            (
                "max_predecrypted_ciphertexts",
                limits.max_predecrypted_ciphertexts as u64,
                MIN_PREDECRYPTED_CIPHERTEXTS as u64,
            ),
            ("catch_up_batches", limits.catch_up_batches as u64, 1),
            ("live_batches", limits.live_batches as u64, 1),
            ("hedge_ms", limits.hedge_ms, 1),
            ("member_timeout_ms", limits.member_timeout_ms, 1),
            ("member_retry_ms", limits.member_retry_ms, 1),
            ("parallel_singletons", limits.parallel_singletons as u64, 1),
            ("publish_retry_ms", limits.publish_retry_ms, 1),
            ("batch_retry_ms", limits.batch_retry_ms, 1),
            ("share_min_sub_batches", limits.share_min_sub_batches as u64, 1),
            ("share_lease_ms", limits.share_lease_ms, 1),
            ("sweep_ms", limits.sweep_ms, 1),
        ];
        match least.into_iter().find(|(_, value, least)| value < least) {
            Some((setting, _, least)) => Err(ConfigError::TooSmall { setting, least }),
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
        let good = HintPublisherConfig {
            members: vec![MemberUrl { member: 1, url: "http://127.0.0.1:9551".to_owned() }],
            ..HintPublisherConfig::default()
        };
        assert_eq!(good.check(), Ok(()));
        let mut twice = good.clone();
        twice.members.push(twice.members[0].clone());
        assert_eq!(twice.check(), Err(ConfigError::Member { member: 1, fault: "named twice" }));
        let mut out = good.clone();
        out.members[0].member = 0;
        assert_eq!(out.check(), Err(ConfigError::Member { member: 0, fault: "out of range" }));
        let bad = HintPublisherConfig { sequencer_urls: "ws://a".into(), ..good.clone() };
        assert_eq!(bad.check(), Err(ConfigError::Sequencers(SequencerUrlsError::Url { place: 0 })));
        let mut bad = good.clone();
        bad.members[0].url = "http://".to_owned();
        assert_eq!(bad.check(), Err(ConfigError::Url { setting: "members.url" }));
    }

    #[test]
    fn small_limits_and_unknown_keys_are_refused() {
        let json = serde_json::to_value(HintPublisherLimits::default()).expect("serializes");
        let names: Vec<String> = json.as_object().expect("object").keys().cloned().collect();
        assert_eq!(names.len(), 13);
        for name in names {
            let mut zeroed = json.clone();
            zeroed[&name] = 0.into();
            let limits = serde_json::from_value(zeroed).expect("parses");
            let config = HintPublisherConfig { limits, ..HintPublisherConfig::default() };
            assert!(matches!(config.check(), Err(ConfigError::TooSmall { setting, .. }) if setting == name));
        }
        let unknown = serde_json::from_str::<HintPublisherConfig>(r#"{"member":[]}"#);
        assert!(unknown.is_err_and(|error| error.to_string().contains("unknown field")));
    }
}
