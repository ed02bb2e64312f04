//! How many bytes each table takes for an envelope and for a batch, in both engines: pages, indices and all.
//!
//! `cargo run -p blindfold-store --example growth -- [BATCHES]` (256 by default). Two stores of each engine get as many
//! batches, of 1 envelope and of 129; what is printed are the bytes that one envelope more takes, and those of a batch without
//! any, above an empty store. Sizes are those of transfers: an envelope of 622 bytes that a payer of its own pays for, a block for four batches.

use std::{collections::BTreeMap, error::Error};

use blindfold_protocol::{
    Address, B256, BatchHeader, BatchHints, Certificate, Deployment, HintEntry, Release, SealedBatch,
    Signature65, keccak256,
    ledger::{Account, AccountChange, LedgerDelta, NonceChange},
};
use blindfold_servers::Postgres;
use blindfold_store::{BlockRecord, ItemRecord, SealedRecord, SqlStore, Store, StoreError, StoreUrl};
use rusqlite::Connection;

const ENVELOPE_BYTES: usize = 622;
/// A signed transfer, as the block's payload has it.
const TRANSACTION_BYTES: usize = 120;
/// Encoding of the chain's head.
const HEAD_BYTES: usize = 250;
const BATCHES: u64 = 256;
const BATCHES_PER_BLOCK: u64 = 4;
const FEW: u64 = 1;
const MANY: u64 = 129;
/// Batches for which a fee nonce lives.
const LIFETIME: u64 = 300;

fn id(kind: u64, number: u64) -> B256 {
    keccak256([kind.to_be_bytes(), number.to_be_bytes()].concat())
}

/// Bytes that no engine can compress, as ciphertexts, signatures and hashes are.
fn random_bytes(kind: u64, number: u64, length: usize) -> Vec<u8> {
    let parts = (0..).flat_map(|part: u64| id(kind, number * 1_000_000 + part).0);
    parts.take(length).collect()
}

fn header(number: u64, parent_hash: B256, items: u64) -> BatchHeader {
    BatchHeader {
        number,
        parent_hash,
        timestamp_ms: number * 250,
        l1_origin_number: 1,
        l1_origin_hash: B256::ZERO,
        l1_origin_time: 0,
        envelope_root: id(9, number),
        data_hash: id(10, number),
        envelope_count: items as u32,
        envelope_bytes: (items as usize * ENVELOPE_BYTES) as u32,
        gas: 21_000 * items,
        base_fee: 1,
        gas_base_fee: 1,
        fee_ledger_root: id(11, number),
        forced_cursor: 0,
        epoch: 1,
        rules: 1,
    }
}

/// What a node's block says of its envelopes, as the executor writes it.
fn details(first: u64, items: u64) -> String {
    let hash = |index: u64| format!("\"{}\"", id(3, first + index));
    let envelope = |index: u64| {
        format!(
            "{{\"id\":\"{}\",\"number\":{first},\"index\":{index},\"outcome\":\"executed\",\"transactions\":[{{\"hash\":{},\"included\":true}}]}}",
            id(0, first + index),
            hash(index)
        )
    };
    let list = |one: &dyn Fn(u64) -> String| (0..items).map(one).collect::<Vec<_>>().join(",");
    format!(
        "{{\"transactions\":[{}],\"l1OriginNumber\":1,\"sequenceNumber\":0,\"gasUsed\":21000,\
         \"deposits\":{{\"through\":1,\"then\":0,\"more\":false}},\"envelopes\":[{}]}}",
        list(&hash),
        list(&envelope)
    )
}

/// Everything that a sequencer stores of so many batches.
async fn fill(store: &SqlStore, batches: u64, items: u64) -> Result<(), StoreError> {
    store.bind(&Deployment { l1_chain_id: 1, inbox: Address::ZERO }, "sequencer").await?;
    store.keep_ledgers_from(0).await?;
    let mut parent = B256::ZERO;
    for number in 1..=batches {
        let of = |index: u64| number * MANY + index;
        let header = header(number, parent, items);
        let hash = header.hash();
        let account = Some(Account { balance: u128::from(number), withdrawn: 0 });
        let ledger = LedgerDelta {
            accounts: (0..items)
                .map(|index| AccountChange {
                    payer: Address::from_slice(&id(2, of(index))[..20]),
                    before: None,
                    after: account,
                })
                .collect(),
            nonces: (0..items)
                .map(|index| NonceChange {
                    payer: Address::from_slice(&id(2, of(index))[..20]),
                    nonce: of(index),
                    before: None,
                    after: Some(number + LIFETIME),
                })
                .collect(),
            ..LedgerDelta::default()
        };
        let record = SealedRecord {
            hash,
            sealed: SealedBatch {
                header,
                signature: Signature65([1; 65]),
                items: (0..items).map(|index| random_bytes(12, of(index), ENVELOPE_BYTES)).collect(),
            },
            items: (0..items).map(|index| ItemRecord { id: id(0, of(index)), fault: None }).collect(),
            ledger,
            head: random_bytes(13, number, HEAD_BYTES),
            signed: true,
            made_at: None,
        };
        store.put_sealed(record).await?;
        let point = |kind: u64| random_bytes(kind, number, 48).try_into().unwrap_or([0; 48]);
        let certificate =
            Certificate { epoch: 1, number, header_hash: hash, signers: 7, signature: point(15) };
        store.put_certificate(&certificate).await?;
        store.put_release(&Release { number, header_hash: hash, pds: vec![point(16)] }).await?;
        let entries = (0..items)
            .map(|index| HintEntry::Key(random_bytes(17, of(index), 16).try_into().unwrap_or_default()))
            .collect();
        store.put_hints(&BatchHints { number, header_hash: hash, entries, blindings: Vec::new() }).await?;
        if number.is_multiple_of(BATCHES_PER_BLOCK) {
            let block = number / BATCHES_PER_BLOCK;
            let all = items * BATCHES_PER_BLOCK;
            let block = BlockRecord {
                second: block,
                number: block,
                hash: id(4, block),
                parent_hash: id(4, block - 1),
                state_root: id(5, block),
                first_batch: number + 1 - BATCHES_PER_BLOCK,
                last_batch: number,
                transactions: details(number, all),
                payload: random_bytes(14, block, 600 + all as usize * TRANSACTION_BYTES),
            };
            store.put_block(block).await?;
        }
        parent = hash;
    }
    Ok(())
}

type Sizes = BTreeMap<String, f64>;

fn of_sqlite(path: &std::path::Path) -> Result<Sizes, Box<dyn Error>> {
    let connection = Connection::open(path)?;
    let sql = "SELECT m.tbl_name, SUM(d.pgsize) FROM dbstat d JOIN sqlite_schema m ON m.name = d.name GROUP BY m.tbl_name";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)? as f64)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

async fn of_postgres(url: &str) -> Result<Sizes, Box<dyn Error>> {
    let (client, connection) = url.parse::<tokio_postgres::Config>()?.connect(tokio_postgres::NoTls).await?;
    blindfold_runtime::spawn(async move {
        let _ = connection.await;
    });
    // What updates left behind goes, as autovacuum would see to.
    client.batch_execute("VACUUM FULL").await?;
    let sql = "SELECT relname, pg_total_relation_size(oid) FROM pg_class
               WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace";
    let rows = client.query(sql, &[]).await?;
    Ok(rows.iter().map(|row| (row.get::<_, String>(0), row.get::<_, i64>(1) as f64)).collect())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let batches = std::env::args().nth(1).map_or(Ok(BATCHES), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let server = Postgres::start()?;
    let mut sizes: Vec<[Sizes; 2]> = Vec::new();
    for (batches, items) in [(0, 0), (batches, FEW), (batches, MANY)] {
        let path = folder.path().join(format!("{items}.db"));
        let store = StoreUrl::Sqlite(path.clone()).open().await?;
        fill(&store, batches, items).await?;
        store.close().await;
        let url = server.fresh()?;
        let store = url.parse::<StoreUrl>()?.open().await?;
        fill(&store, batches, items).await?;
        store.close().await;
        sizes.push([of_sqlite(&path)?, of_postgres(&url).await?]);
    }
    let [empty, few, many] = sizes.as_slice() else { return Ok(()) };
    let count = batches as f64;
    let one = |engine: usize, table: &str| {
        let size = |sizes: &[Sizes; 2]| sizes[engine].get(table).copied().unwrap_or_default();
        let envelope = (size(many) - size(few)) / count / (MANY - FEW) as f64;
        (envelope, ((size(few) - size(empty)) / count - envelope * FEW as f64).max(0.0))
    };
    println!("| table | SQLite: envelope | batch | PostgreSQL: envelope | batch |");
    println!("|---|---|---|---|---|");
    let mut sums = [0.0; 4];
    for table in blindfold_store::TABLES {
        let ((lite, lite_batch), (server, server_batch)) = (one(0, table.name), one(1, table.name));
        let row = [lite, lite_batch, server, server_batch];
        if row.iter().any(|bytes| *bytes >= 1.0) {
            println!("| `{}` | {:.0} | {:.0} | {:.0} | {:.0} |", table.name, row[0], row[1], row[2], row[3]);
        }
        sums.iter_mut().zip(row).for_each(|(sum, bytes)| *sum += bytes);
    }
    println!("| all | {:.0} | {:.0} | {:.0} | {:.0} |", sums[0], sums[1], sums[2], sums[3]);
    Ok(())
}
