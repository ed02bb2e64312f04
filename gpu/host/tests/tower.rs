//! The tower's arithmetic against arkworks.

mod common;

use ark_bls12_381::{Fq, Fq2, Fq12};
use ark_ff::{AdditiveGroup, Field};

use common::{
    Words2, Words12, X, conjugate, cyclotomic, fp2_from_words, fp2_to_words, from_words, largest, random,
    random12, samples2, samples12, to_words,
};

// The archive with what is declared below.
use blindfold_gpu as _;

unsafe extern "C" {
    fn blindfold_test_fp2(operation: u32, a: *const Words2, b: *const Words2, out: *mut Words2, count: usize);
    fn blindfold_test_fp2_sum(a: *const Words2, b: *const Words2, out: *mut Words2);
    fn blindfold_test_reducible(products: u32) -> i32;
    fn blindfold_test_gt(
        operation: u32,
        backwards: bool,
        a: *const Words12,
        b: *const Words12,
        out: *mut Words12,
    );
    fn blindfold_test_gt_cyclotomic_squares(backwards: bool, a: *mut Words12, times: u32);
    fn blindfold_test_gt_pow_zeta(a: *const Words12, power: u32, out: *mut Words12);
    fn blindfold_test_gt_power_x(a: *const Words12, out: *mut Words12);
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

/// That every chain of the kernels stays in bounds is shown by all of these tests: the host build ends where one does not.
#[test]
fn bounds_are_those_of_operations_and_not_of_values() {
    for (products, reducible) in [(1, 1), (4, 1), (5, 0)] {
        // SAFETY: a number.
        match unsafe { blindfold_test_reducible(products) } {
            -1 => println!("NOT RUN: device code carries no bounds"),
            // The factors are 1, whose products could be summed up for ever.
            found => assert_eq!(found, reducible, "{products} products"),
        }
    }
}

/// The operation in both orders of the lanes, which must agree: a lane that read what another makes in the same phase
/// would show.
fn gt(operation: u32, a: &Fq12, b: &Fq12) -> Fq12 {
    let (a, b) = (to_words(a), to_words(b));
    let out = [false, true].map(|backwards| {
        let mut out = Words12::default();
        // SAFETY: elements in the kernels' layout.
        unsafe { blindfold_test_gt(operation, backwards, &a, &b, &mut out) };
        from_words(&out)
    });
    assert_eq!(out[0], out[1], "operation {operation} depends on the order of the lanes");
    out[0]
}

#[test]
fn products_are_those_of_arkworks() {
    let samples = samples12(2);
    for a in &samples {
        for b in &samples {
            assert_eq!(gt(0, a, b), a * b, "a {a}, b {b}");
        }
        assert_eq!(gt(1, a, a), a.square(), "a {a}");
    }
}

#[test]
fn maps_are_those_of_arkworks() {
    for a in &samples12(3) {
        assert_eq!(gt(2, a, a), conjugate(a));
        for power in 1..=3 {
            assert_eq!(gt(2 + power, a, a), a.frobenius_map(power as usize), "φ^{power} of {a}");
        }
    }
}

#[test]
fn long_chains_of_cyclotomic_squarings_stay_right() {
    let mut rng = random(4);
    for a in [Fq12::ONE, cyclotomic(&random12(&mut rng)), cyclotomic(&random12(&mut rng))] {
        for backwards in [false, true] {
            let (mut got, mut want) = (to_words(&a), a);
            for times in [1, 2, 297] {
                // SAFETY: one element.
                unsafe { blindfold_test_gt_cyclotomic_squares(backwards, &mut got, times) };
                (0..times).for_each(|_| want = want.square());
                assert_eq!(from_words(&got), want);
            }
        }
    }
}

#[test]
fn endomorphisms_are_the_powers_they_stand_for() {
    let mut rng = random(5);
    let a = cyclotomic(&random12(&mut rng));
    let mut out = Words12::default();
    // SAFETY: elements in the kernels' layout.
    unsafe { blindfold_test_gt_power_x(&to_words(&a), &mut out) };
    assert_eq!(from_words(&out), conjugate(&a.pow([X])));
    // ζ = −x², and x is p on GT: −p² as an endomorphism of the cyclotomic subgroup.
    for power in 0..3u32 {
        // SAFETY: elements in the kernels' layout.
        unsafe { blindfold_test_gt_pow_zeta(&to_words(&a), power, &mut out) };
        let image = a.frobenius_map(2 * power as usize);
        assert_eq!(from_words(&out), if power == 1 { conjugate(&image) } else { image });
    }
}
