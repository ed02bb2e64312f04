//! Posting to L1: in order, within limits, again after failures, from where L1 stands.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::atomic::Ordering;

use blindfold_kit::{
    EPOCH, FaultyStore, LAST_NUMBER, RICH, committee, envelope, envelope_with, payer, within,
};
use blindfold_l1::L1Error;
use blindfold_l1::PostedHead;
use blindfold_protocol::{B256, RulesChange};
use blindfold_rpc::{BlindApiClient, RunningRole};
use blindfold_store::{Store, StoreError};
use common::{Running, World};

async fn posted(running: &Running<'_>, number: u64) {
    let mut posted = running.world.inbox.posted.subscribe();
    within("a posting", posted.wait_for(|posted| *posted >= number)).await.unwrap();
}

/// Two more rounds of the posting task.
async fn rounds(running: &Running<'_>) {
    let mut attempts = running.world.inbox.attempts.subscribe();
    let now = *attempts.borrow_and_update();
    within("rounds of posting", attempts.wait_for(|count| *count >= now + 2)).await.unwrap();
}

/// Envelopes in batches of one: headers 2 to `through`.
async fn seal_through(running: &Running<'_>, through: u64) {
    for number in running.handle.tracker().head().number + 1..=through {
        running.send(&envelope(1, number)).await.unwrap();
        running.sealed(number).await;
    }
}

#[tokio::test]
async fn certified_runs_go_out_in_order_and_within_limits() {
    let world = World::with(|config, _| config.posting.max_headers = 3);
    let running = world.start_funded(&[1]).await;
    seal_through(&running, 8).await;
    rounds(&running).await;
    assert_eq!(world.inbox.head().number, 0, "nothing without a certificate");
    // The one certificate of the eighth certifies all: the run goes on to it, though it is longer.
    running.certify(8).await;
    posted(&running, 8).await;
    assert_eq!(*world.inbox.runs.lock(), [(1, 8)]);
    seal_through(&running, 15).await;
    running.certify_through(15).await;
    posted(&running, 15).await;
    let runs = world.inbox.runs.lock().clone();
    assert!(runs.iter().skip(1).all(|(from, to)| to - from < 3), "{runs:?}");
    running
        .eventually("it is told", async || running.client.get_status().await.unwrap().posted == Some(15))
        .await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn bytes_bound_a_run() {
    // About one batch of one small envelope each.
    let world = World::with(|config, _| config.posting.max_bytes = 1_000);
    world.inbox.faults.lock().extend([L1Error::no_answer("scripted"), L1Error::refused("scripted")]);
    let running = world.start_funded(&[1]).await;
    seal_through(&running, 4).await;
    running.certify_through(4).await;
    posted(&running, 4).await;
    let runs = world.inbox.runs.lock().clone();
    assert!(runs.len() >= 3, "{runs:?}");
    let counters = running.client.get_status().await.unwrap().counters;
    assert!(counters["posting_failures"] >= 2);
    running.handle.shutdown().await;
}

#[tokio::test]
async fn l1_is_the_record_of_what_is_posted() {
    let world = World::with(|config, _| config.posting.max_headers = 1);
    let running = world.start_funded(&[1]).await;
    seal_through(&running, 4).await;
    running.certify_through(4).await;
    posted(&running, 4).await;
    let second = running.batch(2).await.hash;
    running.handle.abort().await;
    // L1 took two postings back.
    world.inbox.set_head(2, second);
    let running = world.start().await;
    posted(&running, 4).await;
    assert_eq!(world.inbox.runs.lock()[4..], [(3, 3), (4, 4)]);

    // Another chain in the inbox, or one that is ahead of this disk, is a fault that stops posting and nothing else.
    for foreign in [
        PostedHead { number: 3, hash: B256::repeat_byte(1), ..PostedHead::default() },
        PostedHead { number: 99, hash: second, ..PostedHead::default() },
    ] {
        world.inbox.set_head(foreign.number, foreign.hash);
        rounds(&running).await;
        assert_eq!((world.inbox.head().number, world.inbox.head().hash), (foreign.number, foreign.hash));
    }
    seal_through(&running, 5).await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn data_that_did_not_follow_its_headers_is_posted_after_a_kill() {
    let world =
        World::with(|config, _| (config.posting.retry_ms, config.posting.max_retry_ms) = (60_000, 60_000));
    world.inbox.lose_data.store(true, Ordering::SeqCst);
    // Long before the headers are final.
    *world.inbox.final_number.lock() = 0;
    let running = world.start_funded(&[1]).await;
    running.certify(1).await;
    posted(&running, 1).await;
    running.handle.abort().await;
    assert!(world.inbox.data.lock().is_empty());
    let running = world.start().await;
    running.eventually("the data", async || !world.inbox.data.lock().is_empty()).await;
    assert_eq!(*world.inbox.data.lock(), [(1, 1)]);
    // Once, and the next run is an ordinary one.
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    running.certify(2).await;
    running.eventually("the next run", async || world.inbox.data.lock().len() == 2).await;
    assert_eq!(*world.inbox.data.lock(), [(1, 1), (2, 2)]);
    assert_eq!(*world.inbox.runs.lock(), [(1, 1), (2, 2)]);
    running.handle.shutdown().await;
}

/// Headers have a deadline on L1, and data alone has none: an archive that is away, blobs that come into no block, or an L1
/// that is too dear for data keep none waiting.
#[tokio::test]
async fn data_that_cannot_be_posted_holds_up_no_headers() {
    let too_dear = L1Error::FeeAboveLimit { call: "postData", wei: 2, limit_wei: 1 };
    for fault in [L1Error::no_answer("the archive is away"), too_dear] {
        let world = World::with(|config, _| config.posting.max_headers = 1);
        *world.inbox.final_number.lock() = 0;
        world.inbox.lose_data.store(true, Ordering::SeqCst);
        *world.inbox.data_fault.lock() = Some(fault);
        let running = world.start_funded(&[1]).await;
        seal_through(&running, 3).await;
        running.certify_through(3).await;
        posted(&running, 3).await;
        assert_eq!(world.inbox.runs.lock().len(), 3);
        assert!(!world.inbox.data.lock().contains(&(1, 1)));
        // It follows later.
        *world.inbox.data_fault.lock() = None;
        *world.inbox.final_number.lock() = 3;
        running.eventually("it is supplied", async || world.inbox.data.lock().contains(&(1, 1))).await;
        running.handle.shutdown().await;
    }
}

/// Each try may take minutes, and headers are made all the while.
#[tokio::test]
async fn data_that_cannot_be_posted_is_not_tried_for_each_run() {
    let world = World::with(|config, _| config.posting.max_headers = 1);
    *world.inbox.final_number.lock() = 0;
    *world.inbox.data_fault.lock() = Some(L1Error::no_answer("the archive is away"));
    let running = world.start_funded(&[1]).await;
    seal_through(&running, 6).await;
    running.certify_through(6).await;
    posted(&running, 6).await;
    // With the headers, and five times after them.
    assert_eq!(world.inbox.data_refusals.load(Ordering::SeqCst), 6);
    *world.inbox.data_fault.lock() = None;
    *world.inbox.final_number.lock() = 6;
    let runs = world.inbox.runs.lock().clone();
    running
        .eventually("all is supplied", async || {
            let data = world.inbox.data.lock();
            runs.iter().all(|run| data.contains(run))
        })
        .await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_run_ends_with_its_epoch() {
    let epochs = vec![committee().epoch(EPOCH, 1, 3), committee().epoch(EPOCH + 1, 4, LAST_NUMBER)];
    let world = World::with_epochs(epochs, |_, _| {});
    let running = world.start_funded(&[1]).await;
    for number in 2..=3 {
        running.send(&envelope_with(1, number, |f| f.expiry = 3)).await.unwrap();
        running.sealed(number).await;
    }
    running.send(&envelope_with(1, 50, |f| f.epoch = EPOCH + 1)).await.unwrap();
    // The next epoch begins when the last header of this one has its own certificate.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(running.handle.tracker().head().number, 3);
    running.certify(3).await;
    running.sealed(4).await;
    running.certify(4).await;
    posted(&running, 4).await;
    assert_eq!(*world.inbox.runs.lock(), [(1, 3), (4, 4)]);
    running.handle.shutdown().await;
}

/// L1 takes no run of two rule sets, and this build seals of the first one alone: it stops before the second, when what it
/// sealed can be posted.
#[tokio::test]
async fn a_rule_set_ends_with_a_certificate_of_its_own() {
    let world = World::with(|_, _| {});
    let change = RulesChange { first: 3, rules: 2 };
    let epochs = world.l1.epochs.lock().clone().with_rules(vec![change]).unwrap();
    *world.l1.epochs.lock() = epochs;
    let running = world.start_funded(&[1]).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    let counter = async |name: &str| running.client.get_status().await.unwrap().counters[name];
    running
        .eventually("a slot", async || counter("seal_waits").await + counter("seal_failures").await > 0)
        .await;
    assert_eq!(counter("seal_failures").await, 0, "it waits for the certificate");
    running.certify(2).await;
    running.eventually("the end", async || counter("seal_failures").await > 0).await;
    assert_eq!(running.handle.tracker().head().number, 2);
    posted(&running, 2).await;
    running.handle.shutdown().await;
}

/// Certificates are public: somebody posts a part of what is certified, without data, before the sequencer does.
#[tokio::test]
async fn prefix_without_data() {
    let world = World::with(|config, _| config.posting.max_headers = 2);
    // Nothing is posted as long as L1 does not answer.
    world.inbox.away.store(true, Ordering::SeqCst);
    let running = world.start_funded(&[1]).await;
    seal_through(&running, 6).await;
    running.certify_through(6).await;
    *world.inbox.final_number.lock() = 0;
    world.inbox.runs.lock().push((1, 3));
    world.inbox.set_head(3, running.batch(3).await.hash);
    world.inbox.away.store(false, Ordering::SeqCst);
    posted(&running, 6).await;
    assert!(!world.inbox.data.lock().contains(&(1, 3)), "not before the posting is final");
    *world.inbox.final_number.lock() = 6;
    rounds(&running).await;
    running.eventually("it is supplied", async || world.inbox.data.lock().contains(&(1, 3))).await;
    rounds(&running).await;
    let supplied = world.inbox.data.lock().iter().filter(|run| **run == (1, 3)).count();
    assert_eq!(supplied, 1, "once");
    running.handle.shutdown().await;
    // The same for headers posted while it was away.
    let running = world.start().await;
    seal_through(&running, 8).await;
    world.inbox.away.store(true, Ordering::SeqCst);
    running.certify_through(8).await;
    world.inbox.runs.lock().push((7, 8));
    world.inbox.set_head(8, running.batch(8).await.hash);
    *world.inbox.final_number.lock() = 8;
    world.inbox.away.store(false, Ordering::SeqCst);
    running.eventually("it is supplied", async || world.inbox.data.lock().contains(&(7, 8))).await;
    running.handle.shutdown().await;
}

/// Whether data of posted headers is lacking is no concern of the headers that come next.
#[tokio::test]
async fn failing_to_look_for_data_stops_no_posting() {
    let world = World::with(|_, _| {});
    let running = world.start_funded(&[1]).await;
    seal_through(&running, 2).await;
    // Somebody has posted the first one; what came with it cannot be read.
    world.inbox.unreadable.store(true, std::sync::atomic::Ordering::SeqCst);
    world.inbox.runs.lock().push((1, 1));
    world.inbox.set_head(1, running.batch(1).await.hash);
    running.certify_through(2).await;
    posted(&running, 2).await;
    // Once it can be, the data is supplied.
    world.inbox.unreadable.store(false, std::sync::atomic::Ordering::SeqCst);
    running.eventually("it is supplied", async || world.inbox.data.lock().contains(&(1, 1))).await;
    running.handle.shutdown().await;
}

/// L1 made a header while a run was on its way: its transaction succeeds and posts nothing.
#[tokio::test]
async fn a_run_that_l1_passed_over_is_not_taken_for_posted() {
    let world = World::with(|_, _| {});
    let running = world.start_funded(&[1]).await;
    let genesis = world.inbox.head();
    *world.inbox.passes_over.lock() =
        Some(PostedHead { number: 1, hash: B256::repeat_byte(9), ..PostedHead::default() });
    running.certify(1).await;
    posted_nothing(&running).await;
    // L1 took its header back, so that the run goes out after all.
    world.inbox.set_head(genesis.number, genesis.hash);
    posted(&running, 1).await;
    running
        .eventually("it is told", async || running.client.get_status().await.unwrap().posted == Some(1))
        .await;
    running.handle.shutdown().await;
}

async fn posted_nothing(running: &Running<'_>) {
    running.eventually("it arrives", async || running.world.inbox.passes_over.lock().is_none()).await;
    rounds(running).await;
    assert_ne!(running.client.get_status().await.unwrap().posted, Some(1));
}

/// The disk was full when L1 had taken it.
#[tokio::test]
async fn a_run_that_could_not_be_noted_as_posted_is_noted_later() {
    let world = World::with(|_, _| {});
    world.l1.deposit(payer(1).address(), RICH);
    let store = FaultyStore::new(world.store().await);
    let running = world.try_start(store.clone()).await.unwrap();
    running.sealed(1).await;
    store.fail("put_posted", StoreError::Failed("disk full".to_owned()));
    running.certify(1).await;
    running.eventually("the fault", async || store.failures() > 0).await;
    store.heal();
    running.eventually("it is noted", async || store.posted().await.unwrap().is_some()).await;
    assert_eq!(store.posted().await.unwrap().map(|posted| posted.up_to_number), Some(1));
    assert_eq!(*world.inbox.runs.lock(), [(1, 1)], "once");
    running.handle.shutdown().await;
}

/// PD-5: L1 may take the data back while the headers stay, because somebody else posted them: only what final blocks show
/// is there.
#[tokio::test]
async fn data_that_l1_takes_back_is_posted_again() {
    let world = World::with(|_, _| {});
    *world.inbox.final_number.lock() = 0;
    let running = world.start_funded(&[1]).await;
    running.certify(1).await;
    posted(&running, 1).await;
    running.eventually("its data", async || *world.inbox.data.lock() == [(1, 1)]).await;
    rounds(&running).await;
    world.inbox.data.lock().clear();
    *world.inbox.final_number.lock() = 1;
    running.eventually("the data again", async || *world.inbox.data.lock() == [(1, 1)]).await;
    rounds(&running).await;
    assert_eq!(*world.inbox.data.lock(), [(1, 1)], "once");
    assert_eq!(*world.inbox.runs.lock(), [(1, 1)]);
    running.handle.shutdown().await;
}

/// PD-6: an answer from before the block of a transaction says nothing of what came of it.
#[tokio::test]
async fn a_server_that_lags_behind_makes_nobody_post_twice() {
    let world = World::with(|_, _| {});
    *world.inbox.lagging.lock() = Some((4, world.inbox.head()));
    let running = world.start_funded(&[1]).await;
    running.certify(1).await;
    posted(&running, 1).await;
    running
        .eventually("it is told", async || running.client.get_status().await.unwrap().posted == Some(1))
        .await;
    rounds(&running).await;
    assert_eq!(*world.inbox.data.lock(), [(1, 1)], "once");
    running.handle.shutdown().await;
}

/// PD-5: what was supplied and is not final is not supplied again, not even after a restart, and it is when L1 took it back.
#[tokio::test]
async fn supplied_data_counts_when_its_block_is_final() {
    let world = World::with(|_, _| {});
    world.inbox.away.store(true, Ordering::SeqCst);
    let running = world.start_funded(&[1]).await;
    running.certify(1).await;
    // Somebody posted the header, long ago.
    *world.inbox.finality.lock() = world.inbox.newest.load(Ordering::SeqCst);
    // What comes now stands well above the final blocks.
    world.inbox.newest.fetch_add(10, Ordering::SeqCst);
    world.inbox.runs.lock().push((1, 1));
    world.inbox.set_head(1, running.batch(1).await.hash);
    *world.inbox.finality.lock() += 1;
    running.eventually("it is supplied", async || *world.inbox.data.lock() == [(1, 1)]).await;
    rounds(&running).await;
    running.handle.abort().await;
    let running = world.start().await;
    rounds(&running).await;
    rounds(&running).await;
    assert_eq!(*world.inbox.data.lock(), [(1, 1)], "once");
    // L1 takes it back, and goes on.
    world.inbox.data.lock().clear();
    *world.inbox.finality.lock() = u64::MAX;
    running.eventually("it is supplied again", async || *world.inbox.data.lock() == [(1, 1)]).await;
    rounds(&running).await;
    assert_eq!(*world.inbox.data.lock(), [(1, 1)], "once");
    running.handle.shutdown().await;
}

/// A run arrived with its data, and the sequencer was killed before it knew.
#[tokio::test]
async fn data_that_is_there_is_not_posted_again_after_a_kill() {
    let world =
        World::with(|config, _| (config.posting.retry_ms, config.posting.max_retry_ms) = (60_000, 60_000));
    world.inbox.lose_answer.store(true, Ordering::SeqCst);
    *world.inbox.final_number.lock() = 0;
    let running = world.start_funded(&[1]).await;
    running.certify(1).await;
    posted(&running, 1).await;
    running.eventually("the data", async || *world.inbox.data.lock() == [(1, 1)]).await;
    running.handle.abort().await;
    let running = world.start().await;
    rounds(&running).await;
    rounds(&running).await;
    assert_eq!(*world.inbox.data.lock(), [(1, 1)], "once");
    running.handle.shutdown().await;
}
