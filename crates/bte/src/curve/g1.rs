//! G1: where ciphertext headers, shares and releases live.

use std::sync::OnceLock;

use blst::{BLST_ERROR, blst_fp, blst_p1, blst_p1_affine};
use zeroize::Zeroize;

use super::fp::{or_masked, sub};
use super::{PointError, Scalar, point_error};
use crate::digits::{glv_halves, wnaf_u128};

/// A point in Jacobian coordinates.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct G1(pub(super) blst_p1);

/// A point in affine coordinates; the identity is (0, 0).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct G1Affine(pub(super) blst_p1_affine);

/// Signed window of variable-time multiplication: digits are odd and below 2^(W−1) in absolute value.
const WINDOW_BITS: u32 = 5;
const ODD_MULTIPLES: usize = 1 << (WINDOW_BITS - 2);

impl Zeroize for G1 {
    fn zeroize(&mut self) {
        for coordinate in [&mut self.0.x, &mut self.0.y, &mut self.0.z] {
            coordinate.l.zeroize();
        }
    }
}

impl Zeroize for G1Affine {
    fn zeroize(&mut self) {
        self.0.x.l.zeroize();
        self.0.y.l.zeroize();
    }
}

impl G1 {
    pub(crate) fn generator() -> Self {
        // SAFETY: the function returns the address of a constant that lives as long as the program.
        Self(unsafe { *blst::blst_p1_generator() })
    }

    pub(crate) fn is_identity(&self) -> bool {
        // SAFETY: the argument is an initialised point.
        unsafe { blst::blst_p1_is_inf(&self.0) }
    }

    /// Complete addition: right for equal, opposite and identity operands, too.
    pub(crate) fn add(&self, other: &Self) -> Self {
        let mut out = blst_p1::default();
        // SAFETY: all three are initialised points.
        unsafe { blst::blst_p1_add_or_double(&mut out, &self.0, &other.0) };
        Self(out)
    }

    /// Complete addition of an affine point.
    pub(crate) fn add_affine(&self, other: &G1Affine) -> Self {
        let mut out = blst_p1::default();
        // SAFETY: all three are initialised points.
        unsafe { blst::blst_p1_add_or_double_affine(&mut out, &self.0, &other.0) };
        Self(out)
    }

    pub(crate) fn double(&self) -> Self {
        let mut out = blst_p1::default();
        // SAFETY: both are initialised points.
        unsafe { blst::blst_p1_double(&mut out, &self.0) };
        Self(out)
    }

    pub(crate) fn neg(&self) -> Self {
        let mut out = *self;
        // SAFETY: the argument is an initialised point, changed in place.
        unsafe { blst::blst_p1_cneg(&mut out.0, true) };
        out
    }

    pub(crate) fn sub(&self, other: &Self) -> Self {
        self.add(&other.neg())
    }

    /// [x²]·self = (βx, −y), x the curve parameter: one field product. Only for points of the subgroup.
    pub(crate) fn times_x_squared(&self) -> Self {
        let mut out = *self;
        // SAFETY: all are initialised field elements; input and output may coincide.
        unsafe { blst::blst_fp_mul(&mut out.0.x, &self.0.x, beta()) };
        out.neg()
    }

    /// [ζ^power]·self, ζ = −x² a primitive cube root of unity in F_r: (βx, y) for power 1; power at most 2. One field
    /// product. Only for points of the subgroup.
    pub(crate) fn times_zeta(&self, power: usize) -> Self {
        let mut out = *self;
        if let Some(factor) = beta_power(power) {
            // SAFETY: all are initialised field elements; input and output may coincide.
            unsafe { blst::blst_fp_mul(&mut out.0.x, &self.0.x, factor) };
        }
        out
    }

    /// [k]·self in constant time (`blst` uses masked tables and the endomorphism). For secret k.
    pub(crate) fn mul_secret(&self, k: &Scalar) -> Self {
        let scalar = k.to_blst();
        let mut out = blst_p1::default();
        // SAFETY: the scalar has the 32 bytes that 255 bits span.
        unsafe { blst::blst_p1_mult(&mut out, &self.0, scalar.b.as_ptr(), 255) };
        Self(out)
    }

    /// [k]·self in variable time: k = k1 + k2·x², both below 2^128, sharing the doublings.
    pub(crate) fn mul_public(&self, k: &Scalar) -> Self {
        let (low, high) = glv_halves(k);
        let digits = [wnaf_u128(low, WINDOW_BITS), wnaf_u128(high, WINDOW_BITS)];
        let mut tables = [[*self; ODD_MULTIPLES]; 2];
        let twice = self.double();
        for i in 1..ODD_MULTIPLES {
            tables[0][i] = tables[0][i - 1].add(&twice);
        }
        tables[1] = tables[0].map(|point| point.times_x_squared());

        let length = digits.iter().map(|d| d.len()).max().unwrap_or(0);
        let mut sum = Self::default();
        for position in (0..length).rev() {
            sum = sum.double();
            for (digits, table) in digits.iter().zip(&tables) {
                let digit = digits.get(position);
                if digit != 0 {
                    let multiple = table[usize::from(digit.unsigned_abs() / 2)];
                    sum = sum.add(&if digit < 0 { multiple.neg() } else { multiple });
                }
            }
        }
        sum
    }

    pub(crate) fn to_affine(self) -> G1Affine {
        let mut out = blst_p1_affine::default();
        // SAFETY: both are initialised points.
        unsafe { blst::blst_p1_to_affine(&mut out, &self.0) };
        G1Affine(out)
    }

    /// Converts many points with one field inversion per thousand or so; identities are allowed.
    pub(crate) fn to_affine_batch(points: &[Self]) -> Vec<G1Affine> {
        let pointers: Vec<*const blst_p1> = points.iter().map(|p| &p.0 as *const _).collect();
        let mut out = vec![blst_p1_affine::default(); points.len()];
        if !points.is_empty() {
            // SAFETY: there are `points.len()` valid input pointers and as many output elements.
            unsafe { blst::blst_p1s_to_affine(out.as_mut_ptr(), pointers.as_ptr(), points.len()) };
        }
        out.into_iter().map(G1Affine).collect()
    }

    /// Σ scalarᵢ·pointᵢ in variable time; scalars are little-endian, N bytes each (16 for batch weights).
    pub(crate) fn multi_scalar<const N: usize>(points: &[G1Affine], scalars: &[[u8; N]]) -> Self {
        assert_eq!(points.len(), scalars.len(), "one scalar per point");
        let (mut point_refs, mut scalar_refs) = (Vec::new(), Vec::new());
        for (point, scalar) in points.iter().zip(scalars) {
            if !point.is_identity() {
                point_refs.push(&point.0 as *const blst_p1_affine);
                scalar_refs.push(scalar.as_ptr());
            }
        }
        let count = point_refs.len();
        let mut out = blst_p1::default();
        if count > 0 {
            // SAFETY: pure function of its argument.
            let scratch_bytes = unsafe { blst::blst_p1s_mult_pippenger_scratch_sizeof(count) };
            let mut scratch = vec![0u64; scratch_bytes.div_ceil(8)];
            // SAFETY: `count` valid pointers each to points and to N-byte scalars, and the scratch space asked for.
            unsafe {
                blst::blst_p1s_mult_pippenger(
                    &mut out,
                    point_refs.as_ptr(),
                    count,
                    scalar_refs.as_ptr(),
                    (8 * N).min(255),
                    scratch.as_mut_ptr(),
                );
            }
        }
        Self(out)
    }
}

impl From<&G1Affine> for G1 {
    fn from(point: &G1Affine) -> Self {
        let mut out = blst_p1::default();
        // SAFETY: both are initialised points.
        unsafe { blst::blst_p1_from_affine(&mut out, &point.0) };
        Self(out)
    }
}

impl G1Affine {
    pub(crate) fn generator() -> Self {
        // SAFETY: the function returns the address of a constant that lives as long as the program.
        Self(unsafe { *blst::blst_p1_affine_generator() })
    }

    pub(crate) fn is_identity(&self) -> bool {
        // SAFETY: the argument is an initialised point.
        unsafe { blst::blst_p1_affine_is_inf(&self.0) }
    }

    pub(crate) fn neg(&self) -> Self {
        let mut out = *self;
        // SAFETY: the argument is an initialised field element; input and output may coincide.
        unsafe { blst::blst_fp_cneg(&mut out.0.y, &self.0.y, !self.is_identity()) };
        out
    }

    /// All bits zero, which is the identity: the start of a masked table scan.
    pub(crate) const IDENTITY: Self =
        Self(blst_p1_affine { x: blst_fp { l: [0; 6] }, y: blst_fp { l: [0; 6] } });

    /// Adds `other` bit by bit where `mask` is all ones; touches the same memory whatever the mask.
    pub(crate) fn or_masked(&mut self, other: &Self, mask: u64) {
        or_masked(&mut self.0.x, &other.0.x, mask);
        or_masked(&mut self.0.y, &other.0.y, mask);
    }

    /// −self where `mask` is all ones, self where it is zero; constant time.
    pub(crate) fn negated_where(&self, mask: u64) -> Self {
        let mut y = blst_fp::default();
        or_masked(&mut y, &sub(&blst_fp::default(), &self.0.y), mask);
        or_masked(&mut y, &self.0.y, !mask);
        Self(blst_p1_affine { x: self.0.x, y })
    }

    /// Decodes a canonical compressed point of the subgroup; the identity is accepted.
    pub(crate) fn decode(bytes: &[u8; 48]) -> Result<Self, PointError> {
        let mut point = blst_p1_affine::default();
        // SAFETY: `bytes` has the 48 bytes that the function reads.
        match unsafe { blst::blst_p1_uncompress(&mut point, bytes.as_ptr()) } {
            BLST_ERROR::BLST_SUCCESS => {}
            code => return Err(point_error(code)),
        }
        // SAFETY: `point` is on the curve.
        if !unsafe { blst::blst_p1_affine_in_g1(&point) } {
            return Err(PointError::NotInSubgroup);
        }
        Ok(Self(point))
    }

    pub(crate) fn encode(&self) -> [u8; 48] {
        let mut out = [0; 48];
        // SAFETY: `out` has the 48 bytes that the function writes.
        unsafe { blst::blst_p1_affine_compress(out.as_mut_ptr(), &self.0) };
        out
    }
}

/// The cube root of unity in F_p with [x²]P = (βx, −y) on G1.
pub(super) fn beta() -> &'static blst_fp {
    const BETA: [u8; 48] = *b"\
        \x00\x00\x00\x00\x00\x00\x00\x00\x5f\x19\x67\x2f\xdf\x76\xce\x51\
        \xba\x69\xc6\x07\x6a\x0f\x77\xea\xdd\xb3\xa9\x3b\xe6\xf8\x96\x88\
        \xde\x17\xd8\x13\x62\x0a\x00\x02\x2e\x01\xff\xff\xff\xfe\xff\xfe";
    static CELL: OnceLock<blst_fp> = OnceLock::new();
    CELL.get_or_init(|| {
        let mut out = blst_fp::default();
        // SAFETY: the constant has the 48 bytes that the function reads.
        unsafe { blst::blst_fp_from_bendian(&mut out, BETA.as_ptr()) };
        out
    })
}

/// β^power; `None` for 1.
pub(super) fn beta_power(power: usize) -> Option<&'static blst_fp> {
    static SQUARE: OnceLock<blst_fp> = OnceLock::new();
    match power {
        0 => None,
        1 => Some(beta()),
        2 => Some(SQUARE.get_or_init(|| {
            let mut out = blst_fp::default();
            // SAFETY: both are initialised field elements.
            unsafe { blst::blst_fp_sqr(&mut out, beta()) };
            out
        })),
        _ => panic!("β has order 3"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endomorphism_is_multiplication_by_x_squared() {
        let x = Scalar::from_u64(crate::digits::X);
        let point = G1::generator().mul_secret(&Scalar::from_u64(77));
        assert!(point.times_x_squared() == point.mul_secret(&x.mul(&x)));
        for power in 0..3 {
            let zeta_power = x.mul(&x).neg().pow(&[power as u64]);
            assert!(point.times_zeta(power) == point.mul_secret(&zeta_power));
            assert!(G1::default().times_zeta(power).is_identity());
        }
    }

    #[test]
    fn both_multiplications_agree() {
        let point = G1::generator().mul_secret(&Scalar::from_u64(5));
        let minus_one = Scalar::one().neg();
        for k in
            [Scalar::ZERO, Scalar::one(), minus_one, Scalar::reduce(&[0xa7; 64]), Scalar::from_u64(u64::MAX)]
        {
            assert!(point.mul_public(&k) == point.mul_secret(&k));
        }
        assert!(G1::default().mul_public(&minus_one).is_identity());
    }

    #[test]
    fn multi_scalar_handles_identities_duplicates_and_opposites() {
        let g = G1Affine::generator();
        let identity = G1::default().to_affine();
        let weight = |v: u8| std::array::from_fn(|i| if i == 0 { v } else { 0 });
        let points = [g, identity, g, g.neg()];
        let sum = G1::multi_scalar::<16>(&points, &[weight(3), weight(9), weight(3), weight(4)]);
        assert!(sum == G1::generator().double());
        let many = vec![g; 100];
        let sum = G1::multi_scalar::<32>(&many, &vec![Scalar::one().to_le_bytes(); 100]);
        assert!(sum == G1::generator().mul_secret(&Scalar::from_u64(100)));
        assert!(G1::multi_scalar::<16>(&[], &[]).is_identity());
    }

    #[test]
    fn batch_conversion_keeps_identities() {
        let g = G1::generator();
        let points = [G1::default(), g, g.double(), G1::default()];
        let affine = G1::to_affine_batch(&points);
        assert!(points.iter().zip(&affine).all(|(p, a)| G1::from(a) == *p));
        assert!(affine[0].is_identity() && affine[0].neg().is_identity());
    }
}
