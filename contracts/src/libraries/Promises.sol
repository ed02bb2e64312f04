// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { EnvelopeTree } from "./EnvelopeTree.sol";

/// @title The sequencer's promises: hashes, and what keeps one
library Promises {
    /// @dev Version of the structure.
    uint8 internal constant VERSION = 2;

    /// @dev keccak256 of the EIP-712 type.
    bytes32 internal constant TYPEHASH =
        keccak256("Promise(uint8 version,bytes32 envelopeId,bytes32 itemHash,uint64 sealBy)");

    /// @notice The promise to seal an item in a batch up to `sealBy`, as it is signed: `hashStruct` of EIP-712. The id
    /// alone would not do, for signature and proof do not change it: a copy that no rule accepts has the same.
    function hash(bytes32 envelopeId, bytes32 itemHash, uint64 sealBy) internal pure returns (bytes32) {
        return keccak256(abi.encode(TYPEHASH, VERSION, envelopeId, itemHash, sealBy));
    }

    /// @notice Whether the promised item keeps its promise by standing in a batch with this verdict: it was accepted, or it
    /// stands in that batch already; or, in the last batch that keeps the promise, its payer has spoilt it. What a batch
    /// before that one says may be older than the promise.
    function keptBy(uint8 code, bool atLast) internal pure returns (bool) {
        bool spoilt = code == EnvelopeTree.FEE_NONCE_USED || code == EnvelopeTree.INSUFFICIENT_FUNDS;
        return code == EnvelopeTree.ACCEPTED || code == EnvelopeTree.DUPLICATE || (atLast && spoilt);
    }
}
