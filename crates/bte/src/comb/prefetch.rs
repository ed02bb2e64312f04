//! Fetching table entries into the cache ahead of their use.

/// Starts to fetch `value`; nothing where there is no instruction for it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn prefetch<T>(value: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    const LINE_BYTES: usize = 64;
    let start = std::ptr::from_ref(value).cast::<i8>();
    for offset in (0..size_of::<T>()).step_by(LINE_BYTES) {
        // SAFETY: the offset lies inside the value; a prefetch has no effect but on the cache.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(offset)) };
    }
}

/// Starts to fetch `value`; nothing where there is no instruction for it.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn prefetch<T>(_value: &T) {}
