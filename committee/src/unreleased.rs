//! No late shares: what may soon be declared void on L1 for want of hints is not opened any more.
//!
//! `HintRegistry.voidUnreleased` voids a run whose hints are not on L1 `hintDeadline` blocks after its posting. Were
//! shares given until then, some nodes could open and execute what all others find void. So from half of the deadline
//! on a member gives none, unless hints stand on L1.
//!
//! What is not posted at all gives way to a header that L1 makes `postingDeadline` blocks after the last posting, and
//! what it opened to would be known before it is ordered again. Nor is anything posted before what stands below it. So from
//! half of that deadline after the origin of the oldest header that is not posted a member gives no shares of that batch
//! either, nor of any above it, until it is posted.
//!
//! Nor is what is not posted opened any more shortly before the announced end of its epoch is due (rule E-11): from then on
//! nothing certified of it is posted, however young it is.
//!
//! Nor is what L1 ended with a header of its own, nor anything above it: L1's answers on numbers are about its header then.
//!
//! L1 counts the deadline on its newest block, final or not, and so does a member: while finality stalls, the time runs.

use std::{sync::Arc, time::Duration};

use blindfold_chain::{L1Error, L1Reader, Tracker, TrackerError};
use blindfold_protocol::L1Timing;
use blindfold_runtime::{Instant, now};
use blindfold_store::StoreError;
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::share::ShareRequestError;

/// How often L1's height is asked for, in milliseconds.
const HEIGHT_INTERVAL_MS: u64 = 12_000;
/// How old a height may be at most when L1 does not answer, in milliseconds.
const MAX_HEIGHT_AGE_MS: u64 = 600_000;
/// Time of an L1 block, in milliseconds.
const L1_BLOCK_MS: u64 = 12_000;
/// How long a share waits for L1's height where an older one is known, in milliseconds.
const HEIGHT_PATIENCE_MS: u64 = 500;

/// How far L1 is, by block numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Heights {
    finalized: u64,
    newest: u64,
    /// The number up to which everything is posted.
    posted: u64,
}

/// A header that is not posted, and its L1 origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unposted {
    number: u64,
    origin: u64,
}

/// The heights that were seen last.
#[derive(Default)]
struct Seen {
    heights: Option<(Heights, Instant)>,
    /// Until when no share waits for L1: it did not answer one in time.
    paused_until: Option<Instant>,
}

impl Seen {
    fn younger(&self, limit_ms: u64) -> Option<Heights> {
        let (heights, seen) = self.heights?;
        (seen.elapsed() < Duration::from_millis(limit_ms)).then_some(heights)
    }
}

/// The rule, with the height of L1 as it was last seen.
pub(crate) struct Unreleased {
    l1: Arc<dyn L1Reader>,
    tracker: Tracker,
    /// The oldest header that was not posted when it was looked at last.
    oldest: Mutex<Option<Unposted>>,
    /// Half of `hintDeadline`, in L1 blocks.
    half: u64,
    /// Half of `postingDeadline`, in L1 blocks.
    half_unposted: u64,
    /// How old a height may be when L1 does not answer, in milliseconds: a quarter of these, so that the deadline itself
    /// stays far away.
    max_age_ms: u64,
    seen: Mutex<Seen>,
}

impl Unreleased {
    pub(crate) fn new(l1: Arc<dyn L1Reader>, tracker: Tracker, timing: &L1Timing) -> Self {
        let (half, half_unposted) =
            (u64::from(timing.hint_deadline) / 2, u64::from(timing.posting_deadline) / 2);
        let quarter_ms = half.min(half_unposted).saturating_mul(L1_BLOCK_MS) / 4;
        let max_age_ms = quarter_ms.clamp(HEIGHT_INTERVAL_MS, MAX_HEIGHT_AGE_MS);
        Self {
            l1,
            tracker,
            oldest: Mutex::default(),
            half,
            half_unposted,
            max_age_ms,
            seen: Mutex::default(),
        }
    }

    /// Whether shares of this number may still be given. `origin` is its header's L1 origin (VR-3, VR-4, VR-5).
    ///
    /// Almost always answered from memory: a header is posted after its origin, so one whose origin is not so far back
    /// is early enough whenever it was posted, if nothing below it is late.
    pub(crate) async fn check(&self, number: u64, origin: u64) -> Result<(), ShareRequestError> {
        let unavailable = |fault: L1Error| ShareRequestError::Unavailable(TrackerError::L1(fault));
        let Heights { finalized, newest, posted } =
            known_or_asked(&self.seen, self.max_age_ms, self.asked()).await.map_err(unavailable)?;
        self.not_overruled(number).await?;
        let oldest = self.oldest_unposted(posted, Unposted { number, origin }).await?;
        // That of the oldest one decides: what stands above it ends with it, whatever its own epoch.
        let settled = self.tracker.closing(oldest.number).filter(|closing| newest >= closing.settled_from());
        if settled.is_none() && newest < oldest.origin.saturating_add(self.half.min(self.half_unposted)) {
            return Ok(());
        }
        let posted_at = self.l1.posted_at(number).await.map_err(unavailable)?;
        if let (None, Some(closing)) = (posted_at, settled) {
            return Err(ShareRequestError::EpochEnds { number, until: closing.until });
        }
        let posted_at = match posted_at {
            Some(posted_at) => {
                // Ours, or the header that L1 made in its place.
                self.tracker.look_for_final_l1_headers().await.map_err(unavailable)?;
                self.not_overruled(number).await?;
                posted_at
            }
            // Not posted: its origin says since when it could have been, or that of what has to be posted before it.
            None if newest >= oldest.origin.saturating_add(self.half_unposted) => {
                let Unposted { number, origin } = oldest;
                return Err(ShareRequestError::UnpostedTooLong { number, origin });
            }
            // Not in a final block: if it was, it is a later one.
            None => finalized.saturating_add(1),
        };
        if newest < posted_at.saturating_add(self.half)
            || self.l1.hints_on_l1(number).await.map_err(unavailable)?
        {
            return Ok(());
        }
        Err(ShareRequestError::UnreleasedTooLong { number, posted_at })
    }

    async fn not_overruled(&self, number: u64) -> Result<(), ShareRequestError> {
        match self.tracker.overruled_at(number).await.map_err(ShareRequestError::Unavailable)? {
            Some(made) => Err(ShareRequestError::OverruledByL1 { number: made.number, made: made.hash }),
            None => Ok(()),
        }
    }

    /// Asks how far L1 is now and then, however long it takes to say, so that what is asked for while it is away or slow is
    /// judged by what it said before.
    pub(crate) async fn refresh(&self) {
        if self.seen.lock().younger(HEIGHT_INTERVAL_MS).is_some() {
            return;
        }
        match self.asked().await {
            Ok(heights) => keep(&self.seen, heights),
            Err(fault) => tracing::debug!(%fault, "how far L1 is was not told"),
        }
    }

    async fn asked(&self) -> Result<Heights, L1Error> {
        let finalized = self.l1.finalized().await?.number;
        let newest = self.l1.newest().await?.max(finalized);
        // Where L1 does not tell, what it told before holds: a lower number is only stricter.
        // What L1 made up to there is known then.
        let posted = self.posted().await;
        let made = self.tracker.look_for_final_l1_headers().await;
        let posted = match made.and(posted) {
            Ok(posted) => posted,
            Err(fault) => {
                tracing::debug!(%fault, "what is posted was not told");
                self.known_posted()
            }
        };
        Ok(Heights { finalized, newest, posted })
    }

    fn known_posted(&self) -> u64 {
        self.seen.lock().heights.map_or(0, |(heights, _)| heights.posted)
    }

    /// What is posted is posted in order, so few numbers are looked at: first ever farther ahead, then in between.
    async fn posted(&self) -> Result<u64, L1Error> {
        let mut posted = self.known_posted();
        let mut step = 1;
        while posted < u64::MAX && self.l1.posted_at(posted.saturating_add(step)).await?.is_some() {
            posted = posted.saturating_add(step);
            step = step.saturating_mul(2);
        }
        let mut not_posted = posted.saturating_add(step);
        while posted.saturating_add(1) < not_posted {
            let middle = posted + (not_posted - posted) / 2;
            match self.l1.posted_at(middle).await? {
                Some(_) => posted = middle,
                None => not_posted = middle,
            }
        }
        Ok(posted)
    }

    /// The header behind what is posted, if it is below this one; origins never fall, so it has the earliest.
    async fn oldest_unposted(&self, posted: u64, own: Unposted) -> Result<Unposted, StoreError> {
        let number = posted.saturating_add(1);
        if number >= own.number {
            return Ok(own);
        }
        if let Some(oldest) = self.oldest.lock().filter(|oldest| oldest.number == number) {
            return Ok(oldest);
        }
        let Some(record) = self.tracker.store().batch(number).await? else { return Ok(own) };
        let oldest = Unposted { number, origin: record.sealed.header.l1_origin_number };
        *self.oldest.lock() = Some(oldest);
        Ok(oldest)
    }
}

fn keep(seen: &Mutex<Seen>, heights: Heights) {
    *seen.lock() = Seen { heights: Some((heights, now())), paused_until: None };
}

/// How far L1 is, or was a moment ago. While it is away or slow, what it said before counts, and shares do not wait for it
/// one after the other.
async fn known_or_asked(
    seen: &Mutex<Seen>,
    max_age_ms: u64,
    asked: impl Future<Output = Result<Heights, L1Error>>,
) -> Result<Heights, L1Error> {
    let known = {
        let seen = seen.lock();
        let paused = seen.paused_until.is_some_and(|until| now() < until);
        let known = seen.younger(max_age_ms);
        match seen.younger(HEIGHT_INTERVAL_MS).or(known.filter(|_| paused)) {
            Some(heights) => return Ok(heights),
            None => known,
        }
    };
    let Some(known) = known else {
        let heights = asked.await?;
        keep(seen, heights);
        return Ok(heights);
    };
    match timeout(Duration::from_millis(HEIGHT_PATIENCE_MS), asked).await {
        Ok(Ok(heights)) => {
            keep(seen, heights);
            Ok(heights)
        }
        Ok(Err(_)) | Err(_) => {
            seen.lock().paused_until = Some(now() + Duration::from_millis(HEIGHT_INTERVAL_MS));
            Ok(known)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures::FutureExt;

    use super::*;

    fn heights(newest: u64) -> Heights {
        Heights { finalized: newest - 2, newest, posted: 0 }
    }

    fn seen(ago_ms: u64) -> Mutex<Seen> {
        let at = now().checked_sub(Duration::from_millis(ago_ms)).expect("a machine that runs");
        Mutex::new(Seen { heights: Some((heights(10), at)), paused_until: None })
    }

    #[tokio::test]
    async fn shares_do_not_wait_for_an_l1_that_hangs() {
        let seen = seen(HEIGHT_INTERVAL_MS);
        assert_eq!(known_or_asked(&seen, MAX_HEIGHT_AGE_MS, pending()).await, Ok(heights(10)));
        // The next ones do not wait at all, and an answer counts when it comes.
        assert_eq!(known_or_asked(&seen, MAX_HEIGHT_AGE_MS, pending()).now_or_never(), Some(Ok(heights(10))));
        keep(&seen, heights(12));
        assert_eq!(known_or_asked(&seen, MAX_HEIGHT_AGE_MS, pending()).now_or_never(), Some(Ok(heights(12))));
        // One that is older than it may be is not taken.
        let away = || ready(Err(L1Error::no_answer("away")));
        assert!(known_or_asked(&self::seen(HEIGHT_INTERVAL_MS), HEIGHT_INTERVAL_MS, away()).await.is_err());
    }

    #[tokio::test]
    async fn what_is_not_known_is_asked_for() {
        let (unknown, away) = (Mutex::default(), L1Error::no_answer("away"));
        assert_eq!(known_or_asked(&unknown, MAX_HEIGHT_AGE_MS, ready(Err(away.clone()))).await, Err(away));
        assert_eq!(
            known_or_asked(&unknown, MAX_HEIGHT_AGE_MS, ready(Ok(heights(20)))).await,
            Ok(heights(20))
        );
    }
}
