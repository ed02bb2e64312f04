//! Points and the lines of fixed points.

use ark_bls12_381::{Bls12_381, Fq, Fq2, Fq12, Fr, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::bls12::G2Prepared;
use ark_ec::pairing::{MillerLoopOutput, Pairing};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field};
use rand_chacha::ChaCha20Rng;

use super::{Words, Words2, fp_to_words, fp2_to_words, random_field};

/// Slope and constant of a line.
pub type WordsLine = [Words2; 2];

/// Lines of one fixed point.
pub const LINES: usize = 68;

pub fn random_g1(rng: &mut ChaCha20Rng) -> G1Affine {
    (G1Projective::generator() * random_field::<Fr>(rng)).into_affine()
}

pub fn random_g2(rng: &mut ChaCha20Rng) -> G2Affine {
    (G2Projective::generator() * random_field::<Fr>(rng)).into_affine()
}

/// (x·z : y·z : z), and (0 : y : 0) for the identity.
pub fn projective(point: &G1Affine, rng: &mut ChaCha20Rng) -> [Words; 3] {
    let z: Fq = random_field(rng);
    match point.xy() {
        Some((x, y)) => [x * z, y * z, z],
        None => [Fq::ZERO, z, Fq::ZERO],
    }
    .map(|c| fp_to_words(&c))
}

/// The lines, from those of arkworks, whose coefficients of w³ are not 1; zeros for the identity.
pub fn lines(point: &G2Affine) -> Vec<WordsLine> {
    if point.is_zero() {
        return vec![WordsLine::default(); LINES];
    }
    let prepared = G2Prepared::<ark_bls12_381::Config>::from(*point);
    let normalised = |(c0, c1, c2): &(Fq2, Fq2, Fq2)| {
        let inverse = c2.inverse().expect("not zero");
        [fp2_to_words(&-(*c1 * inverse)), fp2_to_words(&(*c0 * inverse))]
    };
    let lines: Vec<WordsLine> = prepared.ell_coeffs.iter().map(normalised).collect();
    assert_eq!(lines.len(), LINES);
    lines
}

pub fn miller(p: &G1Affine, q: &G2Affine) -> Fq12 {
    Bls12_381::multi_miller_loop([p], [q]).0
}

/// From the cyclotomic subgroup, or any other element but 0, into GT: the whole final exponentiation.
pub fn finish(f: &Fq12) -> Fq12 {
    Bls12_381::final_exponentiation(MillerLoopOutput(*f)).expect("not zero").0
}
