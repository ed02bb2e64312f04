// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox } from "../src/BlindedInbox.sol";
import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { PostedHeaders } from "../src/PostedHeaders.sol";
import { SequencerBond } from "../src/SequencerBond.sol";
import { RunReference, Timing } from "../src/interfaces/IBlindedInbox.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
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
        new BlindedInbox(registry, queue, sequencer, defaultTiming());
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.ZeroSequencer.selector));
        new BlindedInbox(registry, queue, address(0), defaultTiming());
    }

    function testFuzzTiming(uint256 seed) public {
        uint32[6] memory t;
        for (uint256 i = 0; i < 6; i++) {
            t[i] = uint32(uint256(keccak256(abi.encode(seed, i))) % 8);
        }
        if (seed % 2 == 0) (t[1], t[5]) = (t[1] % 3, t[5] * 4);
        if (seed % 16 == 0) (t[0], t[4]) = (type(uint32).max, type(uint32).max); // their sum does not wrap around
        Timing memory given = Timing(t[0], t[1], t[2], t[3], t[4], t[5]);
        bool good = t[1] < t[0] && uint256(t[5]) > uint256(t[0]) + t[4];
        for (uint256 i = 0; i < 6; i++) {
            good = good && t[i] > 0;
        }
        address next = vm.computeCreateAddress(address(this), vm.getNonce(address(this)) + 1);
        CommitteeRegistry itsRegistry = new CommitteeRegistry(GOVERNOR, next);
        if (!good) vm.expectRevert(abi.encodeWithSelector(PostedHeaders.BadTiming.selector));
        BlindedInbox made = new BlindedInbox(itsRegistry, queue, sequencer, given);
        if (good) checkEqual(abi.encode(made.timing()), abi.encode(given), "timing");
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
        vm.snapshotGasLastCall("BlindedInbox.post, first run, 1 header");
        checkEqual(inbox.headHash(), hash, "head hash");

        headers = run(1);
        post(headers, certificate(headers[0], THREE_OF_FOUR));
        uint256 one = vm.snapshotGasLastCall("BlindedInbox.post, 1 header");
        headers = run(33);
        post(headers, certificate(headers[32], 0xf));
        uint256 many = vm.snapshotGasLastCall("BlindedInbox.post, 33 headers");
        // On top come 21,000 and 448 bytes of calldata a header, at most 40 gas each even at the floor price.
        check(one + 21_000 + 12_000 < 300_000, "a posting above 300,000 gas");
        check((many - one) / 32 < 15_000, "a further batch above 15,000 gas");
        check(calldataGas(headers[32]) + (many - one) / 32 < 15_000, "a further batch with its calldata");
        (uint64 number, uint64 timestampMs, uint64 origin, uint64 cursor) = inbox.head();
        checkEqual(number, 35, "number");
        checkEqual(timestampMs, headers[32].timestampMs, "time");
        checkEqual(origin, headers[32].l1OriginNumber, "origin");
        checkEqual(cursor, 0, "cursor");
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

    function testRunCommitment() public {
        BatchHeader[] memory headers = run(5);
        RunReference memory posting = postRun(headers);
        checkEqual(
            inbox.runCommitment(5),
            keccak256(abi.encode(uint64(1), uint64(5), uint64(block.number), posting.headerRoot)),
            "commitment"
        );
        checkEqual(inbox.runCommitment(4), bytes32(0), "no run ends here");
        RunReference memory none;
        check(!inbox.isRun(none), "the empty reference");
    }

    function testEmptyRun() public {
        BlindedInbox.Certificate memory c;
        vm.prank(POSTER, POSTER);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.EmptyRun.selector));
        inbox.post(new BatchHeader[](0), "", c);
    }

    function testChainRules() public {
        BatchHeader[] memory headers = run(3);
        headers[1].version = 2;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.UnsupportedVersion.selector, 2));
        headers = run(3);
        headers[1].number = 3;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.WrongNumber.selector, 2, 3));
        headers = run(3);
        headers[2].parentHash = keccak256("other");
        expectPostRefusal(
            headers,
            abi.encodeWithSelector(
                BlindedInbox.WrongParent.selector, 3, inbox.hashHeader(headers[1]), keccak256("other")
            )
        );
        headers = run(3);
        headers[0].timestampMs = 0;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.TimeNotIncreasing.selector, 1));
        headers = run(2);
        headers[0].l1OriginNumber = headers[1].l1OriginNumber + 1;
        relink(headers);
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.OriginDecreasing.selector, 2));
    }

    function testPostedTwice() public {
        BatchHeader[] memory headers = run(2);
        post(headers, certificate(headers[1], THREE_OF_FOUR));
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.WrongNumber.selector, 3, 1));
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

    function testRunMayNotCrossEpochs() public {
        registerEpoch(EPOCH_LAST + 10, 4, 3);
        BatchHeader[] memory headers = run(3);
        headers[1].epoch = 2;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.RunCrossesEpoch.selector, 2));
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
        BatchHeader[] memory headers = run(4);
        bytes32 parent = inbox.headHash();
        for (uint256 i = 0; i < 4; i++) {
            headers[i].epoch = 2;
            headers[i].parentHash = parent;
            parent = inbox.hashHeader(headers[i]);
        }
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.RunCrossesEpoch.selector, 1));
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

    function testOnlyTopLevel() public {
        BatchHeader[] memory headers = run(1);
        BlindedInbox.Certificate memory c = certificate(headers[0], THREE_OF_FOUR);
        bytes memory reason = abi.encodeWithSelector(BlindedInbox.NotTopLevel.selector);
        Middleman middleman = new Middleman();
        vm.prank(POSTER, POSTER);
        vm.expectRevert(reason);
        middleman.post(inbox, headers, c);
        // An account that delegates (EIP-7702) could wrap the call although it is the origin.
        vm.etch(POSTER, abi.encodePacked(hex"ef0100", address(middleman)));
        vm.prank(POSTER, POSTER);
        vm.expectRevert(reason);
        inbox.post(headers, "", c);
        vm.prank(POSTER, POSTER);
        vm.expectRevert(reason);
        inbox.postData(1, "");
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

    function testBlobsAreAnnounced() public {
        BatchHeader[] memory headers = run(2);
        BlindedInbox.Certificate memory c = certificate(headers[1], THREE_OF_FOUR);
        vm.blobhashes(someBlobs());
        vm.expectEmit(true, true, true, true, address(inbox));
        emit BlobsPosted(1, 2, someBlobs());
        vm.prank(POSTER, POSTER);
        inbox.post(headers, "", c);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit DataPosted(1, POSTER, someBlobs());
        vm.prank(POSTER, POSTER);
        inbox.postData(1, "");
    }
}
