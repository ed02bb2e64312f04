//! `eth_sendRawTransactionSync`: one call from the signed transaction to its receipt (EIP-7966).

use blindfold_rpc::types::EnvelopeState;
use serde_json::json;

use crate::common::{World, transfer};

const METHOD: &str = "eth_sendRawTransactionSync";

#[tokio::test]
async fn who_waits_gets_the_receipt_of_the_users_node() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    let (raw, hash) = transfer(1, 0);
    let sending = wallets.call(METHOD, json!([raw]));
    let executing = async {
        world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
        let (id, _) = world.sequencer.state.lock().arrived[0].clone();
        world.sequencer.state.lock().set(id, EnvelopeState::Executed);
        world.node.state.lock().execute(id, &[(hash, None)]);
    };
    let (receipt, ()) = tokio::join!(sending, executing);
    let receipt = receipt.unwrap();
    assert_eq!(receipt, json!({"transactionHash": hash, "blockNumber": "0x1"}));
    // Once more, as after an answer that was lost: no second envelope.
    assert_eq!(wallets.call(METHOD, json!([raw, 1_000])).await.unwrap(), receipt);
    assert_eq!(world.sequencer.state.lock().arrived.len(), 1);
    assert_eq!(world.node.called(METHOD), 0, "nobody sees it as it is");
}

#[tokio::test]
async fn when_the_time_is_over_the_transaction_goes_on() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    let (raw, hash) = transfer(1, 0);
    for _ in 0..2 {
        let refusal = wallets.call(METHOD, json!([raw, 50])).await.unwrap_err();
        assert_eq!(refusal.code, 4, "{refusal}");
    }
    assert_eq!(wallets.proxy.held(), 1);
    for timeout in [0, 50_001] {
        let refusal = wallets.call(METHOD, json!([raw, timeout])).await.unwrap_err();
        assert_eq!(&*refusal.reason, "invalid_timeout");
    }
    let (id, _) = {
        world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
        world.sequencer.state.lock().arrived[0].clone()
    };
    world.sequencer.state.lock().set(id, EnvelopeState::Executed);
    world.node.state.lock().execute(id, &[(hash, None)]);
    assert_eq!(wallets.outcome(hash).await, "included");
}

#[tokio::test]
async fn a_transaction_that_ends_outside_a_block_is_an_error_with_the_reason() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    let (raw, hash) = transfer(1, 0);
    let sending = wallets.call(METHOD, json!([raw]));
    let ending = async {
        world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
        let (id, _) = world.sequencer.state.lock().arrived[0].clone();
        world.sequencer.state.lock().set(id, EnvelopeState::Executed);
        world.node.state.lock().execute(id, &[(hash, Some("nonce_too_low"))]);
    };
    let (refused, ()) = tokio::join!(sending, ending);
    let refusal = refused.unwrap_err();
    assert_eq!((refusal.code, &*refusal.reason), (-32_000, "not_included"), "{refusal}");
    assert!(refusal.message.contains("nonce_too_low"), "{refusal}");
    let garbage = wallets.call(METHOD, json!(["0x02"])).await.unwrap_err();
    assert_eq!(&*garbage.reason, "invalid_transaction");
}
