//! `blindfold coprocessor setup`: the circuits' keys, and the constants of a deployment.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use alloy_primitives::{Address, B256, Bytes};
use anyhow::{Context, Result};
use blindfold_client::{
    KeySource,
    confidential::{Allocation, ConfidentialDeployment, provers},
    keys,
};
use blindfold_confidential::Ring;
use blindfold_rlwe::rlwe::{Parameters, PublicPolynomial, SecretKey};
use blindfold_runtime::{blocking, now, random};
use clap::{Args, Subcommand};
use zeroize::Zeroizing;

use crate::{address::address, wallet::print};

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
        after_help = "Example:\n  blindfold coprocessor setup deployment --keys confidential-keys --contract 0x… --operator 0x… \\\n    --minimum-fee 10 --allocate 0x…=1000000 --auditor-key auditor.json --auditor-password-file password --out confidential.json"
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
    #[arg(long, value_parser = address)]
    contract: Address,
    /// Who earns the fees
    #[arg(long, value_parser = address)]
    operator: Address,
    /// The least fee of a transfer, in base units
    #[arg(long)]
    minimum_fee: u64,
    /// A public balance of the first state. Repeatable
    #[arg(long = "allocate", value_name = "ADDRESS=UNITS")]
    allocations: Vec<String>,
    /// The auditor's key file (Ethereum keystore V3); made where it is missing. Who opens it reads every amount
    #[arg(long)]
    auditor_key: PathBuf,
    /// File whose first line is its password
    #[arg(long, env = "BLINDFOLD_AUDITOR_PASSWORD_FILE")]
    auditor_password_file: PathBuf,
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
    blocking(move || match command {
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
    let started = now();
    let seed: [u8; 32] = random();
    let mut report = |circuit: provers::ConfidentialCircuit| {
        eprintln!("[{:6.1} s] keys of the circuit {}", started.elapsed().as_secs_f64(), circuit.name());
    };
    Ok(provers::development(dir, Ring::BALANCE, &seed, &mut report)?)
}

fn deployment(args: &DeploymentArgs) -> Result<()> {
    let allocations =
        args.allocations.iter().map(|text| allocation(text)).collect::<Result<Vec<Allocation>>>()?;
    provers::absent(&args.out)?;
    provers::check_circuits(&args.keys, Ring::BALANCE)?;
    let password = &args.auditor_password_file;
    if !args.auditor_key.exists() {
        keys::create(&args.auditor_key, &key_source(&args.auditor_key, password).password()?)?;
    }
    let auditor = auditor_seed(&args.auditor_key, password)?;
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
    let seed: [u8; 32] = random();
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
        owner: address(owner).with_context(wrong)?,
        balance: balance.parse().with_context(wrong)?,
    })
}

fn key_source(file: &Path, password_file: &Path) -> KeySource {
    KeySource { file: file.to_owned(), password_file: Some(password_file.to_owned()), password_env: None }
}

/// The auditor's seed, from a key file like all others: its 32 bytes are the seed.
///
/// # Errors
/// A file that is no key file, or a password that does not open it.
pub fn auditor_seed(file: &Path, password_file: &Path) -> Result<Zeroizing<[u8; 32]>> {
    let key = key_source(file, password_file).open()?;
    let mut seed = Zeroizing::new([0; 32]);
    seed.copy_from_slice(&key.to_bytes()[..]);
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_auditors_seed_lies_in_an_encrypted_key_file() {
        let dir = tempfile::tempdir().unwrap();
        let (file, password) = (dir.path().join("auditor.json"), dir.path().join("password"));
        fs::write(&password, "of the auditor\n").unwrap();
        keys::create(&file, "of the auditor").unwrap();
        let seed = auditor_seed(&file, &password).unwrap();
        assert!(!fs::read_to_string(&file).unwrap().contains(&hex::encode(*seed)));
        assert_eq!(*auditor_seed(&file, &password).unwrap(), *seed);
        fs::write(&password, "another\n").unwrap();
        assert!(auditor_seed(&file, &password).is_err());
        // A seed in the clear, as it once was.
        fs::write(&file, format!("{}\n", hex::encode(*seed))).unwrap();
        assert!(format!("{:#}", auditor_seed(&file, &password).unwrap_err()).contains("key file"));
    }
}
