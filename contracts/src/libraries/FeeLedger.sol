// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @title Commitment to the fee accounts
/// @notice What a header's `feeLedgerRoot` commits to (docs/protocol.md, "Fee ledger root"): a compact sparse Merkle
/// tree of accounts and live fee nonces. An entry stands under a key of 32 bytes; a subtree of one entry is its leaf,
/// at whatever depth, an empty one is 32 zero bytes, any other `keccak256(0x01 ‖ left ‖ right)`.
/// @dev Whoever verifies computes key and leaf of an account by itself, from nothing but payer, balance and withdrawn,
/// and is told neither a depth nor a place. So nothing else passes for an account, unless keccak256 breaks: a node's
/// preimage begins with 0x01, a leaf's with 0x00 and its key, a nonce's leaf is 24 bytes shorter and its key made of
/// other bytes; a path too short ends at a node, one too long would go through a leaf. `LedgerProof` in
/// crates/protocol has the argument at length.
library FeeLedger {
    /// @notice The longest path: one sibling for each bit of a key.
    uint256 internal constant KEY_BITS = 256;

    /// @notice Where the account of `payer` stands: keccak256(0x00 ‖ payer 20).
    function accountKey(address payer) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(hex"00", payer));
    }

    /// @notice The leaf of one account: keccak256(0x00 ‖ key 32 ‖ balance u128 ‖ withdrawn u128).
    /// @param key Where the account stands.
    /// @param balance What it can spend, in wei.
    /// @param withdrawn What ever left it towards L1, in wei; never falls.
    function accountLeaf(bytes32 key, uint128 balance, uint128 withdrawn) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(hex"00", key, balance, withdrawn));
    }

    /// @notice Whether that account stands in the ledger with this `feeLedgerRoot`.
    /// @param siblings From the root down to the account's leaf.
    function verify(
        bytes32 feeLedgerRoot,
        address payer,
        uint128 balance,
        uint128 withdrawn,
        bytes32[] calldata siblings
    ) internal pure returns (bool) {
        // An account of nothing has no leaf.
        if (siblings.length > KEY_BITS || (balance == 0 && withdrawn == 0)) return false;
        bytes32 key = accountKey(payer);
        return rootFromProof(key, accountLeaf(key, balance, withdrawn), siblings) == feeLedgerRoot;
    }

    /// @notice The root that a leaf under `key` leads to, by at most 256 siblings from the root down.
    function rootFromProof(bytes32 key, bytes32 leaf, bytes32[] calldata siblings)
        internal
        pure
        returns (bytes32 root)
    {
        // The node of each level takes the place of its child: behind the tag above the free memory, on the side that
        // the key's bit at its depth says.
        assembly ("memory-safe") {
            let buffer := mload(0x40)
            mstore8(buffer, 0x01)
            root := leaf
            for { let depth := siblings.length } depth { } {
                depth := sub(depth, 1)
                let sibling := calldataload(add(siblings.offset, shl(5, depth)))
                let right := shl(5, and(shr(sub(255, depth), key), 1))
                mstore(add(add(buffer, 1), right), root)
                mstore(add(add(buffer, 1), xor(right, 32)), sibling)
                root := keccak256(buffer, 65)
            }
        }
    }
}
