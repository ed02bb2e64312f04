//! What keeps a member from acknowledging, or its word from the sequencer, passes; and it delays nothing else.

mod common;

use blindfold_rpc::RunningRole;
use std::sync::atomic::Ordering;

use blindfold_kit::{FaultyStore, SequencerDouble, acknowledge, envelope, within};
use blindfold_protocol::Party;
use blindfold_store::StoreError;
use common::{Machine, certified, sealed, sealer};

/// A disk that failed once lost the acknowledgement until the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledgement_that_failed_is_tried_again() {
    let sequencer = SequencerDouble::start().await;
    let machine = Machine::new(2, sequencer.url());
    let store = FaultyStore::new(machine.store().await);
    let member = machine.start_on(store.clone()).await.expect("starts");
    sequencer.followed_by(1).await;
    store.fail("put_acknowledged", StoreError::Failed("the disk is full".to_owned()));
    let batch = sealer().await.seal_next_envelopes(&[envelope(1, 1)]).await;
    sequencer.publish(&batch.batch, &batch.verdicts);
    sealed(&member, 1).await;
    within("two failures", async {
        while store.failures() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await;
    assert!(sequencer.double.state.lock().acknowledgements.is_empty());
    store.heal();
    sequencer.wait("the acknowledgement", |state| !state.acknowledgements.is_empty()).await;
    assert_eq!(sequencer.double.state.lock().acknowledgements[0], acknowledge(&batch.batch, 2));
    member.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_hangs_delays_no_other() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().hangs = Some(1);
    let machine = Machine::new(2, sequencer.url());
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    let first = sealer.seal_next_envelopes(&[envelope(1, 1)]).await;
    let second = sealer.seal_next_envelopes(&[envelope(1, 2)]).await;
    sequencer.publish(&first.batch, &first.verdicts);
    sealed(&member, 1).await;
    sequencer.publish(&second.batch, &second.verdicts);
    sequencer.wait("the second", |state| !state.acknowledgements.is_empty()).await;
    assert_eq!(sequencer.double.state.lock().acknowledgements[0], acknowledge(&second.batch, 2));
}

/// Anonymous floods crowded members out of the sequencer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_shows_the_sequencer_who_it_is() {
    let sequencer = SequencerDouble::start().await;
    let machine = Machine::new(2, sequencer.url());
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let batch = sealer().await.seal_next_envelopes(&[envelope(1, 1)]).await;
    sequencer.publish(&batch.batch, &batch.verdicts);
    sequencer.wait("the acknowledgement", |state| !state.acknowledgements.is_empty()).await;
    // It may have come more than once by now, each time from the same member.
    let brought_by = sequencer.double.state.lock().brought_by.clone();
    assert!(brought_by.iter().all(|party| *party == Some(Party::Member(2))), "{brought_by:?}");
    member.shutdown().await;
}

/// Each header asked L1 for its origin, and the loop waited for the question whether L1 had made one itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_are_acknowledged_while_l1_hangs() {
    let sequencer = SequencerDouble::start().await;
    let machines = [1, 2, 3].map(|member| Machine::new(member, sequencer.url()));
    let mut members = Vec::new();
    for machine in &machines {
        members.push(machine.start().await);
    }
    sequencer.followed_by(3).await;
    let sealer = sealer().await;
    let batches: Vec<_> = {
        let mut batches = Vec::new();
        for nonce in 1..=4 {
            batches.push(sealer.seal_next_envelopes(&[envelope(1, nonce)]).await);
        }
        batches
    };
    sequencer.publish(&batches[0].batch, &batches[0].verdicts);
    for member in &members {
        certified(member, 1).await;
    }
    machines.iter().for_each(|machine| machine.l1.hangs.store(true, Ordering::SeqCst));
    for batch in &batches[1..] {
        sequencer.publish(&batch.batch, &batch.verdicts);
    }
    for member in &members {
        certified(member, 4).await;
    }
}
