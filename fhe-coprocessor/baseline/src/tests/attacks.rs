use curve25519_dalek::{RistrettoPoint, Scalar, traits::Identity};

use crate::elgamal::PublicKey;
use crate::ledger::Refusal;
use crate::spend::Outlay;

use super::*;

/// One point more: what a forger may put in the place of any.
fn shift(point: &mut (curve25519_dalek::ristretto::CompressedRistretto, RistrettoPoint)) {
    point.1 += GENERATORS.value;
    point.0 = point.1.compress();
}

#[test]
fn every_part_of_a_proof_counts() {
    let mut world = World::new(11);
    let honest = world.transfer(0, 1, 5);
    for place in 0..honest.sigma.commitments.len() {
        let mut forged = honest.clone();
        shift(&mut forged.sigma.commitments[place]);
        world.refuse(&forged, Refusal::Proof);
    }
    for place in 0..honest.sigma.responses.len() {
        let mut forged = honest.clone();
        forged.sigma.responses[place] += Scalar::ONE;
        world.refuse(&forged, Refusal::Proof);
    }
    let mut forged = honest.clone();
    shift(&mut forged.left);
    world.refuse(&forged, Refusal::Proof);
    let mut forged = honest.clone();
    forged.range = world.transfer(0, 1, 5).range;
    world.refuse(&forged, Refusal::Proof);
    assert_eq!(world.submit(&honest), Ok(()));
}

#[test]
fn every_part_of_a_transaction_is_bound() {
    let mut world = World::new(12);
    let honest = world.transfer(0, 1, 5);
    let mut forged = honest.clone();
    forged.public += 1;
    world.refuse(&forged, Refusal::Proof);
    for place in 0..3 {
        let mut forged = honest.clone();
        let Outlay::Transfer { amount, .. } = &mut forged.outlay else { panic!("a transfer") };
        shift(&mut amount.handles[place]);
        world.refuse(&forged, Refusal::Proof);
    }
    let mut forged = honest.clone();
    let Outlay::Transfer { amount, .. } = &mut forged.outlay else { panic!("a transfer") };
    shift(&mut amount.commitment);
    world.refuse(&forged, Refusal::Proof);
    let mut forged = honest.clone();
    let Outlay::Transfer { receiver, .. } = &mut forged.outlay else { panic!("a transfer") };
    *receiver = owner(2);
    world.refuse(&forged, Refusal::Proof);
    let mut forged = honest.clone();
    forged.account = owner(2);
    world.refuse(&forged, Refusal::Proof);
    let mut forged = honest.clone();
    forged.nonce += 1;
    world.refuse(&forged, Refusal::Nonce { expected: 1 });
    let withdraw = world.withdraw(0, [9; 20], 5);
    let mut forged = withdraw.clone();
    forged.outlay = Outlay::Withdraw { recipient: [8; 20] };
    world.refuse(&forged, Refusal::Proof);
    let mut forged = withdraw;
    forged.public += 1;
    world.refuse(&forged, Refusal::Proof);
}

#[test]
fn no_replay_and_no_proof_for_another_deployment() {
    let mut world = World::new(13);
    let transfer = world.transfer(0, 1, 5);
    world.submit(&transfer).unwrap();
    world.refuse(&transfer, Refusal::Nonce { expected: 2 });
    let mut order = world.order(0, (owner(1), Some(5)), FEE);
    order.domain = b"another".to_vec();
    let foreign = world.prove(0, &order);
    world.refuse(&foreign, Refusal::Proof);
}

#[test]
fn no_different_amounts_for_sender_and_receiver() {
    let mut world = World::new(14);
    let order = world.order(0, (owner(1), Some(5)), FEE);
    // A sender that computes the proof for an amount that one of the others cannot read: another r for their handle.
    for place in 0..3 {
        let mut premises = world.ledger.premises(&owner(0), Some(&owner(1))).unwrap();
        let stranger = world.secrets[2].public_key(&GENERATORS);
        match place {
            0 => premises.sender = stranger,
            1 => premises.receiver = Some(stranger),
            _ => premises.auditor = stranger,
        }
        let secret = &world.secrets[if place == 0 { 2 } else { 0 }];
        let forged =
            crate::spend::Spend::new(&GENERATORS, &order, &premises, secret, &mut world.rng).unwrap();
        world.refuse(&forged, Refusal::Proof);
    }
}

#[test]
fn no_spending_of_more_than_is_available() {
    let mut world = World::new(15);
    // The sender lies to the prover about its balance: the commitment to what is left is not that of the state.
    for (balance, amount) in [(2_000_000, 1_500_000), (u64::MAX, u64::MAX - FEE), (2_000_000, 5)] {
        let mut order = world.order(0, (owner(1), Some(amount)), FEE);
        order.balance = balance;
        let forged = world.prove(0, &order);
        world.refuse(&forged, Refusal::Proof);
    }
    let mut order = world.order(0, ([9; 20], None), 1_000_001);
    order.balance = 1_000_001;
    let forged = world.prove(0, &order);
    world.refuse(&forged, Refusal::Proof);
}

/// Proofs for scalars that no honest prover takes: everything holds but the range.
#[test]
fn no_negative_amount_and_no_negative_remainder() {
    let mut world = World::new(16);
    let premises = world.ledger.premises(&owner(0), Some(&owner(1))).unwrap();
    let million = Scalar::from(1_000_000 - FEE);
    let honest = world.transfer(0, 1, 5);
    let two_to_64 = Scalar::from(u64::MAX) + Scalar::ONE;
    for amount in [-Scalar::ONE, two_to_64, million + Scalar::ONE] {
        let forged = honest.forge(
            &GENERATORS,
            DOMAIN,
            &premises,
            &world.secrets[0],
            [amount, million - amount],
            &mut world.rng,
        );
        world.refuse(&forged, Refusal::Proof);
    }
    // The forger's own way is right: with values in range only the foreign range proof is wrong.
    let five = Scalar::from(5u8);
    let forged = honest.forge(
        &GENERATORS,
        DOMAIN,
        &premises,
        &world.secrets[0],
        [five, million - five],
        &mut world.rng,
    );
    assert!(forged.sigma_holds(&GENERATORS, DOMAIN, &premises, &mut world.rng));
    let wrong =
        honest.forge(&GENERATORS, DOMAIN, &premises, &world.secrets[0], [five, million], &mut world.rng);
    assert!(!wrong.sigma_holds(&GENERATORS, DOMAIN, &premises, &mut world.rng));
    for amount in [-Scalar::ONE, two_to_64] {
        let forged = honest.forge(
            &GENERATORS,
            DOMAIN,
            &premises,
            &world.secrets[0],
            [amount, million - amount],
            &mut world.rng,
        );
        assert!(
            forged.sigma_holds(&GENERATORS, DOMAIN, &premises, &mut world.rng),
            "only the range is wrong"
        );
    }
}

#[test]
fn registrations_and_rollovers_are_their_owners() {
    let mut world = World::new(17);
    let again = world.register(0);
    assert_eq!(world.ledger.register(&again, &mut world.rng), Err(Refusal::Registered));
    let mut stolen = again.clone();
    stolen.owner = [0x55; 20];
    assert_eq!(world.ledger.register(&stolen, &mut world.rng), Err(Refusal::Proof));
    let mut open = stolen.clone();
    open.key = PublicKey(RistrettoPoint::identity());
    assert_eq!(world.ledger.register(&open, &mut world.rng), Err(Refusal::Key));

    let thief = world.secrets[1].clone();
    let rollover = Rollover::new(&GENERATORS, DOMAIN, owner(0), 1, &thief, &mut world.rng);
    assert_eq!(world.ledger.rollover(&rollover, &mut world.rng), Err(Refusal::Proof));
    let mut late = rollover.clone();
    late.nonce = 0;
    assert_eq!(world.ledger.rollover(&late, &mut world.rng), Err(Refusal::Nonce { expected: 1 }));
    late.account = [0x66; 20];
    assert_eq!(world.ledger.rollover(&late, &mut world.rng), Err(Refusal::Unregistered));
}

#[test]
fn limits_of_the_ledger() {
    let mut world = World::new(18);
    let order = world.order(0, (owner(1), Some(5)), FEE - 1);
    let cheap = world.prove(0, &order);
    world.refuse(&cheap, Refusal::Fee { minimum: FEE });
    let oneself = world.transfer(0, 0, 5);
    world.refuse(&oneself, Refusal::Oneself);
    let mut nobody = world.transfer(0, 1, 5);
    nobody.account = [0x77; 20];
    world.refuse(&nobody, Refusal::Unregistered);
    assert_eq!(world.ledger.deposit(&owner(0), &owner(1), 1), Err(Refusal::Public));
    assert_eq!(world.ledger.deposit(&owner(0), &[0x77; 20], 0), Err(Refusal::Unregistered));
}
