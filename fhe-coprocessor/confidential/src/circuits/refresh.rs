//! Refresh: a fresh ciphertext to the owner alone holds the balance of the one it replaces.
//!
//! With limbs v_j in [0, 256) in the new ciphertext: Σ v_j·2^(8j) = Σ m_j·2^(8j), both below 2^80, so over the integers.
//! Afterwards noise and limbs are those of one encryption again.

use blindfold_groth16::{Circuit, Shape, Statement, Synthesis, SynthesisError, Variable};
use zeroize::Zeroizing;

use super::spending::{self, Spending, fresh_places};
use super::{ALPHA, CHALLENGES, Randomness, TAU};
use crate::evaluation::Powers;
use crate::gadgets::encryption::{Encryption, amount_limbs, amount_sum};
use crate::gadgets::lookup::Tables;
use crate::statement::{Binding, FreshCiphertext, Holding, circuit_id};
use crate::{Fr, LIMBS, Ring, tags};

/// What a refresh says publicly. The key and the available ciphertext are those of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshStatement {
    /// The account and what it has available.
    pub owner: Holding,
    /// Its balance, encrypted anew to its own key.
    pub balance: FreshCiphertext<1>,
}

/// What the owner knows, with what it is about.
#[derive(Clone)]
pub struct RefreshWitness {
    /// What is stated in public.
    pub statement: RefreshStatement,
    /// The owner's secret s, ternary.
    pub secret: Zeroizing<Vec<i8>>,
    /// Randomness of the new ciphertext.
    pub randomness: Randomness<1>,
}

/// The circuit for a ring.
#[derive(Debug, Clone, Copy)]
pub struct Refresh(pub Ring);

impl Statement<Fr> for RefreshStatement {
    fn digest(&self) -> [u8; 32] {
        Binding::of_holding(tags::REFRESH, &self.owner).fresh(&self.balance).finish()
    }

    fn inputs(&self) -> Vec<Fr> {
        vec![self.owner.secret_commitment]
    }

    fn derived(&self, challenges: &[Fr]) -> Vec<Fr> {
        let powers =
            Powers::of(challenges[TAU], self.balance.polynomials().chain([&self.owner.available.c1]));
        [&self.owner.derived(&powers)[..], &self.balance.derived(&powers)].concat()
    }
}

/// What [`Refresh`] commits to.
pub struct RefreshParts {
    pub(super) tables: Tables,
    pub(super) spending: Spending,
    pub(super) amount: [Variable; LIMBS],
    pub(super) encryption: Encryption,
}

impl Circuit<Fr> for Refresh {
    type Statement = RefreshStatement;
    type Witness = RefreshWitness;
    type Committed = RefreshParts;

    fn shape(&self) -> Shape {
        let id = circuit_id(tags::REFRESH, &self.0);
        let derived = spending::DERIVED + spending::FRESH;
        Shape { id, inputs: spending::INPUTS, challenges: CHALLENGES, derived }
    }

    fn commit(
        &self,
        cs: &mut Synthesis<Fr>,
        witness: Option<&RefreshWitness>,
    ) -> Result<RefreshParts, SynthesisError> {
        let ring = &self.0;
        let mut tables = Tables::new();
        let holding = witness.map(|w| (&w.statement.owner, w.secret.as_slice()));
        let spending = Spending::commit(cs, &mut tables, ring, holding)?;
        let balance = spending.balance.value.as_ref().map(|balance| {
            u64::try_from(**balance)
                .map_err(|_| SynthesisError::Witness("the balance is negative or 2^64 and more"))
        });
        let amount = amount_limbs(cs, &mut tables, balance.transpose()?)?;
        let encrypted = witness.map(|w| (&w.statement.balance, &w.randomness));
        let encryption = Encryption::commit(cs, &mut tables, ring, &amount, encrypted)?;
        tables.commit_counts(cs)?;
        Ok(RefreshParts { tables, spending, amount, encryption })
    }

    fn constrain(
        &self,
        cs: &mut Synthesis<Fr>,
        parts: RefreshParts,
        _witness: Option<&RefreshWitness>,
    ) -> Result<(), SynthesisError> {
        parts.spending.constrain(cs, &self.0)?;
        let tau = cs.challenge(TAU);
        let public = fresh_places(cs);
        parts.encryption.constrain(cs, &self.0, tau, public)?;
        cs.enforce(parts.spending.balance.sum, Variable::ONE, amount_sum(&parts.amount))?;
        let alpha = cs.challenge(ALPHA);
        parts.tables.constrain(cs, alpha)
    }
}
