//! Data on L1 as what it was opened to: once its hints stand there, or as it is when that takes too long.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_kit::{envelope, within};
use blindfold_l1::{HintPosting, HintRoots, HintsReference, L1Error};
use blindfold_protocol::B256;
use blindfold_rpc::RunningRole;
use common::{Running, World};

/// The longest that can be set. The inbox makes a block with each question, so a test sees some dozens.
const LONG: u64 = 1_800;

async fn rounds(running: &Running<'_>) {
    let mut attempts = running.world.inbox.attempts.subscribe();
    let now = *attempts.borrow_and_update();
    within("rounds of posting", attempts.wait_for(|count| *count >= now + 6)).await.unwrap();
}

/// Headers 1 to `through`, posted; each after the first has an envelope.
async fn posted_through(running: &Running<'_>, through: u64) {
    for number in running.handle.tracker().head().number + 1..=through {
        running.send(&envelope(1, number)).await.unwrap();
        running.sealed(number).await;
    }
    running.certify(through).await;
    let mut posted = running.world.inbox.posted.subscribe();
    within("a posting", posted.wait_for(|posted| *posted >= through)).await.unwrap();
}

/// The root of the right hints of a run.
async fn right_root(running: &Running<'_>, (first, last): (u64, u64)) -> B256 {
    let mut hints = Vec::new();
    for number in first..=last {
        hints.push(running.open(number).await.1);
    }
    HintRoots::in_calldata(first, &HintPosting::of(&hints)).calldata.unwrap()
}

fn waiting(blocks: u64) -> World {
    World::with(|config, _| config.posting.opened_wait_blocks = blocks)
}

#[tokio::test]
async fn data_waits_for_right_hints_on_l1() {
    let world = waiting(LONG);
    let running = world.start_funded(&[1]).await;
    posted_through(&running, 1).await;
    // Nothing in it will be opened: its data goes out with it.
    running.eventually("its data", async || *world.inbox.data.lock() == [(1, 1)]).await;
    posted_through(&running, 3).await;
    rounds(&running).await;
    assert_eq!(*world.inbox.data.lock(), [(1, 1)]);
    // Wrong hints, and right ones before ours are all here.
    world.inbox.post_hints((2, 3), B256::repeat_byte(1));
    running.hint(2).await;
    let id = world.inbox.post_hints((2, 3), right_root(&running, (2, 3)).await);
    rounds(&running).await;
    assert_eq!(*world.inbox.data.lock(), [(1, 1)]);
    running.hint(3).await;
    running.eventually("the data", async || world.inbox.data.lock().len() == 2).await;
    let opened = world.inbox.opened.lock().clone();
    let l1_block = world.inbox.hint_postings.lock()[1].l1_block;
    assert_eq!(opened, [((2, 3), HintsReference { id, l1_block }, 2)]);
    rounds(&running).await;
    assert_eq!(*world.inbox.data.lock(), [(1, 1), (2, 3)], "once");
    assert!(
        running.admin("/metrics").await.contains("blindfold_opened_postings_total{role=\"sequencer\"} 1")
    );
    running.handle.shutdown().await;
}

/// Hints are posted for L1's runs, which need not be those that lack data.
#[tokio::test]
async fn a_part_of_a_run_is_opened_by_the_hints_of_all_of_it() {
    let world = waiting(LONG);
    let running = world.start_funded(&[1]).await;
    posted_through(&running, 4).await;
    for number in 2..=4 {
        running.hint(number).await;
    }
    let lacking = world.inbox.runs.lock().iter().copied().filter(|run| run.0 > 1).collect::<Vec<_>>();
    // As if somebody had posted all in one.
    world.inbox.post_hints((2, 4), right_root(&running, (2, 4)).await);
    running
        .eventually("the data", async || {
            let opened = world.inbox.opened.lock();
            let numbers: u64 = opened.iter().map(|((first, last), ..)| last + 1 - first).sum();
            numbers == lacking.iter().map(|(first, last)| last + 1 - first).sum::<u64>()
        })
        .await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_silent_hint_publisher_makes_data_dearer_and_not_absent() {
    let world = waiting(40);
    let running = world.start_funded(&[1]).await;
    posted_through(&running, 1).await;
    posted_through(&running, 2).await;
    running.hint(2).await;
    running.eventually("the data as it is", async || world.inbox.data.lock().contains(&(2, 2))).await;
    assert_eq!(world.inbox.opened.lock().len(), 0);
    // Hints that come later open nothing any more.
    world.inbox.post_hints((2, 2), right_root(&running, (2, 2)).await);
    rounds(&running).await;
    assert_eq!(world.inbox.opened.lock().len(), 0);
    running.handle.shutdown().await;
}

/// What L1 refuses for good is posted as it is; what may pass is tried again. A start knows nothing and finds it all out.
#[tokio::test]
async fn failures_and_a_kill_lose_no_data() {
    let world = waiting(60);
    let running = world.start_funded(&[1]).await;
    posted_through(&running, 1).await;
    posted_through(&running, 2).await;
    running.hint(2).await;
    world.inbox.opened_faults.lock().extend(vec![L1Error::refused("scripted"); 3]);
    world.inbox.post_hints((2, 2), right_root(&running, (2, 2)).await);
    running.eventually("the data as it is", async || world.inbox.data.lock().contains(&(2, 2))).await;
    assert_eq!(world.inbox.opened.lock().len(), 0);
    running.handle.shutdown().await;

    let world = waiting(LONG);
    let running = world.start_funded(&[1]).await;
    posted_through(&running, 1).await;
    posted_through(&running, 2).await;
    running.hint(2).await;
    world.inbox.opened_faults.lock().push(L1Error::no_answer("scripted"));
    let root = right_root(&running, (2, 2)).await;
    running.handle.abort().await;
    let running = world.start().await;
    world.inbox.post_hints((2, 2), root);
    running.eventually("the data, opened", async || world.inbox.opened.lock().len() == 1).await;
    rounds(&running).await;
    assert_eq!(world.inbox.data.lock().iter().filter(|run| **run == (2, 2)).count(), 1, "once");
    running.handle.shutdown().await;
}

/// One that waits loses nothing by another that fails: its hints are still known when L1 answers again.
#[tokio::test]
async fn a_failure_makes_nobody_forget_the_hints() {
    let world = waiting(LONG);
    // Two steps: the second header is final before the third is posted.
    *world.inbox.final_number.lock() = 2;
    let running = world.start_funded(&[1]).await;
    posted_through(&running, 1).await;
    posted_through(&running, 2).await;
    rounds(&running).await;
    posted_through(&running, 3).await;
    *world.inbox.final_number.lock() = 3;
    rounds(&running).await;
    running.hint(2).await;
    running.hint(3).await;
    world.inbox.opened_faults.lock().push(L1Error::no_answer("scripted"));
    world.inbox.post_hints((2, 2), right_root(&running, (2, 2)).await);
    running.eventually("the first", async || world.inbox.opened.lock().len() == 1).await;
    world.inbox.post_hints((3, 3), right_root(&running, (3, 3)).await);
    running.eventually("the second", async || world.inbox.opened.lock().len() == 2).await;
    running.handle.shutdown().await;
}

/// Readers may find that opened data does not give the batches back: then it is posted as it is, once.
#[tokio::test]
async fn data_that_l1_does_not_count_is_posted_as_it_is() {
    let world = waiting(30);
    world.inbox.opened_counts_for_nothing.store(true, std::sync::atomic::Ordering::SeqCst);
    let running = world.start_funded(&[1]).await;
    posted_through(&running, 1).await;
    posted_through(&running, 2).await;
    running.hint(2).await;
    world.inbox.post_hints((2, 2), right_root(&running, (2, 2)).await);
    running.eventually("the data as it is", async || world.inbox.data.lock().contains(&(2, 2))).await;
    assert_eq!(world.inbox.opened.lock().len(), 1);
    running.handle.shutdown().await;
}

/// Headers and data take turns at one account, a transaction for each L1 block: at 64 headers in every second block of
/// twelve seconds a busy chain would outrun its postings. Headers alone are short.
#[tokio::test]
async fn headers_without_data_go_out_as_many_as_a_transaction_holds() {
    let world = World::with(|config, _| {
        config.posting.opened_wait_blocks = LONG;
        config.posting.max_headers = 2;
    });
    let running = world.start_funded(&[1]).await;
    posted_through(&running, 1).await;
    world.inbox.away.store(true, std::sync::atomic::Ordering::SeqCst);
    for number in 2..=6 {
        running.send(&envelope(1, number)).await.unwrap();
        running.sealed(number).await;
        running.certify(number).await;
    }
    world.inbox.away.store(false, std::sync::atomic::Ordering::SeqCst);
    let mut posted = world.inbox.posted.subscribe();
    within("a posting", posted.wait_for(|posted| *posted >= 6)).await.unwrap();
    let runs = world.inbox.runs.lock().clone();
    // One that was chosen while the last header was not certified yet may come first.
    assert!(runs == [(1, 1), (2, 6)] || runs == [(1, 1), (2, 5), (6, 6)], "{runs:?}");
    running.handle.shutdown().await;
}
