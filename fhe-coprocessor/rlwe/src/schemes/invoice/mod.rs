//! An invoice's total, Σ price·quantity, for who holds neither prices nor quantities to compute and for the payer alone
//! to read.
//!
//! | party | holds | learns |
//! |---|---|---|
//! | payer | the secret, the quantities | the total |
//! | supplier | the prices, the seed of the mask | nothing |
//! | whoever computes the total | key, both ciphertexts, the seed of the mask | nothing |
//!
//! **Equation.** For each of three primes t, in its own set of parameters and under a key of its own: line i's price
//! modulo t stands at X^i, its quantity modulo t at X^(−i) = −X^(N−i). The constant coefficient of the product is
//! Σ price·quantity mod t, since only i − i' = 0 meets it, and it is all of c0 that is kept. The three residues make the
//! total whole, below 2^56 < t_1·t_2·t_3. One coefficient, and not digits of which each weight has its sum: such sums
//! would show more than the total, of an invoice of few lines all its prices.
//!
//! **Hiding the prices from the payer.** His secret opens the noise of the product too, and its c1 depends on the
//! prices' ciphertext. So the product is [masked](super::compute::Compute::mask), from a seed of the supplier and
//! everything that goes in. With W < 2^80 of q ≈ 2^108 the three results are within 2^−27 of ones that depend on the
//! total alone, in the worst case over all operands that were encrypted honestly (a test computes it from the bounds; full
//! invoices were measured 2^16 below, which would be 2^−43). The worst case stays above 2^−40 because the distance is about
//! W/q and q is the largest that N = 4096 has within 128 bits.
//!
//! The total is a function of key, ciphertexts and seed, to the byte: who has them checks it by computing it again.
//!
//! **Not guaranteed.**
//! - Nothing is proved about what is encrypted. A payer may put other weights than quantities: each total shows him one
//!   sum of prices with weights of his choice modulo t_1·t_2·t_3, 56 bits. With a key or a ciphertext that is none, the
//!   noise is not drowned: what bounds the harm then is that 3 residues modulo q are kept, 324 bits. Likewise a
//!   supplier may put other prices, and whoever learns the total learns that sum of quantities.
//! - **The payer must not see the prices' ciphertext, nor the seed**: with his secret the former is the price list.
//! - A secret for many orders would be an oracle: a supplier's ciphertext that is none, and a total that is paid, show
//!   a part of the secret. Take a new secret for every order, and open one total with it.
//! - The key encrypts s² under s: circular security is assumed.

mod cipher;
mod residues;

pub use cipher::{InvoiceCiphertext, InvoiceKey, InvoiceSecret, InvoiceTotal, Invoices};
pub use residues::{MAX_LINES, MODULI};

use crate::ring::DecodeError;
use crate::rlwe::{EncryptError, KeyError, ParametersError};
use crate::schemes::compute::ComputeError;

/// Why there is no total.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvoiceError {
    /// More lines than stay exact.
    #[error("{lines} lines: an invoice has at most {MAX_LINES}, split it and add the totals")]
    Lines {
        /// How many lines were given.
        lines: usize,
    },
    /// What was opened is not quantities, or not a total of them.
    #[error("what was opened is no total of this order: it was altered, or made for another one")]
    Message,
    /// The bytes are no encoding.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A ciphertext that says of itself that it was computed: its noise would be drowned less.
    #[error("prices and quantities must be fresh encryptions")]
    NotFresh,
    /// A total could not be computed or opened.
    #[error(transparent)]
    Compute(#[from] ComputeError),
    /// An encryption failed; a mistake of this program.
    #[error(transparent)]
    Encrypt(#[from] EncryptError),
    /// The numbers of a set; a mistake of this program.
    #[error(transparent)]
    Parameters(#[from] ParametersError),
    /// A public polynomial; a mistake of this program.
    #[error(transparent)]
    Key(#[from] KeyError),
}
