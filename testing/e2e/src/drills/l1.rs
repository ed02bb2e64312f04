//! What L1 says, or does not.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use blindfold::devnet::accounts::{GATEWAY, SEQUENCER, named_key};
use blindfold_l1::{L1Writer, Output, dev_key};
use blindfold_protocol::{Address, B256};
use blindfold_rpc::{Feed, FeedConfig, FeedEvent, FeedItem, Topic};
use serde_json::json;
use tokio::time::{Duration, Instant};
use toml::Table;

use super::network::Network;
use crate::{l1_relay::L1Relay, settings_file::section};

/// How long a wrong claim may take to get in before the sequencer's.
const CLAIMS: Duration = Duration::from_secs(60);
/// How far behind the newest number a rule set begins: more than the notice, whatever is not posted yet.
const RULES_AHEAD: u64 = 60;
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

/// The sequencer's key claims a block that nobody executed, while the sequencers claim none.
pub async fn wrong_output(network: &mut Network, alarms: &[&str]) -> Result<()> {
    for (name, _) in network.devnet.sequencers() {
        let change = |settings: &mut Table| {
            let sequencer = section(settings, "sequencer")?;
            section(sequencer, "outputs")?.insert("enabled".to_owned(), false.into());
            Ok(())
        };
        network.restart_with(name, change).await?;
    }
    let url = format!("ws://127.0.0.1:{}", network.devnet.ports.full_node.0);
    let mut feed = Feed::start(url, [Topic::Blocks], FeedConfig::default());
    let writer = L1Writer::new(network.devnet.l1.clone(), named_key(SEQUENCER));
    let mut blocks = BTreeMap::new();
    let deadline = Instant::now() + CLAIMS;
    let mut refused = None;
    loop {
        let last = |refused: &Option<String>| refused.clone().unwrap_or_else(|| "nothing".to_owned());
        ensure!(Instant::now() < deadline, "no claim gets in; L1 said at last: {}", last(&refused));
        let Some(item) = feed.next().await else { continue };
        let FeedItem::Event(FeedEvent::Block(block)) = item else { continue };
        blocks.insert(block.number, block);
        let claimed = network.devnet.l1.last_output().await?;
        let Some(next) = blocks.get(&(claimed + 1)) else {
            // What was claimed before the sequencers stopped may be older than what is seen here: then they go on for a while.
            continue;
        };
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
        network.fire(alarms).await
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

/// A rule set begins that nobody knows.
pub async fn unknown_rules(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let governor = L1Writer::new(network.devnet.l1.clone(), dev_key(0).context("anvil's first key")?);
    governor.schedule_rules(network.newest() + RULES_AHEAD, 2).await?;
    network.fire(alarms).await
}
