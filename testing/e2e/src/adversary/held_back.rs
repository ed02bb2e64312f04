//! A sequencer that names old L1 origins, so that it need not know what L1 forces on it.

use std::{fs, path::Path};

use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::SolCall;
use anyhow::{Context, Result, ensure};
use blindfold::devnet::MEMBERS;
use blindfold_bte::bls::Signature;
use blindfold_client::transaction::{TransactionFields, sign};
use blindfold_l1::{Sent, contracts::BlindedInbox};
use blindfold_protocol::{BatchHeader, Canonical, Certificate, L1Timing, SealedBatch};
use blindfold_rpc::CommitteeApiClient;
use serde_json::Value;
use tokio::time::{Duration, sleep};

use super::{
    arena::{Arena, until},
    committee::{everything_posted, last_header, make_header},
    raw::Doomed,
    report::{Gas, Outcome},
    sequencer::no_acknowledgement,
};
use crate::{
    forge::colluding,
    l1_relay::{FinalBlock, L1Relay},
    relay::Direction,
    settings_file::{change_settings, section},
};

/// An origin may be twelve seconds old: twice what it is at a sequencer that names the newest.
pub const TIMING: L1Timing = L1Timing {
    posting_deadline: 60,
    forced_delay: 8,
    answer_window: 24,
    hint_deadline: 100,
    challenge_window: 60,
    withdrawal_delay: 200,
    max_origin_age_seconds: 12,
};
/// W as the dishonest sequencer would like it, in seconds.
const NO_BOUND: u64 = 14_400;
/// Blocks until a block is final.
const FINALITY: u64 = 3;
/// Pause between two envelopes that are sent so that there is something to seal.
const TRAFFIC_PAUSE: Duration = Duration::from_millis(400);
/// How long members are watched for a vote that they must not give.
const WATCHED: Duration = Duration::from_secs(2);
/// Where forced transactions send to.
const REFUGE: Address = Address::repeat_byte(0x4f);
/// What each moves, in wei.
const FORCED_WEI: u64 = 1_000_000_000;
const TRANSFER_GAS: u64 = 21_000;

/// The sequencer lets L1 stand still for itself. Within W that hides what is forced, and no longer: then it may name a
/// newer origin, which brings it, or go on with the old one. Members do not certify that, L1 refuses it whoever certified
/// it, and when nothing else comes, L1 takes the forced item itself.
pub async fn origin_held_back(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let bond = arena.bond().await?.amount;
    let relay = L1Relay::start(arena.devnet.l1_url()).await?;
    sequencer_sees_l1_through(arena, &relay, None).await?;
    hidden_for_w(arena, &relay, &mut gas).await?;

    sequencer_sees_l1_through(arena, &relay, Some(NO_BOUND)).await?;
    refused_beyond_w(arena, &relay, &mut gas).await?;
    let after = arena.bond().await?.amount;
    ensure!(after == bond, "expected the sequencer's bond of {bond} wei, seen {after}");
    Ok(gas)
}

/// Starts the sequencer anew behind the relay, with its own idea of W if there is one.
async fn sequencer_sees_l1_through(arena: &mut Arena, relay: &L1Relay, w: Option<u64>) -> Result<()> {
    everything_posted(arena).await?;
    let dir = arena.devnet.dir().to_owned();
    arena.devnet.process("sequencer")?.kill().await?;
    if let Some(seconds) = w {
        relay.claim_origin_age(seconds);
    }
    let chain = w.map(|seconds| other_w(&dir, seconds)).transpose()?;
    change_settings(&dir, "sequencer", "sequencer", |table| {
        section(table, "l1")?.insert("url".to_owned(), relay.url().into());
        if let Some(path) = chain {
            table.insert("chain".to_owned(), path.into());
        }
        Ok(())
    })?;
    let process = arena.devnet.process("sequencer")?;
    process.start()?;
    process.ready().await?;
    arena.transfer(0).await?;
    everything_posted(arena).await
}

/// The chain's settings with another W. Gives the file.
fn other_w(dir: &Path, seconds: u64) -> Result<String> {
    let mut chain: Value = serde_json::from_slice(&fs::read(dir.join("rollup.json"))?)?;
    let w = chain["timing"].get_mut("maxOriginAgeSeconds").context("W in rollup.json")?;
    *w = seconds.into();
    let path = dir.join("rollup-other-w.json");
    fs::write(&path, chain.to_string())?;
    Ok(path.display().to_string())
}

/// Forces a transfer of user `index` to [`REFUGE`].
async fn force(arena: &Arena, index: usize) -> Result<Sent> {
    let user = &arena.users[index];
    let fields = TransactionFields {
        chain_id: arena.devnet.chain.chain_id,
        nonce: user.nonce,
        to: REFUGE,
        value: U256::from(FORCED_WEI),
        input: Bytes::new(),
        gas_limit: TRANSFER_GAS,
        max_fee_per_gas: 1_000_000_000,
        max_priority_fee_per_gas: 0,
    };
    let (raw, _) = sign(&fields, &user.key);
    Ok(arena.account(user.key.clone()).force_transaction(TRANSFER_GAS, &raw).await?)
}

/// Waits until so many forced transfers have been executed.
async fn arrived(arena: &Arena, count: u64) -> Result<()> {
    until(&format!("forced transfer {count} to be executed"), async || {
        Ok((arena.reads()?.balance(&REFUGE).await? == U256::from(FORCED_WEI * count)).then_some(()))
    })
    .await
}

/// Gives the sequencer something to seal until there is an answer.
async fn amid_traffic<T>(
    arena: &mut Arena,
    what: &str,
    mut probe: impl AsyncFnMut(&Arena) -> Result<Option<T>>,
) -> Result<T> {
    let deadline = tokio::time::Instant::now() + super::arena::WAIT;
    loop {
        arena.users[0].send().await?;
        sleep(TRAFFIC_PAUSE).await;
        if let Some(found) = probe(arena).await? {
            return Ok(found);
        }
        ensure!(tokio::time::Instant::now() < deadline, "waited in vain for {what}");
    }
}

/// A sequencer that keeps to W: headers with the old origin are certified without the forced item until W is over, and the
/// next one has it.
async fn hidden_for_w(arena: &mut Arena, relay: &L1Relay, gas: &mut Gas) -> Result<()> {
    let w = u64::from(TIMING.max_origin_age_seconds);
    let held = relay.stand_still().await?;
    let before = arena.status().await?.certified;
    let cursor = arena.sealed(before).await?.0.header.forced_cursor;
    let forced = force(arena, 1).await?;
    gas.step("force what is held up", forced.gas_used);
    ensure!(forced.block > held.number, "expected an item after block {}", held.number);

    let admin = arena.devnet.ports.sequencer.1;
    amid_traffic(arena, "the sequencer to have no origin left", async |arena| {
        let unready = arena.unready(admin).await?;
        Ok(unready.get("l1").filter(|reason| reason.contains("too old")).map(drop))
    })
    .await?;
    relay.go_on();
    arrived(arena, 1).await?;
    arena.users[1].nonce += 1;

    let origin = arena.devnet.l1.origin(forced.block).await?;
    let forced_at = origin.context("the block of the item is final")?.timestamp;
    let (mut hid, mut number) = (0, before);
    let taken = loop {
        number += 1;
        let header = arena.sealed(number).await?.0.header;
        let late = header.second().saturating_sub(header.l1_origin_time);
        ensure!(late <= w, "batch {number} was certified with an origin of {late} s ago");
        if header.forced_cursor > cursor {
            break header;
        }
        if header.l1_origin_number <= held.number && header.second() > forced_at {
            hid += 1;
        }
    };
    ensure!(hid > 0, "expected headers without the item meanwhile: nothing was held back");
    let bound = forced_at + u64::from(TIMING.forced_delay) + w;
    ensure!(
        taken.second() <= bound,
        "forced at {forced_at} s: expected in a header by {bound} s, seen at {} s",
        taken.second()
    );
    let posted_at = arena.posted_run(taken.number).await?.run.posted_at;
    let bound = forced.block + u64::from(TIMING.forced_delay) + w + FINALITY;
    ensure!(
        posted_at <= bound,
        "forced in L1 block {}: expected on L1 by block {bound}, seen in {posted_at}",
        forced.block
    );
    Ok(())
}

/// A sequencer that goes on with the old origin beyond W: nobody certifies, L1 refuses, and takes the item itself.
async fn refused_beyond_w(arena: &mut Arena, relay: &L1Relay, gas: &mut Gas) -> Result<()> {
    let held = relay.stand_still().await?;
    let forced = force(arena, 2).await?;
    gas.step("force what is kept out", forced.gas_used);
    let stale = amid_traffic(arena, "a header with an origin beyond W", async |arena| {
        Ok(announced(arena)?.into_iter().find(|header| is_beyond_w(header, &held)))
    })
    .await?;
    let (number, hash) = (stale.number, stale.hash());
    for member in 1..=MEMBERS {
        until(&format!("member {member} to refuse header {number}"), async || {
            let status = CommitteeApiClient::get_status(&arena.member(member)?).await?;
            ensure!(status.certified < number, "header {number} is certified with an origin beyond W");
            let refusal = status.refusals.into_iter().find(|refusal| refusal.header_hash == hash);
            let Some(refusal) = refusal else { return Ok(None) };
            ensure!(
                refusal.reason == "origin_too_old",
                "expected member {member} to refuse {number} as origin_too_old, seen {}",
                refusal.reason
            );
            Ok(Some(()))
        })
        .await?;
    }
    sleep(WATCHED).await;
    no_acknowledgement(&arena.relay.recording(), hash)?;
    until("what is certified to be on L1", async || {
        Ok((arena.devnet.l1.posted_head().await?.number >= arena.status().await?.certified).then_some(()))
    })
    .await?;
    let parent = last_header(arena).await?;
    ensure!(parent.number + 1 == number, "expected {number} to follow L1's head, seen {}", parent.number);
    refused_by_l1(arena, &stale, gas).await?;

    // The sequencer has signed what nobody takes, so nothing comes from it any more.
    gas.step("postL1Header with what was kept out", make_header(arena, &parent).await?);
    let made = last_header(arena).await?;
    ensure!(
        (made.number, made.envelope_count, made.forced_cursor) == (number, 1, parent.forced_cursor + 1),
        "expected header {number} of L1 with the forced item, seen {made:?}"
    );
    relay.go_on();
    until("sequencer and full node to go on from L1's header", async || {
        let (sequencer, node) = (arena.sequencer_status().await?, arena.status().await?);
        Ok((sequencer.certified >= number && node.certified >= number).then_some(()))
    })
    .await?;
    arena.users[0].nonce = arena.reads()?.nonce(&arena.users[0].key.address()).await?;
    let (_, receipt) = arena.transfer(3).await?;
    let next = receipt.number.context("a number")?;
    ensure!(next > number, "expected a batch after {number}, seen {next}");
    arrived(arena, 2).await?;
    arena.posted_run(next).await?;
    Ok(())
}

fn is_beyond_w(header: &BatchHeader, held: &FinalBlock) -> bool {
    let limit = header.l1_origin_time + u64::from(TIMING.max_origin_age_seconds);
    header.l1_origin_number <= held.number && header.second() > limit
}

/// The headers that the relay saw on their way to the first member, in order.
fn announced(arena: &Arena) -> Result<Vec<BatchHeader>> {
    let mut headers = Vec::new();
    for record in arena.relay.recording() {
        if record.direction != Direction::FromSequencer || record.role != "member-1" {
            continue;
        }
        let Ok(message) = serde_json::from_str::<Value>(&record.text) else { continue };
        if message["method"] == "blind_subscription"
            && let Some(sealed) = message["params"]["result"]["sealed"].as_str()
        {
            headers.push(SealedBatch::from_hex(sealed)?.header);
        }
    }
    Ok(headers)
}

/// Even a header that members certified is refused, for its origin's age alone.
async fn refused_by_l1(arena: &Arena, stale: &BatchHeader, gas: &mut Gas) -> Result<()> {
    let poster = arena.bully().address();
    let inbox = arena.devnet.chain.deployment.inbox;
    let held_back = posting(stale, &colluding(&arena.devnet, stale).await?)?;
    let doomed = [Doomed::new("a header with an origin beyond W", held_back, "OriginHeldBack")];
    gas.step("post in vain", arena.raw.all_fail(poster, inbox, &doomed).await?);

    let mut young = *stale;
    let last_second = stale.l1_origin_time + u64::from(TIMING.max_origin_age_seconds);
    young.timestamp_ms = last_second * 1_000 + 999;
    let input = posting(&young, &colluding(&arena.devnet, &young).await?)?;
    let call = serde_json::json!({ "from": poster, "to": inbox, "input": Bytes::from(input) });
    let error = arena.raw.error_of(&call).await?;
    ensure!(error.is_none(), "expected the same header within W to be taken, seen {error:?}");
    Ok(())
}

fn posting(header: &BatchHeader, certificate: &Certificate) -> Result<Vec<u8>> {
    let signature = Signature::from_bytes(&certificate.signature).ok().context("a signature")?;
    let call = BlindedInbox::postCall {
        headers: vec![header.into()],
        data: Bytes::new(),
        certificate: BlindedInbox::Certificate {
            signers: certificate.signers,
            signature: Bytes::copy_from_slice(&signature.to_eip2537()),
        },
    };
    Ok(call.abi_encode())
}
