//! Payloads as they are stored: what a replay needs to bring back a block.

use std::fmt;

use alloy_primitives::B256;
use serde::{Deserialize, Serialize};

use crate::{BlockId, wire::ExecutionPayload};

/// Version of the stored form.
const VERSION: u8 = 1;

/// Longest stored payload that is read, in bytes: twice an 8 MiB block in hex, and room for its frame.
const STORED_PAYLOAD_LIMIT_BYTES: usize = 33 << 20;

/// Bytes that are no stored payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// Longer than any payload.
    #[error("a stored payload of {len} bytes exceeds {limit_bytes} bytes")]
    TooLarge {
        /// Its length.
        len: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// Not the JSON of a payload.
    #[error("a stored payload cannot be read: {reason}")]
    Malformed {
        /// What does not fit.
        reason: String,
    },
    /// Written by another version.
    #[error("a stored payload has version {version}, this program reads version {VERSION}")]
    UnknownVersion {
        /// The version found.
        version: u8,
    },
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Content {
    version: u8,
    parent_beacon_block_root: B256,
    execution_payload: ExecutionPayload,
}

/// A block in the Engine API's form together with its beacon root.
///
/// Stored as JSON (`{"version":1,"parentBeaconBlockRoot":…,"executionPayload":…}`), so that it outlives a
/// change of client. The client checks it against the block hash on import: storage need not be trusted.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredPayload(Box<Content>);

impl StoredPayload {
    pub(crate) fn new(execution_payload: ExecutionPayload, parent_beacon_block_root: B256) -> Self {
        Self(Box::new(Content { version: VERSION, parent_beacon_block_root, execution_payload }))
    }

    /// The bytes to store.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).expect("strings, numbers and lists always have a JSON form")
    }

    /// Reads what [`encode`](Self::encode) wrote. Malformed, oversized and foreign bytes are errors.
    pub fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        if bytes.len() > STORED_PAYLOAD_LIMIT_BYTES {
            return Err(PayloadError::TooLarge { len: bytes.len(), limit_bytes: STORED_PAYLOAD_LIMIT_BYTES });
        }
        #[derive(Deserialize)]
        struct Versioned {
            version: u8,
        }
        let malformed = |error: serde_json::Error| PayloadError::Malformed { reason: error.to_string() };
        let Versioned { version } = serde_json::from_slice(bytes).map_err(malformed)?;
        if version != VERSION {
            return Err(PayloadError::UnknownVersion { version });
        }
        Ok(Self(serde_json::from_slice(bytes).map_err(malformed)?))
    }

    /// The block it makes.
    pub fn id(&self) -> BlockId {
        let payload = self.execution_payload();
        BlockId {
            number: payload.block_number.to(),
            hash: payload.block_hash,
            timestamp: payload.timestamp.to(),
        }
    }

    /// The parent of that block.
    pub fn parent_hash(&self) -> B256 {
        self.execution_payload().parent_hash
    }

    pub(crate) fn execution_payload(&self) -> &ExecutionPayload {
        &self.0.execution_payload
    }

    pub(crate) fn parent_beacon_block_root(&self) -> B256 {
        self.0.parent_beacon_block_root
    }
}

impl fmt::Debug for StoredPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredPayload")
            .field("block", &self.id())
            .field("transactions", &self.execution_payload().transactions.len())
            .finish()
    }
}
