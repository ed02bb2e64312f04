//! Whom not to ask for a while.

use std::collections::BTreeMap;

use crate::{Backoff, Instant, now};

/// Peers whose answers came to nothing, each left alone for a pause that doubles as long as that goes on.
#[derive(Clone, Debug)]
pub struct Pauses<K> {
    first_ms: u64,
    max_ms: u64,
    paused: BTreeMap<K, (Backoff, Instant)>,
}

impl<K: Ord> Pauses<K> {
    /// Nobody is left alone yet; pauses are between these two.
    pub const fn new(first_ms: u64, max_ms: u64) -> Self {
        Self { first_ms, max_ms, paused: BTreeMap::new() }
    }

    /// Whether this one can be asked now.
    pub fn is_over(&self, peer: &K) -> bool {
        self.is_over_at(peer, now())
    }

    /// What this one gave came to nothing.
    pub fn failed(&mut self, peer: K) {
        self.failed_at(peer, now());
    }

    fn is_over_at(&self, peer: &K, now: Instant) -> bool {
        self.paused.get(peer).is_none_or(|(_, until)| *until <= now)
    }

    fn failed_at(&mut self, peer: K, now: Instant) {
        let (first_ms, max_ms) = (self.first_ms, self.max_ms);
        let new = || (Backoff::new(first_ms, max_ms), now);
        let (pauses, until) = self.paused.entry(peer).or_insert_with(new);
        *until = now + pauses.pause();
    }

    /// What this one gave was right.
    pub fn succeeded(&mut self, peer: &K) {
        self.paused.remove(peer);
    }

    /// Nobody is left alone any more.
    pub fn clear(&mut self) {
        self.paused.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_fails_is_left_alone_for_longer_each_time() {
        let mut pauses = Pauses::new(1_000, 8_000);
        let mut now = now();
        for longest_ms in [1_000, 2_000, 4_000, 8_000, 8_000] {
            assert!(pauses.is_over_at(&1, now));
            pauses.failed_at(1, now);
            now += Duration::from_millis(longest_ms / 2 - 1);
            assert!(!pauses.is_over_at(&1, now) && pauses.is_over_at(&2, now), "{longest_ms}");
            now += Duration::from_millis(longest_ms / 2 + 1);
        }
        pauses.failed_at(1, now);
        pauses.succeeded(&1);
        assert!(pauses.is_over_at(&1, now));
        pauses.failed_at(1, now);
        assert!(pauses.is_over_at(&1, now + Duration::from_millis(1_000)), "it begins anew");
        pauses.clear();
        assert!(pauses.is_over_at(&1, now));
    }
}
