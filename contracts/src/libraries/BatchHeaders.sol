// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @notice The header of one batch, field by field as in docs/protocol.md.
struct BatchHeader {
    /// Version of the structure: 2.
    uint8 version;
    /// Batch number: the parent's plus one. The first is 1.
    uint64 number;
    /// Header hash of the parent, or the genesis hash.
    bytes32 parentHash;
    /// Milliseconds since the Unix epoch.
    uint64 timestampMs;
    /// Number of the final L1 block that the batch refers to.
    uint64 l1OriginNumber;
    /// Hash of that block.
    bytes32 l1OriginHash;
    /// Timestamp of that block, in seconds.
    uint64 l1OriginTime;
    /// Merkle root over the items.
    bytes32 envelopeRoot;
    /// Merkle root over the chunks of the batch's data; zero in a header that L1 made.
    bytes32 dataHash;
    /// Number of items.
    uint32 envelopeCount;
    /// Sum of the items' lengths in bytes.
    uint32 envelopeBytes;
    /// Sum of the gas limits of the accepted items.
    uint64 gas;
    /// Ordering fee per item byte, in wei.
    uint128 baseFee;
    /// Ordering fee per unit of gas that an envelope reserves, in wei.
    uint128 gasBaseFee;
    /// Commitment to all fee accounts after this batch.
    bytes32 feeLedgerRoot;
    /// How many entries of the forced queue are consumed after this batch.
    uint64 forcedCursor;
    /// Epoch of the committee that certifies this number.
    uint64 epoch;
    /// The rule set that the header obeys.
    uint16 rules;
}

/// @title Hashing of batch headers
library BatchHeaders {
    /// @dev The version this code understands.
    uint8 internal constant VERSION = 2;

    /// @dev keccak256 of the EIP-712 type.
    bytes32 internal constant TYPEHASH = keccak256(
        "BatchHeader(uint8 version,uint64 number,bytes32 parentHash,uint64 timestampMs,uint64 l1OriginNumber,bytes32 l1OriginHash,uint64 l1OriginTime,bytes32 envelopeRoot,bytes32 dataHash,uint32 envelopeCount,uint32 envelopeBytes,uint64 gas,uint128 baseFee,uint128 gasBaseFee,bytes32 feeLedgerRoot,uint64 forcedCursor,uint64 epoch,uint16 rules)"
    );

    /// @notice The header hash: `hashStruct` of EIP-712. A field that exceeds its type's range is hashed as it is: nobody
    /// has signed such a hash.
    function hash(BatchHeader calldata header) internal pure returns (bytes32 headerHash) {
        bytes32 typehash = TYPEHASH;
        assembly ("memory-safe") {
            let buffer := mload(0x40)
            mstore(buffer, typehash)
            calldatacopy(add(buffer, 32), header, 576) // 18 fields
            headerHash := keccak256(buffer, 608)
        }
    }

    /// @notice The header hash of a header that was made here.
    function hashMade(BatchHeader memory header) internal pure returns (bytes32) {
        return keccak256(abi.encode(TYPEHASH, header));
    }
}
