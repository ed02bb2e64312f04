//! What every role runs on: time, supervised tasks, pauses between attempts, and the end of a process.
//!
//! - [`Clock`]: the time that a role stamps and judges by. [`SteadyClock`] runs on a monotonic base and is only slewed
//!   towards the wall clock, so that a wall clock that jumps does not take the role along. What it reads from is the
//!   seam [`TimeSource`]. [`Agreement`] compares it with the wall clock and with L1's.
//! - [`Tasks`]: tasks that are to run until they are told to stop. One that ends before, or panics, is a [`Failure`]
//!   of the whole role.
//! - [`blocking`]: work off the async threads, whose panic goes on in whoever waits for it. [`watch_panics`]: a process
//!   that ends after a panic of any thread.
//! - [`now`], [`wall_ms`], [`spawn`], [`rng`], [`random`]: what would make two runs of one seed differ is asked for here and
//!   nowhere else (`disallowed-methods` in `clippy.toml`), so that a [`Simulation`] can give it.
//! - [`Backoff`]: pauses that double up to a limit, with jitter from a seed.
//! - [`Pauses`]: peers whose answers came to nothing, who are left alone for a while.
//! - [`Hedge`]: asking several peers for the same thing, the next beside one that is slow; [`Pace`]: how soon.
//! - [`FileLock`]: one process for each file.
//! - [`Patience`]: how long something may fail without a break before its role gives up.
//!
//! Sleeping is tokio's: under its paused clock the same code runs in virtual time.
//!
//! ```
//! use blindfold_runtime::{Tasks, until};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let tasks = Tasks::new();
//! let mut stop = tasks.stop();
//! tasks.spawn("follower", async move { until(&mut stop).await });
//! tasks.spawn("broken", async { panic!("a bug") });
//! let failure = tasks.spawner().failed().await;
//! assert_eq!((failure.part, failure.cause.as_str()), ("broken", "panicked: a bug"));
//! tasks.shutdown().await;
//! # }
//! ```

mod agreement;
mod backoff;
mod clock;
mod environment;
mod hedge;
mod lock;
mod panics;
mod pauses;
mod tasks;

pub use agreement::{Agreement, Disagreement};
pub use backoff::{Backoff, Patience};
pub use clock::{Clock, MAX_OFFSET_MS, SteadyClock, SystemTimeSource, TimeSource};
pub use environment::{Random, Simulation, now, random, rng, spawn, wall_ms};
pub use hedge::{Hedge, Hedged, Pace};
pub use lock::FileLock;
pub use panics::{Cancelled, blocking, blocking_among, joined, panic_words, panicked, watch_panics};
pub use pauses::Pauses;
pub use tasks::{Failure, Spawner, Stop, Tasks, until};
pub use tokio::time::Instant;
