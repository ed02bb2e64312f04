//! Scalars modulo the group order: what a signature says of its key, and digits to add by.

use k256::{
    FieldBytes, Scalar,
    elliptic_curve::{ff::PrimeField, ops::Reduce, scalar::IsHigh},
};

use crate::Signed;

/// Windows of 4 bits of half a scalar, with a carry out of the last.
pub(super) const HALF_WINDOWS: usize = 33;
/// Windows of 8 bits of a scalar below half of the order.
pub(super) const WINDOWS: usize = 32;

/// Digits by which to add, the lowest first.
#[derive(Clone, Copy)]
pub(super) struct Multiplier {
    /// Of R, between −8 and 8.
    pub(super) plain: [i8; HALF_WINDOWS],
    /// Of λ·R, between −8 and 8.
    pub(super) turned: [i8; HALF_WINDOWS],
    /// Of the generator, between −128 and 128.
    pub(super) generator: [i16; WINDOWS],
}

impl Multiplier {
    /// By which nothing is added.
    pub(super) const NONE: Self =
        Self { plain: [0; HALF_WINDOWS], turned: [0; HALF_WINDOWS], generator: [0; WINDOWS] };
}

fn scalar(bytes: &[u8]) -> Option<Scalar> {
    let bytes: [u8; 32] = bytes.try_into().ok()?;
    Scalar::from_repr(FieldBytes::from(bytes)).into_option().filter(|scalar| *scalar != Scalar::ZERO)
}

/// The key is −(z/r)·G + (s/r)·R. `None` where r or s is no scalar.
pub(super) fn multipliers(signed: &[Signed]) -> Vec<Option<Multiplier>> {
    let read: Vec<Option<(Scalar, Scalar)>> = signed
        .iter()
        .map(|signed| {
            let (r, s) = signed.rs.split_at(32);
            Some((scalar(r)?, scalar(s)?))
        })
        .collect();
    // One inversion for all: products of all before, then backwards.
    let mut before = Vec::with_capacity(read.len());
    let mut product = Scalar::ONE;
    for pair in &read {
        before.push(product);
        if let Some((r, _)) = pair {
            product *= r;
        }
    }
    let mut inverse = product.invert().into_option().unwrap_or(Scalar::ZERO);
    let mut out = vec![None; read.len()];
    for (((out, pair), before), signed) in out.iter_mut().zip(&read).zip(&before).zip(signed).rev() {
        let Some((r, s)) = pair else { continue };
        let of_r = inverse * before;
        inverse *= r;
        let digest = <Scalar as Reduce<FieldBytes>>::reduce(&FieldBytes::from(signed.digest));
        *out = multiplier(&-(digest * of_r), &(s * &of_r));
    }
    out
}

fn multiplier(of_generator: &Scalar, of_r: &Scalar) -> Option<Multiplier> {
    let (negative, magnitude) = signed(of_generator);
    let mut generator = [0; WINDOWS];
    let mut carry = 0;
    for (digit, byte) in generator.iter_mut().zip(magnitude) {
        let value = i16::from(byte) + carry;
        carry = i16::from(value > 128);
        *digit = sign(value - 256 * carry, negative);
    }
    // Below half of the order, so the last window carries nothing.
    let (plain, turned) = split(of_r);
    Some(Multiplier { plain: half_digits(&plain)?, turned: half_digits(&turned)?, generator })
}

fn sign<T: core::ops::Neg<Output = T>>(value: T, negative: bool) -> T {
    if negative { -value } else { value }
}

/// Whether it is nearer to the order than to zero, and how far from the nearer one, little-endian.
fn signed(scalar: &Scalar) -> (bool, [u8; 32]) {
    let negative = bool::from(scalar.is_high());
    let mut bytes: [u8; 32] = sign(*scalar, negative).to_bytes().into();
    bytes.reverse();
    (negative, bytes)
}

/// `None` where it has more than 128 bits, which no half has.
fn half_digits(half: &Scalar) -> Option<[i8; HALF_WINDOWS]> {
    let (negative, magnitude) = signed(half);
    let (low, high) = magnitude.split_at(16);
    if high.iter().any(|byte| *byte != 0) {
        return None;
    }
    let mut digits = [0; HALF_WINDOWS];
    let mut carry = 0;
    for (i, digit) in digits.iter_mut().enumerate() {
        let nibble = low.get(i / 2).map_or(0, |byte| byte >> (4 * (i % 2)) & 15);
        let value = nibble as i8 + carry;
        carry = i8::from(value > 8);
        *digit = sign(value - 16 * carry, negative);
    }
    Some(digits)
}

/// 64-bit limbs, the lowest first.
type Words = [u64; 4];

/// λ: λ·(x, y) = (β·x, y).
const LAMBDA: Words =
    [0xdf02_967c_1b23_bd72, 0x122e_22ea_2081_6678, 0xa526_1c02_8812_645a, 0x5363_ad4c_c05c_30e0];
/// The lattice's short vectors (Gallant, Lambert, Vanstone, "Faster point multiplication on elliptic curves with efficient
/// endomorphisms"), and 2^384 times the quotients by the order, as libsecp256k1 has them (`scalar_impl.h`).
const MINUS_B1: Words = [0x6f54_7fa9_0abf_e4c3, 0xe443_7ed6_010e_8828, 0, 0];
const MINUS_B2: Words =
    [0xd765_cda8_3db1_562c, 0x8a28_0ac5_0774_346d, 0xffff_ffff_ffff_fffe, 0xffff_ffff_ffff_ffff];
const G1: Words =
    [0xe893_209a_45db_b031, 0x3daa_8a14_71e8_ca7f, 0xe86c_90e4_9284_eb15, 0x3086_d221_a7d4_6bcd];
const G2: Words =
    [0x1571_b4ae_8ac4_7f71, 0x2212_08ac_9df5_06c6, 0x6f54_7fa9_0abf_e4c4, 0xe443_7ed6_010e_8828];

fn of_words(words: &Words) -> Scalar {
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.rchunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    <Scalar as Reduce<FieldBytes>>::reduce(&FieldBytes::from(bytes))
}

/// a and b of about 128 bits, either sign, with a + λ·b the scalar.
fn split(scalar: &Scalar) -> (Scalar, Scalar) {
    let bytes: [u8; 32] = scalar.to_bytes().into();
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.rchunks_exact(8)) {
        *word = u64::from_be_bytes(bytes.try_into().unwrap_or_default());
    }
    let first = of_words(&quotient(&words, &G1)) * of_words(&MINUS_B1);
    let second = of_words(&quotient(&words, &G2)) * of_words(&MINUS_B2);
    let turned = first + second;
    (scalar - &(turned * of_words(&LAMBDA)), turned)
}

/// a·b / 2^384, rounded.
fn quotient(a: &Words, b: &Words) -> Words {
    let mut product = [0u64; 8];
    for (i, a) in a.iter().enumerate() {
        let mut carry = 0u128;
        for (place, b) in product.iter_mut().skip(i).zip(b) {
            carry += u128::from(*place) + u128::from(*a) * u128::from(*b);
            *place = carry as u64;
            carry >>= 64;
        }
        if let Some(place) = product.get_mut(i + 4) {
            *place = carry as u64;
        }
    }
    let [.., half, low, high] = product;
    let (low, carry) = low.overflowing_add(half >> 63);
    [low, high + u64::from(carry), 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use k256::elliptic_curve::ff::Field;
    use rand_chacha::{
        ChaCha20Rng,
        rand_core::{Rng, SeedableRng},
    };

    fn of_digits<T: Into<i64> + Copy>(digits: &[T], bits: u32) -> Scalar {
        digits.iter().rev().fold(Scalar::ZERO, |sum, digit| {
            let digit: i64 = (*digit).into();
            let magnitude = Scalar::from(digit.unsigned_abs());
            sum * Scalar::from(1u64 << bits) + if digit < 0 { -magnitude } else { magnitude }
        })
    }

    fn check(of_generator: &Scalar, of_r: &Scalar) {
        let Multiplier { plain, turned, generator } =
            multiplier(of_generator, of_r).expect("halves are short");
        assert!(plain.iter().chain(&turned).all(|digit| (-8..=8).contains(digit)));
        assert!(generator.iter().all(|digit| (-128..=128).contains(digit)));
        assert_eq!(of_digits(&generator, 8), *of_generator);
        assert_eq!(of_digits(&plain, 4) + of_digits(&turned, 4) * of_words(&LAMBDA), *of_r);
    }

    #[test]
    fn digits_add_up_to_the_scalars() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let mut drawn = || {
            let mut bytes = [0; 32];
            rng.fill_bytes(&mut bytes);
            <Scalar as Reduce<FieldBytes>>::reduce(&FieldBytes::from(bytes))
        };
        for _ in 0..2_000 {
            check(&drawn(), &drawn());
        }
        let half = Scalar::from(2u64).invert().into_option().expect("two is invertible");
        let lambda = of_words(&LAMBDA);
        let mut edges =
            vec![Scalar::ZERO, Scalar::ONE, half, lambda, of_words(&MINUS_B1), of_words(&MINUS_B2)];
        edges.extend((0..256).map(|bits| Scalar::from(2u64).pow_vartime([bits])));
        for edge in edges.clone() {
            edges.extend([-edge, edge - Scalar::ONE, edge + Scalar::ONE, edge * lambda, edge * half]);
        }
        for edge in &edges {
            check(edge, edge);
        }
    }
}
