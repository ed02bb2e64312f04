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
use std::sync::LazyLock;

use alloy_primitives::{B256, Keccak256};

use crate::tags;

pub use memory::MemoryNodes;

/// Levels above the leaves.
pub const DEPTH: u8 = 32;

/// Where a node stands: level 0 is that of the leaves, level 32 has the root alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Levels above the leaves.
    pub level: u8,
    /// From the left.
    pub index: u32,
}

impl Place {
    /// The leaf of an index.
    #[must_use]
    pub const fn leaf(index: u32) -> Self {
        Self { level: 0, index }
    }

    /// The root.
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
    /// Where.
    pub place: Place,
    /// The version it belongs to.
    pub version: u64,
    /// The hash.
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

/// What an update makes.
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
    let mut hash = Keccak256::new();
    hash.update([tags::TREE_NODE]);
    hash.update(left);
    hash.update(right);
    hash.finalize()
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
/// leaf that was not touched before.
///
/// # Errors
/// The store's.
pub fn update<N: Nodes + ?Sized>(
    nodes: &N,
    version: u64,
    count: u32,
    changes: &[Change],
) -> Result<Update, N::Error> {
    let mut current: HashMap<Place, B256> = HashMap::new();
    let mut update = Update::default();
    for change in changes {
        let mut level: Vec<(Place, B256)> =
            change.leaves.iter().map(|(index, hash)| (Place::leaf(*index), *hash)).collect();
        level.sort_unstable_by_key(|(place, _)| *place);
        loop {
            for (place, hash) in &level {
                current.insert(*place, *hash);
                update.written.push(Written { place: *place, version: change.version, hash: *hash });
            }
            if level.first().is_none_or(|(place, _)| place.level == DEPTH) {
                break;
            }
            level = parents(nodes, version, count, &mut current, &level)?;
        }
        let root = match level.first() {
            Some((_, root)) => *root,
            // A change without leaves.
            None => read(nodes, version, count, &mut current, Place::ROOT)?,
        };
        update.roots.push(root);
    }
    Ok(update)
}

/// The nodes above those of one level, in order.
fn parents<N: Nodes + ?Sized>(
    nodes: &N,
    version: u64,
    count: u32,
    current: &mut HashMap<Place, B256>,
    level: &[(Place, B256)],
) -> Result<Vec<(Place, B256)>, N::Error> {
    let mut above: Vec<(Place, B256)> = Vec::with_capacity(level.len());
    for (place, hash) in level {
        let parent = place.parent();
        if above.last().is_some_and(|(last, _)| *last == parent) {
            continue;
        }
        let sibling = read(nodes, version, count, current, place.sibling())?;
        let hash = if place.index & 1 == 0 { node_hash(hash, &sibling) } else { node_hash(&sibling, hash) };
        above.push((parent, hash));
    }
    Ok(above)
}

fn read<N: Nodes + ?Sized>(
    nodes: &N,
    version: u64,
    count: u32,
    current: &mut HashMap<Place, B256>,
    place: Place,
) -> Result<B256, N::Error> {
    if let Some(hash) = current.get(&place) {
        return Ok(*hash);
    }
    let hash = kept(nodes, version, count, place)?;
    current.insert(place, hash);
    Ok(hash)
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
