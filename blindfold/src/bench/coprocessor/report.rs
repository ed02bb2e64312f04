//! Figures for people and for scripts.

use anyhow::Result;
use serde::Serialize;

use super::{CoprocessorArgs, Times};
use crate::bench::machine::Machine;

/// What GAFE (GPU-accelerated FHE blockchain) reports for transfers on four machines with GPUs: for comparison, not
/// measured here, and without proofs of equal or positive amounts.
const GAFE: Gafe = Gafe { tps: 258, latency_s: 1.61 };

#[derive(Serialize)]
struct Gafe {
    tps: u32,
    latency_s: f64,
}

#[derive(Serialize)]
struct Published {
    gafe: Gafe,
}

/// Everything that one run found out. Times are by the clock on the wall, medians.
#[derive(Serialize)]
pub(super) struct Report {
    machine: Machine,
    settings: Settings,
    /// Of the encrypted balances.
    #[serde(flatten)]
    pub(super) figures: Option<Figures>,
    /// Of the additive-only baseline: twisted ElGamal with range proofs.
    pub(super) baseline: Option<Figures>,
    published: Published,
}

#[derive(Serialize)]
struct Settings {
    accounts: u32,
    threads: usize,
    rounds: usize,
    seed: u64,
    /// Proving keys from a seed in the program: right for measuring, never for money.
    setup: &'static str,
}

/// One contender's.
#[derive(Serialize)]
pub(super) struct Figures {
    pub(super) transfers: usize,
    /// Transfers that an executor applies in a second, verification included.
    pub(super) tps: f64,
    /// The whole batch: decoding, verification, application, roots.
    pub(super) execute_ms: f64,
    /// One proof.
    pub(super) proof_bytes: usize,
    /// Of a transfer's circuit; none in a proof without one.
    pub(super) constraints: Option<usize>,
    /// One transfer, on the threads of the run.
    pub(super) prove_ms: f64,
    /// One proof alone.
    pub(super) verify_ms: f64,
    /// One proof of the batch.
    pub(super) batch_verify_ms: f64,
    /// The same times of all threads on their cores.
    pub(super) cpu: OnCores,
    /// One encoded transaction.
    pub(super) bytes_per_transfer: usize,
    /// Receipts, roots and state are those of an executor with other threads that cut the batch elsewhere.
    pub(super) executors_identical: bool,
    /// All balances decrypt to the plain model's, and the public ones are its rest.
    pub(super) conserved: bool,
}

/// The times of [`Figures`] on the cores instead of the wall: what other work on the machine touches less.
#[derive(Serialize)]
pub(super) struct OnCores {
    execute_ms: f64,
    prove_ms: f64,
    verify_ms: f64,
    batch_verify_ms: f64,
}

impl OnCores {
    pub(super) fn of(prove: Times, verify: Times, batch_verify: Times, execute: Times) -> Self {
        Self {
            execute_ms: execute.cpu_ms,
            prove_ms: prove.cpu_ms,
            verify_ms: verify.cpu_ms,
            batch_verify_ms: batch_verify.cpu_ms,
        }
    }
}

impl Report {
    pub(super) fn new(args: &CoprocessorArgs, threads: usize) -> Self {
        Self {
            machine: Machine::this(),
            settings: Settings {
                accounts: args.accounts,
                threads,
                rounds: args.rounds.max(1),
                seed: args.seed,
                setup: "development",
            },
            figures: None,
            baseline: None,
            published: Published { gafe: GAFE },
        }
    }

    pub(super) fn machine_line(&self) -> String {
        self.machine.line()
    }

    /// Whether everything that was measured was also right.
    pub(super) fn holds(&self) -> bool {
        self.figures
            .iter()
            .chain(&self.baseline)
            .all(|figures| figures.executors_identical && figures.conserved)
    }

    pub(super) fn print(&self, json: bool) -> Result<()> {
        if json {
            println!("{}", serde_json::to_string_pretty(self)?);
            return Ok(());
        }
        let Settings { accounts, threads, setup, .. } = &self.settings;
        println!(
            "{accounts} accounts, {threads} threads; proving keys: {setup} (forgeable by whoever has the seed)"
        );
        for (name, figures) in
            [("encrypted balances (RLWE)", &self.figures), ("baseline (ElGamal)", &self.baseline)]
        {
            if let Some(figures) = figures {
                figures.print(name);
            }
        }
        let Gafe { tps, latency_s } = self.published.gafe;
        println!("published, not measured here: GAFE {tps} transfers/s, {latency_s} s to commit");
        Ok(())
    }
}

impl Figures {
    fn print(&self, name: &str) {
        let Self { transfers, tps, execute_ms, prove_ms, verify_ms, batch_verify_ms, .. } = self;
        let constraints = self.constraints.map(|count| format!(", {count} constraints")).unwrap_or_default();
        println!("{name}: {transfers} transfers in {execute_ms:.0} ms, {tps:.0} a second");
        println!(
            "  prove {prove_ms:.1} ms, verify {verify_ms:.2} ms, in a batch {batch_verify_ms:.3} ms each"
        );
        let OnCores { execute_ms, prove_ms, verify_ms, batch_verify_ms } = self.cpu;
        println!(
            "  on the cores: execute {execute_ms:.0} ms, prove {prove_ms:.1} ms, verify {verify_ms:.2} ms, in a batch \
             {batch_verify_ms:.3} ms each"
        );
        println!("  {} bytes each, proof {}{constraints}", self.bytes_per_transfer, self.proof_bytes);
        println!("  executors identical: {}, balances right: {}", self.executors_identical, self.conserved);
    }
}
