//! The one binary. A subcommand parses, wires libraries together and runs.

use anyhow::Result;
use blindfold::cli::Cli;
use clap::Parser;

fn main() -> Result<()> {
    blindfold::cli::run(Cli::parse())
}
