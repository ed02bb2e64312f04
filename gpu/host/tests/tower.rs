//! The tower's arithmetic against arkworks.

mod common;

use ark_bls12_381::{Fq, Fq2};
use ark_ff::{AdditiveGroup, Field};

use common::{Words2, fp2_from_words, fp2_to_words, largest, samples2};

// The archive with what is declared below.
use blindfold_gpu as _;

unsafe extern "C" {
    fn blindfold_test_fp2(operation: u32, a: *const Words2, b: *const Words2, out: *mut Words2, count: usize);
    fn blindfold_test_fp2_sum(a: *const Words2, b: *const Words2, out: *mut Words2);
}

#[test]
fn fp2_is_that_of_arkworks() {
    type Operation = fn(Fq2, Fq2) -> Fq2;
    let xi = |a: Fq2| a * Fq2::new(Fq::from(1u64), Fq::from(1u64));
    let operations: [Operation; 10] = [
        |a, b| a + b,
        |a, b| a - b,
        |a, b| a * b,
        |a, _| a.square(),
        |a, _| a.inverse().unwrap_or(Fq2::ZERO),
        |a, _| a, // times ξ below
        |a, _| Fq2::new(a.c0, -a.c1),
        |a, _| -a,
        |a, b| Fq2::new(a.c0 * b.c0, a.c1 * b.c0),
        |a, b| if a == b { Fq2::ONE } else { a.double() },
    ];
    let samples = samples2(1);
    for (number, operation) in operations.iter().enumerate() {
        for a in &samples {
            let left = vec![fp2_to_words(a); samples.len()];
            let right: Vec<Words2> = samples.iter().map(fp2_to_words).collect();
            let mut out = vec![Words2::default(); samples.len()];
            // SAFETY: three arrays of that many elements.
            unsafe {
                blindfold_test_fp2(number as u32, left.as_ptr(), right.as_ptr(), out.as_mut_ptr(), out.len());
            }
            for (b, out) in samples.iter().zip(&out) {
                let want = if number == 5 { xi(*a) } else { operation(*a, *b) };
                assert_eq!(fp2_from_words(out), want, "operation {number}, a {a}, b {b}");
            }
        }
    }
}

#[test]
fn sums_of_products_reach_their_bounds() {
    let (zero, m) = (Fq::from(0u64), largest());
    let extremes = [Fq2::new(m, m), Fq2::new(m, zero), Fq2::new(zero, m), Fq2::new(zero, zero)];
    for a in extremes {
        for b in extremes {
            let (left, right) = ([fp2_to_words(&a); 4], [fp2_to_words(&b); 4]);
            let mut out = Words2::default();
            // SAFETY: two arrays of four elements and one element.
            unsafe { blindfold_test_fp2_sum(left.as_ptr(), right.as_ptr(), &mut out) };
            assert_eq!(fp2_from_words(&out), (a * b).double().double());
        }
    }
}
