//! The cyclotomic subgroup and GT in eight lanes: exponentiation, final exponentiation.

use std::sync::OnceLock;

use super::compressed::{Compressed, decompress};
use super::cyclotomic::Running;
use super::field::{Fp, Packed};
use super::points::invert_lanes;
use super::tower::{Fp2, Fp6, Fp12};
use super::vector::{LANES, lanes};
use crate::curve::Gt;
use crate::digits::base_x;

/// An element of F_p12 at rest.
pub(crate) type Packed12 = [Packed; 12];

/// 1 at rest.
pub(crate) const ONE12: Packed12 = {
    let mut out = [Packed([0; 8]); 12];
    out[0] = Packed::ONE;
    out
};

/// Windows of a 64-bit digit, with the last carry, and multiples 0 … 8 kept for each.
const WINDOW_BITS: u32 = 4;
const WINDOWS: usize = 17;
const POWERS: usize = 9;

/// Signed digits, −8 to 8, least significant first, of the four digits of a scalar in base |x|.
pub(crate) type Digits = [[i8; WINDOWS]; 4];

/// Recodes a public or secret scalar, without branches on it.
pub(crate) fn digits(k: &crate::curve::Scalar) -> Digits {
    base_x(k).map(|digit| {
        let mut carry = 0;
        std::array::from_fn(|i| {
            let window = if i < 16 { (digit >> (WINDOW_BITS * i as u32)) as u8 & 15 } else { 0 } + carry;
            carry = (window + 7) >> 4; // 1 if window > 8
            (window as i8) - ((carry as i8) << WINDOW_BITS)
        })
    })
}

lanes! {
    /// Coefficients of the Frobenius maps: φ^n multiplies the coefficient of w^i by γ_(n,i), after n conjugations.
    /// In order of n and of the tower (c0.c1, c0.c2, c1.c0, c1.c1, c1.c2; that of c0.c0 is 1).
    fn frobenius_coefficients() -> &'static [[[Packed; 2]; 5]; 3] {
        static CELL: OnceLock<[[[Packed; 2]; 5]; 3]> = OnceLock::new();
        CELL.get_or_init(|| {
            let one = *Gt::one().limbs()[0];
            std::array::from_fn(|n| {
                std::array::from_fn(|i| {
                    let mut basis = [[0; 6]; 12];
                    basis[2 * i + 2] = one;
                    let mapped = Gt::from_limbs(&basis).frobenius(n + 1);
                    [2, 3].map(|j| Fp::from_blst([mapped.limbs()[2 * i + j]; LANES]).scatter()[0])
                })
            })
        })
    }
}

/// Powers 0 … 8 of eight elements and of their images under φ, φ², φ³ (with the sign that makes φ^j exponentiation by
/// |x|^j), lane by lane: where an exponentiation looks them up. 221 KB; one for each thread.
pub(crate) struct Powers(Vec<[[Packed12; POWERS]; 4]>);

impl Powers {
    pub(crate) fn new() -> Self {
        Self(vec![[[ONE12; POWERS]; 4]; LANES])
    }
}

lanes! {
impl Fp12 {
    pub(crate) fn from_gt(elements: [&Gt; LANES]) -> Self {
        let limbs = elements.map(|e| e.limbs());
        let at = |i: usize| Fp::from_blst(std::array::from_fn(|lane| limbs[lane][i]));
        let at2 = |i: usize| Fp2 { c0: at(i), c1: at(i + 1) };
        let at6 = |i: usize| Fp6 { c0: at2(i), c1: at2(i + 2), c2: at2(i + 4) };
        Self { c0: at6(0), c1: at6(6) }
    }

    pub(crate) fn to_gt(self) -> [Gt; LANES] {
        let limbs = self.coefficients().map(|fp| fp.to_blst());
        std::array::from_fn(|lane| Gt::from_limbs(&limbs.each_ref().map(|fp| fp[lane])))
    }

    /// self^(p^power), power 1, 2 or 3.
    pub(crate) fn frobenius(&self, power: usize) -> Self {
        let gamma = &frobenius_coefficients()[power - 1];
        let mut out = *self;
        let (a, b) = (&mut out.c0, &mut out.c1);
        for c in [&mut a.c0, &mut a.c1, &mut a.c2, &mut b.c0, &mut b.c1, &mut b.c2] {
            if power % 2 == 1 {
                c.c1 = c.c1.neg();
            }
        }
        for (c, gamma) in [&mut a.c1, &mut a.c2, &mut b.c0, &mut b.c1, &mut b.c2].into_iter().zip(gamma) {
            let g0 = Fp::splat(&gamma[0].0);
            *c = if power == 2 {
                c.scale(&g0) // in F_p
            } else {
                c.mul(&Fp2 { c0: g0, c1: Fp::splat(&gamma[1].0) })
            };
        }
        out
    }

    /// self^(|x|^j), j ≤ 3, in GT.
    fn power_of_x(&self, j: usize) -> Self {
        match j {
            0 => *self,
            2 => self.frobenius(2),
            _ => self.frobenius(j).conjugate(),
        }
    }

    /// Each lane to its own public power: 68 squarings and 71 products, always. self below 2^11·p; reduced after.
    pub(crate) fn pow_each(&self, powers: &mut Powers, digits: [&Digits; LANES]) -> Self {
        self.fill(powers);
        let mut product: Option<Running> = None;
        for window in (0..WINDOWS).rev() {
            if let Some(product) = &mut product
                && window < WINDOWS - 1
            {
                product.square_times(WINDOW_BITS as usize);
            }
            for j in 0..4 {
                let at: [i8; LANES] = std::array::from_fn(|lane| digits[lane][j][window]);
                if at == [0; LANES] {
                    continue;
                }
                let factor = look_up(powers, j, &at);
                match &mut product {
                    None => product = Some(Running::new(&factor)),
                    Some(product) => product.multiply(&factor),
                }
            }
        }
        // The last window is followed by no squaring; all of its digits may be 0.
        product.map_or_else(|| Self::one(), |product| product.value().weak())
    }

    /// All lanes to the same public power: 64 squarings and about 55 products. self below 2^11·p; reduced after.
    pub(crate) fn pow_same(&self, k: &crate::curve::Scalar) -> Self {
        let digits = base_x(k).map(|digit| crate::digits::wnaf_u64(digit, 4));
        let base = self.weak();
        let square = base.square_cyclotomic_times(1);
        let mut odd = [base; 4];
        for i in 1..4 {
            odd[i] = odd[i - 1].mul(&square);
        }
        let tables: [[Self; 4]; 4] =
            [odd, odd.map(|p| p.power_of_x(1)), odd.map(|p| p.power_of_x(2)), odd.map(|p| p.power_of_x(3))];
        let length = digits.iter().map(|d| d.len()).max().unwrap_or(0);
        let mut product: Option<Running> = None;
        let mut pending = 0;
        for position in (0..length).rev() {
            pending += usize::from(product.is_some());
            for (digits, table) in digits.iter().zip(&tables) {
                let digit = digits.get(position);
                if digit == 0 {
                    continue;
                }
                let power = &table[usize::from(digit.unsigned_abs() / 2)];
                let conjugate;
                let factor = if digit < 0 {
                    conjugate = power.conjugate();
                    &conjugate
                } else {
                    power
                };
                match &mut product {
                    None => product = Some(Running::new(factor)),
                    Some(product) => {
                        product.square_times(std::mem::take(&mut pending));
                        product.multiply(factor);
                    }
                }
            }
        }
        let Some(mut product) = product else { return Self::one() };
        product.square_times(pending);
        product.value().weak()
    }

    fn fill(&self, powers: &mut Powers) {
        let p1 = self.weak();
        let p2 = p1.square_cyclotomic_times(1).weak();
        let p3 = p2.mul(&p1);
        let p4 = p2.square_cyclotomic_times(1).weak();
        let p5 = p4.mul(&p1);
        let p6 = p3.square_cyclotomic_times(1).weak();
        let p7 = p6.mul(&p1);
        let p8 = p4.square_cyclotomic_times(1).weak();
        for (index, power) in [p1, p2, p3, p4, p5, p6, p7, p8].iter().enumerate() {
            for j in 0..4 {
                let mut rows = powers.0.iter_mut().map(|lane| &mut lane[j][index + 1]);
                let rows: [&mut Packed12; LANES] = std::array::from_fn(|_| match rows.next() {
                    Some(row) => row,
                    None => unreachable!("a table has a row for each lane"),
                });
                power.power_of_x(j).scatter(rows);
            }
        }
    }

    /// self^x, cyclotomic, x negative; self reduced, and the result.
    fn power_x(&self) -> Self {
        const RUNS: [usize; 5] = [2, 3, 9, 32, 16];
        let mut out = Running::new(self);
        out.square_times(1);
        for doublings in RUNS {
            out.multiply(self);
            out.square_times(doublings);
        }
        out.value().weak().conjugate()
    }
}
}

lanes! {
    /// From the cyclotomic subgroup into GT; see [`Gt::hard_part`]. Elements below 2^11·p; reduced after.
    pub(crate) fn hard_parts(values: &mut [Fp12]) {
        values.iter_mut().for_each(|f| *f = f.weak());
        let next = |t: &[Fp12], factor: &dyn Fn(&Fp12) -> Fp12| -> Vec<Fp12> {
            powers_x(t).iter().zip(t).map(|(power, t)| power.mul(&factor(t))).collect()
        };
        let mut t = next(values, &|t| t.conjugate());
        t = next(&t, &|t| t.conjugate());
        t = next(&t, &|t| t.frobenius(1));
        let power = powers_x(&powers_x(&t));
        for ((f, power), t) in values.iter_mut().zip(&power).zip(&t) {
            let last = power.mul(&t.frobenius(2)).mul(&t.conjugate());
            let cube = f.square_cyclotomic_times(1).mul(f);
            f.set_product(&last, &cube);
        }
    }

    /// Each to the power x, cyclotomic, x negative; reduced before and after.
    ///
    /// |x| has six set bits: compressed squarings up to each, all six whole again at once, and their product.
    fn powers_x(values: &[Fp12]) -> Vec<Fp12> {
        const RUNS: [usize; 6] = [16, 32, 9, 3, 2, 1];
        let mut compressed = Vec::with_capacity(RUNS.len() * values.len());
        for value in values {
            let mut power = Compressed::new(value);
            for doublings in RUNS {
                power = power.square_times(doublings);
                compressed.push(power);
            }
        }
        match decompress(&compressed) {
            Some(powers) => powers.chunks(RUNS.len()).map(|powers| {
                let mut product = Running::new(&powers[0]);
                powers[1..].iter().for_each(|power| product.multiply(power));
                product.value().weak().conjugate()
            }).collect(),
            None => values.iter().map(|value| value.power_x()).collect(),
        }
    }
}

lanes! {
    /// Each lane's power.
    #[inline(never)]
    fn look_up(powers: &Powers, j: usize, digits: &[i8; LANES]) -> Fp12 {
        let rows = std::array::from_fn(|lane| &powers.0[lane][j][usize::from(digits[lane].unsigned_abs())]);
        let mut power = Fp12::gather(rows);
        let negative = (0..LANES).fold(0, |mask, lane| mask | u8::from(digits[lane] < 0) << lane);
        power.c1.negate_lanes(negative);
        power
    }

    /// f^((p⁶−1)(p²+1)) of each element, none of them zero: from Miller values into the cyclotomic subgroup. One field
    /// inversion for all.
    pub(crate) fn easy_parts(values: &mut [Fp12]) {
        for value in values.iter_mut() {
            *value = value.conjugate();
        }
        quotients(values);
        for value in values {
            let unitary = *value;
            value.set_product(&unitary.frobenius(2), &unitary);
        }
    }

    /// f/conj(f) of each element, none of them zero and below 1000·p. One field inversion for all.
    pub(super) fn quotients(values: &mut [Fp12]) {
        // f²/N, N = f0² − v·f1² in F_p6; 1/N from the norm of N in F_p.
        let norms: Vec<Norm> = values.iter().map(|f| Norm::new(f)).collect();
        let mut inverses: Vec<Fp> = norms.iter().map(|norm| norm.in_fp).collect();
        invert_nonzero(&mut inverses);
        for ((value, norm), inverse) in values.iter_mut().zip(&norms).zip(&inverses) {
            let mut square = *value;
            square.set_square(value);
            let inverse = norm.inverse(inverse);
            *value = Fp12 { c0: square.c0.mul(&inverse), c1: square.c1.mul(&inverse) };
        }
    }

    /// Inverts all, one inversion in total; a zero lane would spoil its lane in all.
    pub(super) fn invert_nonzero(values: &mut [Fp]) {
        let Some(first) = values.first() else { return };
        let mut product = *first;
        let mut prefixes = Vec::with_capacity(values.len());
        for value in &values[1..] {
            prefixes.push(product);
            product = product.mul(value);
        }
        let mut inverse = invert_lanes(&product);
        for (value, prefix) in values[1..].iter_mut().zip(&prefixes).rev() {
            let out = inverse.mul(prefix);
            inverse = inverse.mul(value);
            *value = out;
        }
        values[0] = inverse;
    }
}

/// The norm of an element of F_p12 to F_p6, to F_p2 and to F_p, with what its inversion needs.
pub(super) struct Norm {
    /// Adjoint of the norm in F_p6: N·adjoint lies in F_p2.
    adjoint: Fp6,
    in_fp2: Fp2,
    pub(super) in_fp: Fp,
}

lanes! {
impl Norm {
    /// Of f0² − v·f1².
    pub(super) fn new(f: &Fp12) -> Self {
        // ξ's multiples may lie above what `sub_n` adds: reduced before they are taken off.
        let n = f.c0.mul(&f.c0).sub_n(&f.c1.mul(&f.c1).times_v().weak()).weak();
        // (A, B, C) = (n0² − ξn1n2, ξn2² − n0n1, n1² − n0n2), F = n0A + ξ(n2B + n1C).
        let a = n.c0.square().sub_n(&n.c1.mul(&n.c2).times_xi().weak()).weak();
        let b = n.c2.square().times_xi().sub_n(&n.c0.mul(&n.c1)).weak();
        let c = n.c1.square().sub_n(&n.c0.mul(&n.c2)).weak();
        let inner = n.c2.mul(&b).add_n(&n.c1.mul(&c)).times_xi();
        let in_fp2 = n.c0.mul(&a).add_n(&inner).weak();
        let in_fp = in_fp2.c0.square().add_n(&in_fp2.c1.square());
        Self { adjoint: Fp6 { c0: a, c1: b, c2: c }, in_fp2, in_fp }
    }

    /// 1/N, given 1/`in_fp`.
    pub(super) fn inverse(&self, inverse: &Fp) -> Fp6 {
        let f = Fp2 { c0: self.in_fp2.c0.mul(inverse), c1: self.in_fp2.c1.neg().mul(inverse) };
        Fp6 { c0: self.adjoint.c0.mul(&f), c1: self.adjoint.c1.mul(&f), c2: self.adjoint.c2.mul(&f) }
    }
}
}
