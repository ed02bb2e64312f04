//! Several processes on one store: who writes, who takes it, and what becomes of whoever had it.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
#[path = "common/relay.rs"]
mod relay;

use std::time::Duration;

use alloy_primitives::B256;
use blindfold_protocol::ledger::LedgerDelta;
use blindfold_runtime::{now, spawn};
use blindfold_servers::Postgres;
use blindfold_store::{
    Attempt, Candidate, Leader, PostgresUrl, SCHEMA_VERSION, SqlStore, Standby, Store, StoreError,
};
use common::*;
use relay::{Plan, Relay};

const HOUR: Duration = Duration::from_secs(3_600);

fn standby(url: &PostgresUrl, name: &str, lease: Duration) -> Standby {
    Standby::new(url.clone(), Candidate { url: format!("http://{name}"), lease })
}

/// Attempts until the store is taken.
async fn lead(standby: &mut Standby) -> SqlStore {
    loop {
        if let Attempt::Taken(store) = standby.attempt().await.unwrap() {
            return store;
        }
    }
}

async fn led(standby: &mut Standby) -> Leader {
    match standby.attempt().await.unwrap() {
        Attempt::Led(leader) => leader,
        Attempt::Taken(store) => panic!("taken: {store:?}"),
    }
}

#[tokio::test]
async fn the_next_one_takes_the_store_when_it_is_given_back() {
    let Some(server) = Postgres::shared() else { return };
    let (_, url) = schema(server);
    let (mut first, mut second) = (standby(&url, "first", HOUR), standby(&url, "second", HOUR));
    let store = lead(&mut first).await;
    assert_eq!(store.term(), Some(1));
    let leader = led(&mut second).await;
    assert_eq!((leader.term, leader.url.as_deref()), (1, Some("http://first")));
    assert_eq!(leader.lease, Some(HOUR));
    store.put_envelope(envelope(1)).await.unwrap();
    store.close().await;
    let store = lead(&mut second).await;
    assert_eq!(store.term(), Some(2));
    assert_eq!(store.pending_envelopes().await.unwrap(), [envelope(1)]);
    // Whoever knows nothing of leases, too.
    assert!(matches!(SqlStore::connect(&url).await, Err(StoreError::InUse(_))));
    assert_eq!(led(&mut first).await.url.as_deref(), Some("http://second"));
}

#[tokio::test]
async fn a_lease_that_ran_out_is_taken_from_whoever_is_silent() {
    let Some(server) = Postgres::shared() else { return };
    let (_, url) = schema(server);
    let (mut first, mut second) =
        (standby(&url, "first", Duration::from_millis(1)), standby(&url, "second", HOUR));
    let former = lead(&mut first).await;
    // It has the connection still, and does nothing.
    let store = lead(&mut second).await;
    assert_eq!(store.term(), Some(2));
    let late = former.put_sealed(sealed(1, B256::ZERO, &[1], 0, LedgerDelta::default())).await;
    assert_eq!(late, Err(StoreError::Fenced));
    assert_eq!((former.renew().await, former.is_fenced()), (Err(StoreError::Fenced), true));
    assert!(former.stopped().await.contains("taken"));
    store.put_sealed(sealed(1, B256::ZERO, &[2], 0, LedgerDelta::default())).await.unwrap();
    assert_eq!(former.acknowledged(1).await.unwrap(), store.acknowledged(1).await.unwrap(), "it may read");
}

#[tokio::test]
async fn a_lease_that_is_renewed_stays() {
    let Some(server) = Postgres::shared() else { return };
    let (_, url) = schema(server);
    let lease = Duration::from_secs(2);
    let (mut first, mut second) = (standby(&url, "first", lease), standby(&url, "second", lease));
    let store = lead(&mut first).await;
    let begun = now();
    while begun.elapsed() < 2 * lease {
        store.renew().await.unwrap();
        assert_eq!(led(&mut second).await.term, 1);
    }
}

/// It was stopped in the middle of a transaction, which holds the row that says who writes.
#[tokio::test]
async fn a_transaction_that_was_left_open_keeps_the_store_from_nobody() {
    let Some(server) = Postgres::shared() else { return };
    let (name, url) = schema(server);
    let relay = Relay::to(server);
    let mut first = standby(&relay.url(&name), "first", Duration::from_millis(50));
    let mut second = standby(&url, "second", HOUR);
    let former = lead(&mut first).await;
    relay.plan(Plan::Hold);
    let record = sealed(1, B256::ZERO, &[1], 0, LedgerDelta::default());
    let writing = {
        let (former, record) = (former.clone(), record.clone());
        spawn(async move { former.put_sealed(record).await })
    };
    let store = lead(&mut second).await;
    assert_eq!(store.heads().await.unwrap().sealed, None, "it was not committed");
    let other = sealed(1, B256::ZERO, &[2], 0, LedgerDelta::default());
    store.put_sealed(other.clone()).await.unwrap();
    assert_eq!(writing.await.unwrap(), Err(StoreError::Fenced));
    assert_eq!(store.acknowledged(1).await.unwrap(), Some(other.hash));
}

/// The answer to its commit is lost, and somebody else has the store when it comes back: what it wrote stands, and it is not
/// told that nothing does.
#[tokio::test]
async fn what_stands_of_a_former_leader_is_found_by_the_next() {
    let Some(server) = Postgres::shared() else { return };
    let (name, url) = schema(server);
    let relay = Relay::to(server);
    let mut first = standby(&relay.url(&name), "first", HOUR);
    let former = lead(&mut first).await;
    relay.plan(Plan::LoseAll);
    let record = sealed(1, B256::ZERO, &[1], 0, LedgerDelta::default());
    let writing = {
        let (former, record) = (former.clone(), record.clone());
        spawn(async move { former.put_sealed(record).await })
    };
    let mut second = standby(&url, "second", HOUR);
    let store = lead(&mut second).await;
    let other = sealed(1, B256::ZERO, &[2], 1, LedgerDelta::default());
    match store.heads().await.unwrap().sealed {
        Some(stands) => {
            assert_eq!(stands, (1, record.hash));
            assert!(matches!(store.put_sealed(other).await, Err(StoreError::Conflict { .. })));
        }
        None => store.put_sealed(other).await.unwrap(),
    }
    relay.plan(Plan::Nothing);
    assert_eq!(writing.await.unwrap(), Err(StoreError::Fenced));
}

/// Any number of processes that each believe to lead: of each number one hash stands, and whoever was told that its own does
/// was right.
#[tokio::test]
async fn many_that_take_the_store_from_each_other_seal_one_chain() {
    let Some(server) = Postgres::shared() else { return };
    let (_, url) = schema(server);
    let mut processes = tokio::task::JoinSet::new();
    for process in 0..3u64 {
        let mut standby = standby(&url, &process.to_string(), Duration::from_millis(1 + 2 * process));
        processes.spawn(async move {
            let mut told = Vec::new();
            for _ in 0..4 {
                let store = match standby.attempt().await {
                    Ok(Attempt::Taken(store)) => store,
                    Ok(Attempt::Led(_)) => continue,
                    // Its session was ended while it took the store.
                    Err(error) => {
                        assert!(matches!(error, StoreError::Open { .. }), "{error}");
                        continue;
                    }
                };
                for _ in 0..20 {
                    let (number, parent) = match store.heads().await {
                        Ok(heads) => heads.sealed.unwrap_or_default(),
                        Err(error) if error.retry() => continue,
                        Err(error) => panic!("{error}"),
                    };
                    let record =
                        sealed(number + 1, parent, &[100 * process + number], 0, LedgerDelta::default());
                    match store.put_sealed(record.clone()).await {
                        Ok(()) => told.push((number + 1, record.hash)),
                        Err(StoreError::Fenced) => break,
                        Err(
                            StoreError::Conflict { .. } | StoreError::NotNext { .. } | StoreError::Failed(_),
                        ) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            told
        });
    }
    let mut told = Vec::new();
    while let Some(process) = processes.join_next().await {
        told.extend(process.unwrap());
    }
    let mut last = standby(&url, "last", HOUR);
    let store = lead(&mut last).await;
    assert!(!told.is_empty());
    for (number, hash) in &told {
        assert_eq!(store.header_hash(*number).await.unwrap(), Some(*hash));
        assert_eq!(store.acknowledged(*number).await.unwrap(), Some(*hash));
    }
    told.sort_unstable();
    assert!(told.windows(2).all(|pair| pair[0].0 != pair[1].0), "no number was told twice: {told:?}");
}

#[tokio::test]
async fn a_store_from_before_leases_is_waited_for_and_brought_up_to_date() {
    let Some(server) = Postgres::shared() else { return };
    let (name, url) = schema(server);
    let old = SqlStore::connect(&url).await.unwrap();
    let columns = format!(
        "ALTER TABLE {name}.writer DROP COLUMN term, DROP COLUMN leader, DROP COLUMN lease_ms;
         DROP INDEX {name}.confidential_accounts_by_version, {name}.confidential_nodes_by_version,
             {name}.public_balances_by_version;
         UPDATE {name}.schema_version SET version = 8"
    );
    server.run(&columns).unwrap();
    let mut next = standby(&url, "next", Duration::from_millis(1));
    for _ in 0..3 {
        assert_eq!(
            led(&mut next).await,
            Leader::default(),
            "it is not taken from a program that knows no leases"
        );
    }
    old.close().await;
    assert_eq!(lead(&mut next).await.term(), Some(1));
    let version = server.run(&format!("SELECT version FROM {name}.schema_version")).unwrap();
    assert_eq!(version, SCHEMA_VERSION.to_string());
    server.run(&format!("UPDATE {name}.schema_version SET version = version + 1")).unwrap();
    let refused = standby(&url, "late", HOUR).attempt().await.unwrap_err();
    assert!(matches!(refused, StoreError::NewerSchema { .. }), "{refused}");
}
