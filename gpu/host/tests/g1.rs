//! G1 arithmetic of the kernels against arkworks.

mod common;
mod curve;

use ark_bls12_381::{Fr, G1Affine, G1Projective};
use ark_ec::CurveGroup;
use ark_ff::AdditiveGroup;
use common::random_field;
use curve::{POSITIONS, RawAffine, RawPoint, points, recode, rng, scalars};

unsafe extern "C" {
    fn blindfold_test_g1_add(a: *const RawPoint, b: *const RawPoint, out: *mut RawPoint, count: u32);
    fn blindfold_test_g1_sub(a: *const RawPoint, b: *const RawPoint, out: *mut RawPoint, count: u32);
    fn blindfold_test_g1_add_affine(a: *const RawPoint, b: *const RawAffine, out: *mut RawPoint, count: u32);
    fn blindfold_test_g1_twice(a: *const RawPoint, out: *mut RawPoint, count: u32);
    fn blindfold_test_g1_times_x_squared(a: *const RawPoint, out: *mut RawPoint, count: u32);
    fn blindfold_test_g1_equal(a: *const RawPoint, b: *const RawAffine, out: *mut u32, count: u32);
    fn blindfold_test_g1_multiply(
        points: *const RawPoint,
        digits: *const i8,
        positions: u32,
        odd: bool,
        out: *mut RawPoint,
        count: u32,
    );
}

/// Every pair of points, of which many are equal, opposite or identities.
fn pairs() -> Vec<(G1Projective, G1Projective)> {
    let all = points(&mut rng(), 17);
    let negated: Vec<_> = all.iter().map(|p| -*p).collect();
    all.iter().flat_map(|a| all.iter().chain(&negated).map(|b| (*a, *b))).collect()
}

#[test]
fn sums_and_differences() {
    let (pairs, mut rng) = (pairs(), rng());
    let mut raw = |p: G1Projective| RawPoint::scaled(p, random_field(&mut rng));
    let (a, b): (Vec<_>, Vec<_>) = pairs.iter().map(|(a, b)| (raw(*a), raw(*b))).unzip();
    let affine: Vec<RawAffine> = pairs.iter().map(|(_, b)| b.into_affine().into()).collect();
    let count = pairs.len() as u32;
    let mut out = [(); 3].map(|()| vec![RawPoint::default(); pairs.len()]);
    // SAFETY: all arrays have `count` elements in the kernels' layout.
    unsafe {
        blindfold_test_g1_add(a.as_ptr(), b.as_ptr(), out[0].as_mut_ptr(), count);
        blindfold_test_g1_add_affine(a.as_ptr(), affine.as_ptr(), out[1].as_mut_ptr(), count);
        blindfold_test_g1_sub(a.as_ptr(), b.as_ptr(), out[2].as_mut_ptr(), count);
    }
    for (i, (a, b)) in pairs.iter().enumerate() {
        assert_eq!(out[0][i].to_affine(), (*a + b).into_affine(), "{i}");
        assert_eq!(out[1][i].to_affine(), (*a + b).into_affine(), "{i}");
        assert_eq!(out[2][i].to_affine(), (*a - b).into_affine(), "{i}");
    }
    let mut equal = vec![7u32; pairs.len()];
    // SAFETY: all arrays have `count` elements in the kernels' layout.
    unsafe { blindfold_test_g1_equal(a.as_ptr(), affine.as_ptr(), equal.as_mut_ptr(), count) };
    for (i, (a, b)) in pairs.iter().enumerate() {
        assert_eq!(equal[i], u32::from(a == b), "{i}");
    }
}

#[test]
fn doubles_and_endomorphism() {
    let mut rng = rng();
    let all = points(&mut rng, 64);
    let raw: Vec<_> = all.iter().map(|p| RawPoint::scaled(*p, random_field(&mut rng))).collect();
    let (mut twice, mut image) = (vec![RawPoint::default(); 64], vec![RawPoint::default(); 64]);
    // SAFETY: all arrays have 64 elements in the kernels' layout.
    unsafe {
        blindfold_test_g1_twice(raw.as_ptr(), twice.as_mut_ptr(), 64);
        blindfold_test_g1_times_x_squared(raw.as_ptr(), image.as_mut_ptr(), 64);
    }
    for (i, point) in all.iter().enumerate() {
        assert_eq!(twice[i].to_affine(), point.double().into_affine(), "{i}");
        assert_eq!(image[i].to_affine(), (*point * Fr::from(curve::X_SQUARED)).into_affine(), "{i}");
    }
}

#[test]
fn multiples_of_points() {
    for (count, odd) in [(1, false), (3, true), (64, false), (64, true)] {
        let mut rng = rng();
        let scalars = scalars(&mut rng, count);
        let mut all = points(&mut rng, count);
        if let Some(point) = all.get_mut(5) {
            *point = G1Affine::identity().into();
        }
        let raw: Vec<_> = all.iter().map(|p| RawPoint::scaled(*p, random_field(&mut rng))).collect();
        let digits = recode(&scalars, odd);
        let mut out = vec![RawPoint::default(); count];
        // SAFETY: `count` points and results, and digits of as many scalars.
        unsafe {
            let (raw, digits) = (raw.as_ptr(), digits.as_ptr());
            blindfold_test_g1_multiply(raw, digits, POSITIONS as u32, odd, out.as_mut_ptr(), count as u32);
        }
        for i in 0..count {
            assert_eq!(out[i].to_affine(), (all[i] * scalars[i]).into_affine(), "{i} of {count}, odd {odd}");
        }
    }
}
