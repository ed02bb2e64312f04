//! Processes that are gone.

use anyhow::{Context, Result};
use blindfold::devnet::accounts::{GATEWAY, SECOND_HINT_PUBLISHER};
use tokio::time::{Duration, Instant, sleep};
use toml::Table;

use super::network::Network;
use crate::settings_file::section;

/// How long members that sign too seldom are away, and there.
const AWAY: Duration = Duration::from_secs(8);
const THERE: Duration = Duration::from_millis(700);
/// How long they go on like that.
const SELDOM: Duration = Duration::from_secs(90);

/// A role is killed.
pub async fn down(network: &mut Network, name: &str, alarms: &[&str]) -> Result<()> {
    network.kill(name).await?;
    network.fire(alarms).await
}

/// The sequencer that leads is killed.
pub async fn sequencer(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let leader = network.leader().await?;
    down(network, leader, alarms).await
}

/// All of them are.
pub async fn every_sequencer(network: &mut Network, alarms: &[&str]) -> Result<()> {
    for (name, _) in network.devnet.sequencers() {
        network.kill(name).await?;
    }
    network.fire(alarms).await
}

/// A relay is killed; one that runs loses its source.
pub async fn relay(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let (down, not_ready) = alarms.split_first().context("two alarms")?;
    network.kill("relay").await?;
    network.fire(&[down]).await?;
    network.everybody_is_back().await?;
    network.quiet(not_ready).await?;
    network.kill("full-node").await?;
    network.fire(not_ready).await
}

/// Two members are killed: nothing is certified.
pub async fn two_members(network: &mut Network, alarms: &[&str]) -> Result<()> {
    for name in ["member-3", "member-4"] {
        network.kill(name).await?;
    }
    network.fire(alarms).await
}

/// Two members answer now and then only.
pub async fn seldom(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let members = ["member-3", "member-4"];
    let begun = Instant::now();
    let mut fired = Ok(false);
    while begun.elapsed() < SELDOM && matches!(fired, Ok(false)) {
        for name in members {
            network.devnet.process(name)?.pause()?;
        }
        sleep(AWAY).await;
        fired = network.fires(alarms).await;
        for name in members {
            network.devnet.process(name)?.resume()?;
        }
        sleep(THERE).await;
    }
    anyhow::ensure!(fired?, "{} did not fire", alarms.join(", "));
    Ok(())
}

/// All hint publishers are killed.
pub async fn hint_publisher(network: &mut Network, alarms: &[&str]) -> Result<()> {
    for name in ["hint-publisher", SECOND_HINT_PUBLISHER] {
        network.kill(name).await?;
    }
    network.fire(alarms).await
}

/// The execution client of whoever leads is killed.
pub async fn execution_of_sequencer(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let leader = network.leader().await?;
    network.devnet.execution_of(leader)?.kill().await?;
    let fired = network.fire(alarms).await;
    network.devnet.execution_of(leader)?.restart().await?;
    fired
}

/// The full node's is.
pub async fn execution_of_node(network: &mut Network, alarms: &[&str]) -> Result<()> {
    network.devnet.full_node_execution().kill().await?;
    let fired = network.fire(alarms).await;
    network.devnet.full_node_execution().restart().await?;
    fired
}

/// The proxy pays from an account without a deposit, and a wallet sends through it.
pub async fn fee_account_empty(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let dir = network.devnet.dir();
    let poor = dir.join("keys").join(format!("{GATEWAY}.json")).display().to_string();
    // A proxy's journal is that of its fee account.
    let state = dir.join("poor-proxy.sqlite").display().to_string();
    let change = |settings: &mut Table| {
        section(settings, "fee_key")?.insert("file".to_owned(), poor.into());
        section(settings, "proxy")?.insert("state".to_owned(), state.into());
        Ok(())
    };
    network.restart_with("proxy", change).await?;
    network.devnet.process("proxy")?.ready().await?;
    network.ordinary()?.send().await?;
    network.fire(alarms).await
}
