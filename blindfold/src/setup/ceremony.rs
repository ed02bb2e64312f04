//! `blindfold coprocessor setup powers` and `phase2`: a ceremony, a file in and a file out at each step.

use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
};

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use blindfold_client::confidential::{
    ceremony::{Beacon, Contributed, ImportedPowers, KeysState, Part, PowersState},
    provers::{absent, write_new},
};
use blindfold_confidential::Ring;
use blindfold_runtime::now;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::wallet::print;

/// Steps of phase 1.
#[derive(Subcommand, Debug)]
pub enum PowersCommand {
    /// Begin: the first state, which anybody can compute
    #[command(after_help = "Example:\n  blindfold coprocessor setup powers start --out powers-0")]
    Start(OutArgs),
    /// Begin where a published transcript of powers of tau for BLS12-381 ended, after checking all of it
    #[command(
        after_help = "Example, with the transcript of Zcash's ceremony of 2018 (github.com/ebfull/powersoftau), for 2^21 rows:\n  \
        blindfold coprocessor setup powers import --transcript transcript --transcript-log-size 21 --out powers-0"
    )]
    Import(ImportArgs),
    /// Contribute to a state, or close the phase with --beacon. Publish the hash that is printed
    #[command(
        after_help = "Examples:\n  blindfold coprocessor setup powers contribute --from powers-0 --out powers-1\n  \
        blindfold coprocessor setup powers contribute --from powers-3 --out powers --beacon 0x…"
    )]
    Contribute(ContributeArgs),
    /// Check a state from the beginning, and list its contributions
    #[command(after_help = "Example:\n  blindfold coprocessor setup powers verify --from powers")]
    Verify(VerifyPowersArgs),
}

/// Steps of phase 2.
#[derive(Subcommand, Debug)]
pub enum Phase2Command {
    /// Begin from the end of phase 1: minutes
    #[command(
        after_help = "Example:\n  blindfold coprocessor setup phase2 start --powers powers --out keys-0"
    )]
    Start(StartArgs),
    /// Contribute to a state, or close the phase with --beacon. Publish the hashes that are printed
    #[command(
        after_help = "Examples:\n  blindfold coprocessor setup phase2 contribute --from keys-0 --out keys-1\n  \
        blindfold coprocessor setup phase2 contribute --from keys-3 --out keys-final --beacon 0x…"
    )]
    Contribute(ContributeArgs),
    /// Check both phases from the beginning against this program's circuits, and list their contributions: minutes
    #[command(
        after_help = "Example:\n  blindfold coprocessor setup phase2 verify --powers powers --from keys-final"
    )]
    Verify(VerifyArgs),
    /// Check likewise, and write the key files
    #[command(
        after_help = "Example:\n  blindfold coprocessor setup phase2 finish --powers powers --from keys-final --out confidential-keys"
    )]
    Finish(FinishArgs),
}

/// Options of `powers start`.
#[derive(Args, Debug)]
pub struct OutArgs {
    /// The file to write; never over one that is there
    #[arg(long)]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The published transcript that phase 1 went on from, where it did.
#[derive(Args, Debug)]
pub struct TranscriptArgs {
    /// The published transcript that phase 1 went on from; it is checked again
    #[arg(long)]
    transcript: Option<PathBuf>,
    /// Log2 of the rows that it is for
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u8).range(1..=28))]
    transcript_log_size: u8,
}

/// Options of `powers import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// The published transcript
    #[arg(long)]
    transcript: PathBuf,
    /// Log2 of the rows that it is for
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u8).range(1..=28))]
    transcript_log_size: u8,
    #[command(flatten)]
    out: OutArgs,
}

/// Options of `powers verify`.
#[derive(Args, Debug)]
pub struct VerifyPowersArgs {
    #[command(flatten)]
    transcript: TranscriptArgs,
    #[command(flatten)]
    from: FromArgs,
}

/// Which state is looked at.
#[derive(Args, Debug)]
pub struct FromArgs {
    /// The state
    #[arg(long)]
    from: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options of `contribute`.
#[derive(Args, Debug)]
pub struct ContributeArgs {
    /// The state to contribute to
    #[arg(long)]
    from: PathBuf,
    /// Close the phase with this public value instead, which nobody could choose: 32 bytes, 0x-hex
    #[arg(long)]
    beacon: Option<B256>,
    /// The beacon is hashed 2^this many times
    #[arg(long, requires = "beacon", default_value_t = 20, value_parser = clap::value_parser!(u8).range(..=30))]
    beacon_log_iterations: u8,
    #[command(flatten)]
    out: OutArgs,
}

/// Options of `phase2 start`.
#[derive(Args, Debug)]
pub struct StartArgs {
    /// The end of phase 1
    #[arg(long)]
    powers: PathBuf,
    #[command(flatten)]
    transcript: TranscriptArgs,
    #[command(flatten)]
    out: OutArgs,
}

/// Options of `phase2 verify`.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The end of phase 1
    #[arg(long)]
    powers: PathBuf,
    #[command(flatten)]
    transcript: TranscriptArgs,
    #[command(flatten)]
    from: FromArgs,
}

/// Options of `phase2 finish`.
#[derive(Args, Debug)]
pub struct FinishArgs {
    /// The end of phase 1
    #[arg(long)]
    powers: PathBuf,
    #[command(flatten)]
    transcript: TranscriptArgs,
    /// The end of phase 2
    #[arg(long)]
    from: PathBuf,
    /// Folder for the key files; never one that is there
    #[arg(long)]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs a step of phase 1.
///
/// # Errors
/// Whatever the step meets.
pub(super) fn powers(command: PowersCommand) -> Result<()> {
    match command {
        PowersCommand::Start(out) => {
            let state = PowersState::new(Ring::BALANCE)?;
            write_new(&out.out, &state.encode())?;
            let text = format!("{}: for circuits of up to {} rows", out.out.display(), state.rows());
            print(out.json, &json!({"file": out.out, "rows": state.rows()}), text)
        }
        PowersCommand::Import(args) => {
            absent(&args.out.out)?;
            let state = imported(&args.transcript, args.transcript_log_size)?;
            write_new(&args.out.out, &state.encode())?;
            let (file, rows) = (&args.out.out, state.rows());
            let Some(transcript) = state.imported() else { bail!("nothing was imported") };
            let (hash, contributions) = (transcript.hash(), transcript.contributions());
            let text = format!(
                "{}: {contributions} contributions, for circuits of up to {rows} rows; compare with what was published:\n{hash}",
                file.display()
            );
            let output = json!({"file": file, "rows": rows, "contributions": contributions, "hash": hash});
            print(args.out.json, &output, text)
        }
        PowersCommand::Contribute(args) => {
            absent(&args.out.out)?;
            let mut state = read_powers(&args.from)?;
            match args.beacon() {
                Some(beacon) => state.close(beacon)?,
                None => state.contribute()?,
            }
            write_new(&args.out.out, &state.encode())?;
            args.print_last(&[("powers", state.contributions())])
        }
        PowersCommand::Verify(args) => {
            let (from, json) = (&args.from.from, args.from.json);
            let state = read_powers(from)?;
            let transcript = args.transcript.checked()?;
            state.verify(transcript.as_ref()).with_context(|| from.display().to_string())?;
            if let Err(unfinished) = state.finished() {
                eprintln!("not finished: {unfinished}");
            }
            listed(json, &[("powers", state.contributions())], state.imported().as_ref())
        }
    }
}

/// Runs a step of phase 2.
///
/// # Errors
/// Whatever the step meets.
pub(super) fn phase2(command: Phase2Command) -> Result<()> {
    match command {
        Phase2Command::Start(args) => {
            absent(&args.out.out)?;
            let (powers, transcript) = (read_powers(&args.powers)?, args.transcript.checked()?);
            let state = KeysState::new(&powers, transcript.as_ref(), Ring::BALANCE, &mut progress())?;
            write_new(&args.out.out, &state.encode())?;
            let file = &args.out.out;
            print(args.out.json, &json!({"file": file}), file.display().to_string())
        }
        Phase2Command::Contribute(args) => {
            absent(&args.out.out)?;
            let mut state = read_keys(&args.from)?;
            match args.beacon() {
                Some(beacon) => state.close(beacon)?,
                None => state.contribute()?,
            }
            write_new(&args.out.out, &state.encode())?;
            args.print_last(&of_circuits(&state))
        }
        Phase2Command::Verify(args) => {
            let (powers, state) = (read_powers(&args.powers)?, read_keys(&args.from.from)?);
            let transcript = args.transcript.checked()?;
            let verified = state.verify(&powers, transcript.as_ref(), Ring::BALANCE, &mut progress())?;
            if let Err(unfinished) = verified.finished() {
                eprintln!("not finished: {unfinished}");
            }
            let phases = [vec![("powers", powers.contributions())], of_circuits(&state)].concat();
            listed(args.from.json, &phases, transcript.as_ref())
        }
        Phase2Command::Finish(args) => {
            absent(&args.out)?;
            let (powers, state) = (read_powers(&args.powers)?, read_keys(&args.from)?);
            let transcript = args.transcript.checked()?;
            let verified = state.verify(&powers, transcript.as_ref(), Ring::BALANCE, &mut progress())?;
            if let Some(transcript) = &transcript {
                // Not among the keys' hashes, which are copied from standard output.
                eprintln!("{}", begun(transcript));
            }
            let pinned = verified.write(&args.out)?;
            super::print_keys(args.json, &pinned)
        }
    }
}

impl TranscriptArgs {
    /// The transcript, checked from its beginning; none where none is named.
    fn checked(&self) -> Result<Option<ImportedPowers>> {
        let Some(path) = &self.transcript else { return Ok(None) };
        Ok(imported(path, self.transcript_log_size)?.imported())
    }
}

/// A phase 1 that goes on from a transcript. Tells each round on standard error.
fn imported(path: &Path, log_size: u8) -> Result<PowersState> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let started = now();
    let mut done = |round: u32| {
        eprintln!("[{:6.1} s] round {round} of the transcript holds", started.elapsed().as_secs_f64());
    };
    PowersState::import(BufReader::new(file), log_size, Ring::BALANCE, &mut done)
        .with_context(|| path.display().to_string())
}

impl ContributeArgs {
    fn beacon(&self) -> Option<Beacon> {
        self.beacon.map(|value| Beacon { value, log_iterations: self.beacon_log_iterations })
    }

    /// Prints what the contributor publishes.
    fn print_last(&self, chains: &[(&'static str, Vec<Contributed>)]) -> Result<()> {
        let last: Vec<_> =
            chains.iter().filter_map(|(name, chain)| Some((*name, vec![*chain.last()?]))).collect();
        listed(self.out.json, &last, None)
    }
}

fn of_circuits(state: &KeysState) -> Vec<(&'static str, Vec<Contributed>)> {
    state.contributions().into_iter().map(|(circuit, chain)| (circuit.name(), chain)).collect()
}

/// A line for each contribution, or an object of lists; and what phase 1 went on from.
fn listed(
    json: bool,
    chains: &[(&'static str, Vec<Contributed>)],
    transcript: Option<&ImportedPowers>,
) -> Result<()> {
    let before = transcript.map(begun);
    let lines = chains.iter().flat_map(|(name, chain)| chain.iter().map(move |one| line(name, one)));
    let lines: Vec<String> = before.into_iter().chain(lines).collect();
    let mut objects: serde_json::Map<_, _> =
        chains.iter().map(|(name, chain)| ((*name).to_owned(), json!(chain))).collect();
    if let Some(transcript) = transcript {
        let (hash, contributions) = (transcript.hash(), transcript.contributions());
        objects.insert("transcript".to_owned(), json!({"hash": hash, "contributions": contributions}));
    }
    print(json, &objects, lines.join("\n"))
}

/// The transcript whose contributions count for phase 1, to be compared with what was published.
fn begun(transcript: &ImportedPowers) -> String {
    format!("transcript    {:>3} contributions  {}", transcript.contributions(), transcript.hash())
}

fn line(name: &str, one: &Contributed) -> String {
    let beacon = one
        .beacon
        .map(|beacon| format!("  beacon {} hashed 2^{} times", beacon.value, beacon.log_iterations));
    format!("{name:<13} {:>3}  {}{}", one.place, one.hash, beacon.unwrap_or_default())
}

/// Tells each part on standard error, with the time since the start.
fn progress() -> impl FnMut(Part) {
    let started = now();
    move |part| {
        let what = match part {
            Part::Powers => "checking phase 1".to_owned(),
            Part::Lagrange(rows) => format!("phase 1 for circuits of {rows} rows"),
            Part::Circuit(circuit) => format!("circuit {}", circuit.name()),
        };
        eprintln!("[{:6.1} s] {what}", started.elapsed().as_secs_f64());
    }
}

fn read_powers(path: &Path) -> Result<PowersState> {
    PowersState::decode(&read(path)?).with_context(|| path.display().to_string())
}

fn read_keys(path: &Path) -> Result<KeysState> {
    KeysState::decode(&read(path)?).with_context(|| path.display().to_string())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| path.display().to_string())
}
