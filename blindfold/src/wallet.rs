//! `blindfold wallet`: what a person does with keys, deposits and envelopes.

mod accuse;
mod bridge;
mod confidential;
mod fees;
mod force;
mod send;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use alloy_primitives::{
    Address, B256, Bytes, U256,
    utils::{Unit, parse_units},
};
use anyhow::{Context, Result, bail};
use blindfold_client::{Call, KeySource, Wallet, WalletEndpoints, keys};
use blindfold_l1::{L1Client, L1Writer};
use blindfold_protocol::{EnvelopeError, SigningKey};
use blindfold_rpc::{
    SequencerUrls,
    types::{EnvelopeState, Receipt},
};
use blindfold_runtime::rng;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::{
    address::address,
    roles::{L1Settings, load_chain},
};

/// Options of `blindfold wallet`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct WalletArgs {
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: WalletCommand,
}

const EXAMPLES: &str = "Examples:
  blindfold wallet new --keys ~/.blindfold/keys --password-file password
  blindfold wallet deposit 0.1ether --key key.json --password-file password --chain rollup.json --l1 http://127.0.0.1:8545
  blindfold wallet send 0x… 1ether --key key.json --password-file password --chain rollup.json \\
      --l1 http://127.0.0.1:8545 --node http://127.0.0.1:9580 --sequencer http://127.0.0.1:9545 --promise --wait
  blindfold wallet status 0x… …      where an envelope stands
  blindfold wallet check 0x… …       signature, certificate, place and hint of an envelope, checked against L1";

#[derive(Subcommand, Debug)]
enum WalletCommand {
    /// Make a key
    New {
        /// Folder of key files
        #[arg(long)]
        keys: PathBuf,
        /// File whose first line is the password
        #[arg(long, env = "BLINDFOLD_PASSWORD_FILE")]
        password_file: PathBuf,
    },
    /// Write an existing key, read from a file with 64 hexadecimal digits
    Import {
        /// File with the secret key
        secret_file: PathBuf,
        /// Folder of key files
        #[arg(long)]
        keys: PathBuf,
        /// File whose first line is the password
        #[arg(long, env = "BLINDFOLD_PASSWORD_FILE")]
        password_file: PathBuf,
    },
    /// List the keys of a folder
    List {
        /// Folder of key files
        #[arg(long)]
        keys: PathBuf,
    },
    /// Deposit into a fee account on L1; it counts once its L1 block is final
    Deposit {
        /// How much, for example 0.1ether, 5gwei, 1000wei
        amount: String,
        /// Whose fee account; the key's own by default
        #[arg(long, value_parser = address)]
        payer: Option<Address>,
        #[command(flatten)]
        key: KeyArgs,
        #[command(flatten)]
        chain: ChainArgs,
    },
    /// Send an encrypted transfer or call
    #[command(after_help = send::EXAMPLES)]
    Send(send::SendArgs),
    /// Send an envelope once more, as it was: it is executed once at most
    #[command(after_help = send::AGAIN_EXAMPLE)]
    SendAgain(send::AgainArgs),
    /// Where an envelope stands
    Status {
        /// Envelope id
        id: B256,
        #[command(flatten)]
        key: KeyArgs,
        #[command(flatten)]
        chain: ChainArgs,
        #[command(flatten)]
        servers: ServerArgs,
    },
    /// Force an encrypted transfer or call through L1, past a sequencer that leaves it out
    #[command(after_help = force::ENVELOPE_EXAMPLE)]
    ForceEnvelope(force::EnvelopeArgs),
    /// Force a transaction through L1 in the clear: everybody can read it, and it needs no committee
    #[command(after_help = force::TRANSACTION_EXAMPLE)]
    ForceTransaction(force::TransactionArgs),
    /// Bring ether from L1 to L2, with a call if wanted. Nothing leads back yet: see docs/l1.md
    #[command(after_help = bridge::EXAMPLE)]
    Bridge(bridge::BridgeArgs),
    /// Take ether out of a fee account
    #[command(subcommand, after_help = fees::EXAMPLES)]
    WithdrawFees(fees::FeesCommand),
    /// Accuse the sequencer on L1 of having broken a signed promise; stakes 0.1 ether
    #[command(after_help = accuse::EXAMPLE)]
    Accuse(accuse::AccuseArgs),
    /// Take the sequencer's bond for an accusation that nobody answered in time
    #[command(after_help = accuse::SLASH_EXAMPLE)]
    Slash(accuse::SlashArgs),
    /// Balances that only their owners read, and an auditor
    #[command(subcommand, after_help = confidential::EXAMPLES)]
    Confidential(confidential::ConfidentialCommand),
    /// Check signature, certificate, place and hint of an envelope against L1
    Check {
        /// Envelope id
        id: B256,
        #[command(flatten)]
        key: KeyArgs,
        #[command(flatten)]
        chain: ChainArgs,
        #[command(flatten)]
        servers: ServerArgs,
    },
}

#[derive(Args, Debug)]
struct KeyArgs {
    /// Key file (Ethereum keystore V3)
    #[arg(long, env = "BLINDFOLD_KEY")]
    key: PathBuf,
    /// File whose first line is the password
    #[arg(long, env = "BLINDFOLD_PASSWORD_FILE")]
    password_file: PathBuf,
}

#[derive(Args, Debug)]
struct ChainArgs {
    /// The chain's settings, rollup.json
    #[arg(long, env = "BLINDFOLD_CHAIN")]
    chain: PathBuf,
    /// Your L1 node
    #[arg(long, env = "BLINDFOLD_L1")]
    l1: String,
    /// Hash of the committee's key that you have from elsewhere
    #[arg(long)]
    pinned_key_hash: Option<B256>,
}

#[derive(Args, Debug)]
struct ServerArgs {
    /// Your own full node
    #[arg(long, env = "BLINDFOLD_NODE_URL")]
    node: String,
    /// The sequencer; it gets the envelope and nothing else. Repeatable, or with commas: where several stand by for each
    /// other, whichever leads gets it
    #[arg(long = "sequencer", env = "BLINDFOLD_SEQUENCER_URLS", value_delimiter = ',', required = true)]
    sequencers: Vec<String>,
}

impl KeyArgs {
    fn open(&self) -> Result<SigningKey> {
        let source = KeySource {
            file: self.key.clone(),
            password_file: Some(self.password_file.clone()),
            password_env: None,
        };
        Ok(source.open()?)
    }
}

/// Runs one wallet command.
///
/// # Errors
/// Whatever the command meets.
pub async fn run(args: WalletArgs) -> Result<()> {
    let json = args.json;
    match args.command {
        WalletCommand::New { keys, password_file } => {
            let key = SigningKey::random(&mut rng());
            stored(&key, &keys, &password_file, json)
        }
        WalletCommand::Import { secret_file, keys, password_file } => {
            let text = std::fs::read_to_string(&secret_file)
                .with_context(|| format!("cannot read the secret key in {}", secret_file.display()))?;
            let text = zeroize::Zeroizing::new(text);
            let digits = text.trim().trim_start_matches("0x");
            let bytes = zeroize::Zeroizing::new(
                hex::decode(digits).context("the secret key is 64 hexadecimal digits")?,
            );
            let scalar: &[u8; 32] =
                bytes.as_slice().try_into().context("the secret key is 64 hexadecimal digits")?;
            stored(&SigningKey::from_bytes(scalar)?, &keys, &password_file, json)
        }
        WalletCommand::List { keys } => {
            let listed = keys::list(&keys)?;
            let lines: Vec<String> = listed
                .iter()
                .map(|(address, path)| {
                    let address = address.map_or("address unknown".to_owned(), |address| address.to_string());
                    format!("{address:<42}  {}", path.display())
                })
                .collect();
            print(json, &listed, lines.join("\n"))
        }
        WalletCommand::Deposit { amount, payer, key, chain, .. } => {
            deposit(&amount, payer, &key, &chain, json).await
        }
        WalletCommand::Send(args) => send::run(&args, json).await,
        WalletCommand::SendAgain(args) => send::again(&args, json).await,
        WalletCommand::ForceEnvelope(args) => force::envelope(&args, json).await,
        WalletCommand::ForceTransaction(args) => force::transaction(&args, json).await,
        WalletCommand::Bridge(args) => bridge::run(&args, json).await,
        WalletCommand::WithdrawFees(command) => fees::run(&command, json).await,
        WalletCommand::Accuse(args) => accuse::run(&args, json).await,
        WalletCommand::Confidential(command) => confidential::run(command, json).await,
        WalletCommand::Slash(args) => accuse::slash(&args, json).await,
        WalletCommand::Status { id, key, chain, servers } => {
            let Some(receipt) = wallet(&key, &chain, &servers).await?.receipt(id).await? else {
                bail!("your node does not know envelope {id} (it knows certified batches only)");
            };
            print(json, &receipt, standing(&receipt))
        }
        WalletCommand::Check { id, key, chain, servers } => {
            let inclusion = wallet(&key, &chain, &servers).await?.check(id).await?;
            let text = format!(
                "checked: batch {} index {}, header {}, certified by {} members, hint {:?}",
                inclusion.number, inclusion.index, inclusion.header_hash, inclusion.signers, inclusion.hint
            );
            print(json, &inclusion, text)
        }
    }
}

/// Where an envelope stands. What a batch left out may be a copy with another proof or signature, for those do not change
/// the id; and what kept it out may pass.
fn standing(receipt: &Receipt) -> String {
    let reason = receipt.reason.as_deref();
    let suffix = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let unopened =
        receipt.state == EnvelopeState::Skipped && reason.and_then(EnvelopeError::from_name).is_some();
    let note = if unopened { "; it, or a copy of it: until it expires it may still be executed" } else { "" };
    format!("{}  {:?}{suffix}{note}", receipt.id, receipt.state)
}

/// A call that is made on L2, whichever way it goes there.
#[derive(Args, Debug)]
struct CallArgs {
    /// Whom
    #[arg(value_parser = address)]
    to: Address,
    /// How much, for example 1ether
    amount: String,
    /// Input of the call, 0x-hex
    #[arg(long, default_value = "0x")]
    data: Bytes,
    /// Gas limit; the node estimates by default
    #[arg(long)]
    gas: Option<u64>,
    /// Nonce; the node tells by default
    #[arg(long)]
    nonce: Option<u64>,
}

impl CallArgs {
    fn call(&self) -> Result<Call> {
        let (value, input) = (wei(&self.amount)?, self.data.clone());
        Ok(Call { to: self.to, value, input, gas_limit: self.gas, nonce: self.nonce })
    }
}

/// Who pays on L1, where that is not the wallet's own key.
#[derive(Args, Debug)]
struct PayerArgs {
    /// Key file of the account that pays on L1; the wallet's key by default
    #[arg(long)]
    l1_key: Option<PathBuf>,
    /// File whose first line is its password; the wallet's by default
    #[arg(long, requires = "l1_key")]
    l1_password_file: Option<PathBuf>,
}

impl PayerArgs {
    fn open(&self, own: &KeyArgs) -> Result<SigningKey> {
        let Some(file) = &self.l1_key else { return own.open() };
        let password_file = self.l1_password_file.clone().unwrap_or_else(|| own.password_file.clone());
        let source = KeySource { file: file.clone(), password_file: Some(password_file), password_env: None };
        Ok(source.open()?)
    }
}

/// A wallet that asks the sequencer nothing: what L1 is for when the sequencer does not do its part.
async fn wallet_without_sequencer(
    key: &KeyArgs,
    chain: &ChainArgs,
    node: &str,
) -> Result<(Wallet, L1Client)> {
    let key = key.open()?;
    let (settings, l1) = connected(chain).await?;
    let endpoints = WalletEndpoints { node: node.to_owned(), sequencers: node.into() };
    let source = Arc::new(l1.clone());
    Ok((Wallet::new((*settings).clone(), key, &endpoints, source, chain.pinned_key_hash)?, l1))
}

/// Wei as people read it, without what is zero at the end.
pub(crate) fn ether(wei: impl Into<U256>) -> String {
    let text = alloy_primitives::utils::format_ether(wei.into());
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{} ether", if text.is_empty() { "0" } else { text })
}

/// Wei that fit the contracts' 128 bits.
pub(crate) fn wei_u128(text: &str) -> Result<u128> {
    u128::try_from(wei(text)?).context("the amount does not fit 128 bits")
}

fn stored(key: &SigningKey, dir: &Path, password_file: &Path, json: bool) -> Result<()> {
    let path = dir.join(keys::file_name(&key.address()));
    let source =
        KeySource { file: path.clone(), password_file: Some(password_file.to_owned()), password_env: None };
    keys::store(key, &path, &source.password()?)?;
    print(
        json,
        &serde_json::json!({"address": key.address(), "file": path}),
        format!("{}  {}", key.address(), path.display()),
    )
}

async fn connected(chain: &ChainArgs) -> Result<(Arc<blindfold_protocol::ChainConfig>, L1Client)> {
    let settings = load_chain(&chain.chain)?;
    let l1 = L1Settings::new(chain.l1.as_str()).connect(&settings).await?;
    Ok((settings, l1))
}

async fn wallet(key: &KeyArgs, chain: &ChainArgs, servers: &ServerArgs) -> Result<Wallet> {
    let key = key.open()?;
    let (settings, l1) = connected(chain).await?;
    let sequencers = SequencerUrls::new(servers.sequencers.iter().map(|url| url.trim()));
    sequencers.check()?;
    let endpoints = WalletEndpoints { node: servers.node.clone(), sequencers };
    Ok(Wallet::new((*settings).clone(), key, &endpoints, Arc::new(l1), chain.pinned_key_hash)?)
}

async fn deposit(
    amount: &str,
    payer: Option<Address>,
    key: &KeyArgs,
    chain: &ChainArgs,
    json: bool,
) -> Result<()> {
    let key = key.open()?;
    let payer = payer.unwrap_or(key.address());
    let amount = wei_u128(amount)?;
    let (_, l1) = connected(chain).await?;
    let sent = L1Writer::new(l1, key).deposit(payer, amount).await?;
    let text = format!(
        "deposited {amount} wei for {payer} in L1 block {} ({}); counts once that is final",
        sent.block, sent.transaction
    );
    print(
        json,
        &serde_json::json!({"payer": payer, "amount": format!("{amount:#x}"), "transaction": sent.transaction, "block": sent.block}),
        text,
    )
}

pub(crate) fn print(json: bool, value: &impl Serialize, text: String) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string_pretty(value)?);
    } else {
        println!("{text}");
    }
    Ok(())
}

/// Reads an amount with its unit; a bare number is refused, because wei and ether are easily confused.
pub(crate) fn wei(text: &str) -> Result<U256> {
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .context("an amount needs its unit: 1ether, 5gwei, 1000wei")?;
    let (number, unit) = text.split_at(split);
    if !number.contains(|c: char| c.is_ascii_digit()) {
        bail!("{text} has a unit and no number");
    }
    // The library cuts off what does not fit: half a wei would become none.
    let decimals = unit.parse::<Unit>().with_context(|| format!("{unit} is no unit"))?.get();
    let fraction = number.trim().split_once('.').map_or(0, |(_, fraction)| fraction.len());
    if fraction > usize::from(decimals) {
        bail!("{text} has more than the {decimals} decimals of its unit");
    }
    let units = parse_units(number.trim(), unit).with_context(|| format!("{text} is no amount"))?;
    if units.is_negative() {
        bail!("{text} is negative");
    }
    Ok(units.get_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wei_are_read_in_ether() {
        for (wei, text) in [
            (0, "0 ether"),
            (1, "0.000000000000000001 ether"),
            (10u128.pow(17), "0.1 ether"),
            (10u128.pow(19), "10 ether"),
        ] {
            assert_eq!(ether(U256::from(wei)), text);
        }
    }

    #[test]
    fn amounts_carry_their_unit() {
        assert_eq!(wei("1ether").unwrap(), U256::from(10u128.pow(18)));
        assert_eq!(wei("0.5 gwei").unwrap(), U256::from(500_000_000u64));
        assert_eq!(wei("7wei").unwrap(), U256::from(7));
        for bad in ["1", "", "ether", "-1ether", "1 stone", "1.5wei"] {
            assert!(wei(bad).is_err(), "{bad}");
        }
    }
}
