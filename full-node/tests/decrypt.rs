//! Local decryption from members' shares: faulty members named, silence borne, false releases found out.

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use blindfold_bte::{Backend, Check};
use blindfold_chain::{BatchView, DecryptError, Decryption, MemberLimits, Pool, Sealed};
use blindfold_full_node::{
    Counters, LocalDecryption, LocalDecryptionError, MemberEndpoint, Members as MemberClients,
};
use blindfold_kit::*;
use blindfold_protocol::{HintEntry, validity::Verdict};
use blindfold_runtime::Tasks;
use blindfold_telemetry::Metrics;
use common::*;
use tokio::net::TcpListener;

struct Bench {
    members: Members,
    machine: Machine,
    local: LocalDecryption,
    counters: Counters,
    sequencer: Sealer,
    tasks: Tasks,
}

impl Bench {
    async fn new() -> Self {
        Self::with(backend()).await
    }

    async fn with(backend: Arc<dyn Backend>) -> Self {
        let l1 = l1();
        let members = Members::start().await;
        let machine = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
        let metrics = Metrics::new("full_node", "test").expect("it is made");
        let counters = Counters::new(&metrics).expect("it is made");
        let watch = Arc::new(counters.clone());
        let tasks = Tasks::new();
        let decryption = decryption(backend, &members.endpoints, &tasks, watch);
        let (tracker, parameters) = (machine.tracker.clone(), parameter_set());
        let local = LocalDecryption { tracker, parameters, decryption };
        Self { members, machine, local, counters, sequencer: Sealer::new(&l1).await, tasks }
    }

    async fn batch(&self, envelopes: &[blindfold_protocol::Envelope]) -> Sealed {
        let sealed = self.sequencer.seal_envelopes(0, envelopes).await;
        self.machine.take(&sealed).await;
        self.members.archive.put(&sealed);
        sealed
    }
}

fn decryption(
    backend: Arc<dyn Backend>,
    endpoints: &[MemberEndpoint],
    tasks: &Tasks,
    watch: Arc<Counters>,
) -> Decryption {
    let limits = MemberLimits {
        hedge: Duration::from_millis(50),
        wait: Duration::from_secs(2),
        singleton_wait: Duration::from_secs(2),
        retry: Duration::from_millis(20),
    };
    let clients = MemberClients::new(endpoints, 5_000).expect("it is made");
    let members = clients.to_open(limits, watch.clone());
    Decryption::new(backend, members, Pool::start(1, tasks), watch, 4)
}

#[tokio::test]
async fn shares_of_honest_members_open_every_sub_batch() {
    let bench = Bench::new().await;
    let mut envelopes: Vec<_> = (1..=u64::from(MAX_BATCH) + 3).map(|nonce| envelope(1, nonce)).collect();
    envelopes.insert(2, envelope(1, 1));
    envelopes[5] = malformed(1, 40);
    let sealed = bench.batch(&envelopes).await;
    let (release, hints) = bench.local.decrypt(1, None).await.unwrap();
    assert_eq!((release, hints), open_batch(&sealed.batch, &sealed.verdicts));
    assert_eq!(bench.counters.faulty_members.get(), 0);
}

#[tokio::test]
async fn an_accepted_item_without_a_point_is_named() {
    let bench = Bench::new().await;
    let mut pointless = envelope(1, 2);
    pointless.ciphertext.c = [0xff; 48];
    let sealed = bench.sequencer.seal_envelopes(0, &[envelope(1, 1), pointless]).await;
    let accepted = [0, 1].map(|position| Verdict::Accepted { position });
    let view = Arc::new(BatchView::of_verdicts(&sealed.batch, &accepted, MAX_BATCH).unwrap());
    let parameters = parameter_set().at(1).unwrap();
    let begun = bench.local.decryption.predecrypt(&view, &parameters).await;
    assert!(matches!(begun, Err(DecryptError::Point { index: 1, .. })));
}

#[tokio::test]
async fn a_lying_member_is_named_and_a_silent_one_does_not_matter() {
    let bench = Bench::new().await;
    bench.members.archive.lying.lock().insert(2);
    let sealed = bench.batch(&[envelope(1, 1), malformed(1, 2)]).await;
    let (release, hints) = bench.local.decrypt(1, None).await.unwrap();
    assert_eq!((release, hints), open_batch(&sealed.batch, &sealed.verdicts));

    // With one lying and one silent there are two true shares of three.
    bench.members.archive.silent.lock().insert(4);
    let short = bench.local.decrypt(1, None).await.unwrap_err();
    let too_few = DecryptError::TooFewShares { what: "shares", given: 2, needed: 3 };
    assert!(matches!(short, LocalDecryptionError::Decrypt { number: 1, error } if error == too_few));
    assert!(bench.counters.faulty_members.get() > 0);
    // They come back, and so does the batch.
    bench.members.archive.lying.lock().clear();
    bench.local.decrypt(1, None).await.unwrap();
}

/// A committee that was just certified to may not be so far: the batch waits for it, and is not begun anew.
#[tokio::test]
async fn members_that_give_no_share_yet_are_asked_again() {
    let bench = Bench::new().await;
    let archive = &bench.members.archive;
    archive.silent.lock().extend(1..=4);
    let sealed = bench.batch(&[envelope(1, 1)]).await;
    let come_back = async {
        // All four were asked, and one of them twice.
        while archive.shares_asked.load(SeqCst) < 5 {
            tokio::task::yield_now().await;
        }
        archive.silent.lock().clear();
    };
    let (opened, ()) = tokio::join!(bench.local.decrypt(1, None), come_back);
    assert_eq!(opened.unwrap(), open_batch(&sealed.batch, &sealed.verdicts));
}

/// A batch with malformed envelopes asks for many shares at a time, and each answer was held in memory.
#[tokio::test]
async fn no_more_of_an_answer_is_read_than_a_share_can_have() {
    let mut bench = Bench::new().await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let mut endpoints = bench.members.endpoints.clone();
    endpoints[1].url = format!("http://{}", listener.local_addr().unwrap());
    let watch = Arc::new(bench.counters.clone());
    bench.local.decryption = decryption(backend(), &endpoints, &bench.tasks, watch);
    let sealed = bench.batch(&[envelope(1, 1)]).await;
    let archive = &bench.members.archive;
    archive.silent.lock().extend([1, 3, 4]);
    let flooded = async {
        let taken = flood(listener).await;
        archive.silent.lock().clear();
        taken
    };
    let (opened, taken) = tokio::join!(bench.local.decrypt(1, None), flooded);
    assert!(taken < FLOOD_BYTES, "all {taken} bytes were taken");
    assert_eq!(opened.unwrap(), open_batch(&sealed.batch, &sealed.verdicts));
}

#[tokio::test]
async fn a_batch_of_malformed_ciphertexts_is_proved_and_not_guessed() {
    let bench = Bench::new().await;
    bench.members.archive.lying.lock().insert(1);
    let sealed = bench.batch(&[malformed(1, 1), malformed(1, 2)]).await;
    let (release, hints) = bench.local.decrypt(1, None).await.unwrap();
    assert!(hints.entries.iter().all(|entry| matches!(entry, HintEntry::Malformed(_))));
    assert_eq!((release, hints), open_batch(&sealed.batch, &sealed.verdicts));
}

#[tokio::test]
async fn a_published_release_saves_asking_when_it_proves_itself() {
    let bench = Bench::new().await;
    let sealed = bench.batch(&[envelope(1, 1), envelope(1, 2)]).await;
    let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
    let opened = bench.local.decrypt(1, Some(release.clone())).await.unwrap();
    assert_eq!(opened, (release.clone(), hints.clone()));
    assert_eq!(bench.members.archive.shares_given.load(SeqCst), 0);
    // A wrong one, of the right form or not, only costs the asking.
    let mut wrong = release.clone();
    wrong.pds[0] = singleton(&points_of(&sealed.batch, &sealed.verdicts)[0][0].2);
    assert_eq!(bench.local.decrypt(1, Some(wrong.clone())).await.unwrap(), (release.clone(), hints.clone()));
    wrong.pds.clear();
    assert_eq!(bench.local.decrypt(1, Some(wrong)).await.unwrap(), (release, hints));
}

#[tokio::test]
async fn a_certificate_of_a_descendant_will_do() {
    let bench = Bench::new().await;
    let one = bench.sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = bench.sequencer.seal(250, vec![]).await;
    bench.members.archive.put(&one);
    bench.machine.tracker.apply_sealed(&one.batch).await.unwrap();
    assert!(matches!(bench.local.decrypt(1, None).await.unwrap_err(), LocalDecryptionError::NotCertified(1)));
    assert!(matches!(bench.local.decrypt(2, None).await.unwrap_err(), LocalDecryptionError::NotCertified(2)));
    bench.machine.take(&two).await;
    assert_eq!(bench.local.decrypt(1, None).await.unwrap(), open_batch(&one.batch, &one.verdicts));
}

/// The singleton release shows it, and the metric that the backend erred.
#[tokio::test]
async fn what_the_backend_wrongly_calls_malformed_gets_its_key() {
    let bench = Bench::with(Arc::new(Watched::erring())).await;
    let sealed = bench.batch(&[envelope(1, 1), malformed(1, 2), envelope(1, 3)]).await;
    let (release, hints) = bench.local.decrypt(1, None).await.unwrap();
    assert_eq!((release, hints), open_batch(&sealed.batch, &sealed.verdicts));
    assert_eq!(bench.counters.overruled.get(&[Check::Opening.name()]).get(), 2);
    assert_eq!(bench.counters.faulty_members.get(), 0);
}
