// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @title Hashing of the sequencer's promises
library Promises {
    /// @dev Version of the structure.
    uint8 internal constant VERSION = 1;

    /// @dev keccak256 of the EIP-712 type.
    bytes32 internal constant TYPEHASH = keccak256("Promise(uint8 version,bytes32 envelopeId,uint64 sealBy)");

    /// @notice The promise to seal an envelope in a batch up to `sealBy`, as it is signed: `hashStruct` of EIP-712.
    function hash(bytes32 envelopeId, uint64 sealBy) internal pure returns (bytes32) {
        return keccak256(abi.encode(TYPEHASH, VERSION, envelopeId, sealBy));
    }
}
