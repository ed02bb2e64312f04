//! What the hint publisher asks of its backend: when, how much at a time, and what goes on meanwhile.

mod common;

use blindfold_rpc::RunningRole;
use std::{net::SocketAddr, sync::atomic::Ordering::SeqCst, time::Duration};

use blindfold_chain::Sealed;
use blindfold_kit::{envelope, malformed, within};
use blindfold_protocol::Canonical;
use common::{Behaviour, Stage, kinds};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

fn items(envelopes: &[blindfold_protocol::Envelope]) -> Vec<Vec<u8>> {
    envelopes.iter().map(Canonical::encode).collect()
}

async fn until(what: &'static str, condition: impl Fn() -> bool) {
    within(what, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// Sealed and certified while no hint publisher runs.
async fn missed(stage: &Stage, envelopes: Vec<Vec<u8>>) -> Sealed {
    let sealed = stage.seal(envelopes).await;
    stage.sequencer.keep_certificate(&stage.sealer.certify_by(&sealed.batch, &[1, 2, 3]).await);
    sealed
}

async fn get(addr: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(addr).await.expect("listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: helper\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("takes it");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answers");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_caught_up_with_is_opened_at_once() {
    let stage = Stage::new().await;
    // Two sub-batches, with a malformed envelope in the second.
    let mut envelopes = (1..=8).map(|n| envelope(n, 1)).collect::<Vec<_>>();
    envelopes.extend([malformed(1, 2), envelope(2, 2)]);
    let first = missed(&stage, items(&envelopes)).await;
    let second = missed(&stage, items(&[malformed(3, 3)])).await;
    let publisher = stage.start().await;
    assert_eq!(kinds(&stage.hints_of(&first).await.1), "kkkkkkkkmk");
    assert_eq!(kinds(&stage.hints_of(&second).await.1), "m");
    assert_eq!(stage.backend.calls(), (0, 3));
    // A live batch is pre-decrypted while its certificate is under way.
    let live = stage.seal(items(&[envelope(4, 9), envelope(5, 9)])).await;
    stage.sequencer.announce(&live.batch, &live.verdicts);
    until("pre-decryption", || stage.backend.calls() == (1, 3)).await;
    let certificate = stage.sealer.certify_by(&live.batch, &[1, 2, 3]).await;
    stage.sequencer.publish_certificate(&certificate);
    stage.hints_of(&live).await;
    assert_eq!(stage.backend.calls(), (1, 3));
    let metrics = publisher.metrics().registry.render();
    for line in [
        r#"blindfold_hint_publisher_predecrypt_seconds_count{role="hint_publisher"} 1"#,
        r#"blindfold_hint_publisher_finalize_seconds_count{role="hint_publisher"} 1"#,
        r#"blindfold_hint_publisher_decrypt_seconds_count{role="hint_publisher"} 2"#,
        r#"blindfold_hint_publisher_backend_threads{backend="portable",role="hint_publisher"} 1"#,
        r#"blindfold_hint_publisher_backend_threads{backend="ifma",role="hint_publisher"} 0"#,
    ] {
        assert!(metrics.contains(line), "{line} missing in\n{metrics}");
    }
}

/// A wrong release costs one decryption; from then on the sub-batch is pre-decrypted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_lie_about_a_missed_batch_are_named_and_it_opens() {
    for (behaviour, lost) in [(Behaviour::Lies, 1), (Behaviour::Garbage, 0)] {
        let mut stage = Stage::new().await;
        // Only t members are asked, and for number 1 the faulty one is among them.
        stage.config.limits.hedge_ms = 600_000;
        stage.members[1].behave(behaviour);
        let sealed = missed(&stage, items(&[envelope(1, 1), malformed(2, 1), envelope(3, 1)])).await;
        let publisher = stage.start().await;
        assert_eq!(kinds(&stage.hints_of(&sealed).await.1), "kmk");
        assert_eq!(
            publisher.status().faulty_members.keys().copied().collect::<Vec<_>>(),
            [2],
            "{behaviour:?}"
        );
        assert_eq!(stage.backend.calls(), (lost, 1), "{behaviour:?}");
    }
}

/// What is opened may turn out to be wrong, and the share that is missing then was under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_are_listened_to_while_a_batch_is_opened() {
    let stage = Stage::new().await;
    stage.members[3].behave(Behaviour::NotYet);
    missed(&stage, items(&[envelope(1, 1)])).await;
    let closed = stage.backend.close();
    let _publisher = stage.start().await;
    until("the opening", || stage.backend.running.load(SeqCst) == 1).await;
    let asked = || *stage.members[3].state.share_calls.lock();
    let before = asked();
    until("another question", || asked() > before + 1).await;
    drop(closed);
}

/// The singleton release shows it, and the metric that the backend erred.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_backend_wrongly_calls_malformed_is_published_with_its_key() {
    let stage = Stage::new().await;
    stage.backend.blind.store(true, SeqCst);
    let sealed = missed(&stage, items(&[envelope(1, 1), malformed(2, 1), envelope(3, 1)])).await;
    let publisher = stage.start().await;
    assert_eq!(kinds(&stage.hints_of(&sealed).await.1), "kmk");
    assert!(publisher.status().faulty_members.is_empty());
    let metrics = publisher.metrics().registry.render();
    let line = r#"blindfold_hint_publisher_overruled_total{check="opening",role="hint_publisher"} 2"#;
    assert!(metrics.contains(line), "{line} missing in\n{metrics}");
}

/// Such a batch was begun again and again, and the hint publisher was ready.
#[tokio::test]
async fn heavy_work_that_panics_ends_the_hint_publisher_and_shows() {
    let stage = Stage::new().await;
    stage.backend.broken.store(true, SeqCst);
    let publisher = stage.start().await;
    missed(&stage, items(&[envelope(1, 1)])).await;
    let failure = within("the failure", publisher.failed()).await;
    assert_eq!((failure.part, failure.cause.as_str()), ("pool", "panicked: a bug in heavy work"));
    let ready = get(publisher.admin_addr(), "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("a bug in heavy work"), "{ready}");
    publisher.shutdown().await;
}

/// It tried again for ever, and its process stayed.
#[tokio::test]
async fn a_hint_publisher_that_opens_nothing_for_long_ends() {
    let mut stage = Stage::new().await;
    stage.config.limits.stuck_exit_ms = 100;
    let publisher = stage.start().await;
    let sealed = stage.sealer.seal_next(items(&[envelope(1, 1)])).await;
    // No verdict for its item.
    stage.sequencer.keep(&sealed.batch, &[]);
    let certificate = stage.sealer.certify_by(&sealed.batch, &[1, 2, 3]).await;
    stage.sequencer.keep_certificate(&certificate);
    let failure = within("the failure", publisher.failed()).await;
    assert_eq!(failure.part, "coordinator");
    assert!(failure.cause.contains("contradicts itself"), "{failure}");
    publisher.shutdown().await;

    // Not at once: it may pass.
    stage.config.limits.stuck_exit_ms = 600_000;
    let publisher = stage.start().await;
    until("the fault", || publisher.status().failing.contains_key(&sealed.batch.header.number)).await;
    let early = tokio::time::timeout(Duration::from_millis(100), publisher.failed()).await;
    assert!(early.is_err(), "{early:?}");
    stage.validated(&sealed);
    stage.sequencer.keep(&sealed.batch, &sealed.verdicts);
    stage.sequencer.keep_certificate(&certificate);
    stage.hints_of(&sealed).await;
    publisher.shutdown().await;
}

/// On one asynchronous thread: a call to the backend on it would stop everything until the test gives up.
#[tokio::test]
async fn heavy_work_is_bounded_and_holds_up_nothing_else() {
    let mut stage = Stage::new().await;
    stage.config.limits.predecrypt_workers = 2;
    stage.config.limits.catch_up_batches = 8;
    let mut batches = Vec::new();
    for n in 1..=5 {
        batches.push(missed(&stage, items(&[envelope(1, n), envelope(2, n)])).await);
    }
    let closed = stage.backend.close();
    let publisher = stage.start().await;
    for n in 1..=5 {
        let live = stage.seal(items(&[envelope(3, n), envelope(4, n)])).await;
        stage.sequencer.announce(&live.batch, &live.verdicts);
        batches.push(live);
    }
    until("all batches in work", || publisher.status().in_work.len() == 10).await;
    until("both workers at work", || stage.backend.running.load(SeqCst) == 2).await;
    within("answers meanwhile", async {
        for _ in 0..20 {
            assert!(get(publisher.admin_addr(), "/healthz").await.starts_with("HTTP/1.1 200"));
            assert!(get(publisher.admin_addr(), "/metrics").await.contains("batches_in_work"));
        }
    })
    .await;
    let newest = batches.last().expect("ten");
    let certificate = stage.sealer.certify_by(&newest.batch, &[1, 2, 3]).await;
    stage.sequencer.publish_certificate(&certificate);
    drop(closed);
    for sealed in &batches {
        stage.hints_of(sealed).await;
    }
    assert_eq!(stage.backend.most_running.load(SeqCst), 2);
    let (predecrypts, decrypts) = stage.backend.calls();
    assert_eq!(predecrypts + decrypts, 10);
}
