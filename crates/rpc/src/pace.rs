//! How fast something went in the last seconds, and so how long a queue in front of it takes: what refusals tell as the time
//! to come back.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use blindfold_runtime::{Instant, now};

use crate::limits::{MAX_RETRY_AFTER_MS, MIN_RETRY_AFTER_MS, PACE_SLOT_MS, PACE_SLOTS};

/// Counts what went in the last [`PACE_SLOTS`] slots of [`PACE_SLOT_MS`]. What was idle before the first of them that
/// counts does not make it slower.
#[derive(Debug)]
pub struct Pace(Mutex<Slots>);

#[derive(Debug)]
struct Slots {
    since: Instant,
    /// The slot that is counted in now, from 0.
    slot: u64,
    counts: [u64; PACE_SLOTS],
}

impl Default for Pace {
    fn default() -> Self {
        Self::new()
    }
}

impl Pace {
    /// Nothing went yet.
    pub fn new() -> Self {
        Self(Mutex::new(Slots { since: now(), slot: 0, counts: [0; PACE_SLOTS] }))
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        // Nothing panics while the lock is held.
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slots.turn();
        slots
    }

    /// So many went now.
    pub fn note(&self, count: u64) {
        let mut slots = self.slots();
        let place = place_of(slots.slot);
        if let Some(known) = slots.counts.get_mut(place) {
            *known = known.saturating_add(count);
        }
    }

    /// How many go in a second; 0 where none went lately.
    pub fn per_second(&self) -> f64 {
        let slots = self.slots();
        let count: u64 = slots.counts.iter().fold(0, |sum, count| sum.saturating_add(*count));
        count as f64 / slots.covered().as_secs_f64()
    }

    /// How long so many take; `None` where none went lately.
    pub fn time_for(&self, count: u64) -> Option<Duration> {
        let per_second = self.per_second();
        (per_second > 0.0).then(|| {
            Duration::try_from_secs_f64(count as f64 / per_second).unwrap_or(Duration::from_secs(u64::MAX))
        })
    }
}

const fn place_of(slot: u64) -> usize {
    (slot % PACE_SLOTS as u64) as usize
}

impl Slots {
    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Begins the slot that it is time for.
    fn turn(&mut self) {
        let slot = self.elapsed_ms() / PACE_SLOT_MS;
        let passed = slot.saturating_sub(self.slot).min(PACE_SLOTS as u64);
        for back in 0..passed {
            if let Some(count) = self.counts.get_mut(place_of(slot - back)) {
                *count = 0;
            }
        }
        self.slot = slot.max(self.slot);
    }

    /// From the begin of the first slot that counts to now; a slot at least.
    fn covered(&self) -> Duration {
        let oldest = self.slot.saturating_sub(PACE_SLOTS as u64 - 1);
        let first = (oldest..=self.slot)
            .find(|slot| self.counts.get(place_of(*slot)).is_some_and(|count| *count > 0))
            .unwrap_or(oldest);
        let ms = self.elapsed_ms().saturating_sub(first.saturating_mul(PACE_SLOT_MS));
        Duration::from_millis(ms.max(PACE_SLOT_MS))
    }
}

/// What a refusal tells as the time to come back, in milliseconds: neither at once nor never. Senders add a random part of
/// it, so that they do not come back together.
pub(crate) fn told_ms(estimate: Duration) -> u64 {
    let ms = u64::try_from(estimate.as_millis()).unwrap_or(u64::MAX);
    ms.clamp(MIN_RETRY_AFTER_MS, MAX_RETRY_AFTER_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Duration = Duration::from_millis(PACE_SLOT_MS);

    #[tokio::test(start_paused = true)]
    async fn the_last_seconds_count() {
        let pace = Pace::new();
        assert_eq!((pace.per_second(), pace.time_for(1)), (0.0, None));
        // What was idle before does not count.
        tokio::time::sleep(100 * SLOT).await;
        for _ in 0..8 {
            pace.note(25);
            tokio::time::sleep(SLOT).await;
        }
        assert_eq!(pace.per_second(), 100.0);
        assert_eq!(pace.time_for(250), Some(Duration::from_millis(2_500)));
        tokio::time::sleep(SLOT * PACE_SLOTS as u32).await;
        assert_eq!(pace.per_second(), 0.0, "nor does what is long over");
        pace.note(u64::MAX);
        pace.note(u64::MAX);
        assert!(pace.time_for(1).is_some_and(|time| time < SLOT));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_makes_it_slower() {
        let pace = Pace::new();
        pace.note(100);
        tokio::time::sleep(4 * SLOT).await;
        assert_eq!(pace.per_second(), 100.0);
        tokio::time::sleep(4 * SLOT).await;
        assert_eq!(pace.per_second(), 50.0);
    }

    #[test]
    fn what_is_told_has_bounds() {
        assert_eq!(told_ms(Duration::ZERO), MIN_RETRY_AFTER_MS);
        assert_eq!(told_ms(Duration::from_millis(1_234)), 1_234);
        assert_eq!(told_ms(Duration::MAX), MAX_RETRY_AFTER_MS);
    }
}
