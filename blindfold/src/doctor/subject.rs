//! What of a role's settings there is to look at.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use alloy_primitives::Address;
use blindfold_client::KeySource;
use blindfold_committee::MemberConfig;
use blindfold_full_node::Source;
use blindfold_l1::DataPolicy;
use blindfold_rpc::{PeerListener, SequencerUrls};
use blindfold_sequencer::{SealingConfig, SequencerConfig};
use blindfold_store::StoreUrl;
use blindfold_tls::{ServerTlsFiles, TlsSettings};

use super::{
    finding::{Area, Finding},
    local::Local,
};
use crate::roles::{
    CommitteeSettings, CoprocessorSettings, ExecutionSettings, FullNodeSettings, GatewaySettings,
    HintPublisherSettings, L1Settings, ProxySettings, RelaySettings, Role, SequencerSettings, SignerSettings,
    StoreSettings,
};

/// So many slots have to be in what an envelope may wait: one for its header, and those of the members' answers.
const LEAST_WAIT_SLOTS: u64 = 3;
/// How old L1's newest block may be for a role that has no setting for it, in milliseconds.
const DEFAULT_MAX_L1_AGE_MS: u64 = 120_000;

/// One role's settings, as the checks see them.
pub(super) struct Subject {
    pub faults: Vec<String>,
    pub chain: PathBuf,
    /// Parameter files. A member has one, and the epoch that it belongs to need not be the only one.
    pub parameters: Vec<PathBuf>,
    pub needs_all_epochs: bool,
    pub l1: L1Settings,
    /// Up to which age L1's newest block confirms the clock; 0: it is not compared.
    pub max_l1_age_ms: u64,
    pub accounts: Vec<Account>,
    pub member: Option<MemberSubject>,
    pub execution: Option<ExecutionSettings>,
    pub confidential: Option<ConfidentialSubject>,
    pub store: Option<StoreSubject>,
    pub peers: Vec<Peer>,
    /// Whether at least the threshold of each epoch's members must be among the peers.
    pub needs_threshold: bool,
    pub admin: SocketAddr,
    /// Whom it trusts over TLS, and what it shows.
    pub tls: TlsSettings,
    /// The certificates of its own ports.
    pub listeners: Vec<ListenerSubject>,
}

/// The certificate of a port.
pub(super) struct ListenerSubject {
    /// The table of its settings.
    pub setting: &'static str,
    pub files: ServerTlsFiles,
}

/// An account's key, and what it is for.
pub(super) struct Account {
    /// The setting: the key file's is this and `.file`.
    pub setting: &'static str,
    pub source: KeySource,
    pub is_for: AccountUse,
}

/// What an account does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccountUse {
    /// Signs headers and promises.
    Signs,
    /// Pays for transactions on L1.
    PaysL1,
    /// The same, and its bond answers for hints.
    PostsHints,
    /// Shows who its hint publisher or gateway is.
    Introduces,
    /// Pays ordering fees out of its deposit.
    PaysFees,
}

/// A member's key.
pub(super) struct MemberSubject {
    pub source: KeySource,
    pub config: MemberConfig,
}

/// Confidential balances: the deployment's file, and the folder of its verifying keys.
pub(super) struct ConfidentialSubject {
    pub deployment: PathBuf,
    pub keys_dir: PathBuf,
    /// Whether keys of a development set-up are taken.
    pub insecure: bool,
}

/// A store, and whose it is to be.
pub(super) struct StoreSubject {
    pub setting: &'static str,
    /// Where it is; or why that is not known.
    pub url: Result<StoreUrl, String>,
    /// What it is bound to; `None` for a member and for a signer, whose keys say which one it is.
    pub role: Option<&'static str>,
    /// Whether it is a signer's.
    pub of_signer: bool,
}

/// Another role.
#[derive(Clone)]
pub(super) struct Peer {
    pub setting: String,
    pub url: String,
    pub kind: PeerKind,
}

/// Which role a URL is to lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerKind {
    Sequencer {
        /// Whether no other sequencer is named.
        alone: bool,
    },
    /// A full node, or whatever else has the feed and the reads.
    Node,
    Member(u16),
    /// The signer with the key of this address.
    Signer(Address),
}

impl Subject {
    /// The address whose signatures stand under headers, and the setting that says so, for a role that has it elsewhere.
    pub fn signer_elsewhere(&self) -> Option<Address> {
        self.peers.iter().find_map(|peer| match peer.kind {
            PeerKind::Signer(address) => Some(address),
            _ => None,
        })
    }

    /// Whom one of the sequencers has to lead, where there are any.
    pub fn leaders(&self) -> Option<Leaders> {
        let is_one = |peer: &&Peer| matches!(peer.kind, PeerKind::Sequencer { .. });
        let setting = self.peers.iter().find(is_one)?.setting.split('[').next()?.to_owned();
        Some(Leaders { setting, named: self.peers.iter().filter(is_one).count() })
    }

    /// Of how many members how many have to answer, for a role that can do nothing without them.
    pub fn quorum(&self, local: &Local) -> Option<Quorum> {
        let (_, newest) = local.parameters.last().filter(|_| self.needs_threshold)?;
        let members = self.peers.iter().filter(|peer| matches!(peer.kind, PeerKind::Member(_))).count();
        Some(Quorum { members, threshold: newest.threshold().into() })
    }
}

/// How many members have to answer.
#[derive(Clone, Copy)]
pub(super) struct Quorum {
    /// So many are named.
    members: usize,
    threshold: usize,
}

impl Quorum {
    /// What it means when so many answer.
    pub fn judge(self, answer: usize) -> Option<Finding> {
        let Self { members, threshold } = self;
        let found = format!("{answer} of {members} members answer, {threshold} are needed");
        let next = "see that more members run, and that this machine reaches them";
        (answer < threshold).then(|| Finding::error(Area::Peers, "members", found, next))
    }
}

/// Sequencers, of which one has to lead.
pub(super) struct Leaders {
    setting: String,
    /// So many are named.
    named: usize,
}

impl Leaders {
    /// What it means when so many answer as the one that leads. About one that is alone its own row says everything.
    pub fn judge(self, lead: usize) -> Option<Finding> {
        let Self { setting, named } = self;
        match lead {
            1 => None,
            _ if named == 1 => None,
            0 => {
                let found = format!("none of {named} sequencers leads");
                let next = "run this again: one takes over within seconds; if none does, look at their logs";
                Some(Finding::error(Area::Peers, setting, found, next))
            }
            lead => {
                let found = format!("{lead} of {named} sequencers lead");
                let next = "keep those that use one store: any other is another chain's, or works on a copy";
                Some(Finding::error(Area::Peers, setting, found, next))
            }
        }
    }
}

/// A role whose settings can be looked at.
pub(super) trait Examinable: Role {
    /// What there is to look at.
    fn subject(&self) -> Subject;

    /// The files of the tokens that it shows to archives, for a role that writes into them.
    fn archive_tokens(&self) -> Option<Vec<PathBuf>> {
        None
    }

    /// Settings with which the role starts, and does not work as whoever set them may expect.
    fn advice(&self) -> Vec<Finding> {
        Vec::new()
    }
}

fn faults(role: &impl Role) -> Vec<String> {
    crate::roles::faults_of(role).iter().map(|fault| format!("{fault:#}")).collect()
}

fn account(setting: &'static str, source: Option<&KeySource>, is_for: AccountUse) -> Option<Account> {
    Some(Account { setting, source: source?.clone(), is_for })
}

/// The setting that says where a store is: a role's folder, unless another one names it.
fn store(
    folder: &'static str,
    settings: &StoreSettings,
    data_dir: &Path,
    role: Option<&'static str>,
) -> StoreSubject {
    let setting = if settings.url.is_some() { "store.url" } else { folder };
    let url = settings.at(data_dir).map_err(|fault| format!("{fault:#}"));
    StoreSubject { setting, url, role, of_signer: false }
}

/// What the public port shows, and what that for peers does.
fn listeners(
    inbound: &'static str,
    of_inbound: Option<&ServerTlsFiles>,
    peers: &'static str,
    of_peers: Option<&PeerListener>,
) -> Vec<ListenerSubject> {
    let public = of_inbound.map(|files| ListenerSubject { setting: inbound, files: files.clone() });
    let peers = of_peers.map(|listener| ListenerSubject { setting: peers, files: listener.files() });
    public.into_iter().chain(peers).collect()
}

fn peer(setting: &str, url: &str, kind: PeerKind) -> Peer {
    Peer { setting: setting.to_owned(), url: url.to_owned(), kind }
}

fn sequencers(setting: &str, urls: &SequencerUrls) -> Vec<Peer> {
    let kind = PeerKind::Sequencer { alone: urls.iter().len() == 1 };
    let entry = |(place, url): (usize, &str)| peer(&format!("{setting}[{place}]"), url, kind);
    urls.iter().enumerate().map(entry).collect()
}

fn members<'a>(setting: &str, entries: impl Iterator<Item = (u16, &'a String)>) -> Vec<Peer> {
    let entry = |(place, (member, url)): (usize, (u16, &String))| {
        peer(&format!("{setting}[{place}].url"), url, PeerKind::Member(member))
    };
    entries.enumerate().map(entry).collect()
}

impl Examinable for SequencerSettings {
    fn subject(&self) -> Subject {
        let config = &self.sequencer;
        let accounts = [
            account("signing_key", self.signing_key.as_ref(), AccountUse::Signs),
            account("posting_key", self.posting_key.as_ref(), AccountUse::PaysL1),
        ];
        Subject {
            faults: faults(self),
            chain: self.chain.clone(),
            parameters: self.parameters.clone(),
            needs_all_epochs: true,
            l1: self.l1.clone(),
            max_l1_age_ms: config.sealing.max_l1_age_ms,
            accounts: accounts.into_iter().flatten().collect(),
            member: None,
            execution: Some(self.execution.clone()),
            confidential: None,
            store: Some(store(
                "sequencer.data_dir",
                &self.store,
                &config.data_dir,
                Some(blindfold_sequencer::ROLE),
            )),
            peers: members("sequencer.members", config.members.iter().map(|m| (m.member, &m.url)))
                .into_iter()
                .chain(
                    self.signer
                        .as_ref()
                        .map(|signer| peer("signer.url", &signer.url, PeerKind::Signer(signer.address))),
                )
                .collect(),
            needs_threshold: true,
            admin: config.admin_addr,
            tls: self.tls.clone(),
            listeners: listeners(
                "sequencer.inbound.tls",
                config.inbound.tls.as_ref(),
                "sequencer.peer_listener",
                config.peer_listener.as_ref(),
            ),
        }
    }

    fn archive_tokens(&self) -> Option<Vec<PathBuf>> {
        let posting = &self.sequencer.posting;
        let writes = posting.enabled && posting.data == DataPolicy::Archive;
        writes.then(|| self.archive_token_files.clone())
    }

    fn advice(&self) -> Vec<Finding> {
        let SequencerConfig { sealing, admission, .. } = &self.sequencer;
        of_wait(sealing, admission.max_wait_ms).into_iter().collect()
    }
}

/// How long envelopes may wait for their certificates, against the slots that they wait for.
fn of_wait(sealing: &SealingConfig, max_wait_ms: u64) -> Option<Finding> {
    let setting = "sequencer.admission.max_wait_ms";
    let SealingConfig { slot_ms, promise_batches, .. } = sealing;
    let least = slot_ms.saturating_mul(LEAST_WAIT_SLOTS);
    let most = slot_ms.saturating_mul(*promise_batches);
    if max_wait_ms == 0 {
        return None;
    }
    if max_wait_ms < least {
        let found = format!("{max_wait_ms} ms, less than {LEAST_WAIT_SLOTS} slots of {slot_ms} ms");
        let next = format!(
            "set it to {least} at least, more where members are far away: envelopes are refused as `queue_too_long` \
             though nothing is overloaded"
        );
        return Some(Finding::warning(Area::Settings, setting, found, next));
    }
    if max_wait_ms > most {
        let found =
            format!("{max_wait_ms} ms, more than the {promise_batches} slots of {slot_ms} ms of a promise");
        let next = format!(
            "set it to {most} at most, which is `sequencer.sealing.promise_batches` slots: nobody is promised more"
        );
        return Some(Finding::warning(Area::Settings, setting, found, next));
    }
    None
}

impl Examinable for SignerSettings {
    fn subject(&self) -> Subject {
        let config = &self.signer;
        let mut signed = store("signer.data_dir", &StoreSettings::default(), &config.data_dir, None);
        signed.of_signer = true;
        Subject {
            faults: faults(self),
            chain: self.chain.clone(),
            parameters: Vec::new(),
            needs_all_epochs: false,
            l1: self.l1.clone(),
            max_l1_age_ms: DEFAULT_MAX_L1_AGE_MS,
            accounts: account("signing_key", Some(&self.signing_key), AccountUse::Signs)
                .into_iter()
                .collect(),
            member: None,
            execution: None,
            confidential: None,
            store: Some(signed),
            peers: Vec::new(),
            needs_threshold: false,
            admin: config.admin_addr,
            tls: self.tls.clone(),
            listeners: listeners("", None, "signer.listener", Some(&config.listener)),
        }
    }
}

impl Examinable for CommitteeSettings {
    fn subject(&self) -> Subject {
        let config = &self.member;
        let mut peers = sequencers("member.sequencer_urls", &config.sequencer_urls);
        peers.extend(members("member.peers", config.peers.iter().map(|m| (m.member, &m.url))));
        Subject {
            faults: faults(self),
            chain: self.chain.clone(),
            parameters: vec![self.parameters.clone()],
            needs_all_epochs: false,
            l1: self.l1.clone(),
            max_l1_age_ms: config.limits.max_l1_age_ms,
            accounts: account("posting_key", self.posting_key.as_ref(), AccountUse::PaysL1)
                .into_iter()
                .collect(),
            member: Some(MemberSubject { source: self.key.clone(), config: config.clone() }),
            execution: None,
            confidential: None,
            store: Some(store("data_dir", &self.store, &self.data_dir, None)),
            peers,
            needs_threshold: false,
            admin: config.admin_addr,
            tls: self.tls.clone(),
            listeners: listeners(
                "member.inbound.tls",
                config.inbound.tls.as_ref(),
                "member.peer_listener",
                config.peer_listener.as_ref(),
            ),
        }
    }
}

impl Examinable for HintPublisherSettings {
    fn subject(&self) -> Subject {
        let config = &self.hint_publisher;
        let posts = self.l1_posting.key.as_ref().filter(|_| self.l1_posting.enabled);
        let accounts = [
            account("hello_key", self.hello_key.as_ref(), AccountUse::Introduces),
            account("l1_posting.key", posts, AccountUse::PostsHints),
        ];
        let mut peers = sequencers("hint_publisher.sequencer_urls", &config.sequencer_urls);
        peers.extend(members("hint_publisher.members", config.members.iter().map(|m| (m.member, &m.url))));
        Subject {
            faults: faults(self),
            chain: self.chain.clone(),
            parameters: self.parameters.clone(),
            needs_all_epochs: true,
            l1: self.l1.clone(),
            max_l1_age_ms: DEFAULT_MAX_L1_AGE_MS,
            accounts: accounts.into_iter().flatten().collect(),
            member: None,
            execution: None,
            confidential: None,
            store: None,
            peers,
            needs_threshold: true,
            admin: config.admin_addr,
            tls: self.tls.clone(),
            listeners: Vec::new(),
        }
    }
}

impl Examinable for RelaySettings {
    fn subject(&self) -> Subject {
        let peers = self.relay.sequencer_urls.iter().enumerate();
        let setting = |place| format!("relay.sequencer_urls[{place}]");
        Subject {
            faults: faults(self),
            chain: self.chain.clone(),
            parameters: self.parameters.clone(),
            needs_all_epochs: true,
            l1: self.l1.clone(),
            max_l1_age_ms: DEFAULT_MAX_L1_AGE_MS,
            accounts: Vec::new(),
            member: None,
            execution: None,
            confidential: None,
            store: None,
            // Any server that has the feed and the reads.
            peers: peers.map(|(place, url)| peer(&setting(place), url, PeerKind::Node)).collect(),
            needs_threshold: false,
            admin: self.relay.admin_addr,
            tls: self.tls.clone(),
            listeners: listeners("relay.inbound.tls", self.relay.inbound.tls.as_ref(), "", None),
        }
    }
}

impl Examinable for GatewaySettings {
    fn subject(&self) -> Subject {
        Subject {
            faults: faults(self),
            chain: self.chain.clone(),
            parameters: self.parameters.clone(),
            needs_all_epochs: true,
            l1: self.l1.clone(),
            max_l1_age_ms: DEFAULT_MAX_L1_AGE_MS,
            accounts: account("hello_key", Some(&self.hello_key), AccountUse::Introduces)
                .into_iter()
                .collect(),
            member: None,
            execution: None,
            confidential: None,
            store: None,
            peers: sequencers("relay.sequencer_urls", &self.relay.sequencer_urls),
            needs_threshold: false,
            admin: self.relay.admin_addr,
            tls: self.tls.clone(),
            listeners: listeners("relay.inbound.tls", self.relay.inbound.tls.as_ref(), "", None),
        }
    }
}

impl Examinable for FullNodeSettings {
    fn subject(&self) -> Subject {
        let config = &self.full_node;
        let mut peers = Vec::new();
        if config.source == Source::Feed {
            peers.extend(sequencers("full_node.sequencer_urls", &config.sequencer_urls));
        }
        peers.extend(members("full_node.members", config.members.iter().map(|m| (m.member, &m.url))));
        let watch = self.watch.key.as_ref().filter(|_| self.watch.enabled);
        Subject {
            faults: faults(self),
            chain: self.chain.clone(),
            parameters: self.parameters.clone(),
            needs_all_epochs: true,
            l1: self.l1.clone(),
            max_l1_age_ms: DEFAULT_MAX_L1_AGE_MS,
            accounts: account("watch.key", watch, AccountUse::PaysL1).into_iter().collect(),
            member: None,
            execution: Some(self.execution.clone()),
            confidential: None,
            store: Some(store("data_dir", &self.store, &self.data_dir, Some(blindfold_full_node::ROLE))),
            peers,
            // With fewer it decrypts nothing by itself, and runs.
            needs_threshold: false,
            admin: config.admin_addr,
            tls: self.tls.clone(),
            listeners: listeners("full_node.inbound.tls", config.inbound.tls.as_ref(), "", None),
        }
    }
}

impl Examinable for CoprocessorSettings {
    fn subject(&self) -> Subject {
        let config = &self.coprocessor;
        Subject {
            faults: faults(self),
            chain: self.chain.clone(),
            parameters: self.parameters.clone(),
            needs_all_epochs: true,
            l1: self.l1.clone(),
            max_l1_age_ms: DEFAULT_MAX_L1_AGE_MS,
            accounts: Vec::new(),
            member: None,
            execution: None,
            confidential: Some(ConfidentialSubject {
                deployment: self.deployment.clone(),
                keys_dir: self.keys_dir.clone(),
                insecure: self.insecure_development_setup,
            }),
            store: Some(store("data_dir", &self.store, &self.data_dir, Some(blindfold_coprocessor::ROLE))),
            peers: vec![peer("coprocessor.node_url", &config.node_url, PeerKind::Node)],
            needs_threshold: false,
            admin: config.admin_addr,
            tls: self.tls.clone(),
            listeners: listeners("coprocessor.inbound.tls", config.inbound.tls.as_ref(), "", None),
        }
    }
}

impl Examinable for ProxySettings {
    fn subject(&self) -> Subject {
        let config = &self.proxy;
        Subject {
            faults: faults(self),
            chain: self.chain.clone(),
            parameters: Vec::new(),
            needs_all_epochs: false,
            l1: self.l1.clone(),
            max_l1_age_ms: DEFAULT_MAX_L1_AGE_MS,
            accounts: account("fee_key", Some(&self.fee_key), AccountUse::PaysFees).into_iter().collect(),
            member: None,
            execution: None,
            confidential: None,
            // Its journal says nothing of the chain, and only the proxy reads it.
            store: None,
            peers: sequencers("proxy.sequencer_urls", &config.sequencer_urls)
                .into_iter()
                .chain([peer("proxy.node_url", &config.node_url, PeerKind::Node)])
                .collect(),
            needs_threshold: false,
            admin: config.admin_addr,
            tls: self.tls.clone(),
            listeners: listeners("proxy.inbound.tls", config.inbound.tls.as_ref(), "", None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_members_that_answer_are_an_error_where_they_are_needed() {
        let quorum = Quorum { members: 4, threshold: 3 };
        assert_eq!(quorum.judge(3), None);
        let short = quorum.judge(2).unwrap();
        assert_eq!(short.found, "2 of 4 members answer, 3 are needed");
    }

    #[test]
    fn one_of_several_sequencers_has_to_lead() {
        let of = |named| Leaders { setting: "proxy.sequencer_urls".to_owned(), named };
        assert_eq!(of(2).judge(1), None);
        assert_eq!(of(1).judge(0), None, "its own row says so");
        assert_eq!(of(3).judge(0).unwrap().found, "none of 3 sequencers leads");
        assert_eq!(of(3).judge(2).unwrap().found, "2 of 3 sequencers lead");
    }

    #[test]
    fn a_wait_that_refuses_what_is_not_overloaded_is_warned_of() {
        let sealing = |slot_ms| SealingConfig { slot_ms, promise_batches: 64, ..SealingConfig::default() };
        let told = |slot_ms, max_wait_ms| of_wait(&sealing(slot_ms), max_wait_ms);
        for fits in [0, 750, 16_000] {
            assert_eq!(told(250, fits), None, "{fits}");
        }
        let short = told(250, 749).unwrap();
        assert_eq!(short.found, "749 ms, less than 3 slots of 250 ms");
        assert!(short.next.is_some_and(|next| next.contains("set it to 750 at least")));
        // The default, and slots that somebody made longer.
        assert!(told(1_000, 750).is_some_and(|finding| finding.found.contains("3 slots of 1000 ms")));
        let long = told(250, 16_001).unwrap();
        assert_eq!(long.found, "16001 ms, more than the 64 slots of 250 ms of a promise");
        assert!(long.next.is_some_and(|next| next.contains("set it to 16000 at most")));
        let settings = SequencerConfig::default();
        assert_eq!(of_wait(&settings.sealing, settings.admission.max_wait_ms), None);
    }

    #[test]
    fn every_url_and_key_of_the_settings_is_looked_at_under_its_setting() {
        let text = "chain = 'r'\nparameters = ['p']\n[l1]\nurl = 'http://a'\n[hint_publisher]\n\
            members = [{ member = 1, url = 'http://b' }, { member = 4, url = 'http://c' }]\n\
            [hello_key]\nfile = 'h'\n[l1_posting]\nenabled = true\n[l1_posting.key]\nfile = 'k'\n";
        let subject = toml::from_str::<HintPublisherSettings>(text).unwrap().subject();
        let peers: Vec<(&str, PeerKind)> =
            subject.peers.iter().map(|peer| (peer.setting.as_str(), peer.kind)).collect();
        assert_eq!(
            peers,
            [
                ("hint_publisher.sequencer_urls[0]", PeerKind::Sequencer { alone: true }),
                ("hint_publisher.members[0].url", PeerKind::Member(1)),
                ("hint_publisher.members[1].url", PeerKind::Member(4)),
            ]
        );
        let accounts: Vec<&str> = subject.accounts.iter().map(|account| account.setting).collect();
        assert_eq!(accounts, ["hello_key", "l1_posting.key"]);
        assert!(subject.faults.is_empty(), "{:?}", subject.faults);

        let text = text.replace("enabled = true", "enabled = true\ninterval_ms = 0").replace("'k'", "'k'\n");
        let bad = toml::from_str::<HintPublisherSettings>(&text).unwrap().subject();
        assert!(bad.faults.len() == 1 && bad.faults[0].contains("section [l1_posting]"), "{:?}", bad.faults);
    }
}
