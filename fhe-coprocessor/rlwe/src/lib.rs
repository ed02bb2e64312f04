//! Ring-LWE encryption: the ring. Pure functions, no input or output.

pub mod ring;
