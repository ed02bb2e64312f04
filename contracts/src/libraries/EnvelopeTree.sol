// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @title Leaves of a batch's envelope tree
/// @notice A leaf's data are `id 32 ‖ keccak256(item bytes) 32 ‖ code u8`, 65 bytes: which item stands at an index,
/// and what the validity rule said about it, certified by the committee with the header's `envelopeRoot`.
/// Codes 1 … 18 are the place of the first fault in the rule's list (docs/protocol.md).
library EnvelopeTree {
    /// @dev The item is an envelope that the validity rule accepts.
    uint8 internal constant ACCEPTED = 0;
    /// @dev The batch has accepted an item of the same id before.
    uint8 internal constant DUPLICATE = 11;
    /// @dev The payer's fee nonce is in use.
    uint8 internal constant FEE_NONCE_USED = 15;
    /// @dev The payer's balance does not cover the fee.
    uint8 internal constant INSUFFICIENT_FUNDS = 17;
    /// @dev An envelope forced into a header that L1 made, which nobody can open; its id is zero.
    uint8 internal constant VOID = 0xfe;
    /// @dev A forced transaction in the clear; its id is zero.
    uint8 internal constant FORCED_TRANSACTION = 0xff;

    /// @notice The leaf of an item.
    function leaf(bytes32 id, bytes32 itemHash, uint8 code) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(hex"00", id, itemHash, code));
    }
}
