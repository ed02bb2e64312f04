//! No late shares: what may soon be declared void on L1 for want of hints is not opened any more.
//!
//! `HintRegistry.voidUnreleased` voids a run whose hints are not on L1 `hintDeadline` blocks after its posting. Were
//! shares given until then, some nodes could open and execute what all others find void. So from half of the deadline
//! on a member gives none, unless hints stand on L1.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use blindfold_chain::{L1Fault, L1View, Refusal};
use parking_lot::Mutex;

use crate::share::ShareRefusal;

/// How often L1's height is asked for, in milliseconds.
const HEIGHT_INTERVAL_MS: u64 = 12_000;
/// How old a height may be when L1 does not answer, in milliseconds: far less than half of any sane deadline.
const MAX_HEIGHT_AGE_MS: u64 = 600_000;

/// The rule, with the height of L1 as it was last seen.
pub(crate) struct Unreleased {
    l1: Arc<dyn L1View>,
    /// Half of `hintDeadline`, in L1 blocks.
    half: u64,
    height: Mutex<Option<(u64, Instant)>>,
}

impl Unreleased {
    pub(crate) fn new(l1: Arc<dyn L1View>, hint_deadline: u32) -> Self {
        Self { l1, half: u64::from(hint_deadline) / 2, height: Mutex::default() }
    }

    /// Whether shares of this number may still be given. `origin` is its header's L1 origin.
    ///
    /// Almost always answered from memory: a header is posted after its origin, so one whose origin is not so far back
    /// is early enough whenever it was posted.
    pub(crate) async fn check(&self, number: u64, origin: u64) -> Result<(), ShareRefusal> {
        let unavailable = |fault: L1Fault| ShareRefusal::Unavailable(Refusal::L1(fault));
        let height = self.height().await.map_err(unavailable)?;
        if height < origin.saturating_add(self.half) {
            return Ok(());
        }
        let Some(posted_at) = self.l1.posted_at(number).await.map_err(unavailable)? else {
            // Not posted: nobody can void it.
            return Ok(());
        };
        if height < posted_at.saturating_add(self.half)
            || self.l1.hints_on_l1(number).await.map_err(unavailable)?
        {
            return Ok(());
        }
        Err(ShareRefusal::UnreleasedTooLong { number, posted_at })
    }

    /// The newest final block, or the one seen a moment ago.
    async fn height(&self) -> Result<u64, L1Fault> {
        let known = *self.height.lock();
        let younger = |limit_ms| {
            known
                .filter(|(_, seen)| seen.elapsed() < Duration::from_millis(limit_ms))
                .map(|(height, _)| height)
        };
        if let Some(height) = younger(HEIGHT_INTERVAL_MS) {
            return Ok(height);
        }
        match self.l1.finalized().await {
            Ok(block) => {
                *self.height.lock() = Some((block.number, Instant::now()));
                Ok(block.number)
            }
            Err(fault) => younger(MAX_HEIGHT_AGE_MS).ok_or(fault),
        }
    }
}
