//! Data parallelism: rayon's current pool, or a plain loop in a browser.
//!
//! A [`crate::Portable`] backend installs its own bounded pool around its work; called outside one, these use
//! rayon's global pool, and inside [`on_this_thread`] none.

pub(crate) use crate::platform::{Pool, for_each_chunk, join, map, map_chunks, threads, zip_mut};

/// Runs `work` without help: whatever this crate would spread over threads is done on the caller's, with the same results.
/// For work of about a millisecond, which waking others makes no shorter, and for callers with threads of their own.
pub fn on_this_thread<T>(work: impl FnOnce() -> T) -> T {
    crate::platform::alone(work)
}

/// Runs `task` on consecutive pieces of 0..count, as long as possible but of at most `most` elements and few enough
/// for every thread to have one; results in order. All pieces but the last are multiples of `step`.
pub(crate) fn pieces<T: Send>(
    count: usize,
    most: usize,
    step: usize,
    task: impl Fn(std::ops::Range<usize>) -> Vec<T> + Sync + Send,
) -> Vec<T> {
    let share = count.div_ceil(threads());
    let piece = share.clamp(1, most.max(1)).next_multiple_of(step);
    let starts: Vec<usize> = (0..count).step_by(piece).collect();
    map_chunks(&starts, 1, |start| task(start[0]..count.min(start[0] + piece)))
}
