//! Who brings hints, and what a flood of them costs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use blindfold_kit::{FaultyStore, RICH, Watched, envelope, payer, refused, within};
use blindfold_protocol::{BatchHints, Hello, HintEntry, Party, Release, SigningKey};
use blindfold_rpc::{
    BlindApiClient, ClientConfig, Encoded, HttpClient, Introduction, RunningRole, SequencerApiClient,
    http_client,
};
use blindfold_runtime::spawn;
use common::{Running, World, ask, hang_up};

/// More than wait in the strangers' queue.
const FLOOD: usize = 60;

fn hint_publisher_key() -> SigningKey {
    SigningKey::from_bytes(&[77; 32]).unwrap()
}

fn world(watched: &Arc<Watched>) -> World {
    let mut world = World::with(|config, _| {
        config.sealing.max_uncertified_headers = 1;
        config.hint_publishers = vec![hint_publisher_key().address()];
    });
    world.backend = Arc::<Watched>::clone(watched);
    world
}

/// Batch 2 with one envelope, certified, and its right hints.
async fn certified(running: &Running<'_>) -> (Release, BatchHints) {
    running.send(&envelope(1, 1)).await.unwrap();
    running.certify(1).await;
    running.sealed(2).await;
    running.certify(2).await;
    running.open(2).await
}

/// A client that shows who it is.
fn publisher(world: &World, running: &Running<'_>) -> HttpClient {
    let (deployment, clock) = (world.chain.deployment, Arc::clone(&world.clock));
    let introduction = Introduction::new(move || {
        let now_ms = blindfold_sequencer::Clock::now_ms(clock.as_ref());
        Hello::of_hint_publisher(&hint_publisher_key(), &deployment, Party::Sequencer, now_ms, [1; 16].into())
    });
    let config = ClientConfig { introduction: Some(introduction), ..ClientConfig::default() };
    http_client(&format!("http://{}", running.handle.rpc_addr()), &config).unwrap()
}

async fn until(what: &'static str, condition: impl Fn() -> bool) {
    within(what, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// Strangers have a queue of their own, and one of them at a time is before a hint publisher.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_strangers_hints_keeps_no_hint_publisher_out() {
    let watched = Arc::new(Watched::default());
    let world = world(&watched);
    world.l1.deposit(payer(1).address(), RICH);
    let store = FaultyStore::new(world.store().await);
    let running = world.try_start(store.clone()).await.unwrap();
    running.sealed(1).await;
    let (release, hints) = certified(&running).await;
    let HintEntry::Key(right) = hints.entries[0] else { panic!("it opens") };

    let closed = watched.close();
    let mut strangers = tokio::task::JoinSet::new();
    for n in 0..FLOOD {
        let mut wrong = hints.clone();
        wrong.entries[0] = HintEntry::Key([n as u8; 16]);
        let (client, release) = (running.client.clone(), release.clone());
        strangers.spawn(async move {
            let answer = client.submit_hints(Encoded::new(&release), Encoded::new(&wrong)).await;
            answer.map_err(refused).unwrap_err().reason.into_owned()
        });
    }
    until("a stranger at work", || watched.hints.load(SeqCst) == 1).await;
    // Those for whom there is no place are refused at once, while nothing moves.
    let mut reasons = Vec::new();
    while reasons.len() < FLOOD - 33 {
        reasons.push(within("a refusal", strangers.join_next()).await.unwrap().unwrap());
    }
    assert!(reasons.iter().all(|reason| reason == "overloaded"), "{reasons:?}");
    assert_eq!(watched.hints.load(SeqCst), 1, "one at a time");

    let client = publisher(&world, &running);
    let looked_up = store.calls("header_hash");
    let of_hint_publisher = spawn({
        let (release, hints) = (release.clone(), hints.clone());
        async move { client.submit_hints(Encoded::new(&release), Encoded::new(&hints)).await }
    });
    // It has its place, behind the one at work, when the door opens: it takes one as soon as it has looked its batch up.
    until("the hint publisher", || store.calls("header_hash") > looked_up).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!of_hint_publisher.is_finished());
    drop(closed);
    within("the hint publisher", of_hint_publisher).await.unwrap().unwrap();
    let looks = watched.opened_with.lock().unwrap().clone();
    assert_eq!(looks[1], [right], "the hint publisher's hints were next");
    while let Some(reason) = within("the others", strangers.join_next()).await {
        assert!(["wrong_key", "second_hints"].contains(&reason.unwrap().as_str()));
    }
    running.handle.shutdown().await;
}

/// Right or wrong, from whomever: once the hints of a batch are here, nothing is looked at again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_repeated_hints_verifies_nothing() {
    let watched = Arc::new(Watched::default());
    let world = world(&watched);
    let running = world.start_funded(&[1]).await;
    let (release, hints) = certified(&running).await;
    running.submit(&release, &hints).await.unwrap();
    let looks = watched.hints.load(SeqCst);
    let (publisher, mut wrong) = (publisher(&world, &running), hints.clone());
    wrong.entries[0] = HintEntry::Key([7; 16]);
    for _ in 0..FLOOD {
        running.submit(&release, &hints).await.unwrap();
        assert_eq!(running.submit(&release, &wrong).await.unwrap_err().reason, "second_hints");
        publisher.submit_hints(Encoded::new(&release), Encoded::new(&hints)).await.unwrap();
    }
    assert_eq!(watched.hints.load(SeqCst), looks);
    running.handle.shutdown().await;
}

/// Their places and turns were free again when they hung up, while their hints were still verified.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_of_strangers_that_hang_up_are_verified_one_at_a_time_and_stop_nobody() {
    let watched = Arc::new(Watched::default());
    let world = world(&watched);
    let running = world.start_funded(&[1]).await;
    let (release, hints) = certified(&running).await;
    let closed = watched.close();
    let mut wrong = hints.clone();
    wrong.entries[0] = HintEntry::Key([7; 16]);
    let params = serde_json::json!([Encoded::new(&release), Encoded::new(&wrong)]);
    let asked = ask(running.handle.rpc_addr(), "blind_submitHints", &params).await;
    until("a stranger at work", || watched.hints.load(SeqCst) == 1).await;
    hang_up(asked).await;
    // They keep their places in the queue: when all are taken, one is refused, although he does not hear of it.
    let nobody = "hints_refused_total{reason=\"overloaded\",role=\"sequencer\"} 0";
    within("a refusal", async {
        while running.admin("/metrics").await.contains(nobody) {
            let asked = ask(running.handle.rpc_addr(), "blind_submitHints", &params).await;
            // It has begun when a call after it is answered.
            running.client.get_status().await.unwrap();
            hang_up(asked).await;
        }
    })
    .await;
    // Their address is served meanwhile.
    assert!(within("a read", running.client.get_batch(1)).await.unwrap().is_some());
    within("an envelope", running.send(&envelope(1, 2))).await.unwrap();
    assert_eq!(watched.most_running.load(SeqCst), 1, "one at a time");
    drop(closed);
    running.handle.shutdown().await;
}
