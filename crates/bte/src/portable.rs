//! The backend for every machine: scalar arithmetic, data-parallel over a pool of its own.

use rand_core::CryptoRng;

use crate::hint::HintItem;
use crate::proof::ProofItem;
use crate::weights::Expanded;
use crate::{
    Backend, BatchError, Ciphertext, CiphertextPoint, EncryptionKey, G1_BYTES, HintError, MemberKey, Opening,
    Parameters, PreDecrypted, ProofError, Release, SingletonError, SingletonItem, batch, verify_proofs,
};

/// Scalar implementation of [`Backend`]. In a browser it has no threads.
pub struct Portable {
    #[cfg(not(target_arch = "wasm32"))]
    pool: rayon::ThreadPool,
}

impl Portable {
    /// With its own pool of `threads` threads (0: one for each core).
    ///
    /// # Panics
    /// If the operating system refuses to start the threads.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new(threads: usize) -> Self {
        let builder =
            rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("bte-{i}"));
        match builder.build() {
            Ok(pool) => Self { pool },
            Err(error) => panic!("cannot start {threads} threads for batch work: {error}"),
        }
    }

    /// Without threads.
    #[cfg(target_arch = "wasm32")]
    pub fn new(_threads: usize) -> Self {
        Self {}
    }

    /// Runs `work` on this backend's threads: everything in this crate that says "on the current pool" then uses them.
    pub fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        #[cfg(not(target_arch = "wasm32"))]
        return self.pool.install(work);
        #[cfg(target_arch = "wasm32")]
        work()
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
        self.install(|| verify_proofs(&mut rng, items))
    }

    fn release_share(
        &self,
        key: &MemberKey,
        points: &[CiphertextPoint],
    ) -> Result<[u8; G1_BYTES], BatchError> {
        self.install(|| key.release_share(points))
    }

    fn find_liars(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        shares: &[(u16, [u8; G1_BYTES])],
    ) -> Result<Vec<u16>, BatchError> {
        let mut rng = Expanded::new(rng);
        self.install(|| parameters.find_liars(&mut rng, points, shares))
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
