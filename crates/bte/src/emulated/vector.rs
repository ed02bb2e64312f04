//! Eight words, and the bounds that each of them keeps whatever the inputs are.
//!
//! An operation that might overflow a word, or a product with a factor that might not be below 2^52, panics: by bounds,
//! so also where the values at hand would do.

use super::field::{LIMBS, P, TOP_RECIPROCAL};

pub(crate) const LANES: usize = 8;
pub(super) const MASK: u64 = (1 << 52) - 1;

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Vector {
    words: [i64; LANES],
    least: i64,
    most: i64,
}

macro_rules! lanes {
    (impl $type:ident { $($items:tt)* }) => { impl $type { $($items)* } };
    ($($items:tt)*) => { $($items)* };
}
pub(super) use lanes;

impl Vector {
    fn new(words: [i64; LANES], least: i64, most: i64) -> Self {
        debug_assert!(words.iter().all(|word| (least..=most).contains(word)), "{words:?} [{least}, {most}]");
        Self { words, least, most }
    }

    /// Of bounds that are computed without overflow.
    fn bounded(words: [i64; LANES], least: i128, most: i128) -> Self {
        let fits = |bound: i128| match i64::try_from(bound) {
            Ok(bound) => bound,
            Err(_) => panic!("a word may overflow: [{least}, {most}]"),
        };
        Self::new(words, fits(least), fits(most))
    }

    /// Of which nothing is known.
    fn any(words: [i64; LANES]) -> Self {
        Self::new(words, i64::MIN, i64::MAX)
    }

    fn map(self, change: impl Fn(i64) -> i64) -> [i64; LANES] {
        self.words.map(change)
    }

    fn zip(self, other: Self, change: impl Fn(i64, i64) -> i64) -> [i64; LANES] {
        std::array::from_fn(|lane| change(self.words[lane], other.words[lane]))
    }

    fn mask(self, is: impl Fn(i64) -> bool) -> u8 {
        (0..LANES).fold(0, |mask, lane| mask | u8::from(is(self.words[lane])) << lane)
    }

    /// The bounds of the union.
    fn join(&self, other: &Self) -> (i64, i64) {
        (self.least.min(other.least), self.most.max(other.most))
    }

    pub(super) fn bounds(&self) -> (i64, i64) {
        (self.least, self.most)
    }
}

pub(super) fn splat(value: u64) -> Vector {
    Vector::new([value as i64; LANES], value as i64, value as i64)
}

pub(super) fn zero() -> Vector {
    splat(0)
}

pub(super) fn load(words: &[u64; LANES]) -> Vector {
    Vector::any(words.map(|word| word as i64))
}

pub(super) fn store(vector: Vector) -> [u64; LANES] {
    vector.words.map(|word| word as u64)
}

pub(super) fn from_bytes(bytes: &[i8; LANES]) -> Vector {
    Vector::new(bytes.map(i64::from), i8::MIN.into(), i8::MAX.into())
}

pub(super) fn add(a: Vector, b: Vector) -> Vector {
    let (least, most) = (i128::from(a.least) + i128::from(b.least), i128::from(a.most) + i128::from(b.most));
    Vector::bounded(a.zip(b, i64::wrapping_add), least, most)
}

pub(super) fn sub(a: Vector, b: Vector) -> Vector {
    let (least, most) = (i128::from(a.least) - i128::from(b.most), i128::from(a.most) - i128::from(b.least));
    Vector::bounded(a.zip(b, i64::wrapping_sub), least, most)
}

fn require_factor(a: Vector) {
    require("a factor's limb", a, 0, MASK as i64);
}

fn product(a: i64, b: i64) -> u128 {
    u128::from(a as u64 & MASK) * u128::from(b as u64 & MASK)
}

pub(super) fn low(sum: Vector, a: Vector, b: Vector) -> Vector {
    require_factor(a);
    require_factor(b);
    let (least, most) = (product(a.least, b.least), product(a.most, b.most));
    let (least, most) = if most <= u128::from(MASK) { (least as i64, most as i64) } else { (0, MASK as i64) };
    add(sum, Vector::new(a.zip(b, |a, b| (product(a, b) as u64 & MASK) as i64), least, most))
}

pub(super) fn high(sum: Vector, a: Vector, b: Vector) -> Vector {
    require_factor(a);
    require_factor(b);
    let of = |a, b| (product(a, b) >> 52) as i64;
    add(sum, Vector::new(a.zip(b, of), of(a.least, b.least), of(a.most, b.most)))
}

pub(super) fn modular(a: Vector, b: Vector) -> Vector {
    require_factor(b);
    Vector::new(a.zip(b, |a, b| (product(a, b) as u64 & MASK) as i64), 0, MASK as i64)
}

pub(super) fn multiply(a: Vector, b: Vector) -> Vector {
    let corners = [a.least, a.most].map(|a| [b.least, b.most].map(|b| i128::from(a) * i128::from(b)));
    let (least, most) = corners
        .as_flattened()
        .iter()
        .fold((i128::MAX, i128::MIN), |(least, most), corner| (least.min(*corner), most.max(*corner)));
    Vector::bounded(a.zip(b, i64::wrapping_mul), least, most)
}

pub(super) fn carry(a: Vector) -> Vector {
    Vector::new(a.map(|a| a >> 52), a.least >> 52, a.most >> 52)
}

/// With a constant of ones from the lowest bit on.
pub(super) fn and(a: Vector, b: Vector) -> Vector {
    assert!(b.least == b.most && b.least >= 0 && (b.least + 1).count_ones() == 1, "not a mask");
    let (least, most) = if a.least >= 0 && a.most <= b.most { a.bounds() } else { (0, b.most) };
    Vector::new(a.zip(b, |a, b| a & b), least, most)
}

pub(super) fn or(a: Vector, b: Vector) -> Vector {
    Vector::any(a.zip(b, |a, b| a | b))
}

pub(super) fn shift_left(a: Vector, bits: u32) -> Vector {
    Vector::any(a.map(|a| (a as u64).checked_shl(bits).unwrap_or(0) as i64))
}

pub(super) fn shift_right(a: Vector, bits: u32) -> Vector {
    Vector::any(a.map(|a| (a as u64).checked_shr(bits).unwrap_or(0) as i64))
}

pub(super) fn max(a: Vector, b: Vector) -> Vector {
    Vector::new(a.zip(b, i64::max), a.least.max(b.least), a.most.max(b.most))
}

pub(super) fn abs(a: Vector) -> Vector {
    let most = a.least.unsigned_abs().max(a.most.unsigned_abs());
    Vector::bounded(a.map(i64::wrapping_abs), 0, most.into())
}

pub(super) fn select(mask: u8, a: Vector, b: Vector) -> Vector {
    let (least, most) = a.join(&b);
    let words = std::array::from_fn(|lane| if mask >> lane & 1 == 1 { a.words[lane] } else { b.words[lane] });
    Vector::new(words, least, most)
}

pub(super) fn ones(mask: u8) -> Vector {
    select(mask, splat(1), zero())
}

pub(super) fn equal(a: Vector, b: Vector) -> u8 {
    sub_words(a, b).mask(|difference| difference == 0)
}

pub(super) fn greater(a: Vector, b: Vector) -> u8 {
    (0..LANES).fold(0, |mask, lane| mask | u8::from(a.words[lane] > b.words[lane]) << lane)
}

pub(super) fn negative(a: Vector) -> u8 {
    a.mask(|word| word < 0)
}

pub(super) fn vanishing(a: Vector) -> u8 {
    a.mask(|word| word == 0)
}

fn sub_words(a: Vector, b: Vector) -> Vector {
    Vector::any(a.zip(b, i64::wrapping_sub))
}

pub(super) fn transpose(rows: [Vector; LANES]) -> [Vector; LANES] {
    let (least, most) = rows[1..]
        .iter()
        .fold(rows[0].bounds(), |(least, most), row| (least.min(row.least), most.max(row.most)));
    std::array::from_fn(|i| Vector::new(rows.map(|row| row.words[i]), least, most))
}

/// States that every lane lies in [least, most], whatever the inputs are.
#[track_caller]
pub(super) fn require(what: &str, a: Vector, least: i64, most: i64) {
    let within = least <= a.least && a.most <= most;
    assert!(within, "{what} is not proved to lie in [{least}, {most}], only in [{}, {}]", a.least, a.most);
}

/// The same vector, of which this much is known besides: the values at hand are checked, and taken for granted of others.
pub(super) fn known(what: &str, a: Vector, least: i64, most: i64) -> Vector {
    assert!(
        a.mask(|word| !(least..=most).contains(&word)) == 0,
        "{what}: {:?} is not in [{least}, {most}]",
        a.words
    );
    Vector::new(a.words, a.least.max(least), a.most.min(most))
}

/// Bounds of a weak reduction: those of each quotient, united. Operation by operation they would be useless, for limbs
/// and their quotient are not independent.
pub(super) fn weakly_reduced(before: &[Vector; LIMBS], after: [Vector; LIMBS]) -> [Vector; LIMBS] {
    let top = before[LIMBS - 1];
    let mut out: Option<(i128, i128)> = None;
    for quotient in quotient(top.least)..=quotient(top.most) {
        let (first, last) = tops(quotient);
        let (mut least, mut most) = (0, 0);
        for (i, limb) in before.iter().enumerate() {
            let (low, high) = match i {
                7 => (limb.least.max(first), limb.most.min(last)),
                _ => limb.bounds(),
            };
            let taken = i128::from(quotient) * i128::from(P[i]);
            // Each word must hold the difference and the carry from below.
            (least, most) = (i128::from(low) - taken + least, i128::from(high) - taken + most);
            assert!(
                i64::try_from(least).is_ok() && i64::try_from(most).is_ok(),
                "a weak reduction overflows"
            );
            if i < LIMBS - 1 {
                (least, most) = (least >> 52, most >> 52);
            }
        }
        let (united_least, united_most) = out.unwrap_or((least, most));
        out = Some((united_least.min(least), united_most.max(most)));
    }
    let Some((least, most)) = out else { unreachable!("a value has a quotient") };
    let mut reduced = after;
    reduced[LIMBS - 1] = Vector::bounded(after[LIMBS - 1].words, least, most);
    reduced
}

/// The quotient that a weak reduction takes off for a top limb.
fn quotient(top: i64) -> i64 {
    (product((top - 64).max(0), TOP_RECIPROCAL as i64) >> 52) as i64
}

/// The first and the last top limb with this quotient.
pub(super) fn tops(wanted: i64) -> (i64, i64) {
    let first = |wanted: i64| {
        let (mut low, mut high) = (0, 1 << 40);
        while low < high {
            let middle = (low + high) / 2;
            if quotient(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        low
    };
    (if wanted == 0 { i64::MIN } else { first(wanted) }, first(wanted + 1) - 1)
}

pub(super) fn supported() -> bool {
    true
}

/// Of each way through the transforms: whole vectors, rests, and one or three cosets.
pub(super) const BATCHES: &[usize] = &[3, 8, 13];
