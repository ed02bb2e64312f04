//! A member whose disk holds a certified header in place of which L1 made another: `--rebuild-from-l1`.

mod common;

use blindfold_chain::{FallbackHeader, L1Reader};
use common::{
    Machine, certified,
    network::{self, PostedRuns, Sealer, envelope},
    sequencer::SequencerDouble,
    votes_from,
};
use std::sync::Arc;

/// What it takes back is half of the proof.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_headers_of_the_sequencer_stay_evidence_after_the_rebuild() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let machine = Machine::new(2, sequencer.url());
    let member = machine.start().await;
    assert_eq!(votes_from(&member).await, 1);
    sequencer.followed_by(1).await;
    let (shown, other) = (Sealer::new().await, Sealer::new().await);
    let ours = shown.seal_envelopes(&[envelope(1, 1)]).await;
    sequencer.publish(&ours.batch, &ours.verdicts);
    sequencer.wait("a vote", |state| state.acknowledgements.iter().any(|vote| vote.number == 1)).await;
    member.stop().await;

    let posted = other.seal_envelopes(&[envelope(2, 1)]).await;
    let certificate = other.certify(&posted.batch, &[1, 3, 4]).await;
    let l1: Arc<dyn L1Reader> = PostedRuns::new(Arc::clone(&machine.l1), &posted.batch, certificate);
    let member = machine.rebuild(l1).await.expect("it starts");
    assert_eq!(member.tracker().certified().hash, posted.hash);
    let kept: Vec<_> =
        member.evidence().iter().map(|pair| (pair.first.header.hash(), pair.second.header.hash())).collect();
    assert_eq!(kept, [(ours.hash, posted.hash)]);
    member.stop().await;
}

/// Rule C-5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_l1_voided_votes_again_at_once_after_the_rebuild() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let machine = Machine::new(2, sequencer.url());
    let member = machine.start().await;
    assert_eq!(votes_from(&member).await, 1);
    sequencer.followed_by(1).await;
    let (sealer, other) = (Sealer::new().await, Sealer::new().await);
    let first = sealer.seal(vec![]).await;
    other.seal(vec![]).await;
    sequencer.publish(&first.batch, &first.verdicts);
    let posted = other.certify(&first.batch, &[1, 2, 4]).await;
    sequencer.publish_certificate(&posted);
    sealer.certify(&first.batch, &[1, 2, 4]).await;
    certified(&member, 1).await;
    // Number 2 is certified, with a surcharge held, and 3 is; nobody posts them.
    let mut dead = Vec::new();
    for nonce in 1..=2 {
        let batch = sealer.seal_envelopes(&[envelope(1, nonce)]).await;
        sequencer.publish(&batch.batch, &batch.verdicts);
        let number = batch.batch.header.number;
        sequencer
            .wait("a vote", |state| state.acknowledgements.iter().any(|vote| vote.number == number))
            .await;
        sequencer.publish_certificate(&sealer.certify(&batch.batch, &[1, 2, 4]).await);
        certified(&member, number).await;
        dead.push(batch.hash);
    }
    let l1_block = network::FIRST_ORIGIN + 1;
    let epoch = network::epochs().at(2).cloned().expect("registered");
    let header = other.tracker.with_state(|state| {
        state.l1_header::<Vec<u8>>(network::START_MS + 1_000, &[], &epoch).expect("L1 may make it")
    });
    let made = FallbackHeader { header, items: vec![], l1_block };
    for l1 in [&machine.l1, &other.l1] {
        l1.set_finalized(l1_block);
        l1.l1_headers.lock().push(made.clone());
    }
    let said = |member: &blindfold_committee::MemberHandle| {
        member.readiness().reasons().values().any(|reason| reason.contains("resynchronise"))
    };
    network::within("the refusal", async {
        while !said(&member) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    member.stop().await;

    let posted: Arc<dyn L1Reader> = PostedRuns::new(Arc::clone(&machine.l1), &first.batch, posted);
    let member = machine.rebuild(Arc::clone(&posted)).await.expect("it starts");
    // A sequencer that asks what it signed waits for whoever claims what it cannot show.
    assert_eq!((member.status().await.acknowledged, member.tracker().head().number), (2, 2));
    member.stop().await;
    // Twice: the second time there is nothing to do.
    let member = machine.rebuild(posted).await.expect("it starts");
    assert_eq!((member.tracker().certified().number, member.tracker().certified().hash), (2, header.hash()));
    assert_eq!(member.tracker().head().generation, 1);
    assert_eq!(votes_from(&member).await, 1, "its disk knows every vote");
    let votes = member.tracker().store().acknowledged(2).await.expect("a disk");
    assert_eq!(votes, Some(dead[0]), "for ever");
    // It votes for the number 3 that follows L1's header, which L1 excuses, and never for the dead one again.
    other.tracker.accept_l1_header(&made).await.expect("L1 made it");
    let next = other.seal_at(network::START_MS + 1_250, vec![]).await;
    sequencer.publish(&next.batch, &next.verdicts);
    sequencer
        .wait("the vote", |state| state.acknowledgements.iter().any(|vote| vote.header_hash == next.hash))
        .await;
    member.stop().await;
}
