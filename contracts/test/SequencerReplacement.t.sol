// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { FaultRecords } from "../src/FaultRecords.sol";
import { RegistrySchedule } from "../src/RegistrySchedule.sol";
import { SequencerBond } from "../src/SequencerBond.sol";
import { SequencerSchedule } from "../src/SequencerSchedule.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { Deployment } from "./helpers/Deployment.sol";

/// @dev A sequencer whose key is lost, stolen or spent gives way to another; each key answers for what it signed.
contract SequencerReplacementTest is Deployment {
    uint256 internal constant NEXT_KEY = 0x5ea;
    uint256 internal constant STRANGERS_KEY = 0xbad;
    address internal constant REPORTER = address(0x4e9);
    bytes32 internal constant SALT = keccak256("salt");

    address internal first;
    address internal next;

    event SequencerNamed(address indexed sequencer, uint64 fromBlock);

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        registerEpoch(EPOCH_LAST, 4, 3);
        (first, next) = (vm.addr(SEQUENCER_KEY), vm.addr(NEXT_KEY));
    }

    function name(address sequencer) internal returns (uint64) {
        vm.prank(GOVERNOR);
        return registry.nameSequencer(sequencer);
    }

    /// @dev Posts a header whose origin is this L1 block.
    function postWithOrigin(uint64 origin) internal returns (BatchHeader memory) {
        BatchHeader[] memory headers = run(1);
        headers[0].l1OriginNumber = origin;
        headers[0].forcedCursor = 0;
        relink(headers);
        postRun(headers);
        return headers[0];
    }

    /// @dev Shows two headers of the number after the head, with this origin, signed with these keys.
    function show(uint256 key, uint256 other, uint64 origin, bytes memory reason) internal returns (uint64) {
        (BatchHeader memory one, BatchHeader memory two) = twoHeaders(origin);
        showThese(key, other, one, two, reason);
        return one.number;
    }

    function twoHeaders(uint64 origin) internal returns (BatchHeader memory one, BatchHeader memory two) {
        (one, two) = (run(1)[0], run(1)[0]);
        (one.l1OriginNumber, two.l1OriginNumber) = (origin, origin);
        two.gas = one.gas + 1;
    }

    function showThese(
        uint256 key,
        uint256 other,
        BatchHeader memory one,
        BatchHeader memory two,
        bytes memory reason
    ) internal {
        commitTo(REPORTER, conflictEvidence(one, two), SALT);
        (bytes memory signed, bytes memory signedToo) = (signHeader(key, one), signHeader(other, two));
        vm.prank(REPORTER);
        if (reason.length != 0) vm.expectRevert(reason);
        inbox.slashEquivocation(one, signed, two, signedToo, SALT);
    }

    /// @dev Rule K-1.
    function testAKeyCountsFromItsBlockOn() public {
        uint64 revision = registry.revision();
        uint64 from = uint64(block.number) + ANSWER_WINDOW;
        vm.expectEmit(true, true, true, true, address(registry));
        emit SequencerNamed(next, from);
        checkEqual(name(next), from, "notice");
        checkEqual(registry.revision(), revision + 1, "whoever keeps the schedule reads again");
        checkEqual(registry.sequencerAt(from - 1), first, "before");
        checkEqual(registry.sequencerAt(from), next, "from then on");
        checkEqual(registry.sequencerUntil(first), from - 1, "its last origin");
        checkEqual(registry.sequencerUntil(next), type(uint64).max, "no end in sight");
        checkEqual(registry.sequencerUntil(address(1)), 0, "never named");
        checkEqual(inbox.sequencer(), first, "now");
        vm.roll(from);
        checkEqual(inbox.sequencer(), next, "then");
        checkEqual(registry.sequencerChangeCount(), 1, "one change");
    }

    function testWhatHasNotBegunGivesWay() public {
        name(address(0xdead));
        pass(10);
        uint64 from = name(next);
        checkEqual(registry.sequencerChangeCount(), 1, "one change");
        checkEqual(registry.sequencerUntil(address(0xdead)), 0, "never in force");
        vm.roll(from - 1);
        checkEqual(name(first), from - 1, "taken back in the last block");
        vm.roll(from);
        checkEqual(inbox.sequencer(), first, "as before");
        name(next);
        vm.roll(block.number + ANSWER_WINDOW);
        // What has begun stays.
        from = name(first);
        checkEqual(inbox.sequencer(), next, "in force");
        checkEqual(registry.sequencerUntil(next), from - 1, "and has an end");
        checkEqual(registry.sequencerUntil(first), type(uint64).max, "named again");
        vm.roll(from + 1);
        uint64 revision = registry.revision();
        from = name(next);
        checkEqual(registry.revision(), revision + 1, "a change");
        checkEqual(registry.sequencerChangeCount(), 3, "all of them");
        checkEqual(inbox.sequencer(), first, "in force a block later, too");
        checkEqual(registry.sequencerUntil(first), from - 1, "and has an end");
    }

    function testRefusals() public {
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.NotGovernor.selector, address(this)));
        registry.nameSequencer(next);
        vm.prank(GOVERNOR);
        vm.expectRevert(abi.encodeWithSelector(SequencerSchedule.ZeroSequencer.selector));
        registry.nameSequencer(address(0));
        vm.expectRevert(abi.encodeWithSelector(SequencerSchedule.ZeroSequencer.selector));
        new CommitteeRegistry(GOVERNOR, address(1), address(0), anyKey, memberStakes(), defaultSettings());
    }

    /// @dev A key that lost its bond, or is silent, can be replaced within the hour (K-2).
    function testEvidenceShortensTheNotice() public {
        postWithOrigin(uint64(block.number) - FINALITY);
        pass(POSTING_DEADLINE);
        checkEqual(name(next), block.number + ANSWER_WINDOW, "not yet silent");
        name(first);
        pass(1);
        checkEqual(name(next), block.number + FORCED_DELAY, "silent");
        name(first);
        postWithOrigin(uint64(block.number) - FINALITY);
        checkEqual(name(next), block.number + ANSWER_WINDOW, "back");
        name(first);
        depositBond(1 ether);
        show(SEQUENCER_KEY, SEQUENCER_KEY, uint64(block.number) - FINALITY, "");
        checkEqual(bond(), 0, "slashed");
        checkEqual(name(next), block.number + FORCED_DELAY, "slashed");
        vm.roll(block.number + FORCED_DELAY);
        // It did nothing wrong, and gets the full notice.
        checkEqual(name(address(7)), block.number + ANSWER_WINDOW, "another key");
    }

    /// @dev Each key answers with its own bond, and no two keys make one fault (K-3).
    function testEachKeyAnswersForItself() public {
        uint64 from = name(next);
        vm.deal(address(this), 3 ether);
        inbox.depositBond{ value: 1 ether }(first);
        inbox.depositBond{ value: 2 ether }(next);
        vm.roll(from + FINALITY);
        bytes memory bad = abi.encodeWithSelector(FaultRecords.BadSequencerSignature.selector, 2);
        show(SEQUENCER_KEY, NEXT_KEY, from, bad);
        bad = abi.encodeWithSelector(FaultRecords.BadSequencerSignature.selector, 1);
        show(STRANGERS_KEY, STRANGERS_KEY, from, bad);
        uint64 number = show(NEXT_KEY, NEXT_KEY, from, "");
        checkEqual(inbox.bondOf(next), 0, "slashed");
        checkEqual(inbox.slashedAt(next), block.number, "and noted");
        checkEqual(inbox.bondOf(first), 1 ether, "untouched");
        checkEqual(inbox.slashedAt(first), 0, "never slashed");
        checkEqual(inbox.equivocatedAt(number), block.number, "L1 may decide");
    }

    /// @dev Whose time is over cannot make L1 decide a number: it has nothing to lose any more.
    function testAnEarlierKeyOpensNothing() public {
        uint64 from = name(next);
        vm.deal(address(this), 1 ether);
        inbox.depositBond{ value: 1 ether }(first);
        vm.roll(from + FINALITY);
        postWithOrigin(from);
        // With an origin of its time the headers could not follow the head, with a later one they are not its to sign.
        checkEqual(inbox.equivocatedAt(show(SEQUENCER_KEY, SEQUENCER_KEY, from - 1, "")), 0, "before");
        checkEqual(inbox.bondOf(first), 0, "slashed all the same");
        checkEqual(inbox.equivocatedAt(show(SEQUENCER_KEY, SEQUENCER_KEY, from + 1, "")), 0, "after");
        // Nor does a key that is to come, whose headers nobody can post yet.
        uint64 later = name(vm.addr(STRANGERS_KEY));
        checkEqual(inbox.equivocatedAt(show(STRANGERS_KEY, STRANGERS_KEY, later, "")), 0, "to come");
    }

    /// @dev Headers that are shown under a key without a bond save nobody else's.
    function testHeadersShownUnderAnotherKeySaveNoBond() public {
        uint64 from = name(next);
        vm.deal(address(this), 100 ether);
        inbox.depositBond{ value: 100 ether }(next);
        vm.roll(from + FINALITY);
        (BatchHeader memory one, BatchHeader memory two) = twoHeaders(from);
        // The key that was there before signs both headers first, and a friend shows them: it costs nothing.
        showThese(SEQUENCER_KEY, SEQUENCER_KEY, one, two, "");
        checkEqual(inbox.equivocatedAt(one.number), 0, "opens nothing");
        checkEqual(inbox.bondOf(next), 100 ether, "on display");
        // Then the key in office shows the very same two.
        showThese(NEXT_KEY, NEXT_KEY, one, two, "");
        checkEqual(inbox.bondOf(next), 0, "its own bond");
        checkEqual(inbox.rewards(REPORTER), 50 ether, "reward");
        checkEqual(inbox.equivocatedAt(one.number), block.number, "L1 may decide");
        bytes memory again = abi.encodeWithSelector(FaultRecords.AlreadySlashed.selector, one.number);
        showThese(NEXT_KEY, NEXT_KEY, one, two, again);
        showThese(SEQUENCER_KEY, SEQUENCER_KEY, one, two, again);
    }

    /// @dev While the chain goes on the bond of the key in force cannot leave, and that of an earlier one can, a week
    /// after an announcement made when it had nothing left to sign.
    function testABondLeavesWhenItsTimeIsOver() public {
        vm.deal(address(this), 3 ether);
        inbox.depositBond{ value: 1 ether }(first);
        inbox.depositBond{ value: 2 ether }(next);
        uint64 from = name(next);
        vm.roll(from + FINALITY);
        // L1 holds a header of the time before: others of it may follow.
        postWithOrigin(from - 1);
        vm.prank(first);
        inbox.announceBondWithdrawal(1 ether);
        pass(1);
        postWithOrigin(from);
        vm.warp(block.timestamp + 7 days - 1);
        vm.prank(first);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.WithdrawalLocked.selector, block.timestamp + 1));
        inbox.withdrawBond(payable(first));
        vm.prank(first);
        inbox.announceBondWithdrawal(1 ether);
        vm.prank(next);
        inbox.announceBondWithdrawal(2 ether);
        vm.warp(block.timestamp + 7 days);
        pass(1);
        postWithOrigin(from);
        vm.prank(first);
        inbox.withdrawBond(payable(first));
        checkEqual(first.balance, 1 ether, "taken out");
        vm.prank(next);
        vm.expectRevert(
            abi.encodeWithSelector(SequencerBond.WithdrawalLocked.selector, block.timestamp + 7 days)
        );
        inbox.withdrawBond(payable(next));
    }

    /// @dev A key that is named again before it has taken its bond out waits like any other.
    function testAKeyNamedAgainWaits() public {
        depositBond(1 ether);
        uint64 from = name(next);
        vm.roll(from + FINALITY);
        postWithOrigin(from);
        vm.prank(first);
        inbox.announceBondWithdrawal(1 ether);
        name(first);
        vm.warp(block.timestamp + 7 days);
        pass(1);
        postWithOrigin(from);
        vm.prank(first);
        vm.expectRevert(
            abi.encodeWithSelector(SequencerBond.WithdrawalLocked.selector, block.timestamp + 7 days)
        );
        inbox.withdrawBond(payable(first));
    }

    /// @dev Named, replaced, and all of it while an announcement of before stands: its second term's last header is a
    /// week old before the bond leaves.
    function testAnAnnouncementOfBeforeATermIsNoneOfAfter() public {
        depositBond(1 ether);
        uint64 from = name(next);
        vm.roll(from + FINALITY);
        postWithOrigin(from);
        vm.prank(first);
        inbox.announceBondWithdrawal(1 ether);
        uint64 again = name(first);
        vm.roll(again + FINALITY);
        postWithOrigin(again);
        uint64 last = name(next);
        vm.roll(last + FINALITY);
        vm.warp(block.timestamp + 7 days);
        postWithOrigin(last);
        vm.prank(first);
        vm.expectRevert(
            abi.encodeWithSelector(SequencerBond.WithdrawalLocked.selector, block.timestamp + 7 days)
        );
        inbox.withdrawBond(payable(first));
        // Announced anew, it leaves a week later, whatever is posted.
        vm.prank(first);
        inbox.announceBondWithdrawal(1 ether);
        vm.warp(block.timestamp + 7 days);
        pass(1);
        postWithOrigin(last);
        vm.prank(first);
        inbox.withdrawBond(payable(first));
        checkEqual(first.balance, 1 ether, "taken out");
    }

    /// @dev Whoever has a key with nothing left to lose can have himself accused without end: it holds nobody else's bond.
    function testAccusationsHoldTheirOwnSequencersBondOnly() public {
        uint64 from = name(next);
        vm.deal(address(this), 2 ether);
        inbox.depositBond{ value: 1 ether }(first);
        vm.roll(from + FINALITY);
        postWithOrigin(from);
        vm.prank(first);
        inbox.announceBondWithdrawal(1 ether);
        vm.warp(block.timestamp + 7 days);
        (bytes32 id, bytes32 item) = (keccak256("envelope"), keccak256("item"));
        commitTo(REPORTER, omissionEvidence(id, item, 1), SALT);
        bytes memory signature = signPromise(NEXT_KEY, id, item, 1);
        vm.deal(REPORTER, STAKE);
        vm.prank(REPORTER);
        inbox.accuseOmission{ value: STAKE }(id, item, 1, signature, SALT);
        vm.prank(first);
        inbox.withdrawBond(payable(first));
        checkEqual(first.balance, 1 ether, "taken out");
        vm.prank(next);
        inbox.announceBondWithdrawal(0);
        checkEqual(inbox.openAccusations(), 1, "still open");
    }

    /// @dev Two sequencers that promise the same are accused apart: neither takes the other's place.
    function testTwoPromisesOfTheSameAreAccusedApart() public {
        uint64 from = name(next);
        vm.deal(address(this), 3 ether);
        inbox.depositBond{ value: 1 ether }(first);
        inbox.depositBond{ value: 2 ether }(next);
        vm.roll(from + FINALITY);
        postWithOrigin(from);
        (bytes32 id, bytes32 item) = (keccak256("envelope"), keccak256("item"));
        commitTo(REPORTER, omissionEvidence(id, item, 1), SALT);
        bytes memory one = signPromise(SEQUENCER_KEY, id, item, 1);
        bytes memory two = signPromise(NEXT_KEY, id, item, 1);
        vm.deal(REPORTER, 2 * STAKE);
        vm.prank(REPORTER);
        inbox.accuseOmission{ value: STAKE }(id, item, 1, one, SALT);
        commitTo(REPORTER, omissionEvidence(id, item, 1), SALT);
        vm.prank(REPORTER);
        inbox.accuseOmission{ value: STAKE }(id, item, 1, two, SALT);
        checkEqual(inbox.openAccusations(), 2, "open");
        pass(ANSWER_WINDOW + 1);
        FaultRecords.GivenPromise memory given = givenPromise(id, item, 1);
        given.sequencer = next;
        inbox.slashOmission(given);
        checkEqual(inbox.bondOf(next), 0, "slashed");
        checkEqual(inbox.bondOf(first), 1 ether, "not yet");
        inbox.slashOmission(givenPromise(id, item, 1));
        checkEqual(inbox.bondOf(first), 0, "slashed too");
    }

    function testFuzzSchedule(uint8[8] calldata steps) public {
        // What must hold of any schedule: a key's last origin is the last block for which it is asked.
        for (uint256 i = 0; i < steps.length; i++) {
            name(address(uint160(1 + steps[i] % 3)));
            vm.roll(block.number + (uint256(steps[i]) << 6));
        }
        for (uint160 key = 1; key <= 3; key++) {
            uint64 until = registry.sequencerUntil(address(key));
            checkEqual(until, untilByList(address(key)), "by the list of changes");
            if (until == 0) continue;
            checkEqual(registry.sequencerAt(until), address(key), "its last");
            if (until != type(uint64).max) {
                check(registry.sequencerAt(until + 1) != address(key), "no later");
            }
        }
    }

    /// @dev Each accusation, piece of evidence and withdrawal asks for it.
    function testWhatAKeysLastOriginIsCostsTheSameAfterAnyNumberOfChanges() public {
        uint256 once = gasOfUntil(first);
        for (uint160 key = 1; key <= 200; key++) {
            vm.roll(name(address(key)));
        }
        checkEqual(registry.sequencerUntil(address(1)), untilByList(address(1)), "the earliest of them");
        check(gasOfUntil(first) < once + 5000, "the key that the deployment began with");
        check(gasOfUntil(address(0xdead)) < once + 5000, "a key that was never named");
    }

    function gasOfUntil(address key) internal returns (uint256 used) {
        vm.cool(address(registry));
        used = gasleft();
        registry.sequencerUntil(key);
        used -= gasleft();
    }

    /// @dev A key's last origin, by all changes from the newest back.
    function untilByList(address key) internal view returns (uint64 until) {
        until = type(uint64).max;
        for (uint256 i = registry.sequencerChangeCount(); i != 0; i--) {
            (uint64 fromBlock, address named) = registry.sequencerChanges(i - 1);
            if (named == key) return until;
            until = fromBlock - 1;
        }
        if (registry.firstSequencer() != key) until = 0;
    }
}
