//! Decoding compressed points of G1 in eight lanes: a square root and the check of the subgroup.
//!
//! The lanes only ever accept. Whatever they do not (the identity, wrong flags, x off the curve or not below p, a point
//! outside the subgroup) is decoded again by the scalar code, which names the reason.
//!
//! **The subgroup.** P is in G1 iff \[x²\]P = φ(P), φ(X, Y) = (βX, −Y): φ² − φ + 1 = 0 on the whole curve, so the
//! equation gives (x⁴ − x² + 1)P = rP = 0 (Scott, ePrint 2021/1130). \[x²\]P is computed in Jacobian coordinates with
//! 126 doublings and 10 incomplete additions. Those go wrong only where both operands have the same x or one is the
//! identity; then they give Z = 0, which every later step preserves. So Z ≠ 0 at the end proves the result right, and
//! a point of G1 never gives Z = 0, for the multiples that meet are different and below r/2.

use super::field::{FROM_PLAIN, Fp, Packed, to_limbs52};
use super::points::beta;
use super::vector::{LANES, lanes};
use crate::curve::{G1Affine, PointError};
use crate::digits::X;

/// (p + 1)/4, in 64-bit limbs.
const ROOT_EXPONENT: [u64; 6] = [
    0xee7f_bfff_ffff_eaab,
    0x07aa_ffff_ac54_ffff,
    0xd9cc_34a8_3dac_3d89,
    0xd91d_d2e1_3ce1_44af,
    0x92c6_e9ed_90d2_eb35,
    0x0680_447a_8e5f_f9a6,
];
const ROOT_BITS: usize = 379;
const WINDOW_BITS: usize = 5;

/// A compressed point that is not the identity: the first two flags.
const FLAGS: u8 = 0xc0;
const COMPRESSED: u8 = 0x80;

/// Jacobian coordinates; X and Y up to 20p, Z up to 5p, normalised.
struct Jacobian {
    x: Fp,
    y: Fp,
    z: Fp,
}

lanes! {
    /// [`G1Affine::decode`] of each.
    pub(super) fn decode(encodings: &[&[u8; 48]]) -> Vec<Result<G1Affine, PointError>> {
        let mut out = Vec::with_capacity(encodings.len());
        for chunk in encodings.chunks(LANES) {
            let accepted = accept(std::array::from_fn(|lane| *chunk.get(lane).unwrap_or(&chunk[0])));
            let decoded = chunk.iter().zip(accepted);
            out.extend(decoded.map(|(bytes, point)| point.map_or_else(|| G1Affine::decode(bytes), Ok)));
        }
        out
    }

    fn accept(encodings: [&[u8; 48]; LANES]) -> [Option<G1Affine>; LANES] {
        let packed = encodings.map(|bytes| Packed(to_limbs52(&abscissa(bytes))));
        let x = Fp::gather(packed.each_ref()).mul(&Fp::splat(&FROM_PLAIN));
        let (y, on_curve) = ordinate(&x);
        let good = on_curve & in_subgroup(&x, &y);
        let (x, y) = (x.to_blst(), y.to_blst());
        std::array::from_fn(|lane| {
            let bytes = encodings[lane];
            let point = G1Affine::from_limbs(x[lane], y[lane]);
            let accept = good >> lane & 1 == 1 && bytes[0] & FLAGS == COMPRESSED;
            // One of the two roots has this encoding, or x was not canonical.
            accept.then(|| [point, point.neg()].into_iter().find(|point| point.encode() == *bytes)).flatten()
        })
    }

    /// A root of x³ + 4, and the lanes where it is one.
    fn ordinate(x: &Fp) -> (Fp, u8) {
        let two = Fp::splat(&Packed::ONE.0).add(&Fp::splat(&Packed::ONE.0));
        let square = x.square().mul(x).add(&two).add(&two).normalise();
        let root = root(&square);
        (root, vanishes(&root.square().sub_n(&square)))
    }

    /// value^((p+1)/4), by windows that begin and end with a 1.
    fn root(value: &Fp) -> Fp {
        let square = value.square();
        let mut odd_powers = [*value; 1 << (WINDOW_BITS - 1)];
        for i in 1..odd_powers.len() {
            odd_powers[i] = odd_powers[i - 1].mul(&square);
        }
        let bit = |i: usize| (ROOT_EXPONENT[i / 64] >> (i % 64) & 1) as usize;
        let mut out: Option<Fp> = None;
        let mut rest = ROOT_BITS; // bits still to come
        while rest > 0 {
            if bit(rest - 1) == 0 {
                out = out.map(|out| out.square());
                rest -= 1;
                continue;
            }
            let mut low = rest.saturating_sub(WINDOW_BITS);
            while bit(low) == 0 {
                low += 1;
            }
            let window = (low..rest).rev().fold(0, |window, i| 2 * window + bit(i));
            let factor = &odd_powers[window / 2];
            out = Some(match out {
                None => *factor,
                Some(out) => (low..rest).fold(out, |out, _| out.square()).mul(factor),
            });
            rest = low;
        }
        match out {
            Some(out) => out,
            None => unreachable!("the exponent is not 0"),
        }
    }

    /// The lanes where \[x²\](x, y) = (βx, −y).
    fn in_subgroup(x: &Fp, y: &Fp) -> u8 {
        // The second multiplication takes its point as affine: on the isomorphic curve where it is, for no formula
        // uses the curve's constant.
        let once = times_x(x, y);
        let twice = times_x(&once.x, &once.y);
        let z = once.z.mul(&twice.z);
        let zz = z.square();
        let right_x = x.mul(&beta()).mul(&zz);
        let right_y = y.mul(&z).mul(&zz);
        let equal = vanishes(&twice.x.sub(&right_x).lift::<4>().normalise()) & vanishes(&twice.y.add_n(&right_y));
        equal & !vanishes(&z)
    }

    /// \[|x|\](x, y), or a point with Z = 0.
    fn times_x(x: &Fp, y: &Fp) -> Jacobian {
        let mut out = Jacobian { x: *x, y: *y, z: Fp::splat(&Packed::ONE.0) };
        for bit in (0..63).rev() {
            out.double();
            if X >> bit & 1 == 1 {
                out.add(x, y);
            }
        }
        out
    }

    #[inline]
    fn vanishes(value: &Fp) -> u8 {
        value.mul(&Fp::splat(&Packed::ONE.0)).zero_lanes()
    }
}

lanes! {
impl Jacobian {
    /// Seven products. The curve has no point of order 2.
    #[inline]
    fn double(&mut self) {
        let a = self.x.square();
        let b = self.y.square();
        let s = self.x.mul(&b);
        self.z = self.y.mul(&self.z);
        self.z = self.z.add_n(&self.z);
        let e = a.add(&a).add_n(&a);
        let s4 = double(&double(&s));
        self.x = e.square().sub(&double(&s4)).lift::<17>().normalise();
        let c8 = double(&double(&double(&b.square())));
        self.y = e.mul(&s4.sub(&self.x).lift::<20>().normalise()).sub(&c8).lift::<17>().normalise();
    }

    /// Eleven products; Z = 0 if an operand is the identity or both have the same x.
    fn add(&mut self, x: &Fp, y: &Fp) {
        let zz = self.z.square();
        let h = x.mul(&zz).sub(&self.x).lift::<20>().normalise();
        let r = y.mul(&zz.mul(&self.z)).sub(&self.y).lift::<20>().normalise();
        let hh = h.square();
        let hhh = h.mul(&hh);
        let v = self.x.mul(&hh);
        self.z = self.z.mul(&h);
        self.x = r.square().sub(&hhh).sub(&double(&v)).lift::<7>().normalise();
        let y = self.y.mul(&hhh);
        self.y = r.mul(&v.sub(&self.x).lift::<10>().normalise()).sub(&y).lift::<3>().normalise();
    }
}
}

lanes! {
    /// Not normalised.
    #[inline]
    fn double(value: &Fp) -> Fp {
        value.add(value)
    }
}

/// x as it is encoded, in 64-bit limbs, whatever the flags.
fn abscissa(bytes: &[u8; 48]) -> [u64; 6] {
    let (words, _) = bytes.as_chunks::<8>();
    let mut limbs = std::array::from_fn(|i| u64::from_be_bytes(words[5 - i]));
    limbs[5] &= u64::MAX >> 3;
    limbs
}
