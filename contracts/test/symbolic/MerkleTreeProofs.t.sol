// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { MerkleTree } from "../../src/libraries/MerkleTree.sol";
import { Symbolic } from "./Symbolic.sol";

/// @dev The library takes calldata.
contract MerkleDoor {
    function verify(bytes32 root, uint256 count, uint256 index, bytes32 leaf, bytes32[] calldata proof)
        external
        pure
        returns (bool)
    {
        return MerkleTree.verify(root, count, index, leaf, proof);
    }

    function rootFromProof(uint256 count, uint256 index, bytes32 leaf, bytes32[] calldata proof)
        external
        pure
        returns (bool fits, bytes32 root)
    {
        return MerkleTree.rootFromProof(count, index, leaf, proof);
    }
}

/// @dev Hashes are taken to collide nowhere; of the proofs each length of a range is tried.
contract MerkleTreeProofs is Symbolic {
    MerkleDoor internal door = new MerkleDoor();

    /// @dev A proof fits just the indices below the count, and by its length just the counts of its tree's depth.
    /// @custom:halmos --array-lengths proof={0,1,2,3,4} --loop 260
    function check_ProofFitsIndexAndCount(
        uint256 count,
        uint256 index,
        bytes32 leaf,
        bytes32[] calldata proof
    ) public view {
        // Above 2^255 no power of two is left, and the call reverts.
        (bool fits,) = door.rootFromProof(count, index, leaf, proof);
        uint256 widest = uint256(1) << proof.length;
        assert(fits == (index < count && count <= widest && count > widest / 2));
    }

    /// @dev Under one root, count and index stand one leaf and one proof.
    /// @custom:halmos --array-lengths first={0,1,2,3},second={0,1,2,3} --loop 10
    function check_OneLeafAtAnIndex(
        bytes32 root,
        uint8 count,
        uint256 index,
        bytes32 leaf,
        bytes32 other,
        bytes32[] calldata first,
        bytes32[] calldata second
    ) public view {
        vm.assume(door.verify(root, count, index, leaf, first));
        vm.assume(door.verify(root, count, index, other, second));
        assert(leaf == other && first.length == second.length);
        for (uint256 i = 0; i < first.length; i++) {
            assert(first[i] == second[i]);
        }
    }

    /// @dev Every leaf of the tree that `rootInPlace` hashes is proved by the siblings on its way.
    function check_EveryLeafIsProved(bytes32[4] calldata leaves) public view {
        bytes32[2] memory nodes =
            [MerkleTree.node(leaves[0], leaves[1]), MerkleTree.node(leaves[2], leaves[3])];
        for (uint256 count = 3; count <= 4; count++) {
            bytes32[] memory padded = new bytes32[](4);
            for (uint256 i = 0; i < 4; i++) {
                padded[i] = leaves[i];
            }
            bytes32 root = MerkleTree.rootInPlace(padded);
            for (uint256 i = 0; i < count; i++) {
                bytes32[] memory proof = new bytes32[](2);
                (proof[0], proof[1]) = (leaves[i ^ 1], nodes[1 - i / 2]);
                assert(door.verify(root, count, i, leaves[i], proof));
            }
        }
    }
}
