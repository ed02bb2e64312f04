use std::sync::{Arc, Mutex};

use alloy_consensus::TxEnvelope;
use alloy_eips::{eip2718::Decodable2718, eip4844::Blob};
use serde_json::{Value, json};

use super::*;
use crate::{
    anvil::dev_key,
    config::DEFAULT_MAX_TRANSACTION_FEE_WEI,
    error::Recovery,
    posting::place::LayerName,
    test_server::{Answer, block, serve},
};

fn sender(url: &str, confirmation_timeout_ms: u64) -> Sender {
    let (rpc, key) = (Rpc::new(url, 5_000).unwrap(), dev_key(0).unwrap());
    Sender::new(rpc, 1, key, confirmation_timeout_ms, DEFAULT_MAX_TRANSACTION_FEE_WEI)
}

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
    let sender = sender(&url, 10);
    let (name, to, input) = ("force", TxKind::Call(Address::ZERO), Bytes::new());
    let call = Call {
        name,
        to,
        value: U256::ZERO,
        input,
        blobs: vec![],
        size_limit_bytes: None,
        nonce: None,
        data: None,
    };
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
    let sender = sender(&url, 1_000);
    let force = || {
        let (name, to, input) = ("force", TxKind::Call(Address::ZERO), Bytes::new());
        Call {
            name,
            to,
            value: U256::ZERO,
            input,
            blobs: vec![],
            size_limit_bytes: None,
            nonce: None,
            data: None,
        }
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

/// Each client has words of its own for what is in the way.
#[tokio::test]
async fn what_nethermind_says_is_in_the_way_is_outbid_or_cleared() {
    for (client, code, message, is_other_kind) in [
        ("Geth and Reth", -32_000, "address already reserved", true),
        ("Nethermind", -32_010, "pending transaction type conflict", true),
        ("Nethermind before", -32_010, "PendingTxsOfConflictingType", true),
        ("Erigon", -32_000, "INTERNAL_ERROR: can't replace blob-txn with a non-blob-txn", true),
        ("Geth", -32_000, "replacement transaction underpriced: new tx gas tip cap 1 <= 1 queued", false),
        ("Geth", -32_000, "transaction gas price below minimum: gas tip cap 1, minimum needed 2", false),
        ("Reth", -32_000, "replacement transaction underpriced", false),
        ("Nethermind", -32_010, "replacement transaction underpriced", false),
        ("Nethermind before", -32_010, "ReplacementNotAllowed", false),
        ("Nethermind before", -32_010, "FeeTooLowToCompete, Fee is 15", false),
        ("Besu", -32_000, "Replacement transaction underpriced", false),
        ("Besu", -32_009, "Gas price below configured minimum gas price", false),
        ("Erigon", -32_000, "INTERNAL_ERROR: could not replace existing tx", false),
        ("Erigon", -32_000, "FEE_TOO_LOW: fee too low", false),
    ] {
        let given = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&given);
        let url = serve(move |method, params| match method {
            "eth_estimateGas" => Answer::Result("0x5208".into()),
            "eth_getTransactionCount" => Answer::Result("0x0".into()),
            "eth_maxPriorityFeePerGas" | "eth_blobBaseFee" => Answer::Result("0x1".into()),
            "eth_getBlockByNumber" => Answer::Result(block()),
            "eth_sendRawTransaction" => {
                let raw: Bytes = serde_json::from_value(params[0].clone()).unwrap();
                let transaction = TxEnvelope::decode_2718(&mut raw.as_ref()).unwrap();
                let tip = alloy_consensus::Transaction::max_priority_fee_per_gas(&transaction).unwrap();
                seen.lock().unwrap().push((transaction.is_eip4844(), tip));
                Answer::Error { code, message, data: None }
            }
            other => panic!("{other} was not expected"),
        });
        let sender = sender(&url, 10);
        for _ in 0..2 {
            let error = sender.send(call_of_nothing()).await.unwrap_err();
            assert!(error.to_string().contains(message), "{client}: {error}");
        }
        let given = given.lock().unwrap();
        if is_other_kind {
            assert!(
                given.iter().any(|(with_blobs, _)| *with_blobs),
                "{client}, {message}: nothing is cleared"
            );
        } else {
            assert!(given[1].1 > given[0].1, "{client}, {message}: {given:?}");
        }
    }
}

/// A transaction in the pool.
#[derive(Clone, Copy)]
struct Pooled {
    hash: B256,
    max_fee: u128,
    tip: u128,
    blob_fee: Option<u128>,
    blobs: usize,
}

/// An L1 that takes everything in its pool into one block when it is asked for a receipt.
#[derive(Default)]
struct Row {
    nonce: u64,
    pool: std::collections::BTreeMap<u64, Pooled>,
    /// With the nonce and the block that each is in.
    mined: std::collections::HashMap<B256, (u64, u64, Option<Pooled>)>,
    block: u64,
    /// Of the longest row that was in the pool.
    most: usize,
    /// This nonce is refused.
    refuses: Option<u64>,
    /// So many of an account are kept.
    room: Option<usize>,
    /// From this nonce on nothing comes into a block.
    holds_from: Option<u64>,
    /// These come into no block.
    too_cheap: std::collections::HashSet<B256>,
    /// How often a transaction of the other kind was refused.
    mixed: usize,
    /// The usual tip, in wei; 0 is 1.
    tip: u128,
    /// It takes none with blobs.
    refuses_blobs: bool,
}

impl Row {
    fn take(&mut self, params: &Value) -> Answer {
        use alloy_consensus::Transaction as _;
        let raw: Bytes = serde_json::from_value(params[0].clone()).unwrap();
        let transaction = TxEnvelope::decode_2718(&mut raw.as_ref()).unwrap();
        let nonce = transaction.nonce();
        let new = Pooled {
            hash: *transaction.tx_hash(),
            max_fee: transaction.max_fee_per_gas(),
            tip: transaction.max_priority_fee_per_gas().unwrap(),
            blob_fee: transaction.max_fee_per_blob_gas(),
            blobs: transaction.blob_versioned_hashes().map_or(0, <[B256]>::len),
        };
        // The rules of Geth's two pools.
        let is_mixed = self.pool.values().any(|before| before.blob_fee.is_some() != new.blob_fee.is_some());
        let percent = if new.blob_fee.is_some() { 200 } else { 110 };
        let replaces = |new: u128, before: u128| new * 100 >= before * percent;
        let next = self.nonce + self.pool.len() as u64;
        let message = match self.pool.get(&nonce) {
            _ if self.refuses_blobs && new.blobs > 0 => "transaction type not supported",
            _ if self.refuses == Some(nonce) => "insufficient funds",
            _ if is_mixed => {
                self.mixed += 1;
                "address already reserved"
            }
            _ if nonce < self.nonce => "nonce too low",
            None if new.blobs > 0 && nonce > next => "nonce too high",
            None if self.room.is_some_and(|room| self.pool.len() >= room) => "account limit exceeded",
            Some(before)
                if !(replaces(new.tip, before.tip)
                    && replaces(new.max_fee, before.max_fee)
                    && before.blob_fee.is_none_or(|fee| replaces(new.blob_fee.unwrap(), fee))) =>
            {
                "replacement transaction underpriced"
            }
            _ => {
                self.pool.insert(nonce, new);
                self.most = self.most.max(self.pool.len());
                return Answer::Result(json!(new.hash));
            }
        };
        Answer::Error { code: -32_000, message, data: None }
    }

    /// L1 takes its newest block back: what was in it waits again.
    fn take_back(&mut self) {
        let newest = self.block;
        let back: Vec<_> = self.mined.extract_if(|_, (_, block, _)| *block == newest).collect();
        for (_, (nonce, _, pooled)) in back {
            self.nonce = self.nonce.min(nonce);
            self.pool.insert(nonce, pooled.unwrap());
        }
        self.block -= 1;
    }

    fn receipt(&mut self, params: &Value) -> Answer {
        let hash: B256 = serde_json::from_value(params[0].clone()).unwrap();
        let mut fresh = self.block + 1;
        while let Some(pooled) = self.pool.get(&self.nonce).copied()
            && self.holds_from.is_none_or(|from| self.nonce < from)
            && !self.too_cheap.contains(&pooled.hash)
        {
            self.pool.remove(&self.nonce);
            self.mined.insert(pooled.hash, (self.nonce, fresh, Some(pooled)));
            self.nonce += 1;
            self.block = fresh;
        }
        let Some((_, block, pooled)) = self.mined.get(&hash) else { return Answer::Result(Value::Null) };
        fresh = *block;
        let zero = Address::ZERO;
        let mut receipt = json!({
            "transactionHash": hash, "transactionIndex": "0x0", "blockHash": B256::ZERO,
            "blockNumber": format!("{fresh:#x}"), "cumulativeGasUsed": "0x5208", "gasUsed": "0x5208",
            "effectiveGasPrice": "0x7", "from": zero, "to": zero, "contractAddress": null, "logs": [],
            "logsBloom": alloy_primitives::Bloom::ZERO, "type": "0x2", "status": "0x1",
        });
        if let Some(pooled) = pooled.filter(|pooled| pooled.blobs > 0) {
            receipt["blobGasUsed"] = json!(format!("{:#x}", 131_072 * pooled.blobs));
            receipt["blobGasPrice"] = json!("0x3");
        }
        Answer::Result(receipt)
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
            "eth_maxPriorityFeePerGas" => Answer::Result(format!("{:#x}", row.tip.max(1)).into()),
            "eth_blobBaseFee" => Answer::Result("0x3".into()),
            "eth_getBlockByNumber" => Answer::Result(block()),
            "eth_sendRawTransaction" => row.take(params),
            "eth_getTransactionReceipt" => row.receipt(params),
            other => panic!("{other} was not expected"),
        }
    });
    (sender(&url, 500), row)
}

fn calls(count: usize) -> Vec<Call> {
    let call = |number: usize| {
        let (name, to, input) = ("postData", TxKind::Call(Address::ZERO), Bytes::from(vec![number as u8]));
        Call {
            name,
            to,
            value: U256::ZERO,
            input,
            blobs: vec![],
            size_limit_bytes: None,
            nonce: None,
            data: None,
        }
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
    let blocks: std::collections::BTreeSet<u64> = seen.mined.values().map(|(_, block, _)| *block).collect();
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
    assert_eq!((seen.nonce, seen.pool.len()), (3, 0), "those that were there are not paid for again");
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
    let before: Vec<u128> = row.lock().unwrap().pool.values().map(|pooled| pooled.tip).collect();
    assert_eq!((row.lock().unwrap().nonce, before.len()), (1, 2));
    row.lock().unwrap().holds_from = None;
    // Another call takes the place of the one that is stuck; what was behind it is in the pool still.
    sender.send_in_a_row(calls(4).split_off(3)).await.unwrap();
    let seen = row.lock().unwrap();
    assert_eq!((seen.nonce, seen.pool.len()), (3, 0));
}

/// Calls with so many blobs each.
fn with_blobs(counts: &[usize]) -> Vec<Call> {
    let mut calls = calls(counts.len());
    for (call, count) in calls.iter_mut().zip(counts) {
        call.blobs = vec![Blob::ZERO; *count];
        call.data = Some((LayerName::Blobs, 10));
    }
    calls
}

#[tokio::test]
async fn calls_with_blobs_come_into_one_block() {
    let (sender, row) = row();
    sender.send_in_a_row(with_blobs(&[1, 1])).await.unwrap();
    let seen = row.lock().unwrap();
    assert_eq!((seen.nonce, seen.most, seen.block), (2, 2, 1));
    let costs = sender.costs();
    assert_eq!((costs.blobs.transactions, costs.blobs.bytes), (2, 20));
    assert_eq!(costs.blobs.wei, 2 * 0x5208 * 7 + 2 * 131_072 * 3);
}

#[test]
fn a_row_is_of_one_kind_and_has_no_more_blobs_than_blocks_take() {
    let lengths = |mut calls: VecDeque<Call>| {
        let mut lengths = Vec::new();
        while let Some(first) = calls.pop_front() {
            let mut row = vec![first];
            extend(&mut row, &mut calls);
            lengths.push(row.len());
        }
        lengths
    };
    let blobs = |counts: &[usize]| VecDeque::from(with_blobs(counts));
    assert_eq!(lengths(blobs(&[6, 6, 6])), [2, 1]);
    assert_eq!(lengths(blobs(&[6, 5, 2, 1])), [2, 2]);
    assert_eq!(lengths(blobs(&[1; 8])), [6, 2]);
    assert_eq!(lengths(VecDeque::from(calls(7))), [6, 1]);
    let mut mixed = calls(2);
    mixed.extend(with_blobs(&[1, 1]));
    mixed.extend(calls(1));
    assert_eq!(lengths(VecDeque::from(mixed)), [2, 2, 1]);
    let mut named = calls(3);
    named[1].nonce = Some(7);
    assert_eq!(lengths(VecDeque::from(named)), [1, 2], "one that has a nonce of its own begins a row");
}

/// Neither pool of a node takes one of an account that has transactions in the other.
#[tokio::test]
async fn calls_with_blobs_and_without_are_never_on_their_way_together() {
    let (sender, row) = row();
    let mut mixed = with_blobs(&[1]);
    mixed.extend(calls(2));
    mixed.extend(with_blobs(&[1]));
    sender.send_in_a_row(mixed).await.unwrap();
    let seen = row.lock().unwrap();
    assert_eq!((seen.nonce, seen.mixed, seen.pool.len(), seen.block), (4, 0, 0, 3));
}

#[tokio::test]
async fn a_row_with_blobs_that_is_stuck_is_replaced_with_all_fees_doubled() {
    let (sender, row) = row();
    row.lock().unwrap().holds_from = Some(1);
    let error = sender.send_in_a_row(with_blobs(&[1, 1])).await.unwrap_err();
    assert!(matches!(error, L1Error::Unconfirmed { .. }), "{error}");
    let before = row.lock().unwrap().pool[&1];
    assert_eq!(row.lock().unwrap().pool.len(), 1);
    // It takes the place of the one that is stuck, and is stuck as well.
    let again = || with_blobs(&[1, 1]).split_off(1);
    sender.send_in_a_row(again()).await.unwrap_err();
    let now = row.lock().unwrap().pool[&1];
    assert!(now.hash != before.hash && now.tip >= 2 * before.tip && now.max_fee >= 2 * before.max_fee);
    assert!(now.blob_fee >= before.blob_fee.map(|fee| 2 * fee));
    row.lock().unwrap().holds_from = None;
    sender.send_in_a_row(again()).await.unwrap();
    let seen = row.lock().unwrap();
    assert_eq!((seen.nonce, seen.pool.len(), seen.mixed), (2, 0, 0));
}

/// A posting near its deadline goes as calldata, whatever with blobs is in its way: one after the other is replaced by one that
/// does nothing.
#[tokio::test]
async fn a_call_without_blobs_gets_past_a_row_with_blobs_that_is_stuck() {
    let (sender, row) = row();
    row.lock().unwrap().holds_from = Some(0);
    sender.send_in_a_row(with_blobs(&[1, 1])).await.unwrap_err();
    {
        // Only what takes their places is dear enough.
        let mut row = row.lock().unwrap();
        row.holds_from = None;
        row.too_cheap = row.pool.values().map(|pooled| pooled.hash).collect();
    }
    sender.send_in_a_row(calls(1)).await.unwrap();
    let seen = row.lock().unwrap();
    assert_eq!((seen.nonce, seen.pool.len()), (3, 0));
    let last = seen.mined.values().find(|(nonce, ..)| *nonce == 2).unwrap();
    assert_eq!(last.2.unwrap().blobs, 0);
}

/// Whoever tries a row again that was stuck, wholly or from its second call on, pays for each call once: what waited behind the
/// first is there with it, or is waited for.
#[tokio::test]
async fn a_row_that_was_stuck_is_not_paid_for_twice() {
    for (holds_from, too_cheap) in [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1)] {
        let (sender, row) = row();
        let parts = || {
            let place = |call: Call| Call { data: Some((LayerName::Calldata, 10)), ..call };
            calls(4).into_iter().map(place).collect::<Vec<_>>()
        };
        row.lock().unwrap().holds_from = Some(holds_from);
        sender.send_in_a_row(parts()).await.unwrap_err();
        {
            // Of those that wait the first are too cheap, until they are outbid.
            let mut row = row.lock().unwrap();
            row.holds_from = None;
            row.too_cheap = row.pool.values().take(too_cheap).map(|pooled| pooled.hash).collect();
        }
        let mut tries = 1;
        while let Err(error) = sender.send_in_a_row(parts()).await {
            assert!(matches!(error, L1Error::Unconfirmed { .. }) && tries < 5, "{error}");
            tries += 1;
        }
        assert_eq!(tries, too_cheap.max(1), "{holds_from}, {too_cheap}");
        {
            let seen = row.lock().unwrap();
            assert_eq!((seen.nonce, seen.pool.len()), (4, 0), "{holds_from}, {too_cheap}");
        }
        assert_eq!(sender.costs().calldata.transactions, 4);
        // All of it is there, and known to be: the same once more is meant.
        sender.send_in_a_row(parts()).await.unwrap();
        assert_eq!(row.lock().unwrap().nonce, 8);
    }
}

/// Six are on their way at a time, and the row may be of hundreds: what came into blocks in front of the one that is stuck is
/// known to be there.
#[tokio::test]
async fn a_long_row_that_is_stuck_near_its_end_is_not_paid_for_twice() {
    let (sender, row) = row();
    row.lock().unwrap().holds_from = Some(99);
    let error = sender.send_in_a_row(calls(100)).await.unwrap_err();
    assert!(matches!(error, L1Error::Unconfirmed { .. }), "{error}");
    assert_eq!(row.lock().unwrap().nonce, 99);
    row.lock().unwrap().holds_from = None;
    sender.send_in_a_row(calls(100)).await.unwrap();
    let seen = row.lock().unwrap();
    assert_eq!((seen.nonce, seen.pool.len()), (100, 0));
}

/// The node's usual tip is no measure of what is stuck: each fee of a replacement is held to what stands there.
#[tokio::test]
async fn a_tip_that_fell_does_not_lock_the_account() {
    let (sender, row) = row();
    {
        let mut row = row.lock().unwrap();
        (row.holds_from, row.tip) = (Some(0), 1_000);
    }
    sender.send_in_a_row(with_blobs(&[1, 1])).await.unwrap_err();
    {
        let mut row = row.lock().unwrap();
        (row.holds_from, row.tip) = (None, 10);
        row.too_cheap = row.pool.values().map(|pooled| pooled.hash).collect();
    }
    let mut tries = 0;
    while let Err(error) = sender.send_in_a_row(calls(1)).await {
        tries += 1;
        assert!(tries < 12, "{error}");
    }
    let seen = row.lock().unwrap();
    assert_eq!((seen.nonce, seen.pool.len()), (3, 0));
}

#[tokio::test]
async fn every_replacement_is_taken_however_often_it_takes_one() {
    let (sender, row) = row();
    row.lock().unwrap().holds_from = Some(0);
    let pooled = || row.lock().unwrap().pool.get(&0).map(|pooled| pooled.hash);
    for _ in 0..6 {
        let before = pooled();
        let error = sender.send_in_a_row(with_blobs(&[1])).await.unwrap_err();
        assert!(matches!(error, L1Error::Unconfirmed { .. }), "{error}");
        assert_ne!(pooled(), before);
    }
    row.lock().unwrap().holds_from = None;
    sender.send_in_a_row(with_blobs(&[1])).await.unwrap();
    assert_eq!(pooled(), None);
}

/// Another node stands behind the same URL, which takes no blobs: what the one before had in its pool is in nobody's way.
/// Rule DC-5.
#[tokio::test]
async fn a_node_that_takes_no_blobs_is_found_out_and_keeps_nothing_waiting() {
    let (sender, row) = row();
    row.lock().unwrap().holds_from = Some(0);
    sender.send_in_a_row(with_blobs(&[1])).await.unwrap_err();
    {
        let mut row = row.lock().unwrap();
        row.pool.clear();
        (row.holds_from, row.refuses_blobs) = (None, true);
    }
    sender.send(call_of_nothing()).await.unwrap();
    assert!(sender.takes_blobs());
    let error = sender.send_in_a_row(with_blobs(&[1])).await.unwrap_err();
    assert!(matches!(error, L1Error::Rpc { .. }), "{error}");
    let error = sender.send_in_a_row(with_blobs(&[1])).await.unwrap_err();
    assert!(matches!(error, L1Error::BlobsRefused { .. }), "{error}");
    assert!(!sender.takes_blobs() && error.recovery() == Recovery::GiveUp);
    assert_eq!(sender.costs().blob_refusals, 3, "two, and the one that was to clear the way");
    row.lock().unwrap().refuses_blobs = false;
    sender.send_in_a_row(with_blobs(&[1])).await.unwrap();
    assert!(sender.takes_blobs());
}

/// What is stuck stays where outbidding it would cost more than the operator allows, until the node drops it.
#[tokio::test]
async fn no_transaction_costs_more_than_the_operator_allows() {
    let (mut sender, row) = row();
    sender.account.max_fee_wei = 500_000;
    row.lock().unwrap().holds_from = Some(0);
    // 24,150 gas at 15, then 19, then 24 wei.
    for _ in 0..2 {
        let error = sender.send(call_of_nothing()).await.unwrap_err();
        assert!(matches!(error, L1Error::Unconfirmed { .. }), "{error}");
    }
    let stands = row.lock().unwrap().pool[&0];
    for _ in 0..2 {
        let error = sender.send(call_of_nothing()).await.unwrap_err();
        let expected = L1Error::FeeAboveLimit { call: "postData", wei: 579_600, limit_wei: 500_000 };
        assert_eq!((&error, error.recovery()), (&expected, Recovery::Retry));
    }
    assert_eq!(row.lock().unwrap().pool[&0].hash, stands.hash);
    {
        let mut row = row.lock().unwrap();
        row.pool.clear();
        row.holds_from = None;
    }
    sender.send(call_of_nothing()).await.unwrap();
    assert_eq!(row.lock().unwrap().nonce, 1);

    sender.account.max_fee_wei = 300_000;
    let error = sender.send(call_of_nothing()).await.unwrap_err();
    assert!(matches!(error, L1Error::FeeAboveLimit { wei: 362_250, .. }), "{error}");
}

#[tokio::test]
async fn what_l1_takes_back_is_sent_again_in_its_place() {
    for blobs in [0, 1] {
        let (sender, row) = row();
        let calls = || if blobs == 0 { calls(2) } else { with_blobs(&[1, 1]) };
        sender.send_in_a_row(calls()).await.unwrap();
        {
            // Nothing of it comes into a block again by itself.
            let mut row = row.lock().unwrap();
            row.take_back();
            assert_eq!((row.nonce, row.pool.len(), row.block), (0, 2, 0));
            row.too_cheap = row.pool.values().map(|pooled| pooled.hash).collect();
        }
        // The sender does not know what the pool holds: each try offers more.
        let mut tries = 0;
        for call in calls() {
            while let Err(error) = sender
                .send_in_a_row(vec![Call {
                    blobs: call.blobs.clone(),
                    input: call.input.clone(),
                    ..call_of_nothing()
                }])
                .await
            {
                assert!(error.to_string().contains("underpriced"), "{error}");
                tries += 1;
                assert!(tries < 12);
            }
        }
        let seen = row.lock().unwrap();
        assert_eq!((seen.nonce, seen.pool.len(), seen.mixed), (2, 0, 0));
    }
}

/// What L1 takes back with calldata is in the way of what then goes into blobs, and the other way round.
#[tokio::test]
async fn what_l1_takes_back_gives_way_to_the_other_kind() {
    for blobs in [0, 1] {
        let (sender, row) = row();
        let [before, then] =
            [blobs, 1 - blobs].map(|blobs| if blobs == 0 { calls(2) } else { with_blobs(&[1]) });
        sender.send_in_a_row(before).await.unwrap();
        row.lock().unwrap().take_back();
        let mut then = then.into_iter();
        let mut tries = 0;
        let call = then.next().unwrap();
        while let Err(error) =
            sender.send_in_a_row(vec![Call { blobs: call.blobs.clone(), ..call_of_nothing() }]).await
        {
            tries += 1;
            assert!(tries < 12, "{error}");
        }
        let rest: Vec<Call> = then.collect();
        if !rest.is_empty() {
            sender.send_in_a_row(rest).await.unwrap();
        }
        assert_eq!(row.lock().unwrap().pool.len(), 0);
    }
}

fn call_of_nothing() -> Call {
    calls(1).remove(0)
}
