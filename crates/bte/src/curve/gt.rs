//! GT, the pairing, and the cyclotomic subgroup that contains GT.

use blst::{blst_fp, blst_fp6, blst_fp12};
use zeroize::Zeroize;

use super::{G1Affine, G2Affine, Scalar};
use crate::digits::{base_x, wnaf_u64};

/// Lines of a Miller loop: one for each doubling and addition on the way through |x|.
const MILLER_LINES: usize = 68;

/// Signed window of variable-time exponentiation.
const WINDOW_BITS: u32 = 4;
const ODD_POWERS: usize = 1 << (WINDOW_BITS - 2);

/// An element of F_p12: of GT, or of the cyclotomic subgroup before the hard part of the final exponentiation.
///
/// The operations below hold in the whole cyclotomic subgroup where they say "cyclotomic"; there conjugation inverts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gt(pub(super) blst_fp12);

/// Why 576 bytes are not an element of GT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GtError {
    /// A coefficient is not below p.
    #[error("a coefficient is not below the field modulus")]
    NotCanonical,
    /// Not in the subgroup of order r.
    #[error("not an element of the pairing's target group")]
    NotInGroup,
}

impl Zeroize for Gt {
    fn zeroize(&mut self) {
        for fp in self.coefficients_mut() {
            fp.l.zeroize();
        }
    }
}

impl Gt {
    pub(crate) fn one() -> Self {
        // SAFETY: the function returns the address of a constant that lives as long as the program.
        Self(unsafe { *blst::blst_fp12_one() })
    }

    pub(crate) fn is_one(&self) -> bool {
        *self == Self::one()
    }

    pub(crate) fn mul(&self, other: &Self) -> Self {
        let mut out = blst_fp12::default();
        // SAFETY: all three are initialised values of the declared type.
        unsafe { blst::blst_fp12_mul(&mut out, &self.0, &other.0) };
        Self(out)
    }

    /// Cyclotomic: the inverse.
    pub(crate) fn conjugate(&self) -> Self {
        let mut out = *self;
        // SAFETY: the argument is an initialised value, changed in place.
        unsafe { blst::blst_fp12_conjugate(&mut out.0) };
        out
    }

    /// Cyclotomic squaring (Granger and Scott).
    pub(crate) fn square(&self) -> Self {
        let mut out = blst_fp12::default();
        // SAFETY: both are initialised values of the declared type.
        unsafe { blst::blst_fp12_cyclotomic_sqr(&mut out, &self.0) };
        Self(out)
    }

    /// self^(p^power), power 1, 2 or 3.
    pub(crate) fn frobenius(&self, power: usize) -> Self {
        assert!((1..=3).contains(&power), "blst has coefficients for three powers");
        let mut out = blst_fp12::default();
        // SAFETY: both are initialised values of the declared type, and the power is in the function's range.
        unsafe { blst::blst_fp12_frobenius_map(&mut out, &self.0, power) };
        Self(out)
    }

    /// self^(|x|^j), j ≤ 3, in GT: the Frobenius is exponentiation by x = −|x| there.
    pub(crate) fn power_of_x(&self, j: usize) -> Self {
        match j {
            0 => *self,
            2 => self.frobenius(2),
            _ => self.frobenius(j).conjugate(),
        }
    }

    /// self^(ζ^power), ζ = −x² a primitive cube root of unity in F_r; power at most 2. Cyclotomic, in the sense of
    /// [`Gt::pow_public`].
    pub(crate) fn pow_zeta(&self, power: usize) -> Self {
        match power {
            0 => *self,
            1 => self.frobenius(2).conjugate(),
            2 => self.frobenius(2).frobenius(2),
            _ => panic!("ζ has order 3"),
        }
    }

    /// self^k in variable time: 64 squarings and about 55 products.
    ///
    /// On a cyclotomic element this is an endomorphism that becomes exponentiation by k after the hard part.
    pub(crate) fn pow_public(&self, k: &Scalar) -> Self {
        let digits = base_x(k).map(|digit| wnaf_u64(digit, WINDOW_BITS));
        let mut tables = [[*self; ODD_POWERS]; 4];
        let square = self.square();
        for i in 1..ODD_POWERS {
            tables[0][i] = tables[0][i - 1].mul(&square);
        }
        for j in 1..4 {
            tables[j] = tables[0].map(|power| power.power_of_x(j));
        }
        let length = digits.iter().map(|d| d.len()).max().unwrap_or(0);
        let mut product: Option<Self> = None;
        for position in (0..length).rev() {
            product = product.map(|p| p.square());
            for (digits, table) in digits.iter().zip(&tables) {
                let digit = digits.get(position);
                if digit != 0 {
                    let power = table[usize::from(digit.unsigned_abs() / 2)];
                    let factor = if digit < 0 { power.conjugate() } else { power };
                    product = Some(product.map_or(factor, |p| p.mul(&factor)));
                }
            }
        }
        product.unwrap_or_else(Self::one)
    }

    /// f^((p⁶−1)(p²+1)): from a Miller value into the cyclotomic subgroup.
    pub(crate) fn easy_part(&self) -> Self {
        let mut inverse = blst_fp12::default();
        // SAFETY: both are initialised values of the declared type.
        unsafe { blst::blst_fp12_inverse(&mut inverse, &self.0) };
        let unitary = self.conjugate().mul(&Self(inverse));
        unitary.frobenius(2).mul(&unitary)
    }

    /// From the cyclotomic subgroup into GT: the exponent is 3·(p⁴−p²+1)/r, as in arkworks and `blst`
    /// (Hayashida, Hayasaka and Teruya, ePrint 2020/875: (x−1)²·(x+p)·(x²+p²−1) + 3).
    pub(crate) fn hard_part(&self) -> Self {
        let mut t = self.power_x().mul(&self.conjugate()); // x − 1
        t = t.power_x().mul(&t.conjugate()); // (x − 1)²
        t = t.power_x().mul(&t.frobenius(1)); // … (x + p)
        t = t.power_x().power_x().mul(&t.frobenius(2)).mul(&t.conjugate()); // … (x² + p² − 1)
        t.mul(&self.square().mul(self))
    }

    /// self^x, cyclotomic, x negative.
    fn power_x(&self) -> Self {
        // |x| in binary: each run is a set bit and the doublings that follow it.
        const RUNS: [usize; 5] = [2, 3, 9, 32, 16];
        let mut out = self.square();
        for doublings in RUNS {
            out = out.mul(self);
            for _ in 0..doublings {
                // SAFETY: an initialised value; the function tolerates an output that is also its input.
                unsafe { blst::blst_fp12_cyclotomic_sqr(&mut out.0, &out.0) };
            }
        }
        out.conjugate()
    }

    /// In the cyclotomic subgroup, of order Φ₁₂(p) = p⁴ − p² + 1? Not 0.
    pub(crate) fn is_cyclotomic(&self) -> bool {
        let power = self.frobenius(2);
        power.frobenius(2).mul(self) == power
    }

    /// In the subgroup of order r?
    pub(crate) fn in_group(&self) -> bool {
        // SAFETY: the argument is an initialised value.
        unsafe { blst::blst_fp12_in_group(&self.0) }
    }

    /// Twelve coefficients of 48 big-endian bytes in tower order c0.c0.c0 … c1.c2.c1.
    pub(crate) fn encode(&self) -> [u8; 576] {
        let mut out = [0; 576];
        for (fp, chunk) in self.coefficients().zip(out.chunks_exact_mut(48)) {
            // SAFETY: `chunk` has the 48 bytes that the function writes.
            unsafe { blst::blst_bendian_from_fp(chunk.as_mut_ptr(), fp) };
        }
        out
    }

    /// Reads the canonical encoding and checks membership in GT.
    pub(crate) fn decode(bytes: &[u8; 576]) -> Result<Self, GtError> {
        let value = Self::decode_trusted(bytes)?;
        if !value.in_group() {
            return Err(GtError::NotInGroup);
        }
        Ok(value)
    }

    /// Reads the canonical encoding of an element that this process computed.
    pub(crate) fn decode_trusted(bytes: &[u8; 576]) -> Result<Self, GtError> {
        let mut value = Self(blst_fp12::default());
        for (fp, chunk) in value.coefficients_mut().zip(bytes.chunks_exact(48)) {
            // SAFETY: `chunk` has the 48 bytes that the function reads.
            unsafe { blst::blst_fp_from_bendian(fp, chunk.as_ptr()) };
        }
        if value.encode() != *bytes {
            return Err(GtError::NotCanonical);
        }
        Ok(value)
    }

    fn coefficients(&self) -> impl Iterator<Item = &blst_fp> {
        self.0.fp6.iter().flat_map(|c| &c.fp2).flat_map(|c| &c.fp)
    }

    fn coefficients_mut(&mut self) -> impl Iterator<Item = &mut blst_fp> {
        self.0.fp6.iter_mut().flat_map(|c| &mut c.fp2).flat_map(|c| &mut c.fp)
    }
}

/// The lines of a Miller loop over a fixed G2 point: 19.6 KB that save about a quarter of the loop.
pub(crate) struct Lines(pub(super) Option<Box<[blst_fp6; MILLER_LINES]>>);

impl Lines {
    /// Bytes that one point's lines take.
    pub(crate) const BYTES: usize = MILLER_LINES * size_of::<blst_fp6>();

    pub(crate) fn new(point: &G2Affine) -> Self {
        if point.is_identity() {
            return Self(None);
        }
        let mut lines = Box::new([blst_fp6::default(); MILLER_LINES]);
        // SAFETY: the function writes the 68 elements that the array has.
        unsafe { blst::blst_precompute_lines(lines.as_mut_ptr(), &point.0) };
        Self(Some(lines))
    }

    /// The Miller value of (point, the G2 point of these lines); 1 if either is the identity.
    pub(crate) fn miller_loop(&self, point: &G1Affine) -> Gt {
        match &self.0 {
            Some(lines) if !point.is_identity() => {
                let mut out = blst_fp12::default();
                // SAFETY: the array has the 68 elements that the function reads.
                unsafe { blst::blst_miller_loop_lines(&mut out, lines.as_ptr(), &point.0) };
                Gt(out)
            }
            _ => Gt::one(),
        }
    }
}

/// The Miller value of (p, q); 1 if either is the identity.
pub(crate) fn miller_loop(p: &G1Affine, q: &G2Affine) -> Gt {
    if p.is_identity() || q.is_identity() {
        return Gt::one();
    }
    let mut out = blst_fp12::default();
    // SAFETY: all are initialised values; neither point is the identity.
    unsafe { blst::blst_miller_loop(&mut out, &q.0, &p.0) };
    Gt(out)
}

/// Π of the Miller values of the pairs, sharing the squarings.
pub(crate) fn miller_product(pairs: &[(G1Affine, G2Affine)]) -> Gt {
    let (mut ps, mut qs) = (Vec::with_capacity(pairs.len()), Vec::with_capacity(pairs.len()));
    for (p, q) in pairs {
        if !p.is_identity() && !q.is_identity() {
            ps.push(&p.0 as *const blst::blst_p1_affine);
            qs.push(&q.0 as *const blst::blst_p2_affine);
        }
    }
    if ps.is_empty() {
        return Gt::one();
    }
    let mut out = blst_fp12::default();
    // SAFETY: there are `ps.len()` valid pointers in both lists; no point is the identity.
    unsafe { blst::blst_miller_loop_n(&mut out, qs.as_ptr(), ps.as_ptr(), ps.len()) };
    Gt(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::{G1, G2};

    fn sample() -> Gt {
        miller_loop(&G1Affine::generator(), &G2Affine::generator()).easy_part().hard_part()
    }

    #[test]
    fn the_final_exponentiation_is_that_of_blst() {
        let miller = miller_loop(&G1Affine::generator(), &G2Affine::generator());
        let mut want = blst_fp12::default();
        // SAFETY: both are initialised values.
        unsafe { blst::blst_final_exp(&mut want, &miller.0) };
        assert!(miller.easy_part().hard_part() == Gt(want));
        assert!(Gt(want).in_group() && !miller.easy_part().in_group() && !Gt(want).is_one());
    }

    #[test]
    fn the_pairing_is_bilinear_and_lines_agree() {
        let (a, b) = (Scalar::from_u64(123_456_789), Scalar::reduce(&[0x5e; 48]));
        let p = G1::generator().mul_secret(&a).to_affine();
        let q = G2::generator().mul(&b).to_affine();
        let pairing = miller_loop(&p, &q).easy_part().hard_part();
        assert!(pairing == sample().pow_public(&a.mul(&b)));
        assert!(Lines::new(&q).miller_loop(&p) == miller_loop(&p, &q));
        let identity = G1::default().to_affine();
        assert!(Lines::new(&q).miller_loop(&identity).is_one() && miller_loop(&identity, &q).is_one());
        assert!(Lines::new(&G2::default().to_affine()).miller_loop(&p).is_one());
        let product = miller_product(&[(p, q), (identity, q), (p.neg(), q)]);
        assert!(product.easy_part().hard_part().is_one());
        assert!(miller_product(&[]).is_one());
    }

    #[test]
    fn exponentiation_edges() {
        let g = sample();
        assert!(g.pow_public(&Scalar::ZERO).is_one());
        assert!(g.pow_public(&Scalar::one()) == g);
        assert!(g.pow_public(&Scalar::one().neg()) == g.conjugate());
        assert!(Gt::one().pow_public(&Scalar::from_u64(9)).is_one());
        let minus_x = Scalar::from_u64(crate::digits::X);
        for j in 0..4 {
            assert!(g.power_of_x(j) == g.pow_public(&minus_x.pow(&[j as u64])));
        }
        let zeta = minus_x.mul(&minus_x).neg();
        for power in 0..3 {
            assert!(g.pow_zeta(power) == g.pow_public(&zeta.pow(&[power as u64])));
        }
    }

    #[test]
    fn encoding_is_canonical_and_checked() {
        let g = sample();
        assert!(Gt::decode(&g.encode()) == Ok(g));
        assert!(Gt::decode(&Gt::one().encode()) == Ok(Gt::one()));
        assert_eq!(Gt::decode(&[0xff; 576]).err(), Some(GtError::NotCanonical));
        assert_eq!(Gt::decode(&[0; 576]).err(), Some(GtError::NotInGroup));
        let mut changed = g.encode();
        changed[575] ^= 1;
        assert_eq!(Gt::decode(&changed).err(), Some(GtError::NotInGroup));
        let miller = miller_loop(&G1Affine::generator(), &G2Affine::generator());
        assert_eq!(Gt::decode(&miller.easy_part().encode()).err(), Some(GtError::NotInGroup));
    }
}
