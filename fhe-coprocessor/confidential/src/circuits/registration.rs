//! Registration: a public key is that of a small secret, and the registered commitment is that secret's.
//!
//! b = −a·s + e modulo q with ternary s and |e| ≤ 16 is a·s + (−e) = −b, a noisy product (`gadgets::polynomial`); errors are symmetric. From
//! this follows the bound on the noise of every ciphertext made for the key: without it a key with large e would make
//! honest transfers to it undecryptable, and its owner's balance unprovable.

use alloy_primitives::Address;
use blindfold_groth16::{Circuit, LinearCombination, Shape, Statement, Synthesis, SynthesisError};
use zeroize::Zeroizing;

use super::{ALPHA, CHALLENGES, TAU};
use crate::evaluation::Powers;
use crate::gadgets::lookup::Tables;
use crate::gadgets::polynomial::{NoisyProduct, NoisyProductWitness};
use crate::gadgets::secret::Secret;
use crate::polynomial::Polynomial;
use crate::statement::{Binding, Domain, circuit_id};
use crate::{Fr, Ring, tags};

/// What a registration says publicly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrationStatement {
    /// The deployment that it is for.
    pub domain: Domain,
    /// Address of the account's owner.
    pub account: Address,
    /// The common public polynomial a.
    pub a: Polynomial,
    /// The key b = −a·s + e.
    pub key: Polynomial,
    /// Poseidon of the secret: [`crate::secret_commitment`].
    pub secret_commitment: Fr,
}

/// What the owner knows, with what it is about.
#[derive(Clone)]
pub struct RegistrationWitness {
    /// What is stated in public.
    pub statement: RegistrationStatement,
    /// The secret s, ternary.
    pub secret: Zeroizing<Vec<i8>>,
    /// The key's error e: b = −a·s + e.
    pub error: Zeroizing<Vec<i8>>,
}

/// The circuit for a ring.
#[derive(Debug, Clone, Copy)]
pub struct Registration(pub Ring);

/// The public input.
const COMMITMENT: usize = 0;
/// Values at τ.
const A: usize = 0;
const KEY: usize = 1;

impl Statement<Fr> for RegistrationStatement {
    fn digest(&self) -> [u8; 32] {
        Binding::new(tags::REGISTRATION, &self.domain)
            .account(&self.account)
            .polynomial(&self.a)
            .polynomial(&self.key)
            .element(&self.secret_commitment)
            .finish()
    }

    fn inputs(&self) -> Vec<Fr> {
        vec![self.secret_commitment]
    }

    fn derived(&self, challenges: &[Fr]) -> Vec<Fr> {
        let powers = Powers::of(challenges[TAU], [&self.a, &self.key]);
        vec![powers.evaluate(&self.a), powers.evaluate(&self.key)]
    }
}

/// What [`Registration`] commits to.
pub struct RegistrationParts {
    pub(super) tables: Tables,
    pub(super) secret: Secret,
    pub(super) key: NoisyProduct,
}

impl Circuit<Fr> for Registration {
    type Statement = RegistrationStatement;
    type Witness = RegistrationWitness;
    type Committed = RegistrationParts;

    fn shape(&self) -> Shape {
        let id = circuit_id(tags::REGISTRATION, &self.0);
        Shape { id, inputs: 1, challenges: CHALLENGES, derived: 2 }
    }

    fn commit(
        &self,
        cs: &mut Synthesis<Fr>,
        witness: Option<&RegistrationWitness>,
    ) -> Result<RegistrationParts, SynthesisError> {
        let mut tables = Tables::new();
        let secret = Secret::commit(cs, &mut tables, &self.0, witness.map(|w| w.secret.as_slice()))?;
        let negated = witness.map(|witness| {
            let error = Zeroizing::new(witness.error.iter().map(|e| e.saturating_neg()).collect::<Vec<i8>>());
            let key = witness.statement.key.coefficients().iter().map(|b| -(*b as i64));
            (error, key.collect::<Vec<i64>>())
        });
        let product = witness.zip(negated.as_ref()).map(|(witness, (e, y))| NoisyProductWitness {
            x: witness.statement.a.coefficients(),
            w: &witness.secret,
            e,
            y,
        });
        let key = NoisyProduct::commit(cs, &mut tables, &self.0, product.as_ref())?;
        tables.commit_counts(cs)?;
        Ok(RegistrationParts { tables, secret, key })
    }

    fn constrain(
        &self,
        cs: &mut Synthesis<Fr>,
        parts: RegistrationParts,
        _witness: Option<&RegistrationWitness>,
    ) -> Result<(), SynthesisError> {
        let tau = cs.challenge(TAU);
        let (a, key) = (cs.derived(A), cs.derived(KEY));
        let secret = parts.secret.polynomial.at(cs, tau)?;
        let negated_key = LinearCombination::zero() - key;
        parts.key.constrain(cs, &self.0, tau, [a.into(), secret, negated_key])?;
        let commitment = cs.input(COMMITMENT);
        parts.secret.constrain(cs, commitment)?;
        let alpha = cs.challenge(ALPHA);
        parts.tables.constrain(cs, alpha)
    }
}
