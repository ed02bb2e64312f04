//! What goes wrong, and when.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use rand::RngExt;
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use crate::{Role, byzantine::Lie};

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
    /// L1's newest blocks give way to others at the beginning.
    Reorganization {
        /// How many, as far as they are not final.
        blocks: u64,
        /// Whether what was posted in them is posted again by itself.
        again: bool,
    },
    /// One of two servers of L1 lags behind: for everybody, or for one role.
    L1Lags {
        /// For whom.
        role: Option<Role>,
        /// By how many blocks.
        blocks: usize,
    },
    /// L1's server answers one role with nonsense.
    L1Nonsense {
        /// Whom.
        role: Role,
    },
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
    /// A role says other things than it should.
    Lies {
        /// Who.
        role: Role,
        /// How.
        how: Lie,
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
    /// Whether there is a proxy.
    pub proxy: bool,
    /// Whether there is a coprocessor.
    pub coprocessor: bool,
}

impl Cast {
    /// Everybody who serves or follows.
    pub fn all(&self) -> Vec<Role> {
        let members = (1..=self.members).map(Role::Member);
        let publishers = (1..=self.publishers).map(Role::Publisher);
        let nodes = (1..=self.nodes).map(Role::Node);
        let proxy = self.proxy.then_some(Role::Proxy);
        let coprocessor = self.coprocessor.then_some(Role::Coprocessor);
        let others = members.chain(publishers).chain(nodes).chain(proxy).chain(coprocessor);
        [Role::Sequencer].into_iter().chain(others).collect()
    }

    /// Those with a disk. The proxy has a file of its own, which is as it was after each kill.
    pub fn with_disk(&self) -> Vec<Role> {
        self.all().into_iter().filter(|role| !matches!(role, Role::Publisher(_) | Role::Proxy)).collect()
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

/// Ids of what is wrong with L1 beside its being away.
const L1_FAULTS: usize = 200;

/// Adds to a schedule what is wrong with L1 beside its being away.
pub fn draw_l1(
    rng: &mut ChaCha20Rng,
    cast: &Cast,
    (from_ms, to_ms): (u64, u64),
    schedule: &mut Vec<Scheduled>,
) {
    let all = cast.all();
    for index in 0..rng.random_range(1..=3) {
        let from_ms = rng.random_range(from_ms..to_ms - 1_000);
        let to_ms = rng.random_range(from_ms + 500..=to_ms);
        let fault = match rng.random_range(0..5) {
            0..=2 => Fault::Reorganization { blocks: rng.random_range(1..=8), again: rng.random() },
            3 => {
                let role = rng.random::<bool>().then(|| one_of(rng, &all));
                Fault::L1Lags { role, blocks: rng.random_range(1..=8) }
            }
            _ => Fault::L1Nonsense { role: one_of(rng, &all) },
        };
        schedule.push(Scheduled { id: L1_FAULTS + index, from_ms, to_ms, fault });
    }
}

/// Ids of what goes wrong with the proxy.
const PROXY: usize = 400;

/// Adds to a schedule what goes wrong with the proxy: it is killed, or loses messages.
pub fn draw_proxy(rng: &mut ChaCha20Rng, (from_ms, to_ms): (u64, u64), schedule: &mut Vec<Scheduled>) {
    let mut free_ms = from_ms;
    for index in 0..rng.random_range(0..=3) {
        if free_ms + 2_000 >= to_ms {
            return;
        }
        let from_ms = rng.random_range(free_ms..to_ms - 1_000);
        let to_ms = (from_ms + rng.random_range(200..=6_000)).min(to_ms);
        free_ms = to_ms + 1_000;
        let fault = if rng.random() {
            Fault::Kill { role: Role::Proxy, after_commit: rng.random() }
        } else {
            let permille = [0, 100, 400];
            Fault::Loss {
                at: Some(Role::Proxy),
                requests_permille: one_of(rng, &permille),
                answers_permille: one_of(rng, &permille),
                twice_permille: one_of(rng, &permille),
            }
        };
        schedule.push(Scheduled { id: PROXY + index, from_ms, to_ms, fault });
    }
}

/// Ids of what goes wrong with the coprocessor.
const COPROCESSOR: usize = 500;

/// Adds to a schedule what goes wrong with the coprocessor, one after the other: kills before all.
pub fn draw_coprocessor(rng: &mut ChaCha20Rng, (from_ms, to_ms): (u64, u64), schedule: &mut Vec<Scheduled>) {
    let role = Role::Coprocessor;
    let mut free_ms = from_ms;
    for index in 0..rng.random_range(0..=5) {
        if free_ms + 2_000 >= to_ms {
            return;
        }
        let from_ms = rng.random_range(free_ms..to_ms - 1_000);
        let to_ms = (from_ms + rng.random_range(200..=8_000)).min(to_ms);
        free_ms = to_ms + 1_000;
        let fault = match rng.random_range(0..12) {
            0..=3 => Fault::Kill { role, after_commit: rng.random() },
            4 => Fault::OlderDisk { role },
            5 => Fault::SlowDisk { role, ms: one_of(rng, &[5, 100, 2_000]) },
            6 => Fault::FullDisk { role },
            7 => Fault::Partition { roles: vec![role] },
            8 => Fault::L1Down { role: Some(role) },
            9 => Fault::L1Lags { role: Some(role), blocks: rng.random_range(1..=8) },
            10 => Fault::L1Nonsense { role },
            _ => Fault::Loss {
                at: Some(role),
                requests_permille: one_of(rng, &[0, 100, 400]),
                answers_permille: one_of(rng, &[0, 100, 400]),
                twice_permille: one_of(rng, &[0, 100, 400]),
            },
        };
        schedule.push(Scheduled { id: COPROCESSOR + index, from_ms, to_ms, fault });
    }
}

/// The id of what goes on for long.
const LONG: usize = 300;

/// Adds to a schedule something that goes on for longer than L1 waits for a posting.
pub fn draw_long(
    rng: &mut ChaCha20Rng,
    cast: &Cast,
    (from_ms, to_ms): (u64, u64),
    schedule: &mut Vec<Scheduled>,
) {
    let from_ms = rng.random_range(from_ms..to_ms - 40_000);
    let to_ms = rng.random_range(from_ms + 35_000..=to_ms);
    let fault = match rng.random_range(0..6) {
        0 => Fault::Kill { role: Role::Sequencer, after_commit: rng.random() },
        1 => Fault::L1Down { role: None },
        2 => Fault::L1Down { role: Some(Role::Sequencer) },
        3 => Fault::FinalityStalls,
        4 => Fault::Partition { roles: vec![Role::Sequencer] },
        _ => {
            let members = (1..=cast.members).filter(|_| rng.random_range(0..3) > 0);
            Fault::Partition { roles: members.map(Role::Member).collect() }
        }
    };
    if matches!(fault, Fault::Kill { .. }) {
        // A role that is down is not killed again.
        schedule.retain(|scheduled| {
            let role = match scheduled.fault {
                Fault::Kill { role, .. } | Fault::OlderDisk { role } => role,
                _ => return true,
            };
            role != Role::Sequencer
        });
    }
    schedule.push(Scheduled { id: LONG, from_ms, to_ms, fault });
}

/// Ids of lies.
const LIES: usize = 100;
/// Longer than any run, in milliseconds.
const TO_THE_END_MS: u64 = 86_400_000;

/// Adds to a schedule who lies: members, as many as a committee stands, a hint publisher beside an honest one, the
/// sequencer. Every other one does so to the end.
pub fn draw_lies(
    rng: &mut ChaCha20Rng,
    cast: &Cast,
    stands: usize,
    (from_ms, to_ms): (u64, u64),
    schedule: &mut Vec<Scheduled>,
) {
    let mut add = |rng: &mut ChaCha20Rng, role: Role, how: Lie, for_ever: bool| {
        // A committee votes for its first header once enough of the others have said that they have none (C-1).
        let from_start = rng.random::<bool>() && how != Lie::Garbage;
        let from_ms = if from_start { 0 } else { rng.random_range(from_ms..to_ms - 1_000) };
        let to_ms = if for_ever { TO_THE_END_MS } else { rng.random_range(from_ms + 1_000..=to_ms) };
        let id = LIES + schedule.len();
        schedule.push(Scheduled { id, from_ms, to_ms, fault: Fault::Lies { role, how } });
    };
    let mut members: Vec<u16> = (1..=cast.members).collect();
    let faulty = rng.random_range(0..=stands);
    for _ in 0..faulty {
        let member = members.swap_remove(rng.random_range(0..members.len()));
        let for_ever = rng.random();
        for _ in 0..rng.random_range(1..=2) {
            let how = match rng.random_range(0..4) {
                0 => Lie::VotesTwice,
                1 => Lie::WithholdsShares,
                2 => Lie::WrongShares,
                _ => Lie::Garbage,
            };
            add(rng, Role::Member(member), how, for_ever);
        }
    }
    if cast.publishers > 1 && rng.random_range(0..3) == 0 {
        let (publisher, for_ever) = (rng.random_range(1..=cast.publishers), rng.random());
        add(rng, Role::Publisher(publisher), Lie::WrongHints, for_ever);
    }
    if rng.random_range(0..4) == 0 {
        // More than the committee stands make it wait for L1: nothing goes on, and nothing must be wrong.
        let most = if rng.random_range(0..3) == 0 { members.len() } else { stands.saturating_sub(faulty) };
        let count = rng.random_range(0..=most);
        let mut shown: Vec<u16> =
            (0..count).map(|_| members.swap_remove(rng.random_range(0..members.len()))).collect();
        shown.sort_unstable();
        let how = Lie::Equivocates { members: shown, headers: one_of(rng, &[1, 2, 16]) };
        add(rng, Role::Sequencer, how, false);
    }
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
