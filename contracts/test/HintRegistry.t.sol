// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { HintEvidence } from "../src/HintEvidence.sol";
import { HintRegistry } from "../src/HintRegistry.sol";
import { PlaintextReader } from "../src/PlaintextReader.sol";
import { RunReference } from "../src/interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "../src/interfaces/ICommitteeRegistry.sol";
import { IHintVerifier } from "../src/interfaces/IHintVerifier.sol";
import { HintData } from "../src/libraries/HintData.sol";
import { HintFixture } from "./helpers/HintFixture.sol";
import { MockCommitteeRegistry } from "./helpers/HintMocks.sol";

/// @dev Posts from inside a contract.
contract Middleman {
    function post(HintRegistry hints, RunReference calldata run, bytes calldata data) external {
        hints.postHints(run, data);
    }
}

/// @dev Takes ether from the registry and asks for more while it gets it.
contract Greedy {
    HintRegistry private hints;
    bool public asked;

    constructor(HintRegistry hints_) payable {
        hints = hints_;
        hints_.depositBond{ value: msg.value }();
    }

    function withdraw(uint128 amount) external {
        hints.withdrawBond(amount);
    }

    receive() external payable {
        if (asked) return;
        asked = true;
        hints.withdrawBond(uint128(msg.value));
        (bool more,) = address(hints).call(abi.encodeCall(HintRegistry.withdrawBond, (2 ether)));
        require(!more, "more than its own");
    }
}

contract HintRegistryTest is HintFixture {
    address internal constant SECOND = address(0x9b16);

    event BondDeposited(address indexed publisher, uint256 amount, uint256 total);
    event BondWithdrawn(address indexed publisher, uint256 amount, uint256 total);
    event HintsPosted(
        uint64 indexed id, uint64 indexed runLast, address indexed publisher, uint64 first, bytes32 root
    );
    event HintsFinalized(uint64 indexed id, uint64 indexed runLast, uint64 first, bytes32 root);
    event HintsReleased(uint64 indexed id, uint64 indexed runLast);
    event Voided(uint64 indexed first, uint64 indexed last);

    function setUp() public {
        vm.roll(1_000_000);
        deployHints();
        fund(PUBLISHER, 10 * BOND);
        fund(SECOND, 10 * BOND);
    }

    // Deployment

    function testConstructor() public {
        checkEqual(address(hints.inbox()), address(inbox), "inbox");
        checkEqual(address(hints.registry()), address(committees), "registry");
        checkEqual(address(hints.verifier()), address(verifier), "verifier");
        checkEqual(hints.publisherBond(), BOND, "bond");
        checkEqual(hints.challengeStake(), STAKE, "stake");
        checkEqual(hints.challengeWindow(), CHALLENGE_WINDOW, "window");
        checkEqual(hints.hintDeadline(), HINT_DEADLINE, "deadline");
        ICommitteeRegistry foreign = new MockCommitteeRegistry(address(1));
        vm.expectRevert(abi.encodeWithSelector(PlaintextReader.ForeignRegistry.selector, address(1)));
        new HintRegistry(inbox, foreign, verifier, BOND, STAKE);
        vm.expectRevert(abi.encodeWithSelector(PlaintextReader.NotAContract.selector, address(2)));
        new HintRegistry(inbox, committees, IHintVerifier(address(2)), BOND, STAKE);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.ZeroBondOrStake.selector));
        new HintRegistry(inbox, committees, verifier, 1, STAKE);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.ZeroBondOrStake.selector));
        new HintRegistry(inbox, committees, verifier, BOND, 0);
        checkEqual(new HintRegistry(inbox, committees, verifier, 2, 1).publisherBond(), 2, "the least bond");
    }

    function testFitsTheCodeSizeLimit() public view {
        check(address(hints).code.length <= 24_576, "EIP-170");
    }

    // Bonds

    function testBondComesAndGoes() public {
        checkBond(PUBLISHER, 10 * BOND, 0);
        vm.expectEmit(true, true, true, true, address(hints));
        emit BondDeposited(PUBLISHER, 2 * BOND, 12 * BOND);
        fund(PUBLISHER, 2 * BOND);
        vm.expectEmit(true, true, true, true, address(hints));
        emit BondWithdrawn(PUBLISHER, 3 * BOND, 9 * BOND);
        vm.prank(PUBLISHER);
        hints.withdrawBond(3 * BOND);
        checkBond(PUBLISHER, 9 * BOND, 0);
        vm.prank(PUBLISHER);
        hints.withdrawBond(9 * BOND);
        checkBond(PUBLISHER, 0, 0);
        checkEqual(PUBLISHER.balance, 12 * BOND, "ether");
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.BondTooLow.selector, 0, 1));
        vm.prank(PUBLISHER);
        hints.withdrawBond(1);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.ZeroAmount.selector));
        vm.prank(PUBLISHER);
        hints.withdrawBond(0);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.ZeroAmount.selector));
        hints.depositBond();
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.ZeroAmount.selector));
        hints.claimReward();
    }

    /// @dev However many are open, one bond answers for all.
    function testBondOfOpenPostingsStays() public {
        Built memory b = buildRun(1, 2, 3);
        post(PUBLISHER, b.run, encode(rightEntries(b)));
        checkBond(PUBLISHER, 10 * BOND, BOND);
        b = buildRun(3, 2, 3);
        post(PUBLISHER, b.run, encode(rightEntries(b)));
        checkBond(PUBLISHER, 10 * BOND, BOND);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.BondTooLow.selector, 9 * BOND, 9 * BOND + 1));
        vm.prank(PUBLISHER);
        hints.withdrawBond(9 * BOND + 1);
        vm.prank(PUBLISHER);
        hints.withdrawBond(9 * BOND);
        checkBond(PUBLISHER, BOND, BOND);
        b = buildRun(5, 2, 3);
        post(PUBLISHER, b.run, encode(rightEntries(b)));
        (, uint32 open,,) = hints.publishers(PUBLISHER);
        checkEqual(open, 3, "open");
        vm.roll(block.number + CHALLENGE_WINDOW);
        for (uint64 id = 1; id <= 3; id++) {
            checkBond(PUBLISHER, BOND, BOND);
            hints.finalize(id);
        }
        vm.prank(PUBLISHER);
        hints.withdrawBond(BOND);
        checkBond(PUBLISHER, 0, 0);
    }

    function testReentrancyGetsNoMoreThanItsOwn() public {
        vm.deal(address(this), 3 ether);
        Greedy greedy = new Greedy{ value: 3 ether }(hints);
        uint256 held = address(hints).balance;
        greedy.withdraw(1 ether);
        check(greedy.asked(), "asked");
        checkBond(address(greedy), 1 ether, 0);
        checkEqual(address(hints).balance, held - 2 ether, "two of its three");
    }

    // Posting

    function testPostHints() public {
        Built memory b = buildRun(7, 2, 5);
        BatchHints[] memory entries = rightEntries(b);
        bytes32 root = rootOf(7, entries);
        vm.expectEmit(true, true, true, true, address(hints));
        emit HintsPosted(1, 8, PUBLISHER, 7, root);
        checkEqual(post(PUBLISHER, b.run, encode(entries)), 1, "id");
        (address publisher, uint64 runLast, uint32 postedAt, bytes32 stored) = hints.postings(1);
        checkEqual(publisher, PUBLISHER, "publisher");
        checkEqual(runLast, 8, "run");
        checkEqual(postedAt, block.number, "block");
        checkEqual(stored, root, "root");
        (uint64 first, uint64 finalId, uint32 open, bool isVoid,) = hints.runs(8);
        checkEqual(first, 7, "first");
        checkEqual(finalId, 0, "final");
        checkEqual(open, 1, "open");
        check(!isVoid && hints.isOpen(1) && !hints.isOpen(2), "open");
    }

    function testPostingRefusals() public {
        Built memory b = buildRun(1, 2, 3);
        bytes memory data = encode(rightEntries(b));
        Middleman middleman = new Middleman();
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotTopLevel.selector));
        middleman.post(hints, b.run, data);
        vm.etch(PUBLISHER, abi.encodePacked(hex"ef0100", address(middleman)));
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotTopLevel.selector));
        post(PUBLISHER, b.run, data);
        vm.etch(PUBLISHER, "");

        RunReference memory other = b.run;
        other.postedAt++;
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.RunNotPosted.selector, 2));
        post(PUBLISHER, other, data);
        other.postedAt--;
        vm.expectRevert(abi.encodeWithSelector(HintData.BadHintData.selector, data.length));
        post(PUBLISHER, b.run, bytes.concat(data, hex"00"));
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.BondTooLow.selector, 0, BOND));
        post(address(0xbad), b.run, data);

        post(PUBLISHER, b.run, data);
        bytes32 root = rootOf(1, rightEntries(b));
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.SameHintsOpen.selector, 2, root));
        post(SECOND, b.run, data);
        checkBond(SECOND, 10 * BOND, 0);
    }

    // Finalising

    function testFinalize() public {
        Built memory b = buildRun(7, 2, 5);
        uint64 id = post(PUBLISHER, b.run, encode(rightEntries(b)));
        bytes32 root = rootOf(7, rightEntries(b));
        vm.roll(block.number + CHALLENGE_WINDOW - 1);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.TooEarly.selector, block.number + 1));
        hints.finalize(id);
        vm.roll(block.number + 1);
        vm.expectEmit(true, true, true, true, address(hints));
        emit HintsFinalized(id, 8, 7, root);
        hints.finalize(id);
        checkEqual(hints.finalPosting(8), id, "final");
        checkEqual(hints.finalRoot(8), root, "root");
        checkBond(PUBLISHER, 10 * BOND, 0);
        check(!hints.isOpen(id), "open");

        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotOpen.selector, id));
        hints.finalize(id);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotOpen.selector, id));
        hints.release(id);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotOpen.selector, 2));
        hints.finalize(2);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotOpen.selector, 0));
        hints.finalize(0);
        bytes memory data = encode(rightEntries(b));
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.RunIsFinal.selector, 8, id));
        post(SECOND, b.run, data);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.RunIsFinal.selector, 8, id));
        hints.voidUnreleased(b.run);
    }

    /// @dev Whoever was second, right or wrong, need not answer for it any more when its own window is over.
    function testSecondPostingIsReleased() public {
        Built memory b = buildRun(1, 1, 3);
        BatchHints[] memory entries = rightEntries(b);
        uint64 one = post(PUBLISHER, b.run, encode(entries));
        vm.roll(block.number + 10);
        setEntry(entries, 0, 0, 1, bytes16("another"));
        uint64 two = post(SECOND, b.run, encode(entries));
        (,, uint32 open,,) = hints.runs(1);
        checkEqual(open, 2, "open");
        vm.roll(block.number + CHALLENGE_WINDOW - 10);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.TooEarly.selector, block.number + 10));
        hints.release(two);
        vm.roll(block.number + 11);
        vm.expectRevert(abi.encodeWithSelector(HintEvidence.RunNotFinal.selector, 1));
        hints.release(two);
        hints.finalize(one);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.RunIsFinal.selector, 1, one));
        hints.finalize(two);
        vm.expectEmit(true, true, true, true, address(hints));
        emit HintsReleased(two, 1);
        hints.release(two);
        checkBond(SECOND, 10 * BOND, 0);
        check(!hints.isOpen(two), "released");
        (, uint64 finalId, uint32 stillOpen,,) = hints.runs(1);
        checkEqual(finalId, one, "final");
        checkEqual(stillOpen, 0, "open");
    }

    // Void

    function testVoidUnreleased() public {
        Built memory b = buildRun(7, 2, 5);
        vm.roll(block.number + HINT_DEADLINE - 1);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.TooEarly.selector, block.number + 1));
        hints.voidUnreleased(b.run);
        vm.roll(block.number + 1);
        RunReference memory other = b.run;
        other.first--;
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.RunNotPosted.selector, 8));
        hints.voidUnreleased(other);
        other.first++;
        vm.expectEmit(true, true, true, true, address(hints));
        emit Voided(7, 8);
        hints.voidUnreleased(b.run);
        (,,, bool isVoid,) = hints.runs(8);
        check(isVoid, "void");
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.RunIsVoid.selector, 8));
        hints.voidUnreleased(b.run);
        bytes memory data = encode(rightEntries(b));
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.RunIsVoid.selector, 8));
        post(PUBLISHER, b.run, data);
    }

    function testOpenPostingKeepsARunFromBeingVoid() public {
        Built memory b = buildRun(7, 2, 5);
        post(PUBLISHER, b.run, encode(rightEntries(b)));
        vm.roll(block.number + HINT_DEADLINE);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.PostingsOpen.selector, 8, 1));
        hints.voidUnreleased(b.run);
        // Late hints are still hints.
        Built memory late = buildRun(9, 1, 5);
        vm.roll(block.number + 2 * HINT_DEADLINE);
        post(PUBLISHER, late.run, encode(rightEntries(late)));
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.PostingsOpen.selector, 9, 1));
        hints.voidUnreleased(late.run);
    }
}
