//! Data of kind 2: what was opened gives what was ordered.

use crate::common::{CHAIN_ID, ENCRYPTION_KEY, deployment, rng, sequencer, signing_key};
use alloy_consensus::{SignableTransaction, TxEip1559, TxEip2930, TxEip7702, TxEnvelope, TxLegacy};
use alloy_eips::eip2718::Encodable2718;
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, B256, Signature, TxKind, U256};
use blindfold_bte::SessionKey;
use blindfold_protocol::envelope_builder::{EnvelopeFields, build_with_key};
use blindfold_protocol::opened::{
    BatchTerms, OpenBatch, OpenedBatch, OpenedRun, RestoreError, RunTerms, encode,
};
use blindfold_protocol::{
    Bundle, BundleItem, Canonical, DecodeError, Envelope, Signature65, SigningKey, keccak256,
};
use proptest::prelude::*;

const NUMBER: u64 = 90;
/// The items that [`batch`] gives no key to.
const UNOPENED: [usize; 2] = [6, 7];

fn run() -> RunTerms {
    RunTerms { chain_id: CHAIN_ID, deployment: deployment() }
}

fn terms() -> BatchTerms {
    BatchTerms { number: NUMBER, epoch: 1, encryption_key_hash: B256::from(ENCRYPTION_KEY.hash()) }
}

fn fields(fee_nonce: u64) -> EnvelopeFields {
    EnvelopeFields {
        chain_id: CHAIN_ID,
        deployment: deployment(),
        epoch: 1,
        fee_nonce,
        max_fee: 1_000_000_000,
        priority_fee: 3,
        max_gas_fee: 70_000_000,
        gas_limit: 21_000,
        expiry: NUMBER + 40,
        generation: 2,
    }
}

fn signed<T: SignableTransaction<Signature>>(transaction: T, key: &SigningKey) -> Vec<u8>
where
    TxEnvelope: From<alloy_consensus::Signed<T>>,
{
    let Signature65(signature) = key.sign(&transaction.signature_hash());
    let (r, s) = (U256::from_be_slice(&signature[..32]), U256::from_be_slice(&signature[32..64]));
    let signature = Signature::new(r, s, signature[64] == 28);
    TxEnvelope::from(transaction.into_signed(signature)).encoded_2718()
}

fn transfer(nonce: u64, to: u8, value: u128) -> TxEip1559 {
    TxEip1559 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit: 21_000,
        max_fee_per_gas: 2_000_000_000,
        max_priority_fee_per_gas: 1,
        to: TxKind::Call(Address::repeat_byte(to)),
        value: U256::from(value),
        ..TxEip1559::default()
    }
}

fn envelope(bundle: &Bundle, payer: &SigningKey, nonce: u64) -> (Vec<u8>, Option<SessionKey>) {
    let made = build_with_key(&ENCRYPTION_KEY, &fields(nonce), bundle, payer, &mut rng(nonce)).unwrap();
    (made.0.encode(), Some(made.1))
}

/// One of each kind: items, and their keys.
fn batch() -> (Vec<Vec<u8>>, Vec<Option<SessionKey>>) {
    let [alice, bob] = [signing_key(0xa1), signing_key(0xb0)];
    let listed = AccessList(vec![AccessListItem { address: Address::ZERO, storage_keys: vec![B256::ZERO] }]);
    let several = [
        signed(transfer(7, 1, 10u128.pow(18)), &alice),
        signed(TxEip1559 { to: TxKind::Create, input: vec![0x60; 90].into(), ..transfer(8, 1, 0) }, &alice),
        signed(TxEip1559 { access_list: listed.clone(), ..transfer(9, 1, 0) }, &alice),
        signed(TxEip1559 { chain_id: 1, ..transfer(10, 1, 123_456_789) }, &alice),
        signed(
            TxLegacy { chain_id: Some(CHAIN_ID), nonce: 3, gas_limit: 21_000, ..Default::default() },
            &bob,
        ),
        signed(TxEip2930 { chain_id: CHAIN_ID, access_list: listed, ..Default::default() }, &bob),
        signed(TxEip7702 { chain_id: CHAIN_ID, ..Default::default() }, &bob),
        vec![],
    ];
    let mut mixed = Bundle::of_transactions(several);
    mixed.items.insert(1, BundleItem::confidential([5; 40]));
    let mut forged = envelope(&Bundle::of_transactions([signed(transfer(0, 9, 1), &bob)]), &bob, 5);
    // Its proof is wrong, so it is skipped; the hints give it a key all the same.
    let mut decoded = Envelope::decode(&forged.0).unwrap();
    decoded.proof.s[31] ^= 1;
    forged.0 = decoded.encode();
    let all = [
        envelope(&Bundle::of_transactions([signed(transfer(0, 2, 5), &alice)]), &alice, 1),
        envelope(&Bundle::of_transactions([signed(transfer(1, 2, 5), &alice)]), &bob, 2),
        envelope(&Bundle::of_transactions([signed(transfer(2, 3, u128::MAX), &bob)]), &alice, 3),
        envelope(&mixed, &alice, 4),
        envelope(&Bundle::default(), &bob, 6),
        forged,
        envelope(&Bundle::of_transactions([signed(transfer(3, 3, 1), &bob)]), &bob, 7),
        (vec![1, 2, 3], None),
    ];
    let (items, mut keys): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    for index in UNOPENED {
        keys[index] = None;
    }
    (items, keys)
}

fn coded(items: &[Vec<u8>]) -> Vec<u8> {
    (0..items.len()).map(|index| u8::from(index > 4)).collect()
}

fn body(items: &[Vec<u8>], keys: &[Option<SessionKey>], signature: &Signature65) -> Vec<u8> {
    let codes = coded(items);
    encode(&run(), &[OpenBatch { terms: terms(), signature, codes: &codes, items, keys }])
}

#[test]
fn what_was_opened_gives_what_was_ordered() {
    let (items, keys) = batch();
    let signature = sequencer().sign(&keccak256(b"header"));
    let encoded = body(&items, &keys, &signature);
    let decoded = OpenedRun::decode(CHAIN_ID, &encoded).unwrap();
    let [data] = &decoded.batches[..] else { panic!("one batch") };
    assert_eq!(data.signature, signature);
    assert_eq!(data.count(), items.len());
    assert_eq!(data.opened(), items.len() - UNOPENED.len());
    assert_eq!(data.item_bytes(), items.iter().map(|item| item.len() as u64).sum::<u64>());

    let restored = data.restore(&run(), &terms(), &ENCRYPTION_KEY, &keys).unwrap();
    let codes = coded(&items);
    for (index, (restored, item)) in restored.iter().zip(&items).enumerate() {
        assert_eq!(restored.0, codes[index], "{index}");
        // A wrong proof is not restored: a poster that compares gives that item no key.
        assert_eq!(restored.1 == *item, index != 5, "{index}");
    }
    let mut without = keys;
    without[5] = None;
    let encoded = body(&items, &without, &signature);
    let data = OpenedRun::decode(CHAIN_ID, &encoded).unwrap().batches.remove(0);
    let restored = data.restore(&run(), &terms(), &ENCRYPTION_KEY, &without).unwrap();
    assert_eq!(restored, coded(&items).into_iter().zip(items).collect::<Vec<_>>());
}

/// What is made of items and keys, which comes back from its body.
fn made(items: &[Vec<u8>], keys: &[Option<SessionKey>]) -> OpenedBatch {
    let (codes, signature) = (coded(items), Signature65::NONE);
    let open = OpenBatch { terms: terms(), signature: &signature, codes: &codes, items, keys };
    let mut made = OpenedRun::of(&run(), &[open]);
    assert_eq!(OpenedRun::decode(CHAIN_ID, &made.encode(CHAIN_ID)).unwrap(), made);
    made.batches.remove(0)
}

/// Whoever made a body of derived proofs alone need not restore it: no wrong key, and no other byte, gives one that
/// restores to anything else.
#[test]
fn derived_proofs_show_that_the_keys_are_right() {
    let (items, keys) = batch();
    let restores = |made: &OpenedBatch, items: &[Vec<u8>], keys: &[Option<SessionKey>]| {
        let restored = made.restore(&run(), &terms(), &ENCRYPTION_KEY, keys);
        restored.is_ok_and(|restored| restored.iter().map(|(_, item)| item).eq(items))
    };
    assert!(!made(&items, &keys).is_derived(), "one has a wrong proof");
    for index in 0..items.len() {
        let (items, keys) = (&items[index..=index], &keys[index..=index]);
        let right = made(items, keys);
        assert_eq!(right.is_derived(), index != 5, "item {index}");
        assert_eq!(restores(&right, items, keys), index != 5, "item {index}");
        if keys[0].is_none() || index == 5 {
            continue;
        }
        let wrong = [Some(SessionKey::from_bytes([9; 16]))];
        assert!(!made(items, &wrong).is_derived(), "key of item {index}");
        let mut derived = 0;
        for place in (0..items[0].len()).step_by(23) {
            let mut other = items.to_vec();
            other[0][place] ^= 1;
            let other_made = made(&other, keys);
            derived += usize::from(other_made.is_derived());
            assert!(
                !other_made.is_derived() || restores(&other_made, &other, keys),
                "item {index}, byte {place}"
            );
        }
        // In fields that all envelopes of a batch have in common, which stand raw then, and in the payer's signature.
        println!("item {index}: {derived} of {} changed ones are as derived as before", items[0].len() / 23);
        assert!(derived < items[0].len() / 46, "item {index}");
    }
}

/// By whoever has the items, and keys of those whose proofs are right.
#[test]
fn what_is_of_ones_own_items_is_seen_without_encrypting() {
    let (items, mut keys) = batch();
    let (codes, signature) = (coded(&items), Signature65::NONE);
    let decoded = |keys: &[Option<SessionKey>]| {
        OpenedRun::decode(CHAIN_ID, &body(&items, keys, &signature)).unwrap().batches.remove(0)
    };
    let forged = decoded(&keys);
    keys[5] = None;
    let data = decoded(&keys);
    let own = OpenBatch { terms: terms(), signature: &signature, codes: &codes, items: &items, keys: &keys };
    assert!(data.is_of(&run(), &own, &keys));
    assert!(decoded(&vec![None; keys.len()]).is_of(&run(), &own, &keys), "as they are");
    assert!(!forged.is_of(&run(), &own, &batch().1), "whose proof is wrong has no key here");

    for index in 0..items.len() {
        let mut other_items = items.clone();
        *other_items[index].last_mut().unwrap() ^= 1;
        assert!(!data.is_of(&run(), &OpenBatch { items: &other_items, ..own }, &keys), "item {index}");
        let mut other_codes = codes.clone();
        other_codes[index] ^= 1;
        assert!(!data.is_of(&run(), &OpenBatch { codes: &other_codes, ..own }, &keys), "code {index}");
        for wrong in [None, Some(SessionKey::from_bytes([9; 16]))] {
            let mut other_keys = keys.clone();
            other_keys[index] = wrong;
            let opened = keys[index].is_some();
            assert_eq!(data.is_of(&run(), &own, &other_keys), !opened, "posted key {index}");
            let own = OpenBatch { keys: &other_keys, ..own };
            assert_eq!(data.is_of(&run(), &own, &keys), !opened, "own key {index}");
            assert_eq!(data.is_of(&run(), &own, &other_keys), !opened, "either key {index}");
        }
    }
    for count in [0, items.len() - 1] {
        let fewer = OpenBatch { items: &items[..count], codes: &codes[..count], keys: &keys[..count], ..own };
        assert!(!data.is_of(&run(), &fewer, &keys[..count]));
        assert!(!data.is_of(&run(), &own, &keys[..count]));
    }
    let elsewhere = BatchTerms { epoch: 2, ..terms() };
    assert!(!data.is_of(&run(), &OpenBatch { terms: elsewhere, ..own }, &keys));
}

#[test]
fn several_batches_know_each_others_addresses() {
    let (items, keys) = batch();
    let signature = Signature65::NONE;
    let codes = coded(&items);
    let one = OpenBatch { terms: terms(), signature: &signature, codes: &codes, items: &items, keys: &keys };
    let empty = OpenBatch { codes: &[], items: &[], keys: &[], ..one };
    let next = OpenBatch { terms: BatchTerms { number: NUMBER + 1, ..terms() }, ..one };
    let encoded = encode(&run(), &[one, empty, next]);
    let decoded = OpenedRun::decode(CHAIN_ID, &encoded).unwrap();
    assert_eq!(decoded.batches.iter().map(|batch| batch.count()).collect::<Vec<_>>(), [8, 0, 8]);
    let last = decoded.batches[2].restore(&run(), &next.terms, &ENCRYPTION_KEY, &keys).unwrap();
    assert_eq!(last[0].1, items[0], "an expiry is told from the batch's own number");
    assert!(encoded.len() < 2 * encode(&run(), &[one]).len());
}

#[test]
fn other_keys_terms_and_counts_give_nothing_or_something_else() {
    let (items, keys) = batch();
    let encoded = body(&items, &keys, &Signature65::NONE);
    let data = OpenedRun::decode(CHAIN_ID, &encoded).unwrap().batches.remove(0);
    let restore = |run: &RunTerms, batch: &BatchTerms, keys: &[Option<SessionKey>]| {
        data.restore(run, batch, &ENCRYPTION_KEY, keys)
    };
    let short = restore(&run(), &terms(), &keys[1..]);
    assert_eq!(short, Err(RestoreError::Count { items: 8, keys: 7 }));
    let mut missing = keys.clone();
    missing[2] = None;
    assert_eq!(restore(&run(), &terms(), &missing), Err(RestoreError::Key(2)));
    let mut wrong = keys.clone();
    wrong[2] = Some(SessionKey::from_bytes([7; 16]));
    assert_ne!(restore(&run(), &terms(), &wrong).unwrap()[2].1, items[2]);
    let late = BatchTerms { number: NUMBER + 1, ..terms() };
    assert_ne!(restore(&run(), &late, &keys).unwrap()[0].1, items[0]);
}

#[test]
fn an_envelope_of_another_chain_stands_as_it_is() {
    let (items, keys) = batch();
    let encoded = encode(
        &RunTerms { chain_id: 7, ..run() },
        &[OpenBatch {
            terms: terms(),
            signature: &Signature65::NONE,
            codes: &coded(&items),
            items: &items,
            keys: &keys,
        }],
    );
    let data = OpenedRun::decode(CHAIN_ID, &encoded).unwrap().batches.remove(0);
    assert_eq!(data.opened(), 0);
    let restored = data.restore(&run(), &terms(), &ENCRYPTION_KEY, &keys).unwrap();
    assert_eq!(restored.into_iter().map(|(_, item)| item).collect::<Vec<_>>(), items);
}

#[test]
fn what_is_no_body_is_refused() {
    let (items, keys) = batch();
    let encoded = body(&items, &keys, &Signature65::NONE);
    for length in [0, 1, 30, encoded.len() - 1] {
        assert!(
            matches!(OpenedRun::decode(CHAIN_ID, &encoded[..length]), Err(DecodeError::Short { .. })),
            "{length}"
        );
    }
    let longer = [encoded.as_slice(), &[0]].concat();
    assert_eq!(OpenedRun::decode(CHAIN_ID, &longer), Err(DecodeError::Trailing(1)));
    assert_eq!(OpenedRun::decode(CHAIN_ID, &encode(&run(), &[])).unwrap().batches, []);
}

proptest! {
    /// Any byte of a body changed: an error, other items, or the same ones; never a panic.
    #[test]
    fn a_damaged_body_harms_nobody(place in 0usize..4_000, pattern in 1u8..) {
        let (items, keys) = batch();
        let mut encoded = body(&items, &keys, &Signature65::NONE);
        let place = place % encoded.len();
        encoded[place] ^= pattern;
        if let Ok(decoded) = OpenedRun::decode(CHAIN_ID, &encoded) {
            for batch in &decoded.batches {
                let _ = batch.item_bytes();
                let _ = batch.restore(&run(), &terms(), &ENCRYPTION_KEY, &keys);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_body_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = OpenedRun::decode(CHAIN_ID, &bytes);
    }
}
