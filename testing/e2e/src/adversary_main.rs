//! `scripts/devnet --adversary`.

use anyhow::Result;
use blindfold_e2e::adversary::{AdversaryArgs, run};
use clap::Parser;

#[tokio::main]
async fn main() -> Result<()> {
    run(AdversaryArgs::parse()).await
}
