//! Tests over BLS12-381 and BN254. Seeds are fixed.

mod batches;
mod ceremonies;
mod circuits;
mod imports;
mod keys;
mod oracle;
mod proofs;
mod synthesis;

use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use crate::setup::development;
use crate::{Curve, Prover, Verifier};
use circuits::{Product, ProductStatement};

pub(crate) type Bls = ark_bls12_381::Bls12_381;
pub(crate) type Bn = ark_bn254::Bn254;

/// Arkworks' code throughout.
impl Curve for Bn {}

pub(crate) const DEGREE: usize = 12;

pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// Prover and verifier of the product circuit under a development key.
pub(crate) fn product<E: Curve>(name: &'static str, degree: usize) -> (Prover<E, Product>, Verifier<E>) {
    let circuit = Product { name, degree };
    let key = development::<E, _>(&circuit, &[7; 32]).unwrap();
    let verifier = Verifier::new(key.verifying().clone());
    (Prover::new(circuit, key).unwrap(), verifier)
}

/// A witness of 0 and 1 that depends on `salt`, and its statement.
pub(crate) fn instance(degree: usize, salt: u64) -> (ProductStatement, Vec<u64>) {
    let u: Vec<u64> = (0..degree as u64).map(|i| (i * 7 + salt * 5 + i * i * salt) % 3 % 2).collect();
    let a: Vec<u64> = (0..degree as u64).map(|i| i * 1_000_003 + salt + 1).collect();
    (ProductStatement::of(&a, &u), u)
}
