//! Looking at L1, and showing what is wrong there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use blindfold_chain::{L1RoundError, SubstitutePoster, Tracker, Turn, own_hints, verdicts};
use blindfold_l1::{
    DisputeContract, HintData, HintEvidence, L1Blocks, L1Error, L1Reader, L1Submitter, PostedLog,
    RegistryState, commitment,
};
use blindfold_runtime::{Backoff, until};
use blindfold_store::{Store, StoreError};
use tokio::sync::watch;

use super::WatchConfig;
use super::compare::{Fault, Finding, first_fault};
use super::evidence::{Dispute, EvidenceStore, Offence};
use super::judge::{Judge, Judgement};
use crate::counters::Counters;

/// Where the number of the next output to be compared is stored.
const OUTPUTS_KEY: &str = "full_node.watch.outputs";
/// Outputs compared in one round; the next round follows at once while there are more.
const MAX_OUTPUTS: usize = 256;
/// L1 blocks whose events are read at a time.
const CATCH_UP_BLOCKS: u64 = 10_000;
/// How many windows back a node looks at its start. Postings that nobody made final can be challenged after theirs.
const WINDOWS_BACK: u64 = 2;

/// What a round found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchRound {
    /// Open postings that say something wrong.
    pub wrong: usize,
    /// Open postings that this node cannot judge yet.
    pub unchecked: usize,
    /// Cases that are not settled.
    pub disputes: usize,
    /// Whether there is more to do at once.
    pub more: bool,
    /// The first thing that L1 gave no answer about; all else was looked at.
    pub first_error: Option<L1Error>,
}

/// How long to wait after a round. What is left to do is done at once, whatever else fails: each round does a part
/// of it, so it has an end.
fn pause(more: bool, failed: bool, interval_ms: u64, pauses: &mut Backoff) -> Duration {
    if !failed {
        pauses.reset();
    }
    match (more, failed) {
        (true, _) => Duration::ZERO,
        (false, false) => Duration::from_millis(interval_ms),
        (false, true) => pauses.pause(),
    }
}

/// The first thing in a round that L1 gave no answer about.
#[derive(Default)]
struct Unanswered(Option<L1Error>);

impl Unanswered {
    /// What came of one thing; `None` for no answer, which is kept for the end.
    fn of<T>(&mut self, outcome: Result<T, L1RoundError>) -> Result<Option<T>, StoreError> {
        match outcome {
            Ok(done) => Ok(Some(done)),
            Err(L1RoundError::L1(error)) => {
                self.0.get_or_insert(error);
                Ok(None)
            }
            Err(L1RoundError::Store(error)) => Err(error),
        }
    }
}

/// What a watcher works with.
#[derive(Clone)]
pub struct WatcherDeps {
    /// What L1 says, read by this node.
    pub l1: Arc<dyn L1Reader>,
    /// The account that shows evidence; `None` when the node only looks.
    pub reporter: Option<Arc<dyn L1Submitter>>,
    /// The chain as the node verified it.
    pub tracker: Tracker,
    /// Cases found here and elsewhere in the node.
    pub evidence: Arc<EvidenceStore>,
    /// What it checks hints with that it has not opened itself.
    pub judge: Judge,
    /// What the node counts, for `/metrics` and `blind_getStatus`.
    pub counters: Counters,
}

/// Compares what is on L1 with what the node verified, and brings what is wrong before the contracts.
pub struct Watcher {
    deps: WatcherDeps,
    store: Arc<dyn Store>,
    config: WatchConfig,
    /// Posts what the sequencer keeps from L1.
    poster: Option<SubstitutePoster>,
    /// Open postings by the events up to `through`, which is final; `None` before the first look.
    open: RegistryState,
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
        let (open, findings) = (RegistryState::default(), BTreeMap::new());
        // A node that was killed may have shown something without having claimed its reward.
        let reporter = deps.reporter.clone();
        let poster = reporter.map(|reporter| SubstitutePoster::new(reporter, deps.tracker.clone()));
        Self { deps, store, config, poster, open, through: None, findings, reward_due: true }
    }

    /// Watches until told to stop.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut pauses = Backoff::new(self.config.interval_ms, self.config.max_retry_ms);
        loop {
            let outcome = tokio::select! {
                () = until(&mut stop) => return,
                outcome = self.round() => outcome,
            };
            let (more, failure) = match outcome {
                Ok(round) => (round.more, round.first_error.map(L1RoundError::from)),
                Err(error) => (false, Some(error)),
            };
            let wait = pause(more, failure.is_some(), self.config.interval_ms, &mut pauses);
            if let Some(error) = failure {
                self.deps.counters.watch_failures.increment();
                tracing::warn!(%error, ?wait, "watching L1 waits and tries again");
            }
            tokio::select! {
                () = until(&mut stop) => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Looks once at everything, and takes the next step of every dispute. What L1 gives no answer about holds up nothing
    /// else: not the other postings, nor other disputes, nor what is overdue; the round tells of the first such thing.
    ///
    /// # Errors
    /// [`L1RoundError`]: L1 does not say where it stands, or the disk fails.
    pub async fn round(&mut self) -> Result<WatchRound, L1RoundError> {
        let blocks = self.deps.l1.blocks().await?;
        self.catch_up(&blocks).await?;
        let open = self.open_now(&blocks).await?;
        let mut round = WatchRound::default();
        self.findings
            .retain(|(id, root), _| open.open_posting(*id).is_some_and(|posted| posted.root == *root));
        let mut unanswered = Unanswered::default();
        for posting in open.open() {
            match unanswered.of(self.find(posting).await)?.flatten() {
                None => round.unchecked += 1,
                Some(Finding::Wrong(fault)) => {
                    round.wrong += 1;
                    if self.deps.reporter.is_some() {
                        self.deps.evidence.keep_posting(posting, fault).await?;
                    }
                }
                Some(Finding::Right) => {}
            }
        }
        if let Some(reporter) = self.deps.reporter.clone() {
            for dispute in self.deps.evidence.list() {
                unanswered.of(self.advance(&reporter, &dispute, &open, &blocks).await)?;
            }
            unanswered.of(self.take_rewards(&reporter).await)?;
            round.more = unanswered.of(self.post_overdue(&blocks).await)?.unwrap_or(false);
        }
        round.more |= unanswered.of(self.compare_outputs().await)?.unwrap_or(false);
        round.disputes = self.deps.evidence.list().len();
        self.deps.counters.watch_wrong_postings_open.set(round.wrong as u64);
        self.deps.counters.watch_unchecked_postings.set(round.unchecked as u64);
        self.deps.counters.watch_open_cases.set(round.disputes as u64);
        round.first_error = unanswered.0;
        Ok(round)
    }

    /// Posts what the sequencer keeps from L1. True when there may be more of it.
    async fn post_overdue(&mut self, blocks: &L1Blocks) -> Result<bool, L1RoundError> {
        let counters = &self.deps.counters;
        let Some(poster) = &mut self.poster else { return Ok(false) };
        match poster.look(blocks.newest, Turn::FullNode).await {
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
            Err(L1RoundError::L1(error)) if !error.is_transient() => {
                counters.watch_failures.increment();
                tracing::warn!(
                    %error,
                    "L1 refuses headers that the sequencer keeps from it; they are tried again. Has the account of \
                     watch.key enough ether?"
                );
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes the final events into the list of open postings.
    async fn catch_up(&mut self, blocks: &L1Blocks) -> Result<(), L1RoundError> {
        let mut after = match self.through {
            Some(through) => through,
            None => {
                let window = u64::from(self.deps.l1.timing().await?.challenge_window);
                let start = blocks.newest.saturating_sub(window.saturating_mul(WINDOWS_BACK));
                // Not later than the postings of our own disputes.
                let disputes = self.deps.evidence.list();
                let oldest = disputes.iter().filter_map(|dispute| match &dispute.offence {
                    Offence::Hints { block, .. } => Some(block.saturating_sub(1)),
                    Offence::Headers(_) => None,
                });
                oldest.min().map_or(start, |oldest| oldest.min(start)).min(blocks.finalized)
            }
        };
        while after < blocks.finalized {
            let through = blocks.finalized.min(after.saturating_add(CATCH_UP_BLOCKS));
            let events = self.deps.l1.hint_events(after, through).await?;
            events.iter().for_each(|event| self.open.apply(event));
            self.open.keep_open();
            after = through;
            self.through = Some(after);
        }
        self.through = Some(after);
        Ok(())
    }

    /// The open postings after the newest block, which L1 may still take back.
    async fn open_now(&self, blocks: &L1Blocks) -> Result<RegistryState, L1RoundError> {
        let mut open = self.open.clone();
        let after = self.through.unwrap_or(blocks.finalized);
        let events = self.deps.l1.hint_events(after, blocks.newest.max(after)).await?;
        events.iter().for_each(|event| open.apply(event));
        Ok(open)
    }

    /// What a posting is worth; `None` while the node does not know all of its batches, or cannot judge one.
    async fn find(&mut self, posting: &PostedLog) -> Result<Option<Finding>, L1RoundError> {
        if let Some(finding) = self.findings.get(&(posting.id, posting.root)) {
            return Ok(Some(*finding));
        }
        let Some(finding) = self.judge(posting).await? else { return Ok(None) };
        self.findings.insert((posting.id, posting.root), finding);
        self.deps.counters.watch_postings_checked.increment();
        let PostedLog { id, first, last, .. } = *posting;
        match finding {
            Finding::Right => tracing::debug!(id, first, last, "hints on L1 are right"),
            Finding::Wrong(fault) => self.wrong(posting, &fault),
        }
        Ok(Some(finding))
    }

    fn wrong(&self, posting: &PostedLog, fault: &Fault) {
        self.deps.counters.watch_wrong_postings.increment();
        let PostedLog { id, first, last, publisher, .. } = *posting;
        let Fault { number, index, kind, .. } = *fault;
        let todo = match self.deps.reporter {
            Some(_) => "challenging it",
            None => {
                "set watch.key to an account with ether on L1 and restart this node: it challenges it then"
            }
        };
        tracing::error!(id, first, last, number, index, kind = kind.as_str(), %publisher,
            "hints on L1 are wrong: {todo}");
    }

    /// Compares a posting with our own hints, and judges by themselves the batches that we have not opened: of a run that
    /// members release to nobody there is no other way to tell. The first fault counts.
    async fn judge(&self, posting: &PostedLog) -> Result<Option<Finding>, L1RoundError> {
        if posting.last > self.deps.tracker.certified().number {
            return Ok(None);
        }
        let mut records = Vec::new();
        for number in posting.first..=posting.last {
            match self.store.batch(number).await {
                Ok(Some(record)) => records.push(record),
                Ok(None) => return Ok(None),
                // It is final: no posting of it changes anything.
                Err(pruned) if pruned.is_pruned() => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        let Some(data) = self.data_of(posting).await? else { return Ok(None) };
        let mut batches = data.hints.batches.into_iter();
        for record in records {
            let (number, batch) = (record.number, batches.next().unwrap_or_default());
            let fault = match own_hints(record.clone()) {
                Some(own) => first_fault(&own.entries, &batch),
                None => match self.deps.judge.judge(record, batch).await? {
                    Judgement::Right => None,
                    Judgement::Wrong(fault) => Some(fault),
                    Judgement::Undecided => return Ok(None),
                },
            };
            if let Some((index, kind, key)) = fault {
                return Ok(Some(Finding::Wrong(Fault { number, index, kind, key })));
            }
        }
        Ok(Some(Finding::Right))
    }

    /// The data of a posting; `None` when L1 has no such posting (any more), or its blobs cannot be had.
    async fn data_of(&self, posting: &PostedLog) -> Result<Option<HintData>, L1Error> {
        match self.deps.l1.hint_data(posting).await? {
            Some(Ok(data)) => Ok(Some(data)),
            Some(Err(fault)) => {
                let PostedLog { id, first, last, .. } = *posting;
                tracing::error!(id, first, last, %fault, "hints on L1 cannot be compared");
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// The next step of a dispute: L1 says how far it is.
    async fn advance(
        &mut self,
        reporter: &Arc<dyn L1Submitter>,
        dispute: &Dispute,
        open: &RegistryState,
        blocks: &L1Blocks,
    ) -> Result<(), L1RoundError> {
        let settled_at = match &dispute.offence {
            Offence::Hints { id, block, root, .. } => {
                let listed = |open: &RegistryState| {
                    open.open_posting(*id).is_some_and(|posting| posting.root == *root)
                };
                match (listed(open), listed(&self.open)) {
                    (true, _) => None,
                    // Slashed or final in a block that may be taken back.
                    (false, true) => Some(u64::MAX),
                    (false, false) => Some(*block),
                }
            }
            Offence::Headers(pair) => {
                let l1 = &self.deps.l1;
                match l1.are_shown(pair, None).await? {
                    false => None,
                    true if l1.are_shown(pair, Some(blocks.finalized)).await? => Some(blocks.finalized),
                    // In a block that may be taken back.
                    true => Some(u64::MAX),
                }
            }
        };
        if let Some(block) = settled_at {
            if block <= blocks.finalized {
                self.reward_due = true;
                self.deps.evidence.close(dispute).await?;
            }
            return Ok(());
        }
        match self.prosecute(reporter, dispute, open, blocks).await {
            Err(L1RoundError::L1(error)) if !error.is_transient() => {
                self.deps.counters.watch_failures.increment();
                tracing::error!(claim = ?dispute.claim(), %error,
                    "L1 refuses our evidence; it is tried again. Has the account of watch.key enough ether?");
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Commits, or shows the evidence when the commitment is old enough.
    async fn prosecute(
        &mut self,
        reporter: &Arc<dyn L1Submitter>,
        dispute: &Dispute,
        open: &RegistryState,
        blocks: &L1Blocks,
    ) -> Result<(), L1RoundError> {
        let claim = dispute.claim();
        let (contract, evidence) = (claim.contract(), claim.evidence());
        let commitment = commitment(reporter.account(), evidence, dispute.salt);
        let Some(committed) = self.deps.l1.committed_at(contract, commitment).await? else {
            reporter.commit(contract, evidence, dispute.salt).await?;
            tracing::info!(?claim, "committed to evidence on L1");
            return Ok(());
        };
        if committed >= blocks.newest {
            return Ok(());
        }
        match &dispute.offence {
            Offence::Hints { id, fault, .. } => {
                let Some(posting) = open.open_posting(*id) else { return Ok(()) };
                let Some(evidence) = self.evidence(posting, fault).await? else { return Ok(()) };
                reporter.challenge(&evidence, dispute.salt).await?;
                self.deps.counters.watch_challenges.increment();
                tracing::warn!(?claim, "a wrong posting of hints was slashed");
            }
            Offence::Headers(pair) => {
                reporter.slash_equivocation(pair, dispute.salt).await?;
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
        posting: &PostedLog,
        fault: &Fault,
    ) -> Result<Option<HintEvidence>, L1RoundError> {
        let Some(data) = self.data_of(posting).await? else { return Ok(None) };
        let (mut headers, mut wrong) = (Vec::new(), None);
        for number in posting.first..=posting.last {
            let record = match self.store.batch(number).await {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(None),
                // Its run has other hints for good, and of this case nothing can be shown from here any more.
                Err(pruned) if pruned.is_pruned() => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            headers.push(record.sealed.header);
            if number == fault.number {
                wrong = Some(record);
            }
        }
        let Some(record) = wrong else { return Ok(None) };
        let verdicts = verdicts(&record)?;
        let (batch, index, key) = (record.sealed, fault.index, fault.key);
        Ok(Some(HintEvidence { posting: *posting, data, headers, batch, verdicts, index, key }))
    }

    async fn take_rewards(&mut self, reporter: &Arc<dyn L1Submitter>) -> Result<(), L1RoundError> {
        if !self.reward_due {
            return Ok(());
        }
        for contract in [DisputeContract::Hints, DisputeContract::Inbox] {
            let amount = self.deps.l1.reward_of(contract, reporter.account()).await?;
            if amount > 0 {
                reporter.claim_reward(contract).await?;
                self.deps.counters.watch_rewards.increment();
                tracing::info!(amount, ?contract, "took a reward on L1");
            }
        }
        self.reward_due = false;
        Ok(())
    }

    /// Compares claims about blocks with ours, as far as we have executed. Whether there is more at once.
    async fn compare_outputs(&self) -> Result<bool, L1RoundError> {
        let stored = self.store.meta(OUTPUTS_KEY).await?;
        let first = stored.and_then(|bytes| bytes.try_into().ok()).map_or(1, u64::from_be_bytes);
        let outputs = self.deps.l1.final_outputs(first, MAX_OUTPUTS).await?;
        let full = outputs.len() == MAX_OUTPUTS;
        let mut next = first;
        for output in outputs {
            if output.l2_block != next {
                let reason = format!("output {} in place of {next}", output.l2_block);
                return Err(L1Error::Malformed { method: "eth_getLogs".to_owned(), reason }.into());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_to_do_waits_for_no_failure() {
        let mut pauses = Backoff::seeded(1_000, 60_000, 1);
        let mut after = |more, failed| pause(more, failed, 12_000, &mut pauses);
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
