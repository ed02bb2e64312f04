//! A full node that follows from L1 alone, against one that was there all the time.

mod common;

use blindfold_rpc::RunningRole;
use std::sync::Arc;

use async_trait::async_trait;
use blindfold_chain::{ExecutionState, L1Origin, L1Reader, Sealed};
use blindfold_full_node::{FullNode, FullNodeDeps, Source, StartError};
use blindfold_kit::*;
use blindfold_l1::{
    DataError, FoundData, HintPosting, L1Error, PostedData, PostedHints, PostedRun, Posting,
    UNREAD_PATIENCE_BLOCKS,
};
use blindfold_protocol::{
    Address, B256, BatchHeader, BatchHints, ForcedEntry, HintEntry, SealedBatch, Signature65,
};
use common::{World, certified_through, eventually, executed};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

enum Failure {
    L1,
    Beacon,
}

/// What was posted, as a script.
#[derive(Default)]
struct Postings {
    finalized: Mutex<u64>,
    runs: Mutex<Vec<Posting>>,
    again: Mutex<Vec<(u64, Vec<SealedBatch>)>>,
    /// The block up to which what was posted again was last looked for.
    looked: Mutex<u64>,
    /// How often.
    looks: Mutex<u64>,
    /// How the next looks fail, the last first.
    failures: Mutex<Vec<Failure>>,
    hints: Mutex<Vec<PostedHints>>,
    down: Mutex<bool>,
}

impl Postings {
    fn up(&self) -> Result<(), L1Error> {
        if *self.down.lock() { Err(L1Error::no_answer("scripted")) } else { Ok(()) }
    }

    /// Posts a certified run with its data.
    fn post(&self, l1_block: u64, run: &[Sealed]) {
        let batches: Vec<SealedBatch> = run.iter().map(|sealed| (*sealed.batch).clone()).collect();
        let headers: Vec<BatchHeader> = batches.iter().map(|batch| batch.header).collect();
        let certificate = batches.last().map(certificate_of);
        self.put(l1_block, headers, certificate, Ok(batches));
    }

    fn put(
        &self,
        l1_block: u64,
        headers: Vec<BatchHeader>,
        certificate: Option<blindfold_protocol::Certificate>,
        batches: Result<Vec<SealedBatch>, DataError>,
    ) {
        let run = PostedRun::new(headers.clone(), l1_block).expect("headers").run;
        let data = match batches {
            Ok(batches) => PostedData::of(batches),
            Err(fault) => PostedData::missing(headers.len(), fault),
        };
        let posting =
            Posting { l1_block, transaction: B256::ZERO, runs: vec![run], headers, certificate, data };
        self.runs.lock().push(posting);
    }

    /// Posts honest hints for a run, changed as given.
    fn hint(&self, l1_block: u64, run: &[Sealed], change: impl Fn(&mut BatchHints)) {
        let honest = run.iter().map(|sealed| open_batch(&sealed.batch, &sealed.verdicts).1);
        let hints: Vec<BatchHints> = honest
            .map(|mut hints| {
                change(&mut hints);
                hints
            })
            .collect();
        let number = |sealed: &Sealed| sealed.batch.header.number;
        let mut posted = self.hints.lock();
        let posting = PostedHints {
            id: posted.len() as u64,
            first: number(&run[0]),
            last: number(&run[run.len() - 1]),
            publisher: Address::repeat_byte(7),
            l1_block,
            transaction: B256::ZERO,
            hints: Ok(HintPosting::of(&hints)),
        };
        posted.push(posting);
    }
}

#[async_trait]
impl L1Reader for Postings {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        self.up()?;
        Ok(l1_block(*self.finalized.lock()))
    }

    async fn postings(&self, after: u64, through: u64) -> Result<Vec<Posting>, L1Error> {
        self.up()?;
        let within = |posting: &&Posting| (after + 1..=through).contains(&posting.l1_block);
        Ok(self.runs.lock().iter().filter(within).cloned().collect())
    }

    async fn reposted_data(
        &self,
        headers: &[BatchHeader],
        after: u64,
        through: u64,
    ) -> Result<FoundData, L1Error> {
        *self.looked.lock() = through;
        *self.looks.lock() += 1;
        match self.failures.lock().pop() {
            Some(Failure::L1) => return Err(L1Error::no_answer("scripted")),
            Some(Failure::Beacon) => {
                let unread = DataError::Pruned(through);
                return Ok(FoundData { batches: Vec::new(), unread: Some(unread) });
            }
            None => {}
        }
        let again = self.again.lock();
        let within = again.iter().filter(|(block, _)| (after + 1..=through).contains(block));
        let batches = within.flat_map(|(_, batches)| batches);
        let batches = batches.filter(|batch| headers.contains(&batch.header)).cloned().collect();
        Ok(FoundData { batches, unread: None })
    }

    async fn posted_hints(&self, after: u64, through: u64) -> Result<Vec<PostedHints>, L1Error> {
        self.up()?;
        let within = |posted: &&PostedHints| (after + 1..=through).contains(&posted.l1_block);
        Ok(self.hints.lock().iter().filter(within).cloned().collect())
    }
}

/// A world whose sequencer seals and executes, and a node that never hears of it.
struct Alone {
    world: World,
    postings: Arc<Postings>,
}

impl Alone {
    async fn new() -> Self {
        let mut world = World::new().await;
        world.config.source = Source::L1;
        world.config.sequencer_urls = Default::default();
        world.config.member_poll_interval_ms = 50;
        Self { world, postings: Arc::default() }
    }

    fn deps(&self, store: Arc<dyn blindfold_store::Store>) -> FullNodeDeps {
        FullNodeDeps { posted: Some(Arc::clone(&self.postings) as _), ..self.world.deps(store) }
    }

    async fn start(&self, store: Arc<dyn blindfold_store::Store>) -> FullNode {
        FullNode::start(self.world.config.clone(), self.deps(store)).await.expect("it starts")
    }

    /// Seals at these milliseconds, certified, one envelope each where a nonce is given.
    async fn seal(&self, ms: u64, nonce: Option<u64>) -> Sealed {
        let generation = self.world.sequencer.machine.tracker.head().generation;
        let made = |nonce| envelope_with(1, nonce, |fields| fields.generation = generation);
        let envelopes: Vec<_> = nonce.into_iter().map(made).collect();
        let sealed = self.world.sequencer.seal(ms, &envelopes).await;
        self.world.sequencer.certify(&sealed).await;
        if nonce.is_some() {
            self.world.sequencer.hint(&sealed).await;
        }
        sealed
    }

    /// The hash of a block as the sequencer has it.
    async fn block_hash(&self, number: u64) -> B256 {
        let machine = &self.world.sequencer.machine;
        machine.executed(number).await;
        machine.tracker.store().block(number).await.expect("a disk").expect("a block").hash
    }
}

async fn readyz(node: &FullNode) -> String {
    let mut stream = tokio::net::TcpStream::connect(node.admin_addr()).await.expect("it listens");
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

async fn says(node: &FullNode, words: &str) {
    within(words, async {
        while !readyz(node).await.contains(words) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
}

fn wrong_keys(hints: &mut BatchHints) {
    for entry in &mut hints.entries {
        if let HintEntry::Key(key) = entry {
            key[0] ^= 1;
        }
    }
}

#[tokio::test]
async fn it_arrives_at_the_blocks_of_who_followed_the_feed() {
    let alone = Alone::new().await;
    let sequencer = &alone.world.sequencer;
    // A run with a malformed envelope, a header that L1 made, and a run longer than what may be in flight.
    let first = sequencer.seal(0, &[envelope(1, 1), malformed(1, 2), envelope(1, 3)]).await;
    sequencer.certify(&first).await;
    sequencer.hint(&first).await;
    let run = [first, alone.seal(1_000, None).await];
    alone.postings.post(50, &run);
    let forced = |index, at| ForcedEntry::transaction(index, 50_000, transaction(1, 9), at);
    *alone.world.l1.finalized.lock() = 119;
    let entry = alone.world.l1.force(forced);
    let made = sequencer.sealing.l1_header(5_000, vec![entry.item]);
    sequencer.machine.tracker.accept_l1_header(&made).await.unwrap();
    alone.postings.put(120, vec![made.header], None, Ok(vec![made.batch()]));
    let mut long = Vec::new();
    for step in 0..20 {
        long.push(alone.seal(6_000 + step * 250, (step == 0).then_some(4)).await);
    }
    alone.postings.post(180, &long);
    // Wrong hints first, which nobody had slashed; a false ⊥ for all; then the true ones.
    alone.postings.hint(130, &run, wrong_keys);
    alone.postings.hint(131, &run, |hints| hints.entries.fill(HintEntry::Malformed([7; 48])));
    alone.postings.hint(140, &run, |_| {});
    alone.postings.hint(200, &long, |_| {});

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.sqlite");
    *alone.postings.finalized.lock() = 135;
    let node = alone.start(disk(&path).await).await;
    certified_through(&node, 3).await;
    let waits = |state: &ExecutionState| *state == ExecutionState::WaitingForHints { number: 1 };
    let mut status = node.executor().watch_status();
    within("waiting for hints", status.wait_for(|status| waits(&status.state))).await.unwrap();
    eventually("both wrong postings", || node.counters().from_l1_wrong_postings.get() == 2).await;
    says(&node, "200 OK").await;
    node.shutdown().await;

    // It goes on where it stood, without the blocks that it has read.
    alone.postings.runs.lock().retain(|posting| posting.l1_block > 135);
    *alone.postings.finalized.lock() = 250;
    let node = alone.start(disk(&path).await).await;
    executed(&node, 3).await;
    for number in 1..=3 {
        let ours = node.tracker().store().block(number).await.unwrap().unwrap();
        assert_eq!(ours.hash, alone.block_hash(number).await, "block {number}");
    }
    assert_eq!(node.tracker().certified().number, 23);
    says(&node, "200 OK").await;
    let counts = node.counters().by_name();
    assert_eq!((counts["source_l1"], counts["from_l1_runs"], counts["from_l1_block"]), (1, 1, 250));
    assert_eq!(counts["from_l1_wrong_postings"], 0);
    let shown = blindfold_rpc::BlindApiClient::get_status(&client(node.rpc_addr())).await.unwrap();
    assert_eq!(shown.counters["source_l1"], 1);
    // Without L1 it says so.
    *alone.postings.down.lock() = true;
    says(&node, "scripted").await;
    node.shutdown().await;
}

#[tokio::test]
async fn missing_data_is_waited_for_and_named() {
    let mut alone = Alone::new().await;
    alone.world.config.members.clear();
    let run = [alone.seal(0, Some(1)).await, alone.seal(1_000, None).await];
    let batches: Vec<SealedBatch> = run.iter().map(|sealed| (*sealed.batch).clone()).collect();
    let headers = batches.iter().map(|batch| batch.header).collect();
    let certificate = Some(certificate_of(&batches[1]));
    alone.postings.put(10, headers, certificate, Err(DataError::Absent));
    alone.postings.hint(11, &run, |_| {});
    *alone.postings.finalized.lock() = 20;
    let node = alone.start(memory()).await;
    says(&node, "the data of batches 1 to 2 is missing (no data came with the headers)").await;
    says(&node, "postData").await;
    // Somebody posts it with a signature that is none: that one does not count.
    let mut forged = batches.clone();
    forged[1].signature = Signature65([0x11; 65]);
    alone.postings.again.lock().push((30, forged));
    *alone.postings.finalized.lock() = 30;
    eventually("it to be looked at", || *alone.postings.looked.lock() == 30).await;
    assert_eq!(node.tracker().certified().number, 0);
    // The true one stands beside it.
    alone.postings.again.lock().push((90, batches[1..].to_vec()));
    *alone.postings.finalized.lock() = 200;
    executed(&node, 1).await;
    assert_eq!(node.executor().status().block.map(|block| block.hash), Some(alone.block_hash(1).await));
    says(&node, "200 OK").await;
    node.shutdown().await;
}

/// PD-7: a look that failed says nothing, and the next one comes soon, however long ago the headers were posted.
#[tokio::test]
async fn a_look_that_failed_is_repeated_before_any_new_block() {
    let mut alone = Alone::new().await;
    alone.world.config.members.clear();
    let run = [alone.seal(0, Some(1)).await, alone.seal(1_000, None).await];
    let batches: Vec<SealedBatch> = run.iter().map(|sealed| (*sealed.batch).clone()).collect();
    let headers = batches.iter().map(|batch| batch.header).collect();
    alone.postings.put(10, headers, Some(certificate_of(&batches[1])), Err(DataError::Absent));
    alone.postings.again.lock().push((30, batches));
    alone.postings.hint(31, &run, |_| {});
    alone.postings.failures.lock().extend([Failure::Beacon, Failure::L1]);
    *alone.postings.finalized.lock() = 10_000;
    let node = alone.start(memory()).await;
    executed(&node, 1).await;
    assert_eq!(*alone.postings.looks.lock(), 3);
    node.shutdown().await;
}

/// Trouble with L1 does not keep a node from asking members, and what is truly absent is looked for seldom.
#[tokio::test]
async fn members_are_asked_while_l1_cannot_be_read() {
    let alone = Alone::new().await;
    let run = [alone.seal(0, Some(1)).await];
    let headers = vec![run[0].batch.header];
    alone.postings.put(10, headers, Some(certificate_of(&run[0].batch)), Err(DataError::Absent));
    alone.postings.failures.lock().push(Failure::L1);
    *alone.postings.finalized.lock() = 100;
    alone.world.members.archive.put(&run[0]);
    let node = alone.start(memory()).await;
    certified_through(&node, 1).await;
    assert_eq!(*alone.postings.looks.lock(), 1);
    node.shutdown().await;
}

/// Anybody posts certified headers with the right items and one signature of zeros, as headers that L1 made have it.
/// Rule PD-1.
#[tokio::test]
async fn a_signature_of_zeros_stops_no_node() {
    let mut alone = Alone::new().await;
    alone.world.config.members.clear();
    let run = [alone.seal(0, Some(1)).await, alone.seal(1_000, None).await];
    let batches: Vec<SealedBatch> = run.iter().map(|sealed| (*sealed.batch).clone()).collect();
    let mut forged = batches.clone();
    forged[1].signature = Signature65([0; 65]);
    let headers = batches.iter().map(|batch| batch.header).collect();
    alone.postings.put(10, headers, Some(certificate_of(&batches[1])), Ok(forged.clone()));
    alone.postings.again.lock().push((11, forged));
    alone.postings.hint(12, &run, |_| {});
    *alone.postings.finalized.lock() = 20;
    let node = alone.start(memory()).await;
    says(&node, "the data of batches 1 to 2 is missing").await;
    alone.postings.again.lock().push((30, batches));
    *alone.postings.finalized.lock() = 60;
    executed(&node, 1).await;
    says(&node, "200 OK").await;
    node.shutdown().await;
}

/// A batch beside the headers, another one posted again, and the last at a member (PD-2).
#[tokio::test]
async fn data_is_put_together_from_wherever_it_is() {
    let alone = Alone::new().await;
    let run = [alone.seal(0, Some(1)).await, alone.seal(1_000, None).await, alone.seal(2_000, None).await];
    let batches: Vec<SealedBatch> = run.iter().map(|sealed| (*sealed.batch).clone()).collect();
    let headers = batches.iter().map(|batch| batch.header).collect();
    alone.postings.put(10, headers, Some(certificate_of(&batches[2])), Err(DataError::Unsigned));
    alone.postings.runs.lock()[0].data.batches[0] = Some(batches[0].clone());
    alone.postings.again.lock().push((11, batches[1..2].to_vec()));
    alone.world.members.archive.put(&run[2]);
    alone.postings.hint(12, &run, |_| {});
    *alone.postings.finalized.lock() = 20;
    let node = alone.start(memory()).await;
    executed(&node, 1).await;
    assert_eq!(node.tracker().certified().number, 3);
    assert_eq!(node.counters().by_name()["batches_from_members"], 1);
    node.shutdown().await;
}

/// Somebody posts right hints in blobs first, and a node without a beacon node goes on with the next ones. What it could
/// not read it reads at a later start, if it still needs them.
#[tokio::test]
async fn hints_in_blobs_do_not_stop_a_node_without_a_beacon_node() {
    let alone = Alone::new().await;
    let runs =
        [[alone.seal(0, Some(1)).await], [alone.seal(1_000, Some(2)).await], [alone.seal(2_000, None).await]];
    for (run, block) in runs.iter().zip(10..) {
        alone.postings.post(block, run);
    }
    let in_blob = |posted: &mut PostedHints| posted.hints = Err(DataError::NoBeacon);
    alone.postings.hint(20, &runs[0], |_| {});
    alone.postings.hint(21, &runs[1], |_| {});
    alone.postings.hint(22, &runs[0], |_| {});
    let readable = alone.postings.hints.lock().clone();
    alone.postings.hints.lock().iter_mut().take(2).for_each(in_blob);
    *alone.postings.finalized.lock() = 30;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.sqlite");
    let node = alone.start(disk(&path).await).await;
    executed(&node, 1).await;
    says(&node, "200 OK").await;
    node.shutdown().await;
    // With a beacon node.
    *alone.postings.hints.lock() = readable;
    alone.postings.hints.lock().remove(0);
    let node = alone.start(disk(&path).await).await;
    executed(&node, 2).await;
    node.shutdown().await;
}

/// A beacon node that always answers with an error is no better than none: after an hour the next hints are read.
#[tokio::test]
async fn a_beacon_node_that_only_fails_does_not_keep_a_node_from_the_next_hints() {
    let mut alone = Alone::new().await;
    alone.world.config.members.clear();
    let run = [alone.seal(0, Some(1)).await, alone.seal(1_000, None).await];
    alone.postings.post(10, &run);
    alone.postings.hint(20, &run, |_| {});
    alone.postings.hint(21, &run, |_| {});
    let error = L1Error::HttpStatus { method: "blobs".to_owned(), status: 500 };
    alone.postings.hints.lock()[0].hints = Err(DataError::Beacon(error));
    *alone.postings.finalized.lock() = 20 + UNREAD_PATIENCE_BLOCKS - 1;
    let node = alone.start(memory()).await;
    certified_through(&node, 2).await;
    assert!(node.executor().status().block.is_none_or(|block| block.number < 1), "it may answer soon");
    *alone.postings.finalized.lock() = 20 + UNREAD_PATIENCE_BLOCKS;
    executed(&node, 1).await;
    node.shutdown().await;
}

#[tokio::test]
async fn members_give_what_is_not_on_l1() {
    let mut alone = Alone::new().await;
    alone.world.config.hint_deadline_ms = 0;
    let run = [alone.seal(0, Some(1)).await, alone.seal(1_000, None).await];
    let headers: Vec<BatchHeader> = run.iter().map(|sealed| sealed.batch.header).collect();
    alone.postings.put(10, headers, Some(certificate_of(&run[1].batch)), Err(DataError::NoBeacon));
    for sealed in &run {
        alone.world.members.archive.put(sealed);
    }
    // The first one that is asked gives other items under the right headers.
    alone.world.members.archive.lying.lock().insert(1);
    *alone.postings.finalized.lock() = 20;
    let node = alone.start(memory()).await;
    executed(&node, 1).await;
    let counts = node.counters().by_name();
    assert_eq!((counts["batches_from_members"], counts["batches_decrypted_locally"]), (2, 1));
    node.shutdown().await;
}

/// A member that keeps whoever asks waiting costs a run one time-out, not one for each header.
#[tokio::test]
async fn a_member_that_is_slow_is_asked_once_for_a_run() {
    let mut alone = Alone::new().await;
    alone.world.config.member_timeout_ms = 500;
    let run = [alone.seal(0, None).await, alone.seal(1_000, None).await, alone.seal(2_000, None).await];
    let headers: Vec<BatchHeader> = run.iter().map(|sealed| sealed.batch.header).collect();
    alone.postings.put(10, headers, Some(certificate_of(&run[2].batch)), Err(DataError::NoBeacon));
    let archive = &alone.world.members.archive;
    for sealed in &run {
        archive.put(sealed);
    }
    *archive.makes_up.lock() = Some((1, run[0].batch.as_ref().clone()));
    *alone.postings.finalized.lock() = 20;
    let node = alone.start(memory()).await;
    certified_through(&node, 3).await;
    let slow = archive.batches_asked.lock().iter().filter(|(member, _)| *member == 1).count();
    assert_eq!(slow, 1);
    node.shutdown().await;
}

#[tokio::test]
async fn another_chain_on_disk_is_named_and_left_alone() {
    let alone = Alone::new().await;
    let run = [alone.seal(0, None).await];
    alone.postings.post(10, &run);
    *alone.postings.finalized.lock() = 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.sqlite");
    let other = Sealer::new(&alone.world.l1).await.seal(250, vec![]).await;
    {
        let machine = Machine::start(disk(&path).await, &alone.world.l1, &ScriptedExecution::new()).await;
        machine.take(&other).await;
        machine.executor.stop().await;
    }
    let node = alone.start(disk(&path).await).await;
    says(&node, "begin with an empty data_dir").await;
    assert_eq!(node.tracker().certified().hash, other.hash);
    node.shutdown().await;
    let without = FullNode::start(alone.world.config.clone(), alone.world.deps(memory())).await;
    assert!(matches!(without, Err(StartError::NoPostings)));
}
