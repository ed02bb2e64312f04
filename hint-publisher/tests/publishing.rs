//! The hint publisher with members that behave well and badly, and across its own death.

mod common;

use blindfold_bte::STATED_MIN;
use blindfold_chain::{BatchView, FallbackHeader, ViewError};
use blindfold_hint_publisher::{ConfigError, StartError};
use blindfold_kit::{
    FLOOD_BYTES, Sealer, Standby, certify, envelope, flood, l1, malformed, resigned, within,
};
use blindfold_protocol::{Canonical, limits::MAX_UNCERTIFIED_RUN};
use blindfold_rpc::{RunningRole, SequencerUrls};
use common::{Behaviour, Stage, kinds};
use tokio::net::TcpListener;

fn items(envelopes: &[blindfold_protocol::Envelope]) -> Vec<Vec<u8>> {
    envelopes.iter().map(Canonical::encode).collect()
}

/// Waits until the hint publisher's status satisfies `condition`; its status has no events of its own.
async fn status(
    publisher: &blindfold_hint_publisher::HintPublisherHandle,
    condition: impl Fn(&blindfold_hint_publisher::HintPublisherStatus) -> bool,
) {
    within("a status", async {
        while !condition(&publisher.status()) {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certified_batches_get_their_hints() {
    let stage = Stage::new().await;
    let publisher = stage.start().await;
    // Eleven accepted items make two sub-batches, with a malformed one in each and skipped ones between.
    let mut first = items(&(1..=7).map(|n| envelope(n, 1)).collect::<Vec<_>>());
    first.insert(2, b"garbage".to_vec());
    first.push(malformed(8, 1).encode());
    first.extend(items(&[envelope(1, 2), malformed(2, 2), envelope(3, 2)]));
    first.push(envelope(1, 1).encode());
    let first = stage.publish(first).await;
    let (_, hints) = stage.hints_of(&first).await;
    assert_eq!(kinds(&hints), "kkskkkkkmkmks");
    // Nothing accepted: nothing to release.
    let second = stage.publish(vec![b"garbage".to_vec()]).await;
    assert_eq!(kinds(&stage.hints_of(&second).await.1), "s");
    let third = stage.publish(vec![]).await;
    assert_eq!(kinds(&stage.hints_of(&third).await.1), "");
    // A single envelope.
    let fourth = stage.publish(items(&[envelope(4, 4)])).await;
    assert_eq!(kinds(&stage.hints_of(&fourth).await.1), "k");
    status(&publisher, |status| status.published == 4 && status.in_work.is_empty()).await;
    let known = publisher.status();
    assert_eq!((known.last_published, known.faulty_members.len()), (Some(4), 0));
    let metrics = publisher.metrics().registry.render();
    for line in [
        r#"blindfold_hint_publisher_batches_published_total{role="hint_publisher"} 4"#,
        r#"blindfold_hint_publisher_hints_published_total{role="hint_publisher"} 10"#,
        r#"blindfold_hint_publisher_malformed_total{role="hint_publisher"} 2"#,
        r#"blindfold_hint_publisher_faulty_members_total{member="64",role="hint_publisher"} 0"#,
    ] {
        assert!(metrics.contains(line), "{line} missing in\n{metrics}");
    }
    let shares: u64 = stage.members.iter().map(|member| *member.state.share_calls.lock()).sum();
    assert!(shares >= 6, "t members for each batch with accepted items");
    publisher.shutdown().await;
}

/// Rule J-5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_go_to_the_sequencer_that_takes_over() {
    let mut stage = Stage::new().await;
    let standby = Standby::start(&stage.sequencer.url()).await;
    stage.config.sequencer_urls = SequencerUrls::new([standby.url(), stage.sequencer.url()]);
    let publisher = stage.start().await;
    let first = stage.publish(items(&[envelope(1, 1)])).await;
    stage.hints_of(&first).await;
    stage.sequencer = stage.sequencer.replaced_by(standby).await;
    stage.sequencer.followed_by(1).await;
    let second = stage.publish(items(&[envelope(2, 1)])).await;
    stage.hints_of(&second).await;
    publisher.shutdown().await;
}

/// A sequencer whose disk was restored from an older copy adopts its headers from the members, without their hints.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sequencer_that_went_back_gets_its_hints_again() {
    let stage = Stage::new().await;
    let publisher = stage.start().await;
    let first = stage.publish(items(&[envelope(1, 1)])).await;
    let second = stage.publish(items(&[envelope(2, 1)])).await;
    for sealed in [&first, &second] {
        stage.hints_of(sealed).await;
    }
    status(&publisher, |status| status.published == 2 && status.in_work.is_empty()).await;
    // It saw that the sequencer has them.
    let asked = stage.sequencer.double.state.lock().status_calls;
    stage.sequencer.wait("a sweep", |state| state.status_calls > asked + 1).await;
    stage.sequencer.double.state.lock().hints.remove(&2);
    stage.hints_of(&second).await;
    publisher.shutdown().await;
}

/// It went back to before hints that it was given after it had been asked for the last time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_that_a_sequencer_lost_before_it_was_asked_are_given_again() {
    let mut stage = Stage::new().await;
    stage.config.limits.sweep_ms = 1_000;
    let publisher = stage.start().await;
    let asked = stage.sequencer.double.state.lock().status_calls;
    stage.sequencer.wait("a sweep", |state| state.status_calls > asked).await;
    let sealed = stage.publish(items(&[envelope(1, 1)])).await;
    stage.hints_of(&sealed).await;
    status(&publisher, |status| status.published == 1 && status.in_work.is_empty()).await;
    stage.sequencer.double.state.lock().hints.remove(&1);
    stage.hints_of(&sealed).await;
    publisher.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn predecryption_begins_at_the_seal() {
    let stage = Stage::new().await;
    let publisher = stage.start().await;
    let sealed = stage.seal(items(&[envelope(1, 1), envelope(2, 1)])).await;
    stage.sequencer.announce(&sealed.batch, &sealed.verdicts);
    let done = r#"blindfold_hint_publisher_predecrypt_seconds_count{role="hint_publisher"} 1"#;
    within("pre-decryption", async {
        while !publisher.metrics().registry.render().contains(done) {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await;
    assert!(stage.members.iter().all(|member| *member.state.share_calls.lock() == 0), "nobody asked before");
    // A forged certificate opens nothing.
    let mut forged = certify(&sealed.batch, &[1, 2, 3]);
    forged.signers = 0b1110;
    stage.sequencer.announce_certificate(&forged);
    let counted = r#"blindfold_hint_publisher_bad_certificates_total{role="hint_publisher"} 1"#;
    within("a refusal", async {
        while !publisher.metrics().registry.render().contains(counted) {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await;
    assert!(stage.members.iter().all(|member| *member.state.share_calls.lock() == 0));
    stage.sequencer.publish_certificate(&certify(&sealed.batch, &[2, 3, 4]));
    stage.hints_of(&sealed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lying_member_is_named_and_the_batch_opens() {
    for behaviour in [Behaviour::Lies, Behaviour::Garbage, Behaviour::WrongShape] {
        let mut stage = Stage::new().await;
        // Only t members are asked, so that the faulty one is among them.
        stage.config.limits.hedge_ms = 600_000;
        stage.members[1].behave(behaviour);
        let publisher = stage.start().await;
        for n in 1..=4 {
            let sealed = stage.publish(items(&[envelope(1, n), malformed(2, n), envelope(3, n)])).await;
            assert_eq!(kinds(&stage.hints_of(&sealed).await.1), "kmk");
        }
        status(&publisher, |status| status.published == 4).await;
        let known = publisher.status();
        assert_eq!(known.faulty_members.keys().copied().collect::<Vec<_>>(), [2], "{behaviour:?}");
        let line = r#"blindfold_hint_publisher_faulty_members_total{member="2",role="hint_publisher"} "#;
        let metrics = publisher.metrics().registry.render();
        let count: u64 = metrics
            .lines()
            .find_map(|text| text.strip_prefix(line))
            .and_then(|count| count.parse().ok())
            .expect("counted");
        assert_eq!(Some(&count), known.faulty_members.get(&2));
        assert!(count >= 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_malformed_envelopes_opens_although_a_member_lies() {
    let mut stage = Stage::new().await;
    // Only t members are asked, so that the faulty one is among them.
    stage.config.limits.hedge_ms = 600_000;
    stage.members[2].behave(Behaviour::Lies);
    let publisher = stage.start().await;
    // Number 2 puts member 3 among the first three asked.
    stage.publish(vec![]).await;
    let sealed = stage.publish(items(&[malformed(1, 1), malformed(2, 1), malformed(3, 1)])).await;
    assert_eq!(kinds(&stage.hints_of(&sealed).await.1), "mmm");
    status(&publisher, |status| status.faulty_members.contains_key(&3)).await;
}

/// Nodes check many together then. Who does not take the hints with them gets the hints alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blinding_factors_are_stated_for_many_malformed_envelopes() {
    let stage = Stage::new().await;
    let _publisher = stage.start().await;
    let many = |first: u64, count: u64| -> Vec<Vec<u8>> {
        (0..count).map(|i| malformed((i % 8) as u8 + 1, first + i / 8).encode()).collect()
    };
    let enough = STATED_MIN as u64;
    let mut batch = many(1, enough);
    batch.insert(3, envelope(1, 100).encode());
    let sealed = stage.publish(batch).await;
    assert_eq!(stage.hints_of(&sealed).await.1.blindings.len(), STATED_MIN);
    let sealed = stage.publish(many(101, enough - 1)).await;
    assert!(stage.hints_of(&sealed).await.1.blindings.is_empty());
    for for_good in [true, false] {
        stage.sequencer.double.state.lock().turn_away_hints = (1, for_good);
        let sealed = stage.publish(many(if for_good { 201 } else { 301 }, enough)).await;
        let stated = stage.hints_of(&sealed).await.1.blindings.len();
        assert_eq!(stated, if for_good { 0 } else { STATED_MIN }, "turned away for good: {for_good}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lies_about_singletons_are_named() {
    for behaviour in [Behaviour::LiesAboutSingletons, Behaviour::OtherSingleton] {
        let mut stage = Stage::new().await;
        // Only t members are asked, so that the faulty one is among them.
        stage.config.limits.hedge_ms = 600_000;
        stage.members[0].behave(behaviour);
        let publisher = stage.start().await;
        for n in 1..=4 {
            let sealed = stage.publish(items(&[envelope(1, n), malformed(2, n)])).await;
            assert_eq!(kinds(&stage.hints_of(&sealed).await.1), "km");
        }
        status(&publisher, |status| status.published == 4).await;
        let faulty: Vec<u16> = publisher.status().faulty_members.keys().copied().collect();
        assert_eq!(faulty, [1], "{behaviour:?}");
    }
}

/// L1 made a header below it after they had given their shares, and they follow that one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_hold_another_header_by_now_are_not_called_faulty() {
    let stage = Stage::new().await;
    stage.members.iter().for_each(|member| member.behave(Behaviour::OtherHeader));
    let publisher = stage.start().await;
    let sealed = stage.publish(items(&[envelope(1, 1), malformed(2, 1)])).await;
    status(&publisher, |status| status.failing.get(&1).is_some_and(|fault| fault.contains("0 members")))
        .await;
    assert!(publisher.status().faulty_members.is_empty(), "{:?}", publisher.status().faulty_members);
    // One such member holds nothing up, and the batch is opened once the others hold its header.
    stage.members[..3].iter().for_each(|member| member.behave(Behaviour::Honest));
    assert_eq!(kinds(&stage.hints_of(&sealed).await.1), "km");
    assert!(publisher.status().faulty_members.is_empty());
}

/// Nobody names it, for silence is no lie; but it is asked last, so that it costs the hedge delay once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_keeps_silent_delays_one_batch_and_not_every_one() {
    let mut stage = Stage::new().await;
    stage.config.limits.hedge_ms = 500;
    stage.members[0].behave(Behaviour::Silent);
    let _publisher = stage.start().await;
    for n in 1..=8 {
        let sealed = stage.publish(items(&[envelope(1, n)])).await;
        assert_eq!(kinds(&stage.hints_of(&sealed).await.1), "k");
    }
    let asked = *stage.members[0].state.share_calls.lock();
    assert!((1..=3).contains(&asked), "asked for {asked} of 8 batches");
}

/// A batch with malformed envelopes asks for many shares at a time, and each answer was held in memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_of_an_answer_is_read_than_a_share_can_have() {
    let mut stage = Stage::new().await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("listens");
    let addr = listener.local_addr().expect("listens");
    stage.config.members[1].url = format!("http://{addr}");
    stage.members.iter().for_each(|member| member.behave(Behaviour::Silent));
    let _publisher = stage.start().await;
    let sealed = stage.publish(items(&[envelope(1, 1)])).await;
    let taken = within("the flood", flood(listener)).await;
    assert!(taken < FLOOD_BYTES, "all {taken} bytes were taken");
    stage.members.iter().for_each(|member| member.behave(Behaviour::Honest));
    stage.hints_of(&sealed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_and_refusing_members_do_not_hold_it_up() {
    for behaviour in [Behaviour::Silent, Behaviour::Refuses, Behaviour::NotYet] {
        let stage = Stage::new().await;
        stage.members[0].behave(behaviour);
        let publisher = stage.start().await;
        for n in 1..=3 {
            let sealed = stage.publish(items(&[envelope(1, n), malformed(2, n)])).await;
            assert_eq!(kinds(&stage.hints_of(&sealed).await.1), "km");
        }
        assert!(publisher.status().faulty_members.is_empty(), "silence is no lie");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_few_members_are_waited_for() {
    let mut stage = Stage::new().await;
    stage.config.limits.member_timeout_ms = 2_000;
    stage.members[0].behave(Behaviour::Silent);
    stage.members[1].behave(Behaviour::NotYet);
    stage.members[2].behave(Behaviour::Refuses);
    let publisher = stage.start().await;
    let sealed = stage.publish(items(&[envelope(1, 1)])).await;
    // Two refuse for good, so that everybody has answered or failed: the batch is begun again until it opens.
    stage.members[1].behave(Behaviour::Refuses);
    stage.members[0].behave(Behaviour::Refuses);
    status(&publisher, |status| status.failing.get(&1).is_some_and(|fault| fault.contains("3 are needed")))
        .await;
    stage.members[0].behave(Behaviour::Honest);
    stage.members[1].behave(Behaviour::Honest);
    stage.hints_of(&sealed).await;
    status(&publisher, |status| status.failing.is_empty() && status.published == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_verdicts_of_the_sequencer_name_nobody() {
    let stage = Stage::new().await;
    let sealed = stage.sealer.seal_next(items(&[envelope(1, 1), envelope(2, 1), envelope(3, 1)])).await;
    stage.validated(&sealed);
    // The sequencer says that the second was skipped: the header commits to another verdict, before anybody is asked.
    let mut verdicts = sealed.verdicts.clone();
    verdicts[1] =
        blindfold_protocol::validity::Verdict::Skipped(blindfold_protocol::EnvelopeError::FeeNonceUsed);
    stage.sequencer.keep(&sealed.batch, &verdicts);
    let certificate = certify(&sealed.batch, &[1, 2, 3]);
    stage.sequencer.keep_certificate(&certificate);
    let publisher = stage.start().await;
    status(&publisher, |status| {
        status.failing.get(&1).is_some_and(|fault| fault.contains("root that the header commits to"))
    })
    .await;
    assert!(publisher.status().faulty_members.is_empty());
    // Verdicts that contradict the batch itself are found before anybody is asked.
    stage.sequencer.keep(&sealed.batch, &verdicts[..2]);
    stage.sequencer.keep_certificate(&certificate);
    status(&publisher, |status| {
        status.failing.get(&1).is_some_and(|fault| fault.contains("2 verdicts for 3"))
    })
    .await;
    stage.sequencer.keep(&sealed.batch, &sealed.verdicts);
    stage.sequencer.keep_certificate(&certificate);
    assert_eq!(kinds(&stage.hints_of(&sealed).await.1), "kkk");
    assert!(publisher.status().faulty_members.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_and_started_again_it_catches_up() {
    let stage = Stage::new().await;
    let publisher = stage.start().await;
    let first = stage.publish(items(&[envelope(1, 1)])).await;
    stage.hints_of(&first).await;
    let waiting = stage.seal(items(&[envelope(2, 1)])).await;
    stage.sequencer.announce(&waiting.batch, &waiting.verdicts);
    drop(publisher);

    // While it is down the sequencer goes on; one batch in the middle has hints from elsewhere.
    stage.sequencer.keep_certificate(&stage.sealer.certify_by(&waiting.batch, &[1, 2, 3]).await);
    let mut missed = vec![waiting];
    for n in 0..9u64 {
        let sealed = stage.seal(items(&[envelope(3, n), malformed(4, n)])).await;
        stage.sequencer.keep_certificate(&stage.sealer.certify_by(&sealed.batch, &[2, 3, 4]).await);
        missed.push(sealed);
    }
    let pending = stage.seal(items(&[envelope(5, 1)])).await;
    let fifth = missed[3].batch.header.number;
    let elsewhere = {
        let hints = blindfold_protocol::BatchHints {
            number: fifth,
            header_hash: missed[3].hash,
            entries: vec![],
            blindings: vec![],
        };
        let release = blindfold_protocol::Release { number: fifth, header_hash: missed[3].hash, pds: vec![] };
        stage.sequencer.double.state.lock().hints.insert(fifth, (release.clone(), hints.clone()));
        (release, hints)
    };

    let publisher = stage.start().await;
    let live = stage.sealer.certify_by(&pending.batch, &[1, 2, 3]).await;
    stage.sequencer.publish_certificate(&live);
    for sealed in missed.iter().filter(|sealed| sealed.batch.header.number != fifth).chain([&pending]) {
        stage.hints_of(sealed).await;
    }
    assert_eq!(stage.sequencer.double.state.lock().hints[&fifth], elsewhere, "not made again");
    status(&publisher, |status| status.in_work.is_empty() && status.backlog.is_empty()).await;
    assert_eq!(publisher.status().published, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_are_sent_until_the_sequencer_has_them() {
    let stage = Stage::new().await;
    let publisher = stage.start().await;
    stage.sequencer.double.state.lock().turn_away_hints = (3, false);
    let first = stage.publish(items(&[envelope(1, 1)])).await;
    stage.hints_of(&first).await;
    assert_eq!(stage.sequencer.double.state.lock().hint_submissions, 4);
    // Refused for good, they are made again from the start.
    stage.sequencer.double.state.lock().turn_away_hints = (1, true);
    let second = stage.publish(items(&[envelope(2, 1)])).await;
    stage.hints_of(&second).await;
    status(&publisher, |status| status.published == 2 && status.failing.is_empty()).await;
    let failures = r#"blindfold_hint_publisher_batch_failures_total{role="hint_publisher"} 1"#;
    assert!(publisher.metrics().registry.render().contains(failures));
}

/// The sequencer shows a batch's hints to the task that catches up before it answers the task that gave them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_hints_are_counted_although_they_are_seen_first() {
    let mut stage = Stage::new().await;
    stage.config.limits.sweep_ms = 10;
    let sealed = stage.seal(items(&[envelope(1, 1)])).await;
    stage.sequencer.double.state.lock().late_hints = Some(1);
    let certificate = stage.sealer.certify_by(&sealed.batch, &[1, 2, 3]).await;
    stage.sequencer.keep_certificate(&certificate);
    let publisher = stage.start().await;
    // Caught up with already, it comes over the feed, too.
    stage.sequencer.wait("hints that it asks for", |state| state.late_hints_asked > 0).await;
    stage.sequencer.announce(&sealed.batch, &sealed.verdicts);
    stage.sequencer.announce_certificate(&certificate);
    stage.hints_of(&sealed).await;
    status(&publisher, |status| status.published == 1 && status.in_work.is_empty()).await;
    assert_eq!(stage.sequencer.double.state.lock().hint_submissions, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_certificate_decides_between_two_headers() {
    let stage = Stage::new().await;
    let _publisher = stage.start().await;
    let sealed = stage.seal(items(&[envelope(1, 1)])).await;
    // Another header is announced first, signed as well; and one that the sequencer did not sign.
    let other = resigned(&sealed.batch, |header| header.timestamp_ms += 1);
    stage.sequencer.announce(&other, &sealed.verdicts);
    stage.sequencer.announce(&sealed.batch, &sealed.verdicts);
    let certificate = stage.sealer.certify_by(&sealed.batch, &[1, 2, 3]).await;
    stage.sequencer.publish_certificate(&certificate);
    stage.hints_of(&sealed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_descendants_certificate_is_enough() {
    let stage = Stage::new().await;
    let _publisher = stage.start().await;
    let mut sealed = Vec::new();
    for n in 1..=3 {
        let batch = stage.seal(items(&[envelope(n, 1)])).await;
        stage.sequencer.announce(&batch.batch, &batch.verdicts);
        sealed.push(batch);
    }
    stage.sequencer.publish_certificate(&certify(&sealed[2].batch, &[1, 2, 3]));
    for batch in &sealed {
        stage.hints_of(batch).await;
    }
}

/// After changes of the sequencer's key more headers than one sequencer's may wait for one certificate (rule K-6).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_run_under_one_certificate_gets_its_hints() {
    let stage = Stage::new().await;
    let first = stage.seal(items(&[envelope(1, 1)])).await;
    stage.sealer.certify_by(&first.batch, &[1, 2, 3]).await;
    let mut last = None;
    for _ in 1..MAX_UNCERTIFIED_RUN {
        let batch = stage.seal(vec![]).await;
        last = Some(stage.sealer.certify_by(&batch.batch, &[1, 2, 3]).await);
    }
    stage.sequencer.keep_certificate(&last.expect("a run"));
    let _publisher = stage.start().await;
    stage.hints_of(&first).await;
}

/// Members say "not yet" of it, and will say so for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_members_never_open_keeps_no_other_batch_waiting() {
    let mut stage = Stage::new().await;
    (stage.config.limits.catch_up_batches, stage.config.limits.members_wait_ms) = (2, 20);
    for n in 1..=5 {
        let sealed = stage.sealer.seal_next(items(&[envelope(n, 1)])).await;
        stage.sequencer.keep(&sealed.batch, &sealed.verdicts);
        stage.sequencer.keep_certificate(&stage.sealer.certify_by(&sealed.batch, &[1, 2, 3]).await);
    }
    let mut opened = Vec::new();
    for n in 6..=8 {
        let sealed = stage.seal(items(&[envelope(n, 1)])).await;
        stage.sequencer.keep_certificate(&stage.sealer.certify_by(&sealed.batch, &[1, 2, 3]).await);
        opened.push(sealed);
    }
    let publisher = stage.start().await;
    for sealed in &opened {
        stage.hints_of(sealed).await;
    }
    status(&publisher, |status| status.failing.len() == 5).await;
    assert!(publisher.status().failing.values().all(|fault| fault.contains("3 are needed")));
}

/// They come without certificates then, and wait for them; of what waits so nothing is tried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_that_could_not_be_fetched_before_they_were_certified_get_their_hints() {
    let mut stage = Stage::new().await;
    stage.config.limits.catch_up_batches = 2;
    let publisher = stage.start().await;
    stage.sequencer.double.state.lock().withhold = true;
    let mut waiting = Vec::new();
    for n in 1..=3 {
        let sealed = stage.sealer.seal_next(items(&[envelope(n, 1)])).await;
        stage.sequencer.keep(&sealed.batch, &sealed.verdicts);
        waiting.push(sealed);
    }
    status(&publisher, |status| status.failing.len() == 3).await;
    stage.sequencer.double.state.lock().withhold = false;
    status(&publisher, |status| status.in_work.len() == 3).await;
    // Nobody announces them.
    for sealed in &waiting {
        stage.sequencer.keep_certificate(&stage.sealer.certify_by(&sealed.batch, &[1, 2, 3]).await);
    }
    // Members open them now.
    for sealed in &waiting {
        stage.validated(sealed);
        stage.hints_of(sealed).await;
    }
    status(&publisher, |status| status.failing.is_empty() && status.published == 3).await;
}

/// Nobody certifies what it had to give way to, and its place is free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_l1_made_ends_the_work_on_the_one_in_its_place() {
    let stage = Stage::new().await;
    let publisher = stage.start().await;
    let header = stage.sealer.l1_header(1_000, vec![]).header;
    let made = FallbackHeader { header, items: vec![], l1_block: 9 }.batch();
    let sealed = stage.seal(items(&[envelope(1, 1)])).await;
    stage.sequencer.announce(&sealed.batch, &sealed.verdicts);
    status(&publisher, |status| status.in_work.contains(&1)).await;
    stage.sequencer.keep(&made, &[]);
    let above = stage.seal(vec![]).await;
    stage.sequencer.keep_certificate(&certify(&above.batch, &[1, 2, 3]));
    stage.hints_of(&above).await;
    status(&publisher, |status| status.in_work.is_empty() && status.backlog.is_empty()).await;
    assert_eq!((publisher.status().published, publisher.status().failing.len()), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_start_says_why() {
    let mut stage = Stage::new().await;
    stage.config.members.truncate(2);
    assert!(matches!(
        stage.try_start().await,
        Err(StartError::Config(ConfigError::TooFewMembers { epoch: 1, given: 2, needed: 3 }))
    ));
    let mut stage = Stage::new().await;
    let publisher = stage.start().await;
    stage.config.admin_addr = publisher.admin_addr();
    assert!(matches!(stage.try_start().await, Err(StartError::Serve(_))));
}

#[tokio::test]
async fn every_contradiction_of_a_batch_is_named() {
    let sealer = Sealer::new(&l1()).await;
    let mut all = items(&[envelope(1, 1), envelope(2, 1)]);
    all.push(b"garbage".to_vec());
    let mut bad_point = envelope(3, 1);
    bad_point.ciphertext.c = [0xff; 48];
    all.push(bad_point.encode());
    let sealed = sealer.seal_next(all).await;
    let skipped = Some("expired".to_owned());
    let right: Vec<Option<String>> =
        sealed.verdicts.iter().map(|verdict| verdict.reason().map(str::to_owned)).collect();
    assert_eq!(right.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true, true]);
    let view = BatchView::read(&sealed.batch, &right, 8).expect("right");
    assert_eq!((view.accepted.len(), view.sub_batches().len(), view.items), (2, 1, 4));
    assert_eq!(BatchView::read(&sealed.batch, &right, 1).expect("right").sub_batches().len(), 2);
    let read = |verdicts: &[Option<String>]| BatchView::read(&sealed.batch, verdicts, 8).expect_err("wrong");
    assert_eq!(read(&right[..3]), ViewError::VerdictCount { items: 4, verdicts: 3 });
    assert!(matches!(read(&[None, None, None, skipped.clone()]), ViewError::Undecodable { index: 2, .. }));
    // Points are not looked at.
    assert_eq!(read(&[None, None, skipped, None]), ViewError::Root);
    let mut unknown = right.clone();
    unknown[3] = Some("scripted".to_owned());
    assert_eq!(read(&unknown), ViewError::Verdict { index: 3 });
    let mut false_reason = right.clone();
    false_reason[3] = Some("expired".to_owned());
    assert_eq!(read(&false_reason), ViewError::Root, "the header commits to the verdicts");
    let mut other = sealed.batch.as_ref().clone();
    other.items.swap(0, 1);
    assert_eq!(BatchView::read(&other, &right, 8).expect_err("wrong"), ViewError::Root);
}
