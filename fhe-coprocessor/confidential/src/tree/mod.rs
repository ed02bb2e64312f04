//! The versioned Merkle tree: depth 32 over an index, keccak256.
//!
//! Node keccak256(0x01 ‖ left ‖ right); a leaf that was never set is 32 zero bytes. A version is a number that grows by 1
//! with every applied transaction, and each has its root. Nodes are kept by place and version: the node of a place in
//! version v is the newest one not above v, so versions share what they have in common, an old version is read like the
//! newest, and pruning is the removal of nodes that a newer one hides.
//!
//! Nothing is kept here: [`update`] reads nodes through [`Nodes`] and says which ones to write.

mod memory;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::LazyLock;

use alloy_primitives::{B256, keccak256};

use crate::keccak::keccak256_on_all_threads;
use crate::tags;

pub use memory::MemoryNodes;

/// Levels above the leaves, which are at 0.
pub const DEPTH: u8 = 32;

/// A tag and two hashes.
const NODE_BYTES: usize = 65;

/// Where a node stands: level 0 is that of the leaves, level 32 has the root alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Levels above the leaves, which are at 0.
    pub level: u8,
    /// Place in its level, from the left, from 0.
    pub index: u32,
}

impl Place {
    /// The leaf of an index.
    #[must_use]
    pub const fn leaf(index: u32) -> Self {
        Self { level: 0, index }
    }

    /// The place of the root.
    pub const ROOT: Self = Self { level: DEPTH, index: 0 };

    const fn sibling(self) -> Self {
        Self { level: self.level, index: self.index ^ 1 }
    }

    const fn parent(self) -> Self {
        Self { level: self.level + 1, index: self.index >> 1 }
    }
}

/// Where the nodes of a tree are kept.
pub trait Nodes {
    /// Why nothing could be read.
    type Error;

    /// The node of `place` in `version`: of those written there, the newest not above `version`. `None` if there is none.
    ///
    /// # Errors
    /// The store's.
    fn node(&self, place: Place, version: u64) -> Result<Option<B256>, Self::Error>;
}

/// A node to write. Nodes are never changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The place of the node.
    pub place: Place,
    /// The version it belongs to.
    pub version: u64,
    /// Hash of the node.
    pub hash: B256,
}

/// The leaves of one version that differ from the version before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The version; versions of one update ascend.
    pub version: u64,
    /// Index and hash, each index once.
    pub leaves: Vec<(u32, B256)>,
}

/// The roots and nodes that an update makes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Update {
    /// The root after each change.
    pub roots: Vec<B256>,
    /// What to write, all of it together with whatever else the versions change.
    pub written: Vec<Written>,
}

/// keccak256(0x01 ‖ left ‖ right).
#[must_use]
pub fn node_hash(left: &B256, right: &B256) -> B256 {
    keccak256(node_bytes(left, right))
}

fn node_bytes(left: &B256, right: &B256) -> [u8; NODE_BYTES] {
    let mut bytes = [tags::TREE_NODE; NODE_BYTES];
    bytes[1..33].copy_from_slice(&left.0);
    bytes[33..].copy_from_slice(&right.0);
    bytes
}

/// The node of a level with no leaf set under it.
#[must_use]
pub fn empty(level: u8) -> B256 {
    static EMPTY: LazyLock<[B256; DEPTH as usize + 1]> = LazyLock::new(|| {
        let mut nodes = [B256::ZERO; DEPTH as usize + 1];
        for level in 1..nodes.len() {
            nodes[level] = node_hash(&nodes[level - 1], &nodes[level - 1]);
        }
        nodes
    });
    EMPTY.get(usize::from(level)).copied().unwrap_or_default()
}

/// The tree of `version` with `count` leaves, which stand at the indices below `count`; changed version by version.
///
/// Costs for each change 32 hashes for a leaf, less what its leaves' paths share, and reads log₂(`count`) nodes for each
/// leaf that was not touched before. All versions go up level by level: what they have on one level depends on the level
/// below alone, so it is hashed together, on all threads.
///
/// # Errors
/// The store's.
pub fn update<N: Nodes + ?Sized>(
    nodes: &N,
    version: u64,
    count: u32,
    changes: &[Change],
) -> Result<Update, N::Error> {
    let mut level: Vec<Vec<(u32, B256)>> = changes.iter().map(|change| change.leaves.clone()).collect();
    level.iter_mut().for_each(|leaves| leaves.sort_unstable_by_key(|(index, _)| *index));
    let mut written: Vec<Vec<Written>> = vec![Vec::new(); changes.len()];
    for height in 0..=DEPTH {
        for ((written, nodes), change) in written.iter_mut().zip(&level).zip(changes) {
            written.extend(nodes.iter().map(|&(index, hash)| Written {
                place: Place { level: height, index },
                version: change.version,
                hash,
            }));
        }
        if height < DEPTH {
            level = parents(nodes, version, count, height, &level)?;
        }
    }
    // A change without leaves has the root before it.
    let mut root = match level.first() {
        Some(first) if first.is_empty() => kept(nodes, version, count, Place::ROOT)?,
        _ => B256::ZERO,
    };
    let roots = level.iter().map(|nodes| {
        root = nodes.first().map_or(root, |(_, hash)| *hash);
        root
    });
    Ok(Update { roots: roots.collect(), written: written.into_iter().flatten().collect() })
}

/// For each version the nodes above those that it sets on one level, in order.
fn parents<N: Nodes + ?Sized>(
    nodes: &N,
    version: u64,
    count: u32,
    height: u8,
    level: &[Vec<(u32, B256)>],
) -> Result<Vec<Vec<(u32, B256)>>, N::Error> {
    // The level as it is in the version that is looked at, as far as it was looked at.
    let mut current: HashMap<u32, B256> = HashMap::new();
    let (mut above, mut children) = (Vec::with_capacity(level.len()), Vec::new());
    for set in level {
        current.extend(set.iter().copied());
        let mut indices: Vec<u32> = set.iter().map(|(index, _)| index >> 1).collect();
        indices.dedup();
        for parent in &indices {
            let mut child = |side: u32| -> Result<B256, N::Error> {
                let index = parent << 1 | side;
                Ok(match current.entry(index) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(unknown) => {
                        *unknown.insert(kept(nodes, version, count, Place { level: height, index })?)
                    }
                })
            };
            children.push(node_bytes(&child(0)?, &child(1)?));
        }
        above.push(indices);
    }
    let mut hashes = keccak256_on_all_threads(&children).into_iter();
    Ok(above.into_iter().map(|indices| indices.into_iter().zip(hashes.by_ref()).collect()).collect())
}

/// The node of a version that is kept; places right of the last leaf are not looked for.
fn kept<N: Nodes + ?Sized>(nodes: &N, version: u64, count: u32, place: Place) -> Result<B256, N::Error> {
    if u64::from(place.index) << place.level >= u64::from(count) {
        return Ok(empty(place.level));
    }
    Ok(nodes.node(place, version)?.unwrap_or_else(|| empty(place.level)))
}

/// The siblings of a leaf, from its level up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof(pub [B256; DEPTH as usize]);

/// The proof of the leaf `index` in `version`, whose tree has `count` leaves. Reads log₂(`count`) nodes.
///
/// # Errors
/// The store's.
pub fn prove<N: Nodes + ?Sized>(nodes: &N, version: u64, count: u32, index: u32) -> Result<Proof, N::Error> {
    let mut siblings = [B256::ZERO; DEPTH as usize];
    let mut place = Place::leaf(index);
    for sibling in &mut siblings {
        *sibling = kept(nodes, version, count, place.sibling())?;
        place = place.parent();
    }
    Ok(Proof(siblings))
}

impl Proof {
    /// The root that this proof makes of a leaf: 32 hashes.
    #[must_use]
    pub fn root(&self, index: u32, leaf: &B256) -> B256 {
        let (mut hash, mut index) = (*leaf, index);
        for sibling in &self.0 {
            hash = if index & 1 == 0 { node_hash(&hash, sibling) } else { node_hash(sibling, &hash) };
            index >>= 1;
        }
        hash
    }
}
