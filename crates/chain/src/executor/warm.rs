//! The execution client of a sequencer that stands by: it follows what the leader executed.

use std::sync::Arc;

use blindfold_engine::{BlockId, ExecutionClient, ReplayError, ReplayReport, replay};
use blindfold_store::{Store, StoreError};

use super::run::StoredPayloads;

/// Why a client could not be given what it lacks.
#[derive(Debug, thiserror::Error)]
pub enum WarmError {
    /// The records cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The client cannot take them, or has another chain.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// Gives an execution client every stored block that it lacks, up to the newest, so that whoever drives it next has
/// nothing to catch up with. Only reads the records, which another process writes. May be repeated after any failure, and
/// given up at any time.
pub async fn warm_up(
    store: &Arc<dyn Store>,
    client: &dyn ExecutionClient,
) -> Result<ReplayReport, WarmError> {
    let Some((number, _)) = store.heads().await?.block else { return Ok(ReplayReport::default()) };
    // Taken back between the two reads: there is a newer one soon.
    let Some(newest) = store.block(number).await? else { return Ok(ReplayReport::default()) };
    let head = BlockId { number, hash: newest.hash, timestamp: newest.second };
    Ok(replay(client, &StoredPayloads(Arc::clone(store)), head).await?)
}
