// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { HintData } from "../src/libraries/HintData.sol";
import { HintFixture } from "./helpers/HintFixture.sol";
import { HintLibraries } from "./helpers/HintLibraries.sol";
import { MerkleProofs } from "./helpers/MerkleProofs.sol";

contract HintDataTest is HintFixture {
    function setUp() public {
        caller = new HintLibraries();
    }

    /// @dev Entries and releases of any bytes, as many of one as of the other: structure does not look at them.
    function anyEntries(uint256[] memory counts) internal pure returns (BatchHints[] memory hints_) {
        hints_ = new BatchHints[](counts.length);
        for (uint256 i = 0; i < counts.length; i++) {
            hints_[i].entries = anyBytes(17 * counts[i], i);
            hints_[i].releases = anyBytes(48 * counts[(i + 1) % counts.length], i + 3);
        }
    }

    function anyBytes(uint256 length, uint256 seed) internal pure returns (bytes memory out) {
        out = new bytes(length);
        for (uint256 j = 0; j < length; j += 5) {
            out[j] = bytes1(uint8(seed * 31 + j * 7 + 1));
        }
    }

    function three(uint256 a, uint256 b, uint256 c) internal pure returns (uint256[] memory list) {
        list = new uint256[](3);
        (list[0], list[1], list[2]) = (a, b, c);
    }

    function testRootAtChunkEdges() public view {
        uint256[6] memory sizes = [uint256(0), 1, 127, 128, 129, 257];
        for (uint256 i = 0; i < sizes.length; i++) {
            BatchHints[] memory entries = anyEntries(three(sizes[i], sizes[(i + 1) % 6], sizes[(i + 4) % 6]));
            checkEqual(caller.postingRoot(encode(entries), 7, 9), rootOf(7, entries), "root");
        }
    }

    function testOneEmptyBatch() public view {
        bytes32 leaf =
            dataLeaf(abi.encodePacked(uint64(5), uint32(0), uint32(0), keccak256(""), keccak256("")));
        bytes32 root = caller.postingRoot(hex"02000000010000000000000000", 5, 5);
        checkEqual(root, keccak256(abi.encode(uint256(1), leaf)), "root");
    }

    function testFuzzRoot(uint256[3] memory sizes, uint64 first) public view {
        first = uint64(bound(first, 1, type(uint64).max - 2));
        BatchHints[] memory entries = anyEntries(three(sizes[0] % 150, sizes[1] % 30, sizes[2] % 150));
        bytes memory data = encode(entries);
        checkEqual(caller.postingRoot(data, first, first + 2), rootOf(first, entries), "root");
    }

    /// @dev Every chunk proves, and nothing about its place can be told otherwise.
    function testFuzzProofs(uint256[3] memory sizes, uint256 chosen, uint256 changed) public view {
        BatchHints[] memory entries = anyEntries(three(sizes[0] % 300, sizes[1] % 3, sizes[2] % 300));
        bytes32[] memory leaves = chunkLeaves(40, entries);
        chosen = bound(chosen, 0, leaves.length - 1);
        uint256 batch = 2;
        while (leafAt(entries, batch) > chosen) batch--;
        HintData.Place memory place = HintData.Place({
            number: 40 + uint64(batch),
            count: uint32(entries[batch].entries.length / 17),
            chunkIndex: uint32(chosen - leafAt(entries, batch)),
            leafIndex: chosen,
            leafCount: leaves.length,
            releases: commitmentOf(entries[batch].releases)
        });
        bytes memory chunk = chunkOf(entries[batch].entries, place.chunkIndex);
        (, bytes32[] memory proof) = MerkleProofs.prove(leaves, chosen);
        bytes32 root = rootOf(40, entries);
        checkEqual(caller.rootOf(place, chunk, proof), root, "root");

        changed %= 9;
        if (changed == 0) place.number++;
        else if (changed == 1) place.count++;
        else if (changed == 2) place.chunkIndex++;
        else if (changed == 3) place.leafIndex++;
        else if (changed == 4) place.leafCount++;
        else if (changed == 5) place.leafIndex += 1 << proof.length;
        else if (changed == 6) place.releases ^= bytes32(uint256(1));
        else if (changed == 7) proof = new bytes32[](proof.length + 1);
        else chunk = bytes.concat(chunk, hex"00");
        check(caller.rootOf(place, chunk, proof) != root, "another place");
    }

    function testFuzzEntry(uint256 count, uint256 index) public view {
        count = bound(count, 1, 300);
        index = bound(index, 0, count - 1);
        bytes memory entries = anyEntries(three(count, 0, 0))[0].entries;
        (uint8 kind, bytes16 key) = caller.entry(chunkOf(entries, index / 128), index);
        checkEqual(kind, uint8(entries[17 * index]), "kind");
        for (uint256 i = 0; i < 16; i++) {
            check(key[i] == entries[17 * index + 1 + i], "key");
        }
    }

    // Structure

    function refused(bytes memory data, uint64 first, uint64 last, uint256 offset) internal {
        vm.expectRevert(abi.encodeWithSelector(HintData.BadHintData.selector, offset));
        caller.postingRoot(data, first, last);
    }

    function testRefusesOtherStructures() public {
        refused("", 1, 1, 0);
        refused(hex"02000000", 1, 1, 0);
        refused(hex"01000000010000000000000000", 1, 1, 0);
        refused(hex"02000000010000000000000000", 1, 2, 1); // one batch for two
        refused(hex"02000000020000000000000000", 1, 1, 1); // two batches for one
        refused(hex"0200000001", 1, 1, 5);
        refused(hex"020000000100000000", 1, 1, 9);
        refused(hex"0200000001000000000000", 1, 1, 9);
        refused(hex"0200000001000000010000000000", 1, 1, 26); // entry cut short
        refused(hex"0200000001ffffffff0000000000", 1, 1, 9 + 17 * 0xffffffff);
        refused(hex"02000000010000000000000001", 1, 1, 13 + 48); // singleton missing
        refused(hex"0200000001000000000000000000", 1, 1, 13); // a byte left over
    }

    function testFuzzTruncationIsRefused(uint256[3] memory sizes, uint256 length) public {
        BatchHints[] memory entries = anyEntries(three(sizes[0] % 20, sizes[1] % 3, sizes[2] % 20));
        bytes memory data = encode(entries);
        length = bound(length, 0, data.length - 1);
        assembly ("memory-safe") {
            mstore(data, length)
        }
        vm.expectPartialRevert(HintData.BadHintData.selector);
        caller.postingRoot(data, 7, 9);
    }

    /// @dev Any bytes are refused by name, or have a root.
    function testFuzzAnyBytes(bytes calldata data, uint8 batches) public view {
        try caller.postingRoot(data, 1, uint64(batches) + 1) { }
        catch (bytes memory reason) {
            check(bytes4(reason) == HintData.BadHintData.selector, "an unnamed error");
        }
    }
}
