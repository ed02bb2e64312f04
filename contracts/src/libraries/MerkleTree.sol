// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @title Tagged Merkle trees of docs/protocol.md
/// @notice Leaf `keccak256(0x00 ‖ data)`, node `keccak256(0x01 ‖ left ‖ right)`; missing leaves are 32 zero bytes
/// up to the next power of two; the empty tree's root is 32 zero bytes. The tags keep a node from passing for a
/// leaf; whoever verifies a proof must know the count from elsewhere, since it fixes the depth.
library MerkleTree {
    /// @notice A leaf over 32 bytes of data.
    function leaf(bytes32 data) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(hex"00", data));
    }

    /// @notice The parent of two nodes.
    function node(bytes32 left, bytes32 right) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(hex"01", left, right));
    }

    /// @notice The number of leaves with padding: the least power of two ≥ `count`; 0 for 0.
    function width(uint256 count) internal pure returns (uint256 padded) {
        if (count == 0) return 0;
        padded = 1;
        while (padded < count) padded *= 2;
    }

    /// @notice The leaves `from .. to` alone, with those that are missing up to a power of two.
    function slice(bytes32[] memory leaves, uint256 from, uint256 to)
        internal
        pure
        returns (bytes32[] memory part)
    {
        part = new bytes32[](width(to - from));
        for (uint256 i = from; i < to; i++) {
            part[i - from] = leaves[i];
        }
    }

    /// @notice The root over `leaves`, whose length is a power of two or zero. Overwrites the array.
    function rootInPlace(bytes32[] memory leaves) internal pure returns (bytes32) {
        uint256 length = leaves.length;
        if (length == 0) return bytes32(0);
        while (length > 1) {
            length /= 2;
            // A pair stands side by side, so it is copied behind the tag at once and hashed there, above the free
            // memory: the nodes are a good part of what one more batch costs in a long run.
            assembly ("memory-safe") {
                let buffer := mload(0x40)
                mstore8(buffer, 0x01)
                let to := add(leaves, 32)
                let end := add(to, shl(5, length))
                for { let from := to } lt(to, end) { to := add(to, 32) } {
                    mcopy(add(buffer, 1), from, 64)
                    mstore(to, keccak256(buffer, 65))
                    from := add(from, 64)
                }
            }
        }
        return leaves[0];
    }

    /// @notice Whether `leaf_` is leaf `index` of the tree of `count` leaves with that root.
    /// @dev False when the index is not below the count or the proof has not exactly the tree's depth.
    function verify(bytes32 root, uint256 count, uint256 index, bytes32 leaf_, bytes32[] calldata proof)
        internal
        pure
        returns (bool)
    {
        (bool fits, bytes32 found) = rootFromProof(count, index, leaf_, proof);
        return fits && found == root;
    }

    /// @notice The root that `proof` leads to from leaf `index` of a tree of `count` leaves; for a tree whose root is
    /// only known hashed together with its count.
    /// @return fits Whether the index is below the count and the proof has exactly the tree's depth; the root means
    /// nothing where not.
    function rootFromProof(uint256 count, uint256 index, bytes32 leaf_, bytes32[] calldata proof)
        internal
        pure
        returns (bool fits, bytes32 root)
    {
        if (index >= count || proof.length >= 64) return (false, bytes32(0));
        if (width(count) != uint256(1) << proof.length) return (false, bytes32(0));
        root = leaf_;
        for (uint256 i = 0; i < proof.length; i++) {
            root = (index >> i) & 1 == 0 ? node(root, proof[i]) : node(proof[i], root);
        }
        return (true, root);
    }
}
