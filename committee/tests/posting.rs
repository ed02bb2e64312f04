//! A member with an account posts what the sequencer keeps from L1.

mod common;

use std::sync::{Arc, atomic::Ordering};

use async_trait::async_trait;
use blindfold_chain::{HeaderId, PostFault, RunPoster};
use blindfold_l1::CodedBatch;
use blindfold_protocol::{Canonical, Certificate};
use common::{
    Machine, certified,
    network::{MEMBERS, Sealer, certify, chain_config, envelope, within},
    sequencer::SequencerDouble,
};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// What stands on L1 of the runs, and what is refused before.
#[derive(Default)]
struct ScriptedInbox {
    posted: Mutex<Vec<HeaderId>>,
    faults: Mutex<Vec<PostFault>>,
    /// Looks at the head.
    looks: Mutex<usize>,
    changed: Notify,
}

impl ScriptedInbox {
    fn head(&self) -> HeaderId {
        let genesis = HeaderId { number: 0, hash: chain_config().deployment.genesis_hash() };
        self.posted.lock().last().copied().unwrap_or(genesis)
    }

    async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let wait = async {
            loop {
                let changed = self.changed.notified();
                if condition(self) {
                    return;
                }
                changed.await;
            }
        };
        within(what, wait).await;
    }
}

#[async_trait]
impl RunPoster for ScriptedInbox {
    async fn posted_head(&self) -> Result<HeaderId, PostFault> {
        *self.looks.lock() += 1;
        self.changed.notify_waiters();
        Ok(self.head())
    }

    async fn post(&self, batches: &[CodedBatch], certificate: &Certificate) -> Result<(), PostFault> {
        let fault = self.faults.lock().pop();
        if let Some(fault) = fault {
            return Err(fault);
        }
        for CodedBatch { sealed, codes } in batches {
            assert_eq!(sealed.header.number, self.head().number + 1);
            assert_eq!(codes.len(), sealed.items.len());
            let (number, hash) = (sealed.header.number, sealed.header.hash());
            self.posted.lock().push(HeaderId { number, hash });
        }
        assert_eq!((certificate.number, certificate.header_hash), (self.head().number, self.head().hash));
        self.changed.notify_waiters();
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_sequencer_keeps_from_l1_is_posted_by_a_member() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let inbox = Arc::new(ScriptedInbox::default());
    let mut machine = Machine::new(2, sequencer.url());
    machine.config.limits.posting_check_ms = 5;
    machine.poster = Some(inbox.clone());
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let sealer = Sealer::new().await;
    for nonce in 1..=2 {
        let batch = sealer.seal(vec![envelope(1, nonce).encode(), b"garbage".to_vec()]).await;
        sequencer.publish(&batch.batch, &batch.verdicts);
        let certificate = certify(&batch.batch, &[1, 2, 3]);
        sequencer.publish_certificate(&certificate);
        sealer.tracker.accept_certificate(&certificate).await.expect("it stands");
    }
    certified(&member, 2).await;

    // Its turn begins after a quarter of the deadline and its part of an eighth.
    let deadline = u64::from(chain_config().timing.posting_deadline);
    let turn = deadline.div_ceil(4) + deadline / 8 * 2 / u64::from(MEMBERS);
    machine.l1.unfinal.store(turn - 1, Ordering::SeqCst);
    let looks = *inbox.looks.lock();
    inbox.until("two more looks", |inbox| *inbox.looks.lock() >= looks + 2).await;
    assert_eq!(inbox.head().number, 0, "not its turn");
    // Refused and unanswered once: it is tried again.
    *inbox.faults.lock() = vec![
        PostFault::Unavailable("nobody answers".into()),
        PostFault::Refused("somebody was faster".into()),
    ];
    machine.l1.unfinal.store(turn, Ordering::SeqCst);
    inbox.until("both posted", |inbox| inbox.head().number == 2).await;
    assert_eq!(inbox.head().hash, member.tracker().certified().hash);
    let registry = member.metrics().registry.clone();
    member.stop().await;
    let counted = registry.render();
    for metric in ["posting_failures_total{role=\"committee\"} 2", "runs_posted_total{role=\"committee\"} 1"]
    {
        assert!(counted.contains(&format!("blindfold_committee_{metric}")), "{metric} in {counted}");
    }
}

/// What is too old L1 takes no more: nothing is paid for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_l1_takes_no_more_is_left() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let inbox = Arc::new(ScriptedInbox::default());
    let mut machine = Machine::new(1, sequencer.url());
    machine.config.limits.posting_check_ms = 5;
    machine.poster = Some(inbox.clone());
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let batch = Sealer::new().await.seal(vec![]).await;
    sequencer.publish(&batch.batch, &batch.verdicts);
    sequencer.publish_certificate(&certify(&batch.batch, &[1, 2, 3]));
    certified(&member, 1).await;
    let late = u64::from(chain_config().timing.posting_deadline) + 1;
    machine.l1.unfinal.store(late, Ordering::SeqCst);
    let looks = *inbox.looks.lock();
    inbox.until("two more looks", |inbox| *inbox.looks.lock() >= looks + 2).await;
    assert_eq!(inbox.head().number, 0);
    member.stop().await;
}
