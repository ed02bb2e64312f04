//! Whether the clocks agree: ours, the wall's, and that of L1's newest block.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

use crate::clock::{Clock, MAX_OFFSET_MS, difference_ms};

/// L1's newest block may be this far ahead of us: its makers' clocks differ, too.
const MAX_L1_LEAD_MS: i64 = 15_000;

/// Which clocks do not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// L1's newest block is from our future: our clock is behind.
    BehindL1 {
        /// By how much our clock is behind, in milliseconds.
        by_ms: i64,
    },
    /// L1's newest block is too old for a clock that L1 has not confirmed yet: our clock is ahead, or L1 stands still.
    Unconfirmed {
        /// How far the block is behind, in milliseconds.
        by_ms: i64,
    },
    /// The wall clock has left the clock that we keep, and L1 does not say which of them is right.
    WallJumped {
        /// How far the wall clock is ahead, in milliseconds; negative when it is behind.
        by_ms: i64,
    },
}

impl fmt::Display for Disagreement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BehindL1 { by_ms } => {
                write!(
                    formatter,
                    "the newest L1 block is {by_ms} ms ahead of this machine's clock: set the clock right"
                )
            }
            Self::Unconfirmed { by_ms } => write!(
                formatter,
                "the newest L1 block is {by_ms} ms old: this machine's clock is ahead, or L1 stands still"
            ),
            Self::WallJumped { by_ms } => {
                write!(
                    formatter,
                    "this machine's clock jumped by {by_ms} ms, and L1 confirms neither time: set the clock right"
                )
            }
        }
    }
}

impl std::error::Error for Disagreement {}

/// Compares the clock that a role keeps with the wall clock and with L1's newest block.
///
/// Three rules:
/// - Nobody's time is before L1's newest block.
/// - A clock is confirmed when L1's newest block is hardly older; until then nothing is signed by it. Once confirmed, its
///   monotonic base keeps it right, and an L1 that stands still, or is away, says nothing against it.
/// - Of a wall clock that leaves the kept one, L1 says which is right: while it confirms the kept one, that goes on; when
///   it confirms the wall clock alone (the machine slept), the kept one steps; else they disagree.
pub struct Agreement {
    clock: Arc<dyn Clock>,
    max_age_ms: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    confirmed: bool,
    fault: Option<Disagreement>,
}

impl Agreement {
    /// L1's newest block confirms a clock that is at most `max_age_ms` ahead of it; with 0 L1 is not compared.
    pub fn new(clock: Arc<dyn Clock>, max_age_ms: u64) -> Self {
        Self { clock, max_age_ms, state: Mutex::default() }
    }

    /// L1 was asked: its newest block was made at `l1_ms`, in milliseconds; `None` when it did not answer.
    pub fn observe(&self, l1_ms: Option<u64>) {
        let mut state = self.state.lock();
        let now_ms = self.clock.now_ms();
        let offset_ms = self.clock.offset_ms();
        let jumped = offset_ms.unsigned_abs() > MAX_OFFSET_MS;
        let Some(l1_ms) = l1_ms.filter(|_| self.max_age_ms > 0) else {
            state.fault = match state.fault {
                // What L1 said stands until it says something else.
                Some(fault @ (Disagreement::BehindL1 { .. } | Disagreement::Unconfirmed { .. })) => {
                    Some(fault)
                }
                _ => jumped.then_some(Disagreement::WallJumped { by_ms: offset_ms }),
            };
            return;
        };
        let (age_ms, max_ms) =
            (difference_ms(now_ms, l1_ms), i64::try_from(self.max_age_ms).unwrap_or(i64::MAX));
        let fits = |age_ms: i64| (-MAX_L1_LEAD_MS..=max_ms).contains(&age_ms);
        if fits(age_ms) {
            if jumped {
                tracing::warn!(offset_ms, "the wall clock jumped; L1 confirms ours, which goes on");
            }
            (state.confirmed, state.fault) = (true, None);
        } else if jumped && fits(age_ms.saturating_add(offset_ms)) {
            tracing::error!(offset_ms, "our clock was wrong, L1 confirms the wall clock: taking its time");
            self.clock.step();
            (state.confirmed, state.fault) = (true, None);
        } else if age_ms < 0 {
            state.fault = Some(Disagreement::BehindL1 { by_ms: age_ms.saturating_neg() });
        } else if jumped {
            state.fault = Some(Disagreement::WallJumped { by_ms: offset_ms });
        } else if !state.confirmed {
            state.fault = Some(Disagreement::Unconfirmed { by_ms: age_ms });
        } else {
            state.fault = None;
        }
    }

    /// Why nothing may be signed by this clock now.
    pub fn fault(&self) -> Option<Disagreement> {
        self.state.lock().fault
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};

    use super::*;

    const START_MS: u64 = 1_700_000_000_000;
    const HOUR_MS: i64 = 3_600_000;
    const MAX_AGE_MS: u64 = 120_000;

    struct Kept {
        now_ms: AtomicU64,
        offset_ms: AtomicI64,
    }

    impl Clock for Kept {
        fn now_ms(&self) -> u64 {
            self.now_ms.load(SeqCst)
        }

        fn offset_ms(&self) -> i64 {
            self.offset_ms.load(SeqCst)
        }

        fn step(&self) {
            let offset_ms = self.offset_ms.swap(0, SeqCst);
            let now_ms = self.now_ms().saturating_add_signed(offset_ms);
            self.now_ms.store(now_ms, SeqCst);
        }
    }

    fn agreement() -> (Agreement, Arc<Kept>) {
        let kept = Arc::new(Kept { now_ms: AtomicU64::new(START_MS), offset_ms: AtomicI64::new(0) });
        (Agreement::new(Arc::clone(&kept) as _, MAX_AGE_MS), kept)
    }

    /// L1's newest block, so far from the start.
    fn l1(ms: i64) -> Option<u64> {
        Some(START_MS.saturating_add_signed(ms))
    }

    #[test]
    fn a_wall_clock_that_jumps_alone_changes_nothing() {
        let (agreement, kept) = agreement();
        agreement.observe(l1(-12_000));
        for offset_ms in [HOUR_MS, -HOUR_MS] {
            kept.offset_ms.store(offset_ms, SeqCst);
            agreement.observe(l1(-12_000));
            assert_eq!((agreement.fault(), kept.now_ms()), (None, START_MS));
        }
        // Two clocks that differ and nobody to judge: nothing is signed, until one of them comes back.
        agreement.observe(None);
        assert_eq!(agreement.fault(), Some(Disagreement::WallJumped { by_ms: -HOUR_MS }));
        kept.offset_ms.store(3, SeqCst);
        agreement.observe(None);
        assert_eq!(agreement.fault(), None);
    }

    #[test]
    fn a_machine_that_slept_takes_the_time_that_wall_and_l1_share() {
        let (agreement, kept) = agreement();
        agreement.observe(l1(0));
        kept.offset_ms.store(HOUR_MS, SeqCst);
        agreement.observe(l1(HOUR_MS - 5_000));
        assert_eq!((agreement.fault(), kept.now_ms()), (None, START_MS.saturating_add_signed(HOUR_MS)));
    }

    #[test]
    fn a_clock_that_starts_an_hour_off_is_not_signed_by_until_it_is_right() {
        let (agreement, kept) = agreement();
        agreement.observe(l1(-HOUR_MS));
        assert_eq!(agreement.fault(), Some(Disagreement::Unconfirmed { by_ms: HOUR_MS }));
        agreement.observe(None);
        assert!(agreement.fault().is_some(), "an outage confirms nothing");
        agreement.observe(l1(HOUR_MS));
        assert_eq!(agreement.fault(), Some(Disagreement::BehindL1 { by_ms: HOUR_MS }));
        // Somebody sets the wall clock right.
        kept.offset_ms.store(HOUR_MS, SeqCst);
        agreement.observe(l1(HOUR_MS));
        assert_eq!((agreement.fault(), kept.offset_ms()), (None, 0));
    }

    #[test]
    fn an_l1_that_stands_still_says_nothing_against_a_confirmed_clock() {
        let (agreement, kept) = agreement();
        agreement.observe(l1(0));
        kept.now_ms.fetch_add(4 * HOUR_MS as u64, SeqCst);
        agreement.observe(l1(0));
        agreement.observe(None);
        assert_eq!(agreement.fault(), None);
    }

    #[test]
    fn without_l1s_time_the_two_others_are_compared() {
        let (_, kept) = agreement();
        let agreement = Agreement::new(Arc::clone(&kept) as _, 0);
        agreement.observe(l1(HOUR_MS));
        assert_eq!(agreement.fault(), None);
        kept.offset_ms.store(HOUR_MS, SeqCst);
        agreement.observe(l1(0));
        assert_eq!(agreement.fault(), Some(Disagreement::WallJumped { by_ms: HOUR_MS }));
    }
}
