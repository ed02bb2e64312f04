//! F_p of secp256k1 in eight lanes, p = 2^256 − 2^32 − 977: radix 2^52, five limbs.
//!
//! An [`Fp`] is ready to be a factor: its lower limbs are below 2^52, its top one below 2^49, so it is below 2·2^256 and no
//! more reduced than that. A [`Sum`] is a signed sum of up to sixteen such, which [`Sum::reduce`] makes one again.

use super::vector::{
    LANES, MASK, Vector, add, and, high, lanes, load, low, require, select, shift_left, shift_right, splat,
    store, sub, transpose, zero,
};

pub(super) const LIMBS: usize = 5;
/// 2^256 modulo p.
const TOP_FOLD: u64 = 0x1_0000_03d1;
/// 2^260 modulo p.
const FOLD: u64 = TOP_FOLD << 4;
/// Bits of the top limb below 2^256.
const TOP_BITS: u32 = 48;
const TOP_MASK: u64 = (1 << TOP_BITS) - 1;
/// p in 64-bit limbs.
const MODULUS: [u64; 4] = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];
/// A multiple of p, each limb of which is above 2^56: what makes limbs of a signed sum positive.
const LIFT: [u64; LIMBS] = [
    0x10f_fefe_fffc_2b2f,
    0x10f_ffff_ffff_ffef,
    0x10f_ffff_ffff_ffef,
    0x10f_ffff_ffff_ffef,
    0x100_ffff_ffff_ffef,
];

/// An element at rest: five limbs, as an [`Fp`] has them.
pub(super) type Limbs = [u64; LIMBS];

/// Eight field elements, each a factor.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Fp(pub(super) [Vector; LIMBS]);

/// Eight signed sums of field elements, each limb between −2^56 and 2^56.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Sum([Vector; LIMBS]);

/// 256 bits, big-endian, as limbs.
pub(super) fn from_bytes(bytes: &[u8; 32]) -> Limbs {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.rchunks_exact(8)) {
        *word = u64::from_be_bytes(bytes.try_into().unwrap_or_default());
    }
    let [a, b, c, d] = words;
    [a & MASK, (a >> 52 | b << 12) & MASK, (b >> 40 | c << 24) & MASK, (c >> 28 | d << 36) & MASK, d >> 16]
}

/// The residue below p, in 64-bit limbs, of limbs as an [`Fp`] has them.
pub(super) fn canonical(limbs: &Limbs) -> [u64; 4] {
    let [a, b, c, d, e] = *limbs;
    let mut words = [a | b << 52, b >> 12 | c << 40, c >> 24 | d << 28, d >> 36 | e << 16];
    // What lies above 2^256, folded in: a bit and what a carry leaves, so twice is enough.
    let mut above = e >> TOP_BITS;
    for _ in 0..2 {
        let mut carry = u128::from(above) * u128::from(TOP_FOLD);
        for word in &mut words {
            carry += u128::from(*word);
            *word = carry as u64;
            carry >>= 64;
        }
        above = carry as u64;
    }
    let (mut less, mut borrow) = ([0; 4], false);
    for i in 0..4 {
        let (difference, first) = words[i].overflowing_sub(MODULUS[i]);
        let (difference, second) = difference.overflowing_sub(u64::from(borrow));
        (less[i], borrow) = (difference, first | second);
    }
    if borrow { words } else { less }
}

/// 64-bit limbs, big-endian.
pub(super) fn to_bytes(words: &[u64; 4]) -> [u8; 32] {
    let mut out = [0; 32];
    for (bytes, word) in out.rchunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    out
}

lanes! {
    /// Carries from the lowest limb to the top one, which keeps its own.
    #[inline]
    fn carried(mut limbs: [Vector; LIMBS]) -> [Vector; LIMBS] {
        for i in 0..LIMBS - 1 {
            let carry = shift_right::<52>(limbs[i]);
            limbs[i] = and(limbs[i], splat(MASK));
            limbs[i + 1] = add(limbs[i + 1], carry);
        }
        limbs
    }

    /// A product's ten limbs, each below 2^57, the top one below 2^47, as an element: what lies above 2^260 is folded in,
    /// then what lies above 2^256.
    #[inline]
    fn reduce_product(mut t: [Vector; 2 * LIMBS]) -> Fp {
        for i in LIMBS..2 * LIMBS - 1 {
            let carry = shift_right::<52>(t[i]);
            t[i] = and(t[i], splat(MASK));
            t[i + 1] = add(t[i + 1], carry);
        }
        require("the top limb of a product", t[2 * LIMBS - 1], 48);
        let fold = splat(FOLD);
        let mut out = [t[0], t[1], t[2], t[3], t[4]];
        for i in 0..LIMBS {
            out[i] = low(out[i], t[LIMBS + i], fold);
        }
        for i in 0..LIMBS - 1 {
            out[i + 1] = high(out[i + 1], t[LIMBS + i], fold);
        }
        let above = high(zero(), t[2 * LIMBS - 1], fold);
        // In units of 2^256: below 2^33 · 2^4, and ten bits of the top limb.
        let top = add(shift_left::<4>(above), shift_right::<TOP_BITS>(out[LIMBS - 1]));
        require("what lies above 2^256", top, 52);
        out[LIMBS - 1] = and(out[LIMBS - 1], splat(TOP_MASK));
        out[0] = low(out[0], top, splat(TOP_FOLD));
        out[1] = high(out[1], top, splat(TOP_FOLD));
        Fp(carried(out)).checked()
    }
}

lanes! {
impl Fp {
    /// The same element in every lane.
    #[inline]
    pub(super) fn splat(limbs: &Limbs) -> Self {
        Self([splat(limbs[0]), splat(limbs[1]), splat(limbs[2]), splat(limbs[3]), splat(limbs[4])])
    }

    /// One element for each lane.
    #[inline]
    pub(super) fn gather(elements: &[Limbs; LANES]) -> Self {
        let mut rows = [zero(); LANES];
        for (row, [a, b, c, d, e]) in rows.iter_mut().zip(elements) {
            *row = load(&[*a, *b, *c, *d, *e, 0, 0, 0]);
        }
        let [a, b, c, d, e, ..] = transpose(rows);
        Self([a, b, c, d, e]).checked()
    }

    /// Each lane's residue below p.
    pub(super) fn canonical(&self) -> [[u64; 4]; LANES] {
        let [a, b, c, d, e] = self.0.map(|limb| store(limb));
        core::array::from_fn(|lane| canonical(&[a[lane], b[lane], c[lane], d[lane], e[lane]]))
    }

    #[inline]
    pub(super) fn checked(self) -> Self {
        for i in 0..LIMBS {
            require("a limb of a factor", self.0[i], if i == LIMBS - 1 { 49 } else { 52 });
        }
        self
    }

    /// The product.
    #[inline]
    pub(super) fn mul(&self, other: &Self) -> Self {
        let (a, b) = (&self.0, &other.0);
        let mut t = [zero(); 2 * LIMBS];
        for i in 0..LIMBS {
            for j in 0..LIMBS {
                t[i + j] = low(t[i + j], a[j], b[i]);
            }
            for j in 0..LIMBS {
                t[i + j + 1] = high(t[i + j + 1], a[j], b[i]);
            }
        }
        reduce_product(t)
    }

    /// The square, with little more than half of a product's partial products.
    #[inline]
    pub(super) fn square(&self) -> Self {
        let a = &self.0;
        let mut t = [zero(); 2 * LIMBS];
        for i in 0..LIMBS {
            for j in i + 1..LIMBS {
                t[i + j] = low(t[i + j], a[i], a[j]);
            }
            for j in i + 1..LIMBS {
                t[i + j + 1] = high(t[i + j + 1], a[i], a[j]);
            }
        }
        for limb in &mut t {
            *limb = add(*limb, *limb);
        }
        for i in 0..LIMBS {
            t[2 * i] = low(t[2 * i], a[i], a[i]);
            t[2 * i + 1] = high(t[2 * i + 1], a[i], a[i]);
        }
        reduce_product(t)
    }

    /// self^(2^times).
    #[inline(never)]
    pub(super) fn squared(mut self, times: u32) -> Self {
        for _ in 0..times {
            self = self.square();
        }
        self
    }

    /// self, to add to.
    #[inline]
    pub(super) fn sum(&self) -> Sum {
        Sum(self.0)
    }

    /// 2^BITS times self, up to eight times.
    #[inline]
    pub(super) fn doubled<const BITS: u32>(&self) -> Sum {
        let [a, b, c, d, e] = self.0;
        Sum([
            shift_left::<BITS>(a), shift_left::<BITS>(b), shift_left::<BITS>(c), shift_left::<BITS>(d),
            shift_left::<BITS>(e),
        ])
    }

    /// The negative where the mask has a 1.
    #[inline]
    pub(super) fn negate_lanes(&self, mask: u8) -> Self {
        let negative = Sum([zero(); LIMBS]).sub(&self.sum()).reduce();
        negative.select(self, mask)
    }

    /// self where the mask has a 1, other elsewhere.
    #[inline]
    pub(super) fn select(&self, other: &Self, mask: u8) -> Self {
        let mut out = *other;
        for i in 0..LIMBS {
            out.0[i] = select(mask, self.0[i], other.0[i]);
        }
        out
    }

    /// self^(2^n − 1) for n = 2, 22 and 223, by the chain of libsecp256k1.
    fn runs(&self) -> [Self; 3] {
        let x2 = self.square().mul(self);
        let x3 = x2.square().mul(self);
        let x6 = x3.squared(3).mul(&x3);
        let x9 = x6.squared(3).mul(&x3);
        let x11 = x9.squared(2).mul(&x2);
        let x22 = x11.squared(11).mul(&x11);
        let x44 = x22.squared(22).mul(&x22);
        let x88 = x44.squared(44).mul(&x44);
        let x176 = x88.squared(88).mul(&x88);
        let x220 = x176.squared(44).mul(&x44);
        let x223 = x220.squared(3).mul(&x3);
        [x2, x22, x223]
    }

    /// self^((p + 1)/4): a square root, where there is one.
    pub(super) fn root(&self) -> Self {
        let [x2, x22, x223] = self.runs();
        x223.squared(23).mul(&x22).squared(6).mul(&x2).squared(2)
    }

    /// self^(p − 2): the inverse, of 0 zero.
    pub(super) fn inverse(&self) -> Self {
        let [x2, x22, x223] = self.runs();
        x223.squared(23).mul(&x22).squared(5).mul(self).squared(3).mul(&x2).squared(2).mul(self)
    }
}
}

lanes! {
impl Sum {
    #[inline]
    pub(super) fn add(mut self, other: &Self) -> Self {
        for i in 0..LIMBS {
            self.0[i] = add(self.0[i], other.0[i]);
        }
        self
    }

    #[inline]
    pub(super) fn sub(mut self, other: &Self) -> Self {
        for i in 0..LIMBS {
            self.0[i] = sub(self.0[i], other.0[i]);
        }
        self
    }

    /// A factor again. Limbs are between −2^56 and 2^56 before, so positive and below 2^58 once they are lifted.
    #[inline]
    pub(super) fn reduce(mut self) -> Fp {
        for i in 0..LIMBS {
            self.0[i] = add(self.0[i], splat(LIFT[i]));
            require("a limb of a lifted sum", self.0[i], 58);
        }
        let top = shift_right::<TOP_BITS>(self.0[LIMBS - 1]);
        self.0[LIMBS - 1] = and(self.0[LIMBS - 1], splat(TOP_MASK));
        // Below 2^10 · 2^33.
        self.0[0] = low(self.0[0], top, splat(TOP_FOLD));
        Fp(carried(self.0)).checked()
    }
}
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::{
        ChaCha20Rng,
        rand_core::{Rng, SeedableRng},
    };

    const ONE: [u64; 4] = [1, 0, 0, 0];

    /// a + b modulo p, both below p.
    fn sum_of(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
        let (mut out, mut carry) = ([0; 4], 0);
        for i in 0..4 {
            let sum = u128::from(a[i]) + u128::from(b[i]) + carry;
            (out[i], carry) = (sum as u64, sum >> 64);
        }
        // As limbs, which may be as large as 2·2^256.
        let [a, b, c, d] = out;
        let top = d >> 16 | (carry as u64) << TOP_BITS;
        canonical(&[
            a & MASK,
            (a >> 52 | b << 12) & MASK,
            (b >> 40 | c << 24) & MASK,
            (c >> 28 | d << 36) & MASK,
            top,
        ])
    }

    /// a·b modulo p by doublings.
    fn product_of(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
        let mut out = [0; 4];
        for bit in (0..256).rev() {
            out = sum_of(&out, &out);
            if b[bit / 64] >> (bit % 64) & 1 == 1 {
                out = sum_of(&out, a);
            }
        }
        out
    }

    fn negative_of(a: &[u64; 4]) -> [u64; 4] {
        // (p − 1)·a
        let mut minus_one = MODULUS;
        minus_one[0] -= 1;
        product_of(a, &minus_one)
    }

    /// Limbs as large and as small as a factor's may be, and drawn ones.
    fn factors() -> Vec<Limbs> {
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let top = (1 << 49) - 1;
        let p = [0xf_fffe_ffff_fc2f, MASK, MASK, MASK, TOP_MASK];
        let mut out = vec![
            [0; LIMBS],
            [1, 0, 0, 0, 0],
            [MASK, MASK, MASK, MASK, top],
            p,
            [MASK, MASK, MASK, MASK, TOP_MASK],
        ];
        for _ in 0..59 {
            out.push(core::array::from_fn(|i| {
                let most = if i == LIMBS - 1 { top } else { MASK };
                match rng.next_u32() % 4 {
                    0 => 0,
                    1 => most,
                    _ => rng.next_u64() & most,
                }
            }));
        }
        out
    }

    lanes! {
        fn check_eight(a: &[Limbs; LANES], b: &[Limbs; LANES]) {
            let (x, y) = (Fp::gather(a), Fp::gather(b));
            let product = x.mul(&y);
            let square = x.square();
            let difference = x.doubled::<3>().sub(&y.doubled::<3>()).sub(&x.doubled::<2>()).sub(&y.sum()).reduce();
            let negative = x.negate_lanes(0b0101_0101);
            let inverse = x.inverse();
            let root = square.root();
            let found = [product, square, difference, negative, inverse, root].map(|found| found.canonical());
            for lane in 0..LANES {
                let (a, b) = (canonical(&a[lane]), canonical(&b[lane]));
                assert_eq!(found[0][lane], product_of(&a, &b), "{a:x?} · {b:x?}");
                assert_eq!(found[1][lane], product_of(&a, &a), "{a:x?}²");
                let expected = sum_of(&product_of(&a, &[4, 0, 0, 0]), &negative_of(&product_of(&b, &[9, 0, 0, 0])));
                assert_eq!(found[2][lane], expected, "4·{a:x?} − 9·{b:x?}");
                assert_eq!(found[3][lane], if lane % 2 == 0 { negative_of(&a) } else { a });
                let unit = if a == [0; 4] { a } else { ONE };
                assert_eq!(product_of(&found[4][lane], &a), unit, "1/{a:x?}");
                assert!([a, negative_of(&a)].contains(&found[5][lane]), "√{a:x?}²");
            }
        }
    }

    #[test]
    fn every_operation_is_right_at_the_ends_of_what_limbs_may_be() {
        if super::super::Lanes::here().is_none() {
            println!("NOT RUN: this processor has no AVX-512 IFMA");
            return;
        }
        let factors = factors();
        let (eights, _) = factors.as_chunks::<LANES>();
        for a in eights {
            for b in eights {
                // SAFETY: `here` has found the features.
                unsafe { check_eight(a, b) };
            }
        }
    }

    #[test]
    fn what_is_lifted_is_a_multiple_of_the_modulus() {
        let power = |bits: usize| {
            product_of(
                &{
                    let mut word = [0; 4];
                    word[bits % 256 / 64] = 1 << (bits % 64);
                    word
                },
                &ONE,
            )
        };
        let sum = LIFT
            .iter()
            .enumerate()
            .fold([0; 4], |sum, (i, limb)| sum_of(&sum, &product_of(&[*limb, 0, 0, 0], &power(52 * i))));
        assert_eq!(sum, [0; 4]);
        assert!(LIFT.iter().all(|limb| *limb > 1 << 56 && *limb < 1 << 57));
        assert_eq!(TOP_FOLD, MODULUS[0].wrapping_neg());
    }
}
