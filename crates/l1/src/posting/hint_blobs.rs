//! Hints whose data are in blobs: an index in the transaction's input, and in the blobs what it says
//! (`HintRegistry.postHintsInBlobs`, docs/protocol.md).

use alloy_primitives::{Bytes, FixedBytes, U256, keccak256};
use alloy_sol_types::SolValue;
use blindfold_protocol::{B256, DecodeError, limits::MAX_BATCH_ITEMS, release::KEY_BYTES, tags};

use crate::{
    contracts::HintBlobs as contract,
    posting::{
        blobs::{BlobContent, BlobError, OpenedElement, encode_blobs, open_element, versioned_hash},
        hint_posting::{ENTRY_BYTES, HintPosting, MALFORMED, PostedBatch, PostedEntry, SINGLETON_BYTES},
        run::RunReference,
    },
};

/// The longest index that `HintRegistry` takes, in bytes.
const MAX_INDEX_BYTES: usize = 32_768;
/// Kind of an entry that cannot be read, or that the index contradicts: L1 slashes its posting whatever the item is.
const NO_ENTRY: PostedEntry = PostedEntry { kind: 0xff, key: [0; KEY_BYTES] };
/// A malformed entry as it stands in blobs.
const UNNAMED: PostedEntry = PostedEntry { kind: MALFORMED, key: [0; KEY_BYTES] };
/// Bytes of an index that a batch takes beside the places of its malformed items.
const BATCH_BYTES: usize = 8;

/// Where the hints of a run stand in blobs: for each batch how many entries it has, and which are malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintIndex {
    batches: Vec<IndexedBatch>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct IndexedBatch {
    count: u32,
    /// Places of the malformed items, ascending and below the count.
    malformed: Vec<u32>,
}

/// Hints in blobs as L1 and a beacon node show them. What they say may be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintBlobs {
    pub(crate) index: HintIndex,
    pub(crate) hashes: Vec<B256>,
    /// The blobs, 131,072 bytes each.
    pub(crate) blobs: Vec<Bytes>,
}

/// What L1 holds of a posting, with its hints where they could be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintData {
    /// The run whose hints they are.
    pub run: RunReference,
    /// The hints as they were posted.
    pub hints: HintPosting,
    /// The blobs they are in, for a challenge; `None` for hints in calldata.
    pub blobs: Option<HintBlobs>,
}

impl HintIndex {
    /// The index of these hints.
    pub fn of(hints: &HintPosting) -> Self {
        let batch = |batch: &PostedBatch| IndexedBatch {
            // A posting holds far fewer entries than 2^32.
            count: batch.entries.len() as u32,
            malformed: (0u32..)
                .zip(&batch.entries)
                .filter(|(_, entry)| entry.kind == MALFORMED)
                .map(|(place, _)| place)
                .collect(),
        };
        Self { batches: hints.batches.iter().map(batch).collect() }
    }

    /// As it stands in the transaction's input.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for IndexedBatch { count, malformed } in &self.batches {
            out.extend_from_slice(&count.to_be_bytes());
            out.extend_from_slice(&(malformed.len() as u32).to_be_bytes());
            malformed.iter().for_each(|place| out.extend_from_slice(&place.to_be_bytes()));
        }
        out
    }

    /// Reads what the contract takes for so many batches.
    ///
    /// # Errors
    /// [`DecodeError`] for anything else.
    pub fn decode(bytes: &[u8], batches: u64) -> Result<Self, DecodeError> {
        let (field, limit) = ("index", MAX_INDEX_BYTES as u64);
        if bytes.len() > MAX_INDEX_BYTES {
            return Err(DecodeError::TooLarge { field, got: bytes.len() as u64, limit });
        }
        let (words, left) = bytes.as_chunks::<4>();
        if !left.is_empty() {
            return Err(DecodeError::Trailing(left.len()));
        }
        let mut words = words.iter().map(|word| u32::from_be_bytes(*word));
        let short = DecodeError::Short { field, needed: BATCH_BYTES, left: 0 };
        let mut found = Vec::new();
        for _ in 0..batches {
            let (Some(count), Some(malformed)) = (words.next(), words.next()) else { return Err(short) };
            let length = malformed as usize;
            let malformed: Vec<u32> = words.by_ref().take(length).collect();
            if malformed.len() < length {
                return Err(short);
            }
            let ascending = malformed.is_sorted_by(|a, b| a < b);
            if let Some(last) = malformed.last().filter(|last| !ascending || **last >= count) {
                return Err(DecodeError::TooLarge { field, got: u64::from(*last), limit: u64::from(count) });
            }
            found.push(IndexedBatch { count, malformed });
        }
        match words.count() {
            0 => Ok(Self { batches: found }),
            words => Err(DecodeError::Trailing(4 * words)),
        }
    }

    /// The items that the index calls malformed, as (batch number, item index), of a run that begins with `first`.
    pub fn malformed(&self, first: u64) -> Vec<(u64, u32)> {
        let batches = (first..).zip(&self.batches);
        batches
            .flat_map(|(number, batch)| batch.malformed.iter().map(move |place| (number, *place)))
            .collect()
    }

    /// What `HintRegistry` stores for this index with blobs of these versioned hashes (L-12).
    pub fn root(&self, first: u64, hashes: &[B256]) -> B256 {
        let index = keccak256(self.encode());
        let hashes = keccak256(hashes.concat());
        keccak256((keccak256(tags::HINTS_IN_BLOBS), U256::from(first), index, hashes).abi_encode())
    }

    /// How many entries stand before those of batch `place`, from 0; of all batches for a place behind the last.
    fn before(&self, place: usize) -> u64 {
        self.batches.iter().take(place).map(|batch| u64::from(batch.count)).sum()
    }

    /// The byte at which the singleton release of an item begins that the index calls malformed; `None` for others.
    fn release_at(&self, place: usize, item: u32) -> Option<u64> {
        let here = self.batches.get(place)?.malformed.binary_search(&item).ok()?;
        let earlier: usize = self.batches.iter().take(place).map(|batch| batch.malformed.len()).sum();
        let entries = self.before(usize::MAX).saturating_mul(ENTRY_BYTES as u64);
        Some(entries + ((earlier + here) * SINGLETON_BYTES) as u64)
    }
}

/// What the blobs of these hints hold: all entries, then all singleton releases. The place of a release follows from the
/// index, so here a malformed entry does not name it.
pub(crate) fn content(hints: &HintPosting) -> Vec<u8> {
    let mut out = Vec::new();
    for batch in &hints.batches {
        let mut malformed = 0;
        for entry in &batch.entries {
            let named = PostedEntry::malformed(malformed);
            malformed += usize::from(entry.kind == MALFORMED);
            let entry = if *entry == named { UNNAMED } else { *entry };
            out.extend_from_slice(&entry.to_bytes());
        }
    }
    let releases = hints.batches.iter().flat_map(|batch| &batch.singletons);
    out.extend(releases.flatten());
    out
}

impl HintBlobs {
    /// Hints in blobs. One commitment, over 4,096 points, for each blob: call it where blocking is allowed.
    ///
    /// # Errors
    /// [`BlobError::TooLong`] for more than the blobs of a transaction hold.
    pub fn of(hints: &HintPosting) -> Result<Self, BlobError> {
        let blobs = encode_blobs(&content(hints))?;
        let hashes = blobs.iter().map(|blob| versioned_hash(blob.as_slice())).collect::<Result<_, _>>()?;
        let blobs = blobs.iter().map(|blob| Bytes::copy_from_slice(blob.as_slice())).collect();
        Ok(Self { index: HintIndex::of(hints), hashes, blobs })
    }

    /// Hints as L1 and a beacon node show them: the index, and all blobs with their versioned hashes, in order.
    pub fn shown(index: HintIndex, hashes: Vec<B256>, blobs: Vec<Bytes>) -> Self {
        Self { index, hashes, blobs }
    }

    /// What `HintRegistry` stores for them, for a run that begins with `first`.
    pub fn root(&self, first: u64) -> B256 {
        self.index.root(first, &self.hashes)
    }

    /// The hints at the places that the index gives. An entry that cannot be read or that the index contradicts is of
    /// no known kind. A run has at most 4,096 items: of batches beyond that only as much is given as shows that their
    /// count is wrong, so that what is reserved is bounded whatever the index says.
    pub fn hints(&self) -> HintPosting {
        let content = BlobContent::new(&self.blobs);
        let total = self.index.before(usize::MAX);
        let (mut entry_at, mut release_at) = (0u64, total.saturating_mul(ENTRY_BYTES as u64));
        let mut room = MAX_BATCH_ITEMS + 1;
        let mut batches = Vec::with_capacity(self.index.batches.len());
        for IndexedBatch { count, malformed } in &self.index.batches {
            let shown = room.min(*count as usize);
            room -= shown;
            let mut listed = malformed.iter().copied().enumerate().peekable();
            let entries = (0u32..).take(shown).map(|place| {
                let release = listed.next_if(|(_, next)| *next == place).map(|(release, _)| release);
                let bytes = content.read::<ENTRY_BYTES>((entry_at + u64::from(place)) * ENTRY_BYTES as u64);
                let entry = bytes.map_or(NO_ENTRY, PostedEntry::from_bytes);
                match release {
                    Some(release) if entry == UNNAMED => PostedEntry::malformed(release),
                    None if entry.kind != MALFORMED => entry,
                    _ => NO_ENTRY,
                }
            });
            let entries = entries.collect();
            entry_at += u64::from(*count);
            // Of a release that cannot be read nothing is left that could pass for one.
            let releases = malformed.iter().take(shown).map(|_| {
                let at = release_at;
                release_at += SINGLETON_BYTES as u64;
                content.read::<SINGLETON_BYTES>(at).unwrap_or([0; SINGLETON_BYTES])
            });
            let singletons = releases.collect();
            batches.push(PostedBatch { entries, singletons });
        }
        HintPosting { batches }
    }

    /// What shows the entry of item `item` of batch `place`, from 0, to the contract, and the singleton release where the
    /// index calls the item malformed: for each of the one or two, and two or three, elements that they lie in a proof,
    /// two multi-scalar multiplications over 4,096 points.
    ///
    /// # Errors
    /// [`BlobError::Kzg`] for a blob that is none.
    pub(crate) fn evidence(&self, place: usize, item: u32) -> Result<contract::Evidence, BlobError> {
        let at = (self.index.before(place) + u64::from(item)) * ENTRY_BYTES as u64;
        let release = self.index.release_at(place, item);
        let hashes = self.hashes.iter().map(|hash| FixedBytes(hash.0)).collect();
        Ok(contract::Evidence {
            index: self.index.encode().into(),
            versionedHashes: hashes,
            openings: self.openings(at, ENTRY_BYTES)?,
            releaseOpenings: release.map_or(Ok(Vec::new()), |at| self.openings(at, SINGLETON_BYTES))?,
        })
    }

    /// The elements that so many bytes lie in; none where the blobs are over, for there is nothing to show.
    fn openings(&self, at: u64, length: usize) -> Result<Vec<contract::Opening>, BlobError> {
        let elements = BlobContent::elements(at, length);
        if !BlobContent::new(&self.blobs).holds(&elements) {
            return Ok(Vec::new());
        }
        let opening = |element| {
            let OpenedElement { value, commitment, proof } = open_element(&self.blobs, element)?;
            Ok(contract::Opening {
                value: U256::from_be_bytes(value),
                commitment: Bytes::copy_from_slice(&commitment),
                proof: Bytes::copy_from_slice(&proof),
            })
        };
        elements.map(opening).collect()
    }
}

#[cfg(test)]
#[path = "hint_blobs_tests.rs"]
mod tests;
