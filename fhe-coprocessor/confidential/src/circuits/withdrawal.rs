//! Withdrawal: the balance covers a public amount, paid to an address that the proof binds.
//!
//! With the remainder in [0, 2^64) byte by byte and the amount a word: Σ m_j·2^(8j) = amount + remainder, all terms below
//! 2^80, so over the integers.

use alloy_primitives::Address;
use blindfold_groth16::{Circuit, LinearCombination, Shape, Statement, Synthesis, SynthesisError, Variable};
use zeroize::Zeroizing;

use super::spending::{self, Spending};
use super::{ALPHA, CHALLENGES, TAU};
use crate::evaluation::Powers;
use crate::gadgets::lookup::Tables;
use crate::statement::{Binding, Holding, circuit_id};
use crate::{Fr, Ring, tags};

/// What a withdrawal says publicly. The available ciphertext is that of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithdrawalStatement {
    /// The account and what it has available.
    pub owner: Holding,
    /// The account of the public ledger that is paid.
    pub recipient: Address,
    /// What is taken out, in base units.
    pub amount: u64,
}

/// What the owner knows, with what it is about.
#[derive(Clone)]
pub struct WithdrawalWitness {
    /// What is stated in public.
    pub statement: WithdrawalStatement,
    /// The owner's secret s, ternary.
    pub secret: Zeroizing<Vec<i8>>,
}

/// The circuit for a ring.
#[derive(Debug, Clone, Copy)]
pub struct Withdrawal(pub Ring);

/// The public input after those of [`spending`].
const AMOUNT: usize = spending::INPUTS;

impl Statement<Fr> for WithdrawalStatement {
    fn digest(&self) -> [u8; 32] {
        Binding::of_holding(tags::WITHDRAWAL, &self.owner).account(&self.recipient).word(self.amount).finish()
    }

    fn inputs(&self) -> Vec<Fr> {
        vec![self.owner.secret_commitment, Fr::from(self.amount)]
    }

    fn derived(&self, challenges: &[Fr]) -> Vec<Fr> {
        self.owner.derived(&Powers::of(challenges[TAU], [&self.owner.available.c1])).to_vec()
    }
}

/// What [`Withdrawal`] commits to.
pub struct WithdrawalParts {
    pub(super) tables: Tables,
    pub(super) spending: Spending,
    pub(super) remainder: LinearCombination<Fr>,
}

impl Circuit<Fr> for Withdrawal {
    type Statement = WithdrawalStatement;
    type Witness = WithdrawalWitness;
    type Committed = WithdrawalParts;

    fn shape(&self) -> Shape {
        let id = circuit_id(tags::WITHDRAWAL, &self.0);
        Shape { id, inputs: spending::INPUTS + 1, challenges: CHALLENGES, derived: spending::DERIVED }
    }

    fn commit(
        &self,
        cs: &mut Synthesis<Fr>,
        witness: Option<&WithdrawalWitness>,
    ) -> Result<WithdrawalParts, SynthesisError> {
        let mut tables = Tables::new();
        let holding = witness.map(|w| (&w.statement.owner, w.secret.as_slice()));
        let spending = Spending::commit(cs, &mut tables, &self.0, holding)?;
        let spent = witness.map(|w| u128::from(w.statement.amount));
        let remainder = spending.remainder(cs, &mut tables, spent)?;
        tables.commit_counts(cs)?;
        Ok(WithdrawalParts { tables, spending, remainder })
    }

    fn constrain(
        &self,
        cs: &mut Synthesis<Fr>,
        parts: WithdrawalParts,
        _witness: Option<&WithdrawalWitness>,
    ) -> Result<(), SynthesisError> {
        parts.spending.constrain(cs, &self.0)?;
        let left = parts.spending.balance.sum - cs.input(AMOUNT);
        cs.enforce(left, Variable::ONE, parts.remainder)?;
        let alpha = cs.challenge(ALPHA);
        parts.tables.constrain(cs, alpha)
    }
}
