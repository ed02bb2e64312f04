//! What L1 declares void is asked for, compared with what is executed, and taken back where it is (rule VR-2).

use std::sync::Arc;

use blindfold_engine::L1Origin;
use blindfold_protocol::validity::Verdict;
use blindfold_runtime::spawn;
use blindfold_store::BatchRecord;
use tokio::task::JoinHandle;

use super::Reported;
use super::details::{EnvelopeOutcome, ExecutedEnvelope};
use super::run::{End, ExecutionError, Pause, Runner, parse_details};
use crate::records::verdicts;
use crate::{L1Error, L1Reader, VoidRun};

/// What L1 answers of void runs.
pub(super) struct VoidAnswer {
    /// How far the batches stood on L1 when it was asked.
    reported: Reported,
    /// The final block as of which these are all.
    seen: L1Origin,
    runs: Vec<VoidRun>,
    /// L1's newest block.
    newest: u64,
}

/// What L1 declared void.
async fn ask_what_is_void(l1: Arc<dyn L1Reader>, reported: Reported) -> Result<VoidAnswer, L1Error> {
    // The block first: what is known speaks for it at least.
    let seen = l1.finalized().await?;
    let runs = l1.void_runs().await?;
    Ok(VoidAnswer { reported, seen, runs, newest: l1.newest().await? })
}

/// The question under way what is void. No block waits for its answer, and it ends with whoever asked.
#[derive(Default)]
pub(super) struct Question(Option<JoinHandle<Result<VoidAnswer, L1Error>>>);

impl Question {
    pub(super) fn is_answered(&self) -> bool {
        self.0.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// The answer, when it is there; none comes where there is no question. May be broken off.
    pub(super) async fn answer(&mut self) -> Result<VoidAnswer, L1Error> {
        let Some(task) = &mut self.0 else { return std::future::pending().await };
        let joined = task.await;
        self.0 = None;
        match joined {
            Ok(answer) => answer,
            // It panicked, and whoever watches for that ends the role.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

impl Runner {
    /// Asks L1 what is void, unless it is being asked. Nothing waits for it: an L1 that hangs holds no block up.
    pub(super) fn ask_what_is_void(&mut self) {
        let (l1, reported) = (&self.deps.l1, &self.settled);
        self.question.0.get_or_insert_with(|| spawn(ask_what_is_void(Arc::clone(l1), *reported.borrow())));
    }

    /// Takes the answer to the question under way. False where L1 has none for now.
    pub(super) async fn heard(&mut self, answer: Result<VoidAnswer, L1Error>) -> Result<bool, End> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(fault) if fault.may_pass() => return Ok(false),
            Err(fault) => return Err(fault.into()),
        };
        self.take_void_runs(answer).await?;
        // L1 is well: a halt that it caused is over, whatever is waited for.
        self.halted &= !self.halted_by_l1;
        self.mark(false).await?;
        Ok(true)
    }

    /// Waits for what L1 says is void, and takes it back. False where L1 has no answer for now.
    pub(super) async fn compare(&mut self) -> Result<bool, End> {
        self.ask_what_is_void();
        let answer = tokio::select! {
            _ = self.stopped.wait_for(|stopped| *stopped) => return Err(End::Stopped),
            answer = self.question.answer() => answer,
        };
        let compared = self.heard(answer).await?;
        if !compared {
            self.wait(&mut Pause::default(), "what L1 declared void").await?;
        }
        Ok(compared)
    }

    /// Takes back what is executed of what L1 declared void (VR-2). Is not to be broken off.
    async fn take_void_runs(&mut self, answer: VoidAnswer) -> Result<(), End> {
        let VoidAnswer { reported, seen, runs, newest } = answer;
        let fresh = runs.get(self.void.checked()..).unwrap_or_default();
        let executed = self.first_executed(fresh).await?;
        self.void.read(&seen, newest, runs.len());
        self.status.send_if_modified(|status| {
            let changed = *status.void_runs != runs;
            if changed {
                status.void_runs = Arc::new(runs);
            }
            changed
        });
        match executed {
            Some((number, block)) => Err(self.take_back(number, block).await),
            None => {
                // An L1 that lags behind the one that the marks are of may not know yet what is void.
                if seen.number >= reported.l1_block {
                    self.compared.raise(reported.settled);
                }
                Ok(())
            }
        }
    }

    /// The lowest block that executed an envelope of these runs, and the batch that it was in.
    async fn first_executed(&self, runs: &[VoidRun]) -> Result<Option<(u64, u64)>, End> {
        let store = self.deps.tracker.store();
        let last = self.status.borrow().last_batch;
        let mut lowest = None;
        for run in runs {
            for number in run.first..=run.last.min(last) {
                let Some(block) = store.block_of_batch(number).await? else { continue };
                if lowest.is_some_and(|(_, lowest)| lowest <= block.number) {
                    break;
                }
                let record = match store.batch(number).await {
                    // What is pruned is final, and was compared before that.
                    Err(pruned) if pruned.is_pruned() => continue,
                    record => record?,
                };
                let Some(record) = record else { continue };
                let damaged = |_| ExecutionError::Damaged { what: "block", number: block.number };
                let (details, verdicts) = (parse_details(&block).map_err(damaged)?, verdicts(&record)?);
                let opened = |entry: &ExecutedEnvelope| {
                    let verdict = verdicts.get(entry.index as usize);
                    entry.number == number
                        && entry.outcome != EnvelopeOutcome::Void
                        && matches!(verdict, Some(Verdict::Accepted { .. }))
                };
                if details.envelopes.iter().any(opened) {
                    lowest = Some((number, block.number));
                    break;
                }
            }
        }
        Ok(lowest)
    }

    /// Takes back the blocks from this one on, which executed a batch that is void. No final one is among them, unless
    /// the client was told by another node that it is.
    async fn take_back(&mut self, number: u64, block: u64) -> End {
        let mut pause = Pause::default();
        loop {
            match self.deps.client.finalized().await {
                Ok(Some(finalized)) if finalized >= block => {
                    return ExecutionError::VoidedAfterExecution { number, block, finalized }.into();
                }
                Ok(_) => break,
                // A client that is busy or away: nothing more is executed on what is void.
                Err(error) => {
                    let reason = format!("which block the execution client holds for final: {error}");
                    if let Err(end) = self.wait(&mut pause, &reason).await {
                        return end;
                    }
                }
            }
        }
        if let Err(error) = self.deps.tracker.store().revert_blocks(block).await {
            return error.into();
        }
        let head = self.status.borrow().block.map_or(0, |head| head.number);
        let blocks = head.saturating_sub(block) + 1;
        self.status.send_modify(|status| status.taken_back_blocks += blocks);
        tracing::error!(
            number,
            block,
            blocks,
            "L1 declared a batch void that was executed here: blocks are taken back and executed anew"
        );
        End::TakenBack
    }

    /// Whether L1 declared the batch void, as far as it is final here. L1 is not asked about a batch that it cannot have
    /// declared void yet: an L1 that hangs holds no block up (VR-2).
    pub(super) async fn is_void(&mut self, record: &BatchRecord) -> Result<bool, End> {
        let (number, origin) = (record.sealed.header.number, record.sealed.header.l1_origin_number);
        let mut pause = Pause::default();
        while !self.void.too_early_for(origin) {
            let reported = *self.settled.borrow();
            match ask_what_is_void(Arc::clone(&self.deps.l1), reported).await {
                Ok(answer) => {
                    self.take_void_runs(answer).await?;
                    break;
                }
                Err(fault) if fault.may_pass() => self.wait(&mut pause, &fault.to_string()).await?,
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(self.status.borrow().void_runs.iter().any(|run| run.contains(number)))
    }
}
