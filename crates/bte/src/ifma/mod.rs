//! The backend for CPUs with AVX-512 IFMA: eight independent elements in the lanes of each vector.
//!
//! | file | what |
//! |---|---|
//! | [`vector`] | vectors of words: the intrinsics used, and the bounds stated of them |
//! | [`field`] | F_p: radix 2^52, lazy sums, unreduced products |
//! | [`tower`] | F_p2, F_p6, F_p12 |
//! | [`cyclotomic`] | squarings in the cyclotomic subgroup |
//! | [`target`] | GT and the cyclotomic subgroup: powers, final exponentiation |
//! | [`compressed`] | squarings for powers of the curve parameter |
//! | [`pairing`] | Miller loops over kept lines |
//! | [`points`] | G1 in batches that share a field inversion |
//! | [`straus`] | sums of products of points of G1, in constant time |
//! | [`convolve`] | the transforms of [`crate::convolution`] |
//! | [`comb`] | fixed-base powers of ek |
//! | [`generator`] | multiples of the generator of G1 |
//! | [`encode`] | encodings to hash and to compare |
//! | [`decode`] | compressed points: square roots, the subgroup |
//! | [`bulk`] | many points at once: decoding, sums of products |
//! | [`batch`] | opening a batch |
//! | [`opening`] | the checks of hints and openings |
//! | [`stated`] | blinding factors that are stated |
//! | [`kept`] | tables that keys and parameters keep |
//!
//! Results are those of [`crate::Portable`] to the bit. What does not gain from lanes is left to it.
//!
//! # Safety
//! Functions declared by [`vector::lanes`] carry target features, and are safe to call from each other. [`Ifma`] can only
//! be made where [`Ifma::new`] has found those features; its methods are where they are entered.

#![cfg(target_arch = "x86_64")]
#![allow(clippy::needless_range_loop)] // limbs, lanes and windows of several values share an index

mod batch;
mod bulk;
mod comb;
mod compressed;
mod convolve;
mod cyclotomic;
mod decode;
mod encode;
mod field;
mod generator;
mod kept;
mod opening;
mod pairing;
mod points;
mod stated;
mod straus;
mod target;
#[cfg(test)]
mod tests;
mod tower;
mod vector;

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use bulk::LaneBulk;

use crate::bulk::{Bulk, decode_headers};
use crate::cpu::Processor;

use crate::curve::straus::sum_secret;
use crate::curve::{G1Affine, Gt, Scalar};
use crate::digits::glv_halves;
use crate::hint::HintItem;
use crate::par::Pool;
use crate::proof::{ProofItem, verify_proofs_with};
use crate::singleton::Opener;
use crate::stated::{Blinding, places_hold};
use crate::weights::{Expanded, Weight};
use crate::{
    Backend, BatchError, Ciphertext, CiphertextPoint, EncryptionKey, G1_BYTES, HintError, KnownBatch,
    MemberKey, Opening, Parameters, PointError, Portable, PreDecrypted, ProofError, Release, SingletonError,
    SingletonItem,
};

/// Below this many points, what the lanes of a release share costs more than it saves.
const SHARED_MIN: usize = 5;

/// Implementation of [`Backend`] in eight lanes of AVX-512 IFMA, with a pool of threads of its own.
#[derive(Debug)]
pub(crate) struct Ifma {
    portable: Portable,
}

impl Ifma {
    /// With `threads` threads (0: one for each core); `None` if this machine lacks the instructions.
    ///
    /// # Panics
    /// If the operating system refuses to start the threads.
    pub(crate) fn new(threads: usize) -> Option<Self> {
        Self::is_supported().then(|| Self { portable: Portable::new(threads) })
    }

    /// Does this machine have AVX-512 F, DQ and IFMA (and BMI2 and ADX, which every such machine has)?
    fn is_supported() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512ifma")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("adx")
    }

    /// Its arithmetic on many points, on the current pool; `None` if this machine lacks the instructions.
    pub(crate) fn bulk_here() -> Option<Box<dyn Bulk>> {
        // SAFETY: the features are there.
        Self::is_supported().then(|| Box::new(unsafe { LaneBulk::new() }) as Box<dyn Bulk>)
    }

    fn lane_bulk(&self) -> LaneBulk {
        // SAFETY: `new` has found the features; so in all methods.
        unsafe { LaneBulk::new() }
    }
}

impl Processor for Ifma {
    fn pool(&self) -> &Pool {
        self.portable.pool()
    }

    fn bulk(&self) -> Box<dyn Bulk> {
        Box::new(self.lane_bulk())
    }

    fn cross_terms(&self, parameters: &Parameters, points: &[CiphertextPoint]) -> Vec<Gt> {
        // SAFETY: as above.
        unsafe { batch::unpacked_cross_terms(parameters, points) }
    }

    fn open_all(
        &self,
        key: &EncryptionKey,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
        blindings: &[Gt],
    ) -> Vec<Opening> {
        // SAFETY: as above.
        unsafe { batch::open_given(key, ciphertexts, blindings) }
    }

    fn headers(&self, scalars: &[Scalar]) -> Vec<[u8; G1_BYTES]> {
        // SAFETY: as above.
        unsafe { opening::headers(scalars) }
    }
}

impl Backend for Ifma {
    fn name(&self) -> &'static str {
        "ifma"
    }

    fn threads(&self) -> usize {
        self.portable.threads()
    }

    fn prepare(&self, parameters: &Parameters, batch: usize) -> Result<(), BatchError> {
        parameters.check_batch(batch)?;
        // SAFETY: as above.
        self.portable.install(|| unsafe { batch::prepare(parameters, batch) });
        Ok(())
    }

    fn decode_headers(&self, headers: &[&[u8; G1_BYTES]]) -> Vec<Result<CiphertextPoint, PointError>> {
        self.portable.install(|| decode_headers(&self.lane_bulk(), headers))
    }

    fn predecrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
    ) -> Result<PreDecrypted, BatchError> {
        // SAFETY: as above.
        self.portable.install(|| unsafe { batch::predecrypt(parameters, points) })
    }

    fn finalize(
        &self,
        parameters: &Parameters,
        predecrypted: &PreDecrypted,
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError> {
        // SAFETY: as above.
        self.portable.install(|| unsafe { batch::finalize(parameters, predecrypted, release, ciphertexts) })
    }

    fn decrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError> {
        // SAFETY: as above.
        self.portable.install(|| unsafe { batch::decrypt(parameters, points, release, ciphertexts) })
    }

    fn open_hints(&self, key: &EncryptionKey, items: &[HintItem<'_>]) -> Vec<Result<Vec<u8>, HintError>> {
        // SAFETY: as above.
        self.portable.install(|| unsafe { opening::open_hints(key, items) })
    }

    fn verify_proofs(
        &self,
        rng: &mut dyn CryptoRng,
        items: &[ProofItem<'_>],
    ) -> Vec<Result<CiphertextPoint, ProofError>> {
        let mut rng = Expanded::new(rng);
        self.portable.install(|| verify_proofs_with(&self.lane_bulk(), &mut rng, items))
    }

    fn release_share(
        &self,
        key: &MemberKey,
        points: &[CiphertextPoint],
    ) -> Result<[u8; G1_BYTES], BatchError> {
        self.portable.install(|| {
            key.release_with(points, SHARED_MIN, |points, scalars, blind| {
                let halves = Zeroizing::new(scalars.iter().map(|k| glv_halves(k).into()).collect::<Vec<_>>());
                // SAFETY: as above.
                let sum = unsafe { straus::sum::<2>(points, &halves, blind) };
                sum.unwrap_or_else(|| sum_secret(points, scalars, blind))
            })
        })
    }

    fn invalid_shares(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        shares: &[(u16, [u8; G1_BYTES])],
    ) -> Result<Vec<u16>, BatchError> {
        self.portable.invalid_shares(rng, parameters, points, shares)
    }

    fn wrong_releases(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        batches: &[KnownBatch<'_>],
    ) -> Result<Vec<usize>, BatchError> {
        self.portable.wrong_releases(rng, parameters, batches)
    }

    fn verify_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[(CiphertextPoint, [u8; G1_BYTES])],
    ) -> Vec<Result<(), SingletonError>> {
        let mut rng = Expanded::new(rng);
        self.portable.install(|| parameters.verify_singletons_with(&self.lane_bulk(), &mut rng, items))
    }

    fn open_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[SingletonItem<'_>],
    ) -> Vec<Result<Opening, SingletonError>> {
        let mut rng = Expanded::new(rng);
        self.portable.install(|| {
            parameters.open_singletons_with(&self.lane_bulk(), &mut rng, items, &LaneOpener(parameters))
        })
    }
}

struct LaneOpener<'a>(&'a Parameters);

impl Opener for LaneOpener<'_> {
    fn open(&self, releases: &[G1Affine], ciphertexts: &[(&[u8; 32], &Ciphertext)]) -> Vec<Opening> {
        // SAFETY: as above.
        unsafe { batch::open_singletons(self.0, releases, ciphertexts) }
    }

    fn open_stated(
        &self,
        blindings: &[&Blinding],
        weights: &[Weight],
        expected: &Gt,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Option<Vec<Opening>> {
        // SAFETY: as above.
        unsafe {
            let elements = stated::elements(blindings)?;
            let places = stated::places(&elements, weights);
            places_hold(&places, expected).then(|| stated::open(self.0.ek(), ciphertexts, &elements))
        }
    }
}
