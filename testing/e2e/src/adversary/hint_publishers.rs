//! Hint publishers that fall silent.

use alloy_primitives::{Address, B256, U256};
use alloy_sol_types::SolEvent;
use anyhow::{Context, ensure};
use blindfold::devnet::{
    accounts::{HINT_PUBLISHER, named_key},
    process::RoleProcess,
};
use blindfold_l1::contracts::HintRegistry;

use super::{
    arena::Arena,
    report::{Gas, Outcome},
    roles::second_hint_publisher,
};

/// The first hint publisher is killed: the second posts. Both are killed: the node opens by itself.
pub async fn silent_hint_publisher(arena: &mut Arena) -> Outcome {
    let (mut second, account) = second_hint_publisher(arena)?;
    second.start()?;
    let outcome = silenced(arena, &mut second, account).await;
    second.stop().await;
    outcome
}

async fn silenced(arena: &mut Arena, second: &mut RoleProcess, account: Address) -> Outcome {
    second.ready().await?;
    arena.devnet.process("hint-publisher")?.kill().await?;
    let (_, receipt) = arena.transfer(0).await?;
    let run = arena.posted_run(receipt.number.context("a number")?).await?.run;
    let posting = arena.posting_by(account, run.last).await?;

    second.kill().await?;
    let locally = arena.counter("batches_decrypted_locally").await?;
    let (_, receipt) = arena.transfer(1).await?;
    let now = arena.counter("batches_decrypted_locally").await?;
    ensure!(now > locally, "expected the full node to open a batch by itself, seen {now} after {locally}");

    // Whoever comes back posts what is missing, so that nothing becomes void.
    arena.devnet.process("hint-publisher")?.start()?;
    arena.devnet.process("hint-publisher")?.ready().await?;
    let missed = arena.posted_run(receipt.number.context("a number")?).await?.run;
    let late = arena.posting_by(named_key(HINT_PUBLISHER).address(), missed.last).await?;

    let registry = arena.devnet.chain.hint_registry;
    let mut gas = Gas::default();
    for (name, id) in [
        ("postHints by the second hint publisher", posting.id),
        ("postHints by the first, come back", late.id),
    ] {
        let topics = [Some(HintRegistry::HintsPosted::SIGNATURE_HASH), Some(B256::from(U256::from(id)))];
        gas.step(name, arena.raw.gas_of_event(registry, 0, &topics).await?);
    }
    Ok(gas)
}
