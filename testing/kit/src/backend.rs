//! Backends: this machine's, and one that tells what it was asked for, takes as long as a test wants, or errs.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::{
    Arc, Condvar, Mutex, OnceLock,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

use blindfold_bte::{
    Backend, BatchError, Ciphertext, CiphertextPoint, EncryptionKey, HintError, HintItem, MemberKey, Opening,
    Parameters, Portable, PreDecrypted, ProofError, ProofItem, Release, SingletonError,
};
use rand_chacha::rand_core::CryptoRng;

/// What this machine computes fastest with, on one thread.
pub fn backend() -> Arc<dyn Backend> {
    static BACKEND: OnceLock<Arc<dyn Backend>> = OnceLock::new();
    Arc::clone(BACKEND.get_or_init(|| Arc::from(blindfold_bte::auto(1))))
}

/// The portable backend, watched.
pub struct Watched {
    portable: Portable,
    /// Pre-decryptions so far.
    pub predecrypts: AtomicUsize,
    /// Decryptions at once so far.
    pub decrypts: AtomicUsize,
    /// Looks at hints so far.
    pub hints: AtomicUsize,
    /// The session keys of each of them.
    pub opened_with: Mutex<Vec<Vec<[u8; 16]>>>,
    /// Of all three, at this moment.
    pub running: AtomicUsize,
    /// And at most.
    pub most_running: AtomicUsize,
    /// Every batch opens as malformed.
    pub blind: AtomicBool,
    /// Every hint is refused.
    pub refuses: AtomicBool,
    /// Heavy work panics.
    pub broken: AtomicBool,
    closed: Mutex<bool>,
    opened: Condvar,
}

/// Heavy work waits while this lives.
pub struct Closed<'a>(&'a Watched);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        *self.0.closed.lock().expect("nobody panics") = false;
        self.0.opened.notify_all();
    }
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            portable: Portable::new(1),
            predecrypts: AtomicUsize::new(0),
            decrypts: AtomicUsize::new(0),
            hints: AtomicUsize::new(0),
            opened_with: Mutex::default(),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
            blind: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            closed: Mutex::new(false),
            opened: Condvar::new(),
        }
    }
}

impl Watched {
    /// Whose fast arithmetic errs: it refuses every hint and opens every ciphertext as malformed; the rest is right.
    pub fn erring() -> Self {
        Self { blind: true.into(), refuses: true.into(), ..Self::default() }
    }

    /// From now on heavy work waits.
    pub fn close(&self) -> Closed<'_> {
        *self.closed.lock().expect("nobody panics") = true;
        Closed(self)
    }

    /// Calls so far: pre-decryptions, decryptions at once.
    pub fn calls(&self) -> (usize, usize) {
        (self.predecrypts.load(SeqCst), self.decrypts.load(SeqCst))
    }

    fn seen(&self, opened: Result<Vec<Opening>, BatchError>) -> Result<Vec<Opening>, BatchError> {
        let blind = self.blind.load(SeqCst);
        opened.map(|opened| if blind { vec![Opening::Malformed; opened.len()] } else { opened })
    }

    fn heavy<T>(&self, calls: &AtomicUsize, work: impl FnOnce() -> T) -> T {
        calls.fetch_add(1, SeqCst);
        assert!(!self.broken.load(SeqCst), "a bug in heavy work");
        self.most_running.fetch_max(self.running.fetch_add(1, SeqCst) + 1, SeqCst);
        let guard = self.closed.lock().expect("nobody panics");
        drop(self.opened.wait_while(guard, |closed| *closed).expect("nobody panics"));
        let result = work();
        self.running.fetch_sub(1, SeqCst);
        result
    }
}

impl Backend for Watched {
    fn name(&self) -> &'static str {
        self.portable.name()
    }

    fn threads(&self) -> usize {
        self.portable.threads()
    }

    fn prepare(&self, parameters: &Parameters, batch: usize) -> Result<(), BatchError> {
        self.portable.prepare(parameters, batch)
    }

    fn predecrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
    ) -> Result<PreDecrypted, BatchError> {
        self.heavy(&self.predecrypts, || self.portable.predecrypt(parameters, points))
    }

    fn finalize(
        &self,
        parameters: &Parameters,
        predecrypted: &PreDecrypted,
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError> {
        self.seen(self.portable.finalize(parameters, predecrypted, release, ciphertexts))
    }

    fn decrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError> {
        let work = || self.portable.decrypt(parameters, points, release, ciphertexts);
        self.seen(self.heavy(&self.decrypts, work))
    }

    fn open_hints(&self, key: &EncryptionKey, items: &[HintItem<'_>]) -> Vec<Result<Vec<u8>, HintError>> {
        let keys = items.iter().map(|(_, _, key)| *key.as_bytes()).collect();
        self.opened_with.lock().expect("nobody panics").push(keys);
        if self.refuses.load(SeqCst) {
            return vec![Err(HintError::Header); items.len()];
        }
        self.heavy(&self.hints, || self.portable.open_hints(key, items))
    }

    fn verify_proofs(
        &self,
        rng: &mut dyn CryptoRng,
        items: &[ProofItem<'_>],
    ) -> Vec<Result<CiphertextPoint, ProofError>> {
        self.portable.verify_proofs(rng, items)
    }

    fn release_share(&self, key: &MemberKey, points: &[CiphertextPoint]) -> Result<[u8; 48], BatchError> {
        self.portable.release_share(key, points)
    }

    fn invalid_shares(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        shares: &[(u16, [u8; 48])],
    ) -> Result<Vec<u16>, BatchError> {
        self.portable.invalid_shares(rng, parameters, points, shares)
    }

    fn verify_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[(CiphertextPoint, [u8; 48])],
    ) -> Vec<Result<(), SingletonError>> {
        self.portable.verify_singletons(rng, parameters, items)
    }
}
