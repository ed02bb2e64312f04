//! Why a round of work on L1 ended before its end.

use blindfold_l1::L1Error;
use blindfold_store::StoreError;

/// Why a round ended before its end. What it found or did until then counts; the next one begins where L1 and the disk stand
/// then.
#[derive(Debug, thiserror::Error)]
pub enum L1RoundError {
    /// L1. Where it refuses, somebody else may have been faster.
    #[error(transparent)]
    L1(#[from] L1Error),
    /// The disk failed, or refused a step.
    #[error(transparent)]
    Store(#[from] StoreError),
}
