//! The one place that calls `blst`: scalars, points and target-group elements as plain value types.
//!
//! Everything above this module is safe Rust. Each `unsafe` block below passes pointers to initialised,
//! properly sized and aligned local values; `blst` neither keeps a pointer nor writes past the structure whose
//! type it declares, and its functions tolerate an output that is also an input unless stated.

mod affine;
mod fp;
mod fp6;
mod g1;
mod g2;
mod gt;
pub(crate) mod limbs;
mod scalar;
pub(crate) mod straus;
mod torus;
pub(crate) mod weighted;

pub(crate) use g1::{G1, G1Affine};
pub(crate) use g2::{G2, G2_SERIALIZED_BYTES, G2Affine};
pub use gt::GtError;
pub(crate) use gt::{Gt, Lines, miller_loop, miller_product};
pub(crate) use scalar::Scalar;
pub(crate) use torus::{Torus, TorusProduct};

/// Why 48 or 96 bytes are not a point of the prime-order group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PointError {
    /// Not the length of a compressed point.
    #[error("a compressed point here has {expected} bytes, got {actual}")]
    Length {
        /// Bytes that a compressed point of this group has.
        expected: usize,
        /// How many bytes were given.
        actual: usize,
    },
    /// Flags are inconsistent, or the coordinate is not below p.
    #[error("not a canonical compressed point")]
    NotCanonical,
    /// No point of the curve has this coordinate.
    #[error("not on the curve")]
    NotOnCurve,
    /// On the curve, outside the subgroup of order r.
    #[error("outside the prime-order subgroup")]
    NotInSubgroup,
    /// The identity, where it is not allowed.
    #[error("the identity is not allowed here")]
    Identity,
}

pub(crate) fn point_error(code: blst::BLST_ERROR) -> PointError {
    match code {
        blst::BLST_ERROR::BLST_POINT_NOT_ON_CURVE => PointError::NotOnCurve,
        blst::BLST_ERROR::BLST_POINT_NOT_IN_GROUP => PointError::NotInSubgroup,
        blst::BLST_ERROR::BLST_PK_IS_INFINITY => PointError::Identity,
        _ => PointError::NotCanonical,
    }
}
