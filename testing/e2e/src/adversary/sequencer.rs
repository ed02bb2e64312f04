//! A sequencer that signs what it must not sign, or does not do what it signed.

use alloy_primitives::{B256, U256, keccak256};
use alloy_sol_types::SolEvent;
use anyhow::{Context, Result, bail, ensure};
use blindfold::devnet::MEMBERS;
use blindfold_l1::{ACCUSATION_STAKE_WEI, AccusationState, GivenPromise};
use blindfold_protocol::{
    Acknowledgement, Canonical, Envelope, Promise, SealedBatch, SignedHeader, merkle, validity::item_leaf,
};
use blindfold_rpc::{CommitteeApiClient, Encoded, types::BatchInfo};
use futures::future::try_join_all;
use serde_json::Value;

use super::{
    arena::{Arena, TIMING, until},
    committee::mine_to,
    report::{Gas, Outcome},
};
use crate::relay::{Direction, Recorded};

/// The sequencer's bond in each case, in wei: ten ether.
pub(super) const BOND_WEI: u128 = 10 * 1_000_000_000_000_000_000;
/// How often two envelopes are sent in the hope that they stand in one batch.
const PAIR_ATTEMPTS: usize = 8;

pub(super) fn salt() -> B256 {
    B256::from(rand::random::<[u8; 32]>())
}

/// What somebody has more than before.
pub(super) fn gained(now: U256, before: U256) -> Result<U256> {
    now.checked_sub(before).with_context(|| format!("expected {before} wei at least, seen {now}"))
}

/// Fills the sequencer's bond for it to lose.
pub(super) async fn bond(arena: &Arena) -> Result<U256> {
    arena.forger().deposit_bond(arena.devnet.chain.sequencer, BOND_WEI).await?;
    Ok(arena.bond().await?.amount)
}

pub(super) async fn bond_is_lost(arena: &Arena) -> Result<()> {
    let bond = arena.bond().await?.amount;
    ensure!(bond.is_zero(), "expected the sequencer's bond to be lost, seen {bond} wei");
    Ok(())
}

/// Two headers of one number.
pub async fn equivocation(arena: &mut Arena) -> Outcome {
    let (_, receipt) = arena.transfer(0).await?;
    let (sealed, _) = arena.sealed(receipt.number.context("a number")?).await?;
    let first = sealed.signed_header();
    let mut second = sealed.header;
    second.timestamp_ms += 1;
    let second: SignedHeader = second.sign(&arena.sequencer_key(), &arena.devnet.chain.deployment);

    let before = bond(arena).await?;
    let reporter = arena.reporter();
    let rewards = arena.devnet.l1.reward(reporter.address()).await?;
    let sent = reporter.report_equivocation(&first, &second, salt()).await?;
    bond_is_lost(arena).await?;
    let earned = gained(arena.devnet.l1.reward(reporter.address()).await?, rewards)?;
    ensure!(
        earned == before / U256::from(2),
        "expected half of {before} wei for the reporter, seen {earned}"
    );
    let mut gas = Gas::default();
    gas.step("slashEquivocation", sent.gas_used);
    gas.step("claimReward", reporter.claim_reward().await?.gas_used);
    Ok(gas)
}

/// A second order of a batch, signed when everybody can read it.
pub async fn reordered_after_release(arena: &mut Arena) -> Outcome {
    let number = pair(arena).await?;
    let info = arena.batch(number).await?;
    let (sealed, codes) = arena.sealed(number).await?;
    ensure!(info.hints.is_some(), "expected the hints of batch {number} to be out");
    let (reordered, verdicts) = reordered(arena, &sealed, &codes, &info)?;
    let hash = reordered.header.hash();
    bond(arena).await?;

    let mut refused = Vec::new();
    for member in 1..=MEMBERS {
        refused.push(arena.second_headers(member).await?);
    }
    let by_node = arena.counter("second_headers_refused").await?;
    let roles: Vec<String> =
        (1..=MEMBERS).map(|member| format!("member-{member}")).chain(["full-node".to_owned()]).collect();
    arena.injections.arm(&roles, &reordered, &verdicts);
    // The next header of the feed brings it along.
    arena.transfer(1).await?;
    until("the relay to deliver the reordered header", async || {
        Ok(arena.injections.all_delivered().then_some(()))
    })
    .await?;
    for (member, before) in (1..=MEMBERS).zip(refused) {
        until(&format!("member {member} to refuse the reordered header"), async || {
            Ok((arena.second_headers(member).await? > before).then_some(()))
        })
        .await?;
        no_share(arena, member, number, hash, &info).await?;
    }
    until("the full node to refuse the reordered header", async || {
        Ok((arena.counter("second_headers_refused").await? > by_node).then_some(()))
    })
    .await?;
    // The node shows both on L1 by itself.
    until("the full node to have the sequencer's bond slashed", async || {
        Ok(arena.bond().await?.amount.is_zero().then_some(()))
    })
    .await?;
    no_acknowledgement(&arena.relay.recording(), hash)?;
    let known = arena.batch(number).await?;
    ensure!(known.hash == info.hash, "expected batch {number} to stay {}, seen {}", info.hash, known.hash);
    arena.transfer(0).await?;
    let inbox = arena.devnet.chain.deployment.inbox;
    let shown = blindfold_l1::contracts::BlindedInbox::Equivocation::SIGNATURE_HASH;
    let topics = [Some(shown), Some(B256::from(U256::from(number)))];
    let mut gas = Gas::default();
    gas.step("slashEquivocation", arena.raw.gas_of_event(inbox, 0, &topics).await?);
    Ok(gas)
}

/// Two executed envelopes in one batch.
async fn pair(arena: &mut Arena) -> Result<u64> {
    for _ in 0..PAIR_ATTEMPTS {
        let mut envelopes = Vec::new();
        for user in &mut arena.users {
            let (raw, _) = user.transfer(user.nonce, U256::from(1));
            envelopes.push(user.envelope(raw.to_vec()).await?);
            user.nonce += 1;
        }
        let sent = arena.users.iter().zip(&envelopes).map(|(user, envelope)| user.submit(envelope, true));
        try_join_all(sent).await?;
        let ids: Vec<B256> = envelopes.iter().map(Envelope::id).collect();
        let mut numbers = Vec::new();
        for id in ids {
            numbers.push(arena.executed(id).await?.number.context("a number")?);
        }
        numbers.sort_unstable();
        if let Some(pair) = numbers.windows(2).find(|pair| pair[0] == pair[1]) {
            return Ok(pair[0]);
        }
    }
    bail!("no two envelopes came into one batch in {PAIR_ATTEMPTS} attempts")
}

/// The same items in another order, signed by the sequencer.
fn reordered(
    arena: &Arena,
    sealed: &SealedBatch,
    codes: &[u8],
    info: &BatchInfo,
) -> Result<(SealedBatch, Vec<Option<String>>)> {
    let mut order: Vec<usize> = (0..sealed.items.len()).collect();
    order.reverse();
    let items: Vec<Vec<u8>> = order.iter().map(|at| sealed.items[*at].clone()).collect();
    let leaves = order.iter().map(|at| {
        let leaf = blindfold_l1::ItemLeaf::new(&sealed.items[*at], codes[*at]);
        item_leaf(&leaf.id, &keccak256(&sealed.items[*at]), codes[*at])
    });
    let mut header = sealed.header;
    header.envelope_root = merkle::root(&leaves.collect::<Vec<_>>());
    ensure!(header.hash() != sealed.header.hash(), "the reordered header is the same");
    let signed = header.sign(&arena.sequencer_key(), &arena.devnet.chain.deployment);
    let verdicts = order.iter().map(|at| info.verdicts[*at].clone()).collect();
    Ok((SealedBatch { header, signature: signed.signature, items }, verdicts))
}

/// A certificate of the first header is none for the second.
async fn no_share(arena: &Arena, member: u16, number: u64, hash: B256, info: &BatchInfo) -> Result<()> {
    let mut certificate = match &info.certificate {
        Some(certificate) => certificate.decode()?,
        // A later number's covers it, and is as good to be bent.
        None => {
            let certified = arena.member(member)?.get_certified(number).await?;
            certified
                .with_context(|| format!("member {member} has no certificate of {number}"))?
                .decode()?
                .certificate
        }
    };
    certificate.number = number;
    certificate.header_hash = hash;
    let asked = arena.member(member)?.get_share(number, Encoded::new(&certificate)).await;
    ensure!(asked.is_err(), "member {member} gave a share for the reordered header of {number}");
    let certified = arena.member(member)?.get_certified(number).await?;
    let Some(certified) = certified else { return Ok(()) };
    let seen = certified.decode()?.sealed.header.hash();
    ensure!(seen != hash, "member {member} holds the reordered header of {number} as certified");
    Ok(())
}

/// Nobody acknowledged this header, by what the relay saw on the way to the sequencer.
pub(super) fn no_acknowledgement(recording: &[Recorded], hash: B256) -> Result<()> {
    let mut seen = 0;
    for record in recording.iter().filter(|record| record.direction == Direction::ToSequencer) {
        let Ok(message) = serde_json::from_str::<Value>(&record.text) else { continue };
        if message["method"] != "blind_submitAcknowledgement" {
            continue;
        }
        // By position or by name.
        let given = message["params"][0].as_str().or_else(|| message["params"]["acknowledgement"].as_str());
        let acknowledgement = Acknowledgement::from_hex(given.context("an acknowledgement")?)?;
        seen += 1;
        ensure!(acknowledgement.header_hash != hash, "{} acknowledged header {hash}", record.role);
    }
    ensure!(seen > 0, "the relay saw no acknowledgement at all: nothing is shown");
    Ok(())
}

/// A promise that is broken, and one that is kept.
pub async fn omitted_promise(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let deployment = arena.devnet.chain.deployment;
    // A kept one, whose envelope stands in a posted batch.
    let (kept, receipt) = arena.transfer(2).await?;
    let number = receipt.number.context("a number")?;
    arena.posted(number).await?;
    // The user has the promise of another one, which is never sent on.
    let (raw, _) = arena.users[2].transfer(arena.users[2].nonce, U256::from(1));
    let lost = arena.users[2].envelope(raw.to_vec()).await?;
    let item_hash = |envelope: &Envelope| keccak256(envelope.encode());
    let promise = |envelope: &Envelope| {
        let (id, item_hash) = (envelope.id(), item_hash(envelope));
        Promise::sign(&arena.sequencer_key(), &deployment, id, item_hash, number)
    };
    let given = |envelope: &Envelope| GivenPromise::new(&promise(envelope), arena.devnet.chain.sequencer);
    let before = bond(arena).await?;

    let user = arena.account(arena.users[2].key.clone());
    let rewards = arena.devnet.l1.reward(user.address()).await?;
    let accused = user.report_omission(&promise(&lost), salt()).await?;
    gas.step("accuseOmission", accused.gas_used);
    let sequencer = arena.sequencer_key().address();
    let earned_before = arena.devnet.l1.reward(sequencer).await?;
    arena.bully().report_omission(&promise(&kept), salt()).await?;
    // The sequencer finds it in its own batches and answers; nobody has to tell it.
    until("the sequencer's answer", async || {
        let state = arena.devnet.l1.accusation(&given(&kept)).await?.state;
        Ok((state == AccusationState::Answered).then_some(()))
    })
    .await?;
    let earned = gained(arena.devnet.l1.reward(sequencer).await?, earned_before)?;
    ensure!(earned == U256::from(ACCUSATION_STAKE_WEI), "expected the accuser's stake, seen {earned} wei");

    // It has had its time: the accusation that it answered came later.
    mine_to(arena, accused.block + u64::from(TIMING.answer_window) + 1).await?;
    gas.step("slashOmission", user.slash_omission(&given(&lost)).await?.gas_used);
    bond_is_lost(arena).await?;
    for (envelope, expected) in [(&lost, AccusationState::Slashed), (&kept, AccusationState::Answered)] {
        let id = envelope.id();
        let seen = arena.devnet.l1.accusation(&given(envelope)).await?.state;
        ensure!(seen == expected, "accusation over {id}: expected {expected:?}, seen {seen:?}");
    }
    let earned = gained(arena.devnet.l1.reward(user.address()).await?, rewards)?;
    let due = before / U256::from(2) + U256::from(ACCUSATION_STAKE_WEI);
    ensure!(earned == due, "expected {due} wei for the accuser, seen {earned}");
    Ok(gas)
}

/// The sequencer breaks a promise and gives a friend another promise of the same envelope, with a lower number. The friend
/// accuses, too; the first accuser is paid all the same.
pub async fn lower_promise(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let (_, receipt) = arena.transfer(2).await?;
    let number = receipt.number.context("a number")?;
    arena.posted(number).await?;
    let (raw, _) = arena.users[2].transfer(arena.users[2].nonce, U256::from(1));
    let lost = arena.users[2].envelope(raw.to_vec()).await?;
    let promise = |seal_by| {
        let (id, item_hash) = (lost.id(), keccak256(lost.encode()));
        Promise::sign(&arena.sequencer_key(), &arena.devnet.chain.deployment, id, item_hash, seal_by)
    };
    let (of_user, of_friend) = (promise(number), promise(number - 1));
    let given = |promise: &Promise| GivenPromise::new(promise, arena.devnet.chain.sequencer);
    let before = bond(arena).await?;

    let (user, friend) = (arena.account(arena.users[2].key.clone()), arena.bully());
    let rewards = arena.devnet.l1.reward(user.address()).await?;
    let of_friend_before = arena.devnet.l1.reward(friend.address()).await?;
    let window = u64::from(TIMING.answer_window);
    let accused = user.report_omission(&of_user, salt()).await?;
    // So much later that he cannot slash when the user can.
    mine_to(arena, accused.block + window / 2).await?;
    let copied = friend.report_omission(&of_friend, salt()).await?;
    gas.step("accuseOmission", accused.gas_used);
    mine_to(arena, accused.block + window + 1).await?;
    gas.step("slashOmission", user.slash_omission(&given(&of_user)).await?.gas_used);
    bond_is_lost(arena).await?;
    let earned = gained(arena.devnet.l1.reward(user.address()).await?, rewards)?;
    let due = before / U256::from(2) + U256::from(ACCUSATION_STAKE_WEI);
    ensure!(earned == due, "expected {due} wei for the first accuser, seen {earned}");

    mine_to(arena, copied.block + window + 1).await?;
    gas.step("slashOmission of no bond", friend.slash_omission(&given(&of_friend)).await?.gas_used);
    let earned = gained(arena.devnet.l1.reward(friend.address()).await?, of_friend_before)?;
    ensure!(
        earned == U256::from(ACCUSATION_STAKE_WEI),
        "expected his stake for the friend, seen {earned} wei"
    );
    Ok(gas)
}
