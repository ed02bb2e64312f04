//! Answers accusations on L1 of having left out a promised envelope: one that nobody answers within the window costs
//! the whole bond. L1 is the record of what is open, so nothing is kept: after a kill, or after L1 took an answer back,
//! the next look finds what is left to do.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use blindfold_chain::{L1RoundError, coded};
use blindfold_l1::{GivenPromise, L1Submitter, OmissionAnswer, OpenAccusation};
use blindfold_protocol::{B256, Verdict, fault::keeps_promise, keccak256};
use blindfold_store::{BatchRecord, ItemRecord, Store, StoreError};
use tokio::time::sleep;

use crate::context::Context;

/// The most numbers between an envelope's admission and its expiry, and so between a promise and its number.
const MAX_LIFETIME: u64 = 4_096;
/// Batches read from disk at a time.
const PAGE_BATCHES: usize = 16;

/// Whether the verdict on the item of batch `number` keeps a promise.
fn is_kept(item: &ItemRecord, number: u64, seal_by: u64) -> bool {
    let code = Verdict::code_of_reason(item.fault.as_deref());
    code.is_some_and(|code| keeps_promise(code, number, seal_by))
}

/// What a round did about one accusation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The answer is in a block.
    Answered,
    /// It has to wait for the posting of the batch, or for the disk to reach it.
    Waits,
    /// Nothing answers it: the bond is lost.
    Lost,
}

/// Looks for open accusations on L1 and answers them.
pub(crate) struct Answerer {
    pub(crate) cx: Arc<Context>,
    pub(crate) l1: Arc<dyn L1Submitter>,
}

impl Answerer {
    /// Looks for accusations and answers them until the sequencer stops.
    pub(crate) async fn run(self) {
        let mut stop = self.cx.stop.clone();
        let pause = Duration::from_millis(self.cx.config.accusations.interval_ms);
        let mut reported = BTreeSet::new();
        loop {
            // What is under way when the sequencer stops is found out at the next start.
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = self.answer_all(&mut reported) => {}
            }
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// One round over everything that is open. `reported` holds the lost ones of which the log was told.
    async fn answer_all(&self, reported: &mut BTreeSet<(B256, B256, u64)>) {
        let open = match self.l1.reader().open_accusations(self.cx.chain.genesis_l1_origin).await {
            Ok(open) => open,
            Err(fault) => {
                self.cx.metrics.accusation_failures.increment();
                tracing::warn!(%fault, "looking for accusations on L1 failed; it is tried again");
                return;
            }
        };
        let mut left = open.len() as u64;
        let mut lost = BTreeSet::new();
        self.cx.metrics.accusations_open.set(left);
        for accusation in open {
            let OpenAccusation { promise, answer_until } = accusation;
            let GivenPromise { envelope_id, item_hash, seal_by, .. } = promise;
            match self.answer_one(&accusation).await {
                Ok(Outcome::Answered) => left = left.saturating_sub(1),
                Ok(Outcome::Waits) => {
                    tracing::warn!(%envelope_id, seal_by, answer_until, "an answer on L1 waits for its batch");
                }
                Ok(Outcome::Lost) => {
                    lost.insert((envelope_id, item_hash, seal_by));
                }
                Err(error) => {
                    self.cx.metrics.accusation_failures.increment();
                    tracing::warn!(%error, %envelope_id, answer_until, "an answer on L1 failed; it is tried again");
                }
            }
        }
        for (envelope_id, item_hash, seal_by) in lost.difference(reported) {
            tracing::error!(
                %envelope_id,
                %item_hash,
                seal_by,
                "a promise was not kept: the bond will be lost to an accusation on L1"
            );
        }
        self.cx.metrics.accusations_open.set(left);
        self.cx.metrics.accusations_lost.set(lost.len() as u64);
        *reported = lost;
    }

    async fn answer_one(&self, accusation: &OpenAccusation) -> Result<Outcome, L1RoundError> {
        let promise = accusation.promise;
        let Some(record) = kept_in(self.cx.store.as_ref(), &promise).await? else {
            // Only a disk that has all headers up to the number can say that the envelope is in none.
            let complete = self.cx.tracker.certified().number >= promise.seal_by;
            return Ok(if complete { Outcome::Lost } else { Outcome::Waits });
        };
        let number = record.number;
        // A header is posted after its origin.
        let Some(run) = self.l1.reader().run_of(number, record.sealed.header.l1_origin_number).await? else {
            return Ok(Outcome::Waits);
        };
        let batch = coded(record)?;
        let Some(answer) = OmissionAnswer::new(run, &batch.sealed, &batch.codes, promise) else {
            return Ok(Outcome::Lost);
        };
        let transaction = self.l1.answer_omission(&answer).await?.transaction;
        self.cx.metrics.accusations_answered.increment();
        let GivenPromise { envelope_id, seal_by, .. } = promise;
        tracing::info!(%envelope_id, number, seal_by, %transaction, "answered an accusation on L1");
        Ok(Outcome::Answered)
    }
}

/// A batch up to the promised number in which the promised item stands with a verdict that keeps the promise.
pub(crate) async fn kept_in(
    store: &dyn Store,
    promise: &GivenPromise,
) -> Result<Option<BatchRecord>, StoreError> {
    let GivenPromise { envelope_id, item_hash, seal_by, .. } = *promise;
    let Some(location) = store.envelope_location(envelope_id).await? else { return Ok(None) };
    let holds = |record: &BatchRecord| {
        let items = record.items.iter().zip(&record.sealed.items);
        let kept = |item: &ItemRecord| item.id == envelope_id && is_kept(item, record.number, seal_by);
        items.filter(|(item, _)| kept(item)).any(|(_, bytes)| keccak256(bytes) == item_hash)
    };
    if location.number <= seal_by
        && let Some(record) = store.batch(location.number).await?.filter(holds)
    {
        return Ok(Some(record));
    }
    // The store names one place of several: an earlier batch may have skipped the envelope.
    let mut from = seal_by.saturating_sub(MAX_LIFETIME).max(1);
    while from <= seal_by {
        let page = store.batches(from, PAGE_BATCHES).await?;
        let Some(last) = page.last() else { return Ok(None) };
        from = last.number.saturating_add(1);
        if let Some(record) = page.into_iter().find(holds) {
            return Ok(Some(record));
        }
    }
    Ok(None)
}
