//! What was measured, as JSON and as a table.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    time::Duration,
};

use alloy_primitives::B256;
use anyhow::{Context, Result};
use blindfold_runtime::Instant;
use serde::Serialize;

use super::{
    super::{
        machine::Machine,
        observe::{Latency, Observed},
    },
    ByName,
    plain::Plain,
    polled::Polled,
    posted::PostedBytes,
};

/// Of ticks, how many may find nobody to send at a rate that is held.
const SKIPPED: f64 = 0.005;
/// How much slower the last quarter may be executed than the second one where no queue grows, and how much that may be in any
/// case, in milliseconds.
const GROWTH: f64 = 1.5;
const GROWTH_MS: f64 = 250.0;

/// All of it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) machine: Machine,
    pub(super) seed: u64,
    pub(super) accounts: usize,
    pub(super) members: usize,
    /// If not as by default.
    pub(super) slot_ms: Option<u64>,
    pub(super) batch: u32,
    pub(super) input_bytes: u32,
    pub(super) held_per_second: f64,
    /// False: the rate was given.
    pub(super) looked_for: bool,
    pub(super) certified_ms: Latency,
    pub(super) executed_ms: Latency,
    /// Processor time of each process for an envelope, with what it uses by itself; of members the mean. Data and hints of the
    /// load before are posted within it, and those of its own end are not.
    pub(super) cpu_us: ByName,
    pub(super) l1_bytes: L1Bytes,
    /// Durable writes each second; of members the mean.
    pub(super) fsyncs: ByName,
    pub(super) queue_peaks: ByName,
    pub(super) receipts: Polled,
    /// The same load on the same execution client without Blindfold.
    pub(super) plain_chain: Option<Plain>,
    pub(super) overload: Option<Overload>,
    pub(super) latency: Phase,
    pub(super) loads: Loads,
}

/// The loads by which the rate was found, and those that were asked for.
#[derive(Debug, Default, Serialize)]
pub(super) struct Loads {
    pub(super) rates: Vec<Phase>,
    pub(super) probes: Vec<Phase>,
    pub(super) holds: Vec<Phase>,
}

/// Bytes on L1 for each transfer, of the whole run.
#[derive(Debug, Serialize)]
pub(super) struct L1Bytes {
    data: f64,
    hints: f64,
    headers: f64,
    total: f64,
    /// The same transfers in a span batch of the OP stack.
    plain: f64,
}

impl L1Bytes {
    pub(super) fn of(bytes: PostedBytes, transfers: usize, plain: f64) -> Self {
        let each = |bytes: usize| bytes as f64 / transfers.max(1) as f64;
        let [data, hints, headers] = [bytes.data, bytes.hints, bytes.headers].map(each);
        Self { data, hints, headers, total: data + hints + headers, plain }
    }
}

/// Three times what is held.
#[derive(Debug, Serialize)]
pub(super) struct Overload {
    #[serde(flatten)]
    flood: Phase,
    /// Accounts that sent, each on a connection of its own.
    connections: usize,
    /// Admitted, and not executed.
    lost: usize,
    /// p99 until certified, over that at 80 % of what is held.
    certified_p99_times: f64,
    memory_kib: Memory,
}

/// Resident memory of each process before the first envelope is sent, in the middle, and when the last one is answered.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Memory {
    pub(super) start: BTreeMap<String, u64>,
    pub(super) middle: BTreeMap<String, u64>,
    pub(super) end: BTreeMap<String, u64>,
}

impl Overload {
    pub(super) fn of(flood: Phase, connections: usize, latency: &Phase) -> Self {
        let certified_p99_times = flood.certified_ms.p99 / latency.certified_ms.p99;
        let lost = flood.admitted.saturating_sub(flood.executed);
        let memory_kib = flood.memory_kib.clone();
        Self { connections, lost, certified_p99_times, memory_kib, flood }
    }
}

/// One load, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Phase {
    pub(super) rate: f64,
    pub(super) seconds: u64,
    /// Envelopes that were sent, and how often, with every try of one that was refused.
    pub(super) sent: usize,
    offered: usize,
    offered_per_second: f64,
    pub(super) admitted: usize,
    pub(super) certified: usize,
    pub(super) executed: usize,
    /// Transactions that are in blocks.
    included: u64,
    /// By reason.
    refused: BTreeMap<String, usize>,
    /// Of these the ones that said to come back, and not when.
    refused_without_time: BTreeMap<String, usize>,
    /// Ticks that found no account that could send.
    skipped: usize,
    admitted_per_second: f64,
    drained_ms: f64,
    /// Of the last quarter and of the second one, in the middle.
    executed_late_ms: f64,
    executed_early_ms: f64,
    /// From the try that was admitted.
    admitted_ms: Latency,
    pub(super) certified_ms: Latency,
    pub(super) executed_ms: Latency,
    /// From the first try.
    certified_since_first_try_ms: Latency,
    pub(super) cpu_us: ByName,
    pub(super) fsyncs: ByName,
    pub(super) queue_peaks: ByName,
    #[serde(skip)]
    memory_kib: Memory,
    /// Before and after, by process.
    pub(super) resident_kib: [BTreeMap<String, u64>; 2],
}

/// What a load is made from.
pub(super) struct Seen<'a> {
    pub(super) rate: f64,
    pub(super) seconds: u64,
    pub(super) observed: &'a Observed,
    pub(super) skipped: usize,
    pub(super) included: u64,
    pub(super) sent_for: Duration,
    pub(super) drained_after: Duration,
    pub(super) cpu_ms: ByName,
    pub(super) commits: ByName,
    pub(super) queue_peaks: ByName,
    pub(super) memory_kib: Memory,
    pub(super) resident_kib: [BTreeMap<String, u64>; 2],
}

impl Phase {
    pub(super) fn new(seen: Seen<'_>) -> Self {
        let observed = seen.observed;
        // By the time at which they were sent.
        let admitted_of = |from: &HashMap<B256, Instant>| {
            let admitted = observed.admitted.keys();
            let mut sent: Vec<_> = admitted.filter_map(|id| Some((*id, *from.get(id)?))).collect();
            sent.sort_by_key(|(_, at)| *at);
            sent
        };
        let (first, last) = (admitted_of(&observed.sent), admitted_of(&observed.tried));
        let since = |sent: &[(B256, Instant)], later: &HashMap<B256, Instant>| -> Vec<f64> {
            let taken = sent.iter().filter_map(|(id, sent)| Some(later.get(id)?.duration_since(*sent)));
            taken.map(|taken| taken.as_secs_f64() * 1e3).collect()
        };
        let (admitted, certified, executed) = (
            since(&last, &observed.admitted),
            since(&last, &observed.certified),
            since(&last, &observed.executed),
        );
        let quarter = |number: usize| {
            let length = executed.len() / 4;
            let from = length * number;
            Latency::of(executed.get(from..from + length).unwrap_or_default().to_vec()).p50
        };
        let envelopes = executed.len().max(1) as f64;
        let whole = (seen.sent_for + seen.drained_after).as_secs_f64();
        Self {
            rate: seen.rate,
            seconds: seen.seconds,
            sent: observed.sent.len(),
            admitted: admitted.len(),
            certified: certified.len(),
            executed: executed.len(),
            included: seen.included,
            offered: observed.offered,
            offered_per_second: observed.offered as f64 / seen.sent_for.as_secs_f64(),
            refused: observed.refused.clone(),
            refused_without_time: observed.refused_without_time.clone(),
            certified_since_first_try_ms: Latency::of(since(&first, &observed.certified)),
            skipped: seen.skipped,
            admitted_per_second: admitted.len() as f64 / seen.sent_for.as_secs_f64(),
            drained_ms: seen.drained_after.as_secs_f64() * 1e3,
            executed_late_ms: quarter(3),
            executed_early_ms: quarter(1),
            admitted_ms: Latency::of(admitted),
            certified_ms: Latency::of(certified),
            executed_ms: Latency::of(executed),
            cpu_us: seen.cpu_ms.into_iter().map(|(role, ms)| (role, ms * 1e3 / envelopes)).collect(),
            fsyncs: seen.commits.into_iter().map(|(role, commits)| (role, commits / whole)).collect(),
            queue_peaks: seen.queue_peaks,
            memory_kib: seen.memory_kib,
            resident_kib: seen.resident_kib,
        }
    }

    /// What each process used for an envelope, and how much memory it has, in a line.
    pub(super) fn usage(&self) -> String {
        let of = |(name, us): (&String, &f64)| format!("{name} {us:.0}");
        let used: Vec<_> = self.cpu_us.iter().map(of).collect();
        let of = |(name, kib): (&String, &u64)| format!("{name} {}", kib / 1024);
        let held: Vec<_> = self.resident_kib[1].iter().map(of).collect();
        format!("µs an envelope: {}; MiB: {}", used.join(", "), held.join(", "))
    }

    /// Everything came through, and no slower at the end.
    pub(super) fn held(&self) -> bool {
        let all = self.refused.is_empty()
            && self.skipped as f64 <= SKIPPED * self.rate * self.seconds as f64
            && self.certified == self.sent
            && self.executed == self.sent
            && self.included == self.sent as u64;
        all && self.executed_late_ms
            <= (self.executed_early_ms * GROWTH).max(self.executed_early_ms + GROWTH_MS)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: offered {} ({:.0}/s), admitted {} ({:.0}/s), executed {}, certified p50 {:.0} p99 {:.0} ms, executed p50 {:.0} p99 {:.0} ms",
            if self.held() { "held" } else { "not held" },
            self.offered,
            self.offered_per_second,
            self.admitted,
            self.admitted_per_second,
            self.executed,
            self.certified_ms.p50,
            self.certified_ms.p99,
            self.executed_ms.p50,
            self.executed_ms.p99,
        )?;
        if self.skipped > 0 {
            write!(f, "; {} not sent, for every account waited", self.skipped)?;
        }
        for (reason, count) in &self.refused {
            write!(f, "; {count} × {reason}")?;
        }
        Ok(())
    }
}

pub(super) fn print(report: &Report, json: bool) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string(report).context("figures serialize")?);
        return Ok(());
    }
    println!("{}", report.machine.line());
    let found = if report.looked_for { "held" } else { "given" };
    println!("{found}: {:.0} envelopes per second", report.held_per_second);
    println!("at {:.0} per second:", report.latency.rate);
    for (name, latency) in [("certified", &report.certified_ms), ("executed", &report.executed_ms)] {
        println!(
            "  {name:<10} p50 {:>6.0} ms  p90 {:>6.0} ms  p99 {:>6.0} ms",
            latency.p50, latency.p90, latency.p99
        );
    }
    println!("  {:<22} {:>14} {:>14}", "process", "µs an envelope", "writes/s");
    for (role, us) in &report.cpu_us {
        let fsyncs = report.fsyncs.get(role).map_or_else(|| "-".to_owned(), |each| format!("{each:.1}"));
        println!("  {role:<22} {us:>14.0} {fsyncs:>14}");
    }
    let bytes = &report.l1_bytes;
    println!(
        "L1, bytes a transfer: data {:.1}, hints {:.1}, headers {:.1}, together {:.1}; plain {:.1}",
        bytes.data, bytes.hints, bytes.headers, bytes.total, bytes.plain
    );
    let Polled { ids_per_call, per_second, .. } = report.receipts;
    println!("receipts, {ids_per_call} in a call: {per_second:.0} per second");
    if let Some(plain) = &report.plain_chain {
        println!("{plain}");
    }
    if let Some(overload) = &report.overload {
        println!("at three times of it: {}", overload.flood);
        let Overload { connections, lost, certified_p99_times, memory_kib, .. } = overload;
        println!(
            "  {connections} connections; lost {lost}, p99 until certified {certified_p99_times:.2} × that at 80 %"
        );
        println!("  memory at the start, in the middle and at the end, MiB:");
        for (role, start) in &memory_kib.start {
            let [middle, end] = [&memory_kib.middle, &memory_kib.end]
                .map(|at| at.get(role).copied().unwrap_or_default() / 1024);
            println!("  {role:<22} {:>14} {middle:>14} {end:>14}", start / 1024);
        }
    }
    Ok(())
}
