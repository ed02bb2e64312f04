//! What was under way when something went wrong: a pair of a fault and a situation that no seed meets is a hole in what
//! seeds draw.

use std::collections::BTreeSet;

use blindfold_store::Store;

use crate::{Role, byzantine::Lie, confidential, faults::Fault, world::World};

/// What can be under way, in the order of [`look`].
pub const SITUATIONS: [&str; 13] = [
    "nothing_waits",
    "envelopes_wait",
    "headers_without_certificate",
    "batches_without_hints",
    "headers_not_posted",
    "forced_items_wait",
    "hints_open_on_l1",
    "l1_header_not_final",
    "l1_header_final",
    "run_void",
    "role_down",
    "coprocessor_behind",
    "coprocessor_halted",
];

/// All faults, by name: of a lie, how.
pub const FAULTS: [&str; 20] = [
    "loss",
    "slow",
    "partition",
    "kill",
    "l1_down",
    "finality_stalls",
    "reorganization",
    "l1_lags",
    "l1_nonsense",
    "slow_disk",
    "full_disk",
    "older_disk",
    "wrong_clock",
    "lost_head",
    "lies_votes_twice",
    "lies_withholds_shares",
    "lies_wrong_shares",
    "lies_garbage",
    "lies_wrong_hints",
    "lies_equivocates",
];

/// The name of a fault.
pub fn name_of(fault: &Fault) -> &'static str {
    match fault {
        Fault::Loss { .. } => "loss",
        Fault::Slow { .. } => "slow",
        Fault::Partition { .. } => "partition",
        Fault::Kill { .. } => "kill",
        Fault::L1Down { .. } => "l1_down",
        Fault::FinalityStalls => "finality_stalls",
        Fault::Reorganization { .. } => "reorganization",
        Fault::L1Lags { .. } => "l1_lags",
        Fault::L1Nonsense { .. } => "l1_nonsense",
        Fault::SlowDisk { .. } => "slow_disk",
        Fault::FullDisk { .. } => "full_disk",
        Fault::OlderDisk { .. } => "older_disk",
        Fault::WrongClock { .. } => "wrong_clock",
        Fault::LostHead { .. } => "lost_head",
        Fault::Lies { how, .. } => match how {
            Lie::VotesTwice => "lies_votes_twice",
            Lie::WithholdsShares => "lies_withholds_shares",
            Lie::WrongShares => "lies_wrong_shares",
            Lie::Garbage => "lies_garbage",
            Lie::WrongHints => "lies_wrong_hints",
            Lie::Equivocates { .. } => "lies_equivocates",
        },
    }
}

/// Adds the pairs of what is wrong now and what is under way now.
pub async fn look(world: &World, met: &mut BTreeSet<(&'static str, &'static str)>) {
    let mut faults = BTreeSet::new();
    world.faults.each(|fault, _| faults.extend([name_of(fault)]));
    if faults.is_empty() {
        return;
    }
    let heads = match world.store(Role::Sequencer) {
        Some(store) => store.heads().await.unwrap_or_default(),
        None => Default::default(),
    };
    let sealed = heads.sealed.map_or(0, |(number, _)| number);
    let (certified, hinted) = (heads.certified.unwrap_or_default(), heads.hinted_through.unwrap_or_default());
    let executed = confidential::executed(world).await;
    let waits = world.checks.waiting() > 0;
    let l1 = world.l1.standing();
    let there = [
        !waits,
        waits,
        certified < sealed,
        hinted < certified,
        world.l1.posted() < certified,
        l1.forced_items_wait,
        l1.hints_open,
        l1.header_not_final,
        l1.header_final,
        l1.run_void,
        world
            .plan
            .cast()
            .all()
            .into_iter()
            .any(|role| !world.net.is_bound(role) && !matches!(role, Role::Publisher(_))),
        executed.is_some_and(|executed| executed < hinted),
        world.is_halted(),
    ];
    for (situation, _) in SITUATIONS.into_iter().zip(there).filter(|(_, there)| *there) {
        met.extend(faults.iter().map(|fault| (*fault, situation)));
    }
}
