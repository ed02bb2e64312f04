//! One proof: complete, and refused when anything is altered.

use ark_ec::{AffineRepr, CurveGroup, pairing::Pairing};

use super::{Bls, Bn, DEGREE, instance, product, rng};
use crate::{
    Circuit, Curve, Element, PointError, Proof, ProofDecodeError, ProveError, Stage, Statement,
    SynthesisError, VerifyError, challenge,
};

fn complete<E: Curve>() {
    for degree in [1, 2, DEGREE, 33] {
        let (prover, verifier) = product::<E>("product", degree);
        let (statement, witness) = instance(degree, 3);
        let mut stages = Vec::new();
        let proof =
            prover.prove_with(&statement, &witness, &mut rng(1), &mut |stage| stages.push(stage)).unwrap();
        assert_eq!(stages, [Stage::Commit, Stage::Witness, Stage::Quotient, Stage::Sums]);
        assert_eq!(verifier.verify(&statement, &proof), Ok(()), "degree {degree}");
        assert_eq!(Proof::decode(&proof.encode()), Ok(proof));
    }
}

#[test]
fn honest_proofs_verify_over_both_curves() {
    complete::<Bls>();
    complete::<Bn>();
    assert_eq!(Proof::<Bls>::encoded_len(), 288);
    assert_eq!(Proof::<Bn>::encoded_len(), 192);
}

fn altered<E: Curve>() {
    let (prover, verifier) = product::<E>("product", DEGREE);
    let (statement, witness) = instance(DEGREE, 3);
    let good = prover.prove(&statement, &witness, &mut rng(1)).unwrap();
    let one = E::G1Affine::generator();
    let shifted = |point: E::G1Affine| (point + one).into_affine();
    let refused = |alter: &dyn Fn(&mut Proof<E>), want: VerifyError| {
        let mut proof = good;
        alter(&mut proof);
        assert_eq!(verifier.verify(&statement, &proof), Err(want));
    };
    refused(&|proof| proof.a = shifted(proof.a), VerifyError::Equation);
    refused(&|proof| proof.b = (proof.b + E::G2Affine::generator()).into_affine(), VerifyError::Equation);
    refused(&|proof| proof.c = shifted(proof.c), VerifyError::Equation);
    refused(&|proof| proof.commitment = shifted(proof.commitment), VerifyError::Knowledge);
    refused(&|proof| proof.knowledge = shifted(proof.knowledge), VerifyError::Knowledge);
    refused(&|proof| proof.a = E::G1Affine::zero(), VerifyError::Equation);
    refused(&|proof| proof.commitment = E::G1Affine::zero(), VerifyError::Knowledge);

    // A commitment to something else in the span of the key, with its proof of knowledge: the challenge changes.
    let (other, other_witness) = instance(DEGREE, 4);
    let second = prover.prove(&other, &other_witness, &mut rng(2)).unwrap();
    refused(
        &|proof| (proof.commitment, proof.knowledge) = (second.commitment, second.knowledge),
        VerifyError::Equation,
    );
    // The blinding alone moved, with C adjusted so that the equation sees the same sum.
    let key = prover.key();
    let base = crate::ProvingKey::<E>::blinding_base();
    refused(
        &|proof| {
            proof.commitment = (proof.commitment + base).into_affine();
            proof.knowledge = (proof.knowledge + key.specific.knowledge_blinding).into_affine();
            proof.c = (proof.c.into_group() - key.specific.unblind).into_affine();
        },
        VerifyError::Equation,
    );
}

#[test]
fn an_altered_element_is_refused() {
    altered::<Bls>();
    altered::<Bn>();
}

#[test]
fn moving_the_blinding_is_invisible_to_the_equation_but_for_the_challenge() {
    // The same without challenge: the algebra of η cancels.
    let circuit = super::circuits::Chain(5);
    let key = crate::setup::development::<Bls, _>(&circuit, &[1; 32]).unwrap();
    let verifier = crate::Verifier::new(key.verifying().clone());
    let first = ark_bls12_381::Fr::from(3u64);
    let (_, last) = circuit.values(first);
    let statement = super::circuits::ChainStatement(last);
    let prover = crate::Prover::new(circuit, key).unwrap();
    let mut proof = prover.prove(&statement, &first, &mut rng(1)).unwrap();
    let specific = &prover.key().specific;
    proof.commitment = (proof.commitment + crate::ProvingKey::<Bls>::blinding_base()).into_affine();
    proof.knowledge = (proof.knowledge + specific.knowledge_blinding).into_affine();
    assert_eq!(verifier.verify(&statement, &proof), Err(VerifyError::Equation));
    proof.c = (proof.c.into_group() - specific.unblind).into_affine();
    assert_eq!(verifier.verify(&statement, &proof), Ok(()));
}

/// With γ = 1 the first equation alone can be met for any statement: A and B free, C nothing, D what is missing.
#[test]
fn a_commitment_outside_the_span_of_the_key_is_a_forgery_that_the_second_equation_stops() {
    let circuit = super::circuits::Chain(5);
    let key = crate::setup::development::<Bls, _>(&circuit, &[1; 32]).unwrap();
    let verifier = crate::Verifier::new(key.verifying().clone());
    let false_statement = super::circuits::ChainStatement(ark_bls12_381::Fr::from(1u64));
    let [g1, g2] = [3u64, 5].map(ark_bls12_381::Fr::from);
    let (one, two) = (ark_bls12_381::G1Affine::generator(), ark_bls12_381::G2Affine::generator());
    let public = key.verifying.public[0] + key.verifying.public[1];
    let commitment = key.verifying.alpha * g2 + key.beta * g1 + one * (g1 * g2) - public;
    let proof = Proof {
        a: (key.verifying.alpha + one * g1).into_affine(),
        b: (key.verifying.beta + two * g2).into_affine(),
        c: AffineRepr::zero(),
        commitment: commitment.into_affine(),
        knowledge: one,
    };
    let left = Bls::pairing(proof.a, proof.b);
    let right =
        Bls::pairing(key.verifying.alpha, key.verifying.beta) + Bls::pairing(public + proof.commitment, two);
    assert_eq!(left, right, "the first equation holds");
    assert_eq!(verifier.verify(&false_statement, &proof), Err(VerifyError::Knowledge));
}

#[test]
fn another_statement_is_refused() {
    let (prover, verifier) = product::<Bls>("product", DEGREE);
    let (statement, witness) = instance(DEGREE, 3);
    let proof = prover.prove(&statement, &witness, &mut rng(1)).unwrap();
    let mut other = statement.clone();
    other.a[0] += 1;
    assert_eq!(verifier.verify(&other, &proof), Err(VerifyError::Equation));
    other = statement.clone();
    other.c[5] += 1;
    assert_eq!(verifier.verify(&other, &proof), Err(VerifyError::Equation));
    other = statement.clone();
    other.sum += 1;
    assert_eq!(verifier.verify(&other, &proof), Err(VerifyError::Equation));
    // A digest that differs alone, with the same polynomials: trailing zeros.
    other = statement.clone();
    other.a.push(0);
    assert_eq!(verifier.verify(&other, &proof), Err(VerifyError::Equation));
}

#[test]
fn a_false_witness_gives_no_proof() {
    let (prover, _) = product::<Bls>("product", DEGREE);
    let (mut statement, mut witness) = instance(DEGREE, 3);
    statement.c[0] += 1;
    let last = prover.r1cs().constraints() - 1;
    assert_eq!(prover.prove(&statement, &witness, &mut rng(1)), Err(ProveError::Unsatisfied(last)));
    statement.c[0] -= 1;
    witness[2] = 2;
    assert_eq!(prover.prove(&statement, &witness, &mut rng(1)), Err(ProveError::Unsatisfied(2)));
    witness.pop();
    assert!(matches!(
        prover.prove(&statement, &witness, &mut rng(1)),
        Err(ProveError::Synthesis(SynthesisError::Witness(_)))
    ));
}

#[test]
fn a_proof_of_another_circuit_is_refused() {
    let (prover, _) = product::<Bls>("one circuit", DEGREE);
    let (_, verifier) = product::<Bls>("another circuit", DEGREE);
    let (statement, witness) = instance(DEGREE, 3);
    let proof = prover.prove(&statement, &witness, &mut rng(1)).unwrap();
    assert!(verifier.verify(&statement, &proof).is_err());

    // Even under the same points: only the identity in the header differs.
    let mut key = prover.key().verifying().clone();
    assert_eq!(crate::Verifier::new(key.clone()).verify(&statement, &proof), Ok(()));
    key.shape.id[0] ^= 1;
    assert_eq!(crate::Verifier::new(key).verify(&statement, &proof), Err(VerifyError::Equation));
}

#[test]
fn two_proofs_of_one_witness_share_no_element() {
    let (prover, _) = product::<Bls>("product", DEGREE);
    let (statement, witness) = instance(DEGREE, 3);
    let mut rng = rng(1);
    let [one, two] = [(); 2].map(|()| prover.prove(&statement, &witness, &mut rng).unwrap());
    assert_ne!(one.a, two.a);
    assert_ne!(one.b, two.b);
    assert_ne!(one.c, two.c);
    assert_ne!(one.commitment, two.commitment);
    assert_ne!(one.knowledge, two.knowledge);
}

#[test]
fn the_challenge_depends_on_everything() {
    type Fr = ark_bls12_381::Fr;
    let (prover, _) = product::<Bls>("product", DEGREE);
    let (statement, witness) = instance(DEGREE, 3);
    let proof = prover.prove(&statement, &witness, &mut rng(1)).unwrap();
    let shape = Circuit::<Fr>::shape(&super::circuits::Product { name: "product", degree: DEGREE });
    let digest = Statement::<Fr>::digest(&statement);
    let inputs: Vec<Fr> = statement.inputs();
    let of = |key: &[u8; 32], shape, digest: &[u8; 32], inputs: &[Fr], point: &ark_bls12_381::G1Affine| {
        challenge::challenges(key, shape, digest, inputs, point)
    };
    let mut other = shape;
    other.id[31] ^= 1;
    let all = [
        of(&[0; 32], &shape, &digest, &inputs, &proof.commitment),
        of(&[1; 32], &shape, &digest, &inputs, &proof.commitment),
        of(&[0; 32], &other, &digest, &inputs, &proof.commitment),
        of(&[0; 32], &shape, &[0; 32], &inputs, &proof.commitment),
        of(&[0; 32], &shape, &digest, &[inputs[0] + Fr::from(1u64)], &proof.commitment),
        of(&[0; 32], &shape, &digest, &inputs, &proof.knowledge),
    ];
    for (i, one) in all.iter().enumerate() {
        assert_eq!(one.len(), 1);
        assert!(all[..i].iter().all(|two| one != two), "{i}");
    }
}

#[test]
fn decoding_names_what_is_wrong() {
    let (prover, _) = product::<Bls>("product", DEGREE);
    let (statement, witness) = instance(DEGREE, 3);
    let bytes = prover.prove(&statement, &witness, &mut rng(1)).unwrap().encode();
    for length in [0, 287, 289] {
        let mut other = bytes.clone();
        other.resize(length, 0);
        assert_eq!(Proof::<Bls>::decode(&other), Err(ProofDecodeError::Length { got: length, want: 288 }));
    }
    let places = [
        (0, Element::A),
        (48, Element::B),
        (144, Element::C),
        (192, Element::Commitment),
        (240, Element::Knowledge),
    ];
    for (place, element) in places {
        // Without the flag of compression.
        let mut other = bytes.clone();
        other[place] &= 0x7f;
        let encoding = Err(ProofDecodeError::Point(element, PointError::Encoding));
        assert_eq!(Proof::<Bls>::decode(&other), encoding);
        // An x that is not below p.
        other = bytes.clone();
        other[place..place + 48].fill(0xff);
        other[place] = 0x9f;
        assert_eq!(Proof::<Bls>::decode(&other), encoding);
        // Infinity with something in it.
        other[place] = 0xc0;
        assert_eq!(Proof::<Bls>::decode(&other), encoding);
    }
    // On the curve, outside the group: x = 4 in G1.
    let mut other = bytes.clone();
    other[144..192].fill(0);
    other[144] = 0x80;
    other[191] = 4;
    assert_eq!(Proof::<Bls>::decode(&other), Err(ProofDecodeError::Point(Element::C, PointError::Subgroup)));
}
