//! What rests on proofs that nothing is known about.

use std::collections::{HashMap, HashSet};

use alloy_primitives::{Address, B256};

use super::batch::Turn;
use crate::transaction::ConfidentialTransaction as T;

/// How an open proof was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Taken {
    /// As one that holds: what its transaction does is in place.
    Assumed,
    /// Not at all: nothing is in place.
    PassedOver,
}

/// What is uncertain behind open proofs, as a batch is gone through. More than the state would show: what is refused later
/// counts as well.
#[derive(Default)]
pub(super) struct Open {
    /// Accounts that may not come about.
    registering: HashSet<Address>,
    /// Accounts whose pending balance rests on open proofs.
    credited: HashMap<Address, Taken>,
    /// Public accounts whose balance or nonce does.
    public: HashMap<Address, Taken>,
    /// Accounts that may be elsewhere and still go on: their available balance rests on another account's open proof, or
    /// they took a turn that others ask for as well, or they are registering.
    resting: HashSet<Address>,
    /// Accounts that are not where they would be if all open proofs held.
    stalled: HashSet<Address>,
    /// The turns at which they stand, with the transactions that were asked about.
    turns: HashMap<Turn, Vec<B256>>,
}

impl Open {
    pub(super) fn is_stalled(&self, account: &Address) -> bool {
        self.stalled.contains(account)
    }

    pub(super) fn is_resting(&self, account: &Address) -> bool {
        self.resting.contains(account)
    }

    /// Whether the one who is paid may have no account.
    pub(super) fn lacks_receiver(&self, transaction: &T) -> bool {
        matches!(transaction, T::Transfer(transfer) if self.registering.contains(&transfer.receiver))
    }

    /// The account took a turn that others may take.
    pub(super) fn rest(&mut self, account: Address) {
        self.resting.insert(account);
    }

    /// The account waits at this turn.
    pub(super) fn stall(&mut self, turn: Turn) {
        self.stalled.insert(turn.0);
        self.turns.entry(turn).or_default();
    }

    /// Those that were asked about at a turn at which an account waits.
    pub(super) fn asked_at(&mut self, turn: &Turn) -> Option<&mut Vec<B256>> {
        self.turns.get_mut(turn)
    }

    /// Takes a transaction with an open proof.
    pub(super) fn proved(&mut self, operator: Address, transaction: &T, taken: Taken) {
        match transaction {
            T::Register(register) => {
                self.registering.insert(register.owner);
                self.resting.insert(register.owner);
            }
            T::Transfer(transfer) => {
                worsen(&mut self.credited, transfer.receiver, taken);
                worsen(&mut self.public, operator, taken);
            }
            T::Withdraw(withdraw) => worsen(&mut self.public, withdraw.recipient, taken),
            T::Deposit(_) | T::Rollover(_) | T::Refresh(_) => {}
        }
    }

    /// Takes a transaction without a proof.
    pub(super) fn unproved(&mut self, transaction: &T) {
        match transaction {
            T::Rollover(rollover) => match self.credited.get(&rollover.account) {
                Some(Taken::Assumed) => {
                    self.resting.insert(rollover.account);
                }
                Some(Taken::PassedOver) => {
                    self.stalled.insert(rollover.account);
                }
                None => {}
            },
            T::Deposit(deposit) => {
                if self.registering.contains(&deposit.account) {
                    worsen(&mut self.public, deposit.from, Taken::PassedOver);
                }
                // The public account's next deposits ask for the turn after this one.
                if let Some(taken) = self.public.get(&deposit.from).copied() {
                    worsen(&mut self.credited, deposit.account, taken);
                }
            }
            _ => {}
        }
    }
}

fn worsen(doubts: &mut HashMap<Address, Taken>, address: Address, taken: Taken) {
    let doubt = doubts.entry(address).or_insert(taken);
    *doubt = taken.max(*doubt);
}
