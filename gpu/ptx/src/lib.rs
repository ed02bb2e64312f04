//! Executes PTX, the code that nvcc makes for devices, on the processor: for tests of kernels where there is no device.
//!
//! A [`Module`] is a text of PTX with the instructions that nvcc emits for this project's kernels; any other is an error.
//! The 32 lanes of a warp execute each instruction together. Where they branch apart, one side goes on after the other up
//! to the place where all ways meet; an instruction that synchronises lanes wants exactly the lanes that it names. What
//! chance decides on a device is looked for instead ([`Fault`]): two threads that use the same byte with nothing that
//! orders them, lanes missing at a shuffle or barrier, shared memory that nothing has written, registers and carry flags
//! likewise, addresses outside every allocation or not aligned. [`Order`] changes what may come first.
//!
//! With [`runtime`], a program that nvcc compiled with the kernels as PTX runs as it is: its launches come here.
//!
//! Not here: barriers of whole blocks, floating point, textures, grids of more than one dimension, dynamic shared memory;
//! nothing of what ptxas does to the PTX, of caches, of weak ordering of memory, or of time.

mod code;
mod decode;
mod fault;
mod flow;
mod grid;
mod lanes;
mod lexer;
mod memory;
mod module;
pub mod runtime;
mod shadow;
mod warp;

pub use fault::{Fault, Wrong};
pub use grid::{Launch, Memory, Order};
pub use module::Module;
