//! Public polynomials at a point of the field: what the verifier computes by itself.

use ark_ff::{BigInt, BigInteger, Field, PrimeField};

use crate::polynomial::Polynomial;
use crate::{Fr, LIMBS};

/// Coefficients whose products with powers are added up before anything is reduced: 2^6 products below 2^(54 + 64) stay
/// below 2^128.
const RUN: usize = 64;

/// Powers of a point τ: made once, used for all polynomials of a statement. Σ cᵢ·τ^i is taken in runs,
/// Σⱼ τ^(64j)·Σᵢ c_(64j+i)·τ^i with i < 64, so that 64 powers and those of τ^64 are enough.
pub(crate) struct Powers {
    /// 1, τ … τ^63.
    within: Vec<Fr>,
    /// 1, τ^64, τ^128 …
    between: Vec<Fr>,
}

impl Powers {
    /// As many powers as the longest of the polynomials needs.
    pub(crate) fn of<'a>(point: Fr, polynomials: impl IntoIterator<Item = &'a Polynomial>) -> Self {
        let lengths = polynomials.into_iter().map(|polynomial| polynomial.coefficients().len());
        Self::new(point, lengths.max().unwrap_or(0))
    }

    /// For `count` coefficients. 64 products, and one for every 64 coefficients.
    pub(crate) fn new(point: Fr, count: usize) -> Self {
        let powers = |point: Fr, count: usize| -> Vec<Fr> {
            std::iter::successors(Some(Fr::ONE), |power| Some(*power * point)).take(count).collect()
        };
        let within = powers(point, RUN);
        let step = within.last().map_or(point, |last| *last * point);
        Self { within, between: powers(step, count.div_ceil(RUN)) }
    }

    /// The polynomial at τ. Four word products for each coefficient; a reduction and a product in the field for every 64.
    ///
    /// # Panics
    /// With more coefficients than powers.
    pub(crate) fn evaluate(&self, polynomial: &Polynomial) -> Fr {
        self.evaluate_short(polynomial.coefficients())
    }

    /// Σ limbs_j·τ^j of any words. A product in the field each.
    pub(crate) fn evaluate_limbs(&self, limbs: &[u64; LIMBS]) -> Fr {
        limbs.iter().zip(&self.within).map(|(limb, power)| Fr::from(*limb) * power).sum()
    }

    /// Σ cᵢ·τ^i for cᵢ < 2^58: those of a polynomial are below 2^54.
    fn evaluate_short(&self, coefficients: &[u64]) -> Fr {
        assert!(coefficients.len() <= RUN * self.between.len(), "more coefficients than powers");
        let runs = coefficients.chunks(RUN).zip(&self.between);
        runs.map(|(coefficients, power)| self.run(coefficients) * power).sum()
    }

    /// Σ cᵢ·τ^i for i < 64, over the integers and on the powers' Montgomery forms, reduced once.
    fn run(&self, coefficients: &[u64]) -> Fr {
        let mut columns = [0u128; 4];
        for (coefficient, power) in coefficients.iter().zip(&self.within) {
            debug_assert!(coefficient >> 58 == 0, "sums of 64 products fit a column");
            for (column, limb) in columns.iter_mut().zip(power.0.0) {
                *column += u128::from(*coefficient) * u128::from(limb);
            }
        }
        let mut low = [0u64; 4];
        let mut carry = 0u128;
        for (limb, column) in low.iter_mut().zip(columns) {
            // Each column is below 2^128 − 2^70 and the carry below 2^65.
            carry += column;
            *limb = carry as u64;
            carry >>= u64::BITS;
        }
        // The sum stands for sum·R^(−1). Its part above 2^256 = R is the Montgomery form of that part itself; its lower part
        // is below 3r.
        let mut low = BigInt(low);
        while low >= Fr::MODULUS {
            low.sub_with_borrow(&Fr::MODULUS);
        }
        Fr::new_unchecked(low) + Fr::from(carry)
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
        for length in [0, 1, 2, 63, 64, 65, 130, 2048] {
            for _ in 0..8 {
                let mut bytes = [0; 64];
                rng.fill_bytes(&mut bytes);
                let point = Fr::from_le_bytes_mod_order(&bytes);
                let random: Vec<u64> = (0..length).map(|_| rng.next_u64() >> 6).collect();
                let powers = Powers::new(point, length);
                assert_eq!(powers.evaluate_short(&random), horner(&random, point), "length {length}");
                let largest = vec![u64::MAX >> 6; length];
                assert_eq!(
                    powers.evaluate_short(&largest),
                    horner(&largest, point),
                    "length {length}, largest"
                );
                let limbs = [(); LIMBS].map(|()| rng.next_u64());
                assert_eq!(powers.evaluate_limbs(&limbs), horner(&limbs, point));
                let limbs = [u64::MAX; LIMBS];
                assert_eq!(powers.evaluate_limbs(&limbs), horner(&limbs, point));
            }
        }
    }
}
