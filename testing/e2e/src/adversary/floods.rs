//! Floods: of what moves fees, of what opens to nothing, and of promises.

use std::collections::BTreeMap;

use alloy_primitives::{B256, U256};
use anyhow::{Context, Result, ensure};
use blindfold::devnet::accounts::{HINT_PUBLISHER, named_key};
use blindfold_l1::Sent;
use blindfold_protocol::{Envelope, Promise, limits::TARGET_SECOND_BYTES};
use blindfold_rpc::{BlindApiClient, types::EnvelopeState};
use futures::future::try_join_all;
use serde_json::json;
use tokio::time::Instant;

use super::{
    arena::{Arena, FUNDS_WEI, TIMING, WAIT, until},
    committee::everything_posted,
    forced::places,
    report::{Gas, Outcome},
};

/// Bytes of each item of garbage: about the most that an item may have.
const GARBAGE_BYTES: usize = 33_100;
/// Garbage that is forced: as much as one header takes, and more than the target of a second.
const GARBAGE_ITEMS: u8 = 16;
/// Accounts that force it.
const STUFFERS: usize = 4;
/// Envelopes that open to nothing.
const MALFORMED: usize = 16;
/// Envelopes for which promises are asked.
const PROMISES: usize = 48;
/// Reasons with which a flood of promises may be refused.
const REFUSALS: &[&str] = &[
    "promise_capacity",
    "promise_terms",
    "payer_limit",
    "source_limit",
    "pool_full",
    "overloaded",
    "fee_too_low",
];

/// Garbage that is ordered and skipped moves no fee.
pub async fn fee_stuffing(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let before = arena.sequencer_status().await?;
    // All of it waits for one header, and nothing else does.
    everything_posted(arena).await?;
    arena.devnet.process("sequencer")?.kill().await?;
    let garbage = |n: u8| {
        let mut garbage = vec![0; GARBAGE_BYTES];
        // The version of an envelope, and a gas limit of 0, for which nothing has to be paid.
        (garbage[0], garbage[GARBAGE_BYTES - 1]) = (2, n);
        garbage
    };
    let items: Vec<Vec<u8>> = (0..GARBAGE_ITEMS).map(garbage).collect();
    // From several accounts, because each waits for its transaction to be in a block.
    let sent = try_join_all(items.chunks(items.len() / STUFFERS).enumerate().map(|(n, items)| {
        let (stuffer, raw) = (named_key(&format!("stuffer-{n}")), &arena.raw);
        let writer = arena.account(stuffer);
        async move {
            raw.call("anvil_setBalance", json!([writer.address(), U256::from(FUNDS_WEI)])).await?;
            let mut sent = Vec::new();
            for item in items {
                sent.push(writer.force_envelope(item).await?);
            }
            anyhow::Ok(sent)
        }
    }))
    .await?;
    let sent: Vec<Sent> = sent.into_iter().flatten().collect();
    gas.step("force, one item", sent.iter().map(|sent| sent.gas_used).min().context("an item")?);
    let last = sent.iter().map(|sent| sent.block).max().context("an item")?;
    let expected: Vec<_> = items.into_iter().map(|item| (item, "undecodable")).collect();
    until("the garbage to be final on L1", async || {
        Ok((arena.devnet.l1.finalized().await?.number >= last).then_some(()))
    })
    .await?;
    arena.devnet.process("sequencer")?.start()?;
    arena.devnet.process("sequencer")?.ready().await?;
    let found = until("the garbage to stand in batches", async || places(arena, &expected).await).await?;
    let (_, receipt) = arena.transfer(0).await?;
    let number = receipt.number.context("a number")?;
    let first = found.iter().copied().min().context("a batch")?;
    let mut loads: BTreeMap<u64, u64> = BTreeMap::new();
    for number in first..=number {
        let (sealed, _) = arena.sealed(number).await?;
        *loads.entry(sealed.header.timestamp_ms / 1_000).or_default() +=
            u64::from(sealed.header.envelope_bytes);
        let fees = (sealed.header.base_fee, sealed.header.gas_base_fee);
        ensure!(
            fees.0 <= before.base_fee && fees.1 <= before.gas_base_fee,
            "expected base fees of at most {} and {} in batch {number}, seen {fees:?}",
            before.base_fee,
            before.gas_base_fee
        );
    }
    let most = loads.values().copied().max().unwrap_or_default();
    ensure!(most > TARGET_SECOND_BYTES, "no second has more than {most} bytes: nothing is shown");
    Ok(gas)
}

/// Malformed envelopes cost their payer the surcharge, each, and hold nobody up.
pub async fn malformed_flood(arena: &mut Arena) -> Outcome {
    let payer = arena.spoiler.key.address();
    let surcharge = arena.devnet.chain.malformed_surcharge;
    let before = arena.node().get_fee_account(payer).await?;
    let mut ids = Vec::new();
    for _ in 0..MALFORMED {
        ids.push(arena.spoiler.send_malformed().await?.id());
    }
    let (_, honest) = arena.transfer(0).await?;
    ensure!(honest.state == EnvelopeState::Executed, "expected an honest transfer to go on, seen {honest:?}");
    let mut numbers = Vec::from_iter(honest.number);
    for id in &ids {
        let receipt = until(&format!("envelope {id} to be found malformed"), async || {
            let receipt = arena.receipt(*id).await?;
            Ok(receipt.filter(|receipt| receipt.state == EnvelopeState::Malformed))
        })
        .await?;
        numbers.extend(receipt.number);
    }
    // The surcharges are settled when the hints are final on L1, by the next header.
    let publisher = named_key(HINT_PUBLISHER).address();
    numbers.sort_unstable();
    let mut through = 0;
    for number in numbers {
        if number > through {
            through = arena.posted_run(number).await?.run.last;
            arena.posting_by(publisher, through).await?;
        }
    }
    everything_posted(arena).await?;
    arena.devnet.mine(TIMING.challenge_window.into()).await?;
    let deadline = Instant::now() + WAIT;
    let after = loop {
        arena.transfer(1).await?;
        let account = arena.node().get_fee_account(payer).await?;
        if account.held <= before.held {
            break account;
        }
        ensure!(Instant::now() < deadline, "waited in vain for the surcharges of the flood to be settled");
    };
    let (had, has) = (before.balance + before.held, after.balance + after.held);
    let least = surcharge * MALFORMED as u128;
    ensure!(
        had >= has + least,
        "expected the flood to cost {least} wei at least, seen {had} before and {has} after"
    );
    Ok(Gas::default())
}

/// Whoever asks for many promises is refused in the end; what was promised is kept.
pub async fn promise_flood(arena: &mut Arena) -> Outcome {
    // Each reserves a quarter of a second's gas.
    let gas_limit = arena.devnet.chain.second_gas_limit() / 4;
    let offer = arena.spoiler.offer().await?;
    let mut envelopes: Vec<Envelope> = Vec::new();
    for nonce in 0..PROMISES as u64 {
        let (raw, _) = arena.spoiler.transfer(nonce, U256::from(1));
        envelopes.push(arena.spoiler.envelope_with_gas(raw.to_vec(), gas_limit, &offer)?);
    }
    let mut promised: Vec<(B256, Promise)> = Vec::new();
    let mut refused = 0;
    // All at once, or a slow machine seals some before it asks for the next.
    let asked = envelopes.iter().map(|envelope| arena.spoiler.try_submit(envelope, true));
    for (envelope, answer) in envelopes.iter().zip(try_join_all(asked).await?) {
        match answer {
            Ok(promise) => promised.push((envelope.id(), promise.context("a promise")?)),
            Err(reason) => {
                ensure!(REFUSALS.contains(&reason.as_str()), "a promise was refused with {reason}");
                refused += 1;
            }
        }
    }
    ensure!(refused > 0, "expected a flood of {PROMISES} promises to be refused in the end");
    ensure!(!promised.is_empty(), "no promise was given: nothing is shown");
    for (id, promise) in &promised {
        let number = until(&format!("the promised envelope {id} to be sealed"), async || {
            Ok(arena.receipt(*id).await?.and_then(|receipt| receipt.number))
        })
        .await?;
        ensure!(
            number <= promise.seal_by,
            "envelope {id}: promised by {}, sealed in {number}",
            promise.seal_by
        );
    }
    honest_again(arena).await
}

/// The fees that the flood raised fall again, and an honest transfer goes through.
async fn honest_again(arena: &mut Arena) -> Result<Gas> {
    arena.transfer(0).await?;
    Ok(Gas::default())
}
