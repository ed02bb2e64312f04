//! Which certified headers go to L1 together.

use blindfold_l1::{CodedBatch, KeyedBatch};
use blindfold_protocol::bte::SessionKey;
use blindfold_protocol::{BatchHeader, Canonical, Certificate, HintEntry, Verdict};
use blindfold_store::{BatchRecord, StoreError};

use crate::{Tracker, verdicts};

/// Bounds of a run that is posted in one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// The most headers of one posting, but for those up to the first certificate.
    pub max_headers: usize,
    /// The most bytes that their sealed batches take together, likewise.
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

/// The same without their items.
#[derive(Clone, Debug)]
pub struct CertifiedHeaders {
    /// The headers, at least one.
    pub headers: Vec<BatchHeader>,
    /// Certificate of the last; it certifies all of them.
    pub certificate: Certificate,
}

/// The longest run from `first` within the limits that ends with a certificate of its own, lies in one epoch and is of one
/// rule set. When no
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
    let Some((batches, certificate)) = longest(tracker, first, limits, |record| record).await? else {
        return Ok(None);
    };
    let batches = batches.into_iter().map(coded).collect::<Result<_, _>>()?;
    let more = certificate.number < tracker.certified().number;
    Ok(Some(CertifiedRun { batches, certificate, more }))
}

/// The headers of the longest such run of at most so many headers, however large their batches are: of these one at a time
/// is in memory.
///
/// # Errors
/// When the store cannot be read.
pub async fn next_headers(
    tracker: &Tracker,
    first: u64,
    max_headers: usize,
) -> Result<Option<CertifiedHeaders>, StoreError> {
    let limits = RunLimits { max_headers, max_bytes: usize::MAX };
    let run = longest(tracker, first, limits, |record| record.sealed.header).await?;
    Ok(run.map(|(headers, certificate)| CertifiedHeaders { headers, certificate }))
}

/// What is kept of each batch of the longest run from `first`, and the certificate of its last.
async fn longest<T>(
    tracker: &Tracker,
    first: u64,
    limits: RunLimits,
    keep: impl Fn(BatchRecord) -> T,
) -> Result<Option<(Vec<T>, Certificate)>, StoreError> {
    let certified = tracker.certified().number;
    let (mut kept, mut run_kind, mut end) = (Vec::new(), None, None);
    let mut bytes = 0usize;
    for number in first..=certified {
        if end.is_some() && kept.len() >= limits.max_headers {
            break;
        }
        let Some(record) = tracker.store().batch(number).await? else { break };
        if record.by_l1 {
            // L1 has it already, and takes nothing before it any more.
            break;
        }
        let size = record.sealed.encode().len();
        let kind = (record.sealed.header.epoch, record.sealed.header.rules);
        let other_kind = *run_kind.get_or_insert(kind) != kind;
        if other_kind || end.is_some() && bytes.saturating_add(size) > limits.max_bytes {
            break;
        }
        bytes = bytes.saturating_add(size);
        let certificate = record.certificate;
        kept.push(keep(record));
        if let Some(certificate) = certificate {
            end = Some((kept.len(), certificate));
        }
    }
    let Some((length, certificate)) = end else { return Ok(None) };
    kept.truncate(length);
    Ok(Some((kept, certificate)))
}

/// The batch with the verdict codes of its items, as L1 gets it.
///
/// # Errors
/// When the verdicts on disk are damaged.
pub fn coded(record: BatchRecord) -> Result<CodedBatch, StoreError> {
    let codes = verdicts(&record)?.iter().map(Verdict::code).collect();
    Ok(CodedBatch { sealed: record.sealed, codes })
}

/// The same, with the keys that its hints have, if they are here: of accepted items alone, so their proofs are right.
///
/// # Errors
/// When the verdicts on disk are damaged.
pub fn keyed(mut record: BatchRecord) -> Result<KeyedBatch, StoreError> {
    let key = |entry: &HintEntry| match entry {
        HintEntry::Key(key) => Some(SessionKey::from_bytes(*key)),
        HintEntry::Skipped | HintEntry::Malformed(_) => None,
    };
    let entries = record.hints.take().map(|hints| hints.entries).unwrap_or_default();
    let mut keys: Vec<Option<SessionKey>> = entries.iter().map(key).collect();
    keys.resize(record.sealed.items.len(), None);
    Ok(KeyedBatch { batch: coded(record)?, keys })
}
