//! Taking hints: verified, stored, handed on to whoever executes.

use std::sync::Arc;

use alloy_primitives::B256;
use blindfold_bte::Backend;
use blindfold_protocol::{BatchHints, HintEntry, Release};
use blindfold_runtime::now;
use blindfold_store::StoreError;
use blindfold_telemetry::traces;

use crate::records::verdicts;
use crate::{HintsError, OpenedBatches, ParameterSet, Tracker, check_release_shape, verify_hints};

/// Hints that are not taken. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum HintsIntakeError {
    /// The batch is not here.
    #[error("batch {number} is not known here")]
    UnknownBatch {
        /// Number of the batch that they are for.
        number: u64,
    },
    /// Hints mean nothing without a certificate.
    #[error("batch {number} is not certified here")]
    NotCertified {
        /// Number of the batch that they are for.
        number: u64,
    },
    /// The parameters of the batch's epoch are not configured here.
    #[error("no parameters are configured for batch {number}")]
    NoParameters {
        /// Number of the batch that they are for.
        number: u64,
    },
    /// They are not the truth.
    #[error("hints of batch {number}: {fault}")]
    Wrong {
        /// Number of the batch that they are for.
        number: u64,
        /// The first thing that is wrong.
        fault: HintsError,
    },
    /// The disk did not take them.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The process is shutting down.
    #[error("shutting down")]
    Stopped,
}

impl HintsIntakeError {
    /// Whether the same hints may be taken later.
    pub fn retry(&self) -> bool {
        match self {
            Self::UnknownBatch { .. } | Self::NotCertified { .. } | Self::Stopped => true,
            Self::Store(error) => !error.is_pruned(),
            Self::NoParameters { .. } | Self::Wrong { .. } => false,
        }
    }

    /// A stable name, in snake case.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::UnknownBatch { .. } => "unknown_batch",
            Self::NotCertified { .. } => "not_certified",
            Self::NoParameters { .. } => "no_parameters",
            Self::Wrong { fault, .. } => fault.as_str(),
            Self::Store(_) => "storage",
            Self::Stopped => "shutting_down",
        }
    }
}

/// Hints that are right, and on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintsAccepted {
    /// Number of the batch that they are for.
    pub number: u64,
    /// Hash of the batch's header.
    pub hash: B256,
    /// Entries verified against ciphertexts; 0 when the hints were known.
    pub verified: usize,
    /// Whether this call added them.
    pub new: bool,
}

/// The one door for hints, whoever brings them. Cheap to clone.
#[derive(Clone)]
pub struct HintIntake {
    tracker: Tracker,
    parameters: Arc<ParameterSet>,
    backend: Arc<dyn Backend>,
    opened: Arc<OpenedBatches>,
}

impl HintIntake {
    /// A door to the tracker's store and to the shelf of whoever executes ([`Executor::opened`](crate::Executor::opened)).
    pub fn new(
        tracker: Tracker,
        parameters: Arc<ParameterSet>,
        backend: Arc<dyn Backend>,
        opened: Arc<OpenedBatches>,
    ) -> Self {
        Self { tracker, parameters, backend, opened }
    }

    /// Whether a batch's hints are here already: these, or others. Nothing is verified for it, and the batch is read only
    /// for hints of its header.
    pub async fn known(&self, hints: &BatchHints) -> Result<Option<bool>, HintsIntakeError> {
        let number = hints.number;
        let (tracker, store) = (&self.tracker, self.tracker.store());
        let hash = tracker.for_caller(store.header_hash(number)).await?;
        if hash.ok_or(HintsIntakeError::UnknownBatch { number })? != hints.header_hash {
            return Err(HintsIntakeError::Wrong { number, fault: HintsError::OtherHeader });
        }
        let record = tracker.for_caller(store.batch(number)).await?;
        let record = record.ok_or(HintsIntakeError::UnknownBatch { number })?;
        Ok(record.hints.map(|known| known.says_the_same(hints)))
    }

    /// Verifies hints completely, stores them with the release durably, and puts what they open on the shelf.
    ///
    /// Of `release` only the form is checked: hints prove themselves, and a wrong release can give none.
    pub async fn submit(
        &self,
        release: Option<Release>,
        hints: BatchHints,
    ) -> Result<HintsAccepted, HintsIntakeError> {
        let number = hints.number;
        let store = self.tracker.store();
        let record = store.batch(number).await?.ok_or(HintsIntakeError::UnknownBatch { number })?;
        let hash = record.hash;
        let wrong = |fault| HintsIntakeError::Wrong { number, fault };
        if hints.header_hash != hash {
            return Err(wrong(HintsError::OtherHeader));
        }
        if number > self.tracker.certified().number {
            return Err(HintsIntakeError::NotCertified { number });
        }
        if record.hints.as_ref().is_some_and(|known| known.says_the_same(&hints)) {
            return Ok(HintsAccepted { number, hash, verified: 0, new: false });
        }
        let verdicts = verdicts(&record)?;
        let parameters = self.parameters.at(number).ok_or(HintsIntakeError::NoParameters { number })?;
        if let Some(release) = &release {
            check_release_shape(&parameters, &record.sealed, &verdicts, release).map_err(wrong)?;
        }
        let started = now();
        let backend = Arc::clone(&self.backend);
        let (outcomes, hints) = blindfold_runtime::blocking(move || {
            let outcomes = verify_hints(backend.as_ref(), &parameters, &record.sealed, &verdicts, &hints);
            (outcomes, hints)
        })
        .await
        .map_err(|_| HintsIntakeError::Stopped)?;
        let outcomes = outcomes.map_err(wrong)?;
        let verified = hints.entries.iter().filter(|entry| !matches!(entry, HintEntry::Skipped)).count();
        if let Some(release) = release {
            match store.put_release(&release).await {
                // Not proved by anything that is stored, so a first wrong one may not keep the right hints out.
                Err(StoreError::Conflict { .. }) => {
                    tracing::warn!(number, "a second, different release was dropped")
                }
                stored => stored?,
            }
        }
        store.put_hints(&hints).await?;
        traces::batch(number, "verify hints", started);
        self.opened.put(number, Some(outcomes));
        Ok(HintsAccepted { number, hash, verified, new: true })
    }
}
