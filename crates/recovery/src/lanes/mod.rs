//! Eight keys at once, in the lanes of AVX-512 IFMA.
//!
//! | file | what |
//! |---|---|
//! | [`vector`] | vectors of words: the intrinsics used |
//! | [`field`] | F_p: radix 2^52, signed sums |
//! | [`points`] | Jacobian points, incomplete sums |
//! | [`scalars`] | halves of scalars by the curve's endomorphism, signed digits |
//! | [`generator`] | kept multiples of the generator |
//!
//! For each signature: R by a square root; (s/r)·R in 33 windows of four bits, both halves of the scalar on the same
//! doublings; −(z/r)·G from kept multiples without doublings; their sum. Both run from a fixed point on, so that nothing
//! begins at infinity, and these cancel.
//!
//! # Safety
//! Functions declared by [`vector::lanes`] carry target features, and are safe to call from each other. [`Lanes`] can only
//! be had where [`Lanes::here`] has found those features.

#![allow(clippy::needless_range_loop)] // limbs, lanes and windows of several values share an index

mod field;
mod generator;
mod points;
mod scalars;
mod vector;

use self::{
    field::{Fp, Limbs, from_bytes, to_bytes},
    generator::Kept,
    points::{Affine, Jacobian},
    scalars::{HALF_WINDOWS, Multiplier, WINDOWS, multipliers},
    vector::{LANES, lanes, load},
};
use crate::{Key, Signed};

/// The curve is y² = x³ + 7.
const SEVEN: Limbs = [7, 0, 0, 0, 0];
/// λ·(x, y) = (β·x, y).
const BETA: [u8; 32] = [
    0x7a, 0xe9, 0x6a, 0x2b, 0x65, 0x7c, 0x07, 0x10, 0x6e, 0x64, 0x47, 0x9e, 0xac, 0x34, 0x34, 0xe9, 0x9c,
    0xf0, 0x49, 0x75, 0x12, 0xf5, 0x89, 0x95, 0xc1, 0x39, 0x6c, 0x28, 0x71, 0x95, 0x01, 0xee,
];

/// Shows that the processor has the instructions.
pub(crate) struct Lanes(&'static Kept);

impl Lanes {
    /// Where the processor has them. The first call takes some milliseconds, for the kept multiples.
    pub(crate) fn here() -> Option<Self> {
        let features = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512ifma")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("adx");
        features.then(|| Self(Kept::get()))
    }

    /// The key of each, or nothing where that is not decided here.
    pub(crate) fn keys(&self, signed: &[Signed]) -> Vec<Option<Key>> {
        let multipliers = multipliers(signed);
        let mut out = Vec::with_capacity(signed.len());
        for (signed, multipliers) in signed.chunks(LANES).zip(multipliers.chunks(LANES)) {
            // SAFETY: `here` has found the features.
            let found = unsafe { eight(self.0, signed, multipliers) };
            out.extend(found.into_iter().take(signed.len()));
        }
        out
    }
}

lanes! {
    /// The keys of up to eight.
    fn eight(kept: &Kept, signed: &[Signed], multipliers: &[Option<Multiplier>]) -> [Option<Key>; LANES] {
        let mut xs = [SEVEN; LANES];
        let mut odd = 0u8;
        let mut by = [const { Multiplier::NONE }; LANES];
        let mut decided = 0u8;
        for (lane, (signed, multiplier)) in signed.iter().zip(multipliers).enumerate() {
            let (Some(multiplier), Some(r)) = (multiplier, signed.rs.first_chunk()) else { continue };
            xs[lane] = from_bytes(r);
            odd |= u8::from(signed.odd) << lane;
            by[lane] = *multiplier;
            decided |= 1 << lane;
        }
        let x = Fp::gather(&xs);
        let cube = x.square().mul(&x).sum().add(&Fp::splat(&SEVEN).sum()).reduce();
        let y = cube.root();
        let (root, squared, wanted) = (y.canonical(), y.square().canonical(), cube.canonical());
        let mut wrong_half = 0u8;
        for lane in 0..LANES {
            wrong_half |= (root[lane][0] as u8 & 1) << lane;
            if squared[lane] != wanted[lane] {
                // No point has that x.
                decided &= !(1 << lane);
            }
        }
        let point = Affine { x, y }.negate_lanes(wrong_half ^ odd);

        let key = times(kept, &point, &by).sum(&from_generator(kept, &by));
        let inverse = key.z.inverse();
        let square = inverse.square();
        let (x, y) = (key.x.mul(&square).canonical(), key.y.mul(&square.mul(&inverse)).canonical());
        let z = key.z.canonical();
        core::array::from_fn(|lane| {
            // Where z is 0, some sum on the way was none, or the key is the point at infinity.
            let found = decided & 1 << lane != 0 && z[lane] != [0; 4];
            found.then(|| {
                let mut key = [0; 64];
                key[..32].copy_from_slice(&to_bytes(&x[lane]));
                key[32..].copy_from_slice(&to_bytes(&y[lane]));
                key
            })
        })
    }

    /// So many times each point, and 2^128 times the fixed point.
    fn times(kept: &Kept, point: &Affine, by: &[Multiplier; LANES]) -> Jacobian {
        let (table, z) = point.multiples();
        let beta = Fp::splat(&from_bytes(&BETA));
        let mut turned = table;
        for point in &mut turned {
            point.x = point.x.mul(&beta);
        }
        let square = z.square();
        let start = Affine {
            x: Fp::splat(&kept.start.0).mul(&square),
            y: Fp::splat(&kept.start.1).mul(&square.mul(&z)),
        };
        let mut sum = start.jacobian();
        for window in (0..HALF_WINDOWS).rev() {
            sum = sum.add_multiple(&table, load(&by.each_ref().map(|by| i64::from(by.plain[window]) as u64)));
            sum = sum.add_multiple(&turned, load(&by.each_ref().map(|by| i64::from(by.turned[window]) as u64)));
            if window > 0 {
                sum = sum.double().double().double().double();
            }
        }
        sum.z = sum.z.mul(&z);
        sum
    }

    /// So many times the generator, less 2^128 times the fixed point.
    fn from_generator(kept: &Kept, by: &[Multiplier; LANES]) -> Jacobian {
        let end = Affine { x: Fp::splat(&kept.end.0), y: Fp::splat(&kept.end.1) };
        let mut sum = end.jacobian();
        for window in 0..WINDOWS {
            let digits = by.each_ref().map(|by| i64::from(by.generator[window]));
            let point = kept.gather(window, &digits);
            sum = sum.add_signed(&point, load(&digits.map(|digit| digit as u64)));
        }
        sum
    }
}
