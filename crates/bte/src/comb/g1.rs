//! Multiplication of the generator of G1.

use std::sync::OnceLock;

use super::{Rows, equal_mask, sign_mask};
use crate::curve::{G1, G1Affine, Scalar};
use crate::digits::{X, glv_halves};
use crate::platform::prefetch;

/// Window of the table for public scalars: 10 rows, 38,243 points, 3.7 MB.
const PUBLIC_WINDOW_BITS: u32 = 13;
/// Window of the table for secret scalars, whose every lookup reads a whole row: 22 rows, 675 points, 65 KB.
const SECRET_WINDOW_BITS: u32 = 6;

/// [k]·g1 in variable time: about 20 mixed additions. The first call builds the table, with an addition for each of
/// its points.
pub(crate) fn generator_times(k: &Scalar) -> G1 {
    let [low, high] = halves(k).map(|half| {
        let points = public_table().lookup(half);
        points.fold(G1::default(), |sum, (point, negate)| sum.add_affine(&signed(point, negate)))
    });
    low.add(&high.times_x_squared())
}

/// [k]·g1 for each k in variable time: about 20 additions each, with shared inversions.
pub(crate) fn generator_times_all(scalars: &[Scalar]) -> Vec<G1Affine> {
    if let [k] = scalars {
        return vec![generator_times(k).to_affine()]; // six inversions cost more than they save
    }
    let table = public_table();
    let (mut found, mut lengths) = (Vec::new(), Vec::with_capacity(2 * scalars.len()));
    for half in scalars.iter().flat_map(halves) {
        let before = found.len();
        found.extend(table.lookup(half).inspect(|(point, _)| prefetch(*point)));
        lengths.push(found.len() - before);
    }
    let points = found.into_iter().map(|(point, negate)| signed(point, negate)).collect();
    let mut sums = G1Affine::sums(points, &lengths);
    for pair in sums.chunks_exact_mut(2) {
        pair[1] = pair[1].times_x_squared();
    }
    G1Affine::sums(sums, &vec![2; scalars.len()])
}

/// [k]·g1 in constant time: every lookup reads its whole row.
pub(crate) fn generator_times_secret(k: &Scalar) -> G1 {
    static TABLE: OnceLock<Rows<G1Affine>> = OnceLock::new();
    let table = TABLE.get_or_init(|| table(SECRET_WINDOW_BITS));
    let [low, high] = halves(k).map(|half| {
        table.scan(half).fold(G1::default(), |sum, (row, magnitude, sign)| {
            let mut point = G1Affine::IDENTITY;
            for (entry, value) in row.iter().zip(1..) {
                point.or_masked(entry, equal_mask(magnitude, value));
            }
            sum.add_affine(&point.negated_where(sign_mask(sign)))
        })
    });
    low.add(&high.times_x_squared())
}

fn halves(k: &Scalar) -> [u128; 2] {
    let (low, high) = glv_halves(k);
    [low, high]
}

fn signed(point: &G1Affine, negate: bool) -> G1Affine {
    if negate { point.neg() } else { *point }
}

fn public_table() -> &'static Rows<G1Affine> {
    static TABLE: OnceLock<Rows<G1Affine>> = OnceLock::new();
    TABLE.get_or_init(|| table(PUBLIC_WINDOW_BITS))
}

/// The multiples of the generator that windows of this size need: entry d−1 of row i is d·2^(w·i) times it.
#[allow(dead_code)] // only lanes use it
pub(crate) fn generator_rows(window_bits: u32) -> Vec<Vec<G1Affine>> {
    table(window_bits).rows
}

fn table(window_bits: u32) -> Rows<G1Affine> {
    let largest = u128::from(X) * u128::from(X) - 1;
    let mut row_base = G1::generator();
    Rows::new(largest, window_bits, |(_, length)| {
        let mut multiples = Vec::with_capacity(length);
        let mut multiple = row_base;
        for _ in 0..length {
            multiples.push(multiple);
            multiple = multiple.add(&row_base);
        }
        for _ in 0..window_bits {
            row_base = row_base.double();
        }
        G1::to_affine_batch(&multiples)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::comb::tests::edges;

    fn check(scalars: &[Scalar]) {
        for (k, point) in scalars.iter().zip(generator_times_all(scalars)) {
            let want = G1::generator().mul_secret(k);
            assert!(generator_times(k) == want && generator_times_secret(k) == want);
            assert!(point == want.to_affine());
        }
    }

    #[test]
    fn tables_agree_with_plain_multiplication() {
        check(&edges());
        check(&[]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn random_multiples_of_the_generator(bytes: [u8; 32], count in 1usize..4) {
            check(&vec![Scalar::reduce(&bytes); count]);
        }
    }
}
