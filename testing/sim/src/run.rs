//! One run: everybody starts, users send, things go wrong and are right again, and then everything has to go on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use alloy_primitives::B256;
use blindfold_protocol::{L1Timing, limits::MAX_UNCERTIFIED_HEADERS};
use blindfold_rpc::carrier::carry;
use blindfold_runtime::{Simulation, panicked, spawn, watch_panics};
use blindfold_store::{SqlStore, Store};
use serde::Serialize;
use tokio::{
    task::LocalSet,
    time::{sleep, timeout},
};

use crate::{
    Role, Trace,
    checks::{Counts, Rule, Violation},
    confidential,
    operator::operate,
    plan::Plan,
    users::{User, force, use_proxy},
    world::World,
};

/// Within so long after the last fault a new envelope has to be executed everywhere, in milliseconds.
const PROGRESS_MS: u64 = 30_000;
/// Within so long after that all others have to have ended, in milliseconds.
const SETTLED_MS: u64 = 60_000;
/// A process that panicked and goes on ends after so long, in milliseconds.
const PANIC_MS: u64 = 600_000;
/// How often disks are compared, in milliseconds.
const COMPARISON_MS: u64 = 1_000;

/// What came of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// How many events there were.
    pub events: u64,
    /// A hash over all of them.
    pub trace: String,
    /// How long it took in its own time, in milliseconds.
    pub simulated_ms: u64,
    /// How many of what there was.
    pub counts: Counts,
    /// Pairs of what went wrong and what was under way then.
    pub met: BTreeSet<(&'static str, &'static str)>,
    /// What was broken.
    pub violations: Vec<Violation>,
    /// What was drawn.
    pub plan: Plan,
    /// The last events of each role, where something was broken.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub last: BTreeMap<String, Vec<String>>,
}

/// Runs a plan on this thread. With `print` the trace goes to standard error.
///
/// Two runs of one plan give one trace where the process gives them the same randomness, see the binary.
///
/// # Errors
/// When the world cannot be set up.
pub fn run(plan: Plan, print: bool) -> anyhow::Result<Outcome> {
    // Of whatever task: what answers a call may have nobody who waits for it.
    watch_panics(PANIC_MS, 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let _simulation = Simulation::enter(plan.seed);
    let roles = LocalSet::new();
    runtime.block_on(roles.run_until(async {
        let trace = Trace::new(print);
        let world = World::new(plan.clone(), trace.clone())?;
        let _carrying = carry(Arc::new(world.net.clone()));
        world.run();
        let script = script(&world);
        tokio::select! {
            biased;
            () = world.checks.first_broken() => {}
            failure = panicked() => world.checks.broken(Rule::NoPanic, failure.to_string()),
            ended = script => ended?,
        }
        let violations = world.checks.violations();
        let (events, digest) = trace.digest();
        let last = if violations.is_empty() { BTreeMap::new() } else { trace.last() };
        anyhow::Ok(Outcome {
            seed: plan.seed,
            events,
            trace: digest.to_string(),
            simulated_ms: trace.elapsed_ms(),
            counts: world.checks.counts(),
            met: world.met(),
            violations,
            plan,
            last,
        })
    }))
}

async fn script(world: &Arc<World>) -> anyhow::Result<()> {
    spawn(compare(Arc::clone(world)));
    spawn(operate(Arc::clone(world)));
    for index in 1..=world.plan.users {
        spawn(User::new(world, index)?.run());
    }
    spawn(force(Arc::clone(world)));
    if world.plan.proxied > 0 {
        spawn(use_proxy(Arc::clone(world)));
    }
    for scheduled in world.plan.faults.clone() {
        spawn(Arc::clone(world).suffer(scheduled));
    }
    sleep(Duration::from_millis(world.plan.faults_end_ms + 1)).await;
    world.trace.event(Role::World, format_args!("nothing is wrong any more"));
    if !world.plan.goes_on() {
        world.trace.event(Role::World, format_args!("too few members are left to go on"));
        return Ok(());
    }
    world.l1.declare_void();
    // Where L1's deadlines are short, some still run; it makes headers for a while, and who is hit is taken back to what it
    // holds.
    let is_short = world.plan.timing != L1Timing::default();
    let patience_ms = if is_short { 6 * PROGRESS_MS } else { PROGRESS_MS };
    let progress = timeout(Duration::from_millis(patience_ms), progress(world)).await;
    if progress.is_err() {
        if let Some(number) = world.checks.divided(world.plan.members) {
            world.trace.event(Role::World, format_args!("members are divided between two headers {number}"));
            return Ok(());
        }
        let standing = standing(world).await;
        world.checks.broken(Rule::Progress, format!("no new envelope is executed everywhere: {standing}"));
    }
    let settled = async {
        while world.checks.waiting() > 0 {
            sleep(Duration::from_millis(COMPARISON_MS)).await;
        }
    };
    if timeout(Duration::from_millis(SETTLED_MS), settled).await.is_err() {
        world.checks.nothing_waits();
    }
    let included = async {
        while world.checks.held_back() > 0 {
            sleep(Duration::from_millis(COMPARISON_MS)).await;
        }
    };
    if timeout(Duration::from_millis(2 * SETTLED_MS), included).await.is_err() {
        let held = world.checks.held_back();
        world.checks.broken(Rule::HeldTransactionsEnd, format!("{held} are in no block"));
    }
    let (_, forced) = world.l1.forced();
    let executed = async {
        while !world.without_forced(forced).is_empty() {
            sleep(Duration::from_millis(COMPARISON_MS)).await;
        }
    };
    if timeout(Duration::from_millis(SETTLED_MS), executed).await.is_err() {
        let roles = world.without_forced(forced);
        world.checks.broken(Rule::ForcedIsExecuted, format!("{forced} were forced in, {roles:?} lack some"));
    }
    // Users may go on: what is certified meanwhile has its own minute.
    let through = certified(world).await;
    let posted = async {
        // Less of it where what L1 made took the place of some.
        while world.l1.posted() < through.min(certified(world).await) {
            sleep(Duration::from_millis(COMPARISON_MS)).await;
        }
    };
    if timeout(Duration::from_millis(SETTLED_MS), posted).await.is_err() {
        let posted = world.l1.posted();
        world.checks.broken(Rule::IsPosted, format!("{posted} are posted, {through} were certified"));
    }
    if let Some(node) = world.plan.from_l1() {
        follows(world, node).await;
    }
    // What became void a moment ago is still taken back.
    let agreement = async {
        while difference(world).await.is_some() {
            sleep(Duration::from_millis(COMPARISON_MS)).await;
        }
    };
    if timeout(Duration::from_millis(SETTLED_MS), agreement).await.is_err()
        && let Some(difference) = difference(world).await
    {
        world.checks.broken(Rule::SameBlocks, difference);
    }
    if world.plan.coprocessor.is_some() {
        agrees(world).await;
    }
    Ok(())
}

/// A node that follows from L1 alone executes what everybody had executed by now, once that is final on L1.
async fn follows(world: &Arc<World>, node: Role) {
    let block = async |role: Role| match world.store(role) {
        Some(store) => store.heads().await.ok().and_then(|heads| heads.block).map_or(0, |(number, _)| number),
        None => 0,
    };
    let all = block(Role::Sequencer).await;
    let caught_up = async {
        // Blocks may still be taken back.
        while block(node).await < all.min(block(Role::Sequencer).await) {
            sleep(Duration::from_millis(COMPARISON_MS)).await;
        }
    };
    let final_ms = world.plan.pace.block_ms * (world.plan.pace.finality_blocks + 1);
    if timeout(Duration::from_millis(2 * final_ms + SETTLED_MS), caught_up).await.is_err() {
        let standing = standing(world).await;
        world.checks.broken(Rule::Progress, format!("{node} does not follow from L1: {standing}"));
    }
}

/// A coprocessor executes what the full nodes hold committed, and has executed nothing else.
async fn agrees(world: &Arc<World>) {
    let agreement = async {
        while confidential::difference(world).await.is_some() {
            sleep(Duration::from_millis(COMPARISON_MS)).await;
        }
    };
    if timeout(Duration::from_millis(SETTLED_MS), agreement).await.is_err()
        && let Some(difference) = confidential::difference(world).await
    {
        world.checks.broken(Rule::ConfidentialItems, difference);
    }
    confidential::look(world).await;
}

/// The newest number that is certified on the sequencer's disk.
async fn certified(world: &Arc<World>) -> u64 {
    let Some(store) = world.store(Role::Sequencer) else { return u64::MAX };
    store.heads().await.ok().and_then(|heads| heads.certified).unwrap_or_default()
}

/// Where two have different blocks of one number; whatever gave way meanwhile, nobody should in the end.
async fn difference(world: &Arc<World>) -> Option<String> {
    let mut blocks: BTreeMap<u64, (B256, Role)> = BTreeMap::new();
    for role in world.plan.cast().executing() {
        let Some(store) = world.store(role) else { continue };
        let mut from = 1;
        while let Ok(read) = store.blocks(from, 256).await
            && let Some(last) = read.last()
        {
            from = last.number + 1;
            for block in read {
                let (other, whose) = *blocks.entry(block.number).or_insert((block.hash, role));
                if other != block.hash {
                    let (number, hash) = (block.number, block.hash);
                    return Some(format!("block {number} is {other} at {whose}, {hash} at {role}"));
                }
            }
        }
    }
    None
}

/// A new envelope is executed at its user's node, and then everywhere.
async fn progress(world: &Arc<World>) {
    // What was executed may give way to a header that L1 makes meanwhile: then it takes another one.
    while !executed_everywhere(world).await {}
}

/// Sends an envelope and waits until it is executed everywhere; false where L1 made a header meanwhile.
async fn executed_everywhere(world: &Arc<World>) -> bool {
    let made = world.checks.made();
    let executed = loop {
        if let Ok(user) = User::new(world, 0)
            && let Some((_, receipt)) = user.probe().await
        {
            break receipt;
        }
        sleep(Duration::from_millis(COMPARISON_MS)).await;
    };
    let (number, block) = (executed.number.unwrap_or_default(), executed.block_number.unwrap_or_default());
    let cast = world.plan.cast();
    // What follows from L1 comes later.
    let others: BTreeSet<Role> = world.plan.dishonest().into_iter().chain(world.plan.from_l1()).collect();
    loop {
        let mut everywhere = true;
        for role in cast.with_disk().into_iter().filter(|role| !others.contains(role)) {
            let Some(store) = world.store(role) else {
                everywhere = false;
                continue;
            };
            let heads = store.heads().await.unwrap_or_default();
            everywhere &= heads.certified.is_some_and(|certified| certified >= number);
            if role == Role::Coprocessor {
                everywhere &= confidential::executed(world).await.is_some_and(|executed| executed >= number);
            }
            if cast.executing().contains(&role) {
                everywhere &= heads.block.is_some_and(|(executed, _)| executed >= block);
            }
        }
        if everywhere || world.checks.made() != made {
            return everywhere;
        }
        sleep(Duration::from_millis(COMPARISON_MS / 4)).await;
    }
}

/// How far everybody is.
async fn standing(world: &Arc<World>) -> String {
    let mut lines = Vec::new();
    for role in world.plan.cast().with_disk() {
        let heads = match world.store(role) {
            Some(store) => store.heads().await.unwrap_or_default(),
            None => {
                lines.push(format!("{role} is down"));
                continue;
            }
        };
        let sealed = heads.sealed.map_or(0, |(number, _)| number);
        let block = heads.block.map_or(0, |(number, _)| number);
        let (certified, hinted) =
            (heads.certified.unwrap_or_default(), heads.hinted_through.unwrap_or_default());
        lines.push(format!("{role} sealed {sealed} certified {certified} hinted {hinted} block {block}"));
    }
    if let Some(executed) = confidential::executed(world).await {
        lines.push(format!("confidential {executed}"));
    }
    lines.join(", ")
}

/// Looks at a role's ledger and queues. One that is killed meanwhile is looked at later.
async fn look(world: &World, role: Role, store: &SqlStore) {
    let (Ok(ledger), Ok(heads)) = (store.ledger().await, store.heads().await) else { return };
    // Nobody writes between these answers: a disk without a thread gives them at once.
    let accounts =
        ledger.accounts().values().map(|account| account.balance + account.withdrawn).sum::<u128>();
    let held = ledger.held().values().flatten().map(|held| held.amount).sum::<u128>();
    world.checks.ledger(role, accounts + held, world.deposited());
    if role == Role::Sequencer {
        let (sealed, certified) =
            (heads.sealed.map_or(0, |(number, _)| number), heads.certified.unwrap_or_default());
        let in_flight = sealed.saturating_sub(certified);
        world.checks.queue(role, "headers without a certificate", in_flight, MAX_UNCERTIFIED_HEADERS as u64);
        let waiting = store.pending_envelopes().await.unwrap_or_default().len() as u64;
        world.checks.queue(role, "envelopes that wait", waiting, world.plan.envelopes_in_all());
    }
}

/// Compares what is on the disks, again and again.
async fn compare(world: Arc<World>) {
    let mut looked: BTreeMap<Role, u64> = BTreeMap::new();
    let mut histories = 0;
    loop {
        sleep(Duration::from_millis(COMPARISON_MS)).await;
        world.look_what_is_met().await;
        if world.checks.histories() != histories {
            // Blocks may give way to others.
            looked.clear();
            histories = world.checks.histories();
        }
        for role in world.plan.cast().executing() {
            let Some(store) = world.store(role) else { continue };
            let from = looked.get(&role).map_or(1, |last| last + 1);
            // One that is killed meanwhile is looked at later.
            for block in store.blocks(from, 256).await.unwrap_or_default() {
                world.checks.block(role, block.number, block.hash);
                looked.insert(role, block.number);
            }
        }
        for role in world.plan.cast().with_disk() {
            if let Some(store) = world.store(role) {
                look(&world, role, &store).await;
            }
        }
        confidential::look(&world).await;
    }
}
