//! The EIP-712 structs that L1 hashes as well, and the one domain they live in.
//!
//! The structs of this module exist only to be hashed; the wire types convert into them.

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

    /// EIP-712 hash of the domain: what every digest and the genesis hash begin with.
    pub fn domain_separator(&self) -> B256 {
        self.domain().hash_struct()
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

/// The struct hash, as L1 computes it.
pub(crate) fn struct_hash<T: SolStruct>(value: &T) -> B256 {
    value.eip712_hash_struct()
}
