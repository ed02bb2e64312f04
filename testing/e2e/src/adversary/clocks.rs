//! Machines whose clock jumps.

use std::{collections::BTreeMap, ffi::OsString, fs};

use anyhow::{Context, Result, ensure};
use blindfold_protocol::limits::CLOCK_SKEW_MS;
use tokio::time::{Duration, sleep};

use super::{
    arena::{Arena, until},
    report::{Gas, Outcome},
};
use crate::{
    l1_relay::L1Relay,
    preload::WallClock,
    relay::now_ms,
    settings_file::{change_settings, section},
};

const HOUR_MS: i64 = 3_600_000;
/// An L1 block that is at most so old confirms the sequencer's clock, in milliseconds.
const MAX_L1_AGE_MS: i64 = 60_000;
/// How long nothing may be sealed for it to count as a stop.
const STOP: Duration = Duration::from_secs(3);
/// What else may make an envelope's header later than its sending: pauses of the sealer, and of a slow machine.
const SEALED_WITHIN_MS: u64 = 30_000;

/// The clock of the sequencer's machine, then that of a member's, jumps an hour ahead and back. L1 judges: while it
/// confirms the time that the sequencer keeps, sealing goes on by that; while it is away, nothing is sealed until the clock
/// is right again. A member votes by the time that it keeps. No header bears another time than its own.
pub async fn clock_jump(arena: &mut Arena) -> Outcome {
    let first = arena.transfer(0).await?.1.number.context("a number")?;
    let relay = L1Relay::start(arena.devnet.l1_url()).await?;
    let own = sequencer_l1(arena, &relay.url(), MAX_L1_AGE_MS)?;
    let wall = WallClock::of(arena.devnet.dir(), "sequencer").await?;
    restart(arena, "sequencer", wall.variables()).await?;
    let outcome = sequencers_clock(arena, &relay, &wall).await;
    // Later cases need it as it was, whatever came of this one.
    sequencer_l1(arena, &own.0, own.1)?;
    restart(arena, "sequencer", BTreeMap::new()).await?;
    outcome?;

    let wall = WallClock::of(arena.devnet.dir(), "member-1").await?;
    restart(arena, "member-1", wall.variables()).await?;
    // Without this one nothing is certified that the first does not vote for.
    arena.devnet.process("member-4")?.kill().await?;
    let outcome = members_clock(arena, &wall).await;
    restart(arena, "member-1", BTreeMap::new()).await?;
    let process = arena.devnet.process("member-4")?;
    process.start()?;
    process.ready().await?;
    outcome?;

    let last = timely_transfer(arena, 1).await?;
    stamps(arena, first, last).await?;
    Ok(Gas::default())
}

async fn restart(arena: &mut Arena, role: &str, variables: BTreeMap<String, OsString>) -> Result<()> {
    let process = arena.devnet.process(role)?;
    process.kill().await?;
    process.set_variables(variables);
    process.start()?;
    process.ready().await
}

/// Changes where the sequencer finds L1, and how old L1's newest block may be. Gives what was set before.
fn sequencer_l1(arena: &Arena, url: &str, max_age_ms: i64) -> Result<(String, i64)> {
    let mut before = None;
    change_settings(arena.devnet.dir(), "sequencer", "sequencer", |table| {
        let url_before = section(table, "l1")?.insert("url".to_owned(), url.into());
        let sealing = section(section(table, "sequencer")?, "sealing")?;
        let age_before = sealing.insert("max_l1_age_ms".to_owned(), max_age_ms.into());
        before = url_before.zip(age_before);
        Ok(())
    })?;
    let (url, age) = before.context("no settings before")?;
    Ok((url.as_str().context("a URL")?.to_owned(), age.as_integer().context("an age")?))
}

async fn sequencers_clock(arena: &mut Arena, relay: &L1Relay, wall: &WallClock) -> Result<()> {
    let admin = arena.devnet.ports.sequencer.1;
    for offset_ms in [HOUR_MS, -HOUR_MS] {
        wall.jump(offset_ms)?;
        said(arena, "sequencer", "the wall clock jumped; L1 confirms ours", offset_ms).await?;
        timely_transfer(arena, 0).await?;
        let unready = arena.unready(admin).await?;
        ensure!(!unready.contains_key("clock"), "expected L1 to confirm the kept clock, seen {unready:?}");
    }

    wall.jump(HOUR_MS)?;
    relay.go_away();
    clock_is_unready(arena, "sequencer", admin).await?;
    let sealed = arena.sequencer_status().await?.head.number;
    let waiting = arena.users[0].send().await?.0.id();
    sleep(STOP).await;
    let now = arena.sequencer_status().await?.head.number;
    ensure!(now == sealed, "expected nothing sealed after {sealed} while the clocks disagree, seen {now}");
    // Set right, L1 still away.
    wall.jump(0)?;
    arena.executed(waiting).await?;
    relay.go_on();
    clock_is_ready(arena, "sequencer", admin).await
}

async fn members_clock(arena: &mut Arena, wall: &WallClock) -> Result<()> {
    let admin = arena.devnet.ports.members[0].1;
    for offset_ms in [HOUR_MS, -HOUR_MS] {
        wall.jump(offset_ms)?;
        // Its L1 is not compared, so nobody says which of the two is right.
        clock_is_unready(arena, "member-1", admin).await?;
        timely_transfer(arena, 1).await?;
    }
    wall.jump(0)?;
    clock_is_ready(arena, "member-1", admin).await
}

async fn clock_is_unready(arena: &Arena, role: &str, admin: u16) -> Result<()> {
    until(&format!("{role} to say that its clock jumped"), async || {
        let unready = arena.unready(admin).await?;
        Ok(unready.get("clock").filter(|reason| reason.contains("clock jumped")).map(drop))
    })
    .await
}

async fn clock_is_ready(arena: &Arena, role: &str, admin: u16) -> Result<()> {
    until(&format!("{role}'s clock to be right"), async || {
        Ok((!arena.unready(admin).await?.contains_key("clock")).then_some(()))
    })
    .await
}

/// Waits for a line of the role's log with these words that ends with the offset, to the second or so: the process has
/// seen it.
async fn said(arena: &mut Arena, role: &str, words: &str, offset_ms: i64) -> Result<()> {
    let log = arena.devnet.process(role)?.log().to_owned();
    let near = |line: &str| {
        // A colour may stand before the number; it ends with an m.
        let number = line.rsplit(['=', 'm']).next()?.parse::<i64>().ok()?;
        ((number - offset_ms).abs() <= 2_000).then_some(())
    };
    until(&format!("{role} to say: {words} (by {offset_ms} ms)"), async || {
        let text = fs::read_to_string(&log)?;
        Ok(text.lines().filter(|line| line.contains(words)).find_map(near))
    })
    .await
}

/// A transfer whose header bears the time between its sending and its execution. Gives the number.
async fn timely_transfer(arena: &mut Arena, index: usize) -> Result<u64> {
    let sent_ms = now_ms();
    let number = arena.transfer(index).await?.1.number.context("a number")?;
    let stamp_ms = arena.sealed(number).await?.0.header.timestamp_ms;
    let latest = now_ms().min(sent_ms + SEALED_WITHIN_MS) + CLOCK_SKEW_MS;
    ensure!(
        (sent_ms.saturating_sub(CLOCK_SKEW_MS)..=latest).contains(&stamp_ms),
        "batch {number} was sent for at {sent_ms} ms and bears {stamp_ms} ms"
    );
    Ok(number)
}

/// No header of these numbers bears a time that is off by anything like the jump.
async fn stamps(arena: &Arena, first: u64, last: u64) -> Result<()> {
    let now_ms = now_ms();
    let mut before_ms = arena.sealed(first).await?.0.header.timestamp_ms;
    for number in first + 1..=last {
        let stamp_ms = arena.sealed(number).await?.0.header.timestamp_ms;
        ensure!(
            before_ms < stamp_ms && stamp_ms <= now_ms + CLOCK_SKEW_MS,
            "batch {number} bears {stamp_ms} ms, after {before_ms} ms, at {now_ms} ms"
        );
        before_ms = stamp_ms;
    }
    Ok(())
}
