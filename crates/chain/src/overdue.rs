//! Posting what the sequencer keeps from L1.
//!
//! A certified header that does not reach L1 within `postingDeadline` gives way to one that L1 makes, and what its batch
//! said may be public by then. Whoever follows the chain and has an account posts such headers itself once a part of that
//! time has passed.

use async_trait::async_trait;
use blindfold_l1::{CodedBatch, L1Error, L1Writer, Recovery};
use blindfold_protocol::Certificate;
use blindfold_store::StoreError;
use thiserror::Error;

use crate::{CertifiedRun, HeaderId, RunLimits, Tracker, next_run};

/// Full nodes post headers whose L1 origin is older than this part of `postingDeadline`; members take turns during half
/// as much time after that, so that not all of them pay for the same run, and before they give no shares of it any more.
const OVERDUE_PART: u64 = 4;
/// What goes into one transaction.
const LIMITS: RunLimits = RunLimits { max_headers: 64, max_bytes: 100_000 };

/// Why a transaction to L1 did not happen, or why its outcome is not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PostFault {
    /// No answer, or the transaction did not make it: look where L1 stands and try again.
    #[error("L1 does not answer or did not take the transaction: {0}")]
    Unavailable(String),
    /// The contract refuses it. Trying again is right when L1's head moved, and harmless otherwise.
    #[error("the contract refuses: {0}")]
    Refused(String),
}

impl From<L1Error> for PostFault {
    fn from(error: L1Error) -> Self {
        match error.recovery() {
            Recovery::Retry => Self::Unavailable(error.to_string()),
            Recovery::Refresh | Recovery::GiveUp => Self::Refused(error.to_string()),
        }
    }
}

/// Posting certified headers, as a seam: the client of the contracts implements it, tests script it.
#[async_trait]
pub trait RunPoster: Send + Sync {
    /// The newest header on L1, in its newest block.
    async fn posted_head(&self) -> Result<HeaderId, PostFault>;

    /// Posts certified headers with their data and waits until they are in a block; the certificate is that of the last.
    async fn post(&self, batches: &[CodedBatch], certificate: &Certificate) -> Result<(), PostFault>;
}

#[async_trait]
impl RunPoster for L1Writer {
    async fn posted_head(&self) -> Result<HeaderId, PostFault> {
        let head = self.client().posted_head().await?;
        Ok(HeaderId { number: head.number, hash: head.hash })
    }

    async fn post(&self, batches: &[CodedBatch], certificate: &Certificate) -> Result<(), PostFault> {
        L1Writer::post(self, batches, certificate).await?;
        Ok(())
    }
}

/// Why nothing was posted. The next look begins where L1 and the disk stand then.
#[derive(Debug, Error)]
pub enum OverdueFault {
    /// L1. Where it refuses, somebody else may have been faster.
    #[error(transparent)]
    L1(#[from] PostFault),
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A run that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostedRun {
    /// Number of its first header.
    pub first: u64,
    /// Number of its last.
    pub last: u64,
    /// Whether certified headers are left after it.
    pub more: bool,
}

/// Who posts in the sequencer's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Substitute {
    /// A full node.
    FullNode,
    /// A member of a committee.
    Member {
        /// Its index, from 1.
        index: u16,
        /// How many the committee has.
        of: u16,
    },
}

impl Substitute {
    /// How old a header's L1 origin is, in L1 blocks, when it posts it.
    pub fn waits(self, posting_deadline: u32) -> u64 {
        let deadline = u64::from(posting_deadline);
        let quarter = deadline.div_ceil(OVERDUE_PART);
        match self {
            Self::FullNode => quarter,
            Self::Member { index, of } => {
                quarter + deadline / (2 * OVERDUE_PART) * u64::from(index.min(of)) / u64::from(of.max(1))
            }
        }
    }
}

/// Posts the next certified headers that L1 lacks, if they wait for long; `None` when there is nothing to do. `newest` is
/// L1's newest block.
///
/// # Errors
/// [`OverdueFault`]. After an error of L1 the headers may be posted with or without their data.
pub async fn post_overdue(
    l1: &dyn RunPoster,
    tracker: &Tracker,
    newest: u64,
    substitute: Substitute,
) -> Result<Option<PostedRun>, OverdueFault> {
    let HeaderId { number, hash } = l1.posted_head().await?;
    let ours = match number {
        0 => Some(tracker.config().deployment.genesis_hash()),
        number => tracker.store().batch(number).await?.map(|record| record.hash),
    };
    // Another head, or one that is not here yet, is for the tracker to take.
    if ours != Some(hash) {
        return Ok(None);
    }
    let Some(run) = next_run(tracker, number.saturating_add(1), LIMITS).await? else { return Ok(None) };
    let CertifiedRun { batches, certificate, more } = run;
    let origin = batches.first().map_or(newest, |batch| batch.sealed.header.l1_origin_number);
    let waited = newest.saturating_sub(origin);
    let deadline = tracker.config().timing.posting_deadline;
    // L1 takes none that is older than the deadline.
    if waited < substitute.waits(deadline) || waited > u64::from(deadline) {
        return Ok(None);
    }
    let (first, last) = (number + 1, certificate.number);
    l1.post(&batches, &certificate).await?;
    Ok(Some(PostedRun { first, last, more }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_say_whether_l1_was_reached() {
        let lost = L1Error::Timeout { method: "eth_call".to_owned(), timeout_ms: 1 };
        assert!(matches!(PostFault::from(lost), PostFault::Unavailable(_)));
        let url = L1Error::Url { reason: "no scheme" };
        assert!(matches!(PostFault::from(url), PostFault::Refused(_)));
    }

    #[test]
    fn a_full_node_posts_first_and_every_member_before_half_of_the_deadline() {
        for deadline in [1, 7, 20, 14_400, u32::MAX] {
            let turn = |index, of| Substitute::Member { index, of }.waits(deadline);
            let turns: Vec<u64> = (1..=64).map(|index| turn(index, 64)).collect();
            assert!(turns.is_sorted() && turns[0] >= Substitute::FullNode.waits(deadline), "{deadline}");
            assert!(turns[63] <= u64::from(deadline).div_ceil(2), "{deadline}");
        }
        let turns: Vec<u64> =
            (1..=4).map(|index| Substitute::Member { index, of: 4 }.waits(14_400)).collect();
        assert_eq!(turns, [4_050, 4_500, 4_950, 5_400]);
        // Not what the registry could say.
        assert_eq!(Substitute::Member { index: 9, of: 0 }.waits(14_400), 3_600);
    }
}
