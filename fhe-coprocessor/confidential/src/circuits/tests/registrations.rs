//! Attacks on registrations.

use ark_ff::Field;
use zeroize::Zeroizing;

use super::forger::Forger;
use super::world;
use crate::circuits::Registration;
use crate::native::Owner;
use crate::{Fr, Polynomial, secret_commitment};

#[test]
fn a_registration_of_another_secret_is_refused() {
    let world = world(10);
    let circuit = Registration(world.ring);
    let witness = world.registration();
    let mut statement = witness.statement.clone();
    statement.secret_commitment = secret_commitment(&world.owners[1].secret);
    assert_eq!(Forger::new(&circuit, &witness.statement, &witness).refused_by(&statement), ["commitment"]);

    // The other secret in the witness, the quotients as they come out modulo r.
    let mut forger = Forger::new(&circuit, &witness.statement, &witness);
    let coefficients = forger.find(|parts| parts.secret.polynomial.coefficients.clone());
    for (variable, value) in coefficients.iter().zip(world.owners[1].secret.iter()) {
        forger.set(*variable, *value);
    }
    assert_eq!(forger.refused_by(&statement), ["key"]);
}

#[test]
fn a_key_that_is_not_of_a_small_secret_is_refused() {
    let world = world(11);
    let ring = world.ring;
    let circuit = Registration(ring);
    let owner = |secret: Zeroizing<Vec<i8>>, error| Owner::new(&ring, &world.a, 1, secret, error);
    let honest = &world.owners[0];
    let (mut secret, mut error) = (honest.secret.clone(), honest.error.clone());
    secret[7] = 2;
    error[9] = 17;
    for (owner, check) in
        [(owner(secret, honest.error.clone()), "trits"), (owner(honest.secret.clone(), error), "errors")]
    {
        let mut witness = world.registration();
        witness.statement.key = owner.key;
        witness.statement.secret_commitment = secret_commitment(&owner.secret);
        (witness.secret, witness.error) = (owner.secret, owner.error);
        let mut forger = Forger::new(&circuit, &witness.statement, &witness);
        assert_eq!(forger.refused_by(&witness.statement), [check]);
    }
}

#[test]
fn a_key_whose_equation_holds_only_modulo_the_field_is_refused() {
    let world = world(12);
    let circuit = Registration(world.ring);
    let witness = world.registration();
    let mut statement = witness.statement.clone();
    let mut key = statement.key.coefficients().to_vec();
    key[3] = (key[3] + 1_000) % world.ring.modulus();
    statement.key = Polynomial::new(&world.ring, key.clone()).unwrap();
    let change = i128::from(key[3]) - i128::from(witness.statement.key.coefficients()[3]);
    // −y = b, so q·k grows by the change: by a fraction, which the field has.
    let mut forger = Forger::new(&circuit, &witness.statement, &witness);
    let quotient = forger.find(|parts| parts.key.quotient[3].clone());
    let by = Fr::from(change) * Fr::from(world.ring.modulus()).inverse().unwrap();
    let forged = forger.value(&quotient) + by;
    forger.set_element(&quotient, forged);
    assert_eq!(forger.refused_by(&statement), ["bytes"]);
    // Without it the equation itself fails, whatever h is.
    let mut forger = Forger::new(&circuit, &witness.statement, &witness);
    let high = forger.find(|parts| parts.key.high[3]);
    forger.shift(high, change);
    assert_eq!(forger.refused_by(&statement), ["key"]);
}
