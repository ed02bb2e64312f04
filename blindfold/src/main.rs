//! The one binary. A subcommand parses, wires libraries together and runs.

use std::process::ExitCode;

use blindfold::cli::{Cli, exit_code, run};

fn main() -> ExitCode {
    exit_code(run(Cli::of_process()))
}
