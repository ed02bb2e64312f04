//! What a batch writes to disk, measured: as much as it changes, however much the ledger holds.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{fs, path::Path};

use alloy_primitives::{Address, B256};
use blindfold_protocol::ledger::{Account, AccountChange, LedgerDelta, NonceChange};
use blindfold_store::{SealedRecord, SqlStore, Store};
use common::*;

/// Envelopes of the batch that is measured. All are of one payer, who also has all live nonces.
const ENVELOPES: u64 = 100;
/// Batches that the nonces of the stored ledger came with.
const FILLING_BATCHES: u64 = 10;

fn change(nonce: u64, before: Option<u64>, after: Option<u64>) -> NonceChange {
    // As a wallet may draw them.
    let nonce = nonce.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    NonceChange { payer: payer(1), nonce, before, after }
}

fn paid(balance: u128, spent: u128) -> [AccountChange; 2] {
    let account = |balance| (balance > 0).then_some(Account { balance, withdrawn: 0 });
    [
        AccountChange { payer: payer(1), before: account(balance), after: account(balance - spent) },
        AccountChange {
            payer: Address::repeat_byte(0x5e),
            before: account((1 << 90) - balance),
            after: account((1 << 90) - balance + spent),
        },
    ]
}

/// A batch that uses nonces and forgets as many.
fn batch(parent: Option<&SealedRecord>, balance: u128, nonces: Vec<NonceChange>) -> SealedRecord {
    let number = parent.map_or(1, |parent| parent.sealed.header.number + 1);
    let ids: Vec<u64> = (0..ENVELOPES).map(|index| number * ENVELOPES + index).collect();
    let ledger = LedgerDelta { accounts: paid(balance, 1).to_vec(), nonces, held: vec![] };
    sealed(number, parent.map_or(B256::ZERO, |parent| parent.hash), &ids, 0, ledger)
}

/// Bytes that the write-ahead log grows by when one batch of `ENVELOPES` follows on a ledger of so many live nonces.
async fn bytes_of_a_batch(path: &Path, live: u64) -> u64 {
    let store = SqlStore::open(path).unwrap();
    let mut delta = LedgerDelta::default();
    delta.accounts.push(AccountChange {
        payer: payer(1),
        before: None,
        after: Some(Account { balance: 1 << 90, withdrawn: 0 }),
    });
    let mut last = sealed(1, B256::ZERO, &[], 0, delta);
    store.put_sealed(last.clone()).await.unwrap();
    let mut balance = 1 << 90;
    for filling in 0..FILLING_BATCHES {
        let some = live / FILLING_BATCHES;
        let nonces =
            (filling * some..(filling + 1) * some).map(|nonce| change(nonce, None, Some(nonce / ENVELOPES)));
        let record = batch(Some(&last), balance, nonces.collect());
        (last, balance) = (record.clone(), balance - 1);
        store.put_sealed(record).await.unwrap();
    }
    store.put_certificate(&certificate(&last)).await.unwrap();
    // The log begins anew.
    let raw = rusqlite::Connection::open(path).unwrap();
    let busy: i64 = raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!(busy, 0);
    let come = (0..ENVELOPES).map(|index| change(live + index, None, Some(live / ENVELOPES)));
    let go = (0..ENVELOPES).map(|index| change(index, Some(0), None));
    let record = batch(Some(&last), balance, come.chain(go).collect());
    store.put_sealed(record.clone()).await.unwrap();
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let grown = fs::metadata(log).unwrap().len();
    assert_eq!(stored_nonces(&store).await.len() as u64, live);
    store.revert_sealed(record.sealed.header.number).await.unwrap();
    assert_eq!(stored_nonces(&store).await.len() as u64, live);
    grown
}

#[tokio::test]
async fn a_batch_writes_what_it_touches_however_many_nonces_are_live() {
    let folder = tempfile::tempdir().unwrap();
    let few = bytes_of_a_batch(&folder.path().join("few.db"), 1_000).await;
    let many = bytes_of_a_batch(&folder.path().join("many.db"), 50_000).await;
    println!("{ENVELOPES} envelopes: {few} bytes beside 1,000 live nonces, {many} beside 50,000");
    assert!(many <= 2 * few, "{many} bytes, {few} with few nonces");
}
