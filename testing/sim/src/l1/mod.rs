//! A model of L1 and of the contracts on it, behind the traits through which roles know them.
//!
//! Blocks come at a steady pace and become final some blocks later. What is sent stands in the next block, in the order
//! in which it came, whether or not its sender lives to hear of it. The model holds what the contracts check of posted
//! runs (order, parent, certificate) and of claimed outputs. Blocks that are not final can give way to others, and what
//! they held then stands in the next block, or nowhere. Its forced queue takes transactions. It has no header that L1 makes
//! itself, no registry of hints and no dispute yet; what the roles ask of those is answered with "there is none".

mod reads;
mod writes;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use blindfold_chain::{L1Error, L1Origin};
use blindfold_l1::{CodedBatch, Output, PostedHead, PostedRun};
use blindfold_protocol::{
    Address, B256, BatchHeader, Certificate, Deployment, Deposit, Epochs, ForcedEntry, LedgerEvent,
    SealedBatch, certificate, keccak256, merkle,
};
use blindfold_runtime::{Instant, now};
use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    time::{sleep, sleep_until},
};

use crate::{
    Life, Role, START_MS, Trace,
    checks::Checks,
    faults::{Fault, Faults},
    plants::Plant,
};

/// Blocks that there are at the beginning.
const FIRST_BLOCKS: u64 = 200;
/// How long an answer takes, in milliseconds.
const ANSWER_MS: u64 = 3;
/// How long it takes to learn that there is none, in milliseconds.
const NO_ANSWER_MS: u64 = 500;
/// A server lags so many blocks at most.
const MAX_LAG_BLOCKS: usize = 16;

/// L1. Clones are the same.
#[derive(Clone)]
pub struct L1(Arc<Shared>);

struct Shared {
    start: Instant,
    block_ms: u64,
    finality_blocks: u64,
    deployment: Deployment,
    epochs: Epochs,
    keys: BTreeMap<u64, Vec<u8>>,
    plant: Option<Plant>,
    faults: Faults,
    trace: Trace,
    checks: Checks,
    state: Mutex<State>,
    /// What stood after each of the last blocks, the newest first.
    before: Mutex<VecDeque<State>>,
    waiting: Mutex<VecDeque<Waiting>>,
    questions: AtomicU64,
    /// The highest head that the sequencer was told, where it has that bug.
    kept_head: Mutex<Option<PostedHead>>,
}

#[derive(Clone)]
struct State {
    newest: u64,
    finalized: u64,
    ledger: Vec<LedgerEvent>,
    posted: Vec<Arc<Posted>>,
    /// Each with the block of its claim.
    outputs: Vec<(u64, Output)>,
    forced: Vec<ForcedEntry>,
    /// The first block of each branch that took the place of another one.
    forks: Vec<u64>,
}

/// A run as it was posted, with its data.
struct Posted {
    run: PostedRun,
    batches: Vec<SealedBatch>,
    certificate: Certificate,
    transaction: B256,
}

/// What is sent to L1.
enum Transaction {
    Post { batches: Vec<CodedBatch>, certificate: Box<Certificate> },
    Propose(Vec<Output>),
    Force { gas_limit: u64, raw: Vec<u8> },
}

struct Waiting {
    from: Role,
    transaction: Transaction,
    outcome: oneshot::Sender<Result<Mined, L1Error>>,
}

/// Where a transaction stands.
#[derive(Clone, Copy)]
struct Mined {
    transaction: B256,
    block: u64,
}

/// What stands on L1 at the beginning.
pub struct Beginning {
    /// The contracts.
    pub deployment: Deployment,
    /// Registered epochs.
    pub epochs: Epochs,
    /// Their encryption keys.
    pub keys: BTreeMap<u64, Vec<u8>>,
    /// Who has a fee account.
    pub payers: Vec<Address>,
    /// With how much, in wei.
    pub amount: u128,
}

/// How L1 goes on.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Pace {
    /// Between two blocks.
    pub block_ms: u64,
    /// How many blocks later a block is final.
    pub finality_blocks: u64,
}

impl L1 {
    /// L1 with these epochs and these deposits, which are final already.
    pub fn new(
        pace: Pace,
        beginning: Beginning,
        plant: Option<Plant>,
        faults: Faults,
        trace: Trace,
        checks: Checks,
    ) -> Self {
        let Beginning { deployment, epochs, keys, payers, amount } = beginning;
        let deposit = |payer: &Address| LedgerEvent::Deposit(Deposit { payer: *payer, amount, l1_block: 2 });
        let state = State {
            newest: FIRST_BLOCKS,
            finalized: FIRST_BLOCKS - pace.finality_blocks,
            ledger: payers.iter().map(deposit).collect(),
            posted: Vec::new(),
            outputs: Vec::new(),
            forced: Vec::new(),
            forks: Vec::new(),
        };
        let Pace { block_ms, finality_blocks } = pace;
        let state = Mutex::new(state);
        Self(Arc::new(Shared {
            start: now(),
            block_ms,
            finality_blocks,
            deployment,
            epochs,
            keys,
            plant,
            faults,
            trace,
            checks,
            state,
            before: Mutex::default(),
            waiting: Mutex::default(),
            questions: AtomicU64::new(0),
            kept_head: Mutex::default(),
        }))
    }

    /// Makes blocks for ever.
    pub async fn run(self) {
        for step in 1.. {
            sleep_until(self.0.start + Duration::from_millis(step * self.0.block_ms)).await;
            self.make_block();
        }
    }

    /// The number of the newest block.
    pub fn newest(&self) -> u64 {
        self.0.state.lock().newest
    }

    /// The number of the newest header that was posted.
    pub fn posted(&self) -> u64 {
        self.0.state.lock().head(&self.0.deployment).0
    }

    /// How many entries the forced queue has, and how many of them are final.
    pub fn forced(&self) -> (usize, usize) {
        let state = self.0.state.lock();
        let final_entries = state.forced.iter().filter(|entry| entry.enqueued_at <= state.finalized);
        (state.forced.len(), final_entries.count())
    }

    /// One life's way to L1.
    pub fn view(&self, life: &Life) -> View {
        View { l1: self.clone(), life: life.clone() }
    }

    fn make_block(&self) {
        let stalls = self.0.faults.any(|fault| *fault == Fault::FinalityStalls);
        let mut state = self.0.state.lock();
        self.remember(&state);
        state.newest += 1;
        if !stalls {
            state.finalized = state.newest.saturating_sub(self.0.finality_blocks).max(state.finalized);
        }
        let (block, finalized) = (state.newest, state.finalized);
        let mut lines = Vec::new();
        let waiting = std::mem::take(&mut *self.0.waiting.lock());
        for Waiting { from, transaction, outcome } in waiting {
            let mined = self.execute(&mut state, block, transaction);
            let told = mined.as_ref().map_or_else(ToString::to_string, |(what, _)| what.clone());
            lines.push(format!("block {block}: {from}: {told}"));
            // Whoever sent it may be gone.
            let _ = outcome.send(mined.map(|(_, mined)| mined));
        }
        drop(state);
        self.0.trace.event(Role::L1, format_args!("block {block}, final {finalized}"));
        lines.iter().for_each(|line| self.0.trace.event(Role::L1, format_args!("{line}")));
    }

    fn remember(&self, state: &State) {
        let mut before = self.0.before.lock();
        before.push_front(state.clone());
        before.truncate(MAX_LAG_BLOCKS);
    }

    /// The newest blocks give way to others, as far as they are not final. With `again` the headers that were posted in them,
    /// and what was forced, stand in the last of the new ones.
    pub fn reorganize(&self, blocks: u64, again: bool) {
        let mut state = self.0.state.lock();
        let first = state.newest.saturating_sub(blocks).max(state.finalized) + 1;
        if first > state.newest {
            return;
        }
        let newest = state.newest;
        state.forks.push(first);
        state.outputs.retain(|(block, _)| *block < first);
        if !again {
            state.forced.retain(|entry| entry.enqueued_at < first);
        }
        for entry in state.forced.iter_mut().filter(|entry| entry.enqueued_at >= first) {
            entry.enqueued_at = newest;
        }
        let kept = state.posted.iter().take_while(|posted| posted.run.run.posted_at < first).count();
        let dropped = state.posted.split_off(kept);
        let runs = dropped.len();
        for posted in dropped.into_iter().filter(|_| again) {
            let Some(run) = PostedRun::new(posted.run.headers.clone(), newest) else { continue };
            let Posted { batches, certificate, transaction, .. } = &*posted;
            let (batches, certificate, transaction) = (batches.clone(), *certificate, *transaction);
            state.posted.push(Arc::new(Posted { run, batches, certificate, transaction }));
        }
        drop(state);
        // No server that lags mixes two branches.
        self.0.before.lock().retain(|before| before.newest < first);
        let fate = if again { "moved" } else { "gone" };
        self.0
            .trace
            .event(Role::L1, format_args!("blocks {first}..={newest} are others, {runs} runs {fate}"));
    }

    fn execute(
        &self,
        state: &mut State,
        block: u64,
        transaction: Transaction,
    ) -> Result<(String, Mined), L1Error> {
        let refused = |why: &str| Err(L1Error::refused(why.to_owned()));
        match transaction {
            Transaction::Post { batches, certificate } => {
                let (head, hash) = state.head(&self.0.deployment);
                // What is posted already is passed over.
                let fresh: Vec<&CodedBatch> =
                    batches.iter().filter(|batch| batch.sealed.header.number > head).collect();
                let last = batches.last().map(|batch| batch.sealed.header);
                let signed = last.map(|last| (last.number, last.hash()));
                if signed != Some((certificate.number, certificate.header_hash)) {
                    return refused("the certificate is of another header");
                }
                let transaction = keccak256(certificate.header_hash);
                let mined = Mined { transaction, block };
                let Some(first) = fresh.first().map(|batch| batch.sealed.header) else {
                    return Ok(("passed over a run".to_owned(), mined));
                };
                if first.number != head + 1 || first.parent_hash != hash {
                    return refused("not the next header");
                }
                let Some(epoch) = self.0.epochs.at(certificate.number) else {
                    return refused("no epoch");
                };
                if certificate::verify(&certificate, epoch, &self.0.deployment).is_err() {
                    return refused("the certificate does not verify");
                }
                let headers: Vec<BatchHeader> = fresh.iter().map(|batch| batch.sealed.header).collect();
                let chained = headers.windows(2).all(|pair| {
                    pair[1].number == pair[0].number + 1 && pair[1].parent_hash == pair[0].hash()
                });
                let Some(run) = PostedRun::new(headers, block).filter(|_| chained) else {
                    return refused("the headers are no chain");
                };
                run.headers.iter().for_each(|header| self.0.checks.posted(header.number, header.hash()));
                let told = format!("posted {}..={}", run.run.first, run.run.last);
                let batches = fresh.into_iter().map(|batch| batch.sealed.clone()).collect();
                let certificate = *certificate;
                state.posted.push(Arc::new(Posted { run, batches, certificate, transaction }));
                Ok((told, mined))
            }
            Transaction::Force { gas_limit, raw } => {
                let index = state.forced.len() as u64;
                let entry = ForcedEntry::transaction(index, gas_limit, raw, block);
                let transaction = entry.item_hash();
                state.forced.push(entry);
                Ok((format!("forced {index}"), Mined { transaction, block }))
            }
            Transaction::Propose(outputs) => {
                let head = state.posted.last().and_then(|posted| posted.run.headers.last()).copied();
                let claimed = state.outputs.last().map_or(0, |(_, output)| output.l2_block);
                for (output, expected) in outputs.iter().zip(claimed + 1..) {
                    let Some(head) = head else { return refused("nothing is posted") };
                    let early = head.timestamp_ms < (output.timestamp + 10) * 1_000;
                    if output.l2_block != expected || output.batch == 0 || output.batch > head.number || early
                    {
                        return refused("no output to be claimed");
                    }
                }
                outputs.iter().for_each(|output| self.0.checks.claimed(output.l2_block, output.block_hash));
                let told = format!("claimed {} blocks after {claimed}", outputs.len());
                let transaction = merkle::leaf(&claimed.to_be_bytes());
                state.outputs.extend(outputs.into_iter().map(|output| (block, output)));
                Ok((told, Mined { transaction, block }))
            }
        }
    }

    /// The block of a number.
    fn block(&self, state: &State, number: u64) -> L1Origin {
        let branch = state.forks.iter().rposition(|first| *first <= number).map_or(0, |index| index + 1);
        // Block `FIRST_BLOCKS` is made at the beginning.
        let at_ms = START_MS + number * self.0.block_ms - FIRST_BLOCKS * self.0.block_ms;
        L1Origin {
            number,
            hash: merkle::leaf(&[number.to_be_bytes(), branch.to_be_bytes()].concat()),
            timestamp: at_ms / 1_000,
            base_fee: 7,
            blob_base_fee: 1,
            parent_beacon_block_root: B256::ZERO,
        }
    }
}

impl State {
    /// The newest posted header.
    fn head(&self, deployment: &Deployment) -> (u64, B256) {
        let newest = self.posted.last().and_then(|posted| posted.run.headers.last());
        newest.map_or_else(|| (0, deployment.genesis_hash()), |header| (header.number, header.hash()))
    }

    fn posting_of(&self, number: u64) -> Option<&Posted> {
        self.posted.iter().map(|posted| &**posted).find(|posted| posted.run.header(number).is_some())
    }
}

/// One life's way to L1.
#[derive(Clone)]
pub struct View {
    l1: L1,
    life: Life,
}

impl View {
    /// Whether this is the one who has this bug.
    fn has(&self, plant: Plant, role: Role) -> bool {
        self.l1.0.plant == Some(plant) && self.life.role == role
    }

    /// Has L1 force a transaction in, and waits until it stands in a block.
    ///
    /// # Errors
    /// When L1 does not answer; it may have heard of it.
    pub async fn force(&self, gas_limit: u64, raw: Vec<u8>) -> Result<(), L1Error> {
        self.send(Transaction::Force { gas_limit, raw }).await.map(|_| ())
    }

    async fn reach(&self) -> Result<(), L1Error> {
        self.life.check().await;
        let (mut down, mut nonsense) = (false, false);
        self.l1.0.faults.each(|fault, _| match fault {
            Fault::L1Down { role } => down |= role.is_none_or(|role| role == self.life.role),
            Fault::L1Nonsense { role } => nonsense |= *role == self.life.role,
            _ => {}
        });
        sleep(Duration::from_millis(if down { NO_ANSWER_MS } else { ANSWER_MS })).await;
        self.life.check().await;
        match (down, nonsense) {
            (true, _) => Err(L1Error::no_answer("no answer")),
            (_, true) => Err(L1Error::nonsense("no block has such a form")),
            (false, false) => Ok(()),
        }
    }

    async fn read<T>(&self, read: impl FnOnce(&State) -> T) -> Result<T, L1Error> {
        self.reach().await?;
        Ok(read(&self.l1.0.state.lock()))
    }

    /// Of the newest blocks, final or not: one of several servers may lag behind.
    async fn read_newest<T>(&self, read: impl FnOnce(&State) -> T) -> Result<T, L1Error> {
        self.reach().await?;
        let mut lag = 0;
        self.l1.0.faults.each(|fault, _| match fault {
            Fault::L1Lags { role, blocks } if role.is_none_or(|role| role == self.life.role) => {
                lag = lag.max(*blocks);
            }
            _ => {}
        });
        // Every other question reaches the server that lags.
        let turn = self.l1.0.questions.fetch_add(1, Ordering::Relaxed) % 2;
        if let Some(index) = lag.checked_sub(1).filter(|_| turn == 0)
            && let Some(before) = self.l1.0.before.lock().get(index)
        {
            return Ok(read(before));
        }
        Ok(read(&self.l1.0.state.lock()))
    }

    async fn send(&self, transaction: Transaction) -> Result<Mined, L1Error> {
        self.reach().await?;
        if self.has(Plant::NeverPosts, Role::Sequencer)
            && let Transaction::Post { certificate, .. } = &transaction
        {
            let block = self.l1.newest();
            return Ok(Mined { transaction: keccak256(certificate.header_hash), block });
        }
        let (outcome, mined) = oneshot::channel();
        self.l1.0.waiting.lock().push_back(Waiting { from: self.life.role, transaction, outcome });
        let mined = mined.await.map_err(|_| L1Error::no_answer("L1 is gone"))?;
        // The answer may not come through either.
        self.reach().await?;
        mined
    }
}
