//! The other roles that the settings name: whether they answer, as whom, in which version, and by which clock.

use std::sync::Arc;

use alloy_primitives::{Address, U256};
use blindfold_protocol::{ChainConfig, Deployment};
use blindfold_rpc::{
    ClientConfig, HttpClient, ReceivedError, http_client,
    jsonrpsee::core::{client::ClientT, params::ArrayParams},
    types::{CommitteeStatus, FeeAccount, SignerStatus, Status},
};
use blindfold_runtime::wall_ms;
use blindfold_telemetry::redact_url;
use serde::de::DeserializeOwned;

use super::{
    Patience,
    finding::{Area, Finding, Level},
    subject::{Peer, PeerKind},
    within,
};
use crate::{
    http_probe::{authority, get},
    wallet::ether,
};

/// Longest answer that is read.
const MAX_ANSWER_BYTES: u32 = 1 << 20;
/// Clocks must be right to this, and members refuse headers that are further ahead.
const MAX_CLOCK_DIFFERENCE_MS: u64 = 2_000;
/// An answer's header tells the time to the second, and a server may write it once a second.
const DATE_RESOLUTION_MS: u64 = 2_000;

/// The time that a server told, and when it was asked and had answered by this machine's clock.
#[derive(Clone, Copy, Debug)]
struct Told {
    date_ms: u64,
    asked_ms: u64,
    answered_ms: u64,
}

/// What became of asking one role.
#[derive(Default)]
pub(super) struct Asked {
    pub findings: Vec<Finding>,
    pub is_member_that_answers: bool,
    pub is_sequencer_that_leads: bool,
}

pub(super) async fn look(
    peer: Peer,
    chain: Option<Arc<ChainConfig>>,
    payer: Option<Address>,
    patience: Patience,
) -> Asked {
    let start = "start that role, or correct the URL";
    let mut answered = false;
    let look = look_at(&peer, chain.as_deref(), payer, patience, &mut answered);
    let findings = within(patience, Area::Peers, &peer.setting, start, look).await;
    Asked {
        findings,
        is_member_that_answers: answered && matches!(peer.kind, PeerKind::Member(_)),
        is_sequencer_that_leads: answered && matches!(peer.kind, PeerKind::Sequencer { .. }),
    }
}

async fn look_at(
    peer: &Peer,
    chain: Option<&ChainConfig>,
    payer: Option<Address>,
    patience: Patience,
    answered: &mut bool,
) -> Vec<Finding> {
    let config = ClientConfig {
        connect_timeout_ms: patience.answer_ms,
        request_timeout_ms: patience.answer_ms,
        max_response_bytes: MAX_ANSWER_BYTES,
        ..ClientConfig::default()
    };
    let client = match http_client(&peer.url, &config) {
        Ok(client) => client,
        Err(fault) => {
            let next = format!("correct `{}`", peer.setting);
            return vec![Finding::error(Area::Peers, &peer.setting, fault, next)];
        }
    };
    let asked = async {
        match peer.kind {
            PeerKind::Member(member) => {
                let status = ask(&client, "committee_getStatus", None).await;
                *answered = status.is_ok();
                of_member(peer, member, status)
            }
            PeerKind::Signer(address) => {
                of_signer(peer, address, ask(&client, "signer_getStatus", None).await, chain)
            }
            PeerKind::Sequencer { .. } | PeerKind::Node => {
                let status = ask(&client, "blind_getStatus", None).await;
                *answered = status.is_ok();
                of_node(peer, status, chain)
            }
        }
    };
    let (mut answer, told) = tokio::join!(asked, time_of(&peer.url, patience));
    if answer.level == Level::Error {
        return vec![answer];
    }
    let mut findings = Vec::new();
    match told.map(|told| of_clock(peer, told)) {
        Some(Ok(())) => answer.found.push_str(", its clock agrees"),
        Some(Err(finding)) => findings.push(finding),
        None => {}
    }
    findings.push(answer);
    if let Some(payer) = payer.filter(|_| *answered && matches!(peer.kind, PeerKind::Sequencer { .. })) {
        findings.push(of_deposit(peer, ask(&client, "blind_getFeeAccount", Some(payer)).await));
    }
    findings
}

async fn ask<R: DeserializeOwned>(
    client: &HttpClient,
    method: &str,
    address: Option<Address>,
) -> Result<R, ReceivedError> {
    let mut params = ArrayParams::new();
    if let Some(address) = address {
        // An address always has a JSON form.
        let _ = params.insert(address);
    }
    client.request(method, params).await.map_err(ReceivedError::from)
}

fn of_fault(peer: &Peer, fault: &ReceivedError) -> Finding {
    let url = redact_url(&peer.url);
    // The library may repeat the URL.
    let said = fault.to_string().replace(&peer.url, &url);
    let (setting, found) = (&peer.setting, format!("{url}: {said}"));
    match (peer.kind, fault) {
        (PeerKind::Sequencer { alone }, ReceivedError::Refused(refusal)) if refusal.is_standing_by() => {
            let leader = refusal.leader.as_deref().map(redact_url);
            let leads = leader.map_or_else(String::new, |leader| format!("; {leader} leads, it says"));
            let found = format!("{url}: stands by{leads}");
            if alone {
                let next =
                    format!("name the sequencer that leads in `{setting}`, too: all that use one store");
                Finding::error(Area::Peers, setting, found, next)
            } else {
                Finding::ok(Area::Peers, setting, found)
            }
        }
        (_, ReceivedError::Refused(refusal)) if refusal.retry => Finding::warning(
            Area::Peers,
            setting,
            found,
            "run this again: that role is busy, starting or ending",
        ),
        (_, ReceivedError::Refused(_)) => {
            let next = format!("correct `{setting}`: another server answers there");
            Finding::error(Area::Peers, setting, found, next)
        }
        // The committee can do without some of its members.
        (PeerKind::Member(member), ReceivedError::NoAnswer(_)) => {
            let next = format!("ask whoever operates member {member} to start it, or correct `{setting}`");
            Finding::warning(Area::Peers, setting, found, next)
        }
        // Another one leads, or none does and is told so.
        (PeerKind::Sequencer { alone: false }, ReceivedError::NoAnswer(_)) => {
            let next = format!("start that sequencer, so that it stands by, or correct `{setting}`");
            Finding::warning(Area::Peers, setting, found, next)
        }
        (_, ReceivedError::NoAnswer(_)) => {
            let next = format!("start that role, see that this machine reaches it, or correct `{setting}`");
            Finding::error(Area::Peers, setting, found, next)
        }
    }
}

fn of_member(peer: &Peer, member: u16, status: Result<CommitteeStatus, ReceivedError>) -> Finding {
    let status = match status {
        Ok(status) => status,
        Err(fault) => return of_fault(peer, &fault),
    };
    let url = redact_url(&peer.url);
    if status.member != member {
        let next = format!("correct `{}`, or the member's index beside it", peer.setting);
        let found = format!("{url}: member {} answers there, not {member}", status.member);
        return Finding::error(Area::Peers, &peer.setting, found, next);
    }
    let CommitteeStatus { version, acknowledged, certified, second_headers_refused, .. } = status;
    let shown = version.as_deref().unwrap_or("not told");
    let found = format!(
        "{url}: member {member}, version {shown}, acknowledged {acknowledged}, certified {certified}"
    );
    if second_headers_refused > 0 {
        let found = format!("{found}; it was shown {second_headers_refused} second headers");
        let next = "the sequencer signed two headers for one number: keep the member's disk, which holds the evidence";
        return Finding::warning(Area::Peers, &peer.setting, found, next);
    }
    with_version(peer, found, version.as_deref())
}

fn of_node(peer: &Peer, status: Result<Status, ReceivedError>, chain: Option<&ChainConfig>) -> Finding {
    let status = match status {
        Ok(status) => status,
        Err(fault) => return of_fault(peer, &fault),
    };
    let (setting, url) = (&peer.setting, redact_url(&peer.url));
    if let Some(Err(other)) = chain.map(|chain| status.check_chain(chain.chain_id, &chain.deployment)) {
        let next = format!("correct `{setting}` or `chain`");
        return Finding::error(Area::Peers, setting, format!("{url} {other}"), next);
    }
    let is_sequencer = matches!(peer.kind, PeerKind::Sequencer { .. });
    if is_sequencer && status.role != blindfold_sequencer::ROLE {
        let next = format!("name the sequencer's JSON-RPC in `{setting}`");
        return Finding::error(Area::Peers, setting, format!("{url}: a {} answers there", status.role), next);
    }
    let ahead_ms = status.head.timestamp_ms.saturating_sub(wall_ms());
    if ahead_ms > MAX_CLOCK_DIFFERENCE_MS {
        let found = format!("{url}: its newest header is {ahead_ms} ms ahead of this machine's clock");
        return Finding::warning(Area::Peers, setting, found, CLOCK_ADVICE);
    }
    let found = format!(
        "{url}: {}, version {}, head {}, certified {}, block {}",
        status.role, status.version, status.head.number, status.certified, status.block.number
    );
    with_version(peer, found, Some(&status.version))
}

/// Whether it has the key that is expected, for this deployment, and signs.
fn of_signer(
    peer: &Peer,
    address: Address,
    status: Result<SignerStatus, ReceivedError>,
    chain: Option<&ChainConfig>,
) -> Finding {
    let status = match status {
        Ok(status) => status,
        Err(fault) => return of_fault(peer, &fault),
    };
    let (setting, url) = (&peer.setting, redact_url(&peer.url));
    if status.address != address {
        let found = format!("{url}: it signs with the key of {}, not of {address}", status.address);
        let next = format!("correct `{setting}` or `signer.address`, or give the signer that key");
        return Finding::error(Area::Peers, setting, found, next);
    }
    let deployment = Deployment { l1_chain_id: status.l1_chain_id, inbox: status.inbox };
    if chain.is_some_and(|chain| chain.deployment != deployment) {
        let found = format!(
            "{url}: it signs for another deployment, {} on L1 chain {}",
            status.inbox, status.l1_chain_id
        );
        return Finding::error(Area::Peers, setting, found, format!("correct `{setting}` or `chain`"));
    }
    let Some(first) = status.first_number else {
        let found = format!("{url}: it does not know what its key has signed, and signs nothing");
        let next =
            "see \"The signer\" in docs/operate.md before `blindfold signer begin`: the key may have signed";
        return Finding::error(Area::Peers, setting, found, next);
    };
    let newest = status.newest.map_or("none".to_owned(), |newest| newest.number.to_string());
    let found = format!("{url}: signs as {address} from number {first} on, newest {newest}");
    with_version(peer, found, Some(&status.version))
}

fn with_version(peer: &Peer, found: String, version: Option<&str>) -> Finding {
    let own = env!("CARGO_PKG_VERSION");
    match version {
        Some(version) if version != own => {
            let next = "run all roles of a deployment in one version; upgrade the older one";
            Finding::warning(Area::Peers, &peer.setting, format!("{found}; this is {own}"), next)
        }
        _ => Finding::ok(Area::Peers, &peer.setting, found),
    }
}

const CLOCK_ADVICE: &str =
    "set both machines' clocks right (NTP): members refuse headers further ahead than 2 s";

async fn time_of(url: &str, patience: Patience) -> Option<Told> {
    let address = authority(url)?;
    let asked_ms = wall_ms();
    let answer = get(&address, "/", patience.answer_ms).await.ok()?;
    Some(Told { date_ms: answer.date_ms?, asked_ms, answered_ms: wall_ms() })
}

/// Whether its clock and ours agree, as far as answers tell.
fn of_clock(peer: &Peer, told: Told) -> Result<(), Finding> {
    let Told { date_ms, asked_ms, answered_ms } = told;
    // The server wrote some time between the two, and up to so much later than it told.
    let behind = asked_ms.saturating_sub(date_ms.saturating_add(DATE_RESOLUTION_MS));
    let ahead = date_ms.saturating_sub(answered_ms);
    let setting = &peer.setting;
    if behind.max(ahead) > MAX_CLOCK_DIFFERENCE_MS {
        let found = if ahead > 0 {
            format!("its clock is {ahead} ms ahead of this machine's")
        } else {
            format!("its clock is {behind} ms behind this machine's")
        };
        return Err(Finding::warning(Area::Clock, setting, found, CLOCK_ADVICE));
    }
    Ok(())
}

fn of_deposit(peer: &Peer, account: Result<FeeAccount, ReceivedError>) -> Finding {
    let subject = "fee_key";
    match account {
        Ok(FeeAccount { address, balance: 0, .. }) => {
            let next =
                "run `blindfold wallet deposit` with the fee key: envelopes are paid out of the deposit";
            Finding::error(Area::Peers, subject, format!("{address} has nothing in FeeVault to spend"), next)
        }
        Ok(FeeAccount { address, balance, .. }) => Finding::ok(
            Area::Peers,
            subject,
            format!("{address} can spend {} on fees", ether(U256::from(balance))),
        ),
        Err(fault) => of_fault(peer, &fault),
    }
}

#[cfg(test)]
#[path = "peers_tests.rs"]
mod tests;
