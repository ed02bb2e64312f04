//! What proving and verifying spend their time on. Every method has a portable default over arkworks; over BLS12-381
//! they go to `blst`'s assembly. Both give the same results, which the tests here compare.

mod bls12_381;
mod generic;
mod sums;
#[cfg(test)]
mod tests;

use ark_ec::pairing::Pairing;
use ark_ff::PrimeField;

use crate::points::PointError;

/// Scalars as integers.
pub(crate) type Integer<E> = <<E as Pairing>::ScalarField as PrimeField>::BigInt;

/// A pairing that proofs can be made over. An empty implementation takes arkworks' code.
///
/// Every method is in variable time. Those that say so run on the current pool; the others on one thread.
pub trait Curve: Pairing {
    /// Reads a compressed point of G1: its one encoding, on the curve, in the group. A square root and a subgroup check.
    ///
    /// # Errors
    /// [`PointError`].
    fn read_g1(bytes: &[u8]) -> Result<Self::G1Affine, PointError> {
        generic::read(bytes)
    }

    /// The same in G2.
    ///
    /// # Errors
    /// [`PointError`].
    fn read_g2(bytes: &[u8]) -> Result<Self::G2Affine, PointError> {
        generic::read(bytes)
    }

    /// weightᵢ·pointᵢ for each. 128 doublings each, and one field inversion for all.
    fn weigh(points: &[Self::G1Affine], weights: &[u128]) -> Vec<Self::G1Affine> {
        generic::weigh::<Self>(points, weights)
    }

    /// Σ pointᵢ.
    fn add_all(points: &[Self::G1Affine]) -> Self::G1 {
        points.iter().sum()
    }

    /// Σ weightᵢ·pointᵢ by buckets.
    fn sum_weighted(points: &[Self::G1Affine], weights: &[u128]) -> Self::G1 {
        generic::sum_weighted::<Self>(points, weights)
    }

    /// Σ scalarᵢ·baseᵢ in G1 on the current pool; zero, short and equal scalars, and negatives of such, cost less.
    fn sum_g1(bases: &[Self::G1Affine], scalars: &[Integer<Self>]) -> Self::G1 {
        generic::sum(bases, scalars)
    }

    /// The same in G2.
    fn sum_g2(bases: &[Self::G2Affine], scalars: &[Integer<Self>]) -> Self::G2 {
        generic::sum(bases, scalars)
    }

    /// ∏ e(Pᵢ, Qᵢ) before the final exponentiation: a Miller loop for each pair, squarings shared. Only products of this
    /// method's and [`Self::prepared_loops`]' results go to [`Self::finish`].
    fn miller_loops(pairs: &[(Self::G1Affine, Self::G2Affine)]) -> Self::TargetField {
        generic::miller_loops::<Self>(pairs)
    }

    /// The same with further pairs whose points of G2 were prepared: their lines are known, which saves two fifths of
    /// the loop of each.
    fn prepared_loops(
        pairs: &[(Self::G1Affine, Self::G2Affine)],
        prepared: &[(Self::G1Affine, &Self::G2Prepared)],
    ) -> Self::TargetField {
        generic::prepared_loops::<Self>(pairs, prepared)
    }

    /// The final exponentiation of a product of Miller loops: the product of the pairings themselves.
    fn finish(loops: Self::TargetField) -> Self::TargetField {
        generic::finish::<Self>(loops)
    }
}
