//! The parameter file, version 1, all numbers big-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `BFPARAMS` |
//! | 1 | version, 1 |
//! | 4, 2, 2 | B, n, t |
//! | 2 × 48 | \[τ\]₁, \[τ²\]₁ |
//! | 576 | ek |
//! | (2B − 1) × 96 | h₁ … h₂B without h_(B+1) |
//! | n·B × 96 | v_1^1 … v_1^B, v_2^1 … v_n^B |

use super::{Element, Elements, ParametersError, check_shape};
use crate::curve::{G1Affine, G2Affine, PointError};
use crate::hash::sha256;
use crate::{EncryptionKey, G1_BYTES, G2_BYTES, GT_BYTES, par, tags};

const MAGIC: &[u8; 8] = b"BFPARAMS";
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 17;
const FIXED_BYTES: usize = HEADER_BYTES + 2 * G1_BYTES + GT_BYTES;

pub(super) fn hash(file: &[u8]) -> [u8; 32] {
    sha256(&[tags::PARAMETERS, file])
}

pub(super) fn encode(elements: &Elements) -> Vec<u8> {
    let points = elements.h.len() + elements.verification_keys.len();
    let mut out = Vec::with_capacity(FIXED_BYTES + points * G2_BYTES);
    out.extend_from_slice(MAGIC);
    out.push(VERSION);
    out.extend_from_slice(&(elements.max_batch as u32).to_be_bytes());
    out.extend_from_slice(&elements.members.to_be_bytes());
    out.extend_from_slice(&elements.threshold.to_be_bytes());
    for point in &elements.powers_g1 {
        out.extend_from_slice(&point.encode());
    }
    out.extend_from_slice(&elements.ek.to_bytes());
    for point in elements.h.iter().chain(&elements.verification_keys) {
        out.extend_from_slice(&point.encode());
    }
    out
}

pub(super) fn decode(bytes: &[u8]) -> Result<Elements, ParametersError> {
    let short = ParametersError::Length { expected: FIXED_BYTES, actual: bytes.len() };
    let (magic, rest) = bytes.split_first_chunk::<8>().ok_or(ParametersError::Magic)?;
    if magic != MAGIC {
        return Err(ParametersError::Magic);
    }
    let ([version], rest) = rest.split_first_chunk().ok_or(short)?;
    if *version != VERSION {
        return Err(ParametersError::Version(*version));
    }
    let (max_batch, rest) = rest.split_first_chunk().ok_or(short)?;
    let (members, rest) = rest.split_first_chunk().ok_or(short)?;
    let (threshold, rest) = rest.split_first_chunk().ok_or(short)?;
    let (max_batch, members) = (u32::from_be_bytes(*max_batch), u16::from_be_bytes(*members));
    let threshold = u16::from_be_bytes(*threshold);
    check_shape(max_batch, members, threshold)?;

    // The length is checked before anything is allocated for it.
    let batch = max_batch as usize;
    let (powers, keys) = (2 * batch - 1, batch * usize::from(members));
    let expected = FIXED_BYTES + (powers + keys) * G2_BYTES;
    if bytes.len() != expected {
        return Err(ParametersError::Length { expected, actual: bytes.len() });
    }
    let (powers_g1, rest) = rest.split_at(2 * G1_BYTES);
    let (ek, rest) = rest.split_first_chunk::<GT_BYTES>().ok_or(short)?;
    let (h, verification_keys) = rest.split_at(powers * G2_BYTES);

    let ek = EncryptionKey::from_bytes(ek)?;
    let powers_g1: Vec<G1Affine> =
        decode_points(powers_g1, Element::PowersInG1, |bytes: &[u8; G1_BYTES]| {
            let point = G1Affine::decode(bytes)?;
            if point.is_identity() { Err(PointError::Identity) } else { Ok(point) }
        })?;
    let g2 = |bytes: &[u8; G2_BYTES]| {
        let point = G2Affine::decode(bytes)?;
        if point.is_identity() { Err(PointError::Identity) } else { Ok(point) }
    };
    Ok(Elements {
        max_batch: batch,
        members,
        threshold,
        powers_g1: [powers_g1[0], powers_g1[1]],
        ek,
        h: decode_points(h, Element::Powers, g2)?,
        verification_keys: decode_points(verification_keys, Element::VerificationKeys, g2)?,
    })
}

fn decode_points<const N: usize, T: Send>(
    bytes: &[u8],
    element: Element,
    decode: impl Fn(&[u8; N]) -> Result<T, PointError> + Sync + Send,
) -> Result<Vec<T>, ParametersError> {
    let (chunks, rest) = bytes.as_chunks::<N>();
    debug_assert!(rest.is_empty());
    let points = par::map(chunks.len(), |i| decode(&chunks[i]));
    let numbered = points.into_iter().enumerate();
    numbered
        .map(|(index, point)| point.map_err(|source| ParametersError::Point { element, index, source }))
        .collect()
}
