//! Exponentiation, fixed-base tables and the transform back, against arkworks.

mod common;

use ark_bls12_381::{Fq12, Fr};
use ark_ff::{AdditiveGroup, FftField, Field, PrimeField};
use blindfold_gpu::exponents::{self, NAF_ENTRIES, POSITIONS, WINDOW_ENTRIES, X};
use blindfold_gpu::split_radix;

use common::pairs::finish;
use common::{Words12, all_from_words, all_to_words, random, random_field, random12, to_words};

unsafe extern "C" {
    fn blindfold_test_gt_powers(
        elements: *mut Words12,
        jobs: *const [u32; 2],
        count: u32,
        codes: *const [u32; POSITIONS],
        positions: u32,
        entries: u32,
        odd: bool,
    );
    fn blindfold_test_gt_digit_powers(
        elements: *mut Words12,
        jobs: *const [u32; 2],
        count: u32,
        codes: *const [u32; POSITIONS],
        positions: u32,
        entries: u32,
        odd: bool,
        factors: *mut Words12,
    );
    fn blindfold_test_comb_size(window_bits: u32) -> u32;
    fn blindfold_test_fill_comb(entries: *mut Words12, window_bits: u32, base: *const Words12) -> i32;
    fn blindfold_test_comb_powers(
        entries: *mut Words12,
        window_bits: u32,
        codes: *const i32,
        powers: *mut Words12,
        count: u32,
    );
    fn blindfold_test_butterflies(elements: *mut Words12, starts: *const u32, count: u32);
    fn blindfold_test_combine(
        elements: *mut Words12,
        starts: *const u32,
        count: u32,
        quarter: u32,
        frobenius_is_fourth_root: bool,
    );
    fn blindfold_test_unfold(
        elements: *const Words12,
        size: u32,
        cosets: u32,
        outputs: *mut Words12,
        count: u32,
    );
}

/// Exponents at which digits and windows are at their extremes, and random ones.
fn scalars(seed: u64, count: usize) -> Vec<Fr> {
    let x = Fr::from(X);
    let ones = |byte: u8| Fr::from_le_bytes_mod_order(&[byte; 32]);
    let edges = [
        Fr::ZERO,
        Fr::ONE,
        -Fr::ONE,
        x,
        x - Fr::ONE,
        -x,
        x * x,
        x * x * x - Fr::ONE,
        ones(0x77),
        ones(0x88),
        ones(0x80),
    ];
    let mut rng = random(seed);
    let random = std::iter::repeat_with(|| random_field(&mut rng));
    edges.into_iter().chain(random).take(count).collect()
}

fn digits(k: &Fr) -> [u64; 4] {
    exponents::base_x(k.into_bigint().0)
}

/// Raises element i of the list to the scalar of the same number, by either recoding, digits together or apart.
fn powers(elements: &[Fq12], scalars: &[Fr], odd: bool, apart: bool) -> Vec<Fq12> {
    let mut out = all_to_words(elements);
    let recode = if odd { exponents::naf } else { exponents::windows };
    let codes: Vec<[u32; POSITIONS]> = scalars.iter().map(|k| recode(digits(k))).collect();
    let jobs: Vec<[u32; 2]> = (0..scalars.len() as u32).map(|i| [i, i]).collect();
    let entries = if odd { NAF_ENTRIES } else { WINDOW_ENTRIES };
    let mut factors = vec![Words12::default(); exponents::DIGITS * out.len()];
    let (elements, jobs, count) = (out.as_mut_ptr(), jobs.as_ptr(), jobs.len() as u32);
    let (codes, positions, factors) = (codes.as_ptr(), POSITIONS as u32, factors.as_mut_ptr());
    // SAFETY: the jobs name elements and exponents that there are; four factors for each element.
    unsafe {
        if apart {
            blindfold_test_gt_digit_powers(elements, jobs, count, codes, positions, entries, odd, factors);
        } else {
            blindfold_test_gt_powers(elements, jobs, count, codes, positions, entries, odd);
        }
    }
    all_from_words(&out)
}

#[test]
fn digits_recombine() {
    for k in scalars(20, 60) {
        let sum = digits(&k).iter().rev().fold(Fr::ZERO, |sum, digit| sum * Fr::from(X) + Fr::from(*digit));
        assert_eq!(sum, k);
    }
}

#[test]
fn powers_in_gt_are_those_of_arkworks() {
    for count in [1, 3, 64, 100] {
        let scalars = scalars(21, count);
        let mut rng = random(22);
        let bases: Vec<Fq12> = (0..count).map(|_| finish(&random12(&mut rng))).collect();
        let want: Vec<Fq12> = bases.iter().zip(&scalars).map(|(g, k)| g.pow(k.into_bigint())).collect();
        for (odd, apart) in [(false, false), (true, false), (false, true), (true, true)] {
            assert!(powers(&bases, &scalars, odd, apart) == want, "{count} powers, odd {odd}, apart {apart}");
        }
    }
}

#[test]
fn tables_of_every_width_are_filled_and_used() {
    let base = finish(&random12(&mut random(23)));
    let scalars = scalars(24, 16);
    for window_bits in [2, 3, 4, 5, 7, 8, 11] {
        // SAFETY: no pointers.
        let size = unsafe { blindfold_test_comb_size(window_bits) } as usize;
        let mut entries = vec![Words12::default(); size];
        // SAFETY: a table of its size.
        let error = unsafe { blindfold_test_fill_comb(entries.as_mut_ptr(), window_bits, &to_words(&base)) };
        assert_eq!(error, 0);
        let codes: Vec<i32> = scalars.iter().flat_map(|k| exponents::comb(digits(k), window_bits)).collect();
        let mut out = vec![Words12::default(); scalars.len()];
        // SAFETY: the table, four digits of windows for each exponent, and as many results.
        unsafe {
            blindfold_test_comb_powers(
                entries.as_mut_ptr(),
                window_bits,
                codes.as_ptr(),
                out.as_mut_ptr(),
                out.len() as u32,
            );
        }
        for (k, out) in scalars.iter().zip(all_from_words(&out)) {
            assert_eq!(out, base.pow(k.into_bigint()), "window {window_bits}, k {k}");
        }
    }
}

/// The transform back of `values`, coset by coset, in bit-reversed order.
fn back(values: &[Fq12], size: usize, cosets: usize, outputs: usize) -> Vec<Fq12> {
    let root = Fr::get_root_of_unity(size as u64).expect("a power of two");
    let codes: Vec<[u32; POSITIONS]> =
        (0..size as u64).map(|power| exponents::naf(digits(&root.pow([power])))).collect();
    let frobenius_cube = -Fr::from(X).pow([3u64]);
    let is_fourth_root = size >= 4 && frobenius_cube == root.pow([size as u64 / 4]);
    let mut elements = all_to_words(values);
    for level in split_radix::levels(size, cosets) {
        let (starts, count) = (level.starts.as_ptr(), level.starts.len() as u32);
        let elements = elements.as_mut_ptr();
        // SAFETY: the level names elements and exponents that there are.
        unsafe {
            if level.length == 2 {
                blindfold_test_butterflies(elements, starts, count);
                continue;
            }
            let (jobs, twiddles) = (level.twiddles.as_ptr(), level.twiddles.len() as u32);
            let positions = POSITIONS as u32;
            blindfold_test_gt_powers(elements, jobs, twiddles, codes.as_ptr(), positions, NAF_ENTRIES, true);
            blindfold_test_combine(elements, starts, count, level.length as u32 / 4, is_fourth_root);
        }
    }
    let mut out = vec![Words12::default(); outputs];
    // SAFETY: the transformed elements and as many outputs as are asked for.
    unsafe {
        blindfold_test_unfold(
            elements.as_ptr(),
            size as u32,
            cosets as u32,
            out.as_mut_ptr(),
            outputs as u32,
        );
    }
    all_from_words(&out)
}

#[test]
fn the_transform_back_is_what_it_says() {
    let zeta = -(Fr::from(X) * Fr::from(X));
    assert!(zeta != Fr::ONE && zeta.pow([3u64]) == Fr::ONE);
    let generator = finish(&random12(&mut random(25)));
    let mut rng = random(26);
    for (size, cosets) in [(2usize, 2usize), (2, 3), (4, 2), (8, 3), (16, 3), (32, 2)] {
        let root = Fr::get_root_of_unity(size as u64).expect("a power of two");
        let outputs = size * cosets / 2;
        let logarithms: Vec<Fr> = (0..size * cosets).map(|_| random_field(&mut rng)).collect();
        let values: Vec<Fq12> = logarithms.iter().map(|k| generator.pow(k.into_bigint())).collect();
        let out = back(&values, size, cosets, outputs);
        let bits = size.ilog2();
        for (i, out) in out.iter().enumerate() {
            let mut sum = Fr::ZERO;
            for coset in 0..cosets {
                let twist = zeta.pow([(coset * i) as u64]);
                for f in 0..size {
                    let place = f.reverse_bits() >> (usize::BITS - bits);
                    sum += twist * root.pow([(i * f) as u64]) * logarithms[coset * size + place];
                }
            }
            assert_eq!(*out, generator.pow(sum.into_bigint()), "output {i} of {cosets} cosets of {size}");
        }
    }
}
