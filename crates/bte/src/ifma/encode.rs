//! From lanes to the encodings that are hashed and compared.

use super::field::{Fp, LIMBS, P, to_limbs64};
use super::points::Points;
use super::tower::Fp12;
use super::vector::{LANES, lanes, negative};
use crate::{G1_BYTES, GT_BYTES};

/// 1 as an integer: as a Montgomery factor it leads out of Montgomery form.
const INTEGER_ONE: [u64; LIMBS] = [1, 0, 0, 0, 0, 0, 0, 0];

/// (p − 1)/2.
const HALF: [u64; LIMBS] = {
    let (mut out, mut i) = ([0; LIMBS], 0);
    while i < LIMBS {
        let above = if i + 1 < LIMBS { P[i + 1] } else { 0 };
        out[i] = P[i] >> 1 | (above & 1) << 51;
        i += 1;
    }
    out
};

/// Bytes of a coordinate or coefficient.
const FP_BYTES: usize = 48;

/// Flags of a compressed point, in its first byte.
const COMPRESSED: u8 = 0x80;
const INFINITE: u8 = 0x40;
const LARGER_Y: u8 = 0x20;

lanes! {
    /// The integers below p that the elements stand for; of elements up to 2^11·p.
    fn integers(elements: &Fp) -> Fp {
        elements.mul(&Fp::splat(&INTEGER_ONE)).canonical()
    }

    /// Big-endian, 48 bytes each.
    fn encode_all(elements: &Fp) -> [[u8; FP_BYTES]; LANES] {
        integers(elements).scatter().map(|packed| big_endian(&packed.0))
    }

    /// The encodings of elements of GT; those of [`crate::curve::Gt::encode`].
    pub(super) fn encode_gt(elements: &Fp12) -> [[u8; GT_BYTES]; LANES] {
        let mut out = [[0; GT_BYTES]; LANES];
        for (i, coefficients) in elements.coefficients().into_iter().enumerate() {
            for (out, bytes) in out.iter_mut().zip(encode_all(coefficients)) {
                out[FP_BYTES * i..][..FP_BYTES].copy_from_slice(&bytes);
            }
        }
        out
    }

    /// The compressed encodings of the first `count` points; those of [`crate::curve::G1Affine::encode`].
    pub(super) fn encode_points(points: &Points, count: usize) -> Vec<[u8; G1_BYTES]> {
        let mut out = Vec::with_capacity(LANES * points.len());
        for vector in 0..points.len() {
            let (x, y, infinite) = points.coordinates(vector);
            let larger = negative(Fp::splat(&HALF).sub(&integers(y)).carried().0[LIMBS - 1]);
            for (lane, mut bytes) in encode_all(x).into_iter().enumerate() {
                if infinite >> lane & 1 == 1 {
                    bytes = [0; G1_BYTES];
                    bytes[0] = COMPRESSED | INFINITE;
                } else {
                    bytes[0] |= COMPRESSED | if larger >> lane & 1 == 1 { LARGER_Y } else { 0 };
                }
                out.push(bytes);
            }
        }
        out.truncate(count);
        out
    }
}

/// Of an integer below 2^384.
fn big_endian(limbs: &[u64; LIMBS]) -> [u8; FP_BYTES] {
    let mut out = [0; FP_BYTES];
    for (bytes, word) in out.chunks_exact_mut(8).zip(to_limbs64(limbs).iter().rev()) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    out
}
