//! Points of secp256k1 in eight lanes, in Jacobian coordinates.
//!
//! Sums are incomplete on purpose: of two points with the same x, of which one is the other or its negative, the result has
//! z = 0, and so has everything that is computed from it. Whoever asks for the result looks at z once, in the end.

use super::field::{Fp, Limbs};
use super::vector::{Vector, abs, equal, lanes, negative, splat, vanishing};

/// Eight affine points.
#[derive(Clone, Copy)]
pub(super) struct Affine {
    pub(super) x: Fp,
    pub(super) y: Fp,
}

/// Eight points (x/z², y/z³).
#[derive(Clone, Copy)]
pub(super) struct Jacobian {
    pub(super) x: Fp,
    pub(super) y: Fp,
    pub(super) z: Fp,
}

/// 1 to 8 times a point.
pub(super) const MULTIPLES: usize = 8;
const ONE: Limbs = [1, 0, 0, 0, 0];

lanes! {
impl Affine {
    #[inline]
    pub(super) fn jacobian(&self) -> Jacobian {
        Jacobian { x: self.x, y: self.y, z: Fp::splat(&ONE) }
    }

    #[inline]
    pub(super) fn negate_lanes(&self, mask: u8) -> Self {
        Self { x: self.x, y: self.y.negate_lanes(mask) }
    }

    /// 1 to 8 times each point, as affine points of the curve on which (x·z², y·z³) stands for (x, y), and that z.
    pub(super) fn multiples(&self) -> ([Self; MULTIPLES], Fp) {
        let mut points = [self.jacobian(); MULTIPLES];
        // What z grew by from the multiple before.
        let mut grew = [Fp::splat(&ONE); MULTIPLES];
        points[1] = points[0].double();
        for i in 2..MULTIPLES {
            let (sum, by) = points[i - 1].added(self);
            (points[i], grew[i]) = (sum, by);
        }
        let z = points[MULTIPLES - 1].z;
        let mut out = [*self; MULTIPLES];
        // z over the multiple's own.
        let mut missing = Fp::splat(&ONE);
        for i in (0..MULTIPLES).rev() {
            if i == 0 {
                missing = z;
            }
            let square = missing.square();
            out[i] = Self { x: points[i].x.mul(&square), y: points[i].y.mul(&square.mul(&missing)) };
            missing = missing.mul(&grew[i]);
        }
        (out, z)
    }
}
}

lanes! {
impl Jacobian {
    /// Twice each. Three products and four squares.
    #[inline(never)]
    pub(super) fn double(&self) -> Self {
        let xx = self.x.square();
        let yy = self.y.square();
        let tangent = xx.doubled::<1>().add(&xx.sum()).reduce();
        let s = self.x.mul(&yy);
        let x = tangent.square().sum().sub(&s.doubled::<3>()).reduce();
        let step = s.doubled::<2>().sub(&x.sum()).reduce();
        let y = tangent.mul(&step).sum().sub(&yy.square().doubled::<3>()).reduce();
        let z = self.y.mul(&self.z).doubled::<1>().reduce();
        Self { x, y, z }
    }

    /// The sum with an affine point, and what z grew by. Eight products and three squares.
    #[inline(never)]
    pub(super) fn added(&self, other: &Affine) -> (Self, Fp) {
        let zz = self.z.square();
        let run = other.x.mul(&zz).sum().sub(&self.x.sum()).reduce();
        let rise = other.y.mul(&self.z.mul(&zz)).sum().sub(&self.y.sum()).reduce();
        (self.along(&run, &rise, &self.z), run)
    }

    /// The sum with another. Twelve products and four squares.
    pub(super) fn sum(&self, other: &Self) -> Self {
        let (zz, other_zz) = (self.z.square(), other.z.square());
        let near = Self {
            x: self.x.mul(&other_zz),
            y: self.y.mul(&other.z.mul(&other_zz)),
            z: self.z.mul(&other.z),
        };
        let run = other.x.mul(&zz).sum().sub(&near.x.sum()).reduce();
        let rise = other.y.mul(&self.z.mul(&zz)).sum().sub(&near.y.sum()).reduce();
        near.along(&run, &rise, &near.z)
    }

    /// The third point on the line through self that goes so far and rises so much, mirrored.
    #[inline]
    fn along(&self, run: &Fp, rise: &Fp, z: &Fp) -> Self {
        let square = run.square();
        let cube = run.mul(&square);
        let middle = self.x.mul(&square);
        let x = rise.square().sum().sub(&cube.sum()).sub(&middle.doubled::<1>()).reduce();
        let step = middle.sum().sub(&x.sum()).reduce();
        let y = rise.mul(&step).sum().sub(&self.y.mul(&cube).sum()).reduce();
        Self { x, y, z: z.mul(run) }
    }

    /// self where the mask has a 1, other elsewhere.
    #[inline]
    fn select(&self, other: &Self, mask: u8) -> Self {
        Self {
            x: self.x.select(&other.x, mask),
            y: self.y.select(&other.y, mask),
            z: self.z.select(&other.z, mask),
        }
    }

    /// The sum with so many times the table's point, each lane between −8 and 8 times.
    #[inline]
    pub(super) fn add_multiple(&self, table: &[Affine; MULTIPLES], digits: Vector) -> Self {
        let magnitude = abs(digits);
        let mut point = table[0];
        for i in 1..MULTIPLES {
            let mask = equal(magnitude, splat(i as u64 + 1));
            point = Affine { x: table[i].x.select(&point.x, mask), y: table[i].y.select(&point.y, mask) };
        }
        self.add_signed(&point, digits)
    }

    /// The sum with the point where the digit is positive, with its negative where it is negative, and self where it is 0.
    #[inline]
    pub(super) fn add_signed(&self, point: &Affine, digits: Vector) -> Self {
        let (sum, _) = self.added(&point.negate_lanes(negative(digits)));
        self.select(&sum, vanishing(digits))
    }
}
}
