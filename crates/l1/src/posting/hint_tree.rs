//! The commitment to posted hints: a Merkle tree over chunks of 128 entries, as `HintRegistry` computes it (L-11).

use alloy_primitives::keccak256;
use blindfold_protocol::{B256, merkle};

use crate::posting::hint_posting::{ENTRY_BYTES, HintPosting, PostedBatch, PostedEntry};

/// Entries, or singleton releases, of a full chunk.
pub(crate) const CHUNK_ENTRIES: usize = 128;

/// One chunk with its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Up to 128 entries of 17 bytes, as they were posted.
    pub bytes: Vec<u8>,
    /// Entries that the posting gives the batch.
    pub count: u32,
    /// Place of the chunk in its batch.
    pub chunk_index: u32,
    /// Place of the chunk in the posting.
    pub leaf_index: u32,
    /// How many chunks the posting has.
    pub leaf_count: u32,
    /// Siblings up to the root.
    pub proof: Vec<B256>,
    /// Commitment to the batch's singleton releases.
    pub releases: B256,
}

/// The tree of one posting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintTree<'a> {
    posting: &'a HintPosting,
    first: u64,
    leaves: Vec<B256>,
}

impl<'a> HintTree<'a> {
    /// The tree of the hints of a run that begins with `first`. Two hashes for each chunk, of which every batch has at
    /// least one, and one for each batch.
    pub fn new(posting: &'a HintPosting, first: u64) -> Self {
        let mut leaves = Vec::new();
        for (number, batch) in (first..).zip(&posting.batches) {
            let releases = releases_of(batch);
            for (chunk_index, bytes) in (0u32..).zip(chunks(batch)) {
                leaves.push(leaf(number, batch.entries.len(), chunk_index, &bytes, releases));
            }
        }
        Self { posting, first, leaves }
    }

    /// What the contract stores: keccak256(abi.encode(chunks, Merkle root)).
    pub fn root(&self) -> B256 {
        let mut encoded = [0; 64];
        encoded[24..32].copy_from_slice(&(self.leaves.len() as u64).to_be_bytes());
        encoded[32..].copy_from_slice(merkle::root(&self.leaves).as_slice());
        keccak256(encoded)
    }

    /// The chunk that holds entry `index` of batch `number`; the batch's last one for an index that is beyond its
    /// entries. `None` for a batch that is not in the posting.
    pub fn chunk(&self, number: u64, index: u32) -> Option<Chunk> {
        let batch = self.posting.batch(self.first, number)?;
        let earlier = self.posting.batches.iter().zip(self.first..).take_while(|(_, other)| *other < number);
        let before: usize = earlier.map(|(batch, _)| chunk_count(batch)).sum();
        let chunk_index = (index as usize / CHUNK_ENTRIES).min(chunk_count(batch) - 1);
        let leaf_index = before + chunk_index;
        let chunk_number = u32::try_from(chunk_index).ok()?;
        Some(Chunk {
            bytes: chunks(batch).nth(chunk_index)?,
            count: u32::try_from(batch.entries.len()).ok()?,
            chunk_index: chunk_number,
            leaf_index: u32::try_from(leaf_index).ok()?,
            leaf_count: u32::try_from(self.leaves.len()).ok()?,
            proof: merkle::proof(&self.leaves, leaf_index)?,
            releases: releases_of(batch),
        })
    }
}

/// At least one: an empty batch has one empty chunk.
fn chunk_count(batch: &PostedBatch) -> usize {
    batch.entries.len().div_ceil(CHUNK_ENTRIES).max(1)
}

fn chunks(batch: &PostedBatch) -> impl Iterator<Item = Vec<u8>> + '_ {
    (0..chunk_count(batch)).map(|chunk| {
        let start = chunk * CHUNK_ENTRIES;
        let end = batch.entries.len().min(start + CHUNK_ENTRIES);
        let mut bytes = Vec::with_capacity((end - start) * ENTRY_BYTES);
        batch.entries[start..end].iter().for_each(|entry| bytes.extend_from_slice(&entry.to_bytes()));
        bytes
    })
}

/// What the leaf of every chunk says of its batch's singleton releases, one of which an entry of the chunk may name:
/// keccak256 of the hashes of the list's own chunks.
fn releases_of(batch: &PostedBatch) -> B256 {
    keccak256(release_hashes(batch).concat())
}

/// The hashes of the chunks of a batch's singleton releases; none for an empty list.
pub(crate) fn release_hashes(batch: &PostedBatch) -> Vec<B256> {
    batch.singletons.chunks(CHUNK_ENTRIES).map(|chunk| keccak256(chunk.as_flattened())).collect()
}

/// The chunk of a batch's singleton releases that holds the place that a malformed entry names; empty when none does.
pub(crate) fn release_chunk<'a>(batch: &'a PostedBatch, entry: &PostedEntry) -> &'a [u8] {
    let chunk = entry.release_place().map(|place| place / CHUNK_ENTRIES);
    chunk.and_then(|chunk| batch.singletons.chunks(CHUNK_ENTRIES).nth(chunk)).map_or(&[], <[_]>::as_flattened)
}

/// The leaf's data are number u64 ‖ count u32 ‖ chunk index u32 ‖ keccak256(chunk) ‖ releases.
fn leaf(number: u64, count: usize, chunk_index: u32, bytes: &[u8], releases: B256) -> B256 {
    let mut data = [0; 80];
    data[..8].copy_from_slice(&number.to_be_bytes());
    // A transaction holds far fewer entries than 2^32.
    data[8..12].copy_from_slice(&(count as u32).to_be_bytes());
    data[12..16].copy_from_slice(&chunk_index.to_be_bytes());
    data[16..48].copy_from_slice(keccak256(bytes).as_slice());
    data[48..].copy_from_slice(releases.as_slice());
    merkle::leaf(&data)
}

#[cfg(test)]
#[path = "hint_tree_tests.rs"]
mod tests;
