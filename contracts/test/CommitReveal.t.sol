// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitReveal } from "../src/CommitReveal.sol";
import { Test } from "./helpers/Test.sol";

/// @dev Reveals for whoever asks.
contract Revealer is CommitReveal {
    function show(bytes32 evidence, bytes32 salt) external {
        reveal(evidence, salt);
    }
}

contract CommitRevealTest is Test {
    Revealer internal revealer = new Revealer();

    event Committed(bytes32 indexed commitment, address indexed sender);

    function commitmentOf(address sender, bytes32 evidence, bytes32 salt) internal pure returns (bytes32) {
        return keccak256(abi.encode(sender, evidence, salt));
    }

    function testFuzzOnceAndLater(address sender, bytes32 evidence, bytes32 salt, uint8 blocks) public {
        bytes32 commitment = commitmentOf(sender, evidence, salt);
        vm.expectEmit(true, true, true, true, address(revealer));
        emit Committed(commitment, sender);
        vm.prank(sender);
        revealer.commit(commitment);
        checkEqual(revealer.committedAt(commitment), block.number, "block");
        vm.roll(block.number + blocks);
        if (blocks == 0) {
            vm.prank(sender);
            vm.expectRevert(abi.encodeWithSelector(CommitReveal.CommittedInThisBlock.selector));
            revealer.show(evidence, salt);
            vm.roll(block.number + 1);
        }
        vm.prank(sender);
        revealer.show(evidence, salt);
        vm.prank(sender);
        vm.expectRevert(abi.encodeWithSelector(CommitReveal.NotCommitted.selector, commitment));
        revealer.show(evidence, salt);
    }

    function testFuzzOthersCommitmentsAreWorthNothing(
        address sender,
        address other,
        bytes32 evidence,
        bytes32 salt
    ) public {
        vm.assume(sender != other);
        vm.prank(other);
        revealer.commit(commitmentOf(sender, evidence, salt));
        vm.roll(block.number + 1);
        bytes32 missing = commitmentOf(other, evidence, salt);
        vm.prank(other);
        vm.expectRevert(abi.encodeWithSelector(CommitReveal.NotCommitted.selector, missing));
        revealer.show(evidence, salt);
    }

    /// @dev Nobody puts a reveal off by committing for another once more in the same block.
    function testFirstBlockStands() public {
        bytes32 commitment = commitmentOf(address(1), "evidence", "salt");
        vm.prank(address(1));
        revealer.commit(commitment);
        uint256 since = block.number;
        vm.roll(since + 1);
        vm.prank(address(2));
        revealer.commit(commitment);
        checkEqual(revealer.committedAt(commitment), since, "first block");
        vm.prank(address(1));
        revealer.show("evidence", "salt");
    }
}
