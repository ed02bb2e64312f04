//! Moves, backups and restores between all engines, and what is refused on the way.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use alloy_primitives::{Address, B256};
use blindfold_protocol::{
    Deployment,
    ledger::{FeeLedger, Held, LedgerDelta},
};
use blindfold_runtime::spawn;
use blindfold_servers::Postgres;
use blindfold_store::{
    BlockRecord, ConfidentialAccountRecord, ConfidentialBatchRecord, ConfidentialHead, ConfidentialStore,
    Copied, PendingEnvelope, PostedRecord, Purpose, SealedRecord, SqlStore, Store, StoreError, TABLES,
    transfer, verify,
};
use common::*;

fn deployment() -> Deployment {
    Deployment { l1_chain_id: 1, inbox: Address::repeat_byte(1) }
}

/// A batch whose header names the ledger's root as it is after it.
fn whole(number: u64, parent: B256, ids: &[u64], ledger: &mut FeeLedger, delta: LedgerDelta) -> SealedRecord {
    ledger.apply(&delta).unwrap();
    let mut record = sealed(number, parent, ids, 0, delta);
    record.sealed.header.fee_ledger_root = ledger.root();
    record.hash = record.sealed.header.hash();
    record
}

/// A store with something in every table that transfers carry: `batches` batches.
async fn filled(store: &SqlStore, batches: u64) {
    filled_with(store, batches, &[], |number| Some(block(number, number, number))).await;
}

/// The same with some batches that hold nothing, and the blocks that `after` gives after each batch but the last.
async fn filled_with(
    store: &SqlStore,
    batches: u64,
    empty: &[u64],
    after: impl Fn(u64) -> Option<BlockRecord>,
) {
    store.bind(&deployment(), "sequencer").await.unwrap();
    store.keep_ledgers_from(0).await.unwrap();
    let (mut parent, mut ledger) = (B256::ZERO, FeeLedger::default());
    for number in 1..=batches {
        let before = (number > 1).then(|| account(u128::from(number) - 1));
        let mut delta = credit(1, before, Some(account(u128::from(number))));
        delta.nonces.push(nonce_change(1, number, None, Some(number + 3)));
        let held = Held { item: 0, payer: payer(1), amount: 5 };
        delta.held.push(held_change(number, vec![], vec![held]));
        store.put_envelope(envelope(number)).await.unwrap();
        let ids: &[u64] = if empty.contains(&number) { &[] } else { &[number] };
        let record = whole(number, parent, ids, &mut ledger, delta);
        parent = record.hash;
        store.put_sealed(record.clone()).await.unwrap();
        if number < batches {
            store.put_certificate(&certificate(&record)).await.unwrap();
            store.put_release(&release(&record)).await.unwrap();
            store.put_hints(&hints(&record)).await.unwrap();
            if let Some(block) = after(number) {
                store.put_block(block).await.unwrap();
            }
        }
    }
    store.put_posted(PostedRecord { up_to_number: 1, l1_transaction: id(4) }).await.unwrap();
    store.put_meta("more", &[0, 1, 255]).await.unwrap();
    // Two that arrived in the same millisecond, the later one with the smaller id.
    let mut waiting: Vec<PendingEnvelope> = [9_001, 9_002]
        .map(|number| PendingEnvelope { arrived_ms: 7, seal_by: Some(9), ..envelope(number) })
        .into();
    waiting.sort_by_key(|envelope| std::cmp::Reverse(envelope.id));
    for envelope in waiting {
        store.put_envelope(envelope).await.unwrap();
    }
    store.put_envelope(envelope(9_003)).await.unwrap();
    store.remove_envelopes(&[id(9_003)], "expired", 3).await.unwrap();
    let head = ConfidentialHead {
        number: 0,
        hash: id(1),
        sequence: 0,
        version: 0,
        accounts: 1,
        public_accounts: 0,
        accounts_root: id(2),
        public_root: id(3),
        confidential: u64::MAX,
        state_root: id(4),
    };
    let accounts = vec![ConfidentialAccountRecord { index: 0, owner: payer(3), state: vec![1; 900] }];
    let genesis =
        ConfidentialBatchRecord { head, transactions: vec![], accounts, nodes: vec![], balances: vec![] };
    store.put_confidential_batch(genesis.into()).await.unwrap();
}

/// What two stores that hold the same answer alike.
async fn all_of_it(store: &SqlStore) -> String {
    let mut batches = Vec::new();
    while let Some(page) =
        Some(store.batches(batches.len() as u64 + 1, 100).await.unwrap()).filter(|it| !it.is_empty())
    {
        batches.extend(page);
    }
    let ledger = store.ledger().await.unwrap();
    let changed = store.entries_changed_after(1, u64::MAX).await.unwrap();
    let rest = (
        store.heads().await.unwrap(),
        store.pending_envelopes().await.unwrap(),
        store.envelope_outcome(id(9_003)).await.unwrap(),
        store.posted().await.unwrap(),
        store.meta("more").await.unwrap(),
        store.blocks(0, 10).await.unwrap(),
        store.confidential_head().await.unwrap(),
        store.confidential_accounts(0, 10).await.unwrap(),
        store.acknowledged(2).await.unwrap(),
        store.ledger_head().await.unwrap(),
    );
    format!("{batches:?} {ledger:?} {changed:?} {rest:?}")
}

fn quiet(_: Copied) {}

fn moved_to(place: &Place) -> Purpose {
    Purpose::Move { to: place.url.to_string() }
}

#[tokio::test]
async fn everything_arrives_between_all_engines() {
    let engines = Place::all().len();
    for from in 0..engines {
        for to in 0..engines {
            let (from, to) = (Place::all().swap_remove(from), Place::all().swap_remove(to));
            let source = from.open().await;
            filled(&source, 300).await;
            let before = all_of_it(&source).await;
            let target = to.open().await;
            let copied = transfer(&source, &target, &moved_to(&to), &quiet).await.unwrap();
            assert_eq!(
                copied.iter().map(|it| it.table).collect::<Vec<_>>(),
                TABLES.iter().map(|it| it.name).collect::<Vec<_>>()
            );
            assert_eq!(copied.iter().find(|it| it.table == "items").unwrap().rows, 300);
            assert_eq!(all_of_it(&target).await, before);
            // It goes on there, and there alone.
            target.bind(&deployment(), "sequencer").await.unwrap();
            let refused = source.bind(&deployment(), "sequencer").await.unwrap_err();
            assert!(refused.to_string().contains(&format!("moved to {}", to.url)), "{refused}");
            let verified = verify(&target, |_| ()).await.unwrap();
            assert_eq!(verified.faults, Vec::<String>::new());
            assert_eq!(
                (verified.batches, verified.items, verified.blocks),
                (Some((1, 300)), 300, Some((1, 299)))
            );
            target.revert_sealed(300).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_backup_is_of_one_moment_while_the_store_is_written_and_becomes_a_store_again() {
    for place in Place::all() {
        let folder = tempfile::tempdir().unwrap();
        let store = place.open().await;
        filled(&store, 50).await;
        let ended = Arc::new(AtomicBool::new(false));
        let writing = {
            let (store, ended) = (store.clone(), Arc::clone(&ended));
            spawn(async move {
                let mut number = 20_000;
                while !ended.load(Ordering::SeqCst) {
                    number += 1;
                    store.put_envelope(envelope(number)).await.unwrap();
                    store.put_acknowledged(number, id(number), 1).await.unwrap();
                }
                number
            })
        };
        let backup = SqlStore::open(folder.path().join("backup.db")).unwrap();
        let reader = place.url.open_reader().await.unwrap();
        transfer(&reader, &backup, &Purpose::Backup, &quiet).await.unwrap();
        ended.store(true, Ordering::SeqCst);
        let newest = writing.await.unwrap();
        let refused = backup.bind(&deployment(), "sequencer").await.unwrap_err();
        assert!(refused.to_string().contains("this is a backup"), "{refused}");
        assert_eq!(verify(&backup, |_| ()).await.unwrap().faults, Vec::<String>::new());

        let restored = SqlStore::in_memory().unwrap();
        let purpose = Purpose::Restore { meta: vec![("more".to_owned(), vec![7])] };
        transfer(&backup, &restored, &purpose, &quiet).await.unwrap();
        restored.bind(&deployment(), "sequencer").await.unwrap();
        assert_eq!(restored.meta("more").await.unwrap(), Some(vec![7]));
        let signed = restored.heads().await.unwrap().acknowledged.unwrap();
        let waiting = restored.pending_envelopes().await.unwrap().len() as u64;
        assert!(signed <= newest && (signed == 50 || waiting >= signed - 20_000), "{signed} {waiting}");
    }
}

#[tokio::test]
async fn what_an_interrupted_transfer_left_is_run_on_by_nobody() {
    for place in Place::all() {
        let source = SqlStore::in_memory().unwrap();
        filled(&source, 20).await;
        let target = place.open().await;
        let reached = tokio::sync::Notify::new();
        let heard = |copied: Copied| {
            if copied.table == "items" {
                reached.notify_one();
            }
        };
        tokio::select! {
            biased;
            () = reached.notified() => {}
            _ = transfer(&source, &target, &Purpose::Backup, &heard) => panic!("it was to be interrupted"),
        }
        target.close().await;
        let target = place.open().await;
        let refused = target.bind(&deployment(), "sequencer").await.unwrap_err();
        assert!(refused.to_string().contains("a copy to this store did not end"), "{refused}");
        let refused =
            transfer(&target, &SqlStore::in_memory().unwrap(), &Purpose::Backup, &quiet).await.unwrap_err();
        assert!(refused.to_string().contains("the source is not whole"), "{refused}");
        source.bind(&deployment(), "sequencer").await.unwrap();
    }
}

#[tokio::test]
async fn a_move_that_ended_at_its_last_step_is_finished_where_it_went_and_nowhere_else() {
    for place in Place::all() {
        let source = SqlStore::in_memory().unwrap();
        filled(&source, 5).await;
        let target = place.open().await;
        transfer(&source, &target, &moved_to(&place), &quiet).await.unwrap();
        let before = all_of_it(&target).await;
        // As a kill leaves it after the source has said that it went.
        let moved = String::from_utf8(source.meta("store.moved_to").await.unwrap().unwrap()).unwrap();
        let (id, _) = moved.split_once(' ').unwrap();
        target.put_meta("store.incomplete", id.as_bytes()).await.unwrap();
        for store in [&source, &target] {
            assert!(matches!(store.bind(&deployment(), "sequencer").await, Err(StoreError::Retired(_))));
        }
        let elsewhere = SqlStore::in_memory().unwrap();
        let refused = transfer(&source, &elsewhere, &moved_to(&place), &quiet).await.unwrap_err();
        assert!(refused.to_string().contains("before, which goes on from it"), "{refused}");
        transfer(&source, &target, &moved_to(&place), &quiet).await.unwrap();
        target.bind(&deployment(), "sequencer").await.unwrap();
        assert_eq!(all_of_it(&target).await, before);
        assert!(matches!(source.bind(&deployment(), "sequencer").await, Err(StoreError::Retired(_))));
    }
}

#[tokio::test]
async fn what_is_refused() {
    for place in Place::all() {
        let source = SqlStore::in_memory().unwrap();
        filled(&source, 5).await;
        let target = place.open().await;
        target.put_meta("x", b"y").await.unwrap();
        let refused = transfer(&source, &target, &moved_to(&place), &quiet).await.unwrap_err();
        assert!(refused.to_string().contains("the target is not empty"), "{refused}");
        let restore = Purpose::Restore { meta: vec![] };
        let refused = transfer(&source, &target, &restore, &quiet).await.unwrap_err();
        assert!(refused.to_string().contains("no backup"), "{refused}");
        source.bind(&deployment(), "sequencer").await.unwrap();

        let backup = SqlStore::in_memory().unwrap();
        transfer(&source, &backup, &Purpose::Backup, &quiet).await.unwrap();
        for purpose in [Purpose::Backup, moved_to(&place)] {
            let refused =
                transfer(&backup, &SqlStore::in_memory().unwrap(), &purpose, &quiet).await.unwrap_err();
            assert!(refused.to_string().contains("the source is a backup"), "{refused}");
        }

        let elsewhere = Purpose::Move { to: "elsewhere".to_owned() };
        transfer(&source, &SqlStore::in_memory().unwrap(), &elsewhere, &quiet).await.unwrap();
        for purpose in [Purpose::Backup, moved_to(&place)] {
            let refused =
                transfer(&source, &SqlStore::in_memory().unwrap(), &purpose, &quiet).await.unwrap_err();
            assert!(refused.to_string().contains("moved to elsewhere before"), "{refused}");
        }
        let refused =
            transfer(&source, &SqlStore::in_memory().unwrap(), &elsewhere, &quiet).await.unwrap_err();
        assert!(refused.to_string().contains("moved to elsewhere before"), "{refused}");
    }
}

/// A second in which nothing was accepted has no block, so its batches are in none.
#[tokio::test]
async fn batches_without_a_block_are_no_damage() {
    let store = SqlStore::in_memory().unwrap();
    filled_with(&store, 7, &[3, 5], |number| match number {
        2 => Some(block(1, 1, 2)),
        4 => Some(block(2, 4, 4)),
        6 => Some(block(3, 6, 6)),
        _ => None,
    })
    .await;
    assert_eq!(verify(&store, |_| ()).await.unwrap().faults, Vec::<String>::new());
    let (backup, restored) = (SqlStore::in_memory().unwrap(), SqlStore::in_memory().unwrap());
    transfer(&store, &backup, &Purpose::Backup, &quiet).await.unwrap();
    transfer(&backup, &restored, &Purpose::Restore { meta: vec![] }, &quiet).await.unwrap();
    // One that two blocks claim is.
    for (first, last) in [(2, 4), (1, 4)] {
        let store = SqlStore::in_memory().unwrap();
        filled_with(&store, 6, &[], |number| match number {
            2 => Some(block(1, 1, 2)),
            5 => Some(block(2, first, last)),
            _ => None,
        })
        .await;
        let faults = verify(&store, |_| ()).await.unwrap().faults;
        assert!(faults.contains(&"block 2 does not follow block 1".to_owned()), "{first}: {faults:?}");
    }
    // And so is one with something in it that no block has.
    let store = SqlStore::in_memory().unwrap();
    filled_with(&store, 6, &[1, 4], |number| match number {
        2 => Some(block(1, 2, 2)),
        5 => Some(block(2, 5, 5)),
        _ => None,
    })
    .await;
    let faults = verify(&store, |_| ()).await.unwrap().faults;
    assert_eq!(faults, ["block 2 leaves out 1 items that were accepted before it"]);
}

#[tokio::test]
async fn damage_is_told() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.fresh().unwrap();
    let schema = url.rsplit_once("%3D").unwrap().1;
    let store = SqlStore::connect(&url.parse().unwrap()).await.unwrap();
    filled(&store, 6).await;
    let faults = async || verify(&store, |_| ()).await.unwrap().faults;
    assert_eq!(faults().await, Vec::<String>::new());
    let run = |sql: &str| server.run(&sql.replace("{}", schema)).unwrap();
    run("UPDATE {}.accounts SET balance = '\\x00000000000000000000000000000009'");
    assert!(faults().await.iter().any(|fault| fault.contains("the fee ledger has the root")));
    run("DELETE FROM {}.blocks WHERE number = 2");
    assert!(faults().await.iter().any(|fault| fault == "block 3 does not follow block 1"));
    run(
        "UPDATE {}.certificates SET certificate = (SELECT certificate FROM {}.certificates WHERE number = 1) WHERE number = 2",
    );
    assert!(faults().await.iter().any(|fault| fault == "the certificate of batch 2 are of another header"));
    run("UPDATE {}.batches SET hash = '\\x11'");
    assert!(faults().await.iter().any(|fault| fault.contains("stored batch does not decode")));
    assert!(matches!(store.batch(1).await, Err(StoreError::Corrupt { .. })));
}
