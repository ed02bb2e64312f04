//! What a member does with headers and certificates.

mod common;

use blindfold_rpc::RunningRole;
use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use blindfold_chain::{AnnouncedEnd, HeaderId, PendingFallbackHeader};
use blindfold_committee::{Evidence, PeerUrl};
use blindfold_kit::{
    MEMBERS, MemberAnswers, SequencerDouble, SequencerState, Standby, certify, chain_config, client,
    envelope, malformed, member_that_answers, resigned, within,
};
use blindfold_protocol::{B256, Canonical, SealedBatch, limits::MAX_UNCERTIFIED_RUN};
use blindfold_rpc::{
    Encoded, RpcError, SequencerUrls, ServerConfig, ServerHandle, serve,
    types::{CommitteeStatus, HeldBatch},
};
use common::{FIRST_ORIGIN, Machine, certified, sealed, sealer, second, votes_from};
use tokio::sync::{Semaphore, watch};

fn acknowledged(state: &SequencerState, number: u64) -> Vec<(u16, B256)> {
    let mut known: Vec<_> = state
        .acknowledgements
        .iter()
        .filter(|acknowledgement| acknowledgement.number == number)
        .map(|acknowledgement| (acknowledgement.member, acknowledgement.header_hash))
        .collect();
    known.sort_unstable();
    known.dedup();
    known
}

fn refused_for(state: &SequencerState, number: u64, reason: &str) -> bool {
    state.refusals.iter().any(|refusal| refusal.number == number && refusal.reason == reason)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_committee_certifies_what_is_valid() {
    let sequencer = SequencerDouble::start().await;
    let machines: Vec<Machine> = (1..=MEMBERS).map(|member| Machine::new(member, sequencer.url())).collect();
    let mut members = Vec::new();
    for machine in &machines {
        members.push(machine.start().await);
    }
    for member in &members {
        assert_eq!(votes_from(member).await, 1);
    }
    sequencer.followed_by(members.len()).await;
    let sealer = sealer().await;
    let batches = [
        vec![],
        vec![envelope(1, 1).encode(), malformed(2, 1).encode(), b"garbage".to_vec(), envelope(1, 1).encode()],
        (1..=8).map(|n| envelope(n, 7).encode()).collect(),
    ];
    for items in batches {
        // What is certified is not acknowledged any more: the certificate is made when everybody has acknowledged, of
        // acknowledgements that are sent again until then.
        sequencer.double.state.lock().aggregate = false;
        let batch = sealer.seal_next(items).await;
        sequencer.publish(&batch.batch, &batch.verdicts);
        let number = batch.batch.header.number;
        let everybody: Vec<_> = (1..=MEMBERS).map(|member| (member, batch.hash)).collect();
        sequencer.wait("all acknowledgements", |state| acknowledged(state, number) == everybody).await;
        sequencer.double.state.lock().aggregate = true;
        sequencer.wait("a certificate", |state| state.batches[&number].certificate.is_some()).await;
        sealer
            .tracker
            .accept_certificate(&sequencer.certificate(number).expect("there"))
            .await
            .expect("it stands");
    }
    for member in &members {
        certified(member, 3).await;
        let status = member.status().await;
        assert_eq!((status.acknowledged, status.certified, status.epoch), (3, 3, 1));
        assert!(status.refusals.is_empty() && status.second_headers_refused == 0);
        assert!(member.metrics().registry.render().contains("blindfold_committee_acknowledgements_total"));
    }
    for member in members {
        member.shutdown().await;
    }
}

/// Rule J-5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_goes_on_with_the_sequencer_that_takes_over() {
    let sequencer = SequencerDouble::start().await;
    let standby = Standby::start(&sequencer.url()).await;
    // In either order.
    let lists = [[sequencer.url(), standby.url()], [standby.url(), sequencer.url()]];
    let lists = lists.map(SequencerUrls::new);
    let members = (1..=MEMBERS).map(|member| Machine::new(member, lists[usize::from(member % 2)].clone()));
    let machines: Vec<Machine> = members.collect();
    let mut members = Vec::new();
    for machine in &machines {
        members.push(machine.start().await);
    }
    for member in &members {
        assert_eq!(votes_from(member).await, 1);
    }
    sequencer.followed_by(members.len()).await;
    let sealer = sealer().await;
    let seal = async |sequencer: &SequencerDouble, number| {
        let batch = sealer.seal_next_envelopes(&[envelope(1, number)]).await;
        sequencer.publish(&batch.batch, &batch.verdicts);
        sequencer.wait("a certificate", |state| state.batches[&number].certificate.is_some()).await;
        let certificate = sequencer.certificate(number).expect("there");
        sealer.tracker.accept_certificate(&certificate).await.expect("it stands");
    };
    seal(&sequencer, 1).await;
    for member in &members {
        certified(member, 1).await;
    }
    let sequencer = sequencer.replaced_by(standby).await;
    sequencer.followed_by(members.len()).await;
    seal(&sequencer, 2).await;
    for member in &members {
        certified(member, 2).await;
    }
    for member in members {
        member.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_header_is_refused_and_both_are_kept() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let mut machine = Machine::new(2, sequencer.url());
    machine.config.limits.certificate_wait_ms = 60_000;
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    let batch = sealer.seal_next_envelopes(&[envelope(1, 1)]).await;
    let other = second(&batch.batch);
    sequencer.publish(&batch.batch, &batch.verdicts);
    sequencer.wait("an acknowledgement", |state| !state.acknowledgements.is_empty()).await;
    for _ in 0..3 {
        sequencer.announce(&other, &batch.verdicts);
    }
    sequencer.wait("a refusal", |state| refused_for(state, 1, "second_header")).await;
    // A third one for the same number, and the second again after it.
    let third = resigned(&batch.batch, |header| header.timestamp_ms += 2);
    sequencer.announce(&third, &batch.verdicts);
    sequencer.announce(&other, &batch.verdicts);
    sequencer.wait("another refusal", |state| state.refusals.len() == 2).await;

    let status = member.status().await;
    assert_eq!(status.second_headers_refused, 2);
    assert_eq!(status.refusals.len(), 2);
    let evidence = member.evidence();
    assert_eq!(evidence[0].first, batch.batch.signed_header());
    assert_eq!(evidence[0].second, other.signed_header());
    assert_eq!(evidence[1].second, third.signed_header());
    drop(member);

    // Killed and started again, shown the second header first.
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let before = sequencer.double.state.lock().acknowledgements.len();
    sequencer.announce(&other, &batch.verdicts);
    sequencer.wait("it again", |state| state.acknowledgements.len() > before).await;
    assert_eq!(member.status().await.second_headers_refused, 2, "known already");
    assert_eq!(member.evidence(), evidence);
    let only = vec![(2, batch.hash)];
    assert_eq!(acknowledged(&sequencer.double.state.lock(), 1), only);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_headers_that_wait_are_evidence_too() {
    let sequencer = SequencerDouble::start().await;
    let machine = Machine::new(1, sequencer.url());
    *machine.l1.finalized.lock() = 0;
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    let batch = sealer.seal_next_envelopes(&[]).await;
    sequencer.publish(&batch.batch, &batch.verdicts);
    sequencer.announce(&second(&batch.batch), &batch.verdicts);
    sequencer.wait("a refusal", |state| refused_for(state, 1, "second_header")).await;
    assert_eq!(member.evidence().len(), 1);
    // A header that the sequencer did not sign is no evidence and takes nobody's place.
    let mut forged = second(&batch.batch);
    forged.header.timestamp_ms += 1;
    sequencer.announce(&forged, &batch.verdicts);
    sequencer.wait("a refusal", |state| refused_for(state, 1, "wrong_signer")).await;
    assert_eq!(member.evidence().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_judged_yet_is_judged_later() {
    let sequencer = SequencerDouble::start().await;
    let machine = Machine::new(1, sequencer.url());
    *machine.l1.finalized.lock() = 2;
    machine.clock.set(0);
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    let batch = sealer.seal_next_envelopes(&[envelope(1, 1)]).await;
    sequencer.publish(&batch.batch, &batch.verdicts);
    sequencer.wait("a refusal", |state| refused_for(state, 1, "clock_ahead")).await;
    assert_eq!(member.tracker().head().number, 0);
    // Exactly as far ahead as is borne.
    machine.clock.set(batch.batch.header.timestamp_ms - 2_000);
    sequencer.wait("a refusal", |state| refused_for(state, 1, "origin_not_final")).await;
    *machine.l1.finalized.lock() = 3;
    sequencer.wait("an acknowledgement", |state| acknowledged(state, 1) == vec![(1, batch.hash)]).await;
    let reasons: Vec<String> =
        member.status().await.refusals.into_iter().map(|refusal| refusal.reason).collect();
    assert_eq!(reasons, ["clock_ahead", "origin_not_final"], "each told once, however often it was tried");
}

/// The sequencer would have to give the same batches without end to all whose L1 lags.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_taken_while_l1_lags_is_asked_for_after_a_pause() {
    let sequencer = SequencerDouble::start().await;
    let sealer = sealer().await;
    for _ in 0..4 {
        let batch = sealer.seal_next(vec![]).await;
        sequencer.publish(&batch.batch, &batch.verdicts);
        sequencer.publish_certificate(&sealer.certify_by(&batch.batch, &[2, 3, 4]).await);
    }
    let mut machine = Machine::new(1, sequencer.url());
    *machine.l1.finalized.lock() = 2;
    (machine.config.limits.catch_up_batches, machine.config.limits.header_retry_ms) = (2, 400);
    machine.config.limits.peer_check_ms = 600_000;
    let (started, member) = (blindfold_runtime::now(), machine.start().await);
    sequencer.wait("questions", |state| state.status_calls >= 8).await;
    assert!(started.elapsed() >= Duration::from_millis(3 * 400), "{:?}", started.elapsed());
    *machine.l1.finalized.lock() = 3;
    certified(&member, 4).await;
}

/// A committee that was away finishes what was in flight; nobody crawls along with origins that hold back what L1 forces.
/// Rule V-9.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stale_origins_are_acknowledged_sixteen_times_in_a_row() {
    let sequencer = SequencerDouble::start().await;
    let machine = Machine::new(1, sequencer.url());
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    let mut stale_ms = 0;
    for number in 1..=16 {
        let batch = sealer.seal_next(vec![]).await;
        let limit = u64::from(chain_config().timing.max_origin_age_seconds);
        stale_ms = (batch.batch.header.l1_origin_time + limit + 1) * 1_000;
        machine.clock.set(stale_ms);
        sequencer.publish(&batch.batch, &batch.verdicts);
        sequencer
            .wait("an acknowledgement", |state| acknowledged(state, number) == vec![(1, batch.hash)])
            .await;
        sequencer.publish_certificate(&sealer.certify_by(&batch.batch, &[1, 2, 3]).await);
        certified(&member, number).await;
    }
    let batch = sealer.seal_next(vec![]).await;
    sequencer.publish(&batch.batch, &batch.verdicts);
    sequencer.wait("a refusal", |state| refused_for(state, 17, "origin_stale")).await;
    assert_eq!(member.tracker().head().number, 16);
    // It is not refused for good: to a clock that is a second behind it is fresh.
    machine.clock.set(stale_ms - 1_000);
    sequencer.wait("an acknowledgement", |state| acknowledged(state, 17) == vec![(1, batch.hash)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_header_is_refused_with_its_rule() {
    let sequencer = SequencerDouble::start().await;
    let machine = Machine::new(3, sequencer.url());
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    let batch = sealer.seal_next_envelopes(&[envelope(1, 1)]).await;
    let bad = resigned(&batch.batch, |header| header.gas += 1);
    sequencer.announce(&bad, &batch.verdicts);
    sequencer.wait("a refusal", |state| state.refusals.iter().any(|refusal| refusal.number == 1)).await;
    let refusals = member.status().await.refusals;
    assert_eq!(refusals[0].header_hash, bad.header.hash());
    assert!(refusals[0].reason.contains("gas"), "{}", refusals[0].reason);
    assert_eq!(member.tracker().head().number, 0);
    // The valid one is not a second header: the first was never taken.
    sequencer.publish(&batch.batch, &batch.verdicts);
    sequencer.wait("an acknowledgement", |state| acknowledged(state, 1) == vec![(3, batch.hash)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_certified_header_is_followed_whatever_was_acknowledged() {
    let sequencer = SequencerDouble::start().await;
    let machine = Machine::new(4, sequencer.url());
    let member = machine.start().await;
    sequencer.followed_by(1).await;

    // Member 4 is shown one chain, the others certify another.
    let sealer = sealer().await;
    let shown = sealer.seal_next_envelopes(&[envelope(1, 1)]).await;
    let shown_next = sealer.seal_next_envelopes(&[envelope(2, 1)]).await;
    sequencer.publish(&shown.batch, &shown.verdicts);
    sequencer.publish(&shown_next.batch, &shown_next.verdicts);
    sequencer.wait("acknowledgements", |state| acknowledged(state, 2).len() == 1).await;

    let other = common::sealer().await;
    let real = other.seal_next_envelopes(&[envelope(3, 1)]).await;
    let real_next = other.seal_next_envelopes(&[envelope(4, 1)]).await;
    let real_third = other.seal_next_envelopes(&[envelope(5, 1)]).await;
    for batch in [&real, &real_next, &real_third] {
        sequencer.keep(&batch.batch, &batch.verdicts);
    }
    sequencer.publish_certificate(&certify(&real.batch, &[1, 2, 3]));
    certified(&member, 1).await;
    assert_eq!(member.tracker().certified().hash, real.hash);
    // The proof is there before our own header is gone; a sweep may have met another pair of this chain before it.
    let pair = Evidence { first: shown.batch.signed_header(), second: real.batch.signed_header() };
    assert!(member.evidence().contains(&pair));

    // Number 2 was acknowledged on the other chain: never again. Number 3 is free.
    sequencer.announce(&real_next.batch, &real_next.verdicts);
    sequencer.wait("a refusal", |state| refused_for(state, 2, "already_acknowledged")).await;
    sequencer.announce(&real_third.batch, &real_third.verdicts);
    sequencer.wait("an acknowledgement", |state| acknowledged(state, 3) == vec![(4, real_third.hash)]).await;
    let metrics = member.metrics().registry.render();
    assert!(
        metrics.contains("blindfold_committee_followed_other_certificate_total{role=\"committee\"} 1"),
        "{metrics}"
    );
    let state = sequencer.double.state.lock();
    assert_eq!(acknowledged(&state, 1), vec![(4, shown.hash)]);
    assert_eq!(acknowledged(&state, 2), vec![(4, shown_next.hash)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_sequencer_withholds_comes_from_other_members() {
    let honest = SequencerDouble::start().await;
    let first_machine = Machine::new(1, honest.url());
    let first = first_machine.start().await;
    honest.followed_by(1).await;
    let sealer = sealer().await;
    let mut last = 0;
    for n in 1..=5 {
        let batch = sealer.seal_next_envelopes(&[envelope(n, 1)]).await;
        honest.publish(&batch.batch, &batch.verdicts);
        honest.publish_certificate(&sealer.certify_by(&batch.batch, &[1, 2, 3]).await);
        last = batch.batch.header.number;
    }
    certified(&first, last).await;

    let silent = SequencerDouble::start().await;
    let mut machine = Machine::new(2, silent.url());
    machine.config.limits.peer_check_ms = 10;
    machine.config.peers =
        vec![blindfold_committee::PeerUrl { member: 1, url: format!("http://{}", first.rpc_addr()) }];
    let second = machine.start().await;
    certified(&second, last).await;
    assert_eq!(second.tracker().certified(), first.tracker().certified());
    // Nothing to acknowledge: it is all certified.
    assert_eq!(second.status().await.acknowledged, 0);

    // Cut off while it runs, it still finds out.
    let batch = sealer.seal_next_envelopes(&[envelope(6, 1)]).await;
    honest.publish(&batch.batch, &batch.verdicts);
    honest.publish_certificate(&sealer.certify_by(&batch.batch, &[1, 2, 3]).await);
    certified(&second, 6).await;
}

/// The first answer whose certificate stood was taken each time, whatever items came with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_gives_other_items_under_a_certified_header_is_passed_over() {
    let honest = SequencerDouble::start().await;
    let first_machine = Machine::new(1, honest.url());
    let first = first_machine.start().await;
    honest.followed_by(1).await;
    let lying = SequencerDouble::start().await;
    let sealer = sealer().await;
    for n in 1..=3 {
        let batch = sealer.seal_next_envelopes(&[envelope(n, 1)]).await;
        let certificate = sealer.certify_by(&batch.batch, &[1, 2, 3]).await;
        honest.publish(&batch.batch, &batch.verdicts);
        honest.publish_certificate(&certificate);
        let mut altered = (*batch.batch).clone();
        altered.items[0][40] ^= 1;
        lying.keep(&altered, &batch.verdicts);
        lying.keep_certificate(&certificate);
    }
    certified(&first, 3).await;

    let mut machine = Machine::new(2, lying.url());
    machine.config.peers =
        vec![blindfold_committee::PeerUrl { member: 1, url: format!("http://{}", first.rpc_addr()) }];
    let second = machine.start().await;
    certified(&second, 3).await;
    assert_eq!(second.tracker().certified(), first.tracker().certified());
}

/// Once it had given what could not be taken, the sequencer was never again asked for what is certified.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sequencer_that_was_refused_is_asked_again() {
    const LAST: u64 = 40;
    let sealer = sealer().await;
    let mut batches = Vec::new();
    for number in 1..=LAST {
        let items = if number == 1 { vec![envelope(1, 1).encode()] } else { vec![] };
        let batch = sealer.seal_next(items).await;
        let certificate = sealer.certify_by(&batch.batch, &[1, 2, 3]).await;
        batches.push((batch, certificate));
    }
    let (first, certificate) = batches.remove(0);
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let mut altered = (*first.batch).clone();
    altered.items[0][40] ^= 1;
    sequencer.keep(&altered, &first.verdicts);
    sequencer.keep_certificate(&certificate);
    let peer = PeerDouble::holding(&[first.batch]);
    let (_server, url) = peer.serve().await;
    let mut machine = Machine::new(1, sequencer.url());
    machine.config.limits.peer_check_ms = 1_500;
    machine.config.peers = vec![url];
    machine.knows_every_vote().await;
    let member = machine.start().await;
    // The other member gives what is right once the sequencer was refused.
    let refused = "blindfold_committee_bad_certificates_total{role=\"committee\"}";
    within("the refusal", async {
        while !member.metrics().registry.render().contains(&format!("{refused} 1")) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    peer.answers.add_permits(100);
    certified(&member, 1).await;
    let checks = |count| {
        let before = peer.asked.borrow().statuses;
        peer.until("checks", move |asked| asked.statuses >= before + count)
    };
    checks(2).await;

    // From here on it is right, and nobody else has it.
    for (batch, certificate) in &batches {
        sequencer.keep(&batch.batch, &batch.verdicts);
        sequencer.keep_certificate(certificate);
    }
    let before = peer.asked.borrow().statuses;
    certified(&member, LAST).await;
    // One check finds out, and one round brings all of it.
    let asked = peer.asked.borrow().statuses - before;
    assert!(asked <= 2, "the other member was asked {asked} times");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missed_and_disordered_notifications_are_made_up_for() {
    let sequencer = SequencerDouble::start().await;
    let machine = Machine::new(1, sequencer.url());
    let sealer = sealer().await;
    let mut batches = Vec::new();
    for n in 1..=6 {
        batches.push(sealer.seal_next_envelopes(&[envelope(n, 1)]).await);
    }
    // Two before it is there, one only kept, the rest in the wrong order, a forged certificate among them.
    sequencer.keep(&batches[0].batch, &batches[0].verdicts);
    sequencer.keep_certificate(&certify(&batches[0].batch, &[1, 2, 3]));
    sequencer.keep(&batches[1].batch, &batches[1].verdicts);
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    sealed(&member, 2).await;
    assert_eq!(member.tracker().certified().number, 1);
    sequencer.keep(&batches[2].batch, &batches[2].verdicts);
    let mut forged = certify(&batches[3].batch, &[1, 2, 3]);
    forged.signature = certify(&batches[4].batch, &[1, 2, 3]).signature;
    sequencer.announce_certificate(&forged);
    for batch in [&batches[5], &batches[4], &batches[3]] {
        sequencer.publish(&batch.batch, &batch.verdicts);
    }
    sealed(&member, 6).await;
    assert_eq!(member.tracker().certified().number, 1);
    // The last one's certificate certifies all.
    sequencer.announce_certificate(&certify(&batches[5].batch, &[2, 3, 4]));
    certified(&member, 6).await;
    let metrics = member.metrics().registry.render();
    assert!(
        metrics.contains("blindfold_committee_bad_certificates_total{role=\"committee\"} 1"),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_never_answers_holds_up_nothing() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    // Connections are taken by the operating system and never answered.
    let black_hole = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let mut machine = Machine::new(1, sequencer.url());
    let url = format!("http://{}", black_hole.local_addr().expect("bound"));
    machine.config.peers = vec![blindfold_committee::PeerUrl { member: 2, url }];
    machine.config.limits.fetch_timeout_ms = 600_000;
    machine.config.limits.certificate_wait_ms = 1;
    machine.knows_every_vote().await;
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    for n in 1..=4 {
        let batch = sealer.seal_next_envelopes(&[envelope(n, 1)]).await;
        sequencer.publish(&batch.batch, &batch.verdicts);
        let number = batch.batch.header.number;
        sequencer.wait("an acknowledgement", |state| !acknowledged(state, number).is_empty()).await;
        sequencer.publish_certificate(&certify(&batch.batch, &[2, 3, 4]));
        certified(&member, number).await;
    }
}

/// What waits for its certificate was fetched with each round, though the feed had brought it: now each envelope comes once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_the_feed_brought_is_not_sent_a_second_time() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let mut machine = Machine::new(1, sequencer.url());
    // Whom it asks, it asks the sequencer beside.
    let url = sequencer.url();
    machine.config.peers = vec![blindfold_committee::PeerUrl { member: 2, url }];
    machine.config.limits.peer_check_ms = 20;
    machine.knows_every_vote().await;
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    let mut batches = Vec::new();
    for n in 1..=3 {
        let batch = sealer.seal_next_envelopes(&[envelope(n, 1)]).await;
        sequencer.publish(&batch.batch, &batch.verdicts);
        sequencer.wait("an acknowledgement", |state| !acknowledged(state, n.into()).is_empty()).await;
        // A round that began before the batch was here may ask for it.
        sequencer.double.state.lock().batches_given.clear();
        let rounds = sequencer.double.state.lock().status_calls;
        sequencer.wait("further rounds", |state| state.status_calls >= rounds + 3).await;
        let given = sequencer.double.state.lock().batches_given.clone();
        assert!(given.values().sum::<usize>() <= 1, "{given:?}");
        batches.push(batch);
    }
    sequencer.publish_certificate(&certify(&batches[2].batch, &[2, 3, 4]));
    certified(&member, 3).await;
    // What the feed does not bring is fetched still.
    let missed = sealer.seal_next_envelopes(&[envelope(4, 1)]).await;
    sequencer.keep(&missed.batch, &missed.verdicts);
    sealed(&member, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_l1_made_is_followed_without_a_certificate() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let machine = Machine::new(2, sequencer.url());
    let member = machine.start().await;
    assert_eq!(votes_from(&member).await, 1);
    sequencer.followed_by(1).await;
    let (sealer, other) = (sealer().await, sealer().await);
    let first = sealer.seal_next(vec![]).await;
    other.seal_next(vec![]).await;
    sequencer.publish(&first.batch, &first.verdicts);
    let certificate = sealer.certify_by(&first.batch, &[1, 2, 4]).await;
    sequencer.publish_certificate(&certificate);
    certified(&member, 1).await;
    // The member acknowledged another header of that number, which nobody posted in time.
    let lost = other.seal_next_envelopes(&[envelope(1, 1)]).await;
    sequencer.publish(&lost.batch, &lost.verdicts);
    // And one on top of that.
    let displaced = other.seal_next(vec![]).await;
    sequencer.publish(&displaced.batch, &displaced.verdicts);
    sealed(&member, 3).await;
    sequencer.wait("an acknowledgement", |state| !acknowledged(state, 3).is_empty()).await;
    let header = sealer.l1_header(1_000, vec![]).header;
    // What was acknowledged had not seen it.
    let l1_block = FIRST_ORIGIN + 1;
    let made = blindfold_chain::FallbackHeader { header, items: vec![], l1_block };
    *machine.l1.finalized.lock() = l1_block;
    machine.l1.l1_headers.lock().push(made.clone());
    certified(&member, 2).await;
    assert_eq!(member.tracker().certified().hash, header.hash());
    // A sequencer that asks what it signed waits for whoever claims what it cannot show.
    assert_eq!((member.status().await.acknowledged, member.tracker().head().number), (2, 2));
    // What it acknowledged above L1's header is displaced: the number has another one now, which it acknowledges too.
    sealer.tracker.accept_l1_header(&made).await.expect("L1 made it");
    *sealer.l1.finalized.lock() = l1_block;
    sealer.l1.l1_headers.lock().push(made);
    let next = sealer.seal(1_250, vec![]).await;
    assert_ne!(next.hash, displaced.hash);
    sequencer.publish(&next.batch, &next.verdicts);
    let again = |(_, hash): &(u16, B256)| *hash == next.hash;
    sequencer.wait("the other one", |state| acknowledged(state, 3).iter().any(again)).await;
    assert!(member.evidence().is_empty(), "L1 signs nothing, so there is no pair");

    // A certificate of the displaced one, which carries the member's vote, shows nothing that its disk does not know.
    sequencer.publish_certificate(&certify(&displaced.batch, &[1, 2, 4]));
    let seen = member.tracker().clone();
    sequencer.publish_certificate(&sealer.certify_by(&next.batch, &[1, 2, 4]).await);
    certified(&member, 3).await;
    assert_eq!(seen.certified().hash, next.hash);
    assert_eq!(votes_from(&member).await, 1);
    let after = sealer.seal(1_500, vec![]).await;
    sequencer.publish(&after.batch, &after.verdicts);
    sequencer.wait("the fourth", |state| !acknowledged(state, 4).is_empty()).await;
}

/// Its vote could complete a certificate that is void as soon as L1's header is final.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_l1_went_past_is_not_acknowledged() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let machine = Machine::new(2, sequencer.url());
    let (header, l1_block) = (HeaderId { number: 2, hash: B256::repeat_byte(0x11) }, FIRST_ORIGIN + 1);
    machine.l1.not_final.lock().push(PendingFallbackHeader {
        header,
        l1_block,
        l1_hash: B256::repeat_byte(0x22),
    });
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    let first = sealer.seal_next(vec![]).await;
    sequencer.publish(&first.batch, &first.verdicts);
    sequencer.wait("the first one", |state| !acknowledged(state, 1).is_empty()).await;
    sequencer.publish_certificate(&sealer.certify_by(&first.batch, &[1, 2, 4]).await);
    certified(&member, 1).await;
    let lost = sealer.seal_next(vec![]).await;
    sequencer.publish(&lost.batch, &lost.verdicts);
    sequencer.wait("a refusal", |state| refused_for(state, 2, "overruled_by_l1")).await;
    assert!(acknowledged(&sequencer.double.state.lock(), 2).is_empty());
    // L1 took it back.
    machine.l1.not_final.lock().clear();
    machine.l1.shown.lock().insert(l1_block, B256::repeat_byte(0x33));
    sequencer.wait("an acknowledgement", |state| !acknowledged(state, 2).is_empty()).await;
}

/// Certified, it could not be posted any more, and would stop whoever took it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_with_an_origin_near_the_end_of_its_epoch_is_not_acknowledged() {
    const CLOSED: u64 = 30;
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let machine = Machine::new(2, sequencer.url());
    *machine.l1.ending.lock() =
        Some(AnnouncedEnd { epoch: 1, announced_at: 0, until: CLOSED + 10, for_silence: false });
    let sealer = sealer().await;
    let at = |l1_block| [&machine.l1, &sealer.l1].map(|l1| *l1.finalized.lock() = l1_block);
    at(CLOSED - 1);
    let _member = machine.start().await;
    sequencer.followed_by(1).await;
    let last = sealer.seal_next(vec![]).await;
    sequencer.publish(&last.batch, &last.verdicts);
    sequencer.wait("the last one", |state| !acknowledged(state, 1).is_empty()).await;
    at(CLOSED);
    let late = sealer.seal_next(vec![]).await;
    sequencer.publish(&late.batch, &late.verdicts);
    sequencer.wait("a refusal", |state| refused_for(state, 2, "epoch_ends")).await;
    assert!(acknowledged(&sequencer.double.state.lock(), 2).is_empty());
    // The governor took it back.
    *machine.l1.ending.lock() = None;
    sequencer.wait("an acknowledgement", |state| !acknowledged(state, 2).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_certified_through_a_descendant_come_from_other_members_alone() {
    let honest = SequencerDouble::start().await;
    honest.double.state.lock().aggregate = false;
    let first_machine = Machine::new(1, honest.url());
    let first = first_machine.start().await;
    honest.followed_by(1).await;
    let sealer = sealer().await;
    for n in 1..=6 {
        let batch = sealer.seal_next_envelopes(&[envelope(n, 1)]).await;
        honest.publish(&batch.batch, &batch.verdicts);
        // Only the third and the last have certificates of their own.
        if n % 3 == 0 {
            sealed(&first, u64::from(n)).await;
            honest.publish_certificate(&sealer.certify_by(&batch.batch, &[1, 2, 3]).await);
        }
    }
    certified(&first, 6).await;

    // Nobody listens where the sequencer should be.
    let mut machine = Machine::new(2, "http://127.0.0.1:1".to_owned());
    machine.config.limits.peer_check_ms = 10;
    machine.config.peers =
        vec![blindfold_committee::PeerUrl { member: 1, url: format!("http://{}", first.rpc_addr()) }];
    let second = machine.start().await;
    certified(&second, 6).await;
    assert_eq!(second.tracker().certified(), first.tracker().certified());
    // It serves them on in the same way.
    let own = client(second.rpc_addr());
    let held =
        blindfold_rpc::CommitteeApiClient::get_sealed(&own, 2).await.expect("an answer").expect("there");
    assert_eq!((held.sealed.decode().expect("canonical").header.number, held.certificate), (2, None));
}

/// After changes of the sequencer's key more headers than one sequencer's may wait for one certificate (rule K-6).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_run_under_one_certificate_is_caught_up_with() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let sealer = sealer().await;
    let (mut batches, longest) = (Vec::new(), MAX_UNCERTIFIED_RUN as u64);
    for number in 1..=longest {
        let batch = sealer.seal_next(vec![]).await;
        // The one that is shown, at the end, covers all.
        let certificate = sealer.certify_by(&batch.batch, &[1, 2, 3]).await;
        sequencer.publish(&batch.batch, &batch.verdicts);
        if number == longest {
            sequencer.publish_certificate(&certificate);
        }
        batches.push(batch);
    }
    let first_machine = Machine::new(1, sequencer.url());
    let first = first_machine.start().await;
    certified(&first, longest).await;

    // Nobody listens where the sequencer should be.
    let mut machine = Machine::new(2, "http://127.0.0.1:1".to_owned());
    machine.config.limits.peer_check_ms = 10;
    machine.config.peers = vec![PeerUrl { member: 1, url: format!("http://{}", first.rpc_addr()) }];
    let second = machine.start().await;
    certified(&second, longest).await;
}

/// What the double of a member was asked for.
#[derive(Default)]
struct Asked {
    numbers: Vec<u64>,
    statuses: usize,
}

/// A member that gives its batches when the test lets it. What it claims beyond those that it has it makes up.
#[derive(Clone)]
struct PeerDouble {
    held: Vec<HeldBatch>,
    template: SealedBatch,
    claims: u64,
    asked: Arc<watch::Sender<Asked>>,
    answers: Arc<Semaphore>,
    /// It says what it holds once this one was asked for batch 1.
    after: Option<watch::Receiver<Asked>>,
}

impl PeerDouble {
    fn new(template: &SealedBatch, claims: u64) -> Self {
        let (asked, answers) = (Arc::default(), Arc::new(Semaphore::new(0)));
        Self { held: Vec::new(), template: template.clone(), claims, asked, answers, after: None }
    }

    /// One that holds these, each with a certificate of its own.
    fn holding(batches: &[Arc<SealedBatch>]) -> Self {
        let held = |batch: &Arc<SealedBatch>| HeldBatch {
            sealed: Encoded::new(batch),
            certificate: Some(Encoded::new(&certify(batch, &[1, 2, 3]))),
        };
        let held = batches.iter().map(held).collect();
        Self { held, ..Self::new(&batches[0], batches.len() as u64) }
    }

    async fn serve(&self) -> (ServerHandle, PeerUrl) {
        self.serve_as(2).await
    }

    async fn serve_as(&self, member: u16) -> (ServerHandle, PeerUrl) {
        let config = ServerConfig::new(([127, 0, 0, 1], 0).into());
        let server = serve(config, member_that_answers(self.clone()), None).await.expect("it serves");
        let url = format!("http://{}", server.local_addr());
        (server, PeerUrl { member, url })
    }

    async fn until(&self, what: &str, condition: impl FnMut(&Asked) -> bool) {
        within(what, self.asked.subscribe().wait_for(condition)).await.expect("it serves");
    }
}

#[async_trait]
impl MemberAnswers for PeerDouble {
    async fn get_sealed(&self, number: u64) -> Result<Option<HeldBatch>, RpcError> {
        self.asked.send_modify(|asked| asked.numbers.push(number));
        self.answers.acquire().await.expect("open").forget();
        if let Some(held) = self.held.get(number as usize - 1) {
            return Ok(Some(held.clone()));
        }
        let mut batch = self.template.clone();
        batch.header.number = 0;
        for next in 1..=number {
            batch.header.parent_hash = batch.header.hash();
            batch.header.number = next;
        }
        Ok(Some(HeldBatch { sealed: Encoded::new(&batch), certificate: None }))
    }

    async fn get_status(&self) -> Result<CommitteeStatus, RpcError> {
        self.asked.send_modify(|asked| asked.statuses += 1);
        if let Some(mut other) = self.after.clone() {
            other.wait_for(|asked| asked.numbers.contains(&1)).await.expect("it serves");
        }
        Ok(CommitteeStatus {
            member: 2,
            version: None,
            epoch: 1,
            acknowledged: self.claims,
            certified: self.claims,
            refusals: vec![],
            second_headers_refused: 0,
            votes_from: Some(1),
        })
    }
}

/// A header that the feed did not bring comes from the sequencer, whatever one other member does meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_makes_up_headers_slowly_holds_up_nothing() {
    const NEVER_MS: u64 = 3_000_000;
    const CLAIMED: u64 = 100;
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let sealer = sealer().await;
    let first = sealer.seal_next_envelopes(&[envelope(1, 1)]).await;
    let second = sealer.seal_next_envelopes(&[envelope(2, 1)]).await;
    let lies = PeerDouble::new(&first.batch, CLAIMED);
    let (_server, peer) = lies.serve().await;
    let mut machine = Machine::new(1, sequencer.url());
    machine.config.peers = vec![peer];
    machine.config.limits.fetch_timeout_ms = NEVER_MS;
    machine.config.limits.first_look_ms = 10;
    machine.config.limits.peer_check_ms = 10;
    machine.knows_every_vote().await;
    let _member = machine.start().await;
    sequencer.followed_by(1).await;
    lies.until("a round", |asked| asked.numbers.contains(&1)).await;
    sequencer.keep(&first.batch, &first.verdicts);
    sequencer.publish(&second.batch, &second.verdicts);
    sequencer.wait("an acknowledgement", |state| !acknowledged(state, 2).is_empty()).await;

    // Nobody signed what it gives in the end, so nothing more is asked of it until the next round.
    let before = lies.asked.borrow().numbers.len();
    lies.answers.add_permits(100);
    lies.until("another round", |asked| asked.numbers.len() > before).await;
    let asked = lies.asked.borrow().numbers.clone();
    // The first look asks for what it claims.
    assert!(asked.iter().all(|number| [1, CLAIMED].contains(number)), "{asked:?}");
}

/// One member that tells first what it holds, and takes its time to give it, served alone whoever lagged behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_true_and_slow_is_overtaken_and_left_alone() {
    const NEVER_MS: u64 = 3_000_000;
    let sealer = sealer().await;
    let mut batches = Vec::new();
    for n in 1..=5 {
        batches.push(sealer.seal_next_envelopes(&[envelope(n, 1)]).await.batch);
    }
    let slow = PeerDouble::holding(&batches);
    let quick = PeerDouble { after: Some(slow.asked.subscribe()), ..PeerDouble::holding(&batches) };
    quick.answers.add_permits(100);
    let (_servers, peers): (Vec<_>, Vec<_>) =
        [slow.serve_as(2).await, quick.serve_as(3).await].into_iter().unzip();
    let silent = SequencerDouble::start().await;
    let mut machine = Machine::new(1, silent.url());
    machine.config.peers = peers;
    machine.config.limits.fetch_timeout_ms = NEVER_MS;
    machine.config.limits.peer_check_ms = NEVER_MS;
    machine.knows_every_vote().await;
    let member = machine.start().await;
    certified(&member, 5).await;

    // The first look and one round asked it, and the next round asked the other one alone.
    quick.until("the next round", |asked| asked.statuses >= 3).await;
    let asked = slow.asked.borrow();
    assert_eq!((asked.statuses, asked.numbers.iter().filter(|number| **number == 1).count()), (2, 1));
    assert!(asked.numbers.iter().all(|number| [1, 5].contains(number)), "{:?}", asked.numbers);
}

/// While nothing is certified, members say so: nobody is asked for batches again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_are_asked_for_batches_that_they_hold_certified_alone() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let sealer = sealer().await;
    let first = sealer.seal_next_envelopes(&[envelope(1, 1)]).await;
    let honest = PeerDouble::new(&first.batch, 0);
    let (_server, peer) = honest.serve().await;
    let mut machine = Machine::new(1, sequencer.url());
    machine.config.peers = vec![peer];
    machine.config.limits.peer_check_ms = 10;
    machine.config.limits.certificate_wait_ms = 10;
    let _member = machine.start().await;
    sequencer.followed_by(1).await;
    sequencer.publish(&first.batch, &first.verdicts);
    sequencer.wait("an acknowledgement", |state| !acknowledged(state, 1).is_empty()).await;
    let before = honest.asked.borrow().statuses;
    honest.until("four rounds", |asked| asked.statuses >= before + 4).await;
    let asked = honest.asked.borrow().numbers.clone();
    assert!(asked.is_empty(), "{asked:?}");
}
