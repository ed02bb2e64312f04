// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @notice One item that somebody forced in through L1.
struct ForcedEntry {
    /// keccak256 of the item's bytes as they stand in a batch.
    bytes32 itemHash;
    /// The L1 block it was enqueued in; 0 for none.
    uint64 enqueuedAt;
    /// Gas of a forced transaction; 0 for an envelope, which names its own.
    uint64 gasLimit;
    /// Length of the item in a batch, in bytes.
    uint32 length;
    /// 0 an envelope, 1 a transaction in the clear.
    uint8 kind;
}

/// @notice What the inbox asks of the ForcedQueue.
interface IForcedQueue {
    /// @notice How many items were ever enqueued.
    function length() external view returns (uint64);

    /// @notice The L1 block in which an item was enqueued; 0 when there is none.
    function enqueuedAt(uint64 index) external view returns (uint64);

    /// @notice An item; all zero when there is none.
    function entry(uint64 index) external view returns (ForcedEntry memory);
}
