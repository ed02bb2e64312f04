//! What L1 forces on the sequencer: forced items, its deposits, and headers that L1 made.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::{sync::atomic::Ordering, time::Duration};

use blindfold_chain::{ExecutionState, FallbackHeader};
use blindfold_protocol::{BatchHeader, Canonical, ForcedEntry};
use blindfold_rpc::{BlindApiClient, RunningRole, types::EnvelopeState};

use blindfold_kit::{
    EPOCH, LAST_NUMBER, RICH, START_MS, committee, envelope, envelope_with, epoch, payer, within,
};
use common::{Running, World};

/// A transaction that nothing here executes.
fn transaction(index: u64, at: u64) -> ForcedEntry {
    ForcedEntry::transaction(index, 10_000_000, vec![2, index as u8], at)
}

async fn header(running: &Running<'_>, number: u64) -> BatchHeader {
    running.batch(number).await.sealed.decode().unwrap().header
}

/// Rule A-2.
#[tokio::test]
async fn forced_items_are_sealed_first_and_without_envelopes() {
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    let running = world.start_funded(&[1]).await;
    running.send(&envelope(1, 1)).await.unwrap();
    let forced = envelope_with(2, 7, |fields| fields.max_fee = 0);
    world.l1.force(|index, at| ForcedEntry::envelope(index, forced.encode(), at));
    world.l1.force(transaction);
    running.seen_l1().await;
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

/// Anybody can force a copy of an envelope that waits, with one bit of its proof flipped: it has the same id.
#[tokio::test]
async fn a_mangled_copy_forced_first_leaves_the_genuine_one_in_the_pool() {
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    let running = world.start_funded(&[1]).await;
    let genuine = envelope(1, 1);
    let mut mangled = genuine.clone();
    mangled.proof.s[31] ^= 1;
    // The first copy is alone in its batch; the genuine one comes after it, and waits when the second is taken.
    world.l1.force(|index, at| ForcedEntry::envelope(index, mangled.encode(), at));
    running.seen_l1().await;
    running.certify(1).await;
    running.sealed(2).await;
    assert_eq!(running.batch(2).await.verdicts, [Some("invalid_proof".to_owned())]);
    assert_eq!(running.receipt(genuine.id()).await.reason.as_deref(), Some("invalid_proof"));
    running.send(&genuine).await.expect("it was never ordered");
    assert_eq!(running.receipt(genuine.id()).await.state, EnvelopeState::Pending);
    world.l1.force(|index, at| ForcedEntry::envelope(index, mangled.encode(), at));
    running.seen_l1().await;
    running.certify(2).await;
    running.sealed(3).await;
    assert_eq!(running.batch(3).await.verdicts, [Some("invalid_proof".to_owned()), None]);
    let receipt = running.receipt(genuine.id()).await;
    assert_eq!((receipt.number, receipt.index, receipt.reason), (Some(3), Some(1), None));
    running.handle.shutdown().await;
}

/// Who was promised the next epoch's header forced the same bytes before that: skipped, they took the envelope out of the
/// pool, and the bond paid for the promise.
#[tokio::test]
async fn a_copy_forced_before_its_epoch_breaks_no_promise() {
    let epochs = vec![committee().epoch(EPOCH, 1, 2), committee().epoch(EPOCH + 1, 3, LAST_NUMBER)];
    let world = World::with_epochs(epochs, |config, _| config.sealing.max_uncertified_headers = 1);
    let running = world.start_funded(&[1]).await;
    let envelope = envelope_with(1, 1, |f| (f.epoch, f.expiry) = (EPOCH + 1, 900));
    let sent = running.send_bytes(envelope.encode(), true).await.unwrap();
    let seal_by = sent.promise.unwrap().decode().unwrap().seal_by;
    world.l1.force(|index, at| ForcedEntry::envelope(index, envelope.encode(), at));
    running.seen_l1().await;
    running.certify(1).await;
    running.sealed(2).await;
    assert_eq!(running.batch(2).await.verdicts, [Some("wrong_epoch".to_owned())]);
    running.certify(2).await;
    running.certified(2).await;
    // Nor does a restart forget it.
    running.handle.shutdown().await;
    let running = world.start().await;
    for number in 3..=seal_by {
        if running.receipt(envelope.id()).await.number > Some(2) {
            break;
        }
        running.sealed(number).await;
        running.certify(number).await;
    }
    let receipt = running.receipt(envelope.id()).await;
    assert!(receipt.reason.is_none() && receipt.number <= Some(seal_by), "{receipt:?}");
    running.handle.shutdown().await;
}

/// Anybody who sees the bytes can force them before their time. Skipped there, they are ordered nowhere.
#[tokio::test]
async fn a_copy_forced_before_its_epoch_keeps_nobody_out() {
    let epochs = vec![committee().epoch(EPOCH, 1, 2), committee().epoch(EPOCH + 1, 3, LAST_NUMBER)];
    let world = World::with_epochs(epochs, |config, _| config.sealing.max_uncertified_headers = 1);
    let running = world.start_funded(&[1]).await;
    let envelope = envelope_with(1, 1, |f| (f.epoch, f.expiry) = (EPOCH + 1, 900));
    world.l1.force(|index, at| ForcedEntry::envelope(index, envelope.encode(), at));
    running.seen_l1().await;
    running.certify(1).await;
    running.sealed(2).await;
    assert_eq!(running.batch(2).await.verdicts, [Some("wrong_epoch".to_owned())]);
    running.certify(2).await;
    running.certified(2).await;
    running.send(&envelope).await.expect("it was never ordered");
    running.sealed(3).await;
    running.certify(3).await;
    let receipt = running.receipt(envelope.id()).await;
    assert_eq!((receipt.number, receipt.reason), (Some(3), None));
    assert_eq!(running.reason(&envelope).await, "already_known");
    running.handle.shutdown().await;
}

/// Whoever is told that an envelope is known does not send it again: of one that was only skipped, what may pass is told.
#[tokio::test]
async fn a_copy_forced_before_its_epoch_hides_no_refusal_that_passes() {
    let epochs = vec![committee().epoch(EPOCH, 1, 2), committee().epoch(EPOCH + 1, 3, LAST_NUMBER)];
    let world = World::with_epochs(epochs, |config, _| config.sealing.max_uncertified_headers = 1);
    let running = world.start_funded(&[1]).await;
    let envelope = envelope_with(2, 1, |f| (f.epoch, f.expiry) = (EPOCH + 1, 900));
    world.l1.force(|index, at| ForcedEntry::envelope(index, envelope.encode(), at));
    running.seen_l1().await;
    running.certify(1).await;
    running.sealed(2).await;
    assert_eq!(running.batch(2).await.verdicts, [Some("wrong_epoch".to_owned())]);
    let refusal = running.send(&envelope).await.unwrap_err();
    assert_eq!((refusal.reason.as_ref(), refusal.retry), ("insufficient_funds", true));
    world.l1.deposit(payer(2).address(), RICH);
    running.seen_l1().await;
    running.certify(2).await;
    running.sealed(3).await;
    running.send(&envelope).await.expect("it pays now");
    running.handle.shutdown().await;
}

#[tokio::test]
async fn what_is_due_is_taken_sixteen_at_a_time() {
    let world = World::new();
    let delay = u64::from(world.chain.timing.forced_delay);
    world.l1.force_many(40, transaction);
    world.l1.advance(delay);
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
async fn deposits_of_a_long_silence_halt_nothing_and_are_executed_second_by_second() {
    let world = World::with(|_, chain| chain.block_gas_limit = 169_000_000);
    // Thousands of L1 blocks, more deposits than any second has gas for, and forced items that are due.
    for _ in 0..30 {
        world.l1.bridge(8_000_000);
        world.l1.advance(100);
    }
    world.l1.force_many(20, transaction);
    world.l1.advance(world.chain.timing.forced_delay.into());
    let newest = world.l1.advance(1);
    let running = world.start().await;
    let executed = || running.handle.execution().block.map_or(0, |block| block.number);
    let tracker = running.handle.tracker();
    within("thirty blocks", async {
        while executed() < 30 {
            let sealed = tracker.watch_sealed().borrow().number;
            running.certify_through(sealed).await;
            // Time goes on when execution waits for it.
            let waits = running.handle.execution().state == ExecutionState::Waiting;
            if waits && tracker.certified().number == tracker.head().number {
                world.clock.advance(250);
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(executed(), 30);
    assert_eq!(header(&running, 1).await.l1_origin_number, newest, "at once");
    let executed = world.execution.executed.lock().clone();
    assert!(executed.iter().all(|inputs| inputs.l1_deposits.len() == 1), "{executed:?}");
    // No header more than the seconds need, and none once everything is executed.
    world.clock.advance(5_000);
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let head = running.handle.tracker().head().number;
    assert!(head <= 40, "{head} headers for thirty seconds");
    running.handle.shutdown().await;
}

#[tokio::test]
async fn sealing_goes_on_from_a_header_that_l1_made() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    running.certify(1).await;
    world.l1.force(transaction);
    running.sealed(2).await;
    running.certify(2).await;
    let tracker = running.handle.tracker();
    let header = tracker.with_state(|state| {
        let epoch = epoch();
        state.l1_header::<Vec<u8>>(START_MS + 10_000, &[], &epoch).unwrap()
    });
    // In a block that becomes final only later: until then nothing is sealed on top of it.
    let l1_block = *world.l1.finalized.lock() + 1;
    world.l1.l1_headers.lock().push(FallbackHeader { header, items: vec![], l1_block });
    running.certified(header.number).await;
    assert_eq!(tracker.certified().hash, header.hash());
    world.clock.set(START_MS + 11_000);
    running.send(&envelope_with(1, 1, |f| f.generation = 1)).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(tracker.head().number, header.number);
    world.l1.advance(1);
    running.sealed(header.number + 1).await;
    let next = self::header(&running, header.number + 1).await;
    assert_eq!((next.parent_hash, next.l1_origin_number), (header.hash(), l1_block));
    running.handle.shutdown().await;
}

#[tokio::test]
async fn own_headers_that_l1_displaced_give_way_and_their_envelopes_are_never_sealed_again() {
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 2);
    let running = world.start_funded(&[1]).await;
    running.certify(1).await;
    let tracker = running.handle.tracker();
    let parent = tracker.with_state(Clone::clone);
    // Two headers of ours, which nobody certified in time.
    let sent = [envelope(1, 1), envelope(1, 2)];
    let mut displaced = Vec::new();
    for (envelope, number) in sent.iter().zip(2..) {
        running.send(envelope).await.unwrap();
        running.sealed(number).await;
        displaced.push(header(&running, number).await.hash());
        world.clock.advance(250);
    }
    // Nor is this one sealed while they wait.
    let waiting = envelope(1, 3);
    running.send(&waiting).await.unwrap();
    world.l1.force(transaction);
    let items = vec![transaction(0, 0).item];
    let made = parent.l1_header(START_MS + 10_000, &items, &epoch()).unwrap();
    let l1_block = world.l1.advance(1);
    world.l1.l1_headers.lock().push(FallbackHeader { header: made, items, l1_block });
    running.certified(2).await;
    assert_eq!(tracker.certified().hash, made.hash());
    // Number 3 is signed again, now on top of L1's header, and collects acknowledgements anew.
    world.clock.set(START_MS + 11_000);
    running.sealed(3).await;
    let next = header(&running, 3).await;
    assert!(next.hash() != displaced[1] && next.parent_hash == made.hash());
    assert!(next.l1_origin_number >= l1_block);
    running.certify(3).await;
    // Somebody may have certified and opened what was displaced, so what it held is over, like what waited.
    for envelope in sent.iter().chain([&waiting]) {
        let id = envelope.id();
        running.eventually("it is over", async || running.state(id).await == EnvelopeState::Expired).await;
        let receipt = running.receipt(id).await;
        assert_eq!((receipt.reason.as_deref(), receipt.number), (Some("wrong_generation"), None));
        assert_eq!(running.reason(envelope).await, "already_known");
    }
    assert_eq!(running.reason(&envelope(1, 4)).await, "wrong_generation");
    assert_eq!(header(&running, 3).await.envelope_count, 0);
    // In the new generation everything goes on.
    let status = running.client.get_status().await.unwrap();
    assert_eq!((status.head.generation, status.pending_envelopes), (1, Some(0)));
    let again = envelope_with(1, 5, |f| f.generation = status.head.generation);
    let promise = running.send_bytes(again.encode(), true).await.unwrap().promise;
    assert!(promise.is_some());
    world.clock.advance(250);
    running.sealed(4).await;
    running.certify(4).await;
    assert_eq!(running.receipt(again.id()).await.number, Some(4));
    // L1's header has a forced transaction: its second is closed, so its block is there.
    running.executed(1).await;
    running.handle.shutdown().await;
}

/// It may be a server that lags behind the others: not at once, and not for ever.
#[tokio::test]
async fn an_l1_that_stays_unusable_ends_the_sequencer() {
    let world = World::with(|config, _| config.l1_unusable_exit_ms = 600_000);
    let running = world.start_funded(&[1]).await;
    world.l1.unusable.store(true, Ordering::SeqCst);
    let early = tokio::time::timeout(Duration::from_millis(100), running.handle.failed()).await;
    assert!(early.is_err(), "{early:?}");
    running.handle.shutdown().await;

    let world = World::with(|config, _| config.l1_unusable_exit_ms = 30);
    let running = world.start_funded(&[1]).await;
    world.l1.unusable.store(true, Ordering::SeqCst);
    let failure = within("the failure", running.handle.failed()).await;
    assert_eq!(failure.part, "l1");
    assert!(failure.cause.contains("scripted nonsense"), "{failure}");
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_certified_header_that_l1_replaced_ends_the_sequencer() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    let parent = running.handle.tracker().with_state(Clone::clone);
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    running.certify(2).await;
    let header = parent.l1_header::<Vec<u8>>(START_MS + 10_000, &[], &epoch()).unwrap();
    world.l1.l1_headers.lock().push(FallbackHeader {
        header,
        items: vec![],
        l1_block: *world.l1.finalized.lock(),
    });
    let fault = within("the fault", running.handle.failed()).await;
    assert!(format!("{fault:?}").contains("resynchronise"), "{fault:?}");
    running.handle.shutdown().await;
}
