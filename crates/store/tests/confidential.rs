//! The coprocessor's tables: batches in one step, versions, pruning, and what is refused.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::Arc;

use alloy_primitives::{Address, B256};
use blindfold_store::{
    ConfidentialAccountRecord, ConfidentialBatchRecord, ConfidentialHead, ConfidentialStore,
    ConfidentialTransactionRecord, FORGET_STEP_ROWS, PRUNE_STEP_ROWS, PublicBalanceRecord, SqlStore,
    StoreError, TreeName, TreeNodeRecord, What,
};
use common::{Place, on_all, rows};

fn word(number: u64) -> B256 {
    alloy_primitives::keccak256(number.to_be_bytes())
}

fn party(number: u8) -> Address {
    Address::repeat_byte(number)
}

fn head(number: u64, version: u64) -> ConfidentialHead {
    let (hash, state_root) = (word(1_000 + number), word(version));
    ConfidentialHead {
        number,
        hash,
        sequence: version,
        version,
        accounts: 2,
        public_accounts: 1,
        accounts_root: word(50 + version),
        public_root: word(70 + version),
        confidential: u64::MAX - version,
        state_root,
    }
}

fn transaction(version: u64, id: u64, applied: bool, parties: &[u8]) -> ConfidentialTransactionRecord {
    ConfidentialTransactionRecord {
        sequence: version,
        version,
        id: word(id),
        item: 3,
        position: 1,
        applied,
        bytes: vec![version as u8; 10],
        receipt: format!("{{\"version\":{version}}}"),
        state_root: word(version),
        parties: parties.iter().copied().map(party).collect(),
    }
}

fn account(index: u32, state: u8) -> ConfidentialAccountRecord {
    ConfidentialAccountRecord { index, owner: party(index as u8 + 1), state: vec![state; 100] }
}

fn genesis() -> ConfidentialBatchRecord {
    ConfidentialBatchRecord {
        head: head(0, 0),
        transactions: Vec::new(),
        accounts: Vec::new(),
        nodes: Vec::new(),
        balances: vec![PublicBalanceRecord { owner: party(9), index: 0, balance: u64::MAX, nonce: 0 }],
    }
}

/// A batch with transactions `versions`, which changes account 0.
fn batch(number: u64, versions: std::ops::RangeInclusive<u64>) -> ConfidentialBatchRecord {
    let last = *versions.end();
    ConfidentialBatchRecord {
        head: head(number, last),
        transactions: versions.map(|version| transaction(version, version, true, &[1, 2])).collect(),
        accounts: vec![account(0, last as u8)],
        nodes: vec![TreeNodeRecord { tree: TreeName::Accounts, level: 0, index: 0, hash: word(500 + last) }],
        balances: vec![PublicBalanceRecord { owner: party(9), index: 0, balance: last, nonce: last }],
    }
}

fn empty(number: u64, version: u64) -> ConfidentialBatchRecord {
    let nothing = ConfidentialBatchRecord { head: head(number, version), ..genesis() };
    ConfidentialBatchRecord { balances: Vec::new(), ..nothing }
}

#[tokio::test]
async fn a_batch_is_stored_in_one_step_and_read_by_version() {
    on_all(async |store: SqlStore| {
        assert_eq!(store.confidential_head().await.unwrap(), None);
        for record in [genesis(), batch(1, 1..=3), empty(2, 3), batch(3, 4..=4)] {
            let record = Arc::new(record);
            store.put_confidential_batch(Arc::clone(&record)).await.unwrap();
            store.put_confidential_batch(record).await.unwrap();
        }
        assert_eq!(store.confidential_head().await.unwrap(), Some(head(3, 4)));
        assert_eq!(store.confidential_head_at(3).await.unwrap(), Some(head(2, 3)));
        assert_eq!(store.confidential_head_at(2).await.unwrap(), None, "no batch ends there");
        assert_eq!(store.confidential_batch_end(2).await.unwrap(), Some(3));
        assert_eq!(store.confidential_batch_end(5).await.unwrap(), None);
        for (version, state) in [(0, None), (3, Some(account(0, 3))), (4, Some(account(0, 4)))] {
            assert_eq!(store.confidential_account(party(1), version).await.unwrap(), state);
        }
        assert_eq!(store.confidential_account(party(8), 4).await.unwrap(), None);
        assert_eq!(store.confidential_index(party(1)).await.unwrap(), Some(0));
        assert_eq!(store.confidential_index(party(8)).await.unwrap(), None);
        assert_eq!(store.confidential_accounts(0, 10).await.unwrap(), [account(0, 4)]);
        assert_eq!(store.confidential_accounts(1, 10).await.unwrap(), []);
        let nodes = store.confidential_nodes(TreeName::Accounts, &[(0, 0), (0, 1)], 3).await.unwrap();
        assert_eq!(nodes, [Some(word(503)), None]);
        let balance = PublicBalanceRecord { owner: party(9), index: 0, balance: 4, nonce: 4 };
        assert_eq!(store.public_balances().await.unwrap(), [balance]);
        assert_eq!(store.public_balance(party(9)).await.unwrap(), Some(balance));
        assert_eq!(store.public_balance(party(8)).await.unwrap(), None);
        for version in 0..=4 {
            assert_eq!(store.confidential_state_root(version).await.unwrap(), Some(word(version)));
        }
        assert_eq!(store.confidential_state_root(u64::MAX).await.unwrap(), None);
        for (number, count) in [(0, 0), (1, 3), (2, 0), (3, 1), (u64::MAX, 0)] {
            assert_eq!(store.confidential_transactions_in(number).await.unwrap(), count);
        }
        let found = store.confidential_transactions_of(party(2), 2, 2).await.unwrap();
        assert_eq!(
            found.iter().map(|one| (one.number, one.record.sequence)).collect::<Vec<_>>(),
            [(1, 2), (1, 3)]
        );
        assert_eq!(
            found[0].record,
            ConfidentialTransactionRecord { parties: vec![], ..transaction(2, 2, true, &[]) }
        );
    })
    .await;
}

#[tokio::test]
async fn the_place_where_a_transaction_was_applied_comes_first() {
    on_all(async |store: SqlStore| {
        store.put_confidential_batch(genesis().into()).await.unwrap();
        let mut record = batch(1, 1..=3);
        let places = (1..).zip([false, true, false]);
        record.transactions = places.map(|(at, applied)| transaction(at, 7, applied, &[])).collect();
        for (transaction, version) in record.transactions.iter_mut().zip([0, 1, 1]) {
            transaction.version = version;
        }
        record.head.version = 1;
        store.put_confidential_batch(record.into()).await.unwrap();
        assert_eq!(store.confidential_transaction(word(7)).await.unwrap().unwrap().record.sequence, 2);
        assert_eq!(store.confidential_transaction(word(8)).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn what_does_not_follow_is_refused() {
    on_all(async |store: SqlStore| {
        let not_next = |expected, offered| Err(StoreError::NotNext { expected, offered });
        assert_eq!(store.put_confidential_batch(batch(1, 1..=1).into()).await, not_next(0, 1));
        store.put_confidential_batch(genesis().into()).await.unwrap();
        assert_eq!(store.put_confidential_batch(batch(2, 1..=1).into()).await, not_next(1, 2));
        let reason = |record: ConfidentialBatchRecord| async {
            match store.put_confidential_batch(record.into()).await {
                Err(StoreError::Inconsistent { what: What::ConfidentialBatch, reason, .. }) => reason,
                other => panic!("{other:?}"),
            }
        };
        assert!(reason(batch(1, 2..=2)).await.contains("follow one another"));
        assert!(
            reason(ConfidentialBatchRecord { head: head(1, 5), ..batch(1, 1..=1) }).await.contains("version")
        );
        assert_eq!(store.confidential_nodes(TreeName::Public, &[(0, 0)], 3).await.unwrap(), [None]);
        let changes = ConfidentialBatchRecord { accounts: vec![account(0, 1)], ..empty(1, 0) };
        assert!(reason(changes).await.contains("without a transaction"));
        store.put_confidential_batch(batch(1, 1..=1).into()).await.unwrap();
        let mut other = batch(1, 1..=1);
        other.head.state_root = word(99);
        let conflict = StoreError::Conflict {
            what: What::ConfidentialBatch,
            number: 1,
            stored: word(1),
            offered: word(99),
        };
        assert_eq!(store.put_confidential_batch(other.into()).await, Err(conflict));
        assert_eq!(store.confidential_head().await.unwrap(), Some(head(1, 1)));
    })
    .await;
}

#[tokio::test]
async fn pruning_keeps_what_a_version_needs() {
    on_all(async |store: SqlStore| {
        for record in [genesis(), batch(1, 1..=1), batch(2, 2..=2), batch(3, 3..=3)] {
            store.put_confidential_batch(record.into()).await.unwrap();
        }
        assert_eq!(store.prune_confidential(2).await, Ok(false));
        assert_eq!(store.confidential_account(party(1), 1).await.unwrap(), None);
        assert_eq!(store.confidential_head_at(1).await.unwrap(), None);
        assert_eq!(store.confidential_account(party(1), 2).await.unwrap(), Some(account(0, 2)));
        assert_eq!(
            store.confidential_nodes(TreeName::Accounts, &[(0, 0)], 2).await.unwrap(),
            [Some(word(502))]
        );
        assert_eq!(store.prune_confidential(u64::MAX).await, Ok(false));
        assert_eq!(store.confidential_account(party(1), 3).await.unwrap(), Some(account(0, 3)));
        assert_eq!(store.confidential_head().await.unwrap(), Some(head(3, 3)));
        assert_eq!(store.confidential_state_root(0).await.unwrap(), Some(word(0)));
        assert_eq!(store.confidential_state_root(1).await.unwrap(), Some(word(1)), "roots stay");
    })
    .await;
}

/// A deletion of all at once took longer than a server may take for a statement, and was begun anew with every batch.
#[tokio::test]
async fn what_later_versions_replaced_goes_in_steps() {
    let step = PRUNE_STEP_ROWS;
    // Two of the first do not fit into a step, and the second one alone does not.
    let written = [step * 2 / 3, step + 1, step / 2, 1];
    for place in Place::all() {
        let store = place.open().await;
        store.put_confidential_batch(genesis().into()).await.unwrap();
        for (version, places) in (1..).zip(written) {
            let hash = word(version);
            let node = |index| TreeNodeRecord { tree: TreeName::Accounts, level: 0, index, hash };
            let record = ConfidentialBatchRecord {
                nodes: (0..places).map(node).collect(),
                ..batch(version, version..=version)
            };
            store.put_confidential_batch(record.into()).await.unwrap();
        }
        let left = async |store: &SqlStore| rows(store, "confidential_nodes").await;
        let all = u64::from(written.iter().sum::<u32>());
        // Batches go first: none answers for a version whose accounts may be gone.
        assert_eq!(store.prune_confidential(3).await, Ok(true));
        assert_eq!((left(&store).await, store.confidential_head_at(2).await.unwrap()), (all, None));
        // Its writer ends where it stands.
        drop(store);
        let store = place.open().await;
        let replaced = u64::from(written[0]);
        assert_eq!((store.prune_confidential(3).await, left(&store).await), (Ok(true), all - replaced));
        let replaced = u64::from(written[0] + written[2]);
        for _ in 0..2 {
            assert_eq!((store.prune_confidential(3).await, left(&store).await), (Ok(false), all - replaced));
        }
        let nodes = store.confidential_nodes(TreeName::Accounts, &[(0, 0), (0, step)], 3).await.unwrap();
        assert_eq!(nodes, [Some(word(3)), Some(word(2))]);
        assert_eq!(store.confidential_account(party(1), 3).await.unwrap(), Some(account(0, 3)));
        // What came meanwhile is looked at next.
        assert_eq!((store.prune_confidential(4).await, left(&store).await), (Ok(false), all - replaced - 1));
        assert_eq!(store.confidential_head_at(4).await.unwrap(), Some(head(4, 4)));
        assert_eq!(rows(&store, "confidential_accounts").await, 1);
        assert_eq!(rows(&store, "public_balances").await, 1);
    }
}

/// Batches without a confidential transaction are most of them.
#[tokio::test]
async fn batches_of_forgotten_versions_go_in_steps() {
    const BATCHES: u64 = FORGET_STEP_ROWS as u64 + 2;
    let store = SqlStore::in_memory().unwrap();
    store.put_confidential_batch(genesis().into()).await.unwrap();
    for number in 1..BATCHES {
        store.put_confidential_batch(empty(number, 0).into()).await.unwrap();
    }
    store.put_confidential_batch(batch(BATCHES, 1..=1).into()).await.unwrap();
    assert_eq!(store.prune_confidential(1).await, Ok(true));
    assert_eq!(store.confidential_head_at(0).await.unwrap(), Some(head(BATCHES - 1, 0)));
    assert_eq!(store.prune_confidential(1).await, Ok(false));
    assert_eq!(store.confidential_head_at(0).await.unwrap(), Some(head(0, 0)));
    assert_eq!(store.confidential_head().await.unwrap(), Some(head(BATCHES, 1)));
}

#[tokio::test]
async fn a_reader_sees_what_another_writes_and_writes_nothing() {
    for place in Place::all() {
        assert!(matches!(place.url.open_reader().await, Err(StoreError::Open { .. })), "nothing to read");
        let store = place.open().await;
        let reader = place.url.open_reader().await.unwrap();
        assert_eq!(reader.confidential_head().await.unwrap(), None);
        store.put_confidential_batch(genesis().into()).await.unwrap();
        assert_eq!(reader.confidential_head().await.unwrap(), Some(head(0, 0)));
        store.put_confidential_batch(batch(1, 1..=3).into()).await.unwrap();
        let found = reader.confidential_transactions_from(2, 10).await.unwrap();
        assert_eq!(found.iter().map(|one| one.record.sequence).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(reader.confidential_transactions_from(0, 1).await.unwrap()[0].record.sequence, 1);
        assert!(reader.put_confidential_batch(batch(2, 4..=4).into()).await.is_err());
        // The lock is the writer's alone; without a writer the reader goes on.
        assert!(matches!(place.url.open().await, Err(StoreError::InUse(_))));
        store.close().await;
        assert_eq!(reader.confidential_head().await.unwrap(), Some(head(1, 3)));
        let late = place.url.open_reader().await.unwrap();
        assert_eq!(late.confidential_head().await.unwrap(), Some(head(1, 3)), "opened without a writer");
    }
}
