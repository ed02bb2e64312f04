//! Honest provers.

use blindfold_groth16::{Circuit, R1cs, SynthesisError};

use super::forger::{Forger, Parts};
use super::{small_ring, world};
use crate::circuits::{Refresh, Registration, Transfer, Withdrawal};
use crate::native::{World, limbs};
use crate::ring::NOISE_BOUND;
use crate::{Fr, Ring};

/// Every row holds, whether the circuit or the rows fill in the variables.
fn holds<C: Circuit<Fr, Committed: Parts>>(circuit: &C, statement: &C::Statement, witness: &C::Witness) {
    assert_eq!(Forger::new(circuit, statement, witness).refused_by(statement), [""; 0]);
}

#[test]
fn honest_witnesses_satisfy_every_row() {
    let mut world = world(1);
    let witness = world.registration();
    holds(&Registration(world.ring), &witness.statement, &witness);
    for (balance, amount, fee) in [(1_000, 250, 3), (1_000, 997, 3), (1 << 40, 1 << 39, 0), (0, 0, 0)] {
        let witness = world.transfer(balance, amount, fee);
        holds(&Transfer(world.ring), &witness.statement, &witness);
    }
    for balance in [0, 255, 256, 1 << 63] {
        let witness = world.refresh(balance);
        holds(&Refresh(world.ring), &witness.statement, &witness);
        let witness = world.withdrawal(balance, balance / 2);
        holds(&Withdrawal(world.ring), &witness.statement, &witness);
        let witness = world.withdrawal(balance, balance);
        holds(&Withdrawal(world.ring), &witness.statement, &witness);
    }
}

#[test]
fn honest_witnesses_satisfy_the_rows_of_the_ring_of_balances() {
    let mut world = World::new(Ring::BALANCE, 2);
    let witness = world.registration();
    holds(&Registration(world.ring), &witness.statement, &witness);
    let witness = world.transfer(1 << 50, 12_345_678, 10);
    holds(&Transfer(world.ring), &witness.statement, &witness);
    let witness = world.refresh(1 << 50);
    holds(&Refresh(world.ring), &witness.statement, &witness);
    let witness = world.withdrawal(1 << 50, 99);
    holds(&Withdrawal(world.ring), &witness.statement, &witness);
}

#[test]
fn circuits_of_the_ring_of_balances_stay_small() {
    fn rows<C: Circuit<Fr>>(circuit: &C) -> usize {
        let r1cs = R1cs::of(circuit).unwrap();
        let (rows, committed) = (r1cs.constraints(), r1cs.committed());
        println!("{}: {rows} rows, {committed} committed", std::any::type_name::<C>());
        rows + r1cs.shape().public()
    }
    let ring = Ring::BALANCE;
    // The next power of two is what proving costs.
    assert!(rows(&Transfer(ring)) <= 1 << 15);
    assert!(rows(&Refresh(ring)) <= 1 << 15);
    assert!(rows(&Registration(ring)) <= 1 << 14);
    assert!(rows(&Withdrawal(ring)) <= 1 << 14);
}

#[test]
fn noise_up_to_the_bound_is_proved_and_no_more() {
    let mut world = world(3);
    let bound = i128::from(NOISE_BOUND);
    for (noise, fits) in [(-bound, true), (bound - 1, true), (-bound - 1, false), (bound, false)] {
        let mut witness = world.withdrawal(1_000, 10);
        let owner = &world.owners[0];
        let available = &mut witness.statement.owner.available;
        let product = crate::native::negacyclic(available.c1.coefficients(), &owner.secret)[0];
        let message = i128::from(world.ring.delta()) * i128::from(limbs(1_000)[0]);
        available.c0[0] = crate::native::reduce(&world.ring, message + noise - product);
        let circuit = Withdrawal(world.ring);
        let expected: &[&str] = if fits { &[] } else { &["errors"] };
        let refused = Forger::new(&circuit, &witness.statement, &witness).refused_by(&witness.statement);
        assert_eq!(refused, expected, "noise {noise}");
    }
}

#[test]
fn honest_code_refuses_what_cannot_be_proved() {
    let mut world = world(4);
    let refused = |result: Result<_, SynthesisError>| match result {
        Err(SynthesisError::Witness(reason)) => reason,
        _ => panic!("not refused"),
    };
    let challenges = [Fr::from(5u64), Fr::from(7_000u64)];
    let circuit = Transfer(small_ring());
    let r1cs = R1cs::of(&circuit).unwrap();
    let mut attempt = |change: &dyn Fn(&mut crate::circuits::TransferWitness)| {
        let mut witness = world.transfer(1_000, 900, 0);
        change(&mut witness);
        refused(r1cs.assignment(&circuit, &witness.statement, &witness, &challenges))
    };
    assert_eq!(attempt(&|w| w.statement.fee = 101), "the balance does not cover what is spent");
    assert_eq!(attempt(&|w| *w.amount = 901), "an equation does not hold modulo q");
    assert_eq!(attempt(&|w| w.randomness.e1[0] ^= 1), "an equation does not hold modulo q");
    // What another secret decrypts to is noise.
    attempt(&|w| w.secret.reverse());
    assert_eq!(attempt(&|w| w.secret.truncate(63)), "a polynomial has another length than the ring's degree");
}
