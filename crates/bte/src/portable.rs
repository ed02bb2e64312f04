//! The backend for every machine: scalar arithmetic, data-parallel over a pool of its own.

use rand_core::CryptoRng;

use crate::bulk::{Bulk, ScalarBulk, decode_headers};
use crate::comb::generator_times_all;
use crate::cpu::Processor;
use crate::curve::{Gt, Scalar};
use crate::hint::HintItem;
use crate::opening::open_all;
use crate::par::Pool;
use crate::proof::{ProofItem, verify_proofs_with};
use crate::weights::Expanded;
use crate::{
    Backend, BatchError, Ciphertext, CiphertextPoint, EncryptionKey, G1_BYTES, HintError, KnownBatch,
    MemberKey, Opening, Parameters, PointError, PreDecrypted, ProofError, Release, SingletonError,
    SingletonItem, batch,
};

/// Scalar implementation of [`Backend`]. In a browser it has no threads.
pub struct Portable {
    pool: Pool,
}

impl Portable {
    /// With its own pool of `threads` threads (0: one for each core).
    ///
    /// # Panics
    /// If the operating system refuses to start the threads.
    pub fn new(threads: usize) -> Self {
        Self { pool: Pool::new(threads) }
    }

    /// Runs `work` on this backend's threads: everything in this crate that says "on the current pool" then uses them.
    pub fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.pool.install(work)
    }
}

impl std::fmt::Debug for Portable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Portable({} threads)", self.threads())
    }
}

impl Backend for Portable {
    fn name(&self) -> &'static str {
        "portable"
    }

    fn threads(&self) -> usize {
        self.install(crate::par::threads)
    }

    fn prepare(&self, parameters: &Parameters, batch: usize) -> Result<(), BatchError> {
        parameters.check_batch(batch)?;
        self.install(|| parameters.prepare(batch));
        Ok(())
    }

    fn decode_headers(&self, headers: &[&[u8; G1_BYTES]]) -> Vec<Result<CiphertextPoint, PointError>> {
        self.install(|| decode_headers(&ScalarBulk, headers))
    }

    fn predecrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
    ) -> Result<PreDecrypted, BatchError> {
        self.install(|| batch::predecrypt(parameters, points))
    }

    fn finalize(
        &self,
        parameters: &Parameters,
        predecrypted: &PreDecrypted,
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError> {
        self.install(|| batch::finalize(parameters, predecrypted, release, ciphertexts))
    }

    fn decrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError> {
        self.install(|| batch::decrypt(parameters, points, release, ciphertexts))
    }

    fn open_hints(&self, key: &EncryptionKey, items: &[HintItem<'_>]) -> Vec<Result<Vec<u8>, HintError>> {
        self.install(|| key.open_hints(items))
    }

    fn verify_proofs(
        &self,
        rng: &mut dyn CryptoRng,
        items: &[ProofItem<'_>],
    ) -> Vec<Result<CiphertextPoint, ProofError>> {
        let mut rng = Expanded::new(rng);
        self.install(|| verify_proofs_with(&ScalarBulk, &mut rng, items))
    }

    fn release_share(
        &self,
        key: &MemberKey,
        points: &[CiphertextPoint],
    ) -> Result<[u8; G1_BYTES], BatchError> {
        self.install(|| key.release_share(points))
    }

    fn invalid_shares(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        shares: &[(u16, [u8; G1_BYTES])],
    ) -> Result<Vec<u16>, BatchError> {
        let mut rng = Expanded::new(rng);
        self.install(|| parameters.invalid_shares(&mut rng, points, shares))
    }

    fn wrong_releases(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        batches: &[KnownBatch<'_>],
    ) -> Result<Vec<usize>, BatchError> {
        let mut rng = Expanded::new(rng);
        self.install(|| parameters.wrong_releases(&mut rng, batches))
    }

    fn verify_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[(CiphertextPoint, [u8; G1_BYTES])],
    ) -> Vec<Result<(), SingletonError>> {
        let mut rng = Expanded::new(rng);
        self.install(|| parameters.verify_singletons(&mut rng, items))
    }

    fn open_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[SingletonItem<'_>],
    ) -> Vec<Result<Opening, SingletonError>> {
        let mut rng = Expanded::new(rng);
        self.install(|| parameters.open_singletons(&mut rng, items))
    }
}

impl Processor for Portable {
    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn bulk(&self) -> Box<dyn Bulk> {
        Box::new(ScalarBulk)
    }

    fn cross_terms(&self, parameters: &Parameters, points: &[CiphertextPoint]) -> Vec<Gt> {
        batch::cross_terms(parameters, points, None)
    }

    fn open_all(
        &self,
        key: &EncryptionKey,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
        blindings: &[Gt],
    ) -> Vec<Opening> {
        open_all(key, ciphertexts, blindings)
    }

    fn headers(&self, scalars: &[Scalar]) -> Vec<[u8; G1_BYTES]> {
        generator_times_all(scalars).iter().map(|point| point.encode()).collect()
    }
}
