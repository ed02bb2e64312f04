//! Confidential balances: the same payments by the encrypted balances of the coprocessor and by the additive-only
//! baseline, each executed twice on different numbers of threads, every balance decrypted in the end.

#[cfg(feature = "bench")]
mod baseline;
mod encrypted;
mod plan;
mod prover;
mod report;

use anyhow::{Context, Result, ensure};
use blindfold_runtime::{Instant, now};
use clap::Args;
use rayon::{ThreadPool, ThreadPoolBuilder};

use self::plan::Plan;
use self::report::Report;
use super::{machine::cpu_time, median};

/// Most transfers of one run: proofs and statements are all kept, 60 KB each.
const MAX_TRANSFERS: u32 = 10_000;
/// Bound that the baseline's decryption by table sets, over the supply.
const MAX_ACCOUNTS: u32 = 10_000;
/// How often one proof alone is verified.
const SINGLE_ROUNDS: usize = 21;

/// Options of `blindfold bench coprocessor`.
#[derive(Args, Debug)]
pub struct CoprocessorArgs {
    /// Transfers that are proved and executed; proving takes a core about two seconds for each
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_TRANSFERS)))]
    transfers: u32,
    /// Accounts that pay each other
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=i64::from(MAX_ACCOUNTS)))]
    accounts: u32,
    /// Threads of the executor that is timed (0: one for each core); the other one never has the same number
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Times that the batch is executed and verified; medians are told
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seed of keys, payments and encryption
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the baseline, without the minutes of proving (feature `bench`)
    #[arg(long)]
    baseline_only: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
///
/// # Errors
/// A refused transfer, executors that differ, a balance that is not the plain model's.
pub fn run(args: &CoprocessorArgs) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if args.threads == 0 { cores } else { args.threads };
    let measure = Measure::new(threads, args.rounds.max(1))?;
    let plan = Plan::new(args.accounts, args.transfers, args.seed);
    let mut report = Report::new(args, threads);
    eprintln!("{}", report.machine_line());
    #[cfg(feature = "bench")]
    {
        report.baseline = Some(baseline::run(&plan, &measure).context("baseline")?);
    }
    #[cfg(not(feature = "bench"))]
    {
        ensure!(!args.baseline_only, "this binary has no baseline: build it with `--features bench`");
        eprintln!("without the baseline: build with `--features bench`");
    }
    if !args.baseline_only {
        report.figures = Some(encrypted::run(&plan, &measure).context("encrypted balances")?);
    }
    report.print(args.json)?;
    ensure!(report.holds(), "executors differ or balances are wrong: see the figures");
    Ok(())
}

/// The two executors' threads, and how often is measured.
struct Measure {
    /// Of the executor that is timed.
    pool: ThreadPool,
    /// Of the other one.
    other: ThreadPool,
    rounds: usize,
}

impl Measure {
    fn new(threads: usize, rounds: usize) -> Result<Self> {
        // Never the same number as the first one's.
        let other = if threads == 1 { 2 } else { threads / 2 };
        let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build().context("threads");
        Ok(Self { pool: pool(threads)?, other: pool(other)?, rounds })
    }

    /// A task on the timed executor's threads, the median of the rounds, and the last result.
    fn time<T: Send>(&self, mut task: impl FnMut() -> Result<T> + Send) -> Result<(Times, T)> {
        self.time_rounds(self.rounds, &mut task)
    }

    /// The same for something short.
    fn time_single<T: Send>(&self, mut task: impl FnMut() -> Result<T> + Send) -> Result<(Times, T)> {
        self.time_rounds(SINGLE_ROUNDS, &mut task)
    }

    fn time_rounds<T: Send>(
        &self,
        rounds: usize,
        task: &mut (impl FnMut() -> Result<T> + Send),
    ) -> Result<(Times, T)> {
        let mut samples = Vec::with_capacity(rounds);
        loop {
            let (sample, result) = timed(|| self.pool.install(&mut *task));
            let result = result?;
            samples.push(sample);
            if samples.len() >= rounds {
                return Ok((Times::median(&samples), result));
            }
        }
    }
}

/// How long something took.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// By the clock on the wall.
    wall_ms: f64,
    /// Of all threads on their cores; beside `wall_ms` it shows what the machine did meanwhile.
    cpu_ms: f64,
}

impl Times {
    /// Medians, each for itself.
    fn median(samples: &[Self]) -> Self {
        Self {
            wall_ms: median(samples.iter().map(|sample| sample.wall_ms).collect()),
            cpu_ms: median(samples.iter().map(|sample| sample.cpu_ms).collect()),
        }
    }

    /// One of as many.
    fn each(self, count: usize) -> Self {
        Self { wall_ms: self.wall_ms / count as f64, cpu_ms: self.cpu_ms / count as f64 }
    }
}

fn timed<T>(task: impl FnOnce() -> T) -> (Times, T) {
    let (started, cpu_started) = (now(), cpu_time());
    let result = task();
    let cpu = cpu_time().saturating_sub(cpu_started);
    let times = Times { wall_ms: started.elapsed().as_secs_f64() * 1e3, cpu_ms: cpu.as_secs_f64() * 1e3 };
    (times, result)
}

/// Tells on stderr how far something long is, now and then.
struct Progress {
    what: &'static str,
    of: usize,
    started: Instant,
    printed: Instant,
}

impl Progress {
    const EVERY_S: u64 = 5;

    fn new(what: &'static str, of: usize) -> Self {
        eprintln!("{what}: {of}");
        Self { what, of, started: now(), printed: now() }
    }

    fn at(&mut self, done: usize) {
        if done == self.of || self.printed.elapsed().as_secs() >= Self::EVERY_S {
            self.printed = now();
            let seconds = self.started.elapsed().as_secs_f64();
            eprintln!("{}: {done} of {} in {seconds:.0} s", self.what, self.of);
        }
    }
}
