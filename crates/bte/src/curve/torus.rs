//! GT as an algebraic torus: elements in half the space, products for two thirds of the price.
//!
//! Every g of GT but −1, which has even order and so is not in GT, is (1 + a·w)/(1 − a·w) for exactly one a of F_p6,
//! a = g1/(1 + g0) (the Cayley transform; Rubin and Silverberg's torus T₂). −a belongs to the inverse of g, 0 to 1.
//! A product of many g is taken on the numerators alone: f = Π (1 + aᵢ·w), and Π gᵢ = f/conj(f) at the end, where a
//! factor of f in F_p6 does not matter and one inversion does for many quotients.

use blst::{blst_fp6, blst_fp12};
use zeroize::Zeroize;

use super::Gt;
use super::fp::or_masked;
use super::fp6::Fp6;

/// An element of GT, 288 bytes. Aligned so that it spans five cache lines and not six.
#[repr(align(32))]
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Torus(pub(super) Fp6);

/// A product of elements of GT as f0 + f1·w, whose quotient by its conjugate it stands for.
#[derive(Clone, Copy)]
pub(crate) struct TorusProduct {
    f0: Fp6,
    f1: Fp6,
}

impl Zeroize for TorusProduct {
    fn zeroize(&mut self) {
        self.f0.zeroize();
        self.f1.zeroize();
    }
}

fn fp6_one() -> Fp6 {
    Fp6(Gt::one().0.fp6[0])
}

impl Torus {
    /// One F_p inversion.
    pub(crate) fn new(g: &Gt) -> Self {
        let [g0, g1] = g.0.fp6.map(Fp6);
        Self(g1.mul(&fp6_one().add(&g0).inverse()))
    }

    /// self·other for each other, with one F_p inversion: (a+b)/(1+v·a·b).
    pub(crate) fn times_each(&self, others: &[Self]) -> Vec<Self> {
        let one = fp6_one();
        let denominators = others.iter().map(|other| self.0.mul(&other.0).mul_by_v().add(&one));
        let inverses = Fp6::inverses(denominators);
        others.iter().zip(inverses).map(|(other, inverse)| Self(self.0.add(&other.0).mul(&inverse))).collect()
    }

    /// One F_p6 product: 1 + v·a·b + (a + b)·w.
    pub(crate) fn times(&self, other: &Self) -> TorusProduct {
        let f0 = self.0.mul(&other.0).mul_by_v().add(&fp6_one());
        TorusProduct { f0, f1: self.0.add(&other.0) }
    }

    pub(crate) fn inverse(&self) -> Self {
        Self(self.0.neg())
    }

    /// Adds `other` bit by bit where `mask` is all ones; touches the same memory whatever the mask.
    pub(crate) fn or_masked(&mut self, other: &Self, mask: u64) {
        for (own, other) in self.0.0.fp2.iter_mut().zip(&other.0.0.fp2) {
            for (own, other) in own.fp.iter_mut().zip(&other.fp) {
                or_masked(own, other, mask);
            }
        }
    }
}

impl Torus {
    /// The coefficients of a, 48 big-endian bytes each in tower order.
    pub(crate) fn encode(&self) -> [u8; 288] {
        let half = Gt(blst_fp12 { fp6: [self.0.0, blst_fp6::default()] }).encode();
        std::array::from_fn(|i| half[i])
    }

    /// Reads the encoding; `None` where a coefficient is not below p. Any of them belongs to an element of order dividing
    /// p⁶ + 1.
    pub(crate) fn decode(bytes: &[u8; 288]) -> Option<Self> {
        let mut whole = [0; 576];
        whole[..288].copy_from_slice(bytes);
        Gt::decode_trusted(&whole).ok().map(|value| Self(Fp6(value.0.fp6[0])))
    }
}

impl From<&Torus> for TorusProduct {
    fn from(element: &Torus) -> Self {
        Self { f0: fp6_one(), f1: element.0 }
    }
}

impl TorusProduct {
    pub(crate) fn one() -> Self {
        Self { f0: fp6_one(), f1: Fp6::default() }
    }

    /// Two F_p6 products: (f0 + v·f1·a) + (f1 + f0·a)·w.
    pub(crate) fn mul_torus(&self, factor: &Torus) -> Self {
        let a = &factor.0;
        Self { f0: self.f0.add(&self.f1.mul(a).mul_by_v()), f1: self.f1.add(&self.f0.mul(a)) }
    }

    pub(crate) fn mul(&self, other: &Self) -> Self {
        Self::from_numerator(&self.numerator().mul(&other.numerator()))
    }

    /// The product to the power |x|: the Frobenius, and conjugation because x is negative.
    pub(crate) fn power_of_x(&self) -> Self {
        Self::from_numerator(&self.numerator().power_of_x(1))
    }

    fn from_numerator(f: &Gt) -> Self {
        let [f0, f1] = f.0.fp6.map(Fp6);
        Self { f0, f1 }
    }

    /// f0 + f1·w.
    pub(crate) fn numerator(&self) -> Gt {
        Gt(blst_fp12 { fp6: [self.f0.0, self.f1.0] })
    }

    /// Is this the product that `g` is? Without an inversion: f = g·conj(f).
    pub(crate) fn is(&self, g: &Gt) -> bool {
        let f = self.numerator();
        g.mul(&f.conjugate()) == f
    }

    /// The element of GT. One F_p inversion; constant time.
    pub(crate) fn quotient(&self) -> Gt {
        let quotient = Quotient::new(self);
        quotient.times(&quotient.norm.inverse())
    }

    /// The elements of GT of all products, with one F_p inversion.
    pub(crate) fn quotients(products: &[Self]) -> Vec<Gt> {
        let quotients: Vec<Quotient> = products.iter().map(Quotient::new).collect();
        let inverses = Fp6::inverses(quotients.iter().map(|quotient| quotient.norm));
        quotients.iter().zip(inverses).map(|(quotient, inverse)| quotient.times(&inverse)).collect()
    }
}

/// f/conj(f) = f²/norm with norm = f0² − v·f1².
struct Quotient {
    square: [Fp6; 2],
    norm: Fp6,
}

impl Quotient {
    /// Three F_p6 squares.
    fn new(f: &TorusProduct) -> Self {
        let (s0, s1) = (f.f0.square(), f.f1.square());
        let cross = f.f0.add(&f.f1).square().sub(&s0.add(&s1));
        let s1 = s1.mul_by_v();
        Self { square: [s0.add(&s1), cross], norm: s0.sub(&s1) }
    }

    fn times(&self, inverse: &Fp6) -> Gt {
        let fp6: [blst_fp6; 2] = std::array::from_fn(|i| self.square[i].mul(inverse).0);
        Gt(blst_fp12 { fp6 })
    }
}
