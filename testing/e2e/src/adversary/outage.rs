//! An L1 that answers nobody, and a committee that is away too long for L1: the chain goes on after either.

use anyhow::{Context, Result, ensure};
use blindfold_protocol::Canonical;
use blindfold_rpc::types::EnvelopeState;
use tokio::time::{Duration, Instant, timeout_at};

use super::{
    arena::{Arena, TIMING, USERS, until},
    committee::{everything_posted, last_header, make_header, mine_to},
    forced::places,
    report::{Gas, Outcome},
};

/// How long L1 is away at least: many time-outs of whoever asks it.
const OUTAGE: Duration = Duration::from_secs(60);
/// How long it is away at most: from the hint deadline on nobody executes what L1 may have declared void.
const LONGEST_OUTAGE: Duration = Duration::from_secs(85);
/// How long whoever asks L1 waits for it.
const L1_TIMEOUT: Duration = Duration::from_secs(10);
/// So many members that the others certify nothing.
const AWAY: [&str; 2] = ["member-3", "member-4"];

/// While L1 is away transfers are sealed, certified, opened and executed; afterwards what was certified is posted.
pub async fn l1_outage(arena: &mut Arena) -> Outcome {
    // A wallet that has never read L1 cannot know whom to trust.
    for user in 0..USERS {
        arena.transfer(user).await?;
    }
    let before = arena.status().await?;
    arena.devnet.pause_l1()?;
    let during = away(arena).await;
    arena.devnet.resume_l1()?;
    let last = during?;
    let after = arena.status().await?;
    ensure!(
        after.certified > before.certified && after.block.number > before.block.number,
        "expected certificates and blocks while L1 is away: certified {} and {}, block {} and {}",
        before.certified,
        after.certified,
        before.block.number,
        after.block.number
    );
    // L1 takes what it missed.
    arena.posted_run(last).await?;
    arena.transfer(0).await?;
    Ok(Gas::default())
}

/// Transfers, one after another, for as long as L1 is away. Gives the last batch that has one.
async fn away(arena: &mut Arena) -> Result<u64> {
    let start = Instant::now();
    let (mut sent, mut last) = (0usize, 0);
    while start.elapsed() < OUTAGE {
        let transfer = timeout_at(start + LONGEST_OUTAGE, arena.transfer(sent % USERS)).await;
        let longest = LONGEST_OUTAGE.as_secs();
        let (_, receipt) =
            transfer.with_context(|| format!("after {sent} transfers none more within {longest} s"))??;
        last = receipt.number.unwrap_or(last);
        sent += 1;
    }
    // As many as time-outs: each would have waited for one.
    let waiting = OUTAGE.as_secs() / L1_TIMEOUT.as_secs();
    ensure!(sent as u64 > 2 * waiting, "expected more than {} transfers, seen {sent}", 2 * waiting);
    Ok(last)
}

/// Too few members certify until what the sequencer signed is too old for L1. L1 makes an empty header in its place, the
/// sequencer and the members that had acknowledged another one follow it. What was sealed in vain may have been opened by
/// somebody, so it is over: no batch accepts it again, sent or forced.
pub async fn stale_header_after_outage(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    everything_posted(arena).await?;
    let bond = arena.bond().await?.amount;
    for name in AWAY {
        arena.devnet.process(name)?.kill().await?;
    }
    let (lost, raw) = arena.users[0].send().await?;
    let (waiting, early) = (lost.id(), arena.users[0].offer().await?);
    let signed = until("a header that too few acknowledge", async || {
        Ok(arena.receipt_of_sequencer(waiting).await?.and_then(|receipt| receipt.number))
    })
    .await?;
    let parent = last_header(arena).await?;
    ensure!(parent.number < signed, "expected {signed} not to be on L1, whose head is {}", parent.number);
    mine_to(arena, arena.raw.height().await? + u64::from(TIMING.posting_deadline) + 1).await?;
    gas.step("postL1Header", make_header(arena, &parent).await?);
    let made = last_header(arena).await?;
    ensure!(
        (made.number, made.envelope_count) == (parent.number + 1, 0),
        "expected an empty header after {}, seen {made:?}",
        parent.number
    );
    for name in AWAY {
        arena.devnet.process(name)?.start()?;
    }
    let receipt = until("what was sealed in vain to be over", async || {
        let receipt = arena.receipt_of_sequencer(waiting).await?;
        Ok(receipt.filter(|receipt| receipt.state == EnvelopeState::Expired))
    })
    .await?;
    let reason = receipt.reason.as_deref();
    ensure!(reason == Some("wrong_generation"), "expected wrong_generation, seen {receipt:?}");
    let late = arena.users[0].envelope_for(raw.to_vec(), &early)?;
    for (envelope, refusal) in [(&lost, "already_known"), (&late, "wrong_generation")] {
        let refused = until("the sequencer to have recovered", async || {
            let refused = arena.users[0].try_submit(envelope, false).await?.err();
            Ok(Some(refused).filter(|refused| refused.as_deref() != Some("recovering")))
        })
        .await?;
        ensure!(refused.as_deref() == Some(refusal), "expected {refusal}, seen {refused:?}");
    }
    gas.step("force what was sealed in vain", arena.bully().force_envelope(&lost.encode()).await?.gas_used);
    let barred = [(lost.encode(), "wrong_generation")];
    until("it to be skipped in a batch", async || places(arena, &barred).await).await?;
    // Its user makes another one.
    arena.users[0].nonce -= 1;
    let again = arena.transfer(0).await?.1.number.context("a number")?;
    ensure!(again > made.number, "expected a batch after {}, seen {again}", made.number);
    arena.posted_run(again).await?;
    arena.transfer(1).await?;
    let after = arena.bond().await?.amount;
    ensure!(after == bond, "expected the sequencer's bond of {bond} wei, seen {after}");
    Ok(gas)
}
