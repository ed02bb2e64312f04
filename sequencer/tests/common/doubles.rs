//! Scripted stand-ins for what lies outside the sequencer: L1, the inbox, the execution client, the clock, a disk that
//! fails.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use blindfold_chain::{
    AnnouncedEnd, FallbackHeader, L1Deposit, L1Error, L1News, L1Origin, L1Reader, L1Submitter,
    MAX_FORCED_ENTRIES, VoidRun,
};
use blindfold_engine::{
    BlockId, BlockInputs, EngineError, ExecutedBlock, ExecutionClient, ReadError, StoredPayload,
    TransportError,
};
use blindfold_l1::{
    CodedBatch, DataStanding, FoundData, GivenPromise, OmissionAnswer, OpenAccusation, Output,
    OutputStanding, PostedData, PostedHead, PostedHints, PostedRun, Posting, Sent,
};
use blindfold_protocol::{
    Address, B256, BatchHeader, Bytes, Canonical, Certificate, Deposit, Epochs, ForcedEntry, LedgerEvent,
    SealedBatch, SequencerChange, merkle,
};
use blindfold_sequencer::{Clock, Committee, HeldBatch, MemberError};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The time at which every test begins, in milliseconds.
pub const START_MS: u64 = 1_800_000_000_000;

/// A clock that tests move, and break.
pub struct ManualClock(AtomicU64, AtomicBool, AtomicI64);

impl ManualClock {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(START_MS), AtomicBool::new(false), AtomicI64::new(0)))
    }

    /// The wall clock is so far ahead from now on.
    pub fn jump(&self, ms: i64) {
        self.2.store(ms, Ordering::SeqCst);
    }

    /// Whoever asks for the time from now on panics.
    pub fn break_it(&self) {
        self.1.store(true, Ordering::SeqCst);
    }

    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    pub fn set(&self, ms: u64) {
        self.0.store(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        assert!(!self.1.load(Ordering::SeqCst), "the clock is broken");
        self.0.load(Ordering::SeqCst)
    }

    fn offset_ms(&self) -> i64 {
        self.2.load(Ordering::SeqCst)
    }

    fn step(&self) {
        let ahead_ms = self.2.swap(0, Ordering::SeqCst);
        self.set(self.now_ms().saturating_add_signed(ahead_ms));
    }
}

/// L1 as a script: blocks are final up to a number, deposits stand in a list.
pub struct ScriptedL1 {
    pub epochs: Mutex<Epochs>,
    /// Keys of sequencers; none for the chain's alone.
    pub sequencers: Mutex<Vec<SequencerChange>>,
    /// The end of an epoch that is announced.
    pub ending: Mutex<Option<AnnouncedEnd>>,
    state: Mutex<L1State>,
    down: AtomicBool,
    /// Nothing that it says of its headers can be used.
    pub unusable: AtomicBool,
    /// When the newest block was made, in milliseconds; 0 where this L1 does not tell.
    newest_ms: AtomicU64,
}

#[derive(Default)]
struct L1State {
    finalized: u64,
    /// How many blocks it has beyond the final ones.
    not_final: u64,
    /// How often it was asked for the newest.
    asked: u64,
    deposits: Vec<Deposit>,
    forced: Vec<ForcedEntry>,
    /// L1 deposits: block and gas.
    bridge: Vec<(u64, u64)>,
    l1_headers: Vec<FallbackHeader>,
}

impl ScriptedL1 {
    pub fn new(epochs: Epochs) -> Arc<Self> {
        let state = Mutex::new(L1State { finalized: 3, ..L1State::default() });
        let (down, newest_ms) = (AtomicBool::new(false), AtomicU64::new(0));
        let (sequencers, ending) = (Mutex::default(), Mutex::default());
        let unusable = AtomicBool::new(false);
        Arc::new(Self { epochs: Mutex::new(epochs), sequencers, ending, state, down, unusable, newest_ms })
    }

    /// A deposit in the next block, which is final at once.
    pub fn deposit(&self, payer: Address, amount: u128) {
        let mut state = self.state.lock();
        state.finalized += 1;
        let l1_block = state.finalized;
        state.deposits.push(Deposit { payer, amount, l1_block });
    }

    /// Puts `count` forced items in the next block, which is final at once.
    pub fn force(&self, count: u64, make: impl Fn(u64, u64) -> ForcedEntry) {
        let mut state = self.state.lock();
        state.finalized += 1;
        let at = state.finalized;
        for _ in 0..count {
            let entry = make(state.forced.len() as u64, at);
            state.forced.push(entry);
        }
    }

    /// L1 deposits of this much gas in the next block, which is final at once.
    pub fn bridge(&self, gas: u64) -> u64 {
        let mut state = self.state.lock();
        state.finalized += 1;
        let at = state.finalized;
        state.bridge.push((at, gas));
        at
    }

    pub fn make_header(&self, made: FallbackHeader) {
        self.state.lock().l1_headers.push(made);
    }

    /// Whoever answers now lags: this block is its newest, and it knows of no header. Gives those that it knew.
    pub fn fall_back(&self, finalized: u64) -> Vec<FallbackHeader> {
        let mut state = self.state.lock();
        state.finalized = finalized;
        std::mem::take(&mut state.l1_headers)
    }

    pub fn advance_by(&self, blocks: u64) {
        self.state.lock().finalized += blocks;
    }

    /// It goes on by so many blocks, and none of them becomes final.
    pub fn stall_finality(&self, blocks: u64) {
        self.state.lock().not_final = blocks;
    }

    /// How often it was asked for its newest block.
    pub fn asked(&self) -> u64 {
        self.state.lock().asked
    }

    /// What it has becomes final.
    pub fn make_final(&self) {
        let mut state = self.state.lock();
        state.finalized += std::mem::take(&mut state.not_final);
    }

    pub fn advance(&self) -> u64 {
        let mut state = self.state.lock();
        state.finalized += 1;
        state.finalized
    }

    pub fn finalized(&self) -> u64 {
        self.state.lock().finalized
    }

    /// The newest block was made at this time.
    pub fn tell_time(&self, ms: u64) {
        self.newest_ms.store(ms, Ordering::SeqCst);
    }

    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    fn up(&self) -> Result<(), L1Error> {
        if self.down.load(Ordering::SeqCst) {
            return Err(L1Error::no_answer("scripted outage"));
        }
        Ok(())
    }
}

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

#[async_trait]
impl L1Reader for ScriptedL1 {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        self.up()?;
        Ok(l1_block(self.state.lock().finalized))
    }

    async fn newest(&self) -> Result<u64, L1Error> {
        self.up()?;
        let mut state = self.state.lock();
        state.asked += 1;
        Ok(state.finalized + state.not_final)
    }

    async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Error> {
        self.up()?;
        Ok((number <= self.state.lock().finalized).then(|| l1_block(number)))
    }

    async fn announced_end(&self) -> Result<Option<AnnouncedEnd>, L1Error> {
        self.up()?;
        Ok(*self.ending.lock())
    }

    async fn facts(&self, after: u64, through: u64, cursor: u64) -> Result<L1News, L1Error> {
        self.up()?;
        let state = self.state.lock();
        let within = |block: u64| block > after && block <= through;
        let deposits = state.deposits.iter().filter(|deposit| within(deposit.l1_block));
        let queue = state.forced.iter().filter(|entry| entry.index >= cursor && entry.enqueued_at <= through);
        Ok(L1News {
            ledger: deposits.copied().map(LedgerEvent::Deposit).collect(),
            forced: queue.take(MAX_FORCED_ENTRIES).cloned().collect(),
        })
    }

    async fn bridge_deposits(&self, after: u64, through: u64) -> Result<Vec<L1Deposit>, L1Error> {
        self.up()?;
        let state = self.state.lock();
        let within = state.bridge.iter().filter(|(block, _)| *block > after && *block <= through);
        let deposit = |(l1_block, gas): &(u64, u64)| {
            let raw = Bytes::from([[0x7e].as_slice(), &l1_block.to_be_bytes()].concat());
            L1Deposit { raw, gas: *gas, l1_block: *l1_block }
        };
        Ok(within.map(deposit).collect())
    }

    async fn l1_header(&self, number: u64) -> Result<Option<FallbackHeader>, L1Error> {
        self.up()?;
        Ok(self.state.lock().l1_headers.iter().find(|made| made.header.number == number).cloned())
    }

    async fn last_l1_header(&self) -> Result<Option<u64>, L1Error> {
        self.up()?;
        if self.unusable.load(Ordering::SeqCst) {
            return Err(L1Error::nonsense("scripted nonsense"));
        }
        Ok(self.state.lock().l1_headers.last().map(|made| made.header.number))
    }

    async fn void_runs(&self) -> Result<Vec<VoidRun>, L1Error> {
        self.up().map(|()| Vec::new())
    }

    async fn posted_at(&self, _number: u64) -> Result<Option<u64>, L1Error> {
        self.up().map(|()| None)
    }

    async fn hints_on_l1(&self, _number: u64) -> Result<bool, L1Error> {
        self.up().map(|()| false)
    }

    async fn newest_time(&self) -> Result<Option<u64>, L1Error> {
        self.up()?;
        let newest_ms = self.newest_ms.load(Ordering::SeqCst);
        Ok((newest_ms > 0).then_some(newest_ms / 1_000))
    }

    async fn epochs(&self) -> Result<Epochs, L1Error> {
        self.up()?;
        let epochs = self.epochs.lock().clone();
        let sequencers = self.sequencers.lock().clone();
        if sequencers.is_empty() {
            return Ok(epochs);
        }
        Ok(epochs.with_sequencers(sequencers, self.finalized()).expect("valid"))
    }
}

/// What was posted to L1 as a script, with the headers that it made.
pub struct PostedRuns {
    l1: Arc<ScriptedL1>,
    pub runs: Mutex<Vec<Posting>>,
}

impl PostedRuns {
    pub fn new(l1: Arc<ScriptedL1>) -> Arc<Self> {
        Arc::new(Self { l1, runs: Mutex::default() })
    }

    /// Posts certified headers with their data in the next block, which is final at once.
    pub async fn post(&self, running: &super::Running<'_>, first: u64, last: u64) {
        let (mut batches, mut certificate) = (Vec::new(), None);
        for number in first..=last {
            let info = running.batch(number).await;
            batches.push(info.sealed.decode().expect("a batch"));
            certificate = info.certificate.map(|certificate| certificate.decode().expect("a certificate"));
        }
        assert!(certificate.is_some(), "the last one is certified");
        let posting = posting(self.l1.advance(), batches, certificate);
        self.runs.lock().push(posting);
    }
}

fn posting(l1_block: u64, batches: Vec<SealedBatch>, certificate: Option<Certificate>) -> Posting {
    let headers: Vec<BatchHeader> = batches.iter().map(|batch| batch.header).collect();
    let run = PostedRun::new(headers.clone(), l1_block).expect("headers").run;
    let data = PostedData::of(batches);
    Posting { l1_block, transaction: B256::ZERO, runs: vec![run], headers, certificate, data }
}

#[async_trait]
impl L1Reader for PostedRuns {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        self.l1.up()?;
        Ok(l1_block(self.l1.finalized()))
    }

    async fn postings(&self, after: u64, through: u64) -> Result<Vec<Posting>, L1Error> {
        self.l1.up()?;
        let mut all = self.runs.lock().clone();
        let made = self.l1.state.lock().l1_headers.clone();
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

/// The committee's members as a script: what each holds, and who is silent.
#[derive(Default)]
pub struct ScriptedCommittee {
    pub held: Mutex<BTreeMap<u16, BTreeMap<u64, HeldBatch>>>,
    pub silent: Mutex<BTreeSet<u16>>,
    /// Members that claim to hold this number.
    pub boasts: Mutex<BTreeMap<u16, u64>>,
    /// Members that show this one, with another number, where they have none.
    pub forges: Mutex<BTreeMap<u16, HeldBatch>>,
}

#[async_trait]
impl Committee for ScriptedCommittee {
    fn members(&self) -> Vec<u16> {
        (1..=super::MEMBERS).collect()
    }

    async fn highest(&self, member: u16) -> Result<u64, MemberError> {
        if self.silent.lock().contains(&member) {
            return Err(MemberError("scripted silence".to_owned()));
        }
        let held = self.held.lock().get(&member).and_then(|held| held.keys().next_back().copied());
        Ok(self.boasts.lock().get(&member).copied().or(held).unwrap_or_default())
    }

    async fn sealed(&self, member: u16, number: u64) -> Result<Option<HeldBatch>, MemberError> {
        let held = self.held.lock().get(&member).and_then(|held| held.get(&number).cloned());
        Ok(held.or_else(|| {
            let mut forged = self.forges.lock().get(&member)?.clone();
            forged.sealed.header.number = number;
            Some(forged)
        }))
    }
}

/// The inbox as a script.
pub struct ScriptedInbox {
    head: Mutex<PostedHead>,
    pub runs: Mutex<Vec<(u64, u64)>>,
    pub faults: Mutex<Vec<L1Error>>,
    /// Whether it takes no run.
    pub away: AtomicBool,
    /// The next run's headers go out, its data does not follow.
    pub lose_data: AtomicBool,
    pub data: Mutex<Vec<(u64, u64)>>,
    /// The next run arrives whole, and whoever posted it does not hear of it.
    pub lose_answer: AtomicBool,
    /// The newest block.
    pub newest: AtomicU64,
    /// Blocks after this one are not final.
    pub finality: Mutex<u64>,
    /// The block that data is in.
    data_blocks: Mutex<BTreeMap<(u64, u64), u64>>,
    /// Postings up to this number are final.
    pub final_number: Mutex<u64>,
    /// Nobody can say which data is there.
    pub unreadable: AtomicBool,
    /// A server that lags behind gives so many answers after the first run, and this is its head.
    pub lagging: Mutex<Option<(u64, PostedHead)>>,
    /// The next run arrives after L1 got this head, and passes over all of it.
    pub passes_over: Mutex<Option<PostedHead>>,
    /// What was posted, as accusations are answered from it.
    pub headers: Mutex<Vec<PostedRun>>,
    /// Open accusations: by envelope and hash of the item the number up to which it was promised.
    pub accusations: Mutex<BTreeMap<(B256, B256), u64>>,
    /// Every answer that was sent: envelope and batch.
    pub answers: Mutex<Vec<(B256, u64)>>,
    pub answer_faults: Mutex<Vec<L1Error>>,
    /// Counts the looks for accusations.
    pub looks: tokio::sync::watch::Sender<u64>,
    /// Claims of L2 blocks, and the lengths of the calls.
    pub outputs: Mutex<Vec<Output>>,
    pub proposals: Mutex<Vec<usize>>,
    pub output_faults: Mutex<Vec<L1Error>>,
    /// Counts the looks for what can be claimed.
    pub output_looks: tokio::sync::watch::Sender<u64>,
    /// Whether the announced end of the epoch was taken back a moment ago.
    pub taken_back: AtomicBool,
    /// Numbers of the headers that L1 was made to make, each the last of its epoch.
    pub ended: tokio::sync::watch::Sender<Vec<u64>>,
    pub posted: tokio::sync::watch::Sender<u64>,
    pub attempts: tokio::sync::watch::Sender<u64>,
}

impl ScriptedInbox {
    pub fn new(genesis: B256) -> Arc<Self> {
        Arc::new(Self {
            head: Mutex::new(PostedHead { number: 0, hash: genesis, ..PostedHead::default() }),
            runs: Mutex::default(),
            faults: Mutex::default(),
            away: AtomicBool::new(false),
            lose_data: AtomicBool::new(false),
            lose_answer: AtomicBool::new(false),
            newest: AtomicU64::new(0),
            finality: Mutex::new(u64::MAX),
            data_blocks: Mutex::default(),
            data: Mutex::default(),
            final_number: Mutex::new(u64::MAX),
            unreadable: AtomicBool::new(false),
            lagging: Mutex::default(),
            passes_over: Mutex::default(),
            headers: Mutex::default(),
            accusations: Mutex::default(),
            answers: Mutex::default(),
            answer_faults: Mutex::default(),
            looks: tokio::sync::watch::Sender::new(0),
            outputs: Mutex::default(),
            proposals: Mutex::default(),
            output_faults: Mutex::default(),
            output_looks: tokio::sync::watch::Sender::new(0),
            taken_back: AtomicBool::new(false),
            ended: tokio::sync::watch::Sender::new(Vec::new()),
            posted: tokio::sync::watch::Sender::new(0),
            attempts: tokio::sync::watch::Sender::new(0),
        })
    }

    pub fn set_head(&self, number: u64, hash: B256) {
        *self.head.lock() = PostedHead { number, hash, ..PostedHead::default() };
        self.posted.send_replace(number);
    }

    pub fn head(&self) -> PostedHead {
        PostedHead { block: self.newest.load(Ordering::SeqCst), ..*self.head.lock() }
    }

    /// A new block.
    fn next_block(&self) -> u64 {
        self.newest.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn put_data(&self, span: (u64, u64)) -> u64 {
        let block = self.next_block();
        self.data.lock().push(span);
        self.data_blocks.lock().insert(span, block);
        block
    }

    fn is_final(&self, block: u64) -> bool {
        block <= *self.finality.lock()
    }
}

#[async_trait]
impl L1Reader for ScriptedInbox {
    async fn posted_head(&self) -> Result<PostedHead, L1Error> {
        self.attempts.send_modify(|count| *count += 1);
        let mut lagging = self.lagging.lock();
        if let Some((answers, before)) = lagging.take().filter(|(answers, _)| *answers > 0) {
            let there = self.runs.lock().len() as u64;
            // The server that lags answers once there is something that it has not seen.
            *lagging = Some((answers - u64::from(there > 0), before));
            return Ok(before);
        }
        Ok(self.head())
    }

    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        // L1 goes on with every question.
        Ok(l1_block(self.next_block().min(*self.finality.lock())))
    }

    async fn open_accusations(&self, _since: u64) -> Result<Vec<OpenAccusation>, L1Error> {
        self.looks.send_modify(|count| *count += 1);
        let open = self.accusations.lock().clone();
        let accusation = |((envelope_id, item_hash), seal_by)| OpenAccusation {
            promise: GivenPromise {
                sequencer: super::sequencer_key().address(),
                envelope_id,
                item_hash,
                seal_by,
            },
            answer_until: 99,
        };
        Ok(open.into_iter().map(accusation).collect())
    }

    async fn run_of(&self, number: u64, _since: u64) -> Result<Option<PostedRun>, L1Error> {
        Ok(self.headers.lock().iter().find(|run| run.header(number).is_some()).cloned())
    }

    async fn output_standing(&self) -> Result<OutputStanding, L1Error> {
        self.output_looks.send_modify(|count| *count += 1);
        let head = self.headers.lock().last().and_then(|run| run.headers.last().copied());
        Ok(OutputStanding {
            last_block: self.outputs.lock().last().map_or(0, |output| output.l2_block),
            head: head.map_or(0, |header| header.number),
            head_timestamp_ms: head.map_or(0, |header| header.timestamp_ms),
        })
    }
}

fn sent(transaction: B256, block: u64) -> Sent {
    Sent { transaction, block, gas_used: 0 }
}

#[async_trait]
impl L1Submitter for ScriptedInbox {
    fn account(&self) -> Address {
        super::sequencer_key().address()
    }

    fn reader(&self) -> &dyn L1Reader {
        self
    }

    async fn post(&self, batches: &[CodedBatch], certificate: &Certificate) -> Result<Sent, L1Error> {
        if self.away.load(Ordering::SeqCst) {
            return Err(L1Error::no_answer("scripted outage"));
        }
        if let Some(fault) = self.faults.lock().pop() {
            return Err(fault);
        }
        let mut head = self.head.lock();
        if let Some(other) = self.passes_over.lock().take() {
            *head = other;
            return Ok(sent(merkle::leaf(b"passed over"), self.next_block()));
        }
        for batch in batches {
            // What the contract checks: what is posted already is passed over.
            if self.runs.lock().iter().any(|(first, last)| {
                (*first..=*last).contains(&batch.sealed.header.number)
                    && batch.sealed.header.number <= head.number
            }) {
                continue;
            }
            if batch.sealed.header.number != head.number + 1 || batch.sealed.header.parent_hash != head.hash {
                return Err(L1Error::refused("not the next header"));
            }
            *head = PostedHead {
                number: batch.sealed.header.number,
                hash: batch.sealed.header.hash(),
                ..PostedHead::default()
            };
        }
        if (certificate.number, certificate.header_hash) != (head.number, head.hash) {
            return Err(L1Error::refused("certificate of another header"));
        }
        let first = batches[0].sealed.header.number;
        let headers = batches.iter().map(|batch| batch.sealed.header).collect();
        self.headers.lock().extend(PostedRun::new(headers, 7));
        self.runs.lock().push((first, head.number));
        self.posted.send_replace(head.number);
        if self.lose_data.swap(false, Ordering::SeqCst) {
            return Err(L1Error::no_answer("the data did not follow"));
        }
        let block = self.put_data((first, head.number));
        if self.lose_answer.swap(false, Ordering::SeqCst) {
            return Err(L1Error::no_answer("nobody answers"));
        }
        Ok(sent(merkle::leaf(&certificate.encode()), block))
    }

    async fn post_data(&self, batches: &[CodedBatch]) -> Result<Sent, L1Error> {
        let (first, last) =
            (batches[0].sealed.header.number, batches[batches.len() - 1].sealed.header.number);
        let block = self.put_data((first, last));
        Ok(sent(merkle::leaf(b"data"), block))
    }

    async fn lacks_new_data(&self, headers: &[BatchHeader]) -> Result<bool, L1Error> {
        let span = (headers[0].number, headers[headers.len() - 1].number);
        Ok(!self.data.lock().contains(&span))
    }

    async fn end_at_head(&self, head: &BatchHeader) -> Result<Option<Sent>, L1Error> {
        let number = head.number + 1;
        let mut posted = self.head.lock();
        if self.taken_back.load(Ordering::SeqCst) {
            return Ok(None);
        }
        if posted.hash != head.hash() {
            // As the contract refuses it; and the attempt is paid for.
            self.ended.send_modify(|ended| ended.push(number));
            return Err(L1Error::refused("not after L1's head"));
        }
        *posted = PostedHead { number, hash: merkle::leaf(b"made by L1"), ..PostedHead::default() };
        self.ended.send_modify(|ended| ended.push(number));
        Ok(Some(sent(merkle::leaf(b"the end"), self.next_block())))
    }

    async fn data_standing(&self, above: u64, after: u64) -> Result<DataStanding, L1Error> {
        if self.unreadable.load(Ordering::SeqCst) {
            return Err(L1Error::no_answer("scripted"));
        }
        let through = self.head().number.min(*self.final_number.lock()).max(above);
        let (runs, data, blocks) = (self.runs.lock(), self.data.lock(), self.data_blocks.lock());
        let mut standing = DataStanding { through, block: after, ..DataStanding::default() };
        for run in runs.iter().filter(|run| run.1 <= through && run.1 > above) {
            match blocks.get(run).filter(|_| data.contains(run)) {
                None => standing.lacking.push(*run),
                Some(block) if !self.is_final(*block) => {
                    standing.awaited = standing.awaited.max(Some(*block))
                }
                Some(_) => {}
            }
        }
        Ok(standing)
    }

    async fn answer_omission(&self, answer: &OmissionAnswer) -> Result<Sent, L1Error> {
        self.answers.lock().push((answer.envelope_id(), answer.number()));
        if let Some(fault) = self.answer_faults.lock().pop() {
            return Err(fault);
        }
        let mut open = self.accusations.lock();
        // What the contract checks beside the proofs, which `OmissionAnswer` has checked.
        let Some(seal_by) = open.get(&(answer.envelope_id(), answer.item_hash())) else {
            return Err(L1Error::refused("no open accusation"));
        };
        if answer.number() > *seal_by {
            return Err(L1Error::refused("sealed too late"));
        }
        open.remove(&(answer.envelope_id(), answer.item_hash()));
        Ok(sent(merkle::leaf(b"answer"), self.newest.load(Ordering::SeqCst)))
    }

    async fn propose_outputs(&self, proposed: &[Output]) -> Result<Sent, L1Error> {
        if let Some(fault) = self.output_faults.lock().pop() {
            return Err(fault);
        }
        let standing = self.output_standing().await?;
        for (output, expected) in proposed.iter().zip(standing.last_block + 1..) {
            // What the contract checks.
            let early = standing.head_timestamp_ms < (output.timestamp + 10) * 1_000;
            if output.l2_block != expected || output.batch == 0 || output.batch > standing.head || early {
                return Err(L1Error::refused(format!("{output:?}")));
            }
        }
        self.outputs.lock().extend(proposed);
        self.proposals.lock().push(proposed.len());
        Ok(sent(merkle::leaf(b"outputs"), self.newest.load(Ordering::SeqCst)))
    }
}

/// Executes nothing, deterministically: a block's hash is a function of parent, inputs and list.
pub struct ScriptedExecution {
    blocks: Mutex<BTreeMap<u64, BlockId>>,
    down: AtomicBool,
    /// It is of another version.
    pub other_rules: AtomicBool,
    pub lists: Mutex<Vec<Vec<Bytes>>>,
    /// The L1 deposits of each block.
    pub deposits: Mutex<Vec<Vec<Bytes>>>,
    /// The block that it holds for final.
    finalized: AtomicU64,
}

impl ScriptedExecution {
    pub fn new() -> Arc<Self> {
        let genesis = BlockId { number: 0, hash: merkle::leaf(b"genesis block"), timestamp: 0 };
        Arc::new(Self {
            blocks: Mutex::new(BTreeMap::from([(0, genesis)])),
            down: AtomicBool::new(false),
            other_rules: AtomicBool::new(false),
            lists: Mutex::default(),
            deposits: Mutex::default(),
            finalized: AtomicU64::new(0),
        })
    }

    /// The client holds this block for final.
    pub fn finalize(&self, number: u64) {
        self.finalized.store(number, Ordering::SeqCst);
    }

    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    /// Forgets everything above a block, as a killed client does.
    pub fn lose_blocks_above(&self, number: u64) {
        self.blocks.lock().retain(|kept, _| *kept <= number);
    }

    fn up(&self, method: &str) -> Result<(), EngineError> {
        if self.down.load(Ordering::SeqCst) {
            let reason = "scripted outage".to_owned();
            return Err(TransportError::Unreachable { method: method.to_owned(), reason }.into());
        }
        Ok(())
    }
}

fn payload(parent: B256, id: BlockId, list: &[Bytes]) -> StoredPayload {
    let text = json!({
        "version": 1,
        "parentBeaconBlockRoot": B256::ZERO,
        "executionPayload": {
            "parentHash": parent, "feeRecipient": Address::ZERO, "stateRoot": id.hash, "receiptsRoot": B256::ZERO,
            "logsBloom": "0x", "prevRandao": B256::ZERO, "blockNumber": format!("{:#x}", id.number),
            "gasLimit": "0x1", "gasUsed": "0x0", "timestamp": format!("{:#x}", id.timestamp), "extraData": "0x",
            "baseFeePerGas": "0x0", "blockHash": id.hash, "transactions": list, "withdrawals": [],
            "blobGasUsed": "0x0", "excessBlobGas": "0x0", "withdrawalsRoot": B256::ZERO,
        },
    });
    StoredPayload::decode(text.to_string().as_bytes()).expect("the payload above is one")
}

#[async_trait]
impl ExecutionClient for ScriptedExecution {
    async fn ensure_compatible(&self, chain_id: u64) -> Result<(), EngineError> {
        if self.other_rules.load(Ordering::SeqCst) {
            let reason = format!("scripted: not the rules of chain {chain_id}");
            return Err(EngineError::IncompatibleClient { reason });
        }
        Ok(())
    }

    async fn head(&self) -> Result<BlockId, EngineError> {
        self.up("head")?;
        Ok(*self.blocks.lock().last_key_value().expect("genesis").1)
    }

    async fn block(&self, number: u64) -> Result<Option<BlockId>, EngineError> {
        self.up("block")?;
        Ok(self.blocks.lock().get(&number).copied())
    }

    async fn execute(
        &self,
        parent: B256,
        inputs: &BlockInputs,
        transactions: &[Bytes],
    ) -> Result<ExecutedBlock, EngineError> {
        self.up("execute")?;
        let mut blocks = self.blocks.lock();
        let Some(below) = blocks.values().find(|block| block.hash == parent).copied() else {
            return Err(EngineError::UnknownBlock { hash: parent });
        };
        let mut data =
            [parent.as_slice(), inputs.prev_randao.as_slice(), &inputs.timestamp.to_be_bytes()].concat();
        data.extend(transactions.iter().flat_map(|raw| raw.to_vec()));
        let id = BlockId { number: below.number + 1, hash: merkle::leaf(&data), timestamp: inputs.timestamp };
        blocks.retain(|number, _| *number <= below.number);
        blocks.insert(id.number, id);
        self.lists.lock().push(transactions.to_vec());
        self.deposits.lock().push(inputs.l1_deposits.clone());
        Ok(ExecutedBlock {
            number: id.number,
            hash: id.hash,
            parent_hash: parent,
            state_root: id.hash,
            timestamp: id.timestamp,
            transactions: transactions.iter().map(|raw| merkle::leaf(raw)).collect(),
            skipped: Vec::new(),
            gas_used: 0,
            payload: payload(parent, id, transactions),
        })
    }

    async fn import(&self, payload: &StoredPayload) -> Result<(), EngineError> {
        self.up("import")?;
        let mut blocks = self.blocks.lock();
        if !blocks.values().any(|block| block.hash == payload.parent_hash()) {
            return Err(EngineError::UnknownBlock { hash: payload.parent_hash() });
        }
        let id = payload.id();
        blocks.retain(|number, _| *number < id.number);
        blocks.insert(id.number, id);
        Ok(())
    }

    async fn set_finality(&self, _safe: B256, _finalized: B256) -> Result<(), EngineError> {
        self.up("set_finality")
    }

    async fn read(&self, method: &str, params: Value) -> Result<Value, ReadError> {
        if method == "eth_getBlockByNumber" && params[0] == "finalized" {
            return Ok(json!({ "number": format!("{:#x}", self.finalized.load(Ordering::SeqCst)) }));
        }
        if method == "eth_getBlockByHash" {
            return Err(ReadError::Rpc { code: 3, message: "scripted error".to_owned(), data: None });
        }
        Ok(json!({ "method": method, "params": params }))
    }
}
