// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitReveal } from "../src/CommitReveal.sol";
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
    /// @dev Numbers 1 … 5, in one run; the envelope stands in number 3 at index 2 with code 14.
    BatchHeader[] internal headers;
    RunReference internal posting;

    event Accused(bytes32 indexed envelopeId, address indexed accuser, uint64 sealBy, uint256 answerUntil);
    event Answered(
        bytes32 indexed envelopeId, address indexed answerer, uint64 number, uint256 index, uint8 code
    );
    event Omission(bytes32 indexed envelopeId, address indexed accuser, uint256 burnt, uint256 reward);

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

    function leaves() internal pure returns (bytes32[] memory made) {
        made = new bytes32[](5);
        for (uint256 i = 0; i < 5; i++) {
            made[i] = EnvelopeTree.leaf(keccak256(abi.encode("id", i)), keccak256(abi.encode(i)), 0);
        }
        made[2] = keccak256(abi.encodePacked(uint8(0), ID, ITEM_HASH, uint8(14)));
        made[4] = EnvelopeTree.leaf(0, ITEM_HASH, EnvelopeTree.FORCED_TRANSACTION);
    }

    function accuse(address accuser, uint64 sealBy, bytes memory reason) internal {
        bytes memory signature = signPromise(SEQUENCER_KEY, ID, sealBy);
        vm.deal(accuser, STAKE);
        vm.prank(accuser);
        if (reason.length != 0) vm.expectRevert(reason);
        inbox.accuseOmission{ value: STAKE }(ID, sealBy, signature, SALT);
    }

    function commitAndAccuse(address accuser, uint64 sealBy) internal {
        commitTo(accuser, omissionEvidence(ID, sealBy), SALT);
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
        answer.code = 14;
        (, answer.itemProof) = MerkleProofs.prove(leaves(), 2);
    }

    function give(Answer memory a, bytes memory reason) internal {
        vm.prank(ANSWERER);
        if (reason.length != 0) vm.expectRevert(reason);
        inbox.answerOmission(ID, a.header, a.run, a.headerProof, a.index, a.itemHash, a.code, a.itemProof);
    }

    function testAccuseAndSlash() public {
        commitTo(USER, omissionEvidence(ID, SEAL_BY), SALT);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit Accused(ID, USER, SEAL_BY, block.number + ANSWER_WINDOW);
        accuse(USER, SEAL_BY, "");
        checkEqual(inbox.openAccusations(), 1, "open");
        pass(ANSWER_WINDOW);
        vm.expectRevert(abi.encodeWithSelector(SequencerFaults.AnswerWindowOpen.selector, block.number));
        inbox.slashOmission(ID);
        pass(1);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit Omission(ID, USER, 5 ether, 5 ether);
        inbox.slashOmission(ID);
        checkEqual(inbox.bond(), 0, "bond");
        checkEqual(inbox.rewards(USER), 5 ether + STAKE, "half and the stake");
        checkEqual(inbox.openAccusations(), 0, "none open");
        checkEqual(address(0).balance, 5 ether, "burnt");

        vm.expectRevert(abi.encodeWithSelector(SequencerFaults.NoOpenAccusation.selector, ID));
        inbox.slashOmission(ID);
        give(rightAnswer(), abi.encodeWithSelector(SequencerFaults.NoOpenAccusation.selector, ID));
        // Not again with a lower number either.
        commitTo(USER, omissionEvidence(ID, SEAL_BY - 1), SALT);
        accuse(
            USER, SEAL_BY - 1, abi.encodeWithSelector(SequencerFaults.AlreadyAccused.selector, ID, SEAL_BY)
        );
    }

    function testAnswer() public {
        commitAndAccuse(USER, SEAL_BY);
        pass(ANSWER_WINDOW + 5); // late, but nobody has slashed
        vm.expectEmit(true, true, true, true, address(inbox));
        emit Answered(ID, ANSWERER, 3, 2, 14);
        give(rightAnswer(), "");
        checkEqual(inbox.rewards(ANSWERER), STAKE, "stake");
        checkEqual(inbox.openAccusations(), 0, "none open");
        checkEqual(inbox.bond(), 10 ether, "bond");
        give(rightAnswer(), abi.encodeWithSelector(SequencerFaults.NoOpenAccusation.selector, ID));
        vm.expectRevert(abi.encodeWithSelector(SequencerFaults.NoOpenAccusation.selector, ID));
        inbox.slashOmission(ID);
        vm.prank(ANSWERER);
        inbox.claimReward();
        checkEqual(ANSWERER.balance, STAKE, "claimed");
        commitTo(USER, omissionEvidence(ID, SEAL_BY), SALT);
        accuse(USER, SEAL_BY, abi.encodeWithSelector(SequencerFaults.AlreadyAccused.selector, ID, SEAL_BY));
    }

    /// forge-config: default.isolate = true
    function testGas() public {
        commitTo(USER, omissionEvidence(ID, 4), SALT);
        accuse(USER, 4, "");
        vm.snapshotGasLastCall("BlindedInbox.accuseOmission");
        give(rightAnswer(), "");
        vm.snapshotGasLastCall("BlindedInbox.answerOmission");
        commitAndAccuse(USER, SEAL_BY);
        pass(ANSWER_WINDOW + 1);
        inbox.slashOmission(ID);
        vm.snapshotGasLastCall("BlindedInbox.slashOmission");
    }

    function testAnswerRefusals() public {
        commitAndAccuse(USER, SEAL_BY);
        Answer memory a = rightAnswer();
        a.header = headers[3];
        give(a, abi.encodeWithSelector(SequencerFaults.SealedTooLate.selector, 4, SEAL_BY));
        a.header = headers[1];
        give(a, abi.encodeWithSelector(SequencerFaults.NotInRun.selector, 2)); // proof of another
        a = rightAnswer();
        a.run.postedAt += 1;
        give(a, abi.encodeWithSelector(SequencerFaults.NotInRun.selector, 3));
        a = rightAnswer();
        a.header.gas += 1;
        give(a, abi.encodeWithSelector(SequencerFaults.NotInRun.selector, 3));

        bytes memory missing = abi.encodeWithSelector(SequencerFaults.NotInBatch.selector, 3, 2);
        a = rightAnswer();
        a.code = 13;
        give(a, missing);
        a = rightAnswer();
        a.itemHash = keccak256("other");
        give(a, missing);
        a = rightAnswer();
        a.itemProof[0] ^= bytes32(uint256(1));
        give(a, missing);
        a = rightAnswer();
        a.index = 7; // beyond the count
        give(a, abi.encodeWithSelector(SequencerFaults.NotInBatch.selector, 3, 7));
        give(rightAnswer(), "");
    }

    function testAccuseRefusals() public {
        commitTo(USER, omissionEvidence(ID, SEAL_BY), SALT);
        bytes memory signature = signPromise(SEQUENCER_KEY, ID, SEAL_BY);
        vm.deal(USER, 1 ether);
        vm.prank(USER);
        vm.expectRevert(abi.encodeWithSelector(SequencerFaults.WrongStake.selector, STAKE - 1));
        inbox.accuseOmission{ value: STAKE - 1 }(ID, SEAL_BY, signature, SALT);
        vm.prank(USER);
        vm.expectRevert(abi.encodeWithSelector(SequencerFaults.WrongStake.selector, STAKE + 1));
        inbox.accuseOmission{ value: STAKE + 1 }(ID, SEAL_BY, signature, SALT);
        accuse(USER, 6, abi.encodeWithSelector(SequencerFaults.PromiseNotDue.selector, 5, 6));

        bytes memory bad = abi.encodeWithSelector(SequencerFaults.BadPromise.selector);
        vm.deal(USER, 1 ether);
        vm.prank(USER);
        vm.expectRevert(bad); // a promise of another number
        inbox.accuseOmission{ value: STAKE }(ID, SEAL_BY - 1, signature, SALT);
        vm.prank(USER);
        vm.expectRevert(bad); // of another envelope
        inbox.accuseOmission{ value: STAKE }(keccak256("other"), SEAL_BY, signature, SALT);
        signature = signPromise(7, ID, SEAL_BY);
        vm.prank(USER);
        vm.expectRevert(bad); // of somebody else
        inbox.accuseOmission{ value: STAKE }(ID, SEAL_BY, signature, SALT);

        bytes32 missing = keccak256(abi.encode(FRIEND, omissionEvidence(ID, SEAL_BY), SALT));
        accuse(FRIEND, SEAL_BY, abi.encodeWithSelector(CommitReveal.NotCommitted.selector, missing));
        vm.prank(FRIEND);
        inbox.commit(missing);
        accuse(FRIEND, SEAL_BY, abi.encodeWithSelector(CommitReveal.CommittedInThisBlock.selector));
        accuse(USER, SEAL_BY, "");
    }

    /// @dev A dishonest sequencer gives a friend a later promise, to answer the friend's accusation by a late batch.
    function testLowerPromiseTakesThePlaceOfAnOpenAccusation() public {
        commitAndAccuse(FRIEND, 5);
        uint256 accusedAt = block.number;
        pass(10);
        commitTo(USER, omissionEvidence(ID, 2), SALT);
        accuse(USER, 2, "");
        checkEqual(inbox.rewards(FRIEND), STAKE, "the friend has its stake back");
        checkEqual(inbox.openAccusations(), 1, "one open");
        give(rightAnswer(), abi.encodeWithSelector(SequencerFaults.SealedTooLate.selector, 3, 2));
        commitTo(FRIEND, omissionEvidence(ID, 4), SALT);
        accuse(FRIEND, 4, abi.encodeWithSelector(SequencerFaults.AlreadyAccused.selector, ID, 2));
        // The window is the first one's.
        vm.roll(accusedAt + ANSWER_WINDOW + 1);
        inbox.slashOmission(ID);
        checkEqual(inbox.rewards(USER), 5 ether + STAKE, "reward");
    }

    function testLowerPromiseAfterAnAnswer() public {
        commitAndAccuse(FRIEND, 5);
        give(rightAnswer(), "");
        pass(ANSWER_WINDOW);
        commitAndAccuse(USER, 2);
        uint256 until = block.number + ANSWER_WINDOW;
        vm.expectRevert(abi.encodeWithSelector(SequencerFaults.AnswerWindowOpen.selector, until));
        inbox.slashOmission(ID); // a window of its own
        vm.roll(until + 1);
        inbox.slashOmission(ID);
        checkEqual(inbox.bond(), 0, "bond");
        checkEqual(address(inbox).balance, 5 ether + 2 * STAKE, "held: reward and both stakes");
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
        inbox.slashOmission(ID);
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
        sealBy = uint64(sealBy % 4 < 2 ? bound(sealBy, 4, 8) : bound(sealBy, 4_099, 4_105));
        commitTo(USER, omissionEvidence(ID, sealBy), SALT);
        bool excused = sealBy >= 6 && sealBy < 6 + 4_096;
        accuse(
            USER,
            sealBy,
            excused ? abi.encodeWithSelector(SequencerFaults.Excused.selector, sealBy) : bytes("")
        );
    }

    function setHeadNumber(uint64 number) internal {
        uint256 slot = uint256(vm.load(address(inbox), bytes32(0)));
        vm.store(address(inbox), bytes32(0), bytes32(slot >> 64 << 64 | number));
        (uint64 now_,,,) = inbox.head();
        checkEqual(now_, number, "head");
    }
}
