//! Fixed-base multiplication, the splitting of scalars and shared inversions, against arkworks.

mod common;
mod curve;

use ark_bls12_381::{Fr, G1Affine, G1Projective};
use ark_ec::{AffineRepr, CurveGroup};
use common::random_field;
use curve::{RawAffine, RawPoint, from_raw_affine, halves, limbs, points, rng, scalars};

unsafe extern "C" {
    fn blindfold_test_g1_normalise(points: *const RawPoint, out: *mut RawAffine, count: u32);
    fn blindfold_test_scalars_split(k: *const [u32; 8], halves: *mut [u32; 8], count: u32);
    fn blindfold_test_scalars_digits(k: *const [u32; 8], window_bits: u32, digits: *mut i32);
    fn blindfold_test_comb_table(
        base: *const RawAffine,
        window_bits: u32,
        room: *mut RawPoint,
        table: *mut RawAffine,
    );
    fn blindfold_test_comb_multiply(
        table: *const RawAffine,
        window_bits: u32,
        k: *const [u32; 8],
        out: *mut RawPoint,
        count: u32,
    );
    fn blindfold_test_comb_verify(
        table: *const RawAffine,
        window_bits: u32,
        k: *const [u32; 8],
        points: *const RawAffine,
        out: *mut u32,
        count: u32,
    );
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

#[test]
fn multiples_of_a_fixed_point() {
    for window_bits in [1, 4, 5, 8] {
        let mut rng = rng();
        let base = G1Affine::generator();
        let entries = (255 / window_bits as usize + 1) << (window_bits - 1);
        let (mut room, mut table) = (vec![RawPoint::default(); entries], vec![RawAffine::default(); entries]);
        // SAFETY: a table's entries each.
        unsafe {
            blindfold_test_comb_table(&base.into(), window_bits, room.as_mut_ptr(), table.as_mut_ptr())
        };

        let mut scalars = scalars(&mut rng, 20);
        // Windows of ones, with carries all the way up, and of the largest digit.
        scalars.extend([3u64, 8, 0x80, 0x8888_8888_8888_8888, u64::MAX].map(Fr::from));
        let k: Vec<_> = scalars.iter().map(limbs).collect();
        let count = k.len() as u32;
        let mut out = vec![RawPoint::default(); k.len()];
        // SAFETY: the table, and `count` elements each.
        unsafe {
            blindfold_test_comb_multiply(table.as_ptr(), window_bits, k.as_ptr(), out.as_mut_ptr(), count)
        };
        let want: Vec<G1Projective> = scalars.iter().map(|k| base * k).collect();
        for ((got, want), k) in out.iter().zip(&want).zip(&scalars) {
            assert_eq!(got.to_affine(), want.into_affine(), "{k}, windows of {window_bits}");
        }

        // Every third claim is wrong: another point, the opposite one, the identity.
        let claim = |(i, point): (usize, &G1Projective)| match i % 9 {
            2 => (*point + base).into_affine(),
            5 => (-*point).into_affine(),
            8 => G1Affine::identity(),
            _ => point.into_affine(),
        };
        let claims: Vec<G1Affine> = want.iter().enumerate().map(claim).collect();
        let raw: Vec<RawAffine> = claims.iter().map(|p| (*p).into()).collect();
        let mut verdicts = vec![7; k.len()];
        // SAFETY: the table, and `count` elements each.
        unsafe {
            let (table, k, verdicts) = (table.as_ptr(), k.as_ptr(), verdicts.as_mut_ptr());
            blindfold_test_comb_verify(table, window_bits, k, raw.as_ptr(), verdicts, count);
        }
        for i in 0..k.len() {
            assert_eq!(verdicts[i], u32::from(claims[i] == want[i].into_affine()), "{i}");
        }
        assert!(verdicts.contains(&0) && verdicts.contains(&1));
    }
}
