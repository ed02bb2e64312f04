//! Properties over arbitrary inputs, with fixed seeds.

mod common;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use blindfold_bte::bls;
use blindfold_bte::{
    BatchError, Ciphertext, CiphertextPoint, EncryptionKey, KnownBatch, KnownItem, MemberKey, Parameters,
    Proof, Release, SessionKey, verify_proof, verify_proofs,
};
use common::{IDENTITY_G1, Made, batch, deal, off_subgroup, points, rng, shares};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

fn dealt() -> &'static (Parameters, Vec<MemberKey>) {
    static CELL: OnceLock<(Parameters, Vec<MemberKey>)> = OnceLock::new();
    CELL.get_or_init(|| deal(4, 4, 3, 1))
}

/// Runs `test` on `cases` values drawn with a fixed seed.
fn check<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    if let Err(error) = runner.run(&strategy, test) {
        panic!("{error}");
    }
}

fn bytes(length: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), length)
}

#[test]
fn whatever_is_encrypted_comes_back() {
    let ek = dealt().0.encryption_key();
    let inputs = (any::<[u8; 32]>(), bytes(0..300), bytes(0..40), any::<u64>());
    check(24, inputs, |(ad, message, secret, seed)| {
        let (ciphertext, proof, key) = ek.encrypt(&ad, &message, &secret, &mut rng(seed)).expect("short");
        prop_assert_eq!(ciphertext.e.len(), message.len());
        prop_assert!(verify_proof(&ad, &ciphertext, &proof).is_ok());
        prop_assert_eq!(ek.open_hint(&ad, &ciphertext, &key), Ok(message.clone()));
        prop_assert_eq!(Proof::from_bytes(&proof.to_bytes()), proof);
        // The same source of randomness, another message: nothing repeats.
        let mut other = message;
        other.push(1);
        let (again, other_proof, other_key) =
            ek.encrypt(&ad, &other, &secret, &mut rng(seed)).expect("short");
        prop_assert!(other_key != key && again.c != ciphertext.c && other_proof.r != proof.r);
        Ok(())
    });
}

#[test]
fn any_changed_bit_is_noticed() {
    let ek = dealt().0.encryption_key();
    let made = Made::new(&ek, 3, &mut rng(1));
    check(48, (0..48usize + 16 + 21 + 32 + 16, 0..8u32), |(position, bit)| {
        let Made { mut ad, mut ciphertext, proof, key, .. } = made.clone();
        let mut hint = *key.as_bytes();
        let all = ciphertext.c.iter_mut().chain(&mut ciphertext.d).chain(&mut ciphertext.e).chain(&mut ad);
        let byte = all.chain(&mut hint).nth(position);
        *byte.expect("as many bytes as positions") ^= 1 << bit;
        prop_assert!(ek.open_hint(&ad, &ciphertext, &SessionKey::from_bytes(hint)).is_err());
        let hint_only = position >= 48 + 16 + 21 + 32;
        prop_assert_eq!(verify_proof(&ad, &ciphertext, &proof).is_ok(), hint_only);
        Ok(())
    });
}

#[test]
fn arbitrary_bytes_never_panic() {
    let (parameters, keys) = dealt();
    let ek = parameters.encryption_key();
    check(200, (bytes(0..1200), any::<[u8; 32]>()), |(bytes, ad)| {
        let part = |from: usize, length: usize| -> Vec<u8> {
            bytes.iter().copied().chain(std::iter::repeat(0)).skip(from).take(length).collect()
        };
        let point: [u8; 48] = part(0, 48).try_into().expect("48");
        let mut flagged = point;
        flagged[0] = flagged[0] & 0x1f | 0x80;
        for c in [point, flagged] {
            let ciphertext = Ciphertext { c, d: [1; 16], e: part(48, 30) };
            let proof =
                Proof { r: part(80, 48).try_into().expect("48"), s: part(130, 32).try_into().expect("32") };
            prop_assert!(verify_proof(&ad, &ciphertext, &proof).is_err());
            prop_assert!(ek.open_hint(&ad, &ciphertext, &SessionKey::from_bytes([3; 16])).is_err());
            let decoded = CiphertextPoint::from_bytes(&c);
            prop_assert!(decoded.is_err() || decoded.is_ok_and(|point| point.to_bytes() == c));
            let _ =
                (Release::from_bytes(&c), bls::Signature::from_bytes(&c), parameters.combine(&[(1, c); 3]));
        }
        let _ = bls::PublicKey::from_bytes(&part(0, 96).try_into().expect("96"));
        let _ = bls::SecretKey::from_bytes(&ad);
        prop_assert!(EncryptionKey::from_bytes(&part(0, 576).try_into().expect("576")).is_err());
        prop_assert!(Parameters::decode(&bytes).is_err() && MemberKey::decode(&bytes).is_err());
        // Behind a valid beginning, too.
        for (valid, keep) in [(parameters.encode(), 17), (keys[0].encode().to_vec(), 15)] {
            let mixed: Vec<u8> = valid[..keep].iter().chain(&bytes).copied().collect();
            prop_assert!(Parameters::decode(&mixed).is_err());
            prop_assert!(MemberKey::decode(&mixed).is_err() || mixed.len() == 15 + 4 * 32);
        }
        Ok(())
    });
}

#[test]
fn files_survive_a_round_trip_and_changes_are_noticed() {
    let (parameters, keys) = dealt();
    let file = parameters.encode();
    let decoded = Parameters::decode(&file).expect("own encoding");
    assert_eq!((decoded.encode(), decoded.hash()), (file.clone(), parameters.hash()));
    assert!((1..=4).all(|member| (1..=4).all(|i| {
        decoded.verification_key(member, i).is_some()
            && decoded.verification_key(member, i) == parameters.verification_key(member, i)
    })));
    assert!(decoded.verification_key(0, 1).is_none() && decoded.verification_key(5, 1).is_none());
    assert!(decoded.verification_key(1, 0).is_none() && decoded.verification_key(1, 5).is_none());
    check(100, (0..file.len(), 0..8u32), |(position, bit)| {
        let mut changed = file.clone();
        changed[position] ^= 1 << bit;
        match Parameters::decode(&changed) {
            // A flipped sign leaves a valid point of another discrete logarithm. A raised threshold stays true of the
            // keys; only the registered hash tells.
            Ok(other) => {
                prop_assert_eq!(other.encode(), changed);
                prop_assert_ne!(other.hash(), parameters.hash());
                prop_assert!(other.check(&mut rng(1)).is_err() || other.threshold() > parameters.threshold());
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        Ok(())
    });
    for key in keys {
        let decoded = MemberKey::decode(&key.encode()).expect("own encoding");
        assert_eq!((decoded.index(), decoded.max_batch(), decoded.encode()), (key.index(), 4, key.encode()));
    }
}

#[test]
fn batched_checks_name_exactly_what_is_wrong() {
    let (parameters, keys) = dealt();
    let made = batch(parameters, 9, 5);
    let few = &made[..4];
    let points = points(few);
    let honest = shares(keys, &points);
    check(24, (any::<[u8; 9]>(), 0..16u32, any::<u64>()), |(faults, invalid, seed)| {
        let mut rng = rng(seed);
        let mut faulty = made.clone();
        for (made, fault) in faulty.iter_mut().zip(faults) {
            match fault % 8 {
                0 => made.proof.s[31] ^= 1,
                1 => made.ciphertext.d[0] ^= 1,
                2 => made.proof.s = [0xff; 32],
                _ => {}
            }
        }
        let items: Vec<_> = faulty.iter().map(|made| (&made.ad, &made.ciphertext, &made.proof)).collect();
        let alone: Vec<_> =
            items.iter().map(|(ad, ciphertext, proof)| verify_proof(ad, ciphertext, proof)).collect();
        prop_assert_eq!(verify_proofs(&mut rng, &items), alone);

        let mut shares = honest.clone();
        let lying: Vec<u16> = (1..=4).filter(|member| invalid >> (member - 1) & 1 == 1).collect();
        for member in &lying {
            shares[usize::from(*member) - 1].1 = points[usize::from(*member) - 1].to_bytes();
        }
        prop_assert_eq!(parameters.invalid_shares(&mut rng, &points, &shares), Ok(lying));
        Ok(())
    });
}

/// A batch with its release, some of its ciphertexts closed.
fn known(place: usize, made: &[Made]) -> KnownBatch<'_> {
    let (parameters, keys) = dealt();
    let release = parameters.combine(&shares(keys, &points(made))).expect("enough").to_bytes();
    let mut items = Vec::new();
    for (position, made) in made.iter().enumerate() {
        items.push(match (position + place) % 3 {
            1 => KnownItem::Closed(made.point()),
            _ => KnownItem::Open { ad: &made.ad, key: &made.key, message: &made.message },
        });
    }
    KnownBatch { release, items }
}

#[test]
fn the_releases_of_open_batches_hold_only_if_they_are_right() {
    let parameters = &dealt().0;
    let mut rng = rng(3);
    let made: Vec<Vec<Made>> =
        [4, 1, 3, 4].iter().zip(20..).map(|(size, seed)| batch(parameters, *size, seed)).collect();
    let right: Vec<_> = made.iter().enumerate().map(|(place, made)| known(place, made)).collect();
    for some in [&right[..], &right[1..2], &[]] {
        assert_eq!(parameters.wrong_releases(&mut rng, some), Ok(Vec::new()));
    }
    for place in 0..right.len() {
        let next = (place + 1) % 4;
        let mut wrong = right.clone();
        for release in [right[next].release, IDENTITY_G1, off_subgroup(), [0xff; 48]] {
            wrong[place].release = release;
            assert_eq!(parameters.wrong_releases(&mut rng, &wrong), Ok(vec![place]));
        }
        // Two that make up for each other.
        (wrong[place].release, wrong[next].release) = (right[next].release, right[place].release);
        let both = BTreeSet::from([place, next]);
        assert_eq!(parameters.wrong_releases(&mut rng, &wrong), Ok(both.into_iter().collect()));
        // The right release of other messages, keys, points or another order.
        for change in 0..4 {
            let mut wrong = right.clone();
            let other = &made[next][0];
            let changed = match wrong[place].items[0] {
                KnownItem::Open { ad, key, message } => match change {
                    0 => KnownItem::Open { ad: &[9; 32], key, message },
                    1 => KnownItem::Open { ad, key: &made[place][0].key, message: b"another" },
                    2 => KnownItem::Open { ad, key: &other.key, message },
                    _ => KnownItem::Closed(other.point()),
                },
                KnownItem::Closed(_) => KnownItem::Closed(other.point()),
            };
            wrong[place].items[0] = changed;
            assert_eq!(parameters.wrong_releases(&mut rng, &wrong), Ok(vec![place]), "{place} {change}");
        }
    }
    let shown = format!("{:?}", right[0].items);
    assert!(shown.contains("Open") && !shown.contains("message"), "{shown}");
    let mut turned = right.clone();
    turned[0].items.swap(0, 3);
    assert_eq!(parameters.wrong_releases(&mut rng, &turned), Ok(vec![0]));
    turned[2].items.clear();
    assert_eq!(parameters.wrong_releases(&mut rng, &turned), Err(BatchError::Empty));
    turned[2].items = right.iter().flat_map(|batch| batch.items.clone()).take(5).collect();
    assert_eq!(parameters.wrong_releases(&mut rng, &turned), Err(BatchError::TooLarge { batch: 5, max: 4 }));
}
