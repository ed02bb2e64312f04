#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use super::*;
use crate::{
    config::L1Contracts,
    reader::log_reads::RPC_LIMIT_EXCEEDED,
    test_server::{Answer, serve, serve_batches},
};
use alloy_primitives::{B256, U256};
use alloy_sol_types::SolEvent;
use blindfold_protocol::{Deployment, L1Timing};
use parking_lot::Mutex;
use serde_json::{Value, json};

const VAULT: Address = Address::repeat_byte(0xfe);
const INBOX: Address = Address::repeat_byte(1);

/// A scripted L1 whose final blocks and logs tests change.
#[derive(Default)]
struct Script {
    finalized: u64,
    /// The fork whose blocks are served.
    fork: u8,
    logs: Vec<Value>,
    /// Runs that the inbox posted, by first and last number and block.
    posted: Vec<(u64, u64, u64)>,
    /// Runs that were declared void, likewise.
    voided: Vec<(u64, u64, u64)>,
    /// The newest block of the server that is asked for logs, in a batch or alone; blocks alone another one gives.
    head: Option<u64>,
    /// What it answers to a batch, where it takes none.
    no_batches: Option<Answer>,
    /// Whether it refuses what it does not have; else it leaves that out.
    refuses: bool,
    /// Ranges above this many blocks are refused.
    range_limit: u64,
    /// How; by default with the code for it.
    refusal: Option<Answer>,
    calls: u64,
    /// The lowest block in a query for logs.
    lowest: Option<u64>,
    missing: Option<&'static str>,
}

fn hash(number: u64, fork: u8) -> B256 {
    let mut hash = B256::repeat_byte(fork);
    hash.0[24..].copy_from_slice(&number.to_be_bytes());
    hash
}

fn block(number: u64, fork: u8, missing: Option<&str>) -> Value {
    let zero = B256::ZERO;
    let mut block = json!({
        "number": format!("{number:#x}"), "hash": hash(number, fork), "parentHash": zero, "sha3Uncles": zero,
        "miner": Address::ZERO, "stateRoot": zero, "transactionsRoot": zero, "receiptsRoot": zero,
        "logsBloom": alloy_primitives::Bloom::ZERO, "difficulty": "0x0", "gasLimit": "0x0", "gasUsed": "0x0",
        "timestamp": format!("{:#x}", 1_000 + number), "extraData": "0x", "mixHash": zero,
        "nonce": "0x0000000000000000", "baseFeePerGas": "0x7", "withdrawalsRoot": zero, "blobGasUsed": "0x0",
        "excessBlobGas": "0x0", "parentBeaconBlockRoot": zero, "requestsHash": zero, "uncles": [], "transactions": [],
    });
    if let Some(field) = missing {
        block.as_object_mut().unwrap().remove(field);
    }
    block
}

fn log(block: u64, index: u64, amount: u128) -> Value {
    json!({
        "address": VAULT,
        "topics": [FeeVault::Deposited::SIGNATURE_HASH, B256::left_padding_from(&[0xaa; 20]), B256::ZERO],
        "data": B256::from(alloy_primitives::U256::from(amount)),
        "blockNumber": format!("{block:#x}"), "blockHash": hash(block, 0), "transactionHash": hash(block, 9),
        "transactionIndex": "0x0", "logIndex": format!("{index:#x}"), "removed": false,
    })
}

/// What the inbox logs of a run.
fn posted((first, last, block): (u64, u64, u64)) -> Value {
    let word = |number: u64| B256::from(alloy_primitives::U256::from(number));
    let data = [word(block), B256::repeat_byte(3), B256::repeat_byte(4)].concat();
    json!({
        "address": INBOX,
        "topics": [BlindedInbox::Posted::SIGNATURE_HASH, word(first), word(last)],
        "data": Bytes::from(data),
        "blockNumber": format!("{block:#x}"), "blockHash": hash(block, 0), "transactionHash": hash(block, 9),
        "transactionIndex": "0x0", "logIndex": "0x0", "removed": false,
    })
}

/// What `HintRegistry` logs of a void run.
fn voided((first, last, block): (u64, u64, u64)) -> Value {
    let word = |number: u64| B256::from(alloy_primitives::U256::from(number));
    json!({
        "address": HINTS,
        "topics": [HintRegistry::Voided::SIGNATURE_HASH, word(first), word(last)],
        "data": "0x",
        "blockNumber": format!("{block:#x}"), "blockHash": hash(block, 0), "transactionHash": hash(block, 9),
        "transactionIndex": "0x0", "logIndex": "0x0", "removed": false,
    })
}

fn number(text: &Value) -> u64 {
    u64::from_str_radix(text.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// A client of the script, which asks for the newest final block every time.
fn client(script: Script) -> (L1Client, Arc<Mutex<Script>>) {
    let script = Arc::new(Mutex::new(script));
    let shared = Arc::clone(&script);
    let url = serve_batches(move |method, params, batch| {
        let mut script = shared.lock();
        script.calls += 1;
        if batch && let Some(refusal) = &script.no_batches {
            return refusal.clone();
        }
        Answer::Result(match method {
            "eth_getBlockByNumber" if params[0] == "finalized" => {
                block(script.finalized, script.fork, script.missing)
            }
            "eth_getBlockByNumber" if batch && script.head.is_some_and(|head| number(&params[0]) > head) => {
                Value::Null
            }
            "eth_getBlockByNumber" => block(number(&params[0]), script.fork, None),
            "eth_getLogs" => {
                let (from, to) = (number(&params[0]["fromBlock"]), number(&params[0]["toBlock"]));
                script.lowest = Some(script.lowest.map_or(from, |lowest| lowest.min(from)));
                if to - from >= script.range_limit {
                    let (code, message) = (RPC_LIMIT_EXCEEDED, "too many blocks");
                    return script.refusal.clone().unwrap_or(Answer::Error { code, message, data: None });
                }
                if script.head.is_some_and(|head| script.refuses && to > head) {
                    // The words of Geth and Reth.
                    let message = "block range extends beyond current head block";
                    return Answer::Error { code: -32602, message, data: None };
                }
                let to = to.min(script.head.unwrap_or(to));
                let within = |log: &&Value| (from..=to).contains(&number(&log["blockNumber"]));
                let runs: Vec<Value> = script.posted.iter().copied().map(posted).collect();
                let of_inbox = params[0]["address"] == json!(INBOX)
                    && params[0]["topics"][0] == json!(BlindedInbox::Posted::SIGNATURE_HASH);
                let void: Vec<Value> = script.voided.iter().copied().map(voided).collect();
                let of_hints = params[0]["address"] == json!(HINTS);
                let logs = if of_inbox {
                    &runs
                } else if of_hints {
                    &void
                } else {
                    &script.logs
                };
                logs.iter().filter(within).cloned().collect::<Vec<_>>().into()
            }
            other => panic!("{other} was not expected"),
        })
    });
    let deployment = Deployment { l1_chain_id: 1, inbox: INBOX };
    let contracts = L1Contracts {
        registry: Address::repeat_byte(2),
        fee_vault: VAULT,
        forced_queue: Address::repeat_byte(3),
        hint_registry: Address::repeat_byte(4),
        hint_verifier: Address::repeat_byte(5),
        deposit_portal: Address::repeat_byte(6),
        output_registry: Address::repeat_byte(7),
    };
    let mut config = L1Config::with_contracts(url, deployment, contracts);
    config.poll_interval_ms = 0;
    (L1Client::open(config).unwrap(), script)
}

fn script(finalized: u64) -> Script {
    Script { finalized, range_limit: u64::MAX, ..Script::default() }
}

#[tokio::test]
async fn the_newest_final_block_never_goes_back() {
    let (client, script) = client(script(10));
    assert_eq!(client.finalized().await.unwrap().number, 10);
    script.lock().finalized = 8;
    assert_eq!(client.finalized().await.unwrap().number, 10);
    script.lock().finalized = 12;
    assert_eq!(client.finalized().await.unwrap().number, 12);
    script.lock().fork = 1;
    let (before, now) = (hash(12, 0), hash(12, 1));
    assert_eq!(client.finalized().await, Err(L1Error::FinalityBroken { number: 12, before, now }));
}

#[tokio::test]
async fn answers_are_kept() {
    let (client, script) = client(script(10));
    assert_eq!(client.origin(11).await, Ok(None));
    let origin = client.origin(7).await.unwrap().unwrap();
    assert_eq!(
        (origin.hash, origin.timestamp, origin.base_fee, origin.blob_base_fee),
        (hash(7, 0), 1_007, 7, 1)
    );
    let calls = script.lock().calls;
    assert_eq!(client.origin(7).await, Ok(Some(origin)));
    assert_eq!(client.deposits(7, 7).await, Ok(vec![]));
    assert_eq!(script.lock().calls, calls);
}

#[tokio::test]
async fn the_poll_interval_is_kept() {
    let (client, script) = client(script(10));
    let mut config = client.config().clone();
    config.poll_interval_ms = 3_600_000;
    let client = L1Client::open(config).unwrap();
    client.finalized().await.unwrap();
    script.lock().finalized = 11;
    assert_eq!(client.finalized().await.unwrap().number, 10);
    assert_eq!(script.lock().calls, 1);
}

#[tokio::test]
async fn deposits_come_in_order_from_ranges_the_endpoint_takes() {
    let mut scripted = script(5_000);
    scripted.range_limit = 100;
    scripted.logs = vec![log(1, 0, 5), log(2, 0, 6), log(2, 1, 7), log(4_999, 3, u128::MAX)];
    let (client, _) = client(scripted);
    let deposits = client.deposits(1, 5_000).await.unwrap();
    let found: Vec<_> = deposits.iter().map(|deposit| (deposit.l1_block, deposit.amount)).collect();
    assert_eq!(found, [(2, 6), (2, 7), (4_999, u128::MAX)]);
    assert_eq!(deposits[0].payer, Address::repeat_byte(0xaa));
    assert_eq!(client.deposits(1, 5_001).await, Err(L1Error::NotFinal { number: 5_001, finalized: 5_000 }));
}

/// Where it is a proxy that finds it too much, or a node that has no word of its own for it.
#[tokio::test]
async fn fewer_blocks_are_asked_for_whoever_finds_them_too_many() {
    let too_many = [
        Answer::Status(413),
        Answer::Status(504),
        Answer::Error { code: -32000, message: "query returned more than 10000 results", data: None },
        // Geth and Reth, of the answers to a batch.
        Answer::Error { code: -32003, message: "response too large", data: None },
        Answer::Raw(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32011,"message":"The batch response was too large"}}"#,
        ),
    ];
    for refusal in too_many {
        let mut scripted = script(1_000);
        (scripted.range_limit, scripted.refusal) = (100, Some(refusal));
        scripted.logs = vec![log(2, 0, 6), log(999, 0, 7)];
        let (client, _) = client(scripted);
        assert_eq!(client.deposits(0, 1_000).await.map(|deposits| deposits.len()), Ok(2));
    }
}

#[tokio::test]
async fn a_limit_of_no_block_at_all_is_given_up() {
    let mut scripted = script(10);
    scripted.range_limit = 0;
    let (client, _) = client(scripted);
    let error = client.deposits(0, 10).await.unwrap_err();
    assert!(matches!(error, L1Error::Rpc { code: RPC_LIMIT_EXCEEDED, .. }), "{error:?}");
}

#[tokio::test]
async fn logs_that_do_not_fit_are_refused() {
    let change = |field: &str, to: Value| {
        let mut log = log(3, 0, 5);
        log[field] = to;
        log
    };
    let changed = [
        change("removed", true.into()),
        change("address", json!(Address::ZERO)),
        change("blockHash", Value::Null),
        change("topics", json!([B256::ZERO, B256::ZERO, B256::ZERO])),
        change("topics", json!([FeeVault::Deposited::SIGNATURE_HASH])),
        change("data", json!("0x01")),
        change("data", json!(B256::repeat_byte(0xff))),
    ];
    for log in changed {
        let mut scripted = script(10);
        scripted.logs = vec![log.clone()];
        let (client, _) = client(scripted);
        let error = client.deposits(0, 10).await.unwrap_err();
        assert!(matches!(error, L1Error::Malformed { .. }), "{log}: {error:?}");
    }
    let mut scripted = script(10);
    scripted.logs = vec![log(3, 1, 5), log(3, 1, 5)];
    let (repeated, _) = client(scripted);
    assert!(matches!(repeated.deposits(0, 10).await, Err(L1Error::Malformed { .. })));

    let mut scripted = script(10);
    scripted.logs = vec![change("blockHash", json!(hash(3, 1)))];
    let (forked, _) = client(scripted);
    let (before, now) = (hash(3, 0), hash(3, 1));
    assert_eq!(forked.deposits(0, 10).await, Err(L1Error::FinalityBroken { number: 3, before, now }));
}

#[tokio::test]
async fn a_later_start_reads_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let (first, script) = client(script(2_500));
    let mut config = first.config().clone();
    config.journal = Some(folder.path().join("l1.journal"));
    let start = || L1Client::open(config.clone()).unwrap();
    assert_eq!(start().posted_at(1).await, Ok(None));
    assert_eq!(script.lock().lowest.take(), Some(1));
    script.lock().finalized = 2_600;
    let second = start();
    assert_eq!(second.posted_at(1).await, Ok(None));
    assert_eq!(script.lock().lowest.take(), Some(2_501), "only what is new");
    // Not written again for a hundred blocks: the next start reads them once more, and nothing else.
    assert_eq!(start().posted_at(1).await, Ok(None));
    assert_eq!(script.lock().lowest.take(), Some(2_501));
    // An L1 that is behind is waited for, and one that has another block there is read anew.
    script.lock().finalized = 2_400;
    let behind = Err(L1Error::NotFinal { number: 2_500, finalized: 2_400 });
    assert_eq!(start().posted_at(1).await, behind);
    (script.lock().finalized, script.lock().fork) = (2_600, 1);
    assert_eq!(start().posted_at(1).await, Ok(None));
    assert_eq!(script.lock().lowest.take(), Some(1));
    std::fs::write(config.journal.as_ref().unwrap(), b"no journal").unwrap();
    assert_eq!(start().posted_at(1).await, Ok(None));
    assert_eq!(script.lock().lowest.take(), Some(1));
}

/// One of several servers is behind the one that told the final block.
#[tokio::test]
async fn a_server_without_a_final_block_is_asked_for_its_logs_again() {
    let mut scripted = script(10);
    (scripted.head, scripted.refuses) = (Some(8), true);
    scripted.logs = vec![log(3, 0, 5), log(9, 0, 6)];
    let (client, script) = client(scripted);
    let error = client.deposits(0, 10).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    script.lock().head = None;
    assert_eq!(client.deposits(0, 10).await.unwrap().len(), 2);
}

/// Such a server may leave out what it does not have, and say nothing. Where it takes no batches, another one may tell the
/// block.
#[tokio::test]
async fn a_posting_that_was_left_out_is_found_when_the_next_one_does_not_follow() {
    let folder = tempfile::tempdir().unwrap();
    let mut scripted = script(2_500);
    (scripted.head, scripted.posted) = (Some(120), vec![(1, 4, 100), (5, 6, 150)]);
    scripted.no_batches = Some(Answer::Status(400));
    let (first, script) = client(scripted);
    let mut config = first.config().clone();
    config.journal = Some(folder.path().join("l1.journal"));
    let start = || L1Client::open(config.clone()).unwrap();
    let client = start();
    assert_eq!(client.posted_at(4).await, Ok(Some(100)));
    assert_eq!(client.posted_at(5).await, Ok(None), "as far as that server is");
    let find = async |client: L1Client| {
        for _ in 0..2 {
            match client.posted_at(5).await {
                Err(error) => assert!(error.is_transient(), "{error:?}"),
                found => assert_eq!(found, Ok(Some(150))),
            }
        }
        assert_eq!(client.posted_at(5).await, Ok(Some(150)));
        assert_eq!(client.posted_at(7).await, Ok(Some(2_550)));
    };
    script.lock().head = None;
    script.lock().posted.push((7, 9, 2_550));
    script.lock().finalized = 2_600;
    // Whoever has it on disk finds it, too.
    let later = start();
    find(later).await;
    find(client).await;
    assert_eq!(start().posted_at(6).await, Ok(Some(150)), "and the disk has it");
}

/// Nothing follows a void run that would show that it was left out.
#[tokio::test]
async fn a_void_run_that_a_server_left_out_is_found() {
    let mut scripted = script(2_500);
    (scripted.head, scripted.voided) = (Some(120), vec![(1, 4, 150)]);
    let (client, script) = client(scripted);
    let behind = client.all_void_runs().await.unwrap_err();
    assert!(behind.is_transient(), "{behind:?}");
    script.lock().head = None;
    assert_eq!(client.all_void_runs().await, Ok(vec![(1, 4)]));
}

#[tokio::test]
async fn an_endpoint_without_batches_is_asked_one_after_the_other() {
    let refusals = [
        Answer::Status(400),
        Answer::Raw(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}"#),
        Answer::Raw(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"Batched requests are not supported"}}"#,
        ),
    ];
    for refusal in refusals {
        let mut scripted = script(1_000);
        scripted.no_batches = Some(refusal);
        scripted.logs = vec![log(2, 0, 6), log(999, 0, 7)];
        let (client, _) = client(scripted);
        assert_eq!(client.deposits(0, 1_000).await.map(|deposits| deposits.len()), Ok(2));
    }
}

#[tokio::test]
async fn blocks_before_their_time_are_refused() {
    for field in ["baseFeePerGas", "excessBlobGas", "parentBeaconBlockRoot"] {
        let (client, _) = client(Script { missing: Some(field), ..script(3) });
        let error = client.finalized().await.unwrap_err();
        assert!(matches!(error, L1Error::Malformed { .. }), "{field}: {error:?}");
    }
}

const REGISTRY: Address = Address::repeat_byte(2);
const HINTS: Address = Address::repeat_byte(4);
const SEQUENCER: Address = Address::repeat_byte(9);

/// The newest block of the L1 that [`connected`] connects to.
const NEWEST: u64 = 100;
const PORTAL: Address = Address::repeat_byte(6);
const OUTPUTS: Address = Address::repeat_byte(7);
const GOVERNOR: Address = Address::repeat_byte(8);
const KEY_VERIFIER: Address = Address::repeat_byte(10);
const STAKES: Address = Address::repeat_byte(11);

/// Connects to contracts that name each other, with the default deadlines and the one sequencer; at `stranger` is one that
/// has none of their functions. All is asked after the newest block, by its number.
async fn connected(settings: DeployedWith, stranger: Option<Address>) -> Result<L1Client, L1Error> {
    connected_from(settings, stranger, NEWEST).await
}

/// [`connected`], for a chain whose deposits count after `start_block`.
async fn connected_from(
    settings: DeployedWith,
    stranger: Option<Address>,
    start_block: u64,
) -> Result<L1Client, L1Error> {
    let (inbox, verifier) = (Address::repeat_byte(1), Address::repeat_byte(5));
    let url = serve(move |method, params| {
        let reverted = Answer::Error { code: 3, message: "execution reverted", data: Some("0x".to_owned()) };
        if matches!(method, "eth_getCode" | "eth_call") && params[1] != format!("{NEWEST:#x}") {
            // A server that lags has no contract after its own newest block.
            return Answer::Result(json!("0x"));
        }
        let result = match method {
            "eth_chainId" => json!("0x1"),
            "eth_getCode" => json!("0x01"),
            "eth_blockNumber" => json!(format!("{NEWEST:#x}")),
            "eth_call" => {
                let to: Address = params[0]["to"].as_str().unwrap().parse().unwrap();
                let data: Bytes = params[0]["input"].as_str().unwrap().parse().unwrap();
                let selector: [u8; 4] = data[..4].try_into().unwrap();
                if Some(to) == stranger {
                    return reverted;
                }
                json!(Bytes::from(match selector {
                    HintRegistry::inboxCall::SELECTOR => HintRegistry::inboxCall::abi_encode_returns(&inbox),
                    BlindedInbox::registryCall::SELECTOR => {
                        BlindedInbox::registryCall::abi_encode_returns(&REGISTRY)
                    }
                    BlindedInbox::queueCall::SELECTOR => {
                        BlindedInbox::queueCall::abi_encode_returns(&Address::repeat_byte(3))
                    }
                    HintRegistry::verifierCall::SELECTOR => {
                        HintRegistry::verifierCall::abi_encode_returns(&verifier)
                    }
                    FeeVault::claimDelayCall::SELECTOR => FeeVault::claimDelayCall::abi_encode_returns(&1),
                    OutputRegistry::lastProposedAtCall::SELECTOR => {
                        OutputRegistry::lastProposedAtCall::abi_encode_returns(&0)
                    }
                    DepositPortal::takesDepositsWithoutOutletCall::SELECTOR => {
                        DepositPortal::takesDepositsWithoutOutletCall::abi_encode_returns(&true)
                    }
                    DepositPortal::governorCall::SELECTOR => {
                        DepositPortal::governorCall::abi_encode_returns(&GOVERNOR)
                    }
                    CommitteeRegistry::keyVerifierCall::SELECTOR => {
                        CommitteeRegistry::keyVerifierCall::abi_encode_returns(&KEY_VERIFIER)
                    }
                    CommitteeRegistry::stakesCall::SELECTOR => {
                        CommitteeRegistry::stakesCall::abi_encode_returns(&STAKES)
                    }
                    EncryptionKeyVerifier::isEncryptionKeyCall::SELECTOR => {
                        EncryptionKeyVerifier::isEncryptionKeyCall::abi_encode_returns(&false)
                    }
                    CommitteeRegistry::firstSequencerCall::SELECTOR => {
                        CommitteeRegistry::firstSequencerCall::abi_encode_returns(&SEQUENCER)
                    }
                    BlindedInbox::timingCall::SELECTOR => {
                        let timing = crate::deploy::timing(&L1Timing::default());
                        BlindedInbox::timingCall::abi_encode_returns(&timing)
                    }
                    other => panic!("{other:?} was not expected"),
                }))
            }
            other => panic!("{other} was not expected"),
        };
        Answer::Result(result)
    });
    let deployment = Deployment { l1_chain_id: 1, inbox };
    let contracts = L1Contracts {
        registry: REGISTRY,
        fee_vault: VAULT,
        forced_queue: Address::repeat_byte(3),
        hint_registry: HINTS,
        hint_verifier: verifier,
        deposit_portal: PORTAL,
        output_registry: OUTPUTS,
    };
    let config = L1Config::with_contracts(url, deployment, contracts);
    L1Client::connect(L1Config { deployed_with: Some(settings), start_block, ..config }).await
}

#[tokio::test]
async fn settings_that_the_contracts_were_not_deployed_with_are_named() {
    let right = DeployedWith { timing: L1Timing::default(), sequencer: SEQUENCER };
    connected(right, None).await.unwrap();
    let sequencer = DeployedWith { sequencer: Address::repeat_byte(8), ..right };
    let mut wrong = vec![("sequencer", sequencer)];
    type Field = fn(&mut L1Timing) -> &mut u32;
    let fields: [(&str, Field); 7] = [
        ("timing.postingDeadline", |timing| &mut timing.posting_deadline),
        ("timing.forcedDelay", |timing| &mut timing.forced_delay),
        ("timing.answerWindow", |timing| &mut timing.answer_window),
        ("timing.hintDeadline", |timing| &mut timing.hint_deadline),
        ("timing.challengeWindow", |timing| &mut timing.challenge_window),
        ("timing.withdrawalDelay", |timing| &mut timing.withdrawal_delay),
        ("timing.maxOriginAgeSeconds", |timing| &mut timing.max_origin_age_seconds),
    ];
    for (name, field) in fields {
        let mut timing = right.timing;
        *field(&mut timing) += 1;
        wrong.push((name, DeployedWith { timing, ..right }));
    }
    for (name, settings) in wrong {
        match connected(settings, None).await {
            Err(L1Error::OtherSetting { field, .. }) => assert_eq!(field, name),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn an_address_with_another_contract_is_named() {
    let settings = DeployedWith { timing: L1Timing::default(), sequencer: SEQUENCER };
    for (address, contract) in [
        (HINTS, "HintRegistry"),
        (VAULT, "FeeVault"),
        (REGISTRY, "CommitteeRegistry"),
        (PORTAL, "DepositPortal"),
        (OUTPUTS, "OutputRegistry"),
        (KEY_VERIFIER, "EncryptionKeyVerifier"),
        (STAKES, "MemberStakes"),
    ] {
        let refused = connected(settings, Some(address)).await.unwrap_err().to_string();
        assert!(refused.contains(contract) && refused.contains(&address.to_string()), "{refused}");
    }
}

#[tokio::test]
async fn a_chain_does_not_begin_above_l1s_newest_block() {
    let settings = DeployedWith { timing: L1Timing::default(), sequencer: SEQUENCER };
    let error = connected_from(settings, None, NEWEST + 1).await.unwrap_err();
    assert_eq!(error, L1Error::OriginAhead { origin: NEWEST + 1, newest: NEWEST });
}

/// L-13, by EIP-4844's own formula with Osaka's fraction: whatever schedule L1 has at that block, and however full it is.
#[test]
fn the_blob_base_fee_is_a_function_of_the_excess_alone() {
    // fake_exponential of EIP-4844 with the factor 1, in numbers that do not overflow.
    let expected = |excess: u64| {
        let (numerator, denominator) = (U256::from(excess), U256::from(5_007_716u64));
        let (mut term, mut sum) = (denominator, U256::ZERO);
        let mut place = U256::ONE;
        while !term.is_zero() {
            sum += term;
            term = term * numerator / (denominator * place);
            place += U256::ONE;
        }
        (sum / denominator).to::<u128>()
    };
    assert_eq!(expected(0), 1);
    assert_eq!(expected(5_007_716 * 10), 22_026, "e to the tenth");
    // Times of the forks that changed targets and fractions on mainnet, and of ones to come.
    for time in [0u64, 1_746_612_311, 1_764_798_551, 1_767_747_671, u64::from(u32::MAX)] {
        for excess in [0u64, 1, 131_072, 3_338_477, 5_007_716, 11_684_671, 40_000_000, 100_000_000] {
            let mut value = block(7, 0, None);
            value["excessBlobGas"] = json!(format!("{excess:#x}"));
            value["timestamp"] = json!(format!("{time:#x}"));
            let origin = origin_of(serde_json::from_value(value).unwrap()).unwrap();
            assert_eq!(origin.blob_base_fee, expected(excess), "{excess} at {time}");
        }
    }
}
