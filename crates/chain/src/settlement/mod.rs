//! How far the chain stands on L1: which batches are *safe* and which are *final* (docs/protocol.md, "Safe and final").
//!
//! L1 is read in final blocks only and every mark is durable before it is told, so no mark ever falls, whatever is
//! killed. The executor makes blocks of the marks and tells them to the execution client.

mod marks;
mod runs;

use std::sync::Arc;
use std::time::Duration;

use blindfold_l1::{HintPosting, HintRoots, RunReference};
use blindfold_protocol::{BatchHints, SealedBatch};
use blindfold_store::{Store, StoreError};
use tokio::sync::watch;

use crate::limits::{
    KEPT_POSTED_HEADERS, SETTLEMENT_INTERVAL_MS, SETTLEMENT_MAX_PAUSE_MS, SETTLEMENT_SAVE_BLOCKS,
    SETTLEMENT_STEP_BLOCKS,
};
use crate::records::forget_ledgers;
use crate::{Executor, L1Reader, L1RoundError, Tracker, accepted, keyed, own_hints};
use marks::Stored;
use runs::{OwnRoots, Runs};

/// Data that is not there this many L1 blocks after its headers is told of: two hours.
const DATA_PATIENCE_BLOCKS: u64 = 600;

pub use marks::Settled;

/// Who is told how far the chain stands on L1.
pub trait TakesMarks: Send + Sync + 'static {
    /// The marks now, which never fall, and the final L1 block as of which they are.
    fn settle(&self, marks: Settled, l1_block: u64);

    /// Up to which final batch what is executed was compared with what is void, so that nothing on L1 changes it any more; 0
    /// where nobody compares, or nothing was yet.
    fn compared(&self) -> u64 {
        0
    }
}

impl TakesMarks for Executor {
    fn settle(&self, marks: Settled, l1_block: u64) {
        Self::settle(self, marks, l1_block);
    }

    fn compared(&self) -> u64 {
        self.status().settled.finalized
    }
}

/// Reads what becomes of posted runs, and moves the marks.
pub struct Settlement {
    tracker: Tracker,
    executor: Box<dyn TakesMarks>,
    l1: Arc<dyn L1Reader>,
    stored: Stored,
    /// The L1 block up to which events were taken.
    through: u64,
    runs: Runs,
    /// How many blocks after a header's posting `FeeVault` pays out its ledger, once L1 was asked.
    claim_delay: Option<u64>,
    /// From which header on fee accounts can be proved.
    kept_from: u64,
    /// Whether there may be earlier ledgers on disk.
    forgets: bool,
}

impl Settlement {
    /// Goes on from what is on disk, and tells of it whoever makes something of the marks: the executor blocks.
    ///
    /// # Errors
    /// The disk's.
    pub async fn open(
        tracker: Tracker,
        executor: impl TakesMarks,
        l1: Arc<dyn L1Reader>,
    ) -> Result<Self, StoreError> {
        let store = tracker.store();
        let stored = Stored::load(store.as_ref(), tracker.config().genesis_l1_origin).await?;
        // What may be forgotten is seen once L1 is read.
        store.keep_ledgers_from(0).await?;
        executor.settle(stored.marks, stored.as_of);
        Ok(Self {
            tracker,
            executor: Box::new(executor),
            l1,
            stored,
            through: stored.after,
            runs: Runs::default(),
            claim_delay: None,
            kept_from: 0,
            // As far as the process before came.
            forgets: true,
        })
    }

    /// Reads on until told to stop.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut pause_ms = SETTLEMENT_INTERVAL_MS;
        loop {
            // What a round has begun on disk ends by itself.
            let outcome = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                outcome = self.round() => outcome,
            };
            pause_ms = match outcome {
                Ok(()) => SETTLEMENT_INTERVAL_MS,
                Err(fault) => {
                    tracing::warn!(%fault, pause_ms, "how far the chain stands on L1 is not known; trying again");
                    SETTLEMENT_MAX_PAUSE_MS.min(pause_ms * 2)
                }
            };
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(Duration::from_millis(pause_ms)) => {}
            }
        }
    }

    /// The marks, which never fall and are on disk.
    pub fn marks(&self) -> Settled {
        self.stored.marks
    }

    /// Reads L1 to its end, and moves the marks as far as it says and as far as we have come.
    ///
    /// # Errors
    /// [`L1RoundError`]; marks that could be moved are moved.
    pub async fn round(&mut self) -> Result<(), L1RoundError> {
        let read = self.read().await;
        let mut marks = self.stored.marks;
        let moved = self.advance(&mut marks).await;
        self.keep(marks).await?;
        read.and(moved)
    }

    async fn read(&mut self) -> Result<(), L1RoundError> {
        if self.claim_delay.is_none() {
            self.claim_delay = Some(self.l1.claim_delay().await?);
        }
        let finalized = self.l1.finalized().await?.number;
        // Runs that are not here yet need not be known, so a node that catches up does not gather them all.
        while self.through < finalized && self.runs.newest() <= self.tracker.certified().number {
            let through = finalized.min(self.through.saturating_add(SETTLEMENT_STEP_BLOCKS));
            let runs = self.l1.posted_runs(self.through, through).await?;
            let events = self.l1.hint_events(self.through, through).await?;
            runs.into_iter().for_each(|(run, head_hash)| self.runs.add(run, head_hash));
            events.iter().for_each(|event| self.runs.hints.apply(event));
            self.through = through;
        }
        Ok(())
    }

    /// Moves each mark over the runs that follow it. Data is looked at last: its source may be away (SF-3).
    async fn advance(&mut self, marks: &mut Settled) -> Result<(), L1RoundError> {
        let certified = self.tracker.certified().number;
        for index in 0..self.runs.list.len() {
            let (last, head_hash) = (self.last(index), self.runs.list[index].head_hash);
            if last <= marks.posted {
                continue;
            }
            if last > certified {
                break;
            }
            let ours = self.tracker.store().batch(last).await?.map(|record| record.hash);
            if ours != Some(head_hash) {
                tracing::error!(number = last, ?ours, posted = %head_hash,
                    "L1 has another header than this node: nothing from here on is safe");
                break;
            }
            marks.posted = last;
        }
        for index in 0..self.runs.list.len() {
            let last = self.last(index);
            if last <= marks.finalized {
                continue;
            }
            if last > marks.posted || !self.is_final(index).await? {
                break;
            }
            marks.finalized = last;
        }
        marks.safe = marks.safe.max(marks.finalized);
        for index in 0..self.runs.list.len() {
            let last = self.last(index);
            if last <= marks.safe {
                continue;
            }
            if last > marks.posted || !self.is_safe(index).await? {
                break;
            }
            marks.safe = last;
        }
        Ok(())
    }

    async fn keep(&mut self, marks: Settled) -> Result<(), L1RoundError> {
        self.runs.forget(marks.finalized);
        let next = Stored {
            after: self.runs.resume_after(self.through),
            as_of: self.through,
            marks,
            // Of what is final from now on the executor hears below: it is compared by the next time.
            compared: self.stored.compared.max(self.executor.compared()),
        };
        // Without news a later start reads some blocks again, that is all.
        let far = next.after.saturating_sub(self.stored.after) >= SETTLEMENT_SAVE_BLOCKS;
        if marks != self.stored.marks || far {
            let store = self.tracker.store();
            next.save(store.as_ref()).await?;
            self.stored = next;
        }
        self.executor.settle(marks, self.through);
        let first_kept = self.first_kept(marks);
        let store = self.tracker.store();
        if first_kept > self.kept_from {
            store.keep_ledgers_from(first_kept).await?;
            (self.kept_from, self.forgets) = (first_kept, true);
        }
        if self.forgets {
            self.forgets = forget_ledgers(store.as_ref()).await?;
        }
        Ok(())
    }

    /// From which header on fee accounts can be proved: somewhat before the newest one whose ledger `FeeVault` pays out, for
    /// whoever looks at an L1 that lags behind ours. How soon hints become final does not matter, nor how many headers
    /// there are in the vault's delay.
    fn first_kept(&mut self, marks: Settled) -> u64 {
        let posted_through = self.claim_delay.and_then(|delay| self.through.checked_sub(delay));
        let payable = posted_through.map_or(0, |block| self.runs.payable(block));
        payable.min(marks.posted).saturating_sub(KEPT_POSTED_HEADERS)
    }

    fn last(&self, index: usize) -> u64 {
        self.runs.list[index].reference.last
    }

    /// Rule SF-1.
    async fn is_final(&mut self, index: usize) -> Result<bool, L1RoundError> {
        if self.runs.hints.is_settled(self.last(index)) {
            return Ok(true);
        }
        let needs_hints = match self.runs.list[index].needs_hints {
            Some(needs_hints) => needs_hints,
            None => {
                let RunReference { first, last, .. } = self.runs.list[index].reference;
                let mut needs_hints = false;
                for number in first..=last {
                    let record = self.tracker.store().batch(number).await?;
                    needs_hints |= record.is_none_or(|record| accepted(&record) > 0);
                }
                self.runs.list[index].needs_hints = Some(needs_hints);
                needs_hints
            }
        };
        Ok(!needs_hints)
    }

    /// Rule SF-2.
    async fn is_safe(&mut self, index: usize) -> Result<bool, L1RoundError> {
        if self.is_final(index).await? {
            return Ok(true);
        }
        let run = self.runs.list[index].reference;
        // Our hints are not looked at before somebody has posted any.
        if self.runs.hints.open_for(run.last).next().is_none() {
            return Ok(false);
        }
        Ok(self.hints_stand(index, &run).await? && self.has_data(index).await?)
    }

    /// Whether somebody posted our own hints. Their root in blobs is dear, so it is computed where they do not stand in
    /// calldata.
    async fn hints_stand(&mut self, index: usize, run: &RunReference) -> Result<bool, L1RoundError> {
        loop {
            let known = self.runs.list[index].roots;
            if let Some(known) = known
                && (known.is_complete() || self.runs.stand(run.last, known.roots()))
            {
                return Ok(self.runs.stand(run.last, known.roots()));
            }
            let Some(own) = own_hints_of(self.tracker.store().as_ref(), run).await? else { return Ok(false) };
            self.runs.list[index].roots = Some(match known {
                None => OwnRoots::InCalldata(HintRoots::in_calldata(run.first, &own)),
                Some(_) => OwnRoots::All(HintRoots::of(run.first, own).await?),
            });
        }
    }

    /// Whether L1 holds the run's batches, with the sequencer's signatures.
    async fn has_data(&mut self, index: usize) -> Result<bool, L1RoundError> {
        let (run, through) = (self.runs.list[index].reference, self.through);
        if self.runs.list[index].data {
            return Ok(true);
        }
        if !self.runs.list[index].look.is_due(through) {
            return Ok(false);
        }
        let mut own = Vec::new();
        for number in run.first..=run.last {
            // Of what is damaged here nothing is compared.
            own.extend(self.tracker.store().batch(number).await?.and_then(|record| keyed(record).ok()));
        }
        let data = self.l1.posted_data(&run, own, through).await?;
        let signed =
            |batch: &Option<SealedBatch>| batch.as_ref().is_some_and(|batch| self.tracker.is_signed(batch));
        let found = data.batches.iter().all(signed);
        let entry = &mut self.runs.list[index];
        entry.data = found;
        if data.fault.is_some_and(|fault| fault.may_pass(through)) {
            entry.look.after_failure();
        } else {
            entry.look.after_absence(run.posted_at, through);
        }
        // Sequencers post it later than the headers, as what it was opened to.
        if !found && through.saturating_sub(run.posted_at) >= DATA_PATIENCE_BLOCKS {
            tracing::warn!(
                first = run.first,
                last = run.last,
                "L1 does not show the data of these batches: without it they are not safe before their hints are final"
            );
        }
        Ok(found)
    }
}

/// Our own hints for the run; `None` while some are not here.
async fn own_hints_of(store: &dyn Store, run: &RunReference) -> Result<Option<HintPosting>, L1RoundError> {
    let mut own: Vec<BatchHints> = Vec::new();
    for number in run.first..=run.last {
        let Some(hints) = store.batch(number).await?.and_then(own_hints) else { return Ok(None) };
        own.push(hints);
    }
    Ok(Some(HintPosting::of(&own)))
}
