// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { MerkleTree } from "../../src/libraries/MerkleTree.sol";

/// @notice Roots and proofs of small trees, for tests.
library MerkleProofs {
    /// @notice The root over `leaves`, and the siblings from leaf `index` up.
    function prove(bytes32[] memory leaves, uint256 index)
        internal
        pure
        returns (bytes32 root, bytes32[] memory siblings)
    {
        uint256 width = MerkleTree.width(leaves.length);
        bytes32[] memory level = new bytes32[](width);
        for (uint256 i = 0; i < leaves.length; i++) {
            level[i] = leaves[i];
        }
        uint256 depth = 0;
        while ((1 << depth) < width) depth++;
        siblings = new bytes32[](depth);
        for (uint256 d = 0; d < depth; d++) {
            siblings[d] = level[index ^ 1];
            index /= 2;
            width /= 2;
            for (uint256 i = 0; i < width; i++) {
                level[i] = MerkleTree.node(level[2 * i], level[2 * i + 1]);
            }
        }
        root = leaves.length == 0 ? bytes32(0) : level[0];
    }
}
