//! One launch: the blocks of a grid one after the other, the warps of a block likewise.

use std::sync::{Arc, Mutex, PoisonError};

use crate::code::Function;
use crate::fault::Fault;
use crate::lanes::{LANES, Mask, Words};
use crate::memory::{Allocations, Known, Local, POISON};
use crate::module::Module;
use crate::shadow::Shadow;
use crate::warp::Frame;

/// In which order blocks, warps, the lanes of an atomic operation and the ways of a branch are executed. No result may
/// depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From the first to the last.
    Forward,
    /// From the last to the first.
    Backward,
    /// Drawn from this seed, anew for each launch.
    Drawn(u64),
}

/// The memory that launches may use.
#[derive(Debug, Default)]
pub struct Memory(pub(crate) Mutex<Allocations>);

impl Memory {
    /// Allows the use of these bytes.
    ///
    /// # Safety
    /// They stay allocated until [`Memory::remove`], and while a launch runs nothing else refers to them.
    pub unsafe fn add(&self, address: *mut u8, bytes: usize) {
        self.with(|all| all.add(address as u64, bytes as u64));
    }

    /// Takes back what was allowed. False if nothing was.
    pub fn remove(&self, address: *const u8) -> bool {
        self.with(|all| all.free(address as u64))
    }

    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut Allocations) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What is launched.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The kernel's name in the text.
    pub kernel: &'a str,
    /// Blocks of the grid, in one dimension.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// The bytes of each parameter.
    pub arguments: &'a [&'a [u8]],
    /// Whether pointers to memory outside the device's allocations may be used, unchecked.
    pub foreign_memory: bool,
    /// The order of execution.
    pub order: Order,
}

impl Module {
    /// Executes a kernel.
    ///
    /// # Errors
    /// [`Fault`]: what in the kernel or the launch is wrong, or unknown here. Memory is then as far as execution came.
    ///
    /// # Safety
    /// With `foreign_memory`, every pointer among the arguments is one that the kernel may use as it does.
    pub unsafe fn launch(&self, memory: &Memory, launch: &Launch<'_>) -> Result<(), Fault> {
        for (address, bytes) in self.globals() {
            memory.with(|all| all.add(*address, *bytes as u64));
        }
        let number = self.kernel(launch.kernel).ok_or_else(|| Fault::NoKernel(launch.kernel.to_owned()))?;
        let mut machine = Machine::new(self, memory, launch);
        let function = machine.function(number)?;
        let warps = launch.threads.div_ceil(LANES as u32);
        for block in machine.order(launch.blocks) {
            machine.enter_block(block, warps);
            for warp in machine.order(warps) {
                machine.enter_warp(warp, warps);
                let mut frame = machine.take_frame(number, &function);
                for (block, bytes) in function.parameters.iter().zip(launch.arguments) {
                    for (word, part) in bytes.chunks(4).enumerate() {
                        frame.words[block.first as usize + word] =
                            Words::of(crate::memory::read(part) as u32);
                    }
                }
                let threads = launch.threads - warp * LANES as u32;
                let lanes = if threads >= LANES as u32 { Mask::MAX } else { (1 << threads) - 1 };
                machine.execute(&function, &mut frame, lanes)?;
                machine.give_frame(number, frame);
            }
        }
        Ok(())
    }

    /// The bytes of each of a kernel's parameters.
    #[must_use]
    pub fn parameter_bytes(&self, kernel: &str) -> Option<Vec<usize>> {
        let source = self.source(self.kernel(kernel)?);
        Some(source.parameters.iter().map(|parameter| parameter.bytes as usize).collect())
    }
}

/// The state of a launch.
pub(crate) struct Machine<'a> {
    module: &'a Module,
    memory: &'a Memory,
    foreign_memory: bool,
    functions: Vec<Option<Arc<Function>>>,
    /// Frames that no execution uses, of each function.
    frames: Vec<Vec<Frame>>,
    /// The allocation that was used last, from and up to.
    last: (u64, u64),
    state: u64,
    order: Order,
    pub(crate) backwards: bool,
    pub(crate) global_shadow: Shadow,
    // Of a block
    pub(crate) block: u32,
    pub(crate) blocks: u32,
    pub(crate) block_threads: u32,
    pub(crate) shared: Vec<u8>,
    pub(crate) shared_shadow: Shadow,
    // Of a warp
    pub(crate) warp: u32,
    pub(crate) first_thread: u32,
    /// Barriers so far, of all warps.
    pub(crate) time: u32,
    pub(crate) flag: Words,
    pub(crate) local: Local,
}

impl<'a> Machine<'a> {
    fn new(module: &'a Module, memory: &'a Memory, launch: &Launch<'_>) -> Self {
        let count = module.len();
        Self {
            module,
            memory,
            foreign_memory: launch.foreign_memory,
            functions: vec![None; count],
            frames: (0..count).map(|_| vec![]).collect(),
            last: (0, 0),
            state: if let Order::Drawn(seed) = launch.order { seed } else { 0 },
            order: launch.order,
            backwards: launch.order == Order::Backward,
            global_shadow: Shadow::new("global"),
            block: 0,
            blocks: launch.blocks,
            block_threads: launch.threads,
            shared: vec![POISON; module.shared_bytes() as usize],
            shared_shadow: Shadow::new("shared"),
            warp: 0,
            first_thread: 0,
            time: 0,
            flag: Words::of(0),
            local: Local::new(),
        }
    }

    fn enter_block(&mut self, block: u32, _warps: u32) {
        self.block = block;
        self.shared.fill(POISON);
        self.shared_shadow.clear();
    }

    fn enter_warp(&mut self, warp: u32, warps: u32) {
        self.warp = warp;
        self.first_thread = (self.block * warps + warp) * LANES as u32;
        self.time += 1;
        if let Order::Drawn(_) = self.order {
            self.backwards = self.draw() & 1 == 1;
        }
    }

    /// SplitMix64.
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.state;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// Whether the way that is taken comes before the one that goes on.
    pub(crate) fn turn(&mut self) -> bool {
        match self.order {
            Order::Forward => false,
            Order::Backward => true,
            Order::Drawn(_) => self.draw() & 1 == 1,
        }
    }

    fn order(&mut self, count: u32) -> Vec<u32> {
        let mut all: Vec<u32> = (0..count).collect();
        match self.order {
            Order::Forward => {}
            Order::Backward => all.reverse(),
            Order::Drawn(_) => (1..all.len())
                .rev()
                .for_each(|last| all.swap(last, (self.draw() % (last as u64 + 1)) as usize)),
        }
        all
    }

    pub(crate) fn function(&mut self, number: u32) -> Result<Arc<Function>, Fault> {
        let known = &mut self.functions[number as usize];
        if let Some(function) = known {
            return Ok(Arc::clone(function));
        }
        let function = self.module.function(number)?;
        *known = Some(Arc::clone(&function));
        Ok(function)
    }

    pub(crate) fn take_frame(&mut self, number: u32, function: &Function) -> Frame {
        self.frames[number as usize].pop().unwrap_or_else(|| Frame::new(function))
    }

    pub(crate) fn give_frame(&mut self, number: u32, frame: Frame) {
        self.frames[number as usize].push(frame);
    }

    pub(crate) fn may_use(&mut self, address: u64, bytes: u64) -> bool {
        if address >= self.last.0 && address + bytes <= self.last.1 {
            return true;
        }
        match self.memory.with(|all| all.of(address)) {
            Known::Allocated(from, to) => {
                self.last = (from, to);
                address + bytes <= to
            }
            Known::Forbidden => false,
            Known::Elsewhere => self.foreign_memory,
        }
    }
}
