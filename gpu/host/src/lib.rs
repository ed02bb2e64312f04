//! The batch operations of the scheme on CUDA devices: an [`Accelerator`](blindfold_bte::accelerator::Accelerator) over
//! the kernels in `gpu/kernels`.
//!
//! | module | what |
//! |---|---|
//! | `devices`, `Cuda` | which devices there are and why there are none; one of them |
//! | [`plan`] | what a domain takes of a device's memory |
//! | [`digits`], [`exponents`] | twiddles as the kernels walk them |
//! | [`split_radix`] | the order of the transform back |
//! | [`several`] | several devices as one |
//!
//! Three builds: with the feature `cuda` the kernels are compiled by nvcc for devices; with `emulator` by the C++
//! compiler as host code, as one device called "emulated", for tests; with neither only what needs no device is here.
//! With `ptx` the emulated device gives its place to one called "executed PTX": nvcc compiles kernels and launches as for
//! a device, and `blindfold-ptx` executes them.

// The CUDA runtime of the kernels.
#[cfg(feature = "ptx")]
use blindfold_ptx as _;

#[cfg(any(feature = "cuda", feature = "emulator"))]
mod base;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod cuda;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod device;
pub mod digits;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod domain;
pub mod exponents;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod ffi;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod memory;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod phases;
pub mod plan;
pub mod several;
pub mod split_radix;
#[cfg(any(feature = "cuda", feature = "emulator"))]
mod table;

#[cfg(any(feature = "cuda", feature = "emulator"))]
pub use cuda::{Cuda, Limits};
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub use device::{Device, DevicesError, devices};
#[cfg(any(feature = "cuda", feature = "emulator"))]
pub use phases::{Phase, Phases};
