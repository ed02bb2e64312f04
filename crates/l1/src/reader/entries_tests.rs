#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::atomic::{AtomicUsize, Ordering};

use alloy_primitives::Address;
use blindfold_protocol::{DecodeError, Deployment, limits::VERSION};
use serde_json::{Value, json};

use super::*;
use crate::{
    config::{L1Config, L1Contracts},
    test_header::plain_header,
    test_server::{Answer, block, serve},
};

/// A block as L1 has them since blobs.
fn today(number: u64) -> Value {
    let mut today = block();
    let zero = json!(B256::ZERO);
    for (field, value) in [
        ("number", json!(format!("{number:#x}"))),
        ("hash", json!(B256::left_padding_from(&number.to_be_bytes()))),
        ("withdrawalsRoot", zero.clone()),
        ("blobGasUsed", json!("0x0")),
        ("excessBlobGas", json!("0x0")),
        ("parentBeaconBlockRoot", zero),
    ] {
        today[field] = value;
    }
    today
}

/// A reader of an L1 whose tenth block is final, that has this as the first block, and gives this for logs.
fn reader(start_block: u64, first: Value, logs: impl Fn() -> Answer + Send + Sync + 'static) -> L1Client {
    let url = serve(move |method, params| match method {
        "eth_getBlockByNumber" if params[0] == "finalized" => Answer::Result(today(10)),
        "eth_getBlockByNumber" => Answer::Result(first.clone()),
        "eth_getLogs" => logs(),
        other => panic!("{other} was not expected"),
    });
    let deployment = Deployment { l1_chain_id: 1, inbox: Address::repeat_byte(1) };
    let contracts = L1Contracts {
        registry: Address::repeat_byte(2),
        fee_vault: Address::repeat_byte(3),
        forced_queue: Address::repeat_byte(4),
        hint_registry: Address::repeat_byte(5),
        hint_verifier: Address::repeat_byte(6),
        deposit_portal: Address::repeat_byte(7),
        output_registry: Address::repeat_byte(8),
    };
    let config = L1Config::with_contracts(url, deployment, contracts);
    L1Client::open(L1Config { start_block, ..config }).unwrap()
}

/// Whoever posts data chooses the block that the hints are said to be in: one from before blobs, or one whose history the
/// server dropped. That stops nobody.
#[tokio::test]
async fn hints_in_a_block_that_l1_cannot_show_are_none() {
    let named = HintsReference { id: 7, l1_block: 1 };
    let nothing = Answer::Result(json!([]));
    let pruned = Answer::Error { code: 4444, message: "pruned history unavailable", data: None };
    for start_block in [0, 5] {
        for (first, logs) in
            [(block(), &nothing), (block(), &pruned), (today(1), &nothing), (today(1), &pruned)]
        {
            let logs = logs.clone();
            let found = reader(start_block, first, move || logs.clone()).hints_at(named, 10).await;
            assert!(matches!(found, Ok(None)), "{found:?}");
        }
    }
    // A server that has trouble says nothing of them.
    let busy = || Answer::Error { code: -32603, message: "internal error", data: None };
    let fault = reader(0, today(1), busy).hints_at(named, 10).await.unwrap_err();
    assert!(fault.is_transient(), "{fault:?}");
    let later = HintsReference { l1_block: 11, ..named };
    for none in [HintsReference { l1_block: 5, ..named }, later] {
        let found = reader(5, today(1), busy).hints_at(none, 10).await;
        assert!(matches!(found, Ok(None)), "{found:?}");
    }
}

/// Data of kind 2 that names these hints, with this behind them.
fn naming(hints: HintsReference, rest: &[u8]) -> Vec<u8> {
    let mut data = vec![VERSION, KIND_OPENED];
    for number in [hints.id, hints.l1_block, 1] {
        data.extend_from_slice(&number.to_be_bytes());
    }
    data.extend_from_slice(rest);
    data
}

/// A final block without them has none for good; of one that is not final the next answer may differ.
#[tokio::test]
async fn hints_that_are_not_there_are_asked_for_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&asked);
    let client = reader(0, today(1), move || {
        counts.fetch_add(1, Ordering::SeqCst);
        Answer::Result(json!([]))
    });
    let named = HintsReference { id: 7, l1_block: 1 };
    for _ in 0..2 {
        assert!(matches!(client.hints_at(named, 10).await, Ok(None)));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
    // Then the data is not even decompressed: these bytes are no frame.
    let data = naming(named, &[0, 0, 0, 9, 1, 2, 3]);
    let read = client.entries(1, 10, &data, &[plain_header(1)], &OwnBatches::new()).await.unwrap();
    assert_eq!(read.unwrap_err(), DataError::Hints(7));
    let newer = HintsReference { l1_block: 11, ..named };
    for times in [2, 3] {
        assert!(matches!(client.hints_at(newer, 12).await, Ok(None)));
        assert_eq!(asked.load(Ordering::SeqCst), times);
    }
}

#[tokio::test]
async fn data_that_does_not_decode_is_remembered() {
    let client = reader(0, today(1), || Answer::Result(json!([])));
    let data = naming(HintsReference { id: 7, l1_block: 1 }, &[0, 0, 0, 9, 1, 2, 3]);
    let fault = DecodeError::Compressed;
    for known in [None, Some(Useless::Undecodable(fault))] {
        assert_eq!(client.inner.compared.useless(1, &keccak256(&data)), known);
        let read = client.entries(1, 10, &data, &[plain_header(1)], &OwnBatches::new()).await.unwrap();
        assert_eq!(read.unwrap_err(), DataError::from(fault));
    }
}
