// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { HintData } from "./HintData.sol";

/// @title Hints of a run whose data are in blobs
/// @notice The transaction's input has an **index**, for each batch `u32 count · u32 malformed · malformed × u32 place`,
/// places ascending. Its blobs hold what the index says and nothing else: the entries of all batches, in order, `kind
/// u8 · key 16` each, and behind the last one the singleton releases, 48 bytes each, in the index's order. They begin
/// after 4 bytes of length, 31 bytes to a field element behind a zero byte, elements through blobs in order, as all
/// data of this project that travel in blobs. So entry `i` of a batch stands at byte
/// `4 + 17 · (entries of earlier batches + i)`: whoever reads, reads there, and nothing else can be meant.
///
/// What stands there is judged as an entry in calldata is, and one thing more: an entry is of kind 2 exactly when the
/// index names its place. So who must know only which items are malformed needs the input alone, however long ago the
/// blobs were dropped. Where no entry can be read, because an element's first byte is not zero or the blobs are over,
/// the entry is of no known kind.
///
/// The posting root is `keccak256(abi.encode(TAG, first, keccak256(index), keccak256(versioned hashes)))`: with its tag
/// never that of hints in calldata.
/// @dev A disputed entry is shown by opening the one or two elements it lies in at their points (EIP-4844, precompile
/// 0x0a). Element `i` of a blob is its polynomial's value at `w^reverse(i)`, `w` the 4096th root of unity and `reverse`
/// the reversal of 12 bits.
library HintBlobs {
    /// @notice One field element of a blob, with the proof that it is what the blob holds.
    struct Opening {
        /// The element.
        uint256 value;
        /// The blob's commitment, 48 bytes.
        bytes commitment;
        /// The proof, 48 bytes.
        bytes proof;
    }

    /// @notice What shows an entry of hints in blobs.
    struct Evidence {
        /// The index as it was posted.
        bytes index;
        /// The versioned hashes of the blobs, in order; none for hints in calldata.
        bytes32[] versionedHashes;
        /// The one or two elements that the entry lies in; none where the blobs are over.
        Opening[] openings;
        /// For an envelope that is called malformed, the two or three elements that its singleton release lies in; none
        /// where the blobs are over.
        Opening[] releaseOpenings;
    }

    /// @notice What the index says of one item.
    struct Place {
        /// How many entries its batch has.
        uint256 count;
        /// Where its entry is among all entries of the posting.
        uint256 entry;
        /// Whether the index calls it malformed.
        bool isMalformed;
    }

    /// @dev The longest index: what a challenge has to show stays far below the gas of a transaction, whatever was
    /// posted. A right one is shorter: 8 bytes for each header of a run, and a place for each of its items.
    uint256 private constant MAX_INDEX_BYTES = 32_768;
    bytes32 private constant TAG = keccak256("BLINDFOLD-V2-HINTS-IN-BLOBS");
    /// @dev Kind of an entry that cannot be read.
    uint8 private constant NO_ENTRY = 0xff;
    /// @dev Bytes of length in front of the data in blobs.
    uint256 private constant LENGTH_BYTES = 4;
    /// @dev Bytes of data in a field element.
    uint256 private constant USED_BYTES = 31;
    /// @dev Field elements of a blob: 2^12.
    uint256 private constant ELEMENTS = 4_096;
    uint256 private constant ELEMENT_BITS = 12;
    /// @dev The scalar field's modulus, and the root of unity: 7^((r − 1) / 4096).
    uint256 private constant MODULUS = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001;
    uint256 private constant ROOT = 0x564c0a11a0f704f4fc3e8acfe0f8245f0ad1347b378fbf96e206da11a5d36306;
    address private constant POINT_EVALUATION = address(0x0a);

    /// @notice The transaction carries no blob: send the hints in blobs, or with `postHints`.
    error NoBlobs();
    /// @notice The index is none for exactly the run's batches; `offset` is where that shows.
    error BadHintIndex(uint256 offset);
    /// @notice The entry lies in another number of elements than were shown: open those from `element` on.
    error WrongOpenings(uint256 element, uint256 needed);
    /// @notice The precompile does not find that the blob holds this value at `element`.
    error BadOpening(uint256 element);

    /// @notice The posting root of hints in this transaction's blobs, whose index must be one for exactly the batches
    /// `first ..= last`.
    function postingRoot(bytes calldata index, uint64 first, uint64 last) internal view returns (bytes32) {
        if (index.length > MAX_INDEX_BYTES) revert BadHintIndex(MAX_INDEX_BYTES);
        uint256 offset = 0;
        for (uint256 batches = uint256(last) - first + 1; batches > 0; batches--) {
            offset = checkBatch(index, offset);
        }
        if (offset != index.length) revert BadHintIndex(offset);
        uint256 blobs = 0;
        while (blobhash(blobs) != 0) blobs++;
        if (blobs == 0) revert NoBlobs();
        bytes32[] memory hashes = new bytes32[](blobs);
        for (uint256 i = 0; i < blobs; i++) {
            hashes[i] = blobhash(i);
        }
        return rootFor(index, first, hashes);
    }

    /// @notice The posting root that the evidence belongs to, for a run that begins with `first`.
    function rootOf(Evidence calldata given, uint64 first) internal pure returns (bytes32) {
        return rootFor(given.index, first, given.versionedHashes);
    }

    /// @notice What the index, which is one that was posted, says of item `item` of its batch `batch`, from 0.
    function placeOf(bytes calldata index, uint256 batch, uint256 item)
        internal
        pure
        returns (Place memory place)
    {
        uint256 offset = 0;
        // Cannot overflow: every count is below 2^32 and the loops end where the index does.
        unchecked {
            for (uint256 i = 0; i < batch; i++) {
                place.entry += postedWord(index, offset);
                offset += 8 + 4 * postedWord(index, offset + 4);
            }
            place.count = postedWord(index, offset);
            place.entry += item;
            uint256 end = offset + 8 + 4 * postedWord(index, offset + 4);
            for (offset += 8; offset < end && !place.isMalformed; offset += 4) {
                place.isMalformed = postedWord(index, offset) == item;
            }
        }
    }

    /// @notice The posting's entry at place `entryIndex` among all, as the evidence shows it.
    /// @dev About 51,000 gas for each element. Reverts for openings that show nothing.
    function entry(Evidence calldata given, uint256 entryIndex)
        internal
        view
        returns (uint8 kind, bytes16 key)
    {
        uint256 offset = LENGTH_BYTES + HintData.ENTRY_BYTES * entryIndex;
        uint256 element = offset / USED_BYTES;
        uint256 last = (offset + HintData.ENTRY_BYTES - 1) / USED_BYTES;
        if (last / ELEMENTS >= given.versionedHashes.length) return (NO_ENTRY, 0);
        uint256 needed = last - element + 1;
        if (given.openings.length != needed) revert WrongOpenings(element, needed);
        uint256 left = open(given, given.openings[0], element);
        uint256 right = needed == 2 ? open(given, given.openings[1], last) : 0;
        if ((left | right) >> (8 * USED_BYTES) != 0) return (NO_ENTRY, 0);
        offset %= USED_BYTES;
        // The 31 bytes of the left element and then those of the right, from the entry's first byte on.
        uint256 word = left << (8 + 8 * offset) | (right << 8) >> (8 * (USED_BYTES - offset));
        return (uint8(word >> 248), bytes16(bytes32(word << 8)));
    }

    /// @notice The first byte, behind the length, of the singleton release of item `item` of batch `batch`, from 0, which
    /// the index, one that was posted, calls malformed.
    function releaseOf(bytes calldata index, uint256 batch, uint256 item) internal pure returns (uint256) {
        uint256 entries = 0;
        uint256 before = 0;
        uint256 offset = 0;
        // As above.
        unchecked {
            for (uint256 i = 0; offset < index.length; i++) {
                entries += postedWord(index, offset);
                uint256 malformed = postedWord(index, offset + 4);
                offset += 8;
                uint256 end = offset + 4 * malformed;
                if (i < batch) before += malformed;
                if (i == batch) {
                    for (; offset < end && postedWord(index, offset) < item; offset += 4) {
                        before++;
                    }
                }
                offset = end;
            }
            return HintData.ENTRY_BYTES * entries + HintData.SINGLETON_BYTES * before;
        }
    }

    /// @notice The singleton release that begins at byte `start` behind the length, as the evidence shows it; empty when
    /// none can be read there.
    function release(Evidence calldata given, uint256 start) internal view returns (bytes memory found) {
        uint256 offset = LENGTH_BYTES + start;
        uint256 element = offset / USED_BYTES;
        uint256 last = (offset + HintData.SINGLETON_BYTES - 1) / USED_BYTES;
        if (last / ELEMENTS >= given.versionedHashes.length) return "";
        uint256 needed = last - element + 1;
        if (given.releaseOpenings.length != needed) revert WrongOpenings(element, needed);
        bytes memory used = "";
        for (uint256 i = 0; i < needed; i++) {
            uint256 value = open(given, given.releaseOpenings[i], element + i);
            if (value >> (8 * USED_BYTES) != 0) return "";
            used = bytes.concat(used, bytes31(bytes32(value << 8)));
        }
        found = new bytes(HintData.SINGLETON_BYTES);
        uint256 skipped = offset % USED_BYTES;
        assembly ("memory-safe") {
            mcopy(add(found, 0x20), add(add(used, 0x20), skipped), 48)
        }
    }

    /// @dev The element as its opening shows it.
    function open(Evidence calldata given, Opening calldata opening, uint256 element)
        private
        view
        returns (uint256)
    {
        if (opening.commitment.length != 48 || opening.proof.length != 48) revert BadOpening(element);
        // The precompile compares the commitment with the versioned hash.
        (bool ok,) = POINT_EVALUATION.staticcall(
            abi.encodePacked(
                given.versionedHashes[element / ELEMENTS],
                pointOf(element % ELEMENTS),
                opening.value,
                opening.commitment,
                opening.proof
            )
        );
        if (!ok) revert BadOpening(element);
        return opening.value;
    }

    /// @dev Where a blob's polynomial has the value of its element: the root of unity to the element's bits reversed.
    function pointOf(uint256 element) private pure returns (uint256 point) {
        point = 1;
        uint256 power = ROOT;
        for (uint256 bit = ELEMENT_BITS; bit > 0; bit--) {
            if ((element >> (bit - 1)) & 1 == 1) point = mulmod(point, power, MODULUS);
            power = mulmod(power, power, MODULUS);
        }
    }

    function rootFor(bytes calldata index, uint64 first, bytes32[] memory hashes)
        private
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(TAG, first, keccak256(index), keccak256(abi.encodePacked(hashes))));
    }

    /// @dev Checks the part of the index of the batch that begins at `offset`; where the next one's begins.
    function checkBatch(bytes calldata index, uint256 offset) private pure returns (uint256) {
        uint256 count = wordAt(index, offset);
        uint256 malformed = wordAt(index, offset + 4);
        uint256 end = offset + 8 + 4 * malformed;
        uint256 least = 0;
        for (offset += 8; offset < end; offset += 4) {
            uint256 place = wordAt(index, offset);
            if (place < least || place >= count) revert BadHintIndex(offset);
            least = place + 1;
        }
        return end;
    }

    /// @dev The four bytes at `offset` of an index that was posted, whose structure was checked then.
    function postedWord(bytes calldata index, uint256 offset) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := shr(224, calldataload(add(index.offset, offset)))
        }
    }

    /// @dev The four bytes at `offset`.
    function wordAt(bytes calldata index, uint256 offset) private pure returns (uint256) {
        if (offset + 4 > index.length) revert BadHintIndex(offset);
        return uint32(bytes4(index[offset:offset + 4]));
    }
}
