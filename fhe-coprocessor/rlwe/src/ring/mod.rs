//! Arithmetic of R_q = Z_q\[X\]/(X^N + 1), q a product of primes below 2^62, without branches on coefficients.
//!
//! A polynomial is kept as residues, all N for the first prime, then all N for the second, and so on; whoever needs
//! products turns a [`Poly`] into its [`Spectrum`]. Sources: the lazy butterflies of Harvey (arXiv 1205.2926), the
//! order of Longa and Naehrig (ePrint 2016/504), Barrett and Shoup reductions.
//!
//! Functions of [`Ring`] take polynomials of the same ring; those of another shape are a caller's mistake and panic.

mod basis;
mod integer;
mod modulus;
mod ntt;
mod packing;
mod poly;

pub use basis::BasisConversion;
pub use integer::integer_product;
pub use modulus::{MAX_MODULUS_BITS, Modulus, ModulusError};
pub use ntt::Ntt;
pub(crate) use ntt::bit_reverse;
pub use packing::{DecodeError, pack, packed_bytes, unpack};
pub use poly::{Poly, Ring, Spectrum};
