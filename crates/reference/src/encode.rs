//! Bytes to arkworks and back.

use ark_bls12_381::{Fq, Fq2, Fq6, Fq12, Fr, G1Affine, G2Affine};
use ark_ec::pairing::PairingOutput;
use ark_ff::{BigInteger, PrimeField};
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};

use crate::Gt;

/// Bytes that are no canonical element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not a point of G1.
    #[error("not a point of G1")]
    G1,
    /// Not a point of G2.
    #[error("not a point of G2")]
    G2,
    /// Not an element of F_p12 with canonical coefficients (membership in GT is not checked).
    #[error("not an element of the target field")]
    Gt,
    /// Not a scalar below r, or one that has no inverse where it needs one.
    #[error("not a scalar")]
    Scalar,
    /// A power is missing from the parameters.
    #[error("h_{0} is missing")]
    Missing(usize),
}

pub(crate) fn scalar(bytes: &[u8; 32]) -> Result<Fr, DecodeError> {
    let mut little = *bytes;
    little.reverse();
    Fr::deserialize_compressed(&little[..]).map_err(|_| DecodeError::Scalar)
}

pub(crate) fn scalar_bytes(scalar: &Fr) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(&scalar.into_bigint().to_bytes_be());
    out
}

pub(crate) fn g1(bytes: &[u8; 48]) -> Result<G1Affine, DecodeError> {
    G1Affine::deserialize_compressed(&bytes[..]).map_err(|_| DecodeError::G1)
}

pub(crate) fn g1_bytes(point: &G1Affine) -> [u8; 48] {
    compressed(point)
}

pub(crate) fn g2(bytes: &[u8; 96]) -> Result<G2Affine, DecodeError> {
    G2Affine::deserialize_compressed(&bytes[..]).map_err(|_| DecodeError::G2)
}

pub(crate) fn g2_bytes(point: &G2Affine) -> [u8; 96] {
    compressed(point)
}

fn compressed<const N: usize>(point: &impl CanonicalSerialize) -> [u8; N] {
    let mut out = [0; N];
    let written = point.serialize_compressed(&mut out[..]);
    assert!(written.is_ok() && point.compressed_size() == N, "a compressed point has {N} bytes");
    out
}

/// Twelve coefficients in tower order, 48 big-endian bytes each.
pub(crate) fn gt_bytes(value: &Gt) -> [u8; 576] {
    let mut out = [0; 576];
    let sextic = [value.0.c0, value.0.c1];
    let quadratic = sextic.iter().flat_map(|c| [c.c0, c.c1, c.c2]);
    let coefficients = quadratic.flat_map(|c| [c.c0, c.c1]);
    for (chunk, coefficient) in out.chunks_exact_mut(48).zip(coefficients) {
        chunk.copy_from_slice(&coefficient.into_bigint().to_bytes_be());
    }
    out
}

pub(crate) fn gt(bytes: &[u8; 576]) -> Result<Gt, DecodeError> {
    let mut coefficients = Vec::with_capacity(12);
    for chunk in bytes.chunks_exact(48) {
        let mut little = chunk.to_vec();
        little.reverse();
        coefficients.push(Fq::deserialize_compressed(&little[..]).map_err(|_| DecodeError::Gt)?);
    }
    let quadratic = |i: usize| Fq2::new(coefficients[2 * i], coefficients[2 * i + 1]);
    let sextic = |i: usize| Fq6::new(quadratic(3 * i), quadratic(3 * i + 1), quadratic(3 * i + 2));
    Ok(PairingOutput(Fq12::new(sextic(0), sextic(1))))
}
