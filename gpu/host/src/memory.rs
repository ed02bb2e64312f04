//! Memory, queues and moments of a device, each freed when dropped.
//!
//! The one place that calls the kernels' memory functions. A [`Queue`] works behind its caller's back: what reads or
//! writes a buffer is queued on a reference to it, and [`Queue::wait`] comes before the buffer is read here, freed or
//! used by another queue. Dropping a queue waits.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};

use blindfold_bte::accelerator::{DeviceError, FpLimbs, G1Limbs, G2Limbs, GtLimbs, ScalarLimbs};

use crate::device::done;
use crate::ffi;

/// Values that are the same bytes here and on a device, and valid whatever the bytes.
pub(crate) trait Plain: Copy {}

impl Plain for i8 {}
impl Plain for u8 {}
impl Plain for i32 {}
impl Plain for u32 {}
impl Plain for ScalarLimbs {}
impl Plain for FpLimbs {}
impl Plain for G1Limbs {}
impl Plain for [FpLimbs; 3] {}
impl Plain for G2Limbs {}
impl Plain for GtLimbs {}

/// Which device, by the runtime's number.
pub(crate) type Index = i32;

fn bytes_of<T>(count: usize) -> u64 {
    (count as u64).saturating_mul(size_of::<T>() as u64)
}

fn allocated(code: i32, bytes: u64, at: *mut c_void) -> Result<NonNull<c_void>, DeviceError> {
    done(code, bytes)?;
    NonNull::new(at).ok_or(DeviceError::Memory { needed_bytes: bytes, free_bytes: 0 })
}

/// `count` values in a device's memory; what they are is whatever was there before.
pub(crate) struct Buffer<T: Plain> {
    device: Index,
    at: NonNull<c_void>,
    count: usize,
    holds: PhantomData<T>,
}

// SAFETY: only an address on the device; this process does not read through it.
unsafe impl<T: Plain> Send for Buffer<T> {}
// SAFETY: likewise.
unsafe impl<T: Plain> Sync for Buffer<T> {}

impl<T: Plain> Buffer<T> {
    pub(crate) fn new(device: Index, count: usize) -> Result<Self, DeviceError> {
        let (mut at, bytes) = (null_mut(), bytes_of::<T>(count.max(1)));
        // SAFETY: writes one pointer.
        let code = unsafe { ffi::blindfold_allocate(device, bytes, &mut at) };
        Ok(Self { device, at: allocated(code, bytes, at)?, count, holds: PhantomData })
    }

    /// With these values, on a queue that has been waited for.
    pub(crate) fn filled(device: Index, queue: &mut Queue, values: &[T]) -> Result<Self, DeviceError> {
        let buffer = Self::new(device, values.len())?;
        // SAFETY: as many bytes in both; the wait comes before either can be freed.
        let code = unsafe {
            ffi::blindfold_upload(
                queue.raw(),
                buffer.raw(),
                values.as_ptr().cast(),
                bytes_of::<T>(values.len()),
            )
        };
        let queued = done(code, 0);
        queue.wait()?;
        queued.map(|()| buffer)
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        self.at.as_ptr()
    }

    /// The address of a value, which is one of the buffer's or the first past its end.
    pub(crate) fn at(&self, index: usize) -> *mut c_void {
        assert!(index <= self.count, "past the end of a device buffer");
        self.at.as_ptr().wrapping_byte_add(index * size_of::<T>())
    }
}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        // An error here is one of earlier work, which whoever waited for it has seen.
        // SAFETY: allocated on this device, and freed once.
        let _ = unsafe { ffi::blindfold_free(self.device, self.at.as_ptr()) };
    }
}

/// Values in the host's memory that a device copies by itself.
pub(crate) struct Pinned<T: Plain> {
    device: Index,
    at: NonNull<c_void>,
    count: usize,
    holds: PhantomData<T>,
}

// SAFETY: memory of this process that nothing else refers to.
unsafe impl<T: Plain + Send> Send for Pinned<T> {}

impl<T: Plain> Pinned<T> {
    pub(crate) fn new(device: Index, count: usize) -> Result<Self, DeviceError> {
        let (mut at, bytes) = (null_mut(), bytes_of::<T>(count.max(1)));
        // SAFETY: writes one pointer.
        let code = unsafe { ffi::blindfold_allocate_pinned(device, bytes, &mut at) };
        let at = allocated(code, bytes, at)?;
        // SAFETY: as many bytes as were allocated; after this all values are initialised.
        unsafe { at.as_ptr().cast::<u8>().write_bytes(0, count * size_of::<T>()) };
        Ok(Self { device, at, count, holds: PhantomData })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn values(&self) -> &[T] {
        // SAFETY: `count` initialised values of a plain type, well aligned since both allocators align to 256 bytes.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().cast(), self.count) }
    }

    pub(crate) fn values_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr().cast(), self.count) }
    }
}

impl<T: Plain> Drop for Pinned<T> {
    fn drop(&mut self) {
        // SAFETY: allocated so, and freed once; queues that use it are waited for first.
        let _ = unsafe { ffi::blindfold_free_pinned(self.device, self.at.as_ptr()) };
    }
}

/// Work on a device, done in order.
pub(crate) struct Queue(NonNull<ffi::RawQueue>);

// SAFETY: the queue may be used from any thread, one at a time.
unsafe impl Send for Queue {}

impl Queue {
    /// Work of an urgent queue overtakes that of the device's others.
    pub(crate) fn new(device: Index, urgent: bool) -> Result<Self, DeviceError> {
        let mut raw = null_mut();
        // SAFETY: writes one pointer.
        done(unsafe { ffi::blindfold_queue_open(device, i32::from(urgent), &mut raw) }, 0)?;
        NonNull::new(raw).map(Self).ok_or(DeviceError::Memory { needed_bytes: 0, free_bytes: 0 })
    }

    pub(crate) fn raw(&mut self) -> *mut ffi::RawQueue {
        self.0.as_ptr()
    }

    /// Until everything queued is done; its first error.
    pub(crate) fn wait(&mut self) -> Result<(), DeviceError> {
        // SAFETY: an open queue.
        done(unsafe { ffi::blindfold_queue_wait(self.raw()) }, 0)
    }

    /// The first `count` values to a buffer.
    pub(crate) fn upload<T: Plain>(
        &mut self,
        to: &Buffer<T>,
        from: &Pinned<T>,
        count: usize,
    ) -> Result<(), DeviceError> {
        assert!(count <= to.count && count <= from.count, "a copy within both");
        // SAFETY: as many bytes in both; the caller waits before it drops either.
        let code =
            unsafe { ffi::blindfold_upload(self.raw(), to.raw(), from.at.as_ptr(), bytes_of::<T>(count)) };
        done(code, 0)
    }

    /// The first `count` values of a buffer.
    pub(crate) fn download<T: Plain>(
        &mut self,
        to: &mut Pinned<T>,
        from: &Buffer<T>,
        count: usize,
    ) -> Result<(), DeviceError> {
        assert!(count <= to.count && count <= from.count, "a copy within both");
        // SAFETY: as many bytes in both; the caller waits before it reads or drops either.
        let code =
            unsafe { ffi::blindfold_download(self.raw(), to.at.as_ptr(), from.raw(), bytes_of::<T>(count)) };
        done(code, 0)
    }

    pub(crate) fn record(&mut self, event: &mut Event) -> Result<(), DeviceError> {
        // SAFETY: both are open.
        done(unsafe { ffi::blindfold_event_record(self.raw(), event.raw.as_ptr()) }, 0)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: open, and closed once.
        let _ = unsafe { ffi::blindfold_queue_close(self.raw()) };
    }
}

/// A moment in a queue's work.
pub(crate) struct Event {
    device: Index,
    raw: NonNull<ffi::RawEvent>,
}

// SAFETY: may be used from any thread, one at a time.
unsafe impl Send for Event {}

impl Event {
    pub(crate) fn new(device: Index) -> Result<Self, DeviceError> {
        let mut raw = null_mut();
        // SAFETY: writes one pointer.
        done(unsafe { ffi::blindfold_event_open(device, &mut raw) }, 0)?;
        let raw = NonNull::new(raw).ok_or(DeviceError::Memory { needed_bytes: 0, free_bytes: 0 })?;
        Ok(Self { device, raw })
    }

    /// Milliseconds from `earlier` to this moment, both recorded on a queue that has been waited for.
    pub(crate) fn ms_since(&self, earlier: &Self) -> Result<f32, DeviceError> {
        let mut ms = 0.0;
        // SAFETY: both are open, and one number is written.
        let code =
            unsafe { ffi::blindfold_event_elapsed_ms(earlier.raw.as_ptr(), self.raw.as_ptr(), &mut ms) };
        done(code, 0).map(|()| ms)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: open, and closed once.
        let _ = unsafe { ffi::blindfold_event_close(self.device, self.raw.as_ptr()) };
    }
}

/// Items that are worth a thread of their own.
const PIECE: usize = 2048;

/// `work` for pieces of `from` with the places for their results, `each` for an item: on as many threads as there are
/// cores, where there are that many items.
pub(crate) fn in_pieces<A: Send, B: Sync>(
    to: &mut [A],
    each: usize,
    from: &[B],
    work: impl Fn(&mut [A], &[B]) + Sync,
) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let piece = from.len().div_ceil(cores).max(PIECE);
    if from.len() <= piece {
        return work(to, from);
    }
    std::thread::scope(|scope| {
        for (to, from) in to.chunks_mut(each * piece).zip(from.chunks(piece)) {
            let work = &work;
            scope.spawn(move || work(to, from));
        }
    });
}
