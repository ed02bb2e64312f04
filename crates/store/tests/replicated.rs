//! A store on a replicated server: what was acknowledged outlives the server that took it.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use blindfold_runtime::{blocking, spawn};
use blindfold_servers::{Postgres, PostgresCluster};
use blindfold_store::{Attempt, Candidate, PostgresUrl, SqlStore, Standby, Store, StoreError};
use blindfold_telemetry::Metrics;
use common::*;

async fn lead(standby: &mut Standby) -> SqlStore {
    loop {
        match standby.attempt().await {
            Ok(Attempt::Taken(store)) => return store,
            Ok(Attempt::Led(_)) => {}
            // Nobody takes writes yet.
            Err(error) => {
                assert!(matches!(error, StoreError::Open { .. } | StoreError::Failed(_)), "{error}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// Twice: the second time the server that ended first is one of those that are left.
#[tokio::test]
async fn what_was_acknowledged_is_on_the_server_that_takes_over() {
    if Postgres::shared().is_none() {
        return;
    }
    let mut cluster = blocking(|| PostgresCluster::start().unwrap()).await.unwrap();
    let url: PostgresUrl = cluster.fresh().unwrap().parse().unwrap();
    let candidate =
        |name: &str| Candidate { url: format!("http://{name}"), lease: Duration::from_secs(3_600) };
    let acknowledged: Arc<Mutex<Vec<u64>>> = Arc::default();
    let mut writers = Vec::new();
    for process in 0..2u64 {
        let mut standby = Standby::new(url.clone(), candidate(&process.to_string()));
        let acknowledged = Arc::clone(&acknowledged);
        writers.push(spawn(async move {
            for round in 0.. {
                let store = lead(&mut standby).await;
                for count in 0..200 {
                    let number = process * 1_000_000 + round * 1_000 + count;
                    match store.put_envelope(envelope(number)).await {
                        Ok(()) => acknowledged.lock().unwrap().push(number),
                        Err(error) if error.retry() => {}
                        Err(_) => break,
                    }
                }
                store.close().await;
            }
        }));
    }
    for failure in 1..=2 {
        while acknowledged.lock().unwrap().len() < 300 * failure {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cluster = blocking(move || {
            cluster.fail_over().unwrap();
            cluster.rejoin().unwrap();
            cluster
        })
        .await
        .unwrap();
    }
    let before = acknowledged.lock().unwrap().len();
    while acknowledged.lock().unwrap().len() < before + 100 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for writer in writers {
        writer.abort();
        let _ = writer.await;
    }
    let mut last = Standby::new(url, candidate("last"));
    let store = lead(&mut last).await;
    let stored: std::collections::BTreeSet<_> =
        store.pending_envelopes().await.unwrap().into_iter().map(|envelope| envelope.id).collect();
    let acknowledged = std::mem::take(&mut *acknowledged.lock().unwrap());
    let lost: Vec<_> =
        acknowledged.iter().filter(|number| !stored.contains(&envelope(**number).id)).collect();
    assert!(lost.is_empty(), "{} of {} are lost", lost.len(), acknowledged.len());

    // Whoever has the records shows how many servers follow.
    let metrics = Metrics::new("sequencer", "0").unwrap();
    store.count_in(&metrics);
    let shown =
        |metrics: &Metrics| metrics.render().contains("blindfold_store_followers{role=\"sequencer\"} 2");
    tokio::time::timeout(Duration::from_secs(60), async {
        while !shown(&metrics) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("two servers follow");
}
