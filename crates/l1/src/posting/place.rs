//! Where data goes, and how much of it one transaction brings there.

use alloy_primitives::{Bytes, keccak256};
use blindfold_protocol::{B256, Canonical};
use serde::{Deserialize, Serialize};

use crate::posting::archived::ArchivedData;

/// The longest transaction that nodes relay from one to another.
pub const MAX_TRANSACTION_BYTES: usize = 128 * 1024;
/// What a transaction of `postData` has beside its data, with room to spare.
pub(crate) const POST_DATA_OVERHEAD_BYTES: usize = 512;
/// The data in the input of one transaction of `postData`.
pub(crate) const POST_DATA_ROOM_BYTES: usize = MAX_TRANSACTION_BYTES - POST_DATA_OVERHEAD_BYTES;

/// Where the data of posted runs and hints goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataPlace {
    /// In the transaction's input: dear, and there for good.
    #[default]
    Calldata,
    /// In blobs (EIP-4844), which beacon nodes keep for some weeks.
    Blobs,
}

/// The layers that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerName {
    Calldata,
    Blobs,
    Archive,
}

impl From<DataPlace> for LayerName {
    fn from(place: DataPlace) -> Self {
        match place {
            DataPlace::Calldata => Self::Calldata,
            DataPlace::Blobs => Self::Blobs,
        }
    }
}

/// What stands for the same bytes in whichever transaction it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DataName {
    /// Data of archives.
    Archived(ArchivedData),
    /// keccak256 of the versioned hashes of blobs, in order.
    Blobs(B256),
}

/// What a posted transaction carried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnL1<'a> {
    /// The block that it is in.
    pub l1_block: u64,
    pub input: &'a Bytes,
    /// Versioned hashes of its blobs.
    pub blobs: &'a [B256],
}

impl OnL1<'_> {
    /// Where the data is; `None` for none.
    pub fn layer(&self) -> Option<LayerName> {
        match (self.input.is_empty(), self.blobs.is_empty()) {
            (false, _) if ArchivedData::is_named_by(self.input) => Some(LayerName::Archive),
            (false, _) => Some(LayerName::Calldata),
            (true, false) => Some(LayerName::Blobs),
            (true, true) => None,
        }
    }

    /// What it names in archives.
    pub fn archived(&self) -> Option<ArchivedData> {
        ArchivedData::decode(self.input).ok()
    }

    /// The name of its blobs, where the data is there.
    pub fn in_blobs(&self) -> Option<DataName> {
        let hashes = || self.blobs.iter().flat_map(|hash| hash.0).collect::<Vec<u8>>();
        (self.layer() == Some(LayerName::Blobs)).then(|| DataName::Blobs(keccak256(hashes())))
    }
}
