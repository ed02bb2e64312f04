//! Looking at L1, and showing what is wrong there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use blindfold_chain::{OverdueFault, PostFault, SubstitutePoster, Tracker, Turn, own_hints, verdicts};
use blindfold_runtime::Backoff;
use blindfold_store::{Store, StoreError};
use tokio::sync::watch;

use super::WatchConfig;
use super::book::{Case, CaseBook, Matter};
use super::compare::{Fault, Finding, first_fault};
use super::judge::{Judge, Judgement};
use super::seam::{Court, HintEvidence, PostingSeen, WatchBlocks, WatchEvent, WatchL1, WatchTrouble};
use crate::counters::Counters;
use crate::node::stopped;

/// Where the number of the next output to be compared is stored.
const OUTPUTS_KEY: &str = "full_node.watch.outputs";
/// Outputs compared in one round; the next round follows at once while there are more.
const MAX_OUTPUTS: usize = 256;
/// L1 blocks whose events are read at a time.
const CATCH_UP_BLOCKS: u64 = 10_000;
/// How many windows back a node looks at its start. Postings that nobody made final can be challenged after theirs.
const WINDOWS_BACK: u64 = 2;

/// Why a round ended before its end. The next one begins where L1 and the disk stand then.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// L1.
    #[error(transparent)]
    L1(#[from] WatchTrouble),
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a round found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchRound {
    /// Open postings that say something wrong.
    pub wrong: usize,
    /// Open postings that this node cannot judge yet.
    pub unchecked: usize,
    /// Cases that are not settled.
    pub cases: usize,
    /// Whether there is more to do at once.
    pub more: bool,
    /// The first thing that L1 gave no answer about; all else was looked at.
    pub trouble: Option<WatchTrouble>,
}

/// How long to wait after a round. What is left to do is done at once, whatever else is in trouble: each round does a part
/// of it, so it has an end.
fn pause(more: bool, trouble: bool, interval_ms: u64, pauses: &mut Backoff) -> Duration {
    if !trouble {
        pauses.reset();
    }
    match (more, trouble) {
        (true, _) => Duration::ZERO,
        (false, false) => Duration::from_millis(interval_ms),
        (false, true) => pauses.pause(),
    }
}

/// The first thing in a round that L1 gave no answer about.
#[derive(Default)]
struct Unanswered(Option<WatchTrouble>);

impl Unanswered {
    /// What came of one thing; `None` for no answer, which is kept for the end.
    fn of<T>(&mut self, outcome: Result<T, WatchError>) -> Result<Option<T>, StoreError> {
        match outcome {
            Ok(done) => Ok(Some(done)),
            Err(WatchError::L1(trouble)) => {
                self.0.get_or_insert(trouble);
                Ok(None)
            }
            Err(WatchError::Store(error)) => Err(error),
        }
    }
}

/// What a watcher works with.
#[derive(Clone)]
pub struct WatcherDeps {
    /// The contracts.
    pub l1: Arc<dyn WatchL1>,
    /// The chain as the node verified it.
    pub tracker: Tracker,
    /// Cases found here and elsewhere in the node.
    pub book: Arc<CaseBook>,
    /// What it checks hints with that it has not opened itself.
    pub judge: Judge,
    /// What the node counts.
    pub counters: Counters,
}

/// Compares what is on L1 with what the node verified, and brings what is wrong before the contracts.
pub struct Watcher {
    deps: WatcherDeps,
    store: Arc<dyn Store>,
    config: WatchConfig,
    /// Posts what the sequencer keeps from L1.
    poster: SubstitutePoster,
    /// Open postings by the events up to `through`, which is final; `None` before the first look.
    open: BTreeMap<u64, PostingSeen>,
    through: Option<u64>,
    /// What came out for the postings that were compared.
    findings: BTreeMap<(u64, B256), Finding>,
    /// Whether there may be something to claim.
    reward_due: bool,
}

impl Watcher {
    /// A watcher that has not looked at L1 yet.
    pub fn new(config: WatchConfig, deps: WatcherDeps) -> Self {
        let store = Arc::clone(deps.tracker.store());
        let (open, findings) = (BTreeMap::new(), BTreeMap::new());
        // A node that was killed may have shown something without having claimed its reward.
        let poster = SubstitutePoster::new(deps.l1.clone(), deps.tracker.clone());
        Self { deps, store, config, poster, open, through: None, findings, reward_due: true }
    }

    /// Watches until told to stop.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut pauses = Backoff::new(self.config.interval_ms, self.config.max_retry_ms);
        loop {
            let outcome = tokio::select! {
                () = stopped(&mut stop) => return,
                outcome = self.round() => outcome,
            };
            let (more, trouble) = match outcome {
                Ok(round) => (round.more, round.trouble.map(WatchError::from)),
                Err(error) => (false, Some(error)),
            };
            let wait = pause(more, trouble.is_some(), self.config.interval_ms, &mut pauses);
            if let Some(error) = trouble {
                self.deps.counters.watch_failures.increment();
                tracing::warn!(%error, ?wait, "watching L1 waits and tries again");
            }
            tokio::select! {
                () = stopped(&mut stop) => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Looks once at everything, and takes the next step of every case. What L1 gives no answer about holds up nothing
    /// else: not the other postings, nor other cases, nor what is overdue; the round tells of the first such thing.
    ///
    /// # Errors
    /// [`WatchError`]: L1 does not say where it stands, or the disk fails.
    pub async fn round(&mut self) -> Result<WatchRound, WatchError> {
        let blocks = self.deps.l1.blocks().await?;
        self.catch_up(&blocks).await?;
        let open = self.open_now(&blocks).await?;
        let mut round = WatchRound::default();
        self.findings.retain(|(id, root), _| open.get(id).is_some_and(|posting| posting.root == *root));
        let mut unanswered = Unanswered::default();
        for posting in open.values() {
            match unanswered.of(self.find(posting).await)?.flatten() {
                None => round.unchecked += 1,
                Some(Finding::Wrong(fault)) => {
                    round.wrong += 1;
                    if self.deps.l1.reporter().is_some() {
                        self.deps.book.keep_posting(posting, fault).await?;
                    }
                }
                Some(Finding::Right) => {}
            }
        }
        if self.deps.l1.reporter().is_some() {
            for case in self.deps.book.list() {
                unanswered.of(self.advance(&case, &open, &blocks).await)?;
            }
            unanswered.of(self.take_rewards().await)?;
            round.more = unanswered.of(self.post_overdue(&blocks).await)?.unwrap_or(false);
        }
        round.more |= unanswered.of(self.compare_outputs().await)?.unwrap_or(false);
        round.cases = self.deps.book.list().len();
        self.deps.counters.watch_wrong_postings_open.set(round.wrong as u64);
        self.deps.counters.watch_unchecked_postings.set(round.unchecked as u64);
        self.deps.counters.watch_open_cases.set(round.cases as u64);
        round.trouble = unanswered.0;
        Ok(round)
    }

    /// Posts what the sequencer keeps from L1. True when there may be more of it.
    async fn post_overdue(&mut self, blocks: &WatchBlocks) -> Result<bool, WatchError> {
        let counters = &self.deps.counters;
        match self.poster.look(blocks.newest, Turn::FullNode).await {
            Ok(look) => {
                if let Some((first, last)) = look.posted {
                    counters.watch_runs_posted.increment();
                    tracing::warn!(first, last, "posted certified headers that the sequencer keeps from L1");
                }
                if let Some(number) = look.ended {
                    tracing::warn!(
                        number,
                        "had L1 make the last header of an epoch whose end was announced and is due"
                    );
                }
                Ok(look.more)
            }
            // Somebody else may have been faster.
            Err(OverdueFault::L1(PostFault::Refused(reason))) => {
                counters.watch_failures.increment();
                tracing::warn!(
                    reason,
                    "L1 refuses headers that the sequencer keeps from it; they are tried again. Has the account of \
                     watch.key enough ether?"
                );
                Ok(false)
            }
            Err(OverdueFault::L1(fault)) => Err(WatchTrouble::from(fault).into()),
            Err(OverdueFault::Store(error)) => Err(error.into()),
        }
    }

    /// Takes the final events into the list of open postings.
    async fn catch_up(&mut self, blocks: &WatchBlocks) -> Result<(), WatchError> {
        let mut after = match self.through {
            Some(through) => through,
            None => {
                let window = self.deps.l1.challenge_window().await?;
                let start = blocks.newest.saturating_sub(window.saturating_mul(WINDOWS_BACK));
                // Not later than the postings of our own cases.
                let cases = self.deps.book.list();
                let oldest = cases.iter().filter_map(|case| match &case.matter {
                    Matter::Hints { block, .. } => Some(block.saturating_sub(1)),
                    Matter::Headers(_) => None,
                });
                oldest.min().map_or(start, |oldest| oldest.min(start)).min(blocks.finalized)
            }
        };
        while after < blocks.finalized {
            let through = blocks.finalized.min(after.saturating_add(CATCH_UP_BLOCKS));
            let events = self.deps.l1.hint_events(after, through).await?;
            events.iter().for_each(|event| apply(&mut self.open, event));
            after = through;
            self.through = Some(after);
        }
        self.through = Some(after);
        Ok(())
    }

    /// The open postings after the newest block, which L1 may still take back.
    async fn open_now(&self, blocks: &WatchBlocks) -> Result<BTreeMap<u64, PostingSeen>, WatchError> {
        let mut open = self.open.clone();
        let after = self.through.unwrap_or(blocks.finalized);
        let events = self.deps.l1.hint_events(after, blocks.newest.max(after)).await?;
        events.iter().for_each(|event| apply(&mut open, event));
        Ok(open)
    }

    /// What a posting is worth; `None` while the node does not know all of its batches, or cannot judge one.
    async fn find(&mut self, posting: &PostingSeen) -> Result<Option<Finding>, WatchError> {
        if let Some(finding) = self.findings.get(&(posting.id, posting.root)) {
            return Ok(Some(*finding));
        }
        let Some(finding) = self.judge(posting).await? else { return Ok(None) };
        self.findings.insert((posting.id, posting.root), finding);
        self.deps.counters.watch_postings_checked.increment();
        let PostingSeen { id, first, run_last, .. } = *posting;
        match finding {
            Finding::Right => tracing::debug!(id, first, run_last, "hints on L1 are right"),
            Finding::Wrong(fault) => self.wrong(posting, &fault),
        }
        Ok(Some(finding))
    }

    fn wrong(&self, posting: &PostingSeen, fault: &Fault) {
        self.deps.counters.watch_wrong_postings.increment();
        let PostingSeen { id, first, run_last, publisher, .. } = *posting;
        let Fault { number, index, kind, .. } = *fault;
        let todo = match self.deps.l1.reporter() {
            Some(_) => "challenging it",
            None => {
                "set watch.key to an account with ether on L1 and restart this node: it challenges it then"
            }
        };
        tracing::error!(id, first, run_last, number, index, kind = kind.as_str(), %publisher,
            "hints on L1 are wrong: {todo}");
    }

    /// Compares a posting with our own hints, and judges by themselves the batches that we have not opened: of a run that
    /// members release to nobody there is no other way to tell. The first fault counts.
    async fn judge(&self, posting: &PostingSeen) -> Result<Option<Finding>, WatchError> {
        if posting.run_last > self.deps.tracker.certified().number {
            return Ok(None);
        }
        let mut records = Vec::new();
        for number in posting.first..=posting.run_last {
            let Some(record) = self.store.batch(number).await? else { return Ok(None) };
            records.push(record);
        }
        let Some(posted) = self.deps.l1.posting(posting).await? else { return Ok(None) };
        let mut batches = posted.batches.into_iter();
        for record in records {
            let (number, batch) = (record.number, batches.next().unwrap_or_default());
            let fault = match own_hints(record.clone()) {
                Some(own) => first_fault(&own.entries, &batch),
                None => match self.deps.judge.judge(record, batch).await? {
                    Judgement::Right => None,
                    Judgement::Wrong(fault) => Some(fault),
                    Judgement::Untold => return Ok(None),
                },
            };
            if let Some((index, kind, key)) = fault {
                return Ok(Some(Finding::Wrong(Fault { number, index, kind, key })));
            }
        }
        Ok(Some(Finding::Right))
    }

    /// The next step of a case: L1 says how far it is.
    async fn advance(
        &mut self,
        case: &Case,
        open: &BTreeMap<u64, PostingSeen>,
        blocks: &WatchBlocks,
    ) -> Result<(), WatchError> {
        let settled_at = match &case.matter {
            Matter::Hints { id, block, root, .. } => {
                let listed = |open: &BTreeMap<u64, PostingSeen>| {
                    open.get(id).is_some_and(|posting| posting.root == *root)
                };
                match (listed(open), listed(&self.open)) {
                    (true, _) => None,
                    // Struck out or final in a block that may be taken back.
                    (false, true) => Some(u64::MAX),
                    (false, false) => Some(*block),
                }
            }
            Matter::Headers(pair) => {
                let l1 = &self.deps.l1;
                match l1.shown(pair, None).await? {
                    false => None,
                    true if l1.shown(pair, Some(blocks.finalized)).await? => Some(blocks.finalized),
                    // In a block that may be taken back.
                    true => Some(u64::MAX),
                }
            }
        };
        if let Some(block) = settled_at {
            if block <= blocks.finalized {
                self.reward_due = true;
                self.deps.book.close(case).await?;
            }
            return Ok(());
        }
        match self.prosecute(case, open, blocks).await {
            Err(WatchError::L1(WatchTrouble::Refused(reason))) => {
                self.deps.counters.watch_failures.increment();
                tracing::error!(claim = ?case.claim(), reason,
                    "L1 refuses our evidence; it is tried again. Has the account of watch.key enough ether?");
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Commits, or shows the evidence when the commitment is old enough.
    async fn prosecute(
        &mut self,
        case: &Case,
        open: &BTreeMap<u64, PostingSeen>,
        blocks: &WatchBlocks,
    ) -> Result<(), WatchError> {
        let (l1, claim) = (Arc::clone(&self.deps.l1), case.claim());
        let Some(committed) = l1.committed_at(&claim, case.salt).await? else {
            l1.commit(&claim, case.salt).await?;
            tracing::info!(?claim, "committed to evidence on L1");
            return Ok(());
        };
        if committed >= blocks.newest {
            return Ok(());
        }
        match &case.matter {
            Matter::Hints { id, fault, .. } => {
                let Some(posting) = open.get(id) else { return Ok(()) };
                let Some(evidence) = self.evidence(posting, fault).await? else { return Ok(()) };
                l1.challenge(&evidence, case.salt).await?;
                self.deps.counters.watch_challenges.increment();
                tracing::warn!(?claim, "a wrong posting of hints was struck out");
            }
            Matter::Headers(pair) => {
                let [first, second] = pair.as_ref();
                l1.slash_equivocation(first, second, case.salt).await?;
                self.deps.counters.watch_slashings.increment();
                tracing::warn!(?claim, "the sequencer's two headers were shown on L1");
            }
        }
        self.reward_due = true;
        Ok(())
    }

    /// Everything that a challenge is made from, out of the store.
    async fn evidence(
        &self,
        posting: &PostingSeen,
        fault: &Fault,
    ) -> Result<Option<HintEvidence>, WatchError> {
        let Some(posted) = self.deps.l1.posting(posting).await? else { return Ok(None) };
        let (mut headers, mut wrong) = (Vec::new(), None);
        for number in posting.first..=posting.run_last {
            let Some(record) = self.store.batch(number).await? else { return Ok(None) };
            headers.push(record.sealed.header);
            if number == fault.number {
                wrong = Some(record);
            }
        }
        let Some(record) = wrong else { return Ok(None) };
        let verdicts = verdicts(&record)?;
        let (batch, index, key) = (record.sealed, fault.index, fault.key);
        Ok(Some(HintEvidence { posting: *posting, posted, headers, batch, verdicts, index, key }))
    }

    async fn take_rewards(&mut self) -> Result<(), WatchError> {
        if !self.reward_due {
            return Ok(());
        }
        for court in [Court::Hints, Court::Inbox] {
            let amount = self.deps.l1.reward(court).await?;
            if amount > 0 {
                self.deps.l1.claim_reward(court).await?;
                self.deps.counters.watch_rewards.increment();
                tracing::info!(amount, ?court, "took a reward on L1");
            }
        }
        self.reward_due = false;
        Ok(())
    }

    /// Compares claims about blocks with ours, as far as we have executed. Whether there is more at once.
    async fn compare_outputs(&self) -> Result<bool, WatchError> {
        let stored = self.store.meta(OUTPUTS_KEY).await?;
        let first = stored.and_then(|bytes| bytes.try_into().ok()).map_or(1, u64::from_be_bytes);
        let outputs = self.deps.l1.outputs(first, MAX_OUTPUTS).await?;
        let full = outputs.len() == MAX_OUTPUTS;
        let mut next = first;
        for output in outputs {
            if output.l2_block != next {
                let reason = format!("output {} in place of {next}", output.l2_block);
                return Err(WatchTrouble::Unavailable(reason).into());
            }
            let Some(own) = self.store.block(next).await? else { break };
            let same = (own.hash, own.state_root, own.second)
                == (output.block_hash, output.state_root, output.timestamp)
                && (own.first_batch..=own.last_batch).contains(&output.batch);
            self.deps.counters.watch_outputs_compared.increment();
            if !same {
                self.deps.counters.watch_output_mismatches.increment();
                tracing::error!(number = next, ours = %own.hash, theirs = %output.block_hash,
                    our_state = %own.state_root, their_state = %output.state_root,
                    "the sequencer claims another block on L1 than ours: who believes OutputRegistry is deceived, \
                     or this node's execution differs; compare with other nodes");
            }
            next += 1;
        }
        if next > first {
            self.store.put_meta(OUTPUTS_KEY, &next.to_be_bytes()).await?;
        }
        Ok(full && next - first == MAX_OUTPUTS as u64)
    }
}

fn apply(open: &mut BTreeMap<u64, PostingSeen>, event: &WatchEvent) {
    match event {
        WatchEvent::Posted(posting) => {
            open.insert(posting.id, *posting);
        }
        WatchEvent::Closed { id } => {
            open.remove(id);
        }
        WatchEvent::Struck { publisher } => open.retain(|_, posting| posting.publisher != *publisher),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_to_do_waits_for_no_trouble() {
        let mut pauses = Backoff::seeded(1_000, 60_000, 1);
        let mut after = |more, trouble| pause(more, trouble, 12_000, &mut pauses);
        let first = Duration::from_millis(500)..=Duration::from_secs(1);
        assert_eq!(after(false, false), Duration::from_secs(12));
        assert!(first.contains(&after(false, true)));
        for _ in 0..10 {
            assert_eq!(after(true, true), Duration::ZERO);
        }
        // Nor does it make the pause longer.
        assert!(after(false, true) <= 2 * *first.end());
        assert_eq!(after(true, false), Duration::ZERO);
        assert!(first.contains(&after(false, true)));
    }
}
