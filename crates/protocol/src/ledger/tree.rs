//! The fee ledger's Merkle tree with every level cached.
//!
//! Changing the value of a leaf costs one path; inserting or removing leaves recomputes what stands right of the
//! first of them.

use crate::merkle;
use alloy_primitives::{Address, B256};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LedgerTree {
    /// Payers in order; their leaves stand at the same indices.
    payers: Vec<Address>,
    /// `levels[0]` holds the leaves, the last level the root alone. An empty tree has one empty level.
    levels: Vec<Vec<B256>>,
}

impl Default for LedgerTree {
    fn default() -> Self {
        Self { payers: Vec::new(), levels: vec![Vec::new()] }
    }
}

impl LedgerTree {
    pub(crate) fn len(&self) -> usize {
        self.payers.len()
    }

    /// Merkle root, without the count.
    pub(crate) fn root(&self) -> B256 {
        self.levels.last().and_then(|level| level.first()).copied().unwrap_or(B256::ZERO)
    }

    /// Index of the payer's leaf and the siblings from it up to the root.
    pub(crate) fn prove(&self, payer: &Address) -> Option<(usize, Vec<B256>)> {
        let index = self.payers.binary_search(payer).ok()?;
        let (mut at, mut padding) = (index, B256::ZERO);
        let mut siblings = Vec::new();
        let below_root = self.levels.len().saturating_sub(1);
        for level in self.levels.iter().take(below_root) {
            siblings.push(level.get(at ^ 1).copied().unwrap_or(padding));
            padding = merkle::node(&padding, &padding);
            at /= 2;
        }
        Some((index, siblings))
    }

    /// Sets the leaves of the given payers, or removes them.
    pub(crate) fn update(&mut self, changes: &BTreeMap<Address, Option<B256>>) {
        let mut dirty = BTreeSet::new();
        let mut first_moved = None;
        for (payer, leaf) in changes {
            match (self.payers.binary_search(payer), leaf) {
                (Ok(index), Some(leaf)) if first_moved.is_none() => {
                    self.levels[0][index] = *leaf;
                    dirty.insert(index);
                }
                (Ok(index), None) | (Err(index), Some(_)) if first_moved.is_none() => {
                    first_moved = Some((index, *payer));
                }
                // Right of the first insertion or removal everything is merged anew; removing nothing is nothing.
                _ => {}
            }
        }
        if let Some((index, payer)) = first_moved {
            self.merge_from(index, changes.range(payer..));
        }
        let moved_from = first_moved.map_or(self.payers.len(), |(index, _)| index);
        self.refresh(dirty, moved_from);
    }

    /// Rebuilds payers and leaves from `index` on, out of what stood there and the changes.
    fn merge_from<'a>(
        &mut self,
        index: usize,
        changes: impl Iterator<Item = (&'a Address, &'a Option<B256>)>,
    ) {
        let payers = self.payers.split_off(index);
        let leaves = self.levels[0].split_off(index);
        let mut old = payers.into_iter().zip(leaves).peekable();
        for (payer, change) in changes {
            while let Some((other, leaf)) = old.next_if(|(other, _)| other < payer) {
                self.payers.push(other);
                self.levels[0].push(leaf);
            }
            old.next_if(|(other, _)| other == payer);
            if let Some(leaf) = change {
                self.payers.push(*payer);
                self.levels[0].push(*leaf);
            }
        }
        for (payer, leaf) in old {
            self.payers.push(payer);
            self.levels[0].push(leaf);
        }
    }

    /// Recomputes the parents of the dirty leaves and of all leaves from `moved_from` on, level by level.
    fn refresh(&mut self, mut dirty: BTreeSet<usize>, mut moved_from: usize) {
        let mut padding = B256::ZERO;
        let mut depth = 0;
        while self.levels[depth].len() > 1 {
            if self.levels.len() == depth + 1 {
                self.levels.push(Vec::new());
            }
            let (below, above) = self.levels.split_at_mut(depth + 1);
            let (children, parents) = (&below[depth], &mut above[0]);
            let parent = |at: usize| {
                let right = children.get(2 * at + 1).unwrap_or(&padding);
                merkle::node(&children[2 * at], right)
            };
            // A level that is new has nothing to keep.
            moved_from = (moved_from / 2).min(parents.len());
            dirty = dirty.into_iter().map(|at| at / 2).filter(|at| *at < moved_from).collect();
            for at in &dirty {
                parents[*at] = parent(*at);
            }
            parents.truncate(moved_from);
            parents.extend((moved_from..children.len().div_ceil(2)).map(parent));
            padding = merkle::node(&padding, &padding);
            depth += 1;
        }
        self.levels.truncate(depth + 1);
    }
}
