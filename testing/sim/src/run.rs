//! One run: everybody starts, users send, things go wrong and are right again, and then everything has to go on.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use blindfold_rpc::carrier::carry;
use blindfold_runtime::{Simulation, spawn};
use blindfold_store::Store;
use serde::Serialize;
use tokio::{
    task::LocalSet,
    time::{sleep, timeout},
};

use crate::{
    Role, Trace,
    checks::{Counts, Rule, Violation},
    plan::Plan,
    users::User,
    world::World,
};

/// Within so long after the last fault a new envelope has to be executed everywhere, in milliseconds.
const PROGRESS_MS: u64 = 30_000;
/// Within so long after that all others have to have ended, in milliseconds.
const SETTLED_MS: u64 = 60_000;
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
            violations,
            plan,
            last,
        })
    }))
}

async fn script(world: &Arc<World>) -> anyhow::Result<()> {
    spawn(compare(Arc::clone(world)));
    for index in 1..=world.plan.users {
        spawn(User::new(world, index)?.run());
    }
    for scheduled in world.plan.faults.clone() {
        spawn(Arc::clone(world).suffer(scheduled));
    }
    sleep(Duration::from_millis(world.plan.faults_end_ms + 1)).await;
    world.trace.event(Role::World, format_args!("nothing is wrong any more"));
    let progress = timeout(Duration::from_millis(PROGRESS_MS), progress(world)).await;
    if progress.is_err() {
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
    Ok(())
}

/// A new envelope is executed at its user's node, and then everywhere.
async fn progress(world: &Arc<World>) {
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
    loop {
        let mut everywhere = true;
        for role in cast.with_disk() {
            let Some(store) = world.store(role) else {
                everywhere = false;
                continue;
            };
            let heads = store.heads().await.unwrap_or_default();
            everywhere &= heads.certified.is_some_and(|certified| certified >= number);
            if cast.executing().contains(&role) {
                everywhere &= heads.block.is_some_and(|(executed, _)| executed >= block);
            }
        }
        if everywhere {
            return;
        }
        sleep(Duration::from_millis(COMPARISON_MS / 4)).await;
    }
}

/// How far everybody is.
async fn standing(world: &Arc<World>) -> String {
    let mut told = Vec::new();
    for role in world.plan.cast().with_disk() {
        let heads = match world.store(role) {
            Some(store) => store.heads().await.unwrap_or_default(),
            None => {
                told.push(format!("{role} is down"));
                continue;
            }
        };
        let sealed = heads.sealed.map_or(0, |(number, _)| number);
        let block = heads.block.map_or(0, |(number, _)| number);
        let (certified, hinted) =
            (heads.certified.unwrap_or_default(), heads.hinted_through.unwrap_or_default());
        told.push(format!("{role} sealed {sealed} certified {certified} hinted {hinted} block {block}"));
    }
    told.join(", ")
}

/// Compares what is on the disks, again and again.
async fn compare(world: Arc<World>) {
    let mut looked: BTreeMap<Role, u64> = BTreeMap::new();
    loop {
        sleep(Duration::from_millis(COMPARISON_MS)).await;
        for role in world.plan.cast().executing() {
            let Some(store) = world.store(role) else { continue };
            let from = looked.get(&role).map_or(1, |last| last + 1);
            // One that is killed meanwhile is looked at later.
            for block in store.blocks(from, 256).await.unwrap_or_default() {
                world.checks.block(role, block.number, block.hash);
                looked.insert(role, block.number);
            }
        }
    }
}
