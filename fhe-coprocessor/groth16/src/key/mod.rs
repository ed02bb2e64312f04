//! The two keys of a circuit.

mod encoding;
mod origin;

use ark_ec::{AffineRepr, pairing::Pairing};

pub use encoding::KeyError;
pub use origin::{Origin, OriginError, PhaseOrigin};

use crate::circuit::Shape;
use crate::{hash, tags};

pub(crate) use encoding::{Reader, curve_mark, write_points};

/// What verifiers hold. γ is 1 throughout, so its point is the generator of G2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyingKey<E: Pairing> {
    pub(crate) origin: Origin,
    pub(crate) shape: Shape,
    /// Hash of the constraint system.
    pub(crate) circuit: [u8; 32],
    /// \[α\]₁
    pub(crate) alpha: E::G1Affine,
    /// \[β\]₂
    pub(crate) beta: E::G2Affine,
    /// \[δ\]₂
    pub(crate) delta: E::G2Affine,
    /// \[σ\]₂, of the proof of knowledge.
    pub(crate) sigma: E::G2Affine,
    /// \[Kᵢ\]₁ of the public variables, the constant 1 first.
    pub(crate) public: Vec<E::G1Affine>,
}

impl<E: Pairing> VerifyingKey<E> {
    /// Where the key comes from. Production settings must call [`Origin::require_ceremony`] on it.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Identity and public counts of its circuit.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Hash of the constraint system it was made for: [`crate::R1cs::digest`].
    pub fn circuit(&self) -> &[u8; 32] {
        &self.circuit
    }

    /// Hash of the encoded key: what a deployment pins, and part of every challenge.
    pub fn hash(&self) -> [u8; 32] {
        hash::sha256(&[tags::VERIFYING_KEY, &self.encode()])
    }
}

/// Points at the variables whose polynomial is not zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query<G> {
    pub(crate) variables: Vec<u32>,
    pub(crate) points: Vec<G>,
}

/// What provers hold for one circuit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvingKey<E: Pairing> {
    pub(crate) verifying: VerifyingKey<E>,
    /// \[β\]₁
    pub(crate) beta: E::G1Affine,
    /// \[δ\]₁
    pub(crate) delta: E::G1Affine,
    /// \[uᵢ\]₁
    pub(crate) a: Query<E::G1Affine>,
    /// \[vᵢ\]₂; the same variables as `b_g1`.
    pub(crate) b: Query<E::G2Affine>,
    /// \[vᵢ\]₁
    pub(crate) b_g1: Vec<E::G1Affine>,
    /// The elements that phase 2 of a set-up changes.
    pub(crate) specific: Specific<E>,
    /// \[Kᵢ\]₁ of the committed variables.
    pub(crate) committed: Vec<E::G1Affine>,
}

/// The elements of a proving key that depend on δ and σ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Specific<E: Pairing> {
    /// \[τⁱ·Z(τ)/δ\]₁, i ≤ n − 2
    pub(crate) quotient: Vec<E::G1Affine>,
    /// \[Kᵢ/δ\]₁ of the private variables.
    pub(crate) private: Vec<E::G1Affine>,
    /// \[η/δ\]₁, which takes the commitment's blinding out again.
    pub(crate) unblind: E::G1Affine,
    /// \[σ·Kᵢ\]₁ of the committed variables.
    pub(crate) knowledge: Vec<E::G1Affine>,
    /// \[σ·η\]₁
    pub(crate) knowledge_blinding: E::G1Affine,
}

impl<E: Pairing> ProvingKey<E> {
    /// The part of the key that verifiers hold.
    pub fn verifying(&self) -> &VerifyingKey<E> {
        &self.verifying
    }

    /// \[η\]₁, the base of the blinding: hashed to the curve, the same for all circuits.
    pub(crate) fn blinding_base() -> E::G1Affine {
        hash::blinding_base()
    }
}

/// The variables at which a vector of points or scalars is not zero.
pub(crate) fn query<G: AffineRepr>(points: Vec<G>) -> Query<G> {
    let (variables, points) = points
        .into_iter()
        .enumerate()
        .filter(|(_, point)| !point.is_zero())
        .map(|(variable, point)| (variable as u32, point))
        .unzip();
    Query { variables, points }
}
