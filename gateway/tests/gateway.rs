//! A gateway before sequencers that lead, stand by and refuse (J-6).

mod common;

use std::{net::IpAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use blindfold_kit::{EPOCH, SequencerDouble, Standby, client, committee, envelope, payer, refused, within};
use blindfold_protocol::{Address, B256, Canonical, Envelope, Expiry, limits::MAX_ENVELOPE_BYTES};
use blindfold_rpc::{
    BlindApiClient, Encoded, ReceiptApiClient, RpcError, RunningRole, SequencerApiClient, SequencerUrls,
    SyncApiClient, code,
    types::{EnvelopeState, Receipt, Refusal, SendOptions, SentEnvelope, SyncOptions, SyncUntil},
};
use common::{Running, Stage};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

async fn send(gateway: &Running, envelope: &Envelope) -> Result<SentEnvelope, RpcError> {
    gateway.client.send_envelope(Encoded::from_bytes(envelope.encode()), None).await.map_err(refused)
}

async fn reason(gateway: &Running, bytes: Vec<u8>) -> String {
    let sent = gateway.client.send_envelope(Encoded::from_bytes(bytes), None).await;
    sent.map_err(refused).expect_err("refused").reason.into_owned()
}

/// Waits until the gateway knows the sequencer's head, by which it checks.
async fn following(gateway: &Running) {
    gateway.counts(r#"blindfold_relay_head_number{role="gateway"} 1"#).await;
}

fn word(number: u64) -> B256 {
    B256::left_padding_from(&number.to_be_bytes())
}

/// What a user at another address reads, behind a proxy on this machine.
async fn read_elsewhere(gateway: &Running, id: B256) -> String {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"blind_getReceipt","params":["{id}"]}}"#);
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         x-forwarded-for: 192.0.2.7\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(gateway.handle.rpc_addr()).await.expect("it listens");
    stream.write_all((head + &body).as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    answer
}

/// The source counts all users of a gateway as one caller. One of them had everybody's reads refused there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_one_user_have_nobody_elses_refused() {
    let limited = SequencerDouble::start_with(|config| config.inbound.max_calls_per_address_per_second = 40);
    let mut stage = Stage::before(limited.await).await;
    stage.config.source_calls_per_second = 36;
    stage.config.inbound.trusted_proxies = vec!["127.0.0.1".parse().expect("a network")];
    let gateway = stage.gateway().await;
    following(&gateway).await;
    let flood = async {
        for round in 1..1_000_000 {
            let reads = (0..128).map(|one| gateway.client.get_receipt(word(round * 128 + one)));
            futures::future::join_all(reads).await;
        }
    };
    let other = async {
        let asked = || stage.sequencer.double.state.lock().receipts_asked.len();
        while asked() < 36 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        for one in 1..=40 {
            let answer = read_elsewhere(&gateway, word(one)).await;
            assert!(answer.contains(r#""result":null"#), "{answer}");
        }
    };
    tokio::select! {
        () = flood => panic!("it goes on"),
        () = within("the other's reads", other) => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stands_is_forwarded_many_in_one_call() {
    let mut stage = Stage::new().await;
    stage.gateway.forward_wait_us = 200_000;
    let gateway = stage.gateway().await;
    following(&gateway).await;
    let envelopes: Vec<Envelope> = (1..=8).map(|n| envelope(n, 1)).collect();
    let sent = envelopes.iter().map(|envelope| send(&gateway, envelope));
    for (sent, envelope) in futures::future::join_all(sent).await.into_iter().zip(&envelopes) {
        assert_eq!(sent.expect("taken").id, envelope.id());
    }
    let calls = stage.sequencer.double.state.lock().forwarded.clone();
    assert_eq!(calls.iter().map(Vec::len).sum::<usize>(), 8);
    assert!(calls.len() < 8, "{} calls", calls.len());
    let promised = gateway
        .client
        .send_envelope(Encoded::from_bytes(envelope(1, 2).encode()), Some(SendOptions { promise: true }));
    promised.await.expect("taken");
    let calls = stage.sequencer.double.state.lock().forwarded.clone();
    assert!(calls.last().expect("a call")[0].promise && !calls[0][0].promise);
    gateway.handle.shutdown().await;
}

/// A gateway asks the sequencer for the receipts of all who wait in one call, when the chain moves (J-7).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_at_a_gateway_hears_of_the_certificate() {
    let stage = Stage::new().await;
    let gateway = stage.gateway().await;
    following(&gateway).await;
    let envelopes: Vec<Envelope> = (1..=4).map(|n| envelope(n, 1)).collect();
    let options = SyncOptions { until: SyncUntil::Certified, ..SyncOptions::default() };
    let waiting = envelopes.iter().map(|envelope| {
        gateway.client.send_envelope_sync(Encoded::from_bytes(envelope.encode()), Some(options))
    });
    let sealing = async {
        stage
            .sequencer
            .wait("all of them", |state| state.forwarded.iter().map(Vec::len).sum::<usize>() == 4)
            .await;
        let before = stage.sequencer.double.state.lock().receipts_asked.len();
        stage.seal(&envelopes).await;
        stage
            .sequencer
            .wait("a call for all of them", |state| {
                state.receipts_asked[before..].iter().any(|ids| ids.len() == 4)
            })
            .await;
        for envelope in &envelopes {
            let receipt = Receipt::new(envelope.id(), EnvelopeState::Certified);
            stage.sequencer.double.state.lock().receipts.insert(envelope.id(), receipt);
        }
        stage.seal(&[]).await;
    };
    let (answers, ()) =
        within("the certificate", async { tokio::join!(futures::future::join_all(waiting), sealing) }).await;
    for (answer, envelope) in answers.into_iter().zip(&envelopes) {
        let synced = answer.expect("an answer");
        assert_eq!(synced.id, envelope.id());
        assert_eq!(synced.receipt.expect("a receipt").state, EnvelopeState::Certified);
    }
    let ids = envelopes.iter().map(Envelope::id).collect();
    let receipts = gateway.client.get_receipts(ids).await.expect("an answer");
    assert!(receipts.iter().all(Option::is_some));
    gateway.handle.shutdown().await;
}

/// What a gateway's users read counts at the sequencer by the gateway's address, and whoever used that up kept all others
/// there from hearing of their receipts (J-7).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_reads_too_much_keeps_nobody_from_hearing_of_his_receipt() {
    let mut stage = Stage::new().await;
    let limited =
        SequencerDouble::start_with(|config| config.inbound.max_calls_per_address_per_second = 50).await;
    limited.double.state.lock().batches = stage.sequencer.double.state.lock().batches.clone();
    stage.config.sequencer_urls = SequencerUrls::new([limited.url()]);
    stage.sequencer = limited;
    let gateway = stage.gateway().await;
    following(&gateway).await;
    let sent = envelope(1, 1);
    let receipt = Receipt::new(sent.id(), EnvelopeState::Certified);
    stage.sequencer.double.state.lock().receipts.insert(sent.id(), receipt);
    // From the gateway's address.
    let reader = client(stage.sequencer.server.local_addr());
    while reader.get_status().await.is_ok() {}
    let reading = async {
        loop {
            drop(reader.get_status().await);
        }
    };
    let options = SyncOptions { until: SyncUntil::Certified, ..SyncOptions::default() };
    let waiting = gateway.client.send_envelope_sync(Encoded::from_bytes(sent.encode()), Some(options));
    let synced = within("the receipt", async {
        tokio::select! {
            answer = waiting => answer.expect("an answer"),
            () = reading => panic!("it goes on"),
        }
    })
    .await;
    assert_eq!(synced.receipt.expect("a receipt").state, EnvelopeState::Certified);
    gateway.handle.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_never_stands_goes_nowhere() {
    let stage = Stage::new().await;
    let gateway = stage.gateway().await;
    following(&gateway).await;
    let mut forged = envelope(1, 1);
    forged.header.gas_limit += 1;
    let mut unproved = envelope(1, 1).encode();
    let end = unproved.len() - 80;
    unproved[end] ^= 1;
    assert_eq!(reason(&gateway, vec![7; 100]).await, "undecodable");
    assert_eq!(reason(&gateway, vec![7; MAX_ENVELOPE_BYTES + 1]).await, "too_large");
    assert_eq!(reason(&gateway, forged.encode()).await, "invalid_fee_signature");
    assert!(
        ["invalid_proof", "invalid_fee_signature", "invalid_point"]
            .contains(&&*reason(&gateway, unproved).await)
    );
    // No field makes a way around the checks.
    let changed = |change: fn(&mut Envelope)| {
        let mut forged = envelope(1, 1);
        change(&mut forged);
        forged.encode()
    };
    assert_eq!(reason(&gateway, changed(|it| it.header.expiry = Expiry::new(0, 0))).await, "expired");
    let far = changed(|it| it.header.expiry = Expiry::new(0, 900_000));
    assert_eq!(reason(&gateway, far).await, "expiry_too_far");
    assert_eq!(reason(&gateway, changed(|it| it.header.epoch = 999)).await, "no_epoch");
    assert_eq!(stage.sequencer.double.state.lock().forwarded.len(), 0);
    // What the sequencer refuses, it refuses in its own words.
    stage.sequencer.double.state.lock().refuses_envelopes = Some("insufficient_funds");
    assert_eq!(reason(&gateway, envelope(1, 1).encode()).await, "insufficient_funds");
    // Members talk to sequencers themselves.
    let refusal = Refusal { number: 1, header_hash: envelope(1, 1).id(), member: 1, reason: "x".to_owned() };
    let answer = gateway.client.submit_refusal(refusal).await;
    assert_eq!(answer.map_err(refused).expect_err("refused").reason, "unknown_method");
    gateway.handle.shutdown().await;
}

/// Its sender is told why nothing comes of it, and the operator by an alarm: nothing of it reaches the sequencer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_an_epoch_without_a_next_one_is_told() {
    let mut stage = Stage::new().await;
    // The header that is there is its last.
    stage.parameters = committee().parameter_set(&[committee().epoch(EPOCH, 1, 1)]);
    let gateway = stage.gateway().await;
    following(&gateway).await;
    let answer = send(&gateway, &envelope(1, 1)).await.expect_err("refused");
    assert_eq!((&*answer.reason, answer.retry), ("no_epoch", true));
    assert!(answer.message.contains("ended with batch 1"), "{}", answer.message);
    assert_eq!(stage.sequencer.double.state.lock().forwarded.len(), 0);
    gateway.handle.shutdown().await;
}

/// Rule J-5: an envelope waits for whoever leads next, and a gateway without one says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_envelope_waits_for_the_sequencer_that_takes_over() {
    let mut stage = Stage::new().await;
    let standby = Standby::start(&stage.sequencer.url()).await;
    stage.config.sequencer_urls = SequencerUrls::new([standby.url()]);
    stage.gateway.leader_wait_ms = 50_000;
    let gateway = stage.gateway().await;
    let (envelope, sequencer) = (envelope(1, 1), stage.sequencer);
    let takes_over = async {
        gateway.tried_in_vain().await;
        sequencer.replaced_by(standby).await
    };
    let (sent, leads) = tokio::join!(send(&gateway, &envelope), takes_over);
    assert_eq!(sent.expect("taken").id, envelope.id());
    assert_eq!(leads.double.state.lock().forwarded.concat().len(), 1);
    gateway.handle.shutdown().await;
}

/// Whoever takes over first finds out what was signed before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_envelope_waits_for_a_sequencer_that_is_taking_over() {
    let mut stage = Stage::new().await;
    stage.gateway.leader_wait_ms = 50_000;
    let gateway = stage.gateway().await;
    following(&gateway).await;
    stage.sequencer.double.state.lock().refuses_envelopes = Some("recovering");
    let (envelope, sequencer) = (envelope(1, 1), &stage.sequencer);
    let recovers = async {
        sequencer.wait("two calls", |state| state.forwarded.len() >= 2).await;
        sequencer.double.state.lock().refuses_envelopes = None;
    };
    let (sent, ()) = tokio::join!(send(&gateway, &envelope), recovers);
    assert_eq!(sent.expect("taken").id, envelope.id());
    gateway.handle.shutdown().await;
}

/// What is sealed is public, and anybody may send it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_envelope_that_is_sent_again_takes_nothing_from_its_payer() {
    let mut stage = Stage::new().await;
    (stage.gateway.payer_rate_per_second, stage.gateway.payer_burst) = (1, 2);
    let gateway = stage.gateway().await;
    following(&gateway).await;
    for _ in 0..5 {
        send(&gateway, &envelope(1, 1)).await.expect("the same answer");
    }
    // Sealed long ago, for all that this gateway knows.
    stage.sequencer.double.state.lock().refuses_envelopes = Some("already_known");
    for nonce in 11..=15 {
        assert_eq!(reason(&gateway, envelope(1, nonce).encode()).await, "already_known");
    }
    stage.sequencer.double.state.lock().refuses_envelopes = None;
    send(&gateway, &envelope(1, 2)).await.expect("the payer's second");
    gateway.handle.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_without_a_leader_says_so() {
    let mut stage = Stage::new().await;
    let standby = Standby::start("http://127.0.0.1:1").await;
    stage.gateway.leader_wait_ms = 300;
    stage.config.sequencer_urls = SequencerUrls::new([standby.url()]);
    let gateway = stage.gateway().await;
    let options = Some(SendOptions { promise: true });
    let asked = gateway.client.send_envelope(Encoded::from_bytes(envelope(1, 1).encode()), options).await;
    let refusal = asked.map_err(refused).expect_err("nobody leads");
    assert_eq!((refusal.reason.as_ref(), refusal.retry), ("no_leader", true));
    assert!(refusal.retry_after_ms.is_some());
    let read = gateway.client.get_fee_account(payer(1).address()).await.map_err(refused);
    let read = read.expect_err("nobody leads");
    assert_eq!((read.reason.as_ref(), read.retry_after_ms.is_some()), ("no_leader", true));
    gateway.handle.shutdown().await;
}

/// It had leaders, who said that they had no room, and was answered that there were none (J-8).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_without_room_for_this_gateway_is_passed_on_with_its_time() {
    let mut stage = Stage::new().await;
    stage.gateway.leader_wait_ms = 2_000;
    let gateway = stage.gateway().await;
    following(&gateway).await;
    let refusal = |ms| RpcError::busy("overloaded", "scripted").after(Duration::from_millis(ms));
    // After everybody's patience.
    stage.sequencer.double.state.lock().refuses_forwards = Some(refusal(9_000));
    let late = send(&gateway, &envelope(1, 1)).await.expect_err("no room");
    assert_eq!((late.reason.as_ref(), late.retry_after_ms), ("overloaded", Some(9_000)));
    // Within it: then it is tried again.
    stage.sequencer.double.state.lock().refuses_forwards = Some(refusal(100));
    let sent = envelope(1, 2);
    let waiting = send(&gateway, &sent);
    let room = async {
        gateway.counts(r#"blindfold_gateway_forward_failures_total{role="gateway"} 2"#).await;
        stage.sequencer.double.state.lock().refuses_forwards = None;
    };
    let (answer, ()) = within("there is room again", async { tokio::join!(waiting, room) }).await;
    assert_eq!(answer.expect("taken").id, sent.id());
    gateway.handle.shutdown().await;
}

/// Rule J-8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_may_wait_for_verification_are_told_when_to_come_back() {
    let mut stage = Stage::new().await;
    (stage.gateway.proof_batch_items, stage.gateway.proof_queue_items, stage.gateway.proof_threads) =
        (1, 1, 1);
    let gateway = stage.gateway().await;
    following(&gateway).await;
    let sent: Vec<Envelope> = (1..=16).map(|nonce| envelope(1, nonce)).collect();
    let answers = futures::future::join_all(sent.iter().map(|envelope| send(&gateway, envelope))).await;
    let refusals: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert!(!refusals.is_empty());
    for error in refusals {
        assert_eq!((error.reason.as_ref(), error.code, error.retry), ("overloaded", code::BUSY, true));
        assert!(error.retry_after_ms.is_some_and(|ms| (100..=30_000).contains(&ms)), "{error:?}");
    }
    gateway.handle.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_and_payers_are_counted() {
    let mut stage = Stage::new().await;
    (stage.gateway.payer_rate_per_second, stage.gateway.payer_burst) = (1, 2);
    let gateway = stage.gateway().await;
    following(&gateway).await;
    // Nobody takes from a payer's allowance but with the payer's signature.
    let mut forged = envelope(1, 9);
    forged.header.gas_limit += 1;
    for _ in 0..5 {
        assert_eq!(reason(&gateway, forged.encode()).await, "invalid_fee_signature");
    }
    let sent = [1, 2, 3].map(|nonce| envelope(1, nonce));
    let answers = futures::future::join_all(sent.iter().map(|envelope| send(&gateway, envelope))).await;
    let late: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert_eq!((late.len(), late[0].reason.as_ref()), (1, "payer_limit"));
    assert_eq!(late[0].retry_after_ms, Some(1_000), "one token in a second");
    send(&gateway, &envelope(2, 1)).await.expect("another payer's");
    gateway.handle.shutdown().await;

    (stage.gateway.source_rate_per_second, stage.gateway.source_burst) = (1, 1);
    let gateway = stage.gateway().await;
    following(&gateway).await;
    let sent = [vec![1], vec![2]].map(|bytes| gateway.client.send_envelope(Encoded::from_bytes(bytes), None));
    let answers = futures::future::join_all(sent).await;
    let answers: Vec<_> =
        answers.into_iter().map(|sent| sent.map_err(refused).expect_err("refused")).collect();
    let late = answers.iter().find(|refusal| refusal.reason == "source_limit").expect("the second one");
    assert_eq!(late.retry_after_ms, Some(1_000));
    gateway.handle.shutdown().await;
}

/// Says what it is told to, and notes whom it was asked about.
#[derive(Default)]
struct Scripted {
    answer: Mutex<Option<bool>>,
    asked: Mutex<(Vec<IpAddr>, Vec<Address>)>,
    given_back: Mutex<Vec<Address>>,
}

#[async_trait]
impl blindfold_gateway::SharedLimits for Scripted {
    async fn allow_source(&self, source: IpAddr) -> Option<bool> {
        self.asked.lock().0.push(source);
        *self.answer.lock()
    }

    async fn allow_payer(&self, payer: Address) -> Option<bool> {
        self.asked.lock().1.push(payer);
        *self.answer.lock()
    }

    async fn give_back_payer(&self, payer: Address) {
        self.given_back.lock().push(payer);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_counts_decide_and_their_loss_leaves_each_gateway_its_own() {
    let mut stage = Stage::new().await;
    let shared = Arc::new(Scripted::default());
    stage.shared = Some(Arc::clone(&shared) as _);
    let gateway = stage.gateway().await;
    following(&gateway).await;
    send(&gateway, &envelope(1, 1)).await.expect("nobody can say");
    gateway.counts(r#"blindfold_gateway_shared_limits_failures_total{role="gateway"} 2"#).await;
    *shared.answer.lock() = Some(false);
    assert_eq!(reason(&gateway, envelope(1, 2).encode()).await, "source_limit");
    *shared.answer.lock() = Some(true);
    send(&gateway, &envelope(1, 2)).await.expect("allowed");
    let (sources, payers) = shared.asked.lock().clone();
    assert_eq!((sources.len(), payers), (3, vec![payer(1).address(); 2]));
    within("its end", gateway.handle.shutdown()).await;
}

/// Somebody sends sealed envelopes of another's again, which are there for everybody, and does not stay for the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_hangs_up_takes_nothing_from_a_payer() {
    let mut stage = Stage::new().await;
    let shared = Arc::new(Scripted::default());
    *shared.answer.lock() = Some(true);
    stage.shared = Some(Arc::clone(&shared) as _);
    stage.gateway.leader_wait_ms = 1_000;
    let standby = Standby::start("http://127.0.0.1:1").await;
    stage.config.sequencer_urls = SequencerUrls::new([standby.url()]);
    let gateway = stage.gateway().await;
    let waiting = |envelopes| format!(r#"blindfold_gateway_envelopes_waiting{{role="gateway"}} {envelopes}"#);
    let sealed = envelope(1, 1);
    let mut asked = Box::pin(send(&gateway, &sealed));
    let there = waiting(1);
    tokio::select! {
        biased;
        _ = &mut asked => panic!("nobody leads"),
        () = gateway.counts(&there) => {}
    }
    drop(asked);
    gateway.counts(&waiting(0)).await;
    assert_eq!(*shared.given_back.lock(), [payer(1).address()]);
    within("its end", gateway.handle.shutdown()).await;
}
