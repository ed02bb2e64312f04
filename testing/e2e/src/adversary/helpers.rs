//! Helpers that fall silent.

use alloy_primitives::{Address, B256, U256};
use alloy_sol_types::SolEvent;
use anyhow::{Context, ensure};
use blindfold::devnet::{
    accounts::{HINT_PUBLISHER, named_key},
    process::RoleProcess,
};
use blindfold_l1::contracts::HintRegistry;

use super::{
    field::Field,
    report::{Gas, Outcome},
    roles::second_helper,
};

/// The first helper is killed: the second posts. Both are killed: the node opens by itself.
pub async fn silent_helper(field: &mut Field) -> Outcome {
    let (mut second, account) = second_helper(field)?;
    second.start()?;
    let outcome = silenced(field, &mut second, account).await;
    second.stop().await;
    outcome
}

async fn silenced(field: &mut Field, second: &mut RoleProcess, account: Address) -> Outcome {
    second.ready().await?;
    field.devnet.process("hint-publisher")?.kill().await?;
    let (_, receipt) = field.transfer(0).await?;
    let run = field.posted_run(receipt.number.context("a number")?).await?.run;
    let posting = field.posting_by(account, run.last).await?;

    second.kill().await?;
    let locally = field.counter("batches_decrypted_locally").await?;
    let (_, receipt) = field.transfer(1).await?;
    let now = field.counter("batches_decrypted_locally").await?;
    ensure!(now > locally, "expected the full node to open a batch by itself, seen {now} after {locally}");

    // Whoever comes back posts what is missing, so that nothing becomes void.
    field.devnet.process("hint-publisher")?.start()?;
    field.devnet.process("hint-publisher")?.ready().await?;
    let missed = field.posted_run(receipt.number.context("a number")?).await?.run;
    let late = field.posting_by(named_key(HINT_PUBLISHER).address(), missed.last).await?;

    let registry = field.devnet.chain.hint_registry;
    let mut gas = Gas::default();
    for (name, id) in
        [("postHints by the second helper", posting.id), ("postHints by the first, come back", late.id)]
    {
        let topics = [Some(HintRegistry::HintsPosted::SIGNATURE_HASH), Some(B256::from(U256::from(id)))];
        gas.step(name, field.raw.gas_of_event(registry, 0, &topics).await?);
    }
    Ok(gas)
}
