//! Nodes in memory.

use std::collections::BTreeMap;
use std::convert::Infallible;

use alloy_primitives::B256;

use super::{Nodes, Place, Written};

/// Nodes in memory: for tests, and as the model of a store's.
#[derive(Debug, Clone, Default)]
pub struct MemoryNodes(BTreeMap<(Place, u64), B256>);

impl MemoryNodes {
    /// Writes what an update made.
    pub fn write(&mut self, written: &[Written]) {
        self.0.extend(written.iter().map(|node| ((node.place, node.version), node.hash)));
    }

    /// Drops what only versions below `version` need.
    pub fn prune(&mut self, version: u64) {
        let mut newer: Option<(Place, u64)> = None;
        let mut hidden = Vec::new();
        for &(place, written) in self.0.keys().rev() {
            if newer.is_some_and(|(other, newer)| other == place && newer <= version) {
                hidden.push((place, written));
            }
            newer = Some((place, written));
        }
        for key in hidden {
            self.0.remove(&key);
        }
    }

    /// How many nodes are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no node is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Nodes for MemoryNodes {
    type Error = Infallible;

    fn node(&self, place: Place, version: u64) -> Result<Option<B256>, Infallible> {
        Ok(self.0.range((place, 0)..=(place, version)).next_back().map(|(_, hash)| *hash))
    }
}
