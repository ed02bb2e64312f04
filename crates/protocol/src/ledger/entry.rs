//! What stands in the ledger's tree, and where.
//!
//! | entry | key | value |
//! |---|---|---|
//! | account of a payer | `keccak256(0x00 ‖ payer 20)` | `balance u128 ‖ withdrawn u128` |
//! | live fee nonce | `keccak256(0x01 ‖ payer 20 ‖ feeNonce u64)` | `expiry u64` |
//!
//! Leaf: `keccak256(0x00 ‖ key 32 ‖ value)`.

use super::Account;
use crate::{merkle, tags};
use alloy_primitives::{Address, B256, keccak256};

/// One entry of the ledger as its tree sees it; `None` is no leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LedgerEntry {
    /// The account of a payer. Without balance and withdrawn it has no leaf.
    Account {
        /// Whose account it is.
        payer: Address,
        /// Its balance and what was withdrawn from it.
        account: Option<Account>,
    },
    /// A fee nonce and the expiry until which it is in use.
    Nonce {
        /// The payer whose nonce it is.
        payer: Address,
        /// The fee nonce itself.
        nonce: u64,
        /// Expiry of the envelope that used it.
        expiry: Option<u64>,
    },
}

impl LedgerEntry {
    /// Where it stands in the tree.
    pub fn key(&self) -> B256 {
        match self {
            Self::Account { payer, .. } => account_key(payer),
            Self::Nonce { payer, nonce, .. } => nonce_key(payer, *nonce),
        }
    }

    /// What its leaf has behind [`LedgerEntry::key`].
    pub(super) fn value(&self) -> Option<LeafValue> {
        match self {
            Self::Account { account, .. } => {
                account.filter(|account| !account.is_empty()).map(LeafValue::from)
            }
            Self::Nonce { expiry, .. } => expiry.map(|expiry| LeafValue::Nonce(expiry.to_be_bytes())),
        }
    }
}

/// Where the account of a payer stands.
pub(super) fn account_key(payer: &Address) -> B256 {
    let mut data = [tags::LEDGER_ACCOUNT; 21];
    data[1..].copy_from_slice(payer.as_slice());
    keccak256(data)
}

fn nonce_key(payer: &Address, nonce: u64) -> B256 {
    let mut data = [tags::LEDGER_NONCE; 29];
    data[1..21].copy_from_slice(payer.as_slice());
    data[21..].copy_from_slice(&nonce.to_be_bytes());
    keccak256(data)
}

/// What a leaf has behind its key, as it is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeafValue {
    Account([u8; 32]),
    Nonce([u8; 8]),
}

impl From<Account> for LeafValue {
    fn from(account: Account) -> Self {
        let mut value = [0u8; 32];
        value[..16].copy_from_slice(&account.balance.to_be_bytes());
        value[16..].copy_from_slice(&account.withdrawn.to_be_bytes());
        Self::Account(value)
    }
}

impl LeafValue {
    /// The leaf under a key.
    pub(super) fn leaf(&self, key: &B256) -> B256 {
        let value = match self {
            Self::Account(value) => value.as_slice(),
            Self::Nonce(value) => value,
        };
        let mut data = [0u8; 64];
        data[..32].copy_from_slice(key.as_slice());
        data[32..32 + value.len()].copy_from_slice(value);
        merkle::leaf(&data[..32 + value.len()])
    }

    /// The account that this is, if it is one.
    pub(super) fn account(&self) -> Option<Account> {
        let Self::Account(value) = self else { return None };
        let (balance, withdrawn) = value.split_at(16);
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte));
        Some(Account { balance: number(balance), withdrawn: number(withdrawn) })
    }
}
