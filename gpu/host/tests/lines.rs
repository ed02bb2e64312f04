//! Miller lines of fixed points: a loop over them gives arkworks' pairing.

mod common;
mod curve;

use ark_bls12_381::{Bls12_381, Fq, Fq2, Fq6, Fq12, G1Affine, G2Affine};
use ark_ec::pairing::{MillerLoopOutput, Pairing};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, Field};
use common::{Words2, fp2_from_words, fp2_to_words};
use curve::{random_g2, random_point, rng};

const STEPS: usize = 68;

/// Two elements of F_p2: a point of the twist, or a line.
type RawPair = [Words2; 2];

unsafe extern "C" {
    fn blindfold_test_lines_prepare(points: *const RawPair, out: *mut RawPair, count: u32);
}

fn tables(points: &[G2Affine]) -> Vec<RawPair> {
    let affine =
        |p: &G2Affine| p.xy().map_or(RawPair::default(), |(x, y)| [fp2_to_words(&x), fp2_to_words(&y)]);
    let points: Vec<_> = points.iter().map(affine).collect();
    let mut out = vec![[Words2([7; 12]); 2]; points.len() * STEPS];
    // SAFETY: STEPS lines for each point.
    unsafe { blindfold_test_lines_prepare(points.as_ptr(), out.as_mut_ptr(), points.len() as u32) };
    out
}

/// The loop as the head of lines.cuh describes it.
fn miller_loop(point: &G1Affine, table: &[RawPair]) -> Fq12 {
    let (x, y) = point.xy().expect("not the identity");
    let base = |a| Fq2::new(a, Fq::ZERO);
    let mut value = Fq12::ONE;
    let mut lines = table.iter().map(|line| {
        let [slope, constant] = line.each_ref().map(fp2_from_words);
        // Coefficients of 1, w², w⁴ and of w, w³, w⁵.
        let even = Fq6::new(constant, -slope * base(x), Fq2::ZERO);
        Fq12::new(even, Fq6::new(Fq2::ZERO, base(y), Fq2::ZERO))
    });
    for bit in (0..63).rev() {
        value.square_in_place();
        value *= lines.next().expect("a line for each step");
        if 0xd201_0000_0001_0000u64 >> bit & 1 == 1 {
            value *= lines.next().expect("a line for each step");
        }
    }
    assert!(lines.next().is_none());
    value.conjugate_in_place();
    value
}

#[test]
fn lines_give_the_pairing() {
    for count in [1, 3, 5] {
        let mut rng = rng();
        let mut points: Vec<G2Affine> = (0..count).map(|_| random_g2(&mut rng)).collect();
        points[0] = G2Affine::generator();
        let tables = tables(&points);
        for (i, (point, table)) in points.iter().zip(tables.chunks(STEPS)).enumerate() {
            let argument = random_point(&mut rng).into_affine();
            let got = Bls12_381::final_exponentiation(MillerLoopOutput(miller_loop(&argument, table)));
            assert_eq!(got.unwrap(), Bls12_381::pairing(argument, point), "{i} of {count}");
        }
    }
}

#[test]
fn the_identity_has_a_table_of_zeros() {
    let points = [G2Affine::generator(), G2Affine::identity(), -G2Affine::generator()];
    let tables = tables(&points);
    let is_zero = |table: &[RawPair]| table.iter().all(|line| *line == RawPair::default());
    let marked: Vec<bool> = tables.chunks(STEPS).map(is_zero).collect();
    assert_eq!(marked, [false, true, false]);
}
