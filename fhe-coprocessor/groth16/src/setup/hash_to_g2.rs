//! Hashing to G2 of BLS12-381 as published powers of τ do it: 32 bytes seed ChaCha20, whose words make the first point
//! on the curve. This is `hash_to_g2` of Zcash's `powersoftau` with the `pairing` 0.14 and `rand` 0.4 beneath it.

use ark_bls12_381::{Fq, Fq2, G2Affine, g2};
use ark_ec::short_weierstrass::SWCurveConfig;
use ark_ec::{CurveConfig, CurveGroup};
use ark_ff::{BigInt, PrimeField, Zero};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// Bits of a word of 384 bits that no residue has.
const UNUSED_BITS: u32 = 3;

/// The point of the first 32 bytes, whose words are taken with their most significant byte first.
pub(crate) fn hash_to_g2(digest: &[u8; 64]) -> G2Affine {
    let mut seed = [0; 32];
    for (to, from) in seed.chunks_exact_mut(4).zip(digest.chunks_exact(4)) {
        to.copy_from_slice(from);
        to.reverse();
    }
    let mut rng = ChaCha20Rng::from_seed(seed);
    loop {
        let x = Fq2::new(residue(&mut rng), residue(&mut rng));
        let greatest = rng.next_u32() & 1 == 1;
        let Some(point) = G2Affine::get_point_from_x_unchecked(x, greatest) else { continue };
        let point = <g2::Config as SWCurveConfig>::mul_affine(&point, g2::Config::COFACTOR);
        if !point.is_zero() {
            return point.into_affine();
        }
    }
}

/// Six words of 64 bits, each of two of 32 with the upper one first, taken as a residue's Montgomery form; again until
/// they are below p.
fn residue(rng: &mut ChaCha20Rng) -> Fq {
    loop {
        let mut limbs = [0; 6].map(|_: u64| u64::from(rng.next_u32()) << 32 | u64::from(rng.next_u32()));
        limbs[5] &= u64::MAX >> UNUSED_BITS;
        let limbs = BigInt(limbs);
        if limbs < Fq::MODULUS {
            return Fq::new_unchecked(limbs);
        }
    }
}
