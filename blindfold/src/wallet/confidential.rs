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
use blindfold_client::confidential::provers::{Progress, Proving, ProvingKeys};
use blindfold_client::confidential::{Auditor, ConfidentialWallet, Made};
use blindfold_rpc::confidential::{ConfidentialApiClient, ConfidentialTransactionInfo};
use blindfold_rpc::{ClientConfig, HttpClient, http_client};
use clap::{Args, Subcommand};
use tokio::time::{Instant, sleep};

use super::{ChainArgs, KeyArgs, ServerArgs, print, wallet};
use crate::{
    roles::{load_chain, load_deployment},
    setup::read_seed,
};

/// Examples of the commands.
pub(crate) const EXAMPLES: &str = "Examples:\n  blindfold wallet confidential register --key k --password-file p --wait\n  \
    blindfold wallet confidential deposit 1000 --key k --password-file p --wait\n  \
    blindfold wallet confidential rollover --key k --password-file p --wait\n  \
    blindfold wallet confidential send 0x… 250 --key k --password-file p --wait\n  \
    blindfold wallet confidential balance --key k --password-file p\n\n\
    Amounts are whole base units. The account's secret follows from the key: the key is all there is to keep.";

/// How often a waiting wallet asks for the outcome.
const POLL_INTERVAL_MS: u64 = 200;
/// Transactions asked for at a time.
const PAGE: u64 = 64;

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
        #[arg(long)]
        to: Option<Address>,
        #[command(flatten)]
        send: SendArgs,
    },
    /// Pay an amount that only sender, receiver and auditor can read
    Send {
        /// Whom
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
        #[arg(long)]
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
    /// Read the transfers of an account with the auditor's key
    Audit {
        /// Whose transfers
        owner: Address,
        /// File with the auditor's seed
        #[arg(long)]
        auditor_key: PathBuf,
        #[command(flatten)]
        at: DeploymentArgs,
    },
    /// Total an invoice whose prices the payer does not see, and whose quantities the supplier does not
    #[command(subcommand, after_help = invoice::EXAMPLES)]
    Invoice(invoice::InvoiceCommand),
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
    /// Your own coprocessor
    #[arg(long, env = "BLINDFOLD_COPROCESSOR_URL")]
    coprocessor: String,
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
    /// Your own coprocessor
    #[arg(long, env = "BLINDFOLD_COPROCESSOR_URL")]
    coprocessor: String,
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

fn connected(url: &str) -> Result<HttpClient> {
    Ok(http_client(url, &ClientConfig::default())?)
}

fn opened(key: &KeyArgs, chain: &Path, deployment: &Path, coprocessor: &str) -> Result<ConfidentialWallet> {
    let (public, settings) = load_deployment(deployment)?.settings(&*load_chain(chain)?)?;
    Ok(ConfidentialWallet::new(settings, public, key.open()?, connected(coprocessor)?))
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
        let confidential = opened(&self.key, &self.chain.chain, &self.deployment, &self.coprocessor)?;
        Ok((confidential, wallet(&self.key, &self.chain, &self.servers).await?))
    }

    /// Sends what was made, and waits for the outcome where asked to.
    async fn send(&self, wallet: &Wallet, made: Made, json: bool) -> Result<()> {
        let sent = wallet.send_confidential(made.id, made.bytes).await?;
        let text = format!("envelope {}  transaction {}", sent.envelope, made.id);
        let Some(seconds) = self.wait else { return print(json, &sent, text) };
        if !json {
            println!("{text}");
        }
        let info = outcome(&connected(&self.coprocessor)?, made.id, seconds).await?;
        let line = match &info.reason {
            None => format!("applied in batch {}, version {}", info.number, info.version),
            Some(reason) => format!("refused in batch {}: {reason}", info.number),
        };
        print(json, &serde_json::json!({"sent": sent, "outcome": info}), line)?;
        match info.reason {
            None => Ok(()),
            Some(reason) => bail!("the transaction was refused: {reason} (docs/coprocessor.md)"),
        }
    }
}

async fn outcome(coprocessor: &HttpClient, id: B256, seconds: u64) -> Result<ConfidentialTransactionInfo> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(info) = coprocessor.get_transaction(id).await.context("the coprocessor")? {
            return Ok(info);
        }
        if Instant::now() > deadline {
            bail!(
                "the coprocessor has not executed {id} after {seconds} s; its envelope stays valid until it expires"
            );
        }
        sleep(Duration::from_millis(POLL_INTERVAL_MS)).await;
    }
}

/// Tells where proving stands: one line that is written over on a terminal, a line for each part elsewhere.
fn progress() -> Progress {
    let (started, terminal) = (std::time::Instant::now(), std::io::stderr().is_terminal());
    Box::new(move |part| {
        let what = match part {
            Proving::Key => "reading the proving key".to_owned(),
            Proving::Stage(stage) => format!("proving: {stage:?}").to_lowercase(),
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
            prove.send.send(&wallet, made, json).await
        }
        C::Deposit { amount, to, send } => {
            let (confidential, wallet) = send.opened().await?;
            let made = confidential.deposit(to.unwrap_or(confidential.address()), amount).await?;
            send.send(&wallet, made, json).await
        }
        C::Send { to, amount, fee, prove } => {
            let (confidential, wallet) = prove.send.opened().await?;
            let made = confidential.send(to, amount, fee, &prove.keys()?, progress()).await?;
            prove.send.send(&wallet, made, json).await
        }
        C::Rollover(send) => {
            let (confidential, wallet) = send.opened().await?;
            send.send(&wallet, confidential.rollover().await?, json).await
        }
        C::Refresh(prove) => {
            let (confidential, wallet) = prove.send.opened().await?;
            let made = confidential.refresh(&prove.keys()?, progress()).await?;
            prove.send.send(&wallet, made, json).await
        }
        C::Withdraw { amount, to, prove } => {
            let (confidential, wallet) = prove.send.opened().await?;
            let to = to.unwrap_or(confidential.address());
            let made = confidential.withdraw(to, amount, &prove.keys()?, progress()).await?;
            prove.send.send(&wallet, made, json).await
        }
        C::Balance { key, at } => {
            let balances = at.wallet(&key)?.balances().await?;
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
            let entries = at.wallet(&key)?.history().await?;
            let lines: Vec<String> = entries
                .iter()
                .map(|entry| {
                    let with = entry.with.map(|with| format!("  {with}")).unwrap_or_default();
                    format!("{:>8}  {:<8}  {:>+20}{with}", entry.sequence, entry.kind, entry.change)
                })
                .collect();
            print(json, &entries, lines.join("\n"))
        }
        C::Audit { owner, auditor_key, at } => audit(owner, &auditor_key, &at, json).await,
        C::Invoice(command) => invoice::run(command, json).await,
    }
}

impl DeploymentArgs {
    fn wallet(&self, key: &KeyArgs) -> Result<ConfidentialWallet> {
        opened(key, &self.chain, &self.deployment, &self.coprocessor)
    }
}

async fn audit(owner: Address, auditor_key: &Path, at: &DeploymentArgs, json: bool) -> Result<()> {
    let chain = load_chain(&at.chain)?;
    let (public, settings) = load_deployment(&at.deployment)?.settings(&chain)?;
    let auditor = Auditor::new(settings, &public, &read_seed(auditor_key)?)?;
    let coprocessor = connected(&at.coprocessor)?;
    let (mut transfers, mut from) = (Vec::new(), 0);
    loop {
        let page = coprocessor.get_transfers(owner, from, Some(PAGE)).await.context("the coprocessor")?;
        let Some(last) = page.last() else { break };
        from = last.sequence + 1;
        for info in &page {
            transfers.extend(auditor.read(info)?);
        }
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
