// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox } from "../src/BlindedInbox.sol";
import { FaultRecords } from "../src/FaultRecords.sol";
import { RunReference } from "../src/interfaces/IBlindedInbox.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { EnvelopeTree } from "../src/libraries/EnvelopeTree.sol";
import { Deployment } from "./helpers/Deployment.sol";

/// @dev A sequencer that signs one header for a number, unless L1 threw the first away by a header of its own, and
/// keeps every promise that L1 lets it keep, one that it gave again for the same envelope, too; members that withhold
/// their signatures as long as they like; others who post a part of what is certified behind its back, post again what
/// stands, give data for anything, and try all to take its bond. It may be late with posting.
contract HonestSequencerHandler is Deployment {
    address private constant ATTACKER = address(0xa77ac4);
    bytes32 private constant SALT = keccak256("salt");

    struct Promised {
        bytes32 id;
        uint64 sealBy;
        /// The number of the header that seals it.
        uint64 number;
        bool accused;
    }

    uint256 public bondPaid;
    uint256 public excuses;
    /// @dev How often which way was gone.
    uint256 public passedOver;
    uint256 public postedAgain;
    uint256 public dataGiven;
    uint256 public promisedAgain;
    uint256 public answered;
    /// @dev All headers ever signed, by number.
    mapping(uint64 number => BatchHeader[]) private signed;
    /// @dev What each posted number's header is in.
    mapping(uint64 number => BatchHeader[]) private runOf;
    mapping(uint64 number => RunReference) private referenceOf;
    Promised[] private promises;
    /// @dev Signed and not posted yet.
    BatchHeader[] private waiting;
    /// @dev Posted by others since the sequencer posted last: it does not look before it posts.
    BatchHeader[] private taken;
    /// @dev What was posted last, by whom ever.
    BatchHeader[] private newest;
    /// @dev L1 made the header in place of the first that waits.
    bool private thrownAway;
    BatchHeader private head;
    uint64 private highest;
    /// @dev What it signed up to this number came to nothing before anything was posted.
    uint64 private lostUpTo;
    mapping(uint64 number => BatchHeader) private postedHeader;

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
        pass(blocks % 4 == 0 ? POSTING_DEADLINE + 1 : bound(blocks, 1, 1_000));
    }

    function force() external {
        forceTransaction(100, 21_000);
    }

    /// @dev Seals one envelope after the last header that it knows, and promised that envelope before.
    function seal(uint64 room) public {
        (BatchHeader memory header, bool again) = nextHeader(room % 3 == 0);
        if (again) return remember(header);
        bytes32 id = keccak256(abi.encode(promises.length));
        header.envelopeRoot = EnvelopeTree.leaf(id, bytes32(0), 0);
        header.envelopeCount = 1;
        promises.push(Promised(id, header.number + room % 8, header.number, false));
        remember(header);
    }

    /// @dev Seals nothing, say to close a second.
    function sealEmpty() external {
        (BatchHeader memory header, bool again) = nextHeader(false);
        if (again) return remember(header);
        header.envelopeRoot = 0;
        header.envelopeCount = 0;
        remember(header);
    }

    function remember(BatchHeader memory header) private {
        signed[header.number].push(header);
        waiting.push(header);
        if (header.number > highest) highest = header.number;
    }

    /// @dev It acts on final L1 blocks only: until L1's header is final it may go on after what L1 threw away.
    /// `again` says that it seals again, in the same number, what it promised in a header that came to nothing.
    function nextHeader(bool hurries) private returns (BatchHeader memory header, bool again) {
        header = freshHeader(hurries);
        again = header.number <= lostUpTo && signed[header.number].length != 0;
        if (!again) return (header, false);
        BatchHeader storage lost = signed[header.number][0];
        (header.envelopeRoot, header.envelopeCount) = (lost.envelopeRoot, lost.envelopeCount);
    }

    function freshHeader(bool hurries) private returns (BatchHeader memory header) {
        if (inbox.headPostedAt() > inbox.lastCertifiedAt()) {
            uint256 isFinalAt = inbox.headPostedAt() + FINALITY;
            if (block.number < isFinalAt && (!hurries || waiting.length == 0)) pass(FINALITY);
            if (block.number >= isFinalAt && thrownAway) {
                delete waiting;
                thrownAway = false;
            }
        }
        // L1 makes no first header, so it signs anew when nothing of what it signed can be posted any more.
        bool isFirst = waiting.length != 0 && waiting[0].number == 1;
        if (isFirst && waiting[0].l1OriginNumber + POSTING_DEADLINE < block.number) {
            uint256 from = waiting[waiting.length - 1].l1OriginNumber + POSTING_DEADLINE + FINALITY + 1;
            if (block.number < from) pass(from - block.number);
            delete waiting;
            lostUpTo = highest;
        }
        if (waiting.length == 0) return run(1)[0];
        header = waiting[waiting.length - 1];
        header.parentHash = inbox.hashHeader(header);
        header.number += 1;
        header.timestampMs += 250;
        if (header.l1OriginNumber + FINALITY < block.number) {
            header.l1OriginNumber = uint64(block.number) - FINALITY;
        }
        header.forcedCursor = dueCursor(header.forcedCursor, header.l1OriginNumber);
    }

    function postWaiting() public {
        postFirst(waiting.length, POSTER);
    }

    /// @dev Somebody posts only the first ones of what is certified.
    function postSome(uint256 count) external {
        if (waiting.length != 0) postFirst(bound(count, 1, waiting.length), ATTACKER);
    }

    /// @dev The sequencer posts what waits together with what others posted of it meanwhile: that is passed over.
    function postFirst(uint256 count, address poster) private {
        if (waiting.length == 0 || thrownAway) return;
        BatchHeader[] memory headers = new BatchHeader[](count);
        BatchHeader[] memory left = new BatchHeader[](waiting.length - count);
        for (uint256 i = 0; i < waiting.length; i++) {
            if (i < count) headers[i] = waiting[i];
            else left[i - count] = waiting[i];
        }
        if (headers[0].l1OriginNumber + POSTING_DEADLINE < block.number) return; // too late: L1 will go on
        bool ours = poster == POSTER;
        BatchHeader[] memory sent = ours ? afterTaken(headers) : headers;
        BlindedInbox.Certificate memory shown = certificate(headers[count - 1], 0x3);
        vm.prank(poster, poster);
        inbox.post(sent, "", shown);
        (uint64 number,,,) = inbox.head();
        checkEqual(number, headers[count - 1].number, "nobody who was first keeps it from being posted");
        for (uint256 i = 0; i < count; i++) {
            number = headers[i].number;
            referenceOf[number] = runReference(headers);
            postedHeader[number] = headers[i];
            for (uint256 j = 0; j < count; j++) {
                runOf[number].push(headers[j]);
            }
        }
        head = headers[count - 1];
        delete waiting;
        for (uint256 i = 0; i < left.length; i++) {
            waiting.push(left[i]);
        }
        if (ours && taken.length != 0) passedOver++;
        if (ours) delete taken;
        delete newest;
        for (uint256 i = 0; i < count; i++) {
            newest.push(headers[i]);
            if (!ours) taken.push(headers[i]);
        }
    }

    function afterTaken(BatchHeader[] memory headers) private view returns (BatchHeader[] memory all) {
        all = new BatchHeader[](taken.length + headers.length);
        for (uint256 i = 0; i < all.length; i++) {
            all[i] = i < taken.length ? taken[i] : headers[i - taken.length];
        }
    }

    /// @dev Somebody posts again what was posted last, or the first ones of it: nothing changes.
    function postAgain(uint256 count) external {
        if (newest.length == 0) return;
        BatchHeader[] memory headers = new BatchHeader[](bound(count, 1, newest.length));
        for (uint256 i = 0; i < headers.length; i++) {
            headers[i] = newest[i];
        }
        bytes32 before = standing();
        BlindedInbox.Certificate memory shown = certificate(headers[headers.length - 1], 0x3);
        vm.prank(ATTACKER, ATTACKER);
        inbox.post(headers, "", shown);
        checkEqual(standing(), before, "posting again changes nothing");
        postedAgain++;
    }

    /// @dev Somebody gives data, of whatever kind, for whatever number.
    function giveData(uint64 first, bytes calldata data) external {
        first = uint64(bound(first, 0, uint256(head.number) + 2));
        bytes32 before = standing();
        bool posted = first != 0 && first <= head.number;
        if (!posted) vm.expectRevert(abi.encodeWithSelector(BlindedInbox.NotPosted.selector, first));
        vm.prank(ATTACKER, ATTACKER);
        inbox.postData(first, data);
        checkEqual(standing(), before, "data changes nothing");
        if (posted) dataGiven++;
    }

    /// @dev All that deadlines and reports go by.
    function standing() private view returns (bytes32) {
        return keccak256(
            abi.encode(
                inbox.headHash(),
                inbox.headPostedAt(),
                inbox.lastCertifiedAt(),
                inbox.lastCertifiedTime(),
                inbox.runCommitment(head.number),
                bond()
            )
        );
    }

    /// @dev It gives a second promise for an envelope, up to another number.
    function promiseAgain(uint256 which, uint64 room) external {
        if (promises.length == 0) return;
        Promised memory it = promises[which % promises.length];
        it.sealBy = it.number + room % 8;
        it.accused = false;
        for (uint256 i = 0; i < promises.length; i++) {
            if (promises[i].id == it.id && promises[i].sealBy == it.sealBy) return;
        }
        promises.push(it);
        promisedAgain++;
    }

    /// @dev After any silence somebody, who has no key at all, makes L1 go on, and a committee that is back goes on
    /// from there: the sequencer's next header can be posted and is no fault of its.
    function moveOn() external {
        if (head.number != 0) {
            uint256 from = inbox.headPostedAt() + uint256(POSTING_DEADLINE) + 1;
            if (block.number < from) pass(from - block.number);
            from = firstWindow();
            uint256 windows = (block.number - from) / ANSWER_WINDOW;
            if (windows % 2 == 1) pass(from + (windows + 1) * ANSWER_WINDOW - block.number);
            uint64 before = head.number;
            makeL1Header();
            checkEqual(head.number, before + 1, "L1 went on");
        }
        pass(head.number == 0 ? POSTING_DEADLINE + 2 * FINALITY : FINALITY);
        seal(1);
        checkEqual(waiting.length, 1, "from there");
        uint64 number = waiting[0].number;
        for (uint256 i = 0; i + 1 < signed[number].length; i++) {
            accuseOfEquivocation(number, i, signed[number].length - 1);
        }
        postWaiting();
        checkEqual(head.number, number, "the committee went on");
    }

    /// @dev L1 throws away what waits.
    function makeL1Header() public {
        if (head.number == 0) return;
        BatchHeader memory next = l1Header(head);
        try inbox.postL1Header(head) returns (bytes32 hash) {
            checkEqual(inbox.hashHeader(next), hash, "head");
            head = next;
            thrownAway = waiting.length != 0;
            delete taken;
            delete newest;
        } catch (bytes memory reason) {
            bytes4 name = bytes4(reason);
            bool known = name == BlindedInbox.L1HeaderNotDue.selector
                || name == BlindedInbox.NothingToInclude.selector
                || name == BlindedInbox.SecondNotOver.selector;
            check(known, "a header refused for no reason");
        }
    }

    /// @dev Somebody shows any two headers that it ever signed for a number.
    function accuseOfEquivocation(uint64 number, uint256 one, uint256 two) public {
        if (highest == 0) return;
        number = uint64(bound(number, 1, highest));
        for (; signed[number].length < 2; number++) {
            if (number == highest) return;
        }
        BatchHeader memory first = signed[number][one % signed[number].length];
        BatchHeader memory second = signed[number][two % signed[number].length];
        if (inbox.hashHeader(first) == inbox.hashHeader(second)) return;
        commitTo(ATTACKER, conflictEvidence(first, second), SALT);
        bytes memory firstSignature = signHeader(SEQUENCER_KEY, first);
        bytes memory secondSignature = signHeader(SEQUENCER_KEY, second);
        vm.prank(ATTACKER);
        vm.expectRevert(abi.encodeWithSelector(FaultRecords.Excused.selector, number));
        inbox.slashEquivocation(first, firstSignature, second, secondSignature, SALT);
        excuses++;
    }

    /// @dev Somebody accuses it about any promise that is due; it answers, unless it is excused.
    function accuseOfOmission(uint256 which) external {
        if (promises.length == 0) return;
        Promised storage it = promises[which % promises.length];
        if (head.number < it.sealBy || it.accused) return;
        bytes memory signature = signPromise(SEQUENCER_KEY, it.id, bytes32(0), it.sealBy);
        commitTo(ATTACKER, omissionEvidence(it.id, bytes32(0), it.sealBy), SALT);
        vm.deal(ATTACKER, STAKE);
        vm.prank(ATTACKER);
        try inbox.accuseOmission{ value: STAKE }(it.id, bytes32(0), it.sealBy, signature, SALT) {
            it.accused = true;
            answer(it);
        } catch (bytes memory reason) {
            checkEqual(
                reason, abi.encodeWithSelector(FaultRecords.Excused.selector, it.sealBy), "only an excuse"
            );
            excuses++;
        }
    }

    function answer(Promised storage it) private {
        BatchHeader[] memory headers = runOf[it.number];
        (, bytes32[] memory proof) = proveHeader(headers, it.number - headers[0].number);
        BatchHeader memory header = postedHeader[it.number];
        pass(100);
        vm.prank(vm.addr(SEQUENCER_KEY));
        FaultRecords.GivenPromise memory promised = givenPromise(it.id, bytes32(0), it.sealBy);
        inbox.answerOmission(promised, header, referenceOf[it.number], proof, 0, 0, new bytes32[](0));
        answered++;
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

    /// @dev What the runs are about does come about: headers and promises that L1 excuses.
    function testExcusesAreNeeded() public {
        handler.seal(0);
        handler.postWaiting();
        handler.seal(1); // number 2, which L1 makes
        handler.seal(1); // 3
        handler.advance(0);
        handler.makeL1Header();
        handler.seal(3); // 4, before L1's header is final
        handler.seal(1); // 3 again
        handler.seal(1); // 4 again
        handler.accuseOfEquivocation(2, 0, 1); // number 3
        checkEqual(handler.excuses(), 1, "equivocation");
        handler.accuseOfEquivocation(3, 0, 1); // number 4
        checkEqual(handler.excuses(), 2, "before L1's header was final");
        handler.postWaiting();
        handler.accuseOfOmission(1); // of number 2, promised up to 3
        checkEqual(handler.excuses(), 3, "omission");
        invariantAnHonestSequencerKeepsItsBond();
    }

    /// @dev What strangers post, and two promises for one envelope, come about, too.
    function testStrangersPostAndPromisesAreGivenTwice() public {
        handler.seal(0);
        handler.seal(1);
        handler.seal(2);
        handler.postSome(1); // two of three
        handler.postAgain(1);
        handler.giveData(2, "junk");
        handler.giveData(3, "of a number that is not posted");
        handler.postWaiting();
        checkEqual(handler.passedOver(), 1, "the sequencer's posting passes over the stranger's");
        handler.postAgain(0);
        checkEqual(handler.postedAgain(), 2, "posted again");
        checkEqual(handler.dataGiven(), 1, "data");
        handler.promiseAgain(0, 1); // number 1 up to 2, and up to 1
        checkEqual(handler.promisedAgain(), 1, "promised again");
        handler.accuseOfOmission(0);
        handler.accuseOfOmission(3);
        checkEqual(handler.answered(), 2, "one header answers for both");
        invariantAnHonestSequencerKeepsItsBond();
    }

    /// @dev The committee was away for longer than a header can be posted, and nothing was forced: L1 makes an empty
    /// header, after which the sequencer signs anew without fault.
    function testStaleHeaderAfterAnOutageIsNoWedge() public {
        handler.sealEmpty();
        handler.postWaiting();
        handler.seal(1); // number 2, which the committee never certifies
        handler.advance(0);
        handler.moveOn();
        // And the same again, from a head that L1 made.
        handler.advance(0);
        handler.makeL1Header();
        handler.seal(1);
        handler.advance(0);
        handler.moveOn();
        invariantAnHonestSequencerKeepsItsBond();
    }

    /// @dev The same before anything was posted.
    function testStaleFirstHeaderIsNoWedge() public {
        handler.seal(1);
        handler.advance(0);
        handler.moveOn();
        checkEqual(handler.excuses(), 1, "number 1 was signed twice");
        invariantAnHonestSequencerKeepsItsBond();
    }

    /// @dev Nothing that anybody did leaves a state without a way on.
    function invariantSomebodyCanMoveOn() public {
        handler.moveOn();
        invariantAnHonestSequencerKeepsItsBond();
    }

    function invariantAnHonestSequencerKeepsItsBond() public view {
        checkEqual(bond(), handler.bondPaid(), "bond");
        checkEqual(inbox.openAccusations(), 0, "every accusation is answered");
    }
}
