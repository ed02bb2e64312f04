//! F_p in eight lanes: radix 2^52, eight limbs, Montgomery form with R = 2^416.
//!
//! The 35 bits between p and R are spent on laziness. An [`Fp`] is *normalised* when its limbs lie in [0, 2^52), which
//! products need; sums and differences leave limbs signed and are normalised when they become factors. A [`Wide`] is an
//! unreduced product or a signed sum of such: up to 2^20·p² in absolute value it reduces into (p − ε, 2p + ε).

use super::vector::{
    LANES, MASK, Vector, add, and, carry, equal, high, known, lanes, load, low, max, multiply, negative,
    require, select, splat, store, sub, transpose, weakly_reduced, zero,
};

pub(super) const LIMBS: usize = 8;

/// p in 64-bit limbs.
pub(super) const MODULUS: [u64; 6] = [
    0xb9fe_ffff_ffff_aaab,
    0x1eab_fffe_b153_ffff,
    0x6730_d2a0_f6b0_f624,
    0x6477_4b84_f385_12bf,
    0x4b1b_a7b6_434b_acd7,
    0x1a01_11ea_397f_e69a,
];
pub(super) const P: [u64; LIMBS] = to_limbs52(&MODULUS);
/// Multiples of p as Montgomery factors: 2^448 brings `blst`'s form (R = 2^384) into this one, 2^384 back.
const FROM_BLST: [u64; LIMBS] = power_of_two(448);
const TO_BLST: [u64; LIMBS] = power_of_two(384);
/// 2^832 brings plain integers into Montgomery form.
pub(super) const FROM_PLAIN: [u64; LIMBS] = power_of_two(832);
/// 1 in Montgomery form.
pub(super) const ONE: [u64; LIMBS] = power_of_two(416);
/// −1/p modulo 2^52.
pub(super) const MINUS_P_INVERSE: u64 = minus_inverse(P[0]);
/// ⌊2^52/(P[7] + 1)⌋: turns a top limb into a quotient estimate that is never too large.
pub(super) const TOP_RECIPROCAL: u64 = (1 << 52) / (P[LIMBS - 1] + 1);

/// Six 64-bit limbs as eight of 52 bits.
pub(crate) const fn to_limbs52(limbs: &[u64; 6]) -> [u64; LIMBS] {
    let mut out = [0; LIMBS];
    let mut i = 0;
    while i < LIMBS {
        let (word, shift) = (52 * i / 64, 52 * i % 64);
        let mut limb = if word < 6 { limbs[word] >> shift } else { 0 };
        if shift > 12 && word + 1 < 6 {
            limb |= limbs[word + 1] << (64 - shift);
        }
        out[i] = limb & MASK;
        i += 1;
    }
    out
}

/// Inverse of [`to_limbs52`] for values below 2^384.
pub(crate) const fn to_limbs64(limbs: &[u64; LIMBS]) -> [u64; 6] {
    let mut out = [0; 6];
    let mut i = 0;
    while i < 6 {
        let (limb, shift) = (64 * i / 52, 64 * i % 52);
        out[i] = limbs[limb] >> shift | limbs[limb + 1] << (52 - shift);
        if 104 - shift < 64 {
            out[i] |= limbs[limb + 2] << (104 - shift);
        }
        i += 1;
    }
    out
}

pub(super) const fn times(value: &[u64; LIMBS], factor: u64) -> [u64; LIMBS] {
    let mut out = [0; LIMBS];
    let (mut carry, mut i) = (0, 0);
    while i < LIMBS {
        let product = value[i] as u128 * factor as u128 + carry;
        out[i] = product as u64 & MASK;
        carry = product >> 52;
        i += 1;
    }
    out
}

/// 2^exponent mod p.
const fn power_of_two(exponent: u32) -> [u64; LIMBS] {
    let mut out = [1, 0, 0, 0, 0, 0, 0, 0];
    let mut i = 0;
    while i < exponent {
        out = reduce_once(times(&out, 2));
        i += 1;
    }
    out
}

/// value − p if that is not negative, else value.
const fn reduce_once(value: [u64; LIMBS]) -> [u64; LIMBS] {
    let mut out = [0; LIMBS];
    let (mut borrow, mut i) = (0i64, 0);
    while i < LIMBS {
        let limb = value[i] as i64 - P[i] as i64 + borrow;
        out[i] = limb as u64 & MASK;
        borrow = limb >> 52;
        i += 1;
    }
    // By a mask, for the value may be secret.
    let keep = (borrow >> 63) as u64;
    i = 0;
    while i < LIMBS {
        out[i] = value[i] & keep | out[i] & !keep;
        i += 1;
    }
    out
}

const fn minus_inverse(odd: u64) -> u64 {
    let (mut inverse, mut i) = (1u64, 0);
    while i < 6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        i += 1;
    }
    inverse.wrapping_neg() & MASK
}

/// p's top limb as bounds count in it: 2^364, of which p has a little more.
pub(super) const TOP: i64 = P[LIMBS - 1] as i64;
/// Multiples of p up to which values are normalised.
const MOST: i64 = 1 << 13;
/// Multiples of p up to which values are reduced weakly; above, a limb times the quotient would not fit a word.
pub(super) const WEAK_MOST: i64 = 2056;
/// Multiples of p up to which elements lie in memory.
pub(super) const REST: i64 = 3;

/// Eight field elements.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Fp(pub(super) [Vector; LIMBS]);

/// Eight unreduced products or signed sums of products.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Wide(pub(super) [Vector; 2 * LIMBS]);

lanes! {
    /// What limb i carries once the multiple of p that clears its low 52 bits is added: rounded up, since that
    /// addition makes the low bits 0 or 2^52. Known before the multiple is.
    #[inline]
    pub(super) fn carry_out(limb: Vector) -> Vector {
        carry(add(limb, splat(MASK)))
    }
}

/// The block for i = 0 … 7, written out.
macro_rules! unrolled {
    ($i:ident => $block:block) => {
        super::field::unrolled!(@ $i $block 0 1 2 3 4 5 6 7)
    };
    (@ $i:ident $block:block $($value:literal)*) => { $({ const $i: usize = $value; $block })* };
}
pub(super) use unrolled;

/// Montgomery reduction of sixteen limbs: value/R mod p, normalised, in (p − ε, 2p + ε). A macro, because the compiler
/// would not inline a function of this size and a call would move all limbs through memory; unrolled, because as a loop
/// its limbs would be spilled.
macro_rules! reduce_limbs {
    ($limbs:expr) => {{
        use super::field::{Fp, LIMBS, MINUS_P_INVERSE, P, carry_out};
        use super::vector::{add, high, low, modular, splat, zero};
        let mut t = $limbs;
        super::field::unrolled!(I => {
                let q = modular(t[I], splat(MINUS_P_INVERSE));
                t[I + 1] = add(t[I + 1], carry_out(t[I]));
                let first = high(zero(), q, splat(P[0]));
                t[I + 1] = add(low(t[I + 1], q, splat(P[1])), first);
                for j in 2..LIMBS {
                    t[I + j] = low(t[I + j], q, splat(P[j]));
                    t[I + j] = high(t[I + j], q, splat(P[j - 1]));
                }
                t[I + LIMBS] = high(t[I + LIMBS], q, splat(P[LIMBS - 1]));
        });
        let mut out = [zero(); LIMBS];
        for i in 0..LIMBS {
            out[i] = add(t[LIMBS + i], splat(P[i]));
        }
        Fp(out).normalise()
    }};
}
pub(super) use reduce_limbs;

lanes! {
impl Fp {
    #[inline]
    pub(crate) fn zero() -> Self {
        Self([zero(); LIMBS])
    }

    /// The same element in every lane; limbs in Montgomery form.
    #[inline]
    pub(crate) fn splat(limbs: &[u64; LIMBS]) -> Self {
        let mut out = Self::zero();
        for i in 0..LIMBS {
            out.0[i] = splat(limbs[i]);
        }
        out
    }

    /// Carries: limbs into [0, 2^52), of values from 0 to [`MOST`]·p.
    #[inline]
    pub(crate) fn normalise(self) -> Self {
        let out = self.carried();
        require("a value to normalise", out.0[LIMBS - 1], 0, MOST * TOP);
        out
    }

    /// Carries: limbs into [0, 2^52) but for the highest one, which has the value's sign.
    #[inline]
    pub(super) fn carried(mut self) -> Self {
        let mask = splat(MASK);
        for i in 0..LIMBS - 1 {
            let carry = carry(self.0[i]);
            self.0[i] = and(self.0[i], mask);
            self.0[i + 1] = add(self.0[i + 1], carry);
        }
        self
    }

    /// Sum, not normalised.
    #[inline]
    pub(crate) fn add(&self, other: &Self) -> Self {
        let mut out = *self;
        for i in 0..LIMBS {
            out.0[i] = add(out.0[i], other.0[i]);
        }
        out
    }

    /// Difference, signed, not normalised.
    #[inline]
    pub(crate) fn sub(&self, other: &Self) -> Self {
        let mut out = *self;
        for i in 0..LIMBS {
            out.0[i] = sub(out.0[i], other.0[i]);
        }
        out
    }

    /// self + factor·p, not normalised: positive again after a difference.
    #[inline]
    pub(crate) fn lift<const FACTOR: u64>(mut self) -> Self {
        let lift = const { times(&P, FACTOR) };
        for i in 0..LIMBS {
            self.0[i] = add(self.0[i], splat(lift[i]));
        }
        self
    }

    /// Sum, normalised.
    #[inline]
    pub(crate) fn add_n(&self, other: &Self) -> Self {
        self.add(other).normalise()
    }

    /// Difference + 1024·p, normalised; `other` below 1024·p, or by less than `self` above that.
    #[inline]
    pub(crate) fn sub_n(&self, other: &Self) -> Self {
        self.sub(other).lift::<1024>().normalise()
    }

    /// From [0, [`WEAK_MOST`]·p], limbs signed, to [0, 1.02·p), normalised.
    #[inline]
    pub(crate) fn weak(self) -> Self {
        require("a value to reduce weakly", self.0[LIMBS - 1], 0, WEAK_MOST * TOP);
        // Limbs below the top one that are signed take less than 64 from it.
        let top = max(sub(self.0[LIMBS - 1], splat(64)), zero());
        let quotient = high(zero(), top, splat(TOP_RECIPROCAL));
        let mut out = self;
        for i in 0..LIMBS {
            out.0[i] = sub(self.0[i], multiply(quotient, splat(P[i])));
        }
        let out = Self(weakly_reduced(&self.0, out.carried().0));
        require("a value reduced weakly", out.0[LIMBS - 1], 0, TOP + TOP / 50);
        out
    }

    /// −self for self in [0, 1000·p], normalised and weakly reduced.
    #[inline]
    pub(crate) fn neg(&self) -> Self {
        Self::zero().sub(self).lift::<1024>().weak()
    }

    /// `self` where the mask has a 1, `other` elsewhere.
    #[inline]
    pub(crate) fn select(&self, other: &Self, mask: u8) -> Self {
        let mut out = *other;
        for i in 0..LIMBS {
            out.0[i] = select(mask, self.0[i], other.0[i]);
        }
        out
    }

    /// The product without reduction; both factors normalised.
    #[inline]
    pub(crate) fn wide(&self, other: &Self) -> Wide {
        let mut t = [zero(); 2 * LIMBS];
        for i in 0..LIMBS {
            for j in 0..LIMBS {
                t[i + j] = low(t[i + j], self.0[j], other.0[i]);
            }
            for j in 0..LIMBS {
                t[i + j + 1] = high(t[i + j + 1], self.0[j], other.0[i]);
            }
        }
        Wide(t)
    }

    /// The Montgomery product; both factors normalised.
    #[inline(never)]
    pub(crate) fn mul(&self, other: &Self) -> Self {
        reduce_limbs!(self.wide(other).0)
    }

    /// The Montgomery square, with little more than half of a product's partial products.
    #[inline(never)]
    pub(crate) fn square(&self) -> Self {
        let mut t = [zero(); 2 * LIMBS];
        for i in 0..LIMBS {
            for j in i + 1..LIMBS {
                t[i + j] = low(t[i + j], self.0[i], self.0[j]);
            }
            for j in i + 1..LIMBS {
                t[i + j + 1] = high(t[i + j + 1], self.0[i], self.0[j]);
            }
        }
        for limb in &mut t {
            *limb = add(*limb, *limb);
        }
        for i in 0..LIMBS {
            t[2 * i] = low(t[2 * i], self.0[i], self.0[i]);
            t[2 * i + 1] = high(t[2 * i + 1], self.0[i], self.0[i]);
        }
        reduce_limbs!(t)
    }

    /// The negative where the mask has a 1; self below 4·p, as is the result, normalised.
    #[inline]
    pub(crate) fn negate_lanes(&self, mask: u8) -> Self {
        Self::zero().sub(self).lift::<4>().normalise().select(self, mask)
    }
}
}

/// One element at rest: eight limbs in [0, 2^52), in Montgomery form.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Packed(pub(crate) [u64; LIMBS]);

impl Packed {
    pub(crate) const ONE: Self = Self(ONE);
}

lanes! {
impl Fp {
    /// Gathers one element into each lane; up to [`REST`]·p, as whatever is at rest.
    #[inline]
    pub(crate) fn gather(elements: [&Packed; LANES]) -> Self {
        let mut out = Self(transpose(elements.map(|element| load(&element.0))));
        for i in 0..LIMBS {
            let most = if i == LIMBS - 1 { REST * TOP } else { MASK as i64 };
            out.0[i] = known("a limb at rest", out.0[i], 0, most);
        }
        out
    }

    /// Each lane as an element at rest; normalised.
    #[inline]
    pub(crate) fn scatter(&self) -> [Packed; LANES] {
        for i in 0..LIMBS {
            let most = if i == LIMBS - 1 { REST * TOP } else { MASK as i64 };
            require("a limb to put to rest", self.0[i], 0, most);
        }
        transpose(self.0).map(|row| Packed(store(row)))
    }

    /// From `blst`'s limbs (Montgomery form with R = 2^384).
    #[inline]
    pub(crate) fn from_blst(elements: [&[u64; 6]; LANES]) -> Self {
        let packed = elements.map(|limbs| Packed(to_limbs52(limbs)));
        Self::gather(packed.each_ref()).mul(&Self::splat(&FROM_BLST))
    }

    /// To `blst`'s limbs, below p.
    #[inline]
    pub(crate) fn to_blst(self) -> [[u64; 6]; LANES] {
        self.mul(&Self::splat(&TO_BLST)).canonical().scatter().map(|packed| to_limbs64(&packed.0))
    }

    /// The residue below p of a product.
    #[inline]
    pub(super) fn canonical(self) -> Self {
        self.require_product();
        // In (p − ε, 2p + ε): at most two subtractions.
        self.reduced_once().reduced_once()
    }

    /// self − p where that is not negative.
    #[inline]
    fn reduced_once(self) -> Self {
        let difference = self.sub(&Self::splat(&P)).carried();
        let mut out = self.select(&difference, negative(difference.0[LIMBS - 1]));
        let top = out.0[LIMBS - 1];
        out.0[LIMBS - 1] = known("what is not negative, or was chosen since it is not", top, 0, 2 * TOP);
        out
    }

    /// Above 0 and below 3·p: what comparing with p and 2·p, or subtracting p twice, decides.
    #[inline]
    fn require_product(&self) {
        require("a product", self.0[LIMBS - 1], 1, 3 * TOP - 1);
    }

    /// Lanes that are 0 modulo p, of a product (p − ε ≤ self ≤ 2p + ε).
    #[inline]
    pub(crate) fn zero_lanes(&self) -> u8 {
        self.require_product();
        let (mut once, mut twice) = (0xff, 0xff);
        for i in 0..LIMBS {
            once &= equal(self.0[i], splat(P[i]));
            twice &= equal(self.0[i], splat(const { times(&P, 2) }[i]));
        }
        once | twice
    }
}
}
