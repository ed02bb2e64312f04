//! What L1 says to the rules: forced items, and what happened to fee accounts.

use alloy_primitives::{Bytes, keccak256};
use blindfold_protocol::{Address, B256, Deposit};

/// One entry of the forced queue, with its item's bytes as they must stand in the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForcedEntry {
    /// Place in the queue, from 0.
    pub index: u64,
    /// The item's bytes in a batch: an envelope, or a forced transaction.
    pub item: Bytes,
    /// The final L1 block it was enqueued in.
    pub enqueued_at: u64,
}

impl ForcedEntry {
    /// A forced envelope (kind 0): the bytes as they were given.
    pub fn envelope(index: u64, item: impl Into<Bytes>, enqueued_at: u64) -> Self {
        Self { index, item: item.into(), enqueued_at }
    }

    /// A forced transaction (kind 1): the raw transaction and the gas limit that were given.
    pub fn transaction(index: u64, gas_limit: u64, raw: impl Into<Vec<u8>>, enqueued_at: u64) -> Self {
        let item = [&[2], gas_limit.to_be_bytes().as_slice(), &raw.into()].concat();
        Self { index, item: item.into(), enqueued_at }
    }

    /// `itemHash` of the queue: keccak256 of the item's bytes.
    pub fn item_hash(&self) -> B256 {
        keccak256(&self.item)
    }
}

/// One request to withdraw from a fee account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Withdrawal {
    /// Whose account shrinks.
    pub payer: Address,
    /// Wei asked for; what the balance does not cover is not withdrawn.
    pub amount: u128,
    /// The final L1 block of the request.
    pub l1_block: u64,
}

/// A run whose hints became final on L1, or that L1 declared void: what is held for its batches is released.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settled {
    /// First batch of the run.
    pub first: u64,
    /// Last batch of the run.
    pub last: u64,
    /// Items whose ciphertext is malformed by the final hints: (batch number, item index).
    pub malformed: Vec<(u64, u32)>,
    /// The run is void: everything goes back to the payers.
    pub void: bool,
    /// The final L1 block of the event.
    pub l1_block: u64,
}

/// What L1 says to the fee ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LedgerEvent {
    /// `FeeVault`: `Deposited`.
    Deposit(Deposit),
    /// `FeeVault`: `WithdrawalRequested`.
    Withdrawal(Withdrawal),
    /// `HintRegistry`: `HintsFinalized` or `Voided`.
    Settled(Settled),
}
