//! Hints as they are posted to L1 (`HintData` of docs/protocol.md).

use std::fmt;

use blindfold_protocol::{
    B256, BatchHints, Canonical, DecodeError, HintEntry, limits::VERSION, release::KEY_BYTES,
};

use crate::posting::place::MAX_TRANSACTION_BYTES;

/// Kind of an item that takes no pd position.
pub(crate) const SKIPPED: u8 = 0;
/// Kind of a well-formed envelope, with its session key.
pub(crate) const KEY: u8 = 1;
/// Kind of an envelope that decrypts to ⊥.
pub(crate) const MALFORMED: u8 = 2;
/// Length of a posted entry, in bytes.
pub(crate) const ENTRY_BYTES: usize = 1 + KEY_BYTES;
/// Length of a singleton release, in bytes.
pub(crate) const SINGLETON_BYTES: usize = 48;
/// The most bytes that the hints of a run of several headers can take. `BlindedInbox` has the same constant and cuts
/// what is posted into runs by it, so that a transaction that nodes relay always holds the hints of such a run. A single
/// header with more than 2,008 items is a run all the same, and may take more (L-6).
pub const MAX_RUN_HINT_BYTES: usize = MAX_TRANSACTION_BYTES - POST_HINTS_OVERHEAD_BYTES;
/// What a transaction of `postHints` has beside its data, with room to spare.
const POST_HINTS_OVERHEAD_BYTES: usize = 512;

/// One entry as it was posted. Nobody has checked it: its kind may be none.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PostedEntry {
    /// 0 skipped, 1 key, 2 malformed.
    pub kind: u8,
    /// The session key for kind 1; for kind 2 the place of the item's release in the batch's list, big-endian; else zero.
    pub key: [u8; KEY_BYTES],
}

impl fmt::Debug for PostedEntry {
    // Like [`HintEntry`]: a key stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostedEntry").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The hints of one batch as they were posted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PostedBatch {
    /// One entry for each item in committed order.
    pub entries: Vec<PostedEntry>,
    /// Singleton releases; an entry of kind 2 says which is its own. Ours are in the order of the malformed items.
    pub singletons: Vec<[u8; SINGLETON_BYTES]>,
}

/// The hints of a run, one entry for each batch in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HintPosting {
    /// One entry for each batch.
    pub batches: Vec<PostedBatch>,
}

/// Posted entries that cannot be hints, whatever the batch: the posting is wrong and can be challenged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostedError {
    /// The posting has no such batch.
    #[error("the posting has no hints for batch {0}")]
    NoBatch(u64),
    /// A kind that is none.
    #[error("entry {index} is of kind {kind}")]
    Kind {
        /// Index of the item in its batch.
        index: usize,
        /// The byte that says the kind.
        kind: u8,
    },
    /// Key bytes where there is no key.
    #[error("entry {0} has key bytes and no key")]
    StrayKey(usize),
    /// A malformed item's release stands behind the end of the list.
    #[error("the release of entry {index} is not among the batch's {singletons}")]
    NoRelease {
        /// Index of the item in its batch.
        index: usize,
        /// Singleton releases of the batch.
        singletons: usize,
    },
}

impl PostedEntry {
    /// Kind of an item that takes no pd position.
    pub const SKIPPED: u8 = SKIPPED;
    /// Kind of a well-formed envelope, with its session key.
    pub const KEY: u8 = KEY;
    /// Kind of an envelope that decrypts to ⊥.
    pub const MALFORMED: u8 = MALFORMED;

    /// The entry of a malformed item whose release stands at this place of the batch's list.
    pub fn malformed(place: usize) -> Self {
        Self { kind: MALFORMED, key: (place as u128).to_be_bytes() }
    }

    /// The place of a malformed item's release in the batch's list; `None` for other entries, and for a place that no
    /// list has.
    pub fn release_place(&self) -> Option<usize> {
        let place = (self.kind == MALFORMED).then(|| u128::from_be_bytes(self.key))?;
        usize::try_from(place).ok()
    }

    /// As it stands in the data.
    pub(crate) fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut out = [0; ENTRY_BYTES];
        out[0] = self.kind;
        out[1..].copy_from_slice(&self.key);
        out
    }

    /// As it stands in the data.
    pub(crate) fn from_bytes([kind, key @ ..]: [u8; ENTRY_BYTES]) -> Self {
        Self { kind, key }
    }
}

impl PostedBatch {
    /// The hints of one batch in the form for L1.
    pub fn of(hints: &BatchHints) -> Self {
        let mut singletons = Vec::new();
        let entries = hints.entries.iter().map(|entry| match entry {
            HintEntry::Skipped => PostedEntry { kind: SKIPPED, key: [0; KEY_BYTES] },
            HintEntry::Key(key) => PostedEntry { kind: KEY, key: *key },
            HintEntry::Malformed(release) => {
                singletons.push(*release);
                PostedEntry::malformed(singletons.len() - 1)
            }
        });
        Self { entries: entries.collect(), singletons }
    }

    /// The release that a malformed entry names.
    pub fn release(&self, entry: &PostedEntry) -> Option<[u8; SINGLETON_BYTES]> {
        self.singletons.get(entry.release_place()?).copied()
    }

    /// The hints of the batch with this number and header, to be verified like any others.
    ///
    /// # Errors
    /// [`PostedError`] for what cannot be hints.
    pub fn to_hints(&self, number: u64, header_hash: B256) -> Result<BatchHints, PostedError> {
        let hint = |(index, entry): (usize, &PostedEntry)| match entry.kind {
            SKIPPED if entry.key != [0; KEY_BYTES] => Err(PostedError::StrayKey(index)),
            SKIPPED => Ok(HintEntry::Skipped),
            KEY => Ok(HintEntry::Key(entry.key)),
            MALFORMED => self
                .release(entry)
                .map(HintEntry::Malformed)
                .ok_or(PostedError::NoRelease { index, singletons: self.singletons.len() }),
            kind => Err(PostedError::Kind { index, kind }),
        };
        let entries = self.entries.iter().enumerate().map(hint).collect::<Result<_, _>>()?;
        Ok(BatchHints { number, header_hash, entries, blindings: vec![] })
    }
}

impl HintPosting {
    /// The hints of a run's batches, in order.
    pub fn of(hints: &[BatchHints]) -> Self {
        Self { batches: hints.iter().map(PostedBatch::of).collect() }
    }

    /// The hints of batch `number`, in a posting for a run that begins with `first`.
    pub fn batch(&self, first: u64, number: u64) -> Option<&PostedBatch> {
        self.batches.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    /// The items that the posting calls malformed, as (batch number, item index).
    pub fn malformed(&self, first: u64) -> Vec<(u64, u32)> {
        let of_batch = |(number, batch): (u64, &PostedBatch)| {
            let entries = batch.entries.iter().zip(0u32..);
            let malformed = entries.filter(|(entry, _)| entry.kind == MALFORMED);
            malformed.map(|(_, index)| (number, index)).collect::<Vec<_>>()
        };
        (first..).zip(&self.batches).flat_map(of_batch).collect()
    }
}

impl Canonical for HintPosting {
    fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_count(&mut out, self.batches.len());
        for batch in &self.batches {
            put_count(&mut out, batch.entries.len());
            batch.entries.iter().for_each(|entry| out.extend_from_slice(&entry.to_bytes()));
            put_count(&mut out, batch.singletons.len());
            batch.singletons.iter().for_each(|release| out.extend_from_slice(release));
        }
        out
    }

    /// Takes whatever the contract takes: kinds and keys are for a challenge to judge.
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut rest = bytes;
        match take(&mut rest, "version", 1)? {
            [VERSION] => {}
            other => return Err(DecodeError::Version(other.first().copied().unwrap_or_default())),
        }
        let count = take_count(&mut rest, "batches")?;
        // What is reserved is bounded by the input: a batch takes at least its two counts.
        let mut batches = Vec::with_capacity(count.min(rest.len() / 8));
        for _ in 0..count {
            let entries = take_list::<ENTRY_BYTES>(&mut rest, "hints")?;
            let singletons = take_list(&mut rest, "singleton releases")?;
            batches.push(PostedBatch {
                entries: entries.into_iter().map(PostedEntry::from_bytes).collect(),
                singletons,
            });
        }
        if !rest.is_empty() {
            return Err(DecodeError::Trailing(rest.len()));
        }
        Ok(Self { batches })
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    // Limits far below 2^32 hold for all that is encoded here.
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    out.extend_from_slice(&count.to_be_bytes());
}

fn take<'a>(rest: &mut &'a [u8], field: &'static str, needed: usize) -> Result<&'a [u8], DecodeError> {
    let left = rest.len();
    let (head, tail) = rest.split_at_checked(needed).ok_or(DecodeError::Short { field, needed, left })?;
    *rest = tail;
    Ok(head)
}

fn take_count(rest: &mut &[u8], field: &'static str) -> Result<usize, DecodeError> {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(take(rest, field, 4)?);
    Ok(u32::from_be_bytes(bytes) as usize)
}

/// A count and as many entries of N bytes; nothing is reserved that the input does not hold.
fn take_list<const N: usize>(rest: &mut &[u8], field: &'static str) -> Result<Vec<[u8; N]>, DecodeError> {
    let count = take_count(rest, field)?;
    let bytes = take(rest, field, count.saturating_mul(N))?;
    let (entries, _) = bytes.as_chunks::<N>();
    Ok(entries.to_vec())
}

#[cfg(test)]
#[path = "hint_posting_tests.rs"]
mod tests;
