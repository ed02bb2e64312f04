//! A sequencer that takes a third of what it is offered.

use std::collections::HashMap;

use alloy_primitives::B256;

use crate::common::{World, key, transfer};

/// Transactions that the proxy has room for, and three times as many that want it.
const HELD: u8 = 24;
const WANTED: u8 = 3 * HELD;

#[tokio::test]
async fn three_times_what_there_is_room_for_ends_in_a_block_or_with_a_reason() {
    let mut world = World::start().await;
    world.config.max_held_transactions = usize::from(HELD);
    world.config.bundle_window_ms = 1;
    world.sequencer.state.lock().takes_one_in = Some(3);
    let wallets = world.proxy().await;
    let mut held: Vec<B256> = Vec::new();
    for wallet in 10..10 + WANTED {
        let (raw, hash) = transfer(wallet, 0);
        match wallets.send(&raw).await {
            Ok(taken) => held.push(taken),
            Err(refusal) => {
                assert_eq!((refusal.reason.as_ref(), refusal.retry), ("pool_full", true), "{refusal}");
                assert!(
                    wallets.trace(hash).await.is_null(),
                    "what is refused is not held: {:?}",
                    key(wallet).address()
                );
            }
        }
    }
    assert_eq!(held.len(), usize::from(HELD), "none ends before it is in a batch");
    let mut envelopes = HashMap::new();
    for hash in &held {
        envelopes.insert(*hash, world.taken(&wallets, *hash).await);
    }
    let mut tries: HashMap<B256, usize> = HashMap::new();
    for (id, _) in &world.sequencer.state.lock().arrived {
        *tries.entry(*id).or_default() += 1;
    }
    let all: usize = tries.values().sum();
    assert_eq!(tries.len(), held.len(), "nothing is encrypted again because of it");
    assert!(all <= 3 * held.len(), "{all} tries, of which every third is taken");
    assert!(tries.values().all(|tries| *tries <= 16), "{tries:?}");
    for (hash, id) in envelopes {
        for server in [&world.sequencer, &world.node] {
            server.state.lock().execute(id, &[(hash, None)]);
        }
        assert_eq!(wallets.outcome(hash).await, "included");
    }
}
