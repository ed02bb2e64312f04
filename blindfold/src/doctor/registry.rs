//! What L1's registry names: the epochs, and whether this role's parameters and keys are those of them.

use std::sync::Arc;

use alloy_primitives::Address;
use blindfold_chain::{EpochParameters, Office};
use blindfold_committee::{is_member_of, key_file::KeyFilePublic};
use blindfold_l1::{L1Client, L1Error};
use blindfold_protocol::{B256, ChainConfig, Epoch, Epochs};

use super::{
    accounts::unanswered,
    finding::{Area, Finding},
    l1,
    local::Local,
    subject::{AccountUse, Peer, PeerKind, Subject},
};

/// The next epoch is to be registered when this part of the last one is left.
const LAST_PART: u64 = 10;

pub(super) async fn look(
    l1: &L1Client,
    chain: &ChainConfig,
    subject: &Subject,
    local: &Local,
) -> Vec<Finding> {
    let asked = async {
        let head = l1.final_posted_head().await?.number;
        Ok::<_, L1Error>(head.saturating_add(1))
    };
    let epochs = match l1::epochs(l1).await {
        Ok(epochs) => epochs,
        Err(finding) => return vec![finding],
    };
    let next = match asked.await {
        Ok(next) => next,
        Err(fault) => return vec![unanswered("epochs", &fault)],
    };
    let mut findings = vec![in_force(&epochs, next)];
    if subject.needs_all_epochs {
        findings.extend(parameters(&epochs, local));
    }
    findings.extend(local.member.as_ref().map(|key| member(&epochs, key, next)));
    if subject.needs_threshold {
        findings.extend(thresholds(&epochs, &subject.peers, next));
    }
    let signer = local.accounts.iter().find(|account| account.is_for == AccountUse::Signs);
    findings.extend(signer.map(|account| signing_key(&epochs, chain, ("signing_key", account.address))));
    let elsewhere = subject.signer_elsewhere();
    findings.extend(elsewhere.map(|address| signing_key(&epochs, chain, ("signer.address", address))));
    findings
}

fn shown(epoch: &Epoch) -> String {
    let Epoch { epoch, first, last, threshold, members, .. } = epoch;
    format!("epoch {epoch}: batches {first}–{last}, {threshold} of {} members", members.len())
}

/// The epoch of the number after the last one on L1.
fn in_force(epochs: &Epochs, next: u64) -> Finding {
    let subject = "epochs";
    let register =
        "register the next epoch (`blindfold l1 register`), with notice before the present one's last number";
    let Some(epoch) = epochs.at(next) else {
        let found = format!("no epoch is registered for batch {next}");
        return Finding::error(Area::L1, subject, found, register);
    };
    let count = epochs.as_slice().len();
    let found =
        format!("{}, in force after batch {}; {count} registered", shown(epoch), next.saturating_sub(1));
    let has_next = epochs.at(epoch.last.saturating_add(1)).is_some();
    let (left, all) = (epoch.last.saturating_sub(next), epoch.last.saturating_sub(epoch.first));
    if !has_next && left <= all / LAST_PART {
        return Finding::warning(
            Area::L1,
            subject,
            format!("{found}; {left} numbers are left, no epoch follows"),
            register,
        );
    }
    Finding::ok(Area::L1, subject, found)
}

/// Whether there is a parameter file for each epoch, as the role's start asks.
fn parameters(epochs: &Epochs, local: &Local) -> Vec<Finding> {
    let subject = "parameters";
    let mut findings: Vec<Finding> = Vec::new();
    let mut served = Vec::new();
    for epoch in epochs.as_slice() {
        let of_epoch =
            local.parameters.iter().find(|(_, set)| B256::from(set.hash()) == epoch.parameters_hash);
        let Some((path, set)) = of_epoch else {
            let found = format!(
                "no file has the hash {} that L1 registers for epoch {}",
                epoch.parameters_hash, epoch.epoch
            );
            let next = "fetch that parameter file from whoever registered it, and add it to `parameters`";
            findings.push(Finding::error(Area::L1, subject, found, next));
            continue;
        };
        match EpochParameters::new(epoch.clone(), Arc::new(set.clone()), path.display().to_string()) {
            Ok(_) => served.push(epoch.epoch.to_string()),
            Err(fault) => {
                let next = "do not use this file: L1 registers other values under its hash";
                findings.push(Finding::error(Area::L1, subject, fault, next));
            }
        }
    }
    if !served.is_empty() {
        let found = format!("the files are those that L1 registers for epoch {}", served.join(", "));
        findings.push(Finding::ok(Area::L1, subject, found));
    }
    findings
}

/// Whether L1 registers the member's key, and when it votes.
fn member(epochs: &Epochs, key: &KeyFilePublic, next: u64) -> Finding {
    let subject = "key";
    let of_parameters: Vec<&Epoch> =
        epochs.as_slice().iter().filter(|epoch| epoch.parameters_hash == key.parameters_hash).collect();
    if of_parameters.is_empty() {
        let found = format!("no epoch on L1 has the parameters {}", key.parameters_hash);
        let advice = "name the parameter file of an epoch that L1 registers in `parameters`, or wait until yours is final";
        return Finding::error(Area::L1, subject, found, advice);
    }
    let Some(last) = of_parameters.iter().rfind(|epoch| is_member_of(key, epoch)) else {
        let found = format!("epoch {} has another key for member {}", of_parameters[0].epoch, key.member);
        let advice = "restore the key file whose public file was registered, and name it in `key.file`";
        return Finding::error(Area::L1, subject, found, advice);
    };
    let found = format!("member {} of {}", key.member, shown(last));
    if of_parameters.iter().any(|epoch| is_member_of(key, epoch) && epoch.contains(next)) {
        return Finding::ok(Area::L1, subject, format!("{found}, in force"));
    }
    if last.last < next {
        let advice =
            "start the member with the parameter file and the key of a later epoch, if it serves in one";
        return Finding::warning(Area::L1, subject, format!("{found}, which is over"), advice);
    }
    let advice = "nothing: it votes when that epoch begins; keep the earlier epoch's key at work until then";
    Finding::warning(Area::L1, subject, format!("{found}, which has not begun"), advice)
}

/// Whether the settings name enough members of each epoch that is not over.
fn thresholds(epochs: &Epochs, peers: &[Peer], next: u64) -> Vec<Finding> {
    let named = |epoch: &Epoch| {
        let is_member = |peer: &&Peer| matches!(peer.kind, PeerKind::Member(j) if epoch.member(j).is_some());
        peers.iter().filter(is_member).count()
    };
    let short = epochs.as_slice().iter().filter(|epoch| epoch.last >= next);
    let short = short.filter(|epoch| named(epoch) < usize::from(epoch.threshold));
    let finding = |epoch: &Epoch| {
        let found = format!(
            "epoch {} needs {} members, the settings name {}",
            epoch.epoch,
            epoch.threshold,
            named(epoch)
        );
        Finding::error(Area::L1, "members", found, "name the other members of that epoch, with their URLs")
    };
    short.map(finding).collect()
}

/// Whether L1 names the key that this sequencer signs with.
fn signing_key(epochs: &Epochs, chain: &ChainConfig, (subject, key): (&str, Address)) -> Finding {
    let named = epochs.sequencer_at(epochs.read_at()).unwrap_or(chain.sequencer);
    let office = match epochs.sequencers() {
        [] if key == chain.sequencer => Office::Holds { term: 0..=u64::MAX },
        [] => Office::Stranger,
        _ => Office::of(epochs.sequencer_term(key), epochs.read_at()),
    };
    let wait = "nothing: see \"Another sequencer\" in docs/operate.md for what each of the two does when";
    match office {
        Office::Stranger => {
            let found = format!("L1 does not name {key} on its newest final block; the sequencer is {named}");
            let mend = match subject {
                "signing_key" => format!("name the key file of {named} in `signing_key.file`"),
                setting => format!("correct `{setting}`"),
            };
            let next = format!("{mend}, or have the governor run `blindfold l1 sequencer name {key}`");
            Finding::error(Area::L1, subject, found, next)
        }
        Office::Holds { .. } => Finding::ok(Area::L1, subject, format!("{key} is the sequencer on L1")),
        Office::Awaits { begins, .. } => {
            let found = format!("{key} is named, and begins to seal when L1 block {begins} is final");
            Finding::warning(Area::L1, subject, found, wait)
        }
        Office::Leaves { term } => {
            let found =
                format!("the time of {key} ended with L1 block {}: it seals what it admitted", term.end());
            Finding::warning(Area::L1, subject, found, wait)
        }
        Office::Left { until } => {
            let found = format!("the time of {key} ended with L1 block {until}; the sequencer is {named}");
            Finding::warning(Area::L1, subject, found, wait)
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
