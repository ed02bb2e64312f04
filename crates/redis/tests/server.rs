//! The connection, against a real server that fails in every way.

mod common;

use std::time::Duration;

use blindfold_redis::{MAX_ANSWER_BYTES, RedisError, RedisSettings, redis::cmd};
use blindfold_servers::Redis as Server;
use common::Client;

async fn get(client: &Client, name: &str) -> Result<Option<u64>, RedisError> {
    client.redis.query(cmd("GET").arg(client.redis.key(name))).await
}

async fn set(client: &Client, name: &str, value: &str) -> Result<(), RedisError> {
    client.redis.query(cmd("SET").arg(client.redis.key(name)).arg(value)).await
}

#[tokio::test]
async fn two_deployments_share_a_server_and_do_not_see_each_other() {
    let Some(server) = Server::for_test() else { return };
    let (ours, other) = (Client::of(&server), Client::with(server.url(), "b", None));
    // The first call waits for the first connection.
    set(&ours, "count", "7").await.expect("set");
    assert_eq!(get(&ours, "count").await, Ok(Some(7)));
    assert_eq!(get(&other, "count").await, Ok(None));
    assert_eq!(server.run(&["GET", "blindfold:a:count"]).expect("answers"), "7");
    assert_eq!((ours.metrics.connections.get(), ours.metrics.seconds.count()), (1, 2));
    ours.tasks.shutdown().await;
    assert_eq!((ours.metrics.connections.get(), ours.tasks.spawner().failure()), (0, None));
    assert_eq!(get(&ours, "count").await, Err(RedisError::Down));
}

#[tokio::test]
async fn a_server_that_is_away_fails_calls_by_name_and_comes_back_by_itself() {
    let Some(mut server) = Server::for_test() else { return };
    server.end().expect("ends");
    let client = Client::of(&server);
    assert_eq!(get(&client, "count").await, Err(RedisError::Down));
    assert!(!client.redis.is_up() && client.errors("down") == 1 && client.errors("lost") >= 1);
    for start in 1..=3 {
        server.resume_start().expect("starts");
        client.redis.up().await;
        assert_eq!(get(&client, "count").await, Ok(None), "it kept nothing");
        set(&client, "count", "7").await.expect("set");
        assert_eq!(client.metrics.connects.get(), start);
        server.end().expect("ends");
        let fault = get(&client, "count").await.expect_err("it is away");
        assert!(matches!(fault, RedisError::Lost { .. } | RedisError::Down), "{fault}");
    }
}

#[tokio::test]
async fn one_that_is_silent_keeps_nobody_waiting_twice() {
    let Some(server) = Server::for_test() else { return };
    let settings = RedisSettings { url: Some(server.url()), ..RedisSettings::default() };
    let client = Client::by(&settings, "a");
    client.redis.up().await;
    let (mut write, mut read, long) = (cmd("SET"), cmd("GET"), Duration::from_secs(10));
    write.arg(client.redis.key("count")).arg(7);
    read.arg(client.redis.key("count"));
    assert_eq!(client.redis.query_waiting(&write, long).await, Ok(()));
    server.cut().expect("cut");
    assert_eq!(get(&client, "count").await, Err(RedisError::Slow { within_ms: 250 }));
    // The system takes a new connection, and nothing answers there.
    assert_eq!(get(&client, "count").await, Err(RedisError::Down));
    server.heal().expect("healed");
    client.redis.up().await;
    assert_eq!(client.redis.query_waiting(&read, long).await, Ok(7));
}

#[tokio::test]
async fn what_somebody_else_wrote_is_an_error_and_no_more() {
    let Some(server) = Server::for_test() else { return };
    let client = Client::of(&server);
    server.run(&["RPUSH", "blindfold:a:list", "x"]).expect("pushed");
    server.run(&["SET", "blindfold:a:text", "seven"]).expect("set");
    server.run(&["SETRANGE", "blindfold:a:long", &(2 * MAX_ANSWER_BYTES).to_string(), "x"]).expect("set");
    let refused = get(&client, "list").await.expect_err("a list");
    assert!(matches!(&refused, RedisError::Refused { reason } if reason.contains("WRONGTYPE")), "{refused}");
    let unreadable = get(&client, "text").await.expect_err("a text");
    assert!(matches!(unreadable, RedisError::Unreadable { .. }), "{unreadable}");
    // More than any answer of ours is not read into memory.
    let long = get(&client, "long").await.expect_err("32 MiB");
    assert!(matches!(long, RedisError::Lost { .. }), "{long}");
    client.redis.up().await;
    set(&client, "count", "7").await.expect("set");
    server.flush().expect("emptied");
    assert_eq!(get(&client, "count").await, Ok(None));
    for kind in ["refused", "unreadable", "lost"] {
        assert_eq!(client.errors(kind), 1, "{kind}");
    }
}

#[tokio::test]
async fn a_password_comes_from_its_file() {
    let Some(server) = Server::for_test_with(&["--requirepass", "secret"]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        Some(path)
    };
    let known = Client::with(server.url(), "a", file("right", "secret\n"));
    set(&known, "count", "7").await.expect("set");
    for password in [file("wrong", "other\n"), None] {
        let unknown = Client::with(server.url(), "a", password);
        let fault = get(&unknown, "count").await.expect_err("not let in");
        assert_eq!(fault, RedisError::Down);
        assert!(unknown.errors("refused") >= 1);
    }
}
