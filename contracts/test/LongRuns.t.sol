// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { RunReference } from "../src/interfaces/IBlindedInbox.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { HintLibraries } from "./helpers/HintLibraries.sol";
import { Deployment } from "./helpers/Deployment.sol";

/// @dev Lists of headers whose hints do not fit one transaction are cut into runs.
contract LongRunsTest is Deployment {
    /// @dev Bytes of a `HintData` beside its batches, of a batch beside its items, and of a malformed item.
    uint256 internal constant HEAD = 5;
    uint256 internal constant BATCH = 8;
    uint256 internal constant ITEM = 65;
    /// @dev Items of a batch that alone takes all the room but 27 bytes.
    uint32 internal constant FULL = 2_008;

    event Posted(
        uint64 indexed firstNumber,
        uint64 indexed lastNumber,
        uint64 postedAt,
        bytes32 headHash,
        bytes32 headerRoot
    );

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        registerEpoch(EPOCH_LAST, 4, 3);
    }

    function counted(uint32[] memory counts) internal view returns (BatchHeader[] memory headers) {
        headers = run(counts.length);
        for (uint256 i = 0; i < counts.length; i++) {
            headers[i].envelopeCount = counts[i];
        }
        relink(headers);
    }

    function three(uint32 a, uint32 b, uint32 c) internal view returns (BatchHeader[] memory) {
        uint32[] memory counts = new uint32[](3);
        (counts[0], counts[1], counts[2]) = (a, b, c);
        return counted(counts);
    }

    function slice(BatchHeader[] memory headers, uint256 from, uint256 to)
        internal
        pure
        returns (BatchHeader[] memory part)
    {
        part = new BatchHeader[](to - from);
        for (uint256 i = from; i < to; i++) {
            part[i - from] = headers[i];
        }
    }

    /// @dev The headers `from .. to` of a posting are one run, and each of them is proved in it.
    function checkRun(BatchHeader[] memory headers, uint256 from, uint256 to) internal view {
        BatchHeader[] memory part = slice(headers, from, to);
        RunReference memory one = runReference(part);
        check(inbox.isRun(one), "a run");
        for (uint256 i = 0; i < part.length; i++) {
            (, bytes32[] memory proof) = proveHeader(part, i);
            (bool posted,) = inbox.verifyHeader(part[i], one, proof);
            check(posted, "proved");
        }
    }

    function expectPosted(BatchHeader[] memory headers, uint256 from, uint256 to) internal {
        RunReference memory one = runReference(slice(headers, from, to));
        vm.expectEmit(true, true, true, true, address(inbox));
        emit Posted(one.first, one.last, one.postedAt, inbox.hashHeader(headers[to - 1]), one.headerRoot);
    }

    function testRoomIsThatOfATransaction() public view {
        checkEqual(inbox.MAX_RUN_HINT_BYTES(), 128 * 1024 - 512, "room");
        checkEqual(HEAD + BATCH + ITEM * uint256(FULL), 130_533, "one full batch");
    }

    /// @dev What is counted is what the registry's `HintData` takes when every item is malformed.
    function testWhatIsCountedIsTheLengthOfTheHints() public {
        HintLibraries libraries = new HintLibraries();
        bytes memory data = abi.encodePacked(uint8(2), uint32(2));
        for (uint256 i = 0; i < 2; i++) {
            uint32 count = uint32(1_003 - i);
            data = bytes.concat(
                data,
                abi.encodePacked(count),
                new bytes(17 * count),
                abi.encodePacked(count),
                new bytes(48 * count)
            );
        }
        libraries.postingRoot(data, 7, 8);
        checkEqual(data.length, HEAD + 2 * BATCH + ITEM * (1_003 + 1_002), "length");
    }

    function testAListThatFitsIsOneRun() public {
        // 5 + 3 · 8 + 65 · 2,008 = 130,549.
        BatchHeader[] memory headers = three(2_008, 0, 0);
        postRun(headers);
        checkRun(headers, 0, 3);
        checkEqual(inbox.runCommitment(1), 0, "no run of the first alone");
    }

    /// @dev 5 + 45 · 8 + 65 · 2,003 = 130,560: to the byte.
    function testAListThatFitsExactlyIsOneRun() public {
        uint32[] memory counts = new uint32[](45);
        counts[20] = 2_003;
        BatchHeader[] memory headers = counted(counts);
        postRun(headers);
        checkRun(headers, 0, 45);

        counts = new uint32[](46);
        counts[20] = 2_003;
        headers = counted(counts);
        postRun(headers);
        checkRun(headers, 0, 45);
        checkRun(headers, 45, 46);
    }

    /// @dev 5 + 5 · 8 + 65 · 2,008 = 130,565: too long by the five bytes in front of the batches, in each run anew.
    function testBytesInFrontOfTheBatchesCountInEachRun() public {
        uint32[] memory counts = new uint32[](5);
        counts[0] = FULL;
        BatchHeader[] memory headers = counted(counts);
        uint256 snapshot = vm.snapshotState();
        postRun(headers);
        checkRun(headers, 0, 4);
        checkRun(headers, 4, 5);
        vm.revertToState(snapshot);

        counts = new uint32[](6);
        (counts[0], counts[1]) = (FULL, FULL);
        headers = counted(counts);
        postRun(headers);
        checkRun(headers, 0, 1);
        checkRun(headers, 1, 5);
        checkRun(headers, 5, 6);
    }

    function testAListThatDoesNotFitIsCut() public {
        BatchHeader[] memory headers = three(1_000, 1_008, 1);
        expectPosted(headers, 0, 2);
        expectPosted(headers, 2, 3);
        postRun(headers);
        checkRun(headers, 0, 2);
        checkRun(headers, 2, 3);
        check(!inbox.isRun(runReference(headers)), "not one run");
        (uint64 number,,,) = inbox.head();
        checkEqual(number, 3, "head");
        checkEqual(inbox.headHash(), inbox.hashHeader(headers[2]), "head hash");
        // What follows, follows the last.
        postRun(run(1));
    }

    /// @dev The protocol's largest batch needs more than a transaction that nodes relay: it is never refused.
    function testALargeHeaderIsARunOfItsOwn() public {
        BatchHeader[] memory headers = three(1, 4_096, 1);
        postRun(headers);
        checkRun(headers, 0, 1);
        checkRun(headers, 1, 2);
        checkRun(headers, 2, 3);
        BatchHeader[] memory larger = run(1);
        larger[0].envelopeCount = type(uint32).max;
        postRun(larger);
        checkRun(larger, 0, 1);
        checkRun(headers, 2, 3); // as it was: no run ends in front of the first header
    }

    /// @dev Every header is in exactly one run; no run of several is above the bound; no two neighbours would fit one.
    function testFuzzRunsFitAndAreTheLongest(uint256 seed, uint256 length) public {
        length = bound(length, 1, 12);
        uint32[] memory counts = new uint32[](length);
        for (uint256 i = 0; i < length; i++) {
            uint256 random = uint256(keccak256(abi.encode(seed, i)));
            counts[i] = uint32(random % (random % 5 == 0 ? 4_097 : 700));
        }
        BatchHeader[] memory headers = counted(counts);
        postRun(headers);
        uint256 from = 0;
        uint256 size = HEAD;
        for (uint256 i = 0; i < length; i++) {
            uint256 more = BATCH + ITEM * uint256(counts[i]);
            bool ends = i + 1 == length
                || size + more + BATCH + ITEM * uint256(counts[i + 1]) > inbox.MAX_RUN_HINT_BYTES();
            size += more;
            check((inbox.runCommitment(headers[i].number) != 0) == ends, "a run ends here");
            if (!ends) continue;
            check(i == from || size <= inbox.MAX_RUN_HINT_BYTES(), "fits");
            checkRun(headers, from, i + 1);
            (from, size) = (i + 1, HEAD);
        }
    }

    /// @dev With base cost, calldata and nothing warm, as a transaction pays it.
    /// forge-config: default.isolate = true
    function testGasOfAFurtherRun() public {
        postRun(run(1));
        BatchHeader[] memory headers = three(100, 1_900, 8);
        headers[2].envelopeCount = 0;
        relink(headers);
        post(headers, certificate(headers[2], 0x7));
        uint256 one = vm.snapshotGasLastCall("BlindedInbox.post, 3 headers in one run, whole transaction");
        headers = three(100, 1_900, 100);
        post(headers, certificate(headers[2], 0x7));
        uint256 two = vm.snapshotGasLastCall("BlindedInbox.post, 3 headers in two runs, whole transaction");
        check(two - one < 40_000, "a further run above 40,000 gas");
    }
}
