use std::sync::Arc;

use alloy_consensus::{Transaction, TxEnvelope};
use alloy_eips::eip2718::Decodable2718;
use parking_lot::Mutex;
use serde_json::Value;

use super::*;
use crate::{
    dev_key,
    test_server::{Answer, serve},
};

/// An L1 on which an earlier run's transaction gets into a block.
struct L1 {
    /// When: behind the answer to this call.
    mined_by: &'static str,
    /// How many contracts of the plan stand.
    stand: usize,
    /// Nonces that were signed over.
    sent: Vec<u64>,
}

/// Carries out a plan whose first contract an earlier run sent; gives the nonces that were signed over, and the error about
/// the second contract, which this L1 refuses.
async fn carried_out(mined_by: &'static str) -> (Vec<u64>, BrokenOff) {
    let key = dev_key(0).unwrap();
    let config = DeployConfig::new(1, key.address(), Address::repeat_byte(9));
    let plan = DeployPlan::again(key.address(), 0, 1, &config).unwrap();
    let l1 = Arc::new(Mutex::new(L1 { mined_by, stand: 0, sent: Vec::new() }));
    let (shared, addresses) = (Arc::clone(&l1), plan.creations.iter().map(|creation| creation.address));
    let addresses: Vec<_> = addresses.collect();
    let url = serve(move |method, params| {
        let mut l1 = shared.lock();
        let stands = |address: Address| addresses[..l1.stand].contains(&address);
        let answer = match method {
            "eth_chainId" | "eth_maxPriorityFeePerGas" => "0x1".into(),
            "eth_getCode" if stands(params[0].as_str().unwrap().parse().unwrap()) => "0x01".into(),
            "eth_getCode" => "0x".into(),
            // Between the two questions of one look.
            "eth_getTransactionCount" if l1.mined_by == "eth_getCode" => "0x1".into(),
            "eth_getTransactionCount" => format!("{:#x}", l1.stand).into(),
            "eth_estimateGas" if l1.stand == 1 => {
                return Answer::Error { code: 3, message: "execution reverted", data: None };
            }
            "eth_estimateGas" => "0x1000".into(),
            "eth_getBlockByNumber" => block(),
            "eth_sendRawTransaction" => {
                let raw: Bytes = params[0].as_str().unwrap().parse().unwrap();
                let nonce = TxEnvelope::decode_2718(&mut raw.as_ref()).unwrap().nonce();
                l1.sent.push(nonce);
                return Answer::Error { code: -32_003, message: "nonce too low", data: None };
            }
            other => panic!("{other} was not expected"),
        };
        if method == l1.mined_by {
            l1.stand = 1;
        }
        Answer::Result(answer)
    });
    let error = plan.carry_out(&url, &key).await.unwrap_err();
    let sent = l1.lock().sent.clone();
    (sent, error)
}

fn block() -> Value {
    let zero = B256::ZERO;
    json!({
        "number": "0x1", "hash": zero, "parentHash": zero, "sha3Uncles": zero, "miner": Address::ZERO, "stateRoot": zero,
        "transactionsRoot": zero, "receiptsRoot": zero, "logsBloom": alloy_primitives::Bloom::ZERO, "difficulty": "0x0",
        "gasLimit": "0x0", "gasUsed": "0x0", "timestamp": "0x1", "extraData": "0x", "mixHash": zero,
        "nonce": "0x0000000000000000", "baseFeePerGas": "0x7", "uncles": [], "transactions": [],
    })
}

#[tokio::test]
async fn a_nonce_that_was_taken_meanwhile_is_not_signed_over_by_the_next_one() {
    let (sent, error) = carried_out("eth_estimateGas").await;
    assert_eq!(sent, [0], "the first contract would stand in the second one's place");
    assert!(error.has_sent);
    assert!(matches!(error.error, L1Error::Reverted { call: "ForcedQueue", .. }), "{error}");
}

#[tokio::test]
async fn a_contract_that_came_between_two_questions_is_not_lost() {
    let (sent, error) = carried_out("eth_getCode").await;
    assert!(sent.is_empty() && !error.has_sent);
    assert!(matches!(error.error, L1Error::Reverted { call: "ForcedQueue", .. }), "{error}");
}
