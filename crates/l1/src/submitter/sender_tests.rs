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

/// An L1 that takes everything in its pool into one block when it is asked for a receipt.
#[derive(Default)]
struct Row {
    nonce: u64,
    pool: std::collections::BTreeMap<u64, (B256, u128)>,
    mined: std::collections::HashMap<B256, u64>,
    block: u64,
    /// Of the longest row that was in the pool.
    most: usize,
    /// This nonce is refused.
    refuses: Option<u64>,
    /// So many of an account are kept.
    room: Option<usize>,
    /// From this nonce on nothing comes into a block.
    holds_from: Option<u64>,
}

impl Row {
    fn take(&mut self, params: &Value) -> Answer {
        let raw: Bytes = serde_json::from_value(params[0].clone()).unwrap();
        let transaction = TxEnvelope::decode_2718(&mut raw.as_ref()).unwrap();
        let nonce = alloy_consensus::Transaction::nonce(&transaction);
        let tip = alloy_consensus::Transaction::max_priority_fee_per_gas(&transaction).unwrap();
        let message = match self.pool.get(&nonce) {
            _ if self.refuses == Some(nonce) => "insufficient funds",
            None if self.room.is_some_and(|room| self.pool.len() >= room) => "account limit exceeded",
            Some((_, before)) if tip < 2 * before => "replacement transaction underpriced",
            _ => {
                self.pool.insert(nonce, (*transaction.tx_hash(), tip));
                self.most = self.most.max(self.pool.len());
                return Answer::Result(json!(transaction.tx_hash()));
            }
        };
        Answer::Error { code: -32_000, message, data: None }
    }

    fn receipt(&mut self, params: &Value) -> Answer {
        let hash: B256 = serde_json::from_value(params[0].clone()).unwrap();
        self.block += 1;
        while let Some((transaction, _)) = self.pool.get(&self.nonce).copied()
            && self.holds_from.is_none_or(|from| self.nonce < from)
        {
            self.pool.remove(&self.nonce);
            self.mined.insert(transaction, self.block);
            self.nonce += 1;
        }
        let Some(block) = self.mined.get(&hash) else { return Answer::Result(Value::Null) };
        let zero = Address::ZERO;
        Answer::Result(json!({
            "transactionHash": hash, "transactionIndex": "0x0", "blockHash": B256::ZERO,
            "blockNumber": format!("{block:#x}"), "cumulativeGasUsed": "0x5208", "gasUsed": "0x5208",
            "effectiveGasPrice": "0x7", "from": zero, "to": zero, "contractAddress": null, "logs": [],
            "logsBloom": alloy_primitives::Bloom::ZERO, "type": "0x2", "status": "0x1",
        }))
    }
}

fn row() -> (Sender, Arc<Mutex<Row>>) {
    let row = Arc::new(Mutex::new(Row::default()));
    let seen = Arc::clone(&row);
    let url = serve(move |method, params| {
        let mut row = seen.lock().unwrap();
        match method {
            "eth_estimateGas" => Answer::Result("0x5208".into()),
            "eth_getTransactionCount" => {
                let pending = if params[1] == "pending" { row.pool.len() as u64 } else { 0 };
                Answer::Result(format!("{:#x}", row.nonce + pending).into())
            }
            "eth_maxPriorityFeePerGas" => Answer::Result("0x1".into()),
            "eth_getBlockByNumber" => Answer::Result(block()),
            "eth_sendRawTransaction" => row.take(params),
            "eth_getTransactionReceipt" => row.receipt(params),
            other => panic!("{other} was not expected"),
        }
    });
    (Sender::new(Rpc::new(&url, 5_000).unwrap(), 1, dev_key(0).unwrap(), 500), row)
}

fn calls(count: usize) -> Vec<Call> {
    let call = |number: usize| {
        let (name, to, input) = ("postData", TxKind::Call(Address::ZERO), Bytes::from(vec![number as u8]));
        Call { name, to, value: U256::ZERO, input, blobs: vec![], size_limit_bytes: None, nonce: None }
    };
    (0..count).map(call).collect()
}

#[tokio::test]
async fn calls_that_do_not_need_each_other_come_into_one_block() {
    let (sender, row) = row();
    assert_eq!(sender.send_in_a_row(vec![]).await, Ok(None));
    let sent = sender.send_in_a_row(calls(MAX_IN_FLIGHT + 2)).await.unwrap().unwrap();
    let seen = row.lock().unwrap();
    assert_eq!((seen.nonce, seen.most, seen.pool.len()), (MAX_IN_FLIGHT as u64 + 2, MAX_IN_FLIGHT, 0));
    let blocks: std::collections::BTreeSet<u64> = seen.mined.values().copied().collect();
    assert_eq!((blocks.len(), blocks.last()), (2, Some(&sent.block)));
}

#[tokio::test]
async fn what_is_refused_in_a_row_leaves_those_before_it_and_no_gap() {
    let (sender, row) = row();
    row.lock().unwrap().refuses = Some(2);
    let error = sender.send_in_a_row(calls(4)).await.unwrap_err();
    assert!(error.to_string().contains("insufficient funds"), "{error}");
    assert_eq!(row.lock().unwrap().nonce, 2, "those before it are there, each once");
    row.lock().unwrap().refuses = None;
    sender.send_in_a_row(calls(3)).await.unwrap();
    let seen = row.lock().unwrap();
    assert_eq!((seen.nonce, seen.pool.len()), (5, 0));
}

/// A node that takes only so many of an account, or an account that cannot pay for all at their dearest: the others follow.
#[tokio::test]
async fn what_a_node_has_no_room_for_follows_and_nothing_is_paid_for_twice() {
    let (sender, row) = row();
    row.lock().unwrap().room = Some(2);
    sender.send_in_a_row(calls(5)).await.unwrap();
    let seen = row.lock().unwrap();
    assert_eq!((seen.nonce, seen.most, seen.pool.len()), (5, 2, 0));
}

#[tokio::test]
async fn a_row_that_does_not_come_into_a_block_is_replaced_from_where_it_stands() {
    let (sender, row) = row();
    row.lock().unwrap().holds_from = Some(1);
    let error = sender.send_in_a_row(calls(3)).await.unwrap_err();
    assert!(matches!(error, L1Error::Unconfirmed { .. }), "{error}");
    let before: Vec<u128> = row.lock().unwrap().pool.values().map(|(_, tip)| *tip).collect();
    assert_eq!((row.lock().unwrap().nonce, before.len()), (1, 2));
    row.lock().unwrap().holds_from = None;
    // Another call takes the place of the one that is stuck; what was behind it is in the pool still.
    sender.send_in_a_row(calls(1)).await.unwrap();
    let seen = row.lock().unwrap();
    assert_eq!((seen.nonce, seen.pool.len()), (3, 0));
}
