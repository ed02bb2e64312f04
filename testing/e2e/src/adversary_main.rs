//! `scripts/devnet --adversary`.

use std::process::ExitCode;

use blindfold::cli::exit_code;
use blindfold_e2e::adversary::{AdversaryArgs, run};
use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    exit_code(run(AdversaryArgs::parse()).await)
}
