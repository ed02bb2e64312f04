//! What is to be caught up with, and in what order.
//!
//! Batches that were never tried come first, the oldest of them first. One that failed waits, each time twice as long, and
//! takes no place of the others': members may never open it (what L1 voided, or ended with a header of its own), and nobody
//! else's hints wait for that, nor are the members asked without end.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use blindfold_runtime::Instant;

/// Numbers that were never tried; the next ones are added when these are done. And numbers that failed.
pub(crate) const MAX_BACKLOG_BATCHES: usize = 4_096;
/// Longest pause before a batch that failed is tried again, in milliseconds.
const MAX_RETRY_PAUSE_MS: u64 = 60_000;

/// A batch that failed and is tried again.
#[derive(Clone, Copy, Debug)]
struct Failed {
    times: u32,
    /// When it is tried again; `None` while it is.
    at: Option<Instant>,
}

#[derive(Debug, Default)]
pub(crate) struct Backlog {
    fresh: BTreeSet<u64>,
    failed: BTreeMap<u64, Failed>,
    /// Those of them that wait, the first due first.
    waiting: BTreeSet<(Instant, u64)>,
    /// Whether the last one taken was fresh.
    took_fresh: bool,
}

impl Backlog {
    /// Adds a number, unless it is there, failed, or finds no place.
    pub(crate) fn add(&mut self, number: u64) {
        if self.fresh.len() < MAX_BACKLOG_BATCHES && !self.failed.contains_key(&number) {
            self.fresh.insert(number);
        }
    }

    /// Whether numbers that were never tried find a place.
    pub(crate) fn has_place(&self) -> bool {
        self.fresh.len() < MAX_BACKLOG_BATCHES
    }

    /// Adds a number of which something new is known, whatever happened to it before.
    pub(crate) fn add_anew(&mut self, number: u64) {
        self.remove(number);
        self.fresh.insert(number);
    }

    pub(crate) fn remove(&mut self, number: u64) {
        self.fresh.remove(&number);
        if let Some(Failed { at: Some(at), .. }) = self.failed.remove(&number) {
            self.waiting.remove(&(at, number));
        }
    }

    /// Forgets what is at or below a number.
    pub(crate) fn remove_through(&mut self, number: u64) {
        let above = number.saturating_add(1);
        self.fresh = self.fresh.split_off(&above);
        self.failed = self.failed.split_off(&above);
        self.waiting.retain(|(_, waiting)| *waiting > number);
    }

    /// Notes that one could not be asked for, which says nothing about it. As [`fail`](Self::fail), with the same pause each
    /// time.
    pub(crate) fn put_off(&mut self, number: u64, now: Instant, pause_ms: u64) -> bool {
        self.wait(number, now, pause_ms, false)
    }

    /// Notes that one failed. It is tried again after `pause_ms`, twice as long the next time, and so on. `false` where too
    /// many failed to remember one more.
    pub(crate) fn fail(&mut self, number: u64, now: Instant, pause_ms: u64) -> bool {
        self.wait(number, now, pause_ms, true)
    }

    fn wait(&mut self, number: u64, now: Instant, pause_ms: u64, counts: bool) -> bool {
        self.fresh.remove(&number);
        if self.failed.len() >= MAX_BACKLOG_BATCHES && !self.failed.contains_key(&number) {
            return false;
        }
        let failed = self.failed.entry(number).or_insert(Failed { times: 0, at: None });
        if let Some(at) = failed.at {
            self.waiting.remove(&(at, number));
        }
        let pause = if counts {
            let factor = 1u64.checked_shl(failed.times).unwrap_or(u64::MAX);
            pause_ms.saturating_mul(factor).min(MAX_RETRY_PAUSE_MS.max(pause_ms))
        } else {
            pause_ms
        };
        let at = now + Duration::from_millis(pause);
        *failed = Failed { times: failed.times.saturating_add(counts.into()), at: Some(at) };
        self.waiting.insert((at, number));
        true
    }

    /// The next number to try. Of those that failed only while less than half of the `places` are theirs, and each time after
    /// one that did not, where both wait.
    pub(crate) fn take(&mut self, now: Instant, places: usize) -> Option<u64> {
        let again = self.next_due(places).filter(|(at, _)| *at <= now);
        let fresh = self.fresh.first().copied();
        match (fresh, again) {
            (fresh, Some(again)) if self.took_fresh || fresh.is_none() => {
                self.waiting.remove(&again);
                if let Some(failed) = self.failed.get_mut(&again.1) {
                    failed.at = None;
                }
                self.took_fresh = false;
                Some(again.1)
            }
            (Some(fresh), _) => {
                self.fresh.remove(&fresh);
                self.took_fresh = true;
                Some(fresh)
            }
            (None, _) => None,
        }
    }

    /// When the next one that failed is due; `None` while no more of them are tried.
    pub(crate) fn due_at(&self, places: usize) -> Option<Instant> {
        self.next_due(places).map(|(at, _)| at)
    }

    fn next_due(&self, places: usize) -> Option<(Instant, u64)> {
        let tried = self.failed.len().saturating_sub(self.waiting.len());
        self.waiting.first().copied().filter(|_| tried < places.div_ceil(2))
    }

    /// Numbers of all batches that wait.
    pub(crate) fn numbers(&self) -> BTreeSet<u64> {
        self.fresh.iter().copied().chain(self.waiting.iter().map(|(_, number)| *number)).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.fresh.len() + self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use blindfold_runtime::now;

    use super::*;

    const PAUSE_MS: u64 = 1_000;

    #[test]
    fn what_fails_waits_longer_each_time_and_takes_nobodys_place() {
        let (mut backlog, start) = (Backlog::default(), now());
        let at = |ms| start + Duration::from_millis(ms);
        // As many fail as are remembered; the rest is found again.
        for number in 1..=MAX_BACKLOG_BATCHES as u64 {
            assert!(backlog.fail(number, start, PAUSE_MS));
        }
        assert!(!backlog.fail(5_000, start, PAUSE_MS));
        (6_000..6_010).for_each(|number| backlog.add(number));
        backlog.add(1);
        assert_eq!(backlog.len(), MAX_BACKLOG_BATCHES + 10);
        assert_eq!(backlog.take(start, 4), Some(6_000), "the others are not due");
        // Two of four places are theirs at most, and one in turn.
        let taken: Vec<_> = (0..5).map(|_| backlog.take(at(PAUSE_MS), 4)).collect();
        assert_eq!(taken, [Some(1), Some(6_001), Some(2), Some(6_002), Some(6_003)]);
        assert!(backlog.fail(1, at(PAUSE_MS), PAUSE_MS));
        let taken: Vec<_> = (0..2).map(|_| backlog.take(at(3_000), 4)).collect();
        assert_eq!(taken, [Some(3), Some(6_004)]);
        // The first one, tried twice, is due when the others are done.
        backlog.remove_through(5_000);
        (6_005..6_010).for_each(|number| assert_eq!(backlog.take(start, 4), Some(number)));
        assert_eq!((backlog.len(), backlog.due_at(4)), (0, None));
    }

    #[test]
    fn the_pause_doubles_up_to_a_bound() {
        let (mut backlog, mut at) = (Backlog::default(), now());
        for times in 0..80u32 {
            assert!(backlog.fail(7, at, PAUSE_MS));
            let pause = backlog.due_at(1).expect("it waits") - at;
            let expected = PAUSE_MS.saturating_mul(1 << times.min(20)).min(MAX_RETRY_PAUSE_MS);
            assert_eq!(pause, Duration::from_millis(expected), "{times}");
            at += pause;
            assert_eq!(backlog.take(at, 1), Some(7));
        }
        // That it cannot be asked for says nothing about it.
        let before = backlog.failed[&7].times;
        assert!(backlog.put_off(7, at, PAUSE_MS) && backlog.failed[&7].times == before);
        at += Duration::from_millis(PAUSE_MS);
        assert_eq!(backlog.take(at, 1), Some(7));
        // Something new is known of it.
        backlog.add_anew(7);
        assert_eq!((backlog.take(at, 1), backlog.take(at, 1)), (Some(7), None));
    }
}
