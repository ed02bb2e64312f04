//! What a seed draws: who takes part, how L1 goes on, what users send, and what goes wrong.

use rand::RngExt;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use serde::Serialize;

use crate::{
    faults::{Cast, Scheduled, draw},
    l1::Pace,
    plants::Plant,
};

/// Roles have so long to start before anything goes wrong, in milliseconds.
const CALM_MS: u64 = 6_000;
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
    /// Full nodes.
    pub nodes: u16,
    /// Users.
    pub users: u16,
    /// Envelopes of each user.
    pub envelopes: u16,
    /// The longest pause of a user between two of them, in milliseconds.
    pub pause_ms: u64,
    /// The sequencer's slot, in milliseconds.
    pub slot_ms: u64,
    /// L1.
    #[serde(flatten)]
    pub pace: Pace,
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
        let cast = Cast { members, publishers, nodes };
        let faults = draw(&mut rng, &cast, CALM_MS, faults_end_ms);
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
            pace,
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

    /// The same with a bug.
    #[must_use]
    pub fn with(mut self, plant: Option<Plant>) -> Self {
        self.plant = plant;
        self
    }

    /// Who takes part, but for users.
    pub fn cast(&self) -> Cast {
        Cast { members: self.members, publishers: self.publishers, nodes: self.nodes }
    }
}
