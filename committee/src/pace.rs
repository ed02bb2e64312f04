//! Work for whoever asks, kept to a part of the time.

use std::{sync::Arc, time::Duration};

use blindfold_runtime::{Instant, now};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// One task at a time, and so many times as much rest as work once the [`Pace::SAVED`] is used up. A
/// call that would take more is turned away at once: whoever may wait is somebody who can ask again.
#[derive(Clone)]
pub(crate) struct Pace(Arc<Mutex<Savings>>);

/// Time for work that was saved, and when that was looked at last.
struct Savings {
    left: Duration,
    at: Instant,
    /// Rest for each unit of work.
    rest: u32,
}

/// Leave to work; its time is taken off when it is dropped.
pub(crate) struct Turn {
    savings: OwnedMutexGuard<Savings>,
    since: Instant,
}

impl Pace {
    /// Rest for each unit of work that anybody may ask for.
    pub(crate) const REST: u32 = 10;
    /// Time for work that can be saved while nobody asks.
    pub(crate) const SAVED: Duration = Duration::from_millis(500);

    pub(crate) fn new() -> Self {
        Self::resting(Self::REST)
    }

    /// So many times as much rest as work.
    pub(crate) fn resting(rest: u32) -> Self {
        Self(Arc::new(Mutex::new(Savings { left: Self::SAVED, at: now(), rest })))
    }

    /// `None` while somebody works, or while all that was saved is used up.
    pub(crate) fn turn(&self) -> Option<Turn> {
        let mut savings = Arc::clone(&self.0).try_lock_owned().ok()?;
        let now = now();
        savings.is_enough(now).then_some(Turn { savings, since: now })
    }
}

impl Savings {
    fn is_enough(&mut self, now: Instant) -> bool {
        self.left = (self.left + now.duration_since(self.at) / self.rest).min(Pace::SAVED);
        self.at = self.at.max(now);
        !self.left.is_zero()
    }

    /// Work that took longer than what was saved is paid for before the next begins.
    fn spend(&mut self, took: Duration, now: Instant) {
        let debt = took.saturating_sub(self.left);
        self.left = self.left.saturating_sub(took);
        self.at = now + debt * self.rest;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let now = now();
        self.savings.spend(now.duration_since(self.since), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn one_works_at_a_time() {
        let pace = Pace::new();
        let turn = pace.turn().expect("all is saved");
        assert!(pace.turn().is_none(), "somebody works");
        drop(turn);
        assert!(pace.turn().is_some());
    }

    #[test]
    fn rest_takes_ten_times_as_long_as_work() {
        let start = now();
        let mut savings = Savings { left: Pace::SAVED, at: start, rest: Pace::REST };
        let mut now = start;
        assert!(savings.is_enough(now));
        now += ms(300);
        savings.spend(ms(300), now);
        assert!(savings.is_enough(now), "200 ms are left");
        now += ms(1_200);
        savings.spend(ms(1_200), now);
        // A second more than there was: ten seconds of rest.
        now += ms(10_000);
        assert!(!savings.is_enough(now), "work that took too long is paid for");
        now += ms(10);
        assert!(savings.is_enough(now), "a millisecond was saved");
        savings.spend(ms(0), now);

        let (mut worked, end) = (Duration::ZERO, now + ms(1_000_000));
        while now < end {
            if !savings.is_enough(now) {
                now += ms(7);
                continue;
            }
            now += ms(130);
            savings.spend(ms(130), now);
            worked += ms(130);
        }
        assert!((ms(90_000)..ms(101_200)).contains(&worked), "{worked:?}");

        // While nobody asks, half a second is saved and no more.
        now += ms(1_000_000);
        assert!(savings.is_enough(now));
        assert_eq!(savings.left, Pace::SAVED);
    }
}
