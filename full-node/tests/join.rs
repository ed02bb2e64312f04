//! Joining from a snapshot: nothing in it is believed, and what was taken stands.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use blindfold_chain::Sealed;
use blindfold_full_node::{JoinDeps, JoinError, Joined, Snapshot, join};
use blindfold_kit::*;
use blindfold_protocol::HintEntry;
use blindfold_store::{BatchRecord, Store, StoreError};

/// Batches of the snapshot; the last one is not certified.
const BATCHES: u64 = 6;

/// A node's records after some batches: certified in twos, so that each other one has no certificate of its own.
async fn records(l1: &Arc<ScriptedL1>) -> (Arc<dyn Store>, Vec<Sealed>) {
    let sequencer = Sealer::new(l1).await;
    let store = memory();
    let node = Machine::start(Arc::clone(&store), l1, &ScriptedExecution::new()).await;
    let mut sealed = Vec::new();
    for number in 1..=BATCHES {
        let batch =
            sequencer.seal_envelopes(number * 1_000, &[envelope(1, number), envelope(2, number)]).await;
        sequencer.certify(&batch).await;
        node.tracker.apply_sealed(&batch.batch).await.expect("it stands");
        if number % 2 == 0 && number < BATCHES {
            node.tracker.accept_certificate(&certificate_of(&batch.batch)).await.expect("it stands");
        }
        sealed.push(batch);
    }
    for batch in &sealed[..4] {
        node.hint(batch).await;
    }
    (store, sealed)
}

fn deps(store: &Arc<dyn Store>, l1: &Arc<ScriptedL1>) -> JoinDeps {
    JoinDeps {
        chain: chain_config(),
        store: Arc::clone(store),
        l1: Arc::clone(l1) as _,
        parameters: parameter_set(),
        backend: backend(),
        patience: std::time::Duration::from_millis(10),
    }
}

/// Somebody's records, of which one batch is given as it is told.
struct Told<'a> {
    records: &'a dyn Store,
    number: u64,
    tell: &'a (dyn Fn(BatchRecord) -> Result<Option<BatchRecord>, StoreError> + Send + Sync),
}

#[async_trait]
impl Snapshot for Told<'_> {
    async fn certified(&self) -> Result<Option<u64>, StoreError> {
        Snapshot::certified(self.records).await
    }

    async fn batch(&self, number: u64) -> Result<Option<BatchRecord>, StoreError> {
        let record = Snapshot::batch(self.records, number).await?;
        match record {
            Some(record) if number == self.number => (self.tell)(record),
            record => Ok(record),
        }
    }
}

#[tokio::test]
async fn what_is_certified_is_taken_and_executed_by_the_node_itself() {
    let l1 = l1();
    let (snapshot, sealed) = records(&l1).await;
    let own = memory();
    let steps = AtomicU64::new(0);
    let joined = join(snapshot.as_ref(), deps(&own, &l1), |_| {
        steps.fetch_add(1, Ordering::SeqCst);
    })
    .await
    .expect("it stands");
    assert_eq!(joined, Joined { last: 4, through: 4, batches: 4, hints: 4, hints_refused: 0 });
    assert_eq!(steps.into_inner(), 2);
    let heads = own.heads().await.expect("it can be read");
    assert_eq!((heads.certified, heads.hinted_through, heads.block), (Some(4), Some(4), None));
    assert_eq!(heads.sealed, Some((4, sealed[3].hash)), "what nobody certified is not taken");

    // Once more there is nothing to take.
    let again = join(snapshot.as_ref(), deps(&own, &l1), |_| ()).await.expect("it stands");
    assert_eq!(again, Joined { last: 4, through: 4, ..Joined::default() });
    // Whoever synchronized has every header's ledger, until L1 says which may still be asked for.
    assert_eq!(own.ledger_floor().await.expect("it can be read"), Some(0));

    // The node makes the blocks, and goes on.
    let node = Machine::start(Arc::clone(&own), &l1, &ScriptedExecution::new()).await;
    for batch in &sealed[4..] {
        node.take(batch).await;
    }
    node.executed(4).await;

    // It ran: what it holds is no snapshot's to judge.
    let refused = join(snapshot.as_ref(), deps(&own, &l1), |_| ()).await.expect_err("it ran");
    assert!(matches!(refused, JoinError::RanAlready), "{refused}");
}

#[tokio::test]
async fn whatever_is_wrong_is_named_and_what_was_taken_before_stands() {
    type Tell = Box<dyn Fn(BatchRecord) -> Result<Option<BatchRecord>, StoreError> + Send + Sync>;
    let changed = |change: fn(&mut BatchRecord)| -> Tell {
        Box::new(move |mut record| {
            change(&mut record);
            Ok(Some(record))
        })
    };
    let pruned: Tell =
        Box::new(|record| Err(StoreError::Pruned { number: record.number, kept_from: record.number + 1 }));
    let cases: [(&str, u64, Tell); 8] = [
        ("an item that the header does not hold", 3, changed(|record| record.sealed.items.truncate(1))),
        ("items in another order", 3, changed(|record| record.sealed.items.reverse())),
        ("a signature of nobody's", 3, changed(|record| record.sealed.signature.0[7] ^= 1)),
        ("another header", 3, changed(|record| record.sealed.header.timestamp_ms += 1)),
        (
            "a certificate of nobody's",
            4,
            changed(|record| {
                if let Some(certificate) = &mut record.certificate {
                    certificate.number = 3;
                }
            }),
        ),
        ("no certificate", 4, changed(|record| record.certificate = None)),
        ("a batch that is gone", 3, Box::new(|_| Ok(None))),
        ("a batch that was pruned", 3, pruned),
    ];
    let l1 = l1();
    let (snapshot, sealed) = records(&l1).await;
    for (what, number, tell) in &cases {
        let own = memory();
        let told = Told { records: snapshot.as_ref(), number: *number, tell: tell.as_ref() };
        let refused = join(&told, deps(&own, &l1), |_| ()).await.expect_err(what);
        let named = match what.split_once(' ').map(|(_, rest)| rest) {
            Some("certificate") => matches!(refused, JoinError::NoCertificate(3)),
            Some("batch that is gone" | "batch that was pruned") => matches!(refused, JoinError::Pruned(3)),
            _ => matches!(refused, JoinError::Refused { .. }),
        };
        assert!(named, "{what}: {refused}");
        let heads = own.heads().await.expect("it can be read");
        assert!(heads.hinted_through >= Some(2), "{what}: {heads:?}");
        // With the true one it goes on there.
        let joined = join(snapshot.as_ref(), deps(&own, &l1), |_| ()).await.expect(what);
        assert_eq!(joined.through, 4, "{what}");
        let heads = own.heads().await.expect("it can be read");
        assert_eq!((heads.sealed, heads.hinted_through), (Some((4, sealed[3].hash)), Some(4)), "{what}");
    }
}

#[tokio::test]
async fn wrong_hints_and_releases_keep_no_batch_out() {
    let l1 = l1();
    let (snapshot, sealed) = records(&l1).await;
    let wrong_hint = |mut record: BatchRecord| {
        if let Some(hints) = &mut record.hints {
            hints.entries[1] = HintEntry::Key([1; 16]);
        }
        Ok(Some(record))
    };
    let own = memory();
    let told = Told { records: snapshot.as_ref(), number: 3, tell: &wrong_hint };
    let joined = join(&told, deps(&own, &l1), |_| ()).await.expect("the batches stand");
    assert_eq!(joined, Joined { last: 4, through: 4, batches: 4, hints: 3, hints_refused: 1 });
    // The true ones come from elsewhere.
    let joined = join(snapshot.as_ref(), deps(&own, &l1), |_| ()).await.expect("it stands");
    assert_eq!((joined.batches, joined.hints), (0, 1));
    assert_eq!(own.heads().await.expect("it can be read").sealed, Some((4, sealed[3].hash)));

    let no_release = |mut record: BatchRecord| {
        if let Some(release) = &mut record.release {
            release.pds.clear();
        }
        Ok(Some(record))
    };
    let told = Told { records: snapshot.as_ref(), number: 3, tell: &no_release };
    let joined = join(&told, deps(&memory(), &l1), |_| ()).await.expect("it stands");
    assert_eq!((joined.hints, joined.hints_refused), (4, 0));
}

#[tokio::test]
async fn a_header_that_l1_is_said_to_have_made_is_asked_for_there() {
    let l1 = l1();
    let (snapshot, _) = records(&l1).await;
    let unsigned = |mut record: BatchRecord| {
        record.sealed.signature = blindfold_protocol::Signature65::NONE;
        (record.certificate, record.by_l1) = (None, true);
        Ok(Some(record))
    };
    let own = memory();
    let told = Told { records: snapshot.as_ref(), number: 4, tell: &unsigned };
    let refused = join(&told, deps(&own, &l1), |_| ()).await.expect_err("L1 made none");
    assert!(matches!(refused, JoinError::NotNow { number: 3, .. }), "{refused}");
    let heads = own.heads().await.expect("it can be read");
    assert_eq!(heads.sealed.map(|(number, _)| number), Some(2), "nothing that nobody certified stays");
}

/// A kill leaves headers of a run without its certificate; a node that ran has such headers, too.
#[tokio::test]
async fn a_join_that_was_killed_goes_on_and_a_node_that_ran_is_left_alone() {
    let l1 = l1();
    let (snapshot, sealed) = records(&l1).await;
    let own = memory();
    let told = Told { records: snapshot.as_ref(), number: 3, tell: &|_| Ok(None) };
    join(&told, deps(&own, &l1), |_| ()).await.expect_err("it lacks a batch");
    tracker_on(Arc::clone(&own), &l1).await.apply_sealed(&sealed[2].batch).await.expect("it stands");
    let joined = join(snapshot.as_ref(), deps(&own, &l1), |_| ()).await.expect("it goes on");
    assert_eq!((joined.through, joined.hints), (4, 2));

    for finished in [true, false] {
        let own = memory();
        if finished {
            join(snapshot.as_ref(), deps(&own, &l1), |_| ()).await.expect("it stands");
        }
        let ran = tracker_on(Arc::clone(&own), &l1).await;
        let next = if finished { &sealed[4] } else { &sealed[0] };
        ran.apply_sealed(&next.batch).await.expect("it stands");
        let refused = join(snapshot.as_ref(), deps(&own, &l1), |_| ()).await.expect_err("it ran");
        assert!(matches!(refused, JoinError::RanAlready), "{refused}");
        assert_eq!(ran.head().hash, next.hash, "what it holds stays");
    }
}

#[tokio::test]
async fn a_header_that_l1_made_is_taken_from_l1() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let one = sequencer.seal_envelopes(1_000, &[envelope(1, 1)]).await;
    sequencer.certify(&one).await;
    l1.advance(200);
    let made = sequencer.l1_header(2_000, vec![]);
    l1.l1_headers.lock().push(made.clone());
    let store = memory();
    let node = Machine::start(Arc::clone(&store), &l1, &ScriptedExecution::new()).await;
    node.take(&one).await;
    node.hint(&one).await;
    node.tracker.accept_l1_header(&made).await.expect("L1 made it");
    let own = memory();
    let joined = join(store.as_ref(), deps(&own, &l1), |_| ()).await.expect("it stands");
    assert_eq!((joined.last, joined.through, joined.batches), (2, 2, 2));
    let heads = own.heads().await.expect("it can be read");
    assert_eq!(heads.sealed, Some((2, made.header.hash())));
}

#[tokio::test]
async fn an_empty_snapshot_and_another_chains_are_refused() {
    let l1 = l1();
    let refused = join(memory().as_ref(), deps(&memory(), &l1), |_| ()).await.expect_err("it has nothing");
    assert!(matches!(refused, JoinError::Empty), "{refused}");

    let (snapshot, _) = records(&l1).await;
    let mut other = deps(&memory(), &l1);
    let mut chain = (*other.chain).clone();
    chain.deployment.l1_chain_id += 1;
    other.chain = Arc::new(chain);
    let refused = join(snapshot.as_ref(), other, |_| ()).await.expect_err("nothing is signed for it");
    assert!(matches!(refused, JoinError::Refused { number: 1, .. }), "{refused}");
}
