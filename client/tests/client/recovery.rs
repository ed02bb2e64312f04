//! Servers that go away, and a proxy that does.

use blindfold_rpc::types::EnvelopeState;
use blindfold_rpc::{RpcError, RunningRole};
use serde_json::{Value, json};

use crate::common::{World, nonces, transfer};

#[tokio::test]
async fn without_its_node_the_proxy_says_so_and_recovers() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    world.node.leave().await;
    let (raw, hash) = transfer(1, 0);
    for (method, params) in [
        ("eth_sendRawTransaction", json!([raw])),
        ("eth_blockNumber", json!([])),
        ("eth_getTransactionCount", json!([alloy_primitives::Address::ZERO, "pending"])),
        ("eth_getTransactionByHash", json!([hash])),
    ] {
        let refusal = wallets.call(method, params).await.unwrap_err();
        assert_eq!((&*refusal.reason, refusal.retry), ("upstream_unavailable", true), "{method}");
    }
    assert_eq!(wallets.proxy.held(), 0, "nothing was taken that was not answered for");
    world.node.come_back().await;
    assert_eq!(wallets.send(&raw).await.unwrap(), hash);
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
    // Away while an envelope is under way.
    let (id, _) = world.sequencer.state.lock().arrived[0].clone();
    world.node.leave().await;
    world.sequencer.state.lock().set(id, EnvelopeState::Sealed);
    world.node.state.lock().execute(id, &[(hash, None)]);
    assert_eq!(wallets.trace(hash).await["outcome"], Value::Null);
    world.node.come_back().await;
    assert_eq!(wallets.outcome(hash).await, "included");
}

#[tokio::test]
async fn without_the_sequencer_transactions_are_taken_and_sent_later() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    world.sequencer.leave().await;
    let (raw, hash) = transfer(1, 0);
    wallets.send(&raw).await.unwrap();
    let refusal = wallets.call("blind_getStatus", json!([])).await.unwrap_err();
    assert_eq!((&*refusal.reason, refusal.retry), ("upstream_unavailable", true));
    world.node.called_again("eth_getTransactionCount", 3).await;
    assert_eq!(wallets.trace(hash).await, json!({"envelope": null, "outcome": null, "revealed": false}));
    world.sequencer.come_back().await;
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
}

#[tokio::test]
async fn an_answer_that_was_lost_does_not_double_the_envelope() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    world.sequencer.state.lock().refuse_all = Some(RpcError::unavailable("lost", "no answer"));
    let (raw, hash) = transfer(1, 0);
    wallets.send(&raw).await.unwrap();
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
    let (id, _) = world.sequencer.state.lock().arrived[0].clone();
    {
        let mut sequencer = world.sequencer.state.lock();
        sequencer.set(id, EnvelopeState::Sealed);
        sequencer.refuse_all = Some(RpcError::conflict("already_known", "in a batch"));
    }
    world.node.state.lock().execute(id, &[(hash, None)]);
    assert_eq!(wallets.outcome(hash).await, "included");
    assert_eq!(world.sequencer.state.lock().envelopes().len(), 1);
}

#[tokio::test]
async fn after_a_restart_the_same_envelope_is_sent_again_and_nothing_is_lost_or_doubled() {
    let world = World::start().await;
    world.sequencer.state.lock().refuse_all = Some(RpcError::busy("overloaded", "later"));
    let wallets = world.proxy().await;
    let transactions: Vec<_> = [(1, 0), (1, 1), (2, 0), (2, 5)].map(|(by, nonce)| transfer(by, nonce)).into();
    wallets.send(&transactions[0].0).await.unwrap();
    wallets.send(&transactions[2].0).await.unwrap();
    world.sequencer.until("two envelopes", |state| state.envelopes().len() == 2).await;
    wallets.send(&transactions[1].0).await.unwrap();
    wallets.send(&transactions[3].0).await.unwrap();
    let before = world.sequencer.state.lock().envelopes();
    // Killed, not stopped.
    drop(wallets);
    let wallets = world.proxy().await;
    assert_eq!(wallets.proxy.held(), 4);
    {
        let mut sequencer = world.sequencer.state.lock();
        sequencer.arrived.clear();
        sequencer.refuse_all = None;
    }
    for (raw, _) in &transactions {
        assert_eq!(wallets.send(raw).await.unwrap_err().message, "already known");
    }
    world.sequencer.until("both again", |state| state.envelopes().len() == 2).await;
    world.sequencer.called_again("blind_getReceipt", 6).await;
    let mut after = world.sequencer.state.lock().envelopes();
    after.sort();
    let mut expected = before.clone();
    expected.sort();
    assert_eq!(after, expected, "the same ids and the same bytes");

    // Everything ends: the first sender's second transaction follows when the first is sealed.
    for (id, bytes) in before {
        let hashes: Vec<_> = crate::common::open(&bytes).iter().map(|inner| (inner.hash, None)).collect();
        world.sequencer.state.lock().set(id, EnvelopeState::Sealed);
        let sender = crate::common::open(&bytes)[0].sender;
        let mut node = world.node.state.lock();
        node.execute(id, &hashes);
        node.next_nonces.insert(sender, 1);
    }
    assert_eq!(wallets.outcome(transactions[0].1).await, "included");
    assert_eq!(wallets.outcome(transactions[2].1).await, "included");
    world.sequencer.until("the rest", |state| state.envelopes().len() == 3).await;
    let (_, third) = world.sequencer.state.lock().envelopes()[2].clone();
    assert_eq!(nonces(&third), [1]);
    assert_eq!(wallets.proxy.held(), 2, "one under way, one behind a gap");
}

#[tokio::test]
async fn what_was_finished_stays_finished_over_a_restart() {
    let world = World::start().await;
    world.sequencer.state.lock().taken_as = EnvelopeState::Sealed;
    let wallets = world.proxy().await;
    let (raw, hash) = transfer(1, 0);
    wallets.send(&raw).await.unwrap();
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
    let (id, _) = world.sequencer.state.lock().arrived[0].clone();
    world.node.state.lock().execute(id, &[(hash, None)]);
    assert_eq!(wallets.outcome(hash).await, "included");
    wallets.proxy.shutdown().await;
    let wallets = world.proxy().await;
    assert_eq!(wallets.trace(hash).await, json!({"envelope": id, "outcome": "included", "revealed": true}));
    assert_eq!(wallets.proxy.held(), 0);
    assert_eq!(world.sequencer.state.lock().arrived.len(), 1);
}
