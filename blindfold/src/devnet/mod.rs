//! The whole system on one machine: L1, two execution clients, and every role as a process of its own.
//!
//! `blindfold devnet` runs it for a person; the smoke run (testing/e2e) starts the same thing, puts a relay before the
//! sequencer, and kills parts of it.

pub mod accounts;
mod confidential;
mod network;
pub mod ports;
pub mod process;
mod settings;
mod story;

pub use confidential::{
    COPROCESSOR, confidential_transfer, deployment_file as confidential_deployment_file,
    keys_dir as confidential_keys_dir,
};
pub use network::{
    Devnet, DevnetOptions, ExecutionSide, FEE_DEPOSIT_WEI, GATEWAYS, L1_NODE, PROCESSES, Progress, RELAY,
    SIGNER, UrlsOfRole, is_run, remove_run, stake_members,
};
pub use story::first_transfer;

use std::{path::PathBuf, pin::pin};

use anyhow::Result;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::roles::asked_to_stop;
use ports::Ports;

/// Members of the development network's committee.
pub const MEMBERS: u16 = 4;
/// t of these.
pub const THRESHOLD: u16 = threshold_of(MEMBERS);
/// t of so many: acknowledgements of a certificate, and shares of a release. More than two thirds.
pub const fn threshold_of(members: u16) -> u16 {
    members * 2 / 3 + 1
}

/// Options of `blindfold devnet`.
#[derive(Args, Clone, Debug)]
pub struct DevnetArgs {
    /// Folder for everything the run writes; removed at the end unless --keep. Must be empty, or an earlier run's
    #[arg(long, default_value = "target/devnet/run")]
    dir: PathBuf,
    /// Ciphertexts in one sub-batch at most
    #[arg(long, default_value_t = 128)]
    max_batch: u32,
    /// Take free ports instead of the documented ones
    #[arg(long)]
    free_ports: bool,
    /// Leave the folder where it is
    #[arg(long)]
    keep: bool,
    /// Run a coprocessor, and let two accounts pay each other confidentially; its first run makes the circuits' keys
    #[arg(long)]
    confidential: bool,
    /// Keep the records of all roles in a PostgreSQL server of the run; needs the package postgresql
    #[arg(long)]
    postgres: bool,
    /// Three sequencers on a replicated PostgreSQL, one of which leads, two gateways that share a Redis, and a relay; needs the
    /// packages postgresql and redis-server
    #[arg(long, conflicts_with = "postgres")]
    replicated: bool,
    /// Send traces of all envelopes to a collector, by OTLP over HTTP: http://127.0.0.1:4318/v1/traces
    #[arg(long, value_name = "URL")]
    traces: Option<String>,
    /// End after the first transfer instead of waiting for Ctrl-C
    #[arg(long)]
    once: bool,
}

/// Runs until Ctrl-C.
///
/// # Errors
/// When a part does not start; everything started is ended first.
pub async fn run(args: DevnetArgs) -> Result<()> {
    let ports = match (args.free_ports, args.replicated) {
        (true, false) => Ports::free(MEMBERS)?,
        (true, true) => Ports::free_replicated(MEMBERS)?,
        (false, false) => Ports::documented(MEMBERS),
        (false, true) => Ports::documented_replicated(MEMBERS),
    };
    let options = DevnetOptions {
        ports,
        max_batch: args.max_batch,
        keep: args.keep,
        confidential: args.confidential,
        postgres: args.postgres,
        traces_url: args.traces,
        ..DevnetOptions::new(args.dir.clone(), std::env::current_exe()?)
    };
    let progress = Progress::default();
    let starting = async {
        let devnet = Devnet::start(options, &progress).await?;
        first_transfer(&devnet, &progress).await?;
        if args.confidential {
            confidential_transfer(&devnet, &progress).await?;
        }
        anyhow::Ok(devnet)
    };
    let mut devnet = tokio::select! {
        started = starting => started?,
        stopped = asked_to_stop() => {
            stopped?;
            // What was started is dropped, and so killed, by now.
            if is_run(&args.dir) && !args.keep {
                remove_run(&args.dir)?;
            }
            return Ok(());
        }
    };
    devnet.print_urls();
    if !args.once {
        until_asked_to_stop(&mut devnet, &progress).await?;
    }
    progress.step("stopping");
    devnet.stop().await
}

/// Waits for Ctrl-C, and says which role ended by itself meanwhile. The others run on.
async fn until_asked_to_stop(devnet: &mut Devnet, progress: &Progress) -> Result<()> {
    let mut stop = pin!(asked_to_stop());
    let mut child_ends = signal(SignalKind::child())?;
    loop {
        for process in devnet.processes() {
            if let Some(report) = process.report_ended()? {
                progress.step(report);
            }
        }
        tokio::select! {
            stopped = &mut stop => return stopped,
            _ = child_ends.recv() => {}
        }
    }
}
