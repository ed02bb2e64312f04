// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @notice The check of one hint.
interface IHintVerifier {
    /// @notice Whether the session key re-encrypts to exactly the ciphertext, and the message it opens.
    /// @dev Reverts on anything but a completed comparison; the message is empty when the answer is false.
    function verify(
        bytes32 ad,
        bytes calldata c,
        bytes16 d,
        bytes calldata e,
        bytes16 key,
        bytes calldata encryptionKey
    ) external view returns (bool ok, bytes memory message);
}
