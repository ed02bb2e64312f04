//! Public polynomials.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use alloy_primitives::{B256, keccak256};
use blindfold_rlwe::ring::pack;

use crate::keccak::hash_on_all_threads;
use crate::ring::Ring;

/// A public polynomial of R_q in canonical form, with its hash: a, a key, or the c1 of a ciphertext. Shared, so a clone
/// costs nothing; hashed at most once, so statements about the same key do not hash it again.
#[derive(Clone)]
pub struct Polynomial(Arc<Inner>);

struct Inner {
    coefficients: Vec<u64>,
    /// Width of a packed coefficient.
    bits: u32,
    hash: OnceLock<B256>,
}

impl Inner {
    fn packed(&self) -> Vec<u8> {
        let mut packed = Vec::new();
        pack(&self.coefficients, self.bits, &mut packed);
        packed
    }
}

/// Numbers that are no element of R_q; whoever sent them is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PolynomialError {
    /// Another number of coefficients than N.
    #[error("a polynomial of this ring has {want} coefficients, these are {got}")]
    Length {
        /// How many coefficients were given.
        got: usize,
        /// How many there must be: N.
        want: usize,
    },
    /// A coefficient is not below q.
    #[error("coefficient {0} is not below the modulus: encode the reduced residue")]
    Coefficient(usize),
}

impl Polynomial {
    /// Checks N coefficients, lowest first.
    ///
    /// # Errors
    /// [`PolynomialError`].
    pub fn new(ring: &Ring, coefficients: Vec<u64>) -> Result<Self, PolynomialError> {
        if coefficients.len() != ring.degree() {
            return Err(PolynomialError::Length { got: coefficients.len(), want: ring.degree() });
        }
        if let Some(place) = coefficients.iter().position(|coefficient| *coefficient >= ring.modulus()) {
            return Err(PolynomialError::Coefficient(place));
        }
        Ok(Self(Arc::new(Inner { coefficients, bits: ring.modulus_bits(), hash: OnceLock::new() })))
    }

    /// The coefficients, lowest first, each below q.
    pub fn coefficients(&self) -> &[u64] {
        &self.0.coefficients
    }

    /// Keccak-256 of the packed coefficients: value i takes the bits from i times the width of q, lowest bit first, zero
    /// bits at the end. Costs that hash the first time.
    pub fn hash(&self) -> &B256 {
        self.0.hash.get_or_init(|| keccak256(self.0.packed()))
    }

    /// Hashes those that are not hashed yet, on all threads.
    pub(crate) fn hash_all<'a>(polynomials: impl IntoIterator<Item = &'a Self>) {
        let mut seen = HashSet::new();
        let unhashed: Vec<&Inner> = polynomials
            .into_iter()
            .map(|polynomial| &*polynomial.0)
            .filter(|inner| inner.hash.get().is_none() && seen.insert(std::ptr::from_ref(*inner)))
            .collect();
        hash_on_all_threads(
            &unhashed,
            |inner| inner.packed(),
            |inner, hash| {
                // Another thread may have been first, with the same hash.
                inner.hash.get_or_init(|| hash);
            },
        );
    }
}

impl PartialEq for Polynomial {
    fn eq(&self, other: &Self) -> bool {
        self.0.coefficients == other.0.coefficients
    }
}

impl Eq for Polynomial {}

impl fmt::Debug for Polynomial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Polynomial").field(self.hash()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_coefficients_are_a_polynomial() {
        let ring = Ring::new(16, Ring::BALANCE.modulus()).unwrap();
        let polynomial = Polynomial::new(&ring, vec![1; 16]).unwrap();
        assert_eq!(polynomial.coefficients(), [1; 16]);
        for length in [0, 15, 17] {
            let error = PolynomialError::Length { got: length, want: 16 };
            assert_eq!(Polynomial::new(&ring, vec![0; length]).unwrap_err(), error);
        }
        let mut raised = vec![1; 16];
        raised[3] = ring.modulus();
        assert_eq!(Polynomial::new(&ring, raised).unwrap_err(), PolynomialError::Coefficient(3));
    }

    #[test]
    fn the_hash_is_of_54_bits_a_coefficient_however_it_is_made() {
        let ring = Ring::new(16, Ring::BALANCE.modulus()).unwrap();
        let of = |salt: u64| Polynomial::new(&ring, (0..16).map(|i| i * 3 + salt).collect()).unwrap();
        let polynomials: Vec<Polynomial> = (0..11).map(of).collect();
        let copy = polynomials[3].clone();
        polynomials[5].hash();
        Polynomial::hash_all(polynomials.iter().chain([&copy]));
        for (salt, polynomial) in polynomials.iter().enumerate() {
            let mut bits = [0u8; 16 * 54 / 8];
            for (i, coefficient) in polynomial.coefficients().iter().enumerate() {
                for bit in 0..54 {
                    bits[(54 * i + bit) / 8] |= ((coefficient >> bit & 1) as u8) << ((54 * i + bit) % 8);
                }
            }
            assert_eq!(*polynomial.hash(), keccak256(bits));
            assert_eq!(polynomial.hash(), of(salt as u64).hash());
        }
    }
}
