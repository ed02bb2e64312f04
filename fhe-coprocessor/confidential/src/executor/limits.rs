//! How many bad proofs of a batch are looked at, and how many proofs are verified ahead of their turn.

use std::collections::HashMap;

use alloy_primitives::Address;

use super::batch::Turn;
use super::{MAX_INVALID_PER_ACCOUNT, MAX_INVALID_PER_BATCH, MAX_INVALID_PER_NONCE};

/// So many proofs must have held for each that may be verified in vain.
const HELD_PER_WASTED: usize = 4;

/// Proofs of a batch that did not hold at their turn, up to some transaction. They decide what is refused.
#[derive(Clone, Default)]
pub(super) struct Attempts {
    by_turn: HashMap<Turn, usize>,
    by_account: HashMap<Address, usize>,
    all: usize,
}

impl Attempts {
    /// How many proofs may still fail at this turn.
    pub(super) fn left(&self, turn: &Turn) -> usize {
        let at_turn = self.by_turn.get(turn).copied().unwrap_or(0);
        let left = MAX_INVALID_PER_NONCE.saturating_sub(at_turn);
        let of_account = self.by_account.get(&turn.0).copied().unwrap_or(0);
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

/// What verifying said in a batch so far, ahead of the turn or at it. It decides how many proofs are verified next and
/// nothing else.
#[derive(Default)]
pub(super) struct Verdicts {
    by_account: HashMap<Address, Counts>,
    all: Counts,
    /// Bad ones that rested on others.
    wasted: usize,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    held: usize,
    bad: usize,
}

impl Counts {
    fn add(&mut self, holds: bool) {
        let counter = if holds { &mut self.held } else { &mut self.bad };
        *counter += 1;
    }
}

impl Verdicts {
    /// A verdict on a proof of this account, which rested on others or did not.
    pub(super) fn add(&mut self, account: Address, rests: bool, holds: bool) {
        self.by_account.entry(account).or_default().add(holds);
        self.all.add(holds);
        self.wasted += usize::from(rests && !holds);
    }

    /// How many proofs may be verified at once: so many that, were all of them bad, no more were bad than the limit of a
    /// batch and one for each [`HELD_PER_WASTED`] that held. One at least, or the batch would come to no end.
    pub(super) fn room(&self) -> usize {
        (MAX_INVALID_PER_BATCH + self.all.held / HELD_PER_WASTED).saturating_sub(self.all.bad).max(1)
    }

    /// How many of one account: were all of them bad, no more than its limit and as many as held.
    pub(super) fn room_of(&self, account: &Address) -> usize {
        let Counts { held, bad } = self.by_account.get(account).copied().unwrap_or_default();
        (MAX_INVALID_PER_ACCOUNT + held).saturating_sub(bad).max(1)
    }

    /// How many that rest on others: were all of them bad, no more than one for each [`HELD_PER_WASTED`] that held.
    pub(super) const fn room_to_rest(&self) -> usize {
        (self.all.held / HELD_PER_WASTED).saturating_sub(self.wasted)
    }
}
