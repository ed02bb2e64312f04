// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { HintData } from "../../src/libraries/HintData.sol";
import { Symbolic } from "./Symbolic.sol";

/// @dev The library takes calldata.
contract HintDoor {
    function postingRoot(bytes calldata data, uint64 first, uint64 last) external pure returns (bytes32) {
        return HintData.postingRoot(data, first, last);
    }
}

contract HintDataProofs is Symbolic {
    HintDoor internal door = new HintDoor();

    /// @dev An entry that a chunk's place holds lies within that chunk, whatever the place says.
    function check_AHeldEntryLiesInItsChunk(HintData.Place memory place, uint256 index) public pure {
        vm.assume(HintData.holds(place, index));
        uint256 before = uint256(place.chunkIndex) * HintData.CHUNK_ENTRIES;
        assert(before <= index && index < place.count);
        uint256 left = uint256(place.count) - before;
        uint256 entries = left < HintData.CHUNK_ENTRIES ? left : HintData.CHUNK_ENTRIES;
        assert((index % HintData.CHUNK_ENTRIES + 1) * HintData.ENTRY_BYTES <= entries * HintData.ENTRY_BYTES);
    }

    /// @dev What stands behind the data in the transaction's input has no part in their root: one batch or two, of up
    /// to two entries and one release each, of any bytes.
    function check_NothingBehindTheDataIsRead(bytes32[8] calldata words, bytes32[4] calldata behind)
        public
        view
    {
        for (uint32 shape = 0; shape < 36; shape++) {
            bytes memory one = batch(shape % 3, shape / 3 % 2, abi.encode(words));
            if (shape < 6) checkTail(abi.encodePacked(hex"0200000001", one), 1, behind);
            bytes memory other = batch(shape / 6 % 3, shape / 18, abi.encode(words));
            checkTail(abi.encodePacked(hex"0200000002", one, other), 2, behind);
        }
    }

    /// @dev Cut by a byte, the same data are refused, however the input goes on.
    function check_DataCutShortAreRefused(bytes32[8] calldata words, bytes32[4] calldata behind) public view {
        for (uint32 shape = 0; shape < 6; shape++) {
            bytes memory data =
                abi.encodePacked(hex"0200000001", batch(shape % 3, shape / 3, abi.encode(words)));
            (bool taken,) = root(data, data.length - 1, 1, behind[0], behind[1]);
            assert(!taken);
        }
    }

    function checkTail(bytes memory data, uint64 batches, bytes32[4] calldata behind) internal view {
        (bool done, bytes32 one) = root(data, data.length, batches, behind[0], behind[1]);
        (bool again, bytes32 other) = root(data, data.length, batches, behind[2], behind[3]);
        assert(done && again && one == other);
    }

    /// @dev One batch: as many entries and releases of the given bytes.
    function batch(uint32 entries, uint32 releases, bytes memory any)
        internal
        pure
        returns (bytes memory out)
    {
        bytes memory first = new bytes(17 * entries);
        bytes memory second = new bytes(48 * releases);
        for (uint256 i = 0; i < first.length; i++) {
            first[i] = any[i];
        }
        for (uint256 i = 0; i < second.length; i++) {
            second[i] = any[64 + i];
        }
        return abi.encodePacked(entries, first, releases, second);
    }

    /// @dev Calls with `length` bytes of `data`, and with other bytes right behind them in the place of padding.
    function root(bytes memory data, uint256 length, uint64 batches, bytes32 tail, bytes32 tail2)
        internal
        view
        returns (bool done, bytes32 out)
    {
        bytes memory input = abi.encodePacked(
            HintDoor.postingRoot.selector,
            uint256(96),
            uint256(7),
            uint256(6 + batches),
            length,
            data,
            tail,
            tail2
        );
        bytes memory answer;
        (done, answer) = address(door).staticcall(input);
        if (done) out = abi.decode(answer, (bytes32));
    }
}
