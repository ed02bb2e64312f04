//! A signer that is somewhere else: it signs what is durable, and nobody sees a header before.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use blindfold_chain::{HeaderSigner, SignerError};
use blindfold_kit::*;
use blindfold_protocol::{
    Address, B256, BatchHeader, Deployment, Promise, SequencerChange, Signature65, SigningKey,
};
use blindfold_rpc::{BlindApiClient, RunningRole};
use blindfold_sequencer::{Sequencer, SequencerDeps, StartError};
use blindfold_store::StoreError;
use common::*;
use parking_lot::Mutex;
use tokio::sync::watch;

/// What asking the signer comes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Open,
    /// No answer comes.
    Silent,
    /// It has ended.
    Gone,
}

/// Signs one header for a number, on a disk that outlives sequencers.
struct Elsewhere {
    key: Arc<SigningKey>,
    deployment: Deployment,
    signed: Mutex<BTreeMap<u64, B256>>,
    way: watch::Sender<Way>,
    asked: watch::Sender<u64>,
}

#[async_trait]
impl HeaderSigner for Elsewhere {
    fn address(&self) -> Address {
        self.key.address()
    }

    async fn sign_header(&self, header: &BatchHeader) -> Result<Signature65, SignerError> {
        let hash = header.hash();
        let first = *self.signed.lock().entry(header.number).or_insert(hash);
        if first != hash {
            return Err(SignerError::SecondHeader(format!(
                "{first} was signed for number {}",
                header.number
            )));
        }
        self.asked.send_replace(header.number);
        let way = *self.way.subscribe().wait_for(|way| *way != Way::Silent).await.unwrap();
        match way {
            Way::Gone => Err(SignerError::Refused("the connection ended for good".to_owned())),
            _ => Ok(self.key.sign(&header.signing_digest(&self.deployment))),
        }
    }

    async fn sign_promise(&self, id: B256, item_hash: B256, seal_by: u64) -> Result<Promise, SignerError> {
        match *self.way.borrow() {
            Way::Open => Ok(Promise::sign(&self.key, &self.deployment, id, item_hash, seal_by)),
            _ => Err(SignerError::Unavailable("it is away".to_owned())),
        }
    }
}

impl Elsewhere {
    fn of(world: &World) -> Arc<Self> {
        Arc::new(Self::new(world))
    }

    fn new(world: &World) -> Self {
        Self {
            key: Arc::clone(&world.key),
            deployment: world.chain.deployment,
            signed: Mutex::default(),
            way: watch::Sender::new(Way::Open),
            asked: watch::Sender::new(0),
        }
    }

    async fn asked_for(&self, number: u64) {
        within("the signer to be asked", self.asked.subscribe().wait_for(|asked| *asked >= number))
            .await
            .unwrap();
    }
}

async fn start<'w>(world: &'w World, signer: &Arc<Elsewhere>) -> Result<Running<'w>, StartError> {
    let signer: Arc<dyn HeaderSigner> = signer.clone();
    let deps = SequencerDeps { signer, ..world.deps(world.store().await) };
    Ok(world.running(Sequencer::start(world.config.clone(), deps).await?))
}

async fn running<'w>(world: &'w World, signer: &Arc<Elsewhere>) -> Running<'w> {
    world.l1.deposit(payer(1).address(), RICH);
    let running = start(world, signer).await.unwrap();
    running.sealed(1).await;
    running
}

/// Killed between the two: whoever comes after has the same header signed, and seals above it.
#[tokio::test]
async fn a_header_that_was_stored_and_not_signed_is_signed_by_the_next() {
    let world = World::new();
    let signer = Elsewhere::of(&world);
    let first = running(&world, &signer).await;
    signer.way.send_replace(Way::Silent);
    first.send(&envelope(1, 1)).await.unwrap();
    signer.asked_for(2).await;
    assert_eq!(
        first.client.get_batch(2).await.unwrap().map(|info| info.number),
        None,
        "nobody sees it before"
    );
    assert_eq!(first.handle.tracker().watch_sealed().borrow().number, 1);
    first.handle.abort().await;
    // What was under way ends as with its process.
    signer.way.send_replace(Way::Gone);
    let stored = world.store().await.batch(2).await.unwrap().unwrap();
    assert!(!stored.is_signed());
    signer.way.send_replace(Way::Open);
    let next = start(&world, &signer).await.unwrap();
    let info = next.batch(2).await;
    let sealed: blindfold_protocol::SealedBatch = info.sealed.decode().unwrap();
    assert_eq!(sealed.header.hash(), stored.hash);
    assert_eq!(sealed.signed_header().signer(&world.chain.deployment), Ok(world.key.address()));
    next.certify_through(2).await;
    next.send(&envelope(1, 2)).await.unwrap();
    next.sealed(3).await;
    next.handle.shutdown().await;
}

/// The next start takes it back, and seals when L1 has made a header of its number.
#[tokio::test]
async fn a_second_header_ends_the_sequencer_and_no_later_start() {
    let world = World::new();
    let signer = Elsewhere::of(&world);
    let first = running(&world, &signer).await;
    let parent = first.handle.tracker().with_state(Clone::clone);
    first.certify_through(1).await;
    signer.signed.lock().insert(2, B256::repeat_byte(7));
    first.send(&envelope(1, 1)).await.unwrap();
    let failure = within("the end", first.handle.failed()).await;
    assert!(failure.to_string().contains("the signer refuses: 0x0707"), "{failure}");
    first.handle.abort().await;
    for _ in 0..2 {
        let next = start(&world, &signer).await.unwrap();
        assert_eq!(next.handle.tracker().head().number, 1);
        blocked_by(&next, "signed a header for number 2").await;
        next.handle.shutdown().await;
    }
    let next = start(&world, &signer).await.unwrap();
    made_by_l1(&world, &parent).await;
    next.sealed(2).await;
    next.send(&envelope_with(1, 2, |fields| fields.generation = 1)).await.unwrap();
    next.sealed(3).await;
    next.handle.shutdown().await;
}

/// What it refuses for another reason is the operator's to see: nothing is taken back.
#[tokio::test]
async fn a_header_that_the_signer_does_not_sign_now_is_kept() {
    let world = World::new();
    let signer = Elsewhere::of(&world);
    let first = running(&world, &signer).await;
    signer.way.send_replace(Way::Gone);
    first.send(&envelope(1, 1)).await.unwrap();
    let failure = within("the end", first.handle.failed()).await;
    assert!(failure.to_string().contains("ended for good"), "{failure}");
    first.handle.abort().await;
    for _ in 0..2 {
        let Err(refused) = start(&world, &signer).await else { panic!("it starts") };
        assert!(matches!(refused, StartError::Signer(_)), "{refused}");
    }
    assert!(!world.store().await.batch(2).await.unwrap().unwrap().is_signed());
}

/// L1 was faster than whoever asks again: the header gave way, and nobody is asked for it.
#[tokio::test]
async fn what_gave_way_to_l1_is_not_asked_for() {
    let world = World::new();
    let signer = Elsewhere::of(&world);
    let first = running(&world, &signer).await;
    let parent = first.handle.tracker().with_state(Clone::clone);
    first.certify_through(1).await;
    signer.way.send_replace(Way::Gone);
    first.send(&envelope(1, 1)).await.unwrap();
    within("the end", first.handle.failed()).await;
    first.handle.abort().await;
    made_by_l1(&world, &parent).await;
    let next = start(&world, &signer).await.unwrap();
    assert_eq!(next.handle.tracker().head().number, 2);
    next.handle.shutdown().await;
}

/// The next key takes up a copy of the records whose newest header the key before it has not signed.
#[tokio::test]
async fn the_next_key_starts_on_records_whose_newest_header_is_not_signed() {
    let world = World::new();
    let signer = Elsewhere::of(&world);
    let first = running(&world, &signer).await;
    first.certify_through(1).await;
    signer.way.send_replace(Way::Gone);
    first.send(&envelope(1, 1)).await.unwrap();
    within("the end", first.handle.failed()).await;
    first.handle.abort().await;
    let next_key = Arc::new(SigningKey::from_bytes(&[0x5e; 32]).unwrap());
    let named = |from_block, sequencer| SequencerChange { from_block, sequencer };
    let from = world.l1.advance(1);
    *world.l1.sequencers.lock() = vec![named(0, world.key.address()), named(from, next_key.address())];
    world.l1.advance(blindfold_protocol::limits::HANDOVER_BLOCKS + 1);
    let next_signer = Arc::new(Elsewhere { key: next_key, ..Elsewhere::new(&world) });
    let next = start(&world, &next_signer).await.unwrap();
    assert_eq!(next.handle.tracker().head().number, 1);
    next.handle.shutdown().await;
}

#[tokio::test]
async fn a_promise_that_is_not_signed_is_kept_and_asked_for_again() {
    let world = World::new();
    let signer = Elsewhere::of(&world);
    let running = running(&world, &signer).await;
    signer.way.send_replace(Way::Silent);
    let bytes = blindfold_protocol::Canonical::encode(&envelope(1, 1));
    let refused = running.send_bytes(bytes.clone(), true).await.unwrap_err();
    assert_eq!((refused.reason.as_ref(), refused.retry), ("signer", true));
    signer.way.send_replace(Way::Open);
    let promise = running.send_bytes(bytes, true).await.unwrap().promise;
    assert!(promise.is_some());
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_signature_is_added_once() {
    let world = World::new();
    let signer = Elsewhere::of(&world);
    let first = running(&world, &signer).await;
    let store = Arc::clone(first.handle.tracker().store());
    let signed = store.batch(1).await.unwrap().unwrap().sealed.signature;
    assert_eq!(store.put_signature(1, signed).await, Ok(()), "the same again");
    let other = Signature65([1; 65]);
    assert!(matches!(store.put_signature(1, other).await, Err(StoreError::Inconsistent { .. })));
    assert!(matches!(store.put_signature(9, other).await, Err(StoreError::Missing { .. })));
    first.handle.shutdown().await;
}
