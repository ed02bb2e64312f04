//! Pruning on every engine: what goes and what stays, what is answered then, and that it can be ended anywhere.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use alloy_primitives::{Address, B256};
use blindfold_protocol::{
    Deployment,
    ledger::{FeeLedger, LedgerDelta},
};
use blindfold_store::{
    Copied, FORGET_STEP_ROWS, Horizon, KeptFor, PRUNE_STEP_BATCHES, Pruned, Purpose, SealedRecord, SqlStore,
    Store, StoreError, StoreUrl, transfer, verify,
};
use common::*;

const ROLE: &str = "full_node";
/// Batches of the chain; the last two are not executed.
const NEWEST: u64 = 200;
const EXECUTED: u64 = NEWEST - 2;
/// From here on ledgers are kept.
const FLOOR: u64 = 190;

fn deployment() -> Deployment {
    Deployment { l1_chain_id: 1, inbox: Address::repeat_byte(1) }
}

fn quiet(_: Copied) {}

/// A chain with an envelope in each batch, everything that a full node has of it, and a block for each two batches.
async fn chain(store: &SqlStore) -> Vec<SealedRecord> {
    store.bind(&deployment(), ROLE).await.unwrap();
    store.keep_ledgers_from(0).await.unwrap();
    let mut ledger = FeeLedger::default();
    let mut records: Vec<SealedRecord> = Vec::new();
    for number in 1..=NEWEST {
        let parent = records.last().map_or(B256::ZERO, |record| record.hash);
        let balance = |number: u64| (number > 0).then(|| account(u128::from(number)));
        let delta = credit(1, balance(number - 1), balance(number));
        ledger.apply(&delta).unwrap();
        let mut record = sealed(number, parent, &[number], 0, delta);
        record.signed = false;
        record.sealed.header.fee_ledger_root = ledger.root();
        record.hash = record.sealed.header.hash();
        store.put_sealed(record.clone()).await.unwrap();
        store.put_certificate(&certificate(&record)).await.unwrap();
        store.put_release(&release(&record)).await.unwrap();
        store.put_hints(&hints(&record)).await.unwrap();
        records.push(record);
    }
    for number in 1..=EXECUTED / 2 {
        store.put_block(block(number, 2 * number - 1, 2 * number)).await.unwrap();
    }
    store.keep_ledgers_from(FLOOR).await.unwrap();
    records
}

/// Prunes to the end; gives the steps that it took.
async fn prune_all(store: &SqlStore, final_through: u64, keep: u64) -> Vec<Pruned> {
    let mut steps = Vec::new();
    loop {
        let step = store.prune(final_through, keep).await.unwrap();
        steps.push(step);
        if !step.more {
            return steps;
        }
    }
}

async fn no_faults(store: &SqlStore) {
    let found = verify(store, |_| ()).await.unwrap();
    assert_eq!((found.faults.as_slice(), found.more_faults), (&[] as &[String], 0));
}

#[tokio::test]
async fn each_bound_keeps_what_it_is_for() {
    on_all(async |store: SqlStore| {
        chain(&store).await;
        let of = |through, kept_for| Horizon { pruned: 0, through, kept_for };
        for (final_through, keep, expected) in [
            (0, 0, of(0, KeptFor::Finality)),
            (50, 10, of(50, KeptFor::Finality)),
            // Blocks are taken back whole.
            (49, 0, of(48, KeptFor::Finality)),
            (u64::MAX, 100, of(100, KeptFor::Setting)),
            (u64::MAX, 0, of(FLOOR - 1, KeptFor::Ledgers)),
            (u64::MAX, u64::MAX, of(0, KeptFor::Setting)),
        ] {
            assert_eq!(store.horizon(final_through, keep).await.unwrap(), expected);
        }
        assert_eq!(store.prunable(of(100, KeptFor::Setting)).await.unwrap().0, 100);
        // What is not executed stays, whatever L1 says.
        store.revert_blocks(20).await.unwrap();
        assert_eq!(store.horizon(u64::MAX, 0).await.unwrap(), of(38, KeptFor::Execution));
        // Batches without a block before one that is not final are executed anew with it.
        store.put_block(block(20, 43, 44)).await.unwrap();
        for (final_through, through) in [(42, 38), (43, 38), (44, 44)] {
            assert_eq!(store.horizon(final_through, 0).await.unwrap().through, through, "{final_through}");
        }
        store.revert_blocks(1).await.unwrap();
        assert_eq!(store.horizon(u64::MAX, 0).await.unwrap(), of(0, KeptFor::Execution));
        assert_eq!(store.prune(u64::MAX, 0).await.unwrap(), Pruned::default());
    })
    .await;
}

#[tokio::test]
async fn hash_and_blocks_stay_and_the_rest_is_named_as_gone() {
    on_all(async |store: SqlStore| {
        let records = chain(&store).await;
        let before = (store.heads().await.unwrap(), store.ledger_head().await.unwrap());
        let steps = prune_all(&store, 150, 20).await;
        assert_eq!(steps.iter().map(|step| step.batches).sum::<u64>(), 150);
        assert!(steps.iter().all(|step| step.batches <= PRUNE_STEP_BATCHES) && steps.len() == 3);
        assert_eq!(prune_all(&store, 150, 20).await, [Pruned { through: 150, ..Pruned::default() }]);

        let gone = |number| StoreError::Pruned { number, kept_from: 151 };
        for number in [1, 64, 65, 150] {
            assert_eq!(store.batch(number).await, Err(gone(number)));
            assert_eq!(store.batches(number, 9).await, Err(gone(number)));
            assert_eq!(store.header_hash(number).await, Ok(Some(records[number as usize - 1].hash)));
            assert_eq!(store.envelope_location(id(number)).await, Ok(None));
            assert!(store.block_of_batch(number).await.unwrap().is_some());
        }
        assert_eq!(store.batch(0).await, Ok(None), "genesis has no batch");
        assert_eq!(store.block(1).await, Ok(Some(block(1, 1, 2))));
        let kept = store.batch(151).await.unwrap().unwrap();
        assert_eq!((kept.sealed, kept.hints), (records[150].sealed.clone(), Some(hints(&records[150]))));
        assert_eq!(store.envelope_location(id(151)).await.unwrap().unwrap().number, 151);
        assert_eq!((store.heads().await.unwrap(), store.ledger_head().await.unwrap()), before);
        // The same again is no error, and another header of a pruned number still is none of this chain.
        let first = &records[0];
        assert!(store.put_sealed(first.clone()).await.is_ok());
        let second = sealed(1, B256::ZERO, &[], 9, LedgerDelta::default());
        assert!(matches!(store.put_sealed(second).await, Err(StoreError::Conflict { .. })));
        // Nothing comes back either.
        assert_eq!(store.put_certificate(&certificate(first)).await, Err(gone(1)));
        assert_eq!(store.put_release(&release(first)).await, Err(gone(1)));
        assert_eq!(store.put_hints(&hints(first)).await, Err(gone(1)));
        no_faults(&store).await;
    })
    .await;
}

#[tokio::test]
async fn the_chain_goes_on_and_back_on_a_pruned_store() {
    on_all(async |store: SqlStore| {
        let records = chain(&store).await;
        prune_all(&store, u64::MAX, 0).await;
        no_faults(&store).await;
        // As far back as before: L1 holds other headers above this one.
        store.rewind(FLOOR, None).await.unwrap();
        let head = store.ledger_head().await.unwrap().unwrap();
        let at_floor = &records[FLOOR as usize - 1];
        assert_eq!((head.number, head.hash, head.head), (FLOOR, at_floor.hash, at_floor.head.clone()));
        assert_eq!(store.account(payer(1)).await.unwrap(), Some(account(u128::from(FLOOR))));
        no_faults(&store).await;
        let refused = store.rewind(FLOOR - 1, None).await;
        assert_eq!(refused, Err(StoreError::Forgotten { number: FLOOR - 1, kept_from: FLOOR }));
        for record in &records[FLOOR as usize..] {
            store.put_sealed(record.clone()).await.unwrap();
        }
        no_faults(&store).await;
    })
    .await;
}

#[tokio::test]
async fn copies_backups_and_restored_stores_are_pruned_as_far() {
    for place in Place::all() {
        let store = place.open().await;
        let records = chain(&store).await;
        prune_all(&store, 150, 0).await;
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| StoreUrl::Sqlite(folder.path().join(name));
        let backup = file("backup.db").open().await.unwrap();
        transfer(&store, &backup, &Purpose::Backup, &quiet).await.unwrap();
        let mut targets = vec![file("restored.db").open().await.unwrap()];
        let restore = Purpose::Restore { meta: Vec::new() };
        transfer(&backup, &targets[0], &restore, &quiet).await.unwrap();
        // On a server, where there is one.
        let other = Place::all().pop().unwrap();
        let moved = other.open().await;
        transfer(&store, &moved, &Purpose::Move { to: other.url.to_string() }, &quiet).await.unwrap();
        targets.push(moved);
        for target in targets {
            target.bind(&deployment(), ROLE).await.unwrap();
            no_faults(&target).await;
            assert!(matches!(target.batch(150).await, Err(StoreError::Pruned { kept_from: 151, .. })));
            assert_eq!(target.batch(151).await.unwrap().unwrap().hash, records[150].hash);
            assert_eq!(prune_all(&target, 160, 0).await.last().unwrap().through, 160);
            no_faults(&target).await;
        }
    }
}

/// Each step is one transaction: where the process dies, the next one goes on.
#[tokio::test]
async fn what_was_begun_goes_on_after_a_restart() {
    for place in Place::all() {
        let store = place.open().await;
        chain(&store).await;
        let step = store.prune(150, 0).await.unwrap();
        assert_eq!((step.through, step.more), (PRUNE_STEP_BATCHES, true));
        // Its writer ends where it stands.
        drop(store);
        let store = place.open().await;
        no_faults(&store).await;
        assert_eq!(store.horizon(150, 0).await.unwrap().pruned, PRUNE_STEP_BATCHES);
        assert_eq!(prune_all(&store, 150, 0).await.last().unwrap().through, 150);
        no_faults(&store).await;
    }
}

/// A deletion of all at once took longer than a lease, and so nobody led for long enough to end it.
#[tokio::test]
async fn ledgers_below_the_floor_are_told_to_nobody_and_go_in_steps() {
    let step = u64::from(FORGET_STEP_ROWS);
    for place in Place::all() {
        let store = place.open().await;
        store.keep_ledgers_from(0).await.unwrap();
        let (mut parent, mut nonce) = (B256::ZERO, 0..);
        // Two of the first do not fit into a step, and the second one alone does not.
        for (number, changes) in (1..).zip([step * 2 / 3, step + 1, step / 2, 1]) {
            let nonces = nonce.by_ref().take(changes as usize);
            let nonces = nonces.map(|nonce| nonce_change(1, nonce, None, Some(99))).collect();
            let record = sealed(number, parent, &[], 0, LedgerDelta { nonces, ..LedgerDelta::default() });
            store.put_sealed(record.clone()).await.unwrap();
            store.put_certificate(&certificate(&record)).await.unwrap();
            parent = record.hash;
        }
        let left = async |store: &SqlStore| rows(store, "nonce_changes").await;
        store.keep_ledgers_from(3).await.unwrap();
        // It counts before anything is deleted.
        assert_eq!(store.entries_changed_after(2, 4).await.unwrap(), None);
        assert_eq!(store.entries_changed_after(3, 4).await.unwrap().unwrap().len(), 1);
        assert_eq!(left(&store).await, step * 2 / 3 + step + 1 + step / 2 + 1);
        assert_eq!(store.forget_ledgers().await, Ok(true));
        assert_eq!(left(&store).await, step + 1 + step / 2 + 1);
        // Its writer ends where it stands.
        drop(store);
        let store = place.open().await;
        assert_eq!(store.ledger_floor().await, Ok(Some(3)));
        for (more, rows) in [(true, step / 2 + 1), (false, 1), (false, 1)] {
            assert_eq!(store.forget_ledgers().await, Ok(more));
            assert_eq!(left(&store).await, rows);
        }
        assert_eq!(store.entries_changed_after(3, 4).await.unwrap().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn records_of_other_roles_all_stay() {
    on_all(async |store: SqlStore| {
        store.bind(&deployment(), "sequencer").await.unwrap();
        let refused = store.prune(u64::MAX, 0).await.unwrap_err();
        assert_eq!(refused, StoreError::NotPruned { role: "sequencer".to_owned() });
        assert!(refused.to_string().contains("promise"), "{refused}");
    })
    .await;
}
