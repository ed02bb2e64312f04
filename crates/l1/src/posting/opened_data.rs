//! How batches travel whose envelopes were opened (`RunData` of kind 2 of docs/protocol.md): as their plaintext, compressed,
//! without the session keys, which stand in a posting of hints.

use std::io::Read;

use blindfold_bte::SessionKey;
use blindfold_protocol::{
    Bytes, DecodeError,
    data::KIND_OPENED,
    limits::VERSION,
    opened::{BatchTerms, MAX_BODY_BYTES, OpenBatch, OpenedRun, RunTerms},
};

use crate::posting::run_data::{CodedBatch, Reader, put_length};

/// What posting a byte costs is worth some milliseconds of compressing; higher levels find nothing more in signatures.
const LEVEL: i32 = 19;
/// A reader refuses frames that ask for a larger window: twice 2^24 bytes of memory is enough for any body.
const MAX_WINDOW_LOG: u32 = 24;

/// The posting of hints that has the session keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintsReference {
    /// Id that `HintRegistry` gave it.
    pub id: u64,
    /// The L1 block that it stands in.
    pub l1_block: u64,
}

/// A batch, and the session keys of those of its items that were opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedBatch {
    /// The batch.
    pub batch: CodedBatch,
    /// One entry for each item.
    pub keys: Vec<Option<SessionKey>>,
}

impl KeyedBatch {
    pub(crate) fn number(&self) -> u64 {
        self.batch.sealed.header.number
    }

    pub(crate) fn item_bytes(&self) -> usize {
        self.batch.sealed.items.iter().map(|item| item.len() + 8).sum()
    }

    pub(crate) fn open(&self, terms: BatchTerms) -> OpenBatch<'_> {
        OpenBatch {
            terms,
            signature: &self.batch.sealed.signature,
            codes: &self.batch.codes,
            items: &self.batch.sealed.items,
            keys: &self.keys,
        }
    }
}

/// Data of consecutive batches as what they were opened to, made and not posted yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedPiece {
    /// The batches, with the keys by which they were made.
    pub batches: Vec<KeyedBatch>,
    /// The posting that has these keys.
    pub hints: HintsReference,
    /// A `RunData` of kind 2.
    pub data: Bytes,
}

impl OpenedPiece {
    /// First and last number; `None` for a piece of nothing.
    pub fn numbers(&self) -> Option<(u64, u64)> {
        self.batches.first().map(KeyedBatch::number).zip(self.batches.last().map(KeyedBatch::number))
    }
}

/// The keys in such a posting.
#[derive(Clone, Debug)]
pub(crate) struct RunKeys {
    /// Which it is.
    pub posting: HintsReference,
    /// First batch of its run.
    pub first: u64,
    /// For each batch one entry for each item.
    pub keys: Vec<Vec<Option<SessionKey>>>,
}

/// Decoded data of kind 2, of which nothing is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedData {
    /// Where the keys are.
    pub hints: HintsReference,
    /// Chain id of the rollup, which the envelopes have in common.
    pub chain_id: u64,
    /// The batches.
    pub run: OpenedRun,
}

impl OpenedData {
    /// The data of these batches.
    ///
    /// # Errors
    /// [`DecodeError::TooLarge`] for more than a body may have: post less at once.
    pub fn encode(
        run: &RunTerms,
        hints: HintsReference,
        batches: &[OpenBatch<'_>],
    ) -> Result<Vec<u8>, DecodeError> {
        Self::encode_run(run.chain_id, hints, &OpenedRun::of(run, batches))
    }

    /// The data of batches in the form that they have in it.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub(crate) fn encode_run(
        chain_id: u64,
        hints: HintsReference,
        run: &OpenedRun,
    ) -> Result<Vec<u8>, DecodeError> {
        let body = run.encode(chain_id);
        check_length(body.len())?;
        let compressed = zstd::bulk::compress(&body, LEVEL).map_err(|_| DecodeError::Compressed)?;
        let mut out = vec![VERSION, KIND_OPENED];
        for number in [hints.id, hints.l1_block, chain_id] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        put_length(&mut out, body.len());
        out.extend_from_slice(&compressed);
        Ok(out)
    }

    /// Reads what [`encode`](Self::encode) writes.
    ///
    /// # Errors
    /// [`DecodeError`]: the fault of whoever posted it.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (hints, chain_id, mut reader) = Self::head(bytes)?;
        let length = reader.length("opened data", MAX_BODY_BYTES)?;
        let body = decompress(reader.0, length)?;
        Ok(Self { hints, chain_id, run: OpenedRun::decode(chain_id, &body)? })
    }

    /// The hints that data name, by what stands in front of their body.
    pub(crate) fn named_hints(bytes: &[u8]) -> Result<HintsReference, DecodeError> {
        Self::head(bytes).map(|(hints, ..)| hints)
    }

    /// Hints and chain id, and the rest.
    fn head(bytes: &[u8]) -> Result<(HintsReference, u64, Reader<'_>), DecodeError> {
        let mut reader = Reader(bytes);
        reader.version()?;
        match reader.array("kind of data")? {
            [KIND_OPENED] => {}
            [value] => return Err(DecodeError::UnknownTag { field: "kind of data", value }),
        }
        let mut number = |field| reader.array(field).map(u64::from_be_bytes);
        let hints = HintsReference { id: number("hints")?, l1_block: number("L1 block of the hints")? };
        let chain_id = number("chain id")?;
        Ok((hints, chain_id, reader))
    }
}

fn check_length(got: usize) -> Result<(), DecodeError> {
    let (got, limit) = (got as u64, MAX_BODY_BYTES as u64);
    if got > limit { Err(DecodeError::TooLarge { field: "opened data", got, limit }) } else { Ok(()) }
}

/// Exactly so many bytes: a frame with more ends there, one byte later.
fn decompress(frame: &[u8], length: usize) -> Result<Vec<u8>, DecodeError> {
    let refused = |_| DecodeError::Compressed;
    let mut decoder = zstd::stream::read::Decoder::with_buffer(frame).map_err(refused)?.single_frame();
    decoder.window_log_max(MAX_WINDOW_LOG).map_err(refused)?;
    let mut body = Vec::new();
    // Grows with what is there: a length that is only claimed reserves nothing.
    let limit = length as u64 + 1;
    decoder.by_ref().take(limit).read_to_end(&mut body).map_err(refused)?;
    let is_whole = decoder.finish().is_empty();
    if body.len() == length && is_whole { Ok(body) } else { Err(DecodeError::Compressed) }
}

#[cfg(test)]
#[path = "opened_data_tests.rs"]
mod tests;
