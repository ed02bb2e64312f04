//! Interpolation at 0 and the combination of any t shares.

use crate::curve::{G1, G1Affine, PointError, Scalar};
use crate::{G1_BYTES, Parameters};

/// Why shares could not be combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CombineError {
    /// Fewer than t shares: wait for more.
    #[error("{given} shares given, {needed} needed")]
    TooFew {
        /// How many shares were given.
        given: usize,
        /// The threshold t.
        needed: usize,
    },
    /// Not a member's number; the caller's fault.
    #[error("member {member} is not one of 1..={members}")]
    UnknownMember {
        /// The index that was given.
        member: u16,
        /// n, how many members there are.
        members: u16,
    },
    /// Two shares of one member; the caller's fault.
    #[error("two shares of member {0}")]
    Duplicate(u16),
    /// Not a point: this member's fault.
    #[error("share of member {member}: {source}")]
    Point {
        /// Index of the member who sent it, from 1.
        member: u16,
        /// What is wrong with it.
        source: PointError,
    },
}

/// Σ λ_j·share_j over the first t shares, λ the Lagrange coefficients at 0.
pub(crate) fn combine(
    parameters: &Parameters,
    shares: &[(u16, [u8; G1_BYTES])],
) -> Result<G1Affine, CombineError> {
    let members = parameters.members();
    for (position, (member, _)) in shares.iter().enumerate() {
        if *member == 0 || *member > members {
            return Err(CombineError::UnknownMember { member: *member, members });
        }
        if shares[..position].iter().any(|(other, _)| other == member) {
            return Err(CombineError::Duplicate(*member));
        }
    }
    let needed = usize::from(parameters.threshold());
    if shares.len() < needed {
        return Err(CombineError::TooFew { given: shares.len(), needed });
    }
    let shares = &shares[..needed];
    let indices: Vec<u16> = shares.iter().map(|(member, _)| *member).collect();
    let mut points = Vec::with_capacity(needed);
    for (member, bytes) in shares {
        points
            .push(G1Affine::decode(bytes).map_err(|source| CombineError::Point { member: *member, source })?);
    }
    let coefficients: Vec<[u8; 32]> = at_zero(&indices).iter().map(|c| c.to_le_bytes()).collect();
    Ok(G1::multi_scalar(&points, &coefficients).to_affine())
}

/// λ_j = Π_(l≠j) l/(l−j), for distinct non-zero indices.
pub(crate) fn at_zero(indices: &[u16]) -> Vec<Scalar> {
    let scalar = |index: u16| Scalar::from_u64(u64::from(index));
    indices
        .iter()
        .map(|j| {
            let (mut numerator, mut denominator) = (Scalar::one(), Scalar::one());
            for l in indices.iter().filter(|l| *l != j) {
                numerator = numerator.mul(&scalar(*l));
                denominator = denominator.mul(&scalar(*l).sub(&scalar(*j)));
            }
            numerator.mul(&denominator.inverse())
        })
        .collect()
}
