//! Going back to what L1 holds: where a disk and L1 part, and what is taken in its place.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use blindfold_chain::{Fork, L1Reader, RebuildError, Sealed, Tracker, WayBack, limits::KEPT_POSTED_HEADERS};
use blindfold_kit::{
    PostedRuns, ScriptedExecution, ScriptedL1, Sealer, certificate_of, certified, chain_config, envelope,
    envelope_with, l1, memory, sequencer_key, tracker_on,
};
use blindfold_l1::{DataError, PostedData};
use blindfold_protocol::{Address, B256};

async fn find(tracker: &Tracker, posted: &PostedRuns) -> Result<Fork, RebuildError> {
    Fork::find(&chain_config(), tracker.store().as_ref(), posted).await
}

/// Certified here: 1, which L1 holds, and 2 and 3, in place of which L1 made 2. Above it something was sealed again.
struct Parted {
    l1: Arc<ScriptedL1>,
    posted: Arc<PostedRuns>,
    node: Tracker,
    first: Sealed,
    made: B256,
    after: Sealed,
}

async fn parted() -> Parted {
    let l1 = l1();
    let (truth, other) = (Sealer::new(&l1).await, Sealer::new(&l1).await);
    let first = truth.seal(0, vec![]).await;
    other.seal(0, vec![]).await;
    let node = tracker_on(memory(), &l1).await;
    node.store().keep_ledgers_from(0).await.unwrap();
    node.accept_certified(&certified(&first.batch)).await.unwrap();
    for nonce in 1..=2 {
        let displaced = other.seal_envelopes(250 * nonce, &[envelope(1, nonce)]).await;
        other.certify(&displaced).await;
        node.accept_certified(&certified(&displaced.batch)).await.unwrap();
    }
    let posted = PostedRuns::new(&l1);
    let certified_at = |l1_block, sealed: &Sealed| {
        posted.post(l1_block, vec![(*sealed.batch).clone()], Some(certificate_of(&sealed.batch)));
    };
    certified_at(5, &first);
    *l1.finalized.lock() = 300;
    let made = truth.l1_header(5_000, vec![]);
    truth.tracker.accept_l1_header(&made).await.unwrap();
    posted.post(300, vec![made.batch()], None);
    let item = envelope_with(1, 7, |fields| fields.generation = 1);
    let after = truth.seal_envelopes(6_000, &[item]).await;
    *l1.finalized.lock() = 310;
    certified_at(310, &after);
    Parted { l1, posted, node, first, made: made.header.hash(), after }
}

#[tokio::test]
async fn the_fork_is_found_from_the_end_and_what_l1_holds_is_taken() {
    let Parted { l1, posted, node, first, made, after } = parted().await;
    let store = Arc::clone(node.store());
    let fork = find(&node, &posted).await.unwrap();
    assert_eq!((fork.agreed.number, fork.agreed.hash), (1, first.hash));
    let other = fork.other.unwrap();
    assert_eq!((other.header.hash(), other.by_l1), (made, true));
    // What is signed decides nothing where L1 made the header.
    store.put_acknowledged(2, B256::repeat_byte(2), 1).await.unwrap();
    let (key, client) = (sequencer_key().address(), ScriptedExecution::new());
    fork.check(&chain_config(), store.as_ref(), l1.as_ref(), client.as_ref(), key).await.unwrap();
    drop(node);
    fork.go_back(store.as_ref()).await.unwrap();
    // Nothing that was sealed in between waits: there may be days of it.
    assert!(store.pending_envelopes().await.unwrap().is_empty());
    for nonce in 1..=2 {
        let outcome = store.envelope_outcome(envelope(1, nonce).id()).await.unwrap();
        assert_eq!(outcome.as_deref(), Some("wrong_generation"));
    }
    for _ in 0..2 {
        let node = tracker_on(Arc::clone(&store), &l1).await;
        fork.take_posted(&node, posted.as_ref(), Some(key), async |_| {}).await.unwrap();
        assert_eq!((node.head().number, node.certified().hash), (3, after.hash));
    }
    assert_eq!(store.acknowledged(3).await.unwrap(), Some(after.hash), "it binds");
    // Nothing to do any more; nor where L1 is behind.
    let node = tracker_on(store, &l1).await;
    assert_eq!(find(&node, &posted).await.unwrap().other, None);
    posted.runs.lock().truncate(1);
    let fork = find(&node, &posted).await.unwrap();
    assert_eq!((fork.agreed.number, fork.other), (1, None));
    posted.runs.lock().clear();
    let fork = find(&node, &posted).await.unwrap();
    assert_eq!((fork.agreed.number, fork.other), (0, None));
    fork.go_back(node.store().as_ref()).await.unwrap();
    assert_eq!(node.store().heads().await.unwrap().certified, Some(3));
}

#[tokio::test]
async fn what_is_signed_twice_and_what_lacks_data_is_named_or_left_to_others() {
    let Parted { l1, posted, node, first, after, .. } = parted().await;
    let store = Arc::clone(node.store());
    let key = sequencer_key().address();
    let fork = find(&node, &posted).await.unwrap();
    drop(node);
    fork.go_back(store.as_ref()).await.unwrap();
    // Another header 3 was signed, with an origin of after L1's header: nothing excuses it.
    store.put_acknowledged(3, B256::repeat_byte(3), 305).await.unwrap();
    let node = tracker_on(Arc::clone(&store), &l1).await;
    let refused = fork.take_posted(&node, posted.as_ref(), Some(key), async |_| {}).await.unwrap_err();
    assert!(matches!(refused, RebuildError::SignedTwo { number: 3, posted, .. } if posted == after.hash));
    assert_eq!((node.head().number, node.certified().number), (2, 2));
    // Without its data the members are asked; L1's word counts all the same.
    posted.runs.lock()[2].data = PostedData::missing(1, DataError::Absent);
    fork.take_posted(&node, posted.as_ref(), Some(key), async |_| {}).await.unwrap();
    assert_eq!(node.head().number, 2);
    // A member votes, and signs no headers.
    posted.runs.lock()[2].data = PostedData::of(vec![(*after.batch).clone()]);
    fork.take_posted(&node, posted.as_ref(), None, async |_| {}).await.unwrap();
    assert_eq!(node.certified().number, 3);
    // A header of this key on L1 in place of a signed one.
    posted.runs.lock()[0].headers[0].timestamp_ms += 1;
    posted.runs.lock().truncate(1);
    store.put_acknowledged(1, first.hash, 1).await.unwrap();
    let fork = find(&node, &posted).await.unwrap();
    assert_eq!(fork.agreed.number, 0);
    let client = ScriptedExecution::new();
    let check = |key| {
        let (l1, store, client, fork): (&dyn L1Reader, _, _, _) =
            (l1.as_ref(), store.as_ref(), client.as_ref(), &fork);
        async move { fork.check(&chain_config(), store, l1, client, key).await }
    };
    assert!(matches!(check(key).await, Err(RebuildError::SignedTwo { number: 1, .. })));
    check(Address::repeat_byte(1)).await.unwrap();
    // Nor does somebody else's certified header take a certified one's place.
    let broken = fork.go_back(store.as_ref()).await.unwrap_err();
    assert!(matches!(broken, RebuildError::TwoCertificates { number: 1, ours, .. } if ours == first.hash));
    assert_eq!(store.heads().await.unwrap().certified, Some(3));
}

#[tokio::test]
async fn a_disk_that_forgot_the_way_or_is_of_another_chain_is_named() {
    let Parted { posted, node, .. } = parted().await;
    let fork = find(&node, &posted).await.unwrap();
    node.store().keep_ledgers_from(2).await.unwrap();
    let refused = fork.go_back(node.store().as_ref()).await.unwrap_err();
    assert!(matches!(refused, RebuildError::TooOld { number: 1, kept_from: 2 }), "{refused}");
    assert_eq!(node.store().heads().await.unwrap().certified, Some(3), "it is as it was");
    for posting in posted.runs.lock().iter_mut() {
        posting.headers[0].parent_hash = B256::repeat_byte(1);
    }
    assert!(matches!(find(&node, &posted).await, Err(RebuildError::OtherChain)));
}

#[tokio::test]
async fn the_way_back_is_kept_to_what_is_posted_and_not_forgotten_where_l1_contradicts() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let node = tracker_on(memory(), &l1).await;
    let way_back = WayBack::open(node.clone()).await.unwrap();
    let last = KEPT_POSTED_HEADERS + 10;
    let mut fifth = None;
    for number in 1..=last {
        if number == 5 {
            fifth = Some(sequencer.l1_header(250 * number, vec![]));
        }
        let sealed = sequencer.seal(250 * number, vec![]).await;
        sequencer.certify(&sealed).await;
        node.accept_certified(&certified(&sealed.batch)).await.unwrap();
    }
    let floor = async || node.store().ledger_floor().await.unwrap();
    way_back.follow_l1(l1.as_ref()).await.unwrap();
    way_back.follow_l1(l1.as_ref()).await.unwrap();
    assert_eq!(floor().await, Some(0), "nothing is posted");
    l1.posted.lock().extend((1..=last).map(|number| (number, 1)));
    l1.l1_headers.lock().push(fifth.unwrap());
    way_back.follow_l1(l1.as_ref()).await.unwrap_err();
    assert_eq!(floor().await, Some(0), "L1 has another one");
    l1.l1_headers.lock().clear();
    way_back.follow_l1(l1.as_ref()).await.unwrap();
    assert_eq!(floor().await, Some(10));
}
