//! Clocks, disks, too much to do.

use anyhow::Result;
use toml::Table;

use super::network::Network;
use crate::{
    preload::{Disk, DiskError, WallClock},
    settings_file::section,
};

const MEMBER: &str = "member-4";
const HOUR_MS: i64 = 3_600_000;
/// A sequencer that takes next to nothing, and empties that seldom.
const FEW_ENVELOPES: i64 = 1;
const LONG_SLOT_MS: i64 = 2_000;

/// A member starts with a clock that is an hour behind.
pub async fn member_clock(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let clock = WallClock::of(network.devnet.dir(), MEMBER).await?;
    clock.jump(-HOUR_MS)?;
    network.restart_in(MEMBER, clock.variables()).await?;
    network.fire(alarms).await
}

/// A member's disk is full.
pub async fn disk_full(network: &mut Network, alarms: &[&str]) -> Result<()> {
    disk_refuses(network, DiskError::Full, alarms).await
}

/// A member's disk is broken.
pub async fn disk_error(network: &mut Network, alarms: &[&str]) -> Result<()> {
    disk_refuses(network, DiskError::Broken, alarms).await
}

async fn disk_refuses(network: &mut Network, error: DiskError, alarms: &[&str]) -> Result<()> {
    let disk = Disk::of(network.devnet.dir(), MEMBER).await?;
    network.restart_in(MEMBER, disk.variables()).await?;
    network.devnet.process(MEMBER)?.ready().await?;
    disk.refuses(error)?;
    network.fire(alarms).await
}

/// More is sent than sequencers take.
pub async fn overload(network: &mut Network, alarms: &[&str]) -> Result<()> {
    for (name, _) in network.devnet.sequencers() {
        let change = |settings: &mut Table| {
            let sequencer = section(settings, "sequencer")?;
            section(sequencer, "mempool")?.insert("max_envelopes".to_owned(), FEW_ENVELOPES.into());
            section(sequencer, "sealing")?.insert("slot_ms".to_owned(), LONG_SLOT_MS.into());
            Ok(())
        };
        network.restart_with(name, change).await?;
    }
    network.fire(alarms).await
}
