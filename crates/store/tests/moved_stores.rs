//! Moves, names of places and `verify`, where each was once wrong.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use alloy_primitives::{Address, B256};
use blindfold_protocol::{
    Deployment,
    ledger::{FeeLedger, LedgerDelta},
};
use blindfold_servers::Postgres;
use blindfold_store::{Copied, Purpose, SealedRecord, SqlStore, Store, StoreUrl, transfer, verify};
use common::*;

fn deployment() -> Deployment {
    Deployment { l1_chain_id: 1, inbox: Address::repeat_byte(1) }
}

fn quiet(_: Copied) {}

fn whole(number: u64, parent: B256, ids: &[u64], ledger: &mut FeeLedger, delta: LedgerDelta) -> SealedRecord {
    ledger.apply(&delta).unwrap();
    let mut record = sealed(number, parent, ids, 0, delta);
    record.sealed.header.fee_ledger_root = ledger.root();
    record.hash = record.sealed.header.hash();
    record
}

/// One database, two schemas: the second is not "the same move".
#[tokio::test]
async fn one_store_is_not_moved_to_two_schemas() {
    let Some(server) = Postgres::shared() else { return };
    let source = SqlStore::in_memory().unwrap();
    source.bind(&deployment(), "sequencer").await.unwrap();
    source.put_sealed(sealed(1, B256::ZERO, &[1], 0, LedgerDelta::default())).await.unwrap();
    let mut targets = Vec::new();
    for _ in 0..2 {
        let url: StoreUrl = server.fresh().unwrap().parse().unwrap();
        let target = url.open().await.unwrap();
        let moved = transfer(&source, &target, &Purpose::Move { to: url.to_string() }, &quiet).await;
        if moved.is_ok() {
            targets.push(target);
        }
    }
    let mut runnable = 0;
    for (index, target) in targets.iter().enumerate() {
        runnable += usize::from(target.bind(&deployment(), "sequencer").await.is_ok());
        let record = target.heads().await.unwrap().sealed.unwrap();
        let next = sealed(2, record.1, &[], index as u64, LedgerDelta::default());
        target.put_sealed(next).await.unwrap();
    }
    assert!(runnable < 2, "two copies of one store run, and each has signed another header for number 2");
}

#[tokio::test]
async fn the_printed_url_is_the_store() {
    let Some(server) = Postgres::shared() else { return };
    let given = server.fresh().unwrap();
    let url: StoreUrl = given.parse().unwrap();
    let mut faults = Vec::new();
    for url in [
        url,
        "postgres://u@one:1,two:2/d?options=-csearch_path%3Da".parse().unwrap(),
        "postgres://u%40x@h/d%2Fe".parse().unwrap(),
        "postgres://u@[::1]:5/d".parse().unwrap(),
    ] {
        match url.to_string().parse::<StoreUrl>() {
            Ok(again) if again == url => {}
            Ok(again) => faults.push(format!("{url} names {again:?}, another place")),
            Err(error) => faults.push(format!("{url} is no URL: {error}")),
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_written_is_not_called_damaged() {
    for place in Place::all() {
        let store = place.open().await;
        let ended = Arc::new(AtomicBool::new(false));
        let writing = {
            let (store, ended) = (store.clone(), Arc::clone(&ended));
            blindfold_runtime::spawn(async move {
                let (mut parent, mut ledger) = (B256::ZERO, FeeLedger::default());
                let mut number = 0;
                while !ended.load(Ordering::SeqCst) {
                    number += 1;
                    let before = (number > 1).then(|| account(u128::from(number) - 1));
                    let delta = credit(1, before, Some(account(u128::from(number))));
                    let record = whole(number, parent, &[number], &mut ledger, delta);
                    parent = record.hash;
                    store.put_sealed(record.clone()).await.unwrap();
                    store.put_certificate(&certificate(&record)).await.unwrap();
                    store.put_block(block(number, number, number)).await.unwrap();
                }
            })
        };
        while store.heads().await.unwrap().sealed.is_none_or(|(number, _)| number < 400) {
            tokio::task::yield_now().await;
        }
        let reader = place.url.open_reader().await.unwrap();
        let mut faulty = Vec::new();
        for _ in 0..20 {
            let found = verify(&reader, |_| ()).await.unwrap();
            faulty.extend(found.faults.into_iter().next());
        }
        ended.store(true, Ordering::SeqCst);
        writing.await.unwrap();
        let after = verify(&reader, |_| ()).await.unwrap();
        assert_eq!(after.faults, Vec::<String>::new(), "at rest it is sound");
        assert!(faulty.is_empty(), "{}: {} of 20 looks say damaged: {faulty:#?}", place.url, faulty.len());
    }
}

/// It signed a header which was never certified, and stored the one that was.
#[tokio::test]
async fn a_member_whose_vote_lost_has_a_sound_store() {
    let store = SqlStore::in_memory().unwrap();
    let lost = sealed(1, B256::ZERO, &[1], 1, LedgerDelta::default());
    store.put_acknowledged(1, lost.hash, 7).await.unwrap();
    let mut ledger = FeeLedger::default();
    let mut record = whole(1, B256::ZERO, &[1], &mut ledger, LedgerDelta::default());
    record.signed = false;
    store.put_sealed(record.clone()).await.unwrap();
    store.put_certificate(&certificate(&record)).await.unwrap();
    assert_eq!(verify(&store, |_| ()).await.unwrap().faults, Vec::<String>::new());
}

#[tokio::test]
async fn values_at_the_edge_arrive() {
    for from in 0..Place::all().len() {
        for to in 0..Place::all().len() {
            let (from, to) = (Place::all().swap_remove(from), Place::all().swap_remove(to));
            let source = from.open().await;
            source.bind(&deployment(), "sequencer").await.unwrap();
            for key in ["", "ä€😀", "a'b\"c\\d", "?1 $1 %s", "\u{7f}\t\n"] {
                source.put_meta(key, b"").await.unwrap();
            }
            let mut one = envelope(1);
            (one.bytes, one.arrived_ms, one.seal_by) = (vec![], i64::MAX as u64, Some(i64::MAX as u64));
            source.put_envelope(one).await.unwrap();
            source.put_acknowledged(i64::MAX as u64, id(1), 0).await.unwrap();
            source.put_acknowledged(0, id(1), i64::MAX as u64).await.unwrap();
            source.remove_envelopes(&[], "x", 0).await.unwrap();
            // 1000 of one millisecond, some of them again with other bytes.
            for number in 2..600 {
                source
                    .put_envelope(blindfold_store::PendingEnvelope {
                        arrived_ms: 5,
                        ..envelope(number * 7919 % 601)
                    })
                    .await
                    .unwrap();
            }
            for number in [9, 3, 300] {
                source
                    .put_envelope(blindfold_store::PendingEnvelope {
                        arrived_ms: 5,
                        bytes: vec![1; 7],
                        ..envelope(number)
                    })
                    .await
                    .unwrap();
            }
            let target = to.open().await;
            transfer(&source, &target, &Purpose::Move { to: "x".into() }, &quiet).await.unwrap();
            assert_eq!(source.pending_envelopes().await.unwrap(), target.pending_envelopes().await.unwrap());
            for key in ["", "ä€😀", "a'b\"c\\d", "?1 $1 %s", "\u{7f}\t\n"] {
                assert_eq!(target.meta(key).await.unwrap(), Some(vec![]), "{key}");
            }
            assert_eq!(target.acknowledged(i64::MAX as u64).await.unwrap(), Some(id(1)));
        }
    }
}

/// SQLite would take a NUL, PostgreSQL does not.
#[tokio::test]
async fn a_nul_in_a_text_is_taken_alike() {
    let mut answers = Vec::new();
    for place in Place::all() {
        let store = place.open().await;
        let put = store.put_meta("a\0b", b"x").await;
        answers.push(put.is_ok());
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
}

#[tokio::test]
async fn no_password_in_any_fault() {
    for url in [
        "postgres://u:s3cret@h:x/d",
        "postgres://h:s3cret/d",
        "postgres://u:s3cr%zzet@h/d",
        "postgres://u:s3cret@h/d?x",
        "postgres://u:s3cret",
        "postgres://u:@s3cret@h/d",
        "postgres://u@h/d?password=s3cret",
        "postgres://u@h/d?pasword=s3cret",
        "postgres://u@h/d?port=s3cret",
        "postgresql:host=h password=s3cret",
        "postgres://u:s3cret@h/",
        "postgres://u@h/d?s3cret",
        "postgres://u:s3/cret@h/d",
        "postgres://u:s3?cret@h/d",
        "postgres://u:s3#cret@h/d",
        "postgres://u:%ffs3cret@h/d",
    ] {
        match url.parse::<StoreUrl>() {
            Ok(parsed) => {
                assert!(!format!("{parsed} {parsed:?}").contains("s3"));
            }
            Err(error) => {
                assert!(!format!("{error} {error:?}").contains("s3"), "{url}: {error}");
            }
        }
    }
}
