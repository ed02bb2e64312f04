// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { MerkleTree } from "./MerkleTree.sol";

/// @title Hints of a run, as they are posted
/// @notice `HintData` = `version 2 · u32 batches · per batch: u32 count · count × entry · u32 malformed ·
/// malformed × singleton release 48`, an entry being `kind u8 · key 16` (17 bytes). An entry of kind 2 has in place of the
/// key the place of its release in the batch's list, 16 bytes.
///
/// Its commitment is a Merkle tree over **chunks** of up to 128 entries, in order, at least one for each batch: the
/// leaf data are `number u64 ‖ count u32 ‖ chunk index u32 ‖ keccak256(chunk bytes) ‖ releases`, and the posting root is
/// `keccak256(abi.encode(leaf count, Merkle root))`. One disputed entry so costs one chunk (2,176 bytes) and a proof.
/// `releases` commits to the batch's singleton releases, one of which an entry of the chunk may name: keccak256 of the
/// hashes of the list's own chunks of up to 128 releases, in order, none for an empty list. So a disputed release costs
/// such a chunk (6,144 bytes) and a hash for each, however long a list was posted; and postings that differ in them
/// only have different roots, so neither stands in the other's way.
/// @dev Only the structure is checked here: what an entry says, and whether the release that it names is the right
/// one, is settled by a challenge.
library HintData {
    /// @dev The version this code understands.
    uint8 internal constant VERSION = 2;
    /// @dev Entry of an item that takes no pd position.
    uint8 internal constant SKIPPED = 0;
    /// @dev Entry of a well-formed envelope: its session key.
    uint8 internal constant KEY = 1;
    /// @dev Entry of an envelope that decrypts to ⊥.
    uint8 internal constant MALFORMED = 2;
    /// @dev Bytes of an entry.
    uint256 internal constant ENTRY_BYTES = 17;
    /// @dev Entries, or singleton releases, in a full chunk.
    uint256 internal constant CHUNK_ENTRIES = 128;
    /// @dev Bytes of a singleton release.
    uint256 internal constant SINGLETON_BYTES = 48;
    /// @dev Version and number of batches.
    uint256 internal constant HEAD_BYTES = 5;
    /// @dev The two counts of a batch.
    uint256 internal constant BATCH_BYTES = 8;

    /// @notice The data are not a `HintData` for exactly the run's batches; `offset` is where that shows.
    error BadHintData(uint256 offset);

    /// @notice Where one chunk stands in a posting.
    struct Place {
        /// The batch's number.
        uint64 number;
        /// How many entries the batch has in all.
        uint32 count;
        /// Place of the chunk in its batch.
        uint32 chunkIndex;
        /// Place of the chunk in the posting.
        uint256 leafIndex;
        /// How many chunks the posting has.
        uint256 leafCount;
        /// Commitment to the batch's singleton releases.
        bytes32 releases;
    }

    /// @notice The most bytes that a batch of `count` items can take: when all of them are malformed.
    function mostBytes(uint256 count) internal pure returns (uint256) {
        return BATCH_BYTES + count * (ENTRY_BYTES + SINGLETON_BYTES);
    }

    /// @notice The posting root of `data`, which must be a `HintData` for batches `first ..= last`.
    /// @dev About 2,500 gas for a batch of up to 128 entries.
    function postingRoot(bytes calldata data, uint64 first, uint64 last) internal pure returns (bytes32) {
        uint256 batches = uint256(last) - first + 1;
        uint256 leafCount = countChunks(data, batches);
        bytes32[] memory leaves = new bytes32[](MerkleTree.width(leafCount));
        hashChunks(data, first, batches, leaves);
        return keccak256(abi.encode(leafCount, MerkleTree.rootInPlace(leaves)));
    }

    /// @notice The posting root that a chunk belongs to by its proof; zero when the place is none of the tree's.
    function rootOf(Place memory place, bytes calldata chunk, bytes32[] calldata proof)
        internal
        pure
        returns (bytes32)
    {
        bytes32 leaf = keccak256(
            abi.encodePacked(
                hex"00", place.number, place.count, place.chunkIndex, keccak256(chunk), place.releases
            )
        );
        (bool fits, bytes32 root) = MerkleTree.rootFromProof(place.leafCount, place.leafIndex, leaf, proof);
        return fits ? keccak256(abi.encode(place.leafCount, root)) : bytes32(0);
    }

    /// @notice Whether entry `index` of the batch is in the chunk.
    function holds(Place memory place, uint256 index) internal pure returns (bool) {
        return index < place.count && index / CHUNK_ENTRIES == place.chunkIndex;
    }

    /// @notice Entry `index` of the batch, from the chunk that holds it.
    function entry(bytes calldata chunk, uint256 index) internal pure returns (uint8 kind, bytes16 key) {
        uint256 start = (index % CHUNK_ENTRIES) * ENTRY_BYTES;
        kind = uint8(chunk[start]);
        key = bytes16(chunk[start + 1:start + ENTRY_BYTES]);
    }

    /// @dev Checks the structure of all of `data`; how many chunks it has.
    function countChunks(bytes calldata data, uint256 batches) private pure returns (uint256 chunks) {
        if (data.length < HEAD_BYTES || uint8(data[0]) != VERSION) revert BadHintData(0);
        if (uint32(bytes4(data[1:HEAD_BYTES])) != batches) revert BadHintData(1);
        uint256 offset = HEAD_BYTES;
        // Cannot overflow: every count is below 2^32 and the loop ends where the data do.
        unchecked {
            for (uint256 i = 0; i < batches; i++) {
                uint256 count = wordAt(data, offset);
                chunks += chunksOf(count);
                offset += 4 + count * ENTRY_BYTES;
                offset += 4 + wordAt(data, offset) * SINGLETON_BYTES;
            }
        }
        if (offset != data.length) revert BadHintData(offset);
    }

    /// @dev Writes the leaf of every chunk. The structure must have been checked.
    function hashChunks(bytes calldata data, uint64 first, uint256 batches, bytes32[] memory leaves)
        private
        pure
    {
        uint256 offset = HEAD_BYTES;
        uint256 leaf = 0;
        unchecked {
            for (uint256 i = 0; i < batches; i++) {
                uint256 count = wordAt(data, offset);
                uint256 end = offset + 4 + count * ENTRY_BYTES;
                offset = end + 4 + wordAt(data, end) * SINGLETON_BYTES;
                bytes32 releases = hashReleases(data[end + 4:offset]);
                uint256 place = (first + i) << 64 | count << 32;
                leaf = hashBatch(data[end - count * ENTRY_BYTES:end], place, releases, leaves, leaf);
            }
        }
    }

    /// @dev Writes the leaves of one batch's chunks from place `leaf` on; the place after them.
    function hashBatch(
        bytes calldata entries,
        uint256 place,
        bytes32 releases,
        bytes32[] memory leaves,
        uint256 leaf
    ) private pure returns (uint256) {
        uint256 full = CHUNK_ENTRIES * ENTRY_BYTES;
        unchecked {
            while (entries.length > full) {
                leaves[leaf++] = hashChunk(entries[:full], place++, releases);
                entries = entries[full:];
            }
        }
        leaves[leaf] = hashChunk(entries, place, releases);
        return leaf + 1;
    }

    /// @dev The leaf of one chunk; `place` is `number ‖ count ‖ chunk index`, 16 bytes.
    function hashChunk(bytes calldata chunk, uint256 place, bytes32 releases)
        private
        pure
        returns (bytes32 leaf)
    {
        bytes32 chunkHash = hashBytes(chunk);
        assembly ("memory-safe") {
            let buffer := mload(0x40)
            mstore8(buffer, 0x00)
            mstore(add(buffer, 1), shl(128, place))
            mstore(add(buffer, 17), chunkHash)
            mstore(add(buffer, 49), releases)
            leaf := keccak256(buffer, 81)
        }
    }

    /// @dev Commitment to a batch's singleton releases.
    function hashReleases(bytes calldata releases) private pure returns (bytes32 commitment) {
        uint256 full = CHUNK_ENTRIES * SINGLETON_BYTES;
        assembly ("memory-safe") {
            // Hashes from the free memory on, and behind them, where they end at most, the chunk.
            let hashes := mload(0x40)
            let count := div(add(releases.length, sub(full, 1)), full)
            let buffer := add(hashes, shl(5, count))
            for { let i := 0 } lt(i, count) { i := add(i, 1) } {
                let start := mul(i, full)
                let size := sub(releases.length, start)
                if gt(size, full) { size := full }
                calldatacopy(buffer, add(releases.offset, start), size)
                mstore(add(hashes, shl(5, i)), keccak256(buffer, size))
            }
            commitment := keccak256(hashes, shl(5, count))
        }
    }

    /// @dev keccak256 of calldata. Works above the free memory without taking it, so the memory used is that of the
    /// longest part, however many there are.
    function hashBytes(bytes calldata given) private pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            let buffer := mload(0x40)
            calldatacopy(buffer, given.offset, given.length)
            hash := keccak256(buffer, given.length)
        }
    }

    /// @dev An empty batch has one empty chunk.
    function chunksOf(uint256 count) private pure returns (uint256) {
        return count == 0 ? 1 : (count + CHUNK_ENTRIES - 1) / CHUNK_ENTRIES;
    }

    /// @dev The four bytes at `offset`.
    function wordAt(bytes calldata data, uint256 offset) private pure returns (uint256 word) {
        unchecked {
            if (offset + 4 > data.length) revert BadHintData(offset);
        }
        assembly ("memory-safe") {
            word := shr(224, calldataload(add(data.offset, offset)))
        }
    }
}
