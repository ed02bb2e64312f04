//! `blindfold wallet send` and `send-again`: an envelope that is named before anybody else has it, and sent once more only
//! as the very same bytes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use alloy_primitives::{B256, Bytes};
use anyhow::{Context, Result, bail, ensure};
use blindfold_client::{Prepared, Sent, Wallet};
use blindfold_protocol::{Canonical, Envelope};
use blindfold_rpc::types::{EnvelopeState, Receipt};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::{CallArgs, ChainArgs, KeyArgs, ServerArgs, accuse, print, wallet};
use crate::{new_file::NewFile, roles::load_chain};

pub(super) const EXAMPLES: &str = "Examples:
  blindfold wallet send 0x… 1ether --key key.json --password-file password --chain rollup.json \\
      --l1 http://127.0.0.1:8545 --node http://127.0.0.1:9580 --sequencer http://127.0.0.1:9545 --wait
  blindfold wallet send 0x… 1ether --promise --promise-file promise.json --envelope-file envelope.json …

The exit status is 0 when the sequencer has the envelope, with --wait when its transaction is in a block. Whatever else
happens after it was sent, it may be executed until it expires, and `wallet send` once more would pay a second time: use
`wallet send-again`.";

pub(super) const AGAIN_EXAMPLE: &str = "Example:
  blindfold wallet send-again envelope.json --key key.json --password-file password --chain rollup.json \\
      --l1 http://127.0.0.1:8545 --node http://127.0.0.1:9580 --sequencer http://127.0.0.1:9545 --wait

Sends the very same bytes, to this sequencer or another one, as often as you like: they are executed once at most.";

/// Options of `send`.
#[derive(Args, Debug)]
pub(super) struct SendArgs {
    #[command(flatten)]
    call: CallArgs,
    #[command(flatten)]
    delivery: DeliveryArgs,
    /// Keep the envelope in this file, which must not exist yet, before it is sent: for `wallet send-again`, should no
    /// answer come. Without it an envelope that may have to go again is printed
    #[arg(long)]
    envelope_file: Option<PathBuf>,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    chain: ChainArgs,
    #[command(flatten)]
    servers: ServerArgs,
}

/// Options of `send-again`.
#[derive(Args, Debug)]
pub(super) struct AgainArgs {
    /// The file with the envelope, as `--envelope-file` or an error gave it
    envelope: PathBuf,
    #[command(flatten)]
    delivery: DeliveryArgs,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    chain: ChainArgs,
    #[command(flatten)]
    servers: ServerArgs,
}

/// What is wanted of the sequencer, and how long.
#[derive(Args, Debug)]
struct DeliveryArgs {
    /// Ask for a signed promise, and check it
    #[arg(long)]
    promise: bool,
    /// Keep the signed promise in this file, which must not exist yet: the evidence for `wallet accuse`, should it be
    /// broken
    #[arg(long, requires = "promise")]
    promise_file: Option<PathBuf>,
    /// Wait for the outcome, this many seconds at most
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60")]
    wait: Option<u64>,
}

/// What `--envelope-file` keeps. The envelope's id is there for people; the bytes say it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoredEnvelope {
    envelope: B256,
    transactions: Vec<B256>,
    bytes: Bytes,
}

/// Runs `send`.
pub(super) async fn run(args: &SendArgs, json: bool) -> Result<()> {
    let call = args.call.call()?;
    // Made before: what has no place is lost once the envelope is on its way.
    let promise_file = args.delivery.new_promise_file()?;
    let envelope_file = args.envelope_file.as_deref().map(NewFile::create).transpose()?;
    let wallet = wallet(&args.key, &args.chain, &args.servers).await?;
    let prepared = wallet.prepare(&call, args.delivery.promise).await?;
    if let Some(file) = envelope_file {
        file.write(stored(&prepared)?.as_bytes())?;
    }
    args.delivery.deliver(&wallet, &prepared, (promise_file, args.envelope_file.as_deref()), json).await
}

/// Runs `send-again`.
pub(super) async fn again(args: &AgainArgs, json: bool) -> Result<()> {
    let prepared = load(&args.envelope)?;
    let (chain, header) = (load_chain(&args.chain.chain)?, &prepared.envelope.header);
    ensure!(
        (header.chain_id, header.deployment) == (chain.chain_id, chain.deployment),
        "{} is for chain {} and the inbox {}, not for those of {}",
        args.envelope.display(),
        header.chain_id,
        header.deployment.inbox,
        args.chain.chain.display()
    );
    let promise_file = args.delivery.new_promise_file()?;
    let wallet = wallet(&args.key, &args.chain, &args.servers).await?;
    args.delivery.deliver(&wallet, &prepared, (promise_file, Some(&args.envelope)), json).await
}

impl DeliveryArgs {
    fn new_promise_file(&self) -> Result<Option<NewFile>> {
        self.promise_file.as_deref().map(NewFile::create).transpose()
    }

    /// Sends an envelope, keeps its promise and waits for its end, as far as asked to.
    async fn deliver(
        &self,
        wallet: &Wallet,
        prepared: &Prepared,
        (promise_file, kept): (Option<NewFile>, Option<&Path>),
        json: bool,
    ) -> Result<()> {
        let sent = hand_over(wallet, prepared, self.promise, kept).await?;
        if let (Some(file), Some(promise)) = (promise_file, &sent.promise) {
            accuse::store(file, promise)?;
        }
        let Some(seconds) = self.wait else { return print(json, &sent, line(&sent)) };
        if !json {
            println!("{}", line(&sent));
        }
        let waited = wallet.wait(&prepared.envelope, seconds.saturating_mul(1_000), |state| {
            let note = if state == EnvelopeState::Skipped { ", it or a copy of it" } else { "" };
            eprintln!("  {state:?}{note}");
        });
        let waited = waited.await;
        if json {
            // Before any error: this is where the promise is.
            print(json, &report(&sent, waited.as_ref().ok()), String::new())?;
        }
        let outcome = outcome(&waited.with_context(|| may_be_executed(prepared))?, &prepared.transactions)?;
        if !json {
            println!("{outcome}");
        }
        Ok(())
    }
}

/// Names an envelope and sends it. Whatever comes of that, somebody may have its bytes by then: where they are not `kept`
/// in a file, an error shows them.
pub(super) async fn hand_over(
    wallet: &Wallet,
    prepared: &Prepared,
    promise: bool,
    kept: Option<&Path>,
) -> Result<Sent> {
    eprintln!("sending {}", names(prepared));
    let sent = wallet.deliver(prepared, promise).await;
    if sent.is_err() && kept.is_none() {
        eprintln!("{}", stored(prepared)?);
    }
    sent.with_context(|| {
        let file = kept.map_or("a file with the text above".to_owned(), |file| file.display().to_string());
        format!(
            "{}; `blindfold wallet send-again` with {file} sends the same bytes, `wallet send` would pay a second time",
            may_be_executed(prepared)
        )
    })
}

fn names(prepared: &Prepared) -> String {
    let transactions: Vec<String> = prepared.transactions.iter().map(ToString::to_string).collect();
    format!("envelope {}  transaction {}", prepared.envelope.id(), transactions.join(" "))
}

fn may_be_executed(prepared: &Prepared) -> String {
    let expiry = prepared.envelope.header.expiry.number();
    format!("{} may be executed up to batch {expiry}, see `blindfold wallet status`", names(prepared))
}

fn line(sent: &Sent) -> String {
    let promised = sent.promised_by.map(|number| format!(", promised by batch {number}")).unwrap_or_default();
    let unchecked = sent.promise_unchecked.as_ref();
    let unchecked = unchecked.map(|reason| format!(", by whom could not be checked: {reason}"));
    let unchecked = unchecked.unwrap_or_default();
    let transactions: Vec<String> = sent.transactions.iter().map(ToString::to_string).collect();
    format!("envelope {}  transaction {}{promised}{unchecked}", sent.envelope, transactions.join(" "))
}

/// What `--json --wait` prints, also where no receipt came in time.
fn report(sent: &Sent, receipt: Option<&Receipt>) -> serde_json::Value {
    serde_json::json!({"sent": sent, "receipt": receipt})
}

/// What became of the envelope's transactions: nothing but all of them in a block is a success.
fn outcome(receipt: &Receipt, transactions: &[B256]) -> Result<String> {
    let id = receipt.id;
    let reason =
        |reason: &Option<String>| reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    if receipt.state != EnvelopeState::Executed {
        let state = format!("{:?}", receipt.state).to_lowercase();
        bail!("envelope {id} was not executed: it is {state}{}", reason(&receipt.reason));
    }
    let left_out = receipt
        .transactions
        .iter()
        .flatten()
        .find(|one| !one.included && one.hash.is_none_or(|hash| transactions.contains(&hash)));
    if let Some(left_out) = left_out {
        let hash = left_out.hash.map(|hash| format!(" {hash}")).unwrap_or_default();
        bail!(
            "envelope {id} was opened, and its transaction{hash} left out of the block{}: everybody can read it now",
            reason(&left_out.reason)
        );
    }
    Ok(format!(
        "Executed in block {}",
        receipt.block_number.map_or("none".to_owned(), |number| number.to_string())
    ))
}

/// What the file holds.
fn stored(prepared: &Prepared) -> Result<String> {
    let Prepared { envelope, transactions } = prepared;
    let (id, bytes) = (envelope.id(), envelope.encode().into());
    let stored = StoredEnvelope { envelope: id, transactions: transactions.clone(), bytes };
    Ok(serde_json::to_string_pretty(&stored)?)
}

fn load(path: &Path) -> Result<Prepared> {
    let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let stored: StoredEnvelope = serde_json::from_str(&text)
        .with_context(|| format!("{} is no file of `wallet send --envelope-file`", path.display()))?;
    let envelope =
        Envelope::decode(&stored.bytes).with_context(|| format!("{}: the envelope", path.display()))?;
    ensure!(
        envelope.id() == stored.envelope,
        "{} is damaged: it names envelope {} and holds {}",
        path.display(),
        stored.envelope,
        envelope.id()
    );
    Ok(Prepared { envelope, transactions: stored.transactions })
}

#[cfg(test)]
mod tests;
