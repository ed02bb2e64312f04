//! The end of an epoch at the head: what is sealed can be posted before it is due, and L1 is made to make the last header.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_rpc::RunningRole;
use std::sync::atomic::Ordering;

use blindfold_chain::AnnouncedEnd;
use blindfold_kit::{EPOCH, envelope, within};
use blindfold_l1::PostedHead;
use blindfold_protocol::{Canonical, limits::HANDOVER_BLOCKS};
use common::{Running, World};

/// The end is announced, for so many blocks later; gives the last one before it is due.
fn announce(world: &World, notice: u64) -> u64 {
    let announced_at = *world.l1.finalized.lock();
    let until = announced_at + notice;
    *world.l1.ending.lock() = Some(AnnouncedEnd { epoch: EPOCH, announced_at, until, for_silence: false });
    until
}

/// Two more rounds of the posting task.
async fn rounds(running: &Running<'_>) {
    let mut attempts = running.world.inbox.attempts.subscribe();
    let now = *attempts.borrow_and_update();
    within("rounds of posting", attempts.wait_for(|count| *count >= now + 2)).await.unwrap();
}

#[tokio::test]
async fn nothing_is_sealed_that_may_not_be_posted_before_the_epoch_ends() {
    let world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    running.send_bytes(envelope(1, 1).encode(), true).await.unwrap();
    // The last quarter is for posting alone.
    announce(&world, 400);
    world.l1.advance(300 - HANDOVER_BLOCKS);
    let tracker = running.handle.tracker();
    running
        .eventually("the announcement to be known", async || {
            let closing = tracker.closing(tracker.head().number + 1);
            closing
                .is_some_and(|closing| tracker.newest_l1_block() + HANDOVER_BLOCKS >= closing.closed_from())
        })
        .await;
    let refusal = running.send_bytes(envelope(2, 2).encode(), true).await.unwrap_err();
    assert_eq!(refusal.reason, "promise_terms");
    running.send(&envelope(2, 3)).await.unwrap();
    world.l1.advance(HANDOVER_BLOCKS);
    running
        .eventually("the readiness to say so", async || {
            let reasons = running.handle.readiness().reasons();
            reasons.get("epoch").is_some_and(|reason| reason.contains("nothing is sealed for it"))
        })
        .await;
    assert_eq!(running.reason(&envelope(2, 4)).await, "epoch_ends");
    // Not even to close a second.
    let sealed = running.handle.tracker().head().number;
    world.clock.advance(60_000);
    rounds(&running).await;
    assert_eq!(running.handle.tracker().head().number, sealed);
    // The governor takes it back.
    *world.l1.ending.lock() = None;
    running.sealed(sealed + 1).await;
    let envelope = envelope(2, 4);
    running.eventually("admission", async || running.send(&envelope).await.is_ok()).await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn the_sequencer_has_l1_make_the_last_header_once_the_end_is_due() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    running.certify_through(1).await;
    let mut posted = world.inbox.posted.subscribe();
    within("a posting", posted.wait_for(|posted| *posted >= 1)).await.unwrap();
    let until = announce(&world, 40_000);
    // Known once the end of the promises is.
    world.l1.advance(40_000 - 1_800);
    running
        .eventually("the readiness to say so", async || {
            running.handle.readiness().reasons().contains_key("epoch")
        })
        .await;
    world.inbox.newest.store(until - 1_000, Ordering::SeqCst);
    rounds(&running).await;
    assert!(world.inbox.ended.borrow().is_empty(), "not due");
    world.inbox.taken_back.store(true, Ordering::SeqCst);
    world.inbox.newest.store(until + 1, Ordering::SeqCst);
    rounds(&running).await;
    assert!(world.inbox.ended.borrow().is_empty(), "not due any more");
    world.inbox.taken_back.store(false, Ordering::SeqCst);
    let mut ended = world.inbox.ended.subscribe();
    within("the end", ended.wait_for(|ended| !ended.is_empty())).await.unwrap();
    rounds(&running).await;
    assert_eq!(*world.inbox.ended.borrow(), [2], "once");
    running.handle.shutdown().await;
}

/// An answer from before the block of a transaction says nothing of what came of it (PD-6).
#[tokio::test]
async fn a_server_that_lags_makes_nobody_end_an_epoch_twice() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    running.certify_through(1).await;
    let mut posted = world.inbox.posted.subscribe();
    within("a posting", posted.wait_for(|posted| *posted >= 1)).await.unwrap();
    let until = announce(&world, 40_000);
    world.l1.advance(40_000 - 1_800);
    running
        .eventually("the readiness to say so", async || {
            running.handle.readiness().reasons().contains_key("epoch")
        })
        .await;
    // The server that lags gives the next answers, as of the first block in which the end is due.
    *world.inbox.lagging.lock() = Some((60, PostedHead { block: until + 1, ..world.inbox.head() }));
    world.inbox.newest.store(until + 1, Ordering::SeqCst);
    let mut ended = world.inbox.ended.subscribe();
    within("the end", ended.wait_for(|ended| !ended.is_empty())).await.unwrap();
    for _ in 0..4 {
        rounds(&running).await;
    }
    assert_eq!(*world.inbox.ended.borrow(), [2]);
    running.handle.shutdown().await;
}
