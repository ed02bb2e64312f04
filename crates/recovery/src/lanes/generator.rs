//! Multiples of the generator, kept: 1 to 128 times 2^(8·i)·G for each of 32 windows, a third of a megabyte.

use std::sync::OnceLock;

use k256::{
    AffinePoint, ProjectivePoint, Scalar,
    elliptic_curve::{BatchNormalize, sec1::ToSec1Point},
};

use super::{
    field::{Fp, LIMBS, Limbs, from_bytes},
    points::Affine,
    scalars::WINDOWS,
    vector::{LANES, lanes, load, transpose},
};

const WINDOW_BITS: u32 = 8;
/// Of each window: 1 to so many times.
const MULTIPLES: usize = 1 << (WINDOW_BITS - 1);
/// x and y at rest.
type Row = [u64; 2 * LIMBS];
/// Doublings between where a multiplication starts and where it ends.
const DOUBLINGS: usize = 128;
/// The fixed point is so many times the generator. Any number will do: who wants to meet it in a sum gains nothing, for
/// libsecp256k1 then decides.
const START: u64 = 0x6269_6e64_666f_6c64;

/// What does not depend on a signature.
pub(super) struct Kept {
    rows: Box<[Row]>,
    /// The fixed point, from which a multiplication starts.
    pub(super) start: (Limbs, Limbs),
    /// Its negative after all doublings.
    pub(super) end: (Limbs, Limbs),
}

fn limbs(point: &AffinePoint) -> (Limbs, Limbs) {
    let encoded = point.to_sec1_point(false);
    let half = |from: usize| {
        let bytes = encoded.as_bytes().get(from..from + 32).and_then(|bytes| bytes.try_into().ok());
        // None of these points is the one at infinity, which alone has no coordinates.
        bytes.map_or([0; LIMBS], from_bytes)
    };
    (half(1), half(33))
}

impl Kept {
    /// Computed once in a process.
    pub(super) fn get() -> &'static Self {
        static KEPT: OnceLock<Kept> = OnceLock::new();
        KEPT.get_or_init(Self::compute)
    }

    fn compute() -> Self {
        let mut rows = Vec::with_capacity(WINDOWS * MULTIPLES);
        let mut base = ProjectivePoint::GENERATOR;
        for _ in 0..WINDOWS {
            let mut multiples = [base; MULTIPLES];
            for i in 1..MULTIPLES {
                multiples[i] = multiples[i - 1] + base;
            }
            for point in ProjectivePoint::batch_normalize(&multiples) {
                let ([a, b, c, d, e], [f, g, h, i, j]) = limbs(&point);
                rows.push([a, b, c, d, e, f, g, h, i, j]);
            }
            // Twice 128 times.
            base = multiples[MULTIPLES - 1].double();
        }
        let start = ProjectivePoint::GENERATOR * Scalar::from(START);
        let end = -(0..DOUBLINGS).fold(start, |point, _| point.double());
        Self { rows: rows.into(), start: limbs(&start.to_affine()), end: limbs(&end.to_affine()) }
    }
}

lanes! {
impl Kept {
    /// For each lane the multiple that its digit's magnitude says, and some point where the digit is 0.
    pub(super) fn gather(&self, window: usize, digits: &[i64; LANES]) -> Affine {
        let rows = digits.map(|digit| {
            let multiple = (digit.unsigned_abs() as usize).clamp(1, MULTIPLES) - 1;
            &self.rows[window * MULTIPLES + multiple]
        });
        let words = |from: usize| {
            rows.map(|row| load(&core::array::from_fn(|i| row[from + i])))
        };
        // Words 0 to 7, and 2 to 9.
        let [a, b, c, d, e, f, g, h] = transpose(words(0));
        let [.., i, j] = transpose(words(2));
        Affine { x: Fp([a, b, c, d, e]).checked(), y: Fp([f, g, h, i, j]).checked() }
    }
}
}
