//! Affine forms with shared inversions, and the splitting of scalars and their digits, against arkworks.

mod common;
mod curve;

use ark_bls12_381::Fr;
use ark_ec::CurveGroup;
use common::random_field;
use curve::{RawAffine, RawPoint, from_raw_affine, halves, limbs, points, rng, scalars};

unsafe extern "C" {
    fn blindfold_test_g1_normalise(points: *const RawPoint, out: *mut RawAffine, count: u32);
    fn blindfold_test_scalars_split(k: *const [u32; 8], halves: *mut [u32; 8], count: u32);
    fn blindfold_test_scalars_digits(k: *const [u32; 8], window_bits: u32, digits: *mut i32);
}

#[test]
fn affine_forms() {
    for count in [1, 3, 64, 100] {
        let mut rng = rng();
        let all = points(&mut rng, count);
        let raw: Vec<_> = all.iter().map(|p| RawPoint::scaled(*p, random_field(&mut rng))).collect();
        let mut out = vec![RawAffine::default(); count];
        // SAFETY: `count` elements each.
        unsafe { blindfold_test_g1_normalise(raw.as_ptr(), out.as_mut_ptr(), count as u32) };
        for (got, want) in out.into_iter().zip(&all) {
            assert_eq!(from_raw_affine(got), want.into_affine());
        }
    }
}

#[test]
fn scalars_split_by_the_endomorphism() {
    let scalars = scalars(&mut rng(), 300);
    let k: Vec<_> = scalars.iter().map(limbs).collect();
    let mut out = vec![[0; 8]; k.len()];
    // SAFETY: as many elements each.
    unsafe { blindfold_test_scalars_split(k.as_ptr(), out.as_mut_ptr(), k.len() as u32) };
    for (got, scalar) in out.iter().zip(&scalars) {
        let join = |limbs: &[u32]| limbs.iter().rev().fold(0u128, |sum, limb| sum << 32 | u128::from(*limb));
        assert_eq!([join(&got[..4]), join(&got[4..])], halves(scalar), "{scalar}");
    }
}

#[test]
fn signed_digits_recombine() {
    for (k, window_bits) in scalars(&mut rng(), 40).iter().flat_map(|k| (1..=16).map(move |w| (k, w))) {
        let mut digits = vec![0; 255 / window_bits as usize + 1];
        // SAFETY: one scalar, and a digit for each window.
        unsafe { blindfold_test_scalars_digits(&limbs(k), window_bits, digits.as_mut_ptr()) };
        assert!(digits.iter().all(|digit| digit.unsigned_abs() <= 1 << (window_bits - 1)));
        let base = Fr::from(1u64 << window_bits);
        let sum = digits.iter().rev().fold(Fr::from(0), |sum, digit| sum * base + Fr::from(*digit));
        assert_eq!(sum, *k, "windows of {window_bits}");
    }
}
