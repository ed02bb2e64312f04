// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox } from "../src/BlindedInbox.sol";
import { RunReference } from "../src/interfaces/IBlindedInbox.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { Deployment } from "./helpers/Deployment.sol";
import { MerkleProofs } from "./helpers/MerkleProofs.sol";

/// @notice Headers that L1 makes itself.
/// @dev Events of the registry that are expected here.
library RegistryEvents {
    event EpochEnds(uint64 indexed epoch, uint64 lastNumber);
}

contract L1HeadersTest is Deployment {
    bytes32 internal constant SALT = keccak256("salt");

    /// @dev The head.
    BatchHeader internal parent;

    event Posted(
        uint64 indexed firstNumber,
        uint64 indexed lastNumber,
        uint64 postedAt,
        bytes32 headHash,
        bytes32 headerRoot
    );
    event L1Header(uint64 indexed number, bytes32 headerHash, BatchHeader header);

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        registerEpoch(EPOCH_LAST, 4, 3);
        BatchHeader[] memory headers = run(3);
        postRun(headers);
        parent = headers[2];
    }

    /// @dev Silence until the deadline is over.
    function goSilent() internal {
        pass(POSTING_DEADLINE + 1);
    }

    /// @dev The header that L1 must make now, with these items' leaves, bytes and gas.
    function expected(bytes32[] memory leaves, uint32 size, uint64 gas)
        internal
        view
        returns (BatchHeader memory header)
    {
        header = parent;
        header.number = parent.number + 1;
        header.parentHash = inbox.hashHeader(parent);
        header.timestampMs = uint64(block.timestamp * 1_000);
        header.envelopeRoot = 0;
        header.dataHash = 0;
        if (leaves.length != 0) (header.envelopeRoot,) = MerkleProofs.prove(leaves, 0);
        header.envelopeCount = uint32(leaves.length);
        header.envelopeBytes = size;
        header.gas = gas;
        header.forcedCursor = parent.forcedCursor + uint64(leaves.length);
    }

    function make(BatchHeader memory header) internal {
        bytes32 hash = inbox.hashHeader(header);
        bytes32 root = keccak256(bytes.concat(hex"00", hash));
        vm.expectEmit(true, true, true, true, address(inbox));
        emit L1Header(header.number, hash, header);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit Posted(header.number, header.number, uint64(block.number), hash, root);
        checkEqual(inbox.postL1Header(parent), hash, "returned");
        checkEqual(inbox.headHash(), hash, "head hash");
        (uint64 number, uint64 timestampMs, uint64 origin, uint64 cursor) = inbox.head();
        checkEqual(number, header.number, "number");
        checkEqual(timestampMs, header.timestampMs, "time");
        checkEqual(origin, header.l1OriginNumber, "origin");
        checkEqual(cursor, header.forcedCursor, "cursor");
        RunReference memory posting = RunReference(number, number, uint64(block.number), root);
        (bool posted,) = inbox.verifyHeader(header, posting, new bytes32[](0));
        check(posted, "a run of its own");
        parent = header;
    }

    function expectRefusal(bytes memory reason) internal {
        vm.expectRevert(reason);
        inbox.postL1Header(parent);
    }

    function transactionLeaf(uint256 size, uint64 gasLimit) internal pure returns (bytes32) {
        bytes32 item = keccak256(bytes.concat(hex"ff", bytes8(gasLimit), filled(size, 0x02)));
        return keccak256(bytes.concat(hex"00", bytes32(0), item, hex"ff"));
    }

    function envelopeLeaf(uint256 size) internal pure returns (bytes32) {
        return keccak256(bytes.concat(hex"00", bytes32(0), keccak256(filled(size, 0x02)), hex"fe"));
    }

    function testForcedItemsAndTheClosingHeader() public {
        forceTransaction(100, 30_000);
        forceEnvelope(700);
        forceTransaction(200, 10_000_000);
        goSilent();
        bytes32[] memory leaves = new bytes32[](3);
        leaves[0] = transactionLeaf(100, 30_000);
        leaves[1] = envelopeLeaf(700);
        leaves[2] = transactionLeaf(200, 10_000_000);
        BatchHeader memory header = expected(leaves, 109 + 700 + 209, 10_030_000);
        checkEqual(header.epoch, 1, "epoch");
        make(header);
        checkEqual(inbox.l1MadeCount(), 1, "counted");
        (uint64 number, uint64 madeAt) = inbox.l1Made(0);
        checkEqual(number, 4, "number");
        checkEqual(madeAt, block.number, "block");
        checkEqual(inbox.headPostedAt(), block.number, "posted");
        check(inbox.lastCertifiedAt() < block.number, "not certified");

        // In the same second there is no room for another, and the empty one that closes it comes once.
        expectRefusal(abi.encodeWithSelector(BlindedInbox.SecondNotOver.selector, block.timestamp));
        pass(1);
        make(expected(new bytes32[](0), 0, 0));
        pass(1);
        expectRefusal(abi.encodeWithSelector(BlindedInbox.NothingToInclude.selector));
        forceTransaction(100, 30_000);
        pass(FORCED_DELAY - 1);
        expectRefusal(abi.encodeWithSelector(BlindedInbox.NothingToInclude.selector));
        pass(1);
        leaves = new bytes32[](1);
        leaves[0] = transactionLeaf(100, 30_000);
        make(expected(leaves, 109, 30_000));
    }

    /// forge-config: default.isolate = true
    function testGas() public {
        forceTransaction(622, 30_000);
        goSilent();
        inbox.postL1Header(parent);
        vm.snapshotGasLastCall("BlindedInbox.postL1Header, first, 1 item");
    }

    /// forge-config: default.isolate = true
    function testGasSixteenItems() public {
        for (uint256 i = 0; i < 17; i++) {
            forceTransaction(622, 10_000_000);
        }
        goSilent();
        bytes32[] memory leaves = new bytes32[](16);
        for (uint256 i = 0; i < 16; i++) {
            leaves[i] = transactionLeaf(622, 10_000_000);
        }
        BatchHeader memory header = expected(leaves, 16 * 631, 160_000_000);
        inbox.postL1Header(parent);
        vm.snapshotGasLastCall("BlindedInbox.postL1Header, first, 16 items");
        checkEqual(inbox.headHash(), inbox.hashHeader(header), "as expected");
        parent = header;
        pass(1);
        leaves = new bytes32[](1);
        leaves[0] = transactionLeaf(622, 10_000_000);
        make(expected(leaves, 631, 10_000_000));
        pass(1);
        inbox.postL1Header(parent);
        vm.snapshotGasLastCall("BlindedInbox.postL1Header, empty");
    }

    /// @dev Open for `answerWindow` blocks, closed for as many, and so on (O-3).
    function testFuzzWhenSilenceAllows(uint256 silence) public {
        forceTransaction(100, 30_000);
        silence = silence % 2 == 0
            ? bound(silence, POSTING_DEADLINE - 3, POSTING_DEADLINE + 3)
            : bound(silence, FORCED_DELAY, POSTING_DEADLINE + 5 * ANSWER_WINDOW);
        uint256 from = block.number + POSTING_DEADLINE + 1;
        pass(silence);
        bytes32[] memory leaves = new bytes32[](1);
        leaves[0] = transactionLeaf(100, 30_000);
        if (silence <= POSTING_DEADLINE) {
            expectRefusal(abi.encodeWithSelector(BlindedInbox.L1HeaderNotDue.selector, from));
            return;
        }
        uint256 windows = (block.number - from) / ANSWER_WINDOW;
        if (windows % 2 == 1) {
            uint256 next = from + (windows + 1) * ANSWER_WINDOW;
            expectRefusal(abi.encodeWithSelector(BlindedInbox.L1HeaderNotDue.selector, next));
            vm.roll(next - 1);
            expectRefusal(abi.encodeWithSelector(BlindedInbox.L1HeaderNotDue.selector, next));
            vm.roll(next);
        }
        make(expected(leaves, 109, 30_000));
    }

    function testCertifiedRunEndsTheSilence() public {
        pass(POSTING_DEADLINE);
        BatchHeader[] memory headers = run(1);
        postRun(headers);
        parent = headers[0];
        pass(POSTING_DEADLINE);
        expectRefusal(abi.encodeWithSelector(BlindedInbox.L1HeaderNotDue.selector, block.number + 1));
        pass(1);
        make(expected(new bytes32[](0), 0, 0)); // the head has items
    }

    function testParentMustBeTheHead() public {
        goSilent();
        bytes32 head = inbox.headHash();
        uint256 below = 0;
        for (uint256 i = 0; i < 8; i++) {
            parent.gas += 1;
            bytes32 given = inbox.hashHeader(parent);
            if (given < head) below++;
            expectRefusal(abi.encodeWithSelector(BlindedInbox.WrongParent.selector, 3, head, given));
        }
        check(below > 0 && below < 8, "hashes on both sides of the head's");
    }

    /// @dev Rule O-4.
    function testNoneBeforeTheFirstCertifiedHeader() public {
        deployContracts();
        registerEpoch(EPOCH_LAST, 4, 3);
        goSilent();
        BatchHeader memory nothing;
        parent = nothing;
        expectRefusal(
            abi.encodeWithSelector(
                BlindedInbox.WrongParent.selector, 0, inbox.headHash(), inbox.hashHeader(nothing)
            )
        );
    }

    /// @dev The governor registers no further epoch: L1 takes forced items in the name of the last one (E-6).
    function testTheLastEpochServesWhereNoneIsRegistered() public {
        deployContracts();
        registerEpoch(2, 4, 3);
        BatchHeader[] memory headers = run(2);
        postRun(headers);
        parent = headers[1];
        forceTransaction(100, 100_000);
        goSilent();
        bytes32[] memory leaves = new bytes32[](1);
        leaves[0] = transactionLeaf(100, 100_000);
        BatchHeader memory header = expected(leaves, 109, 100_000);
        make(header); // number 3, of epoch 1
        pass(1);
        parent = header;
        header = expected(new bytes32[](0), 0, 0);
        make(header); // number 4 closes its second
        checkEqual(registry.servingEpoch(5), 1, "serving");

        // What L1 gave out stays the last epoch's; the new one begins behind it.
        vm.expectEmit(true, true, true, true, address(registry));
        emit RegistryEvents.EpochEnds(1, 4);
        registerEpoch(10, 4, 3);
        (uint64 first, uint64 last) = registry.numbersOf(1);
        checkEqual(first, 1, "first of 1");
        checkEqual(last, 4, "last of 1");
        (first, last) = registry.numbersOf(2);
        checkEqual(first, 5, "first of 2");
        checkEqual(registry.servingEpoch(4), 1, "4");
        checkEqual(registry.servingEpoch(5), 2, "5");
    }

    /// @dev The first number of the next epoch and of the next rules.
    function testEpochAndRulesAreThoseOfTheNumber() public {
        deployContracts();
        registerEpoch(SWITCH_LEAD - 1, 4, 3);
        registerEpoch(EPOCH_LAST, 4, 3);
        vm.prank(GOVERNOR);
        registry.scheduleRules(SWITCH_LEAD, 2);
        BatchHeader[] memory headers = run(SWITCH_LEAD - 1);
        for (uint256 i = 0; i < headers.length; i++) {
            headers[i].l1OriginNumber = headers[0].l1OriginNumber;
        }
        relink(headers);
        postRun(headers);
        parent = headers[headers.length - 1];
        forceTransaction(100, 30_000);
        goSilent();
        bytes32[] memory leaves = new bytes32[](1);
        leaves[0] = transactionLeaf(100, 30_000);
        BatchHeader memory header = expected(leaves, 109, 30_000);
        (header.epoch, header.rules) = (2, 2);
        make(header);
    }

    /// @dev A header may be stamped some seconds ahead: L1 waits until that second is over (O-4).
    function testNoneWithinItsParentsSecond() public {
        forceTransaction(100, 30_000);
        goSilent();
        uint256 silent = block.timestamp;
        for (uint256 back = 0; back < 2; back++) {
            vm.warp(parent.timestampMs / 1_000 - back);
            expectRefusal(
                abi.encodeWithSelector(BlindedInbox.SecondNotOver.selector, parent.timestampMs / 1_000)
            );
        }
        vm.warp(silent);
        bytes32[] memory leaves = new bytes32[](1);
        leaves[0] = transactionLeaf(100, 30_000);
        make(expected(leaves, 109, 30_000));
    }

    /// @dev The committee goes on from L1's header, with an origin that shows it.
    function testCommitteeContinues() public {
        forceTransaction(100, 30_000);
        goSilent();
        bytes32[] memory leaves = new bytes32[](1);
        leaves[0] = transactionLeaf(100, 30_000);
        make(expected(leaves, 109, 30_000));
        uint64 madeAt = uint64(block.number);
        pass(FINALITY);
        BatchHeader[] memory headers = run(2);
        headers[0].l1OriginNumber = madeAt - 1;
        relink(headers);
        BlindedInbox.Certificate memory c = certificate(headers[1], 0x7);
        vm.prank(POSTER, POSTER);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.OriginTooOld.selector, madeAt - 1, madeAt));
        inbox.post(headers, "", c);
        headers = run(2);
        checkEqual(headers[0].l1OriginNumber, madeAt, "origin");
        checkEqual(headers[0].forcedCursor, 1, "cursor");
        postRun(headers);
        headers = run(1); // after certified ones the origin need not be new
        postRun(headers);
        checkEqual(inbox.lastCertifiedAt(), block.number, "certified");
    }

    /// @dev No certified header and one of L1's stand in the same block, so the two blocks say which of them the head is,
    /// and the first certified header behind one of L1's knows of it; those behind it keep to its origin.
    function testCertifiedHeadersAndL1sShareNoBlock() public {
        goSilent();
        make(expected(new bytes32[](0), 0, 0));
        uint64 madeAt = uint64(block.number);
        for (uint64 back = 1; back <= FINALITY; back += FINALITY - 1) {
            BatchHeader[] memory stale = run(1);
            stale[0].l1OriginNumber = madeAt - back;
            relink(stale);
            expectPostRefusal(
                stale, abi.encodeWithSelector(BlindedInbox.OriginTooOld.selector, madeAt - back, madeAt)
            );
        }
        BatchHeader[] memory ahead = run(1);
        ahead[0].l1OriginNumber = madeAt;
        relink(ahead);
        expectPostRefusal(ahead, abi.encodeWithSelector(BlindedInbox.OriginAhead.selector, madeAt));

        // Behind certified ones in the same block, too.
        pass(FINALITY);
        postOne();
        BatchHeader[] memory older = run(1);
        older[0].l1OriginNumber = madeAt - 1;
        relink(older);
        expectPostRefusal(
            older, abi.encodeWithSelector(BlindedInbox.OriginDecreasing.selector, older[0].number)
        );
    }

    /// @dev The other way round: on none of its grounds does L1 make one in the block of a certified posting.
    function testL1MakesNoneInTheBlockOfACertifiedPosting() public {
        uint256 snapshot = vm.snapshotState();
        goSilent(); // (a)
        postOne();
        checkRefusal(block.number + POSTING_DEADLINE + 1);

        vm.revertToState(snapshot);
        showTwo(5); // (b)
        pass(ANSWER_WINDOW + 1);
        postOne();
        checkRefusal(block.number + POSTING_DEADLINE + 1);
        vm.revertToState(snapshot);
        showTwo(4);
        pass(ANSWER_WINDOW);
        postOne();
        checkRefusal(block.number + POSTING_DEADLINE + 1);

        vm.revertToState(snapshot);
        for (uint256 i = 0; i < 50; i++) {
            forceTransaction(100, 21_000);
        }
        pass(FORCED_DELAY + FINALITY);
        postOne();
        pass(POSTING_DEADLINE + 1); // (c)
        postOne();
        checkRefusal(block.number + FORCED_DELAY + 1);

        vm.revertToState(snapshot);
        vm.prank(GOVERNOR);
        registry.announceEnd();
        pass(EPOCH_NOTICE);
        postOne();
        checkRefusal(block.number + POSTING_DEADLINE + 1);
        pass(1); // (d)
        expectPostRefusal(run(1), abi.encodeWithSelector(BlindedInbox.EpochIsOver.selector, 5));
    }

    function showTwo(uint64 number) internal {
        BatchHeader memory first = run(1)[0];
        BatchHeader memory second = run(1)[0];
        (first.number, second.number) = (number, number);
        second.gas ^= 1;
        commitTo(address(this), conflictEvidence(first, second), SALT);
        bytes memory one = signHeader(SEQUENCER_KEY, first);
        inbox.slashEquivocation(first, one, second, signHeader(SEQUENCER_KEY, second), SALT);
    }

    /// @dev What was signed after an empty header may be too old by then: another empty one lets it be signed anew.
    function testAnEmptyHeaderFollowsAnEmptyOneAfterTheDeadline() public {
        goSilent();
        make(expected(new bytes32[](0), 0, 0)); // closes the second of the head's items
        pass(POSTING_DEADLINE);
        expectRefusal(abi.encodeWithSelector(BlindedInbox.NothingToInclude.selector));
        pass(1);
        make(expected(new bytes32[](0), 0, 0));
    }

    function testTwoHeadersShown() public {
        showTwo(4);
        uint256 shownAt = block.number;
        bytes memory reason = abi.encodeWithSelector(
            BlindedInbox.L1HeaderNotDue.selector, inbox.lastCertifiedAt() + POSTING_DEADLINE + 1
        );
        pass(ANSWER_WINDOW);
        expectRefusal(reason);
        vm.roll(shownAt + ANSWER_WINDOW + 1);
        make(expected(new bytes32[](0), 0, 0));
        vm.warp(block.timestamp + 12);
        expectRefusal(reason); // this number only
    }

    /// @dev Under (b) an empty one may follow an empty one: it decides the number.
    function testTwoHeadersShownAfterAnEmptyHeader() public {
        goSilent();
        make(expected(new bytes32[](0), 0, 0));
        pass(1);
        expectRefusal(abi.encodeWithSelector(BlindedInbox.NothingToInclude.selector));
        showTwo(5);
        pass(ANSWER_WINDOW + 1);
        make(expected(new bytes32[](0), 0, 0));
    }

    function testOneOfTheTwoWasPosted() public {
        showTwo(4);
        pass(ANSWER_WINDOW);
        BatchHeader[] memory headers = run(1);
        postRun(headers);
        parent = headers[0];
        pass(1);
        expectRefusal(
            abi.encodeWithSelector(
                BlindedInbox.L1HeaderNotDue.selector, inbox.lastCertifiedAt() + POSTING_DEADLINE + 1
            )
        );
    }

    /// @dev Two headers shown long ago for a number far ahead do not throw away what is certified when it comes.
    function testAnOldShowingWaitsForTheHead() public {
        showTwo(5);
        pass(ANSWER_WINDOW + 1);
        BatchHeader[] memory headers = run(1);
        postRun(headers);
        parent = headers[0];
        uint256 postedAt = block.number;
        pass(ANSWER_WINDOW);
        expectRefusal(
            abi.encodeWithSelector(BlindedInbox.L1HeaderNotDue.selector, postedAt + POSTING_DEADLINE + 1)
        );
        pass(1);
        make(expected(new bytes32[](0), 0, 0));
    }

    /// @dev Whoever forced how many items in whatever blocks: in order, none twice, never more than 16.
    function testFuzzDrains(uint256 seed) public {
        uint256 count = bound(seed, 1, 40);
        for (uint256 i = 0; i < count; i++) {
            if ((seed >> i) & 1 == 0) forceTransaction(100 + i, 21_000 + uint64(i));
            else forceEnvelope(639 + i);
        }
        goSilent();
        uint256 next = 0;
        while (next < count) {
            uint256 taken = count - next < 16 ? count - next : 16;
            bytes32[] memory leaves = new bytes32[](taken);
            uint32 size = 0;
            uint64 gas = 0;
            for (uint256 j = 0; j < taken; j++) {
                uint256 i = next + j;
                bool encrypted = (seed >> i) & 1 != 0;
                leaves[j] = encrypted ? envelopeLeaf(639 + i) : transactionLeaf(100 + i, 21_000 + uint64(i));
                size += uint32(encrypted ? 639 + i : 109 + i);
                gas += encrypted ? 0 : 21_000 + uint64(i);
            }
            make(expected(leaves, size, gas));
            next += taken;
            pass(1);
        }
        make(expected(new bytes32[](0), 0, 0));
    }

    /// @dev The sequencer posts one header now, alone.
    function postOne() internal {
        BatchHeader[] memory headers = run(1);
        postRun(headers);
        parent = headers[0];
    }

    /// @dev L1 makes the next header, which takes so many of equal items.
    function makeOf(uint256 items) internal {
        bytes32[] memory leaves = new bytes32[](items);
        for (uint256 i = 0; i < items; i++) {
            leaves[i] = transactionLeaf(100, 21_000);
        }
        make(expected(leaves, uint32(items * 109), uint64(items * 21_000)));
    }

    function checkRefusal(uint256 from) internal {
        expectRefusal(abi.encodeWithSelector(BlindedInbox.L1HeaderNotDue.selector, from));
    }

    /// @dev One header in each `postingDeadline` takes 16 items: L1 takes the others when the deadline is over for them.
    /// Rules FI-2, O-3.
    function testASlowSequencerCannotStretchTheQueue() public {
        for (uint256 i = 0; i < 50; i++) {
            forceTransaction(100, 21_000);
        }
        uint256 due = block.number + FORCED_DELAY;
        uint256 from = due + POSTING_DEADLINE + 1;
        pass(FORCED_DELAY + FINALITY);
        postOne();
        checkEqual(parent.forcedCursor, 16, "its first");
        pass(from - 1 - block.number);
        postOne();
        checkEqual(parent.forcedCursor, 32, "its second");
        checkRefusal(from);
        pass(1);
        checkRefusal(from + FORCED_DELAY);
        pass(FORCED_DELAY);
        makeOf(16);
        checkEqual(inbox.l1MadeCount(), 1, "made by L1");

        // What it signed without knowing of that header follows no more.
        BatchHeader[] memory stale = run(1);
        stale[0].l1OriginNumber = uint64(block.number) - 1;
        stale[0].forcedCursor = 50;
        relink(stale);
        expectPostRefusal(
            stale, abi.encodeWithSelector(BlindedInbox.OriginTooOld.selector, block.number - 1, block.number)
        );
        pass(1);
        makeOf(2);
        checkEqual(block.number, from + FORCED_DELAY + 1, "the last one is in");

        // And that was the end of it.
        pass(1);
        checkRefusal(inbox.lastCertifiedAt() + uint256(POSTING_DEADLINE) + 1);
        pass(FINALITY);
        postOne();
        checkEqual(parent.forcedCursor, 50, "nothing left");
    }

    /// @dev Items that waited too long open the same windows as silence does, whatever the sequencer posts.
    function testFuzzOverdueItemsAlternateWithTheCommittee(uint256 waited) public {
        for (uint256 i = 0; i < 20; i++) {
            forceTransaction(100, 21_000);
        }
        uint256 from = block.number + FORCED_DELAY + POSTING_DEADLINE + 1;
        pass(FORCED_DELAY + FINALITY);
        postOne();
        pass(from - block.number + bound(waited, 0, 4 * uint256(ANSWER_WINDOW)));
        uint256 windows = (block.number - from) / ANSWER_WINDOW;
        if (windows % 2 == 1) checkRefusal(from + (windows + 1) * ANSWER_WINDOW);
        else makeOf(4);
    }

    /// @dev One posting in each window could else keep a full queue waiting for days.
    function testWhoPostsHasNoWindowBeyondThePause() public {
        for (uint256 i = 0; i < 100; i++) {
            forceTransaction(100, 21_000);
        }
        uint256 from = block.number + FORCED_DELAY + POSTING_DEADLINE + 1;
        pass(FORCED_DELAY + FINALITY);
        postOne();
        pass(from + ANSWER_WINDOW - block.number);
        checkRefusal(from + 2 * uint256(ANSWER_WINDOW));
        postOne();
        checkRefusal(block.number + FORCED_DELAY + 1);
        pass(FORCED_DELAY + 1);
        require(block.number < from + 2 * uint256(ANSWER_WINDOW), "still in the committee's window");
        makeOf(16);
    }

    /// @dev Who posts in the very block in which the first window opens is owed no other window than who posts later.
    function testWhoPostsAsTheWindowOpensHasNoWindowBeyondThePause() public {
        for (uint256 i = 0; i < 100; i++) {
            forceTransaction(100, 21_000);
        }
        uint256 from = block.number + FORCED_DELAY + POSTING_DEADLINE + 1;
        pass(FORCED_DELAY + FINALITY);
        postOne();
        pass(from - block.number);
        postOne();
        checkEqual(block.number, from, "as it opens");
        pass(ANSWER_WINDOW);
        makeOf(16);
    }

    /// @dev Items from before an outage would else knock it out again and again, with whatever it signed meanwhile.
    function testACommitteeThatIsBackAndPostsIsLeftInPeace() public {
        for (uint256 i = 0; i < 100; i++) {
            forceTransaction(100, 21_000);
        }
        uint256 from = block.number + FORCED_DELAY + POSTING_DEADLINE + 1;
        pass(FORCED_DELAY + FINALITY);
        postOne();
        pass(from - block.number + ANSWER_WINDOW / 2);
        for (uint256 i = 0; i < 4; i++) {
            postOne();
            checkRefusal(block.number + FORCED_DELAY + 1);
            pass(FORCED_DELAY);
            checkRefusal(block.number + 1);
        }
        pass(1);
        makeOf(16);
        checkEqual(parent.forcedCursor, 96, "as soon as it pauses");
    }
}
