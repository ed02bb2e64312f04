//! `scripts/devnet --drills`.

use std::process::ExitCode;

use blindfold::cli::exit_code;
use blindfold_e2e::drills::{DrillArgs, run};
use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    exit_code(run(DrillArgs::parse()).await)
}
