//! Killed at each step: never another hash for a number, and nothing lost. Dropping a handle ends a member as a kill
//! does; the store has tests of its own with a real SIGKILL.

mod common;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use blindfold_chain::Tracker;
use blindfold_committee::{ConfigError, StartError};
use blindfold_kit::{SequencerDouble, acknowledge, certify, chain_config, client, envelope, refused};
use blindfold_protocol::SealedBatch;
use blindfold_rpc::{CommitteeApiClient, Encoded, RunningRole};
use blindfold_store::StoreError;
use common::{Machine, certified, sealed, sealer, second, votes_from};

/// Puts a header on a member's disk as if it died right after checking it.
async fn check_only(machine: &Machine, batch: &Arc<SealedBatch>) {
    let store = machine.store().await;
    store.bind(&chain_config().deployment, &format!("member-{}", machine.member)).await.expect("binds");
    let tracker = Tracker::open(chain_config(), store, machine.l1.clone()).await.expect("opens");
    assert!(tracker.apply_sealed(batch).await.expect("valid").is_new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_between_check_and_acknowledgement() {
    let sequencer = SequencerDouble::start().await;
    let machine = Machine::new(2, sequencer.url());
    let batch = sealer().await.seal_next_envelopes(&[envelope(1, 1)]).await;
    check_only(&machine, &batch.batch).await;
    let _member = machine.start().await;
    sequencer.wait("an acknowledgement", |state| !state.acknowledgements.is_empty()).await;
    assert_eq!(sequencer.double.state.lock().acknowledgements[0], acknowledge(&batch.batch, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_between_word_and_signature() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let machine = Machine::new(2, sequencer.url());
    let sealer = sealer().await;
    let batch = sealer.seal_next_envelopes(&[envelope(1, 1)]).await;
    check_only(&machine, &batch.batch).await;
    machine
        .store()
        .await
        .put_acknowledged(1, batch.hash, batch.batch.header.l1_origin_number)
        .await
        .expect("written");
    let member = machine.start().await;
    sequencer.wait("an acknowledgement", |state| !state.acknowledgements.is_empty()).await;
    drop(member);
    // Killed after sending: the same signature again, until there is a certificate.
    let before = sequencer.double.state.lock().acknowledgements.len();
    let member = machine.start().await;
    sequencer.wait("it again", |state| state.acknowledgements.len() >= before + 3).await;
    assert!(
        sequencer
            .double
            .state
            .lock()
            .acknowledgements
            .iter()
            .all(|acknowledgement| *acknowledgement == acknowledge(&batch.batch, 2))
    );
    assert_eq!(member.status().await.acknowledged, 1);
    sequencer.keep(&batch.batch, &batch.verdicts);
    sequencer.publish_certificate(&certify(&batch.batch, &[1, 2, 3]));
    certified(&member, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_word_on_disk_binds_even_without_the_header() {
    // Died after its word, restored without the header (which cannot happen here), and shown another one.
    let sequencer = SequencerDouble::start().await;
    let machine = Machine::new(2, sequencer.url());
    let batch = sealer().await.seal_next_envelopes(&[envelope(1, 1)]).await;
    let other = second(&batch.batch);
    machine
        .store()
        .await
        .put_acknowledged(1, batch.hash, batch.batch.header.l1_origin_number)
        .await
        .expect("written");
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    sequencer.publish(&other, &batch.verdicts);
    sequencer.wait("a refusal", |state| !state.refusals.is_empty()).await;
    let status = member.status().await;
    assert_eq!(status.refusals[0].reason, "already_acknowledged");
    assert_eq!(status.acknowledged, 1);
    assert!(sequencer.double.state.lock().acknowledgements.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_with_certified_batches_it_serves_them_without_the_sequencer() {
    let sequencer = SequencerDouble::start().await;
    let machine = Machine::new(1, sequencer.url());
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    let mut certificates = Vec::new();
    for n in 1..=3 {
        let batch = sealer.seal_next_envelopes(&[envelope(n, 1)]).await;
        sequencer.publish(&batch.batch, &batch.verdicts);
        let certificate = sealer.certify_by(&batch.batch, &[1, 2, 4]).await;
        sequencer.publish_certificate(&certificate);
        certificates.push(certificate);
    }
    certified(&member, 3).await;
    let before = client(member.rpc_addr()).get_share(2, Encoded::new(&certificates[1])).await.expect("given");
    drop(member);
    drop(sequencer);

    let member = machine.start().await;
    let after = client(member.rpc_addr()).get_share(2, Encoded::new(&certificates[1])).await.expect("given");
    assert_eq!(before.decode().expect("canonical"), after.decode().expect("canonical"));
    assert!(client(member.rpc_addr()).get_certified(3).await.expect("an answer").is_some());
    let status = client(member.rpc_addr());
    let status = CommitteeApiClient::get_status(&status).await.expect("an answer");
    assert_eq!((status.member, status.certified), (1, 3));
    let error = client(member.rpc_addr()).get_singleton(4, 0).await.map_err(refused).expect_err("refused");
    assert_eq!(error.reason, "not_certified");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn away_for_a_long_time_it_catches_up_and_acknowledges_what_is_new() {
    let sequencer = SequencerDouble::start().await;
    let mut machine = Machine::new(3, sequencer.url());
    machine.config.limits.catch_up_batches = 2;
    // There before the chain's first certified header, and then away.
    let member = machine.start().await;
    assert_eq!(votes_from(&member).await, 1);
    member.shutdown().await;
    let sealer = sealer().await;
    for n in 0..7u64 {
        let batch = sealer.seal_next_envelopes(&[envelope(1, n)]).await;
        sequencer.keep(&batch.batch, &batch.verdicts);
        sequencer.keep_certificate(&sealer.certify_by(&batch.batch, &[1, 2, 4]).await);
    }
    let pending = sealer.seal_next_envelopes(&[envelope(2, 1)]).await;
    sequencer.keep(&pending.batch, &pending.verdicts);
    let member = machine.start().await;
    sealed(&member, 8).await;
    sequencer.wait("an acknowledgement", |state| !state.acknowledgements.is_empty()).await;
    assert_eq!(sequencer.double.state.lock().acknowledgements[0], acknowledge(&pending.batch, 3));
    assert_eq!(member.tracker().certified().number, 7);
    member.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_start_says_why() {
    let url = "http://127.0.0.1:1".to_owned();
    let mut machine = Machine::new(2, url.clone());
    machine.config.limits.share_threads = 0;
    assert!(matches!(
        machine.try_start().await,
        Err(StartError::Config(ConfigError::Zero { setting: "share_threads" }))
    ));

    // Another member's disk.
    let mut foreign = Machine::new(2, url.clone());
    drop(foreign.start().await);
    foreign.member = 3;
    assert!(matches!(
        foreign.try_start().await,
        Err(StartError::Store(StoreError::Foreign { name: "role", .. }))
    ));

    // A taken address.
    let running = Machine::new(1, url.clone());
    let first = running.start().await;
    let mut taken = Machine::new(2, url.clone());
    taken.config.rpc_addr = first.rpc_addr();
    assert!(matches!(taken.try_start().await, Err(StartError::Serve(_))));

    // Damaged evidence.
    let damaged = Machine::new(2, url);
    damaged.store().await.put_meta("committee.evidence", b"?").await.expect("written");
    assert!(matches!(damaged.try_start().await, Err(StartError::Evidence(_))));
}

/// It may be a server that lags behind the others: not at once, and not for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_l1_stays_unusable_ends() {
    let sequencer = SequencerDouble::start().await;
    let mut machine = Machine::new(1, sequencer.url());
    let member = machine.start().await;
    machine.l1.unusable.store(true, Ordering::SeqCst);
    let early = tokio::time::timeout(Duration::from_secs(5), member.failed()).await;
    assert!(early.is_err(), "{early:?}");
    member.shutdown().await;

    machine.config.limits.stuck_exit_ms = 100;
    machine.l1.unusable.store(false, Ordering::SeqCst);
    let member = machine.start().await;
    machine.l1.unusable.store(true, Ordering::SeqCst);
    let failure = tokio::time::timeout(Duration::from_secs(30), member.failed()).await.expect("it ends");
    assert_eq!(failure.part, "following");
    assert!(failure.cause.contains("scripted nonsense"), "{failure}");
    member.shutdown().await;
}

/// On a quiet chain nothing was certified in between: the second unusable answer counted as if all had been.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_l1_is_unusable_now_and_then_goes_on() {
    let sequencer = SequencerDouble::start().await;
    let mut machine = Machine::new(1, sequencer.url());
    // Shorter than a pause between two questions.
    machine.config.limits.stuck_exit_ms = 100;
    let member = machine.start().await;
    // Each round asks twice.
    for usable in [false, true, false, true] {
        machine.l1.usable.lock().extend([usable; 2]);
    }
    let asked = async {
        while !machine.l1.usable.lock().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        biased;
        failure = member.failed() => panic!("{failure}"),
        asked = tokio::time::timeout(Duration::from_secs(60), asked) => asked.expect("L1 is asked"),
    }
    member.shutdown().await;
}
