//! Checking one proof.

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::Field;

use crate::challenge::{self, StatementError};
use crate::circuit::Statement;
use crate::key::VerifyingKey;
use crate::windows::Windows;
use crate::{Curve, Proof, hash, tags};

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
pub struct Verifier<E: Curve> {
    pub(crate) key: VerifyingKey<E>,
    pub(crate) key_hash: [u8; 32],
    /// e(−α, β) before the final exponentiation.
    alpha_beta: E::TargetField,
    pub(crate) lines: KeyLines<E>,
    pub(crate) public: Windows<E::G1Affine>,
    pub(crate) alpha: Windows<E::G1Affine>,
}

/// The key's points of G2, and 1, with their lines: 20 KB each over BLS12-381.
pub(crate) struct KeyLines<E: Curve> {
    pub(crate) beta: E::G2Prepared,
    pub(crate) delta: E::G2Prepared,
    pub(crate) sigma: E::G2Prepared,
    pub(crate) one: E::G2Prepared,
}

impl<E: Curve> Verifier<E> {
    /// Prepares a key: one Miller loop, the lines of four points, and 92 KB of multiples (over BLS12-381) of each public
    /// variable's point.
    pub fn new(key: VerifyingKey<E>) -> Self {
        let key_hash = key.hash();
        let alpha_beta = E::miller_loops(&[(negated(key.alpha), key.beta)]);
        let one = E::G2Affine::generator();
        let [beta, delta, sigma, one] = [key.beta, key.delta, key.sigma, one].map(E::G2Prepared::from);
        let lines = KeyLines { beta, delta, sigma, one };
        let (public, alpha) = (Windows::new(&key.public), Windows::new(&[key.alpha]));
        Self { key, key_hash, alpha_beta, lines, public, alpha }
    }

    /// The verifying key of the circuit.
    pub fn key(&self) -> &VerifyingKey<E> {
        &self.key
    }

    /// Hash of the verifying key, 32 bytes.
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
        // It is fixed only after the proof is.
        let weight = self.weight(&statement.digest(), proof);
        if self.holds(&public, proof, weight) { Ok(()) } else { Err(self.reason(proof)) }
    }

    /// Both equations at once: e(A, B) = e(α, β)·e(Σ xᵢ·Kᵢ + D, 1)·e(C, δ), and e(D, σ) = e(π, 1) to a weight that nobody
    /// knew before the proof was made.
    pub(crate) fn holds(&self, public: &[E::ScalarField], proof: &Proof<E>, weight: u128) -> bool {
        let weighed = E::weigh(&[proof.knowledge, proof.commitment], &[weight; 2]);
        self.product_is_one(public, proof, weighed[0], &[(weighed[1], &self.lines.sigma)])
    }

    /// The first of them alone.
    pub(crate) fn equation_holds(&self, public: &[E::ScalarField], proof: &Proof<E>) -> bool {
        self.product_is_one(public, proof, E::G1Affine::zero(), &[])
    }

    fn product_is_one(
        &self,
        public: &[E::ScalarField],
        proof: &Proof<E>,
        against_one: E::G1Affine,
        more: &[(E::G1Affine, &E::G2Prepared)],
    ) -> bool {
        let rest = -(E::add_all(&self.public.terms(public)) + proof.commitment + against_one);
        let prepared =
            [&[(negated(proof.c), &self.lines.delta), (rest.into_affine(), &self.lines.one)], more];
        let loops = E::prepared_loops(&[(proof.a, proof.b)], &prepared.concat());
        E::finish(loops * self.alpha_beta) == E::TargetField::ONE
    }

    /// Which equation of a refused proof fails.
    pub(crate) fn reason(&self, proof: &Proof<E>) -> VerifyError {
        let pairs = [(proof.commitment, &self.lines.sigma), (negated(proof.knowledge), &self.lines.one)];
        match E::finish(E::prepared_loops(&[], &pairs)) == E::TargetField::ONE {
            true => VerifyError::Equation,
            false => VerifyError::Knowledge,
        }
    }

    fn weight(&self, digest: &[u8; 32], proof: &Proof<E>) -> u128 {
        let hash = hash::sha256(&[tags::WEIGHT, &self.key_hash, digest, &proof.encode()]);
        let mut half = [0; 16];
        half.copy_from_slice(&hash[..16]);
        u128::from_le_bytes(half)
    }
}

fn negated<G: AffineRepr>(point: G) -> G {
    (-point.into_group()).into_affine()
}
