// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox } from "../src/BlindedInbox.sol";
import { SequencerFaults } from "../src/SequencerFaults.sol";
import { RunReference } from "../src/interfaces/IBlindedInbox.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { EnvelopeTree } from "../src/libraries/EnvelopeTree.sol";
import { Deployment } from "./helpers/Deployment.sol";

/// @dev A sequencer that signs one header for a number, unless L1 threw the first away by a header of its own, and
/// keeps every promise that L1 lets it keep; and others who try all to take its bond. It may be late with posting.
contract HonestSequencerHandler is Deployment {
    address private constant ATTACKER = address(0xa77ac4);
    bytes32 private constant SALT = keccak256("salt");

    struct Promised {
        bytes32 id;
        uint64 sealBy;
        /// The number of the header that seals it.
        uint64 number;
        uint256 signedIndex;
        bool accused;
    }

    uint256 public bondPaid;
    uint256 public excuses;
    /// @dev All headers ever signed, by number.
    mapping(uint64 number => BatchHeader[]) private signed;
    /// @dev What each posted number's header is in.
    mapping(uint64 number => BatchHeader[]) private runOf;
    mapping(uint64 number => RunReference) private referenceOf;
    Promised[] private promises;
    /// @dev Signed and not posted yet.
    BatchHeader[] private waiting;
    BatchHeader private head;
    uint64 private highest;

    constructor() {
        vm.warp(1_800_000_000);
        deployContracts();
        registerEpoch(type(uint64).max - 1, 3, 2);
        bondPaid = 10 ether;
        depositBond(10 ether);
    }

    function theInbox() external view returns (BlindedInbox) {
        return inbox;
    }

    function advance(uint256 blocks) external {
        pass(blocks % 8 == 0 ? POSTING_DEADLINE + 1 : bound(blocks, 1, 1_000));
    }

    function force() external {
        forceTransaction(100, 21_000);
    }

    /// @dev Seals one envelope after the last header that it knows, and promised that envelope before.
    function seal(uint64 room) external {
        if (inbox.headPostedAt() > inbox.lastCertifiedAt()) {
            // It acts on final L1 blocks only, so it learns of L1's header when that is final.
            if (block.number < inbox.headPostedAt() + FINALITY) pass(FINALITY);
        }
        BatchHeader[] memory made = run(waiting.length + 1);
        BatchHeader memory header = made[waiting.length];
        if (waiting.length != 0) {
            BatchHeader memory parent = waiting[waiting.length - 1];
            header.parentHash = inbox.hashHeader(parent);
            if (header.timestampMs <= parent.timestampMs) header.timestampMs = parent.timestampMs + 250;
            if (header.l1OriginNumber < parent.l1OriginNumber) header.l1OriginNumber = parent.l1OriginNumber;
            header.forcedCursor = dueCursor(parent.forcedCursor, header.l1OriginNumber);
        }
        bytes32 id = keccak256(abi.encode(promises.length));
        header.envelopeRoot = EnvelopeTree.leaf(id, bytes32(0), 0);
        header.envelopeCount = 1;
        promises.push(
            Promised(id, header.number + room % 8, header.number, signed[header.number].length, false)
        );
        signed[header.number].push(header);
        waiting.push(header);
        if (header.number > highest) highest = header.number;
    }

    function postWaiting() external {
        if (waiting.length == 0) return;
        BatchHeader[] memory headers = waiting;
        if (headers[0].l1OriginNumber + POSTING_DEADLINE < block.number) return; // too late: L1 will go on
        uint256 count = headers.length;
        post(headers, certificate(headers[count - 1], 0x3));
        for (uint256 i = 0; i < count; i++) {
            uint64 number = headers[i].number;
            referenceOf[number] = runReference(headers);
            for (uint256 j = 0; j < count; j++) {
                runOf[number].push(headers[j]);
            }
        }
        head = headers[count - 1];
        delete waiting;
    }

    /// @dev L1 throws away what waits.
    function makeL1Header() external {
        if (head.number == 0) return;
        BatchHeader memory next = l1Header(head);
        try inbox.postL1Header(head) returns (bytes32 hash) {
            checkEqual(inbox.hashHeader(next), hash, "head");
            head = next;
            delete waiting;
        } catch { }
    }

    /// @dev Somebody shows any two headers that it ever signed for a number.
    function accuseOfEquivocation(uint64 number, uint256 one, uint256 two) external {
        if (highest == 0) return;
        number = uint64(bound(number, 1, highest));
        if (signed[number].length < 2) return;
        BatchHeader memory first = signed[number][one % signed[number].length];
        BatchHeader memory second = signed[number][two % signed[number].length];
        if (inbox.hashHeader(first) == inbox.hashHeader(second)) return;
        commitTo(ATTACKER, conflictEvidence(first, second), SALT);
        bytes memory firstSignature = signHeader(SEQUENCER_KEY, first);
        bytes memory secondSignature = signHeader(SEQUENCER_KEY, second);
        vm.prank(ATTACKER);
        vm.expectRevert(abi.encodeWithSelector(SequencerFaults.Excused.selector, number));
        inbox.slashEquivocation(first, firstSignature, second, secondSignature, SALT);
        excuses++;
    }

    /// @dev Somebody accuses it about any promise that is due; it answers, unless it is excused.
    function accuseOfOmission(uint256 which) external {
        if (promises.length == 0) return;
        Promised storage it = promises[which % promises.length];
        if (head.number < it.sealBy || it.accused) return;
        bytes memory signature = signPromise(SEQUENCER_KEY, it.id, it.sealBy);
        commitTo(ATTACKER, omissionEvidence(it.id, it.sealBy), SALT);
        vm.deal(ATTACKER, STAKE);
        vm.prank(ATTACKER);
        try inbox.accuseOmission{ value: STAKE }(it.id, it.sealBy, signature, SALT) {
            it.accused = true;
            answer(it);
        } catch (bytes memory reason) {
            checkEqual(
                reason, abi.encodeWithSelector(SequencerFaults.Excused.selector, it.sealBy), "only an excuse"
            );
            excuses++;
        }
    }

    function answer(Promised storage it) private {
        BatchHeader[] memory headers = runOf[it.number];
        (, bytes32[] memory proof) = proveHeader(headers, it.number - headers[0].number);
        BatchHeader memory header = signed[it.number][it.signedIndex];
        pass(100);
        vm.prank(vm.addr(SEQUENCER_KEY));
        inbox.answerOmission(it.id, header, referenceOf[it.number], proof, 0, bytes32(0), 0, new bytes32[](0));
    }
}

contract HonestSequencerInvariantsTest is Deployment {
    HonestSequencerHandler internal handler;

    function setUp() public {
        handler = new HonestSequencerHandler();
        inbox = handler.theInbox();
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function invariantAnHonestSequencerKeepsItsBond() public view {
        checkEqual(inbox.bond(), handler.bondPaid(), "bond");
        checkEqual(inbox.openAccusations(), 0, "every accusation is answered");
    }
}
