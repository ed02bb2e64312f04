//! What `gpu/kernels/api.h` declares; see there.

use std::ffi::{c_char, c_void};

/// A stream of work on one device.
#[repr(C)]
pub(crate) struct RawQueue {
    _opaque: [u8; 0],
}

/// A moment in a queue's work.
#[repr(C)]
pub(crate) struct RawEvent {
    _opaque: [u8; 0],
}

#[repr(C)]
pub(crate) struct RawDevice {
    pub(crate) name: [c_char; 256],
    pub(crate) total_bytes: u64,
    pub(crate) free_bytes: u64,
    pub(crate) major: i32,
    pub(crate) minor: i32,
    pub(crate) processors: i32,
}

unsafe extern "C" {
    pub(crate) fn blindfold_error_text(code: i32) -> *const c_char;
    pub(crate) fn blindfold_device_count(out: *mut i32) -> i32;
    pub(crate) fn blindfold_device_describe(device: i32, out: *mut RawDevice) -> i32;
    pub(crate) fn blindfold_allocate(device: i32, bytes: u64, out: *mut *mut c_void) -> i32;
    pub(crate) fn blindfold_free(device: i32, device_memory: *mut c_void) -> i32;
    pub(crate) fn blindfold_allocate_pinned(device: i32, bytes: u64, out: *mut *mut c_void) -> i32;
    pub(crate) fn blindfold_free_pinned(device: i32, memory: *mut c_void) -> i32;
    pub(crate) fn blindfold_queue_open(device: i32, urgent: i32, out: *mut *mut RawQueue) -> i32;
    pub(crate) fn blindfold_queue_close(queue: *mut RawQueue) -> i32;
    pub(crate) fn blindfold_queue_wait(queue: *mut RawQueue) -> i32;
    pub(crate) fn blindfold_upload(
        queue: *mut RawQueue,
        device_to: *mut c_void,
        from: *const c_void,
        bytes: u64,
    ) -> i32;
    pub(crate) fn blindfold_download(
        queue: *mut RawQueue,
        to: *mut c_void,
        device_from: *const c_void,
        bytes: u64,
    ) -> i32;
    pub(crate) fn blindfold_event_open(device: i32, out: *mut *mut RawEvent) -> i32;
    pub(crate) fn blindfold_event_close(device: i32, event: *mut RawEvent) -> i32;
    pub(crate) fn blindfold_event_record(queue: *mut RawQueue, event: *mut RawEvent) -> i32;
    pub(crate) fn blindfold_event_elapsed_ms(
        from: *const RawEvent,
        to: *const RawEvent,
        out: *mut f32,
    ) -> i32;
}

unsafe extern "C" {
    pub(crate) fn blindfold_prepare_lines(
        queue: *mut RawQueue,
        device_points: *const c_void,
        device_lines: *mut c_void,
        count: u32,
    ) -> i32;
    pub(crate) fn blindfold_fold_points(
        queue: *mut RawQueue,
        log_size: u32,
        cosets: u32,
        device_inputs: *const c_void,
        count: u32,
        device_release: *const c_void,
        device_points: *mut c_void,
    ) -> i32;
    pub(crate) fn blindfold_transform_points(
        queue: *mut RawQueue,
        log_size: u32,
        cosets: u32,
        half: u32,
        device_digits: *const c_void,
        positions: u32,
        odd: i32,
        in_lanes: i32,
        device_points: *mut c_void,
    ) -> i32;
    pub(crate) fn blindfold_pair(
        queue: *mut RawQueue,
        device_points: *const c_void,
        point_step: u32,
        device_lines: *const c_void,
        count: u32,
        device_elements: *mut c_void,
        device_denominators: *mut c_void,
        device_scratch: *mut c_void,
    ) -> i32;
    pub(crate) fn blindfold_blind(
        queue: *mut RawQueue,
        device_point: *const c_void,
        device_lines: *const c_void,
        count: u32,
        device_cross: *const c_void,
        device_numerators: *mut c_void,
        device_denominators: *mut c_void,
        device_scratch: *mut c_void,
        device_blindings: *mut c_void,
    ) -> i32;
    pub(crate) fn blindfold_hard_parts(
        queue: *mut RawQueue,
        device_elements: *mut c_void,
        conjugates: i32,
        count: u32,
    ) -> i32;
    pub(crate) fn blindfold_raise(
        queue: *mut RawQueue,
        device_elements: *mut c_void,
        device_jobs: *const c_void,
        count: u32,
        device_codes: *const c_void,
        positions: u32,
        entries: u32,
        odd: i32,
        device_factors: *mut c_void,
    ) -> i32;
    pub(crate) fn blindfold_butterflies(
        queue: *mut RawQueue,
        device_elements: *mut c_void,
        device_starts: *const c_void,
        count: u32,
    ) -> i32;
    pub(crate) fn blindfold_combine(
        queue: *mut RawQueue,
        device_elements: *mut c_void,
        device_starts: *const c_void,
        count: u32,
        quarter: u32,
        frobenius_is_fourth_root: i32,
    ) -> i32;
    pub(crate) fn blindfold_unfold(
        queue: *mut RawQueue,
        device_elements: *const c_void,
        size: u32,
        cosets: u32,
        device_outputs: *mut c_void,
        count: u32,
    ) -> i32;
    pub(crate) fn blindfold_comb_entries(window_bits: u32) -> u32;
    pub(crate) fn blindfold_fill_comb(
        queue: *mut RawQueue,
        device_entries: *mut c_void,
        window_bits: u32,
        device_base: *const c_void,
    ) -> i32;
    pub(crate) fn blindfold_comb_powers(
        queue: *mut RawQueue,
        device_entries: *mut c_void,
        window_bits: u32,
        device_codes: *const c_void,
        device_powers: *mut c_void,
        count: u32,
    ) -> i32;
    pub(crate) fn blindfold_sum_bytes(count: u32) -> u64;
    pub(crate) fn blindfold_sum(
        queue: *mut RawQueue,
        device_points: *const c_void,
        device_scalars: *const c_void,
        count: u32,
        device_workspace: *mut c_void,
        device_out: *mut c_void,
    ) -> i32;
}
