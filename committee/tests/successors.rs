//! A committee with empty disks takes the place of one whose epoch ended at the head (C-1, E-8).

mod common;

use std::net::TcpListener;

use blindfold_bte::bls::SecretKey;
use blindfold_chain::{AnnouncedEnd, FallbackHeader};
use blindfold_committee::{MemberHandle, PeerUrl};
use blindfold_kit::{MEMBERS, Sealer, SequencerDouble, SequencerState, chain_config};
use blindfold_protocol::{BatchHeader, Certificate, Epoch, Epochs, certificate};
use common::{FIRST_ORIGIN, LAST_OF_FIRST_EPOCH, Machine, certified, epochs, l1, votes_from};

/// The number of the header that L1 makes as the last one of epoch 1.
const MADE: u64 = 4;

/// The keys of the committee before.
fn old_keys() -> Vec<SecretKey> {
    (1..=MEMBERS).map(|j| SecretKey::generate(&[100 + j as u8; 32]).expect("32 bytes")).collect()
}

/// What the registry holds while the old committee's epoch, the first, ends with this number.
fn registered(last: u64) -> Epochs {
    let known = epochs();
    let [first, second] = known.as_slice() else { panic!("two epochs") };
    let members = old_keys().iter().map(SecretKey::public_key).collect();
    let first = Epoch { last, members, ..first.clone() };
    Epochs::new(vec![first, Epoch { first: last + 1, ..second.clone() }]).expect("valid")
}

/// A certificate of the old committee.
fn certified_by_the_old(header: &BatchHeader) -> Certificate {
    let (deployment, number, hash) = (chain_config().deployment, header.number, header.hash());
    let acknowledgements: Vec<_> = (1..)
        .zip(old_keys())
        .map(|(j, key)| certificate::sign_acknowledgement(&key, &deployment, 1, number, hash, j))
        .collect();
    let epoch = registered(LAST_OF_FIRST_EPOCH).at(number).cloned().expect("registered");
    certificate::aggregate(&epoch, &acknowledgements).expect("enough")
}

/// A committee of four with empty disks that know each other.
fn fresh_committee(sequencer: &SequencerDouble) -> Vec<Machine> {
    let addr = || TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let mut machines: Vec<Machine> = (1..=MEMBERS)
        .map(|member| {
            let mut machine = Machine::new(member, sequencer.url());
            machine.config.rpc_addr = addr();
            machine.config.limits.peer_check_ms = 20;
            *machine.l1.epochs.lock() = registered(LAST_OF_FIRST_EPOCH);
            machine
        })
        .collect();
    let urls: Vec<PeerUrl> = machines
        .iter()
        .map(|machine| PeerUrl { member: machine.member, url: format!("http://{}", machine.config.rpc_addr) })
        .collect();
    for machine in &mut machines {
        machine.config.peers = urls.iter().filter(|peer| peer.member != machine.member).cloned().collect();
    }
    machines
}

/// Three headers that the old committee certified.
async fn old_chain(sequencer: &SequencerDouble) -> Sealer {
    let l1 = l1();
    *l1.epochs.lock() = registered(LAST_OF_FIRST_EPOCH);
    let sealer = Sealer::new(&l1).await;
    for _ in 1..MADE {
        let batch = sealer.seal_next(vec![]).await;
        sequencer.keep(&batch.batch, &batch.verdicts);
        let certificate = certified_by_the_old(&batch.batch.header);
        sealer.tracker.accept_certificate(&certificate).await.expect("it stands");
        sequencer.keep_certificate(&certificate);
    }
    sealer
}

/// L1 makes header 4 as the last one of epoch 1, and it is final everywhere.
async fn l1_ends_the_epoch(sealer: &Sealer, machines: &[Machine]) {
    let header = sealer.l1_header(60_000, vec![]).header;
    let l1_block = FIRST_ORIGIN + 1;
    let made = FallbackHeader { header, items: vec![], l1_block };
    for l1 in machines.iter().map(|machine| &machine.l1).chain([&sealer.l1]) {
        for number in 1..=MADE {
            l1.posted.lock().insert(number, FIRST_ORIGIN);
        }
        *l1.ending.lock() = None;
        *l1.epochs.lock() = registered(MADE);
        l1.l1_headers.lock().push(made.clone());
        *l1.finalized.lock() = l1_block;
    }
    sealer.tracker.accept_l1_header(&made).await.expect("L1 made it");
}

async fn votes_for_the_next(sequencer: &SequencerDouble, sealer: &Sealer) {
    let next = sealer.seal(60_250, vec![]).await;
    assert_eq!((next.batch.header.number, next.batch.header.epoch), (MADE + 1, 2));
    sequencer.publish(&next.batch, &next.verdicts);
    let voted = |state: &SequencerState| state.acknowledgements.iter().any(|ack| ack.number == MADE + 1);
    sequencer.wait("a vote", voted).await;
}

/// The new committee starts while the old one's epoch goes on, as docs/operate.md asks ("keep one registered ahead"). Then
/// the end of epoch 1 is announced, and L1 makes its last header.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_committee_that_started_before_the_end_votes_in_its_epoch() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let sealer = old_chain(&sequencer).await;
    let machines = fresh_committee(&sequencer);
    let mut members: Vec<MemberHandle> = Vec::new();
    for machine in &machines {
        members.push(machine.start().await);
    }
    for member in &members {
        certified(member, MADE - 1).await;
        // "From the next epoch on", as L1 said then.
        assert_eq!(votes_from(member).await, LAST_OF_FIRST_EPOCH + 1);
    }
    for machine in &machines {
        let end = AnnouncedEnd { epoch: 1, announced_at: 0, until: 3, for_silence: true };
        *machine.l1.ending.lock() = Some(end);
    }
    l1_ends_the_epoch(&sealer, &machines).await;
    for member in &members {
        certified(member, MADE).await;
    }
    votes_for_the_next(&sequencer, &sealer).await;
}

/// Whoever starts with an empty disk in the epoch itself may have voted in it: it does not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_committee_that_starts_after_the_end_votes_in_no_epoch_that_has_begun() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let sealer = old_chain(&sequencer).await;
    let machines = fresh_committee(&sequencer);
    l1_ends_the_epoch(&sealer, &machines).await;
    let mut members: Vec<MemberHandle> = Vec::new();
    for machine in &machines {
        members.push(machine.start().await);
    }
    let last = registered(MADE).as_slice().last().expect("two epochs").last;
    for member in &members {
        certified(member, MADE).await;
        assert_eq!(votes_from(member).await, last + 1);
    }
}
