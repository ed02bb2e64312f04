//! A new committee: in the middle of everything, in the place of one that is gone, and behind one whose end was announced.

use std::path::PathBuf;

use alloy_primitives::U256;
use anyhow::{Context, Result, bail, ensure};
use blindfold::{
    dealer::{Deal, deal},
    deploy::new_epoch,
    devnet::{MEMBERS, THRESHOLD, stake_members},
};
use blindfold_chain::Closing;
use blindfold_committee::key_file::KeyFileCost;
use blindfold_l1::Sent;
use blindfold_protocol::{B256, Envelope};
use blindfold_rpc::types::Status;
use serde_json::json;

use super::{
    arena::{Arena, COMMITTEES, MAX_BATCH, TIMING, until},
    committee::{everything_posted, is_by_l1, last_header, make_header, members, mine_to},
    report::{Gas, Outcome},
    restored::{sequencer_goes_on, sequencer_hesitates},
};
use crate::settings_file::{change_settings, section};

/// Last batch number of the first committee.
pub const FIRST_EPOCH_LAST: u64 = 48;
/// Last batch number of the second.
const SECOND_EPOCH_LAST: u64 = u32::MAX as u64;
/// What it costs to try the password of a key file: next to nothing.
const KEY_FILE_COST: KeyFileCost = KeyFileCost { memory_kib: 64, iterations: 1, lanes: 1 };
/// Blocks of the notice that are mined at once.
const NOTICE_STEP_BLOCKS: u64 = 30;
/// Folder of the second committee's keys.
const FOLDER: &str = "committee-2";
/// Last batch number of the third, which takes the second one's place.
const THIRD_EPOCH_LAST: u64 = SECOND_EPOCH_LAST - 1;
/// Folder of its keys.
const THIRD_FOLDER: &str = "committee-3";
/// Last batch number of the fourth, which comes behind the third.
const FOURTH_EPOCH_LAST: u64 = SECOND_EPOCH_LAST;
/// Folder of its keys.
const FOURTH_FOLDER: &str = "committee-4";
/// Blocks before those that are for posting alone, in which a batch is to be released.
const RELEASED_BEFORE: u64 = 20;
/// Seconds between two blocks of L1 while somebody has to post in the last of them, on a slow machine too; and else.
const SLOW_BLOCKS_S: u64 = 4;
const BLOCKS_S: u64 = 1;
/// How often a batch is made that the sequencer is not to have posted.
const ATTEMPTS: usize = 4;

/// A second epoch with another committee's key, while envelopes for both are under way.
pub async fn rotation(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let registered = register(arena, FOLDER, SECOND_EPOCH_LAST).await?;
    gas.step("registerEpoch", registered.gas_used);
    // An epoch's certificates count when the notice is over, and its numbers come soon.
    everything_posted_on_the_way_to(arena, registered.block + u64::from(COMMITTEES.epoch_notice)).await?;
    know(arena, FOLDER).await?;

    // From here on these users' envelopes are for the second committee.
    for index in [2, 3] {
        arena.users[index] = arena.with_committee_of(index, FIRST_EPOCH_LAST + 1).await?;
    }
    // All are made before the first is sent: from then on the first committee's numbers run out.
    let mut envelopes = Vec::new();
    for user in &mut arena.users {
        let (raw, _) = user.transfer(user.nonce, U256::from(1));
        envelopes.push(user.envelope(raw.to_vec()).await?);
        user.nonce += 1;
    }
    // For the second committee first: they wait until the first one's numbers are over. Without a promise: nobody can
    // say what a byte will cost so many headers later.
    for index in [2, 3] {
        arena.users[index].submit(&envelopes[index], false).await?;
    }
    for index in [0, 1] {
        arena.users[index].submit(&envelopes[index], true).await?;
    }
    let ids: Vec<B256> = envelopes.iter().map(Envelope::id).collect();
    let (first, later) = ids.split_at(2);
    for id in first {
        let number = arena.executed(*id).await?.number.context("a number")?;
        ensure!(number <= FIRST_EPOCH_LAST, "expected a batch of the first epoch, seen {number}");
    }
    first_epoch_ends(arena).await?;
    take_over(arena, FOLDER).await?;
    members_are_ready(arena).await?;
    for id in later {
        let number = arena.executed(*id).await?.number.context("a number")?;
        ensure!(number > FIRST_EPOCH_LAST, "expected a batch of the second epoch, seen {number}");
    }
    for index in [0, 1] {
        arena.users[index] = arena.with_committee_of(index, FIRST_EPOCH_LAST + 1).await?;
        arena.transfer(index).await?;
    }
    Ok(gas)
}

/// Waits until the first epoch is over and has all its hints, for as long as one number follows the other.
async fn first_epoch_ends(arena: &Arena) -> Result<()> {
    let progress =
        |status: &Status| status.certified.min(FIRST_EPOCH_LAST) + status.hinted.min(FIRST_EPOCH_LAST);
    let mut seen = 0;
    while seen < 2 * FIRST_EPOCH_LAST {
        seen = until("the first epoch to go on", async || {
            let now = progress(&arena.status().await?);
            Ok((now > seen).then_some(now))
        })
        .await?;
    }
    Ok(())
}

/// A committee that is gone for good: its epoch ends with a header that L1 makes, and another one takes its place.
pub async fn dead_committee_replaced(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    // After the case before this one there is neither committee nor sequencer any more.
    if arena.sequencer_status().await.is_ok() {
        everything_posted(arena).await?;
        arena.devnet.process("sequencer")?.kill().await?;
    }
    members(arena, false).await?;
    let bond = arena.bond().await?.amount;

    let governor = arena.account(blindfold_l1::dev_key(0).context("anvil's first key")?);
    mine_to(arena, arena.raw.height().await? + u64::from(TIMING.posting_deadline) + 1).await?;
    let announced = governor.announce_silence().await?;
    gas.step("announceSilence", announced.gas_used);
    let end = arena.devnet.l1.announced_end().await?.context("an announced end")?;
    ensure!(
        end.until == announced.block + u64::from(TIMING.answer_window) && end.for_silence,
        "expected the committee to have its answer window, seen {end:?}"
    );
    let parent = last_header(arena).await?;
    ensure!(!arena.devnet.l1.standing().await?.end_due, "expected no end before the window is over");
    mine_to(arena, end.until + 1).await?;
    gas.step("postL1Header", make_header(arena, &parent).await?);
    let head = parent.number + 1;
    ensure!(arena.devnet.l1.announced_end().await?.is_none(), "expected the announcement to be used up");
    let registered = register(arena, THIRD_FOLDER, THIRD_EPOCH_LAST).await?;
    gas.step("registerEpoch", registered.gas_used);
    // Nothing is under way that could be too late for L1.
    mine_to(arena, registered.block + u64::from(COMMITTEES.epoch_notice)).await?;

    take_over(arena, THIRD_FOLDER).await?;
    // The sequencer waits for their answers, and they follow the sequencer.
    know(arena, THIRD_FOLDER).await?;
    members_are_ready(arena).await?;
    arena.users[1] = arena.with_committee_of(1, head + 1).await?;
    // A forced transaction of this account may have executed meanwhile.
    arena.users[1].nonce = arena.reads()?.nonce(&arena.users[1].key.address()).await?;
    let (_, receipt) = arena.transfer(1).await?;
    let number = receipt.number.context("a number")?;
    ensure!(number > head, "expected a batch after {head}, seen {number}");
    arena.posted_run(number).await?;
    let after = arena.bond().await?.amount;
    ensure!(after == bond, "expected the sequencer's bond of {bond} wei, seen {after}");
    Ok(gas)
}

/// The end of an epoch is announced, and its sequencer keeps what it had released from L1, which takes nothing of that
/// epoch once the end is due: somebody else posts it in time. Then roles have L1 make the last header, and the next
/// committee goes on behind it.
pub async fn announced_end(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    register(arena, FOURTH_FOLDER, FOURTH_EPOCH_LAST).await?;
    let governor = arena.account(blindfold_l1::dev_key(0).context("anvil's first key")?);
    let announced = governor.announce_end(false).await?;
    gas.step("announceEnd", announced.gas_used);
    let end = until("the announcement", async || Ok(arena.devnet.l1.announced_end().await?)).await?;
    let closing = Closing::of(&end, TIMING.posting_deadline);
    ensure!(
        end.until == announced.block + u64::from(COMMITTEES.epoch_notice) && !end.for_silence,
        "expected the notice of an epoch, seen {end:?}"
    );
    know(arena, FOURTH_FOLDER).await?;
    everything_posted_on_the_way_to(arena, closing.closed_from().saturating_sub(RELEASED_BEFORE)).await?;

    let usual_ms = sequencer_hesitates(arena).await?;
    let released = released_and_kept(arena).await?;
    arena.raw.call("evm_setIntervalMining", json!([SLOW_BLOCKS_S])).await?;
    mine_to(arena, closing.closed_from()).await?;
    // What it takes before it sees that block may be sealed: not in the way of the other user's next one.
    let late = arena.with_committee_of(2, released).await?;
    let (raw, _) = late.transfer(late.nonce, U256::from(1));
    let envelope = late.envelope(raw.to_vec()).await?;
    until("the sequencer to admit nothing", async || match late.try_submit(&envelope, false).await? {
        Err(reason) if reason == "epoch_ends" => Ok(Some(())),
        Ok(_) => Ok(None),
        Err(reason) if reason == "already_known" => Ok(None),
        Err(reason) => bail!("expected the refusal epoch_ends, seen {reason}"),
    })
    .await?;
    until("somebody else to post what the sequencer keeps", async || {
        Ok((arena.devnet.l1.posted_head().await?.number >= released).then_some(()))
    })
    .await?;
    arena.raw.call("evm_setIntervalMining", json!([BLOCKS_S])).await?;
    let ours = arena.batch(released).await?.hash;
    let run = arena.posted_run(released).await?;
    ensure!(
        run.headers.iter().any(|header| header.hash() == ours),
        "expected batch {released} on L1 as it was certified"
    );

    let last = certified_and_posted(arena).await?;
    mine_to(arena, end.until + 1).await?;
    until("a role to have L1 make the epoch's last header", async || {
        Ok(arena.devnet.l1.announced_end().await?.is_none().then_some(()))
    })
    .await?;
    let head = last_header(arena).await?.number;
    ensure!(
        head == last + 1 && is_by_l1(arena, head).await?,
        "expected L1's own header after {last}, seen {head}"
    );

    take_over(arena, FOURTH_FOLDER).await?;
    members_are_ready(arena).await?;
    arena.users[1] = arena.with_committee_of(1, head + 1).await?;
    sequencer_goes_on(arena, usual_ms).await?;
    let (_, receipt) = arena.transfer(1).await?;
    let number = receipt.number.context("a number")?;
    ensure!(number > head, "expected a batch after {head}, seen {number}");
    arena.posted_run(number).await?;
    Ok(gas)
}

/// The last number, once what is certified of it is on L1.
async fn certified_and_posted(arena: &Arena) -> Result<u64> {
    until("everything certified to be on L1", async || {
        let last = arena.status().await?.certified;
        Ok((arena.devnet.l1.posted_head().await?.number == last).then_some(last))
    })
    .await
}

/// The number of a batch that was released and executed, and that the sequencer has not posted.
async fn released_and_kept(arena: &mut Arena) -> Result<u64> {
    for _ in 0..ATTEMPTS {
        // So near to the end nothing is promised.
        let user = &mut arena.users[1];
        let (raw, _) = user.transfer(user.nonce, U256::from(1));
        user.nonce += 1;
        let envelope = user.envelope(raw.to_vec()).await?;
        arena.users[1].submit(&envelope, false).await?;
        let number = arena.executed(envelope.id()).await?.number.context("a number")?;
        // After its start it posts once.
        if arena.devnet.l1.posted_head().await?.number < number {
            return Ok(number);
        }
    }
    bail!("the sequencer had posted everything in each of {ATTEMPTS} attempts")
}

/// Deals a committee's keys and registers them.
async fn register(arena: &Arena, folder: &str, last: u64) -> Result<Sent> {
    let dir = arena.devnet.dir();
    let password = std::fs::read_to_string(dir.join("password"))?;
    let out = dir.join(folder);
    let dealt = tokio::task::spawn_blocking(move || {
        deal(&Deal {
            max_batch: MAX_BATCH,
            members: MEMBERS,
            threshold: THRESHOLD,
            out: &out,
            password: password.trim(),
            cost: KEY_FILE_COST,
        })
    })
    .await??;
    let members: Vec<PathBuf> = dealt.members.iter().map(|(path, _)| path.clone()).collect();
    let location = format!("file:{folder}/parameters.bin");
    let epoch = new_epoch(&dealt.parameters, &members, last, location)?;
    let governor = arena.account(blindfold_l1::dev_key(0).context("anvil's first key")?);
    let password = std::fs::read_to_string(arena.devnet.dir().join("password"))?;
    stake_members(&governor, &members, password.trim(), SECOND_EPOCH_LAST).await?;
    let sent = governor.register_epoch(&epoch).await?;
    until("the epoch to be final on L1", async || {
        let epochs = arena.devnet.l1.epochs().await?;
        Ok(epochs.as_slice().last().filter(|epoch| epoch.last == last).map(|_| ()))
    })
    .await?;
    Ok(sent)
}

/// Mines until L1 is at this height, in small steps: what is certified meanwhile has to reach L1 before its origin is too
/// old, and does so before the next step.
async fn everything_posted_on_the_way_to(arena: &Arena, block: u64) -> Result<()> {
    loop {
        let height = arena.raw.height().await?;
        if height >= block {
            return Ok(());
        }
        everything_posted(arena).await?;
        mine_to(arena, block.min(height + NOTICE_STEP_BLOCKS)).await?;
    }
}

/// Gives sequencer, hint publisher and full node one committee's parameters more.
async fn know(arena: &mut Arena, folder: &str) -> Result<()> {
    let dir = arena.devnet.dir().to_owned();
    let parameters = dir.join(folder).join("parameters.bin").display().to_string();
    for role in ["sequencer", "hint-publisher", "full-node"] {
        change_settings(&dir, role, role, |table| {
            let list = table.get_mut("parameters").and_then(toml::Value::as_array_mut);
            list.context("no list of parameters")?.push(parameters.clone().into());
            Ok(())
        })?;
        arena.devnet.process(role)?.stop().await;
        arena.devnet.process(role)?.start()?;
    }
    for role in ["sequencer", "hint-publisher", "full-node"] {
        arena.devnet.process(role)?.ready().await?;
    }
    Ok(())
}

/// The members go on with the keys of another committee.
async fn take_over(arena: &mut Arena, folder: &str) -> Result<()> {
    let dir = arena.devnet.dir().to_owned();
    for member in 1..=MEMBERS {
        let name = format!("member-{member}");
        let parameters = dir.join(folder).join("parameters.bin").display().to_string();
        change_settings(&dir, &name, &name, |table| {
            table.insert("parameters".to_owned(), parameters.into());
            let file = dir.join(folder).join(format!("{name}.key")).display().to_string();
            section(table, "key")?.insert("file".to_owned(), file.into());
            Ok(())
        })?;
        arena.devnet.process(&name)?.stop().await;
        arena.devnet.process(&name)?.start()?;
    }
    Ok(())
}

async fn members_are_ready(arena: &mut Arena) -> Result<()> {
    for member in 1..=MEMBERS {
        arena.devnet.process(&format!("member-{member}"))?.ready().await?;
    }
    Ok(())
}
