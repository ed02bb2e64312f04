//! The coprocessor's tables.

use std::sync::Arc;

use alloy_primitives::{Address, B256};
use async_trait::async_trait;

use super::{
    FORGET_STEP_ROWS, MAX_PAGE_RECORDS, SqlStore,
    convert::{address, array, bytes, flag, hash, integer, narrow, number, text},
    reads,
    session::{Row, Session, Statements, Value, all, execute, first, values},
    writes::put_meta,
};
use crate::{
    ConfidentialAccountRecord, ConfidentialBatchRecord, ConfidentialHead, ConfidentialStore,
    ConfidentialTransactionRecord, PublicBalanceRecord, StoreError, StoredConfidentialTransaction, TreeName,
    What,
};

const HEAD_COLUMNS: &str =
    "SELECT number, hash, sequence, version, accounts, public_accounts, accounts_root, public_root,
    confidential, state_root FROM confidential_batches";
const ACCOUNT_COLUMNS: &str = "SELECT account, owner, state FROM confidential_accounts";
const BALANCE_COLUMNS: &str = "SELECT owner, account, balance, nonce FROM public_balances";
const TRANSACTION_COLUMNS: &str =
    "SELECT number, sequence, version, id, item, position, applied, bytes, receipt,
    state_root FROM confidential_transactions";

fn head_of_row(row: &dyn Row) -> Result<ConfidentialHead, StoreError> {
    let what = What::ConfidentialBatch;
    Ok(ConfidentialHead {
        number: number(row, 0, what)?,
        hash: hash(row, 1, what)?,
        sequence: number(row, 2, what)?,
        version: number(row, 3, what)?,
        accounts: narrow(row, 4, what)?,
        public_accounts: narrow(row, 5, what)?,
        accounts_root: hash(row, 6, what)?,
        public_root: hash(row, 7, what)?,
        confidential: u64::from_be_bytes(array(row, 8, what)?),
        state_root: hash(row, 9, what)?,
    })
}

fn account_of_row(row: &dyn Row) -> Result<ConfidentialAccountRecord, StoreError> {
    let what = What::ConfidentialAccount;
    Ok(ConfidentialAccountRecord {
        index: narrow(row, 0, what)?,
        owner: address(row, 1, what)?,
        state: bytes(row, 2, what)?,
    })
}

fn balance_of_row(row: &dyn Row) -> Result<PublicBalanceRecord, StoreError> {
    let what = What::ConfidentialAccount;
    Ok(PublicBalanceRecord {
        owner: address(row, 0, what)?,
        index: narrow(row, 1, what)?,
        balance: u64::from_be_bytes(array(row, 2, what)?),
        nonce: u64::from_be_bytes(array(row, 3, what)?),
    })
}

/// The parties are not read back: they are for finding it.
fn transaction_of_row(row: &dyn Row) -> Result<StoredConfidentialTransaction, StoreError> {
    let what = What::ConfidentialTransaction;
    Ok(StoredConfidentialTransaction {
        number: number(row, 0, what)?,
        record: ConfidentialTransactionRecord {
            sequence: number(row, 1, what)?,
            version: number(row, 2, what)?,
            id: hash(row, 3, what)?,
            item: narrow(row, 4, what)?,
            position: narrow(row, 5, what)?,
            applied: flag(row, 6, what)?,
            bytes: bytes(row, 7, what)?,
            receipt: text(row, 8, what)?,
            state_root: hash(row, 9, what)?,
            parties: Vec::new(),
        },
    })
}

pub(crate) fn head(session: &dyn Session) -> Result<Option<ConfidentialHead>, StoreError> {
    first(session, &format!("{HEAD_COLUMNS} ORDER BY number DESC LIMIT 1"), &[], head_of_row)
}

/// Whether the batch is still to be written; refuses one that contradicts what is stored or itself.
fn is_next(session: &dyn Session, batch: &ConfidentialBatchRecord) -> Result<bool, StoreError> {
    let offered = batch.head;
    let what = What::ConfidentialBatch;
    let newest = head(session)?;
    let expected = newest.map_or(0, |newest| newest.number.saturating_add(1));
    if offered.number < expected {
        let sql = format!("{HEAD_COLUMNS} WHERE number = ?1");
        let stored = first(session, &sql, &values![integer(offered.number, "batch number")?], head_of_row)?;
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
    let before = newest.map_or((0, 0), |newest| (newest.sequence, newest.version));
    let mut at = before;
    for transaction in &batch.transactions {
        at = (at.0.saturating_add(1), at.1.saturating_add(u64::from(transaction.applied)));
        if (transaction.sequence, transaction.version) != at {
            return Err(inconsistent("its transactions do not follow one another"));
        }
    }
    if (offered.sequence, offered.version) != at {
        return Err(inconsistent("its version is not that of its last transaction"));
    }
    let changes = !(batch.accounts.is_empty() && batch.nodes.is_empty() && batch.balances.is_empty());
    if newest.is_some() && before.1 == at.1 && changes {
        return Err(inconsistent("it changes something without a transaction"));
    }
    Ok(true)
}

fn put_batch(session: &dyn Session, batch: &ConfidentialBatchRecord) -> Result<(), StoreError> {
    if !is_next(session, batch)? {
        return Ok(());
    }
    let head = &batch.head;
    let (batch_number, version) = (integer(head.number, "batch number")?, integer(head.version, "version")?);
    let into = "confidential_batches
        (number, hash, sequence, version, accounts, public_accounts, accounts_root, public_root, confidential, state_root)";
    let mut statements = Statements::default();
    let row = values![
        batch_number,
        &head.hash,
        integer(head.sequence, "sequence")?,
        version,
        head.accounts,
        head.public_accounts,
        &head.accounts_root,
        &head.public_root,
        head.confidential.to_be_bytes(),
        &head.state_root,
    ];
    statements.insert(into, &[row], "");
    let owners: Vec<_> = batch.accounts.iter().map(|it| values![&it.owner, it.index]).collect();
    statements.insert("confidential_owners (owner, account)", &owners, "ON CONFLICT (owner) DO NOTHING");
    let accounts: Vec<_> =
        batch.accounts.iter().map(|it| values![it.index, version, &it.owner, it.state.as_slice()]).collect();
    statements.insert("confidential_accounts (account, version, owner, state)", &accounts, "");
    let nodes: Vec<_> =
        batch.nodes.iter().map(|it| values![tree(it.tree), it.level, it.index, version, &it.hash]).collect();
    statements.insert("confidential_nodes (tree, level, place, version, hash)", &nodes, "");
    let balances: Vec<_> = batch
        .balances
        .iter()
        .map(|it| values![&it.owner, version, it.index, it.balance.to_be_bytes(), it.nonce.to_be_bytes()])
        .collect();
    statements.insert("public_balances (owner, version, account, balance, nonce)", &balances, "");
    put_transactions(&mut statements, batch_number, &batch.transactions)?;
    statements.run(session)?;
    Ok(())
}

fn put_transactions<'a>(
    statements: &mut Statements<'a>,
    batch: i64,
    transactions: &'a [ConfidentialTransactionRecord],
) -> Result<(), StoreError> {
    let (mut rows, mut parties) = (Vec::with_capacity(transactions.len()), Vec::new());
    for it in transactions {
        let (sequence, version) = (integer(it.sequence, "sequence")?, integer(it.version, "version")?);
        rows.push(values![
            sequence,
            version,
            batch,
            &it.id,
            it.item,
            it.position,
            it.applied,
            it.bytes.as_slice(),
            it.receipt.as_str(),
            &it.state_root
        ]);
        parties.extend(it.parties.iter().map(|party| values![party, sequence]));
    }
    let into = "confidential_transactions
        (sequence, version, number, id, item, position, applied, bytes, receipt, state_root)";
    statements.insert(into, &rows, "");
    statements.insert("confidential_parties (party, sequence)", &parties, "ON CONFLICT DO NOTHING");
    Ok(())
}

/// How a tree is named in a row.
const fn tree(name: TreeName) -> u8 {
    match name {
        TreeName::Accounts => 0,
        TreeName::Public => 1,
    }
}

/// A bound for `version <= ?`; above what can be stored there is nothing more to see.
fn bound(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

fn page(limit: usize) -> i64 {
    i64::try_from(limit.min(MAX_PAGE_RECORDS)).unwrap_or(i64::MAX)
}

/// Transactions by sequence from a number on.
pub(crate) fn transactions_from(
    session: &dyn Session,
    from: u64,
    limit: usize,
) -> Result<Vec<StoredConfidentialTransaction>, StoreError> {
    let sql = format!("{TRANSACTION_COLUMNS} WHERE sequence >= ?1 ORDER BY sequence LIMIT ?2");
    all(session, &sql, &values![bound(from), page(limit)], transaction_of_row)
}

/// The state root of a version.
pub(crate) fn state_root(session: &dyn Session, version: u64) -> Result<Option<B256>, StoreError> {
    let what = What::ConfidentialTransaction;
    if version > 0 {
        let sql = "SELECT state_root FROM confidential_transactions WHERE version = ?1 LIMIT 1";
        return first(session, sql, &values![bound(version)], |row| hash(row, 0, what));
    }
    let sql = "SELECT state_root FROM confidential_batches WHERE number = 0";
    first(session, sql, &[], |row| hash(row, 0, What::ConfidentialBatch))
}

/// Rows of a table after which a step of
/// [`ConfidentialStore::prune_confidential`](crate::ConfidentialStore::prune_confidential) ends: how long it may keep other
/// writes waiting. The state of an account is large.
pub const PRUNE_STEP_ROWS: u32 = 1_024;

/// The last version up to which replaced states were forgotten, in `meta`.
const PRUNED: &str = "store.confidential_pruned_through";

/// Tables of states, with their keys; the version is the last part of each.
const ACCOUNT_KEY: (&str, [&str; 2]) = ("confidential_accounts", ["account", "version"]);
const NODE_KEY: (&str, [&str; 4]) = ("confidential_nodes", ["tree", "level", "place", "version"]);
const BALANCE_KEY: (&str, [&str; 2]) = ("public_balances", ["owner", "version"]);

fn pruned_through(session: &dyn Session) -> Result<u64, StoreError> {
    let Some(bytes) = reads::meta(session, PRUNED)? else { return Ok(0) };
    let fault = |_| StoreError::Corrupt { what: What::Meta, fault: format!("{PRUNED} is no number") };
    bytes.try_into().map(u64::from_be_bytes).map_err(fault)
}

/// Forgets a little more of what versions up to this one have replaced. Whether there is more.
fn prune(session: &dyn Session, version: u64) -> Result<bool, StoreError> {
    let Some(newest) = head(session)? else { return Ok(false) };
    let through = version.min(newest.version);
    // First the batches: one whose accounts are gone must answer no more for its version. The newest stays.
    if prune_batches(session, through, newest.number)? {
        return Ok(true);
    }
    let from = pruned_through(session)?;
    if from >= through {
        return Ok(false);
    }
    let mut last = through;
    for table in [ACCOUNT_KEY.0, NODE_KEY.0, BALANCE_KEY.0] {
        last = last.min(step_end(session, table, from, through)?);
    }
    let step = values![bound(from), bound(last)];
    forget_replaced(session, ACCOUNT_KEY, &step)?;
    forget_replaced(session, NODE_KEY, &step)?;
    forget_replaced(session, BALANCE_KEY, &step)?;
    put_meta(session, PRUNED, &last.to_be_bytes())?;
    Ok(last < through)
}

/// Deletes the first batches that end before a version. Whether there may be more.
fn prune_batches(session: &dyn Session, version: u64, newest: u64) -> Result<bool, StoreError> {
    let sql = "SELECT number FROM confidential_batches WHERE number > 0 ORDER BY number LIMIT 1";
    let Some(oldest) = first(session, sql, &[], |row| number(row, 0, What::ConfidentialBatch))? else {
        return Ok(false);
    };
    let end = newest.min(oldest.saturating_add(u64::from(FORGET_STEP_ROWS)));
    let sql = "DELETE FROM confidential_batches WHERE number > 0 AND number < ?1 AND version < ?2";
    let gone = execute(session, sql, &values![integer(end, "batch number")?, bound(version)])?;
    Ok(end < newest && gone == end - oldest)
}

/// The last version of a step after `from`, as far as a table is concerned: what a batch wrote stays together.
fn step_end(session: &dyn Session, table: &str, from: u64, through: u64) -> Result<u64, StoreError> {
    let version_of = |row: u32| {
        let sql = format!(
            "SELECT version FROM {table} WHERE version > ?1 AND version <= ?2
             ORDER BY version LIMIT 1 OFFSET {row}"
        );
        let range = values![bound(from), bound(through)];
        first(session, &sql, &range, |row| number(row, 0, What::ConfidentialAccount))
    };
    let Some(next) = version_of(PRUNE_STEP_ROWS)? else { return Ok(through) };
    let earliest = version_of(0)?.unwrap_or(next);
    Ok(earliest.max(next.saturating_sub(1)))
}

/// Deletes what the versions of a step have replaced.
fn forget_replaced<const N: usize>(
    session: &dyn Session,
    (table, key): (&str, [&str; N]),
    step: &[Value<'_>],
) -> Result<(), StoreError> {
    let columns = key.join(", ");
    let sql = format!("SELECT {columns} FROM {table} WHERE version > ?1 AND version <= ?2");
    let written = all(session, &sql, step, |row| {
        let mut written: [Value<'static>; N] = [const { Value::Null }; N];
        for (column, value) in written.iter_mut().enumerate() {
            *value = row.value(column)?.into_owned();
        }
        Ok(written)
    })?;
    let parts =
        key.map(|column| if column == "version" { "version < ?".into() } else { format!("{column} = ?") });
    let condition = parts.join(" AND ");
    let mut statements = Statements::default();
    statements.for_keys(&format!("DELETE FROM {table} WHERE"), &[], &condition, &written);
    statements.run(session).map(drop)
}

#[async_trait]
impl ConfidentialStore for SqlStore {
    async fn put_confidential_batch(&self, batch: Arc<ConfidentialBatchRecord>) -> Result<(), StoreError> {
        self.write(move |session| put_batch(session, &batch)).await
    }

    async fn confidential_head(&self) -> Result<Option<ConfidentialHead>, StoreError> {
        self.read(head).await
    }

    async fn confidential_head_at(&self, version: u64) -> Result<Option<ConfidentialHead>, StoreError> {
        self.read(move |session| {
            let sql = format!("{HEAD_COLUMNS} WHERE version = ?1 ORDER BY number DESC LIMIT 1");
            first(session, &sql, &values![bound(version)], head_of_row)
        })
        .await
    }

    async fn confidential_batch_end(&self, version: u64) -> Result<Option<u64>, StoreError> {
        self.read(move |session| {
            let sql = "SELECT version FROM confidential_batches WHERE version >= ?1 ORDER BY version LIMIT 1";
            first(session, sql, &values![bound(version)], |row| number(row, 0, What::ConfidentialBatch))
        })
        .await
    }

    async fn confidential_index(&self, owner: Address) -> Result<Option<u32>, StoreError> {
        self.read(move |session| {
            let sql = "SELECT account FROM confidential_owners WHERE owner = ?1";
            first(session, sql, &values![owner.as_slice()], |row| narrow(row, 0, What::ConfidentialAccount))
        })
        .await
    }

    async fn confidential_account(
        &self,
        owner: Address,
        version: u64,
    ) -> Result<Option<ConfidentialAccountRecord>, StoreError> {
        self.read(move |session| {
            let sql = format!(
                "{ACCOUNT_COLUMNS} WHERE account = (SELECT account FROM confidential_owners WHERE owner = ?1)
                 AND version <= ?2 ORDER BY version DESC LIMIT 1"
            );
            first(session, &sql, &values![owner.as_slice(), bound(version)], account_of_row)
        })
        .await
    }

    async fn confidential_accounts(
        &self,
        from: u32,
        limit: usize,
    ) -> Result<Vec<ConfidentialAccountRecord>, StoreError> {
        self.read(move |session| {
            let sql = format!(
                "{ACCOUNT_COLUMNS} AS now WHERE account >= ?1 AND version = (
                    SELECT MAX(version) FROM confidential_accounts AS all_of_it WHERE all_of_it.account = now.account)
                 ORDER BY account LIMIT ?2"
            );
            all(session, &sql, &values![from, page(limit)], account_of_row)
        })
        .await
    }

    async fn confidential_nodes(
        &self,
        of: TreeName,
        places: &[(u8, u32)],
        version: u64,
    ) -> Result<Vec<Option<B256>>, StoreError> {
        let places = places.to_vec();
        self.read(move |session| {
            let sql = "SELECT hash FROM confidential_nodes WHERE tree = ?1 AND level = ?2 AND place = ?3 AND version <= ?4
                ORDER BY version DESC LIMIT 1";
            let node = |(level, place): &(u8, u32)| {
                let at = values![tree(of), *level, *place, bound(version)];
                first(session, sql, &at, |row| hash(row, 0, What::ConfidentialAccount))
            };
            places.iter().map(node).collect()
        })
        .await
    }

    async fn public_balances(&self) -> Result<Vec<PublicBalanceRecord>, StoreError> {
        self.read(|session| {
            let sql = format!(
                "{BALANCE_COLUMNS} AS now WHERE version = (
                    SELECT MAX(version) FROM public_balances AS all_of_it WHERE all_of_it.owner = now.owner)
                 ORDER BY owner"
            );
            all(session, &sql, &[], balance_of_row)
        })
        .await
    }

    async fn public_balance(&self, owner: Address) -> Result<Option<PublicBalanceRecord>, StoreError> {
        self.read(move |session| {
            let sql = format!("{BALANCE_COLUMNS} WHERE owner = ?1 ORDER BY version DESC LIMIT 1");
            first(session, &sql, &values![owner.as_slice()], balance_of_row)
        })
        .await
    }

    async fn confidential_transaction(
        &self,
        id: B256,
    ) -> Result<Option<StoredConfidentialTransaction>, StoreError> {
        self.read(move |session| {
            let sql =
                format!("{TRANSACTION_COLUMNS} WHERE id = ?1 ORDER BY applied DESC, sequence DESC LIMIT 1");
            first(session, &sql, &values![id.as_slice()], transaction_of_row)
        })
        .await
    }

    async fn confidential_transactions_of(
        &self,
        party: Address,
        from: u64,
        limit: usize,
    ) -> Result<Vec<StoredConfidentialTransaction>, StoreError> {
        self.read(move |session| {
            let sql = format!(
                "{TRANSACTION_COLUMNS} WHERE sequence IN (
                    SELECT sequence FROM confidential_parties WHERE party = ?1 AND sequence >= ?2
                    ORDER BY sequence LIMIT ?3)
                 ORDER BY sequence"
            );
            all(session, &sql, &values![party.as_slice(), bound(from), page(limit)], transaction_of_row)
        })
        .await
    }

    async fn confidential_transactions_from(
        &self,
        from: u64,
        limit: usize,
    ) -> Result<Vec<StoredConfidentialTransaction>, StoreError> {
        self.read(move |session| transactions_from(session, from, limit)).await
    }

    async fn confidential_transactions_in(&self, batch: u64) -> Result<u64, StoreError> {
        self.read(move |session| {
            let sql = "SELECT COUNT(*) FROM confidential_transactions WHERE number = ?1";
            let counted = first(session, sql, &values![bound(batch)], |row| {
                number(row, 0, What::ConfidentialTransaction)
            })?;
            Ok(counted.unwrap_or(0))
        })
        .await
    }

    async fn confidential_state_root(&self, version: u64) -> Result<Option<B256>, StoreError> {
        self.read(move |session| state_root(session, version)).await
    }

    async fn prune_confidential(&self, version: u64) -> Result<bool, StoreError> {
        self.write(move |session| prune(session, version)).await
    }
}
