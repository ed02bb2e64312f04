//! What only a server can do to a store: end, come back, lose an answer, give the store to another, hold something else.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
#[path = "common/relay.rs"]
mod relay;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
};

use alloy_primitives::{Address, B256};
use blindfold_protocol::{Deployment, ledger::LedgerDelta};
use blindfold_runtime::{blocking, spawn};
use blindfold_servers::Postgres;
use blindfold_store::{PostgresUrl, SCHEMA_VERSION, SqlStore, Store, StoreError, TABLES};
use common::*;
use relay::{Plan, Relay};

async fn opening(url: &PostgresUrl) -> String {
    SqlStore::connect(url).await.expect_err("refused").to_string()
}

#[tokio::test]
async fn both_engines_have_the_same_tables() {
    let Some(server) = Postgres::shared() else { return };
    let (name, url) = schema(server);
    SqlStore::connect(&url).await.unwrap().close().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    SqlStore::open(&path).unwrap().close().await;
    let sqlite = rusqlite::Connection::open(&path).unwrap();
    let sql = "
        SELECT m.name, c.name, CASE c.type WHEN 'INTEGER' THEN 'bigint' WHEN 'BLOB' THEN 'bytea' ELSE 'text' END
        FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'";
    let mut embedded: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut statement = sqlite.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, format!("{} {}", row.get::<_, String>(1)?, row.get::<_, String>(2)?)))
    });
    for (table, column) in rows.unwrap().map(Result::unwrap) {
        embedded.entry(table).or_default().push(column);
    }
    let sql = format!(
        "SELECT table_name, column_name || ' ' || data_type FROM information_schema.columns
         WHERE table_schema = '{name}' AND column_name <> 'rowid' ORDER BY ordinal_position"
    );
    let mut served: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in server.run(&sql).unwrap().lines() {
        let (table, column) = line.split_once('|').unwrap();
        served.entry(table.to_owned()).or_default().push(column.to_owned());
    }
    // What SQLite keeps beside its tables: the schema's version in the header, the writer's lock in a file.
    assert!(served.remove("schema_version").is_some() && served.remove("writer").is_some());
    assert!(embedded.len() > 20);
    assert_eq!(embedded, served);
    // Transfers carry every column of every table.
    let carried: BTreeMap<String, Vec<&str>> = TABLES
        .iter()
        .map(|table| {
            (table.name.to_owned(), table.columns.iter().map(|name| name.trim_matches('"')).collect())
        })
        .collect();
    let stored: BTreeMap<String, Vec<&str>> = served
        .iter()
        .map(|(table, columns)| {
            (table.clone(), columns.iter().filter_map(|column| column.split(' ').next()).collect())
        })
        .collect();
    assert_eq!(carried, stored);
}

#[tokio::test]
async fn what_was_acknowledged_outlives_a_server_that_crashes() {
    if Postgres::shared().is_none() {
        return;
    }
    let mut server = Postgres::start().unwrap();
    let (_, url) = schema(&server);
    let store = SqlStore::connect(&url).await.unwrap();
    let acknowledged: Arc<Mutex<Vec<u64>>> = Arc::default();
    let mut writers = tokio::task::JoinSet::new();
    for lane in 0..4u64 {
        let (store, acknowledged) = (store.clone(), Arc::clone(&acknowledged));
        writers.spawn(async move {
            for count in 0..60 {
                let number = lane * 1_000 + count;
                loop {
                    match store.put_envelope(envelope(number)).await {
                        Ok(()) => break acknowledged.lock().unwrap().push(number),
                        Err(error) => assert!(error.retry(), "{error}"),
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
            }
        });
    }
    for crash in 1..=2 {
        while acknowledged.lock().unwrap().len() < 50 * crash {
            tokio::task::yield_now().await;
        }
        server = blocking(move || {
            server.end().unwrap();
            server.resume_start().unwrap();
            server
        })
        .await
        .unwrap();
    }
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    assert_eq!(store.pending_envelopes().await.unwrap().len(), 240, "readers, too, found the server again");
    store.close().await;
    assert_eq!(SqlStore::connect(&url).await.unwrap().pending_envelopes().await.unwrap().len(), 240);
}

#[tokio::test]
async fn a_store_that_was_taken_over_writes_nothing_any_more() {
    let Some(server) = Postgres::shared() else { return };
    let (name, url) = schema(server);
    let first = SqlStore::connect(&url).await.unwrap();
    first.put_envelope(envelope(1)).await.unwrap();
    // As after a partition: the server has given the first one up, which does not know.
    let lock = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_locks
         WHERE locktype = 'advisory' AND objid = '{name}'::regnamespace::oid"
    );
    assert_eq!(server.run(&lock).unwrap(), "t");
    let second = SqlStore::connect(&url).await.unwrap();
    second.put_envelope(envelope(2)).await.unwrap();
    let refused = first.put_envelope(envelope(3)).await.unwrap_err();
    assert_eq!(refused, StoreError::Fenced, "whether or not the other one still has the lock");
    assert!(first.stopped().await.contains("taken") && first.is_fenced());
    assert_eq!(first.put_envelope(envelope(3)).await, Err(refused));
    second.close().await;
    let last = SqlStore::connect(&url).await.unwrap();
    assert_eq!(last.pending_envelopes().await.unwrap(), [envelope(1), envelope(2)]);
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_told_from_one_that_never_came() {
    let Some(server) = Postgres::shared() else { return };
    let (name, _) = schema(server);
    let relay = Relay::to(server);
    let store = SqlStore::connect(&relay.url(&name)).await.unwrap();
    for round in 0..5 {
        relay.plan(Plan::LoseAnswer);
        let record = sealed(round + 1, parent(&store).await, &[round], 0, LedgerDelta::default());
        store.put_sealed(record.clone()).await.unwrap();
        assert_eq!(store.batch(round + 1).await.unwrap().unwrap().hash, record.hash);
        relay.plan(Plan::Cut);
        let refused = store.put_envelope(envelope(100 + round)).await.unwrap_err();
        assert!(refused.retry() && refused.to_string().contains("nothing of it stands"), "{refused}");
        assert_eq!(store.pending_envelopes().await.unwrap().len() as u64, round);
        store.put_envelope(envelope(100 + round)).await.unwrap();
    }
}

/// Hash of the newest batch.
async fn parent(store: &SqlStore) -> B256 {
    store.heads().await.unwrap().sealed.map_or(B256::ZERO, |(_, hash)| hash)
}

#[tokio::test]
async fn a_lost_answer_and_another_that_took_the_store_end_it() {
    let Some(server) = Postgres::shared() else { return };
    let (name, direct) = schema(server);
    let relay = Relay::to(server);
    let first = SqlStore::connect(&relay.url(&name)).await.unwrap();
    relay.plan(Plan::LoseAll);
    let writing = {
        let first = first.clone();
        spawn(async move { first.put_sealed(sealed(1, B256::ZERO, &[1], 0, LedgerDelta::default())).await })
    };
    // The server notices that the first one is gone; what it had sent stands.
    let second = loop {
        match SqlStore::connect(&direct).await {
            Ok(store) if store.heads().await.unwrap().sealed.is_some() => break store,
            Ok(store) => store.close().await,
            Err(error) => assert!(matches!(error, StoreError::InUse(_)), "{error}"),
        }
    };
    let other = sealed(1, B256::ZERO, &[2], 1, LedgerDelta::default());
    assert!(matches!(second.put_sealed(other).await, Err(StoreError::Conflict { .. })), "no second header");
    second.close().await;
    relay.plan(Plan::Nothing);
    let ended = writing.await.unwrap().unwrap_err();
    assert_eq!(ended, StoreError::Fenced);
}

#[tokio::test]
async fn what_was_signed_stays_whoever_asks() {
    let Some(server) = Postgres::shared() else { return };
    let (name, url) = schema(server);
    let store = SqlStore::connect(&url).await.unwrap();
    store.put_acknowledged(7, id(7), 1).await.unwrap();
    for sql in ["UPDATE {}.acknowledgements SET header_hash = '\\x00'", "DELETE FROM {}.acknowledgements"] {
        let refused = server.run(&sql.replace("{}", &name)).unwrap_err().to_string();
        assert!(refused.contains("what was signed for number 7 stays"), "{refused}");
    }
    assert_eq!(store.acknowledged(7).await.unwrap(), Some(id(7)));
}

#[tokio::test]
async fn what_is_no_store_of_this_program_is_named() {
    let Some(server) = Postgres::shared() else { return };
    let fresh = || {
        let (name, url) = schema(server);
        (name.clone(), url, move |sql: &str| server.run(&sql.replace("{}", &name)).unwrap())
    };
    let (_, url, run) = fresh();
    run("CREATE TABLE {}.customers (name text)");
    assert!(opening(&url).await.contains("tables of another program"));

    let (_, url, run) = fresh();
    SqlStore::connect(&url).await.unwrap().close().await;
    run("UPDATE {}.schema_version SET version = version + 1");
    let newer = StoreError::NewerSchema { found: SCHEMA_VERSION + 1, known: SCHEMA_VERSION };
    assert_eq!(SqlStore::connect(&url).await.err(), Some(newer.clone()));
    assert_eq!(SqlStore::connect_reader(&url).await.err(), Some(newer));
    run("UPDATE {}.schema_version SET version = 3");
    assert!(matches!(SqlStore::connect(&url).await, Err(StoreError::OlderSchema { found: 3, .. })));
    run("DELETE FROM {}.schema_version");
    assert!(opening(&url).await.contains("the row of its schema's version is missing"));

    let (_, url, run) = fresh();
    SqlStore::connect(&url).await.unwrap().close().await;
    run("DELETE FROM {}.writer");
    assert!(opening(&url).await.contains("the row of its writer is missing"));

    let (name, url, run) = fresh();
    run("DROP SCHEMA {}");
    let missing = opening(&url).await;
    assert!(missing.contains(&format!("there is no schema {name}")), "{missing}");

    let (_, url, _) = fresh();
    let store = SqlStore::connect(&url).await.unwrap();
    let deployment = |inbox| Deployment { l1_chain_id: 1, inbox: Address::repeat_byte(inbox) };
    store.bind(&deployment(1), "sequencer").await.unwrap();
    store.close().await;
    let store = SqlStore::connect(&url).await.unwrap();
    assert!(matches!(store.bind(&deployment(2), "sequencer").await, Err(StoreError::Foreign { .. })));
}

#[tokio::test]
async fn a_server_that_may_lose_what_it_committed_is_refused() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.fresh().unwrap() + "%20-csynchronous_commit%3Doff";
    let refused = opening(&url.parse().unwrap()).await;
    assert!(refused.contains("synchronous_commit = off: what it has committed may be gone"), "{refused}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_the_password() {
    let nowhere: PostgresUrl = "postgres://me@127.0.0.1:1/chain".parse().unwrap();
    let nowhere = nowhere.with_password(b"secret");
    let refused = opening(&nowhere).await;
    assert!(refused.starts_with("cannot open postgres://me@127.0.0.1:1/chain: "), "{refused}");
    assert!(!refused.contains("secret"));
    let socket =
        format!("postgres://me@{}/chain", Path::new("/nowhere").display().to_string().replace('/', "%2F"));
    assert!(opening(&socket.parse().unwrap()).await.contains("%2Fnowhere"));
}
