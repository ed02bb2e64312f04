//! Sums of affine points of G1 with shared inversions: six products an addition instead of eleven.

use blst::{blst_fp, blst_p1_affine};

use super::G1Affine;
use super::fp::{add, invert_all, mul, square, sub};
use super::g1::beta;

impl G1Affine {
    /// [x²]·self = (βx, −y), x the curve parameter: one field product. Only for points of the subgroup.
    pub(crate) fn times_x_squared(&self) -> Self {
        let negated = self.neg();
        Self(blst_p1_affine { x: mul(&negated.0.x, beta()), y: negated.0.y })
    }

    /// Σ of consecutive groups of the points, `lengths` long. Variable time; right for equal, opposite and identity
    /// points, too. One inversion for each doubling of the longest group, six products for each addition.
    ///
    /// # Panics
    /// If the lengths do not add up to the number of points.
    pub(crate) fn sums(mut points: Vec<Self>, lengths: &[usize]) -> Vec<Self> {
        assert_eq!(points.len(), lengths.iter().sum::<usize>(), "every point belongs to one group");
        let mut lengths = lengths.to_vec();
        while lengths.iter().any(|length| *length > 1) {
            points = halved(&points, &mut lengths);
        }
        let mut points = points.into_iter();
        let sum = |length: &usize| match length {
            0 => None,
            _ => points.next(),
        };
        lengths.iter().map(sum).map(|sum| sum.unwrap_or(Self::IDENTITY)).collect()
    }

    /// What has to be inverted to add the points; 0 if nothing.
    fn denominator(&self, other: &Self) -> blst_fp {
        let (p, q) = (&self.0, &other.0);
        match p.x == q.x {
            false => sub(&q.x, &p.x),
            true if p.y == q.y => add(&p.y, &p.y),
            true => blst_fp::default(),
        }
    }

    /// Sum of the points, given the inverse of their denominator.
    fn add_with(&self, other: &Self, inverse: &blst_fp) -> Self {
        let (p, q) = (&self.0, &other.0);
        if *self == Self::IDENTITY {
            return *other;
        }
        if *other == Self::IDENTITY {
            return *self;
        }
        let numerator = match p.x == q.x {
            false => sub(&q.y, &p.y),
            true if p.y == q.y => {
                let square = square(&p.x);
                add(&add(&square, &square), &square)
            }
            true => return Self::IDENTITY,
        };
        let slope = mul(&numerator, inverse);
        let x = sub(&square(&slope), &add(&p.x, &q.x));
        let y = sub(&mul(&slope, &sub(&p.x, &x)), &p.y);
        Self(blst_p1_affine { x, y })
    }
}

/// Adds the points of each group in pairs; an odd one stays.
fn halved(points: &[G1Affine], lengths: &mut [usize]) -> Vec<G1Affine> {
    let groups = |lengths: &[usize]| {
        let mut rest = points;
        let cut = |length: &usize| rest.split_off(..*length).unwrap_or_default();
        lengths.iter().map(cut).collect::<Vec<_>>()
    };
    let groups = groups(lengths);
    let pairs = groups.iter().flat_map(|group| group.chunks_exact(2));
    let mut inverses: Vec<blst_fp> = pairs.map(|pair| pair[0].denominator(&pair[1])).collect();
    invert_all(&mut inverses);
    let mut inverses = inverses.iter();
    let mut sums = Vec::with_capacity(points.len() / 2 + lengths.len());
    for (group, length) in groups.iter().zip(lengths) {
        let pairs = group.chunks_exact(2);
        sums.extend(
            pairs.clone().zip(&mut inverses).map(|(pair, inverse)| pair[0].add_with(&pair[1], inverse)),
        );
        sums.extend(pairs.remainder());
        *length = length.div_ceil(2);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::{G1, Scalar};

    #[test]
    fn sums_of_any_points() {
        let multiple = |k: u64| G1::generator().mul_secret(&Scalar::from_u64(k)).to_affine();
        let (one, two, identity) = (multiple(1), multiple(2), multiple(0));
        let groups: [&[G1Affine]; 9] = [
            &[],
            &[one],
            &[identity, identity],
            &[one, one],
            &[one, one.neg(), two],
            &[one, two, identity, multiple(3), one.neg(), one.neg(), two.neg()],
            &[two, one, one, two.neg(), multiple(9)],
            &[identity, one, identity],
            &[one, one.neg()],
        ];
        let lengths = groups.map(|group| group.len());
        let sums = G1Affine::sums(groups.concat(), &lengths);
        for (group, sum) in groups.iter().zip(sums) {
            assert!(sum == group.iter().fold(G1::default(), |sum, point| sum.add_affine(point)).to_affine());
        }
        assert!(G1Affine::sums(vec![], &[]).is_empty());
    }

    #[test]
    fn the_endomorphism_agrees_with_the_jacobian_one() {
        let point = G1::generator().mul_secret(&Scalar::from_u64(77));
        assert!(point.to_affine().times_x_squared() == point.times_x_squared().to_affine());
        let identity = G1Affine::IDENTITY;
        assert!(identity.times_x_squared() == identity && identity.is_identity());
    }
}
