//! Following the chain from L1 alone: the sequencer need not be there, nor ever have been.
//!
//! Runs of headers come with their data from the inbox, and every header is checked as completely as one from the feed.
//! Headers that L1 made come from the same events. Hints come from the hint registry and are verified like any others:
//! a posting that does not stand is passed over, whether or not somebody challenged it, and the next one for the run is
//! tried. A batch of which no true hints were posted waits, until members open it here (where some are configured) or
//! L1 declares its run void. How far L1 was read is durable, so that a restart goes on there.

mod cursor;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use blindfold_chain::{
    Applied, HintsIntakeError, L1Error, L1Reader, NextLook, NextStep, TrackerError, accepted, announce,
    made_by_l1,
};
use blindfold_l1::{DataError, PostedHints, Posting, UNREAD_PATIENCE_BLOCKS};
use blindfold_protocol::{BatchHeader, Certificate, SealedBatch};
use blindfold_runtime::until;
use blindfold_store::StoreError;
use tokio::sync::watch;

use crate::limits::L1_STEP_BLOCKS;
use crate::members::Member;
use crate::node::Node;
use cursor::Cursor;

/// Why reading L1 does not go on.
#[derive(Debug, thiserror::Error)]
enum Obstacle {
    #[error(transparent)]
    L1(#[from] L1Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "the data of batches {first} to {last} is missing ({fault}): whoever has them, the sequencer, a member or a \
         node, can post it again with postData of BlindedInbox"
    )]
    Missing { first: u64, last: u64, fault: DataError },
    #[error("batches {first} to {last}, posted to L1, are refused here: {refusal}")]
    Refused { first: u64, last: u64, refusal: TrackerError },
    #[error(
        "L1 has header {posted} for number {number}, and {ours} is certified here: begin with an empty data_dir"
    )]
    OtherChain { number: u64, posted: B256, ours: B256 },
    #[error("hints of batch {number}: {refusal}")]
    Hints { number: u64, refusal: HintsIntakeError },
}

pub(crate) struct FromL1 {
    node: Arc<Node>,
    l1: Arc<dyn L1Reader>,
    cursor: Cursor,
    interval: Duration,
    /// The last run of which L1 lacked data.
    incomplete: Option<Incomplete>,
    /// Hints that only a beacon node gives, for batches that have none: first in L1's order. A later start reads them again.
    unread: VecDeque<Unread>,
    /// What is on disk of the cursor.
    saved: Cursor,
    /// What keeps the node from being caught up with L1; `None` when nothing does.
    standing: watch::Sender<Option<String>>,
}

/// A run of which L1 lacked data when it was last read.
struct Incomplete {
    /// Number of its first header.
    first: u64,
    /// Batches that were found in data that was posted again.
    again: Vec<SealedBatch>,
    /// When L1 is read for its data again.
    look: NextLook,
    /// Why the last look failed.
    failed: Option<L1Error>,
    /// Why something that may be the data could not be read at the last look.
    unread: Option<DataError>,
}

impl Incomplete {
    fn new(first: u64) -> Self {
        Self { first, again: Vec::new(), look: NextLook::default(), failed: None, unread: None }
    }
}

/// Posted hints that could not be read here.
#[derive(PartialEq, Eq)]
struct Unread {
    l1_block: u64,
    first: u64,
    last: u64,
}

/// Unread hints that are remembered at most.
const MAX_UNREAD: usize = 65_536;

/// What the standing says before L1 was read to its end once.
const READING: &str = "reading what was posted to L1";

impl FromL1 {
    /// A reader that goes on where the disk says, or begins after the chain's first L1 origin.
    pub(crate) async fn open(
        node: Arc<Node>,
        l1: Arc<dyn L1Reader>,
        interval_ms: u64,
    ) -> Result<Self, StoreError> {
        let genesis = node.tracker.config().genesis_l1_origin;
        let cursor = Cursor::load(node.tracker.store().as_ref(), genesis).await?;
        let standing = watch::Sender::new(Some(READING.to_owned()));
        Ok(Self {
            node,
            l1,
            cursor,
            interval: Duration::from_millis(interval_ms),
            incomplete: None,
            unread: VecDeque::new(),
            saved: cursor,
            standing,
        })
    }

    pub(crate) fn standing(&self) -> watch::Receiver<Option<String>> {
        self.standing.subscribe()
    }

    /// Reads until told to stop.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        self.node.counters.source_l1.set(1u64);
        loop {
            // What a round has begun on disk ends by itself.
            let more = tokio::select! {
                () = until(&mut stop) => return,
                more = self.round() => more,
            };
            if more {
                continue;
            }
            tokio::select! {
                () = until(&mut stop) => return,
                () = tokio::time::sleep(self.interval) => {}
            }
        }
    }

    /// Takes what the next blocks hold. Whether there is more to read at once.
    async fn round(&mut self) -> bool {
        let outcome = self.step().await;
        self.node.counters.from_l1_block.set(self.cursor.runs);
        self.node.counters.from_l1_hints_block.set(self.cursor.hints);
        let (standing, more) = match outcome {
            Ok(true) => (Some(READING.to_owned()), true),
            Ok(false) => (None, false),
            Err(obstacle) => (Some(obstacle.to_string()), false),
        };
        let news = self.standing.send_if_modified(|before| {
            let changed = *before != standing;
            before.clone_from(&standing);
            changed
        });
        match standing {
            Some(reason) if news && !more => tracing::warn!(reason, "following from L1 waits"),
            None if news => tracing::info!(l1_block = self.cursor.runs, "caught up with L1"),
            _ => {}
        }
        more
    }

    async fn step(&mut self) -> Result<bool, Obstacle> {
        let finalized = self.l1.finalized().await?.number;
        // A run whose data is missing does not hold up the hints of those before it.
        let runs = self.take_runs(finalized).await;
        let hints = self.take_hints(finalized).await;
        Ok(runs? | hints?)
    }

    async fn take_runs(&mut self, finalized: u64) -> Result<bool, Obstacle> {
        let after = self.cursor.runs;
        let through = finalized.min(after.saturating_add(L1_STEP_BLOCKS));
        if through <= after {
            return Ok(false);
        }
        for posting in self.l1.postings(after, through).await? {
            if let Err(obstacle) = self.take_posting(&posting, finalized).await {
                self.set_cursor(|cursor| cursor.runs = after.max(posting.l1_block.saturating_sub(1))).await?;
                return Err(obstacle);
            }
        }
        self.set_cursor(|cursor| cursor.runs = through).await?;
        Ok(through < finalized)
    }

    async fn set_cursor(&mut self, change: impl FnOnce(&mut Cursor)) -> Result<(), StoreError> {
        change(&mut self.cursor);
        let mut next = self.cursor;
        if let Some(unread) = self.unread.front() {
            next.hints = next.hints.min(unread.l1_block.saturating_sub(1));
        }
        if next != self.saved {
            next.save(self.node.tracker.store().as_ref()).await?;
            self.saved = next;
        }
        Ok(())
    }

    async fn take_posting(&mut self, posting: &Posting, finalized: u64) -> Result<(), Obstacle> {
        let Some(posted) = posting.headers.last().map(|header| header.hash()) else { return Ok(()) };
        let (_, number) = posting.numbers();
        if number <= self.node.tracker.certified().number {
            let ours = self.node.tracker.store().header_hash(number).await?.unwrap_or_default();
            // The last one stands for all before it.
            return if ours == posted { Ok(()) } else { Err(Obstacle::OtherChain { number, posted, ours }) };
        }
        match posting.certificate {
            None => self.take_made(posting).await,
            Some(certificate) => self.take_run(posting, &certificate, finalized).await,
        }
    }

    /// A header that L1 made.
    async fn take_made(&self, posting: &Posting) -> Result<(), Obstacle> {
        let (first, last) = posting.numbers();
        let made = made_by_l1(posting).map_err(|fault| Obstacle::Missing { first, last, fault })?;
        if let Some(made) = made {
            let taken = self.node.tracker.accept_l1_header(&made).await;
            let applied = taken.map_err(|refusal| Obstacle::Refused { first, last, refusal })?;
            self.tell(&made.batch(), &applied);
        }
        Ok(())
    }

    /// A certified run, with the data that L1 has of it, and members for the rest.
    async fn take_run(
        &mut self,
        posting: &Posting,
        certificate: &Certificate,
        finalized: u64,
    ) -> Result<(), Obstacle> {
        let (first, last) = posting.numbers();
        let mut refused = None;
        let on_l1 = self.on_l1(posting, finalized).await;
        let lacking = on_l1.iter().filter(|batch| batch.is_none()).count();
        if let Some(batches) = on_l1.iter().cloned().collect::<Option<Vec<SealedBatch>>>() {
            if self.try_run(posting, &batches, certificate, &mut refused).await? {
                self.incomplete = None;
                return Ok(());
            }
        } else {
            // A member may give other items than the header's: the next round takes what it can from another one.
            for preferred in 0..self.node.members.len() {
                let Some(batches) = self.ask_members(posting, &on_l1, preferred).await else { break };
                if self.try_run(posting, &batches, certificate, &mut refused).await? {
                    self.node.counters.batches_from_members.add(lacking as u64);
                    self.incomplete = None;
                    return Ok(());
                }
            }
        }
        let known = self.incomplete.as_ref();
        if let Some(refusal) = refused {
            return Err(Obstacle::Refused { first, last, refusal });
        }
        if let Some(fault) = known.and_then(|known| known.failed.clone()) {
            return Err(fault.into());
        }
        let unread = known.and_then(|known| known.unread.clone());
        let fault = unread.or_else(|| posting.data.fault.clone()).unwrap_or(DataError::Absent);
        Err(Obstacle::Missing { first, last, fault })
    }

    /// For each header of a certified run its batch, where L1 has it: beside the header, or posted again. Without the
    /// sequencer's signature it is none; of a certified header nobody can say that L1 made it.
    async fn on_l1(&mut self, posting: &Posting, finalized: u64) -> Vec<Option<SealedBatch>> {
        let tracker = &self.node.tracker;
        let signed = |batch: &SealedBatch| tracker.is_signed(batch);
        let mut batches: Vec<Option<SealedBatch>> =
            posting.data.batches.iter().map(|batch| batch.clone().filter(signed)).collect();
        let (first, _) = posting.numbers();
        let known = self.incomplete.take().filter(|known| known.first == first);
        let mut known = known.unwrap_or_else(|| Incomplete::new(first));
        let places = posting.headers.iter().zip(&batches).filter(|(_, batch)| batch.is_none());
        let is_known = |header: &BatchHeader| known.again.iter().any(|batch| batch.header == *header);
        let lacking: Vec<BatchHeader> =
            places.map(|(header, _)| *header).filter(|header| !is_known(header)).collect();
        if !lacking.is_empty() && known.look.is_due(finalized) {
            let since = posting.l1_block.saturating_sub(1);
            (known.failed, known.unread) = (None, None);
            match self.l1.reposted_data(&lacking, since, finalized).await {
                Ok(again) => {
                    known.again.extend(again.batches.into_iter().filter(signed));
                    known.unread = again.unread;
                }
                Err(fault) => known.failed = Some(fault),
            }
            if known.failed.is_some() || known.unread.is_some() {
                known.look.after_failure();
            } else {
                known.look.after_absence(posting.l1_block, finalized);
            }
        }
        for (header, place) in posting.headers.iter().zip(&mut batches) {
            let again = || known.again.iter().find(|batch| batch.header == *header).cloned();
            *place = place.take().or_else(again);
        }
        self.incomplete = Some(known);
        batches
    }

    /// Whether these batches stand. What members give may be wrong, so what is refused says nothing of other data.
    async fn try_run(
        &self,
        posting: &Posting,
        batches: &[SealedBatch],
        certificate: &Certificate,
        refused: &mut Option<TrackerError>,
    ) -> Result<bool, Obstacle> {
        let (first, last) = posting.numbers();
        let run: Vec<Arc<SealedBatch>> = batches.iter().cloned().map(Arc::new).collect();
        match self.node.tracker.accept_certified_run(&run, certificate).await {
            Ok((applied, outcome)) => {
                for (sealed, applied) in run.iter().zip(&applied) {
                    self.tell(sealed, applied);
                }
                self.node.certificate_taken(certificate, outcome);
                self.node.counters.from_l1_runs.increment();
                Ok(true)
            }
            Err(refusal) if refusal.next_step() == NextStep::Reject => {
                self.node.header_refused(first, &refusal);
                *refused = Some(refusal);
                Ok(false)
            }
            Err(refusal) => Err(Obstacle::Refused { first, last, refusal }),
        }
    }

    /// The batches of a run, those that L1 lacks as members have them, the one at this place asked first; `None` where
    /// one is nowhere.
    async fn ask_members(
        &self,
        posting: &Posting,
        on_l1: &[Option<SealedBatch>],
        preferred: usize,
    ) -> Option<Vec<SealedBatch>> {
        let members = &self.node.members;
        let mut order: VecDeque<&Member> =
            members.iter().chain(members.iter()).skip(preferred).take(members.len()).collect();
        let mut batches = Vec::with_capacity(posting.headers.len());
        for (header, there) in posting.headers.iter().zip(on_l1) {
            let mut found = there.clone();
            for _ in 0..order.len() {
                let Some(member) = order.front().copied().filter(|_| found.is_none()) else { break };
                let given = member.held(header.number).await.ok().flatten().map(|held| held.sealed);
                found = given.filter(|batch| batch.header == *header && self.node.tracker.is_signed(batch));
                if found.is_none() {
                    // Asked last for the next header: one that is slow costs a time-out for a run, not for each header.
                    order.rotate_left(1);
                }
            }
            batches.push(found?);
        }
        Some(batches)
    }

    async fn take_hints(&mut self, finalized: u64) -> Result<bool, Obstacle> {
        let after = self.cursor.hints;
        let through = finalized.min(after.saturating_add(L1_STEP_BLOCKS));
        if through <= after {
            return Ok(false);
        }
        for posted in self.l1.posted_hints(after, through).await? {
            let taken = if posted.last > self.node.tracker.certified().number {
                // Its run has to come first.
                Ok(false)
            } else {
                self.take_hint_posting(&posted, finalized).await.map(|()| true)
            };
            if !matches!(taken, Ok(true)) {
                self.set_cursor(|cursor| cursor.hints = after.max(posted.l1_block.saturating_sub(1))).await?;
                return taken;
            }
        }
        self.forget_read().await?;
        self.set_cursor(|cursor| cursor.hints = through).await?;
        Ok(through < finalized)
    }

    /// Forgets unread hints whose batches got theirs elsewhere.
    async fn forget_read(&mut self) -> Result<(), StoreError> {
        while let Some(Unread { first, last, .. }) = self.unread.front() {
            if !self.without_hints(*first, *last).await?.is_empty() {
                break;
            }
            self.unread.pop_front();
        }
        Ok(())
    }

    /// Those of these batches that need hints and have none.
    async fn without_hints(&self, first: u64, last: u64) -> Result<Vec<(u64, B256)>, StoreError> {
        let mut lacking = Vec::new();
        for number in first..=last {
            let record = match self.node.tracker.store().batch(number).await {
                // It is executed.
                Err(pruned) if pruned.is_pruned() => continue,
                record => record?,
            };
            let record = record.filter(|record| record.hints.is_none() && accepted(record) > 0);
            lacking.extend(record.map(|record| (number, record.hash)));
        }
        Ok(lacking)
    }

    /// What stands of a posting; the rest is passed over. So are hints in blobs that cannot be had here: others may be
    /// posted for the run, or members open its batches here.
    async fn take_hint_posting(&mut self, posted: &PostedHints, finalized: u64) -> Result<(), Obstacle> {
        let (first, last) = (posted.first, posted.last);
        let lacking = self.without_hints(first, last).await?;
        if lacking.is_empty() {
            return Ok(());
        }
        let mut wrong = false;
        let hints = match &posted.hints {
            Ok(hints) => hints,
            Err(fault) => {
                // It may answer soon; meanwhile members open the batches here, and then nothing is lacking. But it has no
                // longer than for data: the same hints may stand behind these, where it is not needed.
                let age = finalized.saturating_sub(posted.l1_block);
                if let DataError::Beacon(error) = fault
                    && age < UNREAD_PATIENCE_BLOCKS
                {
                    return Err(error.clone().into());
                }
                let unread = Unread { l1_block: posted.l1_block, first, last };
                let in_blobs =
                    matches!(fault, DataError::NoBeacon | DataError::Beacon(_) | DataError::Pruned(_));
                if !in_blobs {
                    tracing::warn!(id = posted.id, first, last, %fault,
                        "hints posted to L1 cannot be read: passing them over");
                } else if self.unread.len() < MAX_UNREAD && !self.unread.contains(&unread) {
                    tracing::warn!(
                        id = posted.id,
                        first,
                        last,
                        %fault,
                        "hints posted to L1 are in blobs that cannot be had: passing them over; a later start with an \
                         l1.beacon_url that has them reads them"
                    );
                    self.unread.push_back(unread);
                }
                return Ok(());
            }
        };
        for (number, hash) in lacking {
            let batch = hints.batch(posted.first, number);
            let Some(Ok(hints)) = batch.map(|batch| batch.to_hints(number, hash)) else {
                self.node.counters.bad_hints_rejected.add("undecodable");
                wrong = true;
                continue;
            };
            match self.node.take_hints(hints).await {
                Ok(()) => {}
                Err(HintsIntakeError::Wrong { .. }) => wrong = true,
                Err(refusal) => return Err(Obstacle::Hints { number, refusal }),
            }
        }
        if wrong {
            self.node.counters.from_l1_wrong_postings.increment();
            tracing::warn!(id = posted.id, first = posted.first, last = posted.last, publisher = %posted.publisher,
                "hints posted to L1 do not stand: passing them over");
        }
        Ok(())
    }

    fn tell(&self, sealed: &SealedBatch, applied: &Applied) {
        if applied.is_new() {
            self.node.counters.headers_verified.increment();
            self.node.hub.publish(&announce::header(sealed, applied.hash, &applied.verdicts));
        }
    }
}
