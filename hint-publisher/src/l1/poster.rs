//! What is left to do on L1, and doing it, oldest run first.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use blindfold_bte::Backend;
use blindfold_chain::ParameterSet;
use blindfold_l1::{
    HintEvent, HintPosting, L1Blocks, L1Error, L1Reader, L1Submitter, PostedLog, RegistryState,
};
use blindfold_protocol::{B256, BatchHints};
use blindfold_rpc::Readiness;
use blindfold_runtime::{Backoff, now, wall_ms};
use tokio::{sync::watch, time::sleep};

use super::{
    L1PostingConfig,
    gather::{GatherError, PostedRun, gather},
    source::BatchSource,
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
pub enum PostingError {
    /// L1 failed, or refused a transaction.
    #[error(transparent)]
    L1(#[from] L1Error),
    /// The sequencer did not give a batch.
    #[error(transparent)]
    Source(GatherError),
}

/// What a round found and did.
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
    /// The account whose bond answers for its postings.
    pub l1: Arc<dyn L1Submitter>,
    /// Before this L1 block nothing was posted: the one after `genesis_l1_origin` of the chain.
    pub first_block: u64,
    /// Where batches come from: the sequencer.
    pub source: Arc<dyn BatchSource>,
    /// The parameters of every epoch.
    pub parameters: Arc<ParameterSet>,
    /// Checks hints by encrypting again.
    pub backend: Arc<dyn Backend>,
    /// What the hint publisher counts.
    pub metrics: HintPublisherMetrics,
    /// What `/readyz` says, with the condition `l1_posting`.
    pub readiness: Readiness,
}

/// What `HintRegistry` asks and allows, fixed at its deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HintTerms {
    /// The least bond of a publisher with open postings, in wei. It answers for all of them.
    publisher_bond: u128,
    /// How long a posting can be challenged, in L1 blocks.
    challenge_window: u64,
    /// How long after its posting a run without hints can be declared void, in L1 blocks.
    hint_deadline: u64,
}

/// The right hints of a run, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RightHints {
    Unknown,
    /// No batch has an item.
    Empty,
    /// The roots that `HintRegistry` computes from the right hints: where this hint publisher posts to, and in the other place. Both
    /// are right; `None` where they do not fit.
    Roots([Option<B256>; 2]),
}

/// What this process knows of a run beside L1's record.
struct Known {
    /// Its first number and last header: with others it is another run.
    first: u64,
    head_hash: B256,
    /// When the run was first seen to be due: final, or waiting for that too long.
    seen_ms: u64,
    right_hints: RightHints,
    /// When something failed for it last; 0 when nothing did.
    failed_ms: u64,
    /// Not before this time again.
    retry_at_ms: u64,
    pause_ms: u64,
    /// When another's posting was first seen to have outlived its window.
    due_since_ms: Option<u64>,
}

/// Where a run stands that is not settled, or has postings that are not closed.
struct RunEntry {
    run: PostedRun,
    /// Its open postings, oldest first.
    open: Vec<PostedLog>,
    /// Whether it has its final hints, or is void.
    settled: bool,
}

/// Runs and what became of their hints. A run leaves it when its being settled is final, so it holds at most what was
/// posted within the deadlines, and whatever nobody posted hints for.
#[derive(Clone, Default)]
struct L1View {
    /// Posted runs, by their last numbers.
    runs: BTreeMap<u64, PostedRun>,
    hints: RegistryState,
}

impl L1View {
    fn add_run(&mut self, run: PostedRun) {
        self.runs.entry(run.last).or_insert(run);
    }

    fn entries(&self) -> Vec<RunEntry> {
        let mut open: BTreeMap<u64, Vec<PostedLog>> = BTreeMap::new();
        self.hints.open().for_each(|posted| open.entry(posted.last).or_default().push(*posted));
        let entry = |run: &PostedRun| RunEntry {
            run: *run,
            open: open.remove(&run.last).unwrap_or_default(),
            settled: self.hints.is_settled(run.last),
        };
        self.runs.values().map(entry).collect()
    }

    /// Forgets runs that are settled and have no posting left that is not closed, and hints of runs that are not here:
    /// they concern nobody. Only for a view of final events.
    fn forget_settled(&mut self) {
        let open: BTreeSet<u64> = self.hints.open().map(|posted| posted.last).collect();
        self.runs.retain(|last, _| !self.hints.is_settled(*last) || open.contains(last));
        self.hints.keep_runs(|last| self.runs.contains_key(&last));
    }
}

/// Whether the bond was filled up, and when it is tried again.
#[derive(Default)]
struct BondFilling {
    filled: bool,
    retry_at_ms: u64,
    pause_ms: u64,
}

/// Posts the hints of final runs, and of those that wait for finality too long, and makes them final.
pub struct HintPoster {
    deps: HintPosterDeps,
    config: L1PostingConfig,
    terms: Option<HintTerms>,
    bond: BondFilling,
    /// By the events up to `through`, which is final.
    final_view: L1View,
    through: u64,
    known: BTreeMap<u64, Known>,
    /// The alarm that is on, so that it is logged once.
    alarm: Option<String>,
}

impl HintPoster {
    /// A poster that has not looked at L1 yet.
    pub fn new(config: L1PostingConfig, deps: HintPosterDeps) -> Self {
        let through = deps.first_block.saturating_sub(1);
        let known = BTreeMap::new();
        let final_view = L1View::default();
        Self {
            deps,
            config,
            terms: None,
            bond: BondFilling::default(),
            final_view,
            through,
            known,
            alarm: None,
        }
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
                Err(error) => {
                    self.deps.metrics.l1_failures.increment();
                    self.deps.readiness.set_not_ready(L1_POSTING, error.to_string());
                    let pause = pauses.pause();
                    tracing::warn!(%error, ?pause, "posting hints to L1 waits and tries again");
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
    /// [`PostingError`] when L1 does not answer: what was done until then is done; or when the sequencer does not: all else is
    /// done.
    pub async fn round(&mut self, clock_ms: &(dyn Fn() -> u64 + Sync)) -> Result<Round, PostingError> {
        let now_ms = clock_ms();
        let l1 = Arc::clone(&self.deps.l1);
        let terms = match self.terms {
            Some(terms) => terms,
            None => *self.terms.insert(terms(l1.reader()).await?),
        };
        let blocks = l1.reader().blocks().await?;
        self.catch_up(blocks.finalized, now_ms).await?;
        self.fill_bond(now_ms).await?;
        // What is not final yet may still be taken back, so it is not remembered.
        let mut view = self.final_view.clone();
        let patience = terms.hint_deadline / FINALITY_WAIT_PART;
        let waited = blocks.newest.saturating_sub(patience);
        if waited > self.through {
            for run in l1.reader().posted_runs(self.through, waited).await?.into_iter().map(PostedRun::from) {
                self.know(&run, now_ms);
                view.add_run(run);
            }
        }
        for event in l1.reader().hint_events(self.through, blocks.newest.max(self.through)).await? {
            view.hints.apply(&event);
        }
        let bond = l1.reader().publisher_bond(l1.account()).await?.total;
        let mut task = Task {
            blocks,
            terms,
            bond,
            now_ms,
            clock_ms,
            gathered: 0,
            unanswered: Vec::new(),
            late: None,
            oldest_waiting_blocks: 0,
        };
        let mut round = Round::default();
        let mut entries = view.entries();
        let failed_ms = |entry: &RunEntry| self.known.get(&entry.run.last).map_or(0, |known| known.failed_ms);
        // Runs of the same time keep their order.
        entries.sort_by_key(failed_ms);
        for entry in &entries {
            if entry.settled {
                self.unlock(entry, &task).await?;
            } else {
                self.serve(entry, &mut task, &mut round).await?;
            }
        }
        self.known.retain(|last, _| view.runs.contains_key(last));
        self.final_view.runs.retain(|last, _| {
            self.known.get(last).is_none_or(|known| known.right_hints != RightHints::Empty)
        });
        self.report(&entries, &task, &round);
        task.unanswered.into_iter().next().map_or(Ok(round), |fault| Err(PostingError::Source(fault)))
    }

    /// Takes the final events up to `finalized` into the final view.
    async fn catch_up(&mut self, finalized: u64, now_ms: u64) -> Result<(), L1Error> {
        let me = self.deps.l1.account();
        while self.through < finalized {
            let through = finalized.min(self.through.saturating_add(CATCH_UP_BLOCKS));
            let reader = self.deps.l1.reader();
            let runs = reader.posted_runs(self.through, through).await?;
            let events = reader.hint_events(self.through, through).await?;
            for run in runs.into_iter().map(PostedRun::from) {
                self.know(&run, now_ms);
                self.final_view.add_run(run);
            }
            for event in events {
                if let HintEvent::Slashed { id, last, publisher, .. } = event
                    && publisher == me
                {
                    self.deps.metrics.l1_slashed.increment();
                    tracing::error!(
                        id,
                        last,
                        "hints of ours were slashed on L1: the whole bond is gone, and all our open postings"
                    );
                }
                self.final_view.hints.apply(&event);
            }
            self.final_view.forget_settled();
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
            right_hints: RightHints::Unknown,
            failed_ms: 0,
            retry_at_ms: 0,
            pause_ms: self.config.retry_ms,
            due_since_ms: None,
        };
        self.known.insert(run.last, fresh);
    }

    /// Fills the bond up to the configured level, once. What L1 refuses is tried again later: an account without ether keeps
    /// nothing from being told of the runs that wait for it.
    async fn fill_bond(&mut self, now_ms: u64) -> Result<(), L1Error> {
        if self.bond.filled || now_ms < self.bond.retry_at_ms {
            return Ok(());
        }
        let l1 = Arc::clone(&self.deps.l1);
        let total = l1.reader().publisher_bond(l1.account()).await?.total;
        let missing = self.config.bond_wei.saturating_sub(total);
        if missing > 0 {
            tracing::info!(total, missing, "filling the bond for hints on L1");
            match l1.deposit_publisher_bond(missing).await {
                Ok(_) => {}
                Err(error) if ends_the_round(&error) => return Err(error),
                Err(error) => {
                    self.deps.metrics.l1_failures.increment();
                    let pause_ms = self.bond.pause_ms.max(self.config.retry_ms);
                    tracing::warn!(%error, missing, pause_ms, "the bond for hints on L1 cannot be filled");
                    self.bond.pause_ms = pause_ms.saturating_mul(2).min(self.config.max_retry_ms);
                    self.bond.retry_at_ms = now_ms.saturating_add(pause_ms);
                    return Ok(());
                }
            }
        }
        self.bond.filled = true;
        Ok(())
    }

    /// Closes our postings for a run that has other hints for good, so that the bond can be taken out one day.
    async fn unlock(&self, entry: &RunEntry, task: &Task<'_>) -> Result<(), L1Error> {
        let me = self.deps.l1.account();
        for posting in entry.open.iter().filter(|posting| posting.publisher == me && task.is_due(posting)) {
            match self.deps.l1.release_hints(posting.id).await {
                Ok(_) => tracing::info!(id = posting.id, "a posting that was not needed is released"),
                Err(error) if !ends_the_round(&error) => {
                    tracing::warn!(id = posting.id, %error, "L1 does not release a posting yet");
                }
                Err(error) => return Err(error),
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
    ) -> Result<(), PostingError> {
        let (run, me) = (entry.run, self.deps.l1.account());
        // Ours were verified before they were posted.
        if let Some(own) = entry.open.iter().find(|posting| posting.publisher == me) {
            if task.is_due(own) {
                self.finalize(own, round).await?;
            }
            return Ok(());
        }
        let Some(known) = self.known.get(&run.last) else { return Ok(()) };
        if known.right_hints == RightHints::Empty {
            return Ok(());
        }
        if let RightHints::Roots(roots) = known.right_hints
            && let Some(posting) = entry.open.iter().find(|posting| roots.contains(&Some(posting.root)))
        {
            return self.see_through(posting, task, round).await;
        }
        // Somebody's posting that nobody here has looked at yet: most are right, so no alarm comes of it.
        let may_be_posted = !entry.open.is_empty() && known.right_hints == RightHints::Unknown;
        let takes_over = task.now_ms >= known.seen_ms.saturating_add(self.config.takeover_ms);
        let without_bond = matches!(known.right_hints, RightHints::Roots(_)) && !task.is_covered();
        if !takes_over || task.now_ms < known.retry_at_ms || task.unanswered.len() == MAX_UNANSWERED_RUNS {
            task.wait_to_look(&run, may_be_posted, round);
            return Ok(());
        }
        if without_bond {
            round.bond_short = true;
            task.wait_for(&run, round);
            return Ok(());
        }
        if task.gathered == MAX_GATHERED_RUNS {
            round.more = true;
            task.wait_to_look(&run, may_be_posted, round);
            return Ok(());
        }
        task.gathered += 1;
        let hints =
            match gather(self.deps.source.as_ref(), &run, &self.deps.parameters, &self.deps.backend).await {
                Ok(Some(hints)) => hints,
                Ok(None) => {
                    self.learn(run.last, RightHints::Empty);
                    return Ok(());
                }
                Err(GatherError::Stopped) => return Err(PostingError::Source(GatherError::Stopped)),
                Err(fault @ GatherError::Source { .. }) => {
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
    ) -> Result<(), PostingError> {
        let run = entry.run;
        let data = HintPosting::of(hints);
        let roots = self.deps.l1.hint_roots(run.first, &data).await?;
        let is_posted = entry.open.iter().any(|posting| roots.contains(&Some(posting.root)));
        let Some(root) = roots[0].filter(|_| !is_posted) else {
            if is_posted {
                self.learn(run.last, RightHints::Roots(roots));
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
        self.learn(run.last, RightHints::Roots(roots));
        if !task.is_covered() {
            round.bond_short = true;
            task.wait_for(&run, round);
            return Ok(());
        }
        match self.post(&run, &data).await {
            Ok(posting) => {
                round.posted += 1;
                self.deps.metrics.l1_postings.increment();
                tracing::info!(first = run.first, last = run.last, id = posting.id, "hints posted to L1");
                self.reread(&posting, root, &data).await?;
            }
            Err(error) if ends_the_round(&error) => return Err(error.into()),
            Err(error) => {
                // Somebody else may have been faster, or made another posting final; the next round sees it.
                self.deps.metrics.l1_failures.increment();
                self.put_off(run.last, task);
                task.wait_for(&run, round);
                tracing::warn!(first = run.first, last = run.last, %error, "L1 refuses the hints of a run");
            }
        }
        Ok(())
    }

    /// Makes another hint publisher's right posting final when its publisher does not.
    async fn see_through(
        &mut self,
        posting: &PostedLog,
        task: &Task<'_>,
        round: &mut Round,
    ) -> Result<(), PostingError> {
        if !task.is_due(posting) {
            return Ok(());
        }
        let Some(known) = self.known.get_mut(&posting.last) else { return Ok(()) };
        let since = *known.due_since_ms.get_or_insert(task.now_ms);
        if task.now_ms >= since.saturating_add(self.config.takeover_ms) {
            self.finalize(posting, round).await?;
        }
        Ok(())
    }

    async fn finalize(&self, posting: &PostedLog, round: &mut Round) -> Result<(), PostingError> {
        let (id, last) = (posting.id, posting.last);
        match self.deps.l1.finalize_hints(id).await {
            Ok(_) => {
                round.finalized += 1;
                self.deps.metrics.l1_finalized.increment();
                tracing::info!(id, last, "the hints of a run are final on L1");
                Ok(())
            }
            Err(error) if !ends_the_round(&error) => {
                self.deps.metrics.l1_failures.increment();
                tracing::warn!(id, last, %error, "L1 does not make hints final yet");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Posts the hints of all batches of a run, in order, and finds its event.
    async fn post(&self, run: &PostedRun, hints: &HintPosting) -> Result<PostedLog, L1Error> {
        let sent = self.deps.l1.post_hints(&run.reference(), hints).await?;
        let events = self.deps.l1.reader().hint_events(sent.block.saturating_sub(1), sent.block).await?;
        let ours = events.into_iter().find_map(|event| match event {
            HintEvent::Posted(posted) if posted.transaction == sent.transaction => Some(posted),
            _ => None,
        });
        ours.ok_or_else(|| L1Error::Gone { what: format!("the event of {}", sent.transaction) })
    }

    /// Reads back what was just posted: a bond hangs on it.
    async fn reread(&self, posting: &PostedLog, root: B256, hints: &HintPosting) -> Result<(), L1Error> {
        let stands = match self.deps.l1.reader().hint_data(posting).await? {
            Some(Ok(data)) => data.hints == *hints,
            // L1 took it back, and the next round looks again; or its blobs cannot be read: the root says what they hold.
            None | Some(Err(_)) => return Ok(()),
        };
        if !stands || posting.root != root {
            self.deps.metrics.l1_failures.increment();
            tracing::error!(id = posting.id, expected = %root, found = %posting.root,
                "L1 does not hold the hints that were posted: stop the hint publisher and report it, its bond is at stake");
        }
        Ok(())
    }

    fn learn(&mut self, last: u64, right_hints: RightHints) {
        if let Some(known) = self.known.get_mut(&last) {
            known.right_hints = right_hints;
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

    fn not_gathered(&mut self, run: &PostedRun, fault: &GatherError, task: &Task<'_>) {
        self.put_off(run.last, task);
        if matches!(fault, GatherError::NotYet { .. }) {
            tracing::debug!(first = run.first, last = run.last, %fault, "the hints of a run are not there yet");
        } else {
            self.deps.metrics.l1_refused_batches.increment();
            tracing::warn!(first = run.first, last = run.last, %fault, "hints are not posted: they do not stand");
        }
    }

    /// Metrics, readiness, and a line in the log when the alarm changes.
    fn report(&mut self, entries: &[RunEntry], task: &Task<'_>, round: &Round) {
        let me = self.deps.l1.account();
        let open = entries.iter().flat_map(|entry| &entry.open).filter(|posting| posting.publisher == me);
        self.deps.metrics.l1_open_postings.set(open.count() as u64);
        self.deps.metrics.l1_waiting_runs.set(round.waiting as u64);
        self.deps.metrics.l1_oldest_waiting_blocks.set(task.oldest_waiting_blocks);
        self.deps.metrics.l1_looked.set(wall_ms() / 1_000);
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

/// Whether an answer to a transaction is one that all others would get too. What a node says itself, with whatever code, is
/// about this one: an account without ether, or one transaction that it finds too large, keeps no other run waiting.
fn ends_the_round(error: &L1Error) -> bool {
    error.is_transient() && !matches!(error, L1Error::Rpc { .. })
}

async fn terms(l1: &dyn L1Reader) -> Result<HintTerms, L1Error> {
    let (publisher_bond, _) = l1.hint_stakes().await?;
    let timing = l1.timing().await?;
    let (challenge_window, hint_deadline) = (timing.challenge_window.into(), timing.hint_deadline.into());
    Ok(HintTerms { publisher_bond, challenge_window, hint_deadline })
}

/// What one round works with.
struct Task<'a> {
    blocks: L1Blocks,
    terms: HintTerms,
    /// What answers for our postings, in wei.
    bond: u128,
    /// When the round began, and what tells the time meanwhile.
    now_ms: u64,
    clock_ms: &'a (dyn Fn() -> u64 + Sync),
    gathered: usize,
    /// What the sequencer did not answer.
    unanswered: Vec<GatherError>,
    /// The oldest run that waits for more than half of the time there is.
    late: Option<(u64, u64)>,
    /// L1 blocks since the run was posted that waits longest.
    oldest_waiting_blocks: u64,
}

impl Task<'_> {
    /// Whether the bond answers for postings, however many.
    fn is_covered(&self) -> bool {
        self.bond >= self.terms.publisher_bond
    }

    /// Whether a posting has outlived its window: a transaction that is sent now gets into a later block.
    fn is_due(&self, posting: &PostedLog) -> bool {
        self.blocks.newest >= posting.l1_block.saturating_add(self.terms.challenge_window)
    }

    /// It waits, for hints or only for being looked at.
    fn wait_to_look(&mut self, run: &PostedRun, may_be_posted: bool, round: &mut Round) {
        if may_be_posted {
            round.waiting += 1;
        } else {
            self.wait_for(run, round);
        }
    }

    fn wait_for(&mut self, run: &PostedRun, round: &mut Round) {
        round.waiting += 1;
        let waited = self.blocks.newest.saturating_sub(run.posted_at);
        self.oldest_waiting_blocks = self.oldest_waiting_blocks.max(waited);
        let half = run.posted_at.saturating_add(self.terms.hint_deadline / 2);
        let is_older = self.late.is_none_or(|(first, _)| run.first < first);
        if is_older && self.blocks.newest >= half {
            self.late = Some((run.first, run.last));
        }
    }
}
