//! F_p6 = F_p2[v]/(v³ − (u+1)): the field over which F_p12 is quadratic (w² = v).
//!
//! `blst` has no function for it in its interface; this is Karatsuba over its F_p2. Constant time but where said.

use blst::{blst_fp, blst_fp2, blst_fp6};
use zeroize::Zeroize;

use super::fp::{add, add2, inverse, invert_all, mul, mul2, mul2_by_xi, square, square2, sub, sub2};

/// An element of F_p6.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fp6(pub(super) blst_fp6);

/// A divisor half way: 1/a = adjoint · conj(norm) / norm_to_fp, a shared inversion being all that is missing.
struct Divisor {
    adjoint: Fp6,
    /// a · adjoint, in F_p2.
    norm: blst_fp2,
}

impl Zeroize for Fp6 {
    fn zeroize(&mut self) {
        for fp in self.0.fp2.iter_mut().flat_map(|c| &mut c.fp) {
            fp.l.zeroize();
        }
    }
}

impl Fp6 {
    pub(super) fn add(&self, other: &Self) -> Self {
        Self(blst_fp6 { fp2: std::array::from_fn(|i| add2(&self.0.fp2[i], &other.0.fp2[i])) })
    }

    pub(super) fn sub(&self, other: &Self) -> Self {
        Self(blst_fp6 { fp2: std::array::from_fn(|i| sub2(&self.0.fp2[i], &other.0.fp2[i])) })
    }

    pub(super) fn neg(&self) -> Self {
        Self::default().sub(self)
    }

    /// v·self, without a product.
    pub(super) fn mul_by_v(&self) -> Self {
        let [c0, c1, c2] = &self.0.fp2;
        Self(blst_fp6 { fp2: [mul2_by_xi(c2), *c0, *c1] })
    }

    /// Six F_p2 products.
    pub(super) fn mul(&self, other: &Self) -> Self {
        let ([a0, a1, a2], [b0, b1, b2]) = (&self.0.fp2, &other.0.fp2);
        let (t0, t1, t2) = (mul2(a0, b0), mul2(a1, b1), mul2(a2, b2));
        let c0 = sub2(&mul2(&add2(a1, a2), &add2(b1, b2)), &add2(&t1, &t2)); // a1·b2 + a2·b1
        let c1 = sub2(&mul2(&add2(a0, a1), &add2(b0, b1)), &add2(&t0, &t1)); // a0·b1 + a1·b0
        let c2 = sub2(&mul2(&add2(a0, a2), &add2(b0, b2)), &sub2(&add2(&t0, &t2), &t1));
        Self(blst_fp6 { fp2: [add2(&mul2_by_xi(&c0), &t0), add2(&c1, &mul2_by_xi(&t2)), c2] })
    }

    /// Two F_p2 products and three squares (Chung and Hasan's SQR2).
    pub(super) fn square(&self) -> Self {
        let [a0, a1, a2] = &self.0.fp2;
        let (s0, s4) = (square2(a0), square2(a2));
        let (m01, m12) = (mul2(a0, a1), mul2(a1, a2));
        let (s1, s3) = (add2(&m01, &m01), add2(&m12, &m12));
        let s2 = square2(&add2(&sub2(a0, a1), a2));
        let c2 = sub2(&add2(&add2(&s1, &s2), &s3), &add2(&s0, &s4));
        Self(blst_fp6 { fp2: [add2(&s0, &mul2_by_xi(&s3)), add2(&s1, &mul2_by_xi(&s4)), c2] })
    }

    fn divisor(&self) -> (Divisor, blst_fp) {
        let [a0, a1, a2] = &self.0.fp2;
        let c0 = sub2(&square2(a0), &mul2_by_xi(&mul2(a1, a2)));
        let c1 = sub2(&mul2_by_xi(&square2(a2)), &mul2(a0, a1));
        let c2 = sub2(&square2(a1), &mul2(a0, a2));
        let cross = add2(&mul2(a1, &c2), &mul2(a2, &c1));
        let norm = add2(&mul2(a0, &c0), &mul2_by_xi(&cross));
        let norm_to_fp = add(&square(&norm.fp[0]), &square(&norm.fp[1]));
        (Divisor { adjoint: Self(blst_fp6 { fp2: [c0, c1, c2] }), norm }, norm_to_fp)
    }

    /// 1/self, 0 for 0. One F_p inversion.
    pub(super) fn inverse(&self) -> Self {
        let (divisor, norm) = self.divisor();
        divisor.inverse(&inverse(&norm))
    }

    /// The inverses of all, 0 for 0, with one F_p inversion. Branches on which elements are 0.
    pub(super) fn inverses(elements: impl Iterator<Item = Self>) -> impl Iterator<Item = Self> {
        let (divisors, mut norms): (Vec<Divisor>, Vec<blst_fp>) = elements.map(|e| e.divisor()).unzip();
        invert_all(&mut norms);
        divisors.into_iter().zip(norms).map(|(divisor, inverse)| divisor.inverse(&inverse))
    }
}

impl Divisor {
    fn inverse(&self, inverse_norm: &blst_fp) -> Fp6 {
        let [real, imaginary] = &self.norm.fp;
        let conjugate = sub(&blst_fp::default(), imaginary);
        let inverse = blst_fp2 { fp: [mul(real, inverse_norm), mul(&conjugate, inverse_norm)] };
        Fp6(blst_fp6 { fp2: std::array::from_fn(|i| mul2(&self.adjoint.0.fp2[i], &inverse)) })
    }
}
