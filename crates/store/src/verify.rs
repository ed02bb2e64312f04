//! Whether what a store holds fits together.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::B256;

use crate::{
    BatchRecord, BlockRecord, MAX_PAGE_RECORDS, SqlStore, StoreError, What,
    prune::pruned_through,
    sql::{
        confidential,
        convert::{hash, integer, number, optional_number},
        reads,
        session::{Session, Value, each, first, values},
    },
};

/// Faults that are named; of more the number is told.
const MAX_FAULTS: usize = 100;
/// Records that are read at once.
const PAGE: usize = MAX_PAGE_RECORDS;
/// What a sequencer's store is bound to.
const SEQUENCER: &str = "sequencer";

/// What was looked at, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Deployment and role that the store is bound to.
    pub bound: Option<(String, String)>,
    /// The last batch that was pruned; 0 before the first.
    pub pruned_through: u64,
    /// First and last number of the batches that are whole.
    pub batches: Option<(u64, u64)>,
    /// Items in all of them.
    pub items: u64,
    /// Batches with a certificate.
    pub certificates: u64,
    /// Batches with hints.
    pub hints: u64,
    /// First and last number of the blocks.
    pub blocks: Option<(u64, u64)>,
    /// Confidential transactions.
    pub confidential_transactions: u64,
    /// What does not fit, at most a hundred of them.
    pub faults: Vec<String>,
    /// How many more there are.
    pub more_faults: u64,
}

impl Verified {
    fn fault(&mut self, what: impl Into<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(what.into());
        } else {
            self.more_faults += 1;
        }
    }

    fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.fault(what());
        }
    }
}

/// Reads everything, as it is at one moment, and checks that it fits together: every record decodes, headers follow one
/// another and have the hashes that they are stored by, certificates, releases and hints name their headers, what still waits
/// for hints is what has none, a sequencer signed what it stores, blocks follow one another and hold the batches in order, the
/// ledger has the root that the newest header names.
///
/// Not checked: signatures and proofs, items against their header's root, what it takes to go back to earlier ledgers. A role
/// checks the first two before it stores anything, and the root of the ledger after it went back.
///
/// `progress` hears of each batch number that was reached.
///
/// # Errors
/// Where the store cannot be read at all; a record that does not decode is a fault, and ends the look at its table.
pub async fn verify(
    store: &SqlStore,
    progress: impl Fn(u64) + Send + 'static,
) -> Result<Verified, StoreError> {
    store
        .read(move |session| {
            let mut found = Verified::default();
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            if let (Some(deployment), Some(role)) =
                (reads::meta(session, "deployment")?, reads::meta(session, "role")?)
            {
                found.bound = Some((text(deployment), text(role)));
            }
            batches(session, &mut found, &progress)?;
            blocks(session, &mut found)?;
            ledger(session, &mut found)?;
            confidential(session, &mut found)?;
            Ok(found)
        })
        .await
}

/// What was signed for each number, but for what gave way.
fn signed(session: &dyn Session) -> Result<BTreeMap<u64, B256>, StoreError> {
    let mut signed = BTreeMap::new();
    let sql = "SELECT number, header_hash, displaced_by FROM acknowledgements";
    each(session, sql, &[], |row| {
        if optional_number(row, 2, What::Acknowledgement)?.is_none() {
            let number = number(row, 0, What::Acknowledgement)?;
            signed.insert(number, hash(row, 1, What::Acknowledgement)?);
        }
        Ok(())
    })?;
    Ok(signed)
}

/// The batches that are listed as waiting for hints.
fn waiting(session: &dyn Session) -> Result<BTreeSet<u64>, StoreError> {
    let mut waiting = BTreeSet::new();
    each(session, "SELECT number FROM batches_without_hints", &[], |row| {
        waiting.insert(number(row, 0, What::Hints)?);
        Ok(())
    })?;
    Ok(waiting)
}

/// A record that does not decode is told; other failures end it all.
fn readable<T>(found: &mut Verified, read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(damage @ StoreError::Corrupt { .. }) => {
            found.fault(damage.to_string());
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

fn batches(session: &dyn Session, found: &mut Verified, progress: &dyn Fn(u64)) -> Result<(), StoreError> {
    // A member may have signed another header than the one that was certified; a sequencer never.
    let signs_all = found.bound.as_ref().is_some_and(|(_, role)| role == SEQUENCER);
    let signed = if signs_all { signed(session)? } else { BTreeMap::new() };
    let mut waiting = waiting(session)?;
    let mut before = pruned(session, found)?;
    let mut from = found.pruned_through.saturating_add(1);
    loop {
        let Some(page) = readable(found, reads::batches(session, from, PAGE))? else { return Ok(()) };
        let Some(last) = page.last() else { break };
        from = last.number.saturating_add(1);
        for record in &page {
            batch(found, record, before);
            let (number, hash) = (record.number, record.hash);
            found.check(waiting.remove(&number) == record.hints.is_none(), || {
                format!("whether batch {number} waits for hints is stored wrongly")
            });
            if let Some(other) = signed.get(&number).filter(|signed| **signed != hash && !record.by_l1) {
                found.fault(format!("{other} was signed for number {number}, and batch {hash} is stored"));
            }
            before = Some((number, hash));
        }
        progress(from - 1);
    }
    for number in waiting {
        found.fault(format!("batch {number} waits for hints, and is not stored"));
    }
    Ok(())
}

/// What is left of pruned batches; gives the last one, which the first whole one has to follow.
fn pruned(session: &dyn Session, found: &mut Verified) -> Result<Option<(u64, B256)>, StoreError> {
    let through = readable(found, pruned_through(session))?.unwrap_or_default();
    if through == 0 {
        return Ok(None);
    }
    found.pruned_through = through;
    let with = values![integer(through, "batch number")?];
    let sql =
        "SELECT COUNT(*), CAST(COALESCE(SUM(LENGTH(sealed)), 0) AS BIGINT) FROM batches WHERE number <= ?1";
    let counted =
        first(session, sql, &with, |row| Ok((number(row, 0, What::Batch)?, number(row, 1, What::Batch)?)))?;
    let (rows, bytes) = counted.unwrap_or_default();
    found.check(rows == through, || {
        format!("{rows} batches up to {through} are stored, which was pruned last")
    });
    found.check(bytes == 0, || format!("not all batches up to {through} are pruned"));
    for table in ["items", "certificates", "releases", "hints", "batches_without_hints"] {
        let sql = format!("SELECT MIN(number) FROM {table} WHERE number <= ?1");
        let left = first(session, &sql, &with, |row| optional_number(row, 0, What::Batch))?.flatten();
        if let Some(left) = left {
            found.fault(format!("batch {left} was pruned, and {table} has records of it"));
        }
    }
    Ok(reads::batch_hash(session, through)?.map(|hash| (through, hash)))
}

fn batch(found: &mut Verified, record: &BatchRecord, before: Option<(u64, B256)>) {
    let (number, header) = (record.number, &record.sealed.header);
    found.batches = Some((found.batches.map_or(number, |(first, _)| first), number));
    found.items += record.items.len() as u64;
    found.certificates += u64::from(record.certificate.is_some());
    found.hints += u64::from(record.hints.is_some());
    found.check(header.number == number, || format!("batch {number} holds the header of {}", header.number));
    found.check(header.hash() == record.hash, || {
        format!("batch {number} is stored by {}, and its header's hash is {}", record.hash, header.hash())
    });
    if let Some((previous, hash)) = before {
        found.check(number == previous + 1, || {
            format!("the batches between {previous} and {number} are missing")
        });
        found
            .check(header.parent_hash == hash, || format!("batch {number} does not follow batch {previous}"));
    }
    found.check(record.sealed.items.len() == header.envelope_count as usize, || {
        format!(
            "batch {number} holds {} items, and its header says {}",
            record.sealed.items.len(),
            header.envelope_count
        )
    });
    let of = [
        ("certificate", record.certificate.as_ref().map(|it| (it.number, it.header_hash))),
        ("release", record.release.as_ref().map(|it| (it.number, it.header_hash))),
        ("hints", record.hints.as_ref().map(|it| (it.number, it.header_hash))),
    ];
    for (name, named) in of {
        found.check(named.is_none_or(|named| named == (number, record.hash)), || {
            format!("the {name} of batch {number} are of another header")
        });
    }
    if let Some(hints) = &record.hints {
        found.check(hints.entries.len() == record.items.len(), || {
            format!("batch {number} has {} items and {} hints", record.items.len(), hints.entries.len())
        });
    }
}

/// How many items of these batches were accepted.
fn accepted(session: &dyn Session, from: u64, through: u64) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) FROM items WHERE number BETWEEN ?1 AND ?2 AND fault IS NULL";
    let [from, through] = [from, through].map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    let count = first(session, sql, &values![from, through], |row| match row.value(0)? {
        Value::Integer(count) => Ok(count),
        _ => Ok(0),
    })?;
    Ok(count.unwrap_or(0))
}

fn blocks(session: &dyn Session, found: &mut Verified) -> Result<(), StoreError> {
    let mut before: Option<BlockRecord> = None;
    let mut from = 0;
    loop {
        let Some(page) = readable(found, reads::blocks(session, from, PAGE))? else { return Ok(()) };
        let Some(last) = page.last() else { return Ok(()) };
        from = last.number.saturating_add(1);
        for block in page {
            let number = block.number;
            found.blocks = Some((found.blocks.map_or(number, |(first, _)| first), number));
            // What was accepted makes a block.
            let left_out = before.as_ref().map_or(1, |before| before.last_batch + 1);
            if block.first_batch > left_out {
                let accepted = accepted(session, left_out, block.first_batch - 1)?;
                found.check(accepted == 0, || {
                    format!("block {number} leaves out {accepted} items that were accepted before it")
                });
            }
            if let Some(before) = before {
                let follows = block.number == before.number + 1
                    && block.parent_hash == before.hash
                    && block.second > before.second
                    // A second in which nothing was accepted has no block.
                    && block.first_batch > before.last_batch;
                found.check(follows, || format!("block {number} does not follow block {}", before.number));
            }
            let newest = found.batches.map_or(0, |(_, newest)| newest);
            found.check(block.last_batch <= newest, || {
                format!("block {number} holds batch {}, which is not stored", block.last_batch)
            });
            before = Some(block);
        }
    }
}

fn ledger(session: &dyn Session, found: &mut Verified) -> Result<(), StoreError> {
    let Some((_, newest)) = found.batches else { return Ok(()) };
    let read = || Ok((reads::ledger(session)?.root(), reads::batch(session, newest)?));
    let Some((root, record)) = readable(found, read())? else { return Ok(()) };
    let named = record.map(|record| record.sealed.header.fee_ledger_root);
    found.check(named == Some(root), || {
        format!("the fee ledger has the root {root}, and the header of batch {newest} names another")
    });
    Ok(())
}

fn confidential(session: &dyn Session, found: &mut Verified) -> Result<(), StoreError> {
    let Some(Some(head)) = readable(found, confidential::head(session))? else { return Ok(()) };
    let (mut sequence, mut version) = (0, 0);
    loop {
        let page = confidential::transactions_from(session, sequence + 1, PAGE);
        let Some(page) = readable(found, page)? else { return Ok(()) };
        if page.is_empty() {
            break;
        }
        for one in page {
            let expected = version + u64::from(one.record.applied);
            found.check((one.record.sequence, one.record.version) == (sequence + 1, expected), || {
                format!("confidential transaction {} does not follow {sequence}", one.record.sequence)
            });
            (sequence, version) = (one.record.sequence, one.record.version);
        }
    }
    found.confidential_transactions = sequence;
    found.check((head.sequence, head.version) == (sequence, version), || {
        format!("the confidential state ends at {}, and its transactions at {sequence}", head.sequence)
    });
    let root = confidential::state_root(session, head.version)?;
    found.check(root == Some(head.state_root), || {
        "the newest confidential batch has another state root than its last transaction".to_owned()
    });
    Ok(())
}
