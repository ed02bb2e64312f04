//! Arkworks' code, over any pairing.

use ark_ec::pairing::{MillerLoopOutput, Pairing};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup, VariableBaseMSM};
use ark_ff::AdditiveGroup;
use ark_serialize::Compress;

use crate::points::{self, PointError};

pub(super) fn read<G: AffineRepr>(bytes: &[u8]) -> Result<G, PointError> {
    points::read(bytes, Compress::Yes)
}

pub(super) fn weigh<E: Pairing>(points: &[E::G1Affine], weights: &[u128]) -> Vec<E::G1Affine> {
    debug_assert_eq!(points.len(), weights.len());
    let weighed: Vec<E::G1> = points
        .iter()
        .zip(weights)
        .map(|(point, weight)| point.into_group().mul_bigint([*weight as u64, (*weight >> 64) as u64]))
        .collect();
    E::G1::normalize_batch(&weighed)
}

/// In two halves, so that arkworks takes its way for words.
pub(super) fn sum_weighted<E: Pairing>(points: &[E::G1Affine], weights: &[u128]) -> E::G1 {
    debug_assert_eq!(points.len(), weights.len());
    let low: Vec<u64> = weights.iter().map(|weight| *weight as u64).collect();
    let high: Vec<u64> = weights.iter().map(|weight| (*weight >> 64) as u64).collect();
    let high = E::G1::msm_u64(points, &high);
    high * E::ScalarField::from(1u128 << 64) + E::G1::msm_u64(points, &low)
}

pub(super) fn sum<G: AffineRepr>(
    bases: &[G],
    scalars: &[<G::ScalarField as ark_ff::PrimeField>::BigInt],
) -> G::Group {
    points::msm(bases, scalars)
}

pub(super) fn miller_loops<E: Pairing>(pairs: &[(E::G1Affine, E::G2Affine)]) -> E::TargetField {
    E::multi_miller_loop(pairs.iter().map(|(p, _)| *p), pairs.iter().map(|(_, q)| *q)).0
}

pub(super) fn prepared_loops<E: Pairing>(
    pairs: &[(E::G1Affine, E::G2Affine)],
    prepared: &[(E::G1Affine, &E::G2Prepared)],
) -> E::TargetField {
    let p = pairs.iter().map(|(p, _)| *p).chain(prepared.iter().map(|(p, _)| *p));
    let q =
        pairs.iter().map(|(_, q)| E::G2Prepared::from(*q)).chain(prepared.iter().map(|(_, q)| (*q).clone()));
    E::multi_miller_loop(p, q).0
}

/// 0 has none; it is no product of Miller loops.
pub(super) fn finish<E: Pairing>(loops: E::TargetField) -> E::TargetField {
    E::final_exponentiation(MillerLoopOutput(loops)).map_or(E::TargetField::ZERO, |product| product.0)
}
