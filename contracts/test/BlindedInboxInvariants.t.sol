// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox } from "../src/BlindedInbox.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { Deployment } from "./helpers/Deployment.sol";

/// @dev Drives one deployment at random and keeps its own books.
contract BlindedInboxHandler is Deployment {
    uint256 public deposited;
    uint256 public burnt;
    uint256 public paidOut;
    uint64 public posted;
    uint64 private nextConflict = 1;

    constructor() {
        deployContracts();
        registerEpoch(type(uint64).max - 1, 3, 2);
    }

    function theInbox() external view returns (BlindedInbox) {
        return inbox;
    }

    function postRun(uint256 count) external {
        count = bound(count, 1, 4);
        BatchHeader[] memory headers = run(count);
        post(headers, certificate(headers[count - 1], 0x3));
        posted += uint64(count);
    }

    function postRunWithTooFewSigners() external {
        BatchHeader[] memory headers = run(1);
        BlindedInbox.Certificate memory c = certificate(headers[0], 0x4);
        vm.prank(POSTER, POSTER);
        vm.expectRevert();
        inbox.post(headers, "", c);
    }

    function depositBond(uint256 amount) external {
        amount = bound(amount, 1, 100 ether);
        vm.deal(address(this), amount);
        inbox.depositBond{ value: amount }();
        deposited += amount;
    }

    function announce(uint256 amount) external {
        amount = bound(amount, 0, inbox.bond());
        vm.prank(vm.addr(SEQUENCER_KEY));
        inbox.announceBondWithdrawal(uint128(amount));
    }

    function withdraw(uint256 waited) external {
        (uint128 amount, uint64 unlocksAt) = inbox.withdrawal();
        vm.warp(block.timestamp + bound(waited, 0, 14 days));
        bool allowed = amount != 0 && block.timestamp >= unlocksAt;
        if (!allowed) vm.expectRevert();
        vm.prank(vm.addr(SEQUENCER_KEY));
        inbox.withdrawBond(payable(address(0xcafe)));
        if (allowed) paidOut += amount;
    }

    function slash(uint8 reporter) external {
        uint256 bond = inbox.bond();
        BatchHeader memory first = run(1)[0];
        first.number = nextConflict;
        BatchHeader memory second = run(1)[0];
        second.number = nextConflict;
        second.gas ^= 1;
        bytes memory one = signHeader(SEQUENCER_KEY, first);
        bytes memory two = signHeader(SEQUENCER_KEY, second);
        address sender = address(uint160(0x10000) + reporter % 3);
        if (bond == 0) vm.expectRevert();
        vm.prank(sender);
        inbox.slashEquivocation(first, one, second, two);
        if (bond != 0) {
            nextConflict++;
            burnt += bond - bond / 2;
        }
    }

    function claim(uint8 reporter) external {
        address sender = address(uint160(0x10000) + reporter % 3);
        uint256 owed = inbox.rewards(sender);
        if (owed == 0) vm.expectRevert();
        vm.prank(sender);
        inbox.claimReward();
        paidOut += owed;
    }
}

contract BlindedInboxInvariantsTest is Deployment {
    BlindedInboxHandler internal handler;

    function setUp() public {
        vm.warp(1_800_000_000);
        handler = new BlindedInboxHandler();
        inbox = handler.theInbox();
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function invariantEtherIsAccountedFor() public view {
        uint256 owed = 0;
        for (uint160 i = 0; i < 3; i++) {
            owed += inbox.rewards(address(0x10000 + i));
        }
        checkEqual(address(inbox).balance, inbox.bond() + owed, "held = bond + rewards");
        checkEqual(
            handler.deposited(), inbox.bond() + owed + handler.burnt() + handler.paidOut(), "in = held + out"
        );
    }

    function invariantWithdrawalNeverExceedsBond() public view {
        (uint128 amount,) = inbox.withdrawal();
        check(amount <= inbox.bond(), "announced more than the bond");
    }

    function invariantHeadIsWhatWasPosted() public view {
        (uint64 number,,,) = inbox.head();
        checkEqual(number, handler.posted(), "head");
        if (number != 0) check(inbox.runCommitment(number) != bytes32(0), "the last run is committed to");
    }
}
