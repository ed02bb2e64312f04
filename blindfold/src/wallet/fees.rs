//! `blindfold wallet withdraw-fees`: ether out of a fee account, with the rollup's help or without.

use alloy_primitives::{Address, U256};
use anyhow::{Result, bail, ensure};
use blindfold_client::{FeeProof, FeeProofError};
use blindfold_l1::{AccountProof, L1Client, L1Writer, Sent, VaultAccount};
use blindfold_rpc::{
    ReceivedError,
    types::{LedgerAt, LedgerTag},
};
use blindfold_runtime::now;
use clap::{Args, Subcommand};
use serde::Serialize;
use tokio::time::{Duration, sleep};

use super::{ChainArgs, KeyArgs, connected, ether, print, wei_u128};

/// The account as the server knows it by now.
const LATEST: LedgerAt = LedgerAt::Tag(LedgerTag::Latest);
/// How often the account is asked for while L1 goes on.
const HEAD_ATTEMPTS: usize = 5;
/// Pause between two looks at L1.
const POLL_INTERVAL_MS: u64 = 2_000;

pub(super) const EXAMPLES: &str = "Examples:
  blindfold wallet withdraw-fees request 0.05ether --key key.json --password-file password --chain rollup.json \\
      --l1 http://127.0.0.1:8545 --node http://127.0.0.1:9580
  blindfold wallet withdraw-fees status --node http://127.0.0.1:9580 …
  blindfold wallet withdraw-fees claim --node http://127.0.0.1:9580 …

A request is final. The next header whose L1 origin is at or above its block moves the amount, or what there is, to
what was withdrawn; `claim` proves that against the newest header that was posted a claim delay ago, a day by default. If
no such header is posted for the withdrawal delay, `exit` pays from the account as the last posted header left it.";

/// `blindfold wallet withdraw-fees …`
#[derive(Subcommand, Debug)]
pub(super) enum FeesCommand {
    /// Ask the rollup to move ether out of the fee account
    Request {
        /// How much, for example 0.1ether, or `all`
        amount: String,
        /// Your own full node, or the sequencer, asked whether there is anything to withdraw
        #[arg(long, env = "BLINDFOLD_NODE_URL")]
        node: Option<String>,
        #[command(flatten)]
        key: KeyArgs,
        #[command(flatten)]
        chain: ChainArgs,
    },
    /// Have paid what was withdrawn, when a header that says so is posted
    Claim {
        #[command(flatten)]
        proof: ProofArgs,
        /// Wait this many seconds at most for the header to be posted
        #[arg(long, value_name = "SECONDS", default_value_t = 600)]
        wait: u64,
    },
    /// Have paid what was requested although the rollup did nothing
    Exit {
        #[command(flatten)]
        proof: ProofArgs,
    },
    /// Where withdrawals stand
    Status {
        #[command(flatten)]
        proof: ProofArgs,
    },
}

/// Whose account, and who shows it.
#[derive(Args, Debug)]
pub(super) struct ProofArgs {
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    chain: ChainArgs,
    /// Your own full node, or the sequencer; its proof is checked against L1
    #[arg(long, env = "BLINDFOLD_NODE_URL")]
    node: String,
}

/// Runs one of them.
pub(super) async fn run(command: &FeesCommand, json: bool) -> Result<()> {
    match command {
        FeesCommand::Request { amount, node, key, chain } => {
            request(amount, node.as_deref(), key, chain, json).await
        }
        FeesCommand::Claim { proof, wait } => claim(proof, *wait, json).await,
        FeesCommand::Exit { proof } => exit(proof, json).await,
        FeesCommand::Status { proof } => status(proof, json).await,
    }
}

async fn request(
    amount: &str,
    node: Option<&str>,
    key: &KeyArgs,
    chain: &ChainArgs,
    json: bool,
) -> Result<()> {
    // The vault reads the largest number as everything there is.
    let wanted = if amount == "all" { u128::MAX } else { wei_u128(amount)? };
    let (_, l1) = connected(chain).await?;
    let writer = L1Writer::new(l1, key.open()?);
    match node {
        Some(node) => {
            let shown = FeeProof::fetch(node, writer.address(), LATEST).await;
            let proved = match &shown {
                Ok(shown) => proved(shown, writer.client()).await,
                Err(_) => Proved::Nothing,
            };
            may_request(shown, proved)?;
        }
        None => eprintln!(
            "no --node was asked whether there is anything to withdraw; the vault takes any request"
        ),
    }
    let sent = writer.request_withdrawal(wanted).await?;
    let vault = writer.client().vault_account(writer.address()).await?;
    let text = format!(
        "requested {} of {} in L1 block {} ({})\n  then: `blindfold wallet withdraw-fees claim`; \
         if nothing follows, `withdraw-fees exit` from L1 block {} on",
        if wanted == u128::MAX { "all".to_owned() } else { ether(U256::from(wanted)) },
        writer.address(),
        sent.block,
        sent.transaction,
        exit_block(&vault)
    );
    let value = serde_json::json!({
        "payer": writer.address(),
        "amount": if wanted == u128::MAX { "all".into() } else { format!("{wanted:#x}") },
        "transaction": sent.transaction,
        "block": sent.block,
        "exitBlock": exit_block(&vault),
    });
    print(json, &value, text)
}

/// How far L1 bears out the account that a node shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proved {
    /// Not at all, as far as L1 answers.
    Nothing,
    /// It stands so in the ledger of L1's head, which has not counted a deposit yet.
    DepositWaits,
    /// It stands so in the ledger of L1's head, and no deposit waits.
    All,
}

async fn proved(shown: &FeeProof, l1: &L1Client) -> Proved {
    let Ok(Some(at_head)) = shown.against_head(l1).await else { return Proved::Nothing };
    match shown.deposit_waits(&at_head, l1).await {
        Ok(true) => Proved::DepositWaits,
        Ok(false) => Proved::All,
        Err(_) => Proved::Nothing,
    }
}

/// Refuses a request that would move nothing, where that is proved against L1. Else it is made all the same: it is the way
/// out of a rollup that is gone, or whose sequencer says that there is nothing.
fn may_request(shown: Result<FeeProof, FeeProofError>, proved: Proved) -> Result<()> {
    let shown = match shown {
        Ok(shown) if shown.account.balance == 0 => shown,
        Ok(_) => return Ok(()),
        Err(error) => {
            eprintln!("whether there is anything to withdraw is not known: {error}");
            return Ok(());
        }
    };
    let FeeProof { payer, number, .. } = shown;
    match proved {
        Proved::All => bail!(
            "nothing to withdraw: the fee account of {payer} is empty after batch {number}; of what was withdrawn see \
             `blindfold wallet withdraw-fees status`"
        ),
        Proved::DepositWaits => eprintln!(
            "the account is empty after batch {number}, and a deposit for it is not counted yet: requesting all the same"
        ),
        Proved::Nothing => eprintln!(
            "the node shows an empty account after batch {number}, which is not the ledger of L1's head: requesting all the \
             same"
        ),
    }
    Ok(())
}

fn exit_block(vault: &VaultAccount) -> u64 {
    vault.last_request.saturating_add(vault.withdrawal_delay.into())
}

/// What waits, in wei: withdrawn in the ledger and not paid.
fn claimable(withdrawn: u128, paid: U256) -> U256 {
    U256::from(withdrawn).saturating_sub(paid)
}

async fn claim(args: &ProofArgs, wait: u64, json: bool) -> Result<()> {
    let key = args.key.open()?;
    let (_, l1) = connected(&args.chain).await?;
    let newest = FeeProof::fetch(&args.node, key.address(), LATEST).await?;
    let paid = l1.paid(key.address()).await?;
    ensure!(
        claimable(newest.account.withdrawn, paid) != U256::ZERO,
        "nothing to claim: {} were withdrawn by batch {} and {} were paid. A request counts when its L1 block is \
         final and a header has that origin",
        ether(U256::from(newest.account.withdrawn)),
        newest.number,
        ether(paid)
    );
    let (shown, proof) = payable(&args.node, &newest, paid, &l1, Duration::from_secs(wait)).await?;
    let (amount, number) = (claimable(shown.account.withdrawn, paid), proof.number);
    let sent = L1Writer::new(l1, key).claim_withdrawal(&proof).await?;
    paid_out("claimed", &shown, amount, number, &sent, json)
}

/// Waits until the vault pays out a ledger by which more is withdrawn than was paid.
async fn payable(
    node: &str,
    newest: &FeeProof,
    paid: U256,
    l1: &L1Client,
    limit: Duration,
) -> Result<(FeeProof, AccountProof)> {
    let started = now();
    let delay = l1.claim_delay().await?;
    let mut announced = false;
    loop {
        match FeeProof::fetch_payable(node, newest.payer, l1).await {
            Ok(Some((shown, proof))) if claimable(shown.account.withdrawn, paid) != U256::ZERO => {
                return Ok((shown, proof));
            }
            // An earlier ledger, or a node that is not there yet.
            Ok(_) | Err(FeeProofError::NoAccount(_)) => {}
            Err(FeeProofError::Server(ReceivedError::Refused(error))) if error.retry => {}
            Err(error) => return Err(error.into()),
        }
        if !announced {
            let number = newest.number;
            eprintln!(
                "  withdrawn by header {number} at the latest, paid out {delay} L1 blocks after its posting"
            );
            announced = true;
        }
        if started.elapsed() >= limit {
            bail!(
                "a ledger pays out {delay} L1 blocks after its header was posted, and none as old as that withdraws what \
                 {} does: try again later, or with --wait",
                newest.number
            );
        }
        sleep(Duration::from_millis(POLL_INTERVAL_MS)).await;
    }
}

async fn exit(args: &ProofArgs, json: bool) -> Result<()> {
    let key = args.key.open()?;
    let (_, l1) = connected(&args.chain).await?;
    let vault = l1.vault_account(key.address()).await?;
    may_exit(&vault, l1.newest_block().await?)?;
    let (shown, proof) = at_head(&args.node, key.address(), &l1).await?;
    let requested = vault.requested.min(shown.account.balance);
    let amount = claimable(shown.account.withdrawn.saturating_add(requested), vault.paid);
    let number = proof.number;
    let sent = L1Writer::new(l1, key).exit(&proof).await?;
    paid_out("left", &shown, amount, number, &sent, json)
}

/// The account in the ledger of L1's last header. L1 may get another one between the two questions.
async fn at_head(node: &str, payer: Address, l1: &L1Client) -> Result<(FeeProof, AccountProof)> {
    for _ in 0..HEAD_ATTEMPTS {
        let Some(shown) = FeeProof::fetch_posted(node, payer, l1).await? else {
            bail!("nothing was posted to L1 yet, so no ledger is known there");
        };
        if let Some(proof) = shown.against_head(l1).await? {
            return Ok((shown, proof));
        }
    }
    bail!("your node's ledger is not that of L1's last header: ask a node that follows L1")
}

/// The vault's conditions, with what to do before.
fn may_exit(vault: &VaultAccount, newest: u64) -> Result<()> {
    ensure!(
        vault.first_request != 0,
        "nothing was requested: `blindfold wallet withdraw-fees request` first, then wait {} blocks",
        vault.withdrawal_delay
    );
    ensure!(
        newest >= exit_block(vault),
        "the rollup may still answer the request: exit from L1 block {} on, the newest is {newest}",
        exit_block(vault)
    );
    Ok(())
}

fn paid_out(how: &str, shown: &FeeProof, amount: U256, number: u64, sent: &Sent, json: bool) -> Result<()> {
    let payer = shown.payer;
    let text = format!(
        "{how}: {} paid to {payer} in L1 block {} ({}), proved by header {number}",
        ether(amount),
        sent.block,
        sent.transaction
    );
    let value = serde_json::json!({
        "payer": payer,
        "amount": amount,
        "number": number,
        "transaction": sent.transaction,
        "block": sent.block,
    });
    print(json, &value, text)
}

/// Where the withdrawals of one account stand.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    payer: Address,
    /// After this batch.
    number: u64,
    balance: U256,
    withdrawn: U256,
    paid: U256,
    claimable: U256,
    requested: U256,
    /// The L1 block of the last request; 0 for none.
    last_request: u64,
    /// From this L1 block on an exit is possible; 0 without a request.
    exit_block: u64,
    /// L1's newest.
    block: u64,
}

async fn status(args: &ProofArgs, json: bool) -> Result<()> {
    let payer = args.key.open()?.address();
    let (_, l1) = connected(&args.chain).await?;
    let vault = l1.vault_account(payer).await?;
    let (number, balance, withdrawn) = match FeeProof::fetch(&args.node, payer, LATEST).await {
        Ok(shown) => (shown.number, shown.account.balance, shown.account.withdrawn),
        Err(FeeProofError::NoAccount(_)) => (0, 0, 0),
        Err(error) => return Err(error.into()),
    };
    let requested = vault.first_request != 0;
    let report = Report {
        payer,
        number,
        balance: U256::from(balance),
        withdrawn: U256::from(withdrawn),
        paid: vault.paid,
        claimable: claimable(withdrawn, vault.paid),
        requested: U256::from(vault.requested),
        last_request: vault.last_request,
        exit_block: if requested { exit_block(&vault) } else { 0 },
        block: l1.newest_block().await?,
    };
    print(json, &report, table(&report))
}

fn table(report: &Report) -> String {
    let requested = match report.last_request {
        0 => "nothing".to_owned(),
        _ if report.requested == U256::from(u128::MAX) => "all".to_owned(),
        _ => ether(report.requested),
    };
    let mut rows = vec![
        ("account", report.payer.to_string()),
        ("balance", format!("{} after batch {}", ether(report.balance), report.number)),
        ("withdrawn", ether(report.withdrawn)),
        ("paid", ether(report.paid)),
        ("to claim", ether(report.claimable)),
        ("requested", requested),
    ];
    if report.last_request != 0 {
        rows.push(("last request", format!("L1 block {}", report.last_request)));
        rows.push(("exit", format!("from L1 block {} on, now {}", report.exit_block, report.block)));
    }
    crate::l1_commands::table(&rows)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use blindfold_protocol::{Account, LedgerProof};

    use super::*;

    fn vault() -> VaultAccount {
        VaultAccount {
            paid: U256::from(3),
            requested: 10,
            first_request: 100,
            last_request: 120,
            withdrawal_delay: 500,
        }
    }

    #[test]
    fn an_exit_waits_for_the_delay_after_the_last_request() {
        assert!(may_exit(&vault(), 619).unwrap_err().to_string().contains("from L1 block 620"));
        may_exit(&vault(), 620).unwrap();
        let none = VaultAccount { first_request: 0, last_request: 0, ..vault() };
        assert!(may_exit(&none, 10_000).unwrap_err().to_string().contains("request"));
    }

    #[test]
    fn a_request_is_refused_only_where_l1_proves_that_it_would_move_nothing() {
        let payer = Address::repeat_byte(7);
        let shown = |balance| FeeProof {
            payer,
            account: Account { balance, withdrawn: 5 },
            proof: LedgerProof { siblings: Vec::new() },
            number: 42,
            header_hash: B256::ZERO,
            fee_ledger_root: B256::ZERO,
        };
        let refused = may_request(Ok(shown(0)), Proved::All).unwrap_err().to_string();
        assert!(refused.contains("empty after batch 42"), "{refused}");
        // A sequencer that wants to keep the fees says so, too.
        may_request(Ok(shown(0)), Proved::Nothing).unwrap();
        may_request(Ok(shown(0)), Proved::DepositWaits).unwrap();
        may_request(Err(FeeProofError::NoAccount(payer)), Proved::Nothing).unwrap();
        may_request(Ok(shown(1)), Proved::All).unwrap();
        let away = FeeProofError::Server(ReceivedError::NoAnswer("away".to_owned()));
        may_request(Err(away), Proved::Nothing).unwrap();
    }

    #[test]
    fn what_was_paid_is_not_claimed_again() {
        assert_eq!(claimable(10, U256::from(3)), U256::from(7));
        assert_eq!(claimable(3, U256::from(10)), U256::ZERO, "an exit paid ahead of the ledger");
    }

    #[test]
    fn the_table_names_every_amount() {
        let one = U256::from(10u128.pow(18));
        let report = Report {
            payer: Address::repeat_byte(7),
            number: 42,
            balance: one,
            withdrawn: one,
            paid: U256::ZERO,
            claimable: one,
            requested: U256::from(u128::MAX),
            last_request: 120,
            exit_block: 620,
            block: 130,
        };
        let text = table(&report);
        for part in ["1 ether after batch 42", "requested     all", "from L1 block 620 on, now 130"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["claimable"], &json["exitBlock"]), (&"0xde0b6b3a7640000".into(), &620.into()));
        let quiet = Report { last_request: 0, exit_block: 0, ..report };
        assert!(table(&quiet).contains("nothing") && !table(&quiet).contains("exit"));
    }
}
