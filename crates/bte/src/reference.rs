//! The paper-shaped code behind the same seam: an oracle for tests, a peer for benchmarks (feature `reference`).
//!
//! `blindfold-reference` shares no arithmetic with this crate, both sides speak bytes. What stays here is the naming of
//! errors: the reference only says that an encoding is bad, this crate's decoders say why.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blindfold_reference::{self as plain, CrossTerms, DecodeError, Encrypted, Prepared, Reference};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::batch::Cross;
use crate::curve::{G1Affine, Gt, Scalar};
use crate::hint::HintItem;
use crate::proof::ProofItem;
use crate::{
    Backend, BatchError, Ciphertext, CiphertextPoint, EncryptionKey, G1_BYTES, G2_BYTES, HintError,
    MemberKey, Opening, Parameters, PreDecrypted, ProofError, Release, SCALAR_BYTES, SessionKey,
    SingletonError,
};

/// The formulas of the papers as a [`Backend`], on one thread, each item by itself: no batched check, no random weights.
///
/// **Not for production**: variable time, also in [`Backend::release_share`], and nothing secret is wiped.
#[derive(Default)]
pub struct ReferenceBackend {
    /// What was computed for the parameters used last.
    loaded: Mutex<Option<Arc<Loaded>>>,
}

/// One set of parameters in the reference's representation.
struct Loaded {
    hash: [u8; 32],
    reference: Reference,
    /// By the largest batch that each serves.
    prepared: Mutex<BTreeMap<usize, Arc<Prepared>>>,
}

impl ReferenceBackend {
    /// Nothing is computed before the first use.
    pub fn new() -> Self {
        Self::default()
    }

    /// The reference for these parameters: at first use, and whenever others were used in between, 2B points of G2 are
    /// decoded and checked.
    fn loaded(&self, parameters: &Parameters) -> Arc<Loaded> {
        let mut loaded = lock(&self.loaded);
        match &*loaded {
            Some(current) if current.hash == parameters.hash() => Arc::clone(current),
            _ => Arc::clone(loaded.insert(Arc::new(Loaded::new(parameters)))),
        }
    }
}

impl Loaded {
    fn new(parameters: &Parameters) -> Self {
        let ek = parameters.ek().to_bytes();
        let reference = valid(Reference::from_bytes(parameters.max_batch(), |i| parameters.h(i), &ek));
        Self { hash: parameters.hash(), reference, prepared: Mutex::default() }
    }

    /// The transformed h for `batch` ≤ B ciphertexts.
    fn prepared(&self, batch: usize) -> Arc<Prepared> {
        // Every batch up to the power of two has the same transform.
        let largest = batch.next_power_of_two().min(self.reference.max_batch());
        let mut prepared = lock(&self.prepared);
        Arc::clone(prepared.entry(largest).or_insert_with(|| Arc::new(self.reference.prepare(largest))))
    }
}

/// A panic elsewhere leaves these caches as they were.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What this crate has decoded and checked must decode there too.
fn valid<T>(decoded: Result<T, DecodeError>) -> T {
    match decoded {
        Ok(value) => value,
        Err(error) => unreachable!("the reference refuses a validated element: {error}"),
    }
}

fn headers(points: &[CiphertextPoint]) -> Vec<[u8; G1_BYTES]> {
    points.iter().map(CiphertextPoint::to_bytes).collect()
}

fn to_plain(ciphertext: &Ciphertext) -> plain::Ciphertext {
    plain::Ciphertext { c: ciphertext.c, d: ciphertext.d, e: ciphertext.e.clone() }
}

fn verify_proof((ad, ciphertext, proof): &ProofItem<'_>) -> Result<CiphertextPoint, ProofError> {
    let point = ciphertext.header().map_err(ProofError::Header)?;
    G1Affine::decode(&proof.r).map_err(ProofError::Commitment)?;
    Scalar::from_bytes(&proof.s).ok_or(ProofError::Response)?;
    let encrypted = Encrypted { ciphertext: to_plain(ciphertext), r: proof.r, s: proof.s };
    if plain::verify_proof(ad, &encrypted) == Ok(true) { Ok(point) } else { Err(ProofError::Equation) }
}

/// Does the member have verification keys, and is this its share?
fn share_holds(
    parameters: &Parameters,
    headers: &[[u8; G1_BYTES]],
    member: u16,
    share: &[u8; G1_BYTES],
) -> bool {
    let keys = (1..=headers.len()).map(|i| parameters.verification_key(member, i));
    let keys: Option<Vec<[u8; G2_BYTES]>> = keys.collect();
    keys.is_some_and(|keys| plain::verify_share(&keys, headers, share) == Ok(true))
}

impl Backend for ReferenceBackend {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn threads(&self) -> usize {
        1
    }

    fn prepare(&self, parameters: &Parameters, batch: usize) -> Result<(), BatchError> {
        parameters.check_batch(batch)?;
        self.loaded(parameters).prepared(batch);
        Ok(())
    }

    fn predecrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
    ) -> Result<PreDecrypted, BatchError> {
        parameters.check_batch(points.len())?;
        let loaded = self.loaded(parameters);
        let prepared = loaded.prepared(points.len());
        let cross = valid(loaded.reference.cross_terms(&prepared, &headers(points))).to_bytes();
        let cross: Result<Vec<Gt>, _> = cross.iter().map(Gt::decode_trusted).collect();
        match cross {
            Ok(cross) => Ok(PreDecrypted::new(parameters, points, Cross::Full(cross))),
            Err(error) => unreachable!("the reference encodes a pairing wrongly: {error}"),
        }
    }

    fn finalize(
        &self,
        parameters: &Parameters,
        predecrypted: &PreDecrypted,
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError> {
        predecrypted.check(parameters, ciphertexts)?;
        let cross = valid(CrossTerms::from_bytes(&predecrypted.cross_terms()));
        let plain: Vec<plain::Ciphertext> =
            ciphertexts.iter().map(|(_, ciphertext)| to_plain(ciphertext)).collect();
        let pairs: Vec<(&[u8; 32], &plain::Ciphertext)> =
            ciphertexts.iter().map(|(ad, _)| *ad).zip(&plain).collect();
        let opened = self.loaded(parameters).reference.finalize(&cross, &release.to_bytes(), &pairs);
        let opening = |opened: Option<plain::Opened>| match opened {
            Some(plain::Opened { key, message }) => {
                Opening::WellFormed { key: SessionKey::from_bytes(key), message }
            }
            None => Opening::Malformed,
        };
        Ok(valid(opened).into_iter().map(opening).collect())
    }

    fn open_hints(&self, key: &EncryptionKey, items: &[HintItem<'_>]) -> Vec<Result<Vec<u8>, HintError>> {
        let reference = valid(Reference::from_key(&key.to_bytes()));
        let open = |(ad, ciphertext, hint): &HintItem<'_>| {
            let (message, again) = reference.re_encrypt(ad, &ciphertext.e, hint.as_bytes());
            match (again.c == ciphertext.c, again.d == ciphertext.d) {
                (true, true) => Ok(message),
                (true, false) => Err(HintError::MaskedKey),
                (false, _) => Err(HintError::Header),
            }
        };
        items.iter().map(open).collect()
    }

    fn verify_proofs(
        &self,
        _rng: &mut dyn CryptoRng,
        items: &[ProofItem<'_>],
    ) -> Vec<Result<CiphertextPoint, ProofError>> {
        items.iter().map(verify_proof).collect()
    }

    fn release_share(
        &self,
        key: &MemberKey,
        points: &[CiphertextPoint],
    ) -> Result<[u8; G1_BYTES], BatchError> {
        key.check_batch(points.len())?;
        let shares: Zeroizing<Vec<[u8; SCALAR_BYTES]>> = key.share_bytes(points.len());
        Ok(valid(plain::release_share(&shares, &headers(points))))
    }

    fn invalid_shares(
        &self,
        _rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        shares: &[(u16, [u8; G1_BYTES])],
    ) -> Result<Vec<u16>, BatchError> {
        parameters.check_batch(points.len())?;
        let headers = headers(points);
        let lies = shares.iter().filter(|(member, share)| !share_holds(parameters, &headers, *member, share));
        Ok(lies.map(|(member, _)| *member).collect())
    }

    fn verify_singletons(
        &self,
        _rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[(CiphertextPoint, [u8; G1_BYTES])],
    ) -> Vec<Result<(), SingletonError>> {
        // e(pd', g2) = e(C, h₁): the equation of a share with h₁ for the verification key.
        let first_power: Vec<[u8; G2_BYTES]> = parameters.h(1).into_iter().collect();
        let verify = |(point, pd): &(CiphertextPoint, [u8; G1_BYTES])| {
            G1Affine::decode(pd)?;
            let holds = plain::verify_share(&first_power, &[point.to_bytes()], pd) == Ok(true);
            if holds { Ok(()) } else { Err(SingletonError::Mismatch) }
        };
        items.iter().map(verify).collect()
    }
}
