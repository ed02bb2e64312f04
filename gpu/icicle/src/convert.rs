//! Limbs of the seam to ICICLE's: 64 bits to 32.

use blindfold_bte::accelerator::{FpLimbs, G1Limbs, ScalarLimbs};
use icicle_bls12_381::curve::{G1Affine, ScalarField};
use icicle_core::affine::Affine;
use icicle_core::bignum::BigNum;

fn halves<const N: usize, const M: usize>(limbs: &[u64; N]) -> [u32; M] {
    const { assert!(M == 2 * N, "two halves each") };
    std::array::from_fn(|i| (limbs[i / 2] >> (32 * (i % 2))) as u32)
}

fn whole(halves: &[u32; 12]) -> FpLimbs {
    std::array::from_fn(|i| u64::from(halves[2 * i]) | u64::from(halves[2 * i + 1]) << 32)
}

/// The same coordinates: Montgomery form stays Montgomery form.
pub(crate) fn point(limbs: &G1Limbs) -> G1Affine {
    G1Affine::from_limbs(halves(&limbs[0]), halves(&limbs[1]))
}

/// Likewise back.
pub(crate) fn point_limbs(point: &G1Affine) -> G1Limbs {
    [whole(point.x.limbs()), whole(point.y.limbs())]
}

/// The same integer.
pub(crate) fn scalar(limbs: &ScalarLimbs) -> ScalarField {
    ScalarField::from(halves::<4, 8>(limbs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limbs_go_there_and_back() {
        let limbs: G1Limbs =
            std::array::from_fn(|c| std::array::from_fn(|i| (c as u64 + 1) << 40 | i as u64));
        assert_eq!(point_limbs(&point(&limbs)), limbs);
        let halves: [u32; 8] = scalar(&[1 << 32 | 2, 3, 4, 5 << 32]).into();
        assert_eq!(halves, [2, 1, 3, 0, 4, 0, 0, 5]);
    }
}
