//! Threads: rayon's current pool, or none but the caller's.

use std::cell::Cell;

use rayon::ThreadPool;
use rayon::prelude::*;

use super::loops;

thread_local! {
    /// Whether this thread works [`alone`].
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` with every loop of this module on this thread.
pub(crate) fn alone<T>(work: impl FnOnce() -> T) -> T {
    /// Ends it, also by a panic.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _before = Before(ALONE.replace(true));
    work()
}

pub(crate) fn map<T: Send>(count: usize, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if ALONE.get() {
        return loops::map(count, f);
    }
    (0..count).into_par_iter().map(f).collect()
}

pub(crate) fn map_chunks<I: Sync, T: Send>(
    items: &[I],
    chunk: usize,
    f: impl Fn(&[I]) -> Vec<T> + Sync + Send,
) -> Vec<T> {
    if ALONE.get() {
        return loops::map_chunks(items, chunk, f);
    }
    items.par_chunks(chunk).flat_map_iter(f).collect()
}

pub(crate) fn zip_mut<T: Send>(a: &mut [T], b: &mut [T], f: impl Fn(usize, &mut T, &mut T) + Sync + Send) {
    if ALONE.get() {
        return loops::zip_mut(a, b, f);
    }
    a.par_iter_mut().zip(b).enumerate().for_each(|(i, (a, b))| f(i, a, b));
}

/// `f` of each chunk of `size` elements.
pub(crate) fn for_each_chunk<T: Send>(items: &mut [T], size: usize, f: impl Fn(&mut [T]) + Sync + Send) {
    if ALONE.get() {
        return loops::for_each_chunk(items, size, f);
    }
    items.par_chunks_mut(size).for_each(f);
}

pub(crate) fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    if ALONE.get() { loops::join(a, b) } else { rayon::join(a, b) }
}

pub(crate) fn threads() -> usize {
    if ALONE.get() { 1 } else { rayon::current_num_threads() }
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
        if ALONE.get() { work() } else { self.0.install(work) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_works_alone_wakes_nobody_and_gets_the_same() {
        let here = || std::thread::current().id();
        let caller = here();
        let pool = Pool::new(2);
        let numbers: Vec<u32> = (0..100).collect();
        let double = |chunk: &[u32]| chunk.iter().map(|n| 2 * n).collect::<Vec<_>>();
        let (mut a, mut b) = (numbers.clone(), numbers.clone());
        let all = alone(|| {
            assert_eq!(threads(), 1);
            assert!(map(100, |_| here()).into_iter().all(|thread| thread == caller));
            assert_eq!(join(here, here), (caller, caller));
            assert_eq!(pool.install(here), caller);
            zip_mut(&mut a, &mut b, |_, a, b| std::mem::swap(a, b));
            for_each_chunk(&mut a, 7, |_| assert_eq!(here(), caller));
            map_chunks(&numbers, 7, double)
        });
        assert_eq!(all, map_chunks(&numbers, 7, double));
        assert_ne!(pool.install(here), caller, "afterwards it is as before");
        let panicked = std::panic::catch_unwind(|| alone(|| panic!("a bug")));
        assert!(panicked.is_err() && pool.install(here) != caller);
    }
}
