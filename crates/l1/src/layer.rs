//! Where the data of runs is, as a seam: calldata, blobs, or an archive outside L1. A layer publishes bytes, as what a
//! transaction then carries, and gives them for what a posted transaction carried, checked against what L1 holds. What each
//! guarantees: docs/l1.md.

use alloy_eips::eip4844::Blob;
use alloy_primitives::Bytes;
use async_trait::async_trait;
use blindfold_protocol::Canonical;

use crate::{
    error::L1Error,
    posting::{
        archived::{ArchivedData, MAX_ARCHIVED_BYTES},
        blobs::{MAX_BLOB_DATA_BYTES, decode_blobs, encode_blobs},
        place::{LayerName, OnL1, POST_DATA_ROOM_BYTES},
    },
    reader::{
        client::L1Client,
        data::{DataError, unfit},
    },
};

/// What a transaction carries for data.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// Among its input.
    pub input: Bytes,
    pub blobs: Vec<Blob>,
}

/// A place for data.
#[async_trait]
pub(crate) trait DataLayer: Send + Sync {
    /// Bytes that one transaction brings there at most.
    fn room_bytes(&self) -> usize;

    /// Publishes data, as far as the transaction does not. Once that is in a block everybody finds the data by it.
    async fn publish(&self, data: &[u8]) -> Result<Carried, L1Error>;

    /// The data of a transaction, with the hash that L1 holds; inside, why it cannot be had.
    async fn fetch(&self, posted: OnL1<'_>) -> Result<Result<Bytes, DataError>, L1Error>;
}

struct Calldata;

#[async_trait]
impl DataLayer for Calldata {
    fn room_bytes(&self) -> usize {
        POST_DATA_ROOM_BYTES
    }

    async fn publish(&self, data: &[u8]) -> Result<Carried, L1Error> {
        Ok(Carried { input: Bytes::copy_from_slice(data), blobs: Vec::new() })
    }

    async fn fetch(&self, posted: OnL1<'_>) -> Result<Result<Bytes, DataError>, L1Error> {
        Ok(Ok(posted.input.clone()))
    }
}

struct Blobs<'a>(&'a L1Client);

#[async_trait]
impl DataLayer for Blobs<'_> {
    fn room_bytes(&self) -> usize {
        MAX_BLOB_DATA_BYTES
    }

    async fn publish(&self, data: &[u8]) -> Result<Carried, L1Error> {
        Ok(Carried { input: Bytes::new(), blobs: encode_blobs(data).map_err(L1Error::Blobs)? })
    }

    async fn fetch(&self, posted: OnL1<'_>) -> Result<Result<Bytes, DataError>, L1Error> {
        let l1_block = posted.l1_block;
        let found = self.0.blobs_of(l1_block, posted.blobs).await?;
        let missing = || unfit(&format!("block {l1_block} or the next one is missing"));
        let blobs = found.ok_or_else(missing)?;
        Ok(blobs.and_then(|blobs| Ok(decode_blobs(&blobs).map(Bytes::from)?)))
    }
}

/// DA-1, DA-2 and DA-4.
struct Archived<'a>(&'a L1Client);

#[async_trait]
impl DataLayer for Archived<'_> {
    fn room_bytes(&self) -> usize {
        MAX_ARCHIVED_BYTES
    }

    async fn publish(&self, data: &[u8]) -> Result<Carried, L1Error> {
        let none = || L1Error::NotArchived { reason: "no archive is configured".to_owned() };
        let named = self.0.inner.archive.as_ref().ok_or_else(none)?.publish(data).await?;
        self.0.inner.fetched.note_held(named, data);
        Ok(Carried { input: named.encode().into(), blobs: Vec::new() })
    }

    async fn fetch(&self, posted: OnL1<'_>) -> Result<Result<Bytes, DataError>, L1Error> {
        let named = match ArchivedData::decode(posted.input) {
            Ok(named) => named,
            Err(fault) => return Ok(Err(fault.into())),
        };
        let Some(archive) = &self.0.inner.archive else { return Ok(Err(DataError::NoArchive)) };
        let known = &self.0.inner.fetched;
        let answer = match known.withheld(&named, posted.l1_block) {
            Some(fault) => Err(fault),
            None => {
                // Before they are asked: what is named up to this block was put there before.
                let through = self.0.finalized().await?.number.max(posted.l1_block);
                let answer = archive.fetch(&named).await;
                match &answer {
                    Ok(bytes) => known.note_held(named, bytes),
                    Err(fault) => known.note_withheld(named, fault, through),
                }
                answer
            }
        };
        Ok(answer.map_err(|fault| DataError::Withheld { hash: named.hash, fault: Box::new(fault) }))
    }
}

impl L1Client {
    pub(crate) fn layer(&self, name: LayerName) -> Box<dyn DataLayer + '_> {
        match name {
            LayerName::Calldata => Box::new(Calldata),
            LayerName::Blobs => Box::new(Blobs(self)),
            LayerName::Archive => Box::new(Archived(self)),
        }
    }

    /// The data of a posting in a final block.
    pub(crate) async fn posted_bytes(&self, posted: OnL1<'_>) -> Result<Result<Bytes, DataError>, L1Error> {
        match posted.layer() {
            Some(name) => self.layer(name).fetch(posted).await,
            None => Ok(Err(DataError::Absent)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blindfold_protocol::B256;

    #[test]
    fn what_a_transaction_carries_says_where_its_data_is() {
        let named = Bytes::from(ArchivedData::of(b"some data").unwrap().encode());
        let (none, plain, blob) = (Bytes::new(), Bytes::from(vec![2, 1, 0, 0, 0, 0]), [B256::ZERO]);
        let layer = |input: &Bytes, blobs: &[B256]| OnL1 { l1_block: 1, input, blobs }.layer();
        assert_eq!(layer(&none, &[]), None);
        assert_eq!(layer(&none, &blob), Some(LayerName::Blobs));
        assert_eq!(layer(&plain, &blob), Some(LayerName::Calldata));
        assert_eq!(layer(&named, &[]), Some(LayerName::Archive));
        // A part of data that is posted again, for a number that begins with the same byte.
        let part = Bytes::from(vec![named[0], named[1], 0, 0]);
        assert_eq!(layer(&part, &[]), Some(LayerName::Calldata));
    }

    #[tokio::test]
    async fn calldata_is_given_as_it_is() {
        let carried = Calldata.publish(b"some data").await.unwrap();
        assert!(carried.blobs.is_empty());
        let posted = OnL1 { l1_block: 1, input: &carried.input, blobs: &[] };
        assert_eq!(Calldata.fetch(posted).await, Ok(Ok(Bytes::from_static(b"some data"))));
    }
}
