// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @notice What L1 needs of an envelope to open it.
struct EnvelopeParts {
    /// `hashStruct(EnvelopeHeader)`: the associated data of the ciphertext.
    bytes32 ad;
    /// C, 48 bytes.
    bytes c;
    /// D.
    bytes16 d;
    /// E.
    bytes e;
}

/// @title Reading an envelope
/// @notice An item of a batch that begins with 2 is an `Envelope` of docs/protocol.md, at fixed places:
///
/// | bytes | field |
/// |---|---|
/// | 0 … 169 | EnvelopeHeader |
/// | 170 … 217 | C |
/// | 218 … 233 | D |
/// | 234 … 313 | proof of knowledge: R, s |
/// | 314 … 378 | fee signature |
/// | 379 … 382 | length of E |
/// | 383 … | E |
///
/// Reads no more than that: whether points, proof and signature are good is the validity rule's business, and the
/// committee has certified its verdict with the envelope root.
library Envelopes {
    /// @dev The version this code understands.
    uint8 internal constant VERSION = 2;
    /// @dev Everything but E.
    uint256 internal constant OVERHEAD_BYTES = 383;
    /// @dev The longest E.
    uint256 internal constant MAX_MESSAGE_BYTES = 32_768;

    /// @dev keccak256 of the EIP-712 type of the header.
    bytes32 internal constant HEADER_TYPEHASH = keccak256(
        "EnvelopeHeader(uint8 version,uint64 chainId,uint64 l1ChainId,address inbox,uint64 epoch,bytes32 encryptionKeyHash,address payer,uint64 feeNonce,uint128 maxFee,uint128 priorityFee,uint128 maxGasFee,uint64 gasLimit,uint64 expiry,uint8 flags)"
    );
    /// @dev keccak256 of the EIP-712 type of the envelope.
    bytes32 internal constant ENVELOPE_TYPEHASH = keccak256(
        "Envelope(EnvelopeHeader header,bytes c,bytes16 d,bytes32 ciphertextHash)EnvelopeHeader(uint8 version,uint64 chainId,uint64 l1ChainId,address inbox,uint64 epoch,bytes32 encryptionKeyHash,address payer,uint64 feeNonce,uint128 maxFee,uint128 priorityFee,uint128 maxGasFee,uint64 gasLimit,uint64 expiry,uint8 flags)"
    );

    /// @notice The item is shorter than an envelope with an empty E, or longer than one with the longest.
    error BadEnvelopeLength(uint256 length);
    /// @notice The item is not an envelope of the version that this contract understands.
    error BadEnvelopeVersion(uint8 version);
    /// @notice The length in front of E is not that of the bytes that follow.
    error BadCiphertextLength(uint256 stated, uint256 given);

    /// @notice The envelope that takes up all of `item`; reverts when it is none.
    function decode(bytes calldata item) internal pure returns (EnvelopeParts memory) {
        uint256 length = item.length;
        if (length < OVERHEAD_BYTES || length > OVERHEAD_BYTES + MAX_MESSAGE_BYTES) {
            revert BadEnvelopeLength(length);
        }
        if (uint8(item[0]) != VERSION) revert BadEnvelopeVersion(uint8(item[0]));
        uint256 stated = uint32(bytes4(item[379:383]));
        if (stated != length - OVERHEAD_BYTES) revert BadCiphertextLength(stated, length - OVERHEAD_BYTES);
        return EnvelopeParts({
            ad: associatedData(item), c: item[170:218], d: bytes16(item[218:234]), e: item[383:]
        });
    }

    /// @notice The envelope id: `hashStruct(Envelope)`.
    function id(EnvelopeParts memory parts) internal pure returns (bytes32) {
        // solc checks that the precompile succeeds: without gas this reverts, it never gives a wrong hash.
        return
            keccak256(abi.encode(ENVELOPE_TYPEHASH, parts.ad, keccak256(parts.c), parts.d, sha256(parts.e)));
    }

    /// @notice The gas limit that an envelope's header names; the item is at least as long as a header.
    function gasLimit(bytes calldata item) internal pure returns (uint64) {
        return uint64(bytes8(item[153:161]));
    }

    /// @dev `hashStruct(EnvelopeHeader)`.
    function associatedData(bytes calldata item) private pure returns (bytes32) {
        return keccak256(
            bytes.concat(
                abi.encode(
                    HEADER_TYPEHASH,
                    uint8(item[0]),
                    uint64(bytes8(item[1:9])), // chainId
                    uint64(bytes8(item[9:17])), // l1ChainId
                    address(bytes20(item[17:37])), // inbox
                    uint64(bytes8(item[37:45])), // epoch
                    bytes32(item[45:77]) // encryptionKeyHash
                ),
                abi.encode(
                    address(bytes20(item[77:97])), // payer
                    uint64(bytes8(item[97:105])), // feeNonce
                    uint128(bytes16(item[105:121])), // maxFee
                    uint128(bytes16(item[121:137])), // priorityFee
                    uint128(bytes16(item[137:153])), // maxGasFee
                    uint64(bytes8(item[153:161])), // gasLimit
                    uint64(bytes8(item[161:169])), // expiry
                    uint8(item[169]) // flags
                )
            )
        );
    }
}
