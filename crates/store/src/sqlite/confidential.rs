//! The coprocessor's tables.

use alloy_primitives::{Address, B256};
use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use super::{
    MAX_PAGE_RECORDS, SqliteStore,
    convert::{array, corrupt, hash, integer, number},
    reads::{all, first},
    writes::execute,
};
use crate::{
    ConfidentialAccountRecord, ConfidentialBatchRecord, ConfidentialHead, ConfidentialStore,
    ConfidentialTransactionRecord, PublicBalanceRecord, StoreError, StoredConfidentialTransaction, What,
};

const HEAD_COLUMNS: &str = "SELECT number, hash, version, accounts, accounts_root, ledger_root, state_root
    FROM confidential_batches";
const ACCOUNT_COLUMNS: &str = "SELECT account, owner, state FROM confidential_accounts";
const BALANCE_COLUMNS: &str = "SELECT owner, balance, nonce FROM public_balances";
const TRANSACTION_COLUMNS: &str = "SELECT number, version, id, item, position, applied, bytes, receipt, state_root FROM confidential_transactions";

fn narrow<T: TryFrom<u64>>(row: &Row<'_>, column: usize, what: What) -> Result<T, StoreError> {
    T::try_from(number(row, column, what)?).map_err(|_| corrupt(what, "number out of range"))
}

fn head_of_row(row: &Row<'_>) -> Result<ConfidentialHead, StoreError> {
    let what = What::ConfidentialBatch;
    Ok(ConfidentialHead {
        number: number(row, 0, what)?,
        hash: hash(row, 1, what)?,
        version: number(row, 2, what)?,
        accounts: narrow(row, 3, what)?,
        accounts_root: hash(row, 4, what)?,
        ledger_root: hash(row, 5, what)?,
        state_root: hash(row, 6, what)?,
    })
}

fn account_of_row(row: &Row<'_>) -> Result<ConfidentialAccountRecord, StoreError> {
    let what = What::ConfidentialAccount;
    Ok(ConfidentialAccountRecord {
        index: narrow(row, 0, what)?,
        owner: Address::from(array::<20>(row, 1, what)?),
        state: row.get(2)?,
    })
}

fn balance_of_row(row: &Row<'_>) -> Result<PublicBalanceRecord, StoreError> {
    let what = What::ConfidentialAccount;
    Ok(PublicBalanceRecord {
        owner: Address::from(array::<20>(row, 0, what)?),
        balance: u64::from_be_bytes(array(row, 1, what)?),
        nonce: u64::from_be_bytes(array(row, 2, what)?),
    })
}

/// The parties are not read back: they are for finding it.
fn transaction_of_row(row: &Row<'_>) -> Result<StoredConfidentialTransaction, StoreError> {
    let what = What::ConfidentialTransaction;
    Ok(StoredConfidentialTransaction {
        number: number(row, 0, what)?,
        record: ConfidentialTransactionRecord {
            version: number(row, 1, what)?,
            id: hash(row, 2, what)?,
            item: narrow(row, 3, what)?,
            position: narrow(row, 4, what)?,
            applied: row.get(5)?,
            bytes: row.get(6)?,
            receipt: row.get(7)?,
            state_root: hash(row, 8, what)?,
            parties: Vec::new(),
        },
    })
}

fn head(connection: &Connection) -> Result<Option<ConfidentialHead>, StoreError> {
    first(connection, &format!("{HEAD_COLUMNS} ORDER BY number DESC LIMIT 1"), [], head_of_row)
}

/// Whether the batch is still to be written; refuses one that contradicts what is stored or itself.
fn is_next(connection: &Connection, batch: &ConfidentialBatchRecord) -> Result<bool, StoreError> {
    let offered = batch.head;
    let what = What::ConfidentialBatch;
    let newest = head(connection)?;
    let (expected, version) =
        newest.map_or((0, 0), |newest| (newest.number.saturating_add(1), newest.version));
    if offered.number < expected {
        let sql = format!("{HEAD_COLUMNS} WHERE number = ?1");
        let stored = first(connection, &sql, [integer(offered.number, "batch number")?], head_of_row)?;
        return match stored {
            Some(stored) if stored == offered => Ok(false),
            stored => Err(StoreError::Conflict {
                what,
                number: offered.number,
                stored: stored.map_or(B256::ZERO, |stored| stored.state_root),
                offered: offered.state_root,
            }),
        };
    }
    if offered.number != expected {
        return Err(StoreError::NotNext { expected, offered: offered.number });
    }
    let inconsistent = |reason| StoreError::Inconsistent { what, number: offered.number, reason };
    let mut last = version;
    for transaction in &batch.transactions {
        if transaction.version != last.saturating_add(1) {
            return Err(inconsistent("its transactions do not follow one another"));
        }
        last = transaction.version;
    }
    if offered.version != last {
        return Err(inconsistent("its version is not that of its last transaction"));
    }
    let changes = !(batch.accounts.is_empty() && batch.nodes.is_empty() && batch.balances.is_empty());
    if newest.is_some() && last == version && changes {
        return Err(inconsistent("it changes something without a transaction"));
    }
    Ok(true)
}

fn put_batch(connection: &Connection, batch: &ConfidentialBatchRecord) -> Result<(), StoreError> {
    if !is_next(connection, batch)? {
        return Ok(());
    }
    let head = &batch.head;
    let (batch_number, version) = (integer(head.number, "batch number")?, integer(head.version, "version")?);
    let sql = "INSERT INTO confidential_batches
        (number, hash, version, accounts, accounts_root, ledger_root, state_root) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let (hash, accounts_root) = (head.hash.as_slice(), head.accounts_root.as_slice());
    let (ledger_root, state_root) = (head.ledger_root.as_slice(), head.state_root.as_slice());
    execute(
        connection,
        sql,
        params![batch_number, hash, version, head.accounts, accounts_root, ledger_root, state_root],
    )?;
    for account in &batch.accounts {
        let owner = account.owner.as_slice();
        let sql =
            "INSERT INTO confidential_owners (owner, account) VALUES (?1, ?2) ON CONFLICT (owner) DO NOTHING";
        execute(connection, sql, params![owner, account.index])?;
        let sql =
            "INSERT INTO confidential_accounts (account, version, owner, state) VALUES (?1, ?2, ?3, ?4)";
        execute(connection, sql, params![account.index, version, owner, account.state])?;
    }
    for node in &batch.nodes {
        let sql = "INSERT INTO confidential_nodes (level, place, version, hash) VALUES (?1, ?2, ?3, ?4)";
        execute(connection, sql, params![node.level, node.index, version, node.hash.as_slice()])?;
    }
    for balance in &batch.balances {
        let sql = "INSERT INTO public_balances (owner, version, balance, nonce) VALUES (?1, ?2, ?3, ?4)";
        let (amount, nonce) = (balance.balance.to_be_bytes(), balance.nonce.to_be_bytes());
        execute(connection, sql, params![balance.owner.as_slice(), version, amount, nonce])?;
    }
    for transaction in &batch.transactions {
        put_transaction(connection, batch_number, transaction)?;
    }
    Ok(())
}

fn put_transaction(
    connection: &Connection,
    batch: i64,
    transaction: &ConfidentialTransactionRecord,
) -> Result<(), StoreError> {
    let version = integer(transaction.version, "version")?;
    let sql = "INSERT INTO confidential_transactions
        (version, number, id, item, position, applied, bytes, receipt, state_root)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let ConfidentialTransactionRecord { id, item, position, applied, bytes, receipt, state_root, .. } =
        transaction;
    execute(
        connection,
        sql,
        params![
            version,
            batch,
            id.as_slice(),
            item,
            position,
            applied,
            bytes,
            receipt,
            state_root.as_slice()
        ],
    )?;
    for party in &transaction.parties {
        let sql = "INSERT INTO confidential_parties (party, version) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        execute(connection, sql, params![party.as_slice(), version])?;
    }
    Ok(())
}

/// A bound for `version <= ?`; above what can be stored there is nothing more to see.
fn bound(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

fn page(limit: usize) -> i64 {
    i64::try_from(limit.min(MAX_PAGE_RECORDS)).unwrap_or(i64::MAX)
}

fn prune(connection: &Connection, version: u64) -> Result<(), StoreError> {
    for (table, key) in [
        ("confidential_accounts", "later.account = old.account"),
        ("confidential_nodes", "later.level = old.level AND later.place = old.place"),
        ("public_balances", "later.owner = old.owner"),
    ] {
        let sql = format!(
            "DELETE FROM {table} AS old WHERE old.version < ?1 AND EXISTS (
                SELECT 1 FROM {table} AS later WHERE {key} AND later.version > old.version AND later.version <= ?1)"
        );
        execute(connection, &sql, [bound(version)])?;
    }
    // A batch whose accounts are gone answers no more for its version; the newest stays.
    let sql = "DELETE FROM confidential_batches WHERE version < ?1
        AND number > 0 AND number < (SELECT MAX(number) FROM confidential_batches)";
    execute(connection, sql, [bound(version)])?;
    Ok(())
}

#[async_trait]
impl ConfidentialStore for SqliteStore {
    async fn put_confidential_batch(&self, batch: ConfidentialBatchRecord) -> Result<(), StoreError> {
        self.write(move |connection| put_batch(connection, &batch)).await
    }

    async fn confidential_head(&self) -> Result<Option<ConfidentialHead>, StoreError> {
        self.read(head).await
    }

    async fn confidential_head_at(&self, version: u64) -> Result<Option<ConfidentialHead>, StoreError> {
        self.read(move |connection| {
            let sql = format!("{HEAD_COLUMNS} WHERE version = ?1 ORDER BY number DESC LIMIT 1");
            first(connection, &sql, [bound(version)], head_of_row)
        })
        .await
    }

    async fn confidential_batch_end(&self, version: u64) -> Result<Option<u64>, StoreError> {
        self.read(move |connection| {
            let sql = "SELECT version FROM confidential_batches WHERE version >= ?1 ORDER BY version LIMIT 1";
            first(connection, sql, [bound(version)], |row| number(row, 0, What::ConfidentialBatch))
        })
        .await
    }

    async fn confidential_account(
        &self,
        owner: Address,
        version: u64,
    ) -> Result<Option<ConfidentialAccountRecord>, StoreError> {
        self.read(move |connection| {
            let sql = format!(
                "{ACCOUNT_COLUMNS} WHERE account = (SELECT account FROM confidential_owners WHERE owner = ?1)
                 AND version <= ?2 ORDER BY version DESC LIMIT 1"
            );
            first(connection, &sql, params![owner.as_slice(), bound(version)], account_of_row)
        })
        .await
    }

    async fn confidential_accounts(
        &self,
        from: u32,
        limit: usize,
    ) -> Result<Vec<ConfidentialAccountRecord>, StoreError> {
        self.read(move |connection| {
            let sql = format!(
                "{ACCOUNT_COLUMNS} AS now WHERE account >= ?1 AND version = (
                    SELECT MAX(version) FROM confidential_accounts AS all_of_it WHERE all_of_it.account = now.account)
                 ORDER BY account LIMIT ?2"
            );
            all(connection, &sql, params![from, page(limit)], account_of_row)
        })
        .await
    }

    async fn confidential_nodes(
        &self,
        places: &[(u8, u32)],
        version: u64,
    ) -> Result<Vec<Option<B256>>, StoreError> {
        let places = places.to_vec();
        self.read(move |connection| {
            let sql = "SELECT hash FROM confidential_nodes WHERE level = ?1 AND place = ?2 AND version <= ?3
                ORDER BY version DESC LIMIT 1";
            let node = |(level, place): &(u8, u32)| {
                let at = params![level, place, bound(version)];
                first(connection, sql, at, |row| hash(row, 0, What::ConfidentialAccount))
            };
            places.iter().map(node).collect()
        })
        .await
    }

    async fn public_balances(&self) -> Result<Vec<PublicBalanceRecord>, StoreError> {
        self.read(|connection| {
            let sql = format!(
                "{BALANCE_COLUMNS} AS now WHERE version = (
                    SELECT MAX(version) FROM public_balances AS all_of_it WHERE all_of_it.owner = now.owner)
                 ORDER BY owner"
            );
            all(connection, &sql, [], balance_of_row)
        })
        .await
    }

    async fn public_balance(&self, owner: Address) -> Result<Option<PublicBalanceRecord>, StoreError> {
        self.read(move |connection| {
            let sql = format!("{BALANCE_COLUMNS} WHERE owner = ?1 ORDER BY version DESC LIMIT 1");
            first(connection, &sql, [owner.as_slice()], balance_of_row)
        })
        .await
    }

    async fn confidential_transaction(
        &self,
        id: B256,
    ) -> Result<Option<StoredConfidentialTransaction>, StoreError> {
        self.read(move |connection| {
            let sql =
                format!("{TRANSACTION_COLUMNS} WHERE id = ?1 ORDER BY applied DESC, version DESC LIMIT 1");
            first(connection, &sql, [id.as_slice()], transaction_of_row)
        })
        .await
    }

    async fn confidential_transactions_of(
        &self,
        party: Address,
        from: u64,
        limit: usize,
    ) -> Result<Vec<StoredConfidentialTransaction>, StoreError> {
        self.read(move |connection| {
            let sql = format!(
                "{TRANSACTION_COLUMNS} WHERE version IN (
                    SELECT version FROM confidential_parties WHERE party = ?1 AND version >= ?2
                    ORDER BY version LIMIT ?3)
                 ORDER BY version"
            );
            all(connection, &sql, params![party.as_slice(), bound(from), page(limit)], transaction_of_row)
        })
        .await
    }

    async fn confidential_transactions_in(&self, batch: u64) -> Result<u64, StoreError> {
        self.read(move |connection| {
            let sql = "SELECT COUNT(*) FROM confidential_transactions WHERE number = ?1";
            let counted =
                first(connection, sql, [bound(batch)], |row| number(row, 0, What::ConfidentialTransaction))?;
            Ok(counted.unwrap_or(0))
        })
        .await
    }

    async fn confidential_state_root(&self, version: u64) -> Result<Option<B256>, StoreError> {
        self.read(move |connection| {
            let what = What::ConfidentialTransaction;
            let sql = "SELECT state_root FROM confidential_transactions WHERE version = ?1";
            let found = first(connection, sql, [bound(version)], |row| hash(row, 0, what))?;
            if found.is_some() || version > 0 {
                return Ok(found);
            }
            let sql = "SELECT state_root FROM confidential_batches WHERE number = 0";
            first(connection, sql, [], |row| hash(row, 0, What::ConfidentialBatch))
        })
        .await
    }

    async fn prune_confidential(&self, version: u64) -> Result<(), StoreError> {
        self.write(move |connection| prune(connection, version)).await
    }
}
