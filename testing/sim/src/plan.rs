//! What a seed draws: who takes part, how L1 goes on, what users send, and what goes wrong.

use std::collections::BTreeSet;

use blindfold_protocol::L1Timing;
use rand::RngExt;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use serde::Serialize;

use crate::{
    Role,
    byzantine::Lie,
    faults::{Cast, Fault, Scheduled, draw, draw_coprocessor, draw_l1, draw_lies, draw_long, draw_proxy},
    l1::Pace,
    plants::Plant,
};

/// Roles have so long to start before anything goes wrong, in milliseconds.
const CALM_MS: u64 = 6_000;
/// What lies are drawn from, beside the seed.
const LIES: u64 = 0x11e5;
/// What faults of L1 are drawn from, beside the seed.
const L1_FAULTS: u64 = 0x11;
/// What is forced in through L1 is drawn from this, beside the seed.
const FORCED: u64 = 0xf04ced;
/// Short deadlines of L1, and what takes longer than they do, are drawn from this, beside the seed.
const SHORT: u64 = 0x5407;
/// What goes through a proxy is drawn from this, beside the seed.
const PROXIED: u64 = 0x9904;
/// Whether a coprocessor takes part, and what goes wrong with it, is drawn from this, beside the seed.
const COPROCESSOR: u64 = 0xc0a5;
/// Of so many seeds one has no faults.
const CALM_SEEDS: u64 = 8;

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// What everything is drawn from.
    pub seed: u64,
    /// Members of the committee.
    pub members: u16,
    /// So many of them certify and decrypt.
    pub threshold: u16,
    /// Hint publishers.
    pub publishers: u16,
    /// Full nodes that follow the feed.
    pub nodes: u16,
    /// Users.
    pub users: u16,
    /// Envelopes of each user.
    pub envelopes: u16,
    /// The longest pause of a user between two of them, in milliseconds.
    pub pause_ms: u64,
    /// The sequencer's slot, in milliseconds.
    pub slot_ms: u64,
    /// Transactions that are forced in through L1.
    pub forced: u16,
    /// Transactions of the user of the proxy; there is none without any.
    pub proxied: u16,
    /// The full node that the coprocessor follows; there is no coprocessor without.
    pub coprocessor: Option<u16>,
    /// L1.
    #[serde(flatten)]
    pub pace: Pace,
    /// The deadlines of its contracts.
    pub timing: L1Timing,
    /// Whether somebody has L1 make headers whenever it does.
    pub makes_headers: bool,
    /// Whether somebody has L1 declare runs void whenever it does.
    pub declares_void: bool,
    /// Whether members post what the sequencer keeps from L1.
    pub members_post: bool,
    /// Whether hint publishers post to L1, and full nodes watch what stands there and show what is wrong.
    pub hints_on_l1: bool,
    /// Whether there is one full node more, which follows from L1 alone.
    pub node_from_l1: bool,
    /// When nothing is wrong any more, in milliseconds.
    pub faults_end_ms: u64,
    /// What goes wrong.
    pub faults: Vec<Scheduled>,
    /// The bug that was put in, if one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plant: Option<Plant>,
}

impl Plan {
    /// What this seed draws. With `calm` nothing goes wrong.
    pub fn new(seed: u64, calm: bool) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (members, threshold) = [(4, 3), (4, 3), (4, 3), (7, 5)][rng.random_range(0..4)];
        let (publishers, nodes) = (rng.random_range(1..=2), rng.random_range(1..=2));
        let (users, envelopes) = (rng.random_range(1..=3), rng.random_range(3..=8));
        let pace_of_users = rng.random_range(0..3);
        let slot_ms = [250, 250, 100, 1_000][rng.random_range(0..4)];
        let block_ms = [1_000, 2_000, 12_000][rng.random_range(0..3)];
        let pace = Pace { block_ms, finality_blocks: rng.random_range(2..=8) };
        let faults_end_ms = rng.random_range(20_000..=45_000);
        // All at once, or for as long as anything goes wrong.
        let pause_ms = [500, faults_end_ms / u64::from(envelopes), 2 * faults_end_ms / u64::from(envelopes)];
        let pause_ms = pause_ms[pace_of_users];
        let cast = Cast { members, publishers, nodes, proxy: false, coprocessor: false };
        let mut faults = draw(&mut rng, &cast, CALM_MS, faults_end_ms);
        // Of their own stream each, so that a seed keeps what it drew before there were any.
        let mut rng = ChaCha20Rng::seed_from_u64(seed ^ LIES);
        if rng.random_range(0..2) == 0 {
            let gone_back =
                |fault: &Scheduled| matches!(fault.fault, Fault::OlderDisk { role: Role::Member(_) });
            let stands = usize::from(members - threshold) - usize::from(faults.iter().any(gone_back));
            draw_lies(&mut rng, &cast, stands, (CALM_MS, faults_end_ms), &mut faults);
        }
        let mut rng = ChaCha20Rng::seed_from_u64(seed ^ L1_FAULTS);
        if rng.random_range(0..3) == 0 {
            draw_l1(&mut rng, &cast, (CALM_MS, faults_end_ms), &mut faults);
        }
        let mut rng = ChaCha20Rng::seed_from_u64(seed ^ FORCED);
        let forced = if rng.random_range(0..3) == 0 { rng.random_range(1..=4) } else { 0 };
        let mut rng = ChaCha20Rng::seed_from_u64(seed ^ SHORT);
        let is_short = rng.random_range(0..4) == 0;
        let (mut pace, mut timing, mut faults_end_ms) = (pace, L1Timing::default(), faults_end_ms);
        let (mut makes_headers, mut members_post, mut declares_void) = (false, false, false);
        let mut hints_on_l1 = rng.random_range(0..4) == 0;
        let node_from_l1 = rng.random_range(0..4) == 0;
        if is_short {
            pace = Pace { block_ms: 1_000, finality_blocks: rng.random_range(2..=4) };
            timing.posting_deadline = [32, 48, 64][rng.random_range(0..3)];
            (timing.forced_delay, timing.answer_window) =
                (rng.random_range(6..=12), rng.random_range(6..=12));
            (makes_headers, members_post) = (rng.random_range(0..3) > 0, rng.random());
            // Without hints on L1 nobody executes what it may have declared void.
            hints_on_l1 |= rng.random::<bool>();
            if hints_on_l1 {
                timing.hint_deadline = rng.random_range(40..=80);
                let lies =
                    |fault: &Scheduled| matches!(fault.fault, Fault::Lies { how: Lie::WrongHints, .. });
                // Whoever shows what is wrong may be cut off for as long as anything goes wrong.
                timing.challenge_window =
                    if faults.iter().any(lies) { 300 } else { rng.random_range(8..=30) };
                declares_void = rng.random_range(0..3) > 0;
            }
            faults_end_ms = rng.random_range(60_000..=140_000);
            draw_long(&mut rng, &cast, (CALM_MS, faults_end_ms), &mut faults);
            // What is too old to be posted by then gives way to a header of L1's, and to nothing else: somebody has to ask it.
            let stalls = faults.last().is_some_and(|long| long.fault == Fault::FinalityStalls);
            makes_headers |= !stalls;
        }
        let mut rng = ChaCha20Rng::seed_from_u64(seed ^ PROXIED);
        let proxied = if rng.random_range(0..4) == 0 { rng.random_range(1..=8) } else { 0 };
        if proxied > 0 {
            draw_proxy(&mut rng, (CALM_MS, faults_end_ms), &mut faults);
        }
        let mut rng = ChaCha20Rng::seed_from_u64(seed ^ COPROCESSOR);
        let coprocessor = (rng.random_range(0..4) == 0).then(|| rng.random_range(1..=nodes));
        if coprocessor.is_some() {
            draw_coprocessor(&mut rng, (CALM_MS, faults_end_ms), &mut faults);
        }
        let faults = if calm || seed.is_multiple_of(CALM_SEEDS) { Vec::new() } else { faults };
        Self {
            seed,
            members,
            threshold,
            publishers,
            nodes,
            users,
            envelopes,
            pause_ms,
            slot_ms,
            forced,
            proxied,
            coprocessor,
            pace,
            timing,
            makes_headers,
            declares_void,
            members_post,
            hints_on_l1,
            node_from_l1,
            faults_end_ms,
            faults,
            plant: None,
        }
    }

    /// The same without some of the faults.
    #[must_use]
    pub fn without(mut self, left_out: &[usize]) -> Self {
        self.faults.retain(|scheduled| !left_out.contains(&scheduled.id));
        self
    }

    /// The same with only these of the faults.
    #[must_use]
    pub fn only(mut self, kept: &[usize]) -> Self {
        self.faults.retain(|scheduled| kept.contains(&scheduled.id));
        self
    }

    /// Who lies, sooner or later.
    pub fn dishonest(&self) -> BTreeSet<Role> {
        let faulty = |scheduled: &Scheduled| match scheduled.fault {
            Fault::Lies { role, .. } => Some(role),
            _ => None,
        };
        self.faults.iter().filter_map(faulty).collect()
    }

    /// Whether members enough are left to go on when nothing is wrong any more: who lies, who was shown another header, and
    /// who votes no more in its epoch, are not among them.
    pub fn goes_on(&self) -> bool {
        let mut lost: BTreeSet<u16> = BTreeSet::new();
        let (mut equivocates, mut forgets) = (false, false);
        for scheduled in &self.faults {
            match &scheduled.fault {
                Fault::Lies { how: Lie::Equivocates { members, .. }, .. } => {
                    lost.extend(members);
                    equivocates = true;
                }
                Fault::Lies { role: Role::Member(member), .. }
                | Fault::OlderDisk { role: Role::Member(member) } => {
                    lost.insert(*member);
                }
                Fault::OlderDisk { role: Role::Sequencer } => forgets = true,
                _ => {}
            }
        }
        lost.len() <= usize::from(self.members - self.threshold) && !(equivocates && forgets)
    }

    /// The same with a bug.
    #[must_use]
    pub fn with(mut self, plant: Option<Plant>) -> Self {
        self.plant = plant;
        self
    }

    /// Envelopes of all users, with the one that is sent at the end.
    pub fn envelopes_in_all(&self) -> u64 {
        u64::from(self.users) * u64::from(self.envelopes) + u64::from(self.proxied) + 1
    }

    /// The full node that follows from L1 alone, if there is one.
    pub fn from_l1(&self) -> Option<Role> {
        self.node_from_l1.then_some(Role::Node(self.nodes + 1))
    }

    /// Who takes part, but for users.
    pub fn cast(&self) -> Cast {
        let nodes = self.nodes + u16::from(self.node_from_l1);
        Cast {
            members: self.members,
            publishers: self.publishers,
            nodes,
            proxy: self.proxied > 0,
            coprocessor: self.coprocessor.is_some(),
        }
    }
}
