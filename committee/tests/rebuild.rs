//! A member whose disk holds a certified header in place of which L1 made another: `--rebuild-from-l1`.

mod common;

use blindfold_chain::FallbackHeader;
use blindfold_kit::{PostedRuns, SequencerDouble, envelope, within};
use blindfold_rpc::RunningRole;
use common::{FIRST_ORIGIN, Machine, certified, sealer, votes_from};

/// What it takes back is half of the proof.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_headers_of_the_sequencer_stay_evidence_after_the_rebuild() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let machine = Machine::new(2, sequencer.url());
    let member = machine.start().await;
    assert_eq!(votes_from(&member).await, 1);
    sequencer.followed_by(1).await;
    let (shown, other) = (sealer().await, sealer().await);
    let ours = shown.seal_next_envelopes(&[envelope(1, 1)]).await;
    sequencer.publish(&ours.batch, &ours.verdicts);
    sequencer.wait("a vote", |state| state.acknowledgements.iter().any(|vote| vote.number == 1)).await;
    member.shutdown().await;

    let posted = other.seal_next_envelopes(&[envelope(2, 1)]).await;
    let certificate = other.certify_by(&posted.batch, &[1, 3, 4]).await;
    let l1 = PostedRuns::new(&machine.l1);
    l1.post(FIRST_ORIGIN, vec![(*posted.batch).clone()], Some(certificate));
    let member = machine.rebuild(l1).await.expect("it starts");
    assert_eq!(member.tracker().certified().hash, posted.hash);
    let kept: Vec<_> =
        member.evidence().iter().map(|pair| (pair.first.header.hash(), pair.second.header.hash())).collect();
    assert_eq!(kept, [(ours.hash, posted.hash)]);
    member.shutdown().await;
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
    let (sealer, other) = (sealer().await, sealer().await);
    let first = sealer.seal_next(vec![]).await;
    other.seal_next(vec![]).await;
    sequencer.publish(&first.batch, &first.verdicts);
    let posted = other.certify_by(&first.batch, &[1, 2, 4]).await;
    sequencer.publish_certificate(&posted);
    sealer.certify_by(&first.batch, &[1, 2, 4]).await;
    certified(&member, 1).await;
    // Number 2 is certified, with a surcharge held, and 3 is; nobody posts them.
    let mut displaced = Vec::new();
    for nonce in 1..=2 {
        let batch = sealer.seal_next_envelopes(&[envelope(1, nonce)]).await;
        sequencer.publish(&batch.batch, &batch.verdicts);
        let number = batch.batch.header.number;
        sequencer
            .wait("a vote", |state| state.acknowledgements.iter().any(|vote| vote.number == number))
            .await;
        sequencer.publish_certificate(&sealer.certify_by(&batch.batch, &[1, 2, 4]).await);
        certified(&member, number).await;
        displaced.push(batch.hash);
    }
    let l1_block = FIRST_ORIGIN + 1;
    let header = other.l1_header(1_000, vec![]).header;
    let made = FallbackHeader { header, items: vec![], l1_block };
    for l1 in [&machine.l1, &other.l1] {
        *l1.finalized.lock() = l1_block;
        l1.l1_headers.lock().push(made.clone());
    }
    let said = |member: &blindfold_committee::MemberHandle| {
        member.readiness().reasons().values().any(|reason| reason.contains("resynchronise"))
    };
    within("the refusal", async {
        while !said(&member) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    member.shutdown().await;

    let l1 = PostedRuns::new(&machine.l1);
    l1.post(FIRST_ORIGIN, vec![(*first.batch).clone()], Some(posted));
    let member = machine.rebuild(l1.clone()).await.expect("it starts");
    // A sequencer that asks what it signed waits for whoever claims what it cannot show.
    assert_eq!((member.status().await.acknowledged, member.tracker().head().number), (2, 2));
    member.shutdown().await;
    // Twice: the second time there is nothing to do.
    let member = machine.rebuild(l1).await.expect("it starts");
    assert_eq!((member.tracker().certified().number, member.tracker().certified().hash), (2, header.hash()));
    assert_eq!(member.tracker().head().generation, 1);
    assert_eq!(votes_from(&member).await, 1, "its disk knows every vote");
    let votes = member.tracker().store().acknowledged(2).await.expect("a disk");
    assert_eq!(votes, Some(displaced[0]), "for ever");
    // It votes for the number 3 that follows L1's header, which L1 excuses, and never for the displaced one again.
    other.tracker.accept_l1_header(&made).await.expect("L1 made it");
    let next = other.seal(1_250, vec![]).await;
    sequencer.publish(&next.batch, &next.verdicts);
    sequencer
        .wait("the vote", |state| state.acknowledgements.iter().any(|vote| vote.header_hash == next.hash))
        .await;
    member.shutdown().await;
}
