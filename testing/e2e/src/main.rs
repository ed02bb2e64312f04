//! `scripts/devnet --smoke`.

use anyhow::Result;
use blindfold_e2e::smoke::{SmokeArgs, run};
use clap::Parser;

#[tokio::main]
async fn main() -> Result<()> {
    run(SmokeArgs::parse()).await
}
