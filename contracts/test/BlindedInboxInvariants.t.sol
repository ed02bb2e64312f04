// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox } from "../src/BlindedInbox.sol";
import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { FaultRecords } from "../src/FaultRecords.sol";
import { ForcedQueue } from "../src/ForcedQueue.sol";
import { SequencerBond } from "../src/SequencerBond.sol";
import { RunReference } from "../src/interfaces/IBlindedInbox.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { EnvelopeTree } from "../src/libraries/EnvelopeTree.sol";
import { Deployment } from "./helpers/Deployment.sol";

/// @dev Drives one deployment at random, with a sequencer that equivocates and omits, and keeps ghost state.
contract BlindedInboxHandler is Deployment {
    bytes32 private constant SALT = keccak256("salt");

    uint256 public paidIn;
    uint256 public burnt;
    uint256 public paidOut;
    /// @dev What was deposited and neither slashed nor taken out.
    uint256 public staked;
    /// @dev What is announced, and when it was.
    uint128 private announced;
    uint256 private announcedTime;
    /// @dev How often the bond was slashed; then, and what it showed, when certified headers were last posted.
    uint256 private slashes;
    uint256 private slashesAtPosting;
    uint256 private bondAtPosting;
    uint256 public postedTime;
    uint64 public posted;
    uint256 public l1Headers;
    /// @dev The head and its hash, and the run it came in.
    BatchHeader private last;
    bytes32 public lastHash;
    RunReference private lastRun;
    bytes32[] private lastProof;
    /// @dev Headers that were shown.
    mapping(bytes32 headerHash => bool) private shown;

    /// @dev An accusation, and what answers it if the envelope was sealed.
    struct Case {
        bytes32 id;
        address accuser;
        uint256 accusedAt;
        bool open;
        bool kept;
        /// What the bond showed when it was opened, and how often it was slashed before.
        uint256 bond;
        uint256 slashes;
        uint64 sealBy;
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
        postedTime = block.timestamp;
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

    /// @dev Valid headers after the head; the last one seals an envelope of which the ghost state knows.
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

    function postHeaders(uint256 count) public {
        count = bound(count, 1, 4);
        BatchHeader[] memory headers = nextHeaders(count);
        post(headers, certificate(headers[count - 1], 0x3));
        posted += uint64(count);
        last = headers[count - 1];
        lastHash = inbox.hashHeader(last);
        lastRun = runReference(headers);
        (, lastProof) = proveHeader(headers, count - 1);
        (postedTime, bondAtPosting, slashesAtPosting) = (block.timestamp, bond(), slashes);
    }

    /// @dev Headers out of order in every way, each with a good certificate for what it says.
    function postWrong(uint256 how, uint64 by) external {
        BatchHeader[] memory headers = nextHeaders(2);
        by = uint64(bound(by, 1, 1_000));
        BatchHeader memory wrong = headers[how / 8 % 2];
        uint64 number = wrong.number;
        bytes memory reason;
        if (how % 8 == 0) {
            wrong.number += by;
            reason = abi.encodeWithSelector(BlindedInbox.WrongNumber.selector, number, wrong.number);
        } else if (how % 8 == 1) {
            // A first header that is posted already is passed over, and the second one does not follow the head.
            wrong.number -= by < number ? by : number;
            bool passed = how / 8 % 2 == 0 && wrong.number != 0;
            uint64 given = passed ? headers[1].number : wrong.number;
            reason = abi.encodeWithSelector(BlindedInbox.WrongNumber.selector, number, given);
        } else if (how % 8 == 2) {
            bytes32 parent = wrong.parentHash;
            wrong.parentHash ^= bytes32(uint256(by));
            reason =
                abi.encodeWithSelector(BlindedInbox.WrongParent.selector, number, parent, wrong.parentHash);
        } else if (how % 8 == 3) {
            headers[1].timestampMs = headers[0].timestampMs - (by - 1);
            reason = abi.encodeWithSelector(BlindedInbox.TimeNotIncreasing.selector, headers[1].number);
        } else if (how % 8 == 4) {
            headers[0].l1OriginNumber = headers[1].l1OriginNumber + by;
            (,,, uint64 cursor) = inbox.head();
            headers[0].forcedCursor = dueCursor(cursor, headers[0].l1OriginNumber);
            reason = abi.encodeWithSelector(BlindedInbox.OriginDecreasing.selector, headers[1].number);
        } else if (how % 8 == 5) {
            (,,, uint64 cursor) = inbox.head();
            headers[0].forcedCursor += 16 + by;
            reason = abi.encodeWithSelector(
                BlindedInbox.ForcedCapExceeded.selector, headers[0].number, headers[0].forcedCursor - cursor
            );
        } else if (how % 8 == 6) {
            wrong.version += 1;
            reason = abi.encodeWithSelector(BlindedInbox.UnsupportedVersion.selector, wrong.version);
        } else {
            (,, uint64 origin,) = inbox.head();
            headers[0].l1OriginNumber = uint64(block.number) - POSTING_DEADLINE - by;
            reason = headers[0].l1OriginNumber < origin
                ? abi.encodeWithSelector(BlindedInbox.OriginDecreasing.selector, headers[0].number)
                : abi.encodeWithSelector(
                    BlindedInbox.OriginTooOld.selector,
                    headers[0].l1OriginNumber,
                    block.number - POSTING_DEADLINE
                );
        }
        if (how % 8 > 2) relink(headers);
        BlindedInbox.Certificate memory c = certificate(headers[1], 0x3);
        vm.prank(POSTER, POSTER);
        vm.expectRevert(reason);
        inbox.post(headers, "", c);
    }

    function postWithTooFewSigners() external {
        BatchHeader[] memory headers = nextHeaders(1);
        BlindedInbox.Certificate memory c = certificate(headers[0], 0x4);
        vm.prank(POSTER, POSTER);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.TooFewSigners.selector, 1, 2));
        inbox.post(headers, "", c);
    }

    /// @dev More than a header takes wait until they are overdue, and the sequencer posts one header.
    function waitWithOneHeader(bool later) external {
        for (uint256 i = 0; i < 20; i++) {
            forceTransaction(100, 21_000);
        }
        pass(uint256(FORCED_DELAY) + POSTING_DEADLINE + (later ? FINALITY : 0));
        postHeaders(1);
    }

    function force(uint256 kind, uint256 count) external {
        for (uint256 i = 0; i < bound(count, 1, 20); i++) {
            if (kind % 2 == 0) forceEnvelope(639);
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
        uint256 window = ANSWER_WINDOW;
        uint256 shownAt = inbox.equivocatedAt(posted + 1);
        if (shownAt != 0 && shownAt < inbox.headPostedAt()) shownAt = inbox.headPostedAt();
        bool undecided = shownAt != 0 && block.number > shownAt + window;
        uint256 from = firstWindow();
        if (block.number >= from && (block.number - from) / window % 2 == 1) {
            from += ((block.number - from) / window + 1) * window;
        } else if (block.number >= from && from <= uint256(inbox.lastCertifiedAt()) + POSTING_DEADLINE) {
            from = uint256(inbox.lastCertifiedAt()) + FORCED_DELAY + 1;
        }
        BatchHeader memory next = l1Header(last);
        bool useful = undecided || next.envelopeCount != 0 || last.envelopeCount != 0
            || block.number > inbox.headPostedAt() + POSTING_DEADLINE;
        bytes memory reason;
        if (!undecided && block.number < from) {
            reason = abi.encodeWithSelector(BlindedInbox.L1HeaderNotDue.selector, from);
        } else if (block.timestamp <= last.timestampMs / 1_000) {
            reason = abi.encodeWithSelector(BlindedInbox.SecondNotOver.selector, last.timestampMs / 1_000);
        } else if (!useful) {
            reason = abi.encodeWithSelector(BlindedInbox.NothingToInclude.selector);
        }
        bool allowed = reason.length == 0;
        if (!allowed) vm.expectRevert(reason);
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
        staked += amount;
    }

    function announce(uint256 amount) public {
        announced = uint128(bound(amount, 0, staked));
        announcedTime = block.timestamp;
        vm.prank(vm.addr(SEQUENCER_KEY));
        inbox.announceBondWithdrawal(announced);
    }

    /// @dev What is announced and has not lapsed.
    function openlyAnnounced() public view returns (uint256) {
        return block.timestamp < announcedTime + 21 days ? announced : 0;
    }

    function withdraw(uint256 waited) external {
        vm.warp(block.timestamp + bound(waited, 0, 14 days));
        tryToWithdraw();
    }

    function tryToWithdraw() private {
        uint256 amount = openlyAnnounced();
        uint256 unlocksAt = (announcedTime > postedTime ? announcedTime : postedTime) + 7 days;
        bytes memory reason;
        if (amount == 0) {
            reason = abi.encodeWithSelector(SequencerBond.NoWithdrawalAnnounced.selector);
        } else if (block.timestamp < unlocksAt) {
            reason = abi.encodeWithSelector(SequencerBond.WithdrawalLocked.selector, unlocksAt);
        } else if (openCases() != 0) {
            reason = abi.encodeWithSelector(SequencerBond.AccusationsOpen.selector, openCases());
        }
        if (reason.length != 0) vm.expectRevert(reason);
        vm.prank(vm.addr(SEQUENCER_KEY));
        inbox.withdrawBond(payable(address(0xcafe)));
        if (reason.length != 0) return;
        paidOut += amount;
        staked -= amount;
        announced = 0;
    }

    /// @dev Two headers of one of a few numbers, shown before or not. The sequencer, warned by the commitment, tries to
    /// save its bond before they are shown.
    function equivocate(uint8 reporter, uint256 which, uint256 attempt) external {
        BatchHeader memory first = run(1)[0];
        first.number = uint64(1 + which % 4);
        first.timestampMs = 0;
        first.l1OriginNumber = START_BLOCK;
        first.forcedCursor = 0;
        first.parentHash = 0;
        BatchHeader memory second = abi.decode(abi.encode(first), (BatchHeader));
        first.gas = uint64(which / 4 % 6);
        second.gas = uint64(first.gas + 1 + which / 24 % 5);
        first.envelopeRoot = 0;
        second.envelopeRoot = 0;
        first.feeLedgerRoot = 0;
        second.feeLedgerRoot = 0;
        (bytes32 firstHash, bytes32 secondHash) = (inbox.hashHeader(first), inbox.hashHeader(second));
        bool known = shown[firstHash] && shown[secondHash];
        uint256 seen = bond();
        bytes memory one = signHeader(SEQUENCER_KEY, first);
        bytes memory two = signHeader(SEQUENCER_KEY, second);
        commitTo(actor(reporter), conflictEvidence(first, second), SALT);
        if (attempt % 3 == 1) announce(type(uint256).max);
        if (attempt % 3 == 2) tryToWithdraw();
        if (known) {
            vm.expectRevert(abi.encodeWithSelector(FaultRecords.AlreadySlashed.selector, first.number));
        }
        vm.prank(actor(reporter));
        inbox.slashEquivocation(first, one, second, two, SALT);
        if (known) return;
        (shown[firstHash], shown[secondHash]) = (true, true);
        slashed(seen);
    }

    /// @dev The bond was slashed; somebody had seen it show `seen`.
    function slashed(uint256 seen) private {
        check(staked >= seen, "an offence costs all that the bond showed");
        burnt += staked - staked / 2;
        (staked, announced) = (0, 0);
        slashes++;
        checkEqual(bond(), 0, "an offender keeps nothing");
    }

    /// @dev Accuses about the last header's envelope, which is sealed, or about one that never was.
    function accuse(uint8 accuser, bool kept) external {
        if (posted == 0) return;
        kept = kept && last.envelopeRoot == EnvelopeTree.leaf(envelopeId(posted), bytes32(0), 0);
        bytes32 id = kept ? envelopeId(posted) : keccak256(abi.encode("omitted", cases.length));
        bytes memory signature = signPromise(SEQUENCER_KEY, id, bytes32(0), posted);
        commitTo(actor(accuser), omissionEvidence(id, bytes32(0), posted), SALT);
        bytes memory reason;
        (, FaultRecords.State state,) = inbox.accusations(promiseId(id, bytes32(0), posted));
        if (l1Headers != 0) {
            // There are never 4,096 headers here.
            reason = abi.encodeWithSelector(FaultRecords.Excused.selector, posted);
        } else if (state != FaultRecords.State.None) {
            reason = abi.encodeWithSelector(
                FaultRecords.AlreadyAccused.selector, promiseId(id, bytes32(0), posted)
            );
        }
        if (block.timestamp < postedTime + 7 days && slashes == slashesAtPosting) {
            check(staked >= bondAtPosting, "what the bond showed when the header was posted is there");
        }
        vm.deal(actor(accuser), STAKE);
        if (reason.length != 0) vm.expectRevert(reason);
        vm.prank(actor(accuser));
        inbox.accuseOmission{ value: STAKE }(id, bytes32(0), posted, signature, SALT);
        if (reason.length != 0) return;
        paidIn += STAKE;
        cases.push(
            Case({
                id: id,
                accuser: actor(accuser),
                accusedAt: block.number,
                open: true,
                kept: kept,
                bond: bond(),
                slashes: slashes,
                sealBy: posted,
                header: last,
                run: lastRun,
                proof: lastProof
            })
        );
    }

    function answer(uint256 which, uint8 answerer) external {
        if (cases.length == 0) return;
        Case storage it = cases[which % cases.length];
        bytes memory reason;
        if (!it.open) {
            reason = abi.encodeWithSelector(
                FaultRecords.NoOpenAccusation.selector, promiseId(it.id, bytes32(0), it.sealBy)
            );
        } else if (!it.kept) {
            reason = abi.encodeWithSelector(FaultRecords.NotInBatch.selector, it.header.number, 0);
        }
        if (reason.length != 0) vm.expectRevert(reason);
        vm.prank(actor(answerer));
        inbox.answerOmission(
            givenPromise(it.id, bytes32(0), it.sealBy), it.header, it.run, it.proof, 0, 0, new bytes32[](0)
        );
        if (reason.length == 0) it.open = false;
    }

    function settle(uint256 which) external {
        if (cases.length == 0) return;
        Case storage it = cases[which % cases.length];
        bytes memory reason;
        if (!it.open) {
            reason = abi.encodeWithSelector(
                FaultRecords.NoOpenAccusation.selector, promiseId(it.id, bytes32(0), it.sealBy)
            );
        } else if (block.number <= it.accusedAt + ANSWER_WINDOW) {
            reason = abi.encodeWithSelector(
                FaultRecords.AnswerWindowOpen.selector, it.accusedAt + ANSWER_WINDOW
            );
        }
        if (reason.length != 0) vm.expectRevert(reason);
        inbox.slashOmission(givenPromise(it.id, bytes32(0), it.sealBy));
        if (reason.length != 0) return;
        it.open = false;
        slashed(it.slashes == slashes ? it.bond : 0);
    }

    function claim(uint8 reporter) external {
        uint256 owed = inbox.rewards(actor(reporter));
        if (owed == 0) vm.expectRevert(abi.encodeWithSelector(SequencerBond.ZeroAmount.selector));
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
        uint256 held = handler.staked() + inbox.openAccusations() * STAKE;
        for (uint160 i = 0; i < 3; i++) {
            held += inbox.rewards(address(0x10000 + i));
        }
        checkEqual(address(inbox).balance, held, "held = bond + rewards + stakes");
        checkEqual(handler.paidIn(), held + handler.burnt() + handler.paidOut(), "in = held + out");
    }

    function invariantBondMovesOnlyByTheRules() public view {
        checkEqual(bond(), handler.staked() - handler.openlyAnnounced(), "bond");
        checkEqual(inbox.openAccusations(), handler.openCases(), "open accusations");
        checkEqual(inbox.lastCertifiedTime(), handler.postedTime(), "the delay runs from it");
    }

    function invariantHeadIsWhatWasPosted() public view {
        (uint64 number,, uint64 origin, uint64 cursor) = inbox.head();
        checkEqual(number, handler.posted(), "head");
        checkEqual(inbox.headHash(), handler.lastHash(), "hash");
        uint256 made = inbox.l1MadeCount();
        checkEqual(made, handler.l1Headers(), "made by L1");
        if (made != 0) {
            (uint64 last, uint64 madeAt) = inbox.l1Made(made - 1);
            check((last == number) == (inbox.headPostedAt() > inbox.lastCertifiedAt()), "who made the head");
            check(last == number || origin >= madeAt, "what is certified behind it knows of it");
        }
        check(cursor <= queue.length(), "no entry taken that is not there");
        if (number != 0) check(inbox.runCommitment(number) != bytes32(0), "the last run is committed to");
    }
}
