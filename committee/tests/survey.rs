//! What other members say of the chain, when one starts: no claim that is not shown silences it (C-3).

mod common;

use blindfold_rpc::RunningRole;
use std::{
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use blindfold_chain::FallbackHeader;
use blindfold_committee::{MemberHandle, PeerUrl};
use blindfold_kit::{
    MemberAnswers, Sealer, SequencerDouble, SequencerState, certify, envelope, member_that_answers, within,
};
use blindfold_protocol::{Certificate, SealedBatch};
use blindfold_rpc::{
    Encoded, RpcError, ServerConfig, ServerHandle, serve,
    types::{CommitteeStatus, HeldBatch},
};
use common::{FIRST_ORIGIN, Machine, certified, sealed, sealer, votes_from};

/// Member 4: it says that the first of these is certified, and shows them, with what it gives for their certificates.
#[derive(Clone)]
struct Peer {
    shown: Vec<(SealedBatch, Option<Certificate>)>,
    /// How often it shows any of them yet.
    times: Arc<AtomicUsize>,
}

impl Peer {
    fn new(shown: Vec<(SealedBatch, Option<Certificate>)>) -> Self {
        Self { shown, times: Arc::new(AtomicUsize::new(usize::MAX)) }
    }

    async fn serve(&self) -> (ServerHandle, PeerUrl) {
        let config = ServerConfig::new(([127, 0, 0, 1], 0).into());
        let server = serve(config, member_that_answers(self.clone()), None).await.expect("it serves");
        let url = format!("http://{}", server.local_addr());
        (server, PeerUrl { member: 4, url })
    }
}

#[async_trait]
impl MemberAnswers for Peer {
    async fn get_sealed(&self, number: u64) -> Result<Option<HeldBatch>, RpcError> {
        let left = |times: usize| times.checked_sub(1);
        if self.times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_err() {
            return Ok(None);
        }
        let held = self.shown.iter().find(|(batch, _)| batch.header.number == number);
        Ok(held.map(|(batch, certificate)| HeldBatch {
            sealed: Encoded::new(batch),
            certificate: certificate.as_ref().map(Encoded::new),
        }))
    }

    async fn get_status(&self) -> Result<CommitteeStatus, RpcError> {
        let number = self.shown.first().map_or(0, |(batch, _)| batch.header.number);
        Ok(CommitteeStatus {
            member: 4,
            version: None,
            epoch: 1,
            acknowledged: number,
            certified: number,
            refusals: vec![],
            second_headers_refused: 0,
            votes_from: Some(1),
        })
    }
}

/// Three of four members certify; the fourth is dishonest and votes for nothing. One of the three is started anew, and the
/// faulty member is among its peers: its vote is needed, and comes.
async fn one_restart(lie: impl AsyncFnOnce(&Sealer) -> Peer) {
    one_restart_beside(false, lie).await;
}

/// `alone`: what the faulty member shows is refused before anybody gives the member the header that it is about.
async fn one_restart_beside(alone: bool, lie: impl AsyncFnOnce(&Sealer) -> Peer) {
    let sequencer = SequencerDouble::start().await;
    let mut machines: Vec<Machine> = (1..=3).map(|member| Machine::new(member, sequencer.url())).collect();
    let mut members: Vec<MemberHandle> = Vec::new();
    for machine in &machines {
        members.push(machine.start().await);
    }
    for member in &members {
        assert_eq!(votes_from(member).await, 1);
    }
    sequencer.followed_by(3).await;
    let sealer = sealer().await;
    let first = sealer.seal_next(vec![]).await;
    sequencer.publish(&first.batch, &first.verdicts);
    for member in &members {
        certified(member, 1).await;
    }
    sealer.certify_by(&first.batch, &[1, 2, 3]).await;

    let third = members.pop().expect("three");
    third.shutdown().await;
    machines[2].close_disk().await;
    // Sealed while it is away: without it there is no certificate.
    let second = sealer.seal_next(vec![]).await;
    sequencer.publish(&second.batch, &second.verdicts);
    for member in &members {
        sealed(member, 2).await;
    }
    let (_server, faulty) = lie(&sealer).await.serve().await;
    let url = |member: &MemberHandle| format!("http://{}", member.rpc_addr());
    machines[2].config.peers =
        (1..).zip(&members).map(|(member, handle)| PeerUrl { member, url: url(handle) }).collect();
    if alone {
        machines[2].config.peers.clear();
    }
    machines[2].config.peers.push(faulty);
    machines[2].config.limits.peer_check_ms = 50;
    sequencer.double.state.lock().withhold = alone;
    let third = machines[2].start().await;
    if alone {
        let refused = "blindfold_committee_bad_certificates_total{role=\"committee\"} 1";
        within("the refusal", async {
            while !third.metrics().registry.render().contains(refused) {
                tokio::task::yield_now().await;
            }
        })
        .await;
        sequencer.double.state.lock().withhold = false;
    }
    certified(&third, 2).await;
}

/// Nobody signs for L1, so anybody makes up such a header, for any number. L1 tells which it made (C-6).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_a_member_says_l1_made_silences_nobody() {
    one_restart(async |_| {
        let mut made_up = SealedBatch::by_l1(sealer().await.seal_next(vec![]).await.batch.header, vec![]);
        made_up.header.number = 1_000_000_000;
        assert!(made_up.claims_l1());
        Peer::new(vec![(made_up, None)])
    })
    .await;
}

/// Else the member would wait for a certificate that its own vote is to make.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_without_a_certificate_that_a_member_calls_certified_silences_nobody() {
    one_restart(async |sealer| Peer::new(vec![(held(sealer, 2).await, None)])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_tells_the_truth_silences_nobody() {
    one_restart(async |sealer| Peer::new(vec![(held(sealer, 1).await, None)])).await;
}

/// It shows a certificate that nobody else has, once, and gives nothing more: else the member would wait for ever for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_a_member_keeps_for_itself_silences_nobody() {
    one_restart(async |sealer| {
        let batch = held(sealer, 2).await;
        let certificate = certify(&batch, &[1, 2, 4]);
        Peer { times: Arc::new(AtomicUsize::new(1)), ..Peer::new(vec![(batch, Some(certificate))]) }
    })
    .await;
}

/// With items that are not the header's, it is refused; the certificate is of the header, which others bring.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_is_shown_with_other_items_silences_nobody() {
    one_restart_beside(true, async |sealer| {
        let mut batch = held(sealer, 2).await;
        let certificate = certify(&batch, &[1, 2, 4]);
        batch.items.push(vec![1]);
        Peer { times: Arc::new(AtomicUsize::new(1)), ..Peer::new(vec![(batch, Some(certificate))]) }
    })
    .await;
}

/// What is on disk was signed. While the others are asked nobody is kept waiting for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vote_that_is_on_disk_is_sent_again_whatever_the_others_hold() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let mut machine = Machine::new(2, sequencer.url());
    let member = machine.start().await;
    assert_eq!(votes_from(&member).await, 1);
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    let first = sealer.seal_next(vec![]).await;
    sequencer.publish(&first.batch, &first.verdicts);
    sequencer.wait("a vote", |state| !state.acknowledgements.is_empty()).await;
    member.shutdown().await;
    machine.close_disk().await;
    sequencer.double.state.lock().acknowledgements.clear();
    // Nobody answers there.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("bound"));
    machine.config.peers = vec![PeerUrl { member: 4, url }];
    machine.config.limits.first_look_ms = 600_000;
    let _member = machine.start().await;
    sequencer.wait("the same vote", |state| !state.acknowledgements.is_empty()).await;
}

/// Before the first header is final on L1 a disk that was lost cannot tell from L1 that something was voted for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fresh_disk_that_hears_nobody_does_not_vote_at_once() {
    let sequencer = SequencerDouble::start().await;
    let mut machine = Machine::new(2, sequencer.url());
    machine.config.limits.first_look_ms = 20;
    machine.config.limits.peer_check_ms = 20;
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("bound"));
    machine.config.peers = vec![PeerUrl { member: 4, url }];
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    // Before it has asked, it says nothing of a header: it may be about to vote.
    let undecided =
        || member.readiness().reasons().values().any(|reason| reason.contains("too few other members"));
    within("a survey", async {
        while !undecided() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let first = sealer().await.seal_next(vec![]).await;
    sequencer.publish(&first.batch, &first.verdicts);
    let waits = |state: &SequencerState| state.refusals.iter().any(|refusal| refusal.reason == "abstains");
    sequencer.wait("its word that it waits", waits).await;
    assert_eq!(member.status().await.votes_from, None);
    member.shutdown().await;
    machine.close_disk().await;
    let (_server, peer) = Peer::new(vec![]).serve().await;
    machine.config.peers = vec![peer];
    let member = machine.start().await;
    assert_eq!(votes_from(&member).await, 1);
}

async fn held(sealer: &Sealer, number: u64) -> SealedBatch {
    sealer.tracker.store().batch(number).await.expect("a disk").expect("sealed").sealed
}

/// A member took a certificate that was kept from L1 until L1 made a header in its place. It is not rebuilt yet, or
/// dishonest. Members that are rebuilt one after another would halt the chain so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_starts_before_another_is_rebuilt_votes_above_l1s_header() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let mut machine = Machine::new(2, sequencer.url());
    let member = machine.start().await;
    assert_eq!(votes_from(&member).await, 1);
    sequencer.followed_by(1).await;
    let (sealer, other) = (sealer().await, sealer().await);
    let first = sealer.seal_next(vec![]).await;
    sequencer.publish(&first.batch, &first.verdicts);
    sequencer.publish_certificate(&sealer.certify_by(&first.batch, &[1, 3, 4]).await);
    certified(&member, 1).await;
    member.shutdown().await;
    machine.close_disk().await;
    // The branch that L1 ended: 2 and 3 were certified, and nobody posted them.
    other.seal_next(vec![]).await;
    other.seal_next_envelopes(&[envelope(1, 1)]).await;
    let displaced = other.seal_next(vec![]).await;
    let certificate = certify(&displaced.batch, &[1, 3, 4]);
    let header = sealer.l1_header(1_000, vec![]).header;
    let l1_block = FIRST_ORIGIN + 1;
    let made = FallbackHeader { header, items: vec![], l1_block };
    for l1 in [&machine.l1, &sealer.l1] {
        l1.l1_headers.lock().push(made.clone());
        *l1.finalized.lock() = l1_block;
    }
    sealer.tracker.accept_l1_header(&made).await.expect("L1 made it");
    // As if it knew of L1's header, too.
    let shown = vec![(displaced.batch.as_ref().clone(), Some(certificate)), (made.batch(), None)];
    let (_server, peer) = Peer::new(shown).serve().await;
    machine.config.peers = vec![peer];
    machine.config.limits.peer_check_ms = 50;
    let member = machine.start().await;
    certified(&member, 2).await;
    let next = sealer.seal(1_250, vec![]).await;
    sequencer.publish(&next.batch, &next.verdicts);
    sealed(&member, 3).await;
    sequencer.wait("a vote", |state| state.acknowledgements.iter().any(|ack| ack.number == 3)).await;
}
