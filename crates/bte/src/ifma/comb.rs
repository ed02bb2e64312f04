//! Fixed-base exponentiation of ek in eight lanes.
//!
//! The method of [`crate::comb`]: one table over a digit in base |x| serves all four digits by the Frobenius, entries
//! are in torus form and products are taken of numerators alone. Here each lane looks up entries of its own, and a
//! window of 0 looks up an entry as any other does: a neutral one, at the beginning of each row.

use super::field::{Fp, Packed};
use super::tower::{Fp6, Fp12};
use super::vector::{
    LANES, Vector, add, and, greater, lanes, load, ones, or, select, shift_left, shift_right, splat, store,
    sub, vanishing, zero,
};
use crate::comb::GtComb;
use crate::curve::Scalar;
use crate::digits::base_x;
use crate::platform::prefetch;

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

    /// Appends row by row the entries whose sums are the values times the base, in variable time.
    ///
    /// # Safety
    /// The machine must support what [`super::Ifma::new`] tests.
    pub(super) unsafe fn look_up<'a>(&'a self, values: &[u128; LANES], out: &mut Vec<Column<'a, T>>) {
        // SAFETY: by this function's contract.
        let mut windows = unsafe { Windows::new(values, self.window_bits) };
        for start in &self.starts {
            // SAFETY: likewise.
            let (magnitudes, negative, neutral) = unsafe { windows.next() };
            let entries = magnitudes.map(|magnitude| &self.entries[start + magnitude as usize]);
            out.push(Column { entries, negative, neutral });
        }
    }
}

impl<T> Column<'_, T> {
    /// Starts to fetch the entries.
    pub(super) fn prefetch(&self) {
        self.entries.into_iter().for_each(prefetch);
    }
}

/// The signed windows of eight numbers; those of [`crate::comb`]'s tables.
struct Windows {
    low: Vector,
    high: Vector,
    carry: Vector,
    bits: u32,
}

lanes! {
impl Windows {
    fn new(values: &[u128; LANES], bits: u32) -> Self {
        let (low, high) = (values.map(|value| value as u64), values.map(|value| (value >> 64) as u64));
        Self { low: load(&low), high: load(&high), carry: zero(), bits }
    }

    /// Absolute values, the lanes that are negative and those that are 0.
    fn next(&mut self) -> ([u64; LANES], u8, u8) {
        let size = 1 << self.bits;
        let window = add(and(self.low, splat(size - 1)), self.carry);
        self.low = or(shift_right(self.low, self.bits), shift_left(self.high, 64 - self.bits));
        self.high = shift_right(self.high, self.bits);
        let negative = greater(window, splat(size / 2));
        self.carry = ones(negative);
        let magnitude = select(negative, sub(splat(size), window), window);
        (store(magnitude), negative, vanishing(magnitude))
    }
}
}

lanes! {
    /// −entry in the lanes of the mask; of entries of a table, below 4·p.
    #[inline]
    pub(super) fn negated_where(entry: &Fp, mask: u8) -> Fp {
        Fp::zero().sub(entry).lift::<4>().normalise().select(entry, mask)
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

    /// ek^k for each k up to a factor in F_p6, eight to a vector, in variable time: two products of F_p6 for each
    /// window of an exponent and three Frobenius maps. What [`super::target::quotients`] makes elements of GT of.
    /// Below 5p.
    pub(super) fn products(&self, scalars: &[Scalar]) -> Vec<Fp12> {
        let columns = self.columns(scalars);
        // Fetches what the next step will need during each.
        let mut ahead = columns.iter();
        let mut fetch = |count: usize| ahead.by_ref().take(count).for_each(Column::prefetch);
        fetch(2);
        let digits = columns.chunks_exact(self.0.len());
        let mut products = Vec::with_capacity(scalars.len().div_ceil(LANES));
        let (mut pair, mut buffers) = (Fp12::one(), [Fp12::one(); 2]);
        let [mut product, mut spare] = buffers.each_mut();
        for (i, digit) in digits.enumerate() {
            if i % 4 > 0 {
                set_power_of_x(product);
            }
            for (j, factors) in digit.chunks(2).enumerate() {
                fetch(factors.len());
                match factors {
                    [first, second] if i % 4 == 0 && j == 0 => set_pair(product, first, second),
                    [first, second] => {
                        set_pair(&mut pair, first, second);
                        spare.set_product(product, &pair);
                        std::mem::swap(&mut product, &mut spare);
                    }
                    single => single.iter().for_each(|factor| multiply(product, factor)),
                }
            }
            if i % 4 == 3 {
                products.push(*product);
            }
        }
        products
    }

    /// The factors of the powers, vector by vector: those of the highest digit first.
    fn columns(&self, scalars: &[Scalar]) -> Vec<Column<'_, Entry>> {
        let mut columns = Vec::with_capacity(scalars.len().div_ceil(LANES) * 4 * self.0.len());
        for scalars in scalars.chunks(LANES) {
            let digits: [[u64; 4]; LANES] = std::array::from_fn(|lane| scalars.get(lane).map_or([0; 4], base_x));
            for j in (0..4).rev() {
                // SAFETY: this function has the same features.
                unsafe { self.0.look_up(&digits.map(|digits| u128::from(digits[j])), &mut columns) };
            }
        }
        columns
    }
}
}

lanes! {
    fn gather(column: &Column<'_, Entry>) -> Fp6 {
        let mut out = Fp6::zero();
        let Fp6 { c0, c1, c2 } = &mut out;
        for (i, c) in [&mut c0.c0, &mut c0.c1, &mut c1.c0, &mut c1.c1, &mut c2.c0, &mut c2.c1].into_iter().enumerate() {
            *c = negated_where(&Fp::gather(column.entries.map(|entry| &entry[i])), column.negative);
        }
        out
    }

    /// (1 + a·w)·(1 + b·w) = 1 + v·a·b + (a + b)·w. One product of F_p6, and so one less for two factors than
    /// [`multiply`].
    fn set_pair(out: &mut Fp12, a: &Column<'_, Entry>, b: &Column<'_, Entry>) {
        let (a, b) = (gather(a), gather(b));
        out.c0 = a.mul(&b).times_v();
        out.c0.c0.c0 = out.c0.c0.c0.add_n(&Fp::splat(&Packed::ONE.0));
        out.c1 = a.add_n(&b);
    }

    /// f·(1 + a·w) = f0 + v·f1·a + (f1 + f0·a)·w. Two products of F_p6.
    fn multiply(f: &mut Fp12, a: &Column<'_, Entry>) {
        let a = gather(a);
        let (f0_a, f1_a) = (f.c0.mul(&a), f.c1.mul(&a));
        f.c0 = f.c0.add_n(&f1_a.times_v());
        f.c0.c0 = f.c0.c0.weak();
        f.c1 = f.c1.add_n(&f0_a);
    }

    /// f^|x| where f/conj(f) lies in GT.
    fn set_power_of_x(f: &mut Fp12) {
        *f = f.frobenius(1).conjugate();
    }
}
