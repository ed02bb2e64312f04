//! The static half of the skip rule.

use crate::common::CHAIN_ID;
use alloy_consensus::transaction::{SignableTransaction, TxEip4844};
use alloy_consensus::{TxEip1559, TxEip2930, TxEip7702, TxEnvelope, TxLegacy};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};
use blindfold_protocol::bundle::{Bundle, BundleError, BundleItem};
use blindfold_protocol::skip::{StaticSkip, candidates};
use proptest::collection::vec;
use proptest::prelude::*;

fn signature() -> Signature {
    Signature::new(U256::from(3), U256::from(4), true)
}

fn raw<T: SignableTransaction<Signature>>(transaction: T) -> Vec<u8>
where
    TxEnvelope: From<alloy_consensus::Signed<T>>,
{
    TxEnvelope::from(transaction.into_signed(signature())).encoded_2718()
}

fn legacy(chain_id: Option<u64>, gas_limit: u64) -> Vec<u8> {
    raw(TxLegacy { chain_id, gas_limit, gas_price: 7, to: TxKind::Call(Address::ZERO), ..Default::default() })
}

fn dynamic(chain_id: u64, gas_limit: u64) -> Vec<u8> {
    raw(TxEip1559 { chain_id, gas_limit, max_fee_per_gas: 9, input: vec![1; 5].into(), ..Default::default() })
}

fn judge(gas_limit: u64, items: Vec<BundleItem>) -> Vec<Result<Bytes, StaticSkip>> {
    let message = Bundle { items }.encode_padded().unwrap();
    let judged = candidates(CHAIN_ID, gas_limit, &message).unwrap();
    for (place, candidate) in judged.iter().enumerate() {
        assert_eq!(usize::from(candidate.index), place);
    }
    judged.into_iter().map(|candidate| candidate.outcome).collect()
}

fn one(bytes: Vec<u8>) -> Result<Bytes, StaticSkip> {
    judge(100_000, vec![BundleItem::transaction(bytes)]).remove(0)
}

#[test]
fn allowed_types_pass_unchanged() {
    let allowed = [
        legacy(Some(CHAIN_ID), 21_000),
        raw(TxEip2930 { chain_id: CHAIN_ID, gas_limit: 21_000, ..Default::default() }),
        dynamic(CHAIN_ID, 21_000),
        raw(TxEip7702 { chain_id: CHAIN_ID, gas_limit: 21_000, ..Default::default() }),
    ];
    assert_eq!(allowed.each_ref().map(|bytes| bytes[0].min(0xc0)), [0xc0, 1, 2, 4]);
    for bytes in allowed {
        assert_eq!(one(bytes.clone()), Ok(bytes.into()));
    }
}

/// Rule X-5.
#[test]
fn every_skip() {
    for kind in [2, 3, 255] {
        let items = vec![BundleItem { kind, bytes: dynamic(CHAIN_ID, 21_000) }];
        assert_eq!(judge(100_000, items), [Err(StaticSkip::ReservedKind)]);
    }
    // Whatever the bytes are: another machine judges them.
    for bytes in [vec![], vec![0xff], dynamic(CHAIN_ID, 21_000)] {
        assert_eq!(judge(100_000, vec![BundleItem::confidential(bytes)]), [Err(StaticSkip::Confidential)]);
    }

    let good = dynamic(CHAIN_ID, 21_000);
    for bytes in [vec![], vec![0x80], vec![0xbf, 1], vec![0xc0], vec![2], good[..good.len() - 1].to_vec()] {
        assert_eq!(one(bytes), Err(StaticSkip::Undecodable));
    }
    assert_eq!(one([good.as_slice(), &[0]].concat()), Err(StaticSkip::Undecodable), "trailing byte");
    // The network's wrapping of a typed transaction as an RLP string.
    let wrapped = [&[0xb8, good.len() as u8], good.as_slice()].concat();
    assert_eq!(one(wrapped), Err(StaticSkip::Undecodable));

    let blob = raw(TxEip4844 {
        chain_id: CHAIN_ID,
        gas_limit: 21_000,
        blob_versioned_hashes: vec![B256::repeat_byte(1)],
        ..Default::default()
    });
    assert_eq!(blob[0], 3);
    for bytes in [blob, vec![0x7e, 0xc0], vec![0x00], vec![0x05], vec![0x7f]] {
        assert_eq!(one(bytes), Err(StaticSkip::TypeNotAllowed));
    }

    assert_eq!(one(legacy(None, 21_000)), Err(StaticSkip::Unprotected));
    assert_eq!(one(legacy(Some(1), 21_000)), Err(StaticSkip::WrongChainId));
    assert_eq!(one(dynamic(CHAIN_ID + 1, 21_000)), Err(StaticSkip::WrongChainId));
    assert_eq!(one(dynamic(CHAIN_ID, 100_001)), Err(StaticSkip::GasAboveRemaining));
    assert!(one(dynamic(CHAIN_ID, 100_000)).is_ok());
    let names = StaticSkip::ALL.map(StaticSkip::as_str);
    let expected = [
        "reserved_kind",
        "confidential",
        "undecodable",
        "type_not_allowed",
        "unprotected",
        "wrong_chain_id",
        "gas_above_remaining",
    ];
    assert_eq!(names, expected);
    assert_eq!(StaticSkip::Unprotected.to_string(), "unprotected");
}

#[test]
fn remaining_gas_falls_by_what_is_kept() {
    let items = [60_000, 50_000, 40_000, 1, 0].map(|gas| BundleItem::transaction(dynamic(CHAIN_ID, gas)));
    let kept: Vec<_> = judge(100_000, items.into()).iter().map(Result::is_ok).collect();
    assert_eq!(kept, [true, false, true, false, true]);
    let skipped = vec![
        BundleItem::transaction(dynamic(1, 100_000)),
        BundleItem::transaction(dynamic(CHAIN_ID, 100_000)),
    ];
    assert_eq!(judge(100_000, skipped)[0], Err(StaticSkip::WrongChainId));
    assert!(judge(0, vec![]).is_empty());
}

/// Rule X-5.
#[test]
fn a_bad_bundle_skips_all() {
    assert_eq!(candidates(CHAIN_ID, 1, &[0; 256]), Err(BundleError::Version(0)));
    assert_eq!(candidates(CHAIN_ID, 1, &[1; 255]), Err(BundleError::BadLength(255)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(4), ..Default::default() })]

    #[test]
    fn arbitrary_items_never_panic(items in vec((0u8..3, vec(any::<u8>(), 0..40)), 0..6)) {
        let items = items.into_iter().map(|(kind, bytes)| BundleItem { kind, bytes }).collect();
        judge(100_000, items);
    }

    #[test]
    fn changed_transactions_never_panic(at: usize, bit in 0u8..8, cut: usize) {
        for mut bytes in [legacy(Some(CHAIN_ID), 5), dynamic(CHAIN_ID, 5)] {
            let _ = one(bytes[..cut % bytes.len()].to_vec());
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            if let Ok(kept) = one(bytes.clone()) {
                prop_assert_eq!(kept.as_ref(), bytes.as_slice());
            }
        }
    }
}

/// Rule FI-4.
#[test]
fn a_forced_transaction_is_judged_like_the_only_item_of_a_bundle() {
    let forced = |gas_limit, transaction| blindfold_protocol::ForcedTransaction { gas_limit, transaction };
    let judge = |forced: blindfold_protocol::ForcedTransaction| {
        blindfold_protocol::skip::forced_candidate(CHAIN_ID, &forced).outcome
    };
    let good = dynamic(CHAIN_ID, 50_000);
    assert_eq!(judge(forced(50_000, good.clone())), Ok(Bytes::from(good.clone())));
    assert_eq!(judge(forced(49_999, good)), Err(StaticSkip::GasAboveRemaining));
    assert_eq!(judge(forced(50_000, dynamic(CHAIN_ID + 1, 50_000))), Err(StaticSkip::WrongChainId));
    assert_eq!(judge(forced(50_000, legacy(None, 21_000))), Err(StaticSkip::Unprotected));
    assert_eq!(judge(forced(50_000, vec![0x7e, 1])), Err(StaticSkip::TypeNotAllowed));
    assert_eq!(judge(forced(50_000, vec![0xf8, 1])), Err(StaticSkip::Undecodable));
}
