//! A member with an account posts what the sequencer keeps from L1.

mod common;

use blindfold_rpc::RunningRole;
use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use blindfold_chain::{AnnouncedEnd, HeaderId, L1Error, L1Origin, L1Reader, L1Submitter};
use blindfold_committee::MemberHandle;
use blindfold_kit::{MEMBERS, ScriptedL1, Sealer, SequencerDouble, certify, chain_config, envelope, within};
use blindfold_l1::{CodedBatch, MAX_TRANSACTION_HEADERS, PostedHead, Sent};
use blindfold_protocol::{Address, B256, BatchHeader, Canonical, Certificate};
use common::{FIRST_ORIGIN, Machine, certified, l1, sealer};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// What a transaction carried: the last header and whether its data came along, or the data of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Paid {
    Run(u64),
    Headers(u64),
    Data(u64),
}

#[derive(Default)]
struct Inbox {
    posted: Vec<HeaderId>,
    data: BTreeSet<u64>,
    /// Every transaction that was in a block.
    paid: Vec<Paid>,
    /// What comes of the next transactions: before they are taken (true), or after.
    faults: Vec<(L1Error, bool)>,
    /// Answers that still come from a server that knows of no posting.
    stale: usize,
    /// Looks at the head.
    looks: usize,
    /// Whether the announced end was taken back a moment ago.
    taken_back: bool,
    /// Numbers of the headers that L1 was made to make.
    ended: Vec<u64>,
}

/// The inbox on an L1 where every transaction has a block of its own.
struct ScriptedInbox {
    l1: Arc<ScriptedL1>,
    state: Mutex<Inbox>,
    changed: Notify,
}

impl ScriptedInbox {
    fn of(l1: &Arc<ScriptedL1>) -> Arc<Self> {
        Arc::new(Self { l1: l1.clone(), state: Mutex::default(), changed: Notify::new() })
    }

    fn block(&self) -> u64 {
        FIRST_ORIGIN + *self.l1.unfinal.lock()
    }

    async fn until(&self, what: &str, condition: impl Fn(&Inbox) -> bool) {
        let wait = async {
            loop {
                let changed = self.changed.notified();
                if condition(&self.state.lock()) {
                    return;
                }
                changed.await;
            }
        };
        within(what, wait).await;
    }

    fn paid_and_ended(&self) -> (Vec<Paid>, Vec<u64>) {
        let inbox = self.state.lock();
        (inbox.paid.clone(), inbox.ended.clone())
    }

    /// Two more looks, of which the second began after this.
    async fn looked_at(&self) {
        let looks = self.state.lock().looks;
        self.until("two more looks", |inbox| inbox.looks >= looks + 2).await;
    }

    fn take(&self, batches: &[BatchHeader], paid: Paid) -> Result<u64, L1Error> {
        let mut inbox = self.state.lock();
        let fault = inbox.faults.pop();
        if let Some((fault, true)) = fault {
            return Err(fault);
        }
        let block = self.block() + 1;
        for header in batches {
            if header.l1_origin_number + u64::from(chain_config().timing.posting_deadline) < block {
                return Err(L1Error::refused("OriginTooOld"));
            }
            let next = inbox.posted.last().map_or(0, |head| head.number) + 1;
            // Of headers that are there nothing is new; the transaction succeeds.
            if header.number == next {
                inbox.posted.push(HeaderId { number: next, hash: header.hash() });
            }
        }
        *self.l1.unfinal.lock() += 1;
        inbox.paid.push(paid);
        self.changed.notify_waiters();
        match fault {
            Some((fault, _)) => Err(fault),
            None => Ok(block),
        }
    }
}

#[async_trait]
impl L1Reader for ScriptedInbox {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        self.l1.as_ref().finalized().await
    }

    async fn posted_head(&self) -> Result<PostedHead, L1Error> {
        let mut inbox = self.state.lock();
        inbox.looks += 1;
        self.changed.notify_waiters();
        let genesis = HeaderId { number: 0, hash: chain_config().deployment.genesis_hash() };
        let (last, block) = (inbox.posted.last().copied(), self.block());
        let head =
            |HeaderId { number, hash }, block| PostedHead { number, hash, block, ..PostedHead::default() };
        if last.is_some() && inbox.stale > 0 {
            inbox.stale -= 1;
            return Ok(head(genesis, block - 1));
        }
        Ok(head(last.unwrap_or(genesis), block))
    }
}

#[async_trait]
impl L1Submitter for ScriptedInbox {
    fn account(&self) -> Address {
        Address::ZERO
    }

    fn reader(&self) -> &dyn L1Reader {
        self
    }

    async fn post(&self, batches: &[CodedBatch], certificate: &Certificate) -> Result<Sent, L1Error> {
        let headers: Vec<BatchHeader> = batches.iter().map(|batch| batch.sealed.header).collect();
        assert!(batches.iter().all(|batch| batch.codes.len() == batch.sealed.items.len()));
        let block = self.take(&headers, Paid::Run(certificate.number))?;
        self.state.lock().data.extend(headers.iter().map(|header| header.number));
        Ok(sent(block))
    }

    async fn post_headers(
        &self,
        headers: &[BatchHeader],
        certificate: &Certificate,
    ) -> Result<Sent, L1Error> {
        Ok(sent(self.take(headers, Paid::Headers(certificate.number))?))
    }

    async fn post_data(&self, batches: &[CodedBatch]) -> Result<Sent, L1Error> {
        let [batch] = batches else { panic!("one batch") };
        let number = batch.sealed.header.number;
        let block = self.take(&[], Paid::Data(number))?;
        self.state.lock().data.insert(number);
        self.changed.notify_waiters();
        Ok(sent(block))
    }

    async fn lacks_data(&self, header: &BatchHeader) -> Result<bool, L1Error> {
        Ok(!self.state.lock().data.contains(&header.number))
    }

    async fn end_at_head(&self, head: &BatchHeader) -> Result<Option<Sent>, L1Error> {
        let mut inbox = self.state.lock();
        if inbox.taken_back {
            return Ok(None);
        }
        assert_eq!(inbox.posted.last().map(|last| last.hash), Some(head.hash()), "after L1's head");
        let number = head.number + 1;
        inbox.posted.push(HeaderId { number, hash: B256::repeat_byte(0xee) });
        inbox.ended.push(number);
        let block = self.block() + 1;
        *self.l1.unfinal.lock() += 1;
        self.changed.notify_waiters();
        Ok(Some(sent(block)))
    }
}

fn sent(block: u64) -> Sent {
    Sent { transaction: B256::ZERO, block, gas_used: 0 }
}

/// Members that post to one inbox on one L1.
struct Scene {
    sequencer: SequencerDouble,
    inbox: Arc<ScriptedInbox>,
    l1: Arc<ScriptedL1>,
    members: Vec<MemberHandle>,
    sealer: Sealer,
    _machines: Vec<Machine>,
}

impl Scene {
    async fn new(members: &[u16]) -> Self {
        Self::on(l1(), members).await
    }

    async fn on(l1: Arc<ScriptedL1>, members: &[u16]) -> Self {
        let sequencer = SequencerDouble::start().await;
        sequencer.double.state.lock().aggregate = false;
        let inbox = ScriptedInbox::of(&l1);
        let mut machines = Vec::new();
        let mut handles = Vec::new();
        for member in members {
            let mut machine = Machine::new(*member, sequencer.url());
            machine.config.limits.posting_check_ms = 5;
            machine.poster = Some(inbox.clone());
            machine.l1 = l1.clone();
            handles.push(machine.start().await);
            machines.push(machine);
        }
        sequencer.followed_by(members.len()).await;
        Self { sequencer, inbox, l1, members: handles, sealer: sealer().await, _machines: machines }
    }

    /// Seals and certifies a batch that all members have then.
    async fn certified(&self, items: Vec<Vec<u8>>) -> BatchHeader {
        let batch = self.sealer.seal_next(items).await;
        self.sequencer.publish(&batch.batch, &batch.verdicts);
        let certificate = certify(&batch.batch, &[1, 2, 3]);
        self.sequencer.publish_certificate(&certificate);
        self.sealer.tracker.accept_certificate(&certificate).await.expect("it stands");
        for member in &self.members {
            certified(member, batch.batch.header.number).await;
        }
        batch.batch.header
    }

    /// So many blocks after the headers' origin.
    fn pass_to(&self, blocks: u64) {
        *self.l1.unfinal.lock() = blocks;
    }

    async fn stop(self) {
        for member in self.members {
            member.shutdown().await;
        }
    }
}

fn deadline() -> u64 {
    chain_config().timing.posting_deadline.into()
}

/// When the turn of a member begins that saw the header early.
fn turn(member: u64) -> u64 {
    deadline().div_ceil(4) + deadline() / 8 * member / u64::from(MEMBERS)
}

/// Rule SP-1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_sequencer_keeps_from_l1_is_posted_by_a_member() {
    let scene = Scene::new(&[2]).await;
    scene.certified(vec![envelope(1, 1).encode(), b"garbage".to_vec()]).await;
    let head = scene.certified(vec![envelope(1, 2).encode()]).await.hash();
    scene.inbox.looked_at().await;
    scene.pass_to(turn(2) - 1);
    scene.inbox.looked_at().await;
    assert_eq!(scene.inbox.state.lock().paid, [], "not its turn");
    // Refused and unanswered once: it is tried again.
    scene.inbox.state.lock().faults =
        vec![(L1Error::no_answer("nobody answers"), true), (L1Error::refused("somebody was faster"), true)];
    scene.pass_to(turn(2));
    scene.inbox.until("both posted", |inbox| !inbox.paid.is_empty()).await;
    assert_eq!(scene.inbox.state.lock().paid, [Paid::Run(2)]);
    assert_eq!(scene.inbox.state.lock().posted.last().map(|head| head.hash), Some(head));
    scene.inbox.looked_at().await;
    let registry = scene.members[0].metrics().registry.clone();
    scene.stop().await;
    let counted = registry.render();
    for metric in ["posting_failures_total{role=\"committee\"} 2", "runs_posted_total{role=\"committee\"} 1"]
    {
        assert!(counted.contains(&format!("blindfold_committee_{metric}")), "{metric} in {counted}");
    }
}

/// What L1's next blocks take no more is left: nothing is paid for it (SP-4).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_l1_takes_no_more_is_left() {
    let scene = Scene::new(&[1]).await;
    scene.certified(vec![]).await;
    scene.inbox.looked_at().await;
    for late in [deadline() - 2, deadline(), deadline() + 1] {
        scene.pass_to(late);
        scene.inbox.looked_at().await;
    }
    assert_eq!(scene.inbox.state.lock().paid, []);
    scene.stop().await;
}

/// What is paid for once is not paid for again because one of several servers lags (SP-4).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lags_has_nothing_paid_for_twice() {
    let scene = Scene::new(&[1]).await;
    scene.certified(vec![]).await;
    scene.inbox.looked_at().await;
    scene.inbox.state.lock().stale = 5;
    scene.pass_to(deadline() / 2);
    scene.inbox.until("its posting", |inbox| !inbox.paid.is_empty()).await;
    scene.inbox.until("all old answers", |inbox| inbox.stale == 0).await;
    scene.inbox.looked_at().await;
    assert_eq!(scene.inbox.state.lock().paid, [Paid::Run(1)]);
    scene.stop().await;
}

/// Withheld until every turn would have begun by its age, a header is still posted by one member.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_late_is_paid_for_by_one_member() {
    let scene = Scene::new(&[1, 2, 3]).await;
    let late = deadline() * 3 / 8 + 1;
    scene.pass_to(late);
    scene.certified(vec![]).await;
    for _ in 0..3 {
        scene.inbox.looked_at().await;
    }
    assert_eq!(scene.inbox.state.lock().paid, []);
    scene.pass_to(late + deadline() / 8 / u64::from(MEMBERS));
    scene.inbox.until("its posting", |inbox| !inbox.paid.is_empty()).await;
    for _ in 0..3 {
        scene.inbox.looked_at().await;
    }
    assert_eq!(scene.inbox.state.lock().paid, [Paid::Run(1)], "the first one's turn alone");
    scene.stop().await;
}

/// A sequencer that fills its batches with garbage, which costs it nothing, keeps none of them from L1: headers go first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_keeps_no_certified_header_from_l1() {
    const HEADERS: u64 = 12;
    let scene = Scene::new(&[1]).await;
    for _ in 0..HEADERS {
        scene.certified(vec![vec![7; 30_000]; 3]).await;
    }
    scene.inbox.looked_at().await;
    // A block for each would be too few.
    scene.pass_to(deadline() - 5);
    scene.inbox.until("all data", |inbox| inbox.data.len() as u64 == HEADERS).await;
    let paid = scene.inbox.state.lock().paid.clone();
    assert_eq!(paid[0], Paid::Headers(HEADERS));
    assert_eq!(paid[1..], (1..=HEADERS).map(Paid::Data).collect::<Vec<_>>(), "the oldest first");
    scene.stop().await;
}

/// A member that was stopped between headers and data goes on with the data (SP-3).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_that_did_not_follow_its_headers_follows_later() {
    let scene = Scene::new(&[1]).await;
    scene.certified(vec![]).await;
    scene.inbox.looked_at().await;
    scene.inbox.state.lock().faults = vec![(L1Error::no_answer("not in a block in time"), false)];
    scene.pass_to(turn(1));
    scene.inbox.until("its data", |inbox| inbox.data.contains(&1)).await;
    assert_eq!(scene.inbox.state.lock().paid, [Paid::Run(1), Paid::Data(1)]);
    scene.stop().await;
}

/// A sequencer that posts one header now and then, each just before the first member's turn, moves no turn (SP-1).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sequencer_that_posts_a_header_now_and_then_keeps_no_member_from_posting() {
    let scene = Scene::new(&[1]).await;
    let first = scene.certified(vec![]).await;
    for _ in 0..2 {
        scene.certified(vec![]).await;
    }
    scene.inbox.looked_at().await;
    scene.pass_to(turn(1) - 1);
    scene.inbox.looked_at().await;
    assert_eq!(scene.inbox.state.lock().paid, [], "not its turn");
    scene.inbox.state.lock().posted.push(HeaderId { number: 1, hash: first.hash() });
    scene.inbox.looked_at().await;
    scene.pass_to(turn(1));
    scene.inbox.until("its posting", |inbox| !inbox.paid.is_empty()).await;
    assert_eq!(scene.inbox.state.lock().paid, [Paid::Run(3)]);
    scene.stop().await;
}

/// Of a long queue as many headers go in a transaction as it holds. No data is forgotten over what follows (SP-2).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_queue_goes_to_l1_in_full_transactions() {
    const FULL: u64 = MAX_TRANSACTION_HEADERS as u64;
    let scene = Scene::new(&[1]).await;
    for _ in 0..=FULL {
        scene.certified(vec![]).await;
    }
    scene.inbox.looked_at().await;
    scene.pass_to(turn(1));
    scene.inbox.until("all data", |inbox| inbox.data.len() as u64 > FULL).await;
    let paid = scene.inbox.state.lock().paid.clone();
    assert_eq!(paid[..2], [Paid::Headers(FULL), Paid::Run(FULL + 1)]);
    assert_eq!(paid[2..], (1..=FULL).map(Paid::Data).collect::<Vec<_>>());
    scene.stop().await;
}

/// An L1 on which the end of the first epoch is announced for so many blocks later.
fn ending_after(blocks: u64) -> Arc<ScriptedL1> {
    let l1 = l1();
    let (announced_at, until) = (FIRST_ORIGIN, FIRST_ORIGIN + blocks);
    *l1.ending.lock() = Some(AnnouncedEnd { epoch: 1, announced_at, until, for_silence: false });
    l1
}

/// However young it is: once the end is due L1 takes nothing certified of the epoch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_its_epoch_ends_everything_is_posted() {
    let scene = Scene::on(ending_after(400), &[2]).await;
    scene.certified(vec![]).await;
    scene.inbox.looked_at().await;
    // The last 100 blocks are for posting alone, and members take turns in the first 25.
    scene.pass_to(311);
    scene.inbox.looked_at().await;
    assert_eq!(scene.inbox.state.lock().paid, [], "not its turn");
    scene.pass_to(312);
    scene.inbox.until("its posting", |inbox| !inbox.paid.is_empty()).await;
    assert_eq!(scene.inbox.state.lock().paid, [Paid::Run(1)]);
    scene.stop().await;
}

/// Rule SP-5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_epoch_whose_end_is_due_is_ended_and_nothing_late_is_paid_for() {
    let scene = Scene::on(ending_after(400), &[1]).await;
    let first = scene.certified(vec![]).await;
    scene.inbox.state.lock().posted.push(HeaderId { number: 1, hash: first.hash() });
    scene.inbox.looked_at().await;
    scene.pass_to(398);
    scene.certified(vec![]).await;
    // Full nodes come first.
    for late in [398, 400, 407] {
        scene.pass_to(late);
        scene.inbox.looked_at().await;
        let (paid, ended) = scene.inbox.paid_and_ended();
        assert!(paid.is_empty() && ended.is_empty(), "{late}: {paid:?} {ended:?}");
    }
    scene.inbox.state.lock().taken_back = true;
    scene.pass_to(408);
    scene.inbox.looked_at().await;
    assert!(scene.inbox.state.lock().ended.is_empty(), "not due any more");
    scene.inbox.state.lock().taken_back = false;
    scene.inbox.until("its end", |inbox| !inbox.ended.is_empty()).await;
    scene.inbox.looked_at().await;
    let (paid, ended) = scene.inbox.paid_and_ended();
    assert!(paid.is_empty() && ended == [2], "{paid:?} {ended:?}");
    scene.stop().await;
}
