//! `blindfold wallet force-envelope` and `force-transaction`: what headers must take, whatever the sequencer wants.

use alloy_primitives::{B256, Bytes, U256};
use anyhow::{Context, Result, bail, ensure};
use blindfold_client::{SignedTransaction, Wallet};
use blindfold_l1::{L1Client, L1Error, L1Writer, Sent};
use blindfold_protocol::{Canonical, ChainConfig};
use clap::Args;
use serde::Serialize;

use super::{CallArgs, ChainArgs, KeyArgs, PayerArgs, connected, ether, print, wallet_without_sequencer};
use crate::{address::address, roles::load_chain};

pub(super) const ENVELOPE_EXAMPLE: &str = "Example:
  blindfold wallet force-envelope 0x… 1ether --key key.json --password-file password --chain rollup.json \\
      --l1 http://127.0.0.1:8545 --node http://127.0.0.1:9580

The transaction is encrypted as `wallet send` does it; nobody reads it before it is ordered. Whoever pays on L1 has
paid: no ordering fee is taken from the fee account. The sequencer is not asked anything.";

pub(super) const TRANSACTION_EXAMPLE: &str = "Examples:
  blindfold wallet force-transaction --transfer 0x… 1ether --key key.json --password-file password \\
      --chain rollup.json --l1 http://127.0.0.1:8545 --node http://127.0.0.1:9580
  blindfold wallet force-transaction --raw 0x02f8… --key key.json --password-file password --chain rollup.json \\
      --l1 http://127.0.0.1:8545

Everybody can read the transaction from the moment it is sent, and act before it: use force-envelope while there is a
committee. This needs none, and works when nothing is certified any more.";

/// Options of `force-envelope`.
#[derive(Args, Debug)]
pub(super) struct EnvelopeArgs {
    #[command(flatten)]
    call: CallArgs,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    payer: PayerArgs,
    #[command(flatten)]
    chain: ChainArgs,
    /// Your own full node
    #[arg(long, env = "BLINDFOLD_NODE_URL")]
    node: String,
}

/// Options of `force-transaction`.
#[derive(Args, Debug)]
pub(super) struct TransactionArgs {
    /// The raw signed transaction, 0x-hex
    #[arg(long, required_unless_present = "transfer", conflicts_with = "transfer")]
    raw: Option<Bytes>,
    /// Sign one with the wallet's key: whom, and how much
    #[arg(long, num_args = 2, value_names = ["TO", "AMOUNT"])]
    transfer: Option<Vec<String>>,
    /// Input of the call, 0x-hex
    #[arg(long, requires = "transfer", conflicts_with = "raw")]
    data: Option<Bytes>,
    /// Gas limit; the node estimates by default
    #[arg(long, requires = "transfer", conflicts_with = "raw")]
    gas: Option<u64>,
    /// Nonce; the node tells by default
    #[arg(long, requires = "transfer", conflicts_with = "raw")]
    nonce: Option<u64>,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    payer: PayerArgs,
    #[command(flatten)]
    chain: ChainArgs,
    /// Your own full node, for a transaction that is to be signed
    #[arg(long, env = "BLINDFOLD_NODE_URL", required_unless_present = "raw")]
    node: Option<String>,
}

/// What was put into the queue.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Forced {
    /// Place in the queue.
    index: u64,
    /// The envelope's id, for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    envelope: Option<B256>,
    /// Hash of the transaction on L2.
    transaction: B256,
    /// Hash of the transaction on L1.
    l1_transaction: B256,
    /// The L1 block it was enqueued in.
    block: u64,
    /// A header with this L1 origin, or a later one, must hold it or an earlier one has.
    due_block: u64,
    /// From this L1 block on L1 makes a header that holds it, if nothing certified was posted until then.
    l1_header_block: u64,
    /// The fee for the queue as it stood before, in wei, as quantity; a quarter more is offered, and what is above the
    /// price comes back.
    fee: String,
}

/// Runs `force-envelope`.
pub(super) async fn envelope(args: &EnvelopeArgs, json: bool) -> Result<()> {
    let (wallet, l1) = wallet_without_sequencer(&args.key, &args.chain, &args.node).await?;
    let (envelope, transaction) = wallet.forced_envelope(&args.call.call()?).await?;
    let bytes = envelope.encode();
    let writer = L1Writer::new(l1, args.payer.open(&args.key)?);
    let fee = writer.client().forced_envelope_fee(&bytes).await?;
    let sent = writer.force_envelope(&bytes).await.map_err(|error| not_enqueued("envelope", error))?;
    report(writer.client(), &sent, (Some(envelope.id()), &transaction), fee, json).await
}

/// Runs `force-transaction`.
pub(super) async fn transaction(args: &TransactionArgs, json: bool) -> Result<()> {
    let settings = load_chain(&args.chain.chain)?;
    let (transaction, l1) = match (&args.raw, &args.node) {
        (Some(raw), _) => {
            (SignedTransaction::decode(raw.clone(), settings.chain_id)?, connected(&args.chain).await?.1)
        }
        (None, Some(node)) => {
            let (wallet, l1) = wallet_without_sequencer(&args.key, &args.chain, node).await?;
            (signed(&wallet, args).await?, l1)
        }
        (None, None) => bail!("give --raw, or --transfer with --node"),
    };
    check(&settings, &transaction)?;
    eprintln!("this transaction is public from now on: anybody can read it and act before it");
    let writer = L1Writer::new(l1, args.payer.open(&args.key)?);
    let fee = writer.client().forced_transaction_fee(transaction.gas_limit, &transaction.raw).await?;
    let sent = writer.force_transaction(transaction.gas_limit, &transaction.raw).await;
    let sent = sent.map_err(|error| not_enqueued("transaction", error));
    let sent = sent.context("the transaction is public nevertheless once it was sent to L1")?;
    report(writer.client(), &sent, (None, &transaction), fee, json).await
}

async fn signed(wallet: &Wallet, args: &TransactionArgs) -> Result<SignedTransaction> {
    let (to, amount) = match args.transfer.as_deref() {
        Some([to, amount]) => (to, amount),
        _ => bail!("--transfer takes whom and how much"),
    };
    let call = CallArgs {
        to: address(to)?,
        amount: amount.clone(),
        data: args.data.clone().unwrap_or_default(),
        gas: args.gas,
        nonce: args.nonce,
    };
    Ok(wallet.sign(&call.call()?).await?)
}

/// The queue's own limits, named before anything is public.
fn check(chain: &ChainConfig, transaction: &SignedTransaction) -> Result<()> {
    let limit = blindfold_protocol::limits::MAX_FORCED_GAS.min(chain.second_gas_limit());
    ensure!(
        transaction.gas_limit <= limit,
        "the transaction's gas limit {} is above {limit}, the most of a forced one: sign one with less",
        transaction.gas_limit
    );
    Ok(())
}

/// What an error of L1 means for an item that was to be enqueued, and for whoever pays for it.
fn not_enqueued(item: &str, error: L1Error) -> anyhow::Error {
    let meaning = if error.may_be_done() {
        format!(
            "the {item} may be enqueued still: look for the transaction before anything is sent again, or it is paid twice"
        )
    } else if matches!(error, L1Error::Failed { .. }) {
        format!("the {item} was not enqueued; it can be tried again, gas was paid")
    } else {
        format!("the {item} was not enqueued; it can be tried again, nothing was paid")
    };
    anyhow::Error::new(error).context(meaning)
}

async fn report(
    l1: &L1Client,
    sent: &Sent,
    enqueued: (Option<B256>, &SignedTransaction),
    fee: U256,
    json: bool,
) -> Result<()> {
    let forced = forced(l1, sent, enqueued, fee).await.with_context(|| {
        let Sent { transaction, block, .. } = sent;
        format!("it is enqueued, by transaction {transaction} in L1 block {block}: do not force it again")
    })?;
    print(json, &forced, text(&forced, fee))
}

async fn forced(
    l1: &L1Client,
    sent: &Sent,
    (envelope, transaction): (Option<B256>, &SignedTransaction),
    fee: U256,
) -> Result<Forced, L1Error> {
    let standing = l1.standing().await?;
    let due_block = sent.block.saturating_add(standing.timing.forced_delay.into());
    let silent = standing.last_certified_at.saturating_add(standing.timing.posting_deadline.into()) + 1;
    Ok(Forced {
        index: l1.forced_index(sent).await?,
        envelope,
        transaction: transaction.hash,
        l1_transaction: sent.transaction,
        block: sent.block,
        due_block,
        l1_header_block: silent.max(due_block),
        fee: format!("{fee:#x}"),
    })
}

fn text(forced: &Forced, fee: U256) -> String {
    let what = match forced.envelope {
        Some(id) => format!("envelope {id}  transaction {}", forced.transaction),
        None => format!("transaction {}", forced.transaction),
    };
    format!(
        "forced {what}\n  entry {} of the queue, L1 block {} ({}), fee about {}\n  \
         every header with an L1 origin from block {} on must hold it\n  \
         if nothing certified is posted, L1 takes it from block {} on: `blindfold l1 post-header`",
        forced.index,
        forced.block,
        forced.l1_transaction,
        ether(fee),
        forced.due_block,
        forced.l1_header_block
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_was_paid_only_where_l1_was_given_nothing_or_refused_it() {
        let (call, transaction) = ("force", B256::repeat_byte(3));
        let away = || L1Error::Timeout { method: "eth_sendRawTransaction".to_owned(), timeout_ms: 1 };
        let message = |error| format!("{:#}", not_enqueued("envelope", error));
        for out in [
            L1Error::Unconfirmed { call, transaction, waited_ms: 1 },
            L1Error::Unanswered { call, transaction, cause: Box::new(away()) },
        ] {
            let message = message(out);
            assert!(
                message.contains("may be enqueued still") && message.contains(&transaction.to_string()),
                "{message}"
            );
        }
        assert!(message(away()).contains("nothing was paid"));
        let reverted = L1Error::Reverted { call, reason: "EpochEndAnnounced".to_owned() };
        assert!(message(reverted).contains("nothing was paid"));
        let failed = message(L1Error::Failed { call, transaction });
        assert!(failed.contains("was not enqueued") && failed.contains("gas was paid"), "{failed}");
    }

    #[test]
    fn the_report_says_where_and_until_when() {
        let forced = Forced {
            index: 3,
            envelope: Some(B256::repeat_byte(1)),
            transaction: B256::repeat_byte(2),
            l1_transaction: B256::repeat_byte(3),
            block: 100,
            due_block: 400,
            l1_header_block: 14_500,
            fee: "0x5af3107a4000".to_owned(),
        };
        let text = text(&forced, U256::from(100_000_000_000_000u64));
        for part in ["entry 3", "block 100", "0.0001 ether", "block 400", "block 14500", "post-header"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let json = serde_json::to_value(&forced).unwrap();
        assert_eq!((&json["dueBlock"], &json["index"]), (&400.into(), &3.into()));
        assert_eq!(json["fee"], "0x5af3107a4000");
    }
}
