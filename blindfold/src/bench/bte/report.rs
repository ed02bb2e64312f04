//! Figures for people and for scripts.

use anyhow::Result;
use serde::Serialize;

use super::fixture::{MESSAGE_BYTES, threshold};
use super::operation::{Operation, Spread};
use super::{BteArgs, Contender, Taken};
use crate::bench::machine::{Machine, PEER_ASSEMBLY};

/// Why a ratio may mean nothing.
pub(super) const NO_ASSEMBLY: &str = "the reference runs WITHOUT its field assembly, ratios to it are void: build with \
    RUSTFLAGS='-C target-cpu=native' on a processor with ADX and BMI2";

/// Everything that one run found out. Numbers are wall-clock times unless they say otherwise.
#[derive(Serialize)]
pub(super) struct Report {
    machine: Machine,
    settings: Settings,
    /// Is the peer's field assembly on? Only with a peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_assembly: Option<bool>,
    figures: Vec<Figure>,
    memory: Vec<Memory>,
}

#[derive(Serialize)]
struct Settings {
    rounds: usize,
    members: u16,
    threshold: u16,
    message_bytes: usize,
    lines_max_mib: usize,
}

/// One operation of one contender on one batch.
#[derive(Serialize)]
struct Figure {
    batch: u32,
    backend: String,
    threads: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    peer: bool,
    operation: Operation,
    /// For the whole batch.
    wall_ms: Spread,
    /// Time of all threads on their cores.
    cpu_ms: Spread,
    /// The median for each ciphertext.
    ciphertext_us: f64,
    /// How many times as fast as the peer on one thread, in medians.
    #[serde(skip_serializing_if = "Option::is_none")]
    times_peer: Option<f64>,
    /// The same in time on the cores, for one thread: what the machine did meanwhile touches it less.
    #[serde(skip_serializing_if = "Option::is_none")]
    times_peer_cpu: Option<f64>,
    /// How many times as fast as the same backend on the first number of threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    speedup: Option<f64>,
    /// On a device: its part of the last round, by its own clock.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    phases: Vec<Phase>,
}

/// A part of an operation that a device did.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) ms: f64,
}

/// Resident memory of the process while one batch size was measured, tables of all contenders included.
#[derive(Serialize)]
pub(super) struct Memory {
    pub(super) batch: u32,
    /// Peak until keys and ciphertexts were there.
    pub(super) dealt_mib: Option<f64>,
    pub(super) peak_mib: Option<f64>,
}

impl Report {
    pub(super) fn new(args: &BteArgs, peer: bool) -> Self {
        Self {
            machine: Machine::this(),
            settings: Settings {
                rounds: args.rounds.max(1),
                members: args.members,
                threshold: threshold(args.members),
                message_bytes: MESSAGE_BYTES,
                lines_max_mib: args.lines_max_mib,
            },
            peer_assembly: peer.then_some(PEER_ASSEMBLY),
            figures: vec![],
            memory: vec![],
        }
    }

    pub(super) fn machine_line(&self) -> String {
        self.machine.line()
    }

    /// The samples of one batch size, in the order of `contenders`.
    pub(super) fn add(&mut self, batch: u32, contenders: &[&mut dyn Contender], taken: &[Taken]) {
        let all = || contenders.iter().zip(taken);
        let median = |taken: &Taken, operation| taken.get(&operation).map(|s| s.wall_ms().median);
        let cpu = |taken: &Taken, operation| taken.get(&operation).map(|s| s.cpu_ms().median);
        let peer = all().find(|(contender, _)| contender.is_peer()).map(|(_, taken)| taken);
        for (contender, taken) in all() {
            let first = all().find(|(other, _)| {
                other.name() == contender.name() && other.is_peer() == contender.is_peer()
            });
            let first = first.filter(|(other, _)| other.threads() != contender.threads());
            for (operation, samples) in taken {
                let wall_ms = samples.wall_ms();
                let cpu_ms = samples.cpu_ms();
                let of_peer = peer.filter(|_| !contender.is_peer());
                let times = |other: Option<f64>| other.map(|other| other / wall_ms.median);
                self.figures.push(Figure {
                    batch,
                    backend: contender.name().to_owned(),
                    threads: contender.threads(),
                    peer: contender.is_peer(),
                    operation: *operation,
                    wall_ms,
                    cpu_ms,
                    ciphertext_us: wall_ms.median * 1e3 / f64::from(batch),
                    times_peer: of_peer.and_then(|peer| times(median(peer, operation.of_peer()))),
                    times_peer_cpu: of_peer
                        .filter(|_| contender.threads() == 1)
                        .and_then(|peer| cpu(peer, operation.of_peer()))
                        .map(|peer| peer / cpu_ms.median),
                    speedup: first.and_then(|(_, first)| times(median(first, *operation))),
                    phases: contender.phases(*operation),
                });
            }
        }
    }

    pub(super) fn add_memory(&mut self, memory: Memory) {
        self.memory.push(memory);
    }

    /// To standard output.
    pub(super) fn print(&self, json: bool) -> Result<()> {
        if json {
            println!("{}", serde_json::to_string_pretty(self)?);
            return Ok(());
        }
        println!("{}", self.machine_line());
        match self.peer_assembly {
            Some(true) => println!("reference: with its field assembly, one thread"),
            Some(false) => println!("WARNING: {NO_ASSEMBLY}"),
            None => {}
        }
        for memory in &self.memory {
            self.print_batch(memory);
        }
        Ok(())
    }

    fn print_batch(&self, memory: &Memory) {
        let peak = memory.peak_mib.map(|mib| format!(", at most {mib:.0} MiB resident")).unwrap_or_default();
        println!("\nB = {}{peak}", memory.batch);
        println!(
            "{:<22} {:<18} {:>11} {:>11} {:>11} {:>13} {:>8} {:>8} {:>9}",
            "operation",
            "backend",
            "median ms",
            "min ms",
            "cpu ms",
            "µs/ciphertext",
            "× peer",
            "in cpu",
            "× threads"
        );
        let mut figures: Vec<&Figure> = self.figures.iter().filter(|f| f.batch == memory.batch).collect();
        figures.sort_by_key(|figure| figure.operation);
        for figure in figures {
            let factor = |value: Option<f64>| value.map(|value| format!("{value:.2}")).unwrap_or_default();
            println!(
                "{:<22} {:<18} {:>11.2} {:>11.2} {:>11.2} {:>13.1} {:>8} {:>8} {:>9}",
                figure.operation.words(),
                format!("{}/{}{}", figure.backend, figure.threads, if figure.peer { " (peer)" } else { "" }),
                figure.wall_ms.median,
                figure.wall_ms.min,
                figure.cpu_ms.median,
                figure.ciphertext_us,
                factor(figure.times_peer),
                factor(figure.times_peer_cpu),
                factor(figure.speedup)
            );
            for Phase { name, ms } in &figure.phases {
                println!("  {name:<20} {:<18} {ms:>11.2}", "on the device");
            }
        }
    }
}
