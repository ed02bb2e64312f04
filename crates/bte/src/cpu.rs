//! The fastest backend for this machine's processor, with the parts of it that a device leaves to the CPU.

use crate::bulk::{Bulk, ScalarBulk};
use crate::comb::generator_times_all;
use crate::curve::{Gt, Scalar};
#[cfg(target_arch = "x86_64")]
use crate::ifma::Ifma;
use crate::opening::open_all;
use crate::{
    Backend, Ciphertext, CiphertextPoint, EncryptionKey, G1_BYTES, Opening, Parameters, Portable, batch, par,
};

/// Items that one task works on at most.
const PIECE: usize = 64;

/// Chosen once, at start-up.
pub(crate) enum Cpu {
    #[cfg(target_arch = "x86_64")]
    Ifma(Ifma),
    Portable(Portable),
}

impl Cpu {
    /// With `threads` threads (0: one for each core).
    pub(crate) fn new(threads: usize) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(ifma) = Ifma::new(threads) {
            return Self::Ifma(ifma);
        }
        Self::Portable(Portable::new(threads))
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Ifma(ifma) => ifma,
            Self::Portable(portable) => portable,
        }
    }

    /// Runs `work` on this backend's threads.
    pub(crate) fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Ifma(ifma) => ifma.install(work),
            Self::Portable(portable) => portable.install(work),
        }
    }

    pub(crate) fn bulk(&self) -> Box<dyn Bulk> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Ifma(ifma) => Box::new(ifma.bulk()),
            Self::Portable(_) => Box::new(ScalarBulk),
        }
    }

    /// The cross-terms of a batch of 2..=B up to the hard part.
    pub(crate) fn cross_terms(&self, parameters: &Parameters, points: &[CiphertextPoint]) -> Vec<Gt> {
        self.install(|| match self {
            #[cfg(target_arch = "x86_64")]
            Self::Ifma(ifma) => ifma.cross_terms(parameters, points),
            Self::Portable(_) => batch::cross_terms(parameters, points, None),
        })
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
                let (ciphertexts, blindings) = (&ciphertexts[range.clone()], &blindings[range]);
                match self {
                    #[cfg(target_arch = "x86_64")]
                    Self::Ifma(ifma) => ifma.open_all(key, ciphertexts, blindings),
                    Self::Portable(_) => open_all(key, ciphertexts, blindings),
                }
            })
        })
    }

    /// The encodings of \[k\]₁, in variable time.
    pub(crate) fn headers(&self, scalars: &[Scalar]) -> Vec<[u8; G1_BYTES]> {
        self.install(|| {
            par::pieces(scalars.len(), PIECE, 8, |range| match self {
                #[cfg(target_arch = "x86_64")]
                Self::Ifma(ifma) => ifma.headers(&scalars[range]),
                Self::Portable(_) => {
                    generator_times_all(&scalars[range]).iter().map(|point| point.encode()).collect()
                }
            })
        })
    }
}
