//! The adversary run: every attack that L1 is there to judge, made for real against a running network.
//!
//! - `arena`: a network with short deadlines and the accounts of both sides.
//! - `accounting`: that no honest account has less afterwards.
//! - `report`: what came of each case.
//! - `hints`, `sequencer`, `forced`, `deposits`, `held_back`, `mangled`, `floods`, `sockets`, `money`, `outage`, `clocks`, `hint_publishers`,
//!   `restored`, `rotation`, `committee`, `successor`: the cases.

mod accounting;
mod arena;
mod clocks;
mod committee;
mod deposits;
mod floods;
mod forced;
mod held_back;
mod hint_publishers;
mod hints;
mod injection;
mod mangled;
mod money;
mod outage;
mod posted;
mod raw;
mod report;
mod restored;
mod roles;
mod rotation;
mod sequencer;
mod sockets;
mod successor;

use std::{collections::BTreeSet, fs, path::PathBuf, sync::Arc, time::Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use blindfold::devnet::{MEMBERS, Progress, is_run, ports::Ports, remove_run};
use blindfold_protocol::L1Timing;
use clap::Parser;
use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::watch, task::JoinSet};

use crate::{
    alarms::Alarms,
    drills::rows::{By, ROWS},
};
pub(crate) use arena::COMMITTEES;
use arena::{Arena, TIMING};
use report::{Outcome, Report};

/// Last batch number of an epoch that does not end during the run.
const ENDLESS: u64 = u32::MAX as u64;

/// Options of the adversary run.
#[derive(Parser, Debug)]
#[command(
    name = "devnet --adversary",
    about = "Attack the whole system in every way that L1 judges, and check that every attack fails",
    after_help = HELP
)]
pub struct AdversaryArgs {
    /// Folder for everything the run writes; removed when all is right, unless --keep
    #[arg(long, default_value = "target/devnet/adversary")]
    dir: PathBuf,
    /// Where the outcomes go
    #[arg(long, default_value = "target/devnet/adversary.json")]
    out: PathBuf,
    /// Only this case. Repeatable
    #[arg(long = "case", value_name = "NAME", value_parser = names())]
    cases: Vec<String>,
    /// Leave the folder where it is
    #[arg(long)]
    keep: bool,
}

const HELP: &str = "Cases:
  clock_jump               a machine's clock jumps an hour ahead and back: no header is stamped by it
  forged_hint              a posted session key is wrong: the full node challenges it, the bond is lost
  false_malformed          a good envelope is called malformed: the same
  withheld_hints           postings that cannot be read revert; wrong singleton releases cost the bond
  malformed_challenge      right hints are challenged: what has no form reverts, what has no reason costs the stake
  equivocation             two signed headers of one number cost the sequencer's bond
  reordered_after_release  another order of a batch that everybody can read is acknowledged by nobody
  lower_promise            a friend's promise with a lower number takes nothing from the first accuser
  omitted_promise          a broken promise costs the bond, an accusation over a kept one its stake
  ignored_envelope         what the sequencer refuses is forced through L1, and executes
  reserved_gas             junk of a few bytes reserves gas: it pays for it, the price rises, the chain goes on
  deposit_hog              one deposit takes all the gas of an L1 block: it burns it, and others come in after it
  invalid_forced           forced items that are no good are skipped, and the chain goes on
  origin_held_back         the sequencer names old origins: forced items wait for W, and no longer
  l1_outage                L1 answers nobody for a while: ordering, certificates and blocks go on
  stale_header_after_outage
                           no certificates until a signed header is too old: L1 makes one, the chain goes on
  silent_hint_publisher    a second one takes over; without any, nodes open by themselves
  slashed_at_the_deadline  a publisher has its own wrong hints slashed at a run's last hour: not void, its time runs anew
  rotation                 a new committee, with envelopes for the old one and for the new one under way
  unreleased_run_claimed_malformed
                           members release nothing, and all of it is called malformed: slashed, then void
  silent_committee         void without a release; headers made by L1, and an exit, without any committee
  dead_committee_replaced  it is gone for good: its epoch ends at L1's head, and another one goes on
  announced_end            a released batch is kept from L1 until its epoch ends: it is posted, the next committee goes on
  mangled_copy_forced_first
                           an envelope with a damaged proof goes first: the genuine one is no duplicate of it
  mangled_copy_keeps_promise
                           the same does not keep a promise: it costs the bond
  fee_stuffing             garbage that is forced and skipped moves no fee
  malformed_flood          envelopes that open to nothing cost the surcharge, each; honest ones go on
  promise_flood            a flood of promises is refused in the end; what was promised is kept
  unread_websocket         many ask for batches and read nothing: memory stays bounded, others are served
  prefix_without_data      somebody posts headers without data: the sequencer supplies them
  released_but_never_posted
                           the sequencer keeps a released batch from L1: somebody else posts it
  bond_leaves_before_evidence
                           what is announced to be taken out is lost all the same
  premarked_number         two headers shown without a bond save no later ones of that number
  double_acknowledgement   members who sign two headers of one number lose their stakes, and nobody else does
  governor_takes_over      the governor's key alone makes no committee of one
  stolen_key_replaced      a sequencer that lost its bond gives way to another key
  restored_sequencer       a sequencer without its disk signs no second header
  restored_member          a member with an older disk does not vote again

Examples:
  scripts/devnet --adversary
  scripts/devnet --adversary --case equivocation --keep";

/// A network and the cases made on it, in order. What leaves a network unusable comes last.
struct Group {
    name: &'static str,
    last_number: u64,
    timing: L1Timing,
    cases: &'static [&'static str],
}

/// Groups that run one after another on the first network; the others do so on the second.
const ON_FIRST: usize = 2;
const GROUPS: [Group; 4] = [
    Group {
        name: "long-epoch",
        last_number: ENDLESS,
        timing: TIMING,
        cases: &[
            // Before anything is mined: here L1's time has to be the time.
            "clock_jump",
            "forged_hint",
            "false_malformed",
            "withheld_hints",
            "malformed_challenge",
            "equivocation",
            "reordered_after_release",
            "omitted_promise",
            "lower_promise",
            "ignored_envelope",
            "invalid_forced",
            "l1_outage",
            "stale_header_after_outage",
            "silent_hint_publisher",
            "slashed_at_the_deadline",
            "unreleased_run_claimed_malformed",
        ],
    },
    Group {
        name: "young-origins",
        last_number: ENDLESS,
        timing: held_back::TIMING,
        cases: &["origin_held_back"],
    },
    Group {
        name: "short-epoch",
        last_number: rotation::FIRST_EPOCH_LAST,
        timing: TIMING,
        cases: &["rotation", "silent_committee", "dead_committee_replaced", "announced_end"],
    },
    Group {
        name: "floods",
        last_number: ENDLESS,
        timing: TIMING,
        cases: &[
            "mangled_copy_forced_first",
            "fee_stuffing",
            "reserved_gas",
            "deposit_hog",
            "malformed_flood",
            "prefix_without_data",
            "released_but_never_posted",
            "bond_leaves_before_evidence",
            "premarked_number",
            "mangled_copy_keeps_promise",
            "governor_takes_over",
            "restored_sequencer",
            "restored_member",
            "promise_flood",
            "unread_websocket",
            "double_acknowledgement",
            "stolen_key_replaced",
        ],
    },
];

fn names() -> Vec<&'static str> {
    GROUPS.iter().flat_map(|group| group.cases).copied().collect()
}

async fn case(name: &str, arena: &mut Arena) -> Outcome {
    match name {
        "clock_jump" => clocks::clock_jump(arena).await,
        "forged_hint" => hints::forged_hint(arena).await,
        "false_malformed" => hints::false_malformed(arena).await,
        "withheld_hints" => hints::withheld_hints(arena).await,
        "malformed_challenge" => hints::malformed_challenge(arena).await,
        "equivocation" => sequencer::equivocation(arena).await,
        "reordered_after_release" => sequencer::reordered_after_release(arena).await,
        "omitted_promise" => sequencer::omitted_promise(arena).await,
        "lower_promise" => sequencer::lower_promise(arena).await,
        "reserved_gas" => forced::reserved_gas(arena).await,
        "deposit_hog" => deposits::deposit_hog(arena).await,
        "slashed_at_the_deadline" => hints::slashed_at_the_deadline(arena).await,
        "ignored_envelope" => forced::ignored_envelope(arena).await,
        "invalid_forced" => forced::invalid_forced(arena).await,
        "origin_held_back" => held_back::origin_held_back(arena).await,
        "l1_outage" => outage::l1_outage(arena).await,
        "stale_header_after_outage" => outage::stale_header_after_outage(arena).await,
        "silent_hint_publisher" => hint_publishers::silent_hint_publisher(arena).await,
        "mangled_copy_forced_first" => mangled::mangled_copy_forced_first(arena).await,
        "fee_stuffing" => floods::fee_stuffing(arena).await,
        "malformed_flood" => floods::malformed_flood(arena).await,
        "prefix_without_data" => restored::prefix_without_data(arena).await,
        "released_but_never_posted" => restored::released_but_never_posted(arena).await,
        "bond_leaves_before_evidence" => money::bond_leaves_before_evidence(arena).await,
        "premarked_number" => money::premarked_number(arena).await,
        "mangled_copy_keeps_promise" => mangled::mangled_copy_keeps_promise(arena).await,
        "governor_takes_over" => money::governor_takes_over(arena).await,
        "restored_sequencer" => restored::restored_sequencer(arena).await,
        "restored_member" => restored::restored_member(arena).await,
        "unread_websocket" => sockets::unread_websocket(arena).await,
        "stolen_key_replaced" => successor::stolen_key_replaced(arena).await,
        "promise_flood" => floods::promise_flood(arena).await,
        "rotation" => rotation::rotation(arena).await,
        "dead_committee_replaced" => rotation::dead_committee_replaced(arena).await,
        "announced_end" => rotation::announced_end(arena).await,
        "unreleased_run_claimed_malformed" => committee::unreleased_run_claimed_malformed(arena).await,
        "double_acknowledgement" => committee::double_acknowledgement(arena).await,
        "silent_committee" => committee::silent_committee(arena).await,
        other => bail!("no case is called {other}"),
    }
}

/// The alarms that a case must set off.
fn alarms_of(case: &str) -> impl Iterator<Item = &'static str> {
    let of_case = ROWS.iter().filter(move |row| matches!(row.by, By::Case(name) if name == case));
    of_case.flat_map(|row| row.alarms.iter().copied())
}

/// How long an alarm may take to be quiet again.
const QUIET: std::time::Duration = std::time::Duration::from_secs(30);

/// What the networks of a run share.
struct Run {
    args: AdversaryArgs,
    progress: Progress,
    report: Mutex<Report>,
}

/// Runs the cases. Two networks stand beside each other: most of a run is waiting for L1.
///
/// # Errors
/// When an attack did not fail, or somebody honest lost something; the file with the outcomes is written all the same.
pub async fn run(args: AdversaryArgs) -> Result<()> {
    let run = Arc::new(Run { args, progress: Progress::default(), report: Mutex::default() });
    // Together, so that no port is given to both.
    let [long, short] = Ports::free_for_two(MEMBERS)?;
    let (first, others) = GROUPS.split_at(ON_FIRST);
    let (stop, stopped) = watch::channel(false);
    // A thread each, so that neither waits while the other computes.
    let mut networks = JoinSet::new();
    for (ports, groups) in [(long, first), (short, others)] {
        let (run, mut stopped) = (Arc::clone(&run), stopped.clone());
        networks.spawn_blocking(move || {
            Handle::current().block_on(async move {
                tokio::select! {
                    outcome = one_after_another(&run, ports, groups) => outcome,
                    // What was started is dropped, and so killed.
                    _ = stopped.wait_for(|stopped| *stopped) => bail!("stopped by Ctrl-C"),
                }
            })
        });
    }
    let outcome = tokio::select! {
        outcome = all(&mut networks) => outcome,
        stopped = tokio::signal::ctrl_c() => {
            stop.send_replace(true);
            all(&mut networks).await.and(stopped.map_err(Into::into))
        }
    };
    let Run { args, progress, report } = &*run;
    let report = report.lock();
    report.write(&args.out)?;
    outcome?;
    if report.problems().is_empty() {
        if !args.keep {
            for group in &GROUPS {
                let dir = args.dir.join(group.name);
                if is_run(&dir) {
                    remove_run(&dir)?;
                }
            }
            // What else is in there is not ours.
            let _ = fs::remove_dir(&args.dir);
        }
        progress.step(format!("every attack failed; outcomes in {}", args.out.display()));
        return Ok(());
    }
    bail!("adversary run failed:\n  - {}", report.problems().join("\n  - "))
}

/// Waits for all networks. Gives the first error.
async fn all(networks: &mut JoinSet<Result<()>>) -> Result<()> {
    let mut outcome = Ok(());
    while let Some(ended) = networks.join_next().await {
        outcome = outcome.and(ended.context("a network's thread").flatten());
    }
    outcome
}

/// Runs groups one after another, the first with these ports. Gives the first error.
async fn one_after_another(run: &Run, mut ports: Ports, groups: &[Group]) -> Result<()> {
    let mut outcome = Ok(());
    for (place, next) in groups.iter().enumerate() {
        if place > 0 {
            [ports, _] = Ports::free_for_two(MEMBERS)?;
        }
        outcome = outcome.and(group(run, next, ports.clone()).await);
    }
    outcome
}

async fn group(run: &Run, group: &Group, ports: Ports) -> Result<()> {
    let Run { args, progress, report } = run;
    let wanted = |name: &&&str| args.cases.is_empty() || args.cases.iter().any(|case| case == **name);
    let cases: Vec<&str> = group.cases.iter().filter(wanted).copied().collect();
    if cases.is_empty() {
        return Ok(());
    }
    progress.step(format!("a network for {}", cases.join(", ")));
    let dir = args.dir.join(group.name);
    let mut arena = Arena::start(dir, ports, group.last_number, group.timing, progress).await?;
    let alarms = Alarms::start(&arena.devnet).await?;
    let logs = arena.devnet.dir().join("logs");
    let mut cases = cases.into_iter();
    while let Some(name) = cases.next() {
        progress.step(name);
        if let Some(alarms) = &alarms {
            // One that an earlier case set off does not count, unless what it tells of goes on.
            let expected: Vec<&str> = alarms_of(name).collect();
            if let Err(still) = alarms.none_fires(&expected, QUIET).await {
                progress.step(format!("  {still:#}"));
            }
        }
        let started = Instant::now();
        let before = arena.status().await.map(|status| status.block.number);
        let mut outcome = case(name, &mut arena).await;
        let ended = arena.ended()?;
        if !ended.is_empty() {
            let roles: Vec<&str> = ended.iter().map(|ended| ended.role.as_str()).collect();
            let what = format!("ended by themselves: {}", roles.join(", "));
            outcome = Err(match outcome {
                Ok(_) => anyhow!(what),
                Err(error) => error.context(what),
            });
        }
        if outcome.is_ok() {
            outcome = match aftermath(&mut arena, before).await {
                Ok(()) => outcome,
                Err(error) => Err(error),
            };
        }
        let fired = match &alarms {
            Some(alarms) => alarms.fired_since(started.into()).await?,
            None => BTreeSet::new(),
        };
        if alarms.is_some() && outcome.is_ok() {
            let missing: Vec<_> = alarms_of(name).filter(|alarm| !fired.contains(*alarm)).collect();
            if !missing.is_empty() {
                outcome = Err(anyhow!("no alarm {}; fired: {fired:?}", missing.join(", ")));
            }
        }
        let failed = outcome.is_err();
        report.lock().case(name, started.elapsed().as_secs_f64(), outcome, &fired, &logs);
        if failed {
            // Where the folder goes with the machine, this is all that is left.
            for (role, lines) in arena.last_log_lines() {
                println!("{role}, the end of its log:\n{lines}");
            }
        }
        for ended in ended {
            println!("{ended}");
        }
        let gone = arena.not_running();
        if failed && !gone.is_empty() {
            // No later case would say anything but that.
            let rest: Vec<&str> = cases.by_ref().collect();
            let rest = if rest.is_empty() { "nothing".to_owned() } else { rest.join(", ") };
            let gone = gone.join(", ");
            let what = format!("{}: after {name} these do not run: {gone}; left out: {rest}", group.name);
            report.lock().problem(what);
        }
    }
    progress.step(format!("{}: has anybody honest lost anything?", group.name));
    if arena.not_running().iter().any(|role| role == "full-node") {
        report.lock().problem(format!("the accounting of {}: the full node does not run", group.name));
        return arena.devnet.stop().await;
    }
    match arena.losses().await {
        Ok(losses) => losses.into_iter().for_each(|loss| report.lock().problem(loss)),
        Err(error) => report.lock().problem(format!("the accounting of {}: {error:#}", group.name)),
    }
    arena.devnet.stop().await
}

/// What a case leaves behind: the chain goes on after it, and no honest account has less than before it. Where it took the
/// sequencer away for good, the chain has gone on by L1 since before the case; where the full node, nobody can say.
async fn aftermath(arena: &mut Arena, before: Result<u64>) -> Result<()> {
    let gone = arena.not_running();
    if gone.iter().any(|role| role == "full-node") {
        return Ok(());
    }
    if gone.iter().any(|role| role == "sequencer") {
        let (before, after) = (before?, arena.status().await?.block.number);
        ensure!(after > before, "no block since before the case");
    } else {
        arena.goes_on().await?;
    }
    let losses = arena.losses().await.context("the accounting")?;
    ensure!(losses.is_empty(), "{}", losses.join("; "));
    // What somebody won in this case is not there to be lost in the next.
    arena.accounting.close_case();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_of_the_failure_table_is_one() {
        for row in ROWS {
            if let By::Case(name) = row.by {
                assert!(names().contains(&name), "{name}");
            }
        }
    }

    #[test]
    fn every_case_is_explained() {
        for name in names() {
            assert!(HELP.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}");
        }
    }
}
