//! Sums over bases that never change: the public variables' points of a verifying key.

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInteger, PrimeField};

use crate::par;

const WINDOW_BITS: usize = 4;
const DIGITS: usize = (1 << WINDOW_BITS) - 1;

/// Of each base the multiples digit · 16^window, by window and digit from 1 to 15: 64 · 15 points over both curves.
pub(crate) struct Windows<G: AffineRepr>(Vec<Vec<G>>);

impl<G: AffineRepr> Windows<G> {
    /// 1,024 additions for each base.
    pub(crate) fn new(bases: &[G]) -> Self {
        let windows = (G::ScalarField::MODULUS_BIT_SIZE as usize).div_ceil(WINDOW_BITS);
        Self(par::map(bases.len(), |i| {
            let mut table = Vec::with_capacity(windows * DIGITS);
            let mut base = bases[i].into_group();
            for _ in 0..windows {
                let mut multiple = base;
                for _ in 0..DIGITS {
                    table.push(multiple);
                    multiple += base;
                }
                base = multiple;
            }
            G::Group::normalize_batch(&table)
        }))
    }

    /// The points whose sum is Σ scalarsᵢ · basesᵢ: one for each hexadecimal digit that is not 0. Variable time.
    pub(crate) fn terms(&self, scalars: &[G::ScalarField]) -> Vec<G> {
        debug_assert_eq!(scalars.len(), self.0.len());
        let mut terms = Vec::with_capacity(
            scalars.len() * (G::ScalarField::MODULUS_BIT_SIZE as usize).div_ceil(WINDOW_BITS),
        );
        for (scalar, table) in scalars.iter().zip(&self.0) {
            let bytes = scalar.into_bigint().to_bytes_le();
            let digits = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
            for (window, digit) in table.chunks_exact(DIGITS).zip(digits) {
                if digit != 0 {
                    terms.push(window[usize::from(digit) - 1]);
                }
            }
        }
        terms
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::{Fr, G1Affine, G1Projective};
    use ark_ec::VariableBaseMSM;
    use ark_ff::{AdditiveGroup, Field};

    use super::*;

    #[test]
    fn windows_give_what_a_multi_scalar_multiplication_gives() {
        let bases: Vec<G1Affine> =
            (0..7u64).map(|i| (G1Affine::generator() * Fr::from(i)).into_affine()).collect();
        let scalars: Vec<Fr> = [Fr::ZERO, Fr::ONE, -Fr::ONE, Fr::from(15), Fr::from(16), Fr::from(u64::MAX)]
            .into_iter()
            .chain([-Fr::from(u128::MAX)])
            .collect();
        let want = G1Projective::msm(&bases, &scalars).unwrap();
        let terms = Windows::new(&bases).terms(&scalars);
        assert_eq!(terms.into_iter().sum::<G1Projective>(), want);
    }
}
