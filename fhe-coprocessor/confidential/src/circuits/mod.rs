//! The four statements and their circuits.
//!
//! Each is a Groth16 proof with a commitment to the witness polynomials ([`blindfold_groth16`]). Two challenges are drawn
//! after that commitment: τ, at which identities between polynomials are compared, and α, at which range checks are. The
//! public polynomials enter by their values at τ, which the verifier computes; a statement's digest binds all of them.
//!
//! | statement | proves |
//! |---|---|
//! | [`registration`] | the key b = −a·s + e is that of a ternary secret s whose commitment is registered |
//! | [`transfer`] | sender, receiver and auditor get the same amount v; the sender's balance is at least v and the fee |
//! | [`refresh`] | a fresh ciphertext holds the balance of the one it replaces |
//! | [`withdrawal`] | the balance is at least what is taken out |

pub mod refresh;
pub mod registration;
mod spending;
#[cfg(test)]
mod tests;
pub mod transfer;
pub mod withdrawal;

pub use crate::gadgets::encryption::Randomness;
pub use refresh::{Refresh, RefreshStatement, RefreshWitness};
pub use registration::{Registration, RegistrationStatement, RegistrationWitness};
pub use transfer::{RECIPIENTS, Transfer, TransferStatement, TransferWitness};
pub use withdrawal::{Withdrawal, WithdrawalStatement, WithdrawalWitness};

/// Challenge 0: the point at which polynomials are compared.
pub(crate) const TAU: usize = 0;
/// Challenge 1: the point of the range checks.
pub(crate) const ALPHA: usize = 1;
/// How many challenges every circuit draws: τ and α.
pub(crate) const CHALLENGES: usize = 2;
