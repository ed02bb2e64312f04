//! What a sender is told, whatever the sequencer answers.

use std::sync::Arc;

use async_trait::async_trait;
use blindfold_bte::dealer;
use blindfold_client::{CommitteeKeyError, CommitteeSource, WalletEndpoints};
use blindfold_protocol::{
    Bundle, Epochs, SigningKey,
    envelope_builder::{EnvelopeFields, build},
};
use blindfold_rpc::{Encoded, types::TransactionOutcome};
use blindfold_runtime::rng;

use super::*;
use crate::test_chain::chain;

const TRANSACTION: B256 = B256::repeat_byte(9);
const EXPIRY: u64 = 1_077;

struct NoL1;

#[async_trait]
impl CommitteeSource for NoL1 {
    async fn epochs(&self) -> Result<Epochs, CommitteeKeyError> {
        Err(CommitteeKeyError::L1("away".to_owned()))
    }

    async fn encryption_key(&self, _: u64) -> Result<Vec<u8>, CommitteeKeyError> {
        Err(CommitteeKeyError::L1("away".to_owned()))
    }
}

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32]).unwrap()
}

fn prepared() -> Prepared {
    let (parameters, _) = dealer::deal(4, 3, 2, &mut rng()).unwrap();
    let fields = EnvelopeFields {
        chain_id: chain().chain_id,
        deployment: chain().deployment,
        epoch: 1,
        fee_nonce: 5,
        max_fee: 1,
        priority_fee: 0,
        max_gas_fee: 1,
        gas_limit: 21_000,
        expiry: EXPIRY,
        generation: 0,
    };
    let bundle = Bundle::of_transactions([vec![2]]);
    let envelope = build(&parameters.encryption_key(), &fields, &bundle, &key(), &mut rng()).unwrap();
    Prepared { envelope, transactions: vec![TRANSACTION] }
}

#[tokio::test]
async fn whatever_sending_meets_names_the_envelope_and_how_it_goes_again() {
    let nobody = "http://127.0.0.1:1".to_owned();
    let endpoints = WalletEndpoints { node: nobody.clone(), sequencers: nobody.into() };
    let wallet = Wallet::new(chain(), key(), &endpoints, Arc::new(NoL1), None).unwrap();
    let prepared = prepared();
    let (id, expiry) = (prepared.envelope.id().to_string(), format!("batch {EXPIRY}"));
    for (kept, file) in [(None, "the text above"), (Some(Path::new("kept.json")), "kept.json")] {
        let lost = format!("{:#}", hand_over(&wallet, &prepared, false, kept).await.unwrap_err());
        let transaction = TRANSACTION.to_string();
        for part in [&*id, &transaction, "may be executed", &expiry, "send-again", file, "no answer"] {
            assert!(lost.contains(part), "{part} in {lost}");
        }
    }
}

#[test]
fn an_envelope_goes_again_as_it_was_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("envelope.json");
    let prepared = prepared();
    let text = stored(&prepared).unwrap();
    fs::write(&path, &text).unwrap();
    assert_eq!(load(&path).unwrap(), prepared);
    let id = prepared.envelope.id().to_string();
    fs::write(&path, text.replace(&id, &B256::ZERO.to_string())).unwrap();
    assert!(load(&path).unwrap_err().to_string().contains("is damaged"));
    fs::write(&path, "{}").unwrap();
    assert!(load(&path).unwrap_err().to_string().contains("--envelope-file"));
}

#[test]
fn only_a_transaction_in_a_block_is_a_success() {
    let receipt = |state, reason: Option<&str>, transactions: Option<Vec<TransactionOutcome>>| Receipt {
        id: B256::repeat_byte(5),
        state,
        reason: reason.map(str::to_owned),
        number: Some(7),
        index: Some(0),
        header_hash: None,
        block_number: Some(3),
        block_hash: None,
        transactions,
    };
    let inner = |included, reason: Option<&str>| {
        let reason = reason.map(str::to_owned);
        Some(vec![TransactionOutcome { hash: Some(TRANSACTION), included, reason }])
    };
    let ended = |receipt: Receipt| outcome(&receipt, &[TRANSACTION]).map_err(|error| error.to_string());
    let executed = ended(receipt(EnvelopeState::Executed, None, inner(true, None)));
    assert_eq!(executed.as_deref(), Ok("Executed in block 3"));
    for (failed, expected) in [
        (receipt(EnvelopeState::Skipped, Some("invalid_proof"), None), "skipped (invalid_proof)"),
        (receipt(EnvelopeState::Malformed, None, None), "malformed"),
        (receipt(EnvelopeState::Expired, None, None), "expired"),
        (receipt(EnvelopeState::Void, None, None), "void"),
        (
            receipt(EnvelopeState::Executed, None, inner(false, Some("nonce_too_low"))),
            "left out of the block (nonce_too_low)",
        ),
    ] {
        let error = ended(failed).unwrap_err();
        assert!(error.contains(expected) && error.contains("0x0505"), "{error}");
    }
}

#[test]
fn what_was_sent_is_told_though_nothing_became_of_it_in_time() {
    let sent = Sent {
        envelope: B256::repeat_byte(5),
        transactions: vec![TRANSACTION],
        promised_by: Some(77),
        promise: Some(Encoded::from_bytes(vec![1, 2])),
        promise_unchecked: Some("L1 is away".to_owned()),
        bytes: 700,
    };
    assert!(line(&sent).ends_with("promised by batch 77, by whom could not be checked: L1 is away"));
    let output = report(&sent, None);
    assert_eq!(
        (&output["sent"]["promise"], &output["receipt"]),
        (&"0x0102".into(), &serde_json::Value::Null)
    );
    assert_eq!(output["sent"]["envelope"], serde_json::json!(sent.envelope));
}
