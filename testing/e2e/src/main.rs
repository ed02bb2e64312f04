//! `scripts/devnet --smoke`.

use std::process::ExitCode;

use blindfold::cli::exit_code;
use blindfold_e2e::smoke::{SmokeArgs, run};
use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    exit_code(run(SmokeArgs::parse()).await)
}
