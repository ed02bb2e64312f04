// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox } from "../src/BlindedInbox.sol";
import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { FaultRecords } from "../src/FaultRecords.sol";
import { RegistrySchedule } from "../src/RegistrySchedule.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { Deployment } from "./helpers/Deployment.sol";

/// @dev A committee that is gone, and rule sets that begin at a number.
contract CommitteeReplacementTest is Deployment {
    event EpochEnds(uint64 indexed epoch, uint64 lastNumber);
    event EndAnnounced(uint64 indexed epoch, uint64 until, bool forSilence);
    event RulesScheduled(uint64 indexed firstNumber, uint16 rules);

    /// @dev Epochs that were seen without a number.
    mapping(uint64 epoch => bool) internal empty;

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        registerEpoch(EPOCH_LAST, 4, 3);
    }

    function announce() internal {
        vm.prank(GOVERNOR);
        registry.announceSilence();
    }

    /// @dev The end is not due, and L1 makes no header for its sake.
    function checkNotDue(uint64 number, BatchHeader memory parent) internal {
        check(!registry.endDue(number), "no end is due");
        vm.expectPartialRevert(BlindedInbox.L1HeaderNotDue.selector);
        inbox.postL1Header(parent);
    }

    /// @dev A committee that lost n − t + 1 keys is replaced at the head, not at its last number, which nobody reaches.
    /// Rules E-5, E-8.
    function testADeadCommitteeIsReplaced() public {
        registerEpoch(2 * EPOCH_LAST, 4, 3); // the next one stands by
        BatchHeader[] memory signed = run(7);
        postRun(signed);
        pass(POSTING_DEADLINE + 1);
        uint64 until = uint64(block.number) + ANSWER_WINDOW;
        vm.expectEmit(true, true, true, true, address(registry));
        emit EndAnnounced(1, until, true);
        announce();
        pass(ANSWER_WINDOW);
        check(!registry.endDue(8), "its notice is not over");
        pass(1);
        check(registry.endDue(8), "due");
        uint64 revision = registry.revision();
        vm.expectEmit(true, true, true, true, address(registry));
        emit EpochEnds(1, 8);
        inbox.postL1Header(signed[6]);
        checkEqual(registry.revision(), revision + 1, "whoever keeps epochs reads again");
        (uint64 first, uint64 last) = registry.numbersOf(1);
        checkEqual(last, 8, "last of 1");
        (first, last) = registry.numbersOf(2);
        checkEqual(first, 9, "first of 2");
        checkEqual(last, 2 * EPOCH_LAST, "last of 2");
        checkEqual(registry.epochOf(8), 1, "8");
        checkEqual(registry.epochOf(9), 2, "9");
        check(!registry.endDue(9), "used up");
        (uint64 epoch,,,) = registry.ending();
        checkEqual(epoch, 0, "no end is announced any more");

        // The new committee goes on from the head as soon as its notice is over.
        pass(registry.getEpoch(2).countsFrom - block.number);
        postOfEpoch(2, 3);
        (uint64 number,,,) = inbox.head();
        checkEqual(number, 11, "goes on");
    }

    function postOfEpoch(uint64 epoch, uint256 count) internal {
        BatchHeader[] memory headers = run(count);
        for (uint256 i = 0; i < count; i++) {
            headers[i].epoch = epoch;
        }
        relink(headers);
        postRun(headers);
    }

    /// @dev n − t + 1 members, who can neither read nor certify, sign along once in every two days and never else. L1 hears
    /// of their committee, and numbers far ahead are never reached; the governor gets rid of them all the same.
    function testACommitteeThatCrawlsIsReplaced() public {
        registerEpoch(2 * EPOCH_LAST, 4, 3);
        BatchHeader[] memory head = run(1);
        postRun(head);
        uint64 until = uint64(block.number) + EPOCH_NOTICE;
        vm.expectEmit(true, true, true, true, address(registry));
        emit EndAnnounced(1, until, false);
        vm.prank(GOVERNOR);
        registry.announceEnd();
        while (block.number + POSTING_DEADLINE <= until) {
            pass(POSTING_DEADLINE);
            vm.prank(GOVERNOR);
            vm.expectPartialRevert(RegistrySchedule.NotSilent.selector);
            registry.announceSilence();
            head = run(1);
            postRun(head);
        }
        pass(until - block.number);
        checkNotDue(head[0].number + 1, head[0]);
        postRun(head = run(1)); // to the last moment
        pass(1);
        // Certified headers, each an hour ahead or just before anybody's transaction, would put L1's off for ever.
        expectPostRefusal(
            run(1), abi.encodeWithSelector(BlindedInbox.EpochIsOver.selector, head[0].number + 1)
        );
        inbox.postL1Header(head[0]);
        checkEqual(registry.epochOf(head[0].number + 1), 1, "L1's header is the last of its epoch");
        checkEqual(registry.epochOf(head[0].number + 2), 2, "and the next committee is in office");
        pass(FINALITY + 1);
        postOfEpoch(2, 2);
    }

    /// @dev What was certified and not posted, or signed and not certified, is displaced by L1's header.
    function testWhatWasSignedForTheOldEpochIsDisplaced() public {
        registerEpoch(2 * EPOCH_LAST, 4, 3);
        BatchHeader[] memory head = run(1);
        postRun(head);
        vm.prank(GOVERNOR);
        registry.announceEnd();
        pass(EPOCH_NOTICE + 1);
        BatchHeader[] memory late = run(2);
        expectPostRefusal(late, abi.encodeWithSelector(BlindedInbox.EpochIsOver.selector, 2));
        inbox.postL1Header(head[0]);
        pass(FINALITY + 1);
        expectPostRefusal(
            late,
            abi.encodeWithSelector(
                BlindedInbox.WrongParent.selector, 3, inbox.headHash(), inbox.hashHeader(late[0])
            )
        );
        postOfEpoch(2, 1);
    }

    function testAnAnnouncedEndCanBeTakenBack() public {
        BatchHeader[] memory head = run(1);
        postRun(head);
        vm.prank(GOVERNOR);
        registry.announceEnd();
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.NotGovernor.selector, address(this)));
        registry.takeBackEnd();
        vm.expectEmit(true, true, true, true, address(registry));
        emit EndAnnounced(0, uint64(block.number), false);
        vm.prank(GOVERNOR);
        registry.takeBackEnd();
        pass(EPOCH_NOTICE + 1);
        check(!registry.endDue(2), "taken back");
        postRun(run(1));
    }

    /// @dev Only the inbox ends an epoch at a number, and only the governor announces.
    function testNobodyElseEndsAnEpoch() public {
        registerEpoch(2 * EPOCH_LAST, 4, 3);
        postRun(run(1));
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.NotGovernor.selector, address(this)));
        registry.announceEnd();
        vm.prank(GOVERNOR);
        registry.announceEnd();
        pass(EPOCH_NOTICE + 1);
        check(registry.endDue(2), "due");
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.NotInbox.selector, address(this)));
        registry.endEpochAt(2);
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.HeadersPosted.selector, 1));
        registry.endFirstEpoch();
        vm.prank(address(inbox));
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.EndNotDue.selector, EPOCH_LAST + 1));
        registry.endEpochAt(EPOCH_LAST + 1);
    }

    /// @dev One certified header is sign of life enough.
    function testACommitteeThatComesBackStays() public {
        postRun(run(3));
        pass(POSTING_DEADLINE + 1);
        announce();
        pass(ANSWER_WINDOW);
        BatchHeader[] memory back = run(1);
        postRun(back);
        pass(ANSWER_WINDOW);
        checkNotDue(5, back[0]);
        checkEqual(registry.epochOf(5), 1, "stays");
    }

    function testACommitteeThatComesBackInTheBlockOfTheAnnouncementStays() public {
        postRun(run(3));
        pass(POSTING_DEADLINE + 1);
        announce();
        BatchHeader[] memory back = run(1);
        postRun(back);
        pass(2 * ANSWER_WINDOW);
        checkNotDue(5, back[0]);
    }

    /// @dev L1's headers use up the last numbers of a committee that was announced to be silent. What was announced of it
    /// says nothing of the next one.
    function testTheSilenceOfOneCommitteeEndsNoOther() public {
        deployContracts();
        registerEpoch(4, 4, 3);
        registerEpoch(EPOCH_LAST, 4, 3);
        BatchHeader[] memory head = run(3);
        postRun(head);
        pass(EPOCH_NOTICE);
        announce();
        uint256 windows = 0;
        // In one of L1's windows before the notice is over.
        while (true) {
            pass(10);
            (bool made,) = address(inbox).call(abi.encodeCall(inbox.postL1Header, (head[2])));
            if (made) break;
            check(windows++ < ANSWER_WINDOW, "L1 makes one in time");
        }
        (uint64 number,,,) = inbox.head();
        checkEqual(number, 4, "the last number of epoch 1");
        pass(2 * ANSWER_WINDOW);
        check(!registry.endDue(5), "of another epoch");
        postOfEpoch(2, 1);
    }

    /// @dev Nobody is silent before its certificates count.
    function testSilenceCountsFromWhereCertificatesDo() public {
        deployContracts();
        registerEpoch(3, 4, 3);
        postRun(run(3));
        pass(POSTING_DEADLINE);
        registerEpoch(EPOCH_LAST, 4, 3);
        uint64 countsFrom = registry.getEpoch(2).countsFrom;
        pass(countsFrom - block.number + POSTING_DEADLINE);
        vm.prank(GOVERNOR);
        vm.expectRevert(
            abi.encodeWithSelector(
                RegistrySchedule.NotSilent.selector, countsFrom, uint256(countsFrom) + POSTING_DEADLINE
            )
        );
        registry.announceSilence();
        pass(1);
        announce();
    }

    function expectNotSilent(uint64 since) internal {
        vm.prank(GOVERNOR);
        vm.expectRevert(
            abi.encodeWithSelector(
                RegistrySchedule.NotSilent.selector, since, uint256(since) + POSTING_DEADLINE
            )
        );
        registry.announceSilence();
    }

    /// @dev A committee that has just begun does not inherit the silence of the one before it, and no header that L1
    /// makes of its own numbers shortens its time.
    function checkItsOwnSilence(BatchHeader memory last) internal {
        uint64 began = uint64(block.number);
        expectNotSilent(began);
        pass(1);
        inbox.postL1Header(last); // closes the second of the forced item
        checkEqual(registry.epochOf(last.number + 1), 2, "a number of the next epoch");
        expectNotSilent(began);
        pass(POSTING_DEADLINE - 1);
        expectNotSilent(began);
        pass(1);
        announce();
    }

    function testASuccessorIsNotSilentFromTheStart() public {
        registerEpoch(2 * EPOCH_LAST, 4, 3);
        BatchHeader[] memory head = run(1);
        postRun(head);
        forceTransaction(100, 21_000);
        pass(EPOCH_NOTICE + 2 * ANSWER_WINDOW); // the next committee's certificates count long since
        announce();
        pass(ANSWER_WINDOW + 1);
        BatchHeader memory last = l1Header(head[0]);
        inbox.postL1Header(head[0]);
        checkEqual(registry.epochOf(3), 2, "begins");
        checkItsOwnSilence(last);
    }

    /// @dev The same where L1's headers use up the numbers of the silent one.
    function testASuccessorIsNotSilentBehindUsedUpNumbers() public {
        deployContracts();
        registerEpoch(4, 4, 3);
        registerEpoch(EPOCH_LAST, 4, 3);
        BatchHeader[] memory head = run(3);
        postRun(head);
        forceTransaction(100, 21_000);
        pass(POSTING_DEADLINE + 1 + 8 * ANSWER_WINDOW);
        BatchHeader memory last = l1Header(head[2]);
        inbox.postL1Header(head[2]);
        checkItsOwnSilence(last);
    }

    /// @dev And where the first epoch ended before its first number.
    function testASuccessorIsNotSilentBehindTheFirstEpoch() public {
        registerEpoch(2 * EPOCH_LAST, 4, 3);
        pass(EPOCH_NOTICE + POSTING_DEADLINE);
        announce();
        pass(ANSWER_WINDOW + 1);
        registry.endFirstEpoch();
        uint64 began = uint64(block.number);
        expectNotSilent(began);
        pass(POSTING_DEADLINE);
        expectNotSilent(began);
        pass(1);
        announce();
    }

    /// @dev A header of number 1 for this epoch, with this origin.
    function firstHeader(uint64 epoch, uint64 origin) internal view returns (BatchHeader memory header) {
        header = run(1)[0];
        (header.epoch, header.l1OriginNumber) = (epoch, origin);
    }

    /// @dev Shows that the sequencer signed both.
    function showBoth(BatchHeader memory first, BatchHeader memory second) internal {
        bytes memory one = signHeader(SEQUENCER_KEY, first);
        bytes memory two = signHeader(SEQUENCER_KEY, second);
        commitTo(address(this), conflictEvidence(first, second), "salt");
        inbox.slashEquivocation(first, one, second, two, "salt");
    }

    /// @dev That end is no excuse for signing number 1 again. Time is, as on any chain on which nothing is posted yet: a
    /// header that was too old to be posted gives its number free.
    function testTheFirstEpochsEndExcusesNobody() public {
        registerEpoch(2 * EPOCH_LAST, 4, 3);
        pass(EPOCH_NOTICE);
        announce();
        pass(ANSWER_WINDOW + 1);
        uint64 origin = uint64(block.number) - 1;
        BatchHeader memory first = firstHeader(1, origin);
        registry.endFirstEpoch();
        depositBond(1 ether);
        pass(POSTING_DEADLINE);
        showBoth(first, firstHeader(2, origin + POSTING_DEADLINE));
        checkEqual(bond(), 0, "its bond is lost");

        depositBond(1 ether);
        BatchHeader memory late = firstHeader(2, origin + POSTING_DEADLINE + 1);
        bytes memory one = signHeader(SEQUENCER_KEY, first);
        bytes memory two = signHeader(SEQUENCER_KEY, late);
        commitTo(address(this), conflictEvidence(first, late), "salt");
        vm.expectRevert(abi.encodeWithSelector(FaultRecords.Excused.selector, 1));
        inbox.slashEquivocation(first, one, late, two, "salt");
    }

    /// @dev A committee that never certified anything: its epoch ends before it began, and the next one begins at 1.
    function testACommitteeThatNeverCertifiedIsReplaced() public {
        pass(POSTING_DEADLINE + 1);
        announce();
        registerEpoch(2 * EPOCH_LAST, 4, 3);
        pass(ANSWER_WINDOW);
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.EndNotDue.selector, 1));
        registry.endFirstEpoch();
        pass(1);
        registry.endFirstEpoch();
        (uint64 first, uint64 last) = registry.numbersOf(1);
        checkEqual(first, 1, "first of 1");
        checkEqual(last, 0, "last of 1");
        checkEqual(registry.epochOf(1), 2, "1");
        pass(EPOCH_NOTICE);
        postOfEpoch(2, 2);
    }

    /// @dev None where none is registered for the next number.
    function testNoEpochToEnd() public {
        deployContracts();
        registerEpoch(3, 4, 3);
        postRun(run(3));
        pass(POSTING_DEADLINE + 1);
        bytes memory reason = abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 0);
        vm.startPrank(GOVERNOR);
        vm.expectRevert(reason);
        registry.announceSilence();
        vm.expectRevert(reason);
        registry.announceEnd();
        vm.stopPrank();
    }

    /// @dev A committee that a thief registered with the governor's key, or one with a mistake in it, is taken back whole
    /// as long as its certificates do not count: no number of it is left (E-9).
    function testAnEpochThatHasNotBegunCanBeTakenBack() public {
        registerEpoch(2 * EPOCH_LAST, 4, 3);
        registerEpoch(3 * EPOCH_LAST, 4, 3);
        postRun(run(2));
        expectRefusedEnd(
            2,
            EPOCH_LAST - 1,
            abi.encodeWithSelector(CommitteeRegistry.NotAnEarlierEnd.selector, 2, EPOCH_LAST - 1)
        );
        vm.prank(GOVERNOR);
        registry.endEpoch(2, EPOCH_LAST);
        checkEqual(registry.epochOf(EPOCH_LAST + 1), 3, "what follows moves up");
        pass(EPOCH_NOTICE);
        expectRefusedEnd(
            3, EPOCH_LAST, abi.encodeWithSelector(CommitteeRegistry.NotAnEarlierEnd.selector, 3, EPOCH_LAST)
        );
    }

    /// @dev However near its numbers are: nothing was certified for them.
    function testAnEpochThatHasNotBegunEndsAtANearNumber() public {
        deployContracts();
        registerEpoch(4, 4, 3);
        registerEpoch(EPOCH_LAST, 4, 3);
        postRun(run(3));
        vm.startPrank(GOVERNOR);
        registry.endEpoch(2, 7);
        (uint64 first, uint64 last) = registry.numbersOf(2);
        checkEqual(first, 5, "first");
        checkEqual(last, 7, "last");
        registry.endEpoch(2, 4);
        checkEqual(registry.servingEpoch(5), 2, "the last one serves on");
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 0));
        registry.epochOf(5);
    }

    /// @dev An epoch that was taken back stays without a number, whatever becomes of those before it.
    function testAnEpochThatWasTakenBackStaysSo() public {
        registerEpoch(2 * EPOCH_LAST, 4, 3);
        registerEpoch(3 * EPOCH_LAST, 4, 3);
        registerEpoch(4 * EPOCH_LAST, 4, 3);
        vm.startPrank(GOVERNOR);
        registry.endEpoch(3, 2 * EPOCH_LAST); // the newer one first
        registry.endEpoch(2, EPOCH_LAST);
        checkEqual(registry.epochOf(EPOCH_LAST + 1), 4, "behind two without a number");
        for (uint64 epoch = 1; epoch < 4; epoch++) {
            vm.expectEmit(true, true, true, true, address(registry));
            emit EpochEnds(epoch, 5_000); // those without a number move along
        }
        registry.endEpoch(1, 5_000);
        checkEqual(registry.epochOf(5_001), 4, "after a planned end");
        BatchHeader[] memory head = run(3);
        registry.announceEnd();
        vm.stopPrank();
        postRun(head);
        pass(EPOCH_NOTICE + 1);
        inbox.postL1Header(head[2]);
        checkEqual(registry.epochOf(5), 4, "after an announced one");
        for (uint64 epoch = 2; epoch < 4; epoch++) {
            (uint64 first, uint64 last) = registry.numbersOf(epoch);
            checkEqual(first, 5, "first");
            checkEqual(last, 4, "last");
        }
        pass(FINALITY + 1);
        postOfEpoch(4, 1);
    }

    /// @dev Rule E-4.
    function testAPlannedEarlyEnd() public {
        registerEpoch(2 * EPOCH_LAST, 4, 3);
        pass(EPOCH_NOTICE);
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
                    // Every epoch may have ended, so that there is none for the next number.
                    bool known = bytes4(reason) == RegistrySchedule.NotSilent.selector
                        || bytes4(reason) == CommitteeRegistry.UnknownEpoch.selector;
                    check(known, "an announcement refused for no reason");
                }
                vm.roll(block.number + ANSWER_WINDOW + 1);
            } else {
                try registry.endFirstEpoch() { }
                catch (bytes memory reason) {
                    bool known = bytes4(reason) == RegistrySchedule.EndNotDue.selector;
                    check(known, "a silent epoch's end refused for no reason");
                }
            }
            vm.stopPrank();
            uint64 next = 1;
            for (uint64 e = 1; e <= registry.epochCount(); e++) {
                (uint64 first, uint64 last) = registry.numbersOf(e);
                checkEqual(first, next, "contiguous");
                check(last + 1 >= first, "not reversed");
                check(!empty[e] || last < first, "without a number for good");
                empty[e] = last < first;
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
        refuseRules(
            SWITCH_LEAD - 1,
            2,
            abi.encodeWithSelector(RegistrySchedule.ChangeTooSoon.selector, SWITCH_LEAD - 1, SWITCH_LEAD)
        );
        refuseRules(5_000, 1, rulesOutOfOrder(5_000, 1));
        vm.expectEmit(true, true, true, true, address(registry));
        emit RulesScheduled(SWITCH_LEAD, 2);
        schedule(SWITCH_LEAD, 2);
        headAt(1); // so near it stays
        refuseRules(6_000, 2, rulesNotBegun(SWITCH_LEAD));
        headAt(SWITCH_LEAD);
        refuseRules(6_000, 2, rulesOutOfOrder(6_000, 2));
        uint64 revision = registry.revision();
        refuseRules(6_000, 4, rulesOutOfOrder(6_000, 4));
        schedule(6_000, 3);
        checkEqual(registry.revision(), revision + 1, "whoever keeps the rules reads again");
        checkEqual(registry.rulesOf(SWITCH_LEAD - 1), 1, "before the first");
        checkEqual(registry.rulesOf(SWITCH_LEAD), 2, "its number");
        checkEqual(registry.rulesOf(5_999), 2, "5999");
        checkEqual(registry.rulesOf(6_000), 3, "6000");
        checkEqual(registry.rulesOf(type(uint64).max), 3, "for good");
        checkEqual(registry.rulesChangeCount(), 2, "count");
        (uint64 first, uint16 rules) = registry.rulesChanges(1);
        checkEqual(first, 6_000, "first");
        checkEqual(rules, 3, "rules");
    }

    /// @dev A change far ahead gives way to the next one: nobody can keep rule sets out, or fill the list with them.
    function testARuleSetFarAheadGivesWay() public {
        schedule(SWITCH_LEAD, 2);
        headAt(SWITCH_LEAD);
        for (uint16 i = 0; i < 20; i++) {
            schedule(type(uint64).max - i, 3);
            checkEqual(registry.rulesChangeCount(), 2, "one at a time");
        }
        refuseRules(2 * SWITCH_LEAD, 1, rulesOutOfOrder(2 * SWITCH_LEAD, 1));
        schedule(2 * SWITCH_LEAD, 3); // nearer than the one that it replaces
        checkEqual(registry.rulesChangeCount(), 2, "in its place");
        checkEqual(registry.rulesOf(2 * SWITCH_LEAD), 3, "in force");
        schedule(2 * SWITCH_LEAD, 2); // taken back
        checkEqual(registry.rulesChangeCount(), 1, "none but the first");
        checkEqual(registry.rulesOf(type(uint64).max), 2, "the first stays");
        refuseRules(2 * SWITCH_LEAD, 2, rulesOutOfOrder(2 * SWITCH_LEAD, 2));
    }

    /// @dev There are 65,535 rule sets, and each comes into force once. One in each L1 block used them up within days;
    /// now each waits for `switchLead` numbers to be posted.
    function testRuleSetsAreNotUsedUpInAHurry() public {
        schedule(SWITCH_LEAD, 2);
        for (uint64 head = 1; head < SWITCH_LEAD; head += 37) {
            headAt(head);
            refuseRules(head + SWITCH_LEAD, 3, rulesNotBegun(SWITCH_LEAD));
        }
        headAt(SWITCH_LEAD - 1);
        refuseRules(type(uint64).max, 3, rulesNotBegun(SWITCH_LEAD));
        headAt(SWITCH_LEAD);
        schedule(2 * SWITCH_LEAD, 3);
        checkEqual(registry.rulesChangeCount(), 2, "the one before has begun");
        headAt(SWITCH_LEAD + 1);
        refuseRules(3 * SWITCH_LEAD, 4, rulesNotBegun(2 * SWITCH_LEAD));
        refuseRules(3 * SWITCH_LEAD, 2, rulesNotBegun(2 * SWITCH_LEAD)); // nor is it taken back
    }

    /// @dev However many there have been, a header's rule set is found in a few steps.
    function testFindingARuleSetTakesFewSteps() public {
        uint16 count = 300;
        for (uint16 i = 1; i <= count; i++) {
            schedule(i * SWITCH_LEAD, 1 + i);
            headAt(i * SWITCH_LEAD);
        }
        checkEqual(registry.rulesChangeCount(), count, "all of them");
        for (uint16 i = 1; i <= count; i += 37) {
            vm.cool(address(registry));
            uint256 before = gasleft();
            uint16 rules = registry.rulesOf(i * SWITCH_LEAD);
            check(before - gasleft() < 40_000, "a few steps");
            checkEqual(rules, 1 + i, "the right one");
        }
    }

    function schedule(uint64 firstNumber, uint16 rules) internal {
        vm.prank(GOVERNOR);
        registry.scheduleRules(firstNumber, rules);
    }

    function refuseRules(uint64 firstNumber, uint16 rules, bytes memory reason) internal {
        vm.prank(GOVERNOR);
        vm.expectRevert(reason);
        registry.scheduleRules(firstNumber, rules);
    }

    /// @dev As if this number were posted.
    function headAt(uint64 number) internal {
        vm.mockCall(address(inbox), abi.encodeCall(inbox.head, ()), abi.encode(number, 0, 0, 0));
    }

    function rulesNotBegun(uint64 firstNumber) internal pure returns (bytes memory) {
        return abi.encodeWithSignature("RulesNotBegun(uint64)", firstNumber);
    }

    function rulesOutOfOrder(uint64 firstNumber, uint16 rules) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(RegistrySchedule.RulesOutOfOrder.selector, firstNumber, rules);
    }
}
