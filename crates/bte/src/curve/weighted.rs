//! Sums of points of G2 under random weights. In G2 the endomorphism ψ multiplies by the curve parameter x, so a weight
//! of four short digits in base x takes no more doublings than one digit.

use std::sync::OnceLock;

use blst::{blst_fp2, blst_p2_affine};

use super::fp::{inverse2, mul2, sub};
use super::{G2, G2Affine, Scalar};
use crate::digits::{X, wnaf_u64};

/// Digits a of the weight Σ aₖ·xᵏ. Different digits give different weights modulo r, for their differences are below r
/// in absolute value and not 0: random ones are as good as 128 random bits.
pub(crate) type DigitWeight = [u32; 4];

/// Signed window: digits are odd and below 2^(W−1) in absolute value.
const WINDOW_BITS: u32 = 4;
const ODD_MULTIPLES: usize = 1 << (WINDOW_BITS - 2);

/// Odd multiples of a point, under ψ^0 … ψ^3.
type Images = [[G2Affine; ODD_MULTIPLES]; 4];

/// The weight as a scalar.
pub(crate) fn weight_as_scalar(digits: &DigitWeight) -> Scalar {
    let x = Scalar::from_u64(X).neg();
    digits.iter().rev().fold(Scalar::ZERO, |sum, digit| sum.mul(&x).add(&Scalar::from_u64(u64::from(*digit))))
}

/// For each row, its first point plus the others times their weights, one weight for each but the first. Variable time:
/// at most 33 doublings for a row, about 26 mixed additions for each weight in it.
///
/// # Panics
/// If a row has not one point more than there are weights.
pub(crate) fn weighted_sums(rows: &[Vec<G2Affine>], weights: &[DigitWeight]) -> Vec<G2Affine> {
    assert!(rows.iter().all(|row| row.len() == weights.len() + 1), "one weight for each but the first");
    let weights: Vec<_> =
        weights.iter().map(|weight| weight.map(|digit| wnaf_u64(u64::from(digit), WINDOW_BITS))).collect();
    let length = weights.iter().flatten().map(|digits| digits.len()).max().unwrap_or(0);
    let weighted: Vec<G2Affine> = rows.iter().flat_map(|row| &row[1..]).copied().collect();
    let tables = tables(&weighted);
    let sums = rows.iter().enumerate().map(|(index, row)| {
        let terms = weights.iter().zip(&tables[index * weights.len()..]);
        let terms: Vec<_> = terms.flat_map(|(digits, images)| digits.iter().zip(images)).collect();
        let mut sum = G2::default();
        for position in (0..length).rev() {
            sum = sum.double();
            for (digits, multiples) in &terms {
                let digit = digits.get(position);
                if digit != 0 {
                    let multiple = &multiples[usize::from(digit.unsigned_abs() / 2)];
                    sum = sum.add_affine(&if digit < 0 { multiple.neg() } else { *multiple });
                }
            }
        }
        sum.add_affine(&row[0])
    });
    G2::to_affine_batch(&sums.collect::<Vec<_>>())
}

fn tables(points: &[G2Affine]) -> Vec<Images> {
    let multiples = points.iter().flat_map(|point| {
        let point = G2::from(point);
        let twice = point.double();
        std::iter::successors(Some(point), move |multiple| Some(multiple.add(&twice))).take(ODD_MULTIPLES)
    });
    let multiples = G2::to_affine_batch(&multiples.collect::<Vec<_>>());
    let (tables, _) = multiples.as_chunks::<ODD_MULTIPLES>();
    let images = tables.iter().map(|table| {
        let mut images = [*table; 4];
        for power in 1..images.len() {
            images[power] = images[power - 1].map(|multiple| multiple.times_x());
        }
        images
    });
    images.collect()
}

impl G2Affine {
    /// [x]·self = ψ(self), x the curve parameter, which is negative: two products. Only for points of the subgroup.
    fn times_x(&self) -> Self {
        let [x_factor, y_factor] = psi();
        let (x, y) = (conjugate(&self.0.x), conjugate(&self.0.y));
        Self(blst_p2_affine { x: mul2(&x, x_factor), y: mul2(&y, y_factor) })
    }
}

/// ψ(x, y) = (c·x̄, d·ȳ): c and d, found from the generator.
fn psi() -> &'static [blst_fp2; 2] {
    static CELL: OnceLock<[blst_fp2; 2]> = OnceLock::new();
    CELL.get_or_init(|| {
        let generator = G2Affine::generator().0;
        let image = G2::generator().mul(&Scalar::from_u64(X).neg()).to_affine().0;
        // Neither coordinate of the generator is 0.
        let quotient = |a: &blst_fp2, b: &blst_fp2| mul2(a, &inverse2(&conjugate(b)));
        [quotient(&image.x, &generator.x), quotient(&image.y, &generator.y)]
    })
}

fn conjugate(a: &blst_fp2) -> blst_fp2 {
    let [real, imaginary] = &a.fp;
    blst_fp2 { fp: [*real, sub(&Default::default(), imaginary)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weighted_sums_are_sums_of_products() {
        let multiple = |k: u64| G2::generator().mul(&Scalar::from_u64(k)).to_affine();
        let weights =
            [[1, 0, 0, 0], [0; 4], [u32::MAX; 4], [0, 0, 0, 1], [7, 8, 9, 0x8000_0000], [u32::MAX; 4]];
        // With repetitions, opposites and the identity, which keys may be.
        let rows = [[1, 2, 3, 4, 5, 6, 7], [0, 1, 0, 1, 0, 1, 1], [5; 7]];
        for count in 0..=weights.len() {
            let weights = &weights[..count];
            let rows: Vec<Vec<G2Affine>> =
                rows.iter().map(|row| row[..=count].iter().map(|k| multiple(*k)).collect()).collect();
            for (row, sum) in rows.iter().zip(weighted_sums(&rows, weights)) {
                let term = |(point, weight): (&G2Affine, &DigitWeight)| {
                    G2::from(point).mul(&weight_as_scalar(weight))
                };
                let want = row[1..].iter().zip(weights).map(term).fold(G2::from(&row[0]), |a, b| a.add(&b));
                assert!(sum == want.to_affine());
            }
        }
        assert!(weighted_sums(&[], &weights).is_empty());
    }
}
