//! `blindfold-sim`: runs seeds, each in a process of its own, so that nothing of one is left in the next.

mod entropy;

use std::{
    collections::BTreeMap,
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context, Result, ensure};
use blindfold_sim::{plan::Plan, plants::Plant, run};
use clap::{Parser, ValueEnum};
use serde_json::{Value, json};

/// Every role in one process on one seed, with faults.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// How many seeds.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Nothing goes wrong.
    #[arg(long)]
    calm: bool,
    /// Leaves out the faults of these ids.
    #[arg(long, value_delimiter = ',')]
    without: Vec<usize>,
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

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if arguments.here {
        return here(&arguments);
    }
    if arguments.planted {
        return planted(&arguments);
    }
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let mut broken = Vec::new();
    for seed in arguments.first_seed..arguments.first_seed.saturating_add(arguments.seeds) {
        let outcome = apart(&arguments, seed, &arguments.without, arguments.plant)?;
        add(&mut sums, &outcome);
        if is_broken(&outcome) {
            broken.push(shrunk(&arguments, seed, outcome)?);
        }
        if !arguments.json {
            println!("{}", told(seed, broken.last().filter(|outcome| outcome["seed"] == json!(seed))));
        }
    }
    if arguments.json {
        let report = json!({
            "firstSeed": arguments.first_seed,
            "seeds": arguments.seeds,
            "sums": sums,
            "broken": broken,
        });
        println!("{report:#}");
    } else {
        println!("{} of {} seeds broke a rule; {sums:?}", broken.len(), arguments.seeds);
    }
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn here(arguments: &Arguments) -> Result<ExitCode> {
    entropy::seed(arguments.first_seed);
    let plan =
        Plan::new(arguments.first_seed, arguments.calm).without(&arguments.without).with(arguments.plant);
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
            let outcome = apart(arguments, seed, &[], Some(*plant))?;
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

/// Runs a seed in a process of its own.
fn apart(arguments: &Arguments, seed: u64, without: &[usize], plant: Option<Plant>) -> Result<Value> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--here", "--first-seed", &seed.to_string()]);
    if arguments.calm {
        command.arg("--calm");
    }
    if let Some(name) = plant.and_then(|plant| plant.to_possible_value()) {
        command.args(["--plant", name.get_name()]);
    }
    if arguments.trace {
        command.arg("--trace");
    }
    if !without.is_empty() {
        let ids: Vec<String> = without.iter().map(ToString::to_string).collect();
        command.args(["--without", &ids.join(",")]);
    }
    let output = command.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "seed {seed} ended with {}", output.status);
    serde_json::from_slice(&output.stdout).with_context(|| format!("seed {seed}"))
}

fn is_broken(outcome: &Value) -> bool {
    outcome["violations"].as_array().is_some_and(|violations| !violations.is_empty())
}

/// Leaves out one fault after the other as long as the same rule is broken.
fn shrunk(arguments: &Arguments, seed: u64, mut outcome: Value) -> Result<Value> {
    let rule = outcome["violations"][0]["rule"].clone();
    let mut without = arguments.without.clone();
    let faults = outcome["plan"]["faults"].as_array().cloned().unwrap_or_default();
    for id in faults.iter().filter_map(|fault| fault["id"].as_u64()) {
        let fewer: Vec<usize> = without.iter().copied().chain(usize::try_from(id)).collect();
        let smaller = apart(arguments, seed, &fewer, arguments.plant)?;
        if is_broken(&smaller) && smaller["violations"][0]["rule"] == rule {
            (without, outcome) = (fewer, smaller);
        }
    }
    outcome["without"] = json!(without);
    Ok(outcome)
}

/// What there was, and how often each fault.
fn add(sums: &mut BTreeMap<String, u64>, outcome: &Value) {
    for (name, count) in outcome["counts"].as_object().into_iter().flatten() {
        *sums.entry(name.clone()).or_default() += count.as_u64().unwrap_or_default();
    }
    for fault in outcome["plan"]["faults"].as_array().into_iter().flatten() {
        *sums.entry(format!("fault_{}", fault["kind"].as_str().unwrap_or_default())).or_default() += 1;
    }
}

fn told(seed: u64, broken: Option<&Value>) -> String {
    let Some(outcome) = broken else { return format!("seed {seed}: ok") };
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
