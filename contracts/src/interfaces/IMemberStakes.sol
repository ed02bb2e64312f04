// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @notice What the CommitteeRegistry asks of the MemberStakes.
interface IMemberStakes {
    /// @notice Binds the stake of a member's key to an epoch; reverts when it is too small, about to leave, or its owner
    /// did not agree to a number as high as the epoch's last one. For the registry only.
    /// @param keyHash keccak256 of the key's 256 bytes.
    /// @param lastNumber The epoch's last number. It can fall later, and rises only where L1 made headers beyond it,
    /// which are posted by then.
    function bind(bytes32 keyHash, uint64 epoch, uint64 lastNumber) external;
}
