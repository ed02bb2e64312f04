//! How the envelopes of a run travel in calldata (`RunData` and `RunDataPart` of docs/protocol.md).

use std::collections::BTreeMap;

use alloy_primitives::keccak256;
use blindfold_protocol::{
    B256, BatchHeader, Canonical, DecodeError, Envelope, SealedBatch, Signature65,
    data::{self, KIND_RAW, MAX_DATA_BYTES},
    fault::CODE_VOID,
    limits::{MAX_SEALED_BATCH_BYTES, VERSION},
    merkle,
    validity::item_leaf,
};

/// Batches in one run at most: far above what fits a transaction.
pub(crate) const MAX_RUN_BATCHES: usize = 4_096;
/// Bytes of unfinished data that are kept of one poster: more than the data of any batch.
pub(crate) const MAX_POSTER_PART_BYTES: usize = 16 << 20;
/// Parts that the data of one run is cut into at most.
pub(crate) const MAX_PARTS: u16 = 1_024;
const SIGNATURE_BYTES: usize = 65;
/// A call of `postData` without data in its input: selector, number, place and length of the data.
const BARE_CALL_BYTES: usize = 4 + 3 * 32;
/// What a part has in front of its bytes.
const PART_OVERHEAD_BYTES: usize = 1 + 8 + 8 + 32 + 2 + 2 + 4;

/// A batch as it goes into a [`RunData`]: with the verdict codes of its items, which the header's data hash binds too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodedBatch {
    /// Header, sequencer's signature and items.
    pub sealed: SealedBatch,
    /// One verdict code for each item.
    pub codes: Vec<u8>,
}

/// What a header needs beside it to become a sealed batch again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchData {
    /// The sequencer's signature over the header.
    pub signature: Signature65,
    /// Verdict code and bytes of each item, in committed order.
    pub items: Vec<(u8, Vec<u8>)>,
}

/// The data of a run as they are (kind 1), one entry for each header in order.
///
/// [`RunData::join`] says whether they belong to given headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunData {
    /// One entry for each header.
    pub batches: Vec<BatchData>,
}

/// By number, the batches that posted data hold of the headers that were asked for. Who signed them is not looked at.
pub(crate) type Entries = BTreeMap<u64, SealedBatch>;

/// A piece of a [`RunData`] that is too long for one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPart {
    /// First number of the run.
    pub first: u64,
    /// Last number of the run.
    pub last: u64,
    /// keccak256 of the whole `RunData`.
    pub whole: B256,
    /// Which piece this is, from 0.
    pub part: u16,
    /// How many pieces there are.
    pub parts: u16,
    /// The bytes of this piece.
    pub bytes: Vec<u8>,
}

/// Which part of which data a transaction brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartName {
    /// First number of the run.
    pub first: u64,
    /// Last number of the run.
    pub last: u64,
    /// Which part this is, from 0.
    pub part: u16,
    /// How many parts there are.
    pub parts: u16,
}

impl PartName {
    /// All data of these numbers.
    pub fn whole((first, last): (u64, u64)) -> Self {
        Self { first, last, part: 0, parts: 1 }
    }

    /// What stands behind the arguments of a call whose data is in blobs (L-9).
    pub fn behind_call(&self) -> [u8; 12] {
        let mut out = [0; 12];
        out[..8].copy_from_slice(&self.last.to_be_bytes());
        out[8..10].copy_from_slice(&self.part.to_be_bytes());
        out[10..].copy_from_slice(&self.parts.to_be_bytes());
        out
    }

    /// What the input of a call from number `first` on says of its data, if that is in blobs; as whoever posted it likes.
    pub fn of_call(first: u64, input: &[u8]) -> Option<Self> {
        let mut reader = Reader(input.get(BARE_CALL_BYTES..)?);
        let last = u64::from_be_bytes(reader.array("last").ok()?);
        let part = u16::from_be_bytes(reader.array("part").ok()?);
        let parts = u16::from_be_bytes(reader.array("parts").ok()?);
        reader.finish().ok()?;
        Some(Self { first, last, part, parts }).filter(Self::is_possible)
    }

    /// Whether it names numbers and a part that there can be.
    pub fn is_possible(&self) -> bool {
        let spans = |span: u64| span < MAX_RUN_BATCHES as u64;
        self.last.checked_sub(self.first).is_some_and(spans)
            && self.part < self.parts
            && self.parts <= MAX_PARTS
    }
}

impl DataPart {
    pub(crate) fn name(&self) -> PartName {
        PartName { first: self.first, last: self.last, part: self.part, parts: self.parts }
    }
}

impl RunData {
    /// The data of these batches. An item without a code is left out, and the data then fits no header.
    pub fn of(batches: &[CodedBatch]) -> Self {
        let data = |CodedBatch { sealed, codes }: &CodedBatch| BatchData {
            signature: sealed.signature,
            items: codes.iter().copied().zip(sealed.items.iter().cloned()).collect(),
        };
        Self { batches: batches.iter().map(data).collect() }
    }

    /// Puts headers and data together; `None` where a data hash, a count or a length does not fit. A header that L1 made
    /// has no data hash, and its items are known by the envelope root.
    pub fn join(self, headers: &[BatchHeader]) -> Option<Vec<SealedBatch>> {
        if self.batches.len() != headers.len() {
            return None;
        }
        self.batches.into_iter().zip(headers).map(|(data, header)| data.join(header)).collect()
    }
}

impl BatchData {
    /// Puts header and data together, as [`RunData::join`].
    pub(crate) fn join(self, header: &BatchHeader) -> Option<SealedBatch> {
        let bytes: u64 = self.items.iter().map(|(_, item)| item.len() as u64).sum();
        let counted = self.items.len() as u64 == u64::from(header.envelope_count)
            && bytes == u64::from(header.envelope_bytes);
        let by_l1 = header.data_hash.is_zero();
        let known = by_l1 && counted && envelope_root(&self.items) == header.envelope_root;
        let (codes, items): (Vec<u8>, Vec<Vec<u8>>) = self.items.into_iter().unzip();
        let fits = known || (!by_l1 && counted && data::hash_items(&codes, &items) == header.data_hash);
        fits.then_some(SealedBatch { header: *header, signature: self.signature, items })
    }
}

/// Root of the envelope tree: the id is zero for an item that does not decode, and for a void one.
fn envelope_root(items: &[(u8, Vec<u8>)]) -> B256 {
    let leaf = |(code, item): &(u8, Vec<u8>)| {
        let envelope = Envelope::decode(item).ok().filter(|_| *code != CODE_VOID);
        let id = envelope.map_or(B256::ZERO, |envelope| envelope.id());
        item_leaf(&id, &keccak256(item), *code)
    };
    merkle::root(&items.iter().map(leaf).collect::<Vec<_>>())
}

impl Canonical for RunData {
    fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, KIND_RAW];
        put_length(&mut out, self.batches.len());
        for batch in &self.batches {
            out.extend_from_slice(&batch.signature.0);
            let (codes, items): (Vec<u8>, Vec<&[u8]>) =
                batch.items.iter().map(|(code, item)| (*code, item.as_slice())).unzip();
            let data = data::encode(&codes, &items);
            put_length(&mut out, data.len());
            out.extend_from_slice(&data);
        }
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader(bytes);
        reader.version()?;
        match reader.array("kind of data")? {
            [KIND_RAW] => {}
            [value] => return Err(DecodeError::UnknownTag { field: "kind of data", value }),
        }
        let count = reader.length("batches", MAX_RUN_BATCHES)?;
        // What is reserved is bounded by the input: a batch takes at least its signature.
        let mut batches = Vec::with_capacity(count.min(reader.0.len() / SIGNATURE_BYTES));
        for _ in 0..count {
            let signature = Signature65(reader.array("sequencer signature")?);
            let length = reader.length("data", MAX_DATA_BYTES)?;
            let items = data::decode(reader.take("data", length)?)?;
            batches.push(BatchData { signature, items });
        }
        reader.finish()?;
        Ok(Self { batches })
    }
}

impl Canonical for DataPart {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(PART_OVERHEAD_BYTES + self.bytes.len());
        out.push(VERSION);
        out.extend_from_slice(&self.first.to_be_bytes());
        out.extend_from_slice(&self.last.to_be_bytes());
        out.extend_from_slice(self.whole.as_slice());
        out.extend_from_slice(&self.part.to_be_bytes());
        out.extend_from_slice(&self.parts.to_be_bytes());
        put_length(&mut out, self.bytes.len());
        out.extend_from_slice(&self.bytes);
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader(bytes);
        reader.version()?;
        let first = u64::from_be_bytes(reader.array("first")?);
        let last = u64::from_be_bytes(reader.array("last")?);
        let whole = B256::new(reader.array("whole")?);
        let part = u16::from_be_bytes(reader.array("part")?);
        let parts = u16::from_be_bytes(reader.array("parts")?);
        if parts > MAX_PARTS || part >= parts {
            let (got, limit) = if parts > MAX_PARTS { (parts, MAX_PARTS) } else { (part, parts) };
            return Err(DecodeError::TooLarge { field: "part", got: got.into(), limit: limit.into() });
        }
        let length = reader.length("part", MAX_SEALED_BATCH_BYTES)?;
        let bytes = reader.take("part", length)?.to_vec();
        reader.finish()?;
        Ok(Self { first, last, whole, part, parts, bytes })
    }
}

/// Cuts the data of the run `first ..= last` into parts of which none encodes to more than `limit_bytes`. `None` when
/// they would be more than 1,024 or the limit leaves no room.
pub fn split_run_data(first: u64, last: u64, data: &[u8], limit_bytes: usize) -> Option<Vec<DataPart>> {
    let room = limit_bytes.checked_sub(PART_OVERHEAD_BYTES).filter(|room| *room > 0)?;
    let whole = keccak256(data);
    let parts = u16::try_from(data.len().div_ceil(room)).ok().filter(|parts| *parts <= MAX_PARTS)?;
    let part = |(part, bytes): (usize, &[u8])| DataPart {
        first,
        last,
        whole,
        part: part as u16,
        parts,
        bytes: bytes.to_vec(),
    };
    Some(data.chunks(room).enumerate().map(part).collect())
}

pub(crate) fn put_length(out: &mut Vec<u8>, length: usize) {
    // Limits far below 2^32 hold for all that is encoded here.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
}

/// Reads fields; each failure is named.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, field: &'static str, needed: usize) -> Result<&'a [u8], DecodeError> {
        let left = self.0.len();
        let (head, rest) =
            self.0.split_at_checked(needed).ok_or(DecodeError::Short { field, needed, left })?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let mut out = [0u8; N];
        out.copy_from_slice(self.take(field, N)?);
        Ok(out)
    }

    pub(crate) fn version(&mut self) -> Result<(), DecodeError> {
        match self.array::<1>("version")? {
            [VERSION] => Ok(()),
            [other] => Err(DecodeError::Version(other)),
        }
    }

    pub(crate) fn length(&mut self, field: &'static str, limit: usize) -> Result<usize, DecodeError> {
        let got = u32::from_be_bytes(self.array(field)?);
        if got as usize > limit {
            return Err(DecodeError::TooLarge { field, got: got.into(), limit: limit as u64 });
        }
        Ok(got as usize)
    }

    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        if self.0.is_empty() { Ok(()) } else { Err(DecodeError::Trailing(self.0.len())) }
    }
}

#[cfg(test)]
#[path = "run_data_tests.rs"]
mod tests;
