//! Pauses between attempts.

use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use tokio::time::Instant;

use crate::environment::{now, random};

/// Pauses that double from a first to a longest, each with jitter: between half and the whole of it, so that those who
/// failed together do not come again together.
#[derive(Clone, Debug)]
pub struct Backoff {
    initial_ms: u64,
    max_ms: u64,
    next_ms: u64,
    full_jitter: bool,
    jitter: SmallRng,
}

impl Backoff {
    /// Jitter from [`rng`](crate::rng).
    pub fn new(initial_ms: u64, max_ms: u64) -> Self {
        Self::seeded(initial_ms, max_ms, random())
    }

    /// Jitter that is the same for the same seed.
    pub fn seeded(initial_ms: u64, max_ms: u64, seed: u64) -> Self {
        let initial_ms = initial_ms.max(1);
        let max_ms = max_ms.max(initial_ms);
        let jitter = SmallRng::seed_from_u64(seed);
        Self { initial_ms, max_ms, next_ms: initial_ms, full_jitter: false, jitter }
    }

    /// With full jitter: anything up to the whole pause. For many who wait for one server at once: they are spread evenly from
    /// the first pause on, where half of each would still come in waves.
    #[must_use]
    pub fn with_full_jitter(self) -> Self {
        Self { full_jitter: true, ..self }
    }

    /// The pause before the next attempt; the one after it is twice as long.
    pub fn pause(&mut self) -> Duration {
        let whole_ms = self.next_ms;
        self.next_ms = whole_ms.saturating_mul(2).min(self.max_ms);
        let least_ms = if self.full_jitter { 1 } else { whole_ms / 2 };
        Duration::from_millis(self.jitter.random_range(least_ms..=whole_ms))
    }

    /// The pause before the next attempt where the other side may have said when to come back: not before that, and up to
    /// half as long after it, so that those who were told together do not come back together.
    pub fn pause_after(&mut self, told: Option<Duration>) -> Duration {
        let pause = self.pause();
        let Some(told) = told else { return pause };
        let late_ms = u64::try_from(told.as_millis() / 2).unwrap_or(u64::MAX);
        pause.max(told.saturating_add(Duration::from_millis(self.jitter.random_range(0..=late_ms))))
    }

    /// An attempt succeeded: the next pause is the first one again.
    pub fn reset(&mut self) {
        self.next_ms = self.initial_ms;
    }
}

/// How long something may fail without a break.
///
/// Most failures pass: a disk is emptied, a replica catches up. One that does not may be mended by a start from the
/// beginning, so whoever's patience is out ends its role, and the supervisor of the process starts it again.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    limit: Duration,
    since: Option<Instant>,
}

impl Patience {
    /// Fails for at most `limit_ms`.
    pub const fn new(limit_ms: u64) -> Self {
        Self { limit: Duration::from_millis(limit_ms), since: None }
    }

    /// It failed again. True when it has been failing for longer than the limit.
    pub fn failed(&mut self) -> bool {
        self.failed_at(now())
    }

    fn failed_at(&mut self, now: Instant) -> bool {
        now.saturating_duration_since(*self.since.get_or_insert(now)) >= self.limit
    }

    /// It went well: the time of failing begins anew with the next failure.
    pub fn reset(&mut self) {
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_comes_back_before_the_time_that_he_was_told() {
        let mut backoff = Backoff::seeded(10, 80, 7);
        let told = Duration::from_millis(1_000);
        let pauses: Vec<Duration> = (0..8).map(|_| backoff.pause_after(Some(told))).collect();
        assert!(pauses.iter().all(|pause| (told..=told * 3 / 2).contains(pause)), "{pauses:?}");
        assert!(pauses.windows(2).any(|pair| pair[0] != pair[1]), "jitter");
        assert!(
            backoff.pause_after(Some(Duration::ZERO)) >= Duration::from_millis(40),
            "our own, where it is longer"
        );
        assert!(backoff.pause_after(None) <= Duration::from_millis(80));
    }

    #[test]
    fn pauses_double_to_the_longest_with_jitter_from_the_seed() {
        let mut backoff = Backoff::seeded(100, 1_000, 7);
        let pauses: Vec<u128> = (0..6).map(|_| backoff.pause().as_millis()).collect();
        for (pause, whole) in pauses.iter().zip([100, 200, 400, 800, 1_000, 1_000]) {
            assert!((whole / 2..=whole).contains(pause), "{pause} of {whole}");
        }
        assert!(pauses[4] != pauses[5], "jitter");
        let mut same = Backoff::seeded(100, 1_000, 7);
        assert!(pauses.iter().all(|pause| same.pause().as_millis() == *pause));
        backoff.reset();
        assert!(backoff.pause().as_millis() <= 100);
    }

    #[test]
    fn full_jitter_spreads_pauses_over_all_of_them() {
        let mut quarters = [0; 4];
        for seed in 0..400 {
            let mut backoff = Backoff::seeded(100, 1_000, seed).with_full_jitter();
            backoff.pause();
            let pause_ms = backoff.pause().as_millis() as usize;
            assert!((1..=200).contains(&pause_ms));
            quarters[(pause_ms - 1) / 50] += 1;
        }
        assert!(quarters.iter().all(|quarter| (60..=140).contains(quarter)), "{quarters:?}");
    }

    #[test]
    fn no_limit_makes_it_spin_or_overflow() {
        let mut never = Backoff::seeded(0, 0, 1);
        assert!((0..100).all(|_| never.pause() <= Duration::from_millis(1)));
        let mut long = Backoff::seeded(u64::MAX, u64::MAX, 1);
        assert!(long.pause() >= Duration::from_millis(u64::MAX / 2));
        long.pause();
    }

    #[test]
    fn patience_runs_out_without_a_success_only() {
        let start = now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut patience = Patience::new(1_000);
        assert!(!patience.failed_at(at(0)) && !patience.failed_at(at(999)));
        patience.reset();
        assert!(!patience.failed_at(at(5_000)), "it counts from the first failure after a success");
        assert!(!patience.failed_at(at(5_999)) && patience.failed_at(at(6_000)));
        assert!(Patience::new(0).failed());
    }
}
