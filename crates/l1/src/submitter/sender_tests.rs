use std::sync::{Arc, Mutex};

use alloy_eips::eip2718::Decodable2718;
use serde_json::{Value, json};

use super::*;
use crate::{
    anvil::dev_key,
    error::Recovery,
    test_server::{Answer, block, serve},
};

/// Sends a call to an L1 that answers so when it is given the transaction, and when it is asked for the receipt.
async fn sent(given: Answer, receipt: Answer) -> L1Error {
    let url = serve(move |method, _| match method {
        "eth_estimateGas" => Answer::Result("0x5208".into()),
        "eth_getTransactionCount" => Answer::Result("0x0".into()),
        "eth_maxPriorityFeePerGas" => Answer::Result("0x1".into()),
        "eth_getBlockByNumber" => Answer::Result(block()),
        "eth_sendRawTransaction" => given.clone(),
        "eth_getTransactionReceipt" => receipt.clone(),
        other => panic!("{other} was not expected"),
    });
    let sender = Sender::new(Rpc::new(&url, 3_000).unwrap(), 1, dev_key(0).unwrap(), 10);
    let (name, to, input) = ("force", TxKind::Call(Address::ZERO), Bytes::new());
    let call =
        Call { name, to, value: U256::ZERO, input, blobs: vec![], size_limit_bytes: None, nonce: None };
    sender.send(call).await.unwrap_err()
}

#[tokio::test]
async fn a_transaction_that_l1_was_given_is_named_whatever_went_wrong_then() {
    let hash = Answer::Result(B256::ZERO.to_string().into());
    let none = Answer::Result(Value::Null);
    for (given, receipt) in [
        (Answer::Silence, none.clone()),
        (Answer::Status(502), none.clone()),
        (Answer::Raw("not JSON"), none.clone()),
        (hash.clone(), Answer::Raw("not JSON")),
        (hash, none.clone()),
    ] {
        let error = sent(given, receipt).await;
        assert!(error.may_be_done(), "{error}");
        let (L1Error::Unanswered { transaction, .. } | L1Error::Unconfirmed { transaction, .. }) = &error
        else {
            panic!("{error}");
        };
        assert!(error.to_string().contains(&transaction.to_string()), "{error}");
    }
    let overloaded = sent(Answer::Status(503), none.clone()).await;
    assert_eq!(overloaded.recovery(), Recovery::Retry);
    let refused = Answer::Error { code: -32_000, message: "insufficient funds", data: None };
    assert!(!sent(refused, none).await.may_be_done(), "L1 says that it did not take it");
}

/// A sender that was killed with a transaction with blobs in the node's pool knows nothing of it when it starts again.
#[tokio::test]
async fn a_transaction_with_blobs_of_a_process_that_was_killed_is_replaced() {
    /// The account's nonce in blocks, and the transaction in the pool.
    struct Pool {
        nonce: u64,
        pending: Option<(bool, u128)>,
        mined: Vec<B256>,
        refused: usize,
    }
    let stuck_tip = 3;
    let pool = Pool { nonce: 0, pending: Some((true, stuck_tip)), mined: vec![], refused: 0 };
    let pool = Arc::new(Mutex::new(pool));
    let seen = Arc::clone(&pool);
    let url = serve(move |method, params| {
        let mut pool = seen.lock().unwrap();
        match method {
            "eth_estimateGas" => Answer::Result("0x5208".into()),
            "eth_getTransactionCount" => Answer::Result(format!("{:#x}", pool.nonce).into()),
            "eth_maxPriorityFeePerGas" | "eth_blobBaseFee" => Answer::Result("0x1".into()),
            "eth_getBlockByNumber" => Answer::Result(block()),
            "eth_sendRawTransaction" => {
                let raw: Bytes = serde_json::from_value(params[0].clone()).unwrap();
                let transaction = TxEnvelope::decode_2718(&mut raw.as_ref()).unwrap();
                let with_blobs = transaction.is_eip4844();
                let tip = alloy_consensus::Transaction::max_priority_fee_per_gas(&transaction).unwrap();
                let message = match pool.pending {
                    Some((kind, _)) if kind != with_blobs => "address already reserved",
                    Some((_, before)) if tip < 2 * before => "replacement transaction underpriced",
                    _ => {
                        pool.pending = None;
                        pool.nonce += 1;
                        pool.mined.push(*transaction.tx_hash());
                        return Answer::Result(json!(transaction.tx_hash()));
                    }
                };
                pool.refused += 1;
                Answer::Error { code: -32_000, message, data: None }
            }
            "eth_getTransactionReceipt" => {
                let hash: B256 = serde_json::from_value(params[0].clone()).unwrap();
                assert!(pool.mined.contains(&hash));
                let zero = Address::ZERO;
                Answer::Result(json!({
                    "transactionHash": hash, "transactionIndex": "0x0", "blockHash": B256::ZERO, "blockNumber": "0x2",
                    "cumulativeGasUsed": "0x5208", "gasUsed": "0x5208", "effectiveGasPrice": "0x7", "from": zero, "to": zero,
                    "contractAddress": null, "logs": [], "logsBloom": alloy_primitives::Bloom::ZERO, "type": "0x2",
                    "status": "0x1",
                }))
            }
            other => panic!("{other} was not expected"),
        }
    });
    let sender = Sender::new(Rpc::new(&url, 5_000).unwrap(), 1, dev_key(0).unwrap(), 1_000);
    let force = || {
        let (name, to, input) = ("force", TxKind::Call(Address::ZERO), Bytes::new());
        Call { name, to, value: U256::ZERO, input, blobs: vec![], size_limit_bytes: None, nonce: None }
    };
    // The node does not say what the one in the way offers: each try offers more.
    let error = sender.send(force()).await.unwrap_err();
    assert!(error.to_string().contains("underpriced"), "{error}");
    sender.send(force()).await.unwrap();
    let pool = pool.lock().unwrap();
    assert_eq!(
        (pool.nonce, pool.mined.len(), pool.refused),
        (2, 2, 2),
        "one that does nothing, then the call"
    );
}
