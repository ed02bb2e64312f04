//! A batch as whoever opens it sees it: its accepted envelopes in order, cut into sub-batches.

use std::ops::Range;
use std::slice::Chunks;

use alloy_primitives::{B256, keccak256};
use blindfold_bte::{Backend, Ciphertext, CiphertextPoint};
use blindfold_protocol::fault::CODE_VOID;
use blindfold_protocol::validity::{Verdict, cut, item_leaf};
use blindfold_protocol::{Canonical, DecodeError, Envelope, SealedBatch, merkle};

use super::DecryptError;
use crate::records::verdicts_named;

/// An accepted envelope. Whether its ciphertext's header is a point is not known before somebody works on it: of a batch that
/// is shared, each hint publisher decodes the points of what it opens.
#[derive(Clone, Debug)]
pub struct AcceptedItem {
    /// Index of the item in the batch, skipped ones counted.
    pub index: u32,
    /// Hash of its header: the ciphertext's associated data.
    pub ad: B256,
    /// The ciphertext.
    pub ciphertext: Ciphertext,
}

impl AcceptedItem {
    fn new(index: u32, ad: B256, envelope: Envelope) -> Self {
        Self { index, ad, ciphertext: envelope.ciphertext }
    }

    fn read(index: u32, item: &[u8]) -> Result<Self, ViewError> {
        let envelope = Envelope::decode(item).map_err(|fault| ViewError::Undecodable { index, fault })?;
        Ok(Self::new(index, envelope.header.hash(), envelope))
    }

    /// The decoded header of its ciphertext.
    pub(super) fn point(&self) -> Result<CiphertextPoint, DecryptError> {
        self.ciphertext.header().map_err(|fault| DecryptError::Point { index: self.index, fault })
    }
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
    max_batch: u32,
}

/// What is said of a batch contradicts itself: the fault of whoever says it, or of our disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
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
}

impl BatchView {
    /// Reads a batch as its sequencer tells it. `verdicts` holds one entry per item, `None` for accepted. Checks that they are
    /// those of the header; some hashes per item, blocking. Points are not looked at.
    ///
    /// # Errors
    /// [`ViewError`].
    pub fn read(
        sealed: &SealedBatch,
        verdicts: &[Option<String>],
        max_batch: u32,
    ) -> Result<Self, ViewError> {
        let items = sealed.items.len();
        if verdicts.len() != items {
            return Err(ViewError::VerdictCount { items, verdicts: verdicts.len() });
        }
        let mut leaves = Vec::with_capacity(items);
        let mut accepted = Vec::with_capacity(items);
        for ((index, item), verdict) in (0u32..).zip(&sealed.items).zip(verdicts) {
            let (leaf, envelope) = leaf(index, item, verdict.as_deref())?;
            leaves.push(leaf);
            if verdict.is_some() {
                continue;
            }
            let (ad, envelope) = envelope.map_err(|fault| ViewError::Undecodable { index, fault })?;
            accepted.push(AcceptedItem::new(index, ad, envelope));
        }
        check_root(sealed, &leaves)?;
        Ok(Self::new(sealed, accepted, max_batch))
    }

    /// Reads a batch with verdicts of our own, so that nothing has to be checked; blocking. Points are not looked at.
    ///
    /// # Errors
    /// [`ViewError`]: these are not the verdicts on this batch.
    pub fn of_verdicts(
        sealed: &SealedBatch,
        verdicts: &[Verdict],
        max_batch: u32,
    ) -> Result<Self, ViewError> {
        let items = sealed.items.len();
        if verdicts.len() != items {
            return Err(ViewError::VerdictCount { items, verdicts: verdicts.len() });
        }
        let of_accepted =
            (0u32..).zip(&sealed.items).zip(verdicts).filter(|(_, verdict)| verdict.is_accepted());
        let read = |((index, item), _): ((u32, &Vec<u8>), _)| AcceptedItem::read(index, item);
        let accepted = of_accepted.map(read).collect::<Result<_, _>>()?;
        Ok(Self::new(sealed, accepted, max_batch))
    }

    fn new(sealed: &SealedBatch, accepted: Vec<AcceptedItem>, max_batch: u32) -> Self {
        let header = &sealed.header;
        let (number, hash, parent_hash) = (header.number, header.hash(), header.parent_hash);
        Self { number, hash, parent_hash, items: sealed.items.len(), accepted, max_batch }
    }

    /// The envelopes of each sub-batch, in order.
    pub fn sub_batches(&self) -> Chunks<'_, AcceptedItem> {
        cut(&self.accepted, self.max_batch)
    }

    /// The places of all sub-batches.
    pub fn places(&self) -> Range<usize> {
        0..self.sub_batches().len()
    }

    /// The envelopes of sub-batches that follow each other.
    pub fn part(&self, places: &Range<usize>) -> &[AcceptedItem] {
        self.accepted.get(self.positions(places)).unwrap_or_default()
    }

    /// Their positions among the accepted items.
    pub(super) fn positions(&self, places: &Range<usize>) -> Range<usize> {
        let before = |place: usize| self.sub_batches().take(place).map(<[_]>::len).sum();
        before(places.start)..before(places.end)
    }

    /// The envelopes of one sub-batch; none where there is no such.
    pub fn sub_batch(&self, place: usize) -> &[AcceptedItem] {
        self.sub_batches().nth(place).unwrap_or_default()
    }
}

/// The verdicts that somebody tells of a batch, once they and the items are shown to be those that the header commits to. Two
/// hashes for each item, blocking; points are not looked at.
///
/// # Errors
/// [`ViewError`].
pub fn told_verdicts(sealed: &SealedBatch, names: &[Option<String>]) -> Result<Vec<Verdict>, ViewError> {
    let items = sealed.items.len();
    if names.len() != items {
        return Err(ViewError::VerdictCount { items, verdicts: names.len() });
    }
    let leaf_of = |((index, item), name): ((u32, &Vec<u8>), &Option<String>)| {
        leaf(index, item, name.as_deref()).map(|(leaf, _)| leaf)
    };
    let leaves = (0u32..).zip(&sealed.items).zip(names).map(leaf_of).collect::<Result<Vec<_>, _>>()?;
    check_root(sealed, &leaves)?;
    verdicts_named(names.iter().map(Option::as_deref)).map_err(|_| ViewError::Verdict { index: 0 })
}

/// What an item decodes to, with the hash of its header.
type Decoded = Result<(B256, Envelope), DecodeError>;

/// An item's leaf in the tree of its batch, and what it decodes to.
fn leaf(index: u32, item: &[u8], verdict: Option<&str>) -> Result<(B256, Decoded), ViewError> {
    let code = Verdict::code_of_reason(verdict).ok_or(ViewError::Verdict { index })?;
    let envelope = Envelope::decode(item).map(|envelope| (envelope.header.hash(), envelope));
    let id = match &envelope {
        Ok((ad, envelope)) if code != CODE_VOID => envelope.id_under(ad),
        _ => B256::ZERO,
    };
    Ok((item_leaf(&id, &keccak256(item), code), envelope))
}

fn check_root(sealed: &SealedBatch, leaves: &[B256]) -> Result<(), ViewError> {
    let count = u32::try_from(leaves.len()).ok();
    let stands =
        merkle::root(leaves) == sealed.header.envelope_root && count == Some(sealed.header.envelope_count);
    if stands { Ok(()) } else { Err(ViewError::Root) }
}

/// The ciphertext points of these items. Blocking.
pub(super) fn points(
    backend: &dyn Backend,
    items: &[AcceptedItem],
) -> Result<Vec<CiphertextPoint>, DecryptError> {
    let headers: Vec<_> = items.iter().map(|item| &item.ciphertext.c).collect();
    let decoded = items.iter().zip(backend.decode_headers(&headers));
    decoded
        .map(|(item, point)| point.map_err(|fault| DecryptError::Point { index: item.index, fault }))
        .collect()
}
