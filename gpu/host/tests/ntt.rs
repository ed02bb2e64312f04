//! F_r and its transforms against arkworks.

mod common;
mod curve;

use ark_bls12_381::Fr;
use ark_ff::{AdditiveGroup, BigInt, FftField, Field, PrimeField};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use common::random_field;
use curve::rng;

/// An element of F_r: Montgomery limbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
struct RawFr([u64; 4]);

impl From<Fr> for RawFr {
    fn from(a: Fr) -> Self {
        Self(a.0.0)
    }
}

impl RawFr {
    fn to_field(self) -> Fr {
        assert!(BigInt(self.0) < Fr::MODULUS, "not reduced: {:x?}", self.0);
        Fr::new_unchecked(BigInt(self.0))
    }
}

unsafe extern "C" {
    fn blindfold_test_fr(
        a: *const RawFr,
        b: *const RawFr,
        sum: *mut RawFr,
        difference: *mut RawFr,
        product: *mut RawFr,
        count: u32,
    );
    fn blindfold_test_ntt_forward(
        log_size: u32,
        root: *const RawFr,
        offset: *const RawFr,
        roots: *mut RawFr,
        squares: *mut RawFr,
        values: *mut RawFr,
    );
    fn blindfold_test_ntt_inverse(
        log_size: u32,
        root: *const RawFr,
        offset: *const RawFr,
        scale: *const RawFr,
        roots: *mut RawFr,
        squares: *mut RawFr,
        values: *mut RawFr,
    );
}

#[test]
fn field_operations() {
    let mut rng = rng();
    let mut below = Fr::MODULUS;
    below.0[0] -= 1;
    let largest = Fr::new_unchecked(below); // r − 1 as the kernels see it
    let mut all = vec![Fr::ZERO, Fr::ONE, -Fr::ONE, largest];
    all.extend((0..8).map(|_| random_field::<Fr>(&mut rng)));
    for a in &all {
        for b in &all {
            let (raw_a, raw_b) = (RawFr::from(*a), RawFr::from(*b));
            let mut out = [RawFr::default(); 3];
            let [sum, difference, product] = &mut out;
            // SAFETY: one element each.
            unsafe { blindfold_test_fr(&raw_a, &raw_b, sum, difference, product, 1) };
            assert_eq!(out.map(RawFr::to_field), [*a + b, *a - b, *a * b]);
        }
    }
}

#[test]
fn transforms_on_subgroups_and_cosets() {
    let mut rng = rng();
    for (log_size, offset) in (0..=11).flat_map(|k| [(k, Fr::ONE), (k, Fr::GENERATOR)]) {
        let size = 1usize << log_size;
        let domain =
            Radix2EvaluationDomain::<Fr>::new(size).expect("below 2^32").get_coset(offset).expect("not 0");
        let mut values: Vec<Fr> = (0..size).map(|_| random_field(&mut rng)).collect();
        values[0] = -Fr::ONE;
        let mut raw: Vec<RawFr> = values.iter().map(|v| (*v).into()).collect();
        let (mut roots, mut squares) = (vec![RawFr::default(); size / 2 + 1], vec![RawFr::default(); 64]);
        let (roots, squares) = (roots.as_mut_ptr(), squares.as_mut_ptr());
        let (root, raw_offset) = (domain.group_gen.into(), offset.into());
        // SAFETY: arrays of the sizes that the function names.
        unsafe { blindfold_test_ntt_forward(log_size, &root, &raw_offset, roots, squares, raw.as_mut_ptr()) };
        let got: Vec<Fr> = raw.iter().map(|v| v.to_field()).collect();
        assert_eq!(got, domain.fft(&values), "2^{log_size}, offset {offset}");

        let (root, raw_offset) = (domain.group_gen_inv.into(), domain.offset_inv.into());
        let scale = domain.size_inv.into();
        // SAFETY: arrays of the sizes that the function names.
        unsafe {
            blindfold_test_ntt_inverse(
                log_size,
                &root,
                &raw_offset,
                &scale,
                roots,
                squares,
                raw.as_mut_ptr(),
            );
        }
        assert_eq!(
            raw.iter().map(|v| v.to_field()).collect::<Vec<_>>(),
            values,
            "2^{log_size}, offset {offset}"
        );
    }
}
