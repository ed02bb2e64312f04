//! The executing task.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{B256, Bytes};
use async_trait::async_trait;
use blindfold_engine::{
    BlockId, BlockInputs, EngineError, ExecutedBlock, L1Origin, PayloadSource, PayloadSourceError, Recovery,
    ReplayError, StoredPayload, replay,
};
use blindfold_protocol::block::{OrderError, Second, sequence_number};
use blindfold_runtime::{Backoff, Instant, Patience, now};
use blindfold_store::{BatchRecord, BlockRecord, Store, StoreError, What};
use blindfold_telemetry::traces;
use tokio::sync::{broadcast, watch};

use super::deposits::Deposits;
use super::details::{BlockDetails, DepositCursor};
use super::plan::{Plan, SkippedOutside};
use super::seconds::{BlockAssembler, BlockSlot};
use super::take_back::{Question, VoidAnswer};
use super::void::VoidRuns;
use super::{ExecutionState, ExecutorDeps, ExecutorStatus, HaltLimits, NewBlock, OpenedBatches, Reported};
use crate::limits::{
    CLIENT_CHECK_INTERVAL_MS, MAX_REPLAYS_IN_A_ROW, MAX_RETRY_PAUSE_MS, MIN_RETRY_PAUSE_MS,
    READ_AHEAD_BLOCKS, READ_AHEAD_PATIENCE_MS,
};
use crate::opener::{OpenBatchError, Opener, unopened_outcomes};
use crate::records::accepted;
use crate::{ItemOutcome, L1Error, Settled};

/// Why execution stopped. Nothing else stops with it.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// The execution client, after everything that may help was tried.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The client cannot be brought back to our head.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The client keeps losing the block it was just given.
    #[error("the execution client lost its head again after {0} replays")]
    ReplayUseless(u32),
    /// The client has no genesis block.
    #[error("the execution client has no block 0")]
    NoGenesis,
    /// The client named a transaction outside the list.
    #[error(transparent)]
    Skipped(#[from] SkippedOutside),
    /// The disk failed, or holds damaged records.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record that must be there is not, or cannot be read: our disk is damaged.
    #[error("the stored {what} of {number} is missing or damaged")]
    Damaged {
        /// `batch`, `hints`, `block`.
        what: &'static str,
        /// Number of the batch or block.
        number: u64,
    },
    /// Stored batches are out of order: our disk is damaged.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// A batch with hints that does not open.
    #[error(transparent)]
    Open(OpenBatchError),
    /// L1 does not have, or no longer has, the block that a certified header names.
    #[error("L1 block {number} has not the hash {expected} that a certified header names")]
    OriginMismatch {
        /// Number of the L1 block.
        number: u64,
        /// The hash that the certified header names.
        expected: B256,
    },
    /// L1 declared a batch void that is executed here already, and the client takes its block back no more.
    #[error(
        "L1 declared batch {number} void, block {block} has executed it, and the execution client holds block {finalized} \
         for final: stop it, give it an empty data folder with the chain's genesis (`blindfold genesis`) and start it; it \
         gets its blocks from here"
    )]
    VoidedAfterExecution {
        /// Number of the batch that L1 declared void.
        number: u64,
        /// Number of the L2 block that executed it.
        block: u64,
        /// Number of the block that the client holds for final.
        finalized: u64,
    },
    /// L1 answers with something unusable.
    #[error(transparent)]
    L1(#[from] L1Error),
}

/// Pause between two looks at client and void runs.
const LOOK_INTERVAL: Duration = Duration::from_millis(CLIENT_CHECK_INTERVAL_MS);

/// Why the executing loop ends.
pub(super) enum End {
    Stopped,
    /// Blocks were taken back: it begins anew with what is on disk.
    TakenBack,
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

/// The block that the next one builds on.
struct Parent {
    id: BlockId,
    /// Origin and sequence number; `None` for the genesis.
    origin: Option<(u64, u64)>,
}

/// Why execution looks around.
enum Woken {
    /// What it waits for may be there.
    Changed,
    /// The batches stand otherwise on L1.
    Settled,
    /// It is time to.
    Due,
    /// L1 has answered what is void.
    Answered(Result<VoidAnswer, L1Error>),
}

pub(super) struct Runner {
    pub(super) deps: ExecutorDeps,
    opener: Opener,
    blocks: broadcast::Sender<Arc<NewBlock>>,
    pub(super) status: watch::Sender<ExecutorStatus>,
    pub(super) settled: watch::Receiver<Reported>,
    pub(super) stopped: watch::Receiver<bool>,
    assembler: BlockAssembler,
    next_batch: u64,
    parent: Option<Parent>,
    deposits: Deposits,
    /// The origin of the last block: while it is the next one's, L1 is not asked.
    origin: Option<L1Origin>,
    pub(super) void: VoidRuns,
    /// When client and void runs are looked at next, however much there is to be executed.
    look_at: Instant,
    pub(super) question: Question,
    /// So far as the batches stand on L1, blocks were compared with what is void there.
    pub(super) compared: Settled,
    /// A fault stopped execution, and nothing has gone well since.
    pub(super) halted: bool,
    /// That fault was L1's.
    pub(super) halted_by_l1: bool,
    /// A block executed what is void, and cannot be taken back: nothing is executed on it.
    on_void: bool,
}

struct Start {
    parent: Option<Parent>,
    last_batch: u64,
    taken: DepositCursor,
}

impl Start {
    async fn load(deps: &ExecutorDeps) -> Result<Self, StoreError> {
        let store = deps.tracker.store();
        let last = match store.heads().await?.block {
            Some((number, _)) => store.block(number).await?,
            None => None,
        };
        let genesis = deps.tracker.config().genesis_l1_origin;
        let taken = DepositCursor { through: genesis, then: 0, more: false };
        let Some(block) = last else { return Ok(Self { parent: None, last_batch: 0, taken }) };
        // Without them the next block would bring L1 deposits a second time.
        let details = parse_details(&block)
            .map_err(|fault| StoreError::Corrupt { what: What::Block, fault: fault.to_string() })?;
        let parent = Parent {
            id: BlockId { number: block.number, hash: block.hash, timestamp: block.second },
            origin: Some((details.l1_origin_number, details.sequence_number)),
        };
        Ok(Self { parent: Some(parent), last_batch: block.last_batch, taken: details.deposits })
    }
}

impl Runner {
    pub(super) async fn open(
        deps: ExecutorDeps,
        opened: Arc<OpenedBatches>,
        blocks: broadcast::Sender<Arc<NewBlock>>,
        settled: watch::Receiver<Reported>,
        stopped: watch::Receiver<bool>,
    ) -> Result<Self, StoreError> {
        let Start { parent, last_batch, taken } = Start::load(&deps).await?;
        let status = watch::Sender::new(ExecutorStatus {
            block: parent.as_ref().map(|parent| parent.id),
            last_batch,
            state: ExecutionState::Waiting,
            retries: 0,
            replayed_blocks: 0,
            taken_back_blocks: 0,
            deposits_wait: taken.more,
            void_runs: Arc::default(),
            settled: Settled::default(),
            safe: None,
            finalized: None,
        });
        let assembler = BlockAssembler::default();
        let opener = Opener::new(
            Arc::clone(deps.tracker.store()),
            Arc::clone(&deps.parameters),
            Arc::clone(&deps.backend),
            opened,
        );
        let deposits = Deposits::after(taken);
        let next_batch = last_batch + 1;
        let void = VoidRuns::new(deps.tracker.config().timing.hint_deadline);
        Ok(Self {
            deps,
            opener,
            blocks,
            status,
            settled,
            stopped,
            assembler,
            next_batch,
            parent,
            deposits,
            origin: None,
            void,
            look_at: now() + LOOK_INTERVAL,
            question: Question::default(),
            compared: Settled::default(),
            halted: false,
            halted_by_l1: false,
            on_void: false,
        })
    }

    pub(super) fn status(&self) -> watch::Receiver<ExecutorStatus> {
        self.status.subscribe()
    }

    pub(super) async fn run(mut self, limits: HaltLimits) {
        let mut pauses = Backoff::new(limits.pause_ms, limits.max_pause_ms);
        let mut patience = Patience::new(limits.exit_ms);
        let mut reached = self.next_batch;
        let mut end = self.work().await;
        loop {
            let fault = match end {
                // The reason of a halt stays to be read.
                End::Stopped if self.halted => return,
                End::Stopped => return self.set_state(ExecutionState::Stopped),
                End::TakenBack => {
                    reached = 0;
                    end = self.work_anew().await;
                    continue;
                }
                End::Fault(fault) => fault,
            };
            // Where nothing is to be executed, L1 that was well in between is as good as progress.
            let passed = !self.halted && matches!(fault, ExecutionError::L1(_));
            if self.gathering_from() > reached || passed {
                reached = self.gathering_from();
                (pauses, patience) =
                    (Backoff::new(limits.pause_ms, limits.max_pause_ms), Patience::new(limits.exit_ms));
            }
            self.halted = true;
            self.halted_by_l1 = matches!(fault, ExecutionError::L1(_));
            self.on_void |= matches!(fault, ExecutionError::VoidedAfterExecution { .. });
            self.status.send_modify(|status| {
                status.state = ExecutionState::Halted { reason: fault.to_string() };
            });
            if patience.failed() {
                tracing::error!(%fault, "execution came no further for long: the role ends");
                return;
            }
            let pause = pauses.pause();
            tracing::error!(%fault, ?pause, "execution stopped, ordering and verification go on; trying again");
            tokio::select! {
                _ = self.stopped.wait_for(|stopped| *stopped) => return,
                () = tokio::time::sleep(pause) => {}
            }
            self.void.check_again();
            end = self.work_anew().await;
        }
    }

    /// As after a restart: from what is on disk.
    async fn work_anew(&mut self) -> End {
        match Start::load(&self.deps).await {
            Ok(start) => {
                self.begin(start);
                self.work().await
            }
            Err(error) => End::Fault(error.into()),
        }
    }

    /// The first batch that is in no block yet.
    fn gathering_from(&self) -> u64 {
        self.status.borrow().last_batch + 1
    }

    fn begin(&mut self, start: Start) {
        let Start { parent, last_batch, taken } = start;
        let head = parent.as_ref().map(|parent| parent.id);
        self.status.send_if_modified(|status| {
            let changed = (status.block, status.last_batch) != (head, last_batch);
            // Less than before where blocks were taken back.
            (status.block, status.last_batch, status.deposits_wait) = (head, last_batch, taken.more);
            status.safe = status.safe.filter(|(number, _)| head.is_some_and(|head| *number <= head.number));
            changed
        });
        self.assembler = BlockAssembler::default();
        self.next_batch = last_batch + 1;
        self.parent = parent;
        self.deposits = Deposits::after(taken);
        self.origin = None;
        // What L1 answered before a pause says nothing of it now: a fault of then would stop execution once more.
        self.question = Question::default();
    }

    async fn work(&mut self) -> End {
        if let Err(end) = self.restore_client().await {
            return end;
        }
        while self.on_void {
            match self.compare().await {
                Ok(compared) => self.on_void = !compared,
                Err(end) => return end,
            }
        }
        loop {
            if let Err(end) = self.step().await {
                return end;
            }
        }
    }

    /// A client of another version would give other blocks: nothing is executed on it.
    async fn ensure_compatible(&mut self) -> Result<(), End> {
        let (client, chain_id) = (Arc::clone(&self.deps.client), self.deps.tracker.config().chain_id);
        self.with_retries(|| async { client.ensure_compatible(chain_id).await }).await
    }

    /// One second: waits until it is closed and opened, executes it, records it, announces it.
    async fn step(&mut self) -> Result<(), End> {
        let closed = self.next_second().await?;
        self.gather_deposits(&closed.second).await?;
        let deposits = self.deposits.next_block(closed.second.l1_origin_number);
        if !closed.second.has_block(deposits.raw.len()) {
            return Ok(());
        }
        let plan = self.plan(&closed).await?;
        self.set_state(ExecutionState::Executing);
        let parent = self.parent().await?;
        let mut inputs = self.inputs(&closed.second, parent.1).await?;
        inputs.l1_deposits = deposits.raw;
        let started = now();
        let block = self.execute(parent.0, &inputs, &plan.transactions).await?;
        let details =
            plan.finish(&block, (inputs.l1_origin.number, inputs.sequence_number), deposits.cursor)?;
        self.record(&closed, block, details).await?;
        for number in closed.second.first..=closed.second.last {
            traces::batch(number, "execute", started);
        }
        self.read_deposits_ahead().await;
        self.mark(false).await
    }

    /// What a second's block holds. From here until the block is on disk nothing is heard of void runs.
    async fn plan(&mut self, closed: &BlockSlot) -> Result<Plan, End> {
        let chain_id = self.deps.tracker.config().chain_id;
        loop {
            let compared = self.void.checked();
            let mut plan = Plan::default();
            for record in &closed.batches {
                let outcomes = self.outcomes(record).await?;
                plan.add_batch(chain_id, record.sealed.header.number, &record.sealed.items, &outcomes);
            }
            // What became void while a later batch was waited for is in no block that it could be compared with.
            if self.void.checked() == compared {
                return Ok(plan);
            }
        }
    }

    async fn next_second(&mut self) -> Result<BlockSlot, End> {
        let mut certified = self.deps.tracker.watch_certified();
        if now() >= self.look_at {
            self.look_at = now() + LOOK_INTERVAL;
            self.ask_what_is_void();
        }
        if self.question.is_answered() {
            let answer = self.question.answer().await;
            self.heard(answer).await?;
        }
        loop {
            while certified.borrow_and_update().number >= self.next_batch {
                let number = self.next_batch;
                let record = self.deps.tracker.store().batch(number).await?;
                let record = record.ok_or(ExecutionError::Damaged { what: "batch", number })?;
                self.next_batch += 1;
                if let Some(closed) = self.assembler.push(record)? {
                    return Ok(closed);
                }
            }
            self.set_state(ExecutionState::Waiting);
            match self.wake(async || certified.changed().await.is_ok()).await? {
                // What became void late is noticed without the next second, too.
                Woken::Answered(answer) => {
                    if self.heard(answer).await? {
                        self.halted = false;
                        self.read_deposits_ahead().await;
                    }
                }
                Woken::Changed | Woken::Settled | Woken::Due => {}
            }
        }
    }

    /// Waits until there is something to look at: `changed`, which is false at the end; how the batches stand on L1; what is
    /// void; or for as long as the client is believed to be as it was.
    async fn wake(&mut self, changed: impl AsyncFnOnce() -> bool) -> Result<Woken, End> {
        let woken = tokio::select! {
            _ = self.stopped.wait_for(|stopped| *stopped) => return Err(End::Stopped),
            goes_on = changed() => if goes_on { Woken::Changed } else { return Err(End::Stopped) },
            changed = self.settled.changed() => {
                changed.map_err(|_| End::Stopped)?;
                Woken::Settled
            }
            answer = self.question.answer() => Woken::Answered(answer),
            () = tokio::time::sleep_until(self.look_at) => Woken::Due,
        };
        if matches!(woken, Woken::Due | Woken::Settled) {
            self.ask_what_is_void();
        }
        if matches!(woken, Woken::Due) {
            self.look_at = now() + LOOK_INTERVAL;
            // A client that restarted while nothing is to be executed would serve old state until the next block.
            self.restore_client().await?;
        }
        self.mark(matches!(woken, Woken::Due)).await?;
        Ok(woken)
    }

    /// The L1 deposits up to a second's origin: as many as its block takes, and the one after them.
    async fn gather_deposits(&mut self, second: &Second) -> Result<(), End> {
        let origin = second.l1_origin_number;
        if self.deposits.missing(origin).is_some() {
            // Waits until the origin is final here, and so the deposits up to it.
            self.l1_origin(second).await?;
        }
        let mut pause = Pause::default();
        while let Some((after, through)) = self.deposits.missing(origin) {
            match self.deps.l1.bridge_deposits(after, through).await {
                Ok(fresh) => self.deposits.add(fresh, through),
                Err(fault) if fault.may_pass() => self.wait(&mut pause, &fault.to_string()).await?,
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(())
    }

    /// Reads the deposits up to L1's newest final block, if it answers at once: a block whose origin is new then needs no
    /// L1 that answers.
    async fn read_deposits_ahead(&mut self) {
        let reading = async {
            let newest = self.deps.l1.finalized().await.ok()?.number;
            // Who catches up reads step by step, as blocks need them.
            let near = newest.saturating_sub(self.deposits.read()) <= READ_AHEAD_BLOCKS;
            let (after, through) = self.deposits.missing(newest).filter(|_| near)?;
            Some((self.deps.l1.bridge_deposits(after, through).await.ok()?, through))
        };
        if let Ok(Some((fresh, through))) =
            tokio::time::timeout(Duration::from_millis(READ_AHEAD_PATIENCE_MS), reading).await
        {
            self.deposits.add(fresh, through);
        }
    }

    /// What the items of a batch are, as soon as its hints are there, or L1 has declared it void.
    async fn outcomes(&mut self, record: &BatchRecord) -> Result<Arc<Vec<ItemOutcome>>, End> {
        let number = record.sealed.header.number;
        // It needs no hints, so it is executed at once by everybody and never void for want of them.
        if accepted(record) == 0 {
            return Ok(Arc::new(unopened_outcomes(record)?));
        }
        let mut arrivals = self.opener.arrivals();
        loop {
            arrivals.borrow_and_update();
            if self.is_void(record).await? {
                return Ok(Arc::new(unopened_outcomes(record)?));
            }
            if let Some(outcomes) = self.opener.open(number).await? {
                return Ok(outcomes);
            }
            self.set_state(ExecutionState::WaitingForHints { number });
            if let Woken::Answered(answer) = self.wake(async || arrivals.changed().await.is_ok()).await? {
                self.heard(answer).await?;
            }
        }
    }

    /// The parent's hash, and its origin and sequence number.
    async fn parent(&mut self) -> Result<(B256, Option<(u64, u64)>), End> {
        if let Some(parent) = &self.parent {
            return Ok((parent.id.hash, parent.origin));
        }
        let client = Arc::clone(&self.deps.client);
        let genesis = self.with_retries(|| async { client.block(0).await }).await?;
        let id = genesis.ok_or(ExecutionError::NoGenesis)?;
        self.parent = Some(Parent { id, origin: None });
        Ok((id.hash, None))
    }

    /// Rule X-3.
    async fn inputs(&mut self, second: &Second, previous: Option<(u64, u64)>) -> Result<BlockInputs, End> {
        let l1_origin = self.l1_origin(second).await?;
        let config = self.deps.tracker.config();
        Ok(BlockInputs {
            timestamp: second.second,
            prev_randao: second.prev_randao(),
            fee_recipient: config.fee_recipient,
            gas_limit: config.block_gas_limit,
            l1_origin,
            sequence_number: sequence_number(previous, l1_origin.number),
            // The caller has them.
            l1_deposits: Vec::new(),
        })
    }

    async fn l1_origin(&mut self, second: &Second) -> Result<L1Origin, End> {
        let (number, expected) = (second.l1_origin_number, second.l1_origin_hash);
        if let Some(origin) = self.origin.filter(|origin| (origin.number, origin.hash) == (number, expected))
        {
            return Ok(origin);
        }
        if let Some(origin) =
            self.deps.tracker.origin_at_hand(number).filter(|origin| origin.hash == expected)
        {
            self.origin = Some(origin);
            return Ok(origin);
        }
        let mut pause = Pause::default();
        loop {
            match self.deps.l1.origin(number).await {
                Ok(Some(origin)) if origin.hash == expected => {
                    self.origin = Some(origin);
                    return Ok(origin);
                }
                Ok(Some(_)) => return Err(ExecutionError::OriginMismatch { number, expected }.into()),
                // Certified, so final for the committee; our L1 lags behind theirs.
                Ok(None) => {
                    self.wait(&mut pause, &format!("L1 block {number} is not final here yet")).await?
                }
                Err(fault) if fault.may_pass() => self.wait(&mut pause, &fault.to_string()).await?,
                Err(fault) => return Err(fault.into()),
            }
        }
    }

    async fn execute(
        &mut self,
        parent: B256,
        inputs: &BlockInputs,
        list: &[Bytes],
    ) -> Result<ExecutedBlock, End> {
        let client = Arc::clone(&self.deps.client);
        let mut pause = Pause::default();
        let mut replays = 0;
        loop {
            let error = match client.execute(parent, inputs, list).await {
                Ok(block) => return Ok(block),
                Err(error) => error,
            };
            match error.recovery() {
                Recovery::Retry => self.wait(&mut pause, &error.to_string()).await?,
                Recovery::Replay if replays == MAX_REPLAYS_IN_A_ROW => {
                    return Err(ExecutionError::ReplayUseless(replays).into());
                }
                Recovery::Replay => {
                    replays += 1;
                    // It has the block, and lacks its state: it is far ahead of our records.
                    if self.restore_client().await? == 0 {
                        self.rewind_client(parent).await?;
                    }
                }
                Recovery::GiveUp => return Err(error.into()),
            }
        }
    }

    /// Has the client go back to the block that is built on next. Our records were restored from a backup; what it has above
    /// comes again.
    async fn rewind_client(&mut self, parent: B256) -> Result<(), End> {
        let client = Arc::clone(&self.deps.client);
        let mut pause = Pause::default();
        loop {
            let Err(error) = client.rewind(parent).await else {
                tracing::warn!(%parent, "the execution client was ahead of our records: it went back to our newest block");
                return Ok(());
            };
            match error.recovery() {
                // It lost the block meanwhile: what is missing is brought next.
                Recovery::Replay => return Ok(()),
                Recovery::Retry => self.wait(&mut pause, &error.to_string()).await?,
                Recovery::GiveUp => return Err(error.into()),
            }
        }
    }

    /// Makes our head the client's, from stored payloads if need be; gives how many. Waits as long as the client is away.
    pub(super) async fn restore_client(&mut self) -> Result<u64, End> {
        // Another one may have taken its place.
        self.ensure_compatible().await?;
        let Some(head) = self.parent.as_ref().map(|parent| parent.id).filter(|id| id.number > 0) else {
            return Ok(0);
        };
        let client = Arc::clone(&self.deps.client);
        let source = StoredPayloads(Arc::clone(self.deps.tracker.store()));
        let mut pause = Pause::default();
        loop {
            let report = replay(client.as_ref(), &source, head).await;
            match report {
                Ok(report) => {
                    if report.imported > 0 {
                        let (common, imported) = (report.common, report.imported);
                        tracing::warn!(common, imported, "gave the execution client blocks that it had lost");
                        self.status.send_modify(|status| status.replayed_blocks += imported);
                    }
                    return Ok(report.imported);
                }
                Err(error) if error.recovery() == Recovery::GiveUp => return Err(error.into()),
                Err(error) => {
                    self.set_state(ExecutionState::Replaying);
                    self.wait(&mut pause, &error.to_string()).await?;
                }
            }
        }
    }

    async fn record(
        &mut self,
        closed: &BlockSlot,
        block: ExecutedBlock,
        details: BlockDetails,
    ) -> Result<(), End> {
        let id = block.id();
        let record = BlockRecord {
            second: closed.second.second,
            number: block.number,
            hash: block.hash,
            parent_hash: block.parent_hash,
            state_root: block.state_root,
            first_batch: closed.second.first,
            last_batch: closed.second.last,
            transactions: serde_json::to_string(&details)
                .expect("strings, numbers and lists always have a JSON form"),
            payload: block.payload.encode(),
        };
        self.deps.tracker.store().put_block(record.clone()).await?;
        self.parent = Some(Parent { id, origin: Some((details.l1_origin_number, details.sequence_number)) });
        self.deposits.taken(closed.second.l1_origin_number, details.deposits);
        self.halted = false;
        self.status.send_modify(|status| {
            status.deposits_wait = details.deposits.more;
            status.block = Some(id);
            status.last_batch = record.last_batch;
        });
        tracing::info!(
            number = id.number, hash = %id.hash, first_batch = record.first_batch, last_batch = record.last_batch,
            "executed a block"
        );
        // Without subscribers there is nobody to tell.
        let _ = self.blocks.send(Arc::new(NewBlock { record, details }));
        Ok(())
    }

    /// Calls until there is an answer or no hope.
    async fn with_retries<T, F>(&mut self, mut call: impl FnMut() -> F) -> Result<T, End>
    where
        F: Future<Output = Result<T, EngineError>>,
    {
        let mut pause = Pause::default();
        loop {
            match call().await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.recovery() == Recovery::GiveUp => return Err(error.into()),
                Err(error) => self.wait(&mut pause, &error.to_string()).await?,
            }
        }
    }

    pub(super) async fn wait(&mut self, pause: &mut Pause, reason: &str) -> Result<(), End> {
        let next = pause.0.pause();
        tracing::warn!(reason, pause = ?next, "execution waits and tries again");
        self.status.send_modify(|status| status.retries += 1);
        self.set_state(ExecutionState::Retrying { reason: reason.to_owned() });
        tokio::select! {
            _ = self.stopped.wait_for(|stopped| *stopped) => Err(End::Stopped),
            () = tokio::time::sleep(next) => Ok(()),
        }
    }

    /// Shows a state; after a halt the halt, until something has gone well.
    fn set_state(&self, state: ExecutionState) {
        if self.halted {
            return;
        }
        self.status.send_if_modified(|status| {
            let changed = status.state != state;
            if changed {
                status.state = state;
            }
            changed
        });
    }
}

/// The pauses of one call that is repeated.
pub(super) struct Pause(Backoff);

impl Default for Pause {
    fn default() -> Self {
        Self(Backoff::new(MIN_RETRY_PAUSE_MS, MAX_RETRY_PAUSE_MS))
    }
}

/// The stored blocks as a source for the replay.
pub(super) struct StoredPayloads(pub(super) Arc<dyn Store>);

#[async_trait]
impl PayloadSource for StoredPayloads {
    async fn payload(&self, number: u64) -> Result<Option<StoredPayload>, PayloadSourceError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| PayloadSourceError { number, source };
        let Some(record) = self.0.block(number).await.map_err(|error| failed(Box::new(error)))? else {
            return Ok(None);
        };
        let payload = StoredPayload::decode(&record.payload).map_err(|error| failed(Box::new(error)))?;
        Ok(Some(payload))
    }
}

/// The details of a stored block.
pub(crate) fn parse_details(record: &BlockRecord) -> Result<BlockDetails, serde_json::Error> {
    serde_json::from_str(&record.transactions)
}
