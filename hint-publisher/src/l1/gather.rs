//! The hints of a run: fetched from the sequencer, believed in nothing.

use std::sync::Arc;

use blindfold_bte::Backend;
use blindfold_chain::{BatchView, EpochParameters, ParameterSet, verify_hints};
use blindfold_l1::RunReference;
use blindfold_protocol::{
    B256, BatchHints, EnvelopeError, HintEntry,
    validity::{FORCED_TRANSACTION_REASON, Verdict},
};

use super::source::{BatchSource, SourcedBatch};

/// A run of headers in `BlindedInbox`, as its event `Posted` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostedRun {
    /// Number of its first header.
    pub first: u64,
    /// Number of its last header; names the run.
    pub last: u64,
    /// The L1 block that it was posted in.
    pub posted_at: u64,
    /// Hash of the last header.
    pub head_hash: B256,
    /// Merkle root over the hashes of its headers.
    pub header_root: B256,
}

impl PostedRun {
    /// As L1 commits to it.
    pub fn reference(&self) -> RunReference {
        let Self { first, last, posted_at, header_root, .. } = *self;
        RunReference { first, last, posted_at, header_root }
    }
}

impl From<(RunReference, B256)> for PostedRun {
    fn from((run, head_hash): (RunReference, B256)) -> Self {
        let RunReference { first, last, posted_at, header_root } = run;
        Self { first, last, posted_at, head_hash, header_root }
    }
}

/// Why the hints of a run are not here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatherError {
    /// The sequencer does not answer: nobody's batches can be had.
    #[error("the sequencer does not give batch {number}: {reason}")]
    Source {
        /// Number of the batch.
        number: u64,
        /// What the sequencer answered.
        reason: String,
    },
    /// The sequencer has no such batch, or no hints for it yet.
    #[error("the sequencer has no {what} of batch {number} yet")]
    NotYet {
        /// Number of the batch.
        number: u64,
        /// What of the batch is missing.
        what: &'static str,
    },
    /// What the sequencer gives is not what the committee certified, or not the truth about it.
    #[error("batch {number} from the sequencer: {reason}")]
    Wrong {
        /// Number of the batch.
        number: u64,
        /// What does not fit what L1 holds.
        reason: String,
    },
    /// No parameters are configured for the batch.
    #[error("no parameters are configured for batch {number}: add its epoch's file and restart")]
    NoParameters {
        /// Number of the batch.
        number: u64,
    },
    /// The process is shutting down.
    #[error("stopped")]
    Stopped,
}

/// The hints of every batch of `run`, in order; `None` for a run without any item, which needs none.
///
/// The headers are those of the run because their hashes lead from the last one's, which L1 names, to the first. The
/// items and verdicts are those of the headers because they have their envelope roots. The hints are right because
/// each was verified.
///
/// Cost: `verify_hints` for each batch, off the async threads.
///
/// # Errors
/// [`GatherError`].
pub async fn gather(
    source: &dyn BatchSource,
    run: &PostedRun,
    parameters: &ParameterSet,
    backend: &Arc<dyn Backend>,
) -> Result<Option<Vec<BatchHints>>, GatherError> {
    let mut batches = Vec::new();
    let mut expected = run.head_hash;
    for number in (run.first..=run.last).rev() {
        let batch = source
            .batch(number)
            .await
            .map_err(|reason| GatherError::Source { number, reason })?
            .ok_or(GatherError::NotYet { number, what: "header" })?;
        let header = &batch.sealed.header;
        if header.number != number || header.hash() != expected {
            let reason = format!("its header is {}, L1 holds {expected}", header.hash());
            return Err(GatherError::Wrong { number, reason });
        }
        expected = header.parent_hash;
        batches.push(batch);
    }
    if batches.iter().all(|batch| batch.sealed.header.envelope_count == 0) {
        return Ok(None);
    }
    let mut hints = Vec::with_capacity(batches.len());
    for batch in batches.into_iter().rev() {
        hints.push(verified(batch, parameters, backend).await?);
    }
    Ok(Some(hints))
}

/// The hints of one batch, verified.
async fn verified(
    batch: SourcedBatch,
    parameters: &ParameterSet,
    backend: &Arc<dyn Backend>,
) -> Result<BatchHints, GatherError> {
    let number = batch.sealed.header.number;
    let parameters = parameters.at(number).ok_or(GatherError::NoParameters { number })?;
    let backend = Arc::clone(backend);
    blindfold_runtime::blocking(move || check(batch, &parameters, backend.as_ref()))
        .await
        .map_err(|_| GatherError::Stopped)?
}

fn check(
    batch: SourcedBatch,
    parameters: &EpochParameters,
    backend: &dyn Backend,
) -> Result<BatchHints, GatherError> {
    let SourcedBatch { sealed, verdicts, hints } = batch;
    let number = sealed.header.number;
    let wrong = |reason: String| GatherError::Wrong { number, reason };
    // Items, ids and verdicts against the certified root.
    let view = BatchView::read(&sealed, &verdicts, parameters.epoch().max_batch)
        .map_err(|fault| wrong(fault.to_string()))?;
    let verdicts = read_verdicts(&verdicts).ok_or_else(|| wrong("a verdict of no known name".to_owned()))?;
    let hints = match hints {
        Some(hints) => hints,
        // Nothing was decrypted, so nobody had to publish anything.
        None if view.accepted.is_empty() => BatchHints {
            number,
            header_hash: view.hash,
            entries: vec![HintEntry::Skipped; view.items],
            blindings: vec![],
        },
        None => return Err(GatherError::NotYet { number, what: "hints" }),
    };
    verify_hints(backend, parameters, &sealed, &verdicts, &hints)
        .map_err(|fault| wrong(fault.to_string()))?;
    Ok(hints)
}

/// The verdicts behind their names.
fn read_verdicts(names: &[Option<String>]) -> Option<Vec<Verdict>> {
    let mut position = 0;
    let verdict = |name: &Option<String>| match name.as_deref() {
        None => {
            position += 1;
            Some(Verdict::Accepted { position: position - 1 })
        }
        Some(FORCED_TRANSACTION_REASON) => Some(Verdict::ForcedTransaction),
        Some(name) => EnvelopeError::from_name(name).map(Verdict::Skipped),
    };
    names.iter().map(verdict).collect()
}
