//! A model of L1 and of the contracts on it, behind the traits through which roles know them.
//!
//! Blocks come at a steady pace and become final some blocks later. What is sent stands in the next block, in the order
//! in which it came, whether or not its sender lives to hear of it. Blocks that are not final can give way to others, and
//! what they held is then sent again, or lost. What the contracts check stands in `contracts` and `hints`. Bonds of
//! sequencers, accusations, epochs that end and deposits for L2 are not there: what roles ask of those is answered with
//! "there is none".

mod contracts;
mod hints;
#[doc(hidden)]
pub mod model;
mod reads;
mod writes;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use blindfold_chain::{FallbackHeader, L1Error, L1Origin};
use blindfold_l1::{HintEvidence, HintPosting, HintTree, Output, PostedEntry, PostedHead, RunReference};
use blindfold_protocol::{
    Address, B256, BatchHeader, Certificate, Deployment, Deposit, Epochs, HeaderId, L1Timing, LedgerEvent,
    SealedBatch, SignedHeader, keccak256, merkle,
};
use blindfold_runtime::{Instant, now};
use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    time::{sleep, sleep_until},
};

use crate::{
    Life, Role, START_MS, Trace,
    byzantine::Lie,
    checks::Checks,
    faults::{Fault, Faults},
    plants::Plant,
};
pub use hints::Judge;

use contracts::{Done, Rules, State, account};

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
    rules: Rules,
    makes_headers: bool,
    declares_void: AtomicBool,
    publishers: Vec<Role>,
    /// The roots of hints that were posted wrong on purpose.
    wrong: Mutex<BTreeSet<B256>>,
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

/// What is sent to L1.
#[derive(Clone, Debug)]
pub enum Transaction {
    /// Certified headers, with or without their batches.
    Post {
        /// The headers in order.
        headers: Arc<Vec<BatchHeader>>,
        /// Their batches.
        batches: Option<Arc<Vec<SealedBatch>>>,
        /// That of the last header.
        certificate: Box<Certificate>,
    },
    /// Batches of headers that are posted already.
    PostData(Arc<Vec<SealedBatch>>),
    /// L1 is to make the header after this one.
    MakeHeader(Box<BatchHeader>),
    /// Blocks are claimed.
    Propose(Vec<Output>),
    /// A transaction in the clear is to be forced in.
    Force {
        /// Gas that it may use.
        gas_limit: u64,
        /// Its bytes.
        raw: Vec<u8>,
    },
    /// More of a hint publisher's bond, in wei.
    Bond(u128),
    /// Hints of a posted run.
    PostHints {
        /// The run.
        run: RunReference,
        /// Its hints.
        hints: Arc<HintPosting>,
    },
    /// Hints whose window is over are its run's for good.
    FinalizeHints(u64),
    /// Hints whose run has others for good are closed.
    ReleaseHints(u64),
    /// Nobody posted hints of this run in time.
    Void(RunReference),
    /// To evidence that is shown later.
    Commit(B256),
    /// An entry of posted hints is wrong.
    Challenge {
        /// What shows it.
        evidence: Box<HintEvidence>,
        /// That of the commitment.
        salt: B256,
    },
    /// The sequencer signed two headers of one number.
    ShowHeaders {
        /// These.
        pair: Box<[SignedHeader; 2]>,
        /// That of the commitment.
        salt: B256,
    },
    /// The reward of a publisher or a challenger is paid out.
    ClaimReward,
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
    /// Their deadlines.
    pub timing: L1Timing,
    /// Whether somebody has L1 make headers whenever it does.
    pub makes_headers: bool,
    /// Whether somebody has L1 declare runs void whenever it does, from the beginning on.
    pub declares_void: bool,
    /// Who signs headers.
    pub sequencer: Address,
    /// Who posts hints.
    pub publishers: Vec<Role>,
    /// Judges hints.
    pub judge: Judge,
    /// Registered epochs.
    pub epochs: Epochs,
    /// Their encryption keys.
    pub keys: BTreeMap<u64, Vec<u8>>,
    /// Who has a fee account.
    pub payers: Vec<Address>,
    /// With how much, in wei.
    pub amount: u128,
}

/// What stands on L1.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// Entries of the forced queue that no posted header took.
    pub forced_items_wait: bool,
    /// Hints that can be challenged, or are invalidated.
    pub hints_open: bool,
    /// A header that L1 made a moment ago.
    pub header_not_final: bool,
    /// A header that L1 made.
    pub header_final: bool,
    /// A void run.
    pub run_void: bool,
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
        let Beginning { deployment, timing, makes_headers, declares_void, .. } = beginning;
        let Beginning { sequencer, publishers, judge, epochs, keys, payers, amount, .. } = beginning;
        let deposit = |payer: &Address| LedgerEvent::Deposit(Deposit { payer: *payer, amount, l1_block: 2 });
        let state = State {
            finalized: FIRST_BLOCKS - pace.finality_blocks,
            ledger: payers.iter().map(deposit).collect(),
            ..State::new(FIRST_BLOCKS, START_MS / 1_000, FIRST_BLOCKS)
        };
        let Pace { block_ms, finality_blocks } = pace;
        let state = Mutex::new(state);
        Self(Arc::new(Shared {
            start: now(),
            block_ms,
            finality_blocks,
            rules: Rules { deployment, epochs, sequencer, timing, judge },
            makes_headers,
            declares_void: AtomicBool::new(declares_void),
            publishers,
            wrong: Mutex::default(),
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
        self.0.state.lock().head_id(&self.0.rules.deployment).0
    }

    /// From now on an operator has L1 declare runs void whenever it does (`blindfold l1 void`): nothing else brings the
    /// chain past them.
    pub fn declare_void(&self) {
        self.0.declares_void.store(true, Ordering::Relaxed);
    }

    /// How many entries the forced queue has, and how many of them are final.
    pub fn forced(&self) -> (usize, usize) {
        let state = self.0.state.lock();
        let final_entries = state.forced.iter().filter(|entry| entry.enqueued_at <= state.finalized);
        (state.forced.len(), final_entries.count())
    }

    /// What stands on it.
    pub fn standing(&self) -> Standing {
        let state = self.0.state.lock();
        let taken = state.head().map_or(0, |head| head.forced_cursor);
        Standing {
            forced_items_wait: taken < state.forced.len() as u64,
            hints_open: state.hints.has_open(),
            header_not_final: state.made.iter().any(|made| made.l1_block > state.finalized),
            header_final: state.final_made().next().is_some(),
            run_void: !state.hints.void_runs(u64::MAX).is_empty(),
        }
    }

    /// The headers that L1 made in final blocks.
    pub fn made(&self) -> Vec<HeaderId> {
        let state = self.0.state.lock();
        let of = |made: &FallbackHeader| HeaderId { number: made.header.number, hash: made.header.hash() };
        state.final_made().map(of).collect()
    }

    /// The runs that it declared void in final blocks: first and last batch.
    pub fn void_runs(&self) -> Vec<(u64, u64)> {
        let state = self.0.state.lock();
        state.hints.void_runs(state.finalized)
    }

    /// One life's way to L1.
    pub fn view(&self, life: &Life) -> View {
        View { l1: self.clone(), life: life.clone() }
    }

    fn make_block(&self) {
        let stalls = self.0.faults.any(|fault| *fault == Fault::FinalityStalls);
        let mut state = self.0.state.lock();
        let mut before = self.0.before.lock();
        before.push_front(state.clone());
        before.truncate(MAX_LAG_BLOCKS);
        drop(before);
        state.newest += 1;
        state.time = self.time_of(state.newest);
        state.transactions.clear();
        if !stalls {
            let finalized = state.newest.saturating_sub(self.0.finality_blocks).max(state.finalized);
            self.finalize(&mut state, finalized);
        }
        let (block, finalized) = (state.newest, state.finalized);
        let mut lines = Vec::new();
        let waiting = std::mem::take(&mut *self.0.waiting.lock());
        for Waiting { from, transaction, outcome } in waiting {
            let mined = self.execute(&mut state, from, transaction);
            let message = mined.as_ref().map_or_else(ToString::to_string, |(what, _)| what.clone());
            lines.push(format!("block {block}: {from}: {message}"));
            // Whoever sent it may be gone.
            let _ = outcome.send(mined.map(|(_, mined)| mined));
        }
        if let Some(run) =
            state.void_is_due(&self.0.rules).filter(|_| self.0.declares_void.load(Ordering::Relaxed))
        {
            let (outcome, _) = oneshot::channel();
            let transaction = Transaction::Void(run);
            self.0.waiting.lock().push_back(Waiting { from: Role::World, transaction, outcome });
        }
        if self.0.makes_headers
            && state.header_is_due(&self.0.rules)
            && let Some(parent) = state.head().copied()
        {
            // In the block after the one that showed that it is due: others may be faster.
            let (outcome, _) = oneshot::channel();
            let transaction = Transaction::MakeHeader(Box::new(parent));
            self.0.waiting.lock().push_back(Waiting { from: Role::World, transaction, outcome });
        }
        drop(state);
        self.0.trace.event(Role::L1, format_args!("block {block}, final {finalized}"));
        lines.iter().for_each(|line| self.0.trace.event(Role::L1, format_args!("{line}")));
    }

    /// What blocks up to this one hold stands for good.
    fn finalize(&self, state: &mut State, finalized: u64) {
        let newly =
            state.made.iter().filter(|made| (state.finalized + 1..=finalized).contains(&made.l1_block));
        newly.for_each(|made| self.0.checks.made_by_l1(made.header.number, made.header.hash()));
        state.finalized = finalized;
    }

    /// The newest blocks give way to others, as far as they are not final. With `again` what stood in them stands in the last
    /// of the new ones, as far as it can.
    pub fn reorganize(&self, blocks: u64, again: bool) {
        let mut state = self.0.state.lock();
        let mut before = self.0.before.lock();
        let newest = state.newest;
        let first = newest.saturating_sub(blocks).max(state.finalized) + 1;
        let Some(kept) = before.iter().find(|before| before.newest + 1 == first).cloned() else { return };
        let gone = before.iter().rev().filter(|before| before.newest >= first).chain([&*state]);
        let gone: Vec<(Role, Transaction)> = gone.flat_map(|state| state.transactions.clone()).collect();
        // No server that lags mixes two branches.
        before.retain(|before| before.newest < first);
        drop(before);
        let (finalized, time) = (state.finalized, state.time);
        *state = State { newest, finalized, time, transactions: Vec::new(), ..kept };
        state.forks.push(first);
        let count = gone.len();
        let stand = match again {
            true => {
                gone.into_iter().filter_map(|(from, sent)| self.execute(&mut state, from, sent).ok()).count()
            }
            false => 0,
        };
        drop(state);
        let message =
            format_args!("blocks {first}..={newest} are others, {stand} of {count} transactions stand again");
        self.0.trace.event(Role::L1, message);
    }

    /// Executes a transaction in the newest block, and says in words what it did.
    fn execute(
        &self,
        state: &mut State,
        from: Role,
        transaction: Transaction,
    ) -> Result<(String, Mined), L1Error> {
        let (done, mined) = state.execute(&self.0.rules, account(from), &transaction)?;
        state.transactions.push((from, transaction));
        let checks = &self.0.checks;
        let message = match done {
            Done::Posted(posted) => {
                posted.run.headers.iter().for_each(|header| checks.posted(header.number, header.hash()));
                let data = if posted.batches.is_some() { "" } else { " without data" };
                format!("posted {}..={}{data}", posted.run.run.first, posted.run.run.last)
            }
            Done::Made(header) => {
                format!("made header {} with {} items", header.number, header.envelope_count)
            }
            Done::Claimed(outputs) => {
                outputs.iter().for_each(|output| checks.claimed(output.l2_block, output.block_hash));
                format!(
                    "claimed {} blocks from {:?}",
                    outputs.len(),
                    outputs.first().map(|output| output.l2_block)
                )
            }
            Done::Slashed(publisher) => {
                let role = self.0.publishers.iter().copied().find(|role| account(*role) == publisher);
                checks.slashed(role.unwrap_or(Role::World));
                format!("slashed hints of {}", role.unwrap_or(Role::World))
            }
            Done::Final(log) => {
                checks.final_hints(log.id, self.0.wrong.lock().contains(&log.root));
                format!("made hints {} of {}..={} final", log.id, log.first, log.last)
            }
            Done::Failed => {
                checks.challenge_failed(from);
                "challenged right hints".to_owned()
            }
            Done::Void(first, last) => {
                checks.declared_void(first, last);
                format!("declared {first}..={last} void")
            }
            Done::Equivocated(number) => {
                checks.slashed(Role::Sequencer);
                format!("showed two headers of {number}")
            }
            Done::Other(message) => message,
        };
        Ok((message, mined))
    }

    /// When the block of a number is made, in seconds.
    fn time_of(&self, number: u64) -> u64 {
        // Block `FIRST_BLOCKS` is made at the beginning.
        (START_MS + number * self.0.block_ms - FIRST_BLOCKS * self.0.block_ms) / 1_000
    }

    /// The block of a number.
    fn block(&self, state: &State, number: u64) -> L1Origin {
        let branch = state.forks.iter().rposition(|first| *first <= number).map_or(0, |index| index + 1);
        L1Origin {
            number,
            hash: merkle::leaf(&[number.to_be_bytes(), branch.to_be_bytes()].concat()),
            timestamp: self.time_of(number),
            base_fee: 7,
            blob_base_fee: 1,
            parent_beacon_block_root: B256::ZERO,
        }
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

    /// The hints that this one posts in place of these right ones: whoever lies about hints does so on L1, too.
    fn posted_hints_of(&self, first: u64, hints: &HintPosting) -> HintPosting {
        let mut posted = hints.clone();
        let role = self.life.role;
        let lies =
            |fault: &Fault| matches!(fault, Fault::Lies { role: who, how: Lie::WrongHints } if *who == role);
        if (self.l1.0.faults.any(lies) || self.has(Plant::PostsWrongHints, Role::Publisher(1)))
            && let Some(entry) = posted
                .batches
                .iter_mut()
                .flat_map(|batch| &mut batch.entries)
                .find(|entry| entry.kind == PostedEntry::KEY)
        {
            entry.key[0] ^= 1;
            self.l1.0.wrong.lock().insert(HintTree::new(&posted, first).root());
        }
        posted
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
