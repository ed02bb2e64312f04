//! Supplies the data of posted headers that L1 lacks.
//!
//! Anybody may post certified headers, and need not post their data with them. So data of every posted header is supplied
//! that L1 lacks, whoever posted the header: nodes that have L1 alone could not go on otherwise. A task of its own looks for
//! it, so that no failure of that holds up the headers that come next.
//!
//! L1 may take a block with data back while the headers stay, so only final blocks say that data is there, for what was
//! posted here as for anything else (PD-5). What was sent and is not final yet is remembered; after a restart it is found
//! in L1's newest blocks.
//!
//! Data waits for hints on L1, with which it is posted as what it was opened to ([`crate::opened`]), and for members to read
//! it as that ([`crate::attestations`]), for as long as the settings say. A committee or a hint publisher that is silent makes
//! it dearer, and never absent.

use std::{collections::VecDeque, sync::Arc};

use blindfold_chain::keyed;
use blindfold_l1::{CodedBatch, DataStanding, L1Error, L1Submitter, Sent};
use blindfold_protocol::Canonical;
use blindfold_store::{Store, StoreError, What};
use tokio::sync::Mutex;

use crate::{
    attestations::{Readers, Word},
    context::Context,
    opened::{OpenedBy, Opens},
    poster::{L1RoundError, batch_of, check_posted, repeat, under_way},
};

/// Where the number is stored up to which final blocks have the data of all posted headers, u64.
const SUPPLIED_KEY: &str = "final_data";
/// Steps that wait for their data to be final at most: each is of some dozens of L1 blocks.
const MAX_OPEN_STEPS: usize = 64;

/// First and last number of consecutive batches.
type Span = (u64, u64);

/// What was looked at since the start and is not settled.
#[derive(Default)]
struct Supply {
    /// In order, each beginning where the one before ends.
    steps: VecDeque<Step>,
    /// The number and the L1 block after which the next look begins.
    next: Option<(u64, u64)>,
    /// The final block with which nothing was left to look at.
    looked: Option<u64>,
    /// Hints on L1 that open what is lacking.
    opened_by: OpenedBy,
}

/// Headers that were looked at together.
struct Step {
    /// The number and the L1 block that they come after.
    after: (u64, u64),
    /// The last number that it covers.
    through: u64,
    /// The L1 block by which all of it was posted.
    posted_by: u64,
    /// Data that is to be posted.
    lacking: Vec<Span>,
    /// Numbers of which the committee reads no data: theirs waits for nobody.
    never_read: Vec<Span>,
    /// Data that was posted.
    sent: Vec<Piece>,
    /// The final block from which on L1 is asked again; `None` once it has said that all is there.
    ask_at: Option<u64>,
}

/// Data that was posted, and is not seen to be there yet.
#[derive(Clone, Copy)]
struct Piece {
    numbers: Span,
    /// The L1 block with it.
    block: u64,
    /// The hints that open it, if it is not as it is.
    hints: Option<u64>,
}

impl Step {
    /// One of which L1 has said nothing yet.
    fn new(after: (u64, u64), through: u64, posted_by: u64) -> Self {
        let (lacking, never_read, sent) = (Vec::new(), Vec::new(), Vec::new());
        Self { after, through, posted_by, lacking, never_read, sent, ask_at: None }
    }

    /// What is lacking and may wait for hints, and for members to read it.
    fn openable(&self) -> Vec<Span> {
        self.never_read.iter().fold(self.lacking.clone(), |rest, span| without(&rest, *span))
    }

    /// What is lacking and is posted as it is, the wait being over or not.
    fn due(&self, is_over: bool) -> Vec<Span> {
        let waits = if is_over { Vec::new() } else { self.openable() };
        waits.iter().fold(self.lacking.clone(), |rest, span| without(&rest, *span))
    }

    /// Takes L1's word as of this final block. Gives the hints by which data was opened that L1's word does not count.
    fn judge(&mut self, standing: &DataStanding, finalized: u64) -> Vec<u64> {
        let through = self.through;
        let lacking = standing.lacking.iter().filter(|(first, _)| *first <= through);
        self.lacking = lacking.map(|(first, last)| (*first, through.min(*last))).collect();
        let lacks = |(first, last): Span| self.lacking.iter().any(|(from, to)| first <= *to && *from <= last);
        let (done, sent): (Vec<Piece>, Vec<Piece>) =
            self.sent.iter().copied().partition(|piece| piece.block <= finalized);
        let vain = done.iter().filter(|piece| lacks(piece.numbers)).filter_map(|piece| piece.hints).collect();
        self.sent = sent;
        for piece in &self.sent {
            self.lacking = without(&self.lacking, piece.numbers);
        }
        let next = finalized.saturating_add(1);
        let unread = (standing.through < through).then_some(next);
        let sent = self.sent.iter().map(|piece| piece.block).max();
        let lacking = (!self.lacking.is_empty()).then_some(next);
        self.ask_at = [standing.awaited, unread, sent, lacking].into_iter().flatten().max();
        vain
    }

    /// The data of a run that is being posted follows its headers: what came of it L1 says with the next final block.
    fn leave_out(&mut self, run: Span, finalized: u64) {
        let rest = without(&self.lacking, run);
        if rest != self.lacking {
            self.lacking = rest;
            self.ask_at = self.ask_at.max(Some(finalized.saturating_add(1)));
        }
    }

    /// A piece of what is lacking was posted.
    fn posted(&mut self, numbers: Span, hints: Option<u64>, receipt: Sent) {
        self.lacking = without(&self.lacking, numbers);
        self.sent.push(Piece { numbers, block: receipt.block, hints });
        self.ask_at = self.ask_at.max(Some(receipt.block));
    }
}

/// Whether other steps go on after a failure: what the contract refuses of one does not keep them waiting.
fn is_of_one_step(error: &L1RoundError) -> bool {
    matches!(error, L1RoundError::L1(fault) if !fault.is_transient())
}

/// These spans without the numbers of that one.
fn without(spans: &[Span], (first, last): Span) -> Vec<Span> {
    let rest = |&(from, to): &Span| {
        let before = (first > from).then(|| (from, to.min(first.saturating_sub(1))));
        let after = (last < to).then(|| (from.max(last.saturating_add(1)), to));
        before.into_iter().chain(after)
    };
    spans.iter().flat_map(rest).collect()
}

/// Data above this number is looked for again.
pub(crate) async fn forget_supplied_above(store: &dyn Store, number: u64) -> Result<(), StoreError> {
    let stored = store.meta(SUPPLIED_KEY).await?;
    let supplied = stored.and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
    match supplied.filter(|supplied| *supplied > number) {
        Some(_) => store.put_meta(SUPPLIED_KEY, &number.to_be_bytes()).await,
        None => Ok(()),
    }
}

/// Supplies data that L1 lacks.
pub(crate) struct Supplier {
    cx: Arc<Context>,
    l1: Arc<dyn L1Submitter>,
    readers: Readers,
    supply: Mutex<Supply>,
}

impl Supplier {
    pub(crate) fn new(cx: Arc<Context>, l1: Arc<dyn L1Submitter>, readers: Readers) -> Self {
        Self { cx, l1, readers, supply: Mutex::new(Supply::default()) }
    }

    /// Supplies until the sequencer stops.
    pub(crate) async fn run(self) {
        repeat(&self.cx, "supplying data to L1 waits and tries again", || self.supply_once()).await;
    }

    /// One round: posts what is lacking, asks again about what is final now, and looks at the next headers. True when there
    /// may be more.
    async fn supply_once(&self) -> Result<bool, L1RoundError> {
        let mut supply = self.supply.lock().await;
        let posted = self.l1.reader().posted_head().await?;
        check_posted(&self.cx, posted).await?;
        let under_way = under_way(self.cx.store.as_ref(), posted.number).await?;
        let finalized = self.l1.reader().finalized().await?.number;
        let mut first_error = None;
        let Supply { steps, opened_by, .. } = &mut *supply;
        self.look_for_hints(steps, opened_by, finalized).await?;
        let (mut looked, mut openings) = (Vec::new(), Vec::new());
        for (index, step) in steps.iter_mut().enumerate() {
            match self.look_again(step, opened_by, (finalized, under_way)).await {
                Ok(opens) => {
                    looked.push(index);
                    openings.extend(opens.into_iter().map(|opens| (index, opens)));
                }
                Err(error) if is_of_one_step(&error) => first_error = first_error.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        // What members were asked about in vain comes after all else, the longest ago first.
        openings.sort_by_key(|(_, opens)| opened_by.ask_again_at(opens.hints.id));
        for (index, opens) in openings {
            let Some(step) = steps.get_mut(index) else { continue };
            match self.open_parts(step, opens, opened_by).await {
                Ok(true) => {}
                // One vain question is enough for a round: what is posted as it is waits for no more.
                Ok(false) => break,
                Err(error) => {
                    let goes_on = is_of_one_step(&error);
                    first_error = first_error.or(Some(error));
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        for index in looked {
            let Some(step) = steps.get_mut(index) else { continue };
            match self.supply_as_it_is(step, finalized).await {
                Ok(()) => {}
                Err(error) if is_of_one_step(&error) => first_error = first_error.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        let more = self.look_on(&mut supply, (finalized, posted.number, under_way)).await?;
        while supply.steps.front().is_some_and(|step| step.ask_at.is_none())
            && let Some(step) = supply.steps.pop_front()
        {
            self.set_supplied(step.through).await?;
        }
        first_error.map_or(Ok(more), Err)
    }

    /// Looks at the next headers that are final. True when there were any.
    async fn look_on(
        &self,
        supply: &mut Supply,
        (finalized, posted, under_way): (u64, u64, Option<Span>),
    ) -> Result<bool, L1RoundError> {
        if supply.steps.len() >= MAX_OPEN_STEPS || supply.looked == Some(finalized) {
            return Ok(false);
        }
        let after = match supply.next {
            Some(next) => next,
            None => {
                let supplied = self.supplied().await?;
                // A header is posted after its origin.
                let Some(next) = self.cx.store.batch(supplied + 1).await? else { return Ok(false) };
                (supplied, next.sealed.header.l1_origin_number)
            }
        };
        let standing = self.l1.data_standing(after.0, after.1).await?;
        let through = standing.through;
        if through <= after.0 {
            supply.looked = Some(finalized);
            return Ok(false);
        }
        if through > posted {
            // L1 went on since it was asked what is under way, or its server lags behind.
            return Ok(false);
        }
        if self.wait_blocks() == 0 {
            for (first, last) in &standing.lacking {
                tracing::warn!(first, last, "these headers were posted without their data: supplying it");
            }
        }
        let posted_by = standing.block;
        let mut step = Step::new(after, through, posted_by);
        step.judge(&standing, finalized);
        if let Some(run) = under_way {
            step.leave_out(run, finalized);
        }
        supply.steps.push_back(step);
        supply.next = Some((through, standing.block));
        Ok(true)
    }

    fn wait_blocks(&self) -> u64 {
        self.cx.config.posting.opened_wait_blocks
    }

    /// Reads which hints were posted, if any data waits for them.
    async fn look_for_hints(
        &self,
        steps: &VecDeque<Step>,
        opened_by: &mut OpenedBy,
        finalized: u64,
    ) -> Result<(), L1RoundError> {
        // Also what is sent may turn out to be lacking again.
        let Some(first) = steps.front().filter(|_| self.wait_blocks() > 0) else { return Ok(()) };
        opened_by.read(self.l1.reader(), first.after.1, finalized).await?;
        opened_by.forget_below(first.after.0.saturating_add(1));
        Ok(())
    }

    /// Takes L1's word on a step, if there is something to do. The hints on L1 that open some of what it lacks.
    async fn look_again(
        &self,
        step: &mut Step,
        opened_by: &mut OpenedBy,
        (finalized, under_way): (u64, Option<Span>),
    ) -> Result<Vec<Opens>, L1RoundError> {
        let opens = match self.wait_blocks() {
            0 => Vec::new(),
            _ => {
                let in_blobs = self.l1.may_post_blobs();
                opened_by.of(self.cx.store.as_ref(), in_blobs, &step.lacking).await?
            }
        };
        let is_over = self.is_over(step, finalized);
        if !step.lacking.is_empty()
            && step.sent.is_empty()
            && opens.is_empty()
            && step.due(is_over).is_empty()
        {
            // What others post meanwhile is seen when there is something to do.
            return Ok(opens);
        }
        if step.ask_at.is_some_and(|block| block <= finalized) {
            let standing = self.l1.data_standing(step.after.0, step.after.1).await?;
            for hints in step.judge(&standing, finalized) {
                tracing::warn!(
                    hints,
                    "L1's readers do not count data that was opened by these hints: posting it as it is"
                );
                opened_by.refuse(hints);
            }
        }
        if let Some(run) = under_way {
            step.leave_out(run, finalized);
        }
        Ok(opens)
    }

    /// Whether the wait for hints is over.
    fn is_over(&self, step: &Step, finalized: u64) -> bool {
        finalized >= step.posted_by.saturating_add(self.wait_blocks())
    }

    /// Posts what a step lacks of a run, opened by these hints. False if members were asked in vain.
    async fn open_parts(
        &self,
        step: &mut Step,
        opens: Opens,
        opened_by: &mut OpenedBy,
    ) -> Result<bool, L1RoundError> {
        let id = opens.hints.id;
        for (first, last) in step.openable() {
            let part = (first.max(opens.first), last.min(opens.last));
            if part.0 <= part.1
                && opened_by.may_open(id)
                && opened_by.may_ask(id)
                && !self.supply_opened(step, part, opens, opened_by).await?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Posts what waits no longer for hints.
    async fn supply_as_it_is(&self, step: &mut Step, finalized: u64) -> Result<(), L1RoundError> {
        for span in step.due(self.is_over(step, finalized)) {
            self.supply(step, span).await?;
        }
        Ok(())
    }

    /// Posts the data of these headers as what it was opened to, once the committee has read it (OD-6). False if it does not
    /// say whether it can.
    async fn supply_opened(
        &self,
        step: &mut Step,
        (first, last): Span,
        opens: Opens,
        opened_by: &mut OpenedBy,
    ) -> Result<bool, L1RoundError> {
        let mut batches = Vec::new();
        for number in first..=last {
            let missing = StoreError::Missing { what: What::Batch, number };
            batches.push(keyed(self.cx.store.batch(number).await?.ok_or(missing)?)?);
        }
        let hints = opens.hints.id;
        let vain = |step: &mut Step, opened_by: &mut OpenedBy, fault: L1Error| {
            (step.lacking, step.ask_at) = (Vec::new(), Some(0));
            opened_by.failed(hints, &fault);
            Err(L1RoundError::from(fault))
        };
        let pieces = match self.l1.opened_data(self.cx.chain.chain_id, &batches, opens.hints).await {
            Ok(pieces) => pieces,
            Err(fault) => return vain(step, opened_by, fault),
        };
        for piece in pieces {
            let Some((first, last)) = piece.numbers() else { continue };
            match self.readers.word_on(&piece).await {
                Word::Attested => opened_by.heard(hints),
                Word::NotAsked => {}
                Word::Refuted => {
                    tracing::error!(
                        first,
                        last,
                        hints,
                        "so many members cannot read data as it is opened here that it is posted as it is"
                    );
                    opened_by.refuse(hints);
                    return Ok(true);
                }
                Word::Never => {
                    tracing::warn!(
                        first,
                        last,
                        hints,
                        "so many members read no data of these numbers that it is posted as it is"
                    );
                    step.never_read.push((first, last));
                    continue;
                }
                Word::Silent => {
                    tracing::warn!(
                        first,
                        last,
                        hints,
                        "fewer members than the threshold have read data that was opened: it waits"
                    );
                    opened_by.not_heard(hints, self.cx.config.posting.max_retry_ms);
                    return Ok(false);
                }
            }
            let receipt = match self.l1.post_opened_data(&piece).await {
                Ok(receipt) => receipt,
                Err(fault) => return vain(step, opened_by, fault),
            };
            step.posted((first, last), Some(hints), receipt);
            self.cx.metrics.postings.increment();
            self.cx.metrics.opened_postings.increment();
            tracing::info!(first, last, hints, transaction = %receipt.transaction, "data posted to L1, opened");
        }
        Ok(true)
    }

    /// Posts the data of these headers, each piece within the limits of a posting.
    async fn supply(&self, step: &mut Step, (first, last): Span) -> Result<(), L1RoundError> {
        let (mut batches, mut bytes) = (Vec::new(), 0usize);
        for number in first..=last {
            let batch = batch_of(self.cx.store.as_ref(), number).await?;
            let size = batch.sealed.encode().len();
            if !batches.is_empty() && bytes.saturating_add(size) > self.cx.config.posting.max_bytes {
                self.supply_piece(step, &std::mem::take(&mut batches)).await?;
                bytes = 0;
            }
            bytes = bytes.saturating_add(size);
            batches.push(batch);
        }
        self.supply_piece(step, &batches).await
    }

    async fn supply_piece(&self, step: &mut Step, batches: &[CodedBatch]) -> Result<(), L1RoundError> {
        let numbers = batches.first().zip(batches.last());
        let Some((first, last)) = numbers.map(|(a, b)| (a.sealed.header.number, b.sealed.header.number))
        else {
            return Ok(());
        };
        let receipt = match self.l1.post_data(batches).await {
            Ok(receipt) => receipt,
            Err(fault) => {
                // It may be there, or a part of it: that is looked at before anything is posted again.
                (step.lacking, step.ask_at) = (Vec::new(), Some(0));
                return Err(fault.into());
            }
        };
        step.posted((first, last), None, receipt);
        self.cx.metrics.postings.increment();
        tracing::info!(first, last, transaction = %receipt.transaction, "data posted to L1");
        Ok(())
    }

    /// The number up to which final blocks have the data of all posted headers.
    async fn supplied(&self) -> Result<u64, StoreError> {
        let stored = self.cx.store.meta(SUPPLIED_KEY).await?;
        let number = stored.and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        Ok(number.unwrap_or_default())
    }

    async fn set_supplied(&self, number: u64) -> Result<(), StoreError> {
        self.cx.store.put_meta(SUPPLIED_KEY, &number.to_be_bytes()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blindfold_protocol::B256;

    fn standing(through: u64, lacking: &[Span], awaited: Option<u64>) -> DataStanding {
        DataStanding { through, block: 7, lacking: lacking.to_vec(), awaited }
    }

    #[tokio::test]
    async fn data_above_a_number_is_looked_for_again() {
        let store = blindfold_store::SqlStore::in_memory().unwrap();
        forget_supplied_above(&store, 0).await.unwrap();
        assert_eq!(store.meta(SUPPLIED_KEY).await.unwrap(), None);
        for (supplied, number, left) in [(9u64, 9, 9u64), (9, 4, 4), (3, 4, 3)] {
            store.put_meta(SUPPLIED_KEY, &supplied.to_be_bytes()).await.unwrap();
            forget_supplied_above(&store, number).await.unwrap();
            assert_eq!(store.meta(SUPPLIED_KEY).await.unwrap(), Some(left.to_be_bytes().to_vec()));
        }
    }

    #[test]
    fn what_nobody_reads_waits_for_nobody() {
        let mut step = Step::new((0, 0), 9, 3);
        step.judge(&standing(9, &[(1, 4), (6, 9)], None), 3);
        assert_eq!((step.openable(), step.due(false)), (vec![(1, 4), (6, 9)], vec![]));
        step.never_read = vec![(3, 6), (8, 8)];
        assert_eq!(step.openable(), [(1, 2), (7, 7), (9, 9)]);
        assert_eq!(step.due(false), [(3, 4), (6, 6), (8, 8)]);
        assert_eq!(step.due(true), [(1, 4), (6, 9)], "the wait is over");
    }

    #[test]
    fn spans_lose_what_is_taken_out() {
        let spans = [(1, 4), (6, 9)];
        assert_eq!(without(&spans, (3, 7)), [(1, 2), (8, 9)]);
        assert_eq!(without(&spans, (2, 3)), [(1, 1), (4, 4), (6, 9)]);
        assert_eq!(without(&spans, (5, 5)), spans);
        assert_eq!(without(&spans, (0, u64::MAX)), []);
    }

    /// PD-5: what was sent is not sent again before its block is final, whatever L1 is said to lack until then.
    #[test]
    fn a_step_is_settled_by_final_blocks_alone() {
        let receipt = |block| Sent { transaction: B256::ZERO, block, gas_used: 0 };
        let mut step = Step::new((0, 0), 6, 3);
        assert_eq!(step.judge(&standing(6, &[(2, 4), (6, 6)], None), 9), [0u64; 0]);
        step.leave_out((1, 3), 9);
        assert_eq!((step.lacking.as_slice(), step.ask_at), ([(4, 4), (6, 6)].as_slice(), Some(10)));
        step.judge(&standing(6, &[(2, 4), (6, 6)], None), 10);
        assert_eq!((step.lacking.as_slice(), step.ask_at), ([(2, 4), (6, 6)].as_slice(), Some(11)));
        step.posted((2, 3), Some(5), receipt(20));
        step.posted((4, 4), None, receipt(21));
        assert_eq!((step.lacking.as_slice(), step.ask_at), ([(6, 6)].as_slice(), Some(21)));
        // Something went wrong with the last piece, and the server that is asked lags behind.
        step.judge(&standing(6, &[(2, 4), (6, 6)], None), 12);
        assert_eq!(step.lacking, [(6, 6)]);
        step.posted((6, 6), Some(6), receipt(22));
        // L1 took back the block with the first piece. What is further on belongs to the next step.
        let vain = step.judge(&standing(9, &[(2, 3), (8, 9)], None), 22);
        assert_eq!(vain, [5], "not opened by these once more");
        assert_eq!((step.lacking.as_slice(), step.ask_at), ([(2, 3)].as_slice(), Some(23)));
        step.judge(&standing(6, &[], Some(30)), 23);
        assert_eq!(step.ask_at, Some(30), "somebody posted it");
        step.judge(&standing(4, &[], None), 30);
        assert_eq!(step.ask_at, Some(31), "a beacon node has some time");
        step.judge(&standing(6, &[], None), 31);
        assert_eq!(step.ask_at, None);
    }
}
