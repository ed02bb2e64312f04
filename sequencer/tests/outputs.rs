//! Claims of L2 blocks on L1: in order, of settled blocks only, again after failures, from where L1 stands.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_kit::{RICH, envelope, payer, within};
use blindfold_l1::{L1Error, Output};
use blindfold_rpc::{BlindApiClient, RunningRole};
use blindfold_sequencer::{Sequencer, SequencerDeps};
use common::{Running, World};

/// Blocks with one envelope each, a second apart, up to block `through`; all certified, opened and executed.
async fn execute_through(running: &Running<'_>, through: u64) {
    let done = running.handle.execution().block.map_or(0, |block| block.number);
    for block in done + 1..=through {
        running.send(&envelope(1, block)).await.unwrap();
        running.sealed(2 * block).await;
        running.world.clock.advance(1_000);
        running.sealed(2 * block + 1).await;
        running.certify_through(2 * block + 1).await;
        running.hint(2 * block).await;
        running.executed(block).await;
    }
}

async fn claimed(running: &Running<'_>, through: u64) {
    let outputs = &running.world.inbox.outputs;
    let last = || outputs.lock().last().map_or(0, |output: &Output| output.l2_block);
    running.eventually("a claim", async || last() >= through).await;
}

/// Two more looks for what can be claimed.
async fn looks(running: &Running<'_>) {
    let mut looks = running.world.inbox.output_looks.subscribe();
    let now = *looks.borrow_and_update();
    within("looks at the claims", looks.wait_for(|count| *count >= now + 3)).await.unwrap();
}

#[tokio::test]
async fn settled_blocks_are_claimed_once_and_in_order() {
    let world = World::new();
    let faults = [L1Error::no_answer("scripted"), L1Error::refused("scripted")];
    world.inbox.output_faults.lock().extend(faults);
    let running = world.start_funded(&[1]).await;
    execute_through(&running, 10).await;
    looks(&running).await;
    assert!(world.inbox.outputs.lock().is_empty(), "nothing is ten blocks deep");
    execute_through(&running, 12).await;
    claimed(&running, 2).await;
    looks(&running).await;
    let outputs = world.inbox.outputs.lock().clone();
    let blocks: Vec<u64> = outputs.iter().map(|output| output.l2_block).collect();
    assert_eq!(blocks, [1, 2]);
    running
        .eventually("failures are counted", async || {
            running.client.get_status().await.unwrap().counters["output_failures"] == 2
        })
        .await;
    running.handle.abort().await;

    // L1 took a claim back: what it holds is the record, and the same is claimed again.
    let taken = world.inbox.outputs.lock().pop();
    let running = world.start().await;
    claimed(&running, 2).await;
    assert_eq!(world.inbox.outputs.lock().last().copied(), taken);
    execute_through(&running, 13).await;
    claimed(&running, 3).await;
    running.handle.shutdown().await;
}

/// What is in no run on L1 yet may become void there, however deep it is: who follows L1 claims nothing of it.
#[tokio::test]
async fn what_is_not_safe_on_l1_is_not_claimed() {
    let world = World::new();
    let deps = SequencerDeps { settlement: Some(world.l1.clone()), ..world.deps(world.store().await) };
    world.l1.deposit(payer(1).address(), RICH);
    let running = world.running(Sequencer::start(world.config.clone(), deps).await.unwrap());
    running.sealed(1).await;
    execute_through(&running, 13).await;
    looks(&running).await;
    assert!(world.inbox.outputs.lock().is_empty(), "nothing is safe");
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_sequencer_without_claims_does_not_look() {
    let world = World::with(|config, _| config.outputs.enabled = false);
    let running = world.start_funded(&[1]).await;
    running.certify(1).await;
    let mut posted = world.inbox.posted.subscribe();
    within("a posting", posted.wait_for(|posted| *posted >= 1)).await.unwrap();
    assert_eq!(*world.inbox.output_looks.borrow(), 0);
    running.handle.shutdown().await;
}
