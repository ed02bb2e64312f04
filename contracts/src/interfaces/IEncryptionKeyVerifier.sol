// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @notice The check of an encryption key.
interface IEncryptionKeyVerifier {
    /// @notice Whether the 576 bytes encode an element of GT other than the identity.
    function isEncryptionKey(bytes calldata encoded) external view returns (bool);
}
