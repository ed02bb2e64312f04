#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use super::*;
use blindfold_bte::bls::SecretKey;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn points_come_back_from_their_l1_form(seed in any::<[u8; 32]>(), hash in any::<[u8; 32]>()) {
        let secret = SecretKey::generate(&seed).unwrap();
        let key = secret.public_key();
        prop_assert_eq!(decompress_key(&key.to_eip2537()), Some(key));
        let signature = secret.sign(&hash);
        prop_assert_eq!(decompress_signature(&signature.to_eip2537()), Some(signature));
    }

    #[test]
    fn changed_points_are_refused(seed in any::<[u8; 32]>(), at in 0usize..256, by in 1u8..) {
        let secret = SecretKey::generate(&seed).unwrap();
        let mut key = secret.public_key().to_eip2537();
        key[at] ^= by;
        prop_assert_eq!(decompress_key(&key), None);
        let mut signature = secret.sign(&seed).to_eip2537();
        signature[at % 128] ^= by;
        prop_assert_eq!(decompress_signature(&signature), None);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = (decompress_key(&bytes), decompress_signature(&bytes));
    }
}

#[test]
fn a_record_that_breaks_the_rules_is_refused() {
    let key = SecretKey::generate(&[7; 32]).unwrap().public_key();
    let good = CommitteeRegistry::Epoch {
        epoch: 1,
        firstNumber: 1,
        lastNumber: 10,
        countsFrom: 0,
        continues: 0,
        h1: key.to_eip2537().into(),
        maxBatch: 8,
        threshold: 1,
        parametersHash: B256::ZERO,
        encryptionKeyHash: B256::ZERO,
        parametersLocation: "here".into(),
        memberKeys: vec![key.to_eip2537().into()],
    };
    assert_eq!(record(1, good.clone()).unwrap().epoch.members, [key]);
    let bad_key = CommitteeRegistry::Epoch { memberKeys: vec![vec![0; 256].into()], ..good.clone() };
    assert_eq!(record(1, bad_key), Err(L1Error::MemberKey { epoch: 1, member: 1 }));
    let bad_threshold = CommitteeRegistry::Epoch { threshold: 2, ..good };
    assert!(matches!(record(1, bad_threshold), Err(L1Error::Epochs(_))));
}
