//! Who sees what: the sequencer gets envelopes and questions about envelopes, and nothing else.

use alloy_primitives::{B256, keccak256};
use blindfold_client::ProxyConfig;
use blindfold_protocol::{Canonical, Envelope, Epoch};
use blindfold_rpc::{NODE_ONLY_METHODS, READ_METHODS, types::EncryptionKeyInfo};
use serde_json::{Value, json};

use crate::common::{BASE_FEE, EXPIRY_BATCHES, GAS_BASE_FEE, HEAD, World, deal, fields, key, transfer};

/// All that the sequencer may ever be asked by a proxy.
const FOR_THE_SEQUENCER: &[&str] =
    &["blind_getStatus", "blind_getEncryptionKey", "blind_sendEnvelope", "blind_getReceipt"];

#[tokio::test]
async fn reads_and_simulations_go_to_the_node_and_never_to_the_sequencer() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    let call = json!([{"to": fields(0).to, "data": "0x01"}, "latest"]);
    for method in NODE_ONLY_METHODS {
        wallets.call(method, call.clone()).await.unwrap();
        assert_eq!(world.node.called(method), 1, "{method}");
    }
    for method in READ_METHODS {
        wallets.call(method, json!([B256::ZERO, "latest"])).await.ok();
    }
    wallets.send(&transfer(1, 0).0).await.unwrap();
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
    world.sequencer.called_again("blind_getReceipt", 3).await;
    let seen = world.sequencer.state.lock().calls.clone();
    assert!(seen.iter().all(|method| FOR_THE_SEQUENCER.contains(&method.as_str())), "{seen:?}");
    let raw = transfer(1, 0).0;
    let state = world.sequencer.state.lock();
    for (_, bytes) in &state.arrived {
        let shown = bytes.windows(20).any(|window| raw.windows(20).any(|plain| plain == window));
        assert!(!shown, "twenty bytes of the plaintext are in the envelope");
    }
}

#[tokio::test]
async fn envelope_calls_go_to_the_sequencer() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    assert_eq!(wallets.call("blind_getStatus", json!([])).await.unwrap()["role"], "sequencer");
    let account = wallets.call("blind_getFeeAccount", json!([key(1).address()])).await.unwrap();
    assert_eq!(account["address"], json!(key(1).address()));
    assert_eq!(world.node.called("blind_getFeeAccount"), 0);
}

#[tokio::test]
async fn what_is_not_served_is_refused_and_handed_to_nobody() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    let refused = [
        ("eth_subscribe", "unknown_method"),
        ("eth_newFilter", "unknown_method"),
        ("eth_newPendingTransactionFilter", "unknown_method"),
        ("txpool_content", "unknown_method"),
        ("debug_traceTransaction", "unknown_method"),
        ("admin_peers", "unknown_method"),
        ("blind_submitHints", "unknown_method"),
        ("", "unknown_method"),
        ("eth_sendTransaction", "plaintext_refused"),
        ("eth_simulateV1", "plaintext_refused"),
        ("debug_traceCall", "plaintext_refused"),
    ];
    for (method, reason) in refused {
        let refusal = wallets.call(method, json!(["0x"])).await.unwrap_err();
        assert_eq!((&*refusal.reason, refusal.retry), (reason, false), "{method}");
        assert_eq!((world.node.called(method), world.sequencer.called(method)), (0, 0), "{method}");
    }
    assert_eq!(wallets.call("eth_accounts", json!([])).await.unwrap(), json!([]));
}

#[tokio::test]
async fn pending_queries_answer_as_a_wallet_expects() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    let sender = key(1).address();
    world.node.state.lock().next_nonces.insert(sender, 4);
    let count = async |block: Value| {
        let params = if block.is_null() { json!([sender]) } else { json!([sender, block]) };
        wallets.call("eth_getTransactionCount", params).await.unwrap()
    };
    assert_eq!(count(json!("pending")).await, "0x4");
    let (raw, hash) = transfer(1, 4);
    assert_eq!(wallets.send(&raw).await.unwrap(), hash);
    assert_eq!(hash, keccak256(&raw));
    wallets.send(&transfer(1, 5).0).await.unwrap();
    wallets.send(&transfer(1, 7).0).await.unwrap();
    assert_eq!(count(json!("pending")).await, "0x6", "up to the gap");
    assert_eq!(count(json!("latest")).await, "0x4");
    assert_eq!(count(Value::Null).await, "0x4");
    assert_eq!(count(json!({"blockNumber": "0x1"})).await, "0x4");

    let pending = wallets.call("eth_getTransactionByHash", json!([hash])).await.unwrap();
    let expected = [
        ("hash", json!(hash)),
        ("from", json!(sender)),
        ("to", json!(fields(0).to)),
        ("nonce", json!("0x4")),
        ("gas", json!("0x5208")),
        ("value", json!("0x1")),
        ("gasPrice", json!("0x64")),
        ("type", json!("0x2")),
        ("blockHash", Value::Null),
        ("blockNumber", Value::Null),
        ("transactionIndex", Value::Null),
    ];
    for (field, value) in expected {
        assert_eq!(pending[field], value, "{field} of {pending}");
    }
    assert_eq!(wallets.call("eth_getTransactionReceipt", json!([hash])).await.unwrap(), Value::Null);
    assert_eq!(wallets.call("eth_getTransactionByHash", json!([B256::ZERO])).await.unwrap(), Value::Null);
    assert_eq!(wallets.trace(B256::ZERO).await, Value::Null);
    // Once it is in a block the node's answer counts.
    world.node.state.lock().in_blocks.insert(hash, json!({"blockNumber": "0x9"}));
    let mined = wallets.call("eth_getTransactionByHash", json!([hash])).await.unwrap();
    assert_eq!(mined["blockNumber"], "0x9");
}

#[tokio::test]
async fn nothing_is_encrypted_to_a_key_that_l1_and_sequencer_do_not_agree_on() {
    let world = World::start().await;
    world.sequencer.state.lock().keys[0].encryption_key_hash = B256::repeat_byte(0xee);
    let wallets = world.proxy().await;
    let (raw, hash) = transfer(1, 0);
    wallets.send(&raw).await.unwrap();
    world.sequencer.called_again("blind_getEncryptionKey", 3).await;
    assert!(world.sequencer.state.lock().arrived.is_empty());
    assert_eq!(wallets.trace(hash).await, json!({"envelope": null, "outcome": null, "revealed": false}));
    world.sequencer.state.lock().keys[0].encryption_key_hash = crate::common::epoch().encryption_key_hash;
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
}

#[tokio::test]
async fn nothing_is_encrypted_to_bytes_that_l1_does_not_vouch_for() {
    let world = World::start().await;
    *world.registry.key_bytes.lock() = deal(8).encryption_key.to_bytes().to_vec();
    let wallets = world.proxy().await;
    wallets.send(&transfer(1, 0).0).await.unwrap();
    world.sequencer.called_again("blind_getStatus", 3).await;
    *world.registry.key_bytes.lock() = vec![7; 5];
    world.sequencer.called_again("blind_getStatus", 3).await;
    *world.registry.away.lock() = true;
    world.sequencer.called_again("blind_getStatus", 3).await;
    assert!(world.sequencer.state.lock().arrived.is_empty());
    *world.registry.away.lock() = false;
    *world.registry.key_bytes.lock() = crate::common::committee().encryption_key.to_bytes().to_vec();
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
}

/// Ordering goes on while L1 is away; so do those who send.
#[tokio::test]
async fn what_l1_said_of_the_committee_counts_while_l1_is_away() {
    let mut world = World::start().await;
    world.config = ProxyConfig { key_refresh_ms: 1, ..world.config };
    let wallets = world.proxy().await;
    wallets.send(&transfer(1, 0).0).await.unwrap();
    world.sequencer.until("an envelope", |state| state.arrived.len() == 1).await;
    *world.registry.away.lock() = true;
    wallets.send(&transfer(2, 0).0).await.unwrap();
    world.sequencer.until("another", |state| state.arrived.len() == 2).await;
}

/// A committee out of office, or not yet in it, an expiry far away, and a fee of ether: the sequencer chooses none of it.
#[tokio::test]
async fn epoch_expiry_and_offer_go_by_the_users_node_and_not_by_the_sequencer() {
    let last = HEAD + 10;
    for claimed in [HEAD, last, last - 1, HEAD - 20] {
        let world = World::start().await;
        {
            let mut epochs = world.registry.epochs.lock();
            let next = Epoch { epoch: 2, first: last + 1, ..epochs[0].clone() };
            epochs[0].last = last;
            epochs.push(next);
            let mut sequencer = world.sequencer.state.lock();
            let next = EncryptionKeyInfo { epoch: 2, first_number: last + 1, ..sequencer.keys[0].clone() };
            sequencer.keys[0].last_number = last;
            sequencer.keys.push(next);
            sequencer.head = claimed;
            (sequencer.base_fee, sequencer.gas_base_fee) = (BASE_FEE << 30, GAS_BASE_FEE << 30);
        }
        let wallets = world.proxy().await;
        wallets.send(&transfer(1, 0).0).await.unwrap();
        world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
        let header = Envelope::decode(&world.sequencer.state.lock().arrived[0].1).unwrap().header;
        assert_eq!((header.epoch, header.expiry.number()), (1, last), "{claimed}");
        assert_eq!((header.max_fee, header.max_gas_fee), (2 * BASE_FEE, 2 * GAS_BASE_FEE), "{claimed}");
    }
}

/// An envelope of a node that lags would be over before it is there.
#[tokio::test]
async fn nothing_is_sent_while_node_and_sequencer_are_an_envelopes_life_apart() {
    for claimed in [u64::MAX, HEAD + EXPIRY_BATCHES, HEAD - EXPIRY_BATCHES] {
        let world = World::start().await;
        world.sequencer.state.lock().head = claimed;
        let wallets = world.proxy().await;
        wallets.send(&transfer(1, 0).0).await.unwrap();
        world.sequencer.called_again("blind_getStatus", 3).await;
        assert!(world.sequencer.state.lock().arrived.is_empty(), "{claimed}");
        world.sequencer.state.lock().head = HEAD + EXPIRY_BATCHES - 1;
        world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
    }
}
