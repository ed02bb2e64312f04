//! A disk that fails: nothing is acknowledged that is not on it, and sealing goes on when it heals, or stops for good.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_rpc::RunningRole;
use std::sync::Arc;

use blindfold_chain::{FallbackHeader, limits::CALLERS_READS};
use blindfold_kit::{FaultyStore, RICH, START_MS, envelope, envelope_with, epoch, payer, within};
use blindfold_protocol::{B256, Canonical, Envelope, ForcedEntry};
use blindfold_rpc::{
    BlindApiClient, Encoded, Feed, FeedConfig, FeedEvent, FeedItem, Topic,
    types::{EnvelopeState, LedgerAt},
};
use blindfold_store::{PendingEnvelope, Store, StoreError, What};
use common::{Running, World, ask, hang_up};
use tokio::task::JoinSet;

/// What the sequencer reads for callers alone.
const OF_CALLERS: &str = "envelope_location";

async fn start<'w>(world: &'w World) -> (Running<'w>, Arc<FaultyStore>) {
    world.l1.deposit(payer(1).address(), RICH);
    let store = FaultyStore::new(world.store().await);
    let running = world.try_start(store.clone() as Arc<dyn Store>).await.expect("it starts");
    running.sealed(1).await;
    (running, store)
}

fn full() -> StoreError {
    StoreError::Failed("disk full".to_owned())
}

#[tokio::test]
async fn what_is_not_on_disk_is_not_acknowledged() {
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    let (running, store) = start(&world).await;
    let storage = async |envelope: &Envelope, operation: &'static str| {
        store.fail(operation, full());
        let error = running.send(envelope).await.unwrap_err();
        assert_eq!((error.reason.as_ref(), error.retry), ("storage", true), "{operation}");
        assert!(error.retry_after_ms.is_some());
        store.heal();
    };
    let envelope = envelope(1, 1);
    storage(&envelope, "put_envelope").await;
    assert_eq!(running.client.get_status().await.unwrap().pending_envelopes, Some(0));
    running.send(&envelope).await.expect("the place is free again");
    // Whether it was known before decides what is told of one that is refused.
    let other = envelope_with(1, 1, |fields| fields.gas_limit = 60_000);
    for operation in ["envelope_location", "envelope_outcome"] {
        storage(&other, operation).await;
    }
    assert_eq!(running.reason(&other).await, "fee_nonce_used");
    // A promise that cannot be written down is not given.
    store.fail("put_meta", full());
    assert_eq!(running.send_bytes(envelope.encode(), true).await.unwrap_err().reason, "storage");
    store.heal();
    running.handle.shutdown().await;
}

/// Its envelope had a place and was never offered to a batch; promised on another call, it cost the bond.
#[tokio::test]
async fn a_caller_that_hangs_up_leaves_no_envelope_half_admitted() {
    let world = World::new();
    let (running, store) = start(&world).await;
    running.certify(1).await;
    let sent = envelope(1, 1);
    // The sequencer has found out what was signed before.
    running.send(&envelope(1, 2)).await.unwrap();
    store.hold("put_envelope");
    tokio::select! {
        answer = running.send(&sent) => panic!("the disk has not answered: {answer:?}"),
        () = store.somebody_waits() => {}
    }
    store.release();
    within("the envelope in a batch", async {
        while running
            .client
            .get_receipt(sent.id())
            .await
            .unwrap()
            .and_then(|receipt| receipt.number)
            .is_none()
        {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_certificate_that_was_not_stored_is_made_again() {
    let world = World::new();
    let (running, store) = start(&world).await;
    store.fail("put_certificate", full());
    for member in 1..=3 {
        running.acknowledge(&running.acknowledgement(1, member).await).await.unwrap();
    }
    assert_eq!(running.handle.tracker().certified().number, 0);
    store.heal();
    running.certified(1).await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn hints_are_taken_again_after_a_failure() {
    let world = World::new();
    let (running, store) = start(&world).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    running.certify_through(2).await;
    let (release, hints) = running.open(2).await;
    for operation in ["put_release", "put_hints"] {
        store.fail(operation, full());
        let error = running.submit(&release, &hints).await.unwrap_err();
        assert_eq!((error.reason.as_ref(), error.retry), ("storage", true));
        store.heal();
    }
    assert_eq!(running.submit(&release, &hints).await, Ok(true));
    let conflict = StoreError::Conflict {
        what: What::Release,
        number: 2,
        stored: B256::ZERO,
        offered: B256::repeat_byte(1),
    };
    running.send(&envelope(1, 2)).await.unwrap();
    running.sealed(3).await;
    running.certify_through(3).await;
    store.fail("put_hints", conflict);
    let (release, hints) = running.open(3).await;
    assert_eq!(running.submit(&release, &hints).await.unwrap_err().reason, "second_hints");
    running.handle.shutdown().await;
}

#[tokio::test]
async fn sealing_waits_for_a_disk_that_may_heal() {
    let world = World::new();
    let (running, store) = start(&world).await;
    store.fail("put_sealed", full());
    let id = running.send(&envelope(1, 1)).await.unwrap().id;
    running
        .eventually("failures", async || {
            running.client.get_status().await.unwrap().counters["seal_failures"] >= 2
        })
        .await;
    assert_eq!(running.handle.tracker().head().number, 1, "a header that is not on disk is none");
    store.heal();
    running.sealed(2).await;
    assert_eq!(running.receipt(id).await.number, Some(2));
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_disk_that_stays_full_ends_the_sequencer() {
    let world = World::with(|config, _| config.sealing.storage_exit_ms = 30);
    let (running, store) = start(&world).await;
    store.fail("put_sealed", StoreError::Failed("the disk is full".to_owned()));
    running.send(&envelope(1, 1)).await.unwrap();
    let fault = within("the fault", running.handle.failed()).await;
    assert_eq!((fault.part, fault.cause.as_str()), ("sealer", "storage failed: the disk is full"));
    assert_eq!(running.handle.tracker().head().number, 1);
    running.handle.shutdown().await;
}

/// Whoever asks for receipts and batches without a pause held up the sealer's own reads.
#[tokio::test]
async fn callers_reads_leave_readers_to_the_sequencer() {
    let world = World::new();
    let (running, store) = start(&world).await;
    let tracker = running.handle.tracker().clone();
    store.hold(OF_CALLERS);
    let mut asking = JoinSet::new();
    for _ in 0..20 {
        let tracker = tracker.clone();
        let location = async move { tracker.for_caller(tracker.store().envelope_location(B256::ZERO)).await };
        asking.spawn(async move { location.await.unwrap().is_none() });
    }
    store.somebody_waits().await;
    // The tasks run on this thread, one after the other.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.waiting(), CALLERS_READS);
    store.release();
    assert_eq!(asking.join_all().await, [true; 20]);
}

/// Proofs are made one at a time, and wait for each other and for the chain: nobody else's read waits with them.
#[tokio::test]
async fn who_asks_for_proofs_holds_up_no_other_caller() {
    let world = World::new();
    let (running, store) = start(&world).await;
    running.certify(1).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    let tracker = running.handle.tracker();
    store.hold("entries_changed_after");
    let mut asking = JoinSet::new();
    // As many as may wait.
    for _ in 0..16 {
        let client = running.client.clone();
        asking.spawn(async move {
            client.get_fee_account_proof(payer(1).address(), Some(LedgerAt::Number(1))).await.unwrap()
        });
    }
    store.somebody_waits().await;
    running.send(&envelope(1, 2)).await.unwrap();
    let read = within("a read of another caller", tracker.for_caller(tracker.store().batch(1))).await;
    assert!(read.unwrap().is_some());
    store.release();
    assert_eq!(asking.join_all().await.len(), 16);
}

/// It refused every envelope for ever, and nothing else told.
#[tokio::test]
async fn a_disk_error_while_nothing_is_to_be_sealed_ends_the_sequencer() {
    let world = World::new();
    let (running, store) = start(&world).await;
    running.certify(1).await;
    // As the writer answers from then on.
    store.fail("put_envelope", StoreError::Stopped("disk I/O error".to_owned()));
    let error = running.send(&envelope(1, 1)).await.unwrap_err();
    assert_eq!((error.reason.as_ref(), error.retry), ("storage", true));
    let failure = within("the end", running.handle.failed()).await;
    assert!(failure.cause.contains("disk I/O error"), "{failure}");
}

#[tokio::test]
async fn a_second_header_for_a_number_ends_the_sequencer() {
    let world = World::new();
    let (running, store) = start(&world).await;
    let conflict = StoreError::Conflict {
        what: What::Batch,
        number: 2,
        stored: B256::ZERO,
        offered: B256::repeat_byte(1),
    };
    store.fail("put_sealed", conflict);
    running.send(&envelope(1, 1)).await.unwrap();
    let fault = within("the fault", running.handle.failed()).await;
    assert_eq!(fault.part, "sealer");
    assert_eq!(running.reason(&envelope(1, 2)).await, "shutting_down");
    let ack = running.acknowledgement(1, 1).await;
    assert_eq!(running.acknowledge(&ack).await.unwrap_err().reason, "shutting_down");
    running
        .eventually("it says so", async || running.handle.readiness().reasons().contains_key("sealing"))
        .await;
    running.handle.shutdown().await;
}

/// L1 makes a header in place of ours. Ours is taken back, and the disk fails before L1's is on it: at the next look nothing
/// is there that would give way.
#[tokio::test]
async fn what_gave_way_to_l1_is_known_although_the_disk_failed_in_between() {
    let world = World::new();
    let (running, store) = start(&world).await;
    let parent = running.handle.tracker().with_state(Clone::clone);
    running.certify(1).await;
    running.certified(1).await;
    let envelope = envelope(1, 1);
    running.send(&envelope).await.unwrap();
    running.sealed(2).await;
    let lost = running.batch(2).await.hash;
    // Nothing is sealed meanwhile.
    *world.l1.newest_time.lock() = Some((START_MS + 3_600_000) / 1_000);
    running
        .eventually("a doubt about the clock", async || {
            running.handle.readiness().reasons().contains_key("clock")
        })
        .await;
    store.fail("put_sealed", full());
    let header = parent.l1_header::<Vec<u8>>(START_MS + 10_000, &[], &epoch()).unwrap();
    world.l1.l1_headers.lock().push(FallbackHeader {
        header,
        items: vec![],
        l1_block: *world.l1.finalized.lock(),
    });
    let mut heads = running.handle.tracker().watch_sealed();
    within("ours to give way", heads.wait_for(|head| head.number == 1)).await.unwrap();
    store.heal();
    running.sealed(2).await;
    assert_ne!(running.batch(2).await.hash, lost);
    *world.l1.newest_time.lock() = Some(START_MS / 1_000);
    running
        .eventually("its end", async || running.state(envelope.id()).await == EnvelopeState::Expired)
        .await;
    running.handle.shutdown().await;
}

/// The disk is well again before L1 answers: what was taken back for L1's header binds, and nothing is signed in its place.
#[tokio::test]
async fn nothing_is_signed_in_the_place_of_what_was_taken_back_for_l1() {
    let world = World::new();
    let (running, store) = start(&world).await;
    let parent = running.handle.tracker().with_state(Clone::clone);
    running.certify(1).await;
    running.certified(1).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    store.fail("put_sealed", full());
    let header = parent.l1_header::<Vec<u8>>(START_MS + 10_000, &[], &epoch()).unwrap();
    world.l1.l1_headers.lock().push(FallbackHeader {
        header,
        items: vec![],
        l1_block: *world.l1.finalized.lock(),
    });
    let mut heads = running.handle.tracker().watch_sealed();
    within("ours to give way", heads.wait_for(|head| head.number == 1)).await.unwrap();
    world.l1.set_down(true);
    store.heal();
    let known = "this key signed a header for number 2, and the certified chain ends at 1";
    running
        .eventually("a reason not to seal", async || {
            running.handle.readiness().reasons().values().any(|reason| reason.contains(known))
        })
        .await;
    world.l1.set_down(false);
    running.certified(2).await;
    assert_eq!(running.batch(2).await.hash, header.hash());
    let next = envelope_with(1, 2, |fields| fields.generation = 1);
    running.eventually("sealing", async || running.send(&next).await.is_ok()).await;
    running.sealed(3).await;
    running.handle.shutdown().await;
}

/// It was read with what waits, and is in a batch before it is verified: in the pool it would wait for nothing.
#[tokio::test]
async fn what_is_sealed_while_the_mempool_is_taken_back_does_not_wait_again() {
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    let (running, store) = start(&world).await;
    let parent = running.handle.tracker().with_state(Clone::clone);
    running.certify(1).await;
    running.certified(1).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    store.hold("pending_envelopes");
    let header = parent.l1_header::<Vec<u8>>(START_MS + 10_000, &[], &epoch()).unwrap();
    let l1_block = *world.l1.finalized.lock();
    world.l1.l1_headers.lock().push(FallbackHeader { header, items: vec![], l1_block });
    within("the look at the mempool", store.somebody_waits()).await;
    let next = |nonce| envelope_with(1, nonce, |fields| fields.generation = 1);
    running.send(&next(2)).await.unwrap();
    running.sealed(3).await;
    let waiting = next(3);
    running.send(&waiting).await.unwrap();
    store.hold("pending_envelopes done");
    within("the mempool as it is on disk", store.waits(2)).await;
    running.certify(3).await;
    running.sealed(4).await;
    assert!(running.batch(4).await.sealed.decode().unwrap().items.contains(&waiting.encode()));
    store.release();
    // The next look at L1 comes after it.
    world.l1.advance(1);
    running.seen_l1().await;
    assert_eq!(running.client.get_status().await.unwrap().pending_envelopes, Some(0));
    running.handle.shutdown().await;
}

/// L1 made a header with a transaction, and the disk fails when the sealer looks which second that left open: it looks again.
#[tokio::test]
async fn a_second_that_l1_opened_is_closed_although_the_disk_failed_in_between() {
    let world = World::new();
    let (running, store) = start(&world).await;
    let parent = running.handle.tracker().with_state(Clone::clone);
    running.certify(1).await;
    running.certified(1).await;
    // Nothing is sealed meanwhile.
    *world.l1.newest_time.lock() = Some((START_MS + 3_600_000) / 1_000);
    running
        .eventually("a doubt about the clock", async || {
            running.handle.readiness().reasons().contains_key("clock")
        })
        .await;
    store.fail("batch", full());
    let entry = |index, at| ForcedEntry::transaction(index, 10_000_000, vec![2, index as u8], at);
    world.l1.force(entry);
    let items = vec![entry(0, 0).item];
    let header = parent.l1_header(START_MS + 10_000, &items, &epoch()).unwrap();
    let l1_block = world.l1.advance(1);
    world.l1.l1_headers.lock().push(FallbackHeader { header, items, l1_block });
    let mut heads = running.handle.tracker().watch_sealed();
    within("L1's header", heads.wait_for(|head| head.number == 2)).await.unwrap();
    running
        .eventually("a look that fails", async || {
            let status = running.client.get_status().await;
            status.is_ok_and(|status| status.counters["seal_failures"] > 0)
        })
        .await;
    store.heal();
    world.clock.set(START_MS + 11_000);
    *world.l1.newest_time.lock() = Some((START_MS + 11_000) / 1_000);
    running.sealed(3).await;
    running.handle.shutdown().await;
}

/// Reads of callers who hung up went on and counted no longer: all readers could be strangers'.
#[tokio::test]
async fn reads_for_callers_that_hang_up_leave_readers_to_the_sequencer() {
    let world = World::new();
    let (running, store) = start(&world).await;
    let addr = running.handle.rpc_addr();
    let id = B256::repeat_byte(1);
    let get_receipt = async || ask(addr, "blind_getReceipt", &serde_json::json!([id])).await;
    store.hold(OF_CALLERS);
    for reads in 1..=CALLERS_READS {
        let asked = get_receipt().await;
        store.waits(reads).await;
        hang_up(asked).await;
    }
    let staying = get_receipt().await;
    // It has come that far when calls after it, which read no disk, are answered.
    for _ in 0..3 {
        running.client.get_fee_account(payer(1).address()).await.unwrap();
    }
    assert_eq!(store.waiting(), CALLERS_READS);
    drop(staying);
    store.release();
    running.handle.shutdown().await;
}

/// They were stored, and nobody heard of them.
#[tokio::test]
async fn hints_of_a_caller_that_hangs_up_are_announced() {
    let world = World::new();
    let (running, store) = start(&world).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    running.certify_through(2).await;
    let addr = running.handle.rpc_addr();
    let mut feed = Feed::start(format!("ws://{addr}"), vec![Topic::Hints], FeedConfig::default());
    assert_eq!(within("the feed", feed.next()).await, Some(FeedItem::Connected));
    let (release, hints) = running.open(2).await;
    store.hold("put_hints done");
    let params = serde_json::json!([Encoded::new(&release), Encoded::new(&hints)]);
    let asked = ask(addr, "blind_submitHints", &params).await;
    store.waits(1).await;
    hang_up(asked).await;
    store.release();
    let heard = within("the hints", feed.next()).await;
    assert!(matches!(heard, Some(FeedItem::Event(FeedEvent::Hints(_)))), "{heard:?}");
    running.handle.shutdown().await;
}

/// It was chosen without a promise, and is promised while its header is written. Its payer has spoilt it there by what he
/// forced in front of it: then it stands in the batch that it was promised for, too.
#[tokio::test]
async fn a_promise_given_while_the_header_is_written_is_kept() {
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    let (running, store) = start(&world).await;
    let envelope = envelope(1, 100);
    running.send(&envelope).await.unwrap();
    let other = envelope_with(1, 100, |fields| fields.gas_limit = 50_000);
    world.l1.force(|index, at| ForcedEntry::envelope(index, other.encode(), at));
    running.seen_l1().await;
    store.hold("put_sealed");
    running.certify(1).await;
    store.somebody_waits().await;
    let sent = running.send_bytes(envelope.encode(), true).await.unwrap();
    let by = sent.promise.unwrap().decode().unwrap().seal_by;
    store.release();
    running.sealed(2).await;
    let spoilt = Some("fee_nonce_used".to_owned());
    assert!(running.batch(2).await.verdicts.contains(&spoilt));
    for number in 2..by {
        running.certify(number).await;
        world.clock.advance(13_000);
        running.sealed(number + 1).await;
    }
    assert!(running.batch(by).await.verdicts.contains(&spoilt), "promised for {by}");
    running.handle.shutdown().await;
}

/// A batch skipped the first envelope of a fee nonce, which is still on disk; a second one of that nonce is promised. After
/// a restart the promised one has its place.
#[tokio::test]
async fn what_is_promised_is_restored_before_what_is_not() {
    let world = World::new();
    let store = world.store().await;
    let (first, second) = (envelope(1, 7), envelope_with(1, 7, |fields| fields.gas_limit = 60_000));
    for (envelope, arrived_ms, seal_by) in [(&first, 1, None), (&second, 2, Some(40))] {
        let bytes = envelope.encode();
        let pending = PendingEnvelope { id: envelope.id(), bytes, arrived_ms, seal_by };
        store.put_envelope(pending).await.unwrap();
    }
    let running = world.try_start(Arc::clone(&store)).await.expect("it starts");
    assert_eq!(running.client.get_status().await.unwrap().pending_envelopes, Some(1));
    assert_eq!(running.state(second.id()).await, EnvelopeState::Pending);
    let outcome = store.envelope_outcome(first.id()).await.unwrap();
    assert_eq!(outcome.as_deref(), Some("fee_nonce_used"));
    running.handle.shutdown().await;
}

/// The disk was so slow that the number of its record went by, and its sender was told that there is none; asked again, the
/// sequencer promised a later one. A restart went by the record and forgot the promise.
#[tokio::test]
async fn what_was_promised_late_is_restored_although_its_record_names_another_number() {
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    world.start_funded(&[1]).await.handle.shutdown().await;
    let store = world.store().await;
    let (envelope, promised) = (envelope(1, 7), 40_u64);
    let (id, bytes) = (envelope.id(), envelope.encode());
    let pending = PendingEnvelope { id, bytes: bytes.clone(), arrived_ms: 1, seal_by: Some(1) };
    store.put_envelope(pending).await.unwrap();
    let late = [id.as_slice(), &promised.to_be_bytes()].concat();
    store.put_meta("late_promises", &late).await.unwrap();
    let running = world.try_start(store).await.expect("it starts");
    let sent = running.send_bytes(bytes, true).await.unwrap();
    assert_eq!(sent.promise.unwrap().decode().unwrap().seal_by, promised);
    running.handle.shutdown().await;
}
