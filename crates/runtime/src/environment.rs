//! What a thread runs in: the operating system, or a simulation.
//!
//! Roles ask here for whatever would make two runs of one seed differ. The time is tokio's, which a simulation pauses; the
//! wall clock is behind [`TimeSource`](crate::TimeSource). Only a thread that entered a [`Simulation`] draws randomness from
//! a seed and runs blocking work where it stands; no other thread is touched by it.

use std::{
    cell::RefCell,
    convert::Infallible,
    future::Future,
    marker::PhantomData,
    rc::Rc,
    time::{SystemTime, UNIX_EPOCH},
};

use rand::{
    CryptoRng, RngExt, SeedableRng, TryCryptoRng, TryRng,
    distr::{Distribution, StandardUniform},
    rngs::{StdRng, ThreadRng},
};
use tokio::{task::JoinHandle, time::Instant};

thread_local! {
    static SIMULATION: RefCell<Option<Rc<RefCell<StdRng>>>> = const { RefCell::new(None) };
}

/// The monotonic time. Under tokio's paused clock it is virtual, as sleeping is.
#[expect(clippy::disallowed_methods, reason = "this is where everybody else asks")]
pub fn now() -> Instant {
    Instant::now()
}

/// The operating system's wall clock, in milliseconds since the Unix epoch; 0 before it. It may jump: what a role stamps
/// and judges by is a [`Clock`](crate::Clock).
#[expect(clippy::disallowed_methods, reason = "this is where everybody else asks")]
pub fn wall_ms() -> u64 {
    // Before 1970 the clock is broken; zero is far from every other clock.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Runs a task whose end the caller awaits or does not need. What has to go on until a role stops is spawned by
/// [`Tasks`](crate::Tasks).
///
/// # Panics
/// Outside a tokio runtime.
#[expect(clippy::disallowed_methods, reason = "this is where everybody else asks")]
pub fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(task)
}

/// Randomness fit for secrets: the thread's own generator, seeded by the operating system.
pub fn rng() -> Random {
    let system = || Source::System(rand::rng());
    Random(SIMULATION.with_borrow(Clone::clone).map_or_else(system, Source::Seeded))
}

/// A random value, from [`rng`].
pub fn random<T>() -> T
where
    StandardUniform: Distribution<T>,
{
    rng().random()
}

/// A handle to the thread's generator.
#[derive(Debug)]
pub struct Random(Source);

enum Source {
    System(ThreadRng),
    Seeded(Rc<RefCell<StdRng>>),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::System(_) => "System",
            Self::Seeded(_) => "Seeded",
        })
    }
}

impl TryRng for Random {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        match &mut self.0 {
            Source::System(rng) => rng.try_next_u32(),
            Source::Seeded(rng) => rng.borrow_mut().try_next_u32(),
        }
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        match &mut self.0 {
            Source::System(rng) => rng.try_next_u64(),
            Source::Seeded(rng) => rng.borrow_mut().try_next_u64(),
        }
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        match &mut self.0 {
            Source::System(rng) => rng.try_fill_bytes(bytes),
            Source::Seeded(rng) => rng.borrow_mut().try_fill_bytes(bytes),
        }
    }
}

impl TryCryptoRng for Random {}

/// As long as this is there, its thread is a simulation: randomness comes from a seed, and what blocks runs at once.
///
/// For `testing/sim` alone. Nothing that a simulated thread encrypts or signs is secret.
#[derive(Debug)]
pub struct Simulation {
    /// Of this thread.
    not_send: PhantomData<Rc<()>>,
}

impl Simulation {
    /// Makes this thread a simulation.
    ///
    /// # Panics
    /// On a thread that is one already.
    #[must_use]
    pub fn enter(seed: u64) -> Self {
        let rng = Rc::new(RefCell::new(StdRng::seed_from_u64(seed)));
        let before = SIMULATION.replace(Some(rng));
        assert!(before.is_none(), "this thread is a simulation already");
        Self { not_send: PhantomData }
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        SIMULATION.set(None);
    }
}

/// Whether this thread is a simulation.
pub(crate) fn simulated() -> bool {
    SIMULATION.with_borrow(Option::is_some)
}

const _: () = {
    const fn fit_for_secrets<R: CryptoRng>() {}
    fit_for_secrets::<Random>();
};

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "these tests are simulations")]
mod tests {
    use std::thread;

    use super::*;
    use crate::blocking;

    fn drawn() -> ([u8; 16], u64, u32) {
        (random(), random(), random())
    }

    #[test]
    fn a_seed_says_what_a_simulated_thread_draws_and_no_other() {
        let first = {
            let _simulation = Simulation::enter(7);
            assert_ne!(thread::spawn(drawn).join().unwrap(), thread::spawn(drawn).join().unwrap());
            (drawn(), drawn())
        };
        let again = {
            let _simulation = Simulation::enter(7);
            (drawn(), drawn())
        };
        assert_eq!(first, again);
        assert_ne!(first.0, first.1);
        assert_ne!(drawn(), first.0, "a thread that left its simulation is none");
        assert_eq!(format!("{:?}", rng()), "Random(System)");
    }

    #[tokio::test]
    async fn what_blocks_runs_at_once_in_a_simulation_and_elsewhere_else() {
        let here = thread::current().id();
        let there = || thread::current().id();
        assert_ne!(blocking(there).await, Ok(here));
        let _simulation = Simulation::enter(7);
        assert_eq!(blocking(there).await, Ok(here));
    }
}
