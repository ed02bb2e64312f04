//! What L1 forces on the sequencer: forced items, its deposits' gas, and headers that L1 made.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_chain::L1MadeHeader;
use blindfold_protocol::{BatchHeader, Canonical, ForcedEntry};

use blindfold_rpc::BlindApiClient;
use common::{EPOCH, LAST_NUMBER, Running, World, doubles::START_MS, epoch};

/// A transaction that nothing here executes.
fn transaction(index: u64, at: u64) -> ForcedEntry {
    ForcedEntry::transaction(index, 10_000_000, vec![2, index as u8], at)
}

async fn header(running: &Running<'_>, number: u64) -> BatchHeader {
    running.batch(number).await.sealed.decode().unwrap().header
}

#[tokio::test]
async fn forced_items_are_sealed_first_and_without_envelopes() {
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    let running = world.start_funded(&[1]).await;
    running.send(&world.envelope(1, 1)).await.unwrap();
    let forced = world.envelope_with(2, 7, |fields| fields.max_fee = 0);
    world.l1.force(1, |index, at| ForcedEntry::envelope(index, forced.encode(), at));
    world.l1.force(1, transaction);
    tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    running.certify(1).await;
    running.sealed(2).await;
    let batch = running.batch(2).await;
    let sealed = batch.sealed.decode().unwrap();
    assert_eq!(sealed.items[0], forced.encode());
    assert_eq!(sealed.items[1], transaction(1, 0).item.to_vec());
    assert_eq!(batch.verdicts, [None, Some("forced_transaction".to_owned()), None]);
    assert_eq!(sealed.header.forced_cursor, 2);
    // The forced envelope has a receipt like any other; its payer had nothing and paid nothing.
    assert_eq!(running.receipt(forced.id()).await.number, Some(2));
    assert_eq!(running.handle.tracker().account(&forced.header.payer).balance, 0);
    running.handle.shutdown().await;
}

#[tokio::test]
async fn what_is_due_is_taken_sixteen_at_a_time() {
    let world = World::new();
    let delay = u64::from(world.chain.timing.forced_delay);
    world.l1.force(40, transaction);
    world.l1.advance_by(delay);
    let running = world.start().await;
    running.sealed(1).await;
    // Ten million gas each: one full header a second, and the clock stands.
    world.clock.advance(1_000);
    running.sealed(2).await;
    world.clock.advance(1_000);
    running.sealed(3).await;
    let mut cursor = 0;
    for number in 1..=3 {
        let header = header(&running, number).await;
        assert!(header.forced_cursor <= cursor + 16);
        assert_eq!(header.gas, (header.forced_cursor - cursor) * 10_000_000);
        cursor = header.forced_cursor;
    }
    assert_eq!(cursor, 40);
    running.handle.shutdown().await;
}

#[tokio::test]
async fn the_origin_takes_short_steps_while_l1_deposits_wait() {
    let world = World::new();
    let running = world.start().await;
    let from = running.handle.tracker().head().l1_origin;
    let blocks: Vec<u64> = (0..20).map(|_| world.l1.bridge(8_000_000)).collect();
    let last = blocks[19];
    let reached = || running.handle.tracker().head().l1_origin >= last;
    for _ in 0..200 {
        if reached() {
            break;
        }
        world.clock.advance(250);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(reached());
    let (mut origin, mut per_second) = (from, std::collections::BTreeMap::<u64, u64>::new());
    for number in 1..=running.handle.tracker().head().number {
        let header = header(&running, number).await;
        assert!(header.l1_origin_number <= origin + 16);
        *per_second.entry(header.second()).or_default() += header.l1_origin_number - origin;
        origin = header.l1_origin_number;
    }
    assert!(per_second.values().all(|blocks| blocks * 8_000_000 <= 199_000_000), "{per_second:?}");
    running.handle.shutdown().await;
}

#[tokio::test]
async fn sealing_goes_on_from_a_header_that_l1_made() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    running.certify(1).await;
    world.l1.force(1, transaction);
    running.sealed(2).await;
    running.certify(2).await;
    let tracker = running.handle.tracker();
    let header = tracker.with_state(|state| {
        let epoch = epoch(EPOCH, 1, LAST_NUMBER);
        state.l1_header::<Vec<u8>>(START_MS + 10_000, &[], &epoch).unwrap()
    });
    world.l1.make_header(L1MadeHeader { header, items: vec![] });
    running.certified(header.number).await;
    assert_eq!(tracker.certified().hash, header.hash());
    world.clock.set(START_MS + 11_000);
    running.send(&world.envelope(1, 1)).await.unwrap();
    running.sealed(header.number + 1).await;
    assert_eq!(self::header(&running, header.number + 1).await.parent_hash, header.hash());
    running.handle.shutdown().await;
}

#[tokio::test]
async fn envelopes_of_a_header_that_gave_way_wait_again() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    running.certify(1).await;
    let parent = running.handle.tracker().with_state(Clone::clone);
    let envelope = world.envelope(1, 1);
    running.send(&envelope).await.unwrap();
    running.sealed(2).await;
    // Nobody certified it. Number 2 was signed and is L1's now, so the envelope takes the next.
    let header = parent.l1_header::<Vec<u8>>(START_MS + 10_000, &[], &epoch(EPOCH, 1, LAST_NUMBER)).unwrap();
    world.l1.make_header(L1MadeHeader { header, items: vec![] });
    running.certified(2).await;
    world.clock.set(START_MS + 11_000);
    let id = envelope.id();
    let sealed_again = || async {
        let receipt = running.client.get_receipt(id).await.unwrap();
        receipt.and_then(|receipt| receipt.number).is_some_and(|number| number > 2)
    };
    running.eventually("the envelope's next batch", sealed_again).await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_certified_header_that_l1_replaced_ends_the_sequencer() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    let parent = running.handle.tracker().with_state(Clone::clone);
    running.send(&world.envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    running.certify(2).await;
    let header = parent.l1_header::<Vec<u8>>(START_MS + 10_000, &[], &epoch(EPOCH, 1, LAST_NUMBER)).unwrap();
    world.l1.make_header(L1MadeHeader { header, items: vec![] });
    let fault = common::within("the fault", running.handle.failed()).await;
    assert!(format!("{fault:?}").contains("resynchronise"), "{fault:?}");
    running.handle.shutdown().await;
}
