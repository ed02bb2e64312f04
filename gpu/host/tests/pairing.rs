//! Miller loops and the final exponentiation against arkworks.

mod common;

use ark_bls12_381::{Fq, Fq12, G1Affine, G2Affine};
use ark_ec::AffineRepr;
use ark_ff::{AdditiveGroup, Field, Zero};

use common::pairs::{WordsLine, finish, lines, miller, projective, random_g1, random_g2};
use common::{
    Words, Words12, all_from_words, all_to_words, conjugate, cyclotomic, fp_to_words, random, random_field,
    random12,
};

// The archive with what is declared below.
use blindfold_gpu as _;

unsafe extern "C" {
    fn blindfold_test_miller_easy(
        points: *const [Words; 3],
        point_step: u32,
        lines: *const WordsLine,
        first_lines: u32,
        lines_step: i32,
        out: *mut Words12,
        denominators: *mut Words,
        scratch: *mut Words,
        count: u32,
    );
    fn blindfold_test_blindings(
        point: *const [Words; 3],
        lines: *const WordsLine,
        first_lines: u32,
        lines_step: i32,
        cross: *const Words12,
        numerators: *mut Words12,
        denominators: *mut Words,
        scratch: *mut Words,
        out: *mut Words12,
        count: u32,
    );
    fn blindfold_test_hard_parts(elements: *mut Words12, conjugates: bool, count: u32);
    fn blindfold_test_invert_all(elements: *mut Words, scratch: *mut Words, count: u32, each: u32);
}

/// Fixed points, the identity among them, and the lines of all in a row.
fn fixed(count: usize, seed: u64) -> (Vec<G2Affine>, Vec<WordsLine>) {
    let mut rng = random(seed);
    let points: Vec<G2Affine> =
        (0..count).map(|i| if i % 7 == 5 { G2Affine::zero() } else { random_g2(&mut rng) }).collect();
    let lines = points.iter().flat_map(lines).collect();
    (points, lines)
}

#[test]
fn miller_loops_are_those_of_arkworks_after_the_easy_part() {
    for count in [1, 3, 64, 100] {
        let (fixed, lines) = fixed(count, 10);
        let mut rng = random(11);
        let points: Vec<G1Affine> =
            (0..count).map(|i| if i % 11 == 1 { G1Affine::zero() } else { random_g1(&mut rng) }).collect();
        let words: Vec<[Words; 3]> = points.iter().map(|p| projective(p, &mut rng)).collect();
        let mut out = vec![Words12::default(); count];
        let (mut denominators, mut scratch) = (vec![Words::default(); count], vec![Words::default(); count]);
        // SAFETY: `count` points and 68 times as many lines, and room for as many results.
        unsafe {
            blindfold_test_miller_easy(
                words.as_ptr(),
                1,
                lines.as_ptr(),
                0,
                1,
                out.as_mut_ptr(),
                denominators.as_mut_ptr(),
                scratch.as_mut_ptr(),
                count as u32,
            );
        }
        let out = all_from_words(&out);
        for ((p, q), out) in points.iter().zip(&fixed).zip(&out) {
            let want = if p.is_zero() || q.is_zero() { Fq12::ONE } else { cyclotomic(&miller(p, q)) };
            assert_eq!(*out, want);
        }
    }
}

#[test]
fn blindings_divide_the_pairings_of_one_point_by_the_cross_terms() {
    for count in [1, 3, 64] {
        let (fixed, lines) = fixed(count + 2, 12);
        let mut rng = random(13);
        let point = random_g1(&mut rng);
        // What the cross-terms were before their easy part.
        let miller_cross: Vec<Fq12> = (0..count).map(|_| random12(&mut rng)).collect();
        let cross: Vec<Fq12> = miller_cross.iter().map(cyclotomic).collect();
        let words = projective(&point, &mut rng);
        let mut out = vec![Words12::default(); count];
        let mut numerators = out.clone();
        let (mut denominators, mut scratch) = (vec![Words::default(); count], vec![Words::default(); count]);
        // SAFETY: a point, lines for the fixed points from 2 to `count` + 1, which are walked from the end, and
        // `count` of everything else.
        unsafe {
            blindfold_test_blindings(
                &words,
                lines.as_ptr(),
                count as u32 + 1,
                -1,
                all_to_words(&cross).as_ptr(),
                numerators.as_mut_ptr(),
                denominators.as_mut_ptr(),
                scratch.as_mut_ptr(),
                out.as_mut_ptr(),
                count as u32,
            );
        }
        for (i, out) in all_from_words(&out).iter().enumerate() {
            let q = &fixed[count + 1 - i];
            let pairing = if q.is_zero() { Fq12::ONE } else { miller(&point, q) };
            assert_eq!(*out, finish(&(pairing * miller_cross[i].inverse().expect("not zero"))));
        }
    }
}

#[test]
fn the_hard_part_ends_the_final_exponentiation() {
    let mut rng = random(14);
    let mut values = vec![Fq12::ONE];
    values.extend((0..6).map(|_| random12(&mut rng)));
    for conjugates in [false, true] {
        let mut out: Vec<Words12> = all_to_words(&values.iter().map(cyclotomic).collect::<Vec<_>>());
        // SAFETY: that many elements.
        unsafe { blindfold_test_hard_parts(out.as_mut_ptr(), conjugates, out.len() as u32) };
        for (value, out) in values.iter().zip(all_from_words(&out)) {
            let want = finish(value);
            assert_eq!(out, if conjugates { conjugate(&want) } else { want });
        }
    }
}

#[test]
fn inverses_in_batches_leave_zeros_alone() {
    let mut rng = random(15);
    for (count, each) in [(1, 1), (1, 16), (3, 16), (64, 16), (100, 7), (33, 16)] {
        let values: Vec<Fq> =
            (0..count).map(|i| if i % 9 == 4 { Fq::ZERO } else { random_field(&mut rng) }).collect();
        let mut out: Vec<Words> = values.iter().map(fp_to_words).collect();
        let mut scratch = out.clone();
        // SAFETY: `count` elements twice.
        unsafe { blindfold_test_invert_all(out.as_mut_ptr(), scratch.as_mut_ptr(), count, each) };
        for (value, out) in values.iter().zip(&out) {
            let want = if value.is_zero() { Fq::ZERO } else { value.inverse().expect("not zero") };
            assert_eq!(*out, fp_to_words(&want));
        }
    }
}
