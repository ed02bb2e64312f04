//! Circuits whose code is at fault.

use ark_bls12_381::Fr;
use ark_ff::AdditiveGroup;

use super::{Bls, rng};
use crate::setup::development;
use crate::{
    Circuit, ProveError, Prover, R1cs, Shape, Statement, Synthesis, SynthesisError, Variable, VerifyError,
};

#[derive(Clone, Copy, PartialEq)]
enum Misdeed {
    None,
    MorePrivate,
    MoreCommitted,
    MoreRows,
    NoValue,
    EarlyChallenge,
    ManyChallenges,
    ManyInputs,
}

struct Faulty(Misdeed);

struct Empty;

impl Statement<Fr> for Empty {
    fn digest(&self) -> [u8; 32] {
        [0; 32]
    }

    fn inputs(&self) -> Vec<Fr> {
        Vec::new()
    }

    fn derived(&self, _: &[Fr]) -> Vec<Fr> {
        Vec::new()
    }
}

impl Circuit<Fr> for Faulty {
    type Statement = Empty;
    type Witness = ();
    type Committed = Variable;

    fn shape(&self) -> Shape {
        let challenges = if self.0 == Misdeed::ManyChallenges { 171 } else { 1 };
        let inputs = if self.0 == Misdeed::ManyInputs { usize::MAX } else { 0 };
        Shape { id: [0; 32], inputs, challenges, derived: 0 }
    }

    fn commit(&self, cs: &mut Synthesis<Fr>, witness: Option<&()>) -> Result<Variable, SynthesisError> {
        let value = match self.0 {
            Misdeed::NoValue => None,
            Misdeed::EarlyChallenge => cs.value(cs.challenge(0)),
            _ => witness.map(|()| Fr::ZERO),
        };
        if self.0 == Misdeed::MoreCommitted && witness.is_some() {
            cs.witness(Some(Fr::ZERO))?;
        }
        cs.witness(value)
    }

    fn constrain(
        &self,
        cs: &mut Synthesis<Fr>,
        zero: Variable,
        witness: Option<&()>,
    ) -> Result<(), SynthesisError> {
        assert_eq!(cs.value(cs.challenge(0)).is_some(), witness.is_some(), "now it has a value");
        if self.0 == Misdeed::MorePrivate && witness.is_some() {
            cs.witness(Some(Fr::ZERO))?;
        }
        if self.0 == Misdeed::MoreRows && witness.is_some() {
            cs.enforce(zero, zero, zero)?;
        }
        cs.product(zero, cs.challenge(0)).map(|_| ())
    }
}

#[test]
fn faults_of_a_circuit_are_named() {
    for (misdeed, want) in [
        (Misdeed::None, None),
        (Misdeed::MorePrivate, Some(ProveError::Structure)),
        (Misdeed::MoreCommitted, Some(ProveError::Structure)),
        (Misdeed::MoreRows, Some(ProveError::Structure)),
        (Misdeed::NoValue, Some(SynthesisError::MissingValue(2).into())),
        (Misdeed::EarlyChallenge, Some(SynthesisError::MissingValue(2).into())),
    ] {
        let circuit = Faulty(misdeed);
        let key = development::<Bls, _>(&circuit, &[0; 32]).unwrap();
        let verifier = crate::Verifier::new(key.verifying().clone());
        let proof = Prover::new(circuit, key).unwrap().prove(&Empty, &(), &mut rng(1));
        match want {
            None => assert_eq!(verifier.verify(&Empty, &proof.unwrap()), Ok::<(), VerifyError>(())),
            Some(error) => assert_eq!(proof, Err(error)),
        }
    }
    for (misdeed, what) in [(Misdeed::ManyChallenges, "challenges"), (Misdeed::ManyInputs, "public inputs")] {
        assert_eq!(R1cs::of(&Faulty(misdeed)).err(), Some(SynthesisError::TooLarge(what)));
    }
}
