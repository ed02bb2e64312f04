//! Public polynomials at a point of the field: what the verifier computes by itself.

use ark_ff::{BigInt, Field, PrimeField};

use crate::Fr;
use crate::polynomial::Polynomial;

/// 1, τ, τ² …: made once, used for all polynomials of a statement.
pub(crate) struct Powers(Vec<Fr>);

impl Powers {
    /// As many powers as the longest of the polynomials needs.
    pub(crate) fn of<'a>(point: Fr, polynomials: impl IntoIterator<Item = &'a Polynomial>) -> Self {
        let lengths = polynomials.into_iter().map(|polynomial| polynomial.coefficients().len());
        Self::new(point, lengths.max().unwrap_or(0))
    }

    /// The first `count` powers. One product each.
    pub(crate) fn new(point: Fr, count: usize) -> Self {
        let mut powers = Vec::with_capacity(count);
        let mut power = Fr::ONE;
        for _ in 0..count {
            powers.push(power);
            power *= point;
        }
        Self(powers)
    }

    /// Σ cᵢ·τ^i. Four word products for each coefficient and one reduction in all: coefficients are words, so the sum is
    /// taken over the integers, on the powers' Montgomery forms.
    ///
    /// # Panics
    /// With more coefficients than powers.
    pub(crate) fn evaluate(&self, coefficients: &[u64]) -> Fr {
        assert!(coefficients.len() <= self.0.len(), "more coefficients than powers");
        let mut sum = [0u64; 6];
        for (coefficient, power) in coefficients.iter().zip(&self.0) {
            let mut carry = 0u128;
            for (limb, factor) in sum.iter_mut().zip(power.0.0) {
                carry += u128::from(*limb) + u128::from(*coefficient) * u128::from(factor);
                *limb = carry as u64;
                carry >>= 64;
            }
            for limb in &mut sum[4..] {
                carry += u128::from(*limb);
                *limb = carry as u64;
                carry >>= 64;
            }
        }
        let [a, b, c, d, high @ ..] = sum;
        // The sum stands for sum·R^(−1). Its upper part times 2^256 = R is the Montgomery form of the upper part itself;
        // its lower part is below 3r.
        let mut low = BigInt([a, b, c, d]);
        while low >= Fr::MODULUS {
            ark_ff::BigInteger::sub_with_borrow(&mut low, &Fr::MODULUS);
        }
        let high = u128::from(high[1]) << 64 | u128::from(high[0]);
        Fr::new_unchecked(low) + Fr::from(high)
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

    use super::*;

    /// Horner's rule on the same numbers.
    fn horner(coefficients: &[u64], point: Fr) -> Fr {
        coefficients.iter().rev().fold(Fr::from(0u64), |sum, c| sum * point + Fr::from(*c))
    }

    #[test]
    fn sums_over_the_integers_equal_horners_rule() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for length in [0, 1, 2, 64, 2048] {
            for _ in 0..8 {
                let mut bytes = [0; 64];
                rng.fill_bytes(&mut bytes);
                let point = Fr::from_le_bytes_mod_order(&bytes);
                let random: Vec<u64> = (0..length).map(|_| rng.next_u64()).collect();
                let powers = Powers::new(point, length);
                assert_eq!(powers.evaluate(&random), horner(&random, point), "length {length}");
                let largest = vec![u64::MAX; length];
                assert_eq!(powers.evaluate(&largest), horner(&largest, point), "length {length}, largest");
            }
        }
    }
}
