use serde_json::Value;

use super::*;
use crate::{
    Recovery, dev_key,
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
    let sender = Sender::new(Rpc::new(&url, 50).unwrap(), 1, dev_key(0).unwrap(), 10);
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
