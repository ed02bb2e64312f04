// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitReveal } from "../../src/CommitReveal.sol";
import { Symbolic } from "./Symbolic.sol";

/// @dev Reveals for whoever asks.
contract AnyRevealer is CommitReveal {
    function show(bytes32 evidence, bytes32 salt) external {
        reveal(evidence, salt);
    }
}

contract CommitRevealProofs is Symbolic {
    AnyRevealer internal revealer = new AnyRevealer();

    function setUp() public {
        anyState(address(revealer));
    }

    /// @dev Whoever sends it: a commitment's first block stands, and no other commitment changes.
    function check_FirstBlockStands(address caller, bytes32 commitment, bytes32 other, uint64 l1Block)
        public
    {
        vm.assume(other != commitment);
        uint256 before = revealer.committedAt(commitment);
        uint256 otherBefore = revealer.committedAt(other);
        vm.roll(l1Block);
        vm.prank(caller);
        revealer.commit(commitment);
        assert(revealer.committedAt(commitment) == (before == 0 ? l1Block : before));
        assert(revealer.committedAt(other) == otherBefore);
    }

    /// @dev A reveal succeeds exactly with the caller's own commitment of an earlier block, uses it up, and no other.
    function check_RevealNeedsTheCallersEarlierCommitment(
        address caller,
        bytes32 evidence,
        bytes32 salt,
        bytes32 other,
        uint64 l1Block
    ) public {
        bytes32 commitment = keccak256(abi.encode(caller, evidence, salt));
        vm.assume(other != commitment);
        uint256 before = revealer.committedAt(commitment);
        uint256 otherBefore = revealer.committedAt(other);
        vm.roll(l1Block);
        vm.prank(caller);
        (bool revealed,) = address(revealer).call(abi.encodeCall(revealer.show, (evidence, salt)));
        assert(revealed == (before != 0 && before < l1Block));
        assert(revealer.committedAt(commitment) == (revealed ? 0 : before));
        assert(revealer.committedAt(other) == otherBefore);
    }
}
