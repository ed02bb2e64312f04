//! Room is reserved at sealing: no transaction of a certified item is skipped for want of a block's gas or bytes, nor of its
//! envelope's gas, when the bundle asks for no more than its envelope.

use crate::common::*;
use alloy_consensus::transaction::SignableTransaction;
use alloy_consensus::{Transaction, TxEip1559, TxEip2930, TxEnvelope, TxLegacy};
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_primitives::{Signature, TxKind, U256};
use blindfold_protocol::bundle::BundleItem;
use blindfold_protocol::limits::*;
use blindfold_protocol::skip::{candidates, forced_candidate};
use blindfold_protocol::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// What the execution client counts for a transaction in a block beside its own bytes, at most.
const TRANSACTION_PREFIX_BYTES: usize = 4;

fn transaction(sort: u8, gas_limit: u64, data: usize) -> Vec<u8> {
    let signature = Signature::new(U256::from(3), U256::from(4), true);
    let (chain_id, input) = (CHAIN_ID, vec![0xda; data].into());
    let signed: TxEnvelope = match sort % 3 {
        0 => {
            let to = TxKind::Call(Default::default());
            let chain_id = Some(chain_id);
            TxLegacy { chain_id, gas_limit, to, input, ..Default::default() }.into_signed(signature).into()
        }
        1 => TxEip2930 { chain_id, gas_limit, input, ..Default::default() }.into_signed(signature).into(),
        _ => TxEip1559 { chain_id, gas_limit, input, ..Default::default() }.into_signed(signature).into(),
    };
    signed.encoded_2718()
}

fn gas_of(raw: &[u8]) -> u64 {
    TxEnvelope::decode_2718(&mut &*raw).unwrap().gas_limit()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(12), ..Default::default() })]

    /// what is kept of an envelope fits the gas that its header counted and the bytes that it paid for. When
    /// the limits of all its transactions fit, none is skipped for its gas.
    #[test]
    fn a_bundle_takes_no_more_than_its_envelope_reserved(
        parts in vec((any::<u8>(), 21_000u64..3_000_000, 0usize..700, 0u8..8), 0..30), short in prop::option::of(0u64..2_000_000),
    ) {
        // One in eight items is no transaction for the block.
        let items: Vec<BundleItem> = parts.iter().map(|(sort, gas, data, odd)| match odd {
            0 => BundleItem { kind: sort % 5 + 1, bytes: vec![*sort; *data] },
            _ => BundleItem::transaction(transaction(*sort, *gas, *data)),
        }).collect();
        let asked: u64 = parts.iter().filter(|part| part.3 != 0).map(|part| part.1).sum();
        let gas_limit = asked.saturating_sub(short.unwrap_or(0));
        let message = Bundle { items }.encode_padded().unwrap();
        let judged = candidates(CHAIN_ID, gas_limit, &message).unwrap();
        let kept: Vec<&Bytes> = judged.iter().filter_map(|candidate| candidate.outcome.as_ref().ok()).collect();
        let kept_gas: u64 = kept.iter().map(|raw| gas_of(raw)).sum();
        prop_assert!(kept_gas <= gas_limit);
        let in_block: usize = kept.iter().map(|raw| raw.len() + TRANSACTION_PREFIX_BYTES).sum();
        prop_assert!(in_block < message.len());
        prop_assert!(in_block + ENVELOPE_OVERHEAD_BYTES < message.len() + ENVELOPE_OVERHEAD_BYTES);
        if short.is_none() {
            let refused = judged.iter().filter(|candidate| candidate.outcome == Err(StaticSkip::GasAboveRemaining));
            prop_assert_eq!(refused.count(), 0);
            prop_assert_eq!(kept_gas, asked);
        }
    }

    /// The same of a forced transaction.
    #[test]
    fn a_forced_transaction_takes_no_more_than_its_item(sort: u8, gas in MIN_FORCED_GAS..=MAX_FORCED_GAS, data in 0usize..32_000, more in 0u64..2) {
        let transaction = transaction(sort, gas, data);
        let forced = ForcedTransaction { gas_limit: gas - more, transaction };
        let outcome = forced_candidate(CHAIN_ID, &forced).outcome;
        prop_assert_eq!(outcome.is_ok(), more == 0);
        prop_assert!(forced.transaction.len() + TRANSACTION_PREFIX_BYTES < forced.encode().len());
    }

    /// however batches are cut and whoever seals or checks them, the items of a second ask for no more gas and
    /// hold no more bytes than a block has for them.
    #[test]
    fn no_second_asks_for_more_than_its_block_has(
        batches in vec((vec((1u8..10, 0u64..120_000_000, any::<bool>()), 0..5), 1u64..700, 0u32..8), 1..14),
    ) {
        let accounts = (1..10).map(|i| (signing_key(i).address(), Account { balance: 1 << 100, ..Account::default() }));
        let mut state = ChainState::from_parts(config(), Head::genesis(&config()), FeeLedger::from_parts(accounts, [], []));
        let (mut time, mut nonce) = (2_000_000, 0);
        let (mut open, mut gas, mut bytes) = (0, 0, 0);
        for (envelopes, step, garbage) in batches {
            time += step;
            let mut items: Vec<CheckedItem> = Vec::new();
            for (payer, gas_limit, good) in envelopes {
                nonce += 1;
                items.push(reserving(payer, nonce, gas_limit, good));
            }
            items.extend((0..garbage).map(|_| heavy()));
            // A batch that would break the sums is refused as a whole, and nothing changes.
            let before = state.clone();
            match state.seal(time, &items, &raw(&items), 0, &epoch(), &quiet(101)) {
                Ok((header, _)) => {
                    if header.second() != open {
                        (open, gas, bytes) = (header.second(), 0, 0);
                    }
                    gas += header.gas;
                    bytes += u64::from(header.envelope_bytes);
                }
                Err(SealError::SecondGas { .. } | SealError::SecondBytes { .. }) => prop_assert_eq!(&state, &before),
                Err(fault) => return Err(TestCaseError::fail(fault.to_string())),
            }
            prop_assert!(gas + RESERVED_BLOCK_GAS + RESERVED_DEPOSIT_GAS <= config().block_gas_limit);
            prop_assert!(bytes + RESERVED_BLOCK_BYTES <= MAX_BLOCK_BYTES);
        }
    }
}

/// An item by itself valid, or with a fault, that reserves this much gas.
fn reserving(payer: u8, nonce: u64, gas_limit: u64, good: bool) -> CheckedItem {
    let fields = envelope_builder::EnvelopeFields {
        fee_nonce: nonce,
        gas_limit,
        max_fee: u128::from(u64::MAX),
        max_gas_fee: u128::from(u64::MAX),
        ..fields()
    };
    let mut made = envelope(&fields, &signing_key(payer), nonce);
    if !good {
        made.fee_signature.0[5] ^= 1;
    }
    checked_envelopes(&[made]).remove(0)
}

/// Eight of these are more than a second has room for with seven.
fn heavy() -> CheckedItem {
    let item_bytes = MAX_ENVELOPE_BYTES as u32;
    let (fault, id, item_hash) = (EnvelopeError::Undecodable, B256::ZERO, B256::ZERO);
    Err(RejectedItem { fault, id, item_bytes, item_hash, expiry: None, gas_limit: 0 })
}

/// What the gas kept for L1 deposits buys: at 21,000 gas for each and 40 for a byte of its data, with no more than 200 bytes
/// around it in a block. Beside it the block's header, below 2 KiB.
#[test]
fn what_is_kept_free_holds_the_deposits() {
    let data = RESERVED_DEPOSIT_GAS / 40;
    let frames = RESERVED_DEPOSIT_GAS / 21_000 * 200;
    assert!(2_048 + data + frames <= RESERVED_BLOCK_BYTES);
    assert_eq!(MAX_SECOND_BYTES, 7_864_320);
}
