//! Plain loops on the thread that asks.

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
