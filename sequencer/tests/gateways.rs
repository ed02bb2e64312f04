//! Envelopes that gateways forward (J-6).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;

use blindfold_kit::{client, envelope, refused};
use blindfold_protocol::{Canonical, Hello, Party, SigningKey, limits::MAX_ENVELOPE_BYTES};
use blindfold_rpc::{
    ClientConfig, Encoded, ForwardApiClient, HttpClient, Introduction, RpcError, RunningRole, http_client,
    limits::{MAX_FORWARDED_BYTES, MAX_FORWARDED_ENVELOPES, MAX_PEER_REQUEST_BYTES},
    types::{ForwardedAnswer, ForwardedEnvelope},
};
use common::{Running, World};

fn gateway_key() -> SigningKey {
    SigningKey::from_bytes(&[88; 32]).unwrap()
}

fn world() -> World {
    World::with(|config, _| {
        config.gateways = vec![gateway_key().address()];
        // One envelope an hour from an address.
        (config.admission.source_rate_per_second, config.admission.source_burst) = (1, 1);
    })
}

/// A client that shows that it is the gateway with this key.
fn gateway(world: &World, running: &Running<'_>, key: SigningKey) -> HttpClient {
    let (deployment, clock) = (world.chain.deployment, Arc::clone(&world.clock));
    let introduction = Introduction::new(move || {
        let now_ms = blindfold_sequencer::Clock::now_ms(clock.as_ref());
        Hello::of_gateway(&key, &deployment, Party::Sequencer, now_ms, [1; 16].into())
    });
    let config = ClientConfig {
        introduction: Some(introduction),
        max_request_bytes: MAX_PEER_REQUEST_BYTES,
        ..ClientConfig::default()
    };
    http_client(&format!("http://{}", running.handle.rpc_addr()), &config).unwrap()
}

fn forwarded(bytes: Vec<u8>, promise: bool) -> ForwardedEnvelope {
    ForwardedEnvelope { envelope: Encoded::from_bytes(bytes), promise }
}

fn reason(answer: &ForwardedAnswer) -> Option<&str> {
    answer.refused.as_ref().map(|refusal| refusal.reason.as_str())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_several_is_judged_by_itself_and_addresses_are_not_counted() {
    let world = world();
    let running = world.start_funded(&[1]).await;
    let client = gateway(&world, &running, gateway_key());
    let good = [envelope(1, 1), envelope(1, 2), envelope(1, 3)];
    let mut forged = envelope(1, 4);
    forged.header.gas_limit += 1;
    let call = vec![
        forwarded(good[0].encode(), false),
        forwarded(vec![7; 100], false),
        forwarded(good[1].encode(), true),
        forwarded(forged.encode(), false),
        forwarded(good[2].encode(), false),
        forwarded(good[0].encode(), false),
    ];
    let answers = client.send_envelopes(call).await.unwrap();
    assert_eq!(
        answers.iter().map(reason).collect::<Vec<_>>(),
        [None, Some("undecodable"), None, Some("invalid_fee_signature"), None, None]
    );
    let sent: Vec<_> = answers.iter().filter_map(|answer| answer.sent.as_ref()).collect();
    assert_eq!(sent.iter().map(|sent| sent.id).collect::<Vec<_>>(), {
        let [a, b, c] = good.each_ref().map(|envelope| envelope.id());
        vec![a, b, c, a]
    });
    assert!(sent[1].promise.as_ref().unwrap().decode().unwrap().seal_by > 1);
    assert!(sent[0].promise.is_none());
    running.sealed(2).await;
    running.handle.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_but_a_named_gateway_forwards() {
    let world = world();
    let running = world.start_funded(&[1]).await;
    let call = || vec![forwarded(envelope(1, 1).encode(), false)];
    let stranger = gateway(&world, &running, SigningKey::from_bytes(&[89; 32]).unwrap());
    for client in [client(running.handle.rpc_addr()), stranger] {
        let refusal: RpcError = client.send_envelopes(call()).await.map_err(refused).unwrap_err();
        assert_eq!(refusal.reason, "not_a_gateway");
    }
    running.handle.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_with_too_many_is_refused_whole() {
    let world = world();
    let running = world.start_funded(&[1]).await;
    let client = gateway(&world, &running, gateway_key());
    let many = vec![forwarded(vec![1], false); MAX_FORWARDED_ENVELOPES + 1];
    let large =
        vec![forwarded(vec![1; MAX_ENVELOPE_BYTES], false); MAX_FORWARDED_BYTES / MAX_ENVELOPE_BYTES + 1];
    for call in [many, large] {
        let refusal = client.send_envelopes(call).await.map_err(refused).unwrap_err();
        assert_eq!(refusal.reason, "too_many_envelopes");
    }
    assert_eq!(client.send_envelopes(Vec::new()).await.unwrap(), []);
    running.handle.shutdown().await;
}
