//! What one step changes, enough to go forth and back, and why the ledger refuses a step.

use super::{Account, Held};
use alloy_primitives::Address;

/// One account before and after; `None` is no leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountChange {
    /// Whose account it is.
    pub payer: Address,
    /// The account before the step.
    pub before: Option<Account>,
    /// The account after the step.
    pub after: Option<Account>,
}

/// One fee nonce before and after: the expiry until which it is in use; `None` is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonceChange {
    /// The payer whose nonce it is.
    pub payer: Address,
    /// The fee nonce itself.
    pub nonce: u64,
    /// Its expiry before the step.
    pub before: Option<u64>,
    /// Its expiry after the step.
    pub after: Option<u64>,
}

/// What is held for one batch before and after; empty is nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldChange {
    /// Number of the batch whose surcharges are held.
    pub number: u64,
    /// What was held before the step.
    pub before: Vec<Held>,
    /// What is held after the step.
    pub after: Vec<Held>,
}

/// Everything one step changed, enough to go forth and back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerDelta {
    /// Changed accounts, in order of payers.
    pub accounts: Vec<AccountChange>,
    /// Changed fee nonces, by payer and nonce.
    pub nonces: Vec<NonceChange>,
    /// Changed surcharges, in order of batch numbers.
    pub held: Vec<HeldChange>,
}

/// Why the ledger refuses a step. Always the fault of the caller's facts, never of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerDeltaError {
    /// A credit takes a balance above 128 bits, which FeeVault's own limit excludes.
    #[error("a credit of {amount} wei takes the balance of {payer} above 128 bits")]
    Overflow {
        /// Whose account would be credited.
        payer: Address,
        /// What would be added, in wei.
        amount: u128,
    },
    /// A debit above the balance.
    #[error("{payer} has less than {amount} wei")]
    Insufficient {
        /// Whose account would be debited.
        payer: Address,
        /// What would be taken, in wei.
        amount: u128,
    },
    /// The delta does not start from what the ledger holds.
    #[error("the delta does not fit the present state of {0}")]
    Account(Address),
    /// The delta does not start from the nonce as it is.
    #[error("the delta does not fit the present state of fee nonce {nonce} of {payer}")]
    Nonce {
        /// Whose nonce it is.
        payer: Address,
        /// The fee nonce that differs.
        nonce: u64,
    },
    /// The delta does not start from what is held.
    #[error("the delta does not fit what is held for batch {0}")]
    Held(u64),
    /// Nothing is held for the batch: released before, or never.
    #[error("nothing is held for batch {0}")]
    NothingHeld(u64),
    /// A malformed item for which nothing is held.
    #[error("nothing is held for item {item} of batch {number}")]
    UnknownItem {
        /// Number of the batch.
        number: u64,
        /// Index of the item in it, from 0.
        item: u32,
    },
}
