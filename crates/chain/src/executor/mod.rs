//! Executing what is certified and opened: one L2 block per second.
//!
//! The rule is that of `docs/protocol.md`: a second is closed by the first certified header of a later second, and
//! its block is built once every one of its batches is certified and has verified hints. Everything the block is made
//! of is a function of headers and L1 origin, so every node builds the same one.
//!
//! L1 deposits come before the transactions of the batches, in L1 order, as many as the gas kept for them holds; the
//! others wait for the next block. One that waits makes a block by itself. Of a batch that L1 has declared void nothing executes; one that is executed already when that becomes
//! final halts execution. A batch without an accepted envelope needs no hints and is never void.
//!
//! A block is stored, with its payload, after the client has it and before it is announced. A crash in between repeats
//! the same block. Failures of the client never touch anything else: the executor tries again with growing pauses,
//! brings a client that lost its head back from the stored payloads, and halts with a fault when neither can help. A halt
//! is tried again as a restart would, from what is on disk; when that has not helped for long, the task ends, and its role
//! with it.

mod deposits;
mod details;
mod finality;
mod opened;
mod plan;
mod run;
mod seconds;
mod take_back;
mod void;
mod warm;

use std::sync::Arc;

use alloy_primitives::B256;
use blindfold_bte::Backend;
use blindfold_engine::{BlockId, ExecutionClient};
use blindfold_runtime::spawn;
use blindfold_store::{BlockRecord, StoreError};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

use crate::limits::{HALTED_EXIT_MS, HALTED_MAX_PAUSE_MS, HALTED_PAUSE_MS, TOPIC_BUFFER_EVENTS};
use crate::{L1Reader, ParameterSet, Settled, Tracker, VoidRun};

pub use details::{BlockDetails, DepositCursor, EnvelopeOutcome, ExecutedEnvelope, InnerTransaction};
pub use opened::OpenedBatches;
pub use run::ExecutionError;
pub(crate) use run::parse_details;
pub use warm::{WarmError, warm_up};

/// What an executor works with.
#[derive(Clone)]
pub struct ExecutorDeps {
    /// The chain of headers; its store keeps the blocks.
    pub tracker: Tracker,
    /// Public parameters, to open batches whose hints are on disk only.
    pub parameters: Arc<ParameterSet>,
    /// Checks hints by encrypting again.
    pub backend: Arc<dyn Backend>,
    /// Executes. The executor is its only driver.
    pub client: Arc<dyn ExecutionClient>,
    /// Where L1 origins, deposits and void runs are read.
    pub l1: Arc<dyn L1Reader>,
}

/// A block that is executed and durable.
#[derive(Clone, Debug)]
pub struct NewBlock {
    /// The block's record, which is on disk already.
    pub record: BlockRecord,
    /// The record's details, parsed.
    pub details: BlockDetails,
}

/// What the executor is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutionState {
    /// Waiting for a certified header that closes the second.
    Waiting,
    /// Waiting for the hints of this batch.
    WaitingForHints {
        /// Number of the batch whose hints are missing.
        number: u64,
    },
    /// At work.
    Executing,
    /// Something failed that may pass; the words say what.
    Retrying {
        /// What failed, in words.
        reason: String,
    },
    /// Bringing the client back to our head.
    Replaying,
    /// Stopped by a fault that hardly passes by itself. It is tried again from what is on disk, with growing pauses; when
    /// that does not help, the task ends.
    Halted {
        /// What failed, in words.
        reason: String,
    },
    /// It was told to stop.
    Stopped,
}

/// How far execution is, and what it is doing. Where L1 declared void what was executed, it is less far than before (VR-2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorStatus {
    /// The last block that is durable; `None` before the first.
    pub block: Option<BlockId>,
    /// The last batch whose second that block executed.
    pub last_batch: u64,
    /// What the executor is doing now.
    pub state: ExecutionState,
    /// Attempts that failed and were repeated.
    pub retries: u64,
    /// Blocks given back to a client that had lost them.
    pub replayed_blocks: u64,
    /// Blocks that were taken back, because L1 declared void what they had executed.
    pub taken_back_blocks: u64,
    /// Whether L1 deposits wait for the block after the last one.
    pub deposits_wait: bool,
    /// What L1 declared void, as far as it was looked at here.
    pub void_runs: Arc<Vec<VoidRun>>,
    /// How far the batches stand on L1, as it was told to [`Executor::settle`].
    pub settled: Settled,
    /// Number and hash of the block that the client shows as safe.
    pub safe: Option<(u64, B256)>,
    /// Number and hash of the block that the client shows as finalized.
    pub finalized: Option<(u64, B256)>,
}

/// Handle of the executing task. Cheap to clone; the task ends with [`stop`](Self::stop) or the last handle.
#[derive(Clone)]
pub struct Executor {
    inner: Arc<Inner>,
}

/// How a fault that stopped execution is met, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct HaltLimits {
    /// First pause before it is tried again; it doubles.
    pub pause_ms: u64,
    /// The longest pause that this comes to, in milliseconds.
    pub max_pause_ms: u64,
    /// The task ends when no block came for so long after the first fault.
    pub exit_ms: u64,
}

impl Default for HaltLimits {
    fn default() -> Self {
        Self { pause_ms: HALTED_PAUSE_MS, max_pause_ms: HALTED_MAX_PAUSE_MS, exit_ms: HALTED_EXIT_MS }
    }
}

/// How far the batches stand on L1, and the final block as of which they do.
#[derive(Clone, Copy, Default)]
struct Reported {
    settled: Settled,
    l1_block: u64,
}

struct Inner {
    opened: Arc<OpenedBatches>,
    blocks: broadcast::Sender<Arc<NewBlock>>,
    status: watch::Receiver<ExecutorStatus>,
    settled: watch::Sender<Reported>,
    stop: watch::Sender<bool>,
    task: parking_lot::Mutex<Option<JoinHandle<()>>>,
}

impl Executor {
    /// Starts where the store says that execution stood.
    pub async fn start(deps: ExecutorDeps) -> Result<Self, StoreError> {
        Self::start_with(deps, HaltLimits::default()).await
    }

    /// As [`start`](Self::start), with other limits of how long a halt may last.
    pub async fn start_with(deps: ExecutorDeps, halt: HaltLimits) -> Result<Self, StoreError> {
        let opened = Arc::new(OpenedBatches::default());
        let blocks = broadcast::Sender::new(TOPIC_BUFFER_EVENTS);
        let (stop, stopped) = watch::channel(false);
        let (settled, of_runner) = watch::channel(Reported::default());
        let runner = run::Runner::open(deps, Arc::clone(&opened), blocks.clone(), of_runner, stopped).await?;
        let status = runner.status();
        let task = parking_lot::Mutex::new(Some(spawn(runner.run(halt))));
        Ok(Self { inner: Arc::new(Inner { opened, blocks, status, settled, stop, task }) })
    }

    /// Where verified hints leave what they opened.
    pub fn opened(&self) -> Arc<OpenedBatches> {
        Arc::clone(&self.inner.opened)
    }

    /// Says how far the batches stand on L1, as of this final block: the client is told which blocks are safe and finalized
    /// by that, once they were compared with what is void in that block. A mark that is lower than one told before changes
    /// nothing.
    pub fn settle(&self, settled: Settled, l1_block: u64) {
        self.inner.settled.send_if_modified(|before| {
            let raised = before.settled.raise(settled);
            if raised {
                before.l1_block = before.l1_block.max(l1_block);
            }
            raised
        });
    }

    /// Every block from now on, after it is durable.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<NewBlock>> {
        self.inner.blocks.subscribe()
    }

    /// How far it is at this moment.
    pub fn status(&self) -> ExecutorStatus {
        self.inner.status.borrow().clone()
    }

    /// The status, and every change of it.
    pub fn watch_status(&self) -> watch::Receiver<ExecutorStatus> {
        self.inner.status.clone()
    }

    /// Resolves when the executing task has ended, by [`stop`](Self::stop), after it gave up, or by a bug. Says why.
    pub fn ended(&self) -> impl Future<Output = String> + Send + 'static {
        let mut status = self.watch_status();
        async move {
            // Its end drops the status.
            while status.changed().await.is_ok() {}
            match &status.borrow().state {
                ExecutionState::Halted { reason } => reason.clone(),
                ExecutionState::Stopped => "stopped".to_owned(),
                _ => "ended by a bug; the log has the panic".to_owned(),
            }
        }
    }

    /// Ends the task after the step it is in; a block under way is finished or left out, never half recorded.
    pub async fn stop(&self) {
        self.inner.stop.send_replace(true);
        let task = self.inner.task.lock().take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the executor ended abnormally");
        }
    }
}
