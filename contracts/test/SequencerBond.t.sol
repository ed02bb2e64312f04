// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { SequencerBond } from "../src/SequencerBond.sol";
import { Deployment } from "./helpers/Deployment.sol";
import { Unpayable } from "./helpers/Unpayable.sol";

contract SequencerBondTest is Deployment {
    address internal sequencer;

    event BondDeposited(address indexed sequencer, address indexed from, uint256 amount, uint256 bond);
    event BondWithdrawalAnnounced(address indexed sequencer, uint256 amount, uint256 expiresAt);
    event BondWithdrawn(address indexed sequencer, address indexed to, uint256 amount, uint256 bond);

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        sequencer = vm.addr(SEQUENCER_KEY);
    }

    /// @dev Rules B-1, B-2.
    function testBondLifecycle() public {
        vm.deal(address(0xb0b), 5 ether);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit BondDeposited(sequencer, address(0xb0b), 5 ether, 5 ether);
        vm.prank(address(0xb0b));
        inbox.depositBond{ value: 5 ether }(sequencer);
        vm.deal(address(0xb0b), 1 ether);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit BondDeposited(sequencer, address(0xb0b), 1 ether, 6 ether);
        vm.prank(address(0xb0b));
        inbox.depositBond{ value: 1 ether }(sequencer);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit BondWithdrawalAnnounced(sequencer, 2 ether, block.timestamp + 21 days);
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(2 ether);
        uint256 unlocksAt = block.timestamp + 7 days;

        vm.warp(unlocksAt - 1);
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.WithdrawalLocked.selector, unlocksAt));
        inbox.withdrawBond(payable(address(0xcafe)));
        vm.warp(unlocksAt);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit BondWithdrawn(sequencer, address(0xcafe), 2 ether, 4 ether);
        vm.prank(sequencer);
        inbox.withdrawBond(payable(address(0xcafe)));
        checkEqual(address(0xcafe).balance, 2 ether, "taken out");
        checkEqual(bond(), 4 ether, "left");
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.NoWithdrawalAnnounced.selector));
        inbox.withdrawBond(payable(address(0xcafe)));
    }

    function testAnnouncementCanBeReplacedAndTakenBack() public {
        depositBond(5 ether);
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(2 ether);
        vm.warp(block.timestamp + 7 days);
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(5 ether);
        vm.prank(sequencer);
        vm.expectRevert(
            abi.encodeWithSelector(SequencerBond.WithdrawalLocked.selector, block.timestamp + 7 days)
        );
        inbox.withdrawBond(payable(sequencer));
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(0);
        (uint128 amount, uint64 unlocksAt, uint64 expiresAt) = inbox.withdrawalOf(sequencer);
        checkEqual(amount + unlocksAt + expiresAt, 0, "none");
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.NoWithdrawalAnnounced.selector));
        inbox.withdrawBond(payable(sequencer));
    }

    function testFuzzNobodyElseWithdraws(address caller) public {
        vm.assume(caller != sequencer);
        depositBond(1 ether);
        announce(1 ether);
        vm.warp(block.timestamp + 7 days);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.AmountAboveBond.selector, 1, 0));
        inbox.announceBondWithdrawal(1);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.NoWithdrawalAnnounced.selector));
        inbox.withdrawBond(payable(caller));
    }

    function testBondRefusals() public {
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.ZeroAmount.selector));
        inbox.depositBond(sequencer);
        depositBond(1 ether);
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.AmountAboveBond.selector, 2 ether, 1 ether));
        inbox.announceBondWithdrawal(2 ether);
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(1 ether);
        vm.warp(block.timestamp + 7 days);
        Unpayable unpayable = new Unpayable();
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.TransferFailed.selector, address(unpayable)));
        inbox.withdrawBond(payable(address(unpayable)));
        (uint128 amount,,) = inbox.withdrawalOf(sequencer);
        checkEqual(amount, 1 ether, "still announced");
        checkEqual(address(inbox).balance, 1 ether, "still there");
    }

    function announce(uint128 amount) internal {
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(amount);
    }

    function expectWithdrawal(bytes memory reason) internal {
        vm.prank(sequencer);
        if (reason.length != 0) vm.expectRevert(reason);
        inbox.withdrawBond(payable(sequencer));
    }

    /// @dev Announced once, a withdrawal was open in every later block, while `bond()` showed all of it.
    function testBondAnnouncedLongAgoCannotLeaveBeforeTheEvidence() public {
        depositBond(100 ether);
        announce(60 ether);
        checkEqual(bond(), 40 ether, "what is announced is no bond");
        (uint128 amount, uint64 unlocksAt, uint64 expiresAt) = inbox.withdrawalOf(sequencer);
        checkEqual(amount, 60 ether, "announced");
        checkEqual(unlocksAt, block.timestamp + 7 days, "unlocks");
        checkEqual(expiresAt, block.timestamp + 21 days, "lapses");
        vm.warp(expiresAt - 1);
        checkEqual(bond(), 40 ether, "not yet lapsed");
        vm.warp(expiresAt + 1);
        checkEqual(bond(), 100 ether, "lapsed for good");
        vm.warp(expiresAt);
        checkEqual(bond(), 100 ether, "lapsed");
        (amount, unlocksAt, expiresAt) = inbox.withdrawalOf(sequencer);
        checkEqual(amount + unlocksAt + expiresAt, 0, "none");
        expectWithdrawal(abi.encodeWithSelector(SequencerBond.NoWithdrawalAnnounced.selector));
        announce(100 ether);
        expectWithdrawal(
            abi.encodeWithSelector(SequencerBond.WithdrawalLocked.selector, block.timestamp + 7 days)
        );
    }

    /// @dev A promise can be shown to be broken only once its header is posted: the bond stays a delay longer (B-3).
    function testDelayRunsFromTheLastCertifiedPosting() public {
        registerEpoch(EPOCH_LAST, 4, 3);
        depositBond(100 ether);
        announce(100 ether);
        vm.warp(block.timestamp + 7 days);
        vm.roll(block.number + 100);
        postRun(run(1)); // without an envelope that was promised, say
        bytes memory locked =
            abi.encodeWithSelector(SequencerBond.WithdrawalLocked.selector, block.timestamp + 7 days);
        expectWithdrawal(locked);
        vm.warp(block.timestamp + 7 days - 1);
        expectWithdrawal(locked);
        vm.warp(block.timestamp + 1);
        expectWithdrawal("");
        checkEqual(sequencer.balance, 100 ether, "taken out after it stopped");
    }

    /// @dev Rule B-4.
    function testPostingForThreeWeeksLetsTheAnnouncementLapse() public {
        registerEpoch(EPOCH_LAST, 4, 3);
        depositBond(100 ether);
        announce(1 ether);
        for (uint256 i = 0; i < 3; i++) {
            pass(7 days / 12);
            if (i < 2) postRun(run(1));
        }
        checkEqual(bond(), 100 ether, "bond again");
        expectWithdrawal(abi.encodeWithSelector(SequencerBond.NoWithdrawalAnnounced.selector));
    }
}
