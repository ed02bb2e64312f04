// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @notice The fee ledger's tree by its definition, written apart from the contracts' own: entries in any order, parted
/// by the bits of their keys. Both arrays are reordered.
library LedgerTrees {
    /// @notice The root over the entries.
    function root(bytes32[] memory keys, bytes32[] memory leaves) internal pure returns (bytes32) {
        return subtree(keys, leaves, 0, keys.length, 0);
    }

    /// @notice Siblings from the root down to where `key` stands or would stand.
    function siblings(bytes32[] memory keys, bytes32[] memory leaves, bytes32 key)
        internal
        pure
        returns (bytes32[] memory path)
    {
        path = new bytes32[](256);
        uint256 from = 0;
        uint256 to = keys.length;
        uint256 depth = 0;
        for (; to - from > 1; depth++) {
            uint256 middle = part(keys, leaves, from, to, depth);
            if (bit(key, depth)) {
                path[depth] = subtree(keys, leaves, from, middle, depth + 1);
                from = middle;
            } else {
                path[depth] = subtree(keys, leaves, middle, to, depth + 1);
                to = middle;
            }
        }
        assembly ("memory-safe") {
            mstore(path, depth)
        }
    }

    function subtree(bytes32[] memory keys, bytes32[] memory leaves, uint256 from, uint256 to, uint256 depth)
        private
        pure
        returns (bytes32 node)
    {
        if (from == to) return bytes32(0);
        if (to == from + 1) return leaves[from];
        // Levels on which all stand on one side come in a loop: there may be more than a stack holds.
        uint256 top = depth;
        uint256 middle = part(keys, leaves, from, to, depth);
        while (middle == from || middle == to) {
            middle = part(keys, leaves, from, to, ++depth);
        }
        node = subtree(keys, leaves, from, middle, depth + 1);
        node = keccak256(bytes.concat(hex"01", node, subtree(keys, leaves, middle, to, depth + 1)));
        for (; depth > top; depth--) {
            node = bit(keys[from], depth - 1)
                ? keccak256(bytes.concat(hex"01", bytes32(0), node))
                : keccak256(bytes.concat(hex"01", node, bytes32(0)));
        }
    }

    /// @dev Those of `from .. to` whose bit is 0 come first; where the others begin.
    function part(bytes32[] memory keys, bytes32[] memory leaves, uint256 from, uint256 to, uint256 depth)
        private
        pure
        returns (uint256 middle)
    {
        middle = from;
        for (uint256 i = from; i < to; i++) {
            if (bit(keys[i], depth)) continue;
            (keys[i], keys[middle]) = (keys[middle], keys[i]);
            (leaves[i], leaves[middle]) = (leaves[middle], leaves[i]);
            middle++;
        }
    }

    function bit(bytes32 key, uint256 depth) private pure returns (bool) {
        return uint256(key) & (1 << (255 - depth)) != 0;
    }
}
