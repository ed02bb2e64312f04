// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox } from "../src/BlindedInbox.sol";
import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { PostedHeaders } from "../src/PostedHeaders.sol";
import { SequencerBond } from "../src/SequencerBond.sol";
import { RunReference, Timing } from "../src/interfaces/IBlindedInbox.sol";
import { BatchHeader, BatchHeaders } from "../src/libraries/BatchHeaders.sol";
import { Domain } from "../src/libraries/Domain.sol";
import { MerkleTree } from "../src/libraries/MerkleTree.sol";
import { Deployment } from "./helpers/Deployment.sol";

/// @dev Posts from inside a contract.
contract Middleman {
    function post(BlindedInbox inbox, BatchHeader[] calldata headers, BlindedInbox.Certificate calldata c)
        external
    {
        inbox.post(headers, "", c);
    }

    function postData(BlindedInbox inbox, uint64 first) external {
        inbox.postData(first, "");
    }
}

/// @dev Posts while it is made, when it has no code yet.
contract Unborn {
    constructor(BlindedInbox inbox) {
        inbox.postData(1, "");
    }
}

contract BlindedInboxTest is Deployment {
    uint64 internal constant THREE_OF_FOUR = 0x7;

    address internal sequencer;

    event Posted(
        uint64 indexed firstNumber,
        uint64 indexed lastNumber,
        uint64 postedAt,
        bytes32 headHash,
        bytes32 headerRoot
    );
    event BlobsPosted(uint64 indexed firstNumber, uint64 indexed lastNumber, bytes32[] versionedHashes);
    event PostedAgain(
        uint64 indexed firstNumber,
        uint64 indexed lastNumber,
        address indexed poster,
        bytes32[] versionedHashes
    );
    event DataPosted(uint64 indexed firstNumber, address indexed poster, bytes32[] versionedHashes);

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        sequencer = vm.addr(SEQUENCER_KEY);
        registerEpoch(EPOCH_LAST, 4, 3);
    }

    // Deployment

    function testConstructor() public {
        checkEqual(inbox.sequencer(), sequencer, "sequencer");
        checkEqual(address(inbox.queue()), address(queue), "queue");
        checkEqual(inbox.domainSeparator(), Domain.separator(block.chainid, address(inbox)), "domain");
        checkEqual(inbox.headHash(), Domain.genesisHash(inbox.domainSeparator()), "genesis");
        checkEqual(inbox.lastCertifiedAt(), block.number, "deployed");
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.ForeignRegistry.selector, address(inbox)));
        new BlindedInbox(registry, queue, defaultTiming());
        for (uint256 i = 0; i < 2; i++) {
            address other = i == 0 ? address(1) : address(type(uint160).max);
            CommitteeRegistry foreign = newRegistry(other, anyKey, defaultSettings());
            vm.expectRevert(abi.encodeWithSelector(BlindedInbox.ForeignRegistry.selector, other));
            new BlindedInbox(foreign, queue, defaultTiming());
        }
    }

    function testFuzzTiming(uint256 seed) public {
        uint32[7] memory t;
        for (uint256 i = 0; i < 7; i++) {
            t[i] = uint32(uint256(keccak256(abi.encode(seed, i))) % 8);
        }
        if (seed % 2 == 0) (t[1], t[5]) = (t[1] % 3, t[5] * 4);
        if (seed % 16 == 0) (t[0], t[4]) = (type(uint32).max, type(uint32).max); // their sum does not wrap around
        Timing memory given = Timing(t[0], t[1], t[2], t[3], t[4], t[5], t[6]);
        bool good = t[1] < t[0] && uint256(t[5]) > uint256(t[0]) + t[4];
        for (uint256 i = 0; i < 7; i++) {
            good = good && t[i] > 0;
        }
        address next = vm.computeCreateAddress(address(this), vm.getNonce(address(this)) + 1);
        CommitteeRegistry itsRegistry = newRegistry(next, anyKey, defaultSettings());
        if (!good) vm.expectRevert(abi.encodeWithSelector(PostedHeaders.BadTiming.selector));
        BlindedInbox made = new BlindedInbox(itsRegistry, queue, given);
        if (good) checkEqual(abi.encode(made.timing()), abi.encode(given), "timing");
    }

    /// @dev A header may be W ahead of its origin, wherever it stands in its run, and no second more (L-10).
    function testFuzzOriginHeldBack(uint256 age, bool second) public {
        BatchHeader[] memory headers = run(2);
        BatchHeader memory held = headers[second ? 1 : 0];
        age = age % 4 == 0
            ? MAX_ORIGIN_AGE_SECONDS + age / 4 % 2
            : bound(age, MAX_ORIGIN_AGE_SECONDS - 100, MAX_ORIGIN_AGE_SECONDS + 100);
        held.l1OriginTime = held.timestampMs / 1_000 - uint64(age);
        relink(headers);
        if (age > MAX_ORIGIN_AGE_SECONDS) {
            expectPostRefusal(
                headers, abi.encodeWithSelector(BlindedInbox.OriginHeldBack.selector, held.number)
            );
        } else {
            postRun(headers);
        }
    }

    /// @dev A sequencer that holds its origin back hides what L1 forces only as long as the origin may be old: then its
    /// committee's certificates are worth nothing.
    function testOriginHeldBackHidesAForcedItemForWOnly() public {
        postRun(run(1));
        forceTransaction(100, 100_000);
        uint64 origin = uint64(block.number) + FORCED_DELAY - 1; // the last one at which nothing is due
        uint64 originTime = uint64(block.timestamp) + 12 * (FORCED_DELAY - 1);
        pass(FORCED_DELAY);
        vm.warp(originTime + 12);
        uint64 held = 0;
        while (true) {
            pass(100); // of 12 seconds each
            BatchHeader[] memory headers = run(1);
            (headers[0].l1OriginNumber, headers[0].l1OriginTime) = (origin, originTime);
            headers[0].forcedCursor = 0;
            relink(headers);
            if (headers[0].timestampMs / 1_000 > originTime + MAX_ORIGIN_AGE_SECONDS) {
                uint64 number = headers[0].number;
                expectPostRefusal(
                    headers, abi.encodeWithSelector(BlindedInbox.OriginHeldBack.selector, number)
                );
                break;
            }
            postRun(headers);
            held++;
        }
        checkEqual(held, MAX_ORIGIN_AGE_SECONDS / 1_200 - 1, "headers without the item");
        postRun(run(1)); // with a fresh origin, and so with the item
        (,,, uint64 cursor) = inbox.head();
        checkEqual(cursor, 1, "taken");
    }

    /// @dev The layout that stands at the contract's head, as far as anybody outside reads it.
    function testStorageLayout() public {
        BatchHeader[] memory headers = run(2);
        postRun(headers);
        BatchHeader memory last = headers[1];
        uint256 packed = uint256(last.number) | uint256(last.timestampMs) << 64 | uint256(last.l1OriginNumber)
            << 128 | uint256(last.forcedCursor) << 192;
        checkEqual(vm.load(address(inbox), bytes32(uint256(0))), bytes32(packed), "head");
        checkEqual(vm.load(address(inbox), bytes32(uint256(1))), inbox.headHash(), "head hash");
        checkEqual(
            vm.load(address(inbox), keccak256(abi.encode(uint256(2), uint256(3)))),
            inbox.runCommitment(2),
            "run commitment"
        );
    }

    // Posting

    function testPostRuns() public {
        BatchHeader[] memory headers = run(1);
        bytes32 hash = inbox.hashHeader(headers[0]);
        BlindedInbox.Certificate memory c = certificate(headers[0], THREE_OF_FOUR);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit Posted(1, 1, uint64(block.number), hash, MerkleTree.leaf(hash));
        vm.prank(POSTER, POSTER);
        inbox.post(headers, "", c);
        checkEqual(inbox.headHash(), hash, "head hash");

        headers = run(33);
        post(headers, certificate(headers[32], 0xf));
        (uint64 number, uint64 timestampMs, uint64 origin, uint64 cursor) = inbox.head();
        checkEqual(number, 34, "number");
        checkEqual(timestampMs, headers[32].timestampMs, "time");
        checkEqual(origin, headers[32].l1OriginNumber, "origin");
        checkEqual(cursor, 0, "cursor");
    }

    function testGasOfPosting() public {
        BatchHeader[] memory headers = run(1);
        post(headers, certificate(headers[0], THREE_OF_FOUR));
        vm.snapshotGasLastCall("BlindedInbox.post, first run, 1 header");
        headers = run(1);
        post(headers, certificate(headers[0], THREE_OF_FOUR));
        uint256 one = vm.snapshotGasLastCall("BlindedInbox.post, 1 header");
        headers = run(33);
        post(headers, certificate(headers[32], 0xf));
        uint256 many = vm.snapshotGasLastCall("BlindedInbox.post, 33 headers");
        // On top come 21,000 and 576 bytes of calldata a header, at most 40 gas each even at the floor price.
        check(one + 21_000 + 12_000 < 300_000, "a posting above 300,000 gas");
        check((many - one) / 32 < 15_000, "a further batch above 15,000 gas");
        // The data hash alone is 1,280 of that.
        check(calldataGas(headers[32]) + (many - one) / 32 < 16_500, "a further batch with its calldata");
    }

    /// @dev With base cost, calldata and nothing warm, as a transaction pays it.
    /// forge-config: default.isolate = true
    function testGasOfWholeTransactions() public {
        postRun(run(1));
        BatchHeader[] memory headers = run(1);
        post(headers, certificate(headers[0], THREE_OF_FOUR));
        uint256 one = vm.snapshotGasLastCall("BlindedInbox.post, 1 header, whole transaction");
        check(one < 300_000, "a posting above 300,000 gas");
        headers = run(33);
        post(headers, certificate(headers[32], THREE_OF_FOUR));
        uint256 many = vm.snapshotGasLastCall("BlindedInbox.post, 33 headers, whole transaction");
        check((many - one) / 32 < 15_000, "a further batch above 15,000 gas");

        forceTransaction(622, 100_000);
        forceTransaction(622, 100_000);
        headers = run(1);
        headers[0].forcedCursor += 1;
        post(headers, certificate(headers[0], THREE_OF_FOUR));
        vm.snapshotGasLastCall(
            "BlindedInbox.post, 1 header that takes a forced item while another waits, whole transaction"
        );
    }

    /// @dev What a header costs as calldata at the floor price of EIP-7623.
    function calldataGas(BatchHeader memory header) internal pure returns (uint256 gas) {
        bytes memory encoded = abi.encode(header);
        for (uint256 i = 0; i < encoded.length; i++) {
            gas += encoded[i] == 0 ? 10 : 40;
        }
    }

    function testFuzzPostAndProve(uint256 count, uint256 chosen) public {
        count = bound(count, 1, 20);
        BatchHeader[] memory before = run(3);
        RunReference memory earlier = postRun(before);
        pass(1);
        BatchHeader[] memory headers = run(count);
        RunReference memory posting = postRun(headers);
        check(inbox.isRun(earlier) && inbox.isRun(posting), "both are runs");
        uint256 index = bound(chosen, 0, count - 1);
        (, bytes32[] memory proof) = proveHeader(headers, index);
        (bool posted, bytes32 hash) = inbox.verifyHeader(headers[index], posting, proof);
        check(posted, "posted");
        checkEqual(hash, inbox.hashHeader(headers[index]), "hash");

        headers[index].gas ^= 1;
        check(!isPosted(headers[index], posting, proof), "another header");
        headers[index].gas ^= 1;
        check(!isPosted(before[0], posting, proof), "number below the run");
        check(!isPosted(headers[index], earlier, proof), "number above the run");
        check(!isPosted(headers[index], posting, new bytes32[](proof.length + 1)), "longer proof");
        check(isPosted(headers[index], posting, proof), "as it was");
    }

    function isPosted(BatchHeader memory header, RunReference memory posting, bytes32[] memory proof)
        internal
        view
        returns (bool posted)
    {
        (posted,) = inbox.verifyHeader(header, posting, proof);
    }

    function testFuzzAnotherRunIsNone(uint8 field, uint64 change) public {
        vm.assume(change != 0);
        postRun(run(2));
        BatchHeader[] memory headers = run(3);
        RunReference memory posting = postRun(headers);
        (, bytes32[] memory proof) = proveHeader(headers, 1);
        if (field % 4 == 0) posting.first ^= change;
        else if (field % 4 == 1) posting.last ^= change;
        else if (field % 4 == 2) posting.postedAt ^= change;
        else posting.headerRoot ^= bytes32(uint256(change));
        check(!inbox.isRun(posting), "no run");
        check(!isPosted(headers[1], posting, proof), "no header of a run");
    }

    /// @dev Numbers, block, and the root whose leaves' data are the header hashes, in order (L-8).
    function testRunCommitment() public {
        BatchHeader[] memory headers = run(5);
        RunReference memory posting = postRun(headers);
        checkEqual(
            inbox.runCommitment(5),
            keccak256(abi.encode(uint64(1), uint64(5), uint64(block.number), posting.headerRoot)),
            "commitment"
        );
        bytes32 left = keccak256(abi.encodePacked(hex"01", leafOf(headers[0]), leafOf(headers[1])));
        bytes32 right = keccak256(abi.encodePacked(hex"01", leafOf(headers[2]), leafOf(headers[3])));
        left = keccak256(abi.encodePacked(hex"01", left, right));
        right = keccak256(abi.encodePacked(hex"01", leafOf(headers[4]), bytes32(0)));
        right = keccak256(
            abi.encodePacked(hex"01", right, keccak256(abi.encodePacked(hex"01", bytes32(0), bytes32(0))))
        );
        checkEqual(posting.headerRoot, keccak256(abi.encodePacked(hex"01", left, right)), "root");
        checkEqual(inbox.runCommitment(4), bytes32(0), "no run ends here");
        RunReference memory none;
        check(!inbox.isRun(none), "the empty reference");
    }

    function leafOf(BatchHeader memory header) private view returns (bytes32) {
        return keccak256(abi.encodePacked(hex"00", inbox.hashHeader(header)));
    }

    function testEmptyRun() public {
        BlindedInbox.Certificate memory c;
        vm.prank(POSTER, POSTER);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.EmptyRun.selector));
        inbox.post(new BatchHeader[](0), "", c);
    }

    function testChainRules() public {
        BatchHeader[] memory headers;
        for (uint64 i = 1; i <= 3; i += 2) {
            headers = run(3);
            headers[1].version = uint8(i);
            expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.UnsupportedVersion.selector, i));
            headers = run(3);
            headers[1].number = i;
            expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.WrongNumber.selector, 2, i));
            headers = run(3);
            bytes32 other = i == 1 ? bytes32(0) : bytes32(type(uint256).max);
            headers[2].parentHash = other;
            expectPostRefusal(
                headers,
                abi.encodeWithSelector(
                    BlindedInbox.WrongParent.selector, 3, inbox.hashHeader(headers[1]), other
                )
            );
        }
        headers = run(3);
        headers[0].timestampMs = 0;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.TimeNotIncreasing.selector, 1));
        headers = run(3);
        for (uint64 earlier = 0; earlier < 2; earlier++) {
            headers[2].timestampMs = headers[1].timestampMs - earlier;
            relink(headers);
            expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.TimeNotIncreasing.selector, 3));
        }
        headers = run(2);
        headers[0].l1OriginNumber = headers[1].l1OriginNumber + 1;
        relink(headers);
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.OriginDecreasing.selector, 2));
    }

    /// @dev However many it takes at once: entries that are not there, and entries that were taken.
    function testForcedCursorsAreThoseOfTheQueue() public {
        for (uint64 taken = 1; taken <= 16; taken += 15) {
            BatchHeader[] memory some = run(1);
            some[0].forcedCursor += taken;
            expectPostRefusal(
                some, abi.encodeWithSelector(BlindedInbox.ForcedCursorAhead.selector, some[0].forcedCursor, 0)
            );
        }
        forceTransaction(100, 30_000);
        pass(FORCED_DELAY + FINALITY);
        postRun(run(1));
        BatchHeader[] memory headers = run(2);
        checkEqual(headers[0].forcedCursor, 1, "taken");
        headers[1].forcedCursor = 0;
        relink(headers);
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.ForcedCursorDecreasing.selector, 3));
    }

    function part(BatchHeader[] memory headers, uint256 from, uint256 to)
        internal
        pure
        returns (BatchHeader[] memory some)
    {
        some = new BatchHeader[](to - from);
        for (uint256 i = from; i < to; i++) {
            some[i - from] = headers[i];
        }
    }

    /// @dev Posts headers of which some are posted: their data is announced, and nothing else happens to them.
    function postAgain(BatchHeader[] memory headers, uint64 lastPosted) internal {
        BlindedInbox.Certificate memory c = certificate(headers[headers.length - 1], THREE_OF_FOUR);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit PostedAgain(headers[0].number, lastPosted, POSTER, new bytes32[](0));
        vm.prank(POSTER, POSTER);
        inbox.post(headers, hex"0102", c);
    }

    /// @dev Somebody posts a part of a run, without data, in front of the sequencer's transaction, which brings it.
    function testARunPostedInFrontBurnsNoData() public {
        BatchHeader[] memory headers = run(4);
        BatchHeader[] memory front = part(headers, 0, 2);
        BlindedInbox.Certificate memory c = certificate(headers[1], THREE_OF_FOUR);
        vm.prank(FORCER, FORCER);
        inbox.post(front, "", c);
        RunReference memory first = runReference(front);
        pass(1);

        postAgain(headers, 2);
        BatchHeader[] memory rest = part(headers, 2, 4);
        check(inbox.isRun(first), "the front as it was");
        check(inbox.isRun(runReference(rest)), "the rest is a run");
        (uint64 number,,,) = inbox.head();
        checkEqual(number, 4, "head");
        checkEqual(inbox.headHash(), inbox.hashHeader(headers[3]), "hash");
    }

    /// @dev Bytes of a certificate that stand in front of it, in the data: the compiler takes the offset for signed, and
    /// whoever decodes the transaction's input elsewhere refuses it. One such posting stopped every reader for good.
    function testACertificateOutOfPlaceIsRefused() public {
        BatchHeader[] memory headers = run(1);
        BlindedInbox.Certificate memory c = certificate(headers[0], THREE_OF_FOUR);
        bytes memory data = abi.encodePacked(uint256(c.signature.length), c.signature);
        bytes memory input = abi.encodeCall(inbox.post, (headers, data, c));
        uint256 dataAt = word(input, 0x20) + 0x20;
        uint256 certificateAt = word(input, 0x40);
        checkEqual(word(input, certificateAt + 0x20), 0x40, "the standard encoding");
        uint256 offset;
        unchecked {
            offset = dataAt - certificateAt;
        }
        for (uint256 i = 0; i < 2; i++) {
            assembly ("memory-safe") {
                mstore(add(add(input, 0x44), certificateAt), offset)
            }
            vm.prank(POSTER, POSTER);
            (bool taken, bytes memory reason) = address(inbox).call(input);
            check(!taken, "taken");
            checkEqual(reason, abi.encodeWithSelector(BlindedInbox.NotCanonical.selector), "reason");
            offset = 0x20; // over itself
        }
        post(headers, c);
    }

    /// @dev A word of a call's arguments.
    function word(bytes memory input, uint256 at) internal pure returns (uint256 value) {
        assembly ("memory-safe") {
            value := mload(add(add(input, 0x24), at))
        }
    }

    /// @dev All of it may be posted, and more than that.
    function testPostedTwice() public {
        BatchHeader[] memory headers = run(4);
        post(headers, certificate(headers[3], THREE_OF_FOUR));
        uint256 postedAt = block.number;
        pass(1);
        postAgain(headers, 4);
        postAgain(part(headers, 0, 2), 2);
        postAgain(part(headers, 1, 3), 3);
        postAgain(part(headers, 3, 4), 4);
        checkEqual(inbox.lastCertifiedAt(), postedAt, "nothing new");
        checkEqual(inbox.headPostedAt(), postedAt, "nothing new");
        check(
            inbox.isRun(RunReference(1, 4, uint64(postedAt), runReference(headers).headerRoot)), "as it was"
        );
    }

    /// @dev What takes the place of posted headers without being them is refused as before.
    function testOthersThanThePostedAreNotPassedOver() public {
        BatchHeader[] memory headers = run(3);
        post(part(headers, 0, 2), certificate(headers[1], THREE_OF_FOUR));
        BatchHeader[] memory other = part(headers, 0, 2);
        other[1] = abi.decode(abi.encode(other[1]), (BatchHeader));
        uint256 below = 0;
        for (uint256 i = 0; i < 8; i++) {
            other[1].gas += 1;
            if (inbox.hashHeader(other[1]) < inbox.headHash()) below++;
            expectPostRefusal(other, abi.encodeWithSelector(BlindedInbox.WrongNumber.selector, 3, 2));
        }
        check(below > 0 && below < 8, "hashes on both sides of the head's");
        // The next one follows another.
        BatchHeader[] memory three = part(headers, 0, 3);
        three[2].parentHash = inbox.hashHeader(other[1]);
        expectPostRefusal(
            three,
            abi.encodeWithSelector(
                BlindedInbox.WrongParent.selector, 3, inbox.headHash(), three[2].parentHash
            )
        );
        three[2].number = 4;
        expectPostRefusal(three, abi.encodeWithSelector(BlindedInbox.WrongNumber.selector, 3, 4));
        headers = run(2);
        headers[0].number = 0;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.WrongNumber.selector, 3, 0));
    }

    /// @dev Numbers that are posted all, but do not follow from the first.
    function testPostedNumbersOutOfOrderAreRefused() public {
        BatchHeader[] memory headers = run(5);
        post(headers, certificate(headers[4], THREE_OF_FOUR));
        BatchHeader[] memory two = part(headers, 1, 3);
        two[1] = headers[3];
        expectPostRefusal(two, abi.encodeWithSelector(BlindedInbox.WrongNumber.selector, 6, 4));
        two[1] = headers[1];
        expectPostRefusal(two, abi.encodeWithSelector(BlindedInbox.WrongNumber.selector, 6, 2));
    }

    /// @dev What is new among headers of which the first is not the chain's first.
    function testWhatIsNewIsCountedFromTheFirst() public {
        BatchHeader[] memory headers = run(4);
        post(part(headers, 0, 2), certificate(headers[1], THREE_OF_FOUR));
        postAgain(part(headers, 1, 4), 2);
        (uint64 number,,,) = inbox.head();
        checkEqual(number, 4, "head");
    }

    function testStateCarriesOver() public {
        postRun(run(2));
        BatchHeader[] memory headers = run(1);
        headers[0].timestampMs -= 250;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.TimeNotIncreasing.selector, 3));
        headers = run(1);
        headers[0].l1OriginNumber -= 1;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.OriginDecreasing.selector, 3));
    }

    function testFuzzOriginMayNotBeOlderThanTheDeadline(uint64 age) public {
        age = uint64(bound(age, POSTING_DEADLINE - 2, POSTING_DEADLINE + 2));
        BatchHeader[] memory headers = run(1);
        headers[0].l1OriginNumber = uint64(block.number) - age;
        if (age > POSTING_DEADLINE) {
            expectPostRefusal(
                headers,
                abi.encodeWithSelector(
                    BlindedInbox.OriginTooOld.selector,
                    headers[0].l1OriginNumber,
                    block.number - POSTING_DEADLINE
                )
            );
        } else {
            postRun(headers);
        }
    }

    function testOriginIsAnEarlierBlock() public {
        BatchHeader[] memory headers = run(1);
        for (uint64 ahead = 0; ahead < 2; ahead++) {
            headers[0].l1OriginNumber = uint64(block.number) + ahead;
            expectPostRefusal(
                headers, abi.encodeWithSelector(BlindedInbox.OriginAhead.selector, block.number + ahead)
            );
        }
        headers[0].l1OriginNumber = uint64(block.number) - 1;
        postRun(headers);
    }

    function testTimeIsNotFarAheadOfL1() public {
        BatchHeader[] memory headers = run(1);
        headers[0].timestampMs = uint64((block.timestamp + inbox.MAX_TIME_LEAD_SECONDS()) * 1_000 + 1);
        expectPostRefusal(
            headers, abi.encodeWithSelector(BlindedInbox.TimeAhead.selector, headers[0].timestampMs)
        );
        headers[0].timestampMs -= 1;
        postRun(headers);
    }

    function testRunMayNotCrossEpochs() public {
        registerEpoch(EPOCH_LAST + 10, 4, 3);
        BatchHeader[] memory headers = run(3);
        for (uint64 epoch = 0; epoch <= 2; epoch += 2) {
            headers[1].epoch = epoch;
            relink(headers);
            expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.RunCrossesEpoch.selector, 2));
        }
        // All claim epoch 2, the certificate is of epoch 2's committee, but the numbers are of epoch 1.
        headers = run(1);
        headers[0].epoch = 2;
        expectPostRefusal(
            headers, abi.encodeWithSelector(CommitteeRegistry.NumberOutsideEpoch.selector, 2, 1)
        );
    }

    function testRunMayNotReachBackIntoAnEarlierEpoch() public {
        deployContracts();
        registerEpoch(2, 4, 3);
        registerEpoch(10, 4, 3);
        pass(EPOCH_NOTICE);
        BatchHeader[] memory headers = run(4);
        bytes32 parent = inbox.headHash();
        for (uint256 i = 0; i < 4; i++) {
            headers[i].epoch = 2;
            headers[i].parentHash = parent;
            parent = inbox.hashHeader(headers[i]);
        }
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.RunCrossesEpoch.selector, 1));
    }

    /// @dev The hash is over the input as it is, and a Byzantine committee can sign one with a field beyond its type.
    /// Nobody could decode such a head: L1 would make no header behind it, and the vault let nobody out.
    function testNoFieldOfAHeaderIsBeyondItsType() public {
        uint256[4] memory bits = [uint256(32), 64, 128, 128];
        for (uint256 i = 0; i < 4; i++) {
            refuseDirty(32 * (10 + i), 1 << bits[i]);
            refuseDirty(32 * (10 + i), 1 << 255);
        }
    }

    /// @dev Of a header with this bit added at this offset, certified as it is.
    function refuseDirty(uint256 offset, uint256 bit) internal {
        BatchHeader[] memory headers = run(1);
        bytes memory encoded = abi.encode(headers[0]);
        addTo(encoded, offset, bit);
        bytes32 headerHash = keccak256(bytes.concat(BatchHeaders.TYPEHASH, encoded));
        BlindedInbox.Certificate memory c;
        c.signers = 7;
        c.signature = aggregate(1, headers[0].number, headerHash, 7);
        bytes memory call = abi.encodeCall(inbox.post, (headers, "", c));
        addTo(call, 132 + offset, bit); // selector, three offsets, the list's length
        vm.prank(POSTER, POSTER);
        (bool done, bytes memory reason) = address(inbox).call(call);
        check(!done, "refused");
        checkEqual(reason, abi.encodeWithSelector(BlindedInbox.NotCanonical.selector), "reason");
    }

    function addTo(bytes memory data, uint256 offset, uint256 bit) internal pure {
        assembly {
            let place := add(add(data, 32), offset)
            mstore(place, add(mload(place), bit))
        }
    }

    /// @dev The registry says which rule set a number has; a run is of one.
    function testEveryHeaderHasTheRulesOfItsNumber() public {
        BatchHeader[] memory headers = run(2);
        headers[1].rules = 2;
        relink(headers);
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.WrongRules.selector, 2, 1));
        for (uint16 rules = 0; rules <= 2; rules += 2) {
            headers = run(2);
            headers[0].rules = rules;
            relink(headers);
            expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.WrongRules.selector, 1, 1));
            // Where all have them, the last is named.
            headers[1].rules = rules;
            relink(headers);
            expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.WrongRules.selector, 2, 1));
        }

        vm.prank(GOVERNOR);
        registry.scheduleRules(SWITCH_LEAD, 2);
        headers = run(SWITCH_LEAD - 1);
        for (uint256 i = 0; i < headers.length; i++) {
            headers[i].l1OriginNumber = headers[0].l1OriginNumber;
        }
        relink(headers);
        postRun(headers);
        headers = run(1);
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.WrongRules.selector, SWITCH_LEAD, 2));
        headers[0].rules = 2;
        relink(headers);
        postRun(headers);
    }

    function testCertificateMustBeOfTheLastHeader() public {
        BatchHeader[] memory headers = run(2);
        BlindedInbox.Certificate memory c = certificate(headers[0], THREE_OF_FOUR);
        vm.prank(POSTER, POSTER);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.BadAggregateSignature.selector));
        inbox.post(headers, "", c);
        c = certificate(headers[1], 0x3);
        vm.prank(POSTER, POSTER);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.TooFewSigners.selector, 2, 3));
        inbox.post(headers, "", c);
    }

    /// @dev Readers find headers and data in the input of the transaction itself (L-7).
    function testOnlyTopLevel() public {
        BatchHeader[] memory headers = run(1);
        BlindedInbox.Certificate memory c = certificate(headers[0], THREE_OF_FOUR);
        bytes memory reason = abi.encodeWithSelector(BlindedInbox.NotTopLevel.selector);
        Middleman middleman = new Middleman();
        vm.prank(POSTER, POSTER);
        vm.expectRevert(reason);
        middleman.post(inbox, headers, c);
        vm.prank(POSTER, POSTER);
        vm.expectRevert(reason);
        middleman.postData(inbox, 1);
        // An account that delegates (EIP-7702) could wrap the call although it is the origin.
        vm.etch(POSTER, abi.encodePacked(hex"ef0100", address(middleman)));
        vm.prank(POSTER, POSTER);
        vm.expectRevert(reason);
        inbox.post(headers, "", c);
        vm.prank(POSTER, POSTER);
        vm.expectRevert(reason);
        inbox.postData(1, "");
        vm.etch(POSTER, "");
        vm.prank(POSTER, POSTER);
        inbox.post(headers, "", c);
        vm.prank(POSTER, POSTER);
        inbox.postData(1, "");
    }

    /// @dev Whatever its address, and its maker's (L-7).
    function testNoContractPostsWhileItIsMade() public {
        postRun(run(1));
        for (uint256 i = 0; i < 2; i++) {
            address maker = i == 0 ? address(0x1234) : address(type(uint160).max);
            vm.prank(maker, maker);
            vm.expectRevert(abi.encodeWithSelector(BlindedInbox.NotTopLevel.selector));
            new Unborn(inbox);
        }
    }

    function testPostData() public {
        BatchHeader[] memory headers = run(2);
        post(headers, certificate(headers[1], THREE_OF_FOUR));
        vm.expectEmit(true, true, true, true, address(inbox));
        emit DataPosted(2, POSTER, new bytes32[](0));
        vm.prank(POSTER, POSTER);
        inbox.postData(2, hex"0102");
        vm.prank(POSTER, POSTER);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.NotPosted.selector, 3));
        inbox.postData(3, "");
        vm.prank(POSTER, POSTER);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.NotPosted.selector, 0));
        inbox.postData(0, "");
    }

    function someBlobs() internal pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[](3);
        for (uint256 i = 0; i < 3; i++) {
            hashes[i] = bytes32(uint256(1) << 248 | uint248(uint256(keccak256(abi.encode("blob", i)))));
        }
    }

    function testWithoutBlobsNoneAreAnnounced() public {
        BatchHeader[] memory headers = run(2);
        BlindedInbox.Certificate memory c = certificate(headers[1], THREE_OF_FOUR);
        vm.expectEmit(true, true, true, true, address(inbox), 0);
        emit BlobsPosted(1, 2, new bytes32[](0));
        vm.prank(POSTER, POSTER);
        inbox.post(headers, "", c);
    }

    function testBlobsAreAnnounced() public {
        BatchHeader[] memory headers = run(2);
        BlindedInbox.Certificate memory c = certificate(headers[1], THREE_OF_FOUR);
        vm.blobhashes(someBlobs());
        vm.expectEmit(true, true, true, true, address(inbox));
        emit BlobsPosted(1, 2, someBlobs());
        vm.prank(POSTER, POSTER);
        inbox.post(headers, "", c);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit PostedAgain(1, 2, POSTER, someBlobs());
        vm.prank(POSTER, POSTER);
        inbox.post(headers, "", c);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit DataPosted(1, POSTER, someBlobs());
        vm.prank(POSTER, POSTER);
        inbox.postData(1, "");
    }
}
