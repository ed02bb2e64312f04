//! Gateways that count together in Redis, and without it.

mod common;

use blindfold_kit::{envelope, refused};
use blindfold_protocol::{Canonical, Envelope};
use blindfold_redis::RedisSettings;
use blindfold_rpc::{Encoded, RpcError, RunningRole, SequencerApiClient, types::SentEnvelope};
use blindfold_servers::Redis;
use common::{Running, Stage};

async fn send(gateway: &Running, envelope: &Envelope) -> Result<SentEnvelope, RpcError> {
    gateway.client.send_envelope(Encoded::from_bytes(envelope.encode()), None).await.map_err(refused)
}

/// Three of a payer in a moment, however many gateways there are: over both together with Redis, over each without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_payer_may_send_is_counted_over_all_gateways_while_redis_is_there() {
    let Some(mut server) = Redis::for_test() else { return };
    let mut stage = Stage::new().await;
    (stage.gateway.payer_rate_per_second, stage.gateway.payer_burst) = (1, 3);
    let settings = RedisSettings { url: Some(server.url()), ..RedisSettings::default() };
    stage.redis = settings.options("a-deployment").expect("good settings");
    let gateways = [stage.gateway().await, stage.gateway().await];
    for gateway in &gateways {
        gateway.counts(r#"blindfold_relay_head_number{role="gateway"} 1"#).await;
        gateway.counts(r#"blindfold_redis_connections{role="gateway"} 1"#).await;
    }
    let sent = (1..=6).map(|nonce| (nonce, envelope(1, nonce)));
    let mut taken = 0;
    for (nonce, envelope) in sent {
        match send(&gateways[nonce as usize % 2], &envelope).await {
            Ok(_) => taken += 1,
            Err(refusal) => assert_eq!(refusal.reason, "payer_limit"),
        }
    }
    assert!((3..6).contains(&taken), "{taken}");
    // Emptied: everybody has one burst again. Away: each counts by itself, and takes all the same.
    server.flush().expect("it answers");
    send(&gateways[0], &envelope(1, 11)).await.expect("it was emptied");
    server.end().expect("it ends");
    for (gateway, nonce) in gateways.iter().zip(21..) {
        send(gateway, &envelope(2, nonce)).await.expect("Redis is away");
    }
    for gateway in gateways {
        gateway.handle.shutdown().await;
    }
}
