// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { IEncryptionKeyVerifier } from "./interfaces/IEncryptionKeyVerifier.sol";
import { GtMembership } from "./libraries/GtMembership.sol";
import { GtResidues } from "./libraries/GtResidues.sol";

/// @title The check of an encryption key
/// @notice Exponentiation in `HintVerifier` uses laws of GT that other elements of F_p12 break: under a key outside GT
/// right hints would be judged wrong. So the CommitteeRegistry takes none: canonical coefficients, an element of GT, not
/// the identity. No funds, no state.
contract EncryptionKeyVerifier is IEncryptionKeyVerifier {
    /// @dev Length of an encoded element.
    uint256 private constant GT_BYTES = 576;

    /// @inheritdoc IEncryptionKeyVerifier
    /// @dev About 0.8 million gas. Reverts with `CoefficientNotReduced` where a coefficient is not below p.
    function isEncryptionKey(bytes calldata encoded) external pure override returns (bool) {
        GtResidues.reserve();
        if (encoded.length != GT_BYTES || isOne(encoded)) return false;
        return GtMembership.contains(encoded);
    }

    /// @dev Whether the bytes encode the identity: 1, and zeros.
    function isOne(bytes calldata encoded) private pure returns (bool) {
        if (uint8(encoded[47]) != 1) return false;
        for (uint256 i = 0; i < GT_BYTES; i++) {
            if (i != 47 && encoded[i] != 0) return false;
        }
        return true;
    }
}
