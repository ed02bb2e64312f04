//! Splitting scalars in base |x|, x = −0xd201000000010000 the curve parameter.
//!
//! p ≡ x (mod r), so in GT the p-power Frobenius is exponentiation by x, and in G1 an endomorphism multiplies by
//! x². A 255-bit scalar thus becomes four digits of 64 bits for GT and two halves of 128 bits for G1.

use crate::curve::Scalar;

/// |x|. Its top bit is set, which the division below relies on.
pub(crate) const X: u64 = 0xd201_0000_0001_0000;

/// ⌊(2^128 − 1)/X⌋ − 2^64.
const X_RECIPROCAL: u64 = (u128::MAX / X as u128 - (1 << 64)) as u64;

/// Divides (high·2^64 + low) by X, high < X, in constant time.
///
/// Möller and Granlund, "Improved division by invariant integers", algorithm 4, with masks for its two corrections.
fn divide_by_x(high: u64, low: u64) -> (u64, u64) {
    let product = u128::from(X_RECIPROCAL) * u128::from(high) + ((u128::from(high) << 64) | u128::from(low));
    let (estimate, fraction) = ((product >> 64) as u64, product as u64);
    let mut quotient = estimate.wrapping_add(1);
    let mut remainder = low.wrapping_sub(quotient.wrapping_mul(X));
    let too_big = less_mask(fraction, remainder);
    quotient = quotient.wrapping_add(too_big);
    remainder = remainder.wrapping_add(too_big & X);
    let too_small = !less_mask(remainder, X);
    quotient = quotient.wrapping_sub(too_small);
    remainder = remainder.wrapping_sub(too_small & X);
    (quotient, remainder)
}

/// All ones if a < b, else zero, without a branch.
fn less_mask(a: u64, b: u64) -> u64 {
    (u128::from(a).wrapping_sub(u128::from(b)) >> 64) as u64
}

/// k = d₀ + d₁·|x| + d₂·|x|² + d₃·|x|³ with every digit below |x|; constant time.
pub(crate) fn base_x(k: &Scalar) -> [u64; 4] {
    let mut limbs = k.to_limbs();
    std::array::from_fn(|_| {
        let mut remainder = 0;
        for limb in limbs.iter_mut().rev() {
            (*limb, remainder) = divide_by_x(remainder, *limb);
        }
        remainder
    })
}

/// k = k₁ + k₂·x², both below x² < 2^128.
pub(crate) fn glv_halves(k: &Scalar) -> (u128, u128) {
    let d = base_x(k);
    let half = |low: u64, high: u64| u128::from(low) + u128::from(high) * u128::from(X);
    (half(d[0], d[1]), half(d[2], d[3]))
}

/// Signed digits of a number, each 0 or odd and below 2^(w−1) in absolute value, at most one in any w consecutive
/// positions non-zero; least significant first.
pub(crate) struct Wnaf<const N: usize> {
    digits: [i8; N],
    length: usize,
}

impl<const N: usize> Wnaf<N> {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// 0 past the end.
    pub(crate) fn get(&self, position: usize) -> i8 {
        self.digits.get(position).copied().unwrap_or(0)
    }

    fn recode(mut k: u128, window_bits: u32) -> Self {
        let (mut digits, mut length) = ([0i8; N], 0);
        let modulus = 1i16 << window_bits;
        while k > 0 {
            if k & 1 == 1 {
                let low = (k & ((1 << window_bits) - 1)) as i16;
                let digit = if low >= modulus / 2 { low - modulus } else { low };
                digits[length] = digit as i8;
                k = k.wrapping_add_signed(-i128::from(digit));
            }
            length += 1;
            k >>= 1;
        }
        Self { digits, length }
    }
}

/// wNAF of a 64-bit digit.
pub(crate) fn wnaf_u64(k: u64, window_bits: u32) -> Wnaf<66> {
    Wnaf::recode(u128::from(k), window_bits)
}

/// wNAF of a number below x² (so that adding a digit cannot overflow).
pub(crate) fn wnaf_u128(k: u128, window_bits: u32) -> Wnaf<130> {
    debug_assert!(k < u128::from(X) * u128::from(X));
    Wnaf::recode(k, window_bits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recombine(digits: &[Scalar], base: &Scalar) -> Scalar {
        digits.iter().rev().fold(Scalar::ZERO, |sum, digit| sum.mul(base).add(digit))
    }

    fn check(k: Scalar) {
        let x = Scalar::from_u64(X);
        let digits = base_x(&k);
        assert!(digits.iter().all(|d| *d < X));
        assert!(recombine(&digits.map(Scalar::from_u64), &x) == k);
        let (low, high) = glv_halves(&k);
        let wide = |v: u128| Scalar::reduce(&v.to_be_bytes());
        assert!(recombine(&[wide(low), wide(high)], &x.mul(&x)) == k);
        let two = Scalar::from_u64(2);
        let signed = |d: i8| {
            let magnitude = Scalar::from_u64(u64::from(d.unsigned_abs()));
            if d < 0 { magnitude.neg() } else { magnitude }
        };
        for window_bits in 2..=7 {
            let naf = wnaf_u128(low, window_bits);
            let digits: Vec<_> = (0..naf.len()).map(|i| signed(naf.get(i))).collect();
            assert!(recombine(&digits, &two) == wide(low));
            let naf = wnaf_u64(digits.len() as u64 ^ u64::MAX, window_bits);
            let value = (0..naf.len()).rev().fold(0i128, |sum, i| 2 * sum + i128::from(naf.get(i)));
            assert_eq!(value, i128::from(digits.len() as u64 ^ u64::MAX));
        }
    }

    #[test]
    fn edges() {
        let x = Scalar::from_u64(X);
        for k in [
            Scalar::ZERO,
            Scalar::one(),
            Scalar::one().neg(),
            x,
            x.mul(&x),
            x.sub(&Scalar::one()),
            x.mul(&x).neg(),
        ] {
            check(k);
        }
    }

    proptest! {
        #[test]
        fn division_is_exact(high in 0..X, low: u64) {
            let (quotient, remainder) = divide_by_x(high, low);
            prop_assert!(remainder < X);
            prop_assert_eq!(u128::from(quotient) * u128::from(X) + u128::from(remainder), u128::from(high) << 64 | u128::from(low));
        }

        #[test]
        fn digits_recombine(bytes: [u8; 32]) {
            check(Scalar::reduce(&bytes));
        }
    }
}
