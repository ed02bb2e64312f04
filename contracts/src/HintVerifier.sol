// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { IHintVerifier } from "./interfaces/IHintVerifier.sol";
import { GtPower } from "./libraries/GtPower.sol";
import { GtResidues } from "./libraries/GtResidues.sol";
import { SessionKeys } from "./libraries/SessionKeys.sol";

/// @title The check of one hint: encrypt again and compare
/// @notice The hint of a well-formed ciphertext (C, D, E) under associated data is its session key K. From K follow
/// the message M and the randomness k; the hint is right iff `[k]₁` has exactly the bytes of C **and**
/// `K ⊕ SHA256(KEM ‖ ek^k)[0..16]` is D. C fixes k, k fixes ek^k, which with D fixes K: nobody can make this answer
/// true for anything but what honest decryption gives. Without the second comparison a user and a hint publisher could choose
/// afterwards whether a transaction exists.
///
/// **False only after a completed comparison.** Wrong lengths, a coefficient of `ek` that is not below p, a precompile
/// that fails or runs out of gas: all revert, so no publisher loses a bond to a malformed or starved call.
///
/// `encryptionKey` is trusted to lie in GT: the exponentiation uses laws of GT that other elements of F_p12 break.
/// Members check the parameters of an epoch off chain before they certify it; callers take `ek` from
/// `CommitteeRegistry`, never from a stranger.
///
/// Nothing here is secret: the time depends on the values.
///
/// Cost for 300 bytes: 1.46 million gas on average over 200 random ones (1.37 to 1.54), 1.63 million for the k that asks
/// for most (`scripts/contracts gas-spread`). 12,000 of it for `[k]₁` by G1MSM (EIP-2537), some 300 for each 32 bytes of
/// E; the rest for ek^k, which no precompile gives: 63 cyclotomic squares (Granger and Scott, ePrint 2009/565) and 51
/// products in F_p12, four digits of k at once by the Frobenius map (`GtPower`). A wrong header is found before that,
/// for 38,000. The longest E: 1.9 million, with its calldata 2.4 of the 16.8 that EIP-7825 allows.
contract HintVerifier is IHintVerifier {
    /// @notice Length of C, a compressed point of G1.
    uint256 public constant HEADER_BYTES = 48;
    /// @notice The longest E.
    uint256 public constant MAX_MESSAGE_BYTES = 32_768;
    /// @notice Length of ek: twelve coefficients of 48 bytes, in tower order.
    uint256 public constant ENCRYPTION_KEY_BYTES = 576;

    /// @notice C must have 48 bytes.
    error WrongHeaderLength(uint256 given);
    /// @notice E must have 1 to 32,768 bytes.
    error WrongMessageLength(uint256 given);
    /// @notice ek must have 576 bytes.
    error WrongEncryptionKeyLength(uint256 given);

    /// @inheritdoc IHintVerifier
    function verify(
        bytes32 ad,
        bytes calldata c,
        bytes16 d,
        bytes calldata e,
        bytes16 key,
        bytes calldata encryptionKey
    ) external view returns (bool ok, bytes memory message) {
        if (c.length != HEADER_BYTES) revert WrongHeaderLength(c.length);
        if (e.length == 0 || e.length > MAX_MESSAGE_BYTES) revert WrongMessageLength(e.length);
        if (encryptionKey.length != ENCRYPTION_KEY_BYTES) {
            revert WrongEncryptionKeyLength(encryptionKey.length);
        }
        GtResidues.reserve();
        GtResidues.load(encryptionKey);
        message = SessionKeys.open(ad, e, key);
        uint256 k = SessionKeys.randomness(ad, key, message);
        (uint256 high, uint256 low) = SessionKeys.header(k);
        ok = high == uint256(uint128(bytes16(c[:16]))) && low == uint256(bytes32(c[16:]))
            && key ^ SessionKeys.mask(GtPower.power(k)) == d;
        if (!ok) message = "";
    }
}
