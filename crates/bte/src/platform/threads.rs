//! Threads: rayon's current pool.

use rayon::ThreadPool;
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

pub(crate) fn zip_mut<T: Send>(a: &mut [T], b: &mut [T], f: impl Fn(usize, &mut T, &mut T) + Sync + Send) {
    a.par_iter_mut().zip(b).enumerate().for_each(|(i, (a, b))| f(i, a, b));
}

/// `f` of each chunk of `size` elements.
pub(crate) fn for_each_chunk<T: Send>(items: &mut [T], size: usize, f: impl Fn(&mut [T]) + Sync + Send) {
    items.par_chunks_mut(size).for_each(f);
}

pub(crate) fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    rayon::join(a, b)
}

pub(crate) fn threads() -> usize {
    rayon::current_num_threads()
}

/// A bounded pool.
pub(crate) struct Pool(ThreadPool);

impl Pool {
    /// Of `threads` threads (0: one for each core).
    ///
    /// # Panics
    /// If the operating system refuses to start the threads.
    pub(crate) fn new(threads: usize) -> Self {
        let builder =
            rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("bte-{i}"));
        match builder.build() {
            Ok(pool) => Self(pool),
            Err(error) => panic!("cannot start {threads} threads for batch work: {error}"),
        }
    }

    /// Runs `work` in it: what it calls of this module then uses these threads.
    pub(crate) fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.0.install(work)
    }
}
