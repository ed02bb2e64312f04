//! Promises under pressure: what is promised is kept, and what cannot be promised is refused.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_kit::{BASE_FEE, EPOCH, LAST_NUMBER, committee, envelope, envelope_with};
use blindfold_protocol::{Canonical, Envelope, Epoch, ForcedEntry};
use blindfold_rpc::RunningRole;
use common::{Running, World};

/// Sends an envelope and asks for a promise: the number, or the reason of the refusal.
async fn promised(running: &Running<'_>, envelope: &Envelope) -> Result<u64, (String, bool)> {
    match running.send_bytes(envelope.encode(), true).await {
        Ok(sent) => Ok(sent.promise.unwrap().decode().unwrap().seal_by),
        Err(error) => Err((error.reason.into_owned(), error.retry)),
    }
}

fn refused(reason: &str, retry: bool) -> Result<u64, (String, bool)> {
    Err((reason.to_owned(), retry))
}

/// Rules P-1, P-2.
#[tokio::test]
async fn a_flood_of_promises_ends_in_refusals_and_breaks_none() {
    let world = World::with(|config, _| {
        config.sealing.max_uncertified_headers = 1;
        // Two items of each header may be promised, of four.
        config.sealing.max_batch_items = 4;
        config.sealing.promise_batches = 7;
    });
    let running = world.start_funded(&[1, 2, 3]).await;
    // Promises that pay nothing beside the base fee, as many as one likes.
    let mut given = Vec::new();
    for nonce in 1..=8 {
        let envelope = envelope_with(1, nonce, |f| f.priority_fee = 0);
        given.push((envelope.id(), promised(&running, &envelope).await.unwrap()));
    }
    let numbers: Vec<u64> = given.iter().map(|(_, by)| *by).collect();
    assert_eq!(numbers, [5, 5, 6, 6, 7, 7, 8, 8]);
    let envelope = envelope(1, 9);
    assert_eq!(promised(&running, &envelope).await, refused("promise_capacity", true));
    running.send(&envelope).await.expect("without a promise there is room");
    assert_eq!(promised(&running, &envelope).await, refused("promise_capacity", true), "nor later");
    // Others pay more, in greater number than headers can hold.
    for nonce in 1..=30 {
        running.send(&envelope_with(2, nonce, |f| f.priority_fee = 5_000)).await.unwrap();
    }
    for number in 2..=8 {
        running.certify(number - 1).await;
        running.sealed(number).await;
    }
    for (id, by) in given {
        let receipt = running.receipt(id).await;
        assert!(receipt.number.unwrap() <= by, "promised by {by}: {receipt:?}");
    }
    running.handle.shutdown().await;
}

/// A thousand can be given late, and one payer took all of them.
#[tokio::test]
async fn promises_that_are_asked_for_later_are_not_all_for_one_payer() {
    const SHARE: u64 = 64;
    // Enough for the steepest rise up to the numbers that have room.
    let envelope = |n, nonce| envelope_with(n, nonce, |f| f.max_fee = 1_000 * BASE_FEE);
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    let running = world.start_funded(&[1, 2]).await;
    for nonce in 1..=SHARE {
        let envelope = envelope(1, nonce);
        running.send(&envelope).await.unwrap();
        promised(&running, &envelope).await.unwrap();
    }
    let above = envelope(1, SHARE + 1);
    running.send(&above).await.unwrap();
    assert_eq!(promised(&running, &above).await, refused("overloaded", true));
    promised(&running, &envelope(1, 1)).await.expect("what stands is told again");
    promised(&running, &envelope(1, SHARE + 2))
        .await
        .expect("asked for at once it needs no place among them");
    let other = envelope(2, 1);
    running.send(&other).await.unwrap();
    promised(&running, &other).await.expect("there is room for others");
    running.handle.shutdown().await;
}

/// Rule P-2.
#[tokio::test]
async fn a_promise_needs_a_margin_and_a_fee_that_covers_the_steepest_rise() {
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    let running = world.start_funded(&[1]).await;
    let terms = refused("promise_terms", false);
    // The head is 1, and promises begin four numbers later.
    for expiry in [2, 4] {
        let soon = envelope_with(1, expiry, |f| f.expiry = expiry);
        assert_eq!(promised(&running, &soon).await, terms);
        running.send(&soon).await.expect("without a promise it may go in");
        assert_eq!(promised(&running, &soon).await, terms, "nor later");
    }
    assert_eq!(promised(&running, &envelope_with(1, 5, |f| f.expiry = 5)).await, Ok(5));
    // Nine eighths to the fourth, and a wei for each rounding.
    let most = BASE_FEE * 6_561 / 4_096 + 4;
    assert_eq!(promised(&running, &envelope_with(1, 6, |f| f.max_fee = most)).await, Ok(5));
    let low = BASE_FEE * 6_561 / 4_096 - 1;
    assert_eq!(promised(&running, &envelope_with(1, 7, |f| f.max_fee = low)).await, terms);
    // More than half of a second's gas.
    let half = world.chain.second_gas_limit() / 2;
    let greedy = |nonce, gas| envelope_with(1, nonce, |f| f.gas_limit = gas);
    assert_eq!(promised(&running, &greedy(8, half + 1)).await, terms);
    assert_eq!(promised(&running, &greedy(9, half)).await, Ok(6), "the next one has room for it");
    running.handle.shutdown().await;
}

/// Rule P-4.
#[tokio::test]
async fn a_promise_is_kept_by_what_its_payer_caused() {
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    let running = world.start_funded(&[1, 2]).await;
    running.send(&envelope(2, 1)).await.unwrap();
    running.sealed(1).await;
    let envelope = envelope(1, 100);
    let by = promised(&running, &envelope).await.unwrap();
    // The payer forces in another envelope that uses the same fee nonce, and the promised one behind it: what an early
    // batch says of that keeps no promise, for it might be older.
    let other = envelope_with(1, 100, |f| f.gas_limit = 50_000);
    let items = [other.encode(), envelope.encode()];
    world.l1.force_many(2, |index, at| ForcedEntry::envelope(index, items[index as usize].clone(), at));
    running.seen_l1().await;
    for number in 1..by {
        running.certify(number).await;
        // What waits has a header made now and then.
        world.clock.advance(13_000);
        running.sealed(number + 1).await;
    }
    running.certify(by).await;
    running.certified(by).await;
    let spoilt = Some("fee_nonce_used".to_owned());
    let mut stands_in = Vec::new();
    for number in 1..=by {
        let verdicts = running.batch(number).await.verdicts;
        stands_in.extend(verdicts.contains(&spoilt).then_some(number));
    }
    assert!(
        stands_in.len() == 2 && stands_in[0] < by && stands_in[1] == by,
        "{stands_in:?}, promised for {by}"
    );
    running.handle.shutdown().await;
}

/// A header that L1 makes above its head bars what was promised, and excuses promises up to 4,096 numbers above that head.
/// Rule G-3.
#[tokio::test]
async fn nothing_is_promised_beyond_what_a_header_of_l1s_excuses() {
    let epochs =
        |last| vec![committee().epoch(EPOCH, 1, last), committee().epoch(EPOCH + 1, last + 1, LAST_NUMBER)];
    for (last, promised) in [(30, true), (4_094, false)] {
        let world = World::with_epochs(epochs(last), |config, _| config.posting.enabled = true);
        let running = world.start_funded(&[1]).await;
        let envelope = envelope_with(1, 1, |fields| {
            (fields.epoch, fields.max_fee) = (EPOCH + 1, u128::from(u64::MAX));
            fields.expiry = 4_098.min(last + 1_000);
        });
        let answer = running.send_bytes(envelope.encode(), true).await;
        match (promised, answer) {
            (true, Ok(_)) => {}
            (false, Err(refusal)) => assert_eq!(refusal.reason, "promise_capacity"),
            (_, other) => panic!("{other:?}"),
        }
        running.handle.shutdown().await;
    }
}

/// The head is the last number of its epoch. The next one's certificates do not count yet, and until then it can be taken
/// back whole (E-9).
#[tokio::test]
async fn nothing_is_promised_for_an_epoch_that_does_not_count_when_its_turn_has_come() {
    let next = Epoch { counts_from: 1_000, ..committee().epoch(EPOCH + 1, 2, LAST_NUMBER) };
    let world = World::with_epochs(vec![committee().epoch(EPOCH, 1, 1), next], |_, _| {});
    let running = world.start_funded(&[1]).await;
    let envelope = envelope_with(1, 1, |fields| fields.epoch = EPOCH + 1);
    assert_eq!(promised(&running, &envelope).await, refused("promise_terms", false));
    running.handle.shutdown().await;
}
