//! Ring-LWE encryption of amounts to several recipients at once, and BFV with one product.
//!
//! | layer | what |
//! |---|---|
//! | [`ring`] | Z_q\[X\]/(X^N + 1): transforms, residue bases, the canonical packing |
//! | [`rlwe`] | parameter sets, keys, encryption, counted sums |
//! | [`schemes`] | what is encrypted: balances, and numbers to be multiplied |
//!
//! Everything that a sum does is integer arithmetic modulo q on a canonical form, so all executors get the same bytes.
//! Noise is bounded in the worst case, by a counter in each ciphertext, and the bound is a theorem about every
//! ciphertext whose encryption was proved: no probability enters.
//!
//! Pure functions: no input or output, no clock, no floating point, no randomness but what the caller passes in. What
//! touches secrets does not branch on them. Unaudited.
//!
//! ```
//! use blindfold_rlwe::rlwe::{Ciphertext, Parameters, PublicPolynomial, SecretKey};
//! use blindfold_rlwe::schemes::balance;
//! # use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut rng = ChaCha20Rng::seed_from_u64(1);
//! let public = PublicPolynomial::new(&Parameters::balance()?, &[0; 32])?;
//! let (alice, bob) = (SecretKey::derive(&public, &[1; 32]), SecretKey::derive(&public, &[2; 32]));
//!
//! let keys = [&alice.public_key(), &bob.public_key()];
//! let (transfer, _witness) = balance::encrypt(&public, &keys, 250, &mut rng)?;
//! let mut available = Ciphertext::zero(public.parameters());
//! available.add_public(&balance::limbs(1000))?;
//! available.sub(&transfer.for_recipient(0).expect("two recipients"))?;
//!
//! assert_eq!(balance::decrypt(&alice, &available)?, 750);
//! assert_eq!(balance::decrypt(&bob, &transfer.for_recipient(1).expect("two recipients"))?, 250);
//! # Ok(())
//! # }
//! ```

pub mod ring;
pub mod rlwe;
pub mod schemes;
mod tags;
