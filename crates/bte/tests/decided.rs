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
    STATED_MIN, SingletonError, SingletonItem,
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

    fn invalid_shares(
        &self,
        _rng: &mut dyn CryptoRng,
        _parameters: &Parameters,
        _points: &[CiphertextPoint],
        shares: &[(u16, [u8; 48])],
    ) -> Result<Vec<u16>, BatchError> {
        Ok(shares.iter().map(|(member, _)| *member).collect())
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

/// Verifies rightly, and opens every ciphertext as malformed.
struct Blind(Portable);

impl Backend for Blind {
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
        let opened = self.0.finalize(parameters, predecrypted, release, ciphertexts)?;
        Ok(vec![Opening::Malformed; opened.len()])
    }

    fn open_hints(&self, key: &EncryptionKey, items: &[HintItem<'_>]) -> Vec<Result<Vec<u8>, HintError>> {
        self.0.open_hints(key, items)
    }

    fn verify_proofs(
        &self,
        rng: &mut dyn CryptoRng,
        items: &[ProofItem<'_>],
    ) -> Vec<Result<CiphertextPoint, ProofError>> {
        self.0.verify_proofs(rng, items)
    }

    fn release_share(&self, key: &MemberKey, points: &[CiphertextPoint]) -> Result<[u8; 48], BatchError> {
        self.0.release_share(key, points)
    }

    fn invalid_shares(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        shares: &[(u16, [u8; 48])],
    ) -> Result<Vec<u16>, BatchError> {
        self.0.invalid_shares(rng, parameters, points, shares)
    }

    fn verify_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[(CiphertextPoint, [u8; 48])],
    ) -> Vec<Result<(), SingletonError>> {
        self.0.verify_singletons(rng, parameters, items)
    }

    fn open_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[SingletonItem<'_>],
    ) -> Vec<Result<Opening, SingletonError>> {
        let opened = self.0.open_singletons(rng, parameters, items);
        opened.into_iter().map(|opening| opening.map(|_| Opening::Malformed)).collect()
    }
}

type Counts = Arc<Mutex<HashMap<Check, usize>>>;

fn counted(backend: &dyn Backend) -> Counts {
    let counts = Counts::default();
    let shared = Arc::clone(&counts);
    backend.on_overruled(Box::new(move |check| {
        *shared.lock().expect("nobody panics").entry(check).or_default() += 1;
    }));
    counts
}

#[test]
fn a_refusal_that_is_wrong_is_overruled_and_counted() {
    let (parameters, keys) = deal(4, 3, 2, 1);
    let batch = batch(&parameters, 4, 2);
    let questions = Questions::honest(&parameters, &keys, &batch).with_forgeries(&batch);
    let want = questions.ask(&Portable::new(1));

    let decided = Decided::new(Box::new(Refusing(Portable::new(2))));
    let counts = counted(&decided);
    assert_eq!(questions.ask(&decided), want);
    let counts = counts.lock().expect("nobody panics").clone();
    assert_eq!(counts.get(&Check::Hint).copied(), Some(want.messages.iter().filter(|r| r.is_ok()).count()));
    assert_eq!(counts.get(&Check::Proof).copied(), Some(want.proofs.iter().filter(|r| r.is_ok()).count()));
    let singletons = want.singletons.iter().filter(|r| r.is_ok()).count();
    let openings = want.openings.iter().filter(|r| r.is_ok()).count();
    assert_eq!(counts.get(&Check::Singleton).copied(), Some(singletons + openings));
    // Three members, the first of whom is honest in one share and not in another; two numbers are no member's.
    assert_eq!(want.invalid, Ok(vec![2, 3, 0, 99, 1]));
    assert_eq!(counts.get(&Check::Share).copied(), Some(1));
    assert_eq!(counts.get(&Check::Opening), None);
}

#[test]
fn what_does_not_open_is_opened_again_at_a_bounded_cost() {
    let (parameters, keys) = deal(4, 1, 1, 5);
    let count = STATED_MIN;
    let made: Vec<_> = batch(&parameters, count, 6)
        .into_iter()
        .enumerate()
        .map(|(i, mut made)| {
            let point = made.ciphertext.header().expect("honest");
            let share = keys[0].singleton_share(&point);
            let release = parameters.combine_singletons(&[(1, share)]).expect("enough");
            // One in eight is well-formed.
            made.ciphertext.d[0] ^= u8::from(i % 8 != 0);
            (made, release, parameters.blind_singleton(&release).expect("a point"))
        })
        .collect();
    let items = |count: usize, stated: &dyn Fn(usize) -> bool| -> Vec<SingletonItem<'_>> {
        let items = made.iter().take(count).enumerate();
        items
            .map(|(i, (made, release, blinding))| SingletonItem {
                ad: &made.ad,
                ciphertext: &made.ciphertext,
                release,
                blinding: stated(i).then_some(blinding),
            })
            .collect()
    };
    let decided = Decided::new(Box::new(Blind(Portable::new(2))));
    let counts = counted(&decided);
    let mut rng = common::rng(7);
    let mut overruled = |items: &[SingletonItem<'_>]| {
        let want = Portable::new(2).open_singletons(&mut rng, &parameters, items);
        let got = decided.open_singletons(&mut rng, &parameters, items);
        let counted = counts.lock().expect("nobody panics").remove(&Check::Opening).unwrap_or_default();
        assert!(counts.lock().expect("nobody panics").is_empty());
        (got == want, counted)
    };
    // Few are opened again, many are not.
    assert_eq!(overruled(&items(count - 1, &|_| false)), (true, count / 8));
    assert_eq!(overruled(&items(count, &|_| true)), (false, 0));
    assert_eq!(overruled(&items(count, &|_| false)), (false, 0));
    assert_eq!(overruled(&[]), (true, 0));
}

/// Opening it again without its singleton release costs as much as the batch: who publishes does it.
#[test]
fn openings_of_a_batch_are_passed_on() {
    let (parameters, keys) = deal(4, 1, 1, 8);
    let batch = batch(&parameters, 4, 9);
    let points = common::points(&batch);
    let share = keys[0].release_share(&points).expect("a batch");
    let release = parameters.combine(&[(1, share)]).expect("enough");
    let decided = Decided::new(Box::new(Blind(Portable::new(1))));
    let counts = counted(&decided);
    let ciphertexts: Vec<_> = batch.iter().map(|made| (&made.ad, &made.ciphertext)).collect();
    let opened = decided.decrypt(&parameters, &points, &release, &ciphertexts);
    assert_eq!(opened, Ok(vec![Opening::Malformed; 4]));
    assert!(counts.lock().expect("nobody panics").is_empty());
}

#[test]
fn where_both_agree_nothing_is_counted() {
    let (parameters, keys) = deal(4, 3, 2, 3);
    let batch = batch(&parameters, 4, 4);
    let questions = Questions::honest(&parameters, &keys, &batch).with_forgeries(&batch);
    let decided = Decided::new(Box::new(Portable::new(1)));
    let counts = counted(&decided);
    assert_eq!(questions.ask(&decided), questions.ask(&Portable::new(1)));
    assert!(counts.lock().expect("nobody panics").is_empty());
    assert_eq!((decided.name(), decided.threads()), ("portable", 1));
}
