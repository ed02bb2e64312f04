//! Killed after each durable step: nothing acknowledged is lost, nothing is signed twice.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::time::Duration;

use blindfold_chain::KeySigner;
use blindfold_kit::{envelope, payer, within};
use blindfold_protocol::B256;
use blindfold_rpc::{
    BlindApiClient, Feed, FeedConfig, FeedEvent, FeedItem, RunningRole, Topic, types::EnvelopeState,
};
use blindfold_sequencer::{ConfigError, Sequencer, SequencerConfig, StartError};
use blindfold_store::{SqlStore, StoreError};
use common::{Running, World};

#[tokio::test]
async fn killed_after_each_step_it_goes_on() {
    let world = World::with(|config, _| config.sealing.max_uncertified_headers = 2);
    let running = world.start_funded(&[1, 2]).await;

    // Acknowledged, with the committee away so that it stays in the mempool.
    let (first, second) = (envelope(1, 1), envelope(2, 1));
    running.send(&first).await.unwrap();
    running.sealed(2).await;
    running.send(&second).await.unwrap();
    let hashes = hashes(&running).await;
    running.handle.abort().await;

    let running = world.start().await;
    assert_eq!(self::hashes(&running).await, hashes, "the same headers");
    assert_eq!(running.state(first.id()).await, EnvelopeState::Sealed);
    assert_eq!(running.state(second.id()).await, EnvelopeState::Pending);
    running.acknowledge(&running.acknowledgement(1, 1).await).await.unwrap();
    running.acknowledge(&running.acknowledgement(1, 2).await).await.unwrap();
    running.handle.abort().await;

    // Acknowledgements are not kept, for members send theirs again: the third makes the certificate.
    let running = world.start().await;
    for member in 1..=3 {
        running.acknowledge(&running.acknowledgement(1, member).await).await.unwrap();
    }
    running.certified(1).await;
    running.sealed(3).await;
    assert_eq!(running.state(second.id()).await, EnvelopeState::Sealed);
    let hashes = self::hashes(&running).await;
    running.handle.abort().await;

    let running = world.start().await;
    assert_eq!(running.handle.tracker().certified().number, 1);
    assert_eq!(self::hashes(&running).await[..3], hashes[..3]);
    running.certify_through(3).await;
    running.hint(2).await;
    running.handle.abort().await;

    // Hints are kept; the rest of the second comes now, and the block after its closing header.
    let running = world.start().await;
    running.hint(3).await;
    world.clock.advance(1_000);
    running.sealed(4).await;
    running.certify_through(4).await;
    running.executed(1).await;
    let block = running.handle.execution().block.unwrap();
    running.handle.abort().await;

    let running = world.start().await;
    assert_eq!(running.handle.execution().block, Some(block));
    for envelope in [&first, &second] {
        assert_eq!(running.state(envelope.id()).await, EnvelopeState::Executed);
        assert_eq!(running.reason(envelope).await, "already_known");
    }
    assert_eq!(running.client.get_status().await.unwrap().block.hash, block.hash);
    // An open second that was closed before stays closed.
    world.clock.advance(5_000);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(running.handle.tracker().head().number, 4);
    running.handle.shutdown().await;
}

async fn hashes(running: &Running<'_>) -> Vec<B256> {
    let mut hashes = Vec::new();
    for number in 1..=running.handle.tracker().head().number {
        hashes.push(running.batch(number).await.hash);
    }
    hashes
}

#[tokio::test]
async fn an_open_second_is_closed_after_a_restart() {
    let world = World::new();
    let running = world.start_funded(&[1]).await;
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    running.handle.abort().await;
    world.clock.advance(3_000);
    let running = world.start().await;
    running.sealed(3).await;
    assert_eq!(running.batch(3).await.verdicts.len(), 0);
    running.handle.shutdown().await;
}

#[tokio::test]
async fn many_acknowledged_envelopes_survive_a_kill_in_the_middle_of_sealing() {
    let world = World::with(|config, _| config.sealing.max_batch_items = 2);
    let running = world.start_funded(&[1]).await;
    let mut ids = Vec::new();
    for nonce in 0..12 {
        ids.push(running.send(&envelope(1, nonce)).await.unwrap().id);
        if nonce == 7 {
            running.sealed(2).await;
        }
    }
    let seen = running.handle.tracker().head();
    running.handle.abort().await;
    let running = world.start().await;
    // At least what was seen, and the same.
    assert!(running.handle.tracker().head().number >= seen.number);
    assert_eq!(running.batch(seen.number).await.hash, seen.hash);
    running
        .eventually("all are sealed", async || {
            let mut sealed = 0;
            for id in &ids {
                sealed += usize::from(running.state(*id).await == EnvelopeState::Sealed);
            }
            sealed == ids.len()
        })
        .await;
    running.handle.shutdown().await;
}

/// Somebody else may have been given the port for a moment.
async fn start_at_its_port(world: &World) -> Running<'_> {
    within("its port", async {
        loop {
            match world.try_start(world.store().await).await {
                Ok(running) => return running,
                Err(StartError::Serve(_)) => tokio::time::sleep(Duration::from_millis(2)).await,
                Err(error) => panic!("{error}"),
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_subscriber_that_was_away_fetches_what_it_missed() {
    // A fixed port, so that the feed finds the sequencer again.
    let mut world = World::new();
    let running = world.start_funded(&[1]).await;
    let addr = running.handle.rpc_addr();
    running.handle.shutdown().await;
    world.config.rpc_addr = addr;
    let running = start_at_its_port(&world).await;
    let config = FeedConfig { backoff_initial_ms: 1, backoff_max_ms: 10, ..FeedConfig::default() };
    let mut feed = Feed::start(format!("ws://{addr}"), vec![Topic::Headers], config);
    assert_eq!(within("the feed", feed.next()).await, Some(FeedItem::Connected));
    running.send(&envelope(1, 1)).await.unwrap();
    running.sealed(2).await;
    running.handle.abort().await;
    let running = start_at_its_port(&world).await;
    running.send(&envelope(1, 2)).await.unwrap();
    running.sealed(3).await;
    let mut newest = 0;
    within("the feed comes back", async {
        loop {
            match feed.next().await.unwrap() {
                FeedItem::Reconnected => return,
                FeedItem::Event(FeedEvent::Header(header)) => newest = header.number,
                other => panic!("{other:?}"),
            }
        }
    })
    .await;
    assert!(newest <= 2);
    let head = running.client.get_status().await.unwrap().head;
    assert_eq!(head.number, 3);
    for number in newest + 1..=head.number {
        let info = running.batch(number).await;
        assert_eq!(info.sealed.decode().unwrap().header.hash(), info.hash);
    }
    // Headers without a certificate are announced again to whoever listens now.
    within("an announcement of the first", async {
        loop {
            if let FeedItem::Event(FeedEvent::Header(header)) = feed.next().await.unwrap()
                && header.number == 1
            {
                return;
            }
        }
    })
    .await;
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_second_process_on_the_same_disk_is_refused() {
    let world = World::new();
    let running = world.start().await;
    let memory = std::sync::Arc::new(SqlStore::in_memory().unwrap());
    assert!(matches!(world.try_start(memory).await.map(drop), Err(StartError::Lock(_))));
    let file = world.folder.path().join("sequencer.sqlite");
    assert!(matches!(SqlStore::open(file).map(drop), Err(StoreError::InUse(_))));
    running.handle.shutdown().await;
}

#[tokio::test]
async fn wrong_settings_do_not_start() {
    let world = World::new();
    let store = || std::sync::Arc::new(SqlStore::in_memory().unwrap());
    let start = async |config: SequencerConfig, change: fn(&mut blindfold_sequencer::SequencerDeps)| {
        let mut deps = world.deps(store());
        change(&mut deps);
        Sequencer::start(config, deps).await.map(drop).unwrap_err()
    };
    let config = || world.config.clone();
    let mut slot = config();
    slot.sealing.slot_ms = 0;
    assert!(matches!(start(slot, |_| {}).await, StartError::Config(ConfigError::OutOfRange { .. })));
    assert!(matches!(
        start(config(), |deps| deps.signer =
            std::sync::Arc::new(KeySigner::new(std::sync::Arc::new(payer(1)), deps.chain.deployment)))
        .await,
        StartError::WrongKey { .. }
    ));
    assert!(matches!(start(config(), |deps| deps.poster = None).await, StartError::NoPoster));
    let no_chain = |deps: &mut blindfold_sequencer::SequencerDeps| {
        let mut chain = (*deps.chain).clone();
        chain.chain_id = 0;
        deps.chain = std::sync::Arc::new(chain);
    };
    assert!(matches!(start(config(), no_chain).await, StartError::Chain(_)));
    let mut port = config();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    port.rpc_addr = taken.local_addr().unwrap();
    assert!(matches!(start(port, |_| {}).await, StartError::Serve(_)));
    world.l1.set_down(true);
    assert!(matches!(start(config(), |_| {}).await, StartError::Open(_)));
    world.l1.set_down(false);

    // A disk of another deployment.
    let running = world.start().await;
    running.handle.shutdown().await;
    let mut other = World::new();
    let mut chain = (*world.chain).clone();
    chain.deployment.l1_chain_id = 7;
    other.chain = std::sync::Arc::new(chain);
    assert!(matches!(
        other.try_start(world.store().await).await.map(drop),
        Err(StartError::Store(StoreError::Foreign { .. }))
    ));
}
