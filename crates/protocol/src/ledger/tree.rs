//! The fee ledger's compact sparse Merkle tree.
//!
//! The root of a set of (key, leaf) pairs, all of which share their first `depth` bits:
//!
//! - no pair: 32 zero bytes;
//! - one pair: its leaf, at whatever depth;
//! - more: `keccak256(0x01 ‖ left ‖ right)`, left of those whose bit `depth` is 0 (bit 0 is the key's highest).
//!
//! So the root follows from the set alone, not from the order in which it came about. Keys are hashes: among n entries a
//! path has about log2 n nodes. Whoever spends 2^k hashes on the choice of an address or a nonce lengthens a path that
//! he picks to about k nodes, never above 256; that much more a proof of it costs then.
//!
//! Nodes are shared and never change: a new tree makes new nodes on the paths that it changes, and keeps the rest in
//! common with the old one. Cloning a tree copies a pointer.

use super::entry::{LeafValue, account_key};
use super::{Account, LedgerEntry, LedgerProof};
use crate::merkle;
use alloy_primitives::{Address, B256};
use std::sync::Arc;

/// Bits of a key, and so the longest path.
pub(super) const KEY_BITS: usize = 256;

/// A tree over the entries of a fee ledger: enough to prove its accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerTree {
    root: Subtree,
}

/// `None` is empty.
type Subtree = Option<Arc<Node>>;

/// A leaf's key with what it shall be; `None` is no leaf.
type Change = (B256, Option<LeafValue>);

/// The hash of a leaf is not kept: that of an account's neighbour is computed again when its path changes.
#[derive(Debug, PartialEq, Eq)]
enum Node {
    Leaf { key: B256, value: LeafValue },
    Inner { hash: B256, left: Subtree, right: Subtree },
}

impl Node {
    /// Rule F-5.
    fn hash(&self) -> B256 {
        match self {
            Self::Leaf { key, value } => value.leaf(key),
            Self::Inner { hash, .. } => *hash,
        }
    }
}

impl LedgerTree {
    /// The tree's root: the `feeLedgerRoot` of a header.
    pub fn root(&self) -> B256 {
        hash_of(&self.root)
    }

    /// The tree with these entries as they are here. Of one named twice the last counts. Costs a path for each.
    #[must_use]
    pub fn with(&self, entries: impl IntoIterator<Item = LedgerEntry>) -> Self {
        let mut changes: Vec<Change> =
            entries.into_iter().map(|entry| (entry.key(), entry.value())).collect();
        // The sort is stable, so that of equal keys the last one comes first, and stays.
        changes.reverse();
        changes.sort_by_key(|(key, _)| *key);
        changes.dedup_by_key(|(key, _)| *key);
        Self { root: set(&self.root, &changes, 0) }
    }

    /// The tree of these entries, `count` of them, none of which is named twice.
    pub(super) fn of(entries: impl Iterator<Item = LedgerEntry>, count: usize) -> Self {
        let mut leaves = Vec::with_capacity(count);
        leaves.extend(entries.filter_map(|entry| Some((entry.key(), entry.value()?))));
        leaves.sort_unstable_by_key(|(key, _)| *key);
        Self { root: build(&leaves, 0) }
    }

    /// A payer's account, and the proof of it against [`LedgerTree::root`]; `None` where there is no such leaf.
    pub fn prove(&self, payer: &Address) -> Option<(Account, LedgerProof)> {
        let key = account_key(payer);
        let mut siblings = Vec::new();
        let mut node = self.root.as_ref()?;
        loop {
            match &**node {
                Node::Leaf { key: found, value } => {
                    let account = value.account().filter(|_| *found == key)?;
                    return Some((account, LedgerProof { siblings }));
                }
                Node::Inner { left, right, .. } => {
                    let (next, sibling) =
                        if bit(&key, siblings.len()) { (right, left) } else { (left, right) };
                    siblings.push(hash_of(sibling));
                    node = next.as_ref()?;
                }
            }
        }
    }
}

/// Bit of a key by depth, the highest first.
pub(super) fn bit(key: &B256, depth: usize) -> bool {
    key[depth / 8] >> (7 - depth % 8) & 1 == 1
}

fn hash_of(subtree: &Subtree) -> B256 {
    subtree.as_ref().map_or(B256::ZERO, |node| node.hash())
}

/// The subtree at `depth` after the changes, which ascend by key and belong under it.
fn set(subtree: &Subtree, changes: &[Change], depth: usize) -> Subtree {
    if changes.is_empty() {
        return subtree.clone();
    }
    match subtree.as_deref() {
        None => build(&present(changes.iter().copied()), depth),
        Some(Node::Leaf { key, value }) => {
            let at = changes.partition_point(|(other, _)| other < key);
            let kept = changes.get(at).is_none_or(|(other, _)| other != key);
            let stays = kept.then_some((*key, Some(*value)));
            let (before, after) = changes.split_at(at);
            build(&present(before.iter().copied().chain(stays).chain(after.iter().copied())), depth)
        }
        Some(Node::Inner { left, right, .. }) => {
            let (of_left, of_right) = changes.split_at(changes.partition_point(|(key, _)| !bit(key, depth)));
            join(set(left, of_left, depth + 1), set(right, of_right, depth + 1))
        }
    }
}

fn present(changes: impl Iterator<Item = Change>) -> Vec<(B256, LeafValue)> {
    changes.filter_map(|(key, value)| Some((key, value?))).collect()
}

/// A subtree of nothing but these leaves, which ascend by key.
fn build(leaves: &[(B256, LeafValue)], depth: usize) -> Subtree {
    match leaves {
        [] => None,
        [(key, value)] => Some(Arc::new(Node::Leaf { key: *key, value: *value })),
        more => {
            let (left, right) = more.split_at(more.partition_point(|(key, _)| !bit(key, depth)));
            join(build(left, depth + 1), build(right, depth + 1))
        }
    }
}

/// Two subtrees as one. A single leaf rises to the top of whatever is empty beside it.
fn join(left: Subtree, right: Subtree) -> Subtree {
    match (&left, &right) {
        (None, None) => return None,
        (Some(node), None) | (None, Some(node)) if matches!(**node, Node::Leaf { .. }) => {
            return Some(Arc::clone(node));
        }
        _ => {}
    }
    let hash = merkle::node(&hash_of(&left), &hash_of(&right));
    Some(Arc::new(Node::Inner { hash, left, right }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(changes: &[Change]) -> Subtree {
        set(&None, changes, 0)
    }

    /// A key of zeros that ends in `last`.
    fn key(last: u8) -> B256 {
        let mut key = B256::ZERO;
        key[31] = last;
        key
    }

    #[test]
    fn keys_that_differ_in_their_last_bit_part_at_the_last_depth() {
        let far = B256::repeat_byte(0xff);
        let values = [1, 2, 3].map(|expiry| LeafValue::Nonce([expiry; 8]));
        let [a, b, other] = [(key(0), values[0]), (key(1), values[1]), (far, values[2])];
        let [first, second, third] = [a, b, other].map(|(key, value)| (key, Some(value)));
        let [a, b, other] = [a, b, other].map(|(key, value)| value.leaf(&key));
        let two = tree(&[first, second]);
        let mut expected = merkle::node(&a, &b);
        for _ in 1..KEY_BITS {
            expected = merkle::node(&expected, &B256::ZERO);
        }
        assert_eq!(hash_of(&two), expected);
        // One of them alone stands at the top again, and the other way round.
        assert_eq!(hash_of(&set(&two, &[(key(0), None)], 0)), b);
        assert_eq!(set(&tree(&[second]), &[first], 0), two);
        assert_eq!(set(&two, &[(key(0), None), (key(1), None)], 0), None);
        // A third one at the other end of the keys shortens nothing.
        let three = set(&two, &[third], 0);
        let below = (2..KEY_BITS).fold(merkle::node(&a, &b), |node, _| merkle::node(&node, &B256::ZERO));
        assert_eq!(hash_of(&three), merkle::node(&below, &other));
        assert_eq!(set(&three, &[(far, None)], 0), two);
    }

    #[test]
    fn what_does_not_change_is_shared() {
        let leaves: Vec<Change> =
            (0..=255).map(|first| (B256::repeat_byte(first), Some(LeafValue::Nonce([first; 8])))).collect();
        let old = tree(&leaves);
        let new = set(&old, &[(B256::ZERO, Some(LeafValue::Nonce([9; 8])))], 0);
        let (Some(old), Some(new)) = (&old, &new) else { panic!("both have leaves") };
        let (Node::Inner { left, right, .. }, Node::Inner { left: l, right: r, .. }) = (&**old, &**new)
        else {
            panic!("256 leaves")
        };
        assert!(right.as_ref().zip(r.as_ref()).is_some_and(|(old, new)| Arc::ptr_eq(old, new)));
        assert_ne!(left, l);
    }

    #[test]
    fn bits_count_from_the_highest() {
        let mut key = B256::ZERO;
        key[0] = 0b1000_0001;
        key[31] = 1;
        let set: Vec<usize> = (0..KEY_BITS).filter(|depth| bit(&key, *depth)).collect();
        assert_eq!(set, [0, 7, 255]);
    }
}
