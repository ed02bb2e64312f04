// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox } from "../src/BlindedInbox.sol";
import { CommitReveal } from "../src/CommitReveal.sol";
import { FaultRecords } from "../src/FaultRecords.sol";
import { SequencerBond } from "../src/SequencerBond.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { Deployment } from "./helpers/Deployment.sol";
import { Unpayable } from "./helpers/Unpayable.sol";

contract EquivocationTest is Deployment {
    address internal constant REPORTER = address(0x4e904);
    bytes32 internal constant SALT = keccak256("salt");

    address internal sequencer;
    BatchHeader internal first;
    BatchHeader internal second;
    bytes internal one;
    bytes internal two;

    event RewardClaimed(address indexed reporter, uint256 amount);
    event Equivocation(
        uint64 indexed number,
        address indexed sequencer,
        address indexed reporter,
        bytes32 firstHash,
        bytes32 secondHash,
        uint256 burnt,
        uint256 reward
    );

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        sequencer = vm.addr(SEQUENCER_KEY);
        registerEpoch(EPOCH_LAST, 4, 3);
        first = run(1)[0];
        second = run(1)[0];
        second.envelopeRoot = keccak256("reordered");
        one = signHeader(SEQUENCER_KEY, first);
        two = signHeader(SEQUENCER_KEY, second);
    }

    function commitConflict(address reporter) internal {
        commitTo(reporter, conflictEvidence(first, second), SALT);
    }

    function report(address reporter) internal {
        commitConflict(reporter);
        vm.prank(reporter);
        inbox.slashEquivocation(first, one, second, two, SALT);
    }

    function expectRefusal(
        BatchHeader memory left,
        bytes memory leftSignature,
        BatchHeader memory right,
        bytes memory rightSignature,
        bytes memory reason
    ) internal {
        vm.prank(REPORTER);
        vm.expectRevert(reason);
        inbox.slashEquivocation(left, leftSignature, right, rightSignature, SALT);
    }

    function testFuzzSlashEquivocation(uint96 amount, bool swapped) public {
        vm.assume(amount != 0);
        depositBond(amount);
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(amount);
        if (swapped) {
            (one, two) = (signHeader(SEQUENCER_KEY, second), signHeader(SEQUENCER_KEY, first));
            BatchHeader memory left = first;
            first = second;
            second = left;
        }
        bytes32 firstHash = inbox.hashHeader(first);
        bytes32 secondHash = inbox.hashHeader(second);
        uint256 reward = uint256(amount) / 2;
        commitConflict(REPORTER);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit Equivocation(1, sequencer, REPORTER, firstHash, secondHash, amount - reward, reward);
        vm.prank(REPORTER);
        inbox.slashEquivocation(first, one, second, two, SALT);
        checkEqual(inbox.equivocatedAt(1), block.number, "marked");
        checkEqual(bond(), 0, "bond");
        checkEqual(inbox.rewards(REPORTER), reward, "reward");
        checkEqual(address(inbox).balance, reward, "held");
        check(address(0).balance * 2 >= amount, "at least half is burnt");

        vm.warp(block.timestamp + 7 days);
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.NoWithdrawalAnnounced.selector));
        inbox.withdrawBond(payable(sequencer));
        if (reward == 0) {
            vm.expectRevert(abi.encodeWithSelector(SequencerBond.ZeroAmount.selector));
        } else {
            vm.expectEmit(true, true, true, true, address(inbox));
            emit RewardClaimed(REPORTER, reward);
        }
        vm.prank(REPORTER);
        inbox.claimReward();
        checkEqual(REPORTER.balance, reward, "claimed");
        // Once: what lies here besides is another's.
        vm.deal(address(inbox), reward + 1);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.ZeroAmount.selector));
        vm.prank(REPORTER);
        inbox.claimReward();
    }

    /// forge-config: default.isolate = true
    function testGas() public {
        depositBond(1 ether);
        commitConflict(REPORTER);
        vm.prank(REPORTER);
        inbox.slashEquivocation(first, one, second, two, SALT);
        vm.snapshotGasLastCall("BlindedInbox.slashEquivocation");
    }

    function testEvidenceIsWhatTheSpecificationSays() public {
        depositBond(1 ether);
        bytes32 low = inbox.hashHeader(first);
        bytes32 high = inbox.hashHeader(second);
        if (low > high) (low, high) = (high, low);
        bytes32 evidence = keccak256(abi.encode(uint256(1), low, high));
        vm.prank(REPORTER);
        inbox.commit(keccak256(abi.encode(REPORTER, evidence, SALT)));
        pass(1);
        vm.prank(REPORTER);
        inbox.slashEquivocation(first, one, second, two, SALT);
    }

    function testCopierHasNothingCommitted() public {
        depositBond(1 ether);
        commitConflict(REPORTER);
        address copier = address(0xc0);
        bytes32 missing = keccak256(abi.encode(copier, conflictEvidence(first, second), SALT));
        vm.prank(copier);
        vm.expectRevert(abi.encodeWithSelector(CommitReveal.NotCommitted.selector, missing));
        inbox.slashEquivocation(first, one, second, two, SALT);
        vm.prank(copier);
        inbox.commit(missing);
        vm.prank(copier);
        vm.expectRevert(abi.encodeWithSelector(CommitReveal.CommittedInThisBlock.selector));
        inbox.slashEquivocation(first, one, second, two, SALT);
        vm.prank(REPORTER);
        inbox.slashEquivocation(first, one, second, two, SALT);
        checkEqual(inbox.rewards(REPORTER), 0.5 ether, "reward");
    }

    function testWithoutBondTheNumberIsMarked() public {
        report(REPORTER);
        checkEqual(inbox.equivocatedAt(1), block.number, "marked");
        checkEqual(inbox.rewards(REPORTER), 0, "reward");
    }

    function testSameEvidenceNeverTwice() public {
        depositBond(1 ether);
        report(REPORTER);
        depositBond(1 ether);
        commitConflict(REPORTER);
        bytes memory reason = abi.encodeWithSelector(FaultRecords.AlreadySlashed.selector, 1);
        expectRefusal(second, two, first, one, reason);
    }

    /// @dev The sequencer shows two headers of a number while it has no bond, and signs others of it when it has one.
    function testNumberMarkedWithoutABondProtectsNoOtherHeaders() public {
        report(REPORTER);
        uint256 shownAt = inbox.equivocatedAt(1);
        BatchHeader memory old = first;
        bytes memory oldSignature = one;
        first.envelopeRoot = keccak256("order for the victim");
        second.envelopeRoot = keccak256("order for the rest");
        (one, two) = (signHeader(SEQUENCER_KEY, first), signHeader(SEQUENCER_KEY, second));
        depositBond(100 ether);
        report(REPORTER);
        checkEqual(bond(), 0, "slashed");
        checkEqual(inbox.rewards(REPORTER), 50 ether, "reward");
        checkEqual(inbox.equivocatedAt(1), shownAt, "what the first showing opened is not put off");

        // The same two are no new fault; either of them beside a header that it was not shown with is.
        depositBond(1 ether);
        commitConflict(REPORTER);
        bytes memory reason = abi.encodeWithSelector(FaultRecords.AlreadySlashed.selector, 1);
        expectRefusal(first, one, second, two, reason);
        first = old;
        one = oldSignature;
        report(REPORTER);
        checkEqual(bond(), 0, "slashed again");
    }

    /// @dev Without a bond the sequencer shows each of the two headers that matter beside one that nobody can ever post,
    /// which opens nothing. Then the bond comes. The two cost it, and L1 decides their number.
    function testHeadersShownBesideJunkSaveNoBond() public {
        postRun(run(1));
        BatchHeader memory left = run(1)[0];
        BatchHeader memory right = abi.decode(abi.encode(left), (BatchHeader));
        right.envelopeRoot = keccak256("another order");
        BatchHeader memory junk = abi.decode(abi.encode(left), (BatchHeader));
        junk.l1OriginNumber = type(uint64).max;
        pass(1);
        showBoth(left, junk);
        showBoth(junk, right);
        checkEqual(inbox.equivocatedAt(2), 0, "nothing that could be posted was shown");
        depositBond(100 ether);
        showBoth(left, right);
        checkEqual(bond(), 0, "slashed");
        checkEqual(inbox.equivocatedAt(2), block.number, "L1 decides");
    }

    function showBoth(BatchHeader memory left, BatchHeader memory right) internal {
        (first, second) = (left, right);
        (one, two) = (signHeader(SEQUENCER_KEY, first), signHeader(SEQUENCER_KEY, second));
        report(REPORTER);
    }

    /// @dev L1 makes no header before the first certified one. So when what was signed came to nothing, the sequencer
    /// signs anew, with origins at which the old headers could not be posted any more.
    function testHeadersTooOldBeforeAnyWasPostedMayBeSignedAnew() public {
        (first.number, second.number) = (2, 2);
        one = signHeader(SEQUENCER_KEY, first);
        uint64 until = first.l1OriginNumber + POSTING_DEADLINE;
        bytes memory excused = abi.encodeWithSelector(FaultRecords.Excused.selector, 2);
        setOrigin(until + 1);
        expectRefusal(first, one, second, two, excused);
        vm.roll(until + 1 + FINALITY);
        postRun(run(1));
        expectRefusal(first, one, second, two, excused);
        expectRefusal(second, two, first, one, excused);
        // No lesser distance.
        setOrigin(until);
        slashes(second, first.l1OriginNumber);
    }

    /// @dev Once something is posted, L1 makes headers: nothing else excuses.
    function testHeadersAfterTheFirstPostedOneAreNotExcusedByTheirAge() public {
        postRun(run(1));
        (first.number, second.number) = (2, 2);
        one = signHeader(SEQUENCER_KEY, first);
        setOrigin(first.l1OriginNumber + 2 * POSTING_DEADLINE);
        depositBond(1 ether);
        report(REPORTER);
        checkEqual(bond(), 0, "slashed");
    }

    function setOrigin(uint64 origin) internal {
        second.l1OriginNumber = origin;
        two = signHeader(SEQUENCER_KEY, second);
    }

    function testRefusals() public {
        depositBond(1 ether);
        commitConflict(REPORTER);
        expectRefusal(
            first,
            one,
            first,
            one,
            abi.encodeWithSelector(FaultRecords.SameHeader.selector, inbox.hashHeader(first))
        );
        BatchHeader memory next = run(2)[1];
        expectRefusal(
            first,
            one,
            next,
            signHeader(SEQUENCER_KEY, next),
            abi.encodeWithSelector(FaultRecords.DifferentNumbers.selector, 1, 2)
        );
        expectRefusal(
            next,
            signHeader(SEQUENCER_KEY, next),
            first,
            one,
            abi.encodeWithSelector(FaultRecords.DifferentNumbers.selector, 2, 1)
        );
        bytes memory bad = abi.encodeWithSelector(FaultRecords.BadSequencerSignature.selector, 2);
        expectRefusal(first, one, second, signHeader(7, second), bad);
        expectRefusal(first, one, second, one, bad);
        bad = abi.encodeWithSelector(FaultRecords.BadSequencerSignature.selector, 1);
        expectRefusal(first, "", second, two, bad);
        checkEqual(bond(), 1 ether, "bond");
    }

    function testSignatureMustBeStrict() public {
        depositBond(1 ether);
        commitConflict(REPORTER);
        bytes memory bad = abi.encodeWithSelector(FaultRecords.BadSequencerSignature.selector, 1);
        bytes memory signature = one;
        bytes32 r;
        uint256 s;
        assembly ("memory-safe") {
            r := mload(add(signature, 0x20))
            s := mload(add(signature, 0x40))
        }
        uint8 v = uint8(signature[64]);
        // The mirrored signature (high s) recovers to the same signer in the precompile.
        bytes memory mirrored = abi.encodePacked(r, SECP256K1_ORDER - s, uint8(55 - v));
        expectRefusal(first, mirrored, second, two, bad);
        expectRefusal(first, abi.encodePacked(r, s, uint8(v - 27)), second, two, bad);
        expectRefusal(first, bytes.concat(signature, hex"00"), second, two, bad);
        expectRefusal(first, new bytes(65), second, two, bad); // recovers to nobody
        expectRefusal(first, abi.encodePacked(bytes32(0), s, v), second, two, bad);
    }

    function testEvidenceOfAnotherDeployment() public {
        BlindedInbox here = inbox;
        deployContracts(); // signs in the new domain from here on
        one = signHeader(SEQUENCER_KEY, first);
        two = signHeader(SEQUENCER_KEY, second);
        vm.expectRevert(abi.encodeWithSelector(FaultRecords.BadSequencerSignature.selector, 1));
        here.slashEquivocation(first, one, second, two, SALT);
    }

    function testClaimRefusals() public {
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.ZeroAmount.selector));
        inbox.claimReward();
        depositBond(1 ether);
        Unpayable reporter = new Unpayable();
        report(address(reporter));
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.TransferFailed.selector, address(reporter)));
        reporter.claim(inbox);
        checkEqual(inbox.rewards(address(reporter)), 0.5 ether, "still owed");
    }

    /// @dev What the sequencer signed after a head that L1 continues by itself is thrown away with no fault of its:
    /// it signs those numbers again, and only those that follow, once.
    function testExcusedWhenL1MadeTheHeaderBetween() public {
        depositBond(1 ether);
        BatchHeader[] memory posted = run(1);
        postRun(posted);
        BatchHeader[] memory lost = run(3); // numbers 2, 3, 4; never posted
        forceTransaction(100, 100_000);
        pass(POSTING_DEADLINE + 1);
        inbox.postL1Header(posted[0]);
        uint64 madeAt = uint64(block.number);
        pass(FINALITY);
        BatchHeader[] memory anew = run(2); // numbers 3, 4
        checkEqual(anew[0].l1OriginNumber, madeAt, "follows");

        (first, second) = (lost[1], anew[0]);
        (one, two) = (signHeader(SEQUENCER_KEY, first), signHeader(SEQUENCER_KEY, second));
        commitConflict(REPORTER);
        bytes memory excused = abi.encodeWithSelector(FaultRecords.Excused.selector, 3);
        expectRefusal(first, one, second, two, excused);
        expectRefusal(second, two, first, one, excused);

        // Two after it, two before it, and two of its own number are no accident.
        slashes(anew[0], anew[0].l1OriginNumber);
        slashes(lost[2], madeAt - 1);
        slashes(lost[0], madeAt);
    }

    /// @dev An epoch whose end is due ends with a header of L1's. What the sequencer had signed for the next number of
    /// the old epoch is displaced, and it signs that number anew for the next committee, without fault.
    function testExcusedWhenAnEpochEndedBetween() public {
        registerEpoch(2 * EPOCH_LAST, 4, 3);
        depositBond(1 ether);
        BatchHeader[] memory posted = run(1);
        postRun(posted);
        vm.prank(GOVERNOR);
        registry.announceEnd();
        pass(EPOCH_NOTICE + 1);
        BatchHeader memory old = run(2)[1]; // number 3
        inbox.postL1Header(posted[0]); // number 2
        pass(FINALITY + 1);
        BatchHeader[] memory anew = run(1);
        anew[0].epoch = 2;
        checkEqual(anew[0].number, 3, "the same number");
        checkEqual(registry.epochOf(3), 2, "of the next committee");
        relink(anew);
        (first, second) = (old, anew[0]);
        (one, two) = (signHeader(SEQUENCER_KEY, first), signHeader(SEQUENCER_KEY, second));
        commitConflict(REPORTER);
        expectRefusal(first, one, second, two, abi.encodeWithSelector(FaultRecords.Excused.selector, 3));
        postRun(anew);
    }

    /// @dev The header and a copy with another L1 origin, and other gas, take the bond.
    function slashes(BatchHeader memory header, uint64 origin) internal {
        first = header;
        second = header;
        second.l1OriginNumber = origin;
        second.gas ^= 3;
        (one, two) = (signHeader(SEQUENCER_KEY, first), signHeader(SEQUENCER_KEY, second));
        depositBond(1 ether);
        report(REPORTER);
        checkEqual(bond(), 0, "slashed");
    }
}
