//! What a fast backend refuses, the portable one decides, and says so.

#[path = "common/answers.rs"]
mod answers;
mod common;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use answers::Questions;
use blindfold_bte::{
    Backend, BatchError, Check, Ciphertext, CiphertextPoint, Decided, EncryptionKey, HintError, HintItem,
    MemberKey, Opening, Parameters, PointError, Portable, PreDecrypted, ProofError, ProofItem, Release,
    SingletonError,
};
use common::{batch, deal};
use rand_core::CryptoRng;

/// Computes rightly, and refuses every check: the worst that a defect in fast arithmetic can do.
struct Refusing(Portable);

impl Backend for Refusing {
    fn name(&self) -> &'static str {
        "portable"
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
        self.0.finalize(parameters, predecrypted, release, ciphertexts)
    }

    fn open_hints(&self, _key: &EncryptionKey, items: &[HintItem<'_>]) -> Vec<Result<Vec<u8>, HintError>> {
        vec![Err(HintError::Header); items.len()]
    }

    fn verify_proofs(
        &self,
        _rng: &mut dyn CryptoRng,
        items: &[ProofItem<'_>],
    ) -> Vec<Result<CiphertextPoint, ProofError>> {
        vec![Err(ProofError::Header(PointError::NotOnCurve)); items.len()]
    }

    fn release_share(&self, key: &MemberKey, points: &[CiphertextPoint]) -> Result<[u8; 48], BatchError> {
        self.0.release_share(key, points)
    }

    fn find_liars(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        shares: &[(u16, [u8; 48])],
    ) -> Result<Vec<u16>, BatchError> {
        self.0.find_liars(rng, parameters, points, shares)
    }

    fn verify_singletons(
        &self,
        _rng: &mut dyn CryptoRng,
        _parameters: &Parameters,
        items: &[(CiphertextPoint, [u8; 48])],
    ) -> Vec<Result<(), SingletonError>> {
        vec![Err(SingletonError::Mismatch); items.len()]
    }
}

type Counts = Arc<Mutex<HashMap<Check, usize>>>;

fn counted(backend: &dyn Backend) -> Counts {
    let counts = Counts::default();
    let told = Arc::clone(&counts);
    backend.on_overruled(Box::new(move |check| {
        *told.lock().expect("nobody panics").entry(check).or_default() += 1;
    }));
    counts
}

#[test]
fn a_refusal_that_is_wrong_is_overruled_and_counted() {
    let (parameters, keys) = deal(4, 3, 2, 1);
    let batch = batch(&parameters, 4, 2);
    let questions = Questions::honest(&parameters, &keys, &batch).with_forgeries(&batch);
    let want = questions.ask(&Portable::new(1));

    let decided = Decided::new(Refusing(Portable::new(2)));
    let counts = counted(&decided);
    assert_eq!(questions.ask(&decided), want);
    let counts = counts.lock().expect("nobody panics").clone();
    assert_eq!(counts.get(&Check::Hint).copied(), Some(want.messages.iter().filter(|r| r.is_ok()).count()));
    assert_eq!(counts.get(&Check::Proof).copied(), Some(want.proofs.iter().filter(|r| r.is_ok()).count()));
    let singletons = want.singletons.iter().filter(|r| r.is_ok()).count();
    let openings = want.openings.iter().filter(|r| r.is_ok()).count();
    assert_eq!(counts.get(&Check::Singleton).copied(), Some(singletons + openings));
}

#[test]
fn where_both_agree_nothing_is_counted() {
    let (parameters, keys) = deal(4, 3, 2, 3);
    let batch = batch(&parameters, 4, 4);
    let questions = Questions::honest(&parameters, &keys, &batch).with_forgeries(&batch);
    let decided = Decided::new(Portable::new(1));
    let counts = counted(&decided);
    assert_eq!(questions.ask(&decided), questions.ask(&Portable::new(1)));
    assert!(counts.lock().expect("nobody panics").is_empty());
    assert_eq!((decided.name(), decided.threads()), ("portable", 1));
}
