//! The skip rule's cases (`testing/vectors/skip`) against the real client.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod common;

use std::fs;

use alloy_primitives::{Address, B256, Bytes, U64, U256, keccak256};
use blindfold_engine::{ExecutionClient, Genesis, SkippedTransaction};
use common::{CHAIN_ID, GAS_LIMIT, inputs, repository, start};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(rename = "comment")]
    _comment: String,
    chain_id: u64,
    gas_limit: u64,
    accounts: Vec<Account>,
    transactions: Vec<Bytes>,
    included: Vec<usize>,
    skipped: Vec<SkippedTransaction>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    address: Address,
    balance: U256,
    nonce: U64,
    code: Bytes,
}

fn cases() -> Vec<Case> {
    let folder = repository().join("testing/vectors/skip");
    let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let cases: Vec<Case> = paths
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
        .collect();
    assert!(!cases.is_empty(), "no cases in {}", folder.display());
    cases
}

#[tokio::test]
async fn skip_vectors_hold_on_the_real_client() {
    let cases = cases();
    let mut genesis = Genesis::new(CHAIN_ID, GAS_LIMIT, Vec::new());
    for account in cases.iter().flat_map(|case| &case.accounts) {
        genesis["alloc"][format!("{:#x}", account.address)] =
            json!({"balance": account.balance, "nonce": account.nonce, "code": account.code});
    }
    let folder = tempfile::tempdir().unwrap();
    let node = start(folder.path(), genesis).await;
    let client = node.client();
    client.check_compatible(CHAIN_ID).await.unwrap();
    for (index, case) in cases.iter().enumerate() {
        assert_eq!(case.chain_id, CHAIN_ID, "{}", case.name);
        let mut inputs = inputs(10 + index as u64);
        inputs.gas_limit = case.gas_limit;
        let block = client.execute(node.genesis_hash(), &inputs, &case.transactions).await.unwrap();
        let included: Vec<B256> =
            case.included.iter().map(|&index| keccak256(&case.transactions[index])).collect();
        assert_eq!(block.transactions[1..], included, "{}", case.name);
        assert_eq!(block.skipped, case.skipped, "{}", case.name);
    }
}
