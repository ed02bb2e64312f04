//! Watching L1: wrong postings are slashed once, right ones left alone, and a node that is killed goes on.

mod common;

use blindfold_rpc::RunningRole;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use blindfold_chain::{AnnouncedEnd, L1Origin, L1RoundError, Sealed, announce};
use blindfold_full_node::Counters;
use blindfold_full_node::watch::{
    Claim, EvidenceError, EvidenceStore, Fault, FaultKind, Finding, Judge, WatchConfig, WatchRound, Watcher,
    WatcherDeps, compare,
};
use blindfold_kit::*;
use blindfold_l1::{
    CodedBatch, DataError, DisputeContract, HintData, HintEvent, HintEvidence, HintPosting, L1Error,
    L1Reader, L1Submitter, MAX_TRANSACTION_HEADERS, Output, PostedBatch, PostedEntry, PostedHead, PostedLog,
    RunReference, Sent, commitment,
};
use blindfold_protocol::{
    Address, B256, BatchHeader, BatchHints, Canonical, Certificate, Envelope, HintEntry, L1Timing,
    SignedHeader,
};
use blindfold_store::Store;
use blindfold_telemetry::Metrics;
use common::*;
use parking_lot::Mutex;

const WINDOW: u64 = 10;
const REWARD: u128 = 50;

/// `HintRegistry`, `OutputRegistry` and the inbox, as far as a node looks at them.
#[derive(Default)]
struct Contracts {
    newest: u64,
    /// Blocks behind the newest one that is final.
    lag: u64,
    events: Vec<(u64, HintEvent)>,
    data: BTreeMap<(u64, B256), HintData>,
    outputs: Vec<Output>,
    /// With their blocks.
    commitments: Vec<(B256, u64)>,
    challenges: Vec<Fault>,
    equivocated: BTreeMap<u64, u64>,
    rewards: BTreeMap<&'static str, u128>,
    claimed: u128,
    /// What L1 answers to the next transactions: before (true) or after doing what it was asked for.
    failures: Vec<(L1Error, bool)>,
    /// The node's own hints, to judge by.
    truth: BTreeMap<u64, BatchHints>,
    read_data: usize,
    /// L1's headers; genesis where there are none.
    headers: Vec<(u64, B256)>,
    /// Postings whose data nobody serves now.
    unserved: BTreeSet<u64>,
    /// Whether L1's node has no state of final blocks any more, so far behind they are.
    pruned: bool,
}

impl Contracts {
    fn tell(&mut self, event: HintEvent) {
        self.newest += 1;
        self.events.push((self.newest, event));
    }

    fn post(&mut self, first: u64, batches: Vec<PostedBatch>) -> PostedLog {
        let block = self.newest + 1;
        let id = block;
        let root = B256::repeat_byte(id as u8);
        let last = first + batches.len() as u64 - 1;
        let (publisher, transaction) = (Address::ZERO, B256::ZERO);
        let posting = PostedLog { id, first, last, publisher, l1_block: block, transaction, root };
        self.data.insert((id, root), data(&posting, batches));
        self.tell(HintEvent::Posted(posting));
        posting
    }

    fn use_up(&mut self, commitment: B256) -> Result<(), L1Error> {
        let place = self.commitments.iter().position(|(known, _)| *known == commitment);
        let place = place.ok_or_else(|| L1Error::refused("NotCommitted"))?;
        assert!(self.commitments[place].1 < self.newest, "not in the block of the commitment");
        self.commitments.remove(place);
        self.newest += 1;
        Ok(())
    }
}

/// The data of a posting, of a run that nobody looks at.
fn data(posting: &PostedLog, batches: Vec<PostedBatch>) -> HintData {
    let PostedLog { first, last, .. } = *posting;
    let run = RunReference { first, last, posted_at: 1, header_root: B256::ZERO };
    HintData { run, hints: HintPosting { batches }, blobs: None }
}

fn entry(kind: u8, key: [u8; 16]) -> PostedEntry {
    PostedEntry { kind, key }
}

fn sent(block: u64) -> Sent {
    Sent { transaction: B256::ZERO, block, gas_used: 0 }
}

fn slashed(publisher: Address) -> HintEvent {
    let (challenger, l1_block) = (Address::ZERO, 0);
    HintEvent::Slashed { id: 0, last: 0, challenger, publisher, number: 0, index: 0, reason: 5, l1_block }
}

fn name(contract: DisputeContract) -> &'static str {
    match contract {
        DisputeContract::Inbox => "inbox",
        DisputeContract::Hints => "hints",
    }
}

#[derive(Clone)]
struct Reporter {
    address: Address,
    contracts: Arc<Mutex<Contracts>>,
    /// Whether its connection is lost: then nothing more is sent.
    lost: Arc<Mutex<bool>>,
}

impl Reporter {
    fn act(&self, act: impl FnOnce(&mut Contracts) -> Result<(), L1Error>) -> Result<Sent, L1Error> {
        let mut contracts = self.contracts.lock();
        if *self.lost.lock() {
            return Err(L1Error::no_answer("lost"));
        }
        let failure = contracts.failures.pop();
        *self.lost.lock() = failure.as_ref().is_some_and(|(error, _)| error.is_transient());
        let outcome = match failure {
            Some((error, true)) => Err(error),
            Some((error, false)) => act(&mut contracts).and(Err(error)),
            None => act(&mut contracts),
        };
        outcome.map(|()| sent(contracts.newest))
    }
}

#[async_trait]
impl L1Reader for Reporter {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        let contracts = self.contracts.lock();
        Ok(l1_block(contracts.newest - contracts.lag))
    }

    async fn newest(&self) -> Result<u64, L1Error> {
        Ok(self.contracts.lock().newest)
    }

    async fn timing(&self) -> Result<L1Timing, L1Error> {
        Ok(L1Timing { challenge_window: WINDOW as u32, ..L1Timing::default() })
    }

    async fn hint_events(&self, after: u64, through: u64) -> Result<Vec<HintEvent>, L1Error> {
        let contracts = self.contracts.lock();
        let within = |(block, _): &&(u64, HintEvent)| *block > after && *block <= through;
        Ok(contracts.events.iter().filter(within).map(|(_, event)| *event).collect())
    }

    async fn hint_data(&self, posting: &PostedLog) -> Result<Option<Result<HintData, DataError>>, L1Error> {
        let mut contracts = self.contracts.lock();
        contracts.read_data += 1;
        if contracts.unserved.contains(&posting.id) {
            return Err(L1Error::no_answer("no such blobs"));
        }
        Ok(contracts.data.get(&(posting.id, posting.root)).cloned().map(Ok))
    }

    async fn final_outputs(&self, from: u64, limit: usize) -> Result<Vec<Output>, L1Error> {
        let contracts = self.contracts.lock();
        Ok(contracts.outputs.iter().filter(|output| output.l2_block >= from).take(limit).copied().collect())
    }

    async fn are_shown(&self, pair: &[SignedHeader; 2], block: Option<u64>) -> Result<bool, L1Error> {
        let contracts = self.contracts.lock();
        if contracts.pruned && block.is_some() {
            return Err(L1Error::no_answer("missing trie node"));
        }
        let shown_at = contracts.equivocated.get(&pair[0].header.number);
        Ok(shown_at.is_some_and(|at| block.is_none_or(|block| *at <= block)))
    }

    async fn committed_at(&self, _: DisputeContract, commitment: B256) -> Result<Option<u64>, L1Error> {
        let contracts = self.contracts.lock();
        let found = contracts.commitments.iter().find(|(known, _)| *known == commitment);
        Ok(found.map(|(_, block)| *block))
    }

    async fn reward_of(&self, contract: DisputeContract, _: Address) -> Result<u128, L1Error> {
        Ok(self.contracts.lock().rewards.get(name(contract)).copied().unwrap_or_default())
    }

    async fn posted_head(&self) -> Result<PostedHead, L1Error> {
        let genesis = (0, chain_config().deployment.genesis_hash());
        let contracts = self.contracts.lock();
        let (number, hash) = contracts.headers.last().copied().unwrap_or(genesis);
        Ok(PostedHead { number, hash, block: contracts.newest, ..PostedHead::default() })
    }
}

#[async_trait]
impl L1Submitter for Reporter {
    fn account(&self) -> Address {
        self.address
    }

    fn reader(&self) -> &dyn L1Reader {
        self
    }

    async fn commit(&self, _: DisputeContract, evidence: B256, salt: B256) -> Result<Sent, L1Error> {
        let commitment = commitment(self.address, evidence, salt);
        self.act(|contracts| {
            contracts.newest += 1;
            contracts.commitments.push((commitment, contracts.newest));
            Ok(())
        })
    }

    async fn challenge(&self, evidence: &HintEvidence, salt: B256) -> Result<Sent, L1Error> {
        let address = self.address;
        self.act(|contracts| {
            let PostedLog { id, first, .. } = evidence.posting;
            let number = evidence.batch.header.number;
            let claim = Claim::Hint { id, number, index: evidence.index };
            contracts.use_up(commitment(address, claim.evidence(), salt))?;
            assert_eq!(evidence.headers.len(), evidence.data.hints.batches.len(), "all headers of the run");
            assert_eq!(evidence.headers[(number - first) as usize], evidence.batch.header);
            assert_eq!(evidence.verdicts.len(), evidence.batch.items.len());
            let own: Vec<BatchHints> =
                evidence.headers.iter().map(|header| contracts.truth[&header.number].clone()).collect();
            let Finding::Wrong(fault) = compare(&own, &evidence.data.hints.batches) else {
                panic!("a stake lost")
            };
            assert_eq!((fault.number, fault.index), (number, evidence.index));
            // A false ⊥ is slashed by its wrong release, too: then L1 asks for no key.
            if evidence.key.is_some() || fault.kind != FaultKind::NotMalformed {
                assert_eq!(fault.key, evidence.key);
            }
            contracts.challenges.push(fault);
            *contracts.rewards.entry("hints").or_default() += REWARD;
            contracts.tell(HintEvent::Released { id, last: evidence.posting.last });
            Ok(())
        })
    }

    async fn slash_equivocation(&self, pair: &[SignedHeader; 2], salt: B256) -> Result<Sent, L1Error> {
        let (address, [first, second]) = (self.address, pair);
        self.act(|contracts| {
            let number = first.header.number;
            assert_ne!(first.header, second.header);
            for header in [first, second] {
                assert_eq!(header.header.number, number);
                assert_eq!(header.signer(&chain_config().deployment), Ok(chain_config().sequencer));
            }
            let (first, second) = (first.header.hash(), second.header.hash());
            let claim = Claim::Headers { number, first, second };
            contracts.use_up(commitment(address, claim.evidence(), salt))?;
            let block = contracts.newest;
            assert!(contracts.equivocated.insert(number, block).is_none(), "once for a number");
            *contracts.rewards.entry("inbox").or_default() += REWARD;
            Ok(())
        })
    }

    async fn claim_reward(&self, contract: DisputeContract) -> Result<Sent, L1Error> {
        self.act(|contracts| {
            let amount = contracts.rewards.remove(name(contract)).expect("something to claim");
            contracts.claimed += amount;
            Ok(())
        })
    }

    async fn post_headers(
        &self,
        headers: &[BatchHeader],
        certificate: &Certificate,
    ) -> Result<Sent, L1Error> {
        let mut contracts = self.contracts.lock();
        contracts.newest += 1;
        contracts.headers.extend(headers.iter().map(|header| (header.number, header.hash())));
        assert_eq!(contracts.headers.last(), Some(&(certificate.number, certificate.header_hash)));
        Ok(sent(contracts.newest))
    }

    async fn lacks_data(&self, _: &BatchHeader) -> Result<bool, L1Error> {
        Ok(false)
    }

    async fn end_at_head(&self, head: &BatchHeader) -> Result<Option<Sent>, L1Error> {
        let mut contracts = self.contracts.lock();
        assert_eq!(contracts.headers.last(), Some(&(head.number, head.hash())), "after L1's head");
        contracts.newest += 1;
        contracts.headers.push((head.number + 1, B256::repeat_byte(0xee)));
        Ok(Some(sent(contracts.newest)))
    }

    async fn post(&self, batches: &[CodedBatch], certificate: &Certificate) -> Result<Sent, L1Error> {
        self.act(|contracts| {
            contracts.newest += 1;
            for CodedBatch { sealed, codes } in batches {
                assert_eq!(sealed.header.number, contracts.headers.last().map_or(1, |(last, _)| last + 1));
                assert_eq!(codes.len(), sealed.items.len());
                contracts.headers.push((sealed.header.number, sealed.header.hash()));
            }
            let last = (certificate.number, certificate.header_hash);
            assert_eq!(contracts.headers.last(), Some(&last));
            Ok(())
        })
    }
}

/// A node that has opened its batches, and the contracts.
struct Scene {
    machine: Machine,
    store: Arc<dyn Store>,
    sequencer: Sealer,
    contracts: Arc<Mutex<Contracts>>,
}

struct Node {
    watcher: Watcher,
    evidence: Arc<EvidenceStore>,
    counters: Counters,
    metrics: Metrics,
}

impl Node {
    async fn round(&mut self) -> WatchRound {
        let round = self.watcher.round().await.expect("no error");
        assert_eq!(round.first_error, None, "all was looked at");
        round
    }

    /// What L1 gave no answer about.
    async fn first_error(&mut self) -> L1Error {
        let round = self.watcher.round().await;
        round.map_or_else(
            |error| match error {
                L1RoundError::L1(error) => error,
                L1RoundError::Store(error) => panic!("{error}"),
            },
            |round| round.first_error.expect("something is not looked at"),
        )
    }

    fn shows(&self, name: &str, value: u64) {
        let line = format!("blindfold_full_node_watch_{name}{{role=\"full_node\"}} {value}\n");
        let text = self.metrics.render();
        assert!(text.contains(&line), "{line} in\n{text}");
    }
}

impl Scene {
    async fn on(store: Arc<dyn Store>) -> Self {
        let l1: Arc<ScriptedL1> = l1();
        let machine = Machine::start(Arc::clone(&store), &l1, &ScriptedExecution::new()).await;
        let sequencer = Sealer { tracker: machine.tracker.clone(), l1 };
        let contracts = Arc::new(Mutex::new(Contracts { newest: 5, ..Contracts::default() }));
        Self { machine, store, sequencer, contracts }
    }

    async fn new() -> Self {
        Self::on(memory()).await
    }

    /// Batches 1 to 3: a key and ⊥, nothing, a key; certified and opened.
    async fn three_batches(&self) -> Vec<Sealed> {
        let mut sealed = Vec::new();
        let contents = [vec![envelope(1, 1), malformed(1, 2)], vec![], vec![envelope(1, 3)]];
        for (ms, envelopes) in (0u64..).step_by(250).zip(contents) {
            let batch = self.sequencer.seal_envelopes(ms, &envelopes).await;
            self.sequencer.certify(&batch).await;
            self.open(&batch).await;
            sealed.push(batch);
        }
        sealed
    }

    async fn open(&self, sealed: &Sealed) {
        let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
        self.contracts.lock().truth.insert(hints.number, hints.clone());
        self.machine.intake.submit(Some(release), hints).await.expect("they stand");
    }

    /// The right posting of batches `first ..= last`.
    fn right(&self, first: u64, last: u64) -> Vec<PostedBatch> {
        let contracts = self.contracts.lock();
        (first..=last).map(|number| posted(&contracts.truth[&number])).collect()
    }

    async fn node_with(&self, address: Option<Address>) -> Node {
        let metrics = Metrics::new("full_node", "test").expect("a registry");
        let counters = Counters::new(&metrics).expect("registers");
        let evidence = Arc::new(EvidenceStore::open(Arc::clone(&self.store)).await.expect("undamaged"));
        let contracts = Arc::clone(&self.contracts);
        let reporter = Reporter { address: address.unwrap_or_default(), contracts, lost: Arc::default() };
        let reporter = Arc::new(reporter);
        let deps = WatcherDeps {
            l1: reporter.clone(),
            reporter: address.is_some().then_some(reporter as Arc<dyn L1Submitter>),
            tracker: self.machine.tracker.clone(),
            evidence: Arc::clone(&evidence),
            judge: Judge { parameters: parameter_set(), backend: backend() },
            counters: counters.clone(),
        };
        Node { watcher: Watcher::new(WatchConfig::default(), deps), evidence, counters, metrics }
    }

    /// A node as after a start.
    async fn node(&self) -> Node {
        self.node_with(Some(Address::repeat_byte(7))).await
    }

    fn pass(&self, blocks: u64) {
        self.contracts.lock().newest += blocks;
    }
}

fn posted(hints: &BatchHints) -> PostedBatch {
    let posted = |hint: &HintEntry| match hint {
        HintEntry::Skipped => entry(0, [0; 16]),
        HintEntry::Key(key) => entry(1, *key),
        HintEntry::Malformed(_) => entry(2, [0; 16]),
    };
    let release = |entry: &HintEntry| match entry {
        HintEntry::Malformed(release) => Some(*release),
        HintEntry::Key(_) | HintEntry::Skipped => None,
    };
    PostedBatch {
        entries: hints.entries.iter().map(posted).collect(),
        singletons: hints.entries.iter().filter_map(release).collect(),
    }
}

#[tokio::test]
async fn a_right_posting_is_left_alone() {
    let scene = Scene::new().await;
    scene.three_batches().await;
    let right = scene.right(1, 3);
    scene.contracts.lock().post(1, right);
    let mut node = scene.node().await;
    for _ in 0..3 {
        assert_eq!(node.round().await, WatchRound::default());
        scene.pass(1);
    }
    let contracts = scene.contracts.lock();
    assert_eq!((contracts.commitments.len(), contracts.challenges.len(), contracts.read_data), (0, 0, 1));
    node.shows("postings_checked_total", 1);
    node.shows("wrong_postings_total", 0);
}

#[tokio::test]
async fn every_wrong_posting_is_challenged_exactly_once() {
    let scene = Scene::new().await;
    scene.three_batches().await;
    type Change = fn(&mut Vec<PostedBatch>);
    let cases: [(Change, FaultKind, u64, u32); 10] = [
        (|posted| posted[0].entries[0].key = [9; 16], FaultKind::WrongKey, 1, 0),
        (|posted| posted[0].entries[1] = entry(1, [9; 16]), FaultKind::WrongKey, 1, 1),
        (|posted| posted[2].entries[0] = entry(2, [0; 16]), FaultKind::NotMalformed, 3, 0),
        (|posted| posted[2].entries[0] = entry(0, [0; 16]), FaultKind::WrongVerdict, 3, 0),
        (|posted| posted[1].entries.push(entry(0, [0; 16])), FaultKind::WrongCount, 2, 0),
        (|posted| posted[0].entries[1].kind = 9, FaultKind::UnknownKind, 1, 1),
        (|posted| posted[0].entries[1].key[0] = 1, FaultKind::NoRelease, 1, 1),
        (|posted| posted[0].singletons.clear(), FaultKind::NoRelease, 1, 1),
        (|posted| posted[0].singletons[0][47] ^= 1, FaultKind::WrongRelease, 1, 1),
        (|posted| posted[0].singletons[0] = [0; 48], FaultKind::WrongRelease, 1, 1),
    ];
    let mut node = scene.node().await;
    for (times, (change, kind, number, index)) in (1u128..).zip(cases) {
        let mut wrong = scene.right(1, 3);
        change(&mut wrong);
        scene.contracts.lock().post(1, wrong);
        let found = node.round().await;
        assert_eq!((found.wrong, found.disputes), (1, 1), "{kind:?}");
        assert_eq!(scene.contracts.lock().commitments.len(), 1, "committed first");
        node.round().await;
        assert_eq!(scene.contracts.lock().commitments.len(), 1, "not in the block of the commitment");
        scene.pass(1);
        for _ in 0..3 {
            node.round().await;
        }
        assert_eq!(node.round().await, WatchRound::default(), "settled and forgotten");
        let contracts = scene.contracts.lock();
        assert_eq!(contracts.challenges.len() as u128, times, "once");
        let fault = contracts.challenges.last().copied().expect("one");
        assert_eq!((fault.kind, fault.number, fault.index), (kind, number, index));
        assert_eq!((contracts.claimed, contracts.commitments.len()), (times * REWARD, 0));
    }
    node.shows("challenges_total", 10);
    node.shows("rewards_total", 10);
    node.shows("open_cases", 0);
}

#[tokio::test]
async fn killed_in_each_step_it_goes_on_and_challenges_once() {
    let scene = Scene::new().await;
    scene.three_batches().await;
    let mut wrong = scene.right(1, 3);
    wrong[0].entries[0].key = [9; 16];
    scene.contracts.lock().post(1, wrong);
    let lost = || L1Error::no_answer("scripted");
    // A new process at each look. Commitment, challenge and claim are each lost before and after they took effect.
    for _ in 0..3 {
        for before in [true, false] {
            scene.contracts.lock().failures.push((lost(), before));
            let mut node = scene.node().await;
            assert_eq!(node.first_error().await, lost());
            scene.pass(2);
        }
    }
    scene.node().await.round().await;
    let mut node = scene.node().await;
    assert_eq!(node.round().await, WatchRound::default());
    let contracts = scene.contracts.lock();
    assert_eq!((contracts.challenges.len(), contracts.claimed, contracts.commitments.len()), (1, REWARD, 0));
}

#[tokio::test]
async fn a_case_older_than_the_look_back_is_not_lost() {
    let scene = Scene::new().await;
    scene.three_batches().await;
    let mut wrong = scene.right(1, 1);
    wrong[0].entries[0].key = [9; 16];
    scene.contracts.lock().post(1, wrong);
    assert_eq!(scene.node().await.round().await.disputes, 1);
    scene.pass(10 * WINDOW);
    let mut node = scene.node().await;
    node.round().await;
    assert_eq!(scene.contracts.lock().challenges.len(), 1, "it is still open, so it still counts");
    node.round().await;
    assert_eq!(node.round().await, WatchRound::default());
}

#[tokio::test]
async fn what_l1_takes_back_or_others_settle_is_dropped() {
    let scene = Scene::new().await;
    scene.three_batches().await;
    let mut wrong = scene.right(1, 1);
    wrong[0].entries[0].key = [9; 16];
    scene.contracts.lock().lag = 3;
    let posting = scene.contracts.lock().post(1, wrong.clone());
    let mut node = scene.node().await;
    assert_eq!(node.round().await.disputes, 1);
    // Taken back; its id goes to a right posting.
    {
        let right = scene.right(1, 1);
        let mut contracts = scene.contracts.lock();
        contracts.events.clear();
        let same = PostedLog { root: B256::repeat_byte(0xee), ..posting };
        contracts.data.insert((same.id, same.root), data(&same, right));
        contracts.events.push((posting.l1_block, HintEvent::Posted(same)));
    }
    scene.pass(5);
    assert_eq!(node.round().await, WatchRound::default(), "another posting under this id is not challenged");
    // Another reporter is faster, which ends the publisher's other posting, too.
    scene.contracts.lock().post(1, wrong.clone());
    scene.contracts.lock().post(1, wrong);
    assert_eq!(node.round().await.disputes, 2);
    scene.contracts.lock().tell(slashed(Address::ZERO));
    assert_eq!(
        node.round().await,
        WatchRound { disputes: 2, ..WatchRound::default() },
        "that is not final yet"
    );
    scene.pass(5);
    node.round().await;
    assert_eq!(node.round().await, WatchRound::default());
    assert!(scene.contracts.lock().challenges.is_empty());
}

#[tokio::test]
async fn without_a_key_it_only_tells() {
    let scene = Scene::new().await;
    scene.three_batches().await;
    let mut wrong = scene.right(1, 3);
    wrong[0].entries[0].key = [9; 16];
    scene.contracts.lock().post(1, wrong);
    let mut node = scene.node_with(None).await;
    for _ in 0..2 {
        assert_eq!(node.round().await, WatchRound { wrong: 1, ..WatchRound::default() });
        scene.pass(1);
    }
    node.shows("wrong_postings_total", 1);
    node.shows("wrong_postings_open", 1);
    // With a key at the next start it is challenged after all.
    let mut node = scene.node().await;
    node.round().await;
    scene.pass(1);
    node.round().await;
    assert_eq!(scene.contracts.lock().challenges.len(), 1);
}

/// Members release a run to nobody, and an accomplice of theirs calls all of it malformed. No honest node has a key to
/// show, but every node can see that the releases are none.
#[tokio::test]
async fn an_unreleased_run_claimed_malformed_is_challenged_exactly_once() {
    let scene = Scene::new().await;
    scene.three_batches().await;
    let fourth = scene.sequencer.seal_envelopes(750, &[envelope(1, 4), malformed(1, 5)]).await;
    scene.sequencer.certify(&fourth).await;
    let (_, truth) = open_batch(&fourth.batch, &fourth.verdicts);
    scene.contracts.lock().truth.insert(4, truth);
    let header =
        |index: usize| Envelope::decode(&fourth.batch.items[index]).expect("an envelope").ciphertext.c;
    let claims: [Vec<[u8; 48]>; 3] = [vec![header(0), header(1)], vec![[0; 48]; 2], vec![]];
    let mut node = scene.node().await;
    for (times, singletons) in (1..).zip(claims) {
        let entries = (0..2u128).map(|place| entry(2, place.to_be_bytes())).collect();
        scene.contracts.lock().post(4, vec![PostedBatch { entries, singletons }]);
        assert_eq!(node.round().await, WatchRound { wrong: 1, disputes: 1, ..WatchRound::default() });
        for _ in 0..4 {
            scene.pass(1);
            node.round().await;
        }
        assert_eq!(node.round().await, WatchRound::default(), "settled and forgotten");
        let contracts = scene.contracts.lock();
        assert_eq!((contracts.challenges.len(), contracts.commitments.len()), (times, 0), "once");
        let fault = contracts.challenges.last().copied().expect("one");
        assert_eq!((fault.number, fault.index), (4, 0));
    }
}

#[tokio::test]
async fn batches_that_are_not_opened_here_are_judged_by_their_ciphertexts() {
    let scene = Scene::new().await;
    scene.three_batches().await;
    let fourth = scene.sequencer.seal_envelopes(750, &[envelope(1, 4), malformed(1, 5)]).await;
    let (_, truth) = open_batch(&fourth.batch, &fourth.verdicts);
    scene.contracts.lock().post(4, vec![posted(&truth)]);
    let mut node = scene.node().await;
    assert_eq!(node.round().await, WatchRound { unchecked: 1, ..WatchRound::default() }, "not certified");
    node.shows("unchecked_postings", 1);
    scene.sequencer.certify(&fourth).await;
    assert_eq!(node.round().await, WatchRound::default(), "it is right");
    type Change = fn(&mut PostedBatch);
    let changes: [(Change, FaultKind, u32); 7] = [
        (|posted| posted.entries[0].key = [9; 16], FaultKind::WrongKey, 0),
        (|posted| posted.entries[0] = entry(0, [0; 16]), FaultKind::WrongVerdict, 0),
        (|posted| posted.entries[1].kind = 3, FaultKind::UnknownKind, 1),
        (|posted| posted.entries[1] = entry(0, [1; 16]), FaultKind::StrayKey, 1),
        (|posted| posted.entries.truncate(1), FaultKind::WrongCount, 0),
        (|posted| posted.singletons.clear(), FaultKind::NoRelease, 1),
        (|posted| posted.singletons[0][20] ^= 1, FaultKind::WrongRelease, 1),
    ];
    for (change, kind, index) in changes {
        let mut wrong = posted(&truth);
        change(&mut wrong);
        scene.contracts.lock().post(4, vec![wrong]);
        assert_eq!(node.round().await.wrong, 1, "{kind:?}");
        let name = kind.as_str();
        scene.contracts.lock().tell(slashed(Address::ZERO));
        node.round().await;
        assert_eq!(node.round().await, WatchRound::default(), "{name} at {index}");
    }
    // The right release of an envelope that opens gives everybody its key.
    let mut wrong = posted(&truth);
    wrong.entries[0] = entry(2, 1u128.to_be_bytes());
    let points = points_of(&fourth.batch, &fourth.verdicts).concat();
    wrong.singletons.push(singleton(&points[0].2));
    scene.contracts.lock().truth.insert(4, truth);
    scene.contracts.lock().post(4, vec![wrong]);
    node.round().await;
    scene.pass(1);
    node.round().await;
    let fault = scene.contracts.lock().challenges.last().copied().expect("one");
    assert_eq!((fault.kind, fault.index), (FaultKind::NotMalformed, 0));
    assert!(fault.key.is_some());
}

#[tokio::test]
async fn a_refusal_of_l1_is_tried_again_and_stops_nothing_else() {
    let scene = Scene::new().await;
    scene.three_batches().await;
    let mut wrong = scene.right(1, 1);
    wrong[0].entries[0].key = [9; 16];
    let other = vec![PostedBatch { entries: vec![entry(0, [0; 16])], singletons: vec![] }];
    scene.contracts.lock().post(1, wrong);
    scene.contracts.lock().post(3, other);
    scene.contracts.lock().failures.push((L1Error::refused("no ether"), true));
    let mut node = scene.node().await;
    assert_eq!(node.round().await.disputes, 2);
    node.shows("failures_total", 1);
    assert_eq!(scene.contracts.lock().commitments.len(), 1, "the other one");
    for _ in 0..4 {
        scene.pass(1);
        node.round().await;
    }
    assert_eq!(scene.contracts.lock().challenges.len(), 2);
}

#[tokio::test]
async fn what_cannot_be_looked_at_holds_up_nothing_else() {
    let scene = Scene::new().await;
    let sealed = scene.three_batches().await;
    let first = sealed[0].batch.signed_header();
    let second = BatchHeader { gas: first.header.gas + 1, ..first.header };
    let second = second.sign(&sequencer_key(), &chain_config().deployment);
    let mut node = scene.node().await;
    node.evidence.keep_headers(first, second).await.expect("a disk");
    {
        let mut contracts = scene.contracts.lock();
        contracts.equivocated.insert(first.header.number, 1);
        contracts.pruned = true;
        let other = || vec![PostedBatch { entries: vec![entry(0, [0; 16])], singletons: vec![] }];
        let unserved = contracts.post(3, other());
        contracts.unserved.insert(unserved.id);
        contracts.post(3, other());
    }
    for _ in 0..3 {
        node.first_error().await;
        scene.pass(1);
    }
    assert_eq!(scene.contracts.lock().challenges.len(), 1);
    assert_eq!(scene.contracts.lock().claimed, REWARD);
    // What comes back is judged, too.
    scene.contracts.lock().unserved.clear();
    scene.contracts.lock().pruned = false;
    for _ in 0..4 {
        node.round().await;
        scene.pass(1);
    }
    assert_eq!(scene.contracts.lock().challenges.len(), 2);
    assert_eq!(node.round().await, WatchRound::default());
}

/// A posting of a run that others made final may stay open for as long as its publisher likes. A case about it that was not
/// shown until its batches were pruned ended every look at L1.
#[tokio::test]
async fn a_case_of_pruned_batches_holds_up_nothing_else() {
    let store = memory();
    store.bind(&chain_config().deployment, "full_node").await.expect("a disk");
    store.keep_ledgers_from(0).await.expect("a disk");
    let scene = Scene::on(Arc::clone(&store)).await;
    let mut sealed = scene.three_batches().await;
    let mut wrong = scene.right(1, 1);
    wrong[0].entries[0].key = [9; 16];
    scene.contracts.lock().post(1, wrong);
    let mut node = scene.node().await;
    assert_eq!(node.round().await.disputes, 1);
    // It has no ether for long.
    let last = scene.sequencer.seal_envelopes(1_000, &[envelope(1, 4)]).await;
    scene.sequencer.certify(&last).await;
    scene.open(&last).await;
    scene.machine.executed(1).await;
    sealed.push(last);
    store.keep_ledgers_from(4).await.expect("a disk");
    assert_eq!(store.prune(u64::MAX, 0).await.expect("a disk").through, 3);

    let mut wrong = scene.right(4, 4);
    wrong[0].entries[0].key = [9; 16];
    {
        let mut contracts = scene.contracts.lock();
        contracts.headers.extend(sealed.iter().map(|sealed| (sealed.batch.header.number, sealed.hash)));
        contracts.post(4, wrong);
    }
    for _ in 0..4 {
        scene.pass(1);
        node.round().await;
    }
    let challenges = scene.contracts.lock().challenges.clone();
    assert_eq!(challenges.iter().map(|fault| fault.number).collect::<Vec<_>>(), [4]);
}

#[tokio::test]
async fn outputs_are_compared_once_each_as_far_as_blocks_are_here() {
    let scene = Scene::new().await;
    for second in 0..3u64 {
        let batch = scene.sequencer.seal_envelopes(second * 1_000, &[envelope(1, second + 1)]).await;
        scene.sequencer.certify(&batch).await;
        scene.open(&batch).await;
    }
    scene.machine.executed(2).await;
    let mut outputs = Vec::new();
    for number in 1..=2 {
        let block = scene.store.block(number).await.expect("a disk").expect("executed");
        outputs.push(Output {
            l2_block: number,
            batch: block.last_batch,
            timestamp: block.second,
            block_hash: block.hash,
            state_root: block.state_root,
        });
    }
    outputs[1].state_root = B256::repeat_byte(1);
    outputs.push(Output { l2_block: 3, ..outputs[1] });
    scene.contracts.lock().outputs = outputs;
    for (start, (compared, mismatches)) in [(2, 1), (0, 0)].into_iter().enumerate() {
        // Started again, it goes on after the last one.
        let mut node = scene.node().await;
        node.round().await;
        assert_eq!(node.counters.watch_outputs_compared.get(), compared, "start {start}");
        node.shows("output_mismatches_total", mismatches);
    }
}

async fn equivocation(scene: &Scene) -> (SignedHeader, SignedHeader) {
    let one = scene.sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let mut header = one.batch.header;
    header.timestamp_ms += 1;
    (one.batch.signed_header(), header.sign(&sequencer_key(), &chain_config().deployment))
}

#[tokio::test]
async fn two_headers_are_shown_once_whatever_happens_between() {
    let folder = tempfile::tempdir().expect("a folder");
    let scene = Scene::on(disk(&folder.path().join("node.sqlite")).await).await;
    let (first, second) = equivocation(&scene).await;
    let evidence = EvidenceStore::open(Arc::clone(&scene.store)).await.expect("undamaged");
    assert!(evidence.keep_headers(first, second).await.expect("a disk"));
    assert!(!evidence.keep_headers(second, first).await.expect("a disk"), "one pair is enough");
    drop(evidence);
    let lost = || L1Error::no_answer("scripted");
    for before in [true, false, true, false, true, false] {
        scene.contracts.lock().failures.push((lost(), before));
        assert_eq!(scene.node().await.first_error().await, lost());
        scene.pass(2);
    }
    let mut node = scene.node().await;
    node.round().await;
    assert_eq!(node.round().await, WatchRound::default());
    let contracts = scene.contracts.lock();
    let shown: BTreeSet<u64> = contracts.equivocated.keys().copied().collect();
    assert_eq!((shown, contracts.claimed), (BTreeSet::from([1]), REWARD));
}

#[tokio::test]
async fn damaged_cases_are_refused_at_the_start() {
    let store = memory();
    store.put_meta("full_node.watch", b"?").await.expect("a disk");
    assert!(matches!(EvidenceStore::open(store).await, Err(EvidenceError::Damaged(_))));
}

/// What a node on this disk would show on L1: how many cases it has.
async fn cases_on(path: &Path) -> usize {
    let scene = Scene::on(disk(path).await).await;
    scene.node().await.round().await.disputes
}

#[tokio::test]
async fn a_second_header_from_the_feed_is_kept_as_evidence() {
    let world = World::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("node.sqlite");
    let node = world.start_on(&path).await;
    let one = world.sequencer.seal(0, &[envelope(1, 1)]).await;
    let mut heads = node.tracker().watch_sealed();
    within("the first header", heads.wait_for(|head| head.hash == one.hash)).await.expect("it lives");
    let mut second = one.batch.as_ref().clone();
    second.header.timestamp_ms += 1;
    second.signature = second.header.sign(&sequencer_key(), &chain_config().deployment).signature;
    for _ in 0..2 {
        world.sequencer.publish(&announce::header(&second, second.header.hash(), &one.verdicts));
    }
    eventually("the refusals", || node.counters().second_headers_refused.get() == 2).await;
    eventually("the evidence", || node.counters().watch_equivocations.get() == 1).await;
    node.shutdown().await;
    assert_eq!(cases_on(&path).await, 1, "over restarts");
}

#[tokio::test]
async fn a_header_that_gives_way_to_the_certified_one_is_evidence_too() {
    let world = World::new().await;
    let node = world.start().await;
    let other = Sealer::new(&world.l1).await;
    let shown = other.seal_envelopes(300, &[envelope(1, 7)]).await;
    world.sequencer.publish(&announce::header(&shown.batch, shown.hash, &shown.verdicts));
    let mut heads = node.tracker().watch_sealed();
    within("the first header", heads.wait_for(|head| head.hash == shown.hash)).await.expect("it lives");
    // The certified one comes with its certificate only, never as a second header.
    let truth = world.sequencer.sealing.seal_envelopes(250, &[envelope(1, 1)]).await;
    world.sequencer.certify(&truth).await;
    certified_through(&node, 1).await;
    assert_eq!(node.tracker().certified().hash, truth.hash);
    assert_eq!(node.counters().watch_equivocations.get(), 1);
}

/// What is opened and never posted becomes void while everybody can read it: L1 makes a header in its place.
#[tokio::test]
async fn what_the_sequencer_keeps_from_l1_is_posted_by_a_node_with_a_key() {
    let scene = Scene::new().await;
    let batches = scene.three_batches().await;
    let origin = batches[0].batch.header.l1_origin_number;
    let quarter = u64::from(chain_config().timing.posting_deadline).div_ceil(4);
    let mut looking = scene.node_with(None).await;
    let mut node = scene.node().await;
    scene.contracts.lock().newest = origin + quarter - 1;
    assert_eq!(node.round().await, WatchRound::default());
    assert!(scene.contracts.lock().headers.is_empty(), "the sequencer has time");
    scene.pass(1);
    looking.round().await;
    assert!(scene.contracts.lock().headers.is_empty(), "nobody pays for it");
    // The sequencer posts the first itself, and then no more.
    let first = batches[0].batch.header;
    scene.contracts.lock().headers.push((1, first.hash()));
    node.round().await;
    let posted: Vec<u64> = scene.contracts.lock().headers.iter().map(|(number, _)| *number).collect();
    assert_eq!(posted, [1, 2, 3]);
    node.shows("runs_posted_total", 1);
    node.round().await;
    node.shows("runs_posted_total", 1);
    // Refused by L1, it is tried again, and keeps the node from nothing else.
    scene.contracts.lock().headers.truncate(1);
    scene.contracts.lock().failures.push((L1Error::refused("no ether"), true));
    assert_eq!(node.round().await, WatchRound::default());
    node.shows("failures_total", 1);
    node.round().await;
    node.shows("runs_posted_total", 2);
    // Neither too late, nor on another chain than its own.
    scene.contracts.lock().headers.truncate(1);
    scene.contracts.lock().newest = origin + 4 * quarter + 4;
    node.round().await;
    scene.contracts.lock().headers = vec![(1, B256::repeat_byte(1))];
    scene.contracts.lock().newest = origin + quarter;
    node.round().await;
    node.shows("runs_posted_total", 2);
}

/// One posting that L1 does not serve made each round a failure, and what was overdue waited for the longest pause.
#[tokio::test]
async fn what_is_overdue_is_posted_at_once_while_something_else_is_not_answered() {
    /// More than one transaction takes.
    const OVERDUE: u64 = (MAX_TRANSACTION_HEADERS as u64 / 10 + 2) * 10;
    let scene = Scene::new().await;
    let mut origin = None;
    for number in 1..=OVERDUE {
        let sealed = scene.sequencer.seal_envelopes(10 * number, &[]).await;
        origin.get_or_insert(sealed.batch.header.l1_origin_number);
        if number % 10 == 0 {
            scene.sequencer.certify(&sealed).await;
        }
    }
    let quarter = u64::from(chain_config().timing.posting_deadline).div_ceil(4);
    {
        let mut contracts = scene.contracts.lock();
        contracts.newest = origin.expect("some") + quarter;
        let unserved =
            contracts.post(1, vec![PostedBatch { entries: vec![entry(0, [0; 16])], singletons: vec![] }]);
        contracts.unserved.insert(unserved.id);
    }
    let mut node = scene.node().await;
    let posted = || scene.contracts.lock().headers.len() as u64;
    let mut looks = 0;
    while posted() < OVERDUE {
        let round = node.watcher.round().await.expect("it looks at the rest");
        looks += 1;
        assert!(
            round.first_error.is_some() && (round.more || posted() == OVERDUE),
            "look {looks}: {round:?}"
        );
    }
    assert!(looks > 1);
}

/// Once the end is due L1 takes nothing certified of the epoch, however young it is, and makes the last header itself.
#[tokio::test]
async fn an_epoch_that_is_to_end_is_posted_in_time_and_ended() {
    let scene = Scene::new().await;
    let sealed = scene.sequencer.seal_envelopes(10, &[]).await;
    scene.sequencer.certify(&sealed).await;
    let origin = sealed.batch.header.l1_origin_number;
    let end = AnnouncedEnd { epoch: 1, announced_at: origin, until: origin + 400, for_silence: false };
    *scene.sequencer.l1.ending.lock() = Some(end);
    scene.machine.tracker.follow_l1().await.expect("L1 answers");
    let mut node = scene.node().await;
    // The last 100 blocks are for posting alone; nobody ends the epoch before they are over.
    for (after, posted) in [(299, 0), (300, 1), (400, 1), (401, 2), (410, 2)] {
        scene.contracts.lock().newest = origin + after;
        assert_eq!(node.round().await, WatchRound::default());
        assert_eq!(scene.contracts.lock().headers.len(), posted, "{after} blocks after the announcement");
    }
    node.shows("runs_posted_total", 1);
}
