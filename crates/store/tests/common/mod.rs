//! Records for the tests: a chain of small batches.
#![allow(dead_code, clippy::unwrap_used)]

use alloy_primitives::{Address, B256};
use blindfold_protocol::{
    BatchHeader, BatchHints, Certificate, HintEntry, Release, SealedBatch, Signature65,
    ledger::{Account, AccountChange, Held, HeldChange, LedgerDelta, LiveNonce, NonceChange},
};
use blindfold_servers::Postgres;
use blindfold_store::{
    BlockRecord, ItemRecord, PendingEnvelope, PostgresUrl, Purpose, SealedRecord, SqlStore, Store,
    StoreError, StoreUrl, transfer,
};
use tempfile::TempDir;

/// A place for a store, that keeps it from one opening to the next.
pub struct Place {
    pub url: StoreUrl,
    _folder: Option<TempDir>,
}

impl Place {
    /// One for each engine: a file, and a schema where there is a server.
    pub fn all() -> Vec<Self> {
        let folder = tempfile::tempdir().unwrap();
        let file = Self { url: StoreUrl::Sqlite(folder.path().join("store.db")), _folder: Some(folder) };
        let schema = fresh_url().map(|url| Self { url: StoreUrl::Postgres(url), _folder: None });
        std::iter::once(file).chain(schema).collect()
    }

    /// The writer thread of a dropped store gives its lock back when it has ended, which nobody waits for.
    pub async fn open(&self) -> SqlStore {
        loop {
            match self.url.open().await {
                Err(StoreError::InUse(_)) => tokio::task::yield_now().await,
                opened => return opened.unwrap(),
            }
        }
    }
}

/// Runs a test on each engine, and in memory.
pub async fn on_all<F: AsyncFn(SqlStore)>(test: F) {
    test(SqlStore::in_memory().unwrap()).await;
    for place in Place::all() {
        test(place.open().await).await;
    }
}

/// An empty schema of this program's server; `None` where PostgreSQL is not installed.
pub fn fresh_url() -> Option<PostgresUrl> {
    let server = Postgres::shared()?;
    Some(server.fresh().unwrap().parse().unwrap())
}

/// An empty schema of a server, as a name and as a URL.
pub fn schema(server: &Postgres) -> (String, PostgresUrl) {
    let url = server.fresh().unwrap();
    let name = url.rsplit_once("%3D").unwrap().1.to_owned();
    (name, url.parse().unwrap())
}

/// How many rows of a table there are.
pub async fn rows(store: &SqlStore, table: &str) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let backup = StoreUrl::Sqlite(folder.path().join("backup.db")).open().await.unwrap();
    let copied = transfer(store, &backup, &Purpose::Backup, &|_| ()).await.unwrap();
    copied.iter().filter(|copied| copied.table == table).map(|copied| copied.rows).sum()
}

pub fn id(number: u64) -> B256 {
    alloy_primitives::keccak256(number.to_be_bytes())
}

pub fn payer(number: u8) -> Address {
    Address::repeat_byte(number)
}

pub fn account(balance: u128) -> Account {
    Account { balance, withdrawn: balance / 2 }
}

pub fn nonce_change(number: u8, nonce: u64, before: Option<u64>, after: Option<u64>) -> NonceChange {
    NonceChange { payer: payer(number), nonce, before, after }
}

pub fn live(number: u8, nonce: u64, expiry: u64) -> LiveNonce {
    LiveNonce { payer: payer(number), nonce, expiry }
}

pub fn envelope(number: u64) -> PendingEnvelope {
    PendingEnvelope {
        id: id(number),
        bytes: vec![number as u8; 300],
        arrived_ms: 1_000 + number,
        seal_by: None,
    }
}

/// A batch that accepts the envelopes `ids`; `variant` makes a second header for the same number.
pub fn sealed(
    number: u64,
    parent_hash: B256,
    ids: &[u64],
    variant: u64,
    ledger: LedgerDelta,
) -> SealedRecord {
    let items: Vec<Vec<u8>> = ids.iter().map(|id| envelope(*id).bytes).collect();
    let header = BatchHeader {
        number,
        parent_hash,
        timestamp_ms: 1_000_000 + number % 1_000_000 * 250 + variant,
        l1_origin_number: 7,
        l1_origin_hash: B256::repeat_byte(7),
        l1_origin_time: 0,
        envelope_root: B256::repeat_byte(1),
        data_hash: B256::ZERO,
        envelope_count: items.len() as u32,
        envelope_bytes: items.iter().map(Vec::len).sum::<usize>() as u32,
        gas: 21_000,
        base_fee: 1,
        gas_base_fee: 1,
        fee_ledger_root: B256::repeat_byte(2),
        forced_cursor: 0,
        epoch: 1,
        rules: 1,
    };
    SealedRecord {
        hash: header.hash(),
        sealed: SealedBatch { header, signature: Signature65([1; 65]), items },
        items: ids.iter().map(|number| ItemRecord { id: id(*number), fault: None }).collect(),
        ledger,
        head: format!("head {number} {variant}").into_bytes(),
        signed: true,
        made_at: None,
    }
}

pub fn credit(number: u8, before: Option<Account>, after: Option<Account>) -> LedgerDelta {
    let change = AccountChange { payer: payer(number), before, after };
    LedgerDelta { accounts: vec![change], ..LedgerDelta::default() }
}

/// The accounts of the stored ledger, by payer.
pub async fn stored_accounts(store: &SqlStore) -> Vec<(Address, Account)> {
    store.ledger().await.unwrap().accounts().iter().map(|(payer, account)| (*payer, *account)).collect()
}

/// Its live nonces, those first that go first.
pub async fn stored_nonces(store: &SqlStore) -> Vec<LiveNonce> {
    let mut nonces: Vec<_> = store.ledger().await.unwrap().nonces().collect();
    nonces.sort_by_key(|it| (it.expiry, it.payer, it.nonce));
    nonces
}

/// What it holds, by batch.
pub async fn stored_held(store: &SqlStore) -> Vec<(u64, Vec<Held>)> {
    store.ledger().await.unwrap().held().iter().map(|(number, held)| (*number, held.clone())).collect()
}

pub fn held_change(number: u64, before: Vec<Held>, after: Vec<Held>) -> HeldChange {
    HeldChange { number, before, after }
}

pub fn certificate(record: &SealedRecord) -> Certificate {
    Certificate {
        epoch: 1,
        number: record.sealed.header.number,
        header_hash: record.hash,
        signers: 0b111,
        signature: [3; 48],
    }
}

pub fn release(record: &SealedRecord) -> Release {
    Release { number: record.sealed.header.number, header_hash: record.hash, pds: vec![[4; 48]] }
}

pub fn hints(record: &SealedRecord) -> BatchHints {
    let entries = record.items.iter().map(|_| HintEntry::Key([5; 16])).collect();
    BatchHints { number: record.sealed.header.number, header_hash: record.hash, entries, blindings: vec![] }
}

pub fn block(number: u64, first_batch: u64, last_batch: u64) -> BlockRecord {
    BlockRecord {
        second: 1_000 + number,
        number,
        hash: id(number),
        parent_hash: id(number - 1),
        state_root: B256::repeat_byte(9),
        first_batch,
        last_batch,
        transactions: "[]".to_owned(),
        payload: vec![1, 2, 3],
    }
}
