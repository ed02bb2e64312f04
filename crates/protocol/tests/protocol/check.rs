//! The half of the validity rule that looks at an item by itself: every fault, and their order.

use crate::common::*;
use alloy_primitives::{Address, B256};
use blindfold_protocol::envelope_builder::{BuildError, EnvelopeFields, build, build_with_key};
use blindfold_protocol::limits::EXPIRY_WINDOW;
use blindfold_protocol::validity::{RejectedItem, check_expiry, check_items};
use blindfold_protocol::*;

fn good() -> Envelope {
    envelope(&fields(), &signing_key(1), 1)
}

fn fault_of(item: &Envelope) -> Option<EnvelopeError> {
    checked_envelopes(std::slice::from_ref(item)).remove(0).err().map(|rejected| rejected.fault)
}

/// Each fault in the rule's order, put into an envelope without repairing signature or proof.
fn spoil(envelope: &mut Envelope, fault: EnvelopeError) {
    let header = &mut envelope.header;
    match fault {
        EnvelopeError::WrongChain => header.chain_id += 1,
        EnvelopeError::WrongDeployment => header.deployment.inbox = Address::ZERO,
        EnvelopeError::WrongEpoch => header.epoch += 1,
        EnvelopeError::WrongEncryptionKey => header.encryption_key_hash = B256::ZERO,
        EnvelopeError::UnknownFlags => header.flags = 1,
        EnvelopeError::BadSize => envelope.ciphertext.e.push(0),
        EnvelopeError::GasLimitTooHigh => header.gas_limit = 191_000_001,
        EnvelopeError::InvalidFeeSignature => envelope.fee_signature.0[5] ^= 1,
        EnvelopeError::InvalidPoint => envelope.ciphertext.c = [0; 48],
        EnvelopeError::InvalidProof => envelope.proof.s[31] ^= 1,
        other => unreachable!("{other} is not a fault of an item by itself"),
    }
}

const BY_ITSELF: [EnvelopeError; 10] = [
    EnvelopeError::WrongChain,
    EnvelopeError::WrongDeployment,
    EnvelopeError::WrongEpoch,
    EnvelopeError::WrongEncryptionKey,
    EnvelopeError::UnknownFlags,
    EnvelopeError::BadSize,
    EnvelopeError::GasLimitTooHigh,
    EnvelopeError::InvalidFeeSignature,
    EnvelopeError::InvalidPoint,
    EnvelopeError::InvalidProof,
];

/// The key is the same, the committee is another one: envelopes name the epoch whose members open them.
#[test]
fn an_epoch_that_continues_a_key_takes_its_own_envelopes_alone() {
    let continuing = Epoch { epoch: 4, continues: 3, first: LAST + 1, last: 2 * LAST, ..epoch() };
    assert_eq!(continuing.validate(), Ok(()));
    let in_epoch = |epoch: &Epoch, envelope: &Envelope| {
        let bytes = envelope.encode();
        check_items(&config(), epoch, &[&bytes], &mut rng(5)).remove(0).err().map(|rejected| rejected.fault)
    };
    let earlier = good();
    let own = envelope(&EnvelopeFields { epoch: 4, ..fields() }, &signing_key(1), 1);
    assert_eq!(own.header.encryption_key_hash, earlier.header.encryption_key_hash);
    assert_eq!(in_epoch(&continuing, &own), None);
    assert_eq!(in_epoch(&epoch(), &earlier), None);
    assert_eq!(in_epoch(&continuing, &earlier), Some(EnvelopeError::WrongEpoch));
    assert_eq!(in_epoch(&epoch(), &own), Some(EnvelopeError::WrongEpoch));
    // Another key under the same number of an epoch.
    let another = Epoch { encryption_key_hash: B256::ZERO, ..continuing };
    assert_eq!(in_epoch(&another, &own), Some(EnvelopeError::WrongEncryptionKey));
}

#[test]
fn a_good_envelope_passes() {
    let envelope = good();
    let item = envelope.encode();
    let checked = checked_envelopes(std::slice::from_ref(&envelope)).remove(0).unwrap();
    assert_eq!(checked.id, envelope.id());
    assert_eq!(checked.ad, envelope.header.hash());
    assert_eq!(checked.item_bytes as usize, item.len());
    assert_eq!(checked.item_hash, alloy_primitives::keccak256(&item));
    assert_eq!(checked.point.to_bytes(), envelope.ciphertext.c);
    assert_eq!(checked.envelope, envelope);
    let found = check_static(&config(), &epoch(), 5, &item).unwrap();
    assert_eq!((found.id, found.ad), (checked.id, checked.ad));
    // Gas up to the limit of a whole second.
    let most = EnvelopeFields { gas_limit: 191_000_000, ..fields() };
    assert_eq!(fault_of(&crate::common::envelope(&most, &signing_key(1), 2)), None);
}

/// Rule V-11.
#[test]
fn the_first_fault_counts() {
    assert_eq!(checked(&[vec![], vec![1, 2, 3]])[1].clone().unwrap_err().fault, EnvelopeError::Undecodable);
    for (place, first) in BY_ITSELF.into_iter().enumerate() {
        let mut envelope = good();
        // All later faults as well, and still the first is named. Later ones need a signature, so sign again where
        // the first fault lies behind it.
        for fault in &BY_ITSELF[place..] {
            if *fault != EnvelopeError::InvalidFeeSignature {
                spoil(&mut envelope, *fault);
            }
        }
        if first > EnvelopeError::InvalidFeeSignature {
            envelope = resigned(envelope, &signing_key(1));
        }
        assert_eq!(fault_of(&envelope), Some(first));
    }
}

/// Rules V-11, V-12.
#[test]
fn each_fault_alone() {
    for fault in BY_ITSELF {
        let mut envelope = good();
        spoil(&mut envelope, fault);
        if fault != EnvelopeError::InvalidFeeSignature && fault != EnvelopeError::InvalidProof {
            envelope = resigned(envelope, &signing_key(1));
        }
        assert_eq!(fault_of(&envelope), Some(fault));
    }
    // Proof of another header: copied ciphertexts cannot be wrapped again.
    let mut copied = good();
    copied.header.fee_nonce += 1;
    assert_eq!(fault_of(&resigned(copied, &signing_key(2))), Some(EnvelopeError::InvalidProof));
    // R no point, s not canonical.
    let mut envelope = good();
    envelope.proof.r = [0xff; 48];
    assert_eq!(fault_of(&envelope), Some(EnvelopeError::InvalidProof));
    let mut envelope = good();
    envelope.proof.s = [0xff; 32];
    assert_eq!(fault_of(&envelope), Some(EnvelopeError::InvalidProof));
    // The identity as C.
    let mut envelope = good();
    envelope.ciphertext.c = [0; 48];
    envelope.ciphertext.c[0] = 0xc0;
    assert_eq!(fault_of(&resigned(envelope, &signing_key(1))), Some(EnvelopeError::InvalidPoint));
    // Somebody else's signature, high s, v of another kind.
    let stranger = resigned(good(), &signing_key(2));
    let mut envelope = good();
    envelope.fee_signature = stranger.fee_signature;
    assert_eq!(fault_of(&envelope), Some(EnvelopeError::InvalidFeeSignature));
    envelope.fee_signature.0[64] = 0;
    assert_eq!(fault_of(&envelope), Some(EnvelopeError::InvalidFeeSignature));
}

/// Rule V-10.
#[test]
fn rejected_items_keep_what_the_header_counts() {
    let mut envelope = good();
    envelope.fee_signature.0[5] ^= 1;
    let item = envelope.encode();
    let rejected = checked(std::slice::from_ref(&item)).remove(0).unwrap_err();
    let expected = RejectedItem {
        fault: EnvelopeError::InvalidFeeSignature,
        id: envelope.id(),
        item_bytes: item.len() as u32,
        item_hash: alloy_primitives::keccak256(&item),
        expiry: Some(100),
        gas_limit: 1_000_000,
    };
    assert_eq!(rejected, expected);
    let garbage = checked(&[vec![9; 10]]).remove(0).unwrap_err();
    assert_eq!((garbage.id, garbage.item_bytes, garbage.expiry), (B256::ZERO, 10, None));
}

#[test]
fn admission_names_the_same_faults() {
    let at =
        |envelope: &Envelope, number| check_static(&config(), &epoch(), number, &envelope.encode()).err();
    assert_eq!(at(&good(), 100), None);
    assert_eq!(at(&good(), 101), Some(EnvelopeError::Expired));
    let far = envelope(&EnvelopeFields { expiry: 4_100, ..fields() }, &signing_key(1), 1);
    assert_eq!(at(&far, 4), None);
    assert_eq!(at(&far, 3), Some(EnvelopeError::ExpiryTooFar));
    // Expiry comes before the signature.
    let mut bad = far;
    bad.fee_signature.0[5] ^= 1;
    assert_eq!(at(&bad, 3), Some(EnvelopeError::ExpiryTooFar));
    assert_eq!(at(&bad, 4), Some(EnvelopeError::InvalidFeeSignature));
    assert_eq!(at(&bad, 4_101), Some(EnvelopeError::Expired));
    assert_eq!(check_static(&config(), &epoch(), 1, &[]).err(), Some(EnvelopeError::Undecodable));
}

#[test]
fn expiry_is_bounded_by_window_and_epoch() {
    let epoch = epoch();
    assert_eq!(check_expiry(5, 5, &epoch), Ok(()));
    assert_eq!(check_expiry(4, 5, &epoch), Err(EnvelopeError::Expired));
    assert_eq!(check_expiry(5 + EXPIRY_WINDOW, 5, &epoch), Ok(()));
    assert_eq!(check_expiry(6 + EXPIRY_WINDOW, 5, &epoch), Err(EnvelopeError::ExpiryTooFar));
    assert_eq!(check_expiry(10_000, 9_000, &epoch), Ok(()));
    assert_eq!(check_expiry(10_001, 9_000, &epoch), Err(EnvelopeError::ExpiryTooFar));
    assert_eq!(check_expiry(u64::MAX, u64::MAX - 1, &epoch), Err(EnvelopeError::ExpiryTooFar));
}

#[test]
fn threads_change_nothing() {
    let mut items: Vec<Vec<u8>> = (1..=9).map(|i| envelope(&fields(), &signing_key(i), 5).encode()).collect();
    items[2] = vec![7];
    items[4][400] ^= 1;
    items[6][200] ^= 1;
    let slices: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
    let serial = check_items(&config(), &epoch(), &slices, &mut rng(1));
    assert_eq!(serial.iter().filter(|item| item.is_ok()).count(), 6);
    for threads in [0, 1, 2, 3, 4, 9, 100] {
        assert_eq!(check_items_parallel(&config(), &epoch(), &slices, &mut rng(2), threads), serial);
    }
    assert!(check_items_parallel(&config(), &epoch(), &[], &mut rng(2), 4).is_empty());
}

#[test]
fn wallets_build_what_passes_and_opens() {
    let bundle = Bundle::of_transactions([vec![1, 2, 3], vec![4]]);
    let (envelope, key) =
        build_with_key(&ENCRYPTION_KEY, &fields(), &bundle, &signing_key(3), &mut rng(4)).unwrap();
    assert_eq!(fault_of(&envelope), None);
    let message = ENCRYPTION_KEY.open_hint(&envelope.header.hash().0, &envelope.ciphertext, &key).unwrap();
    assert_eq!(Bundle::decode(&message).unwrap(), bundle);
    // Without any randomness, other keys and other messages still give other ciphertexts.
    let other = build(&ENCRYPTION_KEY, &fields(), &bundle, &signing_key(4), &mut rng(4)).unwrap();
    assert_ne!(envelope.ciphertext.c, other.ciphertext.c);
    let large = Bundle::of_transactions([vec![0; 40_000]]);
    let refused = build(&ENCRYPTION_KEY, &fields(), &large, &signing_key(3), &mut rng(4));
    assert!(matches!(refused, Err(BuildError::Bundle(BundleError::TooLong { got: 40_008, limit: 32_768 }))));
}

#[test]
fn names_are_stable() {
    let names: Vec<_> = EnvelopeError::ALL.map(EnvelopeError::as_str).to_vec();
    let documented = "undecodable wrong_chain wrong_deployment wrong_epoch wrong_encryption_key unknown_flags \
        bad_size gas_limit_too_high expired expiry_too_far duplicate invalid_fee_signature invalid_point invalid_proof \
        fee_nonce_used fee_too_low insufficient_funds wrong_generation";
    assert_eq!(names, documented.split_whitespace().collect::<Vec<_>>());
    for fault in EnvelopeError::ALL {
        assert_eq!(EnvelopeError::from_name(fault.as_str()), Some(fault));
        assert_eq!(serde_json::to_string(&fault).unwrap(), format!("\"{fault}\""));
    }
    assert_eq!(EnvelopeError::from_name("surprise"), None);
    assert_eq!(EnvelopeError::ALL.map(EnvelopeError::code).to_vec(), (1..=18).collect::<Vec<u8>>());
    assert_eq!((EnvelopeError::Void.code(), EnvelopeError::Void.as_str()), (0xfe, "void"));
    for fault in EnvelopeError::ALL.into_iter().chain([EnvelopeError::Void]) {
        assert_eq!(EnvelopeError::from_code(fault.code()), Some(fault));
        assert_eq!(EnvelopeError::from_name(fault.as_str()), Some(fault));
        let verdict = blindfold_protocol::Verdict::Skipped(fault);
        assert_eq!(blindfold_protocol::Verdict::code_of_reason(verdict.reason()), Some(verdict.code()));
    }
    assert_eq!(EnvelopeError::from_code(0).or(EnvelopeError::from_code(19)), None);
    assert!(EnvelopeError::ALL.is_sorted());
    assert!(
        !EnvelopeError::WrongGeneration.spoilt_by_payer() && !EnvelopeError::WrongGeneration.may_pass_later()
    );
    assert!(EnvelopeError::InsufficientFunds.may_pass_later() && !EnvelopeError::Expired.may_pass_later());
}
