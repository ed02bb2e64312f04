//! Posts runs of certified headers with their data to `BlindedInbox`. L1 is the record of what is posted: after a
//! restart, or after L1 took a posting back, posting goes on from the head that L1 names.
//!
//! Anybody may post certified headers, and need not post their data with them. So data of every posted header is
//! supplied that L1 lacks, whoever posted the header: nodes that have L1 alone could not go on otherwise. A task of its own
//! looks for it, so that no trouble with that holds up the headers that come next. Headers that somebody posts while a run
//! of theirs is on its way do not make it fail: its data counts for them.

use std::{future::Future, sync::Arc, time::Duration};

use async_trait::async_trait;
use blindfold_chain::verdicts;
pub use blindfold_l1::DataStanding;
use blindfold_l1::{CodedBatch, L1Error, L1Writer, Recovery};
use blindfold_protocol::{B256, Canonical, Certificate, validity::Verdict};
use blindfold_runtime::Backoff;
use blindfold_store::{BatchRecord, PostedRecord, StoreError, What};
use parking_lot::Mutex;
use thiserror::Error;
use tokio::time::sleep;

use crate::{config::PostingConfig, core::Core};

/// What `BlindedInbox` holds as its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostedHead {
    /// Number of the newest posted header; 0 before the first.
    pub number: u64,
    /// Its hash; the genesis hash before the first.
    pub hash: B256,
}

/// A run of consecutive headers with their items, and the certificate of the last.
#[derive(Clone, Debug)]
pub struct Run {
    /// The batches, at least one.
    pub batches: Vec<CodedBatch>,
    /// Certificate of the last header; it certifies all of them.
    pub certificate: Certificate,
}

/// Why a transaction to L1 did not happen, or why its outcome is not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PostFault {
    /// No answer, or the transaction did not make it: look where L1 stands and try again.
    #[error("L1 does not answer or did not take the transaction: {0}")]
    Unavailable(String),
    /// The contract refuses it. Trying again is right when L1's head moved, and harmless otherwise.
    #[error("the contract refuses: {0}")]
    Refused(String),
}

/// Writing to L1, as a seam: the client of the contracts implements it, tests script it.
#[async_trait]
pub trait L1Poster: Send + Sync {
    /// Where the inbox stands.
    async fn posted_head(&self) -> Result<PostedHead, PostFault>;

    /// Posts a run and waits until it is in a block, its data included. Gives the hash of the transaction with the
    /// headers. After an error the headers may be posted with or without their data.
    async fn post(&self, run: &Run) -> Result<B256, PostFault>;

    /// Posts the data of a run whose headers are posted. Gives the hash of the last transaction.
    async fn post_data(&self, batches: &[CodedBatch]) -> Result<B256, PostFault>;

    /// Which headers above number `above` L1 holds without their data, among the next that were posted in final blocks
    /// after `after`. It says nothing new when all were looked at.
    async fn data_standing(&self, above: u64, after: u64) -> Result<DataStanding, PostFault>;
}

impl From<L1Error> for PostFault {
    fn from(error: L1Error) -> Self {
        match error.recovery() {
            Recovery::Retry => Self::Unavailable(error.to_string()),
            Recovery::Refresh | Recovery::GiveUp => Self::Refused(error.to_string()),
        }
    }
}

#[async_trait]
impl L1Poster for L1Writer {
    async fn posted_head(&self) -> Result<PostedHead, PostFault> {
        let head = self.client().posted_head().await?;
        Ok(PostedHead { number: head.number, hash: head.hash })
    }

    async fn post(&self, run: &Run) -> Result<B256, PostFault> {
        Ok(L1Writer::post(self, &run.batches, &run.certificate).await?.transaction)
    }

    async fn post_data(&self, batches: &[CodedBatch]) -> Result<B256, PostFault> {
        Ok(L1Writer::post_data(self, batches).await?.transaction)
    }

    async fn data_standing(&self, above: u64, after: u64) -> Result<DataStanding, PostFault> {
        Ok(L1Writer::data_standing(self, above, after).await?)
    }
}

/// Where the run under way is stored.
const INTENT_KEY: &str = "posting";
/// Where the number is stored up to which the data of all posted headers is on L1, u64.
const SUPPLIED_KEY: &str = "posted_data";
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

/// Why a round of posting did nothing.
#[derive(Debug, Error)]
enum Hindrance {
    #[error(transparent)]
    L1(#[from] PostFault),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("L1 holds header {hash} at {number}, which is not ours: another chain was posted to this inbox")]
    OtherChain { number: u64, hash: B256 },
    #[error("L1 is at {posted}, ahead of our certified head {certified}: this disk is older than the chain")]
    Ahead { posted: u64, certified: u64 },
    #[error("L1 took the transaction {transaction}, and is at {posted}: the run up to {last} is not posted")]
    PassedOver { last: u64, posted: u64, transaction: B256 },
}

impl Core {
    /// Posts until the sequencer stops.
    pub(crate) async fn post_loop(self: Arc<Self>, l1: Arc<dyn L1Poster>) {
        let round = || self.post_once(l1.as_ref(), &self.config.posting);
        self.repeat("posting to L1 waits and tries again", round).await;
    }

    /// Supplies data that L1 lacks until the sequencer stops.
    pub(crate) async fn supply_loop(self: Arc<Self>, l1: Arc<dyn L1Poster>) {
        let read_to = Mutex::new(0);
        let round = || self.supply_once(l1.as_ref(), &self.config.posting, &read_to);
        self.repeat("supplying data to L1 waits and tries again", round).await;
    }

    /// Rounds with a pause between two, none after one that says that there is more to do.
    async fn repeat<F: Future<Output = Result<bool, Hindrance>>>(
        &self,
        trouble: &'static str,
        round: impl Fn() -> F,
    ) {
        let limits = &self.config.posting;
        let mut stop = self.stop.clone();
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
                Err(hindrance) => {
                    self.metrics.posting_failures.increment();
                    let pause = pauses.pause();
                    tracing::warn!(%hindrance, ?pause, trouble);
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

    /// One round: asks L1 where it stands and posts the run after it. True when a full run went out.
    async fn post_once(&self, l1: &dyn L1Poster, limits: &PostingConfig) -> Result<bool, Hindrance> {
        let posted = l1.posted_head().await?;
        self.check_posted(posted).await?;
        self.metrics.posted_number.set(posted.number);
        if let Some(intent) = self.open_intent(posted.number).await? {
            let batches = self.batches_of(intent.first, intent.last).await?;
            match l1.post_data(&batches).await {
                Ok(transaction) => {
                    self.finish_posting(intent, transaction).await?;
                    return Ok(true);
                }
                Err(fault @ PostFault::Unavailable(_)) => return Err(fault.into()),
                Err(fault) => {
                    // The headers that come next do not wait for it: once these are final it is seen to be lacking.
                    tracing::warn!(first = intent.first, last = intent.last, %fault, "data is left for later");
                    self.close_intent(intent).await?;
                }
            }
        }
        let (run, more) = self.next_run(posted.number + 1, limits).await?;
        let Some(run) = run else { return Ok(false) };
        let intent = Intent { first: posted.number + 1, last: run.certificate.number, done: false };
        self.store.put_meta(INTENT_KEY, &intent.encode()).await?;
        let transaction = l1.post(&run).await?;
        self.close_intent(intent).await?;
        // The transaction succeeds as well where L1 passed over the run, because it made a header itself meanwhile: what is
        // posted its head says.
        let posted = l1.posted_head().await?;
        self.check_posted(posted).await?;
        if posted.number < intent.last {
            return Err(Hindrance::PassedOver { last: intent.last, posted: posted.number, transaction });
        }
        self.finish_posting(intent, transaction).await?;
        Ok(more)
    }

    /// The last run, if its headers are L1's newest and its data is not known to be there.
    async fn open_intent(&self, posted: u64) -> Result<Option<Intent>, StoreError> {
        let stored = self.store.meta(INTENT_KEY).await?;
        let intent = stored.and_then(|bytes| Intent::decode(&bytes));
        let Some(intent) = intent.filter(|intent| !intent.done && intent.last == posted) else {
            return Ok(None);
        };
        // L1 may have made the header in its place: that one has no data.
        let ours = self.store.batch(posted).await?.is_some_and(|record| !record.by_l1);
        Ok(Some(intent).filter(|_| ours))
    }

    async fn close_intent(&self, intent: Intent) -> Result<(), StoreError> {
        self.store.put_meta(INTENT_KEY, &Intent { done: true, ..intent }.encode()).await
    }

    /// One round: looks which posted headers lack data, from the first that was not looked at on, and supplies it.
    /// `read_to` is the L1 block up to which headers were looked at. True when there may be more.
    async fn supply_once(
        &self,
        l1: &dyn L1Poster,
        limits: &PostingConfig,
        read_to: &Mutex<u64>,
    ) -> Result<bool, Hindrance> {
        let posted = l1.posted_head().await?;
        self.check_posted(posted).await?;
        let supplied = self.supplied().await?;
        if supplied >= posted.number {
            if supplied > posted.number {
                // L1 took postings back: who posts them anew may leave out the data.
                self.set_supplied(posted.number).await?;
                *read_to.lock() = 0;
            }
            return Ok(false);
        }
        let Some(next) = self.store.batch(supplied + 1).await? else { return Ok(false) };
        // A header is posted after its origin.
        let after = next.sealed.header.l1_origin_number.max(*read_to.lock());
        let standing = l1.data_standing(supplied, after).await?;
        for (first, last) in standing.lacking {
            tracing::warn!(first, last, "these headers were posted without their data: supplying it");
            self.supply(l1, limits, (first.max(supplied + 1), last)).await?;
        }
        let through = standing.through.min(posted.number);
        if through <= supplied {
            return Ok(false);
        }
        self.set_supplied(through).await?;
        *read_to.lock() = standing.block;
        Ok(true)
    }

    /// Posts the data of these headers, each piece within the limits of a posting.
    async fn supply(
        &self,
        l1: &dyn L1Poster,
        limits: &PostingConfig,
        (first, last): (u64, u64),
    ) -> Result<(), Hindrance> {
        let (mut batches, mut bytes) = (Vec::new(), 0usize);
        for number in first..=last {
            let batch = self.batch_of(number).await?;
            let size = batch.sealed.encode().len();
            if !batches.is_empty() && bytes.saturating_add(size) > limits.max_bytes {
                self.supply_piece(l1, &std::mem::take(&mut batches)).await?;
                bytes = 0;
            }
            bytes = bytes.saturating_add(size);
            batches.push(batch);
        }
        self.supply_piece(l1, &batches).await
    }

    async fn supply_piece(&self, l1: &dyn L1Poster, batches: &[CodedBatch]) -> Result<(), Hindrance> {
        let numbers = batches.first().zip(batches.last());
        let Some((first, last)) = numbers.map(|(a, b)| (a.sealed.header.number, b.sealed.header.number))
        else {
            return Ok(());
        };
        let transaction = l1.post_data(batches).await?;
        self.set_supplied(last).await?;
        self.metrics.postings.increment();
        tracing::info!(first, last, %transaction, "data posted to L1");
        Ok(())
    }

    /// The number up to which the data of all posted headers is known to be on L1.
    async fn supplied(&self) -> Result<u64, StoreError> {
        let stored = self.store.meta(SUPPLIED_KEY).await?;
        let number = stored.and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        Ok(number.unwrap_or_default())
    }

    async fn set_supplied(&self, number: u64) -> Result<(), StoreError> {
        self.store.put_meta(SUPPLIED_KEY, &number.to_be_bytes()).await
    }

    async fn batches_of(&self, first: u64, last: u64) -> Result<Vec<CodedBatch>, StoreError> {
        let mut batches = Vec::new();
        for number in first..=last {
            batches.push(self.batch_of(number).await?);
        }
        Ok(batches)
    }

    async fn batch_of(&self, number: u64) -> Result<CodedBatch, StoreError> {
        let missing = StoreError::Missing { what: What::Batch, number };
        coded(self.store.batch(number).await?.ok_or(missing)?)
    }

    /// Notes a run that is posted with its data.
    async fn finish_posting(&self, intent: Intent, transaction: B256) -> Result<(), StoreError> {
        let Intent { first, last, .. } = intent;
        self.store.put_posted(PostedRecord { up_to_number: last, l1_transaction: transaction }).await?;
        self.close_intent(intent).await?;
        // Where L1 took postings back, `first` is below what was supplied.
        if first <= self.supplied().await?.saturating_add(1) {
            self.set_supplied(last).await?;
        }
        self.metrics.postings.increment();
        self.metrics.posted_number.set(last);
        tracing::info!(first, last, %transaction, "posted to L1");
        Ok(())
    }

    /// L1's head must be one of our certified headers.
    async fn check_posted(&self, posted: PostedHead) -> Result<(), Hindrance> {
        let PostedHead { number, hash } = posted;
        let certified = self.tracker.certified().number;
        if number > certified {
            return Err(Hindrance::Ahead { posted: number, certified });
        }
        let ours = match number {
            0 => Some(self.chain.deployment.genesis_hash()),
            number => self.store.batch(number).await?.map(|record| record.hash),
        };
        if ours != Some(hash) {
            return Err(Hindrance::OtherChain { number, hash });
        }
        Ok(())
    }

    /// The longest run from `first` within the limits that ends with a certificate of its own and lies in one epoch,
    /// and whether certified headers are left after it. When no header within the limits has one (its certificate came
    /// through a descendant), the run goes on to the first that has: at most the headers once in flight more.
    async fn next_run(&self, first: u64, limits: &PostingConfig) -> Result<(Option<Run>, bool), StoreError> {
        let certified = self.tracker.certified().number;
        let mut batches: Vec<CodedBatch> = Vec::new();
        let mut end: Option<(usize, Certificate)> = None;
        let mut bytes = 0usize;
        let mut number = first;
        while number <= certified && (end.is_none() || batches.len() < limits.max_headers) {
            let Some(record) = self.store.batch(number).await? else { break };
            if record.by_l1 {
                // L1 has it already, and takes nothing before it any more.
                break;
            }
            let size = record.sealed.encode().len();
            let other_epoch =
                batches.first().is_some_and(|batch| batch.sealed.header.epoch != record.sealed.header.epoch);
            if other_epoch || end.is_some() && (bytes.saturating_add(size) > limits.max_bytes) {
                break;
            }
            bytes = bytes.saturating_add(size);
            let certificate = record.certificate;
            batches.push(coded(record)?);
            if let Some(certificate) = certificate {
                end = Some((batches.len(), certificate));
            }
            number += 1;
        }
        let Some((length, certificate)) = end else { return Ok((None, false)) };
        batches.truncate(length);
        let more = certificate.number < certified;
        Ok((Some(Run { batches, certificate }), more))
    }
}

/// The batch with the verdict codes of its items.
pub(crate) fn coded(record: BatchRecord) -> Result<CodedBatch, StoreError> {
    let codes = verdicts(&record)?.iter().map(Verdict::code).collect();
    Ok(CodedBatch { sealed: record.sealed, codes })
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

    #[test]
    fn faults_say_whether_l1_was_reached() {
        let lost = L1Error::Timeout { method: "eth_call".to_owned(), timeout_ms: 1 };
        assert!(matches!(PostFault::from(lost), PostFault::Unavailable(_)));
        let url = L1Error::Url { reason: "no scheme" };
        assert!(matches!(PostFault::from(url), PostFault::Refused(_)));
    }
}
