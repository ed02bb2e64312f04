//! The life of an envelope: sealed, certified, opened, executed; what forged parts of it are answered; the limits on
//! the way.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_rpc::RunningRole;
use std::{ops::RangeInclusive, sync::atomic::Ordering, time::Duration};

use blindfold_kit::{
    BASE_FEE, MAX_BATCH, RICH, START_MS, envelope, envelope_of, envelope_with, malformed, payer, refused,
    sequencer_key, singleton, within,
};
use blindfold_protocol::{
    Address, B256, BatchHeader, Bundle, Canonical, Envelope, HintEntry,
    envelope_builder::EnvelopeFields,
    limits::{CLOCK_SKEW_MS, MAX_ENVELOPE_BYTES},
    signature::recover,
};
use blindfold_rpc::{
    BlindApiClient, Feed, FeedConfig, FeedEvent, FeedItem, SequencerApiClient, Topic, code,
    types::{BatchState, BlockNotification, EnvelopeState, HeaderNotification, Refusal},
};
use common::{GAS_FEE, Running, World};

/// Sends envelopes of one payer while nothing is sealed, then lets one batch be.
fn one_batch_at_a_time() -> World {
    World::with(|config, _| config.sealing.max_uncertified_headers = 1)
}

/// A feed whose notifications are taken by topic: between topics there is no order.
struct Notices {
    feed: Feed,
    waiting: Vec<FeedEvent>,
    /// The newest header that was taken, or was there before.
    newest: u64,
}

impl Notices {
    async fn connect(running: &Running<'_>) -> Self {
        let url = format!("ws://{}", running.handle.rpc_addr());
        let mut feed = Feed::start(url, Topic::ALL.to_vec(), FeedConfig::default());
        assert_eq!(within("the feed", feed.next()).await, Some(FeedItem::Connected));
        Self { feed, waiting: Vec::new(), newest: running.handle.tracker().head().number }
    }

    async fn next(&mut self, topic: Topic) -> FeedEvent {
        loop {
            if let Some(place) = self.waiting.iter().position(|event| event.topic() == topic) {
                return self.waiting.remove(place);
            }
            match within(topic.as_str(), self.feed.next()).await.expect("the feed goes on") {
                FeedItem::Event(event) => self.waiting.push(event),
                FeedItem::Connected | FeedItem::Reconnected => {}
                FeedItem::Invalid { topic, reason } => panic!("{topic:?}: {reason}"),
            }
        }
    }

    /// The next header; what has no certificate is announced again now and then.
    async fn header(&mut self) -> HeaderNotification {
        loop {
            match self.next(Topic::Headers).await {
                FeedEvent::Header(header) if header.number > self.newest => {
                    self.newest = header.number;
                    return header;
                }
                FeedEvent::Header(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn block(&mut self) -> BlockNotification {
        match self.next(Topic::Blocks).await {
            FeedEvent::Block(block) => block,
            other => panic!("{other:?}"),
        }
    }
}

/// A task that panics was swallowed: the sequencer answered, was ready, and sealed nothing any more.
#[tokio::test]
async fn a_task_that_panics_ends_the_sequencer_and_shows() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    world.clock.break_it();
    let failure = within("the failure", running.handle.failed()).await;
    // Whichever part asked for the time first.
    assert_eq!(failure.cause, "panicked: the clock is broken");
    assert_eq!(running.handle.readiness().reasons().get(failure.part), Some(&failure.cause));
    assert_eq!(running.reason(&envelope(1, 2)).await, "shutting_down");
    running.handle.shutdown().await;
}

/// Its blocks would be others. Ordering goes on; nothing is executed until the client is replaced.
#[tokio::test]
async fn an_execution_client_of_another_version_is_refused_by_name() {
    let world = World::new();
    world.execution.other_rules.store(true, Ordering::SeqCst);
    let running = world.start_funded(&[1]).await;
    let readiness = running.handle.readiness();
    let words = format!("scripted: not the rules of chain {}", world.chain.chain_id);
    let named = || readiness.reasons().get("execution").is_some_and(|reason| reason.contains(&words));
    within("the refusal", async {
        while !named() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    running.certify_through(2).await;
    running.hint(2).await;
    assert!(named() && world.execution.lists.lock().is_empty());
    running.handle.shutdown().await;
}

#[tokio::test]
async fn from_the_envelope_to_the_block() {
    let world = World::new();
    let running = world.start_funded(&[1, 2]).await;
    let mut notices = Notices::connect(&running).await;
    let envelope = envelope(1, 1);
    let id = running.send(&envelope).await.unwrap().id;
    let header = notices.header().await;
    assert_eq!((header.number, header.verdicts.clone()), (2, vec![None]));
    let sealed = header.sealed.decode().unwrap();
    assert_eq!(sealed.items, vec![envelope.encode()]);
    let digest = sealed.header.signing_digest(&world.chain.deployment);
    assert_eq!(recover(&digest, &sealed.signature), Ok(sequencer_key().address()));
    assert_eq!(sealed.header.hash(), header.hash);
    let receipt = running.receipt(id).await;
    assert_eq!((receipt.state, receipt.number, receipt.index), (EnvelopeState::Sealed, Some(2), Some(0)));
    assert_eq!(running.batch(2).await.state, BatchState::Sealed);

    running.certify_through(2).await;
    for number in 1..=2 {
        assert_eq!(notices.next(Topic::Certificates).await.number(), number);
    }
    assert_eq!(running.state(id).await, EnvelopeState::Certified);
    let account = running.client.get_fee_account(payer(1).address()).await.unwrap();
    let fee = envelope.encoded_len() as u128 * (BASE_FEE + 10) + GAS_FEE;
    assert_eq!(account.balance, RICH - fee - world.chain.malformed_surcharge);
    assert_eq!((account.held, account.live_nonces), (world.chain.malformed_surcharge, 1));

    running.hint(2).await;
    assert_eq!(notices.next(Topic::Releases).await.number(), 2);
    let FeedEvent::Hints(hints) = notices.next(Topic::Hints).await else { panic!("hints") };
    let stored = running.client.get_hints(2).await.unwrap().unwrap();
    assert_eq!((hints.number, hints.hints), (2, stored));

    // Nothing else is to be sealed: the next second brings an empty header that closes this one.
    world.clock.advance(1_000);
    let closing = notices.header().await;
    assert_eq!((closing.number, closing.verdicts.len()), (3, 0));
    running.certify_through(3).await;
    let block = notices.block().await;
    assert_eq!((block.number, block.timestamp), (1, START_MS / 1_000));
    assert_eq!((block.first_batch, block.last_batch), (1, 2));
    let receipt = running.receipt(id).await;
    assert_eq!((receipt.state, receipt.block_number), (EnvelopeState::Executed, Some(1)));
    assert_eq!(receipt.transactions.unwrap().len(), 1);
    let status = running.client.get_status().await.unwrap();
    assert_eq!((status.head.number, status.certified, status.block.number), (3, 3, 1));
    assert_eq!(status.role, "sequencer");

    // An empty second is not closed: nothing more is sealed, however late it gets.
    world.clock.advance(10_000);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(running.handle.tracker().head().number, 3);
    running.handle.shutdown().await;
}

/// Rule A-7.
#[tokio::test]
async fn forged_acknowledgements_are_refused_by_name() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    let good = running.acknowledgement(1, 1).await;
    let mut cases = Vec::new();
    let mut ack = good;
    ack.number = 0;
    cases.push(("unknown_batch", code::UNAVAILABLE, ack));
    ack.number = 9;
    cases.push(("unknown_batch", code::UNAVAILABLE, ack));
    let mut ack = good;
    ack.epoch = 2;
    cases.push(("wrong_epoch", code::REFUSED, ack));
    let mut ack = good;
    ack.header_hash = B256::ZERO;
    cases.push(("wrong_header", code::CONFLICT, ack));
    for member in [0, 5, u16::MAX] {
        cases.push(("unknown_member", code::REFUSED, {
            let mut ack = good;
            ack.member = member;
            ack
        }));
    }
    let mut ack = good;
    ack.member = 2;
    cases.push(("invalid_signature", code::REFUSED, ack));
    let mut ack = good;
    ack.signature = [0xff; 48];
    cases.push(("invalid_signature", code::REFUSED, ack));
    for (reason, code, ack) in cases {
        let error = running.acknowledge(&ack).await.unwrap_err();
        assert_eq!((error.reason.as_ref(), error.code), (reason, code), "{error}");
    }
    assert_eq!(running.acknowledge(&good).await, Ok(true));
    let error = running.acknowledge(&good).await.unwrap_err();
    assert_eq!(error.reason, "duplicate_acknowledgement");
    assert_eq!(running.handle.tracker().certified().number, 0, "one is no certificate");
    running.acknowledge(&running.acknowledgement(1, 2).await).await.unwrap();
    assert_eq!(running.handle.tracker().certified().number, 0, "two are none");
    running.acknowledge(&running.acknowledgement(1, 4).await).await.unwrap();
    running.certified(1).await;
    let certificate = running.batch(1).await.certificate.unwrap().decode().unwrap();
    assert_eq!(certificate.signers, 0b1011);
    // A late one is welcome and changes nothing.
    assert_eq!(running.acknowledge(&running.acknowledgement(1, 3).await).await, Ok(true));
    assert_eq!(running.batch(1).await.certificate.unwrap().decode().unwrap(), certificate);
    let counters = running.client.get_status().await.unwrap().counters;
    assert_eq!((counters["acknowledgements"], counters["certificates"]), (4, 1));

    let garbage = blindfold_rpc::Encoded::from_bytes(vec![1, 2, 3]);
    let error = refused(running.client.submit_acknowledgement(garbage).await.unwrap_err());
    assert_eq!((error.reason.as_ref(), error.code), ("undecodable", code::INVALID_PARAMS));
    running.handle.shutdown().await;
}

#[tokio::test]
async fn forged_hints_are_refused_by_name_and_the_truth_is_taken_after() {
    let world = one_batch_at_a_time();
    let running = world.start_funded(&[1, 2]).await;
    // One accepted envelope that is sound, one whose ciphertext is malformed.
    let (sound, malformed) = (envelope(1, 1), malformed(2, 1));
    running.send(&sound).await.unwrap();
    running.send(&malformed).await.unwrap();
    running.certify(1).await;
    running.sealed(2).await;
    let (release, hints) = running.open(2).await;
    assert_eq!(hints.entries.len(), 2);
    let error = running.submit(&release, &hints).await.unwrap_err();
    assert_eq!((error.reason.as_ref(), error.code, error.retry), ("not_certified", code::UNAVAILABLE, true));
    running.certify(2).await;

    let (key, claim) = match (hints.entries[0], hints.entries[1]) {
        (HintEntry::Key(_), HintEntry::Malformed(_)) => (0, 1),
        (HintEntry::Malformed(_), HintEntry::Key(_)) => (1, 0),
        other => panic!("{other:?}"),
    };
    let HintEntry::Malformed(released) = hints.entries[claim] else { panic!("it is") };
    let forge = |index: usize, entry: HintEntry| {
        let mut forged = hints.clone();
        forged.entries[index] = entry;
        forged
    };
    let mut short = hints.clone();
    short.entries.pop();
    let mut other_header = (release.clone(), hints.clone());
    other_header.0.header_hash = B256::ZERO;
    other_header.1.header_hash = B256::ZERO;
    let mut unknown = (release.clone(), hints.clone());
    (unknown.0.number, unknown.1.number) = (99, 99);
    let mut two_pds = release.clone();
    two_pds.pds.push(two_pds.pds[0]);
    let mut no_point = release.clone();
    no_point.pds[0] = [0xff; 48];
    let mut mismatch = release.clone();
    mismatch.number = 1;
    let cases = [
        ("wrong_count", release.clone(), short),
        ("not_skipped", release.clone(), forge(key, HintEntry::Skipped)),
        ("wrong_key", release.clone(), forge(key, HintEntry::Key([7; 16]))),
        ("wrong_key", release.clone(), forge(claim, HintEntry::Key([7; 16]))),
        ("wrong_singleton", release.clone(), forge(key, HintEntry::Malformed(released))),
        ("wrong_singleton", release.clone(), forge(claim, HintEntry::Malformed([0xff; 48]))),
        (
            "false_malformed",
            release.clone(),
            forge(key, HintEntry::Malformed(singleton(&sound.ciphertext.header().unwrap()))),
        ),
        ("other_header", other_header.0, other_header.1),
        ("unknown_batch", unknown.0, unknown.1),
        ("release_mismatch", mismatch, hints.clone()),
        ("wrong_sub_batches", two_pds, hints.clone()),
        ("invalid_release", no_point, hints.clone()),
    ];
    for (reason, release, hints) in cases {
        let error = running.submit(&release, &hints).await.unwrap_err();
        assert_eq!(error.reason, reason, "{error}");
    }
    assert!(running.batch(2).await.hints.is_none(), "nothing forged is kept");

    assert_eq!(running.submit(&release, &hints).await, Ok(true));
    assert_eq!(running.submit(&release, &hints).await, Ok(true), "again is no error");
    world.clock.advance(1_000);
    running.sealed(3).await;
    running.certify(3).await;
    running.executed(1).await;
    assert_eq!(running.state(sound.id()).await, EnvelopeState::Executed);
    assert_eq!(running.state(malformed.id()).await, EnvelopeState::Malformed);
    running.handle.shutdown().await;
}

#[tokio::test]
async fn without_certificates_it_stops_at_the_limit_and_goes_on_after() {
    let world = World::with(|config, _| {
        config.sealing.max_uncertified_headers = 3;
        config.sealing.max_batch_items = 1;
    });
    let running = world.start_funded(&[1]).await;
    for nonce in 1..=5 {
        running.send(&envelope(1, nonce)).await.unwrap();
    }
    running.sealed(3).await;
    running
        .eventually("the committee is named", async || {
            running.handle.readiness().reasons().contains_key("committee")
        })
        .await;
    assert_eq!(running.handle.tracker().head().number, 3);
    // A certificate of the newest certifies all before it.
    running.certify(3).await;
    running.certified(3).await;
    running.sealed(6).await;
    assert_eq!(running.handle.tracker().head().number, 6);
    // Their own certificates are still taken.
    running.certify(2).await;
    assert!(running.batch(2).await.certificate.is_some());
    running.handle.shutdown().await;
}

/// Rule A-1.
#[tokio::test]
async fn order_is_priority_fee_then_arrival_and_batches_are_cut_at_their_limits() {
    let world = World::with(|config, _| {
        config.sealing.max_uncertified_headers = 1;
        config.sealing.max_batch_items = 3;
    });
    let running = world.start_funded(&[1]).await;
    let fees = [5u128, 9, 5, 7, 9];
    let mut ids = Vec::new();
    for (nonce, fee) in (0u64..).zip(fees) {
        let envelope = envelope_with(1, nonce, |f| f.priority_fee = fee);
        ids.push(running.send(&envelope).await.unwrap().id);
    }
    running.certify(1).await;
    running.sealed(2).await;
    running.certify(2).await;
    running.sealed(3).await;
    let mut places = Vec::new();
    for id in &ids {
        let receipt = running.receipt(*id).await;
        places.push((receipt.number.unwrap(), receipt.index.unwrap()));
    }
    assert_eq!(places, [(3, 0), (2, 0), (3, 1), (2, 2), (2, 1)]);
    running.handle.shutdown().await;
}

#[tokio::test]
async fn the_sums_over_a_second_hold_and_what_overflows_takes_the_next() {
    // Room for 191,000,000 gas of envelopes in a second.
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    let running = world.start_funded(&[1]).await;
    for nonce in 1..=5 {
        running.send(&envelope_with(1, nonce, |f| f.gas_limit = 70_000_000)).await.unwrap();
    }
    for number in 1..=2 {
        running.certify(number).await;
        running.sealed(number + 1).await;
    }
    // The next stamp would lie too far ahead of the clock.
    running.certify(3).await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(running.handle.tracker().head().number, 3);
    world.clock.advance(1_000);
    running.sealed(4).await;
    let mut seconds = Vec::new();
    for header in headers(&running, 4).await.iter().skip(1) {
        seconds.push((header.second() - START_MS / 1_000, header.envelope_count));
    }
    assert_eq!(seconds, [(0, 2), (1, 2), (2, 1)]);
    running.handle.shutdown().await;
}

#[tokio::test]
async fn time_rises_though_the_clock_steps_back() {
    let world = World::with(|config, _| config.sealing.max_batch_items = 1);
    let running = world.start_funded(&[1]).await;
    world.clock.set(START_MS - 600);
    for nonce in 1..=6 {
        // Two of them fill a second.
        running.send(&envelope_with(1, nonce, |f| f.gas_limit = 95_000_000)).await.unwrap();
    }
    running.sealed(3).await;
    world.clock.set(START_MS + 100);
    running.sealed(5).await;
    let mut last = 0;
    let mut per_second = std::collections::BTreeMap::<u64, u64>::new();
    for number in 1..=running.handle.tracker().head().number {
        let header = running.batch(number).await.sealed.decode().unwrap().header;
        assert!(header.timestamp_ms > last);
        assert!(header.timestamp_ms <= START_MS + CLOCK_SKEW_MS);
        last = header.timestamp_ms;
        *per_second.entry(header.second()).or_default() += header.gas;
    }
    assert!(per_second.values().all(|gas| *gas <= 191_000_000), "{per_second:?}");
    running.handle.shutdown().await;
}

/// Rule A-3.
#[tokio::test]
async fn deposits_are_credited_without_envelopes_and_the_origin_never_falls() {
    let world = World::new();
    let running = world.start().await;
    let head = || running.handle.tracker().head().number;
    let balance = async |address: Address| running.client.get_fee_account(address).await.unwrap().balance;
    let (one, other) = (payer(5).address(), payer(1).address());
    assert_eq!(balance(one).await, 0);
    world.l1.deposit(one, 5);
    running.eventually("the first deposit", async || balance(one).await == 5).await;
    world.l1.advance(1);
    world.l1.deposit(one, 6);
    running.eventually("the second deposit", async || balance(one).await == 11).await;
    world.l1.deposit(other, RICH);
    running.eventually("somebody else's", async || balance(other).await == RICH).await;
    let before = head();
    // L1 goes away: ordering goes on with the origin at hand.
    world.l1.set_down(true);
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(before + 1).await;
    let origins: Vec<u64> =
        headers(&running, before + 1).await.iter().map(|header| header.l1_origin_number).collect();
    assert!(origins.is_sorted() && origins.contains(&4) && origins.contains(&6), "{origins:?}");
    assert_eq!(origins.last(), Some(&7));
    running.handle.shutdown().await;
}

/// Members make no certificate of a header that could not be posted in time. Signed all the same, it would keep its number
/// until L1 makes another one.
#[tokio::test]
async fn an_origin_too_old_to_be_posted_is_not_signed() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    let deadline = u64::from(running.handle.tracker().config().timing.posting_deadline);
    let reason = || running.handle.readiness().reasons().get("l1").cloned();
    *world.l1.unfinal.lock() = deadline;
    running.eventually("it says so", async || reason().is_some_and(|why| why.contains("in time"))).await;
    running.send(&envelope(1, 1)).await.unwrap();
    world.clock.advance(5_000);
    // The sealer's turn comes as often as L1 is asked.
    let asked = world.l1.asked.load(Ordering::SeqCst);
    running.eventually("time passes", async || world.l1.asked.load(Ordering::SeqCst) > asked + 20).await;
    assert_eq!(running.handle.tracker().head().number, 1, "the deposit's alone");
    world.l1.advance(std::mem::take(&mut *world.l1.unfinal.lock()));
    running.sealed(2).await;
    let header = running.batch(2).await.sealed.decode().unwrap().header;
    assert_eq!(header.l1_origin_number, *world.l1.finalized.lock());
    running.eventually("it is ready again", async || reason().is_none()).await;
    running.handle.shutdown().await;
}

async fn headers(running: &Running<'_>, through: u64) -> Vec<BatchHeader> {
    let mut headers = Vec::new();
    for number in 1..=through {
        headers.push(running.batch(number).await.sealed.decode().unwrap().header);
    }
    headers
}

#[tokio::test]
async fn envelopes_expire_in_the_mempool_with_a_receipt() {
    let world = one_batch_at_a_time();
    let running = world.start_funded(&[1]).await;
    // No room for it in batches 2 and 3: others as large pay more.
    let cheap = large_envelope_with(100, |f| (f.max_fee, f.priority_fee, f.expiry) = (BASE_FEE, 0, 3));
    running.send(&cheap).await.unwrap();
    send_large(&running, 1..=15).await;
    running.certify(1).await;
    running.sealed(2).await;
    running.certify(2).await;
    running.sealed(3).await;
    assert_eq!(running.state(cheap.id()).await, EnvelopeState::Pending);
    running.certify(3).await;
    running
        .eventually("it expires", async || running.state(cheap.id()).await == EnvelopeState::Expired)
        .await;
    assert_eq!(running.reason(&cheap).await, "already_known");
    running.handle.shutdown().await;
}

/// Envelopes of 33,151 bytes, of which a batch holds seven, and a second's target fifteen.
async fn send_large(running: &Running<'_>, nonces: RangeInclusive<u64>) {
    for nonce in nonces {
        running.send(&large_envelope(nonce)).await.unwrap();
    }
}

fn large_envelope(nonce: u64) -> Envelope {
    large_envelope_with(nonce, |_| {})
}

fn large_envelope_with(nonce: u64, change: impl FnOnce(&mut EnvelopeFields)) -> Envelope {
    let bundle = Bundle::of_transactions([vec![1; 30_000]]);
    envelope_of(1, nonce, &bundle, |fields| {
        (fields.max_fee, fields.priority_fee) = (100 * BASE_FEE, 50);
        change(fields);
    })
}

/// A wall clock that jumped an hour ahead stamped the next header so; no member took it for that hour.
#[tokio::test]
async fn a_clock_jump_stamps_nothing() {
    const HOUR_MS: i64 = 3_600_000;
    let world = World::new();
    *world.l1.newest_time.lock() = Some(START_MS / 1_000);
    let running = world.start_funded(&[1]).await;
    let reason = || running.handle.readiness().reasons().get("clock").cloned();
    for (number, jump_ms) in [(2, HOUR_MS), (3, -HOUR_MS)] {
        world.clock.jump(jump_ms);
        // L1 confirms the clock that is kept.
        running.send(&envelope(1, number)).await.unwrap();
        running.sealed(number).await;
        let header = running.batch(number).await.sealed.decode().unwrap().header;
        assert!(header.timestamp_ms < START_MS + 10_000, "{}", header.timestamp_ms);
    }
    // With nobody to judge between the two, nothing is sealed, and it says why.
    world.l1.set_down(true);
    running.eventually("it says so", async || reason().is_some_and(|why| why.contains("jumped"))).await;
    running.send(&envelope(1, 9)).await.unwrap();
    assert_eq!(running.handle.tracker().head().number, 3);
    world.clock.jump(0);
    running.sealed(4).await;
    running.eventually("it is ready again", async || reason().is_none()).await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_clock_that_starts_an_hour_ahead_seals_when_it_is_right() {
    const HOUR_MS: i64 = 3_600_000;
    let world = World::new();
    *world.l1.newest_time.lock() = Some((START_MS.saturating_add_signed(-HOUR_MS)) / 1_000);
    world.l1.deposit(payer(1).address(), RICH);
    let running = world.start().await;
    let reason = || running.handle.readiness().reasons().get("clock").cloned();
    running.eventually("it says so", async || reason().is_some_and(|why| why.contains("ahead"))).await;
    assert_eq!(running.handle.tracker().head().number, 0, "the deposit waits");
    world.clock.jump(-HOUR_MS);
    running.sealed(1).await;
    let header = running.batch(1).await.sealed.decode().unwrap().header;
    assert!(header.timestamp_ms < START_MS.saturating_add_signed(10_000 - HOUR_MS), "the right time");
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_promise_that_is_due_goes_first() {
    let world = World::with(|config, _| {
        config.sealing.max_uncertified_headers = 1;
        config.sealing.promise_batches = 2;
        config.sealing.promise_margin_batches = 1;
    });
    let running = world.start_funded(&[1]).await;
    let promised = envelope_with(1, 100, |f| f.priority_fee = 0);
    running.send_bytes(promised.encode(), true).await.unwrap();
    running.send(&envelope_with(1, 1, |f| f.priority_fee = 500)).await.unwrap();
    running.certify(1).await;
    running.sealed(2).await;
    let receipt = running.receipt(promised.id()).await;
    assert_eq!((receipt.number, receipt.index), (Some(2), Some(0)));
    running.handle.shutdown().await;
}

/// Rule A-3.
#[tokio::test]
async fn what_nobody_takes_leaves_a_quiet_chain() {
    let world = one_batch_at_a_time();
    let running = world.start_funded(&[1]).await;
    // No room for it in the batches of a full second; then the base fee is above what it pays, and nothing else comes.
    let cheap = envelope_with(1, 100, |f| (f.max_fee, f.priority_fee, f.expiry) = (BASE_FEE, 0, 6));
    running.send(&cheap).await.unwrap();
    send_large(&running, 1..=21).await;
    for number in 1..=3 {
        running.certify(number).await;
        running.sealed(number + 1).await;
    }
    assert!(running.handle.tracker().next_base_fees().base_fee > BASE_FEE);
    let mut number = 4;
    while running.state(cheap.id()).await == EnvelopeState::Pending {
        running.certify(number).await;
        number += 1;
        world.clock.advance(world.config.sealing.heartbeat_ms);
        // A header comes for it alone, or it has left the pool.
        running
            .eventually("a header, or its end", async || {
                running.handle.tracker().head().number >= number
                    || running.state(cheap.id()).await != EnvelopeState::Pending
            })
            .await;
    }
    running.handle.shutdown().await;
}

#[tokio::test]
async fn members_refusals_are_kept_and_bounded() {
    let world = World::with(|config, _| config.peers.max_refusals = 2);
    let running = world.start_funded(&[1]).await;
    let hash = running.batch(1).await.hash;
    let refuse = |number, member, reason: &str| Refusal {
        number,
        header_hash: hash,
        member,
        reason: reason.to_owned(),
    };
    for (member, reason) in
        [(1, "clock_ahead"), (2, "clock_ahead"), (2, "origin_not_final"), (3, "clock_ahead")]
    {
        assert!(running.client.submit_refusal(refuse(1, member, reason)).await.unwrap());
    }
    let error = refused(running.client.submit_refusal(refuse(7, 1, "x")).await.unwrap_err());
    assert_eq!(error.reason, "unknown_batch");
    let error = refused(running.client.submit_refusal(refuse(1, 9, "x")).await.unwrap_err());
    assert_eq!(error.reason, "unknown_member");
    let error = refused(running.client.submit_refusal(refuse(1, 1, &"x".repeat(300))).await.unwrap_err());
    assert_eq!(error.code, code::INVALID_PARAMS);
    let counters = running.client.get_status().await.unwrap().counters;
    assert_eq!(counters["member_refusals"], 4);
    assert_eq!(counters.get("refusals_of_member_1"), None, "the oldest made room");
    assert_eq!((counters["refusals_of_member_2"], counters["refusals_of_member_3"]), (1, 1));
    let text = running.admin("/refusals").await;
    assert!(text.contains("origin_not_final"), "{text}");
    running.handle.shutdown().await;
}

#[tokio::test]
async fn health_readiness_and_metrics_are_told() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    assert!(running.admin("/healthz").await.contains("200 OK"));
    running.eventually("it is ready", async || running.handle.readiness().is_ready()).await;
    assert!(running.admin("/readyz").await.contains("200 OK"));
    let metrics = running.admin("/metrics").await;
    assert!(metrics.contains("blindfold_batches_sealed_total{role=\"sequencer\"} 1"), "{metrics}");
    assert!(metrics.contains("blindfold_envelopes_refused_total{reason=\"expired\",role=\"sequencer\"} 0"));
    running.handle.shutdown().await;
}

/// What an operator asks first: is anybody waiting, who of the members is slow, what does the disk take.
#[tokio::test]
async fn who_waits_and_who_is_slow_is_told() {
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    let running = world.start_funded(&[1]).await;
    let shows = async |what: &str, holds: fn(u64) -> bool| {
        let name = format!("blindfold_{what} ");
        running
            .eventually(what, async || {
                let metrics = running.admin("/metrics").await;
                let value = metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok());
                value.is_some_and(holds)
            })
            .await;
    };
    // Header 1 has no certificate, so nothing is sealed.
    running.send(&envelope(1, 1)).await.unwrap();
    shows(r#"oldest_envelope_ms{role="sequencer"}"#, |ms| ms > 400).await;
    running.certify(1).await;
    running.sealed(2).await;
    shows(r#"oldest_envelope_ms{role="sequencer"}"#, |ms| ms == 0).await;
    shows(r#"acknowledged_number{member="1",role="sequencer"}"#, |number| number == 1).await;
    shows(r#"acknowledged_number{member="64",role="sequencer"}"#, |number| number == 0).await;
    shows(r#"store_commit_seconds_count{role="sequencer"}"#, |count| count > 2).await;
    shows(r#"rpc_seconds_count{method="blind_sendEnvelope",role="sequencer"}"#, |count| count == 1).await;
    shows(r#"rpc_answers_total{outcome="result",role="sequencer"}"#, |count| count >= 4).await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn execution_that_is_away_holds_up_nothing_and_catches_up() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    world.execution.down.store(true, Ordering::SeqCst);
    for nonce in 1..=3u64 {
        running.send(&envelope(1, nonce)).await.unwrap();
        running.sealed(2 * nonce).await;
        world.clock.advance(1_000);
        running.sealed(2 * nonce + 1).await;
        running.certify_through(2 * nonce + 1).await;
        running.hint(2 * nonce).await;
    }
    assert_eq!(running.handle.execution().block, None);
    world.execution.down.store(false, Ordering::SeqCst);
    running.executed(3).await;
    // The client loses its head and gets it back.
    world.execution.lose_blocks_above(1);
    running.send(&envelope(1, 4)).await.unwrap();
    running.sealed(8).await;
    world.clock.advance(1_000);
    running.sealed(9).await;
    running.certify_through(9).await;
    running.hint(8).await;
    running.executed(4).await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_large_batch_is_cut_into_sub_batches() {
    let world = one_batch_at_a_time();
    let running = world.start_funded(&[1]).await;
    let count = u64::from(MAX_BATCH) + 3;
    for nonce in 0..count {
        running.send(&envelope(1, nonce)).await.unwrap();
    }
    running.certify(1).await;
    running.sealed(2).await;
    running.certify(2).await;
    let (release, hints) = running.open(2).await;
    assert_eq!((release.pds.len(), hints.entries.len() as u64), (2, count));
    running.submit(&release, &hints).await.unwrap();
    running.handle.shutdown().await;
}

#[tokio::test]
async fn admission_waits_for_posting_hints_and_execution() {
    let world = World::with(|config, _| config.admission.max_backlog_bytes = MAX_ENVELOPE_BYTES as u64);
    let running = world.start_funded(&[1]).await;
    running.send(&large_envelope(1)).await.unwrap();
    running.sealed(2).await;
    // Neither certified nor posted.
    let error = running.send(&envelope(1, 2)).await.unwrap_err();
    assert_eq!((error.reason.as_ref(), error.retry), ("backlogged", true));
    assert!(error.retry_after_ms.is_some());
    running.certify_through(2).await;
    let behind = async |stage: &str| {
        running
            .eventually(stage, async || {
                let answer = running.send(&envelope(1, 2)).await;
                answer.is_err_and(|error| error.message.starts_with(stage))
            })
            .await;
    };
    behind("hints").await;
    for number in 1..=2 {
        running.hint(number).await;
    }
    behind("execution").await;
    world.clock.advance(1_000);
    running.sealed(3).await;
    running.certify(3).await;
    running.eventually("credit", async || running.send(&envelope(1, 2)).await.is_ok()).await;
    running.handle.shutdown().await;
}
