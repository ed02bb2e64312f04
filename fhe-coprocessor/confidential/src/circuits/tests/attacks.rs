//! Attacks on transfers, refreshes and withdrawals by a prover who commits to what they like. Each is refused by the check
//! that is there for it; what statements bind is in [`super::proofs`].

use ark_ff::Field;

use super::forger::Forger;
use super::world;
use crate::circuits::{Refresh, Transfer, TransferStatement, TransferWitness, Withdrawal};
use crate::native::{World, limbs, reduce};
use crate::{Fr, Polynomial};

const RECEIVER: usize = 1;

/// 1/q in the field.
fn inverse_of_q(world: &World) -> Fr {
    Fr::from(world.ring.modulus()).inverse().unwrap()
}

/// The transfer's statement with one more in limb `j` of recipient `i`: how often Δ more wraps modulo q.
fn raise(world: &World, statement: &mut TransferStatement, i: usize, j: usize, by: i128) -> i128 {
    let exact = i128::from(statement.amount.c0[i][j]) + i128::from(world.ring.delta()) * by;
    statement.amount.c0[i][j] = reduce(&world.ring, exact);
    exact.div_euclid(i128::from(world.ring.modulus()))
}

#[test]
fn different_values_for_sender_and_receiver_are_refused() {
    let mut world = world(20);
    let circuit = Transfer(world.ring);
    let witness = world.transfer(1_000, 250, 3);
    let mut statement = witness.statement.clone();
    let wraps = raise(&world, &mut statement, RECEIVER, 0, 1);
    let delta = Fr::from(world.ring.delta());
    let forger = || Forger::new(&circuit, &witness.statement, &witness);
    assert_eq!(forger().refused_by(&statement), ["copies"]);

    // Δ as an error.
    let mut error = forger();
    let variable = error.find(|parts| parts.encryption.copies[RECEIVER].errors[0]);
    error.shift(variable, delta - Fr::from(wraps) * Fr::from(world.ring.modulus()));
    assert_eq!(error.refused_by(&statement), ["errors"]);

    // Δ as a fraction of q.
    let mut fraction = forger();
    let quotient = fraction.find(|parts| parts.encryption.copies[RECEIVER].quotients[0].clone());
    let forged = fraction.value(&quotient) - delta * inverse_of_q(&world) + Fr::from(wraps);
    fraction.set_element(&quotient, forged);
    assert_eq!(fraction.refused_by(&statement), ["bytes"]);

    // Δ in the product of key and randomness.
    let mut product = forger();
    let coefficient = product.find(|parts| parts.encryption.keys.coefficients[0]);
    let packing = Fr::from(1u128 << 80);
    product.shift(coefficient, packing * (delta - Fr::from(wraps) * Fr::from(world.ring.modulus())));
    assert_eq!(product.refused_by(&statement), ["b·u"]);

    // One recipient's excess taken from another's place: e0 of the sender pays for the receiver, P to one.
    let mut packed = forger();
    let error = packed.find(|parts| parts.encryption.copies[0].errors[0]);
    packed.shift(error, packing * (delta - Fr::from(wraps) * Fr::from(world.ring.modulus())));
    assert_eq!(packed.refused_by(&statement), ["errors"]);
}

/// A transfer whose limb `j` is `value` in every copy and in the commitment, all else fitting it.
fn with_limb(world: &mut World, j: usize, value: i128) -> (TransferWitness, TransferStatement, Vec<i128>) {
    let witness = world.transfer(1_000, 250, 3);
    let mut statement = witness.statement.clone();
    let by = value - i128::from(limbs(250)[j]);
    let wraps = (0..3).map(|i| raise(world, &mut statement, i, j, by)).collect();
    (witness, statement, wraps)
}

fn forge_limb<'a>(
    circuit: &'a Transfer,
    witness: &TransferWitness,
    j: usize,
    value: i128,
    wraps: &[i128],
) -> Forger<'a, Transfer> {
    let mut forger = Forger::new(circuit, &witness.statement, witness);
    let limb = forger.find(|parts| parts.amount[j]);
    forger.set(limb, value);
    for (i, wraps) in wraps.iter().enumerate() {
        let quotient = forger.find(|parts| parts.encryption.copies[i].quotients[j].clone());
        let honest = forger.integer(&quotient);
        forger.set_integer(&quotient, honest + wraps);
    }
    forger
}

#[test]
fn a_limb_beyond_a_byte_is_refused() {
    let mut world = world(21);
    let circuit = Transfer(world.ring);
    // 506 = 250 + 256 in limb 0, −1 in limb 1: the same sum, so nothing but the range is wrong.
    let (witness, mut statement, wraps) = with_limb(&mut world, 0, 506);
    let lower: Vec<i128> = (0..3).map(|i| raise(&world, &mut statement, i, 1, -1)).collect();
    let mut forger = forge_limb(&circuit, &witness, 0, 506, &wraps);
    let limb = forger.find(|parts| parts.amount[1]);
    forger.set(limb, -1i64);
    for (i, wraps) in lower.iter().enumerate() {
        let quotient = forger.find(|parts| parts.encryption.copies[i].quotients[1].clone());
        let honest = forger.integer(&quotient);
        forger.set_integer(&quotient, honest + wraps);
    }
    assert_eq!(forger.refused_by(&statement), ["bytes"]);
}

#[test]
fn an_overflowing_amount_is_refused() {
    let mut world = world(22);
    let circuit = Transfer(world.ring);
    let (witness, statement, wraps) = with_limb(&mut world, 7, 256);
    let mut forger = forge_limb(&circuit, &witness, 7, 256, &wraps);
    let remainder = forger.find(|parts| parts.remainder.clone());
    forger.set_integer(&remainder, 1_000 - 250 - 3 - (1i128 << 64));
    assert_eq!(forger.refused_by(&statement), ["bytes"]);
    // The remainder as an element of the field changes nothing.
    forger.set_element(&remainder, Fr::from(1_000i128 - 250 - 3 - (1i128 << 64)));
    assert_eq!(forger.refused_by(&statement), ["bytes"]);
}

#[test]
fn a_negative_amount_is_refused() {
    let mut world = world(23);
    let circuit = Transfer(world.ring);
    let (witness, statement, wraps) = with_limb(&mut world, 0, -50);
    let mut forger = forge_limb(&circuit, &witness, 0, -50, &wraps);
    let remainder = forger.find(|parts| parts.remainder.clone());
    forger.set_integer(&remainder, 1_000 + 50 - 3);
    assert_eq!(forger.refused_by(&statement), ["bytes"]);
}

#[test]
fn spending_more_than_is_available_is_refused() {
    let mut world = world(24);
    let circuit = Transfer(world.ring);
    let witness = world.transfer(1_000, 997, 3);
    let mut statement = witness.statement.clone();
    statement.fee = 4;
    let forger = || Forger::new(&circuit, &witness.statement, &witness);
    assert_eq!(forger().refused_by(&statement), ["balance"]);
    let mut negative = forger();
    let remainder = negative.find(|parts| parts.remainder.clone());
    negative.set_integer(&remainder, -1);
    assert_eq!(negative.refused_by(&statement), ["bytes"]);
    negative.set_element(&remainder, -Fr::ONE);
    assert_eq!(negative.refused_by(&statement), ["bytes"]);
}

#[test]
fn withdrawing_more_than_is_available_is_refused() {
    let mut world = world(25);
    let circuit = Withdrawal(world.ring);
    let witness = world.withdrawal(1_000, 1_000);
    let mut statement = witness.statement.clone();
    statement.amount = 1_001;
    let mut forger = Forger::new(&circuit, &witness.statement, &witness);
    assert_eq!(forger.refused_by(&statement), ["balance"]);
    let remainder = forger.find(|parts| parts.remainder.clone());
    forger.set_integer(&remainder, -1);
    assert_eq!(forger.refused_by(&statement), ["bytes"]);
}

#[test]
fn a_refresh_to_another_balance_is_refused() {
    let mut world = world(26);
    let circuit = Refresh(world.ring);
    let mut witness = world.refresh(1_000);
    witness.statement.balance = world.encrypt([0], &limbs(1_001), &witness.randomness);
    let honest = {
        let mut honest = witness.clone();
        honest.statement.balance = world.encrypt([0], &limbs(1_000), &witness.randomness);
        honest
    };
    let mut forger = Forger::new(&circuit, &honest.statement, &honest);
    assert_eq!(forger.refused_by(&witness.statement), ["copies"]);
    let limb = forger.find(|parts| parts.amount[0]);
    forger.shift(limb, 1u64);
    let before = honest.statement.balance.c0[0][0];
    let wraps = i128::from(witness.statement.balance.c0[0][0] < before);
    let quotient = forger.find(|parts| parts.encryption.copies[0].quotients[0].clone());
    let integer = forger.integer(&quotient);
    forger.set_integer(&quotient, integer + wraps);
    assert_eq!(forger.refused_by(&witness.statement), ["balance"]);
}

#[test]
fn a_decryption_shifted_by_a_unit_of_delta_is_refused() {
    let mut world = world(27);
    let circuit = Withdrawal(world.ring);
    let witness = world.withdrawal(1_000, 1_000);
    let mut statement = witness.statement.clone();
    statement.amount = 1_001;
    let mut forger = Forger::new(&circuit, &witness.statement, &witness);
    let (message, noise) = forger.find(|parts| {
        let limb = &parts.spending.balance.limbs[0];
        (limb.message.clone(), limb.noise.clone())
    });
    let (m, n) = (forger.integer(&message), forger.integer(&noise));
    forger.set_integer(&message, m + 1);
    forger.set_integer(&noise, n - i128::from(world.ring.delta()));
    assert_eq!(forger.refused_by(&statement), ["errors"]);
}

#[test]
fn a_decryption_shifted_by_q_is_refused() {
    let mut world = world(28);
    let circuit = Withdrawal(world.ring);
    let witness = world.withdrawal(1_000, 1_000);
    let mut statement = witness.statement.clone();
    statement.amount = 1_000 + (1 << 24);
    let mut forger = Forger::new(&circuit, &witness.statement, &witness);
    let (message, noise, quotient) = forger.find(|parts| {
        let limb = &parts.spending.balance.limbs[0];
        (limb.message.clone(), limb.noise.clone(), limb.quotient.clone())
    });
    let parts = [&message, &noise, &quotient].map(|part| forger.integer(part));
    // q = Δ·2^24 + 1.
    assert_eq!(world.ring.modulus(), (world.ring.delta() << 24) + 1);
    forger.set_integer(&message, parts[0] + (1 << 24));
    forger.set_integer(&noise, parts[1] + 1);
    forger.set_integer(&quotient, parts[2] - 1);
    assert_eq!(forger.refused_by(&statement), ["bytes"]);
}

#[test]
fn a_balance_held_only_modulo_the_field_is_refused() {
    let mut world = world(29);
    let circuit = Withdrawal(world.ring);
    let witness = world.withdrawal(1_000, 1_000);
    let mut statement = witness.statement.clone();
    statement.amount = 1_000_000;
    let more = Fr::from(999_000u64);
    let mut forger = Forger::new(&circuit, &witness.statement, &witness);
    let (message, quotient) = forger.find(|parts| {
        let limb = &parts.spending.balance.limbs[0];
        (limb.message.clone(), limb.quotient.clone())
    });
    // The limb fits three bytes, the quotient is the fraction −Δ·more/q.
    let m = forger.integer(&message);
    forger.set_integer(&message, m + 999_000);
    let k = forger.value(&quotient) - more * Fr::from(world.ring.delta()) * inverse_of_q(&world);
    forger.set_element(&quotient, k);
    assert_eq!(forger.refused_by(&statement), ["bytes"]);
}

#[test]
fn oversized_noise_is_refused() {
    let mut world = world(30);
    let circuit = Transfer(world.ring);
    let refused = |world: &World, witness: &TransferWitness| {
        let mut witness = witness.clone();
        witness.statement.amount = world.encrypt([0, 1, 2], &limbs(250), &witness.randomness);
        Forger::new(&circuit, &witness.statement, &witness).refused_by(&witness.statement)
    };
    let witness = world.transfer(1_000, 250, 3);
    assert_eq!(refused(&world, &witness), [""; 0]);
    for error in [17, -17, 127] {
        let mut large = witness.clone();
        large.randomness.e1[5] = error;
        assert_eq!(refused(&world, &large), ["errors"], "e1 {error}");
        let mut large = witness.clone();
        large.randomness.e0[RECEIVER][7] = error;
        assert_eq!(refused(&world, &large), ["errors"], "e0 {error}");
    }
    for u in [2, -2, 100] {
        let mut large = witness.clone();
        large.randomness.u[5] = u;
        assert_eq!(refused(&world, &large), ["trits"], "u {u}");
    }
}

#[test]
fn a_ciphertext_whose_equation_holds_only_modulo_the_field_is_refused() {
    let mut world = world(31);
    let circuit = Transfer(world.ring);
    let witness = world.transfer(1_000, 250, 3);
    let mut statement = witness.statement.clone();
    let mut c1 = statement.amount.c1.coefficients().to_vec();
    let change = if c1[2] > 1 << 53 { -(1i64 << 50) } else { 1i64 << 50 };
    c1[2] = c1[2].wrapping_add_signed(change);
    statement.amount.c1 = Polynomial::new(&world.ring, c1).unwrap();
    let forger = || Forger::new(&circuit, &witness.statement, &witness);
    assert_eq!(forger().refused_by(&statement), ["c1"]);

    // a·u + e1 − c1 = q·k: k less by change/q, a fraction.
    let mut fraction = forger();
    let quotient = fraction.find(|parts| parts.encryption.c1.quotient[2].clone());
    let forged = fraction.value(&quotient) - Fr::from(change) * inverse_of_q(&world);
    fraction.set_element(&quotient, forged);
    assert_eq!(fraction.refused_by(&statement), ["bytes"]);

    // An integer quotient as far off as its range allows does not reach it.
    let mut integer = forger();
    let high = integer.find(|parts| parts.encryption.c1.high[2]);
    integer.shift(high, -Fr::from(change));
    assert_eq!(integer.refused_by(&statement), ["c1"]);
}

#[test]
fn a_wrong_secret_is_refused() {
    let mut world = world(32);
    let circuit = Withdrawal(world.ring);
    let mut witness = world.withdrawal(1_000, 10);
    witness.secret = world.owners[1].secret.clone();
    // What the wrong secret decrypts to is beyond the noise bound, and it is not the registered one.
    let honest = world.withdrawal(1_000, 10);
    let mut forger = Forger::new(&circuit, &honest.statement, &honest);
    let coefficients = forger.find(|parts| parts.spending.secret.polynomial.coefficients.clone());
    for (variable, value) in coefficients.iter().zip(witness.secret.iter()) {
        forger.set(*variable, *value);
    }
    assert_eq!(forger.refused_by(&honest.statement), ["c1·s", "commitment"]);
    // The product for that secret, then: the decryption fails instead.
    let product = forger.find(|parts| parts.spending.balance.product.coefficients.clone());
    let c1 = honest.statement.owner.available.c1.coefficients();
    let values = crate::gadgets::polynomial::full_product(c1, &witness.secret);
    for (variable, value) in product.iter().zip(values.iter()) {
        forger.set(*variable, *value);
    }
    assert_eq!(forger.refused_by(&honest.statement), ["decryption", "commitment"]);
}

#[test]
fn a_secret_that_happens_to_decrypt_is_refused_by_its_commitment() {
    let mut world = world(33);
    let circuit = Withdrawal(world.ring);
    // A ciphertext without c1 decrypts under every secret.
    let mut witness = world.withdrawal(1_000, 10);
    witness.statement.owner.available.c1 = Polynomial::new(&world.ring, vec![0; 64]).unwrap();
    witness.statement.owner.available.c0 =
        limbs(1_000).map(|limb| reduce(&world.ring, i128::from(limb) * i128::from(world.ring.delta())));
    let mut forger = Forger::new(&circuit, &witness.statement, &witness);
    assert_eq!(forger.refused_by(&witness.statement), [""; 0]);
    witness.secret = world.owners[1].secret.clone();
    let mut forger = Forger::new(&circuit, &witness.statement, &witness);
    assert_eq!(forger.refused_by(&witness.statement), ["commitment"]);
}

#[test]
fn a_key_from_outside_the_state_is_refused() {
    let mut world = world(34);
    let circuit = Transfer(world.ring);
    let witness = world.transfer(1_000, 250, 3);
    // Encrypted to the sender's own key in the receiver's place; the state's key is the receiver's.
    let mut forged = witness.clone();
    forged.statement.amount = world.encrypt([0, 0, 2], &limbs(250), &witness.randomness);
    let mut statement = forged.statement.clone();
    statement.amount.keys = witness.statement.amount.keys.clone();
    let mut forger = Forger::new(&circuit, &forged.statement, &forged);
    assert_eq!(forger.refused_by(&forged.statement), [""; 0]);
    assert_eq!(forger.refused_by(&statement), ["b·u"]);
}
