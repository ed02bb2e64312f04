//! `blindfold-sim`: runs seeds, each in a process of its own, so that nothing of one is left in the next.

mod entropy;
mod runner;

use std::{num::NonZeroUsize, path::PathBuf, process::ExitCode, thread};

use anyhow::{Result, ensure};
use blindfold_sim::{plan::Plan, plants::Plant, run};
use clap::{Parser, ValueEnum};
use serde_json::{Value, json};
use tracing_subscriber::EnvFilter;

use crate::runner::{Report, apart, is_broken};

/// Every role in one process on one seed, with faults.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// How many seeds.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Starts no seed any more after so long.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// How many seeds run side by side.
    #[arg(long, default_value_t = cores())]
    jobs: usize,
    /// Goes on behind the last seed of this report, adds to it, and writes it after each seed; begins it where there is none.
    #[arg(long, value_name = "FILE", conflicts_with = "planted")]
    resume: Option<PathBuf>,
    /// Nothing goes wrong.
    #[arg(long)]
    calm: bool,
    /// Leaves out the faults of these ids.
    #[arg(long, value_delimiter = ',')]
    without: Vec<usize>,
    /// Leaves out the faults of all other ids.
    #[arg(long, value_delimiter = ',')]
    only: Option<Vec<usize>>,
    /// Puts in a bug.
    #[arg(long)]
    plant: Option<Plant>,
    /// Puts in one bug after the other, and tells how many seeds each needs to be found, of as many as `--seeds` says.
    #[arg(long)]
    planted: bool,
    /// Prints one JSON object: sums, and each seed that breaks a rule.
    #[arg(long)]
    json: bool,
    /// Prints the trace of each seed to standard error.
    #[arg(long)]
    trace: bool,
    /// Runs the first seed in this process and prints its outcome.
    #[arg(long, hide = true)]
    here: bool,
}

const EXAMPLES: &str = "Examples:
  blindfold-sim --seeds 200                          seeds 1 to 200; the exit status is 1 where a rule is broken
  blindfold-sim --first-seed 1085 --trace            one seed, with everything that happened
  blindfold-sim --first-seed 1085 --only 2           the same with its fault 2 alone
  blindfold-sim --seeds 10000 --resume night.json    goes on where night.json ends
  blindfold-sim --planted --seeds 100 --json         bugs put in on purpose: how many seeds find each";

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if arguments.here {
        return here(&arguments);
    }
    ensure!(arguments.jobs > 0, "--jobs is 0");
    if arguments.planted {
        return planted(&arguments);
    }
    let kept = match &arguments.resume {
        Some(path) => Report::read(path)?,
        None => None,
    };
    let mut report = kept.unwrap_or_else(|| Report { first_seed: arguments.first_seed, ..Report::default() });
    runner::run(&arguments, &mut report, |seed, outcome| {
        if !arguments.json {
            println!("{}", summary(seed, outcome));
        }
    })?;
    if arguments.json {
        println!("{:#}", serde_json::to_value(&report)?);
    } else {
        println!("{} of {} seeds broke a rule; {:?}", report.broken.len(), report.seeds, report.sums);
        let never: Vec<&str> =
            report.met.iter().filter(|(_, seeds)| **seeds == 0).map(|(pair, _)| pair.as_str()).collect();
        println!("{} of {} pairs were never met: {}", never.len(), report.met.len(), never.join(", "));
    }
    Ok(if report.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn here(arguments: &Arguments) -> Result<ExitCode> {
    entropy::seed(arguments.first_seed);
    if std::env::var_os("RUST_LOG").is_some() {
        // On a thread of its own: a `HashMap` made here changes the order in those of the simulation.
        let init = || {
            let filter = EnvFilter::from_default_env();
            tracing_subscriber::fmt()
                .with_env_filter(filter)
                .with_writer(std::io::stderr)
                .without_time()
                .init();
        };
        ensure!(thread::spawn(init).join().is_ok(), "RUST_LOG cannot be read");
    }
    let plan = Plan::new(arguments.first_seed, arguments.calm);
    let plan = match &arguments.only {
        Some(kept) => plan.only(kept),
        None => plan,
    };
    let plan = plan.without(&arguments.without).with(arguments.plant);
    let outcome = run::run(plan, arguments.trace)?;
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(ExitCode::SUCCESS)
}

/// Fails when a bug is not found.
fn planted(arguments: &Arguments) -> Result<ExitCode> {
    let mut table = Vec::new();
    let mut all = true;
    for plant in Plant::value_variants() {
        let mut found = None;
        for seed in arguments.first_seed..arguments.first_seed.saturating_add(arguments.seeds) {
            let outcome = apart(arguments, seed, &arguments.without, Some(*plant))?;
            if is_broken(&outcome) {
                found = Some((seed, outcome["violations"][0]["rule"].clone()));
                break;
            }
        }
        all &= found.is_some();
        let seeds = found.as_ref().map(|(seed, _)| seed - arguments.first_seed + 1);
        let rule = found.map(|(_, rule)| rule);
        if !arguments.json {
            println!("{}: seeds {}, by {}", json!(plant), json!(seeds), json!(rule));
        }
        table.push(json!({ "plant": plant, "seeds": seeds, "rule": rule }));
    }
    if arguments.json {
        println!(
            "{:#}",
            json!({ "firstSeed": arguments.first_seed, "atMost": arguments.seeds, "planted": table })
        );
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn summary(seed: u64, outcome: &Value) -> String {
    if !is_broken(outcome) {
        return format!("seed {seed}: ok");
    }
    let mut lines = vec![format!("seed {seed}: {}", outcome["violations"][0])];
    lines.push(format!("  faults: {}", outcome["plan"]["faults"]));
    for (role, last) in outcome["last"].as_object().into_iter().flatten() {
        lines.push(format!("  {role}:"));
        lines.extend(
            last.as_array().into_iter().flatten().map(|line| format!("    {}", line.as_str().unwrap_or(""))),
        );
    }
    lines.join("\n")
}
