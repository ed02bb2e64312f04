//! Fixed-base exponentiation of ek in eight lanes.
//!
//! The method of [`crate::comb`]: one table over a digit in base |x| serves all four digits by the Frobenius, entries
//! are in torus form and products are taken of numerators alone. Here each lane looks up entries of its own, and a
//! window of 0 looks up an entry as any other does: a neutral one, at the beginning of each row.

use super::field::{Fp, LANES, Packed, lanes};
use super::tower::{Fp2, Fp6, Fp12};
use crate::comb::{GtComb, prefetch, signed_windows};
use crate::curve::Scalar;
use crate::digits::base_x;

/// The rows of a table, one after the other: entry d of a row is d times its base (written additively).
pub(super) struct LaneRows<T> {
    window_bits: u32,
    starts: Vec<usize>,
    entries: Vec<T>,
}

/// What eight lanes look up in one row.
pub(super) struct Column<'a, T> {
    pub(super) entries: [&'a T; LANES],
    /// Lanes whose entry is to be negated.
    pub(super) negative: u8,
    /// Lanes whose entry is the neutral one.
    pub(super) neutral: u8,
}

impl<T: Clone> LaneRows<T> {
    /// Of rows that lack their neutral entry.
    pub(super) fn new(window_bits: u32, neutral: &T, rows: impl Iterator<Item = Vec<T>>) -> Self {
        let (mut starts, mut entries) = (Vec::new(), Vec::new());
        for row in rows {
            starts.push(entries.len());
            entries.push(neutral.clone());
            entries.extend(row);
        }
        entries.shrink_to_fit();
        Self { window_bits, starts, entries }
    }

    /// Rows, which is the number of columns for each value.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Row by row the entries whose sums are the values times the base, in variable time.
    pub(super) fn columns(&self, values: [u128; LANES]) -> impl Iterator<Item = Column<'_, T>> {
        let mut windows = values.map(|value| signed_windows(value, self.window_bits, self.len()));
        self.starts.iter().map(move |start| {
            let mut column = Column { entries: [&self.entries[*start]; LANES], negative: 0, neutral: 0 };
            for (lane, windows) in windows.iter_mut().enumerate() {
                let window = windows.next().unwrap_or(0);
                column.entries[lane] = &self.entries[start + window.unsigned_abs() as usize];
                column.negative |= u8::from(window < 0) << lane;
                column.neutral |= u8::from(window == 0) << lane;
            }
            column
        })
    }
}

impl<T> Column<'_, T> {
    /// Starts to fetch the entries.
    pub(super) fn prefetch(&self) {
        self.entries.into_iter().for_each(prefetch);
    }
}

lanes! {
    /// −self in the lanes of the mask; of entries of a table.
    #[inline]
    pub(super) fn negated_where(entry: &Fp, mask: u8) -> Fp {
        Fp::zero().sub(entry).lift::<2>().select(entry, mask).normalise()
    }
}

/// An element of GT in torus form at rest, 384 bytes.
type Entry = [Packed; 6];

/// Powers of one element of GT, as eight lanes look them up. Memory: a third more than that of [`GtComb`].
pub(crate) struct LaneComb(LaneRows<Entry>);

lanes! {
impl LaneComb {
    pub(super) fn new(comb: &GtComb) -> Self {
        let rows = comb.rows().map(|row| {
            let mut entries = Vec::with_capacity(row.len());
            for chunk in row.chunks(LANES) {
                let limbs: [_; LANES] = std::array::from_fn(|lane| chunk.get(lane).unwrap_or(&chunk[0]).limbs());
                let at = |i: usize| Fp::from_blst(limbs.map(|limbs| limbs[i])).weak().scatter();
                let coefficients: [[Packed; LANES]; 6] = std::array::from_fn(at);
                entries.extend((0..chunk.len()).map(|lane| coefficients.map(|of_lanes| of_lanes[lane])));
            }
            entries
        });
        Self(LaneRows::new(comb.window_bits(), &[Packed::default(); 6], rows))
    }

    /// ek^k for each k up to a factor in F_p6, eight to a vector, in variable time: half as many products of F_p12 as
    /// an exponent has windows, as many of F_p6, and three Frobenius maps. See [`quotients`]. Reduced.
    ///
    /// [`quotients`]: super::target::quotients
    pub(super) fn products(&self, scalars: &[Scalar]) -> Vec<Fp12> {
        let columns: Vec<Column<'_, Entry>> =
            scalars.chunks(LANES).flat_map(|scalars| self.columns(scalars)).collect();
        // Fetches what the next step will need during each.
        let mut ahead = columns.iter();
        let mut fetch = |count: usize| ahead.by_ref().take(count).for_each(Column::prefetch);
        fetch(2);
        let rows = self.0.len();
        let product = |columns: &[Column<'_, Entry>]| {
            let mut product: Option<Fp12> = None;
            for digit in columns.chunks(rows) {
                product = product.map(|product| power_of_x(&product));
                for factors in digit.chunks(2) {
                    fetch(factors.len());
                    product = Some(times(product, factors));
                }
            }
            product.unwrap_or_else(|| Fp12::one())
        };
        columns.chunks(4 * rows).map(product).collect()
    }

    /// The factors of eight powers: those of the highest digit first.
    fn columns(&self, scalars: &[Scalar]) -> Vec<Column<'_, Entry>> {
        let digits: [[u64; 4]; LANES] = std::array::from_fn(|lane| scalars.get(lane).map_or([0; 4], base_x));
        let of_digit = |j: usize| self.0.columns(digits.map(|digits| u128::from(digits[j])));
        (0..4).rev().flat_map(of_digit).collect()
    }
}
}

lanes! {
    fn gather(column: &Column<'_, Entry>) -> Fp6 {
        let at = |i: usize| negated_where(&Fp::gather(column.entries.map(|entry| &entry[i])), column.negative);
        let at2 = |i: usize| Fp2 { c0: at(i), c1: at(i + 1) };
        Fp6 { c0: at2(0), c1: at2(2), c2: at2(4) }
    }

    /// The product with one factor, or with two at a time as in [`crate::comb`].
    fn times(product: Option<Fp12>, factors: &[Column<'_, Entry>]) -> Fp12 {
        match (product, factors) {
            (Some(product), [factor]) => times_torus(&product, &gather(factor)),
            (Some(product), factors) => product.mul(&times(None, factors)),
            (None, [factor]) => Fp12 { c1: gather(factor), ..Fp12::one() },
            (None, [first, second, ..]) => pair(&gather(first), &gather(second)),
            (None, []) => Fp12::one(),
        }
    }

    /// (1 + a·w)·(1 + b·w) = 1 + v·a·b + (a + b)·w. One product of F_p6.
    fn pair(a: &Fp6, b: &Fp6) -> Fp12 {
        let mut out = Fp12 { c0: a.mul(b).times_v(), c1: a.add_n(b) };
        out.c0.c0.c0 = out.c0.c0.c0.add_n(&Fp::splat(&Packed::ONE.0));
        out
    }

    /// f·(1 + a·w) = f0 + v·f1·a + (f1 + f0·a)·w. Two products of F_p6.
    fn times_torus(f: &Fp12, a: &Fp6) -> Fp12 {
        let mut c0 = f.c0.add_n(&f.c1.mul(a).times_v());
        c0.c0 = c0.c0.weak();
        Fp12 { c0, c1: f.c1.add_n(&f.c0.mul(a)) }
    }

    /// f^|x| where f/conj(f) lies in GT.
    fn power_of_x(f: &Fp12) -> Fp12 {
        f.frobenius(1).conjugate()
    }
}
