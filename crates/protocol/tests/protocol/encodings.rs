//! Every structure: decode(encode(x)) = x, one encoding only, no panic on any bytes, every refusal.

use crate::common;
use alloy_primitives::{Address, B256};
use blindfold_bte::{Blinding, Ciphertext, Proof};
use blindfold_protocol::codec::{Canonical, DecodeError, hex_canonical};
use blindfold_protocol::envelope::{ENVELOPE_HEADER_BYTES, EnvelopeHeader};
use blindfold_protocol::header::BATCH_HEADER_BYTES;
use blindfold_protocol::limits::*;
use blindfold_protocol::messages::{DATA_ATTESTATION_BYTES, PROMISE_BYTES};
use blindfold_protocol::*;
use proptest::collection::vec;
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
    let fields = (any::<[u64; 6]>(), address(), hash(), address(), any::<[u128; 3]>(), any::<u8>());
    fields.prop_map(|(n, inbox, encryption_key_hash, payer, fees, flags)| EnvelopeHeader {
        chain_id: n[0],
        deployment: Deployment { l1_chain_id: n[1], inbox },
        epoch: n[2],
        encryption_key_hash,
        payer,
        fee_nonce: n[3],
        max_fee: fees[0],
        priority_fee: fees[1],
        max_gas_fee: fees[2],
        gas_limit: n[4],
        expiry: Expiry::from_u64(n[5]),
        flags,
    })
}

fn envelope() -> impl Strategy<Value = Envelope> {
    let parts = (envelope_header(), bytes::<48>(), any::<[u8; 16]>(), bytes::<48>(), any::<[u8; 32]>());
    (parts, signature(), vec(any::<u8>(), 0..600)).prop_map(|((header, c, d, r, s), fee_signature, e)| {
        Envelope { header, ciphertext: Ciphertext { c, d, e }, proof: Proof { r, s }, fee_signature }
    })
}

fn batch_header() -> impl Strategy<Value = BatchHeader> {
    let hashes = (hash(), hash(), hash(), hash(), hash());
    (any::<[u64; 7]>(), hashes, any::<[u32; 2]>(), any::<[u128; 2]>(), any::<u16>()).prop_map(
        |(n, h, c, fees, rules)| BatchHeader {
            number: n[0],
            parent_hash: h.0,
            timestamp_ms: n[1],
            l1_origin_number: n[2],
            l1_origin_hash: h.1,
            l1_origin_time: n[6],
            envelope_root: h.2,
            data_hash: h.4,
            envelope_count: c[0],
            envelope_bytes: c[1],
            gas: n[3],
            base_fee: fees[0],
            gas_base_fee: fees[1],
            fee_ledger_root: h.3,
            forced_cursor: n[4],
            epoch: n[5],
            rules,
        },
    )
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
    // What the first version of the protocol wrote is refused by name.
    versioned[0] = 1;
    assert_eq!(T::decode(&versioned), Err(DecodeError::Version(1)));
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
    fn messages(promised in (hash(), hash(), any::<u64>(), signature()), acknowledgement in acknowledgement(), kind: u8, cut: usize, flip: usize) {
        let (envelope_id, item_hash, seal_by, signature) = promised;
        let promise = Promise { envelope_id, item_hash, seal_by, signature };
        prop_assert_eq!(promise.encode().len(), PROMISE_BYTES);
        holds(&promise, cut, flip);
        holds(&acknowledgement, cut, flip);
        let Acknowledgement { epoch, number, header_hash, member, signature } = acknowledgement;
        let data = AttestedData { epoch, first_number: number, last_number: seal_by, kind, data_hash: header_hash };
        let attestation = DataAttestation { data, member, signature };
        prop_assert_eq!(attestation.encode().len(), DATA_ATTESTATION_BYTES);
        holds(&attestation, cut, flip);
    }

    #[test]
    fn releases(
        number: u64, header_hash in hash(), member: u16, index: u32, share in bytes::<48>(),
        pds in vec(bytes::<48>(), 0..4), entries in vec(hint_entry(), 0..6), cut: usize, flip: usize,
    ) {
        holds(&ReleaseShare { number, header_hash, member, pds: pds.clone() }, cut, flip);
        holds(&Release { number, header_hash, pds }, cut, flip);
        holds(&SingletonShare { number, header_hash, index, member, share }, cut, flip);
        holds(&BatchHints { number, header_hash, entries, blindings: vec![] }, cut, flip);
    }

    #[test]
    fn records(
        n in any::<[u64; 8]>(), hash in hash(), l1_origin_hash in hash(),
        base_fee: u128, gas_base_fee: u128, second_load_bytes: u64, generation: u16, cut: usize, flip: usize,
    ) {
        let [number, timestamp_ms, l1_origin, second_gas, second_bytes, forced_cursor, made_at, l1_origin_time] = n;
        let head =
            Head { number, hash, timestamp_ms, l1_origin, l1_origin_hash, l1_origin_time, base_fee, gas_base_fee, second_gas, second_bytes, second_load_bytes, forced_cursor, made_at, generation };
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
        never_panics::<Head>(&bytes);
        never_panics::<ForcedTransaction>(&bytes);
    }

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,40}") {
        if let Ok(release) = Release::from_hex(&text) {
            prop_assert_eq!(release.to_hex(), text);
        }
    }
}

/// One for each malformed entry, or none.
#[test]
fn blinding_factors_are_stated_for_all_or_none() {
    let entries = vec![HintEntry::Malformed([1; 48]), HintEntry::Key([2; 16]), HintEntry::Malformed([3; 48])];
    let mut hints = BatchHints { number: 1, header_hash: B256::ZERO, entries, blindings: vec![] };
    let plain = hints.encode();
    assert_eq!(BatchHints::decode(&plain), Ok(hints.clone()));
    hints.blindings = [4, 5].map(|byte| Blinding::from_bytes([byte; 288])).to_vec();
    let encoded = hints.encode();
    assert_eq!(encoded.len(), plain.len() + 2 * 288);
    assert_eq!(BatchHints::decode(&encoded), Ok(hints.clone()));
    for length in (plain.len() + 1..encoded.len()).step_by(13).chain([plain.len() + 288]) {
        let refused = BatchHints::decode(&encoded[..length]);
        assert!(matches!(refused, Err(DecodeError::Short { field: "blinding factor", .. })), "{length}");
    }
    assert_eq!(BatchHints::decode(&[encoded, vec![0]].concat()), Err(DecodeError::Trailing(1)));
    // Where nothing is malformed, nothing can be stated.
    hints.entries = vec![HintEntry::Skipped];
    assert_eq!(BatchHints::decode(&hints.encode()), Err(DecodeError::Trailing(2 * 288)));
    let all = vec![HintEntry::Malformed([1; 48]); 4_096];
    let blindings = vec![Blinding::from_bytes([6; 288]); 4_096];
    let largest = BatchHints { number: 1, header_hash: B256::ZERO, entries: all, blindings };
    assert_eq!(largest.encode().len(), BatchHints::MAX_BYTES);
}

/// Rules EN-1, EN-2.
#[test]
fn every_refusal() {
    assert_eq!(Promise::decode(&[]), Err(DecodeError::Short { field: "version", needed: 1, left: 0 }));
    assert_eq!(
        Promise::decode(&[2, 0]),
        Err(DecodeError::Short { field: "envelope id", needed: 32, left: 1 })
    );
    assert_eq!(Promise::decode(&[0]), Err(DecodeError::Version(0)));
    assert_eq!(Promise::decode(&[vec![2], vec![0; 138]].concat()), Err(DecodeError::Trailing(1)));

    let hints = |count: u32, rest: &[u8]| [&[2], [0; 40].as_slice(), &count.to_be_bytes(), rest].concat();
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
    assert_eq!(ForcedTransaction::decode(&[&[0xff], [0; 8].as_slice()].concat()), Err(short(1, 0)));
    let field = "item type";
    assert_eq!(ForcedTransaction::decode(&[1; 20]), Err(DecodeError::UnknownTag { field, value: 1 }));
    assert!(matches!(
        ForcedTransaction::decode(&[0xff; 5]),
        Err(DecodeError::Short { field: "gas limit", .. })
    ));
    let (field, got, limit) = ("forced transaction", 32_769, 32_768);
    assert_eq!(
        ForcedTransaction::decode(&[0xff; 9 + 32_769]),
        Err(DecodeError::TooLarge { field, got, limit })
    );
    assert!(ForcedTransaction::decode(&[0xff; 9 + 32_768]).is_ok());
}

#[test]
fn sealed_batches_are_bounded() {
    let header = common::some_header();
    let prefix = |count: u32| {
        let mut bytes = vec![2];
        bytes.extend(header.encode());
        bytes.extend([0; 65]);
        bytes.extend(count.to_be_bytes());
        bytes
    };
    assert_eq!(
        SealedBatch::decode(&prefix(4_097)),
        Err(DecodeError::TooLarge { field: "items", got: 4_097, limit: 4_096 })
    );
    let long = [prefix(1), 33_152u32.to_be_bytes().to_vec()].concat();
    assert_eq!(
        SealedBatch::decode(&long),
        Err(DecodeError::TooLarge { field: "item", got: 33_152, limit: 33_151 })
    );
    // One byte more than 7.5 MiB of items.
    let mut heavy = prefix(238);
    for length in std::iter::repeat_n(MAX_ENVELOPE_BYTES, 237).chain([7_534]) {
        heavy.extend((length as u32).to_be_bytes());
        heavy.extend(vec![0; length]);
    }
    assert!(matches!(SealedBatch::decode(&heavy), Err(DecodeError::TooLarge { field: "item bytes", .. })));
    let huge = vec![2; MAX_SEALED_BATCH_BYTES + 1];
    assert!(matches!(SealedBatch::decode(&huge), Err(DecodeError::TooLarge { field: "sealed batch", .. })));
    assert!(matches!(
        Envelope::decode(&vec![2; MAX_ENVELOPE_BYTES + 1]),
        Err(DecodeError::TooLarge { field: "envelope", .. })
    ));
    // A message longer than the largest bucket, within the envelope's bytes.
    let mut claimed = vec![2; 379];
    claimed.extend(32_769u32.to_be_bytes());
    assert_eq!(
        Envelope::decode(&claimed),
        Err(DecodeError::TooLarge { field: "E", got: 32_769, limit: 32_768 })
    );
}

#[test]
fn hexadecimal_is_strict() {
    let release = Release { number: 0xabcd, header_hash: B256::ZERO, pds: vec![[7; 48]] };
    let text = release.to_hex();
    assert_eq!(Release::from_hex(&text), Ok(release));
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
        assert!(Release::from_hex(text).is_err(), "{text}");
    }
    assert_eq!(Release::from_hex("0xzz"), Err(DecodeError::Hex));
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct InJson {
    #[serde(with = "hex_canonical")]
    plain: Release,
    #[serde(with = "hex_canonical::option", default)]
    maybe: Option<Release>,
    direct: Release,
}

/// Rule EN-3.
#[test]
fn json_carries_the_hex() {
    let release = Release { number: 5, header_hash: B256::ZERO, pds: vec![[7; 48]] };
    for maybe in [None, Some(release.clone())] {
        let value = InJson { plain: release.clone(), maybe, direct: release.clone() };
        let text = serde_json::to_string(&value).unwrap();
        assert!(text.contains(&format!("\"direct\":\"{}\"", release.to_hex())));
        assert_eq!(serde_json::from_str::<InJson>(&text).unwrap(), value);
    }
    assert!(serde_json::from_str::<Release>("\"0x01\"").is_err());
    assert!(serde_json::from_str::<Release>("5").is_err());
}

#[test]
fn limits_agree_with_encodings() {
    let empty = common::envelope(&common::fields(), &common::signing_key(1), 1);
    assert_eq!(empty.encoded_len() - empty.ciphertext.e.len(), ENVELOPE_OVERHEAD_BYTES);
    assert_eq!(MAX_ENVELOPE_BYTES, 33_151);
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
