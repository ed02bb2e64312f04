//! What the hint publisher says of itself.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

/// Where the hint publisher stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HintPublisherStatus {
    /// Numbers of the batches that are worked on.
    pub in_work: BTreeSet<u64>,
    /// Certified numbers without hints that wait to be worked on.
    pub backlog: BTreeSet<u64>,
    /// The newest number whose hints were published by this process.
    pub last_published: Option<u64>,
    /// How many batches this process published.
    pub published: u64,
    /// Members that gave wrong shares: for how many batches since the start.
    pub faulty_members: BTreeMap<u16, u64>,
    /// The last fault of a batch that is being tried again, by number.
    pub failing: BTreeMap<u64, String>,
}

/// The status, shared between the tasks.
#[derive(Default)]
pub(crate) struct SharedStatus(Mutex<HintPublisherStatus>);

impl SharedStatus {
    pub(crate) fn get(&self) -> HintPublisherStatus {
        self.0.lock().clone()
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut HintPublisherStatus)) {
        change(&mut self.0.lock());
    }
}
