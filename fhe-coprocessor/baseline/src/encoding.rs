//! Reading fixed-length fields.

use curve25519_dalek::{RistrettoPoint, Scalar, ristretto::CompressedRistretto};

/// Bytes that are not the one encoding of a transaction; whoever sent them is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Too short or too long.
    #[error("the transaction is cut short or goes on after its end")]
    Length,
    /// Neither a transfer nor a withdrawal.
    #[error("kind {0} is unknown")]
    Kind(u8),
    /// Not the canonical encoding of a point.
    #[error("a point is not canonically encoded")]
    Point,
    /// Not below the group's order.
    #[error("a scalar is not canonically encoded")]
    Scalar,
    /// The range proof does not parse.
    #[error("the range proof is malformed")]
    RangeProof,
}

pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(MessageError::Length)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn word(&mut self) -> Result<u64, MessageError> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    pub(crate) fn point(&mut self) -> Result<(CompressedRistretto, RistrettoPoint), MessageError> {
        let compressed = CompressedRistretto(self.take()?);
        Ok((compressed, compressed.decompress().ok_or(MessageError::Point)?))
    }

    pub(crate) fn scalar(&mut self) -> Result<Scalar, MessageError> {
        Option::from(Scalar::from_canonical_bytes(self.take()?)).ok_or(MessageError::Scalar)
    }
}
