//! Σ kᵢ·Pᵢ for secret kᵢ by Straus's method: the points share all doublings, the additions of one point an inversion.
//!
//! Both halves of a scalar ([`glv_halves`]) are cut into signed windows, each with an accumulator of its own: for every
//! point it adds the digit's multiple, found by reading the whole table of the point. That makes 66 affine additions
//! for each point, independent of each other, whose denominators are inverted together. The doublings come last, once.
//!
//! **Constant time.** Affine addition has exceptions: an accumulator at infinity, or equal or opposite to what is added.
//! Whoever chooses the points could bring them about for some digits (two equal ciphertexts are enough), and with them
//! a branch on the digits. So accumulators start at a secret random point, the *blind*, subtracted at the end: an
//! accumulator is then, to whoever does not know the blind, a random point, and meets one of the 16 multiples with
//! probability 2^−250. A digit 0 adds like any other, and its result is dropped by a mask.

use blst::{blst_fp, blst_p1_affine};
use zeroize::{Zeroize, Zeroizing};

use super::fp::{inverse, mul, square, sub};
use super::{G1, G1Affine, Scalar};
use crate::comb::{equal_mask, sign_mask, signed_windows};
use crate::digits::glv_halves;

/// Bits of a window, windows of 128 bits with the last carry, and multiples in a table.
pub(crate) const WINDOW_BITS: u32 = 4;
pub(crate) const WINDOWS: usize = 33;
pub(crate) const MULTIPLES: usize = 1 << (WINDOW_BITS - 1);

/// Points whose tables are made together.
const CHUNK: usize = 32;
const POSITIONS: usize = 2 * WINDOWS;

/// −8 to 8, least significant first, without branches on the value.
pub(crate) fn windows(half: u128) -> impl Iterator<Item = i8> {
    signed_windows(half, WINDOW_BITS, WINDOWS).map(|digit| digit as i8)
}

/// Σ kᵢ·Pᵢ in constant time; the points are no identities, `blind` is secret and random. About 500 field products and
/// one inversion for each point, 250 complete additions and doublings for all.
pub(crate) fn sum_secret(points: &[G1Affine], scalars: &[Scalar], blind: &G1) -> G1 {
    let start = Zeroizing::new(blind.to_affine());
    let mut work = Work::new(&start);
    for (points, scalars) in points.chunks(CHUNK).zip(scalars.chunks(CHUNK)) {
        for (table, k) in tables(points).iter().zip(scalars) {
            let (low, high) = glv_halves(k);
            let mut digits = Zeroizing::new([0; POSITIONS]);
            for (digit, value) in digits.iter_mut().zip(windows(low).chain(windows(high))) {
                *digit = value;
            }
            work.add(table, &digits);
        }
    }
    finish(&work.sums, blind)
}

/// Σ 16^w·(low_w + \[x²\]·high_w), each less its blind; `sums` are those of the low half and, if there is one, the high.
/// Complete additions in constant time.
pub(crate) fn finish(sums: &[G1Affine], blind: &G1) -> G1 {
    let (low, high) = sums.split_at(WINDOWS);
    let mut unblind = blind.neg();
    if !high.is_empty() {
        unblind = unblind.sub(&blind.times_x_squared());
    }
    let mut sum = G1::default();
    for window in (0..WINDOWS).rev() {
        for _ in 0..WINDOW_BITS {
            sum = sum.double();
        }
        sum = sum.add(&unblind).add_affine(&low[window]);
        if let Some(high) = high.get(window) {
            sum = sum.add_affine(&high.times_x_squared());
        }
    }
    unblind.zeroize();
    sum
}

/// P, 2P … 8P of each point. The points are public.
fn tables(points: &[G1Affine]) -> Vec<[G1Affine; MULTIPLES]> {
    let mut tables: Vec<_> = points.iter().map(|point| [*point; MULTIPLES]).collect();
    let mut multiples = points.to_vec();
    for index in 1..MULTIPLES {
        let pairs = multiples.iter().zip(points).flat_map(|(multiple, point)| [*multiple, *point]).collect();
        multiples = G1Affine::sums(pairs, &vec![2; points.len()]);
        for (table, multiple) in tables.iter_mut().zip(&multiples) {
            table[index] = *multiple;
        }
    }
    tables
}

/// The accumulators and what an addition to all of them needs; wiped on drop.
struct Work {
    sums: Vec<G1Affine>,
    entries: Vec<G1Affine>,
    denominators: Vec<blst_fp>,
    prefixes: Vec<blst_fp>,
}

impl Work {
    fn new(start: &G1Affine) -> Self {
        Self {
            sums: vec![*start; POSITIONS],
            entries: vec![G1Affine::IDENTITY; POSITIONS],
            denominators: vec![blst_fp::default(); POSITIONS],
            prefixes: vec![blst_fp::default(); POSITIONS],
        }
    }

    /// Adds to each accumulator its digit's multiple.
    fn add(&mut self, table: &[G1Affine; MULTIPLES], digits: &[i8; POSITIONS]) {
        // Each prefix is the product of the denominators before; the first, of none, is left out.
        let mut product = blst_fp::default();
        for (i, digit) in digits.iter().enumerate() {
            self.entries[i] = scan(table, *digit);
            let denominator = sub(&self.entries[i].0.x, &self.sums[i].0.x);
            self.prefixes[i] = product;
            product = if i == 0 { denominator } else { mul(&product, &denominator) };
            self.denominators[i] = denominator;
        }
        let mut inverse = inverse(&product);
        for (i, digit) in digits.iter().enumerate().rev() {
            let own = if i == 0 { inverse } else { mul(&inverse, &self.prefixes[i]) };
            inverse = mul(&inverse, &self.denominators[i]);
            let (sum, entry) = (&self.sums[i].0, &self.entries[i].0);
            let slope = mul(&sub(&entry.y, &sum.y), &own);
            let x = sub(&sub(&square(&slope), &sum.x), &entry.x);
            let y = sub(&mul(&slope, &sub(&sum.x, &x)), &sum.y);
            let keep = equal_mask(i32::from(*digit), 0);
            let mut out = G1Affine::IDENTITY;
            out.or_masked(&self.sums[i], keep);
            out.or_masked(&G1Affine(blst_p1_affine { x, y }), !keep);
            self.sums[i] = out;
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.sums.zeroize();
        self.entries.zeroize();
        for element in self.denominators.iter_mut().chain(&mut self.prefixes) {
            element.l.zeroize();
        }
    }
}

/// The digit's multiple, for 0 the point itself; reads the whole table.
fn scan(table: &[G1Affine; MULTIPLES], digit: i8) -> G1Affine {
    let sign = i32::from(digit >> 7);
    let magnitude = (i32::from(digit) ^ sign) - sign;
    let mut out = G1Affine::IDENTITY;
    out.or_masked(&table[0], equal_mask(magnitude, 0));
    for (entry, value) in table.iter().zip(1..) {
        out.or_masked(entry, equal_mask(magnitude, value));
    }
    out.negated_where(sign_mask(sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digits::X;

    #[test]
    fn secret_sums_are_sums_of_products() {
        let blind = G1::generator().mul_secret(&Scalar::reduce(&[0x5a; 64]));
        let x = Scalar::from_u64(X);
        let edges = [Scalar::ZERO, Scalar::one(), Scalar::one().neg(), x, x.mul(&x), x.mul(&x).neg()];
        let scalars: Vec<Scalar> = (0..75u8)
            .map(|i| edges.get(usize::from(i)).copied().unwrap_or(Scalar::reduce(&[i; 48])))
            .collect();
        // Repeated and opposite points.
        let point = |i: usize| G1::generator().mul_public(&Scalar::from_u64([1, 1, 2, 3, 8][i % 5]));
        let points: Vec<G1Affine> = (0..75)
            .map(|i| if i % 3 == 1 { point(i).neg().to_affine() } else { point(i).to_affine() })
            .collect();
        for count in [0, 1, 2, 31, 32, 33, 75] {
            let terms = points.iter().zip(&scalars).take(count);
            let want = terms.fold(G1::default(), |sum, (p, k)| sum.add(&G1::from(p).mul_public(k)));
            assert!(sum_secret(&points[..count], &scalars[..count], &blind) == want, "{count}");
        }
    }
}
