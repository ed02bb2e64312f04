//! Hints on L1: posted, disputed with the real verifier, made final, or declared void.

use blindfold_bte::{EncryptionKey, bls, dealer};
use blindfold_l1::{
    Challenge, DataError, DataPlace, DisputeContract, HintBlobs, HintData, HintEvent, HintPosting, HintTree,
    L1Client, L1Writer, PostedLog, PostedRun, PostingState, PublisherBond, RegistryState, challenge_evidence,
    commitment, first_wrong_entry,
};
use blindfold_protocol::{
    B256, BatchHints, Bundle, Canonical, Envelope, HintEntry, LedgerEvent, SealedBatch, Settled, U256,
    envelope_builder::{EnvelopeFields, build_with_key},
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use crate::stage::{CHAIN_ID, GOVERNOR, POSTER, Stage, TIMING, USER, key, reverted};

const SALT: B256 = B256::repeat_byte(0x5a);
/// An accepted envelope, and one that the rule left out.
pub const CODES: [u8; 2] = [0, 1];

/// What is done to right hints before they are posted.
type Change = fn(&mut HintPosting);

/// A posted run of two batches with one envelope each, and its right hints.
pub struct Game {
    pub stage: Stage,
    pub batches: Vec<SealedBatch>,
    pub run: PostedRun,
    pub truth: Vec<BatchHints>,
    /// The singleton release of the first batch's envelope.
    release: [u8; 48],
}

impl Game {
    pub async fn new() -> Self {
        let stage = Stage::new().await;
        let mut rng = ChaCha20Rng::seed_from_u64(9);
        let (parameters, keys) = dealer::deal(2, 1, 1, &mut rng).unwrap();
        let encryption_key = parameters.encryption_key();
        let governor = stage.writer(GOVERNOR).await;
        let mut epoch = stage.epoch(1_000, encryption_key.clone());
        epoch.h1 = bls::PublicKey::from_bytes(&parameters.h(1).unwrap()).unwrap();
        governor.register_epoch(&epoch).await.unwrap();
        stage.finalize().await;
        let epochs = governor.client().epochs().await.unwrap();
        let (mut batches, mut truth) = (Vec::<SealedBatch>::new(), Vec::new());
        for nonce in 1..=2 {
            let (item, opening) = envelope(&stage, &encryption_key, nonce, &mut rng);
            let parent = batches.last().map(|batch| batch.header);
            let batch = stage.coded(parent.as_ref(), vec![item, vec![3; 9]], &CODES, |_| {});
            let entries = vec![HintEntry::Key(opening), HintEntry::Skipped];
            let (number, header_hash) = (batch.header.number, batch.header.hash());
            truth.push(BatchHints { number, header_hash, entries, blindings: vec![] });
            batches.push(batch);
        }
        let run = stage.post(&epochs, &batches).await;
        let point = Envelope::decode(&batches[0].items[0]).unwrap().ciphertext.header().unwrap();
        let release = parameters.combine_singletons(&[(1, keys[0].singleton_share(&point))]).unwrap();
        Self { stage, batches, run, truth, release }
    }

    /// A publisher with the one bond that it needs.
    pub async fn publisher(&self) -> L1Writer {
        let writer = self.stage.writer(POSTER).await;
        let (bond, _) = writer.client().hint_stakes().await.unwrap();
        writer.deposit_publisher_bond(bond).await.unwrap();
        writer
    }

    /// Posts the right hints after a change.
    async fn post(&self, publisher: &L1Writer, change: impl FnOnce(&mut HintPosting)) -> HintPosting {
        let mut posting = HintPosting::of(&self.truth);
        change(&mut posting);
        publisher.post_hints(&self.run.run, &posting).await.unwrap();
        posting
    }

    /// Disputes the entry of the first batch at `index`.
    pub async fn dispute(
        &self,
        writer: &L1Writer,
        id: u64,
        posting: &HintPosting,
        index: u32,
    ) -> Result<blindfold_l1::Sent, blindfold_l1::L1Error> {
        let (batch, truth) = (&self.batches[0], &self.truth[0]);
        let challenge = Challenge::new(&self.run, batch, &CODES, posting, truth, index).unwrap();
        let evidence = challenge_evidence(id, challenge.number(), challenge.index());
        writer.commit_challenge(evidence, SALT).await.unwrap();
        self.stage.anvil.mine(1).await.unwrap();
        writer.challenge(id, &challenge, SALT).await
    }

    /// The same of hints in blobs.
    async fn dispute_in_blobs(
        &self,
        writer: &L1Writer,
        id: u64,
        blobs: &HintBlobs,
        index: u32,
    ) -> blindfold_l1::Sent {
        let (batch, truth) = (&self.batches[0], &self.truth[0]);
        let challenge = Challenge::new(&self.run, batch, &CODES, &blobs.hints(), truth, index).unwrap();
        let challenge = challenge.in_blobs(blobs).unwrap();
        let evidence = challenge_evidence(id, challenge.number(), challenge.index());
        writer.commit_challenge(evidence, SALT).await.unwrap();
        self.stage.anvil.mine(1).await.unwrap();
        writer.challenge(id, &challenge, SALT).await.unwrap()
    }
}

fn envelope(
    stage: &Stage,
    encryption_key: &EncryptionKey,
    fee_nonce: u64,
    rng: &mut ChaCha20Rng,
) -> (Vec<u8>, [u8; 16]) {
    let fields = EnvelopeFields {
        chain_id: CHAIN_ID + 1,
        deployment: stage.deployment(),
        epoch: 1,
        fee_nonce,
        max_fee: 1,
        priority_fee: 0,
        max_gas_fee: 1_000,
        gas_limit: 21_000,
        expiry: 100,
        generation: 0,
    };
    let (envelope, opening) =
        build_with_key(encryption_key, &fields, &Bundle::default(), &key(USER), rng).unwrap();
    (envelope.encode(), *opening.as_bytes())
}

#[tokio::test]
async fn wrong_hints_are_slashed_and_right_ones_stand() {
    let game = Game::new().await;
    let publisher = game.publisher().await;
    let client = publisher.client();
    let (bond, stake) = client.hint_stakes().await.unwrap();
    let wrong_key = game.post(&publisher, |posting| posting.batches[0].entries[0].key[5] ^= 1).await;
    let false_malformed = game
        .post(&publisher, |posting| {
            posting.batches[0].entries[0] = blindfold_l1::PostedEntry::malformed(0);
            posting.batches[0].singletons.push(game.release);
        })
        .await;
    reverted(publisher.post_hints(&game.run.run, &wrong_key).await, "SameHintsOpen");
    let right = HintPosting::of(&game.truth);
    let of_publisher = async || client.publisher_bond(publisher.address()).await.unwrap();
    assert_eq!(of_publisher().await, PublisherBond { total: bond, locked: bond, open: 2 });
    reverted(publisher.withdraw_publisher_bond(1).await, "BondTooLow");
    let through = game.stage.finalize().await;
    let open = client.posted_hints(0, through).await.unwrap();
    assert!(client.hints_on_l1(2).await.unwrap());
    assert_eq!(client.posted_at(2).await.unwrap(), Some(game.run.run.posted_at));
    assert_eq!(open.iter().map(|posting| posting.id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(open[0].hints.as_ref(), Ok(&wrong_key));
    assert_eq!((open[1].first, open[1].last, open[1].publisher), (1, 2, publisher.address()));
    for posting in &open {
        assert_eq!(first_wrong_entry(posting.hints.as_ref().unwrap(), &game.truth), Some((1, 0)));
    }

    let watcher = game.stage.writer(USER).await;
    let sent = game.dispute(&watcher, 1, &wrong_key, 0).await.unwrap();
    println!("challenge of a wrong key: {} gas", sent.gas_used);
    // The other one is invalidated with it: no bond answers for it, and whoever comes second keeps the stake.
    reverted(game.dispute(&watcher, 2, &false_malformed, 0).await, "PublisherSlashed");
    assert_eq!(of_publisher().await, PublisherBond { total: 0, locked: 0, open: 0 });
    reverted(publisher.post_hints(&game.run.run, &right).await, "BondTooLow");
    let seen = client.recent_hints(0, client.newest_block().await.unwrap()).await.unwrap();
    let states: Vec<PostingState> = seen.postings().map(|hints| hints.state).collect();
    assert_eq!(states, [PostingState::Slashed, PostingState::Invalidated]);
    assert_eq!((seen.void_from(&game.run.run, 0), seen.covers(2)), (sent.block, false));
    watcher.drop_hints(2).await.unwrap();
    reverted(watcher.drop_hints(2).await, "NotOpen");
    let rewards = client.hint_reward(watcher.address()).await.unwrap();
    assert_eq!(rewards, U256::from(bond / 2 + stake));
    watcher.claim_hint_reward().await.unwrap();
    let journal_through = game.stage.finalize().await;
    assert!(!client.hints_on_l1(2).await.unwrap(), "nothing stands after block {journal_through}");
    // A false ⊥ with the right release is slashed by the key that opens it.
    publisher.deposit_publisher_bond(bond).await.unwrap();
    publisher.post_hints(&game.run.run, &false_malformed).await.unwrap();
    game.dispute(&watcher, 3, &false_malformed, 0).await.unwrap();
    watcher.claim_hint_reward().await.unwrap();

    // What is right stands, and costs whoever disputes it the stake.
    publisher.deposit_publisher_bond(bond).await.unwrap();
    publisher.post_hints(&game.run.run, &right).await.unwrap();
    game.dispute(&watcher, 4, &right, 0).await.unwrap();
    game.dispute(&watcher, 4, &right, 1).await.unwrap();
    assert_eq!(client.hint_reward(publisher.address()).await.unwrap(), U256::from(2 * stake));
    reverted(publisher.finalize_hints(4).await, "TooEarly");
    game.stage.anvil.mine(u64::from(TIMING.challenge_window)).await.unwrap();
    let finalized = publisher.finalize_hints(4).await.unwrap();
    publisher.withdraw_publisher_bond(bond).await.unwrap();

    let start = through;
    let through = game.stage.finalize().await;
    let settled = Settled { first: 1, last: 2, malformed: vec![], void: false, l1_block: finalized.block };
    assert_eq!(client.settled_runs(start, through).await.unwrap(), std::slice::from_ref(&settled));
    assert_eq!(client.ledger_events(start, through).await.unwrap(), [LedgerEvent::Settled(settled)]);
    let events = client.hint_events(start, through).await.unwrap();
    let challenger = watcher.address();
    let (number, index, publisher) = (1, 0, publisher.address());
    let is_slashed = |event: &HintEvent, id, reason| {
        let HintEvent::Slashed { l1_block, .. } = *event else { return false };
        let last = 2;
        *event == HintEvent::Slashed { id, last, challenger, publisher, number, index, reason, l1_block }
    };
    assert!(is_slashed(&events[0], 1, 5) && is_slashed(&events[3], 3, 6), "{events:?}");
    assert_eq!(events[1], HintEvent::Dropped { id: 2, last: 2 });
    assert_eq!(events[..4].iter().collect::<RegistryState>().open().count(), 0);
    assert!(matches!(&events[4], HintEvent::Posted(posted) if posted.id == 4));
    assert_eq!(events[5..7], vec![HintEvent::ChallengeFailed { id: 4, challenger }; 2]);
    assert_eq!(events[7..], [HintEvent::Finalized { id: 4, first: 1, last: 2 }]);
    let posted = client.posted_hints(start, through).await.unwrap();
    assert_eq!(posted.iter().map(|posted| posted.id).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(posted[1].hints.as_ref(), Ok(&right));
    assert!(client.hints_on_l1(1).await.unwrap());
    assert_eq!(client.hint_posting(1).await.unwrap(), None);
    assert_eq!(client.hint_posting(4).await.unwrap().unwrap().hints, Ok(right.clone()));
}

/// The events of postings of the run, by id.
async fn posted(client: &L1Client, id: u64) -> PostedLog {
    let newest = client.newest_block().await.unwrap();
    let logs = client.hint_events(0, newest).await.unwrap();
    let found = logs.into_iter().find_map(|log| match log {
        HintEvent::Posted(posted) if posted.id == id => Some(posted),
        _ => None,
    });
    found.unwrap()
}

/// Rule L-12.
#[tokio::test]
async fn hints_in_blobs_are_read_back_and_judged_like_those_in_calldata() {
    let game = Game::new().await;
    let plain = game.publisher().await;
    let publisher = game.publisher().await.with_data_in(DataPlace::Blobs);
    let client = publisher.client();
    let (bond, stake) = client.hint_stakes().await.unwrap();
    let right = HintPosting::of(&game.truth);
    let [own, other] = publisher.hint_roots(1, &right).await.unwrap();
    assert_eq!(own, Some(HintBlobs::of(&right).unwrap().root(1)));
    assert_eq!(other, Some(HintTree::new(&right, 1).root()));

    // A wrong key, and a false ⊥ that the index has too, with what is no release.
    let watcher = game.stage.writer(USER).await;
    let changes: [(Change, u8); 2] = [
        (|posting| posting.batches[0].entries[0].key[5] ^= 1, 5),
        (
            |posting| {
                posting.batches[0].entries[0] = blindfold_l1::PostedEntry::malformed(0);
                posting.batches[0].singletons.push([7; 48]);
            },
            9,
        ),
    ];
    let start = client.newest_block().await.unwrap();
    for (id, (change, _)) in (1..).zip(changes) {
        let wrong = game.post(&publisher, change).await;
        reverted(publisher.post_hints(&game.run.run, &wrong).await, "SameHintsOpen");
        let log = posted(client, id).await;
        assert_eq!(client.hint_data(&log).await.unwrap(), None, "nothing names the newest block yet");
        game.stage.anvil.mine(1).await.unwrap();
        let data = client.hint_data(&log).await.unwrap().unwrap().unwrap();
        assert_eq!((data.run, &data.hints), (game.run.run, &wrong));
        assert_eq!(first_wrong_entry(&data.hints, &game.truth), Some((1, 0)));
        let blobs = data.blobs.unwrap();
        assert_eq!(blobs.root(1), log.root);
        let sent = game.dispute_in_blobs(&watcher, id, &blobs, 0).await;
        println!("challenge of an entry in a blob: {} gas", sent.gas_used);
        watcher.claim_hint_reward().await.unwrap();
        publisher.deposit_publisher_bond(bond).await.unwrap();
    }

    // What is right stands, beside the same in calldata, and costs whoever disputes it the stake.
    game.post(&publisher, |_| {}).await;
    game.post(&plain, |_| {}).await;
    assert_eq!(posted(client, 3).await.root, own.unwrap());
    assert_eq!(posted(client, 4).await.root, other.unwrap());
    let log = posted(client, 3).await;
    let blobs = client.hint_data(&log).await.unwrap().unwrap().unwrap().blobs.unwrap();
    for index in [0, 1] {
        game.dispute_in_blobs(&watcher, 3, &blobs, index).await;
    }
    assert_eq!(client.hint_reward(publisher.address()).await.unwrap(), U256::from(2 * stake));
    game.stage.anvil.mine(u64::from(TIMING.challenge_window)).await.unwrap();
    let finalized = publisher.finalize_hints(3).await.unwrap();

    let through = game.stage.finalize().await;
    let events = client.hint_events(start, through).await.unwrap();
    let reasons: Vec<u8> = events
        .iter()
        .filter_map(|event| match event {
            HintEvent::Slashed { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, changes.map(|(_, reason)| reason));
    assert_eq!(client.hint_posting(3).await.unwrap().unwrap().hints, Ok(right));
    // Who has no beacon node knows all the same what the fee ledger has to know.
    let mut config = game.stage.config();
    config.beacon_url = None;
    let blind = L1Client::connect(config).await.unwrap();
    assert_eq!(blind.hint_posting(3).await.unwrap().unwrap().hints, Err(DataError::NoBeacon));
    let settled = Settled { first: 1, last: 2, malformed: vec![], void: false, l1_block: finalized.block };
    assert_eq!(blind.settled_runs(start, through).await.unwrap(), [settled]);
}

#[tokio::test]
async fn structure_verdicts_and_releases_are_judged_without_a_key() {
    let game = Game::new().await;
    let publisher = game.publisher().await;
    let watcher = game.stage.writer(USER).await;
    let cases: [(Change, u32, u8); 4] = [
        (|posting| posting.batches[0].entries.truncate(1), 0, 1),
        (|posting| posting.batches[0].entries[1].kind = 2, 1, 4),
        (|posting| posting.batches[0].entries[0] = blindfold_l1::PostedEntry::malformed(0), 0, 8),
        (
            |posting| {
                posting.batches[0].entries[0] = blindfold_l1::PostedEntry::malformed(129);
                posting.batches[0].singletons.resize(130, [7; 48]);
            },
            0,
            9,
        ),
    ];
    let (bond, _) = watcher.client().hint_stakes().await.unwrap();
    for (id, (change, index, reason)) in (1..).zip(cases) {
        let posting = game.post(&publisher, change).await;
        game.dispute(&watcher, id, &posting, index).await.unwrap();
        // A slashing takes all of the bond.
        publisher.deposit_publisher_bond(bond).await.unwrap();
        let through = game.stage.finalize().await;
        let events = watcher.client().hint_events(0, through).await.unwrap();
        assert!(
            matches!(events.last(), Some(HintEvent::Slashed { reason: given, .. }) if *given == reason),
            "{events:?}"
        );
    }
}

/// Rule VR-1.
#[tokio::test]
async fn runs_without_hints_become_void() {
    let game = Game::new().await;
    let writer = game.stage.writer(USER).await;
    let client = writer.client();
    reverted(writer.void_unreleased(&game.run.run).await, "TooEarly");
    game.stage.anvil.mine(u64::from(TIMING.hint_deadline)).await.unwrap();
    let sent = writer.void_unreleased(&game.run.run).await.unwrap();
    let publisher = game.publisher().await;
    let right = HintPosting::of(&game.truth);
    reverted(publisher.post_hints(&game.run.run, &right).await, "RunIsVoid");
    let through = game.stage.finalize().await;
    assert_eq!(client.void_runs(0, through).await.unwrap(), [(1, 2)]);
    assert_eq!(client.all_void_runs().await.unwrap(), [(1, 2)]);
    assert!(!client.hints_on_l1(1).await.unwrap());
    let settled = Settled { first: 1, last: 2, malformed: vec![], void: true, l1_block: sent.block };
    assert_eq!(client.settled_runs(0, through).await.unwrap(), [settled]);
}

#[tokio::test]
async fn what_is_not_final_yet_is_read_with_its_data() {
    let game = Game::new().await;
    let publisher = game.publisher().await;
    let client = publisher.client();
    let before = client.finalized().await.unwrap().number;
    let wrong = game.post(&publisher, |posting| posting.batches[0].entries[0].key[5] ^= 1).await;
    let newest = client.newest_block().await.unwrap();
    let logs = client.hint_events(0, newest).await.unwrap();
    let [HintEvent::Posted(posted)] = logs[..] else { panic!("one posting: {logs:?}") };
    assert!(posted.l1_block > before, "it is not final");
    assert_eq!((posted.first, posted.last, posted.publisher), (1, 2, publisher.address()));
    assert_eq!(posted.root, HintTree::new(&wrong, 1).root());
    assert_eq!(
        client.hint_data(&posted).await.unwrap(),
        Some(Ok(HintData { run: game.run.run, hints: wrong.clone(), blobs: None }))
    );
    let lost = PostedLog { transaction: B256::ZERO, ..posted };
    assert_eq!(client.hint_data(&lost).await.unwrap(), None);
    let runs = client.posted_runs(0, before).await.unwrap();
    assert_eq!(runs, [(game.run.run, game.run.headers[1].hash())]);

    let reporter = game.stage.writer(USER).await;
    let evidence = challenge_evidence(posted.id, 1, 0);
    let commitment = commitment(reporter.address(), evidence, SALT);
    assert_eq!(client.committed_at(DisputeContract::Hints, commitment).await.unwrap(), None);
    let sent = reporter.commit_challenge(evidence, SALT).await.unwrap();
    assert_eq!(client.committed_at(DisputeContract::Hints, commitment).await.unwrap(), Some(sent.block));
    assert_eq!(
        client.committed_at(DisputeContract::Inbox, commitment).await.unwrap(),
        None,
        "the inbox has its own"
    );
    game.dispute(&reporter, posted.id, &wrong, 0).await.unwrap();
    assert_eq!(client.committed_at(DisputeContract::Hints, commitment).await.unwrap(), None, "it is used up");
    let newest = client.newest_block().await.unwrap();
    let later = client.hint_events(posted.l1_block, newest).await.unwrap();
    let [HintEvent::Slashed { id, last, publisher: of, .. }] = later[..] else {
        panic!("a slashing: {later:?}")
    };
    assert_eq!((id, last, of), (posted.id, 2, publisher.address()));
    assert_eq!(client.final_outputs(1, 5).await.unwrap(), []);
}

#[tokio::test]
async fn a_slashing_gives_a_run_time_for_new_hints_before_it_is_void() {
    let game = Game::new().await;
    let publisher = game.publisher().await;
    let watcher = game.stage.writer(USER).await;
    let client = watcher.client();
    // Right hints and wrong ones of one publisher: the slashing of the second ends both.
    game.post(&publisher, |_| {}).await;
    let wrong = game.post(&publisher, |posting| posting.batches[0].entries[0].key[5] ^= 1).await;
    game.stage.anvil.mine(u64::from(TIMING.hint_deadline)).await.unwrap();
    let sent = game.dispute(&watcher, 2, &wrong, 0).await.unwrap();
    let seen = client.recent_hints(0, client.newest_block().await.unwrap()).await.unwrap();
    assert_eq!(seen.invalidated(2).map(|posting| posting.id).collect::<Vec<_>>(), [1]);
    let deadline = u64::from(TIMING.hint_deadline);
    assert_eq!(seen.void_from(&game.run.run, deadline), sent.block + deadline);
    reverted(watcher.void_unreleased(&game.run.run).await, "TooEarly");
    watcher.drop_hints(1).await.unwrap();
    reverted(watcher.void_unreleased(&game.run.run).await, "TooEarly");
    let (bond, _) = client.hint_stakes().await.unwrap();
    publisher.deposit_publisher_bond(bond).await.unwrap();
    publisher.post_hints(&game.run.run, &HintPosting::of(&game.truth)).await.unwrap();
    game.stage.anvil.mine(deadline).await.unwrap();
    reverted(watcher.void_unreleased(&game.run.run).await, "PostingsOpen");
}
