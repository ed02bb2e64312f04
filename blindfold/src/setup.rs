//! `blindfold coprocessor setup`: the circuits' keys, and the constants of a deployment.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use alloy_primitives::{Address, B256, Bytes};
use anyhow::{Context, Result, bail};
use blindfold_client::confidential::{Allocation, ConfidentialDeployment, provers};
use blindfold_confidential::Ring;
use blindfold_rlwe::rlwe::{Parameters, PublicPolynomial, SecretKey};
use clap::{Args, Subcommand};

use crate::wallet::print;

mod ceremony;

use ceremony::{Phase2Command, PowersCommand};

/// What `blindfold coprocessor setup` does.
#[derive(Subcommand, Debug)]
pub enum SetupCommand {
    /// Make keys from one seed (development only: whoever knows the seed can forge proofs)
    #[command(after_help = "Example:\n  blindfold coprocessor setup dev --out confidential-keys")]
    Dev(DevArgs),
    /// Phase 1 of a ceremony: powers of τ for every circuit
    #[command(subcommand)]
    Powers(PowersCommand),
    /// Phase 2 of a ceremony: the circuits' keys
    #[command(subcommand)]
    Phase2(Phase2Command),
    /// Write confidential.json, and an auditor's key where none is given
    #[command(
        after_help = "Example:\n  blindfold coprocessor setup deployment --keys confidential-keys --contract 0x… --operator 0x… \\\n    --minimum-fee 10 --allocate 0x…=1000000 --auditor-key auditor.key --out confidential.json"
    )]
    Deployment(DeploymentArgs),
}

/// Options of `setup dev`.
#[derive(Args, Debug)]
pub struct DevArgs {
    /// Folder for the key files
    #[arg(long)]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options of `setup deployment`.
#[derive(Args, Debug)]
pub struct DeploymentArgs {
    /// Folder of the key files
    #[arg(long)]
    keys: PathBuf,
    /// The contract that signatures and proofs are bound to
    #[arg(long)]
    contract: Address,
    /// Who earns the fees
    #[arg(long)]
    operator: Address,
    /// The least fee of a transfer, in base units
    #[arg(long)]
    minimum_fee: u64,
    /// A public balance of the first state. Repeatable
    #[arg(long = "allocate", value_name = "ADDRESS=UNITS")]
    allocations: Vec<String>,
    /// File with the auditor's seed, 64 hexadecimal digits; made where it is missing. Who has it reads every amount
    #[arg(long)]
    auditor_key: PathBuf,
    /// The file to write
    #[arg(long)]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs one set-up command.
///
/// # Errors
/// Whatever the command meets.
pub async fn run(command: SetupCommand) -> Result<()> {
    tokio::task::spawn_blocking(move || match command {
        SetupCommand::Dev(args) => {
            eprintln!("a development set-up: this process knows what proofs are forged with until it ends");
            let pinned = development_keys(&args.out)?;
            print_keys(args.json, &pinned)
        }
        SetupCommand::Powers(command) => ceremony::powers(command),
        SetupCommand::Phase2(command) => ceremony::phase2(command),
        SetupCommand::Deployment(args) => deployment(&args),
    })
    .await?
}

fn print_keys(json: bool, pinned: &provers::Pinned) -> Result<()> {
    let lines: Vec<String> =
        pinned.iter().map(|(circuit, hashes)| format!("{circuit:<13} {}", hashes.verifying)).collect();
    print(json, pinned, lines.join("\n"))
}

/// Keys of all circuits from a random seed, with a line on standard error for each.
///
/// # Errors
/// When a file cannot be written.
pub fn development_keys(dir: &Path) -> Result<provers::Pinned> {
    let started = Instant::now();
    let seed: [u8; 32] = rand::random();
    let mut told = |circuit: provers::ConfidentialCircuit| {
        eprintln!("[{:6.1} s] keys of the circuit {}", started.elapsed().as_secs_f64(), circuit.name());
    };
    Ok(provers::development(dir, Ring::BALANCE, &seed, &mut told)?)
}

fn deployment(args: &DeploymentArgs) -> Result<()> {
    let auditor = match read_seed(&args.auditor_key) {
        Ok(seed) => seed,
        Err(_) if !args.auditor_key.exists() => {
            let seed: [u8; 32] = rand::random();
            write_secret(&args.auditor_key, &format!("{}\n", hex::encode(seed)))?;
            seed
        }
        Err(error) => return Err(error),
    };
    let allocations =
        args.allocations.iter().map(|text| allocation(text)).collect::<Result<Vec<Allocation>>>()?;
    provers::absent(&args.out)?;
    provers::check_circuits(&args.keys, Ring::BALANCE)?;
    let file = ConfidentialDeployment {
        keys: provers::pinned_in(&args.keys)?,
        ..made((args.contract, args.operator), args.minimum_fee, allocations, &auditor)?
    };
    file.genesis()?;
    let text = serde_json::to_string_pretty(&file)?;
    provers::write_new(&args.out, text.as_bytes())?;
    print(args.json, &file, format!("{}", args.out.display()))
}

/// A deployment with a fresh public polynomial and without keys.
///
/// # Errors
/// When the scheme's own numbers are refused; a mistake of this program.
pub fn made(
    (contract, operator): (Address, Address),
    minimum_fee: u64,
    allocations: Vec<Allocation>,
    auditor: &[u8; 32],
) -> Result<ConfidentialDeployment> {
    let seed: [u8; 32] = rand::random();
    let public = PublicPolynomial::new(&Parameters::balance()?, &seed)?;
    let auditor_key = SecretKey::derive(&Arc::clone(&public), auditor).public_key();
    Ok(ConfidentialDeployment {
        contract,
        seed: B256::from(seed),
        auditor_key: Bytes::from(auditor_key.encode()),
        operator,
        minimum_fee,
        allocations,
        keys: provers::Pinned::new(),
    })
}

fn allocation(text: &str) -> Result<Allocation> {
    let wrong = || format!("--allocate {text}: expected ADDRESS=UNITS");
    let (owner, balance) = text.split_once('=').with_context(wrong)?;
    Ok(Allocation {
        owner: owner.parse().with_context(wrong)?,
        balance: balance.parse().with_context(wrong)?,
    })
}

/// A seed of 64 hexadecimal digits.
///
/// # Errors
/// A file that cannot be read or holds something else.
pub fn read_seed(path: &Path) -> Result<[u8; 32]> {
    let text = zeroize::Zeroizing::new(
        std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?,
    );
    let mut seed = [0; 32];
    if hex::decode_to_slice(text.trim().trim_start_matches("0x"), &mut seed).is_err() {
        bail!("{} does not hold 64 hexadecimal digits", path.display());
    }
    Ok(seed)
}

/// Writes a file that only its owner can read; never over one that is there.
///
/// # Errors
/// When it cannot be written.
pub fn write_secret(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("{}", path.display()))?;
    file.write_all(text.as_bytes()).with_context(|| format!("{}", path.display()))
}
