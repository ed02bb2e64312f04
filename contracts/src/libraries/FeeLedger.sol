// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @title Commitment to the fee accounts
/// @notice What a header's `feeLedgerRoot` commits to (docs/protocol.md, "Hashes and signatures"): a Merkle tree
/// (`MerkleTree`) with a leaf for each account, sorted by payer, and the number of leaves.
library FeeLedger {
    /// @notice The leaf of one account: data = payer 20 ‖ balance u128 ‖ withdrawn u128 ‖ noncesHash, 84 bytes.
    /// @param payer Whose account it is.
    /// @param balance What it can spend, in wei.
    /// @param withdrawn What ever left it towards L1, in wei; never falls.
    /// @param noncesHash keccak256 of its live nonces.
    function leaf(address payer, uint128 balance, uint128 withdrawn, bytes32 noncesHash)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encodePacked(hex"00", payer, balance, withdrawn, noncesHash));
    }

    /// @notice `feeLedgerRoot` of a header.
    /// @param count Number of accounts.
    /// @param root Root of their tree.
    function commitment(uint64 count, bytes32 root) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(hex"02", count, root));
    }
}
