//! Batches of one and of several circuits.

use ark_ec::{AffineRepr, CurveGroup};

use super::circuits::{Chain, ChainStatement};
use super::{Bls, DEGREE, instance, product, rng};
use crate::setup::development;
use crate::{BatchItem, Prover, Recent, Verifier, VerifyError, batch_verdicts, verify_batch};

#[test]
fn batches_give_what_single_checks_give() {
    let (prover, verifier) = product::<Bls>("product", DEGREE);
    let chain = Chain(6);
    let key = development::<Bls, _>(&chain, &[2; 32]).unwrap();
    let chain_verifier = Verifier::new(key.verifying().clone());
    let first = ark_bls12_381::Fr::from(11u64);
    let (_, last) = chain.values(first);
    let chain_prover = Prover::new(chain, key).unwrap();
    let chain_statement = ChainStatement(last);
    let mut rng = rng(5);

    let statements: Vec<_> = (0..9).map(|salt| instance(DEGREE, salt)).collect();
    let proofs: Vec<_> = statements
        .iter()
        .map(|(statement, witness)| prover.prove(statement, witness, &mut rng).unwrap())
        .collect();
    let chain_proof = chain_prover.prove(&chain_statement, &first, &mut rng).unwrap();
    let wrong_key = proofs[0];

    for size in [0, 1, 2, 9] {
        // Wrong in place i: nothing, another's D and knowledge, C, knowledge alone.
        for fault in 0..4 {
            let mut altered = proofs[..size].to_vec();
            let bad = size / 2;
            if let Some(proof) = altered.get_mut(bad) {
                match fault {
                    1 => {
                        (proof.commitment, proof.knowledge) = (chain_proof.commitment, chain_proof.knowledge);
                    }
                    2 => proof.c = chain_proof.c,
                    3 => proof.knowledge = chain_proof.knowledge,
                    _ => (),
                }
            }
            let mut items: Vec<BatchItem<'_, Bls>> = altered
                .iter()
                .zip(&statements)
                .map(|(proof, (statement, _))| BatchItem { verifier: &verifier, statement, proof })
                .collect();
            items.push(BatchItem {
                verifier: &chain_verifier,
                statement: &chain_statement,
                proof: &chain_proof,
            });
            let results = verify_batch(&mut rng, &items);
            for (i, (result, item)) in results.iter().zip(&items).enumerate() {
                assert_eq!(*result, item.verifier.verify(item.statement, item.proof), "{size} {fault} {i}");
                assert_eq!(result.is_err(), fault > 0 && i == bad && i < size, "{size} {fault} {i}");
            }
        }
    }

    // A statement of another circuit and a proof of another.
    let items = [
        BatchItem { verifier: &verifier, statement: &chain_statement, proof: &chain_proof },
        BatchItem { verifier: &chain_verifier, statement: &chain_statement, proof: &wrong_key },
        BatchItem { verifier: &chain_verifier, statement: &chain_statement, proof: &chain_proof },
    ];
    let results = verify_batch(&mut rng, &items);
    assert!(matches!(results[0], Err(VerifyError::Statement(_))), "{:?}", results[0]);
    assert_eq!(results[1], Err(VerifyError::Knowledge));
    assert_eq!(results[2], Ok(()));
}

/// Sizes around the pieces' and bad proofs in every pattern that the search tells apart: none, one, one in each half of a
/// piece, so many that the search gives up halving, and all; each after nothing and after every other one.
#[test]
fn bad_proofs_are_found_wherever_they_stand() {
    let (prover, verifier) = product::<Bls>("product", 3);
    let mut rng = rng(6);
    let (statement, witness) = instance(3, 1);
    let good = prover.prove(&statement, &witness, &mut rng).unwrap();
    let other = prover.prove(&statement, &witness, &mut rng).unwrap();
    let broken = [
        crate::Proof { c: other.c, ..good },
        crate::Proof { knowledge: other.knowledge, ..good },
        crate::Proof { commitment: other.commitment, knowledge: other.knowledge, ..good },
    ];
    let recent = Recent::default();
    for size in [1, 3, 4, 15, 16, 17, 50] {
        let patterns: [&dyn Fn(usize) -> bool; 9] = [
            &|_| false,
            &|i| i == size - 1,
            &|i| i == 0,
            &|i| i % 16 == 3,
            &|i| i % 8 == 5,
            &|i| i % 16 == 3 || i % 16 == 12,
            &|i| i % 2 == 0,
            &|i| i >= size / 2,
            &|_| true,
        ];
        for (number, bad) in patterns.iter().enumerate() {
            let proofs: Vec<_> = (0..size).map(|i| if bad(i) { broken[i % 3] } else { good }).collect();
            let items: Vec<BatchItem<'_, Bls>> = proofs
                .iter()
                .map(|proof| BatchItem { verifier: &verifier, statement: &statement, proof })
                .collect();
            let want: Vec<bool> = (0..size).map(|i| !bad(i)).collect();
            assert_eq!(batch_verdicts(&mut rng, &Recent::default(), &items), want, "{size} {number}");
            assert_eq!(batch_verdicts(&mut rng, &recent, &items), want, "{size} {number}, after others");
        }
    }
    // Two errors that cancel each other where they are not weighed.
    let shift = |point: ark_bls12_381::G1Affine, by: ark_bls12_381::G1Projective| (by + point).into_affine();
    let one = ark_bls12_381::G1Affine::generator().into_group();
    let pair =
        [crate::Proof { c: shift(good.c, one), ..good }, crate::Proof { c: shift(good.c, -one), ..good }];
    let proofs: Vec<_> = (0..16).map(|i| if i < 2 { pair[i] } else { good }).collect();
    let items: Vec<BatchItem<'_, Bls>> =
        proofs.iter().map(|proof| BatchItem { verifier: &verifier, statement: &statement, proof }).collect();
    let verdicts = batch_verdicts(&mut rng, &Recent::default(), &items);
    assert_eq!(verdicts.iter().filter(|holds| !**holds).count(), 2);
    assert!(!verdicts[0] && !verdicts[1]);
}
