//! The batch operations of the scheme on CUDA devices.
