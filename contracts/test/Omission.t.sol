// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitReveal } from "../src/CommitReveal.sol";
import { FaultRecords } from "../src/FaultRecords.sol";
import { SequencerBond } from "../src/SequencerBond.sol";
import { SequencerFaults } from "../src/SequencerFaults.sol";
import { RunReference } from "../src/interfaces/IBlindedInbox.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { EnvelopeTree } from "../src/libraries/EnvelopeTree.sol";
import { Deployment } from "./helpers/Deployment.sol";
import { MerkleProofs } from "./helpers/MerkleProofs.sol";

contract OmissionTest is Deployment {
    address internal constant USER = address(0x05e4);
    address internal constant FRIEND = address(0xf41e4d);
    address internal constant ANSWERER = address(0xa45);
    bytes32 internal constant SALT = keccak256("salt");
    bytes32 internal constant ID = keccak256("envelope");
    bytes32 internal constant ITEM_HASH = keccak256("item");
    uint64 internal constant SEAL_BY = 3;

    address internal sequencer;
    /// @dev Numbers 1 … 5, in one run; the envelope stands in number 3 at index 2 with code 11, `duplicate`.
    BatchHeader[] internal headers;
    RunReference internal posting;

    event Accused(
        bytes32 indexed promiseId,
        bytes32 indexed envelopeId,
        address indexed accuser,
        address sequencer,
        bytes32 itemHash,
        uint64 sealBy,
        uint256 answerUntil
    );
    event Answered(
        bytes32 indexed promiseId, address indexed answerer, uint64 number, uint256 index, uint8 code
    );
    event Omission(bytes32 indexed promiseId, address indexed accuser, uint256 burnt, uint256 reward);

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        sequencer = vm.addr(SEQUENCER_KEY);
        registerEpoch(EPOCH_LAST, 4, 3);
        depositBond(10 ether);
        BatchHeader[] memory made = run(5);
        (made[2].envelopeRoot,) = MerkleProofs.prove(leaves(), 0);
        made[2].envelopeCount = 5;
        relink(made);
        posting = postRun(made);
        for (uint256 i = 0; i < 5; i++) {
            headers.push(made[i]);
        }
    }

    function leaves() internal pure returns (bytes32[] memory) {
        return leavesWith(EnvelopeTree.DUPLICATE);
    }

    function leavesWith(uint8 code) internal pure returns (bytes32[] memory made) {
        made = new bytes32[](5);
        for (uint256 i = 0; i < 5; i++) {
            made[i] = EnvelopeTree.leaf(keccak256(abi.encode("id", i)), keccak256(abi.encode(i)), 0);
        }
        made[2] = keccak256(abi.encodePacked(uint8(0), ID, ITEM_HASH, code));
        made[4] = EnvelopeTree.leaf(0, ITEM_HASH, EnvelopeTree.FORCED_TRANSACTION);
    }

    function accuse(address accuser, uint64 sealBy, bytes memory reason) internal {
        bytes memory signature = signPromise(SEQUENCER_KEY, ID, ITEM_HASH, sealBy);
        vm.deal(accuser, STAKE);
        vm.prank(accuser);
        if (reason.length != 0) vm.expectRevert(reason);
        inbox.accuseOmission{ value: STAKE }(ID, ITEM_HASH, sealBy, signature, SALT);
    }

    function commitAndAccuse(address accuser, uint64 sealBy) internal {
        commitTo(accuser, omissionEvidence(ID, ITEM_HASH, sealBy), SALT);
        accuse(accuser, sealBy, "");
    }

    struct Answer {
        BatchHeader header;
        RunReference run;
        bytes32[] headerProof;
        uint256 index;
        bytes32 itemHash;
        uint8 code;
        bytes32[] itemProof;
    }

    function rightAnswer() internal view returns (Answer memory answer) {
        answer.header = headers[2];
        answer.run = posting;
        (, answer.headerProof) = proveHeader(headers, 2);
        answer.index = 2;
        answer.itemHash = ITEM_HASH;
        answer.code = EnvelopeTree.DUPLICATE;
        (, answer.itemProof) = MerkleProofs.prove(leaves(), 2);
    }

    function give(Answer memory a, bytes memory reason) internal {
        giveTo(SEAL_BY, a, reason);
    }

    /// @dev Answers the accusation about the promise of this number.
    function giveTo(uint64 sealBy, Answer memory a, bytes memory reason) internal {
        vm.prank(ANSWERER);
        if (reason.length != 0) vm.expectRevert(reason);
        FaultRecords.GivenPromise memory given = givenPromise(ID, a.itemHash, sealBy);
        inbox.answerOmission(given, a.header, a.run, a.headerProof, a.index, a.code, a.itemProof);
    }

    /// @dev The promise of this number.
    function promised(uint64 sealBy) internal pure returns (bytes32) {
        return promiseId(ID, ITEM_HASH, sealBy);
    }

    function testAccuseAndSlash() public {
        commitTo(USER, omissionEvidence(ID, ITEM_HASH, SEAL_BY), SALT);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit Accused(promised(SEAL_BY), ID, USER, sequencer, ITEM_HASH, SEAL_BY, block.number + ANSWER_WINDOW);
        accuse(USER, SEAL_BY, "");
        checkEqual(inbox.openAccusations(), 1, "open");
        pass(ANSWER_WINDOW);
        vm.expectRevert(abi.encodeWithSelector(FaultRecords.AnswerWindowOpen.selector, block.number));
        inbox.slashOmission(givenPromise(ID, ITEM_HASH, SEAL_BY));
        pass(1);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit Omission(promised(SEAL_BY), USER, 5 ether, 5 ether);
        inbox.slashOmission(givenPromise(ID, ITEM_HASH, SEAL_BY));
        checkEqual(bond(), 0, "bond");
        checkEqual(inbox.rewards(USER), 5 ether + STAKE, "half and the stake");
        checkEqual(inbox.openAccusations(), 0, "none open");
        checkEqual(address(0).balance, 5 ether, "burnt");

        vm.expectRevert(abi.encodeWithSelector(FaultRecords.NoOpenAccusation.selector, promised(SEAL_BY)));
        inbox.slashOmission(givenPromise(ID, ITEM_HASH, SEAL_BY));
        give(rightAnswer(), abi.encodeWithSelector(FaultRecords.NoOpenAccusation.selector, promised(SEAL_BY)));
        commitTo(USER, omissionEvidence(ID, ITEM_HASH, SEAL_BY), SALT);
        accuse(USER, SEAL_BY, abi.encodeWithSelector(FaultRecords.AlreadyAccused.selector, promised(SEAL_BY)));
    }

    function testAnswer() public {
        commitAndAccuse(USER, SEAL_BY);
        pass(ANSWER_WINDOW + 5); // late, but nobody has slashed
        vm.expectEmit(true, true, true, true, address(inbox));
        emit Answered(promised(SEAL_BY), ANSWERER, 3, 2, 11);
        give(rightAnswer(), "");
        checkEqual(inbox.rewards(ANSWERER), STAKE, "stake");
        checkEqual(inbox.openAccusations(), 0, "none open");
        checkEqual(bond(), 10 ether, "bond");
        give(rightAnswer(), abi.encodeWithSelector(FaultRecords.NoOpenAccusation.selector, promised(SEAL_BY)));
        vm.expectRevert(abi.encodeWithSelector(FaultRecords.NoOpenAccusation.selector, promised(SEAL_BY)));
        inbox.slashOmission(givenPromise(ID, ITEM_HASH, SEAL_BY));
        vm.prank(ANSWERER);
        inbox.claimReward();
        checkEqual(ANSWERER.balance, STAKE, "claimed");
        commitTo(USER, omissionEvidence(ID, ITEM_HASH, SEAL_BY), SALT);
        accuse(USER, SEAL_BY, abi.encodeWithSelector(FaultRecords.AlreadyAccused.selector, promised(SEAL_BY)));
    }

    function testStakesOfSeveralAnswersAddUp() public {
        commitAndAccuse(USER, SEAL_BY);
        commitAndAccuse(FRIEND, SEAL_BY + 1);
        give(rightAnswer(), "");
        giveTo(SEAL_BY + 1, rightAnswer(), "");
        checkEqual(inbox.rewards(ANSWERER), 2 * STAKE, "both");
    }

    /// forge-config: default.isolate = true
    function testGas() public {
        commitTo(USER, omissionEvidence(ID, ITEM_HASH, 4), SALT);
        accuse(USER, 4, "");
        vm.snapshotGasLastCall("BlindedInbox.accuseOmission");
        giveTo(4, rightAnswer(), "");
        vm.snapshotGasLastCall("BlindedInbox.answerOmission");
        commitAndAccuse(USER, SEAL_BY);
        pass(ANSWER_WINDOW + 1);
        inbox.slashOmission(givenPromise(ID, ITEM_HASH, SEAL_BY));
        vm.snapshotGasLastCall("BlindedInbox.slashOmission");
    }

    function testAnswerRefusals() public {
        commitAndAccuse(USER, SEAL_BY);
        Answer memory a = rightAnswer();
        a.header = headers[3];
        give(a, abi.encodeWithSelector(FaultRecords.SealedTooLate.selector, 4, SEAL_BY));
        a.header = headers[1];
        give(a, abi.encodeWithSelector(FaultRecords.NotInRun.selector, 2)); // proof of another
        a = rightAnswer();
        a.run.postedAt += 1;
        give(a, abi.encodeWithSelector(FaultRecords.NotInRun.selector, 3));
        a = rightAnswer();
        a.header.gas += 1;
        give(a, abi.encodeWithSelector(FaultRecords.NotInRun.selector, 3));

        bytes memory missing = abi.encodeWithSelector(FaultRecords.NotInBatch.selector, 3, 2);
        a = rightAnswer();
        a.code = EnvelopeTree.ACCEPTED;
        give(a, missing);
        a = rightAnswer();
        // No accusation is about another copy.
        a.itemHash = keccak256("other");
        bytes32 copy = promiseId(ID, keccak256("other"), SEAL_BY);
        give(a, abi.encodeWithSelector(FaultRecords.NoOpenAccusation.selector, copy));
        a = rightAnswer();
        a.itemProof[0] ^= bytes32(uint256(1));
        give(a, missing);
        a = rightAnswer();
        a.index = 7; // beyond the count
        give(a, abi.encodeWithSelector(FaultRecords.NotInBatch.selector, 3, 7));
        give(rightAnswer(), "");
    }

    /// @dev Accepted or there already, or spoilt by its payer when its number comes: nothing else keeps a promise, whatever
    /// the batch says.
    function testFuzzOnlySomeVerdictsKeepAPromise(uint8 code, bool later) public {
        deployContracts();
        registerEpoch(EPOCH_LAST, 4, 3);
        BatchHeader[] memory made = run(3);
        (made[2].envelopeRoot,) = MerkleProofs.prove(leavesWith(code), 0);
        made[2].envelopeCount = 5;
        relink(made);
        Answer memory a;
        a.run = postRun(made);
        a.header = made[2];
        (, a.headerProof) = proveHeader(made, 2);
        (a.index, a.itemHash, a.code) = (2, ITEM_HASH, code);
        (, a.itemProof) = MerkleProofs.prove(leavesWith(code), 2);
        uint64 sealBy = later ? SEAL_BY + 1 : SEAL_BY;
        if (later) postRun(run(1));
        commitAndAccuse(USER, sealBy);
        bool kept = code == 0 || code == 11 || (!later && (code == 15 || code == 17));
        bytes memory reason = abi.encodeWithSelector(FaultRecords.PromiseNotKept.selector, code);
        giveTo(sealBy, a, kept ? bytes("") : reason);
        checkEqual(inbox.openAccusations(), kept ? 0 : 1, "open");
    }

    /// @dev The user sends the envelope before its deposit is credited. The sequencer answers `insufficient_funds` and
    /// seals it all the same: the rule skips it. The deposit comes, the user sends the same bytes again and is promised
    /// them; they are in no batch since. What an earlier one said of them keeps no promise.
    function testABatchFromBeforeThePromiseKeepsItNot() public {
        uint8[2] memory spoilt = [EnvelopeTree.INSUFFICIENT_FUNDS, EnvelopeTree.FEE_NONCE_USED];
        for (uint256 i = 0; i < 2; i++) {
            deployContracts();
            registerEpoch(EPOCH_LAST, 4, 3);
            depositBond(10 ether);
            BatchHeader[] memory made = run(1);
            made[0].envelopeRoot = EnvelopeTree.leaf(ID, ITEM_HASH, spoilt[i]);
            made[0].envelopeCount = 1;
            relink(made);
            Answer memory a;
            a.run = postRun(made);
            (a.header, a.itemHash, a.code) = (made[0], ITEM_HASH, spoilt[i]);
            (, a.headerProof) = proveHeader(made, 0);
            pass(300); // an hour later: credited, and promised
            postRun(run(50));
            commitAndAccuse(USER, 41);
            giveTo(41, a, abi.encodeWithSelector(FaultRecords.PromiseNotKept.selector, spoilt[i]));
            pass(ANSWER_WINDOW + 1);
            inbox.slashOmission(givenPromise(ID, ITEM_HASH, 41));
            checkEqual(bond(), 0, "slashed");
        }
    }

    /// @dev A copy with one bit of its proof flipped has the same id. The sequencer seals that instead, and the rule
    /// skips it: the promise was for the bytes it was given.
    function testMangledCopyKeepsNoPromise() public {
        deployContracts();
        registerEpoch(EPOCH_LAST, 4, 3);
        depositBond(10 ether);
        BatchHeader[] memory made = run(3);
        bytes32 mangled = keccak256("item with a bit flipped");
        made[2].envelopeRoot = EnvelopeTree.leaf(ID, mangled, 14);
        made[2].envelopeCount = 1;
        relink(made);
        Answer memory a;
        a.run = postRun(made);
        a.header = made[2];
        (, a.headerProof) = proveHeader(made, 2);
        commitAndAccuse(USER, SEAL_BY);
        (a.itemHash, a.code) = (mangled, 14);
        give(
            a, abi.encodeWithSelector(FaultRecords.NoOpenAccusation.selector, promiseId(ID, mangled, SEAL_BY))
        );
        (a.itemHash, a.code) = (ITEM_HASH, 0);
        give(a, abi.encodeWithSelector(FaultRecords.NotInBatch.selector, 3, 0));
        pass(ANSWER_WINDOW + 1);
        inbox.slashOmission(givenPromise(ID, ITEM_HASH, SEAL_BY));
        checkEqual(bond(), 0, "the bond");
        checkEqual(inbox.rewards(USER), 5 ether + STAKE, "half of it and the stake");
    }

    function testAccuseRefusals() public {
        commitTo(USER, omissionEvidence(ID, ITEM_HASH, SEAL_BY), SALT);
        bytes memory signature = signPromise(SEQUENCER_KEY, ID, ITEM_HASH, SEAL_BY);
        vm.deal(USER, 1 ether);
        vm.prank(USER);
        vm.expectRevert(abi.encodeWithSelector(FaultRecords.WrongStake.selector, STAKE - 1));
        inbox.accuseOmission{ value: STAKE - 1 }(ID, ITEM_HASH, SEAL_BY, signature, SALT);
        vm.prank(USER);
        vm.expectRevert(abi.encodeWithSelector(FaultRecords.WrongStake.selector, STAKE + 1));
        inbox.accuseOmission{ value: STAKE + 1 }(ID, ITEM_HASH, SEAL_BY, signature, SALT);
        accuse(USER, 6, abi.encodeWithSelector(FaultRecords.PromiseNotDue.selector, 5, 6));

        bytes memory bad = abi.encodeWithSelector(FaultRecords.BadPromise.selector);
        vm.deal(USER, 1 ether);
        vm.prank(USER);
        vm.expectRevert(bad); // a promise of another number
        inbox.accuseOmission{ value: STAKE }(ID, ITEM_HASH, SEAL_BY - 1, signature, SALT);
        vm.prank(USER);
        vm.expectRevert(bad); // of another envelope
        inbox.accuseOmission{ value: STAKE }(keccak256("other"), ITEM_HASH, SEAL_BY, signature, SALT);
        vm.prank(USER);
        vm.expectRevert(bad); // of other bytes with the same id
        inbox.accuseOmission{ value: STAKE }(ID, keccak256("other"), SEAL_BY, signature, SALT);
        signature = signPromise(7, ID, ITEM_HASH, SEAL_BY);
        vm.prank(USER);
        vm.expectRevert(bad); // of somebody else
        inbox.accuseOmission{ value: STAKE }(ID, ITEM_HASH, SEAL_BY, signature, SALT);

        bytes32 missing = keccak256(abi.encode(FRIEND, omissionEvidence(ID, ITEM_HASH, SEAL_BY), SALT));
        accuse(FRIEND, SEAL_BY, abi.encodeWithSelector(CommitReveal.NotCommitted.selector, missing));
        vm.prank(FRIEND);
        inbox.commit(missing);
        accuse(FRIEND, SEAL_BY, abi.encodeWithSelector(CommitReveal.CommittedInThisBlock.selector));
        accuse(USER, SEAL_BY, "");
    }

    /// @dev The sequencer gives a friend a lower promise, who accuses when the victim's window is nearly over: that is
    /// another accusation, and the victim still slashes first.
    function testLowerPromiseDoesNotTakeTheAccusersReward() public {
        commitAndAccuse(USER, 2);
        uint256 accusedAt = block.number;
        vm.roll(accusedAt + ANSWER_WINDOW - 2);
        commitTo(FRIEND, omissionEvidence(ID, ITEM_HASH, 1), SALT);
        accuse(FRIEND, 1, "");
        checkEqual(inbox.rewards(USER), 0, "the stake stays");
        checkEqual(inbox.openAccusations(), 2, "both open");
        vm.roll(accusedAt + ANSWER_WINDOW + 1);
        vm.expectRevert(
            abi.encodeWithSelector(
                FaultRecords.AnswerWindowOpen.selector, accusedAt + 2 * uint256(ANSWER_WINDOW) - 1
            )
        );
        inbox.slashOmission(givenPromise(ID, ITEM_HASH, 1));
        inbox.slashOmission(givenPromise(ID, ITEM_HASH, 2));
        checkEqual(inbox.rewards(USER), 5 ether + STAKE, "the first accuser has the reward");
        checkEqual(inbox.openAccusations(), 1, "one open");
        pass(ANSWER_WINDOW);
        inbox.slashOmission(givenPromise(ID, ITEM_HASH, 1));
        checkEqual(inbox.rewards(FRIEND), STAKE, "the friend has its stake");
        checkEqual(address(inbox).balance, 5 ether + 2 * STAKE, "held: reward and both stakes");
    }

    /// @dev The sequencer gives a friend a later promise, whose accusation it answers: the victim's stands.
    function testAnswerToALaterPromiseDoesNotAnswerAnEarlierOne() public {
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(10 ether);
        vm.warp(block.timestamp + 7 days);
        commitAndAccuse(FRIEND, 5);
        commitAndAccuse(USER, 2);
        giveTo(5, rightAnswer(), "");
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.AccusationsOpen.selector, 1));
        inbox.withdrawBond(payable(sequencer));
        giveTo(2, rightAnswer(), abi.encodeWithSelector(FaultRecords.SealedTooLate.selector, 3, 2));
        pass(ANSWER_WINDOW + 1);
        inbox.slashOmission(givenPromise(ID, ITEM_HASH, 2));
        checkEqual(inbox.rewards(USER), 5 ether + STAKE, "reward");
    }

    /// @dev The code that judges reports has no funds and no headers of its own.
    function testFaultsAreReportedToTheInboxOnly() public {
        SequencerFaults code = SequencerFaults(inbox.faults());
        commitTo(USER, omissionEvidence(ID, ITEM_HASH, SEAL_BY), SALT);
        bytes memory signature = signPromise(SEQUENCER_KEY, ID, ITEM_HASH, SEAL_BY);
        vm.deal(USER, STAKE);
        vm.prank(USER);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.NotTheInbox.selector));
        code.accuseOmission{ value: STAKE }(ID, ITEM_HASH, SEAL_BY, signature, SALT);
        vm.prank(USER);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.NotTheInbox.selector));
        code.depositBond{ value: STAKE }(sequencer);
    }

    function testOpenAccusationHoldsTheBond() public {
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(10 ether);
        vm.warp(block.timestamp + 7 days);
        commitAndAccuse(USER, SEAL_BY);
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.AccusationsOpen.selector, 1));
        inbox.withdrawBond(payable(sequencer));
        give(rightAnswer(), "");
        vm.prank(sequencer);
        inbox.withdrawBond(payable(sequencer));
        checkEqual(sequencer.balance, 10 ether, "taken out");
    }

    function testSlashedWithoutBondTheStakeReturns() public {
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(10 ether);
        vm.warp(block.timestamp + 7 days);
        vm.prank(sequencer);
        inbox.withdrawBond(payable(sequencer));
        commitAndAccuse(USER, SEAL_BY);
        pass(ANSWER_WINDOW + 1);
        inbox.slashOmission(givenPromise(ID, ITEM_HASH, SEAL_BY));
        checkEqual(inbox.rewards(USER), STAKE, "stake");
    }

    /// @dev L1 makes header 6: promises up to 6 … 6 + 4,095 are excused, others are not.
    function testFuzzExcusedByAnL1Header(uint64 sealBy) public {
        forceTransaction(100, 100_000);
        pass(POSTING_DEADLINE + 1);
        inbox.postL1Header(headers[4]);
        pass(FINALITY);
        // The head goes far beyond, without 4,097 headers: only its number matters here.
        BatchHeader[] memory next = run(2);
        postRun(next);
        setHeadNumber(20_000);
        uint64 kind = sealBy % 3;
        if (kind == 0) sealBy = uint64(bound(sealBy, 4, 8));
        else if (kind == 1) sealBy = uint64(bound(sealBy, 4_099, 4_105));
        else sealBy = uint64(bound(sealBy, 2 * 4_096 - 3, 2 * 4_096 + 3));
        commitTo(USER, omissionEvidence(ID, ITEM_HASH, sealBy), SALT);
        bool excused = sealBy >= 6 && sealBy < 6 + 4_096;
        accuse(
            USER, sealBy, excused ? abi.encodeWithSelector(FaultRecords.Excused.selector, sealBy) : bytes("")
        );
    }

    function setHeadNumber(uint64 number) internal {
        uint256 slot = uint256(vm.load(address(inbox), bytes32(0)));
        vm.store(address(inbox), bytes32(0), bytes32(slot >> 64 << 64 | number));
        (uint64 now_,,,) = inbox.head();
        checkEqual(now_, number, "head");
    }
}
