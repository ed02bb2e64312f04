//! Whoever owes leaves with the money, or takes that of others.

use std::fs;

use alloy_primitives::U256;
use anyhow::{Context, Result, bail, ensure};
use blindfold::{
    dealer::{Deal, deal},
    deploy::new_epoch,
    devnet::stake_members,
};
use blindfold_committee::key_file::KeyFileCost;
use blindfold_l1::{L1Error, Sent};
use blindfold_protocol::SignedHeader;

use super::{
    arena::{Arena, MAX_BATCH, until},
    report::{Gas, Outcome},
    sequencer::{bond, bond_is_lost, gained, salt},
};

/// What it costs to try the password of a key file: next to nothing.
const KEY_FILE_COST: KeyFileCost = KeyFileCost { memory_kib: 64, iterations: 1, lanes: 1 };
/// Folder of the thief's committee.
const FOLDER: &str = "committee-of-one";

/// A call that L1 must refuse with this error.
pub(super) fn refused(outcome: Result<Sent, L1Error>, error: &str) -> Result<()> {
    match outcome {
        Err(L1Error::Reverted { reason, .. }) if reason.starts_with(error) => Ok(()),
        Err(other) => bail!("expected {error}, seen {other}"),
        Ok(sent) => bail!("expected {error}, and L1 took it in block {}", sent.block),
    }
}

/// A header of a fresh number, and as many others of the same number, all signed by the sequencer.
pub(super) async fn headers_of_one_number(arena: &mut Arena, others: u64) -> Result<Vec<SignedHeader>> {
    let (_, receipt) = arena.transfer(0).await?;
    let (sealed, _) = arena.sealed(receipt.number.context("a number")?).await?;
    let mut headers = vec![sealed.signed_header()];
    for n in 1..=others {
        let mut header = sealed.header;
        header.timestamp_ms += n;
        headers.push(header.sign(&arena.sequencer_key(), &arena.devnet.chain.deployment));
    }
    Ok(headers)
}

/// The sequencer announces that it takes its bond out, and signs two headers while the announcement stands.
pub async fn bond_leaves_before_evidence(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let headers = headers_of_one_number(arena, 1).await?;
    let before = bond(arena).await?;
    let thief = arena.account(arena.sequencer_key());
    let amount = u128::try_from(before)?;
    // Its account posts headers, too: what it has on its way must be in a block before.
    arena.devnet.process("sequencer")?.kill().await?;
    let height = arena.raw.height().await?;
    until("two blocks", async || Ok((arena.raw.height().await? > height + 1).then_some(()))).await?;
    let announced = thief.announce_bond_withdrawal(amount).await?;
    arena.devnet.process("sequencer")?.start()?;
    arena.devnet.process("sequencer")?.ready().await?;
    gas.step("announceBondWithdrawal", announced.gas_used);
    let shown = arena.bond().await?.amount;
    ensure!(shown.is_zero(), "expected what is announced not to count as bond, seen {shown} wei");
    refused(thief.withdraw_bond(thief.address()).await, "WithdrawalLocked")?;

    let reporter = arena.reporter();
    let rewards = arena.devnet.l1.reward(reporter.address()).await?;
    gas.step(
        "slashEquivocation",
        reporter.report_equivocation(&headers[0], &headers[1], salt()).await?.gas_used,
    );
    bond_is_lost(arena).await?;
    let earned = gained(arena.devnet.l1.reward(reporter.address()).await?, rewards)?;
    ensure!(
        earned == before / U256::from(2),
        "expected half of {before} wei for the reporter, seen {earned}"
    );
    refused(thief.withdraw_bond(thief.address()).await, "NoWithdrawalAnnounced")?;
    Ok(gas)
}

/// The sequencer, with nothing to lose, has a friend show two headers of a number; later it signs others of that number.
pub async fn premarked_number(arena: &mut Arena) -> Outcome {
    let headers = headers_of_one_number(arena, 3).await?;
    ensure!(arena.bond().await?.amount.is_zero(), "expected no bond at the beginning");
    // Whether L1 takes a report that costs nothing is all one.
    match arena.bully().report_equivocation(&headers[0], &headers[1], salt()).await {
        Ok(_) | Err(L1Error::Reverted { .. }) => {}
        Err(other) => return Err(other.into()),
    }
    let before = bond(arena).await?;
    let reporter = arena.reporter();
    let rewards = arena.devnet.l1.reward(reporter.address()).await?;
    let sent = reporter.report_equivocation(&headers[2], &headers[3], salt()).await?;
    bond_is_lost(arena).await?;
    let earned = gained(arena.devnet.l1.reward(reporter.address()).await?, rewards)?;
    ensure!(
        earned == before / U256::from(2),
        "expected half of {before} wei for the reporter, seen {earned}"
    );
    let mut gas = Gas::default();
    gas.step("", sent.gas_used);
    Ok(gas)
}

/// Whoever has the governor's key registers a committee of one, which would certify any ledger.
pub async fn governor_takes_over(arena: &mut Arena) -> Outcome {
    let dir = arena.devnet.dir().to_owned();
    let password = fs::read_to_string(dir.join("password"))?;
    let out = dir.join(FOLDER);
    let governor = arena.account(blindfold_l1::dev_key(0).context("anvil's first key")?);
    let first_last = arena.devnet.l1.epochs().await?.as_slice().last().context("an epoch")?.last;
    let moved = password.clone();
    let dealt = tokio::task::spawn_blocking(move || {
        deal(&Deal {
            max_batch: MAX_BATCH,
            members: 1,
            threshold: 1,
            out: &out,
            password: moved.trim(),
            cost: KEY_FILE_COST,
        })
    })
    .await??;
    let members: Vec<_> = dealt.members.iter().map(|(path, _)| path.clone()).collect();
    let location = format!("file:{FOLDER}/parameters.bin");
    let epoch = new_epoch(&dealt.parameters, &members, first_last + 1_000, location)?;
    stake_members(&governor, &members, password.trim(), first_last + 1_000).await?;
    refused(governor.register_epoch(&epoch).await, "BadMemberCount")?;
    // Nor can it end the committee that is there while that one works.
    refused(governor.end_first_epoch().await, "HeadersPosted")?;
    arena.transfer(0).await?;
    Ok(Gas::default())
}
