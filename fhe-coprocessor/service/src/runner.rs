//! The executing task: each certified batch in order, durable before it is announced.

use std::sync::Arc;
use std::time::Duration;

use blindfold_chain::{
    ItemOutcome, L1Error, L1Reader, OpenBatchError, Opener, Settled, Tracker, VoidRun, accepted,
    unopened_outcomes,
};
use blindfold_runtime::{Patience, now};
use blindfold_store::{
    BatchRecord, ConfidentialBatchRecord, ConfidentialHead, ConfidentialStore, ConfidentialTransactionRecord,
    StoreError,
};
use tokio::sync::watch;

use crate::counters::Counters;
use crate::items::confidential_items;
use crate::limits::{
    HALTED_EXIT_MS, MAX_RETRY_PAUSE_MS, MIN_RETRY_PAUSE_MS, PRUNE_INTERVAL_VERSIONS, PRUNE_RETRY_BATCHES,
    PRUNE_STEPS_PER_BATCH, VOID_CHECK_INTERVAL_MS,
};
use crate::{CommittedItem, Execution, Machine, Receipt};

/// Why execution stopped. Following, verifying and serving go on.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// The disk failed, or holds damaged records.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A batch with hints that does not open.
    #[error(transparent)]
    Open(OpenBatchError),
    /// A certified batch that is not on disk: our disk is damaged.
    #[error("certified batch {0} is not on disk")]
    Missing(u64),
    /// L1 answers with something unusable.
    #[error(transparent)]
    L1(#[from] L1Error),
    /// The state was computed with another chain of batches: it belongs to another deployment, or the disk is damaged.
    #[error("batch {0} was executed with another header: give this coprocessor its own folder")]
    OtherHeader(u64),
    /// L1 declared a batch void whose confidential transactions are executed here already.
    #[error(
        "L1 declared batch {0} void, and its confidential transactions are executed: start again from an empty folder"
    )]
    VoidedAfterExecution(u64),
    /// The executor itself failed; a mistake of this program.
    #[error("executing batch {0} failed")]
    Machine(u64),
}

enum End {
    Stopped,
    Fault(ExecutionError),
}

impl<F: Into<ExecutionError>> From<F> for End {
    fn from(fault: F) -> Self {
        Self::Fault(fault.into())
    }
}

impl From<OpenBatchError> for End {
    fn from(fault: OpenBatchError) -> Self {
        match fault {
            OpenBatchError::Stopped => Self::Stopped,
            fault => Self::Fault(ExecutionError::Open(fault)),
        }
    }
}

/// What execution is doing at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutionState {
    /// Waiting for a certified batch.
    Waiting,
    /// Waiting for the hints of this batch.
    WaitingForHints(u64),
    /// At work.
    Executing,
    /// Something failed that may pass; the words say what.
    Retrying(String),
    /// Given up; an operator has to look, and a restart tries again.
    Halted(String),
    /// It was told to stop.
    Stopped,
}

/// How far execution is, and what it is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionStatus {
    /// The newest batch that is executed and durable.
    pub head: ConfidentialHead,
    /// What execution is doing now.
    pub state: ExecutionState,
}

/// How far the batches stand on L1, and the final block as of which they do.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reported {
    pub(crate) marks: Settled,
    pub(crate) l1_block: u64,
}

/// What the task works with.
pub(crate) struct Runner {
    pub(crate) tracker: Tracker,
    pub(crate) opener: Opener,
    pub(crate) l1: Arc<dyn L1Reader>,
    pub(crate) store: Arc<dyn ConfidentialStore>,
    /// Away while it executes.
    pub(crate) machine: Option<Box<dyn Machine>>,
    pub(crate) counters: Counters,
    pub(crate) kept_versions: u64,
    pub(crate) status: watch::Sender<ExecutionStatus>,
    pub(crate) stopped: watch::Receiver<bool>,
    /// How far the batches stand on L1, void ones too.
    pub(crate) reported: watch::Receiver<Reported>,
    /// The same once what is executed was compared with what is void there: what callers are told.
    pub(crate) marks: watch::Sender<Settled>,
    /// Void runs as far as they were compared with what is executed.
    pub(crate) void_runs: Vec<VoidRun>,
    pub(crate) pruning: Pruning,
}

/// How far old state is forgotten.
#[derive(Default)]
pub(crate) struct Pruning {
    /// The version up to which it is to be.
    wanted: u64,
    /// The version up to which all of it is.
    done: u64,
    /// The batch with which it goes on after a failure.
    resume: u64,
}

impl Runner {
    pub(crate) async fn run(mut self) {
        let mut pause = Pause::default();
        let mut patience = Patience::new(HALTED_EXIT_MS);
        let mut reached = self.executed();
        loop {
            let began = now();
            let fault = match self.work().await {
                End::Stopped => return self.set_state(ExecutionState::Stopped),
                End::Fault(fault) => fault,
            };
            // Where nothing is to be executed, L1 that was well in between is as good as progress.
            let passed = began.elapsed() >= Duration::from_millis(2 * VOID_CHECK_INTERVAL_MS);
            if self.executed() > reached || passed {
                reached = self.executed();
                (pause, patience) = (Pause::default(), Patience::new(HALTED_EXIT_MS));
            }
            self.set_state(ExecutionState::Halted(fault.to_string()));
            // What L1 says is asked before anything is executed, and one answer may be that of a server behind the others.
            let of_l1 = matches!(fault, ExecutionError::L1(_));
            let wait_ms = if of_l1 { pause.0 } else { HALTED_EXIT_MS };
            tracing::error!(%fault, wait_ms, "execution stopped; following and serving go on");
            if of_l1 && patience.failed() {
                return;
            }
            // Served meanwhile; then it is tried again, or the role ends, and its supervisor starts it again from what is on
            // disk.
            tokio::select! {
                _ = self.stopped.wait_for(|stopped| *stopped) => return,
                () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
            }
            if !of_l1 {
                return;
            }
            pause.0 = MAX_RETRY_PAUSE_MS.min(pause.0 * 2);
        }
    }

    /// The newest batch that is executed and durable.
    fn executed(&self) -> u64 {
        self.status.borrow().head.number
    }

    async fn work(&mut self) -> End {
        if let Err(end) = self.check_head().await {
            return end;
        }
        loop {
            if let Err(end) = self.step().await {
                return end;
            }
        }
    }

    /// The chain on disk must be the one that the state was computed from.
    async fn check_head(&mut self) -> Result<(), End> {
        let head = self.status.borrow().head;
        let batch = self.tracker.store().batch(head.number).await?;
        if head.number > 0 && batch.is_none_or(|batch| batch.hash != head.hash) {
            return Err(ExecutionError::OtherHeader(head.number).into());
        }
        Ok(())
    }

    /// One batch: waits until it is certified and opened, executes it, stores it, announces it.
    async fn step(&mut self) -> Result<(), End> {
        let number = self.status.borrow().head.number + 1;
        let record = self.certified(number).await?;
        let outcomes = self.outcomes(&record).await?;
        let items = confidential_items(&outcomes);
        let batch = Arc::new(self.execute(&record, items).await?);
        self.store(&batch).await?;
        self.announce(&batch);
        self.prune(batch.head).await
    }

    async fn certified(&mut self, number: u64) -> Result<BatchRecord, End> {
        let mut certified = self.tracker.watch_certified();
        while certified.borrow_and_update().number < number {
            self.set_state(ExecutionState::Waiting);
            let check = Duration::from_millis(VOID_CHECK_INTERVAL_MS);
            let idle = tokio::select! {
                _ = self.stopped.wait_for(|stopped| *stopped) => return Err(End::Stopped),
                changed = certified.changed() => changed.map(|()| false).map_err(|_| End::Stopped)?,
                () = tokio::time::sleep(check) => true,
            };
            // What became void late is noticed without the next batch, too. L1 may be away meanwhile.
            if idle {
                match self.read_void_runs().await {
                    Err(End::Fault(ExecutionError::L1(fault))) if fault.may_pass() => {}
                    read => read?,
                }
            }
        }
        let record = self.tracker.store().batch(number).await?;
        Ok(record.ok_or(ExecutionError::Missing(number))?)
    }

    /// What the items of a batch are, as soon as its hints are there, or L1 has declared it void.
    async fn outcomes(&mut self, record: &BatchRecord) -> Result<Arc<Vec<ItemOutcome>>, End> {
        let number = record.number;
        if accepted(record) == 0 {
            return Ok(Arc::new(unopened_outcomes(record)?));
        }
        let mut arrivals = self.opener.arrivals();
        loop {
            arrivals.borrow_and_update();
            if self.is_void(number).await? {
                return Ok(Arc::new(unopened_outcomes(record)?));
            }
            if let Some(outcomes) = self.opener.open(number).await? {
                return Ok(outcomes);
            }
            self.set_state(ExecutionState::WaitingForHints(number));
            tokio::select! {
                _ = self.stopped.wait_for(|stopped| *stopped) => return Err(End::Stopped),
                changed = arrivals.changed() => changed.map_err(|_| End::Stopped)?,
                () = tokio::time::sleep(Duration::from_millis(VOID_CHECK_INTERVAL_MS)) => {}
            }
        }
    }

    /// Reads what L1 declared void, and halts when confidential transactions of it are executed already.
    async fn read_void_runs(&mut self) -> Result<(), End> {
        let (reported, told) = (*self.reported.borrow(), *self.marks.borrow());
        // The block first: what is known speaks for it at least.
        let seen = if reported.marks == told { 0 } else { self.l1.finalized().await?.number };
        let runs = self.l1.void_runs().await?;
        let executed = self.status.borrow().head.number;
        for run in runs.iter().skip(self.void_runs.len()) {
            for number in run.first..=run.last.min(executed) {
                if self.store.confidential_transactions_in(number).await? > 0 {
                    return Err(ExecutionError::VoidedAfterExecution(number).into());
                }
            }
        }
        self.void_runs = runs;
        // An L1 that lags behind the one that the marks are of may not know yet what is void.
        if reported.marks != told && seen >= reported.l1_block {
            self.marks.send_replace(reported.marks);
        }
        Ok(())
    }

    async fn is_void(&mut self, number: u64) -> Result<bool, End> {
        let mut pause = Pause::default();
        loop {
            match self.read_void_runs().await {
                Ok(()) => return Ok(self.void_runs.iter().any(|run| run.contains(number))),
                Err(End::Fault(ExecutionError::L1(fault))) if fault.may_pass() => {
                    self.wait(&mut pause, &fault.to_string()).await?;
                }
                Err(end) => return Err(end),
            }
        }
    }

    async fn execute(
        &mut self,
        record: &BatchRecord,
        mut items: Vec<CommittedItem>,
    ) -> Result<ConfidentialBatchRecord, End> {
        let head = self.status.borrow().head;
        if items.is_empty() {
            let head = ConfidentialHead { number: record.number, hash: record.hash, ..head };
            let (transactions, accounts) = (Vec::new(), Vec::new());
            let (nodes, balances) = (Vec::new(), Vec::new());
            return Ok(ConfidentialBatchRecord { head, transactions, accounts, nodes, balances });
        }
        self.set_state(ExecutionState::Executing);
        let failed = || ExecutionError::Machine(record.number);
        let mut machine = self.machine.take().ok_or_else(failed)?;
        let mut pause = Pause::default();
        let execution = loop {
            let executed = blindfold_runtime::blocking(move || {
                let execution = machine.execute(&items);
                (machine, items, execution)
            });
            let (back, given, execution) = executed.await.map_err(|_| failed())?;
            (machine, items) = (back, given);
            match execution {
                Ok(execution) => break execution,
                Err(error) if error.retry() => self.wait(&mut pause, &error.to_string()).await?,
                Err(error) => return Err(error.into()),
            }
        };
        self.machine = Some(machine);
        if execution.outcomes.len() != items.len() {
            return Err(failed().into());
        }
        Ok(batch_record((record.number, record.hash), head.sequence, items, execution))
    }

    /// Stores a batch, however often that takes: the machine is ahead of the disk until it is done.
    async fn store(&mut self, batch: &Arc<ConfidentialBatchRecord>) -> Result<(), End> {
        let mut pause = Pause::default();
        loop {
            match self.store.put_confidential_batch(Arc::clone(batch)).await {
                Ok(()) => return Ok(()),
                Err(error) if error.retry() => self.wait(&mut pause, &error.to_string()).await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn announce(&self, batch: &ConfidentialBatchRecord) {
        let applied = batch.transactions.iter().filter(|transaction| transaction.applied).count() as u64;
        let refused = batch.transactions.len() as u64 - applied;
        self.counters.batches_executed.increment();
        self.counters.transactions_applied.add(applied);
        self.counters.transactions_refused.add(refused);
        let ConfidentialHead { number, version, accounts, state_root, .. } = batch.head;
        if applied + refused > 0 {
            tracing::info!(number, version, applied, refused, accounts, %state_root, "executed a batch");
        }
        self.status.send_modify(|status| status.head = batch.head);
    }

    /// Forgets state that is older than the settings keep, now and then: a few steps with each batch until there is no more.
    async fn prune(&mut self, head: ConfidentialHead) -> Result<(), End> {
        let keep_from = head.version.saturating_sub(self.kept_versions);
        let Pruning { wanted, done, resume } = &mut self.pruning;
        if self.kept_versions > 0 && keep_from >= wanted.saturating_add(PRUNE_INTERVAL_VERSIONS) {
            *wanted = keep_from;
        }
        for _ in 0..PRUNE_STEPS_PER_BATCH {
            if *done >= *wanted || head.number < *resume {
                break;
            }
            match self.store.prune_confidential(*wanted).await {
                Ok(true) => {}
                Ok(false) => *done = *wanted,
                Err(error) if error.retry() => {
                    tracing::warn!(%error, "old state is not forgotten yet");
                    *resume = head.number.saturating_add(PRUNE_RETRY_BATCHES);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn wait(&mut self, pause: &mut Pause, reason: &str) -> Result<(), End> {
        tracing::warn!(reason, pause_ms = pause.0, "execution waits and tries again");
        self.counters.retries.increment();
        self.set_state(ExecutionState::Retrying(reason.to_owned()));
        tokio::select! {
            _ = self.stopped.wait_for(|stopped| *stopped) => Err(End::Stopped),
            () = tokio::time::sleep(Duration::from_millis(pause.0)) => {
                pause.0 = MAX_RETRY_PAUSE_MS.min(pause.0 * 2);
                Ok(())
            }
        }
    }

    fn set_state(&self, state: ExecutionState) {
        self.status.send_if_modified(|status| {
            let changed = status.state != state;
            if changed {
                status.state = state;
            }
            changed
        });
    }
}

/// What is stored of a batch. `sequence` is that before it; there is one outcome for each item.
pub fn batch_record(
    (number, hash): (u64, alloy_primitives::B256),
    sequence: u64,
    items: Vec<CommittedItem>,
    execution: Execution,
) -> ConfidentialBatchRecord {
    let mut last = sequence;
    let transactions = items.into_iter().zip(execution.outcomes).map(|(item, outcome)| {
        last += 1;
        let receipt = Receipt { kind: outcome.kind.map(str::to_owned), reason: outcome.refusal };
        ConfidentialTransactionRecord {
            sequence: last,
            version: outcome.version,
            id: outcome.id,
            item: item.item,
            position: item.position,
            applied: receipt.reason.is_none(),
            bytes: item.bytes,
            receipt: receipt.to_json(),
            state_root: outcome.state_root,
            parties: outcome.parties,
        }
    });
    let transactions: Vec<_> = transactions.collect();
    let roots = execution.roots;
    ConfidentialBatchRecord {
        head: ConfidentialHead {
            number,
            hash,
            sequence: last,
            version: roots.version,
            accounts: roots.accounts,
            public_accounts: roots.public_accounts,
            accounts_root: roots.accounts_root,
            public_root: roots.public_root,
            confidential: roots.confidential,
            state_root: roots.state_root,
        },
        transactions,
        accounts: execution.accounts,
        nodes: execution.nodes,
        balances: execution.balances,
    }
}

/// A pause in milliseconds that doubles with each use.
struct Pause(u64);

impl Default for Pause {
    fn default() -> Self {
        Self(MIN_RETRY_PAUSE_MS)
    }
}
