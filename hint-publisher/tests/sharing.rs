//! Hint publishers that share their batches over Redis: with each other's death, without it, and with what others put there.

mod common;

use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use blindfold_bte::Blinding;
use blindfold_chain::Sealed;
use blindfold_hint_publisher::HintPublisherHandle;
use blindfold_kit::{
    MAX_BATCH, MEMBERS, THRESHOLD, Watched, committee, envelope, malformed, open_batch, within,
};
use blindfold_protocol::{BatchHints, Canonical, HintEntry, Release, validity::sub_batches};
use blindfold_redis::{
    Redis, RedisMetrics, RedisSettings,
    redis::{ToRedisArgs, cmd},
};
use blindfold_rpc::RunningRole;
use blindfold_runtime::Tasks;
use blindfold_servers::Redis as Server;
use blindfold_telemetry::Metrics;
use common::{Behaviour, Stage, kinds, points};

/// Nobody is silent for as long in a test.
const NEVER_MS: u64 = 600_000;

/// A lease that whoever lives renews in time, even where two cores do everything.
const BUSY_MACHINE_MS: u64 = 2_000;

/// A stage whose publishers share a server, and do not take it for silent on a machine that is busy.
async fn stage(server: &Server, lease_ms: u64) -> Stage {
    stage_within(server, lease_ms, 10_000).await
}

async fn stage_within(server: &Server, lease_ms: u64, answer_timeout_ms: u64) -> Stage {
    let mut stage = Stage::new().await;
    let settings = RedisSettings {
        url: Some(server.url()),
        connect_timeout_ms: 10_000,
        answer_timeout_ms,
        ..RedisSettings::default()
    };
    stage.redis = settings.options("test").expect("good settings");
    stage.config.limits.share_lease_ms = lease_ms;
    stage
}

/// Four sub-batches of eight, with a malformed envelope in the first and in the last.
fn four_parts(nonce: u64) -> Vec<Vec<u8>> {
    let one = |position: u64| {
        let (payer, nonce) = (1 + position as u8 % 8, nonce + position / 8);
        if [3, 30].contains(&position) { malformed(payer, nonce) } else { envelope(payer, nonce) }
    };
    (0..32).map(|position| one(position).encode()).collect()
}

const KINDS: &str = "kkkmkkkkkkkkkkkkkkkkkkkkkkkkkkmk";

async fn until(what: &'static str, condition: impl Fn() -> bool) {
    within(what, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

fn count(publisher: &HintPublisherHandle, name: &str) -> u64 {
    let name = format!("blindfold_{name}{{role=\"hint_publisher\"}} ");
    let text = publisher.metrics().registry.render();
    let line = text.lines().find_map(|line| line.strip_prefix(&name)).expect("a metric of that name");
    line.parse().expect("a number")
}

/// Parts of batches that a backend pre-decrypted or opened at once.
fn parts(backend: &Watched) -> usize {
    let (predecrypted, decrypted) = backend.calls();
    predecrypted + decrypted
}

/// Starts a publisher when another one runs, or more.
async fn start(stage: &Stage, backend: &Arc<Watched>, publishers: usize) -> HintPublisherHandle {
    let publisher = stage.try_start_on(backend).await.expect("the hint publisher starts");
    stage.sequencer.followed_by(publishers).await;
    publisher
}

async fn idle(publisher: &HintPublisherHandle) {
    until("the end of the work", || publisher.status().in_work.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_part_of_a_batch_is_opened_by_one_of_two() {
    let Some(server) = Server::for_test() else { return };
    let stage = stage(&server, NEVER_MS).await;
    let (one, other) = (Arc::new(Watched::default()), Arc::new(Watched::default()));
    let (first, second) = (start(&stage, &one, 1).await, start(&stage, &other, 2).await);
    // The first has a part and is slow; the second does all that is left, and waits for it.
    let closed = one.close();
    let gate = other.close();
    let sealed = stage.publish(four_parts(1)).await;
    until("a part for each", || one.running.load(SeqCst) == 1 && other.running.load(SeqCst) == 1).await;
    drop(gate);
    until("the other three", || parts(&other) == 3 && other.running.load(SeqCst) == 0).await;
    drop(closed);
    assert_eq!(kinds(&stage.hints_of(&sealed).await.1), KINDS);
    idle(&first).await;
    idle(&second).await;
    assert_eq!((parts(&one), parts(&other)), (1, 3));
    // Whoever had nothing left to do put it together.
    assert_eq!(stage.sequencer.double.state.lock().hint_submissions, 1);
    assert_eq!((first.status().published, second.status().published), (0, 1));
    let name = |name| (count(&first, name), count(&second, name));
    assert_eq!(name("hint_publisher_jobs_claimed_total"), (1, 3));
    assert_eq!(name("hint_publisher_shared_parts_used_total"), (0, 1));
    for name in ["jobs_taken_over", "jobs_lost", "shared_parts_refused", "shared_waits_given_up"] {
        let name = format!("hint_publisher_{name}_total");
        assert_eq!((count(&first, &name), count(&second, &name)), (0, 0), "{name}");
    }
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_batch_is_done_by_one_of_two() {
    let Some(server) = Server::for_test() else { return };
    let stage = stage(&server, NEVER_MS).await;
    let (one, other) = (Arc::new(Watched::default()), Arc::new(Watched::default()));
    let (first, second) = (start(&stage, &one, 1).await, start(&stage, &other, 2).await);
    for number in 1..=6 {
        let sealed = stage.publish(vec![envelope(1, number).encode(), envelope(2, number).encode()]).await;
        assert_eq!(kinds(&stage.hints_of(&sealed).await.1), "kk");
        idle(&first).await;
        idle(&second).await;
        assert_eq!(parts(&one) + parts(&other), number as usize);
    }
    assert_eq!(stage.sequencer.double.state.lock().hint_submissions, 6);
    assert_eq!(first.status().published + second.status().published, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_publisher_had_is_taken_over() {
    let Some(server) = Server::for_test() else { return };
    let stage = stage(&server, BUSY_MACHINE_MS).await;
    let (one, other) = (Arc::new(Watched::default()), Arc::new(Watched::default()));
    let first = start(&stage, &one, 1).await;
    let closed = one.close();
    // Of a batch of several parts, and of a small one.
    let large = stage.publish(four_parts(1)).await;
    until("a part", || one.running.load(SeqCst) == 1).await;
    // As long as it lives, what it has is its own however long that takes.
    let second = start(&stage, &other, 2).await;
    until("the other three", || parts(&other) == 3 && other.running.load(SeqCst) == 0).await;
    assert_eq!(count(&second, "hint_publisher_jobs_taken_over_total"), 0);
    drop(first);
    assert_eq!(kinds(&stage.hints_of(&large).await.1), KINDS);
    assert_eq!(parts(&other), 4);
    drop(closed);
    let first = start(&stage, &one, 2).await;
    let (closed, gate) = (one.close(), other.close());
    let small = stage.publish(vec![envelope(1, 50).encode()]).await;
    let running = || (one.running.load(SeqCst), other.running.load(SeqCst));
    until("whose it is", || running() != (0, 0)).await;
    drop((closed, gate));
    drop(first);
    stage.hints_of(&small).await;
    idle(&second).await;
}

/// It has done its part and would put the batch together; the other one does it after a lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_dies_before_it_puts_the_batch_together_is_waited_for_a_lease() {
    let Some(server) = Server::for_test() else { return };
    let stage = stage(&server, BUSY_MACHINE_MS).await;
    let (one, other) = (Arc::new(Watched::default()), Arc::new(Watched::default()));
    let (first, second) = (start(&stage, &one, 1).await, start(&stage, &other, 2).await);
    let stranger = Stranger::at(&stage);
    let closed = one.close();
    let gate = other.close();
    let sealed = stage.publish(four_parts(1)).await;
    until("a part for each", || one.running.load(SeqCst) == 1 && other.running.load(SeqCst) == 1).await;
    drop(gate);
    until("the other three", || parts(&other) == 3 && other.running.load(SeqCst) == 0).await;
    within("who puts it together", async {
        while !stranger.is_there("assembler", &sealed).await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    drop(second);
    drop(closed);
    assert_eq!(kinds(&stage.hints_of(&sealed).await.1), KINDS);
    idle(&first).await;
    assert_eq!((parts(&one), parts(&other)), (1, 3));
    let name = |name| count(&first, &format!("hint_publisher_{name}_total"));
    assert_eq!((name("shared_parts_used"), name("shared_waits_given_up")), (3, 0));
    assert_eq!(first.status().published, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_emptied_in_the_middle_costs_work_and_nothing_else() {
    let Some(server) = Server::for_test() else { return };
    let stage = stage(&server, NEVER_MS).await;
    let (one, other) = (Arc::new(Watched::default()), Arc::new(Watched::default()));
    let (first, second) = (start(&stage, &one, 1).await, start(&stage, &other, 2).await);
    let (closed, gate) = (one.close(), other.close());
    let sealed = stage.publish(four_parts(1)).await;
    until("a part for each", || one.running.load(SeqCst) == 1 && other.running.load(SeqCst) == 1).await;
    server.flush().expect("emptied");
    // The first never ends: the second waits for nobody.
    drop(gate);
    assert_eq!(kinds(&stage.hints_of(&sealed).await.1), KINDS);
    assert_eq!((parts(&other), count(&second, "hint_publisher_shared_batches_alone_total")), (4, 1));
    drop(closed);
    idle(&first).await;
    // The next one is shared again.
    let sealed = stage.publish(four_parts(20)).await;
    assert_eq!(kinds(&stage.hints_of(&sealed).await.1), KINDS);
    idle(&first).await;
    idle(&second).await;
    let claimed = count(&first, "hint_publisher_jobs_claimed_total")
        + count(&second, "hint_publisher_jobs_claimed_total");
    assert_eq!(claimed, 2 + 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_each_does_everything() {
    let Some(mut server) = Server::for_test() else { return };
    server.end().expect("ends");
    let stage = stage_within(&server, NEVER_MS, 1_000).await;
    let (one, other) = (Arc::new(Watched::default()), Arc::new(Watched::default()));
    let (first, second) = (start(&stage, &one, 1).await, start(&stage, &other, 2).await);
    let sealed = stage.publish(four_parts(1)).await;
    assert_eq!(kinds(&stage.hints_of(&sealed).await.1), KINDS);
    idle(&first).await;
    idle(&second).await;
    assert_eq!((parts(&one), parts(&other)), (4, 4));
    // It comes; it hangs in the middle of a batch; it comes back.
    server.resume_start().expect("starts");
    let up = || count(&first, "redis_connections") + count(&second, "redis_connections") == 2;
    until("connections", up).await;
    let gate = other.close();
    let closed = one.close();
    let sealed = stage.publish(four_parts(20)).await;
    until("a part for each", || one.running.load(SeqCst) == 1 && other.running.load(SeqCst) == 1).await;
    server.cut().expect("cut");
    drop(gate);
    assert_eq!(kinds(&stage.hints_of(&sealed).await.1), KINDS);
    server.heal().expect("healed");
    drop(closed);
    until("connections", up).await;
}

/// The server as somebody else who may write there.
struct Stranger {
    redis: Redis,
    _tasks: Tasks,
}

impl Stranger {
    fn at(stage: &Stage) -> Self {
        let metrics = Metrics::new("stranger", "0").expect("a registry");
        let tasks = Tasks::new();
        let options = stage.redis.clone().expect("a server");
        let redis = Redis::start(options, RedisMetrics::new(&metrics).expect("metrics"), &tasks.spawner());
        Self { redis, _tasks: tasks }
    }

    /// The key of a batch that is cut into sub-batches.
    fn key(&self, name: &str, sealed: &Sealed) -> String {
        let batch = format!("hint-{name}:{}:{:x}", sealed.batch.header.number, sealed.hash);
        if name == "done" {
            return self.redis.key(format_args!("{batch}"));
        }
        let parts = sub_batches(&sealed.verdicts, MAX_BATCH).len();
        self.redis.key(format_args!("{batch}:{parts}"))
    }

    async fn run(&self, command: &str, name: &str, sealed: &Sealed, more: &[&[u8]]) {
        let mut command = cmd(command);
        command.arg(self.key(name, sealed));
        for argument in more {
            command.arg(argument.to_redis_args());
        }
        self.redis.query::<blindfold_redis::redis::Value>(&command).await.expect("done");
    }

    async fn is_there(&self, name: &str, sealed: &Sealed) -> bool {
        let mut exists = cmd("EXISTS");
        self.redis.query::<u64>(exists.arg(self.key(name, sealed))).await.expect("an answer") == 1
    }

    /// Says that somebody opened this part, and what to.
    async fn say(&self, sealed: &Sealed, part: usize, bytes: &[u8]) {
        self.run("HSET", "parts", sealed, &[part.to_string().as_bytes(), bytes]).await;
    }

    /// Says so of all parts, so that nothing is left to do.
    async fn say_all(&self, sealed: &Sealed, change: impl Fn(usize, &mut Release, &mut BatchHints)) {
        self.say_some(sealed, |_| true, change).await;
        self.jobs_are_done(sealed).await;
    }

    async fn say_some(
        &self,
        sealed: &Sealed,
        which: impl Fn(usize) -> bool,
        change: impl Fn(usize, &mut Release, &mut BatchHints),
    ) {
        let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
        let opened = release.pds.iter().zip(hints.entries.chunks(8)).enumerate();
        for (part, (pd, entries)) in opened.filter(|(part, _)| which(*part)) {
            let mut release = Release { pds: vec![*pd], ..release.clone() };
            let mut hints = BatchHints { entries: entries.to_vec(), blindings: Vec::new(), ..hints.clone() };
            change(part, &mut release, &mut hints);
            let (release, hints) = (release.encode(), hints.encode());
            let length = (release.len() as u32).to_be_bytes();
            self.say(sealed, part, &[&length[..], &release, &hints].concat()).await;
        }
    }

    /// Gives whoever asks a job.
    async fn give(&self, sealed: &Sealed, part: usize) {
        self.run("XADD", "jobs", sealed, &[b"*", b"part", part.to_string().as_bytes()]).await;
    }

    /// Nobody gets a job: there are none, and the group has read them.
    async fn jobs_are_done(&self, sealed: &Sealed) {
        self.run("XADD", "jobs", sealed, &[b"*", b"part", b"0"]).await;
        let mut group = cmd("XGROUP");
        let group = group.arg("CREATE").arg(self.key("jobs", sealed)).arg("publishers").arg("$");
        self.redis.query::<String>(group).await.expect("a group");
    }
}

/// Seals a batch, and shows it to nobody before Redis is what the test wants.
async fn poisoned(stage: &Stage, nonce: u64, poison: impl AsyncFnOnce(&Sealed)) -> (Sealed, BatchHints) {
    let sealed = stage.sealer.seal_next(four_parts(nonce)).await;
    poison(&sealed).await;
    show(stage, &sealed).await;
    let (_, hints) = stage.hints_of(&sealed).await;
    (sealed, hints)
}

/// Shows a batch that is certified already.
async fn show(stage: &Stage, sealed: &Sealed) {
    stage.validated(sealed);
    stage.sequencer.keep(&sealed.batch, &sealed.verdicts);
    let certificate = stage.sealer.certify_by(&sealed.batch, &[1, 2, 3]).await;
    stage.sequencer.keep_certificate(&certificate);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_put_there_is_used_where_it_stands_and_opened_here_where_not() {
    let Some(server) = Server::for_test() else { return };
    let stage = stage(&server, NEVER_MS).await;
    let stranger = Stranger::at(&stage);
    let (mut nonce, mut parts_before) = (1, 0);
    // What is right is used, whoever wrote it.
    type Change = fn(usize, &mut Release, &mut BatchHints);
    let cases: [(&str, usize, Change); 10] = [
        ("right", 0, |_, _, _| {}),
        ("a wrong key", 1, |part, _, hints| {
            if part == 2 {
                hints.entries[5] = HintEntry::Key([7; 16]);
            }
        }),
        ("another's release", 4, |_, release, _| release.pds[0] = [0; 48]),
        ("the opposite release", 1, |part, release, _| {
            if part == 1 {
                release.pds[0][0] ^= 0x20;
            }
        }),
        ("another batch", 4, |_, release, hints| {
            (release.number, hints.number) = (release.number + 1, hints.number + 1);
        }),
        ("another header", 4, |_, _, hints| hints.header_hash = Default::default()),
        ("skipped", 4, |_, _, hints| hints.entries.fill(HintEntry::Skipped)),
        ("malformed", 4, |_, _, hints| {
            let made_up = hints.entries.iter().find(|entry| matches!(entry, HintEntry::Malformed(_)));
            hints.entries[0] = made_up.copied().unwrap_or(HintEntry::Malformed([0xc0; 48]));
        }),
        ("too few", 1, |part, _, hints| {
            if part == 3 {
                hints.entries.pop();
            }
        }),
        ("no release", 1, |part, release, _| {
            if part == 0 {
                release.pds.clear();
            }
        }),
    ];
    for (name, wrong, change) in cases {
        // One that was not let down before.
        let publisher = start(&stage, &stage.backend, 1).await;
        let (_, hints) =
            poisoned(&stage, nonce, async |sealed: &Sealed| stranger.say_all(sealed, change).await).await;
        assert_eq!(kinds(&hints), KINDS, "{name}");
        idle(&publisher).await;
        assert_eq!(parts(&stage.backend) - parts_before, wrong, "{name}");
        let refused = count(&publisher, "hint_publisher_shared_parts_refused_total");
        assert_eq!((refused, publisher.status().published), (wrong as u64, 1), "{name}");
        publisher.shutdown().await;
        (nonce, parts_before) = (nonce + 10, parts(&stage.backend));
    }
    let submissions = stage.sequencer.double.state.lock().hint_submissions;
    assert_eq!(submissions, cases.len(), "nothing wrong was offered to the sequencer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_who_writes_to_the_server_keeps_a_batch_from_its_hints() {
    let Some(server) = Server::for_test() else { return };
    let stage = stage(&server, 20).await;
    let stranger = Stranger::at(&stage);
    let (mut nonce, mut gave_up, mut alone) = (1, 0, 0);
    for case in 0..9 {
        // One that was not let down before.
        let publisher = start(&stage, &stage.backend, 1).await;
        let poison = async |sealed: &Sealed| match case {
            // Bytes that are nothing.
            0 => {
                for part in 0..4 {
                    stranger.say(sealed, part, &[0xff; 100]).await;
                }
                stranger.jobs_are_done(sealed).await;
            }
            // More bytes than a part has, which are not even read.
            1 => {
                for part in 0..4 {
                    stranger.say(sealed, part, &vec![0; 1 << 20]).await;
                }
                stranger.jobs_are_done(sealed).await;
            }
            // All jobs are somebody's who says nothing of them.
            2 => stranger.jobs_are_done(sealed).await,
            // Keys of other types.
            3 => stranger.run("SET", "jobs", sealed, &[b"x"]).await,
            4 => stranger.run("SET", "parts", sealed, &[b"x"]).await,
            // It is done, and somebody puts it together.
            5 => {
                stranger.run("SET", "done", sealed, &[b"1"]).await;
                stranger.run("SET", "assembler", sealed, &[b"x"]).await;
            }
            6 => {
                stranger.run("SET", "assembler", sealed, &[b"x"]).await;
                stranger.say_all(sealed, |_, _, _| {}).await;
            }
            // Jobs that are none, and the same one for ever.
            more => {
                stranger.jobs_are_done(sealed).await;
                let part: &[u8] = if more == 7 { b"99" } else { b"0" };
                for _ in 0..200 {
                    stranger.run("XADD", "jobs", sealed, &[b"*", b"part", part]).await;
                }
            }
        };
        let (_, hints) = poisoned(&stage, nonce, poison).await;
        assert_eq!(kinds(&hints), KINDS, "case {case}");
        idle(&publisher).await;
        assert_eq!(stage.sequencer.double.state.lock().hint_submissions, case + 1, "case {case}");
        gave_up += count(&publisher, "hint_publisher_shared_waits_given_up_total");
        alone += count(&publisher, "hint_publisher_shared_batches_alone_total");
        publisher.shutdown().await;
        nonce += 10;
    }
    assert!(gave_up >= 2 && alone >= 3, "{gave_up} {alone}");
}

/// What was put together is refused: the next attempt is made alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_sequencer_refuses_is_done_again_alone() {
    let Some(server) = Server::for_test() else { return };
    let stage = stage(&server, NEVER_MS).await;
    stage.sequencer.double.state.lock().turn_away_hints = (1, true);
    let publisher = start(&stage, &stage.backend, 1).await;
    let sealed = stage.publish(four_parts(1)).await;
    assert_eq!(kinds(&stage.hints_of(&sealed).await.1), KINDS);
    assert_eq!((parts(&stage.backend), stage.sequencer.double.state.lock().hint_submissions), (8, 2));
    assert_eq!(count(&publisher, "hint_publisher_jobs_claimed_total"), 4);
}

/// A stranger who says and gives something whenever it would be given up, and never what is missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trickle_of_what_helps_nobody_is_waited_for_no_longer_than_silence() {
    let Some(server) = Server::for_test() else { return };
    // Patience is 300 ms.
    let stage = stage(&server, 100).await;
    let publisher = start(&stage, &stage.backend, 1).await;
    let stranger = Stranger::at(&stage);
    let sealed = stage.sealer.seal_next(four_parts(1)).await;
    stranger.jobs_are_done(&sealed).await;
    stranger.give(&sealed, 0).await;
    show(&stage, &sealed).await;
    let trickle = async {
        for step in 0.. {
            tokio::time::sleep(Duration::from_millis(200)).await;
            match step {
                0 | 1 => {
                    let other = |_, release: &mut Release, _: &mut BatchHints| release.number += 1;
                    stranger.say_some(&sealed, |part| part == step + 1, other).await;
                }
                _ => stranger.give(&sealed, 0).await,
            }
        }
    };
    tokio::select! {
        () = trickle => {}
        (_, hints) = stage.hints_of(&sealed) => assert_eq!(kinds(&hints), KINDS),
    }
    idle(&publisher).await;
    // Not because there was no end of it.
    assert_eq!(count(&publisher, "hint_publisher_shared_waits_given_up_total"), 1);
    assert_eq!(count(&publisher, "hint_publisher_shared_batches_alone_total"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_let_down_does_the_next_batches_alone_and_more_of_them_each_time() {
    let Some(server) = Server::for_test() else { return };
    let stage = stage(&server, NEVER_MS).await;
    let publisher = start(&stage, &stage.backend, 1).await;
    let stranger = Stranger::at(&stage);
    let claimed = || count(&publisher, "hint_publisher_jobs_claimed_total");
    let refused = || count(&publisher, "hint_publisher_shared_parts_refused_total");
    let wrong = |_, release: &mut Release, _: &mut BatchHints| release.pds[0] = [0; 48];
    // Bad, Alone, Good.
    for (position, kind) in (0u64..).zip("BABAABAAAAGBAG".chars()) {
        let before = (claimed(), refused());
        let poison = async |sealed: &Sealed| {
            if kind == 'B' {
                stranger.say_all(sealed, wrong).await;
            }
        };
        let (_, hints) = poisoned(&stage, 1 + 10 * position, poison).await;
        assert_eq!(kinds(&hints), KINDS);
        idle(&publisher).await;
        let now = (claimed() - before.0, refused() - before.1);
        let expected = match kind {
            'B' => (0, 4),
            'A' => (0, 0),
            _ => (4, 0),
        };
        assert_eq!(now, expected, "batch {position}: {kind}");
    }
    assert_eq!(count(&publisher, "hint_publisher_shared_batches_alone_total"), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_that_cut_batches_otherwise_do_not_disturb_each_other() {
    let Some(server) = Server::for_test() else { return };
    let mut stage = stage(&server, NEVER_MS).await;
    let (one, other) = (Arc::new(Watched::default()), Arc::new(Watched::default()));
    let (closed, gate) = (one.close(), other.close());
    let first = start(&stage, &one, 1).await;
    stage.config.limits.share_min_sub_batches = 100;
    let second = start(&stage, &other, 2).await;
    let sealed = stage.publish(four_parts(1)).await;
    until("a part for each", || one.running.load(SeqCst) == 1 && other.running.load(SeqCst) == 1).await;
    drop((closed, gate));
    assert_eq!(kinds(&stage.hints_of(&sealed).await.1), KINDS);
    idle(&first).await;
    idle(&second).await;
    let name = |name| (count(&first, name), count(&second, name));
    assert_eq!(name("hint_publisher_jobs_claimed_total"), (4, 1));
    for name in ["shared_parts_refused", "shared_waits_given_up", "shared_batches_alone"] {
        let name = format!("hint_publisher_{name}_total");
        assert_eq!((count(&first, &name), count(&second, &name)), (0, 0), "{name}");
    }
}

/// Of each part they are too few to be looked at, of the batch they are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blinding_factors_that_nobody_checked_are_not_published() {
    let Some(server) = Server::for_test() else { return };
    let stage = stage(&server, NEVER_MS).await;
    let publisher = start(&stage, &stage.backend, 1).await;
    let stranger = Stranger::at(&stage);
    let items = (0..128u64).map(|position| malformed(1 + position as u8 % 8, 1 + position / 8).encode());
    let sealed = stage.sealer.seal_next(items.collect()).await;
    let stated = |_, _: &mut Release, hints: &mut BatchHints| {
        hints.blindings = vec![Blinding::from_bytes([7; 288]); hints.entries.len()];
    };
    stranger.say_all(&sealed, stated).await;
    show(&stage, &sealed).await;
    assert_eq!(kinds(&stage.hints_of(&sealed).await.1), "m".repeat(128));
    idle(&publisher).await;
    let used = count(&publisher, "hint_publisher_shared_parts_used_total");
    assert_eq!((used, parts(&stage.backend)), (16, 0));
}

/// A member lies in one sub-batch, and somebody says what its share and others' combine to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_word_of_one_faulty_member_makes_no_release() {
    let Some(server) = Server::for_test() else { return };
    let mut stage = stage(&server, NEVER_MS).await;
    // The first three that are asked are all.
    stage.config.limits.hedge_ms = NEVER_MS;
    let publisher = start(&stage, &stage.backend, 1).await;
    let stranger = Stranger::at(&stage);
    let sealed = stage.sealer.seal_next(four_parts(1)).await;
    let asked: Vec<u16> =
        (0..THRESHOLD).map(|place| 1 + (sealed.batch.header.number as u16 + place) % MEMBERS).collect();
    let liar = asked[0];
    stage.members[usize::from(liar) - 1].behave(Behaviour::LiesOnce);
    let points = points(&sealed.batch, &sub_batches(&sealed.verdicts, MAX_BATCH)[0]);
    let share = |member: &u16| {
        let points = if *member == liar { &points[..1] } else { &points[..] };
        (*member, committee().keys[usize::from(*member) - 1].release_share(points).expect("sizes"))
    };
    let shares: Vec<_> = asked.iter().map(share).collect();
    let wrong = committee().parameters.combine(&shares).expect("points").to_bytes();
    let right = open_batch(&sealed.batch, &sealed.verdicts).0;
    assert_ne!(wrong, right.pds[0]);
    let change = |part, release: &mut Release, _: &mut BatchHints| {
        if part == 0 {
            release.pds[0] = wrong;
        }
    };
    stranger.say_all(&sealed, change).await;
    show(&stage, &sealed).await;
    let (release, hints) = stage.hints_of(&sealed).await;
    assert_eq!((release, kinds(&hints).as_str()), (right, KINDS));
    idle(&publisher).await;
    assert_eq!(publisher.status().faulty_members.keys().collect::<Vec<_>>(), [&liar]);
    let counts = ["used", "refused"]
        .map(|what| count(&publisher, &format!("hint_publisher_shared_parts_{what}_total")));
    assert_eq!(counts, [3, 1]);
}
