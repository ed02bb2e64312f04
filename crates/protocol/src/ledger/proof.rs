//! Proofs that an account stands in the ledger of a header, as `FeeVault` verifies them.
//!
//! A verifier computes key and leaf of the account by itself, hashes upwards with one sibling for each bit of the key
//! that the path has, and compares with `feeLedgerRoot`. It is told neither the depth nor a place. That is enough:
//!
//! **Claim.** If (account, siblings) leads to the root of a ledger's tree, that very account stands in the ledger, unless
//! somebody found a collision of keccak256 or a preimage of zero.
//!
//! *Walk down from the root* along the account's key. While siblings are left, the verifier has the node's hash as
//! `keccak256(0x01 ‖ …)` of 65 bytes. What stands there in the tree has the same hash; it cannot be empty (zero) nor a
//! leaf, whose preimage begins with 0x00. So it is an inner node with the same two children, and the walk goes on in the
//! same child in both. After the last sibling the verifier has `keccak256(0x00 ‖ key ‖ balance ‖ withdrawn)`. By the same
//! argument no inner node stands there (0x01) and no empty subtree; it is a leaf with that preimage, 65 bytes with just
//! this key. Therefore:
//!
//! - *a live nonce is no account*: its leaf has 41 bytes before hashing, and its key 29 where an account's has 21;
//! - *an inner node is no account* and the other way round: their first bytes differ;
//! - *a path that is too short* ends at an inner node, *one too long* goes through a leaf: both excluded above;
//! - *siblings in another order*, or those of another key, would be another preimage of a node on the way;
//! - *another account's leaf* holds another key, and the value is in the leaf whole.

use super::Account;
use super::entry::{LeafValue, account_key};
use super::tree::{KEY_BITS, bit};
use crate::merkle;
use alloy_primitives::{Address, B256};

/// A proof that an account stands in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerProof {
    /// Siblings from the root down to the leaf: the one beside the path's node at depth 1, 2, …; at most 256.
    pub siblings: Vec<B256>,
}

impl LedgerProof {
    /// Whether the account stands in the ledger with this `feeLedgerRoot` (F-6, F-7).
    pub fn verify(&self, fee_ledger_root: &B256, payer: &Address, account: &Account) -> bool {
        self.root_with(payer, account).is_some_and(|root| root == *fee_ledger_root)
    }

    /// The `feeLedgerRoot` that this account leads to; `None` for an account that has no leaf, or a path longer than a
    /// key.
    pub fn root_with(&self, payer: &Address, account: &Account) -> Option<B256> {
        if account.is_empty() {
            return None;
        }
        let key = account_key(payer);
        root_of(&key, &LeafValue::from(*account).leaf(&key), &self.siblings)
    }
}

/// The root that a leaf under `key` leads to; `None` for a path longer than a key.
fn root_of(key: &B256, leaf: &B256, siblings: &[B256]) -> Option<B256> {
    if siblings.len() > KEY_BITS {
        return None;
    }
    Some(siblings.iter().enumerate().rev().fold(*leaf, |node, (depth, sibling)| {
        if bit(key, depth) { merkle::node(sibling, &node) } else { merkle::node(&node, sibling) }
    }))
}
