//! L1: the endpoint, this machine's clock by its newest block, and what the contracts say.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use blindfold_l1::{L1Client, L1Config, L1Error, L1Origin, SequencerEvent, Standing, open_accusations};
use blindfold_protocol::{ChainConfig, Epochs};
use blindfold_runtime::{Agreement, Disagreement, SteadyClock, wall_ms};
use blindfold_telemetry::redact_url;
use tokio::time::timeout;

use super::{
    Patience,
    accounts::{self, unanswered},
    finding::{Area, Finding},
    local::Local,
    registry,
    store::OpenedStore,
    subject::Subject,
    within,
};
use crate::{
    l1_commands::{range_start, without_empty, without_hints},
    wallet::ether,
};

const URL: &str = "l1.url";
const LOOK_AT_L1: &str = "look at the L1 node, or try again with a larger --timeout-ms";
/// Headers are posted by others from this part of the posting deadline on.
const OVERDUE_PART: u64 = 4;
/// Members give no more shares of a batch from this part of the posting deadline on (VR-4).
const UNRELEASED_PART: u64 = 2;

pub(super) async fn look(
    subject: Subject,
    local: Local,
    store: Option<OpenedStore>,
    patience: Patience,
) -> Vec<Finding> {
    let Some(chain) = local.chain.clone() else {
        let next = "correct `chain` first: it says which L1 this is, and where the contracts are";
        return vec![Finding::not_checked(Area::L1, URL, "the deployment is not known", next)];
    };
    let config = L1Config { request_timeout_ms: patience.answer_ms, ..subject.l1.config(&chain) };
    let url = redact_url(&subject.l1.url);
    let limit_ms = patience.check_ms();
    let l1 = match timeout(Duration::from_millis(limit_ms), L1Client::connect(config)).await {
        Ok(Ok(l1)) => l1,
        Ok(Err(fault)) => return unconnected(&url, &fault),
        Err(_) => {
            let method = "all that a start asks it".to_owned();
            return unconnected(&url, &L1Error::Timeout { method, timeout_ms: limit_ms });
        }
    };
    let ok = format!(
        "{url}: chain {}; the contracts are there, and are those of rollup.json",
        chain.deployment.l1_chain_id
    );
    let mut findings = vec![Finding::ok(Area::L1, URL, ok)];
    let max_l1_age_ms = subject.max_l1_age_ms;
    let check = |area, what, check| within(patience, area, what, LOOK_AT_L1, check);
    let (clock, finality, registry, standing, accounts, beacon) = tokio::join!(
        check(Area::Clock, "this machine", boxed(clock(&l1, max_l1_age_ms))),
        check(Area::L1, "final block", boxed(finality(&l1, &chain))),
        check(Area::L1, "epochs", boxed(registry::look(&l1, &chain, &subject, &local))),
        check(Area::L1, "standing", boxed(standing(&l1, &chain, store.as_ref()))),
        check(Area::L1, "accounts", boxed(accounts::look(&l1, &local.accounts))),
        check(Area::L1, "l1.beacon_url", boxed(beacon(&l1))),
    );
    for more in [clock, finality, registry, standing, accounts, beacon] {
        findings.extend(more);
    }
    findings
}

type Check<'a> = std::pin::Pin<Box<dyn Future<Output = Vec<Finding>> + 'a>>;

fn boxed<'a>(check: impl Future<Output = Vec<Finding>> + 'a) -> Check<'a> {
    Box::pin(check)
}

fn unconnected(url: &str, fault: &L1Error) -> Vec<Finding> {
    let next = match fault {
        L1Error::Url { .. } => "correct `l1.url`",
        L1Error::Unreachable { .. } | L1Error::Timeout { .. } | L1Error::HttpStatus { .. } => {
            "start your L1 node, see that this machine reaches it, or correct `l1.url`"
        }
        L1Error::WrongChain { .. } => {
            "name an endpoint of the L1 that rollup.json means (`deployment.l1ChainId`) in `l1.url`"
        }
        L1Error::NoContract { .. }
        | L1Error::OtherContract { .. }
        | L1Error::OtherDeployment { .. }
        | L1Error::OtherSetting { .. }
        | L1Error::OriginAhead { .. } => {
            "fetch the rollup.json of this deployment for `chain`, or wait until the L1 node is in sync"
        }
        _ => "look at the L1 node: it answers what no role can use",
    };
    let not = "without L1 nothing of it is known: clock, epochs, bonds, postings, balances";
    vec![
        Finding::error(Area::L1, URL, format!("{url}: {fault}"), next),
        Finding::not_checked(Area::L1, "what L1 says", not, "see to `l1.url` first"),
    ]
}

async fn clock(l1: &L1Client, max_age_ms: u64) -> Vec<Finding> {
    let subject = "this machine";
    match l1.newest_time().await {
        Ok(newest_s) => vec![of_clock(subject, newest_s.saturating_mul(1_000), max_age_ms)],
        Err(fault) => vec![Finding { area: Area::Clock, ..unanswered(subject, &fault) }],
    }
}

/// By the rule that roles judge their clocks by.
fn of_clock(subject: &str, newest_ms: u64, max_age_ms: u64) -> Finding {
    if max_age_ms == 0 {
        let next = "set `max_l1_age_ms` above 0, unless this L1 does not run in real time";
        return Finding::not_checked(
            Area::Clock,
            subject,
            "max_l1_age_ms is 0: L1's time is not compared",
            next,
        );
    }
    let agreement = Agreement::new(Arc::new(SteadyClock::system()), max_age_ms);
    agreement.observe(Some(newest_ms));
    match agreement.fault() {
        None => {
            let age_ms = wall_ms().saturating_sub(newest_ms);
            Finding::ok(
                Area::Clock,
                subject,
                format!("L1's newest block is {age_ms} ms old: the clock can be right"),
            )
        }
        Some(fault @ Disagreement::Unconfirmed { .. }) => {
            let next =
                "compare `date -u` with a time server (NTP), and the L1 node's newest block with another's";
            Finding::error(Area::Clock, subject, fault, next)
        }
        Some(fault) => Finding::error(
            Area::Clock,
            subject,
            fault,
            "set this machine's clock right, and keep it so (NTP)",
        ),
    }
}

async fn finality(l1: &L1Client, chain: &ChainConfig) -> Vec<Finding> {
    let subject = "final block";
    vec![match l1.finalized().await {
        Ok(origin) => of_final(&origin, wall_ms() / 1_000, chain.timing.max_origin_age_seconds.into()),
        Err(fault) => {
            let next = "wait until L1 calls its first block final; if that is long ago, look at the L1 node";
            Finding::error(Area::L1, subject, fault, next)
        }
    }]
}

fn of_final(origin: &L1Origin, now_s: u64, max_age_s: u64) -> Finding {
    let subject = "final block";
    let age_s = now_s.saturating_sub(origin.timestamp);
    let found = format!("{}, {age_s} s old; headers may name it for {max_age_s} s", origin.number);
    let next = "look whether L1 finalises, and whether the L1 node is in sync; without a younger final block nothing is sealed";
    if age_s >= max_age_s {
        Finding::error(Area::L1, subject, found, next)
    } else if age_s >= max_age_s / 2 {
        Finding::warning(Area::L1, subject, found, next)
    } else {
        Finding::ok(Area::L1, subject, found)
    }
}

async fn beacon(l1: &L1Client) -> Vec<Finding> {
    let subject = "l1.beacon_url";
    match l1.beacon_version().await {
        Ok(None) => Vec::new(),
        Ok(Some(version)) => vec![Finding::ok(Area::L1, subject, format!("answers: {version}"))],
        // What serves blobs alone, as a development L1 does.
        Err(L1Error::HttpStatus { status: 404, .. }) => {
            let next = "see that this is a beacon node's API, unless L1 is a development one";
            vec![Finding::not_checked(Area::L1, subject, "answers, and does not tell its version", next)]
        }
        Err(fault) => {
            let next =
                "start the beacon node, or correct `l1.beacon_url`: data in blobs cannot be read without one";
            vec![Finding::warning(Area::L1, subject, fault, next)]
        }
    }
}

/// Where the contracts stand after L1's newest block.
async fn standing(l1: &L1Client, chain: &ChainConfig, store: Option<&OpenedStore>) -> Vec<Finding> {
    let standing = match l1.standing().await {
        Ok(standing) => standing,
        Err(fault) => return vec![unanswered("standing", &fault)],
    };
    let mut findings = Vec::new();
    let timing = &standing.timing;
    let back = 2 * u64::from(timing.challenge_window.max(timing.answer_window));
    let from = range_start(standing.block, back, chain);
    match l1.recent_faults(from, standing.block).await {
        Ok(faults) => {
            findings.push(of_bond(&standing, &faults));
            findings.push(of_accusations(&standing, &faults));
        }
        Err(fault) => findings.push(unanswered("bond", &fault)),
    }
    findings.push(posting(&standing, store).await);
    findings.push(match waiting_runs(l1, chain, &standing).await {
        Ok(runs) => of_runs(&runs, standing.block, timing.hint_deadline.into()),
        Err(fault) => Finding::error(Area::L1, "void runs", format!("{fault:#}"), LOOK_AT_L1),
    });
    findings
}

fn of_bond(standing: &Standing, faults: &[SequencerEvent]) -> Finding {
    let (subject, bond) = ("bond", &standing.bond);
    let found = format!("{} of the sequencer {}", ether(bond.amount), standing.sequencer);
    let twice = faults.iter().find_map(|event| match event {
        SequencerEvent::Equivocation { number, .. } => Some(*number),
        _ => None,
    });
    let broken = faults.iter().any(|event| matches!(event, SequencerEvent::Omission { .. }));
    if let Some(number) = twice {
        let found = format!("{found}; two headers of number {number} were shown: it was slashed");
        let next = "find out who else has the signing key, and name another: \"Another sequencer\" in docs/operate.md";
        return Finding::error(Area::L1, subject, found, next);
    }
    if broken {
        let found = format!("{found}; a broken promise cost it lately");
        let next = "find in the sequencer's log what it promised and did not seal, then deposit a bond again";
        return Finding::error(Area::L1, subject, found, next);
    }
    if bond.withdrawal > 0 {
        let announced = ether(alloy_primitives::U256::from(bond.withdrawal));
        let found = format!("{found}; {announced} announced to be withdrawn, from {} on", bond.unlocks_at);
        let next = "if that is not meant, somebody else has the signing key: \"Another sequencer\" in docs/operate.md";
        return Finding::warning(Area::L1, subject, found, next);
    }
    if bond.amount.is_zero() {
        let next = "run `blindfold l1 bond sequencer deposit`: without a bond nothing answers for the sequencer's promises";
        return Finding::warning(Area::L1, subject, found, next);
    }
    Finding::ok(Area::L1, subject, found)
}

fn of_accusations(standing: &Standing, faults: &[SequencerEvent]) -> Finding {
    let subject = "accusations";
    if standing.open_accusations == 0 {
        return Finding::ok(Area::L1, subject, "none open");
    }
    let until = open_accusations(faults).iter().map(|accusation| accusation.answer_until).min();
    let until = until.map_or(String::new(), |until| format!("; the first until L1 block {until}"));
    let found = format!("{} to be answered{until}", standing.open_accusations);
    let next = "keep the sequencer running and its posting key's account filled: it answers by itself; `blindfold l1 status` \
                lists them";
    Finding::warning(Area::L1, subject, found, next)
}

/// How long the first certified header that is not on L1 has waited, by this role's own store.
async fn posting(standing: &Standing, store: Option<&OpenedStore>) -> Finding {
    let posted = standing.head.number;
    let waiting = match store {
        Some(opened) => {
            let certified = opened.heads.certified.unwrap_or_default();
            let count = certified.saturating_sub(posted);
            let origin = match count {
                0 => None,
                _ => opened.store.batch(posted.saturating_add(1)).await.ok().flatten(),
            };
            Some((count, origin.map(|batch| batch.sealed.header.l1_origin_number)))
        }
        None => None,
    };
    of_posting(standing, waiting)
}

/// `waiting`: how many certified headers are not on L1, and the L1 origin of the first.
fn of_posting(standing: &Standing, waiting: Option<(u64, Option<u64>)>) -> Finding {
    let subject = "posting";
    let deadline = u64::from(standing.timing.posting_deadline);
    let ago = standing.block.saturating_sub(standing.head_posted_at);
    let last = match standing.head.number {
        0 => "nothing is posted yet".to_owned(),
        number => format!("posted up to {number}, {ago} L1 blocks ago"),
    };
    let (count, origin) = match waiting {
        None => return Finding::ok(Area::L1, subject, format!("{last}; the deadline is {deadline} blocks")),
        Some((0, _)) => {
            return Finding::ok(Area::L1, subject, format!("{last}; nothing certified waits here"));
        }
        Some((count, Some(origin))) => (count, origin),
        Some((count, None)) => {
            let next = "wait until this role has caught up with the sequencer, and run this again";
            let found = format!("{last}; {count} certified headers wait, the first is not here");
            return Finding::warning(Area::L1, subject, found, next);
        }
    };
    let lag = standing.block.saturating_sub(origin);
    let found =
        format!("{last}; {count} certified headers wait, the first for {lag} of {deadline} L1 blocks");
    let next = "look why the sequencer does not post (`blindfold_posting_failures_total`, its account's ether); others with an \
                account post from a quarter of the deadline on";
    if lag >= deadline / UNRELEASED_PART {
        Finding::error(Area::L1, subject, found, next)
    } else if lag >= deadline / OVERDUE_PART {
        Finding::warning(Area::L1, subject, found, next)
    } else {
        Finding::ok(Area::L1, subject, found)
    }
}

/// Runs with items and without hints: first and last number, and the L1 block from which on they may be declared void.
async fn waiting_runs(
    l1: &L1Client,
    chain: &ChainConfig,
    standing: &Standing,
) -> Result<Vec<(u64, u64, u64)>> {
    let deadline = u64::from(standing.timing.hint_deadline);
    let (mut runs, hints) = without_hints(l1, chain, standing.block, 2 * deadline).await?;
    without_empty(&mut runs, async |run| l1.headers_of(run).await).await?;
    Ok(runs.iter().map(|run| (run.first, run.last, hints.void_from(run, deadline))).collect())
}

fn of_runs(runs: &[(u64, u64, u64)], newest: u64, deadline: u64) -> Finding {
    let subject = "void runs";
    let Some((first, last, from)) = runs.iter().min_by_key(|(_, _, from)| *from) else {
        return Finding::ok(Area::L1, subject, "every posted run has hints, or needs none");
    };
    let found = format!(
        "without hints: {}, of which batches {first}–{last} may be declared void from L1 block {from} on",
        runs.len()
    );
    let next = "see that a hint publisher with `l1_posting.enabled = true` runs, with ether and a bond; \
                `blindfold l1 status` lists the runs";
    if newest >= *from {
        Finding::error(Area::L1, subject, found, next)
    } else if newest.saturating_add(deadline / 2) >= *from {
        Finding::warning(Area::L1, subject, found, next)
    } else {
        Finding::ok(Area::L1, subject, found)
    }
}

/// The epochs that L1 registers, or what to say where it does not tell.
pub(super) async fn epochs(l1: &L1Client) -> Result<Epochs, Finding> {
    match l1.epochs().await {
        Ok(epochs) if epochs.as_slice().is_empty() => {
            let next = "register the committee (`blindfold l1 register`), and wait until that is final";
            Err(Finding::error(
                Area::L1,
                "epochs",
                "no committee is registered on L1's newest final block",
                next,
            ))
        }
        Ok(epochs) => Ok(epochs),
        Err(fault) => Err(unanswered("epochs", &fault)),
    }
}

#[cfg(test)]
#[path = "l1_tests.rs"]
mod tests;
