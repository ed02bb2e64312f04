//! `blindfold wallet confidential`: balances that only their owners read.

mod invoice;

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    time::Duration,
};

use alloy_primitives::{Address, B256};
use anyhow::{Context, Result, bail};
use blindfold_client::Wallet;
use blindfold_client::confidential::provers::{self, Progress, Proving, ProvingKeys};
use blindfold_client::confidential::{Auditor, ConfidentialWallet, Made, Outcome, VerifiedState};
use blindfold_runtime::now;
use blindfold_store::StoreUrl;
use clap::{Args, Subcommand};
use tokio::time::sleep;

use super::{ChainArgs, KeyArgs, ServerArgs, print, send::hand_over, wallet};
use crate::{
    address::address,
    roles::{executed_here, load_chain, load_deployment, store_named},
    setup::auditor_seed,
};

/// Examples of the commands.
pub(crate) const EXAMPLES: &str = "Examples, with what every command needs in the environment:
  export BLINDFOLD_KEY=key.json BLINDFOLD_PASSWORD_FILE=password BLINDFOLD_CHAIN=rollup.json \\
      BLINDFOLD_L1=http://127.0.0.1:8545 BLINDFOLD_NODE_URL=http://127.0.0.1:9580 \\
      BLINDFOLD_SEQUENCER_URLS=http://127.0.0.1:9545 BLINDFOLD_CONFIDENTIAL=confidential.json \\
      BLINDFOLD_CONFIDENTIAL_KEYS=confidential-keys BLINDFOLD_COPROCESSOR_DATA=coprocessor
  blindfold wallet confidential register --wait
  blindfold wallet confidential deposit 1000 --wait
  blindfold wallet confidential rollover --wait
  blindfold wallet confidential send 0x… 250 --wait
  blindfold wallet confidential balance

Each has a flag, too (`blindfold wallet confidential send --help`). Amounts are whole base units. The account's secret
follows from the key: the key is all there is to keep. Only what a coprocessor of yours executed on this machine is
decrypted: BLINDFOLD_COPROCESSOR_DATA is its folder.";

/// How often a waiting wallet asks for the outcome.
const POLL_INTERVAL_MS: u64 = 200;

/// What a wallet does with confidential balances.
#[derive(Subcommand, Debug)]
pub(crate) enum ConfidentialCommand {
    /// Open the confidential account of this key
    Register(ProveArgs),
    /// Move public base units into a confidential account
    Deposit {
        /// Base units
        amount: u64,
        /// Whose account; the key's own by default
        #[arg(long, value_parser = address)]
        to: Option<Address>,
        #[command(flatten)]
        send: SendArgs,
    },
    /// Pay an amount that only sender, receiver and auditor can read
    Send {
        /// Whom
        #[arg(value_parser = address)]
        to: Address,
        /// Base units
        amount: u64,
        /// Base units for the operator; the deployment's least fee by default
        #[arg(long)]
        fee: Option<u64>,
        #[command(flatten)]
        prove: ProveArgs,
    },
    /// Make available what came since the last rollover
    Rollover(SendArgs),
    /// Encrypt the available balance anew, so that its counter starts again
    Refresh(ProveArgs),
    /// Pay public base units out of the account
    Withdraw {
        /// Base units
        amount: u64,
        /// Who is paid; the key's own address by default
        #[arg(long, value_parser = address)]
        to: Option<Address>,
        #[command(flatten)]
        prove: ProveArgs,
    },
    /// What the account holds. With the key alone: nothing else is needed to recover an account
    Balance {
        #[command(flatten)]
        key: KeyArgs,
        #[command(flatten)]
        at: DeploymentArgs,
    },
    /// What happened to the account
    History {
        #[command(flatten)]
        key: KeyArgs,
        #[command(flatten)]
        at: DeploymentArgs,
    },
    /// Refused transactions of this key that somebody who has their bytes can still have applied
    Payments {
        #[command(flatten)]
        key: KeyArgs,
        #[command(flatten)]
        at: DeploymentArgs,
        /// Folder of the circuits' keys
        #[arg(long, env = "BLINDFOLD_CONFIDENTIAL_KEYS")]
        proving_keys: PathBuf,
    },
    /// Read the transfers of an account with the auditor's key
    Audit {
        /// Whose transfers
        #[arg(value_parser = address)]
        owner: Address,
        /// The auditor's key file
        #[arg(long)]
        auditor_key: PathBuf,
        /// File whose first line is its password
        #[arg(long, env = "BLINDFOLD_AUDITOR_PASSWORD_FILE")]
        auditor_password_file: PathBuf,
        #[command(flatten)]
        at: DeploymentArgs,
    },
    /// Total an invoice whose prices the payer does not see, and whose quantities the supplier does not
    #[command(subcommand, after_help = invoice::EXAMPLES)]
    Invoice(invoice::InvoiceCommand),
}

/// Where a coprocessor of one's own keeps what it executed.
#[derive(Args, Debug)]
pub(crate) struct ExecutedArgs {
    /// Folder of your own coprocessor's files (its data_dir), or its store.url: what it executed is what is decrypted
    #[arg(long, value_name = "FOLDER or URL", env = "BLINDFOLD_COPROCESSOR_DATA")]
    coprocessor_data: String,
    /// File whose first line is the password of that store's PostgreSQL user
    #[arg(long, value_name = "FILE", env = "BLINDFOLD_COPROCESSOR_PASSWORD_FILE")]
    coprocessor_password_file: Option<PathBuf>,
}

impl ExecutedArgs {
    fn store(&self) -> Result<StoreUrl> {
        store_named(&self.coprocessor_data, self.coprocessor_password_file.as_deref())
            .context("--coprocessor-data")
    }
}

/// Where a deployment of confidential balances is.
#[derive(Args, Debug)]
pub(crate) struct DeploymentArgs {
    /// The chain's settings, rollup.json
    #[arg(long, env = "BLINDFOLD_CHAIN")]
    chain: PathBuf,
    /// The deployment, confidential.json
    #[arg(long, env = "BLINDFOLD_CONFIDENTIAL")]
    deployment: PathBuf,
    #[command(flatten)]
    executed: ExecutedArgs,
}

/// What sending needs.
#[derive(Args, Debug)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    chain: ChainArgs,
    #[command(flatten)]
    servers: ServerArgs,
    /// The deployment, confidential.json
    #[arg(long, env = "BLINDFOLD_CONFIDENTIAL")]
    deployment: PathBuf,
    #[command(flatten)]
    executed: ExecutedArgs,
    /// Wait for the outcome, this many seconds at most
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60")]
    wait: Option<u64>,
}

/// What sending needs where there is something to prove.
#[derive(Args, Debug)]
pub(crate) struct ProveArgs {
    #[command(flatten)]
    send: SendArgs,
    /// Folder of the circuits' proving keys
    #[arg(long, env = "BLINDFOLD_CONFIDENTIAL_KEYS")]
    proving_keys: PathBuf,
}

async fn opened(
    key: &KeyArgs,
    chain: &Path,
    deployment: &Path,
    executed: &ExecutedArgs,
) -> Result<ConfidentialWallet> {
    let (public, state) =
        executed_here(&load_deployment(deployment)?, &*load_chain(chain)?, &executed.store()?).await?;
    Ok(ConfidentialWallet::new(state, public, key.open()?))
}

impl ProveArgs {
    /// Where the deployment's proving keys are.
    fn keys(&self) -> Result<ProvingKeys> {
        let pinned = load_deployment(&self.send.deployment)?.keys;
        Ok(ProvingKeys::new(self.proving_keys.clone(), pinned))
    }
}

impl SendArgs {
    async fn opened(&self) -> Result<(ConfidentialWallet, Wallet)> {
        let confidential = opened(&self.key, &self.chain.chain, &self.deployment, &self.executed).await?;
        Ok((confidential, wallet(&self.key, &self.chain, &self.servers).await?))
    }

    /// Sends what was made, and waits for the outcome where asked to.
    async fn send(
        &self,
        confidential: &ConfidentialWallet,
        wallet: &Wallet,
        made: Made,
        json: bool,
    ) -> Result<()> {
        let prepared = wallet.prepare_confidential(made.id, made.bytes).await?;
        let sent = hand_over(wallet, &prepared, false, None).await?;
        let text = format!("envelope {}  transaction {}", sent.envelope, made.id);
        let Some(seconds) = self.wait else { return print(json, &sent, text) };
        if !json {
            println!("{text}");
        }
        let outcome = match outcome(confidential.state(), made.id, seconds).await {
            Ok(outcome) => outcome,
            Err(error) => {
                if json {
                    print(json, &serde_json::json!({"sent": sent, "outcome": null}), String::new())?;
                }
                return Err(error);
            }
        };
        let line = match &outcome.reason {
            None => format!("applied in batch {}, version {}", outcome.number, outcome.version),
            Some(reason) => format!(
                "refused in batch {}: {reason}. Whoever has its bytes may send it again, as long as its nonce is the \
                 account's next: see `payments`; a rollover uses the nonce",
                outcome.number
            ),
        };
        print(json, &serde_json::json!({"sent": sent, "outcome": outcome}), line)?;
        match outcome.reason {
            None => Ok(()),
            Some(reason) => bail!("the transaction was refused: {reason} (docs/coprocessor.md)"),
        }
    }
}

async fn outcome(state: &VerifiedState, id: B256, seconds: u64) -> Result<Outcome> {
    let deadline = now() + Duration::from_secs(seconds);
    loop {
        if let Some(outcome) = state.outcome(id).await? {
            return Ok(outcome);
        }
        if now() > deadline {
            bail!(
                "the coprocessor has not executed {id} after {seconds} s; its envelope stays valid until it expires"
            );
        }
        sleep(Duration::from_millis(POLL_INTERVAL_MS)).await;
    }
}

/// Tells where proving stands: one line that is written over on a terminal, a line for each part elsewhere.
fn progress() -> Progress {
    let (started, terminal) = (now(), std::io::stderr().is_terminal());
    Box::new(move |part| {
        let what = match part {
            Proving::Key => "reading the proving key".to_owned(),
            Proving::Stage(stage) => format!("proving: {stage:?}").to_lowercase(),
            Proving::Check => "verifying the proof".to_owned(),
        };
        let line = format!("[{:6.1} s] {what}", started.elapsed().as_secs_f64());
        if terminal {
            eprint!("\r\x1b[K{line}\r");
        } else {
            eprintln!("{line}");
        }
    })
}

/// Runs one command.
///
/// # Errors
/// Whatever the command meets.
pub(crate) async fn run(command: ConfidentialCommand, json: bool) -> Result<()> {
    use ConfidentialCommand as C;
    match command {
        C::Register(prove) => {
            let (confidential, wallet) = prove.send.opened().await?;
            let made = confidential.register(&prove.keys()?, progress()).await?;
            prove.send.send(&confidential, &wallet, made, json).await
        }
        C::Deposit { amount, to, send } => {
            let (confidential, wallet) = send.opened().await?;
            let made = confidential.deposit(to.unwrap_or(confidential.address()), amount).await?;
            send.send(&confidential, &wallet, made, json).await
        }
        C::Send { to, amount, fee, prove } => {
            let (confidential, wallet) = prove.send.opened().await?;
            let made = confidential.send(to, amount, fee, &prove.keys()?, progress()).await?;
            prove.send.send(&confidential, &wallet, made, json).await
        }
        C::Rollover(send) => {
            let (confidential, wallet) = send.opened().await?;
            let made = confidential.rollover().await?;
            send.send(&confidential, &wallet, made, json).await
        }
        C::Refresh(prove) => {
            let (confidential, wallet) = prove.send.opened().await?;
            let made = confidential.refresh(&prove.keys()?, progress()).await?;
            prove.send.send(&confidential, &wallet, made, json).await
        }
        C::Withdraw { amount, to, prove } => {
            let (confidential, wallet) = prove.send.opened().await?;
            let to = to.unwrap_or(confidential.address());
            let made = confidential.withdraw(to, amount, &prove.keys()?, progress()).await?;
            prove.send.send(&confidential, &wallet, made, json).await
        }
        C::Balance { key, at } => {
            let balances = at.wallet(&key).await?.balances().await?;
            let advice = balances.advice.map(|advice| format!("\nadvice     {advice}")).unwrap_or_default();
            let text = format!(
                "available  {}  ({} terms)\npending    {}  ({} terms)\npublic     {}{advice}",
                balances.available,
                balances.available_terms,
                balances.pending,
                balances.pending_terms,
                balances.public
            );
            print(json, &balances, text)
        }
        C::History { key, at } => {
            let entries = at.wallet(&key).await?.history().await?;
            let lines: Vec<String> = entries
                .iter()
                .map(|entry| {
                    let with = entry.with.map(|with| format!("  {with}")).unwrap_or_default();
                    format!("{:>8}  {:<8}  {:>+20}{with}", entry.sequence, entry.kind, entry.change)
                })
                .collect();
            print(json, &entries, lines.join("\n"))
        }
        C::Payments { key, at, proving_keys } => {
            let pinned = load_deployment(&at.deployment)?.keys;
            // Whose keys they are matters to executors; here they only tell which payments are the owner's.
            let proofs = provers::verifiers(&proving_keys, &pinned, true)?;
            let open = at.wallet(&key).await?.open_payments(&proofs).await?;
            let lines: Vec<String> = open
                .iter()
                .map(|one| {
                    let to = one.to.map(|to| format!("  to {to}")).unwrap_or_default();
                    format!("{}  {}{to}  nonce {}  refused: {}", one.id, one.kind, one.nonce, one.reason)
                })
                .collect();
            print(json, &open, lines.join("\n"))
        }
        C::Audit { owner, auditor_key, auditor_password_file, at } => {
            audit(owner, (&auditor_key, &auditor_password_file), &at, json).await
        }
        C::Invoice(command) => invoice::run(command, json).await,
    }
}

impl DeploymentArgs {
    async fn wallet(&self, key: &KeyArgs) -> Result<ConfidentialWallet> {
        opened(key, &self.chain, &self.deployment, &self.executed).await
    }
}

async fn audit(owner: Address, key: (&Path, &Path), at: &DeploymentArgs, json: bool) -> Result<()> {
    let (chain, deployment) = (load_chain(&at.chain)?, load_deployment(&at.deployment)?);
    let (public, state) = executed_here(&deployment, &chain, &at.executed.store()?).await?;
    let auditor = Auditor::new(state.settings(), &public, &*auditor_seed(key.0, key.1)?)?;
    let mut transfers = Vec::new();
    for applied in state.transactions_of(owner).await? {
        transfers.extend(auditor.read(&applied)?);
    }
    let lines: Vec<String> = transfers
        .iter()
        .map(|one| {
            format!(
                "{:>8}  {} → {}  {}  (fee {})",
                one.sequence, one.sender, one.receiver, one.amount, one.fee
            )
        })
        .collect();
    print(json, &transfers, lines.join("\n"))
}
