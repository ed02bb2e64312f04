//! Every refusal of `eth_sendRawTransaction`, in the words of geth.

use alloy_consensus::{SignableTransaction, TxEnvelope, TxLegacy};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Bytes, Signature, U256};
use blindfold_client::proxy::MAX_TRANSACTION_BYTES;
use blindfold_client::transaction::MAX_TRANSACTION_GAS;
use blindfold_client::{Proxy, ProxyConfig, ProxyError, TransactionFields, transaction::sign};
use blindfold_rpc::RunningRole;
use serde_json::json;

use crate::common::{Double, GAS, World, chain, fields, key, transfer};

fn signed(fields: &TransactionFields) -> Bytes {
    sign(fields, &key(1)).0
}

#[tokio::test]
async fn what_no_server_need_be_asked_about() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    world.node.state.lock().calls.clear();
    let unprotected = TxLegacy { chain_id: None, gas_limit: GAS, ..Default::default() };
    let unprotected = unprotected.into_signed(Signature::new(U256::from(1), U256::from(1), false));
    let cases: [(Bytes, &str); 8] = [
        (Bytes::new(), "rlp: "),
        (b"\xf8garbage".to_vec().into(), "rlp: "),
        ([signed(&fields(0)).as_ref(), &[0]].concat().into(), "rlp: "),
        (
            signed(&TransactionFields { chain_id: 1, ..fields(0) }),
            "invalid chain id for signer: have 1 want 901",
        ),
        (
            TxEnvelope::from(unprotected).encoded_2718().into(),
            "only replay-protected (EIP-155) transactions allowed over RPC",
        ),
        (vec![0x03, 0xc0].into(), "transaction type not supported"),
        (
            signed(&TransactionFields { gas_limit: MAX_TRANSACTION_GAS + 1, ..fields(0) }),
            "transaction gas limit too high",
        ),
        (vec![0x02; MAX_TRANSACTION_BYTES + 1].into(), "oversized data"),
    ];
    for (raw, words) in cases {
        let refusal = wallets.send(&raw).await.unwrap_err();
        assert!(refusal.message.starts_with(words), "{refusal}");
        assert_eq!((refusal.code, refusal.retry), (-32000, false), "{refusal}");
    }
    for params in [json!([]), json!(["no hex"]), json!([7]), json!(["0x00", "0x00"])] {
        let refusal = wallets.call("eth_sendRawTransaction", params).await.unwrap_err();
        assert_eq!(refusal.code, -32602, "{refusal}");
    }
    assert!(world.node.state.lock().calls.is_empty(), "no server was asked");
    assert_eq!(wallets.proxy.held(), 0);
}

#[tokio::test]
async fn what_the_state_of_the_chain_forbids() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    world.node.state.lock().next_nonces.insert(key(1).address(), 5);
    let refusal = wallets.send(&transfer(1, 4).0).await.unwrap_err();
    assert_eq!(refusal.message, "nonce too low: next nonce 5, tx nonce 4");
    world.node.state.lock().balance = U256::from(GAS * 100);
    let refusal = wallets.send(&transfer(1, 5).0).await.unwrap_err();
    let words = format!(
        "insufficient funds for gas * price + value: address {} have {} want {}",
        key(1).address(),
        GAS * 100,
        GAS * 100 + 1
    );
    assert_eq!(refusal.message, words);
    assert_eq!(wallets.proxy.held(), 0);
}

#[tokio::test]
async fn what_the_pool_has_no_place_for() {
    let mut world = World::start().await;
    world.config = ProxyConfig { max_held_transactions: 3, max_held_per_sender: 2, ..world.config };
    let wallets = world.proxy().await;
    let refused = async |raw: Bytes| {
        let refusal = wallets.send(&raw).await.unwrap_err();
        (refusal.message, refusal.reason.into_owned(), refusal.retry)
    };
    let expected = |words: &str, reason: &str, retry| (words.to_owned(), reason.to_owned(), retry);
    // A gap before them keeps these transactions where they are.
    for nonce in [7, 8] {
        wallets.send(&transfer(1, nonce).0).await.unwrap();
    }
    assert_eq!(refused(transfer(1, 7).0).await, expected("already known", "already_known", false));
    let other = TransactionFields { value: U256::from(2), ..fields(7) };
    let words = "replacement transaction underpriced";
    assert_eq!(refused(signed(&other)).await, expected(words, "replacement_underpriced", false));
    let words = "account limit exceeded: 2 transactions are held for this sender";
    assert_eq!(refused(transfer(1, 9).0).await, expected(words, "sender_limit", true));
    wallets.send(&transfer(2, 7).0).await.unwrap();
    assert_eq!(refused(transfer(4, 7).0).await, expected("txpool is full", "pool_full", true));
    assert_eq!(wallets.proxy.held(), 3);
}

#[tokio::test]
async fn a_transaction_in_a_block_is_known_for_good() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    let (raw, hash) = transfer(1, 0);
    wallets.send(&raw).await.unwrap();
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
    let id = world.sequencer.state.lock().arrived[0].0;
    world.node.state.lock().execute(id, &[(hash, None)]);
    world.sequencer.state.lock().set(id, blindfold_rpc::types::EnvelopeState::Sealed);
    assert_eq!(wallets.outcome(hash).await, "included");
    // The node double has not moved the nonce on: only the journal still knows the transaction.
    assert_eq!(wallets.send(&raw).await.unwrap_err().message, "already known");
}

#[tokio::test]
async fn a_transaction_whose_block_was_taken_back_comes_again() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    let (raw, hash) = transfer(1, 0);
    wallets.send(&raw).await.unwrap();
    world.sequencer.until("an envelope", |state| state.arrived.len() == 1).await;
    let id = world.sequencer.state.lock().arrived[0].0;
    world.node.state.lock().execute(id, &[(hash, None)]);
    world.sequencer.state.lock().set(id, blindfold_rpc::types::EnvelopeState::Sealed);
    assert_eq!(wallets.outcome(hash).await, "included");
    world.node.state.lock().in_blocks.remove(&hash);
    assert_eq!(wallets.send(&raw).await.unwrap(), hash);
    world.sequencer.until("another envelope", |state| state.envelopes().len() == 2).await;
}

#[tokio::test]
async fn a_node_that_is_the_sequencer_is_refused_before_anything_opens() {
    let world = World::start().await;
    let config = ProxyConfig { node_url: world.sequencer.url() + "/", ..world.config.clone() };
    let started = Proxy::start(config, chain(), key(3), world.registry.clone(), None).await;
    assert!(matches!(started.err(), Some(ProxyError::Config(_))));
    assert!(!world.state().exists());
    // By another name it still says what it is.
    let disguised = Double::start("sequencer").await;
    let config = ProxyConfig { node_url: disguised.url(), ..world.config.clone() };
    let started = Proxy::start(config, chain(), key(3), world.registry.clone(), None).await;
    assert!(matches!(started.err(), Some(ProxyError::NodeIsSequencer)));
}

#[tokio::test]
async fn a_journal_of_another_payer_or_of_a_running_proxy_is_refused() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    let again = Proxy::start(world.config.clone(), chain(), key(3), world.registry.clone(), None).await;
    let error = again.err().expect("in use").to_string();
    assert!(error.contains("in use by another proxy"), "{error}");
    wallets.proxy.shutdown().await;
    drop(world.proxy().await);
    let error = loop {
        let other = Proxy::start(world.config.clone(), chain(), key(4), world.registry.clone(), None).await;
        let error = other.err().expect("another payer").to_string();
        if !error.contains("in use") {
            break error;
        }
        tokio::task::yield_now().await;
    };
    assert!(error.contains("belongs to"), "{error}");
}
