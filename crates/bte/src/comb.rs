//! Fixed-base tables: exponentiation of ek in GT and multiplication of g1 in G1 without doublings.
//!
//! A scalar is cut into short digits by the endomorphisms ([`crate::digits`]), so one table over a single short
//! digit serves all of them: four 64-bit digits in GT (Frobenius), two 128-bit halves in G1.

use std::sync::OnceLock;

use crate::curve::{G1, G1Affine, Gt, Scalar};
use crate::digits::{base_x, glv_halves};

/// Cuts `value` into signed windows in [−2^(w−1), 2^(w−1)], least significant first, without branches on the value.
fn signed_windows(value: u128, window_bits: u32, count: usize) -> impl Iterator<Item = i32> {
    let (mask, half) = ((1u64 << window_bits) - 1, 1u64 << (window_bits - 1));
    let mut carry = 0;
    (0..count as u32).map(move |i| {
        let shifted = value.checked_shr(i * window_bits).unwrap_or(0);
        let window = (shifted as u64 & mask) + carry;
        carry = (half.wrapping_sub(window)) >> 63; // 1 if window > half
        window as i32 - ((carry as i32) << window_bits)
    })
}

/// Powers of one GT element: entry d−1 of row i is g^(d·2^(w·i)), 1 ≤ d ≤ 2^(w−1).
pub(crate) struct GtComb {
    window_bits: u32,
    rows: usize,
    table: Vec<Gt>,
}

impl GtComb {
    /// Costs as many products as the table has entries. Memory: ⌈65/w⌉·2^(w−1)·576 bytes.
    pub(crate) fn new(base: &Gt, window_bits: u32) -> Self {
        let rows = 65usize.div_ceil(window_bits as usize);
        let half = 1usize << (window_bits - 1);
        let mut table = Vec::with_capacity(rows * half);
        let mut row_base = *base;
        for _ in 0..rows {
            let mut power = row_base;
            for _ in 1..half {
                table.push(power);
                power = power.mul(&row_base);
            }
            table.push(power);
            row_base = power.square(); // half · 2 = the next row's weight
        }
        Self { window_bits, rows, table }
    }

    fn row(&self, row: usize) -> &[Gt] {
        let half = 1usize << (self.window_bits - 1);
        &self.table[row * half..(row + 1) * half]
    }

    /// base^k in variable time.
    pub(crate) fn pow_public(&self, k: &Scalar) -> Gt {
        let mut product: Option<Gt> = None;
        let multiply = |product: &mut Option<Gt>, factor: Gt| {
            *product = Some(product.map_or(factor, |p| p.mul(&factor)));
        };
        for (j, digit) in base_x(k).into_iter().enumerate() {
            let mut partial: Option<Gt> = None;
            let windows = signed_windows(u128::from(digit), self.window_bits, self.rows);
            for (row, window) in windows.enumerate().filter(|(_, window)| *window != 0) {
                let power = self.row(row)[window.unsigned_abs() as usize - 1];
                multiply(&mut partial, if window < 0 { power.conjugate() } else { power });
            }
            if let Some(partial) = partial {
                multiply(&mut product, partial.power_of_x(j));
            }
        }
        product.unwrap_or_else(Gt::one)
    }

    /// base^k in constant time: every lookup reads its whole row. For secret k and a small window.
    pub(crate) fn pow_secret(&self, k: &Scalar) -> Gt {
        let one = Gt::one();
        let mut product = one;
        for (j, digit) in base_x(k).into_iter().enumerate() {
            let mut partial = one;
            let windows = signed_windows(u128::from(digit), self.window_bits, self.rows);
            for (row, window) in windows.enumerate() {
                let negative = window >> 31; // −1 if negative, else 0
                let magnitude = (window ^ negative) - negative;
                let mut power = Gt::blank();
                power.or_masked(&one, equal_mask(magnitude, 0));
                for (entry, value) in self.row(row).iter().zip(1..) {
                    power.or_masked(entry, equal_mask(magnitude, value));
                }
                let mut factor = Gt::blank();
                let negative = std::hint::black_box(negative as i64 as u64);
                factor.or_masked(&power.conjugate(), negative);
                factor.or_masked(&power, !negative);
                partial = partial.mul(&factor);
            }
            product = product.mul(&partial.power_of_x(j));
        }
        product
    }
}

/// All ones if a = b, else zero; opaque to the optimiser, so that it stays a mask.
fn equal_mask(a: i32, b: i32) -> u64 {
    let difference = i64::from(a ^ b);
    std::hint::black_box(!((difference | -difference) >> 63) as u64)
}

/// Window of the generator's table: 12 rows of 1024 points, 1.2 MB.
const G1_WINDOW_BITS: u32 = 11;
const G1_ROWS: usize = 129usize.div_ceil(G1_WINDOW_BITS as usize);
const G1_ROW_POINTS: usize = 1 << (G1_WINDOW_BITS - 1);

/// [k]·g1 in variable time: 24 mixed additions. The table is built at the first call (about 10 ms).
pub(crate) fn generator_times(k: &Scalar) -> G1 {
    let table = generator_table();
    let (low, high) = glv_halves(k);
    let sum = |half: u128| {
        let windows = signed_windows(half, G1_WINDOW_BITS, G1_ROWS);
        windows.enumerate().filter(|(_, window)| *window != 0).fold(G1::default(), |sum, (row, window)| {
            let point = &table[row * G1_ROW_POINTS + window.unsigned_abs() as usize - 1];
            if window < 0 { sum.add_affine(&point.neg()) } else { sum.add_affine(point) }
        })
    };
    sum(low).add(&sum(high).times_x_squared())
}

fn generator_table() -> &'static [G1Affine] {
    static TABLE: OnceLock<Vec<G1Affine>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut points = Vec::with_capacity(G1_ROWS * G1_ROW_POINTS);
        let mut row_base = G1::generator();
        for _ in 0..G1_ROWS {
            let mut multiple = row_base;
            for _ in 1..G1_ROW_POINTS {
                points.push(multiple);
                multiple = multiple.add(&row_base);
            }
            points.push(multiple);
            row_base = multiple.double();
        }
        G1::to_affine_batch(&points)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::curve::{G2Affine, miller_loop};

    fn edges() -> Vec<Scalar> {
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

    #[test]
    fn tables_agree_with_plain_exponentiation() {
        let g = miller_loop(&G1Affine::generator(), &G2Affine::generator()).easy_part().hard_part();
        for window_bits in [2, 4, 5, 8, 11] {
            let comb = GtComb::new(&g, window_bits);
            for k in edges() {
                assert!(comb.pow_public(&k) == g.pow_public(&k));
                assert!(comb.pow_secret(&k) == g.pow_public(&k));
            }
        }
        for k in edges() {
            assert!(generator_times(&k) == G1::generator().mul_secret(&k));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn windows_recombine(value: u64, window_bits in 2u32..=13) {
            let rows = 65usize.div_ceil(window_bits as usize);
            let windows: Vec<i32> = signed_windows(u128::from(value), window_bits, rows).collect();
            let half = 1 << (window_bits - 1);
            prop_assert!(windows.iter().all(|w| (-half..=half).contains(w)));
            let sum = windows.iter().rev().fold(0i128, |sum, w| (sum << window_bits) + i128::from(*w));
            prop_assert_eq!(sum, i128::from(value));
        }

        #[test]
        fn random_multiples_of_the_generator(bytes: [u8; 32]) {
            let k = Scalar::reduce(&bytes);
            prop_assert!(generator_times(&k) == G1::generator().mul_secret(&k));
        }
    }
}
