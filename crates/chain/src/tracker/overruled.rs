//! What L1 will not take any more. A certificate of it would only stop whoever took it.
//!
//! - Headers that L1 made a moment ago. Only a final one is followed, for L1 may still take it back; but nothing is voted
//!   for or certified in its place meanwhile. One of several servers behind the endpoint may lag, so what an answer leaves
//!   out is not taken back by that: L1 took it back when it shows another block in the place of the one that made it, or
//!   when that place is final and the header is not among the final ones (O-1).
//! - Headers whose origin is nearly `postingDeadline` old: nobody could post them in time.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use blindfold_protocol::SealedBatch;
use blindfold_runtime::{Instant, now, spawn};
use tokio::time::timeout;

use super::{HeaderId, Tracker, TrackerError};
use crate::limits::{L1_HEADERS_AGE_MS, L1_HEADERS_PATIENCE_MS, MAX_PENDING_L1_HEADERS, POSTING_MARGIN};
use crate::{Closing, L1Error, PendingFallbackHeader};

/// What L1 told last about the headers that it made.
#[derive(Debug)]
pub(super) struct Overruled {
    /// Final ones up to this number are on this chain.
    agreed: u64,
    /// The final ones above it, oldest first: not on this chain yet, or in the place of one that is.
    headers: Vec<HeaderId>,
    /// Those that are not known to be final, or taken back.
    pending: Vec<PendingFallbackHeader>,
    /// Its newest block, final or not.
    newest: u64,
    /// The last answer was of an older block, and its newest block was passed over.
    fell_back: bool,
    /// When it was asked last, whether or not it answered.
    asked_at: Instant,
}

impl Default for Overruled {
    fn default() -> Self {
        let (headers, pending) = (Vec::new(), Vec::new());
        Self { agreed: 0, headers, pending, newest: 0, fell_back: false, asked_at: now() }
    }
}

impl Overruled {
    /// Takes an answer: what L1 made in blocks that are not final, and which of the pending ones are gone.
    fn take(&mut self, newest: u64, shown: Vec<PendingFallbackHeader>, gone: &[PendingFallbackHeader]) {
        self.pending.retain(|made| !gone.contains(made) && !shown.contains(made));
        self.pending.extend(shown);
        // The oldest ones go first: they are the next to be final.
        let surplus = self.pending.len().saturating_sub(MAX_PENDING_L1_HEADERS);
        self.pending.drain(..surplus);
        // Twice in a row it is L1 that fell back.
        self.fell_back = newest < self.newest && !self.fell_back;
        if !self.fell_back {
            self.newest = newest;
        }
    }
}

impl Tracker {
    /// L1's newest block, final or not, as far as it was told.
    pub fn newest_l1_block(&self) -> u64 {
        self.shared.overruled.read().newest.max(self.shared.epochs.read().read_at())
    }

    /// Asks L1 which headers it made, how far it is, and whether an epoch is to end at the head.
    pub(super) async fn look_for_l1_headers(&self) -> Result<(), L1Error> {
        self.shared.overruled.write().asked_at = now();
        let l1 = &self.shared.l1;
        let newest = l1.newest().await?;
        // In this order: what becomes final in between is among the final ones.
        let shown = l1.l1_headers_not_final().await?;
        let finalized = l1.finalized().await?.number;
        self.look_for_final_l1_headers().await?;
        let pending = self.shared.overruled.read().pending.clone();
        let mut gone = Vec::new();
        for made in pending.into_iter().filter(|made| !shown.contains(made)) {
            let other = |hash: B256| hash != made.l1_hash;
            if made.l1_block <= finalized || l1.block_hash(made.l1_block).await?.is_some_and(other) {
                gone.push(made);
            }
        }
        self.shared.overruled.write().take(newest, shown, &gone);
        // Last: the registry may be long to read, or not be told at all, and what L1 made counts without it.
        let closing = l1.announced_end().await?;
        let deadline = self.shared.config.timing.posting_deadline;
        *self.shared.closing.write() = closing.map(|end| Closing::of(&end, deadline));
        Ok(())
    }

    /// Asks L1 which headers it made in final blocks, as far as they are not known to be on this chain.
    ///
    /// # Errors
    /// L1's. A disk that gives no header leaves them unknown.
    pub async fn look_for_final_l1_headers(&self) -> Result<(), L1Error> {
        let (agreed, certified) = (self.shared.overruled.read().agreed, self.certified().number);
        let mut headers = self.shared.l1.l1_headers_from(agreed.saturating_add(1)).await?;
        let mut ours = headers.partition_point(|made| made.number <= certified);
        // They are one chain: below one that is on ours all are.
        while let Some(made) = ours.checked_sub(1).and_then(|last| headers.get(last)) {
            match self.shared.store.header_hash(made.number).await {
                Ok(known) if known == Some(made.hash) => break,
                Ok(_) => ours -= 1,
                Err(error) => {
                    tracing::debug!(number = made.number, %error, "the store gave no header");
                    ours = 0;
                }
            }
        }
        let mut overruled = self.shared.overruled.write();
        if let Some(last) = headers.drain(..ours).next_back() {
            overruled.agreed = overruled.agreed.max(last.number);
        }
        overruled.headers = headers;
        Ok(())
    }

    /// The oldest header that L1 made, final or not, in the place of one up to `number` here, or that is missing here, as
    /// L1 told last.
    ///
    /// # Errors
    /// The store's.
    pub async fn overruled_at(&self, number: u64) -> Result<Option<HeaderId>, TrackerError> {
        self.overruled_in(number, &[]).await
    }

    /// Asks L1 again where nobody did in the last seconds ([`follow_l1`](Self::follow_l1) does), and waits for it a
    /// moment. While it is away its last word counts.
    async fn heard_of_l1_headers(&self) {
        let fresh = Duration::from_millis(L1_HEADERS_AGE_MS);
        if self.shared.overruled.read().asked_at.elapsed() <= fresh {
            return;
        }
        // It goes on when it takes longer, for the next one who asks.
        let tracker = self.clone();
        let asked = spawn(async move {
            if let Err(fault) = tracker.look_for_l1_headers().await {
                tracing::debug!(%fault, "L1 does not tell which headers it made");
            }
        });
        let _ = timeout(Duration::from_millis(L1_HEADERS_PATIENCE_MS), asked).await;
    }

    /// Whether a certificate of header `number`, which is here, could still be posted: asked before a vote for it, and
    /// before votes make a certificate.
    ///
    /// # Errors
    /// [`TrackerError::OverruledByL1`] where this chain up to `number` lacks a header that L1 made, final or not;
    /// [`TrackerError::TooOldForL1`] where its oldest header without a certificate cannot be posted in time;
    /// [`TrackerError::EpochEnds`] where the end of its epoch is about to be due; the store's.
    pub async fn may_be_certified(&self, number: u64) -> Result<(), TrackerError> {
        self.not_overruled(number, &[]).await?;
        if let Some(closing) = self.closing(number)
            && self.newest_l1_block() >= closing.settled_from()
        {
            return Err(closing.refusal(number));
        }
        let oldest = self.certified().number.saturating_add(1).min(number);
        let head = self.head();
        // Mostly there is but one without a certificate, and no batch has to be read for it.
        let (number, origin) = if head.number == oldest {
            (oldest, head.l1_origin)
        } else {
            let Some(record) = self.shared.store.batch(oldest).await? else { return Ok(()) };
            (record.number, record.sealed.header.l1_origin_number)
        };
        match self.too_late_for(origin) {
            Some(newest) => Err(TrackerError::TooOldForL1 { number, origin, newest }),
            None => Ok(()),
        }
    }

    /// L1's newest block, as last heard, where a run that begins with this origin cannot be posted in time any more: no
    /// certificate is made of it, so none is to be signed either (rule C-4).
    pub fn too_late_for(&self, origin: u64) -> Option<u64> {
        let deadline = u64::from(self.shared.config.timing.posting_deadline);
        let newest = self.shared.overruled.read().newest;
        (newest > origin.saturating_add(deadline - deadline / POSTING_MARGIN)).then_some(newest)
    }

    /// Whether the chain up to `number`, of which `run` is the newest part where it is given, has every header that L1
    /// made.
    pub(super) async fn not_overruled(
        &self,
        number: u64,
        run: &[Arc<SealedBatch>],
    ) -> Result<(), TrackerError> {
        self.heard_of_l1_headers().await;
        match self.overruled_in(number, run).await? {
            Some(made) => Err(TrackerError::OverruledByL1 { number: made.number, made: made.hash }),
            None => Ok(()),
        }
    }

    async fn overruled_in(
        &self,
        number: u64,
        run: &[Arc<SealedBatch>],
    ) -> Result<Option<HeaderId>, TrackerError> {
        let headers: Vec<HeaderId> = {
            let known = self.shared.overruled.read();
            let pending = known.pending.iter().map(|made| &made.header);
            known.headers.iter().chain(pending).filter(|made| made.number <= number).copied().collect()
        };
        for made in headers {
            let of_run = run.iter().find(|batch| batch.header.number == made.number);
            let ours: B256 = match of_run {
                Some(batch) => batch.header.hash(),
                None => self.hash_at(made.number).await?,
            };
            if ours != made.hash {
                return Ok(Some(made));
            }
        }
        Ok(None)
    }
}
