//! Posting what the sequencer keeps from L1.
//!
//! A certified header that does not reach L1 within `postingDeadline` gives way to one that L1 makes, and what its batch
//! said may be public by then. Whoever follows the chain and has an account posts such headers itself:
//! - SP-1: once a quarter of the deadline has passed since the origin of the first one. Members take turns during an eighth
//!   more, counted from when each first saw that header certified and not posted, if that is later: they do not all pay for
//!   the same run. Whoever posts one header now and then moves nobody's turn at the others.
//!   Where the end of its epoch is announced, once the last blocks before that have begun (rule E-11), and members take
//!   turns during a quarter of those.
//! - SP-2: headers come first. With its data a run goes in one transaction where that is all there is; of a longer queue as
//!   many headers go in each as a transaction holds, and what fills their batches keeps none of them from L1.
//! - SP-3: data of one's own postings follows, oldest first, where L1 still lacks it, up to 16 MiB a day. What is owed is on
//!   disk before the headers go out.
//! - SP-4: what L1's next blocks take no more is left, and nothing is posted by an answer that is older than one's own last
//!   transaction.
//! - SP-5: once an announced end of the next number's epoch is due L1 is made to make that header, by full nodes at once, by
//!   members one after another.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use blindfold_l1::{L1Error, L1Submitter, MAX_TRANSACTION_HEADERS, PostedHead};
use blindfold_runtime::{Instant, now};
use blindfold_store::StoreError;

use crate::{
    CertifiedHeaders, CertifiedRun, Closing, L1RoundError, RunLimits, Tracker, coded, next_headers, next_run,
};

/// Headers are posted once this part of `postingDeadline` has passed since their origin.
const OVERDUE_PART: u64 = 4;
/// Members take turns during this part of the deadline.
const TURNS_PART: u64 = 8;
/// Members take turns during this part of the last blocks before an epoch's announced end.
const CLOSING_TURNS_PART: u64 = 4;
/// A transaction is in a block some blocks after the newest.
const MARGIN_BLOCKS: u64 = 3;
/// Each member leaves those before it so many L1 blocks to have L1 make the last header of an epoch.
const ENDING_TURN_BLOCKS: u64 = 8;
/// What goes into one transaction together with its data.
const WITH_DATA: RunLimits = RunLimits { max_headers: 64, max_bytes: 100_000 };
/// The most bytes of batches whose data is posted in a day: who fills batches with garbage pays nothing for it.
const MAX_DATA_BYTES_PER_DAY: usize = 16 << 20;
/// L1 blocks that are told apart in which headers were seen to be missing: more than a deadline. What comes above them counts
/// as seen in the last.
const MAX_SEEN_BLOCKS: usize = 16_384;
const DAY: Duration = Duration::from_secs(86_400);
/// Where the numbers are stored whose data is owed: first u64 ‖ last u64 of each run.
const OWED_KEY: &str = "overdue.data";

/// What a look came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// First and last number of the headers that were posted.
    pub posted: Option<(u64, u64)>,
    /// Whether there is more to do at once.
    pub more: bool,
    /// The number that L1 was made to make the header of, the last one of its epoch.
    pub ended: Option<u64>,
}

/// Whose turn it is to post in the sequencer's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A full node posts as soon as anybody may.
    FullNode,
    /// Members post one after another.
    Member {
        /// The member's index, from 1.
        index: u16,
        /// How many the committee has.
        of: u16,
    },
}

impl Turn {
    /// The L1 block from which on a header with this origin is posted, where something certified was first seen to be
    /// missing on L1 in block `since`, and the end of its epoch may be announced (SP-1).
    pub fn begins(self, origin: u64, since: u64, posting_deadline: u32, closing: Option<Closing>) -> u64 {
        let deadline = u64::from(posting_deadline);
        let overdue = origin.saturating_add(deadline.div_ceil(OVERDUE_PART));
        let usual = self.after(overdue.max(since), deadline / TURNS_PART, origin.saturating_add(deadline));
        let Some(closing) = closing else { return usual };
        let (closed, until) = (closing.closed_from(), closing.until);
        let turns = until.saturating_sub(closed) / CLOSING_TURNS_PART;
        usual.min(self.after(closed.max(since), turns, until))
    }

    /// The turn after block `base`, where members take turns during so many blocks, and half of those left at most.
    fn after(self, base: u64, turns: u64, end: u64) -> u64 {
        match self {
            Self::FullNode => base,
            Self::Member { index, of } => {
                let turns = turns.min(end.saturating_sub(base) / 2);
                let of = of.max(1);
                base.saturating_add(turns.saturating_mul(index.min(of).into()) / u64::from(of))
            }
        }
    }

    /// The L1 block from which on L1 is made to make the last header of an epoch whose end is due after block `until`.
    pub fn ends(self, until: u64) -> u64 {
        let wait = match self {
            Self::FullNode => 1,
            Self::Member { index, .. } => ENDING_TURN_BLOCKS * u64::from(index),
        };
        until.saturating_add(wait)
    }
}

/// Since when certified headers have been missing on L1.
#[derive(Clone, Debug, Default)]
struct Missing {
    /// The L1 blocks in which headers were first seen to be missing, each with the last number seen then: both ascend.
    seen: VecDeque<(u64, u64)>,
}

impl Missing {
    /// The L1 block in which the header after L1's head was first seen to be missing. Whoever posts some headers does not
    /// change it for the others.
    fn since(&mut self, on_l1: u64, certified: u64, newest: u64) -> u64 {
        while self.seen.front().is_some_and(|(_, last)| *last <= on_l1) {
            self.seen.pop_front();
        }
        // A header of L1's may have ended what was certified.
        while self.seen.back().is_some_and(|(_, last)| *last > certified) {
            self.seen.pop_back();
        }
        let full = self.seen.len() >= MAX_SEEN_BLOCKS;
        match self.seen.back_mut() {
            Some((block, last)) if *block >= newest || full => *last = certified,
            Some((_, last)) if *last == certified => {}
            _ => self.seen.push_back((newest, certified)),
        }
        self.seen.front().map_or(newest, |(block, _)| *block)
    }
}

/// Bytes of batches whose data was posted in a day.
struct Spent {
    since: Instant,
    bytes: usize,
}

impl Spent {
    /// Whether so many bytes more are posted today: they are counted then.
    fn may_spend(&mut self, bytes: usize) -> bool {
        if self.since.elapsed() >= DAY {
            *self = Self { since: now(), bytes: 0 };
        }
        let sum = self.bytes.saturating_add(bytes);
        // The first of a day goes out however long it is.
        let allowed = self.bytes == 0 || sum <= MAX_DATA_BYTES_PER_DAY;
        if allowed {
            self.bytes = sum;
        }
        allowed
    }

    /// So many bytes did not get to L1 for this: unless they may be there, or were paid for, they are not counted.
    fn failed(&mut self, bytes: usize, fault: &L1Error) {
        if !fault.may_be_done() && !matches!(fault, L1Error::Failed { .. }) {
            self.bytes = self.bytes.saturating_sub(bytes);
        }
    }
}

/// Posts in the sequencer's place, and then the data of what it posted.
pub struct SubstitutePoster {
    l1: Arc<dyn L1Submitter>,
    tracker: Tracker,
    /// The newest L1 block with a transaction of ours.
    sent_at: u64,
    missing: Missing,
    spent: Spent,
}

impl SubstitutePoster {
    /// One that has not looked yet.
    pub fn new(l1: Arc<dyn L1Submitter>, tracker: Tracker) -> Self {
        let spent = Spent { since: now(), bytes: 0 };
        Self { l1, tracker, sent_at: 0, missing: Missing::default(), spent }
    }

    /// Posts the next certified headers that L1 lacks, if they wait for long; else a batch's data that is owed. `newest` is
    /// L1's newest block.
    ///
    /// # Errors
    /// [`L1RoundError`]. After an error of L1 the headers may be posted with or without their data.
    pub async fn look(&mut self, newest: u64, turn: Turn) -> Result<Look, L1RoundError> {
        let PostedHead { number, hash, block, .. } = self.l1.reader().posted_head().await?;
        if block < self.sent_at {
            // One of several servers lags behind.
            return Ok(Look::default());
        }
        let store = self.tracker.store();
        let ours = match number {
            0 => Some(self.tracker.config().deployment.genesis_hash()),
            number => store.batch(number).await?.map(|record| record.hash),
        };
        // Another head, or one that is not here yet, is for the tracker to take.
        if ours != Some(hash) {
            return Ok(Look::default());
        }
        let first = number.saturating_add(1);
        let closing = self.tracker.closing(first);
        if closing.is_some_and(|closing| newest >= turn.ends(closing.until))
            && let Some(head) = store.batch(number).await?
            && let Some(sent) = self.l1.end_at_head(&head.sealed.header).await?
        {
            self.sent_at = self.sent_at.max(sent.block);
            return Ok(Look { ended: Some(first), ..Look::default() });
        }
        let Some(run) = next_run(&self.tracker, first, WITH_DATA).await? else {
            return self.post_owed_data(number).await;
        };
        let since = self.missing.since(number, self.tracker.certified().number, newest);
        let deadline = self.tracker.config().timing.posting_deadline;
        let origin = run.batches.first().map_or(newest, |batch| batch.sealed.header.l1_origin_number);
        let end =
            closing.map_or(u64::MAX, |closing| closing.until).min(origin.saturating_add(deadline.into()));
        let too_late = newest.saturating_add(MARGIN_BLOCKS) > end;
        if newest < turn.begins(origin, since, deadline, closing) || too_late {
            return self.post_owed_data(number).await;
        }
        let queue = match run.more {
            true => next_headers(&self.tracker, first, MAX_TRANSACTION_HEADERS).await?,
            false => None,
        };
        let alone = queue.is_some();
        let last = match queue {
            Some(queue) => self.post_headers(first, queue).await?,
            None => self.post_run(first, run).await?,
        };
        Ok(Look { posted: Some((first, last)), more: alone, ended: None })
    }

    /// Posts a run with its data.
    async fn post_run(&mut self, first: u64, run: CertifiedRun) -> Result<u64, L1RoundError> {
        let last = run.certificate.number;
        self.owe((first, last)).await?;
        let block = self.l1.post(&run.batches, &run.certificate).await?.block;
        self.sent_at = self.sent_at.max(block);
        // What is owed of other headers still is.
        self.forget((first, last)).await?;
        Ok(last)
    }

    /// Posts headers of a longer queue without their data, which is owed then.
    async fn post_headers(&mut self, first: u64, queue: CertifiedHeaders) -> Result<u64, L1RoundError> {
        let last = queue.certificate.number;
        self.owe((first, last)).await?;
        let block = self.l1.post_headers(&queue.headers, &queue.certificate).await?.block;
        self.sent_at = self.sent_at.max(block);
        Ok(last)
    }

    /// Posts the data of the oldest batch that is owed, of those up to the posted head.
    async fn post_owed_data(&mut self, posted: u64) -> Result<Look, L1RoundError> {
        let owed = self.owed().await?;
        let Some(number) = owed.first().map(|(first, _)| *first).filter(|first| *first <= posted) else {
            return Ok(Look::default());
        };
        let record = match self.tracker.store().batch(number).await {
            // It is final, and its data is not here to be posted.
            Err(pruned) if pruned.is_pruned() => None,
            record => record?.filter(|record| !record.by_l1),
        };
        if let Some(record) = record {
            let batch = coded(record)?;
            if self.l1.lacks_data(&batch.sealed.header).await? {
                let bytes = batch.sealed.items.iter().map(Vec::len).sum();
                if !self.spent.may_spend(bytes) {
                    return Ok(Look::default());
                }
                let sent = self.l1.post_data(std::slice::from_ref(&batch)).await;
                let block = sent.inspect_err(|fault| self.spent.failed(bytes, fault))?.block;
                self.sent_at = self.sent_at.max(block);
                tracing::warn!(number, "posted the data of a header that the sequencer kept from L1");
            }
        }
        self.settle(number).await?;
        Ok(Look { more: true, ..Look::default() })
    }

    async fn owed(&self) -> Result<Vec<(u64, u64)>, StoreError> {
        let stored = self.tracker.store().meta(OWED_KEY).await?.unwrap_or_default();
        let (numbers, _) = stored.as_chunks::<8>();
        let (runs, _) = numbers.as_chunks::<2>();
        Ok(runs.iter().map(|[first, last]| (u64::from_be_bytes(*first), u64::from_be_bytes(*last))).collect())
    }

    async fn keep_owed(&self, owed: &[(u64, u64)]) -> Result<(), StoreError> {
        let bytes: Vec<u8> = owed
            .iter()
            .flat_map(|(first, last)| [first.to_be_bytes(), last.to_be_bytes()].concat())
            .collect();
        self.tracker.store().put_meta(OWED_KEY, &bytes).await
    }

    /// The data of this run is owed from now on.
    async fn owe(&self, run: (u64, u64)) -> Result<(), StoreError> {
        let mut owed = without(&self.owed().await?, run);
        owed.push(run);
        owed.sort_unstable();
        self.keep_owed(&owed).await
    }

    /// Nothing of this run is owed any more.
    async fn forget(&self, run: (u64, u64)) -> Result<(), StoreError> {
        let owed = without(&self.owed().await?, run);
        self.keep_owed(&owed).await
    }

    /// Nothing up to this number is owed any more.
    async fn settle(&self, through: u64) -> Result<(), StoreError> {
        let mut owed = self.owed().await?;
        owed.retain(|(_, last)| *last > through);
        for (first, _) in &mut owed {
            *first = (*first).max(through.saturating_add(1));
        }
        self.keep_owed(&owed).await
    }
}

/// What is owed of other numbers than those of this run. A head of L1 that a server told late may have led to a run in the
/// middle of what was posted already.
fn without(owed: &[(u64, u64)], (first, last): (u64, u64)) -> Vec<(u64, u64)> {
    let parts = |&(from, to): &(u64, u64)| {
        [(from, to.min(first.saturating_sub(1))), (from.max(last.saturating_add(1)), to)]
    };
    owed.iter().flat_map(parts).filter(|(from, to)| from <= to).collect()
}

#[cfg(test)]
mod tests {
    use blindfold_l1::AnnouncedEnd;
    use blindfold_protocol::B256;

    use super::*;

    /// SP-3: what L1 did not take is no part of what a day may cost.
    #[test]
    fn what_was_not_posted_counts_for_nothing() {
        const PIECE: usize = MAX_DATA_BYTES_PER_DAY / 2;
        let mut spent = Spent { since: now(), bytes: 0 };
        let too_dear = L1Error::FeeAboveLimit { call: "postData", wei: 2, limit_wei: 1 };
        for _ in 0..9 {
            assert!(spent.may_spend(PIECE));
            spent.failed(PIECE, &too_dear);
        }
        let unconfirmed = L1Error::Unconfirmed { call: "postData", transaction: B256::ZERO, waited_ms: 1 };
        assert!(spent.may_spend(PIECE));
        spent.failed(PIECE, &unconfirmed);
        assert!(spent.may_spend(PIECE) && !spent.may_spend(1), "it may be there");
    }

    #[test]
    fn each_header_is_missing_since_it_was_first_seen_so() {
        let mut missing = Missing::default();
        assert_eq!(
            (missing.since(0, 1, 10), missing.since(0, 60, 10), missing.since(0, 61, 12)),
            (10, 10, 10)
        );
        // One header now and then.
        assert_eq!((missing.since(1, 61, 400), missing.since(59, 900, 410)), (10, 10));
        assert_eq!((missing.since(60, 900, 500), missing.since(61, 900, 500)), (12, 410));
        // Everything was posted meanwhile.
        assert_eq!(missing.since(900, 901, 600), 600);
        // L1's header ended what was certified above it.
        assert_eq!((missing.since(900, 990, 700), missing.since(950, 960, 800)), (600, 800));
        for block in 801..20_000 {
            assert_eq!(missing.since(950, 160 + block, block), 800);
        }
        assert_eq!(missing.seen.len(), MAX_SEEN_BLOCKS);
    }

    #[test]
    fn what_is_owed_of_other_runs_still_is() {
        let owed = [(3, 9), (20, 244), (300, 300)];
        assert_eq!(without(&owed, (10, 19)), owed);
        assert_eq!(without(&owed, (20, 244)), [(3, 9), (300, 300)]);
        assert_eq!(without(&owed, (1, 4)), [(5, 9), (20, 244), (300, 300)]);
        assert_eq!(without(&owed, (8, 30)), [(3, 7), (31, 244), (300, 300)]);
        assert_eq!(without(&owed, (100, 110)), [(3, 9), (20, 99), (111, 244), (300, 300)]);
        assert_eq!(without(&owed, (1, 400)), []);
    }

    #[test]
    fn a_full_node_posts_first_and_every_member_before_the_deadline() {
        for deadline in [1, 7, 20, 14_400, u32::MAX] {
            let (origin, end) = (100, 100 + u64::from(deadline));
            for since in [0, 100, 100 + u64::from(deadline) * 3 / 8, end - 1] {
                let turn = |index, of| Turn::Member { index, of }.begins(origin, since, deadline, None);
                let turns: Vec<u64> = (1..=64).map(|index| turn(index, 64)).collect();
                let first = Turn::FullNode.begins(origin, since, deadline, None);
                assert!(turns.is_sorted() && turns[0] >= first && turns[63] <= end, "{deadline} {since}");
            }
        }
        let turns =
            |since| [1, 2, 3, 4].map(|index| Turn::Member { index, of: 4 }.begins(0, since, 14_400, None));
        assert_eq!(turns(0), [4_050, 4_500, 4_950, 5_400]);
        // Seen late, they are still one after another.
        assert_eq!(turns(9_000), [9_450, 9_900, 10_350, 10_800]);
        assert_eq!(turns(14_000), [14_050, 14_100, 14_150, 14_200]);
        // Not what the registry could say.
        assert_eq!(Turn::Member { index: 9, of: 0 }.begins(0, 0, 14_400, None), 5_400);
    }

    #[test]
    fn everybody_posts_in_time_before_an_announced_end() {
        let end = AnnouncedEnd { epoch: 1, announced_at: 0, until: 50_400, for_silence: false };
        let closing = Closing::of(&end, 14_400);
        let begins = |turn: Turn, origin, since| {
            turn.begins(origin, since, 14_400, Some(closing)) - closing.closed_from()
        };
        let turns =
            |origin, since| [1, 2, 3, 4].map(|index| begins(Turn::Member { index, of: 4 }, origin, since));
        let (closed, until) = (closing.closed_from(), closing.until);
        assert_eq!(begins(Turn::FullNode, closed - 1, closed - 1), 0, "however young it is");
        assert_eq!(turns(closed - 1, closed - 1), [112, 225, 337, 450]);
        assert!(closed + 450 < closing.settled_from(), "as long as it is still opened");
        // Seen late, they are still one after another.
        assert_eq!(turns(closed - 1, until - 80), [1_730, 1_740, 1_750, 1_760]);
        // What was overdue long before is posted by its age.
        let member = |closing| Turn::Member { index: 4, of: 4 }.begins(30_000, 30_010, 14_400, closing);
        assert_eq!((member(None), member(Some(closing))), (35_400, 35_400));
        // Full nodes first.
        let ends = [1, 2, 4].map(|index| Turn::Member { index, of: 4 }.ends(until) - until);
        assert_eq!((Turn::FullNode.ends(until) - until, ends), (1, [8, 16, 32]));
    }
}
