//! Randomness of the process, from a seed.
//!
//! Two things below the roles draw from the operating system where no seam reaches: the order in which a `HashMap` gives its
//! entries, and the one in which tokio polls branches and wakes who waits (its `rng_seed` is not stable). Both ask the
//! standard library, which asks `getrandom` and lets a program put its own in that place.

use std::{
    cell::Cell,
    ffi::{c_uint, c_void},
};

thread_local! {
    /// Of each thread, so that no other thread's draws change what the simulation draws.
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// From now on this thread draws what follows from this seed.
pub fn seed(seed: u64) {
    STATE.set(seed);
}

/// SplitMix64.
fn next() -> u64 {
    let mut mixed = STATE.get();
    STATE.set(mixed.wrapping_add(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// In the place of the C library's.
///
/// # Safety
/// As of the C library's: `buffer` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, _flags: c_uint) -> isize {
    for offset in 0..length {
        // SAFETY: the caller gives a buffer of this length.
        unsafe { buffer.cast::<u8>().add(offset).write(next() as u8) };
    }
    isize::try_from(length).unwrap_or(isize::MAX)
}
