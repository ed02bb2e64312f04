//! When posted data that is missing is looked for again (rule PD-7).

use blindfold_runtime::{Backoff, Instant, now};

use crate::limits::{DATA_MAX_RETRY_MS, DATA_RETRY_MS};

/// When data that L1 lacked is looked for again. What is absent is looked for the seldomer the longer it is missing: each
/// look reads everything since the headers. A look that failed says nothing, so the next one follows after a short pause,
/// which doubles.
#[derive(Clone, Debug)]
pub struct NextLook {
    block: u64,
    time: Option<Instant>,
    pauses: Backoff,
}

impl Default for NextLook {
    fn default() -> Self {
        Self { block: 0, time: None, pauses: Backoff::new(DATA_RETRY_MS, DATA_MAX_RETRY_MS) }
    }
}

impl NextLook {
    /// Whether it is time, with this newest final block.
    pub fn is_due(&self, finalized: u64) -> bool {
        self.is_due_at(finalized, now())
    }

    fn is_due_at(&self, finalized: u64, now: Instant) -> bool {
        self.block <= finalized && self.time.is_none_or(|time| time <= now)
    }

    /// L1 was read up to this final block, and the data of headers posted in block `posted_at` is not there.
    pub fn after_absence(&mut self, posted_at: u64, finalized: u64) {
        self.block = finalized.saturating_add(1 + finalized.saturating_sub(posted_at) / 4);
        self.time = None;
        self.pauses.reset();
    }

    /// Something that may be the data could not be read.
    pub fn after_failure(&mut self) {
        self.after_failure_at(now());
    }

    fn after_failure_at(&mut self, now: Instant) {
        self.block = 0;
        self.time = Some(now + self.pauses.pause());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn absence_waits_for_blocks_and_failure_for_a_pause_that_doubles() {
        let now = now();
        let after = |ms| now + Duration::from_millis(ms);
        let mut look = NextLook::default();
        assert!(look.is_due_at(0, now));
        look.after_absence(100, 500);
        assert!(!look.is_due_at(600, after(DATA_MAX_RETRY_MS)) && look.is_due_at(601, now));
        for pause_ms in [DATA_RETRY_MS, 2 * DATA_RETRY_MS, 4 * DATA_RETRY_MS] {
            look.after_failure_at(now);
            assert!(!look.is_due_at(10_000, after(pause_ms / 2 - 1)));
            assert!(look.is_due_at(0, after(pause_ms)), "whatever is final");
        }
        look.after_absence(0, 0);
        look.after_failure_at(now);
        assert!(look.is_due_at(0, after(DATA_RETRY_MS)), "the first pause again");
    }
}
