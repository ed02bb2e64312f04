//! `blindfold bench`: figures with the machine they were measured on.

mod attack;
mod bte;
mod coprocessor;
mod data;
mod load;
mod machine;
mod observe;
mod process;
mod system;

use anyhow::Result;
use blindfold_runtime::blocking;
use clap::Subcommand;

/// What is measured.
#[derive(Subcommand, Debug)]
pub enum BenchCommand {
    /// The scheme's operations on this machine, beside the paper-shaped code if asked
    #[command(
        after_help = "Examples:\n  blindfold bench bte --batch 128 --backend portable,ifma\n  blindfold bench bte --batch 512 --threads 1,2\n  blindfold bench bte --batch 65536 --backend cuda --threads 0 --json\n  \
        RUSTFLAGS='-C target-cpu=native' cargo run --release -p blindfold --features bench -- bench bte --batch 32,128,512 --backend portable,ifma --peer reference --json"
    )]
    Bte(bte::BteArgs),
    /// Confidential balances: proofs, sizes and the executor, beside additions without FHE
    #[command(after_help = "Examples:\n  blindfold bench coprocessor --transfers 20 --accounts 4\n  \
        RUSTFLAGS='-C target-cpu=native' cargo run --release -p blindfold --features bench -- bench coprocessor --json")]
    Coprocessor(coprocessor::CoprocessorArgs),
    /// Bytes on L1 for each encrypted transfer, beside the same transfers in a span batch of the OP stack
    #[command(after_help = "Examples:\n  blindfold bench data\n  blindfold bench data --bundle 16 --json")]
    Data(data::DataArgs),
    /// A running system under an open-loop load of encrypted transfers
    #[command(
        after_help = "Example:\n  blindfold bench load --rpc http://127.0.0.1:9545 --node http://127.0.0.1:9580 \\\n      --l1 http://127.0.0.1:8545 --chain target/devnet/run/rollup.json --seconds 30 --rate 100 --json"
    )]
    Load(load::LoadArgs),
    /// A whole chain of its own on this machine: the rate it holds, latency at 80 % of it, and three times of it
    #[command(
        after_help = "Examples:\n  blindfold bench system\n  blindfold bench system --seconds 20 --json\n  blindfold bench system --soak --json"
    )]
    System(system::SystemArgs),
    /// Floods beside honest transfers, on a development network of its own: what each costs its maker and the roles
    #[command(
        after_help = "Examples:\n  blindfold bench attack\n  blindfold bench attack --flood malformed --envelopes 1000 --rate 100 --json"
    )]
    Attack(attack::AttackArgs),
}

/// Runs one benchmark.
///
/// # Errors
/// Whatever keeps it from measuring.
pub async fn run(command: BenchCommand) -> Result<()> {
    match command {
        BenchCommand::Bte(args) => blocking(move || bte::run(&args)).await?,
        BenchCommand::Coprocessor(args) => blocking(move || coprocessor::run(&args)).await?,
        BenchCommand::Data(args) => blocking(move || data::run(&args)).await?,
        BenchCommand::Load(args) => load::run(args).await,
        BenchCommand::System(args) => system::run(args).await,
        BenchCommand::Attack(args) => attack::run(args).await,
    }
}

/// The middle of the samples; zero of none.
fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}
