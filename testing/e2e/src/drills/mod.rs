//! The drills: each row of the failure table in `docs/operate.md` is made to happen in a running network, and its alarm has to
//! fire. What an attack shows is left to the adversary run, which looks at the same alarms.
//!
//! - `rows`: the table, and what reproduces each row.
//! - `network`: the network, and what the drills do to it.
//! - `roles`: processes that are gone.
//! - `lies`: members, sources and clients that lie.
//! - `l1`: what L1 says, or does not.
//! - `machine`: clocks, disks, too much to do.

mod l1;
mod lies;
mod machine;
mod network;
mod roles;
pub mod rows;

use std::{fs, path::PathBuf, time::Instant};

use anyhow::{Context, Result, bail};
use blindfold::devnet::Progress;
use clap::Parser;
use serde_json::{Value, json};

use network::Network;
use rows::{By, ROWS, Row};

/// Options of the drills.
#[derive(Parser, Debug)]
#[command(
    name = "devnet --drills",
    about = "Make each row of the failure table of docs/operate.md happen, and see its alarm fire",
    after_help = "Needs the packages prometheus, prometheus-blackbox-exporter, postgresql and redis-server.\n\nExamples:\n  \
                  scripts/devnet --drills\n  scripts/devnet --drills --drill two_members --keep"
)]
pub struct DrillArgs {
    /// Folder for everything the run writes; removed when all is right, unless --keep
    #[arg(long, default_value = "target/devnet/drills")]
    dir: PathBuf,
    /// Where the report goes
    #[arg(long, default_value = "target/devnet/drills.json")]
    report: PathBuf,
    /// Only this drill. Repeatable
    #[arg(long = "drill", value_name = "NAME", value_parser = names())]
    drills: Vec<String>,
    /// Leave the folder where it is
    #[arg(long)]
    keep: bool,
}

/// After these no transfer of the senders executes any more.
const LATE: &str = "declared_void";
/// These fire until the role starts anew.
const LASTING: [&str; 1] = ["BlocksTakenBack"];
/// After each of these the network is of no use.
const LAST: [&str; 2] = ["no_epoch", "unknown_rules"];

fn drills() -> impl Iterator<Item = (&'static str, &'static Row)> {
    let all = ROWS.iter().filter_map(|row| match row.by {
        By::Drill(name) => Some((name, row)),
        By::Case(_) | By::Nothing(_) => None,
    });
    let mut all: Vec<_> = all.collect();
    // Those of one place stay in the table's order.
    all.sort_by_key(|(name, _)| (LAST.contains(name), *name == LATE));
    all.into_iter()
}

fn names() -> Vec<&'static str> {
    drills().map(|(name, _)| name).collect()
}

/// Runs them.
///
/// # Errors
/// When an alarm did not fire, or a part did not come back; the report is written all the same.
pub async fn run(args: DrillArgs) -> Result<()> {
    let progress = Progress::default();
    let mut network = Network::start(&args.dir, progress).await?;
    let wanted = |name: &str| args.drills.is_empty() || args.drills.iter().any(|drill| drill == name);
    let (mut report, mut problems): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    let mut is_spent = false;
    for (name, row) in drills().filter(|(name, _)| wanted(name)) {
        if is_spent {
            network.stop().await?;
            network = Network::start(&args.dir, progress).await?;
        }
        is_spent = LAST.contains(&name);
        if name == LATE || is_spent {
            // What was mended is quiet again.
            let before: Vec<&str> =
                ROWS.iter().flat_map(|row| row.alarms).copied().filter(|it| !LASTING.contains(it)).collect();
            if let Err(error) = network.quiet(&before).await {
                problems.push(format!("before {name}: {error:#}"));
            }
        }
        progress.step(format!("{name}: {}", row.alarms.join(", ")));
        let begun = Instant::now();
        let mut outcome = drill(name, &mut network, row.alarms).await;
        let back = if is_spent { Ok(()) } else { network.everybody_is_back().await };
        let is_mended = back.is_ok();
        outcome = outcome.and(back.context("somebody is not back"));
        let seconds = begun.elapsed().as_secs_f64();
        match &outcome {
            Ok(()) => progress.step(format!("  all fired, and it is mended; {seconds:.1} s")),
            Err(error) => progress.step(format!("  NOT AS IT MUST BE: {error:#}")),
        }
        report.push(json!({
            "drill": name,
            "row": row.what,
            "alarms": row.alarms,
            "seconds": (seconds * 10.0).round() / 10.0,
            "outcome": outcome.as_ref().map_or_else(|error| format!("{error:#}"), |()| "fired".to_owned()),
        }));
        if let Err(error) = outcome {
            problems.push(format!("{name}: {error:#}"));
        }
        if !is_mended {
            break;
        }
    }
    if let Some(parent) = args.report.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(&args.report, serde_json::to_vec_pretty(&report)?)?;
    let logs = network.stop().await?;
    if !problems.is_empty() {
        bail!("the drills failed:\n  - {}\nlogs: {}", problems.join("\n  - "), logs.display());
    }
    if !args.keep {
        fs::remove_dir_all(&args.dir)?;
    }
    progress.step(format!(
        "{} drills, every alarm fired; the report is {}",
        report.len(),
        args.report.display()
    ));
    Ok(())
}

async fn drill(name: &str, network: &mut Network, alarms: &'static [&'static str]) -> Result<()> {
    network.quiet(alarms).await?;
    match name {
        "sequencer" => roles::sequencer(network, alarms).await,
        "every_sequencer" => roles::every_sequencer(network, alarms).await,
        "gateway" => roles::down(network, "gateway-1", alarms).await,
        "relay" => roles::relay(network, alarms).await,
        "signer" => roles::down(network, "signer", alarms).await,
        "one_member" => roles::down(network, "member-4", alarms).await,
        "two_members" => roles::two_members(network, alarms).await,
        "seldom" => roles::seldom(network, alarms).await,
        "hint_publisher" => roles::hint_publisher(network, alarms).await,
        "execution_of_sequencer" => roles::execution_of_sequencer(network, alarms).await,
        "full_node" => roles::down(network, "full-node", alarms).await,
        "execution_of_node" => roles::execution_of_node(network, alarms).await,
        "proxy" => roles::down(network, "proxy", alarms).await,
        "fee_account_empty" => roles::fee_account_empty(network, alarms).await,
        "lying_source" => lies::lying_source(network, alarms).await,
        "lying_member" => lies::lying_member(network, alarms).await,
        "wrong_hints" => lies::wrong_hints(network, alarms).await,
        "block_differs" => lies::block_differs(network, alarms).await,
        "skip_rule" => lies::skip_rule(network, alarms).await,
        "bond_short" => l1::without_ether(network, alarms).await,
        "hints_unposted" => l1::ether_is_gone(network, alarms).await,
        "conflicting_certificates" => lies::conflicting_certificates(network, alarms).await,
        "wrong_hints_on_l1" => l1::wrong_hints(network, alarms).await,
        "declared_void" => l1::declared_void(network, alarms).await,
        "no_epoch" => l1::no_epoch(network, alarms).await,
        "wrong_output" => l1::wrong_output(network, alarms).await,
        "l1_away" => l1::away(network, alarms).await,
        "l1_away_at_start" => l1::away_at_start(network, alarms).await,
        "final_block_taken_back" => l1::final_block_taken_back(network, alarms).await,
        "posting_fails" => l1::posting_fails(network, alarms).await,
        "unknown_rules" => l1::unknown_rules(network, alarms).await,
        "member_clock" => machine::member_clock(network, alarms).await,
        "disk_full" => machine::disk_full(network, alarms).await,
        "disk_error" => machine::disk_error(network, alarms).await,
        "overload" => machine::overload(network, alarms).await,
        other => bail!("no drill is called {other}"),
    }
}
