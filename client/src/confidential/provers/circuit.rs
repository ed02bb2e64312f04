//! The circuits by name.

use ark_bls12_381::Bls12_381;

use blindfold_confidential::circuits::{Refresh, Registration, Transfer, Withdrawal};
use blindfold_confidential::{Fr, Ring};
use blindfold_groth16::setup::{self, SetupError};
use blindfold_groth16::{ProvingKey, R1cs};

/// A circuit of confidential balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfidentialCircuit {
    /// Opens an account under a key.
    Registration,
    /// Pays another account.
    Transfer,
    /// Encrypts the available balance anew.
    Refresh,
    /// Pays out into the public ledger.
    Withdrawal,
}

impl ConfidentialCircuit {
    /// All of them, in the order in which their keys are made.
    pub const ALL: [Self; 4] = [Self::Registration, Self::Transfer, Self::Refresh, Self::Withdrawal];

    /// Its name: that of its files, and in `confidential.json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Registration => "registration",
            Self::Transfer => "transfer",
            Self::Refresh => "refresh",
            Self::Withdrawal => "withdrawal",
        }
    }

    /// Its rows.
    ///
    /// # Errors
    /// [`SetupError::Synthesis`], a mistake of this program.
    pub(crate) fn rows(self, ring: Ring) -> Result<R1cs<Fr>, SetupError> {
        Ok(match self {
            Self::Registration => R1cs::of(&Registration(ring)),
            Self::Transfer => R1cs::of(&Transfer(ring)),
            Self::Refresh => R1cs::of(&Refresh(ring)),
            Self::Withdrawal => R1cs::of(&Withdrawal(ring)),
        }?)
    }

    /// A key that follows from a seed. One multiplication of a generator for each of its elements.
    pub(super) fn development(
        self,
        ring: Ring,
        seed: &[u8; 32],
    ) -> Result<ProvingKey<Bls12_381>, SetupError> {
        match self {
            Self::Registration => setup::development(&Registration(ring), seed),
            Self::Transfer => setup::development(&Transfer(ring), seed),
            Self::Refresh => setup::development(&Refresh(ring), seed),
            Self::Withdrawal => setup::development(&Withdrawal(ring), seed),
        }
    }
}
