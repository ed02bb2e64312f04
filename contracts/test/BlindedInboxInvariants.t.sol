// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox } from "../src/BlindedInbox.sol";
import { ForcedQueue } from "../src/ForcedQueue.sol";
import { SequencerFaults } from "../src/SequencerFaults.sol";
import { RunReference } from "../src/interfaces/IBlindedInbox.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { EnvelopeTree } from "../src/libraries/EnvelopeTree.sol";
import { Deployment } from "./helpers/Deployment.sol";

/// @dev Drives one deployment at random, with a sequencer that equivocates and omits, and keeps its own books.
contract BlindedInboxHandler is Deployment {
    bytes32 private constant SALT = keccak256("salt");

    uint256 public paidIn;
    uint256 public burnt;
    uint256 public paidOut;
    uint256 public expectedBond;
    uint64 public posted;
    uint256 public l1Headers;
    /// @dev The head and its hash, and the run it came in.
    BatchHeader private last;
    bytes32 public lastHash;
    RunReference private lastRun;
    bytes32[] private lastProof;
    uint64 private nextConflict = 1;

    /// @dev An accusation, and what answers it if the envelope was sealed.
    struct Case {
        bytes32 id;
        address accuser;
        uint256 accusedAt;
        bool open;
        bool kept;
        BatchHeader header;
        RunReference run;
        bytes32[] proof;
    }

    Case[] private cases;

    constructor() {
        vm.warp(1_800_000_000);
        deployContracts();
        registerEpoch(type(uint64).max - 1, 3, 2);
        lastHash = inbox.headHash();
    }

    function theInbox() external view returns (BlindedInbox) {
        return inbox;
    }

    function theQueue() external view returns (ForcedQueue) {
        return queue;
    }

    function actor(uint256 seed) private pure returns (address) {
        return address(uint160(0x10000 + seed % 3));
    }

    function advance(uint256 blocks) external {
        pass(blocks % 4 == 0 ? POSTING_DEADLINE + 1 : bound(blocks, 1, 2_000));
    }

    /// @dev Valid headers after the head; the last one seals an envelope of which the books know.
    function nextHeaders(uint256 count) private returns (BatchHeader[] memory headers) {
        if (inbox.headPostedAt() > inbox.lastCertifiedAt()) pass(FINALITY); // L1 made the head
        headers = run(count);
        BatchHeader memory end = headers[count - 1];
        end.envelopeRoot = EnvelopeTree.leaf(envelopeId(end.number), bytes32(0), 0);
        end.envelopeCount = 1;
    }

    function envelopeId(uint64 number) private pure returns (bytes32) {
        return keccak256(abi.encode("envelope", number));
    }

    function postHeaders(uint256 count) external {
        count = bound(count, 1, 4);
        BatchHeader[] memory headers = nextHeaders(count);
        post(headers, certificate(headers[count - 1], 0x3));
        posted += uint64(count);
        last = headers[count - 1];
        lastHash = inbox.hashHeader(last);
        lastRun = runReference(headers);
        (, lastProof) = proveHeader(headers, count - 1);
    }

    /// @dev Headers out of order in every way, each with a good certificate for what it says.
    function postWrong(uint256 how, uint64 by) external {
        BatchHeader[] memory headers = nextHeaders(2);
        by = uint64(bound(by, 1, 1_000));
        uint256 place = how / 8 % 2;
        if (how % 8 == 0) {
            headers[place].number += by;
        } else if (how % 8 == 1) {
            headers[place].number -= by < headers[place].number ? by : headers[place].number;
        } else if (how % 8 == 2) {
            headers[place].parentHash ^= bytes32(uint256(by));
        } else if (how % 8 == 3) {
            headers[1].timestampMs = headers[0].timestampMs - (by - 1);
        } else if (how % 8 == 4) {
            headers[0].l1OriginNumber = headers[1].l1OriginNumber + by;
        } else if (how % 8 == 5) {
            headers[0].forcedCursor += 16 + by;
        } else if (how % 8 == 6) {
            headers[place].version += 1;
        } else {
            headers[0].l1OriginNumber = uint64(block.number) - POSTING_DEADLINE - by;
        }
        if (how % 8 > 2) relink(headers);
        uint64 signers = 0x3;
        BlindedInbox.Certificate memory c = certificate(headers[1], signers);
        vm.prank(POSTER, POSTER);
        vm.expectRevert();
        inbox.post(headers, "", c);
    }

    function postWithTooFewSigners() external {
        BatchHeader[] memory headers = nextHeaders(1);
        BlindedInbox.Certificate memory c = certificate(headers[0], 0x4);
        vm.prank(POSTER, POSTER);
        vm.expectRevert();
        inbox.post(headers, "", c);
    }

    function force(uint256 kind, uint256 count) external {
        for (uint256 i = 0; i < bound(count, 1, 20); i++) {
            if (kind % 2 == 0) forceEnvelope(622);
            else forceTransaction(100, 21_000);
        }
    }

    function ignoreForcedItem() external {
        BatchHeader[] memory headers = nextHeaders(1);
        (,,, uint64 cursor) = inbox.head();
        if (headers[0].forcedCursor == cursor) return;
        headers[0].forcedCursor -= 1;
        BlindedInbox.Certificate memory c = certificate(headers[0], 0x3);
        vm.prank(POSTER, POSTER);
        vm.expectRevert(
            abi.encodeWithSelector(
                BlindedInbox.ForcedItemIgnored.selector, headers[0].number, headers[0].forcedCursor
            )
        );
        inbox.post(headers, "", c);
    }

    function makeL1Header() external {
        if (posted == 0) return;
        uint256 shown = inbox.equivocatedAt(posted + 1);
        if (shown != 0 && shown < inbox.headPostedAt()) shown = inbox.headPostedAt();
        bool undecided = shown != 0 && block.number > shown + ANSWER_WINDOW;
        uint256 silence = block.number - inbox.lastCertifiedAt();
        bool silent = silence > POSTING_DEADLINE && (silence - POSTING_DEADLINE - 1) / ANSWER_WINDOW % 2 == 0;
        BatchHeader memory next = l1Header(last);
        bool useful = undecided || next.envelopeCount != 0 || last.envelopeCount != 0;
        bool later = block.timestamp > last.timestampMs / 1_000;
        bool allowed = (undecided || silent) && useful && later;
        if (!allowed) vm.expectRevert();
        inbox.postL1Header(last);
        if (!allowed) return;
        posted += 1;
        l1Headers += 1;
        last = next;
        lastHash = inbox.hashHeader(next);
        delete lastProof;
        lastRun =
            RunReference(posted, posted, uint64(block.number), keccak256(bytes.concat(hex"00", lastHash)));
    }

    function deposit(uint256 amount) external {
        amount = bound(amount, 1, 100 ether);
        depositBond(amount);
        paidIn += amount;
        expectedBond += amount;
    }

    function announce(uint256 amount) external {
        amount = bound(amount, 0, inbox.bond());
        vm.prank(vm.addr(SEQUENCER_KEY));
        inbox.announceBondWithdrawal(uint128(amount));
    }

    function withdraw(uint256 waited) external {
        (uint128 amount, uint64 unlocksAt) = inbox.withdrawal();
        vm.warp(block.timestamp + bound(waited, 0, 14 days));
        bool allowed = amount != 0 && block.timestamp >= unlocksAt && openCases() == 0;
        if (!allowed) vm.expectRevert();
        vm.prank(vm.addr(SEQUENCER_KEY));
        inbox.withdrawBond(payable(address(0xcafe)));
        if (!allowed) return;
        paidOut += amount;
        expectedBond -= amount;
    }

    function equivocate(uint8 reporter) external {
        if (nextConflict <= posted) nextConflict = posted + 1;
        BatchHeader memory first = run(1)[0];
        BatchHeader memory second = run(1)[0];
        (first.number, second.number) = (nextConflict, nextConflict);
        second.gas ^= 1;
        commitTo(actor(reporter), conflictEvidence(first, second), SALT);
        bytes memory one = signHeader(SEQUENCER_KEY, first);
        bytes memory two = signHeader(SEQUENCER_KEY, second);
        vm.prank(actor(reporter));
        inbox.slashEquivocation(first, one, second, two, SALT);
        nextConflict++;
        slashed();
    }

    function slashed() private {
        burnt += expectedBond - expectedBond / 2;
        expectedBond = 0;
        checkEqual(inbox.bond(), 0, "an offender keeps nothing");
    }

    /// @dev Accuses about the last header's envelope, which is sealed, or about one that never was.
    function accuse(uint8 accuser, bool kept) external {
        if (posted == 0) return;
        kept = kept && last.envelopeRoot == EnvelopeTree.leaf(envelopeId(posted), bytes32(0), 0);
        bytes32 id = kept ? envelopeId(posted) : keccak256(abi.encode("omitted", cases.length));
        bytes memory signature = signPromise(SEQUENCER_KEY, id, posted);
        commitTo(actor(accuser), omissionEvidence(id, posted), SALT);
        bool excused = l1Headers != 0; // there are never 4,096 headers here
        (,, SequencerFaults.State state,) = inbox.accusations(id);
        bool allowed = !excused && state == SequencerFaults.State.None;
        vm.deal(actor(accuser), STAKE);
        if (!allowed) vm.expectRevert();
        vm.prank(actor(accuser));
        inbox.accuseOmission{ value: STAKE }(id, posted, signature, SALT);
        if (!allowed) return;
        paidIn += STAKE;
        cases.push(Case(id, actor(accuser), block.number, true, kept, last, lastRun, lastProof));
    }

    function answer(uint256 which, uint8 answerer) external {
        if (cases.length == 0) return;
        Case storage it = cases[which % cases.length];
        bool allowed = it.open && it.kept;
        if (!allowed) vm.expectRevert();
        vm.prank(actor(answerer));
        inbox.answerOmission(it.id, it.header, it.run, it.proof, 0, bytes32(0), 0, new bytes32[](0));
        if (allowed) it.open = false;
    }

    function settle(uint256 which) external {
        if (cases.length == 0) return;
        Case storage it = cases[which % cases.length];
        bool allowed = it.open && block.number > it.accusedAt + ANSWER_WINDOW;
        if (!allowed) vm.expectRevert();
        inbox.slashOmission(it.id);
        if (!allowed) return;
        it.open = false;
        slashed();
    }

    function claim(uint8 reporter) external {
        uint256 owed = inbox.rewards(actor(reporter));
        if (owed == 0) vm.expectRevert();
        vm.prank(actor(reporter));
        inbox.claimReward();
        paidOut += owed;
    }

    function openCases() public view returns (uint256 open) {
        for (uint256 i = 0; i < cases.length; i++) {
            if (cases[i].open) open++;
        }
    }
}

contract BlindedInboxInvariantsTest is Deployment {
    BlindedInboxHandler internal handler;

    function setUp() public {
        handler = new BlindedInboxHandler();
        inbox = handler.theInbox();
        queue = handler.theQueue();
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function invariantEtherIsAccountedFor() public view {
        uint256 held = inbox.bond() + inbox.openAccusations() * STAKE;
        for (uint160 i = 0; i < 3; i++) {
            held += inbox.rewards(address(0x10000 + i));
        }
        checkEqual(address(inbox).balance, held, "held = bond + rewards + stakes");
        checkEqual(handler.paidIn(), held + handler.burnt() + handler.paidOut(), "in = held + out");
    }

    function invariantBondMovesOnlyByTheRules() public view {
        checkEqual(inbox.bond(), handler.expectedBond(), "bond");
        checkEqual(inbox.openAccusations(), handler.openCases(), "open accusations");
        (uint128 amount,) = inbox.withdrawal();
        check(amount <= inbox.bond(), "announced more than the bond");
    }

    function invariantHeadIsWhatWasPosted() public view {
        (uint64 number,,, uint64 cursor) = inbox.head();
        checkEqual(number, handler.posted(), "head");
        checkEqual(inbox.headHash(), handler.lastHash(), "hash");
        checkEqual(inbox.l1MadeCount(), handler.l1Headers(), "made by L1");
        check(cursor <= queue.length(), "no entry taken that is not there");
        if (number != 0) check(inbox.runCommitment(number) != bytes32(0), "the last run is committed to");
    }
}
