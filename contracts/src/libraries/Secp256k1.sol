// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @title Strict secp256k1 signatures
/// @notice 65 bytes `r ‖ s ‖ v` with `v ∈ {27, 28}` and `s` in the lower half of the group order, so that a
/// signature has exactly one encoding.
library Secp256k1 {
    /// @dev Half of the group order, rounded down: the largest accepted `s`.
    uint256 internal constant MAX_S = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    /// @notice The signer of `digest`, or the zero address when the signature is malformed or recovers to nobody.
    function recover(bytes32 digest, bytes calldata signature) internal pure returns (address) {
        if (signature.length != 65) return address(0);
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        uint8 v = uint8(signature[64]);
        if (uint256(s) > MAX_S || (v != 27 && v != 28)) return address(0);
        return ecrecover(digest, v, r, s);
    }
}
