//! Field elements as the six 64-bit limbs that `blst` keeps (Montgomery form, R = 2^384, below p): how other
//! representations of the same values reach in and out.

use blst::{blst_fp, blst_fp2, blst_fp6, blst_fp12, blst_p1_affine};

use super::{G1Affine, Gt, Lines, Torus, fp};

/// One element of F_p.
pub(crate) type Limbs = [u64; 6];

/// 1/value; 0 for 0.
pub(crate) fn invert(value: &Limbs) -> Limbs {
    fp::inverse(&blst_fp { l: *value }).l
}

/// a·b.
pub(crate) fn multiply(a: &Limbs, b: &Limbs) -> Limbs {
    fp::mul(&blst_fp { l: *a }, &blst_fp { l: *b }).l
}

impl G1Affine {
    /// x, y; (0, 0) for the identity.
    pub(crate) fn limbs(&self) -> [&Limbs; 2] {
        [&self.0.x.l, &self.0.y.l]
    }

    /// A point known to be on the curve.
    pub(crate) fn from_limbs(x: Limbs, y: Limbs) -> Self {
        Self(blst_p1_affine { x: blst_fp { l: x }, y: blst_fp { l: y } })
    }
}

impl Gt {
    /// Twelve coefficients in tower order.
    pub(crate) fn limbs(&self) -> [&Limbs; 12] {
        let fp = |i: usize| &self.0.fp6[i / 6].fp2[i % 6 / 2].fp[i % 2].l;
        std::array::from_fn(fp)
    }

    pub(crate) fn from_limbs(limbs: &[Limbs; 12]) -> Self {
        let fp2 = |i: usize| blst_fp2 { fp: [blst_fp { l: limbs[i] }, blst_fp { l: limbs[i + 1] }] };
        let fp6 = |i: usize| blst_fp6 { fp2: [fp2(i), fp2(i + 2), fp2(i + 4)] };
        Self(blst_fp12 { fp6: [fp6(0), fp6(6)] })
    }
}

impl Torus {
    /// The six coefficients of a in (1 + a·w)/(1 − a·w).
    pub(crate) fn limbs(&self) -> [&Limbs; 6] {
        std::array::from_fn(|i| &self.0.0.fp2[i / 2].fp[i % 2].l)
    }
}

impl Lines {
    /// The coefficients (l0, l1, l2) of each line l0 + l1·(−2x)·v + l2·(2y)·v·w; `None` for the identity.
    pub(crate) fn coefficients(&self) -> Option<impl Iterator<Item = [[Limbs; 2]; 3]>> {
        self.0.as_ref().map(|lines| lines.iter().map(|line| line.fp2.map(|c| c.fp.map(|fp| fp.l))))
    }
}
