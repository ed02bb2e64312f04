//! Data parallelism: rayon's current pool, or a plain loop in a browser.
//!
//! A [`crate::Portable`] backend installs its own bounded pool around its work; called outside one, these use
//! rayon's global pool.

#[cfg(not(target_arch = "wasm32"))]
mod imp {
    use rayon::prelude::*;

    pub(crate) fn map<T: Send>(count: usize, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
        (0..count).into_par_iter().map(f).collect()
    }

    pub(crate) fn map_chunks<I: Sync, T: Send>(
        items: &[I],
        chunk: usize,
        f: impl Fn(&[I]) -> Vec<T> + Sync + Send,
    ) -> Vec<T> {
        items.par_chunks(chunk).flat_map_iter(f).collect()
    }

    pub(crate) fn zip_mut<T: Send>(
        a: &mut [T],
        b: &mut [T],
        f: impl Fn(usize, &mut T, &mut T) + Sync + Send,
    ) {
        a.par_iter_mut().zip(b).enumerate().for_each(|(i, (a, b))| f(i, a, b));
    }

    /// `f` of each chunk of `size` elements.
    pub(crate) fn for_each_chunk<T: Send>(items: &mut [T], size: usize, f: impl Fn(&mut [T]) + Sync + Send) {
        items.par_chunks_mut(size).for_each(f);
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

    pub(crate) fn map_chunks<I, T>(items: &[I], chunk: usize, f: impl Fn(&[I]) -> Vec<T>) -> Vec<T> {
        items.chunks(chunk).flat_map(f).collect()
    }

    pub(crate) fn zip_mut<T>(a: &mut [T], b: &mut [T], f: impl Fn(usize, &mut T, &mut T)) {
        a.iter_mut().zip(b).enumerate().for_each(|(i, (a, b))| f(i, a, b));
    }

    /// `f` of each chunk of `size` elements.
    pub(crate) fn for_each_chunk<T>(items: &mut [T], size: usize, f: impl Fn(&mut [T])) {
        items.chunks_mut(size).for_each(f);
    }

    pub(crate) fn join<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
        (a(), b())
    }

    pub(crate) fn threads() -> usize {
        1
    }
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

pub(crate) use imp::{for_each_chunk, join, map, map_chunks, threads, zip_mut};
