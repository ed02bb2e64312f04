//! Queries. Each runs on one connection and so sees one state.

use alloy_primitives::{Address, B256};
use blindfold_protocol::ledger::{Account, Held, LedgerEntry, LiveNonce};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::convert::{
    account, array, corrupt, hash, integer, number, optional_account, optional_number, structure,
};
use crate::{
    BatchRecord, BlockRecord, Heads, ItemLocation, ItemRecord, LedgerHead, PendingEnvelope, PostedRecord,
    StoreError, What,
};

/// The first row of a query, read by a function with our errors.
pub(super) fn first<T>(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}

pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

pub(super) fn pending_envelopes(connection: &Connection) -> Result<Vec<PendingEnvelope>, StoreError> {
    let sql = "SELECT id, bytes, arrived_ms, seal_by FROM envelopes WHERE number IS NULL ORDER BY arrived_ms, rowid";
    all(connection, sql, [], |row| {
        Ok(PendingEnvelope {
            id: hash(row, 0, What::Envelope)?,
            bytes: row.get(1)?,
            arrived_ms: number(row, 2, What::Envelope)?,
            seal_by: optional_number(row, 3, What::Envelope)?,
        })
    })
}

pub(super) fn envelope_outcome(connection: &Connection, id: &B256) -> Result<Option<String>, StoreError> {
    first(connection, "SELECT outcome FROM envelope_outcomes WHERE id = ?1", [id.as_slice()], |row| {
        Ok(row.get(0)?)
    })
}

pub(super) fn acknowledged(connection: &Connection, number: u64) -> Result<Option<B256>, StoreError> {
    let sql = "SELECT header_hash FROM acknowledgements WHERE number = ?1";
    first(connection, sql, [integer(number, "batch number")?], |row| hash(row, 0, What::Acknowledgement))
}

pub(super) fn was_acknowledged(connection: &Connection, number: u64, hash: B256) -> Result<bool, StoreError> {
    let sql = "
        SELECT 1 FROM acknowledgements WHERE number = ?1 AND header_hash = ?2 UNION ALL
        SELECT 1 FROM displaced_acknowledgements WHERE number = ?1 AND header_hash = ?2";
    let key = params![integer(number, "batch number")?, hash.as_slice()];
    Ok(first(connection, sql, key, |_| Ok(()))?.is_some())
}

pub(super) fn posted(connection: &Connection) -> Result<Option<PostedRecord>, StoreError> {
    let sql = "SELECT up_to_number, l1_transaction FROM posts ORDER BY up_to_number DESC LIMIT 1";
    first(connection, sql, [], |row| {
        Ok(PostedRecord {
            up_to_number: number(row, 0, What::Batch)?,
            l1_transaction: hash(row, 1, What::Batch)?,
        })
    })
}

/// Hash of a stored batch.
pub(super) fn batch_hash(connection: &Connection, number: u64) -> Result<Option<B256>, StoreError> {
    let sql = "SELECT hash FROM batches WHERE number = ?1";
    first(connection, sql, [integer(number, "batch number")?], |row| hash(row, 0, What::Batch))
}

pub(super) fn newest_batch(connection: &Connection) -> Result<Option<(u64, B256)>, StoreError> {
    let sql = "SELECT number, hash FROM batches ORDER BY number DESC LIMIT 1";
    first(connection, sql, [], |row| Ok((number(row, 0, What::Batch)?, hash(row, 1, What::Batch)?)))
}

pub(super) fn batches(
    connection: &Connection,
    from: u64,
    limit: usize,
) -> Result<Vec<BatchRecord>, StoreError> {
    let sql = "
        SELECT b.number, b.hash, b.sealed, c.certificate, r.release, h.hints, l.number IS NOT NULL
        FROM batches b
        LEFT JOIN certificates c USING (number) LEFT JOIN releases r USING (number) LEFT JOIN hints h USING (number)
        LEFT JOIN l1_headers l USING (number)
        WHERE b.number >= ?1 ORDER BY b.number LIMIT ?2";
    // Numbers above what is stored are asked for in good faith: there is nothing there.
    let Ok(from) = i64::try_from(from) else { return Ok(Vec::new()) };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut found = all(connection, sql, [from, limit], |row| {
        Ok(BatchRecord {
            number: number(row, 0, What::Batch)?,
            hash: hash(row, 1, What::Batch)?,
            sealed: structure(row, 2, What::Batch)?,
            items: Vec::new(),
            certificate: optional(row, 3, What::Certificate)?,
            release: optional(row, 4, What::Release)?,
            hints: optional(row, 5, What::Hints)?,
            by_l1: row.get(6)?,
        })
    })?;
    for record in &mut found {
        let sql = "SELECT id, fault FROM items WHERE number = ?1 ORDER BY item";
        record.items = all(connection, sql, [integer(record.number, "batch number")?], |row| {
            Ok(ItemRecord { id: hash(row, 0, What::Batch)?, fault: row.get(1)? })
        })?;
        if record.items.len() != record.sealed.items.len() {
            return Err(corrupt(What::Batch, "items and verdicts differ in number"));
        }
    }
    Ok(found)
}

fn optional<T: blindfold_protocol::Canonical>(
    row: &Row<'_>,
    column: usize,
    what: What,
) -> Result<Option<T>, StoreError> {
    if row.get_ref(column)? == rusqlite::types::ValueRef::Null {
        return Ok(None);
    }
    structure(row, column, what).map(Some)
}

pub(super) fn batch(connection: &Connection, number: u64) -> Result<Option<BatchRecord>, StoreError> {
    let found = batches(connection, number, 1)?;
    Ok(found.into_iter().next().filter(|record| record.number == number))
}

pub(super) fn header_hash(connection: &Connection, number: u64) -> Result<Option<B256>, StoreError> {
    let Ok(number) = i64::try_from(number) else { return Ok(None) };
    // The hash stands before the items, so their pages are not read.
    first(connection, "SELECT hash FROM batches WHERE number = ?1", [number], |row| hash(row, 0, What::Batch))
}

const CERTIFIED: &str = "SELECT MAX(number) FROM (
    SELECT MAX(number) AS number FROM certificates UNION ALL SELECT MAX(number) FROM l1_headers)";

const BLOCK_COLUMNS: &str = "SELECT second, number, hash, parent_hash, state_root, first_batch, last_batch, transactions, payload FROM blocks";

fn block_of_row(row: &Row<'_>) -> Result<BlockRecord, StoreError> {
    Ok(BlockRecord {
        second: number(row, 0, What::Block)?,
        number: number(row, 1, What::Block)?,
        hash: hash(row, 2, What::Block)?,
        parent_hash: hash(row, 3, What::Block)?,
        state_root: hash(row, 4, What::Block)?,
        first_batch: number(row, 5, What::Block)?,
        last_batch: number(row, 6, What::Block)?,
        transactions: row.get(7)?,
        payload: row.get(8)?,
    })
}

fn one_block(
    connection: &Connection,
    condition: &str,
    value: u64,
) -> Result<Option<BlockRecord>, StoreError> {
    let Ok(value) = i64::try_from(value) else { return Ok(None) };
    first(connection, &format!("{BLOCK_COLUMNS} {condition}"), [value], block_of_row)
}

pub(super) fn block(connection: &Connection, number: u64) -> Result<Option<BlockRecord>, StoreError> {
    one_block(connection, "WHERE number = ?1", number)
}

pub(super) fn block_by_second(
    connection: &Connection,
    second: u64,
) -> Result<Option<BlockRecord>, StoreError> {
    one_block(connection, "WHERE second = ?1", second)
}

pub(super) fn block_of_batch(connection: &Connection, batch: u64) -> Result<Option<BlockRecord>, StoreError> {
    let found = one_block(connection, "WHERE last_batch >= ?1 ORDER BY last_batch LIMIT 1", batch)?;
    Ok(found.filter(|block| block.first_batch <= batch))
}

pub(super) fn block_through(connection: &Connection, batch: u64) -> Result<Option<(u64, B256)>, StoreError> {
    let sql = "SELECT number, hash FROM blocks WHERE last_batch <= ?1 ORDER BY last_batch DESC LIMIT 1";
    let batch = i64::try_from(batch).unwrap_or(i64::MAX);
    first(connection, sql, [batch], |row| Ok((number(row, 0, What::Block)?, hash(row, 1, What::Block)?)))
}

pub(super) fn blocks(
    connection: &Connection,
    from: u64,
    limit: usize,
) -> Result<Vec<BlockRecord>, StoreError> {
    let Ok(from) = i64::try_from(from) else { return Ok(Vec::new()) };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    all(
        connection,
        &format!("{BLOCK_COLUMNS} WHERE number >= ?1 ORDER BY number LIMIT ?2"),
        [from, limit],
        block_of_row,
    )
}

fn newest(connection: &Connection, sql: &str, what: What) -> Result<Option<u64>, StoreError> {
    Ok(first(connection, sql, [], |row| optional_number(row, 0, what))?.flatten())
}

/// The newest certified number; 0 before the first.
pub(super) fn certified(connection: &Connection) -> Result<u64, StoreError> {
    Ok(newest(connection, CERTIFIED, What::Certificate)?.unwrap_or_default())
}

pub(super) fn heads(connection: &Connection) -> Result<Heads, StoreError> {
    // The batches before the first one without hints; without such a gap, all.
    let gapless = "
        SELECT MAX(number) FROM batches
        WHERE number < COALESCE((SELECT MIN(number) FROM batches_without_hints), 9223372036854775807)";
    let block = "SELECT number, hash FROM blocks ORDER BY number DESC LIMIT 1";
    Ok(Heads {
        sealed: newest_batch(connection)?,
        acknowledged: newest(
            connection,
            "SELECT MAX(number) FROM acknowledgements WHERE displaced_by IS NULL",
            What::Acknowledgement,
        )?,
        certified: newest(connection, CERTIFIED, What::Certificate)?,
        released: newest(connection, "SELECT MAX(number) FROM releases", What::Release)?,
        hinted: newest(connection, "SELECT MAX(number) FROM hints", What::Hints)?,
        hinted_through: newest(connection, gapless, What::Hints)?,
        block: first(connection, block, [], |row| {
            Ok((number(row, 0, What::Block)?, hash(row, 1, What::Block)?))
        })?,
        posted: newest(connection, "SELECT MAX(up_to_number) FROM posts", What::Batch)?,
    })
}

pub(super) fn envelope_location(
    connection: &Connection,
    id: &B256,
) -> Result<Option<ItemLocation>, StoreError> {
    let sql = "SELECT number, item, fault FROM items WHERE id = ?1 ORDER BY fault IS NOT NULL, number DESC, item LIMIT 1";
    first(connection, sql, [id.as_slice()], |row| {
        Ok(ItemLocation { number: number(row, 0, What::Batch)?, index: row.get(1)?, fault: row.get(2)? })
    })
}

pub(super) fn account_of(connection: &Connection, payer: &Address) -> Result<Option<Account>, StoreError> {
    let sql = "SELECT balance, withdrawn FROM accounts WHERE payer = ?1";
    first(connection, sql, [payer.as_slice()], |row| account(row, 0, 1))
}

pub(super) fn accounts(connection: &Connection) -> Result<Vec<(Address, Account)>, StoreError> {
    all(connection, "SELECT payer, balance, withdrawn FROM accounts ORDER BY payer", [], |row| {
        Ok((Address::from(array::<20>(row, 0, What::Account)?), account(row, 1, 2)?))
    })
}

pub(super) fn nonces(connection: &Connection) -> Result<Vec<LiveNonce>, StoreError> {
    all(connection, "SELECT payer, nonce, expiry FROM fee_nonces ORDER BY expiry, payer, nonce", [], |row| {
        Ok(LiveNonce {
            payer: Address::from(array::<20>(row, 0, What::Account)?),
            nonce: u64::from_be_bytes(array(row, 1, What::Account)?),
            expiry: number(row, 2, What::Account)?,
        })
    })
}

pub(super) fn ledger_floor(connection: &Connection) -> Result<Option<u64>, StoreError> {
    first(connection, "SELECT number FROM ledger_floor", [], |row| number(row, 0, What::Account))
}

pub(super) fn entries_changed_after(
    connection: &Connection,
    batch: u64,
    up_to: u64,
) -> Result<Option<Vec<LedgerEntry>>, StoreError> {
    let floor = match ledger_floor(connection)? {
        Some(floor) => floor,
        // Rows of what is certified are gone.
        None => certified(connection)?,
    };
    if batch < floor {
        return Ok(None);
    }
    // No number that is stored lies above what SQLite holds.
    let range = [batch, up_to].map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    // Of all rows of an entry the first one counts: what it was before the first batch that changed it. With MIN in a
    // grouped query SQLite takes the other columns from that row.
    let sql = "
        SELECT payer, balance_before, withdrawn_before, MIN(number) FROM account_changes
        WHERE number > ?1 AND number <= ?2 GROUP BY payer";
    let mut entries = all(connection, sql, range, |row| {
        let payer = Address::from(array::<20>(row, 0, What::Account)?);
        Ok(LedgerEntry::Account { payer, account: optional_account(row, 1, 2)? })
    })?;
    let sql = "
        SELECT payer, nonce, expiry_before, MIN(number) FROM nonce_changes
        WHERE number > ?1 AND number <= ?2 GROUP BY payer, nonce";
    entries.extend(all(connection, sql, range, |row| {
        Ok(LedgerEntry::Nonce {
            payer: Address::from(array::<20>(row, 0, What::Account)?),
            nonce: u64::from_be_bytes(array(row, 1, What::Account)?),
            expiry: optional_number(row, 2, What::Account)?,
        })
    })?);
    Ok(Some(entries))
}

/// The first number that [`crate::Store::rewind`] can go back to, but for what is not certified.
pub(super) fn way_back_floor(connection: &Connection) -> Result<u64, StoreError> {
    let ledgers = match ledger_floor(connection)? {
        Some(floor) => floor,
        None => certified(connection)?,
    };
    let held = newest(connection, "SELECT MAX(number) FROM held_floor", What::Account)?.unwrap_or_default();
    Ok(ledgers.min(certified(connection)?).max(held))
}

pub(super) fn held(connection: &Connection) -> Result<Vec<(u64, Vec<Held>)>, StoreError> {
    let rows =
        all(connection, "SELECT number, item, payer, amount FROM held ORDER BY number, item", [], |row| {
            let held = Held {
                item: row.get(1)?,
                payer: Address::from(array::<20>(row, 2, What::Account)?),
                amount: u128::from_be_bytes(array(row, 3, What::Account)?),
            };
            Ok((number(row, 0, What::Account)?, held))
        })?;
    let mut grouped: Vec<(u64, Vec<Held>)> = Vec::new();
    for (number, entry) in rows {
        match grouped.last_mut() {
            Some((last, entries)) if *last == number => entries.push(entry),
            _ => grouped.push((number, vec![entry])),
        }
    }
    Ok(grouped)
}

pub(super) fn held_for(connection: &Connection, batch: u64) -> Result<Vec<Held>, StoreError> {
    let sql = "SELECT item, payer, amount FROM held WHERE number = ?1 ORDER BY item";
    all(connection, sql, [integer(batch, "batch number")?], |row| {
        Ok(Held {
            item: row.get(0)?,
            payer: Address::from(array::<20>(row, 1, What::Account)?),
            amount: u128::from_be_bytes(array(row, 2, What::Account)?),
        })
    })
}

pub(super) fn ledger_head(connection: &Connection) -> Result<Option<LedgerHead>, StoreError> {
    let sql = "SELECT number, hash, head FROM batches ORDER BY number DESC LIMIT 1";
    first(connection, sql, [], |row| {
        Ok(LedgerHead {
            number: number(row, 0, What::Batch)?,
            hash: hash(row, 1, What::Batch)?,
            head: row.get(2)?,
        })
    })
}

pub(super) fn meta(connection: &Connection, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    Ok(statement.query_row(params![key], |row| row.get(0)).optional()?)
}
