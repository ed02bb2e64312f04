//! Many points at once, in eight lanes.

use super::vector::LANES;
use super::{decode, straus};
use crate::bulk::{Bulk, ScalarBulk};
use crate::comb::generator_times;
use crate::curve::{G1, G1Affine, PointError, Scalar};
use crate::digits::glv_halves;
use crate::par;
use crate::weights::Weight;

/// Points that one task decodes or multiplies at most.
const PIECE: usize = 1024;
/// Below this many points buckets are faster.
const SUM_MIN: usize = 24;

/// Only made by [`super::Ifma`].
pub(crate) struct LaneBulk(());

impl LaneBulk {
    /// # Safety
    /// The machine must support what [`super::Ifma::new`] tests.
    pub(super) unsafe fn new() -> Self {
        Self(())
    }

    fn sum<const HALVES: usize>(
        &self,
        points: &[G1Affine],
        halves: &[[u128; HALVES]],
        start: &Scalar,
    ) -> Option<G1> {
        let blind = generator_times(start);
        let sums = par::pieces(points.len(), PIECE, LANES, |range| {
            // SAFETY: by the contract of `new`.
            vec![unsafe { straus::sum(&points[range.clone()], &halves[range], &blind) }]
        });
        sums.into_iter().try_fold(G1::default(), |total, sum| Some(total.add(&sum?)))
    }
}

impl Bulk for LaneBulk {
    fn decode(&self, encodings: &[&[u8; 48]]) -> Vec<Result<G1Affine, PointError>> {
        par::pieces(encodings.len(), PIECE, LANES, |range| {
            // SAFETY: by the contract of `new`.
            unsafe { decode::decode(&encodings[range]) }
        })
    }

    fn weighted_sum(&self, points: &[G1Affine], weights: &[Weight], start: &Scalar) -> G1 {
        let sum = (points.len() >= SUM_MIN).then(|| {
            let halves: Vec<[u128; 1]> =
                weights.iter().map(|weight| [u128::from_le_bytes(*weight)]).collect();
            self.sum(points, &halves, start)
        });
        sum.flatten().unwrap_or_else(|| ScalarBulk.weighted_sum(points, weights, start))
    }

    fn multi_scalar(&self, points: &[G1Affine], scalars: &[Scalar], start: &Scalar) -> G1 {
        let sum = (points.len() >= SUM_MIN).then(|| {
            let halves: Vec<[u128; 2]> = scalars.iter().map(|k| glv_halves(k).into()).collect();
            self.sum(points, &halves, start)
        });
        sum.flatten().unwrap_or_else(|| ScalarBulk.multi_scalar(points, scalars, start))
    }
}
