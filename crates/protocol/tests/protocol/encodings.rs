//! Every structure: decode(encode(x)) = x, one encoding only, no panic on any bytes, every refusal.

use crate::common;
use alloy_primitives::{Address, B256};
use blindfold_bte::{Ciphertext, Proof};
use blindfold_protocol::codec::{Canonical, DecodeError, hex_canonical};
use blindfold_protocol::envelope::{ENVELOPE_HEADER_BYTES, EnvelopeHeader};
use blindfold_protocol::header::BATCH_HEADER_BYTES;
use blindfold_protocol::limits::*;
use blindfold_protocol::*;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

fn hash() -> impl Strategy<Value = B256> {
    any::<[u8; 32]>().prop_map(B256::from)
}

fn address() -> impl Strategy<Value = Address> {
    any::<[u8; 20]>().prop_map(Address::from)
}

fn bytes<const N: usize>() -> impl Strategy<Value = [u8; N]> {
    vec(any::<u8>(), N).prop_map(|bytes| bytes.try_into().unwrap())
}

fn signature() -> impl Strategy<Value = Signature65> {
    bytes::<65>().prop_map(Signature65)
}

fn envelope_header() -> impl Strategy<Value = EnvelopeHeader> {
    let fields = (any::<[u64; 6]>(), address(), hash(), address(), any::<u128>(), any::<u128>());
    fields.prop_map(|(n, inbox, encryption_key_hash, payer, max_fee, priority_fee)| EnvelopeHeader {
        chain_id: n[0],
        deployment: Deployment { l1_chain_id: n[1], inbox },
        epoch: n[2],
        encryption_key_hash,
        payer,
        fee_nonce: n[3],
        max_fee,
        priority_fee,
        gas_limit: n[4],
        expiry: n[5],
    })
}

fn envelope() -> impl Strategy<Value = Envelope> {
    let parts = (envelope_header(), bytes::<48>(), any::<[u8; 16]>(), bytes::<48>(), any::<[u8; 32]>());
    (parts, signature(), vec(any::<u8>(), 0..600)).prop_map(|((header, c, d, r, s), fee_signature, e)| {
        Envelope { header, ciphertext: Ciphertext { c, d, e }, proof: Proof { r, s }, fee_signature }
    })
}

fn batch_header() -> impl Strategy<Value = BatchHeader> {
    let hashes = (hash(), hash(), hash(), hash());
    (any::<[u64; 6]>(), hashes, any::<[u32; 2]>(), any::<u128>()).prop_map(|(n, h, c, base_fee)| {
        BatchHeader {
            number: n[0],
            parent_hash: h.0,
            timestamp_ms: n[1],
            l1_origin_number: n[2],
            l1_origin_hash: h.1,
            envelope_root: h.2,
            envelope_count: c[0],
            envelope_bytes: c[1],
            gas: n[3],
            base_fee,
            fee_ledger_root: h.3,
            forced_cursor: n[4],
            epoch: n[5],
        }
    })
}

fn sealed() -> impl Strategy<Value = SealedBatch> {
    let items = vec(vec(any::<u8>(), 0..80), 0..5);
    (batch_header(), signature(), items).prop_map(|(header, signature, items)| SealedBatch {
        header,
        signature,
        items,
    })
}

fn certificate() -> impl Strategy<Value = Certificate> {
    (any::<[u64; 3]>(), hash(), bytes::<48>()).prop_map(|(n, header_hash, signature)| Certificate {
        epoch: n[0],
        number: n[1],
        header_hash,
        signers: n[2],
        signature,
    })
}

fn acknowledgement() -> impl Strategy<Value = Acknowledgement> {
    (any::<[u64; 2]>(), hash(), any::<u16>(), bytes::<48>()).prop_map(
        |(n, header_hash, member, signature)| Acknowledgement {
            epoch: n[0],
            number: n[1],
            header_hash,
            member,
            signature,
        },
    )
}

fn hint_entry() -> impl Strategy<Value = HintEntry> {
    prop_oneof![
        Just(HintEntry::Skipped),
        any::<[u8; 16]>().prop_map(HintEntry::Key),
        bytes::<48>().prop_map(HintEntry::Malformed),
    ]
}

/// What holds of every structure.
fn holds<T: Canonical + PartialEq + Debug>(value: &T, cut: usize, flip: usize) {
    let encoded = value.encode();
    assert_eq!(encoded.first(), Some(&VERSION));
    assert_eq!(&T::decode(&encoded).unwrap(), value);
    assert_eq!(&T::from_hex(&value.to_hex()).unwrap(), value);
    // One byte more, or any number less.
    let longer = [encoded.as_slice(), &[0]].concat();
    assert!(T::decode(&longer).is_err());
    assert!(T::decode(&encoded[..cut % encoded.len()]).is_err());
    // Any change is refused or decodes to what encodes to the changed bytes.
    let mut changed = encoded.clone();
    changed[flip % encoded.len()] ^= 1 << (flip % 8);
    if let Ok(other) = T::decode(&changed) {
        assert_eq!(other.encode(), changed);
        assert_ne!(&other, value);
    }
    let mut versioned = encoded;
    versioned[0] = 2;
    assert_eq!(T::decode(&versioned), Err(DecodeError::Version(2)));
}

fn never_panics<T: Canonical>(bytes: &[u8]) {
    if let Ok(value) = T::decode(bytes) {
        assert_eq!(value.encode(), bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(1), ..Default::default() })]

    #[test]
    fn envelopes(header in envelope_header(), envelope in envelope(), cut: usize, flip: usize) {
        prop_assert_eq!(header.encode().len(), ENVELOPE_HEADER_BYTES);
        prop_assert_eq!(envelope.encode().len(), envelope.encoded_len());
        holds(&header, cut, flip);
        holds(&envelope, cut, flip);
    }

    #[test]
    fn batches(header in batch_header(), sealed in sealed(), certificate in certificate(), cut: usize, flip: usize) {
        prop_assert_eq!(header.encode().len(), BATCH_HEADER_BYTES);
        holds(&header, cut, flip);
        holds(&sealed.signed_header(), cut, flip);
        holds(&sealed, cut, flip);
        holds(&certificate, cut, flip);
        holds(&CertifiedBatch { sealed, certificate }, cut, flip);
    }

    #[test]
    fn messages(promised in (hash(), any::<u64>(), signature()), acknowledgement in acknowledgement(), cut: usize, flip: usize) {
        let (envelope_id, seal_by, signature) = promised;
        holds(&Promise { envelope_id, seal_by, signature }, cut, flip);
        holds(&acknowledgement, cut, flip);
    }

    #[test]
    fn releases(
        number: u64, header_hash in hash(), member: u16, index: u32, share in bytes::<48>(),
        pds in vec(bytes::<48>(), 0..4), entries in vec(hint_entry(), 0..6), cut: usize, flip: usize,
    ) {
        holds(&ReleaseShare { number, header_hash, member, pds: pds.clone() }, cut, flip);
        holds(&Release { number, header_hash, pds }, cut, flip);
        holds(&SingletonShare { number, header_hash, index, member, share }, cut, flip);
        holds(&BatchHints { number, header_hash, entries }, cut, flip);
    }

    #[test]
    fn records(
        balance: u128, withdrawn: u128, nonces in btree_map(any::<u64>(), any::<u64>(), 0..5), n in any::<[u64; 7]>(), hash in hash(), l1_origin_hash in hash(),
        base_fee: u128, bytes: u32, cut: usize, flip: usize,
    ) {
        holds(&Account { balance, withdrawn, nonces }, cut, flip);
        let [number, timestamp_ms, l1_origin, second_gas, second_bytes, forced_cursor, made_at] = n;
        let head =
            Head { number, hash, timestamp_ms, l1_origin, l1_origin_hash, base_fee, bytes, second_gas, second_bytes, forced_cursor, made_at };
        holds(&head, cut, flip);
    }

    #[test]
    fn forced_transactions(gas_limit: u64, transaction in vec(any::<u8>(), 1..200), cut: usize, flip: usize) {
        let forced = ForcedTransaction { gas_limit, transaction };
        let bytes = forced.encode();
        prop_assert_eq!(ForcedTransaction::decode(&bytes), Ok(forced.clone()));
        prop_assert_eq!(ForcedTransaction::from_hex(&forced.to_hex()), Ok(forced));
        // Its last field takes what is left, so a shorter one is another transaction; only the head is needed.
        prop_assert!(ForcedTransaction::decode(&bytes[..cut % 10]).is_err());
        let mut bytes = bytes;
        let at = flip % bytes.len();
        bytes[at] ^= 1;
        never_panics::<ForcedTransaction>(&bytes);
        prop_assert!(Envelope::decode(&bytes).is_err() || at == 0);
    }

    #[test]
    fn arbitrary_bytes_never_panic(tail in vec(any::<u8>(), 0..900), version in prop_oneof![Just(VERSION), any::<u8>()]) {
        let bytes = [&[version], tail.as_slice()].concat();
        never_panics::<EnvelopeHeader>(&bytes);
        never_panics::<Envelope>(&bytes);
        never_panics::<BatchHeader>(&bytes);
        never_panics::<SignedHeader>(&bytes);
        never_panics::<SealedBatch>(&bytes);
        never_panics::<Promise>(&bytes);
        never_panics::<Acknowledgement>(&bytes);
        never_panics::<Certificate>(&bytes);
        never_panics::<CertifiedBatch>(&bytes);
        never_panics::<ReleaseShare>(&bytes);
        never_panics::<Release>(&bytes);
        never_panics::<SingletonShare>(&bytes);
        never_panics::<BatchHints>(&bytes);
        never_panics::<Account>(&bytes);
        never_panics::<Head>(&bytes);
        never_panics::<ForcedTransaction>(&bytes);
    }

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,40}") {
        if let Ok(account) = Account::from_hex(&text) {
            prop_assert_eq!(account.to_hex(), text);
        }
    }
}

#[test]
fn every_refusal() {
    assert_eq!(Promise::decode(&[]), Err(DecodeError::Short { field: "version", needed: 1, left: 0 }));
    assert_eq!(
        Promise::decode(&[1, 0]),
        Err(DecodeError::Short { field: "envelope id", needed: 32, left: 1 })
    );
    assert_eq!(Promise::decode(&[0]), Err(DecodeError::Version(0)));
    assert_eq!(Promise::decode(&[vec![1], vec![0; 106]].concat()), Err(DecodeError::Trailing(1)));

    let hints = |count: u32, rest: &[u8]| [&[1], [0; 40].as_slice(), &count.to_be_bytes(), rest].concat();
    assert_eq!(
        BatchHints::decode(&hints(4_097, &[])),
        Err(DecodeError::TooLarge { field: "hints", got: 4_097, limit: 4_096 })
    );
    assert_eq!(BatchHints::decode(&hints(1, &[3])), Err(DecodeError::UnknownTag { field: "hint", value: 3 }));
    assert_eq!(
        Release::decode(&hints(4_097, &[])),
        Err(DecodeError::TooLarge { field: "sub-batches", got: 4_097, limit: 4_096 })
    );

    let short = |needed, left| DecodeError::Short { field: "forced transaction", needed, left };
    assert_eq!(ForcedTransaction::decode(&[&[2], [0; 8].as_slice()].concat()), Err(short(1, 0)));
    let field = "item type";
    assert_eq!(ForcedTransaction::decode(&[1; 20]), Err(DecodeError::UnknownTag { field, value: 1 }));
    assert!(matches!(ForcedTransaction::decode(&[2; 5]), Err(DecodeError::Short { field: "gas limit", .. })));
    let (field, got, limit) = ("forced transaction", 32_769, 32_768);
    assert_eq!(ForcedTransaction::decode(&[2; 9 + 32_769]), Err(DecodeError::TooLarge { field, got, limit }));
    assert!(ForcedTransaction::decode(&[2; 9 + 32_768]).is_ok());

    let nonces = |pairs: &[[u64; 2]]| {
        let mut bytes = [&[1], [0; 32].as_slice(), &(pairs.len() as u32).to_be_bytes()].concat();
        bytes.extend(pairs.iter().flatten().flat_map(|n| n.to_be_bytes()));
        bytes
    };
    assert!(Account::decode(&nonces(&[[1, 9], [2, 9]])).is_ok());
    let unordered = Err(DecodeError::Unordered { field: "fee nonce" });
    assert_eq!(Account::decode(&nonces(&[[2, 9], [1, 9]])), unordered);
    assert_eq!(Account::decode(&nonces(&[[2, 9], [2, 9]])), unordered);
    let claimed = [&[1], [0; 32].as_slice(), &u32::MAX.to_be_bytes()].concat();
    assert!(matches!(Account::decode(&claimed), Err(DecodeError::TooLarge { .. })));
}

#[test]
fn sealed_batches_are_bounded() {
    let header = common::some_header();
    let prefix = |count: u32| {
        let mut bytes = vec![1];
        bytes.extend(header.encode());
        bytes.extend([0; 65]);
        bytes.extend(count.to_be_bytes());
        bytes
    };
    assert_eq!(
        SealedBatch::decode(&prefix(4_097)),
        Err(DecodeError::TooLarge { field: "items", got: 4_097, limit: 4_096 })
    );
    let long = [prefix(1), 33_135u32.to_be_bytes().to_vec()].concat();
    assert_eq!(
        SealedBatch::decode(&long),
        Err(DecodeError::TooLarge { field: "item", got: 33_135, limit: 33_134 })
    );
    // One byte more than 8 MiB of items.
    let mut heavy = prefix(254);
    for length in std::iter::repeat_n(MAX_ENVELOPE_BYTES, 253).chain([5_707]) {
        heavy.extend((length as u32).to_be_bytes());
        heavy.extend(vec![0; length]);
    }
    assert!(matches!(SealedBatch::decode(&heavy), Err(DecodeError::TooLarge { field: "item bytes", .. })));
    let huge = vec![1; MAX_SEALED_BATCH_BYTES + 1];
    assert!(matches!(SealedBatch::decode(&huge), Err(DecodeError::TooLarge { field: "sealed batch", .. })));
    assert!(matches!(
        Envelope::decode(&vec![1; MAX_ENVELOPE_BYTES + 1]),
        Err(DecodeError::TooLarge { field: "envelope", .. })
    ));
    // A message longer than the largest bucket, within the envelope's bytes.
    let mut claimed = vec![1; 362];
    claimed.extend(32_769u32.to_be_bytes());
    assert_eq!(
        Envelope::decode(&claimed),
        Err(DecodeError::TooLarge { field: "E", got: 32_769, limit: 32_768 })
    );
}

#[test]
fn hexadecimal_is_strict() {
    let account = Account { balance: 0xabcd, ..Account::default() };
    let text = account.to_hex();
    assert_eq!(Account::from_hex(&text), Ok(account));
    let bad = [
        &text[2..],
        &text.to_uppercase(),
        &text.replace('a', "A"),
        &text[..text.len() - 1],
        "0x",
        "",
        "0x0x01",
    ];
    for text in bad {
        assert!(Account::from_hex(text).is_err(), "{text}");
    }
    assert_eq!(Account::from_hex("0xzz"), Err(DecodeError::Hex));
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct InJson {
    #[serde(with = "hex_canonical")]
    plain: Account,
    #[serde(with = "hex_canonical::option", default)]
    maybe: Option<Account>,
    direct: Account,
}

#[test]
fn json_carries_the_hex() {
    let account = Account { balance: 5, ..Account::default() };
    for maybe in [None, Some(account.clone())] {
        let value = InJson { plain: account.clone(), maybe, direct: account.clone() };
        let text = serde_json::to_string(&value).unwrap();
        assert!(text.contains(&format!("\"direct\":\"{}\"", account.to_hex())));
        assert_eq!(serde_json::from_str::<InJson>(&text).unwrap(), value);
    }
    assert!(serde_json::from_str::<Account>("\"0x02\"").is_err());
    assert!(serde_json::from_str::<Account>("5").is_err());
}

#[test]
fn limits_agree_with_encodings() {
    let empty = common::envelope(&common::fields(), &common::signing_key(1), 1);
    assert_eq!(empty.encoded_len() - empty.ciphertext.e.len(), ENVELOPE_OVERHEAD_BYTES);
    assert_eq!(MAX_ENVELOPE_BYTES, 33_134);
    assert_eq!(SIZE_BUCKETS.last(), Some(&MAX_MESSAGE_BYTES));
}

#[test]
fn secrets_do_not_print() {
    assert_eq!(format!("{:?}", HintEntry::Key([9; 16])), "Key(redacted)");
    let key = common::signing_key(9);
    let printed = format!("{key:?}");
    assert!(printed.contains("redacted") && !printed.contains("0909"));
    let bundle = Bundle::of_transactions([vec![0xaa; 3]]);
    assert!(!format!("{bundle:?}").contains("170"));
}
