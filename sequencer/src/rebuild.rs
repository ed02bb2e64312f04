//! `--rebuild-from-l1`: the disk goes back to the last header that L1 holds, too, before anything is served. What waits,
//! what was promised and what was signed stays.

use blindfold_chain::{Fork, L1Reader, RebuildError};
use blindfold_engine::ExecutionClient;
use blindfold_protocol::{Address, ChainConfig};
use blindfold_store::Store;

use crate::{poster::forget_intent_above, supplier::forget_supplied_above};

/// What the way back needs.
pub(crate) struct Rebuild<'a> {
    pub(crate) chain: &'a ChainConfig,
    pub(crate) store: &'a dyn Store,
    pub(crate) l1: &'a dyn L1Reader,
    pub(crate) posted: &'a dyn L1Reader,
    pub(crate) execution: &'a dyn ExecutionClient,
    pub(crate) key: Address,
}

impl Rebuild<'_> {
    /// Finds where disk and L1 part, and goes back to there. A crash in between leaves a disk that it can be done with again.
    pub(crate) async fn go_back(&self) -> Result<Fork, RebuildError> {
        let Self { chain, store, l1, posted, execution, key } = *self;
        let fork = Fork::find(chain, store, posted).await?;
        fork.check(chain, store, l1, execution, key).await?;
        if fork.other.is_some() {
            forget_intent_above(store, fork.agreed.number).await?;
            forget_supplied_above(store, fork.agreed.number).await?;
        }
        fork.go_back(store).await?;
        Ok(fork)
    }
}
