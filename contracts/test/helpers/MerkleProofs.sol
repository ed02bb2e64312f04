// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @notice Merkle trees with their proofs, level by level, padding and all, written apart from the contracts' own.
library MerkleProofs {
    /// @notice The root over the leaves and the siblings of leaf `index`.
    function prove(bytes32[] memory leaves, uint256 index)
        internal
        pure
        returns (bytes32 root, bytes32[] memory proof)
    {
        uint256 depth = 0;
        while ((1 << depth) < leaves.length) depth++;
        bytes32[] memory level = new bytes32[](1 << depth);
        for (uint256 i = 0; i < leaves.length; i++) {
            level[i] = leaves[i];
        }
        proof = new bytes32[](depth);
        for (uint256 d = 0; d < depth; d++) {
            proof[d] = level[index ^ 1];
            bytes32[] memory next = new bytes32[](level.length / 2);
            for (uint256 i = 0; i < next.length; i++) {
                next[i] = keccak256(bytes.concat(hex"01", level[2 * i], level[2 * i + 1]));
            }
            level = next;
            index /= 2;
        }
        root = level[0];
    }
}
