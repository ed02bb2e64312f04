//! Fixed-base tables: exponentiation of ek in GT and multiplication of g1 in G1 without doublings.
//!
//! A scalar is cut into short digits by the endomorphisms ([`crate::digits`]), so one table over a single short
//! digit serves all of them: four 64-bit digits in GT (Frobenius), two 128-bit halves in G1. A digit in turn is cut
//! into signed windows, one row of the table each.
//!
//! The tables for GT are in torus form ([`crate::curve::Torus`]). Measured once on an AMD EPYC core with ADX, window 13, entries
//! fetched ahead in both, in `blst`'s F_p12 products an exponentiation: 20.3 in torus form with its share of the
//! inversion (17.3 without the quotient, 18.3 with a comparison instead), 22.8 with entries of F_p12, which also take
//! twice the memory.

mod g1;
mod gt;

#[allow(unused_imports)] // only lanes use it
pub(crate) use g1::generator_rows;
pub(crate) use g1::{generator_times, generator_times_all, generator_times_secret};
pub(crate) use gt::GtComb;

/// Cuts `value` into signed windows in [−2^(w−1), 2^(w−1)], least significant first, without branches on the value.
pub(crate) fn signed_windows(value: u128, window_bits: u32, count: usize) -> impl Iterator<Item = i32> {
    let (mask, half) = ((1u64 << window_bits) - 1, 1u64 << (window_bits - 1));
    let mut carry = 0;
    (0..count as u32).map(move |i| {
        let shifted = value.checked_shr(i * window_bits).unwrap_or(0);
        let window = (shifted as u64 & mask) + carry;
        carry = (half.wrapping_sub(window)) >> 63; // 1 if window > half
        window as i32 - ((carry as i32) << window_bits)
    })
}

/// The multiples of a base that the signed windows of a number need: entry d−1 of row i is d·2^(w·i) times the base
/// (written additively).
struct Rows<T> {
    window_bits: u32,
    rows: Vec<Vec<T>>,
}

impl<T> Rows<T> {
    /// A table for numbers up to `largest`, which is below 2^127.5. `row` computes the given number of multiples of
    /// the base of the given row.
    fn new(largest: u128, window_bits: u32, row: impl FnMut((usize, usize)) -> Vec<T>) -> Self {
        let rows = Self::lengths(largest, window_bits).into_iter().enumerate().map(row).collect();
        Self { window_bits, rows }
    }

    /// The last row is cut off where the windows end: a carry can raise the highest by one.
    fn lengths(largest: u128, window_bits: u32) -> Vec<usize> {
        let bits = u128::BITS - largest.leading_zeros();
        let half = 1 << (window_bits - 1);
        let length = |i: u32| (largest.checked_shr(i * window_bits).unwrap_or(0) + 1).min(half) as usize;
        (0..(bits + 1).div_ceil(window_bits)).map(length).collect()
    }

    /// The entries whose sum is `value` times the base, each with whether it is to be negated.
    fn lookup(&self, value: u128) -> impl Iterator<Item = (&T, bool)> {
        let windows = signed_windows(value, self.window_bits, self.rows.len());
        let used = self.rows.iter().zip(windows).filter(|(_, window)| *window != 0);
        used.map(|(row, window)| (&row[window.unsigned_abs() as usize - 1], window < 0))
    }

    /// Each row with the absolute value and the sign (−1 or 0) of its window: for secret values, nothing is left out.
    fn scan(&self, value: u128) -> impl Iterator<Item = (&[T], i32, i32)> {
        let windows = signed_windows(value, self.window_bits, self.rows.len());
        self.rows.iter().zip(windows).map(|(row, window)| {
            let sign = window >> 31;
            (row.as_slice(), (window ^ sign) - sign, sign)
        })
    }
}

/// All ones if a = b, else zero; opaque to the optimiser, so that it stays a mask.
pub(crate) fn equal_mask(a: i32, b: i32) -> u64 {
    let difference = i64::from(a ^ b);
    opaque(!((difference | -difference) >> 63) as u64)
}

/// All ones for −1, zero for 0; opaque to the optimiser.
pub(crate) fn sign_mask(sign: i32) -> u64 {
    opaque(i64::from(sign) as u64)
}

fn opaque(mask: u64) -> u64 {
    std::hint::black_box(mask)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::curve::Scalar;

    pub(super) fn edges() -> Vec<Scalar> {
        let x = Scalar::from_u64(crate::digits::X);
        let one = Scalar::one();
        vec![
            Scalar::ZERO,
            one,
            one.neg(),
            x.sub(&one),
            x,
            x.mul(&x).sub(&one),
            x.mul(&x),
            Scalar::reduce(&[0x77; 64]),
            Scalar::reduce(&[0x88; 64]),
        ]
    }

    /// A table of plain numbers.
    fn numbers(largest: u128, window_bits: u32) -> Rows<i128> {
        let multiple = |i: usize, d: usize| (d as i128).checked_shl(window_bits * i as u32).unwrap_or(0);
        Rows::new(largest, window_bits, |(i, length)| (1..=length).map(|d| multiple(i, d)).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn windows_recombine(part: u64, largest in 1u64.., window_bits in 2u32..=12) {
            for (value, largest) in [(part % largest, largest), (largest, largest), (part, u64::MAX)] {
                let table = numbers(u128::from(largest), window_bits);
                let sum = table.lookup(u128::from(value)).map(|(entry, negate)| if negate { -entry } else { *entry });
                prop_assert_eq!(sum.sum::<i128>(), i128::from(value));
                let scanned = table.scan(u128::from(value)).map(|(row, magnitude, sign)| {
                    let entry = row.iter().zip(1..).find(|(_, d)| *d == magnitude).map_or(0, |(entry, _)| *entry);
                    if sign == -1 { -entry } else { entry }
                });
                prop_assert_eq!(scanned.sum::<i128>(), i128::from(value));
            }
        }
    }

    #[test]
    fn masks() {
        assert_eq!([equal_mask(3, 3), equal_mask(3, 4), equal_mask(0, i32::MIN)], [u64::MAX, 0, 0]);
        assert_eq!([sign_mask(-1), sign_mask(0)], [u64::MAX, 0]);
    }
}
