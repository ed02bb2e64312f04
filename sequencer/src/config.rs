//! Settings of the sequencer: every limit has a name with its unit, and is checked before anything is bound or opened.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use blindfold_chain::VerifierLimits;
use blindfold_l1::{DataPolicy, MAX_TRANSACTION_HEADERS};
use blindfold_protocol::{
    Address,
    limits::{MAX_BATCH_ITEMS, MAX_MEMBERS, MAX_SECOND_BYTES},
};
use blindfold_rpc::{Inbound, PeerListener};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Later blocks that a block must have before it is claimed on L1, unless set otherwise.
pub(crate) const DEFAULT_OUTPUT_DEPTH_BLOCKS: u64 = 10;

/// Settings of the sequencer. Unknown keys are refused; a missing key takes the default of [`SequencerConfig::default`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SequencerConfig {
    /// Where JSON-RPC is served, HTTP and WebSocket on one port.
    pub rpc_addr: SocketAddr,
    /// Where `/healthz`, `/readyz` and `/metrics` are served; keep it on loopback.
    pub admin_addr: SocketAddr,
    /// Folder of this sequencer's files; a lock file in it keeps a second process away.
    pub data_dir: PathBuf,
    /// How headers are sealed.
    pub sealing: SealingConfig,
    /// How much may wait to be sealed.
    pub mempool: MempoolConfig,
    /// How envelopes are checked and admitted.
    pub admission: AdmissionConfig,
    /// Certificates, refusals and hints that members and hint publishers send.
    pub peers: PeerConfig,
    /// How certified headers and their data are posted to L1.
    pub posting: PostingConfig,
    /// Answers to accusations on L1.
    pub accusations: AccusationsConfig,
    /// Claims of L2 blocks on L1.
    pub outputs: OutputsConfig,
    /// Accounts of hint publishers that prove who they are: their hints find a place, whoever else sends any.
    pub hint_publishers: Vec<Address>,
    /// Accounts of this operator's gateways: what they forward is counted by the addresses that they saw, not by theirs.
    pub gateways: Vec<Address>,
    /// The committee's members, asked before the first header what this sequencer has signed.
    pub members: Vec<MemberUrl>,
    /// How they are asked.
    pub recovery: RecoveryConfig,
    /// How often the final L1 block is looked up, in milliseconds.
    pub l1_poll_ms: u64,
    /// How long L1 may give unusable answers about the headers that it made before the sequencer ends, so that it starts
    /// anew, in milliseconds. No setting.
    #[serde(skip)]
    pub l1_unusable_exit_ms: u64,
    /// Reverse proxies before `rpc_addr`, its certificate, and what one address may take there.
    pub inbound: Inbound,
    /// A port beside it for members and hint publishers that show a certificate.
    pub peer_listener: Option<PeerListener>,
}

/// Where a committee member serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberUrl {
    /// Index of the member, from 1.
    pub member: u16,
    /// Its JSON-RPC, `http://` or `https://`.
    pub url: String,
}

/// Finding out, before the first header, what was signed before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecoveryConfig {
    /// How long all members are waited for, in milliseconds; after it the threshold is enough.
    pub patience_ms: u64,
    /// How long a member may take for one answer, in milliseconds.
    pub timeout_ms: u64,
    /// Pause between two attempts, in milliseconds.
    pub retry_ms: u64,
}

/// When a batch is sealed and how large it gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SealingConfig {
    /// Length of a slot in milliseconds: a batch is sealed once per slot when there are envelopes.
    pub slot_ms: u64,
    /// Items of one batch at most; a batch that reaches it is sealed before its slot ends.
    pub max_batch_items: u32,
    /// Bytes of one batch's items at most; the default is twice the base fee's target, so that the base fee
    /// rises by at most an eighth per batch.
    pub max_batch_bytes: u32,
    /// Headers without a certificate at most; with more the sequencer waits for the committee.
    pub max_uncertified_headers: u32,
    /// A promise is for a number up to the head's + this.
    pub promise_batches: u64,
    /// A promise is for a number from the head's + this on.
    pub promise_margin_batches: u64,
    /// While envelopes wait, an empty header is sealed when none came for this long, in milliseconds.
    pub heartbeat_ms: u64,
    /// First pause after a failed seal (L1 or disk), in milliseconds; it doubles up to ten seconds.
    pub retry_ms: u64,
    /// A disk that refuses for so long ends the sequencer, in milliseconds.
    pub storage_exit_ms: u64,
    /// An L1 block that is at most so old confirms our clock, in milliseconds; 0: L1 is not compared.
    pub max_l1_age_ms: u64,
}

/// Limits of the mempool. In a full pool a higher rank takes the lowest places; what was promised keeps its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MempoolConfig {
    /// The most envelopes that may be pending.
    pub max_envelopes: usize,
    /// Bytes of all pending envelopes at most.
    pub max_bytes: usize,
    /// Pending envelopes of one payer at most.
    pub max_per_payer: usize,
    /// Gas that one payer's pending envelopes reserve at most.
    pub max_gas_per_payer: u64,
}

/// How many envelopes are taken, from whom, and how they are checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdmissionConfig {
    /// Envelopes whose signatures and proofs are verified together at most.
    pub proof_batch_items: usize,
    /// How long the first envelope of such a group waits for others, in microseconds.
    pub proof_wait_us: u64,
    /// Envelopes waiting for verification at most; beyond it requests are refused as `overloaded`.
    pub proof_queue_items: usize,
    /// Groups verified at the same time at most (threads).
    pub proof_threads: usize,
    /// Envelopes per second one network address may send in the long run.
    pub source_rate_per_second: u32,
    /// Envelopes one network address may send at once.
    pub source_burst: u32,
    /// Network addresses remembered at most.
    pub max_sources: usize,
    /// Bytes that may be on their way at most: in the mempool, and sealed but not yet posted, opened and executed.
    pub max_backlog_bytes: u64,
    /// How long an envelope may have to wait for its certificate, in milliseconds; what would wait longer, by those before it
    /// and the pace of certificates, is refused. 0: however long it takes.
    pub max_wait_ms: u64,
}

/// Limits of what members and hint publishers send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeerConfig {
    /// Acknowledgements and hints verified at the same time at most (threads).
    pub verify_threads: usize,
    /// Submissions waiting for a verifying thread at most.
    pub verify_queue_items: usize,
    /// Refusals of members kept for the status.
    pub max_refusals: usize,
}

/// How certified headers and their data are posted to L1, by which account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PostingConfig {
    /// Whether this sequencer posts at all.
    pub enabled: bool,
    /// Pause between two postings, in milliseconds.
    pub interval_ms: u64,
    /// Headers in one posting at most.
    pub max_headers: usize,
    /// Bytes of batch data in one posting at most (a batch that is larger goes alone).
    pub max_bytes: usize,
    /// Where the data goes: into calldata, into blobs, or where it is cheaper. In blobs it is read back through a beacon node
    /// only, and only for some weeks; without one nothing goes there unless this says so.
    pub data: DataPolicy,
    /// L1 blocks for which the data of posted headers waits for hints on L1, with which it is posted as what it was opened
    /// to; then it is posted as it is. 0 posts it as it is, with its headers.
    pub opened_wait_blocks: u64,
    /// How long members may take to read such data before it is posted, in milliseconds, each time they are asked. 0: they
    /// are not asked.
    pub attestation_wait_ms: u64,
    /// First pause after a failed posting, in milliseconds; it doubles up to `max_retry_ms`.
    pub retry_ms: u64,
    /// Longest pause after failed postings, in milliseconds.
    pub max_retry_ms: u64,
}

/// Answers to accusations on L1; given whenever there is a posting key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccusationsConfig {
    /// Pause between two looks for accusations, in milliseconds; far less than the answer window.
    pub interval_ms: u64,
}

/// Claims of L2 blocks in `OutputRegistry`, which takes them from the sequencer's own account only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputsConfig {
    /// Whether this sequencer claims at all.
    pub enabled: bool,
    /// Pause between two claims, in milliseconds.
    pub interval_ms: u64,
    /// Later blocks that a block must have before it is claimed: a claim is never replaced.
    pub depth_blocks: u64,
}

impl Default for SequencerConfig {
    fn default() -> Self {
        Self {
            rpc_addr: SocketAddr::from(([127, 0, 0, 1], 9545)),
            admin_addr: SocketAddr::from(([127, 0, 0, 1], 9546)),
            data_dir: PathBuf::from("sequencer-data"),
            sealing: SealingConfig::default(),
            mempool: MempoolConfig::default(),
            admission: AdmissionConfig::default(),
            peers: PeerConfig::default(),
            posting: PostingConfig::default(),
            accusations: AccusationsConfig::default(),
            outputs: OutputsConfig::default(),
            hint_publishers: Vec::new(),
            gateways: Vec::new(),
            members: Vec::new(),
            recovery: RecoveryConfig::default(),
            l1_poll_ms: 1_000,
            l1_unusable_exit_ms: 300_000,
            inbound: Inbound::default(),
            peer_listener: None,
        }
    }
}

impl Default for SealingConfig {
    fn default() -> Self {
        Self {
            slot_ms: 250,
            max_batch_items: MAX_BATCH_ITEMS as u32,
            max_batch_bytes: 256 * 1024,
            max_uncertified_headers: 16,
            promise_batches: 64,
            promise_margin_batches: 4,
            heartbeat_ms: 12_000,
            retry_ms: 500,
            storage_exit_ms: 300_000,
            max_l1_age_ms: 120_000,
        }
    }
}

impl Default for MempoolConfig {
    fn default() -> Self {
        Self {
            max_envelopes: 16_384,
            max_bytes: 64 << 20,
            max_per_payer: 1_024,
            max_gas_per_payer: 800_000_000,
        }
    }
}

impl AdmissionConfig {
    pub(crate) const fn verifier(&self) -> VerifierLimits {
        VerifierLimits {
            group_items: self.proof_batch_items,
            group_wait: Duration::from_micros(self.proof_wait_us),
            queue_items: self.proof_queue_items,
            threads: self.proof_threads,
        }
    }
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        Self {
            proof_batch_items: 64,
            proof_wait_us: 50_000,
            proof_queue_items: 4_096,
            proof_threads: 2,
            source_rate_per_second: 2_000,
            source_burst: 4_000,
            max_sources: 16_384,
            max_backlog_bytes: 128 << 20,
            max_wait_ms: 750,
        }
    }
}

impl Default for PeerConfig {
    fn default() -> Self {
        Self { verify_threads: 2, verify_queue_items: 256, max_refusals: 256 }
    }
}

impl Default for PostingConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            interval_ms: 2_000,
            max_headers: 64,
            max_bytes: 96 * 1024,
            data: DataPolicy::Auto,
            opened_wait_blocks: 300,
            attestation_wait_ms: 20_000,
            retry_ms: 1_000,
            max_retry_ms: 30_000,
        }
    }
}

impl Default for AccusationsConfig {
    fn default() -> Self {
        Self { interval_ms: 12_000 }
    }
}

impl Default for RecoveryConfig {
    fn default() -> Self {
        Self { patience_ms: 10_000, timeout_ms: 3_000, retry_ms: 1_000 }
    }
}

impl Default for OutputsConfig {
    fn default() -> Self {
        Self { enabled: true, interval_ms: 30_000, depth_blocks: DEFAULT_OUTPUT_DEPTH_BLOCKS }
    }
}

/// A setting that cannot work.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A value lies outside what works.
    #[error("setting {name} = {value} is outside {low}..={high}")]
    OutOfRange {
        /// Name of the setting.
        name: &'static str,
        /// The value that it has.
        value: u64,
        /// Smallest value that works.
        low: u64,
        /// Largest value that works.
        high: u64,
    },
    /// The longest pause is shorter than the first one.
    #[error("posting.max_retry_ms is smaller than posting.retry_ms")]
    RetryOrder,
    /// A member's index is out of range or named twice.
    #[error("members: {0} is no index of a member, or is named twice")]
    Member(u16),
    /// Two servers would share one port.
    #[error("two of rpc_addr, admin_addr and peer_listener.addr are the same address")]
    SameAddress,
    /// A limit that must not be zero.
    #[error("peer_listener.max_connections must not be zero")]
    NoPeerConnections,
}

impl SequencerConfig {
    /// Checks every limit; called before a port is bound or a file is opened.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let s = &self.sealing;
        let a = &self.admission;
        let m = &self.mempool;
        let p = &self.peers;
        let o = &self.posting;
        for (name, value, low, high) in [
            ("sealing.slot_ms", s.slot_ms, 1, 60_000),
            ("sealing.max_batch_items", s.max_batch_items.into(), 1, MAX_BATCH_ITEMS as u64),
            ("sealing.max_batch_bytes", s.max_batch_bytes.into(), MIN_BATCH_BYTES, MAX_SECOND_BYTES),
            ("sealing.max_uncertified_headers", s.max_uncertified_headers.into(), 1, MAX_UNCERTIFIED),
            ("sealing.promise_batches", s.promise_batches, 1, 4_096),
            ("sealing.promise_margin_batches", s.promise_margin_batches, 1, s.promise_batches),
            ("sealing.heartbeat_ms", s.heartbeat_ms, 1_000, 3_600_000),
            ("sealing.retry_ms", s.retry_ms, 1, 60_000),
            ("sealing.storage_exit_ms", s.storage_exit_ms, 0, 86_400_000),
            ("sealing.max_l1_age_ms", s.max_l1_age_ms, 0, 86_400_000),
            ("mempool.max_envelopes", m.max_envelopes as u64, 1, 1 << 20),
            ("mempool.max_bytes", m.max_bytes as u64, MIN_BATCH_BYTES, 4 << 30),
            ("mempool.max_per_payer", m.max_per_payer as u64, 1, 1 << 20),
            ("mempool.max_gas_per_payer", m.max_gas_per_payer, 1, u64::MAX),
            ("admission.proof_batch_items", a.proof_batch_items as u64, 1, 4_096),
            ("admission.proof_wait_us", a.proof_wait_us, 0, 1_000_000),
            ("admission.proof_queue_items", a.proof_queue_items as u64, 1, 1 << 20),
            ("admission.proof_threads", a.proof_threads as u64, 1, 256),
            ("admission.source_rate_per_second", a.source_rate_per_second.into(), 1, 1 << 30),
            ("admission.source_burst", a.source_burst.into(), 1, 1 << 30),
            ("admission.max_sources", a.max_sources as u64, 1, 1 << 24),
            ("admission.max_backlog_bytes", a.max_backlog_bytes, MIN_BATCH_BYTES, 1 << 40),
            ("admission.max_wait_ms", a.max_wait_ms, 0, 3_600_000),
            ("peers.verify_threads", p.verify_threads as u64, 1, 256),
            ("peers.verify_queue_items", p.verify_queue_items as u64, 1, 1 << 20),
            ("peers.max_refusals", p.max_refusals as u64, 1, 1 << 20),
            ("posting.interval_ms", o.interval_ms, 1, 3_600_000),
            ("posting.max_headers", o.max_headers as u64, 1, MAX_TRANSACTION_HEADERS as u64),
            ("posting.max_bytes", o.max_bytes as u64, 1, 8 << 20),
            ("posting.opened_wait_blocks", o.opened_wait_blocks, 0, 1_800),
            ("posting.attestation_wait_ms", o.attestation_wait_ms, 0, 120_000),
            ("posting.retry_ms", o.retry_ms, 1, 3_600_000),
            ("posting.max_retry_ms", o.max_retry_ms, 1, 3_600_000),
            ("accusations.interval_ms", self.accusations.interval_ms, 1, 3_600_000),
            ("outputs.interval_ms", self.outputs.interval_ms, 1, 3_600_000),
            ("outputs.depth_blocks", self.outputs.depth_blocks, 1, 1_000_000),
            ("recovery.patience_ms", self.recovery.patience_ms, 0, 3_600_000),
            ("recovery.timeout_ms", self.recovery.timeout_ms, 1, 600_000),
            ("recovery.retry_ms", self.recovery.retry_ms, 1, 600_000),
            ("l1_poll_ms", self.l1_poll_ms, 1, 600_000),
        ] {
            if value < low || value > high {
                return Err(ConfigError::OutOfRange { name, value, low, high });
            }
        }
        for (position, MemberUrl { member, .. }) in self.members.iter().enumerate() {
            let known = 1..=MAX_MEMBERS as u16;
            if !known.contains(member)
                || self.members.iter().take(position).any(|other| other.member == *member)
            {
                return Err(ConfigError::Member(*member));
            }
        }
        if o.max_retry_ms < o.retry_ms {
            return Err(ConfigError::RetryOrder);
        }
        let peers = self.peer_listener.as_ref();
        let addrs = [Some(self.rpc_addr), Some(self.admin_addr), peers.map(|peers| peers.addr)];
        let addrs: Vec<SocketAddr> = addrs.into_iter().flatten().filter(|addr| addr.port() != 0).collect();
        if (1..addrs.len()).any(|index| addrs[..index].contains(&addrs[index])) {
            return Err(ConfigError::SameAddress);
        }
        if peers.is_some_and(|peers| peers.max_connections == 0) {
            return Err(ConfigError::NoPeerConnections);
        }
        Ok(())
    }
}

/// The largest envelope must always fit into a batch.
const MIN_BATCH_BYTES: u64 = blindfold_protocol::limits::MAX_ENVELOPE_BYTES as u64;
/// Uncertified headers in flight by the protocol's limits.
const MAX_UNCERTIFIED: u64 = blindfold_protocol::limits::MAX_UNCERTIFIED_HEADERS as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_survive_json() {
        let config = SequencerConfig::default();
        config.validate().unwrap();
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<SequencerConfig>(&json).unwrap(), config);
        assert_eq!(serde_json::from_str::<SequencerConfig>("{}").unwrap(), config);
    }

    #[test]
    fn unknown_keys_are_refused() {
        assert!(serde_json::from_str::<SequencerConfig>(r#"{"slot":1}"#).is_err());
        assert!(serde_json::from_str::<SequencerConfig>(r#"{"sealing":{"slot":1}}"#).is_err());
    }

    #[test]
    fn each_kind_of_bad_setting_is_named() {
        let mut config = SequencerConfig::default();
        config.sealing.slot_ms = 0;
        assert!(matches!(config.validate(), Err(ConfigError::OutOfRange { name: "sealing.slot_ms", .. })));
        let mut config = SequencerConfig::default();
        config.sealing.max_batch_bytes = 100;
        assert!(matches!(
            config.validate(),
            Err(ConfigError::OutOfRange { name: "sealing.max_batch_bytes", .. })
        ));
        let mut config = SequencerConfig::default();
        config.posting.max_retry_ms = config.posting.retry_ms - 1;
        assert_eq!(config.validate(), Err(ConfigError::RetryOrder));
        let mut config = SequencerConfig::default();
        config.admin_addr = config.rpc_addr;
        assert_eq!(config.validate(), Err(ConfigError::SameAddress));
        let peer_listener = PeerListener {
            addr: "127.0.0.1:0".parse().unwrap(),
            cert_file: "cert.pem".into(),
            key_file: "key.pem".into(),
            client_ca_file: "ca.pem".into(),
            max_connections: 1,
        };
        let with = |peer_listener| SequencerConfig { peer_listener, ..SequencerConfig::default() }.validate();
        assert_eq!(with(Some(peer_listener.clone())), Ok(()));
        let same = PeerListener { addr: SequencerConfig::default().rpc_addr, ..peer_listener.clone() };
        assert_eq!(with(Some(same)), Err(ConfigError::SameAddress));
        let none = PeerListener { max_connections: 0, ..peer_listener };
        assert_eq!(with(Some(none)), Err(ConfigError::NoPeerConnections));
        let member = |member| MemberUrl { member, url: "http://127.0.0.1:9551".to_owned() };
        for members in [vec![member(0)], vec![member(65)], vec![member(2), member(2)]] {
            let config = SequencerConfig { members, ..SequencerConfig::default() };
            assert!(matches!(config.validate(), Err(ConfigError::Member(_))));
        }
    }
}
