// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { Challenge } from "../src/HintEvidence.sol";
import { HintRegistry } from "../src/HintRegistry.sol";
import { HintFixture } from "./helpers/HintFixture.sol";

/// @dev One bond answers for all postings of a publisher: what a slashing does to the others.
contract HintSlashingTest is HintFixture {
    address internal constant HONEST = address(0x9b16);
    address internal constant SECOND = address(0xc4a2);

    event HintsDropped(uint64 indexed id, uint64 indexed runLast);

    uint256 internal deployedAt;

    address internal constant SECOND_PUBLISHER = address(0x5ec0);

    function setUp() public {
        vm.roll(1_000_000);
        deployedAt = block.number;
        deployHints();
        fund(PUBLISHER, BOND);
        fund(HONEST, BOND);
    }

    function sortOf(uint256, uint256 index) internal pure override returns (uint256) {
        return index == 0 ? 0 : index == 1 ? 4 : 7;
    }

    /// @dev The one batch of this number, posted at the start.
    function one(uint64 number) internal returns (Built memory b) {
        b = buildRun(number, 1, 3);
        b.run.postedAt = uint64(deployedAt);
        inbox.tell(b.run);
    }

    function right(uint64 number) internal returns (bytes memory) {
        return encode(rightEntries(one(number)));
    }

    function wrong(uint64 number) internal returns (BatchHints[] memory entries) {
        entries = rightEntries(one(number));
        setEntry(entries, 0, 0, 1, bytes16("another"));
    }

    function postRight(address publisher, uint64 number) internal returns (uint64) {
        return post(publisher, one(number).run, right(number));
    }

    function postWrong(address publisher, uint64 number) internal returns (uint64) {
        return post(publisher, one(number).run, encode(wrong(number)));
    }

    /// @dev Has a wrong posting of this batch slashed.
    function slash(address challenger, uint64 id, uint64 number) internal {
        Challenge memory c = challengeOf(one(number), wrong(number), 0, 0);
        commitTo(challenger, id, c);
        challenge(challenger, id, c);
    }

    function runOf(uint64 number) internal view returns (uint32 open, uint32 slashedAt) {
        (,, open,, slashedAt) = hints.runs(number);
    }

    function invalidated(uint64 id) internal {
        check(!hints.isOpen(id), "open");
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.PublisherSlashed.selector, id));
        hints.finalize(id);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.PublisherSlashed.selector, id));
        hints.release(id);
    }

    function testSlashingInvalidatesAllOpenPostings() public {
        uint64 a = postRight(PUBLISHER, 1);
        uint64 b = postWrong(PUBLISHER, 2);
        uint64 c = postRight(PUBLISHER, 3);
        uint64 others = postRight(HONEST, 2);
        slash(CHALLENGER, b, 2);
        checkBond(PUBLISHER, 0, 0);
        checkBond(HONEST, BOND, BOND);
        (uint128 bond, uint32 open, uint64 below, uint32 slashedAt) = hints.publishers(PUBLISHER);
        checkEqual(bond + open, 0, "nothing is left");
        checkEqual(below, others + 1, "all ids before");
        checkEqual(slashedAt, block.number, "now");
        vm.roll(block.number + CHALLENGE_WINDOW);
        invalidated(a);
        invalidated(c);
        hints.finalize(others);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotOpen.selector, b));
        hints.drop(b);
    }

    /// @dev By anybody, once, and nothing else.
    function testInvalidatedPostingsAreDropped() public {
        uint64 a = postRight(PUBLISHER, 1);
        uint64 b = postWrong(PUBLISHER, 2);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotInvalidated.selector, a));
        hints.drop(a);
        slash(CHALLENGER, b, 2);
        (uint32 open,) = runOf(1);
        checkEqual(open, 1, "not dropped yet");
        vm.expectEmit(true, true, true, true, address(hints));
        emit HintsDropped(a, 1);
        hints.drop(a);
        (open,) = runOf(1);
        checkEqual(open, 0, "dropped");
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotOpen.selector, a));
        hints.drop(a);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotOpen.selector, 9));
        hints.drop(9);
    }

    /// @dev Several wrong ones: the first challenger is paid, the second keeps its stake, and nobody is harmed.
    function testSecondChallengerKeepsItsStake() public {
        uint64 a = postWrong(PUBLISHER, 1);
        uint64 b = postWrong(PUBLISHER, 2);
        Challenge memory c = challengeOf(one(2), wrong(2), 0, 0);
        commitTo(SECOND, b, c);
        slash(CHALLENGER, a, 1);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.PublisherSlashed.selector, b));
        challenge(SECOND, b, c);
        checkEqual(SECOND.balance, STAKE, "stake");
        checkEqual(hints.rewards(CHALLENGER), BOND / 2 + STAKE, "reward");
        invalidated(b);
    }

    function testFinalHintsOutliveTheirPublisher() public {
        uint64 a = postRight(PUBLISHER, 1);
        vm.roll(block.number + CHALLENGE_WINDOW);
        hints.finalize(a);
        slash(CHALLENGER, postWrong(PUBLISHER, 2), 2);
        checkEqual(hints.finalPosting(1), a, "final");
        check(hints.finalRoot(1) != 0, "root");
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotOpen.selector, a));
        hints.drop(a);
    }

    /// @dev What is invalidated does not refuse the same hints of somebody whose bond answers for them.
    function testInvalidatedPostingGivesWayToItsTwin() public {
        uint64 a = postRight(PUBLISHER, 1);
        bytes memory data = right(1);
        Built memory run = one(1);
        vm.expectRevert(
            abi.encodeWithSelector(HintRegistry.SameHintsOpen.selector, 1, rootOf(1, rightEntries(run)))
        );
        post(HONEST, run.run, data);
        slash(CHALLENGER, postWrong(PUBLISHER, 2), 2);
        vm.expectEmit(true, true, true, true, address(hints));
        emit HintsDropped(a, 1);
        uint64 twin = post(HONEST, run.run, data);
        (uint32 open,) = runOf(1);
        checkEqual(open, 1, "the twin alone");
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotOpen.selector, a));
        hints.drop(a);
        vm.expectRevert(
            abi.encodeWithSelector(HintRegistry.SameHintsOpen.selector, 1, rootOf(1, rightEntries(run)))
        );
        post(HONEST, run.run, data);
        vm.roll(block.number + CHALLENGE_WINDOW);
        hints.finalize(twin);
    }

    function testSlashedPublisherMayBeginAnew() public {
        uint64 a = postRight(PUBLISHER, 1);
        slash(CHALLENGER, postWrong(PUBLISHER, 2), 2);
        Built memory run = one(3);
        bytes memory data = right(3);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.BondTooLow.selector, 0, BOND));
        post(PUBLISHER, run.run, data);
        fund(PUBLISHER, BOND);
        // No new bond brings the old ones back.
        invalidated(a);
        uint64 anew = post(PUBLISHER, run.run, data);
        check(hints.isOpen(anew), "open");
        hints.drop(a);
        (, uint32 open,,) = hints.publishers(PUBLISHER);
        checkEqual(open, 1, "the new one");
        vm.roll(block.number + CHALLENGE_WINDOW);
        hints.finalize(anew);
        vm.prank(PUBLISHER);
        hints.withdrawBond(BOND);
    }

    function testInvalidatedPostingIsDroppedAfterTheRunIsSettled() public {
        uint64 a = postWrong(PUBLISHER, 1);
        slash(CHALLENGER, postWrong(PUBLISHER, 2), 2);
        uint64 b = postRight(HONEST, 1);
        vm.roll(block.number + CHALLENGE_WINDOW);
        hints.finalize(b);
        invalidated(a);
        hints.drop(a);
        (uint32 open,) = runOf(1);
        checkEqual(open, 0, "open");
        checkEqual(hints.finalPosting(1), b, "final");
    }

    /// @dev Others relied on right hints that a slashing invalidated: nobody makes their run void before there was as
    /// much time as at first to post them anew.
    function testSlashingGivesTimeToPostAnew() public {
        uint64 a = postRight(PUBLISHER, 1);
        uint64 b = postWrong(PUBLISHER, 2);
        uint64 twice = postWrong(PUBLISHER, 1);
        vm.roll(block.number + 2 * HINT_DEADLINE - 1);
        slash(CHALLENGER, b, 2);
        uint256 slashed = block.number;
        Built memory run = one(1);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.PostingsOpen.selector, 1, 2));
        hints.voidUnreleased(run.run);
        hints.drop(a);
        vm.roll(slashed + HINT_DEADLINE - 1);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.TooEarly.selector, slashed + HINT_DEADLINE));
        hints.voidUnreleased(run.run);
        // Dropping late gains no further time.
        vm.roll(slashed + HINT_DEADLINE);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.PostingsOpen.selector, 1, 1));
        hints.voidUnreleased(run.run);
        hints.drop(twice);
        (, uint32 slashedAt) = runOf(1);
        checkEqual(slashedAt, slashed, "the slashing");
        hints.voidUnreleased(run.run);
        hints.voidUnreleased(one(2).run);
    }

    /// @dev Shares of the run may have been given because of the false posting, which its publisher has slashed itself.
    function testSlashingOfTheRunsOwnPostingGivesTimeToo() public {
        Built memory run = one(2);
        vm.roll(block.number + HINT_DEADLINE - 1);
        uint64 id = postWrong(PUBLISHER, 2);
        vm.roll(block.number + 90);
        slash(CHALLENGER, id, 2);
        uint256 slashed = block.number;
        (uint32 open, uint32 slashedAt) = runOf(2);
        checkEqual(open, 0, "none open");
        checkEqual(slashedAt, slashed, "the deadline moves");
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.TooEarly.selector, slashed + HINT_DEADLINE));
        hints.voidUnreleased(run.run);
        vm.roll(slashed + HINT_DEADLINE - 1);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.TooEarly.selector, slashed + HINT_DEADLINE));
        hints.voidUnreleased(run.run);
        // Time enough for the right hints.
        checkEqual(hints.finalPosting(2), 0, "not final");
        uint64 rightOne = postRight(HONEST, 2);
        vm.roll(block.number + CHALLENGE_WINDOW);
        hints.finalize(rightOne);
    }

    /// @dev A later slashing of the run's own hints counts, whatever is dropped after it.
    function testAnEarlierSlashingTakesNoTimeAway() public {
        uint64 a = postRight(PUBLISHER, 1);
        fund(HONEST, BOND);
        uint64 own = postWrong(HONEST, 1);
        slash(CHALLENGER, postWrong(PUBLISHER, 2), 2);
        vm.roll(block.number + 100);
        slash(CHALLENGER, own, 1);
        uint256 slashed = block.number;
        hints.drop(a);
        (uint32 open, uint32 slashedAt) = runOf(1);
        checkEqual(open, 0, "none open");
        checkEqual(slashedAt, slashed, "the later one");
        // And both rewards are there.
        checkEqual(hints.rewards(CHALLENGER), BOND / 2 + BOND + 2 * STAKE, "half of both bonds");
    }

    /// @dev What a publisher cannot take stays its own.
    function testABondThatIsRefusedStays() public {
        fund(SECOND_PUBLISHER, BOND);
        vm.etch(SECOND_PUBLISHER, hex"fe");
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.TransferFailed.selector, SECOND_PUBLISHER));
        vm.prank(SECOND_PUBLISHER);
        hints.withdrawBond(BOND);
        (uint128 total,) = hints.bondOf(SECOND_PUBLISHER);
        checkEqual(total, BOND, "still there");
    }

    function testChallengingOneselfBurnsHalf() public {
        fund(PUBLISHER, 4 * BOND);
        uint64 a = postWrong(PUBLISHER, 1);
        slash(PUBLISHER, a, 1);
        vm.prank(PUBLISHER);
        hints.claimReward();
        checkEqual(PUBLISHER.balance, 5 * BOND / 2 + STAKE, "half of all");
        checkEqual(address(hints).balance, BOND, "the other one's bond");
    }

    /// @dev Right entries with other releases are another posting.
    function testOtherReleasesBlockNobody() public {
        Built memory b = one(1);
        bytes memory data = right(1);
        // Without the release of its one malformed item, or with another one: that is for a challenge to show.
        bytes memory bare = bytes.concat(data);
        assembly ("memory-safe") {
            mstore(bare, sub(mload(bare), 48))
        }
        bare[bare.length - 1] = 0;
        uint64 a = post(PUBLISHER, b.run, bare);
        bytes memory other = bytes.concat(data);
        other[other.length - 1] = 0x01;
        uint64 c = post(PUBLISHER, b.run, other);
        uint64 d = post(HONEST, b.run, data);
        check(hints.isOpen(a) && hints.isOpen(c) && hints.isOpen(d), "side by side");
        (uint32 open,) = runOf(1);
        checkEqual(open, 3, "open");
    }
}
