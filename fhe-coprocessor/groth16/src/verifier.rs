//! Checking one proof.

use ark_ec::pairing::{MillerLoopOutput, Pairing, PairingOutput};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{Field, One};

use crate::challenge::{self, StatementError};
use crate::circuit::Statement;
use crate::key::VerifyingKey;
use crate::windows::Windows;
use crate::{Proof, hash, tags};

/// Why a proof was refused; its sender is at fault, except for [`VerifyError::Statement`], where the caller is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The statement does not fit the circuit.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// The opening of D is not proved: e(D, \[σ\]₂) ≠ e(proof of knowledge, \[1\]₂).
    #[error("the opening of the proof's commitment is not proved")]
    Knowledge,
    /// The equation of Groth16 does not hold for this statement.
    #[error("the proof does not verify for this statement")]
    Equation,
}

/// A verifying key with what can be computed ahead.
pub struct Verifier<E: Pairing> {
    pub(crate) key: VerifyingKey<E>,
    pub(crate) key_hash: [u8; 32],
    pub(crate) delta: E::G2Prepared,
    pub(crate) sigma: E::G2Prepared,
    pub(crate) one: E::G2Prepared,
    alpha_beta: PairingOutput<E>,
    public: Windows<E::G1Affine>,
}

impl<E: Pairing> Verifier<E> {
    /// Prepares a key: one pairing, the lines of three points of G2, and 92 KB of multiples (over BLS12-381) of each
    /// public variable's point.
    pub fn new(key: VerifyingKey<E>) -> Self {
        let key_hash = key.hash();
        let alpha_beta = E::pairing(key.alpha, key.beta);
        let (delta, sigma) = (key.delta.into(), key.sigma.into());
        let public = Windows::new(&key.public);
        Self { key, key_hash, delta, sigma, one: E::G2Affine::generator().into(), alpha_beta, public }
    }

    /// The key.
    pub fn key(&self) -> &VerifyingKey<E> {
        &self.key
    }

    /// Hash of the key.
    pub fn key_hash(&self) -> &[u8; 32] {
        &self.key_hash
    }

    /// Verifies one proof: the challenges, 64 additions in G1 for each public input of full size, two multiplications
    /// by 128 bits, four Miller loops and one final exponentiation.
    ///
    /// # Errors
    /// [`VerifyError`].
    pub fn verify(
        &self,
        statement: &(impl Statement<E::ScalarField> + ?Sized),
        proof: &Proof<E>,
    ) -> Result<(), VerifyError> {
        let public = challenge::public(&self.key_hash, &self.key.shape, statement, &proof.commitment)?;
        let sum = self.public.sum(&public) + proof.commitment;
        // Both equations at once: e(A, B) = e(α, β)·e(Σ xᵢ·Kᵢ + D, 1)·e(C, δ), and e(D, σ) = e(π, 1) to a weight that
        // is fixed only after the proof is.
        let weight = self.weight(&statement.digest(), proof);
        let rest = -(sum + proof.knowledge * weight);
        let a: [E::G1Affine; 4] = [
            proof.a,
            (-proof.c.into_group()).into_affine(),
            rest.into_affine(),
            (proof.commitment * weight).into_affine(),
        ];
        let b: [E::G2Prepared; 4] =
            [proof.b.into(), self.delta.clone(), self.one.clone(), self.sigma.clone()];
        match E::final_exponentiation(E::multi_miller_loop(a, b)) {
            Some(product) if product == self.alpha_beta => Ok(()),
            _ => Err(self.reason(proof)),
        }
    }

    /// Which equation of a refused proof fails.
    pub(crate) fn reason(&self, proof: &Proof<E>) -> VerifyError {
        let minus = (-proof.knowledge.into_group()).into_affine();
        let loops: MillerLoopOutput<E> =
            E::multi_miller_loop([proof.commitment, minus], [self.sigma.clone(), self.one.clone()]);
        match E::final_exponentiation(loops) {
            Some(product) if product.0.is_one() => VerifyError::Equation,
            _ => VerifyError::Knowledge,
        }
    }

    fn weight(&self, digest: &[u8; 32], proof: &Proof<E>) -> E::ScalarField {
        let hash = hash::sha256(&[tags::WEIGHT, &self.key_hash, digest, &proof.encode()]);
        let mut half = [0; 16];
        half.copy_from_slice(&hash[..16]);
        E::ScalarField::from(u128::from_le_bytes(half))
    }
}

/// Whether a product of Miller loops ends at 1.
pub(crate) fn is_one<E: Pairing>(loops: E::TargetField) -> bool {
    E::final_exponentiation(MillerLoopOutput(loops)).is_some_and(|product| product.0 == E::TargetField::ONE)
}
