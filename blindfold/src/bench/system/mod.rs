//! What a whole chain bears on this machine: every role a process, real execution clients, a development L1.
//!
//! The highest rate that it holds is looked for by short loads, each a half more than the last, then by halving; that rate
//! is then held for the whole time, or a little less is tried. Latency is measured at 80 % of what was held; then three times
//! of it is offered, by more accounts on connections of their own than one address may have, of which none stays away when it is
//! told to.

mod drive;
mod plain;
mod polled;
mod posted;
mod report;
mod supply;
mod usage;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use anyhow::{Context, Result, bail, ensure};
use blindfold_client::{CommitteeKey, Node};
use blindfold_protocol::limits::MAX_MEMBERS;
use blindfold_rpc::{BlindApiClient, ClientConfig, HttpClient, Topic, http_client};
use blindfold_runtime::{now, spawn};
use clap::Args;
use parking_lot::Mutex;
use tokio::{
    task::JoinHandle,
    time::{Duration, sleep},
};

use self::{
    drive::offer,
    posted::Posted,
    report::{L1Bytes, Loads, Memory, Overload, Phase, Report},
    supply::{Made, Supply},
    usage::Usage,
};
use super::{
    data::{Transfer, compressed_span_batch},
    machine::Machine,
    observe::{Observed, feed, watch},
};
use crate::devnet::{
    Devnet, DevnetOptions, MEMBERS, Progress, accounts::account_key, ports::Ports, ports::http,
};

/// How many times what was held is offered to see it refused.
const OVERLOAD: f64 = 3.0;
/// Of what was held, at which latency is measured.
const LATENCY_SHARE: f64 = 0.8;
/// A rate that is held and one that is not are so near in the end.
const PRECISION: f64 = 1.05;
/// Each rate is so much more than the last while all are held.
const STEP: f64 = 1.5;
/// What does not hold for the whole time is tried at so much less, so many times.
const LESS: f64 = 0.93;
const ATTEMPTS: usize = 8;
/// How long what was admitted may take to be executed after the last was sent.
const DRAIN: Duration = Duration::from_secs(90);
/// How long no data and no hints came to L1 when all of it is there, in its blocks; and how long that is awaited.
const QUIET_L1_BLOCKS: u64 = 12;
const L1_PATIENCE: Duration = Duration::from_secs(600);
/// How often metrics are read, and progress is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(1_000);
/// Slots in a second, by which transfers are put into the blocks of the span batch.
const SLOTS_PER_SECOND: f64 = 4.0;
/// Seconds of the ten-minute flood.
const SOAK_SECONDS: u64 = 600;
/// How much more than what is held is made for a flood: accounts that find no place for their connection keep theirs.
const FLOOD_MARGIN: f64 = 2.0;

/// Options of `blindfold bench system`.
#[derive(Args, Debug)]
pub struct SystemArgs {
    /// How long a rate is held to count, and how long latency is measured
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// How long each rate is tried while the highest is looked for
    #[arg(long, default_value_t = 20)]
    probe_seconds: u64,
    /// Envelopes per second that are tried first
    #[arg(long, default_value_t = 100)]
    from: u64,
    /// Look for no rate: take this one, in envelopes per second, as if it had been held
    #[arg(long)]
    held: Option<u64>,
    /// Before anything else, offer these rates one after the other, each for the whole time: latency against rate, or how a
    /// chain ages
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    rates: Vec<u64>,
    /// Accounts that send; above what is held, each on a connection of its own, of which a sequencer takes 256 of one address
    #[arg(long, default_value_t = 400)]
    accounts: usize,
    /// Members of the committee, of whom more than two thirds must act together
    #[arg(long, default_value_t = MEMBERS, value_parser = clap::value_parser!(u16).range(1..=MAX_MEMBERS as i64))]
    members: u16,
    /// Length of a slot in milliseconds, if not as by default
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    slot_ms: Option<u64>,
    /// B of the committee's dealing
    #[arg(long, default_value_t = 128)]
    batch: u32,
    /// Random bytes in each transfer's input
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=16_000))]
    input_bytes: u32,
    /// Seed of the transfers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Offer three times what was held for ten minutes
    #[arg(long)]
    soak: bool,
    /// Offer no more than what was held
    #[arg(long, conflicts_with = "soak")]
    no_overload: bool,
    /// Then send the same transfers, in the clear, to the same execution client without Blindfold
    #[arg(long)]
    plain: bool,
    /// Folder for the network, removed in the end
    #[arg(long, default_value = "target/devnet/bench-system")]
    dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
///
/// # Errors
/// When the network does not start, or bears nothing.
pub async fn run(args: SystemArgs) -> Result<()> {
    ensure!(
        args.seconds > 0 && args.probe_seconds > 0 && args.from > 0 && args.accounts > 0,
        "--seconds, --probe-seconds, --from and --accounts must not be zero"
    );
    if cfg!(debug_assertions) {
        eprintln!("note: this is a development build; what counts is a release's");
    }
    let progress = Progress::default();
    let mut bench = Bench::start(&args, &progress).await?;
    let measured = bench.measure(&args, &progress).await;
    for watcher in &bench.watchers {
        watcher.abort();
    }
    bench.devnet.stop().await?;
    report::print(&measured?, args.json)
}

/// A network under load.
struct Bench {
    devnet: Devnet,
    sequencer: HttpClient,
    node: Node,
    l1: Node,
    supply: Supply,
    observed: Arc<Mutex<Observed>>,
    watchers: [JoinHandle<()>; 2],
    posted: Posted,
    executed: usize,
}

impl Bench {
    async fn start(args: &SystemArgs, progress: &Progress) -> Result<Self> {
        let options = DevnetOptions {
            ports: Ports::free(args.members)?,
            slot_ms: args.slot_ms,
            accounts: args.accounts,
            paying: args.accounts,
            max_batch: args.batch,
            ..DevnetOptions::new(args.dir.clone(), std::env::current_exe()?)
        };
        let devnet = Devnet::start(options, progress).await?;
        let committee = CommitteeKey::fetch(&devnet.l1, 1, None).await?;
        let config = ClientConfig { max_concurrent_calls: 4_096, ..ClientConfig::default() };
        let (sequencer, node) = (http(devnet.ports.sequencer.0), http(devnet.ports.full_node.0));
        let observed = Arc::new(Mutex::new(Observed::default()));
        let watchers = [
            spawn(watch(feed(&sequencer, &[Topic::Headers, Topic::Certificates]), observed.clone())),
            spawn(watch(feed(&node, &[Topic::Blocks]), observed.clone())),
        ];
        let bench = Self {
            sequencer: http_client(&sequencer, &config)?,
            node: Node::new(&node)?,
            l1: Node::new(devnet.l1_url())?,
            supply: Supply::new(
                devnet.chain.clone(),
                committee,
                args.accounts,
                (args.seed, args.input_bytes as usize),
            ),
            observed,
            watchers,
            posted: Posted::default(),
            executed: 0,
            devnet,
        };
        let deadline = now() + DRAIN;
        for index in 0..args.accounts {
            let payer = account_key(index).address();
            while bench.sequencer.get_fee_account(payer).await?.balance == 0 {
                ensure!(
                    now() < deadline,
                    "the deposit of {payer} does not count after {} s",
                    DRAIN.as_secs()
                );
                sleep(LOOK_INTERVAL).await;
            }
        }
        Ok(bench)
    }

    async fn measure(&mut self, args: &SystemArgs, progress: &Progress) -> Result<Report> {
        self.load("first transfers, not counted", (args.from as f64, 3), false, progress).await?;
        let mut loads = Loads::default();
        for rate in &args.rates {
            let load = (*rate as f64, args.seconds);
            loads.rates.push(self.load("as was asked for", load, false, progress).await?.0);
        }
        let held = match args.held {
            Some(rate) => rate as f64,
            None => self.held(args, &mut loads, progress).await?,
        };
        let rate = held * LATENCY_SHARE;
        let (latency, transfers) =
            self.load("latency, at 80 % of it", (rate, args.seconds), false, progress).await?;
        ensure!(latency.held(), "80 % of {held:.0} per second are not held: {latency}");
        progress.step("receipts of all of them, asked for again and again");
        let ids: Vec<_> = self.observed.lock().executed.keys().copied().collect();
        let receipts = polled::poll(&self.sequencer, &ids).await?;
        progress.step(format!("  {:.0} receipts a second", receipts.per_second));
        let plain_chain = if args.plain {
            progress.step("the same transfers on the same execution client, without Blindfold");
            let who = (args.accounts, args.seed, args.input_bytes as usize);
            let plain = plain::measure(&args.dir, &self.devnet.chain, who, (rate, args.seconds)).await?;
            progress.step(format!("  {plain}"));
            Some(plain)
        } else {
            None
        };
        let overload = match (args.no_overload, args.soak) {
            (true, _) => None,
            (false, soak) => {
                let seconds = if soak { SOAK_SECONDS } else { args.seconds };
                let (flood, _) =
                    self.load("three times of it", (held * OVERLOAD, seconds), true, progress).await?;
                Some(flood)
            }
        };
        let per_block = (rate / SLOTS_PER_SECOND).ceil() as usize;
        let blocks: Vec<&[Transfer]> = transfers.chunks(per_block.max(1)).collect();
        let plain = compressed_span_batch(&blocks)? as f64 / transfers.len().max(1) as f64;
        progress.step("until everything is on L1");
        self.settled().await?;
        Ok(Report {
            machine: Machine::this(),
            seed: args.seed,
            accounts: args.accounts,
            members: args.members.into(),
            slot_ms: args.slot_ms,
            batch: args.batch,
            input_bytes: args.input_bytes,
            held_per_second: held,
            looked_for: args.held.is_none(),
            certified_ms: latency.certified_ms,
            executed_ms: latency.executed_ms,
            cpu_us: latency.cpu_us.clone(),
            l1_bytes: L1Bytes::of(self.posted.bytes, self.executed, plain),
            fsyncs: latency.fsyncs.clone(),
            queue_peaks: latency.queue_peaks.clone(),
            receipts,
            plain_chain,
            overload: overload.map(|flood| Overload::of(flood, args.accounts, &latency)),
            loads,
            latency,
        })
    }

    /// The highest rate that is held.
    async fn held(&mut self, args: &SystemArgs, loads: &mut Loads, progress: &Progress) -> Result<f64> {
        let (mut low, mut high, mut rate) = (0.0, f64::INFINITY, args.from as f64);
        while high / low > PRECISION {
            let (phase, _) = self.load("looking", (rate, args.probe_seconds), false, progress).await?;
            if phase.held() {
                low = rate
            } else {
                high = rate
            }
            loads.probes.push(phase);
            if low == 0.0 && rate < 1.0 {
                bail!("not even {rate:.1} envelopes per second are held");
            }
            rate = match (low, high) {
                (0.0, _) => rate / STEP,
                (_, f64::INFINITY) => rate * STEP,
                _ => (low * high).sqrt(),
            };
        }
        let mut rate = low;
        for _ in 0..ATTEMPTS {
            let (phase, _) = self.load("holding", (rate, args.seconds), false, progress).await?;
            let held = phase.held();
            loads.holds.push(phase);
            if held {
                return Ok(rate);
            }
            rate *= LESS;
        }
        bail!(
            "{rate:.0} envelopes per second were held for {} s, and not for {}",
            args.probe_seconds,
            args.seconds
        )
    }

    /// Offers so many envelopes a second for so long, and waits until those that were admitted are executed.
    async fn load(
        &mut self,
        name: &str,
        (rate, seconds): (f64, u64),
        flood: bool,
        progress: &Progress,
    ) -> Result<(Phase, Vec<Transfer>)> {
        let offered = (rate * seconds as f64).round() as usize;
        // Of three times too many a third is admitted.
        let most = (offered as f64 / OVERLOAD * FLOOD_MARGIN) as usize;
        let count = if flood { offered.min(most) } else { offered };
        progress.step(format!("{name}: {rate:.0}/s for {seconds} s; encrypting {count}"));
        let queues = self.supply.envelopes(count, &self.node, &self.sequencer).await?;
        let transfers = if flood { Vec::new() } else { in_order(&queues) };
        let nonces: u64 = self.supply.nonces(&self.node).await?.iter().sum();
        *self.observed.lock() = Observed::default();
        let before = Usage::of(&mut self.devnet).await?;
        let mut peaks = Usage::default();
        let mut memory_kib = Memory { start: before.resident_kib.clone(), ..Memory::default() };
        let fronts = if flood { self.crowd(queues.len())? } else { vec![self.sequencer.clone()] };
        let started = now();
        let half = Duration::from_secs(seconds) / 2;
        let skipped = {
            let sending = offer(&fronts, queues, (rate, seconds), &self.observed);
            tokio::pin!(sending);
            loop {
                tokio::select! {
                    skipped = &mut sending => break skipped,
                    () = sleep(LOOK_INTERVAL) => {
                        let usage = Usage::of(&mut self.devnet).await?;
                        peaks.longest(&usage);
                        if memory_kib.middle.is_empty() && started.elapsed() >= half {
                            memory_kib.middle = usage.resident_kib;
                        }
                    }
                }
            }
        };
        let sent_for = started.elapsed();
        memory_kib.end = Usage::of(&mut self.devnet).await?.resident_kib;
        let deadline = now() + DRAIN;
        while !self.drained() && now() < deadline {
            sleep(LOOK_INTERVAL / 10).await;
        }
        let drained_after = started.elapsed().saturating_sub(sent_for);
        let after = Usage::of(&mut self.devnet).await?;
        let included = self.supply.nonces(&self.node).await?.iter().sum::<u64>() - nonces;
        let (cpu_ms, commits) = after.since(&before);
        let observed = self.observed.lock();
        let phase = Phase::new(report::Seen {
            rate,
            seconds,
            observed: &observed,
            skipped,
            included,
            sent_for,
            drained_after,
            cpu_ms,
            commits,
            queue_peaks: peaks.queues,
            memory_kib,
            resident_kib: [before.resident_kib, after.resident_kib],
        });
        drop(observed);
        self.executed += phase.executed;
        progress.step(format!("  {phase}"));
        progress.step(format!("  {}", phase.usage()));
        Ok((phase, transfers))
    }

    /// Clients with a connection each.
    fn crowd(&self, accounts: usize) -> Result<Vec<HttpClient>> {
        let (url, config) = (http(self.devnet.ports.sequencer.0), ClientConfig::default());
        (0..accounts).map(|_| Ok(http_client(&url, &config)?)).collect()
    }

    /// Whether all that was admitted is executed.
    fn drained(&self) -> bool {
        let observed = self.observed.lock();
        observed.admitted.keys().all(|id| observed.executed.contains_key(id))
    }

    /// Waits until no more data comes to L1.
    async fn settled(&mut self) -> Result<()> {
        let registry = self.devnet.chain.hint_registry;
        let deadline = now() + L1_PATIENCE;
        loop {
            self.posted.look(&self.l1, &self.devnet.chain, registry).await.context("reading L1")?;
            if self.posted.looked >= self.posted.last + QUIET_L1_BLOCKS {
                return Ok(());
            }
            ensure!(now() < deadline, "data still comes to L1 after {} s", L1_PATIENCE.as_secs());
            sleep(LOOK_INTERVAL).await;
        }
    }
}

/// The transfers in the order in which they are sent.
fn in_order(queues: &[std::collections::VecDeque<Made>]) -> Vec<Transfer> {
    let rounds = queues.iter().map(std::collections::VecDeque::len).max().unwrap_or_default();
    (0..rounds)
        .flat_map(|round| queues.iter().filter_map(move |queue| Some(queue.get(round)?.transfer.clone())))
        .collect()
}

/// By name.
type ByName = BTreeMap<String, f64>;
