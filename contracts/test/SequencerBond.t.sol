// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { SequencerBond } from "../src/SequencerBond.sol";
import { Deployment } from "./helpers/Deployment.sol";
import { Unpayable } from "./helpers/Unpayable.sol";

contract SequencerBondTest is Deployment {
    address internal sequencer;

    event BondDeposited(address indexed from, uint256 amount, uint256 bond);

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        sequencer = vm.addr(SEQUENCER_KEY);
    }

    function testBondLifecycle() public {
        vm.deal(address(0xb0b), 5 ether);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit BondDeposited(address(0xb0b), 5 ether, 5 ether);
        vm.prank(address(0xb0b));
        inbox.depositBond{ value: 5 ether }();
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(2 ether);
        uint256 unlocksAt = block.timestamp + 7 days;

        vm.warp(unlocksAt - 1);
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.WithdrawalLocked.selector, unlocksAt));
        inbox.withdrawBond(payable(address(0xcafe)));
        vm.warp(unlocksAt);
        vm.prank(sequencer);
        inbox.withdrawBond(payable(address(0xcafe)));
        checkEqual(address(0xcafe).balance, 2 ether, "taken out");
        checkEqual(inbox.bond(), 3 ether, "left");
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
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.NoWithdrawalAnnounced.selector));
        inbox.withdrawBond(payable(sequencer));
    }

    function testFuzzOnlySequencerWithdraws(address caller) public {
        vm.assume(caller != sequencer);
        depositBond(1 ether);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.NotSequencer.selector, caller));
        inbox.announceBondWithdrawal(1);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.NotSequencer.selector, caller));
        inbox.withdrawBond(payable(caller));
    }

    function testBondRefusals() public {
        vm.expectRevert(abi.encodeWithSelector(SequencerBond.ZeroAmount.selector));
        inbox.depositBond();
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
        checkEqual(inbox.bond(), 1 ether, "bond");
    }
}
