use std::sync::Mutex as StdMutex;

use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::Address;
use alloy_rpc_types_engine::ExecutionPayloadV1;

use super::*;
use crate::{
    Fault, L1Origin, PayloadError, Recovery, SkippedTransaction, TransportError,
    payload::tests::sample,
    test_server::{Answer, serve},
};

const PARENT: B256 = B256::repeat_byte(0xaa);
const BUILT: B256 = B256::repeat_byte(0xbb);

fn inputs() -> BlockInputs {
    BlockInputs {
        timestamp: 1_000,
        prev_randao: B256::repeat_byte(1),
        fee_recipient: Address::repeat_byte(2),
        gas_limit: 30_000_000,
        l1_origin: L1Origin {
            number: 7,
            hash: B256::repeat_byte(3),
            timestamp: 990,
            base_fee: 1,
            blob_base_fee: 1,
            parent_beacon_block_root: B256::repeat_byte(4),
        },
        sequence_number: 0,
        l1_deposits: Vec::new(),
    }
}

fn transactions() -> Vec<Bytes> {
    vec![Bytes::from_static(b"\x02a"), Bytes::from_static(b"\x02b")]
}

/// The payload that an honest client builds from [`inputs`] with the second transaction included.
fn honest_payload() -> OpExecutionPayloadV4 {
    let list = vec![attributes_deposit(&inputs()), transactions()[1].clone()];
    let mut payload = sample(8, BUILT, PARENT, list).execution_payload().clone();
    let block = block(&mut payload);
    block.timestamp = 1_000;
    block.prev_randao = inputs().prev_randao;
    block.fee_recipient = inputs().fee_recipient;
    block.gas_limit = 30_000_000;
    payload
}

fn block(payload: &mut OpExecutionPayloadV4) -> &mut ExecutionPayloadV1 {
    &mut payload.payload_inner.payload_inner.payload_inner
}

/// What the honest client answers.
fn honest(method: &str, params: &Value) -> Answer {
    let valid = json!({"status": "VALID", "latestValidHash": null, "validationError": null});
    Answer::Result(match method {
        "engine_filterV1" => {
            json!({"included": [1], "skipped": [{"index": 0, "reason": "nonce_too_low"}], "gasUsed": 21_000})
        }
        "engine_forkchoiceUpdatedV3" => {
            let id = if params[1].is_null() { Value::Null } else { json!("0x0000000000000001") };
            json!({"payloadStatus": valid, "payloadId": id})
        }
        "engine_executeV1" => json!({
            "included": [1],
            "skipped": [{"index": 0, "reason": "nonce_too_low"}],
            "gasUsed": 21_000,
            "executionPayload": honest_payload(),
        }),
        "engine_getPayloadV5" => json!({"executionPayload": honest_payload(), "blockValue": "0x0"}),
        "engine_newPayloadV4" => valid,
        "eth_getBlockByNumber" => {
            json!({"number": "0x8", "hash": BUILT, "timestamp": "0x3e8", "size": "0x1"})
        }
        "engine_filterInfoV1" => json!({
            "version": 1,
            "chainId": 77,
            "genesisHash": PARENT,
            "maxTransactions": TRANSACTIONS_LIMIT,
            "reasons": SkipReason::ALL,
        }),
        _ => return Answer::Error(-32601, "no such method", Value::Null),
    })
}

/// A client whose server answers honestly, unless `lie` has another answer.
async fn client(lie: impl Fn(&str, &Value) -> Option<Answer> + Send + Sync + 'static) -> OpGeth {
    let url =
        serve(move |method, params| lie(method, params).unwrap_or_else(|| honest(method, params))).await;
    OpGeth::new(OpGethConfig::new(&url, &url, JwtSecret::generate().unwrap()))
}

async fn executed(
    lie: impl Fn(&str, &Value) -> Option<Answer> + Send + Sync + 'static,
) -> Result<ExecutedBlock, EngineError> {
    client(lie).await.execute(PARENT, &inputs(), &transactions()).await
}

fn answer(
    method: &'static str,
    answer: impl Fn() -> Answer + Send + Sync,
) -> impl Fn(&str, &Value) -> Option<Answer> + Send + Sync {
    move |asked, _| (asked == method).then(&answer)
}

#[tokio::test]
async fn executes_in_five_steps() {
    let steps = std::sync::Arc::new(StdMutex::new(Vec::new()));
    let seen = steps.clone();
    let block = executed(move |method, params| {
        seen.lock().unwrap().push((method.to_owned(), params.clone()));
        None
    })
    .await
    .unwrap();
    assert_eq!(block.id(), BlockId { number: 8, hash: BUILT, timestamp: 1_000 });
    assert_eq!(block.parent_hash, PARENT);
    assert_eq!(block.transactions[1], keccak256(&transactions()[1]));
    assert_eq!(block.skipped, [SkippedTransaction { index: 0, reason: SkipReason::NonceTooLow }]);
    assert_eq!(StoredPayload::decode(&block.payload.encode()).unwrap(), block.payload);
    let steps = steps.lock().unwrap();
    let methods: Vec<&str> = steps.iter().map(|(method, _)| method.as_str()).collect();
    assert_eq!(
        methods,
        [
            "engine_filterV1",
            "engine_forkchoiceUpdatedV3",
            "engine_getPayloadV5",
            "engine_newPayloadV4",
            "engine_forkchoiceUpdatedV3"
        ]
    );
    let expected = json!({
        "timestamp": "0x3e8",
        "prevRandao": inputs().prev_randao,
        "suggestedFeeRecipient": inputs().fee_recipient,
        "withdrawals": [],
        "parentBeaconBlockRoot": inputs().l1_origin.parent_beacon_block_root,
        "transactions": [attributes_deposit(&inputs()), transactions()[1]],
        "noTxPool": true,
        "gasLimit": "0x1c9c380",
        "eip1559Params": "0x000000fa00000006",
        "minBaseFee": 0, // a number, not a quantity
    });
    assert_eq!(steps[1].1[1], expected);
    assert_eq!(steps[3].1, json!([honest_payload(), [], inputs().l1_origin.parent_beacon_block_root, []]));
    assert_eq!(
        steps[4].1,
        json!([{"headBlockHash": BUILT, "safeBlockHash": B256::ZERO, "finalizedBlockHash": B256::ZERO}, null])
    );
}

/// What [`honest`] answers to the question what it is, and that it has `engine_executeV1`.
fn with_execute(method: &str, params: &Value) -> Option<Answer> {
    let Answer::Result(mut info) = honest(method, params) else { return None };
    (method == "engine_filterInfoV1").then(|| {
        info["executes"] = json!(true);
        Answer::Result(info)
    })
}

/// The block, and the methods that it was made by.
async fn executed_at_once(
    lie: impl Fn(&str, &Value) -> Option<Answer> + Send + Sync + 'static,
) -> (Result<ExecutedBlock, EngineError>, Vec<String>) {
    let steps = std::sync::Arc::new(StdMutex::new(Vec::new()));
    let seen = steps.clone();
    let client = client(move |method, params| {
        seen.lock().unwrap().push(method.to_owned());
        lie(method, params).or_else(|| with_execute(method, params))
    })
    .await;
    assert!(client.check_compatible(77).await.unwrap().executes);
    let block = client.execute(PARENT, &inputs(), &transactions()).await;
    let methods = steps.lock().unwrap().split_off(1);
    (block, methods)
}

#[tokio::test]
async fn executes_in_one_call_where_the_client_can() {
    let (block, methods) = executed_at_once(|_, _| None).await;
    assert_eq!(methods, ["engine_executeV1"]);
    assert_eq!(block, executed(|_, _| None).await, "the same as in steps");
}

#[tokio::test]
async fn a_client_that_cannot_after_all_is_asked_step_by_step() {
    for code in [METHOD_NOT_FOUND, FILTER_INTERNAL, EXECUTE_REFUSED] {
        let (block, methods) =
            executed_at_once(answer("engine_executeV1", move || Answer::Error(code, "no", Value::Null)))
                .await;
        assert_eq!(block, executed(|_, _| None).await);
        assert_eq!(
            (methods.len(), methods[0].as_str(), methods[1].as_str()),
            (6, "engine_executeV1", "engine_filterV1")
        );
    }
}

#[tokio::test]
async fn what_one_call_answers_is_checked_as_well() {
    async fn failed(lie: impl Fn() -> Answer + Send + Sync + 'static) -> EngineError {
        let (result, methods) = executed_at_once(answer("engine_executeV1", lie)).await;
        assert_eq!(methods.len(), 1);
        result.unwrap_err()
    }
    let error = failed(|| Answer::Error(-39001, "no", Value::Null)).await;
    assert_eq!(error, EngineError::UnknownBlock { hash: PARENT });
    let error = failed(|| Answer::Error(-39002, "no", Value::Null)).await;
    assert_eq!(error, EngineError::InvalidInputs { parent: PARENT, reason: "no".into() });
    let error = failed(|| Answer::Error(-32_002, "request timed out", Value::Null)).await;
    assert_eq!(error.recovery(), Recovery::Retry, "a second that takes long: what is done is found then");
    let Answer::Result(honest) = honest("engine_executeV1", &Value::Null) else { panic!("a result") };
    let with = move |field: &'static str, value: Value| {
        let mut answer = honest.clone();
        answer[field] = value;
        failed(move || Answer::Result(answer.clone()))
    };
    assert!(matches!(with("included", json!([0])).await, EngineError::InvalidFilterResult { .. }));
    assert_eq!(with("gasUsed", json!(5)).await, EngineError::PayloadMismatch { field: "gasUsed" });
    let mut payload = honest_payload();
    block(&mut payload).transactions.truncate(1);
    assert_eq!(
        with("executionPayload", json!(payload)).await,
        EngineError::PayloadMismatch { field: "transactions" }
    );
}

#[tokio::test]
async fn a_filter_that_answers_nonsense_is_found_out() {
    let skip = |index: usize| json!({"index": index, "reason": "other"});
    let cases = [
        json!({"included": [], "skipped": [], "gasUsed": 0}),
        json!({"included": [0], "skipped": [], "gasUsed": 0}),
        json!({"included": [1, 0], "skipped": [], "gasUsed": 0}),
        json!({"included": [0, 1], "skipped": [skip(1)], "gasUsed": 0}),
        json!({"included": [0, 1, 2], "skipped": [], "gasUsed": 0}),
        json!({"included": [0, 0], "skipped": [skip(1)], "gasUsed": 0}),
    ];
    for case in cases {
        let result = executed(answer("engine_filterV1", move || Answer::Result(case.clone()))).await;
        assert!(matches!(result, Err(EngineError::InvalidFilterResult { .. })), "{result:?}");
    }
    let unknown = json!({"included": [1], "skipped": [{"index": 0, "reason": "mood"}], "gasUsed": 0});
    let result = executed(answer("engine_filterV1", move || Answer::Result(unknown.clone()))).await;
    assert!(matches!(result, Err(EngineError::Transport(TransportError::Malformed { .. }))), "{result:?}");
}

#[tokio::test]
async fn a_client_that_builds_another_block_is_found_out() {
    type Change = fn(&mut OpExecutionPayloadV4);
    let changes: [(&str, Change); 8] = [
        ("parentHash", |payload| block(payload).parent_hash = BUILT),
        ("timestamp", |payload| block(payload).timestamp += 1),
        ("prevRandao", |payload| block(payload).prev_randao = BUILT),
        ("feeRecipient", |payload| block(payload).fee_recipient = Address::ZERO),
        ("gasLimit", |payload| block(payload).gas_limit = 5),
        ("withdrawals", |payload| {
            payload.payload_inner.payload_inner.withdrawals.push(Withdrawal::default())
        }),
        ("transactions", |payload| block(payload).transactions.truncate(1)),
        ("gasUsed", |payload| block(payload).gas_used = 5),
    ];
    for (expected, change) in changes {
        let result = executed(answer("engine_getPayloadV5", move || {
            let mut payload = honest_payload();
            change(&mut payload);
            Answer::Result(json!({"executionPayload": payload}))
        }))
        .await;
        assert_eq!(result, Err(EngineError::PayloadMismatch { field: expected }));
    }
}

#[tokio::test]
async fn statuses_say_what_to_do() {
    for status in ["SYNCING", "ACCEPTED"] {
        let result =
            executed(answer("engine_newPayloadV4", move || Answer::Result(json!({"status": status})))).await;
        let error = result.unwrap_err();
        assert_eq!(error, EngineError::UnknownBlock { hash: BUILT });
        assert_eq!((error.recovery(), error.fault()), (Recovery::Replay, Fault::Client));
    }
    let invalid = json!({"status": "INVALID", "validationError": "bad root"});
    let error =
        executed(answer("engine_newPayloadV4", move || Answer::Result(invalid.clone()))).await.unwrap_err();
    assert_eq!(error, EngineError::InvalidBlock { hash: BUILT, reason: "bad root".into() });
    assert_eq!(error.recovery(), Recovery::GiveUp);
    let silent = json!({"status": "INVALID", "validationError": null});
    let error =
        executed(answer("engine_newPayloadV4", move || Answer::Result(silent.clone()))).await.unwrap_err();
    assert_eq!((error.recovery(), error.fault()), (Recovery::GiveUp, Fault::Client), "{error}");

    let nothing = json!({"payloadStatus": {"status": "VALID"}, "payloadId": null});
    let result =
        executed(answer("engine_forkchoiceUpdatedV3", move || Answer::Result(nothing.clone()))).await;
    assert!(matches!(result, Err(EngineError::InvalidInputs { parent: PARENT, .. })), "{result:?}");
}

#[tokio::test]
async fn rpc_errors_say_what_to_do() {
    let failed = |method, code| async move {
        executed(answer(method, move || Answer::Error(code, "no", json!({"err": "why"})))).await.unwrap_err()
    };
    assert_eq!(failed("engine_filterV1", -39001).await, EngineError::UnknownBlock { hash: PARENT });
    let error = failed("engine_filterV1", -39002).await;
    assert!(matches!(error, EngineError::InvalidInputs { .. }), "{error}");
    assert_eq!((error.recovery(), error.fault()), (Recovery::GiveUp, Fault::Caller));
    let error = failed("engine_filterV1", -39003).await;
    assert_eq!(error.recovery(), Recovery::GiveUp);
    let error = failed("engine_forkchoiceUpdatedV3", -38003).await;
    assert_eq!(error, EngineError::InvalidInputs { parent: PARENT, reason: "no: why".into() });
    for code in [-38001, -32000, -32603, -32005] {
        assert_eq!(failed("engine_getPayloadV5", code).await.recovery(), Recovery::Retry);
    }
    let error = failed("engine_newPayloadV4", -32602).await;
    assert_eq!((error.recovery(), error.fault()), (Recovery::GiveUp, Fault::Client));
}

#[tokio::test]
async fn inputs_are_checked_before_anything_is_sent() {
    let client = client(|method, _| panic!("{method} was called")).await;
    let too_many = vec![Bytes::new(); TRANSACTIONS_LIMIT + 1];
    let error = client.execute(PARENT, &inputs(), &too_many).await.unwrap_err();
    assert_eq!(
        error,
        EngineError::TooManyTransactions { count: TRANSACTIONS_LIMIT + 1, limit: TRANSACTIONS_LIMIT }
    );
    assert_eq!((error.recovery(), error.fault()), (Recovery::GiveUp, Fault::Caller));
    let mut inputs = inputs();
    inputs.l1_deposits = vec![Bytes::from_static(b"\x7e"), Bytes::from_static(b"\x02")];
    let error = client.execute(PARENT, &inputs, &[]).await.unwrap_err();
    assert_eq!(error, EngineError::NotADeposit { index: 1 });
    assert_eq!((error.recovery(), error.fault()), (Recovery::GiveUp, Fault::Caller));
    let error = EngineError::from(PayloadError::UnknownVersion { version: 9 });
    assert_eq!((error.recovery(), error.fault()), (Recovery::GiveUp, Fault::Caller));
}

#[tokio::test]
async fn finality_of_unknown_blocks_asks_for_a_replay() {
    let client = client(answer("engine_forkchoiceUpdatedV3", || {
        Answer::Error(-38002, "Invalid forkchoice state", json!({"err": "final block not available"}))
    }))
    .await;
    let error = client.set_finality(PARENT, BUILT).await.unwrap_err();
    assert!(
        matches!(&error, EngineError::UnknownFinality { reason, .. } if reason.contains("not available"))
    );
    assert_eq!(error.recovery(), Recovery::Replay);
}

#[tokio::test]
async fn incompatible_nodes_are_refused() {
    assert_eq!(client(|_, _| None).await.check_compatible(77).await.unwrap().genesis_hash, PARENT);
    let other_chain = client(|_, _| None).await.check_compatible(78).await.unwrap_err();
    assert_eq!((other_chain.recovery(), other_chain.fault()), (Recovery::GiveUp, Fault::Configuration));
    for (field, value) in
        [("version", json!(2)), ("reasons", json!(["undecodable"])), ("maxTransactions", json!(5))]
    {
        let changed = client(move |method, params| {
            let Answer::Result(mut info) = honest(method, params) else { return None };
            info[field] = value.clone();
            Some(Answer::Result(info))
        })
        .await;
        let error = changed.check_compatible(77).await.unwrap_err();
        assert!(matches!(error, EngineError::IncompatibleClient { .. }), "{error}");
    }
}

#[tokio::test]
async fn reads_are_filtered_and_bounded_in_number() {
    let client = client(|_, _| None).await;
    let error = client.read("eth_sendRawTransaction", json!(["0x"])).await.unwrap_err();
    assert_eq!(error, ReadError::NotAllowed { method: "eth_sendRawTransaction".into() });
    let all = client.reads.acquire_many(READS_LIMIT as u32).await.unwrap();
    assert_eq!(client.read("eth_chainId", json!([])).await, Err(ReadError::Busy { limit: READS_LIMIT }));
    assert_eq!(client.finalized().await, Ok(Some(8)), "what we ask ourselves waits for nobody's reads");
    drop(all);
    assert!(matches!(client.read("eth_chainId", json!([])).await, Err(ReadError::Rpc { code: -32601, .. })));
}
