//! Making proofs.

use ark_ec::{AffineRepr, CurveGroup, pairing::Pairing};
use ark_ff::PrimeField;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::challenge::{self, StatementError};
use crate::circuit::{Circuit, Statement};
use crate::key::{ProvingKey, Query};
use crate::qap::{self, DomainError, Unsatisfied};
use crate::r1cs::{R1cs, Synthesis, SynthesisError};
use crate::{Curve, Proof, hash, par};

/// Why a prover cannot be made; take the key of this circuit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProverError {
    /// The circuit cannot be written down.
    #[error(transparent)]
    Synthesis(#[from] SynthesisError),
    /// The circuit is too large for the field.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The key was made for another circuit, or another version of it.
    #[error("the proving key is for another circuit: take the key of this version")]
    Circuit,
    /// The key's lists have other lengths than the circuit asks for.
    #[error("the proving key is damaged: {0}")]
    Key(&'static str),
}

/// Why there is no proof; the caller's statement or witness is at fault, or the circuit's code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProveError {
    /// The statement does not fit the circuit.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// The circuit refused the witness.
    #[error(transparent)]
    Synthesis(#[from] SynthesisError),
    /// The circuit asked for other variables or rows than when it was recorded.
    #[error("the circuit asks for other variables with a witness than without: a fault of its code")]
    Structure,
    /// The witness does not satisfy the circuit.
    #[error("the witness does not satisfy constraint {0}")]
    Unsatisfied(usize),
}

/// How far a proof is; told before each part begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Committing to the first part of the witness.
    Commit,
    /// The part of the witness that is not committed is computed.
    Witness,
    /// The quotient polynomial is computed.
    Quotient,
    /// The sums over the key: the longest part.
    Sums,
}

/// A circuit with its key, ready to make proofs.
pub struct Prover<E: Pairing, C> {
    circuit: C,
    r1cs: R1cs<E::ScalarField>,
    domain: Radix2EvaluationDomain<E::ScalarField>,
    key: ProvingKey<E>,
    key_hash: [u8; 32],
    blinding_base: E::G1Affine,
}

impl<E: Curve, C: Circuit<E::ScalarField>> Prover<E, C> {
    /// Records the circuit's rows and checks that the key is for them.
    ///
    /// # Errors
    /// [`ProverError`].
    pub fn new(circuit: C, key: ProvingKey<E>) -> Result<Self, ProverError> {
        let r1cs = R1cs::of(&circuit)?;
        let domain = qap::domain(&r1cs)?;
        if key.verifying.circuit != *r1cs.digest() || key.verifying.shape != *r1cs.shape() {
            return Err(ProverError::Circuit);
        }
        let below = |query: &[u32]| query.last().is_none_or(|last| (*last as usize) < r1cs.variables());
        for (holds, what) in [
            (key.specific.quotient.len() == domain.size() - 1, "[τⁱZ/δ]₁"),
            (key.specific.private.len() == r1cs.private(), "[K/δ]₁"),
            (key.committed.len() == r1cs.committed(), "[K]₁"),
            (key.specific.knowledge.len() == r1cs.committed(), "[σK]₁"),
            (below(&key.a.variables), "[u]₁"),
            (below(&key.b.variables) && key.b.points.len() == key.b_g1.len(), "[v]₂"),
        ] {
            if !holds {
                return Err(ProverError::Key(what));
            }
        }
        let key_hash = key.verifying.hash();
        Ok(Self { circuit, r1cs, domain, key, key_hash, blinding_base: ProvingKey::<E>::blinding_base() })
    }

    /// The circuit's rows, recorded once.
    pub fn r1cs(&self) -> &R1cs<E::ScalarField> {
        &self.r1cs
    }

    /// The proving key of the circuit.
    pub fn key(&self) -> &ProvingKey<E> {
        &self.key
    }

    /// Proves that the witness satisfies the circuit for the statement.
    ///
    /// Seven transforms of the domain's size n; sums over the key of n full-size scalars, of the private part once, of
    /// the whole witness in both groups, of the committed part twice. Variable time in the witness: meant for a machine
    /// that only its owner watches.
    ///
    /// # Errors
    /// [`ProveError`]; nothing about the witness but the number of a row is told.
    pub fn prove(
        &self,
        statement: &C::Statement,
        witness: &C::Witness,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<Proof<E>, ProveError> {
        self.prove_with(statement, witness, rng, &mut |_| ())
    }

    /// The same, telling how far it is.
    ///
    /// # Errors
    /// As [`Self::prove`].
    pub fn prove_with(
        &self,
        statement: &C::Statement,
        witness: &C::Witness,
        rng: &mut (impl CryptoRng + ?Sized),
        progress: &mut dyn FnMut(Stage),
    ) -> Result<Proof<E>, ProveError> {
        progress(Stage::Commit);
        let shape = self.r1cs.shape();
        let inputs = challenge::inputs(shape, statement)?;
        let mut cs = Synthesis::assign(*shape, &inputs, self.r1cs.variables());
        let committed = self.circuit.commit(&mut cs, Some(witness))?;
        if cs.committed_values().len() != self.r1cs.committed() {
            return Err(ProveError::Structure);
        }
        let blinding = Zeroizing::new(hash::random::<E::ScalarField>(rng));
        let (commitment, knowledge) = self.commit(cs.committed_values(), *blinding);

        progress(Stage::Witness);
        let digest = statement.digest();
        let challenges = challenge::challenges(&self.key_hash, shape, &digest, &inputs, &commitment);
        let derived = challenge::derived(shape, statement, &challenges)?;
        cs.set_challenges(&challenges, &derived);
        self.circuit.constrain(&mut cs, committed, Some(witness))?;
        let (committed, private, rows, z) = cs.into_values();
        let asked = (committed, private, rows);
        if asked != (self.r1cs.committed(), self.r1cs.private(), self.r1cs.constraints()) {
            return Err(ProveError::Structure);
        }

        progress(Stage::Quotient);
        let quotient = qap::quotient(&self.r1cs, &self.domain, &z)
            .map_err(|Unsatisfied(row)| ProveError::Unsatisfied(row))?;

        progress(Stage::Sums);
        let [r, s] = [(); 2].map(|()| Zeroizing::new(hash::random::<E::ScalarField>(rng)));
        let (a, b, c) = self.sums(&z, &quotient, *r, *s, *blinding);
        Ok(Proof { a, b, c, commitment, knowledge })
    }

    /// D = Σ zᵢ·Kᵢ + ρ·η and σ·D, in the group.
    fn commit(&self, values: &[E::ScalarField], blinding: E::ScalarField) -> (E::G1Affine, E::G1Affine) {
        let scalars = integers(values);
        let (key, base) = (&self.key, self.blinding_base);
        let specific = &key.specific;
        let (commitment, knowledge) = par::join(
            || E::sum_g1(&key.committed, &scalars) + base * blinding,
            || E::sum_g1(&specific.knowledge, &scalars) + specific.knowledge_blinding * blinding,
        );
        (commitment.into_affine(), knowledge.into_affine())
    }

    /// A, B and C.
    fn sums(
        &self,
        z: &[E::ScalarField],
        quotient: &[E::ScalarField],
        r: E::ScalarField,
        s: E::ScalarField,
        blinding: E::ScalarField,
    ) -> (E::G1Affine, E::G2Affine, E::G1Affine) {
        let key = &self.key;
        let quotient = integers(quotient);
        let z = integers(z);
        let private = &z[z.len() - self.r1cs.private()..];
        let at_b = gather(&key.b, &z);
        let ((a, b_g1), (b, (quotient, private))) = par::join(
            || {
                let a = E::sum_g1(&key.a.points, &gather(&key.a, &z));
                (
                    a + key.verifying.alpha + key.delta * r,
                    E::sum_g1(&key.b_g1, &at_b) + key.beta + key.delta * s,
                )
            },
            || {
                let b = E::sum_g2(&key.b.points, &at_b) + key.verifying.beta + key.verifying.delta * s;
                let quotient = E::sum_g1(&key.specific.quotient, &quotient);
                (b, (quotient, E::sum_g1(&key.specific.private, private)))
            },
        );
        let c = private + quotient + a * s + b_g1 * r - key.delta * (r * s) - key.specific.unblind * blinding;
        (a.into_affine(), b.into_affine(), c.into_affine())
    }
}

fn integers<F: PrimeField>(values: &[F]) -> Zeroizing<Vec<F::BigInt>> {
    Zeroizing::new(values.iter().map(|value| value.into_bigint()).collect())
}

/// The values at the variables of a query.
fn gather<G: AffineRepr>(
    query: &Query<G>,
    z: &[<G::ScalarField as PrimeField>::BigInt],
) -> Zeroizing<Vec<<G::ScalarField as PrimeField>::BigInt>> {
    Zeroizing::new(query.variables.iter().map(|variable| z[*variable as usize]).collect())
}
