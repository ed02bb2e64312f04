//! What one step changes, enough to go forth and back, and why the ledger refuses a step.

use super::{Account, Held};
use alloy_primitives::Address;

/// One account before and after; `None` is no leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountChange {
    /// The account.
    pub payer: Address,
    /// As it was.
    pub before: Option<Account>,
    /// As it is.
    pub after: Option<Account>,
}

/// One fee nonce before and after: the expiry until which it is in use; `None` is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonceChange {
    /// Who uses it.
    pub payer: Address,
    /// The fee nonce.
    pub nonce: u64,
    /// As it was.
    pub before: Option<u64>,
    /// As it is.
    pub after: Option<u64>,
}

/// What is held for one batch before and after; empty is nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldChange {
    /// Batch number.
    pub number: u64,
    /// As it was.
    pub before: Vec<Held>,
    /// As it is.
    pub after: Vec<Held>,
}

/// Everything one step changed, enough to go forth and back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerDelta {
    /// Changed accounts, by payer.
    pub accounts: Vec<AccountChange>,
    /// Changed fee nonces, by payer and nonce.
    pub nonces: Vec<NonceChange>,
    /// Changed surcharges, by number.
    pub held: Vec<HeldChange>,
}

/// Why the ledger refuses a step. Always the fault of the caller's facts, never of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerDeltaError {
    /// A credit takes a balance above 128 bits, which FeeVault's own limit excludes.
    #[error("a credit of {amount} wei takes the balance of {payer} above 128 bits")]
    Overflow {
        /// The account credited.
        payer: Address,
        /// Wei.
        amount: u128,
    },
    /// A debit above the balance.
    #[error("{payer} has less than {amount} wei")]
    Insufficient {
        /// The account debited.
        payer: Address,
        /// Wei.
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
        /// The fee nonce.
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
        /// Batch number.
        number: u64,
        /// Item index.
        item: u32,
    },
}
