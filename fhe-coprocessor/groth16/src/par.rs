//! Data parallelism: rayon's current pool, or a plain loop in a browser.

#[cfg(not(target_arch = "wasm32"))]
mod imp {
    use rayon::prelude::*;

    pub(crate) fn map<T: Send>(count: usize, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
        (0..count).into_par_iter().map(f).collect()
    }

    pub(crate) fn join<A: Send, B: Send>(
        a: impl FnOnce() -> A + Send,
        b: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        rayon::join(a, b)
    }

    pub(crate) fn threads() -> usize {
        rayon::current_num_threads()
    }
}

#[cfg(target_arch = "wasm32")]
mod imp {
    pub(crate) fn map<T>(count: usize, f: impl Fn(usize) -> T) -> Vec<T> {
        (0..count).map(f).collect()
    }

    pub(crate) fn join<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
        (a(), b())
    }

    pub(crate) fn threads() -> usize {
        1
    }
}

/// Consecutive pieces of 0..count: `per_thread` for every thread, none shorter than `least` but the last.
pub(crate) fn pieces<T: Send>(
    count: usize,
    per_thread: usize,
    least: usize,
    task: impl Fn(std::ops::Range<usize>) -> T + Sync + Send,
) -> Vec<T> {
    let piece = count.div_ceil(threads() * per_thread).max(least).max(1);
    map(count.div_ceil(piece), |i| task(i * piece..count.min((i + 1) * piece)))
}

pub(crate) use imp::{join, map, threads};
