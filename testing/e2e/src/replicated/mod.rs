//! The replicated run: three sequencers on a replicated database behind two gateways, traffic without a break, and one fault after the other.
//! What was promised and acknowledged is kept, and nothing is signed twice, whatever happens to whom.

mod faults;
pub(crate) mod load;
mod report;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use blindfold::devnet::{
    Devnet, DevnetOptions, MEMBERS, Progress,
    ports::{Ports, http},
};
use blindfold_client::Node;
use blindfold_rpc::{ClientConfig, CommitteeApiClient, http_client};
use clap::Parser;
use rand::{SeedableRng, rngs::StdRng};
use tokio::time::{Instant, sleep};

use crate::collector::Collector;
use faults::Fault;
use load::{Load, Sent};
use report::{Outcome, Report};

/// Accounts that send, each one envelope after the other.
const SENDERS: usize = 6;
/// How often a state that has no notification is looked up.
const LOOK: Duration = Duration::from_millis(20);
/// How long a new leader, or the outcome of everything sent, may take.
const SETTLE: Duration = Duration::from_secs(180);

/// What the trace of an envelope tells that came through a gateway, by role.
const PARTS: [(&str, &str); 8] = [
    ("gateway", "verify"),
    ("gateway", "forward"),
    ("sequencer", "admit"),
    ("sequencer", "seal"),
    ("committee", "acknowledge"),
    ("hint-publisher", "open"),
    ("full-node", "execute"),
    ("sequencer", "post"),
];

/// Options of the replicated run.
#[derive(Parser, Debug)]
#[command(
    name = "devnet --replicated --chaos",
    about = "Break sequencers and their database while envelopes are sent, and check that nothing is lost or signed twice",
    after_help = "Examples:\n  scripts/devnet --replicated --chaos --faults 20\n  scripts/devnet --replicated --chaos \
                  --faults 200 --resume      adds to what target/devnet/replicated.json has"
)]
pub struct ReplicatedArgs {
    /// Folder for everything the run writes; removed when all is right, unless --keep
    #[arg(long, default_value = "target/devnet/replicated")]
    dir: PathBuf,
    /// Where the report goes; written after each fault
    #[arg(long, default_value = "target/devnet/replicated.json")]
    report: PathBuf,
    /// Faults of this run
    #[arg(long, default_value_t = 20)]
    faults: u64,
    /// Add to the report that is there
    #[arg(long)]
    resume: bool,
    /// Draws the order of faults and their pauses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Leave the folder where it is
    #[arg(long)]
    keep: bool,
}

/// The network, its traffic, and what is seen of it.
struct Run {
    devnet: Devnet,
    load: Load,
    node: String,
    collector: Collector,
    progress: Progress,
}

/// Runs it.
///
/// # Errors
/// When anything is not as it must be; the report is written all the same.
pub async fn run(args: ReplicatedArgs) -> Result<()> {
    let progress = Progress::default();
    let mut report = if args.resume { Report::read(&args.report)? } else { Report::default() };
    // A seed for each part of a run that is resumed.
    let seed = args.seed.wrapping_add(report.faults);
    progress.step(format!("seed {seed}"));
    let mut random = StdRng::seed_from_u64(seed);
    let mut run = Run::start(&args, progress).await?;
    let mut outcome = run.faults(&args, &mut random, &mut report).await;
    if outcome.is_ok() {
        outcome = run.settle(&mut report).await;
    }
    report.write(&args.report)?;
    println!("{}", report.text()?);
    let dir = run.devnet.dir().display().to_string();
    run.load.stop().await;
    run.devnet.stop().await?;
    outcome.with_context(|| format!("logs: {dir}/logs"))?;
    let broken = report.broken();
    if !broken.is_empty() {
        bail!("the replicated run failed:\n  - {}\nlogs: {dir}/logs", broken.join("\n  - "));
    }
    if !args.keep {
        std::fs::remove_dir_all(&args.dir)?;
    }
    progress.step(format!("{} faults, nothing lost; the report is {}", report.faults, args.report.display()));
    Ok(())
}

impl Run {
    async fn start(args: &ReplicatedArgs, progress: Progress) -> Result<Self> {
        let binary = crate::program()?;
        let collector = Collector::start().await?;
        let options = DevnetOptions {
            ports: Ports::free_replicated(MEMBERS)?,
            keep: true,
            max_batch: 32,
            traces_url: Some(collector.url.clone()),
            ..DevnetOptions::new(args.dir.clone(), binary)
        };
        let devnet = Devnet::start(options, &progress).await?;
        let load = Load::through(&devnet, SENDERS).await?;
        let node = http(devnet.ports.full_node.0);
        Ok(Self { devnet, load, node, collector, progress })
    }

    /// The name of whoever leads, once somebody does.
    async fn leader(&self) -> Result<&'static str> {
        load::leader(&self.devnet, SETTLE).await
    }

    async fn faults(
        &mut self,
        args: &ReplicatedArgs,
        random: &mut StdRng,
        report: &mut Report,
    ) -> Result<()> {
        self.load.sealed_after(0, SETTLE).await?;
        self.back_up_node().await?;
        for index in 1..=args.faults {
            let fault = Fault::draw(index, random);
            let leader = self.leader().await?;
            let gap =
                self.inject(fault, leader, random).await.with_context(|| format!("{fault:?} of {leader}"))?;
            self.progress.step(format!(
                "{index}/{}: {} of {leader}, at most {} ms between two headers",
                args.faults,
                fault.name(),
                gap
            ));
            report.add(fault, gap);
            report.second_headers = report.second_headers.max(self.load.second_headers());
            report.write(&args.report)?;
        }
        Ok(())
    }

    /// Everything that was acknowledged has its outcome, at the full node.
    async fn settle(&mut self, report: &mut Report) -> Result<()> {
        self.progress.step("waiting until everything that was acknowledged has its outcome");
        let sent: Vec<Sent> = self.load.stop().await;
        let outcome = Outcome::of(&self.node, &sent, SETTLE).await?;
        // What anybody announced is what the committee certified.
        self.load.seen_also(&outcome.certified);
        let mut second_headers = self.load.second_headers();
        for (rpc, _) in &self.devnet.ports.members {
            let member = http_client(&http(*rpc), &ClientConfig::default())?;
            second_headers += CommitteeApiClient::get_status(&member).await?.second_headers_refused;
        }
        report.take(&outcome, second_headers);
        self.collector.wait_for_whole(&PARTS, SETTLE).await?;
        self.posted(&outcome).await
    }

    /// Everything that is certified comes to L1, whoever posted it.
    async fn posted(&self, outcome: &Outcome) -> Result<()> {
        let (node, deadline) = (Node::new(&self.node)?, Instant::now() + SETTLE);
        let last = outcome.certified.last().map_or(0, |(number, _)| *number);
        self.progress.step(format!("waiting until L1 has header {last}"));
        loop {
            let posted = node.call("blind_getStatus", &[]).await?["posted"].as_u64().unwrap_or(0);
            if posted >= last {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "L1 has headers up to {posted} only, {last} is certified");
            sleep(LOOK).await;
        }
    }
}
