//! Posts runs of certified headers with their data to `BlindedInbox`. L1 is the record of what is posted: after a
//! restart, or after L1 took a posting back, posting goes on from the head that L1 names.
//!
//! Headers that somebody posts while a run of theirs is on its way do not make it fail: its data counts for them. Data that
//! L1 lacks is supplied by a task of its own ([`crate::supplier`]).
//!
//! One of several servers behind the endpoint may lag behind. What came of a run only an answer tells that is of its block
//! or a later one; until there is one nothing else is posted (PD-6).

use std::{future::Future, sync::Arc, time::Duration};

use blindfold_chain::{RunLimits, coded, next_run};
use blindfold_l1::{CodedBatch, DataCosts, L1Error, L1Submitter, MAX_TRANSACTION_HEADERS, PostedHead, Sent};
use blindfold_protocol::{B256, fault::CODE_ACCEPTED};
use blindfold_runtime::{Backoff, Instant, now};
use blindfold_store::{PostedRecord, Store, StoreError, What};
use blindfold_telemetry::traces;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::time::sleep;

use crate::context::Context;

/// Bytes of sealed batches in one posting of headers whose data follows as what it was opened to, a fifth as long.
const OPENED_RUN_BYTES: usize = 4 << 20;
/// Tries in a row to post a run's data, or to see whether it is there, before it is left for later: headers have a deadline on
/// L1, and data alone has none.
const MAX_DATA_FAILURES: u32 = 5;
/// How long headers go alone once data was left for later, in milliseconds: with tries for each run fewer headers are posted
/// than are made.
const DATA_REST_MS: u64 = 600_000;
/// Where the run under way is stored.
const INTENT_KEY: &str = "posting";
/// first u64 ‖ last u64 ‖ done u8.
const INTENT_BYTES: usize = 17;

/// The run that was posted last, or is about to be: written before its headers go out, so that data that did not
/// follow them is posted after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Intent {
    first: u64,
    last: u64,
    done: bool,
}

impl Intent {
    fn encode(self) -> Vec<u8> {
        [self.first.to_be_bytes().as_slice(), &self.last.to_be_bytes(), &[u8::from(self.done)]].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; INTENT_BYTES] = bytes.try_into().ok()?;
        let (first, rest) = bytes.split_first_chunk()?;
        let (last, done) = rest.split_first_chunk()?;
        Some(Self { first: u64::from_be_bytes(*first), last: u64::from_be_bytes(*last), done: done == [1] })
    }
}

/// Nothing above this number is on its way to L1 any more.
pub(crate) async fn forget_intent_above(store: &dyn Store, number: u64) -> Result<(), StoreError> {
    let stored = store.meta(INTENT_KEY).await?;
    match stored.and_then(|bytes| Intent::decode(&bytes)) {
        Some(intent) if !intent.done && intent.last > number => {
            store.put_meta(INTENT_KEY, &Intent { done: true, ..intent }.encode()).await
        }
        _ => Ok(()),
    }
}

/// What went out last, until L1 says what came of it.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    receipt: Sent,
    /// When it began to go out.
    started: Instant,
    /// What is stored of the run, and whether there were more headers to post; none for a header that L1 was had to make.
    run: Option<(Intent, bool)>,
}

/// Why a round of posting did nothing.
#[derive(Debug, Error)]
pub(crate) enum L1RoundError {
    #[error(transparent)]
    L1(#[from] L1Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("L1 holds header {hash} at {number}, which is not ours: another chain was posted to this inbox")]
    OtherChain { number: u64, hash: B256 },
    #[error("L1 is at {posted}, ahead of our certified head {certified}: this disk is older than the chain")]
    Ahead { posted: u64, certified: u64 },
    #[error("L1 took the transaction {transaction}, and is at {posted}: the run up to {last} is not posted")]
    PassedOver { last: u64, posted: u64, transaction: B256 },
    #[error(
        "L1 answers as of block {answered}, and our last transaction is in block {sent}: waiting for it to catch up"
    )]
    Lagging { answered: u64, sent: u64 },
}

/// Rounds with a pause between two, none after one that says that there is more to do, until the sequencer stops.
pub(crate) async fn repeat<F: Future<Output = Result<bool, L1RoundError>>>(
    cx: &Context,
    message: &'static str,
    round: impl Fn() -> F,
) {
    let limits = &cx.config.posting;
    let mut stop = cx.stop.clone();
    let mut pauses = Backoff::new(limits.retry_ms, limits.max_retry_ms);
    loop {
        // What is under way when the sequencer stops is found out at the next start.
        let outcome = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            outcome = round() => outcome,
        };
        let wait = match outcome {
            Ok(more) => {
                pauses.reset();
                Duration::from_millis(if more { 0 } else { limits.interval_ms })
            }
            Err(error) => {
                cx.metrics.posting_failures.increment();
                let pause = pauses.pause();
                tracing::warn!(%error, ?pause, "{message}");
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

/// The run that is being posted, unless L1 has gone past it.
pub(crate) async fn under_way(store: &dyn Store, posted: u64) -> Result<Option<(u64, u64)>, StoreError> {
    let stored = store.meta(INTENT_KEY).await?;
    let intent = stored.and_then(|bytes| Intent::decode(&bytes));
    let open = intent.filter(|intent| !intent.done && intent.last >= posted);
    Ok(open.map(|intent| (intent.first, intent.last)))
}

/// Whether a batch has an envelope that will be opened. Others have no hints to wait for.
fn has_accepted(batch: &CodedBatch) -> bool {
    batch.codes.contains(&CODE_ACCEPTED)
}

/// A batch as it is posted.
pub(crate) async fn batch_of(store: &dyn Store, number: u64) -> Result<CodedBatch, StoreError> {
    let missing = StoreError::Missing { what: What::Batch, number };
    coded(store.batch(number).await?.ok_or(missing)?)
}

/// L1's head must be one of our certified headers.
pub(crate) async fn check_posted(cx: &Context, posted: PostedHead) -> Result<(), L1RoundError> {
    let PostedHead { number, hash, .. } = posted;
    let certified = cx.tracker.certified().number;
    if number > certified {
        return Err(L1RoundError::Ahead { posted: number, certified });
    }
    let ours = match number {
        0 => Some(cx.chain.deployment.genesis_hash()),
        number => cx.store.batch(number).await?.map(|record| record.hash),
    };
    if ours != Some(hash) {
        return Err(L1RoundError::OtherChain { number, hash });
    }
    Ok(())
}

/// How posting data went last.
#[derive(Default)]
struct DataTries {
    /// How often in a row it failed.
    failures: u32,
    /// Until when headers go alone.
    rests_until: Option<Instant>,
}

/// Posts certified headers and their data to L1.
pub(crate) struct Poster {
    cx: Arc<Context>,
    l1: Arc<dyn L1Submitter>,
    sent: Mutex<Option<Outgoing>>,
    data_tries: Mutex<DataTries>,
    /// What data cost, as far as it was counted: of the account's postings, the supplier's with them.
    costs: Mutex<DataCosts>,
}

impl Poster {
    pub(crate) fn new(cx: Arc<Context>, l1: Arc<dyn L1Submitter>) -> Self {
        Self { cx, l1, sent: Mutex::new(None), data_tries: Mutex::default(), costs: Mutex::default() }
    }

    /// Posts until the sequencer stops.
    pub(crate) async fn run(self) {
        repeat(&self.cx, "posting to L1 waits and tries again", || self.post_once()).await;
    }

    /// One round: asks L1 where it stands, finds out what came of the run that went out last, and posts the next one. True
    /// when a run went out.
    async fn post_once(&self) -> Result<bool, L1RoundError> {
        self.count_costs();
        let posted = self.l1.reader().posted_head().await?;
        let last = *self.sent.lock();
        if let Some(Outgoing { receipt, .. }) = last
            && posted.block < receipt.block
        {
            // One of several servers behind the endpoint lags behind: it has not seen the transaction.
            return Err(L1RoundError::Lagging { answered: posted.block, sent: receipt.block });
        }
        check_posted(&self.cx, posted).await?;
        self.cx.metrics.posted_number.set(posted.number);
        let mut nothing_left = false;
        if let Some(Outgoing { receipt, started, run: Some((intent, more)) }) = last {
            let (last, transaction) = (intent.last, receipt.transaction);
            // The transaction succeeds as well where L1 passed over the run, because it made a header itself meanwhile:
            // what is posted its head says.
            if posted.number < last {
                *self.sent.lock() = None;
                return Err(L1RoundError::PassedOver { last, posted: posted.number, transaction });
            }
            // Where the disk fails, the next round finds it out again and notes it.
            self.note_posted(intent, transaction).await?;
            for number in intent.first..=intent.last {
                traces::batch(number, "post", started);
            }
            nothing_left = !more;
        }
        *self.sent.lock() = None;
        if nothing_left {
            return Ok(false);
        }
        if let Some(intent) = self.open_intent(posted.number).await? {
            if self.waits_for_hints() {
                // Its data is the supplier's.
                self.close_intent(intent).await?;
            } else {
                return self.post_data_of(intent).await;
            }
        }
        if let Some(receipt) = self.end_at_head_after(posted).await? {
            *self.sent.lock() = Some(Outgoing { receipt, started: now(), run: None });
            return Ok(false);
        }
        let limits = &self.cx.config.posting;
        // Headers alone, while their data has a transaction of its own in between: as many as one holds.
        let (max_headers, max_bytes) =
            if self.waits_for_hints() { (MAX_TRANSACTION_HEADERS, OPENED_RUN_BYTES) } else { (0, 0) };
        let limits = RunLimits {
            max_headers: limits.max_headers.max(max_headers),
            max_bytes: limits.max_bytes.max(max_bytes),
        };
        let Some(run) = next_run(&self.cx.tracker, posted.number + 1, limits).await? else {
            return Ok(false);
        };
        let intent = Intent { first: posted.number + 1, last: run.certificate.number, done: false };
        self.cx.store.put_meta(INTENT_KEY, &intent.encode()).await?;
        let started = now();
        let goes_alone = match self.waits_for_hints() {
            true => run.batches.iter().any(has_accepted),
            false => self.data_rests(),
        };
        let receipt = if goes_alone {
            let headers: Vec<_> = run.batches.iter().map(|batch| batch.sealed.header).collect();
            self.l1.post_headers(&headers, &run.certificate).await?
        } else {
            let receipt = self.l1.post(&run.batches, &run.certificate).await?;
            *self.data_tries.lock() = DataTries::default();
            receipt
        };
        *self.sent.lock() = Some(Outgoing { receipt, started, run: Some((intent, run.more)) });
        self.close_intent(intent).await?;
        Ok(true)
    }

    fn count_costs(&self) {
        let (mut counted, costs) = (self.costs.lock(), self.l1.data_costs());
        self.cx.metrics.count_data_costs(&counted, &costs);
        *counted = costs;
    }

    /// Whether data is posted later than its headers, as what it was opened to.
    fn waits_for_hints(&self) -> bool {
        self.cx.config.posting.opened_wait_blocks > 0
    }

    /// Has L1 make the last header of the next number's epoch, if its announced end is due: nothing else is taken for that
    /// number any more, and the next epoch begins behind it (rule E-11).
    async fn end_at_head_after(&self, posted: PostedHead) -> Result<Option<Sent>, L1RoundError> {
        let number = posted.number.saturating_add(1);
        let Some(closing) = self.cx.tracker.closing(number).filter(|closing| closing.is_due(posted.block))
        else {
            return Ok(None);
        };
        // Before the first certified header L1 makes none.
        let Some(head) = self.cx.store.batch(posted.number).await? else { return Ok(None) };
        let made = self.l1.end_at_head(&head.sealed.header).await?;
        if let Some(Sent { block, transaction, .. }) = made {
            let epoch = closing.epoch;
            tracing::warn!(number, epoch, block, %transaction, "had L1 make the last header of an epoch that was to end");
        }
        Ok(made)
    }

    /// The data of a run whose headers are there: where it may not have followed them, it goes out now.
    async fn post_data_of(&self, intent: Intent) -> Result<bool, L1RoundError> {
        let started = now();
        let batches = self.batches_of(intent.first, intent.last).await?;
        let headers: Vec<_> = batches.iter().map(|batch| batch.sealed.header).collect();
        let outcome = match self.l1.lacks_new_data(&headers).await {
            Ok(true) => self.l1.post_data(&batches).await.map(Some),
            Ok(false) => Ok(None),
            Err(fault) => Err(fault),
        };
        match outcome {
            Ok(Some(receipt)) => {
                *self.data_tries.lock() = DataTries::default();
                *self.sent.lock() = Some(Outgoing { receipt, started, run: Some((intent, true)) });
            }
            Ok(None) => *self.data_tries.lock() = DataTries::default(),
            Err(fault) if self.is_tried_again(&fault) => return Err(fault.into()),
            // The headers that come next do not wait for it: once these are final it is seen to be lacking.
            Err(fault) => {
                tracing::warn!(first = intent.first, last = intent.last, %fault, "data is left for later");
            }
        }
        self.close_intent(intent).await?;
        Ok(true)
    }

    /// Whether data is tried again before the next headers: a few times, and not where L1 is too dear for it. Where it is not, and
    /// the fault may be there for the next run, too, data rests.
    fn is_tried_again(&self, fault: &L1Error) -> bool {
        if !fault.is_transient() {
            return false;
        }
        let mut tries = self.data_tries.lock();
        tries.failures = tries.failures.saturating_add(1);
        let is_too_dear = matches!(fault, L1Error::FeeAboveLimit { .. });
        let is_tried = !is_too_dear && tries.failures < MAX_DATA_FAILURES;
        if !is_tried {
            tries.rests_until = Some(now() + Duration::from_millis(DATA_REST_MS));
        }
        is_tried
    }

    /// Whether data is the supplier's for now.
    fn data_rests(&self) -> bool {
        self.data_tries.lock().rests_until.is_some_and(|until| now() < until)
    }

    /// The last run, if its headers are L1's newest and its data is not known to be there.
    async fn open_intent(&self, posted: u64) -> Result<Option<Intent>, StoreError> {
        let stored = self.cx.store.meta(INTENT_KEY).await?;
        let intent = stored.and_then(|bytes| Intent::decode(&bytes));
        let Some(intent) = intent.filter(|intent| !intent.done && intent.last == posted) else {
            return Ok(None);
        };
        // L1 may have made the header in its place: that one has no data.
        let ours = self.cx.store.batch(posted).await?.is_some_and(|record| !record.by_l1);
        Ok(Some(intent).filter(|_| ours))
    }

    async fn close_intent(&self, intent: Intent) -> Result<(), StoreError> {
        self.cx.store.put_meta(INTENT_KEY, &Intent { done: true, ..intent }.encode()).await
    }

    async fn batches_of(&self, first: u64, last: u64) -> Result<Vec<CodedBatch>, StoreError> {
        let mut batches = Vec::new();
        for number in first..=last {
            batches.push(batch_of(self.cx.store.as_ref(), number).await?);
        }
        Ok(batches)
    }

    /// Notes a run that is posted. Whether its data is there is said by final blocks alone.
    async fn note_posted(&self, intent: Intent, transaction: B256) -> Result<(), StoreError> {
        let Intent { first, last, .. } = intent;
        self.cx.store.put_posted(PostedRecord { up_to_number: last, l1_transaction: transaction }).await?;
        self.cx.metrics.postings.increment();
        tracing::info!(first, last, %transaction, "posted to L1");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_comes_back_and_anything_else_is_none() {
        for done in [false, true] {
            let intent = Intent { first: 3, last: 9, done };
            assert_eq!(Intent::decode(&intent.encode()), Some(intent));
        }
        assert_eq!(Intent::decode(&[0; INTENT_BYTES - 1]), None);
        assert_eq!(Intent::decode(&[0; INTENT_BYTES + 1]), None);
    }

    #[tokio::test]
    async fn what_goes_to_l1_above_a_number_is_forgotten() {
        let store = blindfold_store::SqlStore::in_memory().unwrap();
        forget_intent_above(&store, 0).await.unwrap();
        assert_eq!(store.meta(INTENT_KEY).await.unwrap(), None);
        let intent = Intent { first: 3, last: 9, done: false };
        for (number, done) in [(9, false), (8, true), (0, true)] {
            store.put_meta(INTENT_KEY, &intent.encode()).await.unwrap();
            forget_intent_above(&store, number).await.unwrap();
            let stored = store.meta(INTENT_KEY).await.unwrap().unwrap();
            assert_eq!(Intent::decode(&stored), Some(Intent { done, ..intent }));
        }
    }
}
