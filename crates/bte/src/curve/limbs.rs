//! Field elements as the six 64-bit limbs that `blst` keeps (Montgomery form, R = 2^384, below p): how other
//! representations of the same values reach in and out.

use blst::{blst_fp, blst_fp2, blst_fp6, blst_fp12, blst_p1_affine, blst_p2_affine};

use super::{G1Affine, G2Affine, Gt, Lines, Torus, fp};

/// One element of F_p.
pub(crate) type Limbs = [u64; 6];

/// p, least significant limb first.
const MODULUS: Limbs = [
    0xb9fe_ffff_ffff_aaab,
    0x1eab_fffe_b153_ffff,
    0x6730_d2a0_f6b0_f624,
    0x6477_4b84_f385_12bf,
    0x4b1b_a7b6_434b_acd7,
    0x1a01_11ea_397f_e69a,
];

/// Below p?
pub(crate) fn is_reduced(value: &Limbs) -> bool {
    value.iter().rev().lt(MODULUS.iter().rev())
}

/// 1/value; 0 for 0.
#[allow(dead_code)] // only lanes use it
pub(crate) fn invert(value: &Limbs) -> Limbs {
    fp::inverse(&blst_fp { l: *value }).l
}

/// a·b.
#[allow(dead_code)] // only lanes use it
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

impl G2Affine {
    /// x.c0, x.c1, y.c0, y.c1; zeros for the identity.
    pub(crate) fn to_limbs(self) -> [Limbs; 4] {
        let [x, y] = [self.0.x.fp, self.0.y.fp];
        [x[0].l, x[1].l, y[0].l, y[1].l]
    }

    /// A point known to be on the curve.
    #[cfg_attr(not(feature = "reference"), allow(dead_code))] // only the tests' device takes points back
    pub(crate) fn from_limbs(limbs: &[Limbs; 4]) -> Self {
        let fp2 = |i: usize| blst_fp2 { fp: [blst_fp { l: limbs[i] }, blst_fp { l: limbs[i + 1] }] };
        Self(blst_p2_affine { x: fp2(0), y: fp2(2) })
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
    #[allow(dead_code)] // only lanes use it
    pub(crate) fn limbs(&self) -> [&Limbs; 6] {
        std::array::from_fn(|i| &self.0.0.fp2[i / 2].fp[i % 2].l)
    }
}

impl Lines {
    /// The coefficients (l0, l1, l2) of each line l0 + l1·(−2x)·v + l2·(2y)·v·w; `None` for the identity.
    #[allow(dead_code)] // only lanes use it
    pub(crate) fn coefficients(&self) -> Option<impl Iterator<Item = [[Limbs; 2]; 3]>> {
        self.0.as_ref().map(|lines| lines.iter().map(|line| line.fp2.map(|c| c.fp.map(|fp| fp.l))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduced_is_below_p() {
        let mut below = MODULUS;
        below[0] -= 1;
        let mut high = MODULUS;
        high[0] = 0;
        high[5] += 1;
        let mut low = MODULUS;
        low[0] = u64::MAX;
        low[5] -= 1;
        assert!(is_reduced(&[0; 6]) && is_reduced(&below) && is_reduced(&low));
        assert!(!is_reduced(&MODULUS) && !is_reduced(&high) && !is_reduced(&[u64::MAX; 6]));
        // −1 + 1 = 0: the constant is the field's.
        let one = super::super::fp::sub(&blst_fp::default(), &blst_fp { l: below });
        assert_eq!(one.l, [1, 0, 0, 0, 0, 0]);
    }
}
