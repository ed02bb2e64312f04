//! Writes. Each runs inside a savepoint: an error undoes all of it.

use std::collections::{HashMap, HashSet};

use alloy_primitives::{Address, B256};
use blindfold_protocol::{
    BatchHints, Certificate, Deployment, EnvelopeError, Release, SealedBatch, Signature65,
    codec::Canonical,
    ledger::{Account, AccountChange, Held, LedgerDelta, NonceChange},
};

use super::{
    convert::{
        account, address, array, bytes, flag, hash, held_from_bytes, held_to_bytes, integer, number,
        optional_account, optional_number,
    },
    reads,
    session::{
        Row, Session, Statements, all, execute, execute_each, first, for_keys, insert_returning, values,
    },
};
use crate::{
    BlockRecord, PendingEnvelope, PostedRecord, SealedRecord, StoreError, What, prune::pruned, transfer,
};

/// Longest value of [`crate::Store::put_meta`], in bytes.
pub const MAX_META_VALUE_BYTES: usize = 1 << 20;

pub(crate) fn bind(session: &dyn Session, deployment: &Deployment, role: &str) -> Result<(), StoreError> {
    transfer::check_usable(session)?;
    let deployment = format!("{} on L1 chain {}", deployment.inbox, deployment.l1_chain_id);
    for (name, offered) in [("deployment", deployment.as_str()), ("role", role)] {
        match reads::meta(session, name)? {
            None => put_meta(session, name, offered.as_bytes())?,
            Some(stored) if stored == offered.as_bytes() => {}
            Some(stored) => {
                let stored = String::from_utf8_lossy(&stored).into_owned();
                return Err(StoreError::Foreign { name, stored, offered: offered.to_owned() });
            }
        }
    }
    Ok(())
}

pub(crate) fn put_meta(session: &dyn Session, key: &str, value: &[u8]) -> Result<(), StoreError> {
    check_text(key, "meta key")?;
    if value.len() > MAX_META_VALUE_BYTES {
        return Err(StoreError::OutOfRange("meta value"));
    }
    let sql = "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    execute(session, sql, &values![key, value])?;
    Ok(())
}

/// PostgreSQL holds no NUL in a text.
fn check_text(text: &str, name: &'static str) -> Result<(), StoreError> {
    if text.contains('\0') { Err(StoreError::OutOfRange(name)) } else { Ok(()) }
}

pub(crate) fn put_envelope(session: &dyn Session, envelope: &PendingEnvelope) -> Result<(), StoreError> {
    let arrived_ms = integer(envelope.arrived_ms, "arrival time")?;
    let seal_by = envelope.seal_by.map(|number| integer(number, "promised number")).transpose()?;
    // An envelope that a stored batch accepted must not become pending again. A copy with another proof or signature has
    // the same id: the one that was admitted last waits, and may be promised. The same bytes wait again where a batch took
    // them and skipped them, whether or not it is certified; and what is promised for them now is what counts.
    let sql = "
        INSERT INTO envelopes (id, bytes, arrived_ms, seal_by)
        SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS (SELECT 1 FROM items WHERE id = ?1 AND fault IS NULL)
        ON CONFLICT (id) DO UPDATE
        SET bytes = excluded.bytes, arrived_ms = excluded.arrived_ms, seal_by = excluded.seal_by, number = NULL
        WHERE envelopes.bytes <> excluded.bytes OR envelopes.number IS NOT NULL
            OR (excluded.seal_by IS NOT NULL AND (envelopes.seal_by IS NULL OR envelopes.seal_by <> excluded.seal_by))";
    let envelope_values = values![&envelope.id, envelope.bytes.as_slice(), arrived_ms, seal_by];
    let id = values![&envelope.id];
    session.execute_all(&[(sql, &envelope_values), ("DELETE FROM envelope_outcomes WHERE id = ?1", &id)])?;
    Ok(())
}

const PUT_OUTCOME: &str = "
    INSERT INTO envelope_outcomes (id, outcome, number) VALUES (?1, ?2, ?3)
    ON CONFLICT (id) DO UPDATE SET outcome = excluded.outcome, number = excluded.number";

pub(crate) fn remove_envelopes(
    session: &dyn Session,
    ids: &[B256],
    outcome: &str,
    number: u64,
) -> Result<(), StoreError> {
    let number = integer(number, "batch number")?;
    check_text(outcome, "outcome")?;
    let keys: Vec<_> = ids.iter().map(|id| values![id]).collect();
    let removed = execute_each(session, "DELETE FROM envelopes WHERE id = ?1 AND number IS NULL", &keys)?;
    let outcomes: Vec<_> = ids
        .iter()
        .zip(removed)
        .filter(|(_, removed)| *removed > 0)
        .map(|(id, _)| values![id, outcome, number])
        .collect();
    execute_each(session, PUT_OUTCOME, &outcomes)?;
    Ok(())
}

pub(crate) fn prune_outcomes(session: &dyn Session, below: u64) -> Result<(), StoreError> {
    let below = integer(below, "batch number")?;
    execute(session, "DELETE FROM envelope_outcomes WHERE number < ?1", &values![below])?;
    Ok(())
}

pub(crate) fn put_acknowledged(
    session: &dyn Session,
    number: u64,
    offered: B256,
    origin: u64,
) -> Result<(), StoreError> {
    let row = integer(number, "batch number")?;
    let origin = integer(origin, "L1 origin")?;
    match reads::acknowledged(session, number)? {
        Some(stored) if stored == offered => Ok(()),
        Some(stored) => {
            // What was signed for a displaced branch binds no more, once.
            let sql = "UPDATE acknowledgements SET header_hash = ?2, origin = ?3, displaced_by = NULL
                       WHERE number = ?1 AND displaced_by IS NOT NULL";
            if execute(session, sql, &values![row, &offered, origin])? > 0 {
                let sql = "INSERT INTO displaced_acknowledgements (number, header_hash) VALUES (?1, ?2)
                           ON CONFLICT DO NOTHING";
                execute(session, sql, &values![row, &stored])?;
                return Ok(());
            }
            Err(StoreError::Conflict { what: What::Acknowledgement, number, stored, offered })
        }
        None => {
            let sql = "INSERT INTO acknowledgements (number, header_hash, origin) VALUES (?1, ?2, ?3)";
            execute(session, sql, &values![row, &offered, origin])?;
            Ok(())
        }
    }
}

/// What was signed for a later number with an origin before this header was made is without it below: it can never be
/// posted, and L1 excuses another one. With a later origin nothing would excuse it. For the header's number itself what was
/// signed stays the only one.
const DISPLACE: &str = "UPDATE acknowledgements SET displaced_by = ?1 WHERE number > ?1 AND origin < ?2";

pub(crate) fn displace_acknowledged(
    session: &dyn Session,
    made: u64,
    made_at: u64,
) -> Result<(), StoreError> {
    execute(session, DISPLACE, &values![integer(made, "batch number")?, integer(made_at, "L1 block")?])?;
    Ok(())
}

pub(crate) fn put_sealed(session: &dyn Session, record: &SealedRecord) -> Result<(), StoreError> {
    let number = record.sealed.header.number;
    let inconsistent = |reason| StoreError::Inconsistent { what: What::Batch, number, reason };
    if record.items.len() != record.sealed.items.len() {
        return Err(inconsistent("one verdict for each item is needed"));
    }
    if record.sealed.header.hash() != record.hash {
        return Err(inconsistent("the hash is not the header's"));
    }
    if record.signed {
        put_acknowledged(session, number, record.hash, record.sealed.header.l1_origin_number)?;
    }
    if let Some(stored) = reads::batch_hash(session, number)? {
        if stored == record.hash {
            return Ok(());
        }
        return Err(StoreError::Conflict { what: What::Batch, number, stored, offered: record.hash });
    }
    if let Some((newest, newest_hash)) = reads::newest_batch(session)? {
        if number != newest.saturating_add(1) {
            return Err(StoreError::NotNext { expected: newest.saturating_add(1), offered: number });
        }
        if record.sealed.header.parent_hash != newest_hash {
            return Err(inconsistent("the parent is not the newest stored batch"));
        }
    }
    let row = integer(number, "batch number")?;
    let mut statements = Statements::default();
    statements.add(
        "INSERT INTO batches (number, hash, sealed, head) VALUES (?1, ?2, ?3, ?4)",
        values![row, &record.hash, record.sealed.encode(), record.head.as_slice()],
    );
    statements.add("INSERT INTO batches_without_hints (number) VALUES (?1)", values![row]);
    let mut items = Vec::with_capacity(record.items.len());
    for (index, item) in record.items.iter().enumerate() {
        let index = i64::try_from(index).map_err(|_| StoreError::OutOfRange("item index"))?;
        items.push(values![row, index, &item.id, item.fault.as_deref()]);
    }
    statements.insert("items (number, item, id, fault)", &items, "");
    let taken = taken_envelopes(session, record)?;
    let taken: Vec<_> = taken.iter().map(|id| values![id]).collect();
    statements.for_keys("UPDATE envelopes SET number = ?1 WHERE", &values![row], "id = ?", &taken);
    change_ledger(session, &mut statements, row, &record.ledger)?;
    if let Some(made_at) = record.made_at {
        statements.add("INSERT INTO l1_headers (number) VALUES (?1)", values![row]);
        statements.add(DISPLACE, values![row, integer(made_at, "L1 block")?]);
    }
    statements.run(session)?;
    if record.made_at.is_some() {
        forget_way_back(session, row)?;
    }
    Ok(())
}

pub(crate) fn put_signature(
    session: &dyn Session,
    number: u64,
    signature: Signature65,
) -> Result<(), StoreError> {
    let what = What::Batch;
    let inconsistent = |reason| StoreError::Inconsistent { what, number, reason };
    let Some(record) = reads::batch(session, number)? else {
        return Err(StoreError::Missing { what, number });
    };
    if record.sealed.signature == signature {
        return Ok(());
    }
    if record.by_l1 {
        return Err(inconsistent("nobody signs a header that L1 made"));
    }
    if record.sealed.signature != Signature65::NONE {
        return Err(inconsistent("it is signed, with another signature"));
    }
    let sealed = SealedBatch { signature, ..record.sealed };
    let row = integer(number, "batch number")?;
    let sql = "UPDATE batches SET sealed = ?2 WHERE number = ?1";
    execute(session, sql, &values![row, sealed.encode()]).map(drop)
}

/// Those of the envelopes that wait which wait no more with this batch.
fn taken_envelopes(session: &dyn Session, record: &SealedRecord) -> Result<Vec<B256>, StoreError> {
    let mut wanted: HashMap<B256, Vec<(&[u8], bool)>> = HashMap::new();
    for (item, bytes) in record.items.iter().zip(&record.sealed.items) {
        // Skipped for another reason it may be valid in a later batch, for which it may be promised; spoilt by its payer
        // it still has to stand in the batch that it is promised for.
        let fault = item.fault.as_deref().and_then(EnvelopeError::from_name);
        let whenever = match fault {
            None | Some(EnvelopeError::Duplicate) => true,
            Some(fault) if fault.spoilt_by_payer() => false,
            Some(_) => continue,
        };
        wanted.entry(item.id).or_default().push((bytes, whenever));
    }
    let keys: Vec<_> = wanted.keys().map(|id| values![id]).collect();
    let mut taken = Vec::with_capacity(keys.len());
    let select = ("SELECT id, bytes, seal_by, number FROM envelopes WHERE", "id = ?", "");
    for_keys(session, select, &keys, |row| {
        let id = hash(row, 0, What::Envelope)?;
        if optional_number(row, 3, What::Envelope)?.is_some() {
            return Ok(());
        }
        let waiting = bytes(row, 1, What::Envelope)?;
        let due = optional_number(row, 2, What::Envelope)?
            .is_some_and(|seal_by| seal_by <= record.sealed.header.number);
        // A copy with another proof or signature has the same id: what waits is another item.
        let is_taken = |(bytes, whenever): &(&[u8], bool)| *bytes == waiting && (*whenever || due);
        if wanted.get(&id).is_some_and(|items| items.iter().any(is_taken)) {
            taken.push(id);
        }
        Ok(())
    })?;
    Ok(taken)
}

/// Changes the ledger, and keeps what it was before a batch. Refuses a change that does not start from what is stored.
fn change_ledger<'a>(
    session: &dyn Session,
    statements: &mut Statements<'a>,
    row: i64,
    delta: &'a LedgerDelta,
) -> Result<(), StoreError> {
    change_accounts(session, statements, row, &delta.accounts)?;
    let mut moves = Vec::with_capacity(delta.nonces.len());
    for NonceChange { payer, nonce, before, after } in &delta.nonces {
        let before = before.map(|expiry| integer(expiry, "expiry")).transpose()?;
        let after = after.map(|expiry| integer(expiry, "expiry")).transpose()?;
        moves.push(MovedNonce { payer: *payer, nonce: *nonce, before, after });
    }
    let rows: Vec<_> = delta
        .nonces
        .iter()
        .zip(&moves)
        .map(|(it, moved)| values![row, &it.payer, it.nonce.to_be_bytes(), moved.before, moved.after])
        .collect();
    statements.insert("nonce_changes (number, payer, nonce, expiry_before, expiry_after)", &rows, "");
    move_nonces(session, &moves)?;
    for change in &delta.held {
        if reads::held_for(session, change.number)? != sorted(&change.before) {
            return Err(StoreError::HeldMismatch(change.number));
        }
        let held_number = integer(change.number, "batch number")?;
        statements.add(
            "INSERT INTO held_changes (number, held_number, before) VALUES (?1, ?2, ?3)",
            values![row, held_number, held_to_bytes(&change.before)],
        );
        set_held(statements, held_number, &change.after);
    }
    Ok(())
}

/// Each account is changed where it is as the change says that it was before.
fn change_accounts<'a>(
    session: &dyn Session,
    statements: &mut Statements<'a>,
    row: i64,
    changes: &'a [AccountChange],
) -> Result<(), StoreError> {
    let keys: Vec<_> = changes.iter().map(|change| values![&change.payer]).collect();
    let mut stored = HashMap::with_capacity(changes.len());
    let select = ("SELECT payer, balance, withdrawn FROM accounts WHERE", "payer = ?", "");
    for_keys(session, select, &keys, |row| {
        stored.insert(address(row, 0, What::Account)?, account(row, 1, 2)?);
        Ok(())
    })?;
    if let Some(change) = changes.iter().find(|change| stored.get(&change.payer) != change.before.as_ref()) {
        return Err(StoreError::AccountMismatch(change.payer));
    }
    let befores: Vec<_> = changes
        .iter()
        .map(|AccountChange { payer, before, .. }| {
            let balance = before.map(|account| account.balance.to_be_bytes());
            values![row, payer, balance, before.map(|account| account.withdrawn.to_be_bytes())]
        })
        .collect();
    statements.insert("account_changes (number, payer, balance_before, withdrawn_before)", &befores, "");
    set_accounts(statements, changes.iter().map(|change| (&change.payer, change.after)));
    Ok(())
}

fn sorted(held: &[Held]) -> Vec<Held> {
    let mut held = held.to_vec();
    held.sort_by_key(|entry| entry.item);
    held
}

fn set_accounts<'a>(
    statements: &mut Statements<'a>,
    accounts: impl Iterator<Item = (&'a Address, Option<Account>)>,
) {
    let mut rows = Vec::new();
    for (payer, account) in accounts {
        match account {
            Some(account) => {
                rows.push(values![payer, account.balance.to_be_bytes(), account.withdrawn.to_be_bytes()]);
            }
            None => statements.add("DELETE FROM accounts WHERE payer = ?1", values![payer]),
        }
    }
    let then = "ON CONFLICT (payer) DO UPDATE SET balance = excluded.balance, withdrawn = excluded.withdrawn";
    statements.insert("accounts (payer, balance, withdrawn)", &rows, then);
}

/// A fee nonce with the expiries that it had and has.
struct MovedNonce {
    payer: Address,
    nonce: u64,
    before: Option<i64>,
    after: Option<i64>,
}

/// Moves nonces from one expiry to another. One that was free is not looked for under other expiries: the caller's
/// batch follows the stored one, and a restart compares the root of all that is stored.
fn move_nonces(session: &dyn Session, moves: &[MovedNonce]) -> Result<(), StoreError> {
    let keys = |expiry_of: fn(&MovedNonce) -> Option<i64>| -> Vec<_> {
        let moved = moves.iter().filter_map(|it| Some((it, expiry_of(it)?)));
        moved.map(|(it, expiry)| values![expiry, &it.payer, it.nonce.to_be_bytes()]).collect()
    };
    let (mut freed, mut used) = (HashSet::new(), HashSet::new());
    let delete = (
        "DELETE FROM fee_nonces WHERE",
        "(expiry = ? AND payer = ? AND nonce = ?)",
        "RETURNING payer, nonce",
    );
    for_keys(session, delete, &keys(|it| it.before), |row| {
        freed.insert(nonce_of(row)?);
        Ok(())
    })?;
    let then = "ON CONFLICT DO NOTHING RETURNING payer, nonce";
    insert_returning(session, "fee_nonces (expiry, payer, nonce)", &keys(|it| it.after), then, |row| {
        used.insert(nonce_of(row)?);
        Ok(())
    })?;
    let is_moved = |it: &MovedNonce| {
        let key = (it.payer, it.nonce);
        (it.before.is_none() || freed.contains(&key)) && (it.after.is_none() || used.contains(&key))
    };
    match moves.iter().find(|it| !is_moved(it)) {
        Some(it) => Err(StoreError::NonceMismatch { payer: it.payer, nonce: it.nonce }),
        None => Ok(()),
    }
}

fn nonce_of(row: &dyn Row) -> Result<(Address, u64), StoreError> {
    Ok((address(row, 0, What::Account)?, u64::from_be_bytes(array(row, 1, What::Account)?)))
}

fn set_held<'a>(statements: &mut Statements<'a>, number: i64, held: &'a [Held]) {
    statements.add("DELETE FROM held WHERE number = ?1", values![number]);
    let rows: Vec<_> = held
        .iter()
        .map(|entry| values![number, entry.item, &entry.payer, entry.amount.to_be_bytes()])
        .collect();
    statements.insert("held (number, item, payer, amount)", &rows, "");
}

pub(crate) fn revert_sealed(session: &dyn Session, batch: u64) -> Result<(), StoreError> {
    let Some((newest, _)) = reads::newest_batch(session)? else {
        return Err(StoreError::Missing { what: What::Batch, number: batch });
    };
    if newest != batch {
        return Err(StoreError::NotNewest { number: batch, newest });
    }
    let row = integer(batch, "batch number")?;
    let sql = "SELECT 1 FROM certificates WHERE number = ?1 UNION SELECT 1 FROM l1_headers WHERE number = ?1";
    let certified = first(session, sql, &values![row], |_| Ok(()))?;
    if certified.is_some() {
        return Err(StoreError::Certified(batch));
    }
    take_back(session, row)
}

/// Takes the newest batch back, by what is kept of the ledger before it.
fn take_back(session: &dyn Session, row: i64) -> Result<(), StoreError> {
    let sql = "SELECT payer, balance_before, withdrawn_before FROM account_changes WHERE number = ?1";
    let accounts = all(session, sql, &values![row], |change| {
        Ok((address(change, 0, What::Account)?, optional_account(change, 1, 2)?))
    })?;
    let mut statements = Statements::default();
    set_accounts(&mut statements, accounts.iter().map(|(payer, account)| (payer, *account)));
    let sql = "SELECT payer, nonce, expiry_before, expiry_after FROM nonce_changes WHERE number = ?1";
    let moves = all(session, sql, &values![row], |change| {
        let expiry = |column| {
            let expiry = optional_number(change, column, What::Account)?;
            expiry.map(|expiry| integer(expiry, "expiry")).transpose()
        };
        Ok(MovedNonce {
            payer: address(change, 0, What::Account)?,
            nonce: u64::from_be_bytes(array(change, 1, What::Account)?),
            before: expiry(3)?,
            after: expiry(2)?,
        })
    })?;
    move_nonces(session, &moves)?;
    let sql = "SELECT held_number, before FROM held_changes WHERE number = ?1";
    let held = all(session, sql, &values![row], |change| {
        let held_number = integer(number(change, 0, What::Account)?, "batch number")?;
        Ok((held_number, held_from_bytes(&bytes(change, 1, What::Account)?)?))
    })?;
    for (held_number, before) in &held {
        set_held(&mut statements, *held_number, before);
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
        statements.add(sql, values![row]);
    }
    statements.run(session)?;
    Ok(())
}

pub(crate) fn rewind(session: &dyn Session, through: u64, outcome: Option<&str>) -> Result<(), StoreError> {
    let kept_from = reads::way_back_floor(session)?;
    let newest = reads::newest_batch(session)?.map_or(0, |(newest, _)| newest);
    if newest <= through {
        return Ok(());
    }
    if through < kept_from {
        return Err(StoreError::Forgotten { number: through, kept_from });
    }
    for number in (through.saturating_add(1)..=newest).rev() {
        let row = integer(number, "batch number")?;
        release_envelopes(session, number, through, outcome)?;
        take_back(session, row)?;
        for sql in [
            "DELETE FROM certificates WHERE number = ?1",
            "DELETE FROM l1_headers WHERE number = ?1",
            // Without the header that L1 made nothing excuses a second one.
            "UPDATE acknowledgements SET displaced_by = NULL WHERE displaced_by = ?1",
        ] {
            execute(session, sql, &values![row])?;
        }
    }
    let row = integer(through, "batch number")?;
    for sql in ["DELETE FROM blocks WHERE last_batch > ?1", "DELETE FROM posts WHERE up_to_number > ?1"] {
        execute(session, sql, &values![row])?;
    }
    Ok(())
}

/// The envelopes that a batch accepted end with the outcome, or wait again without one. Forced ones are in the queue of L1.
fn release_envelopes(
    session: &dyn Session,
    number: u64,
    through: u64,
    outcome: Option<&str>,
) -> Result<(), StoreError> {
    let Some(record) = reads::batch(session, number)? else { return Ok(()) };
    let header = &record.sealed.header;
    let before = reads::batch(session, number.saturating_sub(1))?;
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
                execute(session, "DELETE FROM envelopes WHERE id = ?1", &values![id])?;
                execute(session, PUT_OUTCOME, &values![id, outcome, through])?;
            }
            // What was not certified is there with its promise.
            None => {
                let sql = "INSERT INTO envelopes (id, bytes, arrived_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
                execute(session, sql, &values![id, bytes.as_slice(), arrived_ms])?;
            }
        }
    }
    Ok(())
}

/// Checks that a batch is stored under the hash that a record names.
fn belongs(session: &dyn Session, number: u64, offered: B256) -> Result<i64, StoreError> {
    let sql = "SELECT hash, CASE WHEN LENGTH(sealed) = 0 THEN 1 ELSE 0 END FROM batches WHERE number = ?1";
    let found = first(session, sql, &values![integer(number, "batch number")?], |row| {
        Ok((hash(row, 0, What::Batch)?, flag(row, 1, What::Batch)?))
    })?;
    match found {
        None => Err(StoreError::Missing { what: What::Batch, number }),
        Some((stored, false)) if stored == offered => integer(number, "batch number"),
        Some((stored, true)) if stored == offered => Err(pruned(session, number)),
        Some((stored, _)) => Err(StoreError::Conflict { what: What::Batch, number, stored, offered }),
    }
}

pub(crate) fn put_certificate(session: &dyn Session, certificate: &Certificate) -> Result<(), StoreError> {
    let row = belongs(session, certificate.number, certificate.header_hash)?;
    let sql =
        "INSERT INTO certificates (number, certificate) VALUES (?1, ?2) ON CONFLICT (number) DO NOTHING";
    execute(session, sql, &values![row, certificate.encode()])?;
    forget_way_back(session, row)
}

/// What is certified certifies all ancestors: only [`rewind`] goes back before it, where the floor keeps what their
/// ledgers were.
fn forget_way_back(session: &dyn Session, row: i64) -> Result<(), StoreError> {
    let through = values![row];
    // With a floor they go by [`forget_ledgers`].
    if reads::ledger_floor(session)?.is_none() {
        session.execute_all(&[
            ("DELETE FROM account_changes WHERE number <= ?1", &through),
            ("DELETE FROM nonce_changes WHERE number <= ?1", &through),
            ("DELETE FROM held_changes WHERE number <= ?1", &through),
        ])?;
    }
    execute(session, "DELETE FROM envelopes WHERE number <= ?1", &through)?;
    Ok(())
}

pub(crate) fn keep_ledgers_from(session: &dyn Session, wanted: u64) -> Result<(), StoreError> {
    let floor = match reads::ledger_floor(session)? {
        Some(floor) if floor >= wanted => return Ok(()),
        Some(_) => wanted,
        // What was certified before is forgotten already.
        None => wanted.max(reads::newest_batch(session)?.map_or(0, |(newest, _)| newest)),
    };
    let sql = "INSERT INTO ledger_floor (\"only\", number) VALUES (1, ?1)
               ON CONFLICT (\"only\") DO UPDATE SET number = excluded.number";
    execute(session, sql, &values![integer(floor, "batch number")?])?;
    Ok(())
}

/// Rows of a table after which a step of [`Store::forget_ledgers`](crate::Store::forget_ledgers) ends: how long it may keep
/// other writes waiting.
pub const FORGET_STEP_ROWS: u32 = 8_192;

/// Forgets a few of the ledgers below the floor, the earliest first. Whether there are more.
pub(crate) fn forget_ledgers(session: &dyn Session) -> Result<bool, StoreError> {
    // What is not certified keeps its way back.
    let certified = reads::certified(session)?;
    let through = reads::ledger_floor(session)?.map_or(certified, |floor| floor.min(certified));
    let mut more = false;
    for table in ["account_changes", "nonce_changes", "held_changes"] {
        more |= forget_some(session, table, through)?;
    }
    Ok(more)
}

/// Deletes the first rows of a table up to a batch, whole batches each. Whether there are more.
fn forget_some(session: &dyn Session, table: &str, through: u64) -> Result<bool, StoreError> {
    let through = values![integer(through, "batch number")?];
    let batch_of = |row: u32| {
        let sql =
            format!("SELECT number FROM {table} WHERE number <= ?1 ORDER BY number LIMIT 1 OFFSET {row}");
        first(session, &sql, &through, |row| number(row, 0, What::Account))
    };
    let Some(earliest) = batch_of(0)? else { return Ok(false) };
    let next = batch_of(FORGET_STEP_ROWS)?;
    let sql = format!("DELETE FROM {table} WHERE number <= ?1");
    match next {
        Some(next) => {
            let last = earliest.max(next.saturating_sub(1));
            execute(session, &sql, &values![integer(last, "batch number")?])?;
        }
        None => {
            execute(session, &sql, &through)?;
        }
    }
    Ok(next.is_some())
}

/// Stores bytes for a batch, or checks that the stored ones say the same.
fn put_once(
    session: &dyn Session,
    what: What,
    (number, header_hash): (u64, B256),
    (select, insert): (&str, &str),
    encoded: &[u8],
    says_the_same: impl FnOnce(&[u8]) -> bool,
) -> Result<(), StoreError> {
    let row = belongs(session, number, header_hash)?;
    let stored = first(session, select, &values![row], |found| bytes(found, 0, what))?;
    match stored {
        None => {
            execute(session, insert, &values![row, encoded])?;
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

pub(crate) fn put_release(session: &dyn Session, release: &Release) -> Result<(), StoreError> {
    let sql = (
        "SELECT release FROM releases WHERE number = ?1",
        "INSERT INTO releases (number, release) VALUES (?1, ?2)",
    );
    let of = (release.number, release.header_hash);
    put_once(session, What::Release, of, sql, &release.encode(), |_| false)
}

pub(crate) fn put_hints(session: &dyn Session, hints: &BatchHints) -> Result<(), StoreError> {
    let sql =
        ("SELECT hints FROM hints WHERE number = ?1", "INSERT INTO hints (number, hints) VALUES (?1, ?2)");
    // Blinding factors may be stated beside them or not: the first ones stay.
    let the_same = |stored: &[u8]| BatchHints::decode(stored).is_ok_and(|stored| stored.says_the_same(hints));
    put_once(session, What::Hints, (hints.number, hints.header_hash), sql, &hints.encode(), the_same)?;
    let row = integer(hints.number, "batch number")?;
    execute(session, "DELETE FROM batches_without_hints WHERE number = ?1", &values![row])?;
    Ok(())
}

pub(crate) fn put_block(session: &dyn Session, block: &BlockRecord) -> Result<(), StoreError> {
    let BlockRecord { number: block_number, .. } = *block;
    if block.first_batch > block.last_batch {
        let reason = "the first batch comes after the last";
        return Err(StoreError::Inconsistent { what: What::Block, number: block_number, reason });
    }
    let (row, second) = (integer(block_number, "block number")?, integer(block.second, "second")?);
    let sql = "SELECT hash FROM blocks WHERE number = ?1 OR second = ?2";
    let stored = first(session, sql, &values![row, second], |found| hash(found, 0, What::Block))?;
    match stored {
        Some(stored) if stored == block.hash => return Ok(()),
        Some(stored) => {
            let (what, number, offered) = (What::Block, block_number, block.hash);
            return Err(StoreError::Conflict { what, number, stored, offered });
        }
        None => {}
    }
    execute(
        session,
        "INSERT INTO blocks
            (number, second, hash, parent_hash, state_root, first_batch, last_batch, transactions, payload)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        &values![
            row,
            second,
            &block.hash,
            &block.parent_hash,
            &block.state_root,
            integer(block.first_batch, "batch number")?,
            integer(block.last_batch, "batch number")?,
            block.transactions.as_str(),
            block.payload.as_slice()
        ],
    )?;
    Ok(())
}

pub(crate) fn revert_blocks(session: &dyn Session, from: u64) -> Result<(), StoreError> {
    let from = integer(from, "block number")?;
    execute(session, "DELETE FROM blocks WHERE number >= ?1", &values![from])?;
    Ok(())
}

pub(crate) fn put_posted(session: &dyn Session, posted: &PostedRecord) -> Result<(), StoreError> {
    let sql = "INSERT INTO posts (up_to_number, l1_transaction) VALUES (?1, ?2)
               ON CONFLICT (up_to_number) DO UPDATE SET l1_transaction = excluded.l1_transaction";
    let row = integer(posted.up_to_number, "batch number")?;
    execute(session, sql, &values![row, &posted.l1_transaction])?;
    Ok(())
}
