//! The fastest backend for this machine's processor, with the parts of it that a device leaves to the CPU.

use crate::bulk::Bulk;
use crate::curve::{Gt, Scalar};
use crate::par::{self, Pool};
use crate::{
    Backend, Ciphertext, CiphertextPoint, EncryptionKey, G1_BYTES, Opening, Parameters, Portable, platform,
};

/// Items that one task works on at most.
const PIECE: usize = 64;

/// A backend that computes here, in its parts.
pub(crate) trait Processor: Backend {
    /// The threads that it works on.
    fn pool(&self) -> &Pool;

    /// Its arithmetic on many points.
    fn bulk(&self) -> Box<dyn Bulk>;

    /// The cross-terms of a batch of 2..=B up to the hard part, on the current pool.
    fn cross_terms(&self, parameters: &Parameters, points: &[CiphertextPoint]) -> Vec<Gt>;

    /// [`crate::opening::open_all`].
    fn open_all(
        &self,
        key: &EncryptionKey,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
        blindings: &[Gt],
    ) -> Vec<Opening>;

    /// The encodings of \[k\]₁, in variable time.
    fn headers(&self, scalars: &[Scalar]) -> Vec<[u8; G1_BYTES]>;
}

/// Chosen once, at start-up.
pub(crate) struct Cpu(Box<dyn Processor>);

impl Cpu {
    /// With `threads` threads (0: one for each core).
    pub(crate) fn new(threads: usize) -> Self {
        Self(platform::lanes(threads).unwrap_or_else(|| Box::new(Portable::new(threads))))
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.0
    }

    /// Runs `work` on this backend's threads.
    pub(crate) fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.0.pool().install(work)
    }

    pub(crate) fn bulk(&self) -> Box<dyn Bulk> {
        self.0.bulk()
    }

    /// The cross-terms of a batch of 2..=B up to the hard part.
    pub(crate) fn cross_terms(&self, parameters: &Parameters, points: &[CiphertextPoint]) -> Vec<Gt> {
        self.install(|| self.0.cross_terms(parameters, points))
    }

    /// Opens ciphertexts, given their blinding factors.
    pub(crate) fn open(
        &self,
        key: &EncryptionKey,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
        blindings: &[Gt],
    ) -> Vec<Opening> {
        self.install(|| {
            par::pieces(ciphertexts.len(), PIECE, 8, |range| {
                self.0.open_all(key, &ciphertexts[range.clone()], &blindings[range])
            })
        })
    }

    /// The encodings of \[k\]₁, in variable time.
    pub(crate) fn headers(&self, scalars: &[Scalar]) -> Vec<[u8; G1_BYTES]> {
        self.install(|| par::pieces(scalars.len(), PIECE, 8, |range| self.0.headers(&scalars[range])))
    }
}
