//! Seeing to it that every certified batch gets its hints: from the feed in time, else from the sequencer's store, else
//! by decrypting here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use blindfold_chain::{Executor, HintsIntakeError, accepted};
use blindfold_protocol::Release;
use blindfold_runtime::{Instant, Pauses, joined, now, until};
use blindfold_store::StoreError;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use crate::limits::{
    HINTS_PATIENCE_MS, MAX_DECRYPTION_PAUSE_MS, MAX_HINTS_PATIENCE_MS, MAX_HINTS_PAUSE_MS,
    MAX_WATCHED_BATCHES, MIN_DECRYPTION_PAUSE_MS, MIN_HINTS_PAUSE_MS,
};
use crate::node::Node;

/// Why the fetcher should not wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wake {
    /// What came for this batch was wrong: get another copy, or open it here.
    Wrong(u64),
    /// Notifications may have been missed: ask for copies, and go on waiting for what is not there yet.
    Missed,
}

/// A certified batch without hints.
struct Waiting {
    /// When the sequencer is asked next.
    due: Instant,
    /// From when on to open it here.
    deadline: Instant,
    pause_ms: u64,
    /// Another batch's question kept the sequencer from being asked: it is once that one is answered.
    queued: bool,
    /// A published release that did not open it. To try it again would cost as much as opening it, each time.
    useless: Option<Release>,
}

/// What the sequencer answered when it was asked for hints.
struct Answer {
    /// Whether these were true hints, which are stored now.
    taken: bool,
    took: Duration,
}

pub(crate) struct HintFetcher {
    node: Arc<Node>,
    executor: Executor,
    deadline: Duration,
    wakes: mpsc::Receiver<Wake>,
    /// What keeps the node behind L1, for one that follows from there: until it has caught up, hints may still come.
    behind: Option<watch::Receiver<Option<String>>>,
    /// Certified when the node started.
    certified_before: u64,
    /// The next number to look at.
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// The question for hints that the sequencer has not answered yet, at most one.
    question: JoinSet<Option<Answer>>,
    /// The batch that it is about.
    asked: u64,
    /// Whether the last answer brought true hints in time, as the first is expected to. Only then is the next one worth
    /// waiting for: "none", said late enough, would hold up every batch.
    gave: bool,
    /// The sequencer, while it gives no answers.
    silent: Pauses<()>,
}

impl HintFetcher {
    pub(crate) fn new(
        node: Arc<Node>,
        executor: &Executor,
        deadline_ms: u64,
        wakes: mpsc::Receiver<Wake>,
        behind: Option<watch::Receiver<Option<String>>>,
    ) -> Self {
        let deadline = Duration::from_millis(deadline_ms);
        let certified_before = node.tracker.certified().number;
        // What is executed had its hints.
        let next = executor.status().last_batch + 1;
        Self {
            node,
            executor: executor.clone(),
            deadline,
            wakes,
            behind,
            certified_before,
            next,
            waiting: BTreeMap::new(),
            question: JoinSet::new(),
            asked: 0,
            gave: true,
            silent: Pauses::new(MIN_HINTS_PAUSE_MS, MAX_HINTS_PAUSE_MS),
        }
    }

    /// Fetches until told to stop.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut certified = self.node.tracker.watch_certified();
        loop {
            let step = async {
                if let Err(error) = self.watch_new().await {
                    tracing::error!(%error, "the disk does not say which hints are missing");
                    tokio::time::sleep(Duration::from_millis(MAX_DECRYPTION_PAUSE_MS)).await;
                    return true;
                }
                let due = self.waiting.iter().min_by_key(|(_, waiting)| waiting.due);
                let due = due.map(|(number, waiting)| (*number, waiting.due));
                // Without room for more, a new certificate is no news.
                let room = self.waiting.len() < MAX_WATCHED_BATCHES;
                tokio::select! {
                    changed = certified.changed(), if room => return changed.is_ok(),
                    wake = self.wakes.recv() => self.wake(wake),
                    Some(answer) = self.question.join_next() => {
                        self.answered(answer);
                    }
                    () = sleep_until(due.map(|(_, due)| due)) => {
                        if let Some((number, _)) = due {
                            self.see_to(number).await;
                        }
                    }
                }
                true
            };
            let goes_on = tokio::select! {
                () = until(&mut stop) => return,
                goes_on = step => goes_on,
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Begins to watch numbers that were certified meanwhile.
    async fn watch_new(&mut self) -> Result<(), StoreError> {
        let certified = self.node.tracker.certified().number;
        while self.next <= certified && self.waiting.len() < MAX_WATCHED_BATCHES {
            let record = match self.node.tracker.store().batch(self.next).await {
                // Executed and forgotten while others were waited for.
                Err(pruned) if pruned.is_pruned() => None,
                record => record?,
            };
            if record.is_some_and(|record| record.hints.is_none() && accepted(&record) > 0) {
                let deadline = now() + self.deadline;
                // What was certified before we listened may have its hints already.
                let due = if self.next <= self.certified_before { now() } else { deadline };
                self.waiting.insert(
                    self.next,
                    Waiting {
                        due,
                        deadline,
                        pause_ms: MIN_DECRYPTION_PAUSE_MS,
                        queued: false,
                        useless: None,
                    },
                );
            }
            self.next += 1;
        }
        Ok(())
    }

    fn wake(&mut self, wake: Option<Wake>) {
        let now = now();
        match wake {
            Some(Wake::Wrong(number)) => {
                // What is opened here already keeps its pauses: a wrong copy says nothing new.
                if let Some(waiting) = self.waiting.get_mut(&number).filter(|waiting| waiting.deadline > now)
                {
                    (waiting.due, waiting.deadline) = (now, now);
                }
            }
            Some(Wake::Missed) => self.waiting.values_mut().for_each(|waiting| waiting.due = now),
            // The node is going away.
            None => {}
        }
    }

    /// The time to look for a batch's hints has come.
    async fn see_to(&mut self, number: u64) {
        let behind = self.behind.as_ref().is_some_and(|behind| behind.borrow().is_some());
        let asked_at = now();
        if let Some(waiting) = self.waiting.get_mut(&number).filter(|_| behind) {
            waiting.deadline = waiting.deadline.max(asked_at + Duration::from_millis(waiting.pause_ms));
        }
        let late = self.waiting.get(&number).is_some_and(|waiting| waiting.deadline <= asked_at);
        let opened = self.open(number, late).await;
        let Some(waiting) = self.waiting.get_mut(&number) else { return };
        if opened {
            self.waiting.remove(&number);
            return;
        }
        waiting.queued = !late && !self.question.is_empty() && self.asked != number;
        if !late {
            waiting.due = waiting.deadline;
            return;
        }
        waiting.due = now() + Duration::from_millis(waiting.pause_ms);
        waiting.pause_ms = MAX_DECRYPTION_PAUSE_MS.min(waiting.pause_ms * 2);
    }

    /// Whether the batch has true hints now, or needs none any more: one that L1 declared void is executed without.
    async fn open(&mut self, number: u64, late: bool) -> bool {
        if self.executor.status().last_batch >= number {
            return true;
        }
        match self.node.tracker.store().batch(number).await {
            Ok(Some(record)) if record.hints.is_some() => return true,
            Ok(_) => {}
            Err(error) => {
                tracing::error!(number, %error, "the disk does not give the batch");
                return false;
            }
        }
        if self.fetch(number).await {
            return true;
        }
        if !late {
            return false;
        }
        tracing::warn!(number, "no true hints in time: decrypting here");
        self.decrypt(number).await
    }

    /// Asks the sequencer for a batch's hints; whether they are here now. A batch waits for the answer for a moment, and only
    /// where the last one was of use: else it is opened here beside the question. An answer that comes late is taken, too,
    /// and none other is asked for until then.
    async fn fetch(&mut self, number: u64) -> bool {
        if !self.silent.is_over(&()) || !self.question.is_empty() {
            return false;
        }
        let node = Arc::clone(&self.node);
        self.asked = number;
        self.question.spawn(async move {
            let (patience, asked) = (Duration::from_millis(MAX_HINTS_PATIENCE_MS), now());
            let hints = timeout(patience, node.fetch_hints(number)).await.ok()?;
            let took = asked.elapsed();
            let taken = match hints {
                Some(hints) => node.take_hints(hints).await.is_ok(),
                None => false,
            };
            Some(Answer { taken, took })
        });
        if !self.gave {
            return false;
        }
        match timeout(Duration::from_millis(HINTS_PATIENCE_MS), self.question.join_next()).await {
            Ok(answer) => answer.is_some_and(|answer| self.answered(answer)),
            Err(_) => {
                tracing::warn!(number, "the sequencer is slow to give hints: no batch waits for them");
                self.gave = false;
                false
            }
        }
    }

    /// Whether the answer brought true hints.
    fn answered(&mut self, answer: Result<Option<Answer>, JoinError>) -> bool {
        let Some(Answer { taken, took }) = joined(answer).ok().flatten() else {
            tracing::warn!("the sequencer gives no answer about hints: it is not asked for a while");
            self.gave = false;
            self.silent.failed(());
            return false;
        };
        self.gave = taken && took <= Duration::from_millis(HINTS_PATIENCE_MS);
        self.silent.succeeded(&());
        let now = now();
        for waiting in self.waiting.values_mut().filter(|waiting| waiting.queued) {
            (waiting.queued, waiting.due) = (false, now);
        }
        taken
    }

    async fn decrypt(&mut self, number: u64) -> bool {
        let published = self.node.release_of(number);
        let useless = self.waiting.get(&number).and_then(|waiting| waiting.useless.as_ref());
        let claimed = published.clone().filter(|published| Some(published) != useless);
        let decrypted = tokio::select! {
            () = self.arrival(number) => return true,
            decrypted = self.node.decryption.decrypt(number, claimed) => decrypted,
        };
        let (release, hints) = match decrypted {
            Ok(decrypted) => decrypted,
            Err(fault) => {
                tracing::warn!(number, %fault, "the batch cannot be decrypted here now");
                if let Some(waiting) = self.waiting.get_mut(&number).filter(|_| fault.lacks_release()) {
                    waiting.useless = published;
                }
                return false;
            }
        };
        if published.is_some_and(|published| published != release) {
            self.node.counters.bad_releases_rejected.increment();
            tracing::warn!(number, "the published release was wrong");
        }
        match self.node.take_opened(release.clone(), hints).await {
            Ok(()) => {
                self.node.counters.batches_decrypted_locally.increment();
                true
            }
            Err(refusal @ HintsIntakeError::Wrong { .. }) => {
                tracing::error!(number, %refusal, "hints made here do not stand");
                false
            }
            Err(refusal) => {
                tracing::warn!(number, %refusal, "hints made here cannot be taken now");
                // The next try has it from here.
                self.node.park_release(release);
                false
            }
        }
    }

    /// Resolves when a batch's true hints are here: nobody has to be asked for shares any more.
    async fn arrival(&self, number: u64) {
        let mut arrivals = self.executor.opened().watch();
        loop {
            match self.node.tracker.store().batch(number).await {
                Ok(Some(record)) if record.hints.is_some() => return,
                _ => {}
            }
            if arrivals.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
