//! Merkle trees over keccak256, tagged so that a leaf can never be read as a node (HS-4).
//!
//! Leaf `keccak256(0x00 ‖ data)`, node `keccak256(0x01 ‖ left ‖ right)`. Missing leaves are 32 zero bytes up to the
//! next power of two; the empty tree's root is 32 zero bytes. A tree of one leaf has that leaf as its root. Because of
//! the padding a root binds its leaves only together with their count, which every user of a root must check.

use crate::tags;
use alloy_primitives::{B256, Keccak256};

/// Hash of one leaf's data.
pub fn leaf(data: &[u8]) -> B256 {
    let mut hasher = Keccak256::new();
    hasher.update([tags::MERKLE_LEAF]);
    hasher.update(data);
    hasher.finalize()
}

/// Hash of an inner node.
pub fn node(left: &B256, right: &B256) -> B256 {
    let mut hasher = Keccak256::new();
    hasher.update([tags::MERKLE_NODE]);
    hasher.update(left);
    hasher.update(right);
    hasher.finalize()
}

/// Root over leaf hashes. Costs one hash per leaf, plus one per level for the padding.
pub fn root(leaves: &[B256]) -> B256 {
    let mut level = leaves.to_vec();
    let mut padding = B256::ZERO;
    while level.len() > 1 {
        level = fold(&level, &padding);
        padding = node(&padding, &padding);
    }
    level.first().copied().unwrap_or(B256::ZERO)
}

/// Siblings from leaf `index` up to the root, or `None` when there is no such leaf.
pub fn proof(leaves: &[B256], index: usize) -> Option<Vec<B256>> {
    if index >= leaves.len() {
        return None;
    }
    let (mut level, mut padding, mut at) = (leaves.to_vec(), B256::ZERO, index);
    let mut siblings = Vec::new();
    while level.len() > 1 {
        siblings.push(level.get(at ^ 1).copied().unwrap_or(padding));
        level = fold(&level, &padding);
        padding = node(&padding, &padding);
        at /= 2;
    }
    Some(siblings)
}

/// Whether `leaf` stands at `index` of the tree of `count` leaves with this root.
pub fn verify(root: &B256, count: u64, index: u64, leaf: &B256, siblings: &[B256]) -> bool {
    if index >= count || siblings.len() != depth(count) {
        return false;
    }
    let (mut hash, mut at) = (*leaf, index);
    for sibling in siblings {
        hash = if at & 1 == 0 { node(&hash, sibling) } else { node(sibling, &hash) };
        at >>= 1;
    }
    hash == *root
}

/// Levels above the leaves of a tree with `count` leaves.
pub fn depth(count: u64) -> usize {
    match count {
        0 | 1 => 0,
        more => (u64::BITS - (more - 1).leading_zeros()) as usize,
    }
}

/// The level above `level`; an odd last node pairs with the padding of its level.
fn fold(level: &[B256], padding: &B256) -> Vec<B256> {
    level
        .chunks(2)
        .map(|pair| match pair {
            [left, right] => node(left, right),
            [left] => node(left, padding),
            // `chunks(2)` yields one or two entries.
            _ => B256::ZERO,
        })
        .collect()
}
