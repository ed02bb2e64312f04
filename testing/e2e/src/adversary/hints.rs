//! Wrong hints, withheld hints, hints that their own publisher has slashed, and challenges without a reason.

use alloy_primitives::{B256, Bytes, FixedBytes, U256};
use alloy_sol_types::{SolCall, SolEvent};
use anyhow::{Context, Result, ensure};
use blindfold::devnet::accounts::{HINT_PUBLISHER, WATCHER, named_key};
use blindfold_l1::{
    HintEvent, HintPosting, L1Writer, PostedEntry, RunReference, challenge_evidence,
    contracts::HintRegistry::{self, challengeCall, postHintsCall},
};
use blindfold_protocol::Canonical;
use blindfold_rpc::types::{EnvelopeState, Receipt};

use super::{
    arena::{Arena, TIMING, until},
    committee::mine_to,
    money::refused,
    posted::Posted,
    raw::Doomed,
    report::{Gas, Outcome},
    sequencer::gained,
};

/// How many L1 blocks before its run's time is up somebody posts wrong hints.
const BEFORE_THE_DEADLINE: u64 = 20;

/// What a commitment is hidden with.
fn salt() -> B256 {
    B256::from(rand::random::<[u8; 32]>())
}

/// Gives the publisher a bond for one more posting.
async fn bonded(arena: &Arena, publisher: &L1Writer) -> Result<u128> {
    let (bond, _) = arena.devnet.l1.hint_stakes().await?;
    publisher.deposit_publisher_bond(bond).await?;
    Ok(bond)
}

/// Posts hints with one wrong entry of an executed envelope and waits for the full node, which nobody tells, to have
/// them slashed.
async fn wrong_entry(arena: &mut Arena, wrong: impl FnOnce(&mut HintPosting, usize, usize)) -> Outcome {
    let (_, receipt) = arena.transfer(0).await?;
    let number = receipt.number.context("a number")?;
    let posted = arena.posted(number).await?;
    let index = posted.accepted(number)?;
    let mut posting = posted.right();
    wrong(&mut posting, posted.place(number), index as usize);

    let forger = arena.forger();
    let bond = bonded(arena, &forger).await?;
    let before = arena.devnet.l1.publisher_bond(forger.address()).await?;
    let watcher = named_key(WATCHER).address();
    let reward_before = arena.devnet.l1.hint_reward(watcher).await?;
    let balance_before = arena.raw.call("eth_getBalance", serde_json::json!([watcher, "latest"])).await?;
    let sent = forger.post_hints(&posted.run.run, &posting).await?;
    let log = arena.posting_by(forger.address(), posted.run.run.last).await?;
    arena.slashed(log.id, sent.block).await?;

    let after = arena.devnet.l1.publisher_bond(forger.address()).await?;
    ensure!(
        (after.total, after.locked) == (before.total - bond, before.locked),
        "expected the bond of the forger to fall by {bond} wei from {before:?}, seen {after:?}"
    );
    // The reward waits, or the node has taken it already.
    let (_, stake) = arena.devnet.l1.hint_stakes().await?;
    let paid = U256::from(bond / 2 + stake);
    until("the full node's reward", async || {
        let waiting = arena.devnet.l1.hint_reward(watcher).await?;
        let balance = arena.raw.call("eth_getBalance", serde_json::json!([watcher, "latest"])).await?;
        let grown = super::raw::amount(&balance)? > super::raw::amount(&balance_before)?;
        Ok((waiting >= reward_before + paid || grown).then_some(()))
    })
    .await?;
    let registry = arena.devnet.chain.hint_registry;
    let topic = |value: u64| Some(B256::from(U256::from(value)));
    let run_last = topic(posted.run.run.last);
    // By the full node's account: nobody else has challenged.
    let slashed = [
        Some(HintRegistry::HintsSlashed::SIGNATURE_HASH),
        topic(log.id),
        run_last,
        Some(watcher.into_word()),
    ];
    let mut gas = Gas::default();
    gas.step("postHints", sent.gas_used);
    gas.step("challenge", arena.raw.gas_of_event(registry, sent.block - 1, &slashed).await?);
    Ok(gas)
}

/// A wrong session key.
pub async fn forged_hint(arena: &mut Arena) -> Outcome {
    wrong_entry(arena, |posting, batch, index| posting.batches[batch].entries[index].key[5] ^= 1).await
}

/// ⊥ claimed for an envelope that opens.
pub async fn false_malformed(arena: &mut Arena) -> Outcome {
    wrong_entry(arena, |posting, batch, index| {
        let batch = &mut posting.batches[batch];
        batch.entries[index] = PostedEntry::malformed(batch.singletons.len());
        batch.singletons.push([7; 48]);
    })
    .await
}

/// Data that is no hints, and right hints whose singleton releases are wrong, which costs the bond.
pub async fn withheld_hints(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let forger = arena.forger();
    bonded(arena, &forger).await?;
    // So that the right posting does not come first: L1 does not take the same root twice. The node opens by itself.
    arena.devnet.process("hint-publisher")?.pause()?;
    let outcome = async {
        let receipt = malformed_envelope(arena).await?;
        let posted = arena.posted(receipt.number.context("a number")?).await?;
        let doomed = undecodable(&posted);
        let registry = arena.devnet.chain.hint_registry;
        gas.step("undecodable", arena.raw.all_fail(forger.address(), registry, &doomed).await?);
        wrong_releases(arena, &posted, &forger, &mut gas).await
    }
    .await;
    arena.devnet.process("hint-publisher")?.resume()?;
    outcome?;
    Ok(gas)
}

/// Postings that L1 cannot read.
fn undecodable(posted: &Posted) -> Vec<Doomed> {
    let right = posted.right().encode();
    let doomed = |what, data: Vec<u8>| {
        let call = postHintsCall { run: (&posted.run.run).into(), data: data.into() };
        Doomed::new(what, call.abi_encode(), "BadHintData")
    };
    let changed = |at: usize, byte: u8| {
        let mut data = right.clone();
        data[at] = byte;
        data
    };
    vec![
        doomed("no data", Vec::new()),
        doomed("the last byte withheld", right[..right.len() - 1].to_vec()),
        doomed("all but the counts withheld", right[..5].to_vec()),
        doomed("a byte too many", [&right[..], &[0]].concat()),
        doomed("another version", changed(0, 3)),
        doomed("one batch more than the run has", changed(4, right[4].wrapping_add(1))),
        doomed("a count beyond the data", changed(5, 0xff)),
    ]
}

async fn wrong_releases(arena: &Arena, posted: &Posted, forger: &L1Writer, gas: &mut Gas) -> Result<()> {
    let mut posting = posted.right();
    let singletons = posting.batches.iter_mut().flat_map(|batch| &mut batch.singletons);
    let changed = singletons.map(|singleton| singleton[47] ^= 1).count();
    ensure!(changed > 0, "expected a malformed item in run {:?}", posted.run.run);
    let sent = forger.post_hints(&posted.run.run, &posting).await?;
    gas.step("postHints", sent.gas_used);
    let log = arena.posting_by(forger.address(), posted.run.run.last).await?;
    arena.slashed(log.id, sent.block).await
}

/// A publisher whose wrong hints kept others from posting right ones has them slashed himself when the run's time is
/// up, to have it void. The time runs anew, and the right hints become final.
pub async fn slashed_at_the_deadline(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    // Nobody posts and nobody challenges; the node opens by itself before it goes.
    arena.devnet.process("hint-publisher")?.pause()?;
    let outcome = slashed_by_itself(arena, &mut gas).await;
    arena.devnet.process("hint-publisher")?.resume()?;
    outcome?;
    Ok(gas)
}

async fn slashed_by_itself(arena: &mut Arena, gas: &mut Gas) -> Result<()> {
    let (_, receipt) = arena.transfer(0).await?;
    let number = receipt.number.context("a number")?;
    let posted = arena.posted(number).await?;
    let index = posted.accepted(number)?;
    arena.devnet.process("full-node")?.kill().await?;
    let deadline = posted.run.run.posted_at + u64::from(TIMING.hint_deadline);
    mine_to(arena, deadline - BEFORE_THE_DEADLINE).await?;

    let thief = arena.forger();
    bonded(arena, &thief).await?;
    let mut wrong = posted.right();
    wrong.batches[posted.place(number)].entries[index as usize].key[5] ^= 1;
    let sent = thief.post_hints(&posted.run.run, &wrong).await?;
    gas.step("postHints, wrong", sent.gas_used);
    let log = arena.posting_by(thief.address(), posted.run.run.last).await?;
    mine_to(arena, deadline).await?;
    refused(thief.void_unreleased(&posted.run.run).await, "PostingsOpen")?;
    let challenge = posted.challenge(&wrong, number, index)?;
    let slashed = thief.dispute(log.id, &challenge, salt()).await?;
    gas.step("challenge", slashed.gas_used);
    let early = format!("TooEarly {{ fromBlock: {} }}", slashed.block + u64::from(TIMING.hint_deadline));
    refused(thief.void_unreleased(&posted.run.run).await, &early)?;

    let honest = arena.reporter();
    bonded(arena, &honest).await?;
    gas.step("postHints, right", honest.post_hints(&posted.run.run, &posted.right()).await?.gas_used);
    let log = arena.posting_by(honest.address(), posted.run.run.last).await?;
    mine_to(arena, log.l1_block + u64::from(TIMING.challenge_window)).await?;
    gas.step("finalize", honest.finalize_hints(log.id).await?.gas_used);
    refused(thief.void_unreleased(&posted.run.run).await, "RunIsFinal")?;
    arena.devnet.process("full-node")?.start()?;
    arena.devnet.process("full-node")?.ready().await
}

/// An honest posting, challenged with everything that is wrong in form, and then in form with nothing behind it.
pub async fn malformed_challenge(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let bully = arena.bully();
    let (_, receipt) = arena.transfer(1).await?;
    let number = receipt.number.context("a number")?;
    let publisher = named_key(HINT_PUBLISHER).address();
    let posted = arena.posted(number).await?;
    let index = posted.accepted(number)?;
    let log = arena.posting_by(publisher, posted.run.run.last).await?;
    let before = arena.devnet.l1.publisher_bond(publisher).await?;
    let rewards = arena.devnet.l1.hint_reward(publisher).await?;
    let (_, stake) = arena.devnet.l1.hint_stakes().await?;

    let salt = salt();
    let challenge = posted.challenge(&posted.right(), number, index)?;
    for (number, index) in [(number, index), (number, 9_999), (number + 10_000, index)] {
        bully.commit_challenge(challenge_evidence(log.id, number, index), salt).await?;
    }
    let doomed = malformed(log.id, challenge.call(), &posted.run.run, salt, stake);
    let registry = arena.devnet.chain.hint_registry;
    gas.step("malformed", arena.raw.all_fail(bully.address(), registry, &doomed).await?);
    let after = arena.devnet.l1.publisher_bond(publisher).await?;
    ensure!(after.total == before.total, "expected a bond of {} wei, seen {}", before.total, after.total);

    let sent = bully.challenge(log.id, &challenge, salt).await?;
    gas.step("well-formed", sent.gas_used);
    let after = arena.devnet.l1.publisher_bond(publisher).await?;
    ensure!(after.total == before.total, "expected a bond of {} wei, seen {}", before.total, after.total);
    let seen = arena.hint_events(log.l1_block).await?;
    ensure!(
        !seen.iter().any(|seen| matches!(seen, HintEvent::Slashed { id, .. } if *id == log.id)),
        "expected posting {} to stand, it is slashed",
        log.id
    );
    gas.step("well-formed, of a right ⊥", right_malformed(arena).await?);
    let earned = gained(arena.devnet.l1.hint_reward(publisher).await?, rewards)?;
    ensure!(
        earned == U256::from(2 * stake),
        "expected both stakes of {stake} wei for the publisher, seen {earned}"
    );
    Ok(gas)
}

/// An honest ⊥, challenged with a key that opens nothing.
async fn right_malformed(arena: &Arena) -> Result<u64> {
    let receipt = malformed_envelope(arena).await?;
    let number = receipt.number.context("a number")?;
    let posted = arena.posted(number).await?;
    let publisher = named_key(HINT_PUBLISHER).address();
    let log = arena.posting_by(publisher, posted.run.run.last).await?;
    let challenge = posted.challenge(&posted.right(), number, receipt.index.context("an index")?)?;
    let before = arena.devnet.l1.publisher_bond(publisher).await?;
    let sent = arena.bully().dispute(log.id, &challenge, salt()).await?;
    let after = arena.devnet.l1.publisher_bond(publisher).await?;
    ensure!(after.total == before.total, "expected a bond of {} wei, seen {}", before.total, after.total);
    Ok(sent.gas_used)
}

/// An envelope that opens to ⊥, opened.
async fn malformed_envelope(arena: &Arena) -> Result<Receipt> {
    let malformed = arena.spoiler.send_malformed().await?;
    until("the malformed envelope to be opened", async || {
        let receipt = arena.receipt(malformed.id()).await?;
        Ok(receipt.filter(|receipt| receipt.state == EnvelopeState::Malformed))
    })
    .await
}

/// The challenge of a right entry, changed so that L1 has nothing to judge.
fn malformed(
    id: u64,
    right: &HintRegistry::Challenge,
    run: &RunReference,
    salt: B256,
    stake: u128,
) -> Vec<Doomed> {
    let input = |given: HintRegistry::Challenge, salt| challengeCall { id, given, salt }.abi_encode();
    let changed = |what, error, change: &dyn Fn(&mut HintRegistry::Challenge)| {
        let mut given = right.clone();
        change(&mut given);
        Doomed { value: stake, ..Doomed::new(what, input(given, salt), error) }
    };
    let junk = B256::repeat_byte(0x3c);
    let flipped = |bytes: &Bytes| {
        let mut bytes = bytes.to_vec();
        bytes[0] ^= 1;
        Bytes::from(bytes)
    };
    let other_run = RunReference { last: run.last + 1, ..*run };
    vec![
        Doomed { value: 0, ..changed("no stake", "WrongStake", &|_| {}) },
        Doomed { value: stake - 1, ..changed("a stake of a wei less", "WrongStake", &|_| {}) },
        Doomed { value: stake, ..Doomed::new("no commitment", input(right.clone(), junk), "NotCommitted") },
        changed("another run", "WrongRun", &|given| given.run = (&other_run).into()),
        changed("another chunk", "ChunkNotInPosting", &|given| given.chunk = flipped(&given.chunk)),
        changed("a chunk cut short", "", &|given| given.chunk = given.chunk.slice(1..)),
        changed("no chunk", "", &|given| given.chunk = Bytes::new()),
        changed("a proof that is too long", "", &|given| given.chunkProof.push(junk)),
        changed("another leaf", "", &|given| given.leafIndex += 1),
        changed("another number of leaves", "", &|given| given.leafCount += 1),
        changed("another chunk index", "", &|given| given.chunkIndex += 1),
        changed("another count", "", &|given| given.count += 1),
        changed("another header", "", &|given| given.header.gas += 1),
        changed("a header of another number", "", &|given| given.header.number += 10_000),
        changed("another proof of the header", "", &|given| given.headerProof.push(junk)),
        changed("an index out of range", "IndexNotInChunk", &|given| given.index = 9_999),
        changed("another verdict", "ItemNotInBatch", &|given| given.code = 1),
        changed("another id", "ItemNotInBatch", &|given| given.id = junk),
        changed("another item's hash", "ItemNotInBatch", &|given| given.itemHash = junk),
        changed("another proof of the item", "ItemNotInBatch", &|given| given.itemProof.push(junk)),
        changed("no item", "WrongItem", &|given| given.item = Bytes::new()),
        changed("an item cut short", "WrongItem", &|given| given.item = given.item.slice(1..)),
        changed("another item", "WrongItem", &|given| given.item = flipped(&given.item)),
        Doomed {
            gas: Some(1_000_000),
            ..changed("too little gas for the judgement", "", &|given| given.key = FixedBytes::ZERO)
        },
    ]
}
