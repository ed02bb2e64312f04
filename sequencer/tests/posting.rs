//! Posting to L1: in order, within limits, again after failures, from where L1 stands.

mod common;

use blindfold_protocol::B256;
use blindfold_rpc::BlindApiClient;
use blindfold_sequencer::{PostFault, PostedHead};
use common::{Running, World, within};

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
        running.send(&running.world.envelope(1, number)).await.unwrap();
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
    world
        .inbox
        .faults
        .lock()
        .extend([PostFault::Unavailable("scripted".to_owned()), PostFault::Refused("scripted".to_owned())]);
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
    for foreign in
        [PostedHead { number: 3, hash: B256::repeat_byte(1) }, PostedHead { number: 99, hash: second }]
    {
        world.inbox.set_head(foreign.number, foreign.hash);
        rounds(&running).await;
        assert_eq!(world.inbox.head(), foreign);
    }
    seal_through(&running, 5).await;
    running.handle.shutdown().await;
}
