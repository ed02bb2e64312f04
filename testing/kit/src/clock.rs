//! Time as a script.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst},
};

use blindfold_runtime::Clock;

use crate::START_MS;

/// A clock that tests move, and break.
pub struct ManualClock {
    now_ms: AtomicU64,
    wall_ahead_ms: AtomicI64,
    broken: AtomicBool,
}

impl ManualClock {
    /// It stands at [`START_MS`].
    pub fn new() -> Arc<Self> {
        let (now_ms, wall_ahead_ms) = (AtomicU64::new(START_MS), AtomicI64::new(0));
        Arc::new(Self { now_ms, wall_ahead_ms, broken: AtomicBool::new(false) })
    }

    /// It goes on by so much.
    pub fn advance(&self, ms: u64) {
        self.now_ms.fetch_add(ms, SeqCst);
    }

    /// It is so late.
    pub fn set(&self, ms: u64) {
        self.now_ms.store(ms, SeqCst);
    }

    /// The wall clock is so far ahead of it from now on.
    pub fn jump(&self, ms: i64) {
        self.wall_ahead_ms.store(ms, SeqCst);
    }

    /// Whoever asks for the time from now on panics.
    pub fn break_it(&self) {
        self.broken.store(true, SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        assert!(!self.broken.load(SeqCst), "the clock is broken");
        self.now_ms.load(SeqCst)
    }

    fn offset_ms(&self) -> i64 {
        self.wall_ahead_ms.load(SeqCst)
    }

    fn step(&self) {
        let ahead_ms = self.wall_ahead_ms.swap(0, SeqCst);
        self.set(self.now_ms().saturating_add_signed(ahead_ms));
    }
}
