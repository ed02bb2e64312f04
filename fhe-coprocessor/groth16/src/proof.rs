//! A proof and its bytes.

use ark_ec::pairing::Pairing;
use ark_serialize::Compress;

use crate::Curve;
use crate::points::{self, PointError};

/// A proof: A, B and C of Groth16, the commitment D and the proof that its opening is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof<E: Pairing> {
    pub(crate) a: E::G1Affine,
    pub(crate) b: E::G2Affine,
    pub(crate) c: E::G1Affine,
    pub(crate) commitment: E::G1Affine,
    pub(crate) knowledge: E::G1Affine,
}

/// One element of a proof, named in errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// A, the proof's first point.
    A,
    /// B, the proof's point of G2.
    B,
    /// C, the proof's third point.
    C,
    /// D, the commitment.
    Commitment,
    /// The proof of knowledge of D's opening.
    Knowledge,
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::Commitment => "commitment D",
            Self::Knowledge => "proof of knowledge",
        })
    }
}

/// Why bytes are not a proof; whoever sent them is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofDecodeError {
    /// Another number of bytes than a proof has.
    #[error("a proof has {want} bytes, these are {got}")]
    Length {
        /// How many bytes were given.
        got: usize,
        /// Bytes of a proof over this curve.
        want: usize,
    },
    /// An element is not a point of its group.
    #[error("element {0} of the proof: {1}")]
    Point(Element, PointError),
}

impl<E: Pairing> Proof<E> {
    /// Length of the encoding: 288 bytes over BLS12-381, 192 over BN254.
    pub fn encoded_len() -> usize {
        4 * points::size::<E::G1Affine>(Compress::Yes) + points::size::<E::G2Affine>(Compress::Yes)
    }

    /// A ‖ B ‖ C ‖ D ‖ proof of knowledge, each compressed.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::encoded_len());
        points::write(&mut out, &self.a, Compress::Yes);
        points::write(&mut out, &self.b, Compress::Yes);
        for point in [&self.c, &self.commitment, &self.knowledge] {
            points::write(&mut out, point, Compress::Yes);
        }
        out
    }

    /// D, the commitment from which the challenges follow.
    pub fn commitment(&self) -> &E::G1Affine {
        &self.commitment
    }
}

impl<E: Curve> Proof<E> {
    /// Decodes the one encoding of a proof and checks every point for curve and subgroup. Four square roots and checks
    /// in G1, one of each in G2.
    ///
    /// # Errors
    /// [`ProofDecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ProofDecodeError> {
        let want = Self::encoded_len();
        if bytes.len() != want {
            return Err(ProofDecodeError::Length { got: bytes.len(), want });
        }
        let g1 = points::size::<E::G1Affine>(Compress::Yes);
        let (first, rest) = bytes.split_at(g1);
        let (second, rest) = rest.split_at(points::size::<E::G2Affine>(Compress::Yes));
        let point = |element, bytes: &[u8]| {
            E::read_g1(bytes).map_err(|error| ProofDecodeError::Point(element, error))
        };
        Ok(Self {
            a: point(Element::A, first)?,
            b: E::read_g2(second).map_err(|error| ProofDecodeError::Point(Element::B, error))?,
            c: point(Element::C, &rest[..g1])?,
            commitment: point(Element::Commitment, &rest[g1..2 * g1])?,
            knowledge: point(Element::Knowledge, &rest[2 * g1..])?,
        })
    }
}
