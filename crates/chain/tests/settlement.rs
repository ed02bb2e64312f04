//! Which batches are safe and which are final on L1, and what the execution client is told of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use async_trait::async_trait;
use blindfold_chain::{L1Error, L1Origin, L1Reader, L1RoundError, Sealed, Settled, Settlement, TakesMarks};
use blindfold_kit::*;
use blindfold_l1::{
    DataError, HintBlobs, HintEvent, HintPosting, HintTree, KeyedBatch, PostedData, PostedLog, PostedRun,
    RunReference,
};
use blindfold_protocol::{Address, B256, BatchHints, HintEntry, SealedBatch, Signature65};
use parking_lot::Mutex;

/// L1 as a script: what stands in which final block.
#[derive(Default)]
struct Script {
    runs: Mutex<Vec<(RunReference, B256)>>,
    events: Mutex<Vec<(u64, HintEvent)>>,
    finalized: Mutex<u64>,
    claim_delay: AtomicU64,
    /// Data by last batch: what came along, and what was posted again.
    along: Mutex<BTreeMap<u64, Vec<SealedBatch>>>,
    again: Mutex<BTreeMap<u64, Vec<SealedBatch>>>,
    beacon_down: AtomicBool,
    /// Nothing can be read of what may hold the data.
    unread: AtomicBool,
    looks: AtomicUsize,
    /// What the last look brought along.
    own: Mutex<Vec<KeyedBatch>>,
}

#[async_trait]
impl L1Reader for Script {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        Ok(l1_block(*self.finalized.lock()))
    }

    async fn posted_runs(&self, after: u64, through: u64) -> Result<Vec<(RunReference, B256)>, L1Error> {
        let within = |(run, _): &&(RunReference, B256)| (after + 1..=through).contains(&run.posted_at);
        Ok(self.runs.lock().iter().filter(within).copied().collect())
    }

    async fn hint_events(&self, after: u64, through: u64) -> Result<Vec<HintEvent>, L1Error> {
        let within = |block: &u64| (after + 1..=through).contains(block);
        Ok(self.events.lock().iter().filter(|(block, _)| within(block)).map(|(_, event)| *event).collect())
    }

    async fn claim_delay(&self) -> Result<u64, L1Error> {
        Ok(self.claim_delay.load(Ordering::SeqCst))
    }

    async fn posted_data(
        &self,
        run: &RunReference,
        own: Vec<KeyedBatch>,
        through: u64,
    ) -> Result<PostedData, L1Error> {
        *self.own.lock() = own;
        self.looks.fetch_add(1, Ordering::SeqCst);
        if self.beacon_down.load(Ordering::SeqCst) {
            return Err(L1Error::no_answer("scripted"));
        }
        let (along, again) = (self.along.lock(), self.again.lock());
        let found = along.get(&run.last).or(again.get(&run.last));
        let length = (run.last - run.first + 1) as usize;
        if self.unread.load(Ordering::SeqCst) {
            return Ok(PostedData::missing(length, DataError::Pruned(through)));
        }
        let missing = || PostedData::missing(length, DataError::Absent);
        Ok(found.map_or_else(missing, |batches| PostedData::of(batches.clone())))
    }
}

impl Script {
    fn tell(&self, block: u64, event: HintEvent) {
        self.events.lock().push((block, event));
        self.reach(block);
    }

    /// This block is final.
    fn reach(&self, block: u64) {
        let mut finalized = self.finalized.lock();
        *finalized = block.max(*finalized);
    }

    /// A run with its data.
    fn post(&self, block: u64, sealed: &[&Sealed]) {
        let batches: Vec<SealedBatch> = sealed.iter().map(|sealed| (*sealed.batch).clone()).collect();
        self.along.lock().insert(batches.last().expect("a batch").header.number, batches.clone());
        self.post_headers(block, &batches);
    }

    fn post_headers(&self, block: u64, batches: &[SealedBatch]) {
        let headers: Vec<_> = batches.iter().map(|batch| batch.header).collect();
        let head_hash = headers.last().expect("a header").hash();
        let run = PostedRun::new(headers, block).expect("a header").run;
        self.runs.lock().push((run, head_hash));
        self.reach(block);
    }

    /// The honest hints of a run, with a change.
    fn hint(&self, block: u64, id: u64, sealed: &[&Sealed], change: impl FnOnce(&mut Vec<BatchHints>)) {
        let mut hints: Vec<BatchHints> =
            sealed.iter().map(|sealed| open_batch(&sealed.batch, &sealed.verdicts).1).collect();
        change(&mut hints);
        let (first, last) = (hints[0].number, hints[hints.len() - 1].number);
        let root = HintTree::new(&HintPosting::of(&hints), first).root();
        self.tell(block, posted(id, (first, last), root));
    }

    /// The honest hints of a run, in blobs.
    fn hint_in_blobs(&self, block: u64, id: u64, sealed: &[&Sealed]) {
        let hints: Vec<BatchHints> =
            sealed.iter().map(|sealed| open_batch(&sealed.batch, &sealed.verdicts).1).collect();
        let (first, last) = (hints[0].number, hints[hints.len() - 1].number);
        let root = HintBlobs::of(&HintPosting::of(&hints)).expect("they fit").root(first);
        self.tell(block, posted(id, (first, last), root));
    }
}

fn posted(id: u64, (first, last): (u64, u64), root: B256) -> HintEvent {
    let (publisher, transaction) = (publisher(id), B256::ZERO);
    HintEvent::Posted(PostedLog { id, first, last, publisher, l1_block: 1, transaction, root })
}

fn slashed(id: u64, last: u64) -> HintEvent {
    HintEvent::Slashed {
        id,
        last,
        challenger: Address::ZERO,
        publisher: publisher(id),
        number: last,
        index: 0,
        reason: 5,
        l1_block: 1,
    }
}

/// Its id does not matter here.
fn finalized(last: u64) -> HintEvent {
    HintEvent::Finalized { id: 1_000 + last, first: last, last }
}

fn void(last: u64) -> HintEvent {
    HintEvent::Voided { first: last, last }
}

/// Each posting has a publisher of its own.
fn publisher(id: u64) -> Address {
    Address::repeat_byte(id as u8)
}

/// A node that executed blocks 1 to 3 out of batches 1 to 6, two for a block, certified and opened.
struct Stage {
    machine: Machine,
    l1: Arc<Script>,
    sealed: Vec<Sealed>,
}

impl Stage {
    async fn new() -> Self {
        let l1 = l1();
        let sequencer = Sealer::new(&l1).await;
        let client = ScriptedExecution::new();
        let machine = Machine::start(memory(), &l1, &client).await;
        let mut sealed = Vec::new();
        for second in 0..3 {
            let full = sequencer.seal_envelopes(second * 1_000, &[envelope(1, second)]).await;
            sequencer.certify(&full).await;
            sealed.push(full);
            let empty = sequencer.seal_envelopes(second * 1_000 + 500, &[]).await;
            sequencer.certify(&empty).await;
            sealed.push(empty);
        }
        let last = sequencer.seal_envelopes(3_000, &[]).await;
        sequencer.certify(&last).await;
        sealed.push(last);
        for sealed in &sealed {
            machine.take(sealed).await;
        }
        for full in sealed.iter().step_by(2).take(3) {
            machine.hint(full).await;
        }
        machine.executed(3).await;
        // Execution sees no less of L1 than what tells the marks.
        l1.advance(1_000);
        Self { machine, l1: Arc::default(), sealed }
    }

    /// A node with so many batches, none of which needs hints.
    async fn idle(batches: u64) -> Self {
        let l1 = l1();
        let sequencer = Sealer::new(&l1).await;
        let machine = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
        machine.tracker.store().keep_ledgers_from(0).await.expect("a disk");
        let mut sealed = Vec::new();
        for place in 0..batches {
            let empty = sequencer.seal_envelopes(place * 500, &[]).await;
            sequencer.certify(&empty).await;
            machine.take(&empty).await;
            sealed.push(empty);
        }
        Self { machine, l1: Arc::default(), sealed }
    }

    /// From which batch on ledgers are kept.
    async fn kept_from(&self) -> Option<u64> {
        self.machine.tracker.store().ledger_floor().await.expect("a disk")
    }

    /// The batches of these numbers.
    fn run(&self, numbers: std::ops::RangeInclusive<usize>) -> Vec<&Sealed> {
        self.sealed[numbers.start() - 1..*numbers.end()].iter().collect()
    }

    async fn open(&self) -> Settlement {
        let Machine { tracker, executor, .. } = &self.machine;
        Settlement::open(tracker.clone(), executor.clone(), Arc::clone(&self.l1) as _).await.expect("a disk")
    }

    async fn marks(&self, settlement: &mut Settlement) -> (u64, u64, u64) {
        settlement.round().await.expect("L1 and disk");
        let Settled { posted, safe, finalized } = settlement.marks();
        (posted, safe, finalized)
    }

    /// Waits until the client was told of these blocks.
    async fn until_marked(&self, safe: u64, finalized: Option<u64>) {
        let mut status = self.machine.executor.watch_status();
        let number = |block: Option<(u64, B256)>| block.map(|(number, _)| number);
        let there = status
            .wait_for(|status| (number(status.safe), number(status.finalized)) == (Some(safe), finalized));
        let there = within("the client to be told", there).await.expect("the executor lives").clone();
        let hash = |block: Option<(u64, B256)>| block.map_or(B256::ZERO, |(_, hash)| hash);
        assert_eq!(*self.machine.client.finality.lock(), Some((hash(there.safe), hash(there.finalized))));
    }
}

/// An executor that has compared its blocks with what is void up to this batch.
struct Compared(Arc<AtomicU64>);

impl TakesMarks for Compared {
    fn settle(&self, _: Settled, _: u64) {}

    fn compared(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Rule VR-2. A void run is final, too, while its blocks may still have to be taken back: where a command pruned its batches
/// then, they never were.
#[tokio::test]
async fn a_disk_calls_final_what_was_compared_with_what_is_void() {
    let stage = Stage::new().await;
    let (tracker, compared) = (&stage.machine.tracker, Arc::new(AtomicU64::new(0)));
    let on_disk = async || Settled::final_on_disk(tracker.store().as_ref()).await.expect("a disk");
    let open = async || {
        let executor = Compared(Arc::clone(&compared));
        Settlement::open(tracker.clone(), executor, Arc::clone(&stage.l1) as _).await.expect("a disk")
    };
    for first in [1, 3, 5] {
        stage.l1.post(10, &stage.run(first..=first + 1));
    }
    let mut settlement = open().await;
    stage.l1.tell(11, void(2));
    assert_eq!(stage.marks(&mut settlement).await, (6, 2, 2));
    assert_eq!(on_disk().await, 0, "killed before its executor has heard of it");
    compared.store(2, Ordering::SeqCst);
    stage.l1.tell(12, void(4));
    assert_eq!(stage.marks(&mut settlement).await, (6, 4, 4));
    assert_eq!(on_disk().await, 2);
    // A start compares anew, and takes nothing back of what was.
    compared.store(0, Ordering::SeqCst);
    let mut settlement = open().await;
    stage.l1.tell(13, finalized(6));
    assert_eq!(stage.marks(&mut settlement).await, (6, 6, 6));
    assert_eq!(on_disk().await, 2);
}

/// Rules SF-1, SF-2.
#[tokio::test]
async fn a_batch_is_safe_with_headers_data_and_hints_and_final_with_final_hints() {
    let stage = Stage::new().await;
    let l1 = &stage.l1;
    let mut settlement = stage.open().await;
    assert_eq!(stage.marks(&mut settlement).await, (0, 0, 0));
    l1.post(10, &stage.run(1..=2));
    assert_eq!(stage.marks(&mut settlement).await, (2, 0, 0), "no hints");
    // Wrong hints do not count, whether somebody challenges them or not.
    l1.hint(11, 1, &stage.run(1..=2), |hints| hints[0].entries[0] = HintEntry::Key([9; 16]));
    assert_eq!(stage.marks(&mut settlement).await, (2, 0, 0), "other hints than ours");
    l1.hint(12, 2, &stage.run(1..=2), |_| {});
    assert_eq!(stage.marks(&mut settlement).await, (2, 2, 0));
    // What is here need not be encrypted again to be found there.
    for (own, sealed) in l1.own.lock().iter().zip(stage.run(1..=2)) {
        assert_eq!(own.batch.sealed, *sealed.batch);
        let opened: Vec<bool> = own.keys.iter().map(Option::is_some).collect();
        let accepted: Vec<bool> = sealed.verdicts.iter().map(|verdict| verdict.reason().is_none()).collect();
        assert_eq!(opened, accepted);
    }
    assert_eq!(l1.own.lock().len(), 2);
    assert_eq!(stage.machine.executor.status().safe, None, "the header that closes the second is not posted");
    // A slashing later takes nothing back.
    l1.tell(13, slashed(2, 2));
    l1.post(13, &stage.run(3..=4));
    assert_eq!(stage.marks(&mut settlement).await, (4, 2, 0));
    stage.until_marked(1, None).await;
    l1.tell(14, finalized(2));
    assert_eq!(stage.marks(&mut settlement).await, (4, 2, 2));
    stage.until_marked(1, Some(1)).await;
    // What L1 declared void needs no hints, what has no envelope does not either.
    l1.tell(15, void(4));
    l1.post(15, &stage.run(5..=6));
    l1.post(15, &stage.run(7..=7));
    assert_eq!(stage.marks(&mut settlement).await, (7, 4, 4));
    stage.until_marked(2, Some(2)).await;
    l1.hint(16, 3, &stage.run(5..=6), |_| {});
    assert_eq!(stage.marks(&mut settlement).await, (7, 7, 4), "a header without an envelope needs none");
    stage.until_marked(3, Some(2)).await;
    l1.tell(17, finalized(6));
    assert_eq!(stage.marks(&mut settlement).await, (7, 7, 7));
    stage.until_marked(3, Some(3)).await;
}

#[tokio::test]
async fn hints_of_a_slashed_publisher_make_nothing_safe() {
    let stage = Stage::new().await;
    let mut settlement = stage.open().await;
    stage.l1.post(10, &stage.run(1..=4));
    stage.l1.hint(11, 1, &stage.run(1..=4), |_| {});
    stage.l1.tell(12, slashed(1, 2));
    assert_eq!(stage.marks(&mut settlement).await, (4, 0, 0));
    stage.l1.hint(13, 2, &stage.run(1..=4), |_| {});
    assert_eq!(stage.marks(&mut settlement).await, (4, 4, 0));
}

#[tokio::test]
async fn hints_in_blobs_make_a_batch_as_safe_as_hints_in_calldata() {
    let stage = Stage::new().await;
    let mut settlement = stage.open().await;
    stage.l1.post(10, &stage.run(1..=4));
    stage.l1.hint_in_blobs(11, 1, &stage.run(1..=4));
    assert_eq!(stage.marks(&mut settlement).await, (4, 4, 0));
}

#[tokio::test]
async fn data_that_is_missing_is_waited_for_unless_the_hints_are_final() {
    let stage = Stage::new().await;
    let l1 = &stage.l1;
    let mut settlement = stage.open().await;
    let run = stage.run(1..=2);
    l1.post(10, &run);
    let right = l1.along.lock().remove(&2).unwrap();
    l1.hint(11, 1, &run, |_| {});
    assert_eq!(stage.marks(&mut settlement).await, (2, 0, 0), "without data");
    // Data without the sequencer's signature is no use to anybody.
    let mut forged = right.clone();
    forged[0].signature = Signature65([7; 65]);
    l1.again.lock().insert(2, forged.clone());
    *l1.finalized.lock() = 40;
    assert_eq!(stage.marks(&mut settlement).await, (2, 0, 0), "forged data");
    // Nor is data that calls a certified header one that L1 made.
    forged[0].signature = Signature65([0; 65]);
    l1.again.lock().insert(2, forged);
    *l1.finalized.lock() = 60;
    assert_eq!(stage.marks(&mut settlement).await, (2, 0, 0), "nobody's data");
    l1.again.lock().insert(2, right);
    *l1.finalized.lock() = 100;
    assert_eq!(stage.marks(&mut settlement).await, (2, 2, 0));
    // A beacon node that is away keeps nothing from being final.
    l1.post(101, &stage.run(3..=4));
    l1.hint(102, 2, &stage.run(3..=4), |_| {});
    l1.beacon_down.store(true, Ordering::SeqCst);
    assert!(matches!(settlement.round().await, Err(L1RoundError::L1(_))));
    assert_eq!(settlement.marks(), Settled { posted: 4, safe: 2, finalized: 0 });
    for last in [2, 4] {
        l1.tell(103, finalized(last));
    }
    assert_eq!(stage.marks(&mut settlement).await, (4, 4, 4));
}

/// PD-7: what could not be read is looked for again soon, and what is absent when L1 has gone on.
#[tokio::test]
async fn data_that_could_not_be_read_is_looked_for_again_soon() {
    let stage = Stage::new().await;
    let l1 = &stage.l1;
    let mut settlement = stage.open().await;
    l1.post(10, &stage.run(1..=2));
    l1.hint(11, 1, &stage.run(1..=2), |_| {});
    *l1.finalized.lock() = 10_000;
    l1.unread.store(true, Ordering::SeqCst);
    assert_eq!(stage.marks(&mut settlement).await, (2, 0, 0));
    assert_eq!(stage.marks(&mut settlement).await, (2, 0, 0));
    assert_eq!(l1.looks.load(Ordering::SeqCst), 1, "after a pause");
    l1.unread.store(false, Ordering::SeqCst);
    within("another look", async {
        while stage.marks(&mut settlement).await != (2, 2, 0) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(l1.looks.load(Ordering::SeqCst), 2);
}

/// Rule SF-3.
#[tokio::test]
async fn marks_survive_restarts_and_never_fall() {
    let stage = Stage::new().await;
    let l1 = &stage.l1;
    let mut settlement = stage.open().await;
    l1.post(10, &stage.run(1..=2));
    l1.hint(11, 1, &stage.run(1..=2), |_| {});
    l1.tell(12, finalized(2));
    l1.post(12, &stage.run(3..=4));
    l1.hint(13, 2, &stage.run(3..=4), |_| {});
    assert_eq!(stage.marks(&mut settlement).await, (4, 4, 2));
    stage.until_marked(1, Some(1)).await;
    drop(settlement);
    // Another process: blocks up to 11 are not read again, and a slashing meanwhile takes nothing back.
    l1.runs.lock().retain(|(run, _)| run.posted_at > 11);
    l1.events.lock().retain(|(block, _)| *block > 11);
    l1.tell(14, slashed(2, 2));
    let mut settlement = stage.open().await;
    assert_eq!(settlement.marks(), Settled { posted: 4, safe: 4, finalized: 2 });
    assert_eq!(stage.marks(&mut settlement).await, (4, 4, 2));
    l1.tell(15, void(4));
    assert_eq!(stage.marks(&mut settlement).await, (4, 4, 4));
    // The header that closes the second of batches 3 and 4 is not posted.
    stage.until_marked(1, Some(1)).await;
}

/// Else nobody could prove what the vault owes him: on an idle chain hints are final at once, and a day has thousands of
/// headers.
#[tokio::test]
async fn ledgers_are_kept_until_the_vault_pays_out_newer_ones() {
    const DELAY: u64 = 100;
    let stage = Stage::idle(300).await;
    let l1 = &stage.l1;
    l1.claim_delay.store(DELAY, Ordering::SeqCst);
    let mut settlement = stage.open().await;
    l1.post(10, &stage.run(1..=2));
    l1.post(20, &stage.run(3..=280));
    l1.post(30, &stage.run(281..=300));
    assert_eq!(stage.marks(&mut settlement).await, (300, 300, 300));
    assert_eq!(stage.kept_from().await, Some(0), "none is paid out yet");
    // Another process knows which ones are not paid out.
    drop(settlement);
    let mut settlement = stage.open().await;
    *l1.finalized.lock() = 20 + DELAY - 1;
    assert_eq!(stage.marks(&mut settlement).await, (300, 300, 300));
    assert_eq!(stage.kept_from().await, Some(0), "the first two batches' is");
    *l1.finalized.lock() = 20 + DELAY;
    stage.marks(&mut settlement).await;
    assert_eq!(stage.kept_from().await, Some(280 - 256));
    drop(settlement);
    let mut settlement = stage.open().await;
    stage.marks(&mut settlement).await;
    assert_eq!(stage.kept_from().await, Some(280 - 256));
    *l1.finalized.lock() = 30 + DELAY;
    stage.marks(&mut settlement).await;
    assert_eq!(stage.kept_from().await, Some(300 - 256));
}

/// What one process began to forget the next one goes on with.
#[tokio::test]
async fn ledgers_are_looked_for_that_are_kept_no_more_after_each_start() {
    let store = FaultyStore::new(memory());
    let machine = Machine::start(store.clone(), &l1(), &ScriptedExecution::new()).await;
    let stage = Stage { machine, l1: Arc::default(), sealed: Vec::new() };
    for starts in 1..=2 {
        let mut settlement = stage.open().await;
        for _ in 0..2 {
            stage.marks(&mut settlement).await;
            assert_eq!(store.calls("forget_ledgers"), starts, "once is enough where there are none");
        }
    }
}

#[tokio::test]
async fn a_client_that_lost_its_blocks_gets_them_back_before_it_is_told() {
    let stage = Stage::new().await;
    let mut settlement = stage.open().await;
    stage.l1.post(10, &stage.run(1..=7));
    stage.l1.hint(11, 1, &stage.run(1..=7), |_| {});
    stage.machine.client.lose_blocks_above(1);
    assert_eq!(stage.marks(&mut settlement).await, (7, 7, 0));
    stage.until_marked(3, None).await;
    assert_eq!(stage.machine.client.imported.load(Ordering::SeqCst), 2);
    // Killed again while nothing happens: it is told again.
    stage.machine.client.lose_blocks_above(0);
    within("the marks again", async {
        while stage.machine.client.finality.lock().is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    stage.until_marked(3, None).await;
}

#[tokio::test]
async fn another_header_on_l1_is_not_ours_and_nothing_after_it_is_safe() {
    let stage = Stage::new().await;
    let mut settlement = stage.open().await;
    let mut batches: Vec<SealedBatch> =
        stage.run(1..=2).iter().map(|sealed| (*sealed.batch).clone()).collect();
    batches[1].header.timestamp_ms += 1;
    stage.l1.post_headers(10, &batches);
    stage.l1.tell(11, finalized(2));
    assert_eq!(stage.marks(&mut settlement).await, (0, 0, 0));
}
