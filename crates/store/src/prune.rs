//! Forgetting what nobody needs any more of old batches, in small steps beside everything else.
//!
//! Of a pruned batch number and hash stay, so that a header of its number is still judged, and the chain still follows from
//! its first batch. Items, certificate, release and hints go, and [`Store::batch`](crate::Store::batch) answers [`StoreError::Pruned`]. What was
//! signed is never pruned, and neither are blocks: an execution client that lost its disk is given them.

use std::fmt;

use crate::{
    SqlStore, StoreError, What,
    sql::{
        convert::{integer, number, optional_number},
        reads,
        session::{Session, each, execute, first, values},
        writes::put_meta,
    },
};

/// Most batches that one step prunes.
pub const PRUNE_STEP_BATCHES: u64 = 64;
/// Bytes of batches after which a step ends: how long it may keep other writes waiting.
pub const PRUNE_STEP_BYTES: u64 = 8 << 20;

/// The last batch that was pruned, in `meta`.
const PRUNED: &str = "store.pruned_through";
/// Whose records can be pruned.
const PRUNABLE_ROLE: &str = "full_node";

/// How far a store may be pruned, and what keeps the batch after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// The last batch that was pruned; 0 before the first.
    pub pruned: u64,
    /// The last batch that may be.
    pub through: u64,
    /// What keeps the next one.
    pub kept_for: KeptFor,
}

/// Why a batch is not pruned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptFor {
    /// It is among the newest ones, which are kept.
    Setting,
    /// L1 can still change what becomes of it, or of another batch of its block, as far as this store knows.
    Finality,
    /// It is not executed.
    Execution,
    /// The ledgers up to it are kept, and with them the way back to it.
    Ledgers,
}

impl fmt::Display for KeptFor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Setting => "it is among the newest batches, which are kept",
            Self::Finality => "it is not known to be final on L1 with all of its block",
            Self::Execution => "it is not executed",
            Self::Ledgers => "the fee ledgers from there on are kept",
        })
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Batches that were pruned.
    pub batches: u64,
    /// Bytes of their headers and items, without what else went with them.
    pub bytes: u64,
    /// The last batch that is pruned now; 0 before the first.
    pub through: u64,
    /// Whether there is more to prune at once.
    pub more: bool,
}

impl SqlStore {
    /// How far [`Store::prune`](crate::Store::prune) would go now.
    ///
    /// # Errors
    /// [`StoreError::NotPruned`] for a role whose records all stay; the engine's.
    pub async fn horizon(&self, final_through: u64, keep: u64) -> Result<Horizon, StoreError> {
        self.read(move |session| horizon(session, final_through, keep)).await
    }

    /// Batches that would be pruned up to a horizon, and bytes of their headers and items.
    ///
    /// # Errors
    /// The engine's.
    pub async fn prunable(&self, horizon: Horizon) -> Result<(u64, u64), StoreError> {
        self.read(move |session| {
            let sql = "SELECT COUNT(*), CAST(COALESCE(SUM(LENGTH(sealed)), 0) AS BIGINT) FROM batches
                       WHERE number > ?1 AND number <= ?2";
            let range = values![
                integer(horizon.pruned, "batch number")?,
                integer(horizon.through.max(horizon.pruned), "batch number")?
            ];
            let found = first(session, sql, &range, |row| {
                Ok((number(row, 0, What::Batch)?, number(row, 1, What::Batch)?))
            })?;
            Ok(found.unwrap_or_default())
        })
        .await
    }
}

/// The last batch that was pruned; 0 before the first.
pub(crate) fn pruned_through(session: &dyn Session) -> Result<u64, StoreError> {
    let Some(bytes) = reads::meta(session, PRUNED)? else { return Ok(0) };
    let fault = |_| StoreError::Corrupt { what: What::Meta, fault: format!("{PRUNED} is no number") };
    bytes.try_into().map(u64::from_be_bytes).map_err(fault)
}

/// Why a batch that is there is not given.
pub(crate) fn pruned(session: &dyn Session, number: u64) -> StoreError {
    match pruned_through(session) {
        Ok(through) if number <= through => {
            StoreError::Pruned { number, kept_from: through.saturating_add(1) }
        }
        Ok(_) => StoreError::Corrupt { what: What::Batch, fault: format!("batch {number} is empty") },
        Err(error) => error,
    }
}

fn horizon(session: &dyn Session, final_through: u64, keep: u64) -> Result<Horizon, StoreError> {
    let role = reads::meta(session, "role")?.unwrap_or_default();
    if role != PRUNABLE_ROLE.as_bytes() {
        return Err(StoreError::NotPruned { role: String::from_utf8_lossy(&role).into_owned() });
    }
    let newest = reads::newest_batch(session)?.map_or(0, |(newest, _)| newest);
    let executed = first(session, "SELECT MAX(last_batch) FROM blocks", &[], |row| {
        optional_number(row, 0, What::Block)
    })?;
    // Blocks are taken back whole. What follows the last one that stays is executed anew, batches without a block too.
    let sql = "SELECT MAX(last_batch) FROM blocks WHERE last_batch <= ?1";
    let settled = first(session, sql, &values![i64::try_from(final_through).unwrap_or(i64::MAX)], |row| {
        optional_number(row, 0, What::Block)
    })?;
    // The batch that the chain can go back to has to be whole.
    let way_back = reads::way_back_floor(session)?.saturating_sub(1);
    let bounds = [
        (executed.flatten().unwrap_or_default(), KeptFor::Execution),
        (settled.flatten().unwrap_or_default(), KeptFor::Finality),
        (way_back, KeptFor::Ledgers),
        (newest.saturating_sub(keep), KeptFor::Setting),
    ];
    let (through, kept_for) = bounds.into_iter().min_by_key(|(bound, _)| *bound).unwrap_or(bounds[0]);
    Ok(Horizon { pruned: pruned_through(session)?, through, kept_for })
}

/// Prunes a little more of what may be.
pub(crate) fn prune(session: &dyn Session, final_through: u64, keep: u64) -> Result<Pruned, StoreError> {
    let horizon = horizon(session, final_through, keep)?;
    let mut step = Pruned { through: horizon.pruned, ..Pruned::default() };
    let begin = horizon.pruned.saturating_add(1);
    let sql = "SELECT number, CAST(LENGTH(sealed) AS BIGINT) FROM batches
               WHERE number >= ?1 AND number <= ?2 ORDER BY number LIMIT ?3";
    let range = values![
        integer(begin, "batch number")?,
        integer(horizon.through, "batch number")?,
        integer(PRUNE_STEP_BATCHES, "batches")?
    ];
    each(session, sql, &range, |row| {
        if step.bytes < PRUNE_STEP_BYTES {
            step.through = number(row, 0, What::Batch)?;
            step.bytes += number(row, 1, What::Batch)?;
            step.batches += 1;
        }
        Ok(())
    })?;
    if step.batches == 0 {
        return Ok(step);
    }
    let gone = values![integer(begin, "batch number")?, integer(step.through, "batch number")?];
    for table in ["items", "certificates", "releases", "hints", "batches_without_hints"] {
        let sql = format!("DELETE FROM {table} WHERE number >= ?1 AND number <= ?2");
        execute(session, &sql, &gone)?;
    }
    let nothing: &[u8] = &[];
    let emptied = values![integer(begin, "batch number")?, integer(step.through, "batch number")?, nothing];
    execute(
        session,
        "UPDATE batches SET sealed = ?3, head = ?3 WHERE number >= ?1 AND number <= ?2",
        &emptied,
    )?;
    put_meta(session, PRUNED, &step.through.to_be_bytes())?;
    step.more = step.through < horizon.through;
    Ok(step)
}
