//! A malicious prover: commits to whatever a test says, and fills in all other variables so that as many rows hold as can.
//!
//! Every row here either defines one variable outside the commitment from others, or checks. The forger takes the honest
//! commitment, alters it, and solves row after row; what is left are the checks that fail. They are told by name, so a
//! test sees that the intended one does.

use std::cell::RefCell;

use ark_ff::{AdditiveGroup, Field, PrimeField};
use blindfold_groth16::{
    Circuit, LinearCombination, R1cs, Shape, Statement, Synthesis, SynthesisError, Variable,
};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

use crate::Fr;
use crate::circuits::refresh::RefreshParts;
use crate::circuits::registration::RegistrationParts;
use crate::circuits::transfer::TransferParts;
use crate::circuits::withdrawal::WithdrawalParts;
use crate::gadgets::lookup::Tables;
use crate::gadgets::lookup::cheating::cheat;

/// What a circuit commits, and its checks in the order of their rows.
pub(super) trait Parts {
    const CHECKS: &'static [&'static str];
    fn tables(&self) -> &Tables;
}

impl Parts for RegistrationParts {
    const CHECKS: &'static [&'static str] = &["key", "commitment", "trits", "errors", "bytes"];
    fn tables(&self) -> &Tables {
        &self.tables
    }
}

impl Parts for TransferParts {
    const CHECKS: &'static [&'static str] =
        &["c1·s", "decryption", "commitment", "c1", "b·u", "copies", "balance", "trits", "errors", "bytes"];
    fn tables(&self) -> &Tables {
        &self.tables
    }
}

impl Parts for RefreshParts {
    const CHECKS: &'static [&'static str] = TransferParts::CHECKS;
    fn tables(&self) -> &Tables {
        &self.tables
    }
}

impl Parts for WithdrawalParts {
    const CHECKS: &'static [&'static str] =
        &["c1·s", "decryption", "commitment", "balance", "trits", "errors", "bytes"];
    fn tables(&self) -> &Tables {
        &self.tables
    }
}

/// The malicious prover.
pub(super) struct Forger<'a, C: Circuit<Fr>> {
    circuit: &'a C,
    r1cs: R1cs<Fr>,
    challenges: Vec<Fr>,
    /// The whole assignment; what is neither public nor committed is solved for.
    values: Vec<Fr>,
}

impl<'a, C: Circuit<Fr, Committed: Parts>> Forger<'a, C> {
    /// Starts from what the honest code commits to. Values out of range do not stop it here.
    pub(super) fn new(circuit: &'a C, statement: &C::Statement, witness: &C::Witness) -> Self {
        let r1cs = R1cs::of(circuit).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(99);
        let challenges: Vec<Fr> = (0..2).map(|_| random(&mut rng)).collect();
        let values = cheat(|| r1cs.assignment(circuit, statement, witness, &challenges)).unwrap();
        Self { circuit, r1cs, challenges, values: values.to_vec() }
    }

    /// Looks something up in what the circuit commits.
    pub(super) fn find<T>(&self, look: impl Fn(&C::Committed) -> T) -> T {
        let peek = Peek { circuit: self.circuit, look, found: RefCell::new(None) };
        R1cs::of(&peek).unwrap();
        peek.found.into_inner().unwrap()
    }

    pub(super) fn value(&self, sum: &LinearCombination<Fr>) -> Fr {
        sum.terms().iter().map(|(coefficient, variable)| self.values[variable.index()] * coefficient).sum()
    }

    /// Commits to another value.
    pub(super) fn set(&mut self, variable: Variable, value: impl Into<Fr>) {
        self.values[variable.index()] = value.into();
    }

    /// Adds to what a variable is.
    pub(super) fn shift(&mut self, variable: Variable, by: impl Into<Fr>) {
        self.values[variable.index()] += by.into();
    }

    /// Splits an integer anew into looked-up parts; the highest takes what the others do not.
    pub(super) fn set_integer(&mut self, parts: &LinearCombination<Fr>, value: i128) {
        let offset = constant(parts);
        let mut rest = value - offset;
        let parts = variables(parts);
        for (place, variable) in parts.iter().enumerate() {
            let part = if place + 1 == parts.len() { rest } else { rest.rem_euclid(256) };
            rest = rest.div_euclid(256);
            self.set(*variable, Fr::from(part));
        }
    }

    /// Puts any element of the field into looked-up parts: the lowest takes all of it.
    pub(super) fn set_element(&mut self, parts: &LinearCombination<Fr>, value: Fr) {
        let (lowest, others) = variables(parts).split_first().map(|(x, rest)| (*x, rest.to_vec())).unwrap();
        others.into_iter().for_each(|part| self.set(part, 0u64));
        self.set(lowest, value - Fr::from(constant(parts)));
    }

    /// The integer that looked-up parts hold, if it is one of 64 bits.
    pub(super) fn integer(&self, parts: &LinearCombination<Fr>) -> i128 {
        small_integer(self.value(parts)).unwrap()
    }

    /// The checks that fail for a statement, once counts of look-ups and all variables outside the commitment are what
    /// fits best.
    pub(super) fn refused_by(&mut self, statement: &C::Statement) -> Vec<&'static str> {
        let values = RefCell::new(std::mem::take(&mut self.values));
        self.find(|parts| parts.tables().recount(&mut values.borrow_mut()));
        self.values = values.into_inner();
        let inputs =
            [statement.inputs(), self.challenges.clone(), statement.derived(&self.challenges)].concat();
        self.values[1..=inputs.len()].copy_from_slice(&inputs);
        let known = self.r1cs.shape().public() + self.r1cs.committed();
        let checks = self.solve(known);
        assert_eq!(checks.len(), C::Committed::CHECKS.len(), "every check has a name");
        let named = C::Committed::CHECKS.iter().zip(checks);
        named.filter(|(_, holds)| !holds).map(|(name, _)| *name).collect()
    }

    /// Solves for the variables from `known` on; whether each row that defines none holds.
    fn solve(&mut self, known: usize) -> Vec<bool> {
        let mut solved: Vec<bool> = (0..self.values.len()).map(|variable| variable < known).collect();
        let mut checks = Vec::new();
        for row in 0..self.r1cs.constraints() {
            let row = self.r1cs.row(row);
            let mut unknown = None;
            let [a, b, c] = [0, 1, 2].map(|side| {
                let mut sum = Fr::ZERO;
                for (coefficient, variable) in row[side].terms() {
                    if solved[variable.index()] {
                        sum += self.values[variable.index()] * coefficient;
                    } else {
                        assert!(unknown.is_none(), "a row defines one variable at most");
                        unknown = Some((side, *coefficient, variable.index()));
                    }
                }
                sum
            });
            let Some((side, coefficient, variable)) = unknown else {
                checks.push(a * b == c);
                continue;
            };
            let value = match side {
                0 => c * b.inverse().unwrap() - a,
                1 => c * a.inverse().unwrap() - b,
                _ => a * b - c,
            };
            self.values[variable] = value * coefficient.inverse().unwrap();
            solved[variable] = true;
        }
        assert!(solved.iter().all(|solved| *solved), "every variable is defined by a row");
        checks
    }
}

/// Variables of a sum, without its constant.
fn variables(sum: &LinearCombination<Fr>) -> Vec<Variable> {
    let terms = sum.terms().iter().map(|(_, variable)| *variable);
    terms.filter(|variable| *variable != Variable::ONE).collect()
}

fn constant(sum: &LinearCombination<Fr>) -> i128 {
    let constants = sum.terms().iter().filter(|(_, variable)| *variable == Variable::ONE);
    small_integer(constants.map(|(coefficient, _)| *coefficient).sum()).unwrap()
}

fn small_integer(value: Fr) -> Option<i128> {
    let limbs = |value: Fr| value.into_bigint().0;
    match (limbs(value), limbs(-value)) {
        ([low, 0, 0, 0], _) => Some(i128::from(low)),
        (_, [low, 0, 0, 0]) => Some(-i128::from(low)),
        _ => None,
    }
}

fn random(rng: &mut ChaCha20Rng) -> Fr {
    let mut bytes = [0; 64];
    rng.fill_bytes(&mut bytes);
    Fr::from_le_bytes_mod_order(&bytes)
}

/// A circuit that shows what it commits.
struct Peek<'a, C, T, L> {
    circuit: &'a C,
    look: L,
    found: RefCell<Option<T>>,
}

impl<C: Circuit<Fr>, T, L: Fn(&C::Committed) -> T> Circuit<Fr> for Peek<'_, C, T, L> {
    type Statement = C::Statement;
    type Witness = C::Witness;
    type Committed = C::Committed;

    fn shape(&self) -> Shape {
        self.circuit.shape()
    }

    fn commit(
        &self,
        cs: &mut Synthesis<Fr>,
        witness: Option<&C::Witness>,
    ) -> Result<C::Committed, SynthesisError> {
        self.circuit.commit(cs, witness)
    }

    fn constrain(
        &self,
        cs: &mut Synthesis<Fr>,
        committed: C::Committed,
        witness: Option<&C::Witness>,
    ) -> Result<(), SynthesisError> {
        *self.found.borrow_mut() = Some((self.look)(&committed));
        self.circuit.constrain(cs, committed, witness)
    }
}
