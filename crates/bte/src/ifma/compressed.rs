//! Compressed squaring in the cyclotomic subgroup (Karabina, ePrint 2010/542, in the form of Aranha et al.,
//! ePrint 2010/526, section 5.2): g as g0 + g1·w³ + g2·w + g3·w⁴ + g4·w² + g5·w⁵ is determined by g2 … g5, and so are
//! its squares, for two thirds of the products. g0 and g1 come back by one inversion, which many elements share.

use super::cyclotomic::{square_pair, square_pair_xi};
use super::field::{Fp, Packed};
use super::target::invert_nonzero;
use super::tower::{Fp2, Fp12};
use super::vector::lanes;

/// g2 … g5 of eight elements.
#[derive(Clone, Copy)]
pub(super) struct Compressed {
    g2: Fp2,
    g3: Fp2,
    g4: Fp2,
    g5: Fp2,
}

/// What turns a compressed element back into a whole one once the inverse of `norm` is known.
struct Numerator {
    /// ξ·g5² + 3·g4² − 2·g3 = 4·g1·g2.
    quotient: Fp2,
    /// 4·g2.
    denominator: Fp2,
    /// The norm of the denominator.
    norm: Fp,
}

lanes! {
impl Compressed {
    pub(super) fn new(g: &Fp12) -> Self {
        Self { g2: g.c1.c0, g3: g.c0.c2, g4: g.c0.c1, g5: g.c1.c2 }
    }

    /// The square of an element below Z·p, LIFT ≥ 2Z + 1; the result is below (LIFT + 3)·p.
    fn set_square<const LIFT: u64>(&mut self, a: &Self) {
        square_pair::<LIFT>((&mut self.g4, &mut self.g5), (&a.g2, &a.g3), (&a.g4, &a.g5));
        square_pair_xi::<LIFT>((&mut self.g3, &mut self.g2), (&a.g4, &a.g5), (&a.g3, &a.g2));
    }

    fn weak(&self) -> Self {
        Self { g2: self.g2.weak(), g3: self.g3.weak(), g4: self.g4.weak(), g5: self.g5.weak() }
    }

    /// self^(2^count), reduced before and after.
    pub(super) fn square_times(&self, count: usize) -> Self {
        let mut buffers = [*self; 2];
        let [mut from, mut to] = buffers.each_mut();
        for i in 0..count {
            match i % 4 {
                0 => to.set_square::<8>(from),
                1 => to.set_square::<32>(from),
                2 => to.set_square::<128>(from),
                _ => {
                    to.set_square::<512>(from);
                    *to = to.weak();
                }
            }
            std::mem::swap(&mut from, &mut to);
        }
        from.weak()
    }

    fn numerator(&self) -> Numerator {
        let g4 = self.g4.square();
        let g4 = g4.add_n(&g4).add_n(&g4);
        let sum = self.g5.square().times_xi().add_n(&g4);
        let quotient = sum.sub_n(&self.g3.add_n(&self.g3)).weak();
        let twice = self.g2.add_n(&self.g2);
        let denominator = twice.add_n(&twice);
        let norm = denominator.c0.square().add_n(&denominator.c1.square());
        Numerator { quotient, denominator, norm }
    }

    fn decompress(&self, numerator: &Numerator, inverse: &Fp) -> Fp12 {
        let denominator = &numerator.denominator;
        let inverse = Fp2 { c0: denominator.c0.mul(inverse), c1: denominator.c1.neg().mul(inverse) };
        let g1 = numerator.quotient.mul(&inverse);
        let square = g1.square();
        let product = self.g3.mul(&self.g4);
        let triple = product.add_n(&product).add_n(&product);
        let sum = square.add_n(&square).add_n(&self.g2.mul(&self.g5));
        let mut g0 = sum.sub_n(&triple).weak().times_xi().weak();
        g0.c0 = g0.c0.add_n(&Fp::splat(&Packed::ONE.0));
        let mut out = Fp12::one();
        (out.c0.c0, out.c0.c1, out.c0.c2) = (g0, self.g4, self.g3);
        (out.c1.c0, out.c1.c1, out.c1.c2) = (self.g2, g1, self.g5);
        out
    }
}
}

lanes! {
    /// The whole elements, with one inversion; `None` if some g2 is 0, as for g = 1.
    pub(super) fn decompress(elements: &[Compressed]) -> Option<Vec<Fp12>> {
        let numerators: Vec<Numerator> = elements.iter().map(|element| element.numerator()).collect();
        let mut inverses: Vec<Fp> = numerators.iter().map(|numerator| numerator.norm).collect();
        if has_zero(&inverses) {
            return None;
        }
        invert_nonzero(&mut inverses);
        let parts = elements.iter().zip(&numerators).zip(&inverses);
        Some(parts.map(|((element, numerator), inverse)| element.decompress(numerator, inverse)).collect())
    }

    /// Is any lane 0 modulo p?
    fn has_zero(values: &[Fp]) -> bool {
        let one = Fp::splat(&Packed::ONE.0);
        values.iter().fold(one, |product, value| product.mul(value)).zero_lanes() != 0
    }
}
