//! A sequencer whose disk holds a certified header in place of which L1 made another: `--rebuild-from-l1`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_rpc::RunningRole;
use std::sync::{Arc, atomic::Ordering};

use blindfold_chain::{FallbackHeader, L1Reader};
use blindfold_kit::{FaultyStore, PostedRuns, START_MS, envelope, envelope_with, epoch, within};
use blindfold_protocol::{B256, Canonical, Envelope};
use blindfold_rpc::types::EnvelopeState;
use blindfold_sequencer::{Sequencer, StartError};
use blindfold_store::{Store, StoreError};
use common::{Running, World};

/// A world in which number 1 is on L1, and 2 and 3 are certified here alone; L1 made another header 2.
struct Voided {
    world: World,
    posted: Arc<PostedRuns>,
    /// The envelopes of 2 and 3.
    displaced: [Envelope; 2],
    /// Hashes of the headers 2 and 3 that are void, and of the one that L1 made.
    signed: [B256; 2],
    made: FallbackHeader,
}

/// Posts a certified header with its data in the next block.
async fn post(posted: &PostedRuns, running: &Running<'_>, number: u64) {
    let info = running.batch(number).await;
    let certificate = info.certificate.expect("it is certified").decode().expect("a certificate");
    let batch = info.sealed.decode().expect("a batch");
    posted.post(running.world.l1.advance(1), vec![batch], Some(certificate));
}

impl Voided {
    async fn new() -> Self {
        let world = World::with(|config, _| config.posting.enabled = false);
        // As `Settlement` does at a first start.
        let store = world.store().await;
        store.keep_ledgers_from(0).await.unwrap();
        drop(store);
        let posted = PostedRuns::new(&world.l1);
        let running = world.start_funded(&[1, 2]).await;
        running.certify(1).await;
        running.certified(1).await;
        post(&posted, &running, 1).await;
        let parent = running.handle.tracker().with_state(Clone::clone);
        let displaced = [envelope(1, 1), envelope(1, 2)];
        for (envelope, number) in displaced.iter().zip(2..) {
            world.clock.advance(1_000);
            running.send(envelope).await.unwrap();
            running.sealed(number).await;
        }
        running.certify_through(3).await;
        running.certified(3).await;
        running.hint(2).await;
        running.executed(1).await;
        // Members have seen it as well.
        running.held_by(&[1, 2, 3, 4], 3).await;
        let signed = [running.batch(2).await.hash, running.batch(3).await.hash];
        running.handle.shutdown().await;
        let header = parent.l1_header::<Vec<u8>>(START_MS + 60_000, &[], &epoch()).unwrap();
        let made = FallbackHeader { header, items: vec![], l1_block: world.l1.advance(1) };
        world.l1.l1_headers.lock().push(made.clone());
        world.l1.advance(1);
        world.clock.set(START_MS + 61_000);
        Self { world, posted, displaced, signed, made }
    }

    async fn rebuild_on(&self, store: Arc<dyn Store>) -> Result<Running<'_>, StartError> {
        let mut deps = self.world.deps(store);
        deps.rebuild = Some(Arc::clone(&self.posted) as Arc<dyn L1Reader>);
        let handle = Sequencer::start(self.world.config.clone(), deps).await?;
        Ok(self.world.running(handle))
    }

    async fn rebuild(&self) -> Result<Running<'_>, StartError> {
        self.rebuild_on(self.world.store().await).await
    }

    async fn is_stopped(&self) {
        let running = self.world.start().await;
        let fault = within("the fault", running.handle.failed()).await;
        assert!(format!("{fault:?}").contains("resynchronise"), "{fault:?}");
        running.handle.shutdown().await;
    }

    /// It seals and certifies above L1's header, executes, and has signed nothing a second time that L1 does not excuse.
    async fn goes_on(&self, running: &Running<'_>) {
        let tracker = running.handle.tracker();
        assert_eq!(running.batch(2).await.hash, self.made.header.hash());
        for envelope in &self.displaced {
            let receipt = running.receipt(envelope.id()).await;
            assert_eq!(receipt.state, EnvelopeState::Expired);
            assert_eq!((receipt.reason.as_deref(), receipt.number), (Some("wrong_generation"), None));
            assert_eq!(running.reason(envelope).await, "already_known");
        }
        let envelope = envelope_with(2, 9, |fields| fields.generation = 1);
        let sent = running.send_bytes(envelope.encode(), true).await.unwrap();
        let seal_by = sent.promise.unwrap().decode().unwrap().seal_by;
        running.sealed(3).await;
        running.certify_through(3).await;
        let receipt = running.receipt(envelope.id()).await;
        assert_eq!((receipt.number, receipt.reason), (Some(3), None));
        assert!(seal_by >= 3);
        let third = running.batch(3).await.sealed.decode().unwrap().header;
        assert_eq!(third.parent_hash, self.made.header.hash());
        // `BlindedInbox` excuses two headers of a number where L1 made one in between.
        let store = tracker.store();
        assert!(third.hash() != self.signed[1] && third.l1_origin_number >= self.made.l1_block);
        assert_eq!(store.acknowledged(2).await.unwrap(), Some(self.signed[0]), "for ever");
        assert_eq!(store.acknowledged(3).await.unwrap(), Some(third.hash()));
        // The block of the void batch 2 is gone, and its number is that of batch 3.
        running.hint(3).await;
        self.world.clock.advance(1_000);
        running.send(&envelope_with(2, 10, |fields| fields.generation = 1)).await.unwrap();
        running.sealed(4).await;
        running.certify_through(4).await;
        running.executed(1).await;
        let block = store.block(1).await.unwrap().unwrap();
        assert_eq!((block.first_batch, block.last_batch), (3, 3));
    }
}

#[tokio::test]
async fn a_sequencer_that_l1_voided_stops_and_seals_again_after_the_rebuild() {
    let voided = Voided::new().await;
    voided.is_stopped().await;
    let running = voided.rebuild().await.unwrap();
    voided.goes_on(&running).await;
    running.handle.shutdown().await;
    // Nor does an ordinary start stop any more.
    let running = voided.world.start().await;
    running.send(&envelope_with(2, 11, |fields| fields.generation = 1)).await.unwrap();
    running.sealed(5).await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_rebuild_that_is_killed_is_done_again() {
    let voided = Voided::new().await;
    // Before anything is taken back.
    let faulty = FaultyStore::new(voided.world.store().await);
    faulty.hold("rewind");
    tokio::select! {
        _ = voided.rebuild_on(faulty.clone()) => panic!("it was held"),
        () = faulty.somebody_waits() => {}
    }
    drop(faulty);
    voided.is_stopped().await;
    // After it, before L1's header is there.
    let faulty = FaultyStore::new(voided.world.store().await);
    faulty.fail("put_sealed", StoreError::Failed("scripted".to_owned()));
    let failed = voided.rebuild_on(faulty.clone()).await.map(drop);
    assert!(matches!(failed, Err(StartError::Rebuild(_))), "{failed:?}");
    assert_eq!(faulty.heads().await.unwrap().sealed.map(|(number, _)| number), Some(1));
    drop(faulty);
    let running = voided.rebuild().await.unwrap();
    voided.goes_on(&running).await;
    running.handle.shutdown().await;
}

/// What a rebuild leaves when it is killed is enough for an ordinary start.
#[tokio::test]
async fn an_ordinary_start_finishes_a_rebuild_that_was_killed() {
    let voided = Voided::new().await;
    let faulty = FaultyStore::new(voided.world.store().await);
    faulty.fail("put_sealed", StoreError::Failed("scripted".to_owned()));
    voided.rebuild_on(faulty).await.map(drop).unwrap_err();
    let running = voided.world.start().await;
    running.certified(2).await;
    voided.goes_on(&running).await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn what_waits_and_what_was_promised_outlives_a_rebuild_of_a_healthy_disk() {
    let world = World::with(|config, _| {
        config.posting.enabled = false;
        config.sealing.max_uncertified_headers = 1;
    });
    let posted = PostedRuns::new(&world.l1);
    let running = world.start_funded(&[1]).await;
    running.certify(1).await;
    post(&posted, &running, 1).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    // Certified, and not posted yet; then one that is sealed, and one that waits.
    running.certify(2).await;
    running.send(&envelope(1, 2)).await.unwrap();
    running.sealed(3).await;
    let waits = envelope(1, 3);
    let promise = running.send_bytes(waits.encode(), true).await.unwrap().promise.unwrap().decode().unwrap();
    let head = running.handle.tracker().head();
    let certified = running.handle.tracker().certified();
    running.held_by(&[1, 2, 3, 4], 3).await;
    running.handle.shutdown().await;
    world.l1.advance(1);
    let before = world.store().await;
    let (heads, pending) = (before.heads().await.unwrap(), before.pending_envelopes().await.unwrap());
    drop(before);

    for _ in 0..2 {
        let mut deps = world.deps(world.store().await);
        deps.rebuild = Some(posted.clone());
        let handle = Sequencer::start(world.config.clone(), deps).await.unwrap();
        let running = world.running(handle);
        assert_eq!(running.handle.tracker().head(), head);
        assert_eq!(running.handle.tracker().certified(), certified);
        assert_eq!(running.state(waits.id()).await, EnvelopeState::Pending);
        running.handle.shutdown().await;
        let store = world.store().await;
        assert_eq!(store.heads().await.unwrap(), heads);
        assert_eq!(store.pending_envelopes().await.unwrap(), pending);
    }
    let running = world.start().await;
    running.certify(3).await;
    running.sealed(4).await;
    let receipt = running.receipt(waits.id()).await;
    assert!(receipt.number.is_some_and(|number| number <= promise.seal_by), "{receipt:?}");
    running.handle.shutdown().await;
}

#[tokio::test]
async fn an_execution_client_that_holds_a_void_block_for_final_is_named_and_replaced() {
    let voided = Voided::new().await;
    voided.world.execution.final_number.store(1, Ordering::SeqCst);
    let refused = voided.rebuild().await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("holds block 1 for final") && refused.contains("genesis"), "{refused}");
    // Nothing was taken back meanwhile.
    let store = voided.world.store().await;
    assert_eq!(store.heads().await.unwrap().certified, Some(3));
    drop(store);
    // As it says: a client at its genesis.
    voided.world.execution.lose_blocks_above(0);
    voided.world.execution.final_number.store(0, Ordering::SeqCst);
    let running = voided.rebuild().await.unwrap();
    voided.goes_on(&running).await;
    running.handle.shutdown().await;
}

/// L1 has a header of another machine with the same key, and no header of L1's excuses the two.
#[tokio::test]
async fn a_second_header_of_the_same_key_on_l1_is_no_case_for_it() {
    let world = World::with(|config, _| config.posting.enabled = false);
    let posted = PostedRuns::new(&world.l1);
    let running = world.start_funded(&[1]).await;
    running.certify(1).await;
    post(&posted, &running, 1).await;
    posted.runs.lock()[0].headers[0].timestamp_ms += 1;
    running.handle.shutdown().await;
    let mut deps = world.deps(world.store().await);
    deps.rebuild = Some(posted);
    let refused = Sequencer::start(world.config.clone(), deps).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("two machines used the key"), "{refused}");
}

/// L1 alone gives an empty disk what was posted, and the members the rest.
#[tokio::test]
async fn an_empty_disk_takes_what_l1_holds_and_signs_none_of_it_again() {
    let voided = Voided::new().await;
    voided.world.close_disk().await;
    for entry in std::fs::read_dir(voided.world.folder.path()).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    voided.world.committee.held.lock().clear();
    let running = voided.rebuild().await.unwrap();
    let tracker = running.handle.tracker();
    assert_eq!((tracker.head().number, tracker.certified().number), (2, 2));
    assert_eq!(running.batch(2).await.hash, voided.made.header.hash());
    let first = running.batch(1).await.hash;
    assert_eq!(tracker.store().acknowledged(1).await.unwrap(), Some(first));
    running.handle.shutdown().await;
}
