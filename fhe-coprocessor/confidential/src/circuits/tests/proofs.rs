//! Proofs from end to end: what a statement binds.

use alloy_primitives::Address;
use ark_bls12_381::Bls12_381;
use blindfold_groth16::{
    BatchItem, Circuit, Proof, Prover, Statement, Verifier, VerifyError, setup, verify_batch,
};

use super::{small_ring, world};
use crate::circuits::{
    Refresh, Registration, RegistrationStatement, Transfer, TransferStatement, Withdrawal,
    WithdrawalStatement,
};
use crate::statement::Holding;
use crate::{Fr, Polynomial, Ring, secret_commitment};

type Alteration<S> = (&'static str, fn(&mut S));

fn prover<C: Circuit<Fr>>(circuit: C) -> Prover<Bls12_381, C> {
    let key = setup::development(&circuit, &[8; 32]).unwrap();
    Prover::new(circuit, key).unwrap()
}

fn verifier<C: Circuit<Fr>>(prover: &Prover<Bls12_381, C>) -> Verifier<Bls12_381> {
    Verifier::new(prover.key().verifying().clone())
}

/// The proof verifies for its statement and for none of the altered ones.
fn binds<S: Statement<Fr> + Clone>(
    verifier: &Verifier<Bls12_381>,
    proof: &Proof<Bls12_381>,
    statement: &S,
    alterations: &[Alteration<S>],
) {
    assert_eq!(verifier.verify(statement, proof), Ok(()));
    for (what, alter) in alterations {
        let mut altered = statement.clone();
        alter(&mut altered);
        assert_eq!(verifier.verify(&altered, proof), Err(VerifyError::Equation), "{what}");
    }
}

/// The polynomial with its first coefficient changed.
fn altered(polynomial: &Polynomial) -> Polynomial {
    let mut coefficients = polynomial.coefficients().to_vec();
    coefficients[0] ^= 1;
    Polynomial::new(&small_ring(), coefficients).unwrap()
}

/// What every statement about a balance binds of the account and the deployment.
fn holding_alterations() -> Vec<Alteration<Holding>> {
    vec![
        ("L1 chain", |holding| holding.domain.l1_chain_id ^= 1),
        ("chain", |holding| holding.domain.chain_id ^= 1),
        ("contract", |holding| holding.domain.contract = Address::repeat_byte(0xc1)),
        ("account", |holding| holding.account = Address::repeat_byte(9)),
        ("nonce", |holding| holding.nonce += 1),
        ("secret", |holding| holding.secret_commitment = secret_commitment(&[0; 64])),
        ("available c1", |holding| holding.available.c1 = altered(&holding.available.c1)),
        ("available c0", |holding| holding.available.c0[7] ^= 1),
    ]
}

#[test]
fn a_transfer_proof_is_for_its_deployment_account_nonce_keys_and_ciphertexts_only() {
    let mut world = world(40);
    let prover = prover(Transfer(world.ring));
    let witness = world.transfer(1_000, 250, 3);
    let proof = prover.prove(&witness.statement, &witness, &mut world.rng).unwrap();
    let verifier = verifier(&prover);
    let alterations: [Alteration<TransferStatement>; 9] = [
        ("receiver", |statement| statement.receiver = Address::repeat_byte(9)),
        ("fee", |statement| statement.fee = 0),
        ("a", |statement| statement.amount.a = altered(&statement.amount.a)),
        ("key of the sender", |statement| statement.amount.keys[0] = altered(&statement.amount.keys[0])),
        ("key of the receiver", |statement| statement.amount.keys[1] = altered(&statement.amount.keys[1])),
        ("key of the auditor", |statement| statement.amount.keys[2] = altered(&statement.amount.keys[2])),
        ("keys swapped", |statement| statement.amount.keys.swap(1, 2)),
        ("c1", |statement| statement.amount.c1 = altered(&statement.amount.c1)),
        ("c0", |statement| statement.amount.c0[1][0] ^= 1),
    ];
    binds(&verifier, &proof, &witness.statement, &alterations);
    for (what, alter) in holding_alterations() {
        let mut altered = witness.statement.clone();
        alter(&mut altered.sender);
        assert_eq!(verifier.verify(&altered, &proof), Err(VerifyError::Equation), "{what}");
    }
}

#[test]
fn a_withdrawal_proof_is_for_its_recipient_and_amount_only() {
    let mut world = world(41);
    let prover = prover(Withdrawal(world.ring));
    let witness = world.withdrawal(1_000, 900);
    let proof = prover.prove(&witness.statement, &witness, &mut world.rng).unwrap();
    let alterations: [Alteration<WithdrawalStatement>; 3] = [
        ("recipient", |statement| statement.recipient = Address::repeat_byte(9)),
        ("amount", |statement| statement.amount = 899),
        ("nonce", |statement| statement.owner.nonce += 1),
    ];
    binds(&verifier(&prover), &proof, &witness.statement, &alterations);
}

#[test]
fn a_registration_proof_is_for_its_account_and_key_only() {
    let mut world = world(42);
    let prover = prover(Registration(world.ring));
    let witness = world.registration();
    let proof = prover.prove(&witness.statement, &witness, &mut world.rng).unwrap();
    let alterations: [Alteration<RegistrationStatement>; 6] = [
        ("account", |statement| statement.account = Address::repeat_byte(9)),
        ("chain", |statement| statement.domain.chain_id ^= 1),
        ("contract", |statement| statement.domain.contract = Address::repeat_byte(0xc1)),
        ("a", |statement| statement.a = altered(&statement.a)),
        ("key", |statement| statement.key = altered(&statement.key)),
        ("secret", |statement| statement.secret_commitment = secret_commitment(&[0; 64])),
    ];
    binds(&verifier(&prover), &proof, &witness.statement, &alterations);
}

#[test]
fn a_proof_of_one_circuit_is_none_of_another() {
    let mut world = world(43);
    let (transfer, refresh) = (prover(Transfer(world.ring)), prover(Refresh(world.ring)));
    let other = prover(Refresh(Ring::new(128, world.ring.modulus()).unwrap()));
    let witness = world.refresh(1_000);
    let proof = refresh.prove(&witness.statement, &witness, &mut world.rng).unwrap();
    assert_eq!(verifier(&refresh).verify(&witness.statement, &proof), Ok(()));
    assert_eq!(verifier(&other).verify(&witness.statement, &proof), Err(VerifyError::Knowledge));
    let statement = world.transfer(1_000, 250, 3).statement;
    assert_eq!(verifier(&transfer).verify(&statement, &proof), Err(VerifyError::Knowledge));
}

#[test]
fn a_batch_of_all_circuits_names_the_stale_proof() {
    let mut world = world(44);
    let (transfer, refresh) = (prover(Transfer(world.ring)), prover(Refresh(world.ring)));
    let first = world.transfer(1_000, 250, 3);
    let second = world.refresh(1_000);
    let proofs = [
        transfer.prove(&first.statement, &first, &mut world.rng).unwrap(),
        refresh.prove(&second.statement, &second, &mut world.rng).unwrap(),
    ];
    let (for_transfer, for_refresh) = (verifier(&transfer), verifier(&refresh));
    let mut stale = first.statement.clone();
    stale.sender.nonce += 1;
    let item = |verifier, statement, proof| BatchItem { verifier, statement, proof };
    let items = [
        item(&for_transfer, &first.statement, &proofs[0]),
        item(&for_transfer, &stale, &proofs[0]),
        item(&for_refresh, &second.statement, &proofs[1]),
    ];
    let results = verify_batch(&mut world.rng, &items);
    assert_eq!(results, [Ok(()), Err(VerifyError::Equation), Ok(())]);
}
