//! A disk that does not know what its member voted for: it must not vote a second time.

mod common;

use blindfold_rpc::RunningRole;
use std::path::Path;

use blindfold_committee::{MemberHandle, PeerUrl};
use blindfold_kit::{MEMBERS, PostedRuns, SequencerDouble, SequencerState, envelope};
use common::{FIRST_ORIGIN, LAST_OF_FIRST_EPOCH, Machine, certified, sealed, sealer, votes_from};

fn acknowledged_by(state: &SequencerState, member: u16, number: u64) -> bool {
    state.acknowledgements.iter().any(|ack| (ack.member, ack.number) == (member, number))
}

fn abstained(state: &SequencerState, member: u16, number: u64) -> bool {
    state.refusals.iter().any(|refusal| {
        (refusal.member, refusal.number, refusal.reason.as_str()) == (member, number, "abstains")
    })
}

fn urls(members: &[MemberHandle]) -> Vec<PeerUrl> {
    let url = |member: &MemberHandle| format!("http://{}", member.rpc_addr());
    (1u16..).zip(members).map(|(member, handle)| PeerUrl { member, url: url(handle) }).collect()
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(to).expect("a folder") {
        std::fs::remove_file(entry.expect("an entry").path()).expect("removed");
    }
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

/// Rules C-1, C-7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_disk_was_lost_votes_from_the_next_epoch_on() {
    let sequencer = SequencerDouble::start().await;
    let machines: Vec<Machine> = (1..MEMBERS).map(|member| Machine::new(member, sequencer.url())).collect();
    let mut members = Vec::new();
    for machine in &machines {
        members.push(machine.start().await);
    }
    for member in &members {
        assert_eq!(votes_from(member).await, 1, "before the first certified header everybody votes");
    }
    sequencer.followed_by(members.len()).await;
    let sealer = sealer().await;
    for n in 1..=3 {
        let batch = sealer.seal_next_envelopes(&[envelope(n, 1)]).await;
        sequencer.publish(&batch.batch, &batch.verdicts);
        sealer.certify_by(&batch.batch, &[1, 2, 3]).await;
        for member in &members {
            certified(member, u64::from(n)).await;
        }
    }

    // Its disk is fresh; whatever it voted for before is not on it.
    let mut machine = Machine::new(MEMBERS, sequencer.url());
    machine.config.limits.peer_check_ms = 10;
    machine.config.peers = urls(&members[..2]);
    let lost = machine.start().await;
    certified(&lost, 3).await;
    let batch = sealer.seal_next_envelopes(&[envelope(4, 1)]).await;
    sequencer.publish(&batch.batch, &batch.verdicts);
    sequencer.wait("an abstention", |state| abstained(state, MEMBERS, 4)).await;
    assert_eq!(lost.status().await.votes_from, None, "two others are too few to tell");
    drop(lost);

    machine.config.peers = urls(&members);
    let lost = machine.start().await;
    assert_eq!(votes_from(&lost).await, LAST_OF_FIRST_EPOCH + 1);
    sealed(&lost, 4).await;
    drop(lost);
    // And it does not forget that.
    let lost = machine.start().await;
    sealed(&lost, 4).await;
    assert_eq!(votes_from(&lost).await, LAST_OF_FIRST_EPOCH + 1);
    assert!(!acknowledged_by(&sequencer.double.state.lock(), MEMBERS, 4));
}

/// Rule C-2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_with_an_older_disk_stops_voting_when_a_certificate_shows_its_vote() {
    older_disk(false).await;
}

/// L1 shows it the certificate that the sequencer would.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_with_an_older_disk_stops_voting_when_it_is_rebuilt_from_l1() {
    older_disk(true).await;
}

async fn older_disk(from_l1: bool) {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let machine = Machine::new(2, sequencer.url());
    let member = machine.start().await;
    assert_eq!(votes_from(&member).await, 1);
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    let published = async |n: u8| {
        let batch = sealer.seal_next_envelopes(&[envelope(n, 1)]).await;
        sequencer.publish(&batch.batch, &batch.verdicts);
        batch.batch
    };
    let first = published(1).await;
    let of_first = sealer.certify_by(&first, &[1, 2, 3]).await;
    sequencer.publish_certificate(&of_first);
    certified(&member, 1).await;
    member.shutdown().await;
    machine.close_disk().await;
    let copied = tempfile::tempdir().expect("folder");
    copy(machine.folder.path(), copied.path());

    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let second = published(2).await;
    sequencer.wait("an acknowledgement", |state| acknowledged_by(state, 2, 2)).await;
    let of_second = sealer.certify_by(&second, &[1, 2, 3]).await;
    sequencer.publish_certificate(&of_second);
    certified(&member, 2).await;
    member.shutdown().await;
    machine.close_disk().await;

    // The copy knows nothing of its second vote. The sequencer shows it the certificate, or L1 does.
    copy(copied.path(), machine.folder.path());
    let member = if from_l1 {
        let posted = PostedRuns::new(&machine.l1);
        posted.post(FIRST_ORIGIN, vec![(*first).clone()], Some(of_first));
        posted.post(FIRST_ORIGIN, vec![(*second).clone()], Some(of_second));
        machine.rebuild(posted).await.expect("it starts")
    } else {
        machine.start().await
    };
    certified(&member, 2).await;
    sequencer.followed_by(1).await;
    let third = published(3).await;
    sequencer.wait("an abstention", |state| abstained(state, 2, 3)).await;
    assert_eq!(member.status().await.votes_from, None);
    drop(member);
    // Nor after a restart.
    let member = machine.start().await;
    sealed(&member, 3).await;
    sequencer.publish_certificate(&sealer.certify_by(&third, &[1, 3, 4]).await);
    certified(&member, 3).await;
    assert!(!acknowledged_by(&sequencer.double.state.lock(), 2, 3));
}
