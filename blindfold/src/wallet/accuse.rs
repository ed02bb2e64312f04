//! `blindfold wallet accuse` and `slash`: what a signed promise is worth when it was broken.

use std::{
    fs,
    path::{Path, PathBuf},
};

use alloy_primitives::{Address, B256};
use anyhow::{Context, Result, bail, ensure};
use blindfold_client::Node;
use blindfold_l1::{ACCUSATION_STAKE_WEI, Accusation, AccusationState, GivenPromise, L1Client, L1Writer};
use blindfold_protocol::{ChainConfig, Epochs, Promise};
use blindfold_rpc::{Encoded, types::Receipt};
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

Commits to the accusation, waits for a block, and makes it. The stake is lost to whoever shows the envelope in a batch
up to the promised number, unless it was skipped for anything but its payer's doing: ask your own node first (--node).";

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
        not_kept(node, &promise).await?;
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

/// Asks the user's node whether the envelope stands where it should.
async fn not_kept(node: &str, promise: &Promise) -> Result<()> {
    let id = promise.envelope_id;
    let answer = Node::new(node)?.call("blind_getReceipt", &[serde_json::json!(id)]).await?;
    let receipt: Option<Receipt> = serde_json::from_value(answer).context("your node's receipt")?;
    match receipt.and_then(|receipt| receipt.number) {
        Some(number) if number <= promise.seal_by => {
            bail!(
                "envelope {id} stands in batch {number}, promised by {}: the promise was kept",
                promise.seal_by
            )
        }
        _ => Ok(()),
    }
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
mod tests {
    use blindfold_protocol::{Deployment, SequencerChange, SigningKey};

    use super::*;
    use crate::test_chain::chain;

    #[test]
    fn a_stored_promise_is_read_back_only_from_a_sequencer_that_l1_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("promise.json");
        let key = SigningKey::from_bytes(&[7; 32]).unwrap();
        let chain = chain();
        let first = SequencerChange { from_block: 0, sequencer: Address::repeat_byte(1) };
        let named = SequencerChange { from_block: 9, sequencer: key.address() };
        let strangers = Epochs::default().with_sequencers(vec![first], 9).unwrap();
        let epochs = Epochs::default().with_sequencers(vec![first, named], 9).unwrap();
        let promise = Promise::sign(&key, &chain.deployment, B256::repeat_byte(5), B256::repeat_byte(6), 77);
        store(NewFile::create(&path).unwrap(), &Encoded::new(&promise)).unwrap();
        let given = GivenPromise::new(&promise, key.address());
        assert_eq!(load(&path, &chain, &epochs).unwrap(), (promise, given));
        let stranger = load(&path, &chain, &strangers).unwrap_err().to_string();
        assert!(stranger.contains("not signed by a sequencer"), "{stranger}");

        let elsewhere = Deployment { l1_chain_id: chain.deployment.l1_chain_id + 1, ..chain.deployment };
        let other = ChainConfig { deployment: elsewhere, ..chain.clone() };
        assert!(load(&path, &other, &epochs).unwrap_err().to_string().contains("not signed by a sequencer"));
        fs::write(&path, "{}").unwrap();
        assert!(load(&path, &chain, &epochs).unwrap_err().to_string().contains("--promise-file"));
    }

    #[test]
    fn an_accusation_says_until_when_it_can_be_answered() {
        let key = SigningKey::from_bytes(&[7; 32]).unwrap();
        let promise =
            Promise::sign(&key, &chain().deployment, B256::repeat_byte(5), B256::repeat_byte(6), 77);
        let accusation =
            Accusation { state: AccusationState::Open, accuser: key.address(), answer_until: 7_300 };
        let text = text(&promise, &accusation, 100);
        assert!(text.contains("7300") && text.contains("0.1 ether") && text.contains("wallet slash"));
        let json =
            serde_json::to_value(value(&GivenPromise::new(&promise, key.address()), &accusation, B256::ZERO))
                .unwrap();
        assert_eq!((&json["state"], &json["answerUntil"]), (&"open".into(), &7_300.into()));
    }
}
