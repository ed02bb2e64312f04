//! What depends on the machine that this crate is built for: threads, fetching ahead, and the backend in lanes. Everything
//! else is the same everywhere; no other file asks for the architecture, but for those of [`crate::ifma`].

mod loops;
#[cfg(target_arch = "wasm32")]
mod single;
#[cfg(not(target_arch = "wasm32"))]
mod threads;

#[cfg(target_arch = "wasm32")]
pub(crate) use single::{Pool, alone, for_each_chunk, join, map, map_chunks, threads, zip_mut};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use threads::{Pool, alone, for_each_chunk, join, map, map_chunks, threads, zip_mut};

use crate::bulk::Bulk;
use crate::cpu::Processor;

/// The backend in eight lanes of AVX-512 IFMA, with `threads` threads (0: one for each core), where the processor has the
/// instructions.
///
/// # Panics
/// If the operating system refuses to start the threads.
#[cfg(target_arch = "x86_64")]
pub(crate) fn lanes(threads: usize) -> Option<Box<dyn Processor>> {
    crate::ifma::Ifma::new(threads).map(|ifma| Box::new(ifma) as Box<dyn Processor>)
}

/// None: its instructions are those of another architecture.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn lanes(_threads: usize) -> Option<Box<dyn Processor>> {
    None
}

/// That backend's arithmetic on many points, without threads of its own.
#[cfg(target_arch = "x86_64")]
pub(crate) fn bulk() -> Option<Box<dyn Bulk>> {
    crate::ifma::Ifma::bulk_here()
}

/// None likewise.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn bulk() -> Option<Box<dyn Bulk>> {
    None
}

/// Starts to fetch `value` into the cache, where there is an instruction for it.
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

/// Starts to fetch `value` into the cache, where there is an instruction for it.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn prefetch<T>(_value: &T) {}
