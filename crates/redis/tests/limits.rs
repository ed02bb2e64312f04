//! Token buckets, against a real server.

mod common;

use blindfold_redis::{
    RedisError,
    limits::{Bucket, Limits, MAX_BUCKETS},
};
use blindfold_servers::Redis as Server;
use common::Client;

/// It gains nothing to speak of while a test runs.
const SLOW: Bucket<'_> = Bucket { name: "calls:192.0.2.1", burst: 100_000, per_second: 1 };

fn other(name: &str) -> Bucket<'_> {
    Bucket { name, ..SLOW }
}

#[tokio::test]
async fn processes_draw_from_the_same_bucket() {
    let Some(server) = Server::for_test() else { return };
    let clients = [Client::of(&server), Client::of(&server)];
    let limits = clients.each_ref().map(|client| Limits::new(client.redis.clone()));
    let mut allowed = 0;
    for _ in 0..4 {
        for limits in &limits {
            allowed += u32::from(limits.take(&[SLOW], 30_000).await.expect("an answer"));
        }
    }
    assert_eq!(allowed, 3);
    assert_eq!(limits[0].take(&[other("calls:192.0.2.2")], 30_000).await, Ok(true), "another's");
    // What is refused takes nothing.
    assert_eq!(limits[1].take(&[SLOW], 10_000).await, Ok(true));
    // It is forgotten when it is full again.
    let left_ms: u64 =
        server.run(&["PTTL", "blindfold:a:limit:calls:192.0.2.1"]).expect("answers").parse().expect("a time");
    assert!((1..=100_000_001).contains(&left_ms), "{left_ms}");
}

#[tokio::test]
async fn all_buckets_of_a_call_or_none() {
    let Some(server) = Server::for_test() else { return };
    let client = Client::of(&server);
    let limits = Limits::new(client.redis.clone());
    let (address, payer) = (other("address"), other("payer"));
    assert_eq!(limits.take(&[payer], 90_000).await, Ok(true));
    assert_eq!(limits.take(&[address, payer], 50_000).await, Ok(false));
    assert_eq!(limits.take(&[address], 100_000).await, Ok(true), "nothing was taken of it");
}

#[tokio::test]
async fn a_bucket_gains_its_rate_up_to_its_burst() {
    let Some(server) = Server::for_test() else { return };
    let client = Client::of(&server);
    let limits = Limits::new(client.redis.clone());
    let name = "blindfold:a:limit:address";
    // As of an hour ago: 3,600 tokens since.
    let clock: u64 =
        server.run(&["TIME"]).expect("answers").lines().next().unwrap_or("0").parse().expect("seconds");
    server.run(&["HSET", name, "level", "10", "at", &format!("{}000000", clock - 3_600)]).expect("set");
    let bucket = other("address");
    assert_eq!(limits.take(&[bucket], 5_000).await, Ok(false));
    assert_eq!(limits.take(&[bucket], 3_600).await, Ok(true));
    assert_eq!(limits.take(&[bucket], 1_000).await, Ok(false));
    server.run(&["HSET", name, "level", "10", "at", "0"]).expect("set");
    assert_eq!(limits.take(&[bucket], 100_001).await, Ok(false), "no more than the burst");
    assert_eq!(limits.take(&[bucket], 100_000).await, Ok(true));
}

#[tokio::test]
async fn what_is_no_bucket_or_is_lost_is_a_full_one() {
    let Some(server) = Server::for_test() else { return };
    let client = Client::of(&server);
    let limits = Limits::new(client.redis.clone());
    let name = "blindfold:a:limit:address";
    let bucket = other("address");
    let garbage: [&[&str]; 8] = [
        &["SET", name, "text"],
        &["RPUSH", name, "1"],
        &["HSET", name, "level", "many", "at", "now"],
        &["HSET", name, "level", "nan", "at", "nan"],
        &["HSET", name, "level", "-1", "at", "1"],
        &["HSET", name, "level", "0", "at", "9000000000000000"],
        &["HSET", name, "other", "1"],
        &["PING"],
    ];
    for written in garbage {
        server.flush().expect("emptied");
        server.run(written).expect("written");
        assert_eq!(limits.take(&[bucket], 100_000).await, Ok(true), "{written:?}");
        assert_eq!(limits.take(&[bucket], 50_000).await, Ok(false), "{written:?}");
    }
}

#[tokio::test]
async fn without_a_server_there_is_no_answer() {
    let Some(mut server) = Server::for_test() else { return };
    let client = Client::of(&server);
    let limits = Limits::new(client.redis.clone());
    assert_eq!(limits.take(&[SLOW], 1).await, Ok(true));
    server.end().expect("ends");
    assert!(limits.take(&[SLOW], 1).await.is_err());
    server.resume_start().expect("starts");
    client.redis.up().await;
    // The script is sent again.
    assert_eq!(limits.take(&[SLOW], 1).await, Ok(true));
}

#[tokio::test]
async fn buckets_that_cannot_be_are_refused() {
    let Some(server) = Server::for_test() else { return };
    let client = Client::of(&server);
    let limits = Limits::new(client.redis.clone());
    let long = "x".repeat(257);
    for buckets in [&[][..], &[SLOW; MAX_BUCKETS + 1], &[Bucket { per_second: 0, ..SLOW }], &[other(&long)]] {
        let refused = limits.take(buckets, 1).await;
        assert!(matches!(refused, Err(RedisError::Unreadable { .. })), "{refused:?}");
    }
}
