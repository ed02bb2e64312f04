//! Writes. Each runs inside a savepoint: an error undoes all of it.

use alloy_primitives::{Address, B256};
use blindfold_protocol::{
    BatchHints, Certificate, Deployment, EnvelopeError, Release,
    codec::Canonical,
    ledger::{Account, Held, LedgerDelta, NonceChange},
};
use rusqlite::{Connection, params};

use super::{
    convert::{array, hash, held_from_bytes, held_to_bytes, integer, number, optional_account},
    reads,
};
use crate::{BlockRecord, PendingEnvelope, PostedRecord, SealedRecord, StoreError, What};

/// Longest value of [`crate::Store::put_meta`], in bytes.
pub const MAX_META_VALUE_BYTES: usize = 1 << 20;

pub(super) fn execute(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> Result<usize, StoreError> {
    Ok(connection.prepare_cached(sql)?.execute(params)?)
}

pub(super) fn bind(connection: &Connection, deployment: &Deployment, role: &str) -> Result<(), StoreError> {
    let deployment = format!("{} on L1 chain {}", deployment.inbox, deployment.l1_chain_id);
    for (name, offered) in [("deployment", deployment.as_str()), ("role", role)] {
        match reads::meta(connection, name)? {
            None => put_meta(connection, name, offered.as_bytes())?,
            Some(stored) if stored == offered.as_bytes() => {}
            Some(stored) => {
                let stored = String::from_utf8_lossy(&stored).into_owned();
                return Err(StoreError::Foreign { name, stored, offered: offered.to_owned() });
            }
        }
    }
    Ok(())
}

pub(super) fn put_meta(connection: &Connection, key: &str, value: &[u8]) -> Result<(), StoreError> {
    if value.len() > MAX_META_VALUE_BYTES {
        return Err(StoreError::OutOfRange("meta value"));
    }
    let sql = "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    execute(connection, sql, params![key, value])?;
    Ok(())
}

pub(super) fn put_envelope(connection: &Connection, envelope: &PendingEnvelope) -> Result<(), StoreError> {
    let arrived_ms = integer(envelope.arrived_ms, "arrival time")?;
    let seal_by = envelope.seal_by.map(|number| integer(number, "promised number")).transpose()?;
    // An envelope that a stored batch accepted must not become pending again. A copy with another proof or signature has
    // the same id: the one that was admitted last waits, and may be promised.
    let sql = "
        INSERT INTO envelopes (id, bytes, arrived_ms, seal_by)
        SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS (SELECT 1 FROM items WHERE id = ?1 AND fault IS NULL)
        ON CONFLICT (id) DO UPDATE
        SET bytes = excluded.bytes, arrived_ms = excluded.arrived_ms, seal_by = excluded.seal_by, number = NULL
        WHERE bytes <> excluded.bytes";
    execute(connection, sql, params![envelope.id.as_slice(), envelope.bytes, arrived_ms, seal_by])?;
    execute(connection, "DELETE FROM envelope_outcomes WHERE id = ?1", [envelope.id.as_slice()])?;
    Ok(())
}

pub(super) fn remove_envelopes(
    connection: &Connection,
    ids: &[B256],
    outcome: &str,
    number: u64,
) -> Result<(), StoreError> {
    let number = integer(number, "batch number")?;
    for id in ids {
        let removed =
            execute(connection, "DELETE FROM envelopes WHERE id = ?1 AND number IS NULL", [id.as_slice()])?;
        if removed > 0 {
            let sql = "INSERT OR REPLACE INTO envelope_outcomes (id, outcome, number) VALUES (?1, ?2, ?3)";
            execute(connection, sql, params![id.as_slice(), outcome, number])?;
        }
    }
    Ok(())
}

pub(super) fn prune_outcomes(connection: &Connection, below: u64) -> Result<(), StoreError> {
    let below = integer(below, "batch number")?;
    execute(connection, "DELETE FROM envelope_outcomes WHERE number < ?1", [below])?;
    Ok(())
}

pub(super) fn put_acknowledged(
    connection: &Connection,
    number: u64,
    offered: B256,
    origin: u64,
) -> Result<(), StoreError> {
    let row = integer(number, "batch number")?;
    let origin = integer(origin, "L1 origin")?;
    match reads::acknowledged(connection, number)? {
        Some(stored) if stored == offered => Ok(()),
        Some(stored) => {
            // What was signed for a displaced branch binds no more, once.
            let sql = "UPDATE acknowledgements SET header_hash = ?2, origin = ?3, displaced_by = NULL
                       WHERE number = ?1 AND displaced_by IS NOT NULL";
            if execute(connection, sql, params![row, offered.as_slice(), origin])? > 0 {
                let sql =
                    "INSERT OR IGNORE INTO displaced_acknowledgements (number, header_hash) VALUES (?1, ?2)";
                execute(connection, sql, params![row, stored.as_slice()])?;
                return Ok(());
            }
            Err(StoreError::Conflict { what: What::Acknowledgement, number, stored, offered })
        }
        None => {
            let sql = "INSERT INTO acknowledgements (number, header_hash, origin) VALUES (?1, ?2, ?3)";
            execute(connection, sql, params![row, offered.as_slice(), origin])?;
            Ok(())
        }
    }
}

pub(super) fn put_sealed(connection: &Connection, record: &SealedRecord) -> Result<(), StoreError> {
    let number = record.sealed.header.number;
    let inconsistent = |reason| StoreError::Inconsistent { what: What::Batch, number, reason };
    if record.items.len() != record.sealed.items.len() {
        return Err(inconsistent("one verdict for each item is needed"));
    }
    if record.sealed.header.hash() != record.hash {
        return Err(inconsistent("the hash is not the header's"));
    }
    if record.signed {
        put_acknowledged(connection, number, record.hash, record.sealed.header.l1_origin_number)?;
    }
    if let Some(stored) = reads::batch_hash(connection, number)? {
        if stored == record.hash {
            return Ok(());
        }
        return Err(StoreError::Conflict { what: What::Batch, number, stored, offered: record.hash });
    }
    if let Some((newest, newest_hash)) = reads::newest_batch(connection)? {
        if number != newest.saturating_add(1) {
            return Err(StoreError::NotNext { expected: newest.saturating_add(1), offered: number });
        }
        if record.sealed.header.parent_hash != newest_hash {
            return Err(inconsistent("the parent is not the newest stored batch"));
        }
    }
    let row = integer(number, "batch number")?;
    execute(
        connection,
        "INSERT INTO batches (number, hash, sealed, head) VALUES (?1, ?2, ?3, ?4)",
        params![row, record.hash.as_slice(), record.sealed.encode(), record.head],
    )?;
    execute(connection, "INSERT INTO batches_without_hints (number) VALUES (?1)", [row])?;
    for (index, (item, bytes)) in record.items.iter().zip(&record.sealed.items).enumerate() {
        let index = i64::try_from(index).map_err(|_| StoreError::OutOfRange("item index"))?;
        execute(
            connection,
            "INSERT INTO items (number, item, id, fault) VALUES (?1, ?2, ?3, ?4)",
            params![row, index, item.id.as_slice(), item.fault],
        )?;
        // Skipped for another reason it may be valid in a later batch, for which it may be promised; spoilt by its payer
        // it still has to stand in the batch that it is promised for.
        let fault = item.fault.as_deref().and_then(EnvelopeError::from_name);
        let taken = match fault {
            None | Some(EnvelopeError::Duplicate) => true,
            Some(fault) if fault.spoilt_by_payer() => false,
            Some(_) => continue,
        };
        execute(
            connection,
            // A copy with another proof or signature has the same id: what waits is another item.
            "UPDATE envelopes SET number = ?1
             WHERE id = ?2 AND bytes = ?3 AND number IS NULL AND (?4 OR seal_by <= ?1)",
            params![row, item.id.as_slice(), bytes, taken],
        )?;
    }
    apply_ledger(connection, row, &record.ledger)?;
    if let Some(made_at) = record.made_at {
        execute(connection, "INSERT INTO l1_headers (number) VALUES (?1)", [row])?;
        // What was signed for a later number with an origin before this header was made is without it below: it can never
        // be posted, and L1 excuses another one. With a later origin nothing would excuse it. For this number itself what
        // was signed stays the only one.
        execute(
            connection,
            "UPDATE acknowledgements SET displaced_by = ?1 WHERE number > ?1 AND origin < ?2",
            params![row, integer(made_at, "L1 block")?],
        )?;
        forget_way_back(connection, row)?;
    }
    Ok(())
}

fn apply_ledger(connection: &Connection, row: i64, delta: &LedgerDelta) -> Result<(), StoreError> {
    for change in &delta.accounts {
        if reads::account_of(connection, &change.payer)? != change.before {
            return Err(StoreError::AccountMismatch(change.payer));
        }
        let before = change.before.as_ref();
        execute(
            connection,
            "INSERT INTO account_changes (number, payer, balance_before, withdrawn_before) VALUES (?1, ?2, ?3, ?4)",
            params![
                row,
                change.payer.as_slice(),
                before.map(|account| account.balance.to_be_bytes()),
                before.map(|account| account.withdrawn.to_be_bytes())
            ],
        )?;
        set_account(connection, change.payer.as_slice(), change.after.as_ref())?;
    }
    for change in &delta.nonces {
        let NonceChange { payer, nonce, before, after } = *change;
        let before = before.map(|expiry| integer(expiry, "expiry")).transpose()?;
        let after = after.map(|expiry| integer(expiry, "expiry")).transpose()?;
        execute(
            connection,
            "INSERT INTO nonce_changes (number, payer, nonce, expiry_before, expiry_after) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![row, payer.as_slice(), nonce.to_be_bytes(), before, after],
        )?;
        set_nonce(connection, &payer, nonce, before, after)?;
    }
    for change in &delta.held {
        if reads::held_for(connection, change.number)? != sorted(&change.before) {
            return Err(StoreError::HeldMismatch(change.number));
        }
        let held_number = integer(change.number, "batch number")?;
        execute(
            connection,
            "INSERT INTO held_changes (number, held_number, before) VALUES (?1, ?2, ?3)",
            params![row, held_number, held_to_bytes(&change.before)],
        )?;
        set_held(connection, held_number, &change.after)?;
    }
    Ok(())
}

fn sorted(held: &[Held]) -> Vec<Held> {
    let mut held = held.to_vec();
    held.sort_by_key(|entry| entry.item);
    held
}

fn set_account(connection: &Connection, payer: &[u8], account: Option<&Account>) -> Result<(), StoreError> {
    match account {
        Some(account) => {
            let sql = "
                INSERT INTO accounts (payer, balance, withdrawn) VALUES (?1, ?2, ?3)
                ON CONFLICT (payer) DO UPDATE SET balance = excluded.balance, withdrawn = excluded.withdrawn";
            let (balance, withdrawn) = (account.balance.to_be_bytes(), account.withdrawn.to_be_bytes());
            execute(connection, sql, params![payer, balance, withdrawn])?;
        }
        None => {
            execute(connection, "DELETE FROM accounts WHERE payer = ?1", [payer])?;
        }
    }
    Ok(())
}

/// Moves a nonce from one expiry to another. One that was free is not looked for under other expiries: the caller's
/// batch follows the stored one, and a restart compares the root of all that is stored.
fn set_nonce(
    connection: &Connection,
    payer: &Address,
    nonce: u64,
    before: Option<i64>,
    after: Option<i64>,
) -> Result<(), StoreError> {
    let mismatch = || StoreError::NonceMismatch { payer: *payer, nonce };
    let key = nonce.to_be_bytes();
    if let Some(expiry) = before {
        let sql = "DELETE FROM fee_nonces WHERE expiry = ?1 AND payer = ?2 AND nonce = ?3";
        if execute(connection, sql, params![expiry, payer.as_slice(), key])? != 1 {
            return Err(mismatch());
        }
    }
    if let Some(expiry) = after {
        let sql = "INSERT INTO fee_nonces (expiry, payer, nonce) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        if execute(connection, sql, params![expiry, payer.as_slice(), key])? != 1 {
            return Err(mismatch());
        }
    }
    Ok(())
}

fn set_held(connection: &Connection, number: i64, held: &[Held]) -> Result<(), StoreError> {
    execute(connection, "DELETE FROM held WHERE number = ?1", [number])?;
    for entry in held {
        execute(
            connection,
            "INSERT INTO held (number, item, payer, amount) VALUES (?1, ?2, ?3, ?4)",
            params![number, entry.item, entry.payer.as_slice(), entry.amount.to_be_bytes()],
        )?;
    }
    Ok(())
}

pub(super) fn revert_sealed(connection: &Connection, batch: u64) -> Result<(), StoreError> {
    let Some((newest, _)) = reads::newest_batch(connection)? else {
        return Err(StoreError::Missing { what: What::Batch, number: batch });
    };
    if newest != batch {
        return Err(StoreError::NotNewest { number: batch, newest });
    }
    let row = integer(batch, "batch number")?;
    let sql = "SELECT 1 FROM certificates WHERE number = ?1 UNION SELECT 1 FROM l1_headers WHERE number = ?1";
    let certified = reads::first(connection, sql, [row], |_| Ok(()))?;
    if certified.is_some() {
        return Err(StoreError::Certified(batch));
    }
    take_back(connection, row)
}

/// Takes the newest batch back, by what is kept of the ledger before it.
fn take_back(connection: &Connection, row: i64) -> Result<(), StoreError> {
    let sql = "SELECT payer, balance_before, withdrawn_before FROM account_changes WHERE number = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([row])?;
    while let Some(change) = rows.next()? {
        let payer: [u8; 20] = array(change, 0, What::Account)?;
        set_account(connection, &payer, optional_account(change, 1, 2)?.as_ref())?;
    }
    let sql = "SELECT payer, nonce, expiry_before, expiry_after FROM nonce_changes WHERE number = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([row])?;
    while let Some(change) = rows.next()? {
        let payer = Address::from(array::<20>(change, 0, What::Account)?);
        let nonce = u64::from_be_bytes(array(change, 1, What::Account)?);
        set_nonce(connection, &payer, nonce, change.get(3)?, change.get(2)?)?;
    }
    let mut statement =
        connection.prepare_cached("SELECT held_number, before FROM held_changes WHERE number = ?1")?;
    let mut rows = statement.query([row])?;
    while let Some(change) = rows.next()? {
        let held_number = integer(number(change, 0, What::Account)?, "batch number")?;
        let before: Vec<u8> = change.get(1)?;
        set_held(connection, held_number, &held_from_bytes(&before)?)?;
    }
    for sql in [
        "DELETE FROM account_changes WHERE number = ?1",
        "DELETE FROM held_changes WHERE number = ?1",
        "DELETE FROM nonce_changes WHERE number = ?1",
        "DELETE FROM items WHERE number = ?1",
        "DELETE FROM releases WHERE number = ?1",
        "DELETE FROM hints WHERE number = ?1",
        "DELETE FROM batches_without_hints WHERE number = ?1",
        "DELETE FROM batches WHERE number = ?1",
        "UPDATE envelopes SET number = NULL WHERE number = ?1",
    ] {
        execute(connection, sql, [row])?;
    }
    Ok(())
}

pub(super) fn rewind(connection: &Connection, through: u64, outcome: Option<&str>) -> Result<(), StoreError> {
    let kept_from = reads::way_back_floor(connection)?;
    let newest = reads::newest_batch(connection)?.map_or(0, |(newest, _)| newest);
    if newest <= through {
        return Ok(());
    }
    if through < kept_from {
        return Err(StoreError::Forgotten { number: through, kept_from });
    }
    for number in (through.saturating_add(1)..=newest).rev() {
        let row = integer(number, "batch number")?;
        release_envelopes(connection, number, through, outcome)?;
        take_back(connection, row)?;
        for sql in [
            "DELETE FROM certificates WHERE number = ?1",
            "DELETE FROM l1_headers WHERE number = ?1",
            // Without the header that L1 made nothing excuses a second one.
            "UPDATE acknowledgements SET displaced_by = NULL WHERE displaced_by = ?1",
        ] {
            execute(connection, sql, [row])?;
        }
    }
    let row = integer(through, "batch number")?;
    for sql in ["DELETE FROM blocks WHERE last_batch > ?1", "DELETE FROM posts WHERE up_to_number > ?1"] {
        execute(connection, sql, [row])?;
    }
    Ok(())
}

/// The envelopes that a batch accepted end with the outcome, or wait again without one. Forced ones are in the queue of L1.
fn release_envelopes(
    connection: &Connection,
    number: u64,
    through: u64,
    outcome: Option<&str>,
) -> Result<(), StoreError> {
    let Some(record) = reads::batch(connection, number)? else { return Ok(()) };
    let header = &record.sealed.header;
    let before = reads::batch(connection, number.saturating_sub(1))?;
    let forced = header.forced_cursor.saturating_sub(before.map_or(0, |it| it.sealed.header.forced_cursor));
    let forced = usize::try_from(forced).unwrap_or(usize::MAX);
    let arrived_ms = integer(header.timestamp_ms, "arrival time")?;
    let through = integer(through, "batch number")?;
    for (item, bytes) in record.items.iter().zip(&record.sealed.items).skip(forced) {
        if item.fault.is_some() {
            continue;
        }
        let id = item.id.as_slice();
        match outcome {
            Some(outcome) => {
                execute(connection, "DELETE FROM envelopes WHERE id = ?1", [id])?;
                let sql =
                    "INSERT OR REPLACE INTO envelope_outcomes (id, outcome, number) VALUES (?1, ?2, ?3)";
                execute(connection, sql, params![id, outcome, through])?;
            }
            // What was not certified is there with its promise.
            None => {
                let sql = "INSERT INTO envelopes (id, bytes, arrived_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
                execute(connection, sql, params![id, bytes, arrived_ms])?;
            }
        }
    }
    Ok(())
}

/// Checks that a batch is stored under the hash that a record names.
fn belongs(connection: &Connection, number: u64, offered: B256) -> Result<i64, StoreError> {
    match reads::batch_hash(connection, number)? {
        None => Err(StoreError::Missing { what: What::Batch, number }),
        Some(stored) if stored == offered => integer(number, "batch number"),
        Some(stored) => Err(StoreError::Conflict { what: What::Batch, number, stored, offered }),
    }
}

pub(super) fn put_certificate(connection: &Connection, certificate: &Certificate) -> Result<(), StoreError> {
    let row = belongs(connection, certificate.number, certificate.header_hash)?;
    let sql =
        "INSERT INTO certificates (number, certificate) VALUES (?1, ?2) ON CONFLICT (number) DO NOTHING";
    execute(connection, sql, params![row, certificate.encode()])?;
    forget_way_back(connection, row)
}

/// What is certified certifies all ancestors: only [`rewind`] goes back before it, where the floor keeps what their
/// ledgers were.
fn forget_way_back(connection: &Connection, row: i64) -> Result<(), StoreError> {
    for sql in [
        "DELETE FROM account_changes WHERE number <= MIN(?1, COALESCE((SELECT number FROM ledger_floor), ?1))",
        "DELETE FROM nonce_changes WHERE number <= MIN(?1, COALESCE((SELECT number FROM ledger_floor), ?1))",
        "DELETE FROM held_changes WHERE number <= MIN(?1, COALESCE((SELECT number FROM ledger_floor), ?1))",
        "DELETE FROM envelopes WHERE number <= ?1",
    ] {
        execute(connection, sql, [row])?;
    }
    Ok(())
}

pub(super) fn keep_ledgers_from(connection: &Connection, wanted: u64) -> Result<(), StoreError> {
    let floor = match reads::ledger_floor(connection)? {
        Some(floor) if floor >= wanted => return Ok(()),
        Some(_) => wanted,
        // What was certified before is forgotten already.
        None => wanted.max(reads::newest_batch(connection)?.map_or(0, |(newest, _)| newest)),
    };
    let row = integer(floor, "batch number")?;
    let sql = "INSERT INTO ledger_floor (only, number) VALUES (1, ?1)
               ON CONFLICT (only) DO UPDATE SET number = excluded.number";
    execute(connection, sql, [row])?;
    // What is not certified keeps its way back.
    let certified = reads::certified(connection)?;
    let row = integer(certified.min(floor), "batch number")?;
    execute(connection, "DELETE FROM account_changes WHERE number <= ?1", [row])?;
    execute(connection, "DELETE FROM nonce_changes WHERE number <= ?1", [row])?;
    execute(connection, "DELETE FROM held_changes WHERE number <= ?1", [row])?;
    Ok(())
}

/// Stores bytes for a batch, or checks that the stored ones say the same.
fn put_once(
    connection: &Connection,
    what: What,
    (number, header_hash): (u64, B256),
    (select, insert): (&str, &str),
    encoded: &[u8],
    says_the_same: impl FnOnce(&[u8]) -> bool,
) -> Result<(), StoreError> {
    let row = belongs(connection, number, header_hash)?;
    let stored = reads::first(connection, select, [row], |found| Ok(found.get::<_, Vec<u8>>(0)?))?;
    match stored {
        None => {
            execute(connection, insert, params![row, encoded])?;
            Ok(())
        }
        Some(stored) if stored == encoded || says_the_same(&stored) => Ok(()),
        Some(stored) => {
            let (stored, offered) =
                (alloy_primitives::keccak256(&stored), alloy_primitives::keccak256(encoded));
            Err(StoreError::Conflict { what, number, stored, offered })
        }
    }
}

pub(super) fn put_release(connection: &Connection, release: &Release) -> Result<(), StoreError> {
    let sql = (
        "SELECT release FROM releases WHERE number = ?1",
        "INSERT INTO releases (number, release) VALUES (?1, ?2)",
    );
    let of = (release.number, release.header_hash);
    put_once(connection, What::Release, of, sql, &release.encode(), |_| false)
}

pub(super) fn put_hints(connection: &Connection, hints: &BatchHints) -> Result<(), StoreError> {
    let sql =
        ("SELECT hints FROM hints WHERE number = ?1", "INSERT INTO hints (number, hints) VALUES (?1, ?2)");
    // Blinding factors may be stated beside them or not: the first ones stay.
    let the_same = |stored: &[u8]| BatchHints::decode(stored).is_ok_and(|stored| stored.says_the_same(hints));
    put_once(connection, What::Hints, (hints.number, hints.header_hash), sql, &hints.encode(), the_same)?;
    let row = integer(hints.number, "batch number")?;
    execute(connection, "DELETE FROM batches_without_hints WHERE number = ?1", [row])?;
    Ok(())
}

pub(super) fn put_block(connection: &Connection, block: &BlockRecord) -> Result<(), StoreError> {
    let BlockRecord { number: block_number, .. } = *block;
    if block.first_batch > block.last_batch {
        let reason = "the first batch comes after the last";
        return Err(StoreError::Inconsistent { what: What::Block, number: block_number, reason });
    }
    let (row, second) = (integer(block_number, "block number")?, integer(block.second, "second")?);
    let sql = "SELECT hash FROM blocks WHERE number = ?1 OR second = ?2";
    let stored = reads::first(connection, sql, [row, second], |found| hash(found, 0, What::Block))?;
    match stored {
        Some(stored) if stored == block.hash => return Ok(()),
        Some(stored) => {
            let (what, number, offered) = (What::Block, block_number, block.hash);
            return Err(StoreError::Conflict { what, number, stored, offered });
        }
        None => {}
    }
    execute(
        connection,
        "INSERT INTO blocks
            (number, second, hash, parent_hash, state_root, first_batch, last_batch, transactions, payload)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            row,
            second,
            block.hash.as_slice(),
            block.parent_hash.as_slice(),
            block.state_root.as_slice(),
            integer(block.first_batch, "batch number")?,
            integer(block.last_batch, "batch number")?,
            block.transactions,
            block.payload
        ],
    )?;
    Ok(())
}

pub(super) fn revert_blocks(connection: &Connection, from: u64) -> Result<(), StoreError> {
    let from = integer(from, "block number")?;
    execute(connection, "DELETE FROM blocks WHERE number >= ?1", [from])?;
    Ok(())
}

pub(super) fn put_posted(connection: &Connection, posted: &PostedRecord) -> Result<(), StoreError> {
    let sql = "INSERT OR REPLACE INTO posts (up_to_number, l1_transaction) VALUES (?1, ?2)";
    let row = integer(posted.up_to_number, "batch number")?;
    execute(connection, sql, params![row, posted.l1_transaction.as_slice()])?;
    Ok(())
}
