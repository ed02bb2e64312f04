//! Runs seeds side by side, each in a process of its own, and sums what there was.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use blindfold_runtime::now;
use blindfold_sim::{
    coverage::{FAULTS, SITUATIONS},
    plants::Plant,
};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Arguments;

/// What came of seeds, one after the other. As a file it is what `--resume` goes on from.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Report {
    /// The first.
    pub first_seed: u64,
    /// How many.
    pub seeds: u64,
    /// How many of what there was.
    pub sums: BTreeMap<String, u64>,
    /// How many seeds met each pair of what went wrong and what was under way then, those that none met among them.
    #[serde(default)]
    pub met: BTreeMap<String, u64>,
    /// Each that broke a rule.
    pub broken: Vec<Value>,
}

impl Report {
    /// What is in this file, if there is one.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>> {
        match fs::read(path) {
            Ok(bytes) => {
                Ok(Some(serde_json::from_slice(&bytes).with_context(|| path.display().to_string())?))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    /// Written whole or not at all.
    fn write(&self, path: &Path) -> Result<()> {
        let partial = PathBuf::from(format!("{}.partial", path.display()));
        fs::write(&partial, serde_json::to_vec_pretty(self)?)
            .and_then(|()| fs::rename(&partial, path))
            .with_context(|| path.display().to_string())
    }

    fn add(&mut self, outcome: Value) {
        for (name, count) in outcome["counts"].as_object().into_iter().flatten() {
            *self.sums.entry(name.clone()).or_default() += count.as_u64().unwrap_or_default();
        }
        for fault in outcome["plan"]["faults"].as_array().into_iter().flatten() {
            *self.sums.entry(name_of(fault)).or_default() += 1;
        }
        for (fault, situation) in FAULTS.into_iter().flat_map(|fault| SITUATIONS.map(|there| (fault, there)))
        {
            self.met.entry(format!("{fault} while {situation}")).or_default();
        }
        for pair in outcome["met"].as_array().into_iter().flatten() {
            let [fault, situation] = [&pair[0], &pair[1]].map(|name| name.as_str().unwrap_or_default());
            *self.met.entry(format!("{fault} while {situation}")).or_default() += 1;
        }
        *self.sums.entry("simulated_ms".to_owned()).or_default() +=
            outcome["simulated_ms"].as_u64().unwrap_or_default();
        self.seeds += 1;
        if is_broken(&outcome) {
            self.broken.push(outcome);
        }
    }
}

/// A fault's name in the sums: for a lie, how.
fn name_of(fault: &Value) -> String {
    let how = &fault["how"];
    let lie = how.as_str().or_else(|| how.as_object()?.keys().next().map(String::as_str));
    let kind = fault["kind"].as_str().unwrap_or_default();
    lie.map_or_else(|| format!("fault_{kind}"), |lie| format!("fault_{kind}_{lie}"))
}

/// Runs as many seeds as there are to be, or as time is left for, and adds them to the report in their order.
pub(crate) fn run(
    arguments: &Arguments,
    report: &mut Report,
    mut tell: impl FnMut(u64, &Value),
) -> Result<()> {
    let first = report.first_seed.saturating_add(report.seeds);
    let end = first.saturating_add(arguments.seeds);
    let next = AtomicU64::new(first);
    let failed = AtomicBool::new(false);
    let deadline = arguments.seconds.map(|seconds| now() + Duration::from_secs(seconds));
    let (sender, outcomes) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            let (sender, next, failed) = (sender.clone(), &next, &failed);
            scope.spawn(move || {
                while !failed.load(Ordering::Relaxed) && deadline.is_none_or(|deadline| now() < deadline) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    let outcome = one(arguments, seed);
                    failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    if sender.send((seed, outcome)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        for (seed, outcome) in outcomes {
            early.insert(seed, outcome?);
            while let Some(outcome) = early.remove(&report.first_seed.saturating_add(report.seeds)) {
                tell(report.first_seed.saturating_add(report.seeds), &outcome);
                report.add(outcome);
                if let Some(path) = &arguments.resume {
                    report.write(path)?;
                }
            }
        }
        Ok(())
    })
}

/// A seed, and where it breaks a rule the fewest faults with which it does.
fn one(arguments: &Arguments, seed: u64) -> Result<Value> {
    let outcome = apart(arguments, seed, &arguments.without, arguments.plant)?;
    if is_broken(&outcome) { shrunk(arguments, seed, outcome) } else { Ok(outcome) }
}

/// Runs a seed in a process of its own.
pub(crate) fn apart(
    arguments: &Arguments,
    seed: u64,
    without: &[usize],
    plant: Option<Plant>,
) -> Result<Value> {
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
    let list = |ids: &[usize]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    if !without.is_empty() {
        command.args(["--without", &list(without)]);
    }
    if let Some(kept) = &arguments.only {
        command.args(["--only", &list(kept)]);
    }
    let output = command.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "seed {seed} ended with {}", output.status);
    serde_json::from_slice(&output.stdout).with_context(|| format!("seed {seed}"))
}

pub(crate) fn is_broken(outcome: &Value) -> bool {
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
