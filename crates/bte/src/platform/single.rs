//! One thread, as in a browser.

pub(crate) use super::loops::{for_each_chunk, join, map, map_chunks, zip_mut};

pub(crate) fn threads() -> usize {
    1
}

pub(crate) fn alone<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// Nothing: there is one thread.
pub(crate) struct Pool;

impl Pool {
    pub(crate) fn new(_threads: usize) -> Self {
        Self
    }

    pub(crate) fn install<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }
}
