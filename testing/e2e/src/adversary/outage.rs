//! An L1 that answers nobody, and a committee that is away too long for L1: the chain goes on after either.

use anyhow::{Context, Result, ensure};
use blindfold_protocol::Canonical;
use blindfold_rpc::types::EnvelopeState;
use tokio::time::{Duration, Instant, timeout_at};

use super::{
    committee::{everything_posted, last_header, make_header, mine_to},
    field::{Field, TIMING, USERS, until},
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
pub async fn l1_outage(field: &mut Field) -> Outcome {
    // A wallet that has never read L1 cannot know whom to trust.
    for user in 0..USERS {
        field.transfer(user).await?;
    }
    let before = field.status().await?;
    field.devnet.pause_l1()?;
    let during = away(field).await;
    field.devnet.resume_l1()?;
    let last = during?;
    let after = field.status().await?;
    ensure!(
        after.certified > before.certified && after.block.number > before.block.number,
        "expected certificates and blocks while L1 is away: certified {} and {}, block {} and {}",
        before.certified,
        after.certified,
        before.block.number,
        after.block.number
    );
    // L1 takes what it missed.
    field.posted_run(last).await?;
    field.transfer(0).await?;
    Ok(Gas::default())
}

/// Transfers, one after another, for as long as L1 is away. Gives the last batch that has one.
async fn away(field: &mut Field) -> Result<u64> {
    let start = Instant::now();
    let (mut sent, mut last) = (0usize, 0);
    while start.elapsed() < OUTAGE {
        let transfer = timeout_at(start + LONGEST_OUTAGE, field.transfer(sent % USERS)).await;
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
pub async fn stale_header_after_outage(field: &mut Field) -> Outcome {
    let mut gas = Gas::default();
    everything_posted(field).await?;
    let bond = field.bond().await?.amount;
    for name in AWAY {
        field.devnet.process(name)?.kill().await?;
    }
    let (lost, raw) = field.users[0].send().await?;
    let (waiting, early) = (lost.id(), field.users[0].offer().await?);
    let signed = until("a header that too few acknowledge", async || {
        Ok(field.receipt_of_sequencer(waiting).await?.and_then(|receipt| receipt.number))
    })
    .await?;
    let parent = last_header(field).await?;
    ensure!(parent.number < signed, "expected {signed} not to be on L1, whose head is {}", parent.number);
    mine_to(field, field.raw.height().await? + u64::from(TIMING.posting_deadline) + 1).await?;
    gas.step("postL1Header", make_header(field, &parent).await?);
    let made = last_header(field).await?;
    ensure!(
        (made.number, made.envelope_count) == (parent.number + 1, 0),
        "expected an empty header after {}, seen {made:?}",
        parent.number
    );
    for name in AWAY {
        field.devnet.process(name)?.start()?;
    }
    let receipt = until("what was sealed in vain to be over", async || {
        let receipt = field.receipt_of_sequencer(waiting).await?;
        Ok(receipt.filter(|receipt| receipt.state == EnvelopeState::Expired))
    })
    .await?;
    let reason = receipt.reason.as_deref();
    ensure!(reason == Some("wrong_generation"), "expected wrong_generation, seen {receipt:?}");
    let late = field.users[0].envelope_for(raw.to_vec(), &early)?;
    for (envelope, refusal) in [(&lost, "already_known"), (&late, "wrong_generation")] {
        let refused = field.users[0].try_submit(envelope, false).await?.err();
        ensure!(refused.as_deref() == Some(refusal), "expected {refusal}, seen {refused:?}");
    }
    gas.step("force what was sealed in vain", field.bully().force_envelope(&lost.encode()).await?.gas_used);
    let barred = [(lost.encode(), "wrong_generation")];
    until("it to be skipped in a batch", async || places(field, &barred).await).await?;
    // Its user makes another one.
    field.users[0].nonce -= 1;
    let again = field.transfer(0).await?.1.number.context("a number")?;
    ensure!(again > made.number, "expected a batch after {}, seen {again}", made.number);
    field.posted_run(again).await?;
    field.transfer(1).await?;
    let after = field.bond().await?.amount;
    ensure!(after == bond, "expected the sequencer's bond of {bond} wei, seen {after}");
    Ok(gas)
}
