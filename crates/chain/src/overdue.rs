//! Posting what the sequencer keeps from L1.
//!
//! A certified header that does not reach L1 within `postingDeadline` gives way to one that L1 makes, and what its batch
//! said may be public by then. A node with an account posts such headers itself, once a quarter of that time has passed.

use std::sync::Arc;

use blindfold_chain::{HeaderId, RunLimits, Tracker, next_run, verdicts};
use blindfold_l1::CodedBatch;
use blindfold_protocol::validity::Verdict;

use super::seam::{WatchBlocks, WatchL1};
use super::watcher::WatchError;

/// A node posts headers whose L1 origin is older than this part of `postingDeadline`.
const OVERDUE_PART: u64 = 4;
/// What goes into one transaction.
const LIMITS: RunLimits = RunLimits { max_headers: 64, max_bytes: 100_000 };

/// A run that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PostedRun {
    pub(super) first: u64,
    pub(super) last: u64,
    /// Whether certified headers are left after it.
    pub(super) more: bool,
}

/// Posts the next certified headers that L1 lacks, if they wait for long; `None` when there is nothing to do.
pub(super) async fn post_overdue(
    l1: &Arc<dyn WatchL1>,
    tracker: &Tracker,
    blocks: &WatchBlocks,
) -> Result<Option<PostedRun>, WatchError> {
    let HeaderId { number, hash } = l1.posted_head().await?;
    let store = tracker.store();
    let ours = match number {
        0 => Some(tracker.config().deployment.genesis_hash()),
        number => store.batch(number).await?.map(|record| record.hash),
    };
    // Another head, or one that is not here yet, is for the tracker to take.
    if ours != Some(hash) {
        return Ok(None);
    }
    let Some(run) = next_run(tracker, number.saturating_add(1), LIMITS).await? else { return Ok(None) };
    let origins = run.batches.first().map(|batch| batch.sealed.header.l1_origin_number);
    let waited = blocks.newest.saturating_sub(origins.unwrap_or(blocks.newest));
    let deadline = u64::from(tracker.config().timing.posting_deadline);
    // L1 takes none that is older than the deadline.
    if waited < deadline.div_ceil(OVERDUE_PART) || waited > deadline {
        return Ok(None);
    }
    let (first, last) = (number + 1, run.certificate.number);
    let mut batches = Vec::with_capacity(run.batches.len());
    for record in run.batches {
        let codes = verdicts(&record)?.iter().map(Verdict::code).collect();
        batches.push(CodedBatch { sealed: record.sealed, codes });
    }
    l1.post(&batches, &run.certificate).await?;
    Ok(Some(PostedRun { first, last, more: run.more }))
}
