//! Multi-scalar multiplication of the kernels against arkworks.

mod common;
mod curve;

use ark_bls12_381::{Fr, G1Affine, G1Projective};
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, BigInteger, PrimeField};
use common::random_field;
use curve::{RawAffine, RawPoint, limbs, points, rng, scalars};

/// Bytes of a point's digits in the direct variant.
const DIGIT_BYTES: usize = 258;

/// Room for kernels.
#[derive(Clone, Copy)]
#[repr(C, align(256))]
struct Block([u8; 256]);

unsafe extern "C" {
    fn blindfold_test_msm_bytes(points: u32, split: bool, window_bits: u32, share: u32) -> u64;
    fn blindfold_test_msm(
        points: *const RawAffine,
        scalars: *const u32,
        count: u32,
        split: bool,
        window_bits: u32,
        share: u32,
        block: *mut Block,
        out: *mut RawPoint,
    );
    fn blindfold_test_msm_directly(
        points: *const RawAffine,
        scalars: *const u32,
        count: u32,
        split: bool,
        digits: *mut i8,
        products: *mut RawPoint,
    );
}

/// The sums of both variants: by buckets with these windows and shares (0: as planned), and point by point.
fn sums(points: &[RawAffine], k: &[Fr], split: bool, window_bits: u32, share: u32) -> [G1Affine; 2] {
    let count = points.len() as u32;
    let words: Vec<u32> = k.iter().flat_map(|k| limbs(k)[..if split { 8 } else { 4 }].to_vec()).collect();
    // SAFETY: computes sizes only.
    let bytes = unsafe { blindfold_test_msm_bytes(count, split, window_bits, share) };
    let mut block = vec![Block([0xa5; 256]); (bytes as usize).div_ceil(256)];
    let mut out = RawPoint::default();
    let mut digits = vec![77i8; DIGIT_BYTES * points.len()];
    let mut products = vec![RawPoint::default(); points.len()];
    // SAFETY: `count` points and scalars, and the room that the functions name.
    unsafe {
        let (points, words) = (points.as_ptr(), words.as_ptr());
        blindfold_test_msm(points, words, count, split, window_bits, share, block.as_mut_ptr(), &mut out);
        blindfold_test_msm_directly(points, words, count, split, digits.as_mut_ptr(), products.as_mut_ptr());
    }
    [out.to_affine(), products[0].to_affine()]
}

fn check(points: &[G1Projective], k: &[Fr], split: bool, window_bits: u32, share: u32) {
    let want = points.iter().zip(k).map(|(point, k)| *point * k).sum::<G1Projective>().into_affine();
    let raw: Vec<RawAffine> = points.iter().map(|p| p.into_affine().into()).collect();
    let got = sums(&raw, k, split, window_bits, share);
    assert_eq!(
        got,
        [want; 2],
        "{} points, split {split}, windows of {window_bits}, shares of {share}",
        k.len()
    );
}

/// Weights below 2^128.
fn weights(count: usize) -> Vec<Fr> {
    let mut rng = rng();
    let weight = |i: usize| match i {
        0 => Fr::from(u128::MAX),
        1 => Fr::ZERO,
        2 => Fr::from(1),
        _ => Fr::from_le_bytes_mod_order(&random_field::<Fr>(&mut rng).into_bigint().to_bytes_le()[..16]),
    };
    (0..count).map(weight).collect()
}

#[test]
fn scalars_and_weights() {
    for count in [1, 3, 64, 100] {
        let mut rng = rng();
        let all = points(&mut rng, count);
        check(&all, &scalars(&mut rng, count), true, 0, 0);
        check(&all, &weights(count), false, 0, 0);
    }
}

#[test]
fn windows_and_shares_of_all_kinds() {
    let mut rng = rng();
    let (all, k) = (points(&mut rng, 30), scalars(&mut rng, 30));
    for (window_bits, share) in [(2, 4), (3, 5), (8, 64), (9, 4), (5, 1 << 20)] {
        check(&all, &k, true, window_bits, share);
    }
    check(&all[..1], &[-Fr::from(1)], true, 11, 0);
}

/// All entries in a few buckets, equal and opposite points in one, and sums that vanish.
#[test]
fn equal_and_opposite_entries() {
    let mut rng = rng();
    let point = points(&mut rng, 1)[0];
    let k = random_field::<Fr>(&mut rng);
    check(&[point; 64], &[k; 64], true, 0, 4);
    check(&[point; 64], &[Fr::ZERO; 64], true, 0, 0);
    check(&[G1Projective::ZERO; 9], &[k; 9], true, 0, 4);
    let signs: Vec<_> = (0..64).map(|i| if i % 2 == 0 { point } else { -point }).collect();
    check(&signs, &[k; 64], true, 0, 4);
    check(&signs, &[Fr::from(1); 64], false, 4, 4);
    check(&signs[..3], &[Fr::from(7); 3], false, 0, 0);
}
