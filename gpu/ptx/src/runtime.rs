//! The CUDA runtime, as far as `gpu/kernels` uses it, with this machine as its one device: for programs whose kernels
//! nvcc compiled to PTX (`-gencode arch=compute_90,code=compute_90 --no-compress`) and nothing else.
//!
//! Work of a stream is done when somebody waits for it, never before: a program that looks at a result too early, or
//! changes what a copy still needs, gets what it would rarely get on a device. The null stream works at once and may use
//! any memory of the process; other launches and copies may use device memory only where it is allocated.
//!
//! What a kernel does wrong ends the process with the [`Fault`](crate::Fault) on standard error, whatever the caller
//! would do with an error. Environment: `BLINDFOLD_PTX_ORDER` is `forward` (the default), `backward` or a seed
//! ([`Order`]); `BLINDFOLD_PTX_LOG` names a file that gets a line for each launch.

mod fat_binary;

use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::grid::{Launch, Memory, Order};
use crate::memory::{Known, MARGIN, POISON};
use crate::module::Module;

// Errors of the runtime's numbering.
const INVALID_VALUE: c_int = 1;
const OUT_OF_MEMORY: c_int = 2;
const INVALID_DEVICE_FUNCTION: c_int = 98;
const INVALID_DEVICE: c_int = 101;

/// Memory of the device, in bytes: enough for the tests, and soon used up by what is never freed.
const TOTAL_BYTES: u64 = 1 << 33;
const ALIGNMENT: u64 = 256;

/// `dim3`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimensions {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

/// A piece of a stream's work.
enum Work {
    Launch(Launched),
    Copy { to: usize, from: usize, bytes: usize },
    Record(usize),
}

struct Launched {
    module: Arc<Module>,
    kernel: Arc<str>,
    blocks: u32,
    threads: u32,
    arguments: Vec<Vec<u8>>,
}

/// Work that nobody has waited for.
type Stream = Mutex<Vec<Work>>;

struct Event(Mutex<Option<Instant>>);

/// Its module and its name there.
type Kernel = (Arc<Module>, Arc<str>);

#[derive(Default)]
struct Runtime {
    memory: Memory,
    /// By the address of the function that stands for a kernel on the host.
    kernels: Mutex<HashMap<usize, Kernel>>,
    /// By address: the length of what was allocated, on the device and on the host.
    allocated: Mutex<HashMap<usize, usize>>,
    streams: Mutex<HashMap<usize, Arc<Stream>>>,
}

static RUNTIME: LazyLock<Runtime> = LazyLock::new(Runtime::default);

thread_local! {
    static CONFIGURATIONS: RefCell<Vec<(Dimensions, Dimensions, usize, usize)>> = const { RefCell::new(vec![]) };
    static LAST_ERROR: Cell<c_int> = const { Cell::new(0) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Past what captures a test's output: the process ends here.
fn give_up(why: impl std::fmt::Display) -> ! {
    let _ = writeln!(std::io::stderr(), "blindfold-ptx: {why}");
    std::process::abort()
}

fn failed(code: c_int) -> c_int {
    LAST_ERROR.set(code);
    code
}

fn order() -> Order {
    match std::env::var("BLINDFOLD_PTX_ORDER").as_deref() {
        Err(_) | Ok("forward") => Order::Forward,
        Ok("backward") => Order::Backward,
        Ok(seed) => match seed.parse() {
            Ok(seed) => Order::Drawn(seed),
            Err(_) => give_up("BLINDFOLD_PTX_ORDER is neither `forward`, `backward` nor a seed"),
        },
    }
}

fn log(launched: &Launched) {
    let Some(path) = std::env::var_os("BLINDFOLD_PTX_LOG") else { return };
    let line = format!("{} {} {}\n", launched.kernel, launched.blocks, launched.threads);
    let file = OpenOptions::new().create(true).append(true).open(&path);
    if let Err(why) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        give_up(format_args!("{}: {why}", path.display()));
    }
}

impl Runtime {
    fn launch(&self, launched: &Launched, foreign_memory: bool) {
        log(launched);
        let arguments: Vec<&[u8]> = launched.arguments.iter().map(Vec::as_slice).collect();
        let launch = Launch {
            kernel: &launched.kernel,
            blocks: launched.blocks,
            threads: launched.threads,
            arguments: &arguments,
            foreign_memory,
            order: order(),
        };
        // SAFETY: pointers are looked up, or, on the null stream, the caller's own.
        if let Err(fault) = unsafe { launched.module.launch(&self.memory, &launch) } {
            give_up(fault);
        }
    }

    fn work(&self, stream: &Stream) {
        let mut pending = lock(stream);
        for work in std::mem::take(&mut *pending) {
            match work {
                Work::Launch(launched) => self.launch(&launched, false),
                // SAFETY: the device's side is allocated, the other the caller's until it has waited.
                Work::Copy { to, from, bytes } => unsafe {
                    self.is_allocated(to, from, bytes);
                    std::ptr::copy(from as *const u8, to as *mut u8, bytes);
                },
                // SAFETY: events live until they are destroyed, after what they are recorded in.
                Work::Record(event) => *lock(unsafe { &(*(event as *const Event)).0 }) = Some(Instant::now()),
            }
        }
    }

    /// One side of a copy is on the device.
    fn is_allocated(&self, to: usize, from: usize, bytes: usize) {
        let whole = |at: usize| {
            let known = self.memory.with(|all| all.of(at as u64));
            matches!(known, Known::Allocated(_, end) if (at + bytes) as u64 <= end)
        };
        if bytes > 0 && !whole(to) && !whole(from) {
            give_up(format_args!(
                "{bytes} bytes are copied from {from:#x} to {to:#x}, neither of which is on the device"
            ));
        }
    }

    fn work_on_all(&self) {
        let all: Vec<Arc<Stream>> = lock(&self.streams).values().cloned().collect();
        all.iter().for_each(|stream| self.work(stream));
    }

    fn stream(&self, stream: *const c_void) -> Option<Arc<Stream>> {
        lock(&self.streams).get(&(stream as usize)).cloned()
    }

    fn allocate(&self, bytes: usize) -> Option<usize> {
        let whole = bytes.checked_add(2 * MARGIN as usize)?;
        let layout = Layout::from_size_align(whole, ALIGNMENT as usize).ok()?;
        // SAFETY: of a size that is not zero.
        let start = unsafe { std::alloc::alloc(layout) };
        if start.is_null() {
            return None;
        }
        // SAFETY: as many bytes as were allocated.
        unsafe { start.write_bytes(POISON, whole) };
        let address = start as usize + MARGIN as usize;
        lock(&self.allocated).insert(address, bytes);
        Some(address)
    }

    fn release(&self, address: usize) -> bool {
        let Some(bytes) = lock(&self.allocated).remove(&address) else { return false };
        let Ok(layout) = Layout::from_size_align(bytes + 2 * MARGIN as usize, ALIGNMENT as usize) else {
            return false;
        };
        // SAFETY: as it was allocated, and freed once.
        unsafe { std::alloc::dealloc((address - MARGIN as usize) as *mut u8, layout) };
        true
    }
}

/// # Safety
/// Called by the code that nvcc writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterFatBinary(wrapper: *mut c_void) -> *mut *mut c_void {
    // SAFETY: nvcc's own.
    let text = unsafe { fat_binary::text_of(wrapper.cast()) };
    let text = text.unwrap_or_else(|why| give_up(format_args!("the fat binary {why}")));
    match Module::new(&text) {
        Ok(module) => Box::into_raw(Box::new(Arc::new(module))).cast(),
        Err(fault) => give_up(fault),
    }
}

/// # Safety
/// Called by the code that nvcc writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterFatBinaryEnd(_module: *mut *mut c_void) {}

/// # Safety
/// Called by the code that nvcc writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaUnregisterFatBinary(_module: *mut *mut c_void) {}

/// # Safety
/// Called by the code that nvcc writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaInitModule(_module: *mut *mut c_void) -> c_char {
    1
}

/// # Safety
/// Called by the code that nvcc writes.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the runtime's signature
pub unsafe extern "C" fn __cudaRegisterFunction(
    module: *mut *mut c_void,
    host: *const c_char,
    _device: *mut c_char,
    name: *const c_char,
    _limit: c_int,
    _thread: *mut c_void,
    _block: *mut c_void,
    _block_size: *mut Dimensions,
    _grid_size: *mut Dimensions,
    _warp_size: *mut c_int,
) {
    // SAFETY: what `__cudaRegisterFatBinary` gave, which is never freed.
    let module = unsafe { Arc::clone(&*module.cast::<Arc<Module>>()) };
    // SAFETY: nvcc's own text.
    let name: Arc<str> = unsafe { CStr::from_ptr(name) }.to_string_lossy().into();
    lock(&RUNTIME.kernels).insert(host as usize, (module, name));
}

/// Variables are reached by kernels alone: nothing here copies to them.
///
/// # Safety
/// Called by the code that nvcc writes.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the runtime's signature
pub unsafe extern "C" fn __cudaRegisterVar(
    _module: *mut *mut c_void,
    _host: *mut c_char,
    _device: *mut c_char,
    _name: *const c_char,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
}

/// # Safety
/// Called by the code that nvcc writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaPushCallConfiguration(
    grid: Dimensions,
    block: Dimensions,
    shared_bytes: usize,
    stream: *mut c_void,
) -> c_uint {
    CONFIGURATIONS.with_borrow_mut(|all| all.push((grid, block, shared_bytes, stream as usize)));
    0
}

/// # Safety
/// Called by the code that nvcc writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaPopCallConfiguration(
    grid: *mut Dimensions,
    block: *mut Dimensions,
    shared_bytes: *mut usize,
    stream: *mut *mut c_void,
) -> c_int {
    let Some(last) = CONFIGURATIONS.with_borrow_mut(Vec::pop) else { return failed(INVALID_VALUE) };
    // SAFETY: the caller's variables.
    unsafe { (*grid, *block, *shared_bytes, *stream) = (last.0, last.1, last.2, last.3 as *mut c_void) };
    0
}

/// # Safety
/// Called by the code that nvcc writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaGetKernel(out: *mut *const c_void, host: *const c_void) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *out = host };
    0
}

/// # Safety
/// Called by the code that nvcc writes: the arguments are those of the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaLaunchKernel(
    host: *const c_void,
    grid: Dimensions,
    block: Dimensions,
    arguments: *mut *mut c_void,
    shared_bytes: usize,
    stream: *mut c_void,
) -> c_int {
    let Some((module, kernel)) = lock(&RUNTIME.kernels).get(&(host as usize)).cloned() else {
        return failed(INVALID_DEVICE_FUNCTION);
    };
    let flat = |d: Dimensions| d.y == 1 && d.z == 1 && d.x > 0;
    let Some(sizes) = module.parameter_bytes(&kernel).filter(|_| flat(grid) && flat(block)) else {
        return failed(INVALID_VALUE);
    };
    if shared_bytes > 0 || block.x > 1024 || grid.x > i32::MAX as u32 {
        return failed(INVALID_VALUE);
    }
    // SAFETY: as many arguments as the kernel has, of its parameters' sizes.
    let copy = |(number, bytes): (usize, &usize)| unsafe {
        std::slice::from_raw_parts((*arguments.add(number)).cast::<u8>(), *bytes).to_vec()
    };
    let arguments = sizes.iter().enumerate().map(copy).collect();
    let launched = Launched { module, kernel, blocks: grid.x, threads: block.x, arguments };
    if stream.is_null() {
        RUNTIME.launch(&launched, true);
        return 0;
    }
    let Some(stream) = RUNTIME.stream(stream) else { return failed(INVALID_VALUE) };
    lock(&stream).push(Work::Launch(launched));
    0
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGetLastError() -> c_int {
    LAST_ERROR.replace(0)
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGetErrorString(code: c_int) -> *const c_char {
    let text = match code {
        INVALID_VALUE => c"invalid argument",
        OUT_OF_MEMORY => c"out of memory",
        INVALID_DEVICE_FUNCTION => c"invalid device function",
        INVALID_DEVICE => c"invalid device ordinal",
        _ => c"unknown error",
    };
    text.as_ptr()
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGetDeviceCount(out: *mut c_int) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *out = 1 };
    0
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaSetDevice(device: c_int) -> c_int {
    if device == 0 { 0 } else { failed(INVALID_DEVICE) }
}

// `cudaDeviceProp` of CUDA 13; gpu/ptx/layout.cuh compares.
const PROPERTIES_BYTES: usize = 1008;
const PROPERTIES_MEMORY: usize = 288;
const PROPERTIES_MAJOR: usize = 360;
const PROPERTIES_PROCESSORS: usize = 384;

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGetDeviceProperties(out: *mut u8, device: c_int) -> c_int {
    if device != 0 {
        return failed(INVALID_DEVICE);
    }
    let mut properties = [0u8; PROPERTIES_BYTES];
    let name = b"executed PTX";
    properties[..name.len()].copy_from_slice(name);
    properties[PROPERTIES_MEMORY..][..8].copy_from_slice(&TOTAL_BYTES.to_ne_bytes());
    properties[PROPERTIES_MAJOR..][..4].copy_from_slice(&9u32.to_ne_bytes());
    properties[PROPERTIES_PROCESSORS..][..4].copy_from_slice(&1u32.to_ne_bytes());
    // SAFETY: the caller's structure, of this size.
    unsafe { out.copy_from_nonoverlapping(properties.as_ptr(), PROPERTIES_BYTES) };
    0
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMemGetInfo(free: *mut usize, total: *mut usize) -> c_int {
    let used = RUNTIME.memory.with(|all| all.bytes());
    // SAFETY: the caller's variables.
    unsafe { (*free, *total) = (TOTAL_BYTES.saturating_sub(used) as usize, TOTAL_BYTES as usize) };
    0
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMalloc(out: *mut *mut c_void, bytes: usize) -> c_int {
    if bytes as u64 > TOTAL_BYTES.saturating_sub(RUNTIME.memory.with(|all| all.bytes())) {
        return failed(OUT_OF_MEMORY);
    }
    let Some(address) = RUNTIME.allocate(bytes) else { return failed(OUT_OF_MEMORY) };
    // SAFETY: allocated, and told to nobody yet; `cudaFree` takes it back first.
    unsafe {
        RUNTIME.memory.add(address as *mut u8, bytes);
        *out = address as *mut c_void;
    }
    0
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaFree(address: *mut c_void) -> c_int {
    RUNTIME.work_on_all();
    let known =
        address.is_null() || RUNTIME.memory.remove(address.cast()) && RUNTIME.release(address as usize);
    if known { 0 } else { failed(INVALID_VALUE) }
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMallocHost(out: *mut *mut c_void, bytes: usize) -> c_int {
    let Some(address) = RUNTIME.allocate(bytes) else { return failed(OUT_OF_MEMORY) };
    // SAFETY: the caller's variable.
    unsafe { *out = address as *mut c_void };
    0
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaFreeHost(address: *mut c_void) -> c_int {
    RUNTIME.work_on_all();
    if address.is_null() || RUNTIME.release(address as usize) { 0 } else { failed(INVALID_VALUE) }
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMemcpyAsync(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    _kind: c_int,
    stream: *mut c_void,
) -> c_int {
    let Some(stream) = RUNTIME.stream(stream) else { return failed(INVALID_VALUE) };
    lock(&stream).push(Work::Copy { to: to as usize, from: from as usize, bytes });
    0
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> c_int {
    // SAFETY: the caller's variables.
    unsafe { (*least, *greatest) = (0, -5) };
    0
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamCreateWithPriority(
    out: *mut *mut c_void,
    _flags: c_uint,
    _priority: c_int,
) -> c_int {
    let stream = Arc::new(Stream::default());
    let address = Arc::as_ptr(&stream) as usize;
    lock(&RUNTIME.streams).insert(address, stream);
    // SAFETY: the caller's variable.
    unsafe { *out = address as *mut c_void };
    0
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamDestroy(stream: *mut c_void) -> c_int {
    let removed = lock(&RUNTIME.streams).remove(&(stream as usize));
    match removed {
        Some(stream) => {
            RUNTIME.work(&stream);
            0
        }
        None => failed(INVALID_VALUE),
    }
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaStreamSynchronize(stream: *mut c_void) -> c_int {
    match RUNTIME.stream(stream) {
        Some(stream) => {
            RUNTIME.work(&stream);
            0
        }
        None => failed(INVALID_VALUE),
    }
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaEventCreate(out: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *out = Box::into_raw(Box::new(Event(Mutex::new(None)))).cast() };
    0
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaEventDestroy(event: *mut c_void) -> c_int {
    RUNTIME.work_on_all();
    if !event.is_null() {
        // SAFETY: what `cudaEventCreate` gave, once.
        drop(unsafe { Box::from_raw(event.cast::<Event>()) });
    }
    0
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaEventRecord(event: *mut c_void, stream: *mut c_void) -> c_int {
    let Some(stream) = RUNTIME.stream(stream) else { return failed(INVALID_VALUE) };
    lock(&stream).push(Work::Record(event as usize));
    0
}

/// # Safety
/// As the CUDA runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaEventElapsedTime(out: *mut f32, from: *mut c_void, to: *mut c_void) -> c_int {
    // SAFETY: events that were created and not destroyed.
    let (from, to) = unsafe { (&*from.cast::<Event>(), &*to.cast::<Event>()) };
    let (Some(from), Some(to)) = (*lock(&from.0), *lock(&to.0)) else { return failed(INVALID_VALUE) };
    // SAFETY: the caller's variable.
    unsafe { *out = to.saturating_duration_since(from).as_secs_f32() * 1e3 };
    0
}

const _: () = assert!(size_of::<Dimensions>() == 12, "the runtime's layout");
