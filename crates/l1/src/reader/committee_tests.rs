#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use super::*;
use crate::{
    config::{L1Config, L1Contracts},
    contracts::BlindedInbox,
    reader::client::L1Client,
    test_server::{Answer, serve},
};
use alloy_primitives::{Address, Bytes, U256, hex};
use alloy_sol_types::{SolCall, SolValue};
use blindfold_bte::bls::SecretKey;
use blindfold_protocol::Deployment;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Rule L-3.
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

/// A registry without epochs on an L1 whose blocks are all final.
#[derive(Default)]
struct Script {
    finalized: u64,
    /// Epoch, block of the announcement, last block before it is due, for silence.
    ending: (u64, u64, u64, bool),
    last_certified_at: u64,
    /// How many calls of contracts it answered.
    calls: usize,
}

fn block(number: u64) -> Value {
    let zero = B256::ZERO;
    json!({
        "number": format!("{number:#x}"), "hash": B256::from(U256::from(number)), "parentHash": zero,
        "sha3Uncles": zero, "miner": Address::ZERO, "stateRoot": zero, "transactionsRoot": zero,
        "receiptsRoot": zero, "logsBloom": alloy_primitives::Bloom::ZERO, "difficulty": "0x0",
        "gasLimit": "0x0", "gasUsed": "0x0", "timestamp": "0x10", "extraData": "0x", "mixHash": zero,
        "nonce": "0x0000000000000000", "baseFeePerGas": "0x7", "withdrawalsRoot": zero, "blobGasUsed": "0x0",
        "excessBlobGas": "0x0", "parentBeaconBlockRoot": zero, "requestsHash": zero, "uncles": [],
        "transactions": [],
    })
}

fn called(script: &mut Script, input: &[u8]) -> Vec<u8> {
    script.calls += 1;
    match input.first_chunk::<4>() {
        Some(&CommitteeRegistry::endingCall::SELECTOR) => script.ending.abi_encode(),
        Some(&BlindedInbox::lastCertifiedAtCall::SELECTOR) => script.last_certified_at.abi_encode(),
        Some(&CommitteeRegistry::firstSequencerCall::SELECTOR) => Address::ZERO.abi_encode(),
        // Revision and counts.
        _ => 0u64.abi_encode(),
    }
}

fn client(script: &Arc<Mutex<Script>>) -> L1Client {
    let shared = Arc::clone(script);
    let url = serve(move |method, params| {
        let mut script = shared.lock();
        Answer::Result(match method {
            "eth_getBlockByNumber" => block(script.finalized),
            "eth_call" => {
                let input = hex::decode(params[0]["input"].as_str().unwrap()).unwrap();
                Bytes::from(called(&mut script, &input)).to_string().into()
            }
            other => panic!("{other} was not expected"),
        })
    });
    let deployment = Deployment { l1_chain_id: 1, inbox: Address::repeat_byte(1) };
    let contracts = L1Contracts {
        registry: Address::repeat_byte(2),
        fee_vault: Address::repeat_byte(8),
        forced_queue: Address::repeat_byte(3),
        hint_registry: Address::repeat_byte(4),
        hint_verifier: Address::repeat_byte(5),
        deposit_portal: Address::repeat_byte(6),
        output_registry: Address::repeat_byte(7),
    };
    let mut config = L1Config::with_contracts(url, deployment, contracts);
    config.poll_interval_ms = 0;
    L1Client::open(config).unwrap()
}

/// Nothing but the announcement tells of it: the registry's count of changes stays as it is.
#[tokio::test]
async fn an_announced_end_is_known_with_the_block_in_which_it_is_final() {
    let script = Arc::new(Mutex::new(Script { finalized: 10, ..Script::default() }));
    let client = client(&script);
    assert_eq!(client.final_end().await.unwrap(), None);
    script.lock().ending = (1, 11, 61, false);
    assert_eq!(client.final_end().await.unwrap(), None, "not final");
    script.lock().finalized = 11;
    let end = AnnouncedEnd { epoch: 1, announced_at: 11, until: 61, for_silence: false };
    assert_eq!(client.final_end().await.unwrap(), Some(end));
    let calls = script.lock().calls;
    assert_eq!(
        (client.final_end().await.unwrap(), client.epoch_records().await.unwrap().len()),
        (Some(end), 0)
    );
    assert_eq!(script.lock().calls, calls, "asked for once in each block");
    *script.lock() = Script { finalized: 12, ..Script::default() };
    assert_eq!(client.final_end().await.unwrap(), None, "taken back");
}

#[tokio::test]
async fn a_committee_that_is_back_takes_the_end_for_its_silence_back() {
    let ending = (1, 10, 60, true);
    let script = Arc::new(Mutex::new(Script { finalized: 12, ending, last_certified_at: 9, calls: 0 }));
    let client = client(&script);
    assert!(client.final_end().await.unwrap().is_some_and(|end| end.for_silence));
    *script.lock() = Script { finalized: 13, ending, last_certified_at: 10, calls: 0 };
    assert_eq!(client.final_end().await.unwrap(), None);
    assert!(client.announced_end().await.unwrap().is_some(), "the contract still has it");
}
