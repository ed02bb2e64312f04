//! Miller loops in eight lanes over kept lines.
//!
//! A line l0 + l1·(−2x)·v + l2·(2y)·v·w may be multiplied by any element of F_p2: the final exponentiation removes it.
//! Divided by l2·2y it is (l0/l2)/(2y) + (l1/l2)·(−x/y)·v + v·w: a third less to keep, and ten products of F_p2 instead
//! of thirteen to multiply by it.

use super::field::{Fp, Packed};
use super::target::invert_nonzero;
use super::tower::{Fp2, Fp6, Fp12};
use super::vector::{LANES, lanes};
use crate::curve::limbs::Limbs;
use crate::curve::{G2Affine, Lines};
use crate::digits::X;

/// l0/l2 and l1/l2, eight points at a time.
#[derive(Clone, Copy)]
struct Line {
    constant: Fp2,
    slope: Fp2,
}

/// The lines of eight fixed points of G2. Lanes whose point is the identity hold another point's lines.
pub(crate) struct LaneLines {
    lines: Vec<Line>,
    identities: u8,
}

/// Eight points of G1 as lines take them: 1/(2y) and −x/y. Lanes of identities hold anything.
pub(crate) struct Arguments {
    half_inverse: Fp,
    minus_quotient: Fp,
    identities: u8,
}

/// Doublings and additions on the way through |x|.
const LINES: usize = 68;

impl LaneLines {
    /// Bytes for eight points: 17.4 KB for each.
    pub(crate) const BYTES: usize = LINES * size_of::<Line>();
}

lanes! {
impl LaneLines {
    /// Of up to eight points.
    pub(crate) fn new(points: &[G2Affine]) -> Self {
        let identity = |lane: usize| points.get(lane).is_none_or(G2Affine::is_identity);
        let generator = Lines::new(&G2Affine::generator());
        let lanes: [Vec<[[Limbs; 2]; 3]>; LANES] = std::array::from_fn(|lane| {
            let own = points.get(lane).map(Lines::new);
            let lines = own.as_ref().and_then(Lines::coefficients).or_else(|| generator.coefficients());
            lines.into_iter().flatten().collect()
        });
        let at = |line: usize, which: usize| Fp2 {
            c0: Fp::from_blst(std::array::from_fn(|lane| &lanes[lane][line][which][0])),
            c1: Fp::from_blst(std::array::from_fn(|lane| &lanes[lane][line][which][1])),
        };
        let divisors: Vec<Fp2> = (0..LINES).map(|line| at(line, 2)).collect();
        let mut inverses: Vec<Fp> =
            divisors.iter().map(|l2| l2.c0.square().add_n(&l2.c1.square())).collect();
        invert_nonzero(&mut inverses);
        let lines = (0..LINES).map(|line| {
            let (l2, inverse) = (&divisors[line], &inverses[line]);
            let inverse = Fp2 { c0: l2.c0.mul(inverse), c1: l2.c1.neg().mul(inverse) };
            Line { constant: at(line, 0).mul(&inverse), slope: at(line, 1).mul(&inverse) }
        });
        let lines = lines.collect();
        let identities = (0..LANES).fold(0, |mask, lane| mask | u8::from(identity(lane)) << lane);
        Self { lines, identities }
    }

    /// The Miller values, up to factors in F_p2, of (point, lane's point): 1 where either is the identity.
    pub(crate) fn miller_loop(&self, points: &Arguments) -> Fp12 {
        let mut lines = self.lines.iter().map(|line| {
            (line.constant.scale(&points.half_inverse), line.slope.scale(&points.minus_quotient))
        });
        let mut next = || match lines.next() {
            Some(line) => line,
            None => unreachable!("as many lines as steps"),
        };
        let (x, y) = next();
        let mut w = Fp2::zero();
        w.c0 = Fp12::one().c0.c0.c0;
        let mut f = Fp12 {
            c0: Fp6 { c0: x, c1: y, c2: Fp2::zero() },
            c1: Fp6 { c0: Fp2::zero(), c1: w, c2: Fp2::zero() },
        };
        let mut spare = f;
        for bit in (0..63).rev() {
            if bit < 62 {
                spare.set_square(&f);
                let (x, y) = next();
                f.set_line_product(&spare, &x, &y);
            }
            if X >> bit & 1 == 1 {
                let (x, y) = next();
                spare.set_line_product(&f, &x, &y);
                std::mem::swap(&mut f, &mut spare);
            }
        }
        let identities = points.identities | self.identities;
        let f = f.weak().conjugate(); // x is negative
        if identities == 0 { f } else { Fp12::one().select(&f, identities) }
    }
}
}

lanes! {
impl Arguments {
    /// One inversion for all.
    pub(crate) fn new(x: &[Fp], y: &[Fp], identities: &[u8]) -> Vec<Self> {
        let one = Fp::splat(&Packed::ONE.0);
        let mut inverses: Vec<Fp> =
            y.iter().zip(identities).map(|(y, mask)| one.select(&y.add_n(y), *mask)).collect();
        invert_nonzero(&mut inverses);
        let arguments = inverses.iter().zip(x).zip(identities);
        arguments.map(|((half_inverse, x), identities)| Self {
            half_inverse: *half_inverse,
            minus_quotient: x.add_n(x).mul(half_inverse).neg(),
            identities: *identities,
        }).collect()
    }
}
}
