// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { EnvelopeParts, Envelopes } from "../../src/libraries/Envelopes.sol";
import { HintData } from "../../src/libraries/HintData.sol";
import { MessageStream } from "../../src/libraries/MessageStream.sol";

/// @dev Calldata doors to the libraries that hints need.
contract HintLibraries {
    function decode(bytes calldata item) external pure returns (EnvelopeParts memory) {
        return Envelopes.decode(item);
    }

    function id(bytes calldata item) external pure returns (bytes32) {
        return Envelopes.id(Envelopes.decode(item));
    }

    function postingRoot(bytes calldata data, uint64 first, uint64 last) external pure returns (bytes32) {
        return HintData.postingRoot(data, first, last);
    }

    function rootOf(HintData.Place calldata place, bytes calldata chunk, bytes32[] calldata proof)
        external
        pure
        returns (bytes32)
    {
        return HintData.rootOf(place, chunk, proof);
    }

    function entry(bytes calldata chunk, uint256 index) external pure returns (uint8 kind, bytes16 key) {
        return HintData.entry(chunk, index);
    }

    function decrypt(bytes16 key, bytes32 ad, bytes calldata e) external view returns (bytes memory) {
        return MessageStream.decrypt(key, ad, e);
    }
}
