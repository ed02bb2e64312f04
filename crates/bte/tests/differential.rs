//! Every backend gives what the reference gives, at awkward sizes and on inputs an adversary would choose.

#[path = "common/answers.rs"]
mod answers;
mod common;

use std::sync::Arc;

use answers::{Questions, negative};
use blindfold_bte::accelerator::{Double, Offload};
use blindfold_bte::{
    Backend, BatchError, CiphertextPoint, HintError, MemberKey, Opening, Parameters, PointError, ProofError,
    Release, SessionKey, SingletonError, UnknownBackend, by_name, dealer, verify_proof,
};
use blindfold_reference::{
    Ciphertext as PlainCiphertext, DecodeError, Encrypted, Reference, combine, release_share,
    verify_proof as verify_proof_plainly,
};
use common::{Made, batch, deal, inputs, lanes, off_subgroup, points, rng, shares};
use rand_chacha::rand_core::Rng;

fn reference(parameters: &Parameters) -> Reference {
    let ek = parameters.encryption_key().to_bytes();
    Reference::from_bytes(parameters.max_batch(), |i| parameters.h(i), &ek).expect("valid parameters")
}

fn plain(made: &Made) -> PlainCiphertext {
    PlainCiphertext { c: made.ciphertext.c, d: made.ciphertext.d, e: made.ciphertext.e.clone() }
}

fn backends() -> Vec<Box<dyn Backend>> {
    let named = |name, threads| by_name(name, threads).expect("in this build");
    let offload = Offload::new(Arc::new(Double::new()), 2, |operation, error| {
        panic!("the double does not fail: {operation:?}, {error}")
    });
    let mut all = vec![
        named("reference", 1),
        named("portable", 1),
        named("portable", 3),
        named("auto", 0),
        Box::new(offload),
    ];
    // By itself: in `auto` the portable backend decides what the lanes refuse.
    all.extend(lanes());
    all
}

/// Decrypts on all backends and on the reference, by convolution and by definition; all must agree in every value.
fn agree(parameters: &Parameters, keys: &[MemberKey], batch: &[Made]) -> Vec<Opening> {
    let reference = reference(parameters);
    let points = points(batch);
    let headers: Vec<[u8; 48]> = points.iter().map(CiphertextPoint::to_bytes).collect();
    let threshold = usize::from(parameters.threshold());
    let shares = shares(keys, &points);
    let release = parameters.combine(&shares[shares.len() - threshold..]).expect("enough");
    assert_eq!(combine(&shares[..threshold]), Ok(release.to_bytes()));

    let cross = reference.cross_terms(&reference.prepare(batch.len()), &headers).expect("points");
    let direct = reference.cross_terms_direct(&headers).expect("points");
    assert_eq!(cross.to_bytes(), direct.to_bytes());
    let want_blinding = reference.unblind(&cross, &release.to_bytes()).expect("a point");
    let plain: Vec<PlainCiphertext> = batch.iter().map(plain).collect();
    let pairs: Vec<_> = batch.iter().map(|made| &made.ad).zip(&plain).collect();
    let want: Vec<Opening> = reference
        .finalize(&cross, &release.to_bytes(), &pairs)
        .expect("points")
        .into_iter()
        .map(|opened| match opened {
            Some(opened) => {
                Opening::WellFormed { key: SessionKey::from_bytes(opened.key), message: opened.message }
            }
            None => Opening::Malformed,
        })
        .collect();

    let backends = backends();
    for (i, backend) in backends.iter().enumerate() {
        let predecrypted = backend.predecrypt(parameters, &points).expect("within limits");
        assert_eq!(predecrypted.cross_terms(), cross.to_bytes(), "{}", backend.name());
        assert_eq!(predecrypted.unblind(parameters, &release).as_ref(), Ok(&want_blinding));
        // What one has pre-decrypted another can finalize.
        for finalizer in [backend, &backends[(i + 1) % backends.len()]] {
            let opened = finalizer.finalize(parameters, &predecrypted, &release, &inputs(batch));
            assert_eq!(opened.as_ref(), Ok(&want), "{} after {}", finalizer.name(), backend.name());
        }
        let at_once = backend.decrypt(parameters, &points, &release, &inputs(batch));
        assert_eq!(at_once.as_ref(), Ok(&want), "{}", backend.name());
    }
    agree_on_everything_else(parameters, keys, batch);
    want
}

/// Compares all other operations, on the batch and on forgeries made from it.
fn agree_on_everything_else(parameters: &Parameters, keys: &[MemberKey], batch: &[Made]) {
    let questions = Questions::honest(parameters, keys, batch).with_forgeries(batch);
    let [first, others @ ..] = &backends()[..] else { panic!("no backends") };
    let want = questions.ask(&**first);
    for backend in others {
        assert_eq!(questions.ask(&**backend), want, "{}", backend.name());
    }
}

fn assert_opens(batch: &[Made], opened: &[Opening]) {
    for (made, opened) in batch.iter().zip(opened) {
        assert_eq!(*opened, Opening::WellFormed { key: made.key.clone(), message: made.message.clone() });
    }
}

#[test]
fn every_size_agrees_with_the_reference() {
    // Around the sizes at which the transform's domain changes: 2^k and 1.5·2^k.
    for (max_batch, sizes) in [
        (1, &[1][..]),
        (2, &[1, 2]),
        (3, &[1, 2, 3]),
        (17, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17]),
        (33, &[23, 24, 25, 31, 32, 33]),
    ] {
        let (parameters, keys) = deal(max_batch, 4, 3, u64::from(max_batch));
        parameters.check(&mut rng(9)).expect("honest parameters");
        for size in sizes {
            let batch = batch(&parameters, *size, 100 + *size as u64);
            assert_opens(&batch, &agree(&parameters, &keys, &batch));
        }
    }
}

#[test]
fn honest_answers_are_right_and_forgeries_are_named() {
    let (parameters, keys) = deal(3, 4, 3, 12);
    let batch = batch(&parameters, 3, 13);
    for backend in backends() {
        let answers = Questions::honest(&parameters, &keys, &batch).ask(&*backend);
        let messages: Vec<_> = batch.iter().map(|made| Ok(made.message.clone())).collect();
        assert_eq!(answers.messages, messages);
        assert_eq!(answers.proofs, batch.iter().map(|made| Ok(made.point())).collect::<Vec<_>>());
        assert_eq!(answers.invalid, Ok(vec![]));
        assert_eq!(answers.singletons, vec![Ok(()); 3]);

        let answers = Questions::honest(&parameters, &keys, &batch).with_forgeries(&batch).ask(&*backend);
        use HintError::{Header, MaskedKey};
        let refused: Vec<_> = answers.messages[3..].iter().map(|result| result.clone().err()).collect();
        assert_eq!(refused, [Header, MaskedKey, Header, Header, Header].map(Some));
        let header = |error| Err(ProofError::Header(error));
        let commitment = |error| Err(ProofError::Commitment(error));
        let want = [
            header(PointError::NotInSubgroup),
            header(PointError::Identity),
            header(PointError::NotCanonical),
            Err(ProofError::Equation),
            commitment(PointError::NotInSubgroup),
            Err(ProofError::Equation),
            Err(ProofError::Equation),
            commitment(PointError::NotCanonical),
            Err(ProofError::Response),
            Err(ProofError::Equation),
            Err(ProofError::Equation),
        ];
        assert_eq!(answers.proofs[3..], want);
        assert_eq!(answers.invalid, Ok(vec![2, 3, 4, 0, 99, 1]));
        let want = [
            Err(SingletonError::Mismatch),
            Err(SingletonError::Mismatch),
            Err(SingletonError::Point(PointError::NotInSubgroup)),
            Err(SingletonError::Point(PointError::NotCanonical)),
            Err(SingletonError::Mismatch),
        ];
        assert_eq!(answers.singletons[3..], want);
    }
}

#[test]
fn every_backend_refuses_batches_of_a_wrong_size_or_content() {
    let (parameters, keys) = deal(3, 4, 3, 14);
    let (elsewhere, _) = deal(3, 4, 3, 15);
    let honest = batch(&parameters, 3, 16);
    let four = points(&batch(&parameters, 4, 17));
    let release = Release::from_bytes(&common::generator()).expect("a point");
    let too_large = BatchError::TooLarge { batch: 4, max: 3 };
    for backend in backends() {
        for (points, want) in [(&four[..0], BatchError::Empty), (&four, too_large)] {
            assert_eq!(backend.prepare(&parameters, points.len()), Err(want));
            assert_eq!(backend.predecrypt(&parameters, points).err(), Some(want));
            assert_eq!(backend.release_share(&keys[0], points), Err(want));
            assert_eq!(backend.invalid_shares(&mut rng(18), &parameters, points, &[]), Err(want));
        }
        let nothing = Questions::honest(&parameters, &keys, &[]).ask(&*backend);
        assert!(nothing.messages.is_empty() && nothing.proofs.is_empty() && nothing.singletons.is_empty());
        assert_eq!(backend.prepare(&parameters, 3), Ok(()));

        let predecrypted = backend.predecrypt(&parameters, &points(&honest)).expect("within limits");
        let refuse = |parameters: &Parameters, batch: &[Made]| {
            backend.finalize(parameters, &predecrypted, &release, &inputs(batch)).err()
        };
        assert_eq!(refuse(&elsewhere, &honest), Some(BatchError::Parameters));
        assert_eq!(refuse(&parameters, &honest[1..]), Some(BatchError::Length { expected: 3, actual: 2 }));
        let swapped = [honest[0].clone(), honest[2].clone(), honest[1].clone()];
        assert_eq!(refuse(&parameters, &swapped), Some(BatchError::Header { position: 1 }));
    }
}

#[test]
fn points_of_small_order_never_become_headers() {
    for bytes in common::small_order() {
        for bytes in [bytes, negative(bytes)] {
            assert_eq!(CiphertextPoint::from_bytes(&bytes), Err(PointError::NotInSubgroup));
            assert_eq!(release_share(&[[0; 32]], &[bytes]), Err(DecodeError::G1));
        }
    }
    assert_eq!(CiphertextPoint::from_bytes(&common::IDENTITY_G1), Err(PointError::Identity));
}

#[test]
fn small_multiples_of_the_generator_as_headers_do_not_disturb_the_others() {
    let times = |k: u8| {
        let mut scalar = [0; 32];
        scalar[31] = k;
        release_share(&[scalar], &[common::generator()]).expect("canonical")
    };
    assert_eq!(times(1), common::generator());
    let small = [times(1), times(2), negative(times(1)), times(4), negative(times(2)), times(3)];
    let (parameters, keys) = deal(9, 4, 3, 19);
    // As many as a power of two and one more or less; every pair of neighbours, sums and differences among them.
    for size in [1, 2, 7, 8, 9] {
        let mut batch = batch(&parameters, size, 20 + size as u64);
        let headers = small.iter().cycle();
        for (made, header) in batch.iter_mut().zip(headers).skip(usize::from(size > 2)) {
            made.ciphertext.c = *header;
        }
        let opened = agree(&parameters, &keys, &batch);
        let honest = usize::from(size > 2);
        assert_opens(&batch[..honest], &opened[..honest]);
        assert!(opened[honest..].iter().all(|opening| *opening == Opening::Malformed));
    }
}

#[test]
fn backends_are_known_by_name() {
    for name in ["auto", "portable", "reference"] {
        let backend = by_name(name, 1).expect("in this build");
        assert!(name == "auto" || backend.name() == name);
        assert_eq!(backend.threads(), 1);
    }
    match by_name("ifma", 1) {
        Ok(backend) => assert_eq!(backend.name(), "ifma"),
        Err(error) => assert_eq!(error, UnknownBackend::Machine { name: "ifma" }),
    }
}

#[test]
fn duplicates_opposites_and_equal_ciphertexts_do_not_disturb_the_others() {
    let (parameters, keys) = deal(8, 3, 2, 1);
    let honest = batch(&parameters, 8, 2);
    let opposite = |made: &Made| {
        let mut opposite = made.clone();
        opposite.ciphertext.c = negative(opposite.ciphertext.c);
        opposite
    };

    let all_equal = vec![honest[3].clone(); 8];
    assert_opens(&all_equal, &agree(&parameters, &keys, &all_equal));

    // The transform's butterflies meet C + C, C − C and identities at every level.
    let mut mixed = honest.clone();
    mixed[4] = mixed[0].clone();
    mixed[5] = opposite(&mixed[1]);
    mixed[6] = opposite(&mixed[2]);
    mixed[7] = mixed[2].clone();
    let opened = agree(&parameters, &keys, &mixed);
    for i in [0, 1, 2, 3, 4, 7] {
        assert_opens(&mixed[i..=i], &opened[i..=i]);
    }
    assert_eq!(opened[5], Opening::Malformed);
    assert_eq!(opened[6], Opening::Malformed);

    let alternating: Vec<Made> =
        (0..8).map(|i| if i % 2 == 0 { honest[0].clone() } else { opposite(&honest[0]) }).collect();
    agree(&parameters, &keys, &alternating);
}

#[test]
fn malformed_ciphertexts_are_told_from_the_others() {
    let (parameters, keys) = deal(5, 4, 3, 3);
    let mut batch = batch(&parameters, 5, 4);
    batch[1].ciphertext.d[15] ^= 1;
    batch[2].ciphertext.e[0] ^= 0x80;
    batch[4].ad[0] ^= 1;
    let opened = agree(&parameters, &keys, &batch);
    assert_opens(&batch[..1], &opened[..1]);
    assert_opens(&batch[3..4], &opened[3..4]);
    for i in [1, 2, 4] {
        assert_eq!(opened[i], Opening::Malformed);
        let point = batch[i].point();
        let singles: Vec<_> = keys.iter().map(|key| (key.index(), key.singleton_share(&point))).collect();
        let pd = parameters.combine_singletons(&singles[1..]).expect("enough");
        assert_eq!(parameters.verify_singleton(&point, &pd), Ok(()));
        assert_eq!(
            parameters.open_singleton(&batch[i].ad, &batch[i].ciphertext, &pd),
            Ok(Opening::Malformed)
        );
    }
    // A false claim is refuted by the singleton release, too.
    let point = batch[0].point();
    let singles: Vec<_> = keys.iter().map(|key| (key.index(), key.singleton_share(&point))).collect();
    let pd = parameters.combine_singletons(&singles).expect("enough");
    let opened = parameters.open_singleton(&batch[0].ad, &batch[0].ciphertext, &pd).expect("a point");
    assert_opens(&batch[..1], &[opened]);
}

#[test]
fn a_wrong_release_opens_nothing_and_the_faulty_members_are_named() {
    let (parameters, keys) = deal(6, 7, 4, 5);
    let batch = batch(&parameters, 6, 6);
    let points = points(&batch);
    let mut shares = shares(&keys, &points);
    let good = parameters.combine(&shares[3..]).expect("enough");
    let elsewhere = keys[1].release_share(&points[..5]).expect("within limits");
    shares[1].1 = elsewhere; // an honest share of another batch
    shares[2].1 = off_subgroup();
    shares[5].1 = shares[6].1; // somebody else's

    let bad = parameters.combine(&[shares[0], shares[1], shares[3], shares[4]]).expect("points");
    assert_ne!(bad, good);
    let identity = Release::from_bytes(&common::IDENTITY_G1).expect("a point");
    for backend in backends() {
        let predecrypted = backend.predecrypt(&parameters, &points).expect("within limits");
        for release in [&bad, &identity] {
            let opened = backend.finalize(&parameters, &predecrypted, release, &inputs(&batch));
            assert_eq!(opened, Ok(vec![Opening::Malformed; 6]));
        }
        let invalid = backend.invalid_shares(&mut rng(7), &parameters, &points, &shares);
        assert_eq!(invalid, Ok(vec![2, 3, 6]), "{}", backend.name());
    }

    let mut rng = rng(8);
    let honest: Vec<_> = [0, 3, 4, 6].iter().map(|i| shares[*i]).collect();
    assert_eq!(parameters.invalid_shares(&mut rng, &points, &honest), Ok(vec![]));
    assert_eq!(parameters.combine(&honest), Ok(good));
    for (member, share) in &shares {
        let faulty = [2, 3, 6].contains(member);
        assert_eq!(parameters.verify_share(*member, &points, share).is_err(), faulty);
    }
}

#[test]
fn encryption_and_set_up_agree_with_the_reference() {
    let mut rng = rng(11);
    let tau: [u8; 32] = std::array::from_fn(|i| if i == 0 { 0x11 } else { rng.next_u32() as u8 });
    let shares: Vec<Vec<[u8; 32]>> = vec![vec![tau]; 3]; // threshold 1, only h and ek matter here
    let (parameters, keys) = dealer::from_secrets(3, 1, 1, &tau, &shares).expect("canonical");
    let reference = Reference::from_tau(3, &tau).expect("canonical");
    let ek = parameters.encryption_key();
    assert_eq!(ek.to_bytes(), reference.ek());
    assert!((0..=7).all(|i| parameters.h(i) == reference.h(i)));

    for length in [0, 1, 31, 32, 33, 200] {
        let (mut ad, mut key, mut rho, mut message) = ([0; 32], [0; 16], [0; 32], vec![0; length]);
        rng.fill_bytes(&mut ad);
        rng.fill_bytes(&mut key);
        rng.fill_bytes(&mut rho[1..]);
        rng.fill_bytes(&mut message);
        let Encrypted { ciphertext, r, s } = reference.encrypt(&ad, &message, &key, &rho).expect("a scalar");
        let key = SessionKey::from_bytes(key);
        let (own, _) = ek.encrypt_deterministic(&ad, &message, &key).expect("a short message");
        assert_eq!((own.c, own.d, &own.e), (ciphertext.c, ciphertext.d, &ciphertext.e));
        let proof = blindfold_bte::Proof { r, s };
        let point = verify_proof(&ad, &own, &proof).expect("the reference's proof");
        assert_eq!(
            keys[0].release_share(&[point; 3]).ok(),
            release_share(&shares.concat(), &[own.c; 3]).ok(),
        );
        assert_eq!(reference.verify_hint(&ad, &ciphertext, key.as_bytes()).as_ref(), Some(&message));
        assert_eq!(ek.open_hint(&ad, &own, &key).as_ref(), Ok(&message));

        let (own, proof, key) = ek.encrypt(&ad, &message, b"", &mut rng).expect("a short message");
        let ciphertext = PlainCiphertext { c: own.c, d: own.d, e: own.e };
        assert_eq!(reference.verify_hint(&ad, &ciphertext, key.as_bytes()), Some(message));
        let mut encrypted = Encrypted { ciphertext, r: proof.r, s: proof.s };
        assert_eq!(verify_proof_plainly(&ad, &encrypted), Ok(true));
        encrypted.ciphertext.d[0] ^= 1;
        assert_eq!(verify_proof_plainly(&ad, &encrypted), Ok(false));
    }
}
