//! How transactions become envelopes: sharing, waiting, and going again.

use alloy_primitives::B256;
use blindfold_client::{ProxyConfig, Resend, transaction::sign};
use blindfold_protocol::{Canonical, Envelope};
use blindfold_rpc::types::{EnvelopeState, Receipt};
use blindfold_rpc::{RpcError, SequencerUrls};
use serde_json::{Value, json};

use crate::common::{
    Double, EXPIRY_BATCHES, HEAD, State, World, fields, key, nonces, open, receipt, transfer,
};

#[tokio::test]
async fn what_arrives_within_the_window_shares_an_envelope_and_the_next_waits_until_the_users_node_has_it() {
    let mut world = World::start().await;
    world.config = ProxyConfig { bundle_window_ms: 5_000, ..world.config };
    let wallets = world.proxy().await;
    for nonce in [1, 0, 2] {
        wallets.send(&transfer(1, nonce).0).await.unwrap();
    }
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
    let (id, bytes) = world.sequencer.state.lock().arrived[0].clone();
    assert_eq!(nonces(&bytes), [0, 1, 2]);
    let header = Envelope::decode(&bytes).unwrap().header;
    assert_eq!((header.payer, header.gas_limit), (key(3).address(), 3 * 21_000));
    assert_eq!(header.expiry.number(), HEAD + EXPIRY_BATCHES);

    wallets.send(&transfer(1, 3).0).await.unwrap();
    wallets.send(&transfer(2, 0).0).await.unwrap();
    // Another sender does not wait for this one.
    world.sequencer.until("the other sender", |state| state.arrived.len() == 2).await;
    world.sequencer.called_again("blind_getReceipt", 5).await;
    let second = world.sequencer.state.lock().arrived[1].1.clone();
    assert_eq!(nonces(&second), [0]);
    assert_eq!(world.sequencer.state.lock().arrived.len(), 2, "the first is not sealed");

    // A sequencer that says so and seals the next one in front of it makes everybody read it in vain.
    world.sequencer.state.lock().set(id, EnvelopeState::Sealed);
    world.node.called_again("blind_getReceipt", 5).await;
    assert_eq!(world.sequencer.state.lock().arrived.len(), 2, "by the sequencer's word");
    world.node.state.lock().set(id, EnvelopeState::Certified);
    world.sequencer.until("the next envelope", |state| state.arrived.len() == 3).await;
    let third = world.sequencer.state.lock().arrived[2].1.clone();
    assert_eq!(nonces(&third), [3]);
}

/// Rule J-5: the very same envelope, so that it counts once.
#[tokio::test]
async fn an_envelope_goes_to_the_sequencer_that_takes_over() {
    let mut world = World::start().await;
    let other = Double::start("sequencer").await;
    world.config.sequencer_urls = SequencerUrls::new([world.sequencer.url(), other.url()]);
    let wallets = world.proxy().await;
    wallets.send(&transfer(1, 0).0).await.unwrap();
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
    let sent = world.sequencer.state.lock().arrived[0].clone();
    world.sequencer.leave().await;
    // It may not have come as far as to the records that both use.
    other.until("the envelope", |state| !state.arrived.is_empty()).await;
    assert_eq!(other.state.lock().arrived[0], sent);
    wallets.send(&transfer(2, 0).0).await.unwrap();
    other.until("the next one", |state| state.arrived.len() == 2).await;
}

/// What the validity rule says of an envelope that it leaves out.
fn left_out(id: B256, fault: &str) -> Receipt {
    Receipt { reason: Some(fault.to_owned()), ..receipt(id, EnvelopeState::Skipped) }
}

/// What was left out once may be sealed later by whoever has its bytes: no batch can hold the next one beside it.
#[tokio::test]
async fn an_unopened_envelope_goes_again_under_its_fee_nonce_and_not_for_ever() {
    let world = World::start().await;
    world.sequencer.state.lock().taken_as = EnvelopeState::Sealed;
    let wallets = world.proxy().await;
    let (raw, hash) = transfer(1, 0);
    wallets.send(&raw).await.unwrap();
    let mut common = Vec::new();
    for attempt in 0..3 {
        world.sequencer.until("an envelope", |state| state.arrived.len() == attempt + 1).await;
        let (id, bytes) = world.sequencer.state.lock().arrived[attempt].clone();
        assert_eq!(nonces(&bytes), [0]);
        let header = Envelope::decode(&bytes).unwrap().header;
        common.push((header.fee_nonce, header.expiry));
        // One that is not made in its place would have another expiry.
        world.node.state.lock().head += 1;
        world.node.state.lock().receipts.insert(id, left_out(id, "fee_too_low"));
    }
    world.node.called_again("blind_getReceipt", 5).await;
    assert!(wallets.trace(hash).await["outcome"].is_null(), "a batch may still take one of them");
    world.reach(HEAD + EXPIRY_BATCHES);
    common.dedup();
    assert_eq!(common.len(), 1);
    assert_eq!(world.sequencer.state.lock().envelopes().len(), 3);
    assert_eq!(wallets.outcome(hash).await, "fee_too_low");
    assert_eq!(wallets.trace(hash).await["revealed"], false);
    assert_eq!(wallets.proxy.held(), 0);
    // Given up is not for ever: the user may send it again.
    wallets.send(&raw).await.unwrap();
    world.sequencer.until("once more", |state| state.arrived.len() == 4).await;
}

#[tokio::test]
async fn what_others_have_read_is_not_sent_again_without_the_users_word() {
    for reason in ["nonce_too_high", "insufficient_funds", "block_gas_exhausted", "block_size_exhausted"] {
        let world = World::start().await;
        world.sequencer.state.lock().taken_as = EnvelopeState::Sealed;
        let wallets = world.proxy().await;
        let (raw, hash) = transfer(1, 0);
        wallets.send(&raw).await.unwrap();
        world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
        let (id, _) = world.sequencer.state.lock().arrived[0].clone();
        world.node.state.lock().execute(id, &[(hash, Some(reason))]);
        assert_eq!(wallets.outcome(hash).await, reason, "final and precise");
        let ended = json!({"envelope": id, "outcome": reason, "revealed": true});
        assert_eq!(wallets.trace(hash).await, ended);
        assert_eq!(wallets.proxy.held(), 0);
        // Another one's envelope leaves and this one stays: rounds have passed.
        let (other, _) = transfer(2, 0);
        wallets.send(&other).await.unwrap();
        world.sequencer.until("the other's", |state| state.arrived.len() == 2).await;
        let (_, bytes) = world.sequencer.state.lock().arrived[1].clone();
        assert_ne!(open(&bytes)[0].hash, hash);
        // The wallet's word.
        wallets.send(&raw).await.unwrap();
        assert_eq!(wallets.trace(hash).await["revealed"], true, "what was read stays read");
        world.sequencer.until("once more", |state| state.arrived.len() == 3).await;
    }
}

#[tokio::test]
async fn what_others_have_read_goes_again_where_the_user_says_so() {
    let mut world = World::start().await;
    world.config = ProxyConfig { resend: Resend::Revealed, ..world.config };
    world.sequencer.state.lock().taken_as = EnvelopeState::Sealed;
    let wallets = world.proxy().await;
    let (raw, hash) = transfer(1, 0);
    wallets.send(&raw).await.unwrap();
    for attempt in 0..3 {
        world.sequencer.until("an envelope", |state| state.arrived.len() == attempt + 1).await;
        let (id, _) = world.sequencer.state.lock().arrived[attempt].clone();
        world.node.state.lock().execute(id, &[(hash, Some("nonce_too_high"))]);
    }
    assert_eq!(wallets.outcome(hash).await, "nonce_too_high");
}

#[tokio::test]
async fn each_transaction_of_an_envelope_ends_in_its_own_way() {
    let mut world = World::start().await;
    world.config = ProxyConfig { bundle_window_ms: 5_000, ..world.config };
    world.sequencer.state.lock().taken_as = EnvelopeState::Sealed;
    let wallets = world.proxy().await;
    let transactions: Vec<_> = (0..3).map(|nonce| transfer(1, nonce)).collect();
    for (raw, _) in &transactions {
        wallets.send(raw).await.unwrap();
    }
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
    let (id, _) = world.sequencer.state.lock().arrived[0].clone();
    {
        let mut node = world.node.state.lock();
        let [(_, first), (_, second), (_, third)] = transactions[..] else { panic!("three") };
        node.execute(id, &[(first, None), (second, Some("intrinsic_gas")), (third, Some("nonce_too_high"))]);
        node.next_nonces.insert(key(1).address(), 1);
    }
    assert_eq!(wallets.outcome(transactions[0].1).await, "included");
    assert_eq!(wallets.outcome(transactions[1].1).await, "intrinsic_gas");
    assert_eq!(wallets.outcome(transactions[2].1).await, "nonce_too_high");
    // The user fills the gap with something better and sends the other once more; both go in one envelope.
    let better = sign(&blindfold_client::TransactionFields { gas_limit: 30_000, ..fields(1) }, &key(1));
    wallets.send(&better.0).await.unwrap();
    wallets.send(&transactions[2].0).await.unwrap();
    world.sequencer.until("both", |state| state.arrived.len() == 2).await;
    let bytes = world.sequencer.state.lock().arrived[1].1.clone();
    assert_eq!(nonces(&bytes), [1, 2]);
}

#[tokio::test]
async fn an_expired_envelope_goes_again_when_the_users_node_shows_that_no_batch_has_it() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    let (raw, _) = transfer(1, 0);
    wallets.send(&raw).await.unwrap();
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
    let (id, _) = world.sequencer.state.lock().arrived[0].clone();
    // The sequencer's word alone is not enough: it may have sealed the envelope all the same.
    world.sequencer.state.lock().set(id, EnvelopeState::Expired);
    world.sequencer.called_again("blind_getReceipt", 5).await;
    assert_eq!(world.sequencer.state.lock().envelopes().len(), 1);
    world.reach(HEAD + EXPIRY_BATCHES);
    world.sequencer.until("another envelope", |state| state.envelopes().len() == 2).await;
    let (_, second) = world.sequencer.state.lock().envelopes()[1].clone();
    assert_eq!(nonces(&second), [0]);
    assert_eq!(Envelope::decode(&second).unwrap().header.expiry.number(), HEAD + 2 * EXPIRY_BATCHES);
}

#[tokio::test]
async fn an_envelope_that_l1_made_a_header_since_counts_as_read() {
    let expired = |state: &mut State, id| state.set(id, EnvelopeState::Expired);
    // In a batch after L1's header, where the rule finds another fault first.
    let skipped = |state: &mut State, id| {
        state.set(id, EnvelopeState::Skipped);
        state.receipts.entry(id).and_modify(|receipt| receipt.reason = Some("fee_nonce_used".to_owned()));
    };
    for (said, known) in [(EnvelopeState::Pending, None), (EnvelopeState::Sealed, None)]
        .into_iter()
        .chain([(EnvelopeState::Sealed, Some(skipped as fn(&mut State, _)))])
    {
        let world = World::start().await;
        world.sequencer.state.lock().taken_as = said;
        let wallets = world.proxy().await;
        let (raw, hash) = transfer(1, 0);
        wallets.send(&raw).await.unwrap();
        world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
        let (id, bytes) = world.sequencer.state.lock().arrived[0].clone();
        assert_eq!(Envelope::decode(&bytes).unwrap().header.expiry.generation(), 0);
        world.sequencer.state.lock().generation = 1;
        expired(&mut world.sequencer.state.lock(), id);
        world.node.called_again("blind_getStatus", 5).await;
        assert!(wallets.trace(hash).await["outcome"].is_null(), "the sequencer's word is not enough");
        if let Some(known) = known {
            known(&mut world.node.state.lock(), id);
        }
        world.node.state.lock().generation = 1;
        assert_eq!(wallets.outcome(hash).await, "wrong_generation", "{said:?}");
        assert_eq!(wallets.trace(hash).await["revealed"], true);
        assert_eq!(world.sequencer.state.lock().envelopes().len(), 1);
    }
}

/// In whose generation an envelope is made, the sequencer does not say alone: of another one it would be valid later, when
/// what it carries has been read.
#[tokio::test]
async fn the_users_node_has_to_know_the_generation() {
    let world = World::start().await;
    world.sequencer.state.lock().generation = 1;
    let wallets = world.proxy().await;
    let (raw, _) = transfer(1, 0);
    wallets.send(&raw).await.unwrap();
    world.node.called_again("blind_getStatus", 3).await;
    assert!(world.sequencer.state.lock().arrived.is_empty());
    world.node.state.lock().generation = 1;
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
    let (id, bytes) = world.sequencer.state.lock().arrived[0].clone();
    assert_eq!(Envelope::decode(&bytes).unwrap().header.expiry.generation(), 1);
    // Back to another chain: batches up to its number say nothing of it.
    for server in [&world.sequencer, &world.node] {
        let mut state = server.state.lock();
        state.generation = 0;
        state.reach(HEAD + EXPIRY_BATCHES);
    }
    world.sequencer.state.lock().set(id, EnvelopeState::Expired);
    world.node.called_again("blind_getStatus", 5).await;
    assert_eq!(world.sequencer.state.lock().envelopes().len(), 1);
}

#[tokio::test]
async fn an_envelope_of_the_generation_before_counts_as_read_although_it_was_refused() {
    let world = World::start().await;
    let refusal = RpcError::refused("wrong_generation", "the chain is in another");
    world.sequencer.state.lock().refusals.push_back(refusal);
    world.sequencer.state.lock().taken_as = EnvelopeState::Sealed;
    let wallets = world.proxy().await;
    let (raw, hash) = transfer(1, 0);
    wallets.send(&raw).await.unwrap();
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
    world.sequencer.state.lock().generation = 7;
    world.node.called_again("blind_getStatus", 5).await;
    assert!(wallets.trace(hash).await["outcome"].is_null(), "the sequencer's word is not enough");
    world.node.state.lock().generation = 7;
    assert_eq!(wallets.outcome(hash).await, "wrong_generation");
    assert_eq!(wallets.trace(hash).await["revealed"], true);
    assert_eq!(world.sequencer.state.lock().envelopes().len(), 1);
}

#[tokio::test]
async fn an_envelope_that_the_sequencer_sealed_and_lost_does_not_hold_its_sender_up() {
    for said in [EnvelopeState::Sealed, EnvelopeState::Skipped, EnvelopeState::Pending] {
        let world = World::start().await;
        world.sequencer.state.lock().taken_as = said;
        let wallets = world.proxy().await;
        let (raw, hash) = transfer(1, 0);
        wallets.send(&raw).await.unwrap();
        world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
        world.node.called_again("blind_getStatus", 5).await;
        assert_eq!(world.sequencer.state.lock().envelopes().len(), 1);
        world.reach(HEAD + EXPIRY_BATCHES);
        world.sequencer.until("another envelope", |state| state.envelopes().len() == 2).await;
        let (id, _) = world.sequencer.state.lock().envelopes()[1].clone();
        world.sequencer.state.lock().set(id, EnvelopeState::Sealed);
        world.node.state.lock().execute(id, &[(hash, None)]);
        assert_eq!(wallets.outcome(hash).await, "included", "{said:?}");
    }
}

#[tokio::test]
async fn a_void_batch_or_a_malformed_envelope_may_have_been_read() {
    for (ending, outcome) in [(EnvelopeState::Void, "void"), (EnvelopeState::Malformed, "malformed")] {
        let world = World::start().await;
        world.sequencer.state.lock().taken_as = EnvelopeState::Sealed;
        let wallets = world.proxy().await;
        let (raw, hash) = transfer(1, 0);
        wallets.send(&raw).await.unwrap();
        world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
        let (id, _) = world.sequencer.state.lock().arrived[0].clone();
        world.node.state.lock().set(id, ending);
        assert_eq!(wallets.outcome(hash).await, outcome);
        assert_eq!(wallets.trace(hash).await["revealed"], true);
    }
}

/// Anybody can make a copy with another proof or signature, which has the same id, and have L1 force it into a batch.
#[tokio::test]
async fn a_skipped_copy_ends_no_envelope() {
    for fault in ["invalid_fee_signature", "invalid_point", "invalid_proof", "undecodable"] {
        for comes_later in [true, false] {
            let world = World::start().await;
            world.sequencer.state.lock().taken_as = EnvelopeState::Sealed;
            let wallets = world.proxy().await;
            let (raw, hash) = transfer(1, 0);
            wallets.send(&raw).await.unwrap();
            world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
            let (mut id, _) = world.sequencer.state.lock().arrived[0].clone();
            world.node.state.lock().receipts.insert(id, left_out(id, fault));
            world.node.called_again("blind_getReceipt", 5).await;
            assert!(wallets.trace(hash).await["outcome"].is_null(), "{fault}");
            assert_eq!(world.sequencer.state.lock().envelopes().len(), 1);
            if !comes_later {
                world.reach(HEAD + EXPIRY_BATCHES);
                world.sequencer.until("another envelope", |state| state.envelopes().len() == 2).await;
                id = world.sequencer.state.lock().envelopes()[1].0;
            }
            world.node.state.lock().execute(id, &[(hash, None)]);
            assert_eq!(wallets.outcome(hash).await, "included", "{fault}");
        }
    }
}

/// What depends on the batch may be past in a later one, and whoever has the bytes can put them there.
#[tokio::test]
async fn a_batch_that_leaves_an_envelope_out_ends_it_only_with_its_expiry() {
    for fault in ["duplicate", "gas_limit_too_high", "fee_nonce_used"] {
        let world = World::start().await;
        world.sequencer.state.lock().taken_as = EnvelopeState::Sealed;
        let wallets = world.proxy().await;
        let (raw, hash) = transfer(1, 0);
        wallets.send(&raw).await.unwrap();
        world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
        let (id, _) = world.sequencer.state.lock().arrived[0].clone();
        world.node.state.lock().receipts.insert(id, left_out(id, fault));
        world.node.called_again("blind_getReceipt", 5).await;
        assert!(wallets.trace(hash).await["outcome"].is_null(), "{fault}");
        assert_eq!(world.sequencer.state.lock().envelopes().len(), 1);
        world.node.state.lock().execute(id, &[(hash, None)]);
        assert_eq!(wallets.outcome(hash).await, "included", "{fault}");
    }
}

#[tokio::test]
async fn a_refusal_for_good_ends_the_envelope() {
    let world = World::start().await;
    let refusal = RpcError::refused("gas_limit_too_high", "too much gas");
    world.sequencer.state.lock().refusals.push_back(refusal);
    let wallets = world.proxy().await;
    let (raw, hash) = transfer(1, 0);
    wallets.send(&raw).await.unwrap();
    assert_eq!(wallets.outcome(hash).await, "gas_limit_too_high");
    assert_eq!(wallets.trace(hash).await["revealed"], true, "it may be sealed all the same");
    assert_eq!(wallets.proxy.held(), 0);
    // A mendable one is followed by another envelope.
    world.sequencer.state.lock().refusals.push_back(RpcError::refused("wrong_epoch", "next epoch"));
    wallets.send(&transfer(2, 0).0).await.unwrap();
    world.sequencer.until("another envelope", |state| state.envelopes().len() == 3).await;
}

/// Refused, and sealed all the same, in front of what it needed: the next envelope would have been an invitation to run in
/// front of what everybody had read.
#[tokio::test]
async fn what_was_sealed_although_it_was_refused_is_not_sent_once_more() {
    for fault in ["fee_too_low", "insufficient_funds", "wrong_epoch", "wrong_encryption_key"] {
        let world = World::start().await;
        world.sequencer.state.lock().refusals.push_back(RpcError::refused(fault, "says the sequencer"));
        world.sequencer.state.lock().taken_as = EnvelopeState::Sealed;
        let wallets = world.proxy().await;
        let (raw, hash) = transfer(1, 0);
        wallets.send(&raw).await.unwrap();
        world.sequencer.until("another envelope", |state| state.envelopes().len() == 2).await;
        let envelopes = world.sequencer.state.lock().envelopes();
        let [(first, bytes), (second, others)] = &envelopes[..] else { panic!("two") };
        let common = |bytes: &[u8]| {
            let header = Envelope::decode(bytes).unwrap().header;
            (header.fee_nonce, header.expiry)
        };
        assert_eq!(common(bytes), common(others), "{fault}");
        {
            let mut node = world.node.state.lock();
            node.receipts.insert(*second, left_out(*second, "fee_nonce_used"));
            node.set(*first, EnvelopeState::Sealed);
        }
        world.node.called_again("blind_getReceipt", 5).await;
        assert!(wallets.trace(hash).await["outcome"].is_null(), "it is in a batch that is not open yet");
        world.node.state.lock().execute(*first, &[(hash, Some("nonce_too_high"))]);
        assert_eq!(wallets.outcome(hash).await, "nonce_too_high", "{fault}");
        assert_eq!(wallets.trace(hash).await["revealed"], true);
        assert_eq!(world.sequencer.state.lock().envelopes().len(), 2);
    }
}

/// What another envelope in its place does not mend waits until no batch can hold the first one.
#[tokio::test]
async fn what_the_sequencer_says_of_nonce_and_expiry_is_not_believed() {
    for fault in ["fee_nonce_used", "expired", "expiry_too_far"] {
        let world = World::start().await;
        world.sequencer.state.lock().refusals.push_back(RpcError::refused(fault, "says the sequencer"));
        world.sequencer.state.lock().taken_as = EnvelopeState::Sealed;
        let wallets = world.proxy().await;
        let (raw, hash) = transfer(1, 0);
        wallets.send(&raw).await.unwrap();
        world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
        world.node.called_again("blind_getReceipt", 5).await;
        assert_eq!(world.sequencer.state.lock().envelopes().len(), 1, "{fault}");
        world.reach(HEAD + EXPIRY_BATCHES);
        world.sequencer.until("another envelope", |state| state.envelopes().len() == 2).await;
        let envelopes = world.sequencer.state.lock().envelopes();
        let [(_, bytes), (second, others)] = &envelopes[..] else { panic!("two") };
        let nonce = |bytes: &[u8]| Envelope::decode(bytes).unwrap().header.fee_nonce;
        assert_ne!(nonce(bytes), nonce(others));
        world.node.state.lock().execute(*second, &[(hash, None)]);
        assert_eq!(wallets.outcome(hash).await, "included");
    }
}

#[tokio::test]
async fn an_error_that_is_not_about_the_envelope_only_puts_it_off() {
    let world = World::start().await;
    let errors = [
        RpcError::busy("pool_full", "full"),
        RpcError::unknown_method("blind_sendEnvelope"),
        RpcError::new(-32000, "unspecified", false, "bad gateway"),
        RpcError::conflict("already_known", "it is there"),
        RpcError::new(blindfold_rpc::code::REFUSED, "fee_too_low", true, "for now"),
    ];
    let count = errors.len();
    world.sequencer.state.lock().refusals.extend(errors);
    let wallets = world.proxy().await;
    let (raw, hash) = transfer(1, 0);
    wallets.send(&raw).await.unwrap();
    world.sequencer.until("taken at last", |state| state.arrived.len() > count).await;
    assert_eq!(world.sequencer.state.lock().envelopes().len(), 1, "the same bytes each time");
    assert_eq!(wallets.trace(hash).await["outcome"], Value::Null);
}

#[tokio::test]
async fn a_nonce_used_by_another_way_ends_the_transaction_and_not_the_proxy() {
    let world = World::start().await;
    let wallets = world.proxy().await;
    let ((raw, hash), (there_raw, there)) = (transfer(1, 1), transfer(1, 2));
    wallets.send(&raw).await.unwrap();
    wallets.send(&there_raw).await.unwrap();
    {
        let mut node = world.node.state.lock();
        node.in_blocks.insert(there, json!({"transactionHash": there}));
        node.next_nonces.insert(key(1).address(), 3);
    }
    assert_eq!(wallets.outcome(hash).await, "nonce_too_low");
    assert_eq!(wallets.outcome(there).await, "included", "it came into a block by another way");
    wallets.send(&transfer(1, 3).0).await.unwrap();
    world.sequencer.until("the next envelope", |state| state.arrived.len() == 1).await;
}

#[tokio::test]
async fn a_transaction_in_a_block_by_an_earlier_envelope_counts_as_included() {
    let world = World::start().await;
    world.sequencer.state.lock().taken_as = EnvelopeState::Sealed;
    let wallets = world.proxy().await;
    let (raw, hash) = transfer(1, 0);
    wallets.send(&raw).await.unwrap();
    world.sequencer.until("an envelope", |state| !state.arrived.is_empty()).await;
    let (id, _) = world.sequencer.state.lock().arrived[0].clone();
    {
        let mut node = world.node.state.lock();
        node.execute(id, &[(hash, Some("nonce_too_low"))]);
        node.in_blocks.insert(hash, json!({"transactionHash": hash}));
    }
    assert_eq!(wallets.outcome(hash).await, "included");
}
