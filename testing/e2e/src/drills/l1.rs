//! What L1 says, or does not.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use blindfold::devnet::{
    accounts::{GATEWAY, HINT_PUBLISHER, SEQUENCER, named_key},
    ports::http,
};
use blindfold_client::CommitteeKey;
use blindfold_l1::{HintPosting, L1Reader, L1Writer, Output, RunReference, dev_key};
use blindfold_protocol::{Address, B256, BatchHints, HintEntry, U256};
use blindfold_rpc::{
    BlindApiClient, ClientConfig, Feed, FeedConfig, FeedEvent, FeedItem, Topic, http_client,
};
use serde_json::json;
use tokio::time::{Duration, Instant, sleep};
use toml::Table;

use super::network::{Network, TIMING};
use crate::{l1_relay::L1Relay, settings_file::section};

/// How long a run may take to be posted.
const RUNS: Duration = Duration::from_secs(60);
/// How often L1 is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Posts wrong hints.
const FORGER: &str = "forger";
/// How long claims may be behind what is executed, and a wrong one may take to get in before the sequencer's: only safe
/// blocks are claimed, and after a drill hints and data on L1 have to catch up first.
const CLAIMS: Duration = Duration::from_secs(180);
/// How far behind the newest number something changes: more than the notice, whatever is not posted yet.
const AHEAD: u64 = 40;
/// Pause between attempts to post, in milliseconds: the longest by default is half a minute.
const POSTING_RETRY_MS: i64 = 500;
/// What an account owned before it had nothing, in wei.
const FUNDS: &str = "0x21e19e0c9bab2400000";

/// The hint publisher that posts has an account without ether.
pub async fn without_ether(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let poor = network.devnet.dir().join("keys").join(format!("{GATEWAY}.json")).display().to_string();
    let change = |settings: &mut Table| {
        let posting = section(settings, "l1_posting")?;
        section(posting, "key")?.insert("file".to_owned(), poor.into());
        Ok(())
    };
    network.restart_with("hint-publisher", change).await?;
    network.fire(alarms).await
}

/// The hint publisher that posts has a bond, and no ether any more.
pub async fn ether_is_gone(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let account = named_key(HINT_PUBLISHER).address();
    set_balance(network, account, "0x0").await?;
    let fired = network.fire(alarms).await;
    set_balance(network, account, FUNDS).await?;
    fired
}

/// The sequencer's key claims a block that nobody executed, while the sequencers claim none.
pub async fn wrong_output(network: &mut Network, alarms: &[&str]) -> Result<()> {
    // From before the last claim on.
    let url = format!("ws://127.0.0.1:{}", network.devnet.ports.full_node.0);
    let mut feed = Feed::start(url, [Topic::Blocks], FeedConfig::default());
    let (mut blocks, deadline) = (BTreeMap::new(), Instant::now() + CLAIMS);
    while blocks.is_empty() || !blocks.contains_key(&(network.devnet.l1.last_output().await? + 1)) {
        ensure!(Instant::now() < deadline, "nothing is claimed of what is executed now");
        if let Some(FeedItem::Event(FeedEvent::Block(block))) = feed.next().await {
            blocks.insert(block.number, block);
        }
    }
    for (name, _) in network.devnet.sequencers() {
        let change = |settings: &mut Table| {
            let sequencer = section(settings, "sequencer")?;
            // Postings of the same account, one in each L1 block, would take the claim's nonce.
            for part in ["outputs", "posting"] {
                section(sequencer, part)?.insert("enabled".to_owned(), false.into());
            }
            Ok(())
        };
        network.restart_with(name, change).await?;
    }
    let writer = L1Writer::new(network.devnet.l1.clone(), named_key(SEQUENCER));
    let deadline = Instant::now() + CLAIMS;
    let mut refused = None;
    loop {
        let last = |refused: &Option<String>| refused.clone().unwrap_or_else(|| "nothing".to_owned());
        ensure!(Instant::now() < deadline, "no claim gets in; L1 said at last: {}", last(&refused));
        let Some(item) = feed.next().await else { continue };
        let FeedItem::Event(FeedEvent::Block(block)) = item else { continue };
        blocks.insert(block.number, block);
        let claimed = network.devnet.l1.last_output().await?;
        let Some(next) = blocks.get(&(claimed + 1)) else { continue };
        let wrong = Output {
            l2_block: next.number,
            batch: next.last_batch,
            timestamp: next.timestamp,
            block_hash: B256::repeat_byte(7),
            state_root: next.state_root,
        };
        match writer.propose_outputs(&[wrong]).await {
            Ok(_) => break,
            Err(error) => refused = Some(error.to_string()),
        }
    }
    network.fire(alarms).await?;
    // The node counts it until it starts anew.
    network.kill("full-node").await
}

/// L1 answers nobody.
pub async fn away(network: &mut Network, alarms: &[&str]) -> Result<()> {
    network.l1.go_away();
    let fired = network.fire(alarms).await;
    network.l1.go_on();
    fired
}

/// A role is started while L1 answers nobody.
pub async fn away_at_start(network: &mut Network, alarms: &[&str]) -> Result<()> {
    network.l1.go_away();
    let fired = async {
        network.kill("full-node").await?;
        network.devnet.process("full-node")?.start()?;
        network.fire(alarms).await?;
        ensure!(network.devnet.process("full-node")?.ended()?.is_some(), "it runs without L1");
        Ok(())
    }
    .await;
    network.l1.go_on();
    fired
}

/// The full node's L1 has another block where a final one was.
pub async fn final_block_taken_back(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let relay = L1Relay::start(network.devnet.l1_url()).await?;
    let url = relay.url();
    let change = |settings: &mut Table| {
        section(settings, "l1")?.insert("url".to_owned(), url.into());
        Ok(())
    };
    network.restart_with("full-node", change).await?;
    network.devnet.process("full-node")?.ready().await?;
    relay.take_back_final_blocks();
    network.fire(alarms).await
}

/// The account that posts has no ether. Pauses between attempts are sped up as the alarm is, which counts attempts.
pub async fn posting_fails(network: &mut Network, alarms: &[&str]) -> Result<()> {
    for (name, _) in network.devnet.sequencers() {
        let change = |settings: &mut Table| {
            let posting = section(section(settings, "sequencer")?, "posting")?;
            for pause in ["retry_ms", "max_retry_ms"] {
                posting.insert(pause.to_owned(), POSTING_RETRY_MS.into());
            }
            Ok(())
        };
        network.restart_with(name, change).await?;
    }
    let account = named_key(SEQUENCER).address();
    set_balance(network, account, "0x0").await?;
    let fired = network.fire(alarms).await;
    set_balance(network, account, FUNDS).await?;
    fired
}

async fn set_balance(network: &Network, account: Address, wei: &str) -> Result<()> {
    let l1 = blindfold_client::Node::new(network.devnet.l1_url())?;
    l1.call("anvil_setBalance", &[json!(account), json!(wei)]).await?;
    Ok(())
}

/// The newest run on L1 in which the full node knows a hint, and its hints, once there is one above this L1 block.
async fn newest_run(network: &Network, after: u64) -> Result<(RunReference, Vec<BatchHints>)> {
    let node = http_client(&http(network.devnet.ports.full_node.0), &ClientConfig::default())?;
    let l1 = &network.devnet.l1;
    let deadline = Instant::now() + RUNS;
    loop {
        let newest = l1.newest().await?;
        for (run, _) in l1.posted_runs(after, newest).await?.into_iter().rev() {
            let mut hints = Vec::new();
            for number in run.first..=run.last {
                hints.extend(node.get_hints(number).await?.and_then(|hints| hints.decode().ok()));
            }
            let whole = hints.len() as u64 == run.last - run.first + 1;
            if whole && hints.iter().flat_map(|hints| &hints.entries).any(is_key) {
                return Ok((run, hints));
            }
        }
        ensure!(Instant::now() < deadline, "no run with a hint is posted");
        sleep(LOOK).await;
    }
}

const fn is_key(entry: &HintEntry) -> bool {
    matches!(entry, HintEntry::Key(_))
}

/// Somebody posts wrong hints, and no node has an account to challenge them with.
pub async fn wrong_hints(network: &mut Network, alarms: &[&str]) -> Result<()> {
    network.kill("hint-publisher").await?;
    let change = |settings: &mut Table| {
        section(settings, "watch")?.remove("key");
        Ok(())
    };
    network.restart_with("full-node", change).await?;
    network.devnet.process("full-node")?.ready().await?;
    let after = network.devnet.l1.newest().await?;
    let forger = L1Writer::new(network.devnet.l1.clone(), named_key(FORGER));
    set_balance(network, forger.address(), FUNDS).await?;
    let (bond, _) = network.devnet.l1.hint_stakes().await?;
    forger.deposit_publisher_bond(bond).await?;
    let (run, mut hints) = newest_run(network, after).await?;
    let entries = hints.iter_mut().flat_map(|hints| &mut hints.entries);
    for entry in entries {
        if let HintEntry::Key(key) = entry {
            key[0] ^= 1;
        }
    }
    forger.post_hints(&run, &HintPosting::of(&hints)).await?;
    network.fire(alarms).await
}

/// No hints are posted for a run that nodes have executed, and after its time somebody has it declared void.
pub async fn declared_void(network: &mut Network, alarms: &[&str]) -> Result<()> {
    network.kill("hint-publisher").await?;
    let after = network.devnet.l1.newest().await?;
    let (run, _) = newest_run(network, after).await?;
    network.devnet.mine(u64::from(TIMING.hint_deadline) + 1).await?;
    let anybody = L1Writer::new(network.devnet.l1.clone(), dev_key(0).context("anvil's first key")?);
    anybody.void_unreleased(&run).await?;
    network.fire(alarms).await
}

/// The epoch ends, and none comes after it. The other senders do not read L1 again: their envelopes may be sealed too late.
pub async fn no_epoch(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let governor = L1Writer::new(network.devnet.l1.clone(), dev_key(0).context("anvil's first key")?);
    let last = network.newest() + AHEAD;
    governor.end_epoch(1, last).await?;
    let deadline = Instant::now() + RUNS;
    let committee = loop {
        let committee = CommitteeKey::fetch(&network.devnet.l1, network.newest(), None).await?;
        if committee.epoch.last == last {
            break committee;
        }
        ensure!(Instant::now() < deadline, "L1 does not say that the epoch ends with {last}");
        sleep(LOOK).await;
    };
    let mut sender = network.sender(committee).await?;
    while Instant::now() < deadline && !network.fires(alarms).await? {
        let (raw, _) = sender.transfer(sender.nonce, U256::from(1));
        // Its answer is what the alarm tells.
        if let Ok(envelope) = sender.envelope(raw.to_vec()).await
            && matches!(sender.try_submit(&envelope, false).await, Ok(Ok(_)))
        {
            sender.nonce += 1;
        }
        sleep(LOOK).await;
    }
    network.fire(alarms).await
}

/// A rule set begins that nobody knows.
pub async fn unknown_rules(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let governor = L1Writer::new(network.devnet.l1.clone(), dev_key(0).context("anvil's first key")?);
    governor.schedule_rules(network.newest() + AHEAD, 2).await?;
    network.fire(alarms).await
}
