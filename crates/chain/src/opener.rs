//! What the items of a certified batch are, as soon as its hints are here.

use std::sync::Arc;

use blindfold_bte::Backend;
use blindfold_protocol::validity::Verdict;
use blindfold_store::{BatchRecord, Store, StoreError};
use tokio::sync::watch;

use crate::records::verdicts;
use crate::{HintsError, ItemOutcome, OpenedBatches, ParameterSet, verify_hints};

/// Why a batch with hints does not open: the fault of our disk or of our configuration.
#[derive(Debug, thiserror::Error)]
pub enum OpenBatchError {
    /// The disk failed, or holds damaged records.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Hints that were verified when they were stored no longer stand: our disk is damaged.
    #[error("stored hints of batch {number}: {fault}")]
    StoredHints {
        /// Number of the batch to be opened.
        number: u64,
        /// What is wrong with what was stored.
        fault: HintsError,
    },
    /// The parameters of the batch's epoch are not configured.
    #[error("no parameters are configured for batch {number}")]
    NoParameters {
        /// Number of the batch to be opened.
        number: u64,
    },
    /// The process is shutting down.
    #[error("shutting down")]
    Stopped,
}

/// Opens certified batches for whoever executes them: from the shelf of what was just verified, else from the hints on
/// disk. Cheap to clone.
#[derive(Clone)]
pub struct Opener {
    store: Arc<dyn Store>,
    parameters: Arc<ParameterSet>,
    backend: Arc<dyn Backend>,
    opened: Arc<OpenedBatches>,
}

impl Opener {
    /// Opens the batches of `store`, which [`HintIntake`](crate::HintIntake) fills, with what it leaves on `opened`.
    pub fn new(
        store: Arc<dyn Store>,
        parameters: Arc<ParameterSet>,
        backend: Arc<dyn Backend>,
        opened: Arc<OpenedBatches>,
    ) -> Self {
        Self { store, parameters, backend, opened }
    }

    /// Changes whenever hints of a batch are verified and stored.
    pub fn arrivals(&self) -> watch::Receiver<u64> {
        self.opened.watch()
    }

    /// What the items of a batch are; `None` while its hints are missing.
    ///
    /// Hints from the disk are verified as if they had just arrived.
    pub async fn open(&self, number: u64) -> Result<Option<Arc<Vec<ItemOutcome>>>, OpenBatchError> {
        if let Some(outcomes) = self.opened.take(number) {
            return Ok(Some(outcomes));
        }
        let Some(record) = self.store.batch(number).await? else { return Ok(None) };
        let Some(hints) = record.hints.clone() else { return Ok(None) };
        let parameters = self.parameters.at(number).ok_or(OpenBatchError::NoParameters { number })?;
        let verdicts = verdicts(&record)?;
        let backend = Arc::clone(&self.backend);
        let opened = blindfold_runtime::blocking(move || {
            verify_hints(backend.as_ref(), &parameters, &record.sealed, &verdicts, &hints)
        });
        let outcomes = opened.await.map_err(|_| OpenBatchError::Stopped)?;
        Ok(Some(Arc::new(outcomes.map_err(|fault| OpenBatchError::StoredHints { number, fault })?)))
    }
}

/// The outcomes of a batch of which nothing is opened: it has no accepted item, or is void. Transactions in the clear,
/// which L1 forced in, execute all the same: they wait for nobody's release.
pub fn unopened_outcomes(record: &BatchRecord) -> Result<Vec<ItemOutcome>, StoreError> {
    let outcomes = verdicts(record)?.into_iter().map(|verdict| match verdict {
        Verdict::Skipped(fault) => ItemOutcome::Skipped(fault),
        Verdict::ForcedTransaction => ItemOutcome::ForcedTransaction,
        Verdict::Accepted { .. } => ItemOutcome::Void,
    });
    Ok(outcomes.collect())
}
