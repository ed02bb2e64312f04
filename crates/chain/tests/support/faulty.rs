//! A backend whose fast arithmetic errs.

use std::sync::Arc;

use blindfold_bte::{
    Backend, BatchError, Ciphertext, CiphertextPoint, EncryptionKey, HintError, HintItem, MemberKey, Opening,
    Parameters, PreDecrypted, ProofError, ProofItem, Release, SingletonError,
};
use rand_chacha::rand_core::CryptoRng;

/// Refuses every hint and opens every ciphertext of a batch as malformed; the rest is right.
pub struct Faulty(pub Arc<dyn Backend>);

impl Backend for Faulty {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn threads(&self) -> usize {
        self.0.threads()
    }

    fn prepare(&self, parameters: &Parameters, batch: usize) -> Result<(), BatchError> {
        self.0.prepare(parameters, batch)
    }

    fn predecrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
    ) -> Result<PreDecrypted, BatchError> {
        self.0.predecrypt(parameters, points)
    }

    fn finalize(
        &self,
        parameters: &Parameters,
        predecrypted: &PreDecrypted,
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError> {
        let opened = self.0.finalize(parameters, predecrypted, release, ciphertexts)?;
        Ok(vec![Opening::Malformed; opened.len()])
    }

    fn open_hints(&self, _key: &EncryptionKey, items: &[HintItem<'_>]) -> Vec<Result<Vec<u8>, HintError>> {
        vec![Err(HintError::Header); items.len()]
    }

    fn verify_proofs(
        &self,
        rng: &mut dyn CryptoRng,
        items: &[ProofItem<'_>],
    ) -> Vec<Result<CiphertextPoint, ProofError>> {
        self.0.verify_proofs(rng, items)
    }

    fn release_share(&self, key: &MemberKey, points: &[CiphertextPoint]) -> Result<[u8; 48], BatchError> {
        self.0.release_share(key, points)
    }

    fn invalid_shares(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        shares: &[(u16, [u8; 48])],
    ) -> Result<Vec<u16>, BatchError> {
        self.0.invalid_shares(rng, parameters, points, shares)
    }

    fn verify_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[(CiphertextPoint, [u8; 48])],
    ) -> Vec<Result<(), SingletonError>> {
        self.0.verify_singletons(rng, parameters, items)
    }
}
