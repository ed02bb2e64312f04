// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { Challenge } from "../src/HintEvidence.sol";
import { HintRegistry } from "../src/HintRegistry.sol";
import { RunReference } from "../src/interfaces/IBlindedInbox.sol";
import { HintFixture } from "./helpers/HintFixture.sol";

/// @notice What the calls cost besides the 21,000 of a transaction and its calldata.
/// @dev Everything that a call finds in storage was written in `setUp`, so that its slots are cold.
contract HintGasTest is HintFixture {
    RunReference internal first;
    RunReference internal single;
    RunReference internal many;
    uint64 internal open;
    uint64 internal done;
    uint64 internal longest;
    uint64 internal claimed;

    function setUp() public {
        vm.roll(1_000_000);
        deployHints();
        fund(PUBLISHER, 10 * BOND);
        // Each with memory of its own.
        this.postDisputed();
        this.postFinished();
        this.postLongest();
        this.postUnreleased();
        single = buildRun(100, 1, 0).run;
        many = buildRun(101, 33, 0).run;
    }

    function postDisputed() external {
        Built memory b = disputed();
        open = post(PUBLISHER, b.run, encode(wrongEntries(b)));
        commitTo(CHALLENGER, open, challengeOf(b, wrongEntries(b), 3, 70));
    }

    function postFinished() external {
        Built memory b = finished();
        done = post(PUBLISHER, b.run, encode(rightEntries(b)));
        vm.roll(block.number + CHALLENGE_WINDOW);
        hints.finalize(done);
    }

    function postLongest() external {
        Built memory b = longestItem();
        longest = post(PUBLISHER, b.run, encode(rightEntries(b)));
        commitTo(CHALLENGER, longest, challengeOf(b, rightEntries(b), 0, 0));
    }

    function postUnreleased() external {
        Built memory b = unreleased();
        claimed = post(PUBLISHER, b.run, encode(allMalformed(b)));
        commitTo(CHALLENGER, claimed, challengeOf(b, allMalformed(b), 0, accepted(b)));
    }

    /// @dev Eight batches of 100; the verifier knows every item.
    function disputed() internal returns (Built memory) {
        return inFirstBlock(buildRun(1, 8, 100));
    }

    function finished() internal returns (Built memory) {
        return inFirstBlock(buildRun(9, 8, 100));
    }

    /// @dev One batch of one envelope of the largest size.
    function longestItem() internal returns (Built memory b) {
        b = buildRun(17, 1, 1);
        Item memory item = b.items[0][0];
        item.data = envelope(1, 32_768);
        item.id = caller.id(item.data);
        (item.code, item.kind, item.key) = (0, 1, bytes16("key"));
        tellKey(item);
        b.headers[0].envelopeRoot = rootOfItems(b.items[0]);
        tell(b);
        return inFirstBlock(b);
    }

    /// @dev As it was posted in the first block, whenever it is built again.
    function inFirstBlock(Built memory b) internal returns (Built memory) {
        b.run.postedAt = 1_000_000;
        inbox.tell(b.run);
        return b;
    }

    /// @dev Entry 70 of batch 3 has another key.
    function wrongEntries(Built memory b) internal pure returns (BatchHints[] memory entries) {
        entries = rightEntries(b);
        setEntry(entries, 3, 70, 1, bytes16("another"));
    }

    function unreleased() internal returns (Built memory) {
        return inFirstBlock(buildRun(140, 1, 100));
    }

    function accepted(Built memory b) internal pure returns (uint32 index) {
        index = 70;
        while (b.items[0][index].kind == 0) index++;
    }

    function hundreds(uint256 batches) internal pure returns (bytes memory) {
        BatchHints[] memory entries = new BatchHints[](batches);
        for (uint256 i = 0; i < batches; i++) {
            entries[i].entries = new bytes(1_700);
        }
        return encode(entries);
    }

    function testPostOne() public {
        post(PUBLISHER, single, hundreds(1));
        uint256 gas = vm.snapshotGasLastCall("HintRegistry.postHints, 1 batch of 100");
        check(gas < 150_000, "a posting above 150,000 gas besides calldata");
    }

    function testPostMany() public {
        post(PUBLISHER, many, hundreds(33));
        uint256 gas = vm.snapshotGasLastCall("HintRegistry.postHints, 33 batches of 100");
        check(gas < 150_000 + 32 * 3_000, "a further batch above 3,000 gas besides calldata");
    }

    /// @dev An index of batches of 100 with no malformed item.
    function indexOf(uint256 batches) internal pure returns (bytes memory index) {
        for (uint256 i = 0; i < batches; i++) {
            index = bytes.concat(index, abi.encodePacked(uint32(100), uint32(0)));
        }
    }

    function postBlobs(RunReference memory run, uint256 batches) internal {
        bytes32[] memory hashes = new bytes32[](1);
        hashes[0] = keccak256("blob");
        vm.blobhashes(hashes);
        vm.prank(PUBLISHER, PUBLISHER);
        hints.postHintsInBlobs(run, indexOf(batches));
    }

    function testPostOneInBlobs() public {
        postBlobs(single, 1);
        uint256 gas = vm.snapshotGasLastCall("HintRegistry.postHintsInBlobs, 1 batch of 100");
        check(gas < 150_000, "a posting above 150,000 gas besides its blob");
    }

    function testPostManyInBlobs() public {
        postBlobs(many, 33);
        uint256 gas = vm.snapshotGasLastCall("HintRegistry.postHintsInBlobs, 33 batches of 100");
        check(gas < 150_000 + 32 * 1_000, "a further batch above 1,000 gas besides its blob");
    }

    function testFinalize() public {
        hints.finalize(open);
        vm.snapshotGasLastCall("HintRegistry.finalize");
    }

    function testDrop() public {
        Built memory b = disputed();
        challenge(CHALLENGER, open, challengeOf(b, wrongEntries(b), 3, 70));
        vm.roll(block.number + 1);
        hints.drop(longest);
        vm.snapshotGasLastCall("HintRegistry.drop, warm");
        check(!hints.isOpen(longest), "dropped");
    }

    function testReadPlaintext() public {
        Built memory b = finished();
        BatchHints[] memory entries = rightEntries(b);
        uint32 index = 0;
        while (b.items[3][index].kind != 1) index++;
        Challenge memory c = challengeOf(b, entries, 3, index);
        hints.readPlaintext(plaintextOf(c), finalHintOf(c));
        vm.snapshotGasLastCall("HintRegistry.readPlaintext, 256 bytes");
    }

    function testChallenge() public {
        Built memory b = disputed();
        Challenge memory c = challengeOf(b, wrongEntries(b), 3, 70);
        challenge(CHALLENGER, open, c);
        vm.snapshotGasLastCall("HintRegistry.challenge, 8 batches of 100, without the check of the key");
        check(!hints.isOpen(open), "slashed");
    }

    /// @dev Of a release nobody can make, shown with the list that it stands in.
    function testChallengeOfARelease() public {
        Built memory b = unreleased();
        challenge(CHALLENGER, claimed, challengeOf(b, allMalformed(b), 0, accepted(b)));
        vm.snapshotGasLastCall("HintRegistry.challenge, of a singleton release, 1 batch of 100");
        check(!hints.isOpen(claimed), "slashed");
    }

    function testChallengeOfTheLongestItem() public {
        Built memory b = longestItem();
        challenge(CHALLENGER, longest, challengeOf(b, rightEntries(b), 0, 0));
        vm.snapshotGasLastCall("HintRegistry.challenge, 33,151 bytes, without the check of the key");
        check(hints.isOpen(longest), "open");
    }
}
