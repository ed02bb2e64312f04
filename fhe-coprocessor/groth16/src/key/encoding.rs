//! Keys as bytes. Integers are big-endian; a verifying key's points are compressed, a proving key's are not, because
//! loading a proving key should cost no square roots.
//!
//! verifying key: magic (8) ‖ curve (8) ‖ origin (90) ‖ circuit identity (32) ‖ inputs, challenges, derived (4 each) ‖
//! hash of the constraint system (32) ‖ \[α\]₁ ‖ \[β\]₂ ‖ \[δ\]₂ ‖ \[σ\]₂ ‖ \[Kᵢ\]₁ of the public variables.
//!
//! proving key: magic (8) ‖ origin's word (16) ‖ length of the verifying key (4) ‖ verifying key ‖ then each list with
//! its length (4) in front, in the order of the fields.

use ark_ec::{AffineRepr, pairing::Pairing};
use ark_ff::{Field, PrimeField};
use ark_serialize::Compress;

use super::origin::ORIGIN_BYTES;
use super::{Origin, ProvingKey, Query, Specific, VerifyingKey};
use crate::circuit::Shape;
use crate::points::{self, PointError};
use crate::{hash, par, tags};

const VERIFYING_MAGIC: &[u8; 8] = b"BFG16VK2";
const PROVING_MAGIC: &[u8; 8] = b"BFG16PK2";

/// Why bytes are not a key; take the file again from where the deployment names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not a key file of this version.
    #[error("not a {0} of this version")]
    Magic(&'static str),
    /// A key over another curve.
    #[error("the key is over another curve")]
    Curve,
    /// The file ends before the key does.
    #[error("the key is cut short")]
    Truncated,
    /// Bytes follow the end of the key.
    #[error("{0} bytes follow the end of the key")]
    Trailing(usize),
    /// A header that no key has.
    #[error("the key's header is malformed: {0}")]
    Header(&'static str),
    /// A point that is not one.
    #[error("{0} of the key: {1}")]
    Point(&'static str, PointError),
    /// A point at infinity where there must be none.
    #[error("{0} of the key is the point at infinity")]
    Infinity(&'static str),
    /// Other bytes than the pinned ones.
    #[error("the key's hash is not the pinned one")]
    Hash,
}

/// Which curve a file is for.
pub(crate) fn curve_mark<E: Pairing>() -> [u8; 8] {
    let generator = points::compressed(&E::G1Affine::generator());
    let twin = points::compressed(&E::G2Affine::generator());
    let modulus = (-E::ScalarField::ONE).into_bigint().to_string();
    let hash = hash::sha256(&[tags::CURVE, modulus.as_bytes(), &generator, &twin]);
    let mut mark = [0; 8];
    mark.copy_from_slice(&hash[..8]);
    mark
}

/// Reads from the front of a slice.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], KeyError> {
        let (head, rest) = self.0.split_at_checked(count).ok_or(KeyError::Truncated)?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], KeyError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, KeyError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn point<G: AffineRepr>(
        &mut self,
        name: &'static str,
        compress: Compress,
    ) -> Result<G, KeyError> {
        points::read(self.take(points::size::<G>(compress))?, compress)
            .map_err(|error| KeyError::Point(name, error))
    }

    /// A point that is not the one at infinity.
    fn proper<G: AffineRepr>(&mut self, name: &'static str, compress: Compress) -> Result<G, KeyError> {
        let point: G = self.point(name, compress)?;
        if point.is_zero() { Err(KeyError::Infinity(name)) } else { Ok(point) }
    }

    /// `count` uncompressed points, read on all threads.
    fn points<G: AffineRepr>(
        &mut self,
        name: &'static str,
        count: usize,
        checked: bool,
    ) -> Result<Vec<G>, KeyError> {
        let size = points::size::<G>(Compress::No);
        let bytes = self.take(count.checked_mul(size).ok_or(KeyError::Truncated)?)?;
        let read = if checked { points::read::<G> } else { points::read_unchecked::<G> };
        let parts = par::pieces(count, 4, 256, |range| {
            bytes[range.start * size..range.end * size]
                .chunks_exact(size)
                .map(|bytes| read(bytes, Compress::No))
                .collect::<Result<Vec<G>, _>>()
        });
        let mut out = Vec::with_capacity(count);
        for part in parts {
            out.extend(part.map_err(|error| KeyError::Point(name, error))?);
        }
        Ok(out)
    }

    pub(crate) fn counted<G: AffineRepr>(
        &mut self,
        name: &'static str,
        checked: bool,
    ) -> Result<Vec<G>, KeyError> {
        let count = self.u32()? as usize;
        self.points(name, count, checked)
    }

    pub(crate) fn end(&self) -> Result<(), KeyError> {
        if self.0.is_empty() { Ok(()) } else { Err(KeyError::Trailing(self.0.len())) }
    }
}

impl<E: Pairing> VerifyingKey<E> {
    /// The encoding described at the top of this file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(VERIFYING_MAGIC);
        out.extend(curve_mark::<E>());
        out.extend(self.origin.encode());
        out.extend(self.shape.id);
        for count in [self.shape.inputs, self.shape.challenges, self.shape.derived] {
            out.extend((count as u32).to_be_bytes());
        }
        out.extend(self.circuit);
        points::write(&mut out, &self.alpha, Compress::Yes);
        for point in [&self.beta, &self.delta, &self.sigma] {
            points::write(&mut out, point, Compress::Yes);
        }
        for point in &self.public {
            points::write(&mut out, point, Compress::Yes);
        }
        out
    }

    /// Decodes a key and checks every point. Whether it belongs to a circuit and to a ceremony is for
    /// [`crate::setup`] to say, or for the hash that a deployment pins.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, KeyError> {
        let mut reader = Reader(bytes);
        if reader.array()? != *VERIFYING_MAGIC {
            return Err(KeyError::Magic("verifying key"));
        }
        if reader.array()? != curve_mark::<E>() {
            return Err(KeyError::Curve);
        }
        let origin =
            Origin::decode(&reader.array::<ORIGIN_BYTES>()?).ok_or(KeyError::Header("unknown origin"))?;
        let id = reader.array()?;
        let [inputs, challenges, derived] = [reader.u32()?, reader.u32()?, reader.u32()?].map(|n| n as usize);
        if [inputs, challenges, derived].iter().any(|count| *count > bytes.len()) {
            return Err(KeyError::Truncated);
        }
        let shape = Shape { id, inputs, challenges, derived };
        let circuit = reader.array()?;
        let alpha = reader.proper("[α]₁", Compress::Yes)?;
        let beta = reader.proper("[β]₂", Compress::Yes)?;
        let delta = reader.proper("[δ]₂", Compress::Yes)?;
        let sigma = reader.proper("[σ]₂", Compress::Yes)?;
        let size = points::size::<E::G1Affine>(Compress::Yes);
        if reader.0.len() / size < shape.public() {
            return Err(KeyError::Truncated);
        }
        let public = (0..shape.public())
            .map(|_| reader.point("a public input's point", Compress::Yes))
            .collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Self { origin, shape, circuit, alpha, beta, delta, sigma, public })
    }
}

impl<E: Pairing> ProvingKey<E> {
    /// The encoding described at the top of this file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let verifying = self.verifying.encode();
        out.extend(PROVING_MAGIC);
        out.extend(&self.verifying.origin.encode()[..16]);
        out.extend((verifying.len() as u32).to_be_bytes());
        out.extend(verifying);
        write_points(&mut out, &[self.beta, self.delta]);
        write_query(&mut out, &self.a);
        write_query(&mut out, &self.b);
        write_points(&mut out, &self.b_g1);
        write_points(&mut out, &self.committed);
        self.specific.write(&mut out);
        out
    }

    /// Hash of the encoded key: what a deployment pins. Hashes some tens of megabytes.
    pub fn hash(&self) -> [u8; 32] {
        hash::sha256(&[tags::PROVING_KEY, &self.encode()])
    }

    /// Decodes a key whose hash is pinned; its points are not checked one by one.
    ///
    /// # Errors
    /// [`KeyError::Hash`] where the bytes are not the pinned ones, else as [`Self::decode`].
    pub fn decode_pinned(bytes: &[u8], hash: &[u8; 32]) -> Result<Self, KeyError> {
        if hash::sha256(&[tags::PROVING_KEY, bytes]) != *hash {
            return Err(KeyError::Hash);
        }
        Self::read(bytes, false)
    }

    /// Decodes a key and checks every point for curve and subgroup. That all of them hang together is for
    /// [`crate::setup`] to say.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, KeyError> {
        Self::read(bytes, true)
    }

    fn read(bytes: &[u8], checked: bool) -> Result<Self, KeyError> {
        let mut reader = Reader(bytes);
        if reader.array()? != *PROVING_MAGIC {
            return Err(KeyError::Magic("proving key"));
        }
        let word: [u8; 16] = reader.array()?;
        let length = reader.u32()? as usize;
        let verifying = VerifyingKey::decode(reader.take(length)?)?;
        if verifying.origin.encode()[..16] != word {
            return Err(KeyError::Header("two origins"));
        }
        let singles: Vec<E::G1Affine> = reader.counted("[β]₁ or [δ]₁", checked)?;
        let [beta, delta] = singles[..] else {
            return Err(KeyError::Header("[β]₁ and [δ]₁ are two points"));
        };
        let a = read_query(&mut reader, "[u]₁", checked)?;
        let b = read_query(&mut reader, "[v]₂", checked)?;
        let b_g1 = reader.counted("[v]₁", checked)?;
        let committed = reader.counted("[K]₁", checked)?;
        let specific = Specific::read(&mut reader, checked)?;
        reader.end()?;
        if b_g1.len() != b.points.len() || specific.knowledge.len() != committed.len() {
            return Err(KeyError::Header("lists of different lengths"));
        }
        Ok(Self { verifying, beta, delta, a, b, b_g1, specific, committed })
    }
}

impl<E: Pairing> Specific<E> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        write_points(out, &self.quotient);
        write_points(out, &self.private);
        write_points(out, &[self.unblind, self.knowledge_blinding]);
        write_points(out, &self.knowledge);
    }

    pub(crate) fn read(reader: &mut Reader<'_>, checked: bool) -> Result<Self, KeyError> {
        let quotient = reader.counted("[τⁱZ/δ]₁", checked)?;
        let private = reader.counted("[K/δ]₁", checked)?;
        let pair: Vec<E::G1Affine> = reader.counted("[η/δ]₁ or [ση]₁", checked)?;
        let [unblind, knowledge_blinding] = pair[..] else {
            return Err(KeyError::Header("[η/δ]₁ and [ση]₁ are two points"));
        };
        let knowledge = reader.counted("[σK]₁", checked)?;
        Ok(Self { quotient, private, unblind, knowledge, knowledge_blinding })
    }
}

pub(crate) fn write_points<G: AffineRepr>(out: &mut Vec<u8>, points: &[G]) {
    out.extend((points.len() as u32).to_be_bytes());
    for point in points {
        points::write(out, point, Compress::No);
    }
}

fn write_query<G: AffineRepr>(out: &mut Vec<u8>, query: &Query<G>) {
    write_points(out, &query.points);
    for variable in &query.variables {
        out.extend(variable.to_be_bytes());
    }
}

fn read_query<G: AffineRepr>(
    reader: &mut Reader<'_>,
    name: &'static str,
    checked: bool,
) -> Result<Query<G>, KeyError> {
    let points: Vec<G> = reader.counted(name, checked)?;
    let variables: Vec<u32> = (0..points.len()).map(|_| reader.u32()).collect::<Result<_, _>>()?;
    if !variables.is_sorted_by(|a, b| a < b) {
        return Err(KeyError::Header("variables out of order"));
    }
    Ok(Query { variables, points })
}
