//! Transfer: one ciphertext for sender, receiver and auditor, the same amount for each, covered by the balance.
//!
//! With the amount's limbs v_j in [0, 256), the remainder in [0, 2^64) byte by byte and the fee a word:
//! Σ m_j·2^(8j) = Σ v_j·2^(8j) + fee + remainder, all terms below 2^81, so over the integers: the balance is at least the
//! amount and the fee, and less than 2^66. An amount of 0 is allowed.

use alloy_primitives::Address;
use blindfold_groth16::{Circuit, LinearCombination, Shape, Statement, Synthesis, SynthesisError, Variable};
use zeroize::Zeroizing;

use super::spending::{self, Spending, fresh_places};
use super::{ALPHA, CHALLENGES, Randomness, TAU};
use crate::evaluation::Powers;
use crate::gadgets::encryption::{Encryption, amount_limbs, amount_sum};
use crate::gadgets::lookup::Tables;
use crate::statement::{Binding, FreshCiphertext, Holding, circuit_id};
use crate::{Fr, LIMBS, Ring, tags};

/// Recipients of a transfer's ciphertext: sender, receiver, auditor, in this order.
pub const RECIPIENTS: usize = 3;

/// What a transfer says publicly. Keys and the available ciphertext are those of the state, never the sender's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferStatement {
    /// The sender, with what it has available.
    pub sender: Holding,
    /// Address of the receiver.
    pub receiver: Address,
    /// What the operator gets, publicly, in base units.
    pub fee: u64,
    /// The amount, encrypted to sender, receiver and auditor.
    pub amount: FreshCiphertext<RECIPIENTS>,
}

/// What the sender knows, with what it is about.
#[derive(Clone)]
pub struct TransferWitness {
    /// What is stated in public.
    pub statement: TransferStatement,
    /// The sender's secret s, ternary.
    pub secret: Zeroizing<Vec<i8>>,
    /// The amount, in base units.
    pub amount: Zeroizing<u64>,
    /// What the ciphertext is encrypted with: u and errors.
    pub randomness: Randomness<RECIPIENTS>,
}

/// The circuit for a ring.
#[derive(Debug, Clone, Copy)]
pub struct Transfer(pub Ring);

/// The public input after those of [`spending`].
const FEE: usize = spending::INPUTS;

impl Statement<Fr> for TransferStatement {
    fn digest(&self) -> [u8; 32] {
        Binding::of_holding(tags::TRANSFER, &self.sender)
            .account(&self.receiver)
            .word(self.fee)
            .fresh(&self.amount)
            .finish()
    }

    fn inputs(&self) -> Vec<Fr> {
        vec![self.sender.secret_commitment, Fr::from(self.fee)]
    }

    fn derived(&self, challenges: &[Fr]) -> Vec<Fr> {
        let powers =
            Powers::of(challenges[TAU], self.amount.polynomials().chain([&self.sender.available.c1]));
        [&self.sender.derived(&powers)[..], &self.amount.derived(&powers)].concat()
    }
}

/// What [`Transfer`] commits to.
pub struct TransferParts {
    pub(super) tables: Tables,
    pub(super) spending: Spending,
    pub(super) amount: [Variable; LIMBS],
    pub(super) encryption: Encryption,
    pub(super) remainder: LinearCombination<Fr>,
}

impl Circuit<Fr> for Transfer {
    type Statement = TransferStatement;
    type Witness = TransferWitness;
    type Committed = TransferParts;

    fn shape(&self) -> Shape {
        let id = circuit_id(tags::TRANSFER, &self.0);
        let derived = spending::DERIVED + spending::FRESH;
        Shape { id, inputs: spending::INPUTS + 1, challenges: CHALLENGES, derived }
    }

    fn commit(
        &self,
        cs: &mut Synthesis<Fr>,
        witness: Option<&TransferWitness>,
    ) -> Result<TransferParts, SynthesisError> {
        let ring = &self.0;
        let mut tables = Tables::new();
        let holding = witness.map(|w| (&w.statement.sender, w.secret.as_slice()));
        let spending = Spending::commit(cs, &mut tables, ring, holding)?;
        let amount = amount_limbs(cs, &mut tables, witness.map(|w| *w.amount))?;
        let encrypted = witness.map(|w| (&w.statement.amount, &w.randomness));
        let encryption = Encryption::commit(cs, &mut tables, ring, &amount, encrypted)?;
        let spent = witness.map(|w| u128::from(*w.amount) + u128::from(w.statement.fee));
        let remainder = spending.remainder(cs, &mut tables, spent)?;
        tables.commit_counts(cs)?;
        Ok(TransferParts { tables, spending, amount, encryption, remainder })
    }

    fn constrain(
        &self,
        cs: &mut Synthesis<Fr>,
        parts: TransferParts,
        _witness: Option<&TransferWitness>,
    ) -> Result<(), SynthesisError> {
        parts.spending.constrain(cs, &self.0)?;
        let tau = cs.challenge(TAU);
        let public = fresh_places(cs);
        parts.encryption.constrain(cs, &self.0, tau, public)?;
        let left = parts.spending.balance.sum - cs.input(FEE) - amount_sum(&parts.amount);
        cs.enforce(left, Variable::ONE, parts.remainder)?;
        let alpha = cs.challenge(ALPHA);
        parts.tables.constrain(cs, alpha)
    }
}
