//! The forward transform of points against its definition, by arkworks.

mod common;
mod curve;

use ark_bls12_381::{Fr, G1Affine, G1Projective};
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, FftField, Field};
use curve::{POSITIONS, RawAffine, RawPoint, X_SQUARED, points, recode, rng};

unsafe extern "C" {
    fn blindfold_test_points_forward(
        log_size: u32,
        cosets: u32,
        inputs: *const RawAffine,
        count: u32,
        release: *const RawAffine,
        digits: *const i8,
        positions: u32,
        odd: bool,
        in_lanes: bool,
        out: *mut RawPoint,
    );
}

/// The kernels' transform, in their order.
fn forward(
    log_size: u32,
    cosets: usize,
    inputs: &[G1Projective],
    release: Option<G1Projective>,
    odd: bool,
    in_lanes: bool,
) -> Vec<G1Affine> {
    let raw = |p: &G1Projective| RawAffine::from(p.into_affine());
    let (raw_inputs, raw_release) = (inputs.iter().map(raw).collect::<Vec<_>>(), release.as_ref().map(raw));
    let root = root(log_size);
    let roots: Vec<Fr> = (0..1u64 << (log_size - 1)).map(|power| root.pow([power])).collect();
    let digits = recode(&roots, odd);
    let mut out = vec![RawPoint::default(); cosets << log_size];
    // SAFETY: arrays of the sizes that the function names: c·M results, M/2 roots.
    unsafe {
        blindfold_test_points_forward(
            log_size,
            cosets as u32,
            raw_inputs.as_ptr(),
            inputs.len() as u32,
            raw_release.as_ref().map_or(std::ptr::null(), |release| release),
            digits.as_ptr(),
            POSITIONS as u32,
            odd,
            in_lanes,
            out.as_mut_ptr(),
        );
    }
    out.into_iter().map(RawPoint::to_affine).collect()
}

/// ω for M = 2^log_size, as crates/bte takes it: a power of 7.
fn root(log_size: u32) -> Fr {
    let root = Fr::TWO_ADIC_ROOT_OF_UNITY;
    (log_size..Fr::TWO_ADICITY).fold(root, |root, _| root.square())
}

/// Σ_m slot_m·z^m at z = ζ^coset·ω^frequency, by Horner's rule.
fn evaluate(slots: &[G1Projective], z: Fr) -> G1Projective {
    slots.iter().rev().fold(G1Projective::ZERO, |sum, slot| sum * z + slot)
}

/// Points of the results to compare: all, or a part where that takes long.
fn check(
    log_size: u32,
    cosets: usize,
    inputs: &[G1Projective],
    release: Option<G1Projective>,
    odd: bool,
    every: usize,
) {
    let got = forward(log_size, cosets, inputs, release, odd, false);
    assert_eq!(forward(log_size, cosets, inputs, release, odd, true), got, "in lanes");
    let (size, capacity) = (1usize << log_size, cosets << log_size >> 1);
    let mut slots = vec![G1Projective::ZERO; capacity + 1];
    for (position, input) in inputs.iter().enumerate() {
        slots[capacity - 1 - position] = *input;
    }
    slots[capacity] = release.map_or(G1Projective::ZERO, |release| -release);
    let zeta = -Fr::from(X_SQUARED);
    for (index, got) in got.iter().enumerate().step_by(every) {
        let (coset, place) = (index / size, index % size);
        let frequency = (place as u32).reverse_bits() >> (32 - log_size);
        let z = zeta.pow([coset as u64]) * root(log_size).pow([u64::from(frequency)]);
        assert_eq!(
            *got,
            evaluate(&slots, z).into_affine(),
            "2^{log_size}, {cosets} cosets, odd {odd}, index {index}"
        );
    }
}

#[test]
fn roots_are_those_of_the_scheme() {
    let exponent = (-Fr::from(1)) / Fr::from(1u64 << 32);
    let seven_to = Fr::from(7).pow(ark_ff::PrimeField::into_bigint(exponent));
    assert_eq!(Fr::TWO_ADIC_ROOT_OF_UNITY, seven_to);
}

#[test]
fn small_transforms() {
    let mut rng = rng();
    for (log_size, cosets) in [(1, 2), (1, 3), (2, 2), (2, 3), (3, 3)] {
        let capacity = cosets << log_size >> 1;
        for odd in [false, true] {
            let inputs = points(&mut rng, capacity);
            check(log_size, cosets, &inputs, None, odd, 1);
            check(log_size, cosets, &inputs[..1], Some(inputs[0]), odd, 1);
        }
    }
}

/// Equal, opposite and identity points meet in the butterflies.
#[test]
fn equal_and_opposite_inputs() {
    let point = points(&mut rng(), 1)[0];
    let identity = G1Projective::ZERO;
    for pattern in
        [[point; 4], [point, -point, point, -point], [identity; 4], [point, identity, -point, identity]]
    {
        let inputs: Vec<_> = pattern.iter().copied().cycle().take(8).collect();
        check(3, 2, &inputs, Some(point), false, 1);
        check(3, 3, &inputs, None, true, 1);
    }
}

#[test]
fn batches_of_64_and_100() {
    let mut rng = rng();
    let inputs = points(&mut rng, 100);
    check(6, 2, &inputs[..64], Some(inputs[0]), true, 13);
    check(7, 2, &inputs, Some(inputs[1]), false, 29);
    check(6, 3, &inputs[..96], None, false, 17);
}
