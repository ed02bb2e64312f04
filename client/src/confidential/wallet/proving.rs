//! From a transaction to its proof.

use blindfold_confidential::LIMBS;
use blindfold_confidential::circuits::Randomness;
use blindfold_confidential::state::{Claim, Premises, Settings};
use blindfold_confidential::transaction::{ConfidentialTransaction as T, EncodedProof};
use blindfold_rlwe::rlwe::{EncryptionWitness, PublicKey};
use blindfold_runtime::blocking;
use zeroize::Zeroizing;

use super::{ConfidentialError, ConfidentialWallet};
use crate::confidential::provers::{Progress, ProvingKeys, Witness};

impl ConfidentialWallet {
    /// Proves on a thread of its own.
    pub(super) async fn proved(
        &self,
        keys: &ProvingKeys,
        witness: Witness,
        mut progress: Progress,
    ) -> Result<EncodedProof, ConfidentialError> {
        let (keys, ring) = (keys.clone(), *self.settings.ring());
        let proved = blocking(move || keys.prove(ring, &witness, &mut *progress));
        Ok(proved.await.map_err(|_| ConfidentialError::Interrupted)??)
    }

    pub(super) fn coefficients(&self) -> Zeroizing<Vec<i8>> {
        Zeroizing::new(self.secret.coefficients().to_vec())
    }

    pub(super) fn claim(&self, transaction: &T, premises: &Premises) -> Result<Claim, ConfidentialError> {
        Claim::new(&self.settings, transaction, premises)?.ok_or(ConfidentialError::NoStatement)
    }
}

/// A key of the state as the encryption takes it.
pub(super) fn public_key(
    settings: &Settings,
    key: &blindfold_confidential::Polynomial,
) -> Result<PublicKey, ConfidentialError> {
    let mut packed = Vec::new();
    blindfold_rlwe::ring::pack(key.coefficients(), settings.ring().modulus_bits(), &mut packed);
    PublicKey::decode(settings.parameters(), &packed).map_err(|_| ConfidentialError::ReceiverKey)
}

pub(super) fn randomness<const K: usize>(witness: &EncryptionWitness) -> Option<Randomness<K>> {
    let e0: Option<Vec<Zeroizing<[i8; LIMBS]>>> =
        witness.e0().map(|e0| Some(Zeroizing::new(<[i8; LIMBS]>::try_from(e0).ok()?))).collect();
    Some(Randomness {
        u: Zeroizing::new(witness.u().to_vec()),
        e1: Zeroizing::new(witness.e1().to_vec()),
        e0: e0?.try_into().ok()?,
    })
}
