//! How many durable writes and how many batches per second the two engines take, side by side.
//!
//! `cargo run --release -p blindfold-store --example engines -- [URL…]`, by default a SQLite file in the temporary folder
//! and a PostgreSQL server of its own on the same disk. Rounds alternate; what is printed are medians and the ratio to the
//! first.

use std::time::Duration;

use blindfold_protocol::{
    Address, B256, BatchHeader, SealedBatch, Signature65, keccak256,
    ledger::{Account, AccountChange, LedgerDelta, NonceChange},
};
use blindfold_runtime::now;
use blindfold_servers::Postgres;
use blindfold_store::{ItemRecord, PendingEnvelope, SealedRecord, SqlStore, Store, StoreError, StoreUrl};

const ENVELOPE_BYTES: usize = 622;
const ROUNDS: usize = 5;
const WRITES: u64 = 2_000;
const BATCHES: u64 = 20;
/// Callers that put envelopes at the same time.
const CALLERS: [u64; 3] = [1, 16, 256];
/// Items of a batch, each of another payer.
const ITEMS: [u64; 3] = [1, 128, 1_024];

fn id(kind: u64, number: u64) -> B256 {
    keccak256([kind.to_be_bytes(), number.to_be_bytes()].concat())
}

/// One engine with what has been written to it.
struct Engine {
    name: String,
    store: SqlStore,
    envelopes: u64,
    newest: (u64, B256),
    balance: u128,
}

impl Engine {
    async fn put_envelopes(&mut self, callers: u64) -> Result<f64, StoreError> {
        let each = if callers == 1 { WRITES / 16 } else { WRITES / callers };
        let begun = now();
        let mut tasks = tokio::task::JoinSet::new();
        for caller in 0..callers {
            let (store, from) = (self.store.clone(), self.envelopes + caller * each);
            tasks.spawn(async move {
                for number in from..from + each {
                    store.put_envelope(envelope(number)).await?;
                }
                Ok::<_, StoreError>(())
            });
        }
        while let Some(outcome) = tasks.join_next().await {
            outcome.map_err(|error| StoreError::Failed(error.to_string()))??;
        }
        self.envelopes += callers * each;
        Ok(rate(callers * each, begun.elapsed()))
    }

    /// Seals batches of envelopes that wait, with certificates left out: a leader's work under its own lock.
    async fn seal(&mut self, items: u64) -> Result<f64, StoreError> {
        let mut records = Vec::new();
        for _ in 0..BATCHES {
            for number in self.envelopes..self.envelopes + items {
                self.store.put_envelope(envelope(number)).await?;
            }
            records.push(self.batch(items));
        }
        let begun = now();
        for record in records {
            self.store.put_sealed(record).await?;
        }
        Ok(rate(BATCHES, begun.elapsed()))
    }

    fn batch(&mut self, items: u64) -> SealedRecord {
        let (number, parent_hash) = (self.newest.0 + 1, self.newest.1);
        let numbers = self.envelopes..self.envelopes + items;
        let before = (self.balance > 0).then_some(Account { balance: self.balance, withdrawn: 0 });
        self.balance += 1;
        let after = Some(Account { balance: self.balance, withdrawn: 0 });
        let payer = |index: u64| Address::from_slice(&id(1, index)[..20]);
        let ledger = LedgerDelta {
            accounts: (0..items)
                .map(|index| AccountChange {
                    payer: Address::from_slice(&id(2, items * 10_000 + index)[..20]),
                    before,
                    after,
                })
                .collect(),
            nonces: numbers
                .clone()
                .map(|nonce| NonceChange {
                    payer: payer(nonce),
                    nonce,
                    before: None,
                    after: Some(number + 300),
                })
                .collect(),
            ..LedgerDelta::default()
        };
        let sealed: Vec<Vec<u8>> = numbers.clone().map(|number| envelope(number).bytes).collect();
        let header = BatchHeader {
            number,
            parent_hash,
            timestamp_ms: number,
            l1_origin_number: 1,
            l1_origin_hash: B256::ZERO,
            l1_origin_time: 0,
            envelope_root: B256::ZERO,
            data_hash: B256::ZERO,
            envelope_count: items as u32,
            envelope_bytes: (items as usize * ENVELOPE_BYTES) as u32,
            gas: 21_000,
            base_fee: 1,
            gas_base_fee: 1,
            fee_ledger_root: B256::ZERO,
            forced_cursor: 0,
            epoch: 1,
            rules: 1,
        };
        let hash = header.hash();
        self.newest = (number, hash);
        self.envelopes += items;
        SealedRecord {
            hash,
            sealed: SealedBatch { header, signature: Signature65([1; 65]), items: sealed },
            items: numbers.map(|number| ItemRecord { id: id(0, number), fault: None }).collect(),
            ledger,
            head: vec![0; 100],
            signed: true,
            made_at: None,
        }
    }
}

fn envelope(number: u64) -> PendingEnvelope {
    let bytes = vec![number as u8; ENVELOPE_BYTES];
    PendingEnvelope { id: id(0, number), bytes, arrived_ms: number, seal_by: None }
}

fn rate(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn show(what: &str, engines: &[Engine], rates: Vec<Vec<f64>>) {
    let medians: Vec<f64> = rates.into_iter().map(median).collect();
    for (engine, rate) in engines.iter().zip(&medians) {
        println!("{what}  {:10} {rate:9.1} per second  {:5.2}", engine.name, rate / medians[0]);
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut urls: Vec<String> = std::env::args().skip(1).collect();
    let folder = tempfile::tempdir()?;
    let server = if urls.is_empty() { Some(Postgres::start()?) } else { None };
    if let Some(server) = &server {
        urls.push(format!("sqlite:{}", folder.path().join("engines.db").display()));
        urls.push(server.fresh()?);
    }
    let mut engines = Vec::new();
    for url in urls {
        let store = url.parse::<StoreUrl>()?.open().await?;
        let name = url.split_once(':').map_or("", |(name, _)| name).to_owned();
        engines.push(Engine { name, store, envelopes: 0, newest: (0, B256::ZERO), balance: 0 });
    }
    for callers in CALLERS {
        let mut rates = vec![Vec::new(); engines.len()];
        for _ in 0..ROUNDS {
            for (engine, rates) in engines.iter_mut().zip(&mut rates) {
                rates.push(engine.put_envelopes(callers).await?);
            }
        }
        show(&format!("envelopes, {callers:4} callers"), &engines, rates);
    }
    for items in ITEMS {
        let mut rates = vec![Vec::new(); engines.len()];
        for round in 0..ROUNDS {
            for (engine, rates) in engines.iter_mut().zip(&mut rates) {
                // Payers of their own for each size.
                engine.balance = if round == 0 { 0 } else { engine.balance };
                rates.push(engine.seal(items).await?);
            }
        }
        show(&format!("batches of {items:4} items  "), &engines, rates);
    }
    for engine in engines {
        engine.store.close().await;
    }
    Ok(())
}
