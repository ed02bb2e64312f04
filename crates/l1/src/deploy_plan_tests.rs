use std::sync::Arc;

use alloy_consensus::{Transaction, TxEnvelope};
use alloy_eips::eip2718::Decodable2718;
use parking_lot::Mutex;
use serde_json::Value;

use super::*;
use crate::{
    anvil::dev_key,
    test_server::{Answer, block, serve},
};

/// An L1 on which an earlier run's transaction gets into block 2.
struct L1 {
    /// When: behind the answer to this call.
    mined_by: &'static str,
    /// Whether a server that has no block 2 answers what is asked about code.
    lags: bool,
    newest: u64,
    /// Nonces that were signed over.
    sent: Vec<u64>,
}

/// Carries out a plan whose first contract an earlier run sent; gives the nonces that were signed over, and the error about
/// the second contract, which this L1 refuses.
async fn carried_out(mined_by: &'static str, lags: bool) -> (Vec<u64>, BrokenOff) {
    let key = dev_key(0).unwrap();
    let config = DeployConfig::new(1, key.address(), Address::repeat_byte(9));
    let plan = DeployPlan::again(key.address(), 0, 1, &config).unwrap();
    let l1 = Arc::new(Mutex::new(L1 { mined_by, lags, newest: 1, sent: Vec::new() }));
    let (shared, first) = (Arc::clone(&l1), plan.creations[0].address);
    let second: Value = plan.creations[1].code.to_string().into();
    let url = serve(move |method, params| {
        let mut l1 = shared.lock();
        let after = |block: &Value| match block.as_str().unwrap() {
            "latest" => l1.newest,
            number => u64::from_str_radix(number.trim_start_matches("0x"), 16).unwrap(),
        };
        let answer = match method {
            "eth_chainId" | "eth_maxPriorityFeePerGas" => "0x1".into(),
            "eth_blockNumber" => format!("{:#x}", l1.newest).into(),
            "eth_getCode" if l1.lags && params[1] == "0x2" => {
                return Answer::Error { code: -32_000, message: "header not found", data: None };
            }
            "eth_getCode" => {
                let stands = params[0].as_str().unwrap().parse() == Ok(first) && after(&params[1]) > 1;
                if stands && !l1.lags { "0x01".into() } else { "0x".into() }
            }
            "eth_getTransactionCount" => format!("{:#x}", after(&params[1]) - 1).into(),
            "eth_estimateGas" if params[0]["input"] == second => {
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
            l1.newest = 2;
        }
        Answer::Result(answer)
    });
    let error = plan.carry_out(&url, &key).await.unwrap_err();
    let sent = l1.lock().sent.clone();
    (sent, error)
}

#[tokio::test]
async fn a_nonce_that_was_taken_meanwhile_is_not_signed_over_by_the_next_one() {
    let (sent, error) = carried_out("eth_estimateGas", false).await;
    assert_eq!(sent, [0], "the first contract would stand in the second one's place");
    assert!(error.has_sent);
    assert!(matches!(error.error, L1Error::Reverted { call: "ForcedQueue", .. }), "{error}");
}

#[tokio::test]
async fn a_contract_that_came_between_two_questions_is_not_lost() {
    let (sent, error) = carried_out("eth_getCode", false).await;
    assert_eq!(sent, [0], "by the block before");
    assert!(matches!(error.error, L1Error::Reverted { call: "ForcedQueue", .. }), "{error}");
}

/// Of several servers behind an endpoint one may lag for long.
#[tokio::test]
async fn a_server_that_lags_makes_no_nonce_a_used_one() {
    for mined_by in ["eth_chainId", "eth_getCode", "eth_estimateGas"] {
        let (_, error) = carried_out(mined_by, true).await;
        assert!(error.error.is_transient() && !error.is_final, "{mined_by}: {error}");
    }
}
