//! Σ kᵢ·Pᵢ in eight lanes, by the method of [`crate::curve::straus`], whose account of secrets and of the blind holds
//! here: each lane has accumulators of its own, for every eighth point, and one inversion serves all of them.

use zeroize::{Zeroize, Zeroizing};

use super::field::{Fp, Packed};
use super::points::{PackedPoint, Points, chord, invert_lanes};
use super::vector::{LANES, abs, equal, from_bytes, lanes, negative, splat, vanishing};
use crate::curve::straus::{MULTIPLES, WINDOWS, finish, windows};
use crate::curve::{G1, G1Affine};

/// Vectors of points whose tables are made together: 8 KiB each.
const CHUNK: usize = 16;

/// Eight points, (x, y), normalised and weakly reduced.
type Point = [Fp; 2];

lanes! {
    /// Σ (k + x²·k')·P over the points and their halves (k, k'), or just k. Identities are allowed. In constant time
    /// in the halves if `blind` is secret and random; with a blind that somebody has foreseen possibly `None`.
    pub(super) fn sum<const HALVES: usize>(points: &[G1Affine], halves: &[[u128; HALVES]], blind: &G1) -> Option<G1> {
        let mut work = Work::new(HALVES * WINDOWS);
        work.start(blind);
        let mut digits = Zeroizing::new(vec![[0i8; LANES]; HALVES * WINDOWS]);
        let mut proper = true;
        for (points, halves) in points.chunks(CHUNK * LANES).zip(halves.chunks(CHUNK * LANES)) {
            let tables = tables(points);
            for (vector, table) in tables.iter().enumerate() {
                for lane in 0..LANES {
                    let index = LANES * vector + lane;
                    // The table of an identity is that of another point.
                    let counts = points.get(index).is_some_and(|point| !point.is_identity());
                    let own = if counts { &halves[index] } else { &[0; HALVES] };
                    let own = own.iter().flat_map(|half| windows(*half));
                    digits.iter_mut().zip(own).for_each(|(digits, digit)| digits[lane] = digit);
                }
                work.look_up(table, &digits);
                proper &= work.add();
            }
        }
        let (sums, folded) = work.fold_lanes();
        // The lanes started at 1, 2 … 8 blinds.
        let blinds = blind.double().double().double().add(blind).double().double();
        (proper && folded).then(|| finish(&sums, &blinds))
    }

    /// P, 2P … 8P of each point, vector by vector; the last is filled up.
    fn tables(points: &[G1Affine]) -> Vec<[Point; MULTIPLES]> {
        let generator = G1Affine::generator();
        let full = points.len().next_multiple_of(LANES);
        let points = points.iter().chain(std::iter::repeat(&generator)).take(full);
        let points: Vec<G1Affine> = points.map(|p| if p.is_identity() { generator } else { *p }).collect();
        Points::gather(&PackedPoint::pack(&points).iter().collect::<Vec<_>>()).multiples_in_lanes()
    }
}

/// Vectors of accumulators, and what an addition to all of them needs. Wiped on drop.
struct Work {
    sums: Vec<Point>,
    entries: Vec<Point>,
    /// Lanes that nothing is added to.
    skip: Vec<u8>,
    denominators: Vec<Fp>,
    prefixes: Vec<Fp>,
}

lanes! {
impl Work {
    fn new(count: usize) -> Self {
        let (zero, zeros) = (Fp::zero(), [Fp::zero(); 2]);
        Self {
            sums: vec![zeros; count],
            entries: vec![zeros; count],
            skip: vec![0; count],
            denominators: vec![zero; count],
            prefixes: vec![zero; count],
        }
    }

    /// Lane l at l + 1 blinds: different ones, for the lanes are added up in the end.
    fn start(&mut self, blind: &G1) {
        let mut multiples = Zeroizing::new([*blind; LANES]);
        for lane in 1..LANES {
            multiples[lane] = multiples[lane - 1].add(blind);
        }
        let points = Zeroizing::new(G1::to_affine_batch(&*multiples));
        let coordinate = |which: usize| Fp::from_blst(std::array::from_fn(|lane| points[lane].limbs()[which])).weak();
        self.sums.fill([coordinate(0), coordinate(1)]);
    }

    /// The entries: each lane's digit times its point, for 0 the point itself. Reads the whole table.
    fn look_up(&mut self, table: &[Point; MULTIPLES], digits: &[[i8; LANES]]) {
        for (i, digits) in digits.iter().enumerate() {
            let digits = from_bytes(digits);
            let magnitudes = abs(digits);
            let [mut x, mut y] = table[0];
            for (multiple, value) in table.iter().zip(1..).skip(1) {
                let mask = equal(magnitudes, splat(value));
                x = multiple[0].select(&x, mask);
                y = multiple[1].select(&y, mask);
            }
            let minus = Fp::zero().sub(&y).lift::<4>().normalise();
            self.entries[i] = [x, minus.select(&y, negative(digits))];
            self.skip[i] = vanishing(digits);
        }
    }

    /// Adds to every accumulator its entry. False, and of no meaning, if an accumulator was ± its entry.
    fn add(&mut self) -> bool {
        let mut product = Fp::splat(&Packed::ONE.0);
        for (i, denominator) in self.denominators.iter_mut().enumerate() {
            self.prefixes[i] = product;
            *denominator = self.entries[i][0].sub_n(&self.sums[i][0]);
            product = product.mul(denominator);
        }
        let mut inverse = invert_lanes(&product);
        for (i, denominator) in self.denominators.iter().enumerate().rev() {
            let own = inverse.mul(&self.prefixes[i]);
            inverse = inverse.mul(denominator);
            let ([x1, y1], [x2, y2]) = (&self.sums[i], &self.entries[i]);
            let (x3, y3) = chord(&y2.sub_n(y1).mul(&own), x1, y1, x2);
            self.sums[i] = [x1.select(&x3, self.skip[i]), y1.select(&y3, self.skip[i])];
        }
        // With a secret blind this is always so: it tells nothing.
        product.zero_lanes() == 0
    }

    /// The sum of the eight lanes of each accumulator; false if that met an exception.
    fn fold_lanes(&self) -> (Zeroizing<Vec<G1Affine>>, bool) {
        let (mut points, mut width, mut proper) = (scattered(&self.sums), LANES, true);
        while width > 1 {
            width /= 2;
            let rows = points.chunks_exact(2 * width);
            let left: Zeroizing<Vec<_>> = Zeroizing::new(rows.clone().flat_map(|row| &row[..width]).copied().collect());
            let right: Zeroizing<Vec<_>> = Zeroizing::new(rows.flat_map(|row| &row[width..]).copied().collect());
            let mut work = Self::new(left.len().div_ceil(LANES));
            work.sums = gathered(&left);
            work.entries = gathered(&right);
            proper &= work.add();
            let count = left.len();
            points = scattered(&work.sums);
            points.truncate(count);
        }
        let sums = gathered(&points).into_iter().flat_map(|[x, y]| {
            let (x, y) = (x.to_blst(), y.to_blst());
            std::array::from_fn::<_, LANES, _>(|lane| G1Affine::from_limbs(x[lane], y[lane]))
        });
        (Zeroizing::new(sums.take(points.len()).collect()), proper)
    }
}
}

lanes! {
    fn scattered(vectors: &[Point]) -> Zeroizing<Vec<[Packed; 2]>> {
        let mut out = Zeroizing::new(Vec::with_capacity(LANES * vectors.len()));
        for [x, y] in vectors {
            let (x, y) = (x.scatter(), y.scatter());
            out.extend((0..LANES).map(|lane| [x[lane], y[lane]]));
        }
        out
    }

    /// The last vector is filled up with its first point.
    fn gathered(points: &[[Packed; 2]]) -> Vec<Point> {
        let vectors = points.chunks(LANES).map(|chunk| {
            [0, 1].map(|which| Fp::gather(std::array::from_fn(|lane| &chunk.get(lane).unwrap_or(&chunk[0])[which])))
        });
        vectors.collect()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let points = [&mut self.sums, &mut self.entries].map(|points| points.as_flattened_mut());
        let [sums, entries] = points;
        for values in [sums, entries, &mut self.denominators, &mut self.prefixes] {
            let (values, words) = (values.as_mut_ptr(), size_of_val(values) / size_of::<u64>());
            // SAFETY: the words that the values consist of, all of whose bits may be anything.
            unsafe { std::slice::from_raw_parts_mut(values.cast::<u64>(), words) }.zeroize();
        }
        self.skip.zeroize();
    }
}

impl Zeroize for Packed {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}
