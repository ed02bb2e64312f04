//! A server, a way to it, or an operator that does the worst at the worst time.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
#[path = "common/relay.rs"]
mod relay;

use std::{thread, time::Duration};

use alloy_primitives::B256;
use blindfold_protocol::ledger::LedgerDelta;
use blindfold_servers::Postgres;
use blindfold_store::{PostgresUrl, SqlStore, Store};
use common::*;
use relay::{Plan, Relay};

/// Whatever the connection's end is told with, a commit is looked after.
#[tokio::test]
async fn a_write_that_was_refused_left_nothing() {
    let Some(server) = Postgres::shared() else { return };
    let mut stood = Vec::new();
    // disk full while the log is written (PANIC); pgbouncer's "server conn crashed?"; idle_session_timeout; dropped database;
    // an internal error; a proxy's connection_failure.
    for (severity, code) in [
        ("PANIC", "53100"),
        ("FATAL", "08P01"),
        ("FATAL", "57P05"),
        ("FATAL", "XX000"),
        ("FATAL", "08006"),
        ("FATAL", "57P01"),
        ("FATAL", "58000"),
    ] {
        let (name, _) = schema(server);
        let relay = Relay::to(server);
        let store = SqlStore::connect(&relay.url(&name)).await.unwrap();
        relay.plan(Plan::Told(severity, code));
        let answer = store.put_acknowledged(1, id(1), 0).await;
        let there = store.acknowledged(1).await.unwrap();
        if answer.is_err() && there.is_some() {
            stood.push(format!("{severity} {code}: told {answer:?}"));
        }
    }
    assert!(stood.is_empty(), "refused, and stands: {stood:#?}");
}

/// A commit that never came is not taken for one before it, of which nothing was heard.
#[tokio::test]
async fn a_write_that_was_acknowledged_is_there() {
    let Some(server) = Postgres::shared() else { return };
    let (name, direct) = schema(server);
    let relay = Relay::to(server);
    let store = SqlStore::connect(&relay.url(&name)).await.unwrap();
    relay.plan(Plan::Told("FATAL", "08P01"));
    // What became of it is another test's.
    let _ = store.put_meta("x", b"1").await;
    relay.plan(Plan::Cut);
    let record = sealed(1, B256::ZERO, &[1], 0, LedgerDelta::default());
    let second = store.put_sealed(record.clone()).await;
    store.close().await;
    let again = SqlStore::connect(&direct).await.unwrap();
    let there = again.acknowledged(1).await.unwrap();
    // What was acknowledged went out, signed; this is the second one for its number.
    let other = again.put_acknowledged(1, id(99), 7).await;
    assert!(
        second.is_err() || there.is_some(),
        "acknowledged {}, stored {there:?}; another for the number: {other:?}",
        record.hash
    );
}

/// Settings count that the server has when the store connects anew, and no later ones.
#[tokio::test]
async fn what_was_acknowledged_is_durable_after_a_reload() {
    if Postgres::shared().is_none() {
        return;
    }
    let mut server = Postgres::start().unwrap();
    let (name, url) = schema(&server);
    let store = SqlStore::connect(&url).await.unwrap();
    server.run("ALTER SYSTEM SET synchronous_commit = off").unwrap();
    server.run("ALTER SYSTEM SET wal_writer_delay = '10s'").unwrap();
    server.run("SELECT pg_reload_conf()").unwrap();
    thread::sleep(Duration::from_millis(500));
    let lock = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = '{name}'::regnamespace::oid"
    );
    server.run(&lock).unwrap();
    let mut acknowledged = Vec::new();
    for number in 1..=20 {
        if store.put_acknowledged(number, id(number), 0).await.is_ok() {
            acknowledged.push(number);
        }
    }
    let server = blindfold_runtime::blocking(move || {
        server.end().unwrap();
        server.resume_start().unwrap();
        server
    })
    .await
    .unwrap();
    let mut lost = Vec::new();
    for number in &acknowledged {
        let stored = loop {
            match store.acknowledged(*number).await {
                Ok(stored) => break stored,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        if stored.is_none() {
            lost.push(*number);
        }
    }
    drop(server);
    assert!(lost.is_empty(), "{} acknowledged, lost in a crash: {lost:?}", acknowledged.len());
}

/// How one write's failure touches those beside it, in one group, with many shapes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_of_good_and_bad_writes() {
    for place in Place::all() {
        let store = place.open().await;
        for round in 0..30u64 {
            let mut tasks = tokio::task::JoinSet::new();
            for index in 0..40u64 {
                let store = store.clone();
                let number = round * 100 + index;
                tasks.spawn(async move {
                    let outcome = match index % 8 {
                        // Refused before the first statement.
                        0 => store.put_acknowledged(u64::MAX, id(1), 0).await,
                        // Refused by the server in the middle of a pipeline: a nonce twice.
                        1 => {
                            let twice = [5, 6].map(|expiry| nonce_change(1, number, None, Some(expiry)));
                            let delta = LedgerDelta { nonces: twice.into(), ..LedgerDelta::default() };
                            let mut record = sealed(1, B256::ZERO, &[number], 0, delta);
                            record.signed = false;
                            store.put_sealed(record).await
                        }
                        // A text that PostgreSQL refuses.
                        2 => store.put_meta(&format!("m{number}\0"), b"x").await,
                        // Refused after it wrote: acknowledged for its number, and no batch follows.
                        3 => store
                            .put_sealed(sealed(700_000 + number, id(3), &[], 0, LedgerDelta::default()))
                            .await
                            .map(|()| panic!("no batch follows")),
                        _ => store.put_acknowledged(1_000_000 + number, id(number), 0).await,
                    };
                    (index % 8, number, outcome)
                });
            }
            while let Some(done) = tasks.join_next().await {
                let (Ok((kind, number, outcome)) | Err((kind, number, outcome))) =
                    done.map_err(|_| (9, 0, Ok(())));
                match kind {
                    9 => {}
                    0 | 1 => assert!(outcome.is_err(), "{kind}"),
                    2 => {
                        let there = store.meta(&format!("m{number}\0")).await;
                        assert!(outcome.is_err() || there.unwrap().is_some());
                    }
                    3 => {}
                    _ => {
                        assert!(outcome.is_ok(), "{outcome:?}");
                        assert_eq!(store.acknowledged(1_000_000 + number).await.unwrap(), Some(id(number)));
                    }
                }
            }
            assert_eq!(stored_nonces(&store).await, []);
        }
    }
}

/// A schema that appears earlier on the server's search path is not the store's.
#[tokio::test]
async fn a_schema_that_appears_does_not_empty_the_store() {
    if Postgres::shared().is_none() {
        return;
    }
    let server = Postgres::start().unwrap();
    let socket = server.socket().display().to_string().replace('/', "%2F");
    // As in the examples: no search_path, so "$user", public.
    let url: PostgresUrl = format!("postgres://blindfold@{socket}/blindfold").parse().unwrap();
    let running = SqlStore::connect(&url).await.unwrap();
    running.put_acknowledged(1, id(1), 0).await.unwrap();
    server.run("CREATE SCHEMA blindfold").unwrap();
    let second = SqlStore::connect(&url).await;
    let Ok(second) = second else { return };
    let other = second.put_acknowledged(1, id(2), 0).await;
    assert!(
        other.is_err(),
        "a second process beside the first one signed another hash for number 1: {other:?}"
    );
}

/// Missing privileges, a standby, a reader's role: refused by name, at once, and without harm.
#[tokio::test]
async fn roles_without_rights() {
    let Some(server) = Postgres::shared() else { return };
    let (name, url) = schema(server);
    SqlStore::connect(&url).await.unwrap().close().await;
    server.run(&format!("CREATE ROLE looker LOGIN; GRANT USAGE ON SCHEMA {name} TO looker; GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO looker")).unwrap();
    server.run("CREATE ROLE nobody_at_all LOGIN").unwrap();
    let of = |user: &str, more: &str| -> PostgresUrl {
        let socket = server.socket().display().to_string().replace('/', "%2F");
        format!("postgres://{user}@{socket}/blindfold?options=-csearch_path%3D{name}{more}").parse().unwrap()
    };
    let reader = SqlStore::connect_reader(&of("looker", "")).await.unwrap();
    assert!(reader.put_meta("a", b"b").await.is_err());
    assert_eq!(reader.meta("a").await.unwrap(), None);
    for user in ["looker", "nobody_at_all"] {
        let refused = SqlStore::connect(&of(user, "")).await.expect_err("it may not write").to_string();
        assert!(refused.contains("permission denied") || refused.contains("no schema"), "{user}: {refused}");
    }
    SqlStore::connect(&url).await.unwrap().put_meta("a", b"b").await.unwrap();
}

/// A store that is dropped where it is used, on one thread, with a read and a write under way.
#[tokio::test]
async fn dropping_stores_under_way() {
    let Some(server) = Postgres::shared() else { return };
    for round in 0..6u64 {
        let (_, url) = schema(server);
        let store = SqlStore::connect(&url).await.unwrap();
        for number in 0..20 {
            let (one, two) = (store.clone(), store.clone());
            let write = async move { one.put_meta("a", &vec![1; 100_000]).await };
            let read = async move { two.meta("a").await };
            let _ = tokio::time::timeout(Duration::from_micros(200 * (number + round)), async {
                tokio::join!(write, read)
            })
            .await;
        }
        drop(store);
        // The lock is free before it is given up.
        SqlStore::connect(&url).await.unwrap().close().await;
    }
}
