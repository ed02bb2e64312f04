//! One sequencer follows another: the earlier one stops in time, the next one begins above all that was signed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;

use blindfold_chain::FallbackHeader;
use blindfold_kit::{FaultyStore, MEMBERS, envelope, envelope_with, epoch, payer, sequencer_key};
use blindfold_protocol::{
    B256, Canonical, Certificate, Envelope, SealedBatch, SequencerChange, SigningKey, limits::HANDOVER_BLOCKS,
};
use blindfold_rpc::{BlindApiClient, RunningRole};
use blindfold_sequencer::{Clock, HeldBatch, StartError};
use blindfold_store::PendingEnvelope;
use common::{Running, World};

fn next_key() -> Arc<SigningKey> {
    Arc::new(payer(10))
}

/// L1 names the next key from a block on that lies this far ahead. Gives the block.
fn name_next(world: &World, ahead: u64) -> u64 {
    let from_block = *world.l1.finalized.lock() + ahead;
    *world.l1.sequencers.lock() = vec![
        SequencerChange { from_block: 0, sequencer: sequencer_key().address() },
        SequencerChange { from_block, sequencer: next_key().address() },
    ];
    from_block
}

/// Waits until the readiness says so.
async fn reason(running: &Running<'_>, part: &str) {
    running
        .eventually(part, async || {
            running.handle.readiness().reasons().values().any(|reason| reason.contains(part))
        })
        .await;
}

/// Rule K-4.
#[tokio::test]
async fn the_earlier_sequencer_seals_what_it_admitted_and_stops() {
    // A second passes only when this test says so, and what waits is sealed then.
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    let running = world.start_funded(&[1, 2]).await;
    let from = name_next(&world, 3);
    let sent = envelope(1, 1);
    running.send(&sent).await.unwrap();
    world.l1.advance(3);
    reason(&running, "nothing is admitted any more").await;
    assert_eq!(running.reason(&envelope(2, 1)).await, "out_of_office");
    // Header 1 lacked its certificate all the while.
    running.certify(1).await;
    running.sealed(2).await;
    let header = running.batch(2).await.sealed.decode().unwrap().header;
    assert!(header.l1_origin_number < from, "{} from {from} on", header.l1_origin_number);
    assert_eq!(running.batch(2).await.verdicts, [None]);

    world.l1.advance(HANDOVER_BLOCKS / 2);
    reason(&running, "another sequencer seals").await;
    world.clock.advance(60_000);
    assert_eq!(running.handle.tracker().head().number, 2);
    running.handle.shutdown().await;
}

/// Rule K-6.
#[tokio::test]
async fn the_next_sequencer_begins_above_what_the_earlier_one_signed() {
    let mut world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    running.certify_through(2).await;
    running.held_by(&[1, 2, 3, 4], 2).await;
    let (head, hash) = (2, running.batch(2).await.hash);
    let from = name_next(&world, 3);
    running.handle.shutdown().await;

    // Another machine, with another key and an empty folder.
    world.folder = tempfile::tempdir().unwrap();
    world.config.data_dir = world.folder.path().to_path_buf();
    world.key = next_key();
    let running = world.start().await;
    reason(&running, "begins to seal when L1 block").await;
    assert_eq!(running.reason(&envelope(2, 1)).await, "recovering");
    // It has followed meanwhile.
    assert_eq!(running.batch(head).await.hash, hash);
    world.l1.advance(3 + HANDOVER_BLOCKS * 3 / 2 - 1);
    reason(&running, "begins to seal when L1 block").await;
    world.l1.advance(1);
    running.send(&envelope(2, 1)).await.unwrap();
    running.sealed(head + 1).await;
    let sealed = running.batch(head + 1).await.sealed.decode().unwrap();
    assert!(sealed.header.l1_origin_number >= from && sealed.header.parent_hash == hash);
    let signer = sealed.signed_header().signer(&world.chain.deployment).unwrap();
    assert_eq!(signer, next_key().address());
    running.certify(head + 1).await;
    running.certified(head + 1).await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_key_that_l1_does_not_name_starts_nothing() {
    let mut world = World::new();
    name_next(&world, 3);
    world.key = Arc::new(payer(7));
    let store = world.store().await;
    let Err(error) = world.try_start(store).await else { panic!("it started") };
    let StartError::WrongKey { key, named } = &error else { panic!("{error}") };
    assert_eq!((*key, *named), (payer(7).address(), sequencer_key().address()));
}

/// What a promise names must lie before the end of the sequencer's time, however finality jumps.
#[tokio::test]
async fn nothing_is_promised_shortly_before_the_end() {
    let world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    running.send_bytes(envelope(1, 1).encode(), true).await.unwrap();
    name_next(&world, HANDOVER_BLOCKS);
    world.l1.advance(1);
    running
        .eventually("a refusal", async || {
            let refusal = running.send_bytes(envelope(2, 2).encode(), true).await;
            refusal.is_err_and(|refusal| refusal.reason == "promise_terms")
        })
        .await;
    running.send(&envelope(2, 3)).await.unwrap();
    running.handle.shutdown().await;
}

/// A sequencer that ran on while another one sealed, and is named again, begins above what that one signed.
#[tokio::test]
async fn who_is_named_again_asks_anew() {
    let world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    running.certify_through(1).await;
    running.held_by(&[1, 2, 3, 4], 1).await;
    let x = name_next(&world, 3);
    world.l1.advance(3 + HANDOVER_BLOCKS / 2);
    reason(&running, "another sequencer seals").await;
    running
        .eventually("an end of the recovery", async || {
            running.reason(&envelope(1, 1)).await == "out_of_office"
        })
        .await;
    let y = *world.l1.finalized.lock() + 3 * HANDOVER_BLOCKS;
    world.l1.sequencers.lock().push(SequencerChange { from_block: y, sequencer: sequencer_key().address() });
    world.l1.advance(3 * HANDOVER_BLOCKS + HANDOVER_BLOCKS * 3 / 2);
    let envelope = envelope(1, 1);
    running.eventually("admission", async || running.send(&envelope).await.is_ok()).await;
    running.sealed(2).await;
    let header = running.batch(2).await.sealed.decode().unwrap().header;
    assert!(header.l1_origin_number >= y && y > x);
    running.handle.shutdown().await;
}

/// Another machine, with another key and an empty folder.
fn move_house(world: &mut World, key: Arc<SigningKey>) {
    world.folder = tempfile::tempdir().unwrap();
    world.config.data_dir = world.folder.path().to_path_buf();
    world.key = key;
}

/// Of two headers of an earlier sequencer the certified one counts, whichever is heard of first.
#[tokio::test]
async fn a_certified_header_takes_the_place_of_one_that_a_member_showed_first() {
    let mut world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    running.certify_through(1).await;
    running.held_by(&[1, 2, 3, 4], 1).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    let stray = running.batch(2).await;
    running.handle.shutdown().await;
    // Whoever has the key signs another second header, and that one is certified, with one more above it.
    move_house(&mut world, sequencer_key());
    let running = world.start().await;
    running.send(&envelope(2, 1)).await.unwrap();
    running.sealed(2).await;
    let certified = running.batch(2).await.hash;
    assert_ne!(certified, stray.hash);
    running.send(&envelope(2, 2)).await.unwrap();
    running.sealed(3).await;
    let head = running.batch(3).await.hash;
    // The certificate of the third covers the second.
    running.certify(3).await;
    running.certified(3).await;
    running.held_by(&[2, 3, 4], 3).await;
    name_next(&world, 3);
    running.handle.shutdown().await;
    let stray = HeldBatch { sealed: stray.sealed.decode().unwrap(), certificate: None };
    world.committee.held.lock().get_mut(&1).unwrap().insert(2, stray);

    move_house(&mut world, next_key());
    let running = world.start().await;
    world.l1.advance(3 + HANDOVER_BLOCKS * 2);
    running.send(&envelope(1, 2)).await.unwrap();
    running.sealed(4).await;
    assert_eq!(running.batch(2).await.hash, certified);
    assert_eq!(running.batch(4).await.sealed.decode().unwrap().header.parent_hash, head);
    running.handle.shutdown().await;
}

/// The first key signs headers from 2 on, as many as there are envelopes, that nobody hears of; the next one's second is
/// certified; the first key is named again, on its first disk. The hash of what is certified, and what was lost.
async fn named_again_after_lost_headers(world: &mut World, lost: &[Envelope]) -> (B256, Vec<SealedBatch>) {
    let running = world.start_funded(&[1, 2]).await;
    running.certify_through(1).await;
    running.held_by(&[1, 2, 3, 4], 1).await;
    let mut lost_headers = Vec::new();
    for (number, envelope) in (2..).zip(lost) {
        running.send(envelope).await.unwrap();
        running.sealed(number).await;
        lost_headers.push(running.batch(number).await.sealed.decode().unwrap());
    }
    name_next(world, 3);
    running.handle.shutdown().await;
    let first_house = (std::mem::replace(&mut world.folder, tempfile::tempdir().unwrap()), sequencer_key());
    move_house(world, next_key());
    let running = world.start().await;
    world.l1.advance(3 + HANDOVER_BLOCKS * 2);
    running.send(&envelope(2, 1)).await.unwrap();
    running.sealed(2).await;
    let theirs = running.batch(2).await.hash;
    running.certify(2).await;
    running.certified(2).await;
    running.held_by(&[1, 2, 3, 4], 2).await;
    let y = *world.l1.finalized.lock() + 3;
    world.l1.sequencers.lock().push(SequencerChange { from_block: y, sequencer: sequencer_key().address() });
    running.handle.shutdown().await;
    (world.folder, world.key) = first_house;
    world.config.data_dir = world.folder.path().to_path_buf();
    (theirs, lost_headers)
}

/// Starts where the second header is certified; the third is sealed above it, with this envelope in it.
async fn seals_above<'a>(world: &'a World, envelope: &Envelope, second: B256) -> Running<'a> {
    let running = world.start().await;
    world.l1.advance(3 + HANDOVER_BLOCKS * 2);
    running.eventually("sealing", async || running.send(envelope).await.is_ok()).await;
    running.sealed(3).await;
    assert_eq!(running.batch(2).await.hash, second);
    running
}

/// Waits until an envelope of a header that gave way stands in a later one.
async fn sealed_again(running: &Running<'_>, envelope: &Envelope) {
    running
        .eventually("what stood in the lost header to be sealed again", async || {
            let receipt = BlindApiClient::get_receipt(&running.client, envelope.id()).await.unwrap();
            receipt.is_some_and(|receipt| receipt.number.is_some_and(|number| number > 2))
        })
        .await;
}

/// A sequencer that is named again gives up what it alone had signed for what the committee certified meanwhile.
#[tokio::test]
async fn who_is_named_again_gives_its_own_lost_header_up() {
    let mut world = World::new();
    let displaced = envelope(1, 1);
    let (theirs, _) = named_again_after_lost_headers(&mut world, std::slice::from_ref(&displaced)).await;
    let running = seals_above(&world, &envelope(1, 2), theirs).await;
    sealed_again(&running, &displaced).await;
    running.handle.shutdown().await;
}

/// The first member that is asked shows the right header with other items: ours gave way by then.
#[tokio::test]
async fn what_gave_way_to_altered_items_is_sealed_again() {
    let mut world = World::new();
    let displaced = envelope(1, 1);
    let (theirs, _) = named_again_after_lost_headers(&mut world, std::slice::from_ref(&displaced)).await;
    world
        .committee
        .held
        .lock()
        .get_mut(&1)
        .unwrap()
        .get_mut(&2)
        .unwrap()
        .sealed
        .items
        .push(b"altered".to_vec());
    let running = seals_above(&world, &envelope(1, 2), theirs).await;
    sealed_again(&running, &displaced).await;
    running.handle.shutdown().await;
}

/// What it signed above the header that gave way binds: another one for that number would cost the bond.
#[tokio::test]
async fn what_was_signed_above_a_lost_header_waits_for_l1() {
    let mut world = World::new();
    let lost = [envelope(1, 1), envelope(1, 2)];
    let (theirs, lost) = named_again_after_lost_headers(&mut world, &lost).await;
    // One member has what was lost and nothing else: that is known, and no second header.
    let held = lost.into_iter().map(|sealed| (sealed.header.number, HeldBatch { sealed, certificate: None }));
    world.committee.held.lock().get_mut(&1).unwrap().extend(held);
    let running = world.start().await;
    world.l1.advance(3 + HANDOVER_BLOCKS * 2);
    reason(&running, "this key signed a header for number 3, and the certified chain ends at 2").await;
    assert_eq!(running.batch(2).await.hash, theirs);
    let parent = running.handle.tracker().with_state(Clone::clone);
    running.handle.shutdown().await;
    world.close_disk().await;

    // After the posting deadline anybody has L1 make the third, and sealing goes on above it.
    let epoch = epoch();
    let header = parent.l1_header::<Vec<u8>>(parent.head().timestamp_ms + 10_000, &[], &epoch).unwrap();
    world.l1.l1_headers.lock().push(FallbackHeader {
        header,
        items: vec![],
        l1_block: *world.l1.finalized.lock(),
    });
    let running = world.start().await;
    let next = envelope_with(2, 2, |fields| fields.generation = 1);
    running.eventually("sealing", async || running.send(&next).await.is_ok()).await;
    running.sealed(4).await;
    assert_eq!(running.batch(2).await.hash, theirs);
    running.handle.shutdown().await;
}

/// A certificate of another header says nothing of one that is stamped ahead of its time.
#[tokio::test]
async fn a_header_from_the_future_needs_a_certificate_of_its_own() {
    let mut world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    running.certify_through(1).await;
    running.held_by(&[1, 2, 3, 4], 1).await;
    let forged = running.batch(1).await.certificate.unwrap().decode().unwrap();
    let now_ms = world.clock.now_ms();
    world.clock.advance(3_600_000);
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    let ahead = running.batch(2).await;
    let sealed = ahead.sealed.decode().unwrap();
    running.handle.shutdown().await;
    let certificate = Some(Certificate { number: 2, header_hash: ahead.hash, ..forged });
    world.committee.held.lock().get_mut(&1).unwrap().insert(2, HeldBatch { sealed, certificate });
    name_next(&world, 3);
    world.clock.set(now_ms);
    move_house(&mut world, next_key());
    let running = world.start().await;
    world.l1.advance(3 + HANDOVER_BLOCKS * 2);
    running.send(&envelope(2, 1)).await.unwrap();
    running.sealed(2).await;
    let header = running.batch(2).await;
    assert_ne!(header.hash, ahead.hash);
    assert!(header.timestamp_ms < ahead.timestamp_ms);
    running.handle.shutdown().await;
}

/// The header at these members, without a certificate.
fn show(world: &World, members: &[u16], shown: &[&SealedBatch]) {
    let mut held = world.committee.held.lock();
    for member in members {
        for sealed in shown {
            let batch = HeldBatch { sealed: (*sealed).clone(), certificate: None };
            held.get_mut(member).unwrap().insert(sealed.header.number, batch);
        }
    }
}

/// A late member holds what we lost and what we signed above it, and the disk has neither: the second one binds, too.
#[tokio::test]
async fn what_a_late_member_holds_above_a_lost_header_binds_on_an_empty_disk() {
    let mut world = World::new();
    let lost = [envelope(1, 1), envelope(1, 2)];
    let (theirs, lost) = named_again_after_lost_headers(&mut world, &lost).await;
    let [second, third] = lost.as_slice() else { panic!("two") };
    show(&world, &[1], &[second]);
    show(&world, &[4], &[second, third]);
    move_house(&mut world, sequencer_key());
    let running = world.start().await;
    world.l1.advance(3 + HANDOVER_BLOCKS * 2);
    reason(&running, "this key signed a header for number 3, and the certified chain ends at 2").await;
    assert_eq!(running.batch(2).await.hash, theirs);
    running.handle.shutdown().await;
}

/// What gave way is no second header, whoever still holds it.
#[tokio::test]
async fn a_lost_header_at_one_member_stops_no_start_from_an_empty_disk() {
    let mut world = World::new();
    let lost = [envelope(1, 1)];
    let (theirs, lost) = named_again_after_lost_headers(&mut world, &lost).await;
    show(&world, &[4], &[&lost[0]]);
    move_house(&mut world, sequencer_key());
    seals_above(&world, &envelope(2, 2), theirs).await.handle.shutdown().await;
}

/// The first member that is asked shows what an earlier sequencer left, in whose place ours is certified.
#[tokio::test]
async fn what_an_earlier_sequencer_left_makes_no_second_header_of_ours() {
    let mut world = World::new();
    let lost = [envelope(1, 1)];
    let (ours, lost) = named_again_after_lost_headers(&mut world, &lost).await;
    show(&world, &[1], &[&lost[0]]);
    move_house(&mut world, next_key());
    let running = world.start().await;
    world.l1.advance(3 + HANDOVER_BLOCKS * 2);
    running.eventually("the certified one", async || running.batch(2).await.hash == ours).await;
    running.handle.shutdown().await;
}

/// The same before ours is certified.
#[tokio::test]
async fn what_an_earlier_sequencer_left_gives_way_to_ours_without_a_certificate() {
    let mut world = World::new();
    let lost = [envelope(1, 1)];
    let (ours, lost) = named_again_after_lost_headers(&mut world, &lost).await;
    for held in world.committee.held.lock().values_mut() {
        held.get_mut(&2).unwrap().certificate = None;
    }
    show(&world, &[1], &[&lost[0]]);
    move_house(&mut world, next_key());
    let running = world.start().await;
    running.eventually("ours", async || running.batch(2).await.hash == ours).await;
    running.handle.shutdown().await;
}

/// One member shows a lost header of ours, and makes up others above it without end.
#[tokio::test]
async fn headers_made_up_above_a_lost_one_hold_nobody_up() {
    let mut world = World::new();
    let lost = [envelope(1, 1)];
    let (theirs, lost) = named_again_after_lost_headers(&mut world, &lost).await;
    show(&world, &[1], &[&lost[0]]);
    world.committee.boasts.lock().insert(1, u64::MAX);
    let mut forged = HeldBatch { sealed: lost[0].clone(), certificate: None };
    forged.sealed.signature = blindfold_protocol::Signature65([1; 65]);
    world.committee.forges.lock().insert(1, forged);
    seals_above(&world, &envelope(2, 2), theirs).await.handle.shutdown().await;
}

/// One member shows what this disk has and, above it, what we signed above the certified one: that is no second header.
#[tokio::test]
async fn a_header_above_another_ones_certified_header_is_no_second_one() {
    let mut world = World::new();
    let lost = [envelope(1, 1)];
    let (theirs, lost) = named_again_after_lost_headers(&mut world, &lost).await;
    let first_house = std::mem::replace(&mut world.folder, tempfile::tempdir().unwrap());
    world.config.data_dir = world.folder.path().to_path_buf();
    let running = seals_above(&world, &envelope(2, 2), theirs).await;
    running.held_by(&[1, 2, 3, 4], 3).await;
    let third = running.batch(3).await.hash;
    running.handle.shutdown().await;

    world.folder = first_house;
    world.config.data_dir = world.folder.path().to_path_buf();
    show(&world, &[1], &[&lost[0]]);
    let running = world.start().await;
    running.eventually("the third", async || running.handle.tracker().head().number >= 3).await;
    assert_eq!(running.batch(2).await.hash, theirs);
    assert_eq!(running.batch(3).await.hash, third);
    running.handle.shutdown().await;
}

/// The first key is in office again, on the disk with its lost header, and no member answers yet.
async fn in_office_again(world: &mut World, displaced: &Envelope) {
    named_again_after_lost_headers(world, std::slice::from_ref(displaced)).await;
    world.l1.advance(3 + HANDOVER_BLOCKS * 2);
    world.committee.silent.lock().extend(1..=MEMBERS);
}

/// The first header that is sealed again has what stood in the lost one: promised for its number, it would cost the bond.
#[tokio::test]
async fn the_first_header_has_what_stood_in_the_lost_one() {
    let mut world = World::new();
    let displaced = envelope(1, 1);
    in_office_again(&mut world, &displaced).await;
    // Nothing else takes back what gave way.
    world.config.l1_poll_ms = 600_000;
    let running = world.start().await;
    reason(&running, "0 of 3 members").await;
    world.committee.silent.lock().clear();
    running.sealed(3).await;
    assert!(running.batch(3).await.sealed.decode().unwrap().items.contains(&displaced.encode()));
    running.handle.shutdown().await;
}

/// The look at L1 is taking back what gave way, and takes long: nothing is sealed before it is done.
#[tokio::test]
async fn nothing_is_sealed_while_what_gave_way_is_being_taken_back() {
    let mut world = World::new();
    let displaced = envelope(1, 1);
    in_office_again(&mut world, &displaced).await;
    let store = FaultyStore::new(world.store().await);
    let running = world.try_start(store.clone()).await.unwrap();
    reason(&running, "0 of 3 members").await;
    running.seen_l1().await;
    store.hold("pending_envelopes");
    // Two are too few to seal, and what they show is taken.
    world.committee.silent.lock().retain(|member| *member > 2);
    store.somebody_waits().await;
    world.committee.silent.lock().clear();
    let early = tokio::time::timeout(std::time::Duration::from_secs(1), running.send(&envelope(2, 2))).await;
    if early.is_ok() {
        running.sealed(3).await;
    }
    store.release();
    running.sealed(3).await;
    assert!(running.batch(3).await.sealed.decode().unwrap().items.contains(&displaced.encode()));
    running.handle.shutdown().await;
}

/// What waits for a batch is acknowledged: it stays on disk while what gave way is taken back beside it.
#[tokio::test]
async fn what_waits_stays_on_disk_while_what_gave_way_is_taken_back() {
    let mut world = World::new();
    let displaced = envelope(1, 1);
    in_office_again(&mut world, &displaced).await;
    let waiting = envelope(2, 2);
    let (id, bytes) = (waiting.id(), waiting.encode());
    let store = world.store().await;
    store.put_envelope(PendingEnvelope { id, bytes, arrived_ms: 1, seal_by: None }).await.unwrap();
    let running = world.try_start(Arc::clone(&store)).await.unwrap();
    reason(&running, "0 of 3 members").await;
    // Two are too few to seal, and what they show is taken.
    world.committee.silent.lock().retain(|member| *member > 2);
    let pending = async || running.client.get_status().await.unwrap().pending_envelopes;
    running.eventually("what stood in the lost header", async || pending().await == Some(2)).await;
    let on_disk: Vec<B256> =
        store.pending_envelopes().await.unwrap().into_iter().map(|envelope| envelope.id).collect();
    assert!(on_disk.contains(&id) && on_disk.contains(&displaced.id()), "{on_disk:?}");
    assert_eq!(store.envelope_outcome(id).await.unwrap(), None);
    running.handle.abort().await;
    drop(store);

    world.committee.silent.lock().clear();
    let running = world.start().await;
    sealed_again(&running, &displaced).await;
    sealed_again(&running, &waiting).await;
    running.handle.shutdown().await;
}

/// The earlier sequencer signed two headers of one number, and keeps the certificate of the one that three members voted for.
/// The other one, at the member that is asked first, does not keep the next sequencer out.
#[tokio::test]
async fn a_header_at_one_member_does_not_stand_in_the_way_of_what_all_others_hold() {
    let mut world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    running.certify_through(1).await;
    running.held_by(&[1, 2, 3, 4], 1).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    let stray = running.batch(2).await.sealed.decode().unwrap();
    running.handle.shutdown().await;
    move_house(&mut world, sequencer_key());
    let running = world.start().await;
    running.send(&envelope(2, 1)).await.unwrap();
    running.sealed(2).await;
    let voted_for = running.batch(2).await.hash;
    assert_ne!(voted_for, stray.header.hash());
    running.held_by(&[2, 3, 4], 2).await;
    name_next(&world, 3);
    running.handle.shutdown().await;
    show(&world, &[1], &[&stray]);

    move_house(&mut world, next_key());
    let running = world.start().await;
    world.l1.advance(3 + HANDOVER_BLOCKS * 2);
    running.send(&envelope(1, 2)).await.unwrap();
    running.sealed(3).await;
    assert_eq!(running.batch(2).await.hash, voted_for);
    running.handle.shutdown().await;
}

/// The disk fails for a moment between taking the stray header back and reading the state again. It is well afterwards: the
/// next attempt takes what all others hold, or the sequencer ends and a new start does.
#[tokio::test]
async fn a_disk_that_fails_for_a_moment_while_giving_way_to_many_keeps_nobody_out() {
    let mut world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    running.certify_through(1).await;
    running.held_by(&[1, 2, 3, 4], 1).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    let stray = running.batch(2).await.sealed.decode().unwrap();
    running.handle.shutdown().await;
    move_house(&mut world, sequencer_key());
    let running = world.start().await;
    running.send(&envelope(2, 1)).await.unwrap();
    running.sealed(2).await;
    let voted_for = running.batch(2).await.hash;
    running.held_by(&[2, 3, 4], 2).await;
    name_next(&world, 3);
    running.handle.shutdown().await;
    show(&world, &[1], &[&stray]);

    move_house(&mut world, next_key());
    world.committee.silent.lock().extend(1..=MEMBERS);
    world.l1.advance(3 + HANDOVER_BLOCKS * 2);
    let store = FaultyStore::new(world.store().await);
    let running = world.try_start(store.clone()).await.unwrap();
    reason(&running, "0 of 3 members").await;
    store.fail("ledger_head", blindfold_store::StoreError::Failed("a moment".into()));
    world.committee.silent.lock().clear();
    running.eventually("the fault", async || store.failures() > 0).await;
    store.heal();
    let there =
        async || running.client.get_batch(2).await.unwrap().is_some_and(|batch| batch.hash == voted_for);
    let taken_or_ended = async {
        tokio::select! {
            () = running.eventually("the second", there) => {}
            _ = running.handle.failed() => {}
        }
    };
    let done = tokio::time::timeout(std::time::Duration::from_secs(50), taken_or_ended).await;
    assert!(
        done.is_ok(),
        "head {:?}, disk {:?}, reasons {:?}",
        running.handle.tracker().head().number,
        blindfold_store::Store::batch(store.as_ref(), 2).await.unwrap().map(|record| record.hash),
        running.handle.readiness().reasons()
    );
    running.handle.shutdown().await;
}

/// The same where the others have a certificate.
#[tokio::test]
async fn a_disk_that_fails_for_a_moment_while_giving_way_to_a_certificate_keeps_nobody_out() {
    let mut world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    running.certify_through(1).await;
    running.held_by(&[1, 2, 3, 4], 1).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    let stray = running.batch(2).await.sealed.decode().unwrap();
    running.handle.shutdown().await;
    move_house(&mut world, sequencer_key());
    let running = world.start().await;
    running.send(&envelope(2, 1)).await.unwrap();
    running.sealed(2).await;
    let voted_for = running.batch(2).await.hash;
    running.certify_through(2).await;
    running.held_by(&[2, 3, 4], 2).await;
    name_next(&world, 3);
    running.handle.shutdown().await;
    show(&world, &[1], &[&stray]);

    move_house(&mut world, next_key());
    world.committee.silent.lock().extend(1..=MEMBERS);
    world.l1.advance(3 + HANDOVER_BLOCKS * 2);
    let store = FaultyStore::new(world.store().await);
    let running = world.try_start(store.clone()).await.unwrap();
    reason(&running, "0 of 3 members").await;
    store.fail("ledger_head", blindfold_store::StoreError::Failed("a moment".into()));
    world.committee.silent.lock().clear();
    running.eventually("the fault", async || store.failures() > 0).await;
    store.heal();
    let there =
        async || running.client.get_batch(2).await.unwrap().is_some_and(|batch| batch.hash == voted_for);
    let taken_or_ended = async {
        tokio::select! {
            () = running.eventually("the second", there) => {}
            _ = running.handle.failed() => {}
        }
    };
    let done = tokio::time::timeout(std::time::Duration::from_secs(50), taken_or_ended).await;
    assert!(
        done.is_ok(),
        "head {:?}, disk {:?}, reasons {:?}",
        running.handle.tracker().head().number,
        blindfold_store::Store::batch(store.as_ref(), 2).await.unwrap().map(|record| record.hash),
        running.handle.readiness().reasons()
    );
    running.handle.shutdown().await;
}
