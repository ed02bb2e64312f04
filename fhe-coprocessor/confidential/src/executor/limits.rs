//! How many bad proofs of a batch are looked at.

use std::collections::HashMap;

use alloy_primitives::Address;

use super::pass::Turn;
use super::{MAX_INVALID_PER_ACCOUNT, MAX_INVALID_PER_BATCH, MAX_INVALID_PER_NONCE};

/// Proofs of a batch that did not hold, up to some transaction.
#[derive(Default)]
pub(super) struct Attempts {
    by_turn: HashMap<Turn, usize>,
    by_account: HashMap<Address, usize>,
    all: usize,
}

impl Attempts {
    /// How many proofs may still fail at this turn.
    pub(super) fn left(&self, turn: &Turn) -> usize {
        let at_turn = self.by_turn.get(turn).copied().unwrap_or(0);
        let of_account = self.by_account.get(&turn.0).copied().unwrap_or(0);
        let left = MAX_INVALID_PER_NONCE.saturating_sub(at_turn);
        let left = left.min(MAX_INVALID_PER_ACCOUNT.saturating_sub(of_account));
        left.min(MAX_INVALID_PER_BATCH.saturating_sub(self.all))
    }

    /// Whether a proof at this turn is looked at.
    pub(super) fn allow(&self, turn: &Turn) -> bool {
        self.left(turn) > 0
    }

    /// A proof did not hold.
    pub(super) fn failed(&mut self, turn: Turn) {
        *self.by_turn.entry(turn).or_default() += 1;
        *self.by_account.entry(turn.0).or_default() += 1;
        self.all += 1;
    }
}
