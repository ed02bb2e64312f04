// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { RegistrySchedule } from "../src/RegistrySchedule.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { Deployment } from "./helpers/Deployment.sol";

/// @dev A committee that is gone, and rule sets that begin at a number.
contract CommitteeReplacementTest is Deployment {
    event EpochEnds(uint64 indexed epoch, uint64 lastNumber);
    event SilenceAnnounced(uint64 lastCertifiedAt, uint256 endableAfter);
    event RulesScheduled(uint64 indexed firstNumber, uint16 rules);

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        registerEpoch(EPOCH_LAST, 4, 3);
    }

    function announce() internal {
        vm.prank(GOVERNOR);
        registry.announceSilence();
    }

    function expectRefusedEnd(bytes memory reason) internal {
        vm.expectRevert(reason);
        registry.endSilentEpoch();
    }

    /// @dev A committee that lost n − t + 1 keys is replaced at the head, not at its last number, which nobody reaches.
    function testADeadCommitteeIsReplaced() public {
        registerEpoch(2 * EPOCH_LAST, 4, 3); // the next one stands by
        BatchHeader[] memory signed = run(7);
        postRun(signed);
        uint64 lastCertifiedAt = uint64(block.number);
        forceTransaction(100, 30_000);
        pass(POSTING_DEADLINE + 1);
        vm.expectEmit(true, true, true, true, address(registry));
        emit SilenceAnnounced(lastCertifiedAt, block.number + ANSWER_WINDOW);
        announce();
        uint256 until = block.number + ANSWER_WINDOW;
        pass(ANSWER_WINDOW - 1);
        expectRefusedEnd(abi.encodeWithSelector(RegistrySchedule.NoticeNotOver.selector, until));
        pass(1);
        expectRefusedEnd(abi.encodeWithSelector(RegistrySchedule.NoticeNotOver.selector, until));
        pass(ANSWER_WINDOW); // L1 makes headers in every second window
        // What the committee signed and nobody posted must be dead before others sign those numbers.
        expectRefusedEnd(abi.encodeWithSelector(RegistrySchedule.NoL1Header.selector, 7));
        inbox.postL1Header(signed[6]);
        pass(FINALITY + 1);
        uint64 revision = registry.revision();
        vm.expectEmit(true, true, true, true, address(registry));
        emit EpochEnds(1, 8);
        registry.endSilentEpoch();
        checkEqual(registry.revision(), revision + 1, "whoever keeps epochs reads again");
        (uint64 first, uint64 last) = registry.numbersOf(1);
        checkEqual(last, 8, "last of 1");
        (first, last) = registry.numbersOf(2);
        checkEqual(first, 9, "first of 2");
        checkEqual(last, 2 * EPOCH_LAST, "last of 2");
        checkEqual(registry.epochOf(8), 1, "8");
        checkEqual(registry.epochOf(9), 2, "9");

        // The new committee goes on from the head as soon as its notice is over.
        pass(registry.getEpoch(2).countsFrom - block.number);
        BatchHeader[] memory headers = run(3);
        for (uint256 i = 0; i < 3; i++) {
            headers[i].epoch = 2;
        }
        relink(headers);
        postRun(headers);
        (uint64 number,,,) = inbox.head();
        checkEqual(number, 11, "goes on");
        expectRefusedEnd(abi.encodeWithSelector(RegistrySchedule.SilenceNotAnnounced.selector));
    }

    /// @dev One certified header is sign of life enough.
    function testACommitteeThatComesBackStays() public {
        postRun(run(3));
        pass(POSTING_DEADLINE + 1);
        announce();
        uint64 announcedAt = uint64(block.number);
        pass(ANSWER_WINDOW);
        postRun(run(1));
        uint64 backAt = uint64(block.number);
        pass(ANSWER_WINDOW);
        expectRefusedEnd(
            abi.encodeWithSelector(RegistrySchedule.CommitteeIsBack.selector, backAt, announcedAt)
        );
        checkEqual(registry.epochOf(5), 1, "stays");
    }

    function testACommitteeThatComesBackInTheBlockOfTheAnnouncementStays() public {
        postRun(run(3));
        pass(POSTING_DEADLINE + 1);
        announce();
        postRun(run(1));
        uint64 now_ = uint64(block.number);
        pass(2 * ANSWER_WINDOW);
        expectRefusedEnd(abi.encodeWithSelector(RegistrySchedule.CommitteeIsBack.selector, now_, now_));
    }

    /// @dev A committee that never certified anything: its epoch ends before it began, and the next one begins at 1.
    function testACommitteeThatNeverCertifiedIsReplaced() public {
        pass(POSTING_DEADLINE + 1);
        announce();
        registerEpoch(2 * EPOCH_LAST, 4, 3);
        pass(ANSWER_WINDOW + 1);
        registry.endSilentEpoch();
        (uint64 first, uint64 last) = registry.numbersOf(1);
        checkEqual(first, 1, "first of 1");
        checkEqual(last, 0, "last of 1");
        checkEqual(registry.epochOf(1), 2, "1");
        pass(EPOCH_NOTICE);
        BatchHeader[] memory headers = run(2);
        headers[0].epoch = 2;
        headers[1].epoch = 2;
        relink(headers);
        postRun(headers);
    }

    /// @dev Nothing but the head's epoch ends that way, and none where none is registered for the next number.
    function testNoEpochToEnd() public {
        deployContracts();
        registerEpoch(3, 4, 3);
        BatchHeader[] memory headers = run(3);
        postRun(headers);
        pass(POSTING_DEADLINE + 1);
        announce();
        inbox.postL1Header(headers[2]); // closes the second of the last one
        pass(ANSWER_WINDOW + 1);
        expectRefusedEnd(abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 0));
    }

    function testAPlannedEarlyEnd() public {
        registerEpoch(2 * EPOCH_LAST, 4, 3);
        postRun(run(2));
        bytes memory reason =
            abi.encodeWithSelector(CommitteeRegistry.NotAnEarlierEnd.selector, 1, EPOCH_LAST);
        expectRefusedEnd(1, EPOCH_LAST, reason);
        reason = abi.encodeWithSelector(CommitteeRegistry.NotAnEarlierEnd.selector, 2, EPOCH_LAST);
        expectRefusedEnd(2, EPOCH_LAST, reason);
        uint64 early = 2 + SWITCH_LEAD - 1;
        reason = abi.encodeWithSelector(RegistrySchedule.ChangeTooSoon.selector, early, 2 + SWITCH_LEAD);
        expectRefusedEnd(1, early, reason);
        expectRefusedEnd(3, early, abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 3));
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.NotGovernor.selector, address(this)));
        registry.endEpoch(1, 5_000);
        vm.prank(GOVERNOR);
        registry.endEpoch(1, 5_000);
        checkEqual(registry.epochOf(5_000), 1, "5000");
        checkEqual(registry.epochOf(5_001), 2, "5001");
    }

    function expectRefusedEnd(uint64 epoch, uint64 last, bytes memory reason) internal {
        vm.prank(GOVERNOR);
        vm.expectRevert(reason);
        registry.endEpoch(epoch, last);
    }

    /// forge-config: default.fuzz.runs = 32
    /// @dev Whatever the governor does, every number has one epoch at most, and epochs stay in order without gaps.
    function testFuzzEndsKeepEpochsContiguous(uint256 seed) public {
        CommitteeRegistry.Member[] memory members = committee(1);
        for (uint256 i = 0; i < 24; i++) {
            uint256 random = uint256(keccak256(abi.encode(seed, i)));
            uint64 count = registry.epochCount();
            uint64 epoch = uint64(random >> 8) % (count + 1);
            uint64 number = uint64(random >> 80) % 3_000_000;
            vm.startPrank(GOVERNOR);
            if (random % 4 == 0) {
                try registry.endEpoch(epoch, number) { }
                catch (bytes memory reason) {
                    bytes4 name = bytes4(reason);
                    bool known = name == CommitteeRegistry.UnknownEpoch.selector
                        || name == CommitteeRegistry.NotAnEarlierEnd.selector
                        || name == RegistrySchedule.ChangeTooSoon.selector;
                    check(known, "an end refused for no reason");
                }
            } else if (random % 4 == 1) {
                try registry.registerEpoch(parameters(number, 1), members) { }
                catch (bytes memory reason) {
                    check(
                        bytes4(reason) == CommitteeRegistry.EmptyEpoch.selector,
                        "only an empty epoch is refused"
                    );
                }
            } else if (random % 4 == 2) {
                try registry.announceSilence() { }
                catch (bytes memory reason) {
                    check(bytes4(reason) == RegistrySchedule.NotSilent.selector, "only too early");
                }
                vm.roll(block.number + ANSWER_WINDOW + 1);
            } else {
                try registry.endSilentEpoch() { }
                catch (bytes memory reason) {
                    // Every epoch may have ended, so that there is none for the next number.
                    bytes32 noEpoch =
                        keccak256(abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 0));
                    bool known = bytes4(reason) == RegistrySchedule.SilenceNotAnnounced.selector
                        || keccak256(reason) == noEpoch;
                    check(known, "a silent epoch's end refused for no reason");
                }
            }
            vm.stopPrank();
            uint64 next = 1;
            for (uint64 e = 1; e <= registry.epochCount(); e++) {
                (uint64 first, uint64 last) = registry.numbersOf(e);
                checkEqual(first, next, "contiguous");
                check(last + 1 >= first, "not reversed");
                if (last >= first) checkEqual(registry.epochOf(first), e, "epoch of its first");
                if (last >= first) checkEqual(registry.epochOf(last), e, "epoch of its last");
                next = last + 1;
            }
        }
    }

    function testRulesBeginAtANumber() public {
        checkEqual(registry.rulesOf(1), 1, "from the start");
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.NotGovernor.selector, address(this)));
        registry.scheduleRules(5_000, 2);
        vm.startPrank(GOVERNOR);
        vm.expectRevert(
            abi.encodeWithSelector(RegistrySchedule.ChangeTooSoon.selector, SWITCH_LEAD - 1, SWITCH_LEAD)
        );
        registry.scheduleRules(SWITCH_LEAD - 1, 2);
        vm.expectEmit(true, true, true, true, address(registry));
        emit RulesScheduled(5_000, 2);
        registry.scheduleRules(5_000, 2);
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.RulesOutOfOrder.selector, 5_000, 3));
        registry.scheduleRules(5_000, 3);
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.RulesOutOfOrder.selector, 6_000, 2));
        registry.scheduleRules(6_000, 2);
        uint64 revision = registry.revision();
        registry.scheduleRules(6_000, 5);
        checkEqual(registry.revision(), revision + 1, "whoever keeps the rules reads again");
        // The last one counts, not the first.
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.RulesOutOfOrder.selector, 5_500, 6));
        registry.scheduleRules(5_500, 6);
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.RulesOutOfOrder.selector, 7_000, 4));
        registry.scheduleRules(7_000, 4);
        vm.stopPrank();
        checkEqual(registry.rulesOf(4_999), 1, "4999");
        checkEqual(registry.rulesOf(5_000), 2, "5000");
        checkEqual(registry.rulesOf(5_999), 2, "5999");
        checkEqual(registry.rulesOf(6_000), 5, "6000");
        checkEqual(registry.rulesChangeCount(), 2, "count");
        (uint64 first, uint16 rules) = registry.rulesChanges(1);
        checkEqual(first, 6_000, "first");
        checkEqual(rules, 5, "rules");
    }
}
