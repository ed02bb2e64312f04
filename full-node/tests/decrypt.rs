//! Local decryption from members' shares: liars named, silence borne, false releases found out.

mod common;

use std::sync::Arc;

use blindfold_bte::Check;
use blindfold_chain::Sealed;
use blindfold_full_node::{Counters, DecryptFault, LocalDecryption, Members as MemberClients};
use blindfold_protocol::HintEntry;
use blindfold_telemetry::Metrics;
use common::support::doubles::ScriptedExecution;
use common::support::faulty::Faulty;
use common::support::*;
use common::*;

struct Bench {
    members: Members,
    machine: Machine,
    local: LocalDecryption,
    sequencer: Sequencer,
}

impl Bench {
    async fn new() -> Self {
        let l1 = l1();
        let members = Members::start().await;
        let machine = Machine::start(memory(), &l1, &Arc::new(ScriptedExecution::new())).await;
        let metrics = Metrics::new("full_node", "test").expect("it is made");
        let local = LocalDecryption {
            tracker: machine.tracker.clone(),
            parameters: parameter_set(),
            backend: backend(),
            members: MemberClients::new(&members.endpoints, 5_000).expect("it is made"),
            counters: Counters::new(&metrics).expect("it is made"),
        };
        Self { members, machine, local, sequencer: Sequencer::new(&l1).await }
    }

    async fn batch(&self, envelopes: &[blindfold_protocol::Envelope]) -> Sealed {
        let sealed = self.sequencer.seal_envelopes(0, envelopes).await;
        self.machine.take(&sealed).await;
        self.members.archive.put(&sealed);
        sealed
    }
}

#[tokio::test]
async fn shares_of_honest_members_open_every_sub_batch() {
    let bench = Bench::new().await;
    let mut envelopes: Vec<_> = (1..=u64::from(MAX_BATCH) + 3).map(envelope).collect();
    envelopes.insert(2, envelope(1));
    envelopes[5] = malformed(40);
    let sealed = bench.batch(&envelopes).await;
    let (release, hints) = bench.local.decrypt(1, None).await.unwrap();
    assert_eq!((release, hints), open_batch(&sealed.batch, &sealed.verdicts));
    assert_eq!(bench.local.counters.lying_members.get(), 0);
}

#[tokio::test]
async fn a_lying_member_is_named_and_a_silent_one_does_not_matter() {
    let bench = Bench::new().await;
    bench.members.archive.lying.lock().insert(2);
    let sealed = bench.batch(&[envelope(1), malformed(2)]).await;
    let (release, hints) = bench.local.decrypt(1, None).await.unwrap();
    assert_eq!((release, hints), open_batch(&sealed.batch, &sealed.verdicts));

    // With one lying and one silent there are two true shares of three.
    bench.members.archive.silent.lock().insert(4);
    let short = bench.local.decrypt(1, None).await.unwrap_err();
    assert!(matches!(short, DecryptFault::TooFewShares { number: 1, what: "shares", given: 2, needed: 3 }));
    assert!(bench.local.counters.lying_members.get() > 0);
    // They come back, and so does the batch.
    bench.members.archive.lying.lock().clear();
    bench.local.decrypt(1, None).await.unwrap();
}

#[tokio::test]
async fn a_batch_of_malformed_ciphertexts_is_proved_and_not_guessed() {
    let bench = Bench::new().await;
    bench.members.archive.lying.lock().insert(1);
    let sealed = bench.batch(&[malformed(1), malformed(2)]).await;
    let (release, hints) = bench.local.decrypt(1, None).await.unwrap();
    assert!(hints.entries.iter().all(|entry| matches!(entry, HintEntry::Malformed(_))));
    assert_eq!((release, hints), open_batch(&sealed.batch, &sealed.verdicts));
}

#[tokio::test]
async fn a_published_release_saves_asking_when_it_proves_itself() {
    let bench = Bench::new().await;
    let sealed = bench.batch(&[envelope(1), envelope(2)]).await;
    let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
    let opened = bench.local.decrypt(1, Some(release.clone())).await.unwrap();
    assert_eq!(opened, (release.clone(), hints.clone()));
    assert_eq!(bench.members.archive.shares_given.load(std::sync::atomic::Ordering::SeqCst), 0);
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
    let one = bench.sequencer.seal_envelopes(0, &[envelope(1)]).await;
    let two = bench.sequencer.seal(250, vec![]).await;
    bench.members.archive.put(&one);
    bench.machine.tracker.apply_sealed(&one.batch).await.unwrap();
    assert!(matches!(bench.local.decrypt(1, None).await.unwrap_err(), DecryptFault::NotCertified(1)));
    assert!(matches!(bench.local.decrypt(2, None).await.unwrap_err(), DecryptFault::NotCertified(2)));
    bench.machine.take(&two).await;
    assert_eq!(bench.local.decrypt(1, None).await.unwrap(), open_batch(&one.batch, &one.verdicts));
}

/// The singleton release shows it, and the metric that the backend erred.
#[tokio::test]
async fn what_the_backend_wrongly_calls_malformed_gets_its_key() {
    let mut bench = Bench::new().await;
    bench.local.backend = Arc::new(Faulty(backend()));
    let sealed = bench.batch(&[envelope(1), malformed(2), envelope(3)]).await;
    let (release, hints) = bench.local.decrypt(1, None).await.unwrap();
    assert_eq!((release, hints), open_batch(&sealed.batch, &sealed.verdicts));
    assert_eq!(bench.local.counters.overruled.get(&[Check::Opening.name()]).get(), 2);
    assert_eq!(bench.local.counters.lying_members.get(), 0);
}
