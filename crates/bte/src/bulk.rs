//! What checks of many points at once are made of, so that each backend can bring its own arithmetic.

use crate::curve::{G1, G1Affine, PointError, Scalar};
use crate::par;
use crate::weights::Weight;
use crate::{CiphertextPoint, G1_BYTES};

/// Operations on many points of G1, on the current pool. All implementations give identical results.
pub(crate) trait Bulk: Sync {
    /// [`G1Affine::decode`] of each.
    fn decode(&self, encodings: &[&[u8; 48]]) -> Vec<Result<G1Affine, PointError>>;

    /// Σ wᵢ·Pᵢ in variable time, identities allowed. Where additions start is up to `start`: a random scalar that who
    /// made the points cannot foresee keeps them fast.
    fn weighted_sum(&self, points: &[G1Affine], weights: &[Weight], start: &Scalar) -> G1;

    /// Σ kᵢ·Pᵢ likewise.
    fn multi_scalar(&self, points: &[G1Affine], scalars: &[Scalar], start: &Scalar) -> G1;
}

/// [`CiphertextPoint::from_bytes`] of each.
pub(crate) fn decode_headers(
    bulk: &dyn Bulk,
    headers: &[&[u8; G1_BYTES]],
) -> Vec<Result<CiphertextPoint, PointError>> {
    bulk.decode(headers).into_iter().map(|point| point.and_then(CiphertextPoint::new)).collect()
}

/// Points one by one, sums by `blst`'s buckets.
pub(crate) struct ScalarBulk;

impl Bulk for ScalarBulk {
    fn decode(&self, encodings: &[&[u8; 48]]) -> Vec<Result<G1Affine, PointError>> {
        par::map(encodings.len(), |i| G1Affine::decode(encodings[i]))
    }

    fn weighted_sum(&self, points: &[G1Affine], weights: &[Weight], _start: &Scalar) -> G1 {
        G1::multi_scalar(points, weights)
    }

    fn multi_scalar(&self, points: &[G1Affine], scalars: &[Scalar], _start: &Scalar) -> G1 {
        let scalars: Vec<[u8; 32]> = scalars.iter().map(|k| k.to_le_bytes()).collect();
        G1::multi_scalar(points, &scalars)
    }
}
