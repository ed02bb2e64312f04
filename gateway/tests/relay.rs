//! A relay before a sequencer that tells the truth, lies, and goes away.

mod common;

use blindfold_chain::announce;
use blindfold_kit::{NEVER_MS, Sealer, certificate_of, envelope, refused, resigned, within};
use blindfold_protocol::HintEntry;
use blindfold_rpc::{
    BlindApiClient, Encoded, FeedItem, ForwardApiClient, RunningRole, SequencerApiClient, Topic,
    types::{BatchState, BlockNotification},
};
use common::{Stage, certificate_event, header_event, next_of};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stands_is_handed_on_and_kept() {
    let stage = Stage::new().await;
    let relay = stage.relay().await;
    let mut feed = relay.feed().await;
    stage.sequencer.followed_by(1).await;
    let sealed = stage.seal(&[envelope(1, 1), envelope(2, 1)]).await;
    assert_eq!(next_of(&mut feed, Topic::Headers).await, header_event(&sealed));
    assert_eq!(next_of(&mut feed, Topic::Certificates).await, certificate_event(&sealed.batch));
    let (release, hints) = stage.open(&sealed);
    assert_eq!(next_of(&mut feed, Topic::Releases).await, announce::release(&release));
    assert_eq!(next_of(&mut feed, Topic::Hints).await, announce::hints(&hints));
    let status = relay.client.get_status().await.expect("a status");
    assert_eq!((status.role.as_str(), status.head.number, status.certified), ("relay", 2, 2));
    assert_eq!(relay.client.get_hints(2).await.expect("hints"), Some(Encoded::new(&hints)));
    let info = relay.client.get_batch(2).await.expect("an answer").expect("a batch");
    assert_eq!((info.hash, info.hints.is_some()), (sealed.hash, true));
    assert!(relay.handle.readiness().is_ready());
    assert_eq!(relay.client.get_batch(3).await.expect("an answer"), None);
    relay.handle.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_stand_is_not_handed_on() {
    let mut stage = Stage::new().await;
    // Everything comes once.
    stage.config.sweep_ms = NEVER_MS;
    let relay = stage.relay().await;
    let mut feed = relay.feed().await;
    stage.sequencer.followed_by(1).await;
    let sealed = stage.sealer.seal_next_envelopes(&[envelope(1, 1)]).await;
    // Signed by nobody in office, with other verdicts, with another item.
    let mut unsigned = (*sealed.batch).clone();
    unsigned.signature.0[5] ^= 1;
    stage.sequencer.announce(&unsigned, &sealed.verdicts);
    relay.counts(r#"blindfold_relay_refused_total{role="relay"} 1"#).await;
    stage.sequencer.announce(&sealed.batch, &[]);
    relay.counts(r#"blindfold_relay_refused_total{role="relay"} 2"#).await;
    let mut other = (*sealed.batch).clone();
    other.items[0][40] ^= 1;
    stage.sequencer.announce(&other, &sealed.verdicts);
    relay.counts(r#"blindfold_relay_refused_total{role="relay"} 3"#).await;
    let forged = resigned(&sealed.batch, |header| header.envelope_count = 7);
    stage.sequencer.announce(&forged, &sealed.verdicts);
    relay.counts(r#"blindfold_relay_refused_total{role="relay"} 4"#).await;
    // The right one goes through, and with it a certificate; a certificate of another header does not.
    stage.sequencer.publish(&sealed.batch, &sealed.verdicts);
    assert_eq!(next_of(&mut feed, Topic::Headers).await, header_event(&sealed));
    let mut forged = blindfold_kit::certificate_of(&sealed.batch);
    forged.header_hash = sealed.batch.header.parent_hash;
    stage.sequencer.announce_certificate(&forged);
    relay.counts(r#"blindfold_relay_refused_total{role="relay"} 5"#).await;
    stage.sequencer.publish_certificate(&stage.sealer.certify(&sealed).await);
    assert_eq!(next_of(&mut feed, Topic::Certificates).await, certificate_event(&sealed.batch));
    // A wrong key is nobody's hint.
    let (release, mut hints) = blindfold_kit::open_batch(&sealed.batch, &sealed.verdicts);
    let right = hints.clone();
    hints.entries[0] = HintEntry::Key([9; 16]);
    stage.sequencer.publish_hints(&release, &hints);
    relay.counts(r#"blindfold_relay_refused_total{role="relay"} 6"#).await;
    let answer = relay.client.get_batch(2).await.map_err(refused).expect_err("it does not stand");
    assert_eq!(answer.reason, "source_unavailable");
    stage.sequencer.publish_hints(&release, &right);
    assert_eq!(next_of(&mut feed, Topic::Hints).await, announce::hints(&right));
    relay.handle.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_during_an_outage_is_fetched_in_order_and_nobody_misses_it() {
    let stage = Stage::new().await;
    let relay = stage.relay().await;
    let mut feed = relay.feed().await;
    stage.sequencer.followed_by(1).await;
    // Kept by the sequencer, and never announced.
    let mut sealed = Vec::new();
    for n in 1..=3 {
        let batch = stage.sealer.seal_next_envelopes(&[envelope(n, 1)]).await;
        stage.sequencer.keep(&batch.batch, &batch.verdicts);
        stage.sequencer.keep_certificate(&stage.sealer.certify(&batch).await);
        sealed.push(batch);
    }
    for batch in &sealed {
        assert_eq!(next_of(&mut feed, Topic::Headers).await, header_event(batch));
    }
    relay.counts(r#"blindfold_relay_certified_number{role="relay"} 4"#).await;
    relay.handle.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settled_batches_are_answered_while_the_source_is_away() {
    let stage = Stage::new().await;
    let relay = stage.relay().await;
    let mut feed = relay.feed().await;
    stage.sequencer.followed_by(1).await;
    let sealed = stage.seal(&[envelope(1, 1)]).await;
    let (_, hints) = stage.open(&sealed);
    next_of(&mut feed, Topic::Hints).await;
    let hash = sealed.hash;
    let block = BlockNotification {
        number: 1,
        hash,
        parent_hash: hash,
        state_root: hash,
        timestamp: 1,
        first_batch: 1,
        last_batch: 2,
        transactions: Vec::new(),
        skipped: Vec::new(),
    };
    stage.sequencer.announce_block(&block);
    next_of(&mut feed, Topic::Blocks).await;
    let before = relay.client.get_batch(2).await.expect("an answer").expect("a batch");
    assert!(stage.sequencer.server.shutdown().await, "it ends");
    let after = relay.client.get_batch(2).await.expect("an answer").expect("a batch");
    assert_eq!(before, after);
    assert_eq!((after.state, after.hints), (BatchState::Executed, Some(Encoded::new(&hints))));
    let gone = relay.client.get_batch(77).await.map_err(refused).expect_err("nobody knows");
    assert_eq!((gone.reason.as_ref(), gone.retry), ("source_unavailable", true));
    // What it knew of the source's status a moment ago, it says; what it is itself, too.
    relay.handle.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_question_is_asked_once() {
    let mut stage = Stage::new().await;
    stage.config.cache_ms = 60_000;
    let relay = stage.relay().await;
    let id = envelope(1, 1).id();
    for _ in 0..5 {
        assert_eq!(relay.client.get_receipt(id).await.expect("an answer"), None);
    }
    let others = (0..20).map(|_| relay.client.get_receipt(envelope(2, 1).id()));
    for answer in within("answers", futures::future::join_all(others)).await {
        assert_eq!(answer.expect("an answer"), None);
    }
    assert_eq!(stage.sequencer.double.state.lock().receipts_asked.len(), 2);
    relay.handle.shutdown().await;
}

/// What the source does not give is waited for: nothing after it is handed on before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_leaves_a_batch_out_makes_no_gap() {
    let stage = Stage::new().await;
    let relay = stage.relay().await;
    let mut feed = relay.feed().await;
    stage.sequencer.followed_by(1).await;
    stage.sequencer.double.state.lock().withhold = true;
    let mut sealed = Vec::new();
    for n in 1..=3 {
        let batch = stage.sealer.seal_next_envelopes(&[envelope(n, 1)]).await;
        stage.sequencer.keep(&batch.batch, &batch.verdicts);
        sealed.push(batch);
    }
    relay.is_not_ready().await;
    stage.sequencer.double.state.lock().withhold = false;
    for batch in &sealed {
        assert_eq!(next_of(&mut feed, Topic::Headers).await, header_event(batch));
    }
    relay.handle.shutdown().await;
}

/// More was missed than is handed on later: subscribers are told by the end of their subscription.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscribers_hear_of_a_gap_that_is_not_filled() {
    let mut stage = Stage::new().await;
    stage.config.catch_up_batches = 2;
    let relay = stage.relay().await;
    let mut feed = relay.feed().await;
    stage.sequencer.followed_by(1).await;
    stage.sequencer.double.state.lock().withhold = true;
    let mut sealed = Vec::new();
    for n in 1..=4 {
        sealed.push(stage.sealer.seal_next_envelopes(&[envelope(n, 1)]).await);
    }
    // The newest first, so that the source is so far ahead at once.
    for batch in sealed.iter().rev() {
        stage.sequencer.keep(&batch.batch, &batch.verdicts);
    }
    stage.sequencer.double.state.lock().withhold = false;
    within("the end of the subscription", async {
        while feed.next().await != Some(FeedItem::Reconnected) {}
    })
    .await;
    relay.counts(r#"blindfold_relay_head_number{role="relay"} 5"#).await;
    assert_eq!(
        relay.client.get_batch(2).await.expect("an answer").map(|info| info.hash),
        Some(sealed[0].hash)
    );
    relay.handle.shutdown().await;
}

/// What a source says of its head is nobody's word but its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_is_not_there_ends_no_subscription() {
    let stage = Stage::new().await;
    let relay = stage.relay().await;
    relay.counts(r#"blindfold_relay_certified_number{role="relay"} 1"#).await;
    let mut feed = relay.feed().await;
    stage.sequencer.followed_by(1).await;
    stage.sequencer.double.state.lock().claims_head = Some(u64::MAX);
    relay.is_not_ready().await;
    stage.sequencer.double.state.lock().claims_head = None;
    let sealed = stage.seal(&[envelope(1, 1)]).await;
    // The first that comes is the next header: the subscription stands.
    let next = within("a notification", feed.next()).await;
    assert_eq!(next, Some(FeedItem::Event(header_event(&sealed))));
    relay.handle.shutdown().await;
}

/// A batch that gave way has signatures and hints, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_contradicts_what_is_certified_is_not_answered_with() {
    let stage = Stage::new().await;
    let relay = stage.relay().await;
    let mut feed = relay.feed().await;
    stage.sequencer.followed_by(1).await;
    let other = Sealer::new(&stage.l1).await;
    other.seal_next(Vec::new()).await;
    let displaced = other.seal_next_envelopes(&[envelope(2, 1)]).await;
    let sealed = stage.seal(&[envelope(1, 1)]).await;
    next_of(&mut feed, Topic::Certificates).await;
    stage.sequencer.keep(&displaced.batch, &displaced.verdicts);
    stage.sequencer.keep_certificate(&certificate_of(&displaced.batch));
    let answer = relay.client.get_batch(2).await.map_err(refused).expect_err("it contradicts");
    assert_eq!(answer.reason, "source_unavailable");
    stage.sequencer.announce_certificate(&certificate_of(&displaced.batch));
    let (_, hints) = stage.open(&sealed);
    assert_eq!(next_of(&mut feed, Topic::Hints).await, announce::hints(&hints));
    assert_eq!(relay.client.get_hints(2).await.expect("hints"), Some(Encoded::new(&hints)));
    relay.handle.shutdown().await;
}

/// The header that the relay had gave way to another one, which is certified through its child alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_that_gave_way_is_given_up() {
    let stage = Stage::new().await;
    let relay = stage.relay().await;
    let mut feed = relay.feed().await;
    stage.sequencer.followed_by(1).await;
    let other = Sealer::new(&stage.l1).await;
    let first = other.seal_next(Vec::new()).await;
    assert_eq!(Some(first.hash), relay.client.get_batch(1).await.expect("an answer").map(|info| info.hash));
    let gave_way = stage.sealer.seal_next_envelopes(&[envelope(1, 1)]).await;
    stage.sequencer.publish(&gave_way.batch, &gave_way.verdicts);
    assert_eq!(next_of(&mut feed, Topic::Headers).await, header_event(&gave_way));
    let second = other.seal_next_envelopes(&[envelope(2, 1)]).await;
    let third = other.seal_next_envelopes(&[envelope(3, 1)]).await;
    stage.sequencer.keep(&second.batch, &second.verdicts);
    stage.sequencer.publish(&third.batch, &third.verdicts);
    stage.sequencer.publish_certificate(&certificate_of(&third.batch));
    assert_eq!(next_of(&mut feed, Topic::Headers).await, header_event(&second));
    assert_eq!(next_of(&mut feed, Topic::Headers).await, header_event(&third));
    relay.counts(r#"blindfold_relay_certified_number{role="relay"} 3"#).await;
    let info = relay.client.get_batch(2).await.expect("an answer").expect("a batch");
    assert_eq!(info.hash, second.hash);
    relay.handle.shutdown().await;
}

/// Hints that nobody makes, as of a void batch, keep nothing else waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_without_hints_hold_nothing_up() {
    let mut stage = Stage::new().await;
    stage.config.catch_up_batches = 2;
    let relay = stage.relay().await;
    let mut feed = relay.feed().await;
    stage.sequencer.followed_by(1).await;
    for n in 1..=4 {
        let sealed = stage.seal(&[envelope(n, 1)]).await;
        assert_eq!(next_of(&mut feed, Topic::Headers).await, header_event(&sealed));
    }
    let missed = stage.sealer.seal_next_envelopes(&[envelope(5, 1)]).await;
    stage.sequencer.keep(&missed.batch, &missed.verdicts);
    assert_eq!(next_of(&mut feed, Topic::Headers).await, header_event(&missed));
    relay.handle.shutdown().await;
}

/// A relay that is given to everybody passes nothing on that is for sequencers alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_takes_no_envelopes() {
    let stage = Stage::new().await;
    let relay = stage.relay().await;
    let sent = relay.client.send_envelope(Encoded::from_bytes(vec![1]), None).await;
    assert_eq!(sent.map_err(refused).expect_err("refused").reason, "unknown_method");
    let sent = relay.client.send_envelopes(Vec::new()).await;
    assert_eq!(sent.map_err(refused).expect_err("refused").reason, "unknown_method");
    relay.handle.shutdown().await;
}
