//! The constants of a deployment.

use std::sync::Arc;

use alloy_primitives::Address;
use blindfold_rlwe::ring::Poly;
use blindfold_rlwe::rlwe::{Ciphertext, Parameters, PublicKey, PublicPolynomial};

use super::Sum;
use crate::statement::Domain;
use crate::{ERROR_BOUND, LIMBS, Polynomial, PolynomialError, Ring, RingError};

/// What all executors of a deployment must agree on.
#[derive(Debug, Clone)]
pub struct Settings {
    domain: Domain,
    parameters: Arc<Parameters>,
    ring: Ring,
    a: Polynomial,
    auditor: Polynomial,
    zero: Arc<Sum>,
    operator: Address,
    minimum_fee: u64,
}

/// Settings that do not belong together; whoever deploys is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The set's numbers are none that the circuits prove anything for.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The set has several primes, another t, other limbs or other errors than the circuits.
    #[error("the circuits are for sets like `balance`: one prime, t = 2^24, 8 limbs, errors up to 16")]
    Parameters,
    /// The auditor's key is of another set.
    #[error("the auditor's key belongs to other parameters than the public polynomial")]
    Auditor,
    /// The auditor's key is 0, or so small that s = 0 goes with it: everybody could read every amount.
    #[error(
        "the auditor's key is 0 or as small as an error: it hides nothing, and everybody could read every amount"
    )]
    AuditorHidesNothing,
    /// A polynomial is not one of the ring.
    #[error(transparent)]
    Polynomial(#[from] PolynomialError),
}

impl Settings {
    /// Checks that the parts fit each other.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn new(
        domain: Domain,
        public: &PublicPolynomial,
        auditor: &PublicKey,
        operator: Address,
        minimum_fee: u64,
    ) -> Result<Self, SettingsError> {
        let parameters = public.parameters();
        let literal = parameters.literal();
        let [modulus] = literal.primes[..] else { return Err(SettingsError::Parameters) };
        let ring = Ring::new(literal.degree, modulus)?;
        let fits = literal.used == LIMBS
            && literal.plaintext_modulus == ring.plaintext()
            && literal.error_bound == ERROR_BOUND.unsigned_abs()
            && literal.message_bound == Some(u64::from(u8::MAX));
        if !fits {
            return Err(SettingsError::Parameters);
        }
        if auditor.parameters() != parameters {
            return Err(SettingsError::Auditor);
        }
        let auditor = polynomial(&ring, auditor.polynomial())?;
        let bound = u64::from(ERROR_BOUND.unsigned_abs());
        if auditor.coefficients().iter().all(|b| *b <= bound || modulus - b <= bound) {
            return Err(SettingsError::AuditorHidesNothing);
        }
        Ok(Self {
            domain,
            parameters: Arc::clone(parameters),
            ring,
            a: polynomial(&ring, public.polynomial())?,
            auditor,
            zero: Arc::new(Sum::new(Ciphertext::zero(parameters))),
            operator,
            minimum_fee,
        })
    }

    /// The deployment: both chain ids and the contract.
    #[must_use]
    pub const fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The set of parameters of the encryption.
    #[must_use]
    pub const fn parameters(&self) -> &Arc<Parameters> {
        &self.parameters
    }

    /// The ring of the circuits.
    #[must_use]
    pub const fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The common public polynomial a.
    #[must_use]
    pub const fn a(&self) -> &Polynomial {
        &self.a
    }

    /// The auditor's public key, to which every transfer is encrypted.
    #[must_use]
    pub const fn auditor(&self) -> &Polynomial {
        &self.auditor
    }

    /// The sum of nothing: one for all accounts, hashed once.
    #[must_use]
    pub const fn zero(&self) -> &Arc<Sum> {
        &self.zero
    }

    /// Who gets the fees, in the public ledger.
    #[must_use]
    pub const fn operator(&self) -> Address {
        self.operator
    }

    /// The least fee of a transfer and the least deposit, in base units: what it costs to use up one term of somebody's
    /// `pending`.
    #[must_use]
    pub const fn minimum_fee(&self) -> u64 {
        self.minimum_fee
    }

    /// A polynomial of the set. A copy of its coefficients.
    ///
    /// # Errors
    /// [`PolynomialError`], where it is of another set.
    pub fn polynomial(&self, poly: &Poly) -> Result<Polynomial, PolynomialError> {
        polynomial(&self.ring, poly)
    }
}

fn polynomial(ring: &Ring, poly: &Poly) -> Result<Polynomial, PolynomialError> {
    Polynomial::new(ring, poly.residues().to_vec())
}
