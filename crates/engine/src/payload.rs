//! Payloads as they are stored: what a replay needs to bring back a block.

use std::fmt;

use alloy_primitives::B256;
use op_alloy_rpc_types_engine::OpExecutionPayloadV4;
use serde::{Deserialize, Serialize};

use crate::{BlockId, wire};

/// Version of the stored form.
const VERSION: u8 = 1;

/// Longest stored payload that is read, in bytes: twice an 8 MiB block in hex, and room for its frame.
const STORED_PAYLOAD_LIMIT_BYTES: usize = 33 << 20;

/// Bytes that are no stored payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// The bytes are more than any payload has.
    #[error("a stored payload of {len} bytes exceeds {limit_bytes} bytes")]
    TooLarge {
        /// How many bytes there are.
        len: usize,
        /// The most that a payload has, in bytes.
        limit_bytes: usize,
    },
    /// Not the JSON of a payload.
    #[error("a stored payload cannot be read: {reason}")]
    Malformed {
        /// What does not fit the form.
        reason: String,
    },
    /// Another version of this program wrote it.
    #[error("a stored payload has version {version}, this program reads version {VERSION}")]
    UnknownVersion {
        /// The version that it states.
        version: u8,
    },
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Content {
    version: u8,
    parent_beacon_block_root: B256,
    execution_payload: OpExecutionPayloadV4,
}

/// A block in the Engine API's form together with its beacon root.
///
/// Stored as JSON (`{"version":1,"parentBeaconBlockRoot":…,"executionPayload":…}`), so that it outlives a
/// change of client. The client checks it against the block hash on import: storage need not be trusted.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredPayload(Box<Content>);

impl StoredPayload {
    pub(crate) fn new(execution_payload: OpExecutionPayloadV4, parent_beacon_block_root: B256) -> Self {
        Self(Box::new(Content { version: VERSION, parent_beacon_block_root, execution_payload }))
    }

    /// The bytes to store, from which it is read back.
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

    /// The block that it makes, by number, hash and time.
    pub fn id(&self) -> BlockId {
        let block = wire::block(self.execution_payload());
        BlockId { number: block.block_number, hash: block.block_hash, timestamp: block.timestamp }
    }

    /// The parent of that block.
    pub fn parent_hash(&self) -> B256 {
        wire::block(self.execution_payload()).parent_hash
    }

    pub(crate) fn execution_payload(&self) -> &OpExecutionPayloadV4 {
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
            .field("transactions", &wire::block(self.execution_payload()).transactions.len())
            .finish()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use alloy_primitives::{Address, Bloom, Bytes, U256};
    use alloy_rpc_types_engine::{ExecutionPayloadV1, ExecutionPayloadV2, ExecutionPayloadV3};
    use proptest::prelude::*;

    use super::*;

    /// A payload with this number, hash and parent, and these transactions; not a valid block.
    pub(crate) fn sample(number: u64, hash: B256, parent: B256, transactions: Vec<Bytes>) -> StoredPayload {
        let block = ExecutionPayloadV1 {
            parent_hash: parent,
            fee_recipient: Address::repeat_byte(1),
            state_root: B256::repeat_byte(2),
            receipts_root: B256::repeat_byte(3),
            logs_bloom: Bloom::ZERO,
            prev_randao: B256::repeat_byte(4),
            block_number: number,
            gas_limit: 30_000_000,
            gas_used: 21_000,
            timestamp: number.saturating_add(100),
            extra_data: Bytes::new(),
            base_fee_per_gas: U256::from(7),
            block_hash: hash,
            transactions,
        };
        let payload_inner = ExecutionPayloadV3 {
            payload_inner: ExecutionPayloadV2 { payload_inner: block, withdrawals: Vec::new() },
            blob_gas_used: 0,
            excess_blob_gas: 0,
        };
        StoredPayload::new(
            OpExecutionPayloadV4 { payload_inner, withdrawals_root: B256::repeat_byte(5) },
            B256::repeat_byte(6),
        )
    }

    proptest! {
        #[test]
        fn decodes_what_it_encodes(
            number: u64,
            hash: [u8; 32],
            list in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..5),
        ) {
            let list = list.into_iter().map(Bytes::from).collect();
            let payload = sample(number, hash.into(), B256::repeat_byte(9), list);
            let decoded = StoredPayload::decode(&payload.encode()).unwrap();
            prop_assert_eq!(&decoded, &payload);
            prop_assert_eq!(decoded.id(), payload.id());
            prop_assert_eq!(decoded.parent_hash(), B256::repeat_byte(9));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = StoredPayload::decode(&bytes);
        }

        #[test]
        fn damaged_payloads_never_panic(position in 0usize..1_500, byte: u8) {
            let payload = sample(1, B256::repeat_byte(7), B256::repeat_byte(8), vec![Bytes::from_static(b"abc")]);
            let mut bytes = payload.encode();
            let position = position % bytes.len();
            bytes[position] = byte;
            let _ = StoredPayload::decode(&bytes);
            let _ = StoredPayload::decode(&bytes[..position]);
        }
    }

    /// What lies on disks already must be read for ever, and clients know the payload in these words.
    #[test]
    fn the_stored_form_does_not_change() {
        let payload = sample(9, B256::repeat_byte(7), B256::repeat_byte(8), vec![Bytes::from_static(b"abc")]);
        let repeated = |byte: &str, count: usize| format!("\"0x{}\"", byte.repeat(count));
        let expected = [
            r#"{"version":1,"parentBeaconBlockRoot":"#,
            &repeated("06", 32),
            r#","executionPayload":{"parentHash":"#,
            &repeated("08", 32),
            r#","feeRecipient":"#,
            &repeated("01", 20),
            r#","stateRoot":"#,
            &repeated("02", 32),
            r#","receiptsRoot":"#,
            &repeated("03", 32),
            r#","logsBloom":"#,
            &repeated("00", 256),
            r#","prevRandao":"#,
            &repeated("04", 32),
            r#","blockNumber":"0x9","gasLimit":"0x1c9c380","gasUsed":"0x5208","timestamp":"0x6d","extraData":"0x","#,
            r#""baseFeePerGas":"0x7","blockHash":"#,
            &repeated("07", 32),
            r#","transactions":["0x616263"],"withdrawals":[],"blobGasUsed":"0x0","excessBlobGas":"0x0","#,
            r#""withdrawalsRoot":"#,
            &repeated("05", 32),
            "}}",
        ]
        .concat();
        assert_eq!(String::from_utf8(payload.encode()).unwrap(), expected);
        assert_eq!(StoredPayload::decode(expected.as_bytes()).unwrap(), payload);
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let good = sample(1, B256::ZERO, B256::ZERO, Vec::new()).encode();
        let text = String::from_utf8(good).unwrap();
        let version = StoredPayload::decode(text.replace("\"version\":1", "\"version\":2").as_bytes());
        assert_eq!(version, Err(PayloadError::UnknownVersion { version: 2 }));
        let trailing = StoredPayload::decode(format!("{text}x").as_bytes());
        assert!(matches!(trailing, Err(PayloadError::Malformed { .. })));
        let unknown_field = text.replace("\"version\":1", "\"version\":1,\"more\":0");
        assert!(matches!(
            StoredPayload::decode(unknown_field.as_bytes()),
            Err(PayloadError::Malformed { .. })
        ));
        let long = vec![b' '; STORED_PAYLOAD_LIMIT_BYTES + 1];
        assert!(matches!(StoredPayload::decode(&long), Err(PayloadError::TooLarge { .. })));
    }

    #[test]
    fn shows_no_transactions() {
        let payload = sample(3, B256::ZERO, B256::ZERO, vec![Bytes::from_static(b"\xaa\xbb\xcc")]);
        assert!(!format!("{payload:?}").contains("aabbcc"));
    }
}
