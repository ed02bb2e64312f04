//! What is left to do on L1, and doing it, oldest run first.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use blindfold_bte::Backend;
use blindfold_chain::ParameterSet;
use blindfold_protocol::{B256, BatchHints};
use blindfold_rpc::Readiness;
use blindfold_runtime::{Backoff, now};
use tokio::{sync::watch, time::sleep};

use super::{
    L1PostingConfig,
    book::{Book, RunEntry},
    gather::{GatherFault, gather},
    seam::{
        BatchSource, HintEvent, HintPosting, HintRoots, HintTerms, HintsL1, L1Blocks, L1Trouble, PostedRun,
    },
};
use crate::HintPublisherMetrics;

/// Name of the readiness condition.
pub(crate) const L1_POSTING: &str = "l1_posting";
/// L1 blocks whose events are read at a time while catching up; what was read is not read again after trouble.
const CATCH_UP_BLOCKS: u64 = 10_000;
/// The part of the hint deadline that a run may wait for its finality: L1 counts the deadline on its newest block, so
/// while finality stalls hints are posted for runs that are not final. A run that L1 takes back takes its hints with it.
const FINALITY_WAIT_PART: u64 = 4;
/// Runs whose hints are fetched and verified in one round; the next round follows at once.
const MAX_GATHERED_RUNS: usize = 8;
/// Runs for which the sequencer may fail to answer before a round asks it for no other.
const MAX_UNANSWERED_RUNS: usize = 2;

/// Why a round ended before its end. The next one begins where L1 stands then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Hindrance {
    /// L1.
    #[error(transparent)]
    L1(#[from] L1Trouble),
    /// The sequencer.
    #[error(transparent)]
    Source(GatherFault),
}

/// What a round found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Runs for which hints were posted.
    pub posted: usize,
    /// Postings that were made final.
    pub finalized: usize,
    /// Runs that have no posting with the right hints after it.
    pub waiting: usize,
    /// Whether the bond is too low for a posting that is wanted.
    pub bond_short: bool,
    /// Whether more is to be done at once.
    pub more: bool,
}

/// What a poster works with.
#[derive(Clone)]
pub struct HintPosterDeps {
    /// The contracts.
    pub l1: Arc<dyn HintsL1>,
    /// The sequencer.
    pub source: Arc<dyn BatchSource>,
    /// The parameters of every epoch.
    pub parameters: Arc<ParameterSet>,
    /// Verifies hints.
    pub backend: Arc<dyn Backend>,
    /// What the helper counts.
    pub metrics: HintPublisherMetrics,
    /// What `/readyz` says, with the condition `l1_posting`.
    pub readiness: Readiness,
}

/// The right hints of a run, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    Unknown,
    /// No batch has an item.
    Empty,
    /// The roots of the right hints.
    Roots(HintRoots),
}

/// What this process knows of a run beside L1's record.
struct Known {
    /// Its first number and last header: with others it is another run.
    first: u64,
    head_hash: B256,
    /// When the run was first seen to be due: final, or waiting for that too long.
    seen_ms: u64,
    truth: Truth,
    /// When something failed for it last; 0 when nothing did.
    failed_ms: u64,
    /// Not before this time again.
    retry_at_ms: u64,
    pause_ms: u64,
    /// When another's posting was first seen to have outlived its window.
    ripe_ms: Option<u64>,
}

/// Posts the hints of final runs, and of those that wait for finality too long, and makes them final.
pub struct HintPoster {
    deps: HintPosterDeps,
    config: L1PostingConfig,
    terms: Option<HintTerms>,
    bond_filled: bool,
    /// By the events up to `through`, which is final.
    book: Book,
    through: u64,
    known: BTreeMap<u64, Known>,
    /// The alarm that is on, so that it is logged once.
    alarm: Option<String>,
}

impl HintPoster {
    /// A poster that has not looked at L1 yet.
    pub fn new(config: L1PostingConfig, deps: HintPosterDeps) -> Self {
        let through = deps.l1.first_block().saturating_sub(1);
        let known = BTreeMap::new();
        let book = Book::default();
        Self { deps, config, terms: None, bond_filled: false, book, through, known, alarm: None }
    }

    /// Posts until told to stop. What is under way then is found on L1 at the next start.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let started = now();
        let mut pauses = Backoff::new(self.config.retry_ms, self.config.max_retry_ms);
        loop {
            let clock_ms = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            let outcome = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                outcome = self.round(&clock_ms) => outcome,
            };
            let wait = match outcome {
                Ok(round) => {
                    pauses.reset();
                    Duration::from_millis(if round.more { 0 } else { self.config.interval_ms })
                }
                Err(hindrance) => {
                    self.deps.metrics.l1_failures.increment();
                    self.deps.readiness.set_not_ready(L1_POSTING, hindrance.to_string());
                    let pause = pauses.pause();
                    tracing::warn!(%hindrance, ?pause, "posting hints to L1 waits and tries again");
                    pause
                }
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = sleep(wait) => {}
            }
        }
    }

    /// Looks where L1 stands and does what is to be done: for runs that nothing has failed for, oldest first, then for those
    /// where something failed, the longest ago first. `clock_ms` tells the time since the start. So runs that the sequencer
    /// does not answer about keep no other one waiting, however long each question and each round takes.
    ///
    /// # Errors
    /// [`Hindrance`] when L1 does not answer: what was done until then is done; or when the sequencer does not: all else is
    /// done.
    pub async fn round(&mut self, clock_ms: &(dyn Fn() -> u64 + Sync)) -> Result<Round, Hindrance> {
        let now_ms = clock_ms();
        let l1 = Arc::clone(&self.deps.l1);
        let terms = match self.terms {
            Some(terms) => terms,
            None => *self.terms.insert(l1.terms().await?),
        };
        let blocks = l1.blocks().await?;
        self.catch_up(blocks.finalized, now_ms).await?;
        self.fill_bond().await?;
        // What is not final yet may still be taken back, so it is not remembered.
        let mut view = self.book.clone();
        let patience = terms.hint_deadline / FINALITY_WAIT_PART;
        let waited = blocks.newest.saturating_sub(patience);
        if waited > self.through {
            for run in l1.runs(self.through, waited).await? {
                self.know(&run, now_ms);
                view.add_run(run);
            }
        }
        for event in l1.hint_events(self.through, blocks.newest.max(self.through)).await? {
            view.apply(&event);
        }
        let bond = l1.bond().await?;
        let (unanswered, late) = (Vec::new(), None);
        let mut task = Task { blocks, terms, bond, now_ms, clock_ms, gathered: 0, unanswered, late };
        let mut round = Round::default();
        let mut entries: Vec<_> = view.runs.values().collect();
        let failed_ms =
            |entry: &&RunEntry| self.known.get(&entry.run.last).map_or(0, |known| known.failed_ms);
        // Runs of the same time keep their order.
        entries.sort_by_key(failed_ms);
        for entry in entries {
            if entry.settled {
                self.unlock(entry, &task).await?;
            } else {
                self.serve(entry, &mut task, &mut round).await?;
            }
        }
        self.known.retain(|last, _| view.runs.contains_key(last));
        self.book.runs.retain(|last, _| self.known.get(last).is_none_or(|known| known.truth != Truth::Empty));
        self.report(&view, &task, &round);
        task.unanswered.into_iter().next().map_or(Ok(round), |fault| Err(Hindrance::Source(fault)))
    }

    /// Takes the final events up to `finalized` into the book.
    async fn catch_up(&mut self, finalized: u64, now_ms: u64) -> Result<(), L1Trouble> {
        let me = self.deps.l1.publisher();
        while self.through < finalized {
            let through = finalized.min(self.through.saturating_add(CATCH_UP_BLOCKS));
            let runs = self.deps.l1.runs(self.through, through).await?;
            let events = self.deps.l1.hint_events(self.through, through).await?;
            for run in runs {
                self.know(&run, now_ms);
                self.book.add_run(run);
            }
            for event in events {
                if let HintEvent::Struck { id, run_last, publisher } = event
                    && publisher == me
                {
                    self.deps.metrics.l1_struck.increment();
                    tracing::error!(
                        id,
                        run_last,
                        "hints of ours were struck out on L1: the whole bond is gone, and all our open postings"
                    );
                }
                self.book.apply(&event);
            }
            self.book.forget_settled();
            self.through = through;
        }
        Ok(())
    }

    /// Begins to remember what is found out about a run, unless it is remembered.
    fn know(&mut self, run: &PostedRun, now_ms: u64) {
        let known = self.known.get(&run.last);
        if known.is_some_and(|known| (known.first, known.head_hash) == (run.first, run.head_hash)) {
            return;
        }
        let fresh = Known {
            first: run.first,
            head_hash: run.head_hash,
            seen_ms: now_ms,
            truth: Truth::Unknown,
            failed_ms: 0,
            retry_at_ms: 0,
            pause_ms: self.config.retry_ms,
            ripe_ms: None,
        };
        self.known.insert(run.last, fresh);
    }

    /// Fills the bond up to the configured level, once.
    async fn fill_bond(&mut self) -> Result<(), L1Trouble> {
        if self.bond_filled {
            return Ok(());
        }
        let total = self.deps.l1.bond().await?;
        let missing = self.config.bond_wei.saturating_sub(total);
        if missing > 0 {
            tracing::info!(total, missing, "filling the bond for hints on L1");
            self.deps.l1.deposit_bond(missing).await?;
        }
        self.bond_filled = true;
        Ok(())
    }

    /// Closes our postings for a run that has other hints for good, so that the bond can be taken out one day.
    async fn unlock(&self, entry: &RunEntry, task: &Task<'_>) -> Result<(), L1Trouble> {
        let me = self.deps.l1.publisher();
        for posting in entry.open.iter().filter(|posting| posting.publisher == me && task.ripe(posting)) {
            match self.deps.l1.release(posting.id).await {
                Ok(()) => tracing::info!(id = posting.id, "a posting that was not needed is released"),
                Err(L1Trouble::Refused(reason)) => {
                    tracing::warn!(id = posting.id, reason, "L1 does not release a posting yet");
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(())
    }

    /// Does for one run what is to be done now.
    async fn serve(
        &mut self,
        entry: &RunEntry,
        task: &mut Task<'_>,
        round: &mut Round,
    ) -> Result<(), Hindrance> {
        let (run, me) = (entry.run, self.deps.l1.publisher());
        // Ours were verified before they were posted.
        if let Some(own) = entry.open.iter().find(|posting| posting.publisher == me) {
            if task.ripe(own) {
                self.finalize(own, round).await?;
            }
            return Ok(());
        }
        let Some(known) = self.known.get(&run.last) else { return Ok(()) };
        if known.truth == Truth::Empty {
            return Ok(());
        }
        if let Truth::Roots(roots) = known.truth
            && let Some(posting) = entry.open.iter().find(|posting| roots.has(posting.root))
        {
            return self.see_through(posting, task, round).await;
        }
        let takes_over = task.now_ms >= known.seen_ms.saturating_add(self.config.takeover_ms);
        let without_bond = matches!(known.truth, Truth::Roots(_)) && !task.is_covered();
        if !takes_over || task.now_ms < known.retry_at_ms || task.unanswered.len() == MAX_UNANSWERED_RUNS {
            task.wait_for(&run, round);
            return Ok(());
        }
        if without_bond {
            round.bond_short = true;
            task.wait_for(&run, round);
            return Ok(());
        }
        if task.gathered == MAX_GATHERED_RUNS {
            round.more = true;
            task.wait_for(&run, round);
            return Ok(());
        }
        task.gathered += 1;
        let hints =
            match gather(self.deps.source.as_ref(), &run, &self.deps.parameters, &self.deps.backend).await {
                Ok(Some(hints)) => hints,
                Ok(None) => {
                    self.learn(run.last, Truth::Empty);
                    return Ok(());
                }
                Err(GatherFault::Stopped) => return Err(Hindrance::Source(GatherFault::Stopped)),
                Err(fault @ GatherFault::Source { .. }) => {
                    self.put_off(run.last, task);
                    task.wait_for(&run, round);
                    task.unanswered.push(fault);
                    return Ok(());
                }
                Err(fault) => {
                    self.not_gathered(&run, &fault, task);
                    task.wait_for(&run, round);
                    return Ok(());
                }
            };
        self.offer(entry, &hints, task, round).await
    }

    /// Posts the right hints of a run, unless somebody did.
    async fn offer(
        &mut self,
        entry: &RunEntry,
        hints: &[BatchHints],
        task: &mut Task<'_>,
        round: &mut Round,
    ) -> Result<(), Hindrance> {
        let run = entry.run;
        let roots = self.deps.l1.roots(run.first, hints).await?;
        let is_posted = entry.open.iter().any(|posting| roots.has(posting.root));
        let Some(root) = roots.own.filter(|_| !is_posted) else {
            if is_posted {
                self.learn(run.last, Truth::Roots(roots));
                return Ok(());
            }
            self.put_off(run.last, task);
            task.wait_for(&run, round);
            tracing::error!(
                first = run.first,
                last = run.last,
                "the hints of this run are more than one transaction may carry: set l1_posting.data to \"blobs\""
            );
            return Ok(());
        };
        self.learn(run.last, Truth::Roots(roots));
        if !task.is_covered() {
            round.bond_short = true;
            task.wait_for(&run, round);
            return Ok(());
        }
        match self.deps.l1.post(&run, hints).await {
            Ok(posting) => {
                round.posted += 1;
                self.deps.metrics.l1_postings.increment();
                tracing::info!(first = run.first, last = run.last, id = posting.id, "hints posted to L1");
                self.reread(&posting, root, hints).await?;
            }
            Err(trouble @ L1Trouble::Unavailable(_)) => return Err(trouble.into()),
            Err(L1Trouble::Refused(reason)) => {
                // Somebody else may have been faster, or made another posting final; the next round sees it.
                self.deps.metrics.l1_failures.increment();
                self.put_off(run.last, task);
                task.wait_for(&run, round);
                tracing::warn!(first = run.first, last = run.last, reason, "L1 refuses the hints of a run");
            }
        }
        Ok(())
    }

    /// Makes another helper's right posting final when its publisher does not.
    async fn see_through(
        &mut self,
        posting: &HintPosting,
        task: &Task<'_>,
        round: &mut Round,
    ) -> Result<(), Hindrance> {
        if !task.ripe(posting) {
            return Ok(());
        }
        let Some(known) = self.known.get_mut(&posting.run_last) else { return Ok(()) };
        let since = *known.ripe_ms.get_or_insert(task.now_ms);
        if task.now_ms >= since.saturating_add(self.config.takeover_ms) {
            self.finalize(posting, round).await?;
        }
        Ok(())
    }

    async fn finalize(&self, posting: &HintPosting, round: &mut Round) -> Result<(), Hindrance> {
        let (id, last) = (posting.id, posting.run_last);
        match self.deps.l1.finalize(id).await {
            Ok(()) => {
                round.finalized += 1;
                self.deps.metrics.l1_finalized.increment();
                tracing::info!(id, last, "the hints of a run are final on L1");
                Ok(())
            }
            Err(L1Trouble::Refused(reason)) => {
                self.deps.metrics.l1_failures.increment();
                tracing::warn!(id, last, reason, "L1 does not make hints final yet");
                Ok(())
            }
            Err(trouble) => Err(trouble.into()),
        }
    }

    /// Reads back what was just posted: a bond hangs on it.
    async fn reread(&self, posting: &HintPosting, root: B256, hints: &[BatchHints]) -> Result<(), L1Trouble> {
        let stands = match self.deps.l1.posted(posting).await? {
            Some(posted) => {
                let entries = |hints: &BatchHints| hints.entries.clone();
                posted.iter().map(entries).eq(hints.iter().map(entries))
            }
            // L1 took it back; the next round looks again.
            None => return Ok(()),
        };
        if !stands || posting.root != root {
            self.deps.metrics.l1_failures.increment();
            tracing::error!(id = posting.id, expected = %root, found = %posting.root,
                "L1 does not hold the hints that were posted: stop the helper and report it, its bond is at stake");
        }
        Ok(())
    }

    fn learn(&mut self, last: u64, truth: Truth) {
        if let Some(known) = self.known.get_mut(&last) {
            known.truth = truth;
            known.pause_ms = self.config.retry_ms;
        }
    }

    /// Tries no more for a while, which begins now: what failed may have taken longer than that.
    fn put_off(&mut self, last: u64, task: &Task<'_>) {
        let now_ms = (task.clock_ms)();
        if let Some(known) = self.known.get_mut(&last) {
            known.failed_ms = now_ms.max(1);
            known.retry_at_ms = now_ms.saturating_add(known.pause_ms);
            known.pause_ms = known.pause_ms.saturating_mul(2).min(self.config.max_retry_ms);
        }
    }

    fn not_gathered(&mut self, run: &PostedRun, fault: &GatherFault, task: &Task<'_>) {
        self.put_off(run.last, task);
        if matches!(fault, GatherFault::NotYet { .. }) {
            tracing::debug!(first = run.first, last = run.last, %fault, "the hints of a run are not there yet");
        } else {
            self.deps.metrics.l1_refused_batches.increment();
            tracing::warn!(first = run.first, last = run.last, %fault, "hints are not posted: they do not stand");
        }
    }

    /// Metrics, readiness, and a line in the log when the alarm changes.
    fn report(&mut self, view: &Book, task: &Task<'_>, round: &Round) {
        let me = self.deps.l1.publisher();
        let open = view.runs.values().flat_map(|entry| &entry.open).filter(|posting| posting.publisher == me);
        self.deps.metrics.l1_open_postings.set(open.count() as u64);
        self.deps.metrics.l1_waiting_runs.set(round.waiting as u64);
        self.deps.metrics.l1_bond_covers.set(u64::from(task.is_covered()));
        let alarm = if round.bond_short {
            let (bond, needed) = (task.bond, task.terms.publisher_bond);
            Some(format!(
                "the bond of {me} in HintRegistry is {bond} wei, less than the {needed} wei that postings need: send \
                 it ether, raise l1_posting.bond_wei and restart"
            ))
        } else {
            task.late.map(|(first, last)| {
                format!(
                    "batches {first} to {last} have no hints on L1 and half of the time for them is over: after it \
                     anybody can declare them void, and what is in them is not executed"
                )
            })
        };
        match &alarm {
            Some(reason) => self.deps.readiness.set_not_ready(L1_POSTING, reason.clone()),
            None => self.deps.readiness.set_ready(L1_POSTING),
        }
        if alarm != self.alarm {
            match &alarm {
                Some(reason) => tracing::error!(publisher = %me, "{reason}"),
                None => tracing::info!("hints are posted to L1 again"),
            }
            self.alarm = alarm;
        }
    }
}

/// What one round works with.
struct Task<'a> {
    blocks: L1Blocks,
    terms: HintTerms,
    /// Our bond, in wei.
    bond: u128,
    /// When the round began, and what tells the time meanwhile.
    now_ms: u64,
    clock_ms: &'a (dyn Fn() -> u64 + Sync),
    gathered: usize,
    /// What the sequencer did not answer.
    unanswered: Vec<GatherFault>,
    /// The oldest run that waits for more than half of the time there is.
    late: Option<(u64, u64)>,
}

impl Task<'_> {
    /// Whether the bond answers for postings, however many.
    fn is_covered(&self) -> bool {
        self.bond >= self.terms.publisher_bond
    }

    /// Whether a posting has outlived its window: a transaction that is sent now gets into a later block.
    fn ripe(&self, posting: &HintPosting) -> bool {
        self.blocks.newest >= posting.block.saturating_add(self.terms.challenge_window)
    }

    fn wait_for(&mut self, run: &PostedRun, round: &mut Round) {
        round.waiting += 1;
        let half = run.posted_at.saturating_add(self.terms.hint_deadline / 2);
        let is_older = self.late.is_none_or(|(first, _)| run.first < first);
        if is_older && self.blocks.newest >= half {
            self.late = Some((run.first, run.last));
        }
    }
}
