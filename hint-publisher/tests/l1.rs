//! Posting hints to L1: everything that a hint publisher does and leaves alone, on a scripted registry.

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use async_trait::async_trait;
use blindfold_bte::{CiphertextPoint, Opening, Portable};
use blindfold_chain::L1Origin;
use blindfold_hint_publisher::{
    HintPublisherMetrics,
    l1::{
        BatchSource, HintPoster, HintPosterDeps, L1PostingConfig, PostedRun, PostingError, Round,
        SourcedBatch,
    },
};
use blindfold_kit::{MAX_BATCH, Sealer, committee, envelope, l1, malformed, parameter_set, resigned};
use blindfold_l1::{
    DataError, HintData, HintEvent, HintPosting, L1Error, L1Reader, L1Submitter, PostedLog, PublisherBond,
    RegistryState, RunReference, Sent,
};
use blindfold_protocol::{
    Address, B256, BatchHints, Canonical, Envelope, EnvelopeError, HintEntry, L1Timing, SealedBatch,
    validity::{Verdict, sub_batches},
};
use blindfold_rpc::Readiness;
use parking_lot::Mutex;

const BOND: u128 = 100;
const WINDOW: u64 = 10;
const DEADLINE: u64 = 40;

fn me() -> Address {
    Address::repeat_byte(1)
}

fn other() -> Address {
    Address::repeat_byte(2)
}

/// The registry and the inbox, as far as postings go.
#[derive(Default)]
struct Contracts {
    newest: u64,
    /// Blocks behind the newest one that is final.
    lag: u64,
    runs: Vec<PostedRun>,
    /// With their blocks.
    events: Vec<(u64, HintEvent)>,
    data: BTreeMap<u64, Vec<BatchHints>>,
    bonds: BTreeMap<Address, u128>,
    settled: BTreeSet<u64>,
    posts: usize,
    /// What L1 answers to the next transactions; `false` after doing what it was asked for.
    failures: Vec<(L1Error, bool)>,
    /// What a rereading shows.
    reread: Option<Vec<BatchHints>>,
    /// Roots are given for this many entries at most.
    largest: Option<usize>,
}

impl Contracts {
    fn open(&self) -> Vec<PostedLog> {
        let state: RegistryState = self.events.iter().map(|(_, event)| event).collect();
        state.open().copied().collect()
    }

    /// Each in a block of its own: what was read of a final block never changes.
    fn tell(&mut self, event: HintEvent) {
        self.newest += 1;
        self.events.push((self.newest, event));
    }

    fn post_as(&mut self, publisher: Address, last: u64, hints: Vec<BatchHints>) -> PostedLog {
        let root = root_of(&hints);
        self.post_with(root, publisher, last, hints)
    }

    /// Where this hint publisher does not post.
    fn post_elsewhere(&mut self, publisher: Address, last: u64, hints: Vec<BatchHints>) {
        let root = elsewhere(root_of(&hints));
        self.post_with(root, publisher, last, hints);
    }

    fn post_with(&mut self, root: B256, publisher: Address, last: u64, hints: Vec<BatchHints>) -> PostedLog {
        let (id, block) = (self.data.len() as u64 + 1, self.newest + 1);
        let run = self.runs.iter().find(|run| run.last == last);
        let (first, transaction) = (run.map_or(last, |run| run.first), B256::with_last_byte(id as u8));
        let posting = PostedLog { id, first, last, publisher, l1_block: block, transaction, root };
        self.data.insert(id, hints);
        self.posts += 1;
        self.tell(HintEvent::Posted(posting));
        posting
    }

    fn open_of(&self, publisher: Address) -> usize {
        self.open().iter().filter(|posting| posting.publisher == publisher).count()
    }

    fn slash(&mut self, id: u64) {
        let posting = self.open().into_iter().find(|posting| posting.id == id).expect("open");
        let PostedLog { last, publisher, .. } = posting;
        self.bonds.insert(publisher, 0);
        let (challenger, number, index, reason, l1_block) = (Address::ZERO, last, 0, 5, self.newest + 1);
        self.tell(HintEvent::Slashed { id, last, challenger, publisher, number, index, reason, l1_block });
    }
}

fn root_of(hints: &[BatchHints]) -> B256 {
    let mut bytes = Vec::new();
    for batch in hints {
        bytes.extend_from_slice(&batch.number.to_be_bytes());
        for entry in &batch.entries {
            match entry {
                HintEntry::Skipped => bytes.push(0),
                HintEntry::Key(key) => bytes.extend_from_slice(&[&[1], key.as_slice()].concat()),
                HintEntry::Malformed(_) => bytes.push(2),
            }
        }
    }
    alloy_primitives::keccak256(&bytes)
}

/// The root of the same hints in the place where this hint publisher does not post.
fn elsewhere(root: B256) -> B256 {
    alloy_primitives::keccak256(root)
}

#[derive(Clone)]
struct Account {
    address: Address,
    contracts: Arc<Mutex<Contracts>>,
}

impl Account {
    /// The failure that the script has for this transaction: before it, or after it is done.
    fn failure(&self) -> Option<(L1Error, bool)> {
        self.contracts.lock().failures.pop()
    }

    /// Gives the transaction that made the newest posting, where that is one.
    fn act(&self, act: impl FnOnce(&mut Contracts) -> Result<(), L1Error>) -> Result<Sent, L1Error> {
        let failure = self.failure();
        let mut contracts = self.contracts.lock();
        match failure {
            Some((error, true)) => return Err(error),
            Some((error, false)) => act(&mut contracts).and(Err(error))?,
            None => act(&mut contracts)?,
        }
        let transaction = B256::with_last_byte(contracts.data.len() as u8);
        Ok(Sent { transaction, block: contracts.newest, gas_used: 0 })
    }
}

/// The hints as they stand in a posting, by themselves.
fn read(first: u64, posting: &HintPosting) -> Vec<BatchHints> {
    let hints = |(number, batch): (u64, &blindfold_l1::PostedBatch)| batch.to_hints(number, B256::ZERO);
    (first..).zip(&posting.batches).map(hints).map(|hints| hints.expect("hints")).collect()
}

#[async_trait]
impl L1Reader for Account {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        let contracts = self.contracts.lock();
        Ok(L1Origin {
            number: contracts.newest - contracts.lag,
            hash: B256::ZERO,
            timestamp: 0,
            base_fee: 7,
            blob_base_fee: 1,
            parent_beacon_block_root: B256::ZERO,
        })
    }

    async fn newest(&self) -> Result<u64, L1Error> {
        Ok(self.contracts.lock().newest)
    }

    async fn timing(&self) -> Result<L1Timing, L1Error> {
        let (challenge_window, hint_deadline) = (WINDOW as u32, DEADLINE as u32);
        Ok(L1Timing { challenge_window, hint_deadline, ..L1Timing::default() })
    }

    async fn hint_stakes(&self) -> Result<(u128, u128), L1Error> {
        Ok((BOND, 1))
    }

    async fn posted_runs(&self, after: u64, through: u64) -> Result<Vec<(RunReference, B256)>, L1Error> {
        let contracts = self.contracts.lock();
        let waited = contracts.newest.saturating_sub(DEADLINE / 4);
        let known = waited.max(contracts.newest - contracts.lag);
        assert!(through <= known, "runs are read from blocks that are final or waited long for it");
        let within = |run: &&PostedRun| run.posted_at > after && run.posted_at <= through;
        Ok(contracts.runs.iter().filter(within).map(|run| (run.reference(), run.head_hash)).collect())
    }

    async fn hint_events(&self, after: u64, through: u64) -> Result<Vec<HintEvent>, L1Error> {
        let contracts = self.contracts.lock();
        let within = |(block, _): &&(u64, HintEvent)| *block > after && *block <= through;
        Ok(contracts.events.iter().filter(within).map(|(_, event)| *event).collect())
    }

    async fn publisher_bond(&self, publisher: Address) -> Result<PublisherBond, L1Error> {
        let total = self.contracts.lock().bonds.get(&publisher).copied().unwrap_or_default();
        Ok(PublisherBond { total, locked: 0, open: 0 })
    }

    async fn hint_data(&self, posting: &PostedLog) -> Result<Option<Result<HintData, DataError>>, L1Error> {
        let contracts = self.contracts.lock();
        let found = contracts.reread.clone().or_else(|| contracts.data.get(&posting.id).cloned());
        let PostedLog { first, last, .. } = *posting;
        let run = RunReference { first, last, posted_at: 1, header_root: B256::ZERO };
        Ok(found.map(|hints| Ok(HintData { run, hints: HintPosting::of(&hints), blobs: None })))
    }
}

#[async_trait]
impl L1Submitter for Account {
    fn account(&self) -> Address {
        self.address
    }

    fn reader(&self) -> &dyn L1Reader {
        self
    }

    async fn deposit_publisher_bond(&self, amount: u128) -> Result<Sent, L1Error> {
        let address = self.address;
        self.act(|contracts| {
            *contracts.bonds.entry(address).or_default() += amount;
            Ok(())
        })
    }

    async fn hint_roots(&self, first: u64, hints: &HintPosting) -> Result<[Option<B256>; 2], L1Error> {
        let hints = read(first, hints);
        let entries: usize = hints.iter().map(|hints| hints.entries.len()).sum();
        let largest = self.contracts.lock().largest.unwrap_or(usize::MAX);
        let own = (entries <= largest).then(|| root_of(&hints));
        Ok([own, Some(elsewhere(root_of(&hints)))])
    }

    async fn post_hints(&self, run: &RunReference, hints: &HintPosting) -> Result<Sent, L1Error> {
        let (address, hints) = (self.address, read(run.first, hints));
        self.act(|contracts| {
            let bond = contracts.bonds.get(&address).copied().unwrap_or_default();
            assert!(bond >= BOND, "a posting that the bond does not cover");
            let root = root_of(&hints);
            if contracts.open().iter().any(|posting| (posting.last, posting.root) == (run.last, root)) {
                return Err(L1Error::refused("SameHintsOpen"));
            }
            contracts.post_as(address, run.last, hints);
            Ok(())
        })
    }

    async fn finalize_hints(&self, id: u64) -> Result<Sent, L1Error> {
        self.act(|contracts| {
            let posting = contracts.open().into_iter().find(|posting| posting.id == id).expect("open");
            assert!(contracts.newest >= posting.l1_block + WINDOW, "not before its window is over");
            assert!(contracts.settled.insert(posting.last), "one final posting");
            contracts.tell(HintEvent::Finalized { id, first: posting.first, last: posting.last });
            Ok(())
        })
    }

    async fn release_hints(&self, id: u64) -> Result<Sent, L1Error> {
        self.act(|contracts| {
            let posting = contracts.open().into_iter().find(|posting| posting.id == id).expect("open");
            assert!(contracts.settled.contains(&posting.last));
            contracts.tell(HintEvent::Released { id, last: posting.last });
            Ok(())
        })
    }
}

/// How long a question to the sequencer may hang.
const QUESTION_MS: u64 = 30_000;

/// What the sequencer answers.
#[derive(Default)]
struct Source {
    batches: Mutex<BTreeMap<u64, SourcedBatch>>,
    away: Mutex<bool>,
    /// Batches that it never answers about.
    withheld: Mutex<BTreeSet<u64>>,
    /// A clock that moves while a question about one of them hangs.
    now_ms: AtomicU64,
    asked: Mutex<usize>,
}

#[async_trait]
impl BatchSource for Source {
    async fn batch(&self, number: u64) -> Result<Option<SourcedBatch>, String> {
        *self.asked.lock() += 1;
        if *self.away.lock() || self.withheld.lock().contains(&number) {
            self.now_ms.fetch_add(QUESTION_MS, SeqCst);
            return Err("scripted".to_owned());
        }
        Ok(self.batches.lock().get(&number).cloned())
    }
}

struct Stage {
    sealer: Sealer,
    contracts: Arc<Mutex<Contracts>>,
    source: Arc<Source>,
}

impl Stage {
    async fn new() -> Self {
        let contracts = Contracts {
            newest: 1,
            bonds: BTreeMap::from([(me(), BOND), (other(), BOND)]),
            ..Contracts::default()
        };
        let contracts = Arc::new(Mutex::new(contracts));
        Self { sealer: Sealer::new(&l1()).await, contracts, source: Arc::new(Source::default()) }
    }

    /// A run of batches with these items, posted in a block of its own. The sequencer has their hints.
    async fn run(&self, batches: Vec<Vec<Vec<u8>>>) -> PostedRun {
        let mut sealed = Vec::new();
        for items in batches {
            let batch = self.sealer.seal_next(items).await;
            self.sealer.certify_by(&batch.batch, &[1, 2, 3]).await;
            let names = batch.verdicts.iter().map(|verdict| verdict.reason().map(str::to_owned));
            let sourced = SourcedBatch {
                sealed: batch.batch.as_ref().clone(),
                verdicts: names.collect(),
                hints: Some(opened(&batch.batch, &batch.verdicts)),
            };
            self.source.batches.lock().insert(batch.batch.header.number, sourced);
            sealed.push(batch);
        }
        let (first, last) = (&sealed[0], &sealed[sealed.len() - 1]);
        let mut contracts = self.contracts.lock();
        contracts.newest += 1;
        let run = PostedRun {
            first: first.batch.header.number,
            last: last.batch.header.number,
            posted_at: contracts.newest,
            head_hash: last.hash,
            header_root: B256::ZERO,
        };
        contracts.runs.push(run);
        run
    }

    async fn run_of_one(&self, n: u8) -> PostedRun {
        self.run(vec![vec![envelope(n, 1).encode()]]).await
    }

    fn hints_of(&self, run: &PostedRun) -> Vec<BatchHints> {
        let batches = self.source.batches.lock();
        (run.first..=run.last).map(|number| batches[&number].hints.clone().expect("there")).collect()
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut SourcedBatch)) {
        change(self.source.batches.lock().get_mut(&number).expect("there"));
    }

    fn pass(&self, blocks: u64) {
        self.contracts.lock().newest += blocks;
    }

    fn poster_of(&self, address: Address, takeover_ms: u64, bond_wei: u128) -> Poster {
        let metrics = HintPublisherMetrics::new().expect("registers");
        let readiness = Readiness::new(&["l1_posting"]);
        let deps = HintPosterDeps {
            l1: Arc::new(Account { address, contracts: Arc::clone(&self.contracts) }),
            first_block: 1,
            source: Arc::<Source>::clone(&self.source),
            parameters: parameter_set(),
            backend: Arc::new(Portable::new(1)),
            metrics: metrics.clone(),
            readiness: readiness.clone(),
        };
        let config = L1PostingConfig { bond_wei, takeover_ms, ..L1PostingConfig::default() };
        Poster { poster: HintPoster::new(config, deps), metrics, readiness }
    }

    fn poster(&self) -> Poster {
        self.poster_of(me(), 0, 0)
    }
}

struct Poster {
    poster: HintPoster,
    metrics: HintPublisherMetrics,
    readiness: Readiness,
}

impl Poster {
    async fn round(&mut self, now_ms: u64) -> Round {
        self.poster.round(&|| now_ms).await.expect("no error")
    }

    fn shows(&self, name: &str, value: u64) {
        let line = format!("blindfold_hint_publisher_l1_{name}{{role=\"hint_publisher\"}} {value}\n");
        let text = self.metrics.registry.render();
        assert!(text.contains(&line), "{line} in\n{text}");
    }

    fn reason(&self) -> String {
        self.readiness.reasons().get("l1_posting").cloned().unwrap_or_default()
    }
}

/// The right hints of a batch.
fn opened(sealed: &SealedBatch, verdicts: &[Verdict]) -> BatchHints {
    let committee = committee();
    let mut entries = vec![HintEntry::Skipped; sealed.items.len()];
    for indices in sub_batches(verdicts, MAX_BATCH) {
        let envelopes: Vec<Envelope> = indices
            .iter()
            .map(|index| Envelope::decode(&sealed.items[*index as usize]).expect("accepted"))
            .collect();
        let points: Vec<CiphertextPoint> =
            envelopes.iter().map(|envelope| envelope.ciphertext.header().expect("a point")).collect();
        let shares =
            [1u16, 2, 3].map(|j| (j, committee.keys[usize::from(j) - 1].release_share(&points).expect("b")));
        let release = committee.parameters.combine(&shares).expect("three shares");
        let ads: Vec<[u8; 32]> = envelopes.iter().map(|envelope| envelope.header.hash().0).collect();
        let items: Vec<_> = ads.iter().zip(envelopes.iter().map(|envelope| &envelope.ciphertext)).collect();
        let openings = blindfold_bte::Backend::decrypt(
            &Portable::new(1),
            &committee.parameters,
            &points,
            &release,
            &items,
        )
        .expect("a batch");
        for ((index, point), opening) in indices.iter().zip(&points).zip(openings) {
            entries[*index as usize] = match opening {
                Opening::WellFormed { key, .. } => HintEntry::Key(*key.as_bytes()),
                Opening::Malformed => {
                    let shares =
                        [1u16, 2, 3].map(|j| (j, committee.keys[usize::from(j) - 1].singleton_share(point)));
                    HintEntry::Malformed(committee.parameters.combine_singletons(&shares).expect("three"))
                }
            };
        }
    }
    BatchHints { number: sealed.header.number, header_hash: sealed.header.hash(), entries, blindings: vec![] }
}

#[tokio::test]
async fn a_final_run_is_posted_once_and_made_final_after_its_window() {
    let stage = Stage::new().await;
    let run = stage
        .run(vec![
            vec![envelope(1, 1).encode(), b"garbage".to_vec(), malformed(2, 1).encode()],
            vec![],
            vec![envelope(3, 1).encode()],
        ])
        .await;
    let mut poster = stage.poster();
    stage.contracts.lock().lag = 1;
    stage.pass(0);
    assert_eq!(poster.round(0).await, Round::default(), "the run is not final");
    stage.pass(1);
    assert_eq!(poster.round(1).await, Round { posted: 1, ..Round::default() });
    let posted = stage.contracts.lock().data[&1].clone();
    assert_eq!(HintPosting::of(&posted), HintPosting::of(&stage.hints_of(&run)));
    let kinds: Vec<String> = posted.iter().map(common::kinds).collect();
    assert_eq!(kinds, ["ksm", "", "k"]);
    poster.shows("open_postings", 0);
    for now in 2..5 {
        assert_eq!(poster.round(now).await, Round::default(), "it is there");
    }
    poster.shows("open_postings", 1);
    stage.pass(WINDOW);
    assert_eq!(poster.round(5).await, Round { finalized: 1, ..Round::default() });
    stage.pass(5);
    assert_eq!(poster.round(6).await, Round::default());
    assert_eq!(stage.contracts.lock().bonds[&me()], BOND);
    assert_eq!(stage.contracts.lock().open_of(me()), 0);
    poster.shows("postings_total", 1);
    poster.shows("finalized_total", 1);
    assert!(poster.readiness.is_ready());
}

#[tokio::test]
async fn killed_at_any_step_it_posts_nothing_twice() {
    let stage = Stage::new().await;
    stage.run_of_one(1).await;
    let lost = || L1Error::no_answer("scripted");
    // Killed, or without an answer, before the transaction, after it, and while it waits for the window.
    for (done, posts) in [(true, 0), (false, 1)] {
        stage.contracts.lock().failures.push((lost(), done));
        assert_eq!(stage.poster().poster.round(&|| 0).await, Err(PostingError::L1(lost())));
        assert_eq!(stage.contracts.lock().posts, posts);
    }
    assert_eq!(stage.poster().round(0).await, Round::default());
    stage.pass(WINDOW);
    stage.contracts.lock().failures.push((lost(), false));
    assert_eq!(stage.poster().poster.round(&|| 0).await, Err(PostingError::L1(lost())));
    let mut poster = stage.poster();
    assert_eq!(poster.round(0).await, Round::default());
    stage.run_of_one(2).await;
    assert_eq!(poster.round(0).await.posted, 1, "and it goes on with the next");
    assert_eq!(stage.contracts.lock().posts, 2);
}

#[tokio::test]
async fn what_l1_takes_back_is_posted_again() {
    let stage = Stage::new().await;
    stage.run_of_one(1).await;
    let mut poster = stage.poster();
    stage.pass(3);
    stage.contracts.lock().lag = 3;
    assert_eq!(poster.round(0).await.posted, 1);
    stage.contracts.lock().events.clear();
    assert_eq!(poster.round(0).await.posted, 1);
    stage.contracts.lock().lag = 0;
    assert_eq!(poster.round(0).await, Round::default());
}

/// L1 counts the deadline on its newest block, so a run does not wait for finality longer than a quarter of it.
#[tokio::test]
async fn a_stall_of_finality_keeps_no_hints_back() {
    let stage = Stage::new().await;
    let run = stage.run_of_one(1).await;
    let stall = |blocks| {
        let mut contracts = stage.contracts.lock();
        contracts.newest += blocks;
        contracts.lag += blocks;
    };
    // Far enough behind that a posting, which takes a block, makes nothing final.
    stage.contracts.lock().lag = 2;
    stall(DEADLINE / 4 - 1);
    let mut poster = stage.poster();
    assert_eq!(poster.round(0).await, Round::default(), "it waits for finality");
    stall(1);
    assert_eq!(poster.round(1).await, Round { posted: 1, ..Round::default() });
    let posted = stage.contracts.lock().data[&1].clone();
    assert_eq!(HintPosting::of(&posted), HintPosting::of(&stage.hints_of(&run)));
    assert_eq!(poster.round(2).await, Round::default(), "once");
    // L1 takes back the run and its hints, and has the run again in a later block.
    {
        let mut contracts = stage.contracts.lock();
        contracts.events.clear();
        contracts.runs[0].posted_at = contracts.newest;
    }
    assert_eq!(poster.round(3).await, Round::default());
    stall(DEADLINE / 4);
    assert_eq!(poster.round(4).await.posted, 1, "and again");
    // Finality is back, long after the window: the posting becomes final as ever.
    stage.pass(WINDOW);
    stage.contracts.lock().lag = 0;
    assert_eq!(poster.round(5).await, Round { finalized: 1, ..Round::default() });
}

#[tokio::test]
async fn runs_without_an_item_are_left_alone() {
    let stage = Stage::new().await;
    stage.run(vec![vec![], vec![]]).await;
    stage.run(vec![vec![b"garbage".to_vec()]]).await;
    // Nothing was accepted, so nobody had to publish hints.
    stage.change(3, |batch| batch.hints = None);
    let mut poster = stage.poster();
    assert_eq!(poster.round(0).await, Round { posted: 1, ..Round::default() });
    assert_eq!(common::kinds(&stage.contracts.lock().data[&1][0]), "s");
    let asked = *stage.source.asked.lock();
    stage.pass(DEADLINE);
    poster.round(0).await;
    assert_eq!(*stage.source.asked.lock(), asked, "it is known to be empty");
    assert!(poster.readiness.is_ready());
}

#[tokio::test]
async fn nothing_that_the_sequencer_says_is_believed() {
    let stage = Stage::new().await;
    let good = stage.run_of_one(1).await;
    let right = stage.source.batches.lock()[&good.last].clone();
    let mut poster = stage.poster();
    type Change = fn(&mut SourcedBatch);
    let changes: [Change; 7] = [
        |batch| batch.sealed = resigned(&batch.sealed, |header| header.timestamp_ms += 1),
        |batch| batch.sealed.items[0].push(0),
        |batch| batch.verdicts = vec![Some(EnvelopeError::Expired.as_str().to_owned())],
        |batch| batch.verdicts = vec![Some("no such reason".to_owned())],
        |batch| batch.verdicts.clear(),
        |batch| batch.hints.as_mut().expect("there").entries[0] = HintEntry::Key([7; 16]),
        |batch| batch.hints.as_mut().expect("there").entries[0] = HintEntry::Skipped,
    ];
    let mut now = 0;
    for (refused, change) in (1u64..).zip(changes) {
        stage.change(good.last, |batch| *batch = right.clone());
        stage.change(good.last, change);
        now += 1_000_000;
        assert_eq!(poster.round(now).await, Round { waiting: 1, ..Round::default() }, "{refused}");
        poster.shows("refused_batches_total", refused);
        // Not at once again.
        poster.round(now).await;
        poster.shows("refused_batches_total", refused);
    }
    // Others do not wait for it, and hints that are not there yet are no fault.
    stage.change(good.last, |batch| *batch = SourcedBatch { hints: None, ..right.clone() });
    stage.run_of_one(2).await;
    now += 1_000_000;
    assert_eq!(poster.round(now).await, Round { posted: 1, waiting: 1, ..Round::default() });
    poster.shows("refused_batches_total", 7);
    *stage.source.away.lock() = true;
    now += 1_000_000;
    assert!(matches!(poster.poster.round(&|| now).await, Err(PostingError::Source(_))));
    *stage.source.away.lock() = false;
    stage.change(good.last, |batch| *batch = right.clone());
    now += 1_000_000;
    assert_eq!(poster.round(now).await.posted, 1);
    poster.shows("waiting_runs", 0);
}

#[tokio::test]
async fn a_batch_that_the_sequencer_never_gives_holds_up_no_other_run() {
    let stage = Stage::new().await;
    let withheld = stage.run_of_one(1).await;
    let early = stage.run_of_one(2).await;
    stage.source.withheld.lock().insert(withheld.last);
    let mut poster = stage.poster();
    let mut now = 0;
    assert!(matches!(poster.poster.round(&|| now).await, Err(PostingError::Source(_))));
    let posted_for =
        |stage: &Stage| stage.contracts.lock().open().iter().map(|posting| posting.last).collect::<Vec<_>>();
    assert_eq!(posted_for(&stage), [early.last]);
    // What is posted already becomes final all the same.
    stage.pass(WINDOW);
    now += 1_000_000;
    assert!(matches!(poster.poster.round(&|| now).await, Err(PostingError::Source(_))));
    assert!(posted_for(&stage).is_empty());
    poster.shows("waiting_runs", 1);
    stage.source.withheld.lock().clear();
    now += 1_000_000;
    assert_eq!(poster.round(now).await.posted, 1);
}

#[tokio::test]
async fn a_sequencer_that_is_away_is_not_asked_about_every_run() {
    let stage = Stage::new().await;
    for n in 1..=5 {
        stage.run_of_one(n).await;
    }
    *stage.source.away.lock() = true;
    let mut poster = stage.poster();
    assert!(matches!(poster.poster.round(&|| 0).await, Err(PostingError::Source(_))));
    assert_eq!(*stage.source.asked.lock(), 2);
}

#[tokio::test]
async fn anothers_right_posting_is_left_alone_and_a_wrong_one_is_answered() {
    let stage = Stage::new().await;
    let (one, two) = (stage.run_of_one(1).await, stage.run_of_one(2).await);
    let mut wrong = stage.hints_of(&two);
    wrong[0].entries[0] = HintEntry::Key([9; 16]);
    {
        let mut contracts = stage.contracts.lock();
        contracts.post_as(other(), one.last, stage.hints_of(&one));
        contracts.post_as(other(), two.last, wrong);
    }
    let mut poster = stage.poster();
    assert_eq!(poster.round(0).await, Round { posted: 1, ..Round::default() });
    assert_eq!(stage.contracts.lock().open().last().map(|posting| posting.last), Some(two.last));
    stage.pass(WINDOW);
    // Ours is made final, and the other's right one, too: nobody else is there.
    assert_eq!(poster.round(1).await, Round { finalized: 2, ..Round::default() });
    assert_eq!(stage.contracts.lock().settled, BTreeSet::from([one.last, two.last]));
}

#[tokio::test]
async fn the_same_hints_in_the_other_place_are_right_too() {
    let stage = Stage::new().await;
    let run = stage.run_of_one(1).await;
    stage.contracts.lock().post_elsewhere(other(), run.last, stage.hints_of(&run));
    let mut poster = stage.poster();
    assert_eq!(poster.round(0).await, Round::default());
    stage.pass(WINDOW);
    assert_eq!(poster.round(1).await, Round { finalized: 1, ..Round::default() });
    assert_eq!(stage.contracts.lock().posts, 1);
}

#[tokio::test]
async fn a_second_hint_publisher_waits_before_it_takes_over() {
    let stage = Stage::new().await;
    let run = stage.run_of_one(1).await;
    let mut second = stage.poster_of(other(), 500, 0);
    assert_eq!(second.round(1_000).await, Round { waiting: 1, ..Round::default() });
    let mut first = stage.poster();
    assert_eq!(first.round(0).await.posted, 1);
    assert_eq!(second.round(1_600).await, Round::default(), "somebody was faster");
    // The first one is gone for good: its posting is seen through, and the next run is taken over.
    stage.pass(WINDOW);
    stage.run_of_one(2).await;
    assert_eq!(second.round(2_000).await, Round { waiting: 1, ..Round::default() });
    assert_eq!(second.round(2_499).await, Round { waiting: 1, ..Round::default() });
    assert_eq!(second.round(2_500).await, Round { posted: 1, finalized: 1, ..Round::default() });
    assert!(stage.contracts.lock().settled.contains(&run.last));
    second.shows("open_postings", 0);
}

#[tokio::test]
async fn two_at_once_end_with_one_final_posting_and_nothing_open() {
    let stage = Stage::new().await;
    let run = stage.run_of_one(1).await;
    let hints = stage.hints_of(&run);
    let mut poster = stage.poster();
    assert_eq!(poster.round(0).await.posted, 1);
    // Another publisher's twin cannot be open; another root can, and be made final by its publisher.
    let id = {
        let mut contracts = stage.contracts.lock();
        let twin = contracts.post_as(other(), run.last, hints);
        contracts.settled.insert(run.last);
        contracts.tell(HintEvent::Finalized { id: twin.id, first: run.first, last: run.last });
        twin.id
    };
    assert_eq!((id, poster.round(1).await), (2, Round::default()));
    assert_eq!(stage.contracts.lock().open_of(me()), 1, "its window is not over");
    stage.pass(WINDOW);
    poster.round(2).await;
    assert_eq!(stage.contracts.lock().open_of(me()), 0);
}

#[tokio::test]
async fn the_bond_is_filled_at_the_start_and_a_short_one_is_told() {
    let stage = Stage::new().await;
    stage.contracts.lock().bonds.insert(me(), BOND / 2);
    stage.run_of_one(1).await;
    let mut poster = stage.poster();
    for now in 0..2 {
        assert_eq!(poster.round(now).await, Round { waiting: 1, bond_short: true, ..Round::default() });
    }
    assert!(poster.reason().contains("l1_posting.bond_wei"), "{}", poster.reason());
    poster.shows("bond_covers", 0);
    drop(poster);
    let mut poster = stage.poster_of(me(), 0, BOND);
    let lost = L1Error::no_answer("scripted");
    // The deposit happened, its answer was lost.
    stage.contracts.lock().failures.push((lost.clone(), false));
    assert_eq!(poster.poster.round(&|| 0).await, Err(PostingError::L1(lost)));
    assert_eq!(poster.round(0).await.posted, 1);
    assert_eq!(stage.contracts.lock().bonds[&me()], BOND);
    poster.shows("bond_covers", 1);
    assert!(poster.readiness.is_ready());
    for n in 2..5 {
        stage.run_of_one(n).await;
    }
    let round = poster.round(1).await;
    assert_eq!((round.posted, round.waiting, round.bond_short), (3, 0, false), "one bond covers all");
}

#[tokio::test]
async fn an_account_without_ether_is_told_together_with_what_waits_for_it() {
    let stage = Stage::new().await;
    stage.contracts.lock().bonds.insert(me(), 0);
    stage.run_of_one(1).await;
    let mut poster = stage.poster_of(me(), 0, BOND);
    let poor = L1Error::Rpc {
        method: "eth_estimateGas".to_owned(),
        code: -32000,
        message: "insufficient funds".to_owned(),
    };
    stage.contracts.lock().failures.push((poor, true));
    assert_eq!(poster.round(0).await, Round { waiting: 1, bond_short: true, ..Round::default() });
    assert!(poster.reason().contains("l1_posting.bond_wei"), "{}", poster.reason());
    poster.shows("bond_covers", 0);
    poster.shows("waiting_runs", 1);
    stage.pass(7);
    // Not asked again at once.
    assert!(poster.round(1).await.bond_short);
    let waited = {
        let contracts = stage.contracts.lock();
        contracts.newest - contracts.runs[0].posted_at
    };
    poster.shows("oldest_waiting_blocks", waited);
    // Somebody sent it ether.
    assert_eq!(poster.round(60_000).await.posted, 1);
    poster.shows("bond_covers", 1);
    poster.shows("oldest_waiting_blocks", 0);
}

/// geth says of an account without ether, and of a transaction that is too large, what it says of what may pass.
#[tokio::test]
async fn what_a_node_says_of_one_transaction_keeps_no_other_run_waiting() {
    let stage = Stage::new().await;
    for n in 1..=2 {
        stage.run_of_one(n).await;
    }
    let mut poster = stage.poster();
    let said = L1Error::Rpc {
        method: "eth_sendRawTransaction".to_owned(),
        code: -32000,
        message: "insufficient funds".to_owned(),
    };
    stage.contracts.lock().failures.push((said, true));
    let round = poster.round(0).await;
    assert_eq!((round.posted, round.waiting), (1, 1), "the other run has its hints");
    poster.shows("waiting_runs", 1);
    assert_eq!(poster.round(60_000).await.posted, 1);
}

/// After a start nobody has looked at what others posted; most of it is right.
#[tokio::test]
async fn a_posting_that_was_not_looked_at_yet_is_no_run_that_waits_long() {
    let stage = Stage::new().await;
    let run = stage.run_of_one(1).await;
    let hints = stage.hints_of(&run);
    stage.contracts.lock().post_as(other(), run.last, hints);
    stage.pass(DEADLINE / 2);
    let mut standby = stage.poster_of(me(), 60_000, 0);
    assert_eq!(standby.round(0).await.waiting, 1);
    standby.shows("oldest_waiting_blocks", 0);
    assert!(standby.readiness.is_ready());
    assert_eq!(standby.round(60_000).await, Round::default(), "looked at, and right");
}

#[tokio::test]
async fn a_slashing_ends_what_its_publisher_had_open_and_others_post_it_anew() {
    let stage = Stage::new().await;
    let (one, two) = (stage.run_of_one(1).await, stage.run_of_one(2).await);
    let mut wrong = stage.hints_of(&two);
    wrong[0].entries[0] = HintEntry::Key([9; 16]);
    let mut poster = stage.poster();
    let guilty = {
        let mut contracts = stage.contracts.lock();
        contracts.post_as(other(), one.last, stage.hints_of(&one));
        contracts.post_as(other(), two.last, wrong)
    };
    assert_eq!(poster.round(0).await, Round { posted: 1, ..Round::default() }, "the right one is left alone");
    stage.contracts.lock().slash(guilty.id);
    assert_eq!(
        poster.round(1).await,
        Round { posted: 1, ..Round::default() },
        "the invalidated one is replaced"
    );
    assert_eq!(stage.contracts.lock().open_of(me()), 2);
    stage.pass(WINDOW);
    assert_eq!(poster.round(2).await, Round { finalized: 2, ..Round::default() });
    poster.shows("slashed_total", 0);
}

#[tokio::test]
async fn a_run_that_waits_too_long_or_fits_no_transaction_is_told() {
    let stage = Stage::new().await;
    let run = stage.run_of_one(1).await;
    stage.contracts.lock().largest = Some(0);
    let mut poster = stage.poster();
    assert_eq!(poster.round(0).await, Round { waiting: 1, ..Round::default() });
    assert!(poster.readiness.is_ready(), "there is time");
    stage.pass(DEADLINE / 2);
    assert_eq!(poster.round(1).await.waiting, 1);
    assert!(poster.reason().contains(&format!("batches {} to {}", run.first, run.last)));
    // Declared void, it waits for nothing any more.
    stage.contracts.lock().tell(HintEvent::Voided { first: run.first, last: run.last });
    assert_eq!(poster.round(2).await, Round::default());
    assert!(poster.readiness.is_ready());
}

#[tokio::test]
async fn a_refusal_concerns_one_run_only_and_a_slashed_posting_is_told() {
    let stage = Stage::new().await;
    let (one, _) = (stage.run_of_one(1).await, stage.run_of_one(2).await);
    let mut poster = stage.poster();
    stage.contracts.lock().failures.push((L1Error::refused("scripted"), true));
    assert_eq!(poster.round(0).await, Round { posted: 1, waiting: 1, ..Round::default() });
    assert_eq!(poster.round(0).await, Round { waiting: 1, ..Round::default() }, "not at once again");
    assert_eq!(poster.round(1_000).await, Round { posted: 1, ..Round::default() });
    poster.round(1_000).await;
    // L1 shows something else than what was posted: told, never posted twice.
    let id = stage.contracts.lock().open().iter().find(|open| open.last == one.last).map(|open| open.id);
    stage.contracts.lock().slash(id.expect("open"));
    let round = poster.round(1_001).await;
    assert_eq!((round.posted, round.waiting, round.bond_short), (0, 2, true), "nothing without a new bond");
    poster.shows("slashed_total", 1);
    stage.contracts.lock().bonds.insert(me(), BOND);
    assert_eq!(poster.round(1_002).await.posted, 2);
    stage.contracts.lock().reread = Some(Vec::new());
    let before = stage.contracts.lock().posts;
    stage.run_of_one(3).await;
    poster.round(1_003).await;
    poster.round(1_004).await;
    assert_eq!(stage.contracts.lock().posts, before + 1);
    poster.shows("failures_total", 2);
}

#[tokio::test]
async fn many_runs_are_worked_through_a_few_at_a_time() {
    let stage = Stage::new().await;
    for _ in 0..9 {
        stage.run(vec![vec![b"garbage".to_vec()]]).await;
    }
    let mut poster = stage.poster();
    assert_eq!(poster.round(0).await, Round { posted: 8, waiting: 1, more: true, ..Round::default() });
    assert_eq!(poster.round(0).await, Round { posted: 1, ..Round::default() });
}

/// The oldest two, asked about in every round, used up all that a round may ask in vain.
#[tokio::test]
async fn two_batches_that_the_sequencer_never_gives_hold_up_no_other_run() {
    let stage = Stage::new().await;
    for n in 1..=2 {
        let withheld = stage.run_of_one(n).await;
        stage.source.withheld.lock().insert(withheld.last);
    }
    stage.run_of_one(3).await;
    let (mut poster, source) = (stage.poster(), Arc::clone(&stage.source));
    let mut round = async || {
        let outcome = poster.poster.round(&|| source.now_ms.load(SeqCst)).await;
        assert!(matches!(outcome, Err(PostingError::Source(_))), "{outcome:?}");
        // The longest pause between two rounds.
        source.now_ms.fetch_add(L1PostingConfig::default().max_retry_ms, SeqCst);
    };
    let posted = || stage.contracts.lock().open().len();
    round().await;
    assert_eq!(posted(), 0, "they are the oldest");
    round().await;
    assert_eq!(posted(), 1, "what nothing has failed for comes first");
    for _ in 0..10 {
        round().await;
    }
    // Nor one that was asked about in vain, too.
    stage.run_of_one(4).await;
    *stage.source.away.lock() = true;
    round().await;
    *stage.source.away.lock() = false;
    assert_eq!(posted(), 1);
    round().await;
    round().await;
    assert_eq!(posted(), 2);
}
