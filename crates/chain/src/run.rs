//! Which certified headers go to L1 together.

use blindfold_l1::CodedBatch;
use blindfold_protocol::{Canonical, Certificate, Verdict};
use blindfold_store::{BatchRecord, StoreError};

use crate::{Tracker, verdicts};

/// Bounds of a run that is posted in one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Headers.
    pub max_headers: usize,
    /// Bytes of its batches.
    pub max_bytes: usize,
}

/// Consecutive certified headers with their items.
#[derive(Clone, Debug)]
pub struct CertifiedRun {
    /// The batches, at least one.
    pub batches: Vec<CodedBatch>,
    /// Certificate of the last header; it certifies all of them.
    pub certificate: Certificate,
    /// Whether certified headers are left after it.
    pub more: bool,
}

/// The longest run from `first` within the limits that ends with a certificate of its own and lies in one epoch. When no
/// header within the limits has one (its certificate came through a descendant), the run goes on to the first that has:
/// at most the headers once in flight more. `None` where nothing certified is left that L1 did not make.
///
/// # Errors
/// When the store cannot be read.
pub async fn next_run(
    tracker: &Tracker,
    first: u64,
    limits: RunLimits,
) -> Result<Option<CertifiedRun>, StoreError> {
    let certified = tracker.certified().number;
    let mut batches: Vec<BatchRecord> = Vec::new();
    let mut end: Option<(usize, Certificate)> = None;
    let mut bytes = 0usize;
    for number in first..=certified {
        if end.is_some() && batches.len() >= limits.max_headers {
            break;
        }
        let Some(record) = tracker.store().batch(number).await? else { break };
        if record.by_l1 {
            // L1 has it already, and takes nothing before it any more.
            break;
        }
        let size = record.sealed.encode().len();
        let epoch = record.sealed.header.epoch;
        let other_epoch = batches.first().is_some_and(|batch| batch.sealed.header.epoch != epoch);
        if other_epoch || end.is_some() && bytes.saturating_add(size) > limits.max_bytes {
            break;
        }
        bytes = bytes.saturating_add(size);
        let certificate = record.certificate;
        batches.push(record);
        if let Some(certificate) = certificate {
            end = Some((batches.len(), certificate));
        }
    }
    let Some((length, certificate)) = end else { return Ok(None) };
    let batches = batches.into_iter().take(length).map(coded).collect::<Result<_, _>>()?;
    let more = certificate.number < certified;
    Ok(Some(CertifiedRun { batches, certificate, more }))
}

/// The batch with the verdict codes of its items, as L1 gets it.
///
/// # Errors
/// When the verdicts on disk are damaged.
pub fn coded(record: BatchRecord) -> Result<CodedBatch, StoreError> {
    let codes = verdicts(&record)?.iter().map(Verdict::code).collect();
    Ok(CodedBatch { sealed: record.sealed, codes })
}
