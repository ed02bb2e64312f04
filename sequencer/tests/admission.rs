//! Every refusal at admission, over real HTTP, and what an admitted envelope is answered.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_kit::{
    BASE_FEE, EPOCH, LAST_NUMBER, RICH, committee, envelope, envelope_with, payer, refused, sequencer_key,
    within,
};
use blindfold_protocol::{B256, Canonical, Epochs, keccak256, limits::MAX_ENVELOPE_BYTES};
use blindfold_rpc::{
    BlindApiClient, ReceivedError, RunningRole, SequencerApiClient, code, types::EnvelopeState,
};
use common::{GAS_FEE, World};

/// A world in which the funding header is sealed and then nothing any more, as it gets no certificate: the mempool keeps
/// what it gets.
fn quiet() -> World {
    World::with(|config, _| config.sealing.max_uncertified_headers = 1)
}

/// Rule A-6.
#[tokio::test]
async fn each_rule_of_validity_refuses_with_its_name() {
    let world = quiet();
    let running = world.start_funded(&[1, 3]).await;
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("wrong_chain", envelope_with(1, 1, |f| f.chain_id = 1).encode()),
        ("wrong_deployment", envelope_with(1, 1, |f| f.deployment.l1_chain_id = 1).encode()),
        ("wrong_epoch", envelope_with(1, 1, |f| f.epoch = 2).encode()),
        ("wrong_epoch", envelope_with(1, 1, |f| f.epoch = 0).encode()),
        ("wrong_encryption_key", changed(|e| e.header.encryption_key_hash = B256::ZERO)),
        ("unknown_flags", changed(|e| e.header.flags = 1)),
        ("bad_size", changed(|e| e.ciphertext.e.truncate(255))),
        ("gas_limit_too_high", envelope_with(1, 1, |f| f.gas_limit = 191_000_001).encode()),
        ("expired", envelope_with(1, 1, |f| f.expiry = 1).encode()),
        ("expiry_too_far", envelope_with(1, 1, |f| f.expiry = 2 + 4_096 + 1).encode()),
        ("invalid_fee_signature", forged_signature()),
        ("invalid_point", changed(|e| e.ciphertext.c[1] ^= 1)),
        ("invalid_proof", changed(|e| e.proof.s[31] ^= 1)),
        ("fee_too_low", envelope_with(1, 1, |f| f.max_fee = BASE_FEE - 1).encode()),
        ("fee_too_low", envelope_with(1, 1, |f| f.priority_fee = f.max_fee + 1).encode()),
        ("insufficient_funds", envelope(2, 1).encode()),
        ("insufficient_funds", envelope_with(1, 1, |f| (f.max_fee, f.priority_fee) = (RICH, RICH)).encode()),
    ];
    for (reason, bytes) in &cases {
        let error = running.send_bytes(bytes.clone(), true).await.expect_err(reason);
        assert_eq!((error.reason.as_ref(), error.code), (*reason, code::REFUSED), "{error}");
        let may_pass_later = matches!(*reason, "fee_too_low" | "insufficient_funds");
        assert_eq!(error.retry, may_pass_later, "{reason}");
    }
    // A copy under another payer is another header, so the proof does not hold for it.
    let mut copied = envelope(1, 1);
    copied.header.payer = payer(3).address();
    let copied =
        blindfold_protocol::Envelope::sign(copied.header, copied.ciphertext, copied.proof, &payer(3));
    assert_eq!(running.reason(&copied).await, "invalid_proof");

    let status = running.client.get_status().await.unwrap();
    assert_eq!(status.pending_envelopes, Some(0), "nothing of it stays");
    assert_eq!(status.counters["refused_wrong_epoch"], 2);
    assert_eq!(status.counters["envelopes_admitted"], 0);
    running.send(&envelope(1, 1)).await.expect("the original is fine");
    running.handle.shutdown().await;
}

fn changed(change: impl FnOnce(&mut blindfold_protocol::Envelope)) -> Vec<u8> {
    let mut envelope = envelope(1, 1);
    change(&mut envelope);
    blindfold_protocol::Envelope::sign(envelope.header, envelope.ciphertext, envelope.proof, &payer(1))
        .encode()
}

fn forged_signature() -> Vec<u8> {
    let envelope = envelope(1, 1);
    blindfold_protocol::Envelope::sign(envelope.header, envelope.ciphertext, envelope.proof, &payer(3))
        .encode()
}

#[tokio::test]
async fn bytes_that_are_no_envelope_are_named() {
    let world = quiet();
    let running = world.start_funded(&[1]).await;
    let whole = envelope(1, 1).encode();
    let mut trailing = whole.clone();
    trailing.push(0);
    let mut version = whole.clone();
    version[0] = 1;
    for bytes in [Vec::new(), vec![1], whole[..whole.len() - 1].to_vec(), trailing, version] {
        let error = running.send_bytes(bytes, false).await.unwrap_err();
        assert_eq!((error.reason.as_ref(), error.code), ("undecodable", code::INVALID_PARAMS), "{error}");
    }
    // One byte more than any envelope has: refused before anything is decoded.
    let error = running.send_bytes(vec![1; MAX_ENVELOPE_BYTES + 1], false).await.unwrap_err();
    assert_eq!((error.reason.as_ref(), error.code), ("too_large", code::INVALID_PARAMS));
    // Far more: not even read as hex.
    let error = running.send_bytes(vec![1; 2 * MAX_ENVELOPE_BYTES], false).await.unwrap_err();
    assert_eq!(error.code, code::INVALID_PARAMS);
    // Not hex, not a string, unknown options.
    for params in
        [serde_json::json!(["0xzz"]), serde_json::json!([5]), serde_json::json!(["0x", { "hurry": true }])]
    {
        use blindfold_rpc::jsonrpsee::core::client::ClientT;
        let mut array = blindfold_rpc::jsonrpsee::core::params::ArrayParams::new();
        for value in params.as_array().unwrap() {
            array.insert(value).unwrap();
        }
        let error =
            running.client.request::<serde_json::Value, _>("blind_sendEnvelope", array).await.unwrap_err();
        let ReceivedError::Refused(error) = error.into() else { panic!("an answer") };
        assert_eq!(error.code, code::INVALID_PARAMS, "{params}");
    }
    running.handle.shutdown().await;
}

/// Rule A-5.
#[tokio::test]
async fn the_same_envelope_again_gives_the_same_answer() {
    let world = quiet();
    let running = world.start_funded(&[1]).await;
    let sent = envelope(1, 1);
    let first = running.send(&sent).await.unwrap();
    assert_eq!((first.id, first.promise), (sent.id(), None));
    assert_eq!(running.send(&sent).await.unwrap().id, sent.id());
    // Other proof bytes do not change the id.
    assert_eq!(running.client.get_status().await.unwrap().pending_envelopes, Some(1));
    assert_eq!(running.state(first.id).await, EnvelopeState::Pending);
    // Many at once are one.
    let other = envelope(1, 2);
    let answers = futures(8, || running.send(&other)).await;
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap().id == other.id()));
    assert_eq!(running.client.get_status().await.unwrap().pending_envelopes, Some(2));
    // Another envelope with a nonce that is taken.
    let clash = envelope_with(1, 1, |f| f.gas_limit = 1);
    assert_eq!(running.reason(&clash).await, "fee_nonce_used");
    running.handle.shutdown().await;
}

async fn futures<T>(count: usize, mut make: impl FnMut() -> T) -> Vec<T::Output>
where
    T: Future,
{
    let mut all: Vec<_> = (0..count).map(|_| Box::pin(make())).collect();
    let mut done = Vec::new();
    // Polled in turn, so that all are under way together.
    std::future::poll_fn(|context| {
        all.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => {
                done.push(output);
                false
            }
            std::task::Poll::Pending => true,
        });
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done
}

#[tokio::test]
async fn promises_are_signed_and_stand() {
    // The funding header never gets its certificate, so nothing else is sealed, also after a restart.
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 1);
    let running = world.start_funded(&[1]).await;
    let envelope = envelope(1, 1);
    let sent = running.send_bytes(envelope.encode(), true).await.unwrap();
    let promise = sent.promise.unwrap().decode().unwrap();
    assert_eq!(
        (promise.envelope_id, promise.item_hash, promise.seal_by),
        (envelope.id(), keccak256(envelope.encode()), 1 + world.config.sealing.promise_margin_batches)
    );
    assert_eq!(promise.signer(&world.chain.deployment), Ok(sequencer_key().address()));
    let again = running.send_bytes(envelope.encode(), true).await.unwrap().promise.unwrap().decode().unwrap();
    assert_eq!(again, promise, "the first promise stands");

    // Asked for later, and never beyond the expiry.
    let late = envelope_with(1, 2, |f| f.expiry = 5);
    assert_eq!(running.send(&late).await.unwrap().promise, None);
    let promised = running.send_bytes(late.encode(), true).await.unwrap().promise.unwrap().decode().unwrap();
    assert_eq!(promised.seal_by, 5);
    assert_eq!(
        running.send_bytes(late.encode(), true).await.unwrap().promise.unwrap().decode().unwrap(),
        promised
    );
    running.handle.shutdown().await;
    // It stands after a restart.
    let running = world.start().await;
    assert_eq!(
        running.send_bytes(late.encode(), true).await.unwrap().promise.unwrap().decode().unwrap(),
        promised
    );
    assert_eq!(
        running.send_bytes(envelope.encode(), true).await.unwrap().promise.unwrap().decode().unwrap(),
        promise
    );
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_sealed_envelope_is_known_and_its_nonce_used() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    let envelope = envelope(1, 1);
    running.send(&envelope).await.unwrap();
    running.sealed(2).await;
    running
        .eventually("the pool is empty", async || {
            running.client.get_status().await.unwrap().pending_envelopes == Some(0)
        })
        .await;
    let error = running.send_bytes(envelope.encode(), false).await.unwrap_err();
    assert_eq!((error.reason.as_ref(), error.code, error.retry), ("already_known", code::CONFLICT, false));
    assert_eq!(running.reason(&envelope_with(1, 1, |f| f.gas_limit = 1)).await, "fee_nonce_used");
    running.handle.shutdown().await;
}

#[tokio::test]
async fn funds_count_what_is_pending() {
    let world = quiet();
    let cost = |envelope: &blindfold_protocol::Envelope| {
        envelope.encoded_len() as u128 * (BASE_FEE + 10) + GAS_FEE + world.chain.malformed_surcharge
    };
    let one = cost(&envelope(1, 1));
    world.l1.deposit(payer(1).address(), 2 * one + 1);
    let running = world.start().await;
    running.sealed(1).await;
    let balance = async || running.client.get_fee_account(payer(1).address()).await.unwrap().balance;
    assert_eq!(balance().await, 2 * one + 1);
    running.send(&envelope(1, 1)).await.unwrap();
    assert_eq!(balance().await, one + 1, "what is pending is reserved");
    running.send(&envelope(1, 2)).await.unwrap();
    let error = running.send(&envelope(1, 3)).await.unwrap_err();
    assert_eq!((error.reason.as_ref(), error.retry), ("insufficient_funds", true));
    running.handle.shutdown().await;
}

#[tokio::test]
async fn the_mempool_is_bounded() {
    let world = World::with(|config, _| {
        config.sealing.max_uncertified_headers = 1;
        config.mempool.max_envelopes = 3;
        config.mempool.max_per_payer = 2;
    });
    let running = world.start_funded(&[1, 2, 3]).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.send(&envelope(1, 2)).await.unwrap();
    let error = running.send(&envelope(1, 3)).await.unwrap_err();
    assert_eq!((error.reason.as_ref(), error.code, error.retry), ("payer_limit", code::BUSY, true));
    assert!(error.retry_after_ms.is_some());
    running.send(&envelope(2, 1)).await.unwrap();
    let error = running.send(&envelope(3, 1)).await.unwrap_err();
    assert_eq!((error.reason.as_ref(), error.code, error.retry), ("pool_full", code::BUSY, true));
    assert!(error.retry_after_ms.is_some());
    running.send(&envelope(1, 1)).await.expect("one that is there is answered all the same");
    // One that gives more takes the place of the last of those that give least.
    let dear = envelope_with(3, 2, |f| f.priority_fee = 1_000);
    running.send(&dear).await.expect("there is a place for it");
    let receipt = running.receipt(envelope(2, 1).id()).await;
    assert_eq!((receipt.state, receipt.reason.as_deref()), (EnvelopeState::Expired, Some("evicted")));
    assert_eq!(running.reason(&envelope(2, 1)).await, "pool_full", "it may be sent again");
    running.handle.shutdown().await;
}

/// Rules A-8 and J-8: before anything is verified, and whatever has its place is answered all the same.
#[tokio::test]
async fn no_more_are_admitted_than_are_certified_in_time() {
    let world = World::with(|config, _| {
        config.sealing.max_uncertified_headers = 1;
        config.admission.proof_batch_items = 1;
        config.admission.max_wait_ms = 1;
    });
    let running = world.start_funded(&[1]).await;
    for nonce in 1..=2 {
        running.send(&envelope(1, nonce)).await.expect("two groups may wait in any case");
    }
    // Refused before its signature is looked at, and the disk.
    let mut forged = envelope(1, 3);
    forged.header.gas_limit += 1;
    for (late, sent) in [envelope(1, 3), forged].iter().enumerate() {
        let error = running.send(sent).await.unwrap_err();
        assert_eq!((error.reason.as_ref(), error.code, error.retry), ("queue_too_long", code::BUSY, true));
        assert!(error.retry_after_ms.is_some_and(|ms| (100..=30_000).contains(&ms)), "{late}: {error:?}");
    }
    running.send(&envelope(1, 2)).await.expect("one that is there is answered all the same");
    let dear = envelope_with(1, 4, |f| f.priority_fee = 1_000);
    running.send(&dear).await.expect("it goes before those that wait");
    let status = running.client.get_status().await.unwrap();
    assert_eq!((status.pending_envelopes, status.counters["refused_queue_too_long"]), (Some(3), 2));
    // Certificates come again, and what waits is sealed: then there is room.
    running.certify_through(1).await;
    running.sealed(2).await;
    running.certify_through(2).await;
    running.eventually("there is room again", async || running.send(&envelope(1, 3)).await.is_ok()).await;
    running.handle.shutdown().await;
}

/// Rule A-8: what was sealed before a restart waits for its certificate as well.
#[tokio::test]
async fn what_was_sealed_before_a_restart_counts_among_those_that_wait() {
    let world = World::with(|config, _| {
        config.admission.proof_batch_items = 1;
        config.admission.max_wait_ms = 1;
    });
    let running = world.start_funded(&[1]).await;
    for nonce in 1..=2 {
        running.send(&envelope(1, nonce)).await.unwrap();
        running.sealed(nonce + 1).await;
    }
    running.handle.abort().await;
    let running = world.start().await;
    let refused = running.send(&envelope(1, 3)).await.unwrap_err();
    assert_eq!(refused.reason, "queue_too_long", "two wait for certificates");
    running.certify_through(3).await;
    running.send(&envelope(1, 3)).await.expect("nothing waits any more");
    running.handle.shutdown().await;
}

/// Rule A-8: nobody waits for what the next header cannot take.
#[tokio::test]
async fn envelopes_of_the_next_epoch_hold_up_none_of_this_one() {
    let epochs = vec![committee().epoch(EPOCH, 1, 600), committee().epoch(EPOCH + 1, 601, LAST_NUMBER)];
    let world = World::with_epochs(epochs, |config, _| {
        config.admission.proof_batch_items = 1;
        config.admission.max_wait_ms = 1;
    });
    let running = world.start_funded(&[1]).await;
    for nonce in 1..=2 {
        let early = envelope_with(1, nonce, |f| (f.epoch, f.expiry) = (EPOCH + 1, 900));
        running.send(&early).await.expect("it waits for its epoch");
    }
    // Empty headers lead there.
    running.certify_through(running.handle.tracker().head().number).await;
    running.send(&envelope_with(1, 3, |f| f.expiry = 500)).await.expect("it goes before them");
    running.handle.shutdown().await;
}

/// Rule J-8: whoever has to come back is told when.
#[tokio::test]
async fn more_than_may_wait_for_verification_are_told_when_to_come_back() {
    let world = World::with(|config, _| {
        config.sealing.max_uncertified_headers = 1;
        config.admission.proof_batch_items = 1;
        config.admission.proof_queue_items = 1;
        config.admission.proof_threads = 1;
    });
    let running = world.start_funded(&[1]).await;
    let sent: Vec<_> = (1..=16).map(|nonce| envelope(1, nonce)).collect();
    let mut envelopes = sent.iter();
    let answers = futures(sent.len(), || running.send(envelopes.next().expect("one each"))).await;
    let refusals: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert!(!refusals.is_empty());
    for error in refusals {
        assert_eq!((error.reason.as_ref(), error.code, error.retry), ("overloaded", code::BUSY, true));
        assert!(error.retry_after_ms.is_some(), "{error:?}");
    }
    running.handle.shutdown().await;
}

#[tokio::test]
async fn one_address_has_its_limit() {
    let world = World::with(|config, _| {
        config.sealing.slot_ms = 60_000;
        config.admission.source_burst = 2;
        config.admission.source_rate_per_second = 1;
    });
    let running = world.start_funded(&[1]).await;
    let answers = futures(8, || running.send_bytes(vec![0], false)).await;
    let refusals: Vec<_> = answers.into_iter().map(|answer| answer.unwrap_err()).collect();
    let late = refusals.iter().filter(|refusal| refusal.reason == "source_limit");
    assert!(late.clone().all(|refusal| refusal.retry_after_ms == Some(1_000)), "one token in a second");
    let reasons: Vec<_> = refusals.iter().map(|refusal| refusal.reason.as_ref()).collect();
    // The bucket fills up meanwhile, by one each second.
    let limited = late.count();
    let taken = reasons.iter().filter(|reason| **reason == "undecodable").count();
    assert!(limited >= 1 && taken >= 2 && limited + taken == 8, "{reasons:?}");
    running.handle.shutdown().await;
}

/// Rule A-5.
#[tokio::test]
async fn envelopes_of_the_next_epoch_wait_for_it() {
    let world = World::with_epochs(
        vec![committee().epoch(EPOCH, 1, 6), committee().epoch(EPOCH + 1, 7, LAST_NUMBER)],
        |_, _| {},
    );
    let running = world.start_funded(&[1]).await;
    let early = envelope_with(1, 1, |f| (f.epoch, f.expiry) = (EPOCH + 1, 6));
    assert_eq!(running.reason(&early).await, "expired", "its epoch begins after its expiry");
    let waiting = envelope_with(1, 2, |f| f.epoch = EPOCH + 1);
    let sent = running.send_bytes(waiting.encode(), true).await.unwrap();
    let promise = sent.promise.unwrap().decode().unwrap();
    assert_eq!(promise.seal_by, 6 + world.config.sealing.promise_margin_batches);
    // Empty headers lead to the epoch.
    running.sealed(6).await;
    running.certify(6).await;
    running.sealed(7).await;
    let receipt = running.receipt(sent.id).await;
    assert_eq!((receipt.state, receipt.number), (EnvelopeState::Sealed, Some(7)));
    running.handle.shutdown().await;
}

/// Promised by a number of the present epoch, it could only be sealed after that, which costs the bond.
#[tokio::test]
async fn nothing_is_promised_for_an_epoch_whose_parameters_are_not_here() {
    let world = World::with_epochs(vec![committee().epoch(EPOCH, 1, 600)], |_, _| {});
    let running = world.start_funded(&[1]).await;
    let more = vec![committee().epoch(EPOCH, 1, 600), committee().epoch(EPOCH + 1, 601, LAST_NUMBER)];
    *world.l1.epochs.lock() = Epochs::new(more).unwrap();
    let envelope = envelope_with(1, 1, |f| (f.epoch, f.expiry) = (EPOCH + 1, 900)).encode();
    // The epochs are read anew now and then.
    let refusal = within("the next epoch", async {
        loop {
            match running.send_bytes(envelope.clone(), true).await.unwrap_err() {
                refusal if refusal.reason == "wrong_epoch" || refusal.reason == "no_epoch" => {
                    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
                }
                refusal => return refusal,
            }
        }
    })
    .await;
    assert_eq!(refusal.reason, "promise_terms", "{refusal}");
    running.handle.shutdown().await;
}

#[tokio::test]
async fn without_an_epoch_nothing_is_admitted() {
    // Header 1 is the last that an epoch is registered for.
    let world = World::with_epochs(vec![committee().epoch(EPOCH, 1, 1)], |_, _| {});
    let running = world.start_funded(&[1]).await;
    let error = running.send(&envelope_with(1, 1, |f| f.expiry = 1)).await.unwrap_err();
    assert_eq!((error.reason.as_ref(), error.code, error.retry), ("no_epoch", code::UNAVAILABLE, true));
    running
        .eventually("not ready", async || running.handle.readiness().reasons().contains_key("epoch"))
        .await;
    // L1 registers the next one: the sequencer learns of it by itself.
    let more = vec![committee().epoch(EPOCH, 1, 1), committee().epoch(EPOCH + 1, 2, LAST_NUMBER)];
    *world.l1.epochs.lock() = Epochs::new(more).unwrap();
    running.send(&envelope_with(1, 1, |f| f.epoch = EPOCH + 1)).await.expect("admitted now");
    running.handle.shutdown().await;
}

/// Rules J-2 and J-8.
#[tokio::test]
async fn who_calls_too_often_is_told_when_to_come_back() {
    let world = World::with(|config, _| config.inbound.max_calls_per_address_per_second = 1);
    let running = world.start().await;
    let error = within("a refusal", async {
        loop {
            if let Err(error) = running.client.get_status().await {
                return refused(error);
            }
        }
    })
    .await;
    assert_eq!((error.reason.as_ref(), error.code, error.retry), ("rate_limited", code::BUSY, true));
    assert_eq!(error.retry_after_ms, Some(1_000), "one call in a second");
    running.handle.shutdown().await;
}

/// Rule J-8.
#[tokio::test]
async fn reads_for_which_the_execution_client_has_no_room_are_told_when_to_come_back() {
    use blindfold_rpc::jsonrpsee::{core::client::ClientT, rpc_params};
    let world = quiet();
    let running = world.start().await;
    let read = running.client.request::<serde_json::Value, _>("eth_getLogs", rpc_params![]).await;
    let error = refused(read.unwrap_err());
    assert_eq!((error.reason.as_ref(), error.code, error.retry), ("reads_busy", code::BUSY, true));
    assert!(error.retry_after_ms.is_some(), "{error:?}");
    running.handle.shutdown().await;
}

/// Rule J-4.
#[tokio::test]
async fn plaintexts_are_refused_and_public_reads_pass() {
    use blindfold_rpc::jsonrpsee::{core::client::ClientT, rpc_params};
    let world = quiet();
    let running = world.start().await;
    for method in
        ["eth_sendRawTransaction", "eth_call", "eth_estimateGas", "eth_createAccessList", "eth_simulateV1"]
    {
        let error =
            running.client.request::<serde_json::Value, _>(method, rpc_params!["0x00"]).await.unwrap_err();
        let ReceivedError::Refused(error) = error.into() else { panic!("an answer") };
        assert_eq!(
            (error.code, error.reason.as_ref()),
            (code::PLAINTEXT_REFUSED, "plaintext_refused"),
            "{method}"
        );
    }
    let passed: serde_json::Value =
        running.client.request("eth_getBalance", rpc_params!["0x01", "latest"]).await.unwrap();
    assert_eq!(passed, serde_json::json!({ "method": "eth_getBalance", "params": ["0x01", "latest"] }));
    let error = running
        .client
        .request::<serde_json::Value, _>("eth_getBlockByHash", rpc_params![])
        .await
        .unwrap_err();
    assert!(
        matches!(error.into(), ReceivedError::Refused(error) if error.code == 3),
        "the client's own error"
    );
    let error =
        running.client.request::<serde_json::Value, _>("debug_setHead", rpc_params![]).await.unwrap_err();
    assert!(matches!(error.into(), ReceivedError::Refused(error) if error.reason == "unknown_method"));
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_sequencer_that_stops_admits_nothing_more() {
    let world = quiet();
    let running = world.start_funded(&[1]).await;
    let (client, envelope) = (running.client.clone(), envelope(1, 1));
    running.handle.shutdown().await;
    let bytes = blindfold_rpc::Encoded::from_bytes(envelope.encode());
    let error = client.send_envelope(bytes, None).await.unwrap_err();
    assert!(ReceivedError::from(error).retry());
}

/// An envelope comes in twice before it is known. The second call is checked late, when the first has been sealed: its nonce
/// is used by itself.
#[tokio::test]
async fn an_envelope_that_was_sealed_while_it_was_checked_again_is_known() {
    let world = World::with(|config, _| {
        // What makes no whole group waits for others.
        config.admission.proof_batch_items = 2;
        config.admission.proof_wait_us = 1_000_000;
    });
    let running = world.start_funded(&[1, 2]).await;
    let (envelope, other) = (envelope(1, 1), envelope(2, 1));
    let sent = [&envelope, &other, &envelope];
    let mut calls = sent.iter();
    let answers = futures(sent.len(), || running.send(calls.next().unwrap())).await;
    let refusals: Vec<String> =
        answers.into_iter().filter_map(Result::err).map(|refusal| refusal.reason.into_owned()).collect();
    assert!(refusals.is_empty() || refusals == ["already_known"], "{refusals:?}");
    running.handle.shutdown().await;
}
