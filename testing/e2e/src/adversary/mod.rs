//! The adversary run: every attack that L1 is there to judge, made for real against a running network.
//!
//! - `field`: a network with short deadlines and the accounts of both sides.
//! - `books`: that no honest account has less afterwards.
//! - `report`: what came of each case.
//! - `hints`, `sequencer`, `forced`, `helpers`, `rotation`, `committee`: the cases.

mod books;
mod committee;
mod field;
mod forced;
mod helpers;
mod hints;
mod injection;
mod posted;
mod raw;
mod report;
mod roles;
mod rotation;
mod sequencer;

use std::{fs, path::PathBuf, time::Instant};

use anyhow::{Result, bail};
use blindfold::devnet::{MEMBERS, Progress, ports::Ports};
use clap::Parser;
use parking_lot::Mutex;

use field::Field;
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
  forged_hint              a posted session key is wrong: the full node challenges it, the bond is lost
  false_malformed          a good envelope is called malformed: the same
  withheld_hints           postings that cannot be read revert; wrong singleton releases are left alone
  malformed_challenge      right hints are challenged: what has no form reverts, what has no reason costs the stake
  equivocation             two signed headers of one number cost the sequencer's bond
  reordered_after_release  another order of a batch that everybody can read is acknowledged by nobody
  omitted_promise          a broken promise costs the bond, an accusation over a kept one its stake
  ignored_envelope         what the sequencer refuses is forced through L1, and executes
  invalid_forced           forced items that are no good are skipped, and the chain goes on
  silent_helper            a second helper takes over; without any, nodes open by themselves
  rotation                 a new committee, with envelopes for the old one and for the new one under way
  silent_committee         void without a release; headers made by L1, and an exit, without any committee

Examples:
  scripts/devnet --adversary
  scripts/devnet --adversary --case equivocation --keep";

/// A network and the cases made on it, in order. What leaves a network unusable comes last.
struct Group {
    name: &'static str,
    last_number: u64,
    cases: &'static [&'static str],
}

const GROUPS: [Group; 2] = [
    Group {
        name: "long-epoch",
        last_number: ENDLESS,
        cases: &[
            "forged_hint",
            "false_malformed",
            "withheld_hints",
            "malformed_challenge",
            "equivocation",
            "reordered_after_release",
            "omitted_promise",
            "ignored_envelope",
            "invalid_forced",
            "silent_helper",
        ],
    },
    Group {
        name: "short-epoch",
        last_number: rotation::FIRST_EPOCH_LAST,
        cases: &["rotation", "silent_committee"],
    },
];

fn names() -> Vec<&'static str> {
    GROUPS.iter().flat_map(|group| group.cases).copied().collect()
}

async fn case(name: &str, field: &mut Field) -> Outcome {
    match name {
        "forged_hint" => hints::forged_hint(field).await,
        "false_malformed" => hints::false_malformed(field).await,
        "withheld_hints" => hints::withheld_hints(field).await,
        "malformed_challenge" => hints::malformed_challenge(field).await,
        "equivocation" => sequencer::equivocation(field).await,
        "reordered_after_release" => sequencer::reordered_after_release(field).await,
        "omitted_promise" => sequencer::omitted_promise(field).await,
        "ignored_envelope" => forced::ignored_envelope(field).await,
        "invalid_forced" => forced::invalid_forced(field).await,
        "silent_helper" => helpers::silent_helper(field).await,
        "rotation" => rotation::rotation(field).await,
        "silent_committee" => committee::silent_committee(field).await,
        other => bail!("no case is called {other}"),
    }
}

/// Runs the cases. The networks stand beside each other: most of a run is waiting for L1.
///
/// # Errors
/// When an attack did not fail, or somebody honest lost something; the file with the outcomes is written all the same.
pub async fn run(args: AdversaryArgs) -> Result<()> {
    let progress = Progress::default();
    let report = Mutex::default();
    // Together, so that no port is given to both.
    let [long, short] = Ports::free_for_two(MEMBERS)?;
    let outcome = tokio::select! {
        outcomes = async {
            let [first, second] = &GROUPS;
            tokio::join!(
                group(&args, first, long, progress, &report),
                group(&args, second, short, progress, &report),
            )
        } => outcomes.0.and(outcomes.1),
        // What was started is dropped, and so killed.
        stopped = tokio::signal::ctrl_c() => stopped.map_err(Into::into).and_then(|()| bail!("stopped by Ctrl-C")),
    };
    let report = report.into_inner();
    report.write(&args.out)?;
    outcome?;
    if report.problems().is_empty() {
        if !args.keep {
            for group in &GROUPS {
                let dir = args.dir.join(group.name);
                if dir.exists() {
                    fs::remove_dir_all(dir)?;
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

async fn group(
    args: &AdversaryArgs,
    group: &Group,
    ports: Ports,
    progress: Progress,
    report: &Mutex<Report>,
) -> Result<()> {
    let wanted = |name: &&&str| args.cases.is_empty() || args.cases.iter().any(|case| case == **name);
    let cases: Vec<&str> = group.cases.iter().filter(wanted).copied().collect();
    if cases.is_empty() {
        return Ok(());
    }
    progress.step(format!("a network for {}", cases.join(", ")));
    let mut field = Field::start(args.dir.join(group.name), ports, group.last_number, &progress).await?;
    let logs = field.devnet.dir().join("logs");
    for name in cases {
        progress.step(name);
        let started = Instant::now();
        let outcome = case(name, &mut field).await;
        report.lock().case(name, started.elapsed().as_secs_f64(), outcome, &logs);
    }
    progress.step(format!("{}: has anybody honest lost anything?", group.name));
    match field.losses().await {
        Ok(losses) => losses.into_iter().for_each(|loss| report.lock().problem(loss)),
        Err(error) => report.lock().problem(format!("the books of {}: {error:#}", group.name)),
    }
    field.devnet.stop().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_explained() {
        for name in names() {
            assert!(HELP.contains(&format!("  {name} ")), "{name}");
        }
    }
}
