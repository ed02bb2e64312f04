//! ark-groth16 as oracle: the same rows, the same decisions, and proofs that each side takes from the other.

use ark_ec::AffineRepr;
use ark_ff::{Field, PrimeField};
use ark_groth16::r1cs_to_qap::LibsnarkReduction;
use ark_groth16::{Groth16, prepare_verifying_key};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, LinearCombination, SynthesisError, Variable,
};

use super::circuits::{Chain, ChainStatement};
use super::{Bls, Bn, DEGREE, instance, product, rng};
use crate::key::Query;
use crate::setup::development;
use crate::{Curve, Proof, ProveError, Prover, R1cs, Verifier, challenge};

type Oracle<E> = Groth16<E, LibsnarkReduction>;

/// The recorded rows as a circuit of the oracle.
struct Rows<'a, F> {
    r1cs: &'a R1cs<F>,
    public: Vec<F>,
    witness: Vec<F>,
}

impl<F: PrimeField> ConstraintSynthesizer<F> for Rows<'_, F> {
    fn generate_constraints(self, cs: ConstraintSystemRef<F>) -> Result<(), SynthesisError> {
        let mut variables = vec![Variable::One];
        for value in &self.public {
            variables.push(cs.new_input_variable(|| Ok(*value))?);
        }
        for value in &self.witness {
            variables.push(cs.new_witness_variable(|| Ok(*value))?);
        }
        for row in 0..self.r1cs.constraints() {
            let [a, b, c] = self.r1cs.row(row).map(|sum| {
                sum.terms().iter().fold(LinearCombination::zero(), |all, (coefficient, variable)| {
                    all + (*coefficient, variables[variable.index()])
                })
            });
            cs.enforce_r1cs_constraint(|| a, || b, || c)?;
        }
        Ok(())
    }
}

/// Our key in the oracle's types; it keeps points at infinity.
fn converted<E: Curve>(prover: &Prover<E, Chain>) -> ark_groth16::ProvingKey<E>
where
    Chain: crate::Circuit<E::ScalarField>,
{
    fn dense<G: AffineRepr>(variables: &[u32], points: &[G], count: usize) -> Vec<G> {
        let mut out = vec![G::zero(); count];
        for (variable, point) in variables.iter().zip(points) {
            out[*variable as usize] = *point;
        }
        out
    }
    let (key, count) = (prover.key(), prover.r1cs().variables());
    let Query { variables, points } = &key.b;
    ark_groth16::ProvingKey {
        vk: ark_groth16::VerifyingKey {
            alpha_g1: key.verifying.alpha,
            beta_g2: key.verifying.beta,
            gamma_g2: E::G2Affine::generator(),
            delta_g2: key.verifying.delta,
            gamma_abc_g1: key.verifying.public.clone(),
        },
        beta_g1: key.beta,
        delta_g1: key.delta,
        a_query: dense(&key.a.variables, &key.a.points, count),
        b_g1_query: dense(variables, &key.b_g1, count),
        b_g2_query: dense(variables, points, count),
        h_query: key.specific.quotient.clone(),
        l_query: key.specific.private.clone(),
    }
}

fn agree<E: Curve>() {
    for length in [1, 5, 14, 40] {
        let circuit = Chain(length);
        let key = development::<E, _>(&circuit, &[9; 32]).unwrap();
        let verifier = Verifier::new(key.verifying().clone());
        let first = E::ScalarField::from(5u64);
        let (witness, last) = circuit.values(first);
        let prover = Prover::new(circuit, key).unwrap();
        let theirs = converted(&prover);
        let prepared = prepare_verifying_key(&theirs.vk);
        let rows = |public| Rows { r1cs: prover.r1cs(), public: vec![public], witness: witness.clone() };

        for (public, holds) in [(last, true), (last + E::ScalarField::ONE, false)] {
            let statement = ChainStatement(public);
            let cs = ConstraintSystem::new_ref();
            rows(public).generate_constraints(cs.clone()).unwrap();
            cs.finalize();
            assert_eq!(cs.is_satisfied().unwrap(), holds);
            let proof = prover.prove(&statement, &first, &mut rng(length as u64));
            assert_eq!(proof.is_ok(), holds);
            let Ok(proof) = proof else {
                assert_eq!(proof, Err(ProveError::Unsatisfied(length)));
                continue;
            };
            // Ours under their verifier, D added to the public sum.
            let inputs = Oracle::<E>::prepare_inputs(&prepared, &[public]).unwrap() + proof.commitment;
            let their_proof = ark_groth16::Proof { a: proof.a, b: proof.b, c: proof.c };
            assert!(
                Oracle::<E>::verify_proof_with_prepared_inputs(&prepared, &their_proof, &inputs).unwrap()
            );
            // Theirs under ours: no commitment is a commitment to nothing without blinding.
            let [r, s] = [3u64, 4].map(E::ScalarField::from);
            let made = Oracle::<E>::create_proof_with_reduction(rows(public), &theirs, r, s).unwrap();
            assert!(Oracle::<E>::verify_proof(&prepared, &made, &[public]).unwrap());
            let (commitment, knowledge) = (E::G1Affine::zero(), E::G1Affine::zero());
            let made = Proof { a: made.a, b: made.b, c: made.c, commitment, knowledge };
            assert_eq!(verifier.verify(&statement, &made), Ok(()));
            let wrong = ChainStatement(public + E::ScalarField::ONE);
            assert!(verifier.verify(&wrong, &made).is_err());
        }
    }
}

#[test]
fn decisions_and_proofs_agree_over_both_curves() {
    agree::<Bls>();
    agree::<Bn>();
}

#[test]
fn their_equation_takes_a_proof_with_a_commitment() {
    let (prover, _) = product::<Bls>("product", DEGREE);
    let (statement, witness) = instance(DEGREE, 2);
    let proof = prover.prove(&statement, &witness, &mut rng(3)).unwrap();
    let verifying = prover.key().verifying();
    let public =
        challenge::public(&verifying.hash(), verifying.shape(), &statement, proof.commitment()).unwrap();
    let theirs = ark_groth16::VerifyingKey::<Bls> {
        alpha_g1: verifying.alpha,
        beta_g2: verifying.beta,
        gamma_g2: ark_bls12_381::G2Affine::generator(),
        delta_g2: verifying.delta,
        gamma_abc_g1: verifying.public.clone(),
    };
    let prepared = prepare_verifying_key(&theirs);
    let sum = Oracle::<Bls>::prepare_inputs(&prepared, &public[1..]).unwrap() + proof.commitment;
    let their_proof = ark_groth16::Proof { a: proof.a, b: proof.b, c: proof.c };
    assert!(Oracle::<Bls>::verify_proof_with_prepared_inputs(&prepared, &their_proof, &sum).unwrap());
}
