//! L1 as a script.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use async_trait::async_trait;
use blindfold_chain::{
    AnnouncedEnd, DataError, FallbackHeader, L1Deposit, L1Error, L1News, L1Origin, L1Reader,
    MAX_FORCED_ENTRIES, PendingFallbackHeader, VoidRun,
};
use blindfold_l1::{CodedBatch, FoundData, PostedData, PostedHead, PostedHints, PostedRun, Posting};
use blindfold_protocol::{
    Address, B256, BatchHeader, Bytes, Certificate, Deposit, Epochs, ForcedEntry, LedgerEvent, SealedBatch,
    SequencerChange, merkle,
};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use crate::{RICH, START_MS, epoch, payer};

/// Blocks are final up to a number; what stands in them are lists that tests fill.
pub struct ScriptedL1 {
    /// The newest final block.
    pub finalized: Mutex<u64>,
    /// How many blocks there are after it.
    pub unfinal: Mutex<u64>,
    /// The second of the newest block, where this L1 tells.
    pub newest_time: Mutex<Option<u64>>,
    /// What is registered.
    pub epochs: Mutex<Epochs>,
    /// Keys of sequencers; none for the chain's alone.
    pub sequencers: Mutex<Vec<SequencerChange>>,
    /// The end of an epoch that is announced.
    pub ending: Mutex<Option<AnnouncedEnd>>,
    /// Deposits for fees, and withdrawals.
    pub events: Mutex<Vec<LedgerEvent>>,
    /// The forced queue.
    pub forced: Mutex<Vec<ForcedEntry>>,
    /// Deposits for the execution client.
    pub bridge: Mutex<Vec<L1Deposit>>,
    /// Headers that L1 made.
    pub l1_headers: Mutex<Vec<FallbackHeader>>,
    /// Headers that L1 made and that are not final.
    pub not_final: Mutex<Vec<PendingFallbackHeader>>,
    /// Hashes of blocks that are not final.
    pub shown: Mutex<BTreeMap<u64, B256>>,
    /// Runs without hints that count.
    pub void_runs: Mutex<Vec<VoidRun>>,
    /// The L1 block of each posted number.
    pub posted: Mutex<BTreeMap<u64, u64>>,
    /// Whether hints of everything stand on L1.
    pub hints: AtomicBool,
    /// Why data that are about to be posted cannot be read.
    pub unreadable: Mutex<Option<DataError>>,
    /// How often such data were read.
    pub readings: AtomicU64,
    /// No reading ends before there is a permit; none: it ends at once.
    pub reading_gate: Mutex<Option<Arc<Semaphore>>>,
    /// What it answers to everything.
    pub fault: Mutex<Option<L1Error>>,
    /// The one question that is answered with an error, and that.
    pub fault_of: Mutex<Option<(&'static str, L1Error)>>,
    /// Whether its next answers about headers that it made can be used; those after them can.
    pub usable: Mutex<VecDeque<bool>>,
    /// No answer about them can be used.
    pub unusable: AtomicBool,
    /// Shows another block for every number.
    pub reorganised: AtomicBool,
    /// Takes questions and answers none.
    pub hangs: AtomicBool,
    /// How long an answer about epochs takes, in milliseconds.
    pub slow_ms: AtomicU64,
    /// How often it answered for epochs.
    pub answered: watch::Sender<u64>,
    /// How often it was asked for the newest block.
    pub asked: AtomicU64,
}

/// L1 with [`epoch`]; payers 1 to 8 have deposits in its final block 2.
pub fn l1() -> Arc<ScriptedL1> {
    let l1 = ScriptedL1::new(Epochs::new(vec![epoch()]).expect("valid"));
    let l1_block = l1.advance(1);
    let deposit = |n| Deposit { payer: payer(n).address(), amount: RICH, l1_block };
    l1.events.lock().extend((1..=8).map(deposit).map(LedgerEvent::Deposit));
    l1
}

/// The block of a number: always the same.
pub fn l1_block(number: u64) -> L1Origin {
    L1Origin {
        number,
        hash: merkle::leaf(&number.to_be_bytes()),
        timestamp: START_MS / 1_000 - 10_000 + number,
        base_fee: 7,
        blob_base_fee: 1,
        parent_beacon_block_root: B256::ZERO,
    }
}

impl ScriptedL1 {
    /// One final block, and nothing in it.
    pub fn new(epochs: Epochs) -> Arc<Self> {
        Arc::new(Self {
            finalized: Mutex::new(1),
            unfinal: Mutex::default(),
            newest_time: Mutex::default(),
            epochs: Mutex::new(epochs),
            sequencers: Mutex::default(),
            ending: Mutex::default(),
            events: Mutex::default(),
            forced: Mutex::default(),
            bridge: Mutex::default(),
            l1_headers: Mutex::default(),
            not_final: Mutex::default(),
            shown: Mutex::default(),
            void_runs: Mutex::default(),
            posted: Mutex::default(),
            hints: AtomicBool::default(),
            unreadable: Mutex::default(),
            readings: AtomicU64::default(),
            reading_gate: Mutex::default(),
            fault: Mutex::default(),
            fault_of: Mutex::default(),
            usable: Mutex::default(),
            unusable: AtomicBool::default(),
            reorganised: AtomicBool::default(),
            hangs: AtomicBool::default(),
            slow_ms: AtomicU64::default(),
            answered: watch::Sender::new(0),
            asked: AtomicU64::default(),
        })
    }

    /// So many more final blocks; gives the newest.
    pub fn advance(&self, blocks: u64) -> u64 {
        let mut finalized = self.finalized.lock();
        *finalized += blocks;
        *finalized
    }

    /// A new final block. Nobody sees it before it is filled.
    fn block<T>(&self, fill: impl FnOnce(u64) -> T) -> T {
        let mut finalized = self.finalized.lock();
        *finalized += 1;
        fill(*finalized)
    }

    /// A deposit for fees in a new final block; gives the block.
    pub fn deposit(&self, payer: Address, amount: u128) -> u64 {
        self.block(|l1_block| {
            self.events.lock().push(LedgerEvent::Deposit(Deposit { payer, amount, l1_block }));
            l1_block
        })
    }

    /// A forced item in a new final block, made of its index and that block; gives its entry.
    pub fn force(&self, make: impl Fn(u64, u64) -> ForcedEntry) -> ForcedEntry {
        self.force_many(1, make).remove(0)
    }

    /// Several in one block.
    pub fn force_many(&self, count: usize, make: impl Fn(u64, u64) -> ForcedEntry) -> Vec<ForcedEntry> {
        self.block(|l1_block| {
            let mut forced = self.forced.lock();
            let first = forced.len() as u64;
            let entries: Vec<_> = (first..).take(count).map(|index| make(index, l1_block)).collect();
            forced.extend_from_slice(&entries);
            entries
        })
    }

    /// A deposit for the execution client in a new final block; gives its raw transaction.
    pub fn bridge(&self, gas: u64) -> Bytes {
        self.block(|l1_block| self.put_bridge(l1_block, gas))
    }

    /// Another one in the newest final block.
    pub fn bridge_again(&self, gas: u64) -> Bytes {
        let l1_block = *self.finalized.lock();
        self.put_bridge(l1_block, gas)
    }

    fn put_bridge(&self, l1_block: u64, gas: u64) -> Bytes {
        let mut bridge = self.bridge.lock();
        // What it mints stands in it: the sum of all is 1 + 2 + ….
        let wei = bridge.len() as u64 + 1;
        let raw = Bytes::from([[0x7e].as_slice(), &l1_block.to_be_bytes(), &wei.to_be_bytes()].concat());
        bridge.push(L1Deposit { raw: raw.clone(), gas, l1_block });
        raw
    }

    /// Answers nothing more, or answers again.
    pub fn set_down(&self, down: bool) {
        *self.fault.lock() = down.then(|| L1Error::no_answer("scripted outage"));
    }

    async fn up(&self) -> Result<(), L1Error> {
        if self.hangs.load(SeqCst) {
            std::future::pending::<()>().await;
        }
        self.fault.lock().clone().map_or(Ok(()), Err)
    }

    async fn up_for(&self, question: &str) -> Result<(), L1Error> {
        self.up().await?;
        let fault = self.fault_of.lock().clone().filter(|(of, _)| *of == question);
        fault.map_or(Ok(()), |(_, error)| Err(error))
    }
}

#[async_trait]
impl L1Reader for ScriptedL1 {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        self.up().await?;
        Ok(l1_block(*self.finalized.lock()))
    }

    async fn newest(&self) -> Result<u64, L1Error> {
        self.up().await?;
        self.asked.fetch_add(1, SeqCst);
        Ok(*self.finalized.lock() + *self.unfinal.lock())
    }

    async fn newest_time(&self) -> Result<Option<u64>, L1Error> {
        self.up().await?;
        Ok(*self.newest_time.lock())
    }

    async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Error> {
        self.up_for("origin").await?;
        let mut shown = l1_block(number);
        if self.reorganised.load(SeqCst) {
            shown.hash = B256::repeat_byte(0xbb);
        }
        Ok((number <= *self.finalized.lock()).then_some(shown))
    }

    async fn announced_end(&self) -> Result<Option<AnnouncedEnd>, L1Error> {
        self.up().await?;
        Ok(*self.ending.lock())
    }

    async fn facts(&self, after: u64, through: u64, cursor: u64) -> Result<L1News, L1Error> {
        self.up().await?;
        let within = |block: u64| (after + 1..=through).contains(&block);
        let entries = self.forced.lock();
        let queue = entries.iter().filter(|entry| entry.index >= cursor && entry.enqueued_at <= through);
        Ok(L1News {
            ledger: self.events.lock().iter().filter(|event| within(event.l1_block())).cloned().collect(),
            forced: queue.take(MAX_FORCED_ENTRIES).cloned().collect(),
        })
    }

    async fn bridge_deposits(&self, after: u64, through: u64) -> Result<Vec<L1Deposit>, L1Error> {
        self.up_for("bridge_deposits").await?;
        let within = |deposit: &&L1Deposit| (after + 1..=through).contains(&deposit.l1_block);
        Ok(self.bridge.lock().iter().filter(within).cloned().collect())
    }

    async fn l1_header(&self, number: u64) -> Result<Option<FallbackHeader>, L1Error> {
        self.up().await?;
        Ok(self.l1_headers.lock().iter().find(|made| made.header.number == number).cloned())
    }

    async fn last_l1_header(&self) -> Result<Option<u64>, L1Error> {
        self.up().await?;
        if !self.usable.lock().pop_front().unwrap_or(true) || self.unusable.load(SeqCst) {
            return Err(L1Error::nonsense("scripted nonsense"));
        }
        Ok(self.l1_headers.lock().last().map(|made| made.header.number))
    }

    async fn l1_headers_not_final(&self) -> Result<Vec<PendingFallbackHeader>, L1Error> {
        self.up().await?;
        Ok(self.not_final.lock().clone())
    }

    async fn block_hash(&self, number: u64) -> Result<Option<B256>, L1Error> {
        self.up().await?;
        Ok(self.shown.lock().get(&number).copied())
    }

    async fn void_runs(&self) -> Result<Vec<VoidRun>, L1Error> {
        self.up().await?;
        Ok(self.void_runs.lock().clone())
    }

    async fn posted_at(&self, number: u64) -> Result<Option<u64>, L1Error> {
        self.up().await?;
        Ok(self.posted.lock().get(&number).copied())
    }

    /// The newest of the posted numbers; of its header only that.
    async fn posted_head(&self) -> Result<PostedHead, L1Error> {
        self.up().await?;
        let number = self.posted.lock().keys().next_back().copied().unwrap_or_default();
        Ok(PostedHead { number, ..PostedHead::default() })
    }

    async fn hints_on_l1(&self, _number: u64) -> Result<bool, L1Error> {
        self.up().await?;
        Ok(self.hints.load(SeqCst))
    }

    async fn would_give(
        &self,
        _data: &[u8],
        _batches: Vec<CodedBatch>,
    ) -> Result<Result<(), DataError>, L1Error> {
        self.up().await?;
        self.readings.fetch_add(1, SeqCst);
        let gate = self.reading_gate.lock().clone();
        if let Some(gate) = gate {
            gate.acquire().await.expect("open").forget();
        }
        Ok(self.unreadable.lock().clone().map_or(Ok(()), Err))
    }

    async fn epochs(&self) -> Result<Epochs, L1Error> {
        tokio::time::sleep(Duration::from_millis(self.slow_ms.load(SeqCst))).await;
        self.up().await?;
        self.answered.send_modify(|count| *count += 1);
        let epochs = self.epochs.lock().clone();
        let sequencers = self.sequencers.lock().clone();
        if sequencers.is_empty() {
            return Ok(epochs);
        }
        Ok(epochs.with_sequencers(sequencers, *self.finalized.lock()).expect("valid"))
    }
}

/// What was posted, in the blocks of a [`ScriptedL1`]; the headers that it made are posted as well.
pub struct PostedRuns {
    l1: Arc<ScriptedL1>,
    /// In any order.
    pub runs: Mutex<Vec<Posting>>,
}

/// Headers in a block, with their data.
pub fn posting(l1_block: u64, batches: Vec<SealedBatch>, certificate: Option<Certificate>) -> Posting {
    let headers: Vec<BatchHeader> = batches.iter().map(|batch| batch.header).collect();
    let run = PostedRun::new(headers.clone(), l1_block).expect("headers").run;
    let data = PostedData::of(batches);
    Posting { l1_block, transaction: B256::ZERO, runs: vec![run], headers, certificate, data }
}

impl PostedRuns {
    /// Nothing but what L1 made.
    pub fn new(l1: &Arc<ScriptedL1>) -> Arc<Self> {
        Arc::new(Self { l1: Arc::clone(l1), runs: Mutex::default() })
    }

    /// Posts headers with their data in a block.
    pub fn post(&self, l1_block: u64, batches: Vec<SealedBatch>, certificate: Option<Certificate>) {
        self.runs.lock().push(posting(l1_block, batches, certificate));
    }
}

#[async_trait]
impl L1Reader for PostedRuns {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        self.l1.as_ref().finalized().await
    }

    async fn postings(&self, after: u64, through: u64) -> Result<Vec<Posting>, L1Error> {
        self.l1.up().await?;
        let mut all = self.runs.lock().clone();
        let made = self.l1.l1_headers.lock().clone();
        all.extend(made.iter().map(|made| posting(made.l1_block, vec![made.batch()], None)));
        all.retain(|posting| (after + 1..=through).contains(&posting.l1_block));
        all.sort_by_key(|posting| posting.l1_block);
        Ok(all)
    }

    async fn reposted_data(&self, _: &[BatchHeader], _: u64, _: u64) -> Result<FoundData, L1Error> {
        Ok(FoundData { batches: Vec::new(), unread: None })
    }

    async fn posted_hints(&self, _after: u64, _through: u64) -> Result<Vec<PostedHints>, L1Error> {
        Ok(Vec::new())
    }
}
