//! `blindfold wallet accuse` and `slash`: what a signed promise is worth when it was broken.

use std::{
    fs,
    path::{Path, PathBuf},
};

use alloy_primitives::{Address, B256, keccak256};
use anyhow::{Context, Result, anyhow, bail, ensure};
use blindfold_l1::{ACCUSATION_STAKE_WEI, Accusation, AccusationState, GivenPromise, L1Client, L1Writer};
use blindfold_protocol::{ChainConfig, Epochs, Promise, Verdict, fault::keeps_promise};
use blindfold_rpc::{BlindApiClient, ClientConfig, Encoded, ReceivedError, http_client, types::BatchInfo};
use blindfold_runtime::random;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::{ChainArgs, KeyArgs, connected, ether, print};
use crate::new_file::NewFile;

pub(super) const EXAMPLE: &str = "Examples:
  blindfold wallet send 0x… 1ether --promise --promise-file promise.json …      keeps the evidence
  blindfold wallet accuse promise.json --key key.json --password-file password --chain rollup.json \\
      --l1 http://127.0.0.1:8545 --node http://127.0.0.1:9580
  blindfold wallet slash promise.json …      after the answer window

Commits to the accusation, waits for a block, and makes it. The stake is lost to whoever shows the promised bytes in a
batch up to the promised number, accepted, or left out in that very batch by its payer's doing: ask your own node first
(--node), which has to have that batch certified.";

pub(super) const SLASH_EXAMPLE: &str = "Example:
  blindfold wallet slash promise.json --key key.json --password-file password --chain rollup.json --l1 http://127.0.0.1:8545

Half of the bond and the stake go to the accuser, whoever sends this: `blindfold l1 claim-reward`.";

/// Options of `accuse`.
#[derive(Args, Debug)]
pub(super) struct AccuseArgs {
    /// The file with the promise, as `wallet send --promise-file` wrote it
    promise: PathBuf,
    /// Your own full node, asked whether the promise was kept after all
    #[arg(long, env = "BLINDFOLD_NODE_URL")]
    node: Option<String>,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    chain: ChainArgs,
}

/// Options of `slash`.
#[derive(Args, Debug)]
pub(super) struct SlashArgs {
    /// The file with the promise, as `wallet send --promise-file` wrote it
    promise: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    chain: ChainArgs,
}

/// What `wallet send --promise-file` keeps. Number and envelope are there for people; the promise says both.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoredPromise {
    envelope: B256,
    seal_by: u64,
    promise: Encoded<Promise>,
}

/// Writes a promise to its file. Where that fails the promise is said on standard error: it is signed once.
pub(super) fn store(file: NewFile, promise: &Encoded<Promise>) -> Result<()> {
    let path = file.path().to_owned();
    let text = stored(promise)?;
    file.write(text.as_bytes()).inspect_err(|_| eprintln!("{text}")).with_context(|| {
        format!(
            "the envelope was sent, and its promise stands above: keep that text in a file for `wallet accuse`, {} \
             does not hold it",
            path.display()
        )
    })
}

/// What the file holds.
fn stored(promise: &Encoded<Promise>) -> Result<String> {
    let decoded = promise.decode().context("the promise does not decode")?;
    let stored =
        StoredPromise { envelope: decoded.envelope_id, seal_by: decoded.seal_by, promise: promise.clone() };
    Ok(serde_json::to_string_pretty(&stored)?)
}

/// Reads a promise and checks that it was given by a key that L1 names: the present sequencer's, or an earlier one's.
fn load(path: &Path, chain: &ChainConfig, registered: &Epochs) -> Result<(Promise, GivenPromise)> {
    let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let stored: StoredPromise = serde_json::from_str(&text)
        .with_context(|| format!("{} is no file of `wallet send --promise-file`", path.display()))?;
    let promise = stored.promise.decode().with_context(|| format!("{}: the promise", path.display()))?;
    let signer = promise.signer(&chain.deployment).ok();
    let named = |signer: &Address| registered.sequencer_term(*signer).is_some();
    let Some(sequencer) = signer.filter(named) else {
        bail!("{} is not signed by a sequencer of this chain: L1 would refuse it", path.display());
    };
    let given = GivenPromise::new(&promise, sequencer);
    Ok((promise, given))
}

/// Runs `accuse`.
pub(super) async fn run(args: &AccuseArgs, json: bool) -> Result<()> {
    let (settings, l1) = connected(&args.chain).await?;
    let (promise, given) = load(&args.promise, &settings, &l1.epochs().await?)?;
    ready(&l1, &given).await?;
    if let Some(node) = &args.node {
        not_kept(node, &settings, &promise).await?;
    } else {
        eprintln!("no --node was asked whether the promise was kept; if it was, the stake is lost");
    }
    let writer = L1Writer::new(l1, args.key.open()?);
    eprintln!("committing to the accusation; it is made one block later");
    // Needed for as long as this runs: should it end in between, another commitment does as well.
    let salt = B256::from(random::<[u8; 32]>());
    let sent = writer.report_omission(&promise, salt).await?;
    let accusation = writer.client().accusation(&given).await?;
    print(json, &value(&given, &accusation, sent.transaction), text(&promise, &accusation, sent.block))
}

/// What L1 would refuse, with what to do instead.
async fn ready(l1: &L1Client, promise: &GivenPromise) -> Result<()> {
    let head = l1.posted_head().await?.number;
    ensure!(
        head >= promise.seal_by,
        "the promise names batch {}, L1 has them up to {head}: accuse when that one is posted",
        promise.seal_by
    );
    let earlier = l1.accusation(promise).await?;
    match earlier.state {
        AccusationState::None => Ok(()),
        AccusationState::Slashed => {
            bail!("the bond was taken for this promise already, for {}", earlier.accuser)
        }
        AccusationState::Open => bail!(
            "{} accused already; `blindfold wallet slash` with this file after L1 block {}",
            earlier.accuser,
            earlier.answer_until
        ),
        AccusationState::Answered => {
            bail!("an accusation over this promise was answered: it was kept")
        }
    }
}

/// Asks the user's node whether the promise was kept, and goes by the rule that L1 goes by.
async fn not_kept(node: &str, chain: &ChainConfig, promise: &Promise) -> Result<()> {
    let Promise { envelope_id: id, seal_by, .. } = *promise;
    let node = http_client(node, &ClientConfig::default())?;
    let no_word = |error| anyhow!("your node: {}", ReceivedError::from(error));
    let status = BlindApiClient::get_status(&node).await.map_err(no_word)?;
    status.check_chain(chain.chain_id, &chain.deployment).map_err(|other| anyhow!("your node {other}"))?;
    ensure!(
        status.certified >= seal_by,
        "your node has certified batches up to {}, and batch {seal_by} may hold the envelope: accuse when it is there",
        status.certified
    );
    let receipt = node.get_receipt(id).await.map_err(no_word)?;
    // A receipt names the batch that accepted an item of this id, where one did. The promised bytes can be another item.
    let located = receipt.and_then(|receipt| receipt.number).filter(|number| *number < seal_by);
    for number in located.into_iter().chain([seal_by]) {
        let batch = node.get_batch(number).await.map_err(no_word)?;
        let batch = batch.with_context(|| format!("your node does not have batch {number}"))?;
        ensure!(
            !is_kept_in(number, &batch, promise)?,
            "envelope {id} stands in batch {number}, promised by {seal_by}: the promise was kept"
        );
    }
    Ok(())
}

/// Whether the promised bytes stand in this batch with a verdict that keeps the promise.
fn is_kept_in(number: u64, batch: &BatchInfo, promise: &Promise) -> Result<bool> {
    let sealed = batch.sealed.decode().with_context(|| format!("batch {number} of your node"))?;
    ensure!(
        sealed.header.number == number && sealed.items.len() == batch.verdicts.len(),
        "your node's answer for batch {number} is not that batch"
    );
    let mut items = sealed.items.iter().zip(&batch.verdicts);
    Ok(items.any(|(item, verdict)| {
        let code = Verdict::code_of_reason(verdict.as_deref());
        keccak256(item) == promise.item_hash
            && code.is_some_and(|code| keeps_promise(code, number, promise.seal_by))
    }))
}

/// Runs `slash`.
pub(super) async fn slash(args: &SlashArgs, json: bool) -> Result<()> {
    let (settings, l1) = connected(&args.chain).await?;
    let (_, given) = load(&args.promise, &settings, &l1.epochs().await?)?;
    let accusation = l1.accusation(&given).await?;
    let newest = l1.newest_block().await?;
    ensure!(accusation.state == AccusationState::Open, "no accusation over this promise is open");
    ensure!(
        newest > accusation.answer_until,
        "the sequencer may answer until L1 block {}, the newest is {newest}: try again then",
        accusation.answer_until
    );
    let sent = L1Writer::new(l1, args.key.open()?).slash_omission(&given).await?;
    let text = format!(
        "the bond was taken in L1 block {}; the reward waits for {}: `blindfold l1 claim-reward`",
        sent.block, accusation.accuser
    );
    let accusation = Accusation { state: AccusationState::Slashed, ..accusation };
    print(json, &value(&given, &accusation, sent.transaction), text)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Accused {
    /// The promise's id.
    promise: B256,
    sequencer: Address,
    accuser: Address,
    answer_until: u64,
    state: &'static str,
    transaction: B256,
}

fn value(promise: &GivenPromise, accusation: &Accusation, transaction: B256) -> Accused {
    let state = match accusation.state {
        AccusationState::None => "none",
        AccusationState::Open => "open",
        AccusationState::Answered => "answered",
        AccusationState::Slashed => "slashed",
    };
    let Accusation { accuser, answer_until, .. } = *accusation;
    let (promise, sequencer) = (promise.id(), promise.sequencer);
    Accused { promise, sequencer, accuser, answer_until, state, transaction }
}

fn text(promise: &Promise, accusation: &Accusation, block: u64) -> String {
    format!(
        "accused in L1 block {block}, with {} at stake: envelope {}, promised by batch {}\n  \
         without an answer until L1 block {} the bond is lost: then `blindfold wallet slash` with the same file",
        ether(alloy_primitives::U256::from(ACCUSATION_STAKE_WEI)),
        promise.envelope_id,
        promise.seal_by,
        accusation.answer_until
    )
}

#[cfg(test)]
mod tests;
