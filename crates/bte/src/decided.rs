//! In depth: what a fast backend refuses, [`Portable`] decides.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rand_core::CryptoRng;

use crate::accelerator::Operation;
use crate::hint::HintItem;
use crate::proof::ProofItem;
use crate::weights::Expanded;
use crate::{
    Backend, BatchError, Ciphertext, CiphertextPoint, EncryptionKey, G1_BYTES, HintError, KnownBatch,
    MemberKey, Opening, Parameters, PointError, Portable, PreDecrypted, ProofError, Release, STATED_MIN,
    SingletonError, SingletonItem,
};

/// What can be refused and decided again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Check {
    /// A hint, checked by encrypting again.
    Hint,
    /// A proof of knowledge of a ciphertext's randomness.
    Proof,
    /// A singleton release, checked by pairing.
    Singleton,
    /// A ciphertext that opens as malformed.
    Opening,
    /// A member's share of a release.
    Share,
}

impl Check {
    /// Every [name](Self::name): the label values of metrics.
    pub const NAMES: &[&str] = &["hint", "proof", "singleton", "opening", "share"];

    /// One word, as labels of metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hint => "hint",
            Self::Proof => "proof",
            Self::Singleton => "singleton",
            Self::Opening => "opening",
            Self::Share => "share",
        }
    }
}

/// Is told of each refusal that was overruled.
type Listener = Box<dyn Fn(Check) + Send + Sync>;

/// A fast backend whose refusals are no verdicts yet: hints, proofs, singleton releases and members' shares that it
/// refuses are checked again by [`Portable`], whose word counts. A wrong refusal would part this node from all others for
/// ever; a wrong acceptance takes two faults, for what is accepted was compared with bytes that others sent. A flood of
/// wrong items costs no more than on a machine that has only the portable backend, and the fast one's time.
///
/// A ciphertext that opens proves itself. One that opens as malformed does not, and to open it again costs several times
/// what the fast backend took, for a batch that may consist of nothing else. So it is done where the verdict is acted on:
/// * **Claims that others publish** ([`Backend::open_singletons`]): fewer than [`STATED_MIN`] are opened again whole. Of
///   more the fast backend's word stands: to open 4,096 again, be it with stated blinding factors, costs the lanes more
///   than a good batch does.
/// * **A batch's own openings** ([`Backend::finalize`], [`Backend::decrypt`]) are passed on as they are: without the
///   singleton release, opening one again costs as much as pre-decrypting its batch. Who wants to call a ciphertext
///   malformed needs that release, and opens it with [`Parameters::open_singleton`], which is portable arithmetic.
pub struct Decided {
    fast: Box<dyn Backend>,
    /// Made for the first refusal.
    portable: OnceLock<Portable>,
    listeners: Mutex<Vec<Listener>>,
}

impl Decided {
    /// Decides what `fast` refuses.
    pub fn new(fast: Box<dyn Backend>) -> Self {
        Self { fast, portable: OnceLock::new(), listeners: Mutex::default() }
    }

    fn portable(&self) -> &Portable {
        self.portable.get_or_init(|| Portable::new(self.fast.threads()))
    }

    fn tell(&self, check: Check) {
        self.listeners().iter().for_each(|listener| listener(check));
    }

    /// The results, with those of refused items replaced by what `again` gives for their indices.
    fn decide<T, E>(
        &self,
        check: Check,
        mut results: Vec<Result<T, E>>,
        again: impl FnOnce(&Portable, &[usize]) -> Vec<Result<T, E>>,
    ) -> Vec<Result<T, E>> {
        let refused: Vec<usize> = (0..results.len()).filter(|i| results[*i].is_err()).collect();
        if refused.is_empty() {
            return results;
        }
        for (index, decided) in refused.iter().zip(again(self.portable(), &refused)) {
            if decided.is_ok() {
                self.tell(check);
            }
            results[*index] = decided;
        }
        results
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Decided {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Decided({})", self.fast.name())
    }
}

impl Backend for Decided {
    fn name(&self) -> &'static str {
        self.fast.name()
    }

    fn threads(&self) -> usize {
        self.fast.threads()
    }

    fn on_device_failure(&self, listener: Box<dyn Fn(Operation) + Send + Sync>) {
        self.fast.on_device_failure(listener);
    }

    fn on_overruled(&self, listener: Box<dyn Fn(Check) + Send + Sync>) {
        self.listeners().push(listener);
    }

    fn prepare(&self, parameters: &Parameters, batch: usize) -> Result<(), BatchError> {
        self.fast.prepare(parameters, batch)
    }

    /// Lanes have each refusal decided by scalar code themselves.
    fn decode_headers(&self, headers: &[&[u8; G1_BYTES]]) -> Vec<Result<CiphertextPoint, PointError>> {
        self.fast.decode_headers(headers)
    }

    fn predecrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
    ) -> Result<PreDecrypted, BatchError> {
        self.fast.predecrypt(parameters, points)
    }

    fn finalize(
        &self,
        parameters: &Parameters,
        predecrypted: &PreDecrypted,
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError> {
        self.fast.finalize(parameters, predecrypted, release, ciphertexts)
    }

    fn decrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError> {
        self.fast.decrypt(parameters, points, release, ciphertexts)
    }

    fn open_hints(&self, key: &EncryptionKey, items: &[HintItem<'_>]) -> Vec<Result<Vec<u8>, HintError>> {
        self.decide(Check::Hint, self.fast.open_hints(key, items), |portable, refused| {
            portable.open_hints(key, &refused.iter().map(|i| items[*i]).collect::<Vec<_>>())
        })
    }

    fn verify_proofs(
        &self,
        rng: &mut dyn CryptoRng,
        items: &[ProofItem<'_>],
    ) -> Vec<Result<CiphertextPoint, ProofError>> {
        let mut rng = Expanded::new(rng);
        self.decide(Check::Proof, self.fast.verify_proofs(&mut rng, items), |portable, refused| {
            portable.verify_proofs(&mut rng, &refused.iter().map(|i| items[*i]).collect::<Vec<_>>())
        })
    }

    fn release_share(
        &self,
        key: &MemberKey,
        points: &[CiphertextPoint],
    ) -> Result<[u8; G1_BYTES], BatchError> {
        self.fast.release_share(key, points)
    }

    fn invalid_shares(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        shares: &[(u16, [u8; G1_BYTES])],
    ) -> Result<Vec<u16>, BatchError> {
        let mut rng = Expanded::new(rng);
        let named = self.fast.invalid_shares(&mut rng, parameters, points, shares)?;
        let suspects: Vec<_> = shares.iter().filter(|(member, _)| named.contains(member)).copied().collect();
        if suspects.is_empty() {
            return Ok(named);
        }
        let invalid = self.portable().invalid_shares(&mut rng, parameters, points, &suspects)?;
        (invalid.len()..named.len()).for_each(|_| self.tell(Check::Share));
        Ok(invalid)
    }

    fn wrong_releases(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        batches: &[KnownBatch<'_>],
    ) -> Result<Vec<usize>, BatchError> {
        self.fast.wrong_releases(rng, parameters, batches)
    }

    fn verify_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[(CiphertextPoint, [u8; G1_BYTES])],
    ) -> Vec<Result<(), SingletonError>> {
        let mut rng = Expanded::new(rng);
        let results = self.fast.verify_singletons(&mut rng, parameters, items);
        self.decide(Check::Singleton, results, |portable, refused| {
            let items: Vec<_> = refused.iter().map(|i| items[*i]).collect();
            portable.verify_singletons(&mut rng, parameters, &items)
        })
    }

    fn open_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[SingletonItem<'_>],
    ) -> Vec<Result<Opening, SingletonError>> {
        let mut rng = Expanded::new(rng);
        let results = self.fast.open_singletons(&mut rng, parameters, items);
        let malformed: Vec<usize> =
            (0..results.len()).filter(|i| results[*i] == Ok(Opening::Malformed)).collect();
        let mut results = self.decide(Check::Singleton, results, |portable, refused| {
            let items: Vec<_> = refused.iter().map(|i| items[*i]).collect();
            portable.open_singletons(&mut rng, parameters, &items)
        });
        if malformed.is_empty() || malformed.len() >= STATED_MIN {
            return results;
        }
        let claims: Vec<_> = malformed.iter().map(|i| items[*i]).collect();
        let again = self.portable().open_singletons(&mut rng, parameters, &claims);
        for (i, opened) in malformed.into_iter().zip(again) {
            if let Ok(Opening::WellFormed { .. }) = opened {
                self.tell(Check::Opening);
                results[i] = opened;
            }
        }
        results
    }
}
