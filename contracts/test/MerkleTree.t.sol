// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { MerkleTree } from "../src/libraries/MerkleTree.sol";
import { MerkleProofs } from "./helpers/MerkleProofs.sol";
import { Test } from "./helpers/Test.sol";

contract MerkleTreeTest is Test {
    uint256 internal constant MOST = 20;

    function verify(bytes32 root, uint256 count, uint256 index, bytes32 leaf, bytes32[] calldata proof)
        external
        pure
        returns (bool)
    {
        return MerkleTree.verify(root, count, index, leaf, proof);
    }

    function leavesOf(uint256 count, uint256 seed) internal pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](count);
        for (uint256 i = 0; i < count; i++) {
            leaves[i] = keccak256(abi.encode(seed, i));
        }
    }

    function shortened(bytes32[] memory proof, uint256 by) internal pure returns (bytes32[] memory part) {
        part = new bytes32[](proof.length - by);
        for (uint256 i = 0; i < part.length; i++) {
            part[i] = proof[i + by];
        }
    }

    /// @dev Every leaf, and everything else that hashes up to the root: a node in place of a leaf, with the rest of the
    /// path, and the root of one leaf.
    function testFuzzOnlyLeavesAtTheirPlaces(uint256 count, uint256 seed) public view {
        count = 1 + count % MOST;
        bytes32[] memory leaves = leavesOf(count, seed);
        bytes32 root = MerkleTree.rootInPlace(MerkleTree.slice(leaves, 0, count));
        for (uint256 i = 0; i < count; i++) {
            (bytes32 expected, bytes32[] memory proof) = MerkleProofs.prove(leaves, i);
            checkEqual(root, expected, "root");
            check(this.verify(root, count, i, leaves[i], proof), "a leaf");
            if (proof.length == 0) continue;
            bytes32 up =
                i % 2 == 0 ? MerkleTree.node(leaves[i], proof[0]) : MerkleTree.node(proof[0], leaves[i]);
            check(!this.verify(root, count, i / 2, up, shortened(proof, 1)), "a node");
            check(!this.verify(root, count, i, root, new bytes32[](0)), "the root");
            check(!this.verify(root, 2 * MerkleTree.width(count), i, leaves[i], proof), "of a deeper tree");
            // The padding is no leaf.
            check(!this.verify(root, count, count, bytes32(0), proof), "behind the last");
        }
    }

    function testFuzzSliceIsItsOwnTree(uint256 from, uint256 length, uint256 seed) public pure {
        bytes32[] memory leaves = leavesOf(MOST, seed);
        from %= MOST;
        length %= MOST - from + 1;
        bytes32[] memory part = new bytes32[](length);
        for (uint256 i = 0; i < length; i++) {
            part[i] = leaves[from + i];
        }
        bytes32 root = MerkleTree.rootInPlace(MerkleTree.slice(leaves, from, from + length));
        if (length == 0) return checkEqual(root, bytes32(0), "of none");
        (bytes32 expected,) = MerkleProofs.prove(part, 0);
        checkEqual(root, expected, "root");
    }

    function testWidths() public pure {
        uint256[8] memory counts = [uint256(0), 1, 2, 3, 4, 5, 64, 65];
        uint256[8] memory widths = [uint256(0), 1, 2, 4, 4, 8, 64, 128];
        for (uint256 i = 0; i < counts.length; i++) {
            checkEqual(MerkleTree.width(counts[i]), widths[i], "width");
        }
    }

    function testProofsHaveAnEnd() public view {
        check(!this.verify(bytes32(0), type(uint256).max, 0, bytes32(0), new bytes32[](64)), "64 siblings");
        check(!this.verify(bytes32(0), 0, 0, bytes32(0), new bytes32[](0)), "of none");
    }
}
