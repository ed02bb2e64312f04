//! What is read for one receipt: some rows, and beside it the whole batch and its block, for batches of several sizes, in a
//! file that the system has in memory.
//!
//! `cargo bench -p blindfold-store --bench receipts`.
#![allow(missing_docs, clippy::unwrap_used)] // criterion's macros; a failed unwrap ends the benchmark

use alloy_primitives::B256;
use blindfold_protocol::{BatchHeader, SealedBatch, Signature65, ledger::LedgerDelta};
use blindfold_store::{BlockRecord, ItemRecord, SealedRecord, SqlStore, Store};
use criterion::{Criterion, criterion_group, criterion_main};
use tokio::runtime::Runtime;

/// An envelope with a transfer.
const ITEM_BYTES: usize = 622;
/// What a block takes for each of its transactions.
const BLOCK_BYTES: usize = 120;

fn id(batch: u64, item: usize) -> B256 {
    let mut id = B256::left_padding_from(&batch.to_be_bytes());
    id[..8].copy_from_slice(&(item as u64).to_be_bytes());
    id
}

fn sealed(number: u64, parent_hash: B256, items: usize) -> SealedRecord {
    let header = BatchHeader {
        number,
        parent_hash,
        timestamp_ms: number * 250,
        l1_origin_number: 7,
        l1_origin_hash: B256::ZERO,
        l1_origin_time: 0,
        envelope_root: B256::ZERO,
        data_hash: B256::ZERO,
        envelope_count: items as u32,
        envelope_bytes: (items * ITEM_BYTES) as u32,
        gas: 0,
        base_fee: 1,
        gas_base_fee: 1,
        fee_ledger_root: B256::ZERO,
        forced_cursor: 0,
        epoch: 1,
        rules: 1,
    };
    SealedRecord {
        hash: header.hash(),
        sealed: SealedBatch {
            header,
            signature: Signature65([1; 65]),
            items: vec![vec![7; ITEM_BYTES]; items],
        },
        items: (0..items).map(|item| ItemRecord { id: id(number, item), fault: None }).collect(),
        ledger: LedgerDelta::default(),
        head: vec![1; 300],
        signed: true,
        made_at: None,
    }
}

/// Batches of this many items, each in a block of its own.
async fn filled(store: &SqlStore, batches: u64, items: usize) {
    let mut parent = B256::ZERO;
    for number in 1..=batches {
        let record = sealed(number, parent, items);
        parent = record.hash;
        store.put_sealed(record).await.unwrap();
        let block = BlockRecord {
            second: number,
            number,
            hash: id(number, usize::MAX),
            parent_hash: id(number - 1, usize::MAX),
            state_root: B256::ZERO,
            first_batch: number,
            last_batch: number,
            transactions: "0".repeat(items * BLOCK_BYTES),
            payload: vec![7; items * BLOCK_BYTES],
        };
        store.put_block(block).await.unwrap();
    }
}

fn receipts(c: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let mut group = c.benchmark_group("receipt");
    for items in [64, 512] {
        let folder = tempfile::tempdir().unwrap();
        let store = SqlStore::open(folder.path().join("chain.sqlite")).unwrap();
        let batches = 32;
        runtime.block_on(filled(&store, batches, items));
        let mut place = 0usize;
        let mut next = || {
            place += 1;
            (1 + place as u64 % batches, place % items)
        };
        group.bench_function(format!("rows, {items} a batch"), |b| {
            b.iter(|| {
                let (batch, item) = next();
                let found = runtime.block_on(store.envelope_location(id(batch, item))).unwrap().unwrap();
                assert_eq!((found.number, found.block.unwrap().0), (batch, batch));
            });
        });
        group.bench_function(format!("whole batch and block, {items} a batch"), |b| {
            b.iter(|| {
                let (batch, item) = next();
                runtime.block_on(async {
                    store.envelope_location(id(batch, item)).await.unwrap().unwrap();
                    assert_eq!(store.batch(batch).await.unwrap().unwrap().items.len(), items);
                    store.block_of_batch(batch).await.unwrap().unwrap();
                });
            });
        });
        runtime.block_on(store.close());
    }
    group.finish();
}

criterion_group!(benches, receipts);
criterion_main!(benches);
