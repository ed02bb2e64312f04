//! Time that does not jump.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::environment::{now, wall_ms};

/// Wall time this far from a [`SteadyClock`] has jumped: it is not followed any more.
pub const MAX_OFFSET_MS: u64 = 1_000;
/// A slewing clock runs faster or slower by one part in this many: five times what NTP slews a wall clock by.
const SLEW_DIVISOR: u64 = 400;
/// How often the slew is computed anew.
const SLEW_INTERVAL_MS: u64 = 1_000;

/// The time that a role stamps and judges by.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> u64;

    /// How far the wall clock is ahead of this one, in milliseconds; negative when it is behind.
    fn offset_ms(&self) -> i64 {
        0
    }

    /// Takes over the wall clock's time, for when others confirm it.
    fn step(&self) {}
}

/// Where a [`SteadyClock`] reads the time: the operating system, or a simulation.
pub trait TimeSource: Send + Sync {
    /// Milliseconds since the Unix epoch. May jump.
    fn wall_ms(&self) -> u64;

    /// Milliseconds since some moment. Never steps back.
    fn monotonic_ms(&self) -> u64;
}

/// The operating system's clocks; the monotonic one is tokio's, so that its paused clock holds it, too.
#[derive(Clone, Copy, Debug)]
pub struct SystemTimeSource {
    start: Instant,
}

impl Default for SystemTimeSource {
    fn default() -> Self {
        Self { start: now() }
    }
}

impl TimeSource for SystemTimeSource {
    fn wall_ms(&self) -> u64 {
        wall_ms()
    }

    fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A clock that begins at the wall clock's time and runs on a monotonic base. It is slewed towards the wall clock by a
/// part in four hundred while the two are within [`MAX_OFFSET_MS`], and runs by itself while they are further apart.
/// It steps by [`step`](Clock::step) only.
#[derive(Clone)]
pub struct SteadyClock {
    shared: Arc<Shared>,
}

struct Shared {
    source: Box<dyn TimeSource>,
    state: Mutex<State>,
}

/// At `monotonic_ms` it was `time_ms`; from there on it runs, and for the next interval gains `slew_ms`.
#[derive(Clone, Copy)]
struct State {
    monotonic_ms: u64,
    time_ms: u64,
    slew_ms: i64,
    last_ms: u64,
}

impl SteadyClock {
    /// Begins at the source's wall time.
    pub fn new(source: impl TimeSource + 'static) -> Self {
        let (monotonic_ms, time_ms) = (source.monotonic_ms(), source.wall_ms());
        let state = State { monotonic_ms, time_ms, slew_ms: 0, last_ms: time_ms };
        Self { shared: Arc::new(Shared { source: Box::new(source), state: Mutex::new(state) }) }
    }

    /// On the operating system's clocks.
    pub fn system() -> Self {
        Self::new(SystemTimeSource::default())
    }

    fn advance(&self, state: &mut State) -> u64 {
        let monotonic_ms = self.shared.source.monotonic_ms();
        let elapsed_ms = monotonic_ms.saturating_sub(state.monotonic_ms);
        let gained_ms = state.gained_ms(elapsed_ms);
        let time_ms = state.time_ms.saturating_add(elapsed_ms).saturating_add_signed(gained_ms);
        if elapsed_ms >= SLEW_INTERVAL_MS {
            let offset_ms = difference_ms(self.shared.source.wall_ms(), time_ms);
            let most_ms = (SLEW_INTERVAL_MS / SLEW_DIVISOR) as i64;
            let jumped = offset_ms.unsigned_abs() > MAX_OFFSET_MS;
            let slew_ms = if jumped { 0 } else { offset_ms.clamp(-most_ms, most_ms) };
            *state = State { monotonic_ms, time_ms, slew_ms, ..*state };
        }
        // A slew backwards that begins anew may compute the time of a moment ago.
        state.last_ms = state.last_ms.max(time_ms);
        state.last_ms
    }
}

impl State {
    /// What the slew adds after so long: all of it after an interval, and no more later.
    fn gained_ms(&self, elapsed_ms: u64) -> i64 {
        let part = elapsed_ms.min(SLEW_INTERVAL_MS) as i64;
        self.slew_ms * part / SLEW_INTERVAL_MS as i64
    }
}

pub(crate) fn difference_ms(left_ms: u64, right_ms: u64) -> i64 {
    let difference = i128::from(left_ms) - i128::from(right_ms);
    i64::try_from(difference).unwrap_or(if difference > 0 { i64::MAX } else { i64::MIN })
}

impl Clock for SteadyClock {
    fn now_ms(&self) -> u64 {
        self.advance(&mut self.shared.state.lock())
    }

    fn offset_ms(&self) -> i64 {
        let now_ms = self.now_ms();
        difference_ms(self.shared.source.wall_ms(), now_ms)
    }

    fn step(&self) {
        let (monotonic_ms, time_ms) = (self.shared.source.monotonic_ms(), self.shared.source.wall_ms());
        *self.shared.state.lock() = State { monotonic_ms, time_ms, slew_ms: 0, last_ms: time_ms };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    use super::*;

    #[derive(Default)]
    struct Hands {
        wall_ms: AtomicU64,
        monotonic_ms: AtomicU64,
    }

    impl Hands {
        fn pass(&self, ms: u64) {
            self.wall_ms.fetch_add(ms, SeqCst);
            self.monotonic_ms.fetch_add(ms, SeqCst);
        }
    }

    impl TimeSource for Arc<Hands> {
        fn wall_ms(&self) -> u64 {
            self.wall_ms.load(SeqCst)
        }

        fn monotonic_ms(&self) -> u64 {
            self.monotonic_ms.load(SeqCst)
        }
    }

    const HOUR_MS: u64 = 3_600_000;
    const START_MS: u64 = 1_700_000_000_000;

    fn clock() -> (SteadyClock, Arc<Hands>) {
        let hands = Arc::new(Hands::default());
        hands.wall_ms.store(START_MS, SeqCst);
        (SteadyClock::new(Arc::clone(&hands)), hands)
    }

    #[test]
    fn a_wall_clock_that_jumps_an_hour_is_not_followed() {
        for (jump, offset) in [(HOUR_MS, HOUR_MS as i64), (HOUR_MS.wrapping_neg(), -(HOUR_MS as i64))] {
            let (clock, hands) = clock();
            hands.wall_ms.fetch_add(jump, SeqCst);
            for second in 1..=60 {
                hands.pass(1_000);
                assert_eq!(clock.now_ms(), START_MS + second * 1_000);
            }
            assert_eq!(clock.offset_ms(), offset);
            clock.step();
            assert_eq!((clock.now_ms(), clock.offset_ms()), (hands.wall_ms.load(SeqCst), 0));
        }
    }

    #[test]
    fn a_small_difference_is_slewed_away_and_time_never_steps_back() {
        for shift in [200u64, 200u64.wrapping_neg()] {
            let (clock, hands) = clock();
            hands.wall_ms.fetch_add(shift, SeqCst);
            let mut before = clock.now_ms();
            for _ in 0..20_000 {
                hands.pass(10);
                let now = clock.now_ms();
                assert!(now >= before && now - before <= 12, "{before} -> {now}");
                before = now;
            }
            assert!(clock.offset_ms().abs() <= 2, "{}", clock.offset_ms());
        }
    }

    #[test]
    fn a_clock_that_is_seldom_asked_gains_no_more() {
        let (clock, hands) = clock();
        hands.wall_ms.fetch_add(500, SeqCst);
        hands.pass(1_000);
        assert_eq!(clock.now_ms(), START_MS + 1_000);
        hands.pass(HOUR_MS);
        let now = clock.now_ms();
        assert!((START_MS + 1_000 + HOUR_MS..=START_MS + 1_003 + HOUR_MS).contains(&now), "{now}");
    }

    #[test]
    fn the_systems_clocks_tell_the_time() {
        let source = SystemTimeSource::default();
        assert!(source.wall_ms() > START_MS && source.monotonic_ms() <= source.monotonic_ms());
        let clock = SteadyClock::system();
        assert!(clock.now_ms() > START_MS && clock.offset_ms().unsigned_abs() <= MAX_OFFSET_MS);
    }
}
