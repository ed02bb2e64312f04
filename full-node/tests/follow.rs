//! Following the feed: what is true is executed, what is false is refused and counted, and neither stops the node.

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use blindfold_chain::announce;
use blindfold_full_node::{
    ConfigError, FullNode, FullNodeDeps, StartError,
    limits::{HINTS_PATIENCE_MS, MAX_MEMBER_TIMEOUT_MS, MAX_PARKED_ENTRIES, MIN_DECRYPTION_PAUSE_MS},
};
use blindfold_kit::*;
use blindfold_protocol::{B256, HintEntry, Release, limits::MAX_UNCERTIFIED_RUN};
use blindfold_rpc::jsonrpsee::core::client::ClientT;
use blindfold_rpc::jsonrpsee::rpc_params;
use blindfold_rpc::limits::CLIENT_REQUEST_TIMEOUT_MS;
use blindfold_rpc::types::{BlockNotification, EnvelopeState};
use blindfold_rpc::{
    BlindApiClient, Encoded, Feed, FeedConfig, FeedEvent, FeedItem, ReceivedError, RunningRole,
    SequencerUrls, Topic,
};
use blindfold_runtime::now;
use blindfold_store::StoreError;
use common::*;
use tokio::time::timeout;

#[tokio::test]
async fn what_the_feed_brings_is_verified_executed_and_served() {
    let world = World::new().await;
    let node = world.start().await;
    let mut feed =
        Feed::start(format!("ws://{}", node.rpc_addr()), Topic::ALL.to_vec(), FeedConfig::default());
    assert_eq!(within("our feed", feed.next()).await, Some(FeedItem::Connected));

    let (good, bad) = (envelope(1, 1), malformed(1, 2));
    let one = world.sequencer.seal(0, &[good.clone(), bad.clone(), good.clone()]).await;
    world.sequencer.certify(&one).await;
    world.sequencer.hint(&one).await;
    let two = world.sequencer.seal(1_000, &[]).await;
    world.sequencer.certify(&two).await;
    world.sequencer.announce_block(1).await;
    executed(&node, 1).await;
    eventually("a comparison", || node.counters().blocks_compared.get() > 0).await;

    let counts = node.counters().by_name();
    assert_eq!(
        (counts["headers_verified"], counts["certificates_verified"], counts["hints_verified"]),
        (2, 2, 2)
    );
    for name in ["headers_rejected", "bad_certificates_rejected", "bad_hints_rejected", "block_divergences"] {
        assert_eq!(counts[name], 0, "{name}");
    }
    let client = client(node.rpc_addr());
    let receipt = client.get_receipt(good.id()).await.unwrap().unwrap();
    assert_eq!((receipt.state, receipt.block_number), (EnvelopeState::Executed, Some(1)));
    assert_eq!(client.get_receipt(bad.id()).await.unwrap().unwrap().state, EnvelopeState::Malformed);
    let status = client.get_status().await.unwrap();
    assert_eq!((status.role.as_str(), status.certified, status.block.number), ("full_node", 2, 1));
    assert_eq!(status.counters["hints_verified"], 2);
    assert_eq!(node.executor().status().block, world.sequencer.machine.executor.status().block);

    // Wallets get everything here, estimates too, but no sends.
    let called: serde_json::Value = client.request("eth_call", rpc_params![{}]).await.unwrap();
    assert_eq!(called["method"], "eth_call");
    let sent = client.request::<serde_json::Value, _>("eth_sendRawTransaction", rpc_params!["0x00"]).await;
    assert_eq!(ReceivedError::from(sent.unwrap_err()).reason(), "plaintext_refused");

    // And its own subscribers hear of all of it.
    let mut heard = std::collections::BTreeSet::new();
    while heard.len() < 5 {
        if let Some(FeedItem::Event(event)) = within("an event", feed.next()).await {
            heard.insert(event.topic());
        }
    }
    node.shutdown().await;
}

/// Rule J-5.
#[tokio::test]
async fn the_chain_goes_on_from_the_sequencer_that_takes_over() {
    let mut world = World::new().await;
    let standby = Standby::start(&world.sequencer.url()).await;
    world.config.sequencer_urls = SequencerUrls::new([world.sequencer.url(), standby.url()]);
    let node = world.start().await;
    let one = world.sequencer.seal(0, &[envelope(1, 1)]).await;
    world.sequencer.certify(&one).await;
    certified_through(&node, 1).await;
    // It is followed again, at another address; what it says while nobody hears it is fetched.
    let sequencer = world.sequencer;
    sequencer.hint(&one).await;
    let two = sequencer.sealing.seal_envelopes(1_000, &[envelope(2, 1)]).await;
    world.sequencer = sequencer.replaced_by(standby).await;
    world.sequencer.sealing.certify(&two).await;
    certified_through(&node, 2).await;
    world.sequencer.followed().await;
    world.sequencer.hint(&two).await;
    let three = world.sequencer.seal(2_000, &[]).await;
    world.sequencer.certify(&three).await;
    executed(&node, 2).await;
    node.shutdown().await;
}

#[tokio::test]
async fn a_pruned_node_goes_on_says_what_it_forgot_and_takes_nothing_of_it_back() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.sqlite");
    let node = world.start_on(&path).await;
    node.tracker().store().keep_ledgers_from(0).await.unwrap();
    let (mut sealed, mut certificates, mut hints) = (Vec::new(), Vec::new(), Vec::new());
    let next = async |number: u64| {
        let one = world.sequencer.seal((number - 1) * 1_000, &[envelope(1, number)]).await;
        let certificate = world.sequencer.certify(&one).await;
        let (_, of_one) = world.sequencer.hint(&one).await;
        (one, certificate, of_one)
    };
    for number in 1..=4 {
        let (one, certificate, of_one) = next(number).await;
        sealed.push(one);
        certificates.push(certificate);
        hints.push(of_one);
    }
    executed(&node, 3).await;
    let store = node.tracker().store();
    store.keep_ledgers_from(3).await.unwrap();
    let step = store.prune(u64::MAX, 0).await.unwrap();
    assert_eq!((step.batches, step.through, step.more), (2, 2, false));
    let before = node.counters().by_name();
    // Whoever sends it again, or another header in its place, changes nothing.
    world.sequencer.publish(&announce::header(&sealed[0].batch, sealed[0].hash, &sealed[0].verdicts));
    world.sequencer.publish(&announce::certificate(&certificates[0]));
    world.sequencer.publish(&announce::hints(&hints[0]));
    let other = resigned(&sealed[1].batch, |header| header.timestamp_ms += 1);
    world.sequencer.publish(&announce::header(&other, other.header.hash(), &sealed[1].verdicts));
    next(5).await;
    executed(&node, 4).await;
    let after = node.counters().by_name();
    for name in ["bad_certificates_rejected", "bad_hints_rejected", "faulty_members"] {
        assert_eq!(after[name], before[name], "{name}");
    }

    let forgotten = async |node: &FullNode| {
        let client = client(node.rpc_addr());
        for number in [1, 2] {
            let batch = ReceivedError::from(client.get_batch(number).await.unwrap_err());
            let hints = ReceivedError::from(client.get_hints(number).await.unwrap_err());
            assert_eq!((batch.reason(), hints.reason()), ("pruned", "pruned"));
            assert!(batch.to_string().contains("kept from 3 on") && !batch.retry(), "{batch}");
        }
        assert_eq!(client.get_batch(3).await.unwrap().unwrap().hash, sealed[2].hash);
        assert_eq!(client.get_batch(9_999).await.unwrap(), None);
        assert_eq!(client.get_receipt(envelope(1, 1).id()).await.unwrap(), None);
        let kept = client.get_receipt(envelope(1, 3).id()).await.unwrap().unwrap();
        assert_eq!(kept.state, EnvelopeState::Executed);
    };
    forgotten(&node).await;
    drop(node);
    // No start needs it either.
    let node = world.start_on(&path).await;
    forgotten(&node).await;
    next(6).await;
    executed(&node, 5).await;
    node.shutdown().await;
}

#[tokio::test]
async fn a_forged_hint_is_refused_and_a_true_copy_fetched() {
    let world = World::new().await;
    let node = world.start().await;
    let one = world.sequencer.seal(0, &[envelope(1, 1), envelope(1, 2)]).await;
    world.sequencer.certify(&one).await;
    certified_through(&node, 1).await;
    let (release, hints) = open_batch(&one.batch, &one.verdicts);
    // The sequencer's own copy is right; a relay between us changes it.
    world.sequencer.machine.intake.submit(Some(release), hints.clone()).await.unwrap();
    let mut forged = hints.clone();
    forged.entries[1] = HintEntry::Key([5; 16]);
    world.sequencer.publish(&announce::hints(&forged));
    let two = world.sequencer.seal(1_000, &[]).await;
    world.sequencer.certify(&two).await;
    executed(&node, 1).await;
    let counts = node.counters().by_name();
    assert_eq!((counts["bad_hints_rejected"], counts["hints_verified"]), (1, 2));
    assert_eq!(counts["batches_decrypted_locally"], 0);
}

#[tokio::test]
async fn a_hint_publisher_that_lies_everywhere_is_replaced_by_local_decryption() {
    let world = World::new().await;
    let node = world.start().await;
    let one = world.sequencer.seal(0, &[envelope(1, 1), malformed(1, 2)]).await;
    world.members.archive.put(&one);
    let (_, hints) = open_batch(&one.batch, &one.verdicts);
    let mut forged = hints.clone();
    forged.entries[0] = HintEntry::Malformed([0xc0; 48]);
    *world.sequencer.mischief.forged_hints.lock() = Some(forged.clone());
    world.sequencer.certify(&one).await;
    certified_through(&node, 1).await;
    world.sequencer.publish(&announce::hints(&forged));
    let two = world.sequencer.seal(1_000, &[]).await;
    world.sequencer.certify(&two).await;
    executed(&node, 1).await;
    let counts = node.counters().by_name();
    assert!(counts["bad_hints_rejected"] >= 2, "from the feed and from the store: {counts:?}");
    assert_eq!((counts["batches_decrypted_locally"], counts["hints_verified"]), (1, 2));
    let stored = node.tracker().store().batch(1).await.unwrap().unwrap();
    assert_eq!(stored.hints, Some(hints));
}

#[tokio::test]
async fn forged_certificates_are_refused_and_the_true_one_found() {
    let world = World::new().await;
    let node = world.start().await;
    let one = world.sequencer.seal(0, &[envelope(1, 1)]).await;
    let mut forged = certificate_of(&one.batch);
    forged.signers = 0b0111;
    world.sequencer.publish(&announce::certificate(&forged));
    eventually("the refusal", || node.counters().bad_certificates_rejected.get() == 1).await;
    assert_eq!(node.tracker().certified().number, 0);
    // The same in the sequencer's answers: members have the true one.
    *world.sequencer.mischief.forged_certificate.lock() = Some(forged);
    world.members.archive.put(&one);
    world.sequencer.publish(&announce::certificate(&forged));
    certified_through(&node, 1).await;
    eventually("the counts", || {
        let counts = node.counters().by_name();
        counts["bad_certificates_rejected"] >= 2 && counts["batches_from_members"] == 1
    })
    .await;
    let stored = node.tracker().store().batch(1).await.unwrap().unwrap();
    assert_eq!(stored.certificate, Some(certificate_of(&one.batch)));
}

#[tokio::test]
async fn the_header_with_the_certificate_wins_over_the_one_shown_first() {
    let world = World::new().await;
    let node = world.start().await;
    let other = Sealer::new(&world.l1).await;
    let shown = other.seal_envelopes(300, &[envelope(1, 7)]).await;
    world.sequencer.publish(&announce::header(&shown.batch, shown.hash, &shown.verdicts));
    let mut heads = node.tracker().watch_sealed();
    within("the first header", heads.wait_for(|head| head.hash == shown.hash)).await.unwrap();

    let truth = world.sequencer.seal(250, &[envelope(1, 1)]).await;
    eventually("the refusal", || node.counters().second_headers_refused.get() == 1).await;
    world.sequencer.certify(&truth).await;
    certified_through(&node, 1).await;
    assert_eq!(node.tracker().certified().hash, truth.hash);
    world.sequencer.hint(&truth).await;
    let two = world.sequencer.seal(1_000, &[]).await;
    world.sequencer.certify(&two).await;
    executed(&node, 1).await;
    let state = |tracker: &blindfold_chain::Tracker| tracker.with_state(|state| state.ledger().root());
    assert_eq!(state(node.tracker()), state(&world.sequencer.machine.tracker));
}

/// Two batches that members have: sealed and certified without a word on the feed.
async fn withheld() -> World {
    let mut world = World::new().await;
    world.config.member_poll_interval_ms = 50;
    world.config.hint_deadline_ms = 0;
    world.sequencer.mischief.withhold_batches.store(true, Ordering::SeqCst);
    world.sequencer.mischief.withhold_hints.store(true, Ordering::SeqCst);
    let one = world.sequencer.sealing.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = world.sequencer.sealing.seal(1_000, vec![]).await;
    world.members.archive.put(&one);
    world.members.archive.put(&two);
    world
}

#[tokio::test]
async fn what_the_sequencer_withholds_comes_from_members() {
    let world = withheld().await;
    world.members.archive.silent.lock().insert(1);
    let node = world.start().await;
    executed(&node, 1).await;
    let counts = node.counters().by_name();
    assert_eq!((counts["batches_from_members"], counts["batches_decrypted_locally"]), (2, 1));
}

/// A sequencer that keeps whoever asks for hints waiting keeps a node from none that it opens itself.
#[tokio::test]
async fn a_sequencer_that_is_slow_to_give_hints_is_asked_once() {
    let mut world = World::new().await;
    world.config.hint_deadline_ms = 0;
    world.sequencer.mischief.withhold_hints.store(true, Ordering::SeqCst);
    world.sequencer.mischief.stall_hints.store(true, Ordering::SeqCst);
    let node = world.start().await;
    for second in 0..4 {
        let sealed = world.sequencer.seal(second * 1_000, &[envelope(1, second + 1)]).await;
        world.members.archive.put(&sealed);
        world.sequencer.certify(&sealed).await;
    }
    executed(&node, 3).await;
    assert_eq!(world.sequencer.mischief.hints_asked.load(Ordering::SeqCst), 1);
}

/// Catching up with old batches, a node executes and prunes some before it comes to look whether they lack hints. It looked at
/// no later one any more.
#[tokio::test]
async fn batches_pruned_before_their_hints_were_looked_for_keep_no_later_one_from_being_opened() {
    let mut world = World::new().await;
    world.config.hint_deadline_ms = 0;
    let mischief = Arc::clone(&world.sequencer.mischief);
    mischief.stall_hints.store(true, Ordering::SeqCst);
    let folder = tempfile::tempdir().unwrap();
    let node = world.start_on(&folder.path().join("node.sqlite")).await;
    let store = node.tracker().store();
    store.keep_ledgers_from(0).await.unwrap();
    let next = async |number: u64| {
        let sealed = world.sequencer.seal((number - 1) * 1_000, &[envelope(1, number)]).await;
        world.sequencer.certify(&sealed).await;
        sealed
    };
    let one = next(1).await;
    eventually("a question for hints", || mischief.hints_asked.load(Ordering::SeqCst) == 1).await;
    // Nothing else is looked at while the sequencer is waited for.
    world.sequencer.hint(&one).await;
    for number in 2..=4 {
        let sealed = next(number).await;
        world.sequencer.hint(&sealed).await;
    }
    executed(&node, 3).await;
    store.keep_ledgers_from(3).await.unwrap();
    assert_eq!(store.prune(u64::MAX, 0).await.unwrap().through, 2);
    mischief.stall_hints.store(false, Ordering::SeqCst);
    mischief.hint_answers.add_permits(1);
    // Of these nobody has hints.
    for number in 5..=6 {
        world.members.archive.put(&next(number).await);
    }
    executed(&node, 5).await;
    node.shutdown().await;
}

/// "None", said a moment before a batch stops waiting for it, held up every batch for that long.
#[tokio::test]
async fn a_sequencer_that_takes_its_time_to_have_no_hints_holds_up_nothing() {
    const BATCHES: u64 = 12;
    let mut world = World::new().await;
    world.config.hint_deadline_ms = 0;
    let mischief = &world.sequencer.mischief;
    mischief.withhold_hints.store(true, Ordering::SeqCst);
    mischief.no_hints_after_ms.store(HINTS_PATIENCE_MS - 100, Ordering::SeqCst);
    let node = world.start().await;
    for second in 0..=BATCHES {
        let sealed = world.sequencer.seal(second * 1_000, &[envelope(1, second + 1)]).await;
        world.members.archive.put(&sealed);
        world.sequencer.certify(&sealed).await;
    }
    executed(&node, BATCHES).await;
    // One batch waited for its answer; the others were opened beside the questions that fitted in, on a machine that is busy
    // many.
    let asked = mischief.hints_asked.load(Ordering::SeqCst) as u64;
    assert!(asked < BATCHES, "asked {asked} times, and each time waited for the answer");
}

/// After one answer "none" no batch waits for the next, and each gets its turn to be asked for all the same, long before
/// it would be opened here.
#[tokio::test]
async fn hints_that_are_at_the_sequencer_are_fetched_one_by_one_beside_one_that_is_missing() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.sqlite");
    let node = world.start_on(&path).await;
    let mut sealed = Vec::new();
    for second in 0..6 {
        let batch = world.sequencer.seal(second * 1_000, &[envelope(1, second + 1)]).await;
        world.sequencer.certify(&batch).await;
        sealed.push(batch);
    }
    certified_through(&node, 6).await;
    node.shutdown().await;
    for batch in &sealed[1..] {
        let (release, hints) = open_batch(&batch.batch, &batch.verdicts);
        world.sequencer.machine.intake.submit(Some(release), hints).await.unwrap();
    }
    let node = world.start_on(&path).await;
    eventually("the hints", || node.counters().by_name()["hints_verified"] == 5).await;
}

/// An answer of the sequencer that took longer than two seconds was thrown away and asked for again: a node with a slow
/// line never got the hints of a large batch.
#[tokio::test]
async fn hints_that_come_late_are_taken_beside_opening_the_batch_here() {
    let mut world = World::new().await;
    world.config.hint_deadline_ms = 0;
    let mischief = &world.sequencer.mischief;
    mischief.stall_hints.store(true, Ordering::SeqCst);
    let node = world.start().await;
    let one = world.sequencer.seal(0, &[envelope(1, 1)]).await;
    let (release, hints) = open_batch(&one.batch, &one.verdicts);
    world.sequencer.certify(&one).await;
    eventually("the question", || mischief.hints_asked.load(Ordering::SeqCst) == 1).await;
    world.sequencer.machine.intake.submit(Some(release), hints).await.unwrap();
    // No member gives a share, so the batch is not opened here; what is asked for them says that this was tried.
    let archive = &world.members.archive;
    eventually("a try", || archive.shares_asked.load(Ordering::SeqCst) > 0).await;
    mischief.hint_answers.add_permits(100);
    let two = world.sequencer.sealing.seal(1_000, vec![]).await;
    world.sequencer.publish(&announce::header(&two.batch, two.hash, &two.verdicts));
    world.sequencer.certify(&two).await;
    executed(&node, 1).await;
    assert_eq!(mischief.hints_asked.load(Ordering::SeqCst), 1);
    assert_eq!(node.counters().by_name()["batches_decrypted_locally"], 0);
}

/// Members that are waited for keep no other batch from being opened once the hints of this one are here.
#[tokio::test]
async fn hints_that_come_end_the_wait_for_shares() {
    let mut world = World::new().await;
    world.config.hint_deadline_ms = 0;
    world.config.member_timeout_ms = 60_000;
    let archive = Arc::clone(&world.members.archive);
    archive.stall_shares.store(true, Ordering::SeqCst);
    let node = world.start().await;
    let one = world.sequencer.seal(0, &[envelope(1, 1)]).await;
    world.sequencer.certify(&one).await;
    eventually("a try", || archive.shares_asked.load(Ordering::SeqCst) > 0).await;
    let (release, hints) = open_batch(&one.batch, &one.verdicts);
    world.sequencer.publish(&announce::release(&release));
    world.sequencer.publish(&announce::hints(&hints));
    eventually("the hints", || node.counters().by_name()["hints_verified"] == 1).await;
    archive.stall_shares.store(false, Ordering::SeqCst);
    let two = world.sequencer.seal(1_000, &[envelope(1, 2)]).await;
    archive.put(&two);
    world.sequencer.certify(&two).await;
    eventually("the second batch", || node.counters().by_name()["batches_decrypted_locally"] == 1).await;
}

/// A batch of many malformed envelopes takes as many questions of each member, beside those of other nodes. It was begun
/// anew, with all that opening it costs, where one of them was turned away.
#[tokio::test]
async fn members_that_are_busy_for_a_moment_cost_no_batch_that_is_opened() {
    let mut world = World::new().await;
    world.config.hint_deadline_ms = 0;
    world.sequencer.mischief.withhold_hints.store(true, Ordering::SeqCst);
    let archive = &world.members.archive;
    // Too few are left for the first.
    archive.busy_singletons.store(2, Ordering::SeqCst);
    let node = world.start().await;
    let one = world.sequencer.seal(0, &[envelope(1, 1), malformed(1, 2), malformed(1, 3)]).await;
    archive.put(&one);
    world.sequencer.certify(&one).await;
    eventually("the batch", || node.counters().by_name()["batches_decrypted_locally"] == 1).await;
    let asked = archive.shares_asked.load(Ordering::SeqCst);
    assert!(asked <= usize::from(MEMBERS), "{asked} questions of four members");
}

/// Each try cost as much as opening the batch, for as long as the members were away.
#[tokio::test]
async fn a_release_that_opens_nothing_is_tried_once() {
    let mut world = World::new().await;
    world.config.hint_deadline_ms = 0;
    world.sequencer.mischief.withhold_hints.store(true, Ordering::SeqCst);
    let archive = &world.members.archive;
    archive.silent.lock().extend(1..=MEMBERS);
    let backend = Arc::new(Watched::default());
    let deps = FullNodeDeps { backend: backend.clone(), ..world.deps(memory()) };
    let node = FullNode::start(world.config.clone(), deps).await.unwrap();
    world.sequencer.followed().await;
    let one = world.sequencer.seal(0, &[envelope(1, 1), envelope(1, 2)]).await;
    archive.put(&one);
    let (mut wrong, _) = open_batch(&one.batch, &one.verdicts);
    wrong.pds[0] = singleton(&points_of(&one.batch, &one.verdicts)[0][0].2);
    world.sequencer.publish(&announce::release(&wrong));
    world.sequencer.certify(&one).await;
    let tried = |times: usize| {
        let asked = times * usize::from(MEMBERS);
        eventually("tries", move || archive.shares_asked.load(Ordering::SeqCst) >= asked)
    };
    tried(3).await;
    assert_eq!(backend.calls(), (0, 1), "pre-decryptions and decryptions");
    // The members come back, and it is known to have been wrong.
    archive.silent.lock().clear();
    eventually("the batch", || node.counters().by_name()["batches_decrypted_locally"] == 1).await;
    assert_eq!(node.counters().by_name()["bad_releases_rejected"], 1);
}

/// They took the place of the release that was combined here, so that its batch had hints and no release.
#[tokio::test]
async fn releases_of_far_numbers_cost_no_batch_its_release() {
    let mut world = World::new().await;
    world.config.hint_deadline_ms = 0;
    world.sequencer.mischief.withhold_hints.store(true, Ordering::SeqCst);
    let node = world.start().await;
    let one = world.sequencer.seal(0, &[envelope(1, 1)]).await;
    world.members.archive.put(&one);
    let (release, _) = open_batch(&one.batch, &one.verdicts);
    for ahead in 1..=MAX_PARKED_ENTRIES as u64 {
        let far = Release { number: 1_000 + ahead, ..release.clone() };
        world.sequencer.publish(&announce::release(&far));
    }
    // What is counted comes behind them.
    let mut nothing = announce::release(&release);
    if let FeedEvent::Release(notification) = &mut nothing {
        notification.release = Encoded::from_bytes(vec![1, 2]);
    }
    world.sequencer.publish(&nothing);
    eventually("all of them", || node.counters().by_name()["bad_releases_rejected"] == 1).await;
    world.sequencer.certify(&one).await;
    eventually("the batch", || node.counters().by_name()["batches_decrypted_locally"] == 1).await;
    let stored = node.tracker().store().batch(1).await.unwrap().unwrap();
    assert_eq!(stored.release, Some(release));
}

/// Whoever sent them made the node ask all members at once, and again with each, whatever pause it kept.
#[tokio::test]
async fn forged_hints_that_keep_coming_end_no_pause() {
    const FORGED: u64 = 16;
    let mut world = World::new().await;
    world.config.hint_deadline_ms = 0;
    world.sequencer.mischief.withhold_hints.store(true, Ordering::SeqCst);
    let archive = &world.members.archive;
    archive.silent.lock().extend(1..=MEMBERS);
    let node = world.start().await;
    let one = world.sequencer.seal(0, &[envelope(1, 1)]).await;
    world.sequencer.certify(&one).await;
    let rounds = || archive.shares_asked.load(Ordering::SeqCst) / usize::from(MEMBERS);
    eventually("a round", || rounds() == 1).await;
    let started = now();
    let (_, mut forged) = open_batch(&one.batch, &one.verdicts);
    for sent in 1..=FORGED {
        forged.entries[0] = HintEntry::Key([sent as u8; 16]);
        world.sequencer.publish(&announce::hints(&forged));
        eventually("a refusal", || node.counters().by_name()["bad_hints_rejected"] == sent).await;
    }
    // Each pause is twice as long as the one before.
    let waited_ms = started.elapsed().as_millis() as u64;
    let due = 1 + (1 + waited_ms / MIN_DECRYPTION_PAUSE_MS).ilog2() as usize;
    assert!(rounds() <= due + 1, "{} rounds in {waited_ms} ms", rounds());
    node.shutdown().await;
}

/// After an input/output error the store takes no write until the process starts anew, so the process has to end.
#[tokio::test]
async fn a_disk_error_ends_the_node() {
    let mut world = World::new().await;
    world.config.member_poll_interval_ms = 50;
    let store = FaultyStore::new(memory());
    let node = world.try_start(store.clone() as _).await.unwrap();
    world.sequencer.followed().await;
    store.fail("put_sealed", StoreError::Stopped("disk I/O error".to_owned()));
    let one = world.sequencer.seal(0, &[envelope(1, 1)]).await;
    world.sequencer.certify(&one).await;
    assert_eq!(node.failed().await.part, "chain");
}

/// While a batch waits for its certificate the sequencer was asked for it with each round, and sent it a second time.
#[tokio::test]
async fn a_batch_that_the_feed_brought_is_not_sent_a_second_time() {
    let mut world = World::new().await;
    world.config.member_poll_interval_ms = 50;
    let node = world.start().await;
    world.sequencer.followed().await;
    let mischief = &world.sequencer.mischief;
    let one = world.sequencer.seal(0, &[envelope(1, 1)]).await;
    eventually("the feed brings it", || node.tracker().head().number == 1).await;
    let (asked, rounds) =
        (mischief.batches_asked.load(Ordering::SeqCst), mischief.statuses_asked.load(Ordering::SeqCst));
    eventually("more rounds", || mischief.statuses_asked.load(Ordering::SeqCst) >= rounds + 3).await;
    // One round may have begun before the batch was here.
    let more = mischief.batches_asked.load(Ordering::SeqCst) - asked;
    assert!(more <= 1, "asked {more} times for what is here");
    world.sequencer.certify(&one).await;
    certified_through(&node, 1).await;
    // What the feed does not bring is fetched still.
    let two = world.sequencer.sealing.seal(1_000, vec![]).await;
    world.sequencer.sealing.certify(&two).await;
    certified_through(&node, 2).await;
    node.shutdown().await;
}

/// A number that was certified through a descendant has no certificate of its own at any member.
#[tokio::test]
async fn numbers_certified_through_a_descendant_come_from_members_too() {
    let world = withheld().await;
    world.members.archive.through_descendant.lock().insert(1);
    let node = world.start().await;
    executed(&node, 1).await;
}

/// After changes of the sequencer's key more headers than one sequencer's may wait for one certificate (rule K-6).
#[tokio::test]
async fn the_longest_run_under_one_certificate_comes_from_members_too() {
    let world = withheld().await;
    let (archive, sealing) = (&world.members.archive, &world.sequencer.sealing);
    let longest = MAX_UNCERTIFIED_RUN as u64;
    archive.through_descendant.lock().extend(1..longest);
    for number in 3..=longest {
        let sealed = sealing.seal(number * 1_000, vec![]).await;
        archive.put(&sealed);
        sealing.certify(&sealed).await;
    }
    let node = world.start().await;
    certified_through(&node, longest).await;
}

/// One member that tells first what it holds, and takes its time to give it, served alone whoever lagged behind.
#[tokio::test]
async fn a_member_that_is_true_and_slow_is_overtaken() {
    let mut world = withheld().await;
    world.config.member_timeout_ms = MAX_MEMBER_TIMEOUT_MS;
    *world.members.archive.slow.lock() = Some(2);
    let node = world.start().await;
    certified_through(&node, 2).await;
    eventually("the count", || node.counters().batches_from_members.get() == 2).await;
}

/// Ten certified batches that all members have, and a sequencer that gives the first ones and takes its time with the
/// next. Nothing comes by the feed.
async fn slow_after(given: usize) -> World {
    let mut world = World::new().await;
    world.config.member_poll_interval_ms = 50;
    world.sequencer.mischief.stall_batches.store(true, Ordering::SeqCst);
    world.sequencer.mischief.batch_answers.add_permits(given);
    for second in 0..10 {
        let sealed = world.sequencer.sealing.seal(second * 1_000, vec![]).await;
        world.sequencer.sealing.certify(&sealed).await;
        world.members.archive.put(&sealed);
    }
    world
}

/// Waits less long than the sequencer may take for one answer.
async fn certified_meanwhile(node: &FullNode, number: u64) {
    let patience = Duration::from_millis(CLIENT_REQUEST_TIMEOUT_MS / 2);
    let came = timeout(patience, certified_through(node, number)).await;
    assert!(came.is_ok(), "certified {} of {number}", node.tracker().certified().number);
}

/// A sequencer that gives each batch truly, and takes almost its time-out for it, had a node that lags behind to itself:
/// members were asked only when it had ended.
#[tokio::test]
async fn a_sequencer_that_is_true_and_slow_keeps_no_node_from_what_members_hold() {
    let world = slow_after(1).await;
    let mischief = &world.sequencer.mischief;
    let node = world.start().await;
    certified_meanwhile(&node, 10).await;
    eventually("the count", || node.counters().batches_from_members.get() >= 9).await;
    assert_eq!(mischief.batches_asked.load(Ordering::SeqCst), 2, "one question at a time");
    // What it gives too late does no harm, and the next question is for what is missing then.
    let next = world.sequencer.sealing.seal(10_000, vec![]).await;
    world.sequencer.sealing.certify(&next).await;
    mischief.batch_answers.add_permits(2);
    certified_meanwhile(&node, 11).await;
}

/// One more batch each time it is asked, and then "no more": it was never silent, and never late.
#[tokio::test]
async fn a_sequencer_that_gives_one_batch_at_a_time_keeps_no_node_behind() {
    let mut world = slow_after(0).await;
    world.config.member_poll_interval_ms = 250;
    let mischief = &world.sequencer.mischief;
    mischief.stall_batches.store(false, Ordering::SeqCst);
    mischief.drip.store(true, Ordering::SeqCst);
    for second in 10..40 {
        let sealed = world.sequencer.sealing.seal(second * 1_000, vec![]).await;
        world.sequencer.sealing.certify(&sealed).await;
        world.members.archive.put(&sealed);
    }
    let node = world.start().await;
    certified_through(&node, 40).await;
    eventually("the count", || node.counters().batches_from_members.get() >= 30).await;
}

/// L1 was asked for the headers that it made before the sequencer was asked, and not again until that had ended.
#[tokio::test]
async fn a_header_of_l1s_is_taken_while_the_sequencer_is_slow() {
    let world = slow_after(10).await;
    let node = world.start().await;
    certified_meanwhile(&node, 10).await;
    let mischief = &world.sequencer.mischief;
    eventually("the question", || mischief.batches_asked.load(Ordering::SeqCst) == 11).await;
    world.l1.l1_headers.lock().push(world.sequencer.sealing.l1_header(20_000, vec![]));
    certified_meanwhile(&node, 11).await;
}

#[tokio::test]
async fn what_the_feed_brings_waits_for_no_answer_of_the_sequencer() {
    let world = World::new().await;
    let mischief = &world.sequencer.mischief;
    mischief.stall_batches.store(true, Ordering::SeqCst);
    mischief.stall_status.store(true, Ordering::SeqCst);
    let node = world.start().await;
    let asked =
        || [&mischief.batches_asked, &mischief.statuses_asked].map(|asked| asked.load(Ordering::SeqCst));
    eventually("a question", || asked() != [0, 0]).await;
    let one = world.sequencer.seal(0, &[envelope(1, 1)]).await;
    world.sequencer.certify(&one).await;
    world.sequencer.hint(&one).await;
    let two = world.sequencer.seal(1_000, &[]).await;
    world.sequencer.certify(&two).await;
    certified_meanwhile(&node, 2).await;
    executed(&node, 1).await;
    assert_eq!(asked(), [1, 1]);
    within("its end", node.shutdown()).await;
}

/// A node that was shown header 1, and a chain certified at 2 whose header 1 is another one. Members have it, too.
async fn other_ancestor(world: &World) -> FullNode {
    let node = world.start().await;
    let other = Sealer::new(&world.l1).await;
    let shown = other.seal_envelopes(300, &[envelope(1, 7)]).await;
    world.sequencer.publish(&announce::header(&shown.batch, shown.hash, &shown.verdicts));
    let mut heads = node.tracker().watch_sealed();
    within("the first header", heads.wait_for(|head| head.hash == shown.hash))
        .await
        .expect("the tracker lives");
    let one = world.sequencer.sealing.seal_envelopes(250, &[envelope(1, 1)]).await;
    let two = world.sequencer.sealing.seal(1_000, vec![]).await;
    for sealed in [&one, &two] {
        world.members.archive.put(sealed);
    }
    world.sequencer.certify(&two).await;
    certified_through(&node, 2).await;
    assert_eq!(node.tracker().certified().hash, two.hash);
    node
}

/// Sequencer and members were asked all at once, each for megabytes.
#[tokio::test]
async fn an_ancestor_is_fetched_once() {
    let world = World::new().await;
    let _node = other_ancestor(&world).await;
    assert_eq!(*world.members.archive.batches_asked.lock(), []);
}

#[tokio::test]
async fn a_sequencer_that_lets_an_ancestor_hang_holds_up_nothing() {
    let world = World::new().await;
    world.sequencer.mischief.stalled_batch.store(1, Ordering::SeqCst);
    let _node = other_ancestor(&world).await;
    assert!(!world.members.archive.batches_asked.lock().is_empty());
}

/// One member that makes up headers, on a chain where nothing happens for a moment. It is asked for one of them, and
/// while it does not answer the feed goes on.
#[tokio::test]
async fn a_member_that_makes_up_headers_slowly_delays_no_block() {
    let mut world = World::new().await;
    world.config.member_poll_interval_ms = 50;
    world.config.member_timeout_ms = MAX_MEMBER_TIMEOUT_MS;
    let template = Sealer::new(&world.l1).await.seal(0, vec![]).await;
    *world.members.archive.makes_up.lock() = Some((1, template.batch.as_ref().clone()));
    let node = world.start().await;
    let archive = &world.members.archive;
    eventually("it asks", || !archive.batches_asked.lock().is_empty()).await;
    let one = world.sequencer.seal(0, &[envelope(1, 1)]).await;
    world.sequencer.certify(&one).await;
    certified_through(&node, 1).await;
    // Nobody signed what it gives in the end, so that is all.
    archive.put(&one);
    archive.answers.add_permits(100);
    let two = world.sequencer.sealing.seal(1_000, vec![]).await;
    world.sequencer.mischief.withhold_batches.store(true, Ordering::SeqCst);
    archive.put(&two);
    certified_through(&node, 2).await;
    let asked = archive.batches_asked.lock().clone();
    // Each was the next one here: none was asked for that follows one of its own.
    assert!(asked.iter().all(|(member, number)| *member != 1 || *number <= 3), "{asked:?}");
}

/// While nothing is certified, members say so: nobody is asked for batches again and again.
#[tokio::test]
async fn members_are_asked_for_batches_that_they_hold_certified_alone() {
    let mut world = World::new().await;
    world.config.member_poll_interval_ms = 50;
    let node = world.start().await;
    let archive = &world.members.archive;
    let one = world.sequencer.seal(0, &[envelope(1, 1)]).await;
    archive.put(&one);
    world.sequencer.certify(&one).await;
    certified_through(&node, 1).await;
    archive.batches_asked.lock().clear();
    let asked = archive.statuses_asked.load(Ordering::SeqCst);
    world.sequencer.seal(1_000, &[envelope(1, 2)]).await;
    let rounds = 4 * usize::from(MEMBERS);
    eventually("four rounds", || archive.statuses_asked.load(Ordering::SeqCst) >= asked + rounds).await;
    assert_eq!(*archive.batches_asked.lock(), []);
}

#[tokio::test]
async fn a_node_that_was_away_catches_up_and_a_killed_one_goes_on() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.sqlite");
    let mut sealed = Vec::new();
    for second in 0..3 {
        let batch = world.sequencer.seal(second * 1_000, &[envelope(1, second + 1)]).await;
        world.sequencer.certify(&batch).await;
        sealed.push(batch);
    }
    world.sequencer.hint(&sealed[0]).await;
    world.sequencer.hint(&sealed[1]).await;
    let node = world.start_on(&path).await;
    executed(&node, 2).await;
    assert_eq!(node.tracker().certified().number, 3);
    // Dropped without a word; its execution client forgets what it was given last.
    drop(node);
    // What happens while it is away, the hints of a batch that it knows included.
    world.sequencer.hint(&sealed[2]).await;
    world.client.lose_blocks_above(1);
    let last = world.sequencer.seal(3_000, &[envelope(1, 9)]).await;
    world.sequencer.certify(&last).await;
    world.sequencer.hint(&last).await;
    let closing = world.sequencer.seal(4_000, &[]).await;
    world.sequencer.certify(&closing).await;
    let node = world.try_start(disk(&path).await).await.unwrap();
    executed(&node, 4).await;
    world.sequencer.machine.executed(4).await;
    assert_eq!(node.executor().status().block, world.sequencer.machine.executor.status().block);
    let counts = node.counters().by_name();
    assert_eq!((counts["headers_verified"], counts["hints_verified"]), (2, 2), "the rest was on disk");
    assert!(world.client.imported.load(Ordering::SeqCst) >= 1);
}

#[tokio::test]
async fn a_block_that_differs_is_told_loudly_and_ours_is_followed() {
    let world = World::new().await;
    world.client.salt.lock().push(1);
    let node = world.start().await;
    let one = world.sequencer.seal(0, &[envelope(1, 1)]).await;
    world.sequencer.certify(&one).await;
    world.sequencer.hint(&one).await;
    let two = world.sequencer.seal(1_000, &[envelope(1, 2)]).await;
    world.sequencer.certify(&two).await;
    world.sequencer.announce_block(1).await;
    eventually("the difference", || node.counters().block_divergences.get() == 1).await;
    world.sequencer.hint(&two).await;
    let three = world.sequencer.seal(2_000, &[]).await;
    world.sequencer.certify(&three).await;
    executed(&node, 2).await;
    // An announcement of a block that is here already.
    world.sequencer.announce_block(2).await;
    eventually("the difference", || node.counters().block_divergences.get() == 2).await;
}

#[tokio::test]
async fn bytes_that_are_nothing_are_counted_and_forgotten() {
    let world = World::new().await;
    let node = world.start().await;
    let one = world.sequencer.sealing.seal_envelopes(0, &[envelope(1, 1)]).await;
    let (release, hints) = open_batch(&one.batch, &one.verdicts);
    let mut events = vec![
        announce::header(&one.batch, one.hash, &one.verdicts),
        announce::certificate(&certificate_of(&one.batch)),
        announce::release(&release),
        announce::hints(&hints),
    ];
    for event in &mut events {
        match event {
            FeedEvent::Header(notification) => notification.sealed = Encoded::from_bytes(vec![1, 2]),
            FeedEvent::Certificate(notification) => {
                notification.certificate = Encoded::from_bytes(vec![1, 2])
            }
            FeedEvent::Release(notification) => notification.release = Encoded::from_bytes(vec![1, 2]),
            FeedEvent::Hints(notification) => notification.hints = Encoded::from_bytes(vec![1, 2]),
            FeedEvent::Block(_) => {}
        }
        world.sequencer.publish(event);
    }
    eventually("the counts", || {
        let counts = node.counters().by_name();
        ["headers_rejected", "bad_certificates_rejected", "bad_releases_rejected", "bad_hints_rejected"]
            .iter()
            .all(|name| counts[*name] == 1)
    })
    .await;
    // A header that breaks a rule.
    let mut header = one.batch.header;
    header.gas += 1;
    let signed = header.sign(&sequencer_key(), &chain_config().deployment);
    let mut wrong = (*one.batch).clone();
    (wrong.header, wrong.signature) = (signed.header, signed.signature);
    let at = node.counters().headers_rejected.get();
    world.sequencer.publish(&announce::header(&wrong, header.hash(), &one.verdicts));
    eventually("the refusal", || node.counters().headers_rejected.get() > at).await;
    // A block far in the future is remembered, not believed.
    world.sequencer.publish(&FeedEvent::Block(BlockNotification {
        number: 99,
        hash: B256::ZERO,
        parent_hash: B256::ZERO,
        state_root: B256::ZERO,
        timestamp: 0,
        first_batch: 1,
        last_batch: 1,
        transactions: vec![],
        skipped: vec![],
    }));
    world.sequencer.certify(&one).await;
    world.sequencer.hint(&one).await;
    let two = world.sequencer.seal(1_000, &[]).await;
    world.sequencer.certify(&two).await;
    executed(&node, 1).await;
}

#[tokio::test]
async fn a_wrong_start_is_refused_with_its_reason() {
    let mut world = World::new().await;
    let node = world.start().await;
    world.config.rpc_addr = node.rpc_addr();
    assert!(matches!(world.try_start(memory()).await.err(), Some(StartError::Serve(_))));
    world.config.rpc_addr = ([127, 0, 0, 1], 0).into();
    let foreign = memory();
    foreign.bind(&chain_config().deployment, "sequencer").await.unwrap();
    let refused = world.try_start(foreign).await.err();
    assert!(matches!(refused, Some(StartError::Store(StoreError::Foreign { name: "role", .. }))));
    for url in ["ftp://x", "http://"] {
        world.config.sequencer_urls = url.into();
        let refused = world.try_start(memory()).await.err();
        assert!(matches!(refused, Some(StartError::Config(ConfigError::Sequencers(_)))));
    }
    world.config.sequencer_urls = "http://a:b".into();
    assert!(matches!(world.try_start(memory()).await.err(), Some(StartError::Client(_))));
    *world.l1.fault.lock() = Some(blindfold_l1::L1Error::no_answer("scripted"));
    world.config.sequencer_urls = world.sequencer.url().into();
    assert!(matches!(world.try_start(memory()).await.err(), Some(StartError::Open(_))));
}
