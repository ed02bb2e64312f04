//! The settings files of the development network's roles.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use alloy_primitives::Address;
use anyhow::{Context, Result};
use blindfold_certificates::{Authority, Pair, Said};
use blindfold_client::{KeySource, ProxyConfig};
use blindfold_committee::{MemberConfig, MemberLimits, PeerUrl};
use blindfold_coprocessor::CoprocessorConfig;
use blindfold_full_node::{FullNodeConfig, MemberEndpoint, Source};
use blindfold_gateway::{GatewayConfig, RelayConfig};
use blindfold_hint_publisher::{HintPublisherConfig, MemberUrl};
use blindfold_l1::DataPolicy;
use blindfold_otlp::TraceSettings;
use blindfold_redis::RedisSettings;
use blindfold_rpc::{PeerListener, SequencerUrls};
use blindfold_sequencer::{
    AccusationsConfig, MemberUrl as SequencerMember, OutputsConfig, PostingConfig, SealingConfig,
    SequencerConfig,
};
use blindfold_signer::SignerConfig;
use blindfold_tls::TlsSettings;
use serde::Serialize;

use super::accounts::named_key;
use super::ports::{NodePorts, Ports, http, local};
use crate::roles::{
    BackendSettings, CommitteeSettings, CoprocessorSettings, DEFAULT_LEASE_MS, ExecutionSettings,
    FailoverSettings, FullNodeSettings, GatewaySettings, HintPublisherSettings, L1PostingSettings,
    L1Settings, ProxySettings, RelaySettings, RemoteSignerSettings, SequencerSettings, SignerSettings,
    StoreSettings, WatchSettings, Wei,
};

/// Pause between two postings of headers to the development L1, in milliseconds: about one a block of it.
const POSTING_INTERVAL_MS: u64 = 500;
/// How often the hint publisher and the full node look there for hints, in milliseconds.
const HINTS_INTERVAL_MS: u64 = 500;
/// How often the sequencer looks for accusations there, in milliseconds.
const ACCUSATIONS_INTERVAL_MS: u64 = 1_000;
/// Pause between two claims of L2 blocks there, in milliseconds.
const OUTPUTS_INTERVAL_MS: u64 = 500;
/// Later blocks that a block must have before it is claimed: so few that a short run shows claims.
const OUTPUTS_DEPTH_BLOCKS: u64 = 2;
/// Pause of the node from L1 between two looks there, in milliseconds.
const L1_NODE_INTERVAL_MS: u64 = 500;
/// The development L1 mines ahead of the clock where a window has to pass, so its time says nothing about ours.
const MAX_L1_AGE_MS: u64 = 0;
/// How often a role looks for a new final L1 block, in milliseconds.
const L1_POLL_INTERVAL_MS: u64 = 500;

/// How long the signer may take to answer, in milliseconds: the machine is busy with everything else.
const SIGNER_TIMEOUT_MS: u64 = 2_000;
/// Open connections at the signer.
const SIGNER_CONNECTIONS: u32 = 64;
/// Folder of the certificates.
const TLS: &str = "tls";

/// What the settings are made from.
pub struct Layout<'a> {
    /// The folder of this run's files.
    pub dir: &'a Path,
    /// The ports that the parts of the network listen on.
    pub ports: &'a Ports,
    /// The JSON-RPC endpoint of L1.
    pub l1_url: &'a str,
    /// Under which URLs each role finds the sequencer.
    pub sequencer_urls: &'a dyn Fn(&str) -> SequencerUrls,
    /// Where each role keeps its records.
    pub stores: &'a BTreeMap<String, StoreSettings>,
    /// The Redis server that gateways, and hint publishers, share, if there is one.
    pub redis_url: Option<&'a str>,
    /// How long a slot is, in milliseconds, if not as by default.
    pub slot_ms: Option<u64>,
    /// The collector that gets traces of all envelopes, if there is one.
    pub traces_url: Option<&'a str>,
}

/// Whom sequencers and members know as hint publishers.
fn hint_publishers() -> Vec<Address> {
    [super::accounts::HINT_PUBLISHER, super::accounts::SECOND_HINT_PUBLISHER]
        .map(|name| named_key(name).address())
        .to_vec()
}

fn failover(ports: &NodePorts) -> FailoverSettings {
    FailoverSettings { url: http(ports.node.0), lease_ms: DEFAULT_LEASE_MS }
}

impl Layout<'_> {
    fn traces(&self, role: &str) -> TraceSettings {
        let url = self.traces_url.map(str::to_owned);
        TraceSettings { url, share: 1.0, instance: Some(role.to_owned()), headers_file: None }
    }

    fn store(&self, role: &str) -> StoreSettings {
        self.stores.get(role).cloned().unwrap_or_default()
    }

    /// Path of the chain's settings, `rollup.json`.
    #[must_use]
    pub fn chain(&self) -> PathBuf {
        self.dir.join("rollup.json")
    }

    /// Path of the committee's parameter file.
    #[must_use]
    pub fn parameters(&self) -> PathBuf {
        self.dir.join("committee/parameters.bin")
    }

    /// The password of every key file of the run.
    #[must_use]
    pub fn password(&self) -> PathBuf {
        self.dir.join("password")
    }

    /// A key file of the run.
    #[must_use]
    pub fn key(&self, name: &str) -> KeySource {
        KeySource {
            file: self.dir.join("keys").join(format!("{name}.json")),
            password_file: Some(self.password()),
            password_env: None,
        }
    }

    fn l1(&self) -> L1Settings {
        // Anvil answers the questions to a beacon node too.
        let beacon_url = Some(self.l1_url.to_owned());
        let poll_interval_ms = L1_POLL_INTERVAL_MS;
        L1Settings { poll_interval_ms, beacon_url, ..L1Settings::new(self.l1_url) }
    }

    /// Settings of the sequencer's process, the first one or the only one.
    #[must_use]
    pub fn sequencer(&self) -> SequencerSettings {
        let ports = NodePorts { node: self.ports.sequencer, execution: self.ports.sequencer_execution };
        let failover = (!self.ports.further_sequencers.is_empty()).then(|| failover(&ports));
        SequencerSettings { failover, ..self.sequencer_at("sequencer", &ports) }
    }

    /// Settings of a further sequencer's process, by name.
    #[must_use]
    pub fn further_sequencer(&self, name: &str, ports: &NodePorts) -> SequencerSettings {
        SequencerSettings { failover: Some(failover(ports)), ..self.sequencer_at(name, ports) }
    }

    fn sequencer_at(&self, name: &str, ports: &NodePorts) -> SequencerSettings {
        SequencerSettings {
            chain: self.chain(),
            parameters: vec![self.parameters()],
            archive_token_files: Vec::new(),
            l1: self.l1(),
            tls: self.ports.signer.map_or_else(TlsSettings::default, |_| self.shown_to_the_signer()),
            traces: self.traces(name),
            execution: self.execution(&format!("{name}-execution"), ports.execution),
            signing_key: self.ports.signer.is_none().then(|| self.key(super::accounts::SEQUENCER)),
            signer: self.ports.signer.map(|(port, _)| RemoteSignerSettings {
                url: format!("https://127.0.0.1:{port}"),
                address: named_key(super::accounts::SEQUENCER).address(),
                timeout_ms: SIGNER_TIMEOUT_MS,
            }),
            posting_key: Some(self.key(super::accounts::SEQUENCER)),
            // Of the same place for all.
            store: self.store(name),
            failover: None,
            backend: BackendSettings::default(),
            sequencer: SequencerConfig {
                rpc_addr: local(ports.node.0),
                admin_addr: local(ports.node.1),
                data_dir: self.dir.join(name),
                sealing: SealingConfig {
                    max_l1_age_ms: MAX_L1_AGE_MS,
                    slot_ms: self.slot_ms.unwrap_or(SealingConfig::default().slot_ms),
                    ..SealingConfig::default()
                },
                posting: PostingConfig {
                    interval_ms: POSTING_INTERVAL_MS,
                    // A development chain's prices say nothing, and benchmarks count bytes of calldata.
                    data: DataPolicy::Calldata,
                    ..PostingConfig::default()
                },
                accusations: AccusationsConfig { interval_ms: ACCUSATIONS_INTERVAL_MS },
                outputs: OutputsConfig {
                    enabled: true,
                    interval_ms: OUTPUTS_INTERVAL_MS,
                    depth_blocks: OUTPUTS_DEPTH_BLOCKS,
                },
                hint_publishers: hint_publishers(),
                gateways: vec![named_key(super::accounts::GATEWAY).address()],
                members: self.members().map(|(member, url)| SequencerMember { member, url }).collect(),
                l1_poll_ms: L1_POLL_INTERVAL_MS,
                ..SequencerConfig::default()
            },
        }
    }

    fn tls_file(&self, name: &str) -> PathBuf {
        self.dir.join(TLS).join(name)
    }

    fn shown_to_the_signer(&self) -> TlsSettings {
        TlsSettings {
            ca_file: Some(self.tls_file("ca.pem")),
            cert_file: Some(self.tls_file("sequencer.pem")),
            key_file: Some(self.tls_file("sequencer-key.pem")),
        }
    }

    /// Makes an authority, of which nothing is kept but its certificate, and the certificates of signer and sequencers.
    ///
    /// # Errors
    /// When the files cannot be written.
    pub fn write_certificates(&self) -> Result<()> {
        fs::create_dir_all(self.dir.join(TLS))?;
        let authority = Authority::new();
        fs::copy(authority.ca_file(), self.tls_file("ca.pem"))?;
        for name in ["signer", "sequencer"] {
            let (certificate, key) = authority.sign(Said::default());
            let [cert_file, key_file] =
                [".pem", "-key.pem"].map(|end| self.tls_file(&format!("{name}{end}")));
            Pair { cert_file, key_file }.write(&certificate, &key);
        }
        Ok(())
    }

    /// Settings of the signer's process.
    #[must_use]
    pub fn signer(&self, (port, admin): (u16, u16)) -> SignerSettings {
        let listener = PeerListener {
            addr: local(port),
            cert_file: self.tls_file("signer.pem"),
            key_file: self.tls_file("signer-key.pem"),
            client_ca_file: self.tls_file("ca.pem"),
            max_connections: SIGNER_CONNECTIONS,
        };
        SignerSettings {
            chain: self.chain(),
            l1: self.l1(),
            tls: TlsSettings::default(),
            signing_key: self.key(super::accounts::SEQUENCER),
            signer: SignerConfig {
                data_dir: self.dir.join("signer"),
                admin_addr: local(admin),
                ..SignerConfig::new(listener)
            },
        }
    }

    fn execution(&self, folder: &str, (http_port, engine_port): (u16, u16)) -> ExecutionSettings {
        ExecutionSettings {
            http_url: http(http_port),
            engine_url: http(engine_port),
            jwt_secret: self.dir.join(folder).join("jwt.hex"),
        }
    }

    /// Settings of a member's process.
    #[must_use]
    pub fn member(&self, member: u16) -> CommitteeSettings {
        let name = format!("member-{member}");
        let (rpc, admin) = self.ports.members[usize::from(member) - 1];
        CommitteeSettings {
            chain: self.chain(),
            l1: self.l1(),
            tls: TlsSettings::default(),
            traces: self.traces(&name),
            parameters: self.parameters(),
            key: KeySource {
                file: self.dir.join(format!("committee/{name}.key")),
                password_file: Some(self.password()),
                password_env: None,
            },
            // The full node posts.
            posting_key: None,
            data_dir: self.dir.join(&name),
            store: self.store(&name),
            member: MemberConfig {
                peer_listener: None,
                rpc_addr: local(rpc),
                admin_addr: local(admin),
                sequencer_urls: (self.sequencer_urls)(&name),
                peers: self
                    .members()
                    .filter(|(other, _)| *other != member)
                    .map(|(member, url)| PeerUrl { member, url })
                    .collect(),
                hint_publishers: hint_publishers(),
                limits: MemberLimits { max_l1_age_ms: MAX_L1_AGE_MS, ..MemberLimits::default() },
                inbound: Default::default(),
            },
        }
    }

    fn redis(&self) -> RedisSettings {
        RedisSettings { url: self.redis_url.map(str::to_owned), ..RedisSettings::default() }
    }

    /// Settings of the second hint publisher's process, which leaves posting to the first one.
    #[must_use]
    pub fn second_hint_publisher(&self, name: &str, admin: u16) -> HintPublisherSettings {
        let first = self.hint_publisher();
        HintPublisherSettings {
            data_dir: self.dir.join(name),
            traces: self.traces(name),
            hello_key: Some(self.key(super::accounts::SECOND_HINT_PUBLISHER)),
            l1_posting: L1PostingSettings::default(),
            hint_publisher: HintPublisherConfig {
                admin_addr: local(admin),
                sequencer_urls: (self.sequencer_urls)(name),
                ..first.hint_publisher
            },
            ..first
        }
    }

    /// Settings of a gateway's process, by name.
    #[must_use]
    pub fn gateway(&self, name: &str, (rpc, admin): (u16, u16)) -> GatewaySettings {
        GatewaySettings {
            chain: self.chain(),
            parameters: vec![self.parameters()],
            l1: self.l1(),
            tls: TlsSettings::default(),
            traces: self.traces(name),
            backend: BackendSettings { threads: 1, ..BackendSettings::default() },
            hello_key: self.key(super::accounts::GATEWAY),
            redis: self.redis(),
            relay: RelayConfig {
                rpc_addr: local(rpc),
                admin_addr: local(admin),
                sequencer_urls: (self.sequencer_urls)(name),
                ..RelayConfig::default()
            },
            gateway: GatewayConfig::default(),
        }
    }

    /// Settings of the process of a relay before the full node.
    #[must_use]
    pub fn relay(&self, (rpc, admin): (u16, u16)) -> RelaySettings {
        RelaySettings {
            chain: self.chain(),
            parameters: vec![self.parameters()],
            l1: self.l1(),
            tls: TlsSettings::default(),
            backend: BackendSettings { threads: 1, ..BackendSettings::default() },
            relay: RelayConfig {
                rpc_addr: local(rpc),
                admin_addr: local(admin),
                sequencer_urls: http(self.ports.full_node.0).into(),
                ..RelayConfig::default()
            },
        }
    }

    fn members(&self) -> impl Iterator<Item = (u16, String)> {
        (1u16..).zip(&self.ports.members).map(|(member, (rpc, _))| (member, http(*rpc)))
    }

    /// Settings of the hint publisher's process.
    #[must_use]
    pub fn hint_publisher(&self) -> HintPublisherSettings {
        HintPublisherSettings {
            redis: self.redis(),
            chain: self.chain(),
            parameters: vec![self.parameters()],
            l1: self.l1(),
            tls: TlsSettings::default(),
            traces: self.traces("hint-publisher"),
            data_dir: self.dir.join("hint-publisher"),
            backend: BackendSettings::default(),
            hello_key: None,
            l1_posting: L1PostingSettings {
                enabled: true,
                key: Some(self.key(super::accounts::HINT_PUBLISHER)),
                bond_wei: Wei(blindfold_l1::DEFAULT_PUBLISHER_BOND_WEI),
                interval_ms: HINTS_INTERVAL_MS,
                ..L1PostingSettings::default()
            },
            hint_publisher: HintPublisherConfig {
                admin_addr: local(self.ports.hint_publisher),
                sequencer_urls: (self.sequencer_urls)("hint-publisher"),
                members: self.members().map(|(member, url)| MemberUrl { member, url }).collect(),
                ..HintPublisherConfig::default()
            },
        }
    }

    /// Settings of the full node's process.
    #[must_use]
    pub fn full_node(&self, hint_deadline_ms: u64) -> FullNodeSettings {
        FullNodeSettings {
            chain: self.chain(),
            parameters: vec![self.parameters()],
            l1: self.l1(),
            tls: TlsSettings::default(),
            traces: self.traces("full-node"),
            execution: self.execution("full-node-execution", self.ports.full_node_execution),
            data_dir: self.dir.join("full-node"),
            store: self.store("full-node"),
            backend: BackendSettings::default(),
            watch: WatchSettings {
                key: Some(self.key(super::accounts::WATCHER)),
                interval_ms: HINTS_INTERVAL_MS,
                ..WatchSettings::default()
            },
            full_node: FullNodeConfig {
                rpc_addr: local(self.ports.full_node.0),
                admin_addr: local(self.ports.full_node.1),
                source: Source::Feed,
                sequencer_urls: (self.sequencer_urls)("full-node"),
                members: self.members().map(|(member, url)| MemberEndpoint { member, url }).collect(),
                hint_deadline_ms,
                member_timeout_ms: blindfold_full_node::limits::DEFAULT_MEMBER_TIMEOUT_MS,
                member_poll_interval_ms: blindfold_full_node::limits::DEFAULT_MEMBER_POLL_INTERVAL_MS,
                keep_batches: None,
                inbound: Default::default(),
            },
        }
    }

    /// Settings of a full node that follows from L1 alone: it knows neither sequencer nor members.
    #[must_use]
    pub fn l1_node(&self, ports: &NodePorts) -> FullNodeSettings {
        let settings = self.full_node(blindfold_full_node::limits::DEFAULT_HINT_DEADLINE_MS);
        FullNodeSettings {
            execution: self.execution("full-node-l1-execution", ports.execution),
            data_dir: self.dir.join("full-node-l1"),
            store: self.store("full-node-l1"),
            watch: WatchSettings { enabled: false, ..WatchSettings::default() },
            full_node: FullNodeConfig {
                rpc_addr: local(ports.node.0),
                admin_addr: local(ports.node.1),
                source: Source::L1,
                sequencer_urls: SequencerUrls::default(),
                members: Vec::new(),
                member_poll_interval_ms: L1_NODE_INTERVAL_MS,
                ..settings.full_node
            },
            ..settings
        }
    }

    /// Settings of the coprocessor's process.
    #[must_use]
    pub fn coprocessor(&self) -> CoprocessorSettings {
        CoprocessorSettings {
            chain: self.chain(),
            deployment: super::confidential::deployment_file(self.dir),
            keys_dir: super::confidential::keys_dir(self.dir),
            parameters: vec![self.parameters()],
            l1: self.l1(),
            tls: TlsSettings::default(),
            data_dir: self.dir.join("coprocessor"),
            store: self.store("coprocessor"),
            backend: BackendSettings::default(),
            insecure_development_setup: true,
            coprocessor: CoprocessorConfig {
                rpc_addr: local(self.ports.coprocessor.0),
                admin_addr: local(self.ports.coprocessor.1),
                node_url: http(self.ports.full_node.0),
                poll_interval_ms: blindfold_coprocessor::limits::DEFAULT_POLL_INTERVAL_MS,
                kept_versions: blindfold_coprocessor::limits::DEFAULT_KEPT_VERSIONS,
                inbound: Default::default(),
            },
        }
    }

    /// Settings of the proxy's process.
    #[must_use]
    pub fn proxy(&self) -> ProxySettings {
        ProxySettings {
            chain: self.chain(),
            l1: self.l1(),
            tls: TlsSettings::default(),
            traces: self.traces("proxy"),
            fee_key: self.key(super::accounts::PROXY),
            pinned_key_hash: None,
            proxy: ProxyConfig {
                rpc_addr: local(self.ports.proxy.0),
                admin_addr: local(self.ports.proxy.1),
                node_url: http(self.ports.full_node.0),
                sequencer_urls: (self.sequencer_urls)("proxy"),
                state: self.dir.join("proxy.sqlite"),
                ..ProxyConfig::default()
            },
        }
    }

    /// Writes a role's settings; gives the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, settings: &impl Serialize) -> Result<PathBuf> {
        let path = self.dir.join(format!("{name}.toml"));
        let text = toml::to_string(settings).with_context(|| format!("settings of {name}"))?;
        fs::write(&path, text).with_context(|| format!("{}", path.display()))?;
        Ok(path)
    }
}
