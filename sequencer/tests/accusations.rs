//! Accusations on L1: answered from what is posted, again after failures and kills, and told when there is no answer.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_kit::{envelope, within};
use blindfold_l1::L1Error;
use blindfold_protocol::{B256, Canonical, keccak256};
use blindfold_rpc::{BlindApiClient, RunningRole};
use common::{Running, World};

/// Two more looks for accusations, of which the second sees what the test did before.
async fn looks(running: &Running<'_>) {
    let mut looks = running.world.inbox.looks.subscribe();
    let now = *looks.borrow_and_update();
    within("looks for accusations", looks.wait_for(|count| *count >= now + 3)).await.unwrap();
}

async fn counter(running: &Running<'_>, name: &str) -> u64 {
    running.client.get_status().await.unwrap().counters[name]
}

/// Seals an envelope alone in batch `number`; gives its id and the hash of its bytes.
async fn sealed(running: &Running<'_>, number: u64) -> (B256, B256) {
    let envelope = envelope(1, number);
    running.send(&envelope).await.unwrap();
    running.sealed(number).await;
    (envelope.id(), keccak256(envelope.encode()))
}

#[tokio::test]
async fn a_kept_promise_is_shown_once_its_batch_is_posted() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    let item = sealed(&running, 2).await;
    let (id, _) = item;
    world.inbox.accusations.lock().insert(item, 2);
    looks(&running).await;
    assert!(world.inbox.answers.lock().is_empty(), "nothing is posted");
    assert_eq!(counter(&running, "accusations_lost").await, 0);
    running.certify_through(2).await;
    running.eventually("an answer", async || counter(&running, "accusations_answered").await == 1).await;
    looks(&running).await;
    assert_eq!(*world.inbox.answers.lock(), [(id, 2)]);
    running.handle.shutdown().await;
}

#[tokio::test]
async fn l1_is_the_record_of_what_is_answered() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    let item = sealed(&running, 2).await;
    let (id, _) = item;
    running.certify_through(2).await;
    let mut posted = world.inbox.posted.subscribe();
    within("a posting", posted.wait_for(|number| *number >= 2)).await.unwrap();
    running.handle.abort().await;

    // Accused while the sequencer was away; L1 takes the third attempt.
    world.inbox.accusations.lock().insert(item, 9);
    let faults = [L1Error::no_answer("scripted"), L1Error::refused("scripted")];
    world.inbox.answer_faults.lock().extend(faults);
    let running = world.start().await;
    running.eventually("an answer", async || world.inbox.accusations.lock().is_empty()).await;
    running.eventually("it is counted", async || counter(&running, "accusations_answered").await == 1).await;
    assert_eq!(counter(&running, "accusation_failures").await, 2);
    assert_eq!(*world.inbox.answers.lock(), [(id, 2); 3]);
    running.handle.abort().await;

    // After a kill nothing is answered twice, but what L1 took back is.
    let running = world.start().await;
    looks(&running).await;
    assert_eq!(world.inbox.answers.lock().len(), 3);
    world.inbox.accusations.lock().insert(item, 9);
    running.eventually("another answer", async || world.inbox.accusations.lock().is_empty()).await;
    assert_eq!(world.inbox.answers.lock().len(), 4);
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_broken_promise_is_told_and_holds_nothing_up() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    let (late, kept) = (sealed(&running, 2).await, sealed(&running, 3).await);
    running.certify_through(3).await;
    let never = (B256::repeat_byte(1), B256::ZERO);
    // One that is nowhere, one that came a batch too late, one that is beyond what is certified, one that was kept.
    let beyond = (B256::repeat_byte(2), B256::ZERO);
    // And one over other bytes with the id of what was sealed.
    let mangled = (kept.0, B256::repeat_byte(3));
    let accused = [(never, 3), (late, 1), (beyond, 99), (kept, 3), (mangled, 3)];
    world.inbox.accusations.lock().extend(accused);
    running.eventually("an answer", async || counter(&running, "accusations_answered").await == 1).await;
    running.eventually("the loss", async || counter(&running, "accusations_lost").await == 3).await;
    assert_eq!(*world.inbox.answers.lock(), [(kept.0, 3)]);
    // Slashed: gone from L1, and from the metric.
    world.inbox.accusations.lock().clear();
    running.eventually("nothing open", async || counter(&running, "accusations_lost").await == 0).await;
    sealed(&running, 4).await;
    running.handle.shutdown().await;
}
