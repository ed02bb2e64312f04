//! Following a node, executing its items of kind 1, serving the state, and going on after being killed anywhere.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;

use alloy_primitives::keccak256;
use blindfold_bte::Decided;
use blindfold_chain::{L1Error, VoidRun};
use blindfold_coprocessor::limits::{PRUNE_INTERVAL_VERSIONS, PRUNE_RETRY_BATCHES};
use blindfold_coprocessor::{ConfigError, ExecutionState, StartError};
use blindfold_kit::*;
use blindfold_protocol::{Address, B256};
use blindfold_rpc::confidential::ConfidentialApiClient;
use blindfold_rpc::{ReceivedError, RunningRole};
use blindfold_store::{ConfidentialHead, ConfidentialStore, Store, StoreError};
use common::disk::{Disk, Moment};
use common::tally::COUNTER;
use common::*;

const ALICE: Address = Address::repeat_byte(1);
const BOB: Address = Address::repeat_byte(2);

/// Four batches: two transactions; one refused and one applied; none; bundles beside ordinary ones.
async fn story(world: &World) {
    world.batch(0, &[confidential(1, &[&[1, 10]]), malformed(1, 2), confidential(3, &[&[2, 5]])]).await;
    world.batch(250, &[confidential(4, &[&[1, 250], &[1, 1]])]).await;
    world.batch(500, &[]).await;
    world.batch(750, &[envelope(1, 5), confidential(6, &[b"no transaction", &[2, 1]])]).await;
}

/// What the fast backend refuses, the portable one takes, and it is counted.
#[tokio::test]
async fn a_backend_that_refuses_right_hints_shows() {
    let mut world = World::new().await;
    world.backend = Arc::new(Decided::new(Box::new(Watched::erring())));
    let folder = tempfile::tempdir().unwrap();
    let disk = opened(&folder.path().join("store.sqlite")).await;
    let coprocessor = world.try_start(Arc::clone(&disk) as _, disk.clone()).await.unwrap();
    world.batch(0, &[confidential(1, &[&[1, 10]])]).await;
    executed(&coprocessor, 1).await;
    assert!(coprocessor.counters().overruled.get(&["hint"]).get() > 0);
    assert_eq!(coprocessor.counters().overruled.get(&["opening"]).get(), 0);
}

async fn opened(path: &std::path::Path) -> Arc<Disk> {
    Disk::open(path, None).await
}

#[tokio::test]
async fn items_of_kind_one_are_executed_in_committed_order_and_served() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let disk = opened(&folder.path().join("store.sqlite")).await;
    let coprocessor = world.try_start(Arc::clone(&disk) as _, disk.clone()).await.unwrap();
    story(&world).await;
    executed(&coprocessor, 4).await;

    let client = client(coprocessor.rpc_addr());
    let status = client.get_status().await.unwrap();
    assert_eq!((status.batch, status.sequence, status.version, status.accounts), (4, 6, 4, 2));
    assert_eq!((status.counters["transactions_applied"], status.counters["transactions_refused"]), (4, 2));
    assert_eq!(client.get_parameters().await.unwrap(), deployment());
    let alice = client.get_account(ALICE, None).await.unwrap().unwrap();
    assert_eq!((alice.index, alice.nonce, alice.version), (0, 11, 4));
    assert_eq!(alice.state_root, status.state_root);
    assert_eq!(alice.siblings.len(), 32);
    assert_eq!(
        alice.siblings[..2],
        [keccak256([6]), B256::repeat_byte(1)],
        "Bob's leaf, then empty subtrees"
    );
    assert_eq!(client.get_account(ALICE, Some(2)).await.unwrap().unwrap().nonce, 10, "as batch 1 left it");
    assert_eq!(client.get_account(ALICE, Some(0)).await.unwrap(), None);
    assert_eq!(client.get_account(COUNTER, None).await.unwrap(), None);
    for (version, reason) in [(1, "version_not_kept"), (5, "version_not_reached")] {
        let refused = client.get_account(ALICE, Some(version)).await.unwrap_err();
        assert_eq!(ReceivedError::from(refused).reason(), reason);
    }
    assert_eq!(client.get_public_balance(COUNTER).await.unwrap().balance, 4);
    assert_eq!(client.get_public_balance(ALICE).await.unwrap().balance, 0);

    let refused = client.get_transaction(keccak256([1, 250])).await.unwrap().unwrap();
    assert_eq!((refused.sequence, refused.version, refused.number), (3, 2, 2));
    assert_eq!((refused.item, refused.position), (0, 1));
    assert_eq!((refused.applied, refused.reason.as_deref()), (false, Some("overflow")));
    assert_eq!(client.get_transaction(B256::ZERO).await.unwrap(), None);
    let transfers = client.get_transfers(BOB, 0, None).await.unwrap();
    assert_eq!(transfers.iter().map(|one| one.sequence).collect::<Vec<_>>(), [2, 6]);
    assert_eq!(client.get_transfers(BOB, 3, Some(1)).await.unwrap(), transfers[1..]);
    assert_eq!(
        client.get_state_root(2).await.unwrap(),
        Some(refused.state_root),
        "a refused one changes nothing"
    );
    assert_eq!(client.get_state_root(4).await.unwrap(), Some(status.state_root));
    assert_eq!(client.get_state_root(5).await.unwrap(), None);
    coprocessor.shutdown().await;
}

/// Old versions are forgotten beside callers: an account was told to be missing that is there, or with siblings of an empty
/// tree.
#[tokio::test]
async fn an_account_of_a_version_that_is_forgotten_while_it_is_read_is_refused() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let disk = opened(&folder.path().join("store.sqlite")).await;
    let coprocessor = world.try_start(Arc::clone(&disk) as _, disk.clone()).await.unwrap();
    story(&world).await;
    executed(&coprocessor, 4).await;
    let client = client(coprocessor.rpc_addr());
    assert_eq!(client.get_account(ALICE, Some(2)).await.unwrap().unwrap().nonce, 10);
    disk.forget_at_next_account(4);
    let refused = client.get_account(ALICE, Some(2)).await.unwrap_err();
    assert_eq!(ReceivedError::from(refused).reason(), "version_not_kept");
    assert_eq!(client.get_account(ALICE, None).await.unwrap().unwrap().nonce, 11);
    coprocessor.shutdown().await;
}

/// All of it was tried anew with every batch.
#[tokio::test]
async fn old_versions_that_could_not_be_forgotten_are_so_some_batches_later() {
    let mut world = World::new().await;
    world.config.kept_versions = 1;
    let folder = tempfile::tempdir().unwrap();
    let disk = opened(&folder.path().join("store.sqlite")).await;
    let coprocessor = world.try_start(Arc::clone(&disk) as _, disk.clone()).await.unwrap();
    disk.refuse_to_forget(StoreError::Failed("the server did not answer in time".into()));
    world.batch(0, &[confidential(1, &[&[1, 10]])]).await;
    let many = [&[1_u8, 0][..]; PRUNE_INTERVAL_VERSIONS as usize / 3 + 1];
    world.batch(250, &[2, 3, 4].map(|nonce| confidential(nonce, &many))).await;
    let (failed, again) = (2, 2 + PRUNE_RETRY_BATCHES);
    for number in failed + 1..again {
        world.batch(number * 250, &[]).await;
    }
    executed(&coprocessor, again - 1).await;
    assert_eq!(disk.steps(), 1);
    assert!(disk.confidential_head_at(1).await.unwrap().is_some());
    for number in again..again + 2 {
        world.batch(number * 250, &[]).await;
    }
    // The one before is done with it.
    executed(&coprocessor, again + 1).await;
    assert_eq!(disk.steps(), 2);
    assert_eq!(disk.confidential_head_at(1).await.unwrap(), None);
    coprocessor.shutdown().await;
}

/// Everything that a coprocessor has stored of its state.
async fn stored(disk: &Disk) -> (Option<ConfidentialHead>, Vec<String>) {
    let mut all = Vec::new();
    for version in 0..=6 {
        all.push(format!("{:?}", disk.confidential_state_root(version).await.unwrap()));
    }
    all.push(format!("{:?}", disk.confidential_accounts(0, 10).await.unwrap()));
    all.push(format!("{:?}", disk.public_balances().await.unwrap()));
    for party in [ALICE, BOB] {
        all.push(format!("{:?}", disk.confidential_transactions_of(party, 0, 10).await.unwrap()));
    }
    (disk.confidential_head().await.unwrap(), all)
}

#[tokio::test]
async fn killed_before_or_after_any_write_it_goes_on_to_the_same_state() {
    let world = World::new().await;
    story(&world).await;
    let folder = tempfile::tempdir().unwrap();
    let disk = opened(&folder.path().join("whole.sqlite")).await;
    let coprocessor = world.try_start(Arc::clone(&disk) as _, disk.clone()).await.unwrap();
    executed(&coprocessor, 4).await;
    coprocessor.shutdown().await;
    let expected = stored(&disk).await;

    let mut kills = 0;
    for write in 0.. {
        let mut finished = false;
        for moment in [Moment::Before, Moment::After] {
            let path = folder.path().join(format!("{write}-{moment:?}.sqlite"));
            let disk = Disk::open(&path, Some((write, moment))).await;
            let (store, state) = (Arc::clone(&disk) as Arc<dyn Store>, disk.clone());
            let starting = async {
                let coprocessor = world.try_start(store, state).await.unwrap();
                executed(&coprocessor, 4).await;
                // The last write may be the hanging one only after it was announced: nothing is left to kill.
            };
            tokio::select! {
                () = disk.hangs.notified() => kills += 1,
                () = starting => finished = true,
            }
            drop(disk);
            let disk = opened(&path).await;
            let coprocessor = world.try_start(Arc::clone(&disk) as _, disk.clone()).await.unwrap();
            executed(&coprocessor, 4).await;
            coprocessor.shutdown().await;
            assert_eq!(stored(&disk).await, expected, "killed {moment:?} write {write}");
        }
        if finished {
            break;
        }
    }
    println!("{kills} kills");
    assert!(kills >= 2 * 12, "binding, four batches with certificate, hints and state: {kills}");
}

#[tokio::test]
async fn a_disk_that_refuses_for_a_while_is_tried_again_and_one_that_is_broken_halts() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let disk = opened(&folder.path().join("store.sqlite")).await;
    let coprocessor = world.try_start(Arc::clone(&disk) as _, disk.clone()).await.unwrap();
    disk.refuse(vec![StoreError::Failed("full".into()); 2]);
    world.batch(0, &[confidential(1, &[&[1, 10]])]).await;
    executed(&coprocessor, 1).await;
    assert_eq!(coprocessor.counters().retries.get(), 2);
    disk.refuse(vec![StoreError::Stopped("broken".into())]);
    world.batch(250, &[confidential(2, &[&[1, 10]])]).await;
    halts(&coprocessor, "broken").await;
    let status = client(coprocessor.rpc_addr()).get_status().await.unwrap();
    assert_eq!((status.batch, status.state.as_str()), (1, "halted"), "what is not durable is not told");
}

/// One answer that is of no use may be that of a server behind the others: execution goes on by itself when L1 does.
#[tokio::test]
async fn an_answer_of_l1_that_is_of_no_use_stops_execution_for_a_moment_only() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let disk = opened(&folder.path().join("store.sqlite")).await;
    let coprocessor = world.try_start(Arc::clone(&disk) as _, disk.clone()).await.unwrap();
    let sealed = world.certified(0, &[confidential(1, &[&[1, 10]])]).await;
    *world.l1.fault.lock() = Some(L1Error::nonsense("scripted"));
    halts(&coprocessor, "scripted").await;
    *world.l1.fault.lock() = None;
    world.hint(&sealed).await;
    executed(&coprocessor, 1).await;
    assert_eq!(coprocessor.counters().transactions_applied.get(), 1);
    coprocessor.shutdown().await;
}

async fn halts(coprocessor: &blindfold_coprocessor::Coprocessor, why: &str) {
    let mut status = coprocessor.watch_status();
    let halted =
        |state: &ExecutionState| matches!(state, ExecutionState::Halted(reason) if reason.contains(why));
    within("a halt", status.wait_for(|status| halted(&status.state))).await.unwrap();
}

#[tokio::test]
async fn a_void_batch_holds_nothing_and_one_that_becomes_void_later_halts() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let disk = opened(&path).await;
    let coprocessor = world.try_start(Arc::clone(&disk) as _, disk.clone()).await.unwrap();
    world.l1.void_runs.lock().push(VoidRun { first: 1, last: 1 });
    world.certified(0, &[confidential(1, &[&[1, 10]])]).await;
    world.batch(250, &[confidential(2, &[&[2, 10]])]).await;
    executed(&coprocessor, 2).await;
    assert_eq!(disk.confidential_account(ALICE, 10).await.unwrap(), None);
    assert!(disk.confidential_account(BOB, 10).await.unwrap().is_some());
    world.l1.void_runs.lock().push(VoidRun { first: 2, last: 2 });
    world.certified(500, &[confidential(3, &[&[2, 10]])]).await;
    halts(&coprocessor, "declared batch 2 void").await;
    coprocessor.shutdown().await;
    // It does not get better by starting again.
    let coprocessor = world.try_start(Arc::clone(&disk) as _, disk.clone()).await.unwrap();
    halts(&coprocessor, "declared batch 2 void").await;
}

#[tokio::test]
async fn wrong_settings_and_foreign_files_are_refused() {
    let mut world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let disk = opened(&folder.path().join("store.sqlite")).await;
    disk.bind(&chain_config().deployment, "full_node").await.unwrap();
    let started = world.try_start(Arc::clone(&disk) as _, disk.clone()).await;
    assert!(matches!(started.err(), Some(StartError::Store(StoreError::Foreign { name: "role", .. }))));
    world.config.node_url = "ws://x".to_owned();
    let started = world.try_start(Arc::clone(&disk) as _, disk.clone()).await;
    assert!(matches!(started.err(), Some(StartError::Config(ConfigError::Url))));
}
