//! What goes wrong, and when.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use rand::RngExt;
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use crate::Role;

/// Something that goes wrong for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fault {
    /// Messages are lost, or arrive twice: of one role, or everywhere.
    Loss {
        /// Whose.
        at: Option<Role>,
        /// Of a thousand calls so many never arrive.
        requests_permille: u32,
        /// Of a thousand answers so many never arrive.
        answers_permille: u32,
        /// Of a thousand calls so many arrive twice.
        twice_permille: u32,
    },
    /// Messages take long: of one role, or everywhere.
    Slow {
        /// Whose.
        at: Option<Role>,
        /// How long at most.
        up_to_ms: u64,
    },
    /// These are cut off from all others, and not from each other.
    Partition {
        /// Who.
        roles: Vec<Role>,
    },
    /// Killed at its next write to disk, and started again at the end.
    Kill {
        /// Who.
        role: Role,
        /// Whether what it writes is on disk.
        after_commit: bool,
    },
    /// L1 answers nobody, or one role not.
    L1Down {
        /// Whom.
        role: Option<Role>,
    },
    /// L1 goes on and makes nothing final.
    FinalityStalls,
    /// A disk takes long.
    SlowDisk {
        /// Whose.
        role: Role,
        /// For each write.
        ms: u64,
    },
    /// A disk is full.
    FullDisk {
        /// Whose.
        role: Role,
    },
    /// A role goes back, at the end, to the disk that it had at the beginning.
    OlderDisk {
        /// Who.
        role: Role,
    },
    /// The wall clock of a machine is wrong.
    WrongClock {
        /// Whose.
        role: Role,
        /// By so much.
        ahead_ms: i64,
    },
    /// An execution client does not answer, and has lost its newest blocks when it does again.
    LostHead {
        /// Whose.
        role: Role,
        /// How many.
        blocks: u64,
    },
}

/// A fault from one moment to another, in milliseconds from the beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scheduled {
    /// Its place in the schedule, by which it can be left out.
    pub id: usize,
    /// Since when.
    pub from_ms: u64,
    /// Until when.
    pub to_ms: u64,
    /// What.
    #[serde(flatten)]
    pub fault: Fault,
}

/// The faults of the moment. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<BTreeMap<usize, Scheduled>>>);

impl Faults {
    /// From now on this goes wrong.
    pub fn begin(&self, scheduled: &Scheduled) {
        self.0.lock().insert(scheduled.id, scheduled.clone());
    }

    /// It no longer does.
    pub fn end(&self, scheduled: &Scheduled) {
        self.0.lock().remove(&scheduled.id);
    }

    /// Looks at each, and at when it ends, in milliseconds.
    pub fn each(&self, mut look: impl FnMut(&Fault, u64)) {
        self.0.lock().values().for_each(|scheduled| look(&scheduled.fault, scheduled.to_ms));
    }

    /// Whether there is one of which this holds.
    pub fn any(&self, holds: impl Fn(&Fault) -> bool) -> bool {
        self.0.lock().values().any(|scheduled| holds(&scheduled.fault))
    }
}

/// Who can be hit.
#[derive(Clone, Debug)]
pub struct Cast {
    /// Members.
    pub members: u16,
    /// Hint publishers.
    pub publishers: u16,
    /// Full nodes.
    pub nodes: u16,
}

impl Cast {
    /// Everybody who serves or follows.
    pub fn all(&self) -> Vec<Role> {
        let members = (1..=self.members).map(Role::Member);
        let publishers = (1..=self.publishers).map(Role::Publisher);
        let nodes = (1..=self.nodes).map(Role::Node);
        [Role::Sequencer].into_iter().chain(members).chain(publishers).chain(nodes).collect()
    }

    /// Those with a disk.
    pub fn with_disk(&self) -> Vec<Role> {
        self.all().into_iter().filter(|role| !matches!(role, Role::Publisher(_))).collect()
    }

    /// Those with an execution client.
    pub fn executing(&self) -> Vec<Role> {
        self.all().into_iter().filter(|role| matches!(role, Role::Sequencer | Role::Node(_))).collect()
    }
}

fn one_of<T: Copy>(rng: &mut ChaCha20Rng, list: &[T]) -> T {
    list[rng.random_range(0..list.len())]
}

/// Draws what goes wrong between these two moments.
pub fn draw(rng: &mut ChaCha20Rng, cast: &Cast, from_ms: u64, to_ms: u64) -> Vec<Scheduled> {
    let count = rng.random_range(1..=5);
    let scheduled = |id| {
        let from_ms = rng.random_range(from_ms..to_ms - 1_000);
        let longest_ms = if rng.random_range(0..4) == 0 { to_ms - from_ms } else { 8_000 };
        let to_ms = (from_ms + rng.random_range(500..=longest_ms.max(501))).min(to_ms);
        Scheduled { id, from_ms, to_ms, fault: fault(rng, cast) }
    };
    let mut schedule: Vec<Scheduled> = (0..count).map(scheduled).collect();
    // A role that is down is not killed again, and one member at most goes back: it votes no more in its epoch.
    let mut down: Vec<(Role, u64, u64)> = Vec::new();
    let mut gone_back = false;
    schedule.retain(|scheduled| {
        let role = match scheduled.fault {
            Fault::OlderDisk { role: Role::Member(_) } if gone_back => return false,
            Fault::Kill { role, .. } | Fault::OlderDisk { role } => role,
            _ => return true,
        };
        let meets = |(other, from, to): &(Role, u64, u64)| {
            *other == role && scheduled.from_ms <= *to + 1_000 && *from <= scheduled.to_ms + 1_000
        };
        if down.iter().any(meets) {
            return false;
        }
        gone_back |= matches!(scheduled.fault, Fault::OlderDisk { role: Role::Member(_) });
        down.push((role, scheduled.from_ms, scheduled.to_ms));
        true
    });
    schedule
}

fn fault(rng: &mut ChaCha20Rng, cast: &Cast) -> Fault {
    let all = cast.all();
    let at = |rng: &mut ChaCha20Rng| (rng.random_range(0..3) > 0).then(|| one_of(rng, &all));
    match rng.random_range(0..14) {
        0 | 1 => Fault::Loss {
            at: at(rng),
            requests_permille: one_of(rng, &[0, 50, 300]),
            answers_permille: one_of(rng, &[0, 50, 300]),
            twice_permille: one_of(rng, &[0, 50, 300]),
        },
        2 | 3 => Fault::Slow { at: at(rng), up_to_ms: one_of(rng, &[200, 2_000, 10_000, 30_000]) },
        4 | 5 => {
            let roles = all.iter().copied().filter(|_| rng.random_range(0..3) == 0).collect();
            Fault::Partition { roles }
        }
        6..=8 => Fault::Kill { role: one_of(rng, &all), after_commit: rng.random() },
        9 => match rng.random_range(0..3) {
            0 => Fault::FinalityStalls,
            1 => Fault::L1Down { role: None },
            _ => Fault::L1Down { role: Some(one_of(rng, &all)) },
        },
        10 => {
            let role = one_of(rng, &cast.with_disk());
            if rng.random() {
                Fault::SlowDisk { role, ms: one_of(rng, &[5, 100, 2_000]) }
            } else {
                Fault::FullDisk { role }
            }
        }
        11 => Fault::OlderDisk { role: one_of(rng, &cast.with_disk()) },
        12 => {
            let ahead_ms = one_of(rng, &[-3_600_000, -5_000, 500, 5_000, 3_600_000]);
            Fault::WrongClock { role: one_of(rng, &all), ahead_ms }
        }
        _ => Fault::LostHead { role: one_of(rng, &cast.executing()), blocks: rng.random_range(0..8) },
    }
}
