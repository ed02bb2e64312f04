//! The EIP-712 structs that L1 hashes as well, and the one domain they live in.
//!
//! The structs of this module exist only to be hashed; the wire types convert into them.

use std::{cell::Cell, sync::LazyLock};

use crate::tags;
use alloy_primitives::{Address, B256, keccak256};
use alloy_sol_types::{Eip712Domain, SolStruct, sol};
use serde::{Deserialize, Serialize};

sol! {
    struct EnvelopeHeader {
        uint8 version;
        uint64 chainId;
        uint64 l1ChainId;
        address inbox;
        uint64 epoch;
        bytes32 encryptionKeyHash;
        address payer;
        uint64 feeNonce;
        uint128 maxFee;
        uint128 priorityFee;
        uint128 maxGasFee;
        uint64 gasLimit;
        uint64 expiry;
        uint8 flags;
    }

    struct Envelope {
        EnvelopeHeader header;
        bytes c;
        bytes16 d;
        bytes32 ciphertextHash;
    }

    struct BatchHeader {
        uint8 version;
        uint64 number;
        bytes32 parentHash;
        uint64 timestampMs;
        uint64 l1OriginNumber;
        bytes32 l1OriginHash;
        uint64 l1OriginTime;
        bytes32 envelopeRoot;
        bytes32 dataHash;
        uint32 envelopeCount;
        uint32 envelopeBytes;
        uint64 gas;
        uint128 baseFee;
        uint128 gasBaseFee;
        bytes32 feeLedgerRoot;
        uint64 forcedCursor;
        uint64 epoch;
        uint16 rules;
    }

    struct Promise {
        uint8 version;
        bytes32 envelopeId;
        bytes32 itemHash;
        uint64 sealBy;
    }

    struct Acknowledgement {
        uint8 version;
        uint64 epoch;
        uint64 number;
        bytes32 headerHash;
    }

    struct DataAttestation {
        uint8 version;
        uint64 epoch;
        uint64 firstNumber;
        uint64 lastNumber;
        uint8 kind;
        bytes32 dataHash;
    }

    struct Hello {
        uint8 version;
        string server;
        string peer;
        uint64 timestampMs;
        bytes16 nonce;
    }
}

/// The deployment id: where this rollup's contracts live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deployment {
    /// Chain id of L1, the domain's `chainId`.
    pub l1_chain_id: u64,
    /// The `BlindedInbox`, the domain's `verifyingContract`.
    pub inbox: Address,
}

impl Deployment {
    /// The EIP-712 domain of everything signed for this deployment.
    pub fn domain(&self) -> Eip712Domain {
        Eip712Domain::new(
            Some(tags::DOMAIN_NAME.into()),
            Some(tags::DOMAIN_VERSION.into()),
            Some(alloy_primitives::U256::from(self.l1_chain_id)),
            Some(self.inbox),
            None,
        )
    }

    /// EIP-712 hash of the domain: what every digest and the genesis hash begin with. Made once by each thread for as long as it
    /// asks for the same: it is half of what a digest takes.
    pub fn domain_separator(&self) -> B256 {
        thread_local! {
            static LAST: Cell<Option<(Deployment, B256)>> = const { Cell::new(None) };
        }
        match LAST.get() {
            Some((deployment, separator)) if deployment == *self => separator,
            _ => {
                let separator = self.domain().hash_struct();
                LAST.set(Some((*self, separator)));
                separator
            }
        }
    }

    /// The parent hash of the first header: `keccak256(GENESIS ‖ domainSeparator)` (HS-3).
    pub fn genesis_hash(&self) -> B256 {
        keccak256([tags::GENESIS, self.domain_separator().as_slice()].concat())
    }

    /// `keccak256(0x1901 ‖ domainSeparator ‖ structHash)`: what is signed for a struct.
    pub fn digest(&self, struct_hash: &B256) -> B256 {
        let separator = self.domain_separator();
        keccak256([&[0x19, 0x01], separator.as_slice(), struct_hash.as_slice()].concat())
    }
}

static HEADER_TYPE: LazyLock<B256> = LazyLock::new(type_hash::<EnvelopeHeader>);
static ENVELOPE_TYPE: LazyLock<B256> = LazyLock::new(type_hash::<Envelope>);

fn type_hash<T: SolStruct>() -> B256 {
    keccak256(T::eip712_encode_type().as_bytes())
}

/// [`struct_hash`] of an envelope's header. Every item of every batch is hashed by everybody, and the name of the type is
/// half of what there is to hash.
pub(crate) fn envelope_header_hash(header: &EnvelopeHeader) -> B256 {
    keccak256([HEADER_TYPE.as_slice(), &header.eip712_encode_data()].concat())
}

/// [`struct_hash`] of an envelope, given that of its header.
pub(crate) fn envelope_hash(header: &B256, c: &[u8], d: &[u8; 16], ciphertext_hash: &[u8; 32]) -> B256 {
    let c = keccak256(c);
    let parts = [ENVELOPE_TYPE.as_slice(), header.as_slice(), c.as_slice(), d, &[0; 16], ciphertext_hash];
    keccak256(parts.concat())
}

/// The struct hash, as L1 computes it.
pub(crate) fn struct_hash<T: SolStruct>(value: &T) -> B256 {
    value.eip712_hash_struct()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::Bytes;

    #[test]
    fn envelopes_are_hashed_as_every_struct_is() {
        let header = EnvelopeHeader {
            version: 1,
            chainId: 2,
            l1ChainId: 3,
            inbox: Address::repeat_byte(4),
            epoch: 5,
            encryptionKeyHash: B256::repeat_byte(6),
            payer: Address::repeat_byte(7),
            feeNonce: 8,
            maxFee: u128::MAX,
            priorityFee: 10,
            maxGasFee: 11,
            gasLimit: 12,
            expiry: u64::MAX,
            flags: 14,
        };
        let hash = envelope_header_hash(&header);
        assert_eq!(hash, struct_hash(&header));
        let (c, d, ciphertext_hash) = ([15; 48], [16; 16], [17; 32]);
        let envelope = Envelope {
            header,
            c: Bytes::copy_from_slice(&c),
            d: d.into(),
            ciphertextHash: ciphertext_hash.into(),
        };
        assert_eq!(envelope_hash(&hash, &c, &d, &ciphertext_hash), struct_hash(&envelope));
    }
}
