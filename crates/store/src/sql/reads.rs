//! Queries. Each runs on one connection and so sees one state.

use alloy_primitives::{Address, B256};
use blindfold_protocol::ledger::{
    Account, FeeLedger, Held, LedgerBefore, LedgerBuilder, LedgerEntry, LiveNonce,
};

use super::{
    convert::{
        account, address, array, bytes, corrupt, flag, hash, held_from_bytes, integer, narrow, number,
        optional_account, optional_number, optional_structure, optional_text, structure, text,
    },
    session::{Row, Session, all, each, each_by_pages, first, values},
};
use crate::{
    Acknowledged, BatchRecord, BlockRecord, Heads, ItemLocation, ItemRecord, LedgerHead, PendingEnvelope,
    PostedRecord, StoreError, What, prune::pruned,
};

pub(crate) fn pending_envelopes(session: &dyn Session) -> Result<Vec<PendingEnvelope>, StoreError> {
    let sql = "SELECT id, bytes, arrived_ms, seal_by FROM envelopes WHERE number IS NULL ORDER BY arrived_ms, rowid";
    all(session, sql, &[], |row| {
        Ok(PendingEnvelope {
            id: hash(row, 0, What::Envelope)?,
            bytes: bytes(row, 1, What::Envelope)?,
            arrived_ms: number(row, 2, What::Envelope)?,
            seal_by: optional_number(row, 3, What::Envelope)?,
        })
    })
}

pub(crate) fn envelope_outcome(session: &dyn Session, id: &B256) -> Result<Option<String>, StoreError> {
    first(session, "SELECT outcome FROM envelope_outcomes WHERE id = ?1", &values![id], |row| {
        text(row, 0, What::Envelope)
    })
}

pub(crate) fn acknowledged(session: &dyn Session, number: u64) -> Result<Option<B256>, StoreError> {
    let sql = "SELECT header_hash FROM acknowledgements WHERE number = ?1";
    first(session, sql, &values![integer(number, "batch number")?], |row| hash(row, 0, What::Acknowledgement))
}

pub(crate) fn acknowledgement(
    session: &dyn Session,
    number: u64,
) -> Result<Option<Acknowledged>, StoreError> {
    let sql = "SELECT header_hash, origin, displaced_by FROM acknowledgements WHERE number = ?1";
    first(session, sql, &values![integer(number, "batch number")?], |row| {
        Ok(Acknowledged {
            hash: hash(row, 0, What::Acknowledgement)?,
            origin: self::number(row, 1, What::Acknowledgement)?,
            displaced: optional_number(row, 2, What::Acknowledgement)?.is_some(),
        })
    })
}

pub(crate) fn was_acknowledged(session: &dyn Session, number: u64, hash: B256) -> Result<bool, StoreError> {
    let sql = "
        SELECT 1 FROM acknowledgements WHERE number = ?1 AND header_hash = ?2 UNION ALL
        SELECT 1 FROM displaced_acknowledgements WHERE number = ?1 AND header_hash = ?2";
    let key = values![integer(number, "batch number")?, &hash];
    Ok(first(session, sql, &key, |_| Ok(()))?.is_some())
}

pub(crate) fn posted(session: &dyn Session) -> Result<Option<PostedRecord>, StoreError> {
    let sql = "SELECT up_to_number, l1_transaction FROM posts ORDER BY up_to_number DESC LIMIT 1";
    first(session, sql, &[], |row| {
        Ok(PostedRecord {
            up_to_number: number(row, 0, What::Batch)?,
            l1_transaction: hash(row, 1, What::Batch)?,
        })
    })
}

/// Hash of a stored batch.
pub(crate) fn batch_hash(session: &dyn Session, number: u64) -> Result<Option<B256>, StoreError> {
    let sql = "SELECT hash FROM batches WHERE number = ?1";
    first(session, sql, &values![integer(number, "batch number")?], |row| hash(row, 0, What::Batch))
}

pub(crate) fn newest_batch(session: &dyn Session) -> Result<Option<(u64, B256)>, StoreError> {
    let sql = "SELECT number, hash FROM batches ORDER BY number DESC LIMIT 1";
    first(session, sql, &[], |row| Ok((number(row, 0, What::Batch)?, hash(row, 1, What::Batch)?)))
}

pub(crate) fn batches(
    session: &dyn Session,
    from: u64,
    limit: usize,
) -> Result<Vec<BatchRecord>, StoreError> {
    let sql = "
        SELECT b.number, b.hash, b.sealed, c.certificate, r.release, h.hints, CASE WHEN l.number IS NULL THEN 0 ELSE 1 END
        FROM batches b
        LEFT JOIN certificates c USING (number) LEFT JOIN releases r USING (number) LEFT JOIN hints h USING (number)
        LEFT JOIN l1_headers l USING (number)
        WHERE b.number >= ?1 ORDER BY b.number LIMIT ?2";
    // Numbers above what is stored are asked for in good faith: there is nothing there.
    let Ok(from) = i64::try_from(from) else { return Ok(Vec::new()) };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = all(session, sql, &values![from, limit], |row| {
        let number = number(row, 0, What::Batch)?;
        if bytes(row, 2, What::Batch)?.is_empty() {
            return Err(StoreError::Pruned { number, kept_from: number });
        }
        Ok(BatchRecord {
            number,
            hash: hash(row, 1, What::Batch)?,
            sealed: structure(row, 2, What::Batch)?,
            items: Vec::new(),
            certificate: optional_structure(row, 3, What::Certificate)?,
            release: optional_structure(row, 4, What::Release)?,
            hints: optional_structure(row, 5, What::Hints)?,
            by_l1: flag(row, 6, What::Batch)?,
        })
    });
    let mut found = match found {
        Err(StoreError::Pruned { number, .. }) => return Err(pruned(session, number)),
        found => found?,
    };
    for record in &mut found {
        let sql = "SELECT id, fault FROM items WHERE number = ?1 ORDER BY item LIMIT ?2";
        // One more than there are would show that they do not fit; a file from elsewhere may have any number.
        let limit = i64::try_from(record.sealed.items.len()).unwrap_or(i64::MAX).saturating_add(1);
        let values = values![integer(record.number, "batch number")?, limit];
        record.items = all(session, sql, &values, |row| {
            Ok(ItemRecord { id: hash(row, 0, What::Batch)?, fault: optional_text(row, 1, What::Batch)? })
        })?;
        if record.items.len() != record.sealed.items.len() {
            return Err(corrupt(What::Batch, "items and verdicts differ in number"));
        }
    }
    Ok(found)
}

pub(crate) fn batch(session: &dyn Session, number: u64) -> Result<Option<BatchRecord>, StoreError> {
    if number == 0 {
        return Ok(None);
    }
    let found = batches(session, number, 1)?;
    Ok(found.into_iter().next().filter(|record| record.number == number))
}

pub(crate) fn header_hash(session: &dyn Session, number: u64) -> Result<Option<B256>, StoreError> {
    let Ok(number) = i64::try_from(number) else { return Ok(None) };
    // The hash stands before the items, so their pages are not read.
    first(session, "SELECT hash FROM batches WHERE number = ?1", &values![number], |row| {
        hash(row, 0, What::Batch)
    })
}

const CERTIFIED: &str = "SELECT MAX(number) FROM (
    SELECT MAX(number) AS number FROM certificates UNION ALL SELECT MAX(number) FROM l1_headers) AS of_either";

const BLOCK_COLUMNS: &str = "SELECT second, number, hash, parent_hash, state_root, first_batch, last_batch, transactions, payload FROM blocks";

fn block_of_row(row: &dyn Row) -> Result<BlockRecord, StoreError> {
    Ok(BlockRecord {
        second: number(row, 0, What::Block)?,
        number: number(row, 1, What::Block)?,
        hash: hash(row, 2, What::Block)?,
        parent_hash: hash(row, 3, What::Block)?,
        state_root: hash(row, 4, What::Block)?,
        first_batch: number(row, 5, What::Block)?,
        last_batch: number(row, 6, What::Block)?,
        transactions: text(row, 7, What::Block)?,
        payload: bytes(row, 8, What::Block)?,
    })
}

fn one_block(session: &dyn Session, condition: &str, value: u64) -> Result<Option<BlockRecord>, StoreError> {
    let Ok(value) = i64::try_from(value) else { return Ok(None) };
    first(session, &format!("{BLOCK_COLUMNS} {condition}"), &values![value], block_of_row)
}

pub(crate) fn block(session: &dyn Session, number: u64) -> Result<Option<BlockRecord>, StoreError> {
    one_block(session, "WHERE number = ?1", number)
}

pub(crate) fn block_by_second(session: &dyn Session, second: u64) -> Result<Option<BlockRecord>, StoreError> {
    one_block(session, "WHERE second = ?1", second)
}

pub(crate) fn block_of_batch(session: &dyn Session, batch: u64) -> Result<Option<BlockRecord>, StoreError> {
    let found = one_block(session, "WHERE last_batch >= ?1 ORDER BY last_batch LIMIT 1", batch)?;
    Ok(found.filter(|block| block.first_batch <= batch))
}

pub(crate) fn block_through(session: &dyn Session, batch: u64) -> Result<Option<(u64, B256)>, StoreError> {
    let sql = "SELECT number, hash FROM blocks WHERE last_batch <= ?1 ORDER BY last_batch DESC LIMIT 1";
    let batch = i64::try_from(batch).unwrap_or(i64::MAX);
    first(session, sql, &values![batch], |row| Ok((number(row, 0, What::Block)?, hash(row, 1, What::Block)?)))
}

pub(crate) fn blocks(session: &dyn Session, from: u64, limit: usize) -> Result<Vec<BlockRecord>, StoreError> {
    let Ok(from) = i64::try_from(from) else { return Ok(Vec::new()) };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    all(
        session,
        &format!("{BLOCK_COLUMNS} WHERE number >= ?1 ORDER BY number LIMIT ?2"),
        &values![from, limit],
        block_of_row,
    )
}

fn newest(session: &dyn Session, sql: &str, what: What) -> Result<Option<u64>, StoreError> {
    Ok(first(session, sql, &[], |row| optional_number(row, 0, what))?.flatten())
}

/// The newest certified number; 0 before the first.
pub(crate) fn certified(session: &dyn Session) -> Result<u64, StoreError> {
    Ok(newest(session, CERTIFIED, What::Certificate)?.unwrap_or_default())
}

pub(crate) fn heads(session: &dyn Session) -> Result<Heads, StoreError> {
    // The batches before the first one without hints; without such a gap, all.
    let gapless = "
        SELECT MAX(number) FROM batches
        WHERE number < COALESCE((SELECT MIN(number) FROM batches_without_hints), 9223372036854775807)";
    let block = "SELECT number, hash FROM blocks ORDER BY number DESC LIMIT 1";
    Ok(Heads {
        sealed: newest_batch(session)?,
        acknowledged: newest(
            session,
            "SELECT MAX(number) FROM acknowledgements WHERE displaced_by IS NULL",
            What::Acknowledgement,
        )?,
        certified: newest(session, CERTIFIED, What::Certificate)?,
        released: newest(session, "SELECT MAX(number) FROM releases", What::Release)?,
        hinted: newest(session, "SELECT MAX(number) FROM hints", What::Hints)?,
        hinted_through: newest(session, gapless, What::Hints)?,
        block: first(session, block, &[], |row| {
            Ok((number(row, 0, What::Block)?, hash(row, 1, What::Block)?))
        })?,
        posted: newest(session, "SELECT MAX(up_to_number) FROM posts", What::Batch)?,
    })
}

pub(crate) fn envelope_location(
    session: &dyn Session,
    id: &B256,
) -> Result<Option<ItemLocation>, StoreError> {
    // No id: all items that have none are stored with it.
    if id.is_zero() {
        return Ok(None);
    }
    // Of batches and blocks only what stands before their contents, so that the pages of those are not read.
    let sql = "
        SELECT i.number, i.item, i.fault, b.hash FROM items i JOIN batches b ON b.number = i.number
        WHERE i.id = ?1 ORDER BY i.fault IS NOT NULL, i.number DESC, i.item LIMIT 1";
    let found = first(session, sql, &values![id], |row| {
        Ok(ItemLocation {
            number: number(row, 0, What::Batch)?,
            index: narrow(row, 1, What::Batch)?,
            fault: optional_text(row, 2, What::Batch)?,
            header_hash: hash(row, 3, What::Batch)?,
            block: None,
        })
    })?;
    let Some(location) = found else { return Ok(None) };
    let sql =
        "SELECT number, hash, first_batch FROM blocks WHERE last_batch >= ?1 ORDER BY last_batch LIMIT 1";
    let key = values![integer(location.number, "batch number")?];
    let next = first(session, sql, &key, |row| {
        let block = (number(row, 0, What::Block)?, hash(row, 1, What::Block)?);
        Ok((block, number(row, 2, What::Block)?))
    })?;
    let block = next.filter(|(_, first)| *first <= location.number).map(|(block, _)| block);
    Ok(Some(ItemLocation { block, ..location }))
}

pub(crate) fn account_of(session: &dyn Session, payer: &Address) -> Result<Option<Account>, StoreError> {
    let sql = "SELECT balance, withdrawn FROM accounts WHERE payer = ?1";
    first(session, sql, &values![payer], |row| account(row, 0, 1))
}

/// The whole ledger, row by row.
pub(crate) fn ledger(session: &dyn Session) -> Result<FeeLedger, StoreError> {
    let mut ledger = LedgerBuilder::default();
    each_by_pages(session, "accounts", (&["payer", "balance", "withdrawn"], 1), |row| {
        ledger.account(address(row, 0, What::Account)?, account(row, 1, 2)?);
        Ok(())
    })?;
    each_by_pages(session, "fee_nonces", (&["expiry", "payer", "nonce"], 3), |row| {
        ledger.nonce(LiveNonce {
            payer: address(row, 1, What::Account)?,
            nonce: u64::from_be_bytes(array(row, 2, What::Account)?),
            expiry: number(row, 0, What::Account)?,
        });
        Ok(())
    })?;
    let mut of = (0, Vec::new());
    each_by_pages(session, "held", (&["number", "item", "payer", "amount"], 2), |row| {
        let number = number(row, 0, What::Account)?;
        if of.0 != number {
            let (number, held) = std::mem::replace(&mut of, (number, Vec::new()));
            ledger.held(number, held);
        }
        of.1.push(Held {
            item: narrow(row, 1, What::Account)?,
            payer: address(row, 2, What::Account)?,
            amount: u128::from_be_bytes(array(row, 3, What::Account)?),
        });
        Ok(())
    })?;
    ledger.held(of.0, of.1);
    Ok(ledger.finish())
}

pub(crate) fn ledger_floor(session: &dyn Session) -> Result<Option<u64>, StoreError> {
    first(session, "SELECT number FROM ledger_floor", &[], |row| number(row, 0, What::Account))
}

pub(crate) fn entries_changed_after(
    session: &dyn Session,
    batch: u64,
    up_to: u64,
) -> Result<Option<Vec<LedgerEntry>>, StoreError> {
    let floor = match ledger_floor(session)? {
        Some(floor) => floor,
        // Rows of what is certified are gone.
        None => certified(session)?,
    };
    if batch < floor {
        return Ok(None);
    }
    entries_before(session, batch, up_to).map(Some)
}

/// Accounts and nonces that batches above `batch` and up to `up_to` changed, as they were after `batch`.
fn entries_before(session: &dyn Session, batch: u64, up_to: u64) -> Result<Vec<LedgerEntry>, StoreError> {
    // No number that is stored lies above what the engines hold.
    let range = [batch, up_to].map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    // Of all rows of an entry the first one counts: what it was before the first batch that changed it.
    let mut entries: Vec<LedgerEntry> = Vec::new();
    let sql = "
        SELECT payer, balance_before, withdrawn_before FROM account_changes
        WHERE number > ?1 AND number <= ?2 ORDER BY payer, number";
    let mut last = None;
    each(session, sql, &values![range[0], range[1]], |row| {
        let payer = address(row, 0, What::Account)?;
        if last.replace(payer) != Some(payer) {
            entries.push(LedgerEntry::Account { payer, account: optional_account(row, 1, 2)? });
        }
        Ok(())
    })?;
    let sql = "
        SELECT payer, nonce, expiry_before FROM nonce_changes
        WHERE number > ?1 AND number <= ?2 ORDER BY payer, nonce, number";
    let mut last = None;
    each(session, sql, &values![range[0], range[1]], |row| {
        let (payer, nonce) =
            (address(row, 0, What::Account)?, u64::from_be_bytes(array(row, 1, What::Account)?));
        if last.replace((payer, nonce)) != Some((payer, nonce)) {
            let expiry = optional_number(row, 2, What::Account)?;
            entries.push(LedgerEntry::Nonce { payer, nonce, expiry });
        }
        Ok(())
    })?;
    Ok(entries)
}

pub(crate) fn ledger_before(session: &dyn Session, number: u64) -> Result<LedgerBefore, StoreError> {
    let before = number.saturating_sub(1);
    let entries = entries_before(session, before, u64::MAX)?;
    let mut held: Vec<(u64, Vec<Held>)> = Vec::new();
    let sql = "
        SELECT held_number, before FROM held_changes WHERE number > ?1 ORDER BY held_number, number";
    each(session, sql, &values![i64::try_from(before).unwrap_or(i64::MAX)], |row| {
        let of = self::number(row, 0, What::Account)?;
        if held.last().is_none_or(|(last, _)| *last != of) {
            held.push((of, held_from_bytes(&bytes(row, 1, What::Account)?)?));
        }
        Ok(())
    })?;
    Ok(LedgerBefore { entries, held })
}

/// The first number that [`crate::Store::rewind`] can go back to, but for what is not certified.
pub(crate) fn way_back_floor(session: &dyn Session) -> Result<u64, StoreError> {
    let ledgers = match ledger_floor(session)? {
        Some(floor) => floor,
        None => certified(session)?,
    };
    let held = newest(session, "SELECT MAX(number) FROM held_floor", What::Account)?.unwrap_or_default();
    Ok(ledgers.min(certified(session)?).max(held))
}

pub(crate) fn held_for(session: &dyn Session, batch: u64) -> Result<Vec<Held>, StoreError> {
    let sql = "SELECT item, payer, amount FROM held WHERE number = ?1 ORDER BY item";
    all(session, sql, &values![integer(batch, "batch number")?], |row| {
        Ok(Held {
            item: narrow(row, 0, What::Account)?,
            payer: address(row, 1, What::Account)?,
            amount: u128::from_be_bytes(array(row, 2, What::Account)?),
        })
    })
}

pub(crate) fn ledger_head(session: &dyn Session) -> Result<Option<LedgerHead>, StoreError> {
    let sql = "SELECT number, hash, head FROM batches ORDER BY number DESC LIMIT 1";
    first(session, sql, &[], |row| {
        Ok(LedgerHead {
            number: number(row, 0, What::Batch)?,
            hash: hash(row, 1, What::Batch)?,
            head: bytes(row, 2, What::Batch)?,
        })
    })
}

pub(crate) fn meta(session: &dyn Session, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
    first(session, "SELECT value FROM meta WHERE key = ?1", &values![key], |row| bytes(row, 0, What::Meta))
}
