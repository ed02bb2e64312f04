// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @title The stream that encrypts messages
/// @notice `M = E ⊕ S` with `S = SHA256(tag ‖ K ‖ ad[0..16] ‖ be32(0)) ‖ SHA256(tag ‖ K ‖ ad[0..16] ‖ be32(1)) ‖ …`
/// (docs/scheme.md, "Encrypt"). Says nothing of whether the key is the right one: any key gives some bytes.
library MessageStream {
    /// @dev Tag in front of every block of the stream.
    bytes19 internal constant TAG = "BLINDFOLD-V1-STREAM";

    /// @notice The SHA-256 precompile failed: give the call more gas.
    error HashFailed();

    /// @notice The message that `key` opens. About 300 gas for every 32 bytes.
    function decrypt(bytes16 key, bytes32 ad, bytes memory e) internal view returns (bytes memory message) {
        message = new bytes(e.length);
        bytes memory input = abi.encodePacked(TAG, key, bytes16(ad), uint32(0));
        bool failed;
        assembly ("memory-safe") {
            let length := mload(e)
            let from := add(e, 32)
            // The counter is the low four bytes of the word that ends with the 55 bytes of input.
            let counterAt := add(input, 55)
            let first := mload(counterAt)
            let to := add(message, 32)
            for { let offset := 0 } lt(offset, length) { offset := add(offset, 32) } {
                mstore(counterAt, add(first, shr(5, offset)))
                // Scratch space takes the block.
                failed := iszero(staticcall(gas(), 0x02, add(input, 32), 55, 0x00, 32))
                if or(failed, iszero(eq(returndatasize(), 32))) {
                    failed := 1
                    break
                }
                mstore(add(to, offset), xor(mload(add(from, offset)), mload(0x00)))
            }
            // `new bytes` takes whole words, so this clears at most what a last block wrote past the end.
            let over := and(length, 31)
            if over {
                let last := add(to, sub(length, over))
                mstore(last, and(mload(last), not(shr(shl(3, over), not(0)))))
            }
        }
        if (failed) revert HashFailed();
    }
}
