//! A sequencer whose disk is empty or older than its last signature: it must not sign a second header.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_chain::FallbackHeader;
use blindfold_kit::{
    FaultyStore, MEMBERS, RICH, START_MS, envelope, envelope_with, epoch, payer, sequencer_key, within,
};
use blindfold_protocol::SealedBatch;
use blindfold_rpc::{BlindApiClient, RunningRole, types::EnvelopeState};
use blindfold_sequencer::{HeldBatch, StartError};
use blindfold_store::StoreError;
use common::{Running, World, blocked_by, made_by_l1};

/// Loses the sequencer's disk.
async fn lose_disk(world: &World) {
    world.close_disk().await;
    for entry in std::fs::read_dir(world.folder.path()).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
}

/// Keeps a copy of the disk, to be put back by [`restore_disk`].
async fn copy_disk(world: &World) -> tempfile::TempDir {
    world.close_disk().await;
    let kept = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(world.folder.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), kept.path().join(entry.file_name())).unwrap();
    }
    kept
}

async fn restore_disk(world: &World, kept: &tempfile::TempDir) {
    lose_disk(world).await;
    for entry in std::fs::read_dir(kept.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), world.folder.path().join(entry.file_name())).unwrap();
    }
}

/// Rules.
#[tokio::test]
async fn an_empty_disk_adopts_what_the_members_hold() {
    let world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    let (first, second) = (envelope(1, 1), envelope(2, 1));
    running.send(&first).await.unwrap();
    running.sealed(2).await;
    running.certify_through(2).await;
    running.send(&second).await.unwrap();
    running.sealed(3).await;
    // The third is not certified; one member alone has it.
    running.held_by(&[1, 2, 3], 2).await;
    running.held_by(&[4], 3).await;
    let (number, hash) = (running.handle.tracker().head().number, running.batch(3).await.hash);
    assert_eq!(number, 3);
    running.handle.shutdown().await;
    lose_disk(&world).await;

    let running = world.start().await;
    assert_eq!(running.handle.tracker().head().number, 3);
    assert_eq!(running.batch(3).await.hash, hash);
    assert_eq!(running.handle.tracker().certified().number, 2);
    for envelope in [&first, &second] {
        assert_ne!(running.state(envelope.id()).await, EnvelopeState::Pending);
    }
    // It goes on from there, and the adopted header gets its certificate.
    running.certify(3).await;
    running.certified(3).await;
    running.send(&envelope(1, 2)).await.unwrap();
    running.sealed(4).await;
    running.handle.shutdown().await;
}

/// The disk fails when headers were adopted, before acknowledgements of them are collected: the next attempt, which finds
/// them on disk, collects them all the same.
#[tokio::test]
async fn what_was_adopted_is_certified_although_the_disk_failed_in_between() {
    let world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    running.certify_through(1).await;
    for (n, number) in [(1, 2), (2, 3)] {
        running.send(&envelope(n, 1)).await.unwrap();
        running.sealed(number).await;
    }
    running.held_by(&[1, 2, 3, 4], 3).await;
    running.handle.shutdown().await;
    lose_disk(&world).await;
    world.committee.silent.lock().extend(1..=MEMBERS);

    let store = FaultyStore::new(world.store().await);
    let running = world.try_start(store.clone()).await.unwrap();
    blocked_by(&running, "0 of 3 members").await;
    // So often headers are read while they are adopted, and then to collect acknowledgements of them.
    store.fail_after(8, "batch", StoreError::Failed("disk full".to_owned()));
    world.committee.silent.lock().clear();
    blocked_by(&running, "disk full").await;
    assert_eq!(running.handle.tracker().head().number, 3);
    store.heal();
    running.certify_through(3).await;
    running.certified(3).await;
    running.handle.shutdown().await;
}

/// A genuine header with other items ended the attempt each time, so that one member held the sequencer up for good.
/// Rule Q-5.
#[tokio::test]
async fn a_member_that_alters_items_holds_nobody_up() {
    let world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    running.certify_through(2).await;
    running.held_by(&[1, 2, 3, 4], 2).await;
    let hash = running.batch(2).await.hash;
    running.handle.shutdown().await;
    lose_disk(&world).await;
    for batch in world.committee.held.lock().get_mut(&1).unwrap().values_mut() {
        batch.sealed.items.push(b"altered".to_vec());
    }

    let running = world.start().await;
    assert_eq!(running.batch(2).await.hash, hash);
    running.send(&envelope(2, 1)).await.unwrap();
    running.sealed(3).await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn an_older_disk_signs_no_second_header() {
    let world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    running.handle.shutdown().await;
    let kept = copy_disk(&world).await;
    let running = world.start().await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    let hash = running.batch(2).await.hash;
    running.held_by(&[2], 2).await;
    running.handle.shutdown().await;
    restore_disk(&world, &kept).await;

    // What waits would make another header 2.
    let running = world.start().await;
    assert_eq!(running.batch(2).await.hash, hash);
    running.send(&envelope(2, 1)).await.unwrap();
    running.sealed(3).await;
    running.handle.shutdown().await;
}

/// Rule Q-3.
#[tokio::test]
async fn with_a_second_header_among_the_members_it_stops_and_says_what_to_do() {
    let world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    running.held_by(&[1, 2, 3], 2).await;
    running.handle.shutdown().await;
    // Another header 2, signed by another process with the same key.
    {
        let mut held = world.committee.held.lock();
        let batch = held.get_mut(&3).unwrap().get_mut(&2).unwrap();
        batch.sealed.header.timestamp_ms += 1;
        let signed = batch.sealed.header.sign(&sequencer_key(), &world.chain.deployment);
        batch.sealed.signature = signed.signature;
    }
    let store = world.store().await;
    match world.try_start(store).await.map(drop) {
        Err(StartError::Recovery(why)) => {
            assert!(why.contains("member 3") && why.contains("empty one"), "{why}")
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn nothing_is_sealed_while_too_few_members_answer_or_l1_is_ahead() {
    let world = World::new();
    world.committee.silent.lock().extend([1, 2]);
    // A claim without a header is no answer.
    world.committee.boasts.lock().insert(3, 1_000_000);
    world.l1.deposit(payer(1).address(), RICH);
    let running = world.start().await;
    blocked_by(&running, "1 of 3 members").await;
    assert_eq!(running.reason(&envelope(1, 1)).await, "recovering");
    world.committee.boasts.lock().clear();
    blocked_by(&running, "2 of 3 members").await;
    assert_eq!(running.handle.tracker().head().number, 0);
    // L1 knows a header that no member gives.
    world.inbox.set_head(1, blindfold_protocol::B256::repeat_byte(7));
    world.committee.silent.lock().remove(&1);
    blocked_by(&running, "L1 holds header 1").await;
    assert_eq!(running.handle.tracker().head().number, 0);
    world.inbox.set_head(0, world.chain.deployment.genesis_hash());
    running.sealed(1).await;
    assert_eq!(within("a status", running.client.get_status()).await.unwrap().head.number, 1);
    running.handle.shutdown().await;
}

/// A member that has not followed L1 yet, or never does, shows the header that L1 replaced: it proves no second one.
#[tokio::test]
async fn what_a_member_holds_in_place_of_l1s_header_stops_no_restart() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    let parent = running.handle.tracker().with_state(Clone::clone);
    running.certify(1).await;
    let envelope = envelope(1, 1);
    running.send(&envelope).await.unwrap();
    running.sealed(2).await;
    running.held_by(&[1, 2, 3], 1).await;
    running.held_by(&[4], 2).await;
    let lost = running.batch(2).await.hash;
    running.handle.shutdown().await;
    world.close_disk().await;
    let header = parent.l1_header::<Vec<u8>>(START_MS + 10_000, &[], &epoch()).unwrap();
    world.l1.l1_headers.lock().push(FallbackHeader {
        header,
        items: vec![],
        l1_block: *world.l1.finalized.lock(),
    });

    let running = world.start().await;
    assert_ne!(running.batch(2).await.hash, lost);
    // L1 made a header in its place.
    running
        .eventually("it is over", async || running.state(envelope.id()).await == EnvelopeState::Expired)
        .await;
    running.send(&envelope_with(1, 2, |f| f.generation = 1)).await.unwrap();
    running.sealed(3).await;
    running.certify(3).await;
    running.certified(3).await;
    running.handle.shutdown().await;
}

/// Seals one envelope of the payer in this header.
async fn seal_one(running: &Running<'_>, nonce: u64, generation: u16, number: u64) -> SealedBatch {
    let envelope = envelope_with(2, nonce, |fields| fields.generation = generation);
    running.send(&envelope).await.unwrap();
    running.sealed(number).await;
    running.batch(number).await.sealed.decode().unwrap()
}

/// L1 made the headers 2 and 5. We signed 2 to 4 before the first of them, and 3 and 4 anew above it; all members hold those,
/// with certificates, and the disk is lost. Gives what is displaced, from 2 on.
async fn overruled_twice(world: &World) -> Vec<SealedBatch> {
    let running = world.start_funded(&[1, 2]).await;
    let parent = running.handle.tracker().with_state(Clone::clone);
    running.certify(1).await;
    running.certified(1).await;
    let mut displaced = Vec::new();
    for number in 2..=4 {
        displaced.push(seal_one(&running, number, 0, number).await);
    }
    running.handle.shutdown().await;
    world.close_disk().await;
    made_by_l1(world, &parent).await;

    let running = world.start().await;
    assert_eq!(running.handle.tracker().head().number, 2);
    for number in 3..=4 {
        seal_one(&running, 10 + number, 1, number).await;
        running.certify(number).await;
        running.certified(number).await;
    }
    running.held_by(&[1, 2, 3, 4], 4).await;
    let parent = running.handle.tracker().with_state(Clone::clone);
    running.handle.shutdown().await;
    world.close_disk().await;
    made_by_l1(world, &parent).await;
    lose_disk(world).await;
    displaced
}

/// What L1 excuses is no second header, however many headers it made since. One member kept what is displaced, and
/// shows it above what counts.
#[tokio::test]
async fn a_displaced_header_between_two_that_l1_made_is_no_second_one() {
    let world = World::new();
    let displaced = overruled_twice(&world).await;
    {
        let mut held = world.committee.held.lock();
        let held = held.get_mut(&1).unwrap();
        held.get_mut(&3).unwrap().certificate = None;
        held.insert(4, HeldBatch { sealed: displaced[2].clone(), certificate: None });
    }
    let store = world.store().await;
    let running = world.try_start(store).await.unwrap_or_else(|error| panic!("{error}"));
    running.sealed(5).await;
    seal_one(&running, 20, 2, 6).await;
    running.handle.shutdown().await;
}

/// The same with nobody at fault: one member lags behind, and another one was away when L1 made the first header.
#[tokio::test]
async fn members_that_were_away_while_l1_made_two_headers_stop_no_start() {
    let world = World::new();
    let displaced = overruled_twice(&world).await;
    {
        let mut held = world.committee.held.lock();
        let lags = held.get_mut(&1).unwrap();
        lags.remove(&4);
        lags.get_mut(&3).unwrap().certificate = None;
        let away = held.get_mut(&2).unwrap();
        away.remove(&4);
        for (number, sealed) in (2..=3).zip(&displaced) {
            away.insert(number, HeldBatch { sealed: sealed.clone(), certificate: None });
        }
    }
    let store = world.store().await;
    let running = world.try_start(store).await.unwrap_or_else(|error| panic!("{error}"));
    running.sealed(5).await;
    seal_one(&running, 20, 2, 6).await;
    running.handle.shutdown().await;
}

/// An older disk has the branch that L1 ended, and this L1 does not know of that yet: it is waited for.
#[tokio::test]
async fn an_older_disk_waits_for_an_l1_that_lags_behind_the_members() {
    let world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    let parent = running.handle.tracker().with_state(Clone::clone);
    running.certify(1).await;
    running.certified(1).await;
    for number in 2..=3 {
        seal_one(&running, number, 0, number).await;
    }
    running.handle.shutdown().await;
    let kept = copy_disk(&world).await;
    let before = *world.l1.finalized.lock();
    made_by_l1(&world, &parent).await;
    let running = world.start().await;
    let third = seal_one(&running, 13, 1, 3).await.header.hash();
    running.held_by(&[1, 2, 3, 4], 3).await;
    running.handle.shutdown().await;
    restore_disk(&world, &kept).await;

    *world.l1.finalized.lock() = before;
    let made = std::mem::take(&mut *world.l1.l1_headers.lock());
    let store = world.store().await;
    let running = world.try_start(store).await.unwrap_or_else(|error| panic!("{error}"));
    blocked_by(&running, "of 3 members needed").await;
    world.l1.advance(1);
    world.l1.l1_headers.lock().extend(made);
    let held = async || running.client.get_batch(3).await.unwrap().is_some_and(|batch| batch.hash == third);
    running.eventually("the third", held).await;
    seal_one(&running, 20, 1, 4).await;
    running.handle.shutdown().await;
}

/// A member that was away shows what we signed before L1 made its header. This disk knows that it gave way, and needs no L1
/// for it, which lags.
#[tokio::test]
async fn what_this_disk_knows_to_be_displaced_stops_no_start_while_l1_lags() {
    let world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    let parent = running.handle.tracker().with_state(Clone::clone);
    running.certify(1).await;
    running.certified(1).await;
    for number in 2..=3 {
        seal_one(&running, number, 0, number).await;
    }
    running.held_by(&[4], 3).await;
    running.handle.shutdown().await;
    world.close_disk().await;
    let before = *world.l1.finalized.lock();
    made_by_l1(&world, &parent).await;
    let running = world.start().await;
    let third = seal_one(&running, 13, 1, 3).await.header.hash();
    running.held_by(&[1, 2, 3], 3).await;
    running.handle.shutdown().await;
    world.close_disk().await;

    *world.l1.finalized.lock() = before;
    let made = std::mem::take(&mut *world.l1.l1_headers.lock());
    let store = world.store().await;
    let running = world.try_start(store).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(running.batch(3).await.hash, third);
    world.l1.advance(1);
    world.l1.l1_headers.lock().extend(made);
    seal_one(&running, 20, 1, 4).await;
    running.handle.shutdown().await;
}
