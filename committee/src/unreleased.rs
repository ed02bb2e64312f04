//! No late shares: what may soon be declared void on L1 for want of hints is not opened any more.
//!
//! `HintRegistry.voidUnreleased` voids a run whose hints are not on L1 `hintDeadline` blocks after its posting. Were
//! shares given until then, some nodes could open and execute what all others find void. So from half of the deadline
//! on a member gives none, unless hints stand on L1.
//!
//! What is not posted at all gives way to a header that L1 makes `postingDeadline` blocks after the last posting, and
//! what it opened to would be known before it is ordered again. So from half of that deadline after its origin on a
//! member gives no shares of it either, until it is posted.
//!
//! L1 counts the deadline on its newest block, final or not, and so does a member: while finality stalls, the time runs.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use blindfold_chain::{L1Fault, L1View, Refusal};
use blindfold_protocol::L1Timing;
use parking_lot::Mutex;

use crate::share::ShareRefusal;

/// How often L1's height is asked for, in milliseconds.
const HEIGHT_INTERVAL_MS: u64 = 12_000;
/// How old a height may be when L1 does not answer, in milliseconds: far less than half of any sane deadline.
const MAX_HEIGHT_AGE_MS: u64 = 600_000;

/// How far L1 is.
#[derive(Clone, Copy)]
struct Heights {
    finalized: u64,
    newest: u64,
}

/// The rule, with the height of L1 as it was last seen.
pub(crate) struct Unreleased {
    l1: Arc<dyn L1View>,
    /// Half of `hintDeadline`, in L1 blocks.
    half: u64,
    /// Half of `postingDeadline`, in L1 blocks.
    half_unposted: u64,
    heights: Mutex<Option<(Heights, Instant)>>,
}

impl Unreleased {
    pub(crate) fn new(l1: Arc<dyn L1View>, timing: &L1Timing) -> Self {
        let (half, half_unposted) =
            (u64::from(timing.hint_deadline) / 2, u64::from(timing.posting_deadline) / 2);
        Self { l1, half, half_unposted, heights: Mutex::default() }
    }

    /// Whether shares of this number may still be given. `origin` is its header's L1 origin.
    ///
    /// Almost always answered from memory: a header is posted after its origin, so one whose origin is not so far back
    /// is early enough whenever it was posted.
    pub(crate) async fn check(&self, number: u64, origin: u64) -> Result<(), ShareRefusal> {
        let unavailable = |fault: L1Fault| ShareRefusal::Unavailable(Refusal::L1(fault));
        let Heights { finalized, newest } = self.heights().await.map_err(unavailable)?;
        if newest < origin.saturating_add(self.half.min(self.half_unposted)) {
            return Ok(());
        }
        let posted_at = match self.l1.posted_at(number).await.map_err(unavailable)? {
            Some(posted_at) => posted_at,
            // Not posted: its origin says since when it could have been.
            None if newest >= origin.saturating_add(self.half_unposted) => {
                return Err(ShareRefusal::UnpostedTooLong { number, origin });
            }
            // Not in a final block: if it was, it is a later one.
            None => finalized.saturating_add(1),
        };
        if newest < posted_at.saturating_add(self.half)
            || self.l1.hints_on_l1(number).await.map_err(unavailable)?
        {
            return Ok(());
        }
        Err(ShareRefusal::UnreleasedTooLong { number, posted_at })
    }

    /// Asks how far L1 is now and then, so that what is asked for while L1 is away is judged by what it said before.
    pub(crate) async fn refresh(&self) {
        if let Err(fault) = self.heights().await {
            tracing::debug!(%fault, "how far L1 is was not told");
        }
    }

    /// How far L1 is, or was a moment ago.
    async fn heights(&self) -> Result<Heights, L1Fault> {
        let known = *self.heights.lock();
        let younger = |limit_ms| {
            known
                .filter(|(_, seen)| seen.elapsed() < Duration::from_millis(limit_ms))
                .map(|(heights, _)| heights)
        };
        if let Some(heights) = younger(HEIGHT_INTERVAL_MS) {
            return Ok(heights);
        }
        match self.asked().await {
            Ok(heights) => {
                *self.heights.lock() = Some((heights, Instant::now()));
                Ok(heights)
            }
            Err(fault) => younger(MAX_HEIGHT_AGE_MS).ok_or(fault),
        }
    }

    async fn asked(&self) -> Result<Heights, L1Fault> {
        let finalized = self.l1.finalized().await?.number;
        Ok(Heights { finalized, newest: self.l1.newest().await?.max(finalized) })
    }
}
