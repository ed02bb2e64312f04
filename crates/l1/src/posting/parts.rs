//! Looking for the batches of headers in data that is posted in pieces, by anybody.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use alloy_primitives::{Address, keccak256};
use blindfold_protocol::{B256, BatchHeader, SealedBatch};

use crate::posting::{
    opened_data::KeyedBatch,
    place::DataName,
    run_data::{DataPart, Entries, MAX_POSTER_PART_BYTES, MAX_RUN_BATCHES},
};

/// Bytes of unfinished data that are kept of all posters: more than many L1 blocks have room for.
pub(crate) const MAX_PART_BYTES: usize = 256 << 20;
/// Bytes that archives give in one look without anything being found in them, at most (DA-4). What else is named waits for the
/// next look, to which these are known.
const MAX_VAIN_BYTES: usize = MAX_PART_BYTES;
/// What a part counts beside its bytes.
const PART_COST_BYTES: usize = 128;

/// Batches that whoever looks for them has already, by the hashes of their headers: with keys of items whose proof is right
/// and that they open rightly.
pub(crate) type OwnBatches = BTreeMap<B256, Arc<KeyedBatch>>;

/// Headers whose batches are looked for, and parts of data that are not complete yet.
#[derive(Default)]
pub(crate) struct Search {
    wanted: BTreeMap<u64, BatchHeader>,
    parts: Parts,
    /// Whether it is only asked which of them are there: what was compared before counts.
    only_whether: bool,
    own: OwnBatches,
    /// Data of archives and blobs that was looked through for all that is wanted: by the number it is to begin with, and whether
    /// it was read as a part.
    looked: BTreeSet<(u64, bool, DataName)>,
    /// Bytes that archives gave and in which nothing was found.
    vain_bytes: usize,
}

impl Search {
    /// Asks only which of them are there.
    pub fn which_are_there() -> Self {
        Self { only_whether: true, ..Self::default() }
    }

    /// For whoever has these batches, and need not encrypt again what is compared with them.
    pub fn with_own(own: OwnBatches) -> Self {
        Self { own, ..Self::default() }
    }

    pub fn own(&self) -> &OwnBatches {
        &self.own
    }

    pub fn asks_only_whether(&self) -> bool {
        self.only_whether
    }

    pub fn want(&mut self, headers: impl IntoIterator<Item = BatchHeader>) {
        self.wanted.extend(headers.into_iter().map(|header| (header.number, header)));
        self.looked.clear();
    }

    /// Whether this data, from that number on and as a part or not, was looked through for all that is wanted.
    pub fn has_looked_at(&self, from: u64, is_part: bool, named: DataName) -> bool {
        self.looked.contains(&(from, is_part, named))
    }

    pub fn note_look(&mut self, from: u64, is_part: bool, named: DataName) {
        self.looked.insert((from, is_part, named));
    }

    /// Whether an archive is asked for more in this look.
    pub fn may_fetch(&self) -> bool {
        self.vain_bytes < MAX_VAIN_BYTES
    }

    /// An archive gave so much, and nothing was found in it.
    pub fn note_vain(&mut self, bytes: usize) {
        self.vain_bytes = self.vain_bytes.saturating_add(bytes.saturating_add(PART_COST_BYTES));
    }

    /// Whether one of these numbers is looked for.
    pub fn wants(&self, first: u64, last: u64) -> bool {
        self.first_wanted(first, last).is_some()
    }

    /// The first of these numbers that is looked for.
    pub fn first_wanted(&self, first: u64, last: u64) -> Option<u64> {
        if first > last {
            return None;
        }
        self.wanted.range(first..=last).next().map(|(number, _)| *number)
    }

    /// How many are looked for.
    pub fn wanted_count(&self) -> usize {
        self.wanted.len()
    }

    /// Looks for these numbers no more.
    pub fn forget(&mut self, (first, last): (u64, u64)) {
        self.wanted.retain(|number, _| !(first..=last).contains(number));
    }

    /// Whether every header that was wanted has its batch.
    pub fn is_over(&self) -> bool {
        self.wanted.is_empty()
    }

    /// First and last of the consecutive numbers that are still looked for.
    pub fn wanted_spans(&self) -> Vec<(u64, u64)> {
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for number in self.wanted.keys() {
            match spans.last_mut() {
                Some((_, end)) if end.checked_add(1) == Some(*number) => *end = *number,
                _ => spans.push((*number, *number)),
            }
        }
        spans
    }

    /// The headers that are looked for and that a `RunData` for the numbers from `from` on may be about.
    pub fn wanted_from(&self, from: u64) -> Vec<BatchHeader> {
        let last = from.saturating_add(MAX_RUN_BATCHES as u64 - 1);
        self.wanted.range(from..=last).map(|(_, header)| *header).collect()
    }

    /// The first and the last of their numbers, and how many there are.
    pub fn wanted_of(&self, from: u64) -> Option<(u64, u64, usize)> {
        let last = from.saturating_add(MAX_RUN_BATCHES as u64 - 1);
        let wanted = self.wanted.range(from..=last);
        let count = wanted.clone().count();
        let (first, last) = wanted.clone().next().zip(wanted.clone().next_back())?;
        Some((*first.0, *last.0, count))
    }

    /// The batches that these entries are of those that are looked for: they are found.
    pub fn take(&mut self, entries: Entries, signed: impl Fn(&SealedBatch) -> bool) -> Vec<SealedBatch> {
        let mut found = Vec::new();
        for (number, batch) in entries {
            let is_wanted = self.wanted.get(&number) == Some(&batch.header);
            if is_wanted && signed(&batch) {
                self.wanted.remove(&number);
                found.push(batch);
            }
        }
        found
    }

    /// The data that this part completes, if it is about what is looked for (PD-4).
    pub fn complete(&mut self, poster: Address, part: DataPart) -> Option<Vec<u8>> {
        if !self.wants(part.first, part.last) {
            return None;
        }
        self.parts.complete(poster, part)
    }
}

/// What one poster says is one: so nobody's garbage spoils another's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    poster: Address,
    first: u64,
    whole: B256,
    parts: u16,
}

#[derive(Default)]
struct Pieces {
    /// When the first of them came.
    since: u64,
    bytes: usize,
    pieces: BTreeMap<u16, Vec<u8>>,
}

/// Unfinished data, of bounded size: the oldest goes first.
#[derive(Default)]
pub(crate) struct Parts {
    kept: BTreeMap<Key, Pieces>,
    arrivals: u64,
}

impl Parts {
    /// The whole data, if this part was the last one missing.
    pub fn complete(&mut self, poster: Address, part: DataPart) -> Option<Vec<u8>> {
        let key = Key { poster, first: part.first, whole: part.whole, parts: part.parts };
        self.arrivals += 1;
        let fresh = Pieces { since: self.arrivals, ..Pieces::default() };
        let entry = self.kept.entry(key).or_insert(fresh);
        if !entry.pieces.contains_key(&part.part) {
            entry.bytes = entry.bytes.saturating_add(part.bytes.len().saturating_add(PART_COST_BYTES));
            entry.pieces.insert(part.part, part.bytes);
        }
        if entry.pieces.len() == usize::from(key.parts) {
            // Data that is not what it claims to be is forgotten, so that its poster can begin again.
            let data = self.kept.remove(&key)?.pieces.into_values().flatten().collect::<Vec<u8>>();
            return (keccak256(&data) == key.whole).then_some(data);
        }
        self.shrink(|other| other.poster == poster, MAX_POSTER_PART_BYTES);
        self.shrink(|_| true, MAX_PART_BYTES);
        None
    }

    /// Forgets the oldest of these until they are within the limit.
    fn shrink(&mut self, among: impl Fn(&Key) -> bool, limit_bytes: usize) {
        loop {
            let held = || self.kept.iter().filter(|(key, _)| among(key));
            if held().map(|(_, entry)| entry.bytes).sum::<usize>() <= limit_bytes {
                return;
            }
            let Some(oldest) = held().min_by_key(|(_, entry)| entry.since).map(|(key, _)| *key) else {
                return;
            };
            self.kept.remove(&oldest);
        }
    }
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
