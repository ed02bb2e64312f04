//! The seam for implementations of the heavy operations.

use rand_core::CryptoRng;

use crate::accelerator::Operation;
use crate::hint::HintItem;
use crate::proof::ProofItem;
use crate::{
    BatchError, Check, Ciphertext, CiphertextPoint, Decided, EncryptionKey, G1_BYTES, HintError, KnownBatch,
    MemberKey, Opening, Parameters, PointError, Portable, PreDecrypted, ProofError, Release, SingletonError,
    SingletonItem, platform,
};

/// An implementation of the scheme's heavy operations, chosen at start-up. All implementations give identical results.
/// Calls block their thread for up to seconds: run them away from asynchronous executors.
pub trait Backend: Send + Sync {
    /// What it is called in configuration and figures.
    fn name(&self) -> &'static str;

    /// How many threads it may use, one at least.
    fn threads(&self) -> usize;

    /// Has `listener` called, on any thread, whenever a device fails at an operation that the CPU then does. One that
    /// computes on the CPU alone never calls.
    fn on_device_failure(&self, _listener: Box<dyn Fn(Operation) + Send + Sync>) {}

    /// Has `listener` called, on any thread, whenever [`Portable`] accepts what a faster backend refused
    /// ([`crate::Decided`]): a defect of that backend or of this machine.
    fn on_overruled(&self, _listener: Box<dyn Fn(Check) + Send + Sync>) {}

    /// Computes now what the first batch of this size would have to compute: seconds for large B.
    ///
    /// # Errors
    /// [`BatchError::Empty`], [`BatchError::TooLarge`].
    fn prepare(&self, parameters: &Parameters, batch: usize) -> Result<(), BatchError>;

    /// Decodes the headers of ciphertexts ([`CiphertextPoint::from_bytes`]), one result each in order.
    fn decode_headers(&self, headers: &[&[u8; G1_BYTES]]) -> Vec<Result<CiphertextPoint, PointError>> {
        headers.iter().map(|header| CiphertextPoint::from_bytes(header)).collect()
    }

    /// The cross-terms of a batch, before its release is known: O(b log b).
    ///
    /// # Errors
    /// [`BatchError::Empty`], [`BatchError::TooLarge`].
    fn predecrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
    ) -> Result<PreDecrypted, BatchError>;

    /// Opens the ciphertexts of a pre-decrypted batch, in its order. Under a wrong release all are
    /// [`Opening::Malformed`]; a single well-formed one proves the release right for all.
    ///
    /// # Errors
    /// [`BatchError::Length`], [`BatchError::Header`], [`BatchError::Parameters`].
    fn finalize(
        &self,
        parameters: &Parameters,
        predecrypted: &PreDecrypted,
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError>;

    /// Opens a batch whose release is known, without pre-decrypting it: the same results as [`Backend::predecrypt`] and
    /// [`Backend::finalize`] for less work in all. For throughput; with pre-decryption less is left to do once the
    /// release is known.
    ///
    /// # Errors
    /// [`BatchError::Empty`], [`BatchError::TooLarge`], [`BatchError::Length`], [`BatchError::Header`].
    fn decrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError> {
        let predecrypted = self.predecrypt(parameters, points)?;
        self.finalize(parameters, &predecrypted, release, ciphertexts)
    }

    /// Verifies hints and returns the messages, one result each in order.
    fn open_hints(&self, key: &EncryptionKey, items: &[HintItem<'_>]) -> Vec<Result<Vec<u8>, HintError>>;

    /// Verifies proofs of knowledge, one result each in order.
    fn verify_proofs(
        &self,
        rng: &mut dyn CryptoRng,
        items: &[ProofItem<'_>],
    ) -> Vec<Result<CiphertextPoint, ProofError>>;

    /// A member's share of a release, in constant time in the key.
    ///
    /// # Errors
    /// [`BatchError::Empty`], [`BatchError::TooLarge`].
    fn release_share(
        &self,
        key: &MemberKey,
        points: &[CiphertextPoint],
    ) -> Result<[u8; G1_BYTES], BatchError>;

    /// Which members' shares are wrong.
    ///
    /// # Errors
    /// [`BatchError::Empty`], [`BatchError::TooLarge`].
    fn invalid_shares(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        shares: &[(u16, [u8; G1_BYTES])],
    ) -> Result<Vec<u16>, BatchError>;

    /// Which batches have another release than is said ([`Parameters::wrong_releases`]).
    ///
    /// # Errors
    /// [`BatchError::Empty`], [`BatchError::TooLarge`].
    fn wrong_releases(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        batches: &[KnownBatch<'_>],
    ) -> Result<Vec<usize>, BatchError> {
        parameters.wrong_releases(rng, batches)
    }

    /// Verifies singleton releases, one result each in order.
    fn verify_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[(CiphertextPoint, [u8; G1_BYTES])],
    ) -> Vec<Result<(), SingletonError>>;

    /// Verifies singleton releases and decrypts what the right ones belong to, one result each in order
    /// ([`Parameters::open_singletons`]).
    fn open_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[SingletonItem<'_>],
    ) -> Vec<Result<Opening, SingletonError>> {
        let headers: Vec<_> = items.iter().map(|item| item.ciphertext.header()).collect();
        let pairs =
            headers.iter().zip(items).flat_map(|(header, item)| header.map(|point| (point, *item.release)));
        let mut verified = self.verify_singletons(rng, parameters, &pairs.collect::<Vec<_>>()).into_iter();
        let open = |(header, item): (Result<_, _>, &SingletonItem<'_>)| {
            header.map_err(SingletonError::Header)?;
            verified.next().unwrap_or(Err(SingletonError::Mismatch))?;
            parameters.open_singleton(item.ad, item.ciphertext, item.release)
        };
        headers.into_iter().zip(items).map(open).collect()
    }
}

/// This build has no backend of this name; the configuration or the build is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownBackend {
    /// No build has a backend of this name.
    #[error("no backend is called {0:?}; there are: auto, cuda, ifma, portable, reference")]
    Name(String),
    /// This machine's processor lacks instructions that it needs: choose `auto`.
    #[error("backend {name:?} needs a processor with AVX-512 IFMA; choose \"auto\"")]
    Machine {
        /// Name of the backend that was asked for.
        name: &'static str,
    },
    /// Builds with another set of features have it.
    #[error("backend {name:?} is not in this build: build with the feature `{feature}`, or choose \"auto\"")]
    Feature {
        /// Name of the backend that was asked for.
        name: &'static str,
        /// The feature that builds it.
        feature: &'static str,
    },
}

/// Every name that [`Backend::name`] of a production build gives: the label values of metrics.
pub const BACKEND_NAMES: &[&str] = &["cuda", "ifma", "portable"];

/// The fastest backend that this machine's processor supports, in [`Decided`], with `threads` threads
/// (0: one for each core).
///
/// # Panics
/// If the operating system refuses to start the threads.
pub fn auto(threads: usize) -> Box<dyn Backend> {
    ifma(threads).unwrap_or_else(|| Box::new(Portable::new(threads)))
}

/// The backend called `name`, with `threads` threads (0: one for each core): `auto`, `ifma`, `portable`, or, for tests
/// and benchmarks, `reference` (feature `reference`; always one thread). All run on the processor; the one for devices,
/// `cuda`, is made by who has a device ([`crate::accelerator`]).
///
/// # Errors
/// [`UnknownBackend`].
///
/// # Panics
/// If the operating system refuses to start the threads.
pub fn by_name(name: &str, threads: usize) -> Result<Box<dyn Backend>, UnknownBackend> {
    match name {
        "auto" => Ok(auto(threads)),
        "portable" => Ok(Box::new(Portable::new(threads))),
        "ifma" => ifma(threads).ok_or(UnknownBackend::Machine { name: "ifma" }),
        #[cfg(feature = "reference")]
        "reference" => Ok(Box::new(crate::ReferenceBackend::new())),
        #[cfg(not(feature = "reference"))]
        "reference" => Err(UnknownBackend::Feature { name: "reference", feature: "reference" }),
        "cuda" => Err(UnknownBackend::Feature { name: "cuda", feature: "cuda" }),
        _ => Err(UnknownBackend::Name(name.to_owned())),
    }
}

/// The backend in eight lanes alone, with `threads` threads (0: one for each core); `None` where this machine's processor
/// lacks the instructions. For tests and benchmarks: its refusals are no verdicts ([`Decided`]).
///
/// # Panics
/// If the operating system refuses to start the threads.
pub fn lanes(threads: usize) -> Option<Box<dyn Backend>> {
    platform::lanes(threads).map(|lanes| lanes as Box<dyn Backend>)
}

fn ifma(threads: usize) -> Option<Box<dyn Backend>> {
    lanes(threads).map(|lanes| Box::new(Decided::new(lanes)) as Box<dyn Backend>)
}
