//! Confidential balances: their transactions, the state that these change, and what they prove.
//!
//! | module | what |
//! |---|---|
//! | [`transaction`] | the six kinds, their encodings and what is signed |
//! | [`state`] | accounts, the public ledger, and what one transaction does to them |
//! | [`tree`] | the versioned Merkle tree over either |
//! | [`executor`] | batches: proofs verified together, the result that of one after the other |
//! | [`statement`], [`circuits`] | what is proved, and the circuits |
//!
//! Pure functions: no input or output, no clock. `docs/coprocessor.md` is the specification.
//!
//! A balance is an RLWE ciphertext over R_q = `Z_q[X]/(X^N + 1)` with eight limbs of 8 bits ([`Ring`] has the numbers). Each
//! [statement](circuits) binds all that is public about one transaction; its proof is Groth16 over BLS12-381 with a
//! commitment to the witness ([`blindfold_groth16`]).
//!
//! # Why a proof cannot be forged
//! Every equation here is one between integers, or between polynomials with integer coefficients, and is checked modulo
//! the proof system's field order r ≈ 2^254.9:
//!
//! 1. All witness values that an equation depends on are committed before the challenges τ and α are drawn, and the
//!    challenges depend on that commitment, on the circuit and on everything public ([`statement`]).
//! 2. Polynomials that agree at the random point τ agree modulo r (`gadgets::polynomial`).
//! 3. Values that pass a look-up at the random point α are in their ranges (`gadgets::lookup`).
//! 4. Within these ranges both sides of every equation are so far below r that what holds modulo r holds over the
//!    integers. The bounds stand beside each equation; `bounds` in the tests of [`ring`](Ring) adds them up.
//!
//! What is left out of range checks is determined by what is not: products, and the parts of products above degree N.
//!
//! # Not guaranteed
//! That a ciphertext in the state is one that transactions made, that nonces and keys are those of the state, that
//! counters are kept: whoever applies a transaction builds its statement from the state, never from the sender's word.

pub mod circuits;
mod evaluation;
pub mod executor;
mod gadgets;
mod keccak;
mod polynomial;
mod poseidon;
mod ring;
pub mod state;
pub mod statement;
mod tags;
pub mod transaction;
pub mod tree;

#[cfg(test)]
extern crate self as blindfold_confidential;
#[cfg(test)]
#[path = "../testing/native.rs"]
mod native;

pub use polynomial::{Polynomial, PolynomialError};
pub use poseidon::secret_commitment;
pub use ring::{Ring, RingError};

/// The field of the proofs: scalars of BLS12-381.
pub type Fr = ark_bls12_381::Fr;

/// Limbs of an amount, of 8 bits each, lowest first.
pub const LIMBS: usize = 8;

/// Largest error of a key or a fresh ciphertext, in absolute value.
pub const ERROR_BOUND: i8 = 16;
