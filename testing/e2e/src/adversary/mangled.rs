//! Copies of an honest envelope with a damaged proof: they have its id, and are another item.

use alloy_primitives::{U256, keccak256};
use anyhow::{Context, Result, ensure};
use blindfold_l1::{AccusationState, GivenPromise};
use blindfold_protocol::{Canonical, Envelope, Promise};
use blindfold_rpc::types::EnvelopeState;

use super::{
    arena::{Arena, TIMING, until},
    committee::mine_to,
    forced::places,
    report::{Gas, Outcome},
    sequencer::{bond, bond_is_lost, gained, salt},
};

/// The verdict on a copy.
const VERDICT: &str = "invalid_proof";
/// Nonce of a transfer that is never sent.
const UNUSED_NONCE: u64 = 1_000_000;

/// The same envelope with one bit of its proof flipped.
fn mangled(envelope: &Envelope) -> Envelope {
    let mut copy = envelope.clone();
    copy.proof.s[31] ^= 1;
    copy
}

/// Forces a mangled copy and waits until it stands in a batch. Gives the batch's number.
async fn force_copy(arena: &Arena, envelope: &Envelope, gas: &mut Gas) -> Result<u64> {
    let copy = mangled(envelope);
    ensure!(copy.id() == envelope.id(), "expected a copy with the id {}", envelope.id());
    gas.step("force", arena.bully().force_envelope(&copy.encode()).await?.gas_used);
    let expected = [(copy.encode(), VERDICT)];
    let found =
        until("the mangled copy to stand in a batch", async || places(arena, &expected).await).await?;
    found.first().copied().context("a number")
}

/// The copy is forced first; the genuine envelope is no duplicate of it.
pub async fn mangled_copy_forced_first(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let (raw, _) = arena.users[0].transfer(arena.users[0].nonce, U256::from(1));
    let envelope = arena.users[0].envelope(raw.to_vec()).await?;
    let first = force_copy(arena, &envelope, &mut gas).await?;
    arena.users[0].submit(&envelope, false).await?;
    arena.users[0].nonce += 1;
    // What the copy came to is told under the same id until the genuine one has its place.
    let receipt = until("the genuine envelope to be executed", async || {
        let receipt = arena.receipt(envelope.id()).await?;
        Ok(receipt.filter(|receipt| receipt.state == EnvelopeState::Executed))
    })
    .await?;
    let number = receipt.number.context("a number")?;
    ensure!(number > first, "expected a batch after {first}, seen {number}");
    ensure!(
        receipt.transactions.iter().flatten().all(|transaction| transaction.included),
        "expected the transfer in a block, seen {receipt:?}"
    );
    Ok(gas)
}

/// The sequencer promises an envelope and lets a mangled copy stand in for it.
pub async fn mangled_copy_keeps_promise(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let (raw, _) = arena.users[3].transfer(UNUSED_NONCE, U256::from(1));
    let envelope = arena.users[3].envelope(raw.to_vec()).await?;
    let number = force_copy(arena, &envelope, &mut gas).await?;
    arena.posted(number).await?;
    let before = bond(arena).await?;
    let deployment = arena.devnet.chain.deployment;
    let item_hash = keccak256(envelope.encode());
    let promise = Promise::sign(&arena.sequencer_key(), &deployment, envelope.id(), item_hash, number);
    let given = GivenPromise::new(&promise, arena.sequencer_key().address());

    let user = arena.account(arena.users[3].key.clone());
    let rewards = arena.devnet.l1.reward(user.address()).await?;
    let accused = user.report_omission(&promise, salt()).await?;
    gas.step("accuseOmission", accused.gas_used);
    let window = u64::from(TIMING.answer_window);
    until("half of the answer window to pass", async || {
        Ok((arena.raw.height().await? > accused.block + window / 2).then_some(()))
    })
    .await?;
    mine_to(arena, accused.block + window + 1).await?;
    let seen = arena.devnet.l1.accusation(&given).await?.state;
    ensure!(seen == AccusationState::Open, "expected an accusation that nobody can answer, seen {seen:?}");
    gas.step("slashOmission", user.slash_omission(&given).await?.gas_used);
    bond_is_lost(arena).await?;
    let earned = gained(arena.devnet.l1.reward(user.address()).await?, rewards)?;
    ensure!(earned >= before / U256::from(2), "expected half of {before} wei for the accuser, seen {earned}");
    Ok(gas)
}
