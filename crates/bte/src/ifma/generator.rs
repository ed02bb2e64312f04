//! Multiplication of the generator of G1 in eight lanes.

use std::sync::OnceLock;

use super::comb::{Column, LaneRows, negated_where};
use super::field::{Fp, Packed};
use super::points::{PackedPoint, Points};
use super::vector::{LANES, lanes};
use crate::comb::generator_rows;
use crate::curve::Scalar;
use crate::digits::glv_halves;

/// Window of the table: 10 rows, 38,253 points, 4.9 MB.
const WINDOW_BITS: u32 = 13;

/// x, y.
type Entry = [Packed; 2];

lanes! {
    fn table() -> &'static LaneRows<Entry> {
        static TABLE: OnceLock<LaneRows<Entry>> = OnceLock::new();
        TABLE.get_or_init(|| {
            let rows = generator_rows(WINDOW_BITS);
            let pack = |row| PackedPoint::pack(row).into_iter().map(|point| [point.x, point.y]).collect();
            LaneRows::new(WINDOW_BITS, &[Packed::ONE; 2], rows.iter().map(|row| pack(row)))
        })
    }

    /// [k]·g1 for each k in variable time, eight to a vector: about 20 additions each and six inversions for all. The
    /// first call builds the table, with an addition for each of its points.
    pub(super) fn generator_times(scalars: &[Scalar]) -> Points {
        let table = table();
        let halves = |scalars: &[Scalar]| -> [(u128, u128); LANES] {
            std::array::from_fn(|lane| scalars.get(lane).map_or((0, 0), glv_halves))
        };
        let halves: Vec<_> = scalars.chunks(LANES).map(halves).collect();
        let (low, high) = (halves.iter().map(|k| k.map(|k| k.0)), halves.iter().map(|k| k.map(|k| k.1)));
        let mut columns = Vec::with_capacity(2 * halves.len() * table.len());
        for values in low.chain(high) {
            // SAFETY: this function has the same features.
            unsafe { table.look_up(&values, &mut columns) };
        }
        columns.iter().for_each(Column::prefetch);
        // Vectors of low halves, then of high ones, and so for each row: a tree of sums over the rows.
        let mut sums = Points::default();
        for row in 0..table.len() {
            for column in columns.iter().skip(row).step_by(table.len()) {
                let [x, y] = [0, 1].map(|i| Fp::gather(column.entries.map(|entry| &entry[i])));
                sums.push(x, negated_where(&y, column.negative), column.neutral);
            }
        }
        let mut rows = table.len();
        while rows > 1 {
            rows = rows.div_ceil(2);
            sums.fold(rows * 2 * halves.len());
        }
        sums.times_x_squared(halves.len());
        sums.fold(halves.len());
        sums
    }
}
