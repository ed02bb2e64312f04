//! What transfer, refresh and withdrawal have in common: an account's secret, and the balance that it decrypts.

use blindfold_groth16::{LinearCombination, Synthesis, SynthesisError, Variable};

use super::TAU;
use crate::gadgets::balance::Balance;
use crate::gadgets::lookup::Tables;
use crate::gadgets::secret::Secret;
use crate::statement::Holding;
use crate::{Fr, Ring};

/// The first public input of such a circuit: the commitment to the secret.
const COMMITMENT: usize = 0;
/// Its first values at τ: [`Holding::derived`].
const AVAILABLE: [usize; 2] = [0, 1];
/// Public inputs that these are.
pub(super) const INPUTS: usize = 1;
/// Values at τ that these are.
pub(super) const DERIVED: usize = 2;

/// Bytes of an amount, one for each limb.
const AMOUNT_BYTES: usize = 8;

/// A committed secret and a committed decryption.
pub(super) struct Spending {
    pub(super) secret: Secret,
    pub(super) balance: Balance,
}

impl Spending {
    pub(super) fn commit(
        cs: &mut Synthesis<Fr>,
        tables: &mut Tables,
        ring: &Ring,
        witness: Option<(&Holding, &[i8])>,
    ) -> Result<Self, SynthesisError> {
        let secret = Secret::commit(cs, tables, ring, witness.map(|(_, secret)| secret))?;
        let decrypted = witness.map(|(holding, secret)| (&holding.available, secret));
        Ok(Self { secret, balance: Balance::commit(cs, tables, ring, decrypted)? })
    }

    /// Commits what is left after `spent` is taken from the balance, in [0, 2^64).
    pub(super) fn remainder(
        &self,
        cs: &mut Synthesis<Fr>,
        tables: &mut Tables,
        spent: Option<u128>,
    ) -> Result<LinearCombination<Fr>, SynthesisError> {
        let left = self.balance.value.as_ref().zip(spent).map(|(balance, spent)| {
            let left = i128::try_from(spent).ok().and_then(|spent| balance.checked_sub(spent));
            left.and_then(|left| u64::try_from(left).ok())
                .ok_or(SynthesisError::Witness("the balance does not cover what is spent"))
        });
        tables.unsigned(cs, left.transpose()?, AMOUNT_BYTES)
    }

    /// The equations at τ, and that the secret is the registered one.
    pub(super) fn constrain(&self, cs: &mut Synthesis<Fr>, ring: &Ring) -> Result<(), SynthesisError> {
        let tau = cs.challenge(TAU);
        let secret = self.secret.polynomial.at(cs, tau)?;
        let public = AVAILABLE.map(|place| cs.derived(place));
        self.balance.constrain(cs, ring, tau, secret, public)?;
        let commitment = cs.input(COMMITMENT);
        self.secret.constrain(cs, commitment)
    }
}

/// The four values of a fresh ciphertext, which follow those of the balance.
pub(super) fn fresh_places(cs: &Synthesis<Fr>) -> [Variable; FRESH] {
    std::array::from_fn(|place| cs.derived(DERIVED + place))
}

/// Values at τ of a fresh ciphertext: [`crate::statement::FreshCiphertext::derived`].
pub(super) const FRESH: usize = 4;
