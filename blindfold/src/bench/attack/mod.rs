//! What floods cost their maker, and what they cost the roles: each beside honest transfers of the same number, on a
//! development network of its own; and confidential withdrawals that prove nothing, beside good ones, on another.
//!
//! Every role is a process, so that its processor time and memory are the operating system's word. What the network
//! uses while nobody sends anything is taken off.

mod confidential;
mod floods;
mod l1;
mod messages;
mod sockets;
mod testbed;

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use self::{
    floods::Flood,
    testbed::{Tally, Testbed},
};
use super::machine::Machine;
use crate::devnet::{DevnetOptions, MEMBERS, Progress, ports::Ports};

/// A flood that costs the roles so much more than honest transfers of the same price, or of the same bytes, is too cheap.
const TOO_CHEAP: f64 = 2.0;

/// Processor time of a role below which a ratio says nothing, in milliseconds: ten times what the operating system counts by.
const LEAST_CPU_MS: f64 = 100.0;

/// Accounts that pay.
const ACCOUNTS: usize = 20;
/// The same, with confidential balances.
const CONFIDENTIAL_ACCOUNTS: usize = 64;

/// Options of `blindfold bench attack`.
#[derive(Args, Debug)]
pub struct AttackArgs {
    /// Envelopes of each flood; ten times as many messages where there are no envelopes
    #[arg(long, default_value_t = 400)]
    envelopes: usize,
    /// Envelopes per second
    #[arg(long, default_value_t = 50)]
    rate: u64,
    /// Only this flood, beside the honest transfers. Repeatable
    #[arg(long = "flood", value_name = "NAME")]
    floods: Vec<Flood>,
    /// Folder for the networks, removed in the end
    #[arg(long, default_value = "target/devnet/bench-attack")]
    dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Fail when a flood is too cheap for its maker
    #[arg(long)]
    check: bool,
}

/// What the roles used while a flood came.
#[derive(Clone, Debug, Default, Serialize)]
struct Usage {
    /// Processor time, in milliseconds, without what the network uses by itself.
    cpu_ms: BTreeMap<String, f64>,
    /// Memory more than before, in KiB.
    grown_kib: BTreeMap<String, u64>,
}

/// What a flood was and did.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    flood: Flood,
    sent: usize,
    admitted: usize,
    refused: BTreeMap<String, usize>,
    /// Bytes of the requests.
    bytes: usize,
    /// What left the payers' fee accounts and their accounts on L1, in wei. A malformed envelope's surcharge is counted in,
    /// for it never returns.
    paid_wei: u128,
    usage: Usage,
    /// Processor time of all roles for one envelope, in milliseconds.
    cpu_ms_per_envelope: f64,
    /// That, over an honest one's.
    times_honest: f64,
    /// The price of one, over an honest one's.
    price_times_honest: f64,
    /// Bytes of one, over an honest one's.
    bytes_times_honest: f64,
    /// `times_honest` over the larger of the two: what is refused is paid for in bytes alone.
    leverage: f64,
    /// The same of each role by itself.
    role_leverage: BTreeMap<String, f64>,
    verdict: Verdict,
}

/// Whether a flood costs the roles too little of its maker's money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// No leverage, of all roles together or of one, is above [`TOO_CHEAP`].
    Within,
    TooCheap,
}

/// Everything that a run measured.
#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    envelopes: usize,
    rate: u64,
    /// Processor time that the network uses by itself, in milliseconds a second.
    idle_ms_per_second: BTreeMap<String, f64>,
    floods: Vec<Measured>,
}

/// Measures and prints.
///
/// # Errors
/// When the network does not start, or an honest transfer does not become final.
pub async fn run(args: AttackArgs) -> Result<()> {
    if args.rate == 0 || args.envelopes == 0 {
        bail!("--rate and --envelopes must not be zero");
    }
    let progress = Progress::default();
    let wanted = |flood: &Flood| args.floods.is_empty() || args.floods.contains(flood);
    let plain: Vec<Flood> = Flood::PLAIN.into_iter().filter(wanted).collect();
    let mut report = Report {
        machine: Machine::this(),
        envelopes: args.envelopes,
        rate: args.rate,
        idle_ms_per_second: BTreeMap::new(),
        floods: Vec::new(),
    };
    if !plain.is_empty() {
        let mut testbed = Testbed::start(args.network(ACCOUNTS)?, &progress).await?;
        testbed.idle(&progress).await?;
        progress.step("transfers that are not counted: what is done once is done by then");
        testbed.flood(Flood::Honest, args.envelopes, args.rate).await?;
        let mut measured: Vec<Measured> = Vec::new();
        for flood in std::iter::once(Flood::Honest).chain(plain) {
            progress.step(format!("{} × {}", args.envelopes * flood.messages(), flood.name()));
            let one = testbed.flood(flood, args.envelopes, args.rate).await?;
            let honest = measured.first().unwrap_or(&one).clone();
            measured.push(one.beside(&honest));
        }
        report.take(&testbed, measured);
        testbed.devnet.stop().await?;
    }
    if wanted(&Flood::BadProofs) {
        let options = DevnetOptions { confidential: true, ..args.network(CONFIDENTIAL_ACCOUNTS)? };
        let mut testbed = Testbed::start(options, &progress).await?;
        let (honest, flood) = confidential::measure(&mut testbed, args.envelopes, &progress).await?;
        let flood = flood.beside(&honest);
        report.take(&testbed, vec![honest, flood]);
        testbed.devnet.stop().await?;
    }
    print(&report, args.json)?;
    let cheap: Vec<String> = report.floods.iter().filter_map(Measured::too_cheap).collect();
    if args.check && !cheap.is_empty() {
        bail!("too cheap, at a leverage above {TOO_CHEAP}: {}", cheap.join("; "));
    }
    Ok(())
}

impl AttackArgs {
    fn network(&self, accounts: usize) -> Result<DevnetOptions> {
        Ok(DevnetOptions {
            ports: Ports::free(MEMBERS)?,
            accounts,
            paying: accounts,
            ..DevnetOptions::new(self.dir.clone(), std::env::current_exe()?)
        })
    }
}

impl Report {
    fn take(&mut self, testbed: &Testbed, measured: Vec<Measured>) {
        for (role, spent) in &testbed.idle_ms_per_second {
            self.idle_ms_per_second.entry(role.clone()).or_insert(*spent);
        }
        self.floods.extend(measured);
    }
}

/// What is not a number is not within it either.
fn within(leverage: f64) -> bool {
    leverage <= TOO_CHEAP
}

impl Measured {
    /// Of a flood that is held against nothing yet.
    fn new(tally: Tally, paid_wei: u128, usage: Usage) -> Self {
        let Tally { flood, sent, admitted, refused, bytes } = tally;
        let cpu_ms_per_envelope = usage.cpu_ms.values().sum::<f64>() / sent.max(1) as f64;
        Self {
            flood,
            sent,
            admitted,
            refused,
            bytes,
            paid_wei,
            usage,
            cpu_ms_per_envelope,
            times_honest: 1.0,
            price_times_honest: 1.0,
            bytes_times_honest: 1.0,
            leverage: 1.0,
            role_leverage: BTreeMap::new(),
            verdict: Verdict::Within,
        }
    }

    fn beside(mut self, honest: &Self) -> Self {
        let each = |all: f64, of: &Self| all / of.sent as f64;
        self.times_honest = self.cpu_ms_per_envelope / honest.cpu_ms_per_envelope;
        self.price_times_honest = each(self.paid_wei as f64, &self) / each(honest.paid_wei as f64, honest);
        self.bytes_times_honest = each(self.bytes as f64, &self) / each(honest.bytes as f64, honest);
        let paid = self.price_times_honest.max(self.bytes_times_honest);
        self.leverage = self.times_honest / paid;
        for (role, cpu_ms) in &self.usage.cpu_ms {
            let of_honest = honest.usage.cpu_ms.get(role).copied().unwrap_or_default();
            let each = |cpu_ms: f64, of: &Self| cpu_ms.max(LEAST_CPU_MS) / of.sent as f64;
            let leverage = each(*cpu_ms, &self) / each(of_honest, honest) / paid;
            self.role_leverage.insert(role.clone(), leverage);
        }
        let mut all = std::iter::once(self.leverage).chain(self.role_leverage.values().copied());
        self.verdict = if all.all(within) { Verdict::Within } else { Verdict::TooCheap };
        self
    }

    /// Its name, and where its leverage is too high.
    fn too_cheap(&self) -> Option<String> {
        if self.verdict == Verdict::Within {
            return None;
        }
        let roles = self.role_leverage.iter().map(|(role, leverage)| (role.as_str(), *leverage));
        let places: Vec<String> = std::iter::once(("all", self.leverage))
            .chain(roles)
            .filter(|(_, leverage)| !within(*leverage))
            .map(|(role, leverage)| format!("{role} {leverage:.2}"))
            .collect();
        Some(format!("{} ({})", self.flood.name(), places.join(", ")))
    }
}

fn print(report: &Report, json: bool) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string(report).context("figures serialize")?);
        return Ok(());
    }
    println!(
        "{:<16} {:>9} {:>8} {:>11} {:>9} {:>9} {:>9} {:>9} {:>10}",
        "flood", "admitted", "refused", "ms each", "× honest", "× price", "leverage", "grown MiB", "most in"
    );
    for one in &report.floods {
        let grown: u64 = one.usage.grown_kib.values().sum();
        let most = one.usage.cpu_ms.iter().max_by(|a, b| a.1.total_cmp(b.1)).map_or("", |(role, _)| role);
        let mark = one.too_cheap().map_or_else(String::new, |cheap| format!("  too cheap: {cheap}"));
        println!(
            "{:<16} {:>9} {:>8} {:>11.2} {:>9.2} {:>9.2} {:>9.2} {:>9} {:>10}{mark}",
            one.flood.name(),
            one.admitted,
            one.refused.values().sum::<usize>(),
            one.cpu_ms_per_envelope,
            one.times_honest,
            one.price_times_honest,
            one.leverage,
            grown / 1024,
            most
        );
    }
    println!(
        "ms each: processor time of sequencer, members, helper, full node and coprocessor for one envelope, without what \
         they use idle.\nleverage: × honest over × price, or over × bytes where they are more: what is refused is paid for in bytes alone."
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(flood: Flood, paid_wei: u128, roles: &[(&str, f64)]) -> Measured {
        let cpu_ms: BTreeMap<String, f64> =
            roles.iter().map(|(role, ms)| ((*role).to_owned(), *ms)).collect();
        let tally = Tally { flood, sent: 100, admitted: 100, refused: BTreeMap::new(), bytes: 50_000 };
        Measured::new(tally, paid_wei, Usage { cpu_ms, grown_kib: BTreeMap::new() })
    }

    /// What all roles use together hid what one of them did.
    #[test]
    fn a_flood_that_is_too_cheap_in_a_single_role_is_seen() {
        let honest =
            measured(Flood::Honest, 100, &[("sequencer", 400.0), ("full-node", 800.0), ("idle", 0.0)]);
        let judged = |flood| measured(flood, 0, &[]).beside(&honest).verdict;
        assert_eq!(judged(Flood::Undecodable), Verdict::Within);
        assert_eq!(honest.clone().beside(&honest).verdict, Verdict::Within);

        let one = measured(Flood::Junk, 100, &[("sequencer", 900.0), ("full-node", 10.0), ("idle", 90.0)]);
        let one = one.beside(&honest);
        assert!(one.leverage < 1.0);
        assert_eq!(one.role_leverage["idle"], 1.0, "a tick more or less is noise");
        assert_eq!(one.too_cheap().as_deref(), Some("junk (sequencer 2.25)"));
        let json = serde_json::to_value(&one).expect("figures serialize");
        assert_eq!(
            (&json["verdict"], &json["role_leverage"]["sequencer"]),
            (&"too_cheap".into(), &2.25.into())
        );

        // Three times the price for it.
        let paid = measured(Flood::Malformed, 300, &[("sequencer", 900.0), ("full-node", 2_000.0)]);
        assert_eq!(paid.beside(&honest).too_cheap(), None);
        let all =
            measured(Flood::Junk, 100, &[("sequencer", 1_200.0), ("full-node", 2_000.0)]).beside(&honest);
        assert_eq!(all.too_cheap().as_deref(), Some("junk (all 2.67, full-node 2.50, sequencer 3.00)"));
    }
}
