//! Challenges: one wrong entry of posted hints with everything that L1 judges it by.

use alloy_primitives::{Bytes, FixedBytes};
use blindfold_protocol::{BatchHeader, BatchHints, HintEntry, SealedBatch, Verdict, fault::CODE_ACCEPTED};
use blindfold_runtime::blocking;

use crate::{
    contracts::{HintBlobs as contract, HintRegistry},
    error::L1Error,
    events::PostedLog,
    posting::{
        blobs::BlobError,
        evidence::{EnvelopeTree, bytes},
        hint_blobs::{HintBlobs, HintData},
        hint_posting::{HintPosting, KEY, MALFORMED, SKIPPED},
        hint_tree::{HintTree, release_chunk, release_hashes},
        run::PostedRun,
    },
};

/// Why no challenge can be made. The caller's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChallengeError {
    /// The batch is not in the run, or the posting has none of its number.
    #[error("batch {0} is not in the run or not in the posting")]
    NoBatch(u64),
    /// Items and verdicts are not what the header commits to.
    #[error("items and verdicts of batch {0} do not fit its header")]
    OtherItems(u64),
    /// There is no such item.
    #[error("batch {number} has no item {index}")]
    NoItem {
        /// Number of the batch.
        number: u64,
        /// Index of the item in it, from 0.
        index: u32,
    },
}

/// Everything a challenge of one entry is made from.
#[derive(Clone, Debug)]
pub struct HintEvidence {
    /// The posting that is challenged.
    pub posting: PostedLog,
    /// What was posted, and where it stands.
    pub data: HintData,
    /// The headers of its run, in order.
    pub headers: Vec<BatchHeader>,
    /// The batch that the entry belongs to.
    pub batch: SealedBatch,
    /// One verdict for each item of it.
    pub verdicts: Vec<Verdict>,
    /// Place of the entry in the batch.
    pub index: u32,
    /// For an envelope that is wrongly called malformed, the key that opens it.
    pub key: Option<[u8; 16]>,
}

impl HintEvidence {
    /// The challenge, in blobs where the posting is. That takes long, away from the executor's threads.
    ///
    /// # Errors
    /// [`L1Error::NotSent`] where the parts do not fit each other, or the posting is of a run of other headers.
    pub async fn challenge(&self) -> Result<Challenge, L1Error> {
        let unfit = |reason: String| L1Error::NotSent { reason };
        let Self { data, headers, batch, verdicts, index, key, .. } = self;
        let run = PostedRun::new(headers.clone(), data.run.posted_at)
            .filter(|run| run.run.header_root == data.run.header_root)
            .ok_or_else(|| {
                unfit("L1 holds other headers than this node: its chain is another one".to_owned())
            })?;
        // Of the truth a challenge needs the key that opens an envelope called malformed, at its place.
        let mut entries = vec![HintEntry::Skipped; batch.items.len()];
        if let (Some(key), Some(entry)) =
            (key, usize::try_from(*index).ok().and_then(|at| entries.get_mut(at)))
        {
            *entry = HintEntry::Key(*key);
        }
        let (number, header_hash) = (batch.header.number, batch.header.hash());
        let truth = BatchHints { number, header_hash, entries, blindings: vec![] };
        let codes: Vec<u8> = verdicts.iter().map(|verdict| verdict.code()).collect();
        let challenge = Challenge::new(&run, batch, &codes, &data.hints, &truth, *index)
            .map_err(|fault| unfit(fault.to_string()))?;
        let Some(blobs) = data.blobs.clone() else { return Ok(challenge) };
        let made = blocking(move || challenge.in_blobs(&blobs)).await;
        made.map_err(|error| unfit(error.to_string()))?.map_err(|fault| unfit(fault.to_string()))
    }
}

/// A disputed entry, ready for [`crate::submitter::writer::L1Writer::challenge`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    pub(crate) call: HintRegistry::Challenge,
}

impl Challenge {
    /// Disputes entry `index` of a batch in a posting of its run. `codes` are the verdicts of the batch's items, and
    /// `truth` its hints as far as they are known, which give the key that opens an envelope called malformed; with a
    /// wrong singleton release no key is needed. Whether the entry is wrong is not checked here: see
    /// [`first_wrong_entry`].
    ///
    /// # Errors
    /// [`ChallengeError`] where run, batch, verdicts, posting and index do not fit each other.
    pub fn new(
        run: &PostedRun,
        batch: &SealedBatch,
        codes: &[u8],
        posting: &HintPosting,
        truth: &BatchHints,
        index: u32,
    ) -> Result<Self, ChallengeError> {
        let number = batch.header.number;
        let no_batch = ChallengeError::NoBatch(number);
        let header = run.header(number).filter(|header| **header == batch.header).ok_or(no_batch)?;
        let header_proof = run.header_proof(number).ok_or(no_batch)?;
        let chunk = HintTree::new(posting, run.run.first).chunk(number, index).ok_or(no_batch)?;
        let mut call = HintRegistry::Challenge {
            run: (&run.run).into(),
            header: header.into(),
            headerProof: header_proof,
            chunk: bytes(&chunk.bytes),
            chunkIndex: chunk.chunk_index,
            leafIndex: chunk.leaf_index,
            leafCount: chunk.leaf_count,
            chunkProof: chunk.proof,
            releases: chunk.releases,
            count: chunk.count,
            index,
            itemHash: Default::default(),
            id: Default::default(),
            code: 0,
            itemProof: Vec::new(),
            item: Bytes::new(),
            key: FixedBytes::ZERO,
            releaseHashes: Vec::new(),
            releaseChunk: Bytes::new(),
            blobs: no_blobs(),
        };
        // A posting of another length is wrong as such: L1 looks no further.
        if chunk.count != header.envelope_count {
            return Ok(Self { call });
        }
        let tree = EnvelopeTree::new(batch, codes).ok_or(ChallengeError::OtherItems(number))?;
        let no_item = ChallengeError::NoItem { number, index };
        let place = index as usize;
        let (leaf, item) = tree.items.get(place).zip(batch.items.get(place)).ok_or(no_item)?;
        call.itemHash = leaf.item_hash;
        call.id = leaf.id;
        call.code = leaf.code;
        call.itemProof = tree.proof(index).ok_or(no_item)?;
        let posted = posting.batch(run.run.first, number);
        let posted = posted.and_then(|batch| batch.entries.get(place).map(|entry| (batch, entry)));
        if let Some((batch, entry)) = posted.filter(|_| leaf.code == CODE_ACCEPTED) {
            if matches!(entry.kind, KEY | MALFORMED) {
                call.item = bytes(item);
            }
            if entry.kind == MALFORMED {
                call.releaseHashes = release_hashes(batch);
                call.releaseChunk = bytes(release_chunk(batch, entry));
            }
        }
        if let Some(HintEntry::Key(key)) = truth.entries.get(place) {
            call.key = FixedBytes(*key);
        }
        Ok(Self { call })
    }

    /// The same dispute over hints that are in these blobs, of which the posting given to [`Challenge::new`] was read.
    /// Up to ten multi-scalar multiplications over 4,096 points: call it where blocking is allowed.
    ///
    /// # Errors
    /// [`BlobError`] for blobs that are none.
    pub fn in_blobs(mut self, blobs: &HintBlobs) -> Result<Self, BlobError> {
        let place = self.number().saturating_sub(self.call.run.first);
        // The contract looks at nothing of the chunk, so nothing is sent of it.
        (self.call.chunk, self.call.chunkProof) = (Bytes::new(), Vec::new());
        (self.call.releaseChunk, self.call.releaseHashes) = (Bytes::new(), Vec::new());
        self.call.blobs = blobs.evidence(usize::try_from(place).unwrap_or(usize::MAX), self.call.index)?;
        Ok(self)
    }

    /// Number of the batch whose entry is challenged.
    pub fn number(&self) -> u64 {
        self.call.header.number
    }

    /// What the contract is given.
    pub fn call(&self) -> &HintRegistry::Challenge {
        &self.call
    }

    /// Index of the disputed item in its batch, from 0.
    pub fn index(&self) -> u32 {
        self.call.index
    }
}

fn no_blobs() -> contract::Evidence {
    contract::Evidence {
        index: Bytes::new(),
        versionedHashes: Vec::new(),
        openings: Vec::new(),
        releaseOpenings: Vec::new(),
    }
}

/// The first entry of a posting that is not what the right hints of the run's batches say, as (batch number, item
/// index); a batch of another length is wrong at index 0. Of a malformed item the release that the entry names is
/// compared: there is one right one.
pub fn first_wrong_entry(posting: &HintPosting, truth: &[BatchHints]) -> Option<(u64, u32)> {
    truth.iter().zip(&posting.batches).find_map(|(hints, batch)| {
        if hints.entries.len() != batch.entries.len() {
            return Some((hints.number, 0));
        }
        let mut entries = (0u32..).zip(hints.entries.iter().zip(&batch.entries));
        let wrong = entries.find(|(_, (right, posted))| {
            let (kind, key) = match right {
                HintEntry::Skipped => (SKIPPED, [0; 16]),
                HintEntry::Key(key) => (KEY, *key),
                HintEntry::Malformed(release) => return batch.release(posted) != Some(*release),
            };
            (posted.kind, posted.key) != (kind, key)
        });
        wrong.map(|(index, _)| (hints.number, index))
    })
}

#[cfg(test)]
#[path = "challenge_tests.rs"]
mod tests;
