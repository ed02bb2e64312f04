//! The batch operations of the scheme on CUDA devices.

pub mod exponents;
pub mod split_radix;
