//! Everything of a store into another, between engines or into a file that is kept: moves, backups, restores.
//!
//! What is read is one state of the source, whoever writes to it meanwhile. The other store has to be empty. Until all is
//! there it says of itself that it is not whole, and so no role runs on what an interrupted transfer left.

use blindfold_runtime::random;
use tokio::sync::mpsc;

use crate::{
    SqlStore, Store, StoreError, What,
    sql::{
        convert::number,
        reads,
        session::{Row, Session, Value, each, execute, first, insert_values, values},
        writes::put_meta,
    },
};

/// A table that both engines have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name of the table.
    pub name: &'static str,
    /// What its rows are read in the order of.
    key: &'static [&'static str],
    /// Its columns, in order.
    pub columns: &'static [&'static str],
}

const fn table(name: &'static str, key: &'static [&'static str], columns: &'static [&'static str]) -> Table {
    Table { name, key, columns }
}

/// Every table, in the order in which they are read.
pub const TABLES: &[Table] = &[
    table("meta", &["key"], &["key", "value"]),
    table("batches", &["number"], &["number", "hash", "sealed", "head"]),
    table("items", &["number", "item"], &["number", "item", "id", "fault"]),
    table("acknowledgements", &["number"], &["number", "header_hash", "origin", "displaced_by"]),
    table("displaced_acknowledgements", &["number", "header_hash"], &["number", "header_hash"]),
    table("certificates", &["number"], &["number", "certificate"]),
    table("l1_headers", &["number"], &["number"]),
    table("releases", &["number"], &["number", "release"]),
    table("hints", &["number"], &["number", "hints"]),
    table("batches_without_hints", &["number"], &["number"]),
    // In the order of their arrival, which is that of their rows.
    table("envelopes", &["rowid"], &["id", "bytes", "arrived_ms", "seal_by", "number"]),
    table("envelope_outcomes", &["id"], &["id", "outcome", "number"]),
    table("accounts", &["payer"], &["payer", "balance", "withdrawn"]),
    table("fee_nonces", &["expiry", "payer", "nonce"], &["expiry", "payer", "nonce"]),
    table("held", &["number", "item"], &["number", "item", "payer", "amount"]),
    table(
        "account_changes",
        &["number", "payer"],
        &["number", "payer", "balance_before", "withdrawn_before"],
    ),
    table(
        "nonce_changes",
        &["number", "payer", "nonce"],
        &["number", "payer", "nonce", "expiry_before", "expiry_after"],
    ),
    table("held_changes", &["number", "held_number"], &["number", "held_number", "before"]),
    table("ledger_floor", &["\"only\""], &["\"only\"", "number"]),
    table(HELD_FLOOR, &["\"only\""], &["\"only\"", "number"]),
    table(
        "blocks",
        &["number"],
        &[
            "number",
            "second",
            "hash",
            "parent_hash",
            "state_root",
            "first_batch",
            "last_batch",
            "transactions",
            "payload",
        ],
    ),
    table("posts", &["up_to_number"], &["up_to_number", "l1_transaction"]),
    table(
        "confidential_batches",
        &["number"],
        &[
            "number",
            "hash",
            "sequence",
            "version",
            "accounts",
            "public_accounts",
            "accounts_root",
            "public_root",
            "confidential",
            "state_root",
        ],
    ),
    table("confidential_owners", &["owner"], &["owner", "account"]),
    table("confidential_accounts", &["account", "version"], &["account", "version", "owner", "state"]),
    table(
        "confidential_nodes",
        &["tree", "level", "place", "version"],
        &["tree", "level", "place", "version", "hash"],
    ),
    table("public_balances", &["owner", "version"], &["owner", "version", "account", "balance", "nonce"]),
    table(
        "confidential_transactions",
        &["sequence"],
        &[
            "sequence",
            "version",
            "number",
            "id",
            "item",
            "position",
            "applied",
            "bytes",
            "receipt",
            "state_root",
        ],
    ),
    table("confidential_parties", &["party", "sequence"], &["party", "sequence"]),
];

/// What a store says of itself where it is not one to run on: what is missing, and what to do.
const INCOMPLETE: &str = "store.incomplete";
const MOVED: &str = "store.moved_to";
const BACKUP: &str = "store.backup";
const MARKS: [&str; 3] = [INCOMPLETE, MOVED, BACKUP];

const HELD_FLOOR: &str = "held_floor";

/// Rows that are read at once: few where one may be large. Bytes from which on a part is written.
const PAGE_ROWS: i64 = 1_024;
const PAGE_LARGE_ROWS: i64 = 32;
const LARGE: [&str; 6] =
    ["batches", "hints", "envelopes", "blocks", "confidential_accounts", "confidential_transactions"];
const PART_BYTES: usize = 4 << 20;
/// Parts that wait to be written.
const PARTS: usize = 2;
/// Rows that are counted at once.
const COUNTED_ROWS: u32 = 1_000_000;

/// What a transfer is for, and so what its two stores say of themselves when it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The role goes on with the target; nothing runs on the source any more, which was opened to write.
    Move {
        /// How the source names the place that it went to.
        to: String,
    },
    /// The target is kept and not run on.
    Backup,
    /// The source is a backup, of which the target makes a store again. What was signed since is not in it.
    Restore {
        /// Values that the role finds in place of those of the backup.
        meta: Vec<(String, Vec<u8>)>,
    },
}

/// How many rows of a table were taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Name of the table.
    pub table: &'static str,
    /// Rows of it.
    pub rows: u64,
}

/// Refuses a store that no role is to run on: a backup, one that is not whole, one that was moved.
pub(crate) fn check_usable(session: &dyn Session) -> Result<(), StoreError> {
    let said = |key| -> Result<Option<String>, StoreError> {
        Ok(reads::meta(session, key)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    };
    if said(INCOMPLETE)?.is_some() {
        return Err(StoreError::Retired(
            "a copy to this store did not end: copy again, to an empty place".to_owned(),
        ));
    }
    if let Some(moved) = said(MOVED)? {
        let to = place(&moved);
        return Err(StoreError::Retired(format!(
            "this store was moved to {to}, which goes on from it: set store.url to that"
        )));
    }
    if said(BACKUP)?.is_some() {
        return Err(StoreError::Retired(
            "this is a backup: `blindfold store restore` makes a store of it".to_owned(),
        ));
    }
    Ok(())
}

/// A move as its two stores name it to each other: what is drawn for it. The source has the place behind it.
fn move_of(said: &str) -> &str {
    said.split_once(' ').map_or(said, |(id, _)| id)
}

/// Where a source says that it went.
fn place(said: &str) -> &str {
    said.split_once(' ').map_or(said, |(_, to)| to)
}

/// Rows of one table.
struct Part {
    table: &'static Table,
    rows: Vec<Vec<Value<'static>>>,
}

/// Takes everything of one store over into another, empty one, and compares what arrived. `progress` hears of each table
/// that is done.
///
/// Cost: reads each row once, in one snapshot, and holds a few parts of 4 MiB in memory, and of tables with large rows 32 rows.
///
/// # Errors
/// [`StoreError::Retired`] for a source that is not whole, no backup where one is restored, or one that was moved before;
/// [`StoreError::Inconsistent`] for a target that is not empty, or where rows are missing in the end.
pub async fn transfer(
    source: &SqlStore,
    target: &SqlStore,
    purpose: &Purpose,
    progress: &(dyn Fn(Copied) + Sync),
) -> Result<Vec<Copied>, StoreError> {
    if source.is_inline() {
        return Err(StoreError::Retired("a disk in memory is copied by its image".to_owned()));
    }
    check_source(source, purpose).await?;
    if let Some(moved) = source.meta(MOVED).await? {
        return finish_move(source, target, &String::from_utf8_lossy(&moved)).await;
    }
    let id = format!("{:032x}", random::<u128>());
    let of = id.clone();
    target.write(move |session| begin(session, &of)).await?;
    let (parts, mut queue) = mpsc::channel(PARTS);
    let reading = source.read(move |session| read_all(session, &parts));
    let writing = async {
        let mut copied: Vec<Copied> = Vec::new();
        while let Some(Part { table, rows }) = queue.recv().await {
            match copied.last_mut() {
                Some(last) if last.table == table.name => last.rows += rows.len() as u64,
                last => {
                    last.into_iter().for_each(|done| progress(*done));
                    copied.push(Copied { table: table.name, rows: rows.len() as u64 });
                }
            }
            target
                .write(move |session| insert_values(session, &into(table), table.columns.len(), &rows))
                .await?;
        }
        copied.last().into_iter().for_each(|done| progress(*done));
        Ok::<_, StoreError>(copied)
    };
    // Where writing fails the queue goes, and with it reading.
    let (read, copied) = tokio::join!(reading, writing);
    let copied = copied?;
    read?;
    if let Purpose::Move { to } = purpose {
        // At no time both can be run on. Ended here, neither can: the same move, made again, ends at this very target.
        source.put_meta(MOVED, format!("{id} {to}").as_bytes()).await?;
    }
    let (counted, purpose) = (copied.clone(), purpose.clone());
    target.write(move |session| end(session, &counted, &purpose)).await?;
    Ok(copied)
}

/// Ends a move that was interrupted after the source had said that it went: all had arrived by then. Never at another place.
async fn finish_move(source: &SqlStore, target: &SqlStore, moved: &str) -> Result<Vec<Copied>, StoreError> {
    let awaits = target.meta(INCOMPLETE).await?;
    if awaits.as_deref() != Some(move_of(moved).as_bytes()) {
        let to = place(moved);
        return Err(StoreError::Retired(format!(
            "the source was moved to {to} before, which goes on from it"
        )));
    }
    let copied = source.read(counted).await?;
    let arrived = copied.clone();
    let purpose = Purpose::Move { to: String::new() };
    target.write(move |session| end(session, &arrived, &purpose)).await?;
    Ok(copied)
}

/// How many rows a transfer takes of each table.
fn counted(session: &dyn Session) -> Result<Vec<Copied>, StoreError> {
    let sql = "SELECT COUNT(*) FROM meta WHERE key IN (?1, ?2, ?3)";
    let marks = first(session, sql, &MARKS.map(Value::from), |row| number(row, 0, What::Meta))?;
    let of_table = |table: &Table| {
        let marks = if table.name == "meta" { marks.unwrap_or_default() } else { 0 };
        let rows = count(session, table, COUNTED_ROWS)?.saturating_sub(marks);
        Ok(Copied { table: table.name, rows })
    };
    TABLES.iter().map(of_table).collect()
}

/// How many rows a table has, counted in parts: a server has so long for an answer, however large the table is.
fn count(session: &dyn Session, table: &Table, part_rows: u32) -> Result<u64, StoreError> {
    let keys = table.key.join(", ");
    let (mut rows, mut last): (u64, Vec<Value<'static>>) = (0, Vec::new());
    loop {
        let after = match last.len() {
            0 => String::new(),
            length => {
                let names: Vec<String> = (1..=length).map(|index| format!("?{index}")).collect();
                format!("WHERE ({keys}) > ({})", names.join(", "))
            }
        };
        let place = part_rows.saturating_sub(1);
        let sql = format!("SELECT {keys} FROM {} {after} ORDER BY {keys} LIMIT 1 OFFSET {place}", table.name);
        let key: Option<Vec<Value<'static>>> = first(session, &sql, &last, |row| {
            (0..table.key.len()).map(|column| row.value(column).map(Value::into_owned)).collect()
        })?;
        let Some(key) = key else {
            let rest = format!("SELECT COUNT(*) FROM {} {after}", table.name);
            let rest = first(session, &rest, &last, |row| number(row, 0, What::Meta))?;
            return Ok(rows.saturating_add(rest.unwrap_or_default()));
        };
        rows = rows.saturating_add(u64::from(part_rows));
        last = key;
    }
}

/// The table with its columns, as an insertion names them.
fn into(table: &Table) -> String {
    format!("{} ({})", table.name, table.columns.join(", "))
}

async fn check_source(source: &SqlStore, purpose: &Purpose) -> Result<(), StoreError> {
    let is_backup = source.meta(BACKUP).await?.is_some();
    if source.meta(INCOMPLETE).await?.is_some() {
        return Err(StoreError::Retired("the source is not whole: a copy to it did not end".to_owned()));
    }
    if let Some(moved) = source.meta(MOVED).await?
        && !matches!(purpose, Purpose::Move { .. })
    {
        let moved = String::from_utf8_lossy(&moved).into_owned();
        let to = place(&moved);
        return Err(StoreError::Retired(format!(
            "the source was moved to {to} before, which goes on from it"
        )));
    }
    match (purpose, is_backup) {
        (Purpose::Restore { .. }, false) => Err(StoreError::Retired(
            "the source is no backup: `blindfold store copy` moves a store that is in use".to_owned(),
        )),
        (Purpose::Move { .. } | Purpose::Backup, true) => Err(StoreError::Retired(
            "the source is a backup: `blindfold store restore` makes a store of it".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Marks an empty store as one that is not whole.
fn begin(session: &dyn Session, id: &str) -> Result<(), StoreError> {
    // A fresh file has one, that of no batch.
    for table in TABLES.iter().filter(|table| table.name != HELD_FLOOR) {
        let sql = format!("SELECT 1 FROM {} LIMIT 1", table.name);
        if first(session, &sql, &[], |_| Ok(()))?.is_some() {
            let reason = "the target is not empty: name an empty file, database or schema";
            return Err(StoreError::Inconsistent { what: What::Meta, number: 0, reason });
        }
    }
    execute(session, "DELETE FROM held_floor", &[])?;
    put_meta(session, INCOMPLETE, id.as_bytes())
}

/// Compares how much arrived, and says what the store is.
fn end(session: &dyn Session, copied: &[Copied], purpose: &Purpose) -> Result<(), StoreError> {
    for table in TABLES {
        let rows = copied.iter().find(|copied| copied.table == table.name).map_or(0, |copied| copied.rows);
        // The mark stands in `meta`, too.
        let marks = u64::from(table.name == "meta");
        if count(session, table, COUNTED_ROWS)? != rows.saturating_add(marks) {
            let reason = "rows are missing in the target";
            return Err(StoreError::Inconsistent { what: What::Meta, number: 0, reason });
        }
    }
    execute(session, "DELETE FROM meta WHERE key = ?1", &values![INCOMPLETE])?;
    match purpose {
        Purpose::Move { .. } => Ok(()),
        Purpose::Backup => put_meta(session, BACKUP, b""),
        Purpose::Restore { meta } => meta.iter().try_for_each(|(key, value)| put_meta(session, key, value)),
    }
}

/// Reads every table of a snapshot, a page at a time.
fn read_all(session: &dyn Session, parts: &mpsc::Sender<Part>) -> Result<(), StoreError> {
    TABLES.iter().try_for_each(|table| read_table(session, table, parts))
}

fn read_table(
    session: &dyn Session,
    table: &'static Table,
    parts: &mpsc::Sender<Part>,
) -> Result<(), StoreError> {
    let keys = table.key.join(", ");
    let select = format!("SELECT {keys}, {} FROM {}", table.columns.join(", "), table.name);
    let mut last: Option<Vec<Value<'static>>> = None;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    loop {
        let (after, mut with) = match &last {
            None => (String::new(), Vec::new()),
            Some(last) => {
                let names: Vec<String> = (1..=last.len()).map(|index| format!("?{index}")).collect();
                (format!("WHERE ({keys}) > ({})", names.join(", ")), last.clone())
            }
        };
        let page_rows = if LARGE.contains(&table.name) { PAGE_LARGE_ROWS } else { PAGE_ROWS };
        with.push(Value::Integer(page_rows));
        let sql = format!("{select} {after} ORDER BY {keys} LIMIT ?{}", with.len());
        let mut page = 0;
        each(session, &sql, &with, |row| {
            let row = whole(row, table)?;
            page += 1;
            let (key, values) = row.split_at(table.key.len());
            last = Some(key.to_vec());
            if table.name == "meta" && is_mark(row.first()) {
                return Ok(());
            }
            bytes += values.iter().map(Value::bytes).sum::<usize>();
            rows.push(values.to_vec());
            if bytes >= PART_BYTES {
                bytes = 0;
                send(parts, table, std::mem::take(&mut rows))?;
            }
            Ok(())
        })?;
        if page < page_rows {
            break;
        }
    }
    send(parts, table, rows)
}

fn send(
    parts: &mpsc::Sender<Part>,
    table: &'static Table,
    rows: Vec<Vec<Value<'static>>>,
) -> Result<(), StoreError> {
    parts.blocking_send(Part { table, rows }).map_err(|_| StoreError::Closed)
}

/// A row with its key first.
fn whole(row: &dyn Row, table: &Table) -> Result<Vec<Value<'static>>, StoreError> {
    (0..table.key.len() + table.columns.len())
        .map(|column| row.value(column).map(Value::into_owned))
        .collect()
}

fn is_mark(key: Option<&Value<'_>>) -> bool {
    matches!(key, Some(Value::Text(key)) if MARKS.contains(&key.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_table_is_counted_in_parts() {
        const ROWS: u64 = 12;
        let store = SqlStore::in_memory().unwrap();
        let of = |name: &str| TABLES.iter().find(|table| table.name == name).unwrap();
        for number in 1..=ROWS {
            store.put_meta(&format!("{number}"), b"").await.unwrap();
        }
        store
            .write(|session| {
                for number in 0..i64::try_from(ROWS).unwrap() {
                    let row = values![number / 5, number, &[0_u8][..]];
                    execute(session, "INSERT INTO items (number, item, id) VALUES (?1, ?2, ?3)", &row)?;
                }
                Ok(())
            })
            .await
            .unwrap();
        for part_rows in [1, 5, 6, 11, 12, 13, 100] {
            for name in ["meta", "items", "blocks"] {
                let counted = store.read(move |session| count(session, of(name), part_rows)).await.unwrap();
                assert_eq!(counted, if name == "blocks" { 0 } else { ROWS }, "{name} by {part_rows}");
            }
        }
    }
}
