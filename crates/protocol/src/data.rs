//! A batch's data as they are posted on L1, and the hash by which its header commits to them.
//!
//! Data = `u32 count · count × (verdict code u8 · u32 length · item bytes)`. The hash is the Merkle root over the data cut
//! into chunks of 65,536 bytes, the last one shorter, so L1 can check posted bytes chunk by chunk. The count says how
//! many chunks there are: data are never empty, for they begin with four bytes of it.

use crate::codec::{DecodeError, Reader, Writer};
use crate::limits::{DATA_CHUNK_BYTES, MAX_BATCH_ITEMS, MAX_ENVELOPE_BYTES, MAX_SECOND_BYTES};
use crate::{merkle, tags};
use alloy_primitives::{B256, Keccak256};

/// Kind of posted data that are the batches' own, as this module writes them.
pub const KIND_RAW: u8 = 1;
/// Kind of posted data that are what the envelopes were opened to ([`opened`](crate::opened)).
pub const KIND_OPENED: u8 = 2;
/// Kind of posted data that only name others by their hash, which are in archives. The other kinds are reserved.
pub const KIND_ARCHIVED: u8 = 3;
/// The longest data of a batch, in bytes.
pub const MAX_DATA_BYTES: usize = 4 + MAX_BATCH_ITEMS * ITEM_OVERHEAD_BYTES + MAX_SECOND_BYTES as usize;

/// Verdict code and length of an item.
const ITEM_OVERHEAD_BYTES: usize = 1 + 4;

/// The data of items with their verdict codes. There must be as many codes as items.
pub fn encode<T: AsRef<[u8]>>(codes: &[u8], items: &[T]) -> Vec<u8> {
    assert_eq!(codes.len(), items.len(), "a verdict code for each item");
    let size: usize = items.iter().map(|item| item.as_ref().len() + ITEM_OVERHEAD_BYTES).sum();
    let mut out = Writer::with_capacity(4 + size);
    out.count(items.len());
    for (code, item) in codes.iter().zip(items) {
        out.u8(*code).prefixed(item.as_ref());
    }
    out.finish()
}

/// Verdict code and bytes of each item. Whether they belong to a header is for its data hash to say.
pub fn decode(data: &[u8]) -> Result<Vec<(u8, Vec<u8>)>, DecodeError> {
    let mut reader = Reader::new(data);
    let count = reader.count("items", MAX_BATCH_ITEMS)?;
    // Every item takes at least its overhead, so the reservation is bounded by the input.
    let mut items = Vec::with_capacity(count.min(reader.left() / ITEM_OVERHEAD_BYTES));
    let mut total = 0u64;
    for _ in 0..count {
        let code = reader.u8("verdict code")?;
        let item = reader.prefixed("item", MAX_ENVELOPE_BYTES)?;
        total += item.len() as u64;
        if total > MAX_SECOND_BYTES {
            return Err(DecodeError::TooLarge { field: "item bytes", got: total, limit: MAX_SECOND_BYTES });
        }
        items.push((code, item.to_vec()));
    }
    reader.finish()?;
    Ok(items)
}

/// `dataHash` of encoded data (HS-5).
pub fn hash(data: &[u8]) -> B256 {
    let mut chunks = Chunks::default();
    chunks.update(data);
    chunks.root()
}

/// `dataHash` of items with their verdict codes, without the data in one piece. There must be as many codes as items.
pub fn hash_items<T: AsRef<[u8]>>(codes: &[u8], items: &[T]) -> B256 {
    assert_eq!(codes.len(), items.len(), "a verdict code for each item");
    let mut chunks = Chunks::default();
    // A batch has at most `MAX_BATCH_ITEMS` items, none longer than the largest envelope.
    chunks.update(&(items.len() as u32).to_be_bytes());
    for (code, item) in codes.iter().zip(items) {
        let item = item.as_ref();
        chunks.update(&[*code]);
        chunks.update(&(item.len() as u32).to_be_bytes());
        chunks.update(item);
    }
    chunks.root()
}

/// Cuts what it is given into chunks and hashes them.
#[derive(Default)]
struct Chunks {
    leaves: Vec<B256>,
    open: Option<Keccak256>,
    filled: usize,
}

impl Chunks {
    fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(DATA_CHUNK_BYTES - self.filled));
            let hasher = self.open.get_or_insert_with(|| {
                let mut hasher = Keccak256::new();
                hasher.update([tags::MERKLE_LEAF]);
                hasher
            });
            hasher.update(now);
            self.filled += now.len();
            if self.filled == DATA_CHUNK_BYTES {
                self.close();
            }
            bytes = later;
        }
    }

    fn close(&mut self) {
        self.leaves.extend(self.open.take().map(Keccak256::finalize));
        self.filled = 0;
    }

    fn root(mut self) -> B256 {
        self.close();
        merkle::root(&self.leaves)
    }
}
