//! A batch as the helper sees it: its accepted envelopes in order, cut into sub-batches.

use std::ops::Range;

use alloy_primitives::keccak256;
use blindfold_bte::{Ciphertext, CiphertextPoint, PointError};
use blindfold_protocol::{
    B256, Canonical, DecodeError, Envelope, SealedBatch, Verdict, fault::CODE_VOID, merkle,
    validity::item_leaf,
};

/// An accepted envelope.
#[derive(Clone, Debug)]
pub struct AcceptedItem {
    /// Index of the item in the batch, skipped ones counted.
    pub index: u32,
    /// Hash of its header: the ciphertext's associated data.
    pub ad: B256,
    /// The ciphertext.
    pub ciphertext: Ciphertext,
    /// Its decoded header.
    pub point: CiphertextPoint,
}

/// A batch and what was accepted of it: the header commits to the verdicts.
#[derive(Clone, Debug)]
pub struct BatchView {
    /// Batch number.
    pub number: u64,
    /// Header hash.
    pub hash: B256,
    /// Hash of the header before.
    pub parent_hash: B256,
    /// How many items the batch has, skipped ones counted.
    pub items: usize,
    /// The accepted envelopes in committed order.
    pub accepted: Vec<AcceptedItem>,
    /// B of the epoch.
    max_batch: usize,
}

/// What the sequencer says of a batch contradicts itself. Its fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewFault {
    /// Not one verdict per item.
    #[error("{verdicts} verdicts for {items} items")]
    VerdictCount {
        /// Items of the batch.
        items: usize,
        /// Verdicts given.
        verdicts: usize,
    },
    /// A verdict without a meaning.
    #[error("the verdict on item {index} has no meaning")]
    Verdict {
        /// Index of the item.
        index: u32,
    },
    /// The items, or the verdicts on them, are not those that the header commits to.
    #[error("the items and verdicts do not have the root that the header commits to")]
    Root,
    /// An item that is said to be accepted does not decode.
    #[error("item {index} is said to be accepted and does not decode: {fault}")]
    Undecodable {
        /// Index of the item.
        index: u32,
        /// What is wrong with it.
        fault: DecodeError,
    },
    /// The ciphertext header of an item that is said to be accepted is no point of the group.
    #[error("item {index} is said to be accepted and its ciphertext has no valid point: {fault}")]
    Point {
        /// Index of the item.
        index: u32,
        /// What is wrong with it.
        fault: PointError,
    },
}

impl BatchView {
    /// Reads a batch. `verdicts` holds one entry per item, `None` for accepted. Checks that items and verdicts are
    /// those of the header; about 40 µs per item, blocking.
    ///
    /// # Errors
    /// [`ViewFault`].
    pub fn read(
        sealed: &SealedBatch,
        verdicts: &[Option<String>],
        max_batch: usize,
    ) -> Result<Self, ViewFault> {
        let items = sealed.items.len();
        if verdicts.len() != items {
            return Err(ViewFault::VerdictCount { items, verdicts: verdicts.len() });
        }
        let mut leaves = Vec::with_capacity(items);
        let mut accepted = Vec::with_capacity(items);
        for ((index, item), verdict) in (0u32..).zip(&sealed.items).zip(verdicts) {
            let code = Verdict::code_of_reason(verdict.as_deref()).ok_or(ViewFault::Verdict { index })?;
            let envelope = Envelope::decode(item);
            let id = match &envelope {
                Ok(envelope) if code != CODE_VOID => envelope.id(),
                _ => B256::ZERO,
            };
            leaves.push(item_leaf(&id, &keccak256(item), code));
            if verdict.is_some() {
                continue;
            }
            let envelope = envelope.map_err(|fault| ViewFault::Undecodable { index, fault })?;
            let point = envelope.ciphertext.header().map_err(|fault| ViewFault::Point { index, fault })?;
            accepted.push(AcceptedItem {
                index,
                ad: envelope.header.hash(),
                ciphertext: envelope.ciphertext,
                point,
            });
        }
        let count = u32::try_from(items).ok();
        if merkle::root(&leaves) != sealed.header.envelope_root || count != Some(sealed.header.envelope_count)
        {
            return Err(ViewFault::Root);
        }
        Ok(Self {
            number: sealed.header.number,
            hash: sealed.header.hash(),
            parent_hash: sealed.header.parent_hash,
            items,
            accepted,
            max_batch: max_batch.max(1),
        })
    }

    /// How many sub-batches there are.
    pub fn sub_batches(&self) -> usize {
        self.accepted.len().div_ceil(self.max_batch)
    }

    /// The positions of one sub-batch among the accepted envelopes.
    pub fn range(&self, sub_batch: usize) -> Range<usize> {
        let start = sub_batch.saturating_mul(self.max_batch).min(self.accepted.len());
        start..start.saturating_add(self.max_batch).min(self.accepted.len())
    }

    /// The envelopes of one sub-batch.
    pub fn sub_batch(&self, sub_batch: usize) -> &[AcceptedItem] {
        self.accepted.get(self.range(sub_batch)).unwrap_or_default()
    }

    /// The ciphertext points of one sub-batch.
    pub fn points(&self, sub_batch: usize) -> Vec<CiphertextPoint> {
        self.sub_batch(sub_batch).iter().map(|item| item.point).collect()
    }
}
