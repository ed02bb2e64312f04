//! Public polynomials.

use std::fmt;
use std::sync::Arc;

use alloy_primitives::{B256, keccak256};

use crate::ring::Ring;

/// A public polynomial of R_q in canonical form, with its hash: a, a key, or the c1 of a ciphertext. Shared, so a clone
/// costs nothing; hashed once, so statements about the same key do not hash it again.
#[derive(Clone)]
pub struct Polynomial(Arc<Inner>);

struct Inner {
    coefficients: Vec<u64>,
    hash: B256,
}

/// Numbers that are no element of R_q; whoever sent them is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PolynomialError {
    /// Another number of coefficients than N.
    #[error("a polynomial of this ring has {want} coefficients, these are {got}")]
    Length {
        /// Coefficients given.
        got: usize,
        /// N.
        want: usize,
    },
    /// A coefficient is not below q.
    #[error("coefficient {0} is not below the modulus: encode the reduced residue")]
    Coefficient(usize),
}

impl Polynomial {
    /// Checks and hashes N coefficients, lowest first. Costs one Keccak-256 of N·54 bits.
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
        let hash = keccak256(pack(&coefficients, ring.modulus_bits()));
        Ok(Self(Arc::new(Inner { coefficients, hash })))
    }

    /// The coefficients, lowest first, each below q.
    pub fn coefficients(&self) -> &[u64] {
        &self.0.coefficients
    }

    /// Keccak-256 of the packed coefficients: value i takes the bits from i times the width of q, lowest bit first, zero
    /// bits at the end.
    pub fn hash(&self) -> &B256 {
        &self.0.hash
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
        f.debug_tuple("Polynomial").field(&self.0.hash).finish()
    }
}

fn pack(values: &[u64], bits: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity((values.len() * bits as usize).div_ceil(8));
    let (mut pool, mut filled) = (0u128, 0);
    for value in values {
        pool |= u128::from(*value) << filled;
        filled += bits;
        while filled >= 8 {
            out.push(pool as u8);
            pool >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        out.push(pool as u8);
    }
    out
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
    fn the_hash_is_of_54_bits_a_coefficient_lowest_first() {
        let packed = pack(&[1, 1, 0, 0, 0, 0, 0, Ring::BALANCE.modulus() - 1], 54);
        assert_eq!(packed.len(), 54);
        assert_eq!((packed[0], packed[6]), (1, 1 << 6));
        let top = u64::from_le_bytes([
            packed[47], packed[48], packed[49], packed[50], packed[51], packed[52], packed[53], 0,
        ]);
        assert_eq!(top >> 2, Ring::BALANCE.modulus() - 1);
    }
}
