//! `scripts/devnet --replicated --chaos`.

use std::process::ExitCode;

use blindfold::cli::exit_code;
use blindfold_e2e::replicated::{ReplicatedArgs, run};
use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    exit_code(run(ReplicatedArgs::parse()).await)
}
