//! Every backend gives what the reference gives, at awkward sizes and on inputs an adversary would choose.

mod common;

use blindfold_bte::{
    Backend, CiphertextPoint, MemberKey, Opening, Parameters, Portable, Release, SessionKey, by_name, dealer,
    verify_proof,
};
use blindfold_reference::{
    Ciphertext as PlainCiphertext, Encrypted, Reference, combine, release_share,
    verify_proof as verify_proof_plainly,
};
use common::{Made, batch, deal, inputs, off_subgroup, points, rng, shares};
use rand_chacha::rand_core::Rng;

fn reference(parameters: &Parameters) -> Reference {
    let ek = parameters.encryption_key().to_bytes();
    Reference::from_bytes(parameters.max_batch(), |i| parameters.h(i), &ek).expect("valid parameters")
}

fn plain(made: &Made) -> PlainCiphertext {
    PlainCiphertext { c: made.ciphertext.c, d: made.ciphertext.d, e: made.ciphertext.e.clone() }
}

fn backends() -> Vec<Box<dyn Backend>> {
    vec![Box::new(Portable::new(1)), Box::new(Portable::new(3)), by_name("auto", 0).expect("known")]
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

    for backend in backends() {
        let predecrypted = backend.predecrypt(parameters, &points).expect("within limits");
        assert_eq!(predecrypted.cross_terms(), cross.to_bytes(), "{}", backend.name());
        assert_eq!(predecrypted.unblind(parameters, &release).as_ref(), Ok(&want_blinding));
        let opened = backend.finalize(parameters, &predecrypted, &release, &inputs(batch)).expect("the same");
        assert_eq!(opened, want);
    }
    want
}

fn assert_opens(batch: &[Made], opened: &[Opening]) {
    for (made, opened) in batch.iter().zip(opened) {
        assert_eq!(*opened, Opening::WellFormed { key: made.key.clone(), message: made.message.clone() });
    }
}

#[test]
fn every_size_agrees_with_the_reference() {
    for (max_batch, sizes) in
        [(1, &[1][..]), (2, &[1, 2]), (3, &[1, 2, 3]), (17, &[1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17])]
    {
        let (parameters, keys) = deal(max_batch, 4, 3, u64::from(max_batch));
        parameters.check(&mut rng(9)).expect("honest parameters");
        for size in sizes {
            let batch = batch(&parameters, *size, 100 + *size as u64);
            assert_opens(&batch, &agree(&parameters, &keys, &batch));
        }
    }
}

#[test]
fn duplicates_opposites_and_equal_ciphertexts_do_not_disturb_the_others() {
    let (parameters, keys) = deal(8, 3, 2, 1);
    let honest = batch(&parameters, 8, 2);
    let opposite = |made: &Made| {
        let mut opposite = made.clone();
        opposite.ciphertext.c[0] ^= 0x20; // the sign of y
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
fn a_wrong_release_opens_nothing_and_the_liars_are_named() {
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
    let backend = Portable::new(2);
    let predecrypted = backend.predecrypt(&parameters, &points).expect("within limits");
    let opened = backend.finalize(&parameters, &predecrypted, &bad, &inputs(&batch)).expect("the same batch");
    assert!(opened.iter().all(|opening| *opening == Opening::Malformed));
    let identity = Release::from_bytes(&common::IDENTITY_G1).expect("a point");
    let opened =
        backend.finalize(&parameters, &predecrypted, &identity, &inputs(&batch)).expect("the same batch");
    assert!(opened.iter().all(|opening| *opening == Opening::Malformed));

    let mut rng = rng(7);
    assert_eq!(backend.find_liars(&mut rng, &parameters, &points, &shares), Ok(vec![2, 3, 6]));
    let honest: Vec<_> = [0, 3, 4, 6].iter().map(|i| shares[*i]).collect();
    assert_eq!(parameters.find_liars(&mut rng, &points, &honest), Ok(vec![]));
    assert_eq!(parameters.combine(&honest), Ok(good));
    for (member, share) in &shares {
        let liar = [2, 3, 6].contains(member);
        assert_eq!(parameters.verify_share(&mut rng, *member, &points, share).is_err(), liar);
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
        let own = ek.encrypt_deterministic(&ad, &message, &key).expect("a short message");
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
